/* [dq] [dq] - binary (and ReLU, Clamp) chain - [q] in one pass over memory, by kernels/binary.
 *
 * Every operand is read as it is stored, with numpy broadcasting: the destination is walked in memory order in runs over which each
 * operand either advances by one or stays. */
#include "base/alloc.h"
#include "base/dtype.h"
#include "kernels/affine/affine.h"
#include "kernels/binary/binary.h"
#include "lower/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_RUN = 4096 };

/* ---- the step ---------------------------------------------------------------------------------------------------- */

typedef struct binary_impl {
    qk_binary chain;
    qk_binary_fn *fn;
    qk_affine affine;
    qk_affine_fn *affine_fn; /* not NULL: the chain is a line per channel, and operands 1 and 2 are factor and shift */
    qdqi_walk walk;          /* over src, then one operand per step */
} binary_impl;

static void chain_row(const void *impl, const void *const *src, void *dst, int64_t n) {
    const binary_impl *b = impl;
    b->fn(&b->chain, src[0], src + 1, dst, (size_t)n);
}

static void affine_row(const void *impl, const void *const *src, void *dst, int64_t n) {
    const binary_impl *b = impl;
    b->affine_fn(&b->affine, src[1], src[2], (size_t)b->walk.step[1], src[0], dst, (size_t)n);
}

static qdq_status binary_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine,
                             qdq_error *err) {
    (void)state, (void)err;
    const binary_impl *b = impl;
    qdqi_walk_run(&b->walk, b->affine_fn != NULL ? affine_row : chain_row, b, QK_BINARY_GRAIN, bufs, engine);
    return QDQ_OK;
}

/* (The line's vectors are floats, and smaller.) */
static bool binary_may_share(const void *impl, uint32_t k) {
    return qdqi_walk_is_alike(&((const binary_impl *)impl)->walk, k);
}

static const qdqi_step_ops binary_ops = {
    .provider = "native", .run = binary_run, .impl_destroy = qdqi_free, .may_share = binary_may_share};

/* ---- building it ------------------------------------------------------------------------------------------------- */

/* scale = gamma / sqrt(variance + epsilon), shift = beta - mean * scale, in f64. With `line`, the quantizations on both sides go
 * into them too, so that they take a byte to the result before it is rounded. Written `times` times over. */
typedef struct fold_impl {
    int64_t n, times;
    float epsilon;
    qdq_dtype dtypes[4];
    bool line;
    double src_scale, src_zp, dst_scale, dst_zp;
} fold_impl;

typedef struct builder {
    binary_impl impl;
    uint32_t n_operands;
    qdq_tensor_desc dst;
    qdq_tensor_desc descs[QDQI_WALK_ENDS]; /* layouts in which the operands are read, then dst's */
    bool is_vector[QDQI_WALK_SOURCES];  /* along the channels, whose buffer waits for add_vectors: operands 1 and 2 */
    fold_impl fold;                     /* that make them of … */
    uint32_t parameters[4];             /* … these values */
    float scalars[QK_BINARY_MAX_STEPS]; /* per step: its constant, where it has one; else NaN */
    qdqi_buf bufs[QDQI_WALK_ENDS];
} builder;

static bool end_dtype(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16;
}

