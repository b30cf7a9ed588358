/* An ONNX model as ops of oneDNN Graph: what has the same meaning under another name is renamed, parameters that are constant
 * inputs there and attributes here are moved, the rest stays as it is and will be a wildcard. QuantizeLinear and DequantizeLinear
 * become Quantize and Dequantize, which round a tie before an odd zero point the other way: on one side as on the other. */
#include "dnnl_calls.h"
#include "graph_bench.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "ir/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct converter {
    gb_case *c;
    const qdq_graph *graph;
} converter;

static const qdqi_value *input(const converter *v, const qdqi_op *op, uint32_t port) {
    return port < op->n_in && op->in[port] != QDQI_NONE ? &v->graph->values[op->in[port]] : NULL;
}

static bool is_constant(const qdqi_value *value) {
    return value != NULL && value->data != NULL;
}

static qdq_status set_ints(const converter *v, qdqi_json_op *to, const char *name, const int64_t *values, size_t n,
                           qdq_error *err) {
    qdqi_json_attr *a = qdqi_json_add_attr(v->c->json, to, name);
    if (a == NULL) return QDQI_NO_MEMORY(err);
    a->type = 'I';
    a->n = n;
    a->v.s64s = qdqi_arena_dup(&v->c->json->arena, values, (n + 1) * sizeof *values);
    return a->v.s64s != NULL ? QDQ_OK : QDQI_NO_MEMORY(err);
}

static qdq_status set_str(const converter *v, qdqi_json_op *to, const char *name, const char *text, qdq_error *err) {
    qdqi_json_attr *a = qdqi_json_add_attr(v->c->json, to, name);
    if (a == NULL) return QDQI_NO_MEMORY(err);
    a->type = 's';
    a->v.str = text;
    return QDQ_OK;
}

static qdq_status set_int(const converter *v, qdqi_json_op *to, const char *name, int64_t value, qdq_error *err) {
    qdqi_json_attr *a = qdqi_json_add_attr(v->c->json, to, name);
    if (a == NULL) return QDQI_NO_MEMORY(err);
    a->type = 'i';
    a->v.s64 = value;
    return QDQ_OK;
}

/* What is left at its default is the same on the other side, or unknown there. */
static qdq_status copy_attrs(const converter *v, const qdqi_op *op, qdqi_json_op *to, qdq_error *err) {
    for (uint32_t i = 0; i < op->schema->n_attrs; i++) {
        const qdqi_attr *from = &op->attrs[i];
        if (!from->is_set) continue;
        qdqi_json_attr *a = qdqi_json_add_attr(v->c->json, to, qdqi_attr_text(op->schema->attrs[i].name));
        if (a == NULL) return QDQI_NO_MEMORY(err);
        a->type = (char)from->type;
        a->n = from->n;
        switch (from->type) {
        case QDQI_ATTR_F32: a->v.f32 = from->v.f32; break;
        case QDQI_ATTR_S64: a->v.s64 = from->v.s64; break;
        case QDQI_ATTR_BOOL: a->v.boolean = from->v.boolean; break;
        case QDQI_ATTR_STR: a->v.str = from->v.str; break;
        case QDQI_ATTR_F32S:
            a->v.f32s = qdqi_arena_dup(&v->c->json->arena, from->v.f32s, (from->n + 1u) * sizeof(float));
            break;
        case QDQI_ATTR_S64S:
            a->v.s64s = qdqi_arena_dup(&v->c->json->arena, from->v.s64s, from->n * sizeof(int64_t) + 1);
            break;
        }
    }
    return QDQ_OK;
}

/* The first n inputs; `constant` ports beyond are attributes by now. */
static qdq_status copy_ports(const converter *v, const qdqi_op *op, uint32_t n_in, qdqi_json_op *to, qdq_error *err) {
    to->in = qdqi_arena_alloc(&v->c->json->arena, n_in + 1, sizeof *to->in);
    to->out = qdqi_arena_alloc(&v->c->json->arena, op->n_out + 1, sizeof *to->out);
    if (to->in == NULL || to->out == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < n_in && i < op->n_in; i++) {
        const qdqi_value *value = input(v, op, i);
        if (value == NULL) continue;
        to->in[to->n_in] = value->desc;
        if (is_constant(value)) to->in[to->n_in].property = QDQ_PROPERTY_CONSTANT;
        to->n_in++;
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i] != QDQI_NONE) to->out[to->n_out++] = v->graph->values[op->out[i]].desc;
    return QDQ_OK;
}

