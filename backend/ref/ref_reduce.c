/* Reductions, ArgMax, ArgMin, CumSum, TopK. Sums of floats in f64; integers in s64. */
#include "ref/ref_fns.h"

#include "base/dtype.h"

#include <math.h>

typedef enum reduce_kind { L1, L2, MAX, MEAN, MIN, PROD, SUM } reduce_kind;

static int64_t wrap_add(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static double start_f64(reduce_kind kind) {
    return kind == MAX ? -INFINITY : kind == MIN ? INFINITY : kind == PROD ? 1.0 : 0.0;
}

static double step_f64(reduce_kind kind, double acc, double v) {
    switch (kind) {
    case L1: return acc + fabs(v);
    case L2: return acc + v * v;
    case MAX: return v > acc || isnan(v) ? v : acc;
    case MIN: return v < acc || isnan(v) ? v : acc;
    case PROD: return acc * v;
    case MEAN:
    case SUM: return acc + v;
    }
    return acc;
}

static int64_t step_i64(reduce_kind kind, int64_t acc, int64_t v) {
    if (kind == MAX) return v > acc ? v : acc;
    if (kind == MIN) return v < acc ? v : acc;
    if (kind == PROD) return (int64_t)((uint64_t)acc * (uint64_t)v);
    return wrap_add(acc, v);
}

/* Walk src with the offset of its result; dims that are reduced have stride 0 in the result. */
static qdq_status reduced_rows(qdqi_ref_ctx *c, const int64_t *axes, int64_t n_axes, qdqi_ref_rows *r) {
    const qdq_tensor_desc *src = c->in[0].desc;
    bool reduced[QDQ_MAX_NDIMS] = {false};
    int64_t strides[QDQ_MAX_NDIMS] = {0}, stride = 1;
    for (int64_t i = 0; i < n_axes; i++) {
        int32_t axis;
        QDQI_TRY(qdqi_ref_axis(c, axes[i], src->ndims, &axis));
        reduced[axis] = true;
    }
    for (int32_t d = src->ndims - 1; d >= 0; d--) {
        if (reduced[d] || n_axes == 0) continue;
        strides[d] = stride;
        stride *= src->dims[d];
    }
    if (stride != qdqi_n_elems(c->out[0].desc))
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the output has %lld elements, expected %lld",
                             (long long)qdqi_n_elems(c->out[0].desc), (long long)stride);
    qdqi_ref_rows_init(r, src->ndims, src->dims);
    qdqi_ref_rows_add(r, src->ndims, strides);
    return QDQ_OK;
}

/* No axes at all: all of them. */
static qdq_status reduce(qdqi_ref_ctx *c, reduce_kind kind) {
    const int64_t n_dst = qdqi_n_elems(c->out[0].desc), n_src = qdqi_n_elems(c->in[0].desc);
    const bool is_int = !qdqi_dtype_is_float(c->in[0].desc->dtype);
    const bool wide = c->in[0].desc->dtype == QDQ_DTYPE_F64;
    const float *x_f = is_int || wide ? NULL : qdqi_ref_in_f32(c, 0);
    const double *x_d = wide ? qdqi_ref_in_f64(c, 0) : NULL;
    const int64_t *x_i = is_int ? qdqi_ref_in_i64(c, 0) : NULL;
    const int64_t *axes = qdqi_ref_in_i64(c, 1);
    double *acc = is_int ? NULL : qdqi_ref_out_f64(c, 0);
    int64_t *acc_i = is_int ? qdqi_ref_out_i64(c, 0) : NULL;
    QDQI_REF_READY(c);
    uint32_t n_attr;
    const int64_t *attr = qdqi_op_s64s(c->op, QDQI_A_AXES, &n_attr);
    qdqi_ref_rows r;
    QDQI_TRY(reduced_rows(c, axes == NULL ? attr : axes, axes == NULL ? n_attr : qdqi_n_elems(c->in[1].desc), &r));
    const qdq_dtype dtype = c->in[0].desc->dtype;
    for (int64_t i = 0; i < n_dst; i++) {
        if (is_int) {
            acc_i[i] = kind == MAX ? qdqi_dtype_min(dtype) : kind == MIN ? qdqi_dtype_max(dtype) : kind == PROD;
        } else {
            acc[i] = start_f64(kind);
        }
    }
    for (int64_t at = 0; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r))
        for (int64_t i = 0; i < r.n; i++, at++) {
            const int64_t to = r.off[0] + i * r.step[0];
            if (is_int) {
                acc_i[to] = step_i64(kind, acc_i[to], x_i[at]);
            } else {
                acc[to] = step_f64(kind, acc[to], wide ? x_d[at] : (double)x_f[at]);
            }
        }
    for (int64_t i = 0; i < n_dst && (kind == MEAN || kind == L2); i++)
        acc[i] = kind == MEAN ? acc[i] / (double)(n_src / n_dst) : sqrt(acc[i]);
    return QDQ_OK;
}

