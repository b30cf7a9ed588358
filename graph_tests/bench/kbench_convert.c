/* Rows of elements from and to f32. */
#include "kbench.h"
#include "kernels/convert/convert.h"
#include "lower/walk.h"

#include <stdio.h>

typedef struct convert_case {
    qk_convert_fn *fn;
    qdq_dtype from, to;
    char *src, *dst;
    size_t n;
} convert_case;

static size_t bytes_of(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

static qk_isa prepare(void *arg, int n_threads) {
    convert_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_convert_choose(c->from, c->to, &isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const convert_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    if (n) c->fn(c->src + first * bytes_of(c->from), c->dst + first * bytes_of(c->to), n);
}

static bench_peer *peer(void *arg) {
    const convert_case *c = arg;
    const int64_t n = (int64_t)c->n / 8;
    const bench_tensor s = {.data = c->src, .dtype = c->from, .ndims = 2, .dims = {8, n}, .strides = {n, 1}};
    bench_tensor d = s;
    d.data = c->dst;
    d.dtype = c->to;
    return bench_peer_reorder(&s, &d);
}

static void measure(kbench *b, qdq_dtype from, qdq_dtype to, const char *size, size_t n) {
    char name[64];
    snprintf(name, sizeof name, "%s to %s %s", qdq_dtype_name(from), qdq_dtype_name(to), size);
    if (!kbench_wants(b, name)) return;
    convert_case c = {.from = from, .to = to, .n = n};
    c.src = kbench_typed(b, from, n);
    c.dst = kbench_buffer(b, n * bytes_of(to));
    const kbench_case k = {.name = name,
                           .read_bytes = n * bytes_of(from),
                           .write_bytes = n * bytes_of(to),
                           .max_parts = kbench_worth(n * (bytes_of(from) + bytes_of(to)), QDQI_WALK_GRAIN_BYTES),
                           .prepare = prepare,
                           .run = run,
                           .peer = peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_convert(kbench *b) {
    static const qdq_dtype others[] = {QDQ_DTYPE_BF16, QDQ_DTYPE_F16, QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"64K", 65536}, {"26M", (size_t)32 * 256 * 56 * 56}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            measure(b, others[i], QDQ_DTYPE_F32, sizes[s].name, sizes[s].n);
            measure(b, QDQ_DTYPE_F32, others[i], sizes[s].name, sizes[s].n);
        }
        measure(b, QDQ_DTYPE_S32, QDQ_DTYPE_F32, sizes[s].name, sizes[s].n);
    }
}
