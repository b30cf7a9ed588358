#include "kernels/conv/conv_half.h"
#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec256.h"

#define VEC           __m256
#define LANES         ((size_t)8)
#define VECTORS       2
#define VLOAD(p)      _mm256_loadu_ps((const float *)(const void *)(p))
#define VSTORE(p, v)  _mm256_storeu_ps((float *)(void *)(p), v)
#define VSPREAD(p)    _mm256_castsi256_ps(_mm256_set1_epi32(qk_dword(p)))
#define VDOT(s, x, w) _mm256_fmadd_ps(x, w, s)
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
    size_t i = 0;
    for (; n - i >= LANES && type != QDQ_DTYPE_F32; i += LANES) {
        const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i));
        VSTORE(dst + 4 * i, type == QDQ_DTYPE_F16
                                ? _mm256_cvtph_ps(half)
                                : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)));
    }
    for (; n - i >= LANES; i += LANES)
        VSTORE(dst + 4 * i, VLOAD(src + 4 * i));
    for (; i < n; i++) {
        const float x = qk_conv_float(src, i, type);
        memcpy(dst + 4 * i, &x, sizeof x);
    }
}

const qk_tile_row qk_tile_float_row_avx2 = {.isa = QK_ISA_avx2,
                                            .unit = 1,
                                            .lanes = LANES,
                                            .max_cols = LANES * VECTORS,
                                            .ends = true,
                                            .tiles = tiles,
                                            .copy = copy};
