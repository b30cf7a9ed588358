#include "onednn/onednn_impl.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The public enum pins these values to oneDNN's. */
_Static_assert((int)QDQ_DTYPE_F32 == (int)dnnl_f32 && (int)QDQ_DTYPE_U8 == (int)dnnl_u8, "dtype values");
_Static_assert((int)QDQ_DTYPE_BF16 == (int)dnnl_bf16 && (int)QDQ_DTYPE_U4 == (int)dnnl_u4, "dtype values");
_Static_assert(QDQ_MAX_NDIMS == DNNL_MAX_NDIMS, "ranks");

static bool known_dtype(qdq_dtype dtype) {
    return dtype != QDQ_DTYPE_UNDEF && (int)dtype <= (int)dnnl_u4 && qdq_dtype_bits(dtype) != 0;
}

dnnl_alg_kind_t qdqi_dnnl_alg_kind(qdqi_dnnl_alg alg) {
    switch (alg) {
    case QDQI_DNNL_ELT_RELU: return dnnl_eltwise_relu;
    case QDQI_DNNL_ELT_TANH: return dnnl_eltwise_tanh;
    case QDQI_DNNL_ELT_ELU: return dnnl_eltwise_elu;
    case QDQI_DNNL_ELT_SQUARE: return dnnl_eltwise_square;
    case QDQI_DNNL_ELT_ABS: return dnnl_eltwise_abs;
    case QDQI_DNNL_ELT_SQRT: return dnnl_eltwise_sqrt;
    case QDQI_DNNL_ELT_LINEAR: return dnnl_eltwise_linear;
    case QDQI_DNNL_ELT_SOFT_RELU: return dnnl_eltwise_soft_relu;
    case QDQI_DNNL_ELT_LOGISTIC: return dnnl_eltwise_logistic;
    case QDQI_DNNL_ELT_EXP: return dnnl_eltwise_exp;
    case QDQI_DNNL_ELT_LOG: return dnnl_eltwise_log;
    case QDQI_DNNL_ELT_CLIP: return dnnl_eltwise_clip_v2;
    case QDQI_DNNL_ELT_POW: return dnnl_eltwise_pow;
    case QDQI_DNNL_ELT_GELU_ERF: return dnnl_eltwise_gelu_erf;
    case QDQI_DNNL_ELT_GELU_TANH: return dnnl_eltwise_gelu_tanh;
    case QDQI_DNNL_ELT_ROUND: return dnnl_eltwise_round;
    case QDQI_DNNL_ELT_MISH: return dnnl_eltwise_mish;
    case QDQI_DNNL_ELT_HARDSWISH: return dnnl_eltwise_hardswish;
    case QDQI_DNNL_ELT_HARDSIGMOID: return dnnl_eltwise_hardsigmoid;
    case QDQI_DNNL_ELT_SWISH: return dnnl_eltwise_swish;
    case QDQI_DNNL_BIN_ADD: return dnnl_binary_add;
    case QDQI_DNNL_BIN_SUB: return dnnl_binary_sub;
    case QDQI_DNNL_BIN_MUL: return dnnl_binary_mul;
    case QDQI_DNNL_BIN_DIV: return dnnl_binary_div;
    case QDQI_DNNL_BIN_MAX: return dnnl_binary_max;
    case QDQI_DNNL_BIN_MIN: return dnnl_binary_min;
    case QDQI_DNNL_BIN_GE: return dnnl_binary_ge;
    case QDQI_DNNL_BIN_PRELU:
    case QDQI_DNNL_SUM: return dnnl_alg_kind_undef;
    case QDQI_DNNL_POOL_MAX: return dnnl_pooling_max;
    case QDQI_DNNL_POOL_AVG_INCLUDE_PAD: return dnnl_pooling_avg_include_padding;
    case QDQI_DNNL_POOL_AVG_EXCLUDE_PAD: return dnnl_pooling_avg_exclude_padding;
    case QDQI_DNNL_RED_SUM: return dnnl_reduction_sum;
    case QDQI_DNNL_RED_MEAN: return dnnl_reduction_mean;
    case QDQI_DNNL_RED_MAX: return dnnl_reduction_max;
    case QDQI_DNNL_RED_MIN: return dnnl_reduction_min;
    case QDQI_DNNL_RED_MUL: return dnnl_reduction_mul;
    case QDQI_DNNL_RED_L1: return dnnl_reduction_norm_lp_power_p_sum;
    case QDQI_DNNL_RED_L2: return dnnl_reduction_norm_lp_sum;
    case QDQI_DNNL_RESIZE_NEAREST: return dnnl_resampling_nearest;
    case QDQI_DNNL_RESIZE_LINEAR: return dnnl_resampling_linear;
    case QDQI_DNNL_SOFTMAX: return dnnl_softmax_accurate;
    case QDQI_DNNL_LOGSOFTMAX: return dnnl_softmax_log;
    }
    return dnnl_alg_kind_undef;
}

