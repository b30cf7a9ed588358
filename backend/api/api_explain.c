/* Explanations: partition with the matcher kept, lower with notes, and copy what there is to tell into one arena. */
#include "api/api_objects.h"

#include "base/alloc.h"
#include "base/options.h"

#include <inttypes.h>
#include <string.h>

struct qdq_explanation {
    const qdq_graph *graph; /* retained: names live there */
    qdqi_arena arena;
    const char *compile_error;
    uint32_t n_ops, n_parts;
    qdq_explain_op *ops;
    qdq_explain_part *parts;
    qdq_explain_tensor *tensors; /* by value index */
};

typedef struct builder {
    qdq_explanation *e;
    const qdq_graph *graph;
    const qdqi_parts *parts;
    const qdqi_match_step *ends; /* by partition */
    qdqi_matcher *matcher;
    qdq_policy policy;
    qdqi_notes notes;
    bool *alone;           /* by op: lowered on its own */
    uint32_t *single;      /* by op: 1 + the partition of its own; 0: none */
    uint32_t *first_end;   /* by op: 1 + the last partition whose chain it ended; 0: none */
    uint32_t *next_end;    /* by partition: the next of that list */
    uint32_t *first_notes; /* by partition: its first refusal; n_parts + 1 of them */
    qdqi_text text;
} builder;

/* ---- reasons ---------------------------------------------------------------------------------------------------- */

static const char *wanted_at(const qdqi_match_step *step) {
    const qdqi_pnode *node = &step->pattern->nodes[step->node];
    if (node->set != NULL) return node->set->name;
    const qdqi_schema *schema = qdqi_schema_of(node->kind);
    return schema == NULL ? "" : schema->name;
}

static void text_of(builder *b, const qdq_explain_reason *r) {
    qdqi_text *t = &b->text;
    t->n = 0;
    qdqi_text_add(t, "%s: %s", r->word, r->sentence);
    if (r->who[0] == '\0') return;
    qdqi_text_add(t, " (%s", r->who);
    if (r->source == QDQ_EXPLAIN_END) qdqi_text_add(t, " of partition %zu ended here", r->part);
    if (r->source != QDQ_EXPLAIN_REFUSAL) {
        qdqi_text_add(t, ", %zu op%s matched", r->n_matched, r->n_matched == 1 ? "" : "s");
        if (r->wanted[0] != '\0') qdqi_text_add(t, ", wanted %s", r->wanted);
        if (r->guard != NULL) qdqi_text_add(t, " with %s: %s", r->guard, r->guard_text);
    }
    if (r->op != QDQ_EXPLAIN_NONE) {
        const qdq_explain_op *op = &b->e->ops[r->op];
        qdqi_text_add(t, ", at op %" PRIu64 " \"%s\" (%s)", op->id, op->name, op->kind);
        if (strcmp(r->word, qdqi_why_word(QDQI_WHY_CLAIMED)) == 0 && op->part != QDQ_EXPLAIN_NONE)
            qdqi_text_add(t, " of partition %zu", op->part);
    }
    if (r->tensor != NULL) qdqi_text_add(t, ", tensor %" PRIu64 " \"%s\"", r->tensor->desc.id, r->tensor->name);
    qdqi_text_add(t, ")");
}

static qdq_status close_reason(builder *b, qdq_explain_reason *r, qdq_error *err) {
    text_of(b, r);
    r->text = b->text.failed ? NULL : qdqi_arena_strdup(&b->e->arena, b->text.s);
    return r->text == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
}

static qdq_status match_reason(builder *b, const qdqi_match_step *step, qdq_explain_source source, size_t part,
                               qdq_explain_reason *r, qdq_error *err) {
    const bool kept_apart = source == QDQ_EXPLAIN_NEAREST && b->policy == QDQ_POLICY_SINGLE;
    const qdqi_why why = kept_apart ? QDQI_WHY_POLICY : step->pattern == NULL ? QDQI_WHY_NO_ENTRY : step->why;
    const char *who = step->pattern == NULL || (kept_apart && !step->cut) ? "" : step->pattern->name;
    *r = (qdq_explain_reason){.source = source,
                              .word = qdqi_why_word(why),
                              .sentence = qdqi_why_text(why),
                              .who = who,
                              .wanted = "",
                              .part = part,
                              .op = QDQ_EXPLAIN_NONE};
    if (step->pattern != NULL) r->n_matched = step->n_ops;
    if (step->pattern != NULL && !kept_apart) {
        r->wanted = wanted_at(step);
        if (step->op != QDQI_NONE) r->op = step->op;
        if (step->value != QDQI_NONE) r->tensor = &b->e->tensors[step->value];
        if (step->guard != NULL) {
            r->guard = step->guard->name;
            r->guard_text = qdqi_guard_text(step->guard);
        }
    }
    return close_reason(b, r, err);
}

