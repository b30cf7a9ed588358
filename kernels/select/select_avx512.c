#include "kernels/select/select_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stdbool.h>

/* What nobody reads soon is written past the caches; two threads have half each. */
QK_INLINE bool is_much(size_t n_bytes) {
    return n_bytes >= qk_isa_stream_bytes() / 2;
}
/* Elements before the first whole line of dst. */
QK_INLINE size_t head(const void *dst, size_t elem_bytes, size_t n) {
    const size_t bytes = (64 - (uintptr_t)dst % 64) % 64;
    return bytes % elem_bytes != 0 || bytes / elem_bytes > n ? n : bytes / elem_bytes;
}
QK_INLINE void put(void *dst, __m512i v, bool stream) {
    if (stream)
        _mm512_stream_si512(dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

/* The first n lanes of W. */
#define LANES(mask_t, W, n) ((n) >= (W) ? (mask_t) ~(mask_t)0 : (mask_t)(((mask_t)1 << (n)) - 1))

/* W elements of `type` to a register; `_some` does a few by masks, whatever the steps are. */
#define SELECT(name, type, W, mask_t, is_not_0, load, set1, blend, store)                                              \
    static void name##_some(const uint8_t *cond, int cond_step, const type *x, int x_step, const type *y, int y_step,  \
                            type *dst, size_t n) {                                                                     \
        for (size_t i = 0; i < n; i += (W)) {                                                                          \
            const mask_t m = LANES(mask_t, W, n - i);                                                                  \
            const mask_t c = cond_step ? is_not_0(m, cond + i) : cond[0] != 0 ? m : 0;                                 \
            store(dst + i, m, blend(c, y_step ? load(m, y + i) : set1(y[0]), x_step ? load(m, x + i) : set1(x[0])));   \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const uint8_t *cond, int cond_step, const void *x_, int x_step, const void *y_, int y_step,       \
                     void *dst_, size_t n) {                                                                           \
        const type *x = x_, *y = y_;                                                                                   \
        type *dst = dst_;                                                                                              \
        if (n == 0) return;                                                                                            \
        const __m512i x0 = set1(x[0]), y0 = set1(y[0]);                                                                \
        const mask_t all = (mask_t) ~(mask_t)0, c0 = cond[0] != 0 ? all : 0;                                           \
        const bool stream = is_much(n * sizeof(type));                                                                 \
        size_t i = stream ? head(dst, sizeof(type), n) : 0;                                                            \
        name##_some(cond, cond_step, x, x_step, y, y_step, dst, i);                                                    \
        for (; n - i >= (W); i += (W)) {                                                                               \
            const mask_t c = cond_step ? is_not_0(all, cond + i) : c0;                                                 \
            put(dst + i, blend(c, y_step ? _mm512_loadu_si512(y + i) : y0, x_step ? _mm512_loadu_si512(x + i) : x0),   \
                stream);                                                                                               \
        }                                                                                                              \
        if (stream) _mm_sfence();                                                                                      \
        name##_some(cond + (cond_step ? i : 0), cond_step, x + (x_step ? i : 0), x_step, y + (y_step ? i : 0), y_step, \
                    dst + i, n - i);                                                                                   \
    }

/* Which of the bytes of m are not 0. */
QK_INLINE __mmask64 not_0_of_64(__mmask64 m, const uint8_t *c) {
    const __m512i v = _mm512_maskz_loadu_epi8(m, c);
    return _mm512_test_epi8_mask(v, v);
}
QK_INLINE __mmask32 not_0_of_32(__mmask32 m, const uint8_t *c) {
    const __m256i v = _mm256_maskz_loadu_epi8(m, c);
    return _mm256_test_epi8_mask(v, v);
}
QK_INLINE __mmask16 not_0_of_16(__mmask16 m, const uint8_t *c) {
    const __m128i v = _mm_maskz_loadu_epi8(m, c);
    return _mm_test_epi8_mask(v, v);
}
QK_INLINE __mmask8 not_0_of_8(__mmask8 m, const uint8_t *c) {
    const __m128i v = _mm_maskz_loadu_epi8(m, c);
    return (__mmask8)_mm_test_epi8_mask(v, v);
}

SELECT(select_1, int8_t, 64, __mmask64, not_0_of_64, _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_mask_blend_epi8,
       _mm512_mask_storeu_epi8)
SELECT(select_2, int16_t, 32, __mmask32, not_0_of_32, _mm512_maskz_loadu_epi16, _mm512_set1_epi16,
       _mm512_mask_blend_epi16, _mm512_mask_storeu_epi16)
SELECT(select_4, int32_t, 16, __mmask16, not_0_of_16, _mm512_maskz_loadu_epi32, _mm512_set1_epi32,
       _mm512_mask_blend_epi32, _mm512_mask_storeu_epi32)
SELECT(select_8, int64_t, 8, __mmask8, not_0_of_8, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_mask_blend_epi64,
       _mm512_mask_storeu_epi64)

/* Sixteen comparisons to a mask, four of them to 64 bytes. */
#define COMPARE(name, relation)                                                                                        \
    static void name##_some(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n) {          \
        for (size_t i = 0; i < n; i += 16) {                                                                           \
            const __mmask16 in = LANES(__mmask16, 16, n - i);                                                          \
            const __mmask16 m =                                                                                        \
                _mm512_cmp_ps_mask(x_step ? _mm512_maskz_loadu_ps(in, x + i) : _mm512_set1_ps(x[0]),                   \
                                   y_step ? _mm512_maskz_loadu_ps(in, y + i) : _mm512_set1_ps(y[0]), relation);        \
            _mm_mask_storeu_epi8(dst + i, in, _mm_maskz_set1_epi8(m, 1));                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n) {                 \
        if (n == 0) return;                                                                                            \
        const __m512 x0 = _mm512_set1_ps(x[0]), y0 = _mm512_set1_ps(y[0]);                                             \
        const bool stream = is_much(n);                                                                                \
        size_t i = stream ? head(dst, 1, n) : 0;                                                                       \
        name##_some(x, x_step, y, y_step, dst, i);                                                                     \
        for (; n - i >= 64; i += 64) {                                                                                 \
            __mmask64 m = 0;                                                                                           \
            QK_FOUR_TIMES(k,                                                                                           \
                          m |= (__mmask64)_mm512_cmp_ps_mask(x_step ? _mm512_loadu_ps(x + i + 16 * k) : x0,            \
                                                             y_step ? _mm512_loadu_ps(y + i + 16 * k) : y0, relation)  \
                               << (16 * k));                                                                           \
            put(dst + i, _mm512_maskz_set1_epi8(m, 1), stream);                                                        \
        }                                                                                                              \
        if (stream) _mm_sfence();                                                                                      \
        name##_some(x + (x_step ? i : 0), x_step, y + (y_step ? i : 0), y_step, dst + i, n - i);                       \
    }
COMPARE(ge, _CMP_GE_OQ)
COMPARE(gt, _CMP_GT_OQ)
COMPARE(le, _CMP_LE_OQ)
COMPARE(lt, _CMP_LT_OQ)
COMPARE(eq, _CMP_EQ_OQ)

QK_INLINE __m512i sloped(__m512 v, __m512 slope) {
    return _mm512_castps_si512(_mm512_mask_mul_ps(v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), v, slope));
}

