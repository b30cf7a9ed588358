/* The common ends of products: few enough steps to be done while sums are in registers.
 *
 *     v = f32(sum), or the sum itself;  v = v * (scale_common * scale[c]);  v = v + bias[c]      absent parts are not computed
 *     to floats   v = max(0, v)                                                                 `is_relu`
 *     to bytes    v = v + shift;  dst = min(max(saturate(round half to even(v) + zp), low), high)
 *
 * Each float operation is rounded once. To bytes, this is what kernels/post does for values that fit 32 bits: `low` and `high` are
 * what its bounds before the rounding become. */
#ifndef QK_SIMD_PLAIN_H
#define QK_SIMD_PLAIN_H

#include "qdq/qdq.h"

typedef struct qk_plain {
    qdq_dtype dst; /* U8 S8 F32 */
    bool has_scale, is_relu, has_shift;
    float scale_common, shift;
    const float *scale, *bias; /* per column, or NULL */
    int32_t zp;                /* -255 … 255 */
    uint8_t low, high;         /* as bytes of dst */
    void *dst_data;            /* of row 0, column 0 */
    ptrdiff_t dst_stride;      /* of rows, anything for a lone one; elements of a row are consecutive */
} qk_plain;

#endif
