#define QK_REDUCE_LEVEL qk_reduce_avx2
#include "kernels/reduce/reduce_body.h"
