/* Graphs: ops are checked and added to libqdq's graph as they come; finalize links them. */
#include "abi.h"

#include <string.h>

abi_core *abi_core_create(dnnl_engine_kind_t kind, dnnl_fpmath_mode_t mode) {
    static atomic_size_t last_id;
    abi_core *core = abi_calloc(1, sizeof *core);
    if (core == NULL) return NULL;
    atomic_init(&core->refs, 1);
    core->id = atomic_fetch_add(&last_id, 1) + 1;
    core->kind = kind;
    core->mode = mode;
    if (qdq_graph_create(&core->graph, NULL) == QDQ_OK) return core;
    free(core);
    return NULL;
}

void abi_core_retain(abi_core *core) {
    atomic_fetch_add_explicit(&core->refs, 1, memory_order_relaxed);
}

void abi_core_release(abi_core *core) {
    if (core == NULL || atomic_fetch_sub_explicit(&core->refs, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; i < core->n_ops; i++)
        abi_op_release(core->ops[i]);
    free(core->ops);
    free(core->values);
    abi_map_free(&core->op_ids);
    abi_map_free(&core->value_ids);
    qdq_graph_destroy(&core->graph);
    free(core);
}

/* ---- adding ops ------------------------------------------------------------------------------------------------- */

static qdq_status add_to(qdq_graph *graph, const abi_op *op, bool shapes, qdq_error *err) {
    qdq_op *to = NULL;
    qdq_status st = abi_op_to_qdq(op, shapes, &to, err);
    if (st == QDQ_OK) st = qdq_graph_add_op(graph, to, err);
    qdq_op_destroy(&to);
    return st;
}

/* Shapes in a graph are hints, and a partition is compiled for those that come then: an op whose shapes do not fit is
 * taken without them. */
static qdq_status add_with_or_without_shapes(qdq_graph *graph, const abi_op *op, qdq_error *err) {
    const qdq_status st = add_to(graph, op, true, err);
    return st == QDQ_E_BAD_SHAPE ? add_to(graph, op, false, err) : st;
}

/* Ports of ops that libqdq does not look into. */
static bool ports_legal(const abi_op *op) {
    if (!abi_kind_takes(op->kind, op->n_in, op->n_out)) return false;
    for (size_t i = 0; i < op->n_in + op->n_out; i++) {
        const abi_lt *lt = i < op->n_in ? &op->in[i] : &op->out[i - op->n_in];
        const bool any = op->kind == dnnl_graph_op_wildcard || op->kind == dnnl_graph_op_end;
        if (!abi_lt_legal(lt) || (!any && lt->data_type == dnnl_data_type_undef)) return false;
    }
    return true;
}

/* The value of a mention; made when it is the first. ABI_NONE: no memory. */
static uint32_t mention(abi_core *core, const abi_lt *lt) {
    const uint32_t known = abi_map_get(&core->value_ids, lt->id);
    if (known != ABI_NONE) {
        if (!abi_lt_same(core->values[known].lt, lt)) core->conflict = true;
        return known;
    }
    const uint32_t i = (uint32_t)core->n_values;
    if (i == ABI_NONE || !abi_grow(&core->values, core->n_values, &core->cap_values, sizeof *core->values) ||
        !abi_map_put(&core->value_ids, lt->id, i))
        return ABI_NONE;
    core->values[core->n_values++] = (abi_value){.lt = lt, .producer = ABI_NONE};
    return i;
}

static bool link_op(abi_core *core, const abi_op *op, uint32_t index) {
    const bool is_end = op->kind == dnnl_graph_op_end;
    core->has_end |= is_end;
    for (size_t i = 0; i < op->n_in; i++) {
        const uint32_t v = mention(core, &op->in[i]);
        if (v == ABI_NONE) return false;
        core->values[v].used = true;
        core->values[v].ended |= is_end;
    }
    for (size_t i = 0; i < op->n_out; i++) {
        const uint32_t v = mention(core, &op->out[i]);
        if (v == ABI_NONE) return false;
        core->values[v].producer = index;
    }
    return true;
}

dnnl_status_t abi_core_add(abi_core *core, abi_op *op) {
    qdq_error err = {0};
    const uint32_t index = (uint32_t)core->n_ops;
    if (!ports_legal(op)) return abi_fail(dnnl_invalid_graph_op, "add_op", NULL);
    if (index == ABI_NONE || !abi_grow(&core->ops, core->n_ops, &core->cap_ops, sizeof(abi_op *)))
        return dnnl_out_of_memory;
    const qdq_status st = add_with_or_without_shapes(core->graph, op, &err);
    if (st == QDQ_E_NO_MEMORY) return dnnl_out_of_memory;
    if (st != QDQ_OK) return abi_fail(dnnl_invalid_graph_op, "add_op", &err);
    abi_op_retain(op); /* values point into it from now on */
    core->ops[core->n_ops++] = op;
    if (abi_map_put(&core->op_ids, op->id, index) && link_op(core, op, index)) return dnnl_success;
    core->conflict = true; /* half of it is linked: no such graph is finalized */
    return dnnl_out_of_memory;
}

/* ---- finalize --------------------------------------------------------------------------------------------------- */

/* An End marks its input as a result, which would count as consumed otherwise. */
static qdq_status set_outputs(const abi_core *core, qdq_graph *graph, qdq_error *err) {
    if (!core->has_end) return QDQ_OK;
    size_t n = 0;
    uint64_t *ids = abi_calloc(core->n_values, sizeof *ids);
    if (ids == NULL) return QDQ_E_NO_MEMORY;
    for (size_t i = 0; i < core->n_values; i++) {
        const abi_value *v = &core->values[i];
        if (v->producer != ABI_NONE && (v->ended || !v->used)) ids[n++] = v->lt->id;
    }
    const qdq_status st = qdq_graph_set_outputs(graph, ids, n, err);
    free(ids);
    return st;
}

static qdq_status finalize(abi_core *core, qdq_graph *graph, qdq_error *err) {
    const qdq_status st = set_outputs(core, graph, err);
    return st == QDQ_OK ? qdq_graph_finalize(graph, err) : st;
}

/* The same graph with no shape in it. */
static qdq_status finalize_without_shapes(abi_core *core, qdq_error *err) {
    qdq_graph *graph = NULL;
    qdq_status st = qdq_graph_create(&graph, err);
    for (size_t i = 0; st == QDQ_OK && i < core->n_ops; i++)
        st = add_to(graph, core->ops[i], false, err);
    if (st == QDQ_OK) st = finalize(core, graph, err);
    if (st == QDQ_OK) {
        qdq_graph_destroy(&core->graph);
        core->graph = graph;
    } else {
        qdq_graph_destroy(&graph);
    }
    return st;
}

dnnl_status_t abi_core_finalize(abi_core *core) {
    qdq_error err = {0};
    if (core->conflict) return abi_fail(dnnl_invalid_graph, "finalize", NULL);
    qdq_status st = finalize(core, core->graph, &err);
    if (st == QDQ_E_BAD_SHAPE) st = finalize_without_shapes(core, &err);
    if (st == QDQ_E_NO_MEMORY) return dnnl_out_of_memory;
    return st == QDQ_OK ? dnnl_success : abi_fail(dnnl_invalid_graph, "finalize", &err);
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static dnnl_status_t create(dnnl_graph_graph_t *graph, dnnl_engine_kind_t kind, dnnl_fpmath_mode_t mode) {
    if (graph == NULL) return dnnl_invalid_arguments;
    dnnl_graph_graph_t g = abi_calloc(1, sizeof *g);
    if (g == NULL) return dnnl_out_of_memory;
    g->core = abi_core_create(kind, mode);
    if (g->core == NULL) {
        free(g);
        return dnnl_out_of_memory;
    }
    *graph = g;
    return dnnl_success;
}

static bool legal_mode(dnnl_fpmath_mode_t mode) {
    switch (mode) {
    case dnnl_fpmath_mode_strict:
    case dnnl_fpmath_mode_bf16:
    case dnnl_fpmath_mode_f16:
    case dnnl_fpmath_mode_any:
    case dnnl_fpmath_mode_tf32: return true;
    }
    return false;
}

dnnl_status_t dnnl_graph_graph_create(dnnl_graph_graph_t *graph, dnnl_engine_kind_t engine_kind) {
    dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
    if (dnnl_get_default_fpmath_mode(&mode) != dnnl_success) mode = dnnl_fpmath_mode_strict;
    return create(graph, engine_kind, mode);
}

dnnl_status_t dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t *graph, dnnl_engine_kind_t engine_kind,
                                                       dnnl_fpmath_mode_t mode) {
    return legal_mode(mode) ? create(graph, engine_kind, mode) : dnnl_invalid_arguments;
}

dnnl_status_t dnnl_graph_graph_destroy(dnnl_graph_graph_t graph) {
    if (graph != NULL) {
        abi_list_release(graph->list);
        abi_core_release(graph->core);
    }
    free(graph);
    return dnnl_success;
}

/* libqdq never computes in less than the data types say, so a mode allows what it does not need. */
dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode, int apply_to_int) {
    if (graph == NULL || !legal_mode(mode)) return dnnl_invalid_arguments;
    if (graph->finalized) return dnnl_invalid_graph;
    graph->core->mode = mode;
    graph->core->apply_to_int = apply_to_int != 0;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t *mode, int *apply_to_int) {
    if (graph == NULL) return dnnl_invalid_arguments;
    if (mode != NULL) *mode = graph->core->mode;
    if (apply_to_int != NULL) *apply_to_int = graph->core->apply_to_int;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op) {
    if (graph == NULL || op == NULL) return dnnl_invalid_arguments;
    if (graph->finalized) return dnnl_invalid_graph;
    return abi_core_add(graph->core, op->op);
}

