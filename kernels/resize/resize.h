/* The parts of linear interpolation.
 *
 *   blend    v[i] = sum over k of weights[k] * x_k[i]                  rows of stored elements, as f32
 *   runs     v[i][c] = b[lo[i]][c] * (1 - w[i]) + b[hi[i]][c] * w[i]   along an axis of runs; b is the blend of the rows
 *   take     runs as they are, by their numbers: nearest
 *   across   v[i] = row[lo[i]] + (row[hi[i]] - row[lo[i]]) * w[i]      along a row of f32
 *   dst = v * factor + add, stored as a float type or rounded half to even and saturated to U8, S8
 *
 * Weights that add up to 1 leave a zero point what it is: factor and add bring source and destination quantization in at once.
 * Nothing outside of the elements is touched. Single-threaded: split the rows. */
#ifndef QK_RESIZE_H
#define QK_RESIZE_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_resize {
    qdq_dtype src, dst; /* F32 BF16 F16 U8 S8 */
    float factor, add;
} qk_resize;

enum { QK_RESIZE_MAX_CORNERS = 8 };

/* Of each of n results, two places and the weight of the second one. */
typedef struct qk_resize_axis {
    const int32_t *lo, *hi;
    const float *w;
    size_t n;
} qk_resize_axis;

typedef struct qk_resize_fns {
    /* `dst` of resize->dst, or with to_floats: f32, and neither factor nor add. */
    void (*blend)(const qk_resize *resize, bool to_floats, const void *const *src, const float *weights, size_t n_src,
                  void *dst, size_t n);
    /* Runs of n elements, those of the sources `step` elements apart, those of the result dst_step. A place without weight is not
     * looked at. */
    void (*runs)(const qk_resize *resize, const void *const *src, const float *weights, size_t n_src,
                 const qk_resize_axis *axis, size_t step, void *dst, size_t dst_step, size_t n);
    /* dst[i] = src[at[i]] for runs of run_bytes, those of the source step_bytes apart, those of dst beside each other. */
    void (*take)(const void *src, const int32_t *at, size_t n, size_t run_bytes, size_t step_bytes, void *dst);
    void (*across)(const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi, const float *w,
                   void *dst, size_t n);
} qk_resize_fns;

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when a type is none of the above. factor and
 * add may change from run to run. */
const qk_resize_fns *qk_resize_choose(const qk_resize *resize, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
