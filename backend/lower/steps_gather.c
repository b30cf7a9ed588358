/* Gather of indices that are known when it runs: pieces of memory, one for each index. (Indices that are constant: steps_index.c.) */
#include "base/alloc.h"
#include "lower/chain.h"

#include <string.h>

enum { GRAIN_BYTES = 32 * 1024 };

typedef struct gather_impl {
    int64_t dim, n;   /* the axis is so long; so many indices */
    int64_t n_pieces; /* n for every index before the axis */
    size_t piece;     /* bytes */
    bool is_wide;     /* indices of 64 bits, else of 32 */
} gather_impl;

static int64_t index_at(const gather_impl *x, const void *indices, int64_t i) {
    int64_t wide;
    int32_t narrow;
    if (x->is_wide)
        memcpy(&wide, (const char *)indices + 8 * i, sizeof wide);
    else
        memcpy(&narrow, (const char *)indices + 4 * i, sizeof narrow);
    return x->is_wide ? wide : narrow;
}

typedef struct gather_job {
    const gather_impl *impl;
    void *const *bufs; /* data, indices, result */
    int64_t each;
} gather_job;

static void gather_chunk(int c, void *arg) {
    const gather_job *job = arg;
    const gather_impl *x = job->impl;
    const int64_t begin = c * job->each, end = begin + job->each < x->n_pieces ? begin + job->each : x->n_pieces;
    const char *data = job->bufs[0];
    char *to = (char *)job->bufs[2] + (size_t)begin * x->piece;
#define COPY(bytes)                                                                                                    \
    for (int64_t i = begin; i < end; i++, to += (bytes)) {                                                             \
        const int64_t k = index_at(x, job->bufs[1], i % x->n);                                                         \
        memcpy(to, data + (size_t)(i / x->n * x->dim + (k < 0 ? k + x->dim : k)) * (bytes), bytes);                    \
    }
    switch (x->piece) {
    case 1: COPY(1); break;
    case 2: COPY(2); break;
    case 4: COPY(4); break;
    case 8: COPY(8); break;
    default: COPY(x->piece); break;
    }
#undef COPY
}

static qdq_status gather_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                             qdq_error *err) {
    (void)state;
    const gather_impl *x = impl;
    for (int64_t i = 0; i < x->n; i++) {
        const int64_t k = index_at(x, bufs[1], i);
        if (k < -x->dim || k >= x->dim)
            return qdqi_fail(err, QDQ_E_BAD_ARG, "Gather: index %lld is outside -%lld…%lld", (long long)k,
                             (long long)x->dim, (long long)x->dim - 1);
    }
    if (x->piece == 0) return QDQ_OK;
    const int threads = qdqi_threads_for(engine, x->n_pieces * (int64_t)x->piece, GRAIN_BYTES);
    gather_job job = {x, bufs, (x->n_pieces + threads - 1) / threads};
    qdqi_parallel(engine, threads, gather_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops gather_ops = {.provider = "native", .run = gather_run, .impl_destroy = qdqi_free};

qdq_status qdqi_lower_gather(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, uint32_t out, qdq_error *err) {
    qdq_tensor_desc src = qdqi_lower_val(lw, in[0])->desc, indices = qdqi_lower_val(lw, in[1])->desc;
    qdq_tensor_desc dst = qdqi_lower_val(lw, out)->desc;
    gather_impl x = {.n = qdqi_n_elems(&indices), .is_wide = indices.dtype == QDQ_DTYPE_S64};
    int32_t axis;
    if (!x.is_wide && indices.dtype != QDQ_DTYPE_S32) return qdqi_refuse(err, "gather", "dtype");
    if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), src.ndims, &axis)) return qdqi_refuse(err, "gather", "axis");
    int64_t outer = 1;
    x.piece = qdq_dtype_bits(src.dtype) / 8;
    for (int32_t d = 0; d < src.ndims; d++) {
        if (d < axis) outer *= src.dims[d];
        if (d > axis) x.piece *= (size_t)src.dims[d];
    }
    x.dim = src.dims[axis];
    x.n_pieces = outer * x.n;
    if (qdqi_n_elems(&dst) * (int64_t)(qdq_dtype_bits(dst.dtype) / 8) != x.n_pieces * (int64_t)x.piece)
        return qdqi_refuse(err, "gather", "shape");
    qdqi_set_dense(&src);
    qdqi_set_dense(&indices);
    qdqi_set_dense(&dst);
    qdqi_buf bufs[3];
    QDQI_TRY(qdqi_lower_read_as(lw, in[0], &src, &bufs[0], err));
    QDQI_TRY(qdqi_lower_read_as(lw, in[1], &indices, &bufs[1], err));
    QDQI_TRY(qdqi_lower_write(lw, out, &dst, &bufs[2], err));
    gather_impl *impl = qdqi_malloc(sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    *impl = x;
    QDQI_TRY(qdqi_plan_step(lw->plan, &gather_ops, impl, bufs, 3, lw->part, "native Gather", err));
    return qdqi_lower_written(lw, out, err);
}
