#include "kernels/igemm/igemm_transpose_body.h"

enum { STEP_BYTES = 4 * QK_IGEMM_COLS };

/* The first n of 32 words; zeros behind them. */
QK_INLINE __m512i load(const uint16_t *p, size_t n) {
    return _mm512_maskz_loadu_epi16(n >= 32 ? (__mmask32)-1 : (__mmask32)((1u << n) - 1u), p);
}

/* Columns side by side: two rows of k at a time, interleaved. */
static void pack_rows(const qk_igemm *g, const uint16_t *data, ptrdiff_t k_stride, size_t n_cols, char *out) {
    for (size_t k = 0; k < g->kc; k += 2, data += 2 * k_stride, out += STEP_BYTES)
        for (size_t c = 0; c < QK_IGEMM_COLS; c += 32) {
            const size_t n = c < n_cols ? n_cols - c : 0, at = n == 0 ? 0 : c;
            __m512i low, high;
            interleave_words(load(data + at, n), k + 1 < g->kc ? load(data + k_stride + at, n) : _mm512_setzero_si512(),
                             &low, &high);
            _mm512_storeu_si512(out + 4 * c, low);
            _mm512_storeu_si512(out + 4 * c + 64, high);
        }
}

/* k side by side: 32 of sixteen columns at a time. */
static void pack_columns(const qk_igemm *g, const uint16_t *data, ptrdiff_t n_stride, size_t n_cols, char *out) {
    for (size_t k = 0; k < g->kc; k += 32, out += 16 * STEP_BYTES) {
        const size_t n = g->kc - k, n2 = n < 32 ? (n + 1) / 2 : 16;
        __m512i v[16];
        SIXTEEN_TIMES(c, v[c] = c < n_cols ? load(data + (ptrdiff_t)k + c * n_stride, n) : _mm512_setzero_si512());
        transpose16(v);
        SIXTEEN_TIMES(i, if (i < n2) _mm512_storeu_si512(out + i * STEP_BYTES, v[i]));
    }
}

bool qk_igemm_pack_bf16_avx512bf16(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out,
                                   int32_t *sums) {
    (void)sums;
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    const uint16_t *data = (const uint16_t *)s->data + (ptrdiff_t)(panel * QK_IGEMM_COLS) * s->n_stride;
    if (s->n_stride == 1) {
        pack_rows(g, data, s->k_stride, n_cols, out);
        return true;
    }
    if (s->k_stride != 1) return false;
    for (size_t c = 0; c < QK_IGEMM_COLS; c += 16) /* those beyond n_cols become zeros */
        pack_columns(g, data + (ptrdiff_t)(c < n_cols ? c : 0) * s->n_stride, s->n_stride, n_cols < c ? 0 : n_cols - c,
                     (char *)out + 4 * c);
    return true;
}
