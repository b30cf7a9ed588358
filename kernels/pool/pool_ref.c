#include "kernels/pool/pool_row.h"

#include <math.h>

static int value(uint8_t b, bool is_signed) {
    return is_signed ? (int8_t)b : b;
}

static void max_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed) {
    for (size_t i = 0; i < n; i += step) {
        uint8_t max = rows[0][i];
        for (size_t r = 1; r < n_rows; r++)
            max = value(rows[r][i], is_signed) > value(max, is_signed) ? rows[r][i] : max;
        *dst++ = max;
    }
}

static void sum_rows(const uint8_t *const *rows, size_t n_rows, int32_t *sum, size_t n, bool is_signed, bool is_added) {
    for (size_t i = 0; i < n; i++) {
        int32_t s = is_added ? sum[i] : 0;
        for (size_t r = 0; r < n_rows; r++)
            s += value(rows[r][i], is_signed);
        sum[i] = s;
    }
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        acc[i] += a[i];
}

static void slide32(int32_t *acc, const int32_t *in, const int32_t *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        acc[i] += in[i] - out[i];
}

static int64_t sum8(const uint8_t *a, size_t n, bool is_signed) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += value(a[i], is_signed);
    return sum;
}

static uint8_t max_of(const uint8_t *a, size_t n, bool is_signed) {
    uint8_t max = a[0];
    for (size_t i = 1; i < n; i++)
        max = value(a[i], is_signed) > value(max, is_signed) ? a[i] : max;
    return max;
}

static void every_second32(const int32_t *a, int32_t *dst, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = a[2 * i];
}

static void finish(const int32_t *sum, uint8_t *dst, size_t n, const qk_pool_end *e) {
    int64_t lo = e->is_signed ? INT8_MIN : 0, hi = lo + 255;
    for (size_t i = 0; i < n; i++) {
        float q = (float)(sum[i] - e->bias) * e->factor / e->scale;
        int64_t v = e->zp;
        if (!isnan(q)) {
            float r = rintf(e->add_zp_first ? q + (float)e->zp : q);
            v = (int64_t)fminf(fmaxf(r, -0x1p40f), 0x1p40f) + (e->add_zp_first ? 0 : e->zp);
        }
        dst[i] = (uint8_t)(v < lo ? lo : v > hi ? hi : v);
    }
}

static void average_rows(const uint8_t *const *rows, size_t n_rows, uint8_t *dst, size_t n, size_t step, bool is_signed,
                         const qk_pool_end *end) {
    for (size_t i = 0; i < n; i += step) {
        int32_t sum = 0;
        for (size_t r = 0; r < n_rows; r++)
            sum += value(rows[r][i], is_signed);
        finish(&sum, dst++, 1, end);
    }
}

static void max_grid(const qk_pool_grid *g, const uint8_t *src, uint8_t *dst) {
    const uint8_t flip = g->is_signed ? 0x80 : 0;
    for (size_t r = 0; r < g->n_rows; r++, src += g->src_row, dst += g->dst_row)
        for (size_t i = 0; i < g->n; i++) {
            uint8_t max = 0;
            for (size_t t = 0; t < g->n_taps; t++)
                for (size_t k = 0; k < (g->pair ? 2 : 1); k++) {
                    const uint8_t v = src[i * g->step + g->taps[t] + k] ^ flip;
                    max = v > max ? v : max;
                }
            dst[i] = max ^ flip;
        }
}

uint8_t qk_pool_mean_of(const qk_pool_mean *m, uint32_t sum) {
    const int64_t fixed = (int64_t)sum * m->factor + m->add, whole = fixed >> 16, part = fixed & 0xffff;
    const int64_t w = whole < 0 ? 0 : whole > 255 ? 255 : whole;
    const bool is_tie = part >= 0x8000 - m->near && part <= 0x8000 + m->near;
    const int64_t r = whole + (is_tie ? m->ties[w / 8] >> w % 8 & 1 : part >> 15);
    return (uint8_t)((r < 0 ? 0 : r > 255 ? 255 : r) ^ (m->to_signed ? 0x80 : 0));
}

static void mean_grid(const qk_pool_grid *g, const uint8_t *src, uint8_t *dst) {
    const uint8_t flip = g->is_signed ? 0x80 : 0;
    for (size_t r = 0; r < g->n_rows; r++, src += g->src_row, dst += g->dst_row)
        for (size_t i = 0; i < g->n; i++) {
            uint32_t sum = 0;
            for (size_t t = 0; t < g->n_taps; t++)
                for (size_t k = 0; k < (g->pair ? 2 : 1); k++)
                    sum += src[i * g->step + g->taps[t] + k] ^ flip;
            dst[i] = qk_pool_mean_of(&g->mean, sum);
        }
}

static void sum_columns(const uint8_t *src, size_t stride, size_t n_rows, int32_t *sum, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i++)
        sum[i] = 0;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < n; i++)
            sum[i] += is_signed ? (int8_t)src[r * stride + i] : src[r * stride + i];
}

const qk_pool_row qk_pool_row_ref = {max_grid,       mean_grid, max_rows, sum_rows,  average_rows,
                                     sum_columns,    add32,     slide32,  sum8,      max_of,
                                     every_second32, finish,    NULL,     QK_ISA_ref};
