/* What a level of the family provides. Private to kernels/quant. */
#ifndef QK_QUANT_ROW_H
#define QK_QUANT_ROW_H

#include "kernels/quant/quant.h"

/* Stored types with kernels of their own. */
enum { QK_U8, QK_S8, QK_U16, QK_S16, QK_S32, QK_N_STORED };

/* n contiguous elements with one scale. Whoever asks to `stream` also sees to the fence. */
typedef void qk_quantize_run(const float *src, void *dst, size_t n, float scale, int32_t zp, qk_quant_order order,
                             bool stream);
typedef void qk_dequantize_run(const void *src, float *dst, size_t n, float scale, int32_t zp, bool stream);
/* rows x cols elements, row after row `stride` elements apart, column c with scales[c], zps[c] (NULL: 0). */
typedef void qk_quantize_cols(const float *src, void *dst, size_t rows, size_t cols, size_t stride, const float *scales,
                              const int32_t *zps, qk_quant_order order);
typedef void qk_dequantize_cols(const void *src, float *dst, size_t rows, size_t cols, size_t stride,
                                const float *scales, const int32_t *zps, bool stream);

typedef struct qk_quant_row {
    qk_quantize_run *q_run[QK_N_STORED];
    qk_quantize_cols *q_cols[QK_N_STORED];
    qk_dequantize_run *dq_run[QK_N_STORED];
    qk_dequantize_cols *dq_cols[QK_N_STORED];
    void (*f32_of_f16)(const uint16_t *src, float *dst, size_t n);
    void (*f16_of_f32)(const float *src, uint16_t *dst, size_t n);
    void (*f32_of_bf16)(const uint16_t *src, float *dst, size_t n);
    void (*bf16_of_f32)(const float *src, uint16_t *dst, size_t n);
    /* 4-bit values, two to a byte, from and to bytes; to 4 bits they saturate, and an odd end has a zero above it. */
    void (*unpack4)(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed);
    void (*pack4)(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed);
    void (*minmax)(const float *src, size_t n, float *min_out, float *max_out);
    qk_isa isa;
} qk_quant_row;

#define QK_QUANT(level) extern const qk_quant_row qk_quant_##level;
#include "kernels/quant/quant.def"
#undef QK_QUANT

#endif
