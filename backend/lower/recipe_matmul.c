/* [dq] [dq] [bias] - MatMul|Gemm - chain - [q]   ->   one oneDNN matmul. */
#include "base/dtype.h"
#include "lower/fold_batch.h"
#include "lower/requant.h"
#include "lower/single.h"
#include "lower/wq.h"

#include <string.h>

typedef struct mm {
    const qdqi_op *op;
    bool integer;            /* MatMulInteger: scales are 1 */
    bool ta, tb, int8, flip; /* flip: u8 weights seen as s8 */
    float alpha, beta;
    uint32_t a, w;          /* values that the primitive reads … */
    qdq_tensor_desc ad, wd; /* … in these layouts */
    qdqi_dnnl_md src, weights, bias, dst;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
    qdqi_requant requant;
} mm;

/* Whether both operands can stay integers; the reason when not. */
static const char *why_not_int8(qdqi_lower *lw, const mm *m) {
    const qdqi_operand *a = &m->chain.operands[0], *w = &m->chain.operands[1];
    if (a->dq_op == QDQI_NONE || w->dq_op == QDQI_NONE) return "operand_not_dequantized";
    if (!qdqi_is_x8(a->q.stored) || !qdqi_is_x8(w->q.stored)) return "operand_dtype";
    if (a->q.gran != QDQI_GRAN_TENSOR) return "src_not_per_tensor";
    if (w->q.gran == QDQI_GRAN_GROUP) return "weights_grouped";
    const qdq_tensor_desc *ad = &qdqi_lower_val(lw, a->q_value)->desc;
    const int32_t k_dim = m->ta && ad->ndims > 1 ? ad->ndims - 2 : ad->ndims - 1;
    if (k_dim >= 0 && !qdqi_sum_fits_s32(&a->q, &w->q, ad->dims[k_dim])) return "sums_beyond_s32";
    const int32_t rank = qdqi_lower_val(lw, w->value)->desc.ndims;
    const int32_t n_dim = m->tb ? rank - 2 : rank - 1;
    if (w->q.gran == QDQI_GRAN_AXIS && (rank < 2 || w->q.axis != n_dim)) return "weights_axis_not_n";
    if (w->q.stored == QDQ_DTYPE_U8 && w->q.zp_value != QDQI_NONE) return "runtime_zp_of_u8_weights";
    return NULL;
}

static void swap_last(qdqi_dnnl_md *md) {
    const int32_t i = md->ndims - 2, j = md->ndims - 1;
    const int64_t d = md->dims[i], s = md->strides[i];
    md->dims[i] = md->dims[j];
    md->strides[i] = md->strides[j];
    md->dims[j] = d;
    md->strides[j] = s;
}

/* numpy.matmul's treatment of vectors: [K] x … is [1, K], … x [K] is [K, 1] */
static void vector_to_matrix(qdqi_dnnl_md *md, bool row) {
    const int64_t k = md->dims[0], s = md->strides[0];
    md->ndims = 2;
    md->dims[row ? 1 : 0] = k;
    md->strides[row ? 1 : 0] = s;
    md->dims[row ? 0 : 1] = 1;
    md->strides[row ? 0 : 1] = row ? k * s : 1;
}

/* Leading dims as one: …xMxK [dense] x KxN is a plain 2-D product. */
static bool can_collapse(const mm *m, const qdq_tensor_desc *a, const qdq_tensor_desc *w, const qdq_tensor_desc *dst) {
    return w->ndims == 2 && a->ndims > 2 && !m->ta && qdqi_is_dense(a) && qdqi_is_dense(dst);
}

static void collapse_md(qdqi_dnnl_md *md) {
    const int64_t last = md->dims[md->ndims - 1];
    int64_t rows = 1;
    for (int32_t i = 0; i + 1 < md->ndims; i++)
        rows *= md->dims[i];
    md->ndims = 2;
    md->dims[0] = rows;
    md->dims[1] = last;
    md->strides[0] = last;
    md->strides[1] = 1;
}

/* One of the last two dims must be contiguous; anything else (a channels-last image) is brought to row-major. So are layouts that
 * oneDNN 3.7.2 misreads: rows and columns with gaps (it tells from the strides which dim is which, and those of a dim of 1 say
 * nothing), and batches inside of the rows, except of the last batch dim and without gaps (a transposed attention). */
