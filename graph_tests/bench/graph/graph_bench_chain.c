/* A graph to partition: what networks are made of, over and over. */
#include "graph_bench.h"

#include "base/alloc.h"

enum { WIDTH = 64, OPS_PER_BLOCK = 5 };

typedef struct builder {
    qdqi_json_case *json;
    uint64_t next_id; /* of tensors */
    bool ok;
} builder;

static qdq_tensor_desc tensor(builder *b, qdq_dtype dtype, bool constant) {
    const int64_t dims[2] = {WIDTH, WIDTH};
    qdq_tensor_desc desc;
    b->ok =
        b->ok && qdq_tensor_desc_init(b->next_id++, dtype, 2, dims, QDQ_LAYOUT_STRIDED,
                                      constant ? QDQ_PROPERTY_CONSTANT : QDQ_PROPERTY_VARIABLE, &desc, NULL) == QDQ_OK;
    if (!b->ok) return (qdq_tensor_desc){0};
    return desc;
}

static void op(builder *b, const char *kind, const qdq_tensor_desc *in, size_t n_in, const qdq_tensor_desc *out) {
    qdqi_arena *arena = &b->json->arena;
    qdqi_json_op *to = &b->json->ops[b->json->n_ops];
    *to = (qdqi_json_op){.id = b->json->n_ops, .name = "", .kind = kind};
    to->in = qdqi_arena_dup(arena, in, n_in * sizeof *in);
    to->out = qdqi_arena_dup(arena, out, sizeof *out);
    b->ok = b->ok && to->in != NULL && to->out != NULL;
    to->n_in = n_in;
    to->n_out = 1;
    b->json->n_ops++;
}

static void set_quantization(builder *b) {
    qdqi_json_op *to = &b->json->ops[b->json->n_ops - 1];
    static float scale = 0.5f;
    static int64_t zp = 0;
    qdqi_json_attr *scales = qdqi_json_add_attr(b->json, to, "scales");
    if (scales != NULL) *scales = (qdqi_json_attr){.name = scales->name, .type = 'F', .n = 1, .v.f32s = &scale};
    qdqi_json_attr *zps = qdqi_json_add_attr(b->json, to, "zps");
    if (zps != NULL) *zps = (qdqi_json_attr){.name = zps->name, .type = 'I', .n = 1, .v.s64s = &zp};
    b->ok = b->ok && scales != NULL && zps != NULL;
}

static qdq_tensor_desc block(builder *b, const qdq_tensor_desc *x) {
    const qdq_tensor_desc weights = tensor(b, QDQ_DTYPE_S8, true);
    const qdq_tensor_desc floats[2] = {tensor(b, QDQ_DTYPE_F32, false), tensor(b, QDQ_DTYPE_F32, false)};
    const qdq_tensor_desc product = tensor(b, QDQ_DTYPE_F32, false), positive = tensor(b, QDQ_DTYPE_F32, false);
    const qdq_tensor_desc y = tensor(b, QDQ_DTYPE_S8, false);
    op(b, "Dequantize", x, 1, &floats[0]);
    set_quantization(b);
    op(b, "Dequantize", &weights, 1, &floats[1]);
    set_quantization(b);
    op(b, "MatMul", floats, 2, &product);
    op(b, "ReLU", &product, 1, &positive);
    op(b, "Quantize", &positive, 1, &y);
    set_quantization(b);
    return y;
}

qdq_status gb_case_chain(int n_blocks, gb_case *c, qdq_error *err) {
    c->json = qdqi_calloc(1, sizeof *c->json);
    if (c->json == NULL) return QDQI_NO_MEMORY(err);
    c->json->ops = qdqi_arena_alloc(&c->json->arena, OPS_PER_BLOCK * (size_t)n_blocks, sizeof *c->json->ops);
    builder b = {.json = c->json, .ok = c->json->ops != NULL};
    qdq_tensor_desc x = tensor(&b, QDQ_DTYPE_S8, false);
    for (int i = 0; i < n_blocks && b.ok; i++)
        x = block(&b, &x);
    return b.ok ? QDQ_OK : QDQI_NO_MEMORY(err);
}
