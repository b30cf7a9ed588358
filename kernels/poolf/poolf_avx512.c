#include "kernels/poolf/poolf_body.h"

QK_POOLF_TYPES(POOLF_FUNCTIONS, avx512)
