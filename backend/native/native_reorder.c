/* Other strides: kernels/move. Other types or quantizations too: a pass of kernels/post. */
#include "kernels/move/move.h"
#include "native/native_nest.h"

#include <stdio.h>
#include <string.h>

/* ---- the same elements elsewhere ---- */

typedef struct copy_impl {
    qk_move move;
    uint32_t src, dst;
    int64_t bytes;
} copy_impl;

typedef struct copy_job {
    const copy_impl *impl;
    void *const *bufs;
    size_t chunk;
} copy_job;

static void copy_chunk(int i, void *arg) {
    const copy_job *j = arg;
    const size_t n = j->impl->move.n_tasks, first = (size_t)i * j->chunk;
    if (first >= n) return;
    qk_move_run(&j->impl->move, j->bufs[j->impl->src], j->bufs[j->impl->dst], first,
                n - first < j->chunk ? n - first : j->chunk);
}

static qdq_status run_copy(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const copy_impl *c = impl;
    size_t threads = (size_t)qdqi_threads_for(engine, c->bytes, QK_MOVE_GRAIN_BYTES);
    if (threads > c->move.n_tasks) threads = c->move.n_tasks;
    if (threads == 0) return QDQ_OK;
    copy_job j = {c, bufs, (c->move.n_tasks + threads - 1) / threads};
    qdqi_parallel(engine, (int)threads, copy_chunk, &j);
    return QDQ_OK;
}

static qdq_status make_copy(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_copy};
    copy_impl *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "reorder", "move", sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    const uint32_t elem = (uint32_t)(qdq_dtype_bits(src->dtype) / 8);
    impl->bytes = qdqi_native_n_elems(src) * (int64_t)elem;
    if (!qk_move_init(&impl->move, elem, src->ndims, src->dims, src->strides, dst->strides)) {
        qdqi_native_drop(prim);
        return qdqi_native_refuse(err, "reorder", "no_kernel");
    }
    impl->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, src);
    impl->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, dst);
    return qdqi_native_finish(prim, out, err);
}

/* ---- conversion ---- */

static qdq_status run_pass(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    return qdqi_nest_run(impl, bufs, engine, err);
}

typedef struct values {
    qdqi_dnnl_md md; /* one per index of the masked dims, 1 elsewhere */
    qdqi_dnnl_arg arg;
} values;

typedef struct pass {
    qdqi_nest plan;
    values operands[4];
    uint32_t n_operands;
} pass;

static bool is_common(int mask) {
    return mask == 0;
}

static void add_step(pass *p, const qdqi_dnnl_md *md, qk_post_op op, int mask, qdq_dtype dtype, qdqi_dnnl_arg arg) {
    values *v = &p->operands[p->n_operands++];
    *v = (values){.md = {.ndims = md->ndims, .dtype = dtype}, .arg = arg};
    int64_t n = 1;
    for (int32_t d = md->ndims - 1; d >= 0; d--) {
        v->md.dims[d] = (mask >> d & 1) != 0 ? md->dims[d] : 1;
        v->md.strides[d] = n;
        n *= v->md.dims[d];
    }
    p->plan.post.steps[p->plan.post.n_steps++] = (qk_post_step){.op = op, .dtype = dtype};
}

