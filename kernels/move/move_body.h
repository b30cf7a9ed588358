/* The vector levels of the family, written once: move_avx2.c has sixteen registers for it, move_avx512.c twice as many. */
#include "kernels/move/move_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* A cell is n columns of 2n rows, n elements being sixteen bytes; a block is four cells wide and two high, so that it reads and
 * writes whole lines of 64 bytes: 64/bytes rows and columns. */
enum { LINE = 64, PAGE = 4096, PATCH_BYTES = 512 };

/* Row addresses are stepped, not computed: of thirty-two sums, kept for the next cell, most would be kept in memory. */
#define STEP(p, by)                                                                                                    \
    p += by;                                                                                                           \
    __asm__("" : "+r"(p))

QK_INLINE __m256i low(int bytes, __m256i a, __m256i b) {
    return bytes == 1   ? _mm256_unpacklo_epi8(a, b)
           : bytes == 2 ? _mm256_unpacklo_epi16(a, b)
           : bytes == 4 ? _mm256_unpacklo_epi32(a, b)
                        : _mm256_unpacklo_epi64(a, b);
}

QK_INLINE __m256i high(int bytes, __m256i a, __m256i b) {
    return bytes == 1   ? _mm256_unpackhi_epi8(a, b)
           : bytes == 2 ? _mm256_unpackhi_epi16(a, b)
           : bytes == 4 ? _mm256_unpackhi_epi32(a, b)
                        : _mm256_unpackhi_epi64(a, b);
}

/* Sixteen bytes of two rows. Shuffles are what bytes wait for; a blend is done elsewhere. */
QK_INLINE __m256i two_rows(int bytes, const char *p, const char *q) {
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)q);
    const __m256i first = _mm256_castsi128_si256(a);
    return bytes == 1 ? _mm256_blend_epi32(first, _mm256_broadcastsi128_si256(b), 0xf0)
                      : _mm256_inserti128_si256(first, b, 1);
}

/* Interleaving rows k and k + n/2 moves one bit of the row number into the column number: after log2(n) rounds, the square in
 * each half of the registers is transposed. */
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

/* Rows that are not there are zeros; only `cols` columns are stored. Not `wide`: n rows, sixteen bytes of each column. Every second
 * row, the line of another row is fetched, from `fetch` on. */
typedef enum fetch_kind { FETCH_NONE, FETCH_L1, FETCH_L2 } fetch_kind;

#define LOAD(k)                                                                                                        \
    if ((k) < rows)                                                                                                    \
        a[k] =                                                                                                         \
            wide ? two_rows(bytes, p, q) : _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));  \
    STEP(p, src_i);                                                                                                    \
    if (wide) {                                                                                                        \
        STEP(q, src_i);                                                                                                \
    }                                                                                                                  \
    if ((k) % 2 == 0 && kind == FETCH_L1) _mm_prefetch(fetch, _MM_HINT_T0);                                            \
    if ((k) % 2 == 0 && kind == FETCH_L2) _mm_prefetch(fetch, _MM_HINT_T1);                                            \
    if ((k) % 2 == 0 && kind != FETCH_NONE) {                                                                          \
        STEP(fetch, src_i);                                                                                            \
    }
#define STORE(k)                                                                                                       \
    if ((k) < cols) {                                                                                                  \
        if (wide)                                                                                                      \
            _mm256_storeu_si256((__m256i *)(void *)dst, a[k]);                                                         \
        else                                                                                                           \
            _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(a[k]));                                    \
    }                                                                                                                  \
    STEP(dst, dst_j)

