/* With AVX2 and FMA alone: the loops of kbench_floor_lines_avx512vbmi.c as this level would have them. */
#include "kbench_floor_lines.h"
#include "kernels/simd/avx2_x8.h"

#include <math.h>

QK_INLINE float sum_across(__m256 a) {
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
}
QK_INLINE float sum_of_four(const __m256 a[4]) {
    return sum_across(_mm256_add_ps(_mm256_add_ps(a[0], a[1]), _mm256_add_ps(a[2], a[3])));
}

/* 2^t with a table of 8 fractions and three terms. */
static __m256 powers_init(void) {
    float t[8];
    for (int i = 0; i < 8; i++)
        t[i] = exp2f((float)i / 8.0f);
    const __m256i j = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(_mm256_loadu_ps(t)), _mm256_slli_epi32(j, 20)));
}

QK_INLINE __m256 power_of_two(__m256 table, __m256 t) {
    const __m256 magic = _mm256_set1_ps(0x1.8p+20f), k = _mm256_add_ps(t, magic);
    const __m256 f = _mm256_sub_ps(t, _mm256_sub_ps(k, magic));
    const __m256 q = _mm256_fmadd_ps(_mm256_fmadd_ps(f, _mm256_set1_ps(0.0555041f), _mm256_set1_ps(0.2402265f)), f,
                                     _mm256_set1_ps(0.6931472f));
    const __m256i bits = _mm256_castps_si256(k);
    const __m256i entry = _mm256_castps_si256(_mm256_permutevar8x32_ps(table, bits));
    const __m256 s = _mm256_castsi256_ps(_mm256_add_epi32(entry, _mm256_slli_epi32(bits, 20)));
    return _mm256_fmadd_ps(_mm256_mul_ps(s, f), q, s);
}

/* Exponentials of a line to t; one over their sum. */
QK_INLINE float exponentials(__m256 table, const float *x, float *t, size_t n) {
    __m256 top[4], sum[4];
    QK_FOUR_TIMES(k, top[k] = _mm256_set1_ps(-3e38f); sum[k] = _mm256_setzero_ps());
    for (size_t i = 0; i < n; i += 32)
        QK_FOUR_TIMES(k, top[k] = _mm256_max_ps(top[k], _mm256_loadu_ps(x + i + 8 * k)));
    const __m256 all = _mm256_max_ps(_mm256_max_ps(top[0], top[1]), _mm256_max_ps(top[2], top[3]));
    __m128 v = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    const float largest = _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)));
    const __m256 c = _mm256_set1_ps(1.44269504f), less = _mm256_set1_ps(-largest * 1.44269504f);
    for (size_t i = 0; i < n; i += 32)
        QK_FOUR_TIMES(k, {
            const __m256 e = power_of_two(table, _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 8 * k), c, less));
            _mm256_storeu_ps(t + i + 8 * k, e);
            sum[k] = _mm256_add_ps(sum[k], e);
        });
    return 1.0f / sum_of_four(sum);
}

static void softmax_f32(const float *src, float *dst, size_t n_rows, size_t n) {
    const __m256 table = powers_init();
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        const __m256 f = _mm256_set1_ps(exponentials(table, src, dst, n));
        for (size_t i = 0; i < n; i += 32)
            QK_FOUR_TIMES(k, _mm256_storeu_ps(dst + i + 8 * k, _mm256_mul_ps(_mm256_loadu_ps(dst + i + 8 * k), f)));
    }
}

static void softmax_f32_u8(const float *src, uint8_t *dst, size_t n_rows, size_t n) {
    const __m256 table = powers_init();
    float room[4096];
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        const __m256 f = _mm256_set1_ps(255.0f * exponentials(table, src, room, n));
        for (size_t i = 0; i < n; i += 32) {
            __m256i q[4];
            QK_FOUR_TIMES(k, q[k] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(room + i + 8 * k), f)));
            _mm256_storeu_si256((__m256i *)(dst + i), qk256_pack8(q, false));
        }
    }
}

