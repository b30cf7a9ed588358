#include "kernels/gemm/gemm_row.h"

#include <string.h>

/* Q - zp of the i-th k of a run. */
static float value_at(const qk_gemm *g, const qk_gemm_run *run, size_t i, size_t col) {
    int32_t q;
    if (qk_gemm_is_4bit(g)) {
        uint32_t eight;
        memcpy(&eight, run->values + (i / 8 * QK_GEMM_COLS + col) * sizeof eight, sizeof eight);
        q = (int32_t)(eight >> i % 8 * 4 & 15u);
        q = q < 8 ? q : q - 16;
    } else {
        q = (int8_t)run->values[i * QK_GEMM_COLS + col];
    }
    return (float)(q - (run->zps ? run->zps[col] : 0));
}

void qk_gemm_ref(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                 size_t m, size_t first, size_t n) {
    const size_t end = (first + n) * QK_GEMM_COLS < g->n ? (first + n) * QK_GEMM_COLS : g->n;
    for (size_t row = 0; row < m; row++)
        for (size_t col = first * QK_GEMM_COLS; col < end; col++) {
            const uint8_t *panel = (const uint8_t *)packed + col / QK_GEMM_COLS * g->panel_bytes;
            const size_t j = col % QK_GEMM_COLS;
            float total = 0.0f;
            for (size_t k = 0; k < g->k;) {
                const qk_gemm_run run = qk_gemm_run_at(g, panel, k);
                float sum = 0.0f;
                for (size_t i = 0; i < run.n_k; i++)
                    sum += a[row * a_stride + k + i] * value_at(g, &run, i, j);
                total += sum * run.scales[j];
                k += run.n_k;
            }
            c[row * c_stride + col] = total;
        }
}
