/* [dq] - SoftMax|LogSoftmax|LayerNorm|RMSNorm|GroupNorm|InstanceNormalization|Reduce* - chain - [q]   ->   one native primitive
 * that reads the integers, keeps statistics where they are wanted, and stores the integers. Tried before the float recipe. A
 * SoftMax that is spelled out as small ops is one, too: its last op stands for it. */
#include "base/dtype.h"
#include "ir/spelled.h"
#include "lower/single.h"
#include "native/native.h"

#include <string.h>

typedef struct lines {
    const qdqi_op *op;
    const qdqi_spelled_softmax *spelled; /* or NULL; op is its last one */
    int32_t spelled_axis;
    qdqi_chain chain;
    qdq_tensor_desc src, layout;
    qdqi_dnnl_md src_md, dst_md;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    uint32_t from; /* value that is read */
} lines;

static bool is_softmax(const qdqi_op *op) {
    return op->kind == QDQI_OP_SOFTMAX || op->kind == QDQI_OP_LOGSOFTMAX;
}
static bool any_softmax(const lines *m) {
    return m->spelled != NULL || is_softmax(m->op);
}
static bool is_reduce(const qdqi_op *op) {
    return (op->schema->flags & QDQI_F_REDUCE) != 0;
}
static bool is_grouped(const qdqi_op *op) {
    return op->kind == QDQI_OP_GROUPNORM || op->kind == QDQI_OP_INSTANCENORMALIZATION;
}

qdq_status qdqi_read_integers(qdqi_lower *lw, const qdqi_operand *a, qdqi_dnnl_attr *attr, qdqi_args *args,
                              uint32_t *value_out, qdq_error *err) {
    qdqi_buf buf;
    *value_out = a->value;
    if (a->dq_op == QDQI_NONE || a->q.gran != QDQI_GRAN_TENSOR || a->q.real != QDQ_DTYPE_F32 ||
        !qdqi_is_x8(a->q.stored))
        return qdqi_operand_as_float(lw, a, err);
    *value_out = a->q_value;
    attr->src.has_scale = true;
    attr->src.scale_dtype = QDQ_DTYPE_F32;
    QDQI_TRY(qdqi_qparams_scale_buf(lw, &a->q, &buf, err));
    qdqi_args_add(args, QDQI_DNNL_SCALE_SRC, buf);
    if (!a->q.has_zp) return QDQ_OK;
    attr->src.has_zp = true;
    attr->src.zp_dtype = QDQ_DTYPE_S32;
    QDQI_TRY(qdqi_qparams_zp_buf(lw, &a->q, 0, &buf, err));
    qdqi_args_add(args, QDQI_DNNL_ZP_SRC, buf);
    return QDQ_OK;
}

/* A vector as dense f32. */
static qdq_status read_vector(qdqi_lower *lw, lines *m, uint32_t port, qdqi_dnnl_arg arg, int64_t n, qdq_error *err) {
    const qdqi_operand *v = &m->chain.operands[port];
    QDQI_TRY(qdqi_operand_as_float(lw, v, err));
    qdq_tensor_desc want = qdqi_lower_val(lw, v->value)->desc;
    if (qdqi_n_elems(&want) != n) return qdqi_refuse(err, "norm", "shape");
    want.dtype = QDQ_DTYPE_F32;
    qdqi_set_dense(&want);
    qdqi_buf buf;
    QDQI_TRY(qdqi_lower_read_as(lw, v->value, &want, &buf, err));
    qdqi_args_add(&m->args, arg, buf);
    return QDQ_OK;
}

static bool has_port(const lines *m, uint32_t port) {
    return port < m->chain.n_operands && m->op->in[port] != QDQI_NONE;
}

static qdq_status softmax(lines *m, qdqi_dnnl_prim **prim, qdq_error *err) {
    int32_t axis;
    if (m->spelled != NULL)
        return qdqi_native_softmax_of(QDQI_DNNL_SOFTMAX, false, m->spelled_axis, &m->src_md, &m->dst_md, &m->attr, prim,
                                      err);
    const bool is_log = m->op->kind == QDQI_OP_LOGSOFTMAX;
    if (!qdqi_norm_axis(qdqi_op_s64(m->op, QDQI_A_AXIS), m->src.ndims, &axis))
        return qdqi_refuse(err, "softmax", "axis");
    const bool zero_of_inf = !is_log && !qdqi_op_str_is(m->op, QDQI_A_MODE, "none");
    return qdqi_native_softmax_of(is_log ? QDQI_DNNL_LOGSOFTMAX : QDQI_DNNL_SOFTMAX, zero_of_inf, axis, &m->src_md,
                                  &m->dst_md, &m->attr, prim, err);
}

