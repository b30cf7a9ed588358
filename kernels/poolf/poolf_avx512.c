#include "kernels/poolf/poolf_body.h"

#define FUNCTIONS(id, type)                                                                                            \
    POOLF_FUNCTION(id, qk_poolf_max_##type##_avx512, true)                                                             \
    POOLF_FUNCTION(id, qk_poolf_sum_##type##_avx512, false)
QK_POOLF_TYPES(FUNCTIONS)
