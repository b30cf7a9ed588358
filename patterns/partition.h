/* The partitioner: a finalized graph to an ordered list of partitions, in time linear in the number of ops. */
#ifndef QDQI_PARTITION_H
#define QDQI_PARTITION_H

#include "lower/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_parts {
    qdqi_arena arena;
    uint32_t n;
    qdqi_part *parts;    /* topological order: a partition reads only what earlier ones made; parts[i].id is i */
    uint64_t n_attempts; /* times that an op was held against a node of a pattern: the measure of the work */
} qdqi_parts;

/* Folded ops take no part. A Dequantize whose result every consumer absorbed, and that is no graph output, gets no partition
 * of its own. `graph` must outlive the list. Errors: BAD_STATE when not finalized, BAD_ARG for an unknown policy, NO_MEMORY. */
qdq_status qdqi_partition_graph(const qdq_graph *graph, qdq_policy policy, qdqi_parts **parts_out, qdq_error *err);
void qdqi_parts_destroy(qdqi_parts **parts);

#ifdef __cplusplus
}
#endif
#endif
