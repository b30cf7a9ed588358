#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/avx512_x8.h"

#define VEC           __m512
#define LANES         ((size_t)16)
#define VLOAD(p)      _mm512_loadu_ps(p)
#define VSTORE(p, v)  _mm512_storeu_ps(p, v)
#define VDOT(s, x, w) _mm512_fmadd_ps(x, w, s)
#include "kernels/conv/conv_dw_body.h"

QK_INLINE __m512 values_at(const uint8_t *line, size_t channel, size_t left, qdq_dtype type) {
    const __mmask16 lanes = qk512_lanes(left);
    if (type == QDQ_DTYPE_F32) return _mm512_maskz_loadu_ps(lanes, line + channel * 4);
    const __m256i half = _mm256_maskz_loadu_epi16(lanes, line + channel * 2);
    return type == QDQ_DTYPE_F16 ? _mm512_cvtph_ps(half)
                                 : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES)
        for (size_t i = 0; i < n; i++)
            VSTORE(out + i * LANES, values_at(l->line[0] + i * l->step[0], c, l->n_channels - c, l->type));
}

const qk_dw_row qk_dw_float_row_avx512 = {QK_ISA_avx512, 1, LANES, weave, sum_outputs};
