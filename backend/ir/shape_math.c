/* Shape rules of elementwise ops, matrix products, normalizations, reductions and indices of extremes. */
#include "ir/rule.h"

#include <string.h>

qdq_status qdqi_shape_none(const qdqi_infer_ctx *ctx) {
    (void)ctx;
    return QDQ_OK;
}

qdq_status qdqi_shape_custom(const qdqi_infer_ctx *ctx) {
    const qdq_custom_op *custom = ctx->op->schema->custom;
    qdq_tensor_desc in[QDQI_VARIADIC], out[QDQI_VARIADIC];
    if (ctx->n_in > QDQI_VARIADIC || ctx->n_out > QDQI_VARIADIC)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ARITY, "a custom op takes at most %d inputs and outputs", QDQI_VARIADIC);
    for (uint32_t i = 0; i < ctx->n_in; i++) {
        if (!qdqi_in_known(ctx, i)) return QDQ_OK;
        in[i] = *ctx->in[i];
    }
    for (uint32_t i = 0; i < ctx->n_out; i++)
        out[i] = *ctx->out[i];
    const qdq_status st = custom->infer(in, ctx->n_in, out, ctx->n_out, custom->user);
    if (st != QDQ_OK) return QDQI_RULE_FAIL(ctx, st, "its infer function refused: %s", qdq_status_text(st));
    for (uint32_t i = 0; i < ctx->n_out; i++) {
        if (ctx->out[i]->dtype == QDQ_DTYPE_UNDEF) ctx->out[i]->dtype = out[i].dtype;
        if (ctx->out[i]->dtype != out[i].dtype)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_DTYPE, "output %" PRIu32 ": found data type %s, expected %s", i,
                                  qdq_dtype_name(ctx->out[i]->dtype), qdq_dtype_name(out[i].dtype));
        qdq_error why = {0};
        const qdq_status bad = qdqi_desc_check(&out[i], &why);
        if (bad != QDQ_OK) return QDQI_RULE_FAIL(ctx, bad, "output %" PRIu32 " of its infer function: %s", i, why.text);
        if (qdqi_dims_known(&out[i])) QDQI_TRY(qdqi_set_out(ctx, i, out[i].ndims, out[i].dims));
    }
    return QDQ_OK;
}

qdq_status qdqi_shape_unary(const qdqi_infer_ctx *ctx) {
    return qdqi_in_known(ctx, 0) ? qdqi_set_out_like(ctx, 0, 0) : QDQ_OK;
}

qdq_status qdqi_shape_same(const qdqi_infer_ctx *ctx) {
    return qdqi_shape_unary(ctx);
}

qdq_status qdqi_shape_axis_same(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, ctx->in[0]->ndims, &axis));
    return qdqi_set_out_like(ctx, 0, 0);
}

/* ---- broadcasting ---- */

static qdq_status no_broadcast(const qdqi_infer_ctx *ctx, uint32_t i, const qdq_tensor_desc *so_far) {
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, which does not broadcast with %s",
                          i, qdqi_in_shape(ctx, i).s, qdqi_shape_str(so_far->ndims, so_far->dims).s);
}

/* All inputs from `first` on, into `out`. False in *known when one is unknown. */
static qdq_status broadcast_from(const qdqi_infer_ctx *ctx, uint32_t first, qdq_tensor_desc *out, bool *known) {
    *known = false;
    *out = (qdq_tensor_desc){.ndims = 0};
    for (uint32_t i = first; i < ctx->n_in; i++) {
        if (!qdqi_in_known(ctx, i)) return QDQ_OK;
        qdq_tensor_desc wider = *out;
        if (!qdqi_broadcast(out, ctx->in[i], &wider.ndims, wider.dims)) return no_broadcast(ctx, i, out);
        *out = wider;
    }
    *known = true;
    return QDQ_OK;
}

qdq_status qdqi_shape_broadcast_numpy(const qdqi_infer_ctx *ctx) {
    qdq_tensor_desc out;
    bool known = false;
    QDQI_TRY(broadcast_from(ctx, 0, &out, &known));
    return known ? qdqi_set_out(ctx, 0, out.ndims, out.dims) : QDQ_OK;
}

/* auto_broadcast none: inputs from `first` on have one shape. */
static qdq_status check_auto_broadcast(const qdqi_infer_ctx *ctx, uint32_t first) {
    if (qdqi_op_str_is(ctx->op, QDQI_A_AUTO_BROADCAST, "numpy")) return QDQ_OK;
    for (uint32_t i = first + 1; i < ctx->n_in; i++)
        if (qdqi_in_known(ctx, first) && qdqi_in_known(ctx, i) && !qdqi_same_dims(ctx->in[first], ctx->in[i]))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input %" PRIu32 ": found shape %s, expected %s (auto_broadcast is none)", i,
                                  qdqi_in_shape(ctx, i).s, qdqi_in_shape(ctx, first).s);
    return QDQ_OK;
}

