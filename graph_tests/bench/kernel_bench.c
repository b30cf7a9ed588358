/* How fast the kernels are, beside oneDNN's primitive for the same work and beside their own reference, in one run.
 *
 *   qdq-kernel-bench [WORD]      only the cases whose name contains WORD
 *
 * One thread. Every figure is the smallest of many runs. `x peer` and `x ref` say how many times faster the kernel is. The
 * peer computes with the reciprocal of the scale; the kernels divide. */
#include "bench_peer.h"
#include "kernels/binary/binary.h"
#include "kernels/gemm/gemm.h"
#include "kernels/lut/lut.h"
#include "kernels/move/move.h"
#include "kernels/pool/pool.h"
#include "kernels/quant/quant.h"

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *wanted = "";
static bool with_ref = true;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The smallest time of a run, in seconds. At least 5 runs, at most 0.1 s of them. */
static double time_of(void (*run)(void *), void *arg) {
    double best = 1e9, end = now() + 0.1;
    for (int i = 0; i < 5 || (now() < end && i < 20000); i++) {
        double t = now();
        run(arg);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void run_peer(void *peer) {
    bench_peer_run(peer);
}

/* One line. `bytes` are read and written; run must choose its kernel by the present cap when prepare is called. */
static void report(const char *name, size_t bytes, void (*prepare)(void *), void (*run)(void *), void *arg,
                   bench_peer *peer) {
    qk_isa cap = qk_isa_cap();
    prepare(arg);
    double own = time_of(run, arg);
    printf("%-38s %9.1f us %7.1f GB/s", name, own * 1e6, (double)bytes / own * 1e-9);
    if (with_ref) {
        qk_isa_set_cap(QK_ISA_ref);
        prepare(arg);
        printf(" %7.1fx ref", time_of(run, arg) / own);
        qk_isa_set_cap(cap);
    }
    if (peer) {
        double theirs = time_of(run_peer, peer);
        printf(" %7.2fx peer (%.1f us, %s)", theirs / own, theirs * 1e6, bench_peer_name(peer));
    }
    printf("\n");
    fflush(stdout);
    bench_peer_destroy(&peer);
}

static bool is_wanted(const char *name) {
    return strstr(name, wanted) != NULL;
}

static void *buffer(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    uint64_t state = 42;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)p)[i] = (uint8_t)(state >> 56);
    }
    return p;
}

/* ---- quantize, dequantize ---- */

typedef struct quant_case {
    qk_quant quant;
    float scales[256];
    int32_t zps[256];
    const void *src;
    void *dst;
    size_t n;
} quant_case;

static void quant_prepare(void *arg) {
    if (!qk_quant_init(&((quant_case *)arg)->quant)) exit(1);
}
static void quant_run(void *arg) {
    quant_case *c = arg;
    qk_quantize(&c->quant, c->scales, c->zps, c->src, c->dst, 0, c->n);
}
static void dequant_run(void *arg) {
    quant_case *c = arg;
    qk_dequantize(&c->quant, c->scales, c->zps, c->src, c->dst, 0, c->n);
}

