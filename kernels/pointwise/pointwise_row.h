/* What a level of the family provides. Private to kernels/pointwise. */
#ifndef QK_POINTWISE_ROW_H
#define QK_POINTWISE_ROW_H

#include "kernels/pointwise/pointwise.h"

/* NULL for a type that the level lacks. */
#define QK_POINTWISE(level) qk_pointwise_fn *qk_pointwise_of_##level(qk_pointwise_op op, qdq_dtype dtype);
#include "kernels/pointwise/pointwise.def"
#undef QK_POINTWISE

#endif
