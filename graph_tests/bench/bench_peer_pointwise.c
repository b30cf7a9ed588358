#include "bench_peer_pointwise.h"

#include <stddef.h>

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

static dnnl_alg_kind_t alg_of(qk_pointwise_op op) {
    switch (op) {
    case QK_POINTWISE_RELU:
    case QK_POINTWISE_LEAKY_RELU: return dnnl_eltwise_relu;
    case QK_POINTWISE_TANH: return dnnl_eltwise_tanh;
    case QK_POINTWISE_ELU: return dnnl_eltwise_elu;
    case QK_POINTWISE_LINEAR: return dnnl_eltwise_linear;
    case QK_POINTWISE_SOFT_RELU: return dnnl_eltwise_soft_relu;
    case QK_POINTWISE_LOGISTIC: return dnnl_eltwise_logistic;
    case QK_POINTWISE_EXP: return dnnl_eltwise_exp;
    case QK_POINTWISE_LOG: return dnnl_eltwise_log;
    case QK_POINTWISE_CLIP: return dnnl_eltwise_clip_v2;
    case QK_POINTWISE_GELU_ERF: return dnnl_eltwise_gelu_erf;
    case QK_POINTWISE_GELU_TANH: return dnnl_eltwise_gelu_tanh;
    case QK_POINTWISE_MISH: return dnnl_eltwise_mish;
    case QK_POINTWISE_HARDSWISH: return dnnl_eltwise_hardswish;
    case QK_POINTWISE_SWISH: return dnnl_eltwise_swish;
    case QK_POINTWISE_ADD: return dnnl_binary_add;
    case QK_POINTWISE_MUL: return dnnl_binary_mul;
    case QK_POINTWISE_DIV: return dnnl_binary_div;
    default: return dnnl_alg_kind_undef;
    }
}

bench_peer *bench_peer_pointwise(qk_pointwise_op op, float alpha, float beta, const bench_tensor *src,
                                 const bench_tensor *w, const bench_tensor *dst) {
    const dnnl_alg_kind_t alg = alg_of(op);
    bench_peer *p = alg == dnnl_alg_kind_undef ? NULL : bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst), o = w ? bench_peer_desc(w) : NULL;
    dnnl_primitive_desc_t pd = NULL;
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    if (w) bench_peer_arg(p, DNNL_ARG_SRC_1, o, w->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    if (w)
        (void)dnnl_binary_primitive_desc_create(&pd, p->engine, alg, s, o, d, NULL);
    else
        (void)dnnl_eltwise_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference, alg, s, d, alpha, beta,
                                                         NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    if (o) dnnl_memory_desc_destroy(o);
    return p;
}

#else

bench_peer *bench_peer_pointwise(qk_pointwise_op op, float alpha, float beta, const bench_tensor *src,
                                 const bench_tensor *w, const bench_tensor *dst) {
    (void)op, (void)alpha, (void)beta, (void)src, (void)w, (void)dst;
    return NULL;
}

#endif
