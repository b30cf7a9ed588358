/* MaxPool, AvgPool, the global pools, LRN.
 *
 * A window that holds no source point at all (ceil rounding can make one) gives 0 for an average and the lowest finite value of
 * the type for a maximum. An average that counts padding counts the points of the declared pads, not the overhang of
 * ceil rounding. A NaN never wins a maximum. */
#include "ref/ref_fns.h"

#include "base/dtype.h"

#include <float.h>
#include <math.h>

typedef struct pool {
    qdqi_spatial sp;
    int64_t n, channels, n_points;
    int64_t src_dims[QDQ_MAX_NDIMS], dst_dims[QDQ_MAX_NDIMS], src_strides[QDQ_MAX_NDIMS];
    int64_t src_n, src_c, dst_n, dst_c, dst_point;
} pool;

static qdq_status pool_init(qdqi_ref_ctx *c, pool *p) {
    const qdq_tensor_desc *src = c->in[0].desc, *dst = c->out[0].desc;
    int64_t s[QDQ_MAX_NDIMS], d[QDQ_MAX_NDIMS];
    QDQI_TRY(qdqi_op_spatial(c->op, src, NULL, &p->sp, c->err));
    qdqi_dense_strides(src->ndims, src->dims, s);
    qdqi_dense_strides(dst->ndims, dst->dims, d);
    const int32_t first = p->sp.nxc ? 1 : 2, ch = p->sp.nxc ? src->ndims - 1 : 1;
    p->n = dst->dims[0];
    p->channels = dst->dims[ch];
    p->src_n = s[0];
    p->src_c = s[ch];
    p->dst_n = d[0];
    p->dst_c = d[ch];
    p->dst_point = p->sp.nxc ? d[ch - 1] : 1;
    p->n_points = 1;
    for (int32_t i = 0; i < p->sp.n; i++) {
        p->src_dims[i] = src->dims[first + i];
        p->dst_dims[i] = dst->dims[first + i];
        p->src_strides[i] = s[first + i];
        p->n_points *= p->dst_dims[i];
    }
    return QDQ_OK;
}

/* Offsets of the source points of one window into `off`; the number of them, and of declared pad points with them. */
static int64_t window_of(const pool *p, int64_t point, int64_t *off, int64_t *n_padded_out) {
    int64_t at[QDQ_MAX_NDIMS], x[QDQ_MAX_NDIMS] = {0}, n = 0, n_kernel = 1, n_padded = 0;
    for (int32_t d = p->sp.n - 1; d >= 0; d--) {
        at[d] = point % p->dst_dims[d] * p->sp.strides[d] - p->sp.pads_begin[d];
        point /= p->dst_dims[d];
        n_kernel *= p->sp.kernel[d];
    }
    for (int64_t k = 0; k < n_kernel; k++) {
        bool inside = true, padded = true;
        int64_t o = 0;
        for (int32_t d = 0; d < p->sp.n; d++) {
            const int64_t i = at[d] + x[d] * p->sp.dilations[d];
            inside = inside && i >= 0 && i < p->src_dims[d];
            padded = padded && i >= -p->sp.pads_begin[d] && i < p->src_dims[d] + p->sp.pads_end[d];
            o += i * p->src_strides[d];
        }
        if (inside) off[n++] = o;
        n_padded += padded;
        for (int32_t d = p->sp.n - 1; d >= 0 && ++x[d] == p->sp.kernel[d]; d--)
            x[d] = 0;
    }
    *n_padded_out = n_padded;
    return n;
}

static int64_t kernel_points(const pool *p) {
    int64_t n = 1;
    for (int32_t d = 0; d < p->sp.n; d++)
        n *= p->sp.kernel[d] < p->src_dims[d] ? p->sp.kernel[d] : p->src_dims[d];
    return n;
}

