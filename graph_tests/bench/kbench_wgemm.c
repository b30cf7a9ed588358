/* Products of float rows with integer weights that are never made floats as a whole. */
#include "kbench.h"
#include "kbench_floor.h"
#include "kernels/convert/convert.h"
#include "kernels/gemm/gemm.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 8 };

typedef struct gemm_case {
    qk_gemm gemm;
    qk_gemm_fn *fn;
    qk_convert_fn *widen, *narrow; /* rows of bf16, as lower/wq.c takes them; else NULL */
    void *packed, *q, *half_a, *half_c;
    float *a, *c, *scales; /* of bf16: one `a` per part */
    size_t m;
    size_t n_layers; /* products one after the other, each with weights of its own: more than the caches hold */
} gemm_case;

static qk_isa prepare(void *arg, int n_threads) {
    gemm_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fn = qk_gemm_choose(&c->gemm, NULL, &isa);
    return isa;
}

static void run(void *arg, int part, int n_parts) {
    const gemm_case *c = arg;
    size_t n, first = kbench_part(c->gemm.n_panels, 1, part, n_parts, &n);
    const size_t begin = first * QK_GEMM_COLS, cols = n * QK_GEMM_COLS;
    float *a = c->widen != NULL && part < MAX_PARTS ? c->a + (size_t)part * c->m * c->gemm.k : c->a;
    for (size_t i = 0; n && i < c->n_layers; i++) {
        if (c->widen != NULL) c->widen(c->half_a, a, c->m * c->gemm.k);
        c->fn(&c->gemm, (const char *)c->packed + i * c->gemm.packed_bytes, a, c->gemm.k, c->c, c->gemm.n, c->m, first,
              n);
        for (size_t r = 0; c->narrow != NULL && r < c->m; r++)
            c->narrow(c->c + r * c->gemm.n + begin, (uint16_t *)c->half_c + r * c->gemm.n + begin, cols);
    }
}

static void floor_u4(void *arg, int part, int n_parts) {
    const gemm_case *c = arg;
    const size_t layers = c->n_layers;
    size_t n, first = kbench_part(c->gemm.n_panels, 1, part, n_parts, &n);
    for (size_t i = 0; i < layers; i++)
        for (size_t p = first; p < first + n; p++)
            kbench_floors_of_host()->weights_u4((const uint8_t *)c->packed + i * c->gemm.packed_bytes +
                                                    p * c->gemm.panel_bytes,
                                                c->a, c->c + p * QK_GEMM_COLS, c->gemm.n, c->m, c->gemm.k);
}

static bench_peer *peer(void *arg) {
    const gemm_case *c = arg;
    const int64_t m = (int64_t)c->m, k = (int64_t)c->gemm.k, n = (int64_t)c->gemm.n;
    const bool is_half = c->widen != NULL;
    const qdq_dtype real = is_half ? QDQ_DTYPE_BF16 : QDQ_DTYPE_F32;
    const bench_tensor s = {
        .data = is_half ? c->half_a : c->a, .dtype = real, .ndims = 2, .dims = {m, k}, .strides = {k, 1}};
    const bench_tensor d = {
        .data = is_half ? c->half_c : c->c, .dtype = real, .ndims = 2, .dims = {m, n}, .strides = {n, 1}};
    const bench_tensor w = {.data = c->q, .dtype = c->gemm.weights, .ndims = 2, .dims = {k, n}, .strides = {n, 1}};
    return bench_peer_matmul(&s, &w, &d, c->scales, (int64_t)c->gemm.k_group);
}

static void measure(kbench *b, qdq_dtype real, qdq_dtype type, size_t k, size_t n, size_t k_group, bool has_zp,
                    size_t m, size_t n_layers) {
    char name[96];
    snprintf(name, sizeof name, "%s%s x %s%s group %zu %zux%zux%zu", n_layers > 1 ? "8 times " : "",
             qdq_dtype_name(real), qdq_dtype_name(type), has_zp ? "+zp" : "", k_group, m, k, n);
    if (!kbench_wants(b, name)) return;
    gemm_case c = {
        .gemm = {.weights = type, .k = k, .n = n, .k_group = k_group, .has_zp = has_zp}, .m = m, .n_layers = n_layers};
    if (!qk_gemm_init(&c.gemm)) return;
    const bool is_half = real == QDQ_DTYPE_BF16;
    c.a = kbench_floats(b, m * k * (is_half ? MAX_PARTS : 1));
    c.c = kbench_floats(b, m * n);
    if (is_half) {
        c.half_a = kbench_buffer(b, m * k * sizeof(uint16_t));
        c.half_c = kbench_buffer(b, m * n * sizeof(uint16_t));
        c.widen = qk_convert_choose(QDQ_DTYPE_BF16, QDQ_DTYPE_F32, NULL);
        c.narrow = qk_convert_choose(QDQ_DTYPE_F32, QDQ_DTYPE_BF16, NULL);
        c.narrow(c.a, c.half_a, m * k);
    }
    c.scales = kbench_floats(b, k / k_group * n);
    c.q = kbench_buffer(b, k * n);
    c.packed = kbench_buffer(b, n_layers * c.gemm.packed_bytes);
    int32_t *zps = kbench_buffer(b, k / k_group * n * sizeof *zps);
    memset(zps, 0, k / k_group * n * sizeof *zps);
    const qk_gemm_source source = {c.q, n, 1, c.scales, zps, 1, n, 1};
    for (size_t i = 0; i < n_layers; i++)
        if (!qk_gemm_pack(&c.gemm, &source, (char *)c.packed + i * c.gemm.packed_bytes)) return;
    /* One row is about reading the weights, many are about multiplying. */
    const kbench_case kase = {.kernel = "gemm",
                              .name = name,
                              .read_bytes = n_layers * c.gemm.packed_bytes,
                              .products = m < 8 ? KBENCH_NONE : KBENCH_FLOAT32,
                              .macs = (double)n_layers * (double)m * (double)k * (double)n,
                              .prepare = prepare,
                              .run = run,
                              .floor = type == QDQ_DTYPE_U4 && kbench_floors_of_host() ? floor_u4 : NULL,
                              .peer = n_layers == 1 && m <= 4 ? peer : NULL, /* seconds for a run */
                              .arg = &c};
    kbench_measure(b, &kase);
}

void kbench_wgemm(kbench *b) {
    const qdq_dtype f32 = QDQ_DTYPE_F32;
    measure(b, f32, QDQ_DTYPE_S8, 4096, 4096, 4096, false, 1, 8);
    measure(b, f32, QDQ_DTYPE_U4, 4096, 4096, 128, true, 1, 8);
    static const size_t rows[] = {1, 2, 4, 8, 16, 64};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        measure(b, f32, QDQ_DTYPE_S8, 4096, 4096, 4096, false, rows[i], 1);
        measure(b, f32, QDQ_DTYPE_U4, 4096, 4096, 128, true, rows[i], 1);
        measure(b, f32, QDQ_DTYPE_S8, 768, 768, 768, false, rows[i], 1);
    }
    for (size_t m = 1; m <= 4; m += 3)
        measure(b, QDQ_DTYPE_BF16, QDQ_DTYPE_U4, 4096, 4096, 128, true, m, 1);
    measure(b, QDQ_DTYPE_BF16, QDQ_DTYPE_S8, 768, 768, 768, false, 1, 1);
}
