/* The ops of a partition as a graph of their own and a session of it: how constants get in, and how partitions that consist of several
 * of libqdq's are computed. */
#include "abi.h"

/* The ports by the id of their tensor: inputs, then outputs. */
static bool index_ports(const abi_code *code, abi_map *map) {
    bool ok = true;
    for (size_t i = 0; ok && i < code->n_in + code->n_out; i++)
        ok = abi_map_put(map, i < code->n_in ? code->in[i].lt.id : code->out[i - code->n_in].lt.id, (uint32_t)i);
    return ok;
}

/* An op with its ports as they are compiled, and nothing said of what is inside. */
static qdq_status add_op(const abi_op *op, const abi_map *ports, const qdq_tensor_desc *descs, qdq_graph *graph,
                         qdq_error *err) {
    qdq_op *to = NULL;
    abi_op bare = *op;
    bare.n_in = bare.n_out = 0;
    qdq_status st = abi_op_to_qdq(&bare, false, &to, err);
    for (size_t i = 0; st == QDQ_OK && i < op->n_in + op->n_out; i++) {
        const abi_lt *lt = i < op->n_in ? &op->in[i] : &op->out[i - op->n_in];
        const uint32_t port = abi_map_get(ports, lt->id);
        qdq_tensor_desc desc;
        if (port != ABI_NONE)
            desc = descs[port];
        else
            st = abi_lt_edge(lt, false, &desc);
        if (st == QDQ_OK) st = i < op->n_in ? qdq_op_add_input(to, &desc, err) : qdq_op_add_output(to, &desc, err);
    }
    if (st == QDQ_OK) st = qdq_graph_add_op(graph, to, err);
    qdq_op_destroy(&to);
    return st;
}

static qdq_status set_ports(const abi_code *code, const qdq_tensor_desc *descs, const void *const *constants,
                            qdq_graph *graph, qdq_error *err) {
    size_t n = 0;
    qdq_status st = QDQ_OK;
    uint64_t *ids = abi_calloc(code->n_in + code->n_out, sizeof *ids);
    if (ids == NULL) return QDQ_E_NO_MEMORY;
    for (size_t i = 0; st == QDQ_OK && i < code->n_in; i++) {
        if (constants == NULL || !code->in[i].constant)
            ids[n++] = code->in[i].lt.id;
        else
            st = qdq_graph_set_constant(graph, &descs[i], constants[i], abi_lt_bytes(&code->in[i].lt), QDQ_DATA_COPY,
                                        err);
    }
    if (st == QDQ_OK) st = qdq_graph_set_inputs(graph, ids, n, err);
    for (size_t i = 0; i < code->n_out; i++)
        ids[i] = code->out[i].lt.id;
    if (st == QDQ_OK) st = qdq_graph_set_outputs(graph, ids, code->n_out, err);
    free(ids);
    return st;
}

qdq_status abi_session_create(const abi_code *code, const qdq_tensor_desc *descs, const void *const *constants,
                              qdq_session **out, qdq_error *err) {
    qdq_graph *graph = NULL;
    abi_map ports = {0};
    qdq_status st = index_ports(code, &ports) ? qdq_graph_create(&graph, err) : QDQ_E_NO_MEMORY;
    for (size_t i = 0; st == QDQ_OK && i < code->partition->n_ops; i++)
        st = add_op(code->partition->ops[i], &ports, descs, graph, err);
    if (st == QDQ_OK) st = set_ports(code, descs, constants, graph, err);
    if (st == QDQ_OK) st = qdq_graph_finalize(graph, err);
    if (st == QDQ_OK) st = qdq_session_create(graph, code->engine, NULL, out, err);
    qdq_graph_destroy(&graph);
    abi_map_free(&ports);
    return st;
}
