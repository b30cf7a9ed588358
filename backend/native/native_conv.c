/* Convolutions: kernels/conv for the sums, kernels/post for what becomes of them. Source and destination are channels-last,
 * their pixels one index; where images have gaps between them, or an operand of a post-op differs from image to image, each
 * image is a run of its own. */
#include "kernels/conv/conv.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "native/native_post.h"

#include <stdio.h>
#include <string.h>

#define WORD "convolution"

enum { GRAIN_MACS = 200000 }; /* below, a second thread costs more than it brings */

typedef struct conv_impl {
    qk_conv conv;
    qdqi_native_post post;
    /* The same without an integer bias, which is then one of the terms of the sums: where no sum can leave s32. */
    bool can_fold_bias;
    qk_post folded;
    qk_post_fn *folded_fn;
    bool has_scale_step; /* the first post-op was a factor: it is the scale */
    uint32_t scale_step; /* index of its buffer */
    qdqi_native_attr_args args;
    uint32_t src, weights, bias, dst, scratch;
    int32_t n_spatial;
    bool grouped;                   /* the weights have a dim of groups */
    int64_t n_images, image_stride; /* runs, and bytes of the source from one to the next */
    size_t terms_bytes, thread_bytes;
    int n_threads;     /* that have scratch */
    int64_t macs;      /* of a run */
    int32_t low, high; /* of the source's zero point */
} conv_impl;

/* ---- running ---- */

typedef struct job {
    const conv_impl *impl;
    const qk_conv_run *run;
    char *scratch;
    int n_parts;
} job;

typedef struct results {
    const qk_post *post;
    qk_post_fn *fn;
    qk_post_args args;
} results;

static void finish(void *arg, void *sums, size_t stride, int64_t first, size_t n_pixels, int64_t channel,
                   size_t n_channels) {
    const results *r = arg;
    r->fn(r->post, &r->args, sums, stride, (size_t)first, n_pixels, (size_t)channel, n_channels);
}

static void run_part(int i, void *arg) {
    const job *j = arg;
    const size_t all = j->impl->conv.n_tasks, n = (size_t)j->n_parts, part = (size_t)i;
    const size_t first = all / n * part + (all % n < part ? all % n : part);
    const size_t count = all / n + (part < all % n);
    qk_conv_run_tasks(&j->impl->conv, j->run, first, count, j->scratch + part * j->impl->thread_bytes);
}

/* Products are below 2^30 where can_fold_bias says so: then so small a bias does not lead a sum out of s32. */
static bool is_small(const int32_t *bias, int64_t n) {
    uint32_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all |= (uint32_t)(bias[i] < 0 ? ~bias[i] : bias[i]);
    return all < (uint32_t)1 << 30;
}

static void bind_scales(const conv_impl *impl, void *const *bufs, qk_post_args *args) {
    const bool per_channel = impl->post.post.scale == QK_POST_SCALE_COL;
    if (impl->has_scale_step) {
        args->scale_common = per_channel ? 1.0f : *(const float *)bufs[impl->scale_step];
        if (per_channel) args->scale = bufs[impl->scale_step];
        return;
    }
    args->scale_common = qdqi_native_scale(bufs, impl->args.scale_src);
    if (per_channel)
        args->scale = bufs[impl->args.scale_weights];
    else
        args->scale_common *= qdqi_native_scale(bufs, impl->args.scale_weights);
}

