#include "lower/wq.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "kernels/convert/convert.h"
#include "kernels/gemm/gemm.h"
#include "lower/single.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the step ---------------------------------------------------------------------------------------------------- */

enum { GRAIN_BYTES = 128 * 1024 }; /* of packed weights and row: below this a second thread costs more than it brings */

/* Half floats are widened right before the product, and rounded right behind it, while they are in a cache. */
typedef struct wq_impl {
    qk_gemm gemm;
    qk_gemm_fn *fn;
    size_t rows;
    bool has_bias;
    qk_convert_fn *widen, *narrow; /* NULL: rows, results are f32 */
    size_t dst_elem;
} wq_impl;

enum { ROWS, WEIGHTS, BIAS, DST, ROWS_F32, DST_F32, N_BUFS }; /* the last two where they are converted */

typedef struct wq_job {
    const wq_impl *impl;
    void *const *bufs;
    size_t chunk;
} wq_job;

static void wq_chunk(int i, void *arg) {
    const wq_job *job = arg;
    const wq_impl *w = job->impl;
    const qk_gemm *g = &w->gemm;
    const size_t first = (size_t)i * job->chunk;
    if (first >= g->n_panels) return;
    const size_t n = g->n_panels - first < job->chunk ? g->n_panels - first : job->chunk;
    const float *bias = w->has_bias ? job->bufs[BIAS] : NULL;
    float *sums = job->bufs[w->narrow != NULL ? DST_F32 : DST];
    w->fn(g, job->bufs[WEIGHTS], job->bufs[w->widen != NULL ? ROWS_F32 : ROWS], g->k, sums, g->n, w->rows, first, n);
    const size_t begin = first * QK_GEMM_COLS, end = begin + n * QK_GEMM_COLS < g->n ? begin + n * QK_GEMM_COLS : g->n;
    for (size_t row = 0; row < w->rows; row++, sums += g->n) {
        for (size_t col = begin; bias != NULL && col < end; col++)
            sums[col] += bias[col];
        if (w->narrow != NULL)
            w->narrow(sums + begin, (char *)job->bufs[DST] + (row * g->n + begin) * w->dst_elem, end - begin);
    }
}

