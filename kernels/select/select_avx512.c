#include "kernels/select/select_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

/* W elements of `type` to a register; the tail is masked. */
#define SELECT(name, type, W, MASK, mask_t, load, set1, blend, store)                                                  \
    static void name(const uint8_t *cond, int cond_step, const void *x_, int x_step, const void *y_, int y_step,       \
                     void *dst_, size_t n) {                                                                           \
        const type *x = x_, *y = y_;                                                                                   \
        type *dst = dst_;                                                                                              \
        if (n == 0) return;                                                                                            \
        const __m512i x0 = set1(x[0]), y0 = set1(y[0]);                                                                \
        const mask_t c0 = cond[0] != 0 ? (mask_t) ~(mask_t)0 : 0;                                                      \
        for (size_t i = 0; i < n; i += (W)) {                                                                          \
            const size_t left = n - i;                                                                                 \
            const mask_t m = left >= (W) ? (mask_t) ~(mask_t)0 : (mask_t)(((mask_t)1 << left) - 1);                    \
            const mask_t c = cond_step ? MASK(cond + i, m) : c0;                                                       \
            store(dst + i, m, blend(c, y_step ? load(m, y + i) : y0, x_step ? load(m, x + i) : x0));                   \
        }                                                                                                              \
    }

QK_INLINE __mmask64 mask_64(const uint8_t *c, __mmask64 m) {
    const __m512i v = _mm512_maskz_loadu_epi8(m, c);
    return _mm512_test_epi8_mask(v, v);
}
QK_INLINE __mmask32 mask_32(const uint8_t *c, __mmask32 m) {
    const __m256i v = _mm256_maskz_loadu_epi8(m, c);
    return _mm256_test_epi8_mask(v, v);
}
QK_INLINE __mmask16 mask_16(const uint8_t *c, __mmask16 m) {
    const __m128i v = _mm_maskz_loadu_epi8(m, c);
    return _mm_test_epi8_mask(v, v);
}
QK_INLINE __mmask8 mask_8(const uint8_t *c, __mmask8 m) {
    const __m128i v = _mm_maskz_loadu_epi8(m, c);
    return (__mmask8)_mm_test_epi8_mask(v, v);
}

SELECT(select_1, int8_t, 64, mask_64, __mmask64, _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_mask_blend_epi8,
       _mm512_mask_storeu_epi8)
SELECT(select_2, int16_t, 32, mask_32, __mmask32, _mm512_maskz_loadu_epi16, _mm512_set1_epi16, _mm512_mask_blend_epi16,
       _mm512_mask_storeu_epi16)
SELECT(select_4, int32_t, 16, mask_16, __mmask16, _mm512_maskz_loadu_epi32, _mm512_set1_epi32, _mm512_mask_blend_epi32,
       _mm512_mask_storeu_epi32)
SELECT(select_8, int64_t, 8, mask_8, __mmask8, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_mask_blend_epi64,
       _mm512_mask_storeu_epi64)

/* Sixteen comparisons to a mask, four of them to 64 bytes. */
#define COMPARE(name, relation)                                                                                        \
    static void name(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n) {                 \
        if (n == 0) return;                                                                                            \
        const __m512 x0 = _mm512_set1_ps(x[0]), y0 = _mm512_set1_ps(y[0]);                                             \
        size_t i = 0;                                                                                                  \
        for (; n - i >= 64; i += 64) {                                                                                 \
            __mmask64 m = 0;                                                                                           \
            QK_FOUR_TIMES(k,                                                                                           \
                          m |= (__mmask64)_mm512_cmp_ps_mask(x_step ? _mm512_loadu_ps(x + i + 16 * k) : x0,            \
                                                             y_step ? _mm512_loadu_ps(y + i + 16 * k) : y0, relation)  \
                               << (16 * k));                                                                           \
            _mm512_storeu_si512(dst + i, _mm512_maskz_set1_epi8(m, 1));                                                \
        }                                                                                                              \
        for (; i < n; i += 16) {                                                                                       \
            const size_t left = n - i;                                                                                 \
            const __mmask16 in = left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1u);                      \
            const __mmask16 m = _mm512_cmp_ps_mask(x_step ? _mm512_maskz_loadu_ps(in, x + i) : x0,                     \
                                                   y_step ? _mm512_maskz_loadu_ps(in, y + i) : y0, relation);          \
            _mm_mask_storeu_epi8(dst + i, in, _mm_maskz_set1_epi8(m, 1));                                              \
        }                                                                                                              \
    }
COMPARE(ge, _CMP_GE_OQ)
COMPARE(gt, _CMP_GT_OQ)
COMPARE(le, _CMP_LE_OQ)
COMPARE(lt, _CMP_LT_OQ)
COMPARE(eq, _CMP_EQ_OQ)

static void prelu(const float *x, const float *slope, int slope_step, float *dst, size_t n) {
    if (n == 0) return;
    const __m512 s0 = _mm512_set1_ps(slope[0]), zero = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        const size_t left = n - i;
        const __mmask16 in = left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1u);
        const __m512 v = _mm512_maskz_loadu_ps(in, x + i);
        const __m512 s = slope_step ? _mm512_maskz_loadu_ps(in, slope + i) : s0;
        _mm512_mask_storeu_ps(dst + i, in, _mm512_mask_mul_ps(v, _mm512_cmp_ps_mask(v, zero, _CMP_LT_OQ), v, s));
    }
}

const qk_select_row qk_select_avx512 = {{select_1, select_2, select_4, select_8}, {ge, gt, le, lt, eq}, prelu};
