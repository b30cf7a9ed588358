#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/vec256.h"

#define VEC           __m256
#define LANES         ((size_t)8)
#define VLOAD(p)      _mm256_loadu_ps((const float *)(const void *)(p))
#define VSTORE(p, v)  _mm256_storeu_ps((float *)(void *)(p), v)
#define VDOT(s, x, w) _mm256_fmadd_ps(x, w, s)
#define VECTORS       2
#define END_BYTES     0
#define END_FLOAT(s)  (s)
#include "kernels/conv/conv_dw_body.h"
#include "kernels/conv/conv_dw_float_body.h"

QK_INLINE __m256 widen(__m128i half, qdq_dtype type) {
    return type == QDQ_DTYPE_F16 ? _mm256_cvtph_ps(half)
                                 : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

QK_INLINE __m256 values_at(const uint8_t *line, size_t channel, size_t left, qdq_dtype type) {
    if (type == QDQ_DTYPE_F32) {
        const float *p = (const float *)(const void *)line + channel;
        if (left >= LANES) return _mm256_loadu_ps(p);
        float some[8] = {0};
        memcpy(some, p, left * sizeof *p);
        return _mm256_loadu_ps(some);
    }
    const uint16_t *p = (const uint16_t *)(const void *)line + channel;
    if (left >= LANES) return widen(_mm_loadu_si128((const __m128i *)(const void *)p), type);
    uint16_t some[8] = {0};
    memcpy(some, p, left * sizeof *p);
    return widen(_mm_loadu_si128((const __m128i *)(const void *)some), type);
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES)
        for (size_t i = 0; i < n; i++)
            VSTORE(out + i * LANES, values_at(l->line[0] + i * l->step[0], c, l->n_channels - c, l->type));
}

const qk_dw_row qk_dw_float_row_avx2 = {QK_ISA_avx2, 1, LANES, weave, sum_outputs, NULL, true, any_strip, NULL};
