#include "graph_bench.h"

#include "base/alloc.h"

#include "dnnl.h"
#include "oneapi/dnnl/dnnl_graph.h"

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
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_graph_graph_t graph;
    part *parts;
    size_t n_parts;
} peer;

static qdq_status check(dnnl_status_t status, const char *what, qdq_error *err) {
    static const char *const names[] = {"success",          "out of memory", "invalid arguments", "unimplemented",
                                        "last impl",        "runtime error", "not required",      "invalid graph",
                                        "invalid graph op", "invalid shape", "invalid data type"};
    if (status == dnnl_success) return QDQ_OK;
    const size_t i = (size_t)status;
    return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %s", i < sizeof names / sizeof names[0] ? names[i] : "?", what);
}

/* ---- graph ------------------------------------------------------------------------------------------------------ */

/* NAME in graph files, member of dnnl_graph_op_kind_t. */
#define PEER_KINDS(X)                                                                                                  \
    X(Abs, abs)                                                                                                        \
    X(Add, add)                                                                                                        \
    X(AvgPool, avg_pool)                                                                                               \
    X(BatchNormInference, batch_norm_inference)                                                                        \
    X(BiasAdd, bias_add)                                                                                               \
    X(Clamp, clamp)                                                                                                    \
    X(Concat, concat)                                                                                                  \
    X(ConvTranspose, conv_transpose)                                                                                   \
    X(Convolution, convolution)                                                                                        \
    X(Dequantize, dequantize)                                                                                          \
    X(Divide, divide)                                                                                                  \
    X(DynamicDequantize, dynamic_dequantize)                                                                           \
    X(DynamicQuantize, dynamic_quantize)                                                                               \
    X(Elu, elu)                                                                                                        \
    X(End, end)                                                                                                        \
    X(Exp, exp)                                                                                                        \
    X(GELU, gelu)                                                                                                      \
    X(GenIndex, gen_index)                                                                                             \
    X(GreaterEqual, greater_equal)                                                                                     \
    X(GroupNorm, group_norm)                                                                                           \
    X(HardSigmoid, hard_sigmoid)                                                                                       \
    X(HardSwish, hard_swish)                                                                                           \
    X(Interpolate, interpolate)                                                                                        \
    X(LayerNorm, layer_norm)                                                                                           \
    X(LeakyReLU, leaky_relu)                                                                                           \
    X(Log, log)                                                                                                        \
    X(LogSoftmax, log_softmax)                                                                                         \
    X(MatMul, matmul)                                                                                                  \
    X(MaxPool, max_pool)                                                                                               \
    X(Maximum, maximum)                                                                                                \
    X(Minimum, minimum)                                                                                                \
    X(Mish, mish)                                                                                                      \
    X(Multiply, multiply)                                                                                              \
    X(PReLU, prelu)                                                                                                    \
    X(Pow, pow)                                                                                                        \
    X(Quantize, quantize)                                                                                              \
    X(ReLU, relu)                                                                                                      \
    X(Reciprocal, reciprocal)                                                                                          \
    X(ReduceL1, reduce_l1)                                                                                             \
    X(ReduceL2, reduce_l2)                                                                                             \
    X(ReduceMax, reduce_max)                                                                                           \
    X(ReduceMean, reduce_mean)                                                                                         \
    X(ReduceMin, reduce_min)                                                                                           \
    X(ReduceProd, reduce_prod)                                                                                         \
    X(ReduceSum, reduce_sum)                                                                                           \
    X(Reorder, reorder)                                                                                                \
    X(Round, round)                                                                                                    \
    X(Select, select)                                                                                                  \
    X(Sigmoid, sigmoid)                                                                                                \
    X(SoftMax, softmax)                                                                                                \
    X(SoftPlus, softplus)                                                                                              \
    X(Sqrt, sqrt)                                                                                                      \
    X(Square, square)                                                                                                  \
    X(SquaredDifference, squared_difference)                                                                           \
    X(StaticReshape, static_reshape)                                                                                   \
    X(StaticTranspose, static_transpose)                                                                               \
    X(Subtract, subtract)                                                                                              \
    X(Tanh, tanh)                                                                                                      \
    X(TypeCast, type_cast)

