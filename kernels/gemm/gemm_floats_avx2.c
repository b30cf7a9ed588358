#include "kernels/gemm/gemm_row.h"
#include "kernels/simd/avx2_x8.h"

/* Four vectors of columns, half a panel, by up to two rows of sums. A run is at most 16 KiB: the other half finds it in L1. */
enum { LANES = 8, HALF = 32, ROWS = 2 };

/* The low nibble of each lane as a signed number. */
QK_INLINE __m256 of_nibble(__m256i x) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x, 28), 28));
}

QK_INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

/* One k of four vectors of weights, in w, by a[i] of each row. */
#define ADD_ROWS()                                                                                                     \
    do {                                                                                                               \
        const __m256 a0 = _mm256_broadcast_ss(a + i);                                                                  \
        if (has_zp) QK_FOUR_TIMES(j, w[j] = _mm256_sub_ps(w[j], zp[j]));                                               \
        QK_FOUR_TIMES(j, s0[j] = _mm256_fmadd_ps(a0, w[j], s0[j]));                                                    \
        if (n_rows > 1) {                                                                                              \
            const __m256 a1 = _mm256_broadcast_ss(a + a_stride + i);                                                   \
            QK_FOUR_TIMES(j, s1[j] = _mm256_fmadd_ps(a1, w[j], s1[j]));                                                \
        }                                                                                                              \
    } while (0)

QK_INLINE void add_scaled(float *total, __m256 sum, const float *scale) {
    _mm256_storeu_ps(total, _mm256_fmadd_ps(sum, _mm256_loadu_ps(scale), _mm256_loadu_ps(total)));
}

/* totals[r][...] += scale * Σ over the run, in half a panel; n_rows, is_4bit and has_zp are constants of the caller. */
QK_INLINE void add_run(const qk_gemm_run *run, size_t half, const float *a, size_t a_stride,
                       float (*totals)[QK_GEMM_COLS], size_t n_rows, bool is_4bit, bool has_zp) {
    const size_t col = half * HALF, n = run->n_k;
    const uint8_t *p = run->values + (is_4bit ? 4 : 1) * col;
    __m256 s0[4], s1[4], zp[4], w[4];
    QK_FOUR_TIMES(j, s0[j] = s1[j] = _mm256_setzero_ps());
    QK_FOUR_TIMES(j, zp[j] = has_zp ? _mm256_cvtepi32_ps(qk256_load8(run->zps + col + LANES * j, true))
                                    : _mm256_setzero_ps());
    for (size_t i = 0; is_4bit && i < n; p += 4 * QK_GEMM_COLS) {
        __m256i x[4];
        QK_FOUR_TIMES(j, x[j] = load(p + 32 * j));
        for (const size_t end = n - i < 8 ? n : i + 8; i < end; i++) {
            QK_FOUR_TIMES(j, w[j] = of_nibble(x[j]); x[j] = _mm256_srli_epi32(x[j], 4));
            ADD_ROWS();
        }
    }
    for (size_t i = 0; !is_4bit && i < n; i++, p += QK_GEMM_COLS) {
        QK_FOUR_TIMES(j, w[j] = _mm256_cvtepi32_ps(qk256_load8(p + LANES * j, true)));
        ADD_ROWS();
    }
    QK_FOUR_TIMES(j, add_scaled(totals[0] + col + LANES * j, s0[j], run->scales + col + LANES * j));
    if (n_rows > 1) QK_FOUR_TIMES(j, add_scaled(totals[1] + col + LANES * j, s1[j], run->scales + col + LANES * j));
}

typedef void add_run_fn(const qk_gemm_run *run, const float *a, size_t a_stride, float (*totals)[QK_GEMM_COLS]);
#define FORM(name, rows, is_4bit, has_zp)                                                                              \
    static void name(const qk_gemm_run *run, const float *a, size_t a_stride, float(*totals)[QK_GEMM_COLS]) {          \
        add_run(run, 0, a, a_stride, totals, rows, is_4bit, has_zp);                                                   \
        add_run(run, 1, a, a_stride, totals, rows, is_4bit, has_zp);                                                   \
    }
FORM(add1_x8, 1, false, false)
FORM(add2_x8, 2, false, false)
FORM(add1_zp_x8, 1, false, true)
FORM(add2_zp_x8, 2, false, true)
FORM(add1_x4, 1, true, false)
FORM(add2_x4, 2, true, false)
FORM(add1_zp_x4, 1, true, true)
FORM(add2_zp_x4, 2, true, true)

/* By 4 bits, zero points, rows - 1. */
static add_run_fn *const forms[2][2][ROWS] = {
    {{add1_x8, add2_x8}, {add1_zp_x8, add2_zp_x8}},
    {{add1_x4, add2_x4}, {add1_zp_x4, add2_zp_x4}},
};

#include "kernels/gemm/gemm_floats_body.h"

void qk_gemm_floats_avx2(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c,
                         size_t c_stride, size_t m, size_t first, size_t n) {
    run_floats(g, packed, a, a_stride, c, c_stride, m, first, n);
}
