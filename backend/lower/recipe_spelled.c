/* LayerNorm and RMSNorm spelled out as small ops (ir/spelled.h), with or without a Quantize and a Dequantize behind each, in
 * one step: row by row, every op with its own rounding to f32 and every pair with its own rounding to integers, so that the
 * result is that of the ops one by one. Means are summed in f64.
 *
 * Behind the norm itself, additions, multiplications and the like (gamma and beta) and more pairs are taken as far as
 * kernels/binary goes: in segments, one from each Dequantize to the next Quantize. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "ir/spelled.h"
#include "kernels/binary/binary.h"
#include "lower/single.h"

#include <math.h>
#include <string.h>

enum { MAX_SEGMENTS = 4, MAX_BUFS = 16, GRAIN_ELEMS = 8 * 1024, BLOCK_ELEMS = 2048, MAX_THREADS = 256, LANES = 8 };

/* Quantize, Dequantize */
typedef struct pair {
    bool on;
    qk_binary q, dq;
    qk_binary_fn *q_fn, *dq_fn;
} pair;

typedef struct segment {
    qk_binary chain;
    qk_binary_fn *fn;
    int32_t bufs[QK_BINARY_MAX_STEPS];      /* of the step's operand; -1: the factor of the row */
    int64_t row_bytes[QK_BINARY_MAX_STEPS]; /* from row to row of it */
} segment;

typedef struct spelled_impl {
    int64_t n_rows, n; /* n: elements of a row */
    int64_t rows;      /* done at a time */
    bool centred, reciprocal, inverse_root;
    float epsilon;
    qk_binary load; /* from 8 bits */
    qk_binary_fn *load_fn;
    int64_t src_bytes, dst_bytes; /* of an element */
    pair pairs[QDQI_SPELLED_STAGES];
    uint32_t n_segments;
    segment segments[MAX_SEGMENTS];
    size_t scratch_bytes; /* of a thread */
} spelled_impl;

typedef struct spelled_job {
    const spelled_impl *impl;
    void *const *bufs; /* src, dst, scratch, operands */
    int64_t rows_per_chunk;
} spelled_job;

/* ---- running it -------------------------------------------------------------------------------------------------- */

static double add_up(const double lanes[LANES]) {
    double sum = 0.0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static double sum_of(const float *x, int64_t n) {
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)x[i + k];
    for (; i < n; i++)
        lanes[i % LANES] += (double)x[i];
    return add_up(lanes);
}

static double sum_of_squares(const float *x, int64_t n) {
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)(x[i + k] * x[i + k]);
    for (; i < n; i++)
        lanes[i % LANES] += (double)(x[i] * x[i]);
    return add_up(lanes);
}

/* x through the integers and back, in place. */
static void through(const pair *p, float *x, uint8_t *integers, int64_t n) {
    if (!p->on) return;
    p->q_fn(&p->q, x, NULL, integers, (size_t)n);
    p->dq_fn(&p->dq, integers, NULL, x, (size_t)n);
}

/* Some rows at a time, so that what there is one of per row goes through its pairs together. */
typedef struct row_block {
    int64_t first, n;
    float *loaded, *d, *squares; /* n rows each */
    uint8_t *integers[2];        /* n rows each */
    float *factors;              /* one per row: means at first, then what the row is divided by or multiplied with */
} row_block;

static void centre(const spelled_impl *s, const row_block *r, const float *x) {
    for (int64_t i = 0; i < r->n; i++)
        r->factors[i] = (float)(sum_of(x + i * s->n, s->n) / (double)s->n);
    through(&s->pairs[QDQI_SPELLED_MEAN], r->factors, r->integers[0], r->n);
    for (int64_t i = 0; i < r->n; i++) {
        const float mean = r->factors[i];
        for (int64_t k = i * s->n; k < (i + 1) * s->n; k++)
            r->d[k] = x[k] - mean;
    }
    through(&s->pairs[QDQI_SPELLED_CENTRE], r->d, r->integers[0], r->n * s->n);
}

