/* One vector of floats and its operations, under the flags of any level from avx2 on: sixteen with AVX-512, eight with AVX2.
 * A kernel whose body does not care is written once, in <family>_body.h, which <family>_avx2.c and <family>_avx512.c include.
 *
 * `_n` forms touch n < QKV_LANES elements only; lanes beyond them are 0. Data types are constants where they are used: the
 * functions are inlined, and one branch of each remains. */
#ifndef QK_SIMD_VEC_H
#define QK_SIMD_VEC_H

#include "kernels/simd/bf16.h"
#include "qdq/qdq.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

QK_INLINE size_t qkv_bytes(qdq_dtype d) {
    return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_S32 ? 4 : d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16 ? 2 : 1;
}

QK_INLINE bool qkv_is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

#if defined(__AVX512F__)

typedef __m512 qkv;
enum { QKV_LANES = 16 };

QK_INLINE __mmask16 qkv_first(size_t n) {
    return (__mmask16)((1u << n) - 1u);
}
QK_INLINE qkv qkv_set(float x) {
    return _mm512_set1_ps(x);
}
QK_INLINE qkv qkv_loadu(const float *p) {
    return _mm512_loadu_ps(p);
}
QK_INLINE qkv qkv_loadu_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(qkv_first(n), p);
}
QK_INLINE void qkv_storeu(float *p, qkv v) {
    _mm512_storeu_ps(p, v);
}
QK_INLINE void qkv_storeu_n(float *p, qkv v, size_t n) {
    _mm512_mask_storeu_ps(p, qkv_first(n), v);
}
QK_INLINE qkv qkv_add(qkv a, qkv b) {
    return _mm512_add_ps(a, b);
}
QK_INLINE qkv qkv_sub(qkv a, qkv b) {
    return _mm512_sub_ps(a, b);
}
QK_INLINE qkv qkv_mul(qkv a, qkv b) {
    return _mm512_mul_ps(a, b);
}
QK_INLINE qkv qkv_fma(qkv a, qkv b, qkv c) { /* a b + c */
    return _mm512_fmadd_ps(a, b, c);
}
QK_INLINE qkv qkv_fnma(qkv a, qkv b, qkv c) { /* c - a b */
    return _mm512_fnmadd_ps(a, b, c);
}
QK_INLINE qkv qkv_max(qkv a, qkv b) { /* b when either is a NaN */
    return _mm512_max_ps(a, b);
}
QK_INLINE qkv qkv_min(qkv a, qkv b) {
    return _mm512_min_ps(a, b);
}
QK_INLINE qkv qkv_abs(qkv a) {
    return _mm512_abs_ps(a);
}
QK_INLINE qkv qkv_round(qkv a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
QK_INLINE qkv qkv_less(qkv a, qkv b, qkv yes, qkv no) { /* a < b ? yes : no */
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
/* Lanes beyond n replaced. */
QK_INLINE qkv qkv_keep(qkv a, size_t n, qkv other) {
    return _mm512_mask_blend_ps(qkv_first(n), other, a);
}
QK_INLINE qkv qkv_nan(qkv a, qkv v) { /* v where that is a NaN, else a */
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v);
}
QK_INLINE bool qkv_any_nan(qkv a) {
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0;
}
QK_INLINE float qkv_hsum(qkv a) {
    return _mm512_reduce_add_ps(a);
}
QK_INLINE float qkv_hmax(qkv a) {
    return _mm512_reduce_max_ps(a);
}
QK_INLINE float qkv_hmin(qkv a) {
    return _mm512_reduce_min_ps(a);
}
QK_INLINE float qkv_hprod(qkv a) {
    return _mm512_reduce_mul_ps(a);
}
QK_INLINE qkv qkv_scale2(qkv p, qkv n) { /* p 2^n */
    return _mm512_scalef_ps(p, n);
}
/* To the upper halves of lanes: one permute, where to widen and to shift are two on the same pipes. */
QK_INLINE qkv qkv_of_bf16(__m256i x) {
    static const uint16_t odd[32] = {0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                                     0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(odd), _mm512_castsi256_si512(x)));
}
QK_INLINE qkv qkv_load(qdq_dtype d, const void *p) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16: return qkv_of_bf16(_mm256_loadu_si256((const __m256i *)p));
    case QDQ_DTYPE_F16: return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    case QDQ_DTYPE_U8: return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
    case QDQ_DTYPE_S8: return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
    case QDQ_DTYPE_S32: return _mm512_cvtepi32_ps(_mm512_loadu_si512(p));
    default: return _mm512_loadu_ps(p);
    }
}
QK_INLINE qkv qkv_load_n(qdq_dtype d, const void *p, size_t n) {
    const __mmask16 m = qkv_first(n);
    switch ((int)d) {
    case QDQ_DTYPE_BF16: return qkv_of_bf16(_mm256_maskz_loadu_epi16(m, p));
    case QDQ_DTYPE_F16: return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
    case QDQ_DTYPE_U8: return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, p)));
    case QDQ_DTYPE_S8: return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, p)));
    case QDQ_DTYPE_S32: return _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(m, p));
    default: return _mm512_maskz_loadu_ps(m, p);
    }
}
/* Rounded half to even to the upper half of each lane. */
QK_INLINE __m512i qkv_bf16_rounded(qkv v) {
    const __m512i u = _mm512_castps_si512(v), one = _mm512_set1_epi32(1);
    const __m512i up = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(_mm512_srli_epi32(u, 16), one));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_add_epi32(u, up), nan, u, _mm512_set1_epi32(0x400000)); /* a quiet NaN */
}
QK_INLINE __m256i qkv_bf16_bits(qkv v) {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(qkv_bf16_rounded(v), 16));
}
/* Integers, rounded half to even. What is too large for s32 counts as large, so does a NaN; too small comes out as the smallest. */
QK_INLINE __m512i qkv_int(qkv v) {
    return _mm512_cvtps_epi32(qkv_min(v, qkv_set(0x1p30f)));
}
QK_INLINE __m128i qkv_x8_bits(qdq_dtype d, qkv v) {
    const __m512i q = qkv_int(v);
    if (d == QDQ_DTYPE_S8) return _mm512_cvtsepi32_epi8(q);
    return _mm512_cvtusepi32_epi8(_mm512_max_epi32(q, _mm512_setzero_si512()));
}
/* To 8 bits: rounded and saturated. */
QK_INLINE void qkv_store(qdq_dtype d, void *p, qkv v) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16: _mm256_storeu_si256((__m256i *)p, qkv_bf16_bits(v)); break;
    case QDQ_DTYPE_F16: _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, 0)); break;
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8: _mm_storeu_si128((__m128i *)p, qkv_x8_bits(d, v)); break;
    default: _mm512_storeu_ps(p, v); break;
    }
}
QK_INLINE void qkv_store_n(qdq_dtype d, void *p, qkv v, size_t n) {
    const __mmask16 m = qkv_first(n);
    switch ((int)d) {
    case QDQ_DTYPE_BF16: _mm256_mask_storeu_epi16(p, m, qkv_bf16_bits(v)); break;
    case QDQ_DTYPE_F16: _mm256_mask_storeu_epi16(p, m, _mm512_cvtps_ph(v, 0)); break;
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8: _mm_mask_storeu_epi8(p, m, qkv_x8_bits(d, v)); break;
    default: _mm512_mask_storeu_ps(p, m, v); break;
    }
}
/* 4 QKV_LANES bytes from four vectors of integers. */
QK_INLINE void qkv_store4_ints(qdq_dtype d, void *p, __m512i w, __m512i x, __m512i y, __m512i z) {
    const __m512i a = _mm512_packs_epi32(w, x), b = _mm512_packs_epi32(y, z);
    const __m512i q = d == QDQ_DTYPE_S8 ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    /* packs work inside 128-bit lanes */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, q));
}
/* Four vectors whose values are known to fit s32, as qkv_store4. */
QK_INLINE void qkv_store4_small(qdq_dtype d, void *p, const qkv v[4]) {
    qkv_store4_ints(d, p, _mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]), _mm512_cvtps_epi32(v[2]),
                    _mm512_cvtps_epi32(v[3]));
}
/* Four vectors in a row. */
QK_INLINE void qkv_store4(qdq_dtype d, void *p, const qkv v[4]) {
    if (d == QDQ_DTYPE_BF16) {
        _mm512_storeu_si512(p, qk_bf16_of(v[0], v[1]));
        _mm512_storeu_si512((char *)p + 64, qk_bf16_of(v[2], v[3]));
        return;
    }
    if (d != QDQ_DTYPE_U8 && d != QDQ_DTYPE_S8) {
        QK_FOUR_TIMES(k, qkv_store(d, (char *)p + (size_t)k * QKV_LANES * qkv_bytes(d), v[k]));
        return;
    }
    qkv_store4_ints(d, p, qkv_int(v[0]), qkv_int(v[1]), qkv_int(v[2]), qkv_int(v[3]));
}

