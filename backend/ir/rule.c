#include "ir/rule.h"

#include "base/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static qdq_status fail_at(const qdqi_op *op, qdq_error *err, qdq_status status, const char *attr, const char *fmt,
                          va_list args) {
    if (err == NULL) return status;
    char what[QDQ_ERROR_BYTES];
    vsnprintf(what, sizeof what, fmt, args);
    if (attr == NULL)
        return qdqi_fail(err, status, "op %" PRIu64 " \"%.64s\" (%.64s): %s", op->id, op->name, op->schema->name, what);
    return qdqi_fail(err, status, "op %" PRIu64 " \"%.64s\" (%.64s): attribute \"%s\": %s", op->id, op->name,
                     op->schema->name, attr, what);
}

qdq_status qdqi_op_fail(const qdqi_op *op, qdq_error *err, qdq_status status, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail_at(op, err, status, NULL, fmt, args);
    va_end(args);
    return status;
}

qdq_status qdqi_attr_fail(const qdqi_op *op, qdq_error *err, qdq_status status, qdqi_attr_name name, const char *fmt,
                          ...) {
    va_list args;
    va_start(args, fmt);
    fail_at(op, err, status, qdqi_attr_text(name), fmt, args);
    va_end(args);
    return status;
}

bool qdqi_in_known(const qdqi_infer_ctx *ctx, uint32_t i) {
    return i < ctx->n_in && ctx->in[i] != NULL && qdqi_dims_known(ctx->in[i]);
}

qdqi_shape_text qdqi_in_shape(const qdqi_infer_ctx *ctx, uint32_t i) {
    return qdqi_shape_str(ctx->in[i]->ndims, ctx->in[i]->dims);
}

bool qdqi_in_nonempty(const qdqi_infer_ctx *ctx, uint32_t i) {
    return qdqi_in_known(ctx, i) && qdqi_n_elems(ctx->in[i]) > 0;
}

bool qdqi_in_has_data(const qdqi_infer_ctx *ctx, uint32_t i) {
    return qdqi_in_known(ctx, i) && ctx->in_data[i] != NULL;
}

int64_t qdqi_in_i64(const qdqi_infer_ctx *ctx, uint32_t i, int64_t elem) {
    return qdqi_load_i64(ctx->in_data[i], ctx->in[i]->dtype, elem);
}

qdq_status qdqi_set_out(const qdqi_infer_ctx *ctx, uint32_t port, int32_t ndims, const int64_t *dims) {
    qdq_tensor_desc *out = ctx->out[port];
    qdq_tensor_desc found = *out;
    found.ndims = ndims;
    if (ndims > QDQ_MAX_NDIMS)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "output %" PRIu32 ": rank %d is more than %d", port, (int)ndims,
                              QDQ_MAX_NDIMS);
    if (ndims > 0) memcpy(found.dims, dims, (size_t)ndims * sizeof dims[0]);
    bool differs = out->ndims != QDQ_NDIMS_UNKNOWN && out->ndims != ndims;
    for (int32_t i = 0; i < ndims && !differs && out->ndims == ndims; i++)
        differs = out->dims[i] != QDQ_DIM_UNKNOWN && out->dims[i] != dims[i];
    if (differs)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "output %" PRIu32 ": found shape %s, expected %s", port,
                              qdqi_shape_str(out->ndims, out->dims).s, qdqi_shape_str(ndims, dims).s);
    if (qdqi_dims_known(out)) return QDQ_OK;
    if (out->layout == QDQ_LAYOUT_STRIDED) found.layout = QDQ_LAYOUT_ANY; /* no strides were given yet */
    qdq_error why = {0};
    const qdq_status st = qdqi_desc_check(&found, &why);
    if (st != QDQ_OK) return QDQI_RULE_FAIL(ctx, st, "output %" PRIu32 ": %s", port, why.text);
    found.layout = out->layout;
    if (found.layout == QDQ_LAYOUT_STRIDED) qdqi_set_dense(&found);
    *out = found;
    return QDQ_OK;
}

