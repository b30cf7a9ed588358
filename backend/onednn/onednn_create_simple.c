/* Element-wise, binary, pooling, reduction, resampling, concat. */
#include "onednn/onednn_impl.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static qdq_status wrong_alg(const qdqi_dnnl_request *r, qdqi_dnnl_alg alg, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_INTERNAL, "%s: algorithm %d is not of this primitive", r->primitive, (int)alg);
}

static qdq_status make_eltwise(qdqi_dnnl_request *r, qdqi_dnnl_alg alg, float alpha, float beta,
                               const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                               qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_is_eltwise(alg)) return wrong_alg(r, alg, err);
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_eltwise_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(alg), r->src, r->dst, alpha, beta, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                             const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                             qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "eltwise"};
    const qdq_status st = make_eltwise(&r, alg, alpha, beta, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_binary(qdqi_dnnl_request *r, qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0,
                              const qdqi_dnnl_md *src1, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                              qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_is_binary(alg)) return wrong_alg(r, alg, err);
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->src, QDQI_DNNL_SRC, src0, err));
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->src1, QDQI_DNNL_SRC1, src1, err));
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->dst, QDQI_DNNL_DST, dst, err));
    QDQI_TRY(qdqi_dnnl_request_attr(r, attr, src0, src1, NULL, dst, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_binary_primitive_desc_create(&pd, qdqi_dnnl_engine(), qdqi_dnnl_alg_kind(alg),
                                                                   r->src, r->src1, r->dst, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "binary"};
    const qdq_status st = make_binary(&r, alg, src0, src1, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_pooling(qdqi_dnnl_request *r, const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    if (pool->alg < QDQI_DNNL_POOL_MAX || pool->alg > QDQI_DNNL_POOL_AVG_EXCLUDE_PAD)
        return wrong_alg(r, pool->alg, err);
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    if (src->ndims != pool->n_spatial + 2)
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "pooling: src has rank %d for %d spatial dims", src->ndims,
                         pool->n_spatial);
    dnnl_dims_t dilations = {0}; /* oneDNN's 0 is the graph's 1 */
    for (int32_t d = 0; d < pool->n_spatial; d++) {
        if (pool->dilations[d] < 1)
            return qdqi_fail(err, QDQ_E_BAD_ATTR, "pooling: dilation %d is %lld, expected 1 or more", d,
                             (long long)pool->dilations[d]);
        dilations[d] = pool->dilations[d] - 1;
    }
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(pool->alg), r->src, r->dst, pool->strides,
        pool->kernel, dilations, pool->pads_begin, pool->pads_end, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "pooling"};
    const qdq_status st = make_pooling(&r, pool, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_reduction(qdqi_dnnl_request *r, qdqi_dnnl_alg alg, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err) {
    if (alg < QDQI_DNNL_RED_SUM || alg > QDQI_DNNL_RED_L2) return wrong_alg(r, alg, err);
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    const float p = alg == QDQI_DNNL_RED_L2 ? 2.0f : 1.0f; /* read by the norms alone */
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_reduction_primitive_desc_create(&pd, qdqi_dnnl_engine(), qdqi_dnnl_alg_kind(alg),
                                                                      r->src, r->dst, p, 0.0f, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "reduction"};
    const qdq_status st = make_reduction(&r, alg, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_resampling(qdqi_dnnl_request *r, qdqi_dnnl_alg alg, const qdqi_dnnl_md *src,
                                  const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                  qdq_error *err) {
    if (alg != QDQI_DNNL_RESIZE_NEAREST && alg != QDQI_DNNL_RESIZE_LINEAR) return wrong_alg(r, alg, err);
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    dnnl_primitive_desc_t pd = NULL; /* no factors: they follow from the dims */
    const dnnl_status_t status = dnnl_resampling_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(alg), NULL, r->src, r->dst, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "resampling"};
    const qdq_status st = make_resampling(&r, alg, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

/* concat has any number of sources: their descriptors and roles do not fit into a request. */
static qdq_status make_concat(qdqi_dnnl_request *r, dnnl_memory_desc_t *mds, int32_t axis, uint32_t n,
                              const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst, qdqi_dnnl_prim **out, qdq_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        char what[32];
        snprintf(what, sizeof what, "src %u", i);
        QDQI_TRY(qdqi_dnnl_make_md(&srcs[i], r->primitive, what, &mds[i], err));
    }
    r->n_sources = n;
    snprintf(r->types, sizeof r->types, "%s", qdq_dtype_name(srcs[0].dtype));
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->dst, QDQI_DNNL_DST, dst, err));
    QDQI_TRY(qdqi_dnnl_request_attr(r, NULL, NULL, NULL, NULL, NULL, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        dnnl_concat_primitive_desc_create(&pd, qdqi_dnnl_engine(), dst->any ? NULL : r->dst, (int)n, axis,
                                          (const_dnnl_memory_desc_t const *)mds, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                            qdqi_dnnl_prim **out, qdq_error *err) {
    if (n < 1 || n > QDQI_DNNL_MAX_SOURCES)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "concat: %u sources, expected 1...%d", n, QDQI_DNNL_MAX_SOURCES);
    qdqi_dnnl_request r = {.primitive = "concat"};
    dnnl_memory_desc_t *mds = qdqi_calloc(n, sizeof *mds);
    if (mds == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = make_concat(&r, mds, axis, n, srcs, dst, out, err);
    for (uint32_t i = 0; i < n; i++)
        if (mds[i] != NULL) dnnl_memory_desc_destroy(mds[i]);
    qdqi_free(mds);
    qdqi_dnnl_request_clear(&r);
    return st;
}