/* Attributes have the same name on both sides. */
#define PEER_ATTRS(X)                                                                                                  \
    X(alpha)                                                                                                           \
    X(beta)                                                                                                            \
    X(epsilon)                                                                                                         \
    X(max)                                                                                                             \
    X(min)                                                                                                             \
    X(momentum)                                                                                                        \
    X(scales)                                                                                                          \
    X(axis)                                                                                                            \
    X(begin_norm_axis)                                                                                                 \
    X(groups)                                                                                                          \
    X(axes)                                                                                                            \
    X(dilations)                                                                                                       \
    X(dst_shape)                                                                                                       \
    X(kernel)                                                                                                          \
    X(order)                                                                                                           \
    X(output_padding)                                                                                                  \
    X(pads_begin)                                                                                                      \
    X(pads_end)                                                                                                        \
    X(shape)                                                                                                           \
    X(sizes)                                                                                                           \
    X(src_shape)                                                                                                       \
    X(strides)                                                                                                         \
    X(weights_shape)                                                                                                   \
    X(zps)                                                                                                             \
    X(group_shape)                                                                                                     \
    X(exclude_pad)                                                                                                     \
    X(keep_dims)                                                                                                       \
    X(keep_stats)                                                                                                      \
    X(per_channel_broadcast)                                                                                           \
    X(special_zero)                                                                                                    \
    X(transpose_a)                                                                                                     \
    X(transpose_b)                                                                                                     \
    X(use_affine)                                                                                                      \
    X(use_dst)                                                                                                         \
    X(auto_broadcast)                                                                                                  \
    X(auto_pad)                                                                                                        \
    X(coordinate_transformation_mode)                                                                                  \
    X(data_format)                                                                                                     \
    X(mode)                                                                                                            \
    X(qtype)                                                                                                           \
    X(rounding_type)                                                                                                   \
    X(weights_format)

static bool find_kind(const char *name, dnnl_graph_op_kind_t *kind_out) {
    static const struct {
        const char *name;
        dnnl_graph_op_kind_t kind;
    } kinds[] = {
#define PEER_KIND_ROW(text, id) {#text, dnnl_graph_op_##id},
        PEER_KINDS(PEER_KIND_ROW)
#undef PEER_KIND_ROW
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        *kind_out = kinds[i].kind;
        return true;
    }
    return false;
}

static dnnl_graph_op_attr_t find_attr(const char *name) {
    static const struct {
        const char *name;
        dnnl_graph_op_attr_t attr;
    } attrs[] = {
#define PEER_ATTR_ROW(id) {#id, dnnl_graph_op_attr_##id},
        PEER_ATTRS(PEER_ATTR_ROW)
#undef PEER_ATTR_ROW
    };
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        if (strcmp(attrs[i].name, name) == 0) return attrs[i].attr;
    return dnnl_graph_op_attr_undef;
}

static dnnl_status_t set_attr(dnnl_graph_op_t op, const qdqi_json_attr *a) {
    const dnnl_graph_op_attr_t id = find_attr(a->name);
    const uint8_t boolean = a->type == 'b' && a->v.boolean;
    if (id == dnnl_graph_op_attr_undef) return dnnl_invalid_graph_op;
    switch (a->type) {
    case 'f': return dnnl_graph_op_set_attr_f32(op, id, &a->v.f32, 1);
    case 'F': return dnnl_graph_op_set_attr_f32(op, id, a->v.f32s, a->n);
    case 'i': return dnnl_graph_op_set_attr_s64(op, id, &a->v.s64, 1);
    case 'I': return dnnl_graph_op_set_attr_s64(op, id, a->v.s64s, a->n);
    case 'b': return dnnl_graph_op_set_attr_bool(op, id, &boolean, 1);
    case 's': return dnnl_graph_op_set_attr_str(op, id, a->v.str, strlen(a->v.str));
    default: return dnnl_invalid_graph_op;
    }
}

/* The numbers of types, properties and layouts are the same; types from 64 on are ours alone. */
static qdq_status logical(const qdq_tensor_desc *d, dnnl_graph_logical_tensor_t *out, qdq_error *err) {
    if ((int)d->dtype >= 64) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: %s", qdq_dtype_name(d->dtype));
    const dnnl_data_type_t dtype = (dnnl_data_type_t)d->dtype;
    const dnnl_graph_tensor_property_t property = (dnnl_graph_tensor_property_t)d->property;
    if (d->layout == QDQ_LAYOUT_STRIDED && d->ndims > 0)
        return check(
            dnnl_graph_logical_tensor_init_with_strides(out, d->id, dtype, d->ndims, d->dims, d->strides, property),
            "logical tensor", err);
    return check(dnnl_graph_logical_tensor_init_with_dims(out, d->id, dtype, d->ndims, d->dims,
                                                          dnnl_graph_layout_type_strided, property),
                 "logical tensor", err);
}

