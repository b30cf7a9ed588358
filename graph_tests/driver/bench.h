/* qdq-bench: runs JSON graphs against the reference executor, in benchdnn's words.
 *
 *     bench_main       command line, batch files, result lines, summary
 *     bench_case       one case: load, fill, partition, compile, execute, compare or time
 *     bench_fill       the content of graph inputs
 *     harness/compare  tolerances and their application */
#ifndef BENCH_H
#define BENCH_H

#include "base/error.h"
#include "base/text.h"
#include "frontends/json_case.h"
#include "harness/compare.h"

#include <stdio.h>

typedef enum bench_mode {
    BENCH_MODE_CORRECTNESS = 1,
    BENCH_MODE_PERFORMANCE = 2,
    BENCH_MODE_INIT = 4, /* compile only */
    BENCH_MODE_LIST = 8
} bench_mode;

/* Settings that last for the whole run. */
typedef struct bench_run {
    unsigned mode; /* bench_mode bits */
    int verbose;
    long fix_times; /* 0: by time */
    double max_ms;
    int n_threads;
    const char *perf_template;
    const char *case_dir;
    qdq_engine *engine;
} bench_run;

/* One case with one value of every list. */
typedef struct bench_problem {
    const char *name; /* as given */
    const char *path; /* found */
    const char *repro;
    qdqi_json_rewrites rewrites;
    long expected_n_partitions; /* 0: any */
} bench_problem;

/* One row: the result, its word, whether it is a failure. */
#define BENCH_RESULTS(X)                                                                                               \
    X(PASSED, "PASSED", false)                                                                                         \
    X(FAILED, "FAILED", true)                                                                                          \
    X(SKIPPED, "SKIPPED", false)                                                                                       \
    X(MISTRUSTED, "MISTRUSTED", false)                                                                                 \
    X(UNIMPLEMENTED, "UNIMPLEMENTED", true)                                                                            \
    X(INVALID_ARGUMENTS, "INVALID_ARGUMENTS", true)                                                                    \
    X(INITIALIZED, "INITIALIZED", false)                                                                               \
    X(LISTED, "LISTED", false)                                                                                         \
    X(EXECUTED, "EXECUTED", false)

typedef enum bench_result {
#define BENCH_RESULT_ROW(id, word, bad) BENCH_##id,
    BENCH_RESULTS(BENCH_RESULT_ROW)
#undef BENCH_RESULT_ROW
        BENCH_N_RESULTS
} bench_result;

typedef struct bench_outcome {
    bench_result result;
    char why[QDQ_ERROR_BYTES + 64]; /* in parentheses after the word; "" for none */
    double min_ms, avg_ms;          /* sums over partitions, mode P */
    double fill_s, ref_s, compare_s;
    size_t n_partitions;
} bench_outcome;

double bench_now_s(void);

/* Run one case. Prints only the details that `run->verbose` asks for. */
void bench_case_run(const bench_run *run, const bench_problem *problem, bench_outcome *out);

/* ---- tensors of a case ------------------------------------------------------------------------------------------ */

typedef struct bench_tensor {
    qdq_tensor t; /* owns t.data */
    bool is_input, is_constant;
} bench_tensor;

typedef struct bench_tensors {
    bench_tensor *v;
    size_t n, cap;
} bench_tensors;

/* NULL when there is no tensor with this id. */
bench_tensor *bench_find(const bench_tensors *set, uint64_t id);
/* Add a tensor with a zeroed buffer for `desc` (a layout of any or undef becomes dense). */
qdq_status bench_add(bench_tensors *set, const qdq_tensor_desc *desc, bench_tensor **out, qdq_error *err);
void bench_free(bench_tensors *set);

/* ---- filling ---------------------------------------------------------------------------------------------------- */

/* How strongly inputs drive the graph; changed when a result says too little. */
typedef struct bench_drive {
    int amplitude;    /* of quantized data around the zero point */
    double density;   /* times the share of weights that are not zero */
    bool no_negative; /* data is not below zero */
} bench_drive;

/* Content of one graph input, from its id alone: every run of a case sees the same bytes. The case must have shapes. */
void bench_fill(const qdqi_json_case *c, const bench_drive *drive, bench_tensor *tensor);

/* Ops whose value near a rounding tie hangs on how a function was approximated. */
bool bench_is_transcendental(const char *kind);

#endif