#else

typedef __m256 qkv;
enum { QKV_LANES = 8 };

QK_INLINE __m256i qkv_first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
QK_INLINE qkv qkv_set(float x) {
    return _mm256_set1_ps(x);
}
QK_INLINE qkv qkv_loadu(const float *p) {
    return _mm256_loadu_ps(p);
}
QK_INLINE qkv qkv_loadu_n(const float *p, size_t n) {
    return _mm256_maskload_ps(p, qkv_first(n));
}
QK_INLINE void qkv_storeu(float *p, qkv v) {
    _mm256_storeu_ps(p, v);
}
QK_INLINE void qkv_storeu_n(float *p, qkv v, size_t n) {
    _mm256_maskstore_ps(p, qkv_first(n), v);
}
QK_INLINE qkv qkv_add(qkv a, qkv b) {
    return _mm256_add_ps(a, b);
}
QK_INLINE qkv qkv_sub(qkv a, qkv b) {
    return _mm256_sub_ps(a, b);
}
QK_INLINE qkv qkv_mul(qkv a, qkv b) {
    return _mm256_mul_ps(a, b);
}
QK_INLINE qkv qkv_fma(qkv a, qkv b, qkv c) {
    return _mm256_fmadd_ps(a, b, c);
}
QK_INLINE qkv qkv_fnma(qkv a, qkv b, qkv c) {
    return _mm256_fnmadd_ps(a, b, c);
}
QK_INLINE qkv qkv_max(qkv a, qkv b) {
    return _mm256_max_ps(a, b);
}
QK_INLINE qkv qkv_min(qkv a, qkv b) {
    return _mm256_min_ps(a, b);
}
QK_INLINE qkv qkv_abs(qkv a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
QK_INLINE qkv qkv_round(qkv a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
QK_INLINE qkv qkv_less(qkv a, qkv b, qkv yes, qkv no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
QK_INLINE qkv qkv_keep(qkv a, size_t n, qkv other) {
    return _mm256_blendv_ps(other, a, _mm256_castsi256_ps(qkv_first(n)));
}
QK_INLINE qkv qkv_nan(qkv a, qkv v) {
    return _mm256_blendv_ps(a, v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
QK_INLINE bool qkv_any_nan(qkv a) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)) != 0;
}
#define QKV_HORIZONTAL(name, op)                                                                                       \
    QK_INLINE float name(qkv a) {                                                                                      \
        __m128 x = _mm_##op##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));                              \
        x = _mm_##op##_ps(x, _mm_movehl_ps(x, x));                                                                     \
        return _mm_cvtss_f32(_mm_##op##_ss(x, _mm_movehdup_ps(x)));                                                    \
    }
QKV_HORIZONTAL(qkv_hsum, add)
QKV_HORIZONTAL(qkv_hmax, max)
QKV_HORIZONTAL(qkv_hmin, min)
QKV_HORIZONTAL(qkv_hprod, mul)
#undef QKV_HORIZONTAL
QK_INLINE qkv qkv_scale2(qkv p, qkv n) { /* in two steps: 2^n itself may be out of range */
    const __m256i k = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}
QK_INLINE qkv qkv_load(qdq_dtype d, const void *p) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16:
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
    case QDQ_DTYPE_F16: return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    case QDQ_DTYPE_U8: return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
    case QDQ_DTYPE_S8: return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
    case QDQ_DTYPE_S32: return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p));
    default: return _mm256_loadu_ps(p);
    }
}
QK_INLINE qkv qkv_load_n(qdq_dtype d, const void *p, size_t n) {
    if (d == QDQ_DTYPE_F32) return qkv_loadu_n(p, n);
    uint8_t room[32] = {0};
    memcpy(room, p, n * qkv_bytes(d));
    return qkv_load(d, room);
}
QK_INLINE __m128i qkv_bf16_bits(qkv v) {
    const __m256i u = _mm256_castps_si256(v), one = _mm256_set1_epi32(1);
    const __m256i up = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(_mm256_srli_epi32(u, 16), one));
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const __m256 quiet = _mm256_castsi256_ps(_mm256_or_si256(u, _mm256_set1_epi32(0x400000)));
    const __m256 r = _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_add_epi32(u, up)), quiet, nan);
    const __m256i w = _mm256_srli_epi32(_mm256_castps_si256(r), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
}
QK_INLINE __m256i qkv_int(qkv v) {
    return _mm256_cvtps_epi32(qkv_min(v, qkv_set(0x1p30f)));
}
QK_INLINE void qkv_store(qdq_dtype d, void *p, qkv v) {
    switch ((int)d) {
    case QDQ_DTYPE_BF16: _mm_storeu_si128((__m128i *)p, qkv_bf16_bits(v)); break;
    case QDQ_DTYPE_F16: _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, 0)); break;
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8: {
        const __m256i q = qkv_int(v);
        const __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        _mm_storel_epi64((__m128i *)p, d == QDQ_DTYPE_S8 ? _mm_packs_epi16(w, w) : _mm_packus_epi16(w, w));
        break;
    }
    default: _mm256_storeu_ps(p, v); break;
    }
}
QK_INLINE void qkv_store_n(qdq_dtype d, void *p, qkv v, size_t n) {
    if (d == QDQ_DTYPE_F32) {
        qkv_storeu_n(p, v, n);
        return;
    }
    uint8_t room[32];
    qkv_store(d, room, v);
    memcpy(p, room, n * qkv_bytes(d));
}
QK_INLINE void qkv_store4_ints(qdq_dtype d, void *p, __m256i w, __m256i x, __m256i y, __m256i z) {
    const __m256i a = _mm256_packs_epi32(w, x), b = _mm256_packs_epi32(y, z);
    const __m256i q = d == QDQ_DTYPE_S8 ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)p, _mm256_permutevar8x32_epi32(q, order));
}
QK_INLINE void qkv_store4_small(qdq_dtype d, void *p, const qkv v[4]) {
    qkv_store4_ints(d, p, _mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]), _mm256_cvtps_epi32(v[2]),
                    _mm256_cvtps_epi32(v[3]));
}
QK_INLINE void qkv_store4(qdq_dtype d, void *p, const qkv v[4]) {
    if (d != QDQ_DTYPE_U8 && d != QDQ_DTYPE_S8) {
        QK_FOUR_TIMES(k, qkv_store(d, (char *)p + (size_t)k * QKV_LANES * qkv_bytes(d), v[k]));
        return;
    }
    qkv_store4_ints(d, p, qkv_int(v[0]), qkv_int(v[1]), qkv_int(v[2]), qkv_int(v[3]));
}

