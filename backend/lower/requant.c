#include "lower/requant.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

static bool is_relu(const qdqi_lower *lw, const qdqi_link *link) {
    return !link->binary && lw->graph->ops[link->op].kind == QDQI_OP_RELU;
}

static bool is_residual(qdqi_lower *lw, const qdqi_chain *chain, const qdqi_link *link) {
    const qdqi_operand *o = &link->other;
    return link->binary && !link->self && link->alg == QDQI_DNNL_BIN_ADD && o->dq_op != QDQI_NONE &&
           qdqi_qparams_is_const_tensor(&o->q) && qdqi_qparams_positive(&o->q) &&
           (o->q.stored == QDQ_DTYPE_U8 || o->q.stored == QDQ_DTYPE_S8) &&
           qdqi_lower_val(lw, o->q_value)->data == NULL &&
           qdqi_same_dims(&qdqi_lower_val(lw, o->q_value)->desc, &qdqi_lower_val(lw, chain->out_value)->desc);
}

/* The links that the formula covers: [relu] [residual [relu]]; a relu before a residual is in other units, so it comes first or last. */
static const char *why_not(qdqi_lower *lw, const qdqi_chain *chain, int32_t *residual) {
    *residual = -1;
    if (chain->q_op == QDQI_NONE || chain->truncated) return "not_quantized_after";
    if (!qdqi_qparams_is_const_tensor(&chain->q) || !qdqi_qparams_positive(&chain->q))
        return "dst_not_per_tensor_constant";
    if (chain->q.stored != QDQ_DTYPE_U8 && chain->q.stored != QDQ_DTYPE_S8) return "dst_dtype";
    if (chain->q.real != QDQ_DTYPE_F32) return "dst_float_dtype";
    if (chain->operands[0].q.scales == NULL || chain->operands[1].q.scales == NULL) return "runtime_scales";
    if (!qdqi_qparams_positive(&chain->operands[0].q) || !qdqi_qparams_positive(&chain->operands[1].q))
        return "scale_not_positive";
    for (uint32_t i = 0; i < chain->n_links; i++) {
        if (is_relu(lw, &chain->links[i])) continue;
        if (!is_residual(lw, chain, &chain->links[i]) || *residual >= 0) return "other_ops_in_the_chain";
        *residual = (int32_t)i;
    }
    return NULL;
}

/* Constant bias as f64 real values. */
static const double *real_bias(qdqi_lower *lw, const qdqi_operand *bias, int64_t n, int64_t *n_out, qdq_error *err,
                               qdq_status *st) {
    const bool dq = bias->dq_op != QDQI_NONE;
    const qdqi_lval *lv = qdqi_lower_val(lw, dq ? bias->q_value : bias->value);
    *n_out = qdqi_n_elems(&lv->desc);
    *st = QDQ_OK;
    if (lv->data == NULL || !qdqi_is_dense(&lv->desc) || *n_out != n) return NULL;
    if (dq && (bias->q.scales == NULL || bias->q.zp_value != QDQI_NONE || bias->q.gran == QDQI_GRAN_GROUP)) return NULL;
    double *values = qdqi_arena_alloc(&lw->arena, (size_t)(n < 1 ? 1 : n), sizeof *values);
    if (values == NULL) {
        *st = QDQI_NO_MEMORY(err);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = qdqi_load_f64(lv->data, lv->desc.dtype, i);
        if (!dq) continue;
        const int64_t k = bias->q.n == 1 ? 0 : i;
        if (bias->q.zps != NULL) values[i] -= bias->q.zps[k];
        values[i] *= (double)bias->q.scales[k];
    }
    return values;
}

/* The bias' own scale is s_src * s_wei in every channel (to the last bit or two: tools compute it in f32 or f64). */
static bool bias_in_accumulator_units(const qdqi_chain *chain, int64_t n) {
    const qdqi_operand *bias = &chain->operands[2];
    const qdqi_qparams *a = &chain->operands[0].q, *w = &chain->operands[1].q;
    if (bias->dq_op == QDQI_NONE || bias->q.stored != QDQ_DTYPE_S32 || bias->q.zps != NULL) return false;
    for (int64_t i = 0; i < n; i++) {
        const double want = (double)a->scales[0] * (double)w->scales[w->n == 1 ? 0 : i];
        const double got = (double)bias->q.scales[bias->q.n == 1 ? 0 : i];
        if (fabs(got - want) > want * 0x1p-22) return false;
    }
    return true;
}

