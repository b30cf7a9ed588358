#include "lower/choice.h"

#include "base/dtype.h"
#include "kernels/isa/isa.h"
#include "lower/lower.h"
#include "native/native.h"
#include "onednn/prim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- one request, whoever answers it ---- */

typedef enum kind {
    MATMUL,
    CONVOLUTION,
    POOLING,
    ELTWISE,
    BINARY,
    SOFTMAX,
    LAYERNORM,
    GROUPNORM,
    BATCHNORM,
    REDUCTION,
    RESAMPLING,
    CONCAT,
    REORDER
} kind;

typedef struct request {
    kind kind;
    qdqi_dnnl_alg alg;
    float alpha, beta; /* alpha: epsilon of a normalisation */
    int32_t axis;
    int64_t groups;
    bool flag; /* affine, or fused ReLU */
    uint32_t n;
    const qdqi_dnnl_conv *conv;
    const qdqi_dnnl_pool *pool;
    const qdqi_dnnl_md *src, *second, *bias, *dst; /* second: weights, or src1 */
    const qdqi_dnnl_attr *attr;
} request;

static const struct {
    const char *onednn, *native; /* who refused */
} names[] = {
    [MATMUL] = {"onednn matmul", "native matmul"},
    [CONVOLUTION] = {"onednn convolution", "native convolution"},
    [POOLING] = {"onednn pooling", "native pooling"},
    [ELTWISE] = {"onednn eltwise", "native eltwise"},
    [BINARY] = {"onednn binary", "native binary"},
    [SOFTMAX] = {"onednn softmax", "native softmax"},
    [LAYERNORM] = {"onednn layernorm", "native layernorm"},
    [GROUPNORM] = {"onednn groupnorm", "native groupnorm"},
    [BATCHNORM] = {"onednn batchnorm", "native batchnorm"},
    [REDUCTION] = {"onednn reduction", "native reduction"},
    [RESAMPLING] = {"onednn resampling", "native resampling"},
    [CONCAT] = {"onednn concat", "native concat"},
    [REORDER] = {"onednn reorder", "native reorder"},
};

