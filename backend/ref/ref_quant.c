/* oneDNN Graph: Quantize, Dequantize, DynamicQuantize, DynamicDequantize.
 *
 *     Quantize    sat(rint(x / s + zp))      f32, a true division, the zero point added before rounding
 *     Dequantize  (q - zp) * s               the subtraction in integers; one rounding to the destination
 *
 * A NaN quantizes to the zero point (to NaN in the f8 types), infinities saturate. */
#include "ref/ref_fns.h"
#include "ref/ref_quant.h"

#include "base/dtype.h"

#include <math.h>

typedef struct quant_params {
    qdqi_ref_qmap map;
    const float *scales;
    const int64_t *zps; /* NULL: 0 */
    int64_t n_scales, n_zps;
} quant_params;

static int64_t zp_of(const quant_params *p, int64_t q) {
    return p->zps == NULL ? 0 : p->zps[p->n_zps == 1 ? 0 : q];
}

/* The map of scales to elements out of qtype, axis and group_shape; counts are checked against the shape. */
static qdq_status find_map(qdqi_ref_ctx *c, quant_params *p) {
    const qdq_tensor_desc *src = c->in[0].desc;
    int64_t expected = 1;
    if (qdqi_op_str_is(c->op, QDQI_A_QTYPE, "per_channel")) {
        int32_t axis;
        QDQI_TRY(qdqi_ref_axis(c, qdqi_op_s64(c->op, QDQI_A_AXIS), src->ndims, &axis));
        qdqi_ref_qmap_axis(&p->map, src, axis);
        expected = src->dims[axis];
    } else if (qdqi_op_str_is(c->op, QDQI_A_QTYPE, "per_group")) {
        const qdqi_attr *shape = qdqi_op_attr_or_null(c->op, QDQI_A_GROUP_SHAPE);
        if (shape == NULL || shape->n != (uint32_t)src->ndims)
            return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "group_shape has %u values, expected %d (rank of src)",
                                 shape == NULL ? 0 : shape->n, src->ndims);
        for (int32_t d = 0; d < src->ndims; d++) {
            const int64_t g = shape->v.s64s[d];
            if (g < 1 || src->dims[d] % g != 0)
                return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "group_shape[%d] is %lld, which does not divide %lld", d,
                                     (long long)g, (long long)src->dims[d]);
            expected *= src->dims[d] / g;
        }
        qdqi_ref_qmap_group(&p->map, src, shape->v.s64s);
    } else {
        qdqi_ref_qmap_tensor(&p->map, src);
    }
    if (p->n_scales != expected)
        return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "%lld scales, expected %lld", (long long)p->n_scales,
                             (long long)expected);
    if (p->zps != NULL && p->n_zps != 1 && p->n_zps != expected)
        return qdqi_ref_fail(c, QDQ_E_BAD_ZERO_POINT, "%lld zero points, expected %lld", (long long)p->n_zps,
                             (long long)expected);
    return QDQ_OK;
}

static void attr_params(qdqi_ref_ctx *c, quant_params *p) {
    uint32_t n;
    p->scales = qdqi_op_f32s(c->op, QDQI_A_SCALES, &n);
    p->n_scales = n;
    p->zps = qdqi_op_s64s(c->op, QDQI_A_ZPS, &n);
    p->n_zps = n;
    if (n == 0) p->zps = NULL;
}

static void input_params(qdqi_ref_ctx *c, quant_params *p) {
    p->scales = qdqi_ref_in_f32(c, 1);
    p->n_scales = qdqi_n_elems(c->in[1].desc);
    p->zps = qdqi_ref_in_i64(c, 2);
    p->n_zps = qdqi_ref_has_in(c, 2) ? qdqi_n_elems(c->in[2].desc) : 0;
}

/* ---- quantize ---- */

typedef struct quant_job {
    const quant_params *p;
    const float *x;
    int32_t *y;  /* integer destination */
    float *y_f8; /* or f8 */
    int64_t lo, hi;
} quant_job;

static void quant_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const quant_job *job = arg;
    const float s = job->p->scales[q];
    const int64_t zp = zp_of(job->p, q);
    if (job->y_f8 != NULL) {
        for (int64_t i = at; i < at + n; i++)
            job->y_f8[i] = job->x[i] / s;
        return;
    }
    for (int64_t i = at; i < at + n; i++)
        job->y[i] = qdqi_ref_sat((double)rintf(job->x[i] / s + (float)zp), job->lo, job->hi, zp);
}

static qdq_status quantize(qdqi_ref_ctx *c, quant_params *p) {
    const qdq_dtype dtype = c->out[0].desc->dtype;
    quant_job job = {.p = p, .lo = qdqi_dtype_min(dtype), .hi = qdqi_dtype_max(dtype)};
    job.x = qdqi_ref_in_f32(c, 0);
    if (qdqi_dtype_is_float(dtype)) {
        job.y_f8 = qdqi_ref_out_f32(c, 0);
    } else {
        job.y = qdqi_ref_out_i32(c, 0);
    }
    QDQI_REF_READY(c);
    QDQI_TRY(find_map(c, p));
    for (int64_t i = 0; i < p->n_scales; i++)
        if (!isfinite(p->scales[i]) || p->scales[i] == 0.0f)
            return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "scale %lld: found %g, expected a finite non-zero number",
                                 (long long)i, (double)p->scales[i]);
    qdqi_ref_qmap_walk(&p->map, quant_run, &job);
    return QDQ_OK;
}

qdq_status qdqi_ref_quantize(qdqi_ref_ctx *c) {
    quant_params p;
    attr_params(c, &p);
    return quantize(c, &p);
}

qdq_status qdqi_ref_dynamicquantize(qdqi_ref_ctx *c) {
    quant_params p;
    input_params(c, &p);
    return quantize(c, &p);
}

/* ---- dequantize ---- */

typedef struct dequant_job {
    const quant_params *p;
    const int32_t *x;
    const float *x_f8;
    float *y;
} dequant_job;

static void dequant_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const dequant_job *job = arg;
    const float s = job->p->scales[q];
    const int64_t zp = zp_of(job->p, q);
    for (int64_t i = at; i < at + n; i++)
        job->y[i] = job->x_f8 != NULL ? job->x_f8[i] * s : (float)(job->x[i] - zp) * s;
}

static qdq_status dequantize(qdqi_ref_ctx *c, quant_params *p) {
    dequant_job job = {.p = p};
    if (qdqi_dtype_is_float(c->in[0].desc->dtype)) {
        job.x_f8 = qdqi_ref_in_f32(c, 0);
    } else {
        job.x = qdqi_ref_in_i32(c, 0);
    }
    job.y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    QDQI_TRY(find_map(c, p));
    qdqi_ref_qmap_walk(&p->map, dequant_run, &job);
    return QDQ_OK;
}

qdq_status qdqi_ref_dequantize(qdqi_ref_ctx *c) {
    quant_params p;
    attr_params(c, &p);
    return dequantize(c, &p);
}

qdq_status qdqi_ref_dynamicdequantize(qdqi_ref_ctx *c) {
    quant_params p;
    input_params(c, &p);
    return dequantize(c, &p);
}
