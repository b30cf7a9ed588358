/* Quantize and dequantize, alone: every pair of types, every granularity, in L2 and in memory. */
#include "bench_peer_quant.h"
#include "kbench_floor.h"
#include "kbench_floor_runs.h"
#include "kernels/quant/quant.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

typedef struct quant_case {
    qk_quant quant;
    bool quantize;
    float *scales; /* all the same: a per-channel peer has its own way, its work is what matters */
    int32_t *zps;
    void *src, *dst;
    size_t n, dims[3], run; /* elements with one scale in a row */
    int axis;               /* of the scales in dims; -1: none */
} quant_case;

static qk_isa prepare(void *arg, int n_threads) {
    quant_case *c = arg;
    (void)n_threads;
    return qk_quant_init(&c->quant) ? qk_quant_isa(&c->quant) : QK_ISA_ref;
}

static void run(void *arg, int part, int n_parts) {
    const quant_case *c = arg;
    size_t n, first = kbench_part(c->n, QK_QUANT_SPLIT, part, n_parts, &n);
    if (n == 0) return;
    if (c->quantize)
        qk_quantize(&c->quant, c->scales, c->zps, c->src, c->dst, first, n);
    else
        qk_dequantize(&c->quant, c->scales, c->zps, c->src, c->dst, first, n);
}

static void run_floor(void *arg, int part, int n_parts) {
    const quant_case *c = arg;
    size_t n, first = kbench_part(c->n, QK_QUANT_SPLIT, part, n_parts, &n);
    if (n == 0) return;
    if (c->quantize)
        kbench_floors_of_host()->quantize_s8((const float *)c->src + first, (int8_t *)c->dst + first, n,
                                             1.0f / c->scales[0], 0.0f);
    else
        kbench_floors_of_host()->dequantize_s8((const int8_t *)c->src + first, (float *)c->dst + first, n, c->scales[0],
                                               c->quant.stream);
}

/* Of a whole tensor in cache. */
static kbench_runs_floor *runs_floor(const quant_case *c) {
    const kbench_run_floors *floors = kbench_run_floors_of_host();
    const int real = c->quant.real == QDQ_DTYPE_F32    ? KBENCH_RUN_F32
                     : c->quant.real == QDQ_DTYPE_BF16 ? KBENCH_RUN_BF16
                                                       : KBENCH_RUN_F16;
    const int stored = c->quant.stored == QDQ_DTYPE_U8   ? KBENCH_RUN_U8
                       : c->quant.stored == QDQ_DTYPE_S8 ? KBENCH_RUN_S8
                       : c->quant.stored == QDQ_DTYPE_U4 ? KBENCH_RUN_U4
                       : c->quant.stored == QDQ_DTYPE_S4 ? KBENCH_RUN_S4
                                                         : KBENCH_N_RUN_STORED;
    if (!floors || stored == KBENCH_N_RUN_STORED || c->run == 1 || c->quant.stream) return NULL;
    return c->quantize ? floors->quantize[real][stored] : floors->dequantize[real][stored];
}

static void run_runs_floor(void *arg, int part, int n_parts) {
    const quant_case *c = arg;
    size_t n_runs, first = kbench_part(c->n / c->run, 1, part, n_parts, &n_runs);
    const size_t src_bits = qdq_dtype_bits(c->quantize ? c->quant.real : c->quant.stored),
                 dst_bits = qdq_dtype_bits(c->quantize ? c->quant.stored : c->quant.real);
    runs_floor(c)((const char *)c->src + first * c->run * src_bits / 8, (char *)c->dst + first * c->run * dst_bits / 8,
                  n_runs, c->run, c->scales + first, c->zps ? c->zps + first : NULL);
}

