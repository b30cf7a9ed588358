#include "kernels/igemm/igemm_row.h"

void qk_igemm_x8_ref(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                     void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel), kc = qk_igemm_kc(g);
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    for (size_t r = 0; r < m; r++)
        for (size_t c = 0; c < n_cols; c++) {
            uint32_t sum = 0;
            for (size_t t = 0; t < g->n_taps; t++) {
                const uint8_t *a = rows[t * QK_IGEMM_ROWS + r];
                const int8_t *w = (const int8_t *)qk_igemm_panel(g, packed, panel) + t * kc * QK_IGEMM_COLS + c * 4;
                for (size_t k = 0; k < g->kc; k++)
                    sum += (uint32_t)((a[k] ^ flip) * w[k / 4 * 4 * QK_IGEMM_COLS + k % 4]);
            }
            ((int32_t *)acc)[r * QK_IGEMM_COLS + c] = (int32_t)sum;
        }
}

void qk_igemm_f32_ref(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                      void *acc) {
    const size_t n_cols = qk_igemm_cols_of(g, panel);
    for (size_t r = 0; r < m; r++)
        for (size_t c = 0; c < n_cols; c++) {
            const float *w = (const float *)(const void *)qk_igemm_panel(g, packed, panel) + c;
            float sum = 0.0f;
            for (size_t t = 0; t < g->n_taps; t++) {
                const float *a = rows[t * QK_IGEMM_ROWS + r];
                for (size_t k = 0; k < g->kc; k++, w += QK_IGEMM_COLS)
                    sum += a[k] * *w;
            }
            ((float *)acc)[r * QK_IGEMM_COLS + c] = sum;
        }
}

void qk_igemm_sums_ref(const qk_igemm *g, const void *const *rows, size_t m, int32_t *sums) {
    const uint8_t flip = g->src_shift != 0 ? 0x80 : 0;
    for (size_t r = 0; r < m; r++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < g->n_taps; t++)
            for (size_t k = 0; k < g->kc; k++)
                sum += ((const uint8_t *)rows[t * QK_IGEMM_ROWS + r])[k] ^ flip;
        sums[r] = (int32_t)sum;
    }
}
