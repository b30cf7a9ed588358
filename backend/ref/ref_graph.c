/* The reference executor: a finalized graph, op by op.
 *
 * Only what the asked outputs need is computed. An intermediate lives from its producer to its last consumer; a value that
 * the caller asked for is computed straight into the caller's buffer. Shapes that the graph leaves open are inferred
 * from the inputs of the run. */
#include "ref/ref_fns.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"

#include <string.h>

typedef struct slot {
    qdq_tensor_desc desc; /* concrete once the value exists */
    void *data;
    bool exists, owned, needed;
    uint32_t n_left; /* consumers that are still to run */
} slot;

typedef struct run {
    const qdq_graph *graph;
    slot *slots;     /* per value */
    bool *op_needed; /* per op */
    const qdq_tensor *outputs;
    size_t n_outputs;
    void *scratch;
    size_t scratch_bytes;
    qdqi_ref_tensor *ports; /* as many as the widest op has, inputs then outputs */
    const qdq_tensor_desc **in_descs;
    qdq_tensor_desc **out_descs;
    qdq_error *err;
} run;

/* What the caller hands over must be what the graph says: dtype, rank, and every dim that is known. */
static qdq_status check_tensor(const run *r, const qdq_tensor *t, const qdq_tensor_desc *desc, const char *what) {
    if (t->desc.dtype != desc->dtype)
        return qdqi_fail(r->err, QDQ_E_BAD_DTYPE, "%s %llu is %s, expected %s", what, (unsigned long long)t->desc.id,
                         qdq_dtype_name(t->desc.dtype), qdq_dtype_name(desc->dtype));
    if (!qdqi_dims_known(&t->desc) || t->desc.layout == QDQ_LAYOUT_OPAQUE)
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s %llu has unknown dims or an opaque layout", what,
                         (unsigned long long)t->desc.id);
    bool same = desc->ndims == QDQ_NDIMS_UNKNOWN || desc->ndims == t->desc.ndims;
    for (int32_t d = 0; same && d < desc->ndims; d++)
        same = desc->dims[d] == QDQ_DIM_UNKNOWN || desc->dims[d] == t->desc.dims[d];
    int64_t span;
    if (!same || (t->desc.layout == QDQ_LAYOUT_STRIDED && !qdqi_span_elems(&t->desc, &span)))
        return qdqi_fail(r->err, QDQ_E_BAD_SHAPE, "%s %llu is %s, expected %s", what, (unsigned long long)t->desc.id,
                         qdqi_shape_str(t->desc.ndims, t->desc.dims).s, qdqi_shape_str(desc->ndims, desc->dims).s);
    if (t->data == NULL && qdqi_n_elems(&t->desc) != 0)
        return qdqi_fail(r->err, QDQ_E_NULL_ARG, "%s %llu has no buffer", what, (unsigned long long)t->desc.id);
    return QDQ_OK;
}

static const qdq_tensor *output_of(const run *r, uint64_t id) {
    for (size_t i = 0; i < r->n_outputs; i++)
        if (r->outputs[i].desc.id == id) return &r->outputs[i];
    return NULL;
}

static qdq_status bind_inputs(run *r, const qdq_tensor *inputs, size_t n_inputs) {
    const qdq_graph *g = r->graph;
    for (size_t i = 0; i < n_inputs; i++) {
        const uint32_t v = qdqi_graph_value(g, inputs[i].desc.id);
        if (v == QDQI_NONE || !g->values[v].is_input)
            return qdqi_fail(r->err, QDQ_E_NOT_FOUND, "tensor %llu is not an input of the graph",
                             (unsigned long long)inputs[i].desc.id);
        QDQI_TRY(check_tensor(r, &inputs[i], &g->values[v].desc, "input"));
        r->slots[v].desc = inputs[i].desc;
        r->slots[v].data = inputs[i].data;
        r->slots[v].exists = true;
    }
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!r->slots[g->inputs[i]].exists)
            return qdqi_fail(r->err, QDQ_E_BAD_ARG, "input %llu (%s) is missing",
                             (unsigned long long)g->values[g->inputs[i]].desc.id, g->values[g->inputs[i]].name);
    return QDQ_OK;
}

