/* [dq] [dq] [bias] - Convolution|ConvTranspose - chain - [q]   ->   one (de)convolution.
 *
 * The primitive sees N, C, spatial… whatever the data_format says, and always reads and writes channels-last memory: the layout in
 * which oneDNN's int8 kernels work, and in which values then flow from one partition to the next. */
#include "base/dtype.h"
#include "lower/requant.h"
#include "lower/single.h"

#include <string.h>

typedef struct conv {
    const qdqi_op *op;
    bool int8, flip;
    uint32_t src, w;
    qdqi_spatial sp;
    int32_t perm[QDQ_MAX_NDIMS]; /* md dim -> tensor dim, of src and dst */
    qdqi_dnnl_md src_md, weights, bias, dst;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_chain chain;
    qdqi_requant requant;
} conv;

static const char *why_not_int8(qdqi_lower *lw, const conv *c) {
    const qdqi_operand *a = &c->chain.operands[0], *w = &c->chain.operands[1];
    if (a->dq_op == QDQI_NONE || w->dq_op == QDQI_NONE) return "operand_not_dequantized";
    if (!qdqi_is_x8(a->q.stored) || !qdqi_is_x8(w->q.stored)) return "operand_dtype";
    if (a->q.gran != QDQI_GRAN_TENSOR) return "src_not_per_tensor";
    if (w->q.gran == QDQI_GRAN_GROUP) return "weights_grouped";
    if (w->q.gran == QDQI_GRAN_AXIS && w->q.axis != c->sp.w_oc_dim) return "weights_axis_not_output_channel";
    const qdq_tensor_desc *wd = &qdqi_lower_val(lw, w->q_value)->desc;
    int64_t k = wd->dims[c->sp.w_ic_dim];
    for (int32_t i = 0; i < c->sp.n; i++)
        k *= wd->dims[c->sp.w_sp_dim + i];
    if (c->op->kind == QDQI_OP_CONVTRANSPOSE) k /= c->sp.groups;
    if (!qdqi_sum_fits_s32(&a->q, &w->q, k)) return "sums_beyond_s32";
    return NULL;
}

/* u8 with zero point 128 is s8 without one, which every provider multiplies. */
static bool is_shifted_s8(qdqi_lower *lw, const qdqi_operand *w) {
    if (w->q.stored != QDQ_DTYPE_U8 || w->q.zps == NULL || qdqi_lower_val(lw, w->q_value)->data == NULL) return false;
    for (int64_t i = 0; i < w->q.n; i++)
        if (w->q.zps[i] != 128) return false;
    return true;
}

/* [G,] O, I, spatial… from any weights_format. */
static void weights_md(const conv *c, const qdq_tensor_desc *w, bool transposed, qdqi_dnnl_md *md) {
    const int64_t g = c->sp.groups;
    int32_t k = 0;
    *md = (qdqi_dnnl_md){.dtype = w->dtype};
    int64_t oc = w->dims[c->sp.w_oc_dim], ic = w->dims[c->sp.w_ic_dim];
    const int64_t oc_stride = w->strides[c->sp.w_oc_dim], ic_stride = w->strides[c->sp.w_ic_dim];
    if (g > 1) {
        /* the outer one of O (convolution) and I (ConvTranspose) holds the groups */
        if (transposed)
            ic /= g;
        else
            oc /= g;
        md->dims[k] = g;
        md->strides[k++] = transposed ? ic * ic_stride : oc * oc_stride;
    }
    md->dims[k] = oc;
    md->strides[k++] = oc_stride;
    md->dims[k] = ic;
    md->strides[k++] = ic_stride;
    for (int32_t i = 0; i < c->sp.n; i++) {
        md->dims[k] = w->dims[c->sp.w_sp_dim + i];
        md->strides[k++] = w->strides[c->sp.w_sp_dim + i];
    }
    md->ndims = k;
}

