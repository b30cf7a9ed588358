/* finalize: link -> ports -> sort -> (infer, check, fold) in topological order. The graph is immutable afterwards. */
#include "ir/graph_parts.h"

#include "base/alloc.h"
#include "ir/infer.h"

#include <string.h>

/* Folding is for index and shape arithmetic: larger results stay ops, computed when a partition is compiled. */
enum { MAX_FOLD_BYTES = 1 << 20 };

static const qdqi_op *producer_of(const qdq_graph *graph, const qdqi_value *value) {
    return &graph->ops[value->producer];
}

/* Who consumes what, in the order of `order` (NULL: as added). */
static qdq_status link_uses(qdq_graph *graph, const uint32_t *order, qdq_error *err) {
    size_t total = 0;
    for (uint32_t v = 0; v < graph->n_values; v++)
        graph->values[v].n_uses = 0;
    for (uint32_t k = 0; k < graph->n_ops; k++)
        for (uint32_t i = 0; i < graph->ops[k].n_in; i++)
            if (graph->ops[k].in[i] != QDQI_NONE) graph->values[graph->ops[k].in[i]].n_uses++, total++;
    qdqi_use *uses = qdqi_arena_alloc(&graph->arena, total + 1, sizeof *uses);
    if (uses == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t v = 0; v < graph->n_values; v++) {
        graph->values[v].uses = uses;
        uses += graph->values[v].n_uses;
        graph->values[v].n_uses = 0;
    }
    for (uint32_t at = 0; at < graph->n_ops; at++) {
        const uint32_t k = order == NULL ? at : order[at];
        for (uint32_t i = 0; i < graph->ops[k].n_in; i++) {
            if (graph->ops[k].in[i] == QDQI_NONE) continue;
            qdqi_value *value = &graph->values[graph->ops[k].in[i]];
            value->uses[value->n_uses++] = (qdqi_use){k, i};
        }
    }
    return QDQ_OK;
}

/* A finalize that failed may have folded: forget it. */
static void reset(qdq_graph *graph) {
    for (uint32_t k = 0; k < graph->n_ops; k++) {
        qdqi_op *op = &graph->ops[k];
        for (uint32_t i = 0; op->folded && i < op->n_out; i++)
            graph->values[op->out[i]].data = NULL;
        op->folded = false;
    }
    for (uint32_t v = 0; v < graph->n_values; v++)
        graph->values[v].is_input = graph->values[v].is_output = false;
}

/* ---- ports ---- */

static bool is_free(const qdqi_value *value) {
    return value->producer == QDQI_NONE && value->data == NULL;
}

/* End marks its input as wanted outside, and is no consumer. */
static bool is_result(const qdq_graph *graph, const qdqi_value *value) {
    bool consumed = false;
    for (uint32_t u = 0; u < value->n_uses; u++) {
        if (graph->ops[value->uses[u].op].kind == QDQI_OP_END) return true;
        consumed = true;
    }
    return !consumed;
}

/* Without set_inputs / set_outputs: in op order, then port order. */
static qdq_status find_ports(qdq_graph *graph, qdq_error *err) {
    uint32_t *ports = qdqi_arena_alloc(&graph->arena, 2 * (size_t)graph->n_values + 1, sizeof *ports);
    if (ports == NULL) return QDQI_NO_MEMORY(err);
    if (!graph->inputs_named) graph->inputs = ports, graph->n_inputs = 0;
    if (!graph->outputs_named) graph->outputs = ports + graph->n_values, graph->n_outputs = 0;
    for (uint32_t k = 0; k < graph->n_ops; k++) {
        const qdqi_op *op = &graph->ops[k];
        for (uint32_t i = 0; i < op->n_in && !graph->inputs_named; i++) {
            qdqi_value *value = op->in[i] == QDQI_NONE ? NULL : &graph->values[op->in[i]];
            if (value == NULL || value->is_input || !is_free(value)) continue;
            value->is_input = true;
            graph->inputs[graph->n_inputs++] = op->in[i];
        }
        for (uint32_t i = 0; i < op->n_out && !graph->outputs_named; i++) {
            qdqi_value *value = &graph->values[op->out[i]];
            if (value->is_output || !is_result(graph, value)) continue;
            value->is_output = true;
            graph->outputs[graph->n_outputs++] = op->out[i];
        }
    }
    return QDQ_OK;
}