static void find_factors(const spelled_impl *s, const row_block *r, const float *d) {
    float *v = r->factors;
    if (s->pairs[QDQI_SPELLED_SQUARE].on) {
        for (int64_t k = 0; k < r->n * s->n; k++)
            r->squares[k] = d[k] * d[k];
        through(&s->pairs[QDQI_SPELLED_SQUARE], r->squares, r->integers[0], r->n * s->n);
        for (int64_t i = 0; i < r->n; i++)
            v[i] = (float)(sum_of(r->squares + i * s->n, s->n) / (double)s->n);
    } else {
        for (int64_t i = 0; i < r->n; i++)
            v[i] = (float)(sum_of_squares(d + i * s->n, s->n) / (double)s->n);
    }
    through(&s->pairs[QDQI_SPELLED_VARIANCE], v, r->integers[0], r->n);
    for (int64_t i = 0; i < r->n; i++)
        v[i] += s->epsilon;
    through(&s->pairs[QDQI_SPELLED_SHIFT], v, r->integers[0], r->n);
    for (int64_t i = 0; i < r->n; i++)
        v[i] = s->inverse_root ? (float)pow((double)v[i], -0.5) : sqrtf(v[i]);
    through(&s->pairs[QDQI_SPELLED_ROOT], v, r->integers[0], r->n);
    if (!s->reciprocal) return;
    for (int64_t i = 0; i < r->n; i++)
        v[i] = 1.0f / v[i];
    through(&s->pairs[QDQI_SPELLED_RECIPROCAL], v, r->integers[0], r->n);
}

static void follow_row(const spelled_impl *s, void *const *bufs, const row_block *r, const float *x, int64_t i) {
    const void *from = x + i * s->n;
    for (uint32_t k = 0; k < s->n_segments; k++) {
        const segment *seg = &s->segments[k];
        const void *operands[QK_BINARY_MAX_STEPS];
        for (uint32_t j = 0; j < seg->chain.n_steps; j++)
            operands[j] = seg->bufs[j] < 0 ? (const void *)&r->factors[i]
                                           : (const char *)bufs[seg->bufs[j]] + (r->first + i) * seg->row_bytes[j];
        void *to = k + 1 == s->n_segments ? (char *)bufs[1] + (r->first + i) * s->n * s->dst_bytes
                                          : (void *)r->integers[k % 2];
        seg->fn(&seg->chain, from, operands, to, (size_t)s->n);
        from = to;
    }
}

static void run_rows(const spelled_impl *s, void *const *bufs, const row_block *r) {
    const char *src = (const char *)bufs[0] + r->first * s->n * s->src_bytes;
    const float *x = (const float *)(const void *)src;
    if (s->load_fn != NULL) {
        s->load_fn(&s->load, src, NULL, r->loaded, (size_t)(r->n * s->n));
        x = r->loaded;
    }
    if (s->centred) {
        centre(s, r, x);
        x = r->d;
    }
    find_factors(s, r, x);
    for (int64_t i = 0; i < r->n; i++)
        follow_row(s, bufs, r, x, i);
}

static void spelled_chunk(int i, void *arg) {
    const spelled_job *job = arg;
    const int64_t first = i * job->rows_per_chunk, end = first + job->rows_per_chunk;
    const spelled_impl *s = job->impl;
    const int64_t n = s->n * s->rows;
    float *scratch = (float *)(void *)((char *)job->bufs[2] + (size_t)i * s->scratch_bytes);
    row_block r = {.loaded = scratch, .d = scratch + n, .squares = scratch + 2 * n, .factors = scratch + 3 * n};
    r.integers[0] = (uint8_t *)(r.factors + s->rows);
    r.integers[1] = r.integers[0] + n;
    for (r.first = first; r.first < end && r.first < s->n_rows; r.first += r.n) {
        r.n = s->n_rows - r.first < end - r.first ? s->n_rows - r.first : end - r.first;
        if (r.n > s->rows) r.n = s->rows;
        run_rows(s, job->bufs, &r);
    }
}

