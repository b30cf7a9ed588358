/* Softmax, LayerNorm and sums over lines, as the native primitives call them. */
#include "bench_peer_lines.h"
#include "kbench.h"
#include "kernels/norm/norm.h"
#include "kernels/reduce/reduce.h"
#include "kernels/softmax/softmax.h"

#include <stdio.h>

enum { GRAIN_ELEMS = 8 * 1024 };

typedef struct lines_case {
    qk_softmax softmax;
    const qk_softmax_fns *softmax_fns;
    qk_norm norm;
    const qk_norm_fns *norm_fns;
    qk_reduce reduce;
    const qk_reduce_fns *reduce_fns;
    qdq_dtype src_type, dst_type;
    char *src, *dst;
    float *gamma, *beta;
    size_t n_rows, n;
    bool cols; /* lines beside each other: n_rows columns of n */
} lines_case;

static size_t bytes_of(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

static qk_isa prepare(void *arg, int n_threads) {
    lines_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->softmax_fns = qk_softmax_choose(&c->softmax, &isa);
    c->norm_fns = qk_norm_choose(&c->norm, &isa);
    c->reduce_fns = qk_reduce_choose(&c->reduce, &isa);
    return isa;
}

static void run_softmax(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    size_t n, first = kbench_part(c->n_rows, c->cols ? 64 : 1, part, n_parts, &n);
    const size_t at = c->cols ? first : first * c->n;
    const char *x = c->src + at * bytes_of(c->src_type);
    char *y = c->dst + at * bytes_of(c->dst_type);
    if (n == 0) return;
    if (c->cols)
        c->softmax_fns->cols(&c->softmax, x, y, c->n, c->n_rows, n);
    else
        c->softmax_fns->rows(&c->softmax, x, y, n, c->n);
}

static void run_norm(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    size_t n, first = kbench_part(c->n_rows, 1, part, n_parts, &n);
    if (n != 0)
        c->norm_fns->rows(&c->norm, c->src + first * c->n * bytes_of(c->src_type),
                          c->dst + first * c->n * bytes_of(c->dst_type), c->gamma, c->beta, NULL, NULL, n, c->n);
}

static void run_sum(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    size_t n, first = kbench_part(c->n_rows, c->cols ? 64 : 1, part, n_parts, &n);
    float *y = (float *)(void *)c->dst + first;
    if (!c->cols) {
        for (size_t r = 0; r < n; r++)
            y[r] = (float)c->reduce_fns->run(&c->reduce, c->src + (first + r) * c->n * bytes_of(c->src_type), c->n);
        return;
    }
    for (size_t at = 0; at < n; at += 512) {
        double acc[512] = {0};
        const size_t m = n - at < 512 ? n - at : 512;
        c->reduce_fns->cols(&c->reduce, c->src + (first + at) * bytes_of(c->src_type), c->n, m, c->n_rows, acc);
        for (size_t i = 0; i < m; i++)
            y[at + i] = (float)acc[i];
    }
}

static bench_tensor tensor(const lines_case *c, void *data, qdq_dtype dtype, float scale) {
    bench_tensor t = {.data = data, .dtype = dtype, .ndims = 2, .scale = scale};
    t.dims[0] = t.strides[0] = (int64_t)(c->cols ? c->n : c->n_rows);
    t.dims[1] = (int64_t)(c->cols ? c->n_rows : c->n);
    t.strides[0] = t.dims[1];
    t.strides[1] = 1;
    return t;
}

static bench_peer *softmax_peer(void *arg) {
    const lines_case *c = arg;
    const bench_tensor s = tensor(c, c->src, c->src_type, 0.0f);
    const bench_tensor d = tensor(c, c->dst, c->dst_type, c->dst_type == QDQ_DTYPE_U8 ? 1.0f / 255.0f : 0.0f);
    return bench_peer_softmax(&s, &d, c->cols ? 0 : 1);
}
static bench_peer *norm_peer(void *arg) {
    const lines_case *c = arg;
    const bench_tensor s = tensor(c, c->src, c->src_type, 0.0f);
    const bench_tensor d = tensor(c, c->dst, c->dst_type, c->dst_type == QDQ_DTYPE_S8 ? 0.03f : 0.0f);
    return bench_peer_layernorm(&s, &d, c->gamma, c->beta);
}
static bench_peer *sum_peer(void *arg) {
    const lines_case *c = arg;
    const bench_tensor s = tensor(c, c->src, c->src_type, 0.0f);
    bench_tensor d = tensor(c, c->dst, c->dst_type, 0.0f);
    d.dims[c->cols ? 0 : 1] = 1;
    if (!c->cols) d.strides[0] = 1;
    return bench_peer_sum(&s, &d);
}

static void measure(kbench *b, const char *what, const char *size, qdq_dtype src, qdq_dtype dst, size_t n_rows,
                    size_t n, bool cols, kbench_run_fn *run, bench_peer *(*peer)(void *)) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s %s", what, qdq_dtype_name(src), qdq_dtype_name(dst), size);
    if (!kbench_wants(b, name)) return;
    const size_t n_src = n_rows * n, n_dst = run == run_sum ? n_rows : n_src;
    lines_case c = {.src_type = src, .dst_type = dst, .n_rows = n_rows, .n = n, .cols = cols};
    c.src = src == QDQ_DTYPE_F32 ? (char *)kbench_floats(b, n_src) : kbench_buffer(b, n_src);
    c.dst = kbench_buffer(b, n_dst * bytes_of(dst));
    c.gamma = kbench_floats(b, n);
    c.beta = kbench_floats(b, n);
    c.softmax = (qk_softmax){.src = src, .dst = dst, .src_scale = 0.04f, .dst_factor = 255.0f};
    c.norm = (qk_norm){.src = src, .dst = dst, .epsilon = 1e-5f, .src_scale = 0.04f, .dst_factor = 33.0f};
    c.reduce = (qk_reduce){.op = QK_REDUCE_SUM, .src = src};
    const kbench_case k = {.name = name,
                           .read_bytes = n_src * bytes_of(src),
                           .write_bytes = n_dst * bytes_of(dst),
                           .max_parts = kbench_worth(n_src, GRAIN_ELEMS),
                           .prepare = prepare,
                           .run = run,
                           .peer = src == QDQ_DTYPE_F32 || run == run_sum ? peer : NULL,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_lines(kbench *b) {
    const qdq_dtype f32 = QDQ_DTYPE_F32, u8 = QDQ_DTYPE_U8, s8 = QDQ_DTYPE_S8;
    measure(b, "softmax", "6144x384", f32, f32, 6144, 384, false, run_softmax, softmax_peer);
    measure(b, "softmax", "6144x384", f32, u8, 6144, 384, false, run_softmax, softmax_peer);
    measure(b, "softmax", "6144x384", s8, u8, 6144, 384, false, run_softmax, softmax_peer);
    measure(b, "softmax", "64x16", f32, f32, 64, 16, false, run_softmax, softmax_peer);
    measure(b, "softmax", "columns 1000 of 100", f32, f32, 1000, 100, true, run_softmax, softmax_peer);
    measure(b, "layernorm", "1024x768", f32, f32, 1024, 768, false, run_norm, norm_peer);
    measure(b, "layernorm", "1024x768", f32, s8, 1024, 768, false, run_norm, norm_peer);
    measure(b, "layernorm", "1024x768", s8, s8, 1024, 768, false, run_norm, norm_peer);
    measure(b, "layernorm", "16x64", f32, f32, 16, 64, false, run_norm, norm_peer);
    measure(b, "sum", "512 rows of 3136", f32, f32, 512, 3136, false, run_sum, sum_peer);
    measure(b, "sum", "columns 512 of 3136", f32, f32, 512, 3136, true, run_sum, sum_peer);
    measure(b, "sum", "512 rows of 3136", u8, f32, 512, 3136, false, run_sum, sum_peer);
    measure(b, "sum", "columns 512 of 3136", u8, f32, 512, 3136, true, run_sum, sum_peer);
}
