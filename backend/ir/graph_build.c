/* A graph while it grows: ops are checked and copied, edges are linked by tensor id.
 *
 * An add either succeeds or leaves the graph as it was: everything that can fail comes before the first change. */
#include "ir/graph.h"

#include "base/alloc.h"
#include "ir/graph_parts.h"
#include "ir/idmap.h"
#include "ir/infer.h"
#include "ir/op_parse.h"

#include <string.h>

/* ---- life ---- */

qdq_status qdqi_graph_create(qdq_graph **graph_out, qdq_error *err) {
    qdq_graph *graph = qdqi_calloc(1, sizeof *graph);
    if (graph == NULL) return QDQI_NO_MEMORY(err);
    atomic_init(&graph->refs, 1);
    graph->op_ids = qdqi_calloc(1, sizeof *graph->op_ids);
    graph->value_ids = qdqi_calloc(1, sizeof *graph->value_ids);
    if (graph->op_ids == NULL || graph->value_ids == NULL) {
        qdqi_graph_release(graph);
        return QDQI_NO_MEMORY(err);
    }
    *graph_out = graph;
    return QDQ_OK;
}

void qdqi_graph_retain(const qdq_graph *graph) {
    /* the count is the one part of a finalized graph that changes */
    atomic_fetch_add_explicit(&((qdq_graph *)(uintptr_t)graph)->refs, 1, memory_order_relaxed);
}

void qdqi_graph_release(const qdq_graph *released) {
    qdq_graph *graph = (qdq_graph *)(uintptr_t)released;
    if (graph == NULL || atomic_fetch_sub_explicit(&graph->refs, 1, memory_order_acq_rel) > 1) return;
    for (uint32_t i = 0; i < graph->n_owned; i++)
        qdqi_free_aligned(graph->owned[i]);
    qdqi_free(graph->owned);
    if (graph->op_ids != NULL) qdqi_idmap_free(graph->op_ids);
    if (graph->value_ids != NULL) qdqi_idmap_free(graph->value_ids);
    qdqi_free(graph->op_ids);
    qdqi_free(graph->value_ids);
    qdqi_free(graph->ops);
    qdqi_free(graph->values);
    qdqi_arena_free(&graph->arena);
    qdqi_free(graph);
}

uint32_t qdqi_graph_value(const qdq_graph *graph, uint64_t id) {
    return qdqi_idmap_get(graph->value_ids, id);
}

uint32_t qdqi_graph_op(const qdq_graph *graph, uint64_t id) {
    return qdqi_idmap_get(graph->op_ids, id);
}

static qdq_status check_growing(const qdq_graph *graph, const char *what, qdq_error *err) {
    return graph->finalized ? qdqi_fail(err, QDQ_E_BAD_STATE, "%s: the graph is finalized", what) : QDQ_OK;
}

/* ---- values ---- */

/* Room for `n` more elements, doubling. */
static bool reserve(void **array, uint32_t used, uint32_t *capacity, size_t n, size_t elem_bytes) {
    if (n >= QDQI_NONE - used) return false;
    const uint32_t need = used + (uint32_t)n;
    if (need <= *capacity) return true;
    uint32_t bigger = *capacity < 16 ? 16 : *capacity;
    while (bigger < need)
        bigger = bigger > QDQI_NONE / 2 ? need : bigger * 2;
    void *grown = qdqi_realloc_array(*array, bigger, elem_bytes);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = bigger;
    return true;
}

static bool reserve_values(qdq_graph *graph, size_t n) {
    void *array = graph->values;
    const bool ok = reserve(&array, graph->n_values, &graph->cap_values, n, sizeof *graph->values);
    graph->values = array;
    return ok && qdqi_idmap_reserve(graph->value_ids, n);
}

/* The value of an id, made when new; room is reserved. */
static uint32_t value_of(qdq_graph *graph, uint64_t id) {
    const uint32_t known = qdqi_graph_value(graph, id);
    if (known != QDQI_NONE) return known;
    graph->values[graph->n_values] =
        (qdqi_value){.desc = {.id = id, .ndims = QDQ_NDIMS_UNKNOWN}, .producer = QDQI_NONE, .name = ""};
    qdqi_idmap_put(graph->value_ids, id, graph->n_values);
    return graph->n_values++;
}

static bool merge_dims(qdq_tensor_desc *known, const qdq_tensor_desc *more) {
    if (more->ndims == QDQ_NDIMS_UNKNOWN) return true;
    if (known->ndims == QDQ_NDIMS_UNKNOWN) {
        known->ndims = more->ndims;
        memcpy(known->dims, more->dims, sizeof known->dims);
        return true;
    }
    if (known->ndims != more->ndims) return false;
    for (int32_t i = 0; i < known->ndims; i++) {
        if (known->dims[i] == QDQ_DIM_UNKNOWN) known->dims[i] = more->dims[i];
        if (more->dims[i] != QDQ_DIM_UNKNOWN && more->dims[i] != known->dims[i]) return false;
    }
    return true;
}

