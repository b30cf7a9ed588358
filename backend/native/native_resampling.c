/* Linear interpolation on kernels/resize, and nearest as a copy by index; in any layout without gaps. A source of 8 bits with one scale
 * is dequantized on the way. */
#include "base/alloc.h"
#include "kernels/resize/resize.h"
#include "native/native_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GRAIN_ELEMS = 8 * 1024, ROOM = 4096, MAX_MOVING = 3 };

/* A dim in memory order; what it takes per index. */
typedef struct axis {
    int64_t n_src, n_dst, src_step, dst_step; /* steps in elements */
    int32_t *lo, *hi;                         /* NULL: not resized */
    float *w;
} axis;

typedef struct resize_impl {
    qk_resize resize;
    const qk_resize_fns *fns;
    qdqi_native_attr_args args;
    qdqi_native_end end;
    uint32_t src, dst;
    size_t src_bytes, dst_bytes;
    int32_t n_outer; /* axes around the inner piece, slowest first */
    axis outer[QDQ_MAX_NDIMS];
    axis inner; /* a row that is resized, or elements beside each other that are not */
    int64_t n_tasks, n_results;
} resize_impl;

typedef struct resize_job {
    const resize_impl *impl;
    qk_resize resize;
    void *const *bufs;
} resize_job;

/* The corners of an outer index: their places and weights, those of weight 0 left out. */
static size_t corners_of(const resize_job *job, int64_t index, const void **src, float *weights, int64_t *dst_out) {
    const resize_impl *s = job->impl;
    int64_t at[QK_RESIZE_MAX_CORNERS] = {0}, dst = 0;
    size_t n = 1;
    weights[0] = 1.0f;
    for (int32_t k = s->n_outer - 1; k >= 0; k--) {
        const axis *a = &s->outer[k];
        const int64_t i = index % a->n_dst;
        index /= a->n_dst;
        dst += i * a->dst_step;
        const size_t before = n;
        for (size_t c = 0; c < before; c++) {
            const int64_t base = at[c];
            at[c] = base + (a->lo == NULL ? i : a->lo[i]) * a->src_step;
            if (a->lo == NULL || a->w[i] == 0.0f) continue;
            at[n] = base + a->hi[i] * a->src_step;
            weights[n++] = weights[c] * a->w[i];
            weights[c] *= 1.0f - a->w[i];
        }
    }
    for (size_t c = 0; c < n; c++)
        src[c] = (const char *)job->bufs[s->src] + (size_t)at[c] * s->src_bytes;
    *dst_out = dst;
    return n;
}

static void some_tasks(int64_t first, int64_t n, void *arg) {
    const resize_job *job = arg;
    const resize_impl *s = job->impl;
    float row[ROOM];
    for (int64_t t = first; t < first + n; t++) {
        const void *src[QK_RESIZE_MAX_CORNERS];
        float weights[QK_RESIZE_MAX_CORNERS];
        int64_t at;
        const size_t n_src = corners_of(job, t, src, weights, &at);
        char *dst = (char *)job->bufs[s->dst] + (size_t)at * s->dst_bytes;
        if (s->inner.lo == NULL) {
            s->fns->blend(&job->resize, false, src, weights, n_src, dst, (size_t)s->inner.n_dst);
            continue;
        }
        s->fns->blend(&job->resize, true, src, weights, n_src, row, (size_t)s->inner.n_src);
        s->fns->across(&job->resize, row, s->inner.lo, s->inner.hi, s->inner.w, dst, (size_t)s->inner.n_dst);
    }
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const resize_impl *s = impl;
    resize_job job = {s, s->resize, bufs};
    const double scale = (double)qdqi_native_src_scale(&s->args, bufs), zp = (double)qdqi_native_src_zp(&s->args, bufs);
    qdqi_native_quantum q = {1.0f, 0.0f};
    if (s->end.quantizes) q = qdqi_native_quantum_of(&s->end, bufs);
    job.resize.factor = (float)(scale * (double)q.factor);
    job.resize.add = (float)((double)q.zp_first - zp * scale * (double)q.factor);
    qdqi_native_parallel(engine, s->n_tasks, s->n_results, GRAIN_ELEMS, some_tasks, &job);
    return QDQ_OK;
}

