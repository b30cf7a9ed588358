/* Our own kernels as a second provider of primitives. The blueprint knows oneDNN alone for what is more than a table or a copy;
 * this room is our addition: where oneDNN may not generate code (QDQ_JIT=off), is not there, refuses, or is slower, the same
 * request is answered from kernels/, so that the recipes of lower/ stay as they are.
 *
 * Each function takes the request of the facade's function of the same name and makes a primitive that is used in the same
 * way (onednn/onednn.h: arguments, layouts, packing, steps). What it does not take it refuses with QDQ_E_UNSUPPORTED and a
 * word of lower/why.def, and creates nothing.
 *
 * What all of them keep:
 *   - integers are summed exactly on every instruction set, and stored rounded half to even and saturated;
 *   - `any` in a request becomes row-major, but for weights, which become what the kernel reads (packed);
 *   - strides are taken where a row says so; 64-bit sizes are checked when the primitive is made;
 *   - running allocates nothing, locks nothing, and maps no memory. */
#ifndef QDQI_NATIVE_H
#define QDQI_NATIVE_H

#include "onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The word of this thread's last refusal, for the list of refusals; static. */
const char *qdqi_native_why(void);

qdq_status qdqi_native_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                              qdq_error *err);
qdq_status qdqi_native_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                   const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                   qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err);
qdq_status qdqi_native_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                              qdq_error *err);
qdq_status qdqi_native_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err);
qdq_status qdqi_native_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);

/* zero_of_inf: a line of -inf gives 0, not NaN. */
qdq_status qdqi_native_softmax_of(qdqi_dnnl_alg alg, bool zero_of_inf, int32_t axis, const qdqi_dnnl_md *src,
                                  const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                  qdq_error *err);
/* The normalisations in full: what the facade has no word for. Gamma and beta are f32, as many as a line (a group's tensor: its
 * channels) has values; mean and variance are outputs, f32, one per line (image and group). A source of 8 bits may have one scale and
 * one zero point in attr->src: (q - zp) * scale is normalised. (So may the softmax, the reduction and the resampling of this room;
 * oneDNN's source scale means something else.) */
typedef struct qdqi_native_norm {
    int32_t axis;   /* lines: the first of the dims that are normalised over; groups: the channels */
    int64_t groups; /* 0: lines */
    float epsilon;
    bool rms, gamma, beta, statistics;
} qdqi_native_norm;
qdq_status qdqi_native_normalization(const qdqi_native_norm *norm, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                     const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);

qdq_status qdqi_native_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                  const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err);
/* Linear interpolation whose coordinates are known: per dim that is resized, for each index of dst, two of src and the weight of
 * the second (the first has the rest). Other dims have NULL, and equal extents. Copied. */
typedef struct qdqi_native_taps {
    const int32_t *lo, *hi;
    const float *w;
} qdqi_native_taps;
qdq_status qdqi_native_interpolation(const qdqi_native_taps taps[QDQ_MAX_NDIMS], const qdqi_dnnl_md *src,
                                     const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                     qdq_error *err);
qdq_status qdqi_native_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                              qdqi_dnnl_prim **out, qdq_error *err);
qdq_status qdqi_native_reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                               qdqi_dnnl_prim **out, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
