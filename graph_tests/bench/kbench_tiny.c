/* Tiny partitions through the public API: what is left of an execution when the work is next to nothing. Dequantize, MatMul with
 * bias, ReLU, Quantize; the peer is oneDNN's primitive alone, called with arguments prepared beforehand. */
#include "bench_peer_gemm.h"
#include "kbench.h"

#include <math.h>
#include <stdio.h>

enum { SRC, WEIGHTS, SRC_F32, WEIGHTS_F32, BIAS, PRODUCT, ACTIVATED, DST, N_TENSORS };

typedef struct tiny {
    int64_t m, k, n;
    qdq_engine *engine;
    qdq_graph *graph;
    qdq_partition_list *list;
    qdq_compiled *compiled;
    qdq_tensor_desc t[N_TENSORS];
    qdq_tensor in, out;
    void *src, *weights, *dst;
    float *scales, *bias;
} tiny;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const qdq_status status_ = (call);                                                                             \
        if (status_ != QDQ_OK) return status_;                                                                         \
    } while (0)

static qdq_status add_op(tiny *y, uint64_t id, const char *kind, const int *in, int out, const float *scales,
                         size_t n) {
    qdq_op *op = NULL;
    TRY(qdq_op_create(id, kind, "", &op, NULL));
    qdq_status st = QDQ_OK;
    for (; *in >= 0 && st == QDQ_OK; in++)
        st = qdq_op_add_input(op, &y->t[*in], NULL);
    if (st == QDQ_OK) st = qdq_op_add_output(op, &y->t[out], NULL);
    if (st == QDQ_OK && n != 0) st = qdq_op_set_attr_str(op, "qtype", n > 1 ? "per_channel" : "per_tensor", NULL);
    if (st == QDQ_OK && n > 1) st = qdq_op_set_attr_s64(op, "axis", 1, NULL);
    if (st == QDQ_OK && n != 0) st = qdq_op_set_attr_f32s(op, "scales", scales, n, NULL);
    if (st == QDQ_OK) st = qdq_graph_add_op(y->graph, op, NULL);
    qdq_op_destroy(&op);
    return st;
}

static qdq_status build(tiny *y) {
    static const qdq_dtype types[] = {QDQ_DTYPE_U8,  QDQ_DTYPE_S8,  QDQ_DTYPE_F32, QDQ_DTYPE_F32,
                                      QDQ_DTYPE_F32, QDQ_DTYPE_F32, QDQ_DTYPE_F32, QDQ_DTYPE_U8};
    const float src_scale = 0.05f, dst_scale = 0.7f;
    for (int i = 0; i < N_TENSORS; i++) {
        const int64_t dims[] = {i == WEIGHTS || i == WEIGHTS_F32 ? y->k : y->m, i == SRC || i == SRC_F32 ? y->k : y->n};
        const bool constant = i == WEIGHTS || i == BIAS;
        TRY(qdq_tensor_desc_init((uint64_t)i, types[i], i == BIAS ? 1 : 2, i == BIAS ? dims + 1 : dims,
                                 QDQ_LAYOUT_STRIDED, constant ? QDQ_PROPERTY_CONSTANT : QDQ_PROPERTY_VARIABLE, &y->t[i],
                                 NULL));
    }
    TRY(qdq_engine_create(NULL, &y->engine, NULL));
    TRY(qdq_graph_create(&y->graph, NULL));
    TRY(add_op(y, 1, "Dequantize", (const int[]){SRC, -1}, SRC_F32, &src_scale, 1));
    TRY(add_op(y, 2, "Dequantize", (const int[]){WEIGHTS, -1}, WEIGHTS_F32, y->scales, (size_t)y->n));
    TRY(add_op(y, 3, "MatMul", (const int[]){SRC_F32, WEIGHTS_F32, BIAS, -1}, PRODUCT, NULL, 0));
    TRY(add_op(y, 4, "ReLU", (const int[]){PRODUCT, -1}, ACTIVATED, NULL, 0));
    TRY(add_op(y, 5, "Quantize", (const int[]){ACTIVATED, -1}, DST, &dst_scale, 1));
    TRY(qdq_graph_set_constant(y->graph, &y->t[WEIGHTS], y->weights, (size_t)(y->k * y->n), QDQ_DATA_COPY, NULL));
    TRY(qdq_graph_set_constant(y->graph, &y->t[BIAS], y->bias, (size_t)y->n * sizeof(float), QDQ_DATA_COPY, NULL));
    TRY(qdq_graph_finalize(y->graph, NULL));
    TRY(qdq_graph_partition(y->graph, QDQ_POLICY_FUSION, &y->list, NULL));
    return qdq_partition_compile(qdq_partition_list_get(y->list, 0), y->engine, &y->t[SRC], 1, &y->t[DST], 1,
                                 &y->compiled, NULL);
}

