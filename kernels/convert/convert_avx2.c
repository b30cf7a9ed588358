#define QK_CONVERT_LEVEL(name) name##avx2
#include "kernels/convert/convert_body.h"
