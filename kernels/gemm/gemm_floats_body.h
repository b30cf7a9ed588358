/* A panel's product by floats of its weights, run after run. Included by gemm_*.c of levels that have said
 *     ROWS     the most rows of a form
 *     forms    by 4 bits, zero points, rows - 1: totals[r][...] += scale * the sums over a run */
#ifndef QK_GEMM_FLOATS_BODY_H
#define QK_GEMM_FLOATS_BODY_H

#include "kernels/gemm/gemm_row.h"

#include <string.h>

/* The arguments of a qk_gemm_fn. */
static void run_floats(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                       size_t m, size_t first, size_t n) {
    enum { ROWS_AT_ONCE = 32 }; /* which find a run's weights, at most 16 KiB, in L1 */
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
                for (size_t r = 0; r < n_rows; r += ROWS) {
                    const size_t now = n_rows - r < ROWS ? n_rows - r : ROWS;
                    form[now - 1](&run, a + (row + r) * a_stride + k, a_stride, totals + r);
                }
                k += run.n_k;
            }
            for (size_t r = 0; r < n_rows; r++)
                memcpy(c + (row + r) * c_stride + col, totals[r], n_cols * sizeof(float));
        }
    }
}

#endif