/* ConvTranspose with groups: O/G scales and zero points serve every group. */
static qdq_status spread_params(qdqi_lower *lw, conv *c, bool transposed, qdqi_qparams *w, qdq_error *err) {
    if (w->gran != QDQI_GRAN_AXIS || !transposed || c->sp.groups == 1) return QDQ_OK;
    if (w->scales == NULL || (w->has_zp && w->zps == NULL))
        return qdqi_refuse(err, "conv", "runtime_scales_per_group_of_channels");
    const int64_t n = w->n * c->sp.groups;
    float *scales = qdqi_arena_alloc(&lw->arena, (size_t)n, sizeof *scales);
    int32_t *zps = qdqi_arena_alloc(&lw->arena, (size_t)n, sizeof *zps);
    if (scales == NULL || zps == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < n; i++) {
        scales[i] = w->scales[i % w->n];
        zps[i] = w->has_zp ? w->zps[i % w->n] : 0;
    }
    w->scales = scales;
    if (w->has_zp) w->zps = zps;
    w->n = n;
    return QDQ_OK;
}

static qdq_status add_quant_args(qdqi_lower *lw, conv *c, bool transposed, qdq_error *err) {
    const qdqi_qparams *a = &c->chain.operands[0].q;
    qdqi_qparams w = c->chain.operands[1].q;
    QDQI_TRY(spread_params(lw, c, transposed, &w, err));
    qdqi_buf buf;
    const qdqi_requant *r = &c->requant;
    const bool integer = c->op->kind == QDQI_OP_CONVINTEGER && c->chain.scaled == QDQI_NONE; /* scales are 1 */
    if (!r->on && !integer) {
        c->attr.src = (qdqi_dnnl_quant){.has_scale = true, .scale_dtype = QDQ_DTYPE_F32};
        QDQI_TRY(qdqi_qparams_scale_buf(lw, a, &buf, err));
        qdqi_args_add(&c->args, QDQI_DNNL_SCALE_SRC, buf);
    }
    if (a->has_zp) {
        c->attr.src.has_zp = true;
        c->attr.src.zp_dtype = QDQ_DTYPE_S32;
        QDQI_TRY(qdqi_qparams_zp_buf(lw, a, 0, &buf, err));
        qdqi_args_add(&c->args, QDQI_DNNL_ZP_SRC, buf);
    }
    const int mask = w.gran != QDQI_GRAN_AXIS ? 0 : (c->sp.groups > 1 ? 3 : 1);
    if (w.has_zp && !c->flip) { /* our own kernels take it */
        c->attr.weights = (qdqi_dnnl_quant){.has_zp = true, .zp_dtype = QDQ_DTYPE_S32, .zp_mask = mask};
        QDQI_TRY(qdqi_qparams_zp_buf(lw, &w, 0, &buf, err));
        qdqi_args_add(&c->args, QDQI_DNNL_ZP_WEIGHTS, buf);
    }
    if (integer || (r->on && r->scale_after_bias)) return QDQ_OK;
    c->attr.weights.has_scale = true;
    c->attr.weights.scale_dtype = QDQ_DTYPE_F32;
    c->attr.weights.scale_mask = mask;
    if (r->on)
        QDQI_TRY(qdqi_lower_const(lw, r->scales, (size_t)r->n_scales * sizeof *r->scales, &buf, err));
    else
        QDQI_TRY(qdqi_qparams_scale_buf(lw, &w, &buf, err));
    qdqi_args_add(&c->args, QDQI_DNNL_SCALE_WEIGHTS, buf);
    return QDQ_OK;
}

static qdq_status add_bias(qdqi_lower *lw, conv *c, qdq_error *err) {
    if (c->chain.n_operands < 3 || c->chain.operands[2].value == QDQI_NONE) return QDQ_OK;
    const qdqi_operand *bias = &c->chain.operands[2];
    const qdqi_requant *r = &c->requant;
    if (r->on) {
        c->bias = (qdqi_dnnl_md){.ndims = 1, .dims = {r->n_bias}, .strides = {1}, .dtype = r->bias_dtype};
        qdqi_buf own;
        QDQI_TRY(qdqi_lower_const(lw, r->bias, (size_t)r->n_bias * 4, &own, err));
        qdqi_args_add(&c->args, QDQI_DNNL_BIAS, own);
        return QDQ_OK;
    }
    QDQI_TRY(qdqi_operand_as_float(lw, bias, err));
    const qdqi_lval *lv = qdqi_lower_val(lw, bias->value);
    qdq_tensor_desc dense = lv->desc;
    qdqi_set_dense(&dense);
    qdqi_buf buf;
    QDQI_TRY(qdqi_lower_read_as(lw, bias->value, &dense, &buf, err));
    if (c->int8 &&
        dense.dtype != QDQ_DTYPE_F32) { /* gemm_s8s8s32 of oneDNN 3.7.2 reads a bf16 bias as if it were f32 */
        const qdq_tensor_desc narrow = dense;
        qdqi_buf wide;
        dense.dtype = QDQ_DTYPE_F32;
        QDQI_TRY(qdqi_lower_temp(lw, &dense, &wide, err));
        QDQI_TRY(qdqi_lower_convert(lw, buf, &narrow, wide, &dense, err));
        buf = wide;
    }
    qdqi_md_of(&dense, &c->bias);
    qdqi_args_add(&c->args, QDQI_DNNL_BIAS, buf);
    return QDQ_OK;
}

