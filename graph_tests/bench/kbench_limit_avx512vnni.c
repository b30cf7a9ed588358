#include "kbench_multiply.h"

#include <immintrin.h>

KBENCH_MULTIPLY(kbench_int8_avx512vnni, __m512i, _mm512_setzero_si512(), "v", 64, _mm512_dpbusd_epi32)
