#include "api/api_objects.h"

#include "base/alloc.h"

qdq_status qdq_graph_partition(const qdq_graph *graph, qdq_policy policy, qdq_partition_list **list_out,
                               qdq_error *err) {
    QDQI_NOT_NULL(err, graph);
    QDQI_NOT_NULL(err, list_out);
    if (!graph->finalized) return qdqi_fail(err, QDQ_E_BAD_STATE, "the graph is not finalized: no partitions yet");
    qdq_partition_list *list = qdqi_calloc(1, sizeof *list);
    if (list == NULL) return QDQI_NO_MEMORY(err);
    qdqi_graph_retain(graph);
    list->graph = graph;
    qdq_status st = qdqi_partition_graph(graph, policy, &list->parts, err);
    if (st == QDQ_OK) {
        list->items = qdqi_calloc(list->parts->n, sizeof *list->items);
        if (list->items == NULL) st = QDQI_NO_MEMORY(err);
    }
    if (st != QDQ_OK) {
        qdq_partition_list_destroy(&list);
        return st;
    }
    list->n = list->parts->n;
    for (uint32_t i = 0; i < list->n; i++)
        list->items[i] = (qdq_partition){graph, &list->parts->parts[i]};
    *list_out = list;
    return QDQ_OK;
}

void qdq_partition_list_destroy(qdq_partition_list **list) {
    if (list == NULL || *list == NULL) return;
    qdqi_parts_destroy(&(*list)->parts);
    qdqi_graph_release((*list)->graph);
    qdqi_free((*list)->items);
    qdqi_free(*list);
    *list = NULL;
}

size_t qdq_partition_list_count(const qdq_partition_list *list) {
    return list == NULL ? 0 : list->n;
}

const qdq_partition *qdq_partition_list_get(const qdq_partition_list *list, size_t i) {
    return list == NULL || i >= list->n ? NULL : &list->items[i];
}

size_t qdq_partition_id(const qdq_partition *partition) {
    return partition == NULL ? 0 : partition->part->id;
}

bool qdq_partition_is_supported(const qdq_partition *partition) {
    if (partition == NULL) return false;
    for (uint32_t i = 0; i < partition->part->n_ops; i++)
        if ((partition->graph->ops[partition->part->ops[i]].schema->flags & (QDQI_F_OPAQUE | QDQI_F_NO_OUTPUT)) != 0)
            return false;
    return true;
}

const char *qdq_partition_pattern(const qdq_partition *partition) {
    return partition == NULL ? "" : partition->part->pattern;
}
size_t qdq_partition_n_ops(const qdq_partition *partition) {
    return partition == NULL ? 0 : partition->part->n_ops;
}
size_t qdq_partition_n_inputs(const qdq_partition *partition) {
    return partition == NULL ? 0 : partition->part->n_inputs;
}
size_t qdq_partition_n_outputs(const qdq_partition *partition) {
    return partition == NULL ? 0 : partition->part->n_outputs;
}

static qdq_status out_of_range(const qdq_partition *partition, size_t i, size_t n, const char *what, qdq_error *err) {
    return qdqi_fail(err, QDQ_E_NOT_FOUND, "partition %u has %zu %ss, asked for number %zu", partition->part->id, n,
                     what, i);
}

qdq_status qdq_partition_op(const qdq_partition *partition, size_t i, uint64_t *id_out, const char **kind_out,
                            const char **name_out, qdq_error *err) {
    QDQI_NOT_NULL(err, partition);
    if (i >= partition->part->n_ops) return out_of_range(partition, i, partition->part->n_ops, "op", err);
    const qdqi_op *op = &partition->graph->ops[partition->part->ops[i]];
    if (id_out != NULL) *id_out = op->id;
    if (kind_out != NULL) *kind_out = op->schema->name;
    if (name_out != NULL) *name_out = op->name;
    return QDQ_OK;
}

qdq_status qdq_partition_input(const qdq_partition *partition, size_t i, qdq_tensor_desc *desc_out, qdq_error *err) {
    QDQI_NOT_NULL(err, partition);
    QDQI_NOT_NULL(err, desc_out);
    if (i >= partition->part->n_inputs) return out_of_range(partition, i, partition->part->n_inputs, "input", err);
    *desc_out = partition->graph->values[partition->part->inputs[i]].desc;
    return QDQ_OK;
}

qdq_status qdq_partition_output(const qdq_partition *partition, size_t i, qdq_tensor_desc *desc_out, qdq_error *err) {
    QDQI_NOT_NULL(err, partition);
    QDQI_NOT_NULL(err, desc_out);
    if (i >= partition->part->n_outputs) return out_of_range(partition, i, partition->part->n_outputs, "output", err);
    *desc_out = partition->graph->values[partition->part->outputs[i]].desc;
    return QDQ_OK;
}
