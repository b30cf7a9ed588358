/* The plan: a flat list of steps over numbered buffers. Everything compiled becomes one; there is one loop that runs it.
 *
 *   buffers   INPUT i   the caller's i-th input          (not owned)
 *             OUTPUT i  the caller's i-th output         (not owned)
 *             CONST     packed constant                  (reference into the engine's cache)
 *             TEMP      lives in the arena of an execution context; offsets planned from first to last use
 *             VIEW      a byte offset into another buffer (reshape without copy, split, concat in place)
 *   steps     ops (a static table of functions), impl (owned, immutable, shared by all executions), buffers it touches
 *
 * A step that needs mutable objects while running (oneDNN memory handles) keeps them in a state, one per execution
 * context. Contexts are created on the first concurrent use and kept: later executions allocate nothing and lock nothing. */
#ifndef QDQI_PLAN_H
#define QDQI_PLAN_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t qdqi_buf;
#define QDQI_NO_BUF UINT32_MAX /* legal in a step's list: the step gets NULL there */

typedef struct qdqi_step_ops {
    const char *provider; /* "onednn", "native", "reference" */
    /* Create the per-context state; NULL when the step has none. */
    qdq_status (*state_create)(const void *impl, const qdq_engine *engine, void **state_out, qdq_error *err);
    void (*state_destroy)(void *state, const qdq_engine *engine);
    /* Run on resolved buffers (bufs[k] is the address of the k-th buffer of the step). Must not allocate or lock. */
    qdq_status (*run)(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err);
    void (*impl_destroy)(void *impl); /* NULL: nothing to do */
    /* Whether the k-th buffer, which is read, may be the memory of the last one, which is written: every element is read before it
     * is written, and lies where it will lie. NULL: none may. */
    bool (*may_share)(const void *impl, uint32_t k);
} qdqi_step_ops;

typedef struct qdqi_plan qdqi_plan;

qdq_status qdqi_plan_create(qdq_engine *engine, qdqi_plan **plan_out, qdq_error *err);
void qdqi_plan_destroy(qdqi_plan **plan); /* releases constants, steps, contexts */

/* Buffers. Each returns the handle through buf_out. */
qdq_status qdqi_plan_input(qdqi_plan *plan, uint32_t port, size_t bytes, qdqi_buf *buf_out, qdq_error *err);
qdq_status qdqi_plan_output(qdqi_plan *plan, uint32_t port, size_t bytes, qdqi_buf *buf_out, qdq_error *err);
/* Takes over the caller's reference, on failure too. */
qdq_status qdqi_plan_const(qdqi_plan *plan, qdqi_const c, qdqi_buf *buf_out, qdq_error *err);
qdq_status qdqi_plan_temp(qdqi_plan *plan, size_t bytes, qdqi_buf *buf_out, qdq_error *err);
qdq_status qdqi_plan_view(qdqi_plan *plan, qdqi_buf base, size_t offset_bytes, size_t bytes, qdqi_buf *buf_out,
                          qdq_error *err);
size_t qdqi_plan_buf_bytes(const qdqi_plan *plan, qdqi_buf buf);

/* Append a step. `bufs` lists every buffer that it reads or writes, in the order that `run` expects; the first step that names a TEMP must
 * write it. `impl` is owned by the plan from here on, on failure too (impl_destroy is called). `note` is a short text for
 * tables and QDQ_VERBOSE ("onednn brgemm:avx512_core_vnni u8s8u8"); copied. `part` is the partition the step belongs to. */
qdq_status qdqi_plan_step(qdqi_plan *plan, const qdqi_step_ops *ops, void *impl, const qdqi_buf *bufs, uint32_t n_bufs,
                          uint32_t part, const char *note, qdq_error *err);

/* A point to return to when a candidate refuses after it appended something: everything added since is undone (impls
 * destroyed, constants released). */
typedef struct qdqi_plan_mark {
    uint32_t n_bufs, n_steps;
} qdqi_plan_mark;
qdqi_plan_mark qdqi_plan_here(const qdqi_plan *plan);
void qdqi_plan_rollback(qdqi_plan *plan, qdqi_plan_mark mark);

/* Close the plan: place TEMPs in the arena by lifetime. No buffers or steps may be added afterwards. */
qdq_status qdqi_plan_finish(qdqi_plan *plan, qdq_error *err);
/* Pairs of an input port and an output port that the caller may give one buffer: up to `most`, their number is returned. Only
 * plans of one step have any. */
typedef struct qdqi_plan_pair {
    uint32_t input, output;
} qdqi_plan_pair;
uint32_t qdqi_plan_inplace_pairs(const qdqi_plan *plan, qdqi_plan_pair *pairs, uint32_t most);
size_t qdqi_plan_arena_bytes(const qdqi_plan *plan);
size_t qdqi_plan_n_steps(const qdqi_plan *plan);
const char *qdqi_plan_step_note(const qdqi_plan *plan, size_t i);
const char *qdqi_plan_step_provider(const qdqi_plan *plan, size_t i);
uint32_t qdqi_plan_step_part(const qdqi_plan *plan, size_t i);

/* Seconds per partition of profiled runs; one array slot per `part`; guarded by nothing: one slot set per profile object. */
typedef struct qdqi_profile {
    QDQI_ATOMIC(uint64_t) * part_ns;
    uint32_t n_parts;
} qdqi_profile;

/* The one loop. inputs[port] / outputs[port] are the caller's buffers. Thread-safe; `profile` may be NULL. On failure the
 * text names the step. */
qdq_status qdqi_plan_execute(qdqi_plan *plan, const void *const *inputs, void *const *outputs, qdqi_profile *profile,
                             qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