static qdq_status check_named_ports(qdq_graph *graph, qdq_error *err) {
    for (uint32_t i = 0; graph->inputs_named && i < graph->n_inputs; i++) {
        qdqi_value *value = &graph->values[graph->inputs[i]];
        const uint64_t id = value->desc.id;
        if (value->producer != QDQI_NONE)
            return qdqi_fail(err, QDQ_E_BAD_GRAPH,
                             "graph input tensor %" PRIu64 " is produced by op %" PRIu64 " \"%.64s\"", id,
                             producer_of(graph, value)->id, producer_of(graph, value)->name);
        if (value->data != NULL)
            return qdqi_fail(err, QDQ_E_BAD_GRAPH, "graph input tensor %" PRIu64 " is a constant", id);
        if (value->n_uses == 0)
            return qdqi_fail(err, QDQ_E_BAD_GRAPH, "graph input tensor %" PRIu64 ": no op mentions it", id);
        value->is_input = true;
    }
    for (uint32_t i = 0; graph->outputs_named && i < graph->n_outputs; i++) {
        qdqi_value *value = &graph->values[graph->outputs[i]];
        if (value->producer == QDQI_NONE)
            return qdqi_fail(err, QDQ_E_BAD_GRAPH, "graph output tensor %" PRIu64 ": no op produces it",
                             value->desc.id);
        value->is_output = true;
    }
    return QDQ_OK;
}

static qdq_status check_values(const qdq_graph *graph, qdq_error *err) {
    for (uint32_t v = 0; v < graph->n_values; v++) {
        const qdqi_value *value = &graph->values[v];
        if (value->producer != QDQI_NONE && value->data != NULL)
            return qdqi_op_fail(producer_of(graph, value), err, QDQ_E_BAD_GRAPH,
                                "output %" PRIu32 ": tensor %" PRIu64 " is a constant", value->producer_port,
                                value->desc.id);
        if (value->n_uses > 0 && is_free(value) && !value->is_input)
            return qdqi_op_fail(&graph->ops[value->uses[0].op], err, QDQ_E_BAD_GRAPH,
                                "input %" PRIu32 ": tensor %" PRIu64
                                " is produced by no op, holds no constant and is no graph input",
                                value->uses[0].port, value->desc.id);
    }
    return QDQ_OK;
}

static qdq_status find_and_check_ports(qdq_graph *graph, qdq_error *err) {
    QDQI_TRY(check_named_ports(graph, err));
    QDQI_TRY(find_ports(graph, err));
    return check_values(graph, err);
}

/* ---- one op: infer, check, fold ---- */

static qdq_status check_dtypes_found(const qdq_graph *graph, const qdqi_op *op, qdq_error *err) {
    if ((op->schema->flags & (QDQI_F_OPAQUE | QDQI_F_NO_OUTPUT)) != 0) return QDQ_OK;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE && graph->values[op->in[i]].desc.dtype == QDQ_DTYPE_UNDEF)
            return qdqi_op_fail(op, err, QDQ_E_BAD_DTYPE, "input %" PRIu32 ": tensor %" PRIu64 " has no data type", i,
                                graph->values[op->in[i]].desc.id);
    for (uint32_t i = 0; i < op->n_out; i++)
        if (graph->values[op->out[i]].desc.dtype == QDQ_DTYPE_UNDEF)
            return qdqi_op_fail(op, err, QDQ_E_BAD_DTYPE,
                                "output %" PRIu32 ": the data type of tensor %" PRIu64 " must be given", i,
                                graph->values[op->out[i]].desc.id);
    return QDQ_OK;
}

