#include "runtime/plan_impl.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/log.h"

#include <string.h>

qdq_status qdqi_plan_create(qdq_engine *engine, qdqi_plan **plan_out, qdq_error *err) {
    QDQI_NOT_NULL(err, engine);
    QDQI_NOT_NULL(err, plan_out);
    qdqi_plan *plan = qdqi_calloc(1, sizeof *plan);
    if (plan == NULL) return QDQI_NO_MEMORY(err);
    atomic_init(&plan->contexts, NULL);
    plan->engine = engine;
    qdqi_engine_retain(engine);
    *plan_out = plan;
    return QDQ_OK;
}

qdqi_plan_mark qdqi_plan_here(const qdqi_plan *plan) {
    return (qdqi_plan_mark){(uint32_t)plan->n_bufs, (uint32_t)plan->n_steps};
}

static void destroy_impl(const qdqi_step_ops *ops, void *impl) {
    if (ops != NULL && ops->impl_destroy != NULL && impl != NULL) ops->impl_destroy(impl);
}

void qdqi_plan_rollback(qdqi_plan *plan, qdqi_plan_mark mark) {
    while (plan->n_steps > mark.n_steps) {
        qdqi_plan_step_row *step = &plan->steps[--plan->n_steps];
        destroy_impl(step->ops, step->impl);
        qdqi_free(step->note);
        plan->n_refs = step->first_ref;
    }
    while (plan->n_bufs > mark.n_bufs)
        qdqi_const_release(plan->engine, &plan->bufs[--plan->n_bufs].constant);
}

void qdqi_plan_destroy(qdqi_plan **plan_ptr) {
    if (plan_ptr == NULL || *plan_ptr == NULL) return;
    qdqi_plan *plan = *plan_ptr;
    *plan_ptr = NULL;
    qdqi_contexts_destroy(plan);
    qdqi_plan_rollback(plan, (qdqi_plan_mark){0, 0});
    qdqi_free(plan->bufs);
    qdqi_free(plan->steps);
    qdqi_free(plan->refs);
    qdqi_free(plan->patches);
    qdqi_engine_release(plan->engine);
    qdqi_free(plan);
}

/* Make room for `more` elements behind the `n` used ones. */
static bool reserve(void **array, size_t *capacity, size_t n, size_t more, size_t size) {
    size_t need;
    if (!qdqi_add_size(n, more, &need)) return false;
    if (need <= *capacity) return true;
    size_t grown = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    if (grown < need) grown = need;
    void *p = qdqi_realloc_array(*array, grown, size);
    if (p == NULL) return false;
    *array = p;
    *capacity = grown;
    return true;
}

static qdq_status must_be_open(const qdqi_plan *plan, qdq_error *err) {
    if (plan->finished) return qdqi_fail(err, QDQ_E_BAD_STATE, "the plan is finished: nothing can be added to it");
    return QDQ_OK;
}

static qdq_status add_buf(qdqi_plan *plan, qdqi_plan_buf buf, qdqi_buf *buf_out, qdq_error *err) {
    QDQI_TRY(must_be_open(plan, err));
    if (plan->n_bufs >= QDQI_NO_BUF - 1) return qdqi_fail(err, QDQ_E_OVERFLOW, "the plan has too many buffers");
    if (!reserve((void **)&plan->bufs, &plan->bufs_capacity, plan->n_bufs, 1, sizeof *plan->bufs))
        return QDQI_NO_MEMORY(err);
    const qdqi_buf id = (qdqi_buf)plan->n_bufs;
    if (buf.kind != QDQI_BUF_VIEW) buf.root = id;
    plan->bufs[plan->n_bufs++] = buf;
    *buf_out = id;
    return QDQ_OK;
}

qdq_status qdqi_plan_input(qdqi_plan *plan, uint32_t port, size_t bytes, qdqi_buf *buf_out, qdq_error *err) {
    return add_buf(plan, (qdqi_plan_buf){.kind = QDQI_BUF_INPUT, .port = port, .bytes = bytes}, buf_out, err);
}

qdq_status qdqi_plan_output(qdqi_plan *plan, uint32_t port, size_t bytes, qdqi_buf *buf_out, qdq_error *err) {
    return add_buf(plan, (qdqi_plan_buf){.kind = QDQI_BUF_OUTPUT, .port = port, .bytes = bytes}, buf_out, err);
}

qdq_status qdqi_plan_const(qdqi_plan *plan, qdqi_const c, qdqi_buf *buf_out, qdq_error *err) {
    const qdq_status st =
        add_buf(plan, (qdqi_plan_buf){.kind = QDQI_BUF_CONST, .bytes = c.bytes, .constant = c}, buf_out, err);
    if (st != QDQ_OK) qdqi_const_release(plan->engine, &c);
    return st;
}

qdq_status qdqi_plan_temp(qdqi_plan *plan, size_t bytes, qdqi_buf *buf_out, qdq_error *err) {
    return add_buf(plan, (qdqi_plan_buf){.kind = QDQI_BUF_TEMP, .bytes = bytes}, buf_out, err);
}

