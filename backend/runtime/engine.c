#include "runtime/engine.h"
#include "runtime/const_cache.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"

#include <omp.h>
#include <string.h>

static const size_t DEFAULT_CACHE_BYTES = (size_t)1 << 30;

static void *default_malloc(size_t bytes, size_t alignment, void *user) {
    (void)user;
    return alignment <= QDQI_ALIGN_BYTES ? qdqi_malloc_aligned(bytes) : NULL;
}

static void default_free(void *ptr, void *user) {
    (void)user;
    qdqi_free_aligned(ptr);
}

static qdq_status read_options(const qdq_engine_options *given, qdq_engine_options *out, qdq_error *err) {
    QDQI_TRY(qdqi_options_read(given, "qdq_engine_options", out, sizeof *out, err));
    if ((out->malloc_fn == NULL) != (out->free_fn == NULL))
        return qdqi_fail(err, QDQ_E_BAD_ARG,
                         "engine options: malloc_fn and free_fn: one is NULL, expected both or neither");
    if (out->n_threads < 0)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "engine options: n_threads is %d, expected 0 or more", out->n_threads);
    if (out->malloc_fn == NULL) {
        out->malloc_fn = default_malloc;
        out->free_fn = default_free;
    }
    if (out->n_threads == 0) out->n_threads = omp_get_max_threads();
    if (out->n_threads < 1) out->n_threads = 1;
    if (out->const_cache_bytes == 0) out->const_cache_bytes = DEFAULT_CACHE_BYTES;
    return QDQ_OK;
}

qdq_status qdqi_engine_create(const qdq_engine_options *options, qdq_engine **engine_out, qdq_error *err) {
    QDQI_NOT_NULL(err, engine_out);
    qdq_engine_options filled;
    QDQI_TRY(read_options(options, &filled, err));
    qdq_engine *engine = qdqi_calloc(1, sizeof *engine);
    if (engine == NULL) return QDQI_NO_MEMORY(err);
    engine->options = filled;
    atomic_init(&engine->refs, 1);
    engine->cache = qdqi_const_cache_create();
    if (engine->cache == NULL) {
        qdqi_free(engine);
        return QDQI_NO_MEMORY(err);
    }
    *engine_out = engine;
    return QDQ_OK;
}

void qdqi_engine_retain(qdq_engine *engine) {
    atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

void qdqi_engine_release(qdq_engine *engine) {
    if (engine == NULL) return;
    if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1) return;
    qdqi_const_cache_destroy(engine);
    qdqi_free(engine);
}

void *qdqi_engine_malloc(const qdq_engine *engine, size_t bytes) {
    size_t rounded;
    if (!qdqi_align_up(bytes == 0 ? 1 : bytes, &rounded)) return NULL;
    return engine->options.malloc_fn(rounded, QDQI_ALIGN_BYTES, engine->options.user);
}

void qdqi_engine_free(const qdq_engine *engine, void *ptr) {
    if (ptr != NULL) engine->options.free_fn(ptr, engine->options.user);
}
