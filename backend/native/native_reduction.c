/* Reductions on kernels/reduce, over any dims of a tensor without gaps. A source of 8 bits with one scale is dequantized on the way:
 * its sums are exact integers. */
#include "base/dtype.h"
#include "kernels/reduce/reduce.h"
#include "native/native_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLS = 512, MAX_PARTS = 16, MAX_PARTIALS = 4096 };

/* A dim of the source in memory, after neighbours were joined. */
typedef struct span {
    int64_t n, src_step, dst_step;
    bool reduced;
} span;

typedef struct reduction_impl {
    qk_reduce reduce;
    const qk_reduce_fns *fns;
    qdqi_dnnl_alg alg;
    qdqi_native_attr_args args;
    qdqi_native_end end;
    uint32_t src, dst, partials;
    size_t src_bytes;
    qdq_dtype dst_dtype;
    /* What is kept (slowest first), what is reduced around the inner piece, and the inner piece: a run of n, or rows x cols. */
    int32_t n_kept, n_outer;
    span kept[QDQ_MAX_NDIMS], outer[QDQ_MAX_NDIMS];
    bool by_cols;
    int64_t n, rows, row_step, cols, col_blocks;
    int64_t col_dst_step;     /* elements of dst from column to column */
    int64_t n_results, count; /* elements of dst; elements per result */
} reduction_impl;

typedef struct reduction_job {
    const reduction_impl *impl;
    qk_reduce reduce;
    void *const *bufs;
    double scale; /* of the source */
    qdqi_native_quantum quantum;
    int64_t n_parts; /* more than one: of the slowest reduced span, into partials */
} reduction_job;

static int64_t offset_of(const span *spans, int32_t n, int64_t index, bool of_dst) {
    int64_t offset = 0;
    for (int32_t k = n - 1; k >= 0; k--) {
        offset += index % spans[k].n * (of_dst ? spans[k].dst_step : spans[k].src_step);
        index /= spans[k].n;
    }
    return offset;
}

static int64_t product(const span *spans, int32_t n) {
    int64_t p = 1;
    for (int32_t k = 0; k < n; k++)
        p *= spans[k].n;
    return p;
}

/* From the kernel's result to the op's. */
static float finished(const reduction_job *job, double acc) {
    const reduction_impl *s = job->impl;
    switch ((int)s->alg) {
    case QDQI_DNNL_RED_MEAN: acc = acc * job->scale / (double)s->count; break;
    case QDQI_DNNL_RED_L1: acc *= fabs(job->scale); break;
    case QDQI_DNNL_RED_L2: acc = sqrt(acc) * fabs(job->scale); break;
    case QDQI_DNNL_RED_MUL: break;
    default: acc *= job->scale; break;
    }
    return s->end.quantizes ? (float)(acc * (double)job->quantum.factor + (double)job->quantum.zp_first) : (float)acc;
}

