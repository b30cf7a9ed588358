/* Normalisations on kernels/norm. A source of 8 bits with one scale is dequantized on the way. */
#include "kernels/norm/norm.h"
#include "native/native_rows.h"

#include <math.h>
#include <stdio.h>

enum { GRAIN_ELEMS = 8 * 1024, ROOM = 4096, MAX_CHANNELS = 512 };

typedef struct norm_impl {
    qk_norm norm;
    const qk_norm_fns *fns;
    qdqi_native_attr_args args;
    qdqi_native_end end;
    uint32_t src, dst, gamma, beta, mean, variance, scratch;
    /* lines: n_rows of n. Groups: images of `groups` groups of `size` channels of `points`. */
    int64_t n_rows, n;
    int64_t images, groups, size, points, channels;
    int64_t chunks; /* of an image's groups: a task each */
    size_t src_bytes, dst_bytes;
} norm_impl;

typedef struct norm_job {
    const norm_impl *impl;
    qk_norm norm;
    void *const *bufs;
} norm_job;

static norm_job job_of(const norm_impl *s, void *const *bufs) {
    norm_job job = {s, s->norm, bufs};
    job.norm.src_scale = qdqi_native_src_scale(&s->args, bufs);
    job.norm.src_zp = qdqi_native_src_zp(&s->args, bufs);
    if (!s->end.quantizes) return job;
    const qdqi_native_quantum q = qdqi_native_quantum_of(&s->end, bufs);
    job.norm.dst_factor = q.factor;
    job.norm.zp_first = q.zp_first;
    return job;
}

