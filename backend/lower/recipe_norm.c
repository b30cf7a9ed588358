/* [dq] - SoftMax|LogSoftmax|LayerNorm|GroupNorm|BatchNormInference|Reduce* - chain - [q]   ->   one oneDNN primitive, on
 * floats, or for LayerNorm on the integers before the Dequantize. */
#include "base/dtype.h"
#include "lower/single.h"

#include <math.h>
#include <string.h>

typedef struct norm {
    const qdqi_op *op;
    qdq_tensor_desc src, layout, kept; /* kept: dst dims with the reduced ones as 1 */
    qdqi_dnnl_md src_md, dst_md;
    int32_t perm[QDQ_MAX_NDIMS];
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
    float epsilon;
} norm;

/* A per-channel vector as f32 content for the primitive. */
static qdq_status vector_arg(qdqi_lower *lw, norm *m, uint32_t port, qdqi_dnnl_arg arg, qdq_error *err) {
    const qdqi_operand *v = &m->chain.operands[port];
    QDQI_TRY(qdqi_operand_as_float(lw, v, err));
    qdq_tensor_desc want = qdqi_lower_val(lw, v->value)->desc;
    want.dtype = QDQ_DTYPE_F32;
    qdqi_set_dense(&want);
    qdqi_buf buf;
    QDQI_TRY(qdqi_lower_read_as(lw, v->value, &want, &buf, err));
    qdqi_args_add(&m->args, arg, buf);
    return QDQ_OK;
}

static qdq_status gamma_and_beta(qdqi_lower *lw, norm *m, bool *affine, qdq_error *err) {
    *affine = qdqi_op_bool(m->op, QDQI_A_USE_AFFINE);
    if (m->op->n_out != 1) return qdqi_refuse(err, "norm", "statistics");
    if (!*affine) return QDQ_OK;
    if (m->op->n_in != 3) return qdqi_refuse(err, "norm", "one_of_gamma_and_beta");
    QDQI_TRY(vector_arg(lw, m, 1, QDQI_DNNL_NORM_SCALE, err));
    return vector_arg(lw, m, 2, QDQI_DNNL_NORM_SHIFT, err);
}

static qdqi_request request_of(const norm *m, qdqi_make_kind kind) {
    return (qdqi_request){.kind = kind, .alpha = m->epsilon, .src = &m->src_md, .dst = &m->dst_md, .attr = &m->attr};
}

static qdq_status create(qdqi_lower *lw, norm *m, qdqi_dnnl_prim **prim, qdq_error *err) {
    const qdqi_op *op = m->op;
    qdqi_request r = request_of(m, QDQI_MAKE_REDUCTION);
    switch ((int)op->kind) {
    case QDQI_OP_SOFTMAX:
    case QDQI_OP_LOGSOFTMAX:
        if (op->kind == QDQI_OP_SOFTMAX && !qdqi_op_str_is(op, QDQI_A_MODE, "none"))
            return qdqi_refuse(err, "softmax", "mode");
        if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_AXIS), m->src.ndims, &r.axis))
            return qdqi_refuse(err, "softmax", "axis");
        qdqi_md_unit_strides(&m->src_md);
        qdqi_md_unit_strides(&m->dst_md);
        r.kind = QDQI_MAKE_SOFTMAX;
        r.alg = op->kind == QDQI_OP_SOFTMAX ? QDQI_DNNL_SOFTMAX : QDQI_DNNL_LOGSOFTMAX;
        break;
    case QDQI_OP_LAYERNORM:
        if (!qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_BEGIN_NORM_AXIS), m->src.ndims, &r.axis) ||
            r.axis != m->src.ndims - 1)
            return qdqi_refuse(err, "layernorm", "not_the_last_axis");
        QDQI_TRY(gamma_and_beta(lw, m, &r.flag, err));
        r.kind = QDQI_MAKE_LAYERNORM;
        break;
    case QDQI_OP_GROUPNORM:
        QDQI_TRY(gamma_and_beta(lw, m, &r.flag, err));
        r.kind = QDQI_MAKE_GROUPNORM;
        r.groups = qdqi_op_s64(op, QDQI_A_GROUPS);
        break;
    default:
        if (!qdqi_reduction_alg(op, &r.alg)) return qdqi_refuse(err, "norm", "no_primitive");
        break;
    }
    return qdqi_make(&r, prim, err);
}

