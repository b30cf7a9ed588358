/* Functions whose common arguments need less than kernels/simd/vmath.h does for all: where every lane is `calm`, powers of two stay
 * normal numbers, and are made by adding to exponents. The rest, infinities and NaN included, goes the way of vmath.h. Both are
 * within a few units in the last place. Over the names of simd/vec512.h or vec256.h. */
#ifndef QK_POINTWISE_MATH_H
#define QK_POINTWISE_MATH_H

#include "kernels/simd/vmath.h"

/* Is every lane of |x| at most `most`? A NaN is not. */
QK_INLINE bool is_calm(qv_f x, float most) {
    const qv_f a = qv_abs(x), m = qv_set1(most);
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a, m, _CMP_LE_OQ) == 0xffff;
#else
    return _mm256_movemask_ps(_mm256_cmp_ps(a, m, _CMP_LE_OQ)) == 0xff;
#endif
}

#define MAGIC 0x1.8p23f /* what is added to it is rounded to an integer, which the low bits then hold */

/* e^x = 2^n (1 + q): q from what the multiple of ln 2 leaves of x, n as a number behind MAGIC's bits. */
QK_INLINE qv_f exp_left(qv_f r) {
    const qv_f r2 = qv_mul(r, r), low = qv_fma(r, qv_set1(0x1.5554d8p-3f), qv_set1(0.5f));
    const qv_f high = qv_fma(r, qv_set1(0x1.12107p-7f), qv_set1(0x1.5554b2p-5f));
    return qv_fma(r2, qv_fma(r2, qv_fma(r2, qv_set1(0x1.6d7c42p-10f), high), low), r);
}

QK_INLINE qv_f exp_parts(qv_f x, qv_f *t) {
    *t = qv_fma(x, qv_set1(0x1.715476p+0f), qv_set1(MAGIC));
    const qv_f n = qv_sub(*t, qv_set1(MAGIC));
    const qv_f r = qv_fnma(n, qv_set1(0x1.62e4p-1f), x); /* 15 bits: n times it is exact */
    return exp_left(qv_fnma(n, qv_set1(0x1.7f7d1cp-20f), r));
}

/* p * 2^n */
QK_INLINE qv_f times_power(qv_f p, qv_f t) {
    return qv_of_bits(qv_addi(qv_bits(p), qv_slli(qv_bits(t), 23)));
}

enum { CALM_EXP = 87 };

QK_INLINE qv_f calm_exp(qv_f x) {
    qv_f t;
    const qv_f q = exp_parts(x, &t);
    return times_power(qv_add(q, qv_set1(1.0f)), t);
}

/* 0 <= x <= 1: 2 artanh(x / (x + 2)) */
QK_INLINE qv_f calm_log1p01(qv_f x) {
    const qv_f s = qv_div(x, qv_add(x, qv_set1(2.0f))), z = qv_mul(s, s), twice = qv_add(s, s);
    qv_f p = qv_fma(z, qv_set1(0x1.1ed7dcp-3f), qv_set1(0x1.1ebd06p-3f));
    p = qv_fma(z, p, qv_set1(0x1.99d208p-3f));
    p = qv_fma(z, p, qv_set1(0x1.555502p-2f));
    return qv_fma(qv_mul(twice, z), p, twice);
}

