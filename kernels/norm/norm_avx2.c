#define QK_NORM_LEVEL qk_norm_avx2
#include "kernels/norm/norm_body.h"