static float *vector(const norm_job *job, uint32_t arg, int64_t first) {
    return arg == QDQI_NO_ARG ? NULL : (float *)job->bufs[arg] + first;
}
static const char *src_at(const norm_job *job, int64_t elem) {
    return (const char *)job->bufs[job->impl->src] + (size_t)elem * job->impl->src_bytes;
}
static char *dst_at(const norm_job *job, int64_t elem) {
    return (char *)job->bufs[job->impl->dst] + (size_t)elem * job->impl->dst_bytes;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static void some_lines(int64_t first, int64_t n, void *arg) {
    const norm_job *job = arg;
    const norm_impl *s = job->impl;
    const float *gamma = vector(job, s->gamma, 0), *beta = vector(job, s->beta, 0);
    float line[ROOM];
    if (s->end.fn == NULL) {
        s->fns->rows(&job->norm, src_at(job, first * s->n), dst_at(job, first * s->n), gamma, beta,
                     vector(job, s->mean, first), vector(job, s->variance, first), (size_t)n, (size_t)s->n);
        return;
    }
    for (int64_t r = first; r < first + n; r++) {
        s->fns->rows(&job->norm, src_at(job, r * s->n), line, gamma, beta, vector(job, s->mean, r),
                     vector(job, s->variance, r), 1, (size_t)s->n);
        qdqi_native_end_line(&s->end, job->bufs, dst_at(job, r * s->n), r, line, s->n);
    }
}

static qdq_status run_lines(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const norm_impl *s = impl;
    norm_job job = job_of(s, bufs);
    qdqi_native_parallel(engine, s->n_rows, s->n_rows * s->n, GRAIN_ELEMS, some_lines, &job);
    return QDQ_OK;
}

/* ---- groups of channels ----------------------------------------------------------------------------------------- */

/* How a channel's stored elements become results: (q - mean) * mul + add. */
typedef struct channel {
    float mean, mul, add;
} channel;

static channel channel_of(const norm_job *job, qk_moments m, int64_t ch) {
    const float *gamma = vector(job, job->impl->gamma, ch), *beta = vector(job, job->impl->beta, ch);
    const double scale = (double)job->norm.src_scale;
    const double factor = scale / sqrt(m.variance * scale * scale + (double)job->norm.epsilon);
    const double mul = gamma == NULL ? factor : factor * (double)*gamma;
    const float mean = (float)m.mean;
    return (channel){mean, (float)mul, (float)((beta == NULL ? 0.0 : (double)*beta) + ((double)mean - m.mean) * mul)};
}

static void keep_stats(const norm_job *job, qk_moments m, int64_t at) {
    float *mean = vector(job, job->impl->mean, at), *variance = vector(job, job->impl->variance, at);
    const double scale = (double)job->norm.src_scale;
    if (mean != NULL) *mean = (float)((m.mean - (double)job->norm.src_zp) * scale);
    if (variance != NULL) *variance = (float)(m.variance * scale * scale);
}

/* Channels outside of their points: a group is one run. */
static void groups_of_runs(int64_t first, int64_t n, void *arg) {
    const norm_job *job = arg;
    const norm_impl *s = job->impl;
    for (int64_t g = first; g < first + n; g++) {
        const int64_t at = g * s->size * s->points, ch = g % s->groups * s->size;
        const qk_moments m = s->fns->moments(&job->norm, src_at(job, at), 1, 0, (size_t)(s->size * s->points));
        keep_stats(job, m, g);
        for (int64_t k = 0; k < s->size; k++) {
            const channel c = channel_of(job, m, ch + k);
            s->fns->apply(&job->norm, src_at(job, at + k * s->points), dst_at(job, at + k * s->points),
                          (size_t)s->points, c.mean, c.mul, c.add);
        }
    }
}

/* Channels inside: groups lie beside each other. Group g0…g1 of one image. */
static void groups_of_columns(const norm_job *job, int64_t image, int64_t g0, int64_t g1) {
    const norm_impl *s = job->impl;
    const int64_t ch = g0 * s->size, at = image * s->points * s->channels + ch;
    const size_t cols = (size_t)((g1 - g0) * s->size), stride = (size_t)s->channels, points = (size_t)s->points;
    const double count = (double)s->size * (double)s->points;
    double sums[MAX_CHANNELS] = {0}, squares[MAX_CHANNELS] = {0};
    float means[MAX_CHANNELS], muls[MAX_CHANNELS], adds[MAX_CHANNELS];
    qk_moments m[MAX_CHANNELS];
    s->fns->col_sums(&job->norm, src_at(job, at), points, cols, stride, NULL, sums);
    for (int64_t g = 0; g < g1 - g0; g++) {
        double sum = 0.0;
        for (int64_t k = 0; k < s->size; k++)
            sum += sums[g * s->size + k];
        m[g].mean = sum / count;
        for (int64_t k = 0; k < s->size; k++)
            means[g * s->size + k] = (float)m[g].mean;
    }
    s->fns->col_sums(&job->norm, src_at(job, at), points, cols, stride, means, squares);
    for (int64_t g = 0; g < g1 - g0; g++) {
        const double off = (double)means[g * s->size] - m[g].mean;
        double sum = 0.0;
        for (int64_t k = 0; k < s->size; k++)
            sum += squares[g * s->size + k];
        m[g].variance = fmax(sum / count - off * off, 0.0);
        keep_stats(job, m[g], image * s->groups + g0 + g);
        for (int64_t k = g * s->size; k < (g + 1) * s->size; k++) {
            const channel c = channel_of(job, m[g], ch + k);
            muls[k] = c.mul;
            adds[k] = c.add;
        }
    }
    s->fns->apply_cols(&job->norm, src_at(job, at), dst_at(job, at), points, cols, stride, means, muls, adds);
}

static void image_chunks(int64_t first, int64_t n, void *arg) {
    const norm_job *job = arg;
    const norm_impl *s = job->impl;
    const int64_t per_chunk = (s->groups + s->chunks - 1) / s->chunks;
    for (int64_t task = first; task < first + n; task++) {
        const int64_t g0 = task % s->chunks * per_chunk, g1 = g0 + per_chunk < s->groups ? g0 + per_chunk : s->groups;
        if (g0 < g1) groups_of_columns(job, task / s->chunks, g0, g1);
    }
}

static qdq_status run_groups(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const norm_impl *s = impl;
    norm_job job = job_of(s, bufs);
    const int64_t work = s->images * s->channels * s->points;
    if (s->chunks == 0)
        qdqi_native_parallel(engine, s->images * s->groups, work, GRAIN_ELEMS, groups_of_runs, &job);
    else
        qdqi_native_parallel(engine, s->images * s->chunks, work, GRAIN_ELEMS, image_chunks, &job);
    return QDQ_OK;
}

/* ---- moments that are given ------------------------------------------------------------------------------------- */

static void some_channels(int64_t first, int64_t n, void *arg) {
    const norm_job *job = arg;
    const norm_impl *s = job->impl;
    const float *means = job->bufs[s->scratch], *muls = means + s->channels, *adds = muls + s->channels;
    if (s->chunks != 0) { /* rows of channels */
        s->fns->apply_cols(&job->norm, src_at(job, first * s->channels), dst_at(job, first * s->channels), (size_t)n,
                           (size_t)s->channels, (size_t)s->channels, means, muls, adds);
        return;
    }
    for (int64_t r = first; r < first + n; r++) {
        const int64_t ch = r % s->channels;
        s->fns->apply(&job->norm, src_at(job, r * s->points), dst_at(job, r * s->points), (size_t)s->points, means[ch],
                      muls[ch], adds[ch]);
    }
}

static qdq_status run_given(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const norm_impl *s = impl;
    norm_job job = job_of(s, bufs);
    float *means = bufs[s->scratch], *muls = means + s->channels, *adds = muls + s->channels;
    const double scale = (double)job.norm.src_scale, zp = (double)job.norm.src_zp;
    for (int64_t c = 0; c < s->channels; c++) {
        const double mean = (double)*vector(&job, s->mean, c), variance = (double)*vector(&job, s->variance, c);
        const double mul = (double)*vector(&job, s->gamma, c) / sqrt(variance + (double)s->norm.epsilon);
        const double stored = zp + mean / scale;
        means[c] = (float)stored;
        muls[c] = (float)(mul * scale);
        adds[c] = (float)((double)*vector(&job, s->beta, c) + ((double)means[c] - stored) * mul * scale);
    }
    const int64_t rows = s->chunks != 0 ? s->images * s->points : s->images * s->channels;
    qdqi_native_parallel(engine, rows, s->images * s->channels * s->points, 2 * GRAIN_ELEMS, some_channels, &job);
    return QDQ_OK;
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

typedef struct builder {
    qdqi_dnnl_md x, y;
    int32_t order[QDQ_MAX_NDIMS];
    qdqi_native_prim *prim;
    norm_impl *impl;
} builder;

static qdq_status start(builder *b, const qdqi_native_ops *ops, const char *primitive, const qdqi_dnnl_md *src,
                        const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, float epsilon, bool rms, qdq_error *err) {
    QDQI_TRY(qdqi_native_layout(src, primitive, &b->x, err));
    b->y = b->x; /* where the layout is ours to choose */
    b->y.dtype = dst->dtype;
    if (!dst->any) QDQI_TRY(qdqi_native_layout(dst, primitive, &b->y, err));
    if (!qdqi_native_same_layout(&b->x, &b->y) || !qdqi_native_memory_order(&b->x, b->order))
        return qdqi_native_refuse(err, primitive, "layout");
    if (!qdqi_native_src_ok(attr, &b->x)) return qdqi_native_refuse(err, primitive, "src_not_per_tensor");
    qk_norm kernel = {.src = b->x.dtype, .dst = b->y.dtype, .rms = rms, .epsilon = epsilon};
    kernel.src_scale = kernel.dst_factor = 1.0f;
    qk_isa isa;
    const qk_norm_fns *fns = qk_norm_choose(&kernel, &isa);
    if (fns == NULL) return qdqi_native_refuse(err, primitive, "dtype");
    char name[32];
    snprintf(name, sizeof name, "norm:%s", qk_isa_name(isa));
    b->prim = qdqi_native_new(ops, primitive, name, sizeof *b->impl, (void **)&b->impl);
    if (b->prim == NULL) return QDQI_NO_MEMORY(err);
    norm_impl *s = b->impl;
    s->norm = kernel;
    s->fns = fns;
    s->src_bytes = qdq_dtype_bits(b->x.dtype) / 8;
    s->dst_bytes = qdq_dtype_bits(b->y.dtype) / 8;
    s->gamma = s->beta = s->mean = s->variance = QDQI_NO_ARG;
    s->src = qdqi_native_add_md(b->prim, QDQI_DNNL_SRC, &b->x);
    s->dst = qdqi_native_add_md(b->prim, QDQI_DNNL_DST, &b->y);
    return QDQ_OK;
}

/* What failed, or the primitive. */
static qdq_status end(builder *b, qdq_status st, qdqi_dnnl_prim **out, qdq_error *err) {
    if (b->prim == NULL) return st;
    if (st == QDQ_OK) return qdqi_native_finish(b->prim, out, err);
    qdqi_native_drop(b->prim);
    return st;
}

static void add_vectors(builder *b, const qdqi_native_norm *request, int64_t n, int64_t n_stats) {
    norm_impl *s = b->impl;
    const qdq_dtype f32 = QDQ_DTYPE_F32;
    if (request->gamma) s->gamma = qdqi_native_add_vector(b->prim, QDQI_DNNL_NORM_SCALE, n, f32);
    if (request->beta) s->beta = qdqi_native_add_vector(b->prim, QDQI_DNNL_NORM_SHIFT, n, f32);
    if (!request->statistics) return;
    s->mean = qdqi_native_add_vector(b->prim, QDQI_DNNL_NORM_MEAN, n_stats, f32);
    s->variance = qdqi_native_add_vector(b->prim, QDQI_DNNL_NORM_VARIANCE, n_stats, f32);
}

static qdq_status make_lines(builder *b, const qdqi_native_norm *request, const qdqi_dnnl_md *src,
                             const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_lines};
    QDQI_TRY(start(b, &ops, "layernorm", src, dst, attr, request->epsilon, request->rms, err));
    norm_impl *s = b->impl;
    if (!qdqi_native_is_dense(&b->x) || request->axis < 0 || request->axis >= b->x.ndims)
        return qdqi_native_refuse(err, "layernorm", "layout");
    s->n_rows = s->n = 1;
    for (int32_t d = 0; d < b->x.ndims; d++)
        *(d < request->axis ? &s->n_rows : &s->n) *= b->x.dims[d];
    add_vectors(b, request, s->n, s->n_rows);
    int32_t order[QDQ_MAX_NDIMS];
    for (int32_t d = 0; d < b->x.ndims; d++)
        order[d] = d;
    const int32_t n_line = s->n <= ROOM ? b->x.ndims - request->axis : 0;
    QDQI_TRY(qdqi_native_end_init(&s->end, b->prim, "layernorm", &b->x, &b->y, order, n_line, attr, &s->args, err));
    if (s->end.fn != NULL) s->norm.dst = QDQ_DTYPE_F32;
    return QDQ_OK;
}

/* Images, channels, points, and whether the channels are innermost in memory. */
static qdq_status set_channels(builder *b, int32_t dim, const char *primitive, bool *inside, qdq_error *err) {
    norm_impl *s = b->impl;
    int32_t at = -1, last = -1;
    if (b->x.ndims < 2) return qdqi_native_refuse(err, primitive, "rank");
    s->images = b->x.dims[0];
    s->channels = b->x.dims[dim];
    s->points = qdqi_native_n_elems(&b->x) / s->images / s->channels;
    for (int32_t k = 0, seen = 0; k < b->x.ndims; k++) {
        const int32_t d = b->order[k];
        if (b->x.dims[d] == 1) continue;
        if (d == 0 && seen != 0) return qdqi_native_refuse(err, primitive, "layout"); /* images inside of something */
        if (d == dim) at = seen;
        if (d != 0) seen++;
        last = seen;
    }
    *inside = at > 0;
    if (at > 0 && at + 1 != last) return qdqi_native_refuse(err, primitive, "layout"); /* between its points */
    return QDQ_OK;
}

static qdq_status make_groups(builder *b, const qdqi_native_norm *request, const qdqi_dnnl_md *src,
                              const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_groups};
    bool inside;
    QDQI_TRY(start(b, &ops, "groupnorm", src, dst, attr, request->epsilon, false, err));
    norm_impl *s = b->impl;
    QDQI_TRY(set_channels(b, request->axis, "groupnorm", &inside, err));
    s->groups = request->groups;
    if (s->channels % s->groups != 0) return qdqi_native_refuse(err, "groupnorm", "group_size");
    s->size = s->channels / s->groups;
    if (inside) {
        const int64_t per_chunk = s->size >= MAX_CHANNELS / 4 ? 1 : MAX_CHANNELS / 4 / s->size;
        if (s->size > MAX_CHANNELS) return qdqi_native_refuse(err, "groupnorm", "group_size");
        s->chunks = (s->groups + per_chunk - 1) / per_chunk;
    }
    add_vectors(b, request, s->channels, s->images * s->groups);
    return qdqi_native_end_init(&s->end, b->prim, "groupnorm", &b->x, &b->y, b->order, 0, attr, &s->args, err);
}

