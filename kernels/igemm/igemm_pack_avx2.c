#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* Sixteen columns at a time, as two vectors of dwords of four k each: rows of one k are interleaved where columns are consecutive;
 * where k is, eight by eight dwords are transposed. Sums of the columns come with them. */
enum { COLS = 16, TILE_K = 32 };

/* How a level wants a dword: its bytes, words of k 1 and 3 and of k 0 and 2, or words of k 0 and 1 and of k 2 and 3, which are apart. */
typedef enum form { BYTES, PAIRED, WORDS } form;

/* Where sixteen columns go. */
typedef struct target {
    uint8_t *out;
    size_t half;         /* WORDS: bytes to k 2 and 3 */
    __m256i sums[2];     /* of the columns */
    __m256i products[2]; /* PAIRED: of neighbours */
} target;

static __m128i load16(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}
static __m256i load32(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static void store32(void *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

/* Four k of eight columns, or in WORDS that are not whole no more than two; the form is a constant of the caller. */
QK_INLINE void put(target *t, const int i, __m256i dwords, const form f, const bool is_whole, uint8_t *out) {
    const __m256i one = _mm256_set1_epi16(1), odd = _mm256_srai_epi16(dwords, 8),
                  even = _mm256_srai_epi16(_mm256_slli_epi16(dwords, 8), 8);
    t->sums[i] = _mm256_add_epi32(t->sums[i], _mm256_madd_epi16(_mm256_add_epi16(odd, even), one));
    if (f == BYTES) {
        store32(out + 32 * i, dwords);
    } else if (f == PAIRED) {
        t->products[i] = _mm256_add_epi32(t->products[i], _mm256_madd_epi16(odd, even));
        store32(out + 64 * i, odd);
        store32(out + 64 * i + 32, even);
    } else {
        store32(out + 32 * i, _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa));
        if (is_whole) store32(out + t->half + 32 * i, _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa));
    }
}

/* Columns side by side: four rows of k. */
QK_INLINE void put_rows(target *t, const __m128i r[4], const form f, uint8_t *out) {
    const __m128i a = _mm_unpacklo_epi8(r[0], r[1]), b = _mm_unpackhi_epi8(r[0], r[1]),
                  c = _mm_unpacklo_epi8(r[2], r[3]), d = _mm_unpackhi_epi8(r[2], r[3]);
    put(t, 0, _mm256_setr_m128i(_mm_unpacklo_epi16(a, c), _mm_unpackhi_epi16(a, c)), f, true, out);
    put(t, 1, _mm256_setr_m128i(_mm_unpacklo_epi16(b, d), _mm_unpackhi_epi16(b, d)), f, true, out);
}

/* k side by side: n, up to 32, of eight columns; their dwords go `step` bytes apart. */
QK_INLINE void put_columns(target *t, const int half, const uint8_t *data, ptrdiff_t n_stride, __m256i flip, size_t n,
                           const form f, size_t step) {
    __m256i v[8], a[8];
    QK_FOUR_TIMES(c, {
        v[c] = _mm256_xor_si256(load32(data + c * n_stride), flip);
        v[c + 4] = _mm256_xor_si256(load32(data + (c + 4) * n_stride), flip);
    });
    QK_FOUR_TIMES(i, {
        a[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    });
    QK_FOUR_TIMES(i, { /* v[4 q + j]: dwords j and 4 + j of columns 4 q … 4 q + 3 */
                       enum { at = i / 2 * 4 };
                       const __m256i x = a[at + i % 2], y = a[at + i % 2 + 2];
                       v[at + 2 * (i % 2)] = _mm256_unpacklo_epi64(x, y);
                       v[at + 2 * (i % 2) + 1] = _mm256_unpackhi_epi64(x, y);
    });
    QK_FOUR_TIMES(j, {
        if (4 * j < n)
            put(t, half, _mm256_permute2x128_si256(v[j], v[j + 4], 0x20), f, 4 * j + 2 < n, t->out + j * step);
    });
    QK_FOUR_TIMES(j, {
        if (4 * j + 16 < n)
            put(t, half, _mm256_permute2x128_si256(v[j], v[j + 4], 0x31), f, 4 * j + 18 < n, t->out + (j + 4) * step);
    });
}

/* The source, and how it moves on. */
typedef struct origin {
    const uint8_t *data;
    ptrdiff_t k_stride, n_stride;
    size_t kc, n_cols;
    uint8_t flip;
} origin;

/* n k of up to sixteen columns as a tile of its own, w', zeros where there are none. */
static void copy(const origin *o, size_t k, size_t n, uint8_t (*tile)[TILE_K]) {
    memset(tile, 0, COLS * TILE_K);
    for (size_t c = 0; c < o->n_cols; c++)
        for (size_t i = 0; i < n; i++)
            tile[c][i] = o->data[(ptrdiff_t)(k + i) * o->k_stride + (ptrdiff_t)c * o->n_stride] ^ o->flip;
}

QK_INLINE void pack(const qk_igemm *g, const origin *o, target *t, const form f) {
    const size_t step = 4 * g->nr * g->elem_bytes;
    const __m256i flip = _mm256_set1_epi8((char)o->flip);
    const bool whole_cols = o->n_cols == COLS;
    size_t k = 0;
    if (whole_cols && o->n_stride == 1) {
        for (const uint8_t *p = o->data; o->kc - k >= 4; k += 4, p += 4 * o->k_stride, t->out += step) {
            __m128i r[4];
            QK_FOUR_TIMES(i, r[i] = _mm_xor_si128(load16(p + i * o->k_stride), _mm256_castsi256_si128(flip)));
            put_rows(t, r, f, t->out);
        }
    } else if (whole_cols && o->k_stride == 1) {
        for (; o->kc - k >= TILE_K; k += TILE_K, t->out += TILE_K / 4 * step) {
            put_columns(t, 0, o->data + k, o->n_stride, flip, TILE_K, f, step);
            put_columns(t, 1, o->data + k + 8 * o->n_stride, o->n_stride, flip, TILE_K, f, step);
        }
    }
    for (; k < o->kc; k += TILE_K, t->out += TILE_K / 4 * step) {
        uint8_t tile[COLS][TILE_K];
        const size_t n = o->kc - k < TILE_K ? o->kc - k : TILE_K;
        copy(o, k, n, tile);
        put_columns(t, 0, tile[0], TILE_K, _mm256_setzero_si256(), n, f, step);
        put_columns(t, 1, tile[8], TILE_K, _mm256_setzero_si256(), n, f, step);
    }
}

void qk_igemm_pack16_avx2(const qk_igemm *g, const uint8_t *data, ptrdiff_t k_stride, ptrdiff_t n_stride, size_t n_cols,
                          uint8_t *out, int32_t *col_sums, int32_t *col_pairs) {
    const origin o = {data, k_stride, n_stride, g->kc, n_cols, g->weights_shift != 0 ? 0x80 : 0};
    const __m256i zero = _mm256_setzero_si256();
    target t = {out, 2 * g->nr * g->elem_bytes, {zero, zero}, {zero, zero}};
    if (g->elem_bytes == 1)
        pack(g, &o, &t, BYTES);
    else if (g->is_paired)
        pack(g, &o, &t, PAIRED);
    else
        pack(g, &o, &t, WORDS);
    for (int i = 0; i < 2; i++) {
        store32(col_sums + 8 * i, t.sums[i]);
        store32(col_pairs + 8 * i, _mm256_sub_epi32(zero, t.products[i]));
    }
}
