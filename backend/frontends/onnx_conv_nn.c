/* Convolution, pooling, normalization, softmax, resize. */
#include "onnx_ops.h"

#include <string.h>

/* ---- windows ---- */

static qdq_status list_of(qdqi_onnx_node *n, const char *name, int32_t count, int64_t fallback, int64_t *out) {
    const int64_t *given = NULL;
    int64_t n_given = 0;
    QDQI_TRY(qdqi_onnx_attr_ints(n, name, &given, &n_given));
    if (n_given > 0 && n_given != count)
        return qdqi_onnx_bad(n, "attribute %s has %lld values, expected %ld", name, (long long)n_given, (long)count);
    for (int32_t i = 0; i < count; i++)
        out[i] = n_given > 0 ? given[i] : fallback;
    return QDQ_OK;
}

qdq_status qdqi_onnx_spatial_of(qdqi_onnx_node *n, size_t w, int32_t *spatial_out) {
    const int64_t *kernel = NULL;
    int64_t n_kernel = 0;
    QDQI_TRY(qdqi_onnx_attr_ints(n, "kernel_shape", &kernel, &n_kernel));
    const int32_t w_rank = qdqi_onnx_in_rank(n, w), x_rank = qdqi_onnx_in_rank(n, 0);
    int64_t spatial = n_kernel;
    if (n_kernel < 0) spatial = w_rank >= 0 ? w_rank - 2 : x_rank >= 0 ? x_rank - 2 : -1;
    if (spatial < 0)
        return qdqi_onnx_bad(n, "without attribute kernel_shape the rank of the weights must be known, and at least 2");
    if (spatial < 1 || spatial > QDQ_MAX_NDIMS - 2)
        return qdqi_onnx_bad(n, "has %lld spatial dimensions, expected 1…%d", (long long)spatial, QDQ_MAX_NDIMS - 2);
    *spatial_out = (int32_t)spatial;
    return QDQ_OK;
}

/* A kernel_shape that disagrees with constant weights is a broken model. */
static qdq_status check_kernel(qdqi_onnx_node *n, size_t w) {
    const int64_t *kernel = NULL;
    int64_t n_kernel = 0;
    QDQI_TRY(qdqi_onnx_attr_ints(n, "kernel_shape", &kernel, &n_kernel));
    const qdqi_onnx_value *value = qdqi_onnx_find(n->r, qdqi_onnx_in(n, w));
    if (n_kernel < 0 || value == NULL || value->desc.ndims < 0) return QDQ_OK;
    if (value->desc.ndims != n_kernel + 2)
        return qdqi_onnx_bad(n, "attribute kernel_shape has %lld values, the weights have %ld dimensions",
                             (long long)n_kernel, (long)value->desc.ndims);
    for (int64_t i = 0; i < n_kernel; i++)
        if (value->desc.dims[i + 2] != QDQ_DIM_UNKNOWN && value->desc.dims[i + 2] != kernel[i])
            return qdqi_onnx_bad(n, "attribute kernel_shape says %lld at %lld, the weights %lld", (long long)kernel[i],
                                 (long long)i, (long long)value->desc.dims[i + 2]);
    return QDQ_OK;
}

static qdq_status auto_pad_of(qdqi_onnx_node *n, const char **out) {
    static const char *const names[][2] = {
        {"NOTSET", "None"}, {"SAME_UPPER", "SAME_UPPER"}, {"SAME_LOWER", "SAME_LOWER"}, {"VALID", "VALID"}};
    const char *given = NULL;
    QDQI_TRY(qdqi_onnx_attr_s(n, "auto_pad", "NOTSET", &given));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(given, names[i][0]) == 0) {
            *out = names[i][1];
            return QDQ_OK;
        }
    return qdqi_onnx_bad(n, "attribute auto_pad is \"%.40s\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", given);
}