static void close(tiny *y) {
    qdq_compiled_destroy(&y->compiled);
    qdq_partition_list_destroy(&y->list);
    qdq_graph_destroy(&y->graph);
    qdq_engine_destroy(&y->engine);
}

static qk_isa prepare(void *arg, int n_threads) {
    tiny *y = arg;
    (void)n_threads;
    close(y);
    if (build(y) != QDQ_OK) close(y);
    qk_isa level = QK_ISA_ref;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++)
        if (qk_isa_has((qk_isa)isa)) level = (qk_isa)isa;
    return level;
}

static void run(void *arg, int part, int n_parts) {
    const tiny *y = arg;
    (void)n_parts;
    if (part == 0 && y->compiled != NULL && qdq_compiled_execute(y->compiled, &y->in, 1, &y->out, 1, NULL) != QDQ_OK)
        *(uint8_t *)y->dst = 0;
}

static bench_peer *peer(void *arg) {
    const tiny *y = arg;
    const bench_tensor s = {
        .data = y->src, .dtype = QDQ_DTYPE_U8, .ndims = 2, .dims = {y->m, y->k}, .strides = {y->k, 1}};
    const bench_tensor w = {
        .data = y->weights, .dtype = QDQ_DTYPE_S8, .ndims = 2, .dims = {y->k, y->n}, .strides = {y->n, 1}};
    const bench_tensor d = {
        .data = y->dst, .dtype = QDQ_DTYPE_U8, .ndims = 2, .dims = {y->m, y->n}, .strides = {y->n, 1}};
    return bench_peer_layer(&s, &w, &d, y->scales, y->bias);
}

static void measure(kbench *b, int64_t m, int64_t k, int64_t n) {
    char name[96];
    snprintf(name, sizeof name, "partition u8s8u8 %dx%dx%d", (int)m, (int)k, (int)n);
    if (!kbench_wants(b, name)) return;
    tiny y = {.m = m, .k = k, .n = n};
    y.src = kbench_buffer(b, (size_t)(m * k));
    y.weights = kbench_buffer(b, (size_t)(k * n));
    y.dst = kbench_buffer(b, (size_t)(m * n));
    y.scales = kbench_floats(b, (size_t)n);
    y.bias = kbench_floats(b, (size_t)n);
    for (int64_t c = 0; c < n; c++)
        y.scales[c] = 0.001f + fabsf(y.scales[c]);
    if (build(&y) != QDQ_OK) {
        fprintf(stderr, "qdq-kbench: %s does not compile\n", name);
        close(&y);
        return;
    }
    y.in = (qdq_tensor){.desc = y.t[SRC], .data = y.src};
    y.out = (qdq_tensor){.desc = y.t[DST], .data = y.dst};
    const kbench_case kase = {.name = name,
                              .read_bytes = (size_t)(m * k + k * n),
                              .write_bytes = (size_t)(m * n),
                              .max_parts = 1,
                              .prepare = prepare,
                              .run = run,
                              .peer = peer,
                              .arg = &y};
    kbench_measure(b, &kase);
    close(&y);
}

void kbench_tiny(kbench *b) {
    static const int64_t shapes[][3] = {{1, 16, 16}, {4, 16, 16}, {16, 16, 16}, {1, 64, 64}, {4, 64, 64}, {16, 64, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(b, shapes[i][0], shapes[i][1], shapes[i][2]);
}
