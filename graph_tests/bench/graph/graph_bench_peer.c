#include "graph_bench_dnnl.h"

#include "base/alloc.h"

#include "dnnl.h"

#include <inttypes.h>
#include <string.h>

typedef struct part {
    dnnl_graph_partition_t p;
    dnnl_graph_compiled_partition_t compiled;
    dnnl_graph_logical_tensor_t *in_lt, *out_lt;
    dnnl_graph_tensor_t *in, *out;
    size_t n_in, n_out;
} part;

typedef struct peer {
    const dnnl_calls *calls;
    bool skip; /* what it does not support is not run: the reference has made the result */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_graph_graph_t graph;
    part *parts;
    size_t n_parts;
} peer;

/* ---- partitions ------------------------------------------------------------------------------------------------- */

static const qdqi_json_op *op_by_id(const qdqi_json_case *json, size_t id) {
    for (size_t i = 0; i < json->n_ops; i++)
        if (json->ops[i].id == id) return &json->ops[i];
    return NULL;
}

/* The kinds of a partition's ops, for notes. */
static const char *kinds_of(const gb_side *side, const part *p, char *text, size_t bytes) {
    const gb_case *c = side->c;
    const dnnl_calls *d = ((const peer *)side->state)->calls;
    size_t n = 0, used = 0, ids[64];
    text[0] = '\0';
    if (d->partition_get_op_num(p->p, &n) != dnnl_success || n > 64) return text;
    if (d->partition_get_ops(p->p, n, ids) != dnnl_success) return text;
    for (size_t i = 0; i < n && used < bytes; i++) {
        const qdqi_json_op *op = op_by_id(c->json, ids[i]);
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i == 0 ? "" : ";", op != NULL ? op->kind : "?");
    }
    return text;
}

static bool is_graph_output(const qdq_graph *graph, uint64_t id) {
    for (size_t i = 0; i < qdq_graph_n_outputs(graph); i++) {
        qdq_tensor_desc desc;
        if (qdq_graph_output_desc(graph, i, &desc, NULL, NULL) == QDQ_OK && desc.id == id) return true;
    }
    return false;
}

static qdq_status get_ports(const dnnl_calls *d, part *p, qdq_error *err) {
    QDQI_TRY(gb_check(d->partition_get_input_ports_num(p->p, &p->n_in), "ports", err));
    QDQI_TRY(gb_check(d->partition_get_output_ports_num(p->p, &p->n_out), "ports", err));
    p->in_lt = qdqi_calloc(p->n_in + 1, sizeof *p->in_lt);
    p->out_lt = qdqi_calloc(p->n_out + 1, sizeof *p->out_lt);
    p->in = qdqi_calloc(p->n_in + 1, sizeof *p->in);
    p->out = qdqi_calloc(p->n_out + 1, sizeof *p->out);
    if (p->in_lt == NULL || p->out_lt == NULL || p->in == NULL || p->out == NULL) return QDQI_NO_MEMORY(err);
    if (p->n_in > 0) QDQI_TRY(gb_check(d->partition_get_input_ports(p->p, p->n_in, p->in_lt), "ports", err));
    if (p->n_out > 0) QDQI_TRY(gb_check(d->partition_get_output_ports(p->p, p->n_out, p->out_lt), "ports", err));
    return QDQ_OK;
}

static qdq_status compile(const gb_side *side, part *p, qdq_error *err) {
    const peer *o = side->state;
    const dnnl_calls *d = o->calls;
    char kinds[256];
    const dnnl_graph_logical_tensor_t **lts = qdqi_calloc(p->n_in + p->n_out + 1, sizeof *lts);
    if (lts == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < p->n_in; i++)
        lts[i] = &p->in_lt[i];
    for (size_t i = 0; i < p->n_out; i++) {
        if (!is_graph_output(side->c->graph, p->out_lt[i].id)) p->out_lt[i].layout_type = dnnl_graph_layout_type_any;
        lts[p->n_in + i] = &p->out_lt[i];
    }
    dnnl_status_t status = d->compiled_partition_create(&p->compiled, p->p);
    if (status == dnnl_success)
        status = d->partition_compile(p->p, p->compiled, p->n_in, lts, p->n_out, lts + p->n_in, o->engine);
    for (size_t i = 0; i < p->n_out && status == dnnl_success; i++)
        status = d->compiled_partition_query_logical_tensor(p->compiled, p->out_lt[i].id, &p->out_lt[i]);
    qdqi_free(lts);
    return gb_check(status, kinds_of(side, p, kinds, sizeof kinds), err);
}

