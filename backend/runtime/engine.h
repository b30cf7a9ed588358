/* The engine: allocator, threads, packed-constant cache. Reference counted. */
#ifndef QDQI_ENGINE_H
#define QDQI_ENGINE_H

#include "base/error.h"

/* The tests are C++17, which has no word for C's atomics: they see plain members, of the same size, and leave them alone
 * while anything runs. */
#ifdef __cplusplus
#define QDQI_ATOMIC(type) type
extern "C" {
#else
#include <stdatomic.h>
#define QDQI_ATOMIC(type) _Atomic(type)
#endif

struct qdq_engine {
    QDQI_ATOMIC(unsigned) refs;
    qdq_engine_options options; /* callbacks filled with the defaults when not given; n_threads >= 1 */
    struct qdqi_const_cache *cache;
};

qdq_status qdqi_engine_create(const qdq_engine_options *options, qdq_engine **engine_out, qdq_error *err);
void qdqi_engine_retain(qdq_engine *engine);
void qdqi_engine_release(qdq_engine *engine); /* NULL is legal */
/* 64-byte aligned memory from the engine's allocator; bytes 0 gives a valid pointer. NULL when out of memory. */
void *qdqi_engine_malloc(const qdq_engine *engine, size_t bytes);
void qdqi_engine_free(const qdq_engine *engine, void *ptr);

/* ---- packed constants: keyed by content, shared by everything compiled on the engine ---- */

/* A reference to one packed constant. The entry lives while it is referenced; unreferenced entries stay until the bound
 * const_cache_bytes pushes them out, least recently used first. */
typedef struct qdqi_const {
    void *data; /* 64-byte aligned */
    size_t bytes;
    struct qdqi_const_entry *entry;
} qdqi_const;

/* Produces the packed bytes. */
typedef qdq_status (*qdqi_pack_fn)(void *dst, size_t bytes, void *arg, qdq_error *err);

/* Find or make the constant of (content of `src`, `recipe` key bytes). `recipe` must say everything that the packed form depends
 * on besides the source content (layout, dtype, compensation). Thread-safe; two threads that need the same entry pack it
 * once or twice, but see one. */
qdq_status qdqi_const_get(qdq_engine *engine, const void *src, size_t src_bytes, const void *recipe,
                          size_t recipe_bytes, size_t packed_bytes, qdqi_pack_fn pack, void *arg, qdqi_const *const_out,
                          qdq_error *err);
void qdqi_const_release(qdq_engine *engine, qdqi_const *c);
void qdqi_const_stats(const qdq_engine *engine, qdq_cache_stats *out);

/* ---- threads ---- */

/* body(i, arg) for i in [0, n) on the engine's threads; runs inline when n <= 1 or one thread. Exceptions of nested
 * parallelism: inside a parallel region it runs inline. */
void qdqi_parallel(const qdq_engine *engine, int n, void (*body)(int i, void *arg), void *arg);
/* Threads worth using for `work` units when one thread should have at least `grain`: 1…n_threads. */
int qdqi_threads_for(const qdq_engine *engine, int64_t work, int64_t grain);
/* Make the engine's n_threads the OpenMP team size of the calling thread, and put the old size back. oneDNN fixes a
 * primitive's threads when it is created: a compile goes between these two; qdqi_plan_execute does it itself. */
int qdqi_threads_enter(const qdq_engine *engine);
void qdqi_threads_leave(const qdq_engine *engine, int was);
/* The team size of the calling thread: how many threads a primitive that is being made should have room for. */
int qdqi_threads_now(void);
/* Between the two: the team for a primitive of `work` units when one thread should have at least `grain`; then back. A small
 * product created for one thread opens no parallel region. */
void qdqi_threads_shrink(const qdq_engine *engine, double work, double grain);
void qdqi_threads_restore(const qdq_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
