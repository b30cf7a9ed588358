/* Products of rows with packed weights:
 *
 *     acc[r, c] = Σ_k A(r)[k] * W[k, c]          k < kc;   row A(r) is kc contiguous elements, row_bytes from its neighbours
 *
 * Integers (src U8 or S8, weights U8 or S8): sums are exact in s32, on every instruction set (K up to 65 793; beyond, modulo 2^32).
 * All kernels see the source as u8 and the weights as s8: with a' = a + src_shift (128 for S8, 0 for U8) and w' = w - weights_shift
 * (128 for U8) the tile is Σ a' w'. The product with zero points za and zw follows from it:
 *
 *     Σ (a - za)(w - zw) = Σ a' w' - za' col_sum[c] - zw'[c] row_sum[r] + K za' zw'[c],   za' = za + src_shift, zw' = zw - weights_shift
 *
 * which is col_add = za' (K zw' - col_sum), row_sum and col_mul = -zw' of kernels/post/post.h; K = kc.
 * Floats (F32, both): f32 sums in ascending k, one fused multiply-add each, which does not depend on the tile: the same bytes for any
 * split of rows and columns. Levels differ by rounding (ref does not fuse).
 * BF16, both: f32 sums of the CPU's instruction, on levels that have one: pairs of k in ascending order, rounded at most twice each, which
 * does not depend on the tile either. What is below 2^-126, of operands, sums and bf16 results, counts as zero.
 *
 * Packed weights are panels of QK_IGEMM_COLS columns, padded with zeros, in a layout of the chosen level; then, for integers, the
 * col_sums of all panels, and what the level needs of each column beyond that. They are read fastest where they begin at a cache line. Nothing is
 * read outside of the rows' kc elements. Single-threaded: split panels or rows. */
#ifndef QK_IGEMM_H
#define QK_IGEMM_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_IGEMM_ROWS = 24, QK_IGEMM_COLS = 64 };

typedef struct qk_igemm qk_igemm;

/* Rows that lie row_bytes from each other. */
typedef struct qk_igemm_rows {
    const void *data;
    ptrdiff_t row_bytes;
    size_t m;
} qk_igemm_rows;

/* The common way from sums to results, for one panel's columns of the rows:
 *
 *     v = f32(sum + add[c]) * (scale_common * scale[c]) + bias[c]         each operation rounded once
 *     v = min(max(low, v), high), to bytes: rint(v) if is_rounded, + zp
 *     dst = v, to bytes rounded half to even and saturated
 *
 * the same bytes as kernels/post makes of the program of this meaning. Vectors per column are those of the whole matrix. */
typedef struct qk_igemm_end {
    qdq_dtype dst;      /* U8 S8, integers only; F32; BF16, from BF16 only */
    const int32_t *add; /* integers; NULL: none; likewise the next two */
    const float *scale, *bias;
    float scale_common; /* 1 when there is none */
    float low, high;    /* -INFINITY and INFINITY when there is none; low <= high */
    bool is_rounded;
    float zp;         /* an integer */
    void *data;       /* row 0 of the rows, column 0 of the matrix */
    ptrdiff_t stride; /* from row to row, in elements */
} qk_igemm_end;

/* Sums of 1 … QK_IGEMM_ROWS rows: `acc` has m rows of QK_IGEMM_COLS s32 (f32); columns from the end of n on are left undefined. */
typedef void qk_igemm_fn(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel, void *acc);
/* Results of any number of rows. False, and nothing is written, when scales, biases or the zero point are so large that a value may not fit s32. */
typedef bool qk_igemm_end_fn(const qk_igemm *g, const void *packed, const qk_igemm_rows *rows, size_t panel,
                             const qk_igemm_end *end);
/* out[c] = Σ_k of the row times column c, whose k are consecutive: read where they lie, once; floats only. `columns` are 1 … COLS, `out`
 * has a multiple of four. Lanes of a vector of k are summed first, then theirs: not the bytes of `run`. */
typedef void qk_igemm_dots_fn(const qk_igemm *g, const void *row, const qk_igemm_rows *columns, float *out);
/* sums[r] = Σ_k a' of the rows; integers only. */
typedef void qk_igemm_sums_fn(const qk_igemm *g, const qk_igemm_rows *rows, int32_t *sums);

/* The level's own packing of a whole panel, padding and (integers) the 64 sums included; false: it does not take these strides. */
typedef struct qk_igemm_source qk_igemm_source;
typedef bool qk_igemm_pack_fn(const qk_igemm *g, const qk_igemm_source *source, size_t panel, void *out, int32_t *sums);

/* One row of kc elements by n columns of weights that are not packed: acc[c] = Σ_k (a'[k] - zero) w'[k, first + c]. False: the strides
 * are not for it (neither is 1), or zero is not a u8. */
typedef bool qk_igemm_line_fn(const qk_igemm *g, const uint8_t *row, int32_t zero, const qk_igemm_source *source,
                              size_t first, size_t n, int32_t *acc);

struct qk_igemm {
    qdq_dtype src, weights; /* U8 S8, any pair; or F32, both; or BF16, both */
    size_t kc, n;           /* at least 1 */
    bool is_lasting;        /* weights are packed once and used often: a faster form of them may take time to find */
    /* set by qk_igemm_init */
    qk_igemm_fn *run;
    qk_igemm_end_fn *run_to_end; /* NULL: the level has none */
    qk_igemm_sums_fn *row_sums;  /* NULL for floats */
    qk_igemm_pack_fn *pack;      /* NULL: there is none; for qk_igemm_pack */
    qk_igemm_line_fn *line;      /* NULL for floats, and where the level has none */
    size_t line_rows;            /* so many rows pay less that way than packing would cost; 0: none */
    qk_igemm_dots_fn *dots;      /* NULL: the level has none */
    int32_t src_shift, weights_shift;
    qk_isa isa;
    size_t nr, kr;     /* layout of the level: [n_panels][COLS / nr][k / kr][nr][kr], kc padded to kr */
    size_t elem_bytes; /* of a packed weight */
    size_t
        k_step; /* floats; 0: weights as packed. Set to the stride of a row-major matrix, and given its address in place of the packed
                    * weights, whole panels (n a multiple of COLS) are read where they lie */
    bool is_paired;       /* within nr * kr, in the order of Winograd's pairs: igemm_avx2.c */
    size_t part, n_parts; /* is_paired: k are multiplied in so many parts, of `part` but the last */
    size_t n_panels, panel_bytes, packed_bytes;
};

/* Weights as they come: element (k, c) is number k * k_stride + c * n_stride. */
struct qk_igemm_source {
    const void *data;
    qdq_dtype dtype; /* that of g->weights; for F32 also BF16 or F16 */
    ptrdiff_t k_stride, n_stride;
};

/* Choose the best level under the present cap and set the sizes. False: another pair of types, or one that no level has,
 * an extent of 0, or sizes that overflow. */
bool qk_igemm_init(qk_igemm *g);
/* Write panels first … first+n-1 of the packed weights, and what follows the panels of their columns. */
void qk_igemm_pack(const qk_igemm *g, const qk_igemm_source *source, void *packed, size_t first, size_t n);
/* Σ w' of each column of all panels; zero for columns from n on. */
const int32_t *qk_igemm_col_sums(const qk_igemm *g, const void *packed);

#ifdef __cplusplus
}
#endif
#endif
