#include "api/api_objects.h"

#include "base/alloc.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

typedef struct part_note {
    const char *pattern;
    char *ops, *impl;
    const char *name; /* of an op: lives in the graph */
    uint32_t n_ops;
    bool folded;
} part_note;

struct qdq_session {
    qdqi_program program;
    uint32_t n_parts;
    part_note *parts;
    bool profile;
    _Atomic uint64_t *part_ns;
    _Atomic uint64_t n_runs;
};

static qdq_status open_ports(qdqi_program *program, qdqi_lower *lw, const qdq_graph *g, qdq_error *err) {
    for (uint32_t i = 0; i < g->n_values; i++) {
        const qdqi_value *v = &g->values[i];
        if (!qdqi_dims_known(&v->desc) && (v->n_uses != 0 || v->is_output))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "session: tensor %" PRIu64 " \"%s\": shape %s is not known",
                             v->desc.id, v->name, qdqi_shape_str(v->desc.ndims, v->desc.dims).s);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++)
        QDQI_TRY(qdqi_program_input(program, lw, g->inputs[i], &g->values[g->inputs[i]].desc, err));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        qdq_tensor_desc desc = g->values[g->outputs[i]].desc;
        if (desc.layout != QDQ_LAYOUT_STRIDED || qdqi_overlaps(&desc)) qdqi_set_dense(&desc);
        QDQI_TRY(qdqi_program_output(program, lw, g->outputs[i], &desc, err));
    }
    return QDQ_OK;
}

static qdq_status note_parts(qdq_session *s, const qdqi_parts *parts, const qdq_graph *g, qdq_error *err) {
    s->parts = qdqi_calloc(parts->n, sizeof *s->parts);
    s->part_ns = qdqi_calloc(parts->n, sizeof *s->part_ns);
    qdqi_text *impls = qdqi_calloc(parts->n, sizeof *impls);
    if (s->parts == NULL || s->part_ns == NULL || impls == NULL) {
        qdqi_free(impls);
        return QDQI_NO_MEMORY(err);
    }
    s->n_parts = parts->n;
    for (size_t i = 0; i < qdqi_plan_n_steps(s->program.plan); i++)
        qdqi_program_note(&s->program, i, &impls[qdqi_plan_step_part(s->program.plan, i)]);
    bool failed = false;
    for (uint32_t i = 0; i < parts->n; i++) {
        const qdqi_part *part = &parts->parts[i];
        part_note *note = &s->parts[i];
        qdqi_text ops = {0}, *impl = &impls[part->id];
        note->pattern = part->pattern;
        note->name = g->ops[part->root].name;
        note->n_ops = part->n_ops;
        for (uint32_t k = 0; k < part->n_ops; k++)
            qdqi_text_add(&ops, "%s%s", k == 0 ? "" : ";", g->ops[part->ops[k]].schema->name);
        note->folded = impl->n == 0 && part->n_inputs == 0;
        if (impl->n == 0) qdqi_text_add(impl, "%s", note->folded ? "folded at compile" : "no work: a view");
        note->ops = ops.s;
        note->impl = impl->s;
        failed = failed || ops.failed || impl->failed;
    }
    qdqi_free(impls);
    return failed ? QDQI_NO_MEMORY(err) : QDQ_OK;
}

qdq_status qdqi_program_of_graph(qdqi_program *program, qdqi_lower *lw, const qdq_graph *graph, qdq_engine *engine,
                                 const qdqi_parts *parts, bool reference_only, qdqi_notes *notes, qdq_error *err) {
    QDQI_TRY(qdqi_program_open(program, lw, graph, engine, NULL, err));
    lw->reference_only = reference_only;
    lw->notes = notes;
    QDQI_TRY(open_ports(program, lw, graph, err));
    for (uint32_t i = 0; i < parts->n; i++) {
        const qdqi_op *root = &graph->ops[parts->parts[i].root];
        if ((root->schema->flags & QDQI_F_NO_OUTPUT) != 0) continue; /* End marks an output, it computes nothing */
        if ((root->schema->flags & QDQI_F_OPAQUE) != 0)
            return qdqi_fail(err, QDQ_E_UNSUPPORTED, "op %" PRIu64 " \"%s\" (%s) has no meaning to run", root->id,
                             root->name, root->schema->name);
        QDQI_TRY(qdqi_lower_part(lw, &parts->parts[i], err));
    }
    return qdqi_program_close(program, lw, err);
}

