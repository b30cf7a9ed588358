#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512i
#define LANES         ((size_t)16)
#define VECTORS       4
#define VLOAD(p)      _mm512_loadu_si512(p)
#define VSTORE(p, v)  _mm512_storeu_si512(p, v)
#define FLIPS         0
#define VFLIP(x)      (x)
#define VSPREAD(p)    _mm512_set1_epi32(qk_dword(p))
#define VDOT(s, x, w) _mm512_add_epi32(s, _mm512_madd_epi16(x, w))
#define SECOND        VEC
#define VLOAD_SECOND  VLOAD
#define VDOT_SECOND   VDOT
#define ADDS          0
#define END_BYTES     1
#define END_FLOAT(s)  _mm512_cvtepi32_ps(s)
#include "kernels/conv/conv_tile_body.h"

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    const __m256i f = _mm256_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(src + i)), f);
        _mm512_storeu_si512(dst + 2 * i, _mm512_cvtepu8_epi16(x));
    }
    if (i == n) return;
    const __mmask32 lanes = ((__mmask32)1 << (n - i)) - 1;
    const __m256i x = _mm256_xor_si256(_mm256_maskz_loadu_epi8(lanes, src + i), f);
    _mm512_mask_storeu_epi16(dst + 2 * i, lanes, _mm512_cvtepu8_epi16(x));
}

const qk_tile_row qk_tile_row_avx512 = {.isa = QK_ISA_avx512,
                                        .unit = 2,
                                        .lanes = LANES,
                                        .max_cols = LANES * VECTORS,
                                        .ends = true,
                                        .tiles = tiles,
                                        .copy = copy};
