/* Shape rules of data movement: reshapes, transposes, slices, gathers, pads, and shape arithmetic. */
#include "ir/rule.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

static bool same_count(const qdq_tensor_desc *src, int32_t ndims, const int64_t *dims) {
    int64_t n = 1;
    for (int32_t i = 0; i < ndims; i++)
        if (!qdqi_mul_i64(n, dims[i], &n)) return false;
    return n == qdqi_n_elems(src);
}

/* `want` with 0 meaning "as in src" when zero_copies, and one -1 meaning "what is left". */
static qdq_status reshape(const qdqi_infer_ctx *ctx, const int64_t *want, int64_t n, bool zero_copies) {
    const qdq_tensor_desc *src = ctx->in[0];
    int64_t dims[QDQ_MAX_NDIMS], rest = 1;
    int32_t infer = -1;
    if (n > QDQ_MAX_NDIMS)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "shape: found rank %" PRId64 ", expected at most %d", n,
                              QDQ_MAX_NDIMS);
    const qdqi_shape_text wanted = qdqi_shape_str((int32_t)n, want);
    for (int32_t i = 0; i < n; i++) {
        dims[i] = want[i];
        if (want[i] == 0 && zero_copies) {
            if (i >= src->ndims)
                return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "shape: found %s, but dim %d of src %s is none to copy",
                                      wanted.s, (int)i, qdqi_in_shape(ctx, 0).s);
            dims[i] = src->dims[i];
        }
        if (dims[i] < -1 || (dims[i] == -1 && infer >= 0))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "shape: found %s, expected dims of 0 or more and at most one -1", wanted.s);
        if (dims[i] == -1)
            infer = i;
        else if (!qdqi_mul_i64(rest, dims[i], &rest))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "shape: found %s, its size overflows", wanted.s);
    }
    if (infer >= 0) dims[infer] = rest > 0 ? qdqi_n_elems(src) / rest : 0;
    if (!same_count(src, (int32_t)n, dims) || (infer >= 0 && rest == 0))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "shape: found %s, which does not hold the elements of src %s",
                              wanted.s, qdqi_in_shape(ctx, 0).s);
    return qdqi_set_out(ctx, 0, (int32_t)n, dims);
}

qdq_status qdqi_shape_staticreshape(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    uint32_t n = 0;
    const int64_t *shape = qdqi_op_s64s(ctx->op, QDQI_A_SHAPE, &n);
    return reshape(ctx, shape, n, qdqi_op_bool(ctx->op, QDQI_A_SPECIAL_ZERO));
}

qdq_status qdqi_shape_reshape(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    int64_t shape[QDQ_MAX_NDIMS], n = 0;
    QDQI_TRY(qdqi_in_list(ctx, 1, QDQ_MAX_NDIMS, shape, &n));
    return reshape(ctx, shape, n, !qdqi_op_bool(ctx->op, QDQI_A_ALLOWZERO));
}

qdq_status qdqi_shape_flatten(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    const int64_t given = qdqi_op_s64(ctx->op, QDQI_A_AXIS);
    const int64_t axis = given < 0 ? given + src->ndims : given; /* may be the rank itself */
    if (axis < 0 || axis > src->ndims)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_AXIS, "found %" PRId64 ", expected %d to %d", given,
                              -(int)src->ndims, (int)src->ndims);
    int64_t dims[2] = {1, 1};
    for (int32_t i = 0; i < src->ndims; i++)
        dims[i < axis ? 0 : 1] *= src->dims[i];
    return qdqi_set_out(ctx, 0, 2, dims);
}

qdq_status qdqi_shape_squeeze(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    qdqi_axes axes;
    bool known = false;
    QDQI_TRY(qdqi_axes_in_or_attr(ctx, 1, QDQI_A_AXES, src->ndims, &axes, &known));
    if (!known) return QDQ_OK;
    const bool all = axes.n == 0 && ctx->n_in < 2; /* no axes given: every dim of 1 */
    int64_t dims[QDQ_MAX_NDIMS];
    int32_t n = 0;
    for (int32_t i = 0; i < src->ndims; i++) {
        if (axes.has[i] && src->dims[i] != 1)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "axes: axis %d of %s is not 1", (int)i,
                                  qdqi_in_shape(ctx, 0).s);
        if (!axes.has[i] && !(all && src->dims[i] == 1)) dims[n++] = src->dims[i];
    }
    return qdqi_set_out(ctx, 0, n, dims);
}

