/* TensorFlow QuantizeV2 and Dequantize: the arithmetic of the portable CPU kernels, in f32 and in their order.
 *
 * QuantizeV2 first widens the range so that it holds 0 and is not tiny, and gives that range out. `half` away means
 * round half away from zero. A NaN counts as 0. Where the spec's cast is undefined (s32 at the upper end) we saturate. */
#include "ref/ref_fns.h"
#include "ref/ref_quant.h"

#include "base/dtype.h"

#include <float.h>
#include <math.h>

typedef struct tf_type {
    int64_t lo, hi;
    bool is_signed;
    float lo_f, hi_f; /* as f32 */
    double steps;     /* hi - lo, which is also 2^bits - 1; the kernels divide by or into it as a double */
    float half;       /* (hi - lo + 1) / 2 of a signed type, else 0 */
    float min_q;      /* lowest quantized value in use: lo, or one above in a narrow range */
} tf_type;

static tf_type type_of(qdq_dtype dtype, bool narrow) {
    tf_type t = {.lo = qdqi_dtype_min(dtype), .hi = qdqi_dtype_max(dtype)};
    t.is_signed = t.lo < 0;
    t.lo_f = (float)t.lo;
    t.hi_f = (float)t.hi;
    t.steps = (double)(t.hi - t.lo);
    t.half = t.is_signed ? (float)((t.hi - t.lo + 1) / 2) : 0.0f;
    t.min_q = (float)(t.lo + (narrow ? 1 : 0));
    return t;
}

qdqi_tf_mode qdqi_ref_tf_mode(const qdqi_op *op) {
    if (qdqi_op_str_is(op, QDQI_A_MODE, "MIN_FIRST")) return QDQI_TF_MIN_FIRST;
    return qdqi_op_str_is(op, QDQI_A_MODE, "SCALED") ? QDQI_TF_SCALED : QDQI_TF_MIN_COMBINED;
}

static qdq_status fail_range(qdqi_ref_ctx *c, int64_t i, float min, float max, const char *expected) {
    return qdqi_ref_fail(c, QDQ_E_BAD_SCALE, "range %lld: found %g to %g, expected %s", (long long)i, (double)min,
                         (double)max, expected);
}