qdq_status qdqi_onnx_put_window(qdqi_onnx_emit *e, bool is_pool, bool has_dilations, int32_t spatial) {
    qdqi_onnx_node *n = e->n;
    int64_t strides[QDQ_MAX_NDIMS], pads[2 * QDQ_MAX_NDIMS], dilations[QDQ_MAX_NDIMS], kernel[QDQ_MAX_NDIMS];
    const char *auto_pad = NULL;
    const size_t count = (size_t)spatial;
    if (e->st != QDQ_OK) return e->st;
    QDQI_TRY_GOTO(e->st, done, list_of(n, "strides", spatial, 1, strides));
    QDQI_TRY_GOTO(e->st, done, list_of(n, "pads", 2 * spatial, 0, pads));
    QDQI_TRY_GOTO(e->st, done, list_of(n, "dilations", spatial, 1, dilations));
    QDQI_TRY_GOTO(e->st, done, auto_pad_of(n, &auto_pad));
    qdqi_onnx_put_s64s(e, "strides", strides, count);
    qdqi_onnx_put_s64s(e, "pads_begin", pads, count);
    qdqi_onnx_put_s64s(e, "pads_end", pads + count, count);
    qdqi_onnx_put_str(e, "auto_pad", auto_pad);
    if (is_pool) {
        QDQI_TRY_GOTO(e->st, done, list_of(n, "kernel_shape", spatial, 1, kernel));
        qdqi_onnx_put_s64s(e, "kernel", kernel, count);
    }
    if (has_dilations) {
        qdqi_onnx_put_s64s(e, "dilations", dilations, count);
    } else {
        for (int32_t i = 0; i < spatial; i++)
            if (dilations[i] != 1) {
                e->st = qdqi_onnx_bad(n, "attribute dilations is not supported here");
                goto done;
            }
    }
done:
    return e->st;
}

static qdq_status put_groups(qdqi_onnx_emit *e) {
    int64_t group = 1;
    if (e->st == QDQ_OK) e->st = qdqi_onnx_attr_i(e->n, "group", 1, &group);
    qdqi_onnx_put_s64(e, "groups", group);
    return e->st;
}

/* ---- convolution ---- */

static qdq_status convolution(qdqi_onnx_node *n, const char *weights_format, bool is_transposed) {
    int32_t spatial = 0;
    QDQI_TRY(qdqi_onnx_spatial_of(n, 1, &spatial));
    QDQI_TRY(check_kernel(n, 1));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), spatial + 2, QDQ_DTYPE_UNDEF);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_window(&e, false, true, spatial);
    (void)put_groups(&e);
    if (is_transposed) {
        int64_t output_padding[QDQ_MAX_NDIMS];
        if (e.st == QDQ_OK) e.st = list_of(n, "output_padding", spatial, 0, output_padding);
        qdqi_onnx_put_s64s(&e, "output_padding", output_padding, (size_t)spatial);
    }
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_str(&e, "weights_format", weights_format);
    qdqi_onnx_put_ins(&e, 0, n->proto->n_input);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_conv(qdqi_onnx_node *n) {
    return convolution(n, "OIX", false);
}

qdq_status qdqi_onnx_conv_integer(qdqi_onnx_node *n) {
    return convolution(n, "OIX", false);
}

qdq_status qdqi_onnx_conv_transpose(qdqi_onnx_node *n) {
    const int64_t *shape = NULL;
    int64_t n_shape = 0;
    QDQI_TRY(qdqi_onnx_attr_ints(n, "output_shape", &shape, &n_shape));
    if (n_shape > 0) return qdqi_onnx_bad(n, "attribute output_shape is not supported: give pads");
    return convolution(n, "IOX", true);
}

/* ---- pooling ---- */

static qdq_status put_rounding(qdqi_onnx_emit *e) {
    int64_t ceil_mode = 0;
    if (e->st == QDQ_OK) e->st = qdqi_onnx_attr_i(e->n, "ceil_mode", 0, &ceil_mode);
    qdqi_onnx_put_str(e, "rounding_type", ceil_mode != 0 ? "ceil" : "floor");
    return e->st;
}

static qdq_status pool_spatial(qdqi_onnx_node *n, int32_t *spatial_out) {
    if (qdqi_onnx_attr(n, "kernel_shape") == NULL) return qdqi_onnx_bad(n, "attribute kernel_shape is missing");
    return qdqi_onnx_spatial_of(n, 0, spatial_out);
}

qdq_status qdqi_onnx_max_pool(qdqi_onnx_node *n) {
    int32_t spatial = 0;
    if (qdqi_onnx_has_out(n, 1)) return qdqi_onnx_bad(n, "the second output (Indices) is not supported");
    QDQI_TRY(pool_spatial(n, &spatial));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), spatial + 2, qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_window(&e, true, true, spatial);
    (void)put_rounding(&e);
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_average_pool(qdqi_onnx_node *n) {
    int32_t spatial = 0;
    int64_t include_pad = 0;
    QDQI_TRY(pool_spatial(n, &spatial));
    QDQI_TRY(qdqi_onnx_attr_i(n, "count_include_pad", 0, &include_pad));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), spatial + 2, qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_window(&e, true, false, spatial);
    (void)put_rounding(&e);
    qdqi_onnx_put_bool(&e, "exclude_pad", include_pad == 0);
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* ---- normalization ---- */

