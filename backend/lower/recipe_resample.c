/* [dq] - linear Interpolate|Resize - chain - [q]   ->   one resampling primitive, in channels-last memory.
 *
 * A weighted mean of real values (q - z) * s is (mean of q - z) * s, because the weights add up to one: the integers are read as
 * they are, and the line is a post-op. */
#include "base/dtype.h"
#include "lower/choice.h"
#include "lower/single.h"

#include <math.h>
#include <string.h>

typedef struct resample {
    const qdqi_op *op;
    qdq_tensor_desc src, layout;
    qdqi_dnnl_md src_md, dst_md;
    int32_t perm[QDQ_MAX_NDIMS];
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
} resample;

/* N and C stay, and every other dim is resized by the ratio of its sizes, with coordinates of pixel centres. */
static qdq_status check_mode(qdqi_lower *lw, const resample *r, qdq_error *err) {
    const qdqi_op *op = r->op;
    const qdq_tensor_desc *dst = &r->layout;
    if (r->src.ndims < 3 || r->src.ndims > 5) return qdqi_refuse(err, "resample", "rank");
    if (!qdqi_op_str_is(op, QDQI_A_COORDINATE_TRANSFORMATION_MODE, "half_pixel"))
        return qdqi_refuse(err, "resample", "mode");
    if (op->kind == QDQI_OP_INTERPOLATE)
        return qdqi_op_str_is(op, QDQI_A_MODE, "linear") || qdqi_op_str_is(op, QDQI_A_MODE, "bilinear") ||
                       qdqi_op_str_is(op, QDQI_A_MODE, "trilinear")
                   ? QDQ_OK
                   : qdqi_refuse(err, "resample", "mode");
    uint32_t n_axes;
    (void)qdqi_op_s64s(op, QDQI_A_AXES, &n_axes);
    if (!qdqi_op_str_is(op, QDQI_A_MODE, "linear") || n_axes != 0) return qdqi_refuse(err, "resample", "mode");
    if (r->src.dims[0] != dst->dims[0] || r->src.dims[1] != dst->dims[1]) return qdqi_refuse(err, "resample", "axis");
    if (op->n_in < 3 || op->in[2] == QDQI_NONE) return QDQ_OK;
    const qdqi_lval *scales = qdqi_lower_val(lw, op->in[2]);
    const int64_t n = qdqi_n_elems(&scales->desc);
    if (n != 0 && (scales->data == NULL || n != r->src.ndims)) return qdqi_refuse(err, "resample", "runtime_scales");
    for (int64_t d = 0; d < n; d++) {
        const double scale = qdqi_load_f64(scales->data, scales->desc.dtype, d);
        if (scale * (double)r->src.dims[d] != (double)dst->dims[d]) return qdqi_refuse(err, "resample", "mode");
    }
    return QDQ_OK;
}

qdq_status qdqi_recipe_resample(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    resample *r = qdqi_lower_scratch(lw, sizeof *r);
    if (r == NULL) return QDQI_NO_MEMORY(err);
    r->op = &lw->graph->ops[part->root];
    QDQI_TRY(qdqi_chain_build(lw, part, &r->chain, err));
    const qdqi_operand *a = &r->chain.operands[0];
    const bool integers = a->dq_op != QDQI_NONE && qdqi_is_x8(a->q.stored) && qdqi_qparams_is_const_tensor(&a->q) &&
                          isnormal(a->q.scales[0]);
    if (!integers) QDQI_TRY(qdqi_operand_as_float(lw, a, err));
    const uint32_t from = integers ? a->q_value : a->value;
    r->src = qdqi_lower_val(lw, from)->desc;
    r->layout = qdqi_lower_val(lw, r->op->out[0])->desc;
    if (!integers && !qdqi_is_dnnl_float(r->src.dtype)) return qdqi_refuse(err, "resample", "dtype");
    QDQI_TRY(check_mode(lw, r, err));
    const int32_t nd = r->src.ndims;
    const bool nxc = r->op->kind == QDQI_OP_INTERPOLATE && qdqi_op_str_is(r->op, QDQI_A_DATA_FORMAT, "NXC");
    r->perm[0] = 0;
    r->perm[1] = nxc ? nd - 1 : 1;
    for (int32_t i = 2; i < nd; i++)
        r->perm[i] = nxc ? i - 1 : i;
    qdqi_set_channels_last_by(&r->src, r->perm);
    qdqi_set_channels_last_by(&r->layout, r->perm);
    qdqi_md_permuted(&r->src, r->perm, &r->src_md);
    qdqi_md_permuted(&r->layout, r->perm, &r->dst_md);
    qdqi_posts posts = {.attr = &r->attr, .args = &r->args, .full = &r->layout, .dst = &r->layout, .perm = r->perm};
    if (integers) {
        const float s = a->q.scales[0], z = (float)qdqi_qparams_zp0(&a->q);
        r->attr.posts[r->attr.n_posts++] = (qdqi_dnnl_post){.alg = QDQI_DNNL_ELT_LINEAR, .alpha = s, .beta = -z * s};
    }
    uint32_t n_done = 0;
    QDQI_TRY(qdqi_posts_links(lw, &posts, &r->chain, &n_done, err));
    bool all = n_done == r->chain.n_links && !r->chain.truncated;
    if (all && r->chain.q_op != QDQI_NONE) {
        const qdq_status st = qdqi_posts_quantize(lw, &posts, &r->chain.q, false, err);
        if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
        all = st == QDQ_OK;
    }
    const uint32_t out = all ? r->chain.out_value : qdqi_chain_value_after(lw, &r->chain, n_done);
    r->dst_md.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    qdqi_dnnl_prim *prim;
    const qdqi_request request = {.kind = QDQI_MAKE_RESAMPLING,
                                  .alg = QDQI_DNNL_RESIZE_LINEAR,
                                  .src = &r->src_md,
                                  .dst = &r->dst_md,
                                  .attr = &r->attr};
    QDQI_TRY(qdqi_make(&request, &prim, err));
    if (qdqi_dnnl_prim_is_ref(prim)) {
        qdqi_dnnl_prim_destroy(prim);
        return qdqi_refuse(err, "resample", "onednn_has_only_a_reference");
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &r->args, from, &r->src, out, &r->layout, err));
    return qdqi_lower_links(lw, &r->chain, n_done, err); /* what did not fit */
}
