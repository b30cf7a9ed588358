/* The end of a row of two vectors, on AVX2. Included by igemm_avx2.c and igemm_float_avx2.c alone. */
#ifndef QK_IGEMM_END256_BODY_H
#define QK_IGEMM_END256_BODY_H

#include "kernels/simd/vec256.h"

#define ALL_NEGATIVE(v) (_mm256_movemask_ps(_mm256_castsi256_ps(v)) == 0xff)
#include "kernels/igemm/igemm_end_body.h"

/* A block of 16 columns, two vectors. */
enum { LANES = 8, BLOCK = 16 };

QK_INLINE void floats_row(const __m256 *s, const panel_end *e, const size_t col, char *to) {
    const size_t n = e->n_cols - col;
    qv_store4(to, n, qv_bits(clipped(scaled(s[0], e, col), e)));
    if (n > LANES) qv_store4(to + 32, n - LANES, qv_bits(clipped(scaled(s[1], e, col + LANES), e)));
}

#endif
