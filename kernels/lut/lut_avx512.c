#include "kernels/lut/lut_row.h"

#include <immintrin.h>
#include <string.h>

/* A byte shuffle looks up sixteen entries by the low four bits, and gives 0 where the index has its top bit set. So for an
 * index in 0…127, with the row k's sixteen entries replaced by row[k] ^ row[k-1], and 16 taken off the index per step
 * (saturating: once negative, always negative), the xor of all shuffles is the entry of the right row. The upper half is
 * the same with the top bit turned round. */
typedef struct tables {
    __m512i row[16];
} tables;

static inline __m512i half(const __m512i *row, __m512i i) {
    const __m512i sixteen = _mm512_set1_epi8(16);
    __m512i out = _mm512_shuffle_epi8(row[0], i);
    for (int k = 1; k < 8; k++) {
        i = _mm512_subs_epi8(i, sixteen);
        out = _mm512_xor_si512(out, _mm512_shuffle_epi8(row[k], i));
    }
    return out;
}

static inline __m512i look_up(const tables *t, __m512i i) {
    __m512i flipped = _mm512_xor_si512(i, _mm512_set1_epi8(-128));
    return _mm512_or_si512(half(t->row, i), half(t->row + 8, flipped));
}

void qk_lut_x8_avx512(const uint8_t table[256], const void *src, void *dst, size_t n) {
    enum { WIDTH = 64 };
    if (n < WIDTH) { /* not worth the set-up */
        qk_lut_x8_ref(table, src, dst, n);
        return;
    }
    tables t;
    __m128i before = _mm_setzero_si128();
    for (int k = 0; k < 16; k++) {
        __m128i row = _mm_loadu_si128((const __m128i *)(table + 16 * k));
        t.row[k] = _mm512_broadcast_i32x4(k == 8 ? row : _mm_xor_si128(row, before));
        before = row;
    }
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    for (; n - i >= WIDTH; i += WIDTH)
        _mm512_storeu_si512(d + i, look_up(&t, _mm512_loadu_si512(s + i)));
    qk_lut_x8_ref(table, s + i, d + i, n - i);
}
