/* One op on its own: its candidates in order. oneDNN where it has the primitive, plain data movement, native elementwise loops, then
 * the reference, which closes every list. */
#include "lower/single.h"

#include "base/dtype.h"
#include "base/log.h"

#include <string.h>

typedef qdq_status (*candidate)(qdqi_lower *lw, const qdqi_op *op, qdq_error *err);

qdq_status qdqi_finish_unary_prim(qdqi_lower *lw, qdqi_dnnl_prim *prim, qdqi_args *args, uint32_t src,
                                  const qdq_tensor_desc *src_layout, uint32_t dst, const qdq_tensor_desc *dst_layout,
                                  qdq_error *err) {
    qdqi_buf buf;
    qdq_status st = QDQ_OK;
    if (src != QDQI_NONE) {
        st = qdqi_lower_read_as(lw, src, src_layout, &buf, err);
        if (st == QDQ_OK) qdqi_args_add(args, QDQI_DNNL_SRC, buf);
    }
    if (st == QDQ_OK) st = qdqi_lower_write(lw, dst, dst_layout, &buf, err);
    if (st != QDQ_OK) {
        qdqi_dnnl_prim_destroy(prim);
        return st;
    }
    qdqi_args_add(args, QDQI_DNNL_DST, buf);
    QDQI_TRY(qdqi_lower_prim(lw, prim, args, err));
    return qdqi_lower_written(lw, dst, err);
}

/* src in its own layout when that has no gaps, else dense; dst alike */
static void follow_layout(qdqi_lower *lw, uint32_t src, uint32_t dst, qdq_tensor_desc *src_layout,
                          qdq_tensor_desc *dst_layout) {
    *src_layout = qdqi_lower_val(lw, src)->desc;
    if (!qdqi_is_packed(src_layout)) qdqi_set_dense(src_layout);
    *dst_layout = qdqi_lower_val(lw, dst)->desc;
    dst_layout->layout = QDQ_LAYOUT_STRIDED;
    memcpy(dst_layout->strides, src_layout->strides, sizeof dst_layout->strides);
}

/* A unary link as a primitive of its own. */
static qdq_status one_link(qdqi_lower *lw, const qdqi_link *link, uint32_t src, uint32_t dst, qdq_error *err) {
    qdq_tensor_desc src_layout, dst_layout;
    qdqi_dnnl_md src_md, dst_md;
    qdqi_args args = {0};
    qdqi_dnnl_prim *prim;
    follow_layout(lw, src, dst, &src_layout, &dst_layout);
    if (!qdqi_is_dnnl_float(src_layout.dtype) || src_layout.ndims > 5) return qdqi_refuse(err, "eltwise", "dtype");
    qdqi_md_of(&src_layout, &src_md);
    qdqi_md_of(&dst_layout, &dst_md);
    const qdqi_request request = {.kind = QDQI_MAKE_ELTWISE,
                                  .alg = link->alg,
                                  .alpha = link->alpha,
                                  .beta = link->beta,
                                  .src = &src_md,
                                  .dst = &dst_md};
    QDQI_TRY(qdqi_make(&request, &prim, err));
    return qdqi_finish_unary_prim(lw, prim, &args, src, &src_layout, dst, &dst_layout, err);
}

qdq_status qdqi_lower_links(qdqi_lower *lw, const qdqi_chain *chain, uint32_t first, qdq_error *err) {
    for (uint32_t i = first; i < chain->n_links; i++) {
        const qdqi_link *link = &chain->links[i];
        const uint32_t src = qdqi_chain_value_after(lw, chain, i), dst = qdqi_chain_value_after(lw, chain, i + 1);
        qdq_status st = QDQ_E_UNSUPPORTED;
        QDQI_TRY(qdqi_lower_make(lw, src, err)); /* casts between the links */
        if (!link->binary && link->has_alg) {
            const qdqi_lower_point here = qdqi_lower_here(lw);
            st = one_link(lw, link, src, dst, err);
            if (qdqi_is_refusal(st)) qdqi_lower_undo(lw, here);
        }
        if (qdqi_is_refusal(st)) st = qdqi_lower_make(lw, dst, err);
        QDQI_TRY(st);
    }
    return qdqi_chain_finish(lw, chain, err);
}

