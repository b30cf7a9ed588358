/* A few rows by weights where they lie: bytes are widened to words as they come, whose products vpmaddwd adds exactly. Over the names of
 * simd/wide.h; included by igemm_line_avx2.c and igemm_line_avx512.c alone, which say LINE, the function's name. */
#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/wide.h"

/* A part of the row's k as words; pairs of vectors of sums for columns that are side by side. */
enum { PART = 1024, WORDS = 2 * QKW_LANES, VECTORS = 4 };

typedef struct line_part {
    _Alignas(64) int16_t a[PART]; /* zeros from n to the next whole vector */
    size_t n;
} line_part;

#if defined(__AVX512BW__)
QK_INLINE qkw_i load_words(const uint8_t *p, const size_t n, const bool is_signed) {
    const __m256i b = _mm256_maskz_loadu_epi8(n >= WORDS ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1, p);
    return is_signed ? _mm512_cvtepi8_epi16(b) : _mm512_cvtepu8_epi16(b);
}
QK_INLINE __m256i halved(qkw_i v) {
    return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
}
/* Columns of an unpacklo and an unpackhi, in order. */
QK_INLINE void in_order(qkw_i v[2]) {
    const qkw_i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23),
                eight = _mm512_set1_epi32(8), low = v[0];
    v[0] = _mm512_permutex2var_epi32(low, first, v[1]);
    v[1] = _mm512_permutex2var_epi32(low, _mm512_add_epi32(first, eight), v[1]);
}
#else
QK_INLINE qkw_i load_words(const uint8_t *p, const size_t n, const bool is_signed) {
    uint8_t some[WORDS] = {0};
    if (n < WORDS) {
        for (size_t i = 0; i < n; i++)
            some[i] = p[i];
        p = some;
    }
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
    return is_signed ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b);
}
QK_INLINE __m256i halved(qkw_i v) {
    return v;
}
QK_INLINE void in_order(qkw_i v[2]) {
    const qkw_i low = v[0];
    v[0] = _mm256_permute2x128_si256(low, v[1], 0x20);
    v[1] = _mm256_permute2x128_si256(low, v[1], 0x31);
}
#endif

QK_INLINE qkw_i plus_products(qkw_i sum, qkw_i a, qkw_i w) {
    return QKW(add_epi32)(sum, QKW(madd_epi16)(a, w));
}

/* Columns whose k are side by side, four at a time; is_signed is a constant of the caller. */
QK_INLINE void dots(const line_part *t, const uint8_t *w, ptrdiff_t n_stride, size_t n, int32_t *acc,
                    const bool is_signed) {
    for (size_t c = 0; c < n; c += 4) {
        const uint8_t *p[4];
        qkw_i s[4];
        QK_FOUR_TIMES(i, {
            p[i] = w + (ptrdiff_t)(c + i < n ? c + i : c) * n_stride;
            s[i] = QKW(set1_epi32)(0);
        });
        size_t k = 0;
        for (; t->n - k >= WORDS; k += WORDS) {
            const qkw_i a = qkw_load(t->a + k);
            QK_FOUR_TIMES(i, s[i] = plus_products(s[i], a, load_words(p[i] + k, WORDS, is_signed)));
        }
        if (k < t->n) {
            const qkw_i a = qkw_load(t->a + k);
            QK_FOUR_TIMES(i, s[i] = plus_products(s[i], a, load_words(p[i] + k, t->n - k, is_signed)));
        }
        const __m256i two = _mm256_hadd_epi32(halved(s[0]), halved(s[1])),
                      four = _mm256_hadd_epi32(two, _mm256_hadd_epi32(halved(s[2]), halved(s[3])));
        int32_t sums[4];
        _mm_storeu_si128((__m128i *)(void *)sums,
                         _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1)));
        for (size_t i = 0; i < 4 && c + i < n; i++)
            acc[c + i] = (int32_t)((uint32_t)acc[c + i] + (uint32_t)sums[i]);
    }
}

/* n columns side by side, of up to nv * WORDS; two k at a time. nv and is_signed are constants of the caller. */
QK_INLINE void rows(const line_part *t, const uint8_t *w, ptrdiff_t k_stride, size_t n, int32_t *acc, const int nv,
                    const bool is_signed) {
    qkw_i s[VECTORS][2];
    QK_FOUR_TIMES(j, s[j][0] = s[j][1] = QKW(set1_epi32)(0));
    for (size_t k = 0; k < t->n; k += 2, w += 2 * k_stride) {
        const uint8_t *next = k + 1 < t->n ? w + k_stride : w; /* by a zero */
        const qkw_i a = QKW(set1_epi32)(qk_igemm_load4(t->a + k));
        QK_FOUR_TIMES(
            j, if (j < nv) {
                const size_t left = nv == 1 ? n : WORDS;
                const qkw_i x = load_words(w + j * WORDS, left, is_signed),
                            y = load_words(next + j * WORDS, left, is_signed);
                s[j][0] = plus_products(s[j][0], a, QKW(unpacklo_epi16)(x, y));
                s[j][1] = plus_products(s[j][1], a, QKW(unpackhi_epi16)(x, y));
            });
    }
    QK_FOUR_TIMES(
        j, if (j < nv) {
            int32_t sums[WORDS];
            in_order(s[j]);
            qkw_store(sums, s[j][0]);
            qkw_store(sums + QKW_LANES, s[j][1]);
            for (size_t c = 0; c < WORDS && j * WORDS + c < n; c++)
                acc[j * WORDS + c] = (int32_t)((uint32_t)acc[j * WORDS + c] + (uint32_t)sums[c]);
        });
}

QK_INLINE void line(const line_part *t, const uint8_t *w, const qk_igemm_source *s, size_t n, int32_t *acc,
                    const bool is_signed) {
    size_t c = 0;
    if (s->k_stride == 1) {
        dots(t, w, s->n_stride, n, acc, is_signed);
        return;
    }
    for (; n - c >= VECTORS * WORDS; c += VECTORS * WORDS)
        rows(t, w + c, s->k_stride, VECTORS * WORDS, acc + c, VECTORS, is_signed);
    for (; c < n; c += WORDS)
        rows(t, w + c, s->k_stride, n - c < WORDS ? n - c : WORDS, acc + c, 1, is_signed);
}

bool LINE(const qk_igemm *g, const uint8_t *row, int32_t zero, const qk_igemm_source *s, size_t first, size_t n,
          int32_t *acc) {
    if ((s->n_stride != 1 && s->k_stride != 1) || zero < 0 || zero > UINT8_MAX) return false;
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    const uint8_t *w = (const uint8_t *)s->data + (ptrdiff_t)first * s->n_stride;
    line_part t;
    memset(acc, 0, n * sizeof *acc);
    for (size_t k = 0; k < g->kc; k += PART, w += PART * s->k_stride) {
        int32_t sum = 0;
        t.n = g->kc - k < PART ? g->kc - k : PART;
        memset(t.a + t.n / WORDS * WORDS, 0, t.n % WORDS == 0 ? 0 : WORDS * sizeof *t.a);
        for (size_t i = 0; i < t.n; i++) {
            t.a[i] = (int16_t)((row[k + i] ^ flip) - zero);
            sum += t.a[i];
        }
        if (g->weights_shift != 0)
            for (size_t c = 0; c < n; c++)
                acc[c] = (int32_t)((uint32_t)acc[c] - (uint32_t)g->weights_shift * (uint32_t)sum);
        if (g->weights_shift == 0)
            line(&t, w, s, n, acc, true);
        else
            line(&t, w, s, n, acc, false);
    }
    return true;
}
