/* TensorFlow QuantizeV2 and Dequantize: the arithmetic of the portable CPU kernels, in f32 and in their order.
 *
 * QuantizeV2 first widens the range so that it holds 0 and is not tiny, and gives that range out. `half` away means
 * round half away from zero. A NaN counts as 0. Where the spec's cast is undefined (s32 at the upper end) we saturate. */
#include "ref/ref_fns.h"
#include "ref/ref_quant.h"

#include "base/dtype.h"

#include <float.h>
#include <math.h>

typedef enum tf_mode { MIN_COMBINED, MIN_FIRST, SCALED } tf_mode;

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

static tf_mode mode_of(const qdqi_op *op) {
    if (qdqi_op_str_is(op, QDQI_A_MODE, "MIN_FIRST")) return MIN_FIRST;
    return qdqi_op_str_is(op, QDQI_A_MODE, "SCALED") ? SCALED : MIN_COMBINED;
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
    if (n != 1 && mode_of(c->op) == MIN_FIRST)
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

/* ---- QuantizeV2 ---- */

typedef struct q_job {
    tf_type t;
    tf_mode mode;
    bool half_even;
    qdq_dtype dtype;
    const float *x, *mins, *maxs;
    float ensure;
    int32_t *y;
    float *out_min, *out_max;
} q_job;

static int32_t saturate(const q_job *job, float q) {
    return qdqi_ref_sat((double)q, job->t.lo, job->t.hi, 0);
}

static float clampf(float v, float lo, float hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static void q_min_combined(const q_job *job, int64_t at, int64_t n, float mn, float mx) {
    const float sf = (float)(job->t.steps / (double)(mx - mn));
    for (int64_t i = at; i < at + n; i++) {
        const float v = clampf(isnan(job->x[i]) ? 0.0f : job->x[i], mn, mx);
        const float scaled = (v - mn) * sf;
        job->y[i] = saturate(job, job->t.is_signed ? roundf(scaled - job->t.half) : truncf(scaled + 0.5f));
    }
}

static void q_min_first(const q_job *job, int64_t at, int64_t n, float mn, float mx) {
    const float rs = (float)(job->t.steps / (double)(mx - mn));
    const float base = roundf(mn * rs) - job->t.lo_f;
    /* the largest f32 below 2^31: what the kernel clamps s32 to */
    const float top = job->dtype == QDQ_DTYPE_S32 ? 2147483520.0f : job->t.hi_f;
    for (int64_t i = at; i < at + n; i++) {
        const float v = isnan(job->x[i]) ? 0.0f : job->x[i];
        job->y[i] = saturate(job, clampf(roundf(v * rs) - base, job->t.lo_f, top));
    }
}

static void q_scaled(const q_job *job, int64_t at, int64_t n, float s, float mn, float mx) {
    for (int64_t i = at; i < at + n; i++) {
        const float v = clampf(isnan(job->x[i]) ? 0.0f : job->x[i], mn, mx) * s;
        job->y[i] = saturate(job, job->half_even ? rintf(v) : roundf(v));
    }
}

static float scale_factor(const tf_type *t, float mn, float mx) {
    const float a = t->min_q * mn > 0.0f ? t->min_q / mn : FLT_MAX;
    const float b = t->hi_f * mx > 0.0f ? t->hi_f / mx : FLT_MAX;
    return fminf(a, b);
}

/* The range in use for slice `q`, which goes out; and for SCALED the factor. */
static void adjust(const q_job *job, int64_t q) {
    const float in_min = job->mins[q], in_max = job->maxs[q];
    float mn = fminf(0.0f, in_min);
    const float eps = fmaxf(1.0f, fmaxf(fabsf(in_min), fabsf(in_max))) * job->ensure;
    float mx = fmaxf(0.0f, fmaxf(in_max, mn + eps));
    if (job->mode == SCALED) {
        const float s = scale_factor(&job->t, mn, mx);
        mn = job->t.min_q / s;
        mx = job->t.hi_f / s;
    }
    job->out_min[q] = mn;
    job->out_max[q] = mx;
}

static void q_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const q_job *job = arg;
    const float mn = job->out_min[q], mx = job->out_max[q];
    switch (job->mode) {
    case MIN_COMBINED: q_min_combined(job, at, n, mn, mx); break;
    case MIN_FIRST: q_min_first(job, at, n, mn, mx); break;
    case SCALED: {
        const float lo = fminf(0.0f, job->mins[q]);
        const float eps = fmaxf(1.0f, fmaxf(fabsf(job->mins[q]), fabsf(job->maxs[q]))) * job->ensure;
        const float hi = fmaxf(0.0f, fmaxf(job->maxs[q], lo + eps));
        q_scaled(job, at, n, scale_factor(&job->t, lo, hi), mn, mx);
        break;
    }
    }
}

qdq_status qdqi_ref_quantizev2(qdqi_ref_ctx *c) {
    q_job job = {.dtype = c->out[0].desc->dtype, .mode = mode_of(c->op)};
    job.t = type_of(job.dtype, qdqi_op_bool(c->op, QDQI_A_NARROW_RANGE));
    job.half_even = qdqi_op_str_is(c->op, QDQI_A_ROUND_MODE, "HALF_TO_EVEN");
    job.ensure = qdqi_op_f32(c->op, QDQI_A_ENSURE_MINIMUM_RANGE);
    job.x = qdqi_ref_in_f32(c, 0);
    job.mins = qdqi_ref_in_f32(c, 1);
    job.maxs = qdqi_ref_in_f32(c, 2);
    job.y = qdqi_ref_out_i32(c, 0);
    job.out_min = qdqi_ref_out_f32(c, 1);
    job.out_max = qdqi_ref_out_f32(c, 2);
    QDQI_REF_READY(c);
    qdqi_ref_qmap map;
    int64_t n;
    if (job.half_even && job.mode != SCALED)
        return qdqi_ref_fail(c, QDQ_E_BAD_ATTR, "round_mode HALF_TO_EVEN is for mode SCALED only");
    QDQI_TRY(find_slices(c, job.mins, job.maxs, &map, &n));
    for (int64_t q = 0; q < n; q++) {
        adjust(&job, q);
        /* a width of 0 (both ranges 0 and nothing ensured), past the type, or so small that the factor is past it */
        const float width = job.out_max[q] - job.out_min[q];
        const bool bad = job.mode == SCALED ? !isfinite(job.out_min[q]) || !isfinite(job.out_max[q])
                                            : !isfinite(width) || !isfinite((float)(job.t.steps / (double)width));
        if (bad || !(width > 0.0f)) return fail_range(c, q, job.mins[q], job.maxs[q], "a range with a finite step");
    }
    qdqi_ref_qmap_walk(&map, q_run, &job);
    return QDQ_OK;
}

/* ---- Dequantize ---- */

typedef struct dq_job {
    tf_type t;
    tf_mode mode;
    const int32_t *x;
    const float *mins, *maxs;
    float *y;
} dq_job;

static void dq_run(void *arg, int64_t at, int64_t n, int64_t q) {
    const dq_job *job = arg;
    const tf_type *t = &job->t;
    const float mn = job->mins[q], mx = job->maxs[q];
    if (job->mode == MIN_COMBINED) {
        const float sf = (mx - mn) / (t->hi_f - t->lo_f);
        for (int64_t i = at; i < at + n; i++)
            job->y[i] = ((float)job->x[i] + t->half) * sf + mn;
    } else if (job->mode == MIN_FIRST) {
        const float rs = (float)((double)(mx - mn) / t->steps);
        const float lowest = (mx == mn ? mn : roundf(mn / rs) * rs) - t->lo_f * rs;
        for (int64_t i = at; i < at + n; i++)
            job->y[i] = lowest + (float)job->x[i] * rs;
    } else {
        const float of_min = mn / t->min_q, of_max = mx / t->hi_f;
        const float s = !t->is_signed || of_min < of_max ? of_max : of_min; /* of -0 and 0 the former, unlike fmaxf */
        for (int64_t i = at; i < at + n; i++)
            job->y[i] = (float)job->x[i] * s;
    }
}

qdq_status qdqi_ref_tfdequantize(qdqi_ref_ctx *c) {
    dq_job job = {.mode = mode_of(c->op)};
    job.t = type_of(c->in[0].desc->dtype, qdqi_op_bool(c->op, QDQI_A_NARROW_RANGE));
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
    const tf_mode mode = mode_of(op);
    double scale = 0.0, zp = 0.0;
    if (!isfinite(min) || !isfinite(max) || max < min || mode == MIN_COMBINED) return false;
    if (!quantizes) {
        if (mode == MIN_FIRST) {
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
        if (mode == MIN_FIRST) {
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
