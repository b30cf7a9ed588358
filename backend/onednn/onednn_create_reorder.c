#include "onednn/onednn_impl.h"

#include <stdio.h>
#include <string.h>

static qdq_status finish_reorder(qdqi_dnnl_draft *d, qdqi_dnnl_prim **out, qdq_error *err) {
    const dnnl_engine_t engine = qdqi_dnnl_engine();
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, d->src, engine, d->dst, engine, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_reorder(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    return finish_reorder(d, out, err);
}

/* The chosen layout of `arg` as the other side of a reorder with `strided`. */
static qdq_status make_reorder_for(qdqi_dnnl_draft *d, const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg,
                                   const qdqi_dnnl_md *strided, bool to_prim, qdqi_dnnl_prim **out, qdq_error *err) {
    const_dnnl_memory_desc_t chosen = qdqi_dnnl_prim_md(prim, arg);
    if (chosen == NULL)
        return qdqi_fail(err, QDQ_E_INTERNAL, "reorder: %s has no argument %d", qdqi_dnnl_prim_impl(prim), (int)arg);
    QDQI_TRY(qdqi_dnnl_draft_md(d, to_prim ? &d->src : &d->dst, to_prim ? QDQI_DNNL_SRC : QDQI_DNNL_DST, strided, err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_memory_desc_clone(to_prim ? &d->dst : &d->src, chosen), "reorder", err));
    qdqi_dnnl_draft_role(d, to_prim ? QDQI_DNNL_DST : QDQI_DNNL_SRC, to_prim ? DNNL_ARG_DST : DNNL_ARG_SRC);
    QDQI_TRY(qdqi_dnnl_draft_attr(d, NULL, NULL, NULL, NULL, NULL, err));
    return finish_reorder(d, out, err);
}

qdq_status qdqi_dnnl_make_reorder_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided,
                                      bool to_prim, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_draft d = {.primitive = "reorder"};
    const qdq_status st = make_reorder_for(&d, prim, arg, strided, to_prim, out, err);
    qdqi_dnnl_draft_clear(&d);
    return st;
}

/* ---- packing at compile: a one-step plan on the host's default engine would do, but nothing of it would be kept ---- */

typedef struct packing {
    dnnl_memory_desc_t src_md;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t reorder;
    dnnl_memory_t src, dst;
    dnnl_stream_t stream;
} packing;

static qdq_status pack_now(packing *p, const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src,
                           const void *src_data, void *dst, qdq_error *err) {
    const dnnl_engine_t engine = qdqi_dnnl_engine();
    const_dnnl_memory_desc_t chosen = qdqi_dnnl_prim_md(prim, arg);
    char what[128];
    snprintf(what, sizeof what, "packing argument %d of %s", (int)arg, qdqi_dnnl_prim_impl(prim));
    if (chosen == NULL) return qdqi_fail(err, QDQ_E_INTERNAL, "%s: there is no such argument", what);
    QDQI_TRY(qdqi_dnnl_make_md(src, "pack", "src", &p->src_md, err));
    if (dnnl_memory_desc_equal(p->src_md, chosen)) { /* also: oneDNN has no reorder from 4 to 4 bits */
        memcpy(dst, src_data, dnnl_memory_desc_get_size(chosen));
        return QDQ_OK;
    }
    QDQI_TRY(qdqi_dnnl_check(dnnl_reorder_primitive_desc_create(&p->pd, p->src_md, engine, chosen, engine, NULL), what,
                             err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_create(&p->reorder, p->pd), what, err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_memory_create(&p->src, p->src_md, engine, (void *)src_data), what, err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_memory_create(&p->dst, chosen, engine, dst), what, err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_stream_create(&p->stream, engine, dnnl_stream_default_flags), what, err));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->src}, {DNNL_ARG_DST, p->dst}};
    QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_execute(p->reorder, p->stream, 2, args), what, err));
    return qdqi_dnnl_check(dnnl_stream_wait(p->stream), what, err);
}

qdq_status qdqi_dnnl_pack_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src,
                              const void *src_data, void *dst, qdq_error *err) {
    packing p = {0};
    const qdq_status st = pack_now(&p, prim, arg, src, src_data, dst, err);
    if (p.stream != NULL) dnnl_stream_destroy(p.stream);
    if (p.dst != NULL) dnnl_memory_destroy(p.dst);
    if (p.src != NULL) dnnl_memory_destroy(p.src);
    if (p.reorder != NULL) dnnl_primitive_destroy(p.reorder);
    if (p.pd != NULL) dnnl_primitive_desc_destroy(p.pd);
    if (p.src_md != NULL) dnnl_memory_desc_destroy(p.src_md);
    return st;
}
