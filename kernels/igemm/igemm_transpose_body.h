/* Orders of packing on AVX-512. Included by igemm_pack_avx512*.c and igemm_float_avx512bf16.c alone. */
#ifndef QK_IGEMM_TRANSPOSE_BODY_H
#define QK_IGEMM_TRANSPOSE_BODY_H

#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/avx512_x8.h"

/* Sixteen vectors of sixteen dwords as a matrix, transposed in place. */
QK_INLINE void transpose16(__m512i v[16]) {
    __m512i a[16], b[16];
    QK_FOUR_TIMES(i, {
        a[4 * i] = _mm512_unpacklo_epi32(v[4 * i], v[4 * i + 1]);
        a[4 * i + 1] = _mm512_unpackhi_epi32(v[4 * i], v[4 * i + 1]);
        a[4 * i + 2] = _mm512_unpacklo_epi32(v[4 * i + 2], v[4 * i + 3]);
        a[4 * i + 3] = _mm512_unpackhi_epi32(v[4 * i + 2], v[4 * i + 3]);
        /* b[4 i + j]: dword 4 q + j of vectors 4 i … 4 i + 3, in lane q */
        b[4 * i] = _mm512_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm512_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm512_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm512_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
    });
    QK_FOUR_TIMES(j, {
        const __m512i low = _mm512_shuffle_i32x4(b[j], b[j + 4], 0x44),
                      high = _mm512_shuffle_i32x4(b[j], b[j + 4], 0xee);
        const __m512i low2 = _mm512_shuffle_i32x4(b[j + 8], b[j + 12], 0x44),
                      high2 = _mm512_shuffle_i32x4(b[j + 8], b[j + 12], 0xee);
        v[j] = _mm512_shuffle_i32x4(low, low2, 0x88);
        v[j + 4] = _mm512_shuffle_i32x4(low, low2, 0xdd);
        v[j + 8] = _mm512_shuffle_i32x4(high, high2, 0x88);
        v[j + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
    });
}

/* Words of two rows by turns: 32 dwords. */
QK_INLINE void interleave_words(__m512i first, __m512i second, __m512i *low, __m512i *high) {
    static const uint16_t order[64] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                       8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47,
                                       16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                       24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
    *low = _mm512_permutex2var_epi16(first, _mm512_loadu_si512(order), second);
    *high = _mm512_permutex2var_epi16(first, _mm512_loadu_si512(order + 32), second);
}

/* `statement` for i = 0 … 15 */
#define SIXTEEN_TIMES(i, ...)                                                                                          \
    QK_FOUR_TIMES(q_, QK_FOUR_TIMES(p_, {                                                                              \
                      enum { i = 4 * q_ + p_ };                                                                        \
                      __VA_ARGS__;                                                                                     \
                  }))

#endif
