/* What the bodies of AVX2 share: blocks, stores, conversions. */
#ifndef QK_QUANT256_IO_H
#define QK_QUANT256_IO_H

#include "kernels/quant/quant_ways.h"
#include "kernels/simd/avx2_x8.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

QK_INLINE void store(void *dst, __m256i v, bool stream) {
    if (stream)
        _mm256_stream_si256((__m256i *)dst, v);
    else
        _mm256_storeu_si256((__m256i *)dst, v);
}

QK_INLINE void store_half(void *dst, __m128i v, bool stream) {
    if (stream)
        _mm_stream_si128((__m128i *)dst, v);
    else
        _mm_storeu_si128((__m128i *)dst, v);
}

/* ---- narrow floats: tails as the reference does them ---- */

static void f32_of_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
    qk_quant_ref.f32_of_f16(src + i, dst + i, n - i);
}

static void f16_of_f32(const float *src, uint16_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    qk_quant_ref.f16_of_f32(src + i, dst + i, n - i);
}

static void f32_of_bf16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + i)));
        _mm256_storeu_si256((__m256i *)(dst + i), _mm256_slli_epi32(w, 16));
    }
    qk_quant_ref.f32_of_bf16(src + i, dst + i, n - i);
}

/* Rounded to bf16, half to even, in the upper half; no NaNs. */
QK_INLINE __m256i bf16_rounded(__m256i u) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

QK_INLINE __m256i bf16_8(const float *src) {
    const __m256 f = _mm256_loadu_ps(src);
    const __m256i u = _mm256_castps_si256(f), quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256 r = _mm256_blendv_ps(_mm256_castsi256_ps(bf16_rounded(u)), _mm256_castsi256_ps(quiet),
                                      _mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_castps_si256(r), 16);
}

static void bf16_of_f32(const float *src, uint16_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i), qk256_pack16(bf16_8(src + i), bf16_8(src + i + 8), false));
    qk_quant_ref.bf16_of_f32(src + i, dst + i, n - i);
}

#endif
