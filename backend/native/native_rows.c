#include "native/native_rows.h"

#include <string.h>

bool qdqi_native_memory_order(const qdqi_dnnl_md *md, int32_t *order) {
    const int32_t nd = md->ndims;
    int32_t n_ones = 0;
    for (int32_t d = 0; d < nd; d++) /* dims of 1 have no say: outside of all others */
        if (md->dims[d] == 1) order[n_ones++] = d;
    for (int32_t d = 0, n_sorted = n_ones; d < nd; d++) {
        if (md->dims[d] == 1) continue;
        int32_t k = n_sorted++;
        for (; k > n_ones && md->strides[order[k - 1]] < md->strides[d]; k--)
            order[k] = order[k - 1];
        order[k] = d;
    }
    int64_t n = 1;
    for (int32_t k = nd - 1; k >= 0; k--) {
        if (md->dims[order[k]] != 1 && md->strides[order[k]] != n) return false;
        n *= md->dims[order[k]];
    }
    return true;
}

/* ---- posts ------------------------------------------------------------------------------------------------------ */

static bool is_scalar(const qdqi_dnnl_md *md) {
    return md->dtype == QDQ_DTYPE_F32 && qdqi_native_n_elems(md) == 1;
}

/* Division (or multiplication) by one scale, and addition of one zero point: what closes a quantized partition. */
static bool is_quantize(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *dst) {
    if (dst->dtype != QDQ_DTYPE_U8 && dst->dtype != QDQ_DTYPE_S8) return false;
    if (attr->n_posts == 0) return true; /* rounded as it is, or by the destination's own scale */
    if (attr->dst.has_scale || attr->dst.has_zp || attr->n_posts > 2) return false;
    const qdqi_dnnl_post *p = attr->posts;
    if ((p[0].alg != QDQI_DNNL_BIN_DIV && p[0].alg != QDQI_DNNL_BIN_MUL) || !is_scalar(&p[0].operand)) return false;
    return attr->n_posts == 1 || (p[1].alg == QDQI_DNNL_BIN_ADD && is_scalar(&p[1].operand));
}

/* An operand along a line: one value, or the line's own length in memory order. */
static bool along_line(const qdqi_dnnl_md *md, const qdqi_dnnl_md *dst, const int32_t *order, int32_t first,
                       bool *per_col) {
    int64_t n = 1;
    bool one = true, all = true;
    for (int32_t k = dst->ndims - 1; k >= first; k--) {
        const int32_t d = order[k];
        if (dst->dims[d] == 1) continue;
        one = one && md->dims[d] == 1;
        all = all && md->dims[d] == dst->dims[d] && md->strides[d] == n;
        n *= dst->dims[d];
    }
    *per_col = !one;
    return one || all;
}

static bool make_program(qdqi_native_end *end, const char *primitive, const qdqi_dnnl_md *dst, const int32_t *order,
                         int32_t n_line, const qdqi_dnnl_attr *attr) {
    const int32_t first = dst->ndims - n_line;
    if (n_line == 0 || attr->n_posts > QK_POST_MAX_STEPS) return false;
    end->post = (qk_post){.acc = QDQ_DTYPE_F32, .dst = dst->dtype};
    if (qdqi_native_post_steps(attr, primitive, &end->post, NULL) != QDQ_OK) return false;
    end->post.dst_quantized = attr->dst.has_scale;
    end->post.dst_has_zp = attr->dst.has_zp;
    end->n_outer = first;
    for (int32_t k = 0; k < first; k++)
        end->outer_dims[k] = dst->dims[order[k]];
    for (uint32_t i = 0; i < attr->n_posts; i++) {
        const qdqi_dnnl_post *p = &attr->posts[i];
        qk_post_step *step = &end->post.steps[i];
        if (step->op == QK_POST_SUM) return false;
        if (step->op < QK_POST_ADD) continue;
        if (p->operand.ndims != dst->ndims || !along_line(&p->operand, dst, order, first, &step->per_col)) return false;
        end->elem_bytes[i] = (int64_t)qdq_dtype_bits(p->operand.dtype) / 8;
        for (int32_t k = 0; k < first; k++)
            end->steps[i][k] = p->operand.dims[order[k]] == 1 ? 0 : p->operand.strides[order[k]];
    }
    end->fn = qk_post_choose(&end->post, NULL);
    return end->fn != NULL;
}

