#include "bench_peer.h"

#if QDQ_WITH_ONEDNN
#include "bench_peer_dnnl.h"

#include <stdio.h>
#include <stdlib.h>

void bench_peer_arg(bench_peer *p, int arg, const_dnnl_memory_desc_t md, void *data) {
    p->args[p->n_args].arg = arg;
    if (dnnl_memory_create(&p->args[p->n_args].memory, md, p->engine, data) == dnnl_success) p->n_args++;
}

static void add_scalar(bench_peer *p, int arg, dnnl_data_type_t type, void *value) {
    dnnl_memory_desc_t md = NULL;
    const dnnl_dims_t one = {1};
    if (dnnl_memory_desc_create_with_tag(&md, 1, one, type, dnnl_a) == dnnl_success) bench_peer_arg(p, arg, md, value);
    dnnl_memory_desc_destroy(md);
}

bench_peer *bench_peer_start(void) {
    bench_peer *p = calloc(1, sizeof *p);
    if (!p || dnnl_engine_create(&p->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) != dnnl_success)
        bench_peer_destroy(&p);
    return p;
}

dnnl_memory_desc_t bench_peer_desc(const bench_tensor *t) {
    dnnl_memory_desc_t md = NULL;
    (void)dnnl_memory_desc_create_with_strides(&md, t->ndims, t->dims, (dnnl_data_type_t)t->dtype, t->strides);
    return md;
}

void bench_peer_scales(bench_peer *p, dnnl_primitive_attr_t attr, int arg, const bench_tensor *t) {
    if (t->scales) {
        dnnl_memory_desc_t md = NULL;
        dnnl_dims_t n = {1};
        for (int32_t d = 0; d < t->ndims; d++)
            n[0] *= t->scale_mask >> d & 1 ? t->dims[d] : 1;
        (void)dnnl_primitive_attr_set_scales_mask(attr, arg, t->scale_mask);
        if (dnnl_memory_desc_create_with_tag(&md, 1, n, dnnl_f32, dnnl_a) == dnnl_success)
            bench_peer_arg(p, DNNL_ARG_ATTR_SCALES | arg, md, t->scales);
        dnnl_memory_desc_destroy(md);
    }
    if (t->scale == 0.0f) return;
    (void)dnnl_primitive_attr_set_scales_mask(attr, arg, 0);
    p->scales[p->n_consts] = t->scale;
    add_scalar(p, DNNL_ARG_ATTR_SCALES | arg, dnnl_f32, &p->scales[p->n_consts]);
    if (t->zp) {
        (void)dnnl_primitive_attr_set_zero_points_mask(attr, arg, 0);
        p->zps[p->n_consts] = t->zp;
        add_scalar(p, DNNL_ARG_ATTR_ZERO_POINTS | arg, dnnl_s32, &p->zps[p->n_consts]);
    }
    p->n_consts++;
}

bench_peer *bench_peer_finish(bench_peer *p, dnnl_primitive_desc_t pd) {
    const char *name = NULL;
    if (pd && dnnl_primitive_create(&p->primitive, pd) == dnnl_success) {
        if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name)
            snprintf(p->name, sizeof p->name, "%s", name);
        if (dnnl_primitive_execute(p->primitive, p->stream, p->n_args, p->args) != dnnl_success) bench_peer_destroy(&p);
    } else {
        bench_peer_destroy(&p);
    }
    dnnl_primitive_desc_destroy(pd);
    return p;
}