QK_INLINE void cell(int bytes, bool wide, size_t rows, size_t cols, const char *src, char *dst, ptrdiff_t src_i,
                    ptrdiff_t dst_j, fetch_kind kind, const char *fetch) {
    const int n = 16 / bytes;
    __m256i a[16], b[16];
    const char *p = src, *q = src + n * src_i;
    QK_FOUR_TIMES(k, a[k] = a[k + 4] = a[k + 8] = a[k + 12] = _mm256_setzero_si256());
    if (bytes == 8) {
        LOAD(0);
        LOAD(1);
        b[0] = low(8, a[0], a[1]);
        a[1] = high(8, a[0], a[1]);
        a[0] = b[0];
        STORE(0);
        STORE(1);
        return;
    }
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
        QK_FOUR_TIMES(k, a[k] = b[k]; a[k + 4] = b[k + 4]);
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

/* `ahead`: from a row's line to the one to be fetched. */
QK_INLINE void block(int bytes, const char *src, char *dst, ptrdiff_t src_i, ptrdiff_t dst_j, fetch_kind kind,
                     ptrdiff_t ahead) {
    const int n = 16 / bytes;
    const size_t all = (size_t)n;
    const char *fetch = src + ahead;
    for (int c = 0; c < 4; c++, src += 16, dst += n * dst_j, fetch += n * src_i) {
        cell(bytes, true, all, all, src, dst, src_i, dst_j, kind, fetch);
        cell(bytes, true, all, all, src + 2 * n * src_i, dst + 32, src_i, dst_j, kind, fetch + n / 2 * src_i);
    }
}

QK_INLINE void copy_few(char *dst, const char *src, size_t n) {
    if (n >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    } else if (n >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + n - 8, src + n - 8, 8);
    } else if (n >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + n - 4, src + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            dst[i] = src[i];
    }
}

/* What fills no cell and overlaps no other that does, by way of buffers. */
QK_INLINE void scraps(int bytes, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, n = 16 / size;
    _Alignas(32) char in[32 * 16] = {0}, out[16 * 32];
    for (size_t j = 0; j < nj; j += n)
        for (size_t i = 0; i < ni; i += 2 * n) {
            const size_t rows = ni - i < 2 * n ? ni - i : 2 * n, cols = nj - j < n ? nj - j : n;
            for (size_t k = 0; k < rows; k++)
                copy_few(in + 16 * k, src + (ptrdiff_t)(i + k) * src_i + j * size, cols * size);
            cell(bytes, true, n, n, in, out, 16, 32, FETCH_NONE, NULL);
            for (size_t k = 0; k < cols; k++)
                copy_few(dst + (ptrdiff_t)(j + k) * dst_j + i * size, out + 32 * k, rows * size);
        }
}

/* Three rows of 4 bytes that become triples, eight columns at a time: how many. Each row is put in the order 0 3 6 1 4 7 2 5, turned to
 * where its elements are in three registers of triples. */
QK_INLINE size_t triples(const char *src, char *dst, size_t nj, ptrdiff_t src_i) {
    const __m256i first = _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5), second = _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2);
    const __m256i third = _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7);
    size_t j = 0;
    for (; nj - j >= 8; j += 8, src += 32, dst += 96) {
        const char *b_row = src + src_i, *c_row = b_row + src_i;
        const __m256i a = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(const void *)src), first);
        const __m256i b = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(const void *)b_row), second);
        const __m256i c = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(const void *)c_row), third);
        __m256i *to = (__m256i *)(void *)dst;
        _mm256_storeu_si256(to, _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x92), c, 0x24));
        _mm256_storeu_si256(to + 1, _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x24), c, 0x49));
        _mm256_storeu_si256(to + 2, _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x49), c, 0x92));
    }
    return j;
}

/* Fewer rows than a cell has columns, or fewer columns than that. Where dst's rows follow each other, what a store of sixteen bytes
 * writes beyond the row is the place of later ones; where src's do, what a load reads beyond is theirs. */
