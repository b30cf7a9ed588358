/* ONNX QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
 *
 *     Q    sat(rint(x / s) + zp)     the quotient in the type of the scale (or `precision`), zero point after rounding
 *     DQ   (q - zp) * s              the subtraction in integers
 *
 * A NaN quantizes to the zero point (to NaN in the f8 types), infinities saturate. */
#include "ref/ref_fns.h"
#include "ref/ref_quant.h"

#include "base/dtype.h"

#include <math.h>

typedef struct linear_params {
    qdqi_ref_qmap map;
    const float *scales;
    const int64_t *zps; /* NULL: 0 */
} linear_params;

static qdq_status find_map(qdqi_ref_ctx *c, linear_params *p) {
    const qdq_tensor_desc *x = c->in[0].desc, *s = c->in[1].desc;
    const int64_t n = qdqi_n_elems(s);
    const int64_t block = qdqi_op_s64(c->op, QDQI_A_BLOCK_SIZE);
    if (qdqi_ref_has_in(c, 2) && qdqi_n_elems(c->in[2].desc) != n)
        return qdqi_ref_fail(c, QDQ_E_BAD_ZERO_POINT, "%lld zero points for %lld scales",
                             (long long)qdqi_n_elems(c->in[2].desc), (long long)n);
    if (n == 1 && s->ndims <= 1) {
        qdqi_ref_qmap_tensor(&p->map, x);
        return QDQ_OK;
    }
    int32_t axis;
    QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), x->ndims, &axis));
    int64_t expected = x->dims[axis];
    if (block > 0) {
        qdqi_ref_qmap_block(&p->map, x, axis, block);
        expected =
            qdqi_ref_count(x, 0, axis) * ((x->dims[axis] + block - 1) / block) * qdqi_ref_count(x, axis + 1, x->ndims);
    } else {
        qdqi_ref_qmap_axis(&p->map, x, axis);
    }
    if (n != expected)
        return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "%lld scales along axis %d, expected %lld", (long long)n, axis,
                             (long long)expected);
    return QDQ_OK;
}

/* The zero point of s32 and of the f8 types is 0. */
static qdq_status expect_zero_zps(qdqi_ref_ctx *c, const linear_params *p) {
    if (p->zps == NULL) return QDQ_OK;
    const qdq_tensor_desc *desc = c->in[2].desc;
    for (int64_t i = 0; i < qdqi_n_elems(desc); i++)
        if (p->zps[i] != 0)
            return qdqi_ref_fail(c, QDQ_E_BAD_ZERO_POINT, "zero point %lld: found %lld, expected 0 (%s)", (long long)i,
                                 (long long)p->zps[i], qdq_dtype_name(desc->dtype));
    return QDQ_OK;
}

/* Round to a narrow float type and back. */
static float rounded(float v, qdq_dtype type) {
    if (type == QDQ_DTYPE_F16) return qdqi_f32_of_f16(qdqi_f16_of_f32(v));
    if (type == QDQ_DTYPE_BF16) return qdqi_f32_of_bf16(qdqi_bf16_of_f32(v));
    return v;
}

/* ---- QuantizeLinear ---- */

typedef struct q_job {
    const linear_params *p;
    const float *x;
    int32_t *y;
    unsigned char *y_f8;
    qdq_dtype division, dtype;
    bool saturate;
    int64_t lo, hi;
} q_job;

static void q_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const q_job *job = arg;
    const float s = rounded(job->p->scales[q], job->division);
    const int64_t zp = job->p->zps == NULL ? 0 : job->p->zps[q];
    for (int64_t i = at; i < at + n; i++) {
        const float t = rounded(rounded(job->x[i], job->division) / s, job->division);
        if (job->dtype == QDQ_DTYPE_F8_E4M3) {
            job->y_f8[i] = qdqi_f8_e4m3_of_f32(t, job->saturate);
        } else if (job->dtype == QDQ_DTYPE_F8_E5M2) {
            job->y_f8[i] = qdqi_f8_e5m2_of_f32(t, job->saturate);
        } else {
            job->y[i] = qdqi_ref_sat((double)rintf(t) + (double)zp, job->lo, job->hi, zp);
        }
    }
}

static qdq_dtype division_type(const qdqi_ref_ctx *c) {
    qdq_dtype type = c->in[1].desc->dtype;
    const qdqi_attr *precision = qdqi_op_attr_or_null(c->op, QDQI_A_PRECISION);
    if (precision != NULL && precision->is_present) {
        const qdq_dtype named = qdq_dtype_from_name(precision->v.str);
        if (named != QDQ_DTYPE_UNDEF) type = named;
    }
    return type;
}