static void bind_constants(run *r) {
    for (uint32_t v = 0; v < r->graph->n_values; v++) {
        const qdqi_value *value = &r->graph->values[v];
        slot *s = &r->slots[v];
        if (s->exists) continue;
        s->desc = value->desc;
        const bool empty =
            value->producer == QDQI_NONE && qdqi_dims_known(&value->desc) && qdqi_n_elems(&value->desc) == 0;
        if (value->data == NULL && !empty) continue;
        memcpy(&s->data, &value->data, sizeof s->data); /* only ever read: an op never writes its inputs */
        s->exists = true;
    }
}

/* Which ops the outputs need, and how many of those read each value. */
static qdq_status mark_needed(run *r) {
    const qdq_graph *g = r->graph;
    for (size_t i = 0; i < r->n_outputs; i++) {
        const uint32_t v = qdqi_graph_value(g, r->outputs[i].desc.id);
        if (v == QDQI_NONE)
            return qdqi_fail(r->err, QDQ_E_NOT_FOUND, "tensor %llu is not in the graph",
                             (unsigned long long)r->outputs[i].desc.id);
        QDQI_TRY(check_tensor(r, &r->outputs[i], &g->values[v].desc, "output"));
        r->slots[v].needed = true;
    }
    for (uint32_t k = g->n_ops; k-- > 0;) {
        const uint32_t index = g->topo[k];
        const qdqi_op *op = &g->ops[index];
        for (uint32_t i = 0; i < op->n_out; i++)
            if (op->out[i] != QDQI_NONE && r->slots[op->out[i]].needed && !r->slots[op->out[i]].exists)
                r->op_needed[index] = true;
        for (uint32_t i = 0; r->op_needed[index] && i < op->n_in; i++) {
            if (op->in[i] == QDQI_NONE) continue;
            r->slots[op->in[i]].needed = true;
            r->slots[op->in[i]].n_left++;
        }
    }
    return QDQ_OK;
}

/* ---- one op ---- */

static qdq_status infer_outputs(run *r, const qdqi_op *op) {
    bool known = true;
    for (uint32_t i = 0; i < op->n_in; i++) {
        r->in_descs[i] = op->in[i] == QDQI_NONE ? NULL : &r->slots[op->in[i]].desc;
        if (op->in[i] != QDQI_NONE && !qdqi_same_dims(r->in_descs[i], &r->graph->values[op->in[i]].desc)) known = false;
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        r->out_descs[i] = op->out[i] == QDQI_NONE ? NULL : &r->slots[op->out[i]].desc;
        if (op->out[i] != QDQI_NONE && !qdqi_dims_known(r->out_descs[i])) known = false;
    }
    if (!known) QDQI_TRY(qdqi_op_infer(r->graph, op, r->in_descs, r->out_descs, r->err));
    return QDQ_OK;
}

/* The caller's buffer, or one of our own. */
static qdq_status place_output(run *r, slot *s) {
    const qdq_tensor *asked = output_of(r, s->desc.id);
    if (asked != NULL) {
        QDQI_TRY(check_tensor(r, asked, &s->desc, "output"));
        s->desc = asked->desc;
        s->data = asked->data;
    } else {
        size_t bytes;
        qdqi_set_dense(&s->desc);
        if (!qdqi_dtype_bytes(s->desc.dtype, qdqi_n_elems(&s->desc), &bytes))
            return qdqi_fail(r->err, QDQ_E_OVERFLOW, "tensor %llu does not fit", (unsigned long long)s->desc.id);
        s->data = qdqi_malloc_aligned(bytes == 0 ? 1 : bytes);
        if (s->data == NULL) return QDQI_NO_MEMORY(r->err);
        s->owned = true;
        /* the spare nibble of an odd number of 4-bit elements */
        if (bytes != 0 && qdq_dtype_bits(s->desc.dtype) < 8) ((unsigned char *)s->data)[bytes - 1] = 0;
    }
    s->exists = true;
    return QDQ_OK;
}

