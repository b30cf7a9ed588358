/* Tensors: a logical tensor and a buffer, the caller's or one of the engine's allocator. */
#include "abi_tensor.h"

dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t *tensor, const dnnl_graph_logical_tensor_t *logical_tensor,
                                       dnnl_engine_t engine, void *handle) {
    if (tensor == NULL || logical_tensor == NULL || engine == NULL) return dnnl_invalid_arguments;
    dnnl_graph_tensor_t t = abi_calloc(1, sizeof *t);
    if (t == NULL) return dnnl_out_of_memory;
    *t = (struct dnnl_graph_tensor){
        .lt = *logical_tensor, .engine = engine, .data = handle, .signature = abi_lt_signature(logical_tensor)};
    if (handle == DNNL_MEMORY_ALLOCATE) {
        const size_t bytes = abi_lt_strides_known(logical_tensor) ? abi_lt_bytes(logical_tensor) : SIZE_MAX;
        dnnl_status_t status = dnnl_invalid_arguments; /* a size that nobody knows */
        if (bytes != SIZE_MAX) {
            t->owner = abi_engine_of(engine);
            t->data = abi_engine_malloc(t->owner, bytes);
            status = t->data == NULL ? dnnl_out_of_memory : dnnl_success;
        }
        if (status != dnnl_success) {
            free(t);
            return status;
        }
    }
    *tensor = t;
    return dnnl_success;
}

static void drop_buffer(dnnl_graph_tensor_t tensor) {
    if (tensor->owner != NULL) abi_engine_free(tensor->owner, tensor->data);
    tensor->owner = NULL;
    tensor->data = NULL;
}

dnnl_status_t dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor) {
    if (tensor != NULL) drop_buffer(tensor);
    free(tensor);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor, void **handle) {
    if (tensor == NULL || handle == NULL) return dnnl_invalid_arguments;
    *handle = tensor->data;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void *handle) {
    if (tensor == NULL || handle == DNNL_MEMORY_ALLOCATE) return dnnl_invalid_arguments;
    if (tensor->owner != NULL && handle == tensor->data) return dnnl_success;
    drop_buffer(tensor);
    tensor->data = handle;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor, dnnl_engine_t *engine) {
    if (tensor == NULL || engine == NULL) return dnnl_invalid_arguments;
    *engine = tensor->engine;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                   dnnl_graph_logical_tensor_t *logical_tensor) {
    if (tensor == NULL || logical_tensor == NULL) return dnnl_invalid_arguments;
    *logical_tensor = tensor->lt;
    return dnnl_success;
}
