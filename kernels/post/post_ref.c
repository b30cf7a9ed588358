#include "kernels/post/post_row.h"

#include <math.h>

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float of_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 1023u;
    if (exponent == 31) return of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) return copysignf((float)fraction * 0x1p-24f, of_bits(sign | 0x3f800000u));
    return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static uint16_t to_f16(float f) {
    const uint16_t sign = (uint16_t)(bits_of(f) >> 16 & 0x8000u);
    const float a = fabsf(f);
    if (isnan(f)) return sign | 0x7e00u;
    if (a >= 65520.0f) return sign | 0x7c00u;
    if (a < 0x1p-14f) return (uint16_t)(sign | (uint16_t)rintf(a * 0x1p24f)); /* 1024 is the least normal one */
    const uint32_t u = bits_of(a), rounded = u + 0xfffu + (u >> 13 & 1u);
    return (uint16_t)(sign | (uint16_t)((rounded >> 13) - (112u << 10)));
}

static uint16_t to_bf16(float f) {
    const uint32_t u = bits_of(f);
    if (isnan(f)) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static int32_t load_integer(qdq_dtype dtype, const void *data, ptrdiff_t i) {
    if (dtype == QDQ_DTYPE_S8) return ((const int8_t *)data)[i];
    if (dtype == QDQ_DTYPE_U8) return ((const uint8_t *)data)[i];
    int32_t v;
    memcpy(&v, (const char *)data + 4 * i, sizeof v);
    return v;
}

float qk_post_load(qdq_dtype dtype, const void *data, ptrdiff_t i) {
    uint16_t half;
    float f;
    switch ((int)dtype) {
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S32: return (float)load_integer(dtype, data, i);
    case QDQ_DTYPE_BF16: memcpy(&half, (const char *)data + 2 * i, sizeof half); return of_bits((uint32_t)half << 16);
    case QDQ_DTYPE_F16: memcpy(&half, (const char *)data + 2 * i, sizeof half); return of_f16(half);
    default: memcpy(&f, (const char *)data + 4 * i, sizeof f); return f;
    }
}

float qk_post_pow(float v, float a, float b) {
    return a * (b == 2.0f ? v * v : b == 1.0f ? v : b == 0.5f ? sqrtf(v) : b == -1.0f ? 1.0f / v : powf(v, b));
}

/* In f64, so that a result is the rounded one but for rare ties. */
static float transcendental(const qk_post_step *s, double v) {
    const double a = (double)s->alpha;
    switch (s->op) {
    case QK_POST_TANH: return (float)tanh(v);
    case QK_POST_ELU: return v > 0 ? (float)v : (float)(a * expm1(v));
    case QK_POST_SOFT_RELU: return (float)((a * v > 30 ? a * v + log1p(exp(-a * v)) : log1p(exp(a * v))) / a);
    case QK_POST_LOGISTIC: return (float)(1 / (1 + exp(-v)));
    case QK_POST_EXP: return (float)exp(v);
    case QK_POST_LOG: return (float)log(v);
    case QK_POST_GELU_ERF: return (float)(0.5 * v * erfc(-v * 0.70710678118654752440));
    case QK_POST_GELU_TANH: return (float)(v / (1 + exp(-2 * 0.79788456080286535588 * v * (1 + 0.044715 * v * v))));
    case QK_POST_MISH: return (float)(v > 60 ? v : v * tanh(log1p(exp(v))));
    case QK_POST_SWISH: return (float)(v / (1 + exp(-a * v)));
    default: return (float)v;
    }
}

static float clip(float v, float lo, float hi) {
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

static float apply(const qk_post_step *s, float v, float w) {
    const float a = s->alpha, b = s->beta;
    switch (s->op) {
    case QK_POST_RELU: return v > 0.0f ? v : a == 0.0f ? (v < 0.0f ? 0.0f : v) : a * v;
    case QK_POST_SQUARE: return v * v;
    case QK_POST_ABS: return fabsf(v);
    case QK_POST_SQRT: return sqrtf(v);
    case QK_POST_LINEAR: return a * v + b;
    case QK_POST_CLIP: return clip(v, a, b);
    case QK_POST_POW: return qk_post_pow(v, a, b);
    case QK_POST_ROUND: return rintf(v);
    case QK_POST_HARDSWISH: return v * clip(a * v + b, 0.0f, 1.0f);
    case QK_POST_HARDSIGMOID: return clip(a * v + b, 0.0f, 1.0f);
    case QK_POST_ADD: return v + w;
    case QK_POST_SUB: return v - w;
    case QK_POST_MUL: return v * w;
    case QK_POST_DIV: return v / w;
    case QK_POST_MAX: return v > w ? v : w;
    case QK_POST_MIN: return v < w ? v : w;
    case QK_POST_GE: return v >= w ? 1.0f : 0.0f;
    case QK_POST_PRELU: return v > 0.0f ? v : v * w;
    case QK_POST_SUM: return v + a * (w - b);
    case QK_POST_TANH:
    case QK_POST_ELU:
    case QK_POST_SOFT_RELU:
    case QK_POST_LOGISTIC:
    case QK_POST_EXP:
    case QK_POST_LOG:
    case QK_POST_GELU_ERF:
    case QK_POST_GELU_TANH:
    case QK_POST_MISH:
    case QK_POST_SWISH: return transcendental(s, (double)v);
    }
    return v;
}

static void store_integer(qdq_dtype dtype, void *dst, ptrdiff_t i, int64_t v) {
    const int64_t lo = dtype == QDQ_DTYPE_U8 ? 0 : dtype == QDQ_DTYPE_S8 ? INT8_MIN : INT32_MIN;
    const int64_t hi = dtype == QDQ_DTYPE_U8 ? UINT8_MAX : dtype == QDQ_DTYPE_S8 ? INT8_MAX : INT32_MAX;
    v = v < lo ? lo : v > hi ? hi : v;
    const int32_t v32 = (int32_t)v;
    if (dtype == QDQ_DTYPE_S32)
        memcpy((char *)dst + 4 * i, &v32, sizeof v32);
    else
        ((uint8_t *)dst)[i] = (uint8_t)v;
}

static void store(qdq_dtype dtype, void *dst, ptrdiff_t i, float v) {
    uint16_t half;
    switch ((int)dtype) {
    case QDQ_DTYPE_BF16:
        half = to_bf16(v);
        memcpy((char *)dst + 2 * i, &half, sizeof half);
        return;
    case QDQ_DTYPE_F16:
        half = to_f16(v);
        memcpy((char *)dst + 2 * i, &half, sizeof half);
        return;
    case QDQ_DTYPE_F32: memcpy((char *)dst + 4 * i, &v, sizeof v); return;
    default: store_integer(dtype, dst, i, isnan(v) ? INT64_MIN : (int64_t)clip(rintf(v), -0x1p40f, 0x1p40f)); return;
    }
}

/* The part of the program on integers; `at` is where the accumulator is. */
static int32_t integer_part(const qk_post *p, const qk_post_args *a, const void *acc, ptrdiff_t at, size_t row,
                            size_t col) {
    uint32_t i = (uint32_t)load_integer(p->acc, acc, at);
    if (p->has_add_common) i += (uint32_t)a->add_common;
    if (p->has_col_add) i += (uint32_t)a->col_add[col];
    if (p->has_row_sum) i += (uint32_t)a->row_sum[row] * (uint32_t)a->col_mul[col];
    if (!p->bias_first) return (int32_t)i;
    const int64_t sum = (int64_t)(int32_t)i + load_integer(QDQ_DTYPE_S32, a->bias, (ptrdiff_t)col);
    return (int32_t)(sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum);
}

static float operand_at(const qk_post *p, const qk_post_args *a, uint32_t k, size_t row, size_t col) {
    const qk_post_step *s = &p->steps[k];
    if (s->op == QK_POST_SUM) return qk_post_load(s->dtype, a->dst, (ptrdiff_t)row * a->dst_stride + (ptrdiff_t)col);
    const ptrdiff_t at = (ptrdiff_t)row * a->operands[k].row_stride + (s->per_col ? (ptrdiff_t)col : 0);
    return qk_post_load(s->dtype, a->operands[k].data, at);
}

static void element(const qk_post *p, const qk_post_args *a, const void *acc, ptrdiff_t at, size_t row, size_t col) {
    const ptrdiff_t to = (ptrdiff_t)row * a->dst_stride + (ptrdiff_t)col;
    float v;
    if (qk_post_is_integer(p->acc)) {
        const int32_t i = integer_part(p, a, acc, at, row, col);
        if (qk_post_is_exact(p)) {
            store_integer(p->dst, a->dst, to, (int64_t)i + (p->dst_has_zp ? a->dst_zp : 0));
            return;
        }
        v = (float)i;
    } else {
        v = qk_post_load(p->acc, acc, at);
    }
    if (p->scale == QK_POST_SCALE_COMMON) v *= a->scale_common;
    if (p->scale == QK_POST_SCALE_COL) v *= a->scale_common * a->scale[col];
    if (p->scale == QK_POST_SCALE_ROW) v *= a->scale_common * a->scale[row];
    if (p->bias != QDQ_DTYPE_UNDEF && !p->bias_first)
        v += qk_post_load(p->bias, a->bias, (ptrdiff_t)(p->bias_per_row ? row : col));
    for (uint32_t k = 0; k < p->n_steps; k++)
        v = apply(&p->steps[k], v, qk_post_has_operand(p->steps[k].op) ? operand_at(p, a, k, row, col) : 0.0f);
    if (p->dst_quantized) v /= a->dst_scale;
    if (p->dst_has_zp) v += (float)a->dst_zp;
    store(p->dst, a->dst, to, v);
}

void qk_post_ref(const qk_post *post, const qk_post_args *args, const void *acc, size_t acc_stride, size_t row,
                 size_t n_rows, size_t col, size_t n_cols) {
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < n_cols; c++)
            element(post, args, acc, (ptrdiff_t)(r * acc_stride + c), row + r, col + c);
}
