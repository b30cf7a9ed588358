#include "kernels/igemm/igemm_row.h"

#include <immintrin.h>

/* Sixteen columns at a time. Rows of one k are interleaved where columns are consecutive; where k is, each column gives four k as a
 * dword. Sums of the columns come with them. */
enum { COLS = 16 };

static __m128i load16(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}
static void store16(void *p, __m128i v) {
    _mm_storeu_si128((__m128i *)p, v);
}

/* Dwords of four bytes: their sums. */
static __m128i add_dwords(__m128i sum, __m128i bytes) {
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), bytes);
    return _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}

/* Four rows of 16 bytes to 16 columns of dwords. */
static void interleave(const __m128i r[4], __m128i out[4]) {
    const __m128i a = _mm_unpacklo_epi8(r[0], r[1]), b = _mm_unpackhi_epi8(r[0], r[1]),
                  c = _mm_unpacklo_epi8(r[2], r[3]), d = _mm_unpackhi_epi8(r[2], r[3]);
    out[0] = _mm_unpacklo_epi16(a, c);
    out[1] = _mm_unpackhi_epi16(a, c);
    out[2] = _mm_unpacklo_epi16(b, d);
    out[3] = _mm_unpackhi_epi16(b, d);
}

/* Four vectors of dwords as a matrix, transposed. */
static void transpose(__m128i v[4]) {
    const __m128i a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpackhi_epi32(v[0], v[1]),
                  c = _mm_unpacklo_epi32(v[2], v[3]), d = _mm_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm_unpacklo_epi64(a, c);
    v[1] = _mm_unpackhi_epi64(a, c);
    v[2] = _mm_unpacklo_epi64(b, d);
    v[3] = _mm_unpackhi_epi64(b, d);
}

/* Sixteen dwords of four k each, the columns in order, as the layout wants them. */
static void put(const qk_igemm *g, const __m128i dwords[4], uint8_t *out) {
    if (g->elem_bytes == 1) {
        for (int i = 0; i < 4; i++)
            store16(out + 16 * i, dwords[i]);
        return;
    }
    if (g->is_paired) { /* k 1 and 3 of four columns, then 0 and 2 */
        const __m128i odd = _mm_setr_epi8(1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14);
        for (int i = 0; i < 4; i++) {
            const __m128i pairs = _mm_shuffle_epi8(dwords[i], odd);
            uint8_t *to = out + i / 2 * 64 + i % 2 * 16;
            store16(to, _mm_cvtepi8_epi16(pairs));
            store16(to + 32, _mm_cvtepi8_epi16(_mm_unpackhi_epi64(pairs, pairs)));
        }
        return;
    }
    const __m128i first = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    uint8_t *next = out + 2 * g->nr * g->elem_bytes; /* the other two k */
    for (int i = 0; i < 4; i++) {
        const __m128i pairs = _mm_shuffle_epi8(dwords[i], first);
        store16(out + 16 * i, _mm_cvtepi8_epi16(pairs));
        store16(next + 16 * i, _mm_cvtepi8_epi16(_mm_unpackhi_epi64(pairs, pairs)));
    }
}

size_t qk_igemm_pack16_avx2(const qk_igemm *g, const uint8_t *data, ptrdiff_t k_stride, ptrdiff_t n_stride,
                            uint8_t *out, int32_t *col_sums) {
    const __m128i flip = _mm_set1_epi8(g->weights_shift != 0 ? (char)0x80 : 0);
    const size_t four = 4 * g->nr * g->elem_bytes, n = g->kc / 4 * 4;
    __m128i sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = _mm_setzero_si128();
    size_t k = 0;
    if (n_stride == 1) {
        for (; k < n; k += 4, out += four) {
            __m128i rows[4], dwords[4];
            for (int i = 0; i < 4; i++)
                rows[i] = _mm_xor_si128(load16(data + (ptrdiff_t)(k + (size_t)i) * k_stride), flip);
            interleave(rows, dwords);
            for (int i = 0; i < 4; i++)
                sums[i] = add_dwords(sums[i], dwords[i]);
            put(g, dwords, out);
        }
    } else {
        for (; n - k >= 16; k += 16, out += 4 * four) {
            __m128i steps[4][4]; /* of four k, of four columns */
            for (int c = 0; c < 4; c++) {
                __m128i v[4];
                for (int i = 0; i < 4; i++)
                    v[i] = _mm_xor_si128(load16(data + (ptrdiff_t)k + (4 * c + i) * n_stride), flip);
                transpose(v);
                for (int i = 0; i < 4; i++) {
                    steps[i][c] = v[i];
                    sums[c] = add_dwords(sums[c], v[i]);
                }
            }
            for (int i = 0; i < 4; i++)
                put(g, steps[i], out + (size_t)i * four);
        }
    }
    for (int i = 0; i < 4; i++)
        store16(col_sums + 4 * i, _mm_add_epi32(load16(col_sums + 4 * i), sums[i]));
    return k;
}

/* Eight columns of f32 whose k are consecutive. */
size_t qk_igemm_pack8_f32_avx2(const qk_igemm *g, const float *data, ptrdiff_t n_stride, float *out) {
    size_t k = 0;
    for (; g->kc - k >= 4; k += 4)
        for (int half = 0; half < 2; half++) {
            __m128i v[4];
            for (int i = 0; i < 4; i++)
                v[i] = load16(data + (ptrdiff_t)k + (4 * half + i) * n_stride);
            transpose(v);
            for (int i = 0; i < 4; i++)
                store16(out + (k + (size_t)i) * g->nr + 4 * half, v[i]);
        }
    return k;
}

void qk_igemm_pairs_avx2(const qk_igemm *g, const void *block, int32_t *out) {
    const __m256i *b = block;
    __m256i s0 = _mm256_setzero_si256(), s1 = s0;
    for (size_t k = 0; k < g->kc; k += 4, b += 4) {
        s0 = _mm256_sub_epi32(s0, _mm256_madd_epi16(_mm256_loadu_si256(b), _mm256_loadu_si256(b + 1)));
        s1 = _mm256_sub_epi32(s1, _mm256_madd_epi16(_mm256_loadu_si256(b + 2), _mm256_loadu_si256(b + 3)));
    }
    _mm256_storeu_si256((__m256i *)(void *)out, s0);
    _mm256_storeu_si256((__m256i *)(void *)(out + 8), s1);
}
