#include "native/native_prim.h"

qdq_status qdqi_native_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                              qdqi_dnnl_prim **out, qdq_error *err) {
    (void)axis;
    (void)n;
    (void)srcs;
    (void)dst;
    (void)out;
    return qdqi_native_refuse(err, "concat", "no_native_kernel");
}
