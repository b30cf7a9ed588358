/* A primitive as its users see it: who made it does not matter to them. The facade makes primitives of oneDNN, the room native/
 * makes them of our own kernels, from the same request; both begin with this struct. The functions of onednn.h that take a
 * primitive ask it through its table. */
#ifndef QDQI_PRIM_H
#define QDQI_PRIM_H

#include "onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The contracts are those of the functions of the same name in onednn.h. */
typedef struct qdqi_prim_ops {
    void (*destroy)(qdqi_dnnl_prim *prim);
    uint32_t (*n_args)(const qdqi_dnnl_prim *prim);
    qdqi_dnnl_arg (*arg)(const qdqi_dnnl_prim *prim, uint32_t i);
    size_t (*arg_bytes)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg);
    bool (*arg_strides)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, int64_t *strides_out);
    bool (*arg_is)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided);
    const void *(*arg_key)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, size_t *bytes_out);
    qdq_status (*pack)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data,
                       void *dst, qdq_error *err);
    qdq_status (*reorder_for)(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided, bool to_prim,
                              qdqi_dnnl_prim **out, qdq_error *err);
    qdq_status (*step)(qdqi_plan *plan, qdqi_dnnl_prim *prim, const qdqi_buf *bufs, uint32_t n_bufs, uint32_t part,
                       qdq_error *err);
} qdqi_prim_ops;

struct qdqi_dnnl_prim {
    const qdqi_prim_ops *ops;
    bool is_ref, is_native;
    char impl[96];  /* "matmul brgemm:avx512_core_vnni" */
    char note[224]; /* of its step */
};

#ifdef __cplusplus
}
#endif
#endif
