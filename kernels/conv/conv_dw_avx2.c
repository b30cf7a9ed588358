#include "kernels/conv/conv_dw_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <string.h>

#define VEC           __m256i
#define LANES         ((size_t)8)
#define VLOAD(p)      _mm256_loadu_si256((const __m256i *)(p))
#define VSTORE(p, v)  _mm256_storeu_si256((__m256i *)(p), v)
#define VDOT(s, x, w) _mm256_add_epi32(s, _mm256_madd_epi16(x, w))
#include "kernels/conv/conv_dw_loops.h"

QK_INLINE __m128i line_at(const qk_dw_lines *l, size_t i, size_t at, size_t left) {
    __m128i x;
    if (left >= 16) {
        x = _mm_loadu_si128((const __m128i *)(l->line[i] + at));
    } else {
        uint8_t some[16] = {0};
        memcpy(some, l->line[i] + at, left);
        x = _mm_loadu_si128((const __m128i *)some);
    }
    return _mm_xor_si128(x, _mm_set1_epi8((char)l->flip));
}

static void weave(const qk_dw_lines *l, size_t n, int32_t *out, size_t plane) {
    for (size_t c = 0; c < l->n_channels; c += 16, out += 2 * plane * LANES) {
        const size_t left = l->n_channels - c;
        for (size_t i = 0; i < n; i++) {
            const __m128i x0 = line_at(l, 0, i * l->step[0] + c, left);
            const __m128i x1 = l->n > 1 ? line_at(l, 1, i * l->step[1] + c, left) : _mm_setzero_si128();
            VSTORE(out + i * LANES, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x0, x1)));
            if (left > 8) VSTORE(out + (plane + i) * LANES, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x0, x1)));
        }
    }
}

const qk_dw_row qk_dw_row_avx2 = {QK_ISA_avx2, 2, LANES, weave, sum_outputs};
