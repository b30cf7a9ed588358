/* Glue between integer tensors on the library's own kernels: dq - ops - q without a float tensor in between.
 *
 *   dq - unary* - q, dq - q          one 256-entry table, exactly the node-by-node result
 *   dq… - Concat - q                 per input: a table when it differs, and a copy into its place */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

typedef struct glue {
    const qdqi_op *dq, *q;
    qdqi_qparams from, to;
    const uint32_t *mid; /* ops between them */
    uint32_t n_mid;
} glue;

static bool is_dq(const qdqi_op *op) {
    return (op->schema->flags & QDQI_F_DEQUANTIZE) != 0;
}
static bool is_q(const qdqi_op *op) {
    return (op->schema->flags & QDQI_F_QUANTIZE) != 0;
}

/* One Dequantize that depends on the input, a straight run of ops, one Quantize. Constant operands' Dequantizes are folded. */
static qdq_status straight(qdqi_lower *lw, const qdqi_part *part, glue *g, qdq_error *err) {
    const qdq_graph *graph = lw->graph;
    uint32_t *mid = qdqi_arena_alloc(&lw->arena, part->n_ops, sizeof *mid);
    if (mid == NULL) return QDQI_NO_MEMORY(err);
    *g = (glue){.mid = mid};
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const qdqi_op *op = &graph->ops[part->ops[i]];
        if (is_dq(op)) {
            if (qdqi_lower_val(lw, op->in[0])->data != NULL) {
                QDQI_TRY(qdqi_lower_op(lw, part->ops[i], err));
            } else if (g->dq != NULL) {
                return qdqi_refuse(err, "glue", "several_inputs");
            } else {
                g->dq = op;
            }
        } else if (is_q(op)) {
            if (i + 1 != part->n_ops) return qdqi_refuse(err, "glue", "quantize_inside");
            g->q = op;
        } else {
            mid[g->n_mid++] = part->ops[i];
        }
    }
    if (g->dq == NULL || g->q == NULL) return qdqi_refuse(err, "glue", "not_between_integers");
    /* a line, or a small graph of one input: x * sigmoid(x) */
    for (uint32_t i = 0; i < g->n_mid; i++) {
        const qdqi_op *op = &graph->ops[mid[i]];
        bool feeds = false;
        for (uint32_t k = 0; k < op->n_in; k++) {
            feeds = feeds || op->in[k] == g->dq->out[0];
            for (uint32_t j = 0; j < i; j++)
                feeds = feeds || op->in[k] == graph->ops[mid[j]].out[0];
        }
        if (!feeds) return qdqi_refuse(err, "glue", "not_a_chain");
    }
    if (g->q->in[0] != (g->n_mid == 0 ? g->dq->out[0] : graph->ops[mid[g->n_mid - 1]].out[0]))
        return qdqi_refuse(err, "glue", "not_a_chain");
    QDQI_TRY(qdqi_qparams_of(lw, g->dq, &g->from, err));
    return qdqi_qparams_of(lw, g->q, &g->to, err);
}

static qdq_status by_table(qdqi_lower *lw, const glue *g, qdq_error *err) {
    for (uint32_t i = 0; i < g->n_mid; i++) {
        const qdqi_op *op = &lw->graph->ops[g->mid[i]];
        if ((op->schema->flags & (QDQI_F_UNARY | QDQI_F_BINARY)) == 0)
            return qdqi_refuse(err, "glue", "not_elementwise");
    }
    uint8_t table[256];
    const uint32_t in = g->dq->in[0], out = g->q->out[0];
    if (!qdqi_same_dims(&qdqi_lower_val(lw, in)->desc, &qdqi_lower_val(lw, out)->desc))
        return qdqi_refuse(err, "glue", "shape_changes");
    QDQI_TRY(qdqi_chain_table(lw, &g->from, g->mid, g->n_mid, g->dq->out[0], &g->to, table, err));
    qdq_tensor_desc src = qdqi_lower_val(lw, in)->desc, dst = qdqi_lower_val(lw, out)->desc;
    if (!qdqi_is_packed(&src)) qdqi_set_dense(&src);
    memcpy(dst.strides, src.strides, sizeof dst.strides);
    qdqi_buf from, into;
    QDQI_TRY(qdqi_lower_read_as(lw, in, &src, &from, err));
    QDQI_TRY(qdqi_lower_write(lw, out, &dst, &into, err));
    QDQI_TRY(qdqi_lower_table(lw, table, from, into, (size_t)qdqi_n_elems(&src), err));
    return qdqi_lower_written(lw, out, err);
}

