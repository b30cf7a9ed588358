#include "kernels/post/post_row.h"

#include <math.h>

static const struct {
    qk_isa isa;
    qk_post_fn *fn;
} rows[] = {
#define QK_POST(level) {QK_ISA_##level, qk_post_##level},
#include "kernels/post/post.def"
#undef QK_POST
};

static bool known(qdq_dtype d) {
    return qk_post_is_integer(d) || d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16;
}

static bool is_sound(const qk_post *p) {
    const bool integers = qk_post_is_integer(p->acc);
    if (!known(p->acc) || !known(p->dst) || p->n_steps > QK_POST_MAX_STEPS) return false;
    if (p->bias != QDQ_DTYPE_UNDEF && !known(p->bias)) return false;
    if (!integers && (p->has_add_common || p->has_col_add || p->has_row_sum || p->bias_first)) return false;
    if (p->bias_first && (p->bias != QDQ_DTYPE_S32 || p->bias_per_row)) return false;
    if (p->dst_has_zp && !qk_post_is_integer(p->dst)) return false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const qk_post_step *s = &p->steps[i];
        if ((uint32_t)s->op > QK_POST_SUM) return false;
        if (qk_post_has_operand(s->op) && !known(s->dtype)) return false;
        if (s->op == QK_POST_SUM && qk_post_bytes(s->dtype) != qk_post_bytes(p->dst)) return false;
    }
    return true;
}

qk_post_fn *qk_post_choose(const qk_post *post, qk_isa *isa_out) {
    if (!is_sound(post)) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}

/* What a bound before rounding is as a byte. */
static uint8_t byte_of(const qk_plain *p, float bound) {
    const float low = p->dst == QDQ_DTYPE_S8 ? -128.0f : 0.0f, high = p->dst == QDQ_DTYPE_S8 ? 127.0f : 255.0f;
    float v = rintf(p->has_shift ? bound + p->shift : bound) + (float)p->zp;
    v = v < low ? low : v > high ? high : v;
    return (uint8_t)(int32_t)v;
}

bool qk_post_bounds(const qk_post *p, float *low_out, float *high_out, bool *is_rounded_out) {
    const qk_post_step *s = p->steps;
    const bool is_relu = p->n_steps > 0 && s->op == QK_POST_RELU && s->alpha == 0.0f;
    const bool is_clip = p->n_steps > 0 && s->op == QK_POST_CLIP;
    const uint32_t n_bounds = is_relu || is_clip;
    *low_out = is_clip ? s->alpha : is_relu ? 0.0f : -INFINITY;
    *high_out = is_clip ? s->beta : INFINITY;
    *is_rounded_out = n_bounds < p->n_steps && p->steps[n_bounds].op == QK_POST_ROUND;
    return n_bounds + *is_rounded_out == p->n_steps;
}

/* The steps and the zero point. */
static bool plain_bytes(const qk_post *p, int32_t zp, qk_plain *out) {
    float low, high;
    bool is_rounded;
    if (!qk_post_bounds(p, &low, &high, &is_rounded) || isnan(low) || isnan(high) || zp < -255 || zp > 255)
        return false;
    out->has_shift = !is_rounded && zp != 0;
    out->shift = out->has_shift ? (float)zp : 0.0f;
    out->zp = is_rounded ? zp : 0;
    out->low = byte_of(out, low);
    out->high = byte_of(out, high);
    return true;
}

bool qk_post_plain(const qk_post *p, const qk_post_args *a, qk_plain *out) {
    const bool to_bytes = p->dst == QDQ_DTYPE_U8 || p->dst == QDQ_DTYPE_S8;
    if (p->has_add_common || p->has_col_add || p->has_row_sum || p->bias_first || p->bias_per_row || p->dst_quantized)
        return false;
    if ((p->acc != QDQ_DTYPE_S32 && p->acc != QDQ_DTYPE_F32) || p->scale == QK_POST_SCALE_ROW) return false;
    if (p->bias != QDQ_DTYPE_UNDEF && p->bias != QDQ_DTYPE_F32) return false;
    *out = (qk_plain){.dst = p->dst,
                      .has_scale = p->scale != QK_POST_SCALE_NONE,
                      .scale_common = a->scale_common,
                      .scale = p->scale == QK_POST_SCALE_COL ? a->scale : NULL,
                      .bias = p->bias == QDQ_DTYPE_F32 ? a->bias : NULL,
                      .dst_data = a->dst,
                      .dst_stride = a->dst_stride};
    if (to_bytes) return p->acc == QDQ_DTYPE_S32 && plain_bytes(p, p->dst_has_zp ? a->dst_zp : 0, out);
    if (p->dst != QDQ_DTYPE_F32 || p->dst_has_zp || p->n_steps > 1) return false;
    out->is_relu = p->n_steps == 1;
    return p->n_steps == 0 || (p->steps[0].op == QK_POST_RELU && p->steps[0].alpha == 0.0f);
}
