#include "kernels/conv/conv_dw_row.h"
#include "kernels/conv/conv_half.h"

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c++)
        for (size_t i = 0; i < n; i++) {
            const float x = qk_conv_float(l->line[0] + i * l->step[0], c, l->type);
            memcpy(&out[c * plane + i], &x, sizeof x);
        }
}

static float value(const int32_t *p) {
    float f;
    memcpy(&f, p, sizeof f);
    return f;
}

static void sum_outputs(const qk_dw_taps *t, const int32_t *columns, const int32_t *weights, const int32_t *init,
                        size_t n, const qk_conv_end *end, int32_t (*sums)[QK_DW_BLOCK]) {
    (void)end;
    for (size_t x = 0; x < n; x++)
        for (size_t c = 0; c < t->n_channels; c++) {
            float sum = value(&init[c]);
            for (size_t g = 0; g < t->n_groups; g++)
                for (size_t k = 0; k < t->kernel; k++)
                    sum += value(&columns[g * t->group + c * t->plane + x * t->stride + k * t->dilation]) *
                           value(&weights[(g * t->kernel + k) * QK_DW_BLOCK + c]);
            memcpy(&sums[x][c], &sum, sizeof sum);
        }
}

const qk_dw_row qk_dw_float_row_ref = {QK_ISA_ref, 1, 1, weave, sum_outputs, NULL, false, NULL, NULL};