static bench_tensor tensor(const quant_case *c, void *data, qdq_dtype dtype) {
    const int64_t d[3] = {(int64_t)c->dims[0], (int64_t)c->dims[1], (int64_t)c->dims[2]};
    return (bench_tensor){
        .data = data, .dtype = dtype, .ndims = 3, .dims = {d[0], d[1], d[2]}, .strides = {d[1] * d[2], d[2], 1}};
}

/* Zero points along an axis, and other types than bytes: oneDNN has none. */
static bench_peer *peer(void *arg) {
    const quant_case *c = arg;
    bench_tensor real = tensor(c, c->quantize ? c->src : c->dst, c->quant.real);
    bench_tensor stored = tensor(c, c->quantize ? c->dst : c->src, c->quant.stored);
    if (c->axis >= 0) {
        stored.scales = c->scales;
        stored.scale_mask = 1 << c->axis;
        if (c->zps) return NULL;
    } else {
        stored.scale = c->scales[0];
        stored.zp = c->zps ? c->zps[0] : 0;
    }
    return c->quantize ? bench_peer_reorder(&real, &stored) : bench_peer_reorder(&stored, &real);
}

typedef struct form {
    const char *name;
    int axis;
    size_t group; /* of the last axis */
    bool has_zp;
} form;

static const form tensor_form = {"tensor", -1, 0, false}, tensor_zp = {"tensor+zp", -1, 0, true},
                  axis0 = {"axis 0", 0, 0, false}, axis1 = {"axis 1", 1, 0, false}, last = {"last axis", 2, 0, false},
                  last_zp = {"last axis+zp", 2, 0, true}, group32 = {"group 32+zp", -1, 32, true},
                  group128 = {"group 128+zp", -1, 128, true};

static qk_quant_map map_of(const form *f, const size_t *dims) {
    if (f->group) return (qk_quant_map){dims[1], dims[2], 1, f->group, dims[1] * ((dims[2] + f->group - 1) / f->group)};
    switch (f->axis) {
    case 0: return (qk_quant_map){dims[0], dims[1] * dims[2], 1, dims[1] * dims[2], 0};
    case 1: return (qk_quant_map){dims[1], dims[2], 1, dims[2], 0};
    case 2: return (qk_quant_map){1, dims[2], 1, 1, 0};
    default: return QK_QUANT_PER_TENSOR;
    }
}

static size_t bits_of(qdq_dtype dtype) {
    return qdq_dtype_bits(dtype);
}

typedef struct shape {
    const char *name;
    size_t dims[3];
} shape;