/* One edge described twice: what one says and the other leaves open is taken. False when they contradict each other. */
static bool merge(qdq_tensor_desc *known, const qdq_tensor_desc *more) {
    const bool had_strides = known->layout == QDQ_LAYOUT_STRIDED && qdqi_dims_known(known);
    const bool has_strides = more->layout == QDQ_LAYOUT_STRIDED && qdqi_dims_known(more);
    if (known->dtype == QDQ_DTYPE_UNDEF) known->dtype = more->dtype;
    if (more->dtype != QDQ_DTYPE_UNDEF && more->dtype != known->dtype) return false;
    if (!merge_dims(known, more)) return false;
    if (had_strides && has_strides && qdqi_n_elems(known) > 0 && !qdqi_same_strides(known, more)) return false;
    if (more->layout > known->layout) known->layout = more->layout; /* undef, any, strided, opaque: the more exact */
    if (more->layout == QDQ_LAYOUT_OPAQUE) known->layout_id = more->layout_id;
    if (has_strides && !had_strides)
        memcpy(known->strides, more->strides, sizeof known->strides);
    else if (!had_strides && known->layout == QDQ_LAYOUT_STRIDED && qdqi_dims_known(known))
        qdqi_set_dense(known);
    if (more->property > known->property) known->property = more->property; /* undef, variable, constant */
    return true;
}

/* Contradictions between ops belong to the graph, not to the op added last: finalize reports the first one. */
static void note_link_error(qdq_graph *graph, const qdq_error *found) {
    if (graph->link_error == NULL) graph->link_error = qdqi_arena_dup(&graph->arena, found, sizeof *found);
}

static void link_port(qdq_graph *graph, const qdqi_op *op, const char *what, uint32_t port, uint32_t value_index,
                      const qdq_tensor_desc *desc) {
    qdqi_value *value = &graph->values[value_index];
    const qdq_tensor_desc before = value->desc;
    if (merge(&value->desc, desc)) return;
    value->desc = before;
    qdq_error found = {0};
    qdqi_op_fail(op, &found, QDQ_E_BAD_GRAPH, "%s %" PRIu32 ": tensor %" PRIu64 " is %s %s here, but %s %s elsewhere",
                 what, port, desc->id, qdq_dtype_name(desc->dtype), qdqi_shape_str(desc->ndims, desc->dims).s,
                 qdq_dtype_name(before.dtype), qdqi_shape_str(before.ndims, before.dims).s);
    if (before.dtype == desc->dtype && qdqi_same_dims(&before, desc))
        qdqi_op_fail(op, &found, QDQ_E_BAD_GRAPH,
                     "%s %" PRIu32 ": tensor %" PRIu64 " has strides %s here, but %s elsewhere", what, port, desc->id,
                     qdqi_shape_str(desc->ndims, desc->strides).s, qdqi_shape_str(before.ndims, before.strides).s);
    note_link_error(graph, &found);
}

static void link_producer(qdq_graph *graph, const qdqi_op *op, uint32_t op_index, uint32_t port, uint32_t value_index) {
    qdqi_value *value = &graph->values[value_index];
    if (value->producer == QDQI_NONE) {
        value->producer = op_index;
        value->producer_port = port;
        return;
    }
    const qdqi_op *first = value->producer == op_index ? op : &graph->ops[value->producer];
    qdq_error found = {0};
    qdqi_op_fail(op, &found, QDQ_E_DUPLICATE_ID,
                 "output %" PRIu32 ": tensor %" PRIu64 " is produced by op %" PRIu64 " \"%.64s\" (%.64s) already", port,
                 value->desc.id, first->id, first->name, first->schema->name);
    note_link_error(graph, &found);
}

/* ---- ops ---- */

