/* Which of libqdq's partitions are one to the caller.
 *
 * libqdq makes a partition of what one of its patterns computes as a whole. oneDNN Graph counts some more ops into one, whole stages of
 * convolutions among them, and a caller may count on it. So partitions are joined along some edges.
 *
 * That joining makes no cycle: let a group be as old as its first partition. All edges between groups lead from an older to a younger
 * one, to begin with because partitions come sorted. A partition, in its turn, joins the group of one of its producers
 * only if the groups of all others are older than that one, so it stays true. */
#include "abi.h"

typedef enum family { OTHER, CONV, MATMUL, POOL, NORM, RESIZE, RELAYOUT, POINTWISE } family;

static family family_of_kind(dnnl_graph_op_kind_t kind) {
    switch ((int)kind) {
    case dnnl_graph_op_convolution:
    case dnnl_graph_op_conv_transpose: return CONV;
    case dnnl_graph_op_matmul: return MATMUL;
    case dnnl_graph_op_avg_pool:
    case dnnl_graph_op_max_pool: return POOL;
    case dnnl_graph_op_batch_norm_inference:
    case dnnl_graph_op_layer_norm:
    case dnnl_graph_op_group_norm:
    case dnnl_graph_op_softmax:
    case dnnl_graph_op_log_softmax:
    case dnnl_graph_op_reduce_l1:
    case dnnl_graph_op_reduce_l2:
    case dnnl_graph_op_reduce_max:
    case dnnl_graph_op_reduce_mean:
    case dnnl_graph_op_reduce_min:
    case dnnl_graph_op_reduce_prod:
    case dnnl_graph_op_reduce_sum: return NORM;
    case dnnl_graph_op_interpolate: return RESIZE;
    case dnnl_graph_op_static_reshape:
    case dnnl_graph_op_static_transpose:
    case dnnl_graph_op_reorder: return RELAYOUT;
    case dnnl_graph_op_concat:
    case dnnl_graph_op_gen_index:
    case dnnl_graph_op_dequantize:
    case dnnl_graph_op_dynamic_dequantize:
    case dnnl_graph_op_end:
    case dnnl_graph_op_wildcard: return OTHER;
    default: return POINTWISE;
    }
}

/* The heaviest op says what a partition is. Relayouts and pointwise ops are so only among themselves. */
static family family_of(const abi_core *core, const qdq_partition *p) {
    family found = POINTWISE;
    const size_t n = qdq_partition_n_ops(p);
    size_t n_relayout = 0, n_other = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t id;
        if (qdq_partition_op(p, i, &id, NULL, NULL, NULL) != QDQ_OK) return OTHER;
        const family f = family_of_kind(core->ops[abi_map_get(&core->op_ids, id)]->kind);
        n_relayout += f == RELAYOUT;
        n_other += f == OTHER;
        if (f >= CONV && f <= RESIZE && (found == POINTWISE || f < found)) found = f;
    }
    if (found != POINTWISE) return found;
    return n_relayout == n ? RELAYOUT : n_relayout + n_other > 0 ? OTHER : POINTWISE;
}

/* Whether oneDNN Graph may have both in one partition: stages of convolutions; what is pointwise behind anything that computes; the
 * reshapes and the transposition of a shuffle. */
static bool joins(family producer, family consumer, bool only_consumer) {
    if (producer == CONV && consumer == CONV) return true;
    if (producer == RELAYOUT && consumer == RELAYOUT) return only_consumer;
    return consumer == POINTWISE && producer != OTHER && producer != RELAYOUT && only_consumer;
}

typedef struct joiner {
    const abi_core *core;
    abi_list *list;
    size_t n_parts;
    family *families;
    uint32_t *maker;   /* of each value of the core: the partition that gives it out, or ABI_NONE */
    uint32_t *n_users; /* … and how many partitions read it */
} joiner;

static uint32_t value_of(const joiner *j, const qdq_tensor_desc *desc) {
    return abi_map_get(&j->core->value_ids, desc->id);
}

/* The value behind an input or output of a partition. */
static uint32_t port(const joiner *j, const qdq_partition *p, size_t i, bool output) {
    qdq_tensor_desc desc;
    const qdq_status st = output ? qdq_partition_output(p, i, &desc, NULL) : qdq_partition_input(p, i, &desc, NULL);
    return st == QDQ_OK ? value_of(j, &desc) : ABI_NONE;
}

