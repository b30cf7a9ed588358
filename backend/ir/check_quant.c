/* Checks of quantization parameters: lengths against shapes, values against data types, axes against ranks. */
#include "ir/rule.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

static bool is_f8(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F8_E4M3 || dtype == QDQ_DTYPE_F8_E5M2;
}

static bool is_good_scale(double scale) {
    return isfinite(scale) && scale != 0.0;
}

/* The tensor whose shape the parameters are about: src, or dst when only that is known. */
static const qdq_tensor_desc *subject(const qdqi_infer_ctx *ctx) {
    if (ctx->in[0]->ndims == QDQ_NDIMS_UNKNOWN && ctx->out[0]->ndims != QDQ_NDIMS_UNKNOWN) return ctx->out[0];
    return ctx->in[0];
}

/* The axis of per_channel on `src`; *dim_out is its size, or QDQ_DIM_UNKNOWN when the rank or the dim is not known. */
static qdq_status channel_axis(const qdqi_infer_ctx *ctx, const qdq_tensor_desc *src, int32_t *axis_out,
                               int64_t *dim_out) {
    *axis_out = 0;
    *dim_out = QDQ_DIM_UNKNOWN;
    if (src->ndims == QDQ_NDIMS_UNKNOWN) return QDQ_OK;
    const int64_t axis = qdqi_op_s64(ctx->op, QDQI_A_AXIS);
    if (!qdqi_norm_axis(axis, src->ndims, axis_out))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_AXIS, QDQI_A_AXIS, "found %" PRId64 ", expected an axis of src %s", axis,
                              qdqi_shape_str(src->ndims, src->dims).s);
    *dim_out = src->dims[*axis_out];
    return QDQ_OK;
}

/* ---- Quantize, Dequantize: parameters are attributes ---- */

static qdq_status check_static_zps(const qdqi_infer_ctx *ctx, uint32_t n_scales) {
    uint32_t n_zps = 0;
    const int64_t *zps = qdqi_op_s64s(ctx->op, QDQI_A_ZPS, &n_zps);
    if (n_zps == 0) return QDQ_OK;
    const bool quantizes = ctx->op->kind == QDQI_OP_QUANTIZE;
    const qdq_dtype dtype = quantizes ? ctx->out[0]->dtype : ctx->in[0]->dtype;
    if (n_zps != n_scales && n_zps != 1)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ZERO_POINT, QDQI_A_ZPS,
                              "found %" PRIu32 " values, expected %" PRIu32 " (as scales) or one or none", n_zps,
                              n_scales);
    if (dtype == QDQ_DTYPE_UNDEF) return QDQ_OK;
    if (is_f8(dtype))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ZERO_POINT, QDQI_A_ZPS,
                              "found %" PRIu32 " values, but %s has no zero point", n_zps, qdq_dtype_name(dtype));
    for (uint32_t i = 0; i < n_zps; i++)
        if (zps[i] < qdqi_dtype_min(dtype) || zps[i] > qdqi_dtype_max(dtype))
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ZERO_POINT, QDQI_A_ZPS,
                                  "value %" PRIu32 ": found %" PRId64 ", expected %" PRId64 " to %" PRId64 " (%s)", i,
                                  zps[i], qdqi_dtype_min(dtype), qdqi_dtype_max(dtype), qdq_dtype_name(dtype));
    return QDQ_OK;
}

