#include "native/native_post.h"

_Static_assert((int)QK_POST_SWISH == (int)QDQI_DNNL_ELT_SWISH && (int)QK_POST_RELU == (int)QDQI_DNNL_ELT_RELU, "order");
_Static_assert((int)QK_POST_CLIP == (int)QDQI_DNNL_ELT_CLIP && (int)QK_POST_MISH == (int)QDQI_DNNL_ELT_MISH, "order");
_Static_assert((int)QK_POST_ADD == (int)QDQI_DNNL_BIN_ADD && (int)QK_POST_GE == (int)QDQI_DNNL_BIN_GE, "order");
_Static_assert((int)QK_POST_PRELU == (int)QDQI_DNNL_BIN_PRELU && (int)QK_POST_SUM == (int)QDQI_DNNL_SUM, "order");
_Static_assert((int)QK_POST_MAX_STEPS >= (int)QDQI_DNNL_MAX_POSTS, "room for every post-op");

static bool has_operand(qdqi_dnnl_alg alg) {
    return alg >= QDQI_DNNL_BIN_ADD && alg <= QDQI_DNNL_BIN_PRELU;
}

qdq_status qdqi_native_post_steps(const qdqi_dnnl_attr *attr, const char *primitive, qk_post *post, qdq_error *err) {
    if (attr == NULL) return QDQ_OK;
    if (attr->n_posts > QK_POST_MAX_STEPS - post->n_steps) return qdqi_native_refuse(err, primitive, "too_many");
    for (uint32_t i = 0; i < attr->n_posts; i++) {
        const qdqi_dnnl_post *p = &attr->posts[i];
        if (p->alg > QDQI_DNNL_SUM) return qdqi_native_refuse(err, primitive, "op");
        qk_post_step *s = &post->steps[post->n_steps++];
        *s = (qk_post_step){.op = (qk_post_op)p->alg, .alpha = p->alpha, .beta = p->beta};
        if (has_operand(p->alg)) s->dtype = p->operand.dtype;
        if (p->alg != QDQI_DNNL_SUM) continue;
        s->beta = (float)p->zp;
        s->dtype = p->sum_dtype == QDQ_DTYPE_UNDEF ? post->dst : p->sum_dtype;
    }
    return QDQ_OK;
}

/* Stride of dim d in an operand: 0 where it broadcasts. False: its size fits neither. */
static bool stride_of(const qdqi_dnnl_md *md, const qdqi_dnnl_md *dst, int32_t d, ptrdiff_t *stride_out) {
    if (md->dims[d] != dst->dims[d] && md->dims[d] != 1) return false;
    *stride_out = md->dims[d] == 1 ? 0 : (ptrdiff_t)md->strides[d];
    return true;
}

/* The row dims as one: the stride of the last that is not 1, or false when they are no such index. */
static bool merge_rows(const qdqi_dnnl_md *dst, const qdqi_native_matrix *m, const ptrdiff_t *strides,
                       ptrdiff_t *row_out) {
    ptrdiff_t row = 0, span = 0;
    bool first = true;
    for (int32_t i = m->n_row_dims - 1; i >= 0; i--) {
        const int32_t d = m->row_dims[i];
        if (dst->dims[d] == 1) continue;
        if (first)
            row = strides[d];
        else if (strides[d] != span)
            return false;
        span = strides[d] * (ptrdiff_t)dst->dims[d];
        first = false;
    }
    *row_out = row;
    return true;
}

static bool is_inner(const qdqi_native_matrix *m, int32_t d) {
    bool inner = d == m->col_dim;
    for (int32_t i = 0; i < m->n_row_dims; i++)
        inner = inner || d == m->row_dims[i];
    return inner;
}

static qdq_status plan_operand(const qdqi_dnnl_post *post, const qdqi_dnnl_md *dst, const qdqi_native_matrix *m,
                               const char *primitive, uint32_t i, qdqi_native_post *out, qdq_error *err) {
    const qdqi_dnnl_md *md = &post->operand;
    ptrdiff_t strides[QDQ_MAX_NDIMS];
    if (md->ndims != dst->ndims || md->any) return qdqi_native_refuse(err, primitive, "broadcast");
    for (int32_t d = 0; d < dst->ndims; d++) {
        if (!stride_of(md, dst, d, &strides[d])) return qdqi_native_refuse(err, primitive, "broadcast");
        out->operands[i].outer[d] = is_inner(m, d) ? 0 : strides[d];
    }
    const bool one_col = dst->dims[m->col_dim] == 1 || strides[m->col_dim] == 0;
    if (!one_col && strides[m->col_dim] != 1) return qdqi_native_refuse(err, primitive, "layout");
    if (!merge_rows(dst, m, strides, &out->operands[i].row)) return qdqi_native_refuse(err, primitive, "broadcast");
    out->post.steps[i].per_col = !one_col;
    out->operands[i].bytes = qdq_dtype_bits(md->dtype) / 8;
    return QDQ_OK;
}

