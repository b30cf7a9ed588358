/* Pooling of floats along channels: a row of results, each a vector of channels, out of the rows of the source that its windows
 * touch.
 *
 *     maximum   dst[i][c] = max over rows and places of x[c]        -infinity when all are NaN: a NaN is passed over
 *     sum       dst[i][c] = sum over the places, in their order, of sums over the rows, in their order; f32
 *     then, with divisors: dst[i][c] = dst[i][c] / divisors[i]
 *
 * A window without places: -infinity, or 0. n_channels of each place; nothing outside of them is touched. Sources are F32, BF16,
 * F16, U8 or S8; integers are exact up to sums of 2^24. Every level gives the same bytes. Single-threaded: split the rows. */
#ifndef QK_POOLF_H
#define QK_POOLF_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Under all results lie n_d * n_h rows of the source, row (d, h) being d * d_bytes + h * h_bytes behind the first one; result i has the
 * places (first[i] + k * dilation) * place_bytes behind the begin of each, k < count[i]. */
typedef struct qk_poolf_line {
    size_t n_d, n_h;
    ptrdiff_t d_bytes, h_bytes;
    size_t n_out, n_channels, dst_step; /* dst_step: floats from result to result */
    const int64_t *first, *count;
    ptrdiff_t place_bytes;
    int64_t dilation;
    const float *divisors; /* NULL: none */
} qk_poolf_line;

typedef void qk_poolf_fn(const qk_poolf_line *line, const void *src, float *dst);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when the type is not of the above. */
qk_poolf_fn *qk_poolf_choose(qdq_dtype src, bool is_max, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
