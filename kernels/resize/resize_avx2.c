#define QK_RESIZE_LEVEL qk_resize_avx2
#include "kernels/resize/resize_body.h"
