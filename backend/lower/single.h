/* Lowering of single ops: private to lower/. */
#ifndef QDQI_SINGLE_H
#define QDQI_SINGLE_H

#include "lower/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* u8 or s8: what int8 primitives multiply. */
static inline bool qdqi_is_x8(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8;
}
/* A float type that primitives compute with. */
static inline bool qdqi_is_dnnl_float(qdq_dtype dtype) {
    return qdqi_make_has_dtype(dtype);
}

/* The first candidate for `op`, then the reference. */
qdq_status qdqi_lower_single(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);
/* Quantize/Dequantize-like ops on the native kernels (bit-exact to their spec). */
qdq_status qdqi_lower_quant(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);

/* Elementwise ops on native loops: choices, comparisons, casts, and what primitives lack. A bare UNSUPPORTED for other kinds. */
qdq_status qdqi_lower_elementwise(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);
qdq_status qdqi_lower_cast(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);
/* QuantizeV2, and TFDequantize where it is no affine quantization. */
qdq_status qdqi_lower_tf_quant(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);
/* DynamicQuantizeLinear: range, parameters and quantization in one step. */
qdq_status qdqi_lower_dynamic_quantize(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);
/* links[first…) one after the other (an idiom as the op that it means), then what the chain does not hold. */
qdq_status qdqi_lower_links(qdqi_lower *lw, const qdqi_chain *chain, uint32_t first, qdq_error *err);
/* dq - elementwise or movement - q on the native kernels. */
qdq_status qdqi_recipe_glue(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* Softmax, normalisations and reductions on native primitives. A bare UNSUPPORTED for other roots. */
qdq_status qdqi_recipe_lines(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* A SoftMax spelled out as small ops. */
qdq_status qdqi_recipe_spelled_softmax(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* Linear Interpolate and Resize on a native primitive. A bare UNSUPPORTED for other roots. */
qdq_status qdqi_recipe_resize(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* An operand as its integers (8 bits, one scale and zero point: added to attr->src and args), else as floats; the value to read. */
qdq_status qdqi_read_integers(qdqi_lower *lw, const qdqi_operand *operand, qdqi_dnnl_attr *attr, qdqi_args *args,
                              uint32_t *value_out, qdq_error *err);
/* The algorithm of a Reduce op; false for other kinds. */
bool qdqi_reduction_alg(const qdqi_op *op, qdqi_dnnl_alg *alg);
/* The dims of a reduction's source with the reduced ones as 1, row-major. */
qdq_status qdqi_reduce_kept(qdqi_lower *lw, const qdqi_op *op, const qdq_tensor_desc *src, qdq_tensor_desc *kept,
                            qdq_error *err);
/* Select on other values than the op's: their integers. */
qdq_status qdqi_lower_select(qdqi_lower *lw, const uint32_t in[3], uint32_t out, qdq_error *err);
/* MaxPool of integers of one quantization. */
qdq_status qdqi_lower_pool_integers(qdqi_lower *lw, const qdqi_op *op, uint32_t in, uint32_t out, const qdqi_qparams *q,
                                    qdq_error *err);
/* Chains of binary ops on kernels/binary. */
qdq_status qdqi_recipe_binary(qdqi_lower *lw, const qdqi_part *part, qdq_error *err);
/* A part of a buffer: the box `part` that starts `offset` elements into it. */
qdq_status qdqi_lower_view(qdqi_lower *lw, qdqi_buf whole, const qdq_tensor_desc *part, int64_t offset,
                           qdqi_buf *view_out, qdq_error *err);
/* dst[i] = table[src[i]] over n bytes. */
qdq_status qdqi_lower_table(qdqi_lower *lw, const uint8_t table[256], qdqi_buf src, qdqi_buf dst, size_t n_bytes,
                            qdq_error *err);
/* The table of: dequantize by `from`, elementwise ops[0…n) starting from `value` with constant one-element operands, quantize by
 * `to`. Exactly the node-by-node result. UNSUPPORTED unless both are constant, per tensor, u8 or s8. */
qdq_status qdqi_chain_table(qdqi_lower *lw, const qdqi_qparams *from, const uint32_t *ops, uint32_t n_ops,
                            uint32_t value, const qdqi_qparams *to, uint8_t table[256], qdq_error *err);
/* Strides of N, C, spatial… memory order N, spatial…, C for a tensor whose dim perm[i] is the i-th of N, C, spatial…. */
void qdqi_set_channels_last_by(qdq_tensor_desc *desc, const int32_t *perm);

/* Read src, claim dst, append. Owns `prim`, on failure too. */
qdq_status qdqi_finish_unary_prim(qdqi_lower *lw, qdqi_dnnl_prim *prim, qdqi_args *args, uint32_t src,
                                  const qdq_tensor_desc *src_layout, uint32_t dst, const qdq_tensor_desc *dst_layout,
                                  qdq_error *err);

/* A point to come back to when a candidate refuses half-way. */
typedef struct qdqi_lower_point {
    qdqi_plan_mark plan;
    uint32_t n_journal;
    uint32_t n_alone; /* of the notes */
} qdqi_lower_point;
qdqi_lower_point qdqi_lower_here(const qdqi_lower *lw);
void qdqi_lower_undo(qdqi_lower *lw, qdqi_lower_point point);

/* A candidate returned the refusal `st`; `n_before` is qdqi_lower_n_refusals from before. A provider refuses by status only: it is
 * given a word here. */
uint32_t qdqi_lower_n_refusals(const qdqi_lower *lw);
void qdqi_lower_refused(qdqi_lower *lw, const char *who, qdq_status st, uint32_t n_before);

#ifdef __cplusplus
}
#endif
#endif