static void store(const reduction_job *job, int64_t at, const double *acc, int64_t n, int64_t step) {
    const reduction_impl *s = job->impl;
    void *dst = job->bufs[s->dst];
    if (s->dst_dtype != QDQ_DTYPE_F32 || s->end.quantizes) {
        for (int64_t i = 0; i < n; i++)
            qdqi_store_f32(dst, s->dst_dtype, at + i * step, finished(job, acc[i]));
        return;
    }
    float *y = (float *)dst + at;
    const double scale = s->alg == QDQI_DNNL_RED_MUL ? 1.0 : job->scale, count = (double)s->count;
    if (s->alg == QDQI_DNNL_RED_MEAN)
        for (int64_t i = 0; i < n; i++)
            y[i * step] = (float)(acc[i] * scale / count);
    else if (s->alg == QDQI_DNNL_RED_L2 || s->alg == QDQI_DNNL_RED_L1)
        for (int64_t i = 0; i < n; i++)
            y[i * step] = finished(job, acc[i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i * step] = (float)(acc[i] * scale);
}

/* Task: a kept index and a block of columns. `part` of n_parts of the slowest reduced span. */
static void one_task(const reduction_job *job, int64_t task, int64_t part) {
    const reduction_impl *s = job->impl;
    const int64_t kept = task / s->col_blocks, c = task % s->col_blocks * COLS;
    const int64_t cols = !s->by_cols ? 1 : s->cols - c < COLS ? s->cols - c : COLS;
    const int64_t n_outer = product(s->outer, s->n_outer);
    /* the slowest span that is reduced is outer[0], or the inner piece itself */
    const int64_t whole = s->n_outer > 0 ? n_outer : s->by_cols ? s->rows : s->n;
    const int64_t step = (whole + job->n_parts - 1) / job->n_parts, first = part * step;
    const int64_t last = first + step < whole ? first + step : whole;
    double acc[COLS];
    const double none = qk_reduce_none(job->reduce.op);
    for (int64_t i = 0; i < cols; i++)
        acc[i] = none;
    const char *base =
        (const char *)job->bufs[s->src] + (size_t)(offset_of(s->kept, s->n_kept, kept, false) + c) * s->src_bytes;
    for (int64_t o = s->n_outer > 0 ? first : 0; o < (s->n_outer > 0 ? last : 1) && first < last; o++) {
        const char *x = base + (size_t)offset_of(s->outer, s->n_outer, o, false) * s->src_bytes;
        const int64_t from = s->n_outer > 0 ? 0 : first,
                      n = s->n_outer > 0 ? (s->by_cols ? s->rows : s->n) : last - first;
        if (s->by_cols)
            s->fns->cols(&job->reduce, x + (size_t)(from * s->row_step) * s->src_bytes, (size_t)n, (size_t)cols,
                         (size_t)s->row_step, acc);
        else
            acc[0] = qk_reduce_join(job->reduce.op, acc[0],
                                    s->fns->run(&job->reduce, x + (size_t)from * s->src_bytes, (size_t)n));
    }
    const int64_t at = offset_of(s->kept, s->n_kept, kept, true) + c * s->col_dst_step;
    if (job->n_parts == 1) {
        store(job, at, acc, cols, s->col_dst_step);
        return;
    }
    double *partials = (double *)job->bufs[s->partials] + part * s->n_results + at;
    for (int64_t i = 0; i < cols; i++)
        partials[i * s->col_dst_step] = acc[i];
}

/* Tasks that are runs, nothing around them reduced: those that are next to each other along the last kept dim at a time. */
static void some_runs(const reduction_job *job, int64_t first, int64_t n) {
    enum { AT_ONCE = 128 };
    const reduction_impl *s = job->impl;
    const span one = {1, 0, 0, false}, *last = s->n_kept > 0 ? &s->kept[s->n_kept - 1] : &one;
    double acc[AT_ONCE];
    for (int64_t end = first + n, m; first < end; first += m) {
        m = last->n - first % last->n;
        m = m < end - first ? m : end - first;
        m = m < AT_ONCE ? m : AT_ONCE;
        const char *x =
            (const char *)job->bufs[s->src] + (size_t)offset_of(s->kept, s->n_kept, first, false) * s->src_bytes;
        s->fns->rows(&job->reduce, x, (size_t)m, (size_t)s->n, (size_t)last->src_step, acc);
        store(job, offset_of(s->kept, s->n_kept, first, true), acc, m, last->dst_step);
    }
}

static void some_tasks(int64_t first, int64_t n, void *arg) {
    const reduction_job *job = arg;
    if (!job->impl->by_cols && job->impl->n_outer == 0) {
        some_runs(job, first, n);
        return;
    }
    for (int64_t t = first; t < first + n; t++)
        one_task(arg, t, 0);
}

static void some_parts(int64_t first, int64_t n, void *arg) {
    const reduction_job *job = arg;
    for (int64_t i = first; i < first + n; i++)
        one_task(job, i / job->n_parts, i % job->n_parts);
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const reduction_impl *s = impl;
    reduction_job job = {.impl = s, .reduce = s->reduce, .bufs = bufs, .n_parts = 1};
    job.scale = (double)qdqi_native_src_scale(&s->args, bufs);
    job.reduce.scale = (float)job.scale;
    job.reduce.zp = qdqi_native_src_zp(&s->args, bufs);
    if (job.scale < 0.0 && s->reduce.op == QK_REDUCE_MAX) job.reduce.op = QK_REDUCE_MIN;
    if (job.scale < 0.0 && s->reduce.op == QK_REDUCE_MIN) job.reduce.op = QK_REDUCE_MAX;
    if (s->end.quantizes) job.quantum = qdqi_native_quantum_of(&s->end, bufs);
    const int64_t n_tasks = product(s->kept, s->n_kept) * s->col_blocks, work = s->n_results * s->count;
    const int64_t threads = qdqi_threads_for(engine, work, QK_REDUCE_GRAIN);
    if (n_tasks >= threads || s->partials == QDQI_NO_ARG) {
        qdqi_native_parallel(engine, n_tasks, work, QK_REDUCE_GRAIN, some_tasks, &job);
        return QDQ_OK;
    }
    job.n_parts = threads < MAX_PARTS ? threads : MAX_PARTS;
    qdqi_native_parallel(engine, n_tasks * job.n_parts, work, QK_REDUCE_GRAIN, some_parts, &job);
    double *sums = bufs[s->partials];
    for (int64_t p = 1; p < job.n_parts; p++)
        for (int64_t i = 0; i < s->n_results; i++)
            sums[i] = qk_reduce_join(job.reduce.op, sums[i], sums[p * s->n_results + i]);
    store(&job, 0, sums, s->n_results, 1);
    return QDQ_OK;
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

static bool op_of(qdqi_dnnl_alg alg, qk_reduce_op *op) {
    switch ((int)alg) {
    case QDQI_DNNL_RED_SUM:
    case QDQI_DNNL_RED_MEAN: *op = QK_REDUCE_SUM; return true;
    case QDQI_DNNL_RED_MAX: *op = QK_REDUCE_MAX; return true;
    case QDQI_DNNL_RED_MIN: *op = QK_REDUCE_MIN; return true;
    case QDQI_DNNL_RED_MUL: *op = QK_REDUCE_PROD; return true;
    case QDQI_DNNL_RED_L1: *op = QK_REDUCE_ABS; return true;
    case QDQI_DNNL_RED_L2: *op = QK_REDUCE_SQUARES; return true;
    default: return false;
    }
}

/* Dims in memory order, those of 1 left out, neighbours of one kind joined. -1: the shapes do not fit. */
static int32_t join_dims(const qdqi_dnnl_md *x, const qdqi_dnnl_md *y, const int32_t *order, span *spans) {
    int32_t n = 0;
    for (int32_t k = 0; k < x->ndims; k++) {
        const int32_t d = order[k];
        if (y->dims[d] != 1 && y->dims[d] != x->dims[d]) return -1;
        if (x->dims[d] == 1) continue;
        const span s = {x->dims[d], x->strides[d], y->dims[d] == 1 ? 0 : y->strides[d], y->dims[d] == 1};
        span *last = n > 0 ? &spans[n - 1] : NULL;
        if (last != NULL && last->reduced == s.reduced && last->src_step == s.n * s.src_step &&
            (s.reduced || last->dst_step == s.n * s.dst_step)) {
            *last = (span){last->n * s.n, s.src_step, s.dst_step, s.reduced};
        } else {
            spans[n++] = s;
        }
    }
    return n;
}

/* The innermost span is a run, or columns under the rows that lie nearest around them. */
static void set_walk(reduction_impl *s, const span *spans, int32_t n) {
    int32_t inner = n - 1, rows = -1;
    s->by_cols = n > 0 && !spans[inner].reduced;
    s->n = s->rows = s->cols = s->col_dst_step = 1;
    if (s->by_cols) {
        s->cols = spans[inner].n;
        s->col_dst_step = spans[inner].dst_step;
        for (int32_t k = 0; k < inner; k++)
            if (spans[k].reduced) rows = k;
        if (rows >= 0) {
            s->rows = spans[rows].n;
            s->row_step = spans[rows].src_step;
        }
    } else if (n > 0) {
        s->n = spans[inner].n;
    }
    for (int32_t k = 0; k < n; k++) {
        if (k == inner || k == rows) continue;
        if (spans[k].reduced)
            s->outer[s->n_outer++] = spans[k];
        else
            s->kept[s->n_kept++] = spans[k];
    }
    s->col_blocks = (s->cols + COLS - 1) / COLS;
}

static qdq_status fill(reduction_impl *s, qdqi_native_prim *prim, const qdqi_dnnl_md *x, const qdqi_dnnl_md *y,
                       const int32_t *order, const qdqi_dnnl_attr *attr, qdq_error *err) {
    span spans[QDQ_MAX_NDIMS];
    const int32_t n = join_dims(x, y, order, spans);
    if (n < 0) return qdqi_native_refuse(err, "reduction", "shape");
    set_walk(s, spans, n);
    s->n_results = qdqi_native_n_elems(y);
    s->count = qdqi_native_n_elems(x) / s->n_results;
    s->src_bytes = qdq_dtype_bits(x->dtype) / 8;
    s->dst_dtype = y->dtype;
    s->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, x);
    s->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, y);
    s->partials = QDQI_NO_ARG;
    if (s->n_results <= MAX_PARTIALS && qdqi_native_is_dense(y) && s->count > 1)
        s->partials = qdqi_native_add_scratch(prim, MAX_PARTS * (size_t)s->n_results * sizeof(double));
    return qdqi_native_end_init(&s->end, prim, "reduction", x, y, order, 0, attr, &s->args, err);
}