static void quant_cases(const char *size, size_t planes, size_t channels, size_t inner) {
    size_t n = planes * channels * inner;
    float *real = buffer(n * 4);
    uint8_t *stored = buffer(n);
    for (size_t i = 0; i < n; i++)
        real[i] = (float)(stored[i] - 128) * 0.0213f + 0.001f * (float)(i % 7);
    const qk_quant_map maps[] = {{1, 1, 1, 1, 0}, {channels, inner, 1, inner, 0}, {1, channels, 1, 1, 0}};
    const char *forms[] = {"tensor", "axis 1", "last axis"};
    for (int way = 0; way < 2; way++)
        for (int form = 0; form < 3; form++)
            for (int sign = 0; sign < 2; sign++) {
                char name[64];
                snprintf(name, sizeof name, "%s %s %s %s", way ? "dequantize" : "quantize", sign ? "s8" : "u8",
                         forms[form], size);
                if (!is_wanted(name)) continue;
                quant_case c = {.quant = {QDQ_DTYPE_F32, sign ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8, QK_ADD_THEN_ROUND,
                                          maps[form], n * (way ? 4 : 1) >= qk_isa_stream_bytes(), NULL},
                                .n = n};
                for (int k = 0; k < 256; k++) {
                    c.scales[k] = 0.0213f;
                    c.zps[k] = form ? 0 : 3;
                }
                c.src = way ? (void *)stored : (void *)real;
                c.dst = way ? (void *)real : (void *)stored;
                bench_tensor r = {real,
                                  QDQ_DTYPE_F32,
                                  3,
                                  {(int64_t)planes, (int64_t)channels, (int64_t)inner},
                                  {(int64_t)(channels * inner), (int64_t)inner, 1},
                                  0.0f,
                                  0};
                bench_tensor s = r;
                s.data = stored;
                s.dtype = c.quant.stored;
                s.scale = 0.0213f;
                s.zp = c.zps[0];
                report(name, n * 5, quant_prepare, way ? dequant_run : quant_run, &c,
                       form  ? NULL
                       : way ? bench_peer_reorder(&s, &r)
                             : bench_peer_reorder(&r, &s));
            }
    free(real);
    free(stored);
}

/* ---- tables ---- */

typedef struct lut_case {
    qk_lut_x8_fn *fn;
    const uint8_t *table;
    void *src, *dst;
    size_t n;
} lut_case;

static void lut_prepare(void *arg) {
    ((lut_case *)arg)->fn = qk_lut_x8_choose(NULL);
}
static void lut_run(void *arg) {
    lut_case *c = arg;
    c->fn(c->table, c->src, c->dst, c->n);
}

/* The glue of int8 models, as large as the facts about the peer have it. */
enum { N = 8, C = 64, H = 56, W = 56, GLUE = N * C * H * W };

static void lut_cases(void) {
    uint8_t *a = buffer(GLUE), *b = buffer(GLUE), table[256];
    qk_x8 src = {QDQ_DTYPE_S8, 0.02f, 3}, dst = {QDQ_DTYPE_S8, 0.03f, -1};
    qk_quant_table(&src, NULL, NULL, &dst, QK_ADD_THEN_ROUND, table);
    lut_case c = {NULL, table, a, b, GLUE};
    bench_tensor s = {a, QDQ_DTYPE_S8, 1, {GLUE}, {1}, 0.02f, 3}, d = {b, QDQ_DTYPE_S8, 1, {GLUE}, {1}, 0.03f, -1};
    if (is_wanted("requantize s8 1.6M (table)"))
        report("requantize s8 1.6M (table)", 2 * GLUE, lut_prepare, lut_run, &c, bench_peer_reorder(&s, &d));
    free(a);
    free(b);
}

/* ---- chains ---- */

typedef struct binary_case {
    qk_binary chain;
    qk_binary_fn *fn;
    const void *src, *operands[2];
    void *dst;
    size_t n;
} binary_case;

static void binary_prepare(void *arg) {
    binary_case *c = arg;
    c->fn = qk_binary_choose(&c->chain, NULL);
    if (!c->fn) exit(1);
}
static void binary_run(void *arg) {
    binary_case *c = arg;
    c->fn(&c->chain, c->src, c->operands, c->dst, c->n);
}

