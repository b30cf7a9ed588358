/* The functions of the rows. Private to kernels/lut. */
#ifndef QK_LUT_ROW_H
#define QK_LUT_ROW_H

#include "kernels/lut/lut.h"

#define QK_LUT(level) qk_lut_x8_fn qk_lut_x8_##level;
#include "kernels/lut/lut.def"
#undef QK_LUT

#endif
