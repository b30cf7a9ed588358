/* Whole registers of bf16, from the upper and the lower words of as many f32: rounding in 16 bits does twice the elements of rounding
 * in 32. Under the flags of any level from avx2 on. */
#ifndef QK_SIMD_BF16_H
#define QK_SIMD_BF16_H

#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

/* One more where the lower word is above a half, or is one and the upper odd: where lower | (upper & 1) > 0x8000. Infinities and NaN do
 * not count up. `any_nan`: there may be NaN that the upper word alone does not show, or that are not quiet; results of arithmetic
 * and what was bf16 before are neither. */
#if defined(__AVX512F__)

QK_INLINE __m512i qk_bf16_rounded(__m512i upper, __m512i lower, bool any_nan) {
    const __m512i inf = _mm512_set1_epi16((short)0xff00), half = _mm512_set1_epi16((short)0x8000);
    const __m512i one = _mm512_set1_epi16(1), twice = _mm512_add_epi16(upper, upper);
    const __m512i odd = _mm512_ternarylogic_epi32(lower, upper, one, 0xf8); /* lower | (upper & 1) */
    const __mmask32 finite = _mm512_cmplt_epu16_mask(twice, inf);
    const __m512i up = _mm512_mask_add_epi16(upper, _mm512_mask_cmpgt_epu16_mask(finite, odd, half), upper, one);
    if (!any_nan) return up;
    const __mmask32 nan = _mm512_cmpgt_epu16_mask(twice, inf) | _mm512_mask_test_epi16_mask(~finite, lower, lower);
    return _mm512_mask_blend_epi16(nan, up, _mm512_or_si512(upper, _mm512_set1_epi16(0x40)));
}

/* The even and the odd elements of a register, as f32. */
QK_INLINE __m512 qk_bf16_even(__m512i v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}
QK_INLINE __m512 qk_bf16_odd(__m512i v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000u)));
}
/* The words of two registers' lanes in turn: the upper ones, the lower ones. */
QK_INLINE __m512i qk_bf16_upper(__m512 even, __m512 odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                   _mm512_castps_si512(odd));
}
QK_INLINE __m512i qk_bf16_lower(__m512 even, __m512 odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_castps_si512(even),
                                   _mm512_slli_epi32(_mm512_castps_si512(odd), 16));
}

/* Sixteen of `a`, then sixteen of `b`. The machine's conversion makes zeros of subnormal numbers: those go the way of the words. */
QK_INLINE __m512i qk_bf16_of(__m512 a, __m512 b) {
#if defined(__AVX512BF16__)
    enum { SUBNORMAL = 0x20 };
    if ((_mm512_fpclass_ps_mask(a, SUBNORMAL) | _mm512_fpclass_ps_mask(b, SUBNORMAL)) == 0)
        return (__m512i)_mm512_cvtne2ps_pbh(b, a);
#endif
    static const uint16_t odd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                     33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const __m512i upper = _mm512_loadu_si512(odd), lower = _mm512_sub_epi16(upper, _mm512_set1_epi16(1));
    const __m512i u = _mm512_castps_si512(a), v = _mm512_castps_si512(b);
    return qk_bf16_rounded(_mm512_permutex2var_epi16(u, upper, v), _mm512_permutex2var_epi16(u, lower, v), true);
}

#else

QK_INLINE __m256i qk_bf16_rounded(__m256i upper, __m256i lower, bool any_nan) {
    const __m256i inf = _mm256_set1_epi16(0x7f80), half = _mm256_set1_epi16((short)0x8000), one = _mm256_set1_epi16(1);
    const __m256i size = _mm256_andnot_si256(half, upper);
    const __m256i odd =
        _mm256_or_si256(lower, _mm256_and_si256(upper, one)); /* more than a half: signed, the other way round */
    const __m256i counts = _mm256_cmpgt_epi16(_mm256_xor_si256(odd, half), _mm256_setzero_si256());
    const __m256i finite = _mm256_cmpgt_epi16(inf, size);
    const __m256i up = _mm256_sub_epi16(upper, _mm256_and_si256(counts, finite));
    if (!any_nan) return up;
    const __m256i whole = _mm256_or_si256(finite, _mm256_cmpeq_epi16(lower, _mm256_setzero_si256()));
    const __m256i number = _mm256_andnot_si256(_mm256_cmpgt_epi16(size, inf), whole);
    return _mm256_or_si256(up, _mm256_andnot_si256(number, _mm256_set1_epi16(0x40)));
}

QK_INLINE __m256 qk_bf16_even(__m256i v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}
QK_INLINE __m256 qk_bf16_odd(__m256i v) {
    return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000u)));
}
QK_INLINE __m256i qk_bf16_upper(__m256 even, __m256 odd) {
    return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(even), 16), _mm256_castps_si256(odd), 0xaa);
}
QK_INLINE __m256i qk_bf16_lower(__m256 even, __m256 odd) {
    return _mm256_blend_epi16(_mm256_castps_si256(even), _mm256_slli_epi32(_mm256_castps_si256(odd), 16), 0xaa);
}

#endif

#endif
