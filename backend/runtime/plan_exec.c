#include "runtime/plan_impl.h"

#include "base/alloc.h"
#include "base/log.h"

#include <time.h>

_Static_assert(sizeof(QDQI_ATOMIC(uint64_t)) == sizeof(uint64_t) && sizeof(QDQI_ATOMIC(bool)) == sizeof(bool),
               "the tests see these types without the atomic");

static void destroy_context(const qdqi_plan *plan, qdqi_exec_context *context) {
    if (context == NULL) return;
    if (context->states != NULL)
        for (size_t s = 0; s < plan->n_steps; s++)
            if (context->states[s] != NULL && plan->steps[s].ops->state_destroy != NULL)
                plan->steps[s].ops->state_destroy(context->states[s], plan->engine);
    qdqi_engine_free(plan->engine, context->arena);
    qdqi_free(context->ptrs);
    qdqi_free(context->states);
    qdqi_free_aligned(context);
}

void qdqi_contexts_destroy(qdqi_plan *plan) {
    qdqi_exec_context *context = atomic_load(&plan->contexts);
    while (context != NULL) {
        qdqi_exec_context *next = context->next;
        destroy_context(plan, context);
        context = next;
    }
    atomic_store(&plan->contexts, NULL);
}

static void fill_fixed(const qdqi_plan *plan, qdqi_exec_context *context) {
    for (size_t r = 0; r < plan->n_refs; r++) {
        if (plan->refs[r] == QDQI_NO_BUF) continue;
        const qdqi_plan_buf *buf = &plan->bufs[plan->refs[r]], *root = &plan->bufs[buf->root];
        const size_t into = buf->kind == QDQI_BUF_VIEW ? buf->offset : 0;
        if (root->kind == QDQI_BUF_CONST)
            context->ptrs[r] = (char *)root->constant.data + into;
        else if (root->kind == QDQI_BUF_TEMP)
            context->ptrs[r] = (char *)context->arena + root->offset + into;
    }
}

static qdq_status create_context(const qdqi_plan *plan, qdqi_exec_context **context_out, qdq_error *err) {
    /* a cache line of its own: `busy` is what concurrent callers fight for */
    qdqi_exec_context *context = qdqi_malloc_aligned(sizeof *context);
    if (context == NULL) return QDQI_NO_MEMORY(err);
    *context = (qdqi_exec_context){.arena = qdqi_engine_malloc(plan->engine, plan->arena_bytes),
                                   .ptrs = qdqi_calloc(plan->n_refs, sizeof(void *)),
                                   .states = qdqi_calloc(plan->n_steps, sizeof(void *))};
    atomic_init(&context->busy, true);
    qdq_status st = QDQ_OK;
    if (context->arena == NULL || context->ptrs == NULL || context->states == NULL) {
        st = qdqi_fail(err, QDQ_E_NO_MEMORY, "out of memory: an execution needs %zu bytes", plan->arena_bytes);
        goto fail;
    }
    fill_fixed(plan, context);
    for (size_t s = 0; s < plan->n_steps; s++) {
        const qdqi_plan_step_row *step = &plan->steps[s];
        if (step->ops->state_create == NULL) continue;
        st = step->ops->state_create(step->impl, plan->engine, &context->states[s], err);
        if (st != QDQ_OK) {
            st = qdqi_fail_in(err, st, "step %zu (%s)", s, step->note);
            goto fail;
        }
    }
    *context_out = context;
    return QDQ_OK;
fail:
    destroy_context(plan, context);
    return st;
}

static qdq_status acquire(qdqi_plan *plan, qdqi_exec_context **context_out, qdq_error *err) {
    qdqi_exec_context *head = atomic_load_explicit(&plan->contexts, memory_order_acquire);
    for (qdqi_exec_context *c = head; c != NULL; c = c->next)
        if (!atomic_load_explicit(&c->busy, memory_order_relaxed) &&
            !atomic_exchange_explicit(&c->busy, true, memory_order_acquire)) {
            *context_out = c;
            return QDQ_OK;
        }
    qdqi_exec_context *mine = NULL;
    QDQI_TRY(create_context(plan, &mine, err));
    mine->next = atomic_load_explicit(&plan->contexts, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&plan->contexts, &mine->next, mine, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    *context_out = mine;
    return QDQ_OK;
}

static void release(qdqi_exec_context *context) {
    atomic_store_explicit(&context->busy, false, memory_order_release);
}

static qdq_status bind_ports(const qdqi_plan *plan, qdqi_exec_context *context, const void *const *inputs,
                             void *const *outputs, qdq_error *err) {
    for (size_t i = 0; i < plan->n_patches; i++) {
        const qdqi_plan_patch *p = &plan->patches[i];
        char *base = p->is_output ? outputs[p->port] : (char *)inputs[p->port];
        if (base == NULL && p->bytes != 0)
            return qdqi_fail(err, QDQ_E_NULL_ARG, "%s %u is NULL, expected %zu bytes",
                             p->is_output ? "output" : "input", p->port, p->bytes);
        context->ptrs[p->ref] = base == NULL ? NULL : base + p->offset;
    }
    return QDQ_OK;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note_time(const qdqi_plan_step_row *step, size_t s, uint64_t ns, qdqi_profile *profile) {
    if (profile != NULL && step->part < profile->n_parts)
        atomic_fetch_add_explicit(&profile->part_ns[step->part], ns, memory_order_relaxed);
    if (qdqi_log_on(QDQI_LOG_TIME))
        qdqi_log(QDQI_LOG_TIME, "step %zu,part %u,%s,%s,%.3f us", s, step->part, step->ops->provider, step->note,
                 (double)ns * 1e-3);
}

static qdq_status run_steps(const qdqi_plan *plan, qdqi_exec_context *context, qdqi_profile *profile, qdq_error *err) {
    const bool timed = profile != NULL || qdqi_log_on(QDQI_LOG_TIME);
    uint64_t then = timed ? now_ns() : 0;
    for (size_t s = 0; s < plan->n_steps; s++) {
        const qdqi_plan_step_row *step = &plan->steps[s];
        const qdq_status st =
            step->ops->run(step->impl, context->states[s], context->ptrs + step->first_ref, plan->engine, err);
        if (st != QDQ_OK) return qdqi_fail_in(err, st, "step %zu (%s)", s, step->note);
        if (timed) {
            const uint64_t now = now_ns();
            note_time(step, s, now - then, profile);
            then = now;
        }
    }
    return QDQ_OK;
}

qdq_status qdqi_plan_execute(qdqi_plan *plan, const void *const *inputs, void *const *outputs, qdqi_profile *profile,
                             qdq_error *err) {
    if (!plan->finished) return qdqi_fail(err, QDQ_E_BAD_STATE, "the plan is not finished: it cannot be executed");
    qdqi_exec_context *context = NULL;
    QDQI_TRY(acquire(plan, &context, err));
    const int was = qdqi_threads_enter(plan->engine);
    qdq_status st = bind_ports(plan, context, inputs, outputs, err);
    if (st == QDQ_OK) st = run_steps(plan, context, profile, err);
    qdqi_threads_leave(plan->engine, was);
    release(context);
    return st;
}
