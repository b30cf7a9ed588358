#define QK_CONVERT_LEVEL(name) name##avx512
#include "kernels/convert/convert_body.h"
