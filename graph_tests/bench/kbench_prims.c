/* Pooling of floats, resampling and reductions as primitives: made by the request that a recipe makes, run as the step of a plan. */
#include "bench_peer_lines.h"
#include "kbench.h"
#include "native/native.h"
#include "runtime/plan.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BUFS = 8 };

typedef enum what { POOL, RESIZE, REDUCE } what;

typedef struct prim_case {
    what what;
    qdqi_dnnl_alg alg;
    bench_reduction reduction;
    qdqi_dnnl_pool pool;
    qdqi_dnnl_md src, dst;
    void *in, *out;
    qdq_engine *engine;
    qdqi_plan *plan;
} prim_case;

static void close(prim_case *c) {
    qdqi_plan_destroy(&c->plan);
    qdq_engine_destroy(&c->engine);
}

static qdq_status make(const prim_case *c, qdqi_dnnl_prim **out) {
    switch (c->what) {
    case POOL: return qdqi_native_pooling(&c->pool, &c->src, &c->dst, NULL, out, NULL);
    case RESIZE: return qdqi_native_resampling(c->alg, &c->src, &c->dst, NULL, out, NULL);
    case REDUCE: return qdqi_native_reduction(c->alg, &c->src, &c->dst, NULL, out, NULL);
    }
    return QDQ_E_INTERNAL;
}

static qdq_status build(prim_case *c, int n_threads) {
    const qdq_engine_options options = {.struct_bytes = sizeof options, .n_threads = n_threads};
    qdqi_dnnl_prim *prim = NULL;
    qdqi_buf bufs[MAX_BUFS];
    qdq_status st = qdq_engine_create(&options, &c->engine, NULL);
    if (st == QDQ_OK) st = make(c, &prim);
    if (st == QDQ_OK) st = qdqi_plan_create(c->engine, &c->plan, NULL);
    const uint32_t n = st == QDQ_OK ? qdqi_dnnl_prim_n_args(prim) : 0;
    if (n > MAX_BUFS) st = QDQ_E_INTERNAL;
    for (uint32_t i = 0; i < n && st == QDQ_OK; i++) {
        const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
        const size_t bytes = qdqi_dnnl_prim_arg_bytes(prim, arg);
        st = arg == QDQI_DNNL_SCRATCH ? qdqi_plan_temp(c->plan, bytes, &bufs[i], NULL)
             : arg == QDQI_DNNL_DST   ? qdqi_plan_output(c->plan, 0, bytes, &bufs[i], NULL)
                                      : qdqi_plan_input(c->plan, 0, bytes, &bufs[i], NULL);
    }
    if (st != QDQ_OK) {
        qdqi_dnnl_prim_destroy(prim);
        return st;
    }
    st = qdqi_dnnl_step(c->plan, prim, bufs, n, 0, NULL);
    return st == QDQ_OK ? qdqi_plan_finish(c->plan, NULL) : st;
}

static qk_isa prepare(void *arg, int n_threads) {
    prim_case *c = arg;
    close(c);
    if (build(c, n_threads) != QDQ_OK) close(c);
    qk_isa level = QK_ISA_ref;
    if (qk_isa_has(QK_ISA_avx2)) level = QK_ISA_avx2;
    if (qk_isa_has(QK_ISA_avx512)) level = QK_ISA_avx512;
    return level;
}

static void run(void *arg, int part, int n_parts) {
    const prim_case *c = arg;
    const void *in = c->in;
    void *out = c->out;
    (void)n_parts;
    if (part == 0 && c->plan != NULL && qdqi_plan_execute(c->plan, &in, &out, NULL, NULL) != QDQ_OK)
        memset(c->out, 0, 1);
}

static bench_tensor tensor(const qdqi_dnnl_md *md, void *data) {
    bench_tensor t = {.data = data, .dtype = md->dtype, .ndims = md->ndims};
    memcpy(t.dims, md->dims, sizeof t.dims);
    memcpy(t.strides, md->strides, sizeof t.strides);
    return t;
}

static bench_peer *peer(void *arg) {
    const prim_case *c = arg;
    const bench_tensor s = tensor(&c->src, c->in), d = tensor(&c->dst, c->out);
    switch (c->what) {
    case POOL:
        return bench_peer_pool(&s, &d, c->alg == QDQI_DNNL_POOL_MAX, c->pool.kernel[0], c->pool.strides[0],
                               c->pool.pads_begin[0]);
    case RESIZE: return bench_peer_resampling(c->alg == QDQI_DNNL_RESIZE_LINEAR, &s, &d);
    case REDUCE: return bench_peer_reduction(c->reduction, &s, &d);
    }
    return NULL;
}

