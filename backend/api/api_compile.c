#include "api/api_objects.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PAIRS = 8 };

struct qdq_compiled {
    qdqi_program program;
    qdqi_text summary;
    uint32_t n_pairs;
    qdq_inplace_pair pairs[MAX_PAIRS];
};

static const qdq_tensor_desc *find_desc(const qdq_tensor_desc *descs, size_t n, uint64_t id) {
    for (size_t i = 0; i < n; i++)
        if (descs[i].id == id) return &descs[i];
    return NULL;
}

static qdq_status check_port(const qdq_partition *p, uint32_t value, const qdq_tensor_desc *descs, size_t n,
                             const char *what, const qdq_tensor_desc **out, qdq_error *err) {
    const qdq_tensor_desc *want = &p->graph->values[value].desc;
    const qdq_tensor_desc *desc = find_desc(descs, n, want->id);
    if (desc == NULL)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "partition %u: %s tensor %" PRIu64 " is missing", p->part->id, what,
                         want->id);
    if (desc->dtype != want->dtype && want->dtype != QDQ_DTYPE_UNDEF)
        return qdqi_fail(err, QDQ_E_BAD_DTYPE, "partition %u: %s tensor %" PRIu64 " is %s, the graph says %s",
                         p->part->id, what, want->id, qdq_dtype_name(desc->dtype), qdq_dtype_name(want->dtype));
    if (desc->layout == QDQ_LAYOUT_OPAQUE)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "partition %u: %s tensor %" PRIu64 " has an opaque layout", p->part->id,
                         what, want->id);
    *out = desc;
    return QDQ_OK;
}

/* Dims of everything inside, from the inputs given. */
static qdq_status infer(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    for (uint32_t k = 0; k < part->n_ops; k++) {
        const qdqi_op *op = &g->ops[part->ops[k]];
        const qdq_tensor_desc **in = qdqi_arena_alloc(&lw->arena, op->n_in + 1, sizeof *in);
        qdq_tensor_desc **out = qdqi_arena_alloc(&lw->arena, op->n_out + 1, sizeof *out);
        if (in == NULL || out == NULL) return QDQI_NO_MEMORY(err);
        for (uint32_t i = 0; i < op->n_in; i++)
            in[i] = op->in[i] == QDQI_NONE ? NULL : &qdqi_lower_val(lw, op->in[i])->desc;
        for (uint32_t i = 0; i < op->n_out; i++) {
            out[i] = &qdqi_lower_val(lw, op->out[i])->desc;
            out[i]->ndims = QDQ_NDIMS_UNKNOWN;
        }
        QDQI_TRY(qdqi_op_infer(g, op, in, out, err));
        for (uint32_t i = 0; i < op->n_out; i++) {
            /* a shape that no rule can tell (it depends on the content of a tensor) is the one that the graph gives */
            if (!qdqi_dims_known(out[i])) *out[i] = g->values[op->out[i]].desc;
            if (!qdqi_dims_known(out[i]))
                return qdqi_fail(err, QDQ_E_BAD_SHAPE,
                                 "op %" PRIu64 " \"%s\" (%s): the shape of output %u stays unknown", op->id, op->name,
                                 op->schema->name, i);
            qdqi_set_dense(out[i]);
        }
    }
    return QDQ_OK;
}

static qdq_status compile(const qdq_partition *p, qdqi_program *program, qdqi_lower *lw, const qdq_tensor_desc *inputs,
                          size_t n_inputs, const qdq_tensor_desc *outputs, size_t n_outputs, qdq_error *err) {
    const qdqi_part *part = p->part;
    for (uint32_t i = 0; i < part->n_inputs; i++) {
        const qdq_tensor_desc *desc;
        QDQI_TRY(check_port(p, part->inputs[i], inputs, n_inputs, "input", &desc, err));
        if (!qdqi_dims_known(desc))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "partition %u: input tensor %" PRIu64 ": shape %s is not known",
                             part->id, desc->id, qdqi_shape_str(desc->ndims, desc->dims).s);
        QDQI_TRY(qdqi_program_input(program, lw, part->inputs[i], desc, err));
    }
    QDQI_TRY(infer(lw, part, err));
    for (uint32_t i = 0; i < part->n_outputs; i++) {
        const qdq_tensor_desc *desc;
        QDQI_TRY(check_port(p, part->outputs[i], outputs, n_outputs, "output", &desc, err));
        const qdq_tensor_desc *found = &qdqi_lower_val(lw, part->outputs[i])->desc;
        qdq_tensor_desc port = *desc;
        if (qdqi_dims_known(desc) && !qdqi_same_dims(desc, found))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "partition %u: output tensor %" PRIu64 " is %s, the inputs give %s",
                             part->id, desc->id, qdqi_shape_str(desc->ndims, desc->dims).s,
                             qdqi_shape_str(found->ndims, found->dims).s);
        if (!qdqi_dims_known(desc)) {
            port = *found;
            port.layout = desc->layout == QDQ_LAYOUT_ANY ? QDQ_LAYOUT_ANY : QDQ_LAYOUT_STRIDED;
        }
        port.property = desc->property;
        if (port.layout == QDQ_LAYOUT_STRIDED && qdqi_overlaps(&port))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE,
                             "partition %u: output tensor %" PRIu64 ": strides %s of %s make elements share memory",
                             part->id, desc->id, qdqi_shape_str(port.ndims, port.strides).s,
                             qdqi_shape_str(port.ndims, port.dims).s);
        QDQI_TRY(qdqi_program_output(program, lw, part->outputs[i], &port, err));
    }
    QDQI_TRY(qdqi_lower_part(lw, part, err));
    return qdqi_program_close(program, lw, err);
}