static qdq_status grow_scratch(run *r, size_t bytes) {
    if (bytes <= r->scratch_bytes) return QDQ_OK;
    qdqi_free_aligned(r->scratch);
    r->scratch_bytes = 0;
    r->scratch = qdqi_malloc_aligned(bytes);
    if (r->scratch == NULL) return QDQI_NO_MEMORY(r->err);
    r->scratch_bytes = bytes;
    return QDQ_OK;
}

static void drop_use(slot *s) {
    if (--s->n_left != 0 || !s->owned) return;
    qdqi_free_aligned(s->data);
    s->data = NULL;
    s->owned = false;
}

static qdq_status run_op(run *r, const qdqi_op *op) {
    size_t bytes;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE && !r->slots[op->in[i]].exists)
            return qdqi_fail(r->err, QDQ_E_BAD_GRAPH, "%s op %llu: input %u (tensor %llu) has no value",
                             op->schema->name, (unsigned long long)op->id, i,
                             (unsigned long long)r->slots[op->in[i]].desc.id);
    if ((op->schema->flags & QDQI_F_OPAQUE) != 0)
        return qdqi_fail(r->err, QDQ_E_UNSUPPORTED, "%s op %llu (%s) has no reference meaning", op->schema->name,
                         (unsigned long long)op->id, op->name);
    QDQI_TRY(infer_outputs(r, op));
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i] != QDQI_NONE) QDQI_TRY(place_output(r, &r->slots[op->out[i]]));
    QDQI_TRY(qdqi_ref_scratch_bytes(op, r->in_descs, (const qdq_tensor_desc *const *)r->out_descs, &bytes, r->err));
    QDQI_TRY(grow_scratch(r, bytes));
    qdqi_ref_args args = {.op = op, .n_in = op->n_in, .n_out = op->n_out, .in = r->ports};
    args.out = r->ports + op->n_in;
    args.scratch = r->scratch;
    args.scratch_bytes = r->scratch_bytes;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const uint32_t v = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        r->ports[i].desc = v == QDQI_NONE ? NULL : &r->slots[v].desc;
        r->ports[i].data = v == QDQI_NONE ? NULL : r->slots[v].data;
    }
    QDQI_TRY(qdqi_ref_run(&args, r->err));
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE) drop_use(&r->slots[op->in[i]]);
    for (uint32_t i = 0; i < op->n_out; i++) { /* an output that nobody reads */
        slot *s = op->out[i] == QDQI_NONE ? NULL : &r->slots[op->out[i]];
        if (s == NULL || s->n_left != 0 || !s->owned) continue;
        qdqi_free_aligned(s->data);
        s->data = NULL;
        s->owned = false;
    }
    return QDQ_OK;
}

/* Outputs that no op wrote: constants, inputs, and a value asked for twice. */
static qdq_status copy_rest(run *r) {
    for (size_t i = 0; i < r->n_outputs; i++) {
        const qdq_tensor *t = &r->outputs[i];
        const slot *s = &r->slots[qdqi_graph_value(r->graph, t->desc.id)];
        if (!s->exists)
            return qdqi_fail(r->err, QDQ_E_BAD_GRAPH, "tensor %llu has no value", (unsigned long long)t->desc.id);
        if (s->data == t->data) continue;
        QDQI_TRY(check_tensor(r, t, &s->desc, "output"));
        qdqi_ref_relayout(&t->desc, t->data, &s->desc, s->data);
    }
    return QDQ_OK;
}

static qdq_status run_all(run *r, const qdq_tensor *inputs, size_t n_inputs) {
    QDQI_TRY(bind_inputs(r, inputs, n_inputs));
    bind_constants(r);
    QDQI_TRY(mark_needed(r));
    for (uint32_t k = 0; k < r->graph->n_ops; k++)
        if (r->op_needed[r->graph->topo[k]]) QDQI_TRY(run_op(r, &r->graph->ops[r->graph->topo[k]]));
    return copy_rest(r);
}