/* The rules on the op as the caller describes it; outputs are copies, so nothing is kept. */
static qdq_status run_rules(const qdq_graph *graph, const qdq_op *from, const qdqi_op *op, qdq_error *err) {
    qdqi_infer_arrays arrays;
    qdq_tensor_desc few[QDQI_FEW_PORTS], *outs = few;
    QDQI_TRY(qdqi_infer_arrays_init(&arrays, op->n_in, op->n_out, err));
    if (op->n_out > QDQI_FEW_PORTS) outs = qdqi_calloc(op->n_out, sizeof *outs);
    if (outs == NULL) {
        qdqi_infer_arrays_free(&arrays);
        return QDQI_NO_MEMORY(err);
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        const qdqi_builder_port *port = &from->in.ports[i];
        arrays.in[i] = port->is_present ? &port->desc : NULL;
        arrays.in_data[i] = NULL;
        const uint32_t value = port->is_present ? qdqi_graph_value(graph, port->desc.id) : QDQI_NONE;
        if (value == QDQI_NONE || graph->values[value].data == NULL) continue;
        /* an op that contradicts the constant is reported as such by finalize, not read past its end here */
        const qdq_tensor_desc *constant = &graph->values[value].desc;
        if (constant->dtype == port->desc.dtype && qdqi_same_dims(constant, &port->desc))
            arrays.in_data[i] = qdqi_value_dense_data(&graph->values[value]);
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        outs[i] = from->out.ports[i].desc;
        arrays.out[i] = &outs[i];
    }
    const qdqi_infer_ctx ctx = qdqi_infer_arrays_ctx(&arrays, op, err);
    const qdq_status st = qdqi_run_rules(&ctx);
    if (outs != few) qdqi_free(outs);
    qdqi_infer_arrays_free(&arrays);
    return st;
}

static bool reserve_op(qdq_graph *graph, qdqi_op *op) {
    void *array = graph->ops;
    const bool ok = reserve(&array, graph->n_ops, &graph->cap_ops, 1, sizeof *graph->ops);
    graph->ops = array;
    op->name = qdqi_arena_strdup(&graph->arena, op->name);
    op->in = qdqi_arena_alloc(&graph->arena, (size_t)op->n_in + op->n_out + 1, sizeof *op->in);
    return ok && op->name != NULL && op->in != NULL && qdqi_idmap_reserve(graph->op_ids, 1) &&
           reserve_values(graph, (size_t)op->n_in + op->n_out);
}

qdq_status qdqi_graph_add_op(qdq_graph *graph, const qdq_op *from, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, from);
    QDQI_TRY(check_growing(graph, "add_op", err));
    qdqi_op op;
    QDQI_TRY(qdqi_op_parse(from, &graph->arena, &op, err));
    const uint32_t twin = qdqi_graph_op(graph, from->id);
    if (twin != QDQI_NONE)
        return qdqi_op_fail(&op, err, QDQ_E_DUPLICATE_ID, "the graph has op %" PRIu64 " \"%.64s\" (%.64s) already",
                            from->id, graph->ops[twin].name, graph->ops[twin].schema->name);
    QDQI_TRY(run_rules(graph, from, &op, err));
    if (!reserve_op(graph, &op)) return QDQI_NO_MEMORY(err);

    const uint32_t index = graph->n_ops;
    op.out = op.in + op.n_in;
    for (uint32_t i = 0; i < op.n_in; i++) {
        const qdqi_builder_port *port = &from->in.ports[i];
        op.in[i] = port->is_present ? value_of(graph, port->desc.id) : QDQI_NONE;
        if (port->is_present) link_port(graph, &op, "input", i, op.in[i], &port->desc);
    }
    for (uint32_t i = 0; i < op.n_out; i++) {
        const qdq_tensor_desc *desc = &from->out.ports[i].desc;
        op.out[i] = value_of(graph, desc->id);
        link_port(graph, &op, "output", i, op.out[i], desc);
        link_producer(graph, &op, index, i, op.out[i]);
    }
    graph->ops[graph->n_ops++] = op;
    qdqi_idmap_put(graph->op_ids, op.id, index);
    return QDQ_OK;
}

/* ---- constants, ports, names ---- */

qdq_status qdqi_graph_own(qdq_graph *graph, size_t bytes, void **data_out, qdq_error *err) {
    void *array = graph->owned;
    const bool ok = reserve(&array, graph->n_owned, &graph->cap_owned, 1, sizeof *graph->owned);
    graph->owned = array;
    void *data = ok ? qdqi_malloc_aligned(bytes == 0 ? 1 : bytes) : NULL;
    if (data == NULL) return QDQI_NO_MEMORY(err);
    graph->owned[graph->n_owned++] = data;
    *data_out = data;
    return QDQ_OK;
}

