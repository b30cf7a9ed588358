#include "kernels/gemm/gemm_row.h"
#include "kernels/simd/avx2_x8.h"

/* Four vectors of columns, half a panel, by up to two rows of sums. The weights of a run are at most 16 KiB: the other rows and the
 * other half find them in L1. */
enum { LANES = 8, HALF = 32, ROWS = 2, ROWS_AT_ONCE = 32 };

#define ADD(j)                                                                                                         \
    do {                                                                                                               \
        if (has_zp) w##j = _mm256_sub_ps(w##j, zp##j);                                                                 \
        s0[j] = _mm256_fmadd_ps(a0, w##j, s0[j]);                                                                      \
        if (n_rows > 1) s1[j] = _mm256_fmadd_ps(a1, w##j, s1[j]);                                                      \
    } while (0)

/* The low nibble of each lane as a signed number. */
QK_INLINE __m256 of_nibble(__m256i x) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x, 28), 28));
}

QK_INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

/* totals[r][...] += scale * Σ over the run, in half a panel; n_rows, is_4bit and has_zp are constants of the caller. */
QK_INLINE void add_run(const qk_gemm_run *run, size_t half, const float *a, size_t a_stride,
                       float (*totals)[QK_GEMM_COLS], size_t n_rows, bool is_4bit, bool has_zp) {
    const size_t col = half * HALF;
    __m256 s0[4], s1[4], a0, a1 = _mm256_setzero_ps();
    QK_FOUR_TIMES(j, s0[j] = s1[j] = _mm256_setzero_ps());
    __m256 zp0, zp1, zp2, zp3;
    zp0 = zp1 = zp2 = zp3 = _mm256_setzero_ps();
    if (has_zp) {
        zp0 = _mm256_cvtepi32_ps(qk256_load8(run->zps + col, true));
        zp1 = _mm256_cvtepi32_ps(qk256_load8(run->zps + col + LANES, true));
        zp2 = _mm256_cvtepi32_ps(qk256_load8(run->zps + col + 2 * LANES, true));
        zp3 = _mm256_cvtepi32_ps(qk256_load8(run->zps + col + 3 * LANES, true));
    }
    if (is_4bit) {
        const uint8_t *p = run->values + 4 * col;
        for (size_t i = 0; i < run->n_k; p += 4 * QK_GEMM_COLS) {
            __m256i x0 = load(p), x1 = load(p + 32), x2 = load(p + 64), x3 = load(p + 96);
            const size_t end = run->n_k - i < 8 ? run->n_k : i + 8;
            for (; i < end; i++) {
                __m256 w0 = of_nibble(x0), w1 = of_nibble(x1), w2 = of_nibble(x2), w3 = of_nibble(x3);
                x0 = _mm256_srli_epi32(x0, 4);
                x1 = _mm256_srli_epi32(x1, 4);
                x2 = _mm256_srli_epi32(x2, 4);
                x3 = _mm256_srli_epi32(x3, 4);
                a0 = _mm256_broadcast_ss(a + i);
                if (n_rows > 1) a1 = _mm256_broadcast_ss(a + a_stride + i);
                ADD(0);
                ADD(1);
                ADD(2);
                ADD(3);
            }
        }
    } else {
        const uint8_t *p = run->values + col;
        for (size_t i = 0; i < run->n_k; i++, p += QK_GEMM_COLS) {
            __m256 w0 = _mm256_cvtepi32_ps(qk256_load8(p, true));
            __m256 w1 = _mm256_cvtepi32_ps(qk256_load8(p + LANES, true));
            __m256 w2 = _mm256_cvtepi32_ps(qk256_load8(p + 2 * LANES, true));
            __m256 w3 = _mm256_cvtepi32_ps(qk256_load8(p + 3 * LANES, true));
            a0 = _mm256_broadcast_ss(a + i);
            if (n_rows > 1) a1 = _mm256_broadcast_ss(a + a_stride + i);
            ADD(0);
            ADD(1);
            ADD(2);
            ADD(3);
        }
    }
    QK_FOUR_TIMES(j, {
        const __m256 scale = _mm256_loadu_ps(run->scales + col + LANES * j);
        float *to = totals[0] + col + LANES * j;
        _mm256_storeu_ps(to, _mm256_fmadd_ps(s0[j], scale, _mm256_loadu_ps(to)));
        if (n_rows > 1) {
            to = totals[1] + col + LANES * j;
            _mm256_storeu_ps(to, _mm256_fmadd_ps(s1[j], scale, _mm256_loadu_ps(to)));
        }
    });
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

void qk_gemm_avx2(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                  size_t m, size_t first, size_t n) {
    add_run_fn *const *form = forms[qk_gemm_is_4bit(g)][g->has_zp];
    for (size_t p = first; p < first + n; p++) {
        const uint8_t *panel = (const uint8_t *)packed + p * g->panel_bytes;
        const size_t col = p * QK_GEMM_COLS, n_cols = g->n - col < QK_GEMM_COLS ? g->n - col : QK_GEMM_COLS;
        for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
            const size_t n_rows = m - row < ROWS_AT_ONCE ? m - row : ROWS_AT_ONCE;
            float totals[ROWS_AT_ONCE][QK_GEMM_COLS];
            memset(totals, 0, n_rows * sizeof totals[0]);
            for (size_t k = 0; k < g->k;) {
                const qk_gemm_run run = qk_gemm_run_at(g, panel, k);
                for (size_t r = 0; r < n_rows; r += ROWS)
                    form[n_rows - r < ROWS ? 0 : 1](&run, a + (row + r) * a_stride + k, a_stride, totals + r);
                k += run.n_k;
            }
            for (size_t r = 0; r < n_rows; r++)
                memcpy(c + (row + r) * c_stride + col, totals[r], n_cols * sizeof(float));
        }
    }
}
