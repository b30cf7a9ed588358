#include "ir/desc.h"

#include "base/strides.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static bool dtype_exists(qdq_dtype dtype) {
    switch (dtype) {
#define QDQ_DTYPE_IS(name, value, text, bits)                                                                          \
    case QDQ_DTYPE_##name: return true;
        QDQ_DTYPE_MAP(QDQ_DTYPE_IS)
#undef QDQ_DTYPE_IS
    }
    return false;
}

/* The product with zero dims counted as one, so that strides cannot overflow either. */
static bool product(int32_t ndims, const int64_t *dims, int64_t *n_out) {
    int64_t n = 1;
    for (int32_t i = 0; i < ndims; i++)
        if (dims[i] > 0 && !qdqi_mul_i64(n, dims[i], &n)) return false;
    *n_out = n;
    return true;
}

qdq_status qdqi_desc_check(const qdq_tensor_desc *desc, qdq_error *err) {
    const int32_t ndims = desc->ndims;
    if (ndims < QDQ_NDIMS_UNKNOWN || ndims > QDQ_MAX_NDIMS)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "rank: found %d, expected at most %d (or %d: unknown)", (int)ndims,
                         QDQ_MAX_NDIMS, QDQ_NDIMS_UNKNOWN);
    if (!dtype_exists(desc->dtype))
        return qdqi_fail(err, QDQ_E_BAD_DTYPE, "data type: found %d, which is none", (int)desc->dtype);
    if (desc->layout < QDQ_LAYOUT_UNDEF || desc->layout > QDQ_LAYOUT_OPAQUE)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "layout: found %d, which is none", (int)desc->layout);
    if (desc->property < QDQ_PROPERTY_UNDEF || desc->property > QDQ_PROPERTY_CONSTANT)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "property: found %d, which is none", (int)desc->property);
    for (int32_t i = 0; i < ndims; i++)
        if (desc->dims[i] < 0 && desc->dims[i] != QDQ_DIM_UNKNOWN)
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "dimension %d: found %" PRId64 ", expected 0 or more", (int)i,
                             desc->dims[i]);
    int64_t n = 0;
    size_t bytes = 0;
    const qdqi_shape_text shape = qdqi_shape_str(ndims, desc->dims);
    if (!product(ndims, desc->dims, &n) || !qdqi_dtype_bytes(desc->dtype, n, &bytes) || bytes > SIZE_MAX / 4)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "shape %s: its size overflows", shape.s);
    if (desc->layout != QDQ_LAYOUT_STRIDED || !qdqi_dims_known(desc)) return QDQ_OK;
    for (int32_t i = 0; i < ndims; i++)
        if (desc->strides[i] < 0)
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "stride %d: found %" PRId64 ", expected 0 or more", (int)i,
                             desc->strides[i]);
    if (!qdqi_span_elems(desc, &n) || !qdqi_dtype_bytes(desc->dtype, n, &bytes) || bytes > SIZE_MAX / 4)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "shape %s with strides %s: its size overflows", shape.s,
                         qdqi_shape_str(ndims, desc->strides).s);
    return QDQ_OK;
}

qdq_status qdqi_desc_bytes(const qdq_tensor_desc *desc, size_t *bytes_out, qdq_error *err) {
    if (!qdqi_dims_known(desc))
        return qdqi_fail(err, QDQ_E_BAD_STATE, "tensor %" PRIu64 ": dims are unknown", desc->id);
    int64_t n = 0;
    qdq_tensor_desc dense = *desc;
    if (desc->layout != QDQ_LAYOUT_STRIDED) {
        if (!product(desc->ndims, desc->dims, &n))
            return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": its size overflows", desc->id);
        qdqi_set_dense(&dense);
    }
    if (!qdqi_span_elems(&dense, &n) || !qdqi_dtype_bytes(desc->dtype, n, bytes_out))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": its size overflows", desc->id);
    return QDQ_OK;
}

bool qdqi_dims_known(const qdq_tensor_desc *desc) {
    if (desc->ndims < 0) return false;
    for (int32_t i = 0; i < desc->ndims; i++)
        if (desc->dims[i] == QDQ_DIM_UNKNOWN) return false;
    return true;
}

int64_t qdqi_n_elems(const qdq_tensor_desc *desc) {
    int64_t n = 1;
    for (int32_t i = 0; i < desc->ndims; i++)
        n *= desc->dims[i];
    return n;
}

