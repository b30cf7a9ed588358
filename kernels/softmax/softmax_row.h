/* What a level of the family provides. Private to kernels/softmax. */
#ifndef QK_SOFTMAX_ROW_H
#define QK_SOFTMAX_ROW_H

#include "kernels/softmax/softmax.h"

#define QK_SOFTMAX(level) extern const qk_softmax_fns qk_softmax_##level;
#include "kernels/softmax/softmax.def"
#undef QK_SOFTMAX

#endif
