/* What a level of the family provides. Private to kernels/quant. */
#ifndef QK_QUANT_ROW_H
#define QK_QUANT_ROW_H

#include "kernels/quant/quant.h"

/* Types with kernels of their own. */
enum { QK_F32, QK_BF16, QK_F16, QK_N_REAL };
enum { QK_U8, QK_S8, QK_U16, QK_S16, QK_S32, QK_U4, QK_S4, QK_N_STORED };

/* n_runs runs of len elements, one behind the other, run i with scales[i], zps[i] (NULL: 0). Whoever asks to `stream` also sees to
 * the fence. 4-bit elements begin with a whole byte, and len is even when there is more than one run; behind an odd last one the
 * upper nibble is 0. */
typedef void qk_quantize_runs(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,
                              const int32_t *zps, qk_quant_order order, bool stream);
typedef void qk_dequantize_runs(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,
                                const int32_t *zps, bool stream);
/* rows x cols elements, row after row, column c with scales[c], zps[c] (NULL: 0). */
typedef void qk_quantize_cols(const float *src, void *dst, size_t rows, size_t cols, const float *scales,
                              const int32_t *zps, qk_quant_order order, bool stream);
typedef void qk_dequantize_cols(const void *src, float *dst, size_t rows, size_t cols, const float *scales,
                                const int32_t *zps, bool stream);

typedef struct qk_quant_row {
    /* NULL: by way of f32 and bytes. f32 with the types of a byte and more is always there. */
    qk_quantize_runs *q_runs[QK_N_REAL][QK_N_STORED];
    qk_dequantize_runs *dq_runs[QK_N_REAL][QK_N_STORED];
    qk_quantize_cols *q_cols[QK_U4]; /* f32, and the types before 4-bit */
    qk_dequantize_cols *dq_cols[QK_U4];
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

/* Bits of a stored type, and whether it has a sign. */
static inline size_t qk_stored_bits(int type) {
    return type == QK_S32 ? 32 : type == QK_U16 || type == QK_S16 ? 16 : type == QK_U4 || type == QK_S4 ? 4 : 8;
}
static inline bool qk_stored_signed(int type) {
    return type == QK_S8 || type == QK_S16 || type == QK_S32 || type == QK_S4;
}

#endif