/* QuantizeLinear, DequantizeLinear with constant parameters of 8 bits. */
static qdq_status quantization(const converter *v, const qdqi_op *op, qdqi_json_op *to, bool *done, qdq_error *err) {
    const bool quantize = op->kind == QDQI_OP_QUANTIZELINEAR;
    const qdqi_value *scale = input(v, op, 1), *zp = input(v, op, 2), *x = input(v, op, 0);
    const qdq_dtype stored = quantize ? v->graph->values[op->out[0]].desc.dtype : x->desc.dtype;
    const qdqi_attr *block = qdqi_op_attr_or_null(op, QDQI_A_BLOCK_SIZE);
    if (!is_constant(scale) || (zp != NULL && !is_constant(zp)) || scale->desc.ndims > 1) return QDQ_OK;
    if ((stored != QDQ_DTYPE_S8 && stored != QDQ_DTYPE_U8) || scale->desc.dtype != QDQ_DTYPE_F32) return QDQ_OK;
    if (block != NULL && block->v.s64 != 0) return QDQ_OK;
    int64_t n = 0;
    QDQI_TRY(qdq_tensor_desc_n_elems(&scale->desc, &n, err));
    const bool per_channel = scale->desc.ndims == 1 && n > 1;
    int64_t *zps = qdqi_arena_alloc(&v->c->json->arena, (size_t)n + 1, sizeof *zps);
    qdqi_json_attr *scales = qdqi_json_add_attr(v->c->json, to, "scales");
    if (zps == NULL || scales == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < n; i++)
        zps[i] = zp != NULL ? qdqi_load_i64(zp->data, zp->desc.dtype, i) : 0;
    scales->type = 'F';
    scales->n = (size_t)n;
    scales->v.f32s = qdqi_arena_dup(&v->c->json->arena, scale->data, (size_t)n * sizeof(float));
    if (scales->v.f32s == NULL) return QDQI_NO_MEMORY(err);
    QDQI_TRY(set_ints(v, to, "zps", zps, (size_t)n, err));
    QDQI_TRY(set_str(v, to, "qtype", per_channel ? "per_channel" : "per_tensor", err));
    if (per_channel) QDQI_TRY(set_int(v, to, "axis", qdqi_op_s64(op, QDQI_A_AXIS), err));
    to->kind = quantize ? "Quantize" : "Dequantize";
    *done = true;
    return copy_ports(v, op, 1, to, err);
}

static qdq_status reshape(const converter *v, const qdqi_op *op, qdqi_json_op *to, qdq_error *err) {
    const qdq_tensor_desc *out = &v->graph->values[op->out[0]].desc;
    qdqi_json_attr *zero = qdqi_json_add_attr(v->c->json, to, "special_zero");
    if (zero == NULL) return QDQI_NO_MEMORY(err);
    zero->type = 'b';
    to->kind = "StaticReshape";
    QDQI_TRY(set_ints(v, to, "shape", out->dims, (size_t)out->ndims, err));
    return copy_ports(v, op, 1, to, err);
}

