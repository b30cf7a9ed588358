/* Bytes through one line per element: a factor and a shift that change along a row, or are the same for all of it.
 *
 *     dst[i] = min(max(sat8(sat16(rint(src[i] * factor[i] + shift[i])) + zp), low), high)          src, dst u8 or s8
 *
 * the product and the sum in f32, rounded once together (fused), rint half to even (what is above 2^30 counts as that), sat16 and sat8 saturating to 16 and 8 bits.
 * A batch normalisation between two quantizations is this, with everything folded into the two vectors; ReLU and Clip are `low`
 * and `high`. A NaN gives the largest value. Every level of instruction set gives the same bytes.
 *
 * `src` and `dst` may be the same, and must not overlap otherwise. Nothing outside of the n elements is read or written.
 * Single-threaded: split the elements. */
#ifndef QK_AFFINE_H
#define QK_AFFINE_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_affine {
    qdq_dtype src, dst; /* U8 S8 */
    int32_t zp;         /* -255 … 255 */
    int32_t low, high;  /* in the range of dst */
} qk_affine;

/* step 1: factor and shift are as many as elements; 0: one of each. */
typedef void qk_affine_fn(const qk_affine *affine, const float *factor, const float *shift, size_t step,
                          const void *src, void *dst, size_t n);

/* The best under the present cap; the level through isa_out, which may be NULL. */
qk_affine_fn *qk_affine_choose(qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
