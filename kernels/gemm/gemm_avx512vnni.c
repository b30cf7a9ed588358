#include "kernels/simd/vec512.h"

#include "kernels/gemm/gemm_digits_begin_body.h"

QK_INLINE __m512i even_first(__m512i x) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15), x);
}
QK_INLINE void store_bytes(int8_t *p, __m512i x) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(x));
}
#define maxi(a, b)     _mm512_max_epi32(a, b)
#define sum_of(x)      _mm512_reduce_add_epi32(x)
#define greatest_of(x) _mm512_reduce_max_epi32(x)

/* In place, as in igemm_avx512vnni.c. */
#define ADD(w, j, k)                                                                                                   \
    QK_FOUR_TIMES(                                                                                                     \
        d, if (d < n_digits) {                                                                                         \
            const __m512i digit = _mm512_set1_epi32(load4(in->d[d] + (k)));                                            \
            __asm__("vpdpbusd %2, %1, %0" : "+v"(s[d][j]) : "v"(w), "v"(digit));                                       \
        })

QK_INLINE __m512i row_at(const uint8_t *p, size_t i, __m512i sign) {
    return _mm512_xor_si512(_mm512_loadu_si512(p + i * QK_GEMM_COLS), sign);
}

/* Sums of digits times weights, as unsigned numbers, of a run of 8 bits. Four rows of 64 weights become columns of four: in vector j,
 * lane l of 128 bits, the columns 16 l + 4 j … + 3. */
QK_INLINE void run_8bit(const uint8_t *p, size_t n, const digits *in, sums *out, const int n_digits) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    uint8_t last[STEP];
    const size_t n4 = n / 4 * 4;
    if (n4 < n) { /* what is less than four k, and zero digits for the rest */
        memset(last, 0, sizeof last);
        memcpy(last, p + n4 * QK_GEMM_COLS, (n - n4) * QK_GEMM_COLS);
    }
    __m512i s[DIGITS][4];
    QK_FOUR_TIMES(d, QK_FOUR_TIMES(j, s[d][j] = _mm512_setzero_si512()));
    for (size_t k = 0; k < n; k += 4, p += STEP) {
        if (k == n4) p = last;
        QK_FOUR_TIMES(line, _mm_prefetch((const char *)p + AHEAD_BYTES + 64 * line, _MM_HINT_T0));
        const __m512i a0 = row_at(p, 0, sign), a1 = row_at(p, 1, sign), a2 = row_at(p, 2, sign),
                      a3 = row_at(p, 3, sign);
        const __m512i t0 = _mm512_unpacklo_epi8(a0, a1), t1 = _mm512_unpackhi_epi8(a0, a1),
                      t2 = _mm512_unpacklo_epi8(a2, a3), t3 = _mm512_unpackhi_epi8(a2, a3);
        const __m512i w0 = _mm512_unpacklo_epi16(t0, t2), w1 = _mm512_unpackhi_epi16(t0, t2),
                      w2 = _mm512_unpacklo_epi16(t1, t3), w3 = _mm512_unpackhi_epi16(t1, t3);
        ADD(w0, 0, k);
        ADD(w1, 1, k);
        ADD(w2, 2, k);
        ADD(w3, 3, k);
    }
    QK_FOUR_TIMES(d, if (d < n_digits) QK_FOUR_TIMES(j, out->s[d][j] = s[d][j]));
}

/* The same of a run of 4 bits: in vector j the columns 16 j … + 15. */
QK_INLINE void run_4bit(const uint8_t *p, size_t n, const digits *in, sums *out, const int n_digits) {
    const __m512i low = _mm512_set1_epi8(15), sign = _mm512_set1_epi8(8);
    __m512i s[DIGITS][4];
    QK_FOUR_TIMES(d, QK_FOUR_TIMES(j, s[d][j] = _mm512_setzero_si512()));
    for (size_t k = 0; k < n; k += 8, p += STEP) {
        QK_FOUR_TIMES(line, _mm_prefetch((const char *)p + AHEAD_BYTES + 64 * line, _MM_HINT_T0));
        QK_FOUR_TIMES(j, {
            const __m512i x = _mm512_loadu_si512(p + 64 * j);
            /* (x & low) ^ sign */
            const __m512i even = _mm512_ternarylogic_epi32(x, low, sign, 0x6a),
                          odd = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x, 4), low, sign, 0x6a);
            ADD(even, j, k);
            ADD(odd, j, k + 4);
        });
    }
    QK_FOUR_TIMES(d, if (d < n_digits) QK_FOUR_TIMES(j, out->s[d][j] = s[d][j]));
}

/* Functions of their own: their sums need the registers. */
#define FORM(bits, n_digits)                                                                                           \
    static __attribute__((noinline)) void run_##bits##_##n_digits(const uint8_t *p, size_t n, const digits *in,        \
                                                                  sums *out) {                                         \
        run_##bits(p, n, in, out, n_digits);                                                                           \
    }
FORM(8bit, 3)
FORM(8bit, 4)
FORM(4bit, 3)
FORM(4bit, 4)
#undef FORM
static digits_fn *form_of(bool is_4bit, int n_digits) {
    static digits_fn *const forms[2][2] = {{run_8bit_3, run_8bit_4}, {run_4bit_3, run_4bit_4}};
    return forms[is_4bit][n_digits - 3];
}

/* Zero points of vector j, plus what made the weights unsigned. */
QK_INLINE __m512 zps_of(const int8_t *zps, size_t j, bool is_4bit) {
    const __m512i shift = _mm512_set1_epi32(is_4bit ? 8 : 128);
    if (zps == NULL) return _mm512_cvtepi32_ps(shift);
    if (is_4bit) return _mm512_cvtepi32_ps(_mm512_add_epi32(qk512_load8(zps + QV_LANES * j, true), shift));
    const __m512i order = _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12),
                                           _mm512_set1_epi32((int)j));
    const __m512i picked = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(zps));
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_cvtepi8_epi32(_mm512_castsi512_si128(picked)), shift));
}

/* Lanes of 128 bits as a matrix, transposed: columns in order. */
QK_INLINE void in_order(__m512 v[4]) {
    const __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[0], v[1], 0xee),
                 c = _mm512_shuffle_f32x4(v[2], v[3], 0x44), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_f32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_f32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

#define float_row qk_gemm_avx512
#include "kernels/gemm/gemm_digits_body.h"

void qk_gemm_avx512vnni(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c,
                        size_t c_stride, size_t m, size_t first, size_t n) {
    by_digits(g, packed, a, a_stride, c, c_stride, m, first, n);
}
