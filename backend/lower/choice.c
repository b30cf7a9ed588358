#include "lower/choice.h"

#include "base/dtype.h"
#include "kernels/isa/isa.h"
#include "lower/lower.h"
#include "lower/request.h"
#include "lower/single.h"
#include "native/native.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *onednn, *native; /* who refused */
} names[] = {
    [QDQI_MAKE_MATMUL] = {"onednn matmul", "native matmul"},
    [QDQI_MAKE_CONVOLUTION] = {"onednn convolution", "native convolution"},
    [QDQI_MAKE_POOLING] = {"onednn pooling", "native pooling"},
    [QDQI_MAKE_ELTWISE] = {"onednn eltwise", "native eltwise"},
    [QDQI_MAKE_BINARY] = {"onednn binary", "native binary"},
    [QDQI_MAKE_SOFTMAX] = {"onednn softmax", "native softmax"},
    [QDQI_MAKE_LAYERNORM] = {"onednn layernorm", "native layernorm"},
    [QDQI_MAKE_GROUPNORM] = {"onednn groupnorm", "native groupnorm"},
    [QDQI_MAKE_BATCHNORM] = {"onednn batchnorm", "native batchnorm"},
    [QDQI_MAKE_REDUCTION] = {"onednn reduction", "native reduction"},
    [QDQI_MAKE_RESAMPLING] = {"onednn resampling", "native resampling"},
    [QDQI_MAKE_CONCAT] = {"onednn concat", "native concat"},
    [QDQI_MAKE_REORDER] = {"onednn reorder", "native reorder"},
};

/* ---- where oneDNN 3.7.2 must not be asked ---- */

/* A batch of single rows times weights that all share: the zero point of the weights counts for the first row only. */
static bool is_shared_by_single_rows(const qdqi_request *r) {
    const qdqi_dnnl_md *a = r->src, *w = r->second;
    const int32_t nd = a->ndims;
    if (nd < 3 || w->ndims != nd || a->dims[nd - 2] != 1) return false;
    for (int32_t i = 0; i < nd - 2; i++)
        if (a->dims[i] > 1 && w->dims[i] == 1) return true;
    return false;
}

/* Some window has no element of its source along spatial dim i: all its taps are in the padding. */
static bool has_empty_window(const qdqi_request *r, int32_t i) {
    const qdqi_dnnl_conv *c = r->conv;
    const int64_t in = r->src->dims[2 + i], out = r->dst->dims[2 + i],
                  kernel = r->second->dims[r->second->ndims - c->n_spatial + i];
    const int64_t step = c->dilations[i] + 1;
    for (int64_t o = 0; o < out; o++) {
        int64_t at = o * c->strides[i] - c->pads_begin[i], tap = 0;
        if (at < 0) tap = (-at + step - 1) / step; /* the first tap that is not before the source */
        if (tap >= kernel || at + tap * step >= in) return true;
        if (at >= 0 && at + (kernel - 1) * step < in) { /* inside: so are the next, up to the end */
            const int64_t skip = (in - 1 - (kernel - 1) * step - at) / c->strides[i];
            if (skip > 0) o += skip;
        }
    }
    return false;
}

static const char *why_not_convolution(const qdqi_request *r) {
    const qdqi_dnnl_conv *c = r->conv;
    const qdqi_dnnl_md *w = r->second;
    const int32_t n = c->n_spatial, first = w->ndims - n;
    if (r->attr != NULL && r->attr->weights.has_zp) return "weights_zero_point";
    for (int32_t i = 0; i < n; i++) {
        const int64_t window = (w->dims[first + i] - 1) * (c->dilations[i] + 1) + 1;
        if (c->transposed && qdqi_is_x8(r->src->dtype) && window < c->strides[i]) return "windows_with_gaps";
        if (!c->transposed && (c->pads_begin[i] >= window || c->pads_end[i] >= window))
            return "window_in_padding_alone";
        if (!c->transposed && has_empty_window(r, i)) return "window_in_padding_alone";
    }
    if (!c->transposed && w->dims[first - 1] == 1 && c->strides[n - 1] > 1 && r->dst->dims[1 + n] == 1)
        return "one_channel_and_one_strided_column";
    if (!c->transposed && n == 3 && qdqi_is_x8(r->src->dtype) && w->dims[first - 1] == 1 && r->src->dims[2] == 1 &&
        w->dims[first] > 1)
        return "one_channel_and_one_plane";
    return NULL;
}

static const char *why_not_onednn(const qdqi_request *r) {
    if (r->kind != QDQI_MAKE_MATMUL && r->kind != QDQI_MAKE_CONVOLUTION) return NULL;
    const bool int8 = qdqi_is_x8(r->src->dtype) && qdqi_is_x8(r->second->dtype);
    if (int8 && !qdqi_dnnl_int8_exact()) return "isa_without_exact_int8";
    if (r->kind == QDQI_MAKE_CONVOLUTION) return why_not_convolution(r);
    if (r->attr != NULL && r->attr->weights.has_zp && is_shared_by_single_rows(r))
        return "zero_point_of_weights_shared_by_single_rows";
    return NULL;
}

