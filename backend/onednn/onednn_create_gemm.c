/* The primitives with weights: matmul, convolution, deconvolution. */
#include "onednn/onednn_impl.h"

#include "base/dtype.h"

/* Weights of integers under activations of floats: oneDNN may convert the weights, never the activations. */
static qdq_status allow_int_weights(qdqi_dnnl_draft *d, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                    qdq_error *err) {
    if (!qdqi_dtype_is_float(src->dtype) || !qdqi_dtype_is_int(weights->dtype)) return QDQ_OK;
    const dnnl_fpmath_mode_t mode = src->dtype == QDQ_DTYPE_F16    ? dnnl_fpmath_mode_f16
                                    : src->dtype == QDQ_DTYPE_BF16 ? dnnl_fpmath_mode_bf16
                                                                   : dnnl_fpmath_mode_strict;
    return qdqi_dnnl_check(dnnl_primitive_attr_set_fpmath_mode_v2(d->attr, mode, 1), d->primitive, err);
}

static qdq_status add_tensors(qdqi_dnnl_draft *d, const qdqi_request *r, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->src, QDQI_DNNL_SRC, r->src, err));
    QDQI_TRY(qdqi_dnnl_draft_md(d, &d->weights, QDQI_DNNL_WEIGHTS, r->second, err));
    if (r->bias != NULL && r->bias->ndims != 0) QDQI_TRY(qdqi_dnnl_draft_md(d, &d->bias, QDQI_DNNL_BIAS, r->bias, err));
    return qdqi_dnnl_draft_md(d, &d->dst, QDQI_DNNL_DST, r->dst, err);
}

qdq_status qdqi_dnnl_make_matmul(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(add_tensors(d, r, err));
    QDQI_TRY(qdqi_dnnl_draft_attr(d, r->attr, r->src, NULL, r->second, r->dst, err));
    QDQI_TRY(allow_int_weights(d, r->src, r->second, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(&pd, qdqi_dnnl_engine(), d->src, d->weights, d->bias, d->dst, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}

qdq_status qdqi_dnnl_make_convolution(qdqi_dnnl_draft *d, const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdqi_dnnl_conv *c = r->conv;
    if (c->transposed) d->primitive = "deconvolution";
    QDQI_TRY(add_tensors(d, r, err));
    const int32_t rank = r->src->ndims, weights_rank = r->second->ndims;
    if (rank != c->n_spatial + 2 || (weights_rank != rank && weights_rank != rank + 1))
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "%s: src has rank %d and weights %d for %d spatial dims", d->primitive,
                         rank, weights_rank, c->n_spatial);
    QDQI_TRY(qdqi_dnnl_draft_attr(d, r->attr, r->src, NULL, r->second, r->dst, err));
    const dnnl_engine_t engine = qdqi_dnnl_engine();
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        c->transposed ? dnnl_deconvolution_forward_primitive_desc_create(
                            &pd, engine, dnnl_forward_inference, dnnl_deconvolution_direct, d->src, d->weights, d->bias,
                            d->dst, c->strides, c->dilations, c->pads_begin, c->pads_end, d->attr)
                      : dnnl_convolution_forward_primitive_desc_create(
                            &pd, engine, dnnl_forward_inference, dnnl_convolution_direct, d->src, d->weights, d->bias,
                            d->dst, c->strides, c->dilations, c->pads_begin, c->pads_end, d->attr);
    return qdqi_dnnl_draft_finish(d, status, pd, out, err);
}
