/* The primitives with weights: matmul, convolution, deconvolution. */
#include "onednn/onednn_impl.h"

#include "base/dtype.h"

/* Weights of integers under activations of floats: oneDNN may convert the weights, never the activations. */
static qdq_status allow_int_weights(qdqi_dnnl_request *r, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                    qdq_error *err) {
    if (!qdqi_dtype_is_float(src->dtype) || !qdqi_dtype_is_int(weights->dtype)) return QDQ_OK;
    const dnnl_fpmath_mode_t mode = src->dtype == QDQ_DTYPE_F16    ? dnnl_fpmath_mode_f16
                                    : src->dtype == QDQ_DTYPE_BF16 ? dnnl_fpmath_mode_bf16
                                                                   : dnnl_fpmath_mode_strict;
    return qdqi_dnnl_check(dnnl_primitive_attr_set_fpmath_mode_v2(r->attr, mode, 1), r->primitive, err);
}

static qdq_status add_tensors(qdqi_dnnl_request *r, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                              const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->src, QDQI_DNNL_SRC, src, err));
    QDQI_TRY(qdqi_dnnl_request_md(r, &r->weights, QDQI_DNNL_WEIGHTS, weights, err));
    if (bias != NULL && bias->ndims != 0) QDQI_TRY(qdqi_dnnl_request_md(r, &r->bias, QDQI_DNNL_BIAS, bias, err));
    return qdqi_dnnl_request_md(r, &r->dst, QDQI_DNNL_DST, dst, err);
}

static qdq_status make_matmul(qdqi_dnnl_request *r, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                              const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                              qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(add_tensors(r, src, weights, bias, dst, err));
    QDQI_TRY(qdqi_dnnl_request_attr(r, attr, src, NULL, weights, dst, err));
    QDQI_TRY(allow_int_weights(r, src, weights, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(&pd, qdqi_dnnl_engine(), r->src, r->weights, r->bias, r->dst, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = "matmul"};
    const qdq_status st = make_matmul(&r, src, weights, bias, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}

static qdq_status make_convolution(qdqi_dnnl_request *r, const qdqi_dnnl_conv *c, const qdqi_dnnl_md *src,
                                   const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst,
                                   const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    QDQI_TRY(add_tensors(r, src, weights, bias, dst, err));
    if (src->ndims != c->n_spatial + 2 || (weights->ndims != src->ndims && weights->ndims != src->ndims + 1))
        return qdqi_fail(err, QDQ_E_BAD_SHAPE, "%s: src has rank %d and weights %d for %d spatial dims", r->primitive,
                         src->ndims, weights->ndims, c->n_spatial);
    QDQI_TRY(qdqi_dnnl_request_attr(r, attr, src, NULL, weights, dst, err));
    const dnnl_engine_t engine = qdqi_dnnl_engine();
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status =
        c->transposed ? dnnl_deconvolution_forward_primitive_desc_create(
                            &pd, engine, dnnl_forward_inference, dnnl_deconvolution_direct, r->src, r->weights, r->bias,
                            r->dst, c->strides, c->dilations, c->pads_begin, c->pads_end, r->attr)
                      : dnnl_convolution_forward_primitive_desc_create(
                            &pd, engine, dnnl_forward_inference, dnnl_convolution_direct, r->src, r->weights, r->bias,
                            r->dst, c->strides, c->dilations, c->pads_begin, c->pads_end, r->attr);
    return qdqi_dnnl_request_finish(r, status, pd, out, err);
}

qdq_status qdqi_dnnl_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                 const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                 qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_request r = {.primitive = conv->transposed ? "deconvolution" : "convolution"};
    const qdq_status st = make_convolution(&r, conv, src, weights, bias, dst, attr, out, err);
    qdqi_dnnl_request_clear(&r);
    return st;
}
