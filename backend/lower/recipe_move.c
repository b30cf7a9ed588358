/* dq - data movement - q: the integers move, nothing is computed where both sides have one quantization; else a table of 256
 * bytes is applied where there are fewer elements. What Pad puts around is quantized once, at compile time.
 * Also dq… - Concat - q, whose inputs may each need requantizing (recipe_glue.c). */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

enum { MAX_MOVES = 16 };

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
    return qdqi_lower_move(lw, op, in, q_op->out, err);
}

/* ---- dq - move… - q, one source ----------------------------------------------------------------------------------- */

typedef struct run {
    const qdqi_op *dq, *q;
    const qdqi_op *moves[MAX_MOVES];
    uint32_t port; /* of the first move's outputs the one that is wanted; all others have one */
    uint32_t n;
    qdqi_qparams from, to;
} run;

static qdq_status read_run(qdqi_lower *lw, const qdqi_part *part, run *r, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    const qdqi_op *op = &g->ops[part->ops[part->n_ops - 1]];
    if ((op->schema->flags & QDQI_F_QUANTIZE) == 0) return qdqi_refuse(err, "move", "not_between_integers");
    r->q = op;
    const qdqi_op *backward[MAX_MOVES];
    for (;;) { /* by input 0, which is the data of all of them */
        const qdqi_value *value = &g->values[op->in[0]];
        if (value->producer == QDQI_NONE) return qdqi_refuse(err, "move", "operand_not_dequantized");
        op = &g->ops[value->producer];
        if ((op->schema->flags & QDQI_F_DEQUANTIZE) != 0) break;
        if (!qdqi_moves_elements(op) || (op->n_out != 1 && op->kind != QDQI_OP_SPLIT) || op->kind == QDQI_OP_CONCAT ||
            r->n == MAX_MOVES)
            return qdqi_refuse(err, "move", "not_data_movement");
        backward[r->n++] = op;
    }
    r->dq = op;
    r->port = r->n == 0 ? 0 : g->values[r->n == 1 ? r->q->in[0] : backward[r->n - 2]->in[0]].producer_port;
    for (uint32_t i = 0; i < r->n; i++)
        r->moves[i] = backward[r->n - 1 - i];
    QDQI_TRY(qdqi_qparams_of(lw, r->q, &r->to, err));
    return qdqi_qparams_of(lw, r->dq, &r->from, err);
}

static bool pads_with_value(const qdqi_op *op) {
    return op->kind == QDQI_OP_PAD && qdqi_op_str_is(op, QDQI_A_MODE, "constant");
}

/* What Pad puts around, as the Quantize makes it. */
static qdq_status pad_integers(qdqi_lower *lw, const qdqi_op *op, const run *r, const uint32_t *in, uint32_t out,
                               qdq_error *err) {
    float value = 0.0f;
    uint8_t table[256], fill;
    if (op->n_in > 2 && op->in[2] != QDQI_NONE) {
        QDQI_TRY(qdqi_lower_make(lw, op->in[2], err));
        const qdqi_lval *lv = qdqi_lower_val(lw, op->in[2]);
        if (lv->data == NULL || qdqi_n_elems(&lv->desc) > 1) return qdqi_refuse(err, "pad", "pad_value");
        if (qdqi_n_elems(&lv->desc) == 1) value = qdqi_load_f32(lv->data, lv->desc.dtype, 0);
    }
    /* the table of a quantization whose integer 1 means `value` */
    qdqi_qparams one = r->to;
    one.stored = QDQ_DTYPE_U8;
    one.scales = &value;
    one.zps = NULL;
    one.has_zp = false;
    QDQI_TRY(qdqi_chain_table(lw, &one, NULL, 0, QDQI_NONE, &r->to, table, err));
    fill = table[1];
    return qdqi_lower_index(lw, op, in, out, &fill, err);
}