/* Read an operand: its integers when it is dequantized by constants, else its floats. */
static qdq_status add_operand(qdqi_lower *lw, builder *b, const qdqi_operand *operand, qk_binary_end *end,
                              qdq_error *err) {
    if (b->n_operands == QDQI_WALK_SOURCES) return qdqi_refuse(err, "binary", "too_many_operands");
    uint32_t value = operand->value;
    *end = (qk_binary_end){.dtype = QDQ_DTYPE_F32, .step = 1};
    const bool x8 = operand->dq_op != QDQI_NONE && qdqi_qparams_is_const_tensor(&operand->q) &&
                    operand->q.real == QDQ_DTYPE_F32 &&
                    (operand->q.stored == QDQ_DTYPE_U8 || operand->q.stored == QDQ_DTYPE_S8);
    if (x8 && qdqi_lower_val(lw, operand->value)->data == NULL) {
        value = operand->q_value;
        end->scale = operand->q.scales[0];
        end->zp = qdqi_qparams_zp0(&operand->q);
    } else {
        QDQI_TRY(qdqi_operand_as_float(lw, operand, err));
    }
    const uint32_t k = b->n_operands++;
    b->descs[k] = qdqi_lower_val(lw, value)->desc;
    end->dtype = b->descs[k].dtype;
    if (!end_dtype(end->dtype)) return qdqi_refuse(err, "binary", "operand_dtype");
    if (qdqi_same_dims(&b->descs[k], &b->dst))
        memcpy(b->descs[k].strides, b->dst.strides, sizeof b->dst.strides);
    else
        qdqi_set_dense(&b->descs[k]);
    return qdqi_lower_read_as(lw, value, &b->descs[k], &b->bufs[k], err);
}

static qdq_status add_scalar(qdqi_lower *lw, builder *b, qk_binary_op op, float value, qdq_error *err) {
    if (b->n_operands == QDQI_WALK_SOURCES) return qdqi_refuse(err, "binary", "too_many_operands");
    const uint32_t k = b->n_operands++;
    b->scalars[b->impl.chain.n_steps] = value;
    b->impl.chain.steps[b->impl.chain.n_steps++] = (qk_binary_step){op, {.dtype = QDQ_DTYPE_F32, .step = 0}};
    b->descs[k] = (qdq_tensor_desc){.dtype = QDQ_DTYPE_F32, .layout = QDQ_LAYOUT_STRIDED};
    return qdqi_lower_const(lw, &value, sizeof value, &b->bufs[k], err);
}

static bool op_of(qdqi_dnnl_alg alg, bool swapped, qk_binary_op *op) {
    switch ((int)alg) {
    case QDQI_DNNL_BIN_ADD: *op = QK_BINARY_ADD; return true;
    case QDQI_DNNL_BIN_SUB: *op = swapped ? QK_BINARY_SUB_REV : QK_BINARY_SUB; return true;
    case QDQI_DNNL_BIN_MUL: *op = QK_BINARY_MUL; return true;
    case QDQI_DNNL_BIN_DIV: *op = swapped ? QK_BINARY_DIV_REV : QK_BINARY_DIV; return true;
    case QDQI_DNNL_BIN_MAX: *op = QK_BINARY_MAX; return true;
    case QDQI_DNNL_BIN_MIN: *op = QK_BINARY_MIN; return true;
    default: return false;
    }
}

static qdq_status add_unary(qdqi_lower *lw, builder *b, const qdqi_op *op, qdq_error *err) {
    if (op->kind == QDQI_OP_RELU) return add_scalar(lw, b, QK_BINARY_MAX, 0.0f, err);
    if (op->kind != QDQI_OP_CLAMP) return qdqi_refuse(err, "binary", "unary_op");
    QDQI_TRY(add_scalar(lw, b, QK_BINARY_MAX, qdqi_op_f32(op, QDQI_A_MIN), err));
    return add_scalar(lw, b, QK_BINARY_MIN, qdqi_op_f32(op, QDQI_A_MAX), err);
}

static qdq_status add_link(qdqi_lower *lw, builder *b, const qdqi_link *link, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[link->op];
    qk_binary_op kind;
    if (link->self || op->kind == QDQI_OP_BIASADD) return qdqi_refuse(err, "binary", "operand");
    if (!link->binary) {
        if (link->alg == QDQI_DNNL_ELT_SWISH) return qdqi_refuse(err, "binary", "unary_op");
        return add_unary(lw, b, op, err);
    }
    if (!op_of(link->alg, link->swapped, &kind)) return qdqi_refuse(err, "binary", "op");
    qk_binary_step *step = &b->impl.chain.steps[b->impl.chain.n_steps];
    step->op = kind;
    QDQI_TRY(add_operand(lw, b, &link->other, &step->operand, err));
    b->impl.chain.n_steps++;
    return QDQ_OK;
}

