/* What a level of the family provides. Private to kernels/resize. */
#ifndef QK_RESIZE_ROW_H
#define QK_RESIZE_ROW_H

#include "kernels/resize/resize.h"

#define QK_RESIZE(level) extern const qk_resize_fns qk_resize_##level;
#include "kernels/resize/resize.def"
#undef QK_RESIZE

#endif