qdq_status qdqi_shape_unsqueeze(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    /* axes count in the output's rank */
    int64_t n_axes = 0;
    if (ctx->n_in > 1) {
        if (!qdqi_in_has_data(ctx, 1)) return QDQ_OK;
        n_axes = qdqi_n_elems(ctx->in[1]);
    } else {
        uint32_t n = 0;
        qdqi_op_s64s(ctx->op, QDQI_A_AXES, &n);
        n_axes = n;
    }
    if (n_axes == 0 || n_axes > QDQ_MAX_NDIMS - src->ndims)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "axes: found %" PRId64 " for src %s, expected 1 to %d", n_axes,
                              qdqi_in_shape(ctx, 0).s, QDQ_MAX_NDIMS - (int)src->ndims);
    const int32_t ndims = src->ndims + (int32_t)n_axes;
    qdqi_axes axes;
    bool known = false;
    QDQI_TRY(qdqi_axes_in_or_attr(ctx, 1, QDQI_A_AXES, ndims, &axes, &known));
    int64_t dims[QDQ_MAX_NDIMS];
    for (int32_t i = 0, from = 0; i < ndims; i++)
        dims[i] = axes.has[i] ? 1 : src->dims[from++];
    return qdqi_set_out(ctx, 0, ndims, dims);
}

qdq_status qdqi_shape_statictranspose(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    uint32_t n = 0;
    const int64_t *order = qdqi_op_s64s(ctx->op, QDQI_A_ORDER, &n);
    if (n != 0 && n != (uint32_t)src->ndims)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_ORDER, "found %" PRIu32 " values, expected %d (src %s)", n,
                              (int)src->ndims, qdqi_in_shape(ctx, 0).s);
    qdqi_axes axes;
    QDQI_TRY(qdqi_axes_of(ctx, "attribute \"order\"", order, n, src->ndims, &axes));
    int64_t dims[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < src->ndims; i++)
        dims[i] = src->dims[n == 0 ? src->ndims - 1 - i : axes.axis[i]]; /* empty: reversed */
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

qdq_status qdqi_shape_concat(const qdqi_infer_ctx *ctx) {
    for (uint32_t i = 0; i < ctx->n_in; i++)
        if (!qdqi_in_known(ctx, i)) return QDQ_OK;
    const qdq_tensor_desc *first = ctx->in[0];
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, first->ndims, &axis));
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, first->dims, sizeof dims);
    for (uint32_t i = 1; i < ctx->n_in; i++) {
        bool fits = ctx->in[i]->ndims == first->ndims;
        for (int32_t d = 0; d < first->ndims && fits; d++)
            fits = d == axis || ctx->in[i]->dims[d] == first->dims[d];
        if (!fits)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input %" PRIu32 ": found shape %s, expected %s except along axis %d", i,
                                  qdqi_in_shape(ctx, i).s, qdqi_in_shape(ctx, 0).s, (int)axis);
        if (!qdqi_add_i64(dims[axis], ctx->in[i]->dims[axis], &dims[axis]))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "axis %d: its size overflows", (int)axis);
    }
    return qdqi_set_out(ctx, 0, first->ndims, dims);
}

/* Equal parts, the last one smaller when it does not divide. */
static int64_t equal_part(int64_t total, int64_t parts, int64_t i) {
    const int64_t size = total / parts + (total % parts != 0);
    const int64_t begin = i * size < total ? i * size : total;
    return size < total - begin ? size : total - begin;
}

