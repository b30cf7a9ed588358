/* Ops that are integer by themselves, seen as the chain that they mean:
 *
 *   MatMulInteger, ConvInteger     a - a_zp, b - b_zp -> s32            scales of 1, no Quantize
 *   QLinearMatMul, QLinearConv     DQ, DQ, (bias) -> op -> Q            the QDQ form, parameters from inputs */
#include "base/dtype.h"
#include "lower/chain.h"

#include <string.h>

static const float one = 1.0f;

/* Scale and zero point inputs of one tensor; port QDQI_NONE: absent. */
static qdq_status params(qdqi_lower *lw, const qdqi_op *op, uint32_t tensor, uint32_t scale, uint32_t zp, int32_t axis,
                         qdqi_qparams *q, qdq_error *err) {
    *q = (qdqi_qparams){.stored = qdqi_lower_val(lw, tensor)->desc.dtype,
                        .real = QDQ_DTYPE_F32,
                        .gran = QDQI_GRAN_TENSOR,
                        .add_zp_after_rounding = true,
                        .scales = &one,
                        .n = 1,
                        .scale_value = QDQI_NONE,
                        .zp_value = QDQI_NONE};
    QDQI_TRY(qdqi_qparams_inputs(lw, op, scale, zp, q, err));
    if (q->n != 1) {
        q->gran = QDQI_GRAN_AXIS;
        q->axis = axis;
    }
    return QDQ_OK;
}

static qdqi_operand integer_operand(uint32_t root, uint32_t value) {
    return (qdqi_operand){.value = value, .dq_op = root, .q_value = value};
}

bool qdqi_is_integer_root(const qdqi_op *op) {
    return op->kind == QDQI_OP_MATMULINTEGER || op->kind == QDQI_OP_CONVINTEGER || op->kind == QDQI_OP_QLINEARCONV ||
           op->kind == QDQI_OP_QLINEARMATMUL;
}

/* The scales of an s32 bias are those of the accumulator. */
static qdq_status bias_operand(qdqi_lower *lw, const qdqi_op *op, uint32_t root, qdqi_chain *chain, qdq_error *err) {
    const qdqi_qparams *a = &chain->operands[0].q, *w = &chain->operands[1].q;
    if (op->n_in < 9 || op->in[8] == QDQI_NONE) return QDQ_OK;
    if (a->scales == NULL || w->scales == NULL) return qdqi_refuse(err, op->schema->name, "runtime_scales");
    float *scales = qdqi_arena_alloc(&lw->arena, (size_t)w->n, sizeof *scales);
    if (scales == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < w->n; i++)
        scales[i] = (float)((double)a->scales[0] * (double)w->scales[i]);
    chain->operands[2] = integer_operand(root, op->in[8]);
    chain->operands[2].q = (qdqi_qparams){.stored = QDQ_DTYPE_S32,
                                          .real = QDQ_DTYPE_F32,
                                          .gran = w->n == 1 ? QDQI_GRAN_TENSOR : QDQI_GRAN_AXIS,
                                          .scales = scales,
                                          .n = w->n,
                                          .scale_value = QDQI_NONE,
                                          .zp_value = QDQI_NONE};
    chain->n_operands = 3;
    return QDQ_OK;
}

