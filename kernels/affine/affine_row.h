/* The functions of the rows. Private to kernels/affine. */
#ifndef QK_AFFINE_ROW_H
#define QK_AFFINE_ROW_H

#include "kernels/affine/affine.h"

#define QK_AFFINE(level) qk_affine_fn qk_affine_##level;
#include "kernels/affine/affine.def"
#undef QK_AFFINE

#endif
