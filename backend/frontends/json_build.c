/* Case to graph, and the public entry points. */
#include "json_case.h"
#include "json_index.h"

#include "base/alloc.h"
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

/* ---- index of mentions ------------------------------------------------------------------------------------------ */

static int by_id(const void *pa, const void *pb) {
    const qdqi_json_mention *a = pa, *b = pb;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    if (a->is_output != b->is_output) return a->is_output ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

qdq_status qdqi_json_index_make(const qdqi_json_case *c, qdqi_json_index *index_out, qdq_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_ops; i++)
        n += c->ops[i].n_in + c->ops[i].n_out;
    qdqi_json_mention *m = qdqi_calloc(n + 1, sizeof *m);
    if (m == NULL) return QDQI_NO_MEMORY(err);
    size_t at = 0;
    for (size_t i = 0; i < c->n_ops; i++) {
        const qdqi_json_op *op = &c->ops[i];
        for (size_t k = 0; k < op->n_in; k++, at++)
            m[at] = (qdqi_json_mention){op->in[k].id, at, false, i, &op->in[k]};
        for (size_t k = 0; k < op->n_out; k++, at++)
            m[at] = (qdqi_json_mention){op->out[k].id, at, true, i, &op->out[k]};
    }
    qsort(m, n, sizeof *m, by_id);
    *index_out = (qdqi_json_index){m, n};
    return QDQ_OK;
}

void qdqi_json_index_free(qdqi_json_index *index) {
    qdqi_free(index->mentions);
    *index = (qdqi_json_index){0};
}

