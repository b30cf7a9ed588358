/* AVX2 building blocks of the kernels on quantized data; the twins of avx512_x8.h, eight lanes wide. */
#ifndef QK_SIMD_AVX2_X8_H
#define QK_SIMD_AVX2_X8_H

#include "kernels/simd/divide.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct qk256_divisor {
    __m256 scale, recip, low, limit;
} qk256_divisor;

QK_INLINE qk256_divisor qk256_divisor_of(__m256 scale) {
    qk256_divisor d;
    d.scale = scale;
    d.recip = _mm256_div_ps(_mm256_set1_ps(1.0f), scale);
    d.low = _mm256_mul_ps(_mm256_fnmadd_ps(scale, d.recip, _mm256_set1_ps(1.0f)), d.recip);
    d.limit = _mm256_mul_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), scale), _mm256_set1_ps(QK_QUOTIENT_LIMIT));
    return d;
}

/* x / scale for x known to lie within the limit. */
QK_INLINE __m256 qk256_divide_tame(qk256_divisor d, __m256 x) {
    __m256 q0 = _mm256_fmadd_ps(x, d.recip, _mm256_mul_ps(x, d.low));
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q0, d.scale, x), d.recip, q0);
}

/* x / scale as kernels/simd/divide.h says. */
QK_INLINE __m256 qk256_divide(qk256_divisor d, __m256 x) {
    x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
    x = _mm256_min_ps(x, d.limit);
    x = _mm256_max_ps(x, _mm256_xor_ps(d.limit, _mm256_set1_ps(-0.0f)));
    return qk256_divide_tame(d, x);
}

QK_INLINE __m256i qk256_round(__m256 q, __m256i zp, __m256 zp_f32, bool add_first) {
    return add_first ? _mm256_cvtps_epi32(_mm256_add_ps(q, zp_f32)) : _mm256_add_epi32(_mm256_cvtps_epi32(q), zp);
}

/* Bytes that four registers of integers were packed to twice, in order. */
QK_INLINE __m256i qk256_order8(__m256i packed) {
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* 32 integers to saturated bytes, in order. */
QK_INLINE __m256i qk256_pack8(const __m256i v[4], bool is_signed) {
    __m256i a = _mm256_packs_epi32(v[0], v[1]), b = _mm256_packs_epi32(v[2], v[3]);
    return qk256_order8(is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b));
}

/* 16 integers to saturated 16-bit words, in order. */
QK_INLINE __m256i qk256_pack16(__m256i v0, __m256i v1, bool is_signed) {
    __m256i p = is_signed ? _mm256_packs_epi32(v0, v1) : _mm256_packus_epi32(v0, v1);
    return _mm256_permute4x64_epi64(p, 0xd8);
}

/* Eight bytes to integers. */
QK_INLINE __m256i qk256_load8(const void *src, bool is_signed) {
    __m128i b = _mm_loadl_epi64((const __m128i *)src);
    return is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b);
}

/* ---- quantization to bytes in fixed point, as kernels/simd/divide.h says ---- */

QK_INLINE __m256i qk256_fixed(__m256 x, __m256 factor, __m256 shift) {
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(x, factor, shift));
}

/* The least sign of sureness of 32, their lower halves: a lane is 0 where the result of one is not known. */
QK_INLINE __m256i qk256_fixed_sure(const __m256i w[4]) {
    const __m256i a = _mm256_min_epu16(w[0], w[1]), b = _mm256_min_epu16(w[2], w[3]);
    return _mm256_and_si256(_mm256_min_epu16(a, b), _mm256_set1_epi32(QK_FIXED_SURE));
}

QK_INLINE bool qk256_all_sure(__m256i least) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(least, _mm256_setzero_si256()))) == 0;
}

/* Bytes that lie four apart in a lane, as below, to where they belong in it. */
#define QK256_FIXED_TURN _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0f0d0b090e0c0a08, 0x0705030106040200))

/* The results of 32 as saturated bytes, in order. Upper halves meet the next register's in one word of each dword; bytes then lie four
 * apart. */
QK_INLINE __m256i qk256_fixed_bytes(const __m256i w[4], bool is_signed) {
    const __m256i a = _mm256_blend_epi16(_mm256_srli_epi32(w[0], 16), w[1], 0xaa),
                  b = _mm256_blend_epi16(_mm256_srli_epi32(w[2], 16), w[3], 0xaa),
                  p = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    return qk256_order8(_mm256_shuffle_epi8(p, QK256_FIXED_TURN));
}

#endif
