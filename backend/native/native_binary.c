#include "native/native_prim.h"

qdq_status qdqi_native_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                              qdq_error *err) {
    (void)alg;
    (void)src0;
    (void)src1;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "binary", "no_native_kernel");
}
