/* Division by a scale that many values share, exact to the last bit, without a divide per value.
 *
 * For r = RN(1/s), l = RN((1 - s*r) * r):
 *     q0 = RN(x*r + RN(x*l))            within one unit in the last place of x/s
 *     q  = RN(q0 + (x - q0*s) * r)      = RN(x/s): the remainder is exact in a fused multiply-add, and r is the rounded
 *                                       reciprocal, so the correction step ends on the rounded quotient
 * as long as nothing overflows, and nothing underflows that decides a rounding. qk_divisor_ok is that condition, together
 * with |x| clamped to 2^17 |s|: a larger quotient saturates in every type of at most 16 bits whatever the zero point, and a
 * quotient below 2^-2, where bits may be lost, rounds to zero points only. A NaN becomes 0, hence the zero point. *
 * To bytes, and to less than bytes, not even that is needed but near a tie. With the quotient plus zero point as a fixed-point number of
 * 16 fraction bits,
 *
 *     w = RN(x * RN(2^16/s) + (2^16 zp + 2^15 + 8)), an integer        its upper half is the result, if only
 *     w mod 2^16 is not in 0 ... 15
 *
 * For |zp| <= 255 and a sum within -128.5 ... 255.5, units of w: the reciprocal brings 2 at most, the fused multiply-add 1, rounding
 * to an integer 0.5; the true way rounds, too: the quotient by 1, its sum with the zero point by 1 at most. So the two agree
 * unless the sum lies within 8 of a tie, which is what the lower half tells. Outside of that range both saturate. What does not fit 32
 * bits, and a NaN, converts to 0x80000000, whose lower half is 0: it takes the long way as well. */
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

/* The fixed-point way, for scales and zero points that qk_fixed_ok. */
#define QK_FIXED_ONE  65536.0f
/* Bits of w of which one at least is set when its upper half is the result. */
#define QK_FIXED_SURE 0xfff0

static inline bool qk_fixed_ok(float scale, int32_t zp) {
    float s = fabsf(scale);
    return s >= 0x1p-60f && s <= 0x1p60f && zp >= -255 && zp <= 255;
}

/* What is added to the product; exact. */
static inline float qk_fixed_shift(int32_t zp) {
    return (float)zp * QK_FIXED_ONE + 32776.0f;
}

#endif