static qdq_status infer(qdq_graph *graph, const qdqi_op *op, qdq_error *err) {
    qdqi_infer_arrays arrays;
    QDQI_TRY(qdqi_infer_arrays_init(&arrays, op->n_in, op->n_out, err));
    for (uint32_t i = 0; i < op->n_in; i++) {
        const qdqi_value *value = op->in[i] == QDQI_NONE ? NULL : &graph->values[op->in[i]];
        arrays.in[i] = value == NULL ? NULL : &value->desc;
        arrays.in_data[i] = value == NULL ? NULL : qdqi_value_dense_data(value);
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        arrays.out[i] = &graph->values[op->out[i]].desc;
    const qdqi_infer_ctx ctx = qdqi_infer_arrays_ctx(&arrays, op, err);
    qdq_status st = qdqi_run_rules(&ctx);
    if (st == QDQ_OK) st = check_dtypes_found(graph, op, err);
    qdqi_infer_arrays_free(&arrays);
    return st;
}

/* All inputs are constants, all outputs are small, inner and known. Shape reads no content: known dims are enough. */
static bool can_fold(const qdq_graph *graph, const qdqi_op *op) {
    if ((op->schema->flags & QDQI_F_FOLD) == 0) return false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i] == QDQI_NONE) continue;
        const qdqi_value *value = &graph->values[op->in[i]];
        if (op->kind == QDQI_OP_SHAPE ? !qdqi_dims_known(&value->desc) : value->data == NULL) return false;
    }
    size_t total = 0;
    for (uint32_t i = 0; i < op->n_out; i++) {
        const qdqi_value *value = &graph->values[op->out[i]];
        qdq_tensor_desc dense = value->desc;
        size_t bytes = 0;
        if (value->is_output || !qdqi_dims_known(&dense)) return false;
        qdqi_set_dense(&dense);
        if (qdqi_desc_bytes(&dense, &bytes, NULL) != QDQ_OK || !qdqi_add_size(total, bytes, &total)) return false;
    }
    return total <= MAX_FOLD_BYTES;
}

/* Buffers for the outputs, the computation, and only then the values' content. */
static qdq_status fold_into(qdq_graph *graph, qdqi_op *op, void **buffers, qdqi_fold_fn compute, qdq_error *err) {
    for (uint32_t i = 0; i < op->n_out; i++) {
        qdqi_value *value = &graph->values[op->out[i]];
        qdqi_set_dense(&value->desc);
        QDQI_TRY(qdqi_desc_bytes(&value->desc, &value->data_bytes, err));
        QDQI_TRY(qdqi_graph_own(graph, value->data_bytes, &buffers[i], err));
    }
    QDQI_TRY(compute(graph, op, buffers, err));
    for (uint32_t i = 0; i < op->n_out; i++) {
        qdqi_value *value = &graph->values[op->out[i]];
        value->data = buffers[i];
        value->desc.property = QDQ_PROPERTY_CONSTANT;
    }
    op->folded = true;
    return QDQ_OK;
}

static qdq_status fold(qdq_graph *graph, qdqi_op *op, qdqi_fold_fn compute, qdq_error *err) {
    void *few[QDQI_FEW_PORTS] = {NULL}, **buffers = few;
    if (op->n_out > QDQI_FEW_PORTS) buffers = qdqi_calloc(op->n_out, sizeof *buffers);
    if (buffers == NULL) return QDQI_NO_MEMORY(err);
    const qdq_status st = fold_into(graph, op, buffers, compute, err);
    if (buffers != few) qdqi_free(buffers);
    return st;
}

qdq_status qdqi_graph_finalize(qdq_graph *graph, qdqi_fold_fn compute, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (graph->finalized) return QDQ_OK;
    if (graph->link_error != NULL) return qdqi_fail(err, graph->link_error->status, "%s", graph->link_error->text);
    reset(graph);
    QDQI_TRY(link_uses(graph, NULL, err));
    QDQI_TRY(find_and_check_ports(graph, err));
    QDQI_TRY(qdqi_graph_sort(graph, err));
    QDQI_TRY(link_uses(graph, graph->topo, err));
    for (uint32_t at = 0; at < graph->n_ops; at++) {
        qdqi_op *op = &graph->ops[graph->topo[at]];
        QDQI_TRY(infer(graph, op, err));
        if (compute != NULL && can_fold(graph, op)) QDQI_TRY(fold(graph, op, compute, err));
    }
    graph->finalized = true;
    return QDQ_OK;
}