qdq_status qdqi_ref_graph(const qdq_graph *graph, const qdq_tensor *inputs, size_t n_inputs, const qdq_tensor *outputs,
                          size_t n_outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "the graph is not finalized");
    if (n_inputs != 0) QDQI_NOT_NULL(err, inputs);
    if (n_outputs != 0) QDQI_NOT_NULL(err, outputs);
    uint32_t widest = 1;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (graph->ops[i].n_in + graph->ops[i].n_out > widest) widest = graph->ops[i].n_in + graph->ops[i].n_out;
    run r = {.graph = graph, .outputs = outputs, .n_outputs = n_outputs, .err = err};
    r.slots = qdqi_calloc((size_t)graph->n_values + 1, sizeof *r.slots);
    r.op_needed = qdqi_calloc((size_t)graph->n_ops + 1, sizeof *r.op_needed);
    r.ports = qdqi_calloc(widest, sizeof *r.ports);
    r.in_descs = qdqi_calloc(widest, sizeof *r.in_descs);
    r.out_descs = qdqi_calloc(widest, sizeof *r.out_descs);
    const bool ok =
        r.slots != NULL && r.op_needed != NULL && r.ports != NULL && r.in_descs != NULL && r.out_descs != NULL;
    const qdq_status st = ok ? run_all(&r, inputs, n_inputs) : QDQI_NO_MEMORY(err);
    for (uint32_t v = 0; r.slots != NULL && v < graph->n_values; v++)
        if (r.slots[v].owned) qdqi_free_aligned(r.slots[v].data);
    qdqi_free_aligned(r.scratch);
    qdqi_free(r.slots);
    qdqi_free(r.op_needed);
    qdqi_free(r.ports);
    qdqi_free(r.in_descs);
    qdqi_free(r.out_descs);
    return st;
}

/* ---- folding ---- */

qdq_status qdqi_ref_fold(const qdq_graph *graph, const qdqi_op *op, void *const *out_data, qdq_error *err) {
    const uint32_t n = op->n_in + op->n_out;
    qdqi_ref_tensor *ports = qdqi_calloc((size_t)n + 1, sizeof *ports);
    const qdq_tensor_desc **descs = qdqi_calloc((size_t)n + 1, sizeof *descs);
    qdq_tensor_desc *dense = qdqi_calloc((size_t)op->n_out + 1, sizeof *dense);
    void *scratch = NULL;
    qdq_status st = QDQ_OK;
    if (ports == NULL || descs == NULL || dense == NULL) {
        st = QDQI_NO_MEMORY(err);
        goto done;
    }
    for (uint32_t i = 0; i < n; i++) {
        const bool is_in = i < op->n_in;
        const uint32_t v = is_in ? op->in[i] : op->out[i - op->n_in];
        if (v == QDQI_NONE) continue;
        const qdqi_value *value = &graph->values[v];
        if (is_in) {
            descs[i] = &value->desc;
            memcpy(&ports[i].data, &value->data, sizeof ports[i].data); /* only read */
        } else {
            dense[i - op->n_in] = value->desc;
            qdqi_set_dense(&dense[i - op->n_in]);
            descs[i] = &dense[i - op->n_in];
            ports[i].data = out_data[i - op->n_in];
        }
        ports[i].desc = descs[i];
    }
    qdqi_ref_args args = {.op = op, .n_in = op->n_in, .n_out = op->n_out, .in = ports, .out = ports + op->n_in};
    QDQI_TRY_GOTO(st, done, qdqi_ref_scratch_bytes(op, descs, descs + op->n_in, &args.scratch_bytes, err));
    scratch = qdqi_malloc_aligned(args.scratch_bytes + 1);
    if (scratch == NULL) {
        st = QDQI_NO_MEMORY(err);
        goto done;
    }
    args.scratch = scratch;
    st = qdqi_ref_run(&args, err);
done:
    qdqi_free_aligned(scratch);
    qdqi_free(ports);
    qdqi_free(descs);
    qdqi_free(dense);
    return st;
}
