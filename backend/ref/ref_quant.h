/* Which scale and zero point an element has: shared by the quantization ops of the three specs. */
#ifndef QDQI_REF_QUANT_H
#define QDQI_REF_QUANT_H

#include "ref/ref_io.h"

/* Parameter index of element (i0, i1, …): sum of (i_d / group_d) * stride_d. */
typedef struct qdqi_ref_qmap {
    int32_t ndims;
    int64_t dims[QDQ_MAX_NDIMS], group[QDQ_MAX_NDIMS], stride[QDQ_MAX_NDIMS];
} qdqi_ref_qmap;

void qdqi_ref_qmap_tensor(qdqi_ref_qmap *m, const qdq_tensor_desc *desc);
/* `n` parameters along the axis, element i_axis uses parameter i_axis */
void qdqi_ref_qmap_axis(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, int32_t axis);
/* Blocks of `block` along the axis (the last may be shorter), one parameter per element of the other dims. */
void qdqi_ref_qmap_block(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, int32_t axis, int64_t block);
/* Groups of any size per dim; parameters are a dense tensor of dims/group. */
void qdqi_ref_qmap_group(qdqi_ref_qmap *m, const qdq_tensor_desc *desc, const int64_t *group);

/* Elements [at, at + n) of the dense tensor use parameter q. */
typedef void (*qdqi_ref_qrun)(void *job, int64_t at, int64_t n, int64_t q);
void qdqi_ref_qmap_walk(const qdqi_ref_qmap *m, qdqi_ref_qrun run, void *job);

/* Round to an integer of [lo, hi] that was found in float: NaN gives `nan_value` clamped. */
static inline int32_t qdqi_ref_sat(double rounded, int64_t lo, int64_t hi, int64_t nan_value) {
    if (rounded != rounded) rounded = (double)nan_value;
    if (rounded <= (double)lo) return (int32_t)lo;
    if (rounded >= (double)hi) return (int32_t)hi;
    return (int32_t)rounded;
}

#endif
