/* Softmax and the normalizations. */
#include "onednn/onednn_impl.h"

qdq_status qdqi_dnnl_make_softmax(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (r->alg != QDQI_DNNL_SOFTMAX && r->alg != QDQI_DNNL_LOGSOFTMAX) return qdqi_dnnl_wrong_alg(d, r->alg, err);
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_softmax_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(r->alg), d->src, d->dst, r->axis, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

static unsigned affine_flags(qdqi_dnnl_draft *d, bool use_affine) {
    if (!use_affine) return dnnl_normalization_flags_none;
    qdqi_dnnl_draft_role(d, QDQI_DNNL_NORM_SCALE, DNNL_ARG_SCALE);
    qdqi_dnnl_draft_role(d, QDQI_DNNL_NORM_SHIFT, DNNL_ARG_SHIFT);
    return dnnl_use_scale | dnnl_use_shift;
}

qdq_status qdqi_dnnl_make_layernorm(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    const unsigned flags = affine_flags(d, r->flag);
    dnnl_primitive_desc_t pd = NULL; /* no descriptor of statistics: they are computed and thrown away */
    const dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, d->src, d->dst, NULL, r->alpha, flags, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_groupnorm(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    const unsigned flags = affine_flags(d, r->flag);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_group_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, d->src, d->dst, r->groups, r->alpha, flags, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_batchnorm(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_src_dst(d, r, err));
    const unsigned flags = dnnl_use_global_stats | affine_flags(d, true) | (r->flag ? dnnl_fuse_norm_relu : 0u);
    qdqi_dnnl_draft_role(d, QDQI_DNNL_NORM_MEAN, DNNL_ARG_MEAN);
    qdqi_dnnl_draft_role(d, QDQI_DNNL_NORM_VARIANCE, DNNL_ARG_VARIANCE);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_batch_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, d->src, d->dst, r->alpha, flags, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}
