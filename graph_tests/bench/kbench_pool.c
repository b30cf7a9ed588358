/* Pooling of bytes. */
#include "kbench_floor.h"
#include "kernels/pool/pool.h"

#include <stdio.h>
#include <string.h>

typedef struct pool_case {
    qk_pool pool;
    qk_pool_quant quant;
    uint8_t *src, *dst, *scratch;
    size_t scratch_bytes; /* of one part */
} pool_case;

static qk_isa prepare(void *arg, int n_threads) {
    pool_case *c = arg;
    (void)n_threads;
    if (!qk_pool_init(&c->pool) || !qk_pool_quant_init(&c->pool, 0.02f, 0, 0.02f, 0, true, &c->quant))
        return QK_ISA_ref;
    return qk_pool_isa(&c->pool);
}

static void run(void *arg, int part, int n_parts) {
    const pool_case *c = arg;
    size_t n, first = kbench_part(c->pool.n_tasks, 1, part, n_parts, &n);
    if (n) qk_pool_run(&c->pool, &c->quant, c->src, c->dst, first, n, c->scratch + (size_t)part * c->scratch_bytes);
}

/* 2x2, channels first. */
static void run_floor(void *arg, int part, int n_parts) {
    const pool_case *c = arg;
    const size_t w = (size_t)c->pool.in[2], ow = w / 2;
    size_t n, first = kbench_part((size_t)(c->pool.n * c->pool.c * c->pool.out[1]), 1, part, n_parts, &n);
    for (size_t r = first; r < first + n; r++)
        kbench_floors_of_host()->max_2x2_u8(c->src + 2 * r * w, c->src + (2 * r + 1) * w, c->dst + r * ow, ow);
}

static void strides_of(int64_t c, int64_t h, int64_t w, bool last, int64_t *out) {
    const int64_t plain[4] = {c * h * w, h * w, w, 1}, nxc[4] = {c * h * w, 1, w * c, c};
    memcpy(out, last ? nxc : plain, sizeof plain);
}

static bench_peer *peer(void *arg) {
    const pool_case *c = arg;
    const qk_pool *p = &c->pool;
    bench_tensor s = {.data = c->src, .dtype = p->src, .ndims = 4, .dims = {p->n, p->c, p->in[1], p->in[2]}};
    bench_tensor d = {.data = c->dst, .dtype = p->dst, .ndims = 4, .dims = {p->n, p->c, p->out[1], p->out[2]}};
    strides_of(p->c, p->in[1], p->in[2], p->channels_last, s.strides);
    strides_of(p->c, p->out[1], p->out[2], p->channels_last, d.strides);
    return bench_peer_pool(&s, &d, p->is_max, p->kernel[1], p->stride[1], p->pad_begin[1]);
}

typedef struct shape {
    const char *name;
    int64_t n, c, h, w;
} shape;

typedef struct window {
    const char *name;
    bool is_max;
    int64_t kernel, stride, pad; /* kernel 0: all */
} window;

static void measure(kbench *b, const shape *s, const window *win, bool last) {
    char name[96];
    snprintf(name, sizeof name, "%s u8 %s %s", win->name, last ? "nhwc" : "nchw", s->name);
    if (!kbench_wants(b, name)) return;
    const int64_t k = win->kernel ? win->kernel : s->h,
                  oh = win->kernel ? (s->h + 2 * win->pad - k) / win->stride + 1 : 1;
    const size_t in = (size_t)(s->n * s->c * s->h * s->w), out = (size_t)(s->n * s->c * oh * oh);
    pool_case c = {.pool = {.is_max = win->is_max,
                            .channels_last = last,
                            .src = QDQ_DTYPE_U8,
                            .dst = QDQ_DTYPE_U8,
                            .n = s->n,
                            .c = s->c,
                            .in = {1, s->h, s->w},
                            .out = {1, oh, oh},
                            .kernel = {1, k, k},
                            .stride = {1, win->stride, win->stride},
                            .dilation = {1, 1, 1},
                            .pad_begin = {0, win->pad, win->pad},
                            .pad_end = {0, win->pad, win->pad}},
                   .src = kbench_buffer(b, in),
                   .dst = kbench_buffer(b, out)};
    (void)prepare(&c, 1);
    c.scratch_bytes = (c.pool.scratch_bytes + 127) / 64 * 64;
    c.scratch = kbench_buffer(b, 64 * c.scratch_bytes);
    const bool has_floor = win->is_max && win->kernel == 2 && !last && kbench_floors_of_host();
    const size_t parts = kbench_worth((size_t)qk_pool_work(&c.pool), QK_POOL_GRAIN);
    const kbench_case kase = {.name = name,
                              .read_bytes = in,
                              .write_bytes = out,
                              .max_parts = parts < c.pool.n_tasks ? parts : c.pool.n_tasks,
                              .prepare = prepare,
                              .run = run,
                              .floor = has_floor ? run_floor : NULL,
                              .peer = in > ((size_t)16 << 20) && !last ? NULL : peer, /* its reference takes seconds */
                              .arg = &c};
    kbench_measure(b, &kase);
}

void kbench_pool(kbench *b) {
    static const shape shapes[] = {
        {"1x64x56x56", 1, 64, 56, 56}, {"8x64x56x56", 8, 64, 56, 56}, {"32x256x56x56", 32, 256, 56, 56}};
    static const window windows[] = {{"maxpool 2x2s2", true, 2, 2, 0},
                                     {"avgpool 2x2s2", false, 2, 2, 0},
                                     {"maxpool 3x3s2p1", true, 3, 2, 1},
                                     {"avgpool 3x3s1p1", false, 3, 1, 1},
                                     {"global avgpool", false, 0, 1, 0}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++)
            for (int last = 0; last < 2 && (s < 2 || w < 2); last++)
                measure(b, &shapes[s], &windows[w], last);
    static const window others[] = {{"maxpool 3x3s1p1", true, 3, 1, 1},
                                    {"maxpool 5x5s1p2", true, 5, 1, 2},
                                    {"avgpool 5x5s1p2", false, 5, 1, 2},
                                    {"avgpool 7x7s1", false, 7, 1, 0}};
    static const shape odd[] = {
        {"1x24x56x56", 1, 24, 56, 56}, {"1x144x28x28", 1, 144, 28, 28}, {"1x3x112x112", 1, 3, 112, 112}};
    for (size_t w = 0; w < sizeof others / sizeof others[0]; w++)
        for (int last = 0; last < 2; last++)
            measure(b, &shapes[0], &others[w], last);
    for (size_t s = 0; s < sizeof odd / sizeof odd[0]; s++)
        for (size_t w = 2; w < 4; w++)
            for (int last = 0; last < 2; last++)
                measure(b, &odd[s], &windows[w], last);
}