static void clear(void *impl) {
    resize_impl *s = impl;
    for (int32_t k = 0; k < s->n_outer; k++)
        qdqi_free(s->outer[k].lo);
    qdqi_free(s->inner.lo);
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

static qdq_status copy_taps(axis *a, const qdqi_native_taps *t, qdq_error *err) {
    if (t->lo == NULL) return QDQ_OK;
    const size_t n = (size_t)a->n_dst;
    int32_t *all = qdqi_realloc_array(NULL, n, 2 * sizeof *all + sizeof *a->w);
    if (all == NULL) return QDQI_NO_MEMORY(err);
    a->lo = all;
    a->hi = all + n;
    a->w = (float *)(void *)(all + 2 * n);
    memcpy(a->lo, t->lo, n * sizeof *all);
    memcpy(a->hi, t->hi, n * sizeof *all);
    memcpy(a->w, t->w, n * sizeof *a->w);
    return QDQ_OK;
}

static qdq_status fill(resize_impl *s, qdqi_native_prim *prim, const qdqi_native_taps *taps, const qdqi_dnnl_md *x,
                       const qdqi_dnnl_md *y, const int32_t *order, const qdqi_dnnl_attr *attr, qdq_error *err) {
    int32_t inner = x->ndims - 1, n_moving = 0;
    while (inner > 0 && x->dims[order[inner]] == 1 && y->dims[order[inner]] == 1)
        inner--;
    const bool by_row = taps[order[inner]].lo != NULL;
    s->n_tasks = 1;
    for (int32_t k = 0; k <= inner; k++) {
        const int32_t d = order[k];
        axis a = {x->dims[d], y->dims[d], x->strides[d], y->strides[d], NULL, NULL, NULL};
        if (taps[d].lo == NULL && a.n_src != a.n_dst) return qdqi_native_refuse(err, "resampling", "shape");
        if (k == inner) {
            if ((a.n_dst != 1 && a.dst_step != 1) || (a.n_src != 1 && a.src_step != 1) || (by_row && a.n_src > ROOM))
                return qdqi_native_refuse(err, "resampling", by_row ? "size" : "layout");
            s->inner = a;
            QDQI_TRY(copy_taps(&s->inner, &taps[d], err));
            break;
        }
        if (taps[d].lo != NULL && ++n_moving > MAX_MOVING) return qdqi_native_refuse(err, "resampling", "rank");
        s->outer[s->n_outer] = a;
        s->n_tasks *= a.n_dst;
        const qdq_status st = copy_taps(&s->outer[s->n_outer], &taps[d], err);
        s->n_outer++;
        if (st != QDQ_OK) return st;
    }
    s->n_results = qdqi_native_n_elems(y);
    s->src_bytes = qdq_dtype_bits(x->dtype) / 8;
    s->dst_bytes = qdq_dtype_bits(y->dtype) / 8;
    s->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, x);
    s->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, y);
    QDQI_TRY(qdqi_native_end_init(&s->end, prim, "resampling", x, y, order, 0, attr, &s->args, err));
    return QDQ_OK;
}

qdq_status qdqi_native_interpolation(const qdqi_native_taps taps[QDQ_MAX_NDIMS], const qdqi_dnnl_md *src,
                                     const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                     qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run, .clear = clear};
    qdqi_dnnl_md x, y;
    int32_t order[QDQ_MAX_NDIMS], dst_order[QDQ_MAX_NDIMS];
    QDQI_TRY(qdqi_native_layout(src, "resampling", &x, err));
    QDQI_TRY(qdqi_native_layout(dst, "resampling", &y, err));
    if (x.ndims != y.ndims) return qdqi_native_refuse(err, "resampling", "rank");
    if (!qdqi_native_memory_order(&x, order) || !qdqi_native_memory_order(&y, dst_order))
        return qdqi_native_refuse(err, "resampling", "layout");
    if (!qdqi_native_src_ok(attr, &x)) return qdqi_native_refuse(err, "resampling", "src_not_per_tensor");
    qk_resize kernel = {.src = x.dtype, .dst = y.dtype, .factor = 1.0f};
    qk_isa isa;
    const qk_resize_fns *fns = qk_resize_choose(&kernel, &isa);
    if (fns == NULL) return qdqi_native_refuse(err, "resampling", "dtype");
    char name[32];
    snprintf(name, sizeof name, "resize:%s", qk_isa_name(isa));
    resize_impl *s;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "resampling", name, sizeof *s, (void **)&s);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    s->resize = kernel;
    s->fns = fns;
    const qdq_status st = fill(s, prim, taps, &x, &y, order, attr, err);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    return qdqi_native_finish(prim, out, err);
}

/* Half-pixel coordinates, as the facade has them. */
qdq_status qdqi_native_resampling(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                  const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_native_taps taps[QDQ_MAX_NDIMS] = {{NULL, NULL, NULL}};
    qdqi_dnnl_md y;
    QDQI_TRY(qdqi_native_layout(dst, "resampling", &y, err));
    if (src->ndims != y.ndims) return qdqi_native_refuse(err, "resampling", "rank");
    size_t n = 1, used = 0;
    for (int32_t d = 2; d < y.ndims; d++)
        n += (size_t)y.dims[d];
    int32_t *room = qdqi_realloc_array(NULL, n, 2 * sizeof *room + sizeof(float));
    if (room == NULL) return QDQI_NO_MEMORY(err);
    int32_t *hi = room + n;
    float *w = (float *)(void *)(room + 2 * n);
    for (int32_t d = 2; d < y.ndims; d++) {
        taps[d] = (qdqi_native_taps){room + used, hi + used, w + used};
        for (int64_t i = 0; i < y.dims[d]; i++, used++) {
            const double at = ((double)i + 0.5) * (double)src->dims[d] / (double)y.dims[d] - 0.5;
            const double last = (double)(src->dims[d] - 1);
            const double v = fmin(fmax(alg == QDQI_DNNL_RESIZE_NEAREST ? floor(at + 0.5) : at, 0.0), last);
            room[used] = (int32_t)v;
            hi[used] = room[used] + 1 < src->dims[d] ? room[used] + 1 : room[used];
            w[used] = (float)(v - floor(v));
        }
    }
    const qdq_status st = qdqi_native_interpolation(taps, src, dst, attr, out, err);
    qdqi_free(room);
    return st;
}
