/* Quantization. QuantizeLinear and DequantizeLinear keep their meaning; the QLinear ops are written out as
 *
 *     DequantizeLinear(s) -> the float op -> QuantizeLinear
 *
 * which is what they stand for, and which the patterns fuse again. */
#include "onnx_ops.h"

#include <string.h>

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* Name of a data type that an attribute gives as a number; NULL for 0. */
static qdq_status dtype_attr(qdqi_onnx_node *n, const char *name, const char **out, qdq_dtype *dtype_out) {
    int64_t type = 0;
    QDQI_TRY(qdqi_onnx_attr_i(n, name, 0, &type));
    *out = NULL;
    *dtype_out = QDQ_DTYPE_UNDEF;
    if (type == 0) return QDQ_OK;
    *dtype_out = qdqi_onnx_dtype(type);
    if (*dtype_out == QDQ_DTYPE_UNDEF)
        return qdqi_onnx_bad(n, "attribute %s %s (%lld) is not supported", name, qdqi_onnx_dtype_text(type),
                             (long long)type);
    *out = qdq_dtype_name(*dtype_out);
    return QDQ_OK;
}

static qdq_status linear(qdqi_onnx_node *n, bool is_quantize) {
    int64_t axis = 1, block_size = 0, saturate = 1;
    const char *output_dtype = NULL, *precision = NULL;
    qdq_dtype to = QDQ_DTYPE_UNDEF, unused = QDQ_DTYPE_UNDEF;
    QDQI_TRY(qdqi_onnx_attr_i(n, "axis", 1, &axis));
    QDQI_TRY(qdqi_onnx_attr_i(n, "block_size", 0, &block_size));
    QDQI_TRY(dtype_attr(n, "output_dtype", &output_dtype, &to));
    if (is_quantize) {
        QDQI_TRY(qdqi_onnx_attr_i(n, "saturate", 1, &saturate));
        QDQI_TRY(dtype_attr(n, "precision", &precision, &unused));
        if (to == QDQ_DTYPE_UNDEF) to = qdqi_onnx_has_in(n, 2) ? qdqi_onnx_in_dtype(n, 2) : QDQ_DTYPE_U8;
    } else if (to == QDQ_DTYPE_UNDEF) {
        to = qdqi_onnx_in_dtype(n, 1);
    }
    qdqi_onnx_know_like(n, qdqi_onnx_out(n, 0), qdqi_onnx_in(n, 0), to);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_s64(&e, "axis", axis);
    qdqi_onnx_put_s64(&e, "block_size", block_size);
    if (output_dtype != NULL) qdqi_onnx_put_str(&e, "output_dtype", output_dtype);
    if (is_quantize) qdqi_onnx_put_bool(&e, "saturate", saturate != 0);
    if (precision != NULL) qdqi_onnx_put_str(&e, "precision", precision);
    qdqi_onnx_put_ins(&e, 0, 3);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_quantize(qdqi_onnx_node *n) {
    return linear(n, true);
}

qdq_status qdqi_onnx_dequantize(qdqi_onnx_node *n) {
    return linear(n, false);
}

/* ---- pieces of the QLinear ops ---- */

/* Emit DequantizeLinear of inputs x, scale, zp (indices); `*out` is the float tensor. */
static qdq_status dequantize_in(qdqi_onnx_node *n, size_t x, size_t scale, size_t zp, int64_t axis, const char **out) {
    *out = qdqi_onnx_temp(n, "dequantized");
    QDQI_ONNX_NEED(n, *out);
    qdqi_onnx_know_like(n, *out, qdqi_onnx_in(n, x), qdqi_onnx_in_dtype(n, scale));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "DequantizeLinear");
    qdqi_onnx_put_s64(&e, "axis", axis);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, x));
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, scale));
    if (qdqi_onnx_has_in(n, zp)) qdqi_onnx_put_in(&e, qdqi_onnx_in(n, zp));
    qdqi_onnx_put_out(&e, *out);
    return qdqi_onnx_end(&e);
}

