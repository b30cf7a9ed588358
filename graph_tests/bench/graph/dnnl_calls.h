/* The graph API of one library that has it: oneDNN itself, or libqdq's stand-in for it. Both can be open in one process, since
 * their functions are called through this table and never by name; engines, streams and memory are oneDNN's for both. */
#ifndef DNNL_CALLS_H
#define DNNL_CALLS_H

#include "base/error.h"
#include "harness/dnnl_graph_calls.h"

#include "oneapi/dnnl/dnnl_graph.h"

typedef struct dnnl_calls {
    void *lib; /* of dlopen */
#define DNNL_CALLS_MEMBER(name) __typeof__(&dnnl_graph_##name) name;
    QH_DNNL_GRAPH_CALLS(DNNL_CALLS_MEMBER)
#undef DNNL_CALLS_MEMBER
} dnnl_calls;

/* Open the library `path`, or with NULL the libdnnl that this program is linked with. It stays open. Errors: IO, naming what is
 * missing. */
qdq_status dnnl_calls_open(const char *path, dnnl_calls *calls, qdq_error *err);

#endif
