#define QK_NORM_LEVEL qk_norm_avx512
#include "kernels/norm/norm_body.h"
