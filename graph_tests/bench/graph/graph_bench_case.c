#include "dnnl_calls.h"
#include "graph_bench.h"

#include "base/alloc.h"
#include "base/dtype.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* ---- what is constant ------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *kind, const char *const *kinds) {
    for (; *kinds != NULL; kinds++)
        if (strcmp(kind, *kinds) == 0) return true;
    return false;
}

static const qdqi_json_op *producer(const qdqi_json_case *json, uint64_t id) {
    for (size_t i = 0; i < json->n_ops; i++)
        for (size_t k = 0; k < json->ops[i].n_out; k++)
            if (json->ops[i].out[k].id == id) return &json->ops[i];
    return NULL;
}

/* The input behind tensor `id`, through ops that do not compute, becomes constant with its scales and zero points. */
static void mark_constant(gb_case *c, uint64_t id) {
    static const char *const passed[] = {"Dequantize",      "DynamicDequantize", "Quantize",
                                         "DynamicQuantize", "StaticReshape",     "StaticTranspose",
                                         "TypeCast",        "Reorder",           NULL};
    const qdqi_json_op *op = producer(c->json, id);
    bench_tensor *t = bench_find(&c->inputs, id);
    if (t != NULL) {
        t->is_constant = true;
        t->t.desc.property = QDQ_PROPERTY_CONSTANT;
    } else if (op != NULL && is_one_of(op->kind, passed)) {
        for (size_t i = 0; i < op->n_in; i++)
            mark_constant(c, op->in[i].id);
    }
}

static void mark_weights(gb_case *c) {
    static const char *const weighted[] = {"MatMul", "Convolution", "ConvTranspose", "BiasAdd", NULL};
    for (size_t i = 0; i < c->json->n_ops; i++) {
        const qdqi_json_op *op = &c->json->ops[i];
        for (size_t k = 1; k < op->n_in && is_one_of(op->kind, weighted); k++)
            mark_constant(c, op->in[k].id);
    }
}

/* ---- load ------------------------------------------------------------------------------------------------------- */

static qdq_status build(gb_case *c, qdq_error *err) {
    qdq_graph_destroy(&c->graph);
    QDQI_TRY(qdqi_json_case_graph(c->json, &c->graph, err));
    for (size_t i = 0; i < c->inputs.n; i++) {
        const bench_tensor *t = &c->inputs.v[i];
        size_t bytes;
        if (!t->is_constant) continue;
        QDQI_TRY(qdq_tensor_desc_size_bytes(&t->t.desc, &bytes, err));
        QDQI_TRY(qdq_graph_set_constant(c->graph, &t->t.desc, t->t.data, bytes, QDQ_DATA_BORROW, err));
    }
    return qdq_graph_finalize(c->graph, err);
}

/* Every mention of a tensor gets its inferred shape and the property it has now: the peer wants them equal. */
static qdq_status complete_descs(gb_case *c, qdq_tensor_desc *descs, size_t n, qdq_error *err) {
    for (size_t i = 0; i < n; i++) {
        const bench_tensor *t = bench_find(&c->inputs, descs[i].id);
        if (t != NULL)
            descs[i] = t->t.desc;
        else
            QDQI_TRY(qdq_graph_tensor_desc(c->graph, descs[i].id, &descs[i], err));
    }
    return QDQ_OK;
}

qdq_status gb_case_load(const gb_options *options, gb_case *c, qdq_error *err) {
    const qdqi_json_rewrites rewrites = {
        .in_shapes = options->in_shapes, .op_attrs = options->op_attrs, .skip_strangers = true};
    QDQI_TRY(qdqi_json_case_read_file(options->path, &c->json, err));
    QDQI_TRY(qdqi_json_case_rewrite(c->json, &rewrites, err));
    QDQI_TRY(build(c, err));
    for (size_t i = 0; i < qdq_graph_n_inputs(c->graph); i++) {
        qdq_tensor_desc desc;
        bench_tensor *t;
        QDQI_TRY(qdq_graph_input_desc(c->graph, i, &desc, NULL, err));
        QDQI_TRY(bench_add(&c->inputs, &desc, &t, err));
        t->is_input = true;
        t->is_constant = desc.property == QDQ_PROPERTY_CONSTANT;
    }
    if (options->const_weights) mark_weights(c);
    for (size_t i = 0; i < c->json->n_ops; i++) {
        QDQI_TRY(complete_descs(c, c->json->ops[i].in, c->json->ops[i].n_in, err));
        QDQI_TRY(complete_descs(c, c->json->ops[i].out, c->json->ops[i].n_out, err));
    }
    const bench_drive drive = {.amplitude = 4, .density = 1.0};
    for (size_t i = 0; i < c->inputs.n; i++)
        bench_fill(c->json, &drive, &c->inputs.v[i]);
    return build(c, err);
}

void gb_case_free(gb_case *c) {
    qdq_graph_destroy(&c->graph);
    bench_free(&c->inputs);
    qdqi_json_case_free(&c->json);
}

qdq_status gb_case_reference(const gb_case *c, const qdq_tensor *out, size_t n, qdq_error *err) {
    qdq_tensor *in = qdqi_calloc(c->inputs.n + 1, sizeof *in);
    if (in == NULL) return QDQI_NO_MEMORY(err);
    size_t n_in = 0;
    for (size_t i = 0; i < c->inputs.n; i++)
        if (!c->inputs.v[i].is_constant) in[n_in++] = c->inputs.v[i].t;
    const qdq_status st = qdq_graph_run_reference(c->graph, in, n_in, out, n, err);
    qdqi_free(in);
    return st;
}

