/* Single elements from and to f32, in plain C: what kernels/simd/vec.h does to vectors. For the reference rows. */
#ifndef QK_SIMD_SCALAR_H
#define QK_SIMD_SCALAR_H

#include "qdq/qdq.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t qks_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float qks_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float qks_of_f16(uint16_t h) {
    const uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u)
        return qks_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0));
    if (rest >= 0x400u) return qks_float(sign | ((rest << 13) + (112u << 23)));
    return qks_float(sign | qks_bits((float)rest * 0x1p-24f));
}

static inline uint16_t qks_to_f16(float f) {
    const uint32_t u = qks_bits(f), sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
    uint32_t h;
    if (rest > 0x7f800000u)
        h = 0x7e00u | (rest >> 13 & 0x3ffu);
    else if (rest >= 0x477ff000u) /* 65520 and up */
        h = 0x7c00u;
    else if (rest >= 0x38800000u)
        h = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
    else /* in units of 2^-24, rounded by the addition */
        h = qks_bits(qks_float(rest) + 0.5f) - 0x3f000000u;
    return (uint16_t)(sign | h);
}

static inline uint16_t qks_to_bf16(float f) {
    const uint32_t u = qks_bits(f);
    return (uint16_t)(isnan(f) ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline size_t qks_bytes(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_S32 ? 4 : d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 ? 2 : 1;
}

static inline float qks_load(qdq_dtype d, const void *p, size_t i) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16: return qks_float((uint32_t)((const uint16_t *)p)[i] << 16);
    case QDQ_DTYPE_F16: return qks_of_f16(((const uint16_t *)p)[i]);
    case QDQ_DTYPE_U8: return (float)((const uint8_t *)p)[i];
    case QDQ_DTYPE_S8: return (float)((const int8_t *)p)[i];
    case QDQ_DTYPE_S32: return (float)((const int32_t *)p)[i];
    default: return ((const float *)p)[i];
    }
}

/* To 8 bits: rounded half to even, saturated; a NaN counts as large. */
static inline int32_t qks_round8(qdq_dtype d, float v) {
    const int32_t low = d == QDQ_DTYPE_S8 ? -128 : 0;
    const float r = v < 0x1p23f ? (v > -0x1p23f ? v : -0x1p23f) : 0x1p23f;
    const int32_t q = (int32_t)rintf(r);
    return q < low ? low : q > low + 255 ? low + 255 : q;
}

static inline void qks_store(qdq_dtype d, void *p, size_t i, float v) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16: ((uint16_t *)p)[i] = qks_to_bf16(v); break;
    case QDQ_DTYPE_F16: ((uint16_t *)p)[i] = qks_to_f16(v); break;
    case QDQ_DTYPE_U8: ((uint8_t *)p)[i] = (uint8_t)qks_round8(d, v); break;
    case QDQ_DTYPE_S8: ((int8_t *)p)[i] = (int8_t)qks_round8(d, v); break;
    default: ((float *)p)[i] = v; break;
    }
}

#endif
