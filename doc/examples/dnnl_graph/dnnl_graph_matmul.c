/* A quantized product in oneDNN Graph's C interface. Nothing here knows of libqdq: linked with -lqdq_dnnl_graph ahead of
 * -ldnnl, or started with LD_PRELOAD=libqdq_dnnl_graph.so, the same program runs on it.
 *
 *     u8 src -> Dequantize -.
 *                            MatMul -> ReLU -> Quantize -> u8 dst
 *     s8 weights -> Deq. ---'
 */
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_graph.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 3, K = 32, N = 8 };
enum { SRC, WEIGHTS, SRC_F32, WEIGHTS_F32, PRODUCT, RELU, DST, N_TENSORS };

static const float src_scale = 0.5f, weights_scale = 0.25f, dst_scale = 4.0f;
static const int64_t src_zp = 10, weights_zp = 0, dst_zp = 5;

static void check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success) return;
    fprintf(stderr, "%s: status %d\n", what, (int)status);
    exit(1);
}

static dnnl_graph_logical_tensor_t tensor(size_t id, dnnl_data_type_t dtype, int64_t rows, int64_t cols,
                                          dnnl_graph_tensor_property_t property) {
    const dnnl_dims_t dims = {rows, cols};
    dnnl_graph_logical_tensor_t lt;
    check(dnnl_graph_logical_tensor_init_with_dims(&lt, id, dtype, 2, dims, dnnl_graph_layout_type_strided, property),
          "logical tensor");
    return lt;
}

static dnnl_graph_op_t op(size_t id, dnnl_graph_op_kind_t kind, const char *name,
                          const dnnl_graph_logical_tensor_t *in0, const dnnl_graph_logical_tensor_t *in1,
                          const dnnl_graph_logical_tensor_t *out) {
    dnnl_graph_op_t made;
    check(dnnl_graph_op_create(&made, id, kind, name), name);
    check(dnnl_graph_op_add_input(made, in0), name);
    if (in1 != NULL) check(dnnl_graph_op_add_input(made, in1), name);
    check(dnnl_graph_op_add_output(made, out), name);
    return made;
}

static void quantization(dnnl_graph_op_t of, float scale, int64_t zp) {
    check(dnnl_graph_op_set_attr_f32(of, dnnl_graph_op_attr_scales, &scale, 1), "scales");
    check(dnnl_graph_op_set_attr_s64(of, dnnl_graph_op_attr_zps, &zp, 1), "zps");
}

static void build(dnnl_graph_graph_t graph, const dnnl_graph_logical_tensor_t *lt) {
    dnnl_graph_op_t ops[] = {op(0, dnnl_graph_op_dequantize, "dq_src", &lt[SRC], NULL, &lt[SRC_F32]),
                             op(1, dnnl_graph_op_dequantize, "dq_weights", &lt[WEIGHTS], NULL, &lt[WEIGHTS_F32]),
                             op(2, dnnl_graph_op_matmul, "matmul", &lt[SRC_F32], &lt[WEIGHTS_F32], &lt[PRODUCT]),
                             op(3, dnnl_graph_op_relu, "relu", &lt[PRODUCT], NULL, &lt[RELU]),
                             op(4, dnnl_graph_op_quantize, "q_dst", &lt[RELU], NULL, &lt[DST])};
    quantization(ops[0], src_scale, src_zp);
    quantization(ops[1], weights_scale, weights_zp);
    quantization(ops[4], dst_scale, dst_zp);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        check(dnnl_graph_add_op(graph, ops[i]), "add op");
        check(dnnl_graph_op_destroy(ops[i]), "destroy op");
    }
    check(dnnl_graph_graph_finalize(graph), "finalize");
}

/* What the ops mean, one by one. */
static uint8_t expected(const uint8_t *src, const int8_t *weights, int m, int n) {
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum += (float)(src[m * K + k] - src_zp) * src_scale * (float)(weights[k * N + n] - weights_zp) * weights_scale;
    const float q = nearbyintf((sum > 0 ? sum : 0) / dst_scale + (float)dst_zp);
    return (uint8_t)(q > 255 ? 255 : q);
}

