#include "kernels/tf/tf_row.h"

#include <math.h>

typedef struct range {
    double lo, hi;
} range;

static range range_of(qdq_dtype stored) {
    const double size = ldexp(1.0, (int)(8 * qk_tf_bytes(stored))), lo = qk_tf_signed(stored) ? -size / 2.0 : 0.0;
    return (range){lo, lo + size - 1.0};
}

static float clamp(float v, float lo, float hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static float quantized(const qk_tf *tf, float x, float lowest) {
    x = isnan(x) ? 0.0f : x;
    switch (tf->form) {
    case QK_TF_OFFSET: {
        const float t = (clamp(x, tf->low, tf->high) - tf->low) * tf->factor;
        return qk_tf_signed(tf->stored) ? roundf(t - tf->half) : truncf(t + 0.5f);
    }
    case QK_TF_STEPS: return clamp(roundf(x * tf->factor) - tf->base, lowest, tf->top);
    case QK_TF_SCALED: break;
    }
    x = clamp(x, tf->low, tf->high) * tf->factor;
    return tf->even ? rintf(x) : roundf(x);
}

static void quantize(const qk_tf *tf, const float *src, void *dst, size_t n) {
    const range r = range_of(tf->stored);
    for (size_t i = 0; i < n; i++) {
        const double q = (double)quantized(tf, src[i], (float)r.lo);
        const int64_t v = (int64_t)(q < r.lo ? r.lo : q > r.hi ? r.hi : q);
        switch (qk_tf_bytes(tf->stored)) {
        case 1: ((uint8_t *)dst)[i] = (uint8_t)v; break;
        case 2: ((uint16_t *)dst)[i] = (uint16_t)v; break;
        default: ((int32_t *)dst)[i] = (int32_t)v; break;
        }
    }
}

static float stored_at(qdq_dtype stored, const void *src, size_t i) {
    switch ((int)stored) {
    case QDQ_DTYPE_U8: return (float)((const uint8_t *)src)[i];
    case QDQ_DTYPE_S8: return (float)((const int8_t *)src)[i];
    case QDQ_DTYPE_U16: return (float)((const uint16_t *)src)[i];
    case QDQ_DTYPE_S16: return (float)((const int16_t *)src)[i];
    default: return (float)((const int32_t *)src)[i];
    }
}

static void dequantize(const qk_tf *tf, const void *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (stored_at(tf->stored, src, i) + tf->half) * tf->factor + tf->base;
}

const qk_tf_row qk_tf_row_ref = {quantize, dequantize, QK_ISA_ref};
