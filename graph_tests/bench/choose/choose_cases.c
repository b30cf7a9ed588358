#include "choose.h"

#include <string.h>

static const qdq_dtype U8 = QDQ_DTYPE_U8, S8 = QDQ_DTYPE_S8, F32 = QDQ_DTYPE_F32;

static qdqi_dnnl_md dense(qdq_dtype dtype, int32_t nd, const int64_t *dims) {
    qdqi_dnnl_md md = {.ndims = nd, .dtype = dtype};
    int64_t n = 1;
    for (int32_t d = nd - 1; d >= 0; d--) {
        md.dims[d] = dims[d];
        md.strides[d] = n;
        n *= dims[d];
    }
    return md;
}

/* N, C, H, W with the channels last in memory. */
static qdqi_dnnl_md image(qdq_dtype dtype, int64_t n, int64_t c, int64_t h, int64_t w) {
    return (qdqi_dnnl_md){.ndims = 4, .dims = {n, c, h, w}, .strides = {h * w * c, 1, w * c, c}, .dtype = dtype};
}

static void quantized(choose_case *c, int weights_mask) {
    c->attr.src = (qdqi_dnnl_quant){.has_zp = true};
    c->attr.weights = (qdqi_dnnl_quant){.has_scale = true, .scale_mask = weights_mask};
    c->attr.dst = (qdqi_dnnl_quant){.has_zp = true};
}

static void relu(choose_case *c) {
    c->attr.posts[c->attr.n_posts++] = (qdqi_dnnl_post){.alg = QDQI_DNNL_ELT_RELU};
}

/* ---- products ---- */

static const struct product {
    int64_t b, m, k, n;
    bool runtime; /* the weights are computed at run time */
} products[] = {
    {1, 1, 16, 16, false},     {1, 4, 32, 32, false},     {1, 8, 32, 64, false},     {1, 1, 256, 1024, false},
    {1, 4, 768, 768, false},   {1, 1, 2048, 1000, false}, {1, 8, 1024, 1024, false}, {1, 16, 128, 128, false},
    {1, 64, 256, 256, false},  {1, 96, 64, 256, false},   {1, 128, 768, 768, false}, {1, 128, 256, 512, false},
    {1, 64, 768, 3072, false}, {12, 64, 64, 64, true},    {12, 128, 64, 128, true},  {1, 64, 256, 256, true},
};

static void make_product(const struct product *p, bool int8, choose_case *c) {
    const int32_t nd = p->b > 1 ? 3 : 2, skip = 3 - nd;
    const int64_t a[] = {p->b, p->m, p->k}, b[] = {p->b, p->k, p->n}, d[] = {p->b, p->m, p->n}, row[] = {1, 1, p->n};
    c->src = dense(int8 ? U8 : F32, nd, a + skip);
    c->second = dense(int8 ? S8 : F32, nd, b + skip);
    c->second.any = !p->runtime;
    c->dst = dense(int8 ? U8 : F32, nd, d + skip);
    c->bias = p->b == 1 ? dense(F32, nd, row + skip) : (qdqi_dnnl_md){0};
    if (int8) quantized(c, p->b == 1 ? 1 << (nd - 1) : 0);
    if (p->b == 1) relu(c);
    c->request.kind = QDQI_MAKE_MATMUL;
}

/* ---- convolutions ---- */

static const struct window {
    int64_t groups, ic, oc, size, kernel, stride;
} windows[] = {
    {96, 96, 96, 56, 3, 1}, {144, 144, 144, 28, 3, 2}, {384, 384, 384, 14, 3, 1}, {1, 64, 256, 28, 1, 1},
    {1, 256, 64, 28, 1, 1}, {1, 512, 128, 14, 1, 1},   {1, 3, 32, 224, 3, 2},     {1, 3, 64, 112, 7, 2},
    {1, 64, 64, 28, 3, 1},  {1, 128, 128, 14, 3, 1},   {1, 256, 256, 7, 3, 1},    {1, 16, 16, 14, 3, 1},
    {1, 16, 32, 28, 1, 1},  {32, 32, 32, 28, 3, 1},
};

