#define QK_CONVERT_LEVEL(name) name##avx512bf16
#include "kernels/convert/convert_body.h"
