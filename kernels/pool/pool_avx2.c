#include "kernels/pool/pool_row.h"
#include "kernels/simd/avx2_x8.h"

/* Tails as the reference does them. */
static __m256i load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static void store(void *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

static void max8(uint8_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i x = load(acc + i), y = load(a + i);
        store(acc + i, is_signed ? _mm256_max_epi8(x, y) : _mm256_max_epu8(x, y));
    }
    qk_pool_row_ref.max8(acc + i, a + i, n - i, is_signed);
}

static void add8(int16_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(a + i));
        store(acc + i, _mm256_add_epi16(load(acc + i), is_signed ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b)));
    }
    qk_pool_row_ref.add8(acc + i, a + i, n - i, is_signed);
}

static void add16(int32_t *acc, const int16_t *a, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        store(acc + i,
              _mm256_add_epi32(load(acc + i), _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(a + i)))));
    qk_pool_row_ref.add16(acc + i, a + i, n - i);
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        store(acc + i, _mm256_add_epi32(load(acc + i), load(a + i)));
    qk_pool_row_ref.add32(acc + i, a + i, n - i);
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

static void every_second(const uint8_t *a, uint8_t *dst, size_t n) {
    size_t i = 0;
    __m256i low = _mm256_set1_epi16(0xff);
    for (; n - i > 32; i += 32) { /* reads a[2i … 2i+63] */
        __m256i p =
            _mm256_packus_epi16(_mm256_and_si256(load(a + 2 * i), low), _mm256_and_si256(load(a + 2 * i + 32), low));
        store(dst + i, _mm256_permute4x64_epi64(p, 0xd8));
    }
    qk_pool_row_ref.every_second(a + 2 * i, dst + i, n - i);
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

const qk_pool_row qk_pool_row_avx2 = {max8, add8, add16, add32, sum8, max_of, every_second, finish, QK_ISA_avx2};