static void look(joiner *j) {
    for (size_t v = 0; v < j->core->n_values; v++)
        j->maker[v] = ABI_NONE;
    for (size_t i = 0; i < j->n_parts; i++) {
        const qdq_partition *p = qdq_partition_list_get(j->list->list, i);
        j->families[i] = qdq_partition_is_supported(p) ? family_of(j->core, p) : OTHER;
        for (size_t k = 0; k < qdq_partition_n_outputs(p); k++) {
            const uint32_t v = port(j, p, k, true);
            if (v != ABI_NONE) j->maker[v] = (uint32_t)i;
        }
        for (size_t k = 0; k < qdq_partition_n_inputs(p); k++) {
            const uint32_t v = port(j, p, k, false);
            if (v != ABI_NONE) j->n_users[v]++;
        }
    }
}

/* The group that a partition joins, or a new one. Groups are numbered by age. */
static uint32_t group_for(const joiner *j, size_t i, uint32_t new_group) {
    const qdq_partition *p = qdq_partition_list_get(j->list->list, i);
    const uint32_t *group_of = j->list->group_of;
    const size_t n = qdq_partition_n_inputs(p);
    uint32_t youngest = ABI_NONE;
    bool may = false;
    for (size_t k = 0; k < n; k++) {
        const uint32_t v = port(j, p, k, false), maker = v == ABI_NONE ? ABI_NONE : j->maker[v];
        if (maker == ABI_NONE) continue;
        const uint32_t g = group_of[maker];
        const bool fits = joins(j->families[maker], j->families[i], j->n_users[v] == 1 && !j->core->values[v].ended);
        if (youngest == ABI_NONE || g > youngest) {
            youngest = g;
            may = fits;
        } else if (g == youngest) {
            may |= fits;
        }
    }
    return may ? youngest : new_group;
}

/* Values that leave their group: read by another one, by an End, or by nobody. */
static void find_leaving(const joiner *j) {
    const abi_core *core = j->core;
    for (size_t v = 0; v < core->n_values; v++)
        j->list->leaves[v] = j->maker[v] != ABI_NONE && (core->values[v].ended || !core->values[v].used);
    for (size_t i = 0; i < j->n_parts; i++) {
        const qdq_partition *p = qdq_partition_list_get(j->list->list, i);
        for (size_t k = 0; k < qdq_partition_n_inputs(p); k++) {
            const uint32_t v = port(j, p, k, false);
            if (v != ABI_NONE && j->maker[v] != ABI_NONE && j->list->group_of[j->maker[v]] != j->list->group_of[i])
                j->list->leaves[v] = true;
        }
    }
}

/* The partitions of each group, in order. */
static bool list_members(abi_list *list, size_t n_parts) {
    list->starts = abi_calloc(list->n + 2, sizeof *list->starts);
    list->members = abi_calloc(n_parts, sizeof *list->members);
    if (list->starts == NULL || list->members == NULL) return false;
    for (size_t i = 0; i < n_parts; i++)
        list->starts[list->group_of[i] + 2]++;
    for (size_t g = 0; g < list->n; g++)
        list->starts[g + 2] += list->starts[g + 1];
    for (size_t i = 0; i < n_parts; i++) /* starts[g + 1] runs from where group g begins to where it ends */
        list->members[list->starts[list->group_of[i] + 1]++] = (uint32_t)i;
    return true;
}

bool abi_join(abi_list *list, bool join) {
    joiner j = {.core = list->core, .list = list, .n_parts = qdq_partition_list_count(list->list)};
    list->group_of = abi_calloc(j.n_parts, sizeof *list->group_of);
    list->leaves = abi_calloc(list->core->n_values, sizeof *list->leaves);
    j.families = abi_calloc(j.n_parts, sizeof *j.families);
    j.maker = abi_calloc(list->core->n_values, sizeof *j.maker);
    j.n_users = abi_calloc(list->core->n_values, sizeof *j.n_users);
    bool ok =
        list->group_of != NULL && list->leaves != NULL && j.families != NULL && j.maker != NULL && j.n_users != NULL;
    if (ok) {
        uint32_t n = 0;
        look(&j);
        for (size_t i = 0; i < j.n_parts; i++) {
            list->group_of[i] = join ? group_for(&j, i, n) : n;
            n += list->group_of[i] == n;
        }
        list->n = n;
        find_leaving(&j);
        ok = list_members(list, j.n_parts);
    }
    free(j.families);
    free(j.maker);
    free(j.n_users);
    return ok;
}
