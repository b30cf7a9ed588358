#include "patterns/matcher.h"

#include "base/alloc.h"
#include "patterns/sets.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* A value with more uses than this is not followed: nothing that is all inside one match has so many. */
    MAX_USES = 64,
    MAX_MEMBERS = 1 + QDQI_PATTERN_MAX_NODES + QDQI_PATTERN_MAX_REP,
    /* Ops of a match but for variadic ports: regions, and per op of a run the op, its operand's Dequantize and views. */
    MAX_LISTED = QDQI_PATTERN_MAX_NODES * QDQI_PATTERN_MAX_REGION + (2 + QDQI_PATTERN_MAX_VIEWS) * MAX_MEMBERS
};

/* An op of the match from the anchor on, followed through its output 0; a FRONT, through all. */
typedef struct member {
    uint32_t op;
    uint32_t n_out; /* outputs that are followed */
    uint32_t open;  /* uses of them by ops that are not in the match */
} member;

struct qdqi_matcher {
    const qdq_graph *graph;
    uint32_t *position; /* op -> place in graph->topo */
    uint32_t *n_uses;   /* value -> uses by ops that take part */
    uint32_t *epoch_of; /* op -> epoch in which it was last listed */
    uint8_t *node_of;   /* op -> upstream node that it was last listed for */
    bool *claimed, *absorbed;
    uint32_t *scope_of; /* op -> scope that it was last put into */
    uint32_t scope;     /* 0: the whole graph */
    uint64_t n_attempts;

    /* the attempt */
    const qdqi_pattern *pattern;
    const qdqi_match_trace *trace;
    uint32_t epoch;
    uint32_t root;
    uint32_t n_listed;
    uint32_t *listed; /* ops of the match in the order found; sorted at the end */
    bool *is_free;    /* parallel: may be recomputed by others */
    uint32_t n_members;
    member members[MAX_MEMBERS];
    uint32_t *ops; /* the result */
    qdqi_match_step step;
};

/* ---- life ---- */

void qdqi_matcher_destroy(qdqi_matcher **matcher) {
    if (!matcher || !*matcher) return;
    qdqi_matcher *m = *matcher;
    qdqi_free(m->position);
    qdqi_free(m->n_uses);
    qdqi_free(m->epoch_of);
    qdqi_free(m->node_of);
    qdqi_free(m->claimed);
    qdqi_free(m->absorbed);
    qdqi_free(m->scope_of);
    qdqi_free(m->listed);
    qdqi_free(m->is_free);
    qdqi_free(m->ops);
    qdqi_free(m);
    *matcher = NULL;
}

qdq_status qdqi_matcher_create(const qdq_graph *graph, qdqi_matcher **matcher_out, qdq_error *err) {
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "the graph is not finalized");
    qdqi_matcher *m = qdqi_calloc(1, sizeof(*m));
    if (!m) return QDQI_NO_MEMORY(err);
    m->graph = graph;

    size_t cap = MAX_LISTED;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const size_t need = (size_t)graph->ops[i].n_in + MAX_LISTED;
        if (need > cap) cap = need;
    }
    m->position = qdqi_calloc(graph->n_ops, sizeof(*m->position));
    m->n_uses = qdqi_calloc(graph->n_values, sizeof(*m->n_uses));
    m->node_of = qdqi_calloc(graph->n_ops, sizeof(*m->node_of));
    m->epoch_of = qdqi_calloc(graph->n_ops, sizeof(*m->epoch_of));
    m->claimed = qdqi_calloc(graph->n_ops, sizeof(*m->claimed));
    m->absorbed = qdqi_calloc(graph->n_ops, sizeof(*m->absorbed));
    m->scope_of = qdqi_calloc(graph->n_ops, sizeof(*m->scope_of));
    m->listed = qdqi_calloc(cap, sizeof(*m->listed));
    m->is_free = qdqi_calloc(cap, sizeof(*m->is_free));
    m->ops = qdqi_calloc(cap, sizeof(*m->ops));
    if (!m->scope_of || !m->node_of || !m->position || !m->n_uses || !m->epoch_of || !m->claimed || !m->absorbed ||
        !m->listed || !m->is_free || !m->ops) {
        qdqi_matcher_destroy(&m);
        return QDQI_NO_MEMORY(err);
    }
    for (uint32_t i = 0; i < graph->n_ops; i++)
        m->position[graph->topo[i]] = i;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const qdqi_op *op = &graph->ops[i];
        for (uint32_t p = 0; !op->folded && p < op->n_in; p++)
            if (op->in[p] != QDQI_NONE) m->n_uses[op->in[p]]++;
    }
    *matcher_out = m;
    return QDQ_OK;
}

