/* Small steps of lowering's own: element conversion, sign flip, and the reference provider. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "kernels/move/move.h"
#include "lower/lower.h"
#include "ref/ref.h"

#include <stdio.h>
#include <string.h>

/* ---- plain conversion ------------------------------------------------------------------------------------------- */

static bool same_class(qdq_dtype a, qdq_dtype b) {
    return a == b || (qdqi_dtype_is_float(a) && qdqi_dtype_is_float(b));
}

void qdqi_convert_elems(const qdq_tensor_desc *src_desc, const void *src, const qdq_tensor_desc *dst_desc, void *dst) {
    const int64_t n = qdqi_n_elems(src_desc);
    const bool ints = !qdqi_dtype_is_float(src_desc->dtype) && !qdqi_dtype_is_float(dst_desc->dtype);
    const size_t bits = qdq_dtype_bits(src_desc->dtype);
    int64_t at[QDQ_MAX_NDIMS] = {0};
    int64_t si = 0, di = 0;
    for (int64_t k = 0; k < n; k++) {
        if (src_desc->dtype == dst_desc->dtype && bits >= 8) {
            memcpy((char *)dst + (size_t)di * (bits / 8), (const char *)src + (size_t)si * (bits / 8), bits / 8);
        } else if (ints) {
            qdqi_store_i64(dst, dst_desc->dtype, di, qdqi_load_i64(src, src_desc->dtype, si));
        } else if (same_class(src_desc->dtype, dst_desc->dtype) && src_desc->dtype != QDQ_DTYPE_F64) {
            qdqi_store_f32(dst, dst_desc->dtype, di, qdqi_load_f32(src, src_desc->dtype, si));
        } else {
            qdqi_store_f64(dst, dst_desc->dtype, di, qdqi_load_f64(src, src_desc->dtype, si));
        }
        for (int32_t d = src_desc->ndims - 1; d >= 0; d--) {
            si += src_desc->strides[d];
            di += dst_desc->strides[d];
            if (++at[d] < src_desc->dims[d]) break;
            si -= src_desc->strides[d] * src_desc->dims[d];
            di -= dst_desc->strides[d] * dst_desc->dims[d];
            at[d] = 0;
        }
    }
}

typedef struct convert_impl {
    qdq_tensor_desc src, dst;
    size_t copy_bytes; /* not 0: one memcpy */
} convert_impl;

static qdq_status convert_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                              qdq_error *err) {
    (void)state, (void)engine, (void)err;
    const convert_impl *c = impl;
    if (c->copy_bytes != 0)
        memcpy(bufs[1], bufs[0], c->copy_bytes);
    else
        qdqi_convert_elems(&c->src, bufs[0], &c->dst, bufs[1]);
    return QDQ_OK;
}

static const qdqi_step_ops convert_ops = {.provider = "native", .run = convert_run, .impl_destroy = qdqi_free};

/* ---- strided copies on kernels/move ------------------------------------------------------------------------------- */

typedef struct move_impl {
    qk_move move;
    size_t n_bytes;
} move_impl;

typedef struct move_job {
    const move_impl *impl;
    void *const *bufs;
    size_t chunk;
} move_job;

static void move_chunk(int i, void *arg) {
    const move_job *job = arg;
    const size_t first = (size_t)i * job->chunk, n = job->impl->move.n_tasks;
    if (first < n)
        qk_move_run(&job->impl->move, job->bufs[0], job->bufs[1], first,
                    n - first < job->chunk ? n - first : job->chunk);
}