static void binary_cases(void) {
    int8_t *a = buffer(GLUE), *b = buffer(GLUE), *d = buffer(GLUE);
    float zero = 0.0f;
    binary_case c = {.src = a, .operands = {b, &zero}, .dst = d, .n = GLUE};
    c.chain.src = (qk_binary_end){QDQ_DTYPE_S8, 0.02f, 0, 1};
    c.chain.dst = (qk_binary_end){QDQ_DTYPE_S8, 0.05f, 0, 1};
    c.chain.add_zp_first = true;
    c.chain.n_steps = 2;
    c.chain.steps[0] = (qk_binary_step){QK_BINARY_ADD, {QDQ_DTYPE_S8, 0.03f, 0, 1}};
    c.chain.steps[1] = (qk_binary_step){QK_BINARY_MAX, {QDQ_DTYPE_F32, 0.0f, 0, 0}};
    bench_tensor s0 = {a, QDQ_DTYPE_S8, 2, {N, GLUE / N}, {GLUE / N, 1}, 0.02f, 0}, s1 = s0, t = s0;
    s1.data = b;
    s1.scale = 0.03f;
    t.data = d;
    t.scale = 0.05f;
    if (is_wanted("add relu s8 s8 -> s8 1.6M"))
        report("add relu s8 s8 -> s8 1.6M", 3 * (size_t)GLUE, binary_prepare, binary_run, &c,
               bench_peer_add_relu(&s0, &s1, &t));
    c.chain.steps[0].op = QK_BINARY_MUL;
    c.chain.n_steps = 1;
    c.chain.src.zp = c.chain.dst.zp = 3;
    if (is_wanted("mul s8 s8 -> s8 1.6M"))
        report("mul s8 s8 -> s8 1.6M", 3 * (size_t)GLUE, binary_prepare, binary_run, &c, NULL);
    free(a);
    free(b);
    free(d);
}

/* ---- copies ---- */

typedef struct move_case {
    qk_move moves[2];
    uint32_t bytes;
    int32_t ndims;
    int64_t dims[4], src_strides[4], dst_strides[4];
    int n_srcs; /* of a concatenation: the second lies dst_step elements behind */
    ptrdiff_t dst_step;
    const char *srcs[2];
    char *dst;
} move_case;

static void move_prepare(void *arg) {
    move_case *c = arg;
    for (int k = 0; k < c->n_srcs; k++)
        if (!qk_move_init(&c->moves[k], c->bytes, c->ndims, c->dims, c->src_strides, c->dst_strides)) exit(1);
}
static void move_run(void *arg) {
    move_case *c = arg;
    for (int k = 0; k < c->n_srcs; k++)
        qk_move_run(&c->moves[k], c->srcs[k], c->dst + k * c->dst_step * (ptrdiff_t)c->bytes, 0, c->moves[k].n_tasks);
}

static bench_tensor tensor_of(void *data, uint32_t bytes, const int64_t *dims, const int64_t *strides) {
    bench_tensor t = {data, bytes == 1 ? QDQ_DTYPE_U8 : bytes == 2 ? QDQ_DTYPE_BF16 : QDQ_DTYPE_F32, 4, {0}, {0}, 0.0f,
                      0};
    memcpy(t.dims, dims, 4 * sizeof *dims);
    memcpy(t.strides, strides, 4 * sizeof *strides);
    return t;
}

static void move_cases(void) {
    const int64_t dims[4] = {N, C, H, W}, nchw[4] = {C * H * W, H * W, W, 1}, nhwc[4] = {C * H * W, 1, W * C, C};
    const int64_t nchw2[4] = {2 * C * H * W, H * W, W, 1}, nhwc2[4] = {2 * C * H * W, 1, W * 2 * C, 2 * C};
    char *a = buffer(GLUE * 4), *b = buffer(GLUE), *d = buffer(GLUE * 4);
    for (uint32_t bytes = 1; bytes <= 4; bytes *= 2)
        for (int way = 0; way < 2; way++) {
            char name[64];
            snprintf(name, sizeof name, "%s %u bytes 1.6M", way ? "nhwc -> nchw" : "nchw -> nhwc", bytes);
            move_case c = {.bytes = bytes, .ndims = 4, .n_srcs = 1, .srcs = {a, NULL}, .dst = d};
            memcpy(c.dims, dims, sizeof dims);
            memcpy(c.src_strides, way ? nhwc : nchw, sizeof nchw);
            memcpy(c.dst_strides, way ? nchw : nhwc, sizeof nchw);
            bench_tensor s = tensor_of(a, bytes, dims, c.src_strides), t = tensor_of(d, bytes, dims, c.dst_strides);
            if (is_wanted(name))
                report(name, 2 * (size_t)GLUE * bytes, move_prepare, move_run, &c, bench_peer_reorder(&s, &t));
        }
    for (int last = 0; last < 2; last++) {
        const char *name = last ? "concat nhwc channels 2 x 1.6M" : "concat nchw channels 2 x 1.6M";
        const int64_t *one = last ? nhwc : nchw, *two = last ? nhwc2 : nchw2;
        move_case c = {.bytes = 1, .ndims = 4, .n_srcs = 2, .dst_step = last ? C : C * H * W, .srcs = {a, b}, .dst = d};
        memcpy(c.dims, dims, sizeof dims);
        memcpy(c.src_strides, one, sizeof nchw);
        memcpy(c.dst_strides, two, sizeof nchw);
        bench_tensor s0 = tensor_of(a, 1, dims, one), s1 = tensor_of(b, 1, dims, one), t = tensor_of(d, 1, dims, two);
        t.dims[1] = 2 * C;
        if (is_wanted(name))
            report(name, 4 * (size_t)GLUE, move_prepare, move_run, &c, bench_peer_concat(&s0, &s1, &t, 1));
    }
    free(a);
    free(b);
    free(d);
}

