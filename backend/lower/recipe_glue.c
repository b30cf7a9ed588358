/* Glue between integer tensors on the library's own kernels: dq - ops - q without a float tensor in between. */
#include "lower/single.h"

qdq_status qdqi_recipe_glue(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    (void)lw, (void)part;
    return qdqi_refuse(err, "glue", "no_kernel");
}

qdq_status qdqi_lower_quant(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    (void)lw;
    return qdqi_refuse(err, op->schema->name, "no_kernel");
}