qdq_status qdqi_ref_reducel1(qdqi_ref_ctx *c) {
    return reduce(c, L1);
}
qdq_status qdqi_ref_reducel2(qdqi_ref_ctx *c) {
    return reduce(c, L2);
}
qdq_status qdqi_ref_reducemax(qdqi_ref_ctx *c) {
    return reduce(c, MAX);
}
qdq_status qdqi_ref_reducemean(qdqi_ref_ctx *c) {
    return reduce(c, MEAN);
}
qdq_status qdqi_ref_reducemin(qdqi_ref_ctx *c) {
    return reduce(c, MIN);
}
qdq_status qdqi_ref_reduceprod(qdqi_ref_ctx *c) {
    return reduce(c, PROD);
}
qdq_status qdqi_ref_reducesum(qdqi_ref_ctx *c) {
    return reduce(c, SUM);
}

/* ---- order: a NaN counts as larger than everything ---- */

typedef struct keys {
    const double *f;
    const int64_t *i;
} keys;

/* f64 holds every value that is not s64. */
static keys keys_of(qdqi_ref_ctx *c) {
    if (c->in[0].desc->dtype == QDQ_DTYPE_S64) return (keys){.i = qdqi_ref_in_i64(c, 0)};
    return (keys){.f = qdqi_ref_in_f64(c, 0)};
}

static int compare(const keys *k, int64_t a, int64_t b) {
    if (k->i != NULL) return (k->i[a] > k->i[b]) - (k->i[a] < k->i[b]);
    const double x = k->f[a], y = k->f[b];
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

typedef struct lines {
    int64_t outer, n, inner;
} lines;

static qdq_status find_lines(qdqi_ref_ctx *c, int64_t axis_value, lines *l) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, axis_value, src->ndims, &axis));
    l->outer = qdqi_ref_count(src, 0, axis);
    l->n = src->dims[axis];
    l->inner = qdqi_ref_count(src, axis + 1, src->ndims);
    return QDQ_OK;
}

static qdq_status arg(qdqi_ref_ctx *c, int sign) {
    const keys k = keys_of(c);
    int64_t *dst = qdqi_ref_out_i64(c, 0);
    QDQI_REF_READY(c);
    const bool last = qdqi_op_bool(c->op, QDQI_A_SELECT_LAST_INDEX);
    lines l;
    QDQI_TRY(find_lines(c, qdqi_op_s64(c->op, QDQI_A_AXIS), &l));
    if (l.n == 0 && l.outer * l.inner != 0) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "the axis has no elements");
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            const int64_t base = o * l.n * l.inner + i;
            int64_t best = 0;
            for (int64_t x = 1; x < l.n; x++) {
                const int order = sign * compare(&k, base + x * l.inner, base + best * l.inner);
                if (order > 0 || (last && order == 0)) best = x;
            }
            dst[o * l.inner + i] = best;
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_argmax(qdqi_ref_ctx *c) {
    return arg(c, 1);
}

qdq_status qdqi_ref_argmin(qdqi_ref_ctx *c) {
    return arg(c, -1);
}

/* ---- TopK ---- */

typedef struct topk_line {
    const keys *k;
    int64_t base, step;
    int sign;
} topk_line;

/* Does element x come before y in the answer? Ties: the lower index. */
static bool before(const topk_line *t, int64_t x, int64_t y) {
    const int order = t->sign * compare(t->k, t->base + x * t->step, t->base + y * t->step);
    return order > 0 || (order == 0 && x < y);
}

