#include "kernels/reduce/reduce_row.h"
#include "kernels/simd/scalar.h"

static double term(const qk_reduce *reduce, const void *src, size_t i) {
    const bool x8 = reduce->src == QDQ_DTYPE_U8 || reduce->src == QDQ_DTYPE_S8;
    const double x = (double)qks_load(reduce->src, src, i) - (x8 ? (double)reduce->zp : 0.0);
    switch (reduce->op) {
    case QK_REDUCE_ABS: return fabs(x);
    case QK_REDUCE_SQUARES: return x * x;
    case QK_REDUCE_PROD: return x8 ? x * (double)reduce->scale : x;
    case QK_REDUCE_SUM:
    case QK_REDUCE_MAX:
    case QK_REDUCE_MIN: return x;
    }
    return x;
}

static double run(const qk_reduce *reduce, const void *src, size_t n) {
    double acc = qk_reduce_none(reduce->op);
    for (size_t i = 0; i < n; i++)
        acc = qk_reduce_join(reduce->op, acc, term(reduce, src, i));
    return acc;
}

static void rows(const qk_reduce *reduce, const void *src, size_t n_rows, size_t n, size_t stride, double *out) {
    const size_t bytes = qdq_dtype_bits(reduce->src) / 8;
    for (size_t r = 0; r < n_rows; r++)
        out[r] = run(reduce, (const char *)src + r * stride * bytes, n);
}

static void cols(const qk_reduce *reduce, const void *src, size_t rows, size_t n_cols, size_t stride, double *acc) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < n_cols; c++)
            acc[c] = qk_reduce_join(reduce->op, acc[c], term(reduce, src, r * stride + c));
}

const qk_reduce_fns qk_reduce_ref = {run, rows, cols};
