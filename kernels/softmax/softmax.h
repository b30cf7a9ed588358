/* Softmax along lines of n elements.
 *
 *     d[i] = (x[i] - max(x)) * src_scale        U8, S8: a zero point would drop out; floats: src_scale is 1
 *     softmax     v = e^d[i] / sum(e^d)
 *     log         v = d[i] - log(sum(e^d))
 *     dst = v as a float type, or for U8, S8: round(v * dst_factor + zp_first), half to even, saturated
 *
 * The maximum leaves NaNs out; a NaN makes its whole line one. A line of -inf is NaN, or with `zero_of_inf` 0. Exponentials are
 * within two units in the last place, four below e^-16, and 0 below e^-86.6; sums are those of f32 in a few times as many parts
 * as a vector has lanes. A NaN gives a value in the
 * range of U8 and S8.
 *
 * Nothing outside of the lines is touched. dst may be src when the types are equally wide. Single-threaded: split the lines. */
#ifndef QK_SOFTMAX_H
#define QK_SOFTMAX_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements for each thread that is asked. */
#define QK_SOFTMAX_GRAIN (8 * 1024)

typedef struct qk_softmax {
    qdq_dtype src, dst; /* F32 BF16 F16 U8 S8 */
    bool is_log, zero_of_inf;
    float src_scale, dst_factor, zp_first; /* see above; not read for floats */
} qk_softmax;

/* n_rows lines of n consecutive elements, one behind the other. */
typedef void qk_softmax_rows_fn(const qk_softmax *s, const void *src, void *dst, size_t n_rows, size_t n);
/* n_cols lines beside each other; the elements of a line are `stride` elements apart, in src and dst. */
typedef void qk_softmax_cols_fn(const qk_softmax *s, const void *src, void *dst, size_t n, size_t stride,
                                size_t n_cols);

typedef struct qk_softmax_fns {
    qk_softmax_rows_fn *rows;
    qk_softmax_cols_fn *cols;
} qk_softmax_fns;

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when a type is none of the above. Scales may
 * change from run to run. */
const qk_softmax_fns *qk_softmax_choose(const qk_softmax *s, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
