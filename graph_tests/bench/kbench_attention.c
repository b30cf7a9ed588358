/* Products of batches whose weights are computed at run time, as attention has them: queries times keys, whose k are consecutive (nt)
 * or whose columns are (nn), and probabilities times values. Our primitive, with its own threads, in a plan of one step. */
#include "bench_peer_gemm.h"
#include "kbench.h"
#include "lower/request.h"
#include "runtime/plan.h"

#include <stdio.h>

enum { MAX_ARGS = 16 };

typedef struct attention {
    qdqi_dnnl_md src, weights, dst;
    void *src_data, *weights_data, *dst_data;
    float one;
    int32_t src_zp, dst_zp;
    qdq_engine *engine;
    qdqi_plan *plan;
    const void *inputs[MAX_ARGS];
    void *outputs[1];
} attention;

static void close(attention *a) {
    qdqi_plan_destroy(&a->plan);
    qdq_engine_destroy(&a->engine);
}

static void *data_of(attention *a, qdqi_dnnl_arg arg) {
    switch ((int)arg) {
    case QDQI_DNNL_SRC: return a->src_data;
    case QDQI_DNNL_WEIGHTS: return a->weights_data;
    case QDQI_DNNL_DST: return a->dst_data;
    case QDQI_DNNL_ZP_SRC: return &a->src_zp;
    case QDQI_DNNL_ZP_DST: return &a->dst_zp;
    default: return &a->one;
    }
}

static bool open_plan(attention *a, qdqi_dnnl_prim *prim) {
    qdqi_buf bufs[MAX_ARGS];
    const uint32_t n = qdqi_dnnl_prim_n_args(prim);
    uint32_t n_inputs = 0;
    bool ok = n <= MAX_ARGS && qdqi_plan_create(a->engine, &a->plan, NULL) == QDQ_OK;
    for (uint32_t i = 0; ok && i < n; i++) {
        const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
        const size_t bytes = qdqi_dnnl_prim_arg_bytes(prim, arg);
        if (arg == QDQI_DNNL_SCRATCH) {
            ok = qdqi_plan_temp(a->plan, bytes, &bufs[i], NULL) == QDQ_OK;
        } else if (arg == QDQI_DNNL_DST) {
            a->outputs[0] = a->dst_data;
            ok = qdqi_plan_output(a->plan, 0, bytes, &bufs[i], NULL) == QDQ_OK;
        } else {
            a->inputs[n_inputs] = data_of(a, arg);
            ok = qdqi_plan_input(a->plan, n_inputs++, bytes, &bufs[i], NULL) == QDQ_OK;
        }
    }
    if (!ok) {
        qdqi_dnnl_prim_destroy(prim);
        return false;
    }
    return qdqi_dnnl_step(a->plan, prim, bufs, n, 0, NULL) == QDQ_OK && qdqi_plan_finish(a->plan, NULL) == QDQ_OK;
}

static qk_isa prepare(void *arg, int n_threads) {
    attention *a = arg;
    close(a);
    qdqi_dnnl_attr attr = {0};
    if (a->src.dtype == QDQ_DTYPE_U8) attr.src.has_zp = true;
    if (a->dst.dtype == QDQ_DTYPE_U8) attr.dst.has_zp = attr.weights.has_scale = true;
    const qdqi_request request = {
        .kind = QDQI_MAKE_MATMUL, .src = &a->src, .second = &a->weights, .dst = &a->dst, .attr = &attr};
    const qdq_engine_options options = {.struct_bytes = sizeof options, .n_threads = n_threads};
    qdqi_dnnl_prim *prim = NULL;
    if (qdq_engine_create(&options, &a->engine, NULL) != QDQ_OK ||
        qdqi_request_native(&request, &prim, NULL) != QDQ_OK || !open_plan(a, prim))
        close(a);
    qk_isa level = QK_ISA_ref;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++)
        if (qk_isa_has((qk_isa)isa)) level = (qk_isa)isa;
    return level;
}

static void run(void *arg, int part, int n_parts) {
    const attention *a = arg;
    (void)n_parts;
    if (part == 0 && a->plan != NULL && qdqi_plan_execute(a->plan, a->inputs, a->outputs, NULL, NULL) != QDQ_OK)
        *(uint8_t *)a->dst_data = 0;
}

static bench_tensor tensor(const qdqi_dnnl_md *md, void *data, float scale, int32_t zp) {
    bench_tensor t = {.data = data, .dtype = md->dtype, .ndims = md->ndims, .scale = scale, .zp = zp};
    for (int32_t d = 0; d < md->ndims; d++) {
        t.dims[d] = md->dims[d];
        t.strides[d] = md->strides[d];
    }
    return t;
}

