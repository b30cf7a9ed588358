/* Chains of two-operand arithmetic between tensors that may be quantized, in one pass:
 *
 *     v = DQ(src);   v = op_1(v, DQ(operand_1));   …   v = op_k(v, DQ(operand_k));   dst = Q(v)
 *
 * Every step is an f32 operation rounded once, as the same ops node by node: DQ of u8 and s8 is (q - zp) * scale, of f32 the
 * value, of bf16 and s32 the value in f32. Q to u8 and s8 is that of kernels/quant/quant.h (true division, half to even, NaN
 * gives the zero point), to f32 the value. Relu is a maximum with 0, Clip a maximum and a minimum with scalars.
 *
 * All run over n contiguous elements; an operand with `step` 0 is one element for all. Broadcasts of rows or columns are one
 * call per row. `dst` may be one of the sources, if its elements are as wide as theirs. Nothing is read or written outside of
 * the elements. Every level of instruction set gives the same bytes. Single-threaded: split the elements. */
#ifndef QK_BINARY_H
#define QK_BINARY_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* v op w. Maximum and minimum give w when either is a NaN. */
typedef enum qk_binary_op {
    QK_BINARY_ADD,
    QK_BINARY_SUB,     /* v - w */
    QK_BINARY_SUB_REV, /* w - v */
    QK_BINARY_MUL,
    QK_BINARY_DIV,     /* v / w */
    QK_BINARY_DIV_REV, /* w / v */
    QK_BINARY_MAX,
    QK_BINARY_MIN,
} qk_binary_op;

typedef struct qk_binary_end {
    qdq_dtype dtype; /* sources: U8 S8 F32 BF16 S32; dst: U8 S8 F32 */
    float scale;     /* U8, S8 */
    int32_t zp;      /* U8, S8 */
    int step;        /* 1, or 0 for one element; dst: 1 */
} qk_binary_end;

typedef struct qk_binary_step {
    qk_binary_op op;
    qk_binary_end operand;
} qk_binary_step;

enum { QK_BINARY_MAX_STEPS = 16 };
/* Elements for each thread that is asked: with fewer, asking costs more than it brings. */
#define QK_BINARY_GRAIN (16 * 1024)

typedef struct qk_binary {
    qk_binary_end src, dst;
    bool stream;       /* write past the caches: for results nobody reads soon (qk_isa_stream_bytes) */
    bool add_zp_first; /* Q rounds x / scale + zp (oneDNN) instead of adding zp afterwards (ONNX) */
    uint32_t n_steps;
    qk_binary_step steps[QK_BINARY_MAX_STEPS];
} qk_binary;

/* operands[k] belongs to steps[k]. */
typedef void qk_binary_fn(const qk_binary *chain, const void *src, const void *const *operands, void *dst, size_t n);

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when a type, an op or the number of
 * steps is not of the above. The scales and zero points of `chain` do not matter here: they may change between runs. */
qk_binary_fn *qk_binary_choose(const qk_binary *chain, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
