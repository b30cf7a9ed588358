/* Unary functions and binary operations of tensors, with what follows them: passes of kernels/post. */
#include "kernels/isa/isa.h"
#include "native/native_nest.h"

#include <stdio.h>
#include <string.h>

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    return qdqi_nest_run(impl, bufs, engine, err);
}

static bool is_eltwise(qdqi_dnnl_alg alg) {
    return alg <= QDQI_DNNL_ELT_SWISH;
}
static bool is_binary(qdqi_dnnl_alg alg) {
    return alg >= QDQI_DNNL_BIN_ADD && alg <= QDQI_DNNL_BIN_GE;
}

/* One scale and zero point for all of a side, of the usual types. */
static bool is_plain(const qdqi_dnnl_quant *q) {
    const bool f32 = q->scale_dtype == QDQ_DTYPE_UNDEF || q->scale_dtype == QDQ_DTYPE_F32;
    const bool s32 = q->zp_dtype == QDQ_DTYPE_UNDEF || q->zp_dtype == QDQ_DTYPE_S32;
    return (!q->has_scale || (q->scale_mask == 0 && f32)) && (!q->has_zp || (q->zp_mask == 0 && s32)) &&
           q->group[0] == 0;
}

static bool is_integer(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S32;
}

/* A pass whose first `n_own` steps are the primitive's own; `second` is the operand of the first, or NULL. */
static qdq_status make_pass(const char *primitive, qdqi_nest *plan, const qdqi_dnnl_md *src, const qdqi_dnnl_md *second,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run};
    static const qdqi_dnnl_attr none = {0};
    if (attr == NULL) attr = &none;
    qdqi_dnnl_md s, s1, d;
    QDQI_TRY(qdqi_native_layout(src, primitive, &s, err));
    QDQI_TRY(qdqi_native_layout(dst, primitive, &d, err));
    if (dst->any && !src->any) memcpy(d.strides, s.strides, sizeof d.strides);
    if (second != NULL) QDQI_TRY(qdqi_native_layout(second, primitive, &s1, err));
    if (!is_plain(&attr->src) || !is_plain(&attr->dst) || attr->src1.has_scale || attr->src1.has_zp ||
        attr->weights.has_scale || attr->weights.has_zp || (attr->src.has_zp && !is_integer(s.dtype)))
        return qdqi_native_refuse(err, primitive, "no_native_kernel");
    qk_post *p = &plan->post;
    const uint32_t n_own = p->n_steps;
    p->dst = d.dtype;
    p->has_add_common = attr->src.has_zp;
    p->scale = attr->src.has_scale ? QK_POST_SCALE_COMMON : QK_POST_SCALE_NONE;
    p->dst_quantized = attr->dst.has_scale;
    p->dst_has_zp = attr->dst.has_zp;
    QDQI_TRY(qdqi_native_post_steps(attr, primitive, p, err));
    const qdqi_dnnl_md *operands[QK_POST_MAX_STEPS] = {NULL};
    if (second != NULL) operands[0] = &s1;
    for (uint32_t i = 0; i < attr->n_posts; i++)
        if (attr->posts[i].alg >= QDQI_DNNL_BIN_ADD && attr->posts[i].alg <= QDQI_DNNL_BIN_PRELU)
            operands[n_own + i] = &attr->posts[i].operand;
    QDQI_TRY(qdqi_nest_plan(plan, &s, &d, operands, primitive, err));

    char kernel[32];
    snprintf(kernel, sizeof kernel, "post:%s", qk_isa_name(plan->isa));
    qdqi_nest *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, primitive, kernel, sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    *impl = *plan;
    impl->src.arg = qdqi_native_add_md(prim, QDQI_DNNL_SRC, &s);
    if (second != NULL) impl->operands[0].arg = qdqi_native_add_md(prim, QDQI_DNNL_SRC1, &s1);
    impl->dst.arg = qdqi_native_add_md(prim, QDQI_DNNL_DST, &d);
    qdqi_native_attr_args args;
    qdqi_native_add_attr(prim, attr, &s, second == NULL ? NULL : &s1, NULL, &d, &args);
    impl->scale_src = args.scale_src;
    impl->zp_src = args.zp_src;
    impl->scale_dst = args.scale_dst;
    impl->zp_dst = args.zp_dst;
    for (uint32_t i = 0; i < attr->n_posts; i++)
        impl->operands[n_own + i].arg = args.post[i];
    return qdqi_native_finish(prim, out, err);
}

qdq_status qdqi_native_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    if (!is_eltwise(alg)) return qdqi_fail(err, QDQ_E_INTERNAL, "native eltwise: algorithm %d is no such", (int)alg);
    qdqi_nest plan = {.post = {.n_steps = 1, .steps = {{.op = (qk_post_op)alg, .alpha = alpha, .beta = beta}}}};
    return make_pass("eltwise", &plan, src, NULL, dst, attr, out, err);
}

qdq_status qdqi_native_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                              qdq_error *err) {
    if (!is_binary(alg)) return qdqi_fail(err, QDQ_E_INTERNAL, "native binary: algorithm %d is no such", (int)alg);
    if (src1 == NULL) return qdqi_fail(err, QDQ_E_NULL_ARG, "native binary: src1 is NULL");
    qdqi_nest plan = {.post = {.n_steps = 1, .steps = {{.op = (qk_post_op)alg, .dtype = src1->dtype}}}};
    return make_pass("binary", &plan, src0, src1, dst, attr, out, err);
}
