/* Pooling along channels that are consecutive in memory: kernels/poolf, and kernels/post for what follows. */
#include "base/alloc.h"
#include "base/checked.h"
#include "kernels/poolf/poolf.h"
#include "native/native_post.h"

#include <math.h>
#include <stdio.h>

enum { TILE = 4096, RUNS = 32, CHANNELS = 1024, NEAR_BYTES = 16 * 1024, MIN_STRIP = 8, MAX_STRIP = 64 };
/* Elements looked at for each thread that is asked. */
#define POOL_GRAIN (32 * 1024)

typedef struct pool_impl {
    qdqi_native_post post;
    qdqi_native_attr_args args;
    uint32_t src, dst;
    qk_poolf_fn *fn;
    bool is_max, count_pad;
    bool is_plain;               /* results are stored as they are */
    size_t src_bytes, dst_bytes; /* of an element */
    int64_t n, channels, n_rows, work;
    int64_t strip; /* results of a row at a time */
    /* d, h, w; unused axes come first and have extent 1 */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    ptrdiff_t src_n, src_at[3]; /* elements */
    struct span *spans[2];      /* along d and h, by output index */
    qk_poolf_run *runs;         /* along w */
} pool_impl;

typedef struct job {
    const pool_impl *impl;
    void *const *bufs;
    int n_chunks;
} job;

/* The elements of one window along axis a that lie inside: first tap, how many; and how many count in an average. */
typedef struct span {
    int64_t first, n, counted;
} span;

static void clear(void *impl) {
    pool_impl *p = impl;
    for (int a = 0; a < 2; a++)
        qdqi_free(p->spans[a]);
    qdqi_free(p->runs);
}

static span span_of(const pool_impl *p, int a, int64_t o) {
    const int64_t start = o * p->stride[a] - p->pad_begin[a], step = p->dilation[a], k = p->kernel[a];
    const int64_t skip = start < 0 ? (-start + step - 1) / step : 0;
    const int64_t inside = start >= p->in[a] ? 0 : (p->in[a] - 1 - start) / step + 1;
    const int64_t end = inside < k ? inside : k;
    const int64_t padded = (p->in[a] + p->pad_end[a] - 1 - start) / step + 1;
    return (span){start + skip * step, end > skip ? end - skip : 0, padded < k ? padded : k};
}

/* The piece of the runs that results at … at+n-1 of a row are, as far as it fits; returns their number. */
static int64_t cut(const pool_impl *p, int64_t at, int64_t n, qk_poolf_run runs[RUNS]) {
    int64_t done = 0, begin = 0;
    const qk_poolf_run *r = p->runs;
    for (; begin + (int64_t)r->n <= at; r++)
        begin += (int64_t)r->n;
    for (int i = 0; i < RUNS && done < n; i++, r++) {
        const int64_t skip = at + done - begin, rest = (int64_t)r->n - skip;
        runs[i] = *r;
        runs[i].first += skip * r->by;
        runs[i].n = (size_t)(rest < n - done ? rest : n - done);
        begin += (int64_t)r->n;
        done += (int64_t)runs[i].n;
    }
    return done;
}

/* Results of one row: `row` and further ones, n in all, channels c … c+n_channels-1, to acc. Returns how many were done. */
static int64_t some_results(const pool_impl *p, const char *src, int64_t row, int64_t n, int64_t c, int64_t n_channels,
                            void *acc, int64_t acc_step) {
    qk_poolf_run runs[RUNS];
    const int64_t ow = row % p->out[2], oh = row / p->out[2] % p->out[1], od = row / p->out[2] / p->out[1] % p->out[0];
    const int64_t image = row / p->out[2] / p->out[1] / p->out[0];
    const span d = p->spans[0][od], h = p->spans[1][oh];
    const ptrdiff_t bytes = (ptrdiff_t)p->src_bytes;
    const int64_t done = cut(p, ow, n, runs);
    const qk_poolf_line line = {.n_d = (size_t)d.n,
                                .n_h = (size_t)h.n,
                                .d_bytes = (ptrdiff_t)p->dilation[0] * p->src_at[0] * bytes,
                                .h_bytes = (ptrdiff_t)p->dilation[1] * p->src_at[1] * bytes,
                                .n_out = (size_t)done,
                                .n_channels = (size_t)n_channels,
                                .dst_step = (size_t)acc_step,
                                .runs = runs,
                                .place_bytes = p->src_at[2] * bytes,
                                .dilation = p->dilation[2],
                                .counted = p->is_max      ? 0
                                           : p->count_pad ? d.counted * h.counted
                                                          : d.n * h.n};
    const ptrdiff_t at =
        image * p->src_n + (ptrdiff_t)d.first * p->src_at[0] + (ptrdiff_t)h.first * p->src_at[1] + (ptrdiff_t)c;
    p->fn(&line, src + at * bytes, acc);
    return done;
}