static qdq_status refusal_reason(builder *b, const qdqi_refusal *refusal, qdq_explain_reason *r, qdq_error *err) {
    const char *sentence = qdqi_refusal_text(refusal->why);
    *r = (qdq_explain_reason){.source = QDQ_EXPLAIN_REFUSAL,
                              .word = refusal->why,
                              .sentence = sentence == NULL ? "" : sentence,
                              .who = refusal->who,
                              .wanted = "",
                              .part = QDQ_EXPLAIN_NONE,
                              .op = refusal->op == QDQI_NONE ? QDQ_EXPLAIN_NONE : refusal->op};
    return close_reason(b, r, err);
}

static bool has_end(const builder *b, uint32_t part) {
    return b->ends[part].pattern != NULL && b->ends[part].why != QDQI_WHY_NONE;
}

static qdq_status part_reasons(builder *b, uint32_t index, qdq_error *err) {
    qdq_explain_part *part = &b->e->parts[index];
    const uint32_t from = b->first_notes[index], to = b->first_notes[index + 1];
    const size_t n = to - from + (has_end(b, index) ? 1u : 0u);
    qdq_explain_reason *reasons = qdqi_arena_alloc(&b->e->arena, n + 1, sizeof *reasons);
    if (reasons == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = from; i < to; i++)
        QDQI_TRY(refusal_reason(b, &b->notes.refusals[i], &reasons[i - from], err));
    if (has_end(b, index)) QDQI_TRY(match_reason(b, &b->ends[index], QDQ_EXPLAIN_END, index, &reasons[n - 1], err));
    part->reasons = reasons;
    part->n_reasons = n;
    return QDQ_OK;
}

static bool is_about(const qdqi_refusal *refusal, uint32_t op, bool is_single) {
    return refusal->op == op || (refusal->op == QDQI_NONE && !is_single);
}

/* An op that no candidate refused, alone inside of a partition that is split. */
static qdq_status piece_reason(builder *b, uint32_t part, qdq_explain_reason *r, qdq_error *err) {
    *r = (qdq_explain_reason){.source = QDQ_EXPLAIN_NEAREST,
                              .word = qdqi_why_word(QDQI_WHY_PIECE),
                              .sentence = qdqi_why_text(QDQI_WHY_PIECE),
                              .who = b->parts->parts[part].pattern,
                              .wanted = "",
                              .n_matched = b->parts->parts[part].n_ops,
                              .part = QDQ_EXPLAIN_NONE,
                              .op = QDQ_EXPLAIN_NONE};
    return close_reason(b, r, err);
}

/* Nearest entry, chains that it ended, refusals of its partition that are about it. */
static qdq_status op_reasons(builder *b, uint32_t index, qdq_error *err) {
    qdq_explain_op *op = &b->e->ops[index];
    if (op->how != QDQ_EXPLAIN_ALONE && op->how != QDQ_EXPLAIN_VIEW) return QDQ_OK;
    const bool single = b->single[index] != 0;
    const uint32_t part = single ? b->single[index] - 1 : (uint32_t)op->part;
    size_t n = single ? 1 : 0;
    for (uint32_t p = b->first_end[index]; p != 0; p = b->next_end[p - 1])
        n++;
    for (uint32_t i = b->first_notes[part]; i < b->first_notes[part + 1]; i++)
        n += is_about(&b->notes.refusals[i], index, single);
    qdq_explain_reason *r = qdqi_arena_alloc(&b->e->arena, n + 1, sizeof *r);
    if (r == NULL) return QDQI_NO_MEMORY(err);
    op->reasons = r;
    op->n_reasons = n == 0 ? 1 : n;
    if (n == 0) return piece_reason(b, part, r, err);
    if (single) {
        qdqi_match_step step;
        qdqi_matcher_nearest(b->matcher, index, &step);
        QDQI_TRY(match_reason(b, &step, QDQ_EXPLAIN_NEAREST, QDQ_EXPLAIN_NONE, r++, err));
    }
    for (uint32_t p = b->first_end[index]; p != 0; p = b->next_end[p - 1])
        QDQI_TRY(match_reason(b, &b->ends[p - 1], QDQ_EXPLAIN_END, p - 1, r++, err));
    for (uint32_t i = b->first_notes[part]; i < b->first_notes[part + 1]; i++)
        if (is_about(&b->notes.refusals[i], index, single))
            QDQI_TRY(refusal_reason(b, &b->notes.refusals[i], r++, err));
    return QDQ_OK;
}