static void measure(kbench *b, bool quantize, qdq_dtype real, qdq_dtype stored, const form *f, const shape *s) {
    char name[96];
    if (quantize)
        snprintf(name, sizeof name, "quantize %s %s %s %s", qdq_dtype_name(real), qdq_dtype_name(stored), f->name,
                 s->name);
    else
        snprintf(name, sizeof name, "dequantize %s %s %s %s", qdq_dtype_name(stored), qdq_dtype_name(real), f->name,
                 s->name);
    if (!kbench_wants(b, name)) return;
    const size_t n = s->dims[0] * s->dims[1] * s->dims[2];
    const size_t real_bytes = n * bits_of(real) / 8, stored_bytes = n * bits_of(stored) / 8;
    const size_t n_params = f->group       ? s->dims[0] * s->dims[1] * ((s->dims[2] + f->group - 1) / f->group)
                            : f->axis >= 0 ? s->dims[f->axis]
                                           : 1;
    quant_case c = {.quantize = quantize,
                    .n = n,
                    .dims = {s->dims[0], s->dims[1], s->dims[2]},
                    .axis = f->axis,
                    .run = f->group       ? f->group
                           : f->axis == 2 ? 1
                           : f->axis == 1 ? s->dims[2]
                           : f->axis == 0 ? s->dims[1] * s->dims[2]
                                          : n};
    /* as many as there are runs, and some more, for the hand-written loops */
    const size_t n_scales = (n / c.run > n_params ? n / c.run : n_params) + 16;
    c.scales = kbench_buffer(b, n_scales * sizeof *c.scales);
    c.zps = f->has_zp ? kbench_buffer(b, n_scales * sizeof *c.zps) : NULL;
    for (size_t i = 0; i < n_scales; i++) {
        c.scales[i] = 0.021347f;
        if (c.zps) c.zps[i] = 3;
    }
    void *reals = kbench_floats(b, n);
    if (real != QDQ_DTYPE_F32) { /* of f16 they are other values, about as large */
        const uint32_t *words = reals;
        uint16_t *half = kbench_buffer(b, real_bytes);
        for (size_t i = 0; i < n; i++)
            half[i] = (uint16_t)(words[i] >> 16);
        reals = half;
    }
    void *integers = kbench_buffer(b, stored_bytes);
    c.src = quantize ? reals : integers;
    c.dst = quantize ? integers : reals;
    c.quant.real = real;
    c.quant.stored = stored;
    c.quant.order = QK_ADD_THEN_ROUND;
    c.quant.map = map_of(f, s->dims);
    c.quant.stream = (quantize ? stored_bytes : real_bytes) >= qk_isa_stream_bytes();
    const bool has_floor = kbench_floors_of_host() && stored == QDQ_DTYPE_S8 && real == QDQ_DTYPE_F32 &&
                           f == &tensor_form && n % QK_QUANT_SPLIT == 0;
    const kbench_case k = {.name = name,
                           .read_bytes = quantize ? real_bytes : stored_bytes,
                           .write_bytes = quantize ? stored_bytes : real_bytes,
                           .max_parts = kbench_worth(n, QK_QUANT_GRAIN),
                           .prepare = prepare,
                           .run = run,
                           .floor = has_floor        ? run_floor
                                    : runs_floor(&c) ? run_runs_floor
                                                     : NULL,
                           .peer = f->group || bits_of(stored) == 4 ? NULL : peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

/* ---- the range of a tensor, and its quantization with that: as backend/lower does it ---- */

enum { MAX_PARTS = 64 };

typedef struct dynamic_case {
    qk_quant quant;
    float *src;
    uint8_t *dst;
    size_t n;
    float lo[MAX_PARTS], hi[MAX_PARTS];
} dynamic_case;

static qk_isa prepare_dynamic(void *arg, int n_threads) {
    dynamic_case *c = arg;
    (void)n_threads;
    return qk_quant_init(&c->quant) ? qk_quant_isa(&c->quant) : QK_ISA_ref;
}

static void run_dynamic(void *arg, int part, int n_parts) {
    enum { PIECE = 256 * QK_QUANT_SPLIT };
    dynamic_case *c = arg;
    size_t n, first = kbench_part(c->n, QK_QUANT_SPLIT, part, n_parts, &n);
    qk_minmax_f32(c->src + first, n, &c->lo[part], &c->hi[part]);
    if (n_parts > 1) {
#pragma omp barrier
    }
    float lo = 0.0f, hi = 0.0f;
    for (int i = 0; i < n_parts; i++) {
        lo = fminf(lo, c->lo[i]);
        hi = fmaxf(hi, c->hi[i]);
    }
    const float scale = (hi - lo) / 255.0f;
    const int32_t zp = (int32_t)rintf(fminf(fmaxf(0.0f - lo / scale, 0.0f), 255.0f));
    /* what was read last is still in the caches */
    for (size_t left = n, m; left > 0; left -= m) {
        m = left % PIECE != 0 ? left % PIECE : PIECE;
        qk_quantize(&c->quant, &scale, &zp, c->src, c->dst, first + left - m, m);
    }
}

static bench_peer *dynamic_peer(void *arg) {
    const dynamic_case *c = arg;
    const int64_t n = (int64_t)c->n;
    const bench_tensor src = {.data = c->src, .dtype = QDQ_DTYPE_F32, .ndims = 1, .dims = {n}, .strides = {1}};
    const bench_tensor dst = {
        .data = c->dst, .dtype = QDQ_DTYPE_U8, .ndims = 1, .dims = {n}, .strides = {1}, .scale = 0.01f, .zp = 128};
    return bench_peer_dynamic_quantize(&src, &dst);
}

/* The range must be known first: elements are read twice. */
static void measure_dynamic(kbench *b, const shape *s) {
    char name[96];
    snprintf(name, sizeof name, "dynamic quantize f32 u8 %s", s->name);
    if (!kbench_wants(b, name)) return;
    dynamic_case c = {.n = s->dims[0] * s->dims[1] * s->dims[2]};
    c.src = kbench_floats(b, c.n);
    c.dst = kbench_buffer(b, c.n);
    c.quant = (qk_quant){QDQ_DTYPE_F32, QDQ_DTYPE_U8, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR, false, NULL};
    c.quant.stream = c.n >= qk_isa_stream_bytes();
    const size_t worth = kbench_worth(c.n, QK_QUANT_GRAIN);
    const kbench_case k = {.name = name,
                           .read_bytes = 8 * c.n,
                           .write_bytes = c.n,
                           .max_parts = worth < MAX_PARTS ? worth : MAX_PARTS,
                           .prepare = prepare_dynamic,
                           .run = run_dynamic,
                           .peer = dynamic_peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

void kbench_quant(kbench *b) {
    /* 320 KiB in all, within any L2; what facts about others are often given for; and far more than any cache. */
    static const shape small = {"64K", {4, 64, 256}}, middle = {"200K", {1, 64, 3136}},
                       large = {"26M", {32, 256, 3136}};
    static const qdq_dtype bytes[] = {QDQ_DTYPE_S8, QDQ_DTYPE_U8},
                           wide[] = {QDQ_DTYPE_S16, QDQ_DTYPE_U16, QDQ_DTYPE_S32},
                           four[] = {QDQ_DTYPE_S4, QDQ_DTYPE_U4}, half[] = {QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    static const form *const plain[] = {&tensor_form, &tensor_zp, &axis0, &axis1, &last, &last_zp};
    for (int way = 0; way < 2; way++) {
        for (size_t t = 0; t < 2; t++)
            for (size_t f = 0; f < sizeof plain / sizeof plain[0]; f++)
                measure(b, way == 0, QDQ_DTYPE_F32, bytes[t], plain[f], &small);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_S8, &tensor_form, &middle);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_U8, &tensor_zp, &middle);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_S8, &last, &middle);
        for (size_t t = 0; t < 3; t++)
            measure(b, way == 0, QDQ_DTYPE_F32, wide[t], &tensor_form, &small);
        for (size_t t = 0; t < 2; t++) {
            measure(b, way == 0, half[t], QDQ_DTYPE_S8, &tensor_form, &small);
            measure(b, way == 0, half[t], QDQ_DTYPE_U8, &axis1, &small);
        }
        for (size_t t = 0; t < 2; t++) {
            measure(b, way == 0, QDQ_DTYPE_F32, four[t], &tensor_form, &small);
            measure(b, way == 0, QDQ_DTYPE_F32, four[t], &group32, &small);
            measure(b, way == 0, QDQ_DTYPE_F32, four[t], &group128, &small);
        }
        measure(b, way == 0, QDQ_DTYPE_BF16, QDQ_DTYPE_U4, &group128, &small);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_S8, &tensor_form, &large);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_U8, &tensor_zp, &large);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_S8, &axis1, &large);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_S8, &last, &large);
        measure(b, way == 0, QDQ_DTYPE_F32, QDQ_DTYPE_U4, &group128, &large);
        measure(b, way == 0, QDQ_DTYPE_BF16, QDQ_DTYPE_S8, &tensor_form, &large);
    }
    measure_dynamic(b, &small);
    measure_dynamic(b, &middle);
    measure_dynamic(b, &large);
}