static const char *status_word(dnnl_status_t status) {
    switch (status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out_of_memory";
    case dnnl_invalid_arguments: return "invalid_arguments";
    case dnnl_unimplemented: return "unimplemented";
    case dnnl_last_impl_reached: return "last_impl_reached";
    case dnnl_runtime_error: return "runtime_error";
    case dnnl_not_required: return "not_required";
    case dnnl_invalid_graph: return "invalid_graph";
    case dnnl_invalid_graph_op: return "invalid_graph_op";
    case dnnl_invalid_shape: return "invalid_shape";
    case dnnl_invalid_data_type: return "invalid_data_type";
    }
    return "?";
}

qdq_status qdqi_dnnl_check(dnnl_status_t status, const char *what, qdq_error *err) {
    if (status == dnnl_success) return QDQ_OK;
    if (status == dnnl_out_of_memory) return qdqi_fail(err, QDQ_E_NO_MEMORY, "%s: oneDNN is out of memory", what);
    const bool refused = status == dnnl_unimplemented || status == dnnl_invalid_arguments;
    return qdqi_fail(err, refused ? QDQ_E_UNSUPPORTED : QDQ_E_ONEDNN, "%s: oneDNN answers %s", what,
                     status_word(status));
}

/* Every size and offset that oneDNN will compute from the descriptor must fit. */
static qdq_status check_sizes(const qdqi_dnnl_md *md, const char *primitive, const char *what, qdq_error *err) {
    const qdqi_shape_text shape = qdqi_shape_str(md->ndims, md->dims);
    int64_t n = 1, last = 0;
    for (int32_t d = 0; d < md->ndims; d++) {
        const int64_t dim = md->dims[d];
        if (dim == 0) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: zero_size: %s is %s", primitive, what, shape.s);
        if (dim < 0)
            return qdqi_fail(err, QDQ_E_BAD_SHAPE, "%s: %s is %s, expected known dims", primitive, what, shape.s);
        int64_t reach = 0;
        const bool strided_fits = md->any || (md->strides[d] >= 0 && qdqi_mul_i64(dim - 1, md->strides[d], &reach) &&
                                              qdqi_add_i64(last, reach, &last));
        if (!qdqi_mul_i64(n, dim, &n) || !strided_fits)
            return qdqi_fail(err, QDQ_E_OVERFLOW, "%s: the size of %s %s does not fit", primitive, what, shape.s);
    }
    /* blocked layouts pad: leave room below the end of the address space */
    size_t bytes;
    if (!qdqi_dtype_bytes(md->dtype, n, &bytes) || bytes > SIZE_MAX / 1024 ||
        !qdqi_dtype_bytes(md->dtype, last, &bytes) || bytes > SIZE_MAX / 1024)
        return qdqi_fail(err, QDQ_E_OVERFLOW, "%s: the size of %s %s does not fit", primitive, what, shape.s);
    return QDQ_OK;
}

