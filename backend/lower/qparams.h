/* The one place that knows what a quantization is: every Q/DQ kind of every spec becomes a qdqi_qparams, and all algebra on
 * scales and zero points is here. */
#ifndef QDQI_QPARAMS_H
#define QDQI_QPARAMS_H

#include "lower/lower.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qdqi_granularity {
    QDQI_GRAN_TENSOR,
    QDQI_GRAN_AXIS, /* one value per index of `axis` */
    QDQI_GRAN_GROUP /* a block of group[d] elements per dim shares a value (ONNX tails included) */
} qdqi_granularity;

/* real = (q - zp) * scale;  q = saturate(round(real / scale) (+) zp) with the order of the op's own spec. */
typedef struct qdqi_qparams {
    qdq_dtype stored; /* integer (or f8) side */
    qdq_dtype real;   /* float side */
    qdqi_granularity gran;
    int32_t axis; /* of the tensor, in [0, ndims) */
    int64_t group[QDQ_MAX_NDIMS];
    bool add_zp_after_rounding; /* ONNX; false: oneDNN's order */
    bool half_away;             /* TensorFlow: ties away from zero; what rounds to even is one off exactly there */
    /* constant parameters: arrays in the lowering arena (n = 1 for TENSOR); NULL when they are runtime tensors */
    const float *scales;
    const int32_t *zps;
    int64_t n;                      /* values per tensor: 1, dim, or blocks */
    uint32_t scale_value, zp_value; /* runtime tensors; QDQI_NONE when constant (or no zero point) */
    bool has_zp;                    /* false when absent or constant zero everywhere */
} qdqi_qparams;

/* Read the parameters of a Quantize/Dequantize-like op whose tensor has the descriptor `tensor` (concrete dims).
 * Errors: UNSUPPORTED for a kind that is no affine quantization; NO_MEMORY. */
qdq_status qdqi_qparams_of(qdqi_lower *lw, const qdqi_op *op, qdqi_qparams *out, qdq_error *err);

/* Scale and zero point from input ports of `op` (QDQI_NONE: the one that `q` has / none), granularity left alone. */
qdq_status qdqi_qparams_inputs(qdqi_lower *lw, const qdqi_op *op, uint32_t scale_port, uint32_t zp_port,
                               qdqi_qparams *q, qdq_error *err);

/* Both constant, per tensor, and equal (dtype, scale bit for bit, zero point). */
bool qdqi_qparams_equal(const qdqi_qparams *a, const qdqi_qparams *b);
/* Constant, per tensor. */
bool qdqi_qparams_is_const_tensor(const qdqi_qparams *q);
int32_t qdqi_qparams_zp0(const qdqi_qparams *q); /* of a constant per-tensor one; 0 without zero point */
/* The stored values that a Quantize with one positive scale gives behind ReLU and Clip. It keeps order, so that their bounds may be taken
 * after it: a value of the range without them is clamped to low … high. */
typedef struct qdqi_stored_range {
    int32_t low, high;
    int32_t least, most; /* of the data type */
    float scale;
    int32_t zp;
    bool add_zp_after_rounding;
} qdqi_stored_range;
void qdqi_stored_range_init(qdqi_stored_range *range, qdq_dtype stored, float scale, int32_t zp,
                            bool add_zp_after_rounding);
/* max(x, bound) and min(x, bound) on what the range has so far; `bound` is real, and no NaN. */
void qdqi_stored_range_max(qdqi_stored_range *range, float bound);
void qdqi_stored_range_min(qdqi_stored_range *range, float bound);
/* Every scale is a known constant and positive. */
bool qdqi_qparams_positive(const qdqi_qparams *q);
/* A sum of k products (a - zp)(w - zp) of these u8 or s8 fits in the 32 bits in which every int8 primitive wraps. */
bool qdqi_sum_fits_s32(const qdqi_qparams *a, const qdqi_qparams *w, int64_t k);

/* Buffers for the runtime arguments: f32 scales, s32 zero points (plus `zp_add`, e.g. -128 after a sign flip). */
qdq_status qdqi_qparams_scale_buf(qdqi_lower *lw, const qdqi_qparams *q, qdqi_buf *buf_out, qdq_error *err);
qdq_status qdqi_qparams_zp_buf(qdqi_lower *lw, const qdqi_qparams *q, int32_t zp_add, qdqi_buf *buf_out,
                               qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