/* What the op asks for, and its vectors. */
static qdq_status norm_request(qdqi_lower *lw, lines *m, qdqi_native_norm *r, qdq_error *err) {
    const qdqi_op *op = m->op;
    int64_t n = 1;
    r->epsilon = qdqi_op_f32(op, QDQI_A_EPSILON);
    r->rms = op->kind == QDQI_OP_RMSNORM;
    r->statistics = op->n_out == 3 && op->out[1] != QDQI_NONE && op->out[2] != QDQI_NONE;
    if (op->n_out > 1 && !r->statistics) return qdqi_refuse(err, "norm", "statistics");
    if (is_grouped(op)) {
        const bool instance = op->kind == QDQI_OP_INSTANCENORMALIZATION;
        if (m->src.ndims < 2) return qdqi_refuse(err, "norm", "rank");
        r->axis = instance || qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NCX") ? 1 : m->src.ndims - 1;
        n = m->src.dims[r->axis];
        r->groups = instance ? n : qdqi_op_s64(op, QDQI_A_GROUPS);
        if (r->groups < 1 || n % r->groups != 0) return qdqi_refuse(err, "norm", "group_size");
    } else {
        if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_BEGIN_NORM_AXIS), m->src.ndims, &r->axis))
            return qdqi_refuse(err, "norm", "axis");
        for (int32_t d = r->axis; d < m->src.ndims; d++)
            n *= m->src.dims[d];
    }
    const bool affine = op->kind == QDQI_OP_INSTANCENORMALIZATION || qdqi_op_bool(op, QDQI_A_USE_AFFINE);
    r->gamma = affine && has_port(m, 1);
    r->beta = affine && has_port(m, 2);
    if (r->gamma) QDQI_TRY(read_vector(lw, m, 1, QDQI_DNNL_NORM_SCALE, n, err));
    if (r->beta) QDQI_TRY(read_vector(lw, m, 2, QDQI_DNNL_NORM_SHIFT, n, err));
    return QDQ_OK;
}

/* ---- reductions ---- */

bool qdqi_reduction_alg(const qdqi_op *op, qdqi_dnnl_alg *alg) {
    switch ((int)op->kind) {
    case QDQI_OP_REDUCESUM: *alg = QDQI_DNNL_RED_SUM; return true;
    case QDQI_OP_REDUCEMEAN: *alg = QDQI_DNNL_RED_MEAN; return true;
    case QDQI_OP_REDUCEMAX: *alg = QDQI_DNNL_RED_MAX; return true;
    case QDQI_OP_REDUCEMIN: *alg = QDQI_DNNL_RED_MIN; return true;
    case QDQI_OP_REDUCEPROD: *alg = QDQI_DNNL_RED_MUL; return true;
    case QDQI_OP_REDUCEL1: *alg = QDQI_DNNL_RED_L1; return true;
    case QDQI_OP_REDUCEL2: *alg = QDQI_DNNL_RED_L2; return true;
    default: return false;
    }
}

qdq_status qdqi_reduce_kept(qdqi_lower *lw, const qdqi_op *op, const qdq_tensor_desc *src, qdq_tensor_desc *kept,
                            qdq_error *err) {
    uint32_t n_attr;
    const int64_t *attr = qdqi_op_s64s(op, QDQI_A_AXES, &n_attr);
    const qdqi_lval *lv = op->n_in < 2 || op->in[1] == QDQI_NONE ? NULL : qdqi_lower_val(lw, op->in[1]);
    if (lv != NULL && (lv->data == NULL || !qdqi_is_dense(&lv->desc)))
        return qdqi_refuse(err, "reduce", "runtime_axes");
    const int64_t n = lv == NULL ? n_attr : qdqi_n_elems(&lv->desc);
    *kept = *src;
    for (int32_t d = 0; d < src->ndims && n == 0; d++) /* none are all */
        kept->dims[d] = 1;
    for (int64_t i = 0; i < n; i++) {
        int32_t d;
        const int64_t axis = lv == NULL ? attr[i] : qdqi_load_i64(lv->data, lv->desc.dtype, i);
        if (!qdqi_norm_axis(axis, src->ndims, &d)) return qdqi_refuse(err, "reduce", "axis");
        kept->dims[d] = 1;
    }
    qdqi_set_dense(kept);
    return QDQ_OK;
}

