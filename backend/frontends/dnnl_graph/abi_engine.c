/* Allocators, and what is known of libdnnl's engines: a side table from engine to allocator. */
#include "abi.h"

#include <omp.h>
#include <pthread.h>

/* libqdq's engine for one number of threads: oneDNN counts them when a partition is compiled. */
typedef struct by_threads {
    int n_threads;
    qdq_engine *engine;
    struct by_threads *next;
} by_threads;

struct abi_engine {
    dnnl_engine_t engine;
    dnnl_graph_host_allocate_f malloc_fn;
    dnnl_graph_host_deallocate_f free_fn;
    by_threads *engines;
    /* Holds a reference to the engine. Without it the engine's address could come back as another engine's after the caller
     * has destroyed it, and nobody would tell us. */
    dnnl_memory_t pin;
    struct abi_engine *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static abi_engine plain; /* all engines without an allocator */
static abi_engine *table;

/* ---- allocators ------------------------------------------------------------------------------------------------- */

dnnl_status_t dnnl_graph_allocator_create(dnnl_graph_allocator_t *allocator, dnnl_graph_host_allocate_f host_malloc,
                                          dnnl_graph_host_deallocate_f host_free) {
    if (allocator == NULL) return dnnl_invalid_arguments;
    dnnl_graph_allocator_t a = abi_calloc(1, sizeof *a);
    if (a == NULL) return dnnl_out_of_memory;
    if (host_malloc != NULL && host_free != NULL) { /* one without the other is of no use */
        a->malloc_fn = host_malloc;
        a->free_fn = host_free;
    }
    *allocator = a;
    return dnnl_success;
}

dnnl_status_t dnnl_graph_allocator_destroy(dnnl_graph_allocator_t allocator) {
    if (allocator == NULL) return dnnl_invalid_arguments;
    free(allocator);
    return dnnl_success;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static dnnl_status_t pin(dnnl_engine_t engine, dnnl_memory_t *out) {
    dnnl_memory_desc_t md = NULL;
    const dnnl_dims_t dims = {1};
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&md, 1, dims, dnnl_u8, dnnl_a);
    if (status == dnnl_success) status = dnnl_memory_create(out, md, engine, DNNL_MEMORY_NONE);
    dnnl_memory_desc_destroy(md);
    return status;
}

static dnnl_status_t enter(dnnl_engine_t engine, const_dnnl_graph_allocator_t alloc) {
    abi_engine *e = abi_calloc(1, sizeof *e);
    if (e == NULL) return dnnl_out_of_memory;
    e->engine = engine;
    e->malloc_fn = alloc->malloc_fn;
    e->free_fn = alloc->free_fn;
    const dnnl_status_t status = pin(engine, &e->pin);
    if (status != dnnl_success) {
        free(e);
        return status;
    }
    pthread_mutex_lock(&lock);
    e->next = table;
    table = e;
    pthread_mutex_unlock(&lock);
    return dnnl_success;
}

dnnl_status_t dnnl_graph_make_engine_with_allocator(dnnl_engine_t *engine, dnnl_engine_kind_t kind, size_t index,
                                                    const_dnnl_graph_allocator_t alloc) {
    if (engine == NULL || alloc == NULL) return dnnl_invalid_arguments;
    dnnl_engine_t made = NULL;
    dnnl_status_t status = dnnl_engine_create(&made, kind, index);
    if (status != dnnl_success) return status;
    if (alloc->malloc_fn != NULL) status = enter(made, alloc);
    if (status != dnnl_success) {
        dnnl_engine_destroy(made);
        return status;
    }
    *engine = made;
    return dnnl_success;
}

const abi_engine *abi_engine_of(dnnl_engine_t engine) {
    pthread_mutex_lock(&lock);
    const abi_engine *e = table;
    while (e != NULL && e->engine != engine)
        e = e->next;
    pthread_mutex_unlock(&lock);
    return e == NULL ? &plain : e;
}

/* ---- memory and libqdq's engines -------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64 };

void *abi_engine_malloc(const abi_engine *engine, size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
    const size_t whole = (bytes + ALIGNMENT - (bytes == 0 ? 0 : 1)) / ALIGNMENT * ALIGNMENT;
    return engine->malloc_fn != NULL ? engine->malloc_fn(whole, ALIGNMENT) : aligned_alloc(ALIGNMENT, whole);
}

void abi_engine_free(const abi_engine *engine, void *ptr) {
    if (ptr == NULL) return;
    if (engine->free_fn != NULL)
        engine->free_fn(ptr);
    else
        free(ptr);
}

static void *engine_malloc(size_t bytes, size_t alignment, void *user) {
    const abi_engine *e = user;
    return e->malloc_fn(bytes, alignment);
}

static void engine_free(void *ptr, void *user) {
    const abi_engine *e = user;
    e->free_fn(ptr);
}

qdq_engine *abi_engine_qdq(const abi_engine *engine) {
    abi_engine *e = (abi_engine *)(uintptr_t)engine; /* the list of engines is what may change in it */
    const int n_threads = omp_get_max_threads();
    pthread_mutex_lock(&lock);
    by_threads *b = e->engines;
    while (b != NULL && b->n_threads != n_threads)
        b = b->next;
    if (b == NULL && (b = abi_calloc(1, sizeof *b)) != NULL) {
        /* constants that nothing refers to go at once: how much is kept is for the constant tensor cache to say */
        qdq_engine_options options = {
            .struct_bytes = sizeof options, .n_threads = n_threads, .const_cache_bytes = 1, .user = e};
        if (e->malloc_fn != NULL) {
            options.malloc_fn = engine_malloc;
            options.free_fn = engine_free;
        }
        b->n_threads = n_threads;
        if (qdq_engine_create(&options, &b->engine, NULL) == QDQ_OK) {
            b->next = e->engines;
            e->engines = b;
        } else {
            free(b);
            b = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return b == NULL ? NULL : b->engine;
}