qdq_status qdqi_ref_avgpool(qdqi_ref_ctx *c) {
    pool p;
    QDQI_TRY(pool_init(c, &p));
    const float *src = qdqi_ref_in_f32(c, 0);
    float *dst = qdqi_ref_out_f32(c, 0);
    int64_t *off = qdqi_ref_temp(c, kernel_points(&p), sizeof *off);
    QDQI_REF_READY(c);
    const bool exclude = qdqi_op_bool(c->op, QDQI_A_EXCLUDE_PAD);
    if (p.n == 0 || p.channels == 0) return QDQ_OK;
    for (int64_t point = 0; point < p.n_points; point++) {
        int64_t n_padded;
        const int64_t n = window_of(&p, point, off, &n_padded);
        const int64_t count = exclude ? n : n_padded;
        for (int64_t i = 0; i < p.n; i++)
            for (int64_t ch = 0; ch < p.channels; ch++) {
                const float *from = src + i * p.src_n + ch * p.src_c;
                double sum = 0.0;
                for (int64_t k = 0; k < n; k++)
                    sum += (double)from[off[k]];
                dst[i * p.dst_n + ch * p.dst_c + point * p.dst_point] = n == 0 ? 0.0f : (float)(sum / (double)count);
            }
    }
    return QDQ_OK;
}

static float lowest(qdq_dtype dtype) {
    if (dtype == QDQ_DTYPE_F16) return -65504.0f;
    if (dtype == QDQ_DTYPE_BF16) return qdqi_f32_of_bf16(0xff7f);
    return -FLT_MAX;
}

#define MAX_POOL(type, name)                                                                                           \
    static void name(const pool *p, const type *src, type *dst, int64_t *off, type least, type start) {                \
        if (p->n == 0 || p->channels == 0) return;                                                                     \
        for (int64_t point = 0; point < p->n_points; point++) {                                                        \
            int64_t n_padded;                                                                                          \
            const int64_t n = window_of(p, point, off, &n_padded);                                                     \
            for (int64_t i = 0; i < p->n; i++)                                                                         \
                for (int64_t ch = 0; ch < p->channels; ch++) {                                                         \
                    const type *from = src + i * p->src_n + ch * p->src_c;                                             \
                    type best = n == 0 ? least : start;                                                                \
                    for (int64_t k = 0; k < n; k++)                                                                    \
                        if (from[off[k]] > best) best = from[off[k]];                                                  \
                    dst[i * p->dst_n + ch * p->dst_c + point * p->dst_point] = best;                                   \
                }                                                                                                      \
        }                                                                                                              \
    }
MAX_POOL(float, max_pool_f32)
MAX_POOL(double, max_pool_f64)
MAX_POOL(int64_t, max_pool_i64)

qdq_status qdqi_ref_maxpool(qdqi_ref_ctx *c) {
    pool p;
    QDQI_TRY(pool_init(c, &p));
    const qdq_dtype dtype = c->in[0].desc->dtype;
    const qdqi_ref_type type = dtype == QDQ_DTYPE_F64       ? QDQI_REF_F64
                               : qdqi_dtype_is_float(dtype) ? QDQI_REF_F32
                                                            : QDQI_REF_I64;
    const void *src = qdqi_ref_in(c, 0, type);
    void *dst = qdqi_ref_out(c, 0, type);
    int64_t *off = qdqi_ref_temp(c, kernel_points(&p), sizeof *off);
    QDQI_REF_READY(c);
    if (type == QDQI_REF_F32) max_pool_f32(&p, src, dst, off, lowest(dtype), -INFINITY);
    if (type == QDQI_REF_F64) max_pool_f64(&p, src, dst, off, -DBL_MAX, (double)-INFINITY);
    if (type == QDQI_REF_I64) max_pool_i64(&p, src, dst, off, qdqi_dtype_min(dtype), qdqi_dtype_min(dtype));
    return QDQ_OK;
}

/* ---- global pools ---- */

typedef struct global_view {
    int64_t n, channels, points, c_stride, p_stride, n_stride;
} global_view;

static global_view global_of(const qdqi_ref_ctx *c) {
    const qdq_tensor_desc *src = c->in[0].desc;
    const bool nxc = qdqi_op_str_is(c->op, QDQI_A_DATA_FORMAT, "NXC");
    global_view v = {.n = src->dims[0]};
    v.channels = src->dims[nxc ? src->ndims - 1 : 1];
    v.points = nxc ? qdqi_ref_count(src, 1, src->ndims - 1) : qdqi_ref_count(src, 2, src->ndims);
    v.c_stride = nxc ? 1 : v.points;
    v.p_stride = nxc ? v.channels : 1;
    v.n_stride = v.channels * v.points;
    return v;
}

