#include "kernels/pool/pool_grid_body.h"
#include "kernels/pool/pool_walk_body.h"

static __mmask64 bytes(size_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}
static __mmask32 words(size_t n) {
    return n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;
}

static void max_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed) {
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 lanes = bytes(n - i);
        __m512i max = _mm512_maskz_loadu_epi8(lanes, rows[0] + i);
        if (is_signed)
            for (size_t r = 1; r < n_rows; r++)
                max = _mm512_max_epi8(max, _mm512_maskz_loadu_epi8(lanes, rows[r] + i));
        else
            for (size_t r = 1; r < n_rows; r++)
                max = _mm512_max_epu8(max, _mm512_maskz_loadu_epi8(lanes, rows[r] + i));
        if (step == 2)
            _mm256_mask_storeu_epi8(dst + i / 2, words((n - i - 1) / 2 + 1), _mm512_cvtepi16_epi8(max));
        else if (n - i >= 64)
            _mm512_storeu_si512(dst + i, max);
        else
            _mm512_mask_storeu_epi8(dst + i, lanes, max);
    }
}

/* Sums of 32 columns, in two halves of 32 bits. */
typedef struct sums {
    __m512i low, high;
} sums;

QK_INLINE __m512i sum_words(const uint8_t *const *rows, size_t n_rows, size_t i, __mmask32 lanes, bool is_signed) {
    __m512i acc = _mm512_setzero_si512();
    if (is_signed)
        for (size_t r = 0; r < n_rows; r++)
            acc = _mm512_add_epi16(acc, _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(lanes, rows[r] + i)));
    else
        for (size_t r = 0; r < n_rows; r++)
            acc = _mm512_add_epi16(acc, _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(lanes, rows[r] + i)));
    return acc;
}

QK_INLINE sums sum_32(const uint8_t *const *rows, size_t n_rows, size_t i, __mmask32 lanes, bool is_signed) {
    __m512i acc = sum_words(rows, n_rows, i, lanes, is_signed);
    return (sums){_mm512_cvtepi16_epi32(_mm512_castsi512_si256(acc)),
                  _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(acc, 1))};
}

static void sum_rows(const uint8_t *const *rows, size_t n_rows, int32_t *sum, size_t n, bool is_signed, bool is_added) {
    for (size_t i = 0; i < n; i += 32) {
        __mmask32 lanes = words(n - i);
        sums s = sum_32(rows, n_rows, i, lanes, is_signed);
        __mmask16 low = (__mmask16)lanes, high = (__mmask16)(lanes >> 16);
        if (is_added) {
            s.low = _mm512_add_epi32(s.low, _mm512_maskz_loadu_epi32(low, sum + i));
            s.high = _mm512_add_epi32(s.high, _mm512_maskz_loadu_epi32(high, sum + i + 16));
        }
        if (n - i >= 32) {
            _mm512_storeu_si512(sum + i, s.low);
            _mm512_storeu_si512(sum + i + 16, s.high);
        } else {
            _mm512_mask_storeu_epi32(sum + i, low, s.low);
            _mm512_mask_storeu_epi32(sum + i + 16, high, s.high);
        }
    }
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i w = _mm512_maskz_loadu_epi32(lanes, a + i);
        _mm512_mask_storeu_epi32(acc + i, lanes, _mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, acc + i), w));
    }
}

static void slide32(int32_t *acc, const int32_t *in, const int32_t *out, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = qk512_lanes(n - i);
        const __m512i come = _mm512_maskz_loadu_epi32(lanes, in + i), gone = _mm512_maskz_loadu_epi32(lanes, out + i);
        const __m512i sum = _mm512_maskz_loadu_epi32(lanes, acc + i);
        _mm512_mask_storeu_epi32(acc + i, lanes, _mm512_add_epi32(sum, _mm512_sub_epi32(come, gone)));
    }
}

static int64_t sum8(const uint8_t *a, size_t n, bool is_signed) {
    /* A signed byte plus 128 is the unsigned byte with the top bit turned round. */
    const __m512i flip = _mm512_set1_epi8(is_signed ? -128 : 0), zero = _mm512_setzero_si512();
    __m512i sum[4] = {zero, zero, zero, zero};
    size_t i = 0;
    for (; n - i >= 256; i += 256)
        QK_FOUR_TIMES(k, __m512i b = _mm512_xor_si512(_mm512_loadu_si512(a + i + 64 * k), flip);
                      sum[k] = _mm512_add_epi64(sum[k], _mm512_sad_epu8(b, zero)));
    for (; i < n; i += 64) {
        __mmask64 lanes = bytes(n - i);
        __m512i b = _mm512_maskz_mov_epi8(lanes, _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, a + i), flip));
        sum[0] = _mm512_add_epi64(sum[0], _mm512_sad_epu8(b, zero));
    }
    sum[0] = _mm512_add_epi64(_mm512_add_epi64(sum[0], sum[1]), _mm512_add_epi64(sum[2], sum[3]));
    return _mm512_reduce_add_epi64(sum[0]) - (is_signed ? 128 * (int64_t)n : 0);
}