static qdq_status tensor_of(const peer *o, const bench_tensor *t, const dnnl_graph_logical_tensor_t *lt,
                            dnnl_graph_tensor_t *out, qdq_error *err) {
    return gb_check(o->calls->tensor_create(out, lt, o->engine, t->t.data), "tensor", err);
}

/* The descriptor of a tensor that the peer laid out. */
static qdq_status desc_of(const gb_side *side, const dnnl_graph_logical_tensor_t *lt, qdq_tensor_desc *out,
                          qdq_error *err) {
    if (lt->layout_type != dnnl_graph_layout_type_strided)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "tensor %zu is not strided", lt->id);
    QDQI_TRY(qdq_graph_tensor_desc(side->c->graph, lt->id, out, err));
    out->layout = QDQ_LAYOUT_STRIDED;
    for (int32_t d = 0; d < out->ndims; d++)
        out->strides[d] = lt->layout.strides[d];
    return QDQ_OK;
}

static const dnnl_graph_logical_tensor_t *made_as(const peer *o, size_t id) {
    for (size_t i = 0; i < o->n_parts; i++)
        for (size_t k = 0; k < o->parts[i].n_out; k++)
            if (o->parts[i].out[k] != NULL && o->parts[i].out_lt[k].id == id) return &o->parts[i].out_lt[k];
    return NULL;
}

/* What an unsupported partition would have made. */
static qdq_status make_by_reference(gb_side *side, const part *p, qdq_error *err) {
    for (size_t i = 0; i < p->n_out; i++) {
        qdq_tensor_desc desc;
        bench_tensor *t;
        if (bench_find(&side->made, p->out_lt[i].id) != NULL) continue;
        QDQI_TRY(qdq_graph_tensor_desc(side->c->graph, p->out_lt[i].id, &desc, err));
        QDQI_TRY(bench_add(&side->made, &desc, &t, err));
        QDQI_TRY(gb_case_reference(side->c, &t->t, 1, err));
    }
    return QDQ_OK;
}

static qdq_status open_inputs(gb_side *side, part *p, qdq_error *err) {
    const peer *o = side->state;
    for (size_t i = 0; i < p->n_in; i++) {
        const size_t id = p->in_lt[i].id;
        const bench_tensor *t = bench_find(&side->c->inputs, id);
        if (t == NULL) {
            const dnnl_graph_logical_tensor_t *lt = made_as(o, id);
            t = bench_find(&side->made, id);
            if (t == NULL) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "tensor %zu is read before it is made", id);
            if (lt != NULL) p->in_lt[i] = *lt;
        }
        QDQI_TRY(tensor_of(o, t, &p->in_lt[i], &p->in[i], err));
    }
    return QDQ_OK;
}

static qdq_status open_part(gb_side *side, part *p, qdq_error *err) {
    const peer *o = side->state;
    const dnnl_calls *d = o->calls;
    char kinds[256];
    uint8_t supported = 0;
    QDQI_TRY(gb_check(d->partition_is_supported(p->p, &supported), "partition", err));
    if (!supported && !o->skip)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: %s", kinds_of(side, p, kinds, sizeof kinds));
    QDQI_TRY(get_ports(d, p, err));
    if (!supported) {
        side->n_skipped++;
        return make_by_reference(side, p, err);
    }
    QDQI_TRY(open_inputs(side, p, err));
    const double start = bench_now_s();
    QDQI_TRY(compile(side, p, err));
    side->compile_s += bench_now_s() - start;
    for (size_t i = 0; i < p->n_out; i++) {
        qdq_tensor_desc desc;
        bench_tensor *t;
        QDQI_TRY(desc_of(side, &p->out_lt[i], &desc, err));
        QDQI_TRY(bench_add(&side->made, &desc, &t, err));
        QDQI_TRY(tensor_of(o, t, &p->out_lt[i], &p->out[i], err));
    }
    return QDQ_OK;
}

