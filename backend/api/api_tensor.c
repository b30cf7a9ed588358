#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "ir/desc.h"

#include <inttypes.h>
#include <string.h>

#define QDQI_STR2(x) #x
#define QDQI_STR(x)  QDQI_STR2(x)

const char *qdq_version(void) {
    return QDQI_STR(QDQ_VERSION_MAJOR) "." QDQI_STR(QDQ_VERSION_MINOR) "." QDQI_STR(QDQ_VERSION_PATCH);
}

static qdq_status check_dims(uint64_t id, qdq_dtype dtype, int32_t ndims, const int64_t *dims, qdq_error *err) {
    int64_t n = 1;
    size_t bytes;
    if (ndims < QDQ_NDIMS_UNKNOWN || ndims > QDQ_MAX_NDIMS)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": rank is %d, expected -1 (unknown) to %d", id, ndims,
                         QDQ_MAX_NDIMS);
    if (ndims > 0 && dims == NULL) return qdqi_fail(err, QDQ_E_NULL_ARG, "tensor %" PRIu64 ": dims is NULL", id);
    for (int32_t i = 0; i < ndims; i++) {
        if (dims[i] == QDQ_DIM_UNKNOWN) continue;
        if (dims[i] < 0)
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": dim %d is %" PRId64 ", expected 0 or more", id,
                             i, dims[i]);
        if (dims[i] != 0 && !qdqi_mul_i64(n, dims[i], &n))
            return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": the number of elements of %s overflows", id,
                             qdqi_shape_str(ndims, dims).s);
    }
    if (dtype != QDQ_DTYPE_UNDEF && (!qdqi_dtype_bytes(dtype, n, &bytes) || bytes > PTRDIFF_MAX))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": %s of %s does not fit in memory", id,
                         qdqi_shape_str(ndims, dims).s, qdq_dtype_name(dtype));
    return QDQ_OK;
}

static qdq_status init(uint64_t id, qdq_dtype dtype, int32_t ndims, const int64_t *dims, qdq_layout layout,
                       qdq_property property, qdq_tensor_desc *out, qdq_error *err) {
    QDQI_TRY(check_dims(id, dtype, ndims, dims, err));
    memset(out, 0, sizeof *out);
    out->id = id;
    out->dtype = dtype;
    out->ndims = ndims;
    out->layout = layout;
    out->property = property;
    for (int32_t i = 0; i < ndims; i++)
        out->dims[i] = dims[i];
    return QDQ_OK;
}

qdq_status qdq_tensor_desc_init(uint64_t id, qdq_dtype dtype, int32_t ndims, const int64_t *dims, qdq_layout layout,
                                qdq_property property, qdq_tensor_desc *desc_out, qdq_error *err) {
    QDQI_NOT_NULL(err, desc_out);
    qdq_tensor_desc desc;
    QDQI_TRY(init(id, dtype, ndims, dims, layout, property, &desc, err));
    if (layout == QDQ_LAYOUT_STRIDED && qdqi_dims_known(&desc)) qdqi_set_dense(&desc);
    *desc_out = desc;
    return QDQ_OK;
}

qdq_status qdq_tensor_desc_init_strided(uint64_t id, qdq_dtype dtype, int32_t ndims, const int64_t *dims,
                                        const int64_t *strides, qdq_property property, qdq_tensor_desc *desc_out,
                                        qdq_error *err) {
    QDQI_NOT_NULL(err, desc_out);
    qdq_tensor_desc desc;
    QDQI_TRY(init(id, dtype, ndims, dims, QDQ_LAYOUT_STRIDED, property, &desc, err));
    if (ndims > 0) QDQI_NOT_NULL(err, strides);
    for (int32_t i = 0; i < ndims; i++) {
        if (strides[i] < 0)
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "tensor %" PRIu64 ": stride %d is %" PRId64 ", expected 0 or more",
                             id, i, strides[i]);
        desc.strides[i] = strides[i];
    }
    int64_t span;
    if (qdqi_dims_known(&desc) && !qdqi_span_elems(&desc, &span))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": its strides span more than fits in memory", id);
    *desc_out = desc;
    return QDQ_OK;
}

qdq_status qdq_tensor_desc_n_elems(const qdq_tensor_desc *desc, int64_t *n_out, qdq_error *err) {
    QDQI_NOT_NULL(err, desc);
    QDQI_NOT_NULL(err, n_out);
    QDQI_TRY(check_dims(desc->id, desc->dtype, desc->ndims, desc->dims, err));
    if (!qdqi_dims_known(desc))
        return qdqi_fail(err, QDQ_E_BAD_STATE, "tensor %" PRIu64 ": shape %s is not known yet", desc->id,
                         qdqi_shape_str(desc->ndims, desc->dims).s);
    *n_out = qdqi_n_elems(desc);
    return QDQ_OK;
}

qdq_status qdq_tensor_desc_size_bytes(const qdq_tensor_desc *desc, size_t *bytes_out, qdq_error *err) {
    int64_t n, span;
    QDQI_NOT_NULL(err, bytes_out);
    QDQI_TRY(qdq_tensor_desc_n_elems(desc, &n, err));
    if (desc->layout != QDQ_LAYOUT_STRIDED)
        return qdqi_fail(err, QDQ_E_BAD_STATE,
                         "tensor %" PRIu64 ": its layout is not strided, so its size is not known", desc->id);
    if (!qdqi_span_elems(desc, &span) || !qdqi_dtype_bytes(desc->dtype, span, bytes_out))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": its size in bytes overflows", desc->id);
    return QDQ_OK;
}
