/* Why the order is right: partitions are listed by the topological position of their last op.
 *
 * Only the outputs of its last op leave a partition (the matcher's closing rule), and its last op in topological order is
 * that op: every other op of it leads to the last one through values used inside only, or is a recomputed one that feeds such
 * an op. Let partition P read a value v made in partition R. Then v is an output of last(R), and v's reader x in P comes
 * after last(R) in topological order; last(P) is x or comes after it. So R is listed before P. It follows that the graph of
 * partitions has no cycle, whatever the patterns are, and no check for one is needed.
 *
 * Recomputed ops keep the rule: a partition that lists a Dequantize reads the Dequantize's inputs itself. Where somebody
 * needs the float value, the Dequantize is a partition of its own, of one op, which is its last. */
#include "patterns/partition.h"

#include "base/alloc.h"

#include <string.h>

typedef struct work {
    const qdq_graph *graph;
    qdqi_matcher *matcher;
    qdqi_matcher *inside; /* for the ops of one partition that is split; NULL until there is one */
    qdqi_parts *parts;
    qdqi_part *by_last;      /* position of the last op -> partition; n_ops 0: none */
    uint32_t *needed;        /* value -> 1: some partition reads it as an input */
    uint32_t *needed_inside; /* value -> mark of the split partition in which some child reads it */
    uint32_t mark;           /* of the partition or child being made; counts up */
    uint32_t *part_of_op;    /* op -> mark of the last partition that lists it */
    uint32_t *seen_in;       /* value -> mark of the last partition that has it among inputs or consts */
    uint32_t *inputs;        /* room for the ports of the partition being made */
    uint32_t *consts;
    uint32_t cap;
    qdqi_match_step *ends; /* for an explanation: by position of the last op, then by partition; else NULL */
} work;

static bool reserve_ports(work *w, size_t n) {
    if (n <= w->cap) return true;
    if (n > UINT32_MAX / 2) return false;
    const uint32_t cap = (uint32_t)n * 2;
    uint32_t *inputs = qdqi_realloc_array(w->inputs, cap, sizeof(*inputs));
    if (inputs) w->inputs = inputs;
    uint32_t *consts = qdqi_realloc_array(w->consts, cap, sizeof(*consts));
    if (consts) w->consts = consts;
    if (inputs && consts) w->cap = cap;
    return inputs && consts;
}

static qdq_status keep(work *w, const uint32_t *items, uint32_t n, const uint32_t **out, qdq_error *err) {
    *out = qdqi_arena_dup(&w->parts->arena, items, n * sizeof(*items));
    return *out || n == 0 ? QDQ_OK : QDQI_NO_MEMORY(err);
}

/* Only the last op's outputs can be needed elsewhere. */
static qdq_status find_outputs(work *w, qdqi_part *part, uint32_t last, qdq_error *err) {
    const qdqi_op *op = &w->graph->ops[last];
    uint32_t n = 0;
    if (!reserve_ports(w, op->n_out)) return QDQI_NO_MEMORY(err);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (w->graph->values[op->out[o]].is_output || qdqi_matcher_n_uses(w->matcher, op->out[o]) > 0)
            w->inputs[n++] = op->out[o];
    part->n_outputs = n;
    return keep(w, w->inputs, n, &part->outputs, err);
}

static qdq_status find_inputs(work *w, qdqi_part *part, uint32_t *needed, uint32_t stamp, qdq_error *err) {
    const uint32_t mark = ++w->mark;
    size_t n_ports = 0;
    for (uint32_t i = 0; i < part->n_ops; i++) {
        w->part_of_op[part->ops[i]] = mark;
        n_ports += w->graph->ops[part->ops[i]].n_in;
    }
    if (!reserve_ports(w, n_ports)) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const qdqi_op *op = &w->graph->ops[part->ops[i]];
        for (uint32_t p = 0; p < op->n_in; p++) {
            const uint32_t index = op->in[p];
            if (index == QDQI_NONE || w->seen_in[index] == mark) continue;
            const qdqi_value *value = &w->graph->values[index];
            if (!value->data && value->producer != QDQI_NONE && w->part_of_op[value->producer] == mark) continue;
            w->seen_in[index] = mark;
            if (value->data) {
                w->consts[part->n_consts++] = index;
            } else {
                w->inputs[part->n_inputs++] = index;
                needed[index] = stamp;
            }
        }
    }
    QDQI_TRY(keep(w, w->inputs, part->n_inputs, &part->inputs, err));
    return keep(w, w->consts, part->n_consts, &part->consts, err);
}

static qdq_status add_part(work *w, const char *pattern, qdqi_recipe_fn recipe, uint32_t root, uint32_t n_ops,
                           const uint32_t *ops, qdq_error *err) {
    const uint32_t last = ops[n_ops - 1];
    const uint32_t position = qdqi_matcher_position(w->matcher, last);
    qdqi_part *part = &w->by_last[position];
    *part = (qdqi_part){.pattern = pattern, .recipe = recipe, .root = root, .n_ops = n_ops};
    QDQI_TRY(keep(w, ops, n_ops, &part->ops, err));
    QDQI_TRY(find_inputs(w, part, w->needed, 1, err));
    QDQI_TRY(find_outputs(w, part, last, err));
    w->parts->n++;
    return QDQ_OK;
}

