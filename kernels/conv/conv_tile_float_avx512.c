#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512
#define LANES         ((size_t)16)
#define VECTORS       4
#define VLOAD(p)      _mm512_loadu_ps(p)
#define VSTORE(p, v)  _mm512_storeu_ps(p, v)
#define VSPREAD(p)    _mm512_castsi512_ps(_mm512_set1_epi32(qk_dword(p)))
#define VDOT(s, x, w) _mm512_fmadd_ps(x, w, s)
#define FLIPS         0
#define VFLIP(x)      (x)
#define SECOND        VEC
#define VLOAD_SECOND  VLOAD
#define VDOT_SECOND   VDOT
#define ADDS          0
#define END_BYTES     0
#define END_FLOAT(s)  (s)
#include "kernels/conv/conv_tile_body.h"

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)flip;
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = qk512_lanes(n - i);
        __m512 x;
        if (type == QDQ_DTYPE_F32) {
            x = _mm512_maskz_loadu_ps(lanes, src + 4 * i);
        } else {
            const __m256i half = _mm256_maskz_loadu_epi16(lanes, src + 2 * i);
            x = type == QDQ_DTYPE_F16 ? _mm512_cvtph_ps(half)
                                      : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
        }
        _mm512_mask_storeu_ps(dst + 4 * i, lanes, x);
    }
}

const qk_tile_row qk_tile_float_row_avx512 = {.isa = QK_ISA_avx512,
                                              .unit = 1,
                                              .lanes = LANES,
                                              .max_cols = LANES * VECTORS,
                                              .ends = true,
                                              .tiles = tiles,
                                              .copy = copy};
