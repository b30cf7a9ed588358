/* Inside of the plan: shared by its builder (plan.c), its memory planner (plan_place.c) and its loop (plan_exec.c). */
#ifndef QDQI_PLAN_IMPL_H
#define QDQI_PLAN_IMPL_H

#include "runtime/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qdqi_buf_kind {
    QDQI_BUF_INPUT,
    QDQI_BUF_OUTPUT,
    QDQI_BUF_CONST,
    QDQI_BUF_TEMP,
    QDQI_BUF_VIEW
} qdqi_buf_kind;

typedef struct qdqi_plan_buf {
    qdqi_buf_kind kind;
    uint32_t port;        /* INPUT, OUTPUT */
    qdqi_buf root;        /* VIEW: the buffer that owns the memory, never a view itself; else the buffer itself */
    size_t bytes, offset; /* offset: VIEW: into the root; TEMP: into the arena */
    qdqi_const constant;  /* CONST */
} qdqi_plan_buf;

typedef struct qdqi_plan_step_row {
    const qdqi_step_ops *ops;
    void *impl;
    char *note;
    size_t first_ref; /* into plan->refs */
    uint32_t n_bufs, part;
} qdqi_plan_step_row;

/* One use of a caller's buffer: refs[ref] = ports[port] + offset, at every execution. */
typedef struct qdqi_plan_patch {
    size_t ref, offset, bytes;
    uint32_t port;
    bool is_output;
} qdqi_plan_patch;

/* What one running execution owns. Published once at the head of the plan's list, never taken out before the plan dies.
 *
 *   ptrs   [step 0: b0 b1 b2][step 1: b0 b1]...   addresses; those of constants and temps are filled in once
 *   states [step 0][step 1]... */
typedef struct qdqi_exec_context {
    struct qdqi_exec_context *next;
    QDQI_ATOMIC(bool) busy;
    void *arena;
    void **ptrs;
    void **states;
} qdqi_exec_context;

struct qdqi_plan {
    qdq_engine *engine;
    qdqi_plan_buf *bufs;
    qdqi_plan_step_row *steps;
    qdqi_buf *refs; /* the buffer lists of all steps, one after the other */
    qdqi_plan_patch *patches;
    size_t n_bufs, n_steps, n_refs, n_patches;
    size_t bufs_capacity, steps_capacity, refs_capacity;
    size_t arena_bytes;
    bool finished;
    QDQI_ATOMIC(qdqi_exec_context *) contexts;
};

/* A block of memory that is needed from step `first` to step `last`, both included. */
typedef struct qdqi_lifetime {
    size_t bytes;
    uint32_t first, last;
    size_t offset; /* out */
} qdqi_lifetime;

/* Give every block an offset, a multiple of the alignment, so that no two blocks share both a byte and a step.
 * `n_steps` is above every `last`. Errors: NO_MEMORY, OVERFLOW. */
qdq_status qdqi_place(qdqi_lifetime *blocks, size_t n, uint32_t n_steps, size_t *arena_bytes_out, qdq_error *err);

void qdqi_contexts_destroy(qdqi_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