static void make_plain(qdq_tensor_desc *desc) {
    const int32_t n = desc->ndims;
    const int64_t *d = desc->dims, *s = desc->strides;
    bool plain = n >= 2 && d[n - 2] != 1 && d[n - 1] != 1 && !qdqi_is_dense(desc) && (s[n - 1] == 1 || s[n - 2] == 1);
    for (int32_t i = 0; plain && i + 2 < n; i++) {
        const bool outside = s[i] > s[n - 1] && s[i] > s[n - 2];
        const bool between = i + 3 == n && s[n - 1] == 1 && s[i] == d[n - 1] && s[n - 2] == d[i] * d[n - 1];
        plain = d[i] == 1 || outside || between;
    }
    if (!plain) qdqi_set_dense(desc); /* of what is row-major: the usual strides of dims of 1 */
}

/* What some batches share must be row-major: oneDNN 3.7.2 reckons with the strides of the dims that it does not have. */
static void make_shared_plain(qdq_tensor_desc *desc, const qdq_tensor_desc *other) {
    for (int32_t i = 3; i <= desc->ndims && i <= other->ndims; i++)
        if (desc->dims[desc->ndims - i] == 1 && other->dims[other->ndims - i] != 1) {
            if (!qdqi_is_dense(desc)) qdqi_set_dense(desc);
            return;
        }
}

/* oneDNN 3.7.2 finds the element of a broadcast binary operand from the offset in dst as if that were row-major, and reads far
 * outside when batches are interleaved. */
static bool reads_by_offset(qdqi_lower *lw, const qdqi_chain *chain) {
    for (uint32_t i = 0; i < chain->n_links; i++) {
        const qdqi_link *link = &chain->links[i];
        if (link->binary && !link->self && qdqi_n_elems(&qdqi_lower_val(lw, link->other.value)->desc) != 1) return true;
    }
    return chain->q_op != QDQI_NONE && chain->q.gran != QDQI_GRAN_TENSOR;
}

static qdq_status add_quant_args(qdqi_lower *lw, mm *m, qdq_error *err) {
    const qdqi_qparams *a = &m->chain.operands[0].q, *w = &m->chain.operands[1].q;
    const int mask = w->gran == QDQI_GRAN_AXIS ? 1 << (m->weights.ndims - 1) : 0;
    qdqi_buf buf;
    const qdqi_requant *r = &m->requant;
    if (!r->on && !m->integer) {
        m->attr.src = (qdqi_dnnl_quant){.has_scale = true, .scale_dtype = QDQ_DTYPE_F32};
        QDQI_TRY(qdqi_qparams_scale_buf(lw, a, &buf, err));
        qdqi_args_add(&m->args, QDQI_DNNL_SCALE_SRC, buf);
    }
    if (a->has_zp) {
        m->attr.src.has_zp = true;
        m->attr.src.zp_dtype = QDQ_DTYPE_S32;
        QDQI_TRY(qdqi_qparams_zp_buf(lw, a, 0, &buf, err));
        qdqi_args_add(&m->args, QDQI_DNNL_ZP_SRC, buf);
    }
    if (!m->integer && (!r->on || !r->scale_after_bias)) {
        m->attr.weights = (qdqi_dnnl_quant){.has_scale = true, .scale_dtype = QDQ_DTYPE_F32, .scale_mask = mask};
        if (r->on)
            QDQI_TRY(qdqi_lower_const(lw, r->scales, (size_t)r->n_scales * sizeof *r->scales, &buf, err));
        else
            QDQI_TRY(qdqi_qparams_scale_buf(lw, w, &buf, err));
        qdqi_args_add(&m->args, QDQI_DNNL_SCALE_WEIGHTS, buf);
    }
    bool zp = w->has_zp;
    if (m->flip) { /* u8 with every zero point 128 is s8 with none */
        zp = w->zps == NULL;
        for (int64_t i = 0; w->zps != NULL && i < w->n; i++)
            zp = zp || w->zps[i] != 128;
    }
    if (zp) {
        m->attr.weights.has_zp = true;
        m->attr.weights.zp_dtype = QDQ_DTYPE_S32;
        m->attr.weights.zp_mask = mask;
        QDQI_TRY(qdqi_qparams_zp_buf(lw, w, m->flip ? -128 : 0, &buf, err));
        qdqi_args_add(&m->args, QDQI_DNNL_ZP_WEIGHTS, buf);
    }
    return QDQ_OK;
}

