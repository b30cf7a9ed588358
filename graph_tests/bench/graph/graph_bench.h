/* qdq-graph-bench: one JSON case on libqdq and on oneDNN Graph, in one process, on the same inputs.
 *
 *     graph_bench        command line, a child process per measurement, table
 *     graph_bench_case   load, fill, what is constant, alternating rounds
 *     graph_bench_ours   partitions of libqdq
 *     graph_bench_peer   partitions of oneDNN Graph */
#ifndef GRAPH_BENCH_H
#define GRAPH_BENCH_H

#include "driver/bench.h"

typedef struct gb_options {
    const char *path;
    int n_threads, rounds;
    double max_ms;      /* of all rounds together */
    bool const_weights; /* inputs that lead to weights and bias are constant, whatever the file says */
    bool show_how;      /* our partitions with their times, to stderr */
} gb_options;

typedef struct gb_case {
    qdqi_json_case *json; /* with the shapes and layouts of inference */
    qdq_graph *graph;
    bench_tensors inputs; /* filled; constants too */
} gb_case;

/* Load and fill; the graph holds its constants. To be freed also after a failure. */
qdq_status gb_case_load(const gb_options *options, gb_case *c, qdq_error *err);
void gb_case_free(gb_case *c);

/* One side of the comparison: a chain of compiled partitions with buffers. */
typedef struct gb_side {
    const gb_case *c;
    bench_tensors made; /* what its partitions write */
    size_t n_parts;
    void *state; /* its own */
    qdq_status (*run)(struct gb_side *side, qdq_error *err);
} gb_side;

/* Both must be closed also after a failure. A kind or combination that the peer refuses is QDQ_E_UNSUPPORTED. */
qdq_status gb_ours_open(const gb_case *c, const gb_options *options, gb_side *side, qdq_error *err);
void gb_ours_close(gb_side *side);
/* One line per partition, with the least time of a few runs. */
qdq_status gb_ours_how(gb_side *side, qdq_error *err);
/* `cache_mb`: capacity of the peer's constant tensor cache, which it reads when it compiles. */
qdq_status gb_peer_open(const gb_case *c, size_t cache_mb, gb_side *side, qdq_error *err);
void gb_peer_close(gb_side *side);

typedef struct gb_outcome {
    size_t n_ours, n_peer;
    double ours_us, peer_us; /* 0: not measured */
    double max_diff;         /* between the results of the two; below 0: not compared */
    char note[QDQ_ERROR_BYTES];
} gb_outcome;

enum { GB_OURS_ONLY = -1 };
/* Measure; `cache_mb` may be GB_OURS_ONLY. A failure of either side goes into the note. */
void gb_measure(const gb_options *options, int cache_mb, gb_outcome *out);

#endif
