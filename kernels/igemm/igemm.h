/* Products with an indirection: tiles of rows that are given by addresses, times packed weights.
 *
 *     acc[r, c] = Σ_t Σ_k  A(t, r)[k] * W[t, k, c]          t < n_taps, k < kc;   rows A(t, r) are kc contiguous elements
 *
 * A plain product has one tap. An implicit convolution has one per point of its kernel, and its rows are pixels wherever they lie;
 * padding is a row of the source's zero point. No copy of the source is made.
 *
 * Integers (src U8 or S8, weights U8 or S8): sums are exact in s32, on every instruction set (K up to 65 793; beyond, modulo 2^32).
 * All kernels see the source as u8 and the weights as s8: with a' = a + src_shift (128 for S8, 0 for U8) and w' = w - weights_shift
 * (128 for U8) the tile is Σ a' w'. The product with zero points za and zw follows from it:
 *
 *     Σ (a - za)(w - zw) = Σ a' w' - za' col_sum[c] - zw'[c] row_sum[r] + K za' zw'[c],   za' = za + src_shift, zw' = zw - weights_shift
 *
 * which is col_add = za' (K zw' - col_sum), row_sum and col_mul = -zw' of kernels/post/post.h; K = n_taps * kc.
 * Floats (src F32): f32 sums in ascending k, one fused multiply-add each, which does not depend on the tile: the same bytes for any
 * split of rows and columns. Levels differ by rounding (ref does not fuse).
 *
 * Packed weights are panels of QK_IGEMM_COLS columns, padded with zeros, in a layout of the chosen level; then, for integers, the
 * col_sums of all panels. They are read fastest where they begin at a cache line. Nothing is read outside of the rows' kc elements. Single-threaded: split panels
 * or rows. */
#ifndef QK_IGEMM_H
#define QK_IGEMM_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_IGEMM_ROWS = 6, QK_IGEMM_COLS = 64 };

typedef struct qk_igemm qk_igemm;

/* One tile: rows of panel `panel`. rows[t * QK_IGEMM_ROWS + r] is the address of A(t, r); m is 1 … QK_IGEMM_ROWS. `acc` has m rows of
 * QK_IGEMM_COLS s32 (f32); columns from the end of n on are left undefined. */
typedef void qk_igemm_fn(const qk_igemm *g, const void *packed, const void *const *rows, size_t m, size_t panel,
                         void *acc);
/* sums[r] = Σ_t Σ_k a' of the rows; integers only. */
typedef void qk_igemm_sums_fn(const qk_igemm *g, const void *const *rows, size_t m, int32_t *sums);

struct qk_igemm {
    qdq_dtype src, weights; /* U8 S8, any pair; or F32, both */
    size_t n_taps, kc, n;   /* at least 1 */
    /* set by qk_igemm_init */
    qk_igemm_fn *run;
    qk_igemm_sums_fn *row_sums; /* NULL for floats */
    int32_t src_shift, weights_shift;
    qk_isa isa;
    size_t nr, kr;     /* layout of the level: [n_panels][COLS / nr][k / kr][nr][kr], kc padded to kr per tap */
    size_t elem_bytes; /* of a packed weight */
    size_t n_panels, panel_bytes, packed_bytes;
};

/* Weights as they come: element (t, k, c) is number t * tap_stride + k * k_stride + c * n_stride. */
typedef struct qk_igemm_source {
    const void *data;
    qdq_dtype dtype; /* that of g->weights; for F32 also BF16 or F16 */
    ptrdiff_t tap_stride, k_stride, n_stride;
} qk_igemm_source;

/* Choose the best level under the present cap and set the sizes. False: another pair of types, an extent of 0, or sizes that
 * overflow. */
bool qk_igemm_init(qk_igemm *g);
/* Write panels first … first+n-1 of the packed weights, and their col_sums. */
void qk_igemm_pack(const qk_igemm *g, const qk_igemm_source *source, void *packed, size_t first, size_t n);
/* Σ w' of each column of all panels; zero for columns from n on. */
const int32_t *qk_igemm_col_sums(const qk_igemm *g, const void *packed);

#ifdef __cplusplus
}
#endif
#endif