qdq_status qdqi_shape_split(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, src->ndims, &axis));
    const qdqi_attr *num = qdqi_op_attr_or_null(ctx->op, QDQI_A_NUM_OUTPUTS);
    if (num != NULL && num->v.s64 != (int64_t)ctx->n_out)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_NUM_OUTPUTS,
                              "found %" PRId64 ", expected %" PRIu32 " outputs", num->v.s64, ctx->n_out);
    uint32_t n_attr = 0;
    const int64_t *attr = qdqi_op_s64s(ctx->op, QDQI_A_SPLIT, &n_attr);
    const bool from_input = ctx->n_in > 1;
    if (from_input && !qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    const int64_t n_sizes = from_input ? qdqi_n_elems(ctx->in[1]) : n_attr;
    if (n_sizes != 0 && n_sizes != (int64_t)ctx->n_out)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "split: found %" PRId64 " sizes, expected %" PRIu32 " (outputs)",
                              n_sizes, ctx->n_out);
    int64_t dims[QDQ_MAX_NDIMS], total = 0;
    memcpy(dims, src->dims, sizeof dims);
    for (uint32_t i = 0; i < ctx->n_out; i++) {
        int64_t *size = &dims[axis];
        *size =
            n_sizes == 0 ? equal_part(src->dims[axis], ctx->n_out, i) : (from_input ? qdqi_in_i64(ctx, 1, i) : attr[i]);
        if (*size < 0 || !qdqi_add_i64(total, *size, &total) || total > src->dims[axis])
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "split: size %" PRId64 " of output %" PRIu32 " does not fit into axis %d of %s",
                                  *size, i, (int)axis, qdqi_in_shape(ctx, 0).s);
        QDQI_TRY(qdqi_set_out(ctx, i, src->ndims, dims));
    }
    if (total != src->dims[axis])
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "split: the sizes sum up to %" PRId64 ", expected %" PRId64 " (axis %d of %s)", total,
                              src->dims[axis], (int)axis, qdqi_in_shape(ctx, 0).s);
    return QDQ_OK;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : (v > high ? high : v);
}

/* Elements of start:end:step along a dim; numpy's rules for negative and out-of-range values. */
static int64_t slice_count(int64_t dim, int64_t start, int64_t end, int64_t step) {
    if (start < 0) start = start < -dim ? -1 : start + dim;
    if (end < 0) end = end < -dim ? -1 : end + dim;
    if (step > 0) {
        start = clamp(start, 0, dim);
        end = clamp(end, 0, dim);
        return end > start ? (end - start - 1) / step + 1 : 0;
    }
    start = clamp(start, -1, dim - 1);
    end = clamp(end, -1, dim - 1);
    /* the negation of the smallest step would overflow: one element is all it can take */
    return start > end ? (step == INT64_MIN ? 1 : (start - end - 1) / -step + 1) : 0;
}

qdq_status qdqi_shape_slice(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    int64_t lists[5][QDQ_MAX_NDIMS], n[5] = {0};
    for (uint32_t i = 1; i < ctx->n_in; i++) {
        if (ctx->in[i] == NULL) continue;
        if (!qdqi_in_has_data(ctx, i)) return QDQ_OK;
        QDQI_TRY(qdqi_in_list(ctx, i, QDQ_MAX_NDIMS, lists[i], &n[i]));
        if (n[i] != n[1])
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input %" PRIu32 ": found %" PRId64 " values, expected %" PRId64 " (as starts)", i,
                                  n[i], n[1]);
    }
    const bool has_axes = ctx->n_in > 3 && ctx->in[3] != NULL, has_steps = ctx->n_in > 4;
    for (int64_t i = 0; i < n[1] && !has_axes; i++)
        lists[3][i] = i;
    qdqi_axes axes;
    QDQI_TRY(qdqi_axes_of(ctx, "input axes", lists[3], n[1], src->ndims, &axes));
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, src->dims, sizeof dims);
    for (int64_t i = 0; i < n[1]; i++) {
        const int64_t step = has_steps ? lists[4][i] : 1;
        if (step == 0) return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input steps: found 0");
        dims[axes.axis[i]] = slice_count(src->dims[axes.axis[i]], lists[1][i], lists[2][i], step);
    }
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

qdq_status qdqi_shape_gather(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0], *at = ctx->in[1];
    int32_t axis = 0, n = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, src->ndims, &axis));
    int64_t dims[2 * QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < axis; i++)
        dims[n++] = src->dims[i];
    for (int32_t i = 0; i < at->ndims; i++)
        dims[n++] = at->dims[i];
    for (int32_t i = axis + 1; i < src->ndims; i++)
        dims[n++] = src->dims[i];
    return qdqi_set_out(ctx, 0, n, dims);
}