qdq_status qdqi_check_static_quant(const qdqi_infer_ctx *ctx) {
    uint32_t n = 0;
    const float *scales = qdqi_op_f32s(ctx->op, QDQI_A_SCALES, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!is_good_scale((double)scales[i]))
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_SCALE, QDQI_A_SCALES,
                                  "value %" PRIu32 ": found %g, expected a finite non-zero number", i,
                                  (double)scales[i]);
    int64_t expected = 1;
    if (qdqi_op_str_is(ctx->op, QDQI_A_QTYPE, "per_channel")) {
        int32_t axis = 0;
        const qdq_tensor_desc *src = subject(ctx);
        QDQI_TRY(channel_axis(ctx, src, &axis, &expected));
        if (expected != QDQ_DIM_UNKNOWN && (int64_t)n != expected)
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_SCALE, QDQI_A_SCALES,
                                  "found %" PRIu32 " values, expected %" PRId64 " (per_channel, axis %d of %s)", n,
                                  expected, (int)axis, qdqi_shape_str(src->ndims, src->dims).s);
        if (expected == QDQ_DIM_UNKNOWN && n == 0)
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_SCALE, QDQI_A_SCALES, "found no values");
    } else if (n != 1) {
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_SCALE, QDQI_A_SCALES, "found %" PRIu32 " values, expected 1 (per_tensor)",
                              n);
    }
    return check_static_zps(ctx, n);
}

/* ---- parameters are inputs: what their contents say, once they are constants ---- */

static qdq_status check_scale_values(const qdqi_infer_ctx *ctx, uint32_t port) {
    if (!qdqi_in_has_data(ctx, port)) return QDQ_OK;
    const int64_t n = qdqi_n_elems(ctx->in[port]);
    for (int64_t i = 0; i < n; i++) {
        const double scale = qdqi_load_f64(ctx->in_data[port], ctx->in[port]->dtype, i);
        if (!is_good_scale(scale))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SCALE,
                                  "input %" PRIu32 " (scale): value %" PRId64
                                  ": found %g, expected a finite non-zero number",
                                  port, i, scale);
    }
    return QDQ_OK;
}

/* Every value of a constant zero point lies in low…high. */
static qdq_status check_zp_values(const qdqi_infer_ctx *ctx, uint32_t port, double low, double high, const char *why) {
    if (!qdqi_in_has_data(ctx, port)) return QDQ_OK;
    const int64_t n = qdqi_n_elems(ctx->in[port]);
    for (int64_t i = 0; i < n; i++) {
        const double zp = qdqi_load_f64(ctx->in_data[port], ctx->in[port]->dtype, i);
        if (!(zp >= low && zp <= high))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ZERO_POINT,
                                  "input %" PRIu32 " (zero point): value %" PRId64 ": found %g, expected %g to %g (%s)",
                                  port, i, zp, low, high, why);
    }
    return QDQ_OK;
}

/* The shape of a parameter input is `want`, named by `why`. */
static qdq_status fail_shape(const qdqi_infer_ctx *ctx, uint32_t port, const qdq_tensor_desc *want, const char *why) {
    return QDQI_RULE_FAIL(ctx, port == 1 ? QDQ_E_BAD_SCALE : QDQ_E_BAD_ZERO_POINT,
                          "input %" PRIu32 " (%s): found shape %s, expected %s (%s)", port,
                          port == 1 ? "scale" : "zero point", qdqi_in_shape(ctx, port).s,
                          qdqi_shape_str(want->ndims, want->dims).s, why);
}

static qdq_status expect_one_value(const qdqi_infer_ctx *ctx, uint32_t port, const char *why) {
    const qdq_tensor_desc one = {.ndims = 1, .dims = {1}};
    if (!qdqi_in_known(ctx, port) || qdqi_n_elems(ctx->in[port]) == 1) return QDQ_OK;
    return fail_shape(ctx, port, &one, why);
}

static qdq_status expect_shape(const qdqi_infer_ctx *ctx, uint32_t port, const qdq_tensor_desc *want, const char *why) {
    if (!qdqi_in_known(ctx, port) || qdqi_same_dims(ctx->in[port], want)) return QDQ_OK;
    return fail_shape(ctx, port, want, why);
}

/* ---- DynamicQuantize, DynamicDequantize ---- */

