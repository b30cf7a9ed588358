/* Linear interpolation on kernels/resize, and nearest as a copy by index; in any layout without gaps. A source of 8 bits with one scale
 * is dequantized on the way. */
#include "base/alloc.h"
#include "kernels/move/move.h"
#include "kernels/resize/resize.h"
#include "native/native_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    GRAIN_ELEMS = 8 * 1024,
    ROOM = 4096,
    MAX_MOVING = 3,
    SHORT_RUN = 8,
    SHORT_BYTES = 64,
    SHORT_RUN_BYTES = 16, /* what copying a run costs at least */
    NEAR_BYTES = 16 * 1024,
    MAX_PLACES = 16 * 1024
};

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
    axis inner;   /* a row that is resized, or elements beside each other that are not */
    axis line;    /* in this case: the resized axis whose elements those are; n_dst 0: there is none */
    bool is_copy; /* nothing has a weight, and all is stored as it is */
    int64_t n_tasks, work, grain;
} resize_impl;

typedef struct resize_job {
    const resize_impl *impl;
    qk_resize resize;
    void *const *bufs;
} resize_job;

/* The corners of an outer index: their places and weights, those of weight 0 left out. What all axes but the last one say is kept
 * as long as it lasts. */
typedef struct corners {
    int64_t index[QDQ_MAX_NDIMS];
    size_t n_kept, n;
    int64_t kept[QK_RESIZE_MAX_CORNERS], kept_dst, dst;
    float kept_weights[QK_RESIZE_MAX_CORNERS], weights[QK_RESIZE_MAX_CORNERS];
    const void *src[QK_RESIZE_MAX_CORNERS];
} corners;

/* n corners, those of one more axis. */
static size_t step_along(const axis *a, int64_t i, int64_t *at, float *weights, size_t n) {
    const int64_t lo = (a->lo == NULL ? i : a->lo[i]) * a->src_step;
    const float w = a->lo == NULL ? 0.0f : a->w[i];
    size_t more = n;
    for (size_t c = 0; c < n; c++) {
        const int64_t base = at[c];
        at[c] = base + lo;
        if (w == 0.0f) continue;
        at[more] = base + a->hi[i] * a->src_step;
        weights[more++] = weights[c] * w;
        weights[c] *= 1.0f - w;
    }
    return more;
}

static void keep_corners(const resize_impl *s, corners *c) {
    c->kept[0] = c->kept_dst = 0;
    c->kept_weights[0] = 1.0f;
    c->n_kept = 1;
    for (int32_t k = s->n_outer - 2; k >= 0; k--) {
        c->n_kept = step_along(&s->outer[k], c->index[k], c->kept, c->kept_weights, c->n_kept);
        c->kept_dst += c->index[k] * s->outer[k].dst_step;
    }
}

static void corners_at(const resize_impl *s, int64_t task, corners *c) {
    for (int32_t k = s->n_outer - 1; k >= 0; k--) {
        c->index[k] = task % s->outer[k].n_dst;
        task /= s->outer[k].n_dst;
    }
    keep_corners(s, c);
}

static void find_corners(const resize_job *job, corners *c) {
    const resize_impl *s = job->impl;
    int64_t at[QK_RESIZE_MAX_CORNERS];
    for (size_t i = 0; i < c->n_kept; i++) {
        at[i] = c->kept[i];
        c->weights[i] = c->kept_weights[i];
    }
    c->n = c->n_kept;
    c->dst = c->kept_dst;
    if (s->n_outer > 0) {
        const axis *a = &s->outer[s->n_outer - 1];
        const int64_t i = c->index[s->n_outer - 1];
        c->n = step_along(a, i, at, c->weights, c->n);
        c->dst += i * a->dst_step;
    }
    for (size_t i = 0; i < c->n; i++)
        c->src[i] = (const char *)job->bufs[s->src] + (size_t)at[i] * s->src_bytes;
}

static void next_corners(const resize_impl *s, corners *c) {
    int32_t k = s->n_outer - 1;
    if (k < 0 || ++c->index[k] < s->outer[k].n_dst) return;
    while (k >= 0 && c->index[k] == s->outer[k].n_dst) {
        c->index[k--] = 0;
        if (k >= 0) c->index[k]++;
    }
    keep_corners(s, c);
}