qdq_status qdqi_dnnl_make_md(const qdqi_dnnl_md *md, const char *primitive, const char *what,
                             dnnl_memory_desc_t *md_out, qdq_error *err) {
    if (md == NULL) return qdqi_fail(err, QDQ_E_NULL_ARG, "%s: %s is NULL", primitive, what);
    if (!qdqi_dnnl_available()) /* every draft begins with a descriptor */
        return qdqi_fail(err, QDQ_E_NO_ONEDNN, "%s: %s", primitive,
                         qdqi_dnnl_jit_off() ? "jit_off: QDQ_JIT forbids oneDNN" : "oneDNN did not initialise");
    if (md->ndims < 1 || md->ndims > QDQ_MAX_NDIMS)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %s has rank %d, expected 1...%d", primitive, what, md->ndims,
                         QDQ_MAX_NDIMS);
    if (!known_dtype(md->dtype))
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %s is %s, which oneDNN does not have", primitive, what,
                         qdq_dtype_name(md->dtype));
    QDQI_TRY(check_sizes(md, primitive, what, err));
    const dnnl_data_type_t dtype = (dnnl_data_type_t)md->dtype;
    const dnnl_status_t status =
        md->any ? dnnl_memory_desc_create_with_tag(md_out, md->ndims, md->dims, dtype, dnnl_format_tag_any)
                : dnnl_memory_desc_create_with_strides(md_out, md->ndims, md->dims, dtype, md->strides);
    if (status == dnnl_success) return QDQ_OK;
    char text[96];
    snprintf(text, sizeof text, "%s: descriptor of %s %s", primitive, what, qdq_dtype_name(md->dtype));
    return qdqi_dnnl_check(status, text, err);
}

/* ---- attributes ---- */

typedef struct side {
    const char *name;
    const qdqi_dnnl_quant *quant;
    const qdqi_dnnl_md *md;
    int dnnl_arg;
    qdqi_dnnl_arg scale, zp;
} side;

/* How many values `mask` selects of `md`, groups counted along the last two dims. */
static bool count_values(const qdqi_dnnl_md *md, int mask, const int64_t group[2], int64_t *n_out) {
    int64_t n = 1;
    if (mask < 0 || mask >> md->ndims != 0) return false;
    for (int32_t d = 0; d < md->ndims; d++) {
        if ((mask >> d & 1) == 0) continue;
        int64_t values = md->dims[d];
        const int32_t from_last_two = d - (md->ndims - 2);
        if (group[0] > 0 && group[1] > 0 && from_last_two >= 0) {
            if (values % group[from_last_two] != 0) return false;
            values /= group[from_last_two];
        }
        if (!qdqi_mul_i64(n, values, &n)) return false;
    }
    *n_out = n;
    return true;
}

static qdq_status add_vector(qdqi_dnnl_draft *draft, qdqi_dnnl_arg arg, int dnnl_arg, int64_t n, qdq_dtype dtype,
                             qdq_error *err) {
    if (draft->n_vectors == QDQI_DNNL_MAX_VECTORS)
        return qdqi_fail(err, QDQ_E_INTERNAL, "%s: too many arguments", draft->primitive);
    draft->vectors[draft->n_vectors++] = (qdqi_dnnl_vector){arg, dnnl_arg, n, dtype};
    return QDQ_OK;
}

static qdq_status add_masked(qdqi_dnnl_draft *draft, const side *s, const char *kind, qdqi_dnnl_arg arg, int dnnl_arg,
                             int mask, qdq_dtype dtype, qdq_error *err) {
    int64_t n = 0;
    if (!count_values(s->md, mask, s->quant->group, &n))
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: mask %d or groups of the %s of %s do not fit its dims",
                         draft->primitive, mask, kind, s->name);
    return add_vector(draft, arg, dnnl_arg, n, dtype, err);
}

