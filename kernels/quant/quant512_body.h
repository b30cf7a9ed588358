/* An AVX-512 level of the family: QK_QUANT512_ROW(level). Its files differ in their flags only. */
#include "kernels/quant/quant512_dequantize_body.h"
#include "kernels/quant/quant512_quantize_body.h"

/* ---- narrow floats ---- */

static void f32_of_f16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        _mm512_mask_storeu_ps(dst + i, lanes, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, src + i)));
    }
}

static void f16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m256i h =
            _mm512_cvtps_ph(_mm512_maskz_loadu_ps(lanes, src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(dst + i, lanes, h);
    }
}

static void f32_of_bf16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i w = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, src + i));
        _mm512_mask_storeu_epi32(dst + i, lanes, _mm512_slli_epi32(w, 16));
    }
}

static void bf16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 f = _mm512_maskz_loadu_ps(lanes, src + i);
        __m512i u = _mm512_castps_si512(f), high = _mm512_srli_epi32(u, 16);
        __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
        r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), high, _mm512_set1_epi32(0x40));
        _mm512_mask_cvtepi32_storeu_epi16(dst + i, lanes, r);
    }
}

static void minmax(const float *src, size_t n, float *min_out, float *max_out) {
    __m512 lo[2], hi[2];
    for (int k = 0; k < 2; k++) {
        lo[k] = _mm512_set1_ps(INFINITY);
        hi[k] = _mm512_set1_ps(-INFINITY);
    }
    size_t i = 0;
    /* The second operand is the result when the first is a NaN. */
    for (; n - i >= 32; i += 32)
        for (size_t k = 0; k < 2; k++) {
            __m512 x = _mm512_loadu_ps(src + i + 16 * k);
            lo[k] = _mm512_min_ps(x, lo[k]);
            hi[k] = _mm512_max_ps(x, hi[k]);
        }
    for (; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 x = _mm512_maskz_loadu_ps(lanes, src + i);
        lo[0] = _mm512_mask_min_ps(lo[0], lanes, x, lo[0]);
        hi[0] = _mm512_mask_max_ps(hi[0], lanes, x, hi[0]);
        if (n - i < 16) break;
    }
    *min_out = _mm512_reduce_min_ps(_mm512_min_ps(lo[0], lo[1])) + 0.0f;
    *max_out = _mm512_reduce_max_ps(_mm512_max_ps(hi[0], hi[1])) + 0.0f;
}

QK_QUANT_F32_TYPES
QK_QUANT_DIRECT_TYPES

#define QK_QUANT512_ROW(level)                                                                                         \
    const qk_quant_row qk_quant_##level = {                                                                            \
        .q_runs = QK_QUANT_ALL_RUNS(q_runs),                                                                           \
        .q_cols = QK_QUANT_COLS(q_cols),                                                                               \
        .dq_runs = QK_QUANT_ALL_RUNS(dq_runs),                                                                         \
        .dq_cols = QK_QUANT_COLS(dq_cols),                                                                             \
        .f32_of_f16 = f32_of_f16,                                                                                      \
        .f16_of_f32 = f16_of_f32,                                                                                      \
        .f32_of_bf16 = f32_of_bf16,                                                                                    \
        .bf16_of_f32 = bf16_of_f32,                                                                                    \
        .unpack4 = unpack4,                                                                                            \
        .pack4 = pack4,                                                                                                \
        .minmax = minmax,                                                                                              \
        .isa = QK_ISA_##level,                                                                                         \
    };
