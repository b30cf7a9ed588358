/* Choices and masks. */
#include "bench_peer_select.h"
#include "kbench.h"
#include "kernels/select/select.h"
#include "lower/walk.h"

#include <stdio.h>

typedef struct select_case {
    qk_select_fn *select;
    qk_compare_fn *compare;
    qk_prelu_fn *prelu;
    size_t bytes; /* of an element */
    uint8_t *cond;
    char *x, *y, *dst;
    int y_step;
    size_t n;
} select_case;

static qk_isa prepare(void *arg, int n_threads) {
    select_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->select = qk_select_choose(c->bytes, &isa);
    c->compare = qk_compare_choose(QK_COMPARE_GE, &isa);
    c->prelu = qk_prelu_choose(&isa);
    return isa;
}

static void run_select(void *arg, int part, int n_parts) {
    const select_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    const size_t at = first * c->bytes;
    if (n) c->select(c->cond + first, 1, c->x + at, 1, c->y + (c->y_step ? at : 0), c->y_step, c->dst + at, n);
}
static void run_compare(void *arg, int part, int n_parts) {
    const select_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    const float *y = (const float *)(const void *)c->y + (c->y_step ? first : 0);
    if (n) c->compare((const float *)(const void *)c->x + first, 1, y, c->y_step, (uint8_t *)c->dst + first, n);
}
static void run_prelu(void *arg, int part, int n_parts) {
    const select_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    const float *slope = (const float *)(const void *)c->y + (c->y_step ? first : 0);
    if (n) c->prelu((const float *)(const void *)c->x + first, slope, c->y_step, (float *)(void *)c->dst + first, n);
}

static bench_tensor tensor(const select_case *c, void *data, size_t bytes, bool is_one) {
    const int64_t n = is_one ? 1 : (int64_t)c->n / 8, rows = is_one ? 1 : 8;
    const qdq_dtype dtype = bytes == 4 ? QDQ_DTYPE_F32 : bytes == 2 ? QDQ_DTYPE_BF16 : QDQ_DTYPE_S8;
    return (bench_tensor){.data = data, .dtype = dtype, .ndims = 2, .dims = {rows, n}, .strides = {n, 1}};
}

static bench_peer *select_peer(void *arg) {
    const select_case *c = arg;
    const bench_tensor cond = tensor(c, c->cond, 1, false), x = tensor(c, c->x, c->bytes, false);
    const bench_tensor y = tensor(c, c->y, c->bytes, false), d = tensor(c, c->dst, c->bytes, false);
    return c->y_step && c->bytes <= 4 ? bench_peer_select(&cond, &x, &y, &d) : NULL;
}
static bench_peer *compare_peer(void *arg) {
    const select_case *c = arg;
    const bench_tensor x = tensor(c, c->x, 4, false), y = tensor(c, c->y, 4, !c->y_step),
                       d = tensor(c, c->dst, 1, false);
    return bench_peer_compare(&x, &y, &d);
}
static bench_peer *prelu_peer(void *arg) {
    const select_case *c = arg;
    const bench_tensor x = tensor(c, c->x, 4, false), y = tensor(c, c->y, 4, !c->y_step),
                       d = tensor(c, c->dst, 4, false);
    return bench_peer_prelu(&x, &y, &d);
}

typedef enum what { SELECT, COMPARE, PRELU } what;

static void measure(kbench *b, what w, const char *type, size_t bytes, int y_step, const char *size, size_t n) {
    static const char *const words[] = {"select", "greater or equal", "prelu"};
    char name[96];
    snprintf(name, sizeof name, "%s %s%s %s", words[w], type, y_step ? "" : ", one for all", size);
    if (!kbench_wants(b, name)) return;
    select_case c = {.bytes = bytes, .y_step = y_step, .n = n, .cond = kbench_buffer(b, n)};
    for (size_t i = 0; w == SELECT && i < n; i++)
        c.cond[i] &= 1;
    c.x = bytes == 4 ? (char *)kbench_floats(b, n) : kbench_buffer(b, n * bytes);
    c.y = bytes == 4 ? (char *)kbench_floats(b, n) : kbench_buffer(b, n * bytes);
    c.dst = kbench_buffer(b, n * bytes);
    const size_t y_bytes = y_step ? n * bytes : 0;
    const size_t read_bytes = n * bytes + y_bytes + (w == SELECT ? n : 0), write_bytes = w == COMPARE ? n : n * bytes;
    const kbench_case k = {.name = name,
                           .read_bytes = read_bytes,
                           .write_bytes = write_bytes,
                           .max_parts = kbench_worth(read_bytes + write_bytes, QDQI_WALK_GRAIN_BYTES),
                           .prepare = prepare,
                           .run = w == SELECT    ? run_select
                                  : w == COMPARE ? run_compare
                                                 : run_prelu,
                           .peer = w == SELECT    ? select_peer
                                   : w == COMPARE ? compare_peer
                                                  : prelu_peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_select(kbench *b) {
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"32K", 32768}, {"16M", (size_t)16 << 20}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const char *size = sizes[s].name;
        const size_t n = sizes[s].n;
        measure(b, SELECT, "1-byte", 1, 1, size, n);
        measure(b, SELECT, "2-byte", 2, 1, size, n);
        measure(b, SELECT, "f32", 4, 1, size, n);
        measure(b, SELECT, "f32", 4, 0, size, n);
        measure(b, COMPARE, "f32", 4, 1, size, n);
        measure(b, COMPARE, "f32", 4, 0, size, n);
        measure(b, PRELU, "f32", 4, 1, size, n);
        measure(b, PRELU, "f32", 4, 0, size, n);
        if (s == 0) measure(b, SELECT, "8-byte", 8, 1, size, n);
    }
}