qdq_status qdqi_ref_globalaveragepool(qdqi_ref_ctx *c) {
    const float *src = qdqi_ref_in_f32(c, 0);
    float *dst = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const global_view v = global_of(c);
    for (int64_t i = 0; i < v.n; i++)
        for (int64_t ch = 0; ch < v.channels; ch++) {
            const float *from = src + i * v.n_stride + ch * v.c_stride;
            double sum = 0.0;
            for (int64_t k = 0; k < v.points; k++)
                sum += (double)from[k * v.p_stride];
            dst[i * v.channels + ch] = v.points == 0 ? 0.0f : (float)(sum / (double)v.points);
        }
    return QDQ_OK;
}

qdq_status qdqi_ref_globalmaxpool(qdqi_ref_ctx *c) {
    const qdq_dtype dtype = c->in[0].desc->dtype;
    /* f64 holds every float type and the integers of up to 32 bits exactly; s64 goes its own way */
    const bool wide = dtype == QDQ_DTYPE_S64;
    const double *src = wide ? NULL : qdqi_ref_in_f64(c, 0);
    double *dst = wide ? NULL : qdqi_ref_out_f64(c, 0);
    const int64_t *src_i = wide ? qdqi_ref_in_i64(c, 0) : NULL;
    int64_t *dst_i = wide ? qdqi_ref_out_i64(c, 0) : NULL;
    QDQI_REF_READY(c);
    const global_view v = global_of(c);
    for (int64_t i = 0; i < v.n; i++)
        for (int64_t ch = 0; ch < v.channels; ch++) {
            const int64_t at = i * v.n_stride + ch * v.c_stride, to = i * v.channels + ch;
            if (wide) {
                dst_i[to] = v.points == 0 ? INT64_MIN : src_i[at];
                for (int64_t k = 1; k < v.points; k++)
                    if (src_i[at + k * v.p_stride] > dst_i[to]) dst_i[to] = src_i[at + k * v.p_stride];
            } else {
                const double least = qdqi_dtype_is_float(dtype)
                                         ? (dtype == QDQ_DTYPE_F64 ? -DBL_MAX : (double)lowest(dtype))
                                         : (double)qdqi_dtype_min(dtype);
                dst[to] = v.points == 0 ? least : -INFINITY;
                for (int64_t k = 0; k < v.points; k++)
                    if (src[at + k * v.p_stride] > dst[to]) dst[to] = src[at + k * v.p_stride];
            }
        }
    return QDQ_OK;
}

/* ---- local response normalization across channels of an NCX tensor ---- */

qdq_status qdqi_ref_lrn(qdqi_ref_ctx *c) {
    const float *src = qdqi_ref_in_f32(c, 0);
    float *dst = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    const qdq_tensor_desc *desc = c->in[0].desc;
    if (desc->ndims < 2) return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "rank %d has no channels", desc->ndims);
    const int64_t size = qdqi_op_s64(c->op, QDQI_A_SIZE), channels = desc->dims[1];
    const int64_t before = (size - 1) / 2, after = size - 1 - before;
    const double alpha = (double)qdqi_op_f32(c->op, QDQI_A_ALPHA) / (double)size;
    const double beta = (double)qdqi_op_f32(c->op, QDQI_A_BETA), bias = (double)qdqi_op_f32(c->op, QDQI_A_BIAS);
    const int64_t points = qdqi_ref_count(desc, 2, desc->ndims), n = desc->dims[0];
    for (int64_t i = 0; i < n * channels * points; i++) {
        const int64_t ch = i / points % channels;
        const int64_t from = ch < before ? 0 : ch - before;
        const int64_t to = channels - 1 - ch < after ? channels - 1 : ch + after;
        double sum = 0.0;
        for (int64_t k = from; k <= to; k++) {
            const double v = (double)src[i + (k - ch) * points];
            sum += v * v;
        }
        dst[i] = (float)((double)src[i] / pow(bias + alpha * sum, beta));
    }
    return QDQ_OK;
}