/* Channels are dim 1 for the primitive, and innermost in memory. */
static qdq_status channels_last(norm *m, qdq_error *err) {
    const int32_t nd = m->src.ndims;
    const bool nxc = qdqi_op_str_is(m->op, QDQI_A_DATA_FORMAT, "NXC");
    if (nd < 2) return qdqi_refuse(err, "norm", "rank");
    m->perm[0] = 0;
    m->perm[1] = nxc ? nd - 1 : 1;
    for (int32_t i = 2; i < nd; i++)
        m->perm[i] = nxc ? i - 1 : i;
    qdqi_set_channels_last_by(&m->src, m->perm);
    qdqi_set_channels_last_by(&m->layout, m->perm);
    qdqi_md_permuted(&m->src, m->perm, &m->src_md);
    qdqi_md_permuted(&m->layout, m->perm, &m->dst_md);
    return QDQ_OK;
}

static qdq_status batchnorm(qdqi_lower *lw, norm *m, qdqi_dnnl_prim **prim, qdq_error *err) {
    static const qdqi_dnnl_arg args[] = {QDQI_DNNL_NORM_SCALE, QDQI_DNNL_NORM_SHIFT, QDQI_DNNL_NORM_MEAN,
                                         QDQI_DNNL_NORM_VARIANCE};
    QDQI_TRY(channels_last(m, err));
    for (uint32_t i = 0; i < 4; i++)
        QDQI_TRY(vector_arg(lw, m, i + 1, args[i], err));
    qdqi_request r = request_of(m, QDQI_MAKE_BATCHNORM);
    r.alpha = qdqi_op_f32(m->op, QDQI_A_EPSILON);
    return qdqi_make(&r, prim, err);
}

/* A constant added to the source does not change a LayerNorm, and a factor of it is one of the deviation:
 * LN(s (q - zp), epsilon) = LN(q, epsilon / s^2). So it reads the integers as they are. (Others have no such way: the source
 * scale of oneDNN's softmax multiplies its result.) */
static qdq_status source_as_integers(norm *m, qdq_error *err) {
    const qdqi_operand *a = &m->chain.operands[0];
    if (a->dq_op == QDQI_NONE || a->q.real != QDQ_DTYPE_F32 ||
        (a->q.stored != QDQ_DTYPE_U8 && a->q.stored != QDQ_DTYPE_S8))
        return qdqi_refuse(err, "layernorm", "not_from_8_bits");
    if (!qdqi_qparams_is_const_tensor(&a->q) || !qdqi_qparams_positive(&a->q))
        return qdqi_refuse(err, "layernorm", "scale_of_src");
    const double s = (double)a->q.scales[0];
    m->epsilon = (float)((double)m->epsilon / (s * s));
    return isnormal(m->epsilon) ? QDQ_OK : qdqi_refuse(err, "layernorm", "epsilon");
}

static bool is_float_source(const qdq_tensor_desc *src) {
    return qdqi_make_has_dtype(src->dtype);
}