/* Slices of the axis (axis -1: one), and that both ranges have as many values, finite and in order. */
static qdq_status find_slices(qdqi_ref_ctx *c, const float *mins, const float *maxs, qdqi_ref_qmap *map,
                              int64_t *n_out) {
    const qdq_tensor_desc *x = c->in[0].desc;
    const int64_t axis = qdqi_op_s64(c->op, QDQI_A_AXIS);
    int64_t n = 1;
    if (axis < -1 || axis >= x->ndims)
        return qdqi_ref_fail(c, QDQ_E_BAD_AXIS, "axis %lld is outside -1…%d", (long long)axis, x->ndims - 1);
    if (axis == -1) {
        qdqi_ref_qmap_tensor(map, x);
    } else {
        qdqi_ref_qmap_axis(map, x, (int32_t)axis);
        n = x->dims[axis];
    }
    if (n != 1 && qdqi_ref_tf_mode(c->op) == QDQI_TF_MIN_FIRST)
        return qdqi_ref_fail(c, QDQ_E_UNSUPPORTED, "mode MIN_FIRST with an axis of %lld slices", (long long)n);
    for (uint32_t port = 1; port <= 2; port++)
        if (qdqi_n_elems(c->in[port].desc) != n)
            return qdqi_ref_fail(c, QDQ_E_BAD_SHAPE, "input %u has %lld elements, expected %lld", port,
                                 (long long)qdqi_n_elems(c->in[port].desc), (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(mins[i]) || !isfinite(maxs[i]) || maxs[i] < mins[i])
            return fail_range(c, i, mins[i], maxs[i], "finite values, max not below min");
    *n_out = n;
    return QDQ_OK;
}

/* ---- what a slice is computed with ---- */

static float scale_factor(const tf_type *t, float mn, float mx) {
    const float a = t->min_q * mn > 0.0f ? t->min_q / mn : FLT_MAX;
    const float b = t->hi_f * mx > 0.0f ? t->hi_f / mx : FLT_MAX;
    return fminf(a, b);
}

/* The range that is used, and goes out. */
static bool quantize_params(const qdqi_op *op, qdq_dtype stored, const tf_type *t, float in_min, float in_max,
                            qdqi_tf_params *p) {
    const qdqi_tf_mode mode = qdqi_ref_tf_mode(op);
    float mn = fminf(0.0f, in_min);
    const float eps = fmaxf(1.0f, fmaxf(fabsf(in_min), fabsf(in_max))) * qdqi_op_f32(op, QDQI_A_ENSURE_MINIMUM_RANGE);
    float mx = fmaxf(0.0f, fmaxf(in_max, mn + eps));
    if (mode == QDQI_TF_SCALED) {
        p->factor = scale_factor(t, mn, mx);
        mn = t->min_q / p->factor;
        mx = t->hi_f / p->factor;
    }
    p->out_min = p->low = mn;
    p->out_max = p->high = mx;
    /* a width of 0 (both ranges 0 and nothing ensured), past the type, or so small that the factor is past it */
    const float width = mx - mn;
    if (!(width > 0.0f)) return false;
    if (mode == QDQI_TF_SCALED) return isfinite(mn) && isfinite(mx);
    p->factor = (float)(t->steps / (double)width);
    p->half = t->half;
    p->base = roundf(mn * p->factor) - t->lo_f;
    /* the largest f32 below 2^31: what the kernel clamps s32 to */
    p->top = stored == QDQ_DTYPE_S32 ? 2147483520.0f : t->hi_f;
    return isfinite(width) && isfinite(p->factor);
}

static void dequantize_params(const qdqi_op *op, const tf_type *t, float mn, float mx, qdqi_tf_params *p) {
    switch (qdqi_ref_tf_mode(op)) {
    case QDQI_TF_MIN_COMBINED:
        p->half = t->half;
        p->factor = (mx - mn) / (t->hi_f - t->lo_f);
        p->base = mn;
        break;
    case QDQI_TF_MIN_FIRST:
        p->factor = (float)((double)(mx - mn) / t->steps);
        p->base = (mx == mn ? mn : roundf(mn / p->factor) * p->factor) - t->lo_f * p->factor;
        break;
    case QDQI_TF_SCALED: {
        const float of_min = mn / t->min_q, of_max = mx / t->hi_f;
        p->factor = !t->is_signed || of_min < of_max ? of_max : of_min; /* of -0 and 0 the former, unlike fmaxf */
        break;
    }
    }
}

bool qdqi_ref_tf_params(const qdqi_op *op, qdq_dtype stored, float min, float max, qdqi_tf_params *out) {
    const tf_type t = type_of(stored, qdqi_op_bool(op, QDQI_A_NARROW_RANGE));
    *out = (qdqi_tf_params){0};
    if (op->kind == QDQI_OP_QUANTIZEV2) return quantize_params(op, stored, &t, min, max, out);
    dequantize_params(op, &t, min, max, out);
    return true;
}

/* ---- QuantizeV2 ---- */

typedef struct q_job {
    tf_type t;
    const qdqi_op *op;
    bool half_even;
    qdq_dtype dtype;
    const float *x, *mins, *maxs;
    int32_t *y;
} q_job;

static float clampf(float v, float lo, float hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static float quantized(const q_job *job, const qdqi_tf_params *p, float x) {
    x = isnan(x) ? 0.0f : x;
    switch (qdqi_ref_tf_mode(job->op)) {
    case QDQI_TF_MIN_COMBINED: {
        const float scaled = (clampf(x, p->low, p->high) - p->low) * p->factor;
        return job->t.is_signed ? roundf(scaled - p->half) : truncf(scaled + 0.5f);
    }
    case QDQI_TF_MIN_FIRST: return clampf(roundf(x * p->factor) - p->base, job->t.lo_f, p->top);
    case QDQI_TF_SCALED: break;
    }
    const float v = clampf(x, p->low, p->high) * p->factor;
    return job->half_even ? rintf(v) : roundf(v);
}

static void q_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const q_job *job = arg;
    qdqi_tf_params p;
    (void)qdqi_ref_tf_params(job->op, job->dtype, job->mins[q], job->maxs[q], &p);
    for (int64_t i = at; i < at + n; i++)
        job->y[i] = qdqi_ref_sat((double)quantized(job, &p, job->x[i]), job->t.lo, job->t.hi, 0);
}

qdq_status qdqi_ref_quantizev2(qdqi_ref_ctx *c) {
    q_job job = {.op = c->op, .dtype = c->out[0].desc->dtype};
    job.t = type_of(job.dtype, qdqi_op_bool(c->op, QDQI_A_NARROW_RANGE));
    job.half_even = qdqi_op_str_is(c->op, QDQI_A_ROUND_MODE, "HALF_TO_EVEN");
    job.x = qdqi_ref_in_f32(c, 0);
    job.mins = qdqi_ref_in_f32(c, 1);
    job.maxs = qdqi_ref_in_f32(c, 2);
    job.y = qdqi_ref_out_i32(c, 0);
    float *out_min = qdqi_ref_out_f32(c, 1), *out_max = qdqi_ref_out_f32(c, 2);
    QDQI_REF_READY(c);
    qdqi_ref_qmap map;
    int64_t n;
    if (job.half_even && qdqi_ref_tf_mode(c->op) != QDQI_TF_SCALED)
        return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "round_mode HALF_TO_EVEN is for mode SCALED only");
    QDQI_TRY(find_slices(c, job.mins, job.maxs, &map, &n));
    for (int64_t q = 0; q < n; q++) {
        qdqi_tf_params p;
        if (!qdqi_ref_tf_params(c->op, job.dtype, job.mins[q], job.maxs[q], &p))
            return fail_range(c, q, job.mins[q], job.maxs[q], "a range with a finite step");
        out_min[q] = p.out_min;
        out_max[q] = p.out_max;
    }
    qdqi_ref_qmap_walk(&map, q_run, &job);
    return QDQ_OK;
}

