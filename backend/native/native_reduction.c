#include "native/native_prim.h"

qdq_status qdqi_native_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "reduction", "no_native_kernel");
}