static size_t bytes_of(const qdqi_dnnl_md *md) {
    size_t n = qdq_dtype_bits(md->dtype) / 8;
    for (int32_t i = 0; i < md->ndims; i++)
        n *= (size_t)md->dims[i];
    return n;
}

static void measure(kbench *b, const char *name, prim_case *c) {
    const size_t in = bytes_of(&c->src), out = bytes_of(&c->dst);
    if (!kbench_wants(b, name)) return;
    c->in = c->src.dtype == QDQ_DTYPE_F32 ? (void *)kbench_floats(b, in / 4) : kbench_buffer(b, in);
    c->out = kbench_buffer(b, out);
    if (c->src.dtype == QDQ_DTYPE_BF16) /* the upper halves of floats */
        for (size_t i = 0; i < in / 2; i++)
            ((uint16_t *)c->in)[i] = (uint16_t)(0x3f80 + ((uint16_t *)c->in)[i] % 256);
    if (build(c, 1) != QDQ_OK) {
        fprintf(stderr, "qdq-kbench: %s is refused\n", name);
        close(c);
        return;
    }
    static const char *const kernels[] = {[POOL] = "poolf", [RESIZE] = "resize", [REDUCE] = "reduce"};
    const kbench_case kase = {.kernel = kernels[c->what],
                              .name = name,
                              .read_bytes = in,
                              .write_bytes = out,
                              .max_parts = 1,
                              .prepare = prepare,
                              .run = run,
                              .peer = peer,
                              .arg = c};
    kbench_measure(b, &kase);
    close(c);
}

/* Channels last or plain. */
static qdqi_dnnl_md image(qdq_dtype dtype, int64_t n, int64_t c, int64_t h, int64_t w, bool last) {
    return last ? (qdqi_dnnl_md){.ndims = 4, .dims = {n, c, h, w}, .strides = {h * w * c, 1, w * c, c}, .dtype = dtype}
                : (qdqi_dnnl_md){.ndims = 4, .dims = {n, c, h, w}, .strides = {c * h * w, h * w, w, 1}, .dtype = dtype};
}

static void measure_pool(kbench *b, const char *window, bool is_max, int64_t k, int64_t step, int64_t pad, int64_t c,
                         qdq_dtype dtype) {
    const int64_t h = 56, kernel = k ? k : h, oh = (h + 2 * pad - kernel) / step + 1;
    char name[96];
    prim_case y = {.what = POOL, .alg = is_max ? QDQI_DNNL_POOL_MAX : QDQI_DNNL_POOL_AVG_EXCLUDE_PAD};
    y.pool = (qdqi_dnnl_pool){.alg = y.alg, .n_spatial = 2};
    for (int i = 0; i < 2; i++) {
        y.pool.kernel[i] = kernel;
        y.pool.strides[i] = step;
        y.pool.dilations[i] = 1;
        y.pool.pads_begin[i] = y.pool.pads_end[i] = pad;
    }
    y.src = image(dtype, 1, c, h, h, true);
    y.dst = image(dtype, 1, c, oh, oh, true);
    snprintf(name, sizeof name, "%s %s nhwc 1x%dx56x56", window, qdq_dtype_name(dtype), (int)c);
    measure(b, name, &y);
}

static void measure_resize(kbench *b, qdqi_dnnl_alg alg, qdq_dtype dtype, int64_t c, int64_t from, int64_t to,
                           bool last) {
    char name[96];
    prim_case y = {.what = RESIZE, .alg = alg};
    y.src = image(dtype, 1, c, from, from, last);
    y.dst = image(dtype, 1, c, to, to, last);
    snprintf(name, sizeof name, "resize %s %s %s 1x%dx%d^2 to %d^2",
             alg == QDQI_DNNL_RESIZE_LINEAR ? "linear" : "nearest", qdq_dtype_name(dtype), last ? "nhwc" : "nchw",
             (int)c, (int)from, (int)to);
    measure(b, name, &y);
}

static const struct reduction {
    const char *name;
    qdqi_dnnl_alg alg;
    bench_reduction peer;
} reductions[] = {{"sum", QDQI_DNNL_RED_SUM, BENCH_SUM},   {"mean", QDQI_DNNL_RED_MEAN, BENCH_MEAN},
                  {"max", QDQI_DNNL_RED_MAX, BENCH_MAX},   {"min", QDQI_DNNL_RED_MIN, BENCH_MIN},
                  {"prod", QDQI_DNNL_RED_MUL, BENCH_PROD}, {"l1", QDQI_DNNL_RED_L1, BENCH_L1},
                  {"l2", QDQI_DNNL_RED_L2, BENCH_L2}};