/* The power that a byte, `by` bits up in its lane, asks for: a product of three, of tables of 4, 8 and 8. */
QK_INLINE __m256 power_of_byte(const __m256 parts[3], __m256i k, int by) {
    const __m256 high = _mm256_mul_ps(_mm256_permutevar8x32_ps(parts[0], _mm256_srli_epi32(k, by + 6)),
                                      _mm256_permutevar8x32_ps(parts[1], _mm256_srli_epi32(k, by + 3)));
    return _mm256_mul_ps(high, _mm256_permutevar8x32_ps(parts[2], _mm256_srli_epi32(k, by)));
}

/* Results from a table of 16 n_rows, of which a byte shuffle reads 16: rows hold what changes from the one before, and give nothing
 * where the index, less 16 for each, is below 0. */
QK_INLINE void look_up(const uint8_t *table, int n_rows, const int8_t *src, uint8_t *dst, size_t n, __m256i tops) {
    const __m256i last = _mm256_set1_epi8((char)(16 * n_rows - 1)), less = _mm256_set1_epi8(16);
    __m256i rows[8], before = _mm256_setzero_si256();
    for (int r = 0; r < n_rows; r++) {
        const __m256i row = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * r)));
        rows[r] = _mm256_xor_si256(row, before);
        before = row;
    }
    for (size_t i = 0; i < n; i += 32) {
        __m256i k = _mm256_sub_epi8(tops, _mm256_loadu_si256((const __m256i *)(src + i))), q;
        k = _mm256_min_epu8(k, last);
        q = _mm256_shuffle_epi8(rows[0], k);
        for (int r = 1; r < n_rows; r++) {
            k = _mm256_sub_epi8(k, less);
            q = _mm256_xor_si256(q, _mm256_shuffle_epi8(rows[r], k));
        }
        _mm256_storeu_si256((__m256i *)(dst + i), q);
    }
}

/* The sum from powers that are products of three; results from a table of the 32, 64 or 128 largest, which is all that shows. */
static void softmax_s8_u8(const int8_t *src, uint8_t *dst, size_t n_rows, size_t n, float scale) {
    float p[3][8], all[128];
    uint8_t table[128];
    for (int i = 0; i < 8; i++) {
        p[0][i] = expf(-scale * 64.0f * (float)(i % 4));
        p[1][i] = expf(-scale * 8.0f * (float)i);
        p[2][i] = expf(-scale * (float)i);
    }
    const __m256 parts[3] = {_mm256_loadu_ps(p[0]), _mm256_loadu_ps(p[1]), _mm256_loadu_ps(p[2])};
    for (int i = 0; i < 128; i++)
        all[i] = expf(-scale * (float)i);
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        __m256i top = _mm256_set1_epi8(-128);
        __m256 sum[4];
        for (size_t i = 0; i < n; i += 32)
            top = _mm256_max_epi8(top, _mm256_loadu_si256((const __m256i *)(src + i)));
        __m128i s = _mm_max_epi8(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
        s = _mm_sub_epi8(_mm_set1_epi8(127), s);
        s = _mm_minpos_epu16(_mm_min_epu8(s, _mm_srli_epi16(s, 8)));
        const __m256i tops = _mm256_set1_epi8((char)(127 - _mm_cvtsi128_si32(s)));
        QK_FOUR_TIMES(k, sum[k] = _mm256_setzero_ps());
        for (size_t i = 0; i < n; i += 32) {
            const __m256i k = _mm256_sub_epi8(tops, _mm256_loadu_si256((const __m256i *)(src + i)));
            QK_FOUR_TIMES(j, sum[j] = _mm256_add_ps(sum[j], power_of_byte(parts, k, 8 * j)));
        }
        const float f = 255.0f / sum_of_four(sum);
        const int show = all[31] * f < 0.49f ? 32 : all[63] * f < 0.49f ? 64 : 128;
        for (int i = 0; i < show; i += 32) {
            __m256i q[4];
            QK_FOUR_TIMES(
                j, q[j] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(all + i + 8 * j), _mm256_set1_ps(f))));
            _mm256_storeu_si256((__m256i *)(table + i), qk256_pack8(q, false));
        }
        if (show == 32)
            look_up(table, 2, src, dst, n, tops);
        else if (show == 64)
            look_up(table, 4, src, dst, n, tops);
        else
            look_up(table, 8, src, dst, n, tops);
    }
}

