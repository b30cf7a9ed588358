#define QK_SOFTMAX_LEVEL qk_softmax_avx512
#include "kernels/softmax/softmax_body.h"
