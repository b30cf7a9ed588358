#include "kernels/simd/vec512.h"

#define QK_POINTWISE_LEVEL(name) name##avx512
#include "kernels/pointwise/pointwise_body.h"