static uint8_t max_of(const uint8_t *a, size_t n, bool is_signed) {
    __m512i flip = _mm512_set1_epi8(is_signed ? -128 : 0), max = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 lanes = bytes(n - i);
        __m512i b = _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, a + i), flip);
        max = _mm512_mask_max_epu8(max, lanes, max, b);
    }
    uint8_t each[64];
    _mm512_storeu_si512(each, max);
    return (uint8_t)(qk_pool_row_ref.max_of(each, 64, false) ^ (is_signed ? 0x80 : 0));
}

static void every_second32(const int32_t *a, int32_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        __m512i v = _mm512_maskz_loadu_epi32(qk512_lanes(2 * (n - i) - 1), a + 2 * i);
        if (n - i >= 8)
            _mm256_storeu_si256((__m256i *)(dst + i), _mm512_cvtepi64_epi32(v));
        else
            _mm256_mask_storeu_epi32(dst + i, (__mmask8)qk512_lanes(n - i), _mm512_cvtepi64_epi32(v));
    }
}

/* qk_pool_end in registers. */
typedef struct ending {
    qk512_divisor divisor;
    __m512 fixed_factor, fixed_shift;
    bool is_fixed;
    __m512i bias, zp;
    __m512 factor, zp_f32;
    bool add_zp_first, is_signed;
} ending;

QK_INLINE ending ending_of(const qk_pool_end *e) {
    __m512i zp = _mm512_set1_epi32(e->zp);
    const qk512_divisor d = qk512_divisor_of(_mm512_set1_ps(e->scale));
    const bool is_fixed = qk_fixed_ok(e->scale, e->zp);
    return (ending){d,
                    _mm512_mul_ps(d.recip, _mm512_set1_ps(QK_FIXED_ONE)),
                    _mm512_set1_ps(qk_fixed_shift(is_fixed ? e->zp : 0)),
                    is_fixed,
                    _mm512_set1_epi32(e->bias),
                    zp,
                    _mm512_set1_ps(e->factor),
                    _mm512_cvtepi32_ps(zp),
                    e->add_zp_first,
                    e->is_signed};
}

QK_INLINE void finish_lanes(const ending *e, __m512i sum, uint8_t *dst, __mmask16 lanes) {
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(sum, e->bias)), e->factor);
    __m512i q = qk512_fixed(x, e->fixed_factor, e->fixed_shift);
    if (e->is_fixed && qk512_fixed_sure(lanes, q) == lanes)
        q = _mm512_srai_epi32(q, 16);
    else
        q = qk512_round(qk512_divide(e->divisor, x), e->zp, e->zp_f32, e->add_zp_first);
    if (lanes != 0xffff) {
        qk512_store8_lanes(dst, lanes, q, e->is_signed);
        return;
    }
    __m128i b =
        e->is_signed ? _mm512_cvtsepi32_epi8(q) : _mm512_cvtusepi32_epi8(_mm512_max_epi32(q, _mm512_setzero_si512()));
    _mm_storeu_si128((__m128i *)dst, b);
}

static void finish(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *end) {
    if (!qk_divisor_ok(end->scale, end->zp)) {
        qk_pool_row_ref.finish(sum, dst, n, end);
        return;
    }
    ending e = ending_of(end);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        finish_lanes(&e, _mm512_maskz_loadu_epi32(lanes, sum + i), dst + i, lanes);
    }
}

static void average_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed,
                         const qk_pool_end *end) {
    if (!qk_divisor_ok(end->scale, end->zp)) {
        qk_pool_row_ref.average_rows(rows, n_rows, dst, n, step, is_signed, end);
        return;
    }
    ending e = ending_of(end);
    for (size_t i = 0; i < n; i += 32) {
        __mmask32 lanes = words(n - i);
        if (step == 2) { /* the even words are the low halves of dwords */
            __m512i even = _mm512_slli_epi32(sum_words(rows, n_rows, i, lanes, is_signed), 16);
            finish_lanes(&e, _mm512_srai_epi32(even, 16), dst + i / 2, qk512_lanes((n - i - 1) / 2 + 1));
            continue;
        }
        sums s = sum_32(rows, n_rows, i, lanes, is_signed);
        finish_lanes(&e, s.low, dst + i, (__mmask16)lanes);
        if (n - i > 16) finish_lanes(&e, s.high, dst + i + 16, (__mmask16)(lanes >> 16));
    }
}

const qk_pool_row qk_pool_row_avx512 = {max_grid,       mean_grid, max_rows, sum_rows,     average_rows,
                                        sum_columns,    add32,     slide32,  sum8,         max_of,
                                        every_second32, finish,    &walkers, QK_ISA_avx512};
