/* Choices and masks: rows of n elements, each operand contiguous (`step` 1) or one element for all (`step` 0).
 *
 *   select    dst = cond != 0 ? x : y      elements of 1, 2, 4 or 8 bytes, moved unchanged; cond is a byte each
 *   compare   dst = x op y ? 1 : 0         f32 to bytes; false where either is a NaN
 *   prelu     dst = x < 0 ? x * slope : x  f32
 *
 * dst may be x or y (the same address). Nothing outside of the elements is touched. Every level gives the same bytes. A call whose dst
 * is much (half of qk_isa_stream_bytes) may write past the caches.
 * Single-threaded: split the elements. */
#ifndef QK_SELECT_H
#define QK_SELECT_H

#include "kernels/isa/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_compare_op { QK_COMPARE_GE, QK_COMPARE_GT, QK_COMPARE_LE, QK_COMPARE_LT, QK_COMPARE_EQ } qk_compare_op;

typedef void qk_select_fn(const uint8_t *cond, int cond_step, const void *x, int x_step, const void *y, int y_step,
                          void *dst, size_t n);
typedef void qk_compare_fn(const float *x, int x_step, const float *y, int y_step, uint8_t *dst, size_t n);
typedef void qk_prelu_fn(const float *x, const float *slope, int slope_step, float *dst, size_t n);

/* The best under the present cap. NULL when elem_bytes or op is none of the above. */
qk_select_fn *qk_select_choose(size_t elem_bytes, qk_isa *isa_out);
qk_compare_fn *qk_compare_choose(qk_compare_op op, qk_isa *isa_out);
qk_prelu_fn *qk_prelu_choose(qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
