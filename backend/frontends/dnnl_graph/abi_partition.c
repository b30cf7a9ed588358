/* Partitions: what libqdq's partitioner made, in oneDNN Graph's words. */
#include "abi.h"

#include <string.h>

dnnl_status_t abi_list_create(abi_core *core, qdq_policy policy, abi_list **out) {
    static atomic_size_t next_id = 100001;
    qdq_error err = {0};
    abi_list *list = abi_calloc(1, sizeof *list);
    if (list == NULL) return dnnl_out_of_memory;
    atomic_init(&list->refs, 1);
    abi_core_retain(core);
    list->core = core;
    const qdq_status st = qdq_graph_partition(core->graph, policy, &list->list, &err);
    if (st != QDQ_OK) {
        abi_list_release(list);
        return abi_fail(abi_status(st), "filter", &err);
    }
    if (!abi_join(list, policy == QDQ_POLICY_FUSION)) {
        abi_list_release(list);
        return dnnl_out_of_memory;
    }
    list->first_id = atomic_fetch_add(&next_id, list->n);
    *out = list;
    return dnnl_success;
}

void abi_list_release(abi_list *list) {
    if (list == NULL || atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) > 1) return;
    qdq_partition_list_destroy(&list->list);
    abi_core_release(list->core);
    free(list->group_of);
    free(list->members);
    free(list->starts);
    free(list->leaves);
    free(list);
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

/* What a partition is made from: the members of its group. */
typedef struct group {
    const abi_list *list;
    const uint32_t *members;
    size_t n;
    abi_map ops; /* ids of the ops found so far, when there are many */
} group;

enum { FEW_OPS = 16 };

static const qdq_partition *member(const group *g, size_t i) {
    return qdq_partition_list_get(g->list->list, g->members[i]);
}

static bool holds(const group *g, const struct dnnl_graph_partition *p, uint32_t op_index) {
    const abi_op *op = g->list->core->ops[op_index];
    if (g->ops.cap > 0) return abi_map_get(&g->ops, op->id) != ABI_NONE;
    for (size_t i = 0; i < p->n_ops; i++)
        if (p->ops[i] == op) return true;
    return false;
}

/* A Dequantize may be in several members: it is named once. */
static bool find_ops(group *g, dnnl_graph_partition_t p) {
    const abi_core *core = g->list->core;
    size_t room = 0;
    for (size_t i = 0; i < g->n; i++)
        room += qdq_partition_n_ops(member(g, i));
    p->ops = abi_calloc(room, sizeof(abi_op *));
    if (p->ops == NULL) return false;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = 0; k < qdq_partition_n_ops(member(g, i)); k++) {
            uint64_t id;
            if (qdq_partition_op(member(g, i), k, &id, NULL, NULL, NULL) != QDQ_OK) return false;
            const uint32_t index = abi_map_get(&core->op_ids, id);
            if (g->n > 1 && holds(g, p, index)) continue;
            p->ops[p->n_ops++] = core->ops[index];
            if (room > FEW_OPS && !abi_map_put(&g->ops, id, index)) return false;
        }
    }
    return true;
}

static bool made_inside(const group *g, const struct dnnl_graph_partition *p, size_t id) {
    const abi_core *core = g->list->core;
    const uint32_t producer = core->values[abi_map_get(&core->value_ids, id)].producer;
    return producer != ABI_NONE && holds(g, p, producer);
}

/* One port per use, in the order of the ops: callers count on it. */
static bool find_inputs(const group *g, dnnl_graph_partition_t p) {
    size_t room = 0;
    for (size_t i = 0; i < p->n_ops; i++)
        room += p->ops[i]->n_in;
    p->in = abi_calloc(room, sizeof *p->in);
    if (p->in == NULL) return false;
    for (size_t i = 0; i < p->n_ops; i++)
        for (size_t k = 0; k < p->ops[i]->n_in; k++)
            if (!made_inside(g, p, p->ops[i]->in[k].id)) p->in[p->n_in++] = p->ops[i]->in[k];
    return true;
}

/* What leaves the group. */
static bool find_outputs(const group *g, dnnl_graph_partition_t p) {
    const abi_core *core = g->list->core;
    size_t room = 0;
    for (size_t i = 0; i < g->n; i++)
        room += qdq_partition_n_outputs(member(g, i));
    p->out = abi_calloc(room, sizeof *p->out);
    if (p->out == NULL) return false;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = 0; k < qdq_partition_n_outputs(member(g, i)); k++) {
            qdq_tensor_desc desc;
            if (qdq_partition_output(member(g, i), k, &desc, NULL) != QDQ_OK) return false;
            const uint32_t v = abi_map_get(&core->value_ids, desc.id);
            if (g->n == 1 || g->list->leaves[v]) p->out[p->n_out++] = *core->values[v].lt;
        }
    }
    return true;
}