qdq_status qdqi_shape_broadcast(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(check_auto_broadcast(ctx, 0));
    return qdqi_shape_broadcast_numpy(ctx);
}

/* Input i broadcasts into `onto` without making it wider. */
static qdq_status check_one_way(const qdqi_infer_ctx *ctx, uint32_t i, const qdq_tensor_desc *onto) {
    qdq_tensor_desc wide = {.ndims = 0};
    if (qdqi_broadcast(ctx->in[i], onto, &wide.ndims, wide.dims) && qdqi_same_dims(&wide, onto)) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, which does not broadcast to %s", i,
                          qdqi_in_shape(ctx, i).s, qdqi_shape_str(onto->ndims, onto->dims).s);
}

qdq_status qdqi_shape_select(const qdqi_infer_ctx *ctx) {
    qdq_tensor_desc out;
    bool known = false;
    QDQI_TRY(check_auto_broadcast(ctx, 1));
    QDQI_TRY(broadcast_from(ctx, 1, &out, &known));
    if (!known) return QDQ_OK;
    if (qdqi_in_known(ctx, 0)) QDQI_TRY(check_one_way(ctx, 0, &out));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

static qdq_status expect_rank(const qdqi_infer_ctx *ctx, uint32_t i, int32_t least) {
    if (ctx->in[i]->ndims >= least) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, expected rank %d or more", i,
                          qdqi_in_shape(ctx, i).s, (int)least);
}

static int64_t channels(const qdqi_infer_ctx *ctx) {
    return ctx->in[0]->dims[qdqi_channel_dim(ctx->op, ctx->in[0]->ndims)];
}

qdq_status qdqi_shape_biasadd(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_rank(ctx, 0, 2));
    QDQI_TRY(qdqi_expect_vector(ctx, 1, channels(ctx), "channels of src"));
    return qdqi_set_out_like(ctx, 0, 0);
}

/* The slope: one value; one per channel (1-D with per_channel_broadcast); or what broadcasts to src. */
qdq_status qdqi_shape_prelu(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *slope = ctx->in[1];
    if (qdqi_in_known(ctx, 1) && qdqi_n_elems(slope) != 1) {
        if (slope->ndims == 1 && qdqi_op_bool(ctx->op, QDQI_A_PER_CHANNEL_BROADCAST)) {
            QDQI_TRY(expect_rank(ctx, 0, 2));
            QDQI_TRY(qdqi_expect_vector(ctx, 1, channels(ctx), "channels of src"));
        } else {
            QDQI_TRY(check_one_way(ctx, 1, ctx->in[0]));
        }
    }
    return qdqi_set_out_like(ctx, 0, 0);
}

/* ---- matrix products ---- */

/* numpy.matmul: 1-D operands get a dim of 1 that the result loses; batch dims broadcast. */
static qdq_status product_dims(const qdqi_infer_ctx *ctx, uint32_t pa, uint32_t pb, bool ta, bool tb,
                               qdq_tensor_desc *out) {
    const qdq_tensor_desc *a = ctx->in[pa], *b = ctx->in[pb];
    QDQI_TRY(expect_rank(ctx, pa, 1));
    QDQI_TRY(expect_rank(ctx, pb, 1));
    const bool a1 = a->ndims == 1, b1 = b->ndims == 1;
    const int64_t m = a1 ? 1 : a->dims[a->ndims - (ta ? 1 : 2)],
                  ka = a1 ? a->dims[0] : a->dims[a->ndims - (ta ? 2 : 1)];
    const int64_t n = b1 ? 1 : b->dims[b->ndims - (tb ? 2 : 1)],
                  kb = b1 ? b->dims[0] : b->dims[b->ndims - (tb ? 1 : 2)];
    if (ka != kb)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input %" PRIu32 " %s%s has K %" PRId64 ", but input %" PRIu32 " %s%s has %" PRId64, pa,
                              qdqi_in_shape(ctx, pa).s, ta ? " (transposed)" : "", ka, pb, qdqi_in_shape(ctx, pb).s,
                              tb ? " (transposed)" : "", kb);
    qdq_tensor_desc batch_a = *a, batch_b = *b;
    batch_a.ndims = a1 ? 0 : a->ndims - 2;
    batch_b.ndims = b1 ? 0 : b->ndims - 2;
    if (!qdqi_broadcast(&batch_a, &batch_b, &out->ndims, out->dims))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "the batch dims of input %" PRIu32 " %s and input %" PRIu32 " %s do not broadcast", pa,
                              qdqi_in_shape(ctx, pa).s, pb, qdqi_in_shape(ctx, pb).s);
    if (!a1) out->dims[out->ndims++] = m;
    if (!b1) out->dims[out->ndims++] = n;
    return QDQ_OK;
}