dnnl_status_t dnnl_graph_graph_finalize(dnnl_graph_graph_t graph) {
    if (graph == NULL) return dnnl_invalid_arguments;
    if (graph->finalized) return dnnl_success;
    const dnnl_status_t status = abi_core_finalize(graph->core);
    graph->finalized = status == dnnl_success;
    if (graph->finalized) abi_dump_graph(graph->core);
    return status;
}

dnnl_status_t dnnl_graph_graph_is_finalized(dnnl_graph_graph_t graph, uint8_t *finalized) {
    if (graph == NULL || finalized == NULL) return dnnl_invalid_arguments;
    *finalized = graph->finalized;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t graph, dnnl_graph_partition_policy_t policy) {
    if (graph == NULL || !graph->finalized) return dnnl_invalid_graph;
    if (policy != dnnl_graph_partition_policy_fusion && policy != dnnl_graph_partition_policy_debug)
        return dnnl_invalid_arguments;
    abi_list *list = NULL;
    const dnnl_status_t status = abi_list_create(
        graph->core, policy == dnnl_graph_partition_policy_fusion ? QDQ_POLICY_FUSION : QDQ_POLICY_SINGLE, &list);
    if (status != dnnl_success) return status;
    abi_list_release(graph->list);
    graph->list = list;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t graph, size_t *num) {
    if (graph == NULL) return dnnl_invalid_graph;
    if (num == NULL) return dnnl_invalid_arguments;
    *num = graph->list == NULL ? 0 : graph->list->n;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_get_partitions(dnnl_graph_graph_t graph, size_t num,
                                              dnnl_graph_partition_t *partitions) {
    if (graph == NULL || partitions == NULL || num == 0 || graph->list == NULL) return dnnl_invalid_graph;
    if (num != graph->list->n) return dnnl_invalid_arguments;
    for (size_t i = 0; i < num; i++) {
        const dnnl_status_t status = abi_partition_create(graph->list, i, &partitions[i]);
        if (status == dnnl_success) continue;
        while (i-- > 0)
            dnnl_graph_partition_destroy(partitions[i]);
        return status;
    }
    return dnnl_success;
}
