/* Copies between layouts: transposes, concatenations. */
#include "kbench_floor.h"
#include "kernels/move/move.h"

#include <stdio.h>
#include <string.h>

typedef struct move_case {
    qk_move moves[2];
    uint32_t bytes;
    int64_t dims[4], src_strides[4], dst_strides[4];
    int n_srcs; /* of a concatenation: the second lies dst_step elements behind */
    ptrdiff_t dst_step;
    char *srcs[2], *dst;
} move_case;

static qk_isa prepare(void *arg, int n_threads) {
    move_case *c = arg;
    (void)n_threads;
    for (int k = 0; k < c->n_srcs; k++)
        if (!qk_move_init(&c->moves[k], c->bytes, 4, c->dims, c->src_strides, c->dst_strides)) return QK_ISA_ref;
    return c->moves[0].isa;
}

static void run(void *arg, int part, int n_parts) {
    const move_case *c = arg;
    for (int k = 0; k < c->n_srcs; k++) {
        size_t n, first = kbench_part(c->moves[k].n_tasks, 1, part, n_parts, &n);
        qk_move_run(&c->moves[k], c->srcs[k], c->dst + k * c->dst_step * (ptrdiff_t)c->bytes, first, n);
    }
}

/* A concatenation of planes is two copies per image. */
static void run_floor(void *arg, int part, int n_parts) {
    const move_case *c = arg;
    const size_t image = (size_t)(c->dims[1] * c->dims[2] * c->dims[3]);
    size_t n, first = kbench_part((size_t)c->dims[0], 1, part, n_parts, &n);
    for (size_t i = first; i < first + n; i++)
        for (size_t k = 0; k < 2; k++)
            memcpy(c->dst + (2 * i + k) * image, c->srcs[k] + i * image, image);
}

static bench_tensor tensor_of(void *data, uint32_t bytes, const int64_t *dims, const int64_t *strides) {
    bench_tensor t = {.data = data,
                      .dtype = bytes == 1   ? QDQ_DTYPE_U8
                               : bytes == 2 ? QDQ_DTYPE_BF16
                                            : QDQ_DTYPE_F32,
                      .ndims = 4};
    memcpy(t.dims, dims, 4 * sizeof *dims);
    memcpy(t.strides, strides, 4 * sizeof *strides);
    return t;
}

static bench_peer *peer(void *arg) {
    const move_case *c = arg;
    const bench_tensor s = tensor_of(c->srcs[0], c->bytes, c->dims, c->src_strides);
    bench_tensor d = tensor_of(c->dst, c->bytes, c->dims, c->dst_strides);
    if (c->n_srcs == 1) return bench_peer_reorder(&s, &d);
    const bench_tensor s1 = tensor_of(c->srcs[1], c->bytes, c->dims, c->src_strides);
    d.dims[1] *= 2;
    return bench_peer_concat(&s, &s1, &d, 1);
}

typedef struct shape {
    const char *name;
    int64_t n, c, h, w;
} shape;

static void strides_of(const shape *s, int64_t c, bool last, int64_t *out) {
    const int64_t plain[4] = {c * s->h * s->w, s->h * s->w, s->w, 1}, nxc[4] = {c * s->h * s->w, 1, s->w * c, c};
    memcpy(out, last ? nxc : plain, sizeof plain);
}

static void measure(kbench *b, const char *name, const shape *s, uint32_t bytes, bool src_last, bool dst_last,
                    int n_srcs) {
    if (!kbench_wants(b, name)) return;
    const size_t one = (size_t)(s->n * s->c * s->h * s->w) * bytes, all = one * (size_t)n_srcs;
    move_case c = {.bytes = bytes,
                   .dims = {s->n, s->c, s->h, s->w},
                   .n_srcs = n_srcs,
                   .dst_step = dst_last ? s->c : s->c * s->h * s->w,
                   .srcs = {kbench_buffer(b, one), n_srcs > 1 ? kbench_buffer(b, one) : NULL},
                   .dst = kbench_buffer(b, all)};
    strides_of(s, s->c, src_last, c.src_strides);
    strides_of(s, s->c * n_srcs, dst_last, c.dst_strides);
    const kbench_case k = {.name = name,
                           .read_bytes = all,
                           .write_bytes = all,
                           .max_parts = kbench_worth(all, QK_MOVE_GRAIN_BYTES),
                           .prepare = prepare,
                           .run = run,
                           .floor = n_srcs > 1 && !dst_last ? run_floor : NULL,
                           .peer = peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_move(kbench *b) {
    static const shape shapes[] = {
        {"1x64x28x28", 1, 64, 28, 28}, {"8x64x56x56", 8, 64, 56, 56}, {"32x256x56x56", 32, 256, 56, 56}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        char name[96];
        for (uint32_t bytes = 1; bytes <= 4; bytes *= 2)
            for (int way = 0; way < 2; way++) {
                if (s == 2 && bytes > 1) continue;
                snprintf(name, sizeof name, "%s %u-byte %s", way ? "nhwc to nchw" : "nchw to nhwc", bytes,
                         shapes[s].name);
                measure(b, name, &shapes[s], bytes, way, !way, 1);
            }
        for (int last = 0; last < 2; last++) {
            snprintf(name, sizeof name, "concat %s axis 1, 2 x %s", last ? "nhwc" : "nchw", shapes[s].name);
            measure(b, name, &shapes[s], 1, last, last, 2);
        }
    }
    static const shape image = {"1x3x224x224", 1, 3, 224, 224};
    measure(b, "nchw to nhwc 1-byte 1x3x224x224", &image, 1, false, true, 1);
    measure(b, "nhwc to nchw 1-byte 1x3x224x224", &image, 1, true, false, 1);
}