uint32_t qdqi_matcher_position(const qdqi_matcher *matcher, uint32_t op) {
    return matcher->position[op];
}

uint32_t qdqi_matcher_n_uses(const qdqi_matcher *matcher, uint32_t value) {
    return matcher->n_uses[value];
}

uint64_t qdqi_matcher_n_attempts(const qdqi_matcher *matcher) {
    return matcher->n_attempts;
}

bool qdqi_matcher_is_claimed(const qdqi_matcher *matcher, uint32_t op) {
    return matcher->claimed[op];
}

bool qdqi_matcher_is_absorbed(const qdqi_matcher *matcher, uint32_t op) {
    return matcher->absorbed[op];
}

void qdqi_matcher_restrict(qdqi_matcher *matcher, const uint32_t *ops, uint32_t n_ops) {
    matcher->scope++;
    for (uint32_t i = 0; i < n_ops; i++) {
        matcher->scope_of[ops[i]] = matcher->scope;
        matcher->claimed[ops[i]] = matcher->absorbed[ops[i]] = false;
    }
}

static bool is_outside(const qdqi_matcher *m, uint32_t op) {
    return m->scope_of[op] != m->scope;
}

static bool is_taken(const qdqi_matcher *m, uint32_t op) {
    return m->claimed[op] || is_outside(m, op);
}

/* ---- the list of ops ---- */

static bool is_listed(const qdqi_matcher *m, uint32_t op) {
    return m->epoch_of[op] == m->epoch;
}

static void list_op(qdqi_matcher *m, uint32_t op, bool is_free) {
    if (is_listed(m, op)) return;
    m->epoch_of[op] = m->epoch;
    m->listed[m->n_listed] = op;
    m->is_free[m->n_listed] = is_free;
    m->n_listed++;
}

static void unlist_down_to(qdqi_matcher *m, uint32_t n) {
    while (m->n_listed > n)
        m->epoch_of[m->listed[--m->n_listed]] = 0;
}

/* ---- refusals ---- */

static bool refuse(qdqi_matcher *m, qdqi_why why, const qdqi_guard *guard, uint32_t op, uint32_t value) {
    m->step.why = why;
    m->step.guard = guard;
    m->step.op = op;
    m->step.value = value;
    m->step.n_ops = m->n_listed;
    return false;
}

static bool report(qdqi_matcher *m, uint32_t node, bool cut) {
    m->step.pattern = m->pattern;
    m->step.node = node;
    m->step.cut = cut;
    if (m->trace) m->trace->step(m->trace->user, &m->step);
    return cut;
}

/* Kind and guards of a node against an op. */
static bool fits(qdqi_matcher *m, const qdqi_pnode *node, uint32_t op_index, uint32_t value) {
    const qdqi_op *op = &m->graph->ops[op_index];
    m->n_attempts++;
    if (node->set ? !node->set->has(op) : op->kind != node->kind)
        return refuse(m, QDQI_WHY_KIND, NULL, op_index, value);
    for (uint32_t g = 0; g < QDQI_PATTERN_MAX_GUARDS && node->guards[g]; g++) {
        const qdqi_guard *guard = node->guards[g];
        if (!guard->pass(m->graph, op, value)) return refuse(m, guard->why, guard, op_index, value);
    }
    return true;
}

/* ---- upstream ---- */