static qdq_status fill_op(dnnl_graph_op_t op, const qdqi_json_op *from, qdq_error *err) {
    dnnl_graph_logical_tensor_t lt;
    for (size_t i = 0; i < from->n_attrs; i++)
        QDQI_TRY(check(set_attr(op, &from->attrs[i]), from->attrs[i].name, err));
    for (size_t i = 0; i < from->n_in; i++) {
        QDQI_TRY(logical(&from->in[i], &lt, err));
        QDQI_TRY(check(dnnl_graph_op_add_input(op, &lt), "input", err));
    }
    for (size_t i = 0; i < from->n_out; i++) {
        QDQI_TRY(logical(&from->out[i], &lt, err));
        QDQI_TRY(check(dnnl_graph_op_add_output(op, &lt), "output", err));
    }
    return QDQ_OK;
}

static qdq_status add_op(dnnl_graph_graph_t graph, const qdqi_json_op *from, qdq_error *err) {
    dnnl_graph_op_kind_t kind;
    dnnl_graph_op_t op;
    if (!find_kind(from->kind, &kind))
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: it has no op %s", from->kind);
    QDQI_TRY(check(dnnl_graph_op_create(&op, from->id, kind, from->name != NULL ? from->name : ""), from->kind, err));
    qdq_status st = fill_op(op, from, err);
    if (st == QDQ_OK) st = check(dnnl_graph_add_op(graph, op), from->kind, err);
    dnnl_graph_op_destroy(op);
    return st;
}

/* ---- partitions ------------------------------------------------------------------------------------------------- */

static const qdqi_json_op *op_by_id(const qdqi_json_case *json, size_t id) {
    for (size_t i = 0; i < json->n_ops; i++)
        if (json->ops[i].id == id) return &json->ops[i];
    return NULL;
}

/* The kinds of a partition's ops, for notes. */
static const char *kinds_of(const gb_case *c, const part *p, char *text, size_t bytes) {
    size_t n = 0, used = 0, ids[64];
    text[0] = '\0';
    if (dnnl_graph_partition_get_op_num(p->p, &n) != dnnl_success || n > 64) return text;
    if (dnnl_graph_partition_get_ops(p->p, n, ids) != dnnl_success) return text;
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

static qdq_status get_ports(part *p, qdq_error *err) {
    QDQI_TRY(check(dnnl_graph_partition_get_input_ports_num(p->p, &p->n_in), "ports", err));
    QDQI_TRY(check(dnnl_graph_partition_get_output_ports_num(p->p, &p->n_out), "ports", err));
    p->in_lt = qdqi_calloc(p->n_in + 1, sizeof *p->in_lt);
    p->out_lt = qdqi_calloc(p->n_out + 1, sizeof *p->out_lt);
    p->in = qdqi_calloc(p->n_in + 1, sizeof *p->in);
    p->out = qdqi_calloc(p->n_out + 1, sizeof *p->out);
    if (p->in_lt == NULL || p->out_lt == NULL || p->in == NULL || p->out == NULL) return QDQI_NO_MEMORY(err);
    if (p->n_in > 0) QDQI_TRY(check(dnnl_graph_partition_get_input_ports(p->p, p->n_in, p->in_lt), "ports", err));
    if (p->n_out > 0) QDQI_TRY(check(dnnl_graph_partition_get_output_ports(p->p, p->n_out, p->out_lt), "ports", err));
    return QDQ_OK;
}

static qdq_status compile(const gb_side *side, part *p, qdq_error *err) {
    const peer *o = side->state;
    char kinds[256];
    const dnnl_graph_logical_tensor_t **lts = qdqi_calloc(p->n_in + p->n_out + 1, sizeof *lts);
    if (lts == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < p->n_in; i++)
        lts[i] = &p->in_lt[i];
    for (size_t i = 0; i < p->n_out; i++) {
        if (!is_graph_output(side->c->graph, p->out_lt[i].id)) p->out_lt[i].layout_type = dnnl_graph_layout_type_any;
        lts[p->n_in + i] = &p->out_lt[i];
    }
    dnnl_status_t status = dnnl_graph_compiled_partition_create(&p->compiled, p->p);
    if (status == dnnl_success)
        status = dnnl_graph_partition_compile(p->p, p->compiled, p->n_in, lts, p->n_out, lts + p->n_in, o->engine);
    for (size_t i = 0; i < p->n_out && status == dnnl_success; i++)
        status = dnnl_graph_compiled_partition_query_logical_tensor(p->compiled, p->out_lt[i].id, &p->out_lt[i]);
    qdqi_free(lts);
    return check(status, kinds_of(side->c, p, kinds, sizeof kinds), err);
}

static qdq_status tensor_of(const peer *o, const bench_tensor *t, const dnnl_graph_logical_tensor_t *lt,
                            dnnl_graph_tensor_t *out, qdq_error *err) {
    return check(dnnl_graph_tensor_create(out, lt, o->engine, t->t.data), "tensor", err);
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

static qdq_status open_part(gb_side *side, part *p, qdq_error *err) {
    const peer *o = side->state;
    char kinds[256];
    uint8_t supported = 0;
    QDQI_TRY(check(dnnl_graph_partition_is_supported(p->p, &supported), "partition", err));
    if (!supported)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: %s", kinds_of(side->c, p, kinds, sizeof kinds));
    QDQI_TRY(get_ports(p, err));
    for (size_t i = 0; i < p->n_in; i++) {
        const size_t id = p->in_lt[i].id;
        const bench_tensor *t = bench_find(&side->c->inputs, id);
        if (t == NULL) {
            t = bench_find(&side->made, id);
            const dnnl_graph_logical_tensor_t *lt = made_as(o, id);
            if (t == NULL || lt == NULL)
                return qdqi_fail(err, QDQ_E_UNSUPPORTED, "tensor %zu is read before it is made", id);
            p->in_lt[i] = *lt;
        }
        QDQI_TRY(tensor_of(o, t, &p->in_lt[i], &p->in[i], err));
    }
    QDQI_TRY(compile(side, p, err));
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
        QDQI_TRY(check(dnnl_graph_compiled_partition_execute(p->compiled, o->stream, p->n_in,
                                                             (const_dnnl_graph_tensor_t *)p->in, p->n_out,
                                                             (const_dnnl_graph_tensor_t *)p->out),
                       "execute", err));
    }
    return check(dnnl_stream_wait(o->stream), "wait", err);
}

static qdq_status make_graph(const gb_case *c, peer *o, qdq_error *err) {
    QDQI_TRY(check(dnnl_engine_create(&o->engine, dnnl_cpu, 0), "engine", err));
    QDQI_TRY(check(dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags), "stream", err));
    QDQI_TRY(check(dnnl_graph_graph_create(&o->graph, dnnl_cpu), "graph", err));
    for (size_t i = 0; i < c->json->n_ops; i++)
        QDQI_TRY(add_op(o->graph, &c->json->ops[i], err));
    QDQI_TRY(check(dnnl_graph_graph_finalize(o->graph), "finalize", err));
    return check(dnnl_graph_graph_filter(o->graph, dnnl_graph_partition_policy_fusion), "filter", err);
}