QK_INLINE void narrow(int bytes, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, n = 16 / size;
    if (ni < n && dst_j == (ptrdiff_t)(ni * size)) {
        size_t j = bytes == 4 && ni == 3 ? triples(src, dst, nj, src_i) : 0;
        for (; nj - j >= n && (nj - j - n + 1) * ni * size >= 16; j += n)
            cell(bytes, false, ni, n, src + j * size, dst + (ptrdiff_t)j * dst_j, src_i, dst_j, FETCH_NONE, NULL);
        src += j * size;
        dst += (ptrdiff_t)j * dst_j;
        nj -= j;
    } else if (nj < n && src_i == (ptrdiff_t)(nj * size)) {
        size_t i = 0;
        for (; ni - i >= 2 * n && (ni - i - 2 * n + 1) * nj * size >= 16; i += 2 * n)
            cell(bytes, true, n, nj, src + (ptrdiff_t)i * src_i, dst + i * size, src_i, dst_j, FETCH_NONE, NULL);
        src += (ptrdiff_t)i * src_i;
        dst += i * size;
        ni -= i;
    }
    scraps(bytes, src, dst, ni, nj, src_i, dst_j);
}

/* Columns from `j` on, of 2n or n rows; the last cell may overlap the one before. */
QK_INLINE void columns(int bytes, bool wide, const char *src, char *dst, size_t j, size_t nj, ptrdiff_t src_i,
                       ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, n = 16 / size;
    while (j < nj) {
        j = nj - j < n ? nj - n : j;
        cell(bytes, wide, n, n, src + j * size, dst + (ptrdiff_t)j * dst_j, src_i, dst_j, FETCH_NONE, NULL);
        j += n;
    }
}

/* Columns from `j` on, of rows from `i` on; both reach at least a cell's width. */
QK_INLINE void rest(int bytes, const char *src, char *dst, size_t i, size_t ni, size_t j, size_t nj, ptrdiff_t src_i,
                    ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, n = 16 / size;
    while (i < ni) {
        const bool wide = ni - i > n && ni >= 2 * n;
        const size_t height = wide ? 2 * n : n;
        i = ni - i < height ? ni - height : i;
        const char *s = src + (ptrdiff_t)i * src_i;
        if (wide)
            columns(bytes, true, s, dst + i * size, j, nj, src_i, dst_j);
        else
            columns(bytes, false, s, dst + i * size, j, nj, src_i, dst_j);
        i += height;
    }
}

/* Rows whose lines share a set of the first cache would push each other out before a block is through: they are copied first. */
QK_INLINE bool is_crowded(int bytes, ptrdiff_t src_i) {
    return src_i % LINE == 0 && src_i / LINE % (bytes == 1 ? 16 : bytes == 2 ? 32 : 64) == 0;
}

QK_INLINE void copy_line(char *dst, const char *src) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)src);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + 32));
    _mm256_store_si256((__m256i *)(void *)dst, a);
    _mm256_store_si256((__m256i *)(void *)(dst + 32), b);
}

static __attribute__((noinline)) void copy_lines(char *lines, const char *src, size_t n, ptrdiff_t src_i,
                                                 ptrdiff_t ahead) {
    for (size_t k = 0; k < n; k++, src += src_i) {
        _mm_prefetch(src + ahead, _MM_HINT_T1);
        copy_line(lines + LINE * k, src);
    }
}

/* Through the caches: whole columns of blocks, so that lines of dst are written one after the other. What is `ahead` of a row's line
 * is fetched. */
QK_INLINE void tile(int bytes, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j,
                    fetch_kind kind, ptrdiff_t ahead) {
    const size_t size = (size_t)bytes, n = 16 / size, side = LINE / size;
    if (ni < n || nj < n) {
        narrow(bytes, src, dst, ni, nj, src_i, dst_j);
        return;
    }
    const size_t i_whole = ni / side * side, j_whole = nj / side * side;
    const bool crowded = is_crowded(bytes, src_i);
    _Alignas(64) char lines[LINE * LINE];
    for (size_t j = 0; j < j_whole; j += side)
        for (size_t i = 0; i < i_whole; i += side) {
            const char *s = src + (ptrdiff_t)i * src_i + j * size;
            char *d = dst + (ptrdiff_t)j * dst_j + i * size;
            if (crowded) {
                copy_lines(lines, s, side, src_i, ahead);
                block(bytes, lines, d, LINE, dst_j, FETCH_NONE, 0);
            } else if (kind == FETCH_L1) {
                block(bytes, s, d, src_i, dst_j, FETCH_L1, ahead);
            } else if (kind == FETCH_L2) {
                block(bytes, s, d, src_i, dst_j, FETCH_L2, ahead);
            } else {
                block(bytes, s, d, src_i, dst_j, FETCH_NONE, 0);
            }
        }
    if (j_whole < nj) rest(bytes, src, dst, 0, i_whole, j_whole, nj, src_i, dst_j);
    if (i_whole < ni) rest(bytes, src, dst, i_whole, ni, 0, nj, src_i, dst_j);
}

