/* Sixteen vectors of sixteen dwords as a matrix, transposed in place. Included by igemm_pack_avx512*.c alone. */
#ifndef QK_IGEMM_TRANSPOSE_BODY_H
#define QK_IGEMM_TRANSPOSE_BODY_H

#include "kernels/igemm/igemm_row.h"
#include "kernels/simd/avx512_x8.h"

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

/* `statement` for i = 0 … 15 */
#define SIXTEEN_TIMES(i, ...)                                                                                          \
    QK_FOUR_TIMES(q_, QK_FOUR_TIMES(p_, {                                                                              \
                      enum { i = 4 * q_ + p_ };                                                                        \
                      __VA_ARGS__;                                                                                     \
                  }))

#endif