static void bias_row(mm *m, qdq_dtype dtype) {
    const int32_t last = m->dst.ndims - 1;
    m->bias = (qdqi_dnnl_md){.ndims = m->dst.ndims, .dtype = dtype};
    for (int32_t i = 0; i <= last; i++)
        m->bias.dims[i] = i == last ? m->dst.dims[last] : 1;
    qdqi_dense_strides(m->bias.ndims, m->bias.dims, m->bias.strides);
}

/* The bias port: a row of N values goes into the primitive, anything else is a first post-op. */
static qdq_status add_bias(qdqi_lower *lw, mm *m, qdqi_posts *posts, qdq_error *err) {
    if (m->alpha != 1.0f)
        m->attr.posts[m->attr.n_posts++] =
            (qdqi_dnnl_post){.alg = QDQI_DNNL_ELT_LINEAR, .alpha = m->alpha, .beta = 0.0f};
    if (m->chain.n_operands < 3 || m->chain.operands[2].value == QDQI_NONE) return QDQ_OK;
    const qdqi_operand *bias = &m->chain.operands[2];
    if (m->requant.on) {
        qdqi_buf own;
        QDQI_TRY(qdqi_lower_const(lw, m->requant.bias, (size_t)m->requant.n_bias * 4, &own, err));
        bias_row(m, m->requant.bias_dtype);
        qdqi_args_add(&m->args, QDQI_DNNL_BIAS, own);
        return QDQ_OK;
    }
    QDQI_TRY(qdqi_operand_as_float(lw, bias, err));
    const qdqi_lval *lv = qdqi_lower_val(lw, bias->value);
    const int64_t n = m->dst.dims[m->dst.ndims - 1];
    const bool row = qdqi_n_elems(&lv->desc) == n && lv->desc.ndims != 0 && lv->desc.dims[lv->desc.ndims - 1] == n;
    qdqi_buf buf;
    if (m->beta != 1.0f) return qdqi_refuse(err, "matmul", "gemm_beta");
    if (row && m->alpha == 1.0f) {
        bias_row(m, lv->desc.dtype);
        qdq_tensor_desc dense = lv->desc;
        qdqi_set_dense(&dense);
        QDQI_TRY(qdqi_lower_read_as(lw, bias->value, &dense, &buf, err));
        qdqi_args_add(&m->args, QDQI_DNNL_BIAS, buf);
        return QDQ_OK;
    }
    if (posts->full != posts->dst) return qdqi_refuse(err, "matmul", "bias_shape");
    qdqi_dnnl_post post = {.alg = QDQI_DNNL_BIN_ADD};
    qdq_tensor_desc want = lv->desc;
    qdqi_set_dense(&want);
    qdqi_md_of(&want, &post.operand);
    qdqi_md_unsqueeze_front(&post.operand, m->dst.ndims);
    QDQI_TRY(qdqi_lower_read_as(lw, bias->value, &want, &buf, err));
    qdqi_args_add(&m->args, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + (int)m->attr.n_posts), buf);
    m->attr.posts[m->attr.n_posts++] = post;
    return QDQ_OK;
}

static qdq_status add_weights(qdqi_lower *lw, mm *m, const qdqi_dnnl_prim *prim, const qdqi_dnnl_md *plain,
                              qdq_error *err) {
    const qdqi_lval *lv = qdqi_lower_val(lw, m->w);
    qdqi_buf buf;
    if (lv->data != NULL) {
        size_t bytes;
        QDQI_TRY(qdq_tensor_desc_size_bytes(&lv->desc, &bytes, err));
        QDQI_TRY(qdqi_lower_pack(lw, prim, QDQI_DNNL_WEIGHTS, plain, lv->data, bytes, m->flip, &buf, err));
    } else {
        QDQI_TRY(qdqi_lower_read_as(lw, m->w, &m->wd, &buf, err));
        if (m->flip) {
            size_t bytes;
            qdqi_buf flipped;
            QDQI_TRY(qdq_tensor_desc_size_bytes(&m->wd, &bytes, err));
            QDQI_TRY(qdqi_plan_temp(lw->plan, bytes, &flipped, err));
            QDQI_TRY(qdqi_lower_flip_sign(lw, buf, flipped, bytes, err));
            buf = flipped;
        }
    }
    qdqi_args_add(&m->args, QDQI_DNNL_WEIGHTS, buf);
    return QDQ_OK;
}