qdq_status qdqi_requant_plan(qdqi_lower *lw, const qdqi_chain *chain, int64_t n_channels, qdqi_requant *r,
                             qdq_error *err) {
    *r = (qdqi_requant){.bias_dtype = QDQ_DTYPE_UNDEF, .residual = -1};
    const char *why = why_not(lw, chain, &r->residual);
    const qdqi_qparams *a = &chain->operands[0].q, *w = &chain->operands[1].q;
    if (why == NULL && w->n != 1 && w->n != n_channels) why = "scales_of_grouped_channels";
    if (why != NULL) {
        (void)qdqi_refuse(NULL, "requantize in one step", why);
        return QDQ_OK;
    }
    const double unit = (double)(r->residual >= 0 ? chain->links[r->residual].other.q.scales[0] : chain->q.scales[0]);
    float *scales = qdqi_arena_alloc(&lw->arena, (size_t)w->n, sizeof *scales);
    if (scales == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < w->n; i++) {
        scales[i] = (float)((double)a->scales[0] * (double)w->scales[i] / unit);
        if (!isfinite(scales[i]) || scales[i] < 0x1p-126f) return QDQ_OK;
    }
    r->scales = scales;
    r->n_scales = w->n;
    if (chain->n_operands > 2 && chain->operands[2].value != QDQI_NONE) {
        const qdqi_operand *bias = &chain->operands[2];
        qdq_status st;
        const double *real = real_bias(lw, bias, n_channels, &r->n_bias, err, &st);
        QDQI_TRY(st);
        if (real == NULL) return QDQ_OK; /* a runtime bias, or another shape */
        if (bias_in_accumulator_units(chain, n_channels)) {
            r->bias_dtype = QDQ_DTYPE_S32;
            r->bias = qdqi_lower_val(lw, bias->q_value)->data;
            r->scale_after_bias = true;
        } else {
            float *scaled = qdqi_arena_alloc(&lw->arena, (size_t)(n_channels < 1 ? 1 : n_channels), sizeof *scaled);
            if (scaled == NULL) return QDQI_NO_MEMORY(err);
            for (int64_t i = 0; i < n_channels; i++)
                scaled[i] = (float)(real[i] / unit);
            r->bias_dtype = QDQ_DTYPE_F32;
            r->bias = scaled;
        }
    }
    r->on = true;
    return QDQ_OK;
}

static void eltwise(qdqi_posts *p, qdqi_dnnl_alg alg, float alpha, float beta) {
    p->attr->posts[p->attr->n_posts++] = (qdqi_dnnl_post){.alg = alg, .alpha = alpha, .beta = beta};
}

qdq_status qdqi_requant_posts(qdqi_lower *lw, qdqi_posts *p, const qdqi_chain *chain, const qdqi_requant *r,
                              int32_t channel_axis, qdq_error *err) {
    const qdqi_qparams *q = &chain->q;
    qdqi_buf buf;
    if (r->scale_after_bias)
        QDQI_TRY(qdqi_posts_channel(lw, p, QDQI_DNNL_BIN_MUL, r->scales, r->n_scales, channel_axis, err));
    bool relu_last = false;
    for (uint32_t i = 0; i < chain->n_links; i++) {
        const qdqi_link *link = &chain->links[i];
        if ((int32_t)i !=
            r->residual) { /* relu commutes with the positive factors, so where it stands among them is free */
            if (!relu_last) eltwise(p, QDQI_DNNL_ELT_RELU, 0.0f, 0.0f);
            relu_last = true;
            continue;
        }
        relu_last = false;
        const double unit = (double)link->other.q.scales[0], out = (double)q->scales[0];
        QDQI_TRY(qdqi_posts_operand(lw, p, QDQI_DNNL_BIN_ADD, link->other.q_value, err));
        const double ratio = unit / out;
        if (ratio != 1.0 || qdqi_qparams_zp0(&link->other.q) != 0)
            eltwise(p, QDQI_DNNL_ELT_LINEAR, (float)ratio, (float)(-ratio * qdqi_qparams_zp0(&link->other.q)));
    }
    if (q->has_zp) {
        if (q->add_zp_after_rounding) eltwise(p, QDQI_DNNL_ELT_ROUND, 0.0f, 0.0f);
        QDQI_TRY(qdqi_qparams_zp_buf(lw, q, 0, &buf, err));
        p->attr->dst.has_zp = true;
        p->attr->dst.zp_dtype = QDQ_DTYPE_S32;
        qdqi_args_add(p->args, QDQI_DNNL_ZP_DST, buf);
    }
    return QDQ_OK;
}