/* ---- BatchNormInference: one multiplication and one addition per channel -------------------------------------------- */

static void fold_vectors(const fold_impl *f, const void *const in[4], float *scale, float *shift) {
    for (int64_t i = 0; i < f->n; i++) {
        double v[4];
        for (int k = 0; k < 4; k++)
            v[k] = qdqi_load_f64(in[k], f->dtypes[k], i);
        double s = v[0] / sqrt(v[3] + (double)f->epsilon), t = v[1] - v[2] * s;
        if (f->line) {
            s *= f->src_scale / f->dst_scale;
            t = t / f->dst_scale - s * f->src_zp + f->dst_zp;
        }
        scale[i] = (float)s;
        shift[i] = (float)t;
    }
    for (int64_t i = 1; i < f->times; i++) {
        memcpy(scale + i * f->n, scale, (size_t)f->n * sizeof *scale);
        memcpy(shift + i * f->n, shift, (size_t)f->n * sizeof *shift);
    }
}

/* bufs: gamma, beta, mean, variance, scale, shift */
static qdq_status fold_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)engine, (void)err;
    const void *const in[4] = {bufs[0], bufs[1], bufs[2], bufs[3]};
    fold_vectors(impl, in, bufs[4], bufs[5]);
    return QDQ_OK;
}

static const qdqi_step_ops fold_ops = {.provider = "native", .run = fold_run, .impl_destroy = qdqi_free};

/* A place for a vector along the channels; add_vectors will fill it. */
static qdq_status add_channel_vector(builder *b, qk_binary_op op, int32_t channel, qdq_error *err) {
    if (b->n_operands == QDQI_WALK_SOURCES) return qdqi_refuse(err, "binary", "too_many_operands");
    const uint32_t k = b->n_operands++;
    b->impl.chain.steps[b->impl.chain.n_steps++] = (qk_binary_step){op, {.dtype = QDQ_DTYPE_F32, .step = 1}};
    b->descs[k] = (qdq_tensor_desc){.dtype = QDQ_DTYPE_F32, .ndims = b->dst.ndims, .layout = QDQ_LAYOUT_STRIDED};
    for (int32_t d = 0; d < b->dst.ndims; d++)
        b->descs[k].dims[d] = d == channel ? b->dst.dims[d] : 1;
    qdqi_set_dense(&b->descs[k]);
    b->is_vector[k] = true;
    return QDQ_OK;
}

