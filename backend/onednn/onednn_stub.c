/* The facade of a build without oneDNN: it answers every request with QDQ_E_NO_ONEDNN, so that no primitive ever exists. */
#include "onednn/onednn.h"

static qdq_status refuse(qdq_error *err) {
    return qdqi_fail(err, QDQ_E_NO_ONEDNN, "this build has no oneDNN");
}

bool qdqi_dnnl_available(void) {
    return false;
}
bool qdqi_dnnl_jit_off(void) {
    return false;
}
const char *qdqi_dnnl_version(void) {
    return "none";
}
bool qdqi_dnnl_int8_exact(void) {
    return false;
}
bool qdqi_dnnl_has_dtype(qdq_dtype dtype) {
    (void)dtype;
    return false;
}

qdq_status qdqi_dnnl_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)src;
    (void)weights;
    (void)bias;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                 const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                 qdqi_dnnl_prim **out, qdq_error *err) {
    (void)conv;
    (void)src;
    (void)weights;
    (void)bias;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)pool;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                             const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                             qdq_error *err) {
    (void)alg;
    (void)alpha;
    (void)beta;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)src0;
    (void)src1;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)axis;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)epsilon;
    (void)use_affine;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    (void)groups;
    (void)epsilon;
    (void)use_affine;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)epsilon;
    (void)fuse_relu;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    (void)alg;
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                            qdqi_dnnl_prim **out, qdq_error *err) {
    (void)axis;
    (void)n;
    (void)srcs;
    (void)dst;
    (void)out;
    return refuse(err);
}
qdq_status qdqi_dnnl_reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                             qdqi_dnnl_prim **out, qdq_error *err) {
    (void)src;
    (void)dst;
    (void)attr;
    (void)out;
    return refuse(err);
}