static qdq_status add_weights(qdqi_lower *lw, conv *c, const qdqi_dnnl_prim *prim, const qdqi_dnnl_md *plain,
                              qdq_error *err) {
    const qdqi_lval *lv = qdqi_lower_val(lw, c->w);
    qdqi_buf buf;
    if (lv->data != NULL) {
        size_t bytes;
        QDQI_TRY(qdq_tensor_desc_size_bytes(&lv->desc, &bytes, err));
        QDQI_TRY(qdqi_lower_pack(lw, prim, QDQI_DNNL_WEIGHTS, plain, lv->data, bytes, c->flip, &buf, err));
    } else {
        QDQI_TRY(qdqi_lower_read(lw, c->w, &buf, err));
        if (!qdqi_dnnl_prim_arg_is(prim, QDQI_DNNL_WEIGHTS, plain)) {
            qdqi_dnnl_prim *reorder;
            qdqi_buf packed;
            qdqi_args args = {0};
            QDQI_TRY(qdqi_plan_temp(lw->plan, qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS), &packed, err));
            QDQI_TRY(qdqi_dnnl_reorder_for(prim, QDQI_DNNL_WEIGHTS, plain, true, &reorder, err));
            qdqi_args_add(&args, QDQI_DNNL_SRC, buf);
            qdqi_args_add(&args, QDQI_DNNL_DST, packed);
            QDQI_TRY(qdqi_lower_prim(lw, reorder, &args, err));
            buf = packed;
        }
    }
    qdqi_args_add(&c->args, QDQI_DNNL_WEIGHTS, buf);
    return QDQ_OK;
}