static qdq_status lower_norm(qdqi_lower *lw, const qdqi_part *part, bool integers, qdq_error *err) {
    norm *m = qdqi_lower_scratch(lw, sizeof *m);
    if (m == NULL) return QDQI_NO_MEMORY(err);
    m->op = &lw->graph->ops[part->root];
    if (m->op->n_in > QDQI_CHAIN_OPERANDS && m->op->kind != QDQI_OP_BATCHNORMINFERENCE)
        return qdqi_refuse(err, "norm", "operands");
    QDQI_TRY(qdqi_chain_build(lw, part, &m->chain, err));
    const qdqi_operand *a = &m->chain.operands[0];
    const bool gn = m->op->kind == QDQI_OP_GROUPNORM;
    if (gn || m->op->kind == QDQI_OP_LAYERNORM) m->epsilon = qdqi_op_f32(m->op, QDQI_A_EPSILON);
    QDQI_TRY(integers ? source_as_integers(m, err) : qdqi_operand_as_float(lw, a, err));
    const uint32_t from = integers ? a->q_value : a->value;
    const bool bn = m->op->kind == QDQI_OP_BATCHNORMINFERENCE;
    const bool reduce = (m->op->schema->flags & QDQI_F_REDUCE) != 0;
    m->src = qdqi_lower_val(lw, from)->desc;
    if (!integers && !is_float_source(&m->src)) return qdqi_refuse(err, "norm", "dtype");
    if (m->src.ndims == 0 || m->src.ndims > 6) return qdqi_refuse(err, "norm", "rank");
    if (!qdqi_is_packed(&m->src) || m->op->kind == QDQI_OP_LAYERNORM) qdqi_set_dense(&m->src);
    const uint32_t root_out = m->op->out[0];
    m->layout = qdqi_lower_val(lw, root_out)->desc;
    if (reduce)
        qdqi_set_dense(&m->layout);
    else
        memcpy(m->layout.strides, m->src.strides, sizeof m->layout.strides);
    m->layout.layout = QDQ_LAYOUT_STRIDED;
    qdqi_md_of(&m->src, &m->src_md);
    qdqi_md_of(&m->layout, &m->dst_md);
    if (gn) QDQI_TRY(channels_last(m, err));
    if (reduce) {
        QDQI_TRY(qdqi_reduce_kept(lw, m->op, &m->src, &m->kept, err));
        qdqi_md_of(&m->kept, &m->dst_md);
    }
    m->dst_md.dtype = m->layout.dtype;
    uint32_t n_done = 0;
    qdqi_posts posts = {
        .attr = &m->attr, .args = &m->args, .full = &m->layout, .dst = &m->layout, .perm = gn ? m->perm : NULL};
    if (!reduce && !bn) QDQI_TRY(qdqi_posts_links(lw, &posts, &m->chain, &n_done, err));
    bool all = !reduce && !bn && n_done == m->chain.n_links && !m->chain.truncated;
    if (all && m->chain.q_op != QDQI_NONE) {
        const qdq_status st = qdqi_posts_quantize(lw, &posts, &m->chain.q, false, err);
        if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
        all = st == QDQ_OK;
    }
    const uint32_t out = all ? m->chain.out_value : qdqi_chain_value_after(lw, &m->chain, n_done);
    m->dst_md.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    qdqi_dnnl_prim *prim;
    QDQI_TRY(bn ? batchnorm(lw, m, &prim, err) : create(lw, m, &prim, err));
    if ((integers || gn) && qdqi_dnnl_prim_is_ref(prim)) {
        qdqi_dnnl_prim_destroy(prim);
        return qdqi_refuse(err, "norm", "onednn_has_only_a_reference");
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &m->args, from, &m->src, out, &m->layout, err));
    return qdqi_lower_links(lw, &m->chain, n_done, err); /* what did not fit */
}

/* Large LayerNorms from floats to floats: oneDNN's kernel was measured at 1.1 times the speed of ours (1024 x 768, AVX-512); ours is
 * ahead everywhere else. */
static bool is_onednn_faster(qdqi_lower *lw, const qdqi_part *part, const qdqi_op *op) {
    if (op->kind != QDQI_OP_LAYERNORM || op->n_out != 1 || part->n_ops != 1) return false;
    const qdq_tensor_desc *src = &qdqi_lower_val(lw, op->in[0])->desc;
    int32_t axis;
    return src->dtype == QDQ_DTYPE_F32 && qdqi_n_elems(src) >= 64 * 1024 &&
           qdqi_norm_axis(qdqi_op_s64(op, QDQI_A_BEGIN_NORM_AXIS), src->ndims, &axis) && axis == src->ndims - 1 &&
           (op->n_in == 3 || !qdqi_op_bool(op, QDQI_A_USE_AFFINE));
}

qdq_status qdqi_recipe_norm(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdqi_lower_point here = qdqi_lower_here(lw);
    const qdqi_op *op = &lw->graph->ops[part->root];
    qdq_status st = QDQ_E_UNSUPPORTED;
    if (op->kind == QDQI_OP_INTERPOLATE || op->kind == QDQI_OP_RESIZE) return qdqi_recipe_resize(lw, part, err);
    if (op->kind == QDQI_OP_BATCHNORMINFERENCE)
        st = qdqi_recipe_binary(lw, part, err);
    else if (!is_onednn_faster(lw, part, op))
        st = qdqi_recipe_lines(lw, part, err);
    if (st != QDQ_E_UNSUPPORTED) return st;
    qdqi_lower_undo(lw, here);
    if (op->kind == QDQI_OP_LAYERNORM) {
        st = lower_norm(lw, part, true, err);
        if (st != QDQ_E_UNSUPPORTED) return st;
        qdqi_lower_undo(lw, here);
    }
    return lower_norm(lw, part, false, err);
}
