/* [dq] - AvgPool|MaxPool|GlobalAveragePool|GlobalMaxPool - chain - [q]   ->   one oneDNN pooling, in channels-last memory.
 *
 * Integer pooling computes on stored values: with real = (q - z) * s and s > 0, max commutes with it, and an average of (q - z) is the average
 * of q minus z as long as no padding is counted. What is left is a line: q_out = (q - z) * s / s_out + z_out, a post-op. */
#include "base/dtype.h"
#include "base/alloc.h"
#include "kernels/pool/pool.h"
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

/* ---- the library's own kernel: any quantizations, either layout, exact ---------------------------------------------- */

typedef struct pool_impl {
    qk_pool kernel;
    qk_pool_quant quant;
} pool_impl;

enum { MAX_POOL_THREADS = 256 };

typedef struct pool_job {
    const pool_impl *impl;
    void *const *bufs; /* src, dst, scratch of all threads */
    size_t chunk;
} pool_job;

static void pool_chunk(int i, void *arg) {
    const pool_job *job = arg;
    const qk_pool *k = &job->impl->kernel;
    const size_t first = (size_t)i * job->chunk;
    if (first >= k->n_tasks) return;
    const size_t n = k->n_tasks - first < job->chunk ? k->n_tasks - first : job->chunk;
    qk_pool_run(k, &job->impl->quant, job->bufs[0], job->bufs[1], first, n,
                (char *)job->bufs[2] + (size_t)i * k->scratch_bytes);
}

static qdq_status pool_run(const void *impl, void *state, void *const *bufs, const qdq_engine *engine, qdq_error *err) {
    (void)state, (void)err;
    const pool_impl *p = impl;
    size_t threads = (size_t)qdqi_threads_for(engine, qk_pool_work(&p->kernel), QK_POOL_GRAIN);
    if (threads > p->kernel.n_tasks) threads = p->kernel.n_tasks;
    if (threads == 0) return QDQ_OK;
    pool_job job = {p, bufs, (p->kernel.n_tasks + threads - 1) / threads};
    qdqi_parallel(engine, (int)threads, pool_chunk, &job);
    return QDQ_OK;
}

static const qdqi_step_ops pool_ops = {.provider = "native", .run = pool_run, .impl_destroy = qdqi_free};