static int most_threads(const qdq_engine *engine) {
    const int n = engine->options.n_threads;
    return n < 1 ? 1 : n < MAX_THREADS ? n : MAX_THREADS;
}

static qdq_status spelled_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                              qdq_error *err) {
    (void)state, (void)err;
    const spelled_impl *s = impl;
    int threads = qdqi_threads_for(engine, s->n_rows * s->n, GRAIN_ELEMS);
    if (threads > most_threads(engine)) threads = most_threads(engine);
    spelled_job job = {s, bufs, (s->n_rows + threads - 1) / threads};
    qdqi_parallel(engine, threads, spelled_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops spelled_ops = {.provider = "native", .run = spelled_run, .impl_destroy = qdqi_free};

/* ---- building it ------------------------------------------------------------------------------------------------- */

typedef struct builder {
    const qdqi_part *part;
    qdqi_spelled form;
    spelled_impl impl;
    qdq_tensor_desc dst;
    qdqi_buf bufs[MAX_BUFS];
    uint32_t n_bufs;
} builder;

static bool in_part(const qdqi_part *part, uint32_t op) {
    for (uint32_t i = 0; i < part->n_ops; i++)
        if (part->ops[i] == op) return true;
    return false;
}

/* An end of kernels/binary with constant parameters. */
static qdq_status as_end(qdqi_lower *lw, const qdqi_op *op, qk_binary_end *end, bool *zp_first, qdq_error *err) {
    qdqi_qparams q;
    QDQI_TRY(qdqi_qparams_of(lw, op, &q, err));
    if (!qdqi_is_x8(q.stored) || q.real != QDQ_DTYPE_F32 || !qdqi_qparams_is_const_tensor(&q))
        return qdqi_refuse(err, "spelled norm", "not_per_tensor_constant_x8");
    if (q.half_away) return qdqi_refuse(err, "spelled norm", "rounds_differently");
    *end = (qk_binary_end){.dtype = q.stored, .scale = q.scales[0], .zp = qdqi_qparams_zp0(&q), .step = 1};
    *zp_first = !q.add_zp_after_rounding;
    return QDQ_OK;
}

static const qk_binary_end floats = {.dtype = QDQ_DTYPE_F32, .step = 1};

static qdq_status make_pair(qdqi_lower *lw, const qdqi_spelled_stage *stage, pair *p, qdq_error *err) {
    if (stage->q == QDQI_NONE) return QDQ_OK;
    bool unused;
    p->on = true;
    p->q.src = p->dq.dst = floats;
    QDQI_TRY(as_end(lw, &lw->graph->ops[stage->q], &p->q.dst, &p->q.add_zp_first, err));
    QDQI_TRY(as_end(lw, &lw->graph->ops[stage->dq], &p->dq.src, &unused, err));
    p->q_fn = qk_binary_choose(&p->q, NULL);
    p->dq_fn = qk_binary_choose(&p->dq, NULL);
    return p->q_fn != NULL && p->dq_fn != NULL ? QDQ_OK : qdqi_refuse(err, "spelled norm", "no_kernel");
}

/* A mean over the last dims, from `first` on. */
static qdq_status trailing_axes(qdqi_lower *lw, uint32_t op_index, int32_t ndims, int32_t *first, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[op_index];
    uint32_t n;
    const int64_t *attr = qdqi_op_s64s(op, QDQI_A_AXES, &n);
    const qdqi_lval *lv = op->n_in > 1 && op->in[1] != QDQI_NONE ? qdqi_lower_val(lw, op->in[1]) : NULL;
    if (lv != NULL && (lv->data == NULL || !qdqi_is_dense(&lv->desc)))
        return qdqi_refuse(err, "spelled norm", "runtime_axes");
    const int64_t count = lv != NULL ? qdqi_n_elems(&lv->desc) : n;
    bool reduced[QDQ_MAX_NDIMS] = {false};
    for (int64_t i = 0; i < count; i++) {
        int32_t d;
        const int64_t axis = lv != NULL ? qdqi_load_i64(lv->data, lv->desc.dtype, i) : attr[i];
        if (!qdqi_norm_axis(axis, ndims, &d)) return qdqi_refuse(err, "spelled norm", "axis");
        reduced[d] = true;
    }
    *first = ndims;
    while (*first > 0 && (reduced[*first - 1] || count == 0))
        (*first)--;
    for (int32_t d = 0; d < *first; d++)
        if (reduced[d]) return qdqi_refuse(err, "spelled norm", "not_the_last_axis");
    return *first < ndims ? QDQ_OK : qdqi_refuse(err, "spelled norm", "axis");
}

static qdq_status read_source(qdqi_lower *lw, builder *b, qdqi_buf *buf, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    spelled_impl *s = &b->impl;
    uint32_t value = b->form.x;
    const uint32_t producer = g->values[value].producer;
    if (producer != QDQI_NONE && in_part(b->part, producer)) { /* the Dequantize */
        bool unused;
        const qdq_status st = as_end(lw, &g->ops[producer], &s->load.src, &unused, err);
        if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
        s->load.dst = floats;
        if (st == QDQ_OK) s->load_fn = qk_binary_choose(&s->load, NULL);
        if (s->load_fn != NULL) value = g->ops[producer].in[0];
    }
    QDQI_TRY(qdqi_lower_make(lw, value, err));
    qdq_tensor_desc desc = qdqi_lower_val(lw, value)->desc;
    if (s->load_fn == NULL && desc.dtype != QDQ_DTYPE_F32) return qdqi_refuse(err, "spelled norm", "dtype");
    qdqi_set_dense(&desc);
    s->src_bytes = (int64_t)qdq_dtype_bits(desc.dtype) / 8;
    int32_t first, second = 0;
    QDQI_TRY(trailing_axes(lw, b->form.stages[QDQI_SPELLED_VARIANCE].op, desc.ndims, &first, err));
    if (s->centred) QDQI_TRY(trailing_axes(lw, b->form.stages[QDQI_SPELLED_MEAN].op, desc.ndims, &second, err));
    if (s->centred && first != second) return qdqi_refuse(err, "spelled norm", "axis");
    s->n = s->n_rows = 1;
    for (int32_t d = 0; d < desc.ndims; d++)
        *(d < first ? &s->n_rows : &s->n) *= desc.dims[d];
    return qdqi_lower_read_as(lw, value, &desc, buf, err);
}

/* Operand of a step: floats, one for all, one per column, or one per element. */
static qdq_status add_operand(qdqi_lower *lw, builder *b, segment *seg, qk_binary_op op, uint32_t value,
                              qdq_error *err) {
    if (seg->chain.n_steps == QK_BINARY_MAX_STEPS) return qdqi_refuse(err, "spelled norm", "too_many");
    if (b->n_bufs == MAX_BUFS) return qdqi_refuse(err, "spelled norm", "too_many_operands");
    const uint32_t k = seg->chain.n_steps;
    qk_binary_step *step = &seg->chain.steps[k];
    *step = (qk_binary_step){op, floats};
    const qdq_graph *g = lw->graph;
    const uint32_t producer = g->values[value].producer;
    const bool dq = qdqi_lower_val(lw, value)->data == NULL && producer != QDQI_NONE && in_part(b->part, producer) &&
                    (g->ops[producer].schema->flags & QDQI_F_DEQUANTIZE) != 0 &&
                    qdqi_lower_val(lw, g->ops[producer].in[0])->data == NULL;
    bool unused;
    if (dq && as_end(lw, &g->ops[producer], &step->operand, &unused, NULL) == QDQ_OK)
        value = g->ops[producer].in[0];
    else
        step->operand = floats;
    QDQI_TRY(qdqi_lower_make(lw, value, err));
    qdq_tensor_desc desc = qdqi_lower_val(lw, value)->desc;
    if (desc.dtype != step->operand.dtype) return qdqi_refuse(err, "spelled norm", "operand_dtype");
    qdqi_set_dense(&desc);
    const int64_t n = qdqi_n_elems(&desc);
    int64_t trailing = 1; /* of the result, in as many dims as the operand has */
    bool row = desc.ndims <= b->dst.ndims;
    for (int32_t d = desc.ndims - 1, at = b->dst.ndims - 1; row && d >= 0 && trailing < n; d--, at--) {
        row = desc.dims[d] == b->dst.dims[at];
        trailing *= b->dst.dims[at];
    }
    if (n == 1)
        step->operand.step = 0;
    else if (qdqi_same_dims(&desc, &b->dst))
        seg->row_bytes[k] = b->impl.n * (int64_t)qdq_dtype_bits(desc.dtype) / 8;
    else if (!row || n != b->impl.n)
        return qdqi_refuse(err, "spelled norm", "broadcast");
    seg->bufs[k] = (int32_t)b->n_bufs;
    QDQI_TRY(qdqi_lower_read_as(lw, value, &desc, &b->bufs[b->n_bufs], err));
    b->n_bufs++;
    seg->chain.n_steps++;
    return QDQ_OK;
}

static qdq_status add_number(qdqi_lower *lw, builder *b, segment *seg, qk_binary_op op, float value, qdq_error *err) {
    if (seg->chain.n_steps == QK_BINARY_MAX_STEPS) return qdqi_refuse(err, "spelled norm", "too_many");
    if (b->n_bufs == MAX_BUFS) return qdqi_refuse(err, "spelled norm", "too_many_operands");
    const uint32_t k = seg->chain.n_steps++;
    seg->chain.steps[k] = (qk_binary_step){op, {.dtype = QDQ_DTYPE_F32, .step = 0}};
    seg->bufs[k] = (int32_t)b->n_bufs;
    return qdqi_lower_const(lw, &value, sizeof value, &b->bufs[b->n_bufs++], err);
}

/* One op behind the norm as a step; UNSUPPORTED: the step ends before it. */
static qdq_status add_op(qdqi_lower *lw, builder *b, segment *seg, const qdqi_op *op, uint32_t value, qdq_error *err) {
    static const struct {
        qdqi_kind kind;
        qk_binary_op op, reversed;
    } rows[] = {{QDQI_OP_ADD, QK_BINARY_ADD, QK_BINARY_ADD},      {QDQI_OP_SUBTRACT, QK_BINARY_SUB, QK_BINARY_SUB_REV},
                {QDQI_OP_MULTIPLY, QK_BINARY_MUL, QK_BINARY_MUL}, {QDQI_OP_DIVIDE, QK_BINARY_DIV, QK_BINARY_DIV_REV},
                {QDQI_OP_MAXIMUM, QK_BINARY_MAX, QK_BINARY_MAX},  {QDQI_OP_MINIMUM, QK_BINARY_MIN, QK_BINARY_MIN}};
    if (!qdqi_same_dims(&qdqi_lower_val(lw, op->out[0])->desc, &b->dst))
        return qdqi_refuse(err, "spelled norm", "shape_changes");
    if (op->kind == QDQI_OP_RELU) return add_number(lw, b, seg, QK_BINARY_MAX, 0.0f, err);
    if (op->kind == QDQI_OP_CLAMP) {
        QDQI_TRY(add_number(lw, b, seg, QK_BINARY_MAX, qdqi_op_f32(op, QDQI_A_MIN), err));
        return add_number(lw, b, seg, QK_BINARY_MIN, qdqi_op_f32(op, QDQI_A_MAX), err);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind != op->kind || op->in[0] == op->in[1]) continue;
        const bool reversed = op->in[0] != value;
        return add_operand(lw, b, seg, reversed ? rows[i].reversed : rows[i].op, op->in[reversed ? 0 : 1], err);
    }
    return qdqi_refuse(err, "spelled norm", "op");
}

/* The only reader of a value, when that is an op of the partition; else NULL. */
static const qdqi_op *reader_of(const qdqi_lower *lw, const builder *b, uint32_t value) {
    const qdqi_value *v = &lw->graph->values[value];
    if (v->n_uses != 1 || v->is_output || !in_part(b->part, v->uses[0].op)) return NULL;
    return &lw->graph->ops[v->uses[0].op];
}

/* All that follows, as far as it goes. `value` is the norm's result at first and the step's in the end. */
static qdq_status follow(qdqi_lower *lw, builder *b, uint32_t *value, qdq_error *err) {
    spelled_impl *s = &b->impl;
    segment *seg = &s->segments[s->n_segments++];
    seg->chain.src = floats;
    seg->chain.n_steps = 1;
    seg->chain.steps[0] =
        (qk_binary_step){b->form.multiplies ? QK_BINARY_MUL : QK_BINARY_DIV, {QDQ_DTYPE_F32, 0, 0, 0}};
    seg->bufs[0] = -1;
    for (const qdqi_op *op; (op = reader_of(lw, b, *value)) != NULL;) {
        if ((op->schema->flags & QDQI_F_QUANTIZE) != 0) {
            const qdqi_op *dq = reader_of(lw, b, op->out[0]);
            const qdq_status st = op->in[0] == *value ? as_end(lw, op, &seg->chain.dst, &seg->chain.add_zp_first, err)
                                                      : QDQ_E_UNSUPPORTED;
            if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
            if (st != QDQ_OK || s->n_segments == MAX_SEGMENTS) break;
            if (dq == NULL) {
                *value = op->out[0];
                return QDQ_OK;
            }
            segment *next = &s->segments[s->n_segments];
            bool unused;
            *next = (segment){.chain.dst = floats};
            const qdq_status back = as_end(lw, dq, &next->chain.src, &unused, err);
            if (back != QDQ_OK) { /* ends in integers */
                *value = op->out[0];
                return back == QDQ_E_UNSUPPORTED ? QDQ_OK : back;
            }
            seg = next;
            s->n_segments++;
            *value = dq->out[0];
            continue;
        }
        const uint32_t n_steps = seg->chain.n_steps;
        const qdq_status st = add_op(lw, b, seg, op, *value, err);
        if (st != QDQ_OK) {
            seg->chain.n_steps = n_steps;
            if (st != QDQ_E_UNSUPPORTED) return st;
            break;
        }
        *value = op->out[0];
    }
    seg->chain.dst = floats;
    return qdqi_lower_val(lw, *value)->desc.dtype == QDQ_DTYPE_F32 ? QDQ_OK : qdqi_refuse(err, "spelled norm", "dtype");
}

static qdq_status read_epsilon(qdqi_lower *lw, builder *b, qdq_error *err) {
    QDQI_TRY(qdqi_lower_make(lw, b->form.epsilon, err));
    const qdqi_lval *lv = qdqi_lower_val(lw, b->form.epsilon);
    if (lv->data == NULL || lv->desc.dtype != QDQ_DTYPE_F32 || qdqi_n_elems(&lv->desc) != 1)
        return qdqi_refuse(err, "spelled norm", "operand_not_a_constant");
    b->impl.epsilon = qdqi_load_f32(lv->data, lv->desc.dtype, 0);
    return QDQ_OK;
}

/* The op that the form ends in. */
static const qdqi_op *last_of(const qdqi_lower *lw, const qdqi_part *part, bool centred, qdqi_spelled *form) {
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const qdqi_op *op = &lw->graph->ops[part->ops[i]];
        const uint32_t first = centred ? QDQI_SPELLED_MEAN : QDQI_SPELLED_SQUARE;
        if ((op->kind == QDQI_OP_DIVIDE || op->kind == QDQI_OP_MULTIPLY) &&
            qdqi_spelled_read(lw->graph, op, centred, form) && form->stages[first].op == part->root)
            return op;
    }
    return NULL;
}

