/* Convolution, ConvTranspose, ConvInteger, QLinearConv in any number of spatial dims.
 *
 * Tiles of output points are gathered to rows of k = kernel position x input channel and multiplied with the packed weights of
 * the group (ref_gemm.h). Padding contributes 0: the source's zero point is taken off before. A transposed convolution is
 * the same sum over the source points that reach an output point. */
#include "ref/ref_fns.h"
#include "ref/ref_gemm.h"
#include "ref/ref_quant.h"

#include "base/checked.h"
#include "base/dtype.h"

#include <math.h>

typedef struct conv {
    qdqi_spatial sp;
    bool transposed;
    int64_t n, ic, oc, ic_group, oc_group; /* per group */
    int64_t n_kernel, n_points;            /* kernel positions, output points of one image */
    int64_t src_dims[QDQ_MAX_NDIMS], dst_dims[QDQ_MAX_NDIMS];
    int64_t src_strides[QDQ_MAX_NDIMS], wei_strides[QDQ_MAX_NDIMS];
    int64_t src_n, src_c, dst_n, dst_c, dst_point; /* strides */
    int64_t wei_oc, wei_ic;
    const float *src_f, *wei_f;
    const int32_t *src_q, *wei_q;
    int64_t src_zp;
    const int64_t *wei_zp;
    int64_t wei_zp_stride; /* per output channel */
    double *rows, *panels;
    /* results */
    void (*emit)(const struct conv *k, int64_t at, int64_t oc, double acc);
    const float *bias;
    const int32_t *bias_q;
    float *dst_f;
    int32_t *dst_q;
    const float *sw, *sx, *sy;
    int64_t sw_stride, zp, lo, hi;
} conv;

static qdq_status conv_init(qdqi_ref_ctx *c, conv *k, uint32_t wei_port, bool transposed) {
    const qdq_tensor_desc *src = c->in[0].desc, *wei = c->in[wei_port].desc, *dst = c->out[0].desc;
    int64_t s[QDQ_MAX_NDIMS], d[QDQ_MAX_NDIMS], w[QDQ_MAX_NDIMS];
    QDQI_TRY(qdqi_op_spatial(c->op, src, wei, &k->sp, c->err));
    qdqi_dense_strides(src->ndims, src->dims, s);
    qdqi_dense_strides(dst->ndims, dst->dims, d);
    qdqi_dense_strides(wei->ndims, wei->dims, w);
    const int32_t first = k->sp.nxc ? 1 : 2, ch = k->sp.nxc ? src->ndims - 1 : 1;
    k->transposed = transposed;
    k->n = dst->dims[0];
    k->ic = src->dims[ch];
    k->oc = dst->dims[ch];
    k->ic_group = k->ic / k->sp.groups;
    k->oc_group = k->oc / k->sp.groups;
    k->src_n = s[0];
    k->src_c = s[ch];
    k->dst_n = d[0];
    k->dst_c = d[ch];
    k->dst_point = k->sp.nxc ? d[ch - 1] : 1;
    k->wei_oc = w[k->sp.w_oc_dim];
    k->wei_ic = w[k->sp.w_ic_dim];
    k->n_kernel = k->n_points = 1;
    for (int32_t i = 0; i < k->sp.n; i++) {
        k->src_dims[i] = src->dims[first + i];
        k->dst_dims[i] = dst->dims[first + i];
        k->src_strides[i] = s[first + i];
        k->wei_strides[i] = w[k->sp.w_sp_dim + i];
        k->n_kernel *= k->sp.kernel[i];
        k->n_points *= k->dst_dims[i];
    }
    int64_t n_panels = (k->oc_group + QDQI_REF_NR - 1) / QDQI_REF_NR, terms, n_rows, n_weights;
    if (!qdqi_mul_i64(k->n_kernel, k->ic_group, &terms) || !qdqi_mul_i64(terms, QDQI_REF_MR, &n_rows) ||
        !qdqi_mul_i64(terms, n_panels * QDQI_REF_NR, &n_weights))
        return qdqi_ref_fail(c, QDQ_E_OVERFLOW, "%lld terms per point do not fit", (long long)k->n_kernel);
    k->rows = qdqi_ref_temp(c, n_rows, sizeof *k->rows);
    k->panels = qdqi_ref_temp(c, n_weights, sizeof *k->panels);
    return QDQ_OK;
}

