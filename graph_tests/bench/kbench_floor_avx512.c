#include "kbench_floor.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

QK_INLINE __m128i narrow(__m512 x) {
    return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x));
}
QK_INLINE __m512 widen(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static void quantize_s8(const float *src, int8_t *dst, size_t n, float factor, float zp) {
    const __m512 f = _mm512_set1_ps(factor), z = _mm512_set1_ps(zp);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, _mm_storeu_si128((__m128i *)(dst + i + 16 * k),
                                          narrow(_mm512_fmadd_ps(_mm512_loadu_ps(src + i + 16 * k), f, z))));
}

static void dequantize_s8(const int8_t *src, float *dst, size_t n, float factor, bool streaming) {
    const __m512 f = _mm512_set1_ps(factor);
    if (streaming)
        for (size_t i = 0; i < n; i += 64)
            QK_FOUR_TIMES(k, _mm512_stream_ps(dst + i + 16 * k, _mm512_mul_ps(widen(src + i + 16 * k), f)));
    else
        for (size_t i = 0; i < n; i += 64)
            QK_FOUR_TIMES(k, _mm512_storeu_ps(dst + i + 16 * k, _mm512_mul_ps(widen(src + i + 16 * k), f)));
}

static void requantize_s8(const int8_t *src, int8_t *dst, size_t n, float factor, float low, float zp) {
    const __m512 f = _mm512_set1_ps(factor), l = _mm512_set1_ps(low), z = _mm512_set1_ps(zp);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, __m512 x = _mm512_max_ps(_mm512_mul_ps(widen(src + i + 16 * k), f), l);
                      _mm_storeu_si128((__m128i *)(dst + i + 16 * k), narrow(_mm512_add_ps(x, z))));
}

static void add_relu_s8(const int8_t *a, const int8_t *b, int8_t *dst, size_t n, float a_factor, float b_factor) {
    const __m512 f = _mm512_set1_ps(a_factor), g = _mm512_set1_ps(b_factor);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, __m512 x = _mm512_fmadd_ps(widen(a + i + 16 * k), f, _mm512_mul_ps(widen(b + i + 16 * k), g));
                      _mm_storeu_si128((__m128i *)(dst + i + 16 * k), narrow(_mm512_max_ps(x, _mm512_setzero_ps()))));
}

/* The last results may be made twice. */
static void max_2x2_u8(const uint8_t *row0, const uint8_t *row1, uint8_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m512i m = _mm512_max_epu8(_mm512_loadu_si512(row0 + 2 * i), _mm512_loadu_si512(row1 + 2 * i));
        m = _mm512_max_epu8(m, _mm512_srli_epi16(m, 8));
        _mm256_storeu_si256((__m256i *)(dst + i), _mm512_cvtepi16_epi8(m));
    }
    while (i < n) {
        const size_t k = n - i < 16 ? n - 16 : i;
        __m256i m = _mm256_max_epu8(_mm256_loadu_si256((const __m256i *)(row0 + 2 * k)),
                                    _mm256_loadu_si256((const __m256i *)(row1 + 2 * k)));
        m = _mm256_max_epu8(m, _mm256_srli_epi16(m, 8));
        _mm_storeu_si128((__m128i *)(dst + k), _mm256_cvtepi16_epi8(m));
        i = k + 16;
    }
}

const kbench_floors kbench_floors_avx512 = {quantize_s8, dequantize_s8, requantize_s8, add_relu_s8, max_2x2_u8};