#endif

QK_INLINE qkv qkv_zero(void) {
    return qkv_set(0.0f);
}

/* e^x to one unit in the last place; 0 below -104, infinite above 89; a NaN stays one.
 * x = n ln 2 + r, |r| <= ln 2 / 2; e^r by a polynomial of relative error 3e-9. */
QK_INLINE qkv qkv_exp(qkv x) {
    x = qkv_max(qkv_set(-104.0f), qkv_min(qkv_set(89.0f), x)); /* a NaN comes through as the second operand */
    const qkv n = qkv_round(qkv_mul(x, qkv_set(1.44269504f)));
    qkv r = qkv_fnma(n, qkv_set(0.693359375f), x);
    r = qkv_fnma(n, qkv_set(-2.12194440e-4f), r);
    qkv q = qkv_set(0.0013814467238262296f);
    q = qkv_fma(q, r, qkv_set(0.008368780836462975f));
    q = qkv_fma(q, r, qkv_set(0.04166839271783829f));
    q = qkv_fma(q, r, qkv_set(0.1666651964187622f));
    q = qkv_fma(q, r, qkv_set(0.4999999403953552f));
    q = qkv_fma(qkv_mul(r, r), q, r);
    return qkv_scale2(qkv_add(q, qkv_set(1.0f)), n);
}