QK_INLINE void stream_line(char *dst, const char *src) {
    _mm256_stream_si256((__m256i *)(void *)dst, _mm256_load_si256((const __m256i *)(const void *)src));
    _mm256_stream_si256((__m256i *)(void *)(dst + 32), _mm256_load_si256((const __m256i *)(const void *)(src + 32)));
}

/* Past the caches, rows of dst beginning with whole lines: a strip of a line's height at a time, read from left to right, each
 * block through a buffer, since what combines half lines has room for few of them. */
QK_INLINE void stream_strips(int bytes, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i,
                             ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, side = LINE / size;
    const bool crowded = is_crowded(bytes, src_i);
    _Alignas(64) char lines[LINE * LINE], taken[LINE / 1 * LINE];
    /* the strip below, where that is soon; else further along the rows */
    const ptrdiff_t ahead = nj * LINE <= (64 << 10) ? (ptrdiff_t)side * src_i : 2 * LINE;
    for (size_t i = 0; i < ni; i += side)
        for (size_t j = 0; j < nj; j += side) {
            const size_t at = nj - j < side ? nj - side : j;
            const char *s = src + (ptrdiff_t)i * src_i + at * size;
            if (crowded) {
                copy_lines(taken, s, side, src_i, ahead);
                block(bytes, taken, lines, LINE, LINE, FETCH_NONE, 0);
            } else {
                block(bytes, s, lines, src_i, LINE, FETCH_L2, ahead);
            }
            char *d = dst + (ptrdiff_t)j * dst_j + i * size;
            for (size_t k = j - at; k < side; k++, d += dst_j)
                stream_line(d, lines + LINE * k);
        }
}

typedef void plain_fn(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j,
                      fetch_kind kind, ptrdiff_t ahead);

/* Past the caches by way of a buffer: where rows of dst do not begin at lines, and where each row of both sides is on a page of its
 * own, of which more than a line should then be used. */
QK_INLINE void stream_patches(int bytes, plain_fn *plain, const char *src, char *dst, size_t ni, size_t nj,
                              ptrdiff_t src_i, ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, n = 16 / size;
    _Alignas(64) char buffer[32 << 10];
    const bool joined = dst_j == (ptrdiff_t)(ni * size) && ni * size * n <= sizeof buffer;
    const size_t first = joined ? ni : (PATCH_BYTES + (LINE - (uintptr_t)dst % LINE) % LINE) / size;
    for (size_t i = 0; i < ni;) {
        const size_t some = i == 0 ? first : PATCH_BYTES / size, ti = ni - i < some ? ni - i : some;
        const size_t most = sizeof buffer / (ti * size), width = most >= nj ? nj : most / n * n;
        for (size_t j = 0; j < nj; j += width) {
            const size_t tj = nj - j < width ? nj - j : width;
            char *d = dst + (ptrdiff_t)j * dst_j + i * size;
            plain(src + (ptrdiff_t)i * src_i + j * size, buffer, ti, tj, src_i, (ptrdiff_t)(ti * size), FETCH_L2,
                  (ptrdiff_t)(width * size < 2 * LINE ? 2 * LINE : width * size));
            if (joined)
                qk_move_stream_row(buffer, d, ti * tj * size);
            else
                for (size_t k = 0; k < tj; k++)
                    qk_move_stream_row(buffer + k * ti * size, d + (ptrdiff_t)k * dst_j, ti * size);
        }
        i += ti;
    }
}

