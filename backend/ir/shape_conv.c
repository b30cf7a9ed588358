/* Shape rules of convolutions and pools. */
#include "ir/rule.h"

#include <string.h>

static qdq_status overflow(const qdqi_infer_ctx *ctx, int32_t i) {
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "spatial dim %d: its size overflows", (int)i);
}

/* Windows of size (k-1)*d+1 over src + pads in steps: rounded down, or up when every window still starts before the end
 * padding (one that lay in padding alone would mean nothing). */
static qdq_status window_count(const qdqi_infer_ctx *ctx, const qdqi_spatial *s, int32_t i, int64_t src, int64_t *out) {
    int64_t window = 0, padded = 0, room = 0;
    if (!qdqi_mul_i64(s->kernel[i] - 1, s->dilations[i], &window) || !qdqi_add_i64(window, 1, &window) ||
        !qdqi_add_i64(src, s->pads_begin[i], &padded) || !qdqi_add_i64(padded, s->pads_end[i], &padded) ||
        !qdqi_sub_i64(padded, window, &room))
        return overflow(ctx, i);
    if (s->kernel[i] < 1 || room < 0)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "spatial dim %d: the window %" PRId64 " (kernel %" PRId64 ", dilation %" PRId64
                              ") does not fit into %" PRId64 " + pads %" PRId64 " and %" PRId64,
                              (int)i, window, s->kernel[i], s->dilations[i], src, s->pads_begin[i], s->pads_end[i]);
    int64_t n = room / s->strides[i] + 1;
    int64_t next = 0; /* where one window more would start */
    if (s->ceil_mode && room % s->strides[i] != 0 && qdqi_mul_i64(n, s->strides[i], &next) &&
        next < src + s->pads_begin[i])
        n++;
    *out = n;
    return QDQ_OK;
}

/* dst dims of a conv or pool whose spatial dims are `sp`. */
static qdq_status set_dst(const qdqi_infer_ctx *ctx, const qdqi_spatial *s, const qdq_tensor_desc *src,
                          int64_t channels, const int64_t *sp) {
    int64_t dims[QDQ_MAX_NDIMS];
    dims[0] = src->dims[0];
    dims[s->nxc ? src->ndims - 1 : 1] = channels;
    memcpy(&dims[s->nxc ? 1 : 2], sp, (size_t)s->n * sizeof sp[0]);
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

static int64_t src_channels(const qdqi_spatial *s, const qdq_tensor_desc *src) {
    return src->dims[s->nxc ? src->ndims - 1 : 1];
}

static qdq_status conv_shape(const qdqi_infer_ctx *ctx, uint32_t weights_port, uint32_t bias_port) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, weights_port)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0], *weights = ctx->in[weights_port];
    qdqi_spatial s;
    QDQI_TRY(qdqi_op_spatial(ctx->op, src, weights, &s, ctx->err));
    const int64_t ic = src_channels(&s, src), oc = weights->dims[s.w_oc_dim], per_group = weights->dims[s.w_ic_dim];
    if (ic % s.groups != 0 || ic / s.groups != per_group)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "weights: found %" PRId64 " input channels in %s, expected %" PRId64
                              " of src %s / %" PRId64 " groups",
                              per_group, qdqi_in_shape(ctx, weights_port).s, ic, qdqi_in_shape(ctx, 0).s, s.groups);
    if (oc % s.groups != 0)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "weights: found %" PRId64 " output channels, expected a multiple of %" PRId64 " groups",
                              oc, s.groups);
    QDQI_TRY(qdqi_expect_vector(ctx, bias_port, oc, "output channels"));
    int64_t sp[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < s.n; i++)
        QDQI_TRY(window_count(ctx, &s, i, src->dims[(s.nxc ? 1 : 2) + i], &sp[i]));
    return set_dst(ctx, &s, src, oc, sp);
}

qdq_status qdqi_shape_conv(const qdqi_infer_ctx *ctx) {
    return conv_shape(ctx, 1, 2);
}

/* A zero point: one value, or for weights one per output channel. */
static qdq_status expect_zp(const qdqi_infer_ctx *ctx, uint32_t i, int64_t n, const char *why) {
    if (!qdqi_in_known(ctx, i) || qdqi_n_elems(ctx->in[i]) == 1) return QDQ_OK;
    return qdqi_expect_vector(ctx, i, n, why);
}

