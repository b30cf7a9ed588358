/* A case as a graph of the C API of dnnl_graph.h. */
#ifndef GRAPH_BENCH_DNNL_H
#define GRAPH_BENCH_DNNL_H

#include "dnnl_calls.h"
#include "graph_bench.h"

/* dnnl_success, or QDQ_E_UNSUPPORTED with the status in words. */
qdq_status gb_check(dnnl_status_t status, const char *what, qdq_error *err);

/* Build, finalize and partition. Kinds that the API has not are refused, or become wildcards. *graph_out is to be destroyed after a
 * failure too, when it is not NULL. */
qdq_status gb_dnnl_graph(const dnnl_calls *calls, const qdqi_json_case *json, bool wildcards,
                         dnnl_graph_graph_t *graph_out, qdq_error *err);

#endif