qdq_status qdqi_graph_set_constant(qdq_graph *graph, const qdq_tensor_desc *desc, const void *data, size_t bytes,
                                   qdq_data_mode mode, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, desc);
    QDQI_TRY(check_growing(graph, "set_constant", err));
    if (bytes > 0) QDQI_NOT_NULL(err, data);
    qdq_error why = {0};
    qdq_status st = qdqi_desc_check(desc, &why);
    if (st != QDQ_OK) return qdqi_fail(err, st, "constant tensor %" PRIu64 ": %s", desc->id, why.text);
    const qdqi_shape_text shape = qdqi_shape_str(desc->ndims, desc->dims);
    if (!qdqi_dims_known(desc) || desc->dtype == QDQ_DTYPE_UNDEF || desc->layout == QDQ_LAYOUT_OPAQUE)
        return qdqi_fail(err, QDQ_E_BAD_ARG,
                         "constant tensor %" PRIu64 ": found %s %s, expected a known shape, data type and layout",
                         desc->id, qdq_dtype_name(desc->dtype), shape.s);
    if (mode != QDQ_DATA_COPY && mode != QDQ_DATA_BORROW)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "constant tensor %" PRIu64 ": found data mode %d, which is none", desc->id,
                         (int)mode);
    qdq_tensor_desc full = *desc;
    full.property = QDQ_PROPERTY_CONSTANT;
    if (full.layout != QDQ_LAYOUT_STRIDED) qdqi_set_dense(&full);
    size_t need = 0;
    QDQI_TRY(qdqi_desc_bytes(&full, &need, err));
    if (need != bytes)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "constant tensor %" PRIu64 ": found %zu bytes, expected %zu (%s %s)",
                         desc->id, bytes, need, qdq_dtype_name(desc->dtype), shape.s);
    if (!reserve_values(graph, 1)) return QDQI_NO_MEMORY(err);
    const uint32_t known = qdqi_graph_value(graph, desc->id);
    if (known != QDQI_NONE) {
        const qdqi_value *value = &graph->values[known];
        qdq_tensor_desc merged = value->desc;
        if (value->data != NULL)
            return qdqi_fail(err, QDQ_E_DUPLICATE_ID, "constant tensor %" PRIu64 ": its content is set already",
                             desc->id);
        if (!merge(&merged, &full))
            return qdqi_fail(
                err, QDQ_E_BAD_GRAPH, "constant tensor %" PRIu64 ": found %s %s, but an op describes it as %s %s%s",
                desc->id, qdq_dtype_name(desc->dtype), shape.s, qdq_dtype_name(value->desc.dtype),
                qdqi_shape_str(value->desc.ndims, value->desc.dims).s,
                qdqi_same_dims(desc, &value->desc) && desc->dtype == value->desc.dtype ? " with other strides" : "");
        full = merged;
    }
    void *copy = NULL;
    if (mode == QDQ_DATA_COPY || data == NULL) {
        QDQI_TRY(qdqi_graph_own(graph, bytes, &copy, err));
        if (bytes > 0) memcpy(copy, data, bytes);
        data = copy;
    }
    qdqi_value *value = &graph->values[value_of(graph, desc->id)];
    value->desc = full;
    value->data = data;
    value->data_bytes = bytes;
    return QDQ_OK;
}

qdq_status qdqi_graph_set_ports(qdq_graph *graph, const uint64_t *ids, size_t n, bool outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (n > 0) QDQI_NOT_NULL(err, ids);
    const char *what = outputs ? "set_outputs" : "set_inputs";
    QDQI_TRY(check_growing(graph, what, err));
    qdqi_idmap seen = {0};
    uint32_t *ports = n < QDQI_NONE ? qdqi_arena_alloc(&graph->arena, n + 1, sizeof *ports) : NULL;
    if (ports == NULL || !reserve_values(graph, n) || !qdqi_idmap_reserve(&seen, n)) {
        qdqi_idmap_free(&seen);
        return QDQI_NO_MEMORY(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (qdqi_idmap_get(&seen, ids[i]) != QDQI_NONE) {
            qdqi_idmap_free(&seen);
            return qdqi_fail(err, QDQ_E_DUPLICATE_ID, "%s: tensor %" PRIu64 " is given twice", what, ids[i]);
        }
        qdqi_idmap_put(&seen, ids[i], (uint32_t)i);
        ports[i] = value_of(graph, ids[i]);
    }
    qdqi_idmap_free(&seen);
    *(outputs ? &graph->outputs : &graph->inputs) = ports;
    *(outputs ? &graph->n_outputs : &graph->n_inputs) = (uint32_t)n;
    *(outputs ? &graph->outputs_named : &graph->inputs_named) = true;
    return QDQ_OK;
}

qdq_status qdqi_graph_set_tensor_name(qdq_graph *graph, uint64_t id, const char *name, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, name);
    QDQI_TRY(check_growing(graph, "set_tensor_name", err));
    const char *copy = qdqi_arena_strdup(&graph->arena, name);
    if (copy == NULL || !reserve_values(graph, 1)) return QDQI_NO_MEMORY(err);
    graph->values[value_of(graph, id)].name = copy;
    return QDQ_OK;
}
