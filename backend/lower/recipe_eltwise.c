/* unary|binary chains on floats: the first op becomes a primitive, the others its post-ops. Chains between Dequantize and Quantize
 * go to the native kernels (recipe_glue.c, recipe_binary.c) first: one pass over memory, and exactly the node-by-node result. */
#include "base/dtype.h"
#include "lower/single.h"

#include <string.h>

typedef struct elt {
    const qdqi_op *op;
    qdq_tensor_desc a, b, layout;
    qdqi_dnnl_md a_md, b_md, dst_md;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
} elt;

/* Which operand has the result's shape: it becomes src0. */
static qdq_status pick_main(qdqi_lower *lw, const elt *e, uint32_t *main_out, qdq_error *err) {
    const qdq_tensor_desc *dst = &qdqi_lower_val(lw, e->op->out[0])->desc;
    for (uint32_t i = 0; i < 2; i++)
        if (qdqi_same_dims(&qdqi_lower_val(lw, e->op->in[i])->desc, dst)) {
            *main_out = i;
            return QDQ_OK;
        }
    return qdqi_refuse(err, "binary", "both_operands_broadcast");
}

static qdq_status binary(qdqi_lower *lw, elt *e, uint32_t *main_value, uint32_t *other_value, qdqi_dnnl_alg *alg,
                         qdq_error *err) {
    uint32_t first = 0;
    if (!qdqi_binary_alg(e->op, alg) || e->op->kind == QDQI_OP_GREATEREQUAL)
        return qdqi_refuse(err, "binary", "no_primitive");
    QDQI_TRY(pick_main(lw, e, &first, err));
    if (first == 1 && *alg != QDQI_DNNL_BIN_ADD && *alg != QDQI_DNNL_BIN_MUL && *alg != QDQI_DNNL_BIN_MAX &&
        *alg != QDQI_DNNL_BIN_MIN)
        return qdqi_refuse(err, "binary", "first_operand_broadcasts");
    *main_value = e->op->in[first];
    *other_value = e->op->in[1 - first];
    return QDQ_OK;
}

qdq_status qdqi_recipe_eltwise(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    static const qdqi_recipe_fn native[] = {qdqi_recipe_glue, qdqi_recipe_binary};
    for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const qdq_status st = native[i](lw, part, err);
        if (st != QDQ_E_UNSUPPORTED) return st;
        qdqi_lower_undo(lw, here);
    }
    elt *e = qdqi_lower_scratch(lw, sizeof *e);
    if (e == NULL) return QDQI_NO_MEMORY(err);
    e->op = &lw->graph->ops[part->root];
    QDQI_TRY(qdqi_chain_build(lw, part, &e->chain, err));
    for (uint32_t i = 0; i < e->chain.n_operands; i++) {
        QDQI_TRY(qdqi_operand_as_float(lw, &e->chain.operands[i], err));
        if (!qdqi_is_dnnl_float(qdqi_lower_val(lw, e->op->in[i])->desc.dtype))
            return qdqi_refuse(err, "eltwise", "dtype");
    }
    if (e->op->n_in > 2) return qdqi_refuse(err, "eltwise", "no_primitive");
    const bool unary = (e->op->schema->flags & QDQI_F_UNARY) != 0;
    qdqi_request request = {
        .kind = unary ? QDQI_MAKE_ELTWISE : QDQI_MAKE_BINARY, .src = &e->a_md, .dst = &e->dst_md, .attr = &e->attr};
    uint32_t main_value = e->op->in[0], other_value = QDQI_NONE;
    if (unary) {
        if (!qdqi_unary_alg(e->op, &request.alg, &request.alpha, &request.beta))
            return qdqi_refuse(err, "eltwise", "no_primitive");
    } else {
        QDQI_TRY(binary(lw, e, &main_value, &other_value, &request.alg, err));
    }
    const uint32_t root_out = e->op->out[0];
    e->a = qdqi_lower_val(lw, main_value)->desc;
    if (e->a.ndims > 5) return qdqi_refuse(err, "eltwise", "rank");
    if (qdqi_lower_val(lw, main_value)->data != NULL && other_value != QDQI_NONE) {
        /* a constant follows the layout of the operand that comes from the graph */
        const qdq_tensor_desc *b = &qdqi_lower_val(lw, other_value)->desc;
        if (qdqi_same_dims(b, &e->a) && qdqi_is_packed(b)) memcpy(e->a.strides, b->strides, sizeof e->a.strides);
    }
    if (!qdqi_is_packed(&e->a)) qdqi_set_dense(&e->a);
    e->layout = qdqi_lower_val(lw, root_out)->desc;
    e->layout.layout = QDQ_LAYOUT_STRIDED;
    memcpy(e->layout.strides, e->a.strides, sizeof e->layout.strides);
    qdqi_md_of(&e->a, &e->a_md);
    qdqi_md_of(&e->layout, &e->dst_md);
    qdqi_buf buf;
    if (other_value != QDQI_NONE) {
        e->b = qdqi_lower_val(lw, other_value)->desc;
        if (qdqi_same_dims(&e->b, &e->a))
            memcpy(e->b.strides, e->a.strides, sizeof e->b.strides);
        else
            qdqi_set_dense(&e->b);
        QDQI_TRY(qdqi_lower_read_as(lw, other_value, &e->b, &buf, err));
        qdqi_bias_add_desc(e->op, &e->a, &e->b);
        qdqi_md_of(&e->b, &e->b_md);
        qdqi_md_unsqueeze_front(&e->b_md, e->a_md.ndims);
        qdqi_args_add(&e->args, QDQI_DNNL_SRC1, buf);
        request.second = &e->b_md;
    }
    qdqi_posts posts = {.attr = &e->attr, .args = &e->args, .full = &e->layout, .dst = &e->layout};
    uint32_t n_done = 0;
    QDQI_TRY(qdqi_posts_links(lw, &posts, &e->chain, &n_done, err));
    if (unary) { /* eltwise takes only binary post-ops */
        for (uint32_t i = 0; i < e->attr.n_posts; i++)
            if (e->attr.posts[i].alg < QDQI_DNNL_BIN_ADD) {
                e->attr.n_posts = 0;
                n_done = 0;
            }
    }
    const uint32_t out = qdqi_chain_value_after(lw, &e->chain, n_done);
    e->dst_md.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    qdqi_dnnl_prim *prim;
    QDQI_TRY(qdqi_make(&request, &prim, err));
    if (qdqi_dnnl_prim_is_ref(prim) && part->n_ops > 1) { /* one by one is faster */
        qdqi_dnnl_prim_destroy(prim);
        return qdqi_refuse(err, "eltwise", "onednn_has_only_a_reference");
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &e->args, main_value, &e->a, out, &e->layout, err));
    return qdqi_lower_links(lw, &e->chain, n_done, err); /* what did not fit */
}
