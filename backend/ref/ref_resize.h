/* Where a resizing op takes its elements from: for steps that walk on their own. */
#ifndef QDQI_REF_RESIZE_H
#define QDQI_REF_RESIZE_H

#include "ref/ref.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_ref_tap {
    int64_t lo, hi; /* source coordinates */
    double w;       /* of hi; lo has 1 - w */
} qdqi_ref_tap;

/* The taps of dim d of Interpolate or Resize, one for each of its dst->dims[d] coordinates, and whether it is resized at all.
 * `scales`: content of Resize's input of that name, NULL when it has none. Errors: BAD_SHAPE for shapes or scales that the op refuses. */
qdq_status qdqi_ref_resize_taps(const qdqi_op *op, const qdq_tensor_desc *src, const qdq_tensor_desc *dst,
                                const float *scales, int32_t d, qdqi_ref_tap *taps, bool *moves_out);

#ifdef __cplusplus
}
#endif
#endif
