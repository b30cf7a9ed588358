#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/vec256.h"

#define VEC           __m256i
#define LANES         ((size_t)8)
#define VECTORS       2
#define VLOAD(p)      _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VSTORE(p, v)  _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define FLIPS         1
#define VFLIP(x)      _mm256_xor_si256(x, flip)
#define VSPREAD(p)    _mm256_set1_epi32(qk_dword(p))
#define ADDS          1
#define END_BYTES     1
#define END_FLOAT(s)  _mm256_cvtepi32_ps(s)
/* No pair of products saturates: see bytes in conv_tile_row.h. */
#define VDOT(s, x, w) _mm256_add_epi32(s, add_pairs(_mm256_maddubs_epi16(x, w)))

static const int16_t ones[16] __attribute__((aligned(32))) = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Twelve sums, two vectors of weights, a spread dword and two products are all the registers: the ones stay in memory. Left to
 * itself, the compiler moves a sum there instead. */
QK_INLINE __m256i add_pairs(__m256i pairs) {
    __asm__("vpmaddwd %1, %0, %0" : "+x"(pairs) : "m"(ones));
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
                                            .max_rows = MAX_ROWS,
                                            .flips = true,
                                            .ends = true,
                                            .tile = tile,
                                            .copy = copy};
