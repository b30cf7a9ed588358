/* Sums of bytes and of their squares, exact. Under the flags of any level from avx2 on. */
#ifndef QK_SIMD_SUMS8_H
#define QK_SIMD_SUMS8_H

#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qks_sums {
    int64_t sum, squares;
} qks_sums;

QK_INLINE void qk_sums8_add(qks_sums *s, const void *p, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i++) {
        const int64_t v = is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
        s->sum += v;
        s->squares += v * v;
    }
}

#if defined(__AVX512F__)

/* 32 bytes to words, whose products with themselves and with 1 are added in pairs: at most 130050 to a lane. */
QK_INLINE qks_sums qk_sums8(const void *src, size_t n, bool is_signed) {
    const char *p = src;
    const __m512i one = _mm512_set1_epi16(1);
    qks_sums s = {0, 0};
    size_t i = 0;
    while (n - i >= 32) {
        __m512i sum = _mm512_setzero_si512(), squares = sum;
        const size_t left = (n - i) / 32, m = left < 16384 ? left : 16384;
        for (size_t k = 0; k < m; k++, i += 32) {
            const __m256i b = _mm256_loadu_si256((const __m256i *)(p + i));
            const __m512i w = is_signed ? _mm512_cvtepi8_epi16(b) : _mm512_cvtepu8_epi16(b);
            sum = _mm512_add_epi32(sum, _mm512_madd_epi16(w, one));
            squares = _mm512_add_epi32(squares, _mm512_madd_epi16(w, w));
        }
        const __m512i wide = _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(sum)),
                                              _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(sum, 1)));
        const __m512i wide2 = _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(squares)),
                                               _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(squares, 1)));
        s.sum += _mm512_reduce_add_epi64(wide);
        s.squares += _mm512_reduce_add_epi64(wide2);
    }
    qk_sums8_add(&s, p + i, n - i, is_signed);
    return s;
}

#else

QK_INLINE int64_t qk_sums8_across(__m256i v) {
    int32_t lanes[8];
    int64_t sum = 0;
    _mm256_storeu_si256((__m256i *)lanes, v);
    for (int k = 0; k < 8; k++)
        sum += lanes[k];
    return sum;
}

QK_INLINE qks_sums qk_sums8(const void *src, size_t n, bool is_signed) {
    const char *p = src;
    const __m256i one = _mm256_set1_epi16(1);
    qks_sums s = {0, 0};
    size_t i = 0;
    while (n - i >= 16) {
        __m256i sum = _mm256_setzero_si256(), squares = sum;
        const size_t left = (n - i) / 16, m = left < 16384 ? left : 16384;
        for (size_t k = 0; k < m; k++, i += 16) {
            const __m128i b = _mm_loadu_si128((const __m128i *)(p + i));
            const __m256i w = is_signed ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, one));
            squares = _mm256_add_epi32(squares, _mm256_madd_epi16(w, w));
        }
        s.sum += qk_sums8_across(sum);
        s.squares += qk_sums8_across(squares);
    }
    qk_sums8_add(&s, p + i, n - i, is_signed);
    return s;
}

#endif

#endif
