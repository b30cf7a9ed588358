/* A fused partition seen as: operands (each perhaps dequantized) -> root op -> chain of elementwise ops -> quantize. */
#ifndef QDQI_CHAIN_H
#define QDQI_CHAIN_H

#include "lower/qparams.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QDQI_CHAIN_MAX = 40, QDQI_CHAIN_OPERANDS = 5, QDQI_CHAIN_MOVES = 4 };

typedef struct qdqi_operand {
    uint32_t value;   /* what the compute op reads (the float) */
    uint32_t dq_op;   /* the absorbed Dequantize behind it, or QDQI_NONE; reshapes and casts may stand between */
    uint32_t q_value; /* when dq_op: its integers, in the shape of `value` */
    qdqi_qparams q;   /* valid when dq_op */
} qdqi_operand;

typedef struct qdqi_link {
    uint32_t op;
    bool binary;
    bool swapped;       /* the chain value is input 1 */
    bool self;          /* binary whose other operand is an earlier value of this chain */
    qdqi_operand other; /* binary */
    /* the eltwise algorithm of a unary op */
    qdqi_dnnl_alg alg;
    float alpha, beta;
    bool has_alg;
    /* BatchNormInference of constants: one factor and one shift per index of `axis`; NULL otherwise */
    const float *factors, *shifts;
    int32_t axis;
} qdqi_link;

typedef struct qdqi_chain {
    uint32_t root;
    uint32_t n_operands;
    qdqi_operand operands[QDQI_CHAIN_OPERANDS]; /* root's inputs, in port order */
    uint32_t scaled; /* of sums of integers: the Multiply by scales that became those of the operands; or QDQI_NONE */
    uint32_t n_links;
    qdqi_link links[QDQI_CHAIN_MAX];
    uint32_t q_op; /* the closing Quantize, or QDQI_NONE */
    qdqi_qparams q;
    bool
        truncated; /* ops follow the links that no primitive takes (and q_op, if any, is one of them): done one by one */
    uint32_t out_value; /* what root, links and Quantize make: the partition's output … */
    /* … unless reshapes, transpositions and MaxPools stand before the Quantize: then out_value is the integers before them (a
     * value of lowering's own), and qdqi_chain_finish moves and pools those */
    uint32_t n_moves;
    uint32_t moves[QDQI_CHAIN_MOVES];
    uint32_t final_value; /* the partition's output */
} qdqi_chain;

/* Errors: UNSUPPORTED when the ops are no such chain. */
qdq_status qdqi_chain_build(qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain, qdq_error *err);

/* A value that the partition reads, and the Dequantize of the partition that is behind it. */
qdq_status qdqi_chain_operand(qdqi_lower *lw, const qdqi_part *part, uint32_t value, qdqi_operand *operand,
                              qdq_error *err);

/* Whatever is left after out_value, or after the last link if that is how far it came, up to the partition's output. */
qdq_status qdqi_chain_finish(qdqi_lower *lw, const qdqi_chain *chain, qdq_error *err);

/* MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv: integer ops, whose operands and Quantize are read from their inputs. */
bool qdqi_is_integer_root(const qdqi_op *op);
qdq_status qdqi_chain_integer_root(qdqi_lower *lw, qdqi_chain *chain, qdq_error *err);
/* A first link that multiplies MatMulInteger's or ConvInteger's sums by a product of scales is taken as the operands' scales. */
void qdqi_chain_take_scales(qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain);

/* Idioms (idioms.c): whether the ops that end in `last` are one elementwise function of `x`; the ops in no order, and the link that
 * they mean. */
enum { QDQI_IDIOM_OPS = 12 };
bool qdqi_idiom_read(qdqi_lower *lw, uint32_t x, const qdqi_op *last, uint32_t ops[QDQI_IDIOM_OPS], uint32_t *n_out,
                     qdqi_link *link);

/* The operand as float: its Dequantize is lowered as a step of its own (or folded when constant). */
qdq_status qdqi_operand_as_float(qdqi_lower *lw, const qdqi_operand *operand, qdq_error *err);

