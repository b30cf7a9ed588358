#include "kernels/lut/lut_row.h"

#include <immintrin.h>

typedef struct tables {
    __m512i t[4];
} tables;

/* A two-register permute looks up 128 entries; the top bit of the index says in which half. */
static inline __m512i look_up(const tables *t, __m512i i) {
    __m512i low = _mm512_permutex2var_epi8(t->t[0], i, t->t[1]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(i), _mm512_permutex2var_epi8(t->t[2], i, t->t[3]));
}

void qk_lut_x8_avx512vbmi(const uint8_t table[256], const void *src, void *dst, size_t n) {
    tables t;
    for (size_t k = 0; k < 4; k++)
        t.t[k] = _mm512_loadu_si512(table + 64 * k);
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    for (; n - i >= 128; i += 128) {
        __m512i a = look_up(&t, _mm512_loadu_si512(s + i)), b = look_up(&t, _mm512_loadu_si512(s + i + 64));
        _mm512_storeu_si512(d + i, a);
        _mm512_storeu_si512(d + i + 64, b);
    }
    for (; i < n; i += 64) {
        __mmask64 lanes = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(d + i, lanes, look_up(&t, _mm512_maskz_loadu_epi8(lanes, s + i)));
        if (n - i < 64) break;
    }
}