static qdq_status add_batchnorm(qdqi_lower *lw, builder *b, const qdqi_chain *chain, const qdqi_op *op,
                                qdq_error *err) {
    fold_impl *f = &b->fold;
    const int32_t channel = qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NXC") ? b->dst.ndims - 1 : 1;
    if (b->dst.ndims < 2) return qdqi_refuse(err, "binary", "rank");
    *f = (fold_impl){.n = b->dst.dims[channel], .epsilon = qdqi_op_f32(op, QDQI_A_EPSILON)};
    for (uint32_t i = 0; i < 4; i++) {
        QDQI_TRY(qdqi_operand_as_float(lw, &chain->operands[i + 1], err));
        b->parameters[i] = chain->operands[i + 1].value;
        f->dtypes[i] = qdqi_lower_val(lw, b->parameters[i])->desc.dtype;
    }
    QDQI_TRY(add_channel_vector(b, QK_BINARY_MUL, channel, err));
    return add_channel_vector(b, QK_BINARY_ADD, channel, err);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static qdq_status set_walk(builder *b, qdq_error *err) {
    binary_impl *impl = &b->impl;
    b->descs[b->n_operands] = b->dst;
    QDQI_TRY(qdqi_walk_init(b->descs, b->n_operands, &impl->walk, err));
    impl->chain.src.step = impl->walk.step[0];
    for (uint32_t k = 1; k < b->n_operands; k++)
        impl->chain.steps[k - 1].operand.step = impl->walk.step[k];
    return QDQ_OK;
}

/* Channels last make runs as short as there are channels, and a call for each: when only such vectors end the run, it
 * gets longer by repeating them. Returns how many times. */
static int64_t lengthen_run(builder *b) {
    qdqi_walk *w = &b->impl.walk;
    const int32_t d = w->n_outer - 1;
    if (d < 0 || w->run < 1 || w->run >= LONG_RUN || w->outer_dims[d] < 1) return 1;
    for (uint32_t k = 0; k <= w->n_src; k++) {
        const bool repeats = k < w->n_src && b->is_vector[k];
        if (w->strides_bytes[k][d] != (w->step[k] == 0 || repeats ? 0 : w->run * w->elem_bytes[k])) return 1;
    }
    int64_t times = LONG_RUN / w->run;
    times = times < w->outer_dims[d] ? times : w->outer_dims[d];
    while (w->outer_dims[d] % times != 0)
        times--;
    for (uint32_t k = 0; k <= w->n_src; k++)
        w->strides_bytes[k][d] *= times;
    w->outer_dims[d] /= times;
    w->n_rows /= times;
    w->run *= times;
    return times;
}

/* The two vectors, at compile or by a step. */
static qdq_status add_vectors(qdqi_lower *lw, builder *b, qdq_error *err) {
    const fold_impl *f = &b->fold;
    size_t bytes;
    if (!b->is_vector[1]) return QDQ_OK;
    if (f->n < 0 || __builtin_mul_overflow((size_t)f->n * sizeof(float), (size_t)f->times, &bytes))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "channels overflow");
    const void *data[4];
    bool constant = true;
    for (uint32_t i = 0; i < 4; i++) {
        const qdqi_lval *lv = qdqi_lower_val(lw, b->parameters[i]);
        data[i] = lv->data;
        constant = constant && lv->data != NULL && qdqi_is_dense(&lv->desc);
    }
    if (constant) {
        float *scale = qdqi_arena_alloc(&lw->arena, (size_t)f->n * (size_t)f->times + 1, 2 * sizeof *scale);
        if (scale == NULL) return QDQI_NO_MEMORY(err);
        float *shift = scale + f->n * f->times;
        fold_vectors(f, data, scale, shift);
        QDQI_TRY(qdqi_lower_const(lw, scale, bytes, &b->bufs[1], err));
        return qdqi_lower_const(lw, shift, bytes, &b->bufs[2], err);
    }
    qdqi_buf bufs[6];
    for (uint32_t i = 0; i < 4; i++) {
        qdq_tensor_desc dense = qdqi_lower_val(lw, b->parameters[i])->desc;
        qdqi_set_dense(&dense);
        QDQI_TRY(qdqi_lower_read_as(lw, b->parameters[i], &dense, &bufs[i], err));
    }
    QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, &bufs[4], err));
    QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, &bufs[5], err));
    b->bufs[1] = bufs[4];
    b->bufs[2] = bufs[5];
    fold_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = *f;
    return qdqi_plan_step(lw->plan, &fold_ops, kept, bufs, 6, lw->part, "native batchnorm vectors", err);
}

/* ---- a line per channel ------------------------------------------------------------------------------------------ */

/* Bytes times a vector plus a vector, then ReLU or Clip, to bytes: the quantizations fold into the two vectors. False when
 * the chain is another. */
