/* dq - data movement - q with one and the same quantization on both sides: the integers move, nothing is computed.
 * Also dq… - Concat - q, whose inputs may each need requantizing (recipe_glue.c). */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

/* The op between Dequantizes and the Quantize, or QDQI_NONE. */
static uint32_t middle_op(const qdqi_lower *lw, const qdqi_part *part) {
    uint32_t found = QDQI_NONE;
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const uint32_t flags = lw->graph->ops[part->ops[i]].schema->flags;
        if ((flags & (QDQI_F_DEQUANTIZE | QDQI_F_QUANTIZE)) != 0) continue;
        if (found != QDQI_NONE) return QDQI_NONE;
        found = part->ops[i];
    }
    return found;
}

static qdq_status move_integers(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    const uint32_t mid = middle_op(lw, part);
    if (mid == QDQI_NONE) return qdqi_refuse(err, "move", "not_one_op_between");
    const qdqi_op *op = &g->ops[mid];
    const qdqi_op *q_op = &g->ops[part->ops[part->n_ops - 1]];
    if ((op->schema->flags & (QDQI_F_MOVE | QDQI_F_SHAPE_ONLY)) == 0 || op->n_out != 1 ||
        (q_op->schema->flags & QDQI_F_QUANTIZE) == 0)
        return qdqi_refuse(err, "move", "not_data_movement");
    qdqi_qparams q, dq;
    QDQI_TRY(qdqi_qparams_of(lw, q_op, &q, err));
    const uint32_t n_data = op->kind == QDQI_OP_CONCAT ? op->n_in : 1;
    uint32_t *in = qdqi_arena_alloc(&lw->arena, op->n_in, sizeof *in);
    if (in == NULL) return QDQI_NO_MEMORY(err);
    memcpy(in, op->in, op->n_in * sizeof *in);
    for (uint32_t i = 0; i < n_data; i++) {
        const uint32_t producer = g->values[op->in[i]].producer;
        if (producer == QDQI_NONE || (g->ops[producer].schema->flags & QDQI_F_DEQUANTIZE) == 0)
            return qdqi_refuse(err, "move", "operand_not_dequantized");
        QDQI_TRY(qdqi_qparams_of(lw, &g->ops[producer], &dq, err));
        if (!qdqi_qparams_equal(&dq, &q)) return qdqi_refuse(err, "move", "quantizations_differ");
        in[i] = g->ops[producer].in[0];
    }
    if (op->kind == QDQI_OP_PAD) return qdqi_refuse(err, "move", "pad_value"); /* 0.0 is the zero point, not 0 */
    return qdqi_lower_move(lw, op, in, q_op->out, err);
}

qdq_status qdqi_recipe_move(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_status st = move_integers(lw, part, err);
    return st == QDQ_E_UNSUPPORTED ? qdqi_recipe_glue(lw, part, err) : st;
}

qdq_status qdqi_recipe_concat(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_status st = move_integers(lw, part, err);
    return st == QDQ_E_UNSUPPORTED ? qdqi_recipe_glue(lw, part, err) : st;
}
