/* Steps on the native quantization kernels: Quantize/Dequantize-like ops, bit-exact to their spec, and 256-entry tables. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "kernels/lut/lut.h"
#include "kernels/quant/quant.h"
#include "lower/single.h"
#include "ref/ref.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- quantize, dequantize ---------------------------------------------------------------------------------------- */

typedef struct quant_impl {
    qk_quant kernel;
    bool quantize;
    bool has_zp;
    bool check_scales; /* they come at run time: what a constant was checked for at build is checked then */
    size_t n, n_scales;
} quant_impl;

typedef struct quant_job {
    const quant_impl *impl;
    void *const *bufs;
    size_t chunk;
} quant_job;

/* bufs: src, dst, scales, zps */
static void quant_chunk(int i, void *arg) {
    const quant_job *job = arg;
    const quant_impl *q = job->impl;
    const size_t first = (size_t)i * job->chunk;
    if (first >= q->n) return;
    const size_t n = first + job->chunk < q->n ? job->chunk : q->n - first;
    if (q->quantize)
        qk_quantize(&q->kernel, job->bufs[2], q->has_zp ? job->bufs[3] : NULL, job->bufs[0], job->bufs[1], first, n);
    else
        qk_dequantize(&q->kernel, job->bufs[2], q->has_zp ? job->bufs[3] : NULL, job->bufs[0], job->bufs[1], first, n);
}

static qdq_status check_scales(const quant_impl *q, const float *scales, qdq_error *err) {
    for (size_t i = 0; i < q->n_scales; i++)
        if (!isfinite(scales[i]) || scales[i] == 0.0f)
            return qdqi_fail(err, QDQ_E_BAD_SCALE, "quantize: scale %zu: found %g, expected a finite non-zero number",
                             i, (double)scales[i]);
    return QDQ_OK;
}

