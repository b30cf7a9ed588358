#include "native/native_prim.h"

qdq_status qdqi_native_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    (void)alg;
    (void)alpha;
    (void)beta;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "eltwise", "no_native_kernel");
}
