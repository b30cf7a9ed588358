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

/* Powers of two are of a table with as many entries as a register: 2^(k / QV_LANES), less the k that comes with the exponent. What is
 * added MAGIC to is rounded to a multiple of 1 / QV_LANES, which the low bits then hold. */
#if defined(__AVX512F__)
#define MAGIC          0x1.8p19f
#define POWER_SHIFT    19
#define pick(table, i) _mm512_permutexvar_ps(i, table)
static const int32_t powers[QV_LANES] = {0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532,
                                         0x3f75fed7, 0x3f75583f, 0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c,
                                         0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};
#else
#define MAGIC          0x1.8p20f
#define POWER_SHIFT    20
#define pick(table, i) _mm256_permutevar8x32_ps(table, i)
static const int32_t powers[QV_LANES] = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                         0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
#endif

/* 2^(t - MAGIC), a normal number. */
QK_INLINE qv_f power(qv_f t) {
    const qv_f part = pick(qv_of_bits(qv_loadi(powers)), qv_bits(t));
    return qv_of_bits(qv_addi(qv_bits(part), qv_slli(qv_bits(t), POWER_SHIFT)));
}

/* e^r - 1 for |r| <= ln 2 / 16 */
QK_INLINE qv_f exp_left(qv_f r) {
    const qv_f p = qv_fma(r, qv_set1(0x1.555daap-5f), qv_set1(0x1.555c78p-3f));
    return qv_fma(qv_mul(r, r), qv_fma(r, p, qv_set1(0.5f)), r);
}

#define LN2_HIGH 0x1.62ep-1f /* 13 bits: so many of them as there are, it is exact */
#define LN2_LOW  0x1.0bfbe8p-15f

/* e^x = (1 + q) 2^(t - MAGIC): q */
QK_INLINE qv_f exp_parts(qv_f x, qv_f *t) {
    *t = qv_fma(x, qv_set1(0x1.715476p+0f), qv_set1(MAGIC));
    const qv_f n = qv_sub(*t, qv_set1(MAGIC));
    return exp_left(qv_fnma(n, qv_set1(LN2_LOW), qv_fnma(n, qv_set1(LN2_HIGH), x)));
}

enum { CALM_EXP = 87 };

QK_INLINE qv_f calm_exp(qv_f x) {
    qv_f t;
    const qv_f q = exp_parts(x, &t), p = power(t);
    return qv_fma(p, q, p);
}

/* 0 <= x <= 1: 2 artanh(x / (x + 2)) */
QK_INLINE qv_f calm_log1p01(qv_f x) {
    const qv_f s = qv_div(x, qv_add(x, qv_set1(2.0f))), z = qv_mul(s, s), twice = qv_add(s, s);
    qv_f p = qv_fma(z, qv_set1(0x1.1ed7dcp-3f), qv_set1(0x1.1ebd06p-3f));
    p = qv_fma(z, p, qv_set1(0x1.99d208p-3f));
    p = qv_fma(z, p, qv_set1(0x1.555502p-2f));
    return qv_fma(qv_mul(twice, z), p, twice);
}

/* Of e^(r / 2) - 1 what is behind r / 2: factors of r^2 and r^3, and of r^2 alone. */
#if defined(__AVX512F__)
#define HALVED_2 0x1.00022p-3f
#define HALVED_3 0x1.555762p-6f
#define HALVED   qv_set1(0x1.00029p-3f)
#else
#define HALVED_2 0x1.00087ep-3f
#define HALVED_3 0x1.555d8ap-6f
#define HALVED   qv_fma(twice, qv_set1(HALVED_3), qv_set1(HALVED_2))
#endif

/* max(x, 0) - |x| Q(|x|): Q, what the normal distribution has beyond, is e^(-x^2 / 2) times a polynomial of u = 1 / (1 + c |x|). What is
 * left of -x^2 for the exponential is taken twice, so that the square's low part is in it. */
