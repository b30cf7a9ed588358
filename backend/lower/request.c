#include "lower/request.h"

#include "lower/single.h"
#include "native/native.h"

#include <string.h>

qdq_status qdqi_request_native(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    switch (r->kind) {
    case QDQI_MAKE_MATMUL: return qdqi_native_matmul(r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case QDQI_MAKE_CONVOLUTION:
        return qdqi_native_convolution(r->conv, r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case QDQI_MAKE_POOLING: return qdqi_native_pooling(r->pool, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_ELTWISE: return qdqi_native_eltwise(r->alg, r->alpha, r->beta, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_BINARY: return qdqi_native_binary(r->alg, r->src, r->second, r->dst, r->attr, out, err);
    case QDQI_MAKE_SOFTMAX: return qdqi_native_softmax(r->alg, r->axis, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_LAYERNORM: return qdqi_native_layernorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_GROUPNORM:
        return qdqi_native_groupnorm(r->groups, r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_BATCHNORM: return qdqi_native_batchnorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_REDUCTION: return qdqi_native_reduction(r->alg, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_RESAMPLING: return qdqi_native_resampling(r->alg, r->src, r->dst, r->attr, out, err);
    case QDQI_MAKE_CONCAT: return qdqi_native_concat(r->axis, r->n, r->src, r->dst, out, err);
    case QDQI_MAKE_REORDER: return qdqi_native_reorder(r->src, r->dst, r->attr, out, err);
    }
    return QDQ_E_INTERNAL;
}

/* ---- classes ---- */

static const char *const class_names[] = {
#define QDQI_CLASS(name, text) #name,
    QDQI_CLASS_MAP(QDQI_CLASS)
#undef QDQI_CLASS
};

const char *qdqi_class_name(qdqi_class c) {
    return class_names[c];
}

static double n_elems(const qdqi_dnnl_md *md) {
    double n = 1;
    for (int32_t d = 0; d < md->ndims; d++)
        n *= (double)md->dims[d];
    return n;
}

static qdqi_class of_type(bool int8, qdqi_class integers, qdqi_class floats) {
    return int8 ? integers : floats;
}

static bool is_float(const qdqi_request *r) {
    return r->src->dtype == QDQ_DTYPE_F32 && (r->second == NULL || r->second->dtype == QDQ_DTYPE_F32);
}

static qdqi_class class_of_matmul(const qdqi_request *r) {
    const bool int8 = qdqi_is_x8(r->src->dtype) && qdqi_is_x8(r->second->dtype);
    if (!int8 && !is_float(r)) return QDQI_CLASS_other;
    const int32_t nd = r->src->ndims;
    const double macs = n_elems(r->dst) * (double)r->src->dims[nd - 1];
    if (!r->second->any) return of_type(int8, QDQI_CLASS_matmul_int8_runtime, QDQI_CLASS_matmul_float_runtime);
    if (macs <= 0x1p15) return of_type(int8, QDQI_CLASS_matmul_int8_tiny, QDQI_CLASS_matmul_float_tiny);
    if (n_elems(r->dst) / (double)r->dst->dims[nd - 1] <= 8)
        return of_type(int8, QDQI_CLASS_matmul_int8_gemv, QDQI_CLASS_matmul_float_gemv);
    if (macs <= 0x1p23) return of_type(int8, QDQI_CLASS_matmul_int8_small, QDQI_CLASS_matmul_float_small);
    return of_type(int8, QDQI_CLASS_matmul_int8_large, QDQI_CLASS_matmul_float_large);
}

/* oneDNN adds what an s8 source costs it, ours reads it as it is. */
static qdqi_class of_source(const qdqi_request *r, qdqi_class u8, qdqi_class s8, qdqi_class floats) {
    return r->src->dtype == QDQ_DTYPE_U8 ? u8 : r->src->dtype == QDQ_DTYPE_S8 ? s8 : floats;
}

static qdqi_class class_of_conv(const qdqi_request *r) {
    const qdqi_dnnl_md *w = r->second;
    const bool int8 = qdqi_is_x8(r->src->dtype) && qdqi_is_x8(w->dtype);
    const bool grouped = w->ndims == r->conv->n_spatial + 3;
    if ((!int8 && !is_float(r)) || r->conv->transposed) return QDQI_CLASS_other;
    double window = 1;
    for (int32_t d = w->ndims - r->conv->n_spatial; d < w->ndims; d++)
        window *= (double)w->dims[d];
    const double ic = (double)w->dims[w->ndims - r->conv->n_spatial - 1];
    const double macs = n_elems(r->dst) * ic * window;
    const double oc = (double)w->dims[w->ndims - r->conv->n_spatial - 2];
    if (grouped && ic == 1 && oc == 1)
        return of_source(r, QDQI_CLASS_conv_u8_depthwise, QDQI_CLASS_conv_s8_depthwise,
                         QDQI_CLASS_conv_float_depthwise);
    if (macs <= 0x1p20) return of_type(int8, QDQI_CLASS_conv_int8_small, QDQI_CLASS_conv_float_small);
    if (grouped) return QDQI_CLASS_other;
    if (ic <= 4) return of_type(int8, QDQI_CLASS_conv_int8_first, QDQI_CLASS_conv_float_first);
    if (window == 1) return of_source(r, QDQI_CLASS_conv_u8_1x1, QDQI_CLASS_conv_s8_1x1, QDQI_CLASS_conv_float_1x1);
    return of_source(r, QDQI_CLASS_conv_u8_kxk, QDQI_CLASS_conv_s8_kxk, QDQI_CLASS_conv_float_kxk);
}

static bool is_function(qdqi_dnnl_alg alg) {
    switch ((int)alg) {
    case QDQI_DNNL_ELT_RELU:
    case QDQI_DNNL_ELT_SQUARE:
    case QDQI_DNNL_ELT_ABS:
    case QDQI_DNNL_ELT_SQRT:
    case QDQI_DNNL_ELT_LINEAR:
    case QDQI_DNNL_ELT_CLIP:
    case QDQI_DNNL_ELT_ROUND:
    case QDQI_DNNL_ELT_HARDSWISH:
    case QDQI_DNNL_ELT_HARDSIGMOID: return false;
    default: return true;
    }
}

static qdqi_class class_of_reduction(const qdqi_request *r) {
    const int32_t last = r->src->ndims - 1;
    return r->dst->dims[last] == 1 && r->src->dims[last] != 1 ? QDQI_CLASS_reduction : QDQI_CLASS_reduction_outer;
}

qdqi_class qdqi_request_class(const qdqi_request *r) {
    if (r->src == NULL || r->dst == NULL) return QDQI_CLASS_other; /* the candidates say so */
    const bool large = n_elems(r->src) > 0x1p14, f32 = r->src->dtype == QDQ_DTYPE_F32;
    switch (r->kind) {
    case QDQI_MAKE_MATMUL: return r->second == NULL ? QDQI_CLASS_other : class_of_matmul(r);
    case QDQI_MAKE_CONVOLUTION: return r->second == NULL ? QDQI_CLASS_other : class_of_conv(r);
    case QDQI_MAKE_POOLING:
        if (r->pool->n_spatial != 2) return QDQI_CLASS_other;
        return qdqi_is_x8(r->src->dtype) ? QDQI_CLASS_pool_int8 : f32 ? QDQI_CLASS_pool_float : QDQI_CLASS_other;
    case QDQI_MAKE_REORDER: return QDQI_CLASS_reorder_types;
    case QDQI_MAKE_CONCAT: return QDQI_CLASS_other;
    default: break;
    }
    if (!f32) return QDQI_CLASS_other;
    switch ((int)r->kind) {
    case QDQI_MAKE_ELTWISE:
        if (is_function(r->alg)) return large ? QDQI_CLASS_eltwise_function_large : QDQI_CLASS_eltwise_function;
        return large ? QDQI_CLASS_eltwise_simple_large : QDQI_CLASS_eltwise_simple;
    case QDQI_MAKE_BINARY: return large ? QDQI_CLASS_binary_large : QDQI_CLASS_binary;
    case QDQI_MAKE_SOFTMAX: return large ? QDQI_CLASS_softmax_large : QDQI_CLASS_softmax;
    case QDQI_MAKE_LAYERNORM: return large ? QDQI_CLASS_layernorm_large : QDQI_CLASS_layernorm;
    case QDQI_MAKE_GROUPNORM: return QDQI_CLASS_groupnorm;
    case QDQI_MAKE_BATCHNORM: return QDQI_CLASS_batchnorm;
    case QDQI_MAKE_REDUCTION: return class_of_reduction(r);
    case QDQI_MAKE_RESAMPLING:
        return r->alg == QDQI_DNNL_RESIZE_LINEAR ? QDQI_CLASS_resampling : QDQI_CLASS_resampling_nearest;
    default: return QDQI_CLASS_other;
    }
}