/* Weights of a group to panels: [output channels by NR][kernel position][input channel][NR]. */
static void pack_weights(const conv *k, int64_t group) {
    double *to = k->panels;
    const int64_t terms = k->n_kernel * k->ic_group;
    for (int64_t o = 0; o < k->oc_group; o += QDQI_REF_NR) {
        for (int64_t j = 0; j < QDQI_REF_NR; j++) {
            double *lane = to + j;
            if (o + j >= k->oc_group) {
                for (int64_t i = 0; i < terms; i++)
                    lane[i * QDQI_REF_NR] = 0.0;
                continue;
            }
            const int64_t oc = group * k->oc_group + o + j;
            const int64_t base = k->transposed ? (o + j) * k->wei_oc + group * k->ic_group * k->wei_ic : oc * k->wei_oc;
            const int64_t zp = k->wei_zp == NULL ? 0 : k->wei_zp[oc * k->wei_zp_stride];
            qdqi_ref_rows r;
            qdqi_ref_rows_init(&r, k->sp.n, k->sp.kernel);
            qdqi_ref_rows_add(&r, k->sp.n, k->wei_strides);
            for (; qdqi_ref_row_ok(&r); qdqi_ref_row_next(&r)) {
                for (int64_t x = 0; x < r.n; x++) {
                    const int64_t at = base + r.off[0] + x * r.step[0];
                    for (int64_t i = 0; i < k->ic_group; i++, lane += QDQI_REF_NR)
                        *lane = k->wei_f != NULL ? (double)k->wei_f[at + i * k->wei_ic]
                                                 : (double)(k->wei_q[at + i * k->wei_ic] - zp);
                }
            }
        }
        to += terms * QDQI_REF_NR;
    }
}

/* Source coordinate that output coordinate `o` meets at kernel coordinate `x` of dim d, or -1. */
static int64_t source_at(const conv *k, int32_t d, int64_t o, int64_t x) {
    int64_t i;
    if (k->transposed) {
        const int64_t t = o + k->sp.pads_begin[d] - x * k->sp.dilations[d];
        if (t < 0 || t % k->sp.strides[d] != 0) return -1;
        i = t / k->sp.strides[d];
    } else {
        i = o * k->sp.strides[d] - k->sp.pads_begin[d] + x * k->sp.dilations[d];
    }
    return i >= 0 && i < k->src_dims[d] ? i : -1;
}

/* Gather the terms of output points [point, point + MR) of one image and group. */
static void gather_rows(const conv *k, int64_t image, int64_t group, int64_t point) {
    int64_t out[QDQI_REF_MR][QDQ_MAX_NDIMS], x[QDQ_MAX_NDIMS] = {0}, off[QDQI_REF_MR];
    const int64_t base = image * k->src_n + group * k->ic_group * k->src_c;
    for (int64_t p = 0; p < QDQI_REF_MR; p++) {
        int64_t rest = point + p;
        for (int32_t d = k->sp.n - 1; d >= 0; d--) {
            out[p][d] = rest % k->dst_dims[d];
            rest /= k->dst_dims[d];
        }
    }
    double *to = k->rows;
    for (int64_t pos = 0; pos < k->n_kernel; pos++) {
        for (int64_t p = 0; p < QDQI_REF_MR; p++) {
            off[p] = point + p < k->n_points ? base : -1;
            for (int32_t d = 0; d < k->sp.n && off[p] >= 0; d++) {
                const int64_t i = source_at(k, d, out[p][d], x[d]);
                off[p] = i < 0 ? -1 : off[p] + i * k->src_strides[d];
            }
        }
        for (int64_t i = 0; i < k->ic_group; i++, to += QDQI_REF_MR)
            for (int64_t p = 0; p < QDQI_REF_MR; p++) {
                const int64_t at = off[p] + i * k->src_c;
                to[p] = off[p] < 0 ? 0.0 : k->src_f != NULL ? (double)k->src_f[at] : (double)(k->src_q[at] - k->src_zp);
            }
        for (int32_t d = k->sp.n - 1; d >= 0 && ++x[d] == k->sp.kernel[d]; d--)
            x[d] = 0;
    }
}

static void conv_run(const conv *k) {
    double acc[QDQI_REF_MR][QDQI_REF_NR];
    const int64_t terms = k->n_kernel * k->ic_group;
    if (k->n == 0 || k->oc_group == 0 || k->n_points == 0) return;
    for (int64_t group = 0; group < k->sp.groups; group++) {
        pack_weights(k, group);
        for (int64_t image = 0; image < k->n; image++) {
            for (int64_t point = 0; point < k->n_points; point += QDQI_REF_MR) {
                gather_rows(k, image, group, point);
                for (int64_t o = 0; o < k->oc_group; o += QDQI_REF_NR) {
                    qdqi_ref_gemm_tile(terms, k->rows, k->panels + o * terms, acc);
                    for (int64_t j = 0; j < QDQI_REF_NR && o + j < k->oc_group; j++) {
                        const int64_t oc = group * k->oc_group + o + j;
                        const int64_t at = image * k->dst_n + oc * k->dst_c + point * k->dst_point;
                        for (int64_t p = 0; p < QDQI_REF_MR && point + p < k->n_points; p++)
                            k->emit(k, at + p * k->dst_point, oc, acc[p][j]);
                    }
                }
            }
        }
    }
}

static void emit_float(const conv *k, int64_t at, int64_t oc, double acc) {
    k->dst_f[at] = (float)(k->bias == NULL ? acc : acc + (double)k->bias[oc]);
}