/* ---- tensors, ops, partitions ----------------------------------------------------------------------------------- */

static qdq_status make_tensors(builder *b, qdqi_lower *lw, bool compiled, qdq_error *err) {
    b->e->tensors = qdqi_arena_alloc(&b->e->arena, (size_t)b->graph->n_values + 1, sizeof *b->e->tensors);
    if (b->e->tensors == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < b->graph->n_values; i++) {
        const qdqi_value *value = &b->graph->values[i];
        const qdqi_lval *lv = compiled ? qdqi_lower_val(lw, i) : NULL;
        qdq_explain_tensor *t = &b->e->tensors[i];
        *t = (qdq_explain_tensor){.desc = value->desc,
                                  .name = value->name,
                                  .is_constant = value->data != NULL,
                                  .is_input = value->is_input,
                                  .is_output = value->is_output};
        if (lv == NULL) continue;
        t->desc = lv->is_port_out ? lv->port_desc : lv->desc;
        t->desc.id = value->desc.id;
        t->desc.property = value->desc.property;
        t->is_constant = lv->data != NULL;
    }
    return QDQ_OK;
}

static qdq_status tensors_of(builder *b, const uint32_t *values, size_t n, const qdq_explain_tensor *const **out,
                             qdq_error *err) {
    const qdq_explain_tensor **tensors = qdqi_arena_alloc(&b->e->arena, n + 1, sizeof(const qdq_explain_tensor *));
    if (tensors == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < n; i++)
        tensors[i] = values[i] == QDQI_NONE ? NULL : &b->e->tensors[values[i]];
    *out = tensors;
    return QDQ_OK;
}

static qdq_status make_ops(builder *b, qdq_error *err) {
    b->e->n_ops = b->graph->n_ops;
    b->e->ops = qdqi_arena_alloc(&b->e->arena, (size_t)b->graph->n_ops + 1, sizeof *b->e->ops);
    if (b->e->ops == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < b->graph->n_ops; i++) {
        const qdqi_op *from = &b->graph->ops[i];
        qdq_explain_op *op = &b->e->ops[i];
        *op = (qdq_explain_op){.id = from->id,
                               .kind = from->schema->name,
                               .name = from->name,
                               .how = QDQ_EXPLAIN_FOLDED,
                               .part = QDQ_EXPLAIN_NONE,
                               .n_inputs = from->n_in,
                               .n_outputs = from->n_out};
        QDQI_TRY(tensors_of(b, from->in, from->n_in, &op->inputs, err));
        QDQI_TRY(tensors_of(b, from->out, from->n_out, &op->outputs, err));
    }
    return QDQ_OK;
}

/* The steps of a partition need not stand together: a value is made where it is first wanted. */
static qdq_status make_steps(builder *b, const qdqi_program *program, qdq_error *err) {
    const size_t n = qdqi_plan_n_steps(program->plan);
    for (size_t i = 0; i < n; i++)
        b->e->parts[qdqi_plan_step_part(program->plan, i)].n_steps++;
    qdq_explain_step *steps = qdqi_arena_alloc(&b->e->arena, n + 1, sizeof *steps);
    if (steps == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t p = 0; p < b->e->n_parts; p++) {
        b->e->parts[p].steps = steps;
        steps += b->e->parts[p].n_steps;
        b->e->parts[p].n_steps = 0;
    }
    for (size_t i = 0; i < n; i++) {
        qdq_explain_part *part = &b->e->parts[qdqi_plan_step_part(program->plan, i)];
        const char *provider = qdqi_arena_strdup(&b->e->arena, qdqi_plan_step_provider(program->plan, i));
        const char *note = qdqi_arena_strdup(&b->e->arena, qdqi_plan_step_note(program->plan, i));
        if (provider == NULL || note == NULL) return QDQI_NO_MEMORY(err);
        ((qdq_explain_step *)(uintptr_t)part->steps)[part->n_steps++] = (qdq_explain_step){provider, note};
    }
    return QDQ_OK;
}