/* ---- compare ---------------------------------------------------------------------------------------------------- */

static double value(const qdq_tensor *t, const int64_t *index) {
    int64_t at = 0;
    for (int32_t d = 0; d < t->desc.ndims; d++)
        at += index[d] * t->desc.strides[d];
    return qdqi_dtype_is_float(t->desc.dtype) ? qdqi_load_f64(t->data, t->desc.dtype, at)
                                              : (double)qdqi_load_i64(t->data, t->desc.dtype, at);
}

double gb_difference(const qdq_tensor *a, const qdq_tensor *b) {
    int64_t index[QDQ_MAX_NDIMS] = {0}, n = 0;
    double most = 0.0;
    if (qdq_tensor_desc_n_elems(&a->desc, &n, NULL) != QDQ_OK) return INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = value(a, index), y = value(b, index);
        if (!(x == y) && !(isnan(x) && isnan(y))) most = fmax(most, isnan(x - y) ? INFINITY : fabs(x - y));
        for (int32_t d = a->desc.ndims - 1; d >= 0 && ++index[d] == a->desc.dims[d]; d--)
            index[d] = 0;
    }
    return most;
}

static double compare(const gb_case *c, const gb_side *ours, const gb_side *peer) {
    double most = -1.0;
    for (size_t i = 0; i < qdq_graph_n_outputs(c->graph); i++) {
        qdq_tensor_desc desc;
        if (qdq_graph_output_desc(c->graph, i, &desc, NULL, NULL) != QDQ_OK) continue;
        const bench_tensor *a = bench_find(&ours->made, desc.id), *b = bench_find(&peer->made, desc.id);
        if (a != NULL && b != NULL) most = fmax(most, gb_difference(&a->t, &b->t));
    }
    return most;
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

typedef struct runner {
    gb_side *side;
    long per_round; /* so that a round takes a millisecond or so, and caches are the side's own */
    double min_s;
} runner;

static qdq_status play(runner *r, qdq_error *err) {
    for (long i = 0; i < r->per_round; i++) {
        const double start = bench_now_s();
        QDQI_TRY(r->side->run(r->side, err));
        r->min_s = fmin(r->min_s, bench_now_s() - start);
    }
    return QDQ_OK;
}

/* Twice: what is made by the first run must not count. */
static qdq_status warm_up(runner *r, gb_side *side, qdq_error *err) {
    *r = (runner){side, 2, INFINITY};
    QDQI_TRY(play(r, err));
    r->per_round = (long)fmin(1000.0, fmax(1.0, 2e-3 / r->min_s));
    return QDQ_OK;
}

static qdq_status alternate(runner *runners, size_t n, const gb_options *options, qdq_error *err) {
    const double start = bench_now_s();
    for (int round = 0; round < options->rounds; round++) {
        for (size_t i = 0; i < n; i++)
            QDQI_TRY(play(&runners[i], err));
        if (1e3 * (bench_now_s() - start) >= options->max_ms) break;
    }
    return QDQ_OK;
}

static qdq_status measure(const gb_options *options, int cache_mb, gb_case *c, gb_side *ours, gb_side *peer,
                          gb_outcome *out, qdq_error *err) {
    runner runners[2];
    static dnnl_calls calls; /* used until the peer is closed */
    QDQI_TRY(gb_case_load(options, c, err));
    QDQI_TRY(gb_ours_open(c, options, ours, err));
    out->n_ours = ours->n_parts;
    QDQI_TRY(warm_up(&runners[0], ours, err));
    size_t n = 1;
    if (cache_mb != GB_OURS_ONLY) {
        qdq_error refused = {0};
        QDQI_TRY(dnnl_calls_open(NULL, &calls, err));
        const gb_peer_options how = {.calls = &calls, .cache_mb = cache_mb};
        if (gb_peer_open(c, &how, peer, &refused) == QDQ_OK && warm_up(&runners[1], peer, &refused) == QDQ_OK)
            n = 2;
        else
            snprintf(out->note, sizeof out->note, "peer: %.500s", refused.text);
        out->n_peer = peer->n_parts;
    }
    QDQI_TRY(alternate(runners, n, options, err));
    out->ours_us = 1e6 * runners[0].min_s;
    if (n == 2) {
        out->peer_us = 1e6 * runners[1].min_s;
        out->max_diff = compare(c, ours, peer);
    }
    return options->show_how ? gb_ours_how(ours, err) : QDQ_OK;
}

void gb_measure(const gb_options *options, int cache_mb, gb_outcome *out) {
    *out = (gb_outcome){.max_diff = -1.0};
    gb_case c = {0};
    gb_side ours = {0}, peer = {0};
    qdq_error err = {0};
    omp_set_num_threads(options->n_threads);
    if (measure(options, cache_mb, &c, &ours, &peer, out, &err) != QDQ_OK)
        snprintf(out->note, sizeof out->note, "%.511s", err.text);
    gb_peer_close(&peer);
    gb_ours_close(&ours);
    gb_case_free(&c);
}
