/* One spelling for the instructions and building blocks (avx2_x8.h, avx512_x8.h) of both widths, for bodies on quantized data that
 * differ in nothing else: <family>_body.h, which <family>_avx2.c and <family>_avx512.c include. The width is that of the including
 * file's flags. (vec.h is one float vector with its memory forms, for bodies on floats.) */
#ifndef QK_SIMD_WIDE_H
#define QK_SIMD_WIDE_H

#include <stdint.h>

#if defined(__AVX512BW__)

#include "kernels/simd/avx512_x8.h"

/* QKW(add_ps)(a, b): an instruction. QKX(divide)(d, x): a building block of avx512_x8.h. */
#define QKW(name) _mm512_##name
#define QKX(name) qk512_##name

enum { QKW_LANES = 16 };
typedef __m512 qkw_f;
typedef __m512i qkw_i;

/* Has every lane one of the bits, which are the upper ones of its lower word? */
QK_INLINE bool qkw_all_sure(const qkw_i w[4], qkw_i bits) {
    __mmask16 sure = 0xffff;
    QK_FOUR_TIMES(k, sure = _mm512_mask_test_epi32_mask(sure, w[k], bits));
    return sure == 0xffff;
}

QK_INLINE bool qkw_fixed_all_sure(const qkw_i w[4]) {
    /* a sum is sure when its lower half is 16 at least */
    const qkw_i a = _mm512_min_epu16(w[0], w[1]), b = _mm512_min_epu16(w[2], w[3]);
    return _mm512_test_epi32_mask(_mm512_min_epu16(a, b), _mm512_set1_epi32(QK_FIXED_SURE)) == 0xffff;
}

QK_INLINE qkw_i qkw_load(const void *p) {
    return _mm512_loadu_si512(p);
}
QK_INLINE void qkw_store(void *p, qkw_i v) {
    _mm512_storeu_si512(p, v);
}
/* Past the caches; p on a whole register. */
QK_INLINE void qkw_stream(void *p, qkw_i v) {
    _mm512_stream_si512((__m512i *)p, v);
}
QK_INLINE qkw_i qkw_load_u16(const void *p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
QK_INLINE qkw_i qkw_load_s16(const void *p) {
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
QK_INLINE qkw_f qkw_as_f(qkw_i v) {
    return _mm512_castsi512_ps(v);
}
QK_INLINE qkw_i qkw_as_i(qkw_f v) {
    return _mm512_castps_si512(v);
}
QK_INLINE qkw_i qkw_xor(qkw_i a, qkw_i b) {
    return _mm512_xor_si512(a, b);
}
QK_INLINE qkw_i qkw_and(qkw_i a, qkw_i b) {
    return _mm512_and_si512(a, b);
}
/* a where the word x is at most y (unsigned), else b. */
QK_INLINE qkw_i qkw_where_at_most(qkw_i x, qkw_i y, qkw_i a, qkw_i b) {
    return _mm512_mask_blend_epi16(_mm512_cmple_epu16_mask(x, y), b, a);
}
/* Bytes: b where the top bit of x is set, else a. */
QK_INLINE qkw_i qkw_by_top_bit(qkw_i x, qkw_i a, qkw_i b) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), a, b);
}
/* The word a, and one more where the sum of words that is x is less than one of its parts y: where it has wrapped. */
QK_INLINE qkw_i qkw_add_carry(qkw_i a, qkw_i x, qkw_i y) {
    return _mm512_mask_sub_epi16(a, _mm512_cmplt_epu16_mask(x, y), a, _mm512_set1_epi16(-1));
}
/* Sixteen bytes in every lane. */
QK_INLINE qkw_i qkw_four_times(const uint8_t bytes[16]) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)bytes));
}
/* The low bytes of all words, in the lower half. */
QK_INLINE qkw_i qkw_even_bytes(qkw_i v) {
    return _mm512_castsi256_si512(_mm512_cvtepi16_epi8(v));
}
QK_INLINE void qkw_store_low(void *p, qkw_i v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(v));
}
QK_INLINE qkw_f qkw_trunc(qkw_f x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
QK_INLINE qkw_f qkw_rint(qkw_f x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* x, and 0 where x is a NaN. */
QK_INLINE qkw_f qkw_no_nan(qkw_f x) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
}
/* a where x < y, else b. */
QK_INLINE qkw_f qkw_where_less(qkw_f x, qkw_f y, qkw_f a, qkw_f b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a);
}