/* ---- partitions that are split: the ordinary entries once more, among their ops alone ---- */

/* In the order of their last ops, for the same reason as above. */
static qdq_status add_child(work *w, qdqi_part *parent, const char *pattern, qdqi_recipe_fn recipe, uint32_t root,
                            uint32_t n_ops, const uint32_t *ops, uint32_t stamp, qdq_error *err) {
    const uint32_t last = ops[n_ops - 1], position = qdqi_matcher_position(w->inside, last);
    qdqi_part child = {.pattern = pattern, .recipe = recipe, .root = root, .n_ops = n_ops};
    QDQI_TRY(keep(w, ops, n_ops, &child.ops, err));
    QDQI_TRY(find_inputs(w, &child, w->needed_inside, stamp, err));
    QDQI_TRY(find_outputs(w, &child, last, err));
    uint32_t at = parent->n_children++;
    for (; at > 0; at--) {
        const qdqi_part *before = &parent->children[at - 1];
        if (qdqi_matcher_position(w->inside, before->ops[before->n_ops - 1]) < position) break;
        parent->children[at] = *before;
    }
    parent->children[at] = child;
    return QDQ_OK;
}

static qdq_status fuse_inside(work *w, qdqi_part *parent, uint32_t stamp, qdq_error *err) {
    for (size_t e = 0; e < qdqi_pattern_count(); e++) {
        const qdqi_pattern *pattern = qdqi_pattern_at(e);
        for (uint32_t i = 0; i < parent->n_ops && !pattern->split; i++) {
            qdqi_match match;
            if (qdqi_matcher_is_claimed(w->inside, parent->ops[i]) ||
                !qdqi_matcher_try(w->inside, pattern, parent->ops[i], NULL, &match))
                continue;
            qdqi_matcher_claim(w->inside);
            QDQI_TRY(
                add_child(w, parent, pattern->name, pattern->recipe, match.root, match.n_ops, match.ops, stamp, err));
        }
    }
    return QDQ_OK;
}

static qdq_status split(work *w, qdqi_part *parent, qdq_error *err) {
    if (!w->inside) QDQI_TRY(qdqi_matcher_create(w->graph, &w->inside, err));
    if (!w->needed_inside) w->needed_inside = qdqi_calloc(w->graph->n_values, sizeof(*w->needed_inside));
    parent->children = qdqi_arena_alloc(&w->parts->arena, parent->n_ops, sizeof(*parent->children));
    if (!w->needed_inside || !parent->children) return QDQI_NO_MEMORY(err);
    const uint32_t stamp = w->mark;
    qdqi_matcher_restrict(w->inside, parent->ops, parent->n_ops);
    QDQI_TRY(fuse_inside(w, parent, stamp, err));
    for (uint32_t i = parent->n_ops; i-- > 0;) {
        const uint32_t index = parent->ops[i];
        const qdqi_op *op = &w->graph->ops[index];
        if (qdqi_matcher_is_claimed(w->inside, index)) continue;
        bool wanted = !qdqi_matcher_is_absorbed(w->inside, index);
        for (uint32_t o = 0; o < op->n_out; o++)
            wanted = wanted || w->needed_inside[op->out[o]] == stamp;
        if (wanted) QDQI_TRY(add_child(w, parent, "single", qdqi_recipe_single, index, 1, &index, stamp, err));
    }
    return QDQ_OK;
}

/* ---- the whole graph ---- */

static void keep_cut(void *user, const qdqi_match_step *step) {
    if (step->cut) *(qdqi_match_step *)user = *step;
}

static qdq_status fuse(work *w, qdq_error *err) {
    qdqi_match_step end;
    const qdqi_match_trace trace = {keep_cut, &end};
    for (size_t e = 0; e < qdqi_pattern_count(); e++) {
        const qdqi_pattern *pattern = qdqi_pattern_at(e);
        for (uint32_t i = 0; i < w->graph->n_ops; i++) {
            const uint32_t root = w->graph->topo[i];
            if (w->graph->ops[root].folded || qdqi_matcher_is_claimed(w->matcher, root)) continue;
            qdqi_match match;
            end = (qdqi_match_step){0};
            if (!qdqi_matcher_try(w->matcher, pattern, root, w->ends != NULL ? &trace : NULL, &match)) continue;
            qdqi_matcher_claim(w->matcher);
            const uint32_t position = qdqi_matcher_position(w->matcher, match.ops[match.n_ops - 1]);
            QDQI_TRY(add_part(w, pattern->name, pattern->recipe, match.root, match.n_ops, match.ops, err));
            if (pattern->split) QDQI_TRY(split(w, &w->by_last[position], err));
            /* a cut counts when the match ends there: a Quantize may have followed */
            if (w->ends != NULL && end.n_ops == match.n_ops) w->ends[position] = end;
        }
    }
    return QDQ_OK;
}

