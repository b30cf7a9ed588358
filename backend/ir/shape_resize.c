/* Shape rules of Interpolate (oneDNN Graph) and Resize (ONNX). */
#include "ir/rule.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* floor(dim * scale) in f32, as the specs' implementations do. */
static qdq_status scaled(const qdqi_infer_ctx *ctx, int32_t i, int64_t dim, float scale, int64_t *out) {
    const float size = floorf((float)dim * scale);
    if (!(scale > 0.0f) || !(size < 9.0e15f))
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "scales: found %g for dim %d of %s, expected a positive factor",
                              (double)scale, (int)i, qdqi_in_shape(ctx, 0).s);
    *out = (int64_t)size;
    return QDQ_OK;
}

qdq_status qdqi_shape_interpolate(const qdqi_infer_ctx *ctx) {
    if (!qdqi_in_known(ctx, 0)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    const int32_t n_spatial = src->ndims - 2, first = qdqi_op_str_is(ctx->op, QDQI_A_DATA_FORMAT, "NXC") ? 1 : 2;
    if (n_spatial < 1 || n_spatial > 3)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "src: found shape %s, expected rank 3 to 5",
                              qdqi_in_shape(ctx, 0).s);
    uint32_t n_sizes = 0, n_scales = 0;
    const int64_t *sizes = qdqi_op_s64s(ctx->op, QDQI_A_SIZES, &n_sizes);
    const float *scales = qdqi_op_f32s(ctx->op, QDQI_A_SCALES, &n_scales);
    int64_t from_input[QDQ_MAX_NDIMS], n_input = 0;
    if (ctx->n_in > 1) {
        if (!qdqi_in_has_data(ctx, 1)) return QDQ_OK;
        QDQI_TRY(qdqi_in_list(ctx, 1, QDQ_MAX_NDIMS, from_input, &n_input));
        sizes = from_input;
        n_sizes = (uint32_t)n_input;
    }
    const uint32_t n = n_sizes > 0 ? n_sizes : n_scales;
    if (n != (uint32_t)n_spatial)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ATTR, "%s: found %" PRIu32 " values, expected %d (spatial dims of src %s)",
                              n_sizes > 0 ? "sizes" : "scales", n, (int)n_spatial, qdqi_in_shape(ctx, 0).s);
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, src->dims, sizeof dims);
    for (int32_t i = 0; i < n_spatial; i++) {
        if (n_sizes > 0)
            dims[first + i] = sizes[i];
        else
            QDQI_TRY(scaled(ctx, first + i, src->dims[first + i], scales[i], &dims[first + i]));
        if (dims[first + i] < 0 || (dims[first + i] > 0 && src->dims[first + i] == 0))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "sizes: found %" PRId64 " for dim %d of %s", dims[first + i],
                                  (int)(first + i), qdqi_in_shape(ctx, 0).s);
    }
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}

/* Optional inputs of Resize may also be left out as empty tensors. */
static bool is_given(const qdqi_infer_ctx *ctx, uint32_t i) {
    return i < ctx->n_in && ctx->in[i] != NULL && !(qdqi_in_known(ctx, i) && qdqi_n_elems(ctx->in[i]) == 0);
}

qdq_status qdqi_shape_resize(const qdqi_infer_ctx *ctx) {
    const bool by_scale = is_given(ctx, 2), by_size = is_given(ctx, 3);
    if (by_scale == by_size)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ARITY, "found %s of scales (input 2) and sizes (input 3), expected one",
                              by_scale ? "both" : "none");
    const uint32_t port = by_scale ? 2 : 3;
    if (!qdqi_in_known(ctx, 0) || !qdqi_in_has_data(ctx, port)) return QDQ_OK;
    const qdq_tensor_desc *src = ctx->in[0];
    uint32_t n_axes = 0;
    const int64_t *listed = qdqi_op_s64s(ctx->op, QDQI_A_AXES, &n_axes);
    int64_t all[QDQ_MAX_NDIMS];
    for (int32_t i = 0; i < src->ndims; i++)
        all[i] = i;
    if (n_axes == 0) listed = all, n_axes = (uint32_t)src->ndims;
    qdqi_axes axes;
    QDQI_TRY(qdqi_axes_of(ctx, "attribute \"axes\"", listed, n_axes, src->ndims, &axes));
    if (ctx->in[port]->ndims != 1 || ctx->in[port]->dims[0] != (int64_t)n_axes)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input %" PRIu32 ": found shape %s, expected %" PRIu32 " (one value per axis)", port,
                              qdqi_in_shape(ctx, port).s, n_axes);
    int64_t dims[QDQ_MAX_NDIMS];
    memcpy(dims, src->dims, sizeof dims);
    for (int32_t i = 0; i < axes.n; i++) {
        int64_t *dim = &dims[axes.axis[i]];
        const int64_t was = *dim;
        if (by_size)
            *dim = qdqi_in_i64(ctx, port, i);
        else
            QDQI_TRY(scaled(ctx, axes.axis[i], was, qdqi_load_f32(ctx->in_data[port], ctx->in[port]->dtype, i), dim));
        if (*dim < 0 || (*dim > 0 && was == 0))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "sizes: found %" PRId64 " for dim %d of %s", *dim,
                                  (int)axes.axis[i], qdqi_in_shape(ctx, 0).s);
    }
    return qdqi_set_out(ctx, 0, src->ndims, dims);
}