qdq_status qdq_session_create(const qdq_graph *graph, qdq_engine *engine, const qdq_session_options *options,
                              qdq_session **session_out, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, engine);
    QDQI_NOT_NULL(err, session_out);
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "session: the graph is not finalized");
    qdq_session_options opt;
    QDQI_TRY(qdqi_options_read(options, "qdq_session_options", &opt, sizeof opt, err));
    qdq_session *s = qdqi_calloc(1, sizeof *s);
    if (s == NULL) return QDQI_NO_MEMORY(err);
    qdqi_lower lw = {0};
    qdqi_parts *parts = NULL;
    s->profile = opt.profile;
    const int threads = qdqi_threads_enter(engine);
    qdq_status st = qdqi_partition_graph(graph, opt.reference ? QDQ_POLICY_SINGLE : opt.policy, &parts, err);
    if (st == QDQ_OK) st = qdqi_program_of_graph(&s->program, &lw, graph, engine, parts, opt.reference, NULL, err);
    if (st == QDQ_OK) st = note_parts(s, parts, graph, err);
    qdqi_lower_free(&lw);
    qdqi_parts_destroy(&parts);
    qdqi_threads_leave(engine, threads);
    if (st != QDQ_OK) {
        qdq_session_destroy(&s);
        return st;
    }
    *session_out = s;
    return QDQ_OK;
}

void qdq_session_destroy(qdq_session **session) {
    if (session == NULL || *session == NULL) return;
    qdq_session *s = *session;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        qdqi_free(s->parts[i].ops);
        qdqi_free(s->parts[i].impl);
    }
    qdqi_free(s->parts);
    qdqi_free(s->part_ns);
    if (s->program.graph != NULL) qdqi_program_free(&s->program);
    qdqi_free(s);
    *session = NULL;
}

size_t qdq_session_n_inputs(const qdq_session *session) {
    return session == NULL ? 0 : session->program.n_inputs;
}
size_t qdq_session_n_outputs(const qdq_session *session) {
    return session == NULL ? 0 : session->program.n_outputs;
}

qdq_status qdq_session_input_desc(const qdq_session *session, size_t i, qdq_tensor_desc *desc_out,
                                  const char **name_out, qdq_error *err) {
    QDQI_NOT_NULL(err, session);
    QDQI_NOT_NULL(err, desc_out);
    const qdqi_program *p = &session->program;
    if (i >= p->n_inputs)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "session has %u inputs, asked for number %zu", p->n_inputs, i);
    *desc_out = p->inputs[i];
    if (name_out != NULL) *name_out = p->graph->values[p->graph->inputs[i]].name;
    return QDQ_OK;
}

qdq_status qdq_session_output_desc(const qdq_session *session, size_t i, qdq_tensor_desc *desc_out,
                                   const char **name_out, qdq_error *err) {
    QDQI_NOT_NULL(err, session);
    QDQI_NOT_NULL(err, desc_out);
    const qdqi_program *p = &session->program;
    if (i >= p->n_outputs)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "session has %u outputs, asked for number %zu", p->n_outputs, i);
    *desc_out = p->outputs[i];
    if (name_out != NULL) *name_out = p->graph->values[p->graph->outputs[i]].name;
    return QDQ_OK;
}

qdq_status qdq_session_run(const qdq_session *session, const void *const *inputs, size_t n_inputs, void *const *outputs,
                           size_t n_outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, session);
    const qdqi_program *p = &session->program;
    if (!session->profile) return qdqi_program_run(p, inputs, n_inputs, outputs, n_outputs, NULL, err);
    qdqi_profile profile = {session->part_ns, session->n_parts};
    QDQI_TRY(qdqi_program_run(p, inputs, n_inputs, outputs, n_outputs, &profile, err));
    /* counters are the one thing of a session that runs change */
    atomic_fetch_add_explicit((_Atomic uint64_t *)(uintptr_t)&session->n_runs, 1, memory_order_relaxed);
    return QDQ_OK;
}

size_t qdq_session_n_parts(const qdq_session *session) {
    return session == NULL ? 0 : session->n_parts;
}

qdq_status qdq_session_part(const qdq_session *session, size_t i, qdq_session_part_info *info_out, qdq_error *err) {
    QDQI_NOT_NULL(err, session);
    QDQI_NOT_NULL(err, info_out);
    if (i >= session->n_parts)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "session has %u partitions, asked for number %zu", session->n_parts, i);
    const part_note *note = &session->parts[i];
    *info_out = (qdq_session_part_info){
        .pattern = note->pattern,
        .ops = note->ops == NULL ? "" : note->ops,
        .impl = note->impl == NULL ? "" : note->impl,
        .name = note->name,
        .n_ops = note->n_ops,
        .folded = note->folded,
        .n_runs = atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&session->n_runs, memory_order_relaxed),
        .total_ms = (double)atomic_load_explicit(&session->part_ns[i], memory_order_relaxed) * 1e-6};
    return QDQ_OK;
}