/* The same for x <= 0 (or a NaN) to two units, with a step less. */
QK_INLINE qkv qkv_exp_negative(qkv x) {
    x = qkv_max(qkv_set(-104.0f), x);
    const qkv n = qkv_round(qkv_mul(x, qkv_set(1.44269504f)));
    qkv r = qkv_fnma(n, qkv_set(0.693359375f), x);
    r = qkv_fnma(n, qkv_set(-2.12194440e-4f), r);
    qkv q = qkv_fma(qkv_set(0.008312477730214596f), r, qkv_set(0.041890550404787064f));
    q = qkv_fma(q, r, qkv_set(0.16667115688323975f));
    q = qkv_fma(q, r, qkv_set(0.4999922811985016f));
    q = qkv_fma(q, r, qkv_set(1.0f));
    return qkv_scale2(qkv_fma(q, r, qkv_set(1.0f)), n);
}

/* Run the statement with `name` the constant data type that `dtype` is, of those that rows of floats are loaded from. */
#define QKV_TYPE_CASE(type, name, ...)                                                                                 \
    case QDQ_DTYPE_##type: {                                                                                           \
        enum { name = QDQ_DTYPE_##type };                                                                              \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }
#define QKV_BY_TYPE(dtype, name, ...)                                                                                  \
    switch ((int)(dtype)) {                                                                                            \
        QKV_TYPE_CASE(F32, name, __VA_ARGS__)                                                                          \
        QKV_TYPE_CASE(BF16, name, __VA_ARGS__)                                                                         \
        QKV_TYPE_CASE(F16, name, __VA_ARGS__)                                                                          \
        QKV_TYPE_CASE(U8, name, __VA_ARGS__)                                                                           \
        QKV_TYPE_CASE(S8, name, __VA_ARGS__)                                                                           \
    default: break;                                                                                                    \
    }

#endif