/* The run on integers from the value `at` on, into `out`. */
static qdq_status move_all(qdqi_lower *lw, const run *r, uint32_t at, uint32_t out, qdq_dtype stored, qdq_error *err) {
    for (uint32_t k = 0; k < r->n; k++) {
        const qdqi_op *op = r->moves[k];
        uint32_t to = out;
        uint32_t *in = qdqi_arena_alloc(&lw->arena, op->n_in, sizeof *in);
        if (in == NULL) return QDQI_NO_MEMORY(err);
        memcpy(in, op->in, op->n_in * sizeof *in);
        in[0] = at;
        if (k + 1 < r->n) {
            qdq_tensor_desc desc = qdqi_lower_val(lw, op->out[0])->desc;
            desc.dtype = stored;
            qdqi_set_dense(&desc);
            QDQI_TRY(qdqi_lower_new_value(lw, &desc, &to, err));
        }
        if (pads_with_value(op))
            QDQI_TRY(pad_integers(lw, op, r, in, to, err));
        else if (op->kind == QDQI_OP_SPLIT)
            QDQI_TRY(qdqi_lower_split_piece(lw, op, k == 0 ? r->port : 0, at, to, err));
        else
            QDQI_TRY(qdqi_lower_move(lw, op, in, &to, err));
        at = to;
    }
    return QDQ_OK;
}

/* `value` by the table into `out`, in the same layout. */
static qdq_status requantize(qdqi_lower *lw, const run *r, uint32_t value, uint32_t out, qdq_error *err) {
    uint8_t table[256];
    qdqi_buf from, into;
    QDQI_TRY(qdqi_chain_table(lw, &r->from, NULL, 0, QDQI_NONE, &r->to, table, err));
    qdq_tensor_desc src = qdqi_lower_val(lw, value)->desc;
    if (!qdqi_is_packed(&src)) qdqi_set_dense(&src);
    QDQI_TRY(qdqi_lower_read_as(lw, value, &src, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &src, &into, err));
    QDQI_TRY(qdqi_lower_table(lw, table, from, into, (size_t)qdqi_n_elems(&src), err));
    return qdqi_lower_written(lw, out, err);
}

static qdq_status move_run(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    run r = {0};
    QDQI_TRY(read_run(lw, part, &r, err));
    const uint32_t in = r.dq->in[0], out = r.q->out[0];
    if (r.n == 0) return qdqi_refuse(err, "move", "not_one_op_between");
    QDQI_TRY(qdqi_lower_make(lw, in, err));
    bool pads = false;
    for (uint32_t k = 0; k < r.n; k++)
        pads = pads || pads_with_value(r.moves[k]);
    if (qdqi_qparams_equal(&r.from, &r.to)) return move_all(lw, &r, in, out, r.to.stored, err);
    if (!qdqi_is_x8(r.from.stored) || !qdqi_is_x8(r.to.stored))
        return qdqi_refuse(err, "move", "not_per_tensor_constant_x8");
    /* where there are fewer elements; before anything is padded */
    qdq_tensor_desc desc = qdqi_lower_val(lw, in)->desc;
    uint32_t own;
    if (pads || qdqi_n_elems(&desc) <= qdqi_n_elems(&qdqi_lower_val(lw, out)->desc)) {
        desc.dtype = r.to.stored;
        QDQI_TRY(qdqi_lower_new_value(lw, &desc, &own, err));
        QDQI_TRY(requantize(lw, &r, in, own, err));
        return move_all(lw, &r, own, out, r.to.stored, err);
    }
    desc = qdqi_lower_val(lw, out)->desc;
    desc.dtype = r.from.stored;
    qdqi_set_dense(&desc);
    QDQI_TRY(qdqi_lower_new_value(lw, &desc, &own, err));
    QDQI_TRY(move_all(lw, &r, in, own, r.from.stored, err));
    return requantize(lw, &r, own, out, err);
}

qdq_status qdqi_recipe_move(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdqi_lower_point here = qdqi_lower_here(lw);
    const qdq_status st = move_run(lw, part, err);
    if (st != QDQ_E_UNSUPPORTED) return st;
    qdqi_lower_undo(lw, here);
    return qdqi_recipe_glue(lw, part, err);
}

qdq_status qdqi_recipe_concat(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_status st = move_integers(lw, part, err);
    return st == QDQ_E_UNSUPPORTED ? qdqi_recipe_glue(lw, part, err) : st;
}