static qdq_explain_how how_of(const builder *b, const qdqi_part *from, size_t n_steps, bool compiled) {
    if (from->n_inputs == 0 && n_steps == 0) return QDQ_EXPLAIN_FOLDED;
    if (from->recipe == qdqi_recipe_single) return compiled && n_steps == 0 ? QDQ_EXPLAIN_VIEW : QDQ_EXPLAIN_ALONE;
    return b->notes.refused[from->id] ? QDQ_EXPLAIN_ALONE : QDQ_EXPLAIN_FUSED;
}

/* An op that is in several partitions shows the one that costs most. */
static void join_how(qdq_explain_op *op, qdq_explain_how how) {
    static const int rank[] = {
        [QDQ_EXPLAIN_FOLDED] = 0, [QDQ_EXPLAIN_FUSED] = 1, [QDQ_EXPLAIN_VIEW] = 2, [QDQ_EXPLAIN_ALONE] = 3};
    if (rank[how] > rank[op->how]) op->how = how;
}

static qdq_status make_part(builder *b, uint32_t index, bool compiled, qdq_error *err) {
    const qdqi_part *from = &b->parts->parts[index];
    qdq_explain_part *part = &b->e->parts[index];
    size_t *ops = qdqi_arena_alloc(&b->e->arena, from->n_ops, sizeof *ops);
    if (ops == NULL) return QDQI_NO_MEMORY(err);
    part->pattern = from->pattern;
    part->recipe = qdqi_recipe_name(from->recipe);
    part->how = how_of(b, from, part->n_steps, compiled);
    part->root = from->root;
    part->ops = ops;
    part->n_ops = from->n_ops;
    part->n_inputs = from->n_inputs;
    part->n_constants = from->n_consts;
    part->n_outputs = from->n_outputs;
    QDQI_TRY(tensors_of(b, from->inputs, from->n_inputs, &part->inputs, err));
    QDQI_TRY(tensors_of(b, from->consts, from->n_consts, &part->constants, err));
    QDQI_TRY(tensors_of(b, from->outputs, from->n_outputs, &part->outputs, err));
    for (uint32_t k = 0; k < from->n_ops; k++) {
        const uint32_t i = from->ops[k];
        ops[k] = i;
        if (b->e->ops[i].part == QDQ_EXPLAIN_NONE) b->e->ops[i].part = index;
        const bool apart = part->how == QDQ_EXPLAIN_FUSED && b->alone[i];
        join_how(&b->e->ops[i], apart ? QDQ_EXPLAIN_ALONE : part->how);
        if (from->recipe == qdqi_recipe_single) b->single[i] = index + 1;
    }
    if (has_end(b, index) && b->ends[index].op != QDQI_NONE) {
        b->next_end[index] = b->first_end[b->ends[index].op];
        b->first_end[b->ends[index].op] = index + 1;
    }
    return QDQ_OK;
}

static qdq_status make_all(builder *b, const qdqi_program *program, qdqi_lower *lw, bool compiled, qdq_error *err) {
    qdq_explanation *e = b->e;
    const size_t n_ops = (size_t)b->graph->n_ops + 1;
    e->n_parts = b->parts->n;
    e->parts = qdqi_arena_alloc(&e->arena, (size_t)e->n_parts + 1, sizeof *e->parts);
    b->alone = qdqi_arena_alloc(&e->arena, n_ops, sizeof *b->alone);
    b->single = qdqi_arena_alloc(&e->arena, n_ops, sizeof *b->single);
    b->first_end = qdqi_arena_alloc(&e->arena, n_ops, sizeof *b->first_end);
    b->next_end = qdqi_arena_alloc(&e->arena, (size_t)e->n_parts + 1, sizeof *b->next_end);
    b->first_notes = qdqi_arena_alloc(&e->arena, (size_t)e->n_parts + 1, sizeof *b->first_notes);
    if (e->parts == NULL || b->alone == NULL || b->single == NULL || b->first_end == NULL || b->next_end == NULL ||
        b->first_notes == NULL || b->notes.failed)
        return QDQI_NO_MEMORY(err);
    /* partitions are lowered in order, so their notes are in order; those of a graph that failed half-way say nothing */
    if (!compiled) b->notes.n_refusals = b->notes.n_alone = 0;
    for (uint32_t i = 0; i < b->notes.n_alone; i++)
        b->alone[b->notes.alone[i]] = true;
    for (uint32_t p = 0, i = 0; p <= e->n_parts; p++) {
        while (i < b->notes.n_refusals && b->notes.refusals[i].part < p)
            i++;
        b->first_notes[p] = i;
    }
    QDQI_TRY(make_tensors(b, lw, compiled, err));
    QDQI_TRY(make_ops(b, err));
    if (compiled) QDQI_TRY(make_steps(b, program, err));
    for (uint32_t p = 0; p < e->n_parts; p++)
        QDQI_TRY(make_part(b, p, compiled, err));
    for (uint32_t p = 0; p < e->n_parts; p++)
        QDQI_TRY(part_reasons(b, p, err));
    for (uint32_t i = 0; i < e->n_ops; i++)
        QDQI_TRY(op_reasons(b, i, err));
    return QDQ_OK;
}

