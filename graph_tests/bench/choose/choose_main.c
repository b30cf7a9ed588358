#define _GNU_SOURCE
#include "choose.h"

#include "kernels/isa/isa.h"
#include "runtime/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGS = 32, BATCHES = 8 };
/* Seconds that one batch of runs takes at least. */
#define BATCH_S 1e-3

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one primitive, run in a plan of one step ---- */

static void fill(void *p, size_t bytes, qdq_dtype dtype) {
    uint32_t seed = 12345;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((uint8_t *)p)[i] = (uint8_t)(seed >> 24);
    }
    for (size_t i = 0; dtype == QDQ_DTYPE_F32 && i < bytes / 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)p)[i] = 0.001f + (float)(seed >> 8) * 0x1p-24f;
    }
    for (size_t i = 0; dtype == QDQ_DTYPE_S32 && i < bytes / 4; i++)
        ((int32_t *)p)[i] = 3;
}

static qdq_dtype dtype_of(const choose_case *c, qdqi_dnnl_arg arg) {
    switch ((int)arg) {
    case QDQI_DNNL_SRC: return c->src.dtype;
    case QDQI_DNNL_SRC1:
    case QDQI_DNNL_WEIGHTS: return c->second.dtype;
    case QDQI_DNNL_ZP_SRC:
    case QDQI_DNNL_ZP_WEIGHTS:
    case QDQI_DNNL_ZP_DST: return QDQ_DTYPE_S32;
    default: return QDQ_DTYPE_F32;
    }
}

/* Packed from a strided tensor where the primitive chose a layout of its own. */
static bool fill_arg(const choose_case *c, const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, void *to, size_t bytes,
                     qdq_error *err) {
    int64_t strides[QDQ_MAX_NDIMS];
    if (arg != QDQI_DNNL_WEIGHTS || qdqi_dnnl_prim_arg_strides(prim, arg, strides)) {
        fill(to, bytes, dtype_of(c, arg));
        return true;
    }
    qdqi_dnnl_md plain = c->second;
    plain.any = false;
    size_t n = qdq_dtype_bits(plain.dtype) / 8;
    for (int32_t d = 0; d < plain.ndims; d++)
        n *= (size_t)plain.dims[d];
    void *from = malloc(n);
    if (from == NULL) return false;
    fill(from, n, plain.dtype);
    const qdq_status st = qdqi_dnnl_pack(prim, arg, &plain, from, to, err);
    free(from);
    return st == QDQ_OK;
}

typedef struct runner {
    qdqi_plan *plan;
    void *buffers[MAX_ARGS];
    const void *inputs[MAX_ARGS];
    void *outputs[1];
    uint32_t n_buffers, n_inputs;
} runner;

static void runner_clear(runner *r) {
    qdqi_plan_destroy(&r->plan);
    for (uint32_t i = 0; i < r->n_buffers; i++)
        free(r->buffers[i]);
}

/* Owns `prim`. */
static bool runner_init(runner *r, qdq_engine *engine, const choose_case *c, qdqi_dnnl_prim *prim, qdq_error *err) {
    qdqi_buf bufs[MAX_ARGS];
    const uint32_t n = qdqi_dnnl_prim_n_args(prim);
    bool ok = n <= MAX_ARGS && qdqi_plan_create(engine, &r->plan, err) == QDQ_OK;
    for (uint32_t i = 0; ok && i < n; i++) {
        const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
        const size_t bytes = qdqi_dnnl_prim_arg_bytes(prim, arg);
        if (arg == QDQI_DNNL_SCRATCH) {
            ok = qdqi_plan_temp(r->plan, bytes, &bufs[i], err) == QDQ_OK;
            continue;
        }
        void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
        ok = p != NULL;
        if (!ok) break;
        r->buffers[r->n_buffers++] = p;
        if (arg == QDQI_DNNL_DST) {
            r->outputs[0] = p;
            ok = qdqi_plan_output(r->plan, 0, bytes, &bufs[i], err) == QDQ_OK;
        } else {
            r->inputs[r->n_inputs] = p;
            ok = fill_arg(c, prim, arg, p, bytes, err) &&
                 qdqi_plan_input(r->plan, r->n_inputs++, bytes, &bufs[i], err) == QDQ_OK;
        }
    }
    if (!ok) {
        qdqi_dnnl_prim_destroy(prim);
        return false;
    }
    return qdqi_dnnl_step(r->plan, prim, bufs, n, 0, err) == QDQ_OK && qdqi_plan_finish(r->plan, err) == QDQ_OK;
}