dnnl_status_t abi_partition_create(abi_list *list, size_t i, dnnl_graph_partition_t *out) {
    dnnl_graph_partition_t p = abi_calloc(1, sizeof *p);
    if (p == NULL) return dnnl_out_of_memory;
    atomic_init(&p->refs, 1);
    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    group g = {.list = list, .members = list->members + list->starts[i], .n = list->starts[i + 1] - list->starts[i]};
    p->list = list;
    p->p = g.n == 1 ? member(&g, 0) : NULL;
    p->id = list->first_id + i;
    p->supported = list->core->kind == dnnl_cpu && qdq_partition_is_supported(member(&g, 0));
    const bool ok = find_ops(&g, p) && find_inputs(&g, p) && find_outputs(&g, p);
    abi_map_free(&g.ops);
    if (!ok) {
        abi_partition_release(p);
        return dnnl_out_of_memory;
    }
    *out = p;
    return dnnl_success;
}

void abi_partition_retain(dnnl_graph_partition_t partition) {
    atomic_fetch_add_explicit(&partition->refs, 1, memory_order_relaxed);
}

void abi_partition_release(dnnl_graph_partition_t partition) {
    if (partition == NULL || atomic_fetch_sub_explicit(&partition->refs, 1, memory_order_acq_rel) > 1) return;
    abi_list_release(partition->list);
    free(partition->ops);
    free(partition->in);
    free(partition->out);
    free(partition);
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

dnnl_status_t dnnl_graph_partition_create_with_op(dnnl_graph_partition_t *partition, const_dnnl_graph_op_t op,
                                                  dnnl_engine_kind_t ekind) {
    if (partition == NULL || op == NULL) return dnnl_invalid_arguments;
    dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
    if (dnnl_get_default_fpmath_mode(&mode) != dnnl_success) mode = dnnl_fpmath_mode_strict;
    abi_core *core = abi_core_create(ekind, mode);
    if (core == NULL) return dnnl_out_of_memory;
    abi_list *list = NULL;
    dnnl_status_t status = abi_core_add(core, op->op);
    if (status == dnnl_success) status = abi_core_finalize(core);
    if (status == dnnl_success) status = abi_list_create(core, QDQ_POLICY_FUSION, &list);
    if (status == dnnl_success) status = abi_partition_create(list, 0, partition);
    abi_list_release(list);
    abi_core_release(core);
    return status;
}

dnnl_status_t dnnl_graph_partition_destroy(dnnl_graph_partition_t partition) {
    abi_partition_release(partition);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t partition, size_t *num) {
    if (partition == NULL || num == NULL) return dnnl_invalid_arguments;
    *num = partition->n_ops;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_ops(dnnl_graph_partition_t partition, size_t num, size_t *ids) {
    if (partition == NULL || ids == NULL || num != partition->n_ops) return dnnl_invalid_arguments;
    for (size_t i = 0; i < num; i++)
        ids[i] = partition->ops[i]->id;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_id(const_dnnl_graph_partition_t partition, size_t *id) {
    if (partition == NULL || id == NULL) return dnnl_invalid_arguments;
    *id = partition->id;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t partition, size_t *num) {
    if (partition == NULL || num == NULL) return dnnl_invalid_arguments;
    *num = partition->n_in;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t partition, size_t *num) {
    if (partition == NULL || num == NULL) return dnnl_invalid_arguments;
    *num = partition->n_out;
    return dnnl_success;
}

static dnnl_status_t give_ports(const abi_lt *from, size_t n, size_t num, abi_lt *to) {
    if (num != n || (n > 0 && to == NULL)) return dnnl_invalid_arguments;
    if (n > 0) memcpy(to, from, n * sizeof *to);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                   dnnl_graph_logical_tensor_t *inputs) {
    if (partition == NULL) return dnnl_invalid_arguments;
    return give_ports(partition->in, partition->n_in, num, inputs);
}

dnnl_status_t dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                    dnnl_graph_logical_tensor_t *outputs) {
    if (partition == NULL) return dnnl_invalid_arguments;
    return give_ports(partition->out, partition->n_out, num, outputs);
}

dnnl_status_t dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t partition, uint8_t *is_supported) {
    if (partition == NULL || is_supported == NULL) return dnnl_invalid_arguments;
    *is_supported = partition->supported;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t partition, dnnl_engine_kind_t *kind) {
    if (partition == NULL || kind == NULL) return dnnl_invalid_arguments;
    *kind = partition->list->core->kind;
    return dnnl_success;
}
