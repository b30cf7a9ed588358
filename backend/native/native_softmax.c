/* Softmax on kernels/softmax: over any axis of a tensor without gaps. A source of 8 bits with one scale is dequantized on the way. */
#include "kernels/softmax/softmax.h"
#include "native/native_rows.h"

#include <stdio.h>

enum { ROOM = 4096, COLS = 64 };

typedef struct softmax_impl {
    qk_softmax softmax;
    const qk_softmax_fns *fns;
    qdqi_native_attr_args args;
    qdqi_native_end end;
    uint32_t src, dst;
    int64_t outer, n, inner;
    int64_t col_blocks; /* of `inner`, which tasks are split along */
    size_t src_bytes, dst_bytes;
} softmax_impl;

typedef struct softmax_job {
    const softmax_impl *impl;
    qk_softmax softmax;
    void *const *bufs;
} softmax_job;

/* Through f32, and the program. */
static void lines_with_posts(const softmax_job *job, int64_t first, int64_t n) {
    const softmax_impl *s = job->impl;
    float line[ROOM];
    for (int64_t r = first; r < first + n; r++) {
        const char *x = (const char *)job->bufs[s->src] + (size_t)(r * s->n) * s->src_bytes;
        s->fns->rows(&job->softmax, x, line, 1, (size_t)s->n);
        qdqi_native_end_line(&s->end, job->bufs, (char *)job->bufs[s->dst] + (size_t)(r * s->n) * s->dst_bytes, r, line,
                             s->n);
    }
}

static void some_lines(int64_t first, int64_t n, void *arg) {
    const softmax_job *job = arg;
    const softmax_impl *s = job->impl;
    const char *x = job->bufs[s->src];
    char *y = job->bufs[s->dst];
    if (s->end.fn != NULL) {
        lines_with_posts(job, first, n);
        return;
    }
    if (s->inner == 1) {
        s->fns->rows(&job->softmax, x + (size_t)(first * s->n) * s->src_bytes,
                     y + (size_t)(first * s->n) * s->dst_bytes, (size_t)n, (size_t)s->n);
        return;
    }
    for (int64_t task = first; task < first + n; task++) {
        const int64_t o = task / s->col_blocks, c = task % s->col_blocks * COLS;
        const int64_t cols = s->inner - c < COLS ? s->inner - c : COLS, at = o * s->n * s->inner + c;
        s->fns->cols(&job->softmax, x + (size_t)at * s->src_bytes, y + (size_t)at * s->dst_bytes, (size_t)s->n,
                     (size_t)s->inner, (size_t)cols);
    }
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const softmax_impl *s = impl;
    softmax_job job = {s, s->softmax, bufs};
    job.softmax.src_scale = qdqi_native_src_scale(&s->args, bufs);
    if (s->end.quantizes) {
        const qdqi_native_quantum q = qdqi_native_quantum_of(&s->end, bufs);
        job.softmax.dst_factor = q.factor;
        job.softmax.zp_first = q.zp_first;
    }
    qdqi_native_parallel(engine, s->outer * s->col_blocks, s->outer * s->n * s->inner, QK_SOFTMAX_GRAIN, some_lines,
                         &job);
    return QDQ_OK;
}

/* Outside, along and inside of the axis, in memory. Returns how many dims the axis and what is inside of it are. */
static int32_t set_sizes(softmax_impl *s, const qdqi_dnnl_md *md, const int32_t *order, int32_t axis) {
    int32_t n_line = 0;
    s->outer = s->inner = 1;
    for (int32_t k = 0; k < md->ndims; k++) {
        if (order[k] == axis)
            n_line = md->ndims - k;
        else
            *(n_line != 0 ? &s->inner : &s->outer) *= md->dims[order[k]];
    }
    s->n = md->dims[axis];
    s->col_blocks = s->inner == 1 ? 1 : (s->inner + COLS - 1) / COLS;
    return n_line;
}

static qdq_status fill(softmax_impl *s, qdqi_native_prim *prim, const qdqi_dnnl_md *x, const qdqi_dnnl_md *y,
                       const int32_t *order, int32_t axis, const qdqi_dnnl_attr *attr, qdq_error *err) {
    int32_t n_line = set_sizes(s, x, order, axis);
    s->src_bytes = qdq_dtype_bits(x->dtype) / 8;
    s->dst_bytes = qdq_dtype_bits(y->dtype) / 8;
    s->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, x);
    s->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, y);
    if (s->inner != 1 || s->n > ROOM) n_line = 0;
    QDQI_TRY(qdqi_native_end_init(&s->end, prim, "softmax", x, y, order, n_line, attr, &s->args, err));
    if (s->end.fn != NULL) s->softmax.dst = QDQ_DTYPE_F32;
    return QDQ_OK;
}

qdq_status qdqi_native_softmax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                               const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out, qdq_error *err) {
    return qdqi_native_softmax_of(alg, false, axis, src, dst, attr, out, err);
}

qdq_status qdqi_native_softmax_of(qdqi_dnnl_alg alg, bool zero_of_inf, int32_t axis, const qdqi_dnnl_md *src,
                                  const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr, qdqi_dnnl_prim **out,
                                  qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run};
    qdqi_dnnl_md x, y;
    int32_t order[QDQ_MAX_NDIMS];
    QDQI_TRY(qdqi_native_layout(src, "softmax", &x, err));
    y = x; /* where the layout is ours to choose */
    y.dtype = dst->dtype;
    if (!dst->any) QDQI_TRY(qdqi_native_layout(dst, "softmax", &y, err));
    if (!qdqi_native_same_layout(&x, &y) || !qdqi_native_memory_order(&x, order) || axis < 0 || axis >= x.ndims)
        return qdqi_native_refuse(err, "softmax", "layout");
    if (!qdqi_native_src_ok(attr, &x)) return qdqi_native_refuse(err, "softmax", "src_not_per_tensor");
    softmax_impl *s;
    qk_softmax kernel = {.src = x.dtype, .dst = y.dtype, .is_log = alg == QDQI_DNNL_LOGSOFTMAX};
    kernel.zero_of_inf = zero_of_inf;
    kernel.src_scale = kernel.dst_factor = 1.0f;
    qk_isa isa;
    const qk_softmax_fns *fns = qk_softmax_choose(&kernel, &isa);
    if (fns == NULL) return qdqi_native_refuse(err, "softmax", "dtype");
    char name[32];
    snprintf(name, sizeof name, "softmax:%s", qk_isa_name(isa));
    qdqi_native_prim *prim = qdqi_native_new(&ops, "softmax", name, sizeof *s, (void **)&s);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    s->softmax = kernel;
    s->fns = fns;
    const qdq_status st = fill(s, prim, &x, &y, order, axis, attr, err);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    return qdqi_native_finish(prim, out, err);
}
