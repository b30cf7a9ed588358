/* Running the rules of one op, and the arrays that they see. */
#include "ir/infer.h"

#include "base/alloc.h"

qdq_status qdqi_run_rules(const qdqi_infer_ctx *ctx) {
    const qdqi_schema *schema = ctx->op->schema;
    QDQI_TRY(schema->dtypes(ctx));
    if (schema->check != NULL) QDQI_TRY(schema->check(ctx));
    return schema->shape(ctx);
}

qdq_status qdqi_infer_arrays_init(qdqi_infer_arrays *arrays, uint32_t n_in, uint32_t n_out, qdq_error *err) {
    *arrays = (qdqi_infer_arrays){.in = arrays->in_few, .in_data = arrays->in_data_few, .out = arrays->out_few};
    if (n_in <= QDQI_FEW_PORTS && n_out <= QDQI_FEW_PORTS) return QDQ_OK;
    /* three arrays of pointers in one block */
    const size_t n = (size_t)n_in + n_in + n_out;
    arrays->many = qdqi_calloc(n, sizeof(void *));
    if (arrays->many == NULL) return QDQI_NO_MEMORY(err);
    arrays->in = arrays->many;
    arrays->in_data = (const void **)((void **)arrays->many + n_in);
    arrays->out = (qdq_tensor_desc **)((void **)arrays->many + n_in + n_in);
    return QDQ_OK;
}

void qdqi_infer_arrays_free(qdqi_infer_arrays *arrays) {
    qdqi_free(arrays->many);
    arrays->many = NULL;
}

qdqi_infer_ctx qdqi_infer_arrays_ctx(const qdqi_infer_arrays *arrays, const qdqi_op *op, qdq_error *err) {
    return (qdqi_infer_ctx){.op = op,
                            .n_in = op->n_in,
                            .n_out = op->n_out,
                            .in = arrays->in,
                            .in_data = arrays->in_data,
                            .out = arrays->out,
                            .err = err};
}

/* Rules read contents as dense arrays: what is laid out otherwise counts as unknown. */
const void *qdqi_value_dense_data(const qdqi_value *value) {
    return value->data != NULL && qdqi_is_dense(&value->desc) ? value->data : NULL;
}

qdq_status qdqi_op_infer(const qdq_graph *graph, const qdqi_op *op, const qdq_tensor_desc *const *in,
                         qdq_tensor_desc *const *out, qdq_error *err) {
    qdqi_infer_arrays arrays;
    QDQI_TRY(qdqi_infer_arrays_init(&arrays, op->n_in, op->n_out, err));
    for (uint32_t i = 0; i < op->n_in; i++) {
        arrays.in[i] = op->in[i] == QDQI_NONE ? NULL : in[i];
        arrays.in_data[i] = op->in[i] == QDQI_NONE ? NULL : qdqi_value_dense_data(&graph->values[op->in[i]]);
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        arrays.out[i] = out[i];
    const qdqi_infer_ctx ctx = qdqi_infer_arrays_ctx(&arrays, op, err);
    const qdq_status st = qdqi_run_rules(&ctx);
    qdqi_infer_arrays_free(&arrays);
    return st;
}