qdq_status gb_peer_open(const gb_case *c, size_t cache_mb, gb_side *side, qdq_error *err) {
    peer *o = qdqi_calloc(1, sizeof *o);
    if (o == NULL) return QDQI_NO_MEMORY(err);
    *side = (gb_side){.c = c, .state = o, .run = run};
    QDQI_TRY(check(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, cache_mb), "constant cache", err));
    QDQI_TRY(make_graph(c, o, err));
    size_t n = 0;
    QDQI_TRY(check(dnnl_graph_graph_get_partition_num(o->graph, &n), "partitions", err));
    dnnl_graph_partition_t *list = qdqi_calloc(n + 1, sizeof(dnnl_graph_partition_t));
    o->parts = qdqi_calloc(n + 1, sizeof *o->parts);
    qdq_status st = list != NULL && o->parts != NULL ? QDQ_OK : QDQI_NO_MEMORY(err);
    if (st == QDQ_OK) st = check(dnnl_graph_graph_get_partitions(o->graph, n, list), "partitions", err);
    for (size_t i = 0; st == QDQ_OK && i < n; i++)
        o->parts[i].p = list[i];
    qdqi_free(list);
    QDQI_TRY(st);
    o->n_parts = side->n_parts = n;
    for (size_t i = 0; i < n; i++)
        QDQI_TRY(open_part(side, &o->parts[i], err));
    return QDQ_OK;
}

static void close_part(part *p) {
    for (size_t i = 0; p->in != NULL && i < p->n_in; i++)
        if (p->in[i] != NULL) dnnl_graph_tensor_destroy(p->in[i]);
    for (size_t i = 0; p->out != NULL && i < p->n_out; i++)
        if (p->out[i] != NULL) dnnl_graph_tensor_destroy(p->out[i]);
    if (p->compiled != NULL) dnnl_graph_compiled_partition_destroy(p->compiled);
    if (p->p != NULL) dnnl_graph_partition_destroy(p->p);
    qdqi_free(p->in);
    qdqi_free(p->out);
    qdqi_free(p->in_lt);
    qdqi_free(p->out_lt);
}

void gb_peer_close(gb_side *side) {
    peer *o = side->state;
    if (o == NULL) return;
    for (size_t i = 0; i < o->n_parts; i++)
        close_part(&o->parts[i]);
    if (o->graph != NULL) dnnl_graph_graph_destroy(o->graph);
    if (o->stream != NULL) dnnl_stream_destroy(o->stream);
    if (o->engine != NULL) dnnl_engine_destroy(o->engine);
    qdqi_free(o->parts);
    qdqi_free(o);
    bench_free(&side->made);
    *side = (gb_side){0};
}