qdq_status qdqi_native_reduction(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                                 const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run};
    qdqi_dnnl_md x, y;
    int32_t order[QDQ_MAX_NDIMS];
    QDQI_TRY(qdqi_native_layout(src, "reduction", &x, err));
    QDQI_TRY(qdqi_native_layout(dst, "reduction", &y, err));
    if (x.ndims != y.ndims) return qdqi_native_refuse(err, "reduction", "rank");
    if (!qdqi_native_memory_order(&x, order)) return qdqi_native_refuse(err, "reduction", "layout");
    if (!qdqi_native_src_ok(attr, &x)) return qdqi_native_refuse(err, "reduction", "src_not_per_tensor");
    qk_reduce kernel = {.src = x.dtype, .scale = 1.0f};
    qk_isa isa;
    if (!op_of(alg, &kernel.op)) return qdqi_native_refuse(err, "reduction", "no_native_kernel");
    const qk_reduce_fns *fns = qk_reduce_choose(&kernel, &isa);
    const bool stores = y.dtype == QDQ_DTYPE_F32 || y.dtype == QDQ_DTYPE_BF16 || y.dtype == QDQ_DTYPE_F16 ||
                        y.dtype == QDQ_DTYPE_U8 || y.dtype == QDQ_DTYPE_S8;
    if (fns == NULL || !stores) return qdqi_native_refuse(err, "reduction", "dtype");
    char name[32];
    snprintf(name, sizeof name, "reduce:%s", qk_isa_name(isa));
    reduction_impl *s;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "reduction", name, sizeof *s, (void **)&s);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    s->reduce = kernel;
    s->fns = fns;
    s->alg = alg;
    const qdq_status st = fill(s, prim, &x, &y, order, attr, err);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    return qdqi_native_finish(prim, out, err);
}