qdq_status qdqi_set_out_like(const qdqi_infer_ctx *ctx, uint32_t port, uint32_t i) {
    return qdqi_set_out(ctx, port, ctx->in[i]->ndims, ctx->in[i]->dims);
}

qdq_status qdqi_axis_attr(const qdqi_infer_ctx *ctx, qdqi_attr_name name, int32_t ndims, int32_t *axis_out) {
    const int64_t axis = qdqi_op_s64(ctx->op, name);
    if (qdqi_norm_axis(axis, ndims, axis_out)) return QDQ_OK;
    return QDQI_ATTR_FAIL(ctx, QDQ_E_BAD_ATTR, name, "found %" PRId64 ", expected an axis of rank %d", axis,
                          (int)ndims);
}

qdq_status qdqi_axes_of(const qdqi_infer_ctx *ctx, const char *what, const int64_t *values, int64_t n, int32_t ndims,
                        qdqi_axes *out) {
    *out = (qdqi_axes){0};
    for (int64_t i = 0; i < n; i++) {
        int32_t axis = 0;
        if (!qdqi_norm_axis(values[i], ndims, &axis))
            return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ATTR, "%s: found %" PRId64 ", expected an axis of rank %d", what,
                                  values[i], (int)ndims);
        if (out->has[axis]) return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_ATTR, "%s: axis %d is given twice", what, (int)axis);
        out->has[axis] = true;
        out->axis[out->n++] = axis;
    }
    return QDQ_OK;
}

qdq_status qdqi_in_list(const qdqi_infer_ctx *ctx, uint32_t i, int64_t max, int64_t *values_out, int64_t *n_out) {
    const int64_t n = qdqi_n_elems(ctx->in[i]);
    if (ctx->in[i]->ndims > 1 || n > max)
        return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE,
                              "input %" PRIu32 ": found shape %s, expected 1-D of at most %" PRId64, i,
                              qdqi_in_shape(ctx, i).s, max);
    for (int64_t k = 0; k < n; k++)
        values_out[k] = qdqi_in_i64(ctx, i, k);
    *n_out = n;
    return QDQ_OK;
}

qdq_status qdqi_axes_in_or_attr(const qdqi_infer_ctx *ctx, uint32_t i, qdqi_attr_name name, int32_t ndims,
                                qdqi_axes *out, bool *known) {
    *out = (qdqi_axes){0};
    *known = true;
    if (i < ctx->n_in && ctx->in[i] != NULL) {
        *known = qdqi_in_has_data(ctx, i);
        if (!*known) return QDQ_OK;
        int64_t values[QDQ_MAX_NDIMS], n = 0;
        QDQI_TRY(qdqi_in_list(ctx, i, QDQ_MAX_NDIMS, values, &n));
        return qdqi_axes_of(ctx, "input axes", values, n, ndims, out);
    }
    uint32_t n = 0;
    const int64_t *values = qdqi_op_s64s(ctx->op, name, &n);
    return qdqi_axes_of(ctx, "attribute \"axes\"", values, n, ndims, out);
}

int32_t qdqi_channel_dim(const qdqi_op *op, int32_t ndims) {
    return qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NXC") ? ndims - 1 : 1;
}

qdq_status qdqi_expect_vector(const qdqi_infer_ctx *ctx, uint32_t i, int64_t n, const char *why) {
    if (!qdqi_in_known(ctx, i)) return QDQ_OK;
    if (ctx->in[i]->ndims == 1 && ctx->in[i]->dims[0] == n) return QDQ_OK;
    return QDQI_RULE_FAIL(ctx, QDQ_E_BAD_SHAPE, "input %" PRIu32 ": found shape %s, expected %" PRId64 " (%s)", i,
                          qdqi_in_shape(ctx, i).s, n, why);
}