static qdq_status from_onednn(const request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    switch (r->kind) {
    case MATMUL: return qdqi_dnnl_matmul(r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case CONVOLUTION: return qdqi_dnnl_convolution(r->conv, r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case POOLING: return qdqi_dnnl_pooling(r->pool, r->src, r->dst, r->attr, out, err);
    case ELTWISE: return qdqi_dnnl_eltwise(r->alg, r->alpha, r->beta, r->src, r->dst, r->attr, out, err);
    case BINARY: return qdqi_dnnl_binary(r->alg, r->src, r->second, r->dst, r->attr, out, err);
    case SOFTMAX: return qdqi_dnnl_softmax(r->alg, r->axis, r->src, r->dst, r->attr, out, err);
    case LAYERNORM: return qdqi_dnnl_layernorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case GROUPNORM: return qdqi_dnnl_groupnorm(r->groups, r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case BATCHNORM: return qdqi_dnnl_batchnorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case REDUCTION: return qdqi_dnnl_reduction(r->alg, r->src, r->dst, r->attr, out, err);
    case RESAMPLING: return qdqi_dnnl_resampling(r->alg, r->src, r->dst, r->attr, out, err);
    case CONCAT: return qdqi_dnnl_concat(r->axis, r->n, r->src, r->dst, out, err);
    case REORDER: return qdqi_dnnl_reorder(r->src, r->dst, r->attr, out, err);
    }
    return QDQ_E_INTERNAL;
}

static qdq_status from_native(const request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    switch (r->kind) {
    case MATMUL: return qdqi_native_matmul(r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case CONVOLUTION: return qdqi_native_convolution(r->conv, r->src, r->second, r->bias, r->dst, r->attr, out, err);
    case POOLING: return qdqi_native_pooling(r->pool, r->src, r->dst, r->attr, out, err);
    case ELTWISE: return qdqi_native_eltwise(r->alg, r->alpha, r->beta, r->src, r->dst, r->attr, out, err);
    case BINARY: return qdqi_native_binary(r->alg, r->src, r->second, r->dst, r->attr, out, err);
    case SOFTMAX: return qdqi_native_softmax(r->alg, r->axis, r->src, r->dst, r->attr, out, err);
    case LAYERNORM: return qdqi_native_layernorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case GROUPNORM: return qdqi_native_groupnorm(r->groups, r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case BATCHNORM: return qdqi_native_batchnorm(r->alpha, r->flag, r->src, r->dst, r->attr, out, err);
    case REDUCTION: return qdqi_native_reduction(r->alg, r->src, r->dst, r->attr, out, err);
    case RESAMPLING: return qdqi_native_resampling(r->alg, r->src, r->dst, r->attr, out, err);
    case CONCAT: return qdqi_native_concat(r->axis, r->n, r->src, r->dst, out, err);
    case REORDER: return qdqi_native_reorder(r->src, r->dst, r->attr, out, err);
    }
    return QDQ_E_INTERNAL;
}

/* ---- where oneDNN 3.7.2 must not be asked ---- */

static bool is_x8(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8;
}

/* A batch of single rows times weights that all share: the zero point of the weights counts for the first row only. */
static bool is_shared_by_single_rows(const request *r) {
    const qdqi_dnnl_md *a = r->src, *w = r->second;
    const int32_t nd = a->ndims;
    if (nd < 3 || w->ndims != nd || a->dims[nd - 2] != 1) return false;
    for (int32_t i = 0; i < nd - 2; i++)
        if (a->dims[i] > 1 && w->dims[i] == 1) return true;
    return false;
}

static const char *why_not_convolution(const request *r) {
    const qdqi_dnnl_conv *c = r->conv;
    const qdqi_dnnl_md *w = r->second;
    const int32_t n = c->n_spatial, first = w->ndims - n;
    if (r->attr != NULL && r->attr->weights.has_zp) return "weights_zero_point";
    for (int32_t i = 0; i < n; i++) {
        const int64_t window = (w->dims[first + i] - 1) * (c->dilations[i] + 1) + 1;
        if (c->transposed && is_x8(r->src->dtype) && window < c->strides[i]) return "windows_with_gaps";
        if (!c->transposed && (c->pads_begin[i] >= window || c->pads_end[i] >= window))
            return "window_in_padding_alone";
    }
    if (!c->transposed && w->dims[first - 1] == 1 && c->strides[n - 1] > 1 && r->dst->dims[1 + n] == 1)
        return "one_channel_and_one_strided_column";
    return NULL;
}

static const char *why_not_onednn(const request *r) {
    if (r->kind != MATMUL && r->kind != CONVOLUTION) return NULL;
    const bool int8 = is_x8(r->src->dtype) && is_x8(r->second->dtype);
    if (int8 && !qdqi_dnnl_int8_exact()) return "isa_without_exact_int8";
    if (r->kind == CONVOLUTION) return why_not_convolution(r);
    if (r->attr != NULL && r->attr->weights.has_zp && is_shared_by_single_rows(r))
        return "zero_point_of_weights_shared_by_single_rows";
    return NULL;
}

/* ---- where our own kernels come first: the classes of choice.def ---- */

/* Multiplications of a product with constant weights; infinite when these are computed at run time, and have to be packed. */
static double macs_of(const request *r) {
    if (!r->second->any) return (double)INFINITY;
    double macs = (double)r->src->dims[r->src->ndims - 1];
    for (int32_t d = 0; d < r->dst->ndims; d++)
        macs *= (double)r->dst->dims[d];
    return macs;
}

static bool is_int8(const request *r) {
    return is_x8(r->src->dtype) && is_x8(r->second->dtype);
}

static bool int8_small(const request *r) {
    return is_int8(r) && macs_of(r) <= 0x1p20;
}

static bool int8_few_rows(const request *r) {
    return is_int8(r) && r->dst->ndims == 2 && r->dst->dims[0] <= 8 && macs_of(r) < (double)INFINITY;
}

static bool f32_tiny(const request *r) {
    return r->src->dtype == QDQ_DTYPE_F32 && r->second->dtype == QDQ_DTYPE_F32 && macs_of(r) <= 0x1p16;
}

/* The text of the row that takes the request, or NULL. */
static const char *native_first(const request *r) {
    static const struct {
        kind kind;
        bool (*takes)(const request *r);
        qk_isa level;
        const char *text;
    } rows[] = {
#define CHOICE(kind, class, level, text) {kind, class, QK_ISA_##level, text},
#include "lower/choice.def"
#undef CHOICE
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind == r->kind && qk_isa_has(rows[i].level) && rows[i].takes(r)) return rows[i].text;
    return NULL;
}

/* ---- the candidates ---- */

static qdq_status try_onednn(const request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_available()) { /* said once per partition */
        if (qdqi_dnnl_jit_off())
            (void)qdqi_refuse(err, "onednn", "jit_off");
        else
            (void)qdqi_refuse(err, "onednn", "no_onednn");
        return QDQ_E_NO_ONEDNN;
    }
    const char *why = why_not_onednn(r);
    if (why != NULL) return qdqi_refuse(err, names[r->kind].onednn, why);
    const qdq_status st = from_onednn(r, out, err);
    if (qdqi_is_refusal(st)) (void)qdqi_refuse(NULL, names[r->kind].onednn, "not_implemented_by_onednn");
    return st;
}

static qdq_status try_native(const request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdq_status st = from_native(r, out, err);
    if (qdqi_is_refusal(st)) (void)qdqi_refuse(NULL, names[r->kind].native, qdqi_native_why());
    return st;
}

/* Why oneDNN's way is the last to take, or NULL. Its general int8 convolution unfolds the image for each group. */
static const char *why_slow(const request *r, const qdqi_dnnl_prim *prim) {
    if (qdqi_dnnl_prim_is_ref(prim)) return "onednn_has_only_a_reference";
    if (r->kind == CONVOLUTION && is_x8(r->src->dtype) && strstr(qdqi_dnnl_prim_impl(prim), "gemm_") != NULL)
        return "onednn_unfolds_the_image";
    return NULL;
}

static qdq_status make(const request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_prim *slow = NULL;
    qdq_status st;
    const char *first = native_first(r);
    if (first != NULL) {
        st = try_native(r, out, err);
        if (!qdqi_is_refusal(st)) {
            const size_t n = st == QDQ_OK ? strlen((*out)->note) : 0;
            if (st == QDQ_OK) snprintf((*out)->note + n, sizeof(*out)->note - n, " (%s)", first);
            return st;
        }
    }
    st = try_onednn(r, out, err);
    const char *slowly = st == QDQ_OK ? why_slow(r, *out) : NULL;
    if (st == QDQ_OK && slowly == NULL) return QDQ_OK;
    if (st != QDQ_OK && !qdqi_is_refusal(st)) return st;
    if (st == QDQ_OK) slow = *out;
    st = try_native(r, out, slow == NULL ? err : NULL);
    if (slow == NULL) return st;
    if (st == QDQ_OK) {
        (void)qdqi_refuse(NULL, names[r->kind].onednn, slowly);
        qdqi_dnnl_prim_destroy(slow);
        return st;
    }
    if (qdqi_is_refusal(st)) {
        *out = slow;
        return QDQ_OK;
    }
    qdqi_dnnl_prim_destroy(slow);
    return st;
}

/* ---- the requests ---- */

bool qdqi_make_has_dtype(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

qdq_status qdqi_make_matmul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = MATMUL, .src = src, .second = weights, .bias = bias, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                 const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                 qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {
        .kind = CONVOLUTION, .conv = conv, .src = src, .second = weights, .bias = bias, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = POOLING, .pool = pool, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src,
                             const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                             qdq_error *err) {
    const request r = {.kind = ELTWISE, .alg = alg, .alpha = alpha, .beta = beta, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1,
                            const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = BINARY, .alg = alg, .src = src0, .second = src1, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = SOFTMAX, .alg = alg, .axis = axis, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = LAYERNORM, .alpha = epsilon, .flag = use_affine, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                               const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                               qdq_error *err) {
    const request r = {.kind = GROUPNORM,
                       .groups = groups,
                       .alpha = epsilon,
                       .flag = use_affine,
                       .src = src,
                       .dst = dst,
                       .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = BATCHNORM, .alpha = epsilon, .flag = fuse_relu, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = REDUCTION, .alg = alg, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = RESAMPLING, .alg = alg, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
qdq_status qdqi_make_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                            qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = CONCAT, .axis = axis, .n = n, .src = srcs, .dst = dst};
    return make(&r, out, err);
}
qdq_status qdqi_make_reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                             qdqi_dnnl_prim **out, qdq_error *err) {
    const request r = {.kind = REORDER, .src = src, .dst = dst, .attr = attr};
    return make(&r, out, err);
}