static qdq_status add_side(qdqi_dnnl_draft *draft, const side *s, qdq_error *err) {
    const qdqi_dnnl_quant *q = s->quant;
    if (!q->has_scale && !q->has_zp) return QDQ_OK;
    if (s->md == NULL) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: has no quantized %s", draft->primitive, s->name);
    const bool grouped = q->group[0] > 0 && q->group[1] > 0;
    const int n_groups = grouped ? 2 : 0;
    const dnnl_dims_t groups = {q->group[0], q->group[1]};
    char what[96];
    if (q->has_scale) {
        const qdq_dtype dtype = q->scale_dtype == QDQ_DTYPE_UNDEF ? QDQ_DTYPE_F32 : q->scale_dtype;
        snprintf(what, sizeof what, "%s: %s scale of %s, mask %d", draft->primitive, qdq_dtype_name(dtype), s->name,
                 q->scale_mask);
        QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_attr_set_scales(draft->attr, s->dnnl_arg, q->scale_mask, n_groups,
                                                                grouped ? groups : NULL, (dnnl_data_type_t)dtype),
                                 what, err));
        QDQI_TRY(
            add_masked(draft, s, "scale", s->scale, DNNL_ARG_ATTR_SCALES | s->dnnl_arg, q->scale_mask, dtype, err));
    }
    if (q->has_zp) {
        const qdq_dtype dtype = q->zp_dtype == QDQ_DTYPE_UNDEF ? QDQ_DTYPE_S32 : q->zp_dtype;
        snprintf(what, sizeof what, "%s: %s zero point of %s, mask %d", draft->primitive, qdq_dtype_name(dtype),
                 s->name, q->zp_mask);
        QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_attr_set_zero_points(draft->attr, s->dnnl_arg, q->zp_mask, n_groups,
                                                                     grouped ? groups : NULL, (dnnl_data_type_t)dtype),
                                 what, err));
        QDQI_TRY(
            add_masked(draft, s, "zero point", s->zp, DNNL_ARG_ATTR_ZERO_POINTS | s->dnnl_arg, q->zp_mask, dtype, err));
    }
    return QDQ_OK;
}

static qdq_status append_prelu(qdqi_dnnl_draft *draft, dnnl_post_ops_t ops, const qdqi_dnnl_post *post, uint32_t i,
                               qdq_error *err) {
    /* a slope per index of the dims that are not 1; oneDNN reads them as dense f32 */
    int mask = 0;
    int64_t dense = 1;
    if (post->operand.dtype != QDQ_DTYPE_F32)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: post-op %u prelu: slope is %s, expected f32", draft->primitive, i,
                         qdq_dtype_name(post->operand.dtype));
    for (int32_t d = post->operand.ndims - 1; d >= 0; d--) {
        if (post->operand.dims[d] == 1) continue;
        mask |= 1 << d;
        if (post->operand.strides[d] != dense || !qdqi_mul_i64(dense, post->operand.dims[d], &dense))
            return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: post-op %u prelu: slope is not dense", draft->primitive, i);
    }
    char what[64];
    snprintf(what, sizeof what, "%s: post-op %u prelu", draft->primitive, i);
    QDQI_TRY(qdqi_dnnl_check(dnnl_post_ops_append_prelu(ops, mask), what, err));
    return add_vector(draft, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + i),
                      DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_WEIGHTS, dense, QDQ_DTYPE_F32, err);
}

static qdq_status append_binary(qdqi_dnnl_draft *draft, dnnl_post_ops_t ops, const qdqi_dnnl_post *post, uint32_t i,
                                qdq_error *err) {
    char what[64];
    snprintf(what, sizeof what, "post-op %u operand", i);
    dnnl_memory_desc_t md = NULL;
    QDQI_TRY(qdqi_dnnl_make_md(&post->operand, draft->primitive, what, &md, err));
    const dnnl_status_t status = dnnl_post_ops_append_binary(ops, qdqi_dnnl_alg_kind(post->alg), md);
    dnnl_memory_desc_destroy(md);
    snprintf(what, sizeof what, "%s: post-op %u binary", draft->primitive, i);
    QDQI_TRY(qdqi_dnnl_check(status, what, err));
    qdqi_dnnl_draft_role(draft, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + i),
                         DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_SRC_1);
    return QDQ_OK;
}

