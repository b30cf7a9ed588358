#include "kernels/conv/conv_dw_row.h"

#include <string.h>

/* Two 16-bit values in a dword, as the levels without byte products have them; one lane. */
static int32_t pair_of(int16_t a, int16_t b) {
    const int16_t both[2] = {a, b};
    int32_t pair;
    memcpy(&pair, both, sizeof pair);
    return pair;
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c++)
        for (size_t i = 0; i < n; i++) {
            const uint8_t x0 = l->line[0][i * l->step[0] + c] ^ l->flip;
            const uint8_t x1 = l->n > 1 ? l->line[1][i * l->step[1] + c] ^ l->flip : 0;
            out[c * plane + i] = pair_of(x0, x1);
        }
}

static void spread(const qk_dw_lines *l, size_t in_group, size_t part, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c++)
        for (size_t i = 0; i < n; i++) {
            const uint8_t *x = l->line[0] + i * l->step[0] + c / in_group * in_group + 2 * part;
            out[c * plane + i] = pair_of(x[0] ^ l->flip, x[1] ^ l->flip);
        }
}

static uint32_t dot(int32_t x, int32_t w) {
    int16_t a[2], b[2];
    memcpy(a, &x, sizeof a);
    memcpy(b, &w, sizeof b);
    return (uint32_t)(a[0] * b[0] + a[1] * b[1]);
}

static void sum_outputs(const qk_dw_taps *t, const int32_t *columns, const int32_t *weights, const int32_t *init,
                        size_t n, const qk_conv_end *end, int32_t (*sums)[QK_DW_BLOCK]) {
    (void)end;
    for (size_t x = 0; x < n; x++)
        for (size_t c = 0; c < t->n_channels; c++) {
            uint32_t sum = (uint32_t)init[c]; /* modulo 2^32, as vectors add */
            for (size_t g = 0; g < t->n_groups; g++)
                for (size_t k = 0; k < t->kernel; k++)
                    sum += dot(columns[g * t->group + c * t->plane + x * t->stride + k * t->dilation],
                               weights[(g * t->kernel + k) * QK_DW_BLOCK + c]);
            sums[x][c] = (int32_t)sum;
        }
}

const qk_dw_row qk_dw_row_ref = {QK_ISA_ref, 2, 1, weave, sum_outputs, spread, false, NULL, NULL};
