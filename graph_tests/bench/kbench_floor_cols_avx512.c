#include "kbench_floor_cols.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

QK_INLINE void store8(int8_t *dst, __m512 x) {
    _mm_storeu_si128((__m128i *)dst, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
}

static void affine_s8(const int8_t *src, int8_t *dst, size_t n, const float *factor, const float *shift) {
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k;
                      __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(src + at))));
                      store8(dst + at, _mm512_fmadd_ps(x, _mm512_loadu_ps(factor + at), _mm512_loadu_ps(shift + at))));
}

QK_INLINE void affine_16(const int8_t *src, int8_t *dst, __m512 factor, __m512 shift) {
    const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)src)));
    store8(dst, _mm512_fmadd_ps(x, factor, shift));
}

static void affine_one_s8(const int8_t *src, int8_t *dst, size_t n, float factor, float shift) {
    const __m512 f = _mm512_set1_ps(factor), s = _mm512_set1_ps(shift);
    size_t i = 0;
    for (; n - i >= 64; i += 64)
        QK_FOUR_TIMES(k, affine_16(src + i + 16 * k, dst + i + 16 * k, f, s));
    for (; i < n; i += 16)
        affine_16(src + i, dst + i, f, s);
}

static void finish_s8(const int32_t *acc, int8_t *dst, size_t n, const float *factor, const float *shift) {
    const __m512 zero = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k; __m512 x = _mm512_cvtepi32_ps(_mm512_loadu_si512(acc + at));
                      x = _mm512_fmadd_ps(x, _mm512_loadu_ps(factor + at), _mm512_loadu_ps(shift + at));
                      store8(dst + at, _mm512_max_ps(x, zero)));
}

static void finish_f32(const int32_t *acc, float *dst, size_t n, const float *factor, const float *shift) {
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k; __m512 x = _mm512_cvtepi32_ps(_mm512_loadu_si512(acc + at));
                      x = _mm512_fmadd_ps(x, _mm512_loadu_ps(factor + at), _mm512_loadu_ps(shift + at));
                      _mm512_storeu_ps(dst + at, x));
}

static void round_s8(const float *acc, int8_t *dst, size_t n, float factor, const float *shift) {
    const __m512 zero = _mm512_setzero_ps(), f = _mm512_set1_ps(factor);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k;
                      __m512 x = _mm512_add_ps(_mm512_loadu_ps(acc + at), _mm512_loadu_ps(shift + at));
                      store8(dst + at, _mm512_mul_ps(_mm512_max_ps(x, zero), f)));
}

static void dequantize_u8(const uint8_t *src, float *dst, size_t n, float factor, float base) {
    const __m512 f = _mm512_set1_ps(factor), b = _mm512_set1_ps(base);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k;
                      __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(src + at))));
                      _mm512_storeu_ps(dst + at, _mm512_fmadd_ps(x, f, b)));
}

const kbench_col_floors kbench_col_floors_avx512 = {affine_s8,  affine_one_s8, finish_s8,
                                                    finish_f32, round_s8,      dequantize_u8};