/* Ports that may share a buffer, as the plan says: of equal bytes, but also of equal layout must they be. */
static void take_pairs(qdq_compiled *c) {
    const qdqi_program *p = &c->program;
    qdqi_plan_pair pairs[MAX_PAIRS];
    const uint32_t n = qdqi_plan_inplace_pairs(p->plan, pairs, MAX_PAIRS);
    for (uint32_t i = 0; i < n; i++) {
        const qdq_tensor_desc *in = &p->inputs[pairs[i].input], *out = &p->outputs[pairs[i].output];
        if (in->ndims != out->ndims || memcmp(in->dims, out->dims, (size_t)in->ndims * sizeof in->dims[0]) != 0 ||
            memcmp(in->strides, out->strides, (size_t)in->ndims * sizeof in->strides[0]) != 0)
            continue;
        c->pairs[c->n_pairs++] = (qdq_inplace_pair){in->id, out->id};
    }
}

qdq_status qdq_partition_compile(const qdq_partition *partition, qdq_engine *engine, const qdq_tensor_desc *inputs,
                                 size_t n_inputs, const qdq_tensor_desc *outputs, size_t n_outputs,
                                 qdq_compiled **compiled_out, qdq_error *err) {
    QDQI_NOT_NULL(err, partition);
    QDQI_NOT_NULL(err, engine);
    QDQI_NOT_NULL(err, compiled_out);
    if (n_inputs != 0) QDQI_NOT_NULL(err, inputs);
    if (n_outputs != 0) QDQI_NOT_NULL(err, outputs);
    if (!qdq_partition_is_supported(partition))
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "partition %u holds an op without a meaning (Wildcard, End)",
                         partition->part->id);
    qdq_compiled *c = qdqi_calloc(1, sizeof *c);
    if (c == NULL) return QDQI_NO_MEMORY(err);
    qdqi_lower lw = {0};
    const int threads = qdqi_threads_enter(engine);
    qdq_status st = qdqi_program_open(&c->program, &lw, partition->graph, engine, partition->part, err);
    if (st == QDQ_OK) st = compile(partition, &c->program, &lw, inputs, n_inputs, outputs, n_outputs, err);
    qdqi_lower_free(&lw);
    qdqi_threads_leave(engine, threads);
    if (st == QDQ_OK) {
        take_pairs(c);
        for (size_t i = 0; i < qdqi_plan_n_steps(c->program.plan); i++)
            qdqi_program_note(&c->program, i, &c->summary);
        if (c->summary.failed) st = QDQI_NO_MEMORY(err);
    }
    if (st != QDQ_OK) {
        qdq_compiled_destroy(&c);
        return st;
    }
    *compiled_out = c;
    return QDQ_OK;
}

void qdq_compiled_destroy(qdq_compiled **compiled) {
    if (compiled == NULL || *compiled == NULL) return;
    qdqi_program_free(&(*compiled)->program);
    qdqi_text_free(&(*compiled)->summary);
    qdqi_free(*compiled);
    *compiled = NULL;
}