qdq_status qdqi_shape_gatherelements(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0], *at = ctx->in[1];
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, src->ndims, &axis));
    bool fits = src->ndims == at->ndims;
    for (int32_t i = 0; i < src->ndims && fits; i++)
        fits = i == axis || at->dims[i] <= src->dims[i];
    if (!fits)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input 1: found shape %s, expected to lie in %s except along axis %d",
                              qdqi_in_shape(ctx, 1).s, qdqi_in_shape(ctx, 0).s, (int)axis);
    return qdqi_set_out_like(ctx, 0, 1);
}

qdq_status qdqi_shape_pad(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    int64_t pads[2 * QDQ_MAX_NDIMS], n = 0, listed[QDQ_MAX_NDIMS], n_axes = src->ndims;
    QDQI_TRY(qdqi_in_list(ctx, 1, 2 * QDQ_MAX_NDIMS, pads, &n));
    for (int32_t i = 0; i < src->ndims; i++)
        listed[i] = i;
    if (ctx->n_in > 3) {
        if (!qdqi_in_has_data(ctx, 3)) return QDQ_OK;
        QDQI_TRY(qdqi_in_list(ctx, 3, QDQ_MAX_NDIMS, listed, &n_axes));
    }
    qdqi_axes axes;
    QDQI_TRY(qdqi_axes_of(ctx, "input axes", listed, n_axes, src->ndims, &axes));
    if (n != 2 * n_axes)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input pads: found %" PRId64 " values, expected %" PRId64 " (two per axis)", n,
                              2 * n_axes);
    const bool reflect = qdqi_op_str_is(ctx->op, QDQI_A_MODE, "reflect");
    const bool constant = qdqi_op_str_is(ctx->op, QDQI_A_MODE, "constant");
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, src->dims, sizeof dims);
    for (int64_t i = 0; i < n_axes; i++) {
        int64_t *dim = &dims[axes.axis[i]];
        const int64_t was = *dim, begin = pads[i], end = pads[n_axes + i];
        const bool needs_content = begin > 0 || end > 0;
        if ((reflect && needs_content && (begin >= was || end >= was)) || (!constant && needs_content && was == 0))
            return QDQI_RULE_FAIL(
                ctx, QDQ_E_BAD_SHAPE,
                "input pads: found %" PRId64 " and %" PRId64 " on axis %d of %s, too much for mode %s", begin, end,
                (int)axes.axis[i], qdqi_in_shape(ctx, 0).s, qdqi_op_str(ctx->op, QDQI_A_MODE));
        if (!qdqi_add_i64(*dim, begin, dim) || !qdqi_add_i64(*dim, end, dim) || *dim < 0 ||
            (begin < 0 && was + begin < 0) || (end < 0 && was + end < 0))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input pads: found %" PRId64 " and %" PRId64 " on axis %d of %s", begin, end,
                                  (int)axes.axis[i], qdqi_in_shape(ctx, 0).s);
    }
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

/* A shape given as the content of input i. */
static qdq_status shape_in(const qdqi_infer_ctx *ctx, uint32_t i, qdq_tensor_desc *out) {
    int64_t n = 0;
    QDQI_TRY(qdqi_in_list(ctx, i, QDQ_MAX_NDIMS, out->dims, &n));
    out->ndims = (int32_t)n;
    for (int32_t d = 0; d < out->ndims; d++)
        if (out->dims[d] < 0)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input %" PRIu32 ": found %" PRId64 ", expected dims of 0 or more", i, out->dims[d]);
    return QDQ_OK;
}

qdq_status qdqi_shape_expand(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    qdq_tensor_desc want = {.ndims = 0}, out = {.ndims = 0};
    QDQI_TRY(shape_in(ctx, 1, &want));
    if (!qdqi_broadcast(ctx->in[0], &want, &out.ndims, out.dims))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input 0: found shape %s, which does not broadcast with %s",
                              qdqi_in_shape(ctx, 0).s, qdqi_shape_str(want.ndims, want.dims).s);
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

qdq_status qdqi_shape_tile(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    qdq_tensor_desc times = {.ndims = 0};
    QDQI_TRY(shape_in(ctx, 1, &times));
    if (times.ndims != src->ndims)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input repeats: found %d values, expected %d (rank of %s)",
                              (int)times.ndims, (int)src->ndims, qdqi_in_shape(ctx, 0).s);
    int64_t dims[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < src->ndims; i++)
        if (!qdqi_mul_i64(src->dims[i], times.dims[i], &dims[i]))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "dim %d: its size overflows", (int)i);
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