/* `integers` false: the operands are dequantized. *tried_out: whether they were multiplied as integers. */
static qdq_status lower_conv(qdqi_lower *lw, const qdqi_part *part, bool integers, bool *tried_out, qdq_error *err) {
    conv *c = qdqi_lower_scratch(lw, sizeof *c);
    if (c == NULL) return QDQI_NO_MEMORY(err);
    QDQI_TRY(qdqi_chain_build(lw, part, &c->chain, err));
    c->op = &lw->graph->ops[part->root];
    const bool transposed = c->op->kind == QDQI_OP_CONVTRANSPOSE;
    const qdqi_operand *a = &c->chain.operands[0], *w = &c->chain.operands[1];
    QDQI_TRY(
        qdqi_op_spatial(c->op, &qdqi_lower_val(lw, a->value)->desc, &qdqi_lower_val(lw, w->value)->desc, &c->sp, err));
    const int32_t nd = c->sp.n + 2;
    c->perm[0] = 0;
    c->perm[1] = c->sp.nxc ? nd - 1 : 1;
    for (int32_t i = 0; i < c->sp.n; i++)
        c->perm[2 + i] = c->sp.nxc ? 1 + i : 2 + i;
    const char *why = why_not_int8(lw, c);
    if (why == NULL && !integers) why = "no_primitive";
    *tried_out = c->int8 = why == NULL;
    if (!c->int8 && qdqi_is_integer_root(c->op)) return qdqi_refuse(err, "conv", why);
    if (!c->int8) {
        if (a->dq_op != QDQI_NONE || w->dq_op != QDQI_NONE) (void)qdqi_refuse(NULL, "conv int8", why);
        QDQI_TRY(qdqi_operand_as_float(lw, a, err));
        QDQI_TRY(qdqi_operand_as_float(lw, w, err));
    }
    c->src = c->int8 ? a->q_value : a->value;
    c->w = c->int8 ? w->q_value : w->value;
    c->flip = c->int8 && is_shifted_s8(lw, w);

    qdqi_dnnl_conv params = {.transposed = transposed, .n_spatial = c->sp.n};
    for (int32_t i = 0; i < c->sp.n; i++) {
        params.strides[i] = c->sp.strides[i];
        params.dilations[i] = c->sp.dilations[i] - 1;
        params.pads_begin[i] = c->sp.pads_begin[i];
        params.pads_end[i] = c->sp.pads_end[i] - (transposed ? c->sp.output_padding[i] : 0);
    }
    qdq_tensor_desc src = qdqi_lower_val(lw, c->src)->desc;
    qdqi_set_channels_last_by(&src, c->perm);
    qdqi_md_permuted(&src, c->perm, &c->src_md);
    weights_md(c, &qdqi_lower_val(lw, c->w)->desc, transposed, &c->weights);
    if (c->flip) c->weights.dtype = QDQ_DTYPE_S8;
    const uint32_t result = qdqi_chain_result(lw, &c->chain);
    qdq_tensor_desc layout = qdqi_lower_val(lw, result)->desc;
    qdqi_set_channels_last_by(&layout, c->perm);
    qdqi_md_permuted(&layout, c->perm, &c->dst);

    if (c->int8 && c->op->kind != QDQI_OP_CONVINTEGER && !(transposed && c->sp.groups > 1))
        QDQI_TRY(qdqi_requant_plan(lw, &c->chain, layout.dims[c->perm[1]], &c->requant, err));
    if (c->int8) QDQI_TRY(add_quant_args(lw, c, transposed, err));
    QDQI_TRY(add_bias(lw, c, err));
    qdqi_posts posts = {.attr = &c->attr, .args = &c->args, .full = &layout, .dst = &layout, .perm = c->perm};
    uint32_t n_done = c->chain.n_links;
    if (c->requant.on)
        QDQI_TRY(qdqi_requant_posts(lw, &posts, &c->chain, &c->requant, c->perm[1], err));
    else
        QDQI_TRY(qdqi_posts_links(lw, &posts, &c->chain, &n_done, err));
    bool all = n_done == c->chain.n_links && !c->chain.truncated;
    if (all && !c->requant.on && c->chain.q_op != QDQI_NONE) {
        const qdq_status st = qdqi_posts_quantize(lw, &posts, &c->chain.q, true, err);
        if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
        all = st == QDQ_OK;
    }
    const uint32_t out = all ? result : qdqi_chain_value_after(lw, &c->chain, n_done);
    c->dst.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    if (!all && c->chain.q_op == part->root) return qdqi_refuse(err, "conv", "quantize_of_a_qlinear_op");

    const qdqi_dnnl_md plain_weights = c->weights;
    c->weights.any = true;
    qdqi_dnnl_prim *prim;
    const qdqi_request request = {.kind = QDQI_MAKE_CONVOLUTION,
                                  .conv = &params,
                                  .src = &c->src_md,
                                  .second = &c->weights,
                                  .bias = &c->bias,
                                  .dst = &c->dst,
                                  .attr = &c->attr};
    QDQI_TRY(qdqi_make(&request, &prim, err));
    qdqi_buf buf;
    qdq_status st =
        c->int8 && qdqi_dnnl_prim_is_ref(prim) ? qdqi_refuse(err, "conv", "onednn_has_only_a_reference") : QDQ_OK;
    if (st == QDQ_OK) st = add_weights(lw, c, prim, &plain_weights, err);
    if (st == QDQ_OK) st = qdqi_lower_read_as(lw, c->src, &src, &buf, err);
    if (st == QDQ_OK) {
        qdqi_args_add(&c->args, QDQI_DNNL_SRC, buf);
        st = qdqi_lower_write(lw, out, &layout, &buf, err);
    }
    if (st != QDQ_OK) {
        qdqi_dnnl_prim_destroy(prim);
        return st;
    }
    qdqi_args_add(&c->args, QDQI_DNNL_DST, buf);
    QDQI_TRY(qdqi_lower_prim(lw, prim, &c->args, err));
    QDQI_TRY(qdqi_lower_written(lw, out, err));
    return qdqi_lower_links(lw, &c->chain, n_done, err); /* what did not fit */
}

qdq_status qdqi_recipe_conv(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    const qdqi_lower_point here = qdqi_lower_here(lw);
    bool integers = false; /* until lowering says that it tries them */
    const qdq_status st = lower_conv(lw, part, true, &integers, err);
    if (!qdqi_is_refusal(st) || !integers) return st;
    qdqi_lower_undo(lw, here);
    return lower_conv(lw, part, false, &integers, err);
}