qdq_status qdqi_chain_integer_root(qdqi_lower *lw, qdqi_chain *chain, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[chain->root];
    const bool conv = op->kind == QDQI_OP_CONVINTEGER || op->kind == QDQI_OP_QLINEARCONV;
    const bool qlinear = op->kind == QDQI_OP_QLINEARCONV || op->kind == QDQI_OP_QLINEARMATMUL;
    const uint32_t a = op->in[0], b = op->in[qlinear ? 3 : 1];
    const int32_t ranks[2] = {qdqi_lower_val(lw, a)->desc.ndims, qdqi_lower_val(lw, b)->desc.ndims};
    /* per-row parameters of a matrix are along M, per-column ones along N; of conv weights along the output channels */
    const int32_t a_axis = ranks[0] - 2, b_axis = conv ? 0 : ranks[1] - 1;
    if (conv && !qdqi_op_str_is(op, QDQI_A_WEIGHTS_FORMAT, "OIX"))
        return qdqi_refuse(err, op->schema->name, "weights_format");
    chain->n_operands = 2;
    chain->operands[0] = integer_operand(chain->root, a);
    chain->operands[1] = integer_operand(chain->root, b);
    if (!qlinear) {
        QDQI_TRY(params(lw, op, a, QDQI_NONE, 2, a_axis, &chain->operands[0].q, err));
        return params(lw, op, b, QDQI_NONE, 3, b_axis, &chain->operands[1].q, err);
    }
    QDQI_TRY(params(lw, op, a, 1, 2, a_axis, &chain->operands[0].q, err));
    QDQI_TRY(params(lw, op, b, 4, 5, b_axis, &chain->operands[1].q, err));
    QDQI_TRY(params(lw, op, op->out[0], 6, 7, b_axis, &chain->q, err));
    chain->q_op = chain->root;
    return bias_operand(lw, op, chain->root, chain, err);
}

/* One scale per tensor, or with `axis` not negative one per index of that axis; what zero points there are must match. */
static bool scale_by(qdqi_lower *lw, uint32_t value, int32_t axis, int64_t n_axis, qdqi_qparams *q) {
    const qdq_tensor_desc *desc = &qdqi_lower_val(lw, value)->desc;
    const int64_t n = qdqi_n_elems(desc);
    if (desc->dtype != QDQ_DTYPE_F32 || (n != 1 && (axis < 0 || n != n_axis || desc->ndims != 1))) return false;
    if (n != q->n && q->has_zp) return false;
    if (n != 1) {
        q->gran = QDQI_GRAN_AXIS;
        q->axis = axis;
    }
    q->n = n;
    q->scales = NULL;
    q->scale_value = value;
    return true;
}

void qdqi_chain_take_scales(qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain) {
    const qdq_graph *g = lw->graph;
    const qdqi_op *root = &g->ops[chain->root];
    if ((root->kind != QDQI_OP_MATMULINTEGER && root->kind != QDQI_OP_CONVINTEGER) || chain->n_links == 0) return;
    const qdqi_link *link = &chain->links[0];
    if (!link->binary || link->self || link->alg != QDQI_DNNL_BIN_MUL || link->other.dq_op != QDQI_NONE) return;
    const uint32_t producer = g->values[link->other.value].producer;
    if (producer == QDQI_NONE || g->ops[producer].kind != QDQI_OP_MULTIPLY) return;
    bool inside = false;
    for (uint32_t i = 0; i < part->n_ops; i++)
        inside = inside || part->ops[i] == producer;
    if (!inside) return;
    const qdqi_op *product = &g->ops[producer];
    const bool swapped = qdqi_n_elems(&qdqi_lower_val(lw, product->in[1])->desc) == 1 &&
                         qdqi_n_elems(&qdqi_lower_val(lw, product->in[0])->desc) != 1;
    qdqi_qparams a = chain->operands[0].q, b = chain->operands[1].q;
    const qdq_tensor_desc *weights = &qdqi_lower_val(lw, chain->operands[1].value)->desc;
    /* a row of scales lies along the columns of a product; behind a convolution it would be along its width */
    const int32_t axis = root->kind == QDQI_OP_MATMULINTEGER && weights->ndims == 2 ? 1 : -1;
    if (!scale_by(lw, product->in[swapped ? 1 : 0], -1, 0, &a) ||
        !scale_by(lw, product->in[swapped ? 0 : 1], axis, axis < 0 ? 0 : weights->dims[axis], &b))
        return;
    chain->operands[0].q = a;
    chain->operands[1].q = b;
    chain->scaled = link->op;
    chain->n_links--;
    memmove(&chain->links[0], &chain->links[1], chain->n_links * sizeof chain->links[0]);
}