qdq_status qdqi_plan_view(qdqi_plan *plan, qdqi_buf base, size_t offset_bytes, size_t bytes, qdqi_buf *buf_out,
                          qdq_error *err) {
    if (base >= plan->n_bufs) return qdqi_fail(err, QDQ_E_BAD_ARG, "view of buffer %u, which does not exist", base);
    const qdqi_plan_buf *of = &plan->bufs[base];
    size_t end;
    if (!qdqi_add_size(offset_bytes, bytes, &end) || end > of->bytes)
        return qdqi_fail(err, QDQ_E_BAD_ARG, "view of %zu bytes at %zu, but its buffer has %zu", bytes, offset_bytes,
                         of->bytes);
    /* the offset of a TEMP is not known before finish: only a view's own offset counts here */
    const size_t base_offset = of->kind == QDQI_BUF_VIEW ? of->offset : 0;
    return add_buf(
        plan,
        (qdqi_plan_buf){.kind = QDQI_BUF_VIEW, .root = of->root, .bytes = bytes, .offset = base_offset + offset_bytes},
        buf_out, err);
}

size_t qdqi_plan_buf_bytes(const qdqi_plan *plan, qdqi_buf buf) {
    return buf < plan->n_bufs ? plan->bufs[buf].bytes : 0;
}

static qdq_status append_step(qdqi_plan *plan, const qdqi_step_ops *ops, void *impl, const qdqi_buf *bufs,
                              uint32_t n_bufs, uint32_t part, const char *note, qdq_error *err) {
    QDQI_TRY(must_be_open(plan, err));
    QDQI_NOT_NULL(err, ops);
    if (n_bufs > 0) QDQI_NOT_NULL(err, bufs);
    for (uint32_t i = 0; i < n_bufs; i++)
        if (bufs[i] != QDQI_NO_BUF && bufs[i] >= plan->n_bufs)
            return qdqi_fail(err, QDQ_E_BAD_ARG, "step %s: its buffer %u does not exist", note, i);
    if (plan->n_steps >= UINT32_MAX - 1) return qdqi_fail(err, QDQ_E_OVERFLOW, "the plan has too many steps");
    if (!reserve((void **)&plan->steps, &plan->steps_capacity, plan->n_steps, 1, sizeof *plan->steps) ||
        !reserve((void **)&plan->refs, &plan->refs_capacity, plan->n_refs, n_bufs, sizeof *plan->refs))
        return QDQI_NO_MEMORY(err);
    char *note_copy = qdqi_strdup(note == NULL ? "" : note);
    if (note_copy == NULL) return QDQI_NO_MEMORY(err);
    plan->steps[plan->n_steps++] = (qdqi_plan_step_row){
        .ops = ops, .impl = impl, .note = note_copy, .first_ref = plan->n_refs, .n_bufs = n_bufs, .part = part};
    if (n_bufs > 0) memcpy(plan->refs + plan->n_refs, bufs, n_bufs * sizeof *bufs);
    plan->n_refs += n_bufs;
    return QDQ_OK;
}

qdq_status qdqi_plan_step(qdqi_plan *plan, const qdqi_step_ops *ops, void *impl, const qdqi_buf *bufs, uint32_t n_bufs,
                          uint32_t part, const char *note, qdq_error *err) {
    const qdq_status st = append_step(plan, ops, impl, bufs, n_bufs, part, note, err);
    if (st != QDQ_OK) destroy_impl(ops, impl);
    return st;
}

/* A temp lives from the first to the last step that names it or a view of it. */
static qdq_status place_temps(qdqi_plan *plan, qdq_error *err) {
    size_t n = 0;
    for (size_t b = 0; b < plan->n_bufs; b++)
        n += plan->bufs[b].kind == QDQI_BUF_TEMP;
    if (n == 0) return QDQ_OK;
    qdqi_lifetime *blocks = qdqi_calloc(n, sizeof *blocks);
    uint32_t *block_of = qdqi_calloc(plan->n_bufs, sizeof *block_of);
    qdq_status st = QDQ_OK;
    if (blocks == NULL || block_of == NULL) {
        st = QDQI_NO_MEMORY(err);
        goto done;
    }
    n = 0;
    for (size_t b = 0; b < plan->n_bufs; b++)
        if (plan->bufs[b].kind == QDQI_BUF_TEMP) {
            block_of[b] = (uint32_t)n;
            blocks[n++].first = UINT32_MAX;
        }
    for (size_t s = 0; s < plan->n_steps; s++)
        for (uint32_t k = 0; k < plan->steps[s].n_bufs; k++) {
            const qdqi_buf id = plan->refs[plan->steps[s].first_ref + k];
            if (id == QDQI_NO_BUF) continue;
            const qdqi_buf root = plan->bufs[id].root;
            if (plan->bufs[root].kind != QDQI_BUF_TEMP) continue;
            qdqi_lifetime *block = &blocks[block_of[root]];
            block->bytes = plan->bufs[root].bytes;
            if (block->first == UINT32_MAX) block->first = (uint32_t)s;
            block->last = (uint32_t)s;
        }
    QDQI_TRY_GOTO(st, done, qdqi_place(blocks, n, (uint32_t)plan->n_steps, &plan->arena_bytes, err));
    for (size_t b = 0; b < plan->n_bufs; b++)
        if (plan->bufs[b].kind == QDQI_BUF_TEMP) plan->bufs[b].offset = blocks[block_of[b]].offset;
done:
    qdqi_free(blocks);
    qdqi_free(block_of);
    return st;
}

