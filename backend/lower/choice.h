/* Who makes a primitive: oneDNN (onednn/onednn.h) or our own kernels (native/native.h). Recipes ask here and not there.
 *
 * Each function takes the request of the facade's function of the same name and tries the candidates in order; the first that
 * accepts wins, and what refused is noted (qdqi_refuse). oneDNN is first, unless
 *   - it is not there, or may not generate code (QDQ_JIT=off);
 *   - choice.def says that our kernel was measured to be faster in the shape's class, on this level of instruction set;
 *   - it would be wrong (saturating int8 products, shapes on which 3.7.2 fails), or only has its plain reference loops.
 * The class and the figure become part of the step's note. */
#ifndef QDQI_CHOICE_H
#define QDQI_CHOICE_H

#include "onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether some provider computes with tensors of this float type. */
bool qdqi_make_has_dtype(qdq_dtype dtype);

qdq_status qdqi_make_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                 const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                 qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                             const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err);
qdq_status qdqi_make_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                            qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_make_reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                             qdqi_dnnl_prim **out, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