/* ---- the candidates ---- */

static qdq_status try_onednn(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_available()) { /* said once per partition */
        if (qdqi_dnnl_jit_off())
            (void)qdqi_refuse(err, "onednn", "jit_off");
        else
            (void)qdqi_refuse(err, "onednn", "no_onednn");
        return QDQ_E_NO_ONEDNN;
    }
    const char *why = why_not_onednn(r);
    if (why != NULL) return qdqi_refuse(err, names[r->kind].onednn, why);
    const qdq_status st = qdqi_dnnl_create(r, out, err);
    if (qdqi_is_refusal(st)) (void)qdqi_refuse(NULL, names[r->kind].onednn, "not_implemented_by_onednn");
    return st;
}

static qdq_status try_native(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    const qdq_status st = qdqi_request_native(r, out, err);
    if (qdqi_is_refusal(st)) (void)qdqi_refuse(NULL, names[r->kind].native, qdqi_native_why());
    return st;
}

/* ---- the order ---- */

/* Milliardths of a second that both took, geometric mean of the class's shapes. */
typedef struct figure {
    qdqi_class class;
    qk_isa isa;
    double native_ns, onednn_ns;
} figure;

static const figure figures[] = {
#define CHOICE(name, level, native_ns, onednn_ns) {QDQI_CLASS_##name, QK_ISA_##level, native_ns, onednn_ns},
#include "lower/choice.def"
#undef CHOICE
    {QDQI_CLASS_other, QK_ISA_ref, 1, 1}, /* never measured */
};

/* Of the levels that are visible, the highest that was measured. NULL: none. */
static const figure *figure_of(qdqi_class class) {
    const figure *best = NULL;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (figures[i].class == class && class != QDQI_CLASS_other && qk_isa_has(figures[i].isa) &&
            (best == NULL || figures[i].isa > best->isa))
            best = &figures[i];
    return best;
}

/* Noise is no reason to leave the default. */
static bool is_native_first(const figure *f) {
    return f != NULL && f->native_ns < 0.95 * f->onednn_ns;
}

static void remark(qdqi_dnnl_prim *prim, const figure *f) {
    char text[96];
    if (f == NULL) return;
    if (is_native_first(f))
        snprintf(text, sizeof text, "native first: measured %.2fx in class %s", f->onednn_ns / f->native_ns,
                 qdqi_class_name(f->class));
    else
        snprintf(text, sizeof text, "oneDNN first: measured %.2fx in class %s", f->native_ns / f->onednn_ns,
                 qdqi_class_name(f->class));
    qdqi_dnnl_prim_remark(prim, text);
}

/* Why oneDNN's way is the last to take, or NULL. Its general int8 convolution unfolds the image for each group. */
static const char *why_slow(const qdqi_request *r, const qdqi_dnnl_prim *prim) {
    if (qdqi_dnnl_prim_is_ref(prim)) return "onednn_has_only_a_reference";
    if (r->kind == QDQI_MAKE_CONVOLUTION && qdqi_is_x8(r->src->dtype) &&
        strstr(qdqi_dnnl_prim_impl(prim), "gemm_") != NULL)
        return "onednn_unfolds_the_image";
    return NULL;
}

static qdq_status onednn_first(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    qdqi_dnnl_prim *slow = NULL;
    qdq_status st = try_onednn(r, out, err);
    const char *slowly = st == QDQ_OK ? why_slow(r, *out) : NULL;
    if (st == QDQ_OK && slowly == NULL) return QDQ_OK;
    if (st != QDQ_OK && !qdqi_is_refusal(st)) return st;
    if (st == QDQ_OK) slow = *out;
    st = try_native(r, out, slow == NULL ? err : NULL);
    if (slow == NULL) return st;
    if (st == QDQ_OK) {
        (void)qdqi_refuse(NULL, names[r->kind].onednn, slowly);
        qdqi_dnnl_prim_destroy(slow);
        return st;
    }
    if (qdqi_is_refusal(st)) {
        *out = slow;
        return QDQ_OK;
    }
    qdqi_dnnl_prim_destroy(slow);
    return st;
}

qdq_status qdqi_make(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err) {
    if (!qdqi_dnnl_available()) return onednn_first(r, out, err); /* which refuses, and is noted */
    const figure *f = figure_of(qdqi_request_class(r));
    if (!is_native_first(f)) {
        QDQI_TRY(onednn_first(r, out, err));
        if (!qdqi_dnnl_prim_is_native(*out)) remark(*out, f);
        return QDQ_OK;
    }
    const qdq_status st = try_native(r, out, NULL);
    if (qdqi_is_refusal(st)) return try_onednn(r, out, err);
    if (st == QDQ_OK) remark(*out, f);
    return st;
}

bool qdqi_make_has_dtype(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}
