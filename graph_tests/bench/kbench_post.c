/* What products and convolutions do with their sums: a matrix of accumulators to the destination's elements. */
#include "kbench_floor_cols.h"
#include "kernels/post/post.h"

#include <stdio.h>

enum { TILE_COLS = 256, GRAIN = 16 * 1024 };

typedef struct post_case {
    qk_post post;
    qk_post_args args;
    qk_post_fn *fn;
    char *acc;
    size_t rows, cols;
    kbench_run_fn *floor;
} post_case;

static qk_isa prepare(void *arg, int n_threads) {
    post_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_post_choose(&c->post, &isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const post_case *c = arg;
    size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);
    for (size_t col = 0; n && col < c->cols; col += TILE_COLS) {
        const size_t cols = c->cols - col < TILE_COLS ? c->cols - col : TILE_COLS;
        c->fn(&c->post, &c->args, c->acc + 4 * (first * c->cols + col), c->cols, first, n, col, cols);
    }
}

#define FLOOR(name, type, out, factor)                                                                                 \
    static void name(void *arg, int part, int n_parts) {                                                               \
        const post_case *c = arg;                                                                                      \
        size_t n, first = kbench_part(c->rows, 1, part, n_parts, &n);                                                  \
        for (size_t r = first; r < first + n; r++)                                                                     \
            kbench_col_floors_here()->name((const type *)(const void *)c->acc + r * c->cols,                           \
                                           (out *)c->args.dst + r * c->cols, c->cols, factor, c->args.bias);           \
    }
FLOOR(finish_s8, int32_t, int8_t, c->args.scale)
FLOOR(finish_f32, int32_t, float, c->args.scale)
FLOOR(round_s8, float, int8_t, 33.0f)

/* A reorder is the same work where nothing is added. */
static bench_peer *peer(void *arg) {
    const post_case *c = arg;
    if (c->post.bias != QDQ_DTYPE_UNDEF || c->post.n_steps != 0) return NULL;
    const int64_t rows = (int64_t)c->rows, cols = (int64_t)c->cols;
    bench_tensor s = {.data = c->acc, .dtype = c->post.acc, .ndims = 2, .dims = {rows, cols}, .strides = {cols, 1}};
    bench_tensor d = s;
    if (c->post.scale == QK_POST_SCALE_COL) s.scales = (void *)(uintptr_t)c->args.scale, s.scale_mask = 2;
    d.data = c->args.dst;
    d.dtype = c->post.dst;
    if (c->post.dst_quantized) d.scale = c->args.dst_scale;
    return bench_peer_reorder(&s, &d);
}

static void measure(kbench *b, const char *what, qk_post post, size_t rows, size_t cols, kbench_run_fn *floor) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s %zux%zu", what, qdq_dtype_name(post.acc), qdq_dtype_name(post.dst), rows,
             cols);
    if (!kbench_wants(b, name)) return;
    const size_t n = rows * cols, dst_bytes = qdq_dtype_bits(post.dst) / 8 * n;
    post_case c = {.post = post, .rows = rows, .cols = cols};
    c.acc = post.acc == QDQ_DTYPE_F32 ? (char *)kbench_floats(b, n) : kbench_buffer(b, 4 * n);
    int32_t *sums = (int32_t *)(void *)c.acc; /* of some thousand products */
    for (size_t i = 0; post.acc == QDQ_DTYPE_S32 && i < n; i++)
        sums[i] >>= 12;
    float *scale = kbench_floats(b, cols);
    for (size_t i = 0; i < cols; i++)
        scale[i] = 1e-4f * (scale[i] + 2.0f);
    c.args = (qk_post_args){.scale_common = 1.0f,
                            .scale = scale,
                            .bias = kbench_floats(b, cols),
                            .dst_scale = 0.03f,
                            .dst = kbench_buffer(b, dst_bytes),
                            .dst_stride = (ptrdiff_t)cols};
    const kbench_case k = {.name = name,
                           .read_bytes = 4 * n,
                           .write_bytes = dst_bytes,
                           .max_parts = kbench_worth(n, GRAIN),
                           .prepare = prepare,
                           .run = run,
                           .floor = kbench_col_floors_here() ? floor : NULL,
                           .peer = peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_post(kbench *b) {
    const qk_post scaled = {
        .acc = QDQ_DTYPE_S32, .dst = QDQ_DTYPE_F32, .scale = QK_POST_SCALE_COL, .bias = QDQ_DTYPE_F32};
    const qk_post floats = {.acc = QDQ_DTYPE_F32, .dst = QDQ_DTYPE_F32, .bias = QDQ_DTYPE_F32};
    static const size_t shapes[][2] = {{64, 768}, {196, 256}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t rows = shapes[i][0], cols = shapes[i][1];
        qk_post p = scaled;
        p.bias = QDQ_DTYPE_UNDEF;
        measure(b, "scales", p, rows, cols, NULL);
        p.dst = QDQ_DTYPE_S8;
        p.dst_quantized = true;
        measure(b, "scales, quantize", p, rows, cols, NULL);
        p = scaled;
        measure(b, "scales, bias", p, rows, cols, finish_f32);
        p.dst = QDQ_DTYPE_BF16;
        measure(b, "scales, bias", p, rows, cols, NULL);
        p.dst = QDQ_DTYPE_S8;
        p.dst_quantized = true;
        p.n_steps = 1;
        p.steps[0] = (qk_post_step){.op = QK_POST_RELU};
        measure(b, "scales, bias, relu, quantize", p, rows, cols, finish_s8);
        p = floats;
        p.dst = QDQ_DTYPE_S8;
        p.dst_quantized = true;
        p.n_steps = 1;
        p.steps[0] = (qk_post_step){.op = QK_POST_RELU};
        measure(b, "bias, relu, quantize", p, rows, cols, round_s8);
        p = floats;
        p.n_steps = 1;
        p.steps[0] = (qk_post_step){.op = QK_POST_GELU_TANH};
        measure(b, "bias, gelu", p, rows, cols, NULL);
    }
}