/* What a line is multiplied with and what is added, from sums of x and of its square. */
typedef struct step {
    __m256 mul, add;
} step;

QK_INLINE step step_of(float sum, float squares, size_t n) {
    const float per = 1.0f / (float)n, mean = sum * per;
    const float f = 1.0f / sqrtf(squares * per - mean * mean + 1e-5f);
    return (step){_mm256_set1_ps(f), _mm256_set1_ps(-mean * f)};
}

QK_INLINE step step_of_floats(const float *x, size_t n) {
    __m256 d[4], q[4];
    QK_FOUR_TIMES(k, d[k] = q[k] = _mm256_setzero_ps());
    for (size_t i = 0; i < n; i += 32)
        QK_FOUR_TIMES(k, {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            d[k] = _mm256_add_ps(d[k], v);
            q[k] = _mm256_fmadd_ps(v, v, q[k]);
        });
    return step_of(sum_of_four(d), sum_of_four(q), n);
}

/* Two lines share gamma and beta. */
static void norm_f32(const float *src, float *dst, const float *gamma, const float *beta, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r += 2) {
        const size_t lines = n_rows - r < 2 ? 1 : 2;
        const float *x = src + r * n;
        float *y = dst + r * n;
        step s[2];
        for (size_t k = 0; k < lines; k++)
            s[k] = step_of_floats(x + k * n, n);
        for (size_t i = 0; i < n; i += 8) {
            const __m256 g = _mm256_loadu_ps(gamma + i), b = _mm256_loadu_ps(beta + i);
            for (size_t k = 0; k < lines; k++) {
                const __m256 v = _mm256_fmadd_ps(_mm256_loadu_ps(x + k * n + i), s[k].mul, s[k].add);
                _mm256_storeu_ps(y + k * n + i, _mm256_fmadd_ps(v, g, b));
            }
        }
    }
}

/* A line's results, 32 at a time: `x` is an expression of `at`, eight floats from there on. */
#define RESULTS(x)                                                                                                     \
    for (size_t i = 0; i < n; i += 32) {                                                                               \
        __m256i q[4];                                                                                                  \
        QK_FOUR_TIMES(k, {                                                                                             \
            const size_t at = i + 8 * k;                                                                               \
            const __m256 v = _mm256_fmadd_ps(x, s.mul, s.add);                                                         \
            q[k] = _mm256_cvtps_epi32(_mm256_fmadd_ps(v, _mm256_loadu_ps(gamma + at), _mm256_loadu_ps(beta + at)));    \
        });                                                                                                            \
        _mm256_storeu_si256((__m256i *)(dst + i), qk256_pack8(q, true));                                               \
    }

static void norm_f32_s8(const float *src, int8_t *dst, const float *gamma, const float *beta, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        const step s = step_of_floats(src, n);
        RESULTS(_mm256_loadu_ps(src + at));
    }
}

static void norm_s8(const int8_t *src, int8_t *dst, const float *gamma, const float *beta, size_t n_rows, size_t n) {
    const __m256i one = _mm256_set1_epi16(1);
    for (size_t r = 0; r < n_rows; r++, src += n, dst += n) {
        __m256i sums = _mm256_setzero_si256(), squares = sums;
        for (size_t i = 0; i < n; i += 16) {
            const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(src + i)));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x, one));
            squares = _mm256_add_epi32(squares, _mm256_madd_epi16(x, x));
        }
        const step s = step_of(sum_across(_mm256_cvtepi32_ps(sums)), sum_across(_mm256_cvtepi32_ps(squares)), n);
        RESULTS(_mm256_cvtepi32_ps(qk256_load8(src + at, true)));
    }
}

const kbench_lines_floors kbench_lines_floors_avx2 = {softmax_f32, softmax_f32_u8, softmax_s8_u8,
                                                      norm_f32,    norm_f32_s8,    norm_s8};
