#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec256.h"

#define VEC                  __m256i
#define LANES                ((size_t)8)
#define VECTORS              2
#define VLOAD(p)             _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VSTORE(p, v)         _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define FLIPS                1
#define VFLIP(x)             _mm256_xor_si256(x, flip)
#define VSPREAD(p)           _mm256_set1_epi32(qk_dword(p))
#define ADDS                 1
#define END_BYTES            1
#define END_FLOAT(s)         _mm256_cvtepi32_ps(s)
/* No pair of products saturates: see bytes in conv_tile_row.h. Twelve sums, a vector of weights, a spread dword, its products and the ones
 * are all the registers: the second vector of weights stays in memory. Left to itself, the compiler moves sums there instead. */
#define VDOT(s, x, w)        _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)))
#define SECOND               const int32_t *
#define VLOAD_SECOND(p)      (p)
#define VDOT_SECOND(s, x, p) _mm256_add_epi32(s, _mm256_madd_epi16(products_at(x, p), _mm256_set1_epi16(1)))

QK_INLINE __m256i products_at(__m256i x, const int32_t *weights) {
    __m256i pairs;
    __asm__("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "m"(*(const int32_t(*)[8])weights));
    return pairs;
}
#include "kernels/conv/conv_tile_body.h"

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    const __m256i f = _mm256_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 32; i += 32)
        VSTORE(dst + i, _mm256_xor_si256(VLOAD(src + i), f));
    for (; i < n; i++)
        dst[i] = src[i] ^ flip;
}

const qk_tile_row qk_tile_bytes_row_avx2 = {.isa = QK_ISA_avx2,
                                            .unit = 4,
                                            .lanes = LANES,
                                            .max_cols = LANES * VECTORS,
                                            .flips = true,
                                            .ends = true,
                                            .tiles = tiles,
                                            .copy = copy};
