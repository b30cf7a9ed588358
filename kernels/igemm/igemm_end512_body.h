/* The end of a row of up to four vectors, and the forms of a tile, on AVX-512. Included by igemm_avx512.c and igemm_avx512vnni.c alone. */
#ifndef QK_IGEMM_END512_BODY_H
#define QK_IGEMM_END512_BODY_H

#include "kernels/simd/vec512.h"

#define ALL_NEGATIVE(v) (qv_signi(v) == 0xffff)
#include "kernels/igemm/igemm_end_body.h"

enum { LANES = 16, SIX_ROWS = 6 };

/* nv vectors; nv and more are constants of the caller. */
QK_INLINE void bytes_row(const __m512i *s, const panel_end *e, char *to, const int nv, const bool more) {
    __m512i q[4];
    QK_FOUR_TIMES(j, q[j] = j < nv ? rounded(s[j], e, LANES * j, more) : _mm512_setzero_si512());
    if (nv == 1) {
        const __m512i floor = e->is_signed ? q[0] : _mm512_max_epi32(q[0], _mm512_setzero_si512());
        const __m128i narrow = e->is_signed ? _mm512_cvtsepi32_epi8(floor) : _mm512_cvtusepi32_epi8(floor);
        if (e->n_cols == LANES)
            _mm_storeu_si128((__m128i *)(void *)to, narrow);
        else
            _mm_mask_storeu_epi8(to, qk512_lanes(e->n_cols), narrow);
        return;
    }
    const __m512i low = _mm512_packs_epi32(q[0], q[1]), high = _mm512_packs_epi32(q[2], q[3]);
    __m512i packed = _mm512_packus_epi16(low, high);
    if (e->is_signed) packed = _mm512_packs_epi16(low, high);
    packed = qk512_order8(packed);
    if (e->n_cols == QK_IGEMM_COLS)
        _mm512_storeu_si512(to, packed);
    else
        _mm512_mask_storeu_epi8(to, ((__mmask64)1 << e->n_cols) - 1, packed);
}

QK_INLINE void floats_row(const __m512 *s, const panel_end *e, char *to, const int nv) {
    QK_FOUR_TIMES(
        j, if (j < nv) {
            const __m512 v = clipped(scaled(s[j], e, LANES * j), e);
            if (j + 1 == nv && e->n_cols % LANES != 0)
                _mm512_mask_storeu_ps(to + 64 * j, qk512_lanes(e->n_cols % LANES), v);
            else
                _mm512_storeu_ps(to + 64 * j, v);
        });
}

/* The forms of a tile, by rows and vectors; `form` is the name they begin with. */
#define ROW(form, mr)                                                                                                  \
    { form##_##mr##_1, form##_##mr##_2, form##_##mr##_3, form##_##mr##_4 }
#define FORM(form)                                                                                                     \
    { ROW(form, 1), ROW(form, 2), ROW(form, 3), ROW(form, 4), ROW(form, 5), ROW(form, 6) }
#define TILES(mr) TILE(mr, 1) TILE(mr, 2) TILE(mr, 3) TILE(mr, 4)

#endif
