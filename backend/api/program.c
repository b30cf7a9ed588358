#include "api/api_objects.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Values that the ops of a partition mention, ascending, once each. */
static uint32_t *touched_values(const qdq_graph *graph, const qdqi_part *part, uint32_t *n_out) {
    uint32_t cap = 0, n = 0, unique = 0;
    for (uint32_t i = 0; i < part->n_ops; i++)
        cap += graph->ops[part->ops[i]].n_in + graph->ops[part->ops[i]].n_out;
    uint32_t *values = qdqi_malloc((cap == 0 ? 1 : cap) * sizeof *values);
    if (values == NULL) return NULL;
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const qdqi_op *op = &graph->ops[part->ops[i]];
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k] != QDQI_NONE) values[n++] = op->in[k];
        for (uint32_t k = 0; k < op->n_out; k++)
            values[n++] = op->out[k];
    }
    qsort(values, n, sizeof *values, by_value);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || values[i] != values[i - 1]) values[unique++] = values[i];
    *n_out = unique;
    return values;
}

qdq_status qdqi_program_open(qdqi_program *program, qdqi_lower *lw, const qdq_graph *graph, qdq_engine *engine,
                             const qdqi_part *part, qdq_error *err) {
    *lw = (qdqi_lower){.graph = graph, .engine = engine};
    qdqi_graph_retain(graph);
    qdqi_engine_retain(engine);
    *program = (qdqi_program){.graph = graph, .engine = engine};
    QDQI_TRY(qdqi_plan_create(engine, &program->plan, err));
    lw->plan = program->plan;
    uint32_t *values = NULL;
    lw->n_vals = graph->n_values;
    if (part != NULL) {
        values = touched_values(graph, part, &lw->n_vals);
        if (values == NULL) return QDQI_NO_MEMORY(err);
    }
    lw->vals = qdqi_calloc(lw->n_vals, sizeof *lw->vals);
    if (lw->vals == NULL) {
        qdqi_free(values);
        return QDQI_NO_MEMORY(err);
    }
    for (uint32_t i = 0; i < lw->n_vals; i++) {
        const uint32_t v = values != NULL ? values[i] : i;
        const qdqi_value *value = &graph->values[v];
        qdqi_lval *lv = &lw->vals[i];
        *lv = (qdqi_lval){.value = v, .desc = value->desc, .buf = QDQI_NO_BUF, .data = value->data};
        /* how an intermediate value is laid out is decided here, whatever the graph says about it */
        if ((value->data == NULL || lv->desc.layout != QDQ_LAYOUT_STRIDED) && qdqi_dims_known(&lv->desc))
            qdqi_set_dense(&lv->desc);
    }
    qdqi_free(values);
    const uint32_t n_in = part != NULL ? part->n_inputs : graph->n_inputs;
    const uint32_t n_out = part != NULL ? part->n_outputs : graph->n_outputs;
    program->inputs = qdqi_calloc(n_in, sizeof *program->inputs);
    program->outputs = qdqi_calloc(n_out, sizeof *program->outputs);
    return program->inputs == NULL || program->outputs == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
}

qdq_status qdqi_program_input(qdqi_program *program, qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *desc,
                              qdq_error *err) {
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    size_t bytes;
    lv->desc = *desc;
    if (desc->layout != QDQ_LAYOUT_STRIDED) qdqi_set_dense(&lv->desc);
    QDQI_TRY(qdq_tensor_desc_size_bytes(&lv->desc, &bytes, err));
    QDQI_TRY(qdqi_plan_input(program->plan, program->n_inputs, bytes, &lv->buf, err));
    program->inputs[program->n_inputs++] = lv->desc;
    return QDQ_OK;
}

qdq_status qdqi_program_output(qdqi_program *program, qdqi_lower *lw, uint32_t value, const qdq_tensor_desc *desc,
                               qdq_error *err) {
    (void)err;
    qdqi_lval *lv = qdqi_lower_val(lw, value);
    lv->is_port_out = true;
    lv->port = program->n_outputs;
    lv->port_any = desc->layout == QDQ_LAYOUT_ANY;
    lv->port_desc = *desc;
    if (desc->layout != QDQ_LAYOUT_STRIDED) qdqi_set_dense(&lv->port_desc);
    program->outputs[program->n_outputs++] = lv->port_desc;
    return QDQ_OK;
}

qdq_status qdqi_program_close(qdqi_program *program, qdqi_lower *lw, qdq_error *err) {
    QDQI_TRY(qdqi_lower_finish_ports(lw, err));
    for (uint32_t i = 0; i < lw->n_vals; i++)
        if (lw->vals[i].is_port_out) program->outputs[lw->vals[i].port] = lw->vals[i].port_desc;
    return qdqi_plan_finish(program->plan, err);
}

static qdq_status check_buffers(const qdq_tensor_desc *ports, uint32_t n_ports, const void *const *buffers, size_t n,
                                const char *what, qdq_error *err) {
    if (n != n_ports) return qdqi_fail(err, QDQ_E_BAD_ARG, "run: %zu %ss given, expected %u", n, what, n_ports);
    for (uint32_t i = 0; i < n_ports; i++)
        if (buffers[i] == NULL && qdqi_n_elems(&ports[i]) != 0)
            return qdqi_fail(err, QDQ_E_NULL_ARG, "run: %s %u is NULL", what, i);
    return QDQ_OK;
}

qdq_status qdqi_program_run(const qdqi_program *program, const void *const *inputs, size_t n_inputs,
                            void *const *outputs, size_t n_outputs, qdqi_profile *profile, qdq_error *err) {
    if (n_inputs != 0) QDQI_NOT_NULL(err, inputs);
    if (n_outputs != 0) QDQI_NOT_NULL(err, outputs);
    QDQI_TRY(check_buffers(program->inputs, program->n_inputs, inputs, n_inputs, "input", err));
    QDQI_TRY(
        check_buffers(program->outputs, program->n_outputs, (const void *const *)outputs, n_outputs, "output", err));
    return qdqi_plan_execute(program->plan, inputs, outputs, profile, err);
}

void qdqi_program_free(qdqi_program *program) {
    qdqi_plan_destroy(&program->plan);
    qdqi_free(program->inputs);
    qdqi_free(program->outputs);
    qdqi_graph_release(program->graph);
    qdqi_engine_release(program->engine);
    *program = (qdqi_program){0};
}

void qdqi_program_note(const qdqi_program *program, size_t step, qdqi_text *text) {
    qdqi_text_add(text, "%s%s", text->n == 0 ? "" : " + ", qdqi_plan_step_note(program->plan, step));
}
