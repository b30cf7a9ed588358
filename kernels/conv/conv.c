#include "kernels/conv/conv_half.h"
#include "kernels/conv/conv_impl.h"

#include <math.h>

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}
static bool is_float(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16;
}

/* Products of a few extents: below 2^62, so that bytes of them can be reckoned with. */
static bool fits(const int64_t *extents, size_t n) {
    int64_t all = 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(all, qk_larger(extents[i], 1), &all) || all > (int64_t)1 << 58) return false;
    return true;
}

static bool axis_ok(const qk_conv *c, int a) {
    const int64_t limit = 1 << 30;
    return c->in[a] >= 0 && c->out[a] >= 0 && c->kernel[a] >= 1 && c->stride[a] >= 1 && c->dilation[a] >= 1 &&
           c->in[a] <= limit && c->out[a] <= limit && c->kernel[a] <= limit && c->stride[a] <= limit &&
           c->dilation[a] <= limit && c->pad_begin[a] >= -limit && c->pad_begin[a] <= limit &&
           c->kernel[a] - 1 <= limit / c->dilation[a] && c->out[a] <= ((int64_t)1 << 40) / c->stride[a];
}

/* terms: what is added to the slots | zero points of their weights | their scales and biases, for results */
static size_t end_at(const qk_conv *c) {
    return c->is_float ? 0 : c->n_slots * (qk_conv_sums_pixels(c) ? 8 : 4);
}

bool qk_conv_init(qk_conv *c) {
    c->is_float = is_float(c->src);
    if (c->is_float ? c->weights != c->src : !is_x8(c->src) || !is_x8(c->weights)) return false;
    if (c->n < 0 || c->groups < 1 || c->ic < 1 || c->oc < 1) return false;
    for (int a = 0; a < 3; a++)
        if (!axis_ok(c, a)) return false;
    const int64_t weights[] = {c->groups, c->ic, c->oc + 64, c->kernel[0], c->kernel[1], c->kernel[2] + 64};
    const int64_t pixels[] = {c->n, c->in[0], c->in[1], c->in[2], c->src_stride};
    const int64_t results[] = {c->n, c->out[0], c->out[1], c->out[2], c->groups, c->oc};
    if (!fits(weights, 6) || !fits(pixels, 5) || !fits(results, 6) || c->src_stride < c->groups * c->ic) return false;
    c->merged = 1;
    c->g = c->groups;
    c->k = c->ic;
    c->m = c->oc;
    const bool is_narrow = (c->ic == 4 || c->ic == 8) && c->groups > 1 && !c->is_float;
    c->is_depthwise = c->ic == c->oc && (c->ic == 1 || is_narrow) && !c->transposed;
    if (!(c->is_depthwise ? qk_conv_depthwise_init : qk_conv_panels_init)(c)) return false;
    c->terms_bytes = end_at(c) + 8 * c->n_slots;
    return true;
}

qk_isa qk_conv_isa(const qk_conv *c) {
    return *(const qk_isa *)c->row; /* every kind of row starts with it */
}

int32_t qk_conv_weight(const qk_conv *c, const qk_conv_weights *w, int64_t at) {
    return (int8_t)(((const uint8_t *)w->data)[at] ^ qk_conv_weights_flip(c));
}

float qk_conv_weight_f32(const qk_conv *c, const qk_conv_weights *w, int64_t at) {
    return qk_conv_float(w->data, (size_t)at, c->weights);
}

size_t qk_conv_slot(const qk_conv *c, int64_t channel) {
    const size_t in_group = (size_t)(channel % c->m), group = (size_t)(channel / c->m);
    if (c->is_depthwise) return (size_t)channel;
    return group * (c->n_slots / (size_t)c->g) + in_group;
}

void qk_conv_pack(const qk_conv *c, const qk_conv_weights *w, void *packed) {
    (c->is_depthwise ? qk_conv_depthwise_pack : qk_conv_panels_pack)(c, w, packed);
}

/* Σ (x - zx)(w - zw) = Σ x w - zx Σ w + n zx zw - zw Σ x: all but the first and the last, and zw for the last. Padding counts
 * as elements equal to zx. */
