/* Quantize and dequantize, between f32 bf16 f16 and u8 s8 u16 s16 s32 u4 s4.
 *
 *   quantize    QK_ROUND_THEN_ADD   q = sat(rint(x / s) + zp)            ONNX
 *               QK_ADD_THEN_ROUND   q = sat(rint(x / s + zp))            oneDNN
 *   dequantize                      x = (q - zp) * s
 *
 * in f32: x is widened to f32; the division is a true division, rounded once; rint rounds half to even; `+ zp` of the second
 * form is an f32 addition, that of the first an exact one; q - zp is exact, then rounded to f32, then multiplied; results
 * of type bf16 and f16 are rounded from the f32 product. sat clamps to the range of the type (to s32: exactly, 2147483647
 * included). A NaN quotient (x NaN, 0/0, inf/inf) gives the zero point, clamped; infinities saturate; scales may be negative,
 * zero, denormal or infinite. Every level of instruction set gives the same bytes, at every offset and length.
 *
 * Tensors are dense. Which scale an element has is said by a qk_quant_map: the tensor is `planes` x rows x cols, and
 *
 *     param(plane, r, c) = plane * plane_step + (r / row_group) * ceil(cols / col_group) + c / col_group
 *
 *     per tensor                rows 1    row_group 1   cols 1      col_group 1   plane_step 0
 *     axis of C, `inner` after  rows C    row_group 1   cols inner  col_group inner  plane_step 0
 *     last axis of C            rows 1    row_group 1   cols C      col_group 1   plane_step 0
 *     groups (gr, gc) of the    rows R    row_group gr  cols C      col_group gc
 *     last two dims R, C                                            plane_step ceil(R/gr) * ceil(C/gc)
 *
 * Threads: split the elements [0, n) as you like, at multiples of QK_QUANT_SPLIT; a 4-bit tensor packs two to a byte, the
 * first in the low nibble, and an odd end has a zero nibble above it. Nothing is read or written outside of [first, first + n). */
#ifndef QK_QUANT_H
#define QK_QUANT_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_quant_order { QK_ROUND_THEN_ADD, QK_ADD_THEN_ROUND } qk_quant_order;

typedef struct qk_quant_map {
    size_t rows, cols, row_group, col_group, plane_step; /* the first four at least 1 */
} qk_quant_map;

static const qk_quant_map QK_QUANT_PER_TENSOR = {1, 1, 1, 1, 0};
/* Elements; whole cache lines of every type. */
#define QK_QUANT_SPLIT 128
/* Elements for each thread that is asked: with fewer, asking costs more than it brings. */
#define QK_QUANT_GRAIN (48 * 1024)

struct qk_quant_row;

typedef struct qk_quant {
    qdq_dtype real;   /* F32 BF16 F16 */
    qdq_dtype stored; /* U8 S8 U16 S16 S32 U4 S4 */
    qk_quant_order order;
    qk_quant_map map;
    bool stream;                    /* write past the caches: for results nobody reads soon (qk_isa_stream_bytes) */
    const struct qk_quant_row *row; /* chosen by qk_quant_init */
} qk_quant;

/* Choose the kernels for the other fields, under the present cap. False: the types or the map are not of the above. */
bool qk_quant_init(qk_quant *quant);
/* The level that was chosen. */
qk_isa qk_quant_isa(const qk_quant *quant);

/* Elements first … first+n-1. `src` and `dst` are the beginnings of the tensors (element 0); first is a multiple of
 * QK_QUANT_SPLIT. `zps` may be NULL: all zero. Scales and zero points are as many as the map reaches. */
void qk_quantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                 size_t first, size_t n);
void qk_dequantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                   size_t first, size_t n);

/* A per-tensor quantization of bytes: dtype U8 or S8. */
typedef struct qk_x8 {
    qdq_dtype dtype;
    float scale;
    int32_t zp;
} qk_x8;

/* The table of dequantize -> map -> quantize for the 256 bytes, for qk_lut_x8: table[b] = Q_dst(map(DQ_src(b))), every step
 * in f32 as above. `map` changes 256 values in place; NULL: identity, a requantization. */
void qk_quant_table(const qk_x8 *src, void (*map)(float *values, size_t n, void *context), void *context,
                    const qk_x8 *dst, qk_quant_order order, uint8_t table[256]);

/* Smallest and largest of n values, NaNs left out: {+inf, -inf} when there are none. -0 counts as 0. */
void qk_minmax_f32(const float *src, size_t n, float *min_out, float *max_out);

#ifdef __cplusplus
}
#endif
#endif
