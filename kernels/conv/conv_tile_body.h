/* Tiles of sums in registers, for a level that has defined
 *     VEC, LANES, VECTORS  a vector of so many dwords; up to how many make a panel (4 or 2)
 *     VLOAD(p) VSTORE(p, v)
 *     VSPREAD(p)           the dword at p, in all lanes
 *     FLIPS, VFLIP(x)      whether rows may be flipped; x flipped by the vector `flip`
 *     VDOT(s, x, w)        s plus, per dword, the products of the values in x and w
 *     SECOND, VLOAD_SECOND(p), VDOT_SECOND(s, x, w)   the same, for the second vector of a panel
 *     ADDS                 whether there may be additions
 * and what conv_end_body.h asks for. Included by conv_tile_*.c alone. */
#include "kernels/conv/conv_end_body.h"

#define ALL_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7)

/* n_rows, n_vectors and what is_stepped and flips say of the tile are constants of the caller. */
QK_INLINE void tile_of(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel, const int32_t *init,
                       const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS], const size_t n_rows, const size_t n_vectors,
                       const bool is_stepped, const bool flips) {
    const size_t n_cols = n_vectors * LANES, most = n_rows - 1, step = t->step, step3 = 3 * step;
#define ROW(r)    (r < n_rows ? r : most)
#define INIT(v)   (v < n_vectors ? VLOAD(init + v * LANES) : VLOAD(init))
#define START(r)  VEC s##r##0 = INIT(0), s##r##1 = INIT(1), s##r##2 = INIT(2), s##r##3 = INIT(3);
#define SPREAD(p) (flips ? VFLIP(VSPREAD(p)) : VSPREAD(p))
#define ADD_ROW(r, at)                                                                                                 \
    if (r < n_rows) {                                                                                                  \
        const VEC x = SPREAD(at);                                                                                      \
        s##r##0 = VDOT(s##r##0, x, w0);                                                                                \
        if (n_vectors > 1) s##r##1 = VDOT_SECOND(s##r##1, x, w1);                                                      \
        if (n_vectors > 2) s##r##2 = VDOT(s##r##2, x, w2);                                                             \
        if (n_vectors > 3) s##r##3 = VDOT(s##r##3, x, w3);                                                             \
    }
#define WEIGHTS                                                                                                        \
    const VEC w0 = VLOAD(weights);                                                                                     \
    SECOND w1 = VLOAD_SECOND(weights + (n_vectors > 1 ? LANES : 0));                                                   \
    const VEC w2 = n_vectors > 2 ? VLOAD(weights + 2 * LANES) : w0,                                                    \
              w3 = n_vectors > 3 ? VLOAD(weights + 3 * LANES) : w0;
/* Rows of a step need fewer addresses than there are registers. */
#define ADD_FOUR(p, r0, r1, r2, r3)                                                                                    \
    ADD_ROW(r0, p) ADD_ROW(r1, p + step) ADD_ROW(r2, p + 2 * step) ADD_ROW(r3, p + step3)
#define ADD_STEPS ADD_FOUR(p, 0, 1, 2, 3) ADD_FOUR(q, 4, 5, 6, 7)
#define POINT(r)  const uint8_t *a##r = row[ROW(r)] + t->offset;
#define ADD(r)    ADD_ROW(r, a##r + 4 * k)
    ALL_ROWS(START)
    const VEC flip = flips ? VSPREAD((const uint8_t *)&t->flip) : s00;
    (void)flip;
    for (size_t i = 0; i < t->n_taps; i++) {
        const uint8_t *const *row = rows + t->taps[i] * t->tap_stride;
        const int32_t *weights = panel + t->taps[i] * t->n_dwords * n_cols;
        if (is_stepped) {
            const uint8_t *p = row[0] + t->offset, *q = p + 4 * step;
            for (size_t k = 0; k < t->n_dwords; k++, weights += n_cols, p += 4, q += 4) {
                WEIGHTS ADD_STEPS
            }
        } else {
            ALL_ROWS(POINT)
            for (size_t k = 0; k < t->n_dwords; k++, weights += n_cols) {
                WEIGHTS ALL_ROWS(ADD)
            }
        }
    }
#if ADDS
    for (size_t i = 0; i < t->n_added; i++) {
        const uint8_t *const *row = rows + t->places[i].tap * t->tap_stride;
        const size_t k = (size_t)t->places[i].dword;
        const int32_t *weights = t->added + i * n_cols;
        WEIGHTS
        if (is_stepped) {
            const uint8_t *p = row[0] + t->offset + 4 * k, *q = p + 4 * step;
            ADD_STEPS
        } else {
            ALL_ROWS(POINT)
            ALL_ROWS(ADD)
        }
    }
#endif
    if (e == NULL) {
        ALL_ROWS(END_SUMS)
        return;
    }
#if END_BYTES
    if (!e->is_floats) {
        if (n_vectors == 1) {
            END_BYTES1(0, 1, 2, 3) END_BYTES1(4, 5, 6, 7)
        }
        if (n_vectors == 2) {
            END_BYTES2(0, 1) END_BYTES2(2, 3) END_BYTES2(4, 5) END_BYTES2(6, 7)
        }
        if (n_vectors == 3) {
            ALL_ROWS(END_BYTES3)
        }
        if (n_vectors == 4) {
            ALL_ROWS(END_BYTES4)
        }
        return;
    }
#endif
    ALL_ROWS(END_FLOATS)
#undef ROW
#undef INIT
#undef START
#undef SPREAD
#undef ADD_ROW
#undef WEIGHTS
#undef ADD_FOUR
#undef ADD_STEPS
#undef POINT
#undef ADD
}

