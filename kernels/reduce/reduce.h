/* Reductions of stored elements to f64: the caller adds the scale, the mean's division and the root.
 *
 *     x = the element as f32; of U8 and S8: q - zp, an integer
 *     SUM x   ABS |x|   SQUARES x^2   MAX   MIN   PROD (q - zp) * scale, or x
 *
 * Sums of U8 and S8 are exact; those of floats are taken in f32 over short pieces, and these in f64. A NaN makes a maximum or minimum
 * one. Nothing outside of the elements is read. Single-threaded: split the elements and combine. */
#ifndef QK_REDUCE_H
#define QK_REDUCE_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements for each thread that is asked. */
#define QK_REDUCE_GRAIN (16 * 1024)

typedef enum qk_reduce_op {
    QK_REDUCE_SUM,
    QK_REDUCE_ABS,
    QK_REDUCE_SQUARES,
    QK_REDUCE_MAX,
    QK_REDUCE_MIN,
    QK_REDUCE_PROD
} qk_reduce_op;

typedef struct qk_reduce {
    qk_reduce_op op;
    qdq_dtype src; /* F32 BF16 F16 U8 S8 */
    float zp;      /* U8, S8; an integer */
    float scale;   /* U8, S8: of PROD */
} qk_reduce;

typedef struct qk_reduce_fns {
    /* n consecutive elements; n = 0 gives what changes nothing. */
    double (*run)(const qk_reduce *reduce, const void *src, size_t n);
    /* The same of n_rows runs, `stride` elements apart. */
    void (*rows)(const qk_reduce *reduce, const void *src, size_t n_rows, size_t n, size_t stride, double *out);
    /* acc[c] = acc[c] with column c of rows x cols elements, whose rows are `stride` elements apart. */
    void (*cols)(const qk_reduce *reduce, const void *src, size_t rows, size_t cols, size_t stride, double *acc);
} qk_reduce_fns;

/* What changes nothing: 0, 1, or an infinity. */
double qk_reduce_none(qk_reduce_op op);
/* Two results to one. */
double qk_reduce_join(qk_reduce_op op, double a, double b);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when type or op is none of the above. zp and
 * scale may change from run to run. */
const qk_reduce_fns *qk_reduce_choose(const qk_reduce *reduce, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
