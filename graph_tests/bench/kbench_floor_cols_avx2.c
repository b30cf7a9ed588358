#include "kbench_floor_cols.h"
#include "kernels/simd/avx2_x8.h"

/* 32 at a time: `x` is an expression of `at`, eight floats from there on. */
#define BYTES(n, x)                                                                                                    \
    for (size_t i = 0; i < (n); i += 32) {                                                                             \
        __m256i q[4];                                                                                                  \
        QK_FOUR_TIMES(k, const size_t at = i + 8 * k; q[k] = _mm256_cvtps_epi32(x));                                   \
        _mm256_storeu_si256((__m256i *)(dst + i), qk256_pack8(q, true));                                               \
    }
#define FLOATS(n, x)                                                                                                   \
    for (size_t i = 0; i < (n); i += 32)                                                                               \
        QK_FOUR_TIMES(k, const size_t at = i + 8 * k; _mm256_storeu_ps(dst + at, x));

QK_INLINE __m256 s8_at(const int8_t *p) {
    return _mm256_cvtepi32_ps(qk256_load8(p, true));
}
QK_INLINE __m256 s32_at(const int32_t *p) {
    return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p));
}

static void affine_s8(const int8_t *src, int8_t *dst, size_t n, const float *factor, const float *shift) {
    BYTES(n, _mm256_fmadd_ps(s8_at(src + at), _mm256_loadu_ps(factor + at), _mm256_loadu_ps(shift + at)));
}

static void affine_one_s8(const int8_t *src, int8_t *dst, size_t n, float factor, float shift) {
    const __m256 f = _mm256_set1_ps(factor), s = _mm256_set1_ps(shift);
    BYTES(n / 32 * 32, _mm256_fmadd_ps(s8_at(src + at), f, s));
    for (size_t i = n / 32 * 32; i < n; i += 8) {
        const __m256i q = _mm256_cvtps_epi32(_mm256_fmadd_ps(s8_at(src + i), f, s));
        const __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        _mm_storel_epi64((__m128i *)(dst + i), _mm_packs_epi16(w, w));
    }
}

static void finish_s8(const int32_t *acc, int8_t *dst, size_t n, const float *factor, const float *shift) {
    const __m256 zero = _mm256_setzero_ps();
    BYTES(n, _mm256_max_ps(_mm256_fmadd_ps(s32_at(acc + at), _mm256_loadu_ps(factor + at), _mm256_loadu_ps(shift + at)),
                           zero));
}

static void finish_f32(const int32_t *acc, float *dst, size_t n, const float *factor, const float *shift) {
    FLOATS(n, _mm256_fmadd_ps(s32_at(acc + at), _mm256_loadu_ps(factor + at), _mm256_loadu_ps(shift + at)));
}

static void round_s8(const float *acc, int8_t *dst, size_t n, float factor, const float *shift) {
    const __m256 zero = _mm256_setzero_ps(), f = _mm256_set1_ps(factor);
    BYTES(n,
          _mm256_mul_ps(_mm256_max_ps(_mm256_add_ps(_mm256_loadu_ps(acc + at), _mm256_loadu_ps(shift + at)), zero), f));
}

static void dequantize_u8(const uint8_t *src, float *dst, size_t n, float factor, float base) {
    const __m256 f = _mm256_set1_ps(factor), b = _mm256_set1_ps(base);
    FLOATS(n, _mm256_fmadd_ps(_mm256_cvtepi32_ps(qk256_load8(src + at, false)), f, b));
}

const kbench_col_floors kbench_col_floors_avx2 = {affine_s8,  affine_one_s8, finish_s8,
                                                  finish_f32, round_s8,      dequantize_u8};