static qdq_status native_pool(qdqi_lower *lw, pool *p, qdq_error *err) {
    const qdqi_operand *a = &p->chain.operands[0];
    const qdqi_qparams *q = &p->chain.q;
    if (a->dq_op == QDQI_NONE || p->chain.q_op == QDQI_NONE || p->chain.n_links != 0)
        return qdqi_refuse(err, "native pool", "not_between_integers");
    if (q->half_away) return qdqi_refuse(err, "native pool", "rounds_differently");
    if (!qdqi_qparams_is_const_tensor(&a->q) || !qdqi_qparams_is_const_tensor(q))
        return qdqi_refuse(err, "native pool", "not_per_tensor_constant");
    qdq_tensor_desc src = qdqi_lower_val(lw, a->q_value)->desc;
    qdq_tensor_desc dst = qdqi_lower_val(lw, p->chain.out_value)->desc;
    qdq_tensor_desc last = src;
    qdqi_set_channels_last_by(&last, p->perm);
    pool_impl impl = {.kernel = {.is_max = !p->avg,
                                 .count_pad = p->params.alg == QDQI_DNNL_POOL_AVG_INCLUDE_PAD,
                                 .channels_last = qdqi_same_strides(&last, &src) || p->sp.nxc,
                                 .src = src.dtype,
                                 .dst = dst.dtype,
                                 .n = src.dims[p->perm[0]],
                                 .c = src.dims[p->perm[1]]}};
    qk_pool *k = &impl.kernel;
    for (int32_t i = 0; i < 3; i++) {
        const int32_t s = i - (3 - p->sp.n); /* unused axes come first */
        const bool used = s >= 0;
        k->in[i] = used ? src.dims[p->perm[2 + s]] : 1;
        k->out[i] = used ? dst.dims[p->perm[2 + s]] : 1;
        k->kernel[i] = used ? p->sp.kernel[s] : 1;
        k->stride[i] = used ? p->sp.strides[s] : 1;
        k->dilation[i] = used ? p->sp.dilations[s] : 1;
        k->pad_begin[i] = used ? p->sp.pads_begin[s] : 0;
        k->pad_end[i] = used ? p->sp.pads_end[s] : 0;
    }
    if (!qk_pool_init(k) || !qk_pool_quant_init(k, a->q.scales[0], qdqi_qparams_zp0(&a->q), q->scales[0],
                                                qdqi_qparams_zp0(q), !q->add_zp_after_rounding, &impl.quant))
        return qdqi_refuse(err, "native pool", "no_kernel");
    if (k->channels_last) {
        src = last;
        qdqi_set_channels_last_by(&dst, p->perm);
    } else {
        qdqi_set_dense(&src);
        qdqi_set_dense(&dst);
    }
    qdqi_buf bufs[3];
    const int most =
        lw->engine->options.n_threads < MAX_POOL_THREADS ? lw->engine->options.n_threads : MAX_POOL_THREADS;
    size_t scratch;
    if (__builtin_mul_overflow(k->scratch_bytes, (size_t)(most < 1 ? 1 : most), &scratch))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "pool scratch overflows");
    QDQI_TRY(qdqi_lower_read_as(lw, a->q_value, &src, &bufs[0], err));
    QDQI_TRY(qdqi_plan_temp(lw->plan, scratch, &bufs[2], err));
    QDQI_TRY(qdqi_lower_write(lw, p->chain.out_value, &dst, &bufs[1], err));
    pool_impl *kept = qdqi_malloc(sizeof *kept);
    if (kept == NULL) return QDQI_NO_MEMORY(err);
    *kept = impl;
    QDQI_TRY(qdqi_plan_step(lw->plan, &pool_ops, kept, bufs, 3, lw->part,
                            k->is_max ? "native max pool" : "native average pool", err));
    QDQI_TRY(qdqi_lower_written(lw, p->chain.out_value, err));
    return qdqi_chain_finish(lw, &p->chain, err);
}

static qdq_status set_spatial(pool *p, const qdq_tensor_desc *src, qdq_error *err) {
    QDQI_TRY(qdqi_op_spatial(p->op, src, NULL, &p->sp, err));
    const int32_t nd = src->ndims;
    if (nd < 3 || nd > 5) return qdqi_refuse(err, "pool", "rank");
    p->perm[0] = 0;
    p->perm[1] = p->sp.nxc ? nd - 1 : 1;
    for (int32_t i = 0; i < p->sp.n; i++)
        p->perm[2 + i] = p->sp.nxc ? 1 + i : 2 + i;
    return QDQ_OK;
}

qdq_status qdqi_lower_pool_integers(qdqi_lower *lw, const qdqi_op *op, uint32_t in, uint32_t out, const qdqi_qparams *q,
                                    qdq_error *err) {
    pool *p = qdqi_lower_scratch(lw, sizeof *p);
    if (p == NULL) return QDQI_NO_MEMORY(err);
    const uint32_t index = (uint32_t)(op - lw->graph->ops);
    p->op = op;
    p->params.alg = QDQI_DNNL_POOL_MAX;
    p->chain = (qdqi_chain){.root = index,
                            .q_op = index,
                            .scaled = QDQI_NONE,
                            .n_operands = 1,
                            .operands = {{.value = in, .dq_op = index, .q_value = in, .q = *q}},
                            .q = *q,
                            .out_value = out,
                            .final_value = out};
    QDQI_TRY(set_spatial(p, &qdqi_lower_val(lw, in)->desc, err));
    return native_pool(lw, p, err);
}