static qdq_status create(qdqi_lower *lw, lines *m, qdqi_dnnl_prim **prim, qdq_error *err) {
    qdq_status st;
    qdqi_dnnl_alg alg;
    if (any_softmax(m)) {
        st = softmax(m, prim, err);
    } else if (is_reduce(m->op)) {
        if (!qdqi_reduction_alg(m->op, &alg)) return qdqi_refuse(err, "reduce", "no_primitive");
        st = qdqi_native_reduction(alg, &m->src_md, &m->dst_md, &m->attr, prim, err);
    } else {
        qdqi_native_norm request = {0};
        QDQI_TRY(norm_request(lw, m, &request, err));
        st = qdqi_native_normalization(&request, &m->src_md, &m->dst_md, &m->attr, prim, err);
    }
    return st == QDQ_E_UNSUPPORTED ? qdqi_refuse(err, "native lines", qdqi_native_why()) : st;
}

/* The vectors of means and variances, which the primitive writes as dense f32. */
static qdq_status write_statistics(qdqi_lower *lw, lines *m, qdq_error *err) {
    for (uint32_t i = 1; i < m->op->n_out; i++) {
        qdq_tensor_desc layout = qdqi_lower_val(lw, m->op->out[i])->desc;
        qdqi_buf buf;
        if (layout.dtype != QDQ_DTYPE_F32) return qdqi_refuse(err, "norm", "statistics");
        qdqi_set_dense(&layout);
        QDQI_TRY(qdqi_lower_write(lw, m->op->out[i], &layout, &buf, err));
        qdqi_args_add(&m->args, i == 1 ? QDQI_DNNL_NORM_MEAN : QDQI_DNNL_NORM_VARIANCE, buf);
    }
    return QDQ_OK;
}

/* ---- ReLU and Clip before a Quantize ----------------------------------------------------------------------------- */

/* Quantize keeps order, so that bounds may be taken after it as well: by a table on the bytes. False when a link is no bound. */
static bool bounds_table(const qdqi_chain *chain, uint8_t table[256]) {
    const qdqi_qparams *q = &chain->q;
    if (chain->truncated || chain->q_op == QDQI_NONE || chain->n_links == 0 || !qdqi_is_x8(q->stored) ||
        !qdqi_qparams_is_const_tensor(q) || !(q->scales[0] > 0.0f) || q->half_away)
        return false;
    qdqi_stored_range range;
    qdqi_stored_range_init(&range, q->stored, q->scales[0], qdqi_qparams_zp0(q), q->add_zp_after_rounding);
    for (uint32_t i = 0; i < chain->n_links; i++) {
        const qdqi_link *link = &chain->links[i];
        if (!link->has_alg || link->binary) return false;
        const bool cast = link->alg == QDQI_DNNL_ELT_LINEAR && link->alpha == 1.0f && link->beta == 0.0f;
        const bool relu = link->alg == QDQI_DNNL_ELT_RELU && link->alpha == 0.0f;
        const bool clip = link->alg == QDQI_DNNL_ELT_CLIP && link->alpha <= link->beta;
        if (!cast && !relu && !clip) return false;
        if (relu || clip) qdqi_stored_range_max(&range, relu ? 0.0f : link->alpha);
        if (clip) qdqi_stored_range_min(&range, link->beta);
    }
    for (int32_t b = 0; b < 256; b++) {
        const int32_t v = q->stored == QDQ_DTYPE_S8 ? (int8_t)b : b;
        table[b] = (uint8_t)(v < range.low ? range.low : v > range.high ? range.high : v);
    }
    return true;
}

