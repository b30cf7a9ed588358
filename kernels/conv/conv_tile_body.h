/* Tiles of sums in registers, for a level that has defined
 *     VEC, LANES, VECTORS  a vector of so many dwords; up to how many make a panel (4 or 2)
 *     VLOAD(p) VSTORE(p, v)
 *     VSPREAD(p)           the dword at p, in all lanes; may flip it: `flip` is the tile's, in all lanes
 *     VDOT(s, x, w)        s plus, per dword, the products of the values in x and w
 *     ADDS                 whether there may be additions
 * and what conv_end_body.h asks for. Included by conv_tile_*.c alone. */
#include "kernels/conv/conv_end_body.h"

#define ALL_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11)

/* n_rows and n_vectors are constants of the caller. */
QK_INLINE void tile_of(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, size_t n_vectors,
                       const int32_t *panel, const int32_t *init, const qk_conv_end *e, int32_t (*sums)[QK_TILE_COLS]) {
    const size_t n_cols = n_vectors * LANES, most = n_rows - 1;
    const __typeof__(VLOAD(init)) flip = VFLIP(t->flip);
    (void)flip;
#define ROW(r)   (r < n_rows ? r : most)
#define INIT(v)  (v < n_vectors ? VLOAD(init + v * LANES) : VLOAD(init))
#define START(r) VEC s##r##0 = INIT(0), s##r##1 = INIT(1), s##r##2 = INIT(2), s##r##3 = INIT(3);
#define POINT(r) const uint8_t *a##r = rows[ROW(r)];
#define ADD(r)                                                                                                         \
    if (r < n_rows) {                                                                                                  \
        const VEC x = VSPREAD(a##r + 4 * k);                                                                           \
        s##r##0 = VDOT(s##r##0, x, w0);                                                                                \
        if (n_vectors > 1) s##r##1 = VDOT(s##r##1, x, w1);                                                             \
        if (n_vectors > 2) s##r##2 = VDOT(s##r##2, x, w2);                                                             \
        if (n_vectors > 3) s##r##3 = VDOT(s##r##3, x, w3);                                                             \
    }
#define STORE(r)                                                                                                       \
    if (r < n_rows) {                                                                                                  \
        VSTORE(sums[r], s##r##0);                                                                                      \
        if (n_vectors > 1) VSTORE(sums[r] + LANES, s##r##1);                                                           \
        if (n_vectors > 2) VSTORE(sums[r] + 2 * LANES, s##r##2);                                                       \
        if (n_vectors > 3) VSTORE(sums[r] + 3 * LANES, s##r##3);                                                       \
    }
#define FLOATS(r)                                                                                                      \
    if (r < n_rows) {                                                                                                  \
        uint8_t *to = e->dst + r * e->step;                                                                            \
        end_floats(e, s##r##0, 0, to);                                                                                 \
        if (n_vectors > 1) end_floats(e, s##r##1, 1, to);                                                              \
        if (n_vectors > 2) end_floats(e, s##r##2, 2, to);                                                              \
        if (n_vectors > 3) end_floats(e, s##r##3, 3, to);                                                              \
    }
/* Rows of one, two or more vectors; the last of a row's four may stand twice. */
#define PUT(r, b, from)                                                                                                \
    if (r < n_rows) end_store(e->dst + r * e->step, b, from, n_vectors, e->n_cols);
#define BYTES1(r, r1, r2, r3)                                                                                          \
    if (r < n_rows) {                                                                                                  \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r1##0, s##r2##0, s##r3##0, 0, 0, 0, 0));                 \
        PUT(r, b, 0) PUT(r1, b, 1) PUT(r2, b, 2) PUT(r3, b, 3)                                                         \
    }
#define BYTES2(r, r1)                                                                                                  \
    if (r < n_rows) {                                                                                                  \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r1##0, s##r1##1, 0, 1, 0, 1));                  \
        PUT(r, b, 0) PUT(r1, b, 2)                                                                                     \
    }
#define BYTES3(r)                                                                                                      \
    if (r < n_rows) {                                                                                                  \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r##2, s##r##2, 0, 1, 2, 2));                    \
        PUT(r, b, 0)                                                                                                   \
    }
#define BYTES4(r)                                                                                                      \
    if (r < n_rows) {                                                                                                  \
        const end_bytes b = end_order(end_four(e, s##r##0, s##r##1, s##r##2, s##r##3, 0, 1, 2, 3));                    \
        PUT(r, b, 0)                                                                                                   \
    }
    ALL_ROWS(START)
    for (size_t tap = 0; tap < t->n_taps; tap++, rows += t->tap_stride) {
        ALL_ROWS(POINT)
        for (size_t k = 0; k < t->n_dwords; k++, panel += n_cols) {
            const VEC w0 = VLOAD(panel), w1 = n_vectors > 1 ? VLOAD(panel + LANES) : w0;
            const VEC w2 = n_vectors > 2 ? VLOAD(panel + 2 * LANES) : w0;
            const VEC w3 = n_vectors > 3 ? VLOAD(panel + 3 * LANES) : w0;
            ALL_ROWS(ADD)
        }
    }
#if ADDS
    const int32_t *weights = t->added;
    for (size_t i = 0; i < t->n_added; i++, weights += n_cols) {
        const uint8_t *const *from = t->added_rows + t->places[i].tap * t->tap_stride;
        const size_t k = (size_t)t->places[i].dword;
        const VEC w0 = VLOAD(weights), w1 = n_vectors > 1 ? VLOAD(weights + LANES) : w0, w2 = w0, w3 = w0;
#define AGAIN(r) const uint8_t *a##r = from[ROW(r)];
        ALL_ROWS(AGAIN)
        ALL_ROWS(ADD)
#undef AGAIN
    }
#endif
    if (e == NULL) {
        ALL_ROWS(STORE)
        return;
    }
#if END_BYTES
    if (!e->is_floats) {
        if (n_vectors == 1) {
            BYTES1(0, 1, 2, 3) BYTES1(4, 5, 6, 7) BYTES1(8, 9, 10, 11)
        }
        if (n_vectors == 2) {
            BYTES2(0, 1) BYTES2(2, 3) BYTES2(4, 5) BYTES2(6, 7) BYTES2(8, 9) BYTES2(10, 11)
        }
        if (n_vectors == 3) {
            ALL_ROWS(BYTES3)
        }
        if (n_vectors == 4) {
            ALL_ROWS(BYTES4)
        }
        return;
    }
#endif
    ALL_ROWS(FLOATS)
#undef ROW
#undef INIT
#undef START
#undef POINT
#undef ADD
#undef STORE
#undef FLOATS
#undef PUT
#undef BYTES1
#undef BYTES2
#undef BYTES3
#undef BYTES4
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
