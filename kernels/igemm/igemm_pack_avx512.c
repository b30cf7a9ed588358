#include "kernels/igemm/igemm_transpose_body.h"

/* The first n of sixteen elements, as f32; zeros behind them. */
QK_INLINE __m512i load(qdq_dtype dtype, const char *p, size_t n) {
    const __mmask16 lanes = qk512_lanes(n);
    if (dtype == QDQ_DTYPE_F32) return _mm512_maskz_loadu_epi32(lanes, p);
    const __m256i half = _mm256_maskz_loadu_epi16(lanes, p);
    if (dtype == QDQ_DTYPE_BF16) return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    return _mm512_castps_si512(_mm512_cvtph_ps(half));
}

/* Columns side by side; the type is a constant of the caller. */
QK_INLINE void pack_rows(const qk_igemm *g, qdq_dtype dtype, const char *data, ptrdiff_t k_bytes, size_t n_cols,
                         float *out) {
    const size_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2;
    for (size_t k = 0; k < g->kc; k++, data += k_bytes, out += QK_IGEMM_COLS)
        for (size_t c = 0; c < QK_IGEMM_COLS; c += 16)
            _mm512_storeu_si512(out + c,
                                c < n_cols ? load(dtype, data + c * elem, n_cols - c) : _mm512_setzero_si512());
}

/* k side by side: sixteen of sixteen columns at a time. */
QK_INLINE void pack_columns(const qk_igemm *g, qdq_dtype dtype, const char *data, ptrdiff_t n_bytes, size_t n_cols,
                            float *out) {
    const size_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2;
    for (size_t k = 0; k < g->kc; k += 16) {
        const size_t n = g->kc - k < 16 ? g->kc - k : 16;
        __m512i v[16];
        SIXTEEN_TIMES(c, v[c] = c < n_cols ? load(dtype, data + k * elem + c * n_bytes, n) : _mm512_setzero_si512());
        transpose16(v);
        SIXTEEN_TIMES(i, if (i < n) _mm512_storeu_si512(out + (k + i) * QK_IGEMM_COLS, v[i]));
    }
}

QK_INLINE bool pack(const qk_igemm *g, const qk_igemm_source *s, qdq_dtype dtype, size_t panel, float *out) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    const ptrdiff_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2, n_bytes = s->n_stride * elem;
    const char *data = (const char *)s->data + (ptrdiff_t)(panel * QK_IGEMM_COLS) * n_bytes;
    if (s->n_stride == 1) {
        pack_rows(g, dtype, data, s->k_stride * elem, n_cols, out);
        return true;
    }
    if (s->k_stride != 1) return false;
    for (size_t c = 0; c < QK_IGEMM_COLS; c += 16) /* those beyond n_cols become zeros */
        pack_columns(g, dtype, data + (ptrdiff_t)(c < n_cols ? c : 0) * n_bytes, n_bytes, n_cols < c ? 0 : n_cols - c,
                     out + c);
    return true;
}

bool qk_igemm_pack_f32_avx512(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out, int32_t *sums) {
    (void)sums;
    if (s->dtype == QDQ_DTYPE_F32) return pack(g, s, QDQ_DTYPE_F32, panel, out);
    if (s->dtype == QDQ_DTYPE_BF16) return pack(g, s, QDQ_DTYPE_BF16, panel, out);
    return pack(g, s, QDQ_DTYPE_F16, panel, out);
}
