/* Element-wise, binary, pooling, reduction, resampling, concat. */
#include "onednn/onednn_impl.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

qdq_status qdqi_dnnl_make_eltwise(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_is_eltwise(r->alg)) return qdqi_dnnl_wrong_alg(d, r->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_eltwise_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(r->alg), d->src, d->dst, r->alpha, r->beta,
        d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_binary(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_is_binary(r->alg)) return qdqi_dnnl_wrong_alg(d, r->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->src, QDQI_DNNL_SRC, r->src, err));
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->src1, QDQI_DNNL_SRC1, r->second, err));
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->dst, QDQI_DNNL_DST, r->dst, err));
    QDQI_TRY(qdqi_dnnl_draft_attr(d, r->attr, r->src, r->second, NULL, r->dst, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_binary_primitive_desc_create(&pd, qdqi_dnnl_engine(), qdqi_dnnl_alg_kind(r->alg),
                                                                   d->src, d->src1, d->dst, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_pooling(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdqi_dnnl_pool *pool = r->pool;
    if (pool->alg < QDQI_DNNL_POOL_MAX || pool->alg > QDQI_DNNL_POOL_AVG_EXCLUDE_PAD)
        return qdqi_dnnl_wrong_alg(d, pool->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    if (r->src->ndims != pool->n_spatial + 2)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "pooling: src has rank %d for %d spatial dims", r->src->ndims,
                         pool->n_spatial);
    dnnl_dims_t dilations = {0}; /* oneDNN's 0 is the graph's 1 */
    for (int32_t i = 0; i < pool->n_spatial; i++) {
        if (pool->dilations[i] < 1)
            return qdqi_fail(err, QDQ_E_BAD_ATTR, "pooling: dilation %d is %lld, expected 1 or more", i,
                             (long long)pool->dilations[i]);
        dilations[i] = pool->dilations[i] - 1;
    }
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(pool->alg), d->src, d->dst, pool->strides,
        pool->kernel, dilations, pool->pads_begin, pool->pads_end, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_reduction(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (r->alg < QDQI_DNNL_RED_SUM || r->alg > QDQI_DNNL_RED_L2) return qdqi_dnnl_wrong_alg(d, r->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    const float p = r->alg == QDQI_DNNL_RED_L2 ? 2.0f : 1.0f; /* read by the norms alone */
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_reduction_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), qdqi_dnnl_alg_kind(r->alg), d->src, d->dst, p, 0.0f, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_resampling(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (r->alg != QDQI_DNNL_RESIZE_NEAREST && r->alg != QDQI_DNNL_RESIZE_LINEAR)
        return qdqi_dnnl_wrong_alg(d, r->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    dnnl_primitive_desc_t pd = NULL; /* no factors: they follow from the dims */
    const dnnl_status_t status = dnnl_resampling_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(r->alg), NULL, d->src, d->dst, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

/* concat has any number of sources: their descriptors and roles do not fit into a draft. */
static qdq_status make_concat(qdqi_dnnl_draft *d, const qdqi_request *r, dnnl_memory_desc_t *mds, qdqi_dnnl_prim **out,
                              qdq_error *err) {
    for (uint32_t i = 0; i < r->n; i++) {
        char what[32];
        snprintf(what, sizeof what, "src %u", i);
        QDQI_TRY(qdqi_dnnl_make_md(&r->src[i], d->primitive, what, &mds[i], err));
    }
    d->n_sources = r->n;
    snprintf(d->types, sizeof d->types, "%s", qdq_dtype_name(r->src[0].dtype));
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->dst, QDQI_DNNL_DST, r->dst, err));
    QDQI_TRY(qdqi_dnnl_draft_attr(d, NULL, NULL, NULL, NULL, NULL, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        dnnl_concat_primitive_desc_create(&pd, qdqi_dnnl_engine(), r->dst->any ? NULL : d->dst, (int)r->n, r->axis,
                                          (const_dnnl_memory_desc_t const *)mds, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_concat(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (r->n < 1 || r->n > QDQI_DNNL_MAX_SOURCES)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "concat: %u sources, expected 1...%d", r->n, QDQI_DNNL_MAX_SOURCES);
    dnnl_memory_desc_t *mds = qdqi_calloc(r->n, sizeof *mds);
    if (mds == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = make_concat(d, r, mds, out, err);
    for (uint32_t i = 0; i < r->n; i++)
        if (mds[i] != NULL) dnnl_memory_desc_destroy(mds[i]);
    qdqi_free(mds);
    return st;
}
