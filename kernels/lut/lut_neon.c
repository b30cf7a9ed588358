#include "kernels/lut/lut_row.h"

#include <arm_neon.h>

/* A quarter of the table in four registers; an index outside of the 64 leaves the result as it is. */
typedef struct tables {
    uint8x16x4_t quarter[4];
} tables;

static inline uint8x16_t look_up(const tables *t, uint8x16_t i) {
    const uint8x16_t quarter = vdupq_n_u8(64);
    uint8x16_t out = vqtbl4q_u8(t->quarter[0], i);
    for (int k = 1; k < 4; k++) {
        i = vsubq_u8(i, quarter);
        out = vqtbx4q_u8(out, t->quarter[k], i);
    }
    return out;
}

void qk_lut_x8_neon(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    (void)stream; /* no stores past the caches */
    const uint8_t *s = src;
    uint8_t *d = dst;
    tables t;
    for (int k = 0; k < 4; k++)
        t.quarter[k] = vld1q_u8_x4(table + 64 * k);
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        vst1q_u8(d + i, look_up(&t, vld1q_u8(s + i)));
    qk_lut_x8_ref(table, s + i, d + i, n - i, false);
}
