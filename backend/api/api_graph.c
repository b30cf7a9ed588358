#include "ir/graph.h"
#include "ref/ref.h"

qdq_status qdq_graph_create(qdq_graph **graph_out, qdq_error *err) {
    QDQI_NOT_NULL(err, graph_out);
    return qdqi_graph_create(graph_out, err);
}

void qdq_graph_destroy(qdq_graph **graph) {
    if (graph == NULL) return;
    qdqi_graph_release(*graph);
    *graph = NULL;
}

qdq_status qdq_graph_add_op(qdq_graph *graph, const qdq_op *op, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, op);
    return qdqi_graph_add_op(graph, op, err);
}

qdq_status qdq_graph_set_constant(qdq_graph *graph, const qdq_tensor_desc *desc, const void *data, size_t bytes,
                                  qdq_data_mode mode, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, desc);
    if (bytes != 0) QDQI_NOT_NULL(err, data);
    return qdqi_graph_set_constant(graph, desc, data, bytes, mode, err);
}

qdq_status qdq_graph_set_inputs(qdq_graph *graph, const uint64_t *ids, size_t n, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (n != 0) QDQI_NOT_NULL(err, ids);
    return qdqi_graph_set_ports(graph, ids, n, false, err);
}

qdq_status qdq_graph_set_outputs(qdq_graph *graph, const uint64_t *ids, size_t n, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (n != 0) QDQI_NOT_NULL(err, ids);
    return qdqi_graph_set_ports(graph, ids, n, true, err);
}

qdq_status qdq_graph_set_tensor_name(qdq_graph *graph, uint64_t id, const char *name, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, name);
    return qdqi_graph_set_tensor_name(graph, id, name, err);
}

qdq_status qdq_graph_finalize(qdq_graph *graph, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    return qdqi_graph_finalize(graph, qdqi_ref_fold, err);
}

bool qdq_graph_is_finalized(const qdq_graph *graph) {
    return graph != NULL && graph->finalized;
}
size_t qdq_graph_n_ops(const qdq_graph *graph) {
    return graph == NULL ? 0 : graph->n_ops;
}
size_t qdq_graph_n_inputs(const qdq_graph *graph) {
    return graph == NULL ? 0 : graph->n_inputs;
}
size_t qdq_graph_n_outputs(const qdq_graph *graph) {
    return graph == NULL ? 0 : graph->n_outputs;
}

static qdq_status port_desc(const qdq_graph *graph, const uint32_t *ports, size_t n, size_t i, const char *what,
                            qdq_tensor_desc *desc_out, const char **name_out, qdq_error *err) {
    QDQI_NOT_NULL(err, desc_out);
    if (i >= n) return qdqi_fail(err, QDQ_E_NOT_FOUND, "graph has %zu %ss, asked for number %zu", n, what, i);
    const qdqi_value *value = &graph->values[ports[i]];
    *desc_out = value->desc;
    if (name_out != NULL) *name_out = value->name;
    return QDQ_OK;
}

qdq_status qdq_graph_input_desc(const qdq_graph *graph, size_t i, qdq_tensor_desc *desc_out, const char **name_out,
                                qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    return port_desc(graph, graph->inputs, graph->n_inputs, i, "input", desc_out, name_out, err);
}

qdq_status qdq_graph_output_desc(const qdq_graph *graph, size_t i, qdq_tensor_desc *desc_out, const char **name_out,
                                 qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    return port_desc(graph, graph->outputs, graph->n_outputs, i, "output", desc_out, name_out, err);
}

qdq_status qdq_graph_tensor_desc(const qdq_graph *graph, uint64_t id, qdq_tensor_desc *desc_out, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, desc_out);
    const uint32_t value = qdqi_graph_value(graph, id);
    if (value == QDQI_NONE)
        return qdqi_fail(err, QDQ_E_NOT_FOUND, "no op of the graph mentions tensor %llu", (unsigned long long)id);
    *desc_out = graph->values[value].desc;
    return QDQ_OK;
}

qdq_status qdq_graph_run_reference(const qdq_graph *graph, const qdq_tensor *inputs, size_t n_inputs,
                                   const qdq_tensor *outputs, size_t n_outputs, qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    if (n_inputs != 0) QDQI_NOT_NULL(err, inputs);
    if (n_outputs != 0) QDQI_NOT_NULL(err, outputs);
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "the graph is not finalized");
    return qdqi_ref_graph(graph, inputs, n_inputs, outputs, n_outputs, err);
}
