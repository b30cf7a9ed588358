/* Tiles of floats on AVX-512. A step of k is a dword of each row and column: one f32, or two bf16. Included by
 * igemm_float_avx512*.c alone, which say
 *     STEP_K                                     k of a step
 *     add_products(sum, x, w)                    sum + the products of two vectors of steps
 *     load_weights(w, b, k_bytes, lies, n_k, nv) nv vectors of the step at b: packed, or n_k rows k_bytes apart where it lies
 *     end_row(s, e, to, nv)                      what becomes of the sums of a row
 *     LYING_TILES                                whether there are tiles of their own for weights where they lie */
#ifndef QK_IGEMM_FLOAT512_BODY_H
#define QK_IGEMM_FLOAT512_BODY_H

#include "kernels/igemm/igemm_end512_body.h"

#define EACH_ROW(...) QK_SIX_TIMES(r, if (r < mr) __VA_ARGS__)
#define ADD_STEP(dword, n_k)                                                                                           \
    do {                                                                                                               \
        load_weights(w, b, k_bytes, lies, n_k, nv);                                                                    \
        EACH_ROW({                                                                                                     \
            const __m512i x = _mm512_set1_epi32(dword);                                                                \
            QK_FOUR_TIMES(j, if (j < nv) s[r][j] = add_products(s[r][j], x, w[j]));                                    \
        });                                                                                                            \
    } while (0)

/* k_bytes: from k to k of the weights; mr, nv and lies are constants of the caller. */
QK_INLINE void tile(const qk_igemm *g, const char *b, size_t k_bytes, const char *a, ptrdiff_t row_bytes,
                    const panel_end *e, char *to, const int mr, const int nv, const bool lies) {
    const size_t n_steps = g->kc / STEP_K;
    __m512 s[SIX_ROWS][4];
    __m512i w[4];
    QK_SIX_TIMES(r, QK_FOUR_TIMES(j, s[r][j] = _mm512_setzero_ps()));
    for (size_t i = 0; i < n_steps; i++, b += STEP_K * k_bytes, a += sizeof(int32_t))
        ADD_STEP(qk_igemm_load4(a + r * row_bytes), STEP_K);
    if (g->kc % STEP_K != 0) ADD_STEP(qk_igemm_load_tail((const uint8_t *)a + r * row_bytes, 2), 1);
    const bool is_bare = e->what == BARE_FLOATS && !e->is_half && e->n_cols % LANES == 0;
    if (e->what == SUMS || is_bare) {
        EACH_ROW(QK_FOUR_TIMES(j, if (j < nv) _mm512_storeu_ps(to + r * e->stride_bytes + 64 * j, s[r][j])));
        return;
    }
    EACH_ROW({
        FORGET(e);
        end_row(s[r], e, to + r * e->stride_bytes, nv);
    });
}

typedef void tile_fn(const qk_igemm *g, const char *b, size_t k_bytes, const char *a, ptrdiff_t row_bytes,
                     const panel_end *e, char *to);
#define TILE_NAMED(name, mr, nv, lies)                                                                                 \
    static void name(const qk_igemm *g, const char *b, size_t k_bytes, const char *a, ptrdiff_t row_bytes,             \
                     const panel_end *e, char *to) {                                                                   \
        tile(g, b, k_bytes, a, row_bytes, e, to, mr, nv, lies);                                                        \
    }
#define TILE(mr, nv) TILE_NAMED(tile_##mr##_##nv, mr, nv, false)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#undef TILE
static tile_fn *const tiles[SIX_ROWS][4] = FORM(tile);

#if LYING_TILES
#define TILE(mr) TILE_NAMED(lying_##mr, mr, 4, true)
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#undef TILE
static tile_fn *const lying[SIX_ROWS] = {lying_1, lying_2, lying_3, lying_4, lying_5, lying_6};
#endif

/* Any number of rows. */
static void run(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, const panel_end *e,
                char *to) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    const size_t n_tiles = (rows->m + SIX_ROWS - 1) / SIX_ROWS;
    const char *b = (const char *)qk_igemm_panel(g, packed, panel);
    size_t k_bytes = QK_IGEMM_COLS * g->elem_bytes;
    if (g->k_step != 0) {
        b = (const char *)packed + panel * k_bytes;
        k_bytes = g->k_step * g->elem_bytes;
    }
    for (size_t t = 0; t < n_tiles; t++) {
        const size_t row = rows->m * t / n_tiles, mr = rows->m * (t + 1) / n_tiles - row;
        tile_fn *fn = tiles[mr - 1][nv - 1];
#if LYING_TILES
        if (g->k_step != 0) fn = lying[mr - 1];
#endif
        fn(g, b, k_bytes, qk_igemm_row(rows, row), rows->row_bytes, e, to + (ptrdiff_t)row * e->stride_bytes);
    }
}

#endif
