#include "kernels/move/move_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* Squares of 16 x 16, 8 x 8 or 4 x 4 elements, a row per 128-bit register. Interleaving rows k and k + n/2 moves one bit of the
 * row number into the column number: after log2(n) rounds the square is transposed. */
QK_INLINE __m128i low(int bytes, __m128i a, __m128i b) {
    return bytes == 1 ? _mm_unpacklo_epi8(a, b) : bytes == 2 ? _mm_unpacklo_epi16(a, b) : _mm_unpacklo_epi32(a, b);
}

QK_INLINE __m128i high(int bytes, __m128i a, __m128i b) {
    return bytes == 1 ? _mm_unpackhi_epi8(a, b) : bytes == 2 ? _mm_unpackhi_epi16(a, b) : _mm_unpackhi_epi32(a, b);
}

/* A round over n rows: b[2k], b[2k+1] from a[k], a[k + n/2]. */
#define PAIR(n, k, a, b)                                                                                               \
    b[2 * (k)] = low(16 / (n), a[k], a[(k) + (n) / 2]);                                                                \
    b[2 * (k) + 1] = high(16 / (n), a[k], a[(k) + (n) / 2])
#define ROUND4(a, b)                                                                                                   \
    PAIR(4, 0, a, b);                                                                                                  \
    PAIR(4, 1, a, b)
#define ROUND8(a, b) QK_FOUR_TIMES(k, PAIR(8, k, a, b))
#define ROUND16(a, b)                                                                                                  \
    QK_FOUR_TIMES(k, PAIR(16, k, a, b));                                                                               \
    QK_FOUR_TIMES(k, PAIR(16, k + 4, a, b))

#define LOAD(k)  a[k] = _mm_loadu_si128((const __m128i *)(src + (k)*src_i))
#define STORE(k) _mm_storeu_si128((__m128i *)(dst + (k)*dst_j), a[k])

QK_INLINE void square(int bytes, const char *src, char *dst, ptrdiff_t src_i, ptrdiff_t dst_j) {
    __m128i a[16], b[16];
    QK_FOUR_TIMES(k, LOAD(k));
    if (bytes <= 2) QK_FOUR_TIMES(k, LOAD(k + 4));
    if (bytes == 1) {
        QK_FOUR_TIMES(k, LOAD(k + 8));
        QK_FOUR_TIMES(k, LOAD(k + 12));
        ROUND16(a, b);
        ROUND16(b, a);
        ROUND16(a, b);
        ROUND16(b, a);
    } else if (bytes == 2) {
        ROUND8(a, b);
        ROUND8(b, a);
        ROUND8(a, b);
        QK_FOUR_TIMES(k, a[k] = b[k]);
        QK_FOUR_TIMES(k, a[k + 4] = b[k + 4]);
    } else {
        ROUND4(a, b);
        ROUND4(b, a);
    }
    QK_FOUR_TIMES(k, STORE(k));
    if (bytes <= 2) QK_FOUR_TIMES(k, STORE(k + 4));
    if (bytes == 1) {
        QK_FOUR_TIMES(k, STORE(k + 8));
        QK_FOUR_TIMES(k, STORE(k + 12));
    }
}

/* A strip of up to a cache line along i at a time, down all j: lines of dst are written whole. */
QK_INLINE void tile(int bytes, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    size_t log = bytes == 1 ? 0 : bytes == 2 ? 1 : 2, n = 16 / (size_t)bytes, size = (size_t)bytes;
    size_t i_whole = ni / n * n, j_whole = nj / n * n;
    for (size_t strip = 0; strip < i_whole; strip += 4 * n) {
        size_t end = i_whole - strip < 4 * n ? i_whole : strip + 4 * n;
        for (size_t j = 0; j < j_whole; j += n)
            for (size_t i = strip; i < end; i += n)
                square(bytes, src + (ptrdiff_t)i * src_i + j * size, dst + (ptrdiff_t)j * dst_j + i * size, src_i,
                       dst_j);
    }
    qk_move_tile_fn *rest = qk_move_tiles_ref.of_bytes[log];
    if (j_whole < nj) rest(src + j_whole * size, dst + (ptrdiff_t)j_whole * dst_j, i_whole, nj - j_whole, src_i, dst_j);
    if (i_whole < ni) rest(src + (ptrdiff_t)i_whole * src_i, dst + i_whole * size, ni - i_whole, nj, src_i, dst_j);
}

static void tile1(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    tile(1, src, dst, ni, nj, src_i, dst_j);
}
static void tile2(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    tile(2, src, dst, ni, nj, src_i, dst_j);
}
static void tile4(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    tile(4, src, dst, ni, nj, src_i, dst_j);
}
static void tile8(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    qk_move_tiles_ref.of_bytes[3](src, dst, ni, nj, src_i, dst_j);
}

const qk_move_tiles qk_move_tiles_avx2 = {{tile1, tile2, tile4, tile8}, QK_ISA_avx2};
