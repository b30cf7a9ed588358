/* A graph by hand: an int8 matrix product with an activation.
 *
 *      src u8 [4,16]      weights s8 [16,8], constant
 *            |                    |
 *       Dequantize           Dequantize per column
 *             \                  /
 *              `---- MatMul ----'
 *                      |
 *                    ReLU
 *                      |
 *                  Quantize
 *                      |
 *                 dst u8 [4,8]
 *
 * The five ops become one partition; it is compiled, executed, and its numbers are held against a plain loop. */
#include <math.h>
#include <qdq/qdq.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 4, K = 16, N = 8 };

/* Tensors are the edges of the graph: ops that mention the same id are connected. */
enum { SRC_U8, WEIGHTS_S8, SRC_F32, WEIGHTS_F32, PRODUCT, ACTIVATED, DST_U8, N_TENSORS };

/* real = (stored - zero point) * scale */
static const float src_scale = 0.05f, dst_scale = 0.1f;
static const int64_t src_zp = 128, dst_zp = 3;
static const float weight_scales[N] = {0.010f, 0.012f, 0.014f, 0.016f, 0.018f, 0.020f, 0.022f, 0.024f};

/* Every call of the library gives a status; on failure the error holds one line that says what is wrong and where. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const qdq_status status_ = (call);                                                                             \
        if (status_ != QDQ_OK) return status_;                                                                         \
    } while (0)

static qdq_status describe_tensors(qdq_tensor_desc *t, qdq_error *err) {
    const int64_t src[] = {M, K}, weights[] = {K, N}, dst[] = {M, N};
    const qdq_layout dense = QDQ_LAYOUT_STRIDED;
    const qdq_property var = QDQ_PROPERTY_VARIABLE, con = QDQ_PROPERTY_CONSTANT;
    TRY(qdq_tensor_desc_init(SRC_U8, QDQ_DTYPE_U8, 2, src, dense, var, &t[SRC_U8], err));
    TRY(qdq_tensor_desc_init(WEIGHTS_S8, QDQ_DTYPE_S8, 2, weights, dense, con, &t[WEIGHTS_S8], err));
    TRY(qdq_tensor_desc_init(SRC_F32, QDQ_DTYPE_F32, 2, src, dense, var, &t[SRC_F32], err));
    TRY(qdq_tensor_desc_init(WEIGHTS_F32, QDQ_DTYPE_F32, 2, weights, dense, var, &t[WEIGHTS_F32], err));
    TRY(qdq_tensor_desc_init(PRODUCT, QDQ_DTYPE_F32, 2, dst, dense, var, &t[PRODUCT], err));
    TRY(qdq_tensor_desc_init(ACTIVATED, QDQ_DTYPE_F32, 2, dst, dense, var, &t[ACTIVATED], err));
    return qdq_tensor_desc_init(DST_U8, QDQ_DTYPE_U8, 2, dst, dense, var, &t[DST_U8], err);
}

typedef struct quantization {
    const char *type; /* "per_tensor" or "per_channel" */
    const float *scales;
    size_t n_scales;
    const int64_t *zps; /* NULL: zero */
} quantization;

static qdq_status fill_op(qdq_op *op, const qdq_tensor_desc *in0, const qdq_tensor_desc *in1,
                          const qdq_tensor_desc *out, const quantization *q, qdq_error *err) {
    TRY(qdq_op_add_input(op, in0, err));
    if (in1 != NULL) TRY(qdq_op_add_input(op, in1, err));
    TRY(qdq_op_add_output(op, out, err));
    if (q == NULL) return QDQ_OK;
    TRY(qdq_op_set_attr_str(op, "qtype", q->type, err));
    TRY(qdq_op_set_attr_s64(op, "axis", 1, err)); /* read when qtype is per_channel */
    TRY(qdq_op_set_attr_f32s(op, "scales", q->scales, q->n_scales, err));
    return q->zps == NULL ? QDQ_OK : qdq_op_set_attr_s64s(op, "zps", q->zps, q->n_scales, err);
}

/* The graph takes a copy of the op. */
static qdq_status add_op(qdq_graph *graph, uint64_t id, const char *kind, const qdq_tensor_desc *in0,
                         const qdq_tensor_desc *in1, const qdq_tensor_desc *out, const quantization *q,
                         qdq_error *err) {
    qdq_op *op = NULL;
    TRY(qdq_op_create(id, kind, "", &op, err));
    qdq_status status = fill_op(op, in0, in1, out, q, err);
    if (status == QDQ_OK) status = qdq_graph_add_op(graph, op, err);
    qdq_op_destroy(&op);
    return status;
}

static qdq_status build(qdq_graph *graph, const qdq_tensor_desc *t, const int8_t *weights, qdq_error *err) {
    const quantization src = {"per_tensor", &src_scale, 1, &src_zp};
    const quantization wei = {"per_channel", weight_scales, N, NULL};
    const quantization dst = {"per_tensor", &dst_scale, 1, &dst_zp};
    TRY(add_op(graph, 1, "Dequantize", &t[SRC_U8], NULL, &t[SRC_F32], &src, err));
    TRY(add_op(graph, 2, "Dequantize", &t[WEIGHTS_S8], NULL, &t[WEIGHTS_F32], &wei, err));
    TRY(add_op(graph, 3, "MatMul", &t[SRC_F32], &t[WEIGHTS_F32], &t[PRODUCT], NULL, err));
    TRY(add_op(graph, 4, "ReLU", &t[PRODUCT], NULL, &t[ACTIVATED], NULL, err));
    TRY(add_op(graph, 5, "Quantize", &t[ACTIVATED], NULL, &t[DST_U8], &dst, err));
    TRY(qdq_graph_set_constant(graph, &t[WEIGHTS_S8], weights, (size_t)K * N, QDQ_DATA_COPY, err));
    return qdq_graph_finalize(graph, err);
}