qdq_status qdqi_shape_matmul(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    qdq_tensor_desc out = {.ndims = 0};
    QDQI_TRY(product_dims(ctx, 0, 1, qdqi_op_bool(ctx->op, QDQI_A_TRANSPOSE_A),
                          qdqi_op_bool(ctx->op, QDQI_A_TRANSPOSE_B), &out));
    if (qdqi_in_known(ctx, 2)) QDQI_TRY(check_one_way(ctx, 2, &out));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

/* Scale or zero point of an integer product: one value, or one per row of a / column of b. */
static qdq_status expect_per_row(const qdqi_infer_ctx *ctx, uint32_t i, uint32_t matrix, bool rows) {
    if (!qdqi_in_known(ctx, i) || qdqi_n_elems(ctx->in[i]) == 1) return QDQ_OK;
    const qdq_tensor_desc *m = ctx->in[matrix], *v = ctx->in[i];
    const int64_t n = m->ndims < 2 ? 1 : m->dims[m->ndims - (rows ? 2 : 1)];
    if (v->ndims == 1 && v->dims[0] == n) return QDQ_OK;
    /* N-D: the dims of the matrix with its last (a) or last but one (b) reduced to 1 */
    qdq_tensor_desc reduced = *m;
    if (m->ndims >= 2) reduced.dims[m->ndims - (rows ? 1 : 2)] = 1;
    if (qdqi_same_dims(v, &reduced)) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                          "input %" PRIu32 ": found shape %s, expected one value or %" PRId64 " (%s of input %" PRIu32
                          ")",
                          i, qdqi_in_shape(ctx, i).s, n, rows ? "rows" : "columns", matrix);
}

qdq_status qdqi_shape_matmulinteger(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    qdq_tensor_desc out = {.ndims = 0};
    QDQI_TRY(product_dims(ctx, 0, 1, false, false, &out));
    QDQI_TRY(expect_per_row(ctx, 2, 0, true));
    QDQI_TRY(expect_per_row(ctx, 3, 1, false));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

qdq_status qdqi_shape_qlinearmatmul(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 3)) return QDQ_OK;
    qdq_tensor_desc out = {.ndims = 0};
    QDQI_TRY(product_dims(ctx, 0, 3, false, false, &out));
    QDQI_TRY(expect_per_row(ctx, 1, 0, true));
    QDQI_TRY(expect_per_row(ctx, 2, 0, true));
    QDQI_TRY(expect_per_row(ctx, 4, 3, false));
    QDQI_TRY(expect_per_row(ctx, 5, 3, false));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

qdq_status qdqi_shape_gemm(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    for (uint32_t i = 0; i < 2; i++)
        if (ctx->in[i]->ndims != 2)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, expected rank 2", i,
                                  qdqi_in_shape(ctx, i).s);
    qdq_tensor_desc out = {.ndims = 0};
    QDQI_TRY(product_dims(ctx, 0, 1, qdqi_op_bool(ctx->op, QDQI_A_TRANSA), qdqi_op_bool(ctx->op, QDQI_A_TRANSB), &out));
    if (qdqi_in_known(ctx, 2)) QDQI_TRY(check_one_way(ctx, 2, &out));
    return qdqi_set_out(ctx, 0, out.ndims, out.dims);
}

/* ---- normalizations ---- */

qdq_status qdqi_shape_batchnorm(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_rank(ctx, 0, 2));
    for (uint32_t i = 1; i < ctx->n_in; i++)
        QDQI_TRY(qdqi_expect_vector(ctx, i, channels(ctx), "channels of src"));
    return qdqi_set_out_like(ctx, 0, 0);
}

qdq_status qdqi_shape_instancenorm(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_rank(ctx, 0, 3));
    for (uint32_t i = 1; i < ctx->n_in; i++)
        QDQI_TRY(qdqi_expect_vector(ctx, i, ctx->in[0]->dims[1], "channels of src"));
    return qdqi_set_out_like(ctx, 0, 0);
}

/* gamma and beta hold one value per element of the normalized dims, in whatever shape. */
static qdq_status check_affine(const qdqi_infer_ctx *ctx, int32_t axis) {
    int64_t n = 1;
    for (int32_t i = axis; i < ctx->in[0]->ndims; i++)
        n *= ctx->in[0]->dims[i];
    for (uint32_t i = 1; i < ctx->n_in; i++)
        if (qdqi_in_known(ctx, i) && qdqi_n_elems(ctx->in[i]) != n)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                                  "input %" PRIu32 ": found shape %s, expected %" PRId64
                                  " values (normalized dims of src %s)",
                                  i, qdqi_in_shape(ctx, i).s, n, qdqi_in_shape(ctx, 0).s);
    return QDQ_OK;
}

