#define QK_NORM_LEVEL qk_norm_avx512vnni
#include "kernels/norm/norm_body.h"