/* A product of several matrices whose only reader transposes it into row-major memory, if it is written so: the heads of an
 * attention put side by side. False: there is no such reader. */
static bool lay_out_for_transpose(qdqi_lower *lw, const qdqi_part *part, uint32_t result, qdq_tensor_desc *layout) {
    const qdq_graph *g = lw->graph;
    if (result >= g->n_values || g->values[result].n_uses != 1 || qdqi_lower_val(lw, result)->is_port_out) return false;
    const uint32_t user = g->values[result].uses[0].op;
    bool inside = false;
    for (uint32_t i = 0; i < part->n_ops; i++)
        inside = inside || part->ops[i] == user;
    const qdqi_op *op = &g->ops[user];
    int32_t perm[QDQ_MAX_NDIMS];
    const int32_t n = layout->ndims;
    if (!inside || op->kind != QDQI_OP_STATICTRANSPOSE || n < 3 || !qdqi_transpose_perm(op, n, perm) ||
        perm[n - 1] != n - 1)
        return false;
    int64_t stride = 1;
    for (int32_t i = n - 1; i >= 0; i--) {
        layout->strides[perm[i]] = stride;
        stride *= layout->dims[perm[i]];
    }
    layout->layout = QDQ_LAYOUT_STRIDED;
    return true;
}

/* `integers` false: the operands are dequantized. *tried_out: whether they were multiplied as integers. *permuted: whether the
 * result may be laid out for a transposition behind it, and then whether it was. */
