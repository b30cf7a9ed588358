/* The partitioner: a finalized graph to an ordered list of partitions, in time linear in the number of ops. */
#ifndef QDQI_PARTITION_H
#define QDQI_PARTITION_H

#include "lower/recipe.h"
#include "patterns/matcher.h"

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
/* The same for an explanation. `ends_out[i]` says where and why the match of partition i ended (pattern NULL when it went to the end of its
 * entry, or the partition is a single op); it lives in the list's arena. The matcher comes with all claims made, for
 * qdqi_matcher_nearest; the caller destroys it. */
qdq_status qdqi_partition_explain(const qdq_graph *graph, qdq_policy policy, qdqi_parts **parts_out,
                                  const qdqi_match_step **ends_out, qdqi_matcher **matcher_out, qdq_error *err);
void qdqi_parts_destroy(qdqi_parts **parts);

#ifdef __cplusplus
}
#endif
#endif