static void prelu_some(const float *x, const float *slope, int slope_step, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 in = LANES(__mmask16, 16, n - i);
        const __m512 s = slope_step ? _mm512_maskz_loadu_ps(in, slope + i) : _mm512_set1_ps(slope[0]);
        _mm512_mask_storeu_epi32(dst + i, in, sloped(_mm512_maskz_loadu_ps(in, x + i), s));
    }
}

static void prelu(const float *x, const float *slope, int slope_step, float *dst, size_t n) {
    if (n == 0) return;
    const __m512 s0 = _mm512_set1_ps(slope[0]);
    const bool stream = is_much(n * sizeof *dst);
    size_t i = stream ? head(dst, sizeof *dst, n) : 0;
    prelu_some(x, slope, slope_step, dst, i);
    for (; n - i >= 64; i += 64)
        QK_FOUR_TIMES(k, const size_t at = i + 16 * k; const __m512 s = slope_step ? _mm512_loadu_ps(slope + at) : s0;
                      put(dst + at, sloped(_mm512_loadu_ps(x + at), s), stream));
    if (stream) _mm_sfence();
    prelu_some(x + i, slope + (slope_step ? i : 0), slope_step, dst + i, n - i);
}

const qk_select_row qk_select_avx512 = {{select_1, select_2, select_4, select_8}, {ge, gt, le, lt, eq}, prelu};
