/* Vectors of 8 floats under the names that simd/vmath.h and bodies shared by two levels use; the twin is vec512.h. Comparisons are
 * false for NaN. qv_min and qv_max give the second operand when either is a NaN. */
#ifndef QK_SIMD_VEC256_H
#define QK_SIMD_VEC256_H

#include "kernels/simd/avx2_x8.h"

#include <stdint.h>

typedef __m256 qv_f;
typedef __m256i qv_i;
typedef __m256 qv_m;
enum { QV_LANES = 8 };

#define qv_set1(x)          _mm256_set1_ps(x)
#define qv_set1i(x)         _mm256_set1_epi32(x)
#define qv_add(a, b)        _mm256_add_ps(a, b)
#define qv_sub(a, b)        _mm256_sub_ps(a, b)
#define qv_mul(a, b)        _mm256_mul_ps(a, b)
#define qv_div(a, b)        _mm256_div_ps(a, b)
#define qv_min(a, b)        _mm256_min_ps(a, b)
#define qv_max(a, b)        _mm256_max_ps(a, b)
#define qv_sqrt(a)          _mm256_sqrt_ps(a)
#define qv_fma(a, b, c)     _mm256_fmadd_ps(a, b, c)  /* a b + c */
#define qv_fnma(a, b, c)    _mm256_fnmadd_ps(a, b, c) /* c - a b */
#define qv_fms(a, b, c)     _mm256_fmsub_ps(a, b, c)  /* a b - c */
#define qv_fnms(a, b, c)    _mm256_fnmsub_ps(a, b, c) /* -a b - c */
#define qv_rint(a)          _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define qv_gt(a, b)         _mm256_cmp_ps(a, b, _CMP_GT_OQ)
#define qv_ge(a, b)         _mm256_cmp_ps(a, b, _CMP_GE_OQ)
#define qv_lt(a, b)         _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define qv_eq(a, b)         _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define qv_sel(m, yes, no)  _mm256_blendv_ps(no, yes, m)
#define qv_seli(m, yes, no) _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), m))
#define qv_signi(a)         _mm256_castsi256_ps(a) /* lanes below zero */
#define qv_bits(a)          _mm256_castps_si256(a)
#define qv_of_bits(a)       _mm256_castsi256_ps(a)
#define qv_to_int(a)        _mm256_cvtps_epi32(a) /* half to even */
#define qv_of_int(a)        _mm256_cvtepi32_ps(a)
#define qv_addi(a, b)       _mm256_add_epi32(a, b)
#define qv_subi(a, b)       _mm256_sub_epi32(a, b)
#define qv_muli(a, b)       _mm256_mullo_epi32(a, b)
#define qv_andi(a, b)       _mm256_and_si256(a, b)
#define qv_ori(a, b)        _mm256_or_si256(a, b)
#define qv_xori(a, b)       _mm256_xor_si256(a, b)
#define qv_srai(a, n)       _mm256_srai_epi32(a, n)
#define qv_slli(a, n)       _mm256_slli_epi32(a, n)
#define qv_load(p)          _mm256_loadu_ps(p)
#define qv_loadi(p)         _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define qv_store(p, a)      _mm256_storeu_ps(p, a)
#define qv_storei(p, a)     _mm256_storeu_si256((__m256i *)(void *)(p), a)

/* p * 2^n for integral n of a magnitude up to 250: in two halves, so that neither power leaves the normal numbers. */
QK_INLINE qv_f qv_scale2(qv_f p, qv_f n) {
    const qv_i i = qv_to_int(n), half = qv_srai(i, 1), rest = qv_subi(i, half), bias = qv_set1i(127);
    p = qv_mul(p, qv_of_bits(qv_slli(qv_addi(half, bias), 23)));
    return qv_mul(p, qv_of_bits(qv_slli(qv_addi(rest, bias), 23)));
}

/* The first n of eight lanes. */
QK_INLINE __m256i qv_lanes(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* n elements of 4, 2, 1 bytes, the first lanes; zeros behind them. n = QV_LANES reads all. */
QK_INLINE qv_i qv_load4(const void *p, size_t n) {
    return n >= QV_LANES ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskload_epi32(p, qv_lanes(n));
}
QK_INLINE __m128i qv_load2(const void *p, size_t n) {
    if (n >= QV_LANES) return _mm_loadu_si128((const __m128i *)p);
    uint16_t some[8] = {0};
    for (size_t i = 0; i < n; i++)
        memcpy(&some[i], (const char *)p + 2 * i, 2);
    return _mm_loadu_si128((const __m128i *)(const void *)some);
}
QK_INLINE __m128i qv_load1(const void *p, size_t n) {
    if (n >= QV_LANES) return _mm_loadl_epi64((const __m128i *)p);
    uint64_t some = 0;
    for (size_t i = 0; i < n; i++)
        some |= (uint64_t)((const uint8_t *)p)[i] << 8 * i;
    return _mm_cvtsi64_si128((int64_t)some);
}
QK_INLINE qv_i qv_of_u16(__m128i x) {
    return _mm256_cvtepu16_epi32(x);
}
QK_INLINE qv_f qv_of_f16(__m128i x) {
    return _mm256_cvtph_ps(x);
}
QK_INLINE qv_i qv_of_s8(__m128i x) {
    return _mm256_cvtepi8_epi32(x);
}
QK_INLINE qv_i qv_of_u8(__m128i x) {
    return _mm256_cvtepu8_epi32(x);
}
QK_INLINE void qv_store4(void *p, size_t n, qv_i x) {
    if (n >= QV_LANES)
        _mm256_storeu_si256((__m256i *)p, x);
    else
        _mm256_maskstore_epi32(p, qv_lanes(n), x);
}
QK_INLINE void qv_store2(void *p, size_t n, __m128i x) {
    if (n >= QV_LANES) {
        _mm_storeu_si128((__m128i *)p, x);
        return;
    }
    uint16_t some[8];
    _mm_storeu_si128((__m128i *)(void *)some, x);
    for (size_t i = 0; i < n; i++)
        memcpy((char *)p + 2 * i, &some[i], 2);
}
/* The low halves of the lanes, and f16. */
QK_INLINE __m128i qv_high16(qv_i x) {
    const __m256i high = _mm256_srli_epi32(x, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
QK_INLINE __m128i qv_to_f16(qv_f x) {
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Four vectors to saturated bytes: n of the 4 QV_LANES. */
QK_INLINE void qv_store1(void *p, size_t n, const qv_i v[4], bool is_signed) {
    const __m256i bytes = is_signed ? qk256_pack8(v, true) : qk256_pack8(v, false);
    if (n >= 32) {
        _mm256_storeu_si256((__m256i *)p, bytes);
        return;
    }
    uint8_t some[32];
    _mm256_storeu_si256((__m256i *)(void *)some, bytes);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = some[i];
}

#endif
