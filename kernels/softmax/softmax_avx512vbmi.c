#define QK_SOFTMAX_LEVEL qk_softmax_avx512vbmi
#include "kernels/softmax/softmax_body.h"