static qdq_status append(qdqi_lower *lw, builder *b, uint32_t value, qdq_error *err) {
    spelled_impl *s = &b->impl;
    for (uint32_t k = 0; k < s->n_segments; k++) {
        s->segments[k].fn = qk_binary_choose(&s->segments[k].chain, NULL);
        if (s->segments[k].fn == NULL) return qdqi_refuse(err, "spelled norm", "no_kernel");
    }
    qdq_tensor_desc desc = qdqi_lower_val(lw, value)->desc;
    size_t bytes;
    qdqi_set_dense(&desc);
    s->dst_bytes = (int64_t)qdq_dtype_bits(desc.dtype) / 8;
    s->rows = s->n >= BLOCK_ELEMS ? 1 : BLOCK_ELEMS / s->n;
    if (s->rows > s->n_rows) s->rows = s->n_rows;
    /* per element three floats and two bytes, per row a float */
    if (__builtin_mul_overflow((size_t)(s->n + 1) * (size_t)s->rows, 3 * sizeof(float) + 2, &s->scratch_bytes) ||
        s->scratch_bytes > SIZE_MAX / 2 / MAX_THREADS)
        return qdqi_fail(err, QDQ_E_OVERFLOW, "a row's scratch overflows");
    s->scratch_bytes = (s->scratch_bytes + 63) / 64 * 64;
    bytes = s->scratch_bytes * (size_t)most_threads(lw->engine);
    QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, &b->bufs[2], err));
    QDQI_TRY(qdqi_lower_write(lw, value, &desc, &b->bufs[1], err));
    spelled_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = *s;
    QDQI_TRY(qdqi_plan_step(lw->plan, &spelled_ops, kept, b->bufs, b->n_bufs, lw->part,
                            s->centred ? "native spelled layernorm" : "native spelled rmsnorm", err));
    return qdqi_lower_written(lw, value, err);
}

