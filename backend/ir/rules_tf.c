/* Shapes and checks of TensorFlow's QuantizeV2 and Dequantize. */
#include "ir/rule.h"

#include "base/dtype.h"

#include <math.h>

/* min_range and max_range (and what becomes of them): one value, or one per index of the axis. */
static qdq_status range_shape(const qdqi_infer_ctx *ctx, qdq_tensor_desc *out) {
    const int64_t axis = qdqi_op_s64(ctx->op, QDQI_A_AXIS);
    *out = (qdq_tensor_desc){.ndims = 0};
    if (axis == -1) return QDQ_OK;
    if (axis >= ctx->in[0]->ndims)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_AXIS, QDQI_A_AXIS, "found %" PRId64 ", expected -1 or an axis of input %s",
                              axis, qdqi_in_shape(ctx, 0).s);
    out->ndims = 1;
    out->dims[0] = ctx->in[0]->dims[axis];
    return QDQ_OK;
}

qdq_status qdqi_shape_quantizev2(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    qdq_tensor_desc range;
    QDQI_TRY(range_shape(ctx, &range));
    QDQI_TRY(qdqi_set_out_like(ctx, 0, 0));
    QDQI_TRY(qdqi_set_out(ctx, 1, range.ndims, range.dims));
    return qdqi_set_out(ctx, 2, range.ndims, range.dims);
}

qdq_status qdqi_shape_tfdequantize(const qdqi_infer_ctx *ctx) {
    return qdqi_shape_same(ctx);
}

qdq_status qdqi_shape_dynamicquantizelinear(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(qdqi_set_out(ctx, 1, 0, NULL));
    QDQI_TRY(qdqi_set_out(ctx, 2, 0, NULL));
    return qdqi_shape_same(ctx);
}

static qdq_status check_range_shapes(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    qdq_tensor_desc want;
    QDQI_TRY(range_shape(ctx, &want));
    for (uint32_t i = 1; i < 3; i++) {
        if (!qdqi_in_known(ctx, i)) continue;
        const bool fits = want.ndims == 0 ? qdqi_n_elems(ctx->in[i]) == 1 : qdqi_same_dims(ctx->in[i], &want);
        if (!fits)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 " (%s_range): found shape %s, expected %s", i,
                                  i == 1 ? "min" : "max", qdqi_in_shape(ctx, i).s,
                                  want.ndims == 0 ? "one value" : qdqi_shape_str(1, want.dims).s);
    }
    return QDQ_OK;
}

/* Ranges that are constants: finite, and max not below min. */
static qdq_status check_range_values(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_has_data(ctx, 1) || !qdqi_in_has_data(ctx, 2)) return QDQ_OK;
    const int64_t n = qdqi_n_elems(ctx->in[1]);
    for (int64_t i = 0; i < n && i < qdqi_n_elems(ctx->in[2]); i++) {
        const float low = qdqi_load_f32(ctx->in_data[1], ctx->in[1]->dtype, i);
        const float high = qdqi_load_f32(ctx->in_data[2], ctx->in[2]->dtype, i);
        if (!isfinite(low) || !isfinite(high) || high < low)
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SCALE,
                                  "range %" PRId64 ": found %g to %g, expected finite values, max not below min", i,
                                  (double)low, (double)high);
    }
    return QDQ_OK;
}

qdq_status qdqi_check_tf_quant(const qdqi_infer_ctx *ctx) {
    const bool quantizes = ctx->op->kind == QDQI_OP_QUANTIZEV2;
    const bool scaled = qdqi_op_str_is(ctx->op, QDQI_A_MODE, "SCALED");
    if (quantizes && !scaled && qdqi_op_str_is(ctx->op, QDQI_A_ROUND_MODE, "HALF_TO_EVEN"))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_ROUND_MODE, "found HALF_TO_EVEN, which only mode SCALED has");
    if (quantizes) {
        const float least = qdqi_op_f32(ctx->op, QDQI_A_ENSURE_MINIMUM_RANGE);
        if (!isfinite(least) || least < 0.0f)
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_ENSURE_MINIMUM_RANGE, "found %g, expected 0 or more",
                                  (double)least);
    } else if (ctx->out[0]->dtype == QDQ_DTYPE_BF16 && !qdqi_op_str_is(ctx->op, QDQI_A_MODE, "MIN_COMBINED")) {
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_DTYPE, "output 0: found data type bf16, which only mode MIN_COMBINED has");
    }
    QDQI_TRY(check_range_shapes(ctx));
    const int64_t axis = qdqi_op_s64(ctx->op, QDQI_A_AXIS);
    if (axis >= 0 && qdqi_in_known(ctx, 0) && ctx->in[0]->dims[axis] > 1 &&
        qdqi_op_str_is(ctx->op, QDQI_A_MODE, "MIN_FIRST"))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_UNSUPPORTED, QDQI_A_MODE,
                              "found MIN_FIRST with axis %" PRId64 " of %s: this mode is per tensor only", axis,
                              qdqi_in_shape(ctx, 0).s);
    return check_range_values(ctx);
}
