/* Who makes a primitive: oneDNN (onednn/onednn.h) or our own kernels (native/native.h). Recipes ask here and not there.
 *
 * qdqi_make tries the candidates in order; the first that accepts wins, and what refused is noted (qdqi_refuse). oneDNN is
 * first, unless
 *   - it is not there, or may not generate code (QDQ_JIT=off);
 *   - choice.def says that our kernel was measured to be faster in the shape's class, on this level of instruction set;
 *   - it would be wrong (saturating int8 products, shapes on which 3.7.2 fails), or only has its plain reference loops.
 * The class and the figure become part of the step's note. */
#ifndef QDQI_CHOICE_H
#define QDQI_CHOICE_H

#include "onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether some provider computes with tensors of this float type. */
bool qdqi_make_has_dtype(qdq_dtype dtype);

qdq_status qdqi_make(const qdqi_request *request, qdqi_dnnl_prim **out, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
