/* What a level of the family provides. Private to kernels/move. */
#ifndef QK_MOVE_ROW_H
#define QK_MOVE_ROW_H

#include "kernels/move/move.h"

/* Transposes of a tile of ni x nj elements of 1, 2, 4, 8 bytes: j is contiguous in src, i in dst;
 * dst[j * dst_j + i * bytes] = src[i * src_i + j * bytes], strides in bytes. */
typedef struct qk_move_tiles {
    qk_move_tile_fn *of_bytes[4]; /* by the logarithm */
    qk_move_rows_fn *rows;        /* n_rows rows of n bytes, src_j and dst_j bytes apart */
    qk_isa isa;
} qk_move_tiles;

#define QK_MOVE(level) extern const qk_move_tiles qk_move_tiles_##level;
#include "kernels/move/move.def"
#undef QK_MOVE

/* A long row past the caches; qk_move_run fences. */
void qk_move_stream_row(const char *src, char *dst, size_t n);

#endif