/* Past the caches. */
QK_INLINE void tile_past(int bytes, plain_fn *plain, const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i,
                         ptrdiff_t dst_j) {
    const size_t size = (size_t)bytes, side = LINE / size;
    const size_t head = (LINE - (uintptr_t)dst % LINE) % LINE / size;
    const bool lines = dst_j % LINE == 0 && (uintptr_t)dst % size == 0 && ni >= head + side && nj >= side;
    if (!lines) {
        stream_patches(bytes, plain, src, dst, ni, nj, src_i, dst_j);
        return;
    }
    const size_t whole = (ni - head) / side * side, tail = head + whole;
    if (head) plain(src, dst, head, nj, src_i, dst_j, FETCH_NONE, 0);
    stream_strips(bytes, src + (ptrdiff_t)head * src_i, dst + head * size, whole, nj, src_i, dst_j);
    if (tail < ni) plain(src + (ptrdiff_t)tail * src_i, dst + tail * size, ni - tail, nj, src_i, dst_j, FETCH_NONE, 0);
}

/* ---- images of few channels ---- */

/* Images of up to four channels: bytes of ni rows side by side, row j of dst right behind row j-1. Four bytes per j come out of
 * two interleavings; a shuffle closes the gaps, and what a store of sixteen bytes writes beyond them is the place of later j.
 * Returns how many j are done: some are left for others, so that nothing is written behind the last. */
QK_INLINE size_t interleave_bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i) {
    char at[16];
    for (size_t k = 0; k < 16; k++)
        at[k] = k < 4 * ni ? (char)(k / ni * 4 + k % ni) : -1;
    const __m128i close_up = _mm_loadu_si128((const __m128i *)(const void *)at);
    size_t j = 0;
    for (; j + 32 <= nj; j += 16) {
        __m128i row[4];
        QK_FOUR_TIMES(k, row[k] = k < ni ? _mm_loadu_si128((const __m128i *)(const void *)(src + k * src_i + j))
                                         : _mm_setzero_si128());
        __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]), low23 = _mm_unpacklo_epi8(row[2], row[3]);
        __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]), high23 = _mm_unpackhi_epi8(row[2], row[3]);
        __m128i quads[4] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                            _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
        QK_FOUR_TIMES(
            k, _mm_storeu_si128((__m128i *)(void *)(dst + (j + 4 * k) * ni), _mm_shuffle_epi8(quads[k], close_up)));
    }
    return j;
}

