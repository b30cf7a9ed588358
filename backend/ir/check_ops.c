/* Checks of float ops: what attributes and arity say together. */
#include "ir/rule.h"

#include <math.h>

qdq_status qdqi_check_none(const qdqi_infer_ctx *ctx) {
    (void)ctx;
    return QDQ_OK;
}

qdq_status qdqi_check_unary(const qdqi_infer_ctx *ctx) {
    const qdqi_op *op = ctx->op;
    if (op->kind == QDQI_OP_CLAMP && qdqi_op_f32(op, QDQI_A_MIN) > qdqi_op_f32(op, QDQI_A_MAX))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_MIN, "found %g, expected at most max, which is %g",
                              (double)qdqi_op_f32(op, QDQI_A_MIN), (double)qdqi_op_f32(op, QDQI_A_MAX));
    if (op->kind == QDQI_OP_SOFTPLUS && qdqi_op_f32(op, QDQI_A_BETA) == 0.0f)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_BETA, "found 0, which the op divides by");
    if (op->kind == QDQI_OP_CELU && qdqi_op_f32(op, QDQI_A_ALPHA) == 0.0f)
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_ALPHA, "found 0, which the op divides by");
    return QDQ_OK;
}

/* Lists with one value per spatial dim agree with each other before any shape is known. */
static qdq_status check_lengths(const qdqi_infer_ctx *ctx, const qdqi_attr_name *names, size_t n_names) {
    const qdqi_attr *auto_pad = qdqi_op_attr_or_null(ctx->op, QDQI_A_AUTO_PAD);
    const bool pads_count = auto_pad == NULL || auto_pad->v.str[0] == 'N';
    qdqi_attr_name first = QDQI_A_NONE;
    uint32_t n_first = 0;
    for (size_t i = 0; i < n_names; i++) {
        const qdqi_attr *attr = qdqi_op_attr_or_null(ctx->op, names[i]);
        const bool is_pad = names[i] == QDQI_A_PADS_BEGIN || names[i] == QDQI_A_PADS_END;
        if (attr == NULL || !attr->is_set || attr->n == QDQ_MAX_NDIMS || (is_pad && !pads_count)) continue;
        if (attr->n == 0 && (names[i] == QDQI_A_DILATIONS || names[i] == QDQI_A_OUTPUT_PADDING)) continue;
        if (first == QDQI_A_NONE) {
            /* a known src says how many there must be: the shape rule does */
            if (ctx->in[0] != NULL && ctx->in[0]->ndims != QDQ_NDIMS_UNKNOWN && ctx->in[0]->ndims >= 3 &&
                attr->n != (uint32_t)ctx->in[0]->ndims - 2)
                return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, names[i],
                                      "found %" PRIu32 " values, expected %d (spatial dims of src %s)", attr->n,
                                      (int)ctx->in[0]->ndims - 2, qdqi_in_shape(ctx, 0).s);
            first = names[i];
            n_first = attr->n;
        } else if (attr->n != n_first) {
            return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, names[i],
                                  "found %" PRIu32 " values, expected %" PRIu32 " (as attribute \"%s\")", attr->n,
                                  n_first, qdqi_attr_text(first));
        }
    }
    return QDQ_OK;
}

qdq_status qdqi_check_conv(const qdqi_infer_ctx *ctx) {
    static const qdqi_attr_name names[] = {QDQI_A_STRIDES, QDQI_A_DILATIONS, QDQI_A_PADS_BEGIN, QDQI_A_PADS_END,
                                           QDQI_A_OUTPUT_PADDING};
    return check_lengths(ctx, names, sizeof names / sizeof names[0]);
}

/* A pad as wide as the window would make windows of padding alone. */
qdq_status qdqi_check_pool(const qdqi_infer_ctx *ctx) {
    static const qdqi_attr_name names[] = {QDQI_A_KERNEL, QDQI_A_STRIDES, QDQI_A_DILATIONS, QDQI_A_PADS_BEGIN,
                                           QDQI_A_PADS_END};
    QDQI_TRY(check_lengths(ctx, names, sizeof names / sizeof names[0]));
    if (!qdqi_op_str_is(ctx->op, QDQI_A_AUTO_PAD, "None")) return QDQ_OK;
    uint32_t n_kernel = 0, n_pads = 0, n_dilations = 0;
    const int64_t *kernel = qdqi_op_s64s(ctx->op, QDQI_A_KERNEL, &n_kernel);
    const int64_t *dilations = qdqi_op_s64s(ctx->op, QDQI_A_DILATIONS, &n_dilations);
    for (size_t side = 3; side < 5; side++) {
        const int64_t *pads = qdqi_op_s64s(ctx->op, names[side], &n_pads);
        for (uint32_t i = 0; i < n_pads && i < n_kernel; i++) {
            int64_t window = 0;
            if (!qdqi_mul_i64(kernel[i] - 1, i < n_dilations ? dilations[i] : 1, &window)) continue;
            if (pads[i] > window)
                return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, names[side],
                                      "found %" PRId64 ", expected less than the window %" PRId64, pads[i], window + 1);
        }
    }
    return QDQ_OK;
}

static qdq_status check_affine(const qdqi_infer_ctx *ctx, uint32_t n_affine) {
    const bool affine = qdqi_op_bool(ctx->op, QDQI_A_USE_AFFINE);
    const uint32_t expected = affine ? 1 + n_affine : 1;
    if (ctx->n_in != expected)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ARITY, "found %" PRIu32 " inputs, expected %" PRIu32 " (use_affine is %s)",
                              ctx->n_in, expected, affine ? "true" : "false");
    const float epsilon = qdqi_op_f32(ctx->op, QDQI_A_EPSILON);
    if (!(epsilon >= 0.0f) || isinf(epsilon))
        return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_EPSILON, "found %g, expected 0 or more", (double)epsilon);
    return QDQ_OK;
}

qdq_status qdqi_check_layernorm(const qdqi_infer_ctx *ctx) {
    QDQI_TRY(check_affine(ctx, 2));
    const bool keep = qdqi_op_bool(ctx->op, QDQI_A_KEEP_STATS);
    if (ctx->n_out != (keep ? 3u : 1u))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ARITY, "found %" PRIu32 " outputs, expected %d (keep_stats is %s)",
                              ctx->n_out, keep ? 3 : 1, keep ? "true" : "false");
    return QDQ_OK;
}

qdq_status qdqi_check_rmsnorm(const qdqi_infer_ctx *ctx) {
    return check_affine(ctx, 1);
}

qdq_status qdqi_check_reduce(const qdqi_infer_ctx *ctx) {
    uint32_t n = 0;
    qdqi_op_s64s(ctx->op, QDQI_A_AXES, &n);
    if ((n > 0) != (ctx->n_in > 1)) return QDQ_OK;
    return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, QDQI_A_AXES, "found %s, expected axes either here or as input 1",
                          n > 0 ? "axes here and as input 1" : "no axes");
}

qdq_status qdqi_check_interpolate(const qdqi_infer_ctx *ctx) {
    uint32_t n_sizes = 0, n_scales = 0;
    qdqi_op_s64s(ctx->op, QDQI_A_SIZES, &n_sizes);
    qdqi_op_f32s(ctx->op, QDQI_A_SCALES, &n_scales);
    const int given = (n_sizes > 0) + (n_scales > 0) + (ctx->n_in > 1);
    if (given != 1)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ATTR,
                              "found %d of attribute sizes, attribute scales and input sizes, expected one", given);
    return QDQ_OK;
}
