/* What a level of the family provides. Private to kernels/convert. */
#ifndef QK_CONVERT_ROW_H
#define QK_CONVERT_ROW_H

#include "kernels/convert/convert.h"

/* NULL for a pair that the level lacks. */
#define QK_CONVERT(level) qk_convert_fn *qk_convert_of_##level(qdq_dtype from, qdq_dtype to);
#include "kernels/convert/convert.def"
#undef QK_CONVERT

#endif
