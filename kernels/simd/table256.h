/* A table of 256 bytes in registers. Under the flags of a level from avx512vbmi on. */
#ifndef QK_SIMD_TABLE256_H
#define QK_SIMD_TABLE256_H

#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qk512_table {
    __m512i t[4];
} qk512_table;

QK_INLINE qk512_table qk512_table_of(const void *bytes) {
    qk512_table t;
    QK_FOUR_TIMES(k, t.t[k] = _mm512_loadu_si512((const char *)bytes + 64 * k));
    return t;
}

/* A two-register permute looks up 128 entries; the top bit of the index says in which half. */
QK_INLINE __m512i qk512_look_up(const qk512_table *t, __m512i i) {
    const __m512i low = _mm512_permutex2var_epi8(t->t[0], i, t->t[1]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(i), _mm512_permutex2var_epi8(t->t[2], i, t->t[3]));
}

/* n bytes; in place if one likes. */
QK_INLINE void qk512_look_up_some(const qk512_table *t, const char *src, char *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 128; i += 128) {
        const __m512i a = qk512_look_up(t, _mm512_loadu_si512(src + i)),
                      b = qk512_look_up(t, _mm512_loadu_si512(src + i + 64));
        _mm512_storeu_si512(dst + i, a);
        _mm512_storeu_si512(dst + i + 64, b);
    }
    for (; i < n; i += 64) {
        const __mmask64 lanes = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(dst + i, lanes, qk512_look_up(t, _mm512_maskz_loadu_epi8(lanes, src + i)));
        if (n - i < 64) break;
    }
}

#endif
