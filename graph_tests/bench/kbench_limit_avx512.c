#include "kbench_multiply.h"

#include <immintrin.h>

#define VEC          __m512i
#define LINE_VECS    1
#define LOAD(p)      _mm512_load_si512(p)
#define STORE(p, v)  _mm512_store_si512(p, v)
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)
#define OR(a, b)     _mm512_or_si512(a, b)
#define ZERO         _mm512_setzero_si512()
#define KEEP(v)      __asm__ volatile("" : : "v"(v))
#include "kbench_stream.h"

const kbench_mix kbench_mixes_avx512[KBENCH_N_MIXES] = {KBENCH_MIXES};

/* 8-bit integers as words, which is what they need without saturation. */
#define WORDS(s, a, b)  _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#define FLOATS(s, a, b) _mm512_fmadd_ps(a, b, s)
KBENCH_MULTIPLY(kbench_int8_avx512, __m512i, _mm512_setzero_si512(), "v", 32, WORDS)
KBENCH_MULTIPLY(kbench_f32_avx512, __m512, _mm512_setzero_ps(), "v", 16, FLOATS)
