/* What the AVX-512 levels of the family share: types, loads, stores. Their bodies are quant512_quantize_body.h and quant512_dequantize_body.h,
 * written once for all types: `real` and `type` are constants where they are called. */
#ifndef QK_QUANT512_H
#define QK_QUANT512_H

#include "kernels/quant/quant_ways.h"
#include "kernels/simd/avx512_x8.h"

#include <string.h>

QK_INLINE __m512 load_real(int real, const char *src, __mmask16 lanes) {
    if (real == QK_F32) return _mm512_maskz_loadu_ps(lanes, src);
    __m256i w = _mm256_maskz_loadu_epi16(lanes, src);
    if (real == QK_F16) return _mm512_cvtph_ps(w);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(w), 16));
}

QK_INLINE __m512 load_real_16(int real, const char *src) {
    if (real == QK_F32) return _mm512_loadu_ps(src);
    __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)src);
    if (real == QK_F16) return _mm512_cvtph_ps(w);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(w), 16));
}

/* 32 at once, and in an order of its own for bf16, where two lie in a dword: the even ones, moved up, and the odd ones, where they are. */
QK_INLINE void load_real_32(int real, const char *src, __m512 *x0, __m512 *x1) {
    if (real == QK_BF16) {
        const __m512i x = _mm512_loadu_si512(src);
        *x0 = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
        *x1 = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-65536)));
    } else {
        *x0 = load_real_16(real, src);
        *x1 = load_real_16(real, src + 16 * real_bytes(real));
    }
}

QK_INLINE void store(void *dst, __m512i v, bool stream) {
    if (stream)
        _mm512_stream_si512((__m512i *)dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

QK_INLINE void store_half(void *dst, __m256i v, bool stream) {
    if (stream)
        _mm256_stream_si256((__m256i *)dst, v);
    else
        _mm256_storeu_si256((__m256i *)dst, v);
}

/* Elements of `bytes` bytes up to the first one whose address is a multiple of 64; n when there is none. */
QK_INLINE size_t head(const void *dst, size_t bytes, size_t n) {
    size_t off = (64 - (uintptr_t)dst % 64) % 64;
    return off % bytes == 0 && off / bytes < n ? off / bytes : n;
}

/* A few columns: as many rows side by side as make whole vectors. */
enum { WIDE = 1024 };

/* How many rows; 1: as they are. */
QK_INLINE size_t side_by_side(size_t rows, size_t cols) {
    size_t n = cols % 2 ? 64 : cols % 4 ? 32 : cols % 8 ? 16 : cols % 16 ? 8 : cols % 32 ? 4 : 2;
    if (n * cols > WIDE) n /= 4; /* at least whole vectors */
    return cols < 64 && n * cols <= WIDE && rows >= n ? n : 1;
}

QK_INLINE void repeat(const float *scales, const int32_t *zps, size_t cols, size_t n, float *s, int32_t *z) {
    for (size_t r = 0; r < n; r++) {
        memcpy(s + r * cols, scales, cols * sizeof *s);
        if (zps) memcpy(z + r * cols, zps, cols * sizeof *z);
    }
}

#endif
