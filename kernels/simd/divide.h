/* Division by a scale that many values share, exact to the last bit, without a divide per value.
 *
 * For r = RN(1/s), l = RN((1 - s*r) * r):
 *     q0 = RN(x*r + RN(x*l))            within one unit in the last place of x/s
 *     q  = RN(q0 + (x - q0*s) * r)      = RN(x/s): the remainder is exact in a fused multiply-add, and r is the rounded
 *                                       reciprocal, so the correction step ends on the rounded quotient
 * as long as nothing overflows, and nothing underflows that decides a rounding. qk_divisor_ok is that condition, together
 * with |x| clamped to 2^17 |s|: a larger quotient saturates in every type of at most 16 bits whatever the zero point, and a
 * quotient below 2^-2, where bits may be lost, rounds to zero points only. A NaN becomes 0, hence the zero point. */
#ifndef QK_SIMD_DIVIDE_H
#define QK_SIMD_DIVIDE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define QK_QUOTIENT_LIMIT 131072.0f

/* May values be quantized with this scale and zero point in the vector way? False for NaN, infinite, zero and extreme scales. */
static inline bool qk_divisor_ok(float scale, int32_t zp) {
    float s = fabsf(scale);
    return s >= 0x1p-60f && s <= 0x1p60f && zp >= -65536 && zp <= 65536;
}

#endif