static uint32_t input_of(const qdqi_op *op, uint32_t port) {
    return port < op->n_in ? op->in[port] : QDQI_NONE;
}

/* The op that makes a value, unless finalize folded it. */
static uint32_t producer_of(const qdqi_matcher *m, uint32_t value) {
    if (value == QDQI_NONE) return QDQI_NONE;
    const uint32_t producer = m->graph->values[value].producer;
    return producer == QDQI_NONE || m->graph->ops[producer].folded ? QDQI_NONE : producer;
}

/* No graph output, and every use is by an op of the match. */
static bool only_feeds_match(const qdqi_matcher *m, uint32_t index) {
    const qdqi_value *value = &m->graph->values[index];
    if (value->is_output || value->n_uses > MAX_USES) return false;
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (!m->graph->ops[value->uses[u].op].folded && !is_listed(m, value->uses[u].op)) return false;
    return true;
}

static bool match_region(qdqi_matcher *m, uint32_t node_index, uint32_t value, bool exclusive);
static bool add_front(qdqi_matcher *m, uint32_t op_index);

static bool match_upstream(qdqi_matcher *m, uint32_t node_index, uint32_t value, bool exclusive) {
    const qdqi_pnode *node = &m->pattern->nodes[node_index];
    if (node->region) return match_region(m, node_index, value, exclusive);
    const uint32_t op_index = producer_of(m, value);
    if (op_index == QDQI_NONE) {
        refuse(m, QDQI_WHY_NO_PRODUCER, NULL, QDQI_NONE, value);
    } else if (fits(m, node, op_index, value)) {
        const qdqi_op *op = &m->graph->ops[op_index];
        const bool is_free = node->recompute || qdqi_set_dq.has(op);
        if (node->front) return !is_taken(m, op_index) && add_front(m, op_index);
        const bool alone = exclusive && op->n_out == 1 && only_feeds_match(m, value);
        const bool again = is_listed(m, op_index) && m->node_of[op_index] != node_index;
        if (is_outside(m, op_index) || (!is_free && (again || m->claimed[op_index]))) {
            refuse(m, QDQI_WHY_CLAIMED, NULL, op_index, value);
        } else if (!is_free && !alone) {
            refuse(m, m->graph->values[value].is_output ? QDQI_WHY_GRAPH_OUTPUT : QDQI_WHY_SHARED, NULL, op_index,
                   value);
        } else {
            list_op(m, op_index, is_free);
            m->node_of[op_index] = (uint8_t)node_index;
            for (uint32_t p = 0; p < node->n_in; p++)
                if (node->in[p] >= 0 && !match_upstream(m, (uint32_t)node->in[p], input_of(op, p), alone)) return false;
            return true;
        }
    }
    if (!node->optional) return report(m, node_index, false);
    if (node->n_in == 0 || node->in[0] < 0) return true;
    return match_upstream(m, (uint32_t)node->in[0], value, exclusive);
}

/* Consumers before producers, so that whether a value is used inside only is known when its producer's turn comes. The ops that
 * end the region are tried for the next node, the last one in topological order first. */
static bool match_region(qdqi_matcher *m, uint32_t node_index, uint32_t value, bool exclusive) {
    const qdqi_pnode *node = &m->pattern->nodes[node_index];
    const uint32_t next = (uint32_t)node->in[0];
    const qdqi_pnode *end = &m->pattern->nodes[next];
    uint32_t open[1 + QDQI_PATTERN_MAX_REGION * QDQI_PATTERN_MAX_INPUTS] = {value}, n_open = 1, n = 0;
    while (n_open > 0) {
        uint32_t at = 0;
        for (uint32_t i = 1; i < n_open; i++) {
            const uint32_t a = producer_of(m, open[i]), b = producer_of(m, open[at]);
            if (a != QDQI_NONE && (b == QDQI_NONE || m->position[a] > m->position[b])) at = i;
        }
        const uint32_t v = open[at], op_index = producer_of(m, v);
        open[at] = open[--n_open];
        if (op_index == QDQI_NONE) break; /* only inputs are left */
        if (is_listed(m, op_index)) continue;
        const qdqi_op *op = &m->graph->ops[op_index];
        if (exclusive && n < node->region && op->n_out == 1 && op->n_in <= QDQI_PATTERN_MAX_INPUTS &&
            !is_taken(m, op_index) && only_feeds_match(m, v) && fits(m, node, op_index, v)) {
            list_op(m, op_index, false);
            n++;
            for (uint32_t p = 0; p < op->n_in; p++)
                if (op->in[p] != QDQI_NONE) open[n_open++] = op->in[p];
        } else if (end->set ? end->set->has(op) : end->kind == op->kind) {
            return match_upstream(m, next, v, exclusive);
        }
    }
    refuse(m, QDQI_WHY_NO_PRODUCER, NULL, QDQI_NONE, value);
    return report(m, node_index, false);
}

