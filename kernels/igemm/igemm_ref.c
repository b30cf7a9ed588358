#include "kernels/igemm/igemm_row.h"

void qk_igemm_x8_ref(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    for (size_t r = 0; r < rows->m; r++)
        for (size_t c = 0; c < n_cols; c++) {
            uint32_t sum = 0;
            const uint8_t *a = qk_igemm_row(rows, r);
            const int8_t *w = (const int8_t *)qk_igemm_panel(g, packed, panel) + c * 4;
            for (size_t k = 0; k < g->kc; k++)
                sum += (uint32_t)((a[k] ^ flip) * w[k / 4 * 4 * QK_IGEMM_COLS + k % 4]);
            ((int32_t *)acc)[r * QK_IGEMM_COLS + c] = (int32_t)sum;
        }
}

void qk_igemm_f32_ref(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    for (size_t r = 0; r < rows->m; r++)
        for (size_t c = 0; c < n_cols; c++) {
            const float *a = qk_igemm_row(rows, r),
                        *w = g->k_step == 0 ? (const float *)(const void *)qk_igemm_panel(g, packed, panel)
                                            : (const float *)packed + panel * QK_IGEMM_COLS;
            const size_t step = g->k_step == 0 ? QK_IGEMM_COLS : g->k_step;
            float sum = 0.0f;
            for (size_t k = 0; k < g->kc; k++)
                sum += a[k] * w[k * step + c];
            ((float *)acc)[r * QK_IGEMM_COLS + c] = sum;
        }
}

void qk_igemm_sums_ref(const qk_igemm *g, const qk_igemm_rows *rows, int32_t *sums) {
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    for (size_t r = 0; r < rows->m; r++) {
        const uint8_t *a = qk_igemm_row(rows, r);
        uint32_t sum = 0;
        for (size_t k = 0; k < g->kc; k++)
            sum += a[k] ^ flip;
        sums[r] = (int32_t)sum;
    }
}