typedef void tile_form(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel, const int32_t *init,
                       const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS]);
/* Of a height, by vectors; a table of all. */
#define FORM(r, name, v, is_stepped, flips)                                                                            \
    static void name##_##r##_##v(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel,                   \
                                 const int32_t *init, const qk_conv_end *e, int32_t(*sums)[QK_TILE_COLS]) {            \
        tile_of(t, rows, panel, init, e, sums, r, v, is_stepped, flips);                                               \
    }
#define NAME(r, name, v) name##_##r##_##v,
#define SIX(EACH, ...)                                                                                                 \
    EACH(1, __VA_ARGS__)                                                                                               \
    EACH(2, __VA_ARGS__) EACH(3, __VA_ARGS__) EACH(4, __VA_ARGS__) EACH(5, __VA_ARGS__) EACH(6, __VA_ARGS__)
#define EIGHT(EACH, ...) SIX(EACH, __VA_ARGS__) EACH(7, __VA_ARGS__) EACH(8, __VA_ARGS__)
#if VECTORS == 4 /* thirty-two registers */
#define FORMS(name, is_stepped, flips)                                                                                 \
    EIGHT(FORM, name, 1, is_stepped, flips)                                                                            \
    SIX(FORM, name, 2, is_stepped, flips)                                                                              \
    SIX(FORM, name, 3, is_stepped, flips)                                                                              \
    SIX(FORM, name, 4, is_stepped, flips)                                                                              \
    static tile_form *const name[VECTORS][MOST_ROWS] = {                                                               \
        {EIGHT(NAME, name, 1)}, {SIX(NAME, name, 2)}, {SIX(NAME, name, 3)}, {SIX(NAME, name, 4)}};
#else
#define FORMS(name, is_stepped, flips)                                                                                 \
    EIGHT(FORM, name, 1, is_stepped, flips)                                                                            \
    SIX(FORM, name, 2, is_stepped, flips)                                                                              \
    static tile_form *const name[VECTORS][MOST_ROWS] = {{EIGHT(NAME, name, 1)}, {SIX(NAME, name, 2)}};
#endif

enum { MOST_ROWS = 8, MOST_WIDE_ROWS = 6 }; /* of one vector; of more */
FORMS(stepped, true, false)
FORMS(pointed, false, false)
#if FLIPS
FORMS(stepped_flipped, true, true)
FORMS(pointed_flipped, false, true)
#endif

/* Tiles as high as each other as far as it goes. */
static void tiles(const qk_tile *all, const uint8_t *const *rows, size_t n_rows, const int32_t *panel,
                  const int32_t *init, const qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]) {
    const size_t v = all->n_cols / LANES - 1, max = v == 0 ? MOST_ROWS : MOST_WIDE_ROWS;
    const size_t n_tiles = (n_rows + max - 1) / max, high = (n_rows + n_tiles - 1) / n_tiles;
    const size_t n_high = n_rows - (high - 1) * n_tiles;
    tile_form *const *forms = (all->step != 0 ? stepped : pointed)[v];
#if FLIPS
    if (all->flip != 0) forms = (all->step != 0 ? stepped_flipped : pointed_flipped)[v];
#endif
    qk_tile t = *all;
    qk_conv_end e = {0};
    if (end != NULL) e = *end;
    for (size_t i = 0; i < n_tiles; i++) {
        const size_t m = i < n_high ? high : high - 1;
        forms[m - 1](&t, rows, panel, init, end == NULL ? NULL : &e, sums);
        if (t.step == 0) rows += m;
        t.offset += m * t.step;
        if (end != NULL)
            e.rows += m;
        else
            sums += m;
    }
}
