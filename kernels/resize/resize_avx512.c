#define QK_RESIZE_LEVEL qk_resize_avx512
#include "kernels/resize/resize_body.h"