static qdq_status global_pool(const converter *v, const qdqi_op *op, qdqi_json_op *to, qdq_error *err) {
    const qdq_tensor_desc *x = &input(v, op, 0)->desc;
    const int64_t ones[QDQ_MAX_NDIMS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, zeros[QDQ_MAX_NDIMS] = {0};
    const size_t n = (size_t)x->ndims - 2;
    qdqi_json_attr *exclude = qdqi_json_add_attr(v->c->json, to, "exclude_pad");
    if (exclude == NULL) return QDQI_NO_MEMORY(err);
    exclude->type = 'b';
    to->kind = "AvgPool";
    QDQI_TRY(set_ints(v, to, "kernel", x->dims + 2, n, err));
    QDQI_TRY(set_ints(v, to, "strides", ones, n, err));
    QDQI_TRY(set_ints(v, to, "pads_begin", zeros, n, err));
    QDQI_TRY(set_ints(v, to, "pads_end", zeros, n, err));
    QDQI_TRY(set_str(v, to, "data_format", "NCX", err));
    return copy_ports(v, op, 1, to, err);
}

static qdq_status convert_op(const converter *v, const qdqi_op *op, qdqi_json_op *to, qdq_error *err) {
    bool done = false;
    *to = (qdqi_json_op){.id = op->id, .kind = op->schema->name, .name = op->name};
    if (op->kind == QDQI_OP_QUANTIZELINEAR || op->kind == QDQI_OP_DEQUANTIZELINEAR)
        QDQI_TRY(quantization(v, op, to, &done, err));
    if (done) return QDQ_OK;
    switch (op->kind) {
    case QDQI_OP_RESHAPE:
    case QDQI_OP_FLATTEN:
    case QDQI_OP_SQUEEZE:
    case QDQI_OP_UNSQUEEZE: return reshape(v, op, to, err);
    case QDQI_OP_GLOBALAVERAGEPOOL: return global_pool(v, op, to, err);
    default: break;
    }
    QDQI_TRY(copy_attrs(v, op, to, err));
    return copy_ports(v, op, op->n_in, to, err);
}

/* A Dequantize of a constant of 32 bits (a bias) is a constant of floats: nobody else takes it as an op. */
static bool is_bias(const converter *v, const qdqi_op *op) {
    const qdqi_value *x = input(v, op, 0);
    return op->kind == QDQI_OP_DEQUANTIZELINEAR && is_constant(x) && x->desc.dtype == QDQ_DTYPE_S32;
}

static qdq_status add_input(gb_case *c, const qdqi_value *value, bool constant, qdq_error *err) {
    bench_tensor *t;
    if (bench_find(&c->inputs, value->desc.id) != NULL) return QDQ_OK;
    QDQI_TRY(bench_add(&c->inputs, &value->desc, &t, err));
    t->is_input = true;
    t->is_constant = constant;
    if (!constant) return QDQ_OK;
    t->t.desc.property = QDQ_PROPERTY_CONSTANT;
    return gb_case_reference(c, &t->t, 1, err);
}

/* Integers of a model are indices or masks, of which 0 and 1 are always good. */
static void fill(const qdqi_json_case *json, bench_tensor *t) {
    static const bench_drive drive = {.amplitude = 4, .density = 1.0};
    const qdq_dtype dtype = t->t.desc.dtype;
    int64_t n = 0;
    if (t->is_constant) return;
    bench_fill(json, &drive, t);
    if (dtype != QDQ_DTYPE_S32 && dtype != QDQ_DTYPE_S64) return;
    if (qdq_tensor_desc_n_elems(&t->t.desc, &n, NULL) != QDQ_OK) return;
    for (int64_t i = 0; i < n; i++)
        qdqi_store_i64(t->t.data, dtype, i, i % 2);
}

static qdq_status convert(const converter *v, qdq_error *err) {
    gb_case *c = v->c;
    qdqi_json_case *json = c->json;
    json->ops = qdqi_arena_alloc(&json->arena, v->graph->n_ops + 1, sizeof *json->ops);
    if (json->ops == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < v->graph->n_inputs; i++)
        QDQI_TRY(add_input(c, &v->graph->values[v->graph->inputs[i]], false, err));
    for (uint32_t i = 0; i < v->graph->n_ops; i++) {
        const qdqi_op *op = &v->graph->ops[v->graph->topo[i]];
        if (op->folded || is_bias(v, op)) continue;
        QDQI_TRY(convert_op(v, op, &json->ops[json->n_ops], err));
        json->n_ops++;
    }
    for (size_t i = 0; i < c->inputs.n; i++)
        fill(json, &c->inputs.v[i]);
    /* constants that are left as inputs of ops */
    for (size_t i = 0; i < json->n_ops; i++)
        for (size_t k = 0; k < json->ops[i].n_in; k++) {
            qdq_tensor_desc *desc = &json->ops[i].in[k];
            const qdqi_value *value = &v->graph->values[qdqi_graph_value(v->graph, desc->id)];
            const bool bias = value->producer != QDQI_NONE && is_bias(v, &v->graph->ops[value->producer]);
            if (!bias && !is_constant(value)) continue;
            desc->property = QDQ_PROPERTY_CONSTANT;
            QDQI_TRY(add_input(c, value, true, err));
        }
    return QDQ_OK;
}

qdq_status gb_case_load_onnx(const char *path, const char *shape, gb_case *c, qdq_error *err) {
    int64_t dims[QDQ_MAX_NDIMS];
    qdq_input_shape first = {.dims = dims};
    for (const char *s = shape; s != NULL && *s != '\0' && first.ndims < QDQ_MAX_NDIMS; first.ndims++) {
        char *end;
        dims[first.ndims] = strtoll(s, &end, 10);
        if (end == s || (*end != 'x' && *end != '\0'))
            return qdqi_fail(err, QDQ_E_BAD_ARG, "--shape=%s: expected numbers with x between them", shape);
        s = *end == 'x' ? end + 1 : end;
    }
    const qdq_onnx_options options = {
        .struct_bytes = sizeof options, .data_shapes = &first, .n_data_shapes = shape != NULL ? 1 : 0};
    QDQI_TRY(qdq_onnx_load_file(path, &options, &c->graph, err));
    c->json = qdqi_calloc(1, sizeof *c->json);
    if (c->json == NULL) return QDQI_NO_MEMORY(err);
    const converter v = {c, c->graph};
    return convert(&v, err);
}
