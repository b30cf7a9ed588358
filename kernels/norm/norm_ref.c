#include "kernels/norm/norm_row.h"
#include "kernels/simd/scalar.h"

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static void put(const qk_norm *norm, void *dst, size_t i, double v) {
    if (is_x8(norm->dst)) v = v * (double)norm->dst_factor + (double)norm->zp_first;
    qks_store(norm->dst, dst, i, (float)v);
}

static qk_moments moments(const qk_norm *norm, const void *src, size_t n_runs, size_t run_stride, size_t n) {
    const double count = (double)n_runs * (double)n;
    const double zp = norm->rms && is_x8(norm->src) ? (double)norm->src_zp : 0.0;
    double sum = 0.0, squares = 0.0;
    if (!norm->rms)
        for (size_t r = 0; r < n_runs; r++)
            for (size_t i = 0; i < n; i++)
                sum += (double)qks_load(norm->src, src, r * run_stride + i);
    const double mean = sum / count;
    for (size_t r = 0; r < n_runs; r++)
        for (size_t i = 0; i < n; i++) {
            const double d = (double)qks_load(norm->src, src, r * run_stride + i) - zp - mean;
            squares += d * d;
        }
    return (qk_moments){mean, squares / count};
}

static void rows(const qk_norm *norm, const void *src, void *dst, const float *gamma, const float *beta, float *means,
                 float *variances, size_t n_rows, size_t n) {
    const double scale = is_x8(norm->src) ? (double)norm->src_scale : 1.0;
    const double zp = is_x8(norm->src) ? (double)norm->src_zp : 0.0;
    for (size_t r = 0; r < n_rows; r++) {
        const char *x = (const char *)src + r * n * qks_bytes(norm->src);
        char *y = (char *)dst + r * n * qks_bytes(norm->dst);
        const qk_moments m = moments(norm, x, 1, 0, n);
        const double variance = m.variance * scale * scale, away = norm->rms ? zp : m.mean;
        const double factor = scale / sqrt(variance + (double)norm->epsilon);
        if (means != NULL) means[r] = (float)((m.mean - zp) * scale);
        if (variances != NULL) variances[r] = (float)variance;
        for (size_t i = 0; i < n; i++) {
            double v = ((double)qks_load(norm->src, x, i) - away) * factor;
            if (gamma != NULL) v *= (double)gamma[i];
            if (beta != NULL) v += (double)beta[i];
            put(norm, y, i, v);
        }
    }
}

static void col_sums(const qk_norm *norm, const void *src, size_t n_rows, size_t cols, size_t stride,
                     const float *means, double *sums) {
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < cols; c++) {
            const double v = (double)qks_load(norm->src, src, r * stride + c);
            const double d = means == NULL ? 0.0 : v - (double)means[c];
            sums[c] += means == NULL ? v : d * d;
        }
}

static void apply(const qk_norm *norm, const void *src, void *dst, size_t n, float mean, float mul, float add) {
    for (size_t i = 0; i < n; i++)
        put(norm, dst, i, (double)((qks_load(norm->src, src, i) - mean) * mul + add));
}

static void apply_cols(const qk_norm *norm, const void *src, void *dst, size_t n_rows, size_t cols, size_t stride,
                       const float *means, const float *muls, const float *adds) {
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < cols; c++)
            put(norm, dst, r * stride + c,
                (double)((qks_load(norm->src, src, r * stride + c) - means[c]) * muls[c] + adds[c]));
}

const qk_norm_fns qk_norm_ref = {rows, moments, col_sums, apply, apply_cols};
