/* The per-type functions of a vector level, out of its generic bodies q_runs, q_cols, dq_runs, dq_cols: macros for
 * quant_<level>.c. */
#ifndef QK_QUANT_TYPES_H
#define QK_QUANT_TYPES_H

#include "kernels/quant/quant_row.h"

/* In a switch over the type: CASE(t) with each of one byte or more as a constant. */
#define QK_WHOLE_TYPES(CASE)                                                                                           \
    CASE(QK_U8);                                                                                                       \
    CASE(QK_S8);                                                                                                       \
    CASE(QK_U16);                                                                                                      \
    CASE(QK_S16);                                                                                                      \
    CASE(QK_S32)

#define QK_Q_RUNS(name, real, type)                                                                                    \
    static void q_runs_##name(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,              \
                              const int32_t *zps, qk_quant_order order, bool stream) {                                 \
        q_runs(real, type, src, dst, n_runs, len, scales, zps, order, stream);                                         \
    }
#define QK_DQ_RUNS(name, real, type)                                                                                   \
    static void dq_runs_##name(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,             \
                               const int32_t *zps, bool stream) {                                                      \
        dq_runs(real, type, src, dst, n_runs, len, scales, zps, stream);                                               \
    }
#define QK_Q_COLS(name, type)                                                                                          \
    static void q_cols_##name(const float *src, void *dst, size_t rows, size_t cols, const float *scales,              \
                              const int32_t *zps, qk_quant_order order, bool stream) {                                 \
        q_cols(type, src, dst, rows, cols, scales, zps, order, stream);                                                \
    }
#define QK_DQ_COLS(name, type)                                                                                         \
    static void dq_cols_##name(const void *src, float *dst, size_t rows, size_t cols, const float *scales,             \
                               const int32_t *zps, bool stream) {                                                      \
        dq_cols(type, src, dst, rows, cols, scales, zps, stream);                                                      \
    }

/* What every level has. */
#define QK_QUANT_F32_TYPES                                                                                             \
    QK_Q_RUNS(f32_u8, QK_F32, QK_U8)                                                                                   \
    QK_Q_RUNS(f32_s8, QK_F32, QK_S8)                                                                                   \
    QK_Q_RUNS(f32_u16, QK_F32, QK_U16)                                                                                 \
    QK_Q_RUNS(f32_s16, QK_F32, QK_S16)                                                                                 \
    QK_Q_RUNS(f32_s32, QK_F32, QK_S32)                                                                                 \
    QK_DQ_RUNS(f32_u8, QK_F32, QK_U8)                                                                                  \
    QK_DQ_RUNS(f32_s8, QK_F32, QK_S8)                                                                                  \
    QK_DQ_RUNS(f32_u16, QK_F32, QK_U16)                                                                                \
    QK_DQ_RUNS(f32_s16, QK_F32, QK_S16)                                                                                \
    QK_DQ_RUNS(f32_s32, QK_F32, QK_S32)                                                                                \
    QK_Q_COLS(u8, QK_U8)                                                                                               \
    QK_Q_COLS(s8, QK_S8)                                                                                               \
    QK_Q_COLS(u16, QK_U16)                                                                                             \
    QK_Q_COLS(s16, QK_S16)                                                                                             \
    QK_Q_COLS(s32, QK_S32)                                                                                             \
    QK_DQ_COLS(u8, QK_U8)                                                                                              \
    QK_DQ_COLS(s8, QK_S8)                                                                                              \
    QK_DQ_COLS(u16, QK_U16)                                                                                            \
    QK_DQ_COLS(s16, QK_S16)                                                                                            \
    QK_DQ_COLS(s32, QK_S32)
/* Without a detour by f32 or by bytes. */
#define QK_QUANT_DIRECT_TYPES                                                                                          \
    QK_Q_RUNS(f32_u4, QK_F32, QK_U4)                                                                                   \
    QK_Q_RUNS(f32_s4, QK_F32, QK_S4)                                                                                   \
    QK_Q_RUNS(bf16_u8, QK_BF16, QK_U8)                                                                                 \
    QK_Q_RUNS(bf16_s8, QK_BF16, QK_S8)                                                                                 \
    QK_Q_RUNS(bf16_u4, QK_BF16, QK_U4)                                                                                 \
    QK_Q_RUNS(bf16_s4, QK_BF16, QK_S4)                                                                                 \
    QK_Q_RUNS(f16_u8, QK_F16, QK_U8)                                                                                   \
    QK_Q_RUNS(f16_s8, QK_F16, QK_S8)                                                                                   \
    QK_DQ_RUNS(f32_u4, QK_F32, QK_U4)                                                                                  \
    QK_DQ_RUNS(f32_s4, QK_F32, QK_S4)                                                                                  \
    QK_DQ_RUNS(bf16_u8, QK_BF16, QK_U8)                                                                                \
    QK_DQ_RUNS(bf16_s8, QK_BF16, QK_S8)                                                                                \
    QK_DQ_RUNS(bf16_u4, QK_BF16, QK_U4)                                                                                \
    QK_DQ_RUNS(bf16_s4, QK_BF16, QK_S4)                                                                                \
    QK_DQ_RUNS(f16_u8, QK_F16, QK_U8)                                                                                  \
    QK_DQ_RUNS(f16_s8, QK_F16, QK_S8)

/* Their places in a qk_quant_row. */
#define QK_QUANT_F32_RUNS(form)                                                                                        \
    { form##_f32_u8, form##_f32_s8, form##_f32_u16, form##_f32_s16, form##_f32_s32 }
#define QK_QUANT_ALL_RUNS(form)                                                                                        \
    {                                                                                                                  \
        {form##_f32_u8, form##_f32_s8, form##_f32_u16, form##_f32_s16, form##_f32_s32, form##_f32_u4, form##_f32_s4},  \
            {form##_bf16_u8, form##_bf16_s8, NULL, NULL, NULL, form##_bf16_u4, form##_bf16_s4}, {                      \
            form##_f16_u8, form##_f16_s8                                                                               \
        }                                                                                                              \
    }
#define QK_QUANT_COLS(form)                                                                                            \
    { form##_u8, form##_s8, form##_u16, form##_s16, form##_s32 }

#endif
