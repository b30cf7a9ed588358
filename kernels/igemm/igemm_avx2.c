#include "kernels/igemm/igemm_end256_body.h"

/* ---- integers: Winograd's inner product -----------------------------------------------------------------------------------
 *
 *     a0 w0 + a1 w1 = (a0 + w1)(a1 + w0) - a0 a1 - w0 w1
 *
 * A pair of products costs one multiplication; what is taken off belongs to a row or to a column and is known before. The factors have ten
 * bits, so that vpmaddwd is exact on them, and four products per dword take one of it and three additions, where words would take two
 * and two: additions run on twice as many pipes. All sums are modulo 2^32, as the result is. */

/* A part of the rows' k: of four k, a dword (a0, a2) and one (a1, a3). The weights of a block are 16 KiB and stay in L1, which the rows pass
 * through; they are 24 KiB. */
enum { PART = QK_IGEMM_PART, FOUR_ROWS = 4, SIX_ROWS = 6 };

/* Dwords of the rows: `odd` from the first even one of a row to its first odd one, twice as many to the next row. */
typedef struct woven {
    const int32_t *dwords;
    size_t odd;
    const int32_t *pairs; /* Σ a0 a1 of each row */
} woven;

/* ---- or bytes, where weights are certified (igemm_row.h): a pair of products cannot saturate -------------------------------- */

#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)

/* The first n of 32 bytes, flipped, and zeros. */
QK_INLINE __m256i load_bytes(const uint8_t *a, size_t n, uint8_t flip) {
    const __m256i sign = _mm256_set1_epi8((char)flip);
    if (n >= 32) return _mm256_xor_si256(LOAD(a), sign);
    /* dwords, and what is less than one */
    const __m256i there = qv_lanes(n / 4), here = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const uint32_t rest = n % 4, flips = 0x01010101u * flip & ((1u << 8 * rest) - 1);
    const __m256i x =
        _mm256_and_si256(there, _mm256_xor_si256(_mm256_maskload_epi32((const int *)(const void *)a, there), sign));
    const int32_t last = rest == 0 ? 0 : qk_igemm_load_tail(a + n - rest, rest) ^ (int32_t)flips;
    return _mm256_blendv_epi8(x, _mm256_set1_epi32(last), _mm256_cmpeq_epi32(here, _mm256_set1_epi32((int)(n / 4))));
}

/* n bytes in a panel's order. */
static void put_in_order(const uint8_t *a, size_t n, uint8_t flip, const uint8_t *order, uint8_t *out) {
    for (size_t k = 0; k < n; k += 32)
        STORE(out + k, _mm256_shuffle_epi8(load_bytes(a + k, n - k, flip), LOAD(order + k)));
}

/* n bytes and zeros; returns Σ a0 a1 of the pairs. */
static int32_t weave(const uint8_t *a, size_t n, uint8_t flip, int32_t *out, size_t odd_at) {
    const __m256i low = _mm256_set1_epi16(0xff);
    __m256i sum = _mm256_setzero_si256();
    for (size_t k = 0; k < n; k += 32) {
        const __m256i x = load_bytes(a + k, n - k, flip);
        const __m256i even = _mm256_and_si256(x, low), odd = _mm256_srli_epi16(x, 8);
        STORE(out + k / 4, even);
        STORE(out + odd_at + k / 4, odd);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, odd));
    }
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* Four rows' results of a block from column col of the panel on; `more` as in rounded. */
QK_INLINE void bytes_row(const __m256i *s, const panel_end *e, const size_t col, char *to, const bool more) {
    const __m256i q0 = rounded(s[0], e, col, more), q1 = rounded(s[1], e, col + LANES, more);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(q0, q1), 0xd8);
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    const __m128i bytes = e->is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
    if (e->n_cols - col >= BLOCK) {
        _mm_storeu_si128((__m128i *)(void *)to, bytes);
        return;
    }
    char some[BLOCK];
    _mm_storeu_si128((__m128i *)(void *)some, bytes);
    for (size_t c = 0; c < e->n_cols - col; c++)
        to[c] = some[c];
}

/* Where a tile's sums begin: a row per row, or (stride 0) one for all. */
typedef struct start {
    const int32_t *sums;
    size_t stride;
} start;

/* Left to itself, the compiler takes weights from memory anew for each row, and puts sums there. */
#define IN_REGISTER(v)  __asm__ volatile("" : "+x"(v))
#define ADD(sum, terms) __asm__ volatile("vpaddd %1, %0, %0" : "+x"(sum) : "x"(terms))

#define EACH_ROW(...)   QK_SIX_TIMES(r, if (r < mr) __VA_ARGS__)