/* Emit QuantizeLinear of a float tensor into output 0. Without a zero point these ops give the type of their input `x`. */
static qdq_status quantize_out(qdqi_onnx_node *n, const char *in, size_t scale, size_t zp, size_t x) {
    qdq_dtype dtype = qdqi_onnx_has_in(n, zp) ? qdqi_onnx_in_dtype(n, zp) : qdqi_onnx_in_dtype(n, x);
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, x), dtype);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "QuantizeLinear");
    if (!qdqi_onnx_has_in(n, zp)) {
        if (dtype == QDQ_DTYPE_UNDEF && e.st == QDQ_OK)
            e.st = qdqi_onnx_bad(n, "without an output zero point, the type of the input must be known");
        qdqi_onnx_put_str(&e, "output_dtype", qdq_dtype_name(dtype));
    }
    qdqi_onnx_put_in(&e, in);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, scale));
    if (qdqi_onnx_has_in(n, zp)) qdqi_onnx_put_in(&e, qdqi_onnx_in(n, zp));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* Scale of an s32 bias: a * b * factor, a constant when both are. */
static qdq_status bias_scale(qdqi_onnx_node *n, size_t a, size_t b, float factor, const char **out) {
    if (qdqi_onnx_in_is_const(n, a) && qdqi_onnx_in_is_const(n, b)) {
        const float *x = NULL, *w = NULL;
        int64_t n_x = 0, n_w = 0;
        QDQI_TRY(qdqi_onnx_in_floats(n, a, &x, &n_x));
        QDQI_TRY(qdqi_onnx_in_floats(n, b, &w, &n_w));
        if (n_x != 1) return qdqi_onnx_bad(n, "input %zu (scale) has %lld values, expected one", a, (long long)n_x);
        float *scale = qdqi_arena_alloc(&n->r->arena, (size_t)n_w + 1, sizeof *scale);
        QDQI_ONNX_NEED(n, scale);
        for (int64_t i = 0; i < n_w; i++)
            scale[i] = x[0] * w[i] * factor;
        *out = qdqi_onnx_const(n, "bias_scale", QDQ_DTYPE_F32, n_w == 1 ? 0 : 1, &n_w, scale);
        QDQI_ONNX_NEED(n, *out);
        return QDQ_OK;
    }
    if (factor != 1.0f) return qdqi_onnx_bad(n, "alpha %g needs constant scales", (double)factor);
    *out = qdqi_onnx_temp(n, "bias_scale");
    QDQI_ONNX_NEED(n, *out);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "Multiply");
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, a));
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, b));
    qdqi_onnx_put_out(&e, *out);
    return qdqi_onnx_end(&e);
}

static qdq_status dequantize_bias(qdqi_onnx_node *n, size_t bias, const char *scale, const char **out) {
    *out = qdqi_onnx_temp(n, "bias");
    QDQI_ONNX_NEED(n, *out);
    qdqi_onnx_know_like(n, *out, qdqi_onnx_in(n, bias), QDQ_DTYPE_F32);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "DequantizeLinear");
    qdqi_onnx_put_s64(&e, "axis", 0);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, bias));
    qdqi_onnx_put_in(&e, scale);
    qdqi_onnx_put_out(&e, *out);
    return qdqi_onnx_end(&e);
}

/* ---- the ops ---- */

/* x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, [B] */
qdq_status qdqi_onnx_qlinear_conv(qdqi_onnx_node *n) {
    const char *x = NULL, *w = NULL, *bias = NULL, *scale = NULL;
    int32_t spatial = 0;
    int64_t group = 1;
    QDQI_TRY(qdqi_onnx_spatial_of(n, 3, &spatial));
    QDQI_TRY(qdqi_onnx_attr_i(n, "group", 1, &group));
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &x));
    QDQI_TRY(dequantize_in(n, 3, 4, 5, 0, &w));
    if (qdqi_onnx_has_in(n, 8)) {
        QDQI_TRY(bias_scale(n, 1, 4, 1.0f, &scale));
        QDQI_TRY(dequantize_bias(n, 8, scale, &bias));
    }
    const char *result = qdqi_onnx_temp(n, "conv");
    QDQI_ONNX_NEED(n, result);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_window(&e, false, true, spatial);
    qdqi_onnx_put_s64(&e, "groups", group);
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_str(&e, "weights_format", "OIX");
    qdqi_onnx_put_in(&e, x);
    qdqi_onnx_put_in(&e, w);
    if (bias != NULL) qdqi_onnx_put_in(&e, bias);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return quantize_out(n, result, 6, 7, 0);
}

