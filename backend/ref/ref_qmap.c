#include "ref/ref_quant.h"

#include <string.h>

void qdqi_ref_qmap_tensor(qdqi_ref_qmap *m, const qdq_tensor_desc *desc) {
    m->ndims = 1;
    m->dims[0] = m->group[0] = qdqi_n_elems(desc);
    m->stride[0] = 0;
}

/* outer x axis x inner, where a missing inner leaves out its dim */
static void three_dims(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, int32_t axis, int64_t block) {
    m->dims[0] = qdqi_ref_count(desc, 0, axis);
    m->dims[1] = desc->dims[axis];
    m->dims[2] = qdqi_ref_count(desc, axis + 1, desc->ndims);
    m->ndims = m->dims[2] == 1 ? 2 : 3;
    m->group[0] = m->group[2] = 1;
    m->group[1] = block;
}

void qdqi_ref_qmap_axis(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, int32_t axis) {
    three_dims(m, desc, axis, 1);
    m->stride[0] = m->stride[2] = 0;
    m->stride[1] = 1;
}

void qdqi_ref_qmap_block(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, int32_t axis, int64_t block) {
    three_dims(m, desc, axis, block);
    const int64_t n_blocks = (m->dims[1] + block - 1) / block;
    m->stride[0] = n_blocks * m->dims[2];
    m->stride[1] = m->dims[2];
    m->stride[2] = 1;
}

void qdqi_ref_qmap_group(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, const int64_t *group) {
    m->ndims = desc->ndims;
    int64_t stride = 1;
    for (int32_t d = desc->ndims - 1; d >= 0; d--) {
        m->dims[d] = desc->dims[d];
        m->group[d] = group[d];
        m->stride[d] = stride;
        stride *= (desc->dims[d] + group[d] - 1) / group[d];
    }
}

void qdqi_ref_qmap_walk(const qdqi_ref_qmap *m, qdqi_ref_qrun run, void *job) {
    int64_t n_rows = 1, idx[QDQ_MAX_NDIMS] = {0};
    if (m->ndims == 0) {
        run(job, 0, 1, 0);
        return;
    }
    const int32_t last = m->ndims - 1;
    const int64_t n = m->dims[last];
    const int64_t piece = m->stride[last] == 0 ? n : m->group[last];
    for (int32_t d = 0; d < last; d++)
        n_rows *= m->dims[d];
    if (n == 0) return;
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t q = 0;
        for (int32_t d = 0; d < last; d++)
            q += idx[d] / m->group[d] * m->stride[d];
        for (int64_t i = 0; i < n; i += piece, q += m->stride[last])
            run(job, row * n + i, n - i < piece ? n - i : piece, q);
        for (int32_t d = last - 1; d >= 0 && ++idx[d] == m->dims[d]; d--)
            idx[d] = 0;
    }
}
