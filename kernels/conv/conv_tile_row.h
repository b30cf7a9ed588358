/* What a level provides for convolution as products of rows with panels. Private to kernels/conv.
 *
 * Everything is seen as dwords: `unit` elements of k, side by side, are one: 4 bytes, 2 words of 16 bits, or 1 float. A row of k
 * is n_taps runs of `n_dwords` each, at any address (of any alignment); a panel is packed as [tap][dword][column] dwords. */
#ifndef QK_CONV_TILE_ROW_H
#define QK_CONV_TILE_ROW_H

#include "kernels/conv/conv_end.h"
#include "kernels/isa/isa.h"

#include <stdbool.h>
#include <string.h>

enum {
    QK_TILE_ROWS = 12, /* most rows of a tile */
    QK_TILE_COLS = 64, /* sums are this far apart from row to row */
};

/* Where a dword of k is in a row: tap, and dword of its run. */
typedef struct qk_tile_place {
    uint32_t tap, dword;
} qk_tile_place;

typedef struct qk_tile {
    const uint32_t *taps; /* which, of a row's and the panel's */
    size_t n_taps, n_dwords;
    size_t tap_stride; /* of row pointers: row r's run of tap t is at rows[t * tap_stride + r] … */
    size_t n_cols;     /* of the panel: dwords from one k to the next; a multiple of the level's lanes */
    size_t step; /* … or where this is not 0, so many bytes behind that of row r - 1, row 0's at rows[t * tap_stride] */
    size_t offset; /* from where row pointers point to where rows are, in bytes */
    uint32_t flip; /* xor of every dword of the rows, where the level `flips` */
    /* Some dwords of k once more, with other weights: one row of columns each. */
    size_t n_added;
    const qk_tile_place *places;
    const int32_t *added;
} qk_tile;

typedef struct qk_tile_row {
    qk_isa isa;
    size_t unit, lanes, max_cols;
    bool flips, ends;
    /* init[c] + Σ row r · column c over the taps, for any number of rows and all columns of the panel: to sums[r][c], or where the level `ends`
     * and `end` is not NULL, as that says. */
    void (*tiles)(const qk_tile *tile, const uint8_t *const *rows, size_t n_rows, const int32_t *panel,
                  const int32_t *init, const qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]);
    /* n elements as tiles want them: bytes xor `flip`, or widened to words of 16 bits after that; floats of any type as f32. */
    void (*copy)(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type);
    /* Levels that multiply words may have a faster way with bytes, for weights whose pairs are small: of either sign no more than 128,
     * so that the sum of two products does not saturate in 16 bits. Pairs that are larger are halved; the other halves are dwords of
     * their own, at some places: what is added. NULL: there is no such way. */
    const struct qk_tile_row *bytes;
} qk_tile_row;

/* Four bytes at any address. */
static inline int32_t qk_dword(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, sizeof dword);
    return dword;
}

#define QK_TILE(level) extern const qk_tile_row qk_tile_row_##level;
#include "kernels/conv/conv_tile.def"
#undef QK_TILE
#if defined(__x86_64__)
extern const qk_tile_row qk_tile_bytes_row_avx2;
#endif
#define QK_TILE_FLOAT(level) extern const qk_tile_row qk_tile_float_row_##level;
#include "kernels/conv/conv_tile_float.def"
#undef QK_TILE_FLOAT

#endif