static qdq_status print_partitions(const qdq_partition_list *list, qdq_error *err) {
    printf("%zu partition(s)\n", qdq_partition_list_count(list));
    for (size_t i = 0; i < qdq_partition_list_count(list); i++) {
        const qdq_partition *p = qdq_partition_list_get(list, i);
        printf("  %zu  %s%s:", qdq_partition_id(p), qdq_partition_pattern(p),
               qdq_partition_is_supported(p) ? "" : " (not supported)");
        for (size_t k = 0; k < qdq_partition_n_ops(p); k++) {
            uint64_t id;
            const char *kind, *name;
            TRY(qdq_partition_op(p, k, &id, &kind, &name, err));
            printf(" %s", kind);
        }
        printf("\n");
    }
    return QDQ_OK;
}

/* The value before it is rounded to an integer, in double precision. */
static double expected(const uint8_t *src, const int8_t *weights, int row, int col) {
    double sum = 0.0;
    for (int k = 0; k < K; k++)
        sum += (double)(src[row * K + k] - src_zp) * (double)weights[k * N + col];
    const double product = sum * (double)src_scale * (double)weight_scales[col];
    const double q = (product < 0.0 ? 0.0 : product) / (double)dst_scale + (double)dst_zp;
    return q > 255.0 ? 255.0 : q;
}

static int count_wrong(const uint8_t *src, const int8_t *weights, const uint8_t *dst) {
    int wrong = 0;
    for (int i = 0; i < M * N; i++) {
        const double want = expected(src, weights, i / N, i % N);
        /* the nearest integer; a hair more than 1/2 for values that lie on a tie */
        if (fabs((double)dst[i] - want) <= 0.5 + 1e-3) continue;
        fprintf(stderr, "dst[%d,%d] is %u, expected %.3f\n", i / N, i % N, dst[i], want);
        wrong++;
    }
    return wrong;
}

typedef struct objects {
    qdq_graph *graph;
    qdq_partition_list *list;
    qdq_engine *engine;
    qdq_compiled *compiled;
} objects;

static qdq_status run(objects *o, uint8_t *src, int8_t *weights, uint8_t *dst, qdq_error *err) {
    qdq_tensor_desc t[N_TENSORS];
    TRY(describe_tensors(t, err));
    TRY(qdq_graph_create(&o->graph, err));
    TRY(build(o->graph, t, weights, err));

    TRY(qdq_graph_partition(o->graph, QDQ_POLICY_FUSION, &o->list, err));
    TRY(print_partitions(o->list, err));
    if (qdq_partition_list_count(o->list) != 1) {
        snprintf(err->text, sizeof err->text, "expected the five ops in one partition");
        return err->status = QDQ_E_BAD_GRAPH;
    }

    /* Compile once: weights are packed and primitives made here, for these shapes and layouts. */
    TRY(qdq_engine_create(NULL, &o->engine, err));
    TRY(qdq_partition_compile(qdq_partition_list_get(o->list, 0), o->engine, &t[SRC_U8], 1, &t[DST_U8], 1, &o->compiled,
                              err));
    printf("compiled: %s\n", qdq_compiled_summary(o->compiled));

    /* Execute as often as wanted, from as many threads as wanted. The weights are no argument: the graph holds them. */
    const qdq_tensor in = {t[SRC_U8], src}, out = {t[DST_U8], dst};
    return qdq_compiled_execute(o->compiled, &in, 1, &out, 1, err);
}

int main(void) {
    uint8_t src[M * K], dst[M * N] = {0};
    int8_t weights[K * N];
    for (int i = 0; i < M * K; i++)
        src[i] = (uint8_t)((i * 37 + 11) % 256);
    for (int i = 0; i < K * N; i++)
        weights[i] = (int8_t)((i * 53 + 7) % 255 - 127);

    objects o = {0};
    qdq_error err = {0};
    const qdq_status status = run(&o, src, weights, dst, &err);
    int wrong = 0;
    if (status != QDQ_OK) {
        fprintf(stderr, "%s: %s\n", qdq_status_name(status), err.text);
    } else {
        for (int i = 0; i < M * N; i++)
            printf("%4u%s", dst[i], i % N == N - 1 ? "\n" : "");
        wrong = count_wrong(src, weights, dst);
        printf("%d of %d values as expected\n", M * N - wrong, M * N);
    }
    /* Any order is right: each object keeps alive what it needs. NULL is fine. */
    qdq_compiled_destroy(&o.compiled);
    qdq_engine_destroy(&o.engine);
    qdq_partition_list_destroy(&o.list);
    qdq_graph_destroy(&o.graph);
    return status == QDQ_OK && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