/* Every op that is in no match, and every recomputed op whose value somebody reads. Consumers first: an op that becomes a
 * partition here may need the value of a recomputed one before it. */
static qdq_status add_singles(work *w, qdq_error *err) {
    for (uint32_t i = w->graph->n_ops; i-- > 0;) {
        const uint32_t index = w->graph->topo[i];
        const qdqi_op *op = &w->graph->ops[index];
        if (op->folded || qdqi_matcher_is_claimed(w->matcher, index)) continue;
        bool wanted = !qdqi_matcher_is_absorbed(w->matcher, index);
        for (uint32_t o = 0; o < op->n_out; o++)
            wanted = wanted || w->needed[op->out[o]] || w->graph->values[op->out[o]].is_output;
        if (wanted) QDQI_TRY(add_part(w, "single", qdqi_recipe_single, index, 1, &index, err));
    }
    return QDQ_OK;
}

static qdq_status list_in_order(work *w, qdq_error *err) {
    qdqi_parts *parts = w->parts;
    parts->parts = qdqi_arena_alloc(&parts->arena, parts->n, sizeof(*parts->parts));
    if (!parts->parts && parts->n) return QDQI_NO_MEMORY(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->graph->n_ops; i++) {
        if (w->by_last[i].n_ops == 0) continue;
        parts->parts[n] = w->by_last[i];
        parts->parts[n].id = n;
        for (uint32_t c = 0; c < parts->parts[n].n_children; c++)
            parts->parts[n].children[c].id = n;
        if (w->ends != NULL) w->ends[n] = w->ends[i]; /* n <= i */
        n++;
    }
    parts->n_attempts = qdqi_matcher_n_attempts(w->matcher);
    if (w->inside) parts->n_attempts += qdqi_matcher_n_attempts(w->inside);
    return QDQ_OK;
}

static qdq_status partition(work *w, qdq_policy policy, bool explain, qdq_error *err) {
    QDQI_TRY(qdqi_matcher_create(w->graph, &w->matcher, err));
    w->parts = qdqi_calloc(1, sizeof(*w->parts));
    w->by_last = qdqi_calloc(w->graph->n_ops, sizeof(*w->by_last));
    w->needed = qdqi_calloc(w->graph->n_values, sizeof(*w->needed));
    w->part_of_op = qdqi_calloc(w->graph->n_ops, sizeof(*w->part_of_op));
    w->seen_in = qdqi_calloc(w->graph->n_values, sizeof(*w->seen_in));
    if (!w->parts || !w->by_last || !w->needed || !w->part_of_op || !w->seen_in) return QDQI_NO_MEMORY(err);
    if (explain) {
        w->ends = qdqi_arena_alloc(&w->parts->arena, (size_t)w->graph->n_ops + 1, sizeof *w->ends);
        if (w->ends == NULL) return QDQI_NO_MEMORY(err);
    }
    if (policy == QDQ_POLICY_FUSION) QDQI_TRY(fuse(w, err));
    QDQI_TRY(add_singles(w, err));
    return list_in_order(w, err);
}

static qdq_status run(const qdq_graph *graph, qdq_policy policy, qdqi_parts **parts_out,
                      const qdqi_match_step **ends_out, qdqi_matcher **matcher_out, qdq_error *err) {
    if (policy != QDQ_POLICY_FUSION && policy != QDQ_POLICY_SINGLE)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "partition policy is %d, expected 0 (fusion) or 1 (single)", (int)policy);
    work w = {.graph = graph};
    const qdq_status status = partition(&w, policy, ends_out != NULL, err);
    qdqi_matcher_destroy(&w.inside);
    qdqi_free(w.needed_inside);
    qdqi_free(w.by_last);
    qdqi_free(w.needed);
    qdqi_free(w.part_of_op);
    qdqi_free(w.seen_in);
    qdqi_free(w.inputs);
    qdqi_free(w.consts);
    if (status == QDQ_OK && matcher_out != NULL)
        *matcher_out = w.matcher;
    else
        qdqi_matcher_destroy(&w.matcher);
    if (status != QDQ_OK) {
        qdqi_parts_destroy(&w.parts);
        return status;
    }
    if (ends_out != NULL) *ends_out = w.ends;
    *parts_out = w.parts;
    return QDQ_OK;
}

qdq_status qdqi_partition_graph(const qdq_graph *graph, qdq_policy policy, qdqi_parts **parts_out, qdq_error *err) {
    return run(graph, policy, parts_out, NULL, NULL, err);
}

qdq_status qdqi_partition_explain(const qdq_graph *graph, qdq_policy policy, qdqi_parts **parts_out,
                                  const qdqi_match_step **ends_out, qdqi_matcher **matcher_out, qdq_error *err) {
    return run(graph, policy, parts_out, ends_out, matcher_out, err);
}

void qdqi_parts_destroy(qdqi_parts **parts) {
    if (!parts || !*parts) return;
    qdqi_arena_free(&(*parts)->arena);
    qdqi_free(*parts);
    *parts = NULL;
}
