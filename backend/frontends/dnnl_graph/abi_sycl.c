/* The SYCL functions of the interface. There is no SYCL device here. */
#include "abi.h"

#include <oneapi/dnnl/dnnl_graph_sycl.h>

dnnl_status_t dnnl_graph_sycl_interop_allocator_create(dnnl_graph_allocator_t *allocator,
                                                       dnnl_graph_sycl_allocate_f sycl_malloc,
                                                       dnnl_graph_sycl_deallocate_f sycl_free) {
    (void)allocator;
    (void)sycl_malloc;
    (void)sycl_free;
    return dnnl_unimplemented;
}

dnnl_status_t dnnl_graph_sycl_interop_make_engine_with_allocator(dnnl_engine_t *engine, const void *device,
                                                                 const void *context,
                                                                 const_dnnl_graph_allocator_t alloc) {
    (void)engine;
    (void)device;
    (void)context;
    (void)alloc;
    return dnnl_unimplemented;
}

dnnl_status_t dnnl_graph_sycl_interop_compiled_partition_execute(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream, size_t num_inputs,
    const_dnnl_graph_tensor_t *inputs, size_t num_outputs, const_dnnl_graph_tensor_t *outputs, const void *deps,
    void *sycl_event) {
    (void)compiled_partition;
    (void)stream;
    (void)num_inputs;
    (void)inputs;
    (void)num_outputs;
    (void)outputs;
    (void)deps;
    (void)sycl_event;
    return dnnl_unimplemented;
}