static bench_peer *peer(void *arg) {
    const attention *a = arg;
    const bool is_int8 = a->dst.dtype == QDQ_DTYPE_U8;
    const bench_tensor s = tensor(&a->src, a->src_data, a->src_zp ? 1.0f : 0.0f, a->src_zp),
                       w = tensor(&a->weights, a->weights_data, is_int8 ? a->one : 0.0f, 0),
                       d = tensor(&a->dst, a->dst_data, is_int8 ? 1.0f : 0.0f, a->dst_zp);
    return bench_peer_product(&s, &w, &d);
}

static void measure(kbench *b, qdq_dtype src, qdq_dtype weights, int64_t n_batch, int64_t m, int64_t k, int64_t n,
                    bool transposed) {
    char name[96];
    const bool is_int8 = qdq_dtype_bits(src) == 8;
    const qdq_dtype dst = is_int8 ? QDQ_DTYPE_U8 : src;
    snprintf(name, sizeof name, "%s%s%s %s %dx%dx%dx%d", qdq_dtype_name(src), qdq_dtype_name(weights),
             qdq_dtype_name(dst), transposed ? "nt" : "nn", (int)n_batch, (int)m, (int)k, (int)n);
    if (!kbench_wants(b, name)) return;
    attention a = {.src = {.ndims = 3, .dims = {n_batch, m, k}, .strides = {m * k, k, 1}, .dtype = src},
                   .weights = {.ndims = 3, .dims = {n_batch, k, n}, .strides = {k * n, n, 1}, .dtype = weights},
                   .dst = {.ndims = 3, .dims = {n_batch, m, n}, .strides = {m * n, n, 1}, .dtype = dst},
                   .one = is_int8 ? 0.001f : 1.0f};
    if (transposed) {
        a.weights.strides[1] = 1;
        a.weights.strides[2] = k;
    }
    if (src == QDQ_DTYPE_U8) a.src_zp = 3;
    if (is_int8) a.dst_zp = 5;
    const size_t elem = qdq_dtype_bits(src) / 8;
    const size_t sizes[] = {(size_t)(n_batch * m * k), (size_t)(n_batch * k * n), (size_t)(n_batch * m * n)};
    void **data[] = {&a.src_data, &a.weights_data, &a.dst_data};
    for (int i = 0; i < 3; i++) {
        *data[i] = src == QDQ_DTYPE_F32 ? (void *)kbench_floats(b, sizes[i]) : kbench_buffer(b, sizes[i] * elem);
        if (src != QDQ_DTYPE_BF16) continue;
        for (size_t j = 0; j < sizes[i]; j++) /* of the order of 1 */
            ((uint16_t *)*data[i])[j] = (uint16_t)((((uint16_t *)*data[i])[j] & 0x80ff) | 0x3f00);
    }
    const kbench_case kase = {.kernel = is_int8                ? "igemm x8"
                                        : src == QDQ_DTYPE_F32 ? "igemm f32"
                                                               : "igemm bf16",
                              .name = name,
                              .read_bytes = (sizes[0] + sizes[1]) * elem,
                              .write_bytes = sizes[2] * elem,
                              .products = is_int8 ? KBENCH_INT8 : KBENCH_FLOAT32,
                              .macs = (double)n_batch * (double)m * (double)k * (double)n,
                              .max_parts = 1,
                              .prepare = prepare,
                              .run = run,
                              .peer = peer,
                              .arg = &a};
    kbench_measure(b, &kase);
    close(&a);
}

void kbench_attention(kbench *b) {
    static const struct {
        int64_t n_batch, m, k, n;
        bool transposed;
    } shapes[] = {
        {12, 384, 64, 384, true}, {12, 384, 64, 384, false}, {12, 384, 384, 64, false}, {32, 128, 128, 64, false},
        {12, 128, 64, 128, true}, {12, 128, 128, 64, false}, {32, 1, 128, 512, true},   {32, 1, 512, 128, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t n = shapes[i].n_batch, m = shapes[i].m, k = shapes[i].k, cols = shapes[i].n;
        measure(b, QDQ_DTYPE_U8, QDQ_DTYPE_S8, n, m, k, cols, shapes[i].transposed);
        measure(b, QDQ_DTYPE_S8, QDQ_DTYPE_S8, n, m, k, cols, shapes[i].transposed);
        measure(b, QDQ_DTYPE_F32, QDQ_DTYPE_F32, n, m, k, cols, shapes[i].transposed);
        measure(b, QDQ_DTYPE_BF16, QDQ_DTYPE_BF16, n, m, k, cols, shapes[i].transposed);
    }
}
