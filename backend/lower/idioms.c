/* Elementwise idioms that exporters spell out, recognised as the one op that they mean. */
#include "base/dtype.h"
#include "lower/chain.h"

#include <math.h>

static bool constant_of(qdqi_lower *lw, uint32_t value, double *out) {
    const qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (lv->data == NULL || qdqi_n_elems(&lv->desc) != 1) return false;
    *out = qdqi_load_f64(lv->data, lv->desc.dtype, 0);
    return true;
}

/* `op` combines `value` with a constant near `want` (either side). */
static bool with_constant(qdqi_lower *lw, const qdqi_op *op, uint32_t value, double want) {
    double c;
    if (op->n_in != 2 || op->in[0] == op->in[1]) return false;
    const uint32_t other = op->in[0] == value ? op->in[1] : op->in[0];
    if (op->in[0] != value && op->in[1] != value) return false;
    return constant_of(lw, other, &c) && fabs(c - want) <= 1e-6 * fabs(want);
}

/* The one op that uses `value`; NULL when there are others. */
static const qdqi_op *only_user(const qdqi_lower *lw, uint32_t value) {
    const qdqi_value *v = &lw->graph->values[value];
    return v->n_uses == 1 && !v->is_output ? &lw->graph->ops[v->uses[0].op] : NULL;
}

/* x * (1 + erf(x / sqrt 2)) * 0.5:   Divide|Multiply - Erf - Add - Multiply(x) - Multiply */
bool qdqi_idiom_gelu(qdqi_lower *lw, uint32_t x, const qdqi_op *first, uint32_t ops[QDQI_IDIOM_OPS], uint32_t *n_out) {
    const qdq_graph *g = lw->graph;
    const qdqi_value *v = &g->values[x];
    if (v->n_uses != 2 || v->is_output) return false;
    const bool scaled = (first->kind == QDQI_OP_DIVIDE && first->in[0] == x && with_constant(lw, first, x, M_SQRT2)) ||
                        (first->kind == QDQI_OP_MULTIPLY && with_constant(lw, first, x, M_SQRT1_2));
    if (!scaled) return false;
    const qdqi_op *erf_op = only_user(lw, first->out[0]);
    if (erf_op == NULL || erf_op->kind != QDQI_OP_ERF) return false;
    const qdqi_op *add = only_user(lw, erf_op->out[0]);
    if (add == NULL || add->kind != QDQI_OP_ADD || !with_constant(lw, add, erf_op->out[0], 1.0)) return false;
    const qdqi_op *mul = only_user(lw, add->out[0]);
    if (mul == NULL || mul->kind != QDQI_OP_MULTIPLY || (mul->in[0] != x && mul->in[1] != x)) return false;
    const qdqi_op *half = only_user(lw, mul->out[0]);
    if (half == NULL || half->kind != QDQI_OP_MULTIPLY || !with_constant(lw, half, mul->out[0], 0.5)) return false;
    const qdqi_op *found[] = {first, erf_op, add, mul, half};
    for (uint32_t i = 0; i < 5; i++)
        ops[i] = (uint32_t)(found[i] - g->ops);
    *n_out = 5;
    return true;
}