/* Of a x b x c: the dims of 1 in `to` are reduced. */
static void measure_reduce(kbench *b, const struct reduction *r, const char *over, qdq_dtype dtype, const int64_t *dims,
                           const int64_t *to) {
    char name[96];
    prim_case y = {.what = REDUCE, .alg = r->alg, .reduction = r->peer};
    y.src = (qdqi_dnnl_md){.ndims = 3, .dtype = dtype};
    y.dst = (qdqi_dnnl_md){.ndims = 3, .dtype = QDQ_DTYPE_F32};
    int64_t in = 1, out = 1;
    for (int d = 2; d >= 0; d--) {
        y.src.dims[d] = dims[d];
        y.dst.dims[d] = to[d];
        y.src.strides[d] = in;
        y.dst.strides[d] = out;
        in *= dims[d];
        out *= to[d];
    }
    snprintf(name, sizeof name, "reduce %s %s %s of %dx%dx%d", r->name, qdq_dtype_name(dtype), over, (int)dims[0],
             (int)dims[1], (int)dims[2]);
    measure(b, name, &y);
}

void kbench_prims(kbench *b) {
    const qdq_dtype f32 = QDQ_DTYPE_F32, bf16 = QDQ_DTYPE_BF16, u8 = QDQ_DTYPE_U8;
    for (int i = 0; i < 2; i++) {
        const qdq_dtype d = i ? bf16 : f32;
        measure_pool(b, "maxpool 2x2s2", true, 2, 2, 0, 64, d);
        measure_pool(b, "avgpool 2x2s2", false, 2, 2, 0, 64, d);
        measure_pool(b, "maxpool 3x3s2p1", true, 3, 2, 1, 64, d);
        measure_pool(b, "avgpool 3x3s1p1", false, 3, 1, 1, 64, d);
        measure_pool(b, "maxpool 3x3s1p1", true, 3, 1, 1, 64, d);
        measure_pool(b, "maxpool 5x5s1p2", true, 5, 1, 2, 64, d);
        measure_pool(b, "avgpool 7x7s1", false, 7, 1, 0, 64, d);
        measure_pool(b, "global avgpool", false, 0, 1, 0, 64, d);
        measure_pool(b, "avgpool 3x3s1p1", false, 3, 1, 1, 24, d);
        measure_pool(b, "maxpool 3x3s2p1", true, 3, 2, 1, 3, d);
    }
    for (int i = 0; i < 6; i++) {
        const qdq_dtype d = i / 2 == 0 ? f32 : i / 2 == 1 ? bf16 : u8;
        const qdqi_dnnl_alg alg = i % 2 ? QDQI_DNNL_RESIZE_NEAREST : QDQI_DNNL_RESIZE_LINEAR;
        measure_resize(b, alg, d, 64, 14, 28, true);
        measure_resize(b, alg, d, 64, 14, 28, false);
        measure_resize(b, alg, d, 256, 28, 56, true);
        measure_resize(b, alg, d, 64, 56, 40, true);
        measure_resize(b, alg, d, 3, 112, 224, true);
        measure_resize(b, alg, d, 3, 112, 224, false);
    }
    static const int64_t dims[3] = {8, 64, 784}, last[3] = {8, 64, 1}, middle[3] = {8, 1, 784}, all[3] = {1, 1, 1};
    static const int64_t rows[3] = {1, 128, 768}, of_rows[3] = {1, 128, 1}, of_cols[3] = {1, 1, 768};
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        measure_reduce(b, &reductions[i], "rows", f32, dims, last);
        measure_reduce(b, &reductions[i], "columns", f32, dims, middle);
        measure_reduce(b, &reductions[i], "all", f32, dims, all);
        measure_reduce(b, &reductions[i], "rows", f32, rows, of_rows);
        measure_reduce(b, &reductions[i], "columns", f32, rows, of_cols);
        measure_reduce(b, &reductions[i], "rows", bf16, dims, last);
        measure_reduce(b, &reductions[i], "columns", bf16, dims, middle);
        measure_reduce(b, &reductions[i], "rows", u8, dims, last);
        measure_reduce(b, &reductions[i], "columns", u8, dims, middle);
    }
}
