#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec256.h"

#define VEC           __m256i
#define LANES         ((size_t)8)
#define VECTORS       2
#define VLOAD(p)      _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VSTORE(p, v)  _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define FLIPS         0
#define VFLIP(x)      (x)
#define VSPREAD(p)    _mm256_set1_epi32(qk_dword(p))
#define VDOT(s, x, w) _mm256_add_epi32(s, _mm256_madd_epi16(x, w))
#define SECOND        VEC
#define VLOAD_SECOND  VLOAD
#define VDOT_SECOND   VDOT
#define ADDS          0
#define END_BYTES     1
#define END_FLOAT(s)  _mm256_cvtepi32_ps(s)
#include "kernels/conv/conv_tile_body.h"

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    const __m128i f = _mm_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        const __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(src + i)), f);
        VSTORE(dst + 2 * i, _mm256_cvtepu8_epi16(x));
    }
    for (; i < n; i++) {
        dst[2 * i] = src[i] ^ flip;
        dst[2 * i + 1] = 0;
    }
}

const qk_tile_row qk_tile_row_avx2 = {.isa = QK_ISA_avx2,
                                      .unit = 2,
                                      .lanes = LANES,
                                      .max_cols = LANES * VECTORS,
                                      .ends = true,
                                      .tiles = tiles,
                                      .copy = copy,
                                      .bytes = &qk_tile_bytes_row_avx2};
