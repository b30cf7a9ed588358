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

static void look_up_some(const tables *t, const char *src, char *dst, size_t n) {
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 lanes = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(dst + i, lanes, look_up(t, _mm512_maskz_loadu_epi8(lanes, src + i)));
    }
}

void qk_lut_x8_avx512vbmi(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    tables t;
    for (size_t k = 0; k < 4; k++)
        t.t[k] = _mm512_loadu_si512(table + 64 * k);
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    if (stream) {
        i = (64 - (uintptr_t)dst % 64) % 64;
        i = i < n ? i : n;
        look_up_some(&t, s, d, i);
        for (; n - i >= 64; i += 64)
            _mm512_stream_si512((__m512i *)(void *)(d + i), look_up(&t, _mm512_loadu_si512(s + i)));
        _mm_sfence();
    }
    for (; n - i >= 128; i += 128) {
        __m512i a = look_up(&t, _mm512_loadu_si512(s + i)), b = look_up(&t, _mm512_loadu_si512(s + i + 64));
        _mm512_storeu_si512(d + i, a);
        _mm512_storeu_si512(d + i + 64, b);
    }
    look_up_some(&t, s + i, d + i, n - i);
}