qdq_status qdqi_shape_convinteger(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(expect_zp(ctx, 2, 1, "one zero point of x"));
    if (qdqi_in_known(ctx, 1) && ctx->in[1]->ndims >= 3)
        QDQI_TRY(expect_zp(
            ctx, 3, ctx->in[1]->dims[qdqi_op_str_is(ctx->op, QDQI_A_WEIGHTS_FORMAT, "OIX") ? 0 : ctx->in[1]->ndims - 1],
            "output channels"));
    return conv_shape(ctx, 1, QDQI_NONE);
}

qdq_status qdqi_shape_qlinearconv(const qdqi_infer_ctx *ctx) {
    return conv_shape(ctx, 3, 8);
}

/* dst = stride * (src - 1) + (k-1)*d+1 + output_padding - pads */
static qdq_status transposed_size(const qdqi_infer_ctx *ctx, const qdqi_spatial *s, int32_t i, int64_t src,
                                  int64_t *out) {
    int64_t reach = 0, window = 0;
    if (!qdqi_mul_i64(src - 1, s->strides[i], &reach) || !qdqi_mul_i64(s->kernel[i] - 1, s->dilations[i], &window) ||
        !qdqi_add_i64(reach, window, &reach) || !qdqi_add_i64(reach, 1, &reach) ||
        !qdqi_add_i64(reach, s->output_padding[i], &reach) || !qdqi_sub_i64(reach, s->pads_begin[i], &reach) ||
        !qdqi_sub_i64(reach, s->pads_end[i], &reach))
        return overflow(ctx, i);
    if (s->kernel[i] < 1 || src < 1 || reach < 1)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "spatial dim %d: found output size %" PRId64 " (src %" PRId64 ", kernel %" PRId64
                              ", stride %" PRId64 ", pads %" PRId64 " and %" PRId64 "), expected 1 or more",
                              (int)i, reach, src, s->kernel[i], s->strides[i], s->pads_begin[i], s->pads_end[i]);
    *out = reach;
    return QDQ_OK;
}

qdq_status qdqi_shape_convtranspose(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_known(ctx, 1)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0], *weights = ctx->in[1];
    qdqi_spatial s;
    QDQI_TRY(qdqi_op_spatial(ctx->op, src, weights, &s, ctx->err));
    const int64_t ic = src_channels(&s, src), per_group = weights->dims[s.w_oc_dim];
    if (weights->dims[s.w_ic_dim] != ic || ic % s.groups != 0)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "weights: found %" PRId64 " input channels in %s, expected %" PRId64
                              " of src %s, a multiple of %" PRId64 " groups",
                              weights->dims[s.w_ic_dim], qdqi_in_shape(ctx, 1).s, ic, qdqi_in_shape(ctx, 0).s,
                              s.groups);
    int64_t oc = 0, sp[QDQ_MAX_NDIMS];
    if (!qdqi_mul_i64(per_group, s.groups, &oc))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "weights: the number of output channels overflows");
    QDQI_TRY(qdqi_expect_vector(ctx, 2, oc, "output channels"));
    for (int32_t i = 0; i < s.n; i++)
        QDQI_TRY(transposed_size(ctx, &s, i, src->dims[(s.nxc ? 1 : 2) + i], &sp[i]));
    return set_dst(ctx, &s, src, oc, sp);
}

qdq_status qdqi_shape_pool(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    qdqi_spatial s;
    QDQI_TRY(qdqi_op_spatial(ctx->op, src, NULL, &s, ctx->err));
    int64_t sp[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < s.n; i++)
        QDQI_TRY(window_count(ctx, &s, i, src->dims[(s.nxc ? 1 : 2) + i], &sp[i]));
    return set_dst(ctx, &s, src, src_channels(&s, src), sp);
}

qdq_status qdqi_shape_globalpool(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    qdqi_spatial s;
    QDQI_TRY(qdqi_op_spatial(ctx->op, src, NULL, &s, ctx->err));
    int64_t sp[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < s.n; i++) {
        sp[i] = 1;
        if (s.kernel[i] == 0)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "src: spatial dim %d of %s is empty", (int)i,
                                  qdqi_in_shape(ctx, 0).s);
    }
    return set_dst(ctx, &s, src, src_channels(&s, src), sp);
}
