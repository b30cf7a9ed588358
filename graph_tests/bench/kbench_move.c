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

/* dst = src with the axes in another order: axis k of src is axis places[k] of dst. */
static void permute(kbench *b, const char *what, const char *size, uint32_t bytes, const int64_t *dims,
                    const int *places) {
    char name[96];
    snprintf(name, sizeof name, "%s %u-byte %s", what, bytes, size);
    if (!kbench_wants(b, name)) return;
    move_case c = {.bytes = bytes, .n_srcs = 1};
    int64_t n = 1, moved[4], strides[4];
    for (int k = 3; k >= 0; k--) {
        c.dims[k] = dims[k];
        c.src_strides[k] = n;
        moved[places[k]] = dims[k];
        n *= dims[k];
    }
    for (int64_t k = 3, m = 1; k >= 0; m *= moved[k--])
        strides[k] = m;
    for (int k = 0; k < 4; k++)
        c.dst_strides[k] = strides[places[k]];
    const size_t all = (size_t)n * bytes;
    c.srcs[0] = kbench_buffer(b, all);
    c.dst = kbench_buffer(b, all);
    const kbench_case k = {.name = name,
                           .read_bytes = all,
                           .write_bytes = all,
                           .max_parts = kbench_worth(all, QK_MOVE_GRAIN_BYTES),
                           .prepare = prepare,
                           .run = run,
                           .peer = bytes == 8 ? NULL : peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

/* What attention does with its heads, and plain matrices. */
static void permutations(kbench *b) {
    static const struct {
        const char *what, *size;
        int64_t dims[4];
        int places[4];
        uint32_t sizes; /* of elements: their sum */
    } cases[] = {
        {"bshd to bhsd", "1x128x12x64", {1, 128, 12, 64}, {0, 2, 1, 3}, 6},
        {"bshd to bhds", "1x128x12x64", {1, 128, 12, 64}, {0, 3, 1, 2}, 6},
        {"bhsd to bhds", "1x12x128x64", {1, 12, 128, 64}, {0, 1, 3, 2}, 7},
        {"bshd to bhsd", "8x384x12x64", {8, 384, 12, 64}, {0, 2, 1, 3}, 6},
        {"bshd to bhds", "8x384x12x64", {8, 384, 12, 64}, {0, 3, 1, 2}, 6},
        {"transpose", "384x640", {1, 1, 384, 640}, {0, 1, 3, 2}, 3},
        {"transpose", "256x256", {1, 1, 256, 256}, {0, 1, 3, 2}, 15},
        {"transpose", "4096x4096", {1, 1, 4096, 4096}, {0, 1, 3, 2}, 7},
        {"transpose", "3000x3001", {1, 1, 3000, 3001}, {0, 1, 3, 2}, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
            if (cases[i].sizes & bytes) permute(b, cases[i].what, cases[i].size, bytes, cases[i].dims, cases[i].places);
}

void kbench_move(kbench *b) {
    static const shape shapes[] = {
        {"1x64x28x28", 1, 64, 28, 28}, {"8x64x56x56", 8, 64, 56, 56}, {"32x256x56x56", 32, 256, 56, 56}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        char name[96];
        for (uint32_t bytes = 1; bytes <= 4; bytes *= 2)
            for (int way = 0; way < 2; way++) {
                if (s == 2 && bytes == 2) continue;
                snprintf(name, sizeof name, "%s %u-byte %s", way ? "nhwc to nchw" : "nchw to nhwc", bytes,
                         shapes[s].name);
                measure(b, name, &shapes[s], bytes, way, !way, 1);
            }
        for (int last = 0; last < 2; last++) {
            snprintf(name, sizeof name, "concat %s axis 1, 2 x %s", last ? "nhwc" : "nchw", shapes[s].name);
            measure(b, name, &shapes[s], 1, last, last, 2);
        }
    }
    static const shape odd[] = {{"1x3x224x224", 1, 3, 224, 224},
                                {"1x17x56x56", 1, 17, 56, 56},
                                {"1x479x28x28", 1, 479, 28, 28},
                                {"16x479x56x56", 16, 479, 56, 56}};
    for (size_t s = 0; s < sizeof odd / sizeof odd[0]; s++)
        for (int way = 0; way < 2; way++)
            for (uint32_t bytes = 1; bytes <= (s == 3 ? 1u : 4u); bytes *= 4) {
                char name[96];
                snprintf(name, sizeof name, "%s %u-byte %s", way ? "nhwc to nchw" : "nchw to nhwc", bytes, odd[s].name);
                measure(b, name, &odd[s], bytes, way, !way, 1);
            }
    permutations(b);
}