static qdq_status append_post(qdqi_dnnl_draft *draft, dnnl_post_ops_t ops, const qdqi_dnnl_post *post, uint32_t i,
                              qdq_error *err) {
    char what[64];
    snprintf(what, sizeof what, "%s: post-op %u", draft->primitive, i);
    if (qdqi_dnnl_is_eltwise(post->alg))
        return qdqi_dnnl_check(
            dnnl_post_ops_append_eltwise(ops, qdqi_dnnl_alg_kind(post->alg), post->alpha, post->beta), what, err);
    if (qdqi_dnnl_is_binary(post->alg)) return append_binary(draft, ops, post, i, err);
    if (post->alg == QDQI_DNNL_BIN_PRELU) return append_prelu(draft, ops, post, i, err);
    if (post->alg == QDQI_DNNL_SUM)
        return qdqi_dnnl_check(dnnl_post_ops_append_sum(ops, post->alpha, post->zp, (dnnl_data_type_t)post->sum_dtype),
                               what, err);
    return qdqi_fail(err, QDQ_E_INTERNAL, "%s: algorithm %d is no post-op", what, (int)post->alg);
}

static qdq_status add_posts(qdqi_dnnl_draft *draft, const qdqi_dnnl_attr *attr, qdq_error *err) {
    if (attr->n_posts == 0) return QDQ_OK;
    if (attr->n_posts > QDQI_DNNL_MAX_POSTS)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %u post-ops, expected at most %d", draft->primitive,
                         attr->n_posts, QDQI_DNNL_MAX_POSTS);
    dnnl_post_ops_t ops = NULL;
    QDQI_TRY(qdqi_dnnl_check(dnnl_post_ops_create(&ops), draft->primitive, err));
    qdq_status st = QDQ_OK;
    for (uint32_t i = 0; st == QDQ_OK && i < attr->n_posts; i++)
        st = append_post(draft, ops, &attr->posts[i], i, err);
    if (st == QDQ_OK) st = qdqi_dnnl_check(dnnl_primitive_attr_set_post_ops(draft->attr, ops), draft->primitive, err);
    dnnl_post_ops_destroy(ops);
    return st;
}

qdq_status qdqi_dnnl_draft_attr(qdqi_dnnl_draft *draft, const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src,
                                const qdqi_dnnl_md *src1, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *dst,
                                qdq_error *err) {
    QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_attr_create(&draft->attr), draft->primitive, err));
    QDQI_TRY(qdqi_dnnl_check(dnnl_primitive_attr_set_scratchpad_mode(draft->attr, dnnl_scratchpad_mode_user),
                             draft->primitive, err));
    if (attr == NULL) return QDQ_OK;
    const side sides[] = {
        {"src", &attr->src, src, DNNL_ARG_SRC, QDQI_DNNL_SCALE_SRC, QDQI_DNNL_ZP_SRC},
        {"src1", &attr->src1, src1, DNNL_ARG_SRC_1, QDQI_DNNL_SCALE_SRC1, QDQI_DNNL_SCALE_SRC1},
        {"weights", &attr->weights, weights, DNNL_ARG_WEIGHTS, QDQI_DNNL_SCALE_WEIGHTS, QDQI_DNNL_ZP_WEIGHTS},
        {"dst", &attr->dst, dst, DNNL_ARG_DST, QDQI_DNNL_SCALE_DST, QDQI_DNNL_ZP_DST},
    };
    if (attr->src1.has_zp) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: src1 takes no zero point", draft->primitive);
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        QDQI_TRY(add_side(draft, &sides[i], err));
    return add_posts(draft, attr, err);
}