/* What is one for all is a field of the program, what is per index a step of it. */
static qdq_status add_quant(pass *p, const qdqi_dnnl_quant *q, const qdqi_dnnl_md *md, bool is_src, qdq_error *err) {
    qk_post *post = &p->plan.post;
    const bool f32 = q->scale_dtype == QDQ_DTYPE_UNDEF || q->scale_dtype == QDQ_DTYPE_F32;
    const bool s32 = q->zp_dtype == QDQ_DTYPE_UNDEF || q->zp_dtype == QDQ_DTYPE_S32;
    if (q->group[0] > 0 || (q->has_scale && (!f32 || qdqi_native_count(md, q->scale_mask, q->group) < 0)) ||
        (q->has_zp && (!s32 || qdqi_native_count(md, q->zp_mask, q->group) < 0)))
        return qdqi_native_refuse(err, "reorder", "no_native_kernel");
    if (is_src) {
        const bool steps = (q->has_zp && !is_common(q->zp_mask)) || (q->has_scale && !is_common(q->scale_mask));
        if (q->has_zp && steps)
            add_step(p, md, QK_POST_SUB, q->zp_mask, QDQ_DTYPE_S32, QDQI_DNNL_ZP_SRC);
        else if (q->has_zp)
            post->has_add_common = true;
        if (q->has_scale && steps)
            add_step(p, md, QK_POST_MUL, q->scale_mask, QDQ_DTYPE_F32, QDQI_DNNL_SCALE_SRC);
        else if (q->has_scale)
            post->scale = QK_POST_SCALE_COMMON;
        return QDQ_OK;
    }
    const bool steps = q->has_scale && !is_common(q->scale_mask);
    if (steps)
        add_step(p, md, QK_POST_DIV, q->scale_mask, QDQ_DTYPE_F32, QDQI_DNNL_SCALE_DST);
    else
        post->dst_quantized = q->has_scale;
    if (q->has_zp && !is_common(q->zp_mask)) {
        if (post->dst_quantized) return qdqi_native_refuse(err, "reorder", "no_native_kernel");
        add_step(p, md, QK_POST_ADD, q->zp_mask, QDQ_DTYPE_S32, QDQI_DNNL_ZP_DST);
    } else {
        post->dst_has_zp = q->has_zp;
    }
    return QDQ_OK;
}

static bool is_float(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

static qdq_status make_pass(pass *p, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                            qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_pass};
    static const qdqi_dnnl_attr none = {0};
    if (attr == NULL) attr = &none;
    if (attr->n_posts != 0 || attr->src1.has_scale || attr->weights.has_scale || attr->weights.has_zp)
        return qdqi_native_refuse(err, "reorder", "no_native_kernel");
    if (attr->src.has_zp && is_float(src->dtype)) return qdqi_native_refuse(err, "reorder", "dtype");
    QDQI_TRY(add_quant(p, &attr->src, src, true, err));
    QDQI_TRY(add_quant(p, &attr->dst, dst, false, err));
    const qdqi_dnnl_md *operands[4] = {NULL};
    for (uint32_t i = 0; i < p->n_operands; i++)
        operands[i] = &p->operands[i].md;
    QDQI_TRY(qdqi_nest_plan(&p->plan, src, dst, operands, "reorder", err));

    char kernel[32];
    snprintf(kernel, sizeof kernel, "post:%s", qk_isa_name(p->plan.isa));
    qdqi_nest *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "reorder", kernel, sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    *impl = p->plan;
    impl->src.arg = qdqi_native_add_md(prim, QDQI_DNNL_SRC, src);
    impl->dst.arg = qdqi_native_add_md(prim, QDQI_DNNL_DST, dst);
    qdqi_native_attr_args args;
    qdqi_native_add_attr(prim, attr, src, NULL, NULL, dst, &args);
    if (impl->post.scale == QK_POST_SCALE_COMMON) impl->scale_src = args.scale_src;
    if (impl->post.has_add_common) impl->zp_src = args.zp_src;
    if (impl->post.dst_quantized) impl->scale_dst = args.scale_dst;
    if (impl->post.dst_has_zp) impl->zp_dst = args.zp_dst;
    for (uint32_t i = 0; i < p->n_operands; i++)
        impl->operands[i].arg = p->operands[i].arg == QDQI_DNNL_ZP_SRC      ? args.zp_src
                                : p->operands[i].arg == QDQI_DNNL_SCALE_SRC ? args.scale_src
                                : p->operands[i].arg == QDQI_DNNL_SCALE_DST ? args.scale_dst
                                                                            : args.zp_dst;
    return qdqi_native_finish(prim, out, err);
}

qdq_status qdqi_native_reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                               qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_md s, d;
    QDQI_TRY(qdqi_native_layout(src, "reorder", &s, err));
    QDQI_TRY(qdqi_native_layout(dst, "reorder", &d, err));
    bool same = s.ndims == d.ndims;
    for (int32_t i = 0; same && i < s.ndims; i++)
        same = s.dims[i] == d.dims[i];
    if (!same) return qdqi_native_refuse(err, "reorder", "shape");
    if (s.dtype == d.dtype && qdqi_native_no_attr(attr)) return make_copy(&s, &d, out, err);
    pass p = {0};
    return make_pass(&p, &s, &d, attr, out, err);
}