/* vmath.h has the formula; the square's low part is in the remainder here, since n ln 2 is taken off before it is rounded. */
QK_INLINE qv_f calm_gelu(qv_f x) {
    const qv_f a = qv_abs(x), one = qv_set1(1.0f), h = qv_mul(a, qv_set1(-0.5f));
    const qv_f u = qv_div(one, qv_fma(qv_set1(0.3f), a, one));
    /* halves of vmath.h's coefficients, in the order in which least has to be waited for */
    const qv_f u2 = qv_mul(u, u), u4 = qv_mul(u2, u2);
    const qv_f p01 = qv_fma(u, qv_set1(0x1.e8caa8p-4f), qv_set1(0x1.e2a4fcp-17f));
    const qv_f p23 = qv_fma(u, qv_set1(0x1.66f0a2p-4f), qv_set1(0x1.f9184cp-4f));
    const qv_f p45 = qv_fma(u, qv_set1(-0x1.ecde7cp-4f), qv_set1(0x1.50eaaap-3f));
    const qv_f p67 = qv_fma(u, qv_set1(-0x1.b583fep-3f), qv_set1(0x1.238cf4p-2f));
    const qv_f p89 = qv_fma(u, qv_set1(-0x1.f6d4f6p-9f), qv_set1(0x1.dd62b4p-5f));
    const qv_f p47 = qv_fma(u4, p89, qv_fma(u2, p67, p45));
    const qv_f p = qv_fma(u4, p47, qv_fma(u2, p23, p01));
    const qv_f t = qv_fma(qv_mul(h, a), qv_set1(0x1.715476p+0f), qv_set1(MAGIC)), n = qv_sub(t, qv_set1(MAGIC));
    const qv_f r = qv_fms(h, a, qv_mul(n, qv_set1(0x1.62e4p-1f)));
    const qv_f q = exp_left(qv_fnma(n, qv_set1(0x1.7f7d1cp-20f), r));
    /* what is missing from max(x, 0) is the same on both sides */
    return qv_fnma(times_power(qv_mul(p, qv_add(q, one)), t), a, qv_max(qv_set1(0.0f), x));
}

/* ---- all arguments ---- */

#define SLOW(name, expression)                                                                                         \
    static __attribute__((noinline)) qv_f slow_##name(qv_f x) {                                                        \
        return expression;                                                                                             \
    }
SLOW(exp, qv_exp(x))
SLOW(expm1, qv_expm1(x))
SLOW(logistic, qv_logistic(x))
SLOW(gelu, qv_gelu(x))
SLOW(mish, qv_mish(x))
SLOW(softplus, qv_softplus(x))
#undef SLOW

QK_INLINE qv_f any_exp(qv_f x) {
    return is_calm(x, CALM_EXP) ? calm_exp(x) : slow_exp(x);
}

/* x <= 0; what other lanes get is not used */
QK_INLINE qv_f any_expm1(qv_f x) {
    if (!is_calm(x, CALM_EXP)) return slow_expm1(x);
    qv_f t;
    const qv_f q = exp_parts(x, &t), p = times_power(qv_set1(1.0f), t);
    return qv_fma(p, q, qv_sub(p, qv_set1(1.0f)));
}

QK_INLINE qv_f any_logistic(qv_f x) {
    const qv_f one = qv_set1(1.0f);
    return is_calm(x, CALM_EXP) ? qv_div(one, qv_add(one, calm_exp(qv_neg(x)))) : slow_logistic(x);
}

/* x logistic(s) */
QK_INLINE qv_f any_gated(qv_f x, qv_f s) {
    return is_calm(s, CALM_EXP) ? qv_div(x, qv_add(qv_set1(1.0f), calm_exp(qv_neg(s)))) : qv_mul(x, slow_logistic(s));
}

QK_INLINE qv_f any_gelu(qv_f x) {
    return is_calm(x, 12.5f) ? calm_gelu(x) : slow_gelu(x);
}

QK_INLINE qv_f any_softplus(qv_f x) {
    if (!is_calm(x, CALM_EXP)) return slow_softplus(x);
    return qv_add(qv_max(qv_set1(0.0f), x), calm_log1p01(calm_exp(qv_neg(qv_abs(x)))));
}

QK_INLINE qv_f any_mish(qv_f x) {
    if (!is_calm(x, 40.0f)) return slow_mish(x);
    const qv_f two = qv_set1(2.0f), e = calm_exp(x), w = qv_mul(e, qv_add(e, two));
    return qv_div(qv_mul(x, w), qv_add(w, two));
}

#endif