/* ---- downstream ---- */

static uint32_t out_value(const qdqi_matcher *m, uint32_t op) {
    return m->graph->ops[op].out[0];
}

static member *member_of(qdqi_matcher *m, uint32_t op) {
    if (op == QDQI_NONE || !is_listed(m, op)) return NULL;
    for (uint32_t i = m->n_members; i-- > 0;)
        if (m->members[i].op == op) return &m->members[i];
    return NULL;
}

static void add_member(qdqi_matcher *m, uint32_t op) {
    const uint32_t n_out = m->graph->ops[op].n_out ? 1 : 0;
    list_op(m, op, false);
    m->members[m->n_members++] = (member){op, n_out, n_out ? m->n_uses[out_value(m, op)] : 0};
}

/* Before the anchor, which is the only member by now and reads some of it. */
static bool add_front(qdqi_matcher *m, uint32_t op_index) {
    const qdqi_op *op = &m->graph->ops[op_index], *anchor = &m->graph->ops[m->root];
    member front = {op_index, op->n_out, 0};
    if (is_listed(m, op_index)) return false;
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (m->graph->values[op->out[o]].is_output) return refuse(m, QDQI_WHY_GRAPH_OUTPUT, NULL, op_index, op->out[o]);
        front.open += m->n_uses[op->out[o]];
    }
    for (uint32_t p = 0; p < anchor->n_in; p++)
        if (producer_of(m, anchor->in[p]) == op_index) front.open--;
    list_op(m, op_index, false);
    memmove(&m->members[1], &m->members[0], m->n_members * sizeof m->members[0]);
    m->members[0] = front;
    m->n_members++;
    return true;
}

/* Nothing that was made inside is needed outside, but for the outputs of the last op. */
static bool is_closed(const qdqi_matcher *m) {
    for (uint32_t i = 0; i + 1 < m->n_members; i++)
        if (m->members[i].open) return false;
    return true;
}

/* The first op in topological order that uses something made inside: the only one that can come next, because ops
 * are added in this order and all uses must be inside in the end. */
static uint32_t next_op(qdqi_matcher *m) {
    const uint32_t last = m->members[m->n_members - 1].op;
    const qdqi_op *last_op = &m->graph->ops[last];
    for (uint32_t o = 0; o < last_op->n_out; o++) {
        const qdqi_value *value = &m->graph->values[last_op->out[o]];
        if (o > 0 && (value->is_output || m->n_uses[last_op->out[o]])) {
            refuse(m, QDQI_WHY_OUTPUTS, NULL, QDQI_NONE, last_op->out[o]);
            return QDQI_NONE;
        }
        if (o == 0 && value->is_output) {
            refuse(m, QDQI_WHY_GRAPH_OUTPUT, NULL, QDQI_NONE, last_op->out[o]);
            return QDQI_NONE;
        }
    }
    uint32_t next = QDQI_NONE;
    for (uint32_t i = 0; i < m->n_members; i++) {
        for (uint32_t o = 0; o < m->members[i].n_out && m->members[i].open; o++) {
            const uint32_t index = m->graph->ops[m->members[i].op].out[o];
            const qdqi_value *value = &m->graph->values[index];
            if (value->n_uses > MAX_USES) {
                refuse(m, QDQI_WHY_SHARED, NULL, QDQI_NONE, index);
                return QDQI_NONE;
            }
            for (uint32_t u = 0; u < value->n_uses; u++) {
                const uint32_t op = value->uses[u].op;
                if (m->graph->ops[op].folded || is_listed(m, op)) continue;
                if (next == QDQI_NONE || m->position[op] < m->position[next]) next = op;
            }
        }
    }
    if (next == QDQI_NONE)
        refuse(m, QDQI_WHY_NO_CONSUMER, NULL, QDQI_NONE, last_op->n_out ? last_op->out[0] : QDQI_NONE);
    return next;
}