static qdq_status wq_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const wq_impl *w = impl;
    const int64_t work = (int64_t)(w->gemm.packed_bytes / 4 * (w->rows + 3));
    const size_t threads = (size_t)qdqi_threads_for(engine, work, GRAIN_BYTES);
    wq_job job = {w, bufs, (w->gemm.n_panels + threads - 1) / threads};
    if (w->widen != NULL) w->widen(bufs[ROWS], bufs[ROWS_F32], w->rows * w->gemm.k);
    qdqi_parallel(engine, (int)threads, wq_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops wq_ops = {.provider = "native", .run = wq_run, .impl_destroy = qdqi_free};

/* ---- what the graph says ----------------------------------------------------------------------------------------- */

typedef struct wq {
    wq_impl impl;
    qk_gemm_source source;
    qdq_tensor_desc rows_desc; /* dense */
    size_t n_params;
    qk_isa isa;
} wq;

static bool is_float(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

/* Which scale belongs to which weight. `kd`: the dim of K in the weights. */
static const char *read_granularity(const qdqi_qparams *q, int32_t kd, wq *w) {
    qk_gemm *g = &w->impl.gemm;
    qk_gemm_source *s = &w->source;
    g->k_group = g->k;
    s->n_group = g->n;
    switch (q->gran) {
    case QDQI_GRAN_TENSOR: break;
    case QDQI_GRAN_AXIS:
        if (q->axis == kd) return "weights_axis_not_n";
        s->n_group = s->scale_n_stride = 1;
        break;
    case QDQI_GRAN_GROUP:
        if (q->group[0] < 1 || q->group[1] < 1) return "group_size";
        if ((size_t)q->group[kd] < g->k) g->k_group = (size_t)q->group[kd];
        if ((size_t)q->group[1 - kd] < g->n) s->n_group = (size_t)q->group[1 - kd];
        break;
    }
    const size_t groups_k = (g->k - 1) / g->k_group + 1, groups_n = (g->n - 1) / s->n_group + 1;
    if (q->gran == QDQI_GRAN_GROUP) {
        s->scale_k_stride = kd == 0 ? groups_n : 1;
        s->scale_n_stride = kd == 0 ? 1 : groups_k;
    }
    w->n_params = groups_k * groups_n; /* no more than there are weights */
    if ((size_t)q->n != w->n_params) return "group_count";
    return NULL;
}

/* Zero points as the kernel takes them: none when all are the middle of the type. */
static qdq_status read_zps(qdqi_lower *lw, const qdqi_qparams *q, wq *w, qdq_error *err) {
    const int32_t middle = q->stored == QDQ_DTYPE_U8 ? 128 : q->stored == QDQ_DTYPE_U4 ? 8 : 0;
    bool all_middle = true;
    for (size_t i = 0; i < w->n_params; i++)
        all_middle = all_middle && (q->zps != NULL ? q->zps[i] : 0) == middle;
    w->impl.gemm.has_zp = !all_middle;
    w->source.zps = q->zps;
    if (!all_middle && q->zps == NULL) { /* all zero, of unsigned weights */
        w->source.zps = qdqi_arena_alloc(&lw->arena, w->n_params, sizeof *w->source.zps);
        if (w->source.zps == NULL) return QDQI_NO_MEMORY(err);
    }
    return QDQ_OK;
}

static const char *read_weights(qdqi_lower *lw, const qdqi_op *op, const qdqi_operand *operand, wq *w) {
    const qdqi_qparams *q = &operand->q;
    if (operand->dq_op == QDQI_NONE) return "operand_not_dequantized";
    const qdqi_lval *lv = qdqi_lower_val(lw, operand->q_value);
    if (lv->data == NULL) return "weights_not_constant";
    if (q->scales == NULL || q->zp_value != QDQI_NONE) return "runtime_scale_or_zero_point";
    if (lv->desc.ndims != 2) return "weights_rank";
    const bool gemm = op->kind == QDQI_OP_GEMM;
    const int32_t kd = qdqi_op_bool(op, gemm ? QDQI_A_TRANSB : QDQI_A_TRANSPOSE_B) ? 1 : 0;
    w->impl.gemm.weights = q->stored;
    w->impl.gemm.k = (size_t)lv->desc.dims[kd];
    w->impl.gemm.n = (size_t)lv->desc.dims[1 - kd];
    if (lv->desc.dims[0] < 1 || lv->desc.dims[1] < 1) return "zero_size";
    w->source.data = lv->data;
    w->source.k_stride = (size_t)lv->desc.strides[kd];
    w->source.n_stride = (size_t)lv->desc.strides[1 - kd];
    w->source.scales = q->scales;
    const char *why = read_granularity(q, kd, w);
    for (size_t i = 0; why == NULL && i < w->n_params; i++)
        if (!isfinite(q->scales[i])) why = "scale_not_finite";
    return why;
}

static const char *read_rows(qdqi_lower *lw, const qdqi_op *op, wq *w) {
    const bool gemm = op->kind == QDQI_OP_GEMM;
    const qdq_tensor_desc *a = &qdqi_lower_val(lw, op->in[0])->desc;
    if (!is_float(a->dtype) || !is_float(qdqi_lower_val(lw, op->out[0])->desc.dtype)) return "dtype";
    if (a->ndims < 1) return "scalar_operand";
    if (a->ndims > 1 && qdqi_op_bool(op, gemm ? QDQI_A_TRANSA : QDQI_A_TRANSPOSE_A)) return "transposed_src";
    if (gemm && (qdqi_op_f32(op, QDQI_A_ALPHA) != 1.0f || qdqi_op_f32(op, QDQI_A_BETA) != 1.0f)) return "gemm_scaling";
    if ((size_t)a->dims[a->ndims - 1] != w->impl.gemm.k) return "shape";
    w->rows_desc = *a;
    qdqi_set_dense(&w->rows_desc);
    w->impl.rows = (size_t)qdqi_n_elems(a) / w->impl.gemm.k;
    return w->impl.rows == 0 ? "zero_size" : NULL;
}

/* The kernel, if it takes the form and is the better way. */
static const char *choose(wq *w) {
    qk_gemm *g = &w->impl.gemm;
    size_t max_rows, float_bytes;
    if (!qk_gemm_init(g)) return "no_kernel_for_dtype_or_groups";
    w->impl.fn = qk_gemm_choose(g, &max_rows, &w->isa);
    if (w->impl.rows > max_rows && qdqi_dnnl_available()) return "many_rows";
    if (!qdqi_mul_size(g->k, g->n, &float_bytes) || !qdqi_mul_size(float_bytes, 4, &float_bytes)) return "size";
    /* padding of few columns, scales of small groups: floats would be as small */
    if (g->packed_bytes >= float_bytes) return "packed_no_smaller_than_floats";
    return NULL;
}

/* ---- appending --------------------------------------------------------------------------------------------------- */

static qdq_status pack(void *dst, size_t bytes, void *arg, qdq_error *err) {
    const wq *w = arg;
    (void)bytes;
    return qk_gemm_pack(&w->impl.gemm, &w->source, dst) ? QDQ_OK : qdqi_refuse(err, "weights", "zero_point_range");
}

/* The packed weights. Scales and zero points are in them, so the key has both. */
static qdq_status packed_weights(qdqi_lower *lw, wq *w, uint32_t value, qdqi_buf *buf_out, qdq_error *err) {
    const qk_gemm *g = &w->impl.gemm;
    const qk_gemm_source *s = &w->source;
    const size_t head[] = {0x7771,           (size_t)g->weights, g->k,        g->n,        g->k_group,
                           g->has_zp,        s->n_group,         s->k_stride, s->n_stride, s->scale_k_stride,
                           s->scale_n_stride};
    const size_t scale_bytes = w->n_params * sizeof *s->scales, zp_bytes = g->has_zp ? w->n_params * sizeof *s->zps : 0;
    unsigned char *key = qdqi_malloc(sizeof head + scale_bytes + zp_bytes);
    if (key == NULL) return QDQI_NO_MEMORY(err);
    memcpy(key, head, sizeof head);
    memcpy(key + sizeof head, s->scales, scale_bytes);
    if (g->has_zp) memcpy(key + sizeof head + scale_bytes, s->zps, zp_bytes);
    size_t src_bytes;
    qdqi_const c;
    qdq_status st = qdq_tensor_desc_size_bytes(&qdqi_lower_val(lw, value)->desc, &src_bytes, err);
    if (st == QDQ_OK)
        st = qdqi_const_get(lw->engine, s->data, src_bytes, key, sizeof head + scale_bytes + zp_bytes, g->packed_bytes,
                            pack, w, &c, err);
    qdqi_free(key);
    QDQI_TRY(st);
    return qdqi_plan_const(lw->plan, c, buf_out, err);
}

static qdq_status add_bias(qdqi_lower *lw, const qdqi_chain *chain, wq *w, qdqi_buf *buf_out, qdq_error *err) {
    *buf_out = QDQI_NO_BUF;
    if (chain->n_operands < 3 || chain->operands[2].value == QDQI_NONE) return QDQ_OK;
    QDQI_TRY(qdqi_operand_as_float(lw, &chain->operands[2], err));
    qdq_tensor_desc want = qdqi_lower_val(lw, chain->operands[2].value)->desc;
    const int64_t n = (int64_t)w->impl.gemm.n;
    if (!is_float(want.dtype) || qdqi_n_elems(&want) != n || want.ndims == 0 || want.dims[want.ndims - 1] != n)
        return qdqi_refuse(err, "weights", "bias_shape");
    want.dtype = QDQ_DTYPE_F32;
    qdqi_set_dense(&want);
    w->impl.has_bias = true;
    return qdqi_lower_read_as(lw, chain->operands[2].value, &want, buf_out, err);
}

static qdq_status append(qdqi_lower *lw, const wq *w, const qdqi_buf *bufs, qdq_error *err) {
    wq_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = w->impl;
    char note[96];
    if (snprintf(note, sizeof note, "native matmul %s weights, %s", qdq_dtype_name(w->impl.gemm.weights),
                 qk_isa_name(w->isa)) < 0)
        note[0] = '\0';
    return qdqi_plan_step(lw->plan, &wq_ops, kept, bufs, N_BUFS, lw->part, note, err);
}

/* Room for a tensor as f32, if it is something else. */
static qdq_status scratch(qdqi_lower *lw, const qdq_tensor_desc *desc, qdqi_buf *buf_out, qdq_error *err) {
    qdq_tensor_desc floats = *desc;
    floats.dtype = QDQ_DTYPE_F32;
    *buf_out = QDQI_NO_BUF;
    return desc->dtype == QDQ_DTYPE_F32 ? QDQ_OK : qdqi_lower_temp(lw, &floats, buf_out, err);
}

qdq_status qdqi_lower_wq(qdqi_lower *lw, const qdqi_chain *chain, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[chain->root];
    wq w;
    memset(&w, 0, sizeof w);
    const char *why = read_weights(lw, op, &chain->operands[1], &w);
    if (why == NULL) why = read_rows(lw, op, &w);
    if (why != NULL) return qdqi_refuse(err, "weights", why);
    QDQI_TRY(read_zps(lw, &chain->operands[1].q, &w, err));
    why = choose(&w);
    if (why != NULL) return qdqi_refuse(err, "weights", why);

    qdqi_buf bufs[N_BUFS];
    QDQI_TRY(packed_weights(lw, &w, chain->operands[1].q_value, &bufs[WEIGHTS], err));
    QDQI_TRY(add_bias(lw, chain, &w, &bufs[BIAS], err));
    QDQI_TRY(qdqi_operand_as_float(lw, &chain->operands[0], err));
    QDQI_TRY(qdqi_lower_read_as(lw, op->in[0], &w.rows_desc, &bufs[ROWS], err));
    QDQI_TRY(scratch(lw, &w.rows_desc, &bufs[ROWS_F32], err));
    if (bufs[ROWS_F32] != QDQI_NO_BUF) w.impl.widen = qk_convert_choose(w.rows_desc.dtype, QDQ_DTYPE_F32, NULL);
    qdq_tensor_desc layout = qdqi_lower_val(lw, op->out[0])->desc;
    qdqi_set_dense(&layout);
    QDQI_TRY(scratch(lw, &layout, &bufs[DST_F32], err));
    if (bufs[DST_F32] != QDQI_NO_BUF) w.impl.narrow = qk_convert_choose(QDQ_DTYPE_F32, layout.dtype, NULL);
    w.impl.dst_elem = qdq_dtype_bits(layout.dtype) / 8;
    QDQI_TRY(qdqi_lower_write(lw, op->out[0], &layout, &bufs[DST], err));
    QDQI_TRY(append(lw, &w, bufs, err));
    QDQI_TRY(qdqi_lower_written(lw, op->out[0], err));
    return qdqi_lower_links(lw, chain, 0, err);
}