static qdq_status run(const void *opaque, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    const conv_impl *impl = opaque;
    const qk_conv *c = &impl->conv;
    const int32_t src_zp = qdqi_native_zp(bufs, impl->args.zp_src);
    if (src_zp < impl->low || src_zp > impl->high)
        return qdqi_fail(err, QDQ_E_BAD_ZERO_POINT,
                         "native " WORD ": zero point of the source is %d, expected %d to %d", src_zp, impl->low,
                         impl->high);
    char *scratch = bufs[impl->scratch];
    const void *bias = impl->bias == QDQI_NO_ARG ? NULL : bufs[impl->bias];
    const bool fold = impl->can_fold_bias && is_small(bias, c->groups * c->oc);
    qk_conv_run r = {.packed = bufs[impl->weights], .terms = scratch, .src_zp = src_zp, .finish = finish};
    if (!c->is_float) {
        const int32_t *zps = impl->args.zp_weights == QDQI_NO_ARG ? NULL : bufs[impl->args.zp_weights];
        r.use_weights_zp =
            qk_conv_terms(c, r.packed, src_zp, zps, (size_t)impl->args.n_zp_weights, fold ? bias : NULL, scratch);
    }
    results res = {.post = fold ? &impl->folded : &impl->post.post, .fn = fold ? impl->folded_fn : impl->post.fn};
    r.arg = &res;
    int n_parts =
        qdqi_threads_for(engine, impl->macs, c->is_depthwise ? GRAIN_MACS / 8 : GRAIN_MACS); /* no products of panels */
    if (n_parts > impl->n_threads) n_parts = impl->n_threads;
    if ((size_t)n_parts > c->n_tasks) n_parts = c->n_tasks < 1 ? 1 : (int)c->n_tasks;
    const job j = {impl, &r, scratch + impl->terms_bytes, n_parts};
    for (int64_t image = 0; image < impl->n_images; image++) {
        const int64_t outer[QDQ_MAX_NDIMS] = {image};
        qdqi_native_post_bind(&impl->post, &impl->args, impl->dst, bufs, outer, &res.args);
        bind_scales(impl, bufs, &res.args);
        res.args.bias = bias;
        r.src = (const char *)bufs[impl->src] + image * impl->image_stride;
        qk_plain plain;
        const bool is_plain = !r.use_weights_zp && qk_post_plain(res.post, &res.args, &plain);
        r.plain = is_plain && qk_conv_plain(c, &plain, scratch) ? &plain : NULL;
        qdqi_parallel(engine, n_parts, run_part, (void *)(uintptr_t)&j);
    }
    return QDQ_OK;
}

static qdq_status pack(const void *opaque, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data, void *dst,
                       qdq_error *err) {
    (void)arg;
    (void)err;
    const conv_impl *impl = opaque;
    qk_conv_weights w = {.data = src_data};
    const int64_t *strides = src->strides;
    if (impl->grouped) w.g_stride = *strides++;
    w.o_stride = strides[0];
    w.i_stride = strides[1];
    for (int32_t i = 0; i < impl->n_spatial; i++)
        w.k_stride[3 - impl->n_spatial + i] = strides[2 + i];
    qk_conv_pack(&impl->conv, &w, dst);
    return QDQ_OK;
}

/* ---- the request ---- */

/* Axes of the request from the last to the first are w, h, d of the kernel. */
static void set_axes(const qdqi_dnnl_conv *p, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                     const qdqi_dnnl_md *dst, qk_conv *c) {
    const int32_t n = p->n_spatial, first = weights->ndims - n;
    for (int a = 0; a < 3; a++) {
        const int32_t i = a - (3 - n);
        const bool used = i >= 0;
        c->in[a] = used ? src->dims[2 + i] : 1;
        c->out[a] = used ? dst->dims[2 + i] : 1;
        c->kernel[a] = used ? weights->dims[first + i] : 1;
        c->stride[a] = used ? p->strides[i] : 1;
        c->dilation[a] = used ? p->dilations[i] + 1 : 1;
        c->pad_begin[a] = used ? p->pads_begin[i] : 0;
    }
}

/* What the extents must add up to: outputs as many as windows (inputs as many as windows of the transposed one). */
static bool extents_fit(const qdqi_dnnl_conv *p, const qk_conv *c) {
    for (int32_t i = 0; i < p->n_spatial; i++) {
        const int a = (int)(3 - p->n_spatial + i);
        const int64_t few = p->transposed ? c->in[a] : c->out[a], many = p->transposed ? c->out[a] : c->in[a];
        int64_t window, padded;
        if (c->stride[a] < 1 || c->dilation[a] < 1 || p->pads_begin[i] < 0 ||
            __builtin_mul_overflow(c->kernel[a] - 1, c->dilation[a], &window) ||
            __builtin_add_overflow(many, p->pads_begin[i], &padded) ||
            __builtin_add_overflow(padded, p->pads_end[i], &padded) ||
            few != (padded - window - 1) / c->stride[a] + 1 || padded <= window)
            return false;
    }
    return true;
}