/* oneDNN algorithm of a unary op kind; false when it has none. */
bool qdqi_unary_alg(const qdqi_op *op, qdqi_dnnl_alg *alg, float *alpha, float *beta);
bool qdqi_binary_alg(const qdqi_op *op, qdqi_dnnl_alg *alg);
/* BiasAdd and PReLU in NCX put the bias on dim 1: the descriptor of it as a binary operand, of dims 1xCx1x1. Others stay as they are. */
void qdqi_bias_add_desc(const qdqi_op *op, const qdq_tensor_desc *dst, qdq_tensor_desc *desc);

/* Post-ops being collected for a primitive whose dst has `dst` dims (in md order; perm maps md dims to tensor dims). */
typedef struct qdqi_posts {
    qdqi_dnnl_attr *attr;
    qdqi_args *args;
    const qdq_tensor_desc *full; /* logical dims with the strides that the primitive writes */
    const qdq_tensor_desc *dst;  /* the same pointer, or [rows, N] when a matmul sees its leading dims as one */
    const int32_t *perm;         /* md dim -> tensor dim; NULL: identity */
} qdqi_posts;
/* Append links[0…] as far as they fit; n_done_out says how many were taken (the rest is lowered after, op by op). */
qdq_status qdqi_posts_links(qdqi_lower *lw, qdqi_posts *posts, const qdqi_chain *chain, uint32_t *n_done_out,
                            qdq_error *err);
/* Append the closing Quantize: as dst scale and zero point attributes (per tensor, when the primitive has them), or as a
 * division and an addition among the post-ops. */
qdq_status qdqi_posts_quantize(qdqi_lower *lw, qdqi_posts *posts, const qdqi_qparams *q, bool as_attributes,
                               qdq_error *err);

/* One binary post-op whose operand is `value` as stored / n constants along `axis` of the result (n 1: one for all). */
qdq_status qdqi_posts_operand(qdqi_lower *lw, qdqi_posts *posts, qdqi_dnnl_alg alg, uint32_t value, qdq_error *err);
qdq_status qdqi_posts_channel(qdqi_lower *lw, qdqi_posts *posts, qdqi_dnnl_alg alg, const float *values, int64_t n,
                              int32_t axis, qdq_error *err);

/* Of a StaticTranspose, perm[i]: the input's dim that becomes dim i. False when an axis is out of range. */
bool qdqi_transpose_perm(const qdqi_op *op, int32_t ndims, int32_t *perm);
/* An op that only moves data, on the values `in`/`out` in place of its own (their integer forms, say). UNSUPPORTED when there is no
 * faster way than the reference. */
qdq_status qdqi_lower_move(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, const uint32_t *out, qdq_error *err);

/* The output `port` of a Split alone, of the integers `in`. */
qdq_status qdqi_lower_split_piece(qdqi_lower *lw, const qdqi_op *op, uint32_t port, uint32_t in, uint32_t out,
                                  qdq_error *err);
/* An op that moves elements as they are: Interpolate and Resize when they take the nearest. */
bool qdqi_moves_elements(const qdqi_op *op);
/* Any movement of one source whose other inputs are constant, as a lookup by index; `fill` is one element of what Pad puts
 * around (NULL: zeros). UNSUPPORTED when where an element comes from is no sum over the dims. */
qdq_status qdqi_lower_index(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, const void *fill,
                            qdq_error *err);
/* Gather, its indices known at run time alone. */
qdq_status qdqi_lower_gather(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, qdq_error *err);

/* The value that links[n_done - 1] makes (the root's when n_done is 0). */
/* qdqi_chain_result: the value of root, all links and the Quantize: what the primitive writes when everything fits. */
uint32_t qdqi_chain_result(const qdqi_lower *lw, const qdqi_chain *chain);
uint32_t qdqi_chain_value_after(const qdqi_lower *lw, const qdqi_chain *chain, uint32_t n_done);

#ifdef __cplusplus
}
#endif
#endif
