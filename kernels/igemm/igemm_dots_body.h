/* A row times columns whose k are consecutive, each read where it lies. Over the names of simd/vec512.h or vec256.h; included by
 * igemm_float_<level>.c alone, which say
 *     ELEM_BYTES           of an element
 *     LOAD_SOME(p, n)      n elements, less than a vector, and zeros
 *     ADD_DOTS(sum, x, w)  sum + the products of two vectors */
#ifndef QK_IGEMM_DOTS_BODY_H
#define QK_IGEMM_DOTS_BODY_H

#include "kernels/igemm/igemm_row.h"

#ifdef __AVX512F__
#define HALF_SUM(v) _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1))
#else
#define HALF_SUM(v) (v)
#endif

/* The sums of four vectors' lanes. */
QK_INLINE __m128 sums_of_lanes(const qv_f v[4]) {
    __m256 h[4];
    QK_FOUR_TIMES(j, h[j] = HALF_SUM(v[j]));
    const __m256 s01 = _mm256_hadd_ps(h[0], h[1]), s23 = _mm256_hadd_ps(h[2], h[3]), s = _mm256_hadd_ps(s01, s23);
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

QK_INLINE void dots(const qk_igemm *g, const char *row, const qk_igemm_rows *columns, float *out) {
    enum { VECTOR = 4 * QV_LANES, VECTOR_K = VECTOR / ELEM_BYTES };
    const size_t n_vectors = g->kc / VECTOR_K, rest = g->kc % VECTOR_K;
    for (size_t c = 0; c < columns->m; c += 4) {
        const char *w[4];
        qv_f s[4];
        QK_FOUR_TIMES(j, w[j] = qk_igemm_row(columns, c + j < columns->m ? c + j : c); s[j] = qv_set1(0.0f));
        size_t at = 0;
        for (size_t i = 0; i < n_vectors; i++, at += VECTOR) {
            const qv_i x = qv_loadi(row + at);
            QK_FOUR_TIMES(j, s[j] = ADD_DOTS(s[j], x, qv_loadi(w[j] + at)));
        }
        if (rest != 0) {
            const qv_i x = LOAD_SOME(row + at, rest);
            QK_FOUR_TIMES(j, s[j] = ADD_DOTS(s[j], x, LOAD_SOME(w[j] + at, rest)));
        }
        _mm_storeu_ps(out + c, sums_of_lanes(s));
    }
}

#endif
