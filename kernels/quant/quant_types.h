/* The per-type functions of a vector level, out of its generic bodies q_run, q_cols, dq_run, dq_cols: macros for
 * quant_<level>.c. */
#ifndef QK_QUANT_TYPES_H
#define QK_QUANT_TYPES_H

#include "kernels/quant/quant_row.h"

#define QK_QUANT_TYPES(form)                                                                                           \
    { form##_u8, form##_s8, form##_u16, form##_s16, form##_s32 }

#define QK_Q_TYPE(name, type)                                                                                          \
    static void q_run_##name(const float *src, void *dst, size_t n, float scale, int32_t zp, qk_quant_order order,     \
                             bool stream) {                                                                            \
        q_run(type, src, dst, n, scale, zp, order, stream);                                                            \
    }                                                                                                                  \
    static void q_cols_##name(const float *src, void *dst, size_t rows, size_t cols, size_t stride,                    \
                              const float *scales, const int32_t *zps, qk_quant_order order) {                         \
        q_cols(type, src, dst, rows, cols, stride, scales, zps, order);                                                \
    }
#define QK_DQ_TYPE(name, type)                                                                                         \
    static void dq_run_##name(const void *src, float *dst, size_t n, float scale, int32_t zp, bool stream) {           \
        dq_run(type, src, dst, n, scale, zp, stream);                                                                  \
    }                                                                                                                  \
    static void dq_cols_##name(const void *src, float *dst, size_t rows, size_t cols, size_t stride,                   \
                               const float *scales, const int32_t *zps, bool stream) {                                 \
        dq_cols(type, src, dst, rows, cols, stride, scales, zps, stream);                                              \
    }

/* 32-bit results need more than f32 to saturate: the reference does them. */
#define QK_QUANT_ALL_TYPES                                                                                             \
    QK_Q_TYPE(u8, QK_U8)                                                                                               \
    QK_Q_TYPE(s8, QK_S8)                                                                                               \
    QK_Q_TYPE(u16, QK_U16)                                                                                             \
    QK_Q_TYPE(s16, QK_S16)                                                                                             \
    QK_DQ_TYPE(u8, QK_U8)                                                                                              \
    QK_DQ_TYPE(s8, QK_S8)                                                                                              \
    QK_DQ_TYPE(u16, QK_U16)                                                                                            \
    QK_DQ_TYPE(s16, QK_S16)                                                                                            \
    QK_DQ_TYPE(s32, QK_S32)                                                                                            \
    static void q_run_s32(const float *src, void *dst, size_t n, float scale, int32_t zp, qk_quant_order order,        \
                          bool stream) {                                                                               \
        qk_quant_ref.q_run[QK_S32](src, dst, n, scale, zp, order, stream);                                             \
    }                                                                                                                  \
    static void q_cols_s32(const float *src, void *dst, size_t rows, size_t cols, size_t stride, const float *scales,  \
                           const int32_t *zps, qk_quant_order order) {                                                 \
        qk_quant_ref.q_cols[QK_S32](src, dst, rows, cols, stride, scales, zps, order);                                 \
    }

#endif