/* A value's integers requantized into a temporary of the same layout. */
static qdq_status requantized(qdqi_lower *lw, uint32_t value, const qdqi_qparams *from, const qdqi_qparams *to,
                              qdqi_buf *buf_out, qdq_tensor_desc *desc_out, qdq_error *err) {
    uint8_t table[256];
    qdq_tensor_desc src = qdqi_lower_val(lw, value)->desc;
    if (!qdqi_is_packed(&src)) qdqi_set_dense(&src);
    qdqi_buf in;
    QDQI_TRY(qdqi_lower_read_as(lw, value, &src, &in, err));
    *desc_out = src;
    *buf_out = in;
    if (qdqi_qparams_equal(from, to)) return QDQ_OK;
    QDQI_TRY(qdqi_chain_table(lw, from, NULL, 0, QDQI_NONE, to, table, err));
    desc_out->dtype = to->stored;
    QDQI_TRY(qdqi_lower_temp(lw, desc_out, buf_out, err));
    return qdqi_lower_table(lw, table, in, *buf_out, (size_t)qdqi_n_elems(&src), err);
}

static qdq_status concat(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    const qdqi_op *op = &g->ops[part->root], *q_op = &g->ops[part->ops[part->n_ops - 1]];
    qdqi_qparams to;
    if (op->kind != QDQI_OP_CONCAT || !is_q(q_op) || q_op->in[0] != op->out[0])
        return qdqi_refuse(err, "glue", "not_concat");
    QDQI_TRY(qdqi_qparams_of(lw, q_op, &to, err));
    if (qdq_dtype_bits(to.stored) != 8) return qdqi_refuse(err, "glue", "dst_dtype");
    qdq_tensor_desc layout;
    qdqi_lower_out_layout(lw, q_op->out[0], &layout);
    int32_t axis;
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), layout.ndims, &axis)) return qdqi_refuse(err, "concat", "axis");
    const qdqi_lval *lv = qdqi_lower_val(lw, q_op->out[0]);
    bool last = !lv->is_port_out || lv->port_any;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const uint32_t producer = g->values[op->in[i]].producer;
        if (producer == QDQI_NONE || !is_dq(&g->ops[producer]))
            return qdqi_refuse(err, "concat", "operand_not_dequantized");
        qdq_tensor_desc probe = qdqi_lower_val(lw, g->ops[producer].in[0])->desc;
        const qdq_tensor_desc was = probe;
        qdqi_set_channels_last(&probe);
        last = last && !qdqi_is_dense(&was) && qdqi_same_strides(&probe, &was);
    }
    if (last) qdqi_set_channels_last(&layout);
    qdqi_buf into;
    QDQI_TRY(qdqi_lower_write(lw, q_op->out[0], &layout, &into, err));
    int64_t at = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const qdqi_op *dq = &g->ops[g->values[op->in[i]].producer];
        qdqi_qparams from;
        qdq_tensor_desc desc, box = layout;
        qdqi_buf piece, view;
        const int64_t n = qdqi_lower_val(lw, dq->in[0])->desc.dims[axis];
        if (qdqi_n_elems(&qdqi_lower_val(lw, dq->in[0])->desc) != 0) {
            QDQI_TRY(qdqi_qparams_of(lw, dq, &from, err));
            QDQI_TRY(requantized(lw, dq->in[0], &from, &to, &piece, &desc, err));
            memcpy(box.dims, desc.dims, sizeof box.dims);
            QDQI_TRY(qdqi_lower_view(lw, into, &box, at * layout.strides[axis], &view, err));
            QDQI_TRY(qdqi_lower_convert(lw, piece, &desc, view, &box, err));
        }
        at += n;
    }
    return qdqi_lower_written(lw, q_op->out[0], err);
}

qdq_status qdqi_recipe_glue(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    glue g;
    if (lw->graph->ops[part->root].kind == QDQI_OP_CONCAT) return concat(lw, part, err);
    QDQI_TRY(straight(lw, part, &g, err));
    return by_table(lw, &g, err);
}

/* dq, dq - Select - q: both sides in the result's quantization, then bytes are chosen. */
qdq_status qdqi_recipe_select(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    const qdqi_op *op = &g->ops[part->root], *q = &g->ops[part->ops[part->n_ops - 1]];
    qdqi_qparams to;
    uint32_t in[3] = {op->in[0], QDQI_NONE, QDQI_NONE};
    if (!is_q(q) || q->in[0] != op->out[0]) return qdqi_refuse(err, "select", "not_between_integers");
    QDQI_TRY(qdqi_qparams_of(lw, q, &to, err));
    if (!qdqi_is_x8(to.stored)) return qdqi_refuse(err, "select", "dst_dtype");
    for (uint32_t i = 1; i < 3; i++) {
        const uint32_t producer = g->values[op->in[i]].producer;
        if (producer == QDQI_NONE || !is_dq(&g->ops[producer]))
            return qdqi_refuse(err, "select", "operand_not_dequantized");
        qdqi_qparams from;
        qdqi_buf buf;
        qdq_tensor_desc desc;
        QDQI_TRY(qdqi_qparams_of(lw, &g->ops[producer], &from, err));
        QDQI_TRY(qdqi_lower_make(lw, g->ops[producer].in[0], err));
        QDQI_TRY(requantized(lw, g->ops[producer].in[0], &from, &to, &buf, &desc, err));
        QDQI_TRY(qdqi_lower_new_value(lw, &desc, &in[i], err));
        qdqi_lower_val(lw, in[i])->buf = buf;
    }
    return qdqi_lower_select(lw, in, q->out[0], err);
}
