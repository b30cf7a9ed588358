#include "kernels/gemm/gemm_row.h"
#include "kernels/simd/avx512_x8.h"

/* Four vectors of columns by up to four rows of sums. The weights of a run are at most 16 KiB: rows beyond four find them in L1. */
enum { LANES = 16, ROWS = 4, AHEAD_BYTES = 2048 };

#define ADD(j)                                                                                                         \
    do {                                                                                                               \
        if (has_zp) w##j = _mm512_sub_ps(w##j, zp##j);                                                                 \
        QK_FOUR_TIMES(r,                                                                                               \
                      if (r < n_rows) s[r][j] = _mm512_fmadd_ps(_mm512_set1_ps(a[r * a_stride + i]), w##j, s[r][j]));  \
    } while (0)

/* totals[r][...] += scale * Σ over the run; n_rows, is_4bit and has_zp are constants of the caller. */
QK_INLINE void add_run(const qk_gemm_run *run, const float *a, size_t a_stride, float (*totals)[QK_GEMM_COLS],
                       size_t n_rows, bool is_4bit, bool has_zp) {
    __m512 s[ROWS][4];
    QK_FOUR_TIMES(r, QK_FOUR_TIMES(j, s[r][j] = _mm512_setzero_ps()));
    __m512 zp0, zp1, zp2, zp3;
    zp0 = zp1 = zp2 = zp3 = _mm512_setzero_ps();
    if (has_zp) {
        zp0 = _mm512_cvtepi32_ps(qk512_load8(run->zps, true));
        zp1 = _mm512_cvtepi32_ps(qk512_load8(run->zps + LANES, true));
        zp2 = _mm512_cvtepi32_ps(qk512_load8(run->zps + 2 * LANES, true));
        zp3 = _mm512_cvtepi32_ps(qk512_load8(run->zps + 3 * LANES, true));
    }
    const uint8_t *p = run->values;
    if (is_4bit) {
        const __m512 of_nibble = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
        for (size_t i = 0; i < run->n_k; p += 4 * QK_GEMM_COLS) {
            __m512i x0 = _mm512_loadu_si512(p), x1 = _mm512_loadu_si512(p + 64), x2 = _mm512_loadu_si512(p + 128),
                    x3 = _mm512_loadu_si512(p + 192);
            QK_FOUR_TIMES(line, _mm_prefetch((const char *)p + AHEAD_BYTES + 64 * line, _MM_HINT_T0));
            const size_t end = run->n_k - i < 8 ? run->n_k : i + 8;
            for (; i < end; i++) { /* a permutation looks at the low four bits only */
                __m512 w0 = _mm512_permutexvar_ps(x0, of_nibble), w1 = _mm512_permutexvar_ps(x1, of_nibble),
                       w2 = _mm512_permutexvar_ps(x2, of_nibble), w3 = _mm512_permutexvar_ps(x3, of_nibble);
                x0 = _mm512_srli_epi32(x0, 4);
                x1 = _mm512_srli_epi32(x1, 4);
                x2 = _mm512_srli_epi32(x2, 4);
                x3 = _mm512_srli_epi32(x3, 4);
                ADD(0);
                ADD(1);
                ADD(2);
                ADD(3);
            }
        }
    } else {
        for (size_t i = 0; i < run->n_k; i++, p += QK_GEMM_COLS) {
            __m512 w0 = _mm512_cvtepi32_ps(qk512_load8(p, true));
            __m512 w1 = _mm512_cvtepi32_ps(qk512_load8(p + LANES, true));
            __m512 w2 = _mm512_cvtepi32_ps(qk512_load8(p + 2 * LANES, true));
            __m512 w3 = _mm512_cvtepi32_ps(qk512_load8(p + 3 * LANES, true));
            _mm_prefetch((const char *)p + AHEAD_BYTES, _MM_HINT_T0);
            ADD(0);
            ADD(1);
            ADD(2);
            ADD(3);
        }
    }
    QK_FOUR_TIMES(j, {
        const __m512 scale = _mm512_loadu_ps(run->scales + LANES * j);
        QK_FOUR_TIMES(
            r, if (r < n_rows) {
                float *to = totals[r] + LANES * j;
                _mm512_storeu_ps(to, _mm512_fmadd_ps(s[r][j], scale, _mm512_loadu_ps(to)));
            });
    });
}

typedef void add_run_fn(const qk_gemm_run *run, const float *a, size_t a_stride, float (*totals)[QK_GEMM_COLS]);
#define FORM(name, rows, is_4bit, has_zp)                                                                              \
    static void name(const qk_gemm_run *run, const float *a, size_t a_stride, float(*totals)[QK_GEMM_COLS]) {          \
        add_run(run, a, a_stride, totals, rows, is_4bit, has_zp);                                                      \
    }
#define FORMS(bits, is_4bit)                                                                                           \
    FORM(add1_##bits, 1, is_4bit, false)                                                                               \
    FORM(add2_##bits, 2, is_4bit, false)                                                                               \
    FORM(add3_##bits, 3, is_4bit, false)                                                                               \
    FORM(add4_##bits, 4, is_4bit, false)                                                                               \
    FORM(add1_zp_##bits, 1, is_4bit, true)                                                                             \
    FORM(add2_zp_##bits, 2, is_4bit, true)                                                                             \
    FORM(add3_zp_##bits, 3, is_4bit, true)                                                                             \
    FORM(add4_zp_##bits, 4, is_4bit, true)
FORMS(x8, false)
FORMS(x4, true)

/* By 4 bits, zero points, rows - 1. */
static add_run_fn *const forms[2][2][ROWS] = {
    {{add1_x8, add2_x8, add3_x8, add4_x8}, {add1_zp_x8, add2_zp_x8, add3_zp_x8, add4_zp_x8}},
    {{add1_x4, add2_x4, add3_x4, add4_x4}, {add1_zp_x4, add2_zp_x4, add3_zp_x4, add4_zp_x4}},
};

#include "kernels/gemm/gemm_floats_body.h"

void qk_gemm_avx512(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                    size_t m, size_t first, size_t n) {
    run_floats(g, packed, a, a_stride, c, c_stride, m, first, n);
}