/* The norm quantizes, and a table takes the bounds. */
static qdq_status finish_by_table(qdqi_lower *lw, lines *m, const uint8_t table[256], qdq_error *err) {
    qdqi_posts posts = {.attr = &m->attr, .args = &m->args, .full = &m->layout, .dst = &m->layout};
    qdq_tensor_desc desc = qdqi_lower_val(lw, m->chain.out_value)->desc;
    memcpy(desc.strides, m->layout.strides, sizeof desc.strides);
    desc.layout = QDQ_LAYOUT_STRIDED;
    uint32_t bytes_value;
    size_t bytes;
    qdqi_dnnl_prim *prim;
    qdqi_buf src, dst;
    QDQI_TRY(qdqi_lower_new_value(lw, &desc, &bytes_value, err));
    QDQI_TRY(qdqi_posts_quantize(lw, &posts, &m->chain.q, true, err));
    m->dst_md.dtype = desc.dtype;
    QDQI_TRY(create(lw, m, &prim, err));
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &m->args, m->from, &m->src, bytes_value, &m->layout, err));
    QDQI_TRY(qdqi_lower_read_as(lw, bytes_value, &desc, &src, err));
    QDQI_TRY(qdq_tensor_desc_size_bytes(&desc, &bytes, err));
    QDQI_TRY(qdqi_lower_write(lw, m->chain.out_value, &desc, &dst, err));
    QDQI_TRY(qdqi_lower_table(lw, table, src, dst, bytes, err));
    QDQI_TRY(qdqi_lower_written(lw, m->chain.out_value, err));
    return qdqi_lower_links(lw, &m->chain, m->chain.n_links, err);
}

/* A part whose root is the last op of a spelled-out softmax has its x for operand. */
static qdq_status lower_lines(qdqi_lower *lw, const qdqi_part *part, const qdqi_spelled_softmax *spelled, int32_t axis,
                              bool with_posts, qdq_error *err) {
    lines *m = qdqi_lower_scratch(lw, sizeof *m);
    if (m == NULL) return QDQI_NO_MEMORY(err);
    m->op = &lw->graph->ops[part->root];
    m->spelled = spelled;
    m->spelled_axis = axis;
    QDQI_TRY(qdqi_chain_build(lw, part, &m->chain, err));
    if (spelled != NULL) QDQI_TRY(qdqi_chain_operand(lw, part, spelled->x, &m->chain.operands[0], err));
    QDQI_TRY(qdqi_read_integers(lw, &m->chain.operands[0], &m->attr, &m->args, &m->from, err));
    m->src = qdqi_lower_val(lw, m->from)->desc;
    if (m->src.ndims == 0) return qdqi_refuse(err, "norm", "rank");
    const bool any_layout = any_softmax(m) || is_grouped(m->op) || is_reduce(m->op);
    if (!qdqi_is_packed(&m->src) || !any_layout) qdqi_set_dense(&m->src);
    m->layout = qdqi_lower_val(lw, m->op->out[0])->desc;
    qdqi_md_of(&m->src, &m->src_md);
    if (is_reduce(m->op)) {
        qdq_tensor_desc kept;
        QDQI_TRY(qdqi_reduce_kept(lw, m->op, &m->src, &kept, err));
        qdqi_set_dense(&m->layout);
        qdqi_md_of(&kept, &m->dst_md);
        if (m->chain.n_links != 0 || m->chain.truncated) with_posts = false; /* they see the dims that are left */
    } else {
        memcpy(m->layout.strides, m->src.strides, sizeof m->layout.strides);
        m->layout.layout = QDQ_LAYOUT_STRIDED;
        qdqi_md_of(&m->layout, &m->dst_md);
    }
    uint8_t table[256];
    if (!with_posts && !is_reduce(m->op) && m->op->n_out == 1 && bounds_table(&m->chain, table))
        return finish_by_table(lw, m, table, err);
    uint32_t n_done = 0, out = m->op->out[0];
    if (with_posts) {
        qdqi_posts posts = {.attr = &m->attr, .args = &m->args, .full = &m->layout, .dst = &m->layout};
        QDQI_TRY(qdqi_posts_links(lw, &posts, &m->chain, &n_done, err));
        out = qdqi_chain_value_after(lw, &m->chain, n_done);
        if (n_done == m->chain.n_links && !m->chain.truncated && m->chain.q_op != QDQI_NONE) {
            QDQI_TRY(qdqi_posts_quantize(lw, &posts, &m->chain.q, true, err));
            out = m->chain.out_value;
        }
    }
    m->dst_md.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    qdqi_dnnl_prim *prim;
    QDQI_TRY(create(lw, m, &prim, err));
    const qdq_status st = write_statistics(lw, m, err);
    if (st != QDQ_OK) {
        qdqi_dnnl_prim_destroy(prim);
        return st;
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &m->args, m->from, &m->src, out, &m->layout, err));
    for (uint32_t i = 1; i < m->op->n_out; i++)
        QDQI_TRY(qdqi_lower_written(lw, m->op->out[i], err));
    return qdqi_lower_links(lw, &m->chain, n_done, err); /* what did not fit */
}

