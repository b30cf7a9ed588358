/* What a level of the family provides. Private to kernels/reduce. */
#ifndef QK_REDUCE_ROW_H
#define QK_REDUCE_ROW_H

#include "kernels/reduce/reduce.h"

#define QK_REDUCE(level) extern const qk_reduce_fns qk_reduce_##level;
#include "kernels/reduce/reduce.def"
#undef QK_REDUCE

#endif
