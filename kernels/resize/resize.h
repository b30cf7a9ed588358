/* The two halves of linear interpolation.
 *
 *   blend    v[i] = sum over k of weights[k] * x_k[i]                  rows of stored elements, as f32
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

typedef struct qk_resize_fns {
    /* `dst` of resize->dst, or with to_floats: f32, and neither factor nor add. */
    void (*blend)(const qk_resize *resize, bool to_floats, const void *const *src, const float *weights, size_t n_src,
                  void *dst, size_t n);
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