/* A heap whose top is the last of the answer. */
static void sift_down(const topk_line *t, int64_t *heap, int64_t n, int64_t at) {
    for (;;) {
        int64_t worst = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (before(t, heap[worst], heap[child])) worst = child;
        if (worst == at) return;
        const int64_t swap = heap[at];
        heap[at] = heap[worst];
        heap[worst] = swap;
        at = worst;
    }
}

static void topk_of(const topk_line *t, int64_t n, int64_t k, int64_t *heap) {
    for (int64_t i = 0; i < k; i++)
        heap[i] = i;
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        sift_down(t, heap, k, i);
    for (int64_t i = k; k > 0 && i < n; i++)
        if (before(t, i, heap[0])) {
            heap[0] = i;
            sift_down(t, heap, k, 0);
        }
    for (int64_t left = k - 1; left > 0; left--) { /* the worst to the end */
        const int64_t swap = heap[0];
        heap[0] = heap[left];
        heap[left] = swap;
        sift_down(t, heap, left, 0);
    }
}

/* Always sorted: that is a legal answer when `sorted` is 0 too. */
qdq_status qdqi_ref_topk(qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    lines l;
    int32_t axis;
    QDQI_TRY(find_lines(c, qdqi_op_s64(c->op, QDQI_A_AXIS), &l));
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
    const int64_t k = dst->dims[axis];
    const keys values = keys_of(c);
    const int64_t *asked = qdqi_ref_in_i64(c, 1);
    double *dst_f = values.i == NULL && src->dtype != QDQ_DTYPE_S64 ? qdqi_ref_out_f64(c, 0) : NULL;
    int64_t *dst_i = src->dtype == QDQ_DTYPE_S64 ? qdqi_ref_out_i64(c, 0) : NULL;
    int64_t *indices = qdqi_ref_out_i64(c, 1);
    int64_t *heap = qdqi_ref_temp(c, k, sizeof *heap);
    QDQI_REF_READY(c);
    if (qdqi_n_elems(c->in[1].desc) != 1 || *asked != k || k > l.n)
        return qdqi_ref_fail(c, QDQ_E_BAD_ARG, "k does not fit: the output has %lld of %lld elements", (long long)k,
                             (long long)l.n);
    topk_line t = {.k = &values, .step = l.inner, .sign = qdqi_op_bool(c->op, QDQI_A_LARGEST) ? 1 : -1};
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            t.base = o * l.n * l.inner + i;
            topk_of(&t, l.n, k, heap);
            for (int64_t x = 0; x < k; x++) {
                const int64_t to = (o * k + x) * l.inner + i, from = t.base + heap[x] * l.inner;
                if (dst_i != NULL) dst_i[to] = values.i[from];
                if (dst_f != NULL) dst_f[to] = values.f[from];
                if (indices != NULL) indices[to] = heap[x];
            }
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_cumsum(qdqi_ref_ctx *c) {
    const bool is_int = !qdqi_dtype_is_float(c->in[0].desc->dtype);
    const double *x = is_int ? NULL : qdqi_ref_in_f64(c, 0);
    const int64_t *x_i = is_int ? qdqi_ref_in_i64(c, 0) : NULL;
    const int64_t *axis = qdqi_ref_in_i64(c, 1);
    double *y = is_int ? NULL : qdqi_ref_out_f64(c, 0);
    int64_t *y_i = is_int ? qdqi_ref_out_i64(c, 0) : NULL;
    QDQI_REF_READY(c);
    const bool exclusive = qdqi_op_bool(c->op, QDQI_A_EXCLUSIVE), reverse = qdqi_op_bool(c->op, QDQI_A_REVERSE);
    lines l;
    if (qdqi_n_elems(c->in[1].desc) != 1) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "axis is not one value");
    QDQI_TRY(find_lines(c, *axis, &l));
    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t i = 0; i < l.inner; i++) {
            double sum = 0.0;
            int64_t sum_i = 0;
            for (int64_t n = 0; n < l.n; n++) {
                const int64_t at = (o * l.n + (reverse ? l.n - 1 - n : n)) * l.inner + i;
                const double next = is_int ? 0.0 : sum + x[at];
                const int64_t next_i = is_int ? wrap_add(sum_i, x_i[at]) : 0;
                if (is_int) y_i[at] = exclusive ? sum_i : next_i;
                if (!is_int) y[at] = exclusive ? sum : next;
                sum = next;
                sum_i = next_i;
            }
        }
    return QDQ_OK;
}
