#include "kernels/pool/pool_row.h"

#include <math.h>

static int value(uint8_t b, bool is_signed) {
    return is_signed ? (int8_t)b : b;
}

static void max8(uint8_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i++)
        acc[i] = value(a[i], is_signed) > value(acc[i], is_signed) ? a[i] : acc[i];
}

static void add8(int16_t *acc, const uint8_t *a, size_t n, bool is_signed) {
    for (size_t i = 0; i < n; i++)
        acc[i] = (int16_t)(acc[i] + value(a[i], is_signed));
}

static void add16(int32_t *acc, const int16_t *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        acc[i] += a[i];
}

static void add32(int32_t *acc, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        acc[i] += a[i];
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

static void every_second(const uint8_t *a, uint8_t *dst, size_t n) {
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

const qk_pool_row qk_pool_row_ref = {max8, add8, add16, add32, sum8, max_of, every_second, finish, QK_ISA_ref};
