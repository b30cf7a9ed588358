/* The graph API of one library that has it: oneDNN itself, or libqdq's stand-in for it. Both can be open in one process, since
 * their functions are called through this table and never by name; engines, streams and memory are oneDNN's for both. */
#ifndef DNNL_CALLS_H
#define DNNL_CALLS_H

#include "base/error.h"

#include "oneapi/dnnl/dnnl_graph.h"

#define DNNL_CALLS(X)                                                                                                  \
    X(add_op)                                                                                                          \
    X(compiled_partition_create)                                                                                       \
    X(compiled_partition_destroy)                                                                                      \
    X(compiled_partition_execute)                                                                                      \
    X(compiled_partition_query_logical_tensor)                                                                         \
    X(graph_create)                                                                                                    \
    X(graph_destroy)                                                                                                   \
    X(graph_filter)                                                                                                    \
    X(graph_finalize)                                                                                                  \
    X(graph_get_partition_num)                                                                                         \
    X(graph_get_partitions)                                                                                            \
    X(logical_tensor_init_with_dims)                                                                                   \
    X(logical_tensor_init_with_strides)                                                                                \
    X(op_add_input)                                                                                                    \
    X(op_add_output)                                                                                                   \
    X(op_create)                                                                                                       \
    X(op_destroy)                                                                                                      \
    X(op_set_attr_bool)                                                                                                \
    X(op_set_attr_f32)                                                                                                 \
    X(op_set_attr_s64)                                                                                                 \
    X(op_set_attr_str)                                                                                                 \
    X(partition_compile)                                                                                               \
    X(partition_destroy)                                                                                               \
    X(partition_get_input_ports)                                                                                       \
    X(partition_get_input_ports_num)                                                                                   \
    X(partition_get_op_num)                                                                                            \
    X(partition_get_ops)                                                                                               \
    X(partition_get_output_ports)                                                                                      \
    X(partition_get_output_ports_num)                                                                                  \
    X(partition_is_supported)                                                                                          \
    X(set_constant_tensor_cache_capacity)                                                                              \
    X(tensor_create)                                                                                                   \
    X(tensor_destroy)

typedef struct dnnl_calls {
    void *lib; /* of dlopen */
#define DNNL_CALLS_MEMBER(name) __typeof__(&dnnl_graph_##name) name;
    DNNL_CALLS(DNNL_CALLS_MEMBER)
#undef DNNL_CALLS_MEMBER
} dnnl_calls;

/* Open the library `path`, or with NULL the libdnnl that this program is linked with. It stays open. Errors: IO, naming what is
 * missing. */
qdq_status dnnl_calls_open(const char *path, dnnl_calls *calls, qdq_error *err);

#endif