bench_peer *bench_peer_reorder(const bench_tensor *src, const bench_tensor *dst) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    (void)dnnl_primitive_attr_create(&attr);
    bench_peer_arg(p, DNNL_ARG_FROM, s, src->data);
    bench_peer_arg(p, DNNL_ARG_TO, d, dst->data);
    bench_peer_scales(p, attr, DNNL_ARG_SRC, src);
    bench_peer_scales(p, attr, DNNL_ARG_DST, dst);
    (void)dnnl_reorder_primitive_desc_create(&pd, s, p->engine, d, p->engine, attr);
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_add_relu(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t a = bench_peer_desc(src0), b = bench_peer_desc(src1), d = bench_peer_desc(dst);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t pd = NULL;
    (void)dnnl_primitive_attr_create(&attr);
    (void)dnnl_post_ops_create(&ops);
    (void)dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
    if (dst->scale != 0.0f) /* binary has no destination scale: a multiplication does its work */
        (void)dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_linear, 1.0f / dst->scale, 0.0f);
    (void)dnnl_primitive_attr_set_post_ops(attr, ops);
    bench_peer_arg(p, DNNL_ARG_SRC_0, a, src0->data);
    bench_peer_arg(p, DNNL_ARG_SRC_1, b, src1->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    bench_peer_scales(p, attr, DNNL_ARG_SRC_0, src0);
    bench_peer_scales(p, attr, DNNL_ARG_SRC_1, src1);
    (void)dnnl_binary_primitive_desc_create(&pd, p->engine, dnnl_binary_add, a, b, d, attr);
    p = bench_peer_finish(p, pd);
    dnnl_post_ops_destroy(ops);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(a);
    dnnl_memory_desc_destroy(b);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_pool(const bench_tensor *src, const bench_tensor *dst, bool is_max, int64_t kernel,
                            int64_t stride, int64_t pad) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), d = bench_peer_desc(dst);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_dims_t k = {kernel, kernel}, by = {stride, stride}, none = {0}, before = {pad, pad};
    const dnnl_dims_t behind = {(dst->dims[2] - 1) * stride + kernel - src->dims[2] - pad,
                                (dst->dims[3] - 1) * stride + kernel - src->dims[3] - pad};
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_pooling_forward_primitive_desc_create(&pd, p->engine, dnnl_forward_inference,
                                                     is_max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding, s, d,
                                                     by, k, none, before, behind, NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(d);
    return p;
}

bench_peer *bench_peer_concat(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst, int axis) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s[2] = {bench_peer_desc(src0), bench_peer_desc(src1)}, d = bench_peer_desc(dst);
    dnnl_primitive_desc_t pd = NULL;
    const_dnnl_memory_desc_t srcs[2] = {s[0], s[1]};
    bench_peer_arg(p, DNNL_ARG_MULTIPLE_SRC, s[0], src0->data);
    bench_peer_arg(p, DNNL_ARG_MULTIPLE_SRC + 1, s[1], src1->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_concat_primitive_desc_create(&pd, p->engine, d, 2, axis, srcs, NULL);
    p = bench_peer_finish(p, pd);
    dnnl_memory_desc_destroy(s[0]);
    dnnl_memory_desc_destroy(s[1]);
    dnnl_memory_desc_destroy(d);
    return p;
}

/* The weights in the layout that the primitive asks for. */
bool bench_peer_packed(bench_peer *p, dnnl_primitive_desc_t pd, const_dnnl_memory_desc_t plain, void *data) {
    const_dnnl_memory_desc_t want = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t reorder_pd = NULL;
    dnnl_primitive_t reorder = NULL;
    bool ok =
        dnnl_memory_create(&from, plain, p->engine, data) == dnnl_success &&
        dnnl_memory_create(&to, want, p->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success &&
        dnnl_reorder_primitive_desc_create(&reorder_pd, plain, p->engine, want, p->engine, NULL) == dnnl_success &&
        dnnl_primitive_create(&reorder, reorder_pd) == dnnl_success;
    if (ok) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        ok = dnnl_primitive_execute(reorder, p->stream, 2, args) == dnnl_success &&
             dnnl_stream_wait(p->stream) == dnnl_success;
    }
    if (ok)
        p->args[p->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, to};
    else if (to)
        dnnl_memory_destroy(to);
    if (reorder) dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(reorder_pd);
    if (from) dnnl_memory_destroy(from);
    return ok;
}

