#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512i
#define LANES         ((size_t)16)
#define VECTORS       4
#define VLOAD(p)      _mm512_loadu_si512(p)
#define VSTORE(p, v)  _mm512_storeu_si512(p, v)
#define FLIPS         1
#define VFLIP(x)      _mm512_xor_si512(x, flip)
#define VSPREAD(p)    _mm512_set1_epi32(qk_dword(p))
#define VDOT(s, x, w) _mm512_dpbusd_epi32(s, x, w)
#define SECOND        VEC
#define VLOAD_SECOND  VLOAD
#define VDOT_SECOND   VDOT
#define ADDS          0
#define END_BYTES     1
#define END_FLOAT(s)  _mm512_cvtepi32_ps(s)
#include "kernels/conv/conv_tile_body.h"

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    const __m512i f = _mm512_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 64; i += 64)
        _mm512_storeu_si512(dst + i, _mm512_xor_si512(_mm512_loadu_si512(src + i), f));
    if (i == n) return;
    const __mmask64 lanes = ((__mmask64)1 << (n - i)) - 1;
    _mm512_mask_storeu_epi8(dst + i, lanes, _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, src + i), f));
}

const qk_tile_row qk_tile_row_avx512vnni = {.isa = QK_ISA_avx512vnni,
                                            .unit = 4,
                                            .lanes = LANES,
                                            .max_cols = LANES * VECTORS,
                                            .flips = true,
                                            .ends = true,
                                            .tiles = tiles,
                                            .copy = copy};