static void chunk(int i, void *arg) {
    _Alignas(64) float acc[TILE];
    const job *j = arg;
    const pool_impl *p = j->impl;
    qk_post_args args;
    qdqi_native_post_bind(&p->post, &p->args, p->dst, j->bufs, NULL, &args);
    const int64_t first = p->n_rows * i / j->n_chunks, end = p->n_rows * (i + 1) / j->n_chunks;
    const int64_t channels = p->is_plain ? p->channels : CHANNELS, wide = p->out[2];
    for (int64_t c = 0; c < p->channels; c += channels) {
        const int64_t n = p->channels - c < channels ? p->channels - c : channels;
        int64_t most = p->is_plain || TILE / n > MAX_STRIP ? MAX_STRIP : TILE / n;
        if (p->strip < most) most = p->strip;
        for (int64_t at = 0; at < wide; at += most) /* strips of results, down all rows */
            for (int64_t line = first / wide; line * wide < end; line++) {
                int64_t row = line * wide + at, last = row + (wide - at < most ? wide - at : most), done;
                row = row > first ? row : first;
                last = last < end ? last : end;
                for (; row < last; row += done) {
                    if (p->is_plain) {
                        char *to = (char *)j->bufs[p->dst] + (size_t)(row * p->post.dst_row + c) * p->dst_bytes;
                        done = some_results(p, j->bufs[p->src], row, last - row, c, n, to, p->post.dst_row);
                        continue;
                    }
                    done = some_results(p, j->bufs[p->src], row, last - row, c, n, acc, n);
                    p->post.fn(&p->post.post, &args, acc, (size_t)n, (size_t)row, (size_t)done, (size_t)c, (size_t)n);
                }
            }
    }
}

/* Results beside each other that are done before those under them, so that what windows share is still near. */
static int64_t strip_of(const pool_impl *p) {
    if (p->kernel[1] <= p->stride[1]) return INT64_MAX;
    if (p->kernel[1] > NEAR_BYTES || p->stride[2] > NEAR_BYTES || p->channels > NEAR_BYTES) return MIN_STRIP;
    const int64_t under = p->kernel[1] * p->stride[2] * p->channels * (int64_t)p->src_bytes;
    const int64_t fits = NEAR_BYTES / (under < NEAR_BYTES ? under : NEAR_BYTES);
    return fits < MIN_STRIP ? MIN_STRIP : fits;
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const pool_impl *p = impl;
    job j = {p, bufs, qdqi_threads_for(engine, p->work, POOL_GRAIN)};
    if (j.n_chunks > p->n_rows) j.n_chunks = (int)p->n_rows;
    qdqi_parallel(engine, j.n_chunks, chunk, &j);
    return QDQ_OK;
}

static qdq_status set_axes(pool_impl *p, const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                           qdq_error *err) {
    for (int a = 0; a < 3; a++) {
        p->in[a] = p->out[a] = p->kernel[a] = p->stride[a] = p->dilation[a] = 1;
        const int32_t s = a - (3 - pool->n_spatial);
        if (s < 0) continue;
        p->in[a] = src->dims[2 + s];
        p->out[a] = dst->dims[2 + s];
        p->kernel[a] = pool->kernel[s];
        p->stride[a] = pool->strides[s];
        p->dilation[a] = pool->dilations[s];
        p->pad_begin[a] = pool->pads_begin[s];
        p->pad_end[a] = pool->pads_end[s];
        p->src_at[a] = (ptrdiff_t)src->strides[2 + s];
        if (p->kernel[a] < 1 || p->stride[a] < 1 || p->dilation[a] < 1 || p->pad_begin[a] < 0 || p->pad_end[a] < 0)
            return qdqi_native_refuse(err, "pooling", "shape");
        int64_t reach;
        if (!qdqi_mul_i64(p->kernel[a], p->dilation[a], &reach) || !qdqi_mul_i64(p->out[a], p->stride[a], &reach) ||
            !qdqi_add_i64(p->in[a], p->pad_end[a], &reach))
            return qdqi_native_refuse(err, "pooling", "size");
    }
    p->n = src->dims[0];
    p->channels = src->dims[1];
    p->src_n = (ptrdiff_t)src->strides[0];
    p->n_rows = p->n * p->out[0] * p->out[1] * p->out[2];
    int64_t window = p->n_rows, fits = 1; /* sums of bytes are exact up to 2^24 */
    for (int a = 0; a < 3; a++)
        if (!qdqi_mul_i64(window, p->kernel[a], &window) || !qdqi_mul_i64(fits, p->kernel[a], &fits))
            return qdqi_native_refuse(err, "pooling", "size");
    if (!qdqi_mul_i64(window, p->channels, &p->work)) return qdqi_native_refuse(err, "pooling", "size");
    if (p->src_bytes == 1 && fits > 65536) return qdqi_native_refuse(err, "pooling", "size");
    for (int a = 0; a < 2; a++) {
        p->spans[a] = qdqi_calloc((size_t)p->out[a], sizeof *p->spans[a]);
        if (p->spans[a] == NULL) return QDQI_NO_MEMORY(err);
        for (int64_t o = 0; o < p->out[a]; o++)
            p->spans[a][o] = span_of(p, a, o);
    }
    p->strip = strip_of(p);
    p->runs = qdqi_calloc((size_t)p->out[2], sizeof *p->runs);
    if (p->runs == NULL) return QDQI_NO_MEMORY(err);
    qk_poolf_run *r = NULL;
    for (int64_t o = 0; o < p->out[2]; o++) {
        const span w = span_of(p, 2, o);
        const int64_t counted = p->count_pad ? w.counted : w.n;
        if (r != NULL && r->count == w.n && r->counted == counted && r->n == 1) r->by = w.first - r->first;
        if (r != NULL && r->count == w.n && r->counted == counted && w.first == r->first + (int64_t)r->n * r->by) {
            r->n++;
            continue;
        }
        r = r == NULL ? p->runs : r + 1;
        *r = (qk_poolf_run){1, w.first, 0, w.n, counted};
    }
    return QDQ_OK;
}