qdqi_json_mention *qdqi_json_index_find(const qdqi_json_index *index, uint64_t id) {
    size_t lo = 0, hi = index->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (index->mentions[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < index->n && index->mentions[lo].id == id ? &index->mentions[lo] : NULL;
}

/* ---- build ------------------------------------------------------------------------------------------------------ */

static qdq_status set_attr(qdq_op *op, const qdqi_json_attr *a, qdq_error *err) {
    switch (a->type) {
    case 'b': return qdq_op_set_attr_bool(op, a->name, a->v.boolean, err);
    case 'i': return qdq_op_set_attr_s64(op, a->name, a->v.s64, err);
    case 'I': return qdq_op_set_attr_s64s(op, a->name, a->v.s64s, a->n, err);
    case 'f': return qdq_op_set_attr_f32(op, a->name, a->v.f32, err);
    case 'F': return qdq_op_set_attr_f32s(op, a->name, a->v.f32s, a->n, err);
    default: return qdq_op_set_attr_str(op, a->name, a->v.str, err);
    }
}

/* Dumps and cases often give one tensor a layout where it is produced and another where it is used. Shapes and types
 * must agree, which is for finalize to say; of layout and property the speaker's is taken. */
static qdq_tensor_desc spoken_for(const qdqi_json_index *index, const qdq_tensor_desc *desc) {
    const qdq_tensor_desc *speaker = qdqi_json_index_find(index, desc->id)->desc;
    const size_t bytes = desc->ndims > 0 ? (size_t)desc->ndims * sizeof desc->dims[0] : 0;
    if (speaker->dtype != desc->dtype || speaker->ndims != desc->ndims || memcmp(speaker->dims, desc->dims, bytes) != 0)
        return *desc;
    return *speaker;
}

static qdq_status fill_op(const qdqi_json_op *from, const qdqi_json_index *index, qdq_op *op, qdq_error *err) {
    for (size_t i = 0; i < from->n_attrs; i++)
        QDQI_TRY(set_attr(op, &from->attrs[i], err));
    for (size_t i = 0; i < from->n_in; i++) {
        const qdq_tensor_desc desc = spoken_for(index, &from->in[i]);
        QDQI_TRY(qdq_op_add_input(op, &desc, err));
    }
    for (size_t i = 0; i < from->n_out; i++)
        QDQI_TRY(qdq_op_add_output(op, &from->out[i], err));
    return QDQ_OK;
}

static qdq_status add_op(const qdqi_json_op *from, const qdqi_json_index *index, qdq_graph *graph, qdq_error *err) {
    qdq_op *op = NULL;
    QDQI_TRY(qdq_op_create(from->id, from->kind, from->name, &op, err));
    qdq_status st = fill_op(from, index, op, err);
    if (st == QDQ_OK) st = qdq_graph_add_op(graph, op, err);
    qdq_op_destroy(&op);
    return st;
}

static bool is_end(const qdqi_json_op *op) {
    return strcmp(op->kind, "End") == 0;
}

/* An End op marks its input as a result of the graph, which would otherwise count as consumed. */
static qdq_status set_outputs(const qdqi_json_case *c, const qdqi_json_index *index, qdq_graph *graph, qdq_error *err) {
    size_t n_ends = 0, n = 0, room = 1;
    for (size_t i = 0; i < c->n_ops; i++) {
        n_ends += is_end(&c->ops[i]);
        room += c->ops[i].n_out;
    }
    if (n_ends == 0) return QDQ_OK;
    uint64_t *ids = qdqi_calloc(room, sizeof *ids);
    if (ids == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < c->n_ops; i++) {
        for (size_t k = 0; k < c->ops[i].n_out; k++) {
            const uint64_t id = c->ops[i].out[k].id;
            bool ended = false, used = false;
            const qdqi_json_mention *end = index->mentions + index->n;
            for (const qdqi_json_mention *m = qdqi_json_index_find(index, id); m < end && m->id == id; m++) {
                ended |= !m->is_output && is_end(&c->ops[m->op]);
                used |= !m->is_output;
            }
            if (ended || !used) ids[n++] = id;
        }
    }
    const qdq_status st = qdq_graph_set_outputs(graph, ids, n, err);
    qdqi_free(ids);
    return st;
}

static qdq_status build(const qdqi_json_case *c, const qdqi_json_index *index, qdq_graph *graph, qdq_error *err) {
    for (size_t i = 0; i < c->n_ops; i++) {
        const qdq_status st = add_op(&c->ops[i], index, graph, err);
        if (st != QDQ_OK) return qdqi_json_fail_at_op(c, i, st, err);
    }
    return set_outputs(c, index, graph, err);
}

qdq_status qdqi_json_case_graph(const qdqi_json_case *c, qdq_graph **graph_out, qdq_error *err) {
    qdqi_json_index index = {0};
    QDQI_TRY(qdqi_json_index_make(c, &index, err));
    qdq_graph *graph = NULL;
    qdq_status st = qdq_graph_create(&graph, err);
    if (st == QDQ_OK) st = build(c, &index, graph, err);
    qdqi_json_index_free(&index);
    if (st != QDQ_OK) {
        qdq_graph_destroy(&graph);
        return st;
    }
    *graph_out = graph;
    return QDQ_OK;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static qdq_status take_options(const qdq_json_options *options, qdqi_json_rewrites *out, qdq_error *err) {
    qdq_json_options o;
    QDQI_TRY(qdqi_options_read(options, "qdq_json_options", &o, sizeof o, err));
    *out = (qdqi_json_rewrites){.in_shapes = o.in_shapes, .op_attrs = o.op_attrs, .dt = o.dt, .mb = o.mb};
    return QDQ_OK;
}

/* Takes the case over. */
static qdq_status finish(qdqi_json_case *c, const qdqi_json_rewrites *rewrites, qdq_graph **graph_out, qdq_error *err) {
    qdq_status st = qdqi_json_case_rewrite(c, rewrites, err);
    if (st == QDQ_OK) st = qdqi_json_case_graph(c, graph_out, err);
    qdqi_json_case_free(&c);
    return st;
}

qdq_status qdq_json_load_file(const char *path, const qdq_json_options *options, qdq_graph **graph_out,
                              qdq_error *err) {
    QDQI_NOT_NULL(err, path);
    QDQI_NOT_NULL(err, graph_out);
    qdqi_json_rewrites rewrites;
    QDQI_TRY(take_options(options, &rewrites, err));
    qdqi_json_case *c = NULL;
    QDQI_TRY(qdqi_json_case_read_file(path, &c, err));
    return finish(c, &rewrites, graph_out, err);
}

qdq_status qdq_json_load_bytes(const char *text, size_t bytes, const qdq_json_options *options, qdq_graph **graph_out,
                               qdq_error *err) {
    QDQI_NOT_NULL(err, text);
    QDQI_NOT_NULL(err, graph_out);
    qdqi_json_rewrites rewrites;
    QDQI_TRY(take_options(options, &rewrites, err));
    qdqi_json_case *c = NULL;
    QDQI_TRY(qdqi_json_case_read("<json>", text, bytes, &c, err));
    return finish(c, &rewrites, graph_out, err);
}