/* ---- pooling ---- */

typedef struct pool_case {
    qk_pool pool;
    qk_pool_quant quant;
    const void *src;
    void *dst, *scratch;
} pool_case;

static void pool_prepare(void *arg) {
    pool_case *c = arg;
    if (!qk_pool_init(&c->pool) || !qk_pool_quant_init(&c->pool, 0.02f, 0, 0.02f, 0, true, &c->quant)) exit(1);
}
static void pool_run(void *arg) {
    pool_case *c = arg;
    qk_pool_run(&c->pool, &c->quant, c->src, c->dst, 0, c->pool.n_tasks, c->scratch);
}

static void pool_cases(void) {
    uint8_t *a = buffer(GLUE), *d = buffer(GLUE), *scratch = buffer(1 << 20);
    for (int form = 0; form < 6; form++) {
        bool is_max = form % 3 == 0, is_global = form % 3 == 2, last = form >= 3;
        char name[64];
        snprintf(name, sizeof name, "%s u8 %s 1.6M",
                 is_global ? "global avgpool"
                 : is_max  ? "maxpool 2x2s2"
                           : "avgpool 2x2s2",
                 last ? "nhwc" : "nchw");
        if (!is_wanted(name)) continue;
        pool_case c = {.pool = {.is_max = is_max,
                                .channels_last = last,
                                .src = QDQ_DTYPE_U8,
                                .dst = QDQ_DTYPE_U8,
                                .n = N,
                                .c = C,
                                .in = {1, H, W},
                                .out = {1, H / 2, W / 2},
                                .kernel = {1, 2, 2},
                                .stride = {1, 2, 2},
                                .dilation = {1, 1, 1}},
                       .src = a,
                       .dst = d,
                       .scratch = scratch};
        if (is_global)
            for (int k = 1; k < 3; k++) {
                c.pool.kernel[k] = c.pool.in[k];
                c.pool.out[k] = c.pool.stride[k] = 1;
            }
        int64_t oh = c.pool.out[1], ow = c.pool.out[2];
        bench_tensor s = {a, QDQ_DTYPE_U8, 4, {N, C, H, W}, {C * H * W, H * W, W, 1}, 0.0f, 0};
        bench_tensor t = {d, QDQ_DTYPE_U8, 4, {N, C, oh, ow}, {C * oh * ow, oh * ow, ow, 1}, 0.0f, 0};
        if (last) {
            memcpy(s.strides, (int64_t[]){C * H * W, 1, C * W, C}, 4 * sizeof(int64_t));
            memcpy(t.strides, (int64_t[]){C * oh * ow, 1, C * ow, C}, 4 * sizeof(int64_t));
        }
        report(name, (size_t)(GLUE + N * C * oh * ow), pool_prepare, pool_run, &c,
               is_global ? NULL : bench_peer_pool2x2(&s, &t, is_max));
    }
    free(a);
    free(d);
    free(scratch);
}

/* ---- products with integer weights ---- */

typedef struct gemm_case {
    qk_gemm gemm;
    qk_gemm_fn *fn;
    const void *packed;
    const float *a;
    float *c;
    size_t m;
} gemm_case;

