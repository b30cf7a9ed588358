/* Topological order: among the ops that are ready, the one added first. */
#include "ir/graph_parts.h"

#include "base/alloc.h"
#include "ir/rule.h"

/* A binary min-heap of op indices. */
typedef struct heap {
    uint32_t *ops;
    uint32_t n;
} heap;

static void push(heap *h, uint32_t op) {
    uint32_t i = h->n++;
    for (; i > 0 && h->ops[(i - 1) / 2] > op; i = (i - 1) / 2)
        h->ops[i] = h->ops[(i - 1) / 2];
    h->ops[i] = op;
}

static uint32_t pop(heap *h) {
    const uint32_t top = h->ops[0], last = h->ops[--h->n];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && h->ops[child + 1] < h->ops[child]) child++;
        if (h->ops[child] >= last) break;
        h->ops[i] = h->ops[child];
        i = child;
    }
    h->ops[i] = last;
    return top;
}

static uint32_t producer_of(const qdq_graph *graph, uint32_t value) {
    return value == QDQI_NONE ? QDQI_NONE : graph->values[value].producer;
}

/* Every op that was never ready waits for another such op: going back from one of them must come round. */
static qdq_status fail_cycle(const qdq_graph *graph, uint32_t *waiting, qdq_error *err) {
    uint32_t at = 0;
    while (waiting[at] == 0)
        at++;
    while (waiting[at] != QDQI_NONE) { /* not seen yet */
        waiting[at] = QDQI_NONE;
        const qdqi_op *op = &graph->ops[at];
        for (uint32_t i = 0; i < op->n_in; i++) {
            const uint32_t from = producer_of(graph, op->in[i]);
            if (from == QDQI_NONE || waiting[from] == 0) continue;
            at = from;
            break;
        }
    }
    return qdqi_op_fail(&graph->ops[at], err, QDQ_E_CYCLE, "the op depends on its own output: it is on a cycle");
}

static qdq_status sort(qdq_graph *graph, uint32_t *waiting, heap ready, qdq_error *err) {
    for (uint32_t k = 0; k < graph->n_ops; k++) {
        const qdqi_op *op = &graph->ops[k];
        for (uint32_t i = 0; i < op->n_in; i++)
            waiting[k] += producer_of(graph, op->in[i]) != QDQI_NONE;
        if (waiting[k] == 0) push(&ready, k);
    }
    uint32_t n = 0;
    while (ready.n > 0) {
        const uint32_t k = pop(&ready);
        const qdqi_op *op = &graph->ops[k];
        graph->topo[n++] = k;
        for (uint32_t o = 0; o < op->n_out; o++) {
            const qdqi_value *value = &graph->values[op->out[o]];
            for (uint32_t u = 0; u < value->n_uses; u++)
                if (--waiting[value->uses[u].op] == 0) push(&ready, value->uses[u].op);
        }
    }
    return n == graph->n_ops ? QDQ_OK : fail_cycle(graph, waiting, err);
}

qdq_status qdqi_graph_sort(qdq_graph *graph, qdq_error *err) {
    graph->topo = qdqi_arena_alloc(&graph->arena, (size_t)graph->n_ops + 1, sizeof *graph->topo);
    uint32_t *waiting = qdqi_calloc((size_t)graph->n_ops + 1, sizeof *waiting);
    uint32_t *ready = qdqi_calloc((size_t)graph->n_ops + 1, sizeof *ready);
    const qdq_status st = graph->topo == NULL || waiting == NULL || ready == NULL
                              ? QDQI_NO_MEMORY(err)
                              : sort(graph, waiting, (heap){ready, 0}, err);
    qdqi_free(waiting);
    qdqi_free(ready);
    return st;
}