/* The least time of a run, in ns; 0 when the provider refuses. */
static double measure(const choose_case *c, qdq_engine *engine, bool native, qdq_error *err) {
    qdqi_dnnl_prim *prim = NULL;
    const int was = qdqi_threads_enter(engine);
    const qdq_status st =
        native ? qdqi_request_native(&c->request, &prim, err) : qdqi_dnnl_create(&c->request, &prim, err);
    qdqi_threads_leave(engine, was);
    if (st != QDQ_OK) return 0;
    runner r = {0};
    double best = 0;
    bool ok = runner_init(&r, engine, c, prim, err);
    for (int batch = 0, n_runs = 1; ok && batch <= BATCHES; batch++) { /* the first one is a warm-up */
        double s = 0;
        for (;; n_runs *= 2) {
            const double start = now_s();
            for (int i = 0; ok && i < n_runs; i++)
                ok = qdqi_plan_execute(r.plan, r.inputs, r.outputs, NULL, err) == QDQ_OK;
            s = now_s() - start;
            if (!ok || s >= BATCH_S) break;
        }
        if (batch > 0 && (best == 0 || s / n_runs < best)) best = s / n_runs;
    }
    runner_clear(&r);
    return ok ? best * 1e9 : 0;
}

/* ---- the table ---- */

typedef struct sums {
    double native, onednn; /* of logarithms */
    int n;
} sums;

static qk_isa best_level(void) {
    qk_isa best = QK_ISA_ref;
    for (int i = 0; i < (int)QK_ISA_COUNT; i++)
        if (qk_isa_has((qk_isa)i)) best = (qk_isa)i;
    return best;
}

static bool is_x8(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8;
}

/* Where oneDNN's integer products saturate there is no choice. */
static bool is_comparable(const choose_case *c) {
    const bool product = c->request.kind == QDQI_MAKE_MATMUL || c->request.kind == QDQI_MAKE_CONVOLUTION;
    return !product || !is_x8(c->src.dtype) || qdqi_dnnl_int8_exact();
}

/* Every case with one thread and with all; a class is the geometric mean of its cases. */
static int print_rows(bool verbose) {
    sums of_class[QDQI_N_CLASSES] = {0};
    qdq_engine *engines[2] = {NULL, NULL};
    qdq_error err = {0};
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < 2; i++) {
        const qdq_engine_options options = {.struct_bytes = sizeof options, .n_threads = i == 0 ? 1 : (int)cpus};
        if (qdqi_engine_create(&options, &engines[i], &err) != QDQ_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    choose_case c;
    for (size_t k = 0; choose_case_at(k, &c); k++)
        for (int t = 0; t < (cpus > 1 ? 2 : 1); t++) {
            const qdqi_class class = qdqi_request_class(&c.request);
            if (!is_comparable(&c)) continue;
            const double native = measure(&c, engines[t], true, &err), onednn = measure(&c, engines[t], false, &err);
            if (verbose)
                fprintf(stderr, "%-24s case %zu, %s: native %.0f ns, oneDNN %.0f ns%s%s\n", qdqi_class_name(class), k,
                        t == 0 ? "1 thread" : "all threads", native, onednn, native == 0 || onednn == 0 ? ": " : "",
                        native == 0 || onednn == 0 ? err.text : "");
            if (native == 0 || onednn == 0) continue;
            of_class[class].native += log(native);
            of_class[class].onednn += log(onednn);
            of_class[class].n++;
        }
    for (int i = 0; i < (int)QDQI_N_CLASSES; i++)
        if (of_class[i].n > 0 && i != (int)QDQI_CLASS_other)
            printf("CHOICE(%s, %s, %.0f, %.0f)\n", qdqi_class_name((qdqi_class)i), qk_isa_name(best_level()),
                   exp(of_class[i].native / of_class[i].n), exp(of_class[i].onednn / of_class[i].n));
    for (int i = 0; i < 2; i++)
        qdqi_engine_release(engines[i]);
    return 0;
}

static void print_machine(void) {
    char line[256], model[128] = "an unknown CPU";
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (sscanf(line, "model name : %127[^\n]", model) == 1) break;
    if (info != NULL) fclose(info);
    printf("/* CHOICE(class, level, ns native, ns oneDNN): written by `qdq-choose > backend/lower/choice.def`, not by "
           "hand.\n"
           " * Geometric means over the cases of graph_tests/bench/choose, with one thread and with %ld, on %s.\n"
           " * A class of lower/request.h without a row has not been measured: oneDNN first. */\n",
           sysconf(_SC_NPROCESSORS_ONLN), model);
}

/* The caps are read once per process: one child for each level. */
static int run_levels(const char *self) {
    static const qk_isa levels[] = {QK_ISA_avx512vnni, QK_ISA_avx2};
    print_machine();
    fflush(stdout);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        char command[512];
        if (!qk_isa_host_has(levels[i])) continue;
        snprintf(command, sizeof command, "QDQ_MAX_ISA=%s '%s' --rows", qk_isa_name(levels[i]), self);
        if (system(command) != 0) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--rows") == 0) return print_rows(false);
    if (argc == 2 && strcmp(argv[1], "--verbose") == 0) return print_rows(true);
    if (argc == 1) return run_levels(argv[0]);
    fputs("usage: qdq-choose [--rows | --verbose]\n"
          "  without an option: the whole of backend/lower/choice.def, for each level of instruction set\n"
          "  --rows             the rows of this process's level (QDQ_MAX_ISA)\n"
          "  --verbose          the same, with every case on stderr\n",
          stderr);
    return 2;
}