QK_INLINE void finish(__m256i (*s)[2], const panel_end *e, size_t col, char *to, const int mr) {
    const ptrdiff_t stride = e->stride_bytes;
    switch (e->what) {
    case SUMS:
        EACH_ROW({
            STORE(to + r * stride, s[r][0]);
            STORE(to + r * stride + 32, s[r][1]);
        });
        break;
    case BARE_BYTES: EACH_ROW(bytes_row(s[r], e, col, to + r * stride, false)); break;
    case BYTES: EACH_ROW(bytes_row(s[r], e, col, to + r * stride, true)); break;
    case BARE_FLOATS:
    case FLOATS:
        EACH_ROW({
            const __m256 v[2] = {_mm256_cvtepi32_ps(s[r][0]), _mm256_cvtepi32_ps(s[r][1])};
            floats_row(v, e, col, to + r * stride);
        });
        break;
    }
}

/* Up to four rows and a block: start - pairs of the row + the products of n4 times four k, to their end. */
QK_INLINE void tile(const woven *a, size_t row, size_t n4, const int16_t *b, const start *from, const panel_end *e,
                    size_t col, char *to, const int mr) {
    const size_t step = 2 * a->odd;
    const int32_t *even = a->dwords + row * step, *odd = even + a->odd;
    __m256i s[SIX_ROWS][2];
    EACH_ROW({
        const __m256i pair = _mm256_set1_epi32(a->pairs[row + r]);
        s[r][0] = _mm256_sub_epi32(LOAD(from->sums + r * from->stride), pair);
        s[r][1] = _mm256_sub_epi32(LOAD(from->sums + r * from->stride + LANES), pair);
    });
    for (size_t k = 0; k < n4; k++, b += 4 * BLOCK, even++, odd++) {
        __m256i odd0 = LOAD(b), even0 = LOAD(b + 16), odd1 = LOAD(b + 32), even1 = LOAD(b + 48);
        IN_REGISTER(odd0);
        IN_REGISTER(even0);
        IN_REGISTER(odd1);
        IN_REGISTER(even1);
        EACH_ROW({
            __m256i x = _mm256_set1_epi32(even[r * step]), y = _mm256_set1_epi32(odd[r * step]);
            IN_REGISTER(x);
            IN_REGISTER(y);
            ADD(s[r][0], _mm256_madd_epi16(_mm256_add_epi16(x, odd0), _mm256_add_epi16(y, even0)));
            ADD(s[r][1], _mm256_madd_epi16(_mm256_add_epi16(x, odd1), _mm256_add_epi16(y, even1)));
        });
    }
    finish(s, e, col, to, mr);
}

/* The same of certified weights: n dwords of k, which `at` names. */
QK_INLINE void bytes_tile(const uint8_t *a, const uint8_t *at, size_t n, const uint8_t *b, const start *from,
                          const panel_end *e, size_t col, char *to, const int mr) {
    __m256i s[SIX_ROWS][2], one = _mm256_set1_epi16(1);
    IN_REGISTER(one);
    EACH_ROW({
        s[r][0] = LOAD(from->sums + r * from->stride);
        s[r][1] = LOAD(from->sums + r * from->stride + LANES);
    });
    for (size_t i = 0; i < n; i++, b += 4 * BLOCK) {
        __m256i w = LOAD(b);
        IN_REGISTER(w);
        EACH_ROW({
            __m256i x = _mm256_set1_epi32(qk_igemm_load4(a + r * PART + 4 * (size_t)at[i])), pairs;
            IN_REGISTER(x);
            ADD(s[r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), one));
            __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "m"(*(const uint8_t(*)[32])(b + 32)));
            ADD(s[r][1], _mm256_madd_epi16(pairs, one));
        });
    }
    finish(s, e, col, to, mr);
}

typedef void tile_fn(const woven *a, size_t row, size_t n4, const int16_t *b, const start *from, const panel_end *e,
                     size_t col, char *to);
typedef void bytes_fn(const uint8_t *a, const uint8_t *at, size_t n, const uint8_t *b, const start *from,
                      const panel_end *e, size_t col, char *to);
#define TILE(mr)                                                                                                       \
    static void tile_##mr(const woven *a, size_t row, size_t n4, const int16_t *b, const start *from,                  \
                          const panel_end *e, size_t col, char *to) {                                                  \
        tile(a, row, n4, b, from, e, col, to, mr);                                                                     \
    }                                                                                                                  \
    BYTES_TILE(mr)