/* The chain must enter by the port that the node names, or by any of a binary op's where order does not matter or the node
 * allows it. `value_out` is the chain's value. */
static bool enters_right(qdqi_matcher *m, const qdqi_pnode *node, uint32_t op_index, uint32_t *value_out) {
    const qdqi_op *op = &m->graph->ops[op_index];
    uint32_t wanted = 0;
    while (wanted + 1 < node->n_in && node->in[wanted] < 0)
        wanted++;
    const bool two_sided = (op->schema->flags & QDQI_F_BINARY) || qdqi_set_matmul.has(op);
    const bool swappable = two_sided && wanted < 2 && (node->any_side || (op->schema->flags & QDQI_F_COMMUTATIVE));
    uint32_t n = 0;
    bool right = true;
    *value_out = QDQI_NONE;
    for (uint32_t p = 0; p < op->n_in; p++) {
        if (!member_of(m, producer_of(m, op->in[p]))) continue;
        if (n++ == 0) *value_out = op->in[p];
        if (p != wanted && !(swappable && p < 2)) right = false;
    }
    if (n > 1 && !node->self_other) right = false;
    return right || refuse(m, QDQI_WHY_PORT, NULL, op_index, *value_out);
}

/* The operand's Dequantize, and the views between. */
static void list_dequantized(qdqi_matcher *m, uint32_t op_index) {
    const qdqi_op *op = &m->graph->ops[op_index];
    const bool view = qdqi_set_view.has(op) && qdqi_guard_dq_behind.pass(m->graph, op, QDQI_NONE);
    if (is_outside(m, op_index) || !(view || qdqi_set_dq.has(op))) return;
    list_op(m, op_index, true);
    const uint32_t up = view ? producer_of(m, input_of(op, 0)) : QDQI_NONE;
    if (up != QDQI_NONE) list_dequantized(m, up);
}

/* The operand is a product of scales for this op alone. */
static void list_scales(qdqi_matcher *m, uint32_t op_index) {
    const qdqi_op *op = &m->graph->ops[op_index];
    if (is_taken(m, op_index) || op->kind != QDQI_OP_MULTIPLY || !qdqi_guard_few_numbers.pass(m->graph, op, QDQI_NONE))
        return;
    const qdqi_value *out = &m->graph->values[op->out[0]];
    if (out->n_uses == 1 && !out->is_output) list_op(m, op_index, false);
}

static bool add_downstream(qdqi_matcher *m, const qdqi_pnode *node, uint32_t op_index) {
    const qdqi_op *op = &m->graph->ops[op_index];
    const qdqi_op *last_op = &m->graph->ops[m->members[m->n_members - 1].op];
    if (is_taken(m, op_index)) return refuse(m, QDQI_WHY_CLAIMED, NULL, op_index, last_op->out[0]);
    /* The kind first: it bounds the ports that are looked at. */
    if (op->n_out == 0 || (node->set ? !node->set->has(op) : op->kind != node->kind)) {
        m->n_attempts++;
        return refuse(m, QDQI_WHY_KIND, NULL, op_index, last_op->out[0]);
    }
    uint32_t value = QDQI_NONE;
    if (!enters_right(m, node, op_index, &value) || !fits(m, node, op_index, value)) return false;

    for (uint32_t p = 0; p < op->n_in; p++) {
        const uint32_t producer = producer_of(m, op->in[p]);
        if (producer == QDQI_NONE) continue;
        member *from = member_of(m, producer);
        if (from)
            from->open--;
        else if (node->dq_other)
            list_dequantized(m, producer);
        if (!from && node->scale_other) list_scales(m, producer);
    }
    add_member(m, op_index);
    return true;
}

