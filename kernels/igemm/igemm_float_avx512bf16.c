#include "kernels/igemm/igemm_end512_body.h"
#include "kernels/igemm/igemm_transpose_body.h"

enum { STEP_K = 2 };
#define LYING_TILES 1

QK_INLINE __m512 add_products(__m512 sum, __m512i x, __m512i w) {
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
}

QK_INLINE void load_weights(__m512i w[4], const char *b, size_t k_bytes, const bool lies, const int n_k, const int nv) {
    if (!lies) {
        QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));
        return;
    }
    const __m512i none = _mm512_setzero_si512();
    interleave_words(_mm512_loadu_si512(b), n_k == 2 ? _mm512_loadu_si512(b + k_bytes) : none, &w[0], &w[1]);
    interleave_words(_mm512_loadu_si512(b + 64), n_k == 2 ? _mm512_loadu_si512(b + k_bytes + 64) : none, &w[2], &w[3]);
}

QK_INLINE void store_halves(__m512 low, __m512 high, char *to, size_t n) {
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    if (n >= 32)
        _mm512_storeu_si512(to, halves);
    else
        _mm512_mask_storeu_epi16(to, (__mmask32)((1u << n) - 1u), halves);
}

/* As f32, or rounded to bf16. */
QK_INLINE void end_row(const __m512 *s, const panel_end *e, char *to, const int nv) {
    if (!e->is_half) {
        floats_row(s, e, to, nv);
        return;
    }
    __m512 v[4];
    QK_FOUR_TIMES(j, v[j] = j < nv ? s[j] : _mm512_setzero_ps());
    if (e->what != BARE_FLOATS) QK_FOUR_TIMES(j, if (j < nv) v[j] = clipped(scaled(s[j], e, LANES * j), e));
    store_halves(v[0], v[1], to, e->n_cols);
    if (nv > 2) store_halves(v[2], v[3], to + 64, e->n_cols - 32);
}
#include "kernels/igemm/igemm_float512_body.h"

#define ELEM_BYTES          2
#define LOAD_SOME(p, n)     _mm512_maskz_loadu_epi16((__mmask32)((1u << (n)) - 1u), p)
#define ADD_DOTS(sum, x, w) add_products(sum, x, w)
#include "kernels/igemm/igemm_dots_body.h"

void qk_igemm_bf16_avx512bf16(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                              void *acc) {
    run(g, packed, rows, panel, &sums_end, acc);
}

bool qk_igemm_bf16_end_avx512bf16(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                                  const qk_igemm_end *end) {
    panel_end e;
    if (end->dst != QDQ_DTYPE_F32 && end->dst != QDQ_DTYPE_BF16) return false;
    if (!prepare_end(end, panel, qk_igemm_cols_of(g, panel), &e)) return false;
    run(g, packed, rows, panel, &e, (char *)end->data + panel * QK_IGEMM_COLS * (e.is_half ? 2 : sizeof(float)));
    return true;
}

void qk_igemm_dots_bf16_avx512bf16(const qk_igemm *g, const void *row, const qk_igemm_rows *columns, float *out) {
    dots(g, row, columns, out);
}
