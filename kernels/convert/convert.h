/* Rows of elements from and to f32.
 *
 *     to f32     F16, BF16: exact.  U8, S8: exact.  S32: nearest
 *     from f32   F16, BF16: half to even, NaN stays NaN.  U8, S8: half to even, saturated, NaN gives 0
 *
 * n contiguous elements, nothing outside of them is touched; src and dst do not overlap. Every level gives the same bytes.
 * Single-threaded: split the elements. */
#ifndef QK_CONVERT_H
#define QK_CONVERT_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void qk_convert_fn(const void *src, void *dst, size_t n);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL for a pair that is not of the above. F32
 * to F32 copies. */
qk_convert_fn *qk_convert_choose(qdq_dtype from, qdq_dtype to, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
