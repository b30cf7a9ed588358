/* Elements of float types as f32, in plain C. */
#ifndef QK_CONV_HALF_H
#define QK_CONV_HALF_H

#include "qdq/qdq.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float qk_conv_f16(uint16_t half) {
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)fraction, -24);
    return sign * ldexpf((float)(fraction + 1024), exponent - 25);
}

/* Element i of an array of F32, BF16 or F16. */
static inline float qk_conv_float(const void *data, size_t i, qdq_dtype type) {
    float f;
    if (type == QDQ_DTYPE_F32) {
        memcpy(&f, (const uint8_t *)data + 4 * i, sizeof f);
        return f;
    }
    uint16_t half;
    memcpy(&half, (const uint8_t *)data + 2 * i, sizeof half);
    if (type == QDQ_DTYPE_F16) return qk_conv_f16(half);
    const uint32_t bits = (uint32_t)half << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
