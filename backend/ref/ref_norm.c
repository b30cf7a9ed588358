/* SoftMax, LogSoftmax, BatchNormInference, LayerNorm, RMSNorm, GroupNorm, InstanceNormalization. Sums in f64. */
#include "ref/ref_fns.h"

#include <math.h>

/* ---- softmax: lines along the axis ---- */

typedef struct lines {
    int64_t outer, n, inner;
} lines;

static qdq_status find_lines(qdqi_ref_ctx *c, lines *l) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
    l->outer = qdqi_ref_count(src, 0, axis);
    l->n = src->dims[axis];
    l->inner = qdqi_ref_count(src, axis + 1, src->ndims);
    return QDQ_OK;
}

/* One line; `zero_of_inf`: a line of -inf only gives 0 instead of NaN. */
static void softmax_line(const float *x, float *y, int64_t n, int64_t step, bool is_log, bool zero_of_inf) {
    float top = -INFINITY;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] > top) top = x[i * step];
    if (zero_of_inf && top == -INFINITY) {
        for (int64_t i = 0; i < n; i++)
            y[i * step] = isnan(x[i * step]) ? x[i * step] : 0.0f;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i * step] - (double)top);
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)x[i * step] - (double)top;
        y[i * step] = (float)(is_log ? d - log(sum) : exp(d) / sum);
    }
}

static qdq_status softmax(qdqi_ref_ctx *c, bool is_log, bool zero_of_inf) {
    lines l;
    const float *x = qdqi_ref_in_f32(c, 0);
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(find_lines(c, &l));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            const int64_t at = o * l.n * l.inner + i;
            softmax_line(x + at, y + at, l.n, l.inner, is_log, zero_of_inf);
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_softmax(qdqi_ref_ctx *c) {
    return softmax(c, false, qdqi_op_str_is(c->op, QDQI_A_MODE, "inf_as_zero"));
}

qdq_status qdqi_ref_logsoftmax(qdqi_ref_ctx *c) {
    return softmax(c, true, false);
}

/* ---- normalization ---- */

static qdq_status check_vector(qdqi_ref_ctx *c, uint32_t port, int64_t expected) {
    if (!qdqi_ref_has_in(c, port) || qdqi_n_elems(c->in[port].desc) == expected) return QDQ_OK;
    return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u has %lld values, expected %lld", port,
                         (long long)qdqi_n_elems(c->in[port].desc), (long long)expected);
}

static bool is_ncx(const qdqi_ref_ctx *c) {
    return qdqi_op_str_is(c->op, QDQI_A_DATA_FORMAT, "NCX");
}

qdq_status qdqi_ref_batchnorm(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const float *x = qdqi_ref_in_f32(c, 0);
    const float *gamma = qdqi_ref_in_f32(c, 1), *beta = qdqi_ref_in_f32(c, 2);
    const float *mean = qdqi_ref_in_f32(c, 3), *variance = qdqi_ref_in_f32(c, 4);
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    if (src->ndims < 2) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d has no channels", src->ndims);
    const int32_t ch = is_ncx(c) ? 1 : src->ndims - 1;
    const int64_t channels = src->dims[ch], inner = qdqi_ref_count(src, ch + 1, src->ndims), n = qdqi_n_elems(src);
    const double epsilon = (double)qdqi_op_f32(c->op, QDQI_A_EPSILON);
    for (uint32_t port = 1; port <= 4; port++)
        QDQI_TRY(check_vector(c, port, channels));
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i / inner % channels;
        const double scale = (double)gamma[k] / sqrt((double)variance[k] + epsilon);
        y[i] = (float)(((double)x[i] - (double)mean[k]) * scale + (double)beta[k]);
    }
    return QDQ_OK;
}

typedef struct moments {
    double mean, variance;
} moments;

/* Over `n_runs` runs of `n` elements that lie run_step apart; elements step apart. Two passes. */
static moments moments_of(const float *x, int64_t n_runs, int64_t run_step, int64_t n, int64_t step) {
    const double count = (double)(n_runs * n);
    double sum = 0.0, squares = 0.0;
    for (int64_t r = 0; r < n_runs; r++)
        for (int64_t i = 0; i < n; i++)
            sum += (double)x[r * run_step + i * step];
    const double mean = sum / count;
    for (int64_t r = 0; r < n_runs; r++)
        for (int64_t i = 0; i < n; i++) {
            const double d = (double)x[r * run_step + i * step] - mean;
            squares += d * d;
        }
    return (moments){mean, squares / count};
}

/* Rows of the dims from begin_norm_axis on. */
static qdq_status norm_rows(qdqi_ref_ctx *c, int64_t *n_rows_out, int64_t *n_out) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_BEGIN_NORM_AXIS), src->ndims, &axis));
    *n_rows_out = qdqi_ref_count(src, 0, axis);
    *n_out = qdqi_ref_count(src, axis, src->ndims);
    return QDQ_OK;
}

