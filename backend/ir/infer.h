/* The arrays behind a qdqi_infer_ctx: on the stack for ops with few ports, else one heap block. */
#ifndef QDQI_INFER_H
#define QDQI_INFER_H

#include "ir/rule.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QDQI_FEW_PORTS = 10 };

/* Points into itself: do not copy. */
typedef struct qdqi_infer_arrays {
    const qdq_tensor_desc **in;
    const void **in_data;
    qdq_tensor_desc **out;
    void *many;
    const qdq_tensor_desc *in_few[QDQI_FEW_PORTS];
    const void *in_data_few[QDQI_FEW_PORTS];
    qdq_tensor_desc *out_few[QDQI_FEW_PORTS];
} qdqi_infer_arrays;

qdq_status qdqi_infer_arrays_init(qdqi_infer_arrays *arrays, uint32_t n_in, uint32_t n_out, qdq_error *err);
void qdqi_infer_arrays_free(qdqi_infer_arrays *arrays);
qdqi_infer_ctx qdqi_infer_arrays_ctx(const qdqi_infer_arrays *arrays, const qdqi_op *op, qdq_error *err);
/* Content of a constant when it is dense, else NULL. */
const void *qdqi_value_dense_data(const qdqi_value *value);

#ifdef __cplusplus
}
#endif
#endif
