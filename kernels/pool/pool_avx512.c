#include "kernels/pool/pool_row.h"
#include "kernels/simd/avx512_x8.h"

static __mmask64 bytes(size_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}
static __mmask32 words(size_t n) {
    return n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;
}

static void max8(uint8_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 lanes = bytes(n - i);
        __m512i x = _mm512_maskz_loadu_epi8(lanes, acc + i), y = _mm512_maskz_loadu_epi8(lanes, a + i);
        _mm512_mask_storeu_epi8(acc + i, lanes, is_signed ? _mm512_max_epi8(x, y) : _mm512_max_epu8(x, y));
    }
}

static void add8(int16_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i += 32) {
        __mmask32 lanes = words(n - i);
        __m256i b = _mm256_maskz_loadu_epi8(lanes, a + i);
        __m512i w = is_signed ? _mm512_cvtepi8_epi16(b) : _mm512_cvtepu8_epi16(b);
        _mm512_mask_storeu_epi16(acc + i, lanes, _mm512_add_epi16(_mm512_maskz_loadu_epi16(lanes, acc + i), w));
    }
}

static void add16(int32_t *acc, const int16_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i w = _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(lanes, a + i));
        _mm512_mask_storeu_epi32(acc + i, lanes, _mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, acc + i), w));
    }
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i w = _mm512_maskz_loadu_epi32(lanes, a + i);
        _mm512_mask_storeu_epi32(acc + i, lanes, _mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, acc + i), w));
    }
}

static int64_t sum8(const uint8_t *a, size_t n, bool is_signed) {
    /* A signed byte plus 128 is the unsigned byte with the top bit turned round. */
    __m512i flip = _mm512_set1_epi8(is_signed ? -128 : 0), sum = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 lanes = bytes(n - i);
        __m512i b = _mm512_maskz_mov_epi8(lanes, _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, a + i), flip));
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(b, _mm512_setzero_si512()));
    }
    return _mm512_reduce_add_epi64(sum) - (is_signed ? 128 * (int64_t)n : 0);
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

static void every_second(const uint8_t *a, uint8_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 32) {
        __mmask64 in = bytes(2 * (n - i) - 1);
        _mm512_mask_cvtepi16_storeu_epi8(dst + i, words(n - i), _mm512_maskz_loadu_epi8(in, a + 2 * i));
    }
}

static void finish(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *e) {
    if (!qk_divisor_ok(e->scale, e->zp)) {
        qk_pool_row_ref.finish(sum, dst, n, e);
        return;
    }
    qk512_divisor d = qk512_divisor_of(_mm512_set1_ps(e->scale));
    __m512i bias = _mm512_set1_epi32(e->bias), zp = _mm512_set1_epi32(e->zp);
    __m512 factor = _mm512_set1_ps(e->factor), zp_f32 = _mm512_cvtepi32_ps(zp);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i s = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(lanes, sum + i), bias);
        __m512 q = qk512_divide(d, _mm512_mul_ps(_mm512_cvtepi32_ps(s), factor));
        qk512_store8_lanes(dst + i, lanes, qk512_round(q, zp, zp_f32, e->add_zp_first), e->is_signed);
    }
}

const qk_pool_row qk_pool_row_avx512 = {max8, add8, add16, add32, sum8, max_of, every_second, finish, QK_ISA_avx512};
