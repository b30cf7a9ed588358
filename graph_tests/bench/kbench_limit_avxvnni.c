#include "kbench_multiply.h"

#include <immintrin.h>

KBENCH_MULTIPLY(kbench_int8_avxvnni, __m256i, _mm256_setzero_si256(), "x", 32, _mm256_dpbusd_avx_epi32)
