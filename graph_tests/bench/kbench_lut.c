/* Bytes through a table: any unary chain between two quantizations, and a requantization. */
#include "kbench_floor.h"
#include "kernels/lut/lut.h"
#include "kernels/quant/quant.h"

#include <math.h>
#include <stdio.h>

typedef struct lut_case {
    qk_lut_x8_fn *fn;
    uint8_t table[256];
    uint8_t *src, *dst;
    size_t n;
    bool relu;
} lut_case;

static qk_isa prepare(void *arg, int n_threads) {
    lut_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_lut_x8_choose(&isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const lut_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    if (n) c->fn(c->table, c->src + first, c->dst + first, n, c->n >= qk_isa_stream_bytes());
}

static void run_floor(void *arg, int part, int n_parts) {
    const lut_case *c = arg;
    size_t n, first = kbench_part(c->n, 64, part, n_parts, &n);
    kbench_floors_of_host()->requantize_s8((const int8_t *)c->src + first, (int8_t *)c->dst + first, n, 0.02f / 0.03f,
                                           c->relu ? 0.0f : -INFINITY, 0.0f);
}

static bench_peer *peer(void *arg) {
    const lut_case *c = arg;
    const int64_t n = (int64_t)c->n;
    const bench_tensor s = {
        .data = c->src, .dtype = QDQ_DTYPE_S8, .ndims = 1, .dims = {n}, .strides = {1}, .scale = 0.02f};
    bench_tensor d = s;
    d.data = c->dst;
    d.scale = 0.03f;
    return bench_peer_reorder(&s, &d);
}

static void relu(float *values, size_t n, void *context) {
    (void)context;
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] > 0.0f ? values[i] : 0.0f;
}

void kbench_lut(kbench *b) {
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"64K", 65536}, {"8x64x56x56", 8 * 64 * 56 * 56}, {"64M", (size_t)64 << 20}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int has_relu = 0; has_relu < 2; has_relu++) {
            char name[64];
            snprintf(name, sizeof name, "%s s8 s8 %s", has_relu ? "dq - relu - q" : "requantize", sizes[s].name);
            if (!kbench_wants(b, name) || (has_relu && s != 1)) continue;
            const qk_x8 src = {QDQ_DTYPE_S8, 0.02f, 0}, dst = {QDQ_DTYPE_S8, 0.03f, 0};
            const size_t n = sizes[s].n;
            lut_case c = {.src = kbench_buffer(b, n), .dst = kbench_buffer(b, n), .n = n, .relu = has_relu != 0};
            qk_quant_table(&src, has_relu ? relu : NULL, NULL, &dst, QK_ADD_THEN_ROUND, c.table);
            const kbench_case k = {.name = name,
                                   .read_bytes = n,
                                   .write_bytes = n,
                                   .max_parts = kbench_worth(n, QK_LUT_GRAIN),
                                   .prepare = prepare,
                                   .run = run,
                                   .floor = kbench_floors_of_host() ? run_floor : NULL,
                                   .peer = has_relu ? NULL : peer,
                                   .arg = &c};
            kbench_measure(b, &k);
        }
}
