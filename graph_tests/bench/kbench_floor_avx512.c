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

enum { GROUP = 128, COLS = 64 };

QK_INLINE __m512 zps_of(const uint8_t *zps) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)zps)));
}

/* totals += scale * (sum of a group's products - zero point * sum of the row) */
static void row_times_u4(const uint8_t *p, const float *a, __m512 totals[4]) {
    const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    const uint8_t *scales = p, *zps = p + 4 * COLS;
    __m512 s[4], sum = _mm512_setzero_ps();
    QK_FOUR_TIMES(j, s[j] = _mm512_setzero_ps());
    for (size_t i = 0; i < GROUP; i += 16)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(a + i));
    p = zps + COLS;
    for (size_t i = 0; i < GROUP; i += 8, p += 4 * COLS) {
        __m512i x[4];
        QK_FOUR_TIMES(j, x[j] = _mm512_loadu_si512(p + 64 * j));
        for (size_t t = 0; t < 8; t++) {
            const __m512 v = _mm512_set1_ps(a[i + t]);
            QK_FOUR_TIMES(j, {
                s[j] = _mm512_fmadd_ps(v, _mm512_permutexvar_ps(x[j], table), s[j]);
                x[j] = _mm512_srli_epi32(x[j], 4);
            });
        }
    }
    const __m512 all = _mm512_set1_ps(_mm512_reduce_add_ps(sum));
    QK_FOUR_TIMES(j, totals[j] = _mm512_fmadd_ps(_mm512_fnmadd_ps(zps_of(zps + 16 * j), all, s[j]),
                                                 _mm512_loadu_ps(scales + 64 * j), totals[j]));
}

static void group_to_floats(const uint8_t *p, float (*w)[COLS]) {
    const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    __m512 scale[4], zp[4];
    QK_FOUR_TIMES(j, scale[j] = _mm512_loadu_ps(p + 64 * j); zp[j] = zps_of(p + 4 * COLS + 16 * j));
    p += 5 * COLS;
    for (size_t i = 0; i < GROUP; i += 8, p += 4 * COLS) {
        __m512i x[4];
        QK_FOUR_TIMES(j, x[j] = _mm512_loadu_si512(p + 64 * j));
        for (size_t t = 0; t < 8; t++)
            QK_FOUR_TIMES(j, {
                _mm512_storeu_ps(w[i + t] + 16 * j,
                                 _mm512_mul_ps(_mm512_sub_ps(_mm512_permutexvar_ps(x[j], table), zp[j]), scale[j]));
                x[j] = _mm512_srli_epi32(x[j], 4);
            });
    }
}

/* n rows, at most 6; a constant of the caller. */
QK_INLINE void rows_times_floats(float (*w)[COLS], const float *a, size_t k, float *c, size_t c_stride, const int n) {
    __m512 s[6][4];
    QK_SIX_TIMES(r, if (r < n) QK_FOUR_TIMES(j, s[r][j] = _mm512_loadu_ps(c + r * c_stride + 16 * j)));
    for (size_t i = 0; i < GROUP; i++) {
        __m512 v[4];
        QK_FOUR_TIMES(j, v[j] = _mm512_loadu_ps(w[i] + 16 * j));
        QK_SIX_TIMES(
            r, if (r < n) {
                const __m512 x = _mm512_set1_ps(a[r * k + i]);
                QK_FOUR_TIMES(j, s[r][j] = _mm512_fmadd_ps(x, v[j], s[r][j]));
            });
    }
    QK_SIX_TIMES(r, if (r < n) QK_FOUR_TIMES(j, _mm512_storeu_ps(c + r * c_stride + 16 * j, s[r][j])));
}

static void weights_u4(const uint8_t *panel, const float *a, float *c, size_t c_stride, size_t m, size_t k) {
    const size_t group_bytes = 5 * COLS + GROUP / 2 * COLS;
    if (m == 1) {
        __m512 totals[4];
        QK_FOUR_TIMES(j, totals[j] = _mm512_setzero_ps());
        for (size_t i = 0; i < k; i += GROUP, panel += group_bytes)
            row_times_u4(panel, a + i, totals);
        QK_FOUR_TIMES(j, _mm512_storeu_ps(c + 16 * j, totals[j]));
        return;
    }
    static _Thread_local float w[GROUP][COLS];
    for (size_t r = 0; r < m; r++)
        QK_FOUR_TIMES(j, _mm512_storeu_ps(c + r * c_stride + 16 * j, _mm512_setzero_ps()));
    for (size_t i = 0; i < k; i += GROUP, panel += group_bytes) {
        group_to_floats(panel, w);
        size_t r = 0;
        for (; m - r >= 6; r += 6)
            rows_times_floats(w, a + r * k + i, k, c + r * c_stride, c_stride, 6);
        for (; m - r >= 2; r += 2)
            rows_times_floats(w, a + r * k + i, k, c + r * c_stride, c_stride, 2);
        if (r < m) rows_times_floats(w, a + r * k + i, k, c + r * c_stride, c_stride, 1);
    }
}

const kbench_floors kbench_floors_avx512 = {quantize_s8, dequantize_s8, requantize_s8,
                                            add_relu_s8, max_2x2_u8,    weights_u4};
