/* Division by a scale in two operations, for the scales where that is proven exact.
 *
 * With r = RN(1/s) and l close to 1/s - r, q = RN(x*r + RN(x*l)) is x/s but for a relative error of 2^-45 before its rounding: l itself
 * is wrong by 2^-23 of it, and by 2^-22 more where it is moved by two units, RN(x*l) by 2^-24. So q is RN(x/s) unless x/s lies within
 * 2^-45 of the middle of two neighbouring floats. Let X and S be the integers of 24 bits that are the significands. For X >= S
 * middles are odd multiples of 2^-24, and that near to one means X * 2^24 = S * odd + d with |d| < 2^-45 * X * 2^24 <= 8; for X < S
 * they are odd multiples of 2^-25, and X * 2^25 = S * odd + d with |d| < 16. Those few X are found by division modulo S, and tried. Where
 * one fails, another l does: for one scale in a thousand none of five.
 *
 * As everywhere in divide.h, powers of two change nothing as long as nothing overflows or underflows that decides a result. */
#ifndef QK_SIMD_TWO_STEPS_H
#define QK_SIMD_TWO_STEPS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Half of a modulo an odd m. */
static inline uint32_t qk_half_modulo(uint32_t a, uint32_t m) {
    return (a & 1u ? a + m : a) / 2;
}

/* The significands that are to be tried for one with t zeros at its end and the odd part m: at most 63 into `out`. */
static inline int qk_two_steps_trials(uint32_t significand, uint32_t m, int t, float out[64]) {
    const uint32_t least = 1u << 23, above = 1u << 24;
    uint32_t inverse = 1; /* of 2^(24-t) modulo m, then of 2^(25-t) */
    int n = 0;
    for (int k = t; k < 24; k++)
        inverse = qk_half_modulo(inverse, m);
    for (int lower = 0; lower < 2; lower++) {
        const uint32_t from = lower ? least : significand, to = lower ? significand : above;
        const uint32_t most = lower ? 16 : 8, twice = (uint32_t)(2 * (uint64_t)inverse % m);
        uint32_t x = inverse % m;
        for (uint32_t d = 1; d << t < most; d += 2) {
            for (int sign = 0; sign < 2; sign++) {
                const uint32_t first = sign ? m - x : x;
                for (uint32_t at = first; at < to; at += m) {
                    out[n] = (float)at;
                    n += at >= from;
                }
            }
            x = x + twice >= m ? x + twice - m : x + twice;
        }
        inverse = qk_half_modulo(inverse, m);
    }
    return n;
}

/* For a scale that qk_divisor_ok. True: the two operations are exact with this l. */
static inline bool qk_two_steps(float scale, float *low_out) {
    static const uint32_t moves[] = {0, 1, -1u, 2, -2u};
    const float size = fabsf(scale);
    uint32_t bits, sign;
    memcpy(&bits, &size, sizeof bits);
    const uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
    const float s = (float)significand, r = 1.0f / s, low = fmaf(-s, r, 1.0f) * r;
    uint32_t odd = significand;
    int t = 0, n = 0;
    float trial[64];
    for (; (odd & 1u) == 0; odd /= 2)
        t++;
    if (t < 4) n = qk_two_steps_trials(significand, odd, t, trial);
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
        float l = low;
        memcpy(&bits, &l, sizeof bits);
        if (low != 0.0f) bits += moves[k];
        memcpy(&l, &bits, sizeof l);
        bool same = true;
        for (int i = 0; i < n; i++)
            same &= trial[i] / s == fmaf(trial[i], r, trial[i] * l);
        if (!same) continue;
        /* s is the scale but for a power of two, which has this as its reciprocal */
        const float power = s / size;
        memcpy(&sign, &scale, sizeof sign);
        *low_out = (sign >> 31 ? -l : l) * power;
        return true;
    }
    return false;
}

#endif