/* ---- Dequantize ---- */

typedef struct dq_job {
    const qdqi_op *op;
    qdq_dtype stored;
    const int32_t *x;
    const float *mins, *maxs;
    float *y;
} dq_job;

static void dq_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const dq_job *job = arg;
    const bool scaled = qdqi_ref_tf_mode(job->op) == QDQI_TF_SCALED;
    qdqi_tf_params p;
    (void)qdqi_ref_tf_params(job->op, job->stored, job->mins[q], job->maxs[q], &p);
    for (int64_t i = at; i < at + n; i++) {
        const float x = (float)job->x[i];
        job->y[i] = scaled ? x * p.factor : (x + p.half) * p.factor + p.base;
    }
}

qdq_status qdqi_ref_tfdequantize(qdqi_ref_ctx *c) {
    dq_job job = {.op = c->op, .stored = c->in[0].desc->dtype};
    job.x = qdqi_ref_in_i32(c, 0);
    job.mins = qdqi_ref_in_f32(c, 1);
    job.maxs = qdqi_ref_in_f32(c, 2);
    job.y = qdqi_ref_out_f32(c, 0);
    QDQI_REF_READY(c);
    qdqi_ref_qmap map;
    int64_t n;
    QDQI_TRY(find_slices(c, job.mins, job.maxs, &map, &n));
    qdqi_ref_qmap_walk(&map, dq_run, &job);
    return QDQ_OK;
}

/* ---- as an affine quantization ----------------------------------------------------------------------------------- */

bool qdqi_ref_tf_affine(const qdqi_op *op, qdq_dtype stored, float min, float max, float *scale_out, int32_t *zp_out) {
    const bool quantizes = op->kind == QDQI_OP_QUANTIZEV2;
    const bool narrow = qdqi_op_bool(op, QDQI_A_NARROW_RANGE);
    const tf_type t = type_of(stored, narrow);
    const qdqi_tf_mode mode = qdqi_ref_tf_mode(op);
    double scale = 0.0, zp = 0.0;
    if (!isfinite(min) || !isfinite(max) || max < min || mode == QDQI_TF_MIN_COMBINED) return false;
    if (!quantizes) {
        if (mode == QDQI_TF_MIN_FIRST) {
            scale = (double)(max - min) / t.steps;
            zp = max == min ? 0.0 : (double)t.lo - (double)roundf(min / (float)scale);
        } else {
            const float of_min = min / t.min_q, of_max = max / t.hi_f;
            scale = (double)(!t.is_signed || of_min < of_max ? of_max : of_min);
        }
    } else {
        const float mn = fminf(0.0f, min);
        const float eps = fmaxf(1.0f, fmaxf(fabsf(min), fabsf(max))) * qdqi_op_f32(op, QDQI_A_ENSURE_MINIMUM_RANGE);
        const float mx = fmaxf(0.0f, fmaxf(max, mn + eps));
        if (narrow) return false; /* saturates inside of the type */
        if (mode == QDQI_TF_MIN_FIRST) {
            const float rs = (float)(t.steps / (double)(mx - mn));
            scale = 1.0 / (double)rs;
            zp = (double)t.lo - (double)roundf(mn * rs);
        } else {
            const float s = scale_factor(&t, mn, mx);
            if (s == FLT_MAX) return false;
            scale = 1.0 / (double)s;
        }
    }
    *scale_out = (float)scale;
    *zp_out = (int32_t)zp;
    return isnormal(*scale_out) && zp >= (double)INT32_MIN && zp <= (double)INT32_MAX;
}
