#include "bench_peer_lines.h"

#include <stddef.h>

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

static dnnl_primitive_attr_t attr_of(bench_peer *p, const bench_tensor *src, const bench_tensor *dst) {
    dnnl_primitive_attr_t attr = NULL;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
    bench_peer_scales(p, attr, DNNL_ARG_SRC, src);
    bench_peer_scales(p, attr, DNNL_ARG_DST, dst);
    return attr;
}

bench_peer *bench_peer_softmax(const bench_tensor *src, const bench_tensor *dst, int axis, bool is_log) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    dnnl_primitive_attr_t attr = attr_of(p, src, dst);
    (void)dnnl_softmax_forward_primitive_desc_create(
        &pd, p->engine, dnnl_forward_inference, is_log ? dnnl_softmax_log : dnnl_softmax_accurate, s, d, axis, attr);
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

/* gamma and beta, and the descriptor of such a vector. */
static dnnl_memory_desc_t affine_args(bench_peer *p, int64_t n, float *gamma, float *beta) {
    const bench_tensor v = {.dtype = QDQ_DTYPE_F32, .ndims = 1, .dims = {n}, .strides = {1}};
    dnnl_memory_desc_t g = bench_peer_desc(&v);
    bench_peer_arg(p, DNNL_ARG_SCALE, g, gamma);
    bench_peer_arg(p, DNNL_ARG_SHIFT, g, beta);
    return g;
}

bench_peer *bench_peer_layernorm(const bench_tensor *src, const bench_tensor *dst, float *gamma, float *beta) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_memory_desc_t g = affine_args(p, src->dims[src->ndims - 1], gamma, beta);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    dnnl_primitive_attr_t attr = attr_of(p, src, dst);
    (void)dnnl_layer_normalization_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference, s, d, NULL,
                                                                 1e-5f, dnnl_use_scale | dnnl_use_shift, attr);
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    dnnl_memory_desc_destroy(g);
    return p;
}

bench_peer *bench_peer_batchnorm(const bench_tensor *src, const bench_tensor *dst, float *mean, float *variance,
                                 float *gamma, float *beta) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst),
                       g = affine_args(p, src->dims[1], gamma, beta);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    bench_peer_arg(p, DNNL_ARG_MEAN, g, mean);
    bench_peer_arg(p, DNNL_ARG_VARIANCE, g, variance);
    (void)dnnl_batch_normalization_forward_primitive_desc_create(
        &pd, p->engine, dnnl_forward_inference, s, d, 1e-5f, dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift,
        NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    dnnl_memory_desc_destroy(g);
    return p;
}

bench_peer *bench_peer_groupnorm(const bench_tensor *src, const bench_tensor *dst, int64_t groups, float *gamma,
                                 float *beta) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst),
                       g = affine_args(p, src->dims[1], gamma, beta);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    dnnl_primitive_attr_t attr = attr_of(p, src, dst);
    (void)dnnl_group_normalization_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference, s, d, groups,
                                                                 1e-5f, dnnl_use_scale | dnnl_use_shift, attr);
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    dnnl_memory_desc_destroy(g);
    return p;
}

bench_peer *bench_peer_resampling(bool is_linear, const bench_tensor *src, const bench_tensor *dst) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_resampling_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                        is_linear ? dnnl_resampling_linear : dnnl_resampling_nearest,
                                                        NULL, s, d, NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_reduction(bench_reduction op, const bench_tensor *src, const bench_tensor *dst) {
    static const dnnl_alg_kind_t algs[] = {dnnl_reduction_sum,        dnnl_reduction_mean,
                                           dnnl_reduction_max,        dnnl_reduction_min,
                                           dnnl_reduction_mul,        dnnl_reduction_norm_lp_power_p_sum,
                                           dnnl_reduction_norm_lp_sum};
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_reduction_primitive_desc_create(&pd, p->engine, algs[op], s, d,
                                               op == BENCH_L2   ? 2.0f
                                               : op == BENCH_L1 ? 1.0f
                                                                : 0.0f,
                                               0.0f, NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_sum(const bench_tensor *src, const bench_tensor *dst) {
    return bench_peer_reduction(BENCH_SUM, src, dst);
}

#else

bench_peer *bench_peer_resampling(bool is_linear, const bench_tensor *src, const bench_tensor *dst) {
    (void)is_linear, (void)src, (void)dst;
    return NULL;
}
bench_peer *bench_peer_reduction(bench_reduction op, const bench_tensor *src, const bench_tensor *dst) {
    (void)op, (void)src, (void)dst;
    return NULL;
}
bench_peer *bench_peer_softmax(const bench_tensor *src, const bench_tensor *dst, int axis, bool is_log) {
    (void)src, (void)dst, (void)axis, (void)is_log;
    return NULL;
}
bench_peer *bench_peer_layernorm(const bench_tensor *src, const bench_tensor *dst, float *gamma, float *beta) {
    (void)src, (void)dst, (void)gamma, (void)beta;
    return NULL;
}
bench_peer *bench_peer_batchnorm(const bench_tensor *src, const bench_tensor *dst, float *mean, float *variance,
                                 float *gamma, float *beta) {
    (void)src, (void)dst, (void)mean, (void)variance, (void)gamma, (void)beta;
    return NULL;
}
bench_peer *bench_peer_groupnorm(const bench_tensor *src, const bench_tensor *dst, int64_t groups, float *gamma,
                                 float *beta) {
    (void)src, (void)dst, (void)groups, (void)gamma, (void)beta;
    return NULL;
}
bench_peer *bench_peer_sum(const bench_tensor *src, const bench_tensor *dst) {
    (void)src, (void)dst;
    return NULL;
}

#endif
