#include "kernels/lut/lut_row.h"

#include <string.h>

void qk_lut_x8_ref(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    (void)stream;
    const uint8_t *s = src;
    uint8_t *d = dst;
    /* Eight bytes per load and store: the loads of the table are what it costs. */
    for (; n >= 8; n -= 8, s += 8, d += 8) {
        uint64_t in, out = 0;
        memcpy(&in, s, 8);
        for (unsigned k = 0; k < 64; k += 8)
            out |= (uint64_t)table[in >> k & 0xff] << k;
        memcpy(d, &out, 8);
    }
    for (size_t i = 0; i < n; i++)
        d[i] = table[s[i]];
}
