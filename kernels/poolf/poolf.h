/* Pooling of floats along channels: a row of results, each a vector of channels, out of the rows of the source that its windows
 * touch.
 *
 *     maximum   dst[i][c] = max over rows and places of x[c]        -infinity when all are NaN: a NaN is passed over
 *     sum       dst[i][c] = sum over the places, in their order, of sums over the rows, in their order; f32
 *     then, where it counts: dst[i][c] = dst[i][c] / (counted of the line * counted of the run)
 *
 * A window without places: -infinity, or 0. Results are F32, or BF16 or F16 rounded half to even. Equal zeros: the first one, or +0
 * where the maximum is BF16. n_channels of each place are read, of the places between the first and the last that windows touch;
 * nothing else is. Sources are F32, BF16, F16, U8 or S8; integers are exact up to sums of 2^24. Every level gives the same bytes.
 * Single-threaded: split the rows. */
#ifndef QK_POOLF_H
#define QK_POOLF_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n > 0 results of `count` places each; the places of the first one begin at `first`, those of each other one `by` places further. */
typedef struct qk_poolf_run {
    size_t n;
    int64_t first, by, count;
    int64_t counted; /* what an average divides by, with what the line says */
} qk_poolf_run;

/* Under all results lie n_d * n_h rows of the source, row (d, h) being d * d_bytes + h * h_bytes behind the first one; a result has the
 * places (first + k * dilation) * place_bytes behind the begin of each, k < count. */
typedef struct qk_poolf_line {
    size_t n_d, n_h;
    ptrdiff_t d_bytes, h_bytes;
    size_t n_out, n_channels, dst_step; /* dst_step: elements from result to result */
    const qk_poolf_run *runs;           /* of n_out results together */
    ptrdiff_t place_bytes;
    int64_t dilation;
    int64_t counted; /* sums are divided by this times that of the run; 0: they are not */
} qk_poolf_line;

typedef void qk_poolf_fn(const qk_poolf_line *line, const void *src, void *dst);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when the types are not of the above: dst
 * is F32, or what src is. */
qk_poolf_fn *qk_poolf_choose(qdq_dtype src, qdq_dtype dst, bool is_max, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
