/* What every native product, pooling, normalisation and elementwise pass does with its results: a small program that takes a tile
 * of accumulators to the destination's elements. The tile lies in a cache; nothing but the destination is written.
 *
 *   integers  i = acc + add_common + col_add[c] + row_sum[r] * col_mul[c]     modulo 2^32; each may be absent
 *             i = i + bias[c]                         `bias_first`: bias is s32, the sum saturates to s32
 *             v = f32(i) * (scale_common * scale[c])  one rounding for the product of the scales, one for v; or scale[r], or none
 *   floats    v = f32(acc) * …                        the same
 *             v = v + bias[c]                                   not `bias_first`
 *             v = step_1(v) … step_k(v)                         elementwise, binary with an operand, sum with the destination
 *             v = v / dst_scale                                 `dst_quantized`; correctly rounded
 *             v = v + dst_zp                                    integers only
 *             dst = round half to even, saturate | convert
 *
 * Absent parts are not computed: an integer accumulator without scales, float bias, steps and dst_quantized stays an integer up to
 * an integer destination: i + dst_zp, saturated. Each arithmetic step is one f32 operation rounded once, so all levels of instruction set give the same bytes as long
 * as no step is transcendental (tanh elu soft_relu logistic exp log pow gelu mish swish): those are within a few units in the
 * last place of f32. A NaN becomes a value in the range of an integer destination, a NaN in a float one.
 *
 * Addresses are those of row 0, column 0 of the whole matrix; a call says which rows and columns its tile has. Strides are in elements.
 * Nothing outside of the tile's rows and columns is read or written, vectors per row and per column included. */
#ifndef QK_POST_H
#define QK_POST_H

#include "kernels/isa/isa.h"
#include "kernels/simd/plain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* v is the value, w the operand; a = alpha, b = beta. */
typedef enum qk_post_op {
    QK_POST_RELU, /* v > 0 ? v : a v; a = 0: max(v, 0) */
    QK_POST_TANH,
    QK_POST_ELU, /* v > 0 ? v : a (e^v - 1) */
    QK_POST_SQUARE,
    QK_POST_ABS,
    QK_POST_SQRT,
    QK_POST_LINEAR,    /* a v + b: two roundings */
    QK_POST_SOFT_RELU, /* log(1 + e^(a v)) / a */
    QK_POST_LOGISTIC,
    QK_POST_EXP,
    QK_POST_LOG,
    QK_POST_CLIP, /* min(max(v, a), b) */
    QK_POST_POW,  /* a v^b */
    QK_POST_GELU_ERF,
    QK_POST_GELU_TANH,
    QK_POST_ROUND, /* half to even */
    QK_POST_MISH,
    QK_POST_HARDSWISH,   /* v min(max(a v + b, 0), 1) */
    QK_POST_HARDSIGMOID, /* min(max(a v + b, 0), 1) */
    QK_POST_SWISH,       /* v / (1 + e^(-a v)) */
    QK_POST_ADD,         /* from here on: with an operand */
    QK_POST_SUB,         /* v - w */
    QK_POST_MUL,
    QK_POST_DIV, /* v / w */
    QK_POST_MAX, /* w when either is a NaN; so is MIN */
    QK_POST_MIN,
    QK_POST_GE,    /* v >= w ? 1 : 0 */
    QK_POST_PRELU, /* v > 0 ? v : v w */
    QK_POST_SUM,   /* v + a (d - b): d is the destination's element as it was, of the operand's dtype */
} qk_post_op;

enum { QK_POST_MAX_STEPS = 32, QK_POST_COLS = 64 };

typedef struct qk_post_step {
    qk_post_op op;
    float alpha, beta;
    qdq_dtype dtype; /* of the operand: F32 BF16 F16 S32 S8 U8; SUM: as wide as dst */
    bool per_col;    /* of the operand: consecutive elements along a row, or one for all columns; SUM: ignored */
} qk_post_step;

typedef enum qk_post_scale {
    QK_POST_SCALE_NONE,
    QK_POST_SCALE_COMMON,
    QK_POST_SCALE_COL,
    QK_POST_SCALE_ROW
} qk_post_scale;

/* The program: made once, read by many. Zero is the one that copies. */
typedef struct qk_post {
    qdq_dtype acc;                                 /* S32 F32, the accumulators; S8 U8 BF16 F16: passes over tensors */
    qdq_dtype dst;                                 /* F32 BF16 F16 S32 S8 U8 */
    bool has_add_common, has_col_add, has_row_sum; /* acc of integers */
    qk_post_scale scale;                           /* COMMON: scale_common alone; COL, ROW: times one of `scale` */
    qdq_dtype bias;                                /* UNDEF: none; F32 BF16 F16 S32 S8 U8 */
    bool bias_first;                               /* acc S32, bias S32 */
    bool bias_per_row;                             /* bias[r]: not with bias_first */
    bool dst_quantized;                            /* divide by dst_scale */
    bool dst_has_zp;
    uint32_t n_steps;
    qk_post_step steps[QK_POST_MAX_STEPS];
} qk_post;

typedef struct qk_post_operand {
    const void *data;
    ptrdiff_t row_stride; /* 0: the same row for all */
} qk_post_operand;

/* What changes from run to run. */
typedef struct qk_post_args {
    int32_t add_common;
    const int32_t *col_add;           /* per column */
    const int32_t *row_sum, *col_mul; /* per row, per column */
    float scale_common;               /* 1 when there is none */
    const float *scale;               /* per column or row */
    const void *bias;                 /* per column (row) */
    qk_post_operand operands[QK_POST_MAX_STEPS];
    float dst_scale;
    int32_t dst_zp;
    void *dst;
    ptrdiff_t dst_stride; /* of rows; elements of a row are consecutive */
} qk_post_args;

/* Rows row … row+n_rows-1 and columns col … col+n_cols-1. `acc` is the tile itself: its row r starts at its element r * acc_stride.
 * It may not overlap the destination, except that it may be the destination: the same elements of the same width. */
typedef void qk_post_fn(const qk_post *post, const qk_post_args *args, const void *acc, size_t acc_stride, size_t row,
                        size_t n_rows, size_t col, size_t n_cols);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when a type, an op or the number of steps
 * is not of the above. */
qk_post_fn *qk_post_choose(const qk_post *post, qk_isa *isa_out);

/* Are its steps a relu or a clip, a rounding, or both in this order, or none? Then the bounds, infinite where there are none. */
bool qk_post_bounds(const qk_post *post, float *low_out, float *high_out, bool *is_rounded_out);
/* Is this one of the common ends, which kernels make of sums in registers? */
bool qk_post_plain(const qk_post *post, const qk_post_args *args, qk_plain *out);

#ifdef __cplusplus
}
#endif
#endif