#define BYTES_TILE(mr)                                                                                                 \
    static void bytes_##mr(const uint8_t *a, const uint8_t *at, size_t n, const uint8_t *b, const start *from,         \
                           const panel_end *e, size_t col, char *to) {                                                 \
        bytes_tile(a, at, n, b, from, e, col, to, mr);                                                                 \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
BYTES_TILE(5)
BYTES_TILE(6)
#undef TILE
static tile_fn *const tiles[FOUR_ROWS] = {tile_1, tile_2, tile_3, tile_4};
static bytes_fn *const bytes_tiles[SIX_ROWS] = {bytes_1, bytes_2, bytes_3, bytes_4, bytes_5, bytes_6};

/* Up to QK_IGEMM_ROWS rows. The sums of all parts but the last go to `acc`. */
static void run_x8(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, const int32_t *first,
                   const panel_end *e, char *to, int32_t *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), block_elems = qk_igemm_kc(g) * BLOCK;
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    const int16_t *b = (const int16_t *)(const void *)qk_igemm_panel(g, packed, panel);
    const qk_igemm_certified certified = qk_igemm_certified_of(g, packed, panel);
    const bool is_certified = certified.counts[0] != 0;
    const size_t part = g->part, high = is_certified ? SIX_ROWS : FOUR_ROWS, n_tiles = (rows->m + high - 1) / high,
                 elem = e->what == BARE_BYTES || e->what == BYTES ? 1 : 4;
    size_t done[QK_IGEMM_COLS / BLOCK] = {0}; /* dwords of each block */
    size_t tops[QK_IGEMM_ROWS / FOUR_ROWS + 1];
    for (size_t t = 0; t <= n_tiles; t++)
        tops[t] = rows->m * t / n_tiles;
    _Alignas(32) int32_t dwords[QK_IGEMM_ROWS * PART / 2];
    _Alignas(32) uint8_t bytes[QK_IGEMM_ROWS][PART];
    int32_t pairs[QK_IGEMM_ROWS];
    const woven a = {dwords, part / 4, pairs};
    for (size_t k = 0, i = 0; k < g->kc; k += part, b += part * BLOCK, i++) {
        const size_t n = g->kc - k < part ? g->kc - k : part;
        const bool is_last = g->kc - k <= part;
        for (size_t r = 0; r < rows->m; r++) {
            const uint8_t *row = (const uint8_t *)qk_igemm_row(rows, r) + k;
            if (is_certified)
                put_in_order(row, n, flip, certified.order + k, bytes[r]);
            else
                pairs[r] = weave(row, n, flip, dwords + r * 2 * a.odd, a.odd);
        }
        for (size_t block = 0; block * BLOCK < n_cols; block++) {
            const size_t col = block * BLOCK, count = certified.counts[block * certified.n_parts + i];
            const uint8_t *weights = qk_igemm_panel(g, packed, panel) + block * block_elems * sizeof *b,
                          *at = weights + qk_igemm_max_dwords(g) * 4 * BLOCK + done[block];
            for (size_t t = 0; t < n_tiles; t++) {
                const size_t row = tops[t], mr = tops[t + 1] - row;
                int32_t *sums = acc + row * QK_IGEMM_COLS + col;
                const start from = {k == 0 ? first + col : sums, k == 0 ? 0 : QK_IGEMM_COLS};
                char *last = is_last ? to + (ptrdiff_t)row * e->stride_bytes + col * elem : (char *)sums;
                const panel_end *end = is_last ? e : &sums_end;
                if (is_certified)
                    bytes_tiles[mr - 1](bytes[row], at, count, weights + done[block] * 4 * BLOCK, &from, end, col,
                                        last);
                else
                    tiles[mr - 1](&a, row, (n + 3) / 4, b + block * block_elems, &from, end, col, last);
            }
            done[block] += count;
        }
    }
}

void qk_igemm_x8_avx2(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    run_x8(g, packed, rows, panel, qk_igemm_col_pairs(g, packed) + panel * QK_IGEMM_COLS, &sums_end, acc, acc);
}

bool qk_igemm_x8_end_avx2(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                          const qk_igemm_end *end) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    const int32_t *pairs = qk_igemm_col_pairs(g, packed) + panel * QK_IGEMM_COLS;
    _Alignas(32) int32_t acc[QK_IGEMM_ROWS * QK_IGEMM_COLS];
    panel_end e;
    if (!prepare_end(end, panel, n_cols, &e)) return false;
    for (size_t c = 0; c < n_cols; c += LANES)
        STORE(e.add + c, _mm256_add_epi32(LOAD(e.add + c), LOAD(pairs + c)));
    char *to = (char *)end->data + (ptrdiff_t)(panel * QK_IGEMM_COLS) * (end->dst == QDQ_DTYPE_F32 ? 4 : 1);
    for (size_t row = 0; row < rows->m; row += QK_IGEMM_ROWS) {
        const size_t left = rows->m - row;
        const qk_igemm_rows some = {qk_igemm_row(rows, row), rows->row_bytes,
                                    left < QK_IGEMM_ROWS ? left : QK_IGEMM_ROWS};
        run_x8(g, packed, &some, panel, e.add, &e, to + (ptrdiff_t)row * e.stride_bytes, acc);
    }
    return true;
}

void qk_igemm_sums_avx2(const qk_igemm *g, const qk_igemm_rows *rows, int32_t *sums) {
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    const __m256i sign = _mm256_set1_epi8((char)flip);
    for (size_t r = 0; r < rows->m; r++) {
        const uint8_t *a = qk_igemm_row(rows, r);
        __m256i s = _mm256_setzero_si256();
        uint32_t tail = 0;
        size_t k = 0;
        for (; g->kc - k >= 32; k += 32)
            s = _mm256_add_epi64(s, _mm256_sad_epu8(_mm256_xor_si256(LOAD(a + k), sign), _mm256_setzero_si256()));
        for (; k < g->kc; k++)
            tail += a[k] ^ flip;
        const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
        sums[r] = (int32_t)(tail + (uint32_t)_mm_cvtsi128_si32(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
    }
}
