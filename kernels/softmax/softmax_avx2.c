#define QK_SOFTMAX_LEVEL qk_softmax_avx2
#include "kernels/softmax/softmax_body.h"