qdq_status qdqi_ref_quantizelinear(qdqi_ref_ctx *c) {
    const qdq_dtype dtype = c->out[0].desc->dtype;
    linear_params p;
    q_job job = {.p = &p, .dtype = dtype, .lo = qdqi_dtype_min(dtype), .hi = qdqi_dtype_max(dtype)};
    job.division = division_type(c);
    job.saturate = qdqi_op_bool(c->op, QDQI_A_SATURATE);
    job.x = qdqi_ref_in_f32(c, 0);
    p.scales = qdqi_ref_in_f32(c, 1);
    p.zps = qdqi_ref_in_i64(c, 2);
    if (qdqi_dtype_is_float(dtype)) {
        job.y_f8 = qdqi_ref_out_raw(c, 0);
    } else {
        job.y = qdqi_ref_out_i32(c, 0);
    }
    QDQI_REF_READY(c);
    QDQI_TRY(find_map(c, &p));
    const int64_t n = qdqi_n_elems(c->in[1].desc);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(p.scales[i]) || p.scales[i] == 0.0f)
            return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "scale %lld: found %g, expected a finite non-zero number",
                                 (long long)i, (double)p.scales[i]);
    if (qdqi_dtype_is_float(dtype)) QDQI_TRY(expect_zero_zps(c, &p));
    qdqi_ref_qmap_walk(&p.map, q_run, &job);
    return QDQ_OK;
}

/* ---- DequantizeLinear ---- */

typedef struct dq_job {
    const linear_params *p;
    const int32_t *x;
    const float *x_f8;
    float *y;
} dq_job;

static void dq_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const dq_job *job = arg;
    const float s = job->p->scales[q];
    const int64_t zp = job->p->zps == NULL ? 0 : job->p->zps[q];
    for (int64_t i = at; i < at + n; i++)
        job->y[i] = job->x_f8 != NULL ? job->x_f8[i] * s : (float)(job->x[i] - zp) * s;
}

qdq_status qdqi_ref_dequantizelinear(qdqi_ref_ctx *c) {
    const qdq_dtype dtype = c->in[0].desc->dtype;
    linear_params p;
    dq_job job = {.p = &p};
    p.scales = qdqi_ref_in_f32(c, 1);
    p.zps = qdqi_ref_in_i64(c, 2);
    if (qdqi_dtype_is_float(dtype)) {
        job.x_f8 = qdqi_ref_in_f32(c, 0);
    } else {
        job.x = qdqi_ref_in_i32(c, 0);
    }
    job.y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(find_map(c, &p));
    if (dtype == QDQ_DTYPE_S32 || qdqi_dtype_is_float(dtype)) QDQI_TRY(expect_zero_zps(c, &p));
    qdqi_ref_qmap_walk(&p.map, dq_run, &job);
    return QDQ_OK;
}

/* ---- DynamicQuantizeLinear ---- */

/* Range and parameters of x. The spec leaves open what a range of width 0 gives (0/0) and what a NaN or an infinity does:
 * here the scale is then 1 (y = 0, zp = 0 for all-zero and empty input), and the range is that of the finite values. */
static void dynamic_params(const float *x, int64_t n, float *scale_out, int32_t *zp_out) {
    float lo = 0.0f, hi = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    float s = (hi - lo) / 255.0f;
    if (!isfinite(s)) s = hi / 255.0f - lo / 255.0f; /* hi - lo left the type */
    if (s == 0.0f) s = 1.0f;
    const float zp = rintf(fminf(fmaxf(0.0f - lo / s, 0.0f), 255.0f));
    *scale_out = s;
    *zp_out = (int32_t)zp;
}

qdq_status qdqi_ref_dynamicquantizelinear(qdqi_ref_ctx *c) {
    const float *x = qdqi_ref_in_f32(c, 0);
    int32_t *y = qdqi_ref_out_i32(c, 0);
    float *scale = qdqi_ref_out_f32(c, 1);
    int32_t *zp = qdqi_ref_out_i32(c, 2);
    QDQI_REF_READY(c);
    const int64_t n = qdqi_n_elems(c->in[0].desc);
    dynamic_params(x, n, scale, zp);
    for (int64_t i = 0; i < n; i++)
        y[i] = qdqi_ref_sat((double)rintf(x[i] / *scale) + (double)*zp, 0, 255, *zp);
    return QDQ_OK;
}