QK_INLINE qv_f calm_gelu(qv_f x) {
    const qv_f a = qv_abs(x), one = qv_set1(1.0f), u = qv_div(one, qv_fma(qv_set1(0.295f), a, one));
    qv_f p = qv_fma(u, qv_set1(0x1.4566acp-5f), qv_set1(-0x1.7a65d4p-3f));
    p = qv_fma(u, p, qv_set1(0x1.182ee6p-2f));
    p = qv_fma(u, p, qv_set1(-0x1.eac60cp-4f));
    p = qv_fma(u, p, qv_set1(0x1.5823ccp-3f));
    p = qv_fma(u, p, qv_set1(0x1.584f3cp-4f));
    p = qv_fma(u, p, qv_set1(0x1.f323eep-4f));
    p = qv_fma(u, p, qv_set1(0x1.e05506p-4f));
    p = qv_fma(u, p, qv_set1(0x1.302a5p-16f));
    const qv_f t = qv_fma(qv_mul(x, x), qv_set1(-0x1.715476p-1f), qv_set1(MAGIC)), n = qv_sub(t, qv_set1(MAGIC));
    const qv_f twice = qv_fnma(n, qv_set1(2.0f * LN2_LOW), qv_fnms(x, x, qv_mul(n, qv_set1(2.0f * LN2_HIGH))));
    const qv_f left = qv_fma(twice, qv_fma(twice, qv_set1(HALVED_3), qv_set1(HALVED_2)), qv_set1(0.5f));
    const qv_f e = power(t);
    return qv_fnma(qv_mul(p, qv_fma(e, qv_mul(twice, left), e)), a, qv_max(qv_set1(0.0f), x));
}

/* The same of bf16, whose square is exact: for each of them what calm_gelu gives, rounded to bf16. */
QK_INLINE qv_f short_gelu(qv_f x) {
    const qv_f a = qv_abs(x), one = qv_set1(1.0f), u = qv_div(one, qv_fma(qv_set1(0.296f), a, one));
    qv_f p = qv_fma(u, qv_set1(-0x1.6c4c8ep-4f), qv_set1(0x1.1216d8p-2f));
    p = qv_fma(u, p, qv_set1(-0x1.4ae1cep-4f));
    p = qv_fma(u, p, qv_set1(0x1.7594a8p-3f));
    p = qv_fma(u, p, qv_set1(0x1.96112cp-4f));
    p = qv_fma(u, p, qv_set1(0x1.ee2e38p-4f));
    p = qv_fma(u, p, qv_set1(-0x1.2bdad6p-13f));
    const qv_f square = qv_mul(x, x);
    const qv_f t = qv_fma(square, qv_set1(-0x1.715476p-1f), qv_set1(MAGIC)), n = qv_sub(t, qv_set1(MAGIC));
    const qv_f twice = qv_fnms(n, qv_set1(0x1.62e43p+0f), square);
    const qv_f left = qv_fma(twice, HALVED, qv_set1(0.5f));
    const qv_f e = power(t);
    return qv_fnma(qv_mul(p, qv_fma(e, qv_mul(twice, left), e)), a, qv_max(qv_set1(0.0f), x));
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

/* x <= 0; what other lanes get is not used. Whole powers only: what the table's are short of would be much of a result near 0. */
QK_INLINE qv_f any_expm1(qv_f x) {
    if (!is_calm(x, CALM_EXP)) return slow_expm1(x);
    const qv_f magic = qv_set1(0x1.8p23f), one = qv_set1(1.0f);
    const qv_f t = qv_fma(x, qv_set1(0x1.715476p+0f), magic), n = qv_sub(t, magic);
    const qv_f r = qv_fnma(n, qv_set1(LN2_LOW), qv_fnma(n, qv_set1(LN2_HIGH), x)), r2 = qv_mul(r, r);
    const qv_f low = qv_fma(r, qv_set1(0x1.5554d8p-3f), qv_set1(0.5f));
    const qv_f high = qv_fma(r, qv_set1(0x1.12107p-7f), qv_set1(0x1.5555b2p-5f));
    const qv_f q = qv_fma(r2, qv_fma(r2, qv_fma(r2, qv_set1(0x1.6d7c42p-10f), high), low), r);
    const qv_f p = qv_of_bits(qv_addi(qv_bits(one), qv_slli(qv_bits(t), 23)));
    return qv_fma(p, q, qv_sub(p, one));
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
QK_INLINE qv_f any_short_gelu(qv_f x) {
    return is_calm(x, 12.5f) ? short_gelu(x) : slow_gelu(x);
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
