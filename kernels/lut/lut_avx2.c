#include "kernels/lut/lut_row.h"

#include <immintrin.h>
#include <string.h>

/* A byte shuffle looks up sixteen entries by the low four bits, and gives 0 where the index has its top bit set. So for an
 * index in 0…127, with the row k's sixteen entries replaced by row[k] ^ row[k-1], and 16 taken off the index per step
 * (saturating: once negative, always negative), the xor of all shuffles is the entry of the right row. The upper half is
 * the same with the top bit turned round. */
typedef struct tables {
    __m256i row[16];
} tables;

static inline __m256i half(const __m256i *row, __m256i i) {
    const __m256i sixteen = _mm256_set1_epi8(16);
    __m256i out = _mm256_shuffle_epi8(row[0], i);
    for (int k = 1; k < 8; k++) {
        i = _mm256_subs_epi8(i, sixteen);
        out = _mm256_xor_si256(out, _mm256_shuffle_epi8(row[k], i));
    }
    return out;
}

static inline __m256i look_up(const tables *t, __m256i i) {
    __m256i flipped = _mm256_xor_si256(i, _mm256_set1_epi8(-128));
    return _mm256_or_si256(half(t->row, i), half(t->row + 8, flipped));
}

void qk_lut_x8_avx2(const uint8_t table[256], const void *src, void *dst, size_t n) {
    enum { WIDTH = 32 };
    if (n < WIDTH) { /* not worth the set-up */
        qk_lut_x8_ref(table, src, dst, n);
        return;
    }
    tables t;
    __m128i before = _mm_setzero_si128();
    for (int k = 0; k < 16; k++) {
        __m128i row = _mm_loadu_si128((const __m128i *)(table + 16 * k));
        t.row[k] = _mm256_broadcastsi128_si256(k == 8 ? row : _mm_xor_si128(row, before));
        before = row;
    }
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    for (; n - i >= WIDTH; i += WIDTH)
        _mm256_storeu_si256((__m256i *)(d + i), look_up(&t, _mm256_loadu_si256((const __m256i *)(s + i))));
    qk_lut_x8_ref(table, s + i, d + i, n - i);
}
