/* One operation on every element of a tensor of floats, alone: what kernels/post does with a program of that one step, as a loop
 * of its own. Rows of f32, bf16 or f16; the operand of a pair is of the same type, an element for each or one for a row.
 *
 *     dst[r][c] = op(src[r][c])            dst[r][c] = src[r][c] op w[r][c]     (or w[r])
 *
 * Computed in f32; each step rounds once, functions are within a few units in the last place, as in kernels/post, whose results these
 * are. Strides are in bytes; dst may be src, and otherwise overlaps nothing. Nothing outside of the elements is touched.
 * Single-threaded: split the rows or the columns. */
#ifndef QK_POINTWISE_H
#define QK_POINTWISE_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_pointwise_op {
#define QK_UNARY(name, expression)    QK_POINTWISE_##name,
#define QK_FUNCTION(name, expression) QK_POINTWISE_##name,
#define QK_PAIR(name, expression)     QK_POINTWISE_##name,
#include "kernels/pointwise/pointwise_ops.def"
#undef QK_UNARY
#undef QK_FUNCTION
#undef QK_PAIR
    QK_POINTWISE_COUNT
} qk_pointwise_op;

typedef struct qk_pointwise {
    float alpha, beta;
    bool stream; /* write past the caches: for results nobody reads soon (qk_isa_stream_bytes) */
    bool common; /* of pairs: one element of w for a row */
    ptrdiff_t src_row, w_row, dst_row;
} qk_pointwise;

typedef void qk_pointwise_fn(const qk_pointwise *p, const void *src, const void *w, void *dst, size_t n_rows,
                             size_t n_cols);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL where no level has it. */
qk_pointwise_fn *qk_pointwise_choose(qk_pointwise_op op, qdq_dtype dtype, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
