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

/* Images of up to four channels: bytes of ni rows side by side, row j of dst right behind row j-1. Four bytes per j come out of
 * two interleavings; a shuffle closes the gaps, and what a store of sixteen bytes writes beyond them is the place of later j.
 * Returns how many j are done: some are left for others, so that nothing is written behind the last. */
static size_t interleave_bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i) {
    char at[16];
    for (size_t k = 0; k < 16; k++)
        at[k] = k < 4 * ni ? (char)(k / ni * 4 + k % ni) : -1;
    const __m128i close_up = _mm_loadu_si128((const __m128i *)at);
    size_t j = 0;
    for (; j + 32 <= nj; j += 16) {
        __m128i row[4];
        QK_FOUR_TIMES(k,
                      row[k] = k < ni ? _mm_loadu_si128((const __m128i *)(src + k * src_i + j)) : _mm_setzero_si128());
        __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]), low23 = _mm_unpacklo_epi8(row[2], row[3]);
        __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]), high23 = _mm_unpackhi_epi8(row[2], row[3]);
        __m128i quads[4] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                            _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
        QK_FOUR_TIMES(k, _mm_storeu_si128((__m128i *)(dst + (j + 4 * k) * ni), _mm_shuffle_epi8(quads[k], close_up)));
    }
    return j;
}

/* The other way: src row i right behind row i-1, nj bytes each. Returns how many i are done. */
static size_t part_bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t dst_j) {
    char at[16];
    for (size_t k = 0; k < 16; k++) /* four i: first all j = 0, then all j = 1, … */
        at[k] = k / 4 < nj ? (char)(k % 4 * nj + k / 4) : -1;
    const __m128i apart = _mm_loadu_si128((const __m128i *)at);
    size_t i = 0;
    for (; i + 32 <= ni; i += 16) {
        __m128i quads[4];
        QK_FOUR_TIMES(k,
                      quads[k] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(src + (i + 4 * k) * nj)), apart));
        __m128i low01 = _mm_unpacklo_epi32(quads[0], quads[1]), low23 = _mm_unpacklo_epi32(quads[2], quads[3]);
        __m128i high01 = _mm_unpackhi_epi32(quads[0], quads[1]), high23 = _mm_unpackhi_epi32(quads[2], quads[3]);
        __m128i row[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                          _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
        QK_FOUR_TIMES(k, if (k < nj) _mm_storeu_si128((__m128i *)(dst + k * dst_j + i), row[k]));
    }
    return i;
}

static void tile1(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    if (ni <= 4 && dst_j == (ptrdiff_t)ni) {
        size_t done = interleave_bytes(src, dst, ni, nj, src_i);
        src += done;
        dst += done * ni;
        nj -= done;
    } else if (nj <= 4 && src_i == (ptrdiff_t)nj) {
        size_t done = part_bytes(src, dst, ni, nj, dst_j);
        src += done * nj;
        dst += done;
        ni -= done;
    }
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