static void make_window(const struct window *w, qdq_dtype type, choose_case *c) {
    const bool int8 = type != F32;
    const int64_t out = (w->size - 1) / w->stride + 1;
    c->src = image(type, 1, w->ic, w->size, w->size);
    c->dst = image(type, 1, w->oc, out, out);
    const int64_t dims[] = {w->groups, w->oc / w->groups, w->ic / w->groups, w->kernel, w->kernel};
    c->second = w->groups > 1 ? dense(int8 ? S8 : F32, 5, dims) : dense(int8 ? S8 : F32, 4, dims + 1);
    c->second.any = true;
    c->bias = dense(F32, 1, &w->oc);
    c->conv = (qdqi_dnnl_conv){.n_spatial = 2};
    for (int i = 0; i < 2; i++) {
        c->conv.strides[i] = w->stride;
        c->conv.pads_begin[i] = w->kernel / 2;
        c->conv.pads_end[i] = (out - 1) * w->stride + w->kernel - w->size - w->kernel / 2;
        if (c->conv.pads_end[i] < 0) c->conv.pads_end[i] = 0;
    }
    if (int8) quantized(c, w->groups > 1 ? 3 : 1);
    relu(c);
    c->request.kind = QDQI_MAKE_CONVOLUTION;
    c->request.conv = &c->conv;
}

/* ---- pooling ---- */

static const struct pooling {
    qdqi_dnnl_alg alg;
    int64_t channels, size, kernel, stride;
} poolings[] = {
    {QDQI_DNNL_POOL_MAX, 64, 56, 3, 2},
    {QDQI_DNNL_POOL_AVG_EXCLUDE_PAD, 128, 28, 2, 2},
    {QDQI_DNNL_POOL_AVG_EXCLUDE_PAD, 512, 7, 7, 7},
};

static void make_pooling(const struct pooling *p, bool int8, choose_case *c) {
    const int64_t pad = p->kernel == 3 ? 1 : 0, out = (p->size + pad - p->kernel) / p->stride + 1;
    c->src = image(int8 ? U8 : F32, 1, p->channels, p->size, p->size);
    c->dst = image(int8 ? U8 : F32, 1, p->channels, out, out);
    c->pool = (qdqi_dnnl_pool){.alg = p->alg, .n_spatial = 2};
    for (int i = 0; i < 2; i++) {
        c->pool.kernel[i] = p->kernel;
        c->pool.strides[i] = p->stride;
        c->pool.dilations[i] = 1;
        c->pool.pads_begin[i] = pad;
        c->pool.pads_end[i] = 0;
    }
    c->request.kind = QDQI_MAKE_POOLING;
    c->request.pool = &c->pool;
}

/* ---- passes over floats ---- */

static const struct pass {
    qdqi_make_kind kind;
    qdqi_dnnl_alg alg;
    float alpha, beta;
    int64_t dims[3];
    int reduced;  /* a dim of 1 in the result (reduction), or in the second operand (binary); -1: none */
    qdq_dtype to; /* UNDEF: f32 */
} passes[] = {
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_RELU, 0, 0, {4, 16, 64}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_HARDSWISH, 1.0f / 6, 0.5f, {4, 16, 64}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_CLIP, 0, 6, {16, 256, 128}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_LINEAR, 2, 1, {4, 128, 128}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_GELU_ERF, 0, 0, {4, 16, 64}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_LOGISTIC, 0, 0, {4, 16, 64}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_TANH, 0, 0, {4, 128, 128}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_GELU_ERF, 0, 0, {1, 128, 3072}, -1, 0},
    {QDQI_MAKE_ELTWISE, QDQI_DNNL_ELT_SWISH, 1, 0, {4, 128, 128}, -1, 0},
    {QDQI_MAKE_BINARY, QDQI_DNNL_BIN_ADD, 0, 0, {4, 16, 64}, -1, 0},
    {QDQI_MAKE_BINARY, QDQI_DNNL_BIN_MUL, 0, 0, {4, 16, 64}, 1, 0},
    {QDQI_MAKE_BINARY, QDQI_DNNL_BIN_ADD, 0, 0, {1, 128, 3072}, -1, 0},
    {QDQI_MAKE_BINARY, QDQI_DNNL_BIN_MUL, 0, 0, {1, 128, 3072}, 1, 0},
    {QDQI_MAKE_SOFTMAX, QDQI_DNNL_SOFTMAX, 0, 0, {1, 64, 64}, -1, 0},
    {QDQI_MAKE_SOFTMAX, QDQI_DNNL_SOFTMAX, 0, 0, {1, 1, 1000}, -1, 0},
    {QDQI_MAKE_SOFTMAX, QDQI_DNNL_SOFTMAX, 0, 0, {12, 128, 128}, -1, 0},
    {QDQI_MAKE_LAYERNORM, 0, 1e-5f, 0, {1, 8, 768}, -1, 0},
    {QDQI_MAKE_LAYERNORM, 0, 1e-5f, 0, {1, 128, 768}, -1, 0},
    {QDQI_MAKE_REDUCTION, QDQI_DNNL_RED_MEAN, 0, 0, {8, 64, 49}, 2, 0},
    {QDQI_MAKE_REDUCTION, QDQI_DNNL_RED_MAX, 0, 0, {1, 128, 768}, 2, 0},
    {QDQI_MAKE_REDUCTION, QDQI_DNNL_RED_SUM, 0, 0, {1, 128, 768}, 1, 0},
    {QDQI_MAKE_REDUCTION, QDQI_DNNL_RED_MEAN, 0, 0, {1, 49, 1280}, 1, 0},
    {QDQI_MAKE_REORDER, 0, 0, 0, {4, 64, 64}, -1, QDQ_DTYPE_BF16},
    {QDQI_MAKE_REORDER, 0, 0, 0, {1, 128, 3072}, -1, QDQ_DTYPE_F16},
};

