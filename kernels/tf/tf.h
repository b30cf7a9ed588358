/* TensorFlow's QuantizeV2 and Dequantize where they are no affine quantization of kernels/quant: the arithmetic of the portable CPU
 * kernels, every operation in f32 and rounded once, in their order. With x a real and q a stored value:
 *
 *   quantize    x = 0 when it is a NaN
 *               QK_TF_OFFSET    t = (clamp(x, low, high) - low) * factor;  q = unsigned: trunc(t + 0.5)   signed: round(t - half)
 *               QK_TF_STEPS     q = clamp(round(x * factor) - base, lowest of the type, top)
 *               QK_TF_SCALED    q = round(clamp(x, low, high) * factor), to even if even
 *               then saturated; round is half away from zero
 *   dequantize  x = (f32(q) + half) * factor + base
 *
 * which is MIN_COMBINED, MIN_FIRST, SCALED (but SCALED of Dequantize, f32(q) * factor: that keeps a negative zero). Elements lie side
 * by side. Nothing is read or written outside of them. Every level of instruction set gives the same bytes. Single-threaded:
 * split the elements. */
#ifndef QK_TF_H
#define QK_TF_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements for each thread that is asked: with fewer, asking costs more than it brings. */
#define QK_TF_GRAIN (32 * 1024)

typedef enum qk_tf_form { QK_TF_OFFSET, QK_TF_STEPS, QK_TF_SCALED } qk_tf_form;

typedef struct qk_tf {
    qdq_dtype stored; /* U8 S8 U16 S16 S32 */
    qk_tf_form form;  /* quantize only */
    bool even;        /* SCALED */
    float low, high, factor, base, half, top;
} qk_tf;

struct qk_tf_row;
/* The kernels under the present cap, NULL for a type not of the above; the level through isa_out, which may be NULL. */
const struct qk_tf_row *qk_tf_choose(qdq_dtype stored, qk_isa *isa_out);

void qk_tf_quantize(const struct qk_tf_row *row, const qk_tf *tf, const float *src, void *dst, size_t n);
void qk_tf_dequantize(const struct qk_tf_row *row, const qk_tf *tf, const void *src, float *dst, size_t n);

#ifdef __cplusplus
}
#endif
#endif