qdq_status qdqi_ref_layernorm(qdqi_ref_ctx *c) {
    const bool affine = qdqi_op_bool(c->op, QDQI_A_USE_AFFINE);
    const float *x = qdqi_ref_in_f32(c, 0);
    const float *gamma = affine ? qdqi_ref_in_f32(c, 1) : NULL, *beta = affine ? qdqi_ref_in_f32(c, 2) : NULL;
    float *y = qdqi_ref_out_f32(c, 0), *means = qdqi_ref_out_f32(c, 1), *variances = qdqi_ref_out_f32(c, 2);
    QDQI_REF_READY(c);
    const double epsilon = (double)qdqi_op_f32(c->op, QDQI_A_EPSILON);
    int64_t n_rows, n;
    QDQI_TRY(norm_rows(c, &n_rows, &n));
    if (affine) {
        QDQI_TRY(check_vector(c, 1, n));
        QDQI_TRY(check_vector(c, 2, n));
    }
    for (int64_t r = 0; r < n_rows; r++) {
        const moments m = moments_of(x + r * n, 1, 0, n, 1);
        const double scale = 1.0 / sqrt(m.variance + epsilon);
        for (int64_t i = 0; i < n; i++) {
            double v = ((double)x[r * n + i] - m.mean) * scale;
            if (gamma != NULL) v *= (double)gamma[i];
            if (beta != NULL) v += (double)beta[i];
            y[r * n + i] = (float)v;
        }
        if (means != NULL) means[r] = (float)m.mean;
        if (variances != NULL) variances[r] = (float)m.variance;
    }
    return QDQ_OK;
}

qdq_status qdqi_ref_rmsnorm(qdqi_ref_ctx *c) {
    const bool affine = qdqi_op_bool(c->op, QDQI_A_USE_AFFINE);
    const float *x = qdqi_ref_in_f32(c, 0), *gamma = affine ? qdqi_ref_in_f32(c, 1) : NULL;
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const double epsilon = (double)qdqi_op_f32(c->op, QDQI_A_EPSILON);
    int64_t n_rows, n;
    QDQI_TRY(norm_rows(c, &n_rows, &n));
    if (affine) QDQI_TRY(check_vector(c, 1, n));
    for (int64_t r = 0; r < n_rows; r++) {
        double squares = 0.0;
        for (int64_t i = 0; i < n; i++)
            squares += (double)x[r * n + i] * (double)x[r * n + i];
        const double scale = 1.0 / sqrt(squares / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = (float)((double)x[r * n + i] * scale * (gamma == NULL ? 1.0 : (double)gamma[i]));
    }
    return QDQ_OK;
}

/* Groups of channels of one image; InstanceNormalization is a group per channel. */
static qdq_status group_norm(qdqi_ref_ctx *c, int64_t groups, bool ncx, const float *x, const float *gamma,
                             const float *beta, float *y, float *means, float *variances) {
    const qdq_tensor_desc *src = c->in[0].desc;
    if (src->ndims < 2) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d has no channels", src->ndims);
    const int64_t channels = src->dims[ncx ? 1 : src->ndims - 1];
    const int64_t points = ncx ? qdqi_ref_count(src, 2, src->ndims) : qdqi_ref_count(src, 1, src->ndims - 1);
    const int64_t c_step = ncx ? points : 1, p_step = ncx ? 1 : channels;
    const double epsilon = (double)qdqi_op_f32(c->op, QDQI_A_EPSILON);
    if (channels % groups != 0)
        return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "%lld groups do not divide %lld channels", (long long)groups,
                             (long long)channels);
    if (gamma != NULL) QDQI_TRY(check_vector(c, 1, channels));
    if (beta != NULL) QDQI_TRY(check_vector(c, 2, channels));
    const int64_t size = channels / groups;
    for (int64_t image = 0; image < src->dims[0]; image++)
        for (int64_t g = 0; g < groups; g++) {
            const int64_t base = image * channels * points + g * size * c_step;
            const moments m = moments_of(x + base, size, c_step, points, p_step);
            const double scale = 1.0 / sqrt(m.variance + epsilon);
            for (int64_t k = 0; k < size; k++) {
                const int64_t ch = g * size + k;
                const double mul = scale * (gamma == NULL ? 1.0 : (double)gamma[ch]);
                const double add = beta == NULL ? 0.0 : (double)beta[ch];
                for (int64_t i = 0; i < points; i++) {
                    const int64_t at = base + k * c_step + i * p_step;
                    y[at] = (float)(((double)x[at] - m.mean) * mul + add);
                }
            }
            if (means != NULL) means[image * groups + g] = (float)m.mean;
            if (variances != NULL) variances[image * groups + g] = (float)m.variance;
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_groupnorm(qdqi_ref_ctx *c) {
    const bool affine = qdqi_op_bool(c->op, QDQI_A_USE_AFFINE);
    const float *x = qdqi_ref_in_f32(c, 0);
    const float *gamma = affine ? qdqi_ref_in_f32(c, 1) : NULL, *beta = affine ? qdqi_ref_in_f32(c, 2) : NULL;
    float *y = qdqi_ref_out_f32(c, 0), *means = qdqi_ref_out_f32(c, 1), *variances = qdqi_ref_out_f32(c, 2);
    QDQI_REF_READY(c);
    return group_norm(c, qdqi_op_s64(c->op, QDQI_A_GROUPS), is_ncx(c), x, gamma, beta, y, means, variances);
}

qdq_status qdqi_ref_instancenorm(qdqi_ref_ctx *c) {
    const float *x = qdqi_ref_in_f32(c, 0), *gamma = qdqi_ref_in_f32(c, 1), *beta = qdqi_ref_in_f32(c, 2);
    float *y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const qdq_tensor_desc *src = c->in[0].desc;
    if (src->ndims < 2 || src->dims[1] == 0) return QDQ_OK;
    return group_norm(c, src->dims[1], true, x, gamma, beta, y, NULL, NULL);
}
