/* What a level of the family provides. Private to kernels/norm. */
#ifndef QK_NORM_ROW_H
#define QK_NORM_ROW_H

#include "kernels/norm/norm.h"

#define QK_NORM(level) extern const qk_norm_fns qk_norm_##level;
#include "kernels/norm/norm.def"
#undef QK_NORM

#endif
