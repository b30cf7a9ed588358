/* Functions of f32 on vectors, over the names of simd/vec512.h or vec256.h: include one of them first. Results are within a few units
 * in the last place of f32, subnormal ones included; infinities and NaN as in C. The polynomials were fitted for these forms. */
#ifndef QK_SIMD_VMATH_H
#define QK_SIMD_VMATH_H

#ifndef QK_INLINE
#error include kernels/simd/vec512.h or vec256.h first
#endif

QK_INLINE qv_f qv_abs(qv_f x) {
    return qv_of_bits(qv_andi(qv_bits(x), qv_set1i(0x7fffffff)));
}
QK_INLINE qv_f qv_neg(qv_f x) {
    return qv_of_bits(qv_xori(qv_bits(x), qv_set1i((int32_t)0x80000000u)));
}
/* |x| with the sign of s, for x >= 0. */
QK_INLINE qv_f qv_with_sign(qv_f x, qv_f s) {
    return qv_of_bits(qv_ori(qv_bits(x), qv_andi(qv_bits(s), qv_set1i((int32_t)0x80000000u))));
}

/* bf16 in the upper half of each lane (qv_high16), rounded half to even; what is below is no part of it. A NaN stays one, quiet. */
QK_INLINE qv_i qv_bf16_rounded(qv_f x) {
    const qv_i u = qv_bits(x), odd = qv_andi(qv_srai(u, 16), qv_set1i(1));
    const qv_i up = qv_addi(u, qv_addi(qv_set1i(0x7fff), odd));
    return qv_seli(qv_eq(x, x), up, qv_ori(u, qv_set1i(0x400000)));
}

/* x = n ln 2 + r: e^r - 1, and n. A NaN stays one. */
QK_INLINE qv_f qv_exp_parts(qv_f x, qv_f *n_out) {
    x = qv_max(qv_set1(-105.0f), qv_min(qv_set1(89.0f), x));
    const qv_f n = qv_rint(qv_mul(x, qv_set1(0x1.715476p+0f)));
    qv_f r = qv_fnma(n, qv_set1(0x1.62e4p-1f), x); /* 15 bits: n times it is exact */
    r = qv_fnma(n, qv_set1(0x1.7f7d1cp-20f), r);
    qv_f p = qv_fma(r, qv_set1(0x1.6d7c42p-10f), qv_set1(0x1.12107p-7f));
    p = qv_fma(r, p, qv_set1(0x1.5554b2p-5f));
    p = qv_fma(r, p, qv_set1(0x1.5554d8p-3f));
    p = qv_fma(r, p, qv_set1(0.5f));
    *n_out = n;
    return qv_fma(qv_mul(r, r), p, r);
}

QK_INLINE qv_f qv_exp(qv_f x) {
    qv_f n;
    const qv_f q = qv_exp_parts(x, &n);
    return qv_scale2(qv_add(q, qv_set1(1.0f)), n);
}

/* e^x - 1 for x <= 0 (the scaled parts of others may overflow early). */
QK_INLINE qv_f qv_expm1(qv_f x) {
    qv_f n;
    const qv_f q = qv_exp_parts(x, &n), p = qv_scale2(qv_set1(1.0f), n);
    return qv_fma(p, q, qv_sub(p, qv_set1(1.0f)));
}

QK_INLINE qv_f qv_log(qv_f x) {
    const qv_f inf = qv_set1(__builtin_inff());
    const qv_m tiny = qv_lt(x, qv_set1(0x1p-126f));
    const qv_f y = qv_sel(tiny, qv_mul(x, qv_set1(0x1p24f)), x);
    /* y = 2^e m, m around 1 from sqrt(1/2) to sqrt(2) */
    const qv_i u = qv_subi(qv_bits(y), qv_set1i(0x3f3504f3));
    const qv_i e = qv_srai(u, 23);
    qv_f f = qv_sub(qv_of_bits(qv_subi(qv_bits(y), qv_slli(e, 23))), qv_set1(1.0f));
    const qv_f ef = qv_sub(qv_of_int(e), qv_sel(tiny, qv_set1(24.0f), qv_set1(0.0f)));
    qv_f p = qv_fma(f, qv_set1(-0x1.543ccp-4f), qv_set1(0x1.062738p-3f));
    p = qv_fma(f, p, qv_set1(-0x1.0915fp-3f));
    p = qv_fma(f, p, qv_set1(0x1.229ccep-3f));
    p = qv_fma(f, p, qv_set1(-0x1.54dbaap-3f));
    p = qv_fma(f, p, qv_set1(0x1.99a37cp-3f));
    p = qv_fma(f, p, qv_set1(-0x1.0000bcp-2f));
    p = qv_fma(f, p, qv_set1(0x1.55555p-2f));
    const qv_f f2 = qv_mul(f, f);
    qv_f r = qv_fma(qv_mul(f2, f), p, qv_mul(ef, qv_set1(0x1.7f7d1cp-20f)));
    r = qv_fma(f2, qv_set1(-0.5f), r);
    r = qv_add(qv_add(r, f), qv_mul(ef, qv_set1(0x1.62e4p-1f)));
    r = qv_sel(qv_eq(x, qv_set1(0.0f)), qv_neg(inf), r);
    r = qv_sel(qv_lt(x, qv_set1(0.0f)), qv_set1(__builtin_nanf("")), r);
    r = qv_sel(qv_eq(x, inf), inf, r);
    return qv_sel(qv_eq(x, x), r, x);
}