static bool fold_line(builder *b) {
    const qk_binary *c = &b->impl.chain;
    const bool from8 = c->src.dtype == QDQ_DTYPE_U8 || c->src.dtype == QDQ_DTYPE_S8;
    const bool to8 = c->dst.dtype == QDQ_DTYPE_U8 || c->dst.dtype == QDQ_DTYPE_S8;
    if (!from8 || !to8 || !b->is_vector[1] || !(c->dst.scale > 0.0f) || abs(c->dst.zp) > 255) return false;
    qdqi_stored_range range;
    qdqi_stored_range_init(&range, c->dst.dtype, c->dst.scale, c->dst.zp, !c->add_zp_first);
    for (uint32_t i = 2; i < c->n_steps; i++) {
        if (isnan(b->scalars[i])) return false;
        switch ((int)c->steps[i].op) {
        case QK_BINARY_MAX: qdqi_stored_range_max(&range, b->scalars[i]); break;
        case QK_BINARY_MIN: qdqi_stored_range_min(&range, b->scalars[i]); break;
        default: return false;
        }
    }
    b->fold.line = true;
    b->fold.src_scale = (double)c->src.scale;
    b->fold.src_zp = (double)c->src.zp;
    b->fold.dst_scale = (double)c->dst.scale;
    b->fold.dst_zp = c->add_zp_first ? (double)c->dst.zp : 0.0;
    b->impl.affine = (qk_affine){.src = c->src.dtype,
                                 .dst = c->dst.dtype,
                                 .zp = c->add_zp_first ? 0 : c->dst.zp,
                                 .low = range.low,
                                 .high = range.high};
    b->impl.affine_fn = qk_affine_choose(NULL);
    return true;
}

/* How many of the first links the kernel takes, with the root: of its ops, of the result's shape, within its length. */
static uint32_t leading_links(qdqi_lower *lw, const qdqi_chain *chain) {
    uint32_t steps = QDQI_CHAIN_OPERANDS, n = 0; /* at least what the root takes */
    for (; n < chain->n_links; n++) {
        const qdqi_link *link = &chain->links[n];
        const qdqi_op *op = &lw->graph->ops[link->op];
        qk_binary_op kind;
        const bool takes = link->binary
                               ? op->kind != QDQI_OP_BIASADD && !link->self && op_of(link->alg, link->swapped, &kind)
                               : op->kind == QDQI_OP_RELU || op->kind == QDQI_OP_CLAMP;
        steps += link->binary || op->kind == QDQI_OP_RELU ? 1 : 2;
        if (!takes || steps > QK_BINARY_MAX_STEPS) break;
    }
    return n;
}

/* The layout of the largest operand that comes from the graph. */
static void choose_layout(qdqi_lower *lw, const qdqi_chain *chain, qdq_tensor_desc *dst) {
    for (uint32_t i = 0; i < chain->n_operands + chain->n_links; i++) {
        const qdqi_operand *o =
            i < chain->n_operands ? &chain->operands[i] : &chain->links[i - chain->n_operands].other;
        if (i >= chain->n_operands && !chain->links[i - chain->n_operands].binary) continue;
        const uint32_t value = o->dq_op != QDQI_NONE ? o->q_value : o->value;
        if (value == QDQI_NONE) continue;
        const qdqi_lval *lv = qdqi_lower_val(lw, value);
        if (lv->data == NULL && qdqi_same_dims(&lv->desc, dst) && qdqi_is_packed(&lv->desc)) {
            memcpy(dst->strides, lv->desc.strides, sizeof dst->strides);
            return;
        }
    }
}