static bool is_callers(const qdqi_plan *plan, qdqi_buf id) {
    if (id == QDQI_NO_BUF) return false;
    const qdqi_buf_kind kind = plan->bufs[plan->bufs[id].root].kind;
    return kind == QDQI_BUF_INPUT || kind == QDQI_BUF_OUTPUT;
}

static qdq_status list_patches(qdqi_plan *plan, qdq_error *err) {
    size_t n = 0;
    for (size_t r = 0; r < plan->n_refs; r++)
        n += is_callers(plan, plan->refs[r]);
    plan->patches = qdqi_calloc(n, sizeof *plan->patches);
    if (plan->patches == NULL) return QDQI_NO_MEMORY(err);
    for (size_t r = 0; r < plan->n_refs; r++) {
        if (!is_callers(plan, plan->refs[r])) continue;
        const qdqi_plan_buf *buf = &plan->bufs[plan->refs[r]], *root = &plan->bufs[buf->root];
        plan->patches[plan->n_patches++] = (qdqi_plan_patch){.ref = r,
                                                             .offset = buf->kind == QDQI_BUF_VIEW ? buf->offset : 0,
                                                             .bytes = root->bytes,
                                                             .port = root->port,
                                                             .is_output = root->kind == QDQI_BUF_OUTPUT};
    }
    return QDQ_OK;
}

qdq_status qdqi_plan_finish(qdqi_plan *plan, qdq_error *err) {
    QDQI_TRY(must_be_open(plan, err));
    QDQI_TRY(place_temps(plan, err));
    QDQI_TRY(list_patches(plan, err));
    plan->finished = true;
    if (!qdqi_log_on(QDQI_LOG_PLAN)) return QDQ_OK;
    qdqi_log(QDQI_LOG_PLAN, "%zu steps, %zu buffers, arena %zu bytes", plan->n_steps, plan->n_bufs, plan->arena_bytes);
    for (size_t s = 0; s < plan->n_steps; s++)
        qdqi_log(QDQI_LOG_PLAN, "step %zu,part %u,%s,%s", s, plan->steps[s].part, plan->steps[s].ops->provider,
                 plan->steps[s].note);
    return QDQ_OK;
}

uint32_t qdqi_plan_inplace_pairs(const qdqi_plan *plan, qdqi_plan_pair *pairs, uint32_t most) {
    if (plan->n_steps != 1 || plan->steps[0].ops->may_share == NULL || plan->steps[0].n_bufs == 0) return 0;
    const qdqi_plan_step_row *step = &plan->steps[0];
    const qdqi_buf *list = plan->refs + step->first_ref;
    const uint32_t last = step->n_bufs - 1;
    if (list[last] == QDQI_NO_BUF || plan->bufs[list[last]].kind != QDQI_BUF_OUTPUT) return 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < last && n < most; k++) {
        if (list[k] == QDQI_NO_BUF || plan->bufs[list[k]].kind != QDQI_BUF_INPUT) continue;
        bool once = true; /* what is read elsewhere as well must stay */
        for (uint32_t other = 0; other < last; other++)
            once = once && (other == k || list[other] == QDQI_NO_BUF ||
                            plan->bufs[list[other]].root != plan->bufs[list[k]].root);
        if (once && plan->bufs[list[k]].bytes == plan->bufs[list[last]].bytes && step->ops->may_share(step->impl, k))
            pairs[n++] = (qdqi_plan_pair){plan->bufs[list[k]].port, plan->bufs[list[last]].port};
    }
    return n;
}

size_t qdqi_plan_arena_bytes(const qdqi_plan *plan) {
    return plan->arena_bytes;
}
size_t qdqi_plan_n_steps(const qdqi_plan *plan) {
    return plan->n_steps;
}
const char *qdqi_plan_step_note(const qdqi_plan *plan, size_t i) {
    return i < plan->n_steps ? plan->steps[i].note : "";
}
const char *qdqi_plan_step_provider(const qdqi_plan *plan, size_t i) {
    return i < plan->n_steps ? plan->steps[i].ops->provider : "";
}
uint32_t qdqi_plan_step_part(const qdqi_plan *plan, size_t i) {
    return i < plan->n_steps ? plan->steps[i].part : 0;
}
