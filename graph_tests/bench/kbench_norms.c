/* Normalisations, as the native primitives call them: of lines by their own moments, of planes and channels by their group's or by
 * given ones. */
#include "bench_peer_lines.h"
#include "kbench.h"
#include "kbench_floor_lines.h"
#include "kernels/norm/norm.h"

#include <math.h>
#include <stdio.h>

enum { GRAIN_ELEMS = 8 * 1024, MAX_COLS = 512 };

typedef enum norm_how {
    LAYER, /* n_rows lines of n */
    RMS,
    BATCH_NCX, /* images x channels x points, moments given */
    BATCH_NXC,
    GROUP_NCX /* images x channels x points in 32 groups */
} norm_how;

typedef struct norm_case {
    qk_norm norm;
    const qk_norm_fns *fns;
    norm_how how;
    char *src, *dst;
    float *gamma, *beta, *mean, *variance;
    size_t images, channels, points, groups; /* lines: images of `points` */
} norm_case;

typedef struct norm_row {
    const char *what;
    qdq_dtype src, dst;
    const char *size;
    norm_how how;
    size_t images, channels, points;
} norm_row;

static size_t bytes_of(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

static qk_isa prepare(void *arg, int n_threads) {
    norm_case *c = arg;
    qk_isa isa = QK_ISA_ref;
    (void)n_threads;
    c->fns = qk_norm_choose(&c->norm, &isa);
    return isa;
}

static const char *src_at(const norm_case *c, size_t i) {
    return c->src + i * bytes_of(c->norm.src);
}
static char *dst_at(const norm_case *c, size_t i) {
    return c->dst + i * bytes_of(c->norm.dst);
}

static void run_lines(void *arg, int part, int n_parts) {
    const norm_case *c = arg;
    size_t n, first = kbench_part(c->images, 1, part, n_parts, &n);
    const bool affine = c->how == LAYER;
    if (n != 0)
        c->fns->rows(&c->norm, src_at(c, first * c->points), dst_at(c, first * c->points), c->gamma,
                     affine ? c->beta : NULL, NULL, NULL, n, c->points);
}

static void floor_lines(void *arg, int part, int n_parts) {
    const norm_case *c = arg;
    const kbench_lines_floors *f = kbench_lines_floors_here();
    size_t n, first = kbench_part(c->images, 1, part, n_parts, &n);
    const void *x = src_at(c, first * c->points);
    void *y = dst_at(c, first * c->points);
    if (c->norm.dst == QDQ_DTYPE_F32)
        f->norm_f32(x, y, c->gamma, c->beta, n, c->points);
    else if (c->norm.src == QDQ_DTYPE_F32)
        f->norm_f32_s8(x, y, c->gamma, c->beta, n, c->points);
    else
        f->norm_s8(x, y, c->gamma, c->beta, n, c->points);
}

static bool has_floor(const norm_row *row) {
    const bool f32 = row->src == QDQ_DTYPE_F32 && (row->dst == QDQ_DTYPE_F32 || row->dst == QDQ_DTYPE_S8);
    return kbench_lines_floors_here() != NULL && row->how == LAYER && row->points % 64 == 0 &&
           (f32 || (row->src == QDQ_DTYPE_S8 && row->dst == QDQ_DTYPE_S8));
}

static void run_batch(void *arg, int part, int n_parts) {
    const norm_case *c = arg;
    const float scale = bytes_of(c->norm.src) == 1 ? c->norm.src_scale : 1.0f;
    float muls[MAX_COLS];
    for (size_t k = 0; k < c->channels; k++)
        muls[k] = c->gamma[k] * scale / sqrtf(c->variance[k] * scale * scale + c->norm.epsilon);
    if (c->how == BATCH_NXC) {
        size_t n, first = kbench_part(c->images * c->points, 1, part, n_parts, &n);
        c->fns->apply_cols(&c->norm, src_at(c, first * c->channels), dst_at(c, first * c->channels), n, c->channels,
                           c->channels, c->mean, muls, c->beta);
        return;
    }
    size_t n, first = kbench_part(c->images * c->channels, 1, part, n_parts, &n);
    for (size_t r = first; r < first + n; r++) {
        const size_t k = r % c->channels;
        c->fns->apply(&c->norm, src_at(c, r * c->points), dst_at(c, r * c->points), c->points, c->mean[k], muls[k],
                      c->beta[k]);
    }
}

static void run_groups(void *arg, int part, int n_parts) {
    const norm_case *c = arg;
    const size_t size = c->channels / c->groups;
    const double scale = bytes_of(c->norm.src) == 1 ? (double)c->norm.src_scale : 1.0;
    size_t n, first = kbench_part(c->images * c->groups, 1, part, n_parts, &n);
    for (size_t g = first; g < first + n; g++) {
        const size_t at = g * size * c->points;
        const qk_moments m = c->fns->moments(&c->norm, src_at(c, at), 1, 0, size * c->points);
        const double factor = scale / sqrt(m.variance * scale * scale + (double)c->norm.epsilon);
        for (size_t k = 0; k < size; k++) {
            const size_t ch = g % c->groups * size + k, from = at + k * c->points;
            c->fns->apply(&c->norm, src_at(c, from), dst_at(c, from), c->points, (float)m.mean,
                          (float)(factor * (double)c->gamma[ch]), c->beta[ch]);
        }
    }
}

static bench_tensor tensor(const norm_case *c, bool is_dst) {
    const qdq_dtype dtype = is_dst ? c->norm.dst : c->norm.src;
    bench_tensor t = {.data = is_dst ? c->dst : c->src, .dtype = dtype, .ndims = 2};
    if (bytes_of(dtype) == 1 && is_dst && c->how != BATCH_NCX && c->how != BATCH_NXC) t.scale = 0.03f;
    t.dims[0] = (int64_t)c->images;
    t.dims[1] = t.strides[0] = (int64_t)c->points;
    t.strides[1] = 1;
    if (c->how == LAYER || c->how == RMS) return t;
    t.ndims = 4;
    t.dims[1] = (int64_t)c->channels;
    t.dims[2] = (int64_t)c->points;
    t.dims[3] = 1;
    t.strides[0] = (int64_t)(c->channels * c->points);
    t.strides[1] = c->how == BATCH_NXC ? 1 : (int64_t)c->points;
    t.strides[2] = t.strides[3] = c->how == BATCH_NXC ? (int64_t)c->channels : 1;
    return t;
}

static bench_peer *peer(void *arg) {
    const norm_case *c = arg;
    const bench_tensor s = tensor(c, false), d = tensor(c, true);
    if (c->how == LAYER) return bench_peer_layernorm(&s, &d, c->gamma, c->beta);
    if (c->how == GROUP_NCX) return bench_peer_groupnorm(&s, &d, (int64_t)c->groups, c->gamma, c->beta);
    if (c->how == RMS) return NULL; /* not a primitive of its 3.7 */
    return bench_peer_batchnorm(&s, &d, c->mean, c->variance, c->gamma, c->beta);
}

static void measure(kbench *b, const norm_row *row) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s %s", row->what, qdq_dtype_name(row->src), qdq_dtype_name(row->dst),
             row->size);
    if (!kbench_wants(b, name)) return;
    const size_t n = row->images * row->channels * row->points;
    const size_t n_params = row->channels == 1 ? row->points : row->channels;
    norm_case c = {.how = row->how, .images = row->images, .channels = row->channels, .points = row->points};
    c.groups = row->how == GROUP_NCX && row->channels > 32 ? 32 : row->channels;
    c.src = kbench_typed(b, row->src, n);
    c.dst = kbench_buffer(b, n * bytes_of(row->dst));
    c.gamma = kbench_floats(b, n_params);
    c.beta = kbench_floats(b, n_params);
    c.mean = kbench_floats(b, n_params);
    c.variance = kbench_floats(b, n_params);
    for (size_t i = 0; i < n_params; i++)
        c.variance[i] = fabsf(c.variance[i]) + 0.5f;
    c.norm = (qk_norm){.src = row->src,
                       .dst = row->dst,
                       .rms = row->how == RMS,
                       .epsilon = 1e-5f,
                       .src_scale = 0.04f,
                       .dst_factor = 33.0f};
    const kbench_case k = {.kernel = "norm",
                           .name = name,
                           .read_bytes = n * bytes_of(row->src),
                           .write_bytes = n * bytes_of(row->dst),
                           .max_parts = kbench_worth(n, GRAIN_ELEMS),
                           .prepare = prepare,
                           .run = row->how == GROUP_NCX                  ? run_groups
                                  : row->how == LAYER || row->how == RMS ? run_lines
                                                                         : run_batch,
                           .floor = has_floor(row) ? floor_lines : NULL,
                           .peer = peer,
                           .arg = &c};
    kbench_measure(b, &k);
}

