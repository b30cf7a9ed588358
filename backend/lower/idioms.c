/* Elementwise idioms that exporters spell out, recognised as the one op that they mean.
 *
 *   x * (1 + erf(x / sqrt 2)) / 2, x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2          GELU
 *   x * clip(x + 3, 0, 6) / 6, x * hardsigmoid(x)                                                  HardSwish
 *   x * sigmoid(a * x)                                                                             Swish
 *
 * in whatever order the factors are multiplied: the products that lead to the last op are taken apart into a constant and the rest. */
#include "base/dtype.h"
#include "lower/chain.h"

#include <math.h>

enum { MAX_FACTORS = 6 };

typedef struct idiom {
    qdqi_lower *lw;
    uint32_t x;
    uint32_t ops[QDQI_IDIOM_OPS], n_ops; /* all that it consists of */
} idiom;

/* A product: constant * factors. */
typedef struct product {
    double constant;
    uint32_t factors[MAX_FACTORS], n;
} product;

static bool constant_of(qdqi_lower *lw, uint32_t value, double *out) {
    const qdqi_lval *lv = qdqi_lower_val(lw, value);
    if (lv->data == NULL || qdqi_n_elems(&lv->desc) != 1) return false;
    *out = qdqi_load_f64(lv->data, lv->desc.dtype, 0);
    return true;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static bool take(idiom *m, const qdqi_op *op) {
    const uint32_t index = (uint32_t)(op - m->lw->graph->ops);
    for (uint32_t i = 0; i < m->n_ops; i++)
        if (m->ops[i] == index) return true;
    if (m->n_ops == QDQI_IDIOM_OPS) return false;
    m->ops[m->n_ops++] = index;
    return true;
}

static const qdqi_op *maker(const idiom *m, uint32_t value) {
    const uint32_t producer = m->lw->graph->values[value].producer;
    return producer == QDQI_NONE || value == m->x ? NULL : &m->lw->graph->ops[producer];
}

static bool add_factor(product *p, uint32_t value, uint32_t times) {
    for (; times > 0; times--) {
        if (p->n == MAX_FACTORS) return false;
        p->factors[p->n++] = value;
    }
    return true;
}

/* `value` to the power `times` becomes part of the product; the ops that multiply are taken. */
static bool factorize(idiom *m, uint32_t value, uint32_t times, product *p, int depth) {
    double c;
    if (constant_of(m->lw, value, &c)) {
        p->constant *= pow(c, times);
        return true;
    }
    const qdqi_op *op = maker(m, value);
    if (op == NULL || depth == 0) return add_factor(p, value, times);
    switch ((int)op->kind) {
    case QDQI_OP_MULTIPLY:
        return take(m, op) && factorize(m, op->in[0], times, p, depth - 1) &&
               factorize(m, op->in[1], times, p, depth - 1);
    case QDQI_OP_DIVIDE:
        if (!constant_of(m->lw, op->in[1], &c) || c == 0.0) return add_factor(p, value, times);
        p->constant /= pow(c, times);
        return take(m, op) && factorize(m, op->in[0], times, p, depth - 1);
    case QDQI_OP_SQUARE: return take(m, op) && factorize(m, op->in[0], 2 * times, p, depth - 1);
    case QDQI_OP_POW:
        if (qdqi_op_f32(op, QDQI_A_BETA) != 3.0f) return add_factor(p, value, times);
        return take(m, op) && factorize(m, op->in[0], 3 * times, p, depth - 1);
    default: return add_factor(p, value, times);
    }
}

static product product_of(idiom *m, uint32_t value, bool *ok) {
    product p = {.constant = 1.0};
    *ok = factorize(m, value, 1, &p, 6);
    return p;
}

/* c * x and nothing else. */
static bool scaled_x(idiom *m, uint32_t value, double *c) {
    bool ok;
    const product p = product_of(m, value, &ok);
    *c = p.constant;
    return ok && p.n == 1 && p.factors[0] == m->x;
}

/* An Add of `value` to something: of the constant `want`, the something. */
static bool plus(idiom *m, const qdqi_op *op, double want, uint32_t *rest) {
    double c;
    if (op == NULL || op->kind != QDQI_OP_ADD) return false;
    for (uint32_t k = 0; k < 2; k++)
        if (constant_of(m->lw, op->in[k], &c) && is_near(c, want)) {
            *rest = op->in[1 - k];
            return take(m, op);
        }
    return false;
}

/* x + 0.044715 x^3 */
static bool is_cubic(idiom *m, const qdqi_op *op) {
    if (op == NULL || op->kind != QDQI_OP_ADD || !take(m, op)) return false;
    for (uint32_t k = 0; k < 2; k++) {
        bool ok;
        if (op->in[k] != m->x) continue;
        const product p = product_of(m, op->in[1 - k], &ok);
        return ok && is_near(p.constant, 0.044715) && p.n == 3 && p.factors[0] == m->x && p.factors[1] == m->x &&
               p.factors[2] == m->x;
    }
    return false;
}

static bool is_gelu(idiom *m, double constant, uint32_t factor, qdqi_link *link) {
    uint32_t inner;
    double c;
    bool ok;
    if (!is_near(constant, 0.5) || !plus(m, maker(m, factor), 1.0, &inner)) return false;
    const qdqi_op *f = maker(m, inner);
    if (f == NULL || !take(m, f)) return false;
    if (f->kind == QDQI_OP_ERF) {
        link->alg = QDQI_DNNL_ELT_GELU_ERF;
        return scaled_x(m, f->in[0], &c) && is_near(c, M_SQRT1_2);
    }
    if (f->kind != QDQI_OP_TANH) return false;
    link->alg = QDQI_DNNL_ELT_GELU_TANH;
    const product p = product_of(m, f->in[0], &ok);
    return ok && p.n == 1 && fabs(p.constant - 0.7978845608) < 1e-5 && is_cubic(m, maker(m, p.factors[0]));
}

/* clip(x + 3, 0, 6) with 1/6, or a HardSigmoid */
static bool is_hardswish(idiom *m, double constant, uint32_t factor, qdqi_link *link) {
    uint32_t inner;
    const qdqi_op *f = maker(m, factor);
    if (f == NULL || !take(m, f)) return false;
    link->alg = QDQI_DNNL_ELT_HARDSWISH;
    if (f->kind == QDQI_OP_HARDSIGMOID) {
        link->alpha = qdqi_op_f32(f, QDQI_A_ALPHA);
        link->beta = qdqi_op_f32(f, QDQI_A_BETA);
        return constant == 1.0 && f->in[0] == m->x;
    }
    link->alpha = 1.0f / 6.0f;
    link->beta = 0.5f;
    return f->kind == QDQI_OP_CLAMP && qdqi_op_f32(f, QDQI_A_MIN) == 0.0f && qdqi_op_f32(f, QDQI_A_MAX) == 6.0f &&
           is_near(constant, 1.0 / 6.0) && plus(m, maker(m, f->in[0]), 3.0, &inner) && inner == m->x;
}

static bool is_swish(idiom *m, double constant, uint32_t factor, qdqi_link *link) {
    double c;
    const qdqi_op *f = maker(m, factor);
    if (f == NULL || f->kind != QDQI_OP_SIGMOID || constant != 1.0 || !take(m, f) || !scaled_x(m, f->in[0], &c))
        return false;
    link->alg = QDQI_DNNL_ELT_SWISH;
    link->alpha = (float)c;
    return true;
}

/* Nothing of it but the result is needed elsewhere, and x only here. */
static bool is_closed(const idiom *m, uint32_t last) {
    const qdq_graph *g = m->lw->graph;
    for (uint32_t i = 0; i <= m->n_ops; i++) {
        if (i < m->n_ops && m->ops[i] == last) continue;
        const qdqi_value *v = &g->values[i < m->n_ops ? g->ops[m->ops[i]].out[0] : m->x];
        if (v->is_output) return false;
        for (uint32_t u = 0; u < v->n_uses; u++) {
            bool inside = false;
            for (uint32_t k = 0; k < m->n_ops; k++)
                inside = inside || m->ops[k] == v->uses[u].op;
            if (!inside) return false;
        }
    }
    return true;
}

bool qdqi_idiom_read(qdqi_lower *lw, uint32_t x, const qdqi_op *last, uint32_t ops[QDQI_IDIOM_OPS], uint32_t *n_out,
                     qdqi_link *link) {
    typedef bool reader(idiom *, double, uint32_t, qdqi_link *);
    static reader *const readers[] = {is_gelu, is_hardswish, is_swish};
    if (last->kind != QDQI_OP_MULTIPLY && last->kind != QDQI_OP_DIVIDE) return false;
    for (size_t r = 0; r < sizeof readers / sizeof readers[0]; r++) {
        bool ok;
        idiom m = {.lw = lw, .x = x};
        const product p = product_of(&m, last->out[0], &ok);
        if (!ok || p.n != 2 || (p.factors[0] == x) == (p.factors[1] == x)) return false;
        const uint32_t index = (uint32_t)(last - lw->graph->ops);
        qdqi_link found = {.op = index, .has_alg = true};
        if (!readers[r](&m, p.constant, p.factors[p.factors[0] == x ? 1 : 0], &found) || !is_closed(&m, index))
            continue;
        for (uint32_t i = 0; i < m.n_ops; i++)
            ops[i] = m.ops[i];
        *n_out = m.n_ops;
        *link = found;
        return true;
    }
    return false;
}