qdq_status qdqi_recipe_binary(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    qdqi_chain *chain = qdqi_lower_scratch(lw, sizeof *chain);
    builder *b = qdqi_lower_scratch(lw, sizeof *b);
    if (chain == NULL || b == NULL) return QDQI_NO_MEMORY(err);
    for (uint32_t i = 0; i < QK_BINARY_MAX_STEPS; i++)
        b->scalars[i] = NAN;
    QDQI_TRY(qdqi_chain_build(lw, part, chain, err));
    const qdqi_op *root = &lw->graph->ops[part->root];
    const qdqi_qparams *q = &chain->q;
    const uint32_t n_taken = leading_links(lw, chain);
    const bool all = n_taken == chain->n_links && !chain->truncated;
    const uint32_t out = all ? chain->out_value : qdqi_chain_value_after(lw, chain, n_taken);
    b->dst = qdqi_lower_val(lw, out)->desc;
    b->impl.chain.dst = (qk_binary_end){.dtype = b->dst.dtype, .step = 1};
    if (all && chain->q_op != QDQI_NONE) {
        if (q->half_away) return qdqi_refuse(err, "binary", "rounds_differently");
        if (!qdqi_qparams_is_const_tensor(q)) return qdqi_refuse(err, "binary", "dst_not_per_tensor_constant");
        b->impl.chain.dst.scale = q->scales[0];
        b->impl.chain.dst.zp = qdqi_qparams_zp0(q);
        b->impl.chain.add_zp_first = !q->add_zp_after_rounding;
    }
    qdqi_set_dense(&b->dst);
    choose_layout(lw, chain, &b->dst);
    /* the first operand must carry the chain's whole shape only in the end: the kernel broadcasts all alike */
    const bool unary = (root->schema->flags & QDQI_F_UNARY) != 0;
    const bool norm = root->kind == QDQI_OP_BATCHNORMINFERENCE;
    const bool sum = root->kind == QDQI_OP_SUM; /* of any number: a chain of additions */
    if (!unary && !norm && !sum && (root->schema->flags & QDQI_F_BINARY) == 0)
        return qdqi_refuse(err, "binary", "root");
    QDQI_TRY(add_operand(lw, b, &chain->operands[0], &b->impl.chain.src, err));
    if (unary) {
        QDQI_TRY(add_unary(lw, b, root, err));
    } else if (norm) {
        QDQI_TRY(add_batchnorm(lw, b, chain, root, err));
    } else if (sum) {
        for (uint32_t i = 1; i < chain->n_operands; i++) {
            qk_binary_step *step = &b->impl.chain.steps[b->impl.chain.n_steps++];
            step->op = QK_BINARY_ADD;
            QDQI_TRY(add_operand(lw, b, &chain->operands[i], &step->operand, err));
        }
    } else {
        qdqi_link link = {.op = part->root, .binary = true, .other = chain->operands[1]};
        if (!qdqi_binary_alg(root, &link.alg)) return qdqi_refuse(err, "binary", "op");
        if (root->in[0] == root->in[1]) return qdqi_refuse(err, "binary", "one_operand_twice");
        QDQI_TRY(add_link(lw, b, &link, err));
    }
    for (uint32_t i = 0; i < n_taken; i++)
        QDQI_TRY(add_link(lw, b, &chain->links[i], err));
    QDQI_TRY(set_walk(b, err));
    b->fold.times = lengthen_run(b);
    const bool line = fold_line(b);
    QDQI_TRY(add_vectors(lw, b, err));
    const qdqi_walk *walk = &b->impl.walk;
    b->impl.chain.stream = (size_t)(walk->run * walk->n_rows * walk->elem_bytes[walk->n_src]) >= qk_isa_stream_bytes();
    b->impl.fn = qk_binary_choose(&b->impl.chain, NULL);
    if (b->impl.fn == NULL) return qdqi_refuse(err, "binary", "no_kernel");
    QDQI_TRY(qdqi_lower_write(lw, out, &b->dst, &b->bufs[b->n_operands], err));
    binary_impl *impl = qdqi_malloc(sizeof *impl);
    if (impl == NULL) return QDQI_NO_MEMORY(err);
    *impl = b->impl;
    char note[96];
    if (line)
        memcpy(note, "native affine", sizeof "native affine");
    else if (snprintf(note, sizeof note, "native binary %s -> %s (%u steps)", qdq_dtype_name(impl->chain.src.dtype),
                      qdq_dtype_name(impl->chain.dst.dtype), impl->chain.n_steps) < 0)
        note[0] = '\0';
    QDQI_TRY(qdqi_plan_step(lw->plan, &binary_ops, impl, b->bufs, b->n_operands + 1, lw->part, note, err));
    QDQI_TRY(qdqi_lower_written(lw, out, err));
    return qdqi_lower_links(lw, chain, n_taken, err); /* what is not of this kind */
}
