#include "runtime/engine.h"

#include <omp.h>

typedef struct region {
    void (*body)(int i, void *arg);
    void *arg;
} region;

/* OpenMP knows about its own regions; a host's pool does not tell, so its bodies are marked here. */
static _Thread_local bool in_host_region;

static void host_body(int i, void *arg) {
    const region *r = arg;
    const bool was = in_host_region;
    in_host_region = true;
    r->body(i, r->arg);
    in_host_region = was;
}

void qdqi_parallel(const qdq_engine *engine, int n, void (*body)(int i, void *arg), void *arg) {
    const int n_threads = engine->options.n_threads;
    if (n <= 1 || n_threads <= 1 || in_host_region || omp_in_parallel()) {
        for (int i = 0; i < n; i++)
            body(i, arg);
        return;
    }
    if (engine->options.parallel_for != NULL) {
        region r = {body, arg};
        engine->options.parallel_for(n, host_body, &r, engine->options.user);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(n < n_threads ? n : n_threads)
    for (int i = 0; i < n; i++)
        body(i, arg);
}

int qdqi_threads_for(const qdq_engine *engine, int64_t work, int64_t grain) {
    const int64_t n = work / (grain < 1 ? 1 : grain);
    if (n <= 1) return 1;
    return n < engine->options.n_threads ? (int)n : engine->options.n_threads;
}

int qdqi_threads_enter(const qdq_engine *engine) {
    const int was = omp_get_max_threads();
    if (was != engine->options.n_threads) omp_set_num_threads(engine->options.n_threads);
    return was;
}

int qdqi_threads_now(void) {
    return omp_get_max_threads();
}

void qdqi_threads_leave(const qdq_engine *engine, int was) {
    if (was != engine->options.n_threads) omp_set_num_threads(was);
}

void qdqi_threads_shrink(const qdq_engine *engine, double work, double grain) {
    const double most = work / grain;
    const int threads = most < 1.0                                 ? 1
                        : most < (double)engine->options.n_threads ? (int)most
                                                                   : engine->options.n_threads;
    if (threads != engine->options.n_threads) omp_set_num_threads(threads);
}

void qdqi_threads_restore(const qdq_engine *engine) {
    if (omp_get_max_threads() != engine->options.n_threads) omp_set_num_threads(engine->options.n_threads);
}
