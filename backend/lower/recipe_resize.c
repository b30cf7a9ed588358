/* [dq] - Interpolate|Resize (linear) - [q]   ->   one native interpolation, on the integers where there are any. */
#include "base/dtype.h"
#include "lower/single.h"
#include "native/native.h"
#include "ref/ref_resize.h"

#include <string.h>

typedef struct resize {
    const qdqi_op *op;
    qdqi_chain chain;
    qdq_tensor_desc src, layout;
    qdqi_dnnl_md src_md, dst_md;
    qdqi_dnnl_attr attr;
    qdqi_args args;
    qdqi_native_taps taps[QDQ_MAX_NDIMS];
} resize;

/* Content of Resize's scales; NULL when there are none. */
static qdq_status scales_of(qdqi_lower *lw, const qdqi_op *op, const float **out, qdq_error *err) {
    *out = NULL;
    if (op->kind != QDQI_OP_RESIZE || op->n_in < 3 || op->in[2] == QDQI_NONE) return QDQ_OK;
    const qdqi_lval *lv = qdqi_lower_val(lw, op->in[2]);
    if (qdqi_n_elems(&lv->desc) == 0) return QDQ_OK;
    if (lv->data == NULL || lv->desc.dtype != QDQ_DTYPE_F32 || !qdqi_is_dense(&lv->desc))
        return qdqi_refuse(err, "resize", "runtime_bounds");
    *out = lv->data;
    return QDQ_OK;
}

static qdq_status find_taps(qdqi_lower *lw, resize *m, qdq_error *err) {
    const float *scales;
    QDQI_TRY(scales_of(lw, m->op, &scales, err));
    for (int32_t d = 0; d < m->src.ndims; d++) {
        const int64_t n = m->layout.dims[d];
        qdqi_ref_tap *taps = qdqi_arena_alloc(&lw->arena, (size_t)n, sizeof *taps);
        int32_t *lo = qdqi_arena_alloc(&lw->arena, (size_t)n, 2 * sizeof *lo);
        float *w = qdqi_arena_alloc(&lw->arena, (size_t)n, sizeof *w);
        bool moves;
        if (taps == NULL || lo == NULL || w == NULL) return QDQI_NO_MEMORY(err);
        if (m->src.dims[d] > INT32_MAX) return qdqi_refuse(err, "resize", "size");
        if (qdqi_ref_resize_taps(m->op, &m->src, &m->layout, scales, d, taps, &moves) != QDQ_OK)
            return qdqi_refuse(err, "resize", "shape"); /* the reference has the words for it */
        if (!moves) continue;
        for (int64_t i = 0; i < n; i++) {
            lo[i] = (int32_t)taps[i].lo;
            lo[n + i] = (int32_t)taps[i].hi;
            w[i] = (float)taps[i].w;
        }
        m->taps[d] = (qdqi_native_taps){lo, lo + n, w};
    }
    return QDQ_OK;
}

/* Channels-last stays what it is; every other layout becomes row-major. */
static void set_layouts(qdq_tensor_desc *src, qdq_tensor_desc *dst) {
    qdq_tensor_desc last = *src;
    qdqi_set_channels_last(&last);
    if (!qdqi_is_dense(src) && qdqi_same_strides(&last, src)) {
        qdqi_set_channels_last(dst);
        return;
    }
    qdqi_set_dense(src);
    qdqi_set_dense(dst);
}

qdq_status qdqi_recipe_resize(qdqi_lower *lw, const qdqi_part *part, qdq_error *err) {
    resize *m = qdqi_lower_scratch(lw, sizeof *m);
    if (m == NULL) return QDQI_NO_MEMORY(err);
    m->op = &lw->graph->ops[part->root];
    if (m->op->kind != QDQI_OP_INTERPOLATE && m->op->kind != QDQI_OP_RESIZE) return QDQ_E_UNSUPPORTED;
    if (qdqi_op_str_is(m->op, QDQI_A_MODE, "nearest")) return qdqi_refuse(err, "resize", "mode");
    QDQI_TRY(qdqi_chain_build(lw, part, &m->chain, err));
    uint32_t from;
    QDQI_TRY(qdqi_read_integers(lw, &m->chain.operands[0], &m->attr, &m->args, &from, err));
    m->src = qdqi_lower_val(lw, from)->desc;
    m->layout = qdqi_lower_val(lw, m->op->out[0])->desc;
    if (m->src.ndims == 0 || m->src.ndims != m->layout.ndims) return qdqi_refuse(err, "resize", "rank");
    set_layouts(&m->src, &m->layout);
    QDQI_TRY(find_taps(lw, m, err));
    qdqi_md_of(&m->src, &m->src_md);
    qdqi_md_of(&m->layout, &m->dst_md);
    uint32_t out = m->op->out[0];
    if (m->chain.n_links == 0 && !m->chain.truncated && m->chain.q_op != QDQI_NONE &&
        m->chain.q.gran == QDQI_GRAN_TENSOR && qdqi_is_x8(m->chain.q.stored)) {
        qdqi_posts posts = {.attr = &m->attr, .args = &m->args, .full = &m->layout, .dst = &m->layout};
        QDQI_TRY(qdqi_posts_quantize(lw, &posts, &m->chain.q, true, err));
        out = m->chain.out_value;
    }
    m->dst_md.dtype = qdqi_lower_val(lw, out)->desc.dtype;
    qdqi_dnnl_prim *prim;
    const qdq_status st = qdqi_native_interpolation(m->taps, &m->src_md, &m->dst_md, &m->attr, &prim, err);
    if (st == QDQ_E_UNSUPPORTED) return qdqi_refuse(err, "native resampling", qdqi_native_why());
    QDQI_TRY(st);
    QDQI_TRY(qdqi_finish_unary_prim(lw, prim, &m->args, from, &m->src, out, &m->layout, err));
    return qdqi_lower_links(lw, &m->chain, 0, err);
}
