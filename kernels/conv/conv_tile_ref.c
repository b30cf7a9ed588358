#include "kernels/conv/conv_half.h"
#include "kernels/conv/conv_tile_row.h"

static const uint8_t *row_at(const qk_tile *t, const uint8_t *const *rows, size_t tap, size_t r) {
    return rows[tap * t->tap_stride + (t->step == 0 ? r : 0)] + r * t->step + t->offset;
}

static uint32_t dot(const uint8_t *x, const int32_t *weights) {
    const int8_t *w = (const int8_t *)weights;
    uint32_t sum = 0; /* modulo 2^32, as vectors add */
    for (size_t i = 0; i < 4; i++)
        sum += (uint32_t)(x[i] * w[i]);
    return sum;
}

static void tiles(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, const int32_t *panel,
                  const int32_t *init, const qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]) {
    (void)end;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < t->n_cols; c++) {
            uint32_t sum = (uint32_t)init[c];
            for (size_t i = 0; i < t->n_taps; i++)
                for (size_t k = 0, tap = t->taps[i]; k < t->n_dwords; k++)
                    sum += dot(row_at(t, rows, tap, r) + 4 * k, &panel[(tap * t->n_dwords + k) * t->n_cols + c]);
            sums[r][c] = (int32_t)sum;
        }
}

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i] ^ flip;
}

const qk_tile_row qk_tile_row_ref = {
    .isa = QK_ISA_ref, .unit = 4, .lanes = 8, .max_cols = 16, .tiles = tiles, .copy = copy};

static void float_tiles(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, const int32_t *panel,
                        const int32_t *init, const qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]) {
    (void)end;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < t->n_cols; c++) {
            float sum = qk_conv_float(init, c, QDQ_DTYPE_F32);
            for (size_t i = 0; i < t->n_taps; i++)
                for (size_t k = 0, tap = t->taps[i]; k < t->n_dwords; k++)
                    sum += qk_conv_float(row_at(t, rows, tap, r), k, QDQ_DTYPE_F32) *
                           qk_conv_float(panel, (tap * t->n_dwords + k) * t->n_cols + c, QDQ_DTYPE_F32);
            memcpy(&sums[r][c], &sum, sizeof sum);
        }
}

static void float_copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)flip;
    for (size_t i = 0; i < n; i++) {
        const float x = qk_conv_float(src, i, type);
        memcpy(dst + 4 * i, &x, sizeof x);
    }
}

const qk_tile_row qk_tile_float_row_ref = {.isa = QK_ISA_ref,
                                           .unit = 1,
                                           .lanes = 8,
                                           .max_cols = 16,

                                           .tiles = float_tiles,
                                           .copy = float_copy};
