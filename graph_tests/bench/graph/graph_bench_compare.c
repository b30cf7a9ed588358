/* Side by side: the same graph through the same C API, on the libdnnl_graph stand-in of libqdq and on oneDNN, in one process. Both
 * get oneDNN's engine and stream, the same buffers, and the same calls in the same order. */
#define _GNU_SOURCE /* mallinfo2 */
#include "dnnl_calls.h"
#include "graph_bench.h"

#include "base/alloc.h"

#include <malloc.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 20000 };

typedef struct runner {
    gb_side side;
    gb_phases *out;
    float *samples;
    int n;
    long per_round;
} runner;

static double heap_bytes(void) {
    const struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static int by_value(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static qdq_status play(runner *r, qdq_error *err) {
    for (long i = 0; i < r->per_round && r->n < MAX_SAMPLES; i++) {
        const double start = bench_now_s();
        QDQI_TRY(r->side.run(&r->side, err));
        r->samples[r->n++] = (float)(1e6 * (bench_now_s() - start));
    }
    return QDQ_OK;
}

static qdq_status open_side(const gb_case *c, const gb_options *options, const dnnl_calls *calls, runner *r,
                            qdq_error *err) {
    const gb_peer_options how = {.calls = calls,
                                 .cache_mb = options->cache_mb,
                                 .skip_unsupported = true,
                                 .partition_only = options->partition_only};
    const double before = heap_bytes();
    QDQI_TRY(gb_peer_open(c, &how, &r->side, err));
    r->out->n_parts = r->side.n_parts;
    r->out->n_skipped = r->side.n_skipped;
    r->out->partition_us = 1e6 * r->side.partition_s;
    r->out->compile_us = 1e6 * r->side.compile_s;
    if (options->partition_only || r->side.n_parts == r->side.n_skipped) return QDQ_OK;
    const double start = bench_now_s();
    QDQI_TRY(r->side.run(&r->side, err));
    r->out->first_us = 1e6 * (bench_now_s() - start);
    r->out->heap = heap_bytes() - before;
    r->per_round = (long)fmin(200.0, fmax(1.0, 2000.0 / r->out->first_us));
    QDQI_TRY(play(r, err));
    r->per_round = (long)fmin(1000.0, fmax(1.0, 1000.0 / r->samples[r->n - 1]));
    r->n = 0;
    return QDQ_OK;
}

static qdq_status compare(const gb_case *c, const runner *r, qdq_error *err) {
    r->out->diff = -1.0;
    for (size_t i = 0; i < qdq_graph_n_outputs(c->graph); i++) {
        qdq_tensor_desc desc;
        bench_tensors right = {0};
        bench_tensor *t;
        QDQI_TRY(qdq_graph_output_desc(c->graph, i, &desc, NULL, err));
        const bench_tensor *got = bench_find(&r->side.made, desc.id);
        if (got == NULL) continue;
        desc.layout = QDQ_LAYOUT_ANY;
        qdq_status st = bench_add(&right, &desc, &t, err);
        if (st == QDQ_OK) st = gb_case_reference(c, &t->t, 1, err);
        if (st == QDQ_OK) r->out->diff = fmax(r->out->diff, gb_difference(&got->t, &t->t));
        bench_free(&right);
        QDQI_TRY(st);
    }
    return QDQ_OK;
}

static void note(gb_phases *out, const qdq_error *err) {
    snprintf(out->note, sizeof out->note, "%.255s", err->text);
}

static qdq_status load(const gb_options *options, gb_case *c, qdq_error *err) {
    if (options->chain > 0) return gb_case_chain(options->chain, c, err);
    const size_t n = strlen(options->path);
    if (n > 5 && strcmp(options->path + n - 5, ".onnx") == 0)
        return gb_case_load_onnx(options->path, options->shape, c, err);
    return gb_case_load(options, c, err);
}

/* Which side goes first pays for what both need once. */
static qdq_status measure(const gb_options *options, bool peer_first, gb_case *c, runner *r, qdq_error *err) {
    static dnnl_calls calls[2];
    QDQI_TRY(dnnl_calls_open(options->ours, &calls[0], err));
    QDQI_TRY(dnnl_calls_open(NULL, &calls[1], err));
    QDQI_TRY(load(options, c, err));
    bool ok[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        const int k = peer_first ? 1 - i : i;
        qdq_error refused = {0};
        if (options->only_ours && k == 1) continue;
        ok[k] = open_side(c, options, &calls[k], &r[k], &refused) == QDQ_OK;
        if (!ok[k]) note(r[k].out, &refused);
    }
    const double start = bench_now_s();
    for (int round = 0; round < options->rounds && !options->partition_only; round++) {
        for (int k = 0; k < 2; k++)
            if (ok[k] && r[k].per_round > 0) QDQI_TRY(play(&r[k], err));
        if (1e3 * (bench_now_s() - start) >= options->max_ms) break;
    }
    for (int k = 0; k < 2; k++) {
        if (r[k].n == 0) continue;
        qsort(r[k].samples, (size_t)r[k].n, sizeof(float), by_value);
        r[k].out->execute_us = r[k].samples[r[k].n / 2];
        r[k].out->least_us = r[k].samples[0];
        if (options->check && !peer_first) QDQI_TRY(compare(c, &r[k], err));
    }
    return QDQ_OK;
}

void gb_measure_phases(const gb_options *options, bool peer_first, gb_phases out[2]) {
    gb_case c = {0};
    runner r[2] = {{.out = &out[0]}, {.out = &out[1]}};
    qdq_error err = {0};
    out[0] = out[1] = (gb_phases){.diff = -1.0};
    omp_set_num_threads(options->n_threads);
    for (int k = 0; k < 2; k++)
        r[k].samples = qdqi_calloc(MAX_SAMPLES, sizeof(float));
    if (r[0].samples == NULL || r[1].samples == NULL || measure(options, peer_first, &c, r, &err) != QDQ_OK)
        note(&out[0], &err);
    for (int k = 0; k < 2; k++) {
        gb_peer_close(&r[k].side);
        qdqi_free(r[k].samples);
    }
    gb_case_free(&c);
}
