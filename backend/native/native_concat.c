/* Tensors beside each other: one strided copy for each. */
#include "base/alloc.h"
#include "base/checked.h"
#include "kernels/move/move.h"
#include "native/native_prim.h"

typedef struct piece {
    qk_move move;
    uint32_t src;
    size_t offset; /* bytes into dst */
    int64_t bytes;
} piece;

typedef struct concat_impl {
    piece *pieces;
    uint32_t n, dst;
} concat_impl;

typedef struct concat_job {
    const piece *piece;
    const void *src;
    char *dst;
    size_t chunk;
} concat_job;

static void chunk(int i, void *arg) {
    const concat_job *j = arg;
    const size_t n = j->piece->move.n_tasks, first = (size_t)i * j->chunk;
    if (first < n) qk_move_run(&j->piece->move, j->src, j->dst, first, n - first < j->chunk ? n - first : j->chunk);
}

static qdq_status run(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)err;
    const concat_impl *c = impl;
    for (uint32_t i = 0; i < c->n; i++) {
        const piece *p = &c->pieces[i];
        size_t threads = (size_t)qdqi_threads_for(engine, p->bytes, QK_MOVE_GRAIN_BYTES);
        if (threads > p->move.n_tasks) threads = p->move.n_tasks;
        if (threads == 0) continue;
        concat_job j = {p, bufs[p->src], (char *)bufs[c->dst] + p->offset, (p->move.n_tasks + threads - 1) / threads};
        qdqi_parallel(engine, (int)threads, chunk, &j);
    }
    return QDQ_OK;
}

static void clear(void *impl) {
    qdqi_free(((concat_impl *)impl)->pieces);
}

static qdq_status plan_piece(piece *p, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, int32_t axis, int64_t *at,
                             qdq_error *err) {
    if (src->ndims != dst->ndims || src->dtype != dst->dtype) return qdqi_native_refuse(err, "concat", "shape");
    for (int32_t d = 0; d < dst->ndims; d++)
        if (d != axis && src->dims[d] != dst->dims[d]) return qdqi_native_refuse(err, "concat", "shape");
    const uint32_t elem = (uint32_t)(qdq_dtype_bits(dst->dtype) / 8);
    p->offset = (size_t)*at * (size_t)dst->strides[axis] * elem;
    p->bytes = qdqi_native_n_elems(src) * (int64_t)elem;
    if (!qdqi_add_i64(*at, src->dims[axis], at) || *at > dst->dims[axis])
        return qdqi_native_refuse(err, "concat", "shape");
    return qk_move_init(&p->move, elem, dst->ndims, src->dims, src->strides, dst->strides)
               ? QDQ_OK
               : qdqi_native_refuse(err, "concat", "no_kernel");
}

static qdq_status add_pieces(qdqi_native_prim *prim, concat_impl *c, int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs,
                             const qdqi_dnnl_md *dst, qdq_error *err) {
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        qdqi_dnnl_md src;
        QDQI_TRY(qdqi_native_layout(&srcs[i], "concat", &src, err));
        QDQI_TRY(plan_piece(&c->pieces[i], &src, dst, axis, &at, err));
        c->pieces[i].src = qdqi_native_add_md(prim, (qdqi_dnnl_arg)(QDQI_DNNL_SRC_N + i), &src);
    }
    c->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, dst);
    return at == dst->dims[axis] ? QDQ_OK : qdqi_native_refuse(err, "concat", "shape");
}

qdq_status qdqi_native_concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst,
                              qdqi_dnnl_prim **out, qdq_error *err) {
    static const qdqi_native_ops ops = {.run = run, .clear = clear};
    qdqi_dnnl_md d;
    if (n < 1 || n > 1024) return qdqi_native_refuse(err, "concat", "operands");
    QDQI_TRY(qdqi_native_layout(dst, "concat", &d, err));
    if (axis < 0 || axis >= d.ndims) return qdqi_native_refuse(err, "concat", "axis");
    concat_impl *impl;
    qdqi_native_prim *prim = qdqi_native_new(&ops, "concat", "move", sizeof *impl, (void **)&impl);
    if (prim == NULL) return QDQI_NO_MEMORY(err);
    impl->n = n;
    impl->pieces = qdqi_calloc(n, sizeof *impl->pieces);
    const qdq_status st = impl->pieces == NULL ? QDQI_NO_MEMORY(err) : add_pieces(prim, impl, axis, n, srcs, &d, err);
    if (st != QDQ_OK) {
        qdqi_native_drop(prim);
        return st;
    }
    return qdqi_native_finish(prim, out, err);
}
