#include "kbench_multiply.h"

#include <immintrin.h>

#define VEC          __m256i
#define LINE_VECS    2
#define LOAD(p)      _mm256_load_si256((const __m256i *)(const void *)(p))
#define STORE(p, v)  _mm256_store_si256((__m256i *)(void *)(p), v)
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)
#define OR(a, b)     _mm256_or_si256(a, b)
#define ZERO         _mm256_setzero_si256()
#define KEEP(v)      __asm__ volatile("" : : "x"(v))
#include "kbench_stream.h"

const kbench_mix kbench_mixes_avx2[KBENCH_N_MIXES] = {KBENCH_MIXES};

/* 8-bit integers as words, which is what they need without saturation. */
#define WORDS(s, a, b)  _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#define FLOATS(s, a, b) _mm256_fmadd_ps(a, b, s)
KBENCH_MULTIPLY(kbench_int8_avx2, __m256i, _mm256_setzero_si256(), "x", 16, WORDS)
KBENCH_MULTIPLY(kbench_f32_avx2, __m256, _mm256_setzero_ps(), "x", 8, FLOATS)
