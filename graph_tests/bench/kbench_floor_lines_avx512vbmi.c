#include "kbench_floor_lines.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <math.h>

/* 2^(t/1) with a table of 32 fractions and two terms; t in units of one power of two. */
typedef struct powers {
    __m512 low, high;
} powers;

static powers powers_init(void) {
    float t[32];
    for (int i = 0; i < 32; i++)
        t[i] = exp2f((float)i / 32.0f);
    const __m512i j = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i a = _mm512_sub_epi32(_mm512_loadu_si512(t), _mm512_slli_epi32(j, 18));
    const __m512i b =
        _mm512_sub_epi32(_mm512_loadu_si512(t + 16), _mm512_slli_epi32(_mm512_add_epi32(j, _mm512_set1_epi32(16)), 18));
    return (powers){_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)};
}

QK_INLINE __m512 power_of_two(const powers *p, __m512 t) {
    const __m512 magic = _mm512_set1_ps(0x1.8p+18f), k = _mm512_add_ps(t, magic);
    const __m512 f = _mm512_sub_ps(t, _mm512_sub_ps(k, magic));
    const __m512 q = _mm512_fmadd_ps(f, _mm512_set1_ps(0.2402265f), _mm512_set1_ps(0.6931573f));
    const __m512i bits = _mm512_castps_si512(k);
    const __m512i entry = _mm512_castps_si512(_mm512_permutex2var_ps(p->low, bits, p->high));
    const __m512 s = _mm512_castsi512_ps(_mm512_add_epi32(entry, _mm512_slli_epi32(bits, 18)));
    return _mm512_fmadd_ps(_mm512_mul_ps(s, f), q, s);
}

/* Exponentials of a line to t; one over their sum. */
QK_INLINE float exponentials(const powers *p, const float *x, float *t, size_t n) {
    __m512 top[4], sum[4];
    QK_FOUR_TIMES(k, top[k] = _mm512_set1_ps(-3e38f); sum[k] = _mm512_setzero_ps());
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, top[k] = _mm512_max_ps(top[k], _mm512_loadu_ps(x + i + 16 * k)));
    const float largest =
        _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3])));
    const __m512 c = _mm512_set1_ps(1.44269504f), less = _mm512_set1_ps(-largest * 1.44269504f);
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, {
            const __m512 e = power_of_two(p, _mm512_fmadd_ps(_mm512_loadu_ps(x + i + 16 * k), c, less));
            _mm512_storeu_ps(t + i + 16 * k, e);
            sum[k] = _mm512_add_ps(sum[k], e);
        });
    return 1.0f / _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

static void softmax_f32(const float *src, float *dst, size_t n_rows, size_t n) {
    const powers p = powers_init();
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        const __m512 f = _mm512_set1_ps(exponentials(&p, src, dst, n));
        for (size_t i = 0; i < n; i += 64)
            QK_FOUR_TIMES(k, _mm512_storeu_ps(dst + i + 16 * k, _mm512_mul_ps(_mm512_loadu_ps(dst + i + 16 * k), f)));
    }
}

QK_INLINE __m512i bytes_of(const __m512i q[4], bool is_signed) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_packs_epi32(q[0], q[1]), b = _mm512_packs_epi32(q[2], q[3]);
    return _mm512_permutexvar_epi32(order, is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b));
}

static void softmax_f32_u8(const float *src, uint8_t *dst, size_t n_rows, size_t n) {
    const powers p = powers_init();
    float room[4096];
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        const __m512 f = _mm512_set1_ps(255.0f * exponentials(&p, src, room, n));
        for (size_t i = 0; i < n; i += 64) {
            __m512i q[4];
            QK_FOUR_TIMES(k, q[k] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(room + i + 16 * k), f)));
            _mm512_storeu_si512(dst + i, bytes_of(q, false));
        }
    }
}

/* The sum from powers that are products of two of sixteen; results from a table of the 128 largest, which is all that shows. */
static void softmax_s8_u8(const int8_t *src, uint8_t *dst, size_t n_rows, size_t n, float scale) {
    float a[16], b[16], all[128];
    for (int i = 0; i < 16; i++) {
        a[i] = expf(-scale * 16.0f * (float)i);
        b[i] = expf(-scale * (float)i);
    }
    for (int i = 0; i < 128; i++)
        all[i] = a[i / 16] * b[i % 16];
    const __m512 high = _mm512_loadu_ps(a), low = _mm512_loadu_ps(b);
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        __m512i top = _mm512_set1_epi8(-128), q[4], table[2];
        __m512 sum[4];
        for (size_t i = 0; i < n; i += 64)
            top = _mm512_max_epi8(top, _mm512_loadu_si512(src + i));
        __m256i t = _mm256_max_epi8(_mm512_castsi512_si256(top), _mm512_extracti64x4_epi64(top, 1));
        __m128i s = _mm_max_epi8(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
        s = _mm_sub_epi8(_mm_set1_epi8(127), s);
        s = _mm_minpos_epu16(_mm_min_epu8(s, _mm_srli_epi16(s, 8)));
        const __m512i tops = _mm512_set1_epi8((char)(127 - _mm_cvtsi128_si32(s)));
        QK_FOUR_TIMES(k, sum[k] = _mm512_setzero_ps());
        for (size_t i = 0; i < n; i += 64) {
            const __m512i k = _mm512_sub_epi8(tops, _mm512_loadu_si512(src + i));
            QK_FOUR_TIMES(j, sum[j] = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(k, 8 * j + 4), high),
                                                      _mm512_permutexvar_ps(_mm512_srli_epi32(k, 8 * j), low), sum[j]));
        }
        const __m512 f = _mm512_set1_ps(
            255.0f / _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3]))));
        QK_FOUR_TIMES(k, q[k] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(all + 16 * k), f)));
        table[0] = bytes_of(q, false);
        QK_FOUR_TIMES(k, q[k] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(all + 64 + 16 * k), f)));
        table[1] = bytes_of(q, false);
        for (size_t i = 0; i < n; i += 64) {
            const __m512i k =
                _mm512_min_epu8(_mm512_sub_epi8(tops, _mm512_loadu_si512(src + i)), _mm512_set1_epi8(127));
            _mm512_storeu_si512(dst + i, _mm512_permutex2var_epi8(table[0], k, table[1]));
        }
    }
}