static qdq_status no_more_outputs(qdqi_onnx_node *n) {
    for (size_t i = 1; i < n->proto->n_output; i++)
        if (qdqi_onnx_has_out(n, i)) return qdqi_onnx_bad(n, "output %zu is not supported", i);
    return QDQ_OK;
}

static qdq_status put_epsilon(qdqi_onnx_emit *e) {
    float epsilon = 0.0f;
    if (e->st == QDQ_OK) e->st = qdqi_onnx_attr_f(e->n, "epsilon", 1e-5f, &epsilon);
    qdqi_onnx_put_f32(e, "epsilon", epsilon);
    return e->st;
}

qdq_status qdqi_onnx_batch_norm(qdqi_onnx_node *n) {
    int64_t training = 0, spatial = 1;
    QDQI_TRY(qdqi_onnx_attr_i(n, "training_mode", 0, &training));
    QDQI_TRY(qdqi_onnx_attr_i(n, "spatial", 1, &spatial));
    if (training != 0) return qdqi_onnx_bad(n, "training_mode is not supported");
    if (spatial != 1) return qdqi_onnx_bad(n, "attribute spatial is %lld, expected 1", (long long)spatial);
    QDQI_TRY(no_more_outputs(n));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)put_epsilon(&e);
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_ins(&e, 0, 5);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* Zeros of the shape of input `like`, for a bias that the model leaves out. */
static qdq_status zeros_like(qdqi_onnx_node *n, const char *like, const char **name_out) {
    const qdqi_onnx_value *value = qdqi_onnx_find(n->r, like);
    const qdq_tensor_desc desc = value == NULL ? (qdq_tensor_desc){.ndims = QDQ_NDIMS_UNKNOWN} : value->desc;
    int64_t count = 0;
    if (desc.ndims < 0 || qdq_tensor_desc_n_elems(&desc, &count, NULL) != QDQ_OK)
        return qdqi_onnx_bad(n, "without a bias, the shape of the scale must be known");
    size_t bytes = 0;
    if (!qdqi_dtype_bytes(QDQ_DTYPE_F32, count, &bytes)) return qdqi_onnx_bad(n, "the scale is too large");
    float *zeros = qdqi_calloc((size_t)count + 1, sizeof *zeros);
    QDQI_ONNX_NEED(n, zeros);
    *name_out = qdqi_onnx_const(n, "zero_bias", QDQ_DTYPE_F32, desc.ndims, desc.dims, zeros);
    qdqi_free(zeros);
    QDQI_ONNX_NEED(n, *name_out);
    return QDQ_OK;
}

qdq_status qdqi_onnx_layer_norm(qdqi_onnx_node *n) {
    int64_t axis = -1;
    QDQI_TRY(qdqi_onnx_attr_i(n, "axis", -1, &axis));
    QDQI_TRY(no_more_outputs(n));
    const char *bias = qdqi_onnx_in(n, 2);
    if (!qdqi_onnx_has_in(n, 2)) QDQI_TRY(zeros_like(n, qdqi_onnx_in(n, 1), &bias));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)put_epsilon(&e);
    qdqi_onnx_put_s64(&e, "begin_norm_axis", axis);
    qdqi_onnx_put_bool(&e, "keep_stats", false);
    qdqi_onnx_put_bool(&e, "use_affine", true);
    qdqi_onnx_put_ins(&e, 0, 2);
    qdqi_onnx_put_in(&e, bias);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_group_norm(qdqi_onnx_node *n) {
    int64_t groups = 0;
    QDQI_TRY(qdqi_onnx_attr_i(n, "num_groups", 0, &groups));
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)put_epsilon(&e);
    qdqi_onnx_put_s64(&e, "groups", groups);
    qdqi_onnx_put_bool(&e, "keep_stats", false);
    qdqi_onnx_put_bool(&e, "use_affine", true);
    qdqi_onnx_put_str(&e, "data_format", "NCX");
    qdqi_onnx_put_ins(&e, 0, 3);
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}

/* ---- softmax ---- */