/* Channels last, where the request leaves it open. */
static void resolve_any(qdqi_dnnl_md *md) {
    if (!md->any || md->ndims < 3) return;
    int64_t stride = md->dims[1];
    md->any = false;
    md->strides[1] = 1;
    for (int32_t d = md->ndims - 1; d != 1; d = d == 2 ? 0 : d - 1) {
        md->strides[d] = stride;
        if (__builtin_mul_overflow(stride, md->dims[d], &stride)) md->any = true; /* refused with its size */
        if (d == 0) break;
    }
}

/* Whether the source's pixels are one index over the spatial dims, and over the images as well. */
static bool pixels_of(const qdqi_dnnl_md *src, int64_t *stride_out, bool *images_too) {
    int64_t stride = 0, span = 0;
    if (src->dims[1] != 1 && src->strides[1] != 1) return false;
    for (int32_t d = src->ndims - 1; d >= 2; d--) {
        if (src->dims[d] == 1) continue;
        if (stride == 0)
            stride = src->strides[d];
        else if (src->strides[d] != span)
            return false;
        span = src->strides[d] * src->dims[d];
    }
    *images_too = src->dims[0] == 1 || stride == 0 || src->strides[0] == span;
    if (stride == 0) stride = src->dims[0] == 1 ? src->dims[1] : src->strides[0];
    *stride_out = stride;
    return stride >= src->dims[1];
}

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static qdq_status check(const qdqi_dnnl_conv *p, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                        const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdq_error *err) {
    const bool ints = is_x8(src->dtype) && is_x8(weights->dtype);
    if (!ints && (!qdqi_dtype_is_float(src->dtype) || weights->dtype != src->dtype))
        return qdqi_native_refuse(err, WORD, "dtype");
    if (p->n_spatial < 1 || p->n_spatial > 3 || src->ndims != p->n_spatial + 2 || dst->ndims != src->ndims ||
        (weights->ndims != src->ndims && weights->ndims != src->ndims + 1))
        return qdqi_native_refuse(err, WORD, "rank");
    const int32_t grouped = weights->ndims - src->ndims;
    const int64_t groups = grouped ? weights->dims[0] : 1, oc = weights->dims[grouped], ic = weights->dims[grouped + 1];
    if (src->dims[1] % groups != 0 || src->dims[1] / groups != ic || dst->dims[1] % groups != 0 ||
        dst->dims[1] / groups != oc || src->dims[0] != dst->dims[0])
        return qdqi_native_refuse(err, WORD, "shape");
    if (bias->ndims != 0 && (bias->ndims != 1 || bias->dims[0] != dst->dims[1]))
        return qdqi_native_refuse(err, WORD, "bias_shape");
    if (attr == NULL) return QDQ_OK;
    const qdqi_dnnl_quant *s = &attr->src, *w = &attr->weights;
    if (attr->src1.has_scale || attr->src1.has_zp) return qdqi_native_refuse(err, WORD, "operands");
    if ((s->has_scale && s->scale_mask != 0) || (s->has_zp && s->zp_mask != 0))
        return qdqi_native_refuse(err, WORD, "src_not_per_tensor");
    const int all = grouped ? 3 : 1; /* the dims that hold output channels */
    if ((w->has_scale && w->scale_mask != 0 && w->scale_mask != all) ||
        (w->has_zp && w->zp_mask != 0 && w->zp_mask != all) || w->group[0] > 0)
        return qdqi_native_refuse(err, WORD, "weights_axis_not_output_channel");
    const qdq_dtype f32 = QDQ_DTYPE_F32, s32 = QDQ_DTYPE_S32, unsaid = QDQ_DTYPE_UNDEF;
    if ((s->has_scale && s->scale_dtype != f32 && s->scale_dtype != unsaid) ||
        (w->has_scale && w->scale_dtype != f32 && w->scale_dtype != unsaid) ||
        (s->has_zp && s->zp_dtype != s32 && s->zp_dtype != unsaid) ||
        (w->has_zp && w->zp_dtype != s32 && w->zp_dtype != unsaid) || (!ints && (s->has_zp || w->has_zp)))
        return qdqi_native_refuse(err, WORD, "dtype");
    return QDQ_OK;
}

