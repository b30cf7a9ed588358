/* Tiles of sums in registers, for a level that has defined
 *     VEC, LANES, VECTORS  a vector of so many dwords; up to how many make a panel (4 or 2)
 *     VLOAD(p) VSTORE(p, v) VSPREAD(p)   the dword at p, in all lanes
 *     VDOT(s, x, w)        s plus, per dword, the products of the values in x and w
 * Included by conv_tile_*.c alone. */

#define SIX_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5)

/* n_rows and n_vectors are constants of the caller. */
QK_INLINE void tile_of(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, size_t n_vectors,
                       const int32_t *panel, const int32_t *init, int32_t (*sums)[QK_TILE_COLS]) {
    const size_t n_cols = n_vectors * LANES;
#define INIT(v)  (v < n_vectors ? VLOAD(init + v * LANES) : VLOAD(init))
#define START(r) VEC s##r##0 = INIT(0), s##r##1 = INIT(1), s##r##2 = INIT(2), s##r##3 = INIT(3);
#define POINT(r) const uint8_t *a##r = rows[r < n_rows ? r : 0];
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
    SIX_ROWS(START)
    for (size_t tap = 0; tap < t->n_taps; tap++, rows += t->tap_stride) {
        SIX_ROWS(POINT)
        for (size_t k = 0; k < t->n_dwords; k++, panel += n_cols) {
            const VEC w0 = VLOAD(panel), w1 = n_vectors > 1 ? VLOAD(panel + LANES) : w0;
            const VEC w2 = n_vectors > 2 ? VLOAD(panel + 2 * LANES) : w0;
            const VEC w3 = n_vectors > 3 ? VLOAD(panel + 3 * LANES) : w0;
            SIX_ROWS(ADD)
        }
    }
    SIX_ROWS(STORE)
#undef INIT
#undef START
#undef POINT
#undef ADD
#undef STORE
}

typedef void tile_form(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel, const int32_t *init,
                       int32_t (*sums)[QK_TILE_COLS]);
#define FORM(r, v)                                                                                                     \
    static void tile_##r##_##v(const qk_tile *t, const uint8_t *const *rows, const int32_t *panel,                     \
                               const int32_t *init, int32_t(*sums)[QK_TILE_COLS]) {                                    \
        tile_of(t, rows, r, v, panel, init, sums);                                                                     \
    }
#if VECTORS == 4 /* thirty-two registers */
#define FORMS(r) FORM(r, 1) FORM(r, 2) FORM(r, 3) FORM(r, 4)
#define NAMES(r)                                                                                                       \
    { tile_##r##_1, tile_##r##_2, tile_##r##_3, tile_##r##_4 }
#else
#define FORMS(r) FORM(r, 1) FORM(r, 2)
#define NAMES(r)                                                                                                       \
    { tile_##r##_1, tile_##r##_2 }
#endif
FORMS(1)
FORMS(2)
FORMS(3)
FORMS(4)
FORMS(5)
FORMS(6)
/* By rows and vectors, less one. */
static tile_form *const forms[QK_TILE_ROWS][VECTORS] = {NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6)};

static void tile(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, const int32_t *panel, const int32_t *init,
                 int32_t (*sums)[QK_TILE_COLS]) {
    forms[n_rows - 1][t->n_cols / LANES - 1](t, rows, panel, init, sums);
}
