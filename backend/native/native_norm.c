#include "native/native_prim.h"

qdq_status qdqi_native_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)epsilon;
    (void)use_affine;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "layernorm", "no_native_kernel");
}

qdq_status qdqi_native_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err) {
    (void)groups;
    (void)epsilon;
    (void)use_affine;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "groupnorm", "no_native_kernel");
}

qdq_status qdqi_native_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)epsilon;
    (void)fuse_relu;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return qdqi_native_refuse(err, "batchnorm", "no_native_kernel");
}