qdq_status qdq_compiled_desc(const qdq_compiled *compiled, uint64_t id, qdq_tensor_desc *desc_out, qdq_error *err) {
    QDQI_NOT_NULL(err, compiled);
    QDQI_NOT_NULL(err, desc_out);
    const qdqi_program *p = &compiled->program;
    const qdq_tensor_desc *desc = find_desc(p->outputs, p->n_outputs, id);
    if (desc == NULL) desc = find_desc(p->inputs, p->n_inputs, id);
    if (desc == NULL) return qdqi_fail(err, QDQ_E_NOT_FOUND, "tensor %" PRIu64 " is no port of the partition", id);
    *desc_out = *desc;
    return QDQ_OK;
}

qdq_status qdq_compiled_inplace_pairs(const qdq_compiled *compiled, size_t *n_out, const qdq_inplace_pair **pairs_out,
                                      qdq_error *err) {
    QDQI_NOT_NULL(err, compiled);
    QDQI_NOT_NULL(err, n_out);
    QDQI_NOT_NULL(err, pairs_out);
    *n_out = compiled->n_pairs;
    *pairs_out = compiled->n_pairs > 0 ? compiled->pairs : NULL;
    return QDQ_OK;
}

const char *qdq_compiled_summary(const qdq_compiled *compiled) {
    return compiled == NULL || compiled->summary.s == NULL ? "" : compiled->summary.s;
}

static qdq_status bind(const qdq_tensor_desc *ports, uint32_t n_ports, const qdq_tensor *tensors, size_t n_tensors,
                       const char *what, const void **out, qdq_error *err) {
    for (uint32_t i = 0; i < n_ports; i++) {
        const qdq_tensor_desc *port = &ports[i];
        const qdq_tensor *t = NULL;
        for (size_t k = 0; k < n_tensors && t == NULL; k++)
            if (tensors[k].desc.id == port->id) t = &tensors[k];
        if (t == NULL)
            return qdqi_fail(err, QDQ_E_BAD_ARG, "execute: %s tensor %" PRIu64 " is missing", what, port->id);
        if (t->desc.dtype != port->dtype)
            return qdqi_fail(err, QDQ_E_BAD_DTYPE, "execute: %s tensor %" PRIu64 " is %s, compiled for %s", what,
                             port->id, qdq_dtype_name(t->desc.dtype), qdq_dtype_name(port->dtype));
        if (!qdqi_same_dims(&t->desc, port))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "execute: %s tensor %" PRIu64 " is %s, compiled for %s", what,
                             port->id, qdqi_shape_str(t->desc.ndims, t->desc.dims).s,
                             qdqi_shape_str(port->ndims, port->dims).s);
        if (t->desc.layout != QDQ_LAYOUT_STRIDED || !qdqi_same_strides(&t->desc, port))
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "execute: %s tensor %" PRIu64 " has strides %s, compiled for %s",
                             what, port->id, qdqi_shape_str(t->desc.ndims, t->desc.strides).s,
                             qdqi_shape_str(port->ndims, port->strides).s);
        if (t->data == NULL && qdqi_n_elems(port) != 0)
            return qdqi_fail(err, QDQ_E_NULL_ARG, "execute: %s tensor %" PRIu64 " has no data", what, port->id);
        out[i] = t->data;
    }
    return QDQ_OK;
}

qdq_status qdq_compiled_execute(const qdq_compiled *compiled, const qdq_tensor *inputs, size_t n_inputs,
                                const qdq_tensor *outputs, size_t n_outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, compiled);
    if (n_inputs != 0) QDQI_NOT_NULL(err, inputs);
    if (n_outputs != 0) QDQI_NOT_NULL(err, outputs);
    const qdqi_program *p = &compiled->program;
    const void *stack[QDQI_STACK_PORTS];
    const void **in = stack;
    const uint32_t n = p->n_inputs + p->n_outputs;
    if (n > QDQI_STACK_PORTS) {
        in = qdqi_malloc(n * sizeof *in);
        if (in == NULL) return QDQI_NO_MEMORY(err);
    }
    qdq_status st = bind(p->inputs, p->n_inputs, inputs, n_inputs, "input", in, err);
    if (st == QDQ_OK) st = bind(p->outputs, p->n_outputs, outputs, n_outputs, "output", in + p->n_inputs, err);
    if (st == QDQ_OK) st = qdqi_plan_execute(p->plan, in, (void *const *)(in + p->n_inputs), NULL, err);
    if (in != stack) qdqi_free(in);
    return st;
}

qdq_status qdq_compiled_run(const qdq_compiled *compiled, const void *const *inputs, size_t n_inputs,
                            void *const *outputs, size_t n_outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, compiled);
    return qdqi_program_run(&compiled->program, inputs, n_inputs, outputs, n_outputs, NULL, err);
}