static void make_pass(const struct pass *p, choose_case *c) {
    int64_t other[3];
    memcpy(other, p->dims, sizeof other);
    if (p->reduced >= 0) other[p->reduced] = 1;
    c->src = dense(F32, 3, p->dims);
    c->second = dense(F32, 3, other);
    c->dst = dense(p->to == QDQ_DTYPE_UNDEF ? F32 : p->to, 3, p->kind == QDQI_MAKE_REDUCTION ? other : p->dims);
    c->request.kind = p->kind;
    c->request.alg = p->alg;
    c->request.alpha = p->alpha;
    c->request.beta = p->beta;
    c->request.axis = 2;
    c->request.flag = true;
}

/* ---- images of floats ---- */

static const struct picture {
    qdqi_make_kind kind;
    qdqi_dnnl_alg alg;
    int64_t channels, size, out;
} pictures[] = {
    {QDQI_MAKE_GROUPNORM, 0, 64, 28, 28},
    {QDQI_MAKE_BATCHNORM, 0, 64, 28, 28},
    {QDQI_MAKE_BATCHNORM, 0, 256, 14, 14},
    {QDQI_MAKE_RESAMPLING, QDQI_DNNL_RESIZE_LINEAR, 64, 14, 28},
    {QDQI_MAKE_RESAMPLING, QDQI_DNNL_RESIZE_NEAREST, 64, 14, 28},
};

static void make_picture(const struct picture *p, choose_case *c) {
    c->src = image(F32, 1, p->channels, p->size, p->size);
    c->dst = image(F32, 1, p->channels, p->out, p->out);
    c->request.kind = p->kind;
    c->request.alg = p->alg;
    c->request.alpha = 1e-5f;
    c->request.groups = 32;
    c->request.flag = p->kind == QDQI_MAKE_GROUPNORM;
}

/* ---- all of them ---- */

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

bool choose_case_at(size_t i, choose_case *out) {
    memset(out, 0, sizeof *out);
    const size_t n_products = 2 * COUNT(products), n_windows = 3 * COUNT(windows), n_poolings = 2 * COUNT(poolings);
    if (i < n_products) {
        make_product(&products[i / 2], i % 2 == 0, out);
    } else if ((i -= n_products) < n_windows) {
        make_window(&windows[i / 3], i % 3 == 0 ? U8 : i % 3 == 1 ? S8 : F32, out);
    } else if ((i -= n_windows) < n_poolings) {
        make_pooling(&poolings[i / 2], i % 2 == 0, out);
    } else if ((i -= n_poolings) < COUNT(passes)) {
        make_pass(&passes[i], out);
    } else if ((i -= COUNT(passes)) < COUNT(pictures)) {
        make_picture(&pictures[i], out);
    } else {
        return false;
    }
    qdqi_request *r = &out->request;
    r->src = &out->src;
    r->second = r->kind == QDQI_MAKE_BINARY || r->kind <= QDQI_MAKE_CONVOLUTION ? &out->second : NULL;
    r->bias = &out->bias;
    r->dst = &out->dst;
    r->attr = &out->attr;
    return true;
}
