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

#define ALL_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11)

/* n_rows and n_vectors are constants of the caller. */
QK_INLINE void tile_of(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, size_t n_vectors,
                       const int32_t *panel, const int32_t *init, const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS]) {
    const size_t n_cols = n_vectors * LANES, most = n_rows - 1;
#define ROW(r)    (r < n_rows ? r : most)
#define INIT(v)   (v < n_vectors ? VLOAD(init + v * LANES) : VLOAD(init))
#define START(r)  VEC s##r##0 = INIT(0), s##r##1 = INIT(1), s##r##2 = INIT(2), s##r##3 = INIT(3);
#define POINT(r)  const uint8_t *a##r = row[ROW(r)] + t->offset;
#define SPREAD(p) (flips ? VFLIP(VSPREAD(p)) : VSPREAD(p))
#define ADD_ROW(r, at)                                                                                                 \
    if (r < n_rows) {                                                                                                  \
        const VEC x = SPREAD(at);                                                                                      \
        s##r##0 = VDOT(s##r##0, x, w0);                                                                                \
        if (n_vectors > 1) s##r##1 = VDOT_SECOND(s##r##1, x, w1);                                                      \
        if (n_vectors > 2) s##r##2 = VDOT(s##r##2, x, w2);                                                             \
        if (n_vectors > 3) s##r##3 = VDOT(s##r##3, x, w3);                                                             \
    }
#define ADD(r) ADD_ROW(r, a##r + 4 * k)
/* Rows a step apart need fewer addresses than there are registers. */
#define ADD_FOUR(p, r0, r1, r2, r3)                                                                                    \
    ADD_ROW(r0, p) ADD_ROW(r1, p + step) ADD_ROW(r2, p + 2 * step) ADD_ROW(r3, p + step3)
#define ADD_STEPS ADD_FOUR(p, 0, 1, 2, 3) ADD_FOUR(q, 4, 5, 6, 7) ADD_FOUR(u, 8, 9, 10, 11)
#define ADD_STEPPED_TAPS                                                                                               \
    for (size_t i = 0; i < t->n_taps; i++) {                                                                           \
        const uint8_t *p = rows[t->taps[i] * t->tap_stride] + t->offset, *q = p + 4 * step, *u = p + 8 * step;         \
        const int32_t *weights = panel + t->taps[i] * t->n_dwords * n_cols;                                            \
        for (size_t k = 0; k < t->n_dwords; k++, weights += n_cols, p += 4, q += 4, u += 4) {                          \
            const VEC w0 = VLOAD(weights);                                                                             \
            SECOND w1 = VLOAD_SECOND(weights + (n_vectors > 1 ? LANES : 0));                                           \
            const VEC w2 = n_vectors > 2 ? VLOAD(weights + 2 * LANES) : w0;                                            \
            const VEC w3 = n_vectors > 3 ? VLOAD(weights + 3 * LANES) : w0;                                            \
            ADD_STEPS                                                                                                  \
        }                                                                                                              \
    }
#define ADD_ALL_TAPS                                                                                                   \
    if (n_rows > 6 && step != 0) {                                                                                     \
        ADD_STEPPED_TAPS                                                                                               \
    } else {                                                                                                           \
        ADD_TAPS                                                                                                       \
    }
#define ADD_TAPS                                                                                                       \
    for (size_t i = 0; i < t->n_taps; i++) {                                                                           \
        const uint8_t *const *row = rows + t->taps[i] * t->tap_stride;                                                 \
        const int32_t *weights = panel + t->taps[i] * t->n_dwords * n_cols;                                            \
        ALL_ROWS(POINT)                                                                                                \
        for (size_t k = 0; k < t->n_dwords; k++, weights += n_cols) {                                                  \
            const VEC w0 = VLOAD(weights);                                                                             \
            SECOND w1 = VLOAD_SECOND(weights + (n_vectors > 1 ? LANES : 0));                                           \
            const VEC w2 = n_vectors > 2 ? VLOAD(weights + 2 * LANES) : w0;                                            \
            const VEC w3 = n_vectors > 3 ? VLOAD(weights + 3 * LANES) : w0;                                            \
            ALL_ROWS(ADD)                                                                                              \
        }                                                                                                              \
    }
#define ADD_PLACES                                                                                                     \
    for (size_t i = 0; i < t->n_added; i++) {                                                                          \
        const uint8_t *const *row = rows + t->places[i].tap * t->tap_stride;                                           \
        const size_t k = (size_t)t->places[i].dword;                                                                   \
        const VEC w0 = VLOAD(t->added + i * n_cols), w2 = w0, w3 = w0;                                                 \
        SECOND w1 = VLOAD_SECOND(t->added + i * n_cols + (n_vectors > 1 ? LANES : 0));                                 \
        ALL_ROWS(POINT)                                                                                                \
        ALL_ROWS(ADD)                                                                                                  \
    }
    ALL_ROWS(START)
    const size_t step = t->step, step3 = 3 * step;
    (void)step3;
#if FLIPS
    if (t->flip != 0) {
        enum { flips = true };
        const VEC flip = VSPREAD((const uint8_t *)&t->flip);
        ADD_ALL_TAPS
#if ADDS
        ADD_PLACES
#endif
    } else
#endif
    {
        enum { flips = false };
        const VEC flip = INIT(0);
        (void)flip;
        ADD_ALL_TAPS
#if ADDS
        ADD_PLACES
#endif
    }
    if (e == NULL) {
        ALL_ROWS(END_SUMS)
        return;
    }
#if END_BYTES
    if (!e->is_floats) {
        if (n_vectors == 1) {
            END_BYTES1(0, 1, 2, 3) END_BYTES1(4, 5, 6, 7) END_BYTES1(8, 9, 10, 11)
        }
        if (n_vectors == 2) {
            END_BYTES2(0, 1) END_BYTES2(2, 3) END_BYTES2(4, 5) END_BYTES2(6, 7) END_BYTES2(8, 9) END_BYTES2(10, 11)
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
#undef POINT
#undef SPREAD
#undef ADD
#undef ADD_ROW
#undef ADD_FOUR
#undef ADD_STEPS
#undef ADD_TAPS
#undef ADD_STEPPED_TAPS
#undef ADD_ALL_TAPS
#undef ADD_PLACES
}

typedef void tile_form(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel, const int32_t *init,
                       const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS]);
#define FORM(r, v)                                                                                                     \
    static void tile_##r##_##v(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel,                     \
                               const int32_t *init, const qk_conv_end *e, int32_t(*sums)[QK_TILE_COLS]) {              \
        tile_of(t, rows, r, v, panel, init, e, sums);                                                                  \
    }