static qdq_status lower_matmul(qdqi_lower *lw, const qdqi_part *part, bool integers, bool *tried_out, bool *permuted,
                               qdq_error *err) {
    const bool may_permute = *permuted;
    *permuted = false;
    mm *m = qdqi_lower_scratch(lw, sizeof *m);
    if (m == NULL) return QDQI_NO_MEMORY(err);
    QDQI_TRY(qdqi_chain_build(lw, part, &m->chain, err));
    m->op = &lw->graph->ops[part->root];
    const bool gemm = m->op->kind == QDQI_OP_GEMM;
    m->integer = m->op->kind == QDQI_OP_MATMULINTEGER && m->chain.scaled == QDQI_NONE;
    if (!qdqi_is_integer_root(m->op)) {
        m->ta = qdqi_op_bool(m->op, gemm ? QDQI_A_TRANSA : QDQI_A_TRANSPOSE_A);
        m->tb = qdqi_op_bool(m->op, gemm ? QDQI_A_TRANSB : QDQI_A_TRANSPOSE_B);
    }
    m->alpha = gemm ? qdqi_op_f32(m->op, QDQI_A_ALPHA) : 1.0f;
    m->beta = gemm ? qdqi_op_f32(m->op, QDQI_A_BETA) : 1.0f;
    const char *why = why_not_int8(lw, m);
    if (why == NULL && !integers) why = "no_primitive";
    *tried_out = m->int8 = why == NULL;
    const qdqi_operand *a = &m->chain.operands[0], *w = &m->chain.operands[1];
    if (!m->int8 && qdqi_is_integer_root(m->op)) return qdqi_refuse(err, "matmul", why);
    if (!m->int8) {
        if (a->dq_op != QDQI_NONE || w->dq_op != QDQI_NONE) (void)qdqi_refuse(NULL, "matmul int8", why);
        if (w->dq_op != QDQI_NONE) { /* few rows: the weights stay as they are */
            const qdqi_lower_point here = qdqi_lower_here(lw);
            const qdq_status st = qdqi_lower_wq(lw, &m->chain, err);
            if (!qdqi_is_refusal(st)) return st;
            qdqi_lower_undo(lw, here);
        }
        QDQI_TRY(qdqi_operand_as_float(lw, a, err));
        QDQI_TRY(qdqi_operand_as_float(lw, w, err));
    }
    m->a = m->int8 ? a->q_value : a->value;
    m->w = m->int8 ? w->q_value : w->value;
    m->flip = m->int8 && w->q.stored == QDQ_DTYPE_U8;
    m->ad = qdqi_lower_val(lw, m->a)->desc;
    m->wd = qdqi_lower_val(lw, m->w)->desc;
    make_plain(&m->ad);
    make_shared_plain(&m->ad, &m->wd);
    if (qdqi_lower_val(lw, m->w)->data == NULL) {
        make_plain(&m->wd);
        make_shared_plain(&m->wd, &m->ad);
    }
    const qdq_tensor_desc *ad = &m->ad, *wd = &m->wd;
    if (ad->ndims == 0 || wd->ndims == 0) return qdqi_refuse(err, "matmul", "scalar_operand");
    const bool vectors = ad->ndims == 1 || wd->ndims == 1;
    const bool plain = m->chain.n_links == 0 && m->chain.q_op == QDQI_NONE && m->chain.n_operands < 3;
    if (vectors && !plain) return qdqi_refuse(err, "matmul", "vector_operand_with_post_ops");
    if (m->flip && qdqi_lower_val(lw, m->w)->data == NULL && !qdqi_is_packed(wd))
        return qdqi_refuse(err, "matmul", "weights_with_gaps");

    /* the value that the primitive writes: all of the chain if it fits */
    qdq_tensor_desc layout;
    const uint32_t result = qdqi_chain_result(lw, &m->chain);
    qdqi_lower_out_layout(lw, result, &layout);
    *permuted = may_permute && m->chain.truncated && lay_out_for_transpose(lw, part, result, &layout);
    make_plain(&layout);
    if (layout.ndims > 2 && !qdqi_is_dense(&layout) && reads_by_offset(lw, &m->chain)) qdqi_set_dense(&layout);
    qdqi_md_of(ad, &m->src);
    qdqi_md_of(wd, &m->weights);
    if (ad->ndims == 1) vector_to_matrix(&m->src, true);
    if (wd->ndims == 1) vector_to_matrix(&m->weights, false);
    if (m->ta && ad->ndims > 1) swap_last(&m->src);
    if (m->tb && wd->ndims > 1) swap_last(&m->weights);
    if (m->flip) m->weights.dtype = QDQ_DTYPE_S8;
    qdq_tensor_desc flat = layout;
    const bool collapsed = !vectors && can_collapse(m, ad, wd, &layout);
    if (collapsed) {
        collapse_md(&m->src);
        qdqi_md_of(&layout, &m->dst);
        collapse_md(&m->dst);
        flat.ndims = 2;
        memcpy(flat.dims, m->dst.dims, sizeof flat.dims);
        memcpy(flat.strides, m->dst.strides, sizeof flat.strides);
    } else {
        const int32_t rank = m->src.ndims > m->weights.ndims ? m->src.ndims : m->weights.ndims;
        qdqi_md_unsqueeze_front(&m->src, rank);
        qdqi_md_unsqueeze_front(&m->weights, rank);
        qdqi_md_of(&layout, &m->dst);
        if (vectors) { /* dense by construction */
            m->dst.ndims = rank;
            for (int32_t i = 0; i + 2 < rank; i++)
                m->dst.dims[i] = m->src.dims[i] != 1 ? m->src.dims[i] : m->weights.dims[i];
            m->dst.dims[rank - 2] = m->src.dims[rank - 2];
            m->dst.dims[rank - 1] = m->weights.dims[rank - 1];
            if (!qdqi_is_dense(&layout)) return qdqi_refuse(err, "matmul", "vector_operand_strided_dst");
            qdqi_dense_strides(rank, m->dst.dims, m->dst.strides);
        }
    }
    if (m->int8 && m->op->kind != QDQI_OP_MATMULINTEGER && !vectors && m->alpha == 1.0f && m->beta == 1.0f)
        QDQI_TRY(qdqi_requant_plan(lw, &m->chain, m->dst.dims[m->dst.ndims - 1], &m->requant, err));
    if (m->int8) QDQI_TRY(add_quant_args(lw, m, err));
    qdqi_posts posts = {.attr = &m->attr, .args = &m->args, .full = &layout, .dst = collapsed ? &flat : &layout};
    QDQI_TRY(add_bias(lw, m, &posts, err));
    uint32_t n_done = m->chain.n_links;
    if (m->requant.on)
        QDQI_TRY(qdqi_requant_posts(lw, &posts, &m->chain, &m->requant, layout.ndims - 1, err));
    else
        QDQI_TRY(qdqi_posts_links(lw, &posts, &m->chain, &n_done, err));
    bool all = n_done == m->chain.n_links && !m->chain.truncated;
    if (all && !m->requant.on && m->chain.q_op != QDQI_NONE) {
        const qdq_status st = qdqi_posts_quantize(lw, &posts, &m->chain.q, true, err);
        if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
        all = st == QDQ_OK;
    }
    const uint32_t out = all ? result : qdqi_chain_value_after(lw, &m->chain, n_done);
    if (out != result) {
        qdq_tensor_desc own;
        qdqi_lower_out_layout(lw, out, &own);
        if (!qdqi_same_strides(&own, &layout)) return qdqi_refuse(err, "matmul", "layout_of_partial_result");
    }
    m->dst.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    if (!all && m->chain.q_op == part->root) return qdqi_refuse(err, "matmul", "quantize_of_a_qlinear_op");

    qdqi_dnnl_md plain_weights = m->weights;
    qdqi_fold_batches(&(qdqi_mm_request){&m->src, &m->weights, &plain_weights, &m->bias, &m->dst, &m->attr});
    m->weights.any = qdqi_lower_val(lw, m->w)->data != NULL;
    qdqi_dnnl_prim *prim;
    double macs = (double)m->src.dims[m->src.ndims - 1];
    for (int32_t i = 0; i < m->dst.ndims; i++)
        macs *= (double)m->dst.dims[i];
    qdqi_threads_shrink(lw->engine, macs, QDQI_GRAIN_MACS);
    const qdqi_request request = {.kind = QDQI_MAKE_MATMUL,
                                  .src = &m->src,
                                  .second = &m->weights,
                                  .bias = &m->bias,
                                  .dst = &m->dst,
                                  .attr = &m->attr};
    const qdq_status made = qdqi_make(&request, &prim, err);
    qdqi_threads_restore(lw->engine);
    QDQI_TRY(made);
    qdqi_buf buf;
    qdq_status st =
        m->int8 && qdqi_dnnl_prim_is_ref(prim) ? qdqi_refuse(err, "matmul", "onednn_has_only_a_reference") : QDQ_OK;
    if (st == QDQ_OK) st = add_weights(lw, m, prim, &plain_weights, err);
    if (st == QDQ_OK) st = qdqi_lower_read_as(lw, m->a, &m->ad, &buf, err);
    if (st == QDQ_OK) {
        qdqi_args_add(&m->args, QDQI_DNNL_SRC, buf);
        st = qdqi_lower_write(lw, out, &layout, &buf, err);
    }
    if (st != QDQ_OK) {
        qdqi_dnnl_prim_destroy(prim);
        return st;
    }
    qdqi_args_add(&m->args, QDQI_DNNL_DST, buf);
    QDQI_TRY(qdqi_lower_prim(lw, prim, &m->args, err));
    QDQI_TRY(qdqi_lower_written(lw, out, err));
    return qdqi_lower_links(lw, &m->chain, n_done, err); /* what did not fit */
}

qdq_status qdqi_recipe_matmul(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdqi_lower_point here = qdqi_lower_here(lw);
    bool integers = false, permuted = true; /* integers: until lowering says that it tries them */
    qdq_status st = lower_matmul(lw, part, true, &integers, &permuted, err);
    if (qdqi_is_refusal(st) && permuted) {
        permuted = false;
        qdqi_lower_undo(lw, here);
        st = lower_matmul(lw, part, true, &integers, &permuted, err);
    }
    if (!qdqi_is_refusal(st) || !integers) return st;
    qdqi_lower_undo(lw, here);
    permuted = false;
    return lower_matmul(lw, part, false, &integers, &permuted, err);
}
