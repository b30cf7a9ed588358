// The graph interface by table: of libqdq_dnnl_graph, which the tests are linked with ahead of libdnnl, and of libdnnl alone.
#ifndef QDQ_TEST_DNNL_GRAPH_ABI_CALLS_H
#define QDQ_TEST_DNNL_GRAPH_ABI_CALLS_H

#include "harness/dnnl_graph_calls.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_graph.h>
#include <oneapi/dnnl/dnnl_graph_sycl.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define ABI_CALLS(X)                                                                                                   \
    QH_DNNL_GRAPH_CALLS(X)                                                                                             \
    X(allocator_create)                                                                                                \
    X(allocator_destroy)                                                                                               \
    X(compiled_partition_get_inplace_ports)                                                                            \
    X(get_compiled_partition_cache_capacity)                                                                           \
    X(get_constant_tensor_cache)                                                                                       \
    X(get_constant_tensor_cache_capacity)                                                                              \
    X(graph_create_with_fpmath_mode)                                                                                   \
    X(graph_get_fpmath_mode)                                                                                           \
    X(graph_is_finalized)                                                                                              \
    X(graph_set_fpmath_mode)                                                                                           \
    X(logical_tensor_get_mem_size)                                                                                     \
    X(logical_tensor_init)                                                                                             \
    X(logical_tensor_is_equal)                                                                                         \
    X(make_engine_with_allocator)                                                                                      \
    X(op_get_id)                                                                                                       \
    X(op_get_kind)                                                                                                     \
    X(partition_create_with_op)                                                                                        \
    X(partition_get_engine_kind)                                                                                       \
    X(partition_get_id)                                                                                                \
    X(set_compiled_partition_cache_capacity)                                                                           \
    X(set_constant_tensor_cache)                                                                                       \
    X(sycl_interop_allocator_create)                                                                                   \
    X(sycl_interop_compiled_partition_execute)                                                                         \
    X(sycl_interop_make_engine_with_allocator)                                                                         \
    X(tensor_get_data_handle)                                                                                          \
    X(tensor_get_engine)                                                                                               \
    X(tensor_get_logical_tensor)                                                                                       \
    X(tensor_set_data_handle)

namespace qdq_test {

struct AbiCalls {
#define ABI_MEMBER(name) decltype(&dnnl_graph_##name) name;
    ABI_CALLS(ABI_MEMBER)
#undef ABI_MEMBER
};

inline const AbiCalls &Ours() {
    static const AbiCalls calls = {
#define ABI_OURS(name) &dnnl_graph_##name,
        ABI_CALLS(ABI_OURS)
#undef ABI_OURS
    };
    return calls;
}

// The library that the symbol's address lies in.
template <class Function> std::string FileOf(Function *function) {
    Dl_info info;
    void *at;
    memcpy(&at, &function, sizeof at);
    return dladdr(at, &info) != 0 ? info.dli_fname : "";
}

// Found in libdnnl itself, whatever stands in front of it.
inline const AbiCalls &Upstream() {
    static const AbiCalls calls = [] {
        AbiCalls c;
        void *lib = dlopen(FileOf(&dnnl_version).c_str(), RTLD_NOW | RTLD_LOCAL);
#define ABI_FIND(name)                                                                                                 \
    {                                                                                                                  \
        void *at = dlsym(lib, "dnnl_graph_" #name);                                                                    \
        memcpy(&c.name, &at, sizeof at);                                                                               \
    }
        ABI_CALLS(ABI_FIND)
#undef ABI_FIND
        return c;
    }();
    return calls;
}

using Lt = dnnl_graph_logical_tensor_t;
using Dims = std::vector<int64_t>;

inline const dnnl_dim_t *Padded(const Dims &dims, dnnl_dims_t out) {
    for (size_t i = 0; i < DNNL_MAX_NDIMS; i++)
        out[i] = i < dims.size() ? dims[i] : 0;
    return out;
}

inline Lt MakeLt(size_t id, dnnl_data_type_t dtype, const Dims &dims,
                 dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_strided,
                 dnnl_graph_tensor_property_t property = dnnl_graph_tensor_property_undef) {
    Lt lt;
    dnnl_dims_t padded;
    dnnl_graph_logical_tensor_init_with_dims(&lt, id, dtype, static_cast<int32_t>(dims.size()), Padded(dims, padded),
                                             layout, property);
    return lt;
}

inline Lt MakeStrided(size_t id, dnnl_data_type_t dtype, const Dims &dims, const Dims &strides) {
    Lt lt;
    dnnl_dims_t padded, steps;
    dnnl_graph_logical_tensor_init_with_strides(&lt, id, dtype, static_cast<int32_t>(dims.size()), Padded(dims, padded),
                                                Padded(strides, steps), dnnl_graph_tensor_property_undef);
    return lt;
}

inline Lt UnknownLt(size_t id, dnnl_data_type_t dtype,
                    dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_strided) {
    Lt lt;
    dnnl_graph_logical_tensor_init(&lt, id, dtype, DNNL_GRAPH_UNKNOWN_NDIMS, layout, dnnl_graph_tensor_property_undef);
    return lt;
}

} // namespace qdq_test

#endif