#else

#include "kernels/simd/avx2_x8.h"

#define QKW(name) _mm256_##name
#define QKX(name) qk256_##name

enum { QKW_LANES = 8 };
typedef __m256 qkw_f;
typedef __m256i qkw_i;

QK_INLINE bool qkw_all_sure(const qkw_i w[4], qkw_i bits) {
    const qkw_i a = _mm256_min_epu16(w[0], w[1]), b = _mm256_min_epu16(w[2], w[3]);
    return qk256_all_sure(_mm256_and_si256(_mm256_min_epu16(a, b), bits));
}

QK_INLINE bool qkw_fixed_all_sure(const qkw_i w[4]) {
    return qk256_all_sure(qk256_fixed_sure(w));
}

QK_INLINE qkw_i qkw_load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
QK_INLINE void qkw_store(void *p, qkw_i v) {
    _mm256_storeu_si256((__m256i *)p, v);
}
QK_INLINE void qkw_stream(void *p, qkw_i v) {
    _mm256_stream_si256((__m256i *)p, v);
}
QK_INLINE qkw_i qkw_load_u16(const void *p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
QK_INLINE qkw_i qkw_load_s16(const void *p) {
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)p));
}
QK_INLINE qkw_f qkw_as_f(qkw_i v) {
    return _mm256_castsi256_ps(v);
}
QK_INLINE qkw_i qkw_as_i(qkw_f v) {
    return _mm256_castps_si256(v);
}
QK_INLINE qkw_i qkw_xor(qkw_i a, qkw_i b) {
    return _mm256_xor_si256(a, b);
}
QK_INLINE qkw_i qkw_and(qkw_i a, qkw_i b) {
    return _mm256_and_si256(a, b);
}
QK_INLINE qkw_i qkw_where_at_most(qkw_i x, qkw_i y, qkw_i a, qkw_i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpeq_epi16(_mm256_min_epu16(x, y), x));
}
QK_INLINE qkw_i qkw_by_top_bit(qkw_i x, qkw_i a, qkw_i b) {
    return _mm256_blendv_epi8(a, b, x);
}
QK_INLINE qkw_i qkw_add_carry(qkw_i a, qkw_i x, qkw_i y) {
    qkw_i not_less = _mm256_cmpeq_epi16(_mm256_max_epu16(x, y), x); /* all ones, or where it has wrapped 0 */
    return _mm256_add_epi16(a, _mm256_add_epi16(not_less, _mm256_set1_epi16(1)));
}
QK_INLINE qkw_i qkw_four_times(const uint8_t bytes[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
}
QK_INLINE qkw_i qkw_even_bytes(qkw_i v) {
    v = _mm256_and_si256(v, _mm256_set1_epi16(0xff));
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(v, v), 0x08);
}
QK_INLINE void qkw_store_low(void *p, qkw_i v) {
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(v));
}
QK_INLINE qkw_f qkw_trunc(qkw_f x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
QK_INLINE qkw_f qkw_rint(qkw_f x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
QK_INLINE qkw_f qkw_no_nan(qkw_f x) {
    return _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}
QK_INLINE qkw_f qkw_where_less(qkw_f x, qkw_f y, qkw_f a, qkw_f b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}

#endif

/* Rounded to integers, half away from zero: the largest number below a half, with the sign of x, is added and what is behind the
 * point dropped. (A half itself would round 0.49999997 up.) From 2^23 on x is an integer, and stays what it is. */
QK_INLINE qkw_f qkw_round_away(qkw_f x) {
    const qkw_f sign = QKW(set1_ps)(-0.0f);
    return qkw_trunc(QKW(add_ps)(x, QKW(or_ps)(QKW(and_ps)(x, sign), QKW(set1_ps)(0x1.fffffep-2f))));
}

#endif
