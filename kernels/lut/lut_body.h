/* The levels without a permute of bytes across a register, written once for both widths. */
#include "kernels/lut/lut_row.h"
#include "kernels/simd/wide.h"

enum { WIDTH = 4 * QKW_LANES };

/* A byte shuffle looks up sixteen entries by the low four bits, and gives 0 where the index has its top bit set. So for an
 * index in 0…127, with the row k's sixteen entries replaced by row[k] ^ row[k-1], and 16 taken off the index per step
 * (saturating: once negative, always negative), the xor of all shuffles is the entry of the right row. The upper half is
 * the same with the top bit turned round. */
typedef struct tables {
    qkw_i row[16];
} tables;

QK_INLINE qkw_i half(const qkw_i *row, qkw_i i) {
    const qkw_i sixteen = QKW(set1_epi8)(16);
    qkw_i out = QKW(shuffle_epi8)(row[0], i);
    for (int k = 1; k < 8; k++) {
        i = QKW(subs_epi8)(i, sixteen);
        out = qkw_xor(out, QKW(shuffle_epi8)(row[k], i));
    }
    return out;
}

QK_INLINE qkw_i look_up(const tables *t, qkw_i i) {
    return qkw_xor(half(t->row, i), half(t->row + 8, qkw_xor(i, QKW(set1_epi8)(-128))));
}

static void run(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    if (n < WIDTH) { /* not worth the set-up */
        qk_lut_x8_ref(table, src, dst, n, false);
        return;
    }
    tables t;
    for (size_t k = 0; k < 16; k++) {
        qkw_i row = qkw_four_times(table + 16 * k);
        t.row[k] = k % 8 == 0 ? row : qkw_xor(row, qkw_four_times(table + 16 * (k - 1)));
    }
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    if (stream) {
        i = (WIDTH - (uintptr_t)dst % WIDTH) % WIDTH;
        qk_lut_x8_ref(table, s, d, i, false);
        for (; n - i >= WIDTH; i += WIDTH)
            qkw_stream(d + i, look_up(&t, qkw_load(s + i)));
        _mm_sfence();
    }
    for (; n - i >= WIDTH; i += WIDTH)
        qkw_store(d + i, look_up(&t, qkw_load(s + i)));
    qk_lut_x8_ref(table, s + i, d + i, n - i, false);
}