qdq_status qdqi_native_normalization(const qdqi_native_norm *request, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                     const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    builder b = {0};
    const qdq_status st = request->groups == 0 ? make_lines(&b, request, src, dst, attr, err)
                                               : make_groups(&b, request, src, dst, attr, err);
    return end(&b, st, out, err);
}

qdq_status qdqi_native_layernorm(float epsilon, bool use_affine, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdqi_native_norm request = {
        .axis = src->ndims - 1, .epsilon = epsilon, .gamma = use_affine, .beta = use_affine};
    return qdqi_native_normalization(&request, src, dst, attr, out, err);
}

qdq_status qdqi_native_groupnorm(int64_t groups, float epsilon, bool use_affine, const qdqi_dnnl_md *src,
                                 const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                 qdq_error *err) {
    const qdqi_native_norm request = {
        .axis = 1, .groups = groups, .epsilon = epsilon, .gamma = use_affine, .beta = use_affine};
    if (groups < 1) return qdqi_native_refuse(err, "groupnorm", "group_count");
    return qdqi_native_normalization(&request, src, dst, attr, out, err);
}

static qdq_status make_given(builder *b, float epsilon, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                             const qdqi_dnnl_attr *attr, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run_given};
    const qdqi_native_norm request = {.gamma = true, .beta = true, .statistics = true};
    bool inside;
    QDQI_TRY(start(b, &ops, "batchnorm", src, dst, attr, epsilon, false, err));
    norm_impl *s = b->impl;
    QDQI_TRY(set_channels(b, 1, "batchnorm", &inside, err));
    s->chunks = inside;
    add_vectors(b, &request, s->channels, s->channels);
    s->scratch = qdqi_native_add_scratch(b->prim, 3 * sizeof(float) * (size_t)s->channels);
    return qdqi_native_end_init(&s->end, b->prim, "batchnorm", &b->x, &b->y, b->order, 0, attr, &s->args, err);
}

qdq_status qdqi_native_batchnorm(float epsilon, bool fuse_relu, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    builder b = {0};
    if (fuse_relu) return qdqi_native_refuse(err, "batchnorm", "post_ops");
    return end(&b, make_given(&b, epsilon, src, dst, attr, err), out, err);
}