static qdq_status quant_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                            qdq_error *err) {
    (void)state;
    const quant_impl *q = impl;
    if (q->check_scales) QDQI_TRY(check_scales(q, bufs[2], err));
    const size_t threads = (size_t)qdqi_threads_for(engine, (int64_t)q->n, QK_QUANT_GRAIN);
    const size_t per = (q->n + threads - 1) / threads;
    quant_job job = {q, bufs, (per + QK_QUANT_SPLIT - 1) / QK_QUANT_SPLIT * QK_QUANT_SPLIT};
    qdqi_parallel(engine, (int)threads, quant_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops quant_ops = {.provider = "native", .run = quant_run, .impl_destroy = qdqi_free};

/* How the kernel finds the scale of an element, for a packed tensor in memory order. */
static bool quant_map(const qdqi_qparams *q, const qdq_tensor_desc *desc, qk_quant_map *map) {
    *map = QK_QUANT_PER_TENSOR;
    if (q->gran == QDQI_GRAN_TENSOR) return true;
    if (q->gran == QDQI_GRAN_AXIS) {
        const size_t inner = (size_t)desc->strides[q->axis], c = (size_t)desc->dims[q->axis];
        *map = inner == 1 ? (qk_quant_map){1, c, 1, 1, 0} : (qk_quant_map){c, inner, 1, inner, 0};
        return inner != 0;
    }
    if (!qdqi_is_dense(desc)) return false;
    int32_t first = desc->ndims, last = -1; /* grouped dims */
    for (int32_t d = 0; d < desc->ndims; d++)
        if (q->group[d] != 1) {
            first = d < first ? d : first;
            last = d;
        }
    if (last < 0) last = first = desc->ndims - 1;
    if (last - first > 1) return false;
    /* rows: the first grouped dim; cols: all that lies inside of it, groups of the second dim times what is inside of that */
    size_t inner = 1, planes_step = 1;
    for (int32_t d = last + 1; d < desc->ndims; d++)
        inner *= (size_t)desc->dims[d];
    const size_t rows = (size_t)desc->dims[first], row_group = (size_t)q->group[first];
    size_t cols = inner, col_group = 1;
    if (last != first) {
        if (inner != 1) return false;
        cols = (size_t)desc->dims[last];
        col_group = (size_t)q->group[last];
    }
    planes_step = ((rows + row_group - 1) / row_group) * ((cols + col_group - 1) / col_group);
    *map = (qk_quant_map){rows, cols, row_group, col_group, planes_step};
    return true;
}

/* ONNX's f16 forms round the quotient in f16: the reference does that. */
static bool rounds_in_half(qdqi_lower *lw, const qdqi_op *op, const qdqi_qparams *q) {
    if (op->kind != QDQI_OP_QUANTIZELINEAR) return false;
    const qdqi_attr *precision = qdqi_op_attr_or_null(op, QDQI_A_PRECISION);
    if (precision != NULL && strcmp(precision->v.str, "f32") != 0) return true;
    return q->real != QDQ_DTYPE_F32 || qdqi_lower_val(lw, op->in[1])->desc.dtype != QDQ_DTYPE_F32;
}

qdq_status qdqi_lower_quant(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    qdqi_qparams q;
    /* of TensorFlow's only (q - 0) * scale has the same roundings */
    if (op->kind == QDQI_OP_QUANTIZEV2 || (op->kind == QDQI_OP_TFDEQUANTIZE && qdqi_ref_tf_mode(op) != QDQI_TF_SCALED))
        return qdqi_lower_tf_quant(lw, op, err);
    QDQI_TRY(qdqi_qparams_of(lw, op, &q, err));
    if (rounds_in_half(lw, op, &q)) return qdqi_refuse(err, op->schema->name, "half_precision_quotient");
    if (op->kind == QDQI_OP_DEQUANTIZELINEAR && q.stored == QDQ_DTYPE_S32 && q.zp_value != QDQI_NONE)
        return qdqi_refuse(err, op->schema->name, "runtime_zp_of_s32_must_be_checked");
    qdq_tensor_desc src = qdqi_lower_val(lw, op->in[0])->desc;
    if (!qdqi_is_packed(&src)) qdqi_set_dense(&src);
    if (q.gran == QDQI_GRAN_GROUP || qdq_dtype_bits(q.stored) < 8) qdqi_set_dense(&src);
    qdq_tensor_desc dst = qdqi_lower_val(lw, op->out[0])->desc;
    dst.layout = QDQ_LAYOUT_STRIDED;
    memcpy(dst.strides, src.strides, sizeof dst.strides);
    quant_impl impl = {
        .quantize = (op->schema->flags & QDQI_F_QUANTIZE) != 0, .has_zp = q.has_zp, .n = (size_t)qdqi_n_elems(&src)};
    impl.check_scales = impl.quantize && q.scales == NULL;
    impl.n_scales = (size_t)q.n;
    impl.kernel.real = q.real;
    impl.kernel.stored = q.stored;
    impl.kernel.order = q.add_zp_after_rounding ? QK_ROUND_THEN_ADD : QK_ADD_THEN_ROUND;
    const size_t dst_bits = qdq_dtype_bits(impl.quantize ? q.stored : q.real);
    impl.kernel.stream = impl.n / 8 * dst_bits > qk_isa_stream_bytes(); /* more than the caches keep for its reader */
    if (!quant_map(&q, &src, &impl.kernel.map) || !qk_quant_init(&impl.kernel))
        return qdqi_refuse(err, op->schema->name, "no_kernel_for_dtype_or_groups");
    qdqi_buf bufs[4] = {0, 0, 0, QDQI_NO_BUF};
    QDQI_TRY(qdqi_lower_read_as(lw, op->in[0], &src, &bufs[0], err));
    QDQI_TRY(qdqi_qparams_scale_buf(lw, &q, &bufs[2], err));
    if (q.has_zp) QDQI_TRY(qdqi_qparams_zp_buf(lw, &q, 0, &bufs[3], err));
    QDQI_TRY(qdqi_lower_write(lw, op->out[0], &dst, &bufs[1], err));
    quant_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = impl;
    char note[64];
    if (snprintf(note, sizeof note, "native %s %s", impl.quantize ? "quantize" : "dequantize",
                 qdq_dtype_name(q.stored)) < 0)
        note[0] = '\0';
    QDQI_TRY(qdqi_plan_step(lw->plan, &quant_ops, kept, bufs, 4, lw->part, note, err));
    return qdqi_lower_written(lw, op->out[0], err);
}

/* ---- DynamicQuantizeLinear --------------------------------------------------------------------------------------- */

enum { MAX_RANGE_PARTS = 64 };

typedef struct dynamic_impl {
    qk_quant kernel;
    size_t n;
} dynamic_impl;

typedef struct dynamic_job {
    const dynamic_impl *impl;
    void *const *bufs;
    size_t chunk;
    float scale, lo[MAX_RANGE_PARTS], hi[MAX_RANGE_PARTS];
    int32_t zp;
} dynamic_job;

static void range_chunk(int i, void *arg) {
    dynamic_job *job = arg;
    const size_t first = (size_t)i * job->chunk;
    const size_t left = first < job->impl->n ? job->impl->n - first : 0;
    const size_t n = left < job->chunk ? left : job->chunk;
    const float *x = (const float *)job->bufs[0] + first;
    qk_minmax_f32(x, n, &job->lo[i], &job->hi[i]);
    if (job->lo[i] >= -FLT_MAX && job->hi[i] <= FLT_MAX) return;
    job->lo[i] = job->hi[i] = 0.0f; /* an infinity, or nothing: the range is that of the finite values */
    for (size_t k = 0; k < n; k++)
        if (isfinite(x[k])) {
            job->lo[i] = fminf(job->lo[i], x[k]);
            job->hi[i] = fmaxf(job->hi[i], x[k]);
        }
}

/* From the end to the beginning, a piece at a time: what the range was taken from last is still in the caches. */
static void dynamic_chunk(int i, void *arg) {
    enum { PIECE = 256 * QK_QUANT_SPLIT };
    const dynamic_job *job = arg;
    const size_t begin = (size_t)i * job->chunk, n = job->impl->n;
    const size_t end = begin > n || n - begin < job->chunk ? n : begin + job->chunk;
    for (size_t left = end > begin ? end - begin : 0, m; left > 0; left -= m) {
        m = left % PIECE != 0 ? left % PIECE : PIECE;
        qk_quantize(&job->impl->kernel, &job->scale, &job->zp, job->bufs[0], job->bufs[1], begin + left - m, m);
    }
}

/* bufs: x, y, y_scale, y_zero_point. The range includes 0; a range of width 0 has scale 1 (as the reference). */
static qdq_status dynamic_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                              qdq_error *err) {
    (void)state, (void)err;
    const dynamic_impl *d = impl;
    int threads = qdqi_threads_for(engine, (int64_t)d->n, QK_QUANT_GRAIN);
    if (threads > MAX_RANGE_PARTS) threads = MAX_RANGE_PARTS;
    dynamic_job job = {.impl = d, .bufs = bufs};
    job.chunk = (d->n + (size_t)threads - 1) / (size_t)threads;
    job.chunk = (job.chunk + QK_QUANT_SPLIT - 1) / QK_QUANT_SPLIT * QK_QUANT_SPLIT;
    qdqi_parallel(engine, threads, range_chunk, &job);
    float lo = 0.0f, hi = 0.0f;
    for (int i = 0; i < threads; i++) {
        lo = fminf(lo, job.lo[i]);
        hi = fmaxf(hi, job.hi[i]);
    }
    job.scale = (hi - lo) / 255.0f;
    if (!isfinite(job.scale)) job.scale = hi / 255.0f - lo / 255.0f;
    if (job.scale == 0.0f) job.scale = 1.0f;
    job.zp = (int32_t)rintf(fminf(fmaxf(0.0f - lo / job.scale, 0.0f), 255.0f));
    qdqi_parallel(engine, threads, dynamic_chunk, &job);
    memcpy(bufs[2], &job.scale, sizeof job.scale);
    *(uint8_t *)bufs[3] = (uint8_t)job.zp;
    return QDQ_OK;
}

static const qdqi_step_ops dynamic_ops = {.provider = "native", .run = dynamic_run, .impl_destroy = qdqi_free};

qdq_status qdqi_lower_dynamic_quantize(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    qdq_tensor_desc src = qdqi_lower_val(lw, op->in[0])->desc;
    if (src.dtype != QDQ_DTYPE_F32) return qdqi_refuse(err, op->schema->name, "dtype");
    if (!qdqi_is_packed(&src)) qdqi_set_dense(&src);
    dynamic_impl impl = {.n = (size_t)qdqi_n_elems(&src)};
    impl.kernel.real = QDQ_DTYPE_F32;
    impl.kernel.stored = QDQ_DTYPE_U8;
    impl.kernel.order = QK_ROUND_THEN_ADD;
    impl.kernel.map = QK_QUANT_PER_TENSOR;
    impl.kernel.stream = impl.n >= qk_isa_stream_bytes();
    if (!qk_quant_init(&impl.kernel)) return qdqi_refuse(err, op->schema->name, "no_kernel");
    qdqi_buf bufs[4];
    QDQI_TRY(qdqi_lower_read_as(lw, op->in[0], &src, &bufs[0], err));
    for (uint32_t i = 0; i < 3; i++) {
        qdq_tensor_desc layout;
        qdqi_lower_out_layout(lw, op->out[i], &layout);
        if (i == 0) memcpy(layout.strides, src.strides, sizeof layout.strides);
        QDQI_TRY(qdqi_lower_write(lw, op->out[i], &layout, &bufs[1 + i], err));
    }
    dynamic_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = impl;
    QDQI_TRY(qdqi_plan_step(lw->plan, &dynamic_ops, kept, bufs, 4, lw->part, "native dynamic quantize", err));
    for (uint32_t i = 0; i < 3; i++)
        QDQI_TRY(qdqi_lower_written(lw, op->out[i], err));
    return QDQ_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

typedef struct lut_impl {
    qk_lut_x8_fn *fn;
    uint8_t table[256];
    size_t n;
    bool stream;
} lut_impl;

typedef struct lut_job {
    const lut_impl *impl;
    const uint8_t *src;
    uint8_t *dst;
    size_t chunk;
} lut_job;

static void lut_chunk(int i, void *arg) {
    const lut_job *job = arg;
    const size_t first = (size_t)i * job->chunk;
    if (first >= job->impl->n) return;
    const size_t n = first + job->chunk < job->impl->n ? job->chunk : job->impl->n - first;
    job->impl->fn(job->impl->table, job->src + first, job->dst + first, n, job->impl->stream);
}

static qdq_status lut_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const lut_impl *lut = impl;
    const size_t threads = (size_t)qdqi_threads_for(engine, (int64_t)lut->n, QK_LUT_GRAIN);
    lut_job job = {lut, bufs[0], bufs[1], (lut->n + threads - 1) / threads};
    job.chunk = (job.chunk + 63) / 64 * 64;
    qdqi_parallel(engine, (int)threads, lut_chunk, &job);
    return QDQ_OK;
}

static bool first_only(const void *impl, uint32_t k) {
    (void)impl;
    return k == 0;
}

static const qdqi_step_ops lut_ops = {
    .provider = "native", .run = lut_run, .impl_destroy = qdqi_free, .may_share = first_only};

qdq_status qdqi_lower_table(qdqi_lower *lw, const uint8_t table[256], qdqi_buf src, qdqi_buf dst, size_t n_bytes,
                            qdq_error *err) {
    lut_impl *impl = qdqi_malloc(sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    impl->fn = qk_lut_x8_choose(NULL);
    impl->n = n_bytes;
    impl->stream = n_bytes >= qk_isa_stream_bytes();
    memcpy(impl->table, table, sizeof impl->table);
    const qdqi_buf bufs[] = {src, dst};
    return qdqi_plan_step(lw->plan, &lut_ops, impl, bufs, 2, lw->part, "native table", err);
}

/* ---- the table of a chain of elementwise ops ---------------------------------------------------------------------- */

typedef struct map_ctx {
    qdqi_lower *lw;
    const uint32_t *ops; /* from the Dequantize's result to the Quantize's input */
    uint32_t n_ops;
    uint32_t value;     /* the value that enters ops[0] */
    float (*made)[256]; /* by op: its result, and at [n_ops] that of the Dequantize */
    qdq_status st;
    qdq_error *err;
} map_ctx;

/* Apply one op to n floats by its reference meaning; operands that no op before made are constants of one element. */
static float *made_by(const map_ctx *c, uint32_t value) {
    if (value == c->value) return c->made[c->n_ops];
    for (uint32_t i = 0; i < c->n_ops; i++)
        if (c->lw->graph->ops[c->ops[i]].out[0] == value) return c->made[i];
    return NULL;
}

static qdq_status apply(map_ctx *c, const qdqi_op *op, float *result, size_t n) {
    qdq_tensor_desc desc = {.dtype = QDQ_DTYPE_F32, .ndims = 1, .dims = {(int64_t)n}, .strides = {1}};
    desc.layout = QDQ_LAYOUT_STRIDED;
    qdqi_ref_tensor in[4] = {0}, out = {&desc, result};
    const qdq_tensor_desc *in_descs[4] = {0}, *out_desc = &desc;
    if (op->n_in > 4 || op->n_out != 1) return qdqi_refuse(c->err, "table", "operands");
    qdq_tensor_desc scalars[4];
    for (uint32_t i = 0; i < op->n_in; i++) {
        in[i] = (qdqi_ref_tensor){&desc, made_by(c, op->in[i])};
        if (in[i].data == NULL) {
            const qdqi_lval *lv = qdqi_lower_val(c->lw, op->in[i]);
            if (lv->data == NULL || qdqi_n_elems(&lv->desc) != 1)
                return qdqi_refuse(c->err, "table", "operand_not_a_constant");
            scalars[i] = (qdq_tensor_desc){.dtype = lv->desc.dtype, .layout = QDQ_LAYOUT_STRIDED};
            in[i] = (qdqi_ref_tensor){&scalars[i], (void *)(uintptr_t)lv->data};
        }
        in_descs[i] = in[i].desc;
    }
    qdqi_ref_args args = {.op = op, .n_in = op->n_in, .n_out = 1, .in = in, .out = &out};
    QDQI_TRY(qdqi_ref_scratch_bytes(op, in_descs, &out_desc, &args.scratch_bytes, c->err));
    if (n > 256) return qdqi_fail(c->err, QDQ_E_INTERNAL, "a table has 256 entries");
    args.scratch = qdqi_malloc_aligned(args.scratch_bytes);
    if (args.scratch == NULL) return QDQI_NO_MEMORY(c->err);
    const qdq_status st = qdqi_ref_run(&args, c->err);
    qdqi_free_aligned(args.scratch);
    return st;
}

static void map_values(float *values, size_t n, void *context) {
    map_ctx *c = context;
    memcpy(c->made[c->n_ops], values, n * sizeof *values);
    for (uint32_t i = 0; i < c->n_ops && c->st == QDQ_OK; i++)
        c->st = apply(c, &c->lw->graph->ops[c->ops[i]], c->made[i], n);
    if (c->st == QDQ_OK) memcpy(values, c->made[c->n_ops - 1], n * sizeof *values);
}

static bool as_x8(const qdqi_qparams *q, qk_x8 *out) {
    if ((q->stored != QDQ_DTYPE_U8 && q->stored != QDQ_DTYPE_S8) || !qdqi_qparams_is_const_tensor(q) ||
        q->real != QDQ_DTYPE_F32)
        return false;
    *out = (qk_x8){q->stored, q->scales[0], qdqi_qparams_zp0(q)};
    return true;
}

qdq_status qdqi_chain_table(qdqi_lower *lw, const qdqi_qparams *from, const uint32_t *ops, uint32_t n_ops,
                            uint32_t value, const qdqi_qparams *to, uint8_t table[256], qdq_error *err) {
    qk_x8 src, dst;
    if (to->half_away) return qdqi_refuse(err, "table", "rounds_differently");
    if (!as_x8(from, &src) || !as_x8(to, &dst)) return qdqi_refuse(err, "table", "not_per_tensor_constant_x8");
    map_ctx c = {lw, ops, n_ops, value, NULL, QDQ_OK, err};
    if (n_ops != 0) {
        c.made = qdqi_arena_alloc(&lw->arena, (size_t)n_ops + 1, sizeof *c.made);
        if (c.made == NULL) return QDQI_NO_MEMORY(err);
    }
    qk_quant_table(&src, n_ops == 0 ? NULL : map_values, &c, &dst,
                   to->add_zp_after_rounding ? QK_ROUND_THEN_ADD : QK_ADD_THEN_ROUND, table);
    return c.st;
}
