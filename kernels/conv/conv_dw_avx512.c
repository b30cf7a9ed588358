#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/vec512.h"

#define VEC           __m512i
#define LANES         ((size_t)16)
#define VLOAD(p)      _mm512_loadu_si512(p)
#define VSTORE(p, v)  _mm512_storeu_si512(p, v)
#define VDOT(s, x, w) _mm512_add_epi32(s, _mm512_madd_epi16(x, w))
#define VECTORS       4
#define END_BYTES     1
#define END_FLOAT(s)  _mm512_cvtepi32_ps(s)
#include "kernels/conv/conv_dw_body.h"

/* Sixteen channels of two lines side by side, widened. */
QK_INLINE __m512i pair_of(__m128i x0, __m128i x1) {
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(x0, x1)), _mm_unpackhi_epi8(x0, x1), 1);
    return _mm512_cvtepu8_epi16(both);
}

QK_INLINE __m128i line_at(const qk_dw_lines *l, size_t i, size_t at, __mmask16 lanes) {
    return _mm_xor_si128(_mm_maskz_loadu_epi8(lanes, l->line[i] + at), _mm_set1_epi8((char)l->flip));
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES) {
        const size_t left = l->n_channels - c;
        const __mmask16 lanes = (__mmask16)(left >= 16 ? 0xffffu : (1u << left) - 1u);
        for (size_t i = 0; i < n; i++) {
            const __m128i x0 = line_at(l, 0, i * l->step[0] + c, lanes);
            const __m128i x1 = l->n > 1 ? line_at(l, 1, i * l->step[1] + c, lanes) : _mm_setzero_si128();
            VSTORE(out + i * LANES, pair_of(x0, x1));
        }
    }
}

static void spread(const qk_dw_lines *l, size_t in_group, size_t part, size_t n, int32_t *out, size_t plane) {
    int32_t from[LANES];
    for (size_t c = 0; c < LANES; c++)
        from[c] = (int32_t)(c / in_group * (in_group / 2) + part);
    for (size_t c = 0; c < l->n_channels; c += LANES, out += plane * LANES) {
        const __mmask16 lanes = qk512_lanes(l->n_channels - c);
        for (size_t i = 0; i < n; i++) {
            const __m256i x = _mm256_cvtepu8_epi16(line_at(l, 0, i * l->step[0] + c, lanes));
            VSTORE(out + i * LANES, _mm512_permutexvar_epi32(VLOAD(from), _mm512_castsi256_si512(x)));
        }
    }
}

const qk_dw_row qk_dw_row_avx512 = {QK_ISA_avx512, 2, LANES, weave, sum_outputs, spread, true, NULL, NULL};