static void emit_s32(const conv *k, int64_t at, int64_t oc, double acc) {
    (void)oc;
    k->dst_q[at] = qdqi_ref_sat(acc, INT32_MIN, INT32_MAX, 0);
}

static void emit_requantized(const conv *k, int64_t at, int64_t oc, double acc) {
    if (k->bias_q != NULL) acc += (double)k->bias_q[oc];
    const double real = acc * (double)*k->sx * (double)k->sw[oc * k->sw_stride];
    k->dst_q[at] = qdqi_ref_sat(rint(real / (double)*k->sy) + (double)k->zp, k->lo, k->hi, k->zp);
}

static qdq_status float_conv(qdqi_ref_ctx *c, bool transposed) {
    conv k = {.emit = emit_float};
    QDQI_TRY(conv_init(c, &k, 1, transposed));
    k.src_f = qdqi_ref_in_f32(c, 0);
    k.wei_f = qdqi_ref_in_f32(c, 1);
    k.bias = qdqi_ref_in_f32(c, 2);
    k.dst_f = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    if (k.bias != NULL && qdqi_n_elems(c->in[2].desc) != k.oc)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "bias has %lld values, expected %lld",
                             (long long)qdqi_n_elems(c->in[2].desc), (long long)k.oc);
    conv_run(&k);
    return QDQ_OK;
}

qdq_status qdqi_ref_conv(qdqi_ref_ctx *c) {
    return float_conv(c, false);
}

qdq_status qdqi_ref_convtranspose(qdqi_ref_ctx *c) {
    return float_conv(c, true);
}

/* One value, or one per output channel where `per_oc`. */
static qdq_status channel_stride(qdqi_ref_ctx *c, uint32_t port, int64_t oc, bool per_oc, int64_t *stride_out) {
    const int64_t n = qdqi_ref_has_in(c, port) ? qdqi_n_elems(c->in[port].desc) : 1;
    *stride_out = n == 1 ? 0 : 1;
    if (n == 1 || (per_oc && n == oc)) return QDQ_OK;
    return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u has %lld values, expected %lld", port, (long long)n,
                         (long long)(per_oc ? oc : 1));
}

qdq_status qdqi_ref_convinteger(qdqi_ref_ctx *c) {
    conv k = {.emit = emit_s32};
    int64_t one;
    QDQI_TRY(conv_init(c, &k, 1, false));
    k.src_q = qdqi_ref_in_i32(c, 0);
    k.wei_q = qdqi_ref_in_i32(c, 1);
    const int64_t *src_zp = qdqi_ref_in_i64(c, 2);
    k.wei_zp = qdqi_ref_in_i64(c, 3);
    k.dst_q = qdqi_ref_out_i32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(channel_stride(c, 2, k.oc, false, &one));
    QDQI_TRY(channel_stride(c, 3, k.oc, true, &k.wei_zp_stride));
    k.src_zp = src_zp == NULL ? 0 : *src_zp;
    conv_run(&k);
    return QDQ_OK;
}

qdq_status qdqi_ref_qlinearconv(qdqi_ref_ctx *c) {
    const qdq_dtype dtype = c->out[0].desc->dtype;
    conv k = {.emit = emit_requantized, .lo = qdqi_dtype_min(dtype), .hi = qdqi_dtype_max(dtype)};
    int64_t one;
    QDQI_TRY(conv_init(c, &k, 3, false));
    k.src_q = qdqi_ref_in_i32(c, 0);
    k.sx = qdqi_ref_in_f32(c, 1);
    const int64_t *src_zp = qdqi_ref_in_i64(c, 2);
    k.wei_q = qdqi_ref_in_i32(c, 3);
    k.sw = qdqi_ref_in_f32(c, 4);
    k.wei_zp = qdqi_ref_in_i64(c, 5);
    k.sy = qdqi_ref_in_f32(c, 6);
    const int64_t *dst_zp = qdqi_ref_in_i64(c, 7);
    k.bias_q = qdqi_ref_in_i32(c, 8);
    k.dst_q = qdqi_ref_out_i32(c, 0);
    QDQI_REF_READY(c);
    for (uint32_t port = 1; port <= 7; port++)
        if (port != 3 && port != 4 && port != 5) QDQI_TRY(channel_stride(c, port, k.oc, false, &one));
    QDQI_TRY(channel_stride(c, 4, k.oc, true, &k.sw_stride));
    QDQI_TRY(channel_stride(c, 5, k.oc, true, &k.wei_zp_stride));
    if (k.bias_q != NULL && qdqi_n_elems(c->in[8].desc) != k.oc)
        return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "bias has %lld values, expected %lld",
                             (long long)qdqi_n_elems(c->in[8].desc), (long long)k.oc);
    if (!isfinite(*k.sy) || *k.sy == 0.0f) return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "y_scale is %g", (double)*k.sy);
    k.src_zp = src_zp == NULL ? 0 : *src_zp;
    k.zp = dst_zp == NULL ? 0 : *dst_zp;
    conv_run(&k);
    return QDQ_OK;
}