void qdqi_dense_strides(int32_t ndims, const int64_t *dims, int64_t *strides_out) {
    int64_t stride = 1;
    for (int32_t i = ndims - 1; i >= 0; i--) {
        strides_out[i] = stride;
        if (dims[i] > 1) stride *= dims[i];
    }
}

static bool has_zero(const qdq_tensor_desc *desc) {
    for (int32_t i = 0; i < desc->ndims; i++)
        if (desc->dims[i] == 0) return true;
    return false;
}

bool qdqi_is_dense(const qdq_tensor_desc *desc) {
    if (has_zero(desc)) return true;
    int64_t stride = 1;
    for (int32_t i = desc->ndims - 1; i >= 0; i--) {
        if (desc->dims[i] != 1 && desc->strides[i] != stride) return false;
        stride *= desc->dims[i];
    }
    return true;
}

bool qdqi_is_packed(const qdq_tensor_desc *desc) {
    if (has_zero(desc)) return true;
    bool seen[QDQ_MAX_NDIMS] = {false};
    int64_t stride = 1;
    /* dims in order of their strides: each must start where the smaller ones end */
    for (int32_t k = 0; k < desc->ndims; k++) {
        int32_t next = -1;
        for (int32_t i = 0; i < desc->ndims; i++)
            if (!seen[i] && desc->dims[i] != 1 && desc->strides[i] == stride) next = i;
        if (next < 0) break;
        seen[next] = true;
        stride *= desc->dims[next];
    }
    for (int32_t i = 0; i < desc->ndims; i++)
        if (!seen[i] && desc->dims[i] != 1) return false;
    return true;
}

void qdqi_set_dense(qdq_tensor_desc *desc) {
    desc->layout = QDQ_LAYOUT_STRIDED;
    qdqi_dense_strides(desc->ndims, desc->dims, desc->strides);
}

void qdqi_set_channels_last(qdq_tensor_desc *desc) {
    qdqi_set_dense(desc);
    if (desc->ndims < 3) return;
    int64_t stride = desc->dims[1] > 1 ? desc->dims[1] : 1;
    for (int32_t i = desc->ndims - 1; i >= 2; i--) {
        desc->strides[i] = stride;
        if (desc->dims[i] > 1) stride *= desc->dims[i];
    }
    desc->strides[1] = 1;
    desc->strides[0] = stride;
}

bool qdqi_span_elems(const qdq_tensor_desc *desc, int64_t *span_out) {
    *span_out = 0;
    if (has_zero(desc)) return true;
    int64_t span = 1;
    for (int32_t i = 0; i < desc->ndims; i++) {
        int64_t step = 0;
        if (!qdqi_mul_i64(desc->dims[i] - 1, desc->strides[i], &step) || !qdqi_add_i64(span, step, &span)) return false;
    }
    *span_out = span;
    return true;
}

bool qdqi_same_dims(const qdq_tensor_desc *a, const qdq_tensor_desc *b) {
    if (a->ndims != b->ndims) return false;
    return a->ndims <= 0 || memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof a->dims[0]) == 0;
}

bool qdqi_same_strides(const qdq_tensor_desc *a, const qdq_tensor_desc *b) {
    if (a->ndims != b->ndims) return false;
    for (int32_t i = 0; i < a->ndims; i++)
        if (a->dims[i] != 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

bool qdqi_broadcast(const qdq_tensor_desc *a, const qdq_tensor_desc *b, int32_t *ndims_out, int64_t *dims_out) {
    const int32_t ndims = a->ndims > b->ndims ? a->ndims : b->ndims;
    for (int32_t i = 1; i <= ndims; i++) { /* from the last dim */
        const int64_t da = i <= a->ndims ? a->dims[a->ndims - i] : 1;
        const int64_t db = i <= b->ndims ? b->dims[b->ndims - i] : 1;
        if (da != db && da != 1 && db != 1) return false;
        dims_out[ndims - i] = da == 1 ? db : da;
    }
    *ndims_out = ndims;
    return true;
}

bool qdqi_norm_axis(int64_t axis, int32_t ndims, int32_t *out) {
    if (axis < -(int64_t)ndims || axis >= ndims) return false;
    *out = (int32_t)(axis < 0 ? axis + ndims : axis);
    return true;
}

bool qdqi_overlaps(const qdq_tensor_desc *desc) {
    return qdqi_strides_overlap(desc->ndims, desc->dims, desc->strides);
}