/* log(1 + x) for 0 <= x <= 1: what 1 + x rounds away is brought back. */
QK_INLINE qv_f qv_log1p01(qv_f x) {
    const qv_f one = qv_set1(1.0f), u = qv_add(one, x);
    return qv_add(qv_log(u), qv_div(qv_sub(x, qv_sub(u, one)), u));
}

QK_INLINE qv_f qv_tanh(qv_f x) {
    const qv_f a = qv_abs(x), one = qv_set1(1.0f);
    const qv_f z = qv_mul(x, x);
    qv_f p = qv_fma(z, qv_set1(-0x1.864b58p-8f), qv_set1(0x1.5667fp-6f));
    p = qv_fma(z, p, qv_set1(-0x1.b8f9dcp-5f));
    p = qv_fma(z, p, qv_set1(0x1.110d66p-3f));
    p = qv_fma(z, p, qv_set1(-0x1.555552p-2f));
    const qv_f near = qv_fma(qv_mul(x, z), p, x);
    const qv_f far = qv_sub(one, qv_div(qv_set1(2.0f), qv_add(qv_exp(qv_add(a, a)), one)));
    return qv_sel(qv_lt(a, qv_set1(0.64f)), near, qv_with_sign(far, x));
}

/* 1 / (1 + e^-x) */
QK_INLINE qv_f qv_logistic(qv_f x) {
    const qv_f one = qv_set1(1.0f);
    const qv_f e = qv_exp(qv_neg(qv_abs(x))), d = qv_div(one, qv_add(one, e));
    return qv_sel(qv_lt(x, qv_set1(0.0f)), qv_mul(e, d), d);
}

/* x Phi(x), Phi the normal distribution: erfc(|x| / sqrt 2) = e^(-x^2 / 2) P(1 / (1 + 0.3 |x|)). */
QK_INLINE qv_f qv_gelu(qv_f x) {
    const qv_f a = qv_min(qv_set1(15.0f), qv_abs(x)), one = qv_set1(1.0f), half = qv_set1(-0.5f);
    const qv_f t = qv_div(one, qv_fma(qv_set1(0.3f), a, one));
    qv_f p = qv_fma(t, qv_set1(-0x1.f6d4f6p-8f), qv_set1(0x1.dd62b4p-4f));
    p = qv_fma(t, p, qv_set1(-0x1.b583fep-2f));
    p = qv_fma(t, p, qv_set1(0x1.238cf4p-1f));
    p = qv_fma(t, p, qv_set1(-0x1.ecde7cp-3f));
    p = qv_fma(t, p, qv_set1(0x1.50eaaap-2f));
    p = qv_fma(t, p, qv_set1(0x1.66f0a2p-3f));
    p = qv_fma(t, p, qv_set1(0x1.f9184cp-3f));
    p = qv_fma(t, p, qv_set1(0x1.e8caa8p-3f));
    p = qv_fma(t, p, qv_set1(0x1.e2a4fcp-16f));
    const qv_f s = qv_mul(a, a), low = qv_fms(a, a, s); /* a^2 in two words */
    const qv_f e = qv_exp(qv_mul(s, half)), tail = qv_mul(p, qv_fma(e, qv_mul(low, half), e));
    const qv_f part = qv_mul(qv_mul(tail, qv_set1(0.5f)), qv_min(qv_set1(0x1.fffffep127f), x)); /* no 0 * inf */
    return qv_sel(qv_lt(x, qv_set1(0.0f)), part, qv_sub(x, part));
}

/* x tanh(log(1 + e^x)) */
QK_INLINE qv_f qv_mish(qv_f x) {
    const qv_f two = qv_set1(2.0f), n = qv_exp(qv_min(qv_set1(20.0f), x)), w = qv_mul(n, qv_add(n, two));
    return qv_sel(qv_gt(x, qv_set1(20.0f)), x, qv_mul(x, qv_div(w, qv_add(w, two))));
}

/* log(1 + e^x) */
QK_INLINE qv_f qv_softplus(qv_f x) {
    const qv_f more = qv_log1p01(qv_exp(qv_neg(qv_abs(x))));
    return qv_add(qv_max(qv_set1(0.0f), x), more);
}

#endif