qdq_status qdqi_recipe_lines(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[part->root];
    if (!is_softmax(op) && !is_grouped(op) && !is_reduce(op) && op->kind != QDQI_OP_LAYERNORM &&
        op->kind != QDQI_OP_RMSNORM)
        return QDQ_E_UNSUPPORTED; /* of another recipe */
    if (op->n_in > QDQI_CHAIN_OPERANDS) return qdqi_refuse(err, "norm", "operands");
    const qdqi_lower_point here = qdqi_lower_here(lw);
    const qdq_status st = lower_lines(lw, part, NULL, 0, true, err);
    if (!qdqi_is_refusal(st) || part->n_ops == 1) return st;
    qdqi_lower_undo(lw, here);
    return lower_lines(lw, part, NULL, 0, false, err);
}

/* ---- a softmax spelled out --------------------------------------------------------------------------------------- */

/* Does the Clamp leave alone what it stands behind? A distance below -104 has no power left, whatever it is bounded by. */
static bool clamps_nothing(const qdqi_op *op, qdqi_spelled_place place, int64_t n) {
    const double low = (double)qdqi_op_f32(op, QDQI_A_MIN), high = (double)qdqi_op_f32(op, QDQI_A_MAX);
    switch (place) {
    case QDQI_SPELLED_DISTANCE: return low <= -104.0 && high >= 0.0;
    case QDQI_SPELLED_POWER: return low <= 0.0 && high >= 1.0;
    case QDQI_SPELLED_SUM: return low <= 1.0 && high >= (double)n;
    case QDQI_SPELLED_PART: return low * (double)n <= 1.0 && high >= 1.0;
    default: return false;
    }
}

static qdq_status one_axis(qdqi_lower *lw, uint32_t op, const qdq_tensor_desc *src, int32_t *axis, qdq_error *err) {
    qdq_tensor_desc kept;
    int32_t n_axes = 0;
    QDQI_TRY(qdqi_reduce_kept(lw, &lw->graph->ops[op], src, &kept, err));
    for (int32_t d = 0; d < src->ndims; d++)
        if (kept.dims[d] != src->dims[d]) {
            *axis = d;
            n_axes++;
        }
    return n_axes == 1 ? QDQ_OK : qdqi_refuse(err, "spelled softmax", "axis");
}

qdq_status qdqi_recipe_spelled_softmax(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    qdqi_spelled_softmax *form = qdqi_arena_alloc(&lw->arena, 1, sizeof *form);
    if (form == NULL) return QDQI_NO_MEMORY(err);
    qdqi_part seen = *part;
    seen.root = QDQI_NONE;
    for (uint32_t i = 0; i < part->n_ops && seen.root == QDQI_NONE; i++) {
        const qdqi_op *op = &lw->graph->ops[part->ops[i]];
        if ((op->kind == QDQI_OP_DIVIDE || op->kind == QDQI_OP_MULTIPLY) &&
            qdqi_spelled_softmax_read(lw->graph, op, form) && form->max == part->root)
            seen.root = part->ops[i];
    }
    if (seen.root == QDQI_NONE) return qdqi_refuse(err, "spelled softmax", "not_a_chain");
    const qdq_tensor_desc *x = &qdqi_lower_val(lw, form->x)->desc;
    int32_t axis = 0, of_sum = 0;
    QDQI_TRY(one_axis(lw, form->max, x, &axis, err));
    QDQI_TRY(one_axis(lw, form->sum, x, &of_sum, err));
    if (axis != of_sum) return qdqi_refuse(err, "spelled softmax", "axis");
    for (uint32_t i = 0; i < form->n_clamps; i++)
        if (!clamps_nothing(&lw->graph->ops[form->clamps[i].op], form->clamps[i].place, x->dims[axis]))
            return qdqi_refuse(err, "spelled softmax", "op");
    const qdqi_lower_point here = qdqi_lower_here(lw);
    const qdq_status st = lower_lines(lw, &seen, form, axis, true, err);
    if (!qdqi_is_refusal(st)) return st;
    qdqi_lower_undo(lw, here);
    return lower_lines(lw, &seen, form, axis, false, err);
}