qdq_status qdqi_native_pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run, .clear = clear};
    qdqi_dnnl_md s, d;
    QDQI_TRY(qdqi_native_layout(src, "pooling", &s, err));
    QDQI_TRY(qdqi_native_layout(dst, "pooling", &d, err));
    if (pool->n_spatial < 1 || pool->n_spatial > 3 || s.ndims != pool->n_spatial + 2 || d.ndims != s.ndims)
        return qdqi_native_refuse(err, "pooling", "rank");
    if (s.dims[0] != d.dims[0] || s.dims[1] != d.dims[1]) return qdqi_native_refuse(err, "pooling", "shape");
    if (s.dims[1] != 1 && s.strides[1] != 1) return qdqi_native_refuse(err, "pooling", "layout");
    if (attr != NULL && (attr->src.has_scale || attr->src.has_zp || attr->src1.has_scale || attr->weights.has_scale))
        return qdqi_native_refuse(err, "pooling", "no_native_kernel");
    qk_isa isa;
    const bool is_max = pool->alg == QDQI_DNNL_POOL_MAX;
    if (qk_poolf_choose(s.dtype, QDQ_DTYPE_F32, is_max, &isa) == NULL)
        return qdqi_native_refuse(err, "pooling", "dtype");
    qdqi_native_matrix matrix = {.n_row_dims = pool->n_spatial + 1, .col_dim = 1};
    for (int32_t i = 0; i < pool->n_spatial; i++)
        matrix.row_dims[1 + i] = 2 + i;

    pool_impl *impl;
    char kernel[32];
    snprintf(kernel, sizeof kernel, "poolf:%s", qk_isa_name(isa));
    qdqi_native_prim *prim = qdqi_native_new(&ops, "pooling", kernel, sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    impl->is_max = is_max;
    impl->count_pad = pool->alg == QDQI_DNNL_POOL_AVG_INCLUDE_PAD;
    impl->src_bytes = qdq_dtype_bits(s.dtype) / 8;
    qdq_status st = set_axes(impl, pool, &s, &d, err);
    if (st == QDQ_OK) st = qdqi_native_post_plan(attr, &d, &matrix, "pooling", &impl->post, err);
    if (st == QDQ_OK) st = qdqi_native_post_choose(&impl->post, "pooling", err);
    const qk_post *post = &impl->post.post;
    impl->fn = post->n_steps == 0 && !post->dst_quantized && !post->dst_has_zp
                   ? qk_poolf_choose(s.dtype, d.dtype, is_max, NULL)
                   : NULL;
    impl->is_plain = impl->fn != NULL;
    impl->dst_bytes = qdq_dtype_bits(d.dtype) / 8;
    if (!impl->is_plain) impl->fn = qk_poolf_choose(s.dtype, QDQ_DTYPE_F32, is_max, NULL);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    impl->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, &s);
    impl->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, &d);
    qdqi_native_add_attr(prim, attr, &s, NULL, NULL, &d, &impl->args);
    return qdqi_native_finish(prim, out, err);
}
