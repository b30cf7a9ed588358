#include "kernels/igemm/igemm_end512_body.h"

/* Six rows by four vectors of columns: 24 sums, four weights, a broadcast source. */
enum { STEP_BYTES = 4 * QK_IGEMM_COLS };

/* In place: from the intrinsic the compiler makes copies of sums that are to be used in more than one way at the end. */
#define ADD_PRODUCTS(sum, x, w) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w))

/* Four k of all rows; `source` makes the dword of row r. */
#define ADD_STEP(source)                                                                                               \
    do {                                                                                                               \
        QK_FOUR_TIMES(j, if (j < nv) w[j] = _mm512_loadu_si512(b + 64 * j));                                           \
        QK_SIX_TIMES(                                                                                                  \
            r, if (r < mr) {                                                                                           \
                __m512i x = _mm512_set1_epi32(source);                                                                 \
                if (flip) x = _mm512_xor_si512(x, sign);                                                               \
                QK_FOUR_TIMES(j, if (j < nv) ADD_PRODUCTS(s[r][j], x, w[j]));                                          \
            });                                                                                                        \
        b += STEP_BYTES;                                                                                               \
    } while (0)

#define EACH_ROW(...) QK_SIX_TIMES(r, if (r < mr) __VA_ARGS__)

/* mr, nv and flip are constants of the caller. */
QK_INLINE void tile(const qk_igemm *g, const uint8_t *b, const uint8_t *a, ptrdiff_t row_bytes, const panel_end *e,
                    char *to, const int mr, const int nv, const bool flip) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    const size_t n4 = g->kc / 4 * 4, tail = g->kc % 4;
    __m512i s[SIX_ROWS][4], w[4];
    QK_FOUR_TIMES(j, w[j] = j < nv ? _mm512_load_si512(e->add + LANES * j) : _mm512_setzero_si512());
    QK_SIX_TIMES(r, QK_FOUR_TIMES(j, s[r][j] = w[j]));
    for (size_t k = 0; k < n4; k += 4, a += 4)
        ADD_STEP(qk_igemm_load4(a + r * row_bytes));
    if (tail != 0) ADD_STEP(qk_igemm_load_tail(a + r * row_bytes, tail));
    switch (e->what) {
    case SUMS:
        EACH_ROW(QK_FOUR_TIMES(j, if (j < nv) _mm512_storeu_si512(to + r * e->stride_bytes + 64 * j, s[r][j])));
        break;
    case BARE_BYTES:
        EACH_ROW({
            FORGET(e);
            bytes_row(s[r], e, to + r * e->stride_bytes, nv, false);
        });
        break;
    case BYTES:
        EACH_ROW({
            FORGET(e);
            bytes_row(s[r], e, to + r * e->stride_bytes, nv, true);
        });
        break;
    case BARE_FLOATS:
    case FLOATS:
        EACH_ROW({
            FORGET(e);
            __m512 v[4];
            QK_FOUR_TIMES(j, v[j] = _mm512_cvtepi32_ps(s[r][j]));
            floats_row(v, e, to + r * e->stride_bytes, nv);
        });
        break;
    }
}

typedef void tile_fn(const qk_igemm *g, const uint8_t *b, const uint8_t *a, ptrdiff_t row_bytes, const panel_end *e,
                     char *to);
#define TILE(mr, nv)                                                                                                   \
    static void tile_##mr##_##nv(const qk_igemm *g, const uint8_t *b, const uint8_t *a, ptrdiff_t row_bytes,           \
                                 const panel_end *e, char *to) {                                                       \
        tile(g, b, a, row_bytes, e, to, mr, nv, false);                                                                \
    }                                                                                                                  \
    static void flip_##mr##_##nv(const qk_igemm *g, const uint8_t *b, const uint8_t *a, ptrdiff_t row_bytes,           \
                                 const panel_end *e, char *to) {                                                       \
        tile(g, b, a, row_bytes, e, to, mr, nv, true);                                                                 \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
static tile_fn *const tiles[2][SIX_ROWS][4] = {FORM(tile), FORM(flip)};

static void run(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, const panel_end *e,
                char *to) {
    const size_t nv = (qk_igemm_cols_of(g, panel) + LANES - 1) / LANES;
    const uint8_t *b = qk_igemm_panel(g, packed, panel), *a = rows->data;
    tile_fn *const(*forms)[4] = tiles[g->src_shift != 0];
    size_t n_tiles = (rows->m + SIX_ROWS - 1) / SIX_ROWS, mr = rows->m / n_tiles, n_high = rows->m % n_tiles;
    for (mr++; n_tiles > 0; n_tiles--) { /* as high as each other as far as it goes */
        if (n_high-- == 0) mr--;
        forms[mr - 1][nv - 1](g, b, a, rows->row_bytes, e, to);
        a += (ptrdiff_t)mr * rows->row_bytes;
        to += (ptrdiff_t)mr * e->stride_bytes;
    }
}

void qk_igemm_x8_avx512vnni(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc) {
    run(g, packed, rows, panel, &sums_end, acc);
}

bool qk_igemm_x8_end_avx512vnni(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                                const qk_igemm_end *end) {
    panel_end e;
    if (!prepare_end(end, panel, qk_igemm_cols_of(g, panel), &e)) return false;
    run(g, packed, rows, panel, &e,
        (char *)end->data + (ptrdiff_t)(panel * QK_IGEMM_COLS) * (end->dst == QDQ_DTYPE_F32 ? 4 : 1));
    return true;
}