qdq_status qdqi_recipe_spelled(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    if (lw->graph->ops[part->root].kind == QDQI_OP_REDUCEMAX) return qdqi_recipe_spelled_softmax(lw, part, err);
    builder *b = qdqi_lower_scratch(lw, sizeof *b);
    if (b == NULL) return QDQI_NO_MEMORY(err);
    spelled_impl *s = &b->impl;
    b->part = part;
    b->n_bufs = 3;
    s->centred = lw->graph->ops[part->root].kind == QDQI_OP_REDUCEMEAN;
    const qdqi_op *last = last_of(lw, part, s->centred, &b->form);
    if (last == NULL) return qdqi_refuse(err, "spelled norm", "not_a_chain");
    uint32_t value = last->out[0];
    b->dst = qdqi_lower_val(lw, value)->desc;
    if (b->dst.dtype != QDQ_DTYPE_F32) return qdqi_refuse(err, "spelled norm", "dtype");
    s->reciprocal = b->form.stages[QDQI_SPELLED_RECIPROCAL].op != QDQI_NONE;
    s->inverse_root = b->form.multiplies && !s->reciprocal;
    for (uint32_t i = 0; i < QDQI_SPELLED_STAGES; i++)
        QDQI_TRY(make_pair(lw, &b->form.stages[i], &s->pairs[i], err));
    QDQI_TRY(read_epsilon(lw, b, err));
    QDQI_TRY(read_source(lw, b, &b->bufs[0], err));
    if (s->n < 1 || s->n_rows < 1 || s->n * s->n_rows != qdqi_n_elems(&b->dst))
        return qdqi_refuse(err, "spelled norm", "shape");
    QDQI_TRY(follow(lw, b, &value, err));
    QDQI_TRY(append(lw, b, value, err));
    return qdqi_lower_make(lw, lw->graph->ops[part->ops[part->n_ops - 1]].out[0], err); /* what did not fit */
}
