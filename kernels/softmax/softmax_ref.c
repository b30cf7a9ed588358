#include "kernels/simd/scalar.h"
#include "kernels/softmax/softmax_row.h"

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static void put(const qk_softmax *s, void *dst, size_t i, double v) {
    const double w = is_x8(s->dst) ? v * (double)s->dst_factor + (double)s->zp_first : v;
    qks_store(s->dst, dst, i, (float)w);
}

static void line(const qk_softmax *s, const void *src, void *dst, size_t first, size_t n, size_t stride) {
    const double scale = is_x8(s->src) ? (double)s->src_scale : 1.0;
    float top = -INFINITY;
    double sum = 0.0;
    if (scale < 0.0) { /* the smallest integer is the largest value */
        top = INFINITY;
        for (size_t i = 0; i < n; i++)
            top = fminf(top, qks_load(s->src, src, first + i * stride));
    } else {
        for (size_t i = 0; i < n; i++) {
            const float x = qks_load(s->src, src, first + i * stride);
            top = x > top ? x : top;
        }
    }
    for (size_t i = 0; i < n; i++)
        sum += exp(((double)qks_load(s->src, src, first + i * stride) - (double)top) * scale);
    for (size_t i = 0; i < n; i++) {
        const float x = qks_load(s->src, src, first + i * stride);
        const double d = ((double)x - (double)top) * scale;
        double v = s->is_log ? d - log(sum) : exp(d) / sum;
        if (s->zero_of_inf && top == -INFINITY) v = isnan(x) ? (double)x : 0.0;
        put(s, dst, first + i * stride, v);
    }
}

static void rows(const qk_softmax *s, const void *src, void *dst, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r++)
        line(s, src, dst, r * n, n, 1);
}

static void cols(const qk_softmax *s, const void *src, void *dst, size_t n, size_t stride, size_t n_cols) {
    for (size_t c = 0; c < n_cols; c++)
        line(s, src, dst, c, n, stride);
}

const qk_softmax_fns qk_softmax_ref = {rows, cols};
