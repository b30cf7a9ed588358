/* Descriptor helpers: sizes, strides, broadcasting. */
#ifndef QDQI_DESC_H
#define QDQI_DESC_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything that is wrong with one descriptor alone: rank outside -1…12, a negative dim or stride, a data type or layout
 * outside its enum, sizes whose product overflows. Errors: BAD_SHAPE, BAD_DTYPE, BAD_ARG. */
qdq_status qdqi_desc_check(const qdq_tensor_desc *desc, qdq_error *err);
/* Bytes of the buffer (STRIDED layout: its span; else dense). Dims must be known. Errors: BAD_STATE, OVERFLOW. */
qdq_status qdqi_desc_bytes(const qdq_tensor_desc *desc, size_t *bytes_out, qdq_error *err);

bool qdqi_dims_known(const qdq_tensor_desc *desc);
/* product of dims; dims must be known and checked (never fails for descriptors that passed finalize) */
int64_t qdqi_n_elems(const qdq_tensor_desc *desc);
/* Row-major strides of dims (a zero dim counts as 1). */
void qdqi_dense_strides(int32_t ndims, const int64_t *dims, int64_t *strides_out);
/* Row-major and gapless (dims of size 1 may have any stride; zero-size tensors are dense). */
bool qdqi_is_dense(const qdq_tensor_desc *desc);
/* Gapless in some order of dims: every element of the buffer is used once. */
bool qdqi_is_packed(const qdq_tensor_desc *desc);
/* Set layout STRIDED with row-major strides. */
void qdqi_set_dense(qdq_tensor_desc *desc);
/* Set strides of an NCX tensor (N, C, spatial…) to channels-last order; rank < 3 gets dense. */
void qdqi_set_channels_last(qdq_tensor_desc *desc);
/* Elements that the buffer spans: 1 + sum (dim-1)*stride, 0 when zero-size. False on overflow. */
bool qdqi_span_elems(const qdq_tensor_desc *desc, int64_t *span_out);
/* Two elements may share memory (no room for all elements between the strides; conservative for exotic strides). */
bool qdqi_overlaps(const qdq_tensor_desc *desc);
bool qdqi_same_dims(const qdq_tensor_desc *a, const qdq_tensor_desc *b);
bool qdqi_same_strides(const qdq_tensor_desc *a, const qdq_tensor_desc *b); /* dims of size 1 do not count */
/* numpy broadcast of two shapes; false when they do not fit. */
bool qdqi_broadcast(const qdq_tensor_desc *a, const qdq_tensor_desc *b, int32_t *ndims_out, int64_t *dims_out);
/* Axis in [-ndims, ndims) to [0, ndims); false when outside. */
bool qdqi_norm_axis(int64_t axis, int32_t ndims, int32_t *out);

#ifdef __cplusplus
}
#endif
#endif
