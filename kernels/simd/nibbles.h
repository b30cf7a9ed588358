/* Two 4-bit values to a byte, the first in the low nibble, from and to a byte each; whole blocks of 32 values. Needs AVX2. */
#ifndef QK_SIMD_NIBBLES_H
#define QK_SIMD_NIBBLES_H

#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many of the n values were done. */
QK_INLINE size_t qk_unpack_nibbles(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    const __m256i low = _mm256_set1_epi8(15), sign = _mm256_set1_epi8(is_signed ? 8 : 0);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(src + i / 2)));
        /* the byte, and the byte moved up by a nibble into the next: each has one of the two in its low half */
        __m256i v = _mm256_and_si256(_mm256_or_si256(w, _mm256_slli_epi16(w, 4)), low);
        _mm256_storeu_si256((__m256i *)(dst + i), _mm256_sub_epi8(_mm256_xor_si256(v, sign), sign));
    }
    return i;
}

/* The values saturate to the 4-bit range. */
QK_INLINE size_t qk_pack_nibbles(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    const __m256i weights = _mm256_set1_epi16(0x1001); /* the first value by 1, the second by 16 */
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(src + i));
        if (is_signed) {
            v = _mm256_min_epi8(_mm256_max_epi8(v, _mm256_set1_epi8(-8)), _mm256_set1_epi8(7));
            v = _mm256_and_si256(v, _mm256_set1_epi8(15));
        } else {
            v = _mm256_min_epu8(v, _mm256_set1_epi8(15));
        }
        __m256i w = _mm256_maddubs_epi16(v, weights);
        __m128i b = _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
        _mm_storeu_si128((__m128i *)(dst + i / 2), b);
    }
    return i;
}

#endif
