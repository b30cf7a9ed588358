/* Pieces that building and finalizing a graph share. */
#ifndef QDQI_GRAPH_PARTS_H
#define QDQI_GRAPH_PARTS_H

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An aligned buffer that lives as long as the graph. */
qdq_status qdqi_graph_own(qdq_graph *graph, size_t bytes, void **data_out, qdq_error *err);
/* Fill graph->topo. Errors: CYCLE, naming an op on it; NO_MEMORY. Needs producers and the uses of every value. */
qdq_status qdqi_graph_sort(qdq_graph *graph, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