static qdq_status run(gb_side *side, qdq_error *err) {
    const peer *o = side->state;
    for (size_t i = 0; i < o->n_parts; i++) {
        const part *p = &o->parts[i];
        if (p->compiled == NULL) continue;
        QDQI_TRY(gb_check(o->calls->compiled_partition_execute(p->compiled, o->stream, p->n_in,
                                                               (const_dnnl_graph_tensor_t *)p->in, p->n_out,
                                                               (const_dnnl_graph_tensor_t *)p->out),
                          "execute", err));
    }
    return gb_check(dnnl_stream_wait(o->stream), "wait", err);
}

static qdq_status partition(gb_side *side, qdq_error *err) {
    peer *o = side->state;
    const dnnl_calls *d = o->calls;
    size_t n = 0;
    QDQI_TRY(gb_dnnl_graph(d, side->c->json, o->skip, &o->graph, err));
    QDQI_TRY(gb_check(d->graph_get_partition_num(o->graph, &n), "partitions", err));
    dnnl_graph_partition_t *list = qdqi_calloc(n + 1, sizeof(dnnl_graph_partition_t));
    o->parts = qdqi_calloc(n + 1, sizeof *o->parts);
    qdq_status st = list != NULL && o->parts != NULL ? QDQ_OK : QDQI_NO_MEMORY(err);
    if (st == QDQ_OK) st = gb_check(d->graph_get_partitions(o->graph, n, list), "partitions", err);
    for (size_t i = 0; st == QDQ_OK && i < n; i++)
        o->parts[i].p = list[i];
    qdqi_free(list);
    o->n_parts = side->n_parts = st == QDQ_OK ? n : 0;
    return st;
}

qdq_status gb_peer_open(const gb_case *c, const gb_peer_options *options, gb_side *side, qdq_error *err) {
    peer *o = qdqi_calloc(1, sizeof *o);
    if (o == NULL) return QDQI_NO_MEMORY(err);
    *side = (gb_side){.c = c, .state = o, .run = run};
    o->calls = options->calls;
    o->skip = options->skip_unsupported;
    if (options->cache_mb >= 0)
        QDQI_TRY(gb_check(o->calls->set_constant_tensor_cache_capacity(dnnl_cpu, (size_t)options->cache_mb),
                          "constant cache", err));
    QDQI_TRY(gb_check(dnnl_engine_create(&o->engine, dnnl_cpu, 0), "engine", err));
    QDQI_TRY(gb_check(dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags), "stream", err));
    const double start = bench_now_s();
    QDQI_TRY(partition(side, err));
    side->partition_s = bench_now_s() - start;
    if (options->partition_only) return QDQ_OK;
    for (size_t i = 0; i < o->n_parts; i++)
        QDQI_TRY(open_part(side, &o->parts[i], err));
    return QDQ_OK;
}

static void close_part(const dnnl_calls *d, part *p) {
    for (size_t i = 0; p->in != NULL && i < p->n_in; i++)
        if (p->in[i] != NULL) d->tensor_destroy(p->in[i]);
    for (size_t i = 0; p->out != NULL && i < p->n_out; i++)
        if (p->out[i] != NULL) d->tensor_destroy(p->out[i]);
    if (p->compiled != NULL) d->compiled_partition_destroy(p->compiled);
    if (p->p != NULL) d->partition_destroy(p->p);
    qdqi_free(p->in);
    qdqi_free(p->out);
    qdqi_free(p->in_lt);
    qdqi_free(p->out_lt);
}

void gb_peer_close(gb_side *side) {
    peer *o = side->state;
    if (o == NULL) return;
    for (size_t i = 0; i < o->n_parts; i++)
        close_part(o->calls, &o->parts[i]);
    if (o->graph != NULL) o->calls->graph_destroy(o->graph);
    if (o->stream != NULL) dnnl_stream_destroy(o->stream);
    if (o->engine != NULL) dnnl_engine_destroy(o->engine);
    qdqi_free(o->parts);
    qdqi_free(o);
    bench_free(&side->made);
    *side = (gb_side){0};
}