qdq_status qdqi_shape_constantofshape(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_has_data(ctx, 0)) return QDQ_OK;
    qdq_tensor_desc out = {.ndims = 0};
    QDQI_TRY(shape_in(ctx, 0, &out));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

qdq_status qdqi_shape_shape(const qdqi_infer_ctx *ctx) {
    const int32_t ndims = ctx->in[0]->ndims;
    if (ndims == QDQ_NDIMS_UNKNOWN) return QDQ_OK;
    const qdqi_attr *end_attr = qdqi_op_attr_or_null(ctx->op, QDQI_A_END);
    int64_t start = qdqi_op_s64(ctx->op, QDQI_A_START), end = end_attr == NULL ? ndims : end_attr->v.s64;
    start = clamp(start < 0 ? start + ndims : start, 0, ndims);
    end = clamp(end < 0 ? end + ndims : end, 0, ndims);
    const int64_t n = end > start ? end - start : 0;
    return qdqi_set_out(ctx, 0, 1, &n);
}

qdq_status qdqi_shape_range(const qdqi_infer_ctx *ctx) {
    for (uint32_t i = 0; i < 3; i++) {
        if (!qdqi_in_known(ctx, i)) return QDQ_OK;
        if (qdqi_n_elems(ctx->in[i]) != 1)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, expected one value", i,
                                  qdqi_in_shape(ctx, i).s);
        if (ctx->in_data[i] == NULL) return QDQ_OK;
    }
    int64_t n = 0;
    if (qdqi_dtype_is_int(ctx->in[0]->dtype)) {
        const int64_t start = qdqi_in_i64(ctx, 0, 0), limit = qdqi_in_i64(ctx, 1, 0), delta = qdqi_in_i64(ctx, 2, 0);
        int64_t span = 0;
        if (delta == 0 || delta == INT64_MIN || !qdqi_sub_i64(limit, start, &span))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "found start %" PRId64 ", limit %" PRId64 ", delta %" PRId64,
                                  start, limit, delta);
        if ((span > 0) == (delta > 0) && span != 0) n = span / delta + (span % delta != 0);
    } else {
        double v[3];
        for (uint32_t i = 0; i < 3; i++)
            v[i] = qdqi_load_f64(ctx->in_data[i], ctx->in[i]->dtype, 0);
        const double count = ceil((v[1] - v[0]) / v[2]);
        if (!(count < 9.0e15)) /* NaN and infinity too */
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "found start %g, limit %g, delta %g", v[0], v[1], v[2]);
        n = count > 0 ? (int64_t)count : 0;
    }
    return qdqi_set_out(ctx, 0, 1, &n);
}

static qdq_status expect_nchw(const qdqi_infer_ctx *ctx) {
    if (ctx->in[0]->ndims == 4) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input 0: found shape %s, expected rank 4", qdqi_in_shape(ctx, 0).s);
}

static qdq_status bad_block(const qdqi_infer_ctx *ctx, int64_t block) {
    return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_BLOCKSIZE, "found %" PRId64 ", which does not fit src %s", block,
                          qdqi_in_shape(ctx, 0).s);
}

qdq_status qdqi_shape_depthtospace(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_nchw(ctx));
    const int64_t *d = ctx->in[0]->dims, block = qdqi_op_s64(ctx->op, QDQI_A_BLOCKSIZE);
    int64_t dims[4] = {d[0], d[1] / (block * block), 0, 0};
    if (d[1] % (block * block) != 0 || !qdqi_mul_i64(d[2], block, &dims[2]) || !qdqi_mul_i64(d[3], block, &dims[3]))
        return bad_block(ctx, block);
    return qdqi_set_out(ctx, 0, 4, dims);
}

qdq_status qdqi_shape_spacetodepth(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_nchw(ctx));
    const int64_t *d = ctx->in[0]->dims, block = qdqi_op_s64(ctx->op, QDQI_A_BLOCKSIZE);
    int64_t dims[4] = {d[0], 0, d[2] / block, d[3] / block};
    if (d[2] % block != 0 || d[3] % block != 0 || !qdqi_mul_i64(d[1], block * block, &dims[1]))
        return bad_block(ctx, block);
    return qdqi_set_out(ctx, 0, 4, dims);
}