static qdq_status check_per_channel(const qdqi_infer_ctx *ctx) {
    int32_t axis = 0;
    qdq_tensor_desc want = {.ndims = 1};
    QDQI_TRY(channel_axis(ctx, subject(ctx), &axis, &want.dims[0]));
    if (want.dims[0] == QDQ_DIM_UNKNOWN) return QDQ_OK;
    QDQI_TRY(expect_shape(ctx, 1, &want, "per_channel"));
    if (qdqi_in_known(ctx, 2) && qdqi_n_elems(ctx->in[2]) == 1) return QDQ_OK;
    return expect_shape(ctx, 2, &want, "per_channel; one value is legal too");
}

static qdq_status check_per_group(const qdqi_infer_ctx *ctx) {
    uint32_t n = 0;
    const int64_t *group = qdqi_op_s64s(ctx->op, QDQI_A_GROUP_SHAPE, &n);
    const qdq_tensor_desc *src = subject(ctx);
    if (n == 0)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_GROUP_SHAPE,
                              "missing, expected one value per dim (per_group)");
    if (src->ndims == QDQ_NDIMS_UNKNOWN) return QDQ_OK;
    const qdqi_shape_text shape = qdqi_shape_str(src->ndims, src->dims);
    if (src->ndims < 2)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "src: found shape %s, expected rank 2 or more (per_group)",
                              shape.s);
    if (n != (uint32_t)src->ndims)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_GROUP_SHAPE,
                              "found %" PRIu32 " values, expected %d (rank of src %s)", n, (int)src->ndims, shape.s);
    qdq_tensor_desc want = {.ndims = src->ndims};
    for (int32_t i = 0; i < src->ndims; i++) {
        if (src->dims[i] == QDQ_DIM_UNKNOWN) return QDQ_OK;
        if (src->dims[i] % group[i] != 0)
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_GROUP_SHAPE,
                                  "value %d: found %" PRId64 ", which does not divide dim %" PRId64 " of src %s",
                                  (int)i, group[i], src->dims[i], shape.s);
        want.dims[i] = src->dims[i] / group[i];
    }
    QDQI_TRY(expect_shape(ctx, 1, &want, "src / group_shape"));
    return expect_shape(ctx, 2, &want, "src / group_shape");
}

qdq_status qdqi_check_dynamic_quant(const qdqi_infer_ctx *ctx) {
    const char *qtype = qdqi_op_str(ctx->op, QDQI_A_QTYPE);
    if (strcmp(qtype, "per_tensor") == 0) {
        QDQI_TRY(expect_one_value(ctx, 1, "per_tensor"));
        QDQI_TRY(expect_one_value(ctx, 2, "per_tensor"));
    } else if (strcmp(qtype, "per_channel") == 0) {
        QDQI_TRY(check_per_channel(ctx));
    } else {
        QDQI_TRY(check_per_group(ctx));
    }
    QDQI_TRY(check_scale_values(ctx, 1));
    const bool quantizes = ctx->op->kind == QDQI_OP_DYNAMICQUANTIZE;
    const qdq_dtype stored = quantizes ? ctx->out[0]->dtype : ctx->in[0]->dtype;
    if (is_f8(stored) && ctx->n_in > 2 && ctx->in[2] != NULL)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ZERO_POINT, "input 2 (zero point): found one, but %s has no zero point",
                              qdq_dtype_name(stored));
    /* what Quantize adds must be representable; what Dequantize subtracts may be anything */
    if (!quantizes || stored == QDQ_DTYPE_UNDEF || is_f8(stored)) return QDQ_OK;
    return check_zp_values(ctx, 2, (double)qdqi_dtype_min(stored), (double)qdqi_dtype_max(stored),
                           qdq_dtype_name(stored));
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* Blocks along the axis: as many as cover it, the last one perhaps shorter. */
static qdq_status check_blocks(const qdqi_infer_ctx *ctx, const qdq_tensor_desc *x, int32_t axis, int64_t block,
                               qdq_tensor_desc *want) {
    if (ctx->in[1]->ndims != x->ndims) {
        *want = *x;
    } else {
        *want = *ctx->in[1];
        for (int32_t i = 0; i < x->ndims; i++)
            want->dims[i] = x->dims[i];
    }
    const int64_t dim = x->dims[axis];
    want->dims[axis] = dim / block + (dim % block != 0);
    return expect_shape(ctx, 1, want, "x with blocks along the axis");
}

