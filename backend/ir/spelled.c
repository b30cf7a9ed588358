#include "ir/spelled.h"

#include "base/dtype.h"

static const qdqi_op *producer(const qdq_graph *g, uint32_t value) {
    const uint32_t op = value == QDQI_NONE ? QDQI_NONE : g->values[value].producer;
    return op == QDQI_NONE || g->ops[op].folded ? NULL : &g->ops[op];
}

static uint32_t index_of(const qdq_graph *g, const qdqi_op *op) {
    return (uint32_t)(op - g->ops);
}

static bool is_dq(const qdqi_op *op) {
    return op != NULL && (op->schema->flags & QDQI_F_DEQUANTIZE) != 0;
}

/* Two Dequantizes of one tensor by the same parameters give the same value. */
static bool same_value(const qdq_graph *g, uint32_t a, uint32_t b) {
    if (a == b) return true;
    const qdqi_op *p = producer(g, a), *q = producer(g, b);
    if (!is_dq(p) || !is_dq(q) || p->kind != q->kind || p->n_in != q->n_in || p->n_in < 2) return false;
    for (uint32_t i = 0; i < p->n_in; i++)
        if (p->in[i] != q->in[i]) return false;
    return true;
}

/* The op that makes a value, and the Quantize and Dequantize between. */
static const qdqi_op *behind(const qdq_graph *g, uint32_t value, qdqi_spelled_stage *stage) {
    const qdqi_op *op = producer(g, value);
    *stage = (qdqi_spelled_stage){QDQI_NONE, QDQI_NONE, QDQI_NONE};
    if (is_dq(op)) {
        const qdqi_op *q = producer(g, op->in[0]);
        if (q == NULL || (q->schema->flags & QDQI_F_QUANTIZE) == 0) return NULL;
        stage->dq = index_of(g, op);
        stage->q = index_of(g, q);
        op = producer(g, q->in[0]);
    }
    if (op != NULL) stage->op = index_of(g, op);
    return op;
}

static bool is_power(const qdqi_op *op, float exponent) {
    return op->kind == QDQI_OP_POW && qdqi_op_f32(op, QDQI_A_BETA) == exponent;
}

static bool is_mean(const qdqi_op *op) {
    return op != NULL && op->kind == QDQI_OP_REDUCEMEAN && qdqi_op_bool(op, QDQI_A_KEEP_DIMS);
}

static bool is_one(const qdq_graph *g, uint32_t value) {
    const qdqi_value *v = &g->values[value];
    return v->data != NULL && v->desc.dtype == QDQ_DTYPE_F32 && v->data_bytes == sizeof(float) &&
           qdqi_load_f32(v->data, QDQ_DTYPE_F32, 0) == 1.0f;
}

/* 1 / Sqrt, Reciprocal(Sqrt), Pow(-1/2) */
static bool read_factor(const qdq_graph *g, uint32_t value, qdqi_spelled *s) {
    const qdqi_op *op = behind(g, value, &s->stages[QDQI_SPELLED_ROOT]);
    s->stages[QDQI_SPELLED_RECIPROCAL] = (qdqi_spelled_stage){QDQI_NONE, QDQI_NONE, QDQI_NONE};
    if (op == NULL) return false;
    if (is_power(op, -0.5f)) return true;
    const bool divides = op->kind == QDQI_OP_DIVIDE && is_one(g, op->in[0]);
    if (op->kind != QDQI_OP_RECIPROCAL && !divides) return false;
    s->stages[QDQI_SPELLED_RECIPROCAL] = s->stages[QDQI_SPELLED_ROOT];
    op = behind(g, op->in[divides ? 1 : 0], &s->stages[QDQI_SPELLED_ROOT]);
    return op != NULL && (op->kind == QDQI_OP_SQRT || is_power(op, 0.5f));
}

static bool read_last(const qdq_graph *g, const qdqi_op *last, qdqi_spelled *s, uint32_t *numerator) {
    s->multiplies = last->kind == QDQI_OP_MULTIPLY;
    s->swapped = false;
    if (last->kind == QDQI_OP_DIVIDE) {
        const qdqi_op *root = behind(g, last->in[1], &s->stages[QDQI_SPELLED_ROOT]);
        *numerator = last->in[0];
        s->stages[QDQI_SPELLED_RECIPROCAL] = (qdqi_spelled_stage){QDQI_NONE, QDQI_NONE, QDQI_NONE};
        return root != NULL && (root->kind == QDQI_OP_SQRT || is_power(root, 0.5f));
    }
    if (!s->multiplies) return false;
    for (uint32_t k = 0; k < 2; k++)
        if (read_factor(g, last->in[1 - k], s)) {
            *numerator = last->in[k];
            s->swapped = k == 1;
            return true;
        }
    return false;
}

static bool is_square(const qdqi_op *op) {
    return op->kind == QDQI_OP_SQUARE || is_power(op, 2.0f) || (op->kind == QDQI_OP_MULTIPLY && op->in[0] == op->in[1]);
}