/* The post program over all images at once; per image when an operand, or a gap, has it so. */
static qdq_status plan_post(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *dst, bool *images_too,
                            qdqi_native_post *post, qdq_error *err) {
    qdqi_native_matrix m = {.col_dim = 1};
    m.row_dims[m.n_row_dims++] = 0;
    for (int32_t d = 2; d < dst->ndims; d++)
        m.row_dims[m.n_row_dims++] = d;
    if (*images_too && qdqi_native_post_plan(attr, dst, &m, WORD, post, NULL) == QDQ_OK) return QDQ_OK;
    *images_too = false;
    memmove(m.row_dims, m.row_dims + 1, (size_t)--m.n_row_dims * sizeof m.row_dims[0]);
    return qdqi_native_post_plan(attr, dst, &m, WORD, post, err);
}

/* A factor per channel, or one for all, right behind the sums. */
static bool is_scale(const qdqi_native_post *p) {
    const qk_post_step *s = &p->post.steps[0];
    bool same = p->post.n_steps > 0 && s->op == QK_POST_MUL && s->dtype == QDQ_DTYPE_F32 && p->operands[0].row == 0;
    for (int32_t d = 0; same && d < QDQ_MAX_NDIMS; d++)
        same = p->operands[0].outer[d] == 0;
    return same;
}

/* The part of the program that is about accumulators. */
static qdq_status finish_post(conv_impl *made, bool has_scale, bool per_channel, qdq_dtype bias, qdq_error *err) {
    qdqi_native_post *p = &made->post;
    qk_post *post = &p->post;
    const qk_conv *c = &made->conv;
    post->acc = c->is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32;
    post->bias = bias;
    post->bias_first = bias == QDQ_DTYPE_S32 && !c->is_float && !has_scale;
    if (has_scale) post->scale = per_channel ? QK_POST_SCALE_COL : QK_POST_SCALE_COMMON;
    if (!has_scale && !c->is_float && (bias == QDQ_DTYPE_UNDEF || post->bias_first) && is_scale(p)) {
        made->has_scale_step = true;
        post->scale = post->steps[0].per_col ? QK_POST_SCALE_COL : QK_POST_SCALE_COMMON;
        post->n_steps--;
        memmove(post->steps, post->steps + 1, post->n_steps * sizeof post->steps[0]);
        memmove(p->operands, p->operands + 1, (QDQI_DNNL_MAX_POSTS - 1) * sizeof p->operands[0]);
    }
    QDQI_TRY(qdqi_native_post_choose(p, WORD, err));
    const int64_t k = c->ic * c->kernel[0] * c->kernel[1] * c->kernel[2];
    made->can_fold_bias = post->bias_first && k <= ((int64_t)1 << 30) / (255 * 255);
    made->folded = *post;
    made->folded.bias = QDQ_DTYPE_UNDEF;
    made->folded.bias_first = false;
    made->folded_fn = qk_post_choose(&made->folded, NULL);
    return QDQ_OK;
}

/* What the packed bytes depend on, besides the weights. */
typedef struct pack_key {
    char name[24];
    int64_t groups, ic, oc, kernel[3], merged;
    size_t panel_cols, n_panels, n_taps, tap_k;
    int32_t isa, src, weights, is_fused, has_zp;
} pack_key;

static uint32_t add_weights(qdqi_native_prim *prim, const qk_conv *c) {
    pack_key key;
    memset(&key, 0, sizeof key); /* padding bytes are part of it */
    memcpy(key.name, "native convolution 1", sizeof "native convolution 1");
    key.groups = c->groups;
    key.ic = c->ic;
    key.oc = c->oc;
    memcpy(key.kernel, c->kernel, sizeof key.kernel);
    key.merged = c->merged;
    key.panel_cols = c->panel_cols;
    key.n_panels = c->n_panels;
    key.n_taps = c->n_taps;
    key.tap_k = c->tap_k;
    key.isa = (int32_t)qk_conv_isa(c);
    key.src = c->is_float;
    key.weights = (int32_t)c->weights;
    key.is_fused = c->is_fused;
    key.has_zp = c->has_weights_zp;
    return qdqi_native_add_packed(prim, QDQI_DNNL_WEIGHTS, c->packed_bytes, &key, sizeof key);
}