/* Nearest: elements as they are. A row that is the one before again is copied from there where that is
 * the cheaper source. */
static void some_copies(const resize_job *job, corners *c, int64_t n) {
    const resize_impl *s = job->impl;
    const bool by_line = s->line.n_dst != 0;
    const axis *moving = by_line ? &s->line : &s->inner;
    const size_t run = s->dst_bytes * (by_line ? (size_t)s->inner.n_dst : 1),
                 step = s->dst_bytes * (by_line ? (size_t)s->line.src_step : 1),
                 row_bytes = moving->lo == NULL ? s->dst_bytes * (size_t)s->inner.n_dst : run * (size_t)moving->n_dst;
    const void *before = NULL;
    char *last = NULL;
    for (int64_t t = 0; t < n; t++) {
        find_corners(job, c);
        char *dst = (char *)job->bufs[s->dst] + (size_t)c->dst * s->dst_bytes;
        if (c->src[0] == before && (run < SHORT_BYTES || row_bytes <= NEAR_BYTES))
            memcpy(dst, last, row_bytes);
        else if (moving->lo == NULL)
            memcpy(dst, c->src[0], row_bytes);
        else
            s->fns->take(c->src[0], moving->lo, (size_t)moving->n_dst, run, step, dst);
        before = c->src[0];
        last = dst;
        next_corners(s, c);
    }
}

static void one_task(const resize_job *job, const corners *c, float *room) {
    const resize_impl *s = job->impl;
    const size_t n = (size_t)s->inner.n_dst;
    char *dst = (char *)job->bufs[s->dst] + (size_t)c->dst * s->dst_bytes;
    if (s->line.n_dst != 0) {
        const qk_resize_axis line = {s->line.lo, s->line.hi, s->line.w, (size_t)s->line.n_dst};
        s->fns->runs(&job->resize, c->src, c->weights, c->n, &line, (size_t)s->line.src_step, dst,
                     (size_t)s->line.dst_step, n);
        return;
    }
    if (s->inner.lo == NULL) {
        s->fns->blend(&job->resize, false, c->src, c->weights, c->n, dst, n);
        return;
    }
    const float *row = c->src[0];
    if (s->resize.src != QDQ_DTYPE_F32 || c->n > 1) {
        s->fns->blend(&job->resize, true, c->src, c->weights, c->n, room, (size_t)s->inner.n_src);
        row = room;
    }
    s->fns->across(&job->resize, row, s->inner.lo, s->inner.hi, s->inner.w, dst, n);
}