static qdq_status check_linear_shapes(const qdqi_infer_ctx *ctx) {
    const qdq_tensor_desc *x = subject(ctx), *scale = ctx->in[1];
    const int64_t block = qdqi_op_s64(ctx->op, QDQI_A_BLOCK_SIZE);
    if (!qdqi_in_known(ctx, 1)) return QDQ_OK;
    if (block == 0 && qdqi_n_elems(scale) == 1 && scale->ndims <= 1)
        return expect_one_value(ctx, 2, "one zero point for one scale");
    int32_t axis = 0;
    qdq_tensor_desc want = {.ndims = 1};
    if (x->ndims == QDQ_NDIMS_UNKNOWN) return QDQ_OK;
    QDQI_TRY(channel_axis(ctx, x, &axis, &want.dims[0]));
    if (!qdqi_dims_known(x)) return QDQ_OK;
    if (block > 0)
        QDQI_TRY(check_blocks(ctx, x, axis, block, &want));
    else
        QDQI_TRY(expect_shape(ctx, 1, &want, "one value per index of the axis, or one in all"));
    return expect_shape(ctx, 2, &want, "as the scale");
}

qdq_status qdqi_check_linear_quant(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(check_linear_shapes(ctx));
    QDQI_TRY(check_scale_values(ctx, 1));
    if (ctx->n_in < 3 || ctx->in[2] == NULL) return QDQ_OK;
    const qdq_dtype zp = ctx->in[2]->dtype;
    if (zp == QDQ_DTYPE_S32 || is_f8(zp)) return check_zp_values(ctx, 2, 0.0, 0.0, qdq_dtype_name(zp));
    return QDQ_OK;
}

/* ---- QLinearConv, QLinearMatMul: scale and zero point follow each tensor ---- */

static qdq_status expect_pair(const qdqi_infer_ctx *ctx, uint32_t scale, int64_t n, const char *why) {
    for (uint32_t port = scale; port < scale + 2; port++)
        if (qdqi_in_known(ctx, port) && qdqi_n_elems(ctx->in[port]) != 1 &&
            (ctx->in[port]->ndims != 1 || ctx->in[port]->dims[0] != n))
            return QDQI_RULE_FAIL(ctx, port == scale ? QDQ_E_BAD_SCALE : QDQ_E_BAD_ZERO_POINT,
                                  "input %" PRIu32 " (%s): found shape %s, expected %s", port,
                                  port == scale ? "scale" : "zero point", qdqi_in_shape(ctx, port).s, why);
    return QDQ_OK;
}

qdq_status qdqi_check_qlinear(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(check_scale_values(ctx, 1));
    QDQI_TRY(check_scale_values(ctx, 4));
    QDQI_TRY(check_scale_values(ctx, 6));
    if (ctx->op->kind != QDQI_OP_QLINEARCONV) return expect_pair(ctx, 6, 1, "one value");
    QDQI_TRY(qdqi_check_conv(ctx));
    QDQI_TRY(expect_pair(ctx, 1, 1, "one value"));
    QDQI_TRY(expect_pair(ctx, 6, 1, "one value"));
    const qdq_tensor_desc *w = ctx->in[3];
    if (!qdqi_in_known(ctx, 3) || w->ndims < 3) return QDQ_OK;
    const bool oix = qdqi_op_str_is(ctx->op, QDQI_A_WEIGHTS_FORMAT, "OIX");
    return expect_pair(ctx, 4, w->dims[oix ? 0 : w->ndims - 1], "one value, or one per output channel of w");
}