bool qk_conv_terms(const qk_conv *c, const void *packed, int32_t src_zp, const int32_t *weights_zps, size_t n_zps,
                   const int32_t *bias, void *terms) {
    const int32_t *totals = packed;
    int32_t *add = terms, *zps = add + c->n_slots;
    const uint32_t zx = (uint32_t)src_zp + qk_conv_src_flip(c);
    const uint32_t n = (uint32_t)(c->kernel[0] * c->kernel[1] * c->kernel[2] * c->ic);
    bool any = false;
    for (size_t i = 0; i < c->n_slots; i++)
        add[i] = (int32_t)(0u - zx * (uint32_t)totals[i]);
    for (int64_t ch = 0; bias != NULL && ch < c->groups * c->oc; ch++) {
        const size_t slot = qk_conv_slot(c, ch);
        add[slot] = (int32_t)((uint32_t)add[slot] + (uint32_t)bias[ch]);
    }
    if (!qk_conv_sums_pixels(c)) return false;
    memset(zps, 0, c->n_slots * sizeof *zps);
    for (int64_t ch = 0; ch < c->groups * c->oc; ch++) {
        const int32_t given = weights_zps == NULL ? 0 : weights_zps[n_zps == 1 ? 0 : ch];
        const uint32_t zw = (uint32_t)given - qk_conv_weights_flip(c);
        const size_t slot = qk_conv_slot(c, ch);
        zps[slot] = (int32_t)zw;
        add[slot] = (int32_t)((uint32_t)add[slot] + n * zx * zw);
        any = any || zw != 0;
    }
    return any;
}

/* 2^31 times a scale, a bias and a zero point added stay below 2^30. A NaN is not safe. */
static bool is_safe(float scale, float bias) {
    return fabsf(scale) <= 0.25f && fabsf(bias) <= 0x1p28f;
}

/* For the channels of a group from `ch` on, in order. False: one is not safe. */
static bool plain_group(const qk_conv *c, const qk_plain *p, int64_t ch, float *scales, float *biases) {
    bool safe = true;
    for (int64_t i = 0; i < c->m; i++) { /* adding -0 changes nothing */
        scales[i] = p->scale == NULL ? p->scale_common : p->scale_common * p->scale[ch + i];
        biases[i] = p->bias == NULL ? -0.0f : p->bias[ch + i];
        safe &= is_safe(scales[i], biases[i]);
    }
    return safe;
}

bool qk_conv_plain(const qk_conv *c, const qk_plain *p, void *terms) {
    const bool to_bytes = p->dst == QDQ_DTYPE_U8 || p->dst == QDQ_DTYPE_S8;
    if (!c->ends || (!to_bytes && p->dst != QDQ_DTYPE_F32) || (to_bytes && (c->is_float || !p->has_scale)))
        return false;
    float *scales = (float *)(void *)((char *)terms + end_at(c)), *biases = scales + c->n_slots;
    memset(scales, 0, c->n_slots * 2 * sizeof *scales);
    bool safe = is_safe(0.0f, p->shift);
    for (int64_t g = 0; g < c->g; g++) {
        const size_t slot = qk_conv_slot(c, g * c->m);
        safe &= plain_group(c, p, g * c->m, scales + slot, biases + slot);
    }
    return safe || !to_bytes;
}

qk_conv_end qk_conv_end_of(const qk_conv *c, const qk_conv_run *r, size_t slot, int64_t channel, size_t n_cols,
                           int64_t pixel) {
    const qk_plain *p = r->plain;
    const float *scales = (const float *)(const void *)((const char *)r->terms + end_at(c));
    const ptrdiff_t bytes = p->dst == QDQ_DTYPE_F32 ? 4 : 1;
    const bool is_signed = p->dst == QDQ_DTYPE_S8;
    /* a lone pixel may have any stride, but loops end at the address behind the last one */
    const ptrdiff_t stride = p->dst_stride != 0 ? p->dst_stride : c->groups * c->oc;
    return (qk_conv_end){.scale = p->has_scale ? scales + slot : NULL,
                         .bias = p->bias != NULL || bytes == 1 ? scales + c->n_slots + slot : NULL,
                         .shift = p->shift,
                         .has_shift = p->has_shift,
                         .is_relu = p->is_relu,
                         .is_signed = is_signed,
                         .is_bare = bytes == 4 ? !p->has_scale && p->bias != NULL
                                               : !p->has_shift && p->zp == 0 && p->low == (is_signed ? 0x80 : 0) &&
                                                     p->high == (is_signed ? 0x7f : 0xff),
                         .floor = p->is_relu ? 0.0f : -INFINITY,
                         .is_floats = p->dst == QDQ_DTYPE_F32,
                         .zp = (int16_t)p->zp,
                         .low = p->low,
                         .high = p->high,
                         .n_cols = n_cols,
                         .dst =
                             (uint8_t *)p->dst_data + ((ptrdiff_t)pixel * p->dst_stride + (ptrdiff_t)channel) * bytes,
                         .step = stride * bytes};
}

void qk_conv_run_tasks(const qk_conv *c, const qk_conv_run *r, size_t first, size_t n, void *scratch) {
    (c->is_depthwise ? qk_conv_depthwise_run : qk_conv_panels_run)(c, r, first, n, scratch);
}