static void some_tasks(int64_t first, int64_t n, void *arg) {
    const resize_job *job = arg;
    const resize_impl *s = job->impl;
    float room[ROOM];
    corners c;
    if (n <= 0) return;
    corners_at(s, first, &c);
    if (s->is_copy) {
        some_copies(job, &c, n);
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        find_corners(job, &c);
        one_task(job, &c, room);
        next_corners(s, &c);
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
    qdqi_native_parallel(engine, s->n_tasks, s->work, s->grain, some_tasks, &job);
    return QDQ_OK;
}

static void clear(void *impl) {
    resize_impl *s = impl;
    for (int32_t k = 0; k < s->n_outer; k++)
        qdqi_free(s->outer[k].lo);
    qdqi_free(s->inner.lo);
    qdqi_free(s->line.lo);
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

/* A line of short runs becomes a row of elements: each channel has places of its own. */
static qdq_status spread_line(resize_impl *s, qdq_error *err) {
    const int64_t c = s->inner.n_dst;
    const axis line = s->line;
    if (line.n_dst == 0 || c >= SHORT_RUN || line.src_step != c || line.dst_step != c || line.n_src > ROOM / c)
        return QDQ_OK;
    axis row = {line.n_src * c, line.n_dst * c, 1, 1, NULL, NULL, NULL};
    int32_t *all = qdqi_realloc_array(NULL, (size_t)row.n_dst, 2 * sizeof *all + sizeof *row.w);
    if (all == NULL) return QDQI_NO_MEMORY(err);
    row.lo = all;
    row.hi = all + row.n_dst;
    row.w = (float *)(void *)(all + 2 * row.n_dst);
    for (int64_t i = 0; i < row.n_dst; i++) {
        row.lo[i] = line.lo[i / c] * (int32_t)c + (int32_t)(i % c);
        row.hi[i] = line.hi[i / c] * (int32_t)c + (int32_t)(i % c);
        row.w[i] = line.w[i / c];
    }
    qdqi_free(line.lo);
    s->inner = row;
    memset(&s->line, 0, sizeof s->line);
    return QDQ_OK;
}

/* Nearest: a plane of rows that are resized becomes one row. */
static qdq_status flatten_plane(resize_impl *s, qdq_error *err) {
    if (s->inner.lo == NULL || s->n_outer == 0) return QDQ_OK;
    const axis h = s->outer[s->n_outer - 1], w = s->inner;
    if (h.lo == NULL || h.src_step != w.n_src || h.dst_step != w.n_dst || h.n_dst > MAX_PLACES / w.n_dst ||
        h.n_src > INT32_MAX / w.n_src)
        return QDQ_OK;
    axis plane = {h.n_src * w.n_src, h.n_dst * w.n_dst, 1, 1, NULL, NULL, NULL};
    plane.lo = qdqi_realloc_array(NULL, (size_t)plane.n_dst, sizeof *plane.lo);
    if (plane.lo == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < plane.n_dst; i++)
        plane.lo[i] = h.lo[i / w.n_dst] * (int32_t)w.n_src + w.lo[i % w.n_dst];
    qdqi_free(h.lo);
    qdqi_free(w.lo);
    s->inner = plane;
    s->n_outer--;
    s->n_tasks /= h.n_dst;
    return QDQ_OK;
}

/* An axis that is not resized, and whose elements are runs beside each other. */
static bool is_one_run(const axis *outer, const axis *inner) {
    return outer->lo == NULL && outer->n_dst > 0 && outer->src_step == inner->n_dst && outer->dst_step == inner->n_dst;
}

/* For the threads. Copies count by bytes. */
static void set_work(resize_impl *s, int64_t n_results) {
    s->work = n_results;
    s->grain = GRAIN_ELEMS;
    if (!s->is_copy) return;
    const int64_t run = s->inner.lo == NULL && s->inner.n_dst > 0 ? s->inner.n_dst : 1,
                  bytes = run * (int64_t)s->dst_bytes;
    s->work = n_results / run * (bytes < SHORT_RUN_BYTES ? SHORT_RUN_BYTES : bytes);
    s->grain = QK_MOVE_GRAIN_BYTES;
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
    while (!by_row && s->n_outer > 0 && is_one_run(&s->outer[s->n_outer - 1], &s->inner)) {
        s->inner.n_src = s->inner.n_dst = s->inner.n_dst * s->outer[--s->n_outer].n_dst;
        s->n_tasks /= s->outer[s->n_outer].n_dst;
    }
    if (!by_row && s->n_outer > 0 && s->outer[s->n_outer - 1].lo != NULL && s->outer[s->n_outer - 1].n_dst > 0) {
        s->line = s->outer[--s->n_outer];
        s->n_tasks /= s->line.n_dst;
    }
    s->is_copy = x->dtype == y->dtype && (s->line.n_dst == 0 || s->line.dst_step == s->inner.n_dst);
    for (int32_t k = 0; k < x->ndims && s->is_copy; k++)
        for (int64_t i = 0; taps[k].lo != NULL && i < y->dims[k]; i++)
            s->is_copy &= taps[k].w[i] == 0.0f;
    s->is_copy &= attr == NULL || (!attr->src.has_scale && !attr->src.has_zp && !attr->dst.has_scale &&
                                   !attr->dst.has_zp && attr->n_posts == 0);
    QDQI_TRY(s->is_copy ? flatten_plane(s, err) : spread_line(s, err));
    s->src_bytes = qdq_dtype_bits(x->dtype) / 8;
    s->dst_bytes = qdq_dtype_bits(y->dtype) / 8;
    set_work(s, qdqi_native_n_elems(y));
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
