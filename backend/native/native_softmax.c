#include "native/native_prim.h"

qdq_status qdqi_native_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)axis;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "softmax", "no_native_kernel");
}