static qdq_status two_inputs(qdqi_onnx_node *n, const char *kind, const char *a, const char *b, const char **out) {
    *out = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, *out);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, kind);
    qdqi_onnx_put_in(&e, a);
    qdqi_onnx_put_in(&e, b);
    qdqi_onnx_put_out(&e, *out);
    return qdqi_onnx_end(&e);
}

/* a, a_scale, a_zp, b, b_scale, b_zp, y_scale, y_zp. Row-wise scales of a and column-wise ones of b lie on the last two axes. */
qdq_status qdqi_onnx_qlinear_matmul(qdqi_onnx_node *n) {
    const char *a = NULL, *b = NULL, *result = NULL;
    QDQI_TRY(dequantize_in(n, 0, 1, 2, -2, &a));
    QDQI_TRY(dequantize_in(n, 3, 4, 5, -1, &b));
    QDQI_TRY(two_inputs(n, n->row->kind, a, b, &result));
    return quantize_out(n, result, 6, 7, 0);
}

/* A, A_scale, A_zp, B, B_scale, B_zp, C_scale, [C_zp] */
qdq_status qdqi_onnx_qlinear_binary(qdqi_onnx_node *n) {
    const char *a = NULL, *b = NULL, *result = NULL;
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &a));
    QDQI_TRY(dequantize_in(n, 3, 4, 5, 1, &b));
    QDQI_TRY(two_inputs(n, n->row->kind, a, b, &result));
    /* broadcasting may give it another rank than A has */
    const char *out = qdqi_onnx_out(n, 0);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "QuantizeLinear");
    const qdq_dtype dtype = qdqi_onnx_has_in(n, 7) ? QDQ_DTYPE_UNDEF : qdqi_onnx_in_dtype(n, 0);
    if (!qdqi_onnx_has_in(n, 7)) {
        if (dtype == QDQ_DTYPE_UNDEF && e.st == QDQ_OK)
            e.st = qdqi_onnx_bad(n, "without an output zero point, the type of the input must be known");
        qdqi_onnx_put_str(&e, "output_dtype", qdq_dtype_name(dtype));
    }
    qdqi_onnx_put_in(&e, result);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 6));
    if (qdqi_onnx_has_in(n, 7)) qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 7));
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

/* X, X_scale, X_zp, Y_scale, [Y_zp]; the row's kind with the row's attributes between */
qdq_status qdqi_onnx_qlinear_unary(qdqi_onnx_node *n) {
    const char *x = NULL, *result = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, result);
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &x));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_row_attrs(&e);
    qdqi_onnx_put_in(&e, x);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return quantize_out(n, result, 3, 4, 0);
}

static qdq_status put_channels_last(qdqi_onnx_emit *e) {
    int64_t last = 0;
    if (e->st == QDQ_OK) e->st = qdqi_onnx_attr_i(e->n, "channels_last", 0, &last);
    qdqi_onnx_put_str(e, "data_format", last != 0 ? "NXC" : "NCX");
    return e->st;
}

qdq_status qdqi_onnx_qlinear_global_pool(qdqi_onnx_node *n) {
    const char *x = NULL, *result = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, result);
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &x));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)put_channels_last(&e);
    qdqi_onnx_put_in(&e, x);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return quantize_out(n, result, 3, 4, 0);
}

qdq_status qdqi_onnx_qlinear_average_pool(qdqi_onnx_node *n) {
    int32_t spatial = 0;
    int64_t include_pad = 0, ceil_mode = 0;
    const char *x = NULL, *result = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, result);
    if (qdqi_onnx_attr(n, "kernel_shape") == NULL) return qdqi_onnx_bad(n, "attribute kernel_shape is missing");
    QDQI_TRY(qdqi_onnx_spatial_of(n, 0, &spatial));
    QDQI_TRY(qdqi_onnx_attr_i(n, "count_include_pad", 0, &include_pad));
    QDQI_TRY(qdqi_onnx_attr_i(n, "ceil_mode", 0, &ceil_mode));
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &x));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_window(&e, true, false, spatial);
    qdqi_onnx_put_str(&e, "rounding_type", ceil_mode != 0 ? "ceil" : "floor");
    qdqi_onnx_put_bool(&e, "exclude_pad", include_pad == 0);
    (void)put_channels_last(&e);
    qdqi_onnx_put_in(&e, x);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return quantize_out(n, result, 3, 4, 0);
}