static qdq_status as_part(qdqi_lower *lw, const qdqi_op *op, qdqi_recipe_fn recipe, qdq_error *err) {
    const uint32_t index = (uint32_t)(op - lw->graph->ops);
    const qdqi_part part = {.id = lw->part, .pattern = "single", .root = index, .n_ops = 1, .ops = &index};
    return recipe(lw, &part, err);
}

static qdq_status one_matmul(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return as_part(lw, op, qdqi_recipe_matmul, err);
}
static qdq_status one_conv(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return as_part(lw, op, qdqi_recipe_conv, err);
}
static qdq_status one_pool(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return as_part(lw, op, qdqi_recipe_pool, err);
}
static qdq_status one_norm(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return as_part(lw, op, qdqi_recipe_norm, err);
}
static qdq_status one_eltwise(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return as_part(lw, op, qdqi_recipe_eltwise, err);
}

static qdq_status one_resize(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    if (qdqi_moves_elements(op)) return qdqi_lower_move(lw, op, op->in, op->out, err); /* nearest */
    return as_part(lw, op, qdqi_recipe_resize, err);
}

static qdq_status one_move(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    return qdqi_lower_move(lw, op, op->in, op->out, err);
}

/* Multiply and friends whose first operand is the smaller one are swapped by the recipe; this row picks it. */
static candidate candidate_for(const qdqi_op *op) {
    if ((op->schema->flags & (QDQI_F_QUANTIZE | QDQI_F_DEQUANTIZE)) != 0) return qdqi_lower_quant;
    if ((op->schema->flags & (QDQI_F_UNARY | QDQI_F_BINARY)) != 0) return one_eltwise;
    switch ((int)op->kind) {
    case QDQI_OP_MATMUL:
    case QDQI_OP_GEMM:
    case QDQI_OP_MATMULINTEGER:
    case QDQI_OP_QLINEARMATMUL: return one_matmul;
    case QDQI_OP_DYNAMICQUANTIZELINEAR: return qdqi_lower_dynamic_quantize;
    case QDQI_OP_CONVINTEGER:
    case QDQI_OP_QLINEARCONV:
    case QDQI_OP_CONVOLUTION:
    case QDQI_OP_CONVTRANSPOSE: return one_conv;
    case QDQI_OP_AVGPOOL:
    case QDQI_OP_MAXPOOL:
    case QDQI_OP_GLOBALAVERAGEPOOL:
    case QDQI_OP_GLOBALMAXPOOL: return one_pool;
    case QDQI_OP_SOFTMAX:
    case QDQI_OP_LOGSOFTMAX:
    case QDQI_OP_LAYERNORM:
    case QDQI_OP_GROUPNORM:
    case QDQI_OP_RMSNORM:
    case QDQI_OP_INSTANCENORMALIZATION:
    case QDQI_OP_BATCHNORMINFERENCE: return one_norm;
    case QDQI_OP_INTERPOLATE:
    case QDQI_OP_RESIZE: return one_resize;
    case QDQI_OP_SUM:
    case QDQI_OP_BIASADD: return one_eltwise;
    default: break;
    }
    if ((op->schema->flags & QDQI_F_REDUCE) != 0) return one_norm;
    if ((op->schema->flags & (QDQI_F_MOVE | QDQI_F_SHAPE_ONLY)) != 0) return one_move;
    return NULL;
}

qdq_status qdqi_lower_single(qdqi_lower *lw, const qdqi_op *op, qdq_error *err) {
    const candidate list[] = {candidate_for(op), qdqi_lower_elementwise};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (list[i] == NULL) continue;
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const uint32_t n_refusals = qdqi_lower_n_refusals(lw);
        qdq_error why = {0};
        const qdq_status st = list[i](lw, op, &why);
        if (st == QDQ_OK) return QDQ_OK;
        if (!qdqi_is_refusal(st)) {
            if (err != NULL) *err = why;
            return st;
        }
        qdqi_lower_undo(lw, here);
        if (why.text[0] != '\0') qdqi_lower_refused(lw, op->schema->name, st, n_refusals);
    }
    return qdqi_lower_reference(lw, (uint32_t)(op - lw->graph->ops), err);
}
