#include "kernels/lut/lut_row.h"
#include "kernels/simd/table256.h"

void qk_lut_x8_avx512vbmi(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    const qk512_table t = qk512_table_of(table);
    const char *s = src;
    char *d = dst;
    size_t i = 0;
    if (stream) {
        i = (64 - (uintptr_t)dst % 64) % 64;
        i = i < n ? i : n;
        qk512_look_up_some(&t, s, d, i);
        for (; n - i >= 64; i += 64)
            _mm512_stream_si512((__m512i *)(void *)(d + i), qk512_look_up(&t, _mm512_loadu_si512(s + i)));
        _mm_sfence();
    }
    qk512_look_up_some(&t, s + i, d + i, n - i);
}
