/* Softmax and the normalizations. */
#include "onednn/onednn_impl.h"

static qdq_status make_softmax(qdqi_dnnl_request *r, qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    if (alg != QDQI_DNNL_SOFTMAX && alg != QDQI_DNNL_LOGSOFTMAX)
        return qdqi_fail(err, QDQ_E_INTERNAL, "softmax: algorithm %d is not of this primitive", (int)alg);
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_softmax_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, qdqi_dnnl_alg_kind(alg), r->src, r->dst, axis, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "softmax"};
    const qdq_status st = make_softmax(&r, alg, axis, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static unsigned affine_flags(qdqi_dnnl_request *r, bool use_affine) {
    if (!use_affine) return dnnl_normalization_flags_none;
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_SCALE, DNNL_ARG_SCALE);
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_SHIFT, DNNL_ARG_SHIFT);
    return dnnl_use_scale | dnnl_use_shift;
}

static qdq_status make_layernorm(qdqi_dnnl_request *r, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    const unsigned flags = affine_flags(r, use_affine);
    dnnl_primitive_desc_t pd = NULL; /* no descriptor of statistics: they are computed and thrown away */
    const dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, r->src, r->dst, NULL, epsilon, flags, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "layernorm"};
    const qdq_status st = make_layernorm(&r, epsilon, use_affine, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_groupnorm(qdqi_dnnl_request *r, int64_t groups, float epsilon, bool use_affine,
                                 const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                 qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    const unsigned flags = affine_flags(r, use_affine);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_group_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, r->src, r->dst, groups, epsilon, flags, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "groupnorm"};
    const qdq_status st = make_groupnorm(&r, groups, epsilon, use_affine, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_batchnorm(qdqi_dnnl_request *r, float epsilon, bool fuse_relu, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_request_src_dst(r, src, dst, attr, err));
    unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
    if (fuse_relu) flags |= dnnl_fuse_norm_relu;
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_SCALE, DNNL_ARG_SCALE);
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_SHIFT, DNNL_ARG_SHIFT);
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_MEAN, DNNL_ARG_MEAN);
    qdqi_dnnl_request_role(r, QDQI_DNNL_NORM_VARIANCE, DNNL_ARG_VARIANCE);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_batch_normalization_forward_primitive_desc_create(
        &pd, qdqi_dnnl_engine(), dnnl_forward_inference, r->src, r->dst, epsilon, flags, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "batchnorm"};
    const qdq_status st = make_batchnorm(&r, epsilon, fuse_relu, src, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}
