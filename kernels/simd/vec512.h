/* Vectors of 16 floats under the names that simd/vmath.h and bodies shared by two levels use; the twin is vec256.h. Comparisons are
 * false for NaN. qv_min and qv_max give the second operand when either is a NaN. */
#ifndef QK_SIMD_VEC512_H
#define QK_SIMD_VEC512_H

#include "kernels/simd/avx512_x8.h"

#include <stdint.h>

typedef __m512 qv_f;
typedef __m512i qv_i;
typedef __mmask16 qv_m;
enum { QV_LANES = 16 };

#define qv_set1(x)          _mm512_set1_ps(x)
#define qv_set1i(x)         _mm512_set1_epi32(x)
#define qv_add(a, b)        _mm512_add_ps(a, b)
#define qv_sub(a, b)        _mm512_sub_ps(a, b)
#define qv_mul(a, b)        _mm512_mul_ps(a, b)
#define qv_div(a, b)        _mm512_div_ps(a, b)
#define qv_min(a, b)        _mm512_min_ps(a, b)
#define qv_max(a, b)        _mm512_max_ps(a, b)
#define qv_sqrt(a)          _mm512_sqrt_ps(a)
#define qv_fma(a, b, c)     _mm512_fmadd_ps(a, b, c)  /* a b + c */
#define qv_fnma(a, b, c)    _mm512_fnmadd_ps(a, b, c) /* c - a b */
#define qv_fms(a, b, c)     _mm512_fmsub_ps(a, b, c)  /* a b - c */
#define qv_fnms(a, b, c)    _mm512_fnmsub_ps(a, b, c) /* -a b - c */
#define qv_rint(a)          _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define qv_gt(a, b)         _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)
#define qv_ge(a, b)         _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ)
#define qv_lt(a, b)         _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define qv_eq(a, b)         _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define qv_sel(m, yes, no)  _mm512_mask_blend_ps(m, no, yes)
#define qv_seli(m, yes, no) _mm512_mask_blend_epi32(m, no, yes)
#define qv_signi(a)         _mm512_movepi32_mask(a) /* lanes below zero */
#define qv_bits(a)          _mm512_castps_si512(a)
#define qv_of_bits(a)       _mm512_castsi512_ps(a)
#define qv_to_int(a)        _mm512_cvtps_epi32(a) /* half to even */
#define qv_of_int(a)        _mm512_cvtepi32_ps(a)
#define qv_addi(a, b)       _mm512_add_epi32(a, b)
#define qv_subi(a, b)       _mm512_sub_epi32(a, b)
#define qv_muli(a, b)       _mm512_mullo_epi32(a, b)
#define qv_andi(a, b)       _mm512_and_si512(a, b)
#define qv_ori(a, b)        _mm512_or_si512(a, b)
#define qv_xori(a, b)       _mm512_xor_si512(a, b)
#define qv_srai(a, n)       _mm512_srai_epi32(a, n)
#define qv_slli(a, n)       _mm512_slli_epi32(a, n)
#define qv_load(p)          _mm512_loadu_ps(p)
#define qv_loadi(p)         _mm512_loadu_si512(p)
#define qv_store(p, a)      _mm512_storeu_ps(p, a)
#define qv_storei(p, a)     _mm512_storeu_si512(p, a)

/* p * 2^n for integral n. */
QK_INLINE qv_f qv_scale2(qv_f p, qv_f n) {
    return _mm512_scalef_ps(p, n);
}

/* n elements of 4, 2, 1 bytes, the first lanes; zeros behind them. n = QV_LANES reads all. */
QK_INLINE qv_i qv_load4(const void *p, size_t n) {
    return n >= QV_LANES ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(qk512_lanes(n), p);
}
QK_INLINE __m256i qv_load2(const void *p, size_t n) {
    return n >= QV_LANES ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(qk512_lanes(n), p);
}
QK_INLINE __m128i qv_load1(const void *p, size_t n) {
    return n >= QV_LANES ? _mm_loadu_si128((const __m128i *)p) : _mm_maskz_loadu_epi8(qk512_lanes(n), p);
}
QK_INLINE qv_i qv_of_u16(__m256i x) {
    return _mm512_cvtepu16_epi32(x);
}
QK_INLINE qv_f qv_of_f16(__m256i x) {
    return _mm512_cvtph_ps(x);
}
QK_INLINE qv_i qv_of_s8(__m128i x) {
    return _mm512_cvtepi8_epi32(x);
}
QK_INLINE qv_i qv_of_u8(__m128i x) {
    return _mm512_cvtepu8_epi32(x);
}
QK_INLINE void qv_store4(void *p, size_t n, qv_i x) {
    if (n >= QV_LANES)
        _mm512_storeu_si512(p, x);
    else
        _mm512_mask_storeu_epi32(p, qk512_lanes(n), x);
}
QK_INLINE void qv_store2(void *p, size_t n, __m256i x) {
    if (n >= QV_LANES)
        _mm256_storeu_si256((__m256i *)p, x);
    else
        _mm256_mask_storeu_epi16(p, qk512_lanes(n), x);
}
/* The low halves of the lanes, and f16. */
QK_INLINE __m256i qv_high16(qv_i x) {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16));
}
QK_INLINE __m256i qv_to_f16(qv_f x) {
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Four vectors to saturated bytes: n of the 4 QV_LANES. */
QK_INLINE void qv_store1(void *p, size_t n, const qv_i v[4], bool is_signed) {
    if (n == QV_LANES) { /* one vector has nothing to be packed with */
        const qv_i u = is_signed ? v[0] : _mm512_max_epi32(v[0], _mm512_setzero_si512());
        _mm_storeu_si128((__m128i *)p, is_signed ? _mm512_cvtsepi32_epi8(u) : _mm512_cvtusepi32_epi8(u));
        return;
    }
    const __m512i bytes = is_signed ? qk512_pack8(v, true) : qk512_pack8(v, false);
    if (n >= 64)
        _mm512_storeu_si512(p, bytes);
    else
        _mm512_mask_storeu_epi8(p, ((__mmask64)1 << n) - 1, bytes);
}

#endif
