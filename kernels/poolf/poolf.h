/* Pooling of floats along channels: one vector of channels out of the vectors that a window touches.
 *
 *     maximum   acc[c] = max over the rows of x_row[c]      -infinity when all are NaN: a NaN is passed over
 *     sum       acc[c] = sum over the rows, in their order, f32
 *     then, with a divisor other than 0: acc[c] = acc[c] / divisor
 *
 * `is_added`: acc holds the result of earlier rows of the window. n channels of n_rows (at least 1) rows; nothing outside of
 * them is touched. Sources are F32, BF16, F16, U8 or S8; integers are exact up to sums of 2^24. Every level gives the same
 * bytes. Single-threaded: split the windows. */
#ifndef QK_POOLF_H
#define QK_POOLF_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void qk_poolf_fn(const void *const *rows, size_t n_rows, size_t n, float *acc, bool is_added, float divisor);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when the type is not of the above. */
qk_poolf_fn *qk_poolf_choose(qdq_dtype src, bool is_max, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
