/* Packing of floats of any type as f32. Over the names of simd/vec512.h or vec256.h; included by igemm_pack_avx512.c and
 * igemm_pack_float_avx2.c alone, which say
 *     NR                the layout's
 *     LANES_TIMES(i, …) the statement for i = 0 … QV_LANES - 1
 *     TRANSPOSE(v)      QV_LANES vectors as a matrix, transposed in place */
#ifndef QK_IGEMM_PACK_FLOAT_BODY_H
#define QK_IGEMM_PACK_FLOAT_BODY_H

#include "kernels/igemm/igemm_row.h"

/* The first n elements of a vector, as f32; zeros behind them. */
QK_INLINE qv_i load(qdq_dtype dtype, const char *p, size_t n) {
    if (dtype == QDQ_DTYPE_F32) return qv_load4(p, n);
    if (dtype == QDQ_DTYPE_BF16) return qv_slli(qv_of_u16(qv_load2(p, n)), 16);
    return qv_bits(qv_of_f16(qv_load2(p, n)));
}

/* Columns c … of a panel, k 0. */
QK_INLINE float *place(const qk_igemm *g, float *out, size_t c) {
    return out + c / NR * NR * g->kc + c % NR;
}

/* Columns side by side; the type is a constant of the caller. */
QK_INLINE void pack_rows(const qk_igemm *g, qdq_dtype dtype, const char *data, ptrdiff_t k_bytes, size_t n_cols,
                         float *out) {
    const size_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2;
    for (size_t k = 0; k < g->kc; k++, data += k_bytes, out += NR)
        for (size_t c = 0; c < QK_IGEMM_COLS; c += QV_LANES)
            qv_storei(place(g, out, c), c < n_cols ? load(dtype, data + c * elem, n_cols - c) : qv_set1i(0));
}

/* k side by side: a vector of each of as many columns at a time. */
QK_INLINE void pack_columns(const qk_igemm *g, qdq_dtype dtype, const char *data, ptrdiff_t n_bytes, size_t n_cols,
                            float *out) {
    const size_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2;
    for (size_t k = 0; k < g->kc; k += QV_LANES, out += QV_LANES * NR) {
        const size_t n = g->kc - k < QV_LANES ? g->kc - k : QV_LANES;
        qv_i v[QV_LANES];
        LANES_TIMES(c, v[c] = c < n_cols ? load(dtype, data + k * elem + c * n_bytes, n) : qv_set1i(0));
        TRANSPOSE(v);
        LANES_TIMES(i, if (i < n) qv_storei(out + i * NR, v[i]));
    }
}

QK_INLINE bool pack_as(const qk_igemm *g, const qk_igemm_source *s, qdq_dtype dtype, size_t panel, float *out) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    const ptrdiff_t elem = dtype == QDQ_DTYPE_F32 ? 4 : 2, n_bytes = s->n_stride * elem;
    const char *data = (const char *)s->data + (ptrdiff_t)(panel * QK_IGEMM_COLS) * n_bytes;
    if (s->n_stride == 1) {
        pack_rows(g, dtype, data, s->k_stride * elem, n_cols, out);
        return true;
    }
    if (s->k_stride != 1) return false;
    for (size_t c = 0; c < QK_IGEMM_COLS; c += QV_LANES) /* those beyond n_cols become zeros */
        pack_columns(g, dtype, data + (ptrdiff_t)(c < n_cols ? c : 0) * n_bytes, n_bytes, n_cols < c ? 0 : n_cols - c,
                     place(g, out, c));
    return true;
}

static bool pack(const qk_igemm *g, const qk_igemm_source *s, size_t panel, float *out) {
    if (s->dtype == QDQ_DTYPE_F32) return pack_as(g, s, QDQ_DTYPE_F32, panel, out);
    if (s->dtype == QDQ_DTYPE_BF16) return pack_as(g, s, QDQ_DTYPE_BF16, panel, out);
    return pack_as(g, s, QDQ_DTYPE_F16, panel, out);
}

#endif
