/* Copies between two layouts of the same elements: transpose, permute, slice, concatenate, split, expand, pack, unpack.
 *
 *     dst[Σ x_k * dst_strides[k]] = src[Σ x_k * src_strides[k]]      for all x in [0, dims)
 *
 * Strides are in elements and may be negative (a reversed slice); a source stride may be 0 (expand); two different x have
 * different places in dst. The layouts say where element x = 0 is: a slice begins at a moved pointer. Elements are 1, 2, 4 or 8
 * bytes; 4-bit types are unpacked first. src and dst do not overlap. Threads: split the tasks. */
#ifndef QK_MOVE_H
#define QK_MOVE_H

#include "kernels/isa/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_MOVE_MAX_NDIMS = 12 };
/* Bytes for each thread that is asked: with fewer, asking costs more than it brings. */
#define QK_MOVE_GRAIN_BYTES (192 * 1024)

/* Where the data of a transpose are: near; in another cache than this core's; or the result goes past the caches. */
typedef enum qk_move_way { QK_MOVE_NEAR, QK_MOVE_FAR, QK_MOVE_PAST } qk_move_way;
typedef void qk_move_tile_fn(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j,
                             qk_move_way way);
typedef void qk_move_rows_fn(const char *src, char *dst, size_t n, size_t n_rows, ptrdiff_t src_j, ptrdiff_t dst_j);

/* Filled by qk_move_init; the fields are private. */
typedef struct qk_move {
    enum { QK_MOVE_ROW, QK_MOVE_TRANSPOSE, QK_MOVE_STRIDED } form;
    uint32_t elem_bytes;
    uint32_t n_outer;
    size_t outer[QK_MOVE_MAX_NDIMS];                                      /* extents, slowest first */
    ptrdiff_t outer_src[QK_MOVE_MAX_NDIMS], outer_dst[QK_MOVE_MAX_NDIMS]; /* bytes */
    size_t ni, nj;                                                        /* the extents of the inner form */
    ptrdiff_t src_i, dst_i;                                               /* bytes from one i to the next */
    ptrdiff_t src_j, dst_j;
    size_t i_step, j_step, i_tasks, j_tasks; /* how the inner form is cut into tasks */
    size_t n_tasks;
    qk_move_way way;
    qk_move_tile_fn *tile;
    qk_move_rows_fn *rows;
    qk_isa isa;
} qk_move;

/* Merge, sort and choose, under the present cap. False: ndims or elem_bytes not of the above, or a negative extent. Any extent
 * may be 0: then there are no tasks. */
bool qk_move_init(qk_move *move, uint32_t elem_bytes, int32_t ndims, const int64_t *dims, const int64_t *src_strides,
                  const int64_t *dst_strides);
/* Tasks first … first+n-1 of move->n_tasks. They write different elements. */
void qk_move_run(const qk_move *move, const void *src, void *dst, size_t first, size_t n);

#ifdef __cplusplus
}
#endif
#endif