qdq_status qdqi_native_end_init(qdqi_native_end *end, qdqi_native_prim *prim, const char *primitive,
                                const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const int32_t *order, int32_t n_line,
                                const qdqi_dnnl_attr *attr, qdqi_native_attr_args *args, qdq_error *err) {
    static const qdqi_dnnl_attr none;
    if (attr == NULL) attr = &none;
    memset(end, 0, sizeof *end);
    qdqi_native_add_attr(prim, attr, src, NULL, NULL, dst, args);
    end->scale = args->scale_dst;
    end->zp_s32 = args->zp_dst;
    end->zp = QDQI_NO_ARG;
    memcpy(end->post_args, args->post, sizeof end->post_args);
    const qdqi_dnnl_quant *q = &attr->dst;
    if ((q->has_scale &&
         (args->n_scale_dst != 1 || q->scale_dtype == QDQ_DTYPE_BF16 || q->scale_dtype == QDQ_DTYPE_F16)) ||
        (q->has_zp && (args->n_zp_dst != 1 || (q->zp_dtype != QDQ_DTYPE_S32 && q->zp_dtype != QDQ_DTYPE_UNDEF))))
        return qdqi_native_refuse(err, primitive, "post_ops");
    if (is_quantize(attr, dst)) {
        end->quantizes = true;
        end->divides = attr->n_posts == 0 || attr->posts[0].alg == QDQI_DNNL_BIN_DIV;
        if (attr->n_posts > 0) end->scale = args->post[0];
        if (attr->n_posts > 1) end->zp = args->post[1];
        return QDQ_OK;
    }
    if (attr->n_posts == 0 && !attr->dst.has_scale && !attr->dst.has_zp) return QDQ_OK;
    if (make_program(end, primitive, dst, order, n_line, attr)) return QDQ_OK;
    return qdqi_native_refuse(err, primitive, "post_ops");
}

qdqi_native_quantum qdqi_native_quantum_of(const qdqi_native_end *end, void *const *bufs) {
    qdqi_native_quantum q = {1.0f, 0.0f};
    if (end->scale != QDQI_NO_ARG) {
        const float s = *(const float *)bufs[end->scale];
        q.factor = end->divides ? 1.0f / s : s;
    }
    if (end->zp != QDQI_NO_ARG) q.zp_first = *(const float *)bufs[end->zp];
    if (end->zp_s32 != QDQI_NO_ARG) q.zp_first = (float)*(const int32_t *)bufs[end->zp_s32];
    return q;
}

void qdqi_native_end_line(const qdqi_native_end *end, void *const *bufs, void *dst, int64_t line, const float *values,
                          int64_t n) {
    qk_post_args args = {.scale_common = 1.0f, .dst_scale = 1.0f};
    int64_t at[QDQ_MAX_NDIMS], rest = line;
    for (int32_t k = end->n_outer - 1; k >= 0; k--) {
        at[k] = rest % end->outer_dims[k];
        rest /= end->outer_dims[k];
    }
    for (uint32_t i = 0; i < end->post.n_steps; i++) {
        if (end->post_args[i] == QDQI_NO_ARG) continue;
        int64_t offset = 0;
        for (int32_t k = 0; k < end->n_outer; k++)
            offset += at[k] * end->steps[i][k];
        args.operands[i].data = (const char *)bufs[end->post_args[i]] + offset * end->elem_bytes[i];
    }
    if (end->post.dst_quantized) args.dst_scale = *(const float *)bufs[end->scale];
    if (end->post.dst_has_zp) args.dst_zp = *(const int32_t *)bufs[end->zp_s32];
    args.dst = dst;
    args.dst_stride = (ptrdiff_t)n;
    end->fn(&end->post, &args, values, (size_t)n, 0, 1, 0, (size_t)n);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

bool qdqi_native_src_ok(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src) {
    if (attr == NULL || (!attr->src.has_scale && !attr->src.has_zp)) return true;
    const qdqi_dnnl_quant *q = &attr->src;
    return (src->dtype == QDQ_DTYPE_U8 || src->dtype == QDQ_DTYPE_S8) && q->scale_mask == 0 && q->zp_mask == 0 &&
           (q->scale_dtype == QDQ_DTYPE_F32 || q->scale_dtype == QDQ_DTYPE_UNDEF) &&
           (q->zp_dtype == QDQ_DTYPE_S32 || q->zp_dtype == QDQ_DTYPE_UNDEF);
}

float qdqi_native_src_scale(const qdqi_native_attr_args *args, void *const *bufs) {
    return args->scale_src == QDQI_NO_ARG ? 1.0f : *(const float *)bufs[args->scale_src];
}

float qdqi_native_src_zp(const qdqi_native_attr_args *args, void *const *bufs) {
    return args->zp_src == QDQI_NO_ARG ? 0.0f : (float)*(const int32_t *)bufs[args->zp_src];
}

static void chunk(int i, void *arg) {
    const qdqi_native_split *s = arg;
    const int64_t first = i * s->per_chunk, left = s->n - first;
    if (left > 0) s->body(first, left < s->per_chunk ? left : s->per_chunk, s->arg);
}

void qdqi_native_parallel(const qdq_engine *engine, int64_t n, int64_t work, int64_t grain,
                          void (*body)(int64_t first, int64_t n, void *arg), void *arg) {
    int64_t threads = qdqi_threads_for(engine, work, grain);
    if (threads > n) threads = n;
    if (threads <= 1) {
        body(0, n, arg);
        return;
    }
    qdqi_native_split split = {body, arg, n, (n + threads - 1) / threads};
    qdqi_parallel(engine, (int)threads, chunk, &split);
}