static qdq_status make(const conv_impl *made, const qdqi_dnnl_md mds[4], const qdqi_dnnl_attr *attr,
                       qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run, .pack = pack};
    char kernel[48];
    const qk_conv *c = &made->conv;
    snprintf(kernel, sizeof kernel, "%s:%s", c->is_depthwise ? "depthwise" : "panels", qk_isa_name(qk_conv_isa(c)));
    conv_impl *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, WORD, kernel, sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    *impl = *made;
    const qdqi_dnnl_md *src = &mds[0], *weights = &mds[1], *bias = &mds[2], *dst = &mds[3];
    impl->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, src);
    impl->weights = add_weights(prim, c);
    impl->bias =
        bias->ndims == 0 ? QDQI_NO_ARG : qdqi_native_add_vector(prim, QDQI_DNNL_BIAS, bias->dims[0], bias->dtype);
    impl->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, dst);
    qdqi_native_add_attr(prim, attr, src, NULL, weights, dst, &impl->args);
    if (impl->has_scale_step) {
        uint32_t *post = impl->args.post;
        impl->scale_step = post[0];
        memmove(post, post + 1, (QDQI_DNNL_MAX_POSTS - 1) * sizeof *post);
    }
    impl->scratch = qdqi_native_add_scratch(prim, impl->terms_bytes + impl->thread_bytes * (size_t)impl->n_threads);
    return qdqi_native_finish(prim, out, err);
}

qdq_status qdqi_native_convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                                   const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr,
                                   qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_md mds[4] = {*src, *weights, bias == NULL ? (qdqi_dnnl_md){0} : *bias, *dst}, asked;
    resolve_any(&mds[0]);
    resolve_any(&mds[3]);
    for (int i = 0; i < 4; i++) {
        if (i == 2 && mds[i].ndims == 0) continue;
        asked = mds[i];
        QDQI_TRY(qdqi_native_layout(&asked, WORD, &mds[i], err));
    }
    src = &mds[0], weights = &mds[1], bias = &mds[2], dst = &mds[3];
    QDQI_TRY(check(conv, src, weights, bias, dst, attr, err));
    conv_impl made = {.n_spatial = conv->n_spatial, .grouped = weights->ndims > src->ndims};
    qk_conv *c = &made.conv;
    c->src = src->dtype;
    c->weights = weights->dtype;
    c->transposed = conv->transposed;
    c->has_weights_zp = attr != NULL && attr->weights.has_zp;
    c->groups = made.grouped ? weights->dims[0] : 1;
    c->oc = weights->dims[made.grouped];
    c->ic = weights->dims[made.grouped + 1];
    set_axes(conv, src, weights, dst, c);
    if (!extents_fit(conv, c)) return qdqi_native_refuse(err, WORD, "shape");
    bool images_too;
    if (!pixels_of(src, &c->src_stride, &images_too)) return qdqi_native_refuse(err, WORD, "layout");
    QDQI_TRY(plan_post(attr, dst, &images_too, &made.post, err));
    c->n = images_too ? src->dims[0] : 1;
    made.n_images = images_too ? 1 : src->dims[0];
    made.image_stride = src->strides[0] * (int64_t)(qdq_dtype_bits(src->dtype) / 8);
    if (!qk_conv_init(c)) return qdqi_native_refuse(err, WORD, "size");

    const bool per_channel = attr != NULL && attr->weights.has_scale && attr->weights.scale_mask != 0;
    const bool has_scale = attr != NULL && (attr->src.has_scale || attr->weights.has_scale);
    QDQI_TRY(finish_post(&made, has_scale, per_channel, bias->ndims == 0 ? QDQ_DTYPE_UNDEF : bias->dtype, err));

    made.low = c->src == QDQ_DTYPE_S8 ? -128 : 0;
    made.high = c->src == QDQ_DTYPE_S8 ? 127 : 255;
    made.terms_bytes = (c->terms_bytes + 63) / 64 * 64;
    made.thread_bytes = (c->scratch_bytes + 63) / 64 * 64;
    made.n_threads = qdqi_threads_now();
    const double macs = (double)qdqi_native_n_elems(dst) / (double)made.n_images * (double)c->ic *
                        (double)(c->kernel[0] * c->kernel[1] * c->kernel[2]);
    made.macs = macs > 1e18 ? (int64_t)1e18 : (int64_t)macs;
    size_t scratch;
    if (__builtin_mul_overflow(made.thread_bytes, (size_t)made.n_threads, &scratch) ||
        __builtin_add_overflow(scratch, made.terms_bytes, &scratch))
        return qdqi_native_refuse(err, WORD, "size");
    return make(&made, mds, attr, out, err);
}