bench_peer *bench_peer_matmul(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                              void *scales, int64_t k_group) {
    bench_peer *p = bench_peer_start();
    if (!p) return NULL;
    dnnl_memory_desc_t s = bench_peer_desc(src), w = bench_peer_desc(weights), d = bench_peer_desc(dst), any = NULL,
                       scale_md = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    (void)dnnl_primitive_attr_create(&attr);
    if (scales) {
        const dnnl_dims_t group = {k_group, 1}, dims = {weights->dims[0] / k_group, weights->dims[1]};
        const bool grouped = dims[0] > 1;
        (void)dnnl_primitive_attr_set_fpmath_mode_v2(attr, dnnl_fpmath_mode_any, 1);
        (void)dnnl_primitive_attr_set_scales(attr, DNNL_ARG_WEIGHTS, grouped ? 3 : 2, grouped ? 2 : 0,
                                             grouped ? group : NULL, dnnl_f32);
        (void)dnnl_memory_desc_create_with_tag(&scale_md, grouped ? 2 : 1, grouped ? dims : dims + 1, dnnl_f32,
                                               grouped ? dnnl_ab : dnnl_a);
        bench_peer_arg(p, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, scale_md, scales);
    }
    bench_peer_arg(p, DNNL_ARG_SRC, s, src->data);
    bench_peer_arg(p, DNNL_ARG_DST, d, dst->data);
    (void)dnnl_memory_desc_create_with_tag(&any, 2, weights->dims, (dnnl_data_type_t)weights->dtype,
                                           dnnl_format_tag_any);
    if (dnnl_matmul_primitive_desc_create(&pd, p->engine, s, any, NULL, d, attr) != dnnl_success ||
        !bench_peer_packed(p, pd, w, weights->data)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    p = bench_peer_finish(p, pd);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(scale_md);
    dnnl_memory_desc_destroy(any);
    dnnl_memory_desc_destroy(s);
    dnnl_memory_desc_destroy(w);
    dnnl_memory_desc_destroy(d);
    return p;
}

const char *bench_peer_name(const bench_peer *p) {
    return p->name;
}

void bench_peer_run(bench_peer *p) {
    for (int i = 0; i < 2; i++)
        if (p->first[i]) bench_peer_run(p->first[i]);
    (void)dnnl_primitive_execute(p->primitive, p->stream, p->n_args, p->args);
    (void)dnnl_stream_wait(p->stream);
}

void bench_peer_destroy(bench_peer **peer) {
    bench_peer *p = *peer;
    if (!p) return;
    for (int i = 0; i < 2; i++)
        bench_peer_destroy(&p->first[i]);
    for (int i = 0; i < p->n_args; i++)
        dnnl_memory_destroy(p->args[i].memory);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
    free(p);
    *peer = NULL;
}

#else

#include <stddef.h>

bench_peer *bench_peer_reorder(const bench_tensor *src, const bench_tensor *dst) {
    (void)src, (void)dst;
    return NULL;
}
bench_peer *bench_peer_add_relu(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst) {
    (void)src0, (void)src1, (void)dst;
    return NULL;
}
bench_peer *bench_peer_pool(const bench_tensor *src, const bench_tensor *dst, bool is_max, int64_t kernel,
                            int64_t stride, int64_t pad) {
    (void)src, (void)dst, (void)is_max, (void)kernel, (void)stride, (void)pad;
    return NULL;
}
bench_peer *bench_peer_concat(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst, int axis) {
    (void)src0, (void)src1, (void)dst, (void)axis;
    return NULL;
}
bench_peer *bench_peer_matmul(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                              void *scales, int64_t k_group) {
    (void)src, (void)weights, (void)dst, (void)scales, (void)k_group;
    return NULL;
}
const char *bench_peer_name(const bench_peer *peer) {
    return (void)peer, "";
}
void bench_peer_run(bench_peer *peer) {
    (void)peer;
}
void bench_peer_destroy(bench_peer **peer) {
    (void)peer;
}

#endif
