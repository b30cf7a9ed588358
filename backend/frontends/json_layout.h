/* Layouts of the tensors of a case: order of dims in memory, and strides from it. */
#ifndef QDQI_JSON_LAYOUT_H
#define QDQI_JSON_LAYOUT_H

#include "base/error.h"

/* Give `desc` the gapless strides of its dims with order[0] outermost. Errors: OVERFLOW. */
qdq_status qdqi_json_lay_out(qdq_tensor_desc *desc, const int32_t *order, qdq_error *err);
/* Order of `ndims` dims as the strides of `desc` put them, outermost first; row-major when they say nothing. */
void qdqi_json_physical_order(const qdq_tensor_desc *desc, int32_t ndims, int32_t *order);
#endif
