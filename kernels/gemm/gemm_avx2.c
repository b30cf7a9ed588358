#include "kernels/simd/vec256.h"

#include "kernels/gemm/gemm_digits_begin_body.h"

QK_INLINE __m256i even_first(__m256i x) {
    return _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
QK_INLINE void store_bytes(int8_t *p, __m256i x) {
    const __m256i lowest = _mm256_shuffle_epi8(x, _mm256_set1_epi32(0x0c080400));
    const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
    _mm_storel_epi64((__m128i *)(void *)p, bytes);
}
#define maxi(a, b) _mm256_max_epi32(a, b)
QK_INLINE int32_t sum_of(__m256i x) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
QK_INLINE int32_t greatest_of(__m256i x) {
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* Weights are 0 … 15, which vpmaddubsw multiplies by digits without saturating. A word takes eight such sums of two, of WORD_K k, before
 * it becomes a dword: at most 8 * 2 * 15 * 128. */
enum { WORD_K = 32 };

QK_INLINE __m256i even_weights(const uint8_t *p) {
    return _mm256_and_si256(_mm256_xor_si256(qv_loadi(p), _mm256_set1_epi8((char)0x88)), _mm256_set1_epi8(15));
}
QK_INLINE __m256i odd_weights(const uint8_t *p) {
    return _mm256_and_si256(_mm256_srli_epi16(_mm256_xor_si256(qv_loadi(p), _mm256_set1_epi8((char)0x88)), 4),
                            _mm256_set1_epi8(15));
}
QK_INLINE __m256i digit_at(const digits *in, const int d, size_t k) {
    return _mm256_set1_epi32(load4(in->d[d] + k));
}
QK_INLINE __m256i add_words(__m256i sum, __m256i words) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
}

/* In this order: the compiler's needs more registers than there are. */
#define ADD_PRODUCTS(sum, weights, digit)                                                                              \
    do {                                                                                                               \
        __m256i both;                                                                                                  \
        __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(both) : "x"(weights), "x"(digit));     \
    } while (0)

/* Two vectors at a time, whose sums and the digits fill the registers; of few k, so that weights are read in about the order that they
 * have in memory. */
QK_INLINE void run_4bit(const uint8_t *values, size_t n, const digits *in, sums *out, const int n_digits) {
    memset(out, 0, sizeof *out);
    for (size_t first = 0; first < n; first += WORD_K, values += WORD_K / 8 * STEP) {
        const size_t end = n - first < WORD_K ? n : first + WORD_K;
        for (size_t j = 0; j < VECTORS; j += 2) {
            const uint8_t *p = values + 32 * j;
            __m256i w0[DIGITS], w1[DIGITS];
            QK_FOUR_TIMES(d, w0[d] = w1[d] = _mm256_setzero_si256());
            for (size_t k = first; k < end; k += 8, p += STEP) {
                _mm_prefetch((const char *)p + AHEAD_BYTES, _MM_HINT_T0);
                const __m256i even0 = even_weights(p), even1 = even_weights(p + 32);
                QK_FOUR_TIMES(
                    d, if (d < n_digits) {
                        const __m256i digit = digit_at(in, d, k);
                        ADD_PRODUCTS(w0[d], even0, digit);
                        ADD_PRODUCTS(w1[d], even1, digit);
                    });
                const __m256i odd0 = odd_weights(p), odd1 = odd_weights(p + 32);
                QK_FOUR_TIMES(
                    d, if (d < n_digits) {
                        const __m256i digit = digit_at(in, d, k + 4);
                        ADD_PRODUCTS(w0[d], odd0, digit);
                        ADD_PRODUCTS(w1[d], odd1, digit);
                    });
            }
            QK_FOUR_TIMES(
                d, if (d < n_digits) {
                    out->s[d][j] = add_words(out->s[d][j], w0[d]);
                    out->s[d][j + 1] = add_words(out->s[d][j + 1], w1[d]);
                });
        }
    }
}

static void run_3(const uint8_t *p, size_t n, const digits *in, sums *out) {
    run_4bit(p, n, in, out, 3);
}
static void run_4(const uint8_t *p, size_t n, const digits *in, sums *out) {
    run_4bit(p, n, in, out, 4);
}
/* 4 bits only: of bytes the words would saturate. */
static digits_fn *form_of(bool is_4bit, int n_digits) {
    (void)is_4bit;
    return n_digits == 4 ? run_4 : run_3;
}

QK_INLINE __m256 zps_of(const int8_t *zps, size_t j, bool is_4bit) {
    (void)is_4bit;
    const __m256i shift = _mm256_set1_epi32(8);
    return _mm256_cvtepi32_ps(zps == NULL ? shift : _mm256_add_epi32(qk256_load8(zps + QV_LANES * j, true), shift));
}
#define in_order(v) ((void)(v))

#define float_row   qk_gemm_floats_avx2
#include "kernels/gemm/gemm_digits_body.h"

void qk_gemm_avx2(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                  size_t m, size_t first, size_t n) {
    if (qk_gemm_is_4bit(g))
        by_digits(g, packed, a, a_stride, c, c_stride, m, first, n);
    else
        qk_gemm_floats_avx2(g, packed, a, a_stride, c, c_stride, m, first, n);
}
