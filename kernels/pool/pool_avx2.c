#include "kernels/pool/pool_grid_body.h"
#include "kernels/pool/pool_walk_body.h"

/* Tails as the reference does them. */
static __m256i load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static void store(void *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

/* The rows again, from element i on, for what is left of them. */
typedef struct rest {
    const uint8_t *rows[QK_POOL_ADDS];
} rest;

static void rest_of(const uint8_t *const *rows, size_t n_rows, size_t i, rest *out) {
    for (size_t r = 0; r < n_rows; r++)
        out->rows[r] = rows[r] + i;
}

QK_INLINE __m256i max_32(const uint8_t *const *rows, size_t n_rows, size_t i, bool is_signed) {
    __m256i max = load(rows[0] + i);
    if (is_signed)
        for (size_t r = 1; r < n_rows; r++)
            max = _mm256_max_epi8(max, load(rows[r] + i));
    else
        for (size_t r = 1; r < n_rows; r++)
            max = _mm256_max_epu8(max, load(rows[r] + i));
    return max;
}

static void max_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed) {
    size_t i = 0;
    if (step == 2)
        for (; n - i >= 64; i += 64) {
            __m256i low = _mm256_set1_epi16(0xff);
            __m256i a = _mm256_and_si256(max_32(rows, n_rows, i, is_signed), low);
            __m256i b = _mm256_and_si256(max_32(rows, n_rows, i + 32, is_signed), low);
            store(dst + i / 2, _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8));
        }
    else
        for (; n - i >= 32; i += 32)
            store(dst + i, max_32(rows, n_rows, i, is_signed));
    if (i < n) {
        rest left;
        rest_of(rows, n_rows, i, &left);
        qk_pool_row_ref.max_rows(left.rows, n_rows, dst + i / step, n - i, step, is_signed);
    }
}

/* Sums of 16 columns, in two halves of 32 bits. */
typedef struct sums {
    __m256i low, high;
} sums;

QK_INLINE sums sum_16(const uint8_t *const *rows, size_t n_rows, size_t i, bool is_signed) {
    __m256i acc = _mm256_setzero_si256();
    if (is_signed)
        for (size_t r = 0; r < n_rows; r++)
            acc = _mm256_add_epi16(acc, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(rows[r] + i))));
    else
        for (size_t r = 0; r < n_rows; r++)
            acc = _mm256_add_epi16(acc, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(rows[r] + i))));
    return (sums){_mm256_cvtepi16_epi32(_mm256_castsi256_si128(acc)),
                  _mm256_cvtepi16_epi32(_mm256_extracti128_si256(acc, 1))};
}

static void sum_rows(const uint8_t *const *rows, size_t n_rows, int32_t *sum, size_t n, bool is_signed, bool is_added) {
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        sums s = sum_16(rows, n_rows, i, is_signed);
        store(sum + i, is_added ? _mm256_add_epi32(s.low, load(sum + i)) : s.low);
        store(sum + i + 8, is_added ? _mm256_add_epi32(s.high, load(sum + i + 8)) : s.high);
    }
    if (i < n) {
        rest left;
        rest_of(rows, n_rows, i, &left);
        qk_pool_row_ref.sum_rows(left.rows, n_rows, sum + i, n - i, is_signed, is_added);
    }
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        store(acc + i, _mm256_add_epi32(load(acc + i), load(a + i)));
    qk_pool_row_ref.add32(acc + i, a + i, n - i);
}

static void slide32(int32_t *acc, const int32_t *in, const int32_t *out, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        store(acc + i, _mm256_add_epi32(load(acc + i), _mm256_sub_epi32(load(in + i), load(out + i))));
    qk_pool_row_ref.slide32(acc + i, in + i, out + i, n - i);
}

static int64_t sum8(const uint8_t *a, size_t n, bool is_signed) {
    /* A signed byte plus 128 is the unsigned byte with the top bit turned round. */
    __m256i flip = _mm256_set1_epi8(is_signed ? -128 : 0), sum = _mm256_setzero_si256();
    size_t i = 0;
    for (; n - i >= 32; i += 32)
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_xor_si256(load(a + i), flip), _mm256_setzero_si256()));
    int64_t each[4];
    store(each, sum);
    int64_t whole = each[0] + each[1] + each[2] + each[3] - (is_signed ? 128 * (int64_t)i : 0);
    return whole + qk_pool_row_ref.sum8(a + i, n - i, is_signed);
}

static uint8_t max_of(const uint8_t *a, size_t n, bool is_signed) {
    if (n < 32) return qk_pool_row_ref.max_of(a, n, is_signed);
    __m256i max = load(a + n - 32); /* the tail, which may overlap */
    for (size_t i = 0; n - i >= 32; i += 32)
        max = is_signed ? _mm256_max_epi8(max, load(a + i)) : _mm256_max_epu8(max, load(a + i));
    uint8_t each[32];
    store(each, max);
    return qk_pool_row_ref.max_of(each, 32, is_signed);
}

static void every_second32(const int32_t *a, int32_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i > 8; i += 8) { /* reads a[2i … 2i+15] */
        __m256 lo = _mm256_castsi256_ps(load(a + 2 * i)), hi = _mm256_castsi256_ps(load(a + 2 * i + 8));
        store(dst + i, _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0x88)), 0xd8));
    }
    qk_pool_row_ref.every_second32(a + 2 * i, dst + i, n - i);
}

static void finish(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *e) {
    size_t i = 0;
    if (qk_divisor_ok(e->scale, e->zp)) {
        qk256_divisor d = qk256_divisor_of(_mm256_set1_ps(e->scale));
        __m256i bias = _mm256_set1_epi32(e->bias), zp = _mm256_set1_epi32(e->zp);
        __m256 factor = _mm256_set1_ps(e->factor), zp_f32 = _mm256_cvtepi32_ps(zp);
        for (; n - i >= 32; i += 32) {
            __m256i v[4];
            QK_FOUR_TIMES(k, __m256i s = _mm256_sub_epi32(load(sum + i + 8 * k), bias);
                          __m256 q = qk256_divide(d, _mm256_mul_ps(_mm256_cvtepi32_ps(s), factor));
                          v[k] = qk256_round(q, zp, zp_f32, e->add_zp_first));
            store(dst + i, qk256_pack8(v, e->is_signed));
        }
    }
    qk_pool_row_ref.finish(sum + i, dst + i, n - i, e);
}

static void average_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed,
                         const qk_pool_end *end) {
    enum { COLUMNS = 128 };
    int32_t sum[COLUMNS];
    rest left;
    for (size_t i = 0; i < n; i += COLUMNS) {
        size_t m = n - i < COLUMNS ? n - i : COLUMNS, results = (m - 1) / step + 1;
        rest_of(rows, n_rows, i, &left);
        sum_rows(left.rows, n_rows, sum, m, is_signed, false);
        if (step == 2) every_second32(sum, sum, results);
        finish(sum, dst + i / step, results, end);
    }
}

const qk_pool_row qk_pool_row_avx2 = {max_grid,       mean_grid, max_rows, sum_rows,   average_rows,
                                      sum_columns,    add32,     slide32,  sum8,       max_of,
                                      every_second32, finish,    &walkers, QK_ISA_avx2};
