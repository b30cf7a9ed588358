#include "kernels/igemm/igemm_end512_body.h"

enum { STEP_K = 1 };
#define LYING_TILES             0
#define add_products(sum, x, w) _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(w), sum)
#define end_row(s, e, to, nv)   floats_row(s, e, to, nv)

/* Both ways lie alike. */
QK_INLINE void load_weights(__m512i w[4], const char *b, size_t k_bytes, const bool lies, const int n_k, const int nv) {
    (void)k_bytes, (void)lies, (void)n_k;
    QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));
}
#include "kernels/igemm/igemm_float512_body.h"

#define ELEM_BYTES          4
#define LOAD_SOME(p, n)     qv_load4(p, n)
#define ADD_DOTS(sum, x, w) add_products(sum, x, w)
#include "kernels/igemm/igemm_dots_body.h"

void qk_igemm_f32_avx512(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    run(g, packed, rows, panel, &sums_end, acc);
}

bool qk_igemm_f32_end_avx512(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                             const qk_igemm_end *end) {
    panel_end e;
    if (end->dst != QDQ_DTYPE_F32 || !prepare_end(end, panel, qk_igemm_cols_of(g, panel), &e)) return false;
    run(g, packed, rows, panel, &e, (char *)end->data + (ptrdiff_t)(panel * QK_IGEMM_COLS * sizeof(float)));
    return true;
}

void qk_igemm_dots_f32_avx512(const qk_igemm *g, const void *row, const qk_igemm_rows *columns, float *out) {
    dots(g, row, columns, out);
}