static qdq_status emit_axis_op(qdqi_onnx_node *n, const char *kind, int64_t axis, const char *in, const char *out) {
    qdqi_onnx_emit e = qdqi_onnx_begin(n, kind);
    qdqi_onnx_put_s64(&e, "axis", axis);
    qdqi_onnx_put_in(&e, in);
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

/*  before opset 13:  x -> Flatten(axis) -> softmax over dim 1 -> Reshape(to the shape of x)
 *  which is softmax over the last axis when `axis` is the last one. */
qdq_status qdqi_onnx_emit_softmax(qdqi_onnx_node *n, const char *kind, const char *in, int32_t rank, const char *out,
                                  int64_t axis, bool is_flattening) {
    if (!is_flattening || axis == -1 || axis == rank - 1) {
        qdqi_onnx_know(n, out, rank, QDQ_DTYPE_UNDEF);
        return emit_axis_op(n, kind, axis, in, out);
    }
    const char *flat = qdqi_onnx_temp(n, "flat"), *soft = qdqi_onnx_temp(n, "softmax"),
               *shape = qdqi_onnx_temp(n, "shape");
    QDQI_ONNX_NEED(n, flat);
    QDQI_ONNX_NEED(n, soft);
    QDQI_ONNX_NEED(n, shape);
    QDQI_TRY(emit_axis_op(n, "Flatten", axis, in, flat));
    QDQI_TRY(emit_axis_op(n, kind, 1, flat, soft));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, "Shape");
    qdqi_onnx_put_in(&e, in);
    qdqi_onnx_put_out(&e, shape);
    QDQI_TRY(qdqi_onnx_end(&e));
    e = qdqi_onnx_begin(n, "Reshape");
    qdqi_onnx_put_bool(&e, "allowzero", true);
    qdqi_onnx_put_in(&e, soft);
    qdqi_onnx_put_in(&e, shape);
    qdqi_onnx_put_out(&e, out);
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_softmax(qdqi_onnx_node *n) {
    int64_t axis = 0;
    const bool is_flattening = n->opset < 13;
    QDQI_TRY(qdqi_onnx_attr_i(n, "axis", is_flattening ? 1 : -1, &axis));
    return qdqi_onnx_emit_softmax(n, n->row->kind, qdqi_onnx_in(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_out(n, 0),
                                  axis, is_flattening);
}

/* ---- resize ---- */

static bool is_empty_const(const qdqi_onnx_node *n, size_t i) {
    const qdqi_onnx_value *value = qdqi_onnx_has_in(n, i) ? qdqi_onnx_find(n->r, qdqi_onnx_in(n, i)) : NULL;
    return value != NULL && value->is_constant && value->desc.ndims == 1 && value->desc.dims[0] == 0;
}

qdq_status qdqi_onnx_resize(qdqi_onnx_node *n) {
    const bool is_old = n->opset < 11; /* inputs X, scales; always asymmetric */
    const char *mode = NULL, *coordinates = NULL, *nearest = NULL, *policy = NULL;
    int64_t antialias = 0, n_axes = 0;
    const int64_t *axes = NULL;
    QDQI_TRY(qdqi_onnx_attr_s(n, "mode", "nearest", &mode));
    QDQI_TRY(qdqi_onnx_attr_s(n, "coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel", &coordinates));
    QDQI_TRY(qdqi_onnx_attr_s(n, "nearest_mode", is_old ? "floor" : "round_prefer_floor", &nearest));
    QDQI_TRY(qdqi_onnx_attr_s(n, "keep_aspect_ratio_policy", "stretch", &policy));
    QDQI_TRY(qdqi_onnx_attr_i(n, "antialias", 0, &antialias));
    QDQI_TRY(qdqi_onnx_attr_ints(n, "axes", &axes, &n_axes));
    if (antialias != 0) return qdqi_onnx_bad(n, "attribute antialias is not supported");
    if (strcmp(policy, "stretch") != 0)
        return qdqi_onnx_bad(n, "attribute keep_aspect_ratio_policy \"%.40s\" is not supported", policy);
    qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0), qdqi_onnx_in_dtype(n, 0));
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    qdqi_onnx_put_str(&e, "mode", mode);
    qdqi_onnx_put_str(&e, "coordinate_transformation_mode", coordinates);
    qdqi_onnx_put_str(&e, "nearest_mode", nearest);
    if (n_axes >= 0) qdqi_onnx_put_s64s(&e, "axes", axes, (size_t)n_axes);
    const size_t scales = is_old ? 1 : 2, sizes = 3;
    const bool has_scales = qdqi_onnx_has_in(n, scales) && !is_empty_const(n, scales);
    const bool has_sizes = !is_old && qdqi_onnx_has_in(n, sizes) && !is_empty_const(n, sizes);
    qdqi_onnx_put_in(&e, qdqi_onnx_in(n, 0));
    if (has_scales || has_sizes) qdqi_onnx_put_in(&e, NULL); /* roi */
    if (has_scales || has_sizes) qdqi_onnx_put_in(&e, has_scales ? qdqi_onnx_in(n, scales) : NULL);
    if (has_sizes) qdqi_onnx_put_in(&e, qdqi_onnx_in(n, sizes));
    qdqi_onnx_put_out(&e, qdqi_onnx_out(n, 0));
    return qdqi_onnx_end(&e);
}
