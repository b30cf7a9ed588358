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