#define SIX(FORM, v)    FORM(1, v) FORM(2, v) FORM(3, v) FORM(4, v) FORM(5, v) FORM(6, v)
#define EIGHT(FORM, v)  SIX(FORM, v) FORM(7, v) FORM(8, v)
#define TWELVE(FORM, v) EIGHT(FORM, v) FORM(9, v) FORM(10, v) FORM(11, v) FORM(12, v)
#define NAME(r, v)      tile_##r##_##v,
/* As many rows as there are registers for; and by vectors and rows, less one. */
#if VECTORS == 4 /* thirty-two registers */
TWELVE(FORM, 1)
TWELVE(FORM, 2)
EIGHT(FORM, 3)
SIX(FORM, 4)
#define MAX_ROWS                                                                                                       \
    { 12, 12, 8, 6 }
static tile_form *const forms[VECTORS][QK_TILE_ROWS] = {
    {TWELVE(NAME, 1)}, {TWELVE(NAME, 2)}, {EIGHT(NAME, 3)}, {SIX(NAME, 4)}};
#else
TWELVE(FORM, 1)
SIX(FORM, 2)
#define MAX_ROWS                                                                                                       \
    { 12, 6 }
static tile_form *const forms[VECTORS][QK_TILE_ROWS] = {{TWELVE(NAME, 1)}, {SIX(NAME, 2)}};
#endif

static void tile(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, const int32_t *panel, const int32_t *init,
                 const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS]) {
    forms[t->n_cols / LANES - 1][n_rows - 1](t, rows, panel, init, e, sums);
}
