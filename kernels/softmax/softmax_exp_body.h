/* e^d for the distances of softmax, d <= 0, on the vectors of simd/vec.h.
 *
 * d = k ln 2 / E + r, k an integer and E entries in a table that one permute reads: e^d = 2^(k/E) e^r with |r| <= ln 2 / 2E, so
 * that a short polynomial does. The low bits of k, which are those of the sum with `magic`, choose the entry; the rest is
 * shifted to where the exponent is. The entries have the exponent that their own bits of k will add taken off.
 *
 * Within two units in the last place, four below e^-16, where one word of ln 2 shows. Less than 2^-125 is 0, so that nothing
 * subnormal comes up; a NaN stays one. */
#ifndef QK_SOFTMAX_EXP_H
#define QK_SOFTMAX_EXP_H

#include "kernels/simd/vec.h"

#define EXP_LOG2E  0x1.715476p+0f
#define EXP_LN2    0x1.62e43p-1f
#define EXP_LOWEST (-86.6f)

#if defined(__AVX512F__)

typedef struct exp_table {
    qkv low, high;
} exp_table;

QK_INLINE exp_table exp_entries(void) {
    static const float two_to[32] = {
        0x1p+0f,        0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f, 0x1.1d4874p+0f, 0x1.2387a6p+0f,
        0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f, 0x1.4bfdaep+0f, 0x1.5342b6p+0f,
        0x1.5ab07ep+0f, 0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f, 0x1.8ace54p+0f,
        0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f, 0x1.ae89fap+0f, 0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f,
        0x1.d5818ep+0f, 0x1.dfc974p+0f, 0x1.ea4afap+0f, 0x1.f50766p+0f};
    const __m512i j = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low = _mm512_sub_epi32(_mm512_loadu_si512(two_to), _mm512_slli_epi32(j, 18));
    const __m512i high = _mm512_sub_epi32(_mm512_loadu_si512(two_to + 16),
                                          _mm512_slli_epi32(_mm512_add_epi32(j, _mm512_set1_epi32(16)), 18));
    return (exp_table){_mm512_castsi512_ps(low), _mm512_castsi512_ps(high)};
}

QK_INLINE qkv exp_of(const exp_table *t, qkv d) {
    const qkv magic = qkv_set(0x1.8p+18f);
    const qkv k = qkv_fma(d, qkv_set(EXP_LOG2E), magic);
    const qkv r = qkv_fnma(qkv_sub(k, magic), qkv_set(EXP_LN2), d);
    const qkv q = qkv_fma(r, qkv_set(0.500005f), qkv_set(1.0000147f));
    const __m512i bits = _mm512_castps_si512(k);
    const __m512i entry = _mm512_castps_si512(_mm512_permutex2var_ps(t->low, bits, t->high));
    const qkv p = _mm512_castsi512_ps(_mm512_add_epi32(entry, _mm512_slli_epi32(bits, 18)));
    const __mmask16 keep = _mm512_cmp_ps_mask(d, qkv_set(EXP_LOWEST), _CMP_NLT_UQ);
    return _mm512_maskz_fmadd_ps(keep, qkv_mul(p, r), q, p);
}

#else

typedef struct exp_table {
    qkv entries;
} exp_table;

QK_INLINE exp_table exp_entries(void) {
    static const float two_to[8] = {0x1p+0f,        0x1.172b84p+0f, 0x1.306fep+0f,  0x1.4bfdaep+0f,
                                    0x1.6a09e6p+0f, 0x1.8ace54p+0f, 0x1.ae89fap+0f, 0x1.d5818ep+0f};
    const __m256i j = _mm256_slli_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), 20);
    return (exp_table){_mm256_castsi256_ps(_mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)two_to), j))};
}

QK_INLINE qkv exp_of(const exp_table *t, qkv d) {
    const qkv magic = qkv_set(0x1.8p+20f);
    const qkv k = qkv_fma(d, qkv_set(EXP_LOG2E), magic);
    const qkv r = qkv_fnma(qkv_sub(k, magic), qkv_set(EXP_LN2), d);
    qkv q = qkv_fma(r, qkv_set(0x1.555556p-3f), qkv_set(0.5000782f));
    q = qkv_fma(q, r, qkv_set(1.0f));
    const __m256i bits = _mm256_castps_si256(k);
    const __m256i entry = _mm256_castps_si256(_mm256_permutevar8x32_ps(t->entries, bits));
    const qkv p = _mm256_castsi256_ps(_mm256_add_epi32(entry, _mm256_slli_epi32(bits, 20)));
    const qkv keep = _mm256_cmp_ps(d, qkv_set(EXP_LOWEST), _CMP_NLT_UQ);
    return _mm256_and_ps(keep, qkv_fma(qkv_mul(p, r), q, p));
}

#endif

#endif
