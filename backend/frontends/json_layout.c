#include "json_layout.h"

#include "base/checked.h"

#include <inttypes.h>

qdq_status qdqi_json_lay_out(qdq_tensor_desc *desc, const int32_t *order, qdq_error *err) {
    int64_t stride = 1, strides[QDQ_MAX_NDIMS] = {0};
    for (int32_t i = desc->ndims - 1; i >= 0; i--) {
        const int32_t d = order[i];
        strides[d] = stride;
        if (!qdqi_mul_i64(stride, desc->dims[d] > 0 ? desc->dims[d] : 1, &stride))
            return qdqi_fail(err, QDQ_E_OVERFLOW, "tensor %" PRIu64 ": the shape is too large", desc->id);
    }
    const qdq_tensor_desc was = *desc;
    return qdq_tensor_desc_init_strided(was.id, was.dtype, was.ndims, was.dims, strides, was.property, desc, err);
}

void qdqi_json_physical_order(const qdq_tensor_desc *desc, int32_t ndims, int32_t *order) {
    for (int32_t i = 0; i < ndims; i++)
        order[i] = i;
    if (desc->layout != QDQ_LAYOUT_STRIDED || desc->ndims != ndims) return;
    for (int32_t i = 1; i < ndims; i++) { /* stable: equal strides stay in order */
        const int32_t d = order[i];
        int32_t k = i;
        for (; k > 0 && desc->strides[order[k - 1]] < desc->strides[d]; k--)
            order[k] = order[k - 1];
        order[k] = d;
    }
}
