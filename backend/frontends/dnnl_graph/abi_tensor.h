/* What execute sees of a tensor. */
#ifndef QDQ_DNNL_GRAPH_ABI_TENSOR_H
#define QDQ_DNNL_GRAPH_ABI_TENSOR_H

#include "abi.h"

struct dnnl_graph_tensor {
    void *data;
    uint64_t signature; /* of lt */
    abi_lt lt;
    dnnl_engine_t engine;
    const abi_engine *owner; /* of an allocated buffer; NULL: the caller's */
};

#endif
