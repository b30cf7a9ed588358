/* Two quantized operands, and what follows, in one pass. */
#include "kbench_floor.h"
#include "kernels/binary/binary.h"

#include <stdio.h>

typedef struct binary_case {
    qk_binary chain;
    qk_binary_fn *fn;
    uint8_t *a, *b, *dst;
    float zero;
    size_t n;
} binary_case;

static qk_isa prepare(void *arg, int n_threads) {
    binary_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_binary_choose(&c->chain, &isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const binary_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    const void *operands[] = {c->b + first, &c->zero};
    if (n) c->fn(&c->chain, c->a + first, operands, c->dst + first, n);
}

static void run_floor(void *arg, int part, int n_parts) {
    const binary_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    kbench_floors_of_host()->add_relu_s8((const int8_t *)c->a + first, (const int8_t *)c->b + first,
                                         (int8_t *)c->dst + first, n, 0.021347f / 0.052413f, 0.031731f / 0.052413f);
}

static bench_peer *peer(void *arg) {
    const binary_case *c = arg;
    const int64_t n = (int64_t)c->n / 8;
    bench_tensor s0 = {
        .data = c->a, .dtype = QDQ_DTYPE_S8, .ndims = 2, .dims = {8, n}, .strides = {n, 1}, .scale = 0.021347f};
    bench_tensor s1 = s0, d = s0;
    s1.data = c->b;
    s1.scale = 0.031731f;
    d.data = c->dst;
    d.scale = 0.052413f;
    return bench_peer_add_relu(&s0, &s1, &d);
}

static void measure(kbench *b, const char *what, const char *size, size_t n, qk_binary_op op, qdq_dtype dtype,
                    int32_t zp, bool has_relu) {
    char name[96];
    const char *type = qdq_dtype_name(dtype);
    snprintf(name, sizeof name, "%s %s %s %s %s", what, type, type, type, size);
    if (!kbench_wants(b, name)) return;
    binary_case c = {.a = kbench_buffer(b, n), .b = kbench_buffer(b, n), .dst = kbench_buffer(b, n), .n = n};
    c.chain.src = (qk_binary_end){dtype, 0.021347f, zp, 1};
    c.chain.dst = (qk_binary_end){dtype, 0.052413f, zp, 1};
    c.chain.add_zp_first = true;
    c.chain.stream = n >= qk_isa_stream_bytes();
    c.chain.n_steps = has_relu ? 2 : 1;
    c.chain.steps[0] = (qk_binary_step){op, {dtype, 0.031731f, zp, 1}};
    c.chain.steps[1] = (qk_binary_step){QK_BINARY_MAX, {QDQ_DTYPE_F32, 0.0f, 0, 0}};
    const bool simple = op == QK_BINARY_ADD && dtype == QDQ_DTYPE_S8 && zp == 0 && has_relu;
    const kbench_case k = {.name = name,
                           .read_bytes = 2 * n,
                           .write_bytes = n,
                           .max_parts = kbench_worth(n, QK_BINARY_GRAIN),
                           .prepare = prepare,
                           .run = run,
                           .floor = simple && kbench_floors_of_host() ? run_floor : NULL,
                           .peer = simple ? peer : NULL,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_binary(kbench *b) {
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"64K", 65536}, {"8x64x56x56", 8 * 64 * 56 * 56}, {"32M", (size_t)32 << 20}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        measure(b, "add relu", sizes[s].name, sizes[s].n, QK_BINARY_ADD, QDQ_DTYPE_S8, 0, true);
        measure(b, "add", sizes[s].name, sizes[s].n, QK_BINARY_ADD, QDQ_DTYPE_U8, 3, false);
        measure(b, "mul", sizes[s].name, sizes[s].n, QK_BINARY_MUL, QDQ_DTYPE_S8, 3, false);
    }
}