/* Back to an earlier state, which was closed. */
static void restore(qdqi_matcher *m, uint32_t n_members, uint32_t n_listed) {
    unlist_down_to(m, n_listed);
    m->n_members = n_members;
    for (uint32_t i = 0; i + 1 < n_members; i++)
        m->members[i].open = 0;
    const uint32_t last = m->members[n_members - 1].op;
    m->members[n_members - 1].open = m->graph->ops[last].n_out ? m->n_uses[out_value(m, last)] : 0;
}

/* What is left open is closed by a later node, or the attempt fails there: nothing is ever undone. */
static bool match_open(qdqi_matcher *m, uint32_t node_index, uint32_t min, uint32_t max) {
    uint32_t n = 0;
    while (n < max) {
        const uint32_t op = next_op(m);
        if (op == QDQI_NONE || !add_downstream(m, &m->pattern->nodes[node_index], op)) break;
        n++;
    }
    return n >= min || report(m, node_index, false);
}

static bool match_downstream(qdqi_matcher *m, uint32_t node_index) {
    const qdqi_pnode *node = &m->pattern->nodes[node_index];
    const uint32_t max = node->rep_max ? node->rep_max : 1;
    const uint32_t min = node->optional ? 0 : node->rep_max ? node->rep_min : 1;
    uint32_t n_closed = 0, closed_members = m->n_members, closed_listed = m->n_listed;
    if (node->open) return match_open(m, node_index, min, max);
    for (uint32_t n = 0;; n++) {
        if (n == max) {
            refuse(m, QDQI_WHY_TOO_LONG, NULL, QDQI_NONE, out_value(m, m->members[m->n_members - 1].op));
            break;
        }
        const uint32_t op = next_op(m);
        if (op == QDQI_NONE || !add_downstream(m, node, op)) break;
        if (is_closed(m)) {
            n_closed = n + 1, closed_members = m->n_members, closed_listed = m->n_listed;
        } else if (!node->self_other) {
            refuse(m, QDQI_WHY_SHARED, NULL, op, out_value(m, m->members[closed_members - 1].op));
            break;
        }
    }
    /* What stopped a run inside of an open piece is that a value of the piece is used elsewhere too. */
    if (!is_closed(m) && m->step.why != QDQI_WHY_SHARED)
        refuse(m, QDQI_WHY_SHARED, NULL, m->step.op, out_value(m, m->members[closed_members - 1].op));
    m->step.n_ops = closed_listed;
    restore(m, closed_members, closed_listed);
    if (n_closed < min) return report(m, node_index, false);
    if (n_closed < max || node->rep_max) report(m, node_index, true);
    return true;
}

/* ---- an attempt ---- */

static bool attempt(qdqi_matcher *m, uint32_t anchor, bool swapped) {
    const qdqi_pnode *node = &m->pattern->nodes[anchor];
    const qdqi_op *op = &m->graph->ops[m->root];
    if (++m->epoch == 0) {
        memset(m->epoch_of, 0, m->graph->n_ops * sizeof(*m->epoch_of));
        m->epoch = 1;
    }
    m->n_listed = m->n_members = 0;
    m->step.value = QDQI_NONE;
    if (is_taken(m, m->root)) {
        refuse(m, QDQI_WHY_CLAIMED, NULL, m->root, QDQI_NONE);
        return report(m, anchor, false);
    }
    if (!fits(m, node, m->root, QDQI_NONE)) return report(m, anchor, false);
    add_member(m, m->root);

    const uint32_t n_ports = node->variadic ? op->n_in : node->n_in;
    for (uint32_t p = 0; p < n_ports; p++) {
        const int8_t from = node->in[node->variadic ? 0 : p];
        const uint32_t port = swapped && p < 2 ? 1 - p : p;
        if (from >= 0 && !match_upstream(m, (uint32_t)from, input_of(op, port), true)) return false;
    }
    if (op->n_out > 0)
        for (uint32_t i = anchor + 1; i < m->pattern->n_nodes; i++)
            if (!match_downstream(m, i)) return false;
    if (m->n_listed < 2) {
        refuse(m, QDQI_WHY_ALONE, NULL, m->root, QDQI_NONE);
        return report(m, anchor, false);
    }
    return true;
}

