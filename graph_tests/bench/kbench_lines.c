/* Softmax and sums over lines, as the native primitives call them. */
#include "bench_peer_lines.h"
#include "kbench.h"
#include "kbench_floor_lines.h"
#include "kernels/reduce/reduce.h"
#include "kernels/simd/scalar.h"
#include "kernels/softmax/softmax.h"

#include <math.h>
#include <stdio.h>

enum { COL_UNIT = 64 }; /* columns that stay together */

typedef struct lines_case {
    qk_softmax softmax;
    const qk_softmax_fns *softmax_fns;
    qk_reduce reduce;
    const qk_reduce_fns *reduce_fns;
    qdq_dtype src_type, dst_type;
    char *src, *dst;
    size_t n_rows, n;
    bool is_sum;
    bool cols; /* lines beside each other: n_rows columns of n */
} lines_case;

static size_t bytes_of(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

static qk_isa prepare(void *arg, int n_threads) {
    lines_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->reduce_fns = qk_reduce_choose(&c->reduce, &isa);
    if (!c->is_sum) c->softmax_fns = qk_softmax_choose(&c->softmax, &isa);
    return isa;
}

static void run_softmax(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    size_t n, first = kbench_part(c->n_rows, c->cols ? COL_UNIT : 1, part, n_parts, &n);
    const size_t at = c->cols ? first : first * c->n;
    const char *x = c->src + at * bytes_of(c->src_type);
    char *y = c->dst + at * bytes_of(c->dst_type);
    if (n == 0) return;
    if (c->cols)
        c->softmax_fns->cols(&c->softmax, x, y, c->n, c->n_rows, n);
    else
        c->softmax_fns->rows(&c->softmax, x, y, n, c->n);
}

static void floor_softmax(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    const kbench_lines_floors *f = kbench_lines_floors_here();
    size_t n, first = kbench_part(c->n_rows, 1, part, n_parts, &n);
    const void *x = c->src + first * c->n * bytes_of(c->src_type);
    void *y = c->dst + first * c->n * bytes_of(c->dst_type);
    if (c->dst_type == QDQ_DTYPE_F32)
        f->softmax_f32(x, y, n, c->n);
    else if (c->src_type == QDQ_DTYPE_F32)
        f->softmax_f32_u8(x, y, n, c->n);
    else
        f->softmax_s8_u8(x, y, n, c->n, c->softmax.src_scale);
}

static bool has_floor(qdq_dtype src, qdq_dtype dst, size_t n, int how) {
    const bool f32 = src == QDQ_DTYPE_F32 && (dst == QDQ_DTYPE_F32 || (dst == QDQ_DTYPE_U8 && n <= 4096));
    return kbench_lines_floors_here() != NULL && how == 0 && n % 64 == 0 &&
           (f32 || (src == QDQ_DTYPE_S8 && dst == QDQ_DTYPE_U8));
}

static void run_sum(void *arg, int part, int n_parts) {
    const lines_case *c = arg;
    size_t n, first = kbench_part(c->n_rows, c->cols ? COL_UNIT : 1, part, n_parts, &n);
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

/* oneDNN has no source of integers with a scale here: its time is that without one. */
static bench_peer *softmax_peer(void *arg) {
    const lines_case *c = arg;
    const bool x8 = bytes_of(c->dst_type) == 1;
    const bench_tensor s = tensor(c, c->src, c->src_type, 0.0f);
    const bench_tensor d = tensor(c, c->dst, c->dst_type, x8 ? 1.0f / c->softmax.dst_factor : 0.0f);
    return bench_peer_softmax(&s, &d, c->cols ? 0 : 1, c->softmax.is_log);
}
static bench_peer *sum_peer(void *arg) {
    const lines_case *c = arg;
    const bench_tensor s = tensor(c, c->src, c->src_type, 0.0f);
    bench_tensor d = tensor(c, c->dst, c->dst_type, 0.0f);
    d.dims[c->cols ? 0 : 1] = 1;
    if (!c->cols) d.strides[0] = 1;
    return bench_peer_sum(&s, &d);
}

enum { ROWS = 0, COLS = 1, LOG = 2, MASKED = 4, SUM = 8 }; /* how */

typedef struct lines_row {
    const char *what;
    qdq_dtype src, dst;
    const char *size;
    size_t n_rows, n;
    int how;
} lines_row;

static void measure(kbench *b, const lines_row *row) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s %s", row->what, qdq_dtype_name(row->src), qdq_dtype_name(row->dst),
             row->size);
    if (!kbench_wants(b, name)) return;
    const bool is_sum = row->how & SUM;
    const size_t n_src = row->n_rows * row->n, n_dst = is_sum ? row->n_rows : n_src;
    lines_case c = {.src_type = row->src, .dst_type = row->dst, .n_rows = row->n_rows, .n = row->n};
    c.cols = row->how & COLS;
    c.is_sum = is_sum;
    c.src = kbench_typed(b, row->src, n_src);
    for (size_t i = 0; row->how & MASKED && i < n_src; i++) /* a causal mask */
        if (i % row->n > i / row->n % row->n) qks_store(row->src, c.src, i, -INFINITY);
    c.dst = kbench_buffer(b, n_dst * bytes_of(row->dst));
    c.softmax = (qk_softmax){.src = row->src,
                             .dst = row->dst,
                             .is_log = row->how & LOG,
                             .src_scale = 0.04f,
                             .dst_factor = row->how & LOG ? 16.0f : 255.0f};
    c.reduce = (qk_reduce){.op = QK_REDUCE_SUM, .src = row->src};
    const size_t worth = kbench_worth(n_src, is_sum ? QK_REDUCE_GRAIN : QK_SOFTMAX_GRAIN),
                 units = c.cols ? (c.n_rows + COL_UNIT - 1) / COL_UNIT : c.n_rows;
    const kbench_case k = {.kernel = is_sum ? "reduce" : "softmax",
                           .name = name,
                           .read_bytes = n_src * bytes_of(row->src),
                           .write_bytes = n_dst * bytes_of(row->dst),
                           .max_parts = worth < units ? worth : units,
                           .prepare = prepare,
                           .run = is_sum ? run_sum : run_softmax,
                           .floor = has_floor(row->src, row->dst, row->n, row->how) ? floor_softmax : NULL,
                           .peer = is_sum ? sum_peer : softmax_peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

#define TYPES(src, dst) QDQ_DTYPE_##src, QDQ_DTYPE_##dst

static const lines_row lines_rows[] = {
    {"softmax", TYPES(F32, F32), "6144x384", 6144, 384, ROWS},
    {"softmax", TYPES(F32, U8), "6144x384", 6144, 384, ROWS},
    {"softmax", TYPES(S8, U8), "6144x384", 6144, 384, ROWS},
    {"softmax", TYPES(F32, F32), "64x16", 64, 16, ROWS},
    {"softmax", TYPES(S8, U8), "64x16", 64, 16, ROWS},
    {"softmax", TYPES(F32, F32), "8192x16", 8192, 16, ROWS},
    {"softmax", TYPES(F32, F32), "8192x49", 8192, 49, ROWS},
    {"softmax", TYPES(S8, U8), "8192x49", 8192, 49, ROWS},
    {"softmax", TYPES(F32, F32), "12x384x384", 4608, 384, ROWS},
    {"softmax masked", TYPES(F32, F32), "12x384x384", 4608, 384, MASKED},
    {"softmax masked", TYPES(BF16, BF16), "12x384x384", 4608, 384, MASKED},
    {"softmax", TYPES(BF16, BF16), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(F16, F16), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(BF16, U8), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(F32, BF16), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(U8, U8), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(S8, F32), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(S8, BF16), "12x384x384", 4608, 384, ROWS},
    {"softmax", TYPES(F32, F32), "32x1x2048", 32, 2048, ROWS},
    {"softmax", TYPES(F32, U8), "32x1x2048", 32, 2048, ROWS},
    {"softmax", TYPES(BF16, BF16), "32x1x2048", 32, 2048, ROWS},
    {"softmax", TYPES(S8, U8), "32x1x2048", 32, 2048, ROWS},
    {"softmax", TYPES(F32, F32), "1x1000", 1, 1000, ROWS},
    {"softmax", TYPES(S8, S8), "1x1000", 1, 1000, ROWS},
    {"softmax", TYPES(F32, F32), "16x16384", 16, 16384, ROWS},
    {"softmax", TYPES(S8, U8), "16x16384", 16, 16384, ROWS},
    {"logsoftmax", TYPES(F32, F32), "384x384", 384, 384, LOG},
    {"logsoftmax", TYPES(F32, F32), "1x32000", 1, 32000, LOG},
    {"logsoftmax", TYPES(S8, F32), "384x384", 384, 384, LOG},
    {"logsoftmax", TYPES(S8, S8), "384x384", 384, 384, LOG},
    {"softmax", TYPES(F32, F32), "columns 1000 of 100", 1000, 100, COLS},
    {"softmax", TYPES(BF16, BF16), "columns 1000 of 100", 1000, 100, COLS},
    {"softmax", TYPES(S8, U8), "columns 1000 of 100", 1000, 100, COLS},
    {"softmax", TYPES(F32, F32), "columns 3136 of 21", 3136, 21, COLS},
    {"softmax", TYPES(F32, F32), "columns 48 of 4096", 48, 4096, COLS},
    {"sum", TYPES(F32, F32), "512 rows of 3136", 512, 3136, SUM},
    {"sum", TYPES(F32, F32), "columns 512 of 3136", 512, 3136, SUM | COLS},
    {"sum", TYPES(U8, F32), "512 rows of 3136", 512, 3136, SUM},
    {"sum", TYPES(U8, F32), "columns 512 of 3136", 512, 3136, SUM | COLS},
};

void kbench_lines(kbench *b) {
    for (size_t i = 0; i < sizeof lines_rows / sizeof *lines_rows; i++)
        measure(b, &lines_rows[i]);
}