bool qdqi_spelled_read(const qdq_graph *graph, const qdqi_op *last, bool centred, qdqi_spelled *out) {
    const qdq_graph *g = graph;
    qdqi_spelled_stage *stages = out->stages;
    uint32_t numerator;
    if (!read_last(g, last, out, &numerator)) return false;
    const qdqi_op *shift = behind(g, g->ops[stages[QDQI_SPELLED_ROOT].op].in[0], &stages[QDQI_SPELLED_SHIFT]);
    if (shift == NULL || shift->kind != QDQI_OP_ADD) return false;
    const qdqi_op *variance = NULL;
    for (uint32_t k = 0; k < 2 && !is_mean(variance); k++) {
        variance = behind(g, shift->in[k], &stages[QDQI_SPELLED_VARIANCE]);
        out->epsilon = shift->in[1 - k];
    }
    if (!is_mean(variance)) return false;
    const qdqi_op *square = behind(g, variance->in[0], &stages[QDQI_SPELLED_SQUARE]);
    if (square == NULL || !is_square(square) || !same_value(g, square->in[0], numerator)) return false;
    out->x = numerator;
    stages[QDQI_SPELLED_MEAN] = stages[QDQI_SPELLED_CENTRE] = (qdqi_spelled_stage){QDQI_NONE, QDQI_NONE, QDQI_NONE};
    if (!centred) return true;
    const qdqi_op *centre = behind(g, numerator, &stages[QDQI_SPELLED_CENTRE]);
    if (centre == NULL || centre->kind != QDQI_OP_SUBTRACT) return false;
    const qdqi_op *mean = behind(g, centre->in[1], &stages[QDQI_SPELLED_MEAN]);
    out->x = centre->in[0];
    return is_mean(mean) && same_value(g, mean->in[0], out->x);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* The op that makes a value, casts between float types and Clamps left out; the latter are noted. */
static const qdqi_op *beyond(const qdq_graph *g, uint32_t value, qdqi_spelled_place place, qdqi_spelled_softmax *s) {
    const qdqi_op *op = producer(g, value);
    for (int steps = 0; op != NULL && steps < 4; steps++) {
        const bool clamp = op->kind == QDQI_OP_CLAMP, cast = op->kind == QDQI_OP_CAST || op->kind == QDQI_OP_TYPECAST;
        if (!clamp && !(cast && qdqi_dtype_is_float(g->values[op->in[0]].desc.dtype) &&
                        qdqi_dtype_is_float(g->values[op->out[0]].desc.dtype)))
            return op;
        if (clamp) {
            if (s->n_clamps == QDQI_SPELLED_CLAMPS) return NULL;
            s->clamps[s->n_clamps].op = index_of(g, op);
            s->clamps[s->n_clamps++].place = place;
        }
        op = producer(g, op->in[0]);
    }
    return op;
}

static bool keeps_dims(const qdqi_op *op, qdqi_kind kind) {
    return op != NULL && op->kind == kind && qdqi_op_bool(op, QDQI_A_KEEP_DIMS);
}

/* The sum that `last` divides by, and what is divided. */
static const qdqi_op *read_sum(const qdq_graph *g, const qdqi_op *last, uint32_t *numerator, qdqi_spelled_softmax *s) {
    if (last->kind == QDQI_OP_DIVIDE) {
        *numerator = last->in[0];
        return beyond(g, last->in[1], QDQI_SPELLED_SUM, s);
    }
    for (uint32_t k = 0; k < 2 && last->kind == QDQI_OP_MULTIPLY; k++) {
        s->n_clamps = 0;
        const qdqi_op *op = beyond(g, last->in[1 - k], QDQI_SPELLED_PART, s);
        if (op == NULL) continue;
        const bool divides = op->kind == QDQI_OP_DIVIDE && is_one(g, op->in[0]);
        *numerator = last->in[k];
        if (divides || op->kind == QDQI_OP_RECIPROCAL) return beyond(g, op->in[divides ? 1 : 0], QDQI_SPELLED_SUM, s);
    }
    return NULL;
}

bool qdqi_spelled_softmax_read(const qdq_graph *graph, const qdqi_op *last, qdqi_spelled_softmax *out) {
    const qdq_graph *g = graph;
    uint32_t numerator;
    out->n_clamps = 0;
    const qdqi_op *sum = read_sum(g, last, &numerator, out);
    if (!keeps_dims(sum, QDQI_OP_REDUCESUM)) return false;
    const qdqi_op *power = beyond(g, numerator, QDQI_SPELLED_POWER, out);
    if (power == NULL || power->kind != QDQI_OP_EXP || beyond(g, sum->in[0], QDQI_SPELLED_POWER, out) != power)
        return false;
    const qdqi_op *distance = beyond(g, power->in[0], QDQI_SPELLED_DISTANCE, out);
    if (distance == NULL || distance->kind != QDQI_OP_SUBTRACT) return false;
    const qdqi_op *max = beyond(g, distance->in[1], QDQI_SPELLED_MAX, out);
    if (!keeps_dims(max, QDQI_OP_REDUCEMAX)) return false;
    out->x = distance->in[0];
    out->max = index_of(g, max);
    out->sum = index_of(g, sum);
    return same_value(g, max->in[0], out->x);
}
