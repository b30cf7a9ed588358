/* AVX-512 building blocks of the kernels on quantized data. Under the flags of a level from avx512 on. */
#ifndef QK_SIMD_AVX512_X8_H
#define QK_SIMD_AVX512_X8_H

#include "kernels/simd/divide.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stddef.h>

/* Lanes 0 … n-1 of sixteen; all of them from n = 16 on. */
QK_INLINE __mmask16 qk512_lanes(size_t n) {
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1u);
}

typedef struct qk512_divisor {
    __m512 scale, recip, low, limit;
} qk512_divisor;

QK_INLINE qk512_divisor qk512_divisor_of(__m512 scale) {
    qk512_divisor d;
    d.scale = scale;
    d.recip = _mm512_div_ps(_mm512_set1_ps(1.0f), scale);
    d.low = _mm512_mul_ps(_mm512_fnmadd_ps(scale, d.recip, _mm512_set1_ps(1.0f)), d.recip);
    d.limit = _mm512_mul_ps(scale, _mm512_set1_ps(QK_QUOTIENT_LIMIT));
    return d;
}

/* x / scale for x known to lie within the limit. */
QK_INLINE __m512 qk512_divide_tame(qk512_divisor d, __m512 x) {
    __m512 q0 = _mm512_fmadd_ps(x, d.recip, _mm512_mul_ps(x, d.low));
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q0, d.scale, x), d.recip, q0);
}

/* x / scale as kernels/simd/divide.h says. */
QK_INLINE __m512 qk512_divide(qk512_divisor d, __m512 x) {
    /* The smaller magnitude, with the sign of x; lanes with a NaN give 0. */
    x = _mm512_maskz_range_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, d.limit, 0x2);
    return qk512_divide_tame(d, x);
}

/* A quotient and a zero point to an integer; add_first: the zero point is added before rounding. */
QK_INLINE __m512i qk512_round(__m512 q, __m512i zp, __m512 zp_f32, bool add_first) {
    return add_first ? _mm512_cvtps_epi32(_mm512_add_ps(q, zp_f32)) : _mm512_add_epi32(_mm512_cvtps_epi32(q), zp);
}

/* Bytes that four registers of integers were packed to twice, in order: packs work inside 128-bit lanes, and the dwords come out
 * as 0 4 8 12 | 1 5 9 13 | … */
QK_INLINE __m512i qk512_order8(__m512i packed) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
}

/* 64 integers to saturated bytes, in order. */
QK_INLINE __m512i qk512_pack8(const __m512i v[4], bool is_signed) {
    __m512i a = _mm512_packs_epi32(v[0], v[1]), b = _mm512_packs_epi32(v[2], v[3]);
    return qk512_order8(is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b));
}

/* 32 integers to saturated 16-bit words, in order. */
QK_INLINE __m512i qk512_pack16(__m512i v0, __m512i v1, bool is_signed) {
    __m512i p = is_signed ? _mm512_packs_epi32(v0, v1) : _mm512_packus_epi32(v0, v1);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), p);
}

/* Sixteen integers to bytes, some lanes only. */
QK_INLINE void qk512_store8_lanes(void *dst, __mmask16 lanes, __m512i v, bool is_signed) {
    if (is_signed)
        _mm512_mask_cvtsepi32_storeu_epi8(dst, lanes, v);
    else
        _mm512_mask_cvtusepi32_storeu_epi8(dst, lanes, _mm512_max_epi32(v, _mm512_setzero_si512()));
}

QK_INLINE void qk512_store16_lanes(void *dst, __mmask16 lanes, __m512i v, bool is_signed) {
    if (is_signed)
        _mm512_mask_cvtsepi32_storeu_epi16(dst, lanes, v);
    else
        _mm512_mask_cvtusepi32_storeu_epi16(dst, lanes, _mm512_max_epi32(v, _mm512_setzero_si512()));
}

/* Sixteen bytes to integers. */
QK_INLINE __m512i qk512_load8(const void *src, bool is_signed) {
    __m128i b = _mm_loadu_si128((const __m128i *)src);
    return is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b);
}

QK_INLINE __m512i qk512_load8_lanes(const void *src, __mmask16 lanes, bool is_signed) {
    __m128i b = _mm_maskz_loadu_epi8(lanes, src);
    return is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b);
}

/* ---- quantization to bytes in fixed point, as kernels/simd/divide.h says ---- */

QK_INLINE __m512i qk512_fixed(__m512 x, __m512 factor, __m512 shift) {
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(x, factor, shift));
}

/* The lanes of `lanes` whose result is known. */
QK_INLINE __mmask16 qk512_fixed_sure(__mmask16 lanes, __m512i w) {
    return _mm512_mask_test_epi32_mask(lanes, w, _mm512_set1_epi32(QK_FIXED_SURE));
}

/* The results of 32 of them as words, in order. */
QK_INLINE __m512i qk512_fixed_words(__m512i w0, __m512i w1) {
    const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                                           25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16(w0, upper, w1);
}

/* 64 words to saturated bytes, in order. */
QK_INLINE __m512i qk512_pack_words(__m512i a, __m512i b, bool is_signed) {
    __m512i p = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), p);
}

/* The results of 64 as saturated bytes, in order. */
QK_INLINE __m512i qk512_fixed_bytes(const __m512i w[4], bool is_signed) {
    return qk512_pack_words(qk512_fixed_words(w[0], w[1]), qk512_fixed_words(w[2], w[3]), is_signed);
}

#endif