qdq_status qdqi_recipe_pool(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    pool *p = qdqi_lower_scratch(lw, sizeof *p);
    if (p == NULL) return QDQI_NO_MEMORY(err);
    QDQI_TRY(qdqi_chain_build(lw, part, &p->chain, err));
    p->op = &lw->graph->ops[part->root];
    const qdqi_operand *a = &p->chain.operands[0];
    const qdq_tensor_desc *whole = &qdqi_lower_val(lw, a->value)->desc;
    const bool global = p->op->kind == QDQI_OP_GLOBALAVERAGEPOOL || p->op->kind == QDQI_OP_GLOBALMAXPOOL;
    p->avg = p->op->kind == QDQI_OP_AVGPOOL || p->op->kind == QDQI_OP_GLOBALAVERAGEPOOL;
    QDQI_TRY(set_spatial(p, whole, err));
    const qdq_tensor_desc *out_desc = &qdqi_lower_val(lw, qdqi_chain_result(lw, &p->chain))->desc;
    bool pads = false, extra = false, empty_window = false, ceil_counted = false;
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
        empty_window = empty_window || p->params.pads_begin[i] >= reach || p->params.pads_end[i] >= reach;
    }
    p->params.alg = QDQI_DNNL_POOL_MAX;
    if (p->avg) {
        const bool exclude = global || qdqi_op_bool(p->op, QDQI_A_EXCLUDE_PAD);
        ceil_counted = extra && !exclude;
        p->params.alg = exclude ? QDQI_DNNL_POOL_AVG_EXCLUDE_PAD : QDQI_DNNL_POOL_AVG_INCLUDE_PAD;
    }
    /* oneDNN's average of channels-last bytes is 1.5 times as fast as the native one (8x64x56x56, 2x2s2: 136 against 211 us);
     * everywhere else the native kernel is the faster one, by up to 100 times in plain layout. */
    qdq_tensor_desc channels_last = qdqi_lower_val(lw, a->dq_op != QDQI_NONE ? a->q_value : a->value)->desc;
    const qdq_tensor_desc given = channels_last;
    qdqi_set_channels_last_by(&channels_last, p->perm);
    const bool onednn_first = p->avg && !global && !empty_window && !ceil_counted &&
                              qdqi_same_strides(&given, &channels_last) && why_not_int8(p, pads) == NULL;
    if (!onednn_first) {
        const qdqi_lower_point here = qdqi_lower_here(lw);
        const qdq_status native = native_pool(lw, p, err);
        if (native != QDQ_E_UNSUPPORTED) return native;
        qdqi_lower_undo(lw, here);
    }
    if (empty_window) return qdqi_refuse(err, "pool", "window_in_padding");
    if (ceil_counted) return qdqi_refuse(err, "pool", "ceil_mode_with_counted_padding");
    const char *why = why_not_int8(p, pads);
    p->int8 = why == NULL;
    if (!p->int8) {
        if (a->dq_op != QDQI_NONE) (void)qdqi_refuse(NULL, "pool int8", why);
        QDQI_TRY(qdqi_operand_as_float(lw, a, err));
    }
    const uint32_t src_value = p->int8 ? a->q_value : a->value;
    qdq_tensor_desc src = qdqi_lower_val(lw, src_value)->desc;
    if (!p->int8 && !qdqi_make_has_dtype(src.dtype)) return qdqi_refuse(err, "pool", "dtype");
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
    const qdqi_request request = {
        .kind = QDQI_MAKE_POOLING, .pool = &p->params, .src = &p->src_md, .dst = &p->dst, .attr = &p->attr};
    QDQI_TRY(qdqi_make(&request, &prim, err));
    if (qdqi_dnnl_prim_is_ref(prim) && p->int8) {
        qdqi_dnnl_prim_destroy(prim);
        return qdqi_refuse(err, "pool", "onednn_has_only_a_reference");
    }
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &p->args, src_value, &src, out, &layout, err));
    return qdqi_lower_links(lw, &p->chain, n_done, err); /* what did not fit */
}