static void gemm_prepare(void *arg) {
    gemm_case *c = arg;
    c->fn = qk_gemm_choose(&c->gemm, NULL, NULL);
}
static void gemm_run(void *arg) {
    gemm_case *c = arg;
    c->fn(&c->gemm, c->packed, c->a, c->gemm.k, c->c, c->gemm.n, c->m, 0, c->gemm.n_panels);
}

static float *floats(size_t n) {
    float *f = buffer(n * sizeof *f);
    const uint8_t *bytes = (const uint8_t *)f;
    for (size_t i = 0; i < n; i++)
        f[i] = 0.01f * (float)((int)bytes[i * sizeof *f] - 128);
    return f;
}

/* Beside the same product with floats (what there is without the kernel), and oneDNN's own decompression. */
static void gemm_cases(qdq_dtype type, size_t k, size_t n, size_t k_group, bool has_zp) {
    static const size_t rows[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const size_t max_rows = 128;
    float *a = floats(max_rows * k), *c = buffer(max_rows * n * sizeof *c), *w = floats(k * n);
    float *scales = floats((k / k_group) * n);
    uint8_t *q = buffer(k * n);
    int32_t *zps = calloc(k / k_group * n, sizeof *zps);
    qk_gemm gemm = {.weights = type, .k = k, .n = n, .k_group = k_group, .has_zp = has_zp};
    if (!zps || !qk_gemm_init(&gemm)) exit(1);
    void *packed = buffer(gemm.packed_bytes);
    const qk_gemm_source source = {q, n, 1, scales, zps, 1, n, 1};
    if (!qk_gemm_pack(&gemm, &source, packed)) exit(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t m = (int64_t)rows[i], sk = (int64_t)k, sn = (int64_t)n;
        gemm_case own = {.gemm = gemm, .packed = packed, .a = a, .c = c, .m = rows[i]};
        bench_tensor s = {a, QDQ_DTYPE_F32, 2, {m, sk}, {sk, 1}, 0.0f, 0};
        bench_tensor t = {c, QDQ_DTYPE_F32, 2, {m, sn}, {sn, 1}, 0.0f, 0};
        bench_tensor wf = {w, QDQ_DTYPE_F32, 2, {sk, sn}, {sn, 1}, 0.0f, 0};
        bench_tensor wq = {q, type, 2, {sk, sn}, {sn, 1}, 0.0f, 0};
        with_ref = m == 1; /* of more rows it would take minutes */
        for (int peer = 0; peer < 2; peer++) {
            char name[96];
            snprintf(name, sizeof name, "gemm %zux%zux%zu %s%s/%zu %s", rows[i], k, n, qdq_dtype_name(type),
                     has_zp ? "+zp" : "", k_group, peer ? "int" : "f32");
            if (is_wanted(name))
                report(name, gemm.packed_bytes, gemm_prepare, gemm_run, &own,
                       peer ? bench_peer_matmul(&s, &wq, &t, scales, (int64_t)k_group)
                            : bench_peer_matmul(&s, &wf, &t, NULL, 0));
        }
    }
    with_ref = true;
    free(a);
    free(c);
    free(w);
    free(scales);
    free(q);
    free(zps);
    free(packed);
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = argv[1];
    omp_set_num_threads(1);
    printf("level %s, L1 %zu, L2 %zu bytes, streaming from %zu bytes\n", qk_isa_name(qk_isa_cap()), qk_isa_l1d_bytes(),
           qk_isa_l2_bytes(), qk_isa_stream_bytes());
    quant_cases("200k", 1, 64, 56 * 56);
    quant_cases("25.7M", 32, 256, 56 * 56);
    lut_cases();
    binary_cases();
    move_cases();
    pool_cases();
    gemm_cases(QDQ_DTYPE_S8, 4096, 4096, 4096, false);
    gemm_cases(QDQ_DTYPE_S8, 4096, 4096, 4096, true);
    gemm_cases(QDQ_DTYPE_U4, 4096, 4096, 128, true);
    gemm_cases(QDQ_DTYPE_S4, 4096, 4096, 128, false);
    gemm_cases(QDQ_DTYPE_S8, 768, 768, 768, false);
    return 0;
}