qdq_status qdqi_shape_layernorm(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_BEGIN_NORM_AXIS, ctx->in[0]->ndims, &axis));
    QDQI_TRY(check_affine(ctx, axis));
    for (uint32_t i = 1; i < ctx->n_out; i++)
        QDQI_TRY(qdqi_set_out(ctx, i, axis, ctx->in[0]->dims));
    return qdqi_set_out_like(ctx, 0, 0);
}

qdq_status qdqi_shape_rmsnorm(const qdqi_infer_ctx *ctx) {
    return qdqi_shape_layernorm(ctx);
}

qdq_status qdqi_shape_groupnorm(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_rank(ctx, 0, 3));
    const int64_t groups = qdqi_op_s64(ctx->op, QDQI_A_GROUPS);
    if (channels(ctx) % groups != 0)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_GROUPS,
                              "found %" PRId64 ", expected a divisor of %" PRId64 " channels", groups, channels(ctx));
    for (uint32_t i = 1; i < ctx->n_in; i++)
        QDQI_TRY(qdqi_expect_vector(ctx, i, channels(ctx), "channels of src"));
    const int64_t stats[] = {ctx->in[0]->dims[0], groups};
    for (uint32_t i = 1; i < ctx->n_out; i++)
        QDQI_TRY(qdqi_set_out(ctx, i, 2, stats));
    return qdqi_set_out_like(ctx, 0, 0);
}

/* ---- along axes ---- */

/* dims of input 0 without the axes, or with 1 in their place */
static qdq_status set_reduced(const qdqi_infer_ctx *ctx, const qdqi_axes *axes, bool keep) {
    int64_t dims[QDQ_MAX_NDIMS];
    int32_t n = 0;
    for (int32_t i = 0; i < ctx->in[0]->ndims; i++)
        if (!axes->has[i] || keep) dims[n++] = axes->has[i] ? 1 : ctx->in[0]->dims[i];
    return qdqi_set_out(ctx, 0, n, dims);
}

qdq_status qdqi_shape_reduce(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    qdqi_axes axes;
    bool known = false;
    QDQI_TRY(qdqi_axes_in_or_attr(ctx, 1, QDQI_A_AXES, ctx->in[0]->ndims, &axes, &known));
    return known ? set_reduced(ctx, &axes, qdqi_op_bool(ctx->op, QDQI_A_KEEP_DIMS)) : QDQ_OK;
}

qdq_status qdqi_shape_arg(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    qdqi_axes axes = {.n = 1};
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, ctx->in[0]->ndims, &axes.axis[0]));
    axes.has[axes.axis[0]] = true;
    if (ctx->in[0]->dims[axes.axis[0]] == 0)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input 0: axis %d of shape %s is empty", (int)axes.axis[0],
                              qdqi_in_shape(ctx, 0).s);
    return set_reduced(ctx, &axes, qdqi_op_bool(ctx->op, QDQI_A_KEEPDIMS));
}

/* One value in a constant input that must be a scalar or 1-D of one. */
static qdq_status expect_one(const qdqi_infer_ctx *ctx, uint32_t i) {
    if (!qdqi_in_known(ctx, i) || qdqi_n_elems(ctx->in[i]) == 1) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, expected one value", i,
                          qdqi_in_shape(ctx, i).s);
}

qdq_status qdqi_shape_cumsum(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    QDQI_TRY(expect_one(ctx, 1));
    if (qdqi_in_has_data(ctx, 1)) {
        qdqi_axes axes;
        const int64_t axis = qdqi_in_i64(ctx, 1, 0);
        QDQI_TRY(qdqi_axes_of(ctx, "input axis", &axis, 1, ctx->in[0]->ndims, &axes));
    }
    return qdqi_set_out_like(ctx, 0, 0);
}

qdq_status qdqi_shape_topk(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    int32_t axis = 0;
    QDQI_TRY(qdqi_axis_attr(ctx, QDQI_A_AXIS, ctx->in[0]->ndims, &axis));
    QDQI_TRY(expect_one(ctx, 1));
    if (!qdqi_in_has_data(ctx, 1)) return QDQ_OK;
    const int64_t k = qdqi_in_i64(ctx, 1, 0);
    if (k < 0 || k > ctx->in[0]->dims[axis])
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input k: found %" PRId64 ", expected 0 to %" PRId64 " (axis %d of %s)", k,
                              ctx->in[0]->dims[axis], (int)axis, qdqi_in_shape(ctx, 0).s);
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, ctx->in[0]->dims, sizeof dims);
    dims[axis] = k;
    QDQI_TRY(qdqi_set_out(ctx, 0, ctx->in[0]->ndims, dims));
    return qdqi_set_out(ctx, 1, ctx->in[0]->ndims, dims);
}