static qdq_status explain(builder *b, qdq_engine *engine, bool reference, qdq_error *err) {
    qdqi_program program = {0};
    qdqi_lower lw = {0};
    qdq_error why = {0};
    b->notes.refused = qdqi_calloc((size_t)b->parts->n + 1, sizeof *b->notes.refused);
    if (b->notes.refused == NULL) return QDQI_NO_MEMORY(err);
    const int threads = qdqi_threads_enter(engine);
    qdq_status st = qdqi_program_of_graph(&program, &lw, b->graph, engine, b->parts, reference, &b->notes, &why);
    qdqi_threads_leave(engine, threads);
    const bool compiled = st == QDQ_OK;
    if (st == QDQ_E_NO_MEMORY) {
        if (err != NULL) *err = why;
    } else {
        st = QDQ_OK;
        if (!compiled) {
            b->e->compile_error = qdqi_arena_strdup(&b->e->arena, why.text);
            if (b->e->compile_error == NULL) st = QDQI_NO_MEMORY(err);
        }
        if (st == QDQ_OK) st = make_all(b, &program, &lw, compiled, err);
    }
    qdqi_lower_free(&lw);
    if (program.graph != NULL) qdqi_program_free(&program);
    return st;
}

qdq_status qdq_explanation_create(const qdq_graph *graph, qdq_engine *engine, const qdq_session_options *options,
                                  qdq_explanation **explanation_out, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, engine);
    QDQI_NOT_NULL(err, explanation_out);
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "explanation: the graph is not finalized");
    qdq_session_options opt;
    QDQI_TRY(qdqi_options_read(options, "qdq_session_options", &opt, sizeof opt, err));
    qdq_explanation *e = qdqi_calloc(1, sizeof *e);
    if (e == NULL) return QDQI_NO_MEMORY(err);
    qdqi_graph_retain(graph);
    e->graph = graph;
    builder b = {.e = e, .graph = graph, .policy = opt.reference ? QDQ_POLICY_SINGLE : opt.policy};
    qdqi_parts *parts = NULL;
    qdq_status st = qdqi_partition_explain(graph, b.policy, &parts, &b.ends, &b.matcher, err);
    b.parts = parts;
    if (st == QDQ_OK) st = explain(&b, engine, opt.reference, err);
    qdqi_text_free(&b.text);
    qdqi_notes_free(&b.notes);
    qdqi_matcher_destroy(&b.matcher);
    qdqi_parts_destroy(&parts);
    if (st != QDQ_OK) {
        qdq_explanation_destroy(&e);
        return st;
    }
    *explanation_out = e;
    return QDQ_OK;
}

void qdq_explanation_destroy(qdq_explanation **explanation) {
    if (explanation == NULL || *explanation == NULL) return;
    qdqi_graph_release((*explanation)->graph);
    qdqi_arena_free(&(*explanation)->arena);
    qdqi_free(*explanation);
    *explanation = NULL;
}

const char *qdq_explanation_compile_error(const qdq_explanation *explanation) {
    return explanation == NULL ? NULL : explanation->compile_error;
}

size_t qdq_explanation_n_ops(const qdq_explanation *explanation) {
    return explanation == NULL ? 0 : explanation->n_ops;
}

size_t qdq_explanation_n_parts(const qdq_explanation *explanation) {
    return explanation == NULL ? 0 : explanation->n_parts;
}

const qdq_explain_op *qdq_explanation_op(const qdq_explanation *explanation, size_t i) {
    return explanation == NULL || i >= explanation->n_ops ? NULL : &explanation->ops[i];
}

const qdq_explain_part *qdq_explanation_part(const qdq_explanation *explanation, size_t i) {
    return explanation == NULL || i >= explanation->n_parts ? NULL : &explanation->parts[i];
}