static qdq_status move_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const move_impl *m = impl;
    size_t threads = (size_t)qdqi_threads_for(engine, (int64_t)m->n_bytes, QK_MOVE_GRAIN_BYTES);
    if (threads > m->move.n_tasks) threads = m->move.n_tasks;
    if (threads == 0) return QDQ_OK;
    move_job job = {m, bufs, (m->move.n_tasks + threads - 1) / threads};
    qdqi_parallel(engine, (int)threads, move_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops move_ops = {.provider = "native", .run = move_run, .impl_destroy = qdqi_free};

static qdq_status lower_copy(qdqi_lower *lw, qdqi_buf src, const qdq_tensor_desc *from, qdqi_buf dst,
                             const qdq_tensor_desc *to, qdq_error *err) {
    move_impl *impl = qdqi_calloc(1, sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    const uint32_t elem = (uint32_t)(qdq_dtype_bits(from->dtype) / 8);
    impl->n_bytes = (size_t)qdqi_n_elems(from) * elem;
    if (!qk_move_init(&impl->move, elem, from->ndims, from->dims, from->strides, to->strides)) {
        qdqi_free(impl);
        return qdqi_refuse(err, "copy", "no_kernel");
    }
    const qdqi_buf bufs[] = {src, dst};
    return qdqi_plan_step(lw->plan, &move_ops, impl, bufs, 2, lw->part, "native copy", err);
}

qdq_status qdqi_lower_convert(qdqi_lower *lw, qdqi_buf src, const qdq_tensor_desc *src_desc, qdqi_buf dst,
                              const qdq_tensor_desc *dst_desc, qdq_error *err) {
    const bool copy =
        src_desc->dtype == dst_desc->dtype && qdqi_same_strides(src_desc, dst_desc) && qdqi_is_packed(src_desc);
    if (qdqi_n_elems(src_desc) == 0) return QDQ_OK;
    if (!copy && !lw->reference_only && src_desc->dtype == dst_desc->dtype && qdq_dtype_bits(src_desc->dtype) >= 8)
        return lower_copy(lw, src, src_desc, dst, dst_desc, err);
    if (!copy && !lw->reference_only) { /* another data type: oneDNN between floats */
        qdqi_dnnl_md from, to;
        qdqi_md_of(src_desc, &from);
        qdqi_md_of(dst_desc, &to);
        qdqi_dnnl_prim *prim = NULL;
        const qdqi_request request = {.kind = QDQI_MAKE_REORDER, .src = &from, .dst = &to};
        const bool floats = qdqi_dtype_is_float(src_desc->dtype) && qdqi_dtype_is_float(dst_desc->dtype);
        if (floats && qdqi_make(&request, &prim, NULL) == QDQ_OK) {
            qdqi_args args = {0};
            qdqi_args_add(&args, QDQI_DNNL_SRC, src);
            qdqi_args_add(&args, QDQI_DNNL_DST, dst);
            return qdqi_lower_prim(lw, prim, &args, err);
        }
    }
    convert_impl *impl = qdqi_calloc(1, sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    *impl = (convert_impl){.src = *src_desc, .dst = *dst_desc};
    if (copy) {
        const qdq_status st = qdq_tensor_desc_size_bytes(src_desc, &impl->copy_bytes, err);
        if (st != QDQ_OK) {
            qdqi_free(impl);
            return st;
        }
    }
    const qdqi_buf bufs[] = {src, dst};
    return qdqi_plan_step(lw->plan, &convert_ops, impl, bufs, 2, lw->part, copy ? "native copy" : "native convert",
                          err);
}

/* ---- sign flip -------------------------------------------------------------------------------------------------- */

typedef struct flip_impl {
    size_t n;
} flip_impl;

typedef struct flip_job {
    const uint8_t *src;
    uint8_t *dst;
    size_t n;
    size_t chunk;
} flip_job;

static void flip_chunk(int i, void *arg) {
    const flip_job *job = arg;
    const size_t begin = (size_t)i * job->chunk;
    const size_t end = begin + job->chunk < job->n ? begin + job->chunk : job->n;
    for (size_t k = begin; k < end; k++)
        job->dst[k] = (uint8_t)(job->src[k] ^ 0x80u);
}

static qdq_status flip_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const flip_impl *f = impl;
    const int threads = qdqi_threads_for(engine, (int64_t)f->n, 1 << 16);
    flip_job job = {bufs[0], bufs[1], f->n, (f->n + (size_t)threads - 1) / (size_t)threads};
    qdqi_parallel(engine, threads, flip_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops flip_ops = {.provider = "native", .run = flip_run, .impl_destroy = qdqi_free};

qdq_status qdqi_lower_flip_sign(qdqi_lower *lw, qdqi_buf src, qdqi_buf dst, size_t n, qdq_error *err) {
    flip_impl *impl = qdqi_calloc(1, sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    impl->n = n;
    const qdqi_buf bufs[] = {src, dst};
    return qdqi_plan_step(lw->plan, &flip_ops, impl, bufs, 2, lw->part, "native u8-s8", err);
}

/* ---- reference provider ----------------------------------------------------------------------------------------- */

typedef struct ref_impl {
    const qdq_graph *graph; /* retained: op lives in it */
    const qdqi_op *op;
    size_t scratch_bytes;
    qdqi_ref_tensor *tensors; /* template: descs filled, data resolved on the stack of run */
    qdq_tensor_desc *descs;
} ref_impl;

static void ref_destroy(void *p) {
    ref_impl *impl = p;
    qdqi_graph_release(impl->graph);
    qdqi_free(impl->tensors);
    qdqi_free(impl->descs);
    qdqi_free(impl);
}

static qdq_status ref_state(const void *p, const qdq_engine *engine, void **state_out, qdq_error *err) {
    const ref_impl *impl = p;
    const uint32_t n = impl->op->n_in + impl->op->n_out;
    qdqi_ref_tensor *tensors = qdqi_engine_malloc(engine, n * sizeof *tensors);
    if (tensors == NULL) return QDQI_NO_MEMORY(err);
    memcpy(tensors, impl->tensors, n * sizeof *tensors);
    *state_out = tensors;
    return QDQ_OK;
}

static void ref_state_destroy(void *state, const qdq_engine *engine) {
    qdqi_engine_free(engine, state);
}

/* bufs: inputs, outputs, scratch */
static qdq_status ref_run(const void *p, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)engine;
    const ref_impl *impl = p;
    const uint32_t n = impl->op->n_in + impl->op->n_out;
    qdqi_ref_tensor *tensors = state;
    for (uint32_t i = 0; i < n; i++)
        tensors[i].data = bufs[i];
    const qdqi_ref_args args = {.op = impl->op,
                                .n_in = impl->op->n_in,
                                .n_out = impl->op->n_out,
                                .in = tensors,
                                .out = tensors + impl->op->n_in,
                                .scratch = bufs[n],
                                .scratch_bytes = impl->scratch_bytes};
    return qdqi_ref_run(&args, err);
}

static const qdqi_step_ops ref_ops = {.provider = "reference",
                                      .state_create = ref_state,
                                      .state_destroy = ref_state_destroy,
                                      .run = ref_run,
                                      .impl_destroy = ref_destroy};

qdq_status qdqi_lower_reference(qdqi_lower *lw, uint32_t op_index, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[op_index];
    return qdqi_lower_reference_on(lw, op, op->in, op->out, err);
}

qdq_status qdqi_lower_reference_on(qdqi_lower *lw, const qdqi_op *op, const uint32_t *in, const uint32_t *out,
                                   qdq_error *err) {
    const uint32_t n = op->n_in + op->n_out;
    ref_impl *impl = qdqi_calloc(1, sizeof *impl);
    qdqi_buf *bufs = qdqi_arena_alloc(&lw->arena, n + 1, sizeof *bufs);
    const qdq_tensor_desc **descs = qdqi_arena_alloc(&lw->arena, n, sizeof *descs);
    if (impl == NULL || bufs == NULL || descs == NULL) {
        qdqi_free(impl);
        return QDQI_NO_MEMORY(err);
    }
    qdqi_graph_retain(lw->graph);
    impl->graph = lw->graph;
    impl->op = op;
    impl->tensors = qdqi_calloc(n, sizeof *impl->tensors);
    impl->descs = qdqi_calloc(n, sizeof *impl->descs);
    qdq_status st = impl->tensors == NULL || impl->descs == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
    for (uint32_t i = 0; i < op->n_in && st == QDQ_OK; i++) {
        bufs[i] = QDQI_NO_BUF;
        if (in[i] == QDQI_NONE) continue;
        st = qdqi_lower_read(lw, in[i], &bufs[i], err);
        impl->descs[i] = qdqi_lower_val(lw, in[i])->desc;
        impl->tensors[i].desc = descs[i] = &impl->descs[i];
    }
    for (uint32_t i = op->n_in; i < n && st == QDQ_OK; i++) {
        const uint32_t value = out[i - op->n_in];
        qdq_tensor_desc layout;
        qdqi_lower_out_layout(lw, value, &layout);
        st = qdqi_lower_write(lw, value, &layout, &bufs[i], err);
        impl->descs[i] = qdqi_lower_val(lw, value)->desc;
        impl->tensors[i].desc = descs[i] = &impl->descs[i];
    }
    if (st == QDQ_OK) st = qdqi_ref_scratch_bytes(op, descs, descs + op->n_in, &impl->scratch_bytes, err);
    if (st == QDQ_OK) st = qdqi_plan_temp(lw->plan, impl->scratch_bytes, &bufs[n], err);
    if (st != QDQ_OK) {
        ref_destroy(impl);
        return st;
    }
    char note[96];
    if (snprintf(note, sizeof note, "reference %s", op->schema->name) < 0) note[0] = '\0';
    QDQI_TRY(qdqi_plan_step(lw->plan, &ref_ops, impl, bufs, n + 1, lw->part, note, err));
    for (uint32_t i = 0; i < op->n_out; i++)
        QDQI_TRY(qdqi_lower_written(lw, out[i], err));
    return QDQ_OK;
}