int main(void) {
    uint8_t src[M * K], dst[M * N] = {0};
    int8_t weights[K * N];
    for (int i = 0; i < M * K; i++)
        src[i] = (uint8_t)(i * 5 % 23);
    for (int i = 0; i < K * N; i++)
        weights[i] = (int8_t)(i * 3 % 17 - 8);

    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_graph_graph_t graph;
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
    check(dnnl_graph_graph_create(&graph, dnnl_cpu), "graph");

    dnnl_graph_logical_tensor_t lt[N_TENSORS];
    for (size_t i = 0; i < N_TENSORS; i++)
        lt[i] = tensor(i, dnnl_f32,
                       i == SRC_F32       ? M
                       : i == WEIGHTS_F32 ? K
                                          : M,
                       i == SRC_F32 ? K : N, dnnl_graph_tensor_property_undef);
    lt[SRC] = tensor(SRC, dnnl_u8, M, K, dnnl_graph_tensor_property_undef);
    lt[WEIGHTS] = tensor(WEIGHTS, dnnl_s8, K, N, dnnl_graph_tensor_property_constant);
    lt[DST] = tensor(DST, dnnl_u8, M, N, dnnl_graph_tensor_property_undef);
    build(graph, lt);

    size_t n_partitions, n_ops;
    dnnl_graph_partition_t partition;
    check(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion), "filter");
    check(dnnl_graph_graph_get_partition_num(graph, &n_partitions), "number of partitions");
    if (n_partitions != 1) {
        fprintf(stderr, "%zu partitions, expected one\n", n_partitions);
        return 1;
    }
    check(dnnl_graph_graph_get_partitions(graph, 1, &partition), "partitions");
    check(dnnl_graph_partition_get_op_num(partition, &n_ops), "number of ops");
    printf("%zu ops in %zu partition\n", n_ops, n_partitions);

    dnnl_graph_compiled_partition_t compiled;
    const dnnl_graph_logical_tensor_t *inputs[] = {&lt[SRC], &lt[WEIGHTS]}, *outputs[] = {&lt[DST]};
    check(dnnl_graph_compiled_partition_create(&compiled, partition), "compiled partition");
    check(dnnl_graph_partition_compile(partition, compiled, 2, inputs, 1, outputs, engine), "compile");

    dnnl_graph_tensor_t t[3];
    check(dnnl_graph_tensor_create(&t[0], &lt[SRC], engine, src), "src");
    check(dnnl_graph_tensor_create(&t[1], &lt[WEIGHTS], engine, weights), "weights");
    check(dnnl_graph_tensor_create(&t[2], &lt[DST], engine, dst), "dst");
    const_dnnl_graph_tensor_t in[] = {t[0], t[1]}, out[] = {t[2]};
    check(dnnl_graph_compiled_partition_execute(compiled, stream, 2, in, 1, out), "execute");
    check(dnnl_stream_wait(stream), "wait");

    int n_wrong = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            printf("%d%c", dst[m * N + n], n + 1 < N ? ' ' : '\n');
            n_wrong += dst[m * N + n] != expected(src, weights, m, n);
        }
    printf("%d wrong\n", n_wrong);

    for (int i = 0; i < 3; i++)
        check(dnnl_graph_tensor_destroy(t[i]), "destroy tensor");
    check(dnnl_graph_compiled_partition_destroy(compiled), "destroy compiled partition");
    check(dnnl_graph_partition_destroy(partition), "destroy partition");
    check(dnnl_graph_graph_destroy(graph), "destroy graph");
    check(dnnl_stream_destroy(stream), "destroy stream");
    check(dnnl_engine_destroy(engine), "destroy engine");
    return n_wrong != 0;
}
