/* The functions of oneDNN's graph API that a program needs which partitions, compiles and runs: X(name without dnnl_graph_). */
#ifndef QH_DNNL_GRAPH_CALLS_H
#define QH_DNNL_GRAPH_CALLS_H

#define QH_DNNL_GRAPH_CALLS(X)                                                                                         \
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

#endif