#define TYPES(src, dst) QDQ_DTYPE_##src, QDQ_DTYPE_##dst

static const norm_row norm_rows[] = {
    {"layernorm", TYPES(F32, F32), "1024x768", LAYER, 1024, 1, 768},
    {"layernorm", TYPES(F32, S8), "1024x768", LAYER, 1024, 1, 768},
    {"layernorm", TYPES(S8, S8), "1024x768", LAYER, 1024, 1, 768},
    {"layernorm", TYPES(U8, U8), "1024x768", LAYER, 1024, 1, 768},
    {"layernorm", TYPES(S8, F32), "1024x768", LAYER, 1024, 1, 768},
    {"layernorm", TYPES(F32, F32), "16x64", LAYER, 16, 1, 64},
    {"layernorm", TYPES(S8, S8), "16x64", LAYER, 16, 1, 64},
    {"layernorm", TYPES(F32, F32), "8192x16", LAYER, 8192, 1, 16},
    {"layernorm", TYPES(F32, F32), "8192x96", LAYER, 8192, 1, 96},
    {"layernorm", TYPES(F32, F32), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(F32, S8), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(BF16, BF16), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(F16, F16), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(BF16, S8), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(BF16, F32), "384x768", LAYER, 384, 1, 768},
    {"layernorm", TYPES(F32, F32), "128x1024", LAYER, 128, 1, 1024},
    {"layernorm", TYPES(S8, S8), "128x1024", LAYER, 128, 1, 1024},
    {"layernorm", TYPES(F32, F32), "1x4096", LAYER, 1, 1, 4096},
    {"layernorm", TYPES(S8, S8), "1x4096", LAYER, 1, 1, 4096},
    {"layernorm", TYPES(F32, F32), "2048x4096", LAYER, 2048, 1, 4096},
    {"layernorm", TYPES(F32, S8), "2048x4096", LAYER, 2048, 1, 4096},
    {"layernorm", TYPES(S8, S8), "2048x4096", LAYER, 2048, 1, 4096},
    {"layernorm", TYPES(F32, F32), "16x16384", LAYER, 16, 1, 16384},
    {"rmsnorm", TYPES(F32, F32), "1x4096", RMS, 1, 1, 4096},
    {"rmsnorm", TYPES(F32, S8), "1x4096", RMS, 1, 1, 4096},
    {"rmsnorm", TYPES(BF16, BF16), "128x4096", RMS, 128, 1, 4096},
    {"rmsnorm", TYPES(F32, S8), "2048x4096", RMS, 2048, 1, 4096},
    {"batchnorm nchw", TYPES(F32, F32), "8x64x56x56", BATCH_NCX, 8, 64, 3136},
    {"batchnorm nhwc", TYPES(F32, F32), "8x64x56x56", BATCH_NXC, 8, 64, 3136},
    {"batchnorm nchw", TYPES(S8, S8), "8x64x56x56", BATCH_NCX, 8, 64, 3136},
    {"batchnorm nhwc", TYPES(S8, S8), "8x64x56x56", BATCH_NXC, 8, 64, 3136},
    {"groupnorm nchw", TYPES(F32, F32), "1x320x32x32", GROUP_NCX, 1, 320, 1024},
    {"groupnorm nchw", TYPES(S8, S8), "1x320x32x32", GROUP_NCX, 1, 320, 1024},
    {"instancenorm nchw", TYPES(F32, F32), "1x32x128x128", GROUP_NCX, 1, 32, 16384},
};

void kbench_norms(kbench *b) {
    for (size_t i = 0; i < sizeof norm_rows / sizeof *norm_rows; i++)
        measure(b, &norm_rows[i]);
}