/* Mean and 1 / deviation of a line. */
QK_INLINE void moments_of(const float *x, size_t n, float *mean, float *factor) {
    __m512 d[4], q[4];
    QK_FOUR_TIMES(k, d[k] = q[k] = _mm512_setzero_ps());
    for (size_t i = 0; i < n; i += 64)
        QK_FOUR_TIMES(k, {
            const __m512 v = _mm512_loadu_ps(x + i + 16 * k);
            d[k] = _mm512_add_ps(d[k], v);
            q[k] = _mm512_fmadd_ps(v, v, q[k]);
        });
    const float per = 1.0f / (float)n;
    *mean = per * _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(d[0], d[1]), _mm512_add_ps(d[2], d[3])));
    const float squares =
        per * _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(q[0], q[1]), _mm512_add_ps(q[2], q[3])));
    *factor = 1.0f / sqrtf(squares - *mean * *mean + 1e-5f);
}

/* Two lines share gamma and beta. */
static void norm_f32(const float *src, float *dst, const float *gamma, const float *beta, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r += 2) {
        const size_t lines = n_rows - r < 2 ? 1 : 2;
        const float *x = src + r * n;
        float *y = dst + r * n, mean[2], f[2];
        for (size_t k = 0; k < lines; k++)
            moments_of(x + k * n, n, &mean[k], &f[k]);
        for (size_t i = 0; i < n; i += 16) {
            const __m512 g = _mm512_loadu_ps(gamma + i), b = _mm512_loadu_ps(beta + i);
            for (size_t k = 0; k < lines; k++) {
                const __m512 v = _mm512_fmadd_ps(_mm512_loadu_ps(x + k * n + i), _mm512_set1_ps(f[k]),
                                                 _mm512_set1_ps(-mean[k] * f[k]));
                _mm512_storeu_ps(y + k * n + i, _mm512_fmadd_ps(v, g, b));
            }
        }
    }
}

static void norm_f32_s8(const float *src, int8_t *dst, const float *gamma, const float *beta, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        float mean, f;
        moments_of(src, n, &mean, &f);
        const __m512 mul = _mm512_set1_ps(f), add = _mm512_set1_ps(-mean * f);
        for (size_t i = 0; i < n; i += 64) {
            __m512i q[4];
            QK_FOUR_TIMES(k, q[k] = _mm512_cvtps_epi32(_mm512_fmadd_ps(
                                 _mm512_fmadd_ps(_mm512_loadu_ps(src + i + 16 * k), mul, add),
                                 _mm512_loadu_ps(gamma + i + 16 * k), _mm512_loadu_ps(beta + i + 16 * k))));
            _mm512_storeu_si512(dst + i, bytes_of(q, true));
        }
    }
}

__attribute__((target("avx512vnni"))) static void norm_s8(const int8_t *src, int8_t *dst, const float *gamma,
                                                          const float *beta, size_t n_rows, size_t n) {
    const __m512i flip = _mm512_set1_epi8(-128), zero = _mm512_setzero_si512();
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        __m512i s = zero, p = zero;
        for (size_t i = 0; i < n; i += 64) { /* u = x + 128, and u x */
            const __m512i x = _mm512_loadu_si512(src + i), u = _mm512_xor_si512(x, flip);
            s = _mm512_add_epi64(s, _mm512_sad_epu8(u, zero));
            p = _mm512_dpbusd_epi32(p, u, x);
        }
        const float sum = (float)(_mm512_reduce_add_epi64(s) - 128 * (int64_t)n), per = 1.0f / (float)n;
        const float mean = sum * per, squares = ((float)_mm512_reduce_add_epi32(p) - 128.0f * sum) * per;
        const float f = 1.0f / sqrtf(squares - mean * mean + 1e-5f);
        const __m512 mul = _mm512_set1_ps(f), add = _mm512_set1_ps(-mean * f);
        for (size_t i = 0; i < n; i += 64) {
            __m512i q[4];
            QK_FOUR_TIMES(k, {
                const __m512i w = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(src + i + 16 * k)));
                q[k] = _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(w), mul, add),
                                                          _mm512_loadu_ps(gamma + i + 16 * k),
                                                          _mm512_loadu_ps(beta + i + 16 * k)));
            });
            _mm512_storeu_si512(dst + i, bytes_of(q, true));
        }
    }
}

const kbench_lines_floors kbench_lines_floors_avx512vbmi = {softmax_f32, softmax_f32_u8, softmax_s8_u8,
                                                            norm_f32,    norm_f32_s8,    norm_s8};
