#include "graph_bench.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct part {
    const qdq_partition *p;
    qdq_compiled *compiled;
    qdq_tensor *in, *out; /* data is borrowed */
    size_t n_in, n_out;
} part;

typedef struct ours {
    qdq_engine *engine;
    qdq_partition_list *list;
    part *parts;
} ours;

static bool is_graph_output(const qdq_graph *graph, uint64_t id) {
    for (size_t i = 0; i < qdq_graph_n_outputs(graph); i++) {
        qdq_tensor_desc desc;
        if (qdq_graph_output_desc(graph, i, &desc, NULL, NULL) == QDQ_OK && desc.id == id) return true;
    }
    return false;
}

static qdq_status compile(const gb_side *side, part *p, qdq_error *err) {
    const ours *o = side->state;
    qdq_tensor_desc *descs = qdqi_calloc(p->n_in + p->n_out + 1, sizeof *descs);
    if (descs == NULL) return QDQI_NO_MEMORY(err);
    qdq_tensor_desc *out = descs + p->n_in;
    qdq_status st = QDQ_OK;
    for (size_t i = 0; i < p->n_in; i++)
        descs[i] = p->in[i].desc;
    for (size_t i = 0; i < p->n_out && st == QDQ_OK; i++) {
        st = qdq_partition_output(p->p, i, &out[i], err);
        if (!is_graph_output(side->c->graph, out[i].id)) out[i].layout = QDQ_LAYOUT_ANY;
    }
    if (st == QDQ_OK) st = qdq_partition_compile(p->p, o->engine, descs, p->n_in, out, p->n_out, &p->compiled, err);
    for (size_t i = 0; i < p->n_in && st == QDQ_OK; i++)
        st = qdq_compiled_desc(p->compiled, p->in[i].desc.id, &p->in[i].desc, err);
    for (size_t i = 0; i < p->n_out && st == QDQ_OK; i++)
        st = qdq_compiled_desc(p->compiled, out[i].id, &p->out[i].desc, err);
    qdqi_free(descs);
    return st;
}

/* Inputs are the graph's own or what partitions before it wrote. */
static qdq_status open_part(gb_side *side, part *p, qdq_error *err) {
    p->n_in = qdq_partition_n_inputs(p->p);
    p->n_out = qdq_partition_n_outputs(p->p);
    p->in = qdqi_calloc(p->n_in + 1, sizeof *p->in);
    p->out = qdqi_calloc(p->n_out + 1, sizeof *p->out);
    if (p->in == NULL || p->out == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < p->n_in; i++) {
        qdq_tensor_desc desc;
        QDQI_TRY(qdq_partition_input(p->p, i, &desc, err));
        const bench_tensor *t = bench_find(&side->c->inputs, desc.id);
        if (t == NULL) t = bench_find(&side->made, desc.id);
        if (t == NULL) return qdqi_fail(err, QDQ_E_INTERNAL, "tensor %" PRIu64 " is read before it is made", desc.id);
        p->in[i] = t->t;
    }
    QDQI_TRY(compile(side, p, err));
    for (size_t i = 0; i < p->n_out; i++) {
        bench_tensor *t;
        QDQI_TRY(bench_add(&side->made, &p->out[i].desc, &t, err));
        p->out[i] = t->t;
    }
    return QDQ_OK;
}

static qdq_status run(gb_side *side, qdq_error *err) {
    const ours *o = side->state;
    for (size_t i = 0; i < side->n_parts; i++) {
        const part *p = &o->parts[i];
        QDQI_TRY(qdq_compiled_execute(p->compiled, p->in, p->n_in, p->out, p->n_out, err));
    }
    return QDQ_OK;
}

qdq_status gb_ours_open(const gb_case *c, const gb_options *options, gb_side *side, qdq_error *err) {
    ours *o = qdqi_calloc(1, sizeof *o);
    if (o == NULL) return QDQI_NO_MEMORY(err);
    *side = (gb_side){.c = c, .state = o, .run = run};
    const qdq_engine_options engine = {.struct_bytes = sizeof engine, .n_threads = options->n_threads};
    QDQI_TRY(qdq_engine_create(&engine, &o->engine, err));
    QDQI_TRY(qdq_graph_partition(c->graph, QDQ_POLICY_FUSION, &o->list, err));
    const size_t n = qdq_partition_list_count(o->list);
    o->parts = qdqi_calloc(n + 1, sizeof *o->parts);
    if (o->parts == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < n; i++) {
        o->parts[i].p = qdq_partition_list_get(o->list, i);
        side->n_parts = i + 1;
        QDQI_TRY(open_part(side, &o->parts[i], err));
    }
    return QDQ_OK;
}

void gb_ours_close(gb_side *side) {
    ours *o = side->state;
    if (o == NULL) return;
    for (size_t i = 0; i < side->n_parts; i++) {
        qdq_compiled_destroy(&o->parts[i].compiled);
        qdqi_free(o->parts[i].in);
        qdqi_free(o->parts[i].out);
    }
    qdqi_free(o->parts);
    qdq_partition_list_destroy(&o->list);
    qdq_engine_destroy(&o->engine);
    qdqi_free(o);
    bench_free(&side->made);
    *side = (gb_side){0};
}

qdq_status gb_ours_how(gb_side *side, qdq_error *err) {
    const ours *o = side->state;
    for (size_t i = 0; i < side->n_parts; i++) {
        const part *p = &o->parts[i];
        double min_s = INFINITY;
        for (int k = 0; k < 20; k++) {
            const double start = bench_now_s();
            QDQI_TRY(qdq_compiled_execute(p->compiled, p->in, p->n_in, p->out, p->n_out, err));
            min_s = fmin(min_s, bench_now_s() - start);
        }
        fprintf(stderr, "  %-20s %10.1f us  %s\n", qdq_partition_pattern(p->p), 1e6 * min_s,
                qdq_compiled_summary(p->compiled));
    }
    return QDQ_OK;
}
