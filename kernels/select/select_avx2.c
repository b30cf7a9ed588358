#include "kernels/select/select_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* W elements to a register, then one by one. `no` widens W bytes of the condition to elements that are all ones where it is 0. */
#define SELECT(name, type, W, no, set1)                                                                                \
    static void name(const uint8_t *cond, int cond_step, const void *x_, int x_step, const void *y_, int y_step,       \
                     void *dst_, size_t n) {                                                                           \
        const type *x = x_, *y = y_;                                                                                   \
        type *dst = dst_;                                                                                              \
        size_t i = 0;                                                                                                  \
        if (n >= (W)) {                                                                                                \
            const __m256i x0 = set1(x[0]), y0 = set1(y[0]), c0 = _mm256_set1_epi8(cond[0] != 0 ? 0 : -1);              \
            for (; n - i >= (W); i += (W)) {                                                                           \
                const __m256i xv = x_step ? _mm256_loadu_si256((const __m256i *)(x + i)) : x0;                         \
                const __m256i yv = y_step ? _mm256_loadu_si256((const __m256i *)(y + i)) : y0;                         \
                _mm256_storeu_si256((__m256i *)(dst + i), _mm256_blendv_epi8(xv, yv, cond_step ? no(cond + i) : c0));  \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            dst[i] = cond[cond_step ? i : 0] != 0 ? x[x_step ? i : 0] : y[y_step ? i : 0];                             \
    }

QK_INLINE __m256i no_1(const uint8_t *c) {
    return _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)c), _mm256_setzero_si256());
}
QK_INLINE __m256i no_2(const uint8_t *c) {
    return _mm256_cvtepi8_epi16(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)c), _mm_setzero_si128()));
}
QK_INLINE __m256i no_4(const uint8_t *c) {
    return _mm256_cvtepi8_epi32(_mm_cmpeq_epi8(_mm_loadl_epi64((const __m128i *)c), _mm_setzero_si128()));
}
QK_INLINE __m256i no_8(const uint8_t *c) {
    const __m128i v =
        _mm_cvtsi32_si128((int)((uint32_t)c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24));
    return _mm256_cvtepi8_epi64(_mm_cmpeq_epi8(v, _mm_setzero_si128()));
}

SELECT(select_1, int8_t, 32, no_1, _mm256_set1_epi8)
SELECT(select_2, int16_t, 16, no_2, _mm256_set1_epi16)
SELECT(select_4, int32_t, 8, no_4, _mm256_set1_epi32)
SELECT(select_8, int64_t, 4, no_8, _mm256_set1_epi64x)

/* 32 comparisons, packed twice, to bytes of 0 and 1. */
#define COMPARE(name, relation, op)                                                                                    \
    static void name(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n) {                 \
        size_t i = 0;                                                                                                  \
        if (n >= 32) {                                                                                                 \
            const __m256 x0 = _mm256_set1_ps(x[0]), y0 = _mm256_set1_ps(y[0]);                                         \
            const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), one = _mm256_set1_epi8(1);                \
            for (; n - i >= 32; i += 32) {                                                                             \
                __m256i c[4];                                                                                          \
                QK_FOUR_TIMES(k, c[k] = _mm256_castps_si256(                                                           \
                                     _mm256_cmp_ps(x_step ? _mm256_loadu_ps(x + i + 8 * k) : x0,                       \
                                                   y_step ? _mm256_loadu_ps(y + i + 8 * k) : y0, relation)));          \
                const __m256i b = _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]), _mm256_packs_epi32(c[2], c[3]));  \
                _mm256_storeu_si256((__m256i *)(dst + i),                                                              \
                                    _mm256_and_si256(_mm256_permutevar8x32_epi32(b, order), one));                     \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            dst[i] = x[x_step ? i : 0] op y[y_step ? i : 0];                                                           \
    }
COMPARE(ge, _CMP_GE_OQ, >=)
COMPARE(gt, _CMP_GT_OQ, >)
COMPARE(le, _CMP_LE_OQ, <=)
COMPARE(lt, _CMP_LT_OQ, <)
COMPARE(eq, _CMP_EQ_OQ, ==)

static void prelu(const float *x, const float *slope, int slope_step, float *dst, size_t n) {
    size_t i = 0;
    if (n >= 8) {
        const __m256 s0 = _mm256_set1_ps(slope[0]), zero = _mm256_setzero_ps();
        for (; n - i >= 8; i += 8) {
            const __m256 v = _mm256_loadu_ps(x + i), s = slope_step ? _mm256_loadu_ps(slope + i) : s0;
            _mm256_storeu_ps(dst + i, _mm256_blendv_ps(v, _mm256_mul_ps(v, s), _mm256_cmp_ps(v, zero, _CMP_LT_OQ)));
        }
    }
    for (; i < n; i++)
        dst[i] = x[i] < 0.0f ? x[i] * slope[slope_step ? i : 0] : x[i];
}

const qk_select_row qk_select_avx2 = {{select_1, select_2, select_4, select_8}, {ge, gt, le, lt, eq}, prelu};