qdq_status qdqi_native_post_plan(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *dst, const qdqi_native_matrix *matrix,
                                 const char *primitive, qdqi_native_post *out, qdq_error *err) {
    *out = (qdqi_native_post){.post = {.acc = QDQ_DTYPE_F32, .dst = dst->dtype}};
    ptrdiff_t strides[QDQ_MAX_NDIMS];
    for (int32_t d = 0; d < dst->ndims; d++) {
        strides[d] = (ptrdiff_t)dst->strides[d];
        out->dst_outer[d] = is_inner(matrix, d) ? 0 : strides[d];
    }
    if (dst->dims[matrix->col_dim] != 1 && strides[matrix->col_dim] != 1)
        return qdqi_native_refuse(err, primitive, "layout");
    if (!merge_rows(dst, matrix, strides, &out->dst_row)) return qdqi_native_refuse(err, primitive, "layout");
    if (attr == NULL) return QDQ_OK;
    const qdqi_dnnl_quant *q = &attr->dst;
    if ((q->has_scale && (q->scale_mask != 0 || q->group[0] > 0)) || (q->has_zp && q->zp_mask != 0))
        return qdqi_native_refuse(err, primitive, "grouped_dst");
    if ((q->has_scale && q->scale_dtype != QDQ_DTYPE_UNDEF && q->scale_dtype != QDQ_DTYPE_F32) ||
        (q->has_zp && q->zp_dtype != QDQ_DTYPE_UNDEF && q->zp_dtype != QDQ_DTYPE_S32))
        return qdqi_native_refuse(err, primitive, "dtype");
    out->post.dst_quantized = q->has_scale;
    out->post.dst_has_zp = q->has_zp;
    QDQI_TRY(qdqi_native_post_steps(attr, primitive, &out->post, err));
    for (uint32_t i = 0; i < attr->n_posts; i++)
        if (has_operand(attr->posts[i].alg))
            QDQI_TRY(plan_operand(&attr->posts[i], dst, matrix, primitive, i, out, err));
    return QDQ_OK;
}

qdq_status qdqi_native_post_choose(qdqi_native_post *post, const char *primitive, qdq_error *err) {
    post->fn = qk_post_choose(&post->post, &post->isa);
    return post->fn == NULL ? qdqi_native_refuse(err, primitive, "dtype") : QDQ_OK;
}

void qdqi_native_post_bind(const qdqi_native_post *post, const qdqi_native_attr_args *args, uint32_t dst,
                           void *const *bufs, const int64_t *outer, qk_post_args *out) {
    const qk_post *p = &post->post;
    ptrdiff_t at = 0;
    for (int32_t d = 0; outer != NULL && d < QDQ_MAX_NDIMS; d++)
        at += post->dst_outer[d] == 0 ? 0 : (ptrdiff_t)outer[d] * post->dst_outer[d];
    const ptrdiff_t dst_bytes = (ptrdiff_t)(qdq_dtype_bits(p->dst) / 8);
    out->scale_common = 1.0f;
    out->dst = (char *)bufs[dst] + at * dst_bytes;
    out->dst_stride = post->dst_row;
    out->dst_scale = qdqi_native_scale(bufs, args->scale_dst);
    out->dst_zp = qdqi_native_zp(bufs, args->zp_dst);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (post->operands[i].bytes == 0) continue;
        ptrdiff_t from = 0;
        for (int32_t d = 0; outer != NULL && d < QDQ_MAX_NDIMS; d++)
            from += post->operands[i].outer[d] == 0 ? 0 : (ptrdiff_t)outer[d] * post->operands[i].outer[d];
        out->operands[i] = (qk_post_operand){
            (const char *)bufs[args->post[i]] + from * (ptrdiff_t)post->operands[i].bytes, post->operands[i].row};
    }
}
