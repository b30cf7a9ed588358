/* [dq] - AvgPool|MaxPool|GlobalAveragePool|GlobalMaxPool - chain - [q]   ->   one oneDNN pooling, in channels-last memory.
 *
 * Integer pooling computes on stored values: with real = (q - z) * s and s > 0, max commutes with it, and an average of (q - z) is the average
 * of q minus z as long as no padding is counted. What is left is a line: q_out = (q - z) * s / s_out + z_out, a post-op. */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

typedef struct pool {
    const qdqi_op *op;
    bool int8, avg;
    qdqi_spatial sp;
    int32_t perm[QDQ_MAX_NDIMS];
    qdqi_dnnl_pool params;
    qdqi_dnnl_md src_md, dst;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
} pool;

static const char *why_not_int8(const pool *p, bool pads) {
    const qdqi_operand *a = &p->chain.operands[0];
    const qdqi_qparams *q = &p->chain.q;
    if (a->dq_op == QDQI_NONE) return "src_not_dequantized";
    if (p->chain.q_op == QDQI_NONE) return "not_quantized_after";
    if (a->q.stored != QDQ_DTYPE_U8 && a->q.stored != QDQ_DTYPE_S8) return "src_dtype";
    if (a->q.stored != q->stored) return "src_and_dst_dtypes_differ";
    if (!qdqi_qparams_is_const_tensor(&a->q) || !qdqi_qparams_is_const_tensor(q)) return "not_per_tensor_constant";
    if (!qdqi_qparams_positive(&a->q)) return "scale_not_positive";
    if (p->chain.n_links != 0) return "post_ops";
    if (p->avg && pads && p->params.alg == QDQI_DNNL_POOL_AVG_INCLUDE_PAD && a->q.has_zp)
        return "zero_point_and_padding";
    return NULL;
}

qdq_status qdqi_recipe_pool(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    pool *p = qdqi_arena_alloc(&lw->arena, 1, sizeof *p);
    if (p == NULL) return QDQI_NO_MEMORY(err);
    QDQI_TRY(qdqi_chain_build(lw, part, &p->chain, err));
    p->op = &lw->graph->ops[part->root];
    const qdqi_operand *a = &p->chain.operands[0];
    const qdq_tensor_desc *whole = &qdqi_lower_val(lw, a->value)->desc;
    const bool global = p->op->kind == QDQI_OP_GLOBALAVERAGEPOOL || p->op->kind == QDQI_OP_GLOBALMAXPOOL;
    p->avg = p->op->kind == QDQI_OP_AVGPOOL || p->op->kind == QDQI_OP_GLOBALAVERAGEPOOL;
    QDQI_TRY(qdqi_op_spatial(p->op, whole, NULL, &p->sp, err));
    const int32_t nd = whole->ndims;
    if (nd < 3 || nd > 5) return qdqi_refuse(err, "pool", "rank");
    p->perm[0] = 0;
    p->perm[1] = p->sp.nxc ? nd - 1 : 1;
    for (int32_t i = 0; i < p->sp.n; i++)
        p->perm[2 + i] = p->sp.nxc ? 1 + i : 2 + i;

    const qdq_tensor_desc *out_desc = &qdqi_lower_val(lw, p->chain.out_value)->desc;
    bool pads = false, extra = false;
    p->params.n_spatial = p->sp.n;
    for (int32_t i = 0; i < p->sp.n; i++) {
        const int64_t in = whole->dims[p->perm[2 + i]];
        const int64_t out = out_desc->dims[p->perm[2 + i]];
        const int64_t reach = (p->sp.kernel[i] - 1) * p->sp.dilations[i] + 1;
        p->params.kernel[i] = p->sp.kernel[i];
        p->params.strides[i] = p->sp.strides[i];
        p->params.dilations[i] = p->sp.dilations[i];
        p->params.pads_begin[i] = p->sp.pads_begin[i];
        /* ceil mode is more padding at the end, which an average must not count */
        p->params.pads_end[i] = (out - 1) * p->sp.strides[i] + reach - in - p->sp.pads_begin[i];
        extra = extra || p->params.pads_end[i] > p->sp.pads_end[i];
        if (p->params.pads_end[i] < 0) p->params.pads_end[i] = 0;
        pads = pads || p->params.pads_begin[i] != 0 || p->params.pads_end[i] != 0;
        if (p->params.pads_begin[i] >= reach || p->params.pads_end[i] >= reach)
            return qdqi_refuse(err, "pool", "window_in_padding");
    }
    p->params.alg = QDQI_DNNL_POOL_MAX;
    if (p->avg) {
        const bool exclude = global || qdqi_op_bool(p->op, QDQI_A_EXCLUDE_PAD);
        if (extra && !exclude) return qdqi_refuse(err, "pool", "ceil_mode_with_counted_padding");
        p->params.alg = exclude ? QDQI_DNNL_POOL_AVG_EXCLUDE_PAD : QDQI_DNNL_POOL_AVG_INCLUDE_PAD;
    }
    const char *why = why_not_int8(p, pads);
    p->int8 = why == NULL;
    if (!p->int8) {
        if (a->dq_op != QDQI_NONE) (void)qdqi_refuse(NULL, "pool int8", why);
        QDQI_TRY(qdqi_operand_as_float(lw, a, err));
    }
    const uint32_t src_value = p->int8 ? a->q_value : a->value;
    qdq_tensor_desc src = qdqi_lower_val(lw, src_value)->desc;
    if (!p->int8 && src.dtype != QDQ_DTYPE_F32 && !qdqi_dnnl_has_dtype(src.dtype))
        return qdqi_refuse(err, "pool", "dtype");
    qdq_tensor_desc layout = *out_desc;
    qdqi_set_channels_last_by(&src, p->perm);
    qdqi_set_channels_last_by(&layout, p->perm);
    qdqi_md_permuted(&src, p->perm, &p->src_md);
    qdqi_md_permuted(&layout, p->perm, &p->dst);

    qdqi_posts posts = {.attr = &p->attr, .args = &p->args, .full = &layout, .dst = &layout, .perm = p->perm};
    uint32_t n_done = 0, out = p->chain.out_value;
    if (p->int8) {
        const float alpha = (float)((double)a->q.scales[0] / (double)p->chain.q.scales[0]);
        const float beta = (float)((double)qdqi_qparams_zp0(&p->chain.q) - (double)alpha * qdqi_qparams_zp0(&a->q));
        if (alpha != 1.0f || beta != 0.0f)
            p->attr.posts[p->attr.n_posts++] =
                (qdqi_dnnl_post){.alg = QDQI_DNNL_ELT_LINEAR, .alpha = alpha, .beta = beta};
        p->dst.dtype = p->chain.q.stored;
    } else {
        /* oneDNN's pooling has no scales: the float result is quantized by a step of its own */
        QDQI_TRY(qdqi_posts_links(lw, &posts, &p->chain, &n_done, err));
        out = qdqi_chain_value_after(lw, &p->chain, n_done);
        p->dst.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    }
    qdqi_dnnl_prim *prim;
    QDQI_TRY(qdqi_dnnl_pooling(&p->params, &p->src_md, &p->dst, &p->attr, &prim, err));
    if (qdqi_dnnl_prim_is_ref(prim) && p->int8) {
        qdqi_dnnl_prim_destroy(prim);
        return qdqi_refuse(err, "pool", "onednn_has_only_a_reference");
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &p->args, src_value, &src, out, &layout, err));
    return qdqi_lower_make(lw, p->chain.out_value, err); /* what did not fit, op by op */
}