static int by_value(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool qdqi_matcher_try(qdqi_matcher *matcher, const qdqi_pattern *pattern, uint32_t root, const qdqi_match_trace *trace,
                      qdqi_match *match_out) {
    qdqi_matcher *m = matcher;
    m->pattern = pattern;
    m->trace = trace;
    m->root = root;
    uint32_t anchor = 0;
    while (!pattern->nodes[anchor].anchor)
        anchor++;
    const qdqi_op *op = &m->graph->ops[root];
    const bool both_ways = pattern->nodes[anchor].n_in && !pattern->nodes[anchor].variadic && op->n_in >= 2 &&
                           (op->schema->flags & QDQI_F_COMMUTATIVE);
    if (!attempt(m, anchor, false) && !(both_ways && attempt(m, anchor, true))) return false;

    for (uint32_t i = 0; i < m->n_listed; i++)
        m->ops[i] = m->position[m->listed[i]];
    qsort(m->ops, m->n_listed, sizeof(*m->ops), by_value);
    for (uint32_t i = 0; i < m->n_listed; i++)
        m->ops[i] = m->graph->topo[m->ops[i]];
    *match_out = (qdqi_match){pattern, root, m->n_listed, m->ops};
    return true;
}

void qdqi_matcher_claim(qdqi_matcher *matcher) {
    for (uint32_t i = 0; i < matcher->n_listed; i++)
        (matcher->is_free[i] ? matcher->absorbed : matcher->claimed)[matcher->listed[i]] = true;
}

/* ---- the nearest entry ---- */

typedef struct furthest {
    qdqi_match_step fail, cut;
} furthest;

static void keep_furthest(void *user, const qdqi_match_step *step) {
    furthest *f = user;
    if (step->cut)
        f->cut = *step;
    else if (!f->fail.pattern || step->n_ops >= f->fail.n_ops)
        f->fail = *step;
}

/* What one entry makes of an op. False when it is not for this kind of op at all. */
static bool how_far(qdqi_matcher *m, const qdqi_pattern *pattern, uint32_t op, qdqi_match_step *step_out) {
    furthest f = {0};
    const qdqi_match_trace trace = {keep_furthest, &f};
    qdqi_match match;
    if (!qdqi_matcher_try(m, pattern, op, &trace, &match)) {
        *step_out = f.fail;
        return f.fail.n_ops > 0 || f.fail.why != QDQI_WHY_KIND;
    }
    /* The last cut counts when the match ends there. */
    if (!f.cut.pattern || f.cut.n_ops != match.n_ops)
        f.cut = (qdqi_match_step){.op = QDQI_NONE, .value = QDQI_NONE, .n_ops = match.n_ops};
    *step_out = f.cut;
    step_out->pattern = pattern;
    step_out->cut = true;
    return true;
}

void qdqi_matcher_nearest(qdqi_matcher *matcher, uint32_t op, qdqi_match_step *nearest_out) {
    const bool was_claimed = matcher->claimed[op];
    matcher->claimed[op] = false;
    *nearest_out = (qdqi_match_step){0};
    for (size_t i = 0; i < qdqi_pattern_count(); i++) {
        qdqi_match_step step;
        if (!how_far(matcher, qdqi_pattern_at(i), op, &step)) continue;
        if (!nearest_out->pattern || step.cut > nearest_out->cut ||
            (step.cut == nearest_out->cut && step.n_ops > nearest_out->n_ops))
            *nearest_out = step;
    }
    matcher->claimed[op] = was_claimed;
}
