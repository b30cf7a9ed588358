#include "kernels/simd/vec256.h"

#define QK_POINTWISE_LEVEL(name) name##avx2
#include "kernels/pointwise/pointwise_body.h"
