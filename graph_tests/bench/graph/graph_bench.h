/* qdq-graph-bench: one JSON case on libqdq and on oneDNN Graph, in one process, on the same inputs.
 *
 *     graph_bench        command line, a child process per measurement, table
 *     graph_bench_case   load, fill, what is constant, alternating rounds
 *     graph_bench_ours   partitions of libqdq
 *     graph_bench_peer   partitions of oneDNN Graph, or of what stands in for it
 *     graph_bench_dnnl   a case as a graph of its C API
 *     graph_bench_onnx   a model as a case
 *     graph_bench_compare, graph_bench_table
 *                        both through that C API: partition, compile, first execute, execute, memory, difference */
#ifndef GRAPH_BENCH_H
#define GRAPH_BENCH_H

#include "driver/bench.h"

typedef struct gb_options {
    const char *path;
    int n_threads, rounds;
    double max_ms;                    /* of all rounds together */
    bool const_weights;               /* inputs that lead to weights and bias are constant, whatever the file says */
    const char *in_shapes, *op_attrs; /* rewrites of JSON cases, in the driver's words; NULL: none */
    bool show_how;                    /* our partitions with their times, to stderr */
    /* side by side through the C API of dnnl_graph.h (graph_bench_compare) */
    bool compare;
    const char *ours;  /* the library that stands in for oneDNN's */
    const char *shape; /* of a model's first input, 1x3x224x224; NULL: as the model says */
    int cache_mb;      /* constant tensor cache of both; below 0: as they come */
    int chain;         /* no files: a graph of so many Dequantize-MatMul-ReLU-Quantize blocks, only partitioned */
    long timeout_s;    /* for one measurement */
    bool check;        /* against the reference executor */
    bool partition_only, only_ours;
} gb_options;

typedef struct gb_case {
    qdqi_json_case *json; /* with the shapes and layouts of inference */
    qdq_graph *graph;
    bench_tensors inputs; /* filled; constants too */
} gb_case;

/* Load and fill; the graph holds its constants. To be freed also after a failure. */
qdq_status gb_case_load(const gb_options *options, gb_case *c, qdq_error *err);
void gb_case_free(gb_case *c);
/* Fill `n` tensors of the graph, named by desc.id, with the results of the reference executor. */
qdq_status gb_case_reference(const gb_case *c, const qdq_tensor *out, size_t n, qdq_error *err);
/* The largest difference of an element; an infinity where one is a NaN and the other is not. Dims are equal. */
double gb_difference(const qdq_tensor *a, const qdq_tensor *b);

/* One side of the comparison: a chain of compiled partitions with buffers. */
typedef struct gb_side {
    const gb_case *c;
    bench_tensors made; /* what its partitions write */
    size_t n_parts;
    size_t n_skipped; /* of them not run, since not supported */
    double partition_s, compile_s;
    void *state; /* its own */
    qdq_status (*run)(struct gb_side *side, qdq_error *err);
} gb_side;

/* Both must be closed also after a failure. A kind or combination that the peer refuses is QDQ_E_UNSUPPORTED. */
qdq_status gb_ours_open(const gb_case *c, const gb_options *options, gb_side *side, qdq_error *err);
void gb_ours_close(gb_side *side);
/* One line per partition, with the least time of a few runs. */
qdq_status gb_ours_how(gb_side *side, qdq_error *err);

typedef struct gb_peer_options {
    const struct dnnl_calls *calls; /* the library */
    int cache_mb;          /* capacity of its constant tensor cache, read when it compiles; below 0: as it comes */
    bool skip_unsupported; /* such partitions are not run: the reference makes their results beforehand */
    bool partition_only;
} gb_peer_options;
qdq_status gb_peer_open(const gb_case *c, const gb_peer_options *options, gb_side *side, qdq_error *err);
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

/* A path without its folders. */
const char *gb_base_name(const char *path);

enum { GB_WHY_BYTES = 64 };
/* Run `work` in a child process that leaves its result in `out`. False when it died, or was ended after `timeout_s`. */
bool gb_apart(void (*work)(void *arg), void *arg, void *out, size_t bytes, long timeout_s, char why[GB_WHY_BYTES]);

/* A chain of so many Dequantize-MatMul-ReLU-Quantize blocks. */
qdq_status gb_case_chain(int n_blocks, gb_case *c, qdq_error *err);
/* gb_case_load of a model; constants are inputs with the property. `shape`: see gb_options. */
qdq_status gb_case_load_onnx(const char *path, const char *shape, gb_case *c, qdq_error *err);

typedef struct gb_phases {
    size_t n_parts, n_skipped;
    double partition_us, compile_us, first_us, execute_us, least_us; /* 0: not measured */
    double heap;                                                     /* bytes that compile and first execute keep */
    double diff;                                                     /* to the reference; below 0: not compared */
    char note[256];
} gb_phases;

/* ours, the peer */
void gb_measure_phases(const gb_options *options, bool peer_first, gb_phases out[2]);
/* Every case in `paths` that is not an option, each order of the two in a process of its own; a table, and what it comes to.
 * False when one of ours failed. */
bool gb_compare(gb_options *options, char **paths, int n);

#endif