/* attribute `opset` is that of the Softmax which it replaces */
qdq_status qdqi_onnx_qlinear_softmax(qdqi_onnx_node *n) {
    int64_t opset = 13, axis = 0;
    const char *x = NULL, *result = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, result);
    QDQI_TRY(qdqi_onnx_attr_i(n, "opset", 13, &opset));
    QDQI_TRY(qdqi_onnx_attr_i(n, "axis", opset < 13 ? 1 : -1, &axis));
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &x));
    QDQI_TRY(qdqi_onnx_emit_softmax(n, n->row->kind, x, qdqi_onnx_in_rank(n, 0), result, axis, opset < 13));
    return quantize_out(n, result, 3, 4, 0);
}

/* Y_scale, Y_zp, then (X, X_scale, X_zp) for each input */
qdq_status qdqi_onnx_qlinear_concat(qdqi_onnx_node *n) {
    const size_t count = n->proto->n_input;
    if ((count - 2) % 3 != 0) return qdqi_onnx_bad(n, "has %zu inputs, expected 2 and 3 for each tensor", count);
    if (qdqi_onnx_attr(n, "axis") == NULL) return qdqi_onnx_bad(n, "attribute axis is missing");
    int64_t axis = 0;
    QDQI_TRY(qdqi_onnx_attr_i(n, "axis", 0, &axis));
    const char **parts = qdqi_arena_alloc(&n->r->arena, count, sizeof *parts);
    const char *result = qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, parts);
    QDQI_ONNX_NEED(n, result);
    for (size_t i = 2; i < count; i += 3)
        QDQI_TRY(dequantize_in(n, i, i + 1, i + 2, 1, &parts[i]));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_s64(&e, "axis", axis);
    for (size_t i = 2; i < count; i += 3)
        qdqi_onnx_put_in(&e, parts[i]);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return quantize_out(n, result, 0, 1, 2);
}

/* A, A_scale, A_zp, B, B_scale, B_zp, [C s32], [Y_scale], [Y_zp]; without Y_scale the result is float */
qdq_status qdqi_onnx_qgemm(qdqi_onnx_node *n) {
    float alpha = 1.0f;
    int64_t trans_a = 0, trans_b = 0;
    const char *a = NULL, *b = NULL, *c = NULL, *scale = NULL;
    QDQI_TRY(qdqi_onnx_attr_f(n, "alpha", 1.0f, &alpha));
    QDQI_TRY(qdqi_onnx_attr_i(n, "transA", 0, &trans_a));
    QDQI_TRY(qdqi_onnx_attr_i(n, "transB", 0, &trans_b));
    QDQI_TRY(dequantize_in(n, 0, 1, 2, 1, &a));
    QDQI_TRY(dequantize_in(n, 3, 4, 5, trans_b != 0 ? 0 : 1, &b));
    if (qdqi_onnx_has_in(n, 6)) {
        QDQI_TRY(bias_scale(n, 1, 4, alpha, &scale));
        QDQI_TRY(dequantize_bias(n, 6, scale, &c));
    }
    const bool is_float_out = !qdqi_onnx_has_in(n, 7);
    const char *result = is_float_out ? qdqi_onnx_out(n, 0) : qdqi_onnx_temp(n, "float");
    QDQI_ONNX_NEED(n, result);
    const qdqi_onnx_value *bias = c == NULL ? NULL : qdqi_onnx_find(n->r, c);
    const bool is_bias = bias != NULL && bias->desc.ndims == 1 && bias->desc.dims[0] > 1;
    const bool is_matmul = alpha == 1.0f && (c == NULL || is_bias);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, is_matmul ? "MatMul" : "Gemm");
    qdqi_onnx_put_bool(&e, is_matmul ? "transpose_a" : "transA", trans_a != 0);
    qdqi_onnx_put_bool(&e, is_matmul ? "transpose_b" : "transB", trans_b != 0);
    if (!is_matmul) qdqi_onnx_put_f32(&e, "alpha", alpha);
    qdqi_onnx_put_in(&e, a);
    qdqi_onnx_put_in(&e, b);
    if (c != NULL) qdqi_onnx_put_in(&e, c);
    qdqi_onnx_put_out(&e, result);
    QDQI_TRY(qdqi_onnx_end(&e));
    return is_float_out ? QDQ_OK : quantize_out(n, result, 7, 8, 0);
}