/* The other way: src row i right behind row i-1, nj bytes each. Returns how many i are done. */
QK_INLINE size_t part_bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t dst_j) {
    char at[16];
    for (size_t k = 0; k < 16; k++) /* four i: first all j = 0, then all j = 1, … */
        at[k] = k / 4 < nj ? (char)(k % 4 * nj + k / 4) : -1;
    const __m128i apart = _mm_loadu_si128((const __m128i *)(const void *)at);
    size_t i = 0;
    for (; i + 32 <= ni; i += 16) {
        __m128i quads[4];
        QK_FOUR_TIMES(k, quads[k] = _mm_shuffle_epi8(
                             _mm_loadu_si128((const __m128i *)(const void *)(src + (i + 4 * k) * nj)), apart));
        __m128i low01 = _mm_unpacklo_epi32(quads[0], quads[1]), low23 = _mm_unpacklo_epi32(quads[2], quads[3]);
        __m128i high01 = _mm_unpackhi_epi32(quads[0], quads[1]), high23 = _mm_unpackhi_epi32(quads[2], quads[3]);
        __m128i row[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                          _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
        QK_FOUR_TIMES(k, if (k < nj) _mm_storeu_si128((__m128i *)(void *)(dst + k * dst_j + i), row[k]));
    }
    return i;
}

/* Returns true when all is done. */
QK_INLINE bool few_bytes(const char **src, char **dst, size_t *ni, size_t *nj, ptrdiff_t src_i, ptrdiff_t dst_j) {
    if (*ni <= 4 && dst_j == (ptrdiff_t)*ni) {
        const size_t done = interleave_bytes(*src, *dst, *ni, *nj, src_i);
        *src += done;
        *dst += done * *ni;
        *nj -= done;
    } else if (*nj <= 4 && src_i == (ptrdiff_t)*nj) {
        const size_t done = part_bytes(*src, *dst, *ni, *nj, dst_j);
        *src += done * *nj;
        *dst += done;
        *ni -= done;
    }
    return *ni == 0 || *nj == 0;
}

#define TILE(bytes)                                                                                                    \
    static                                                                                                             \
        __attribute__((noinline)) void plain##bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, \
                                                    ptrdiff_t dst_j, fetch_kind kind, ptrdiff_t ahead) {               \
        if (bytes == 1 && few_bytes(&src, &dst, &ni, &nj, src_i, dst_j)) return;                                       \
        tile(bytes, src, dst, ni, nj, src_i, dst_j, kind, ahead);                                                      \
    }                                                                                                                  \
    static void tile##bytes(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j,        \
                            qk_move_way way) {                                                                         \
        if (way == QK_MOVE_PAST)                                                                                       \
            tile_past(bytes, plain##bytes, src, dst, ni, nj, src_i, dst_j);                                            \
        else                                                                                                           \
            plain##bytes(src, dst, ni, nj, src_i, dst_j, way == QK_MOVE_FAR ? FETCH_L1 : FETCH_NONE,                   \
                         ni <= 256 ? LINE : 64 / bytes * src_i); /* further along few rows, else the rows below */     \
    }
TILE(1)
TILE(2)
TILE(4)
TILE(8)

/* ---- rows ---- */

#define MOVE32(d, s) _mm256_storeu_si256((__m256i *)(void *)(d), _mm256_loadu_si256((const __m256i *)(const void *)(s)))

/* n bytes; a constant of the caller where it is a usual one. */
QK_INLINE void rows_of(const char *src, char *dst, size_t n, size_t n_rows, ptrdiff_t src_j, ptrdiff_t dst_j) {
    for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j) {
        size_t i = 0;
        for (; i + 128 <= n; i += 128) {
            MOVE32(dst + i, src + i);
            MOVE32(dst + i + 32, src + i + 32);
            MOVE32(dst + i + 64, src + i + 64);
            MOVE32(dst + i + 96, src + i + 96);
        }
        for (; i + 32 <= n; i += 32)
            MOVE32(dst + i, src + i);
        if (i < n) MOVE32(dst + n - 32, src + n - 32);
    }
}

static void rows(const char *src, char *dst, size_t n, size_t n_rows, ptrdiff_t src_j, ptrdiff_t dst_j) {
    if (n == 32)
        rows_of(src, dst, 32, n_rows, src_j, dst_j);
    else if (n == 64)
        rows_of(src, dst, 64, n_rows, src_j, dst_j);
    else if (n == 96)
        rows_of(src, dst, 96, n_rows, src_j, dst_j);
    else if (n == 128)
        rows_of(src, dst, 128, n_rows, src_j, dst_j);
    else if (n == 256)
        rows_of(src, dst, 256, n_rows, src_j, dst_j);
    else if (n >= 32 && n <= 2048)
        rows_of(src, dst, n, n_rows, src_j, dst_j);
    else if (n > 2048)
        for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j)
            memcpy(dst, src, n);
    else if (n == 16)
        for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j)
            memcpy(dst, src, 16);
    else if (n == 8)
        for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j)
            memcpy(dst, src, 8);
    else if (n == 4)
        for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j)
            memcpy(dst, src, 4);
    else
        for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j)
            copy_few(dst, src, n);
}
