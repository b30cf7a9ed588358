#include "kernels/quant/quant256_dequantize_body.h"
#include "kernels/quant/quant256_quantize_body.h"

static void minmax(const float *src, size_t n, float *min_out, float *max_out) {
    __m256 lo = _mm256_set1_ps(INFINITY), hi = _mm256_set1_ps(-INFINITY);
    size_t i = 0;
    /* The second operand is the result when the first is a NaN. */
    for (; n - i >= 8; i += 8) {
        __m256 x = _mm256_loadu_ps(src + i);
        lo = _mm256_min_ps(x, lo);
        hi = _mm256_max_ps(x, hi);
    }
    float lows[9], highs[9];
    _mm256_storeu_ps(lows, lo);
    _mm256_storeu_ps(highs, hi);
    float unused;
    qk_quant_ref.minmax(src + i, n - i, &lows[8], &highs[8]);
    qk_quant_ref.minmax(lows, 9, min_out, &unused);
    qk_quant_ref.minmax(highs, 9, &unused, max_out);
}

QK_QUANT_F32_TYPES
QK_QUANT_DIRECT_TYPES

const qk_quant_row qk_quant_avx2 = {
    .q_runs = QK_QUANT_ALL_RUNS(q_runs),
    .q_cols = QK_QUANT_COLS(q_cols),
    .dq_runs = QK_QUANT_ALL_RUNS(dq_runs),
    .dq_cols = QK_QUANT_COLS(dq_cols),
    .f32_of_f16 = f32_of_f16,
    .f16_of_f32 = f16_of_f32,
    .f32_of_bf16 = f32_of_bf16,
    .bf16_of_f32 = bf16_of_f32,
    .unpack4 = unpack4,
    .pack4 = pack4,
    .minmax = minmax,
    .isa = QK_ISA_avx2,
};
