/* What may differ from the reference, and why.
 *
 * Integer results of a Quantize. The contract: the fused chain equals real arithmetic rounded once at the Quantize, except
 * within `near` of a rounding tie. So a result q is right when |q - clamp(x / scale + zp)| ≤ 0.5 + near, where x is the
 * reference's float that goes into the Quantize and near = max(1, |x / scale|) times
 *     2^-17  plain chains: f32 sums and scales in another order;
 *     2^-13  with a function that implementations approximate (exp, tanh, a division …);
 *     2^-6   with bf16 or f16 values inside, which the reference rounds and a fused chain may keep (2^-8 each, a few).
 * A NaN may give anything in range. A lone quantize-family op is exact to its spec: the bytes must be equal.
 *
 * Float results. |got - want| ≤ rel * |want| + abs * (largest |want| of the tensor). The second term is for sums that
 * cancel: their error goes with the terms, not with the result.
 *     f32: rel 1e-5, abs 1e-6 (8 ulp of the largest); with approximated functions or long sums abs 1e-5;
 *     bf16, f16 out: one step of the type (2^-7, 2^-10), four with narrow values inside a chain;
 *     f8 out: one step (2^-2, 2^-3);
 *     a softmax of bf16 scores made inside, bf16 out: abs 2^-6. The reference rounds the scores of an attention after each of
 *     product, scale and mask, a fused chain once: scores of up to 8 differ by up to 3 * 2^-6, a weight w of the softmax so by
 *     w (1 - w) times that, a quarter at most, and the values that it chooses between are two of the largest apart. (Held
 *     against f32, the elements beyond 2^-8 are the reference's own: it is off by 0.012 where the fused chain is by 0.001.)
 *     a Quantize inside, of bf16 or f16 values: abs 2^-4 (one step of its integers is up to a tenth of a softmax' result). */
#include "harness/compare.h"

#include "base/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_POINTS = 10 };

static double pow2(int e) {
    return ldexp(1.0, e);
}

static double step_of(qdq_dtype dtype) {
    switch (dtype) {
    case QDQ_DTYPE_BF16: return pow2(-7);
    case QDQ_DTYPE_F16: return pow2(-10);
    case QDQ_DTYPE_F8_E5M2: return pow2(-2);
    case QDQ_DTYPE_F8_E4M3: return pow2(-3);
    default: return 0.0;
    }
}

typedef struct tolerance {
    double rel, abs; /* floats */
    double near;     /* integers */
} tolerance;

static tolerance tolerance_of(const qdqh_rule *rule, qdq_dtype dtype, double largest) {
    tolerance t = {0};
    if (rule->exact) return t;
    t.near = pow2(rule->narrow ? -6 : rule->transcendental ? -13 : -17);
    t.rel = 1e-5;
    t.abs = (rule->transcendental || rule->long_sums ? 1e-5 : 1e-6) * largest;
    const double step = step_of(dtype);
    if (step > 0.0) t.rel = step * (rule->narrow ? 4.0 : 1.0);
    if (rule->narrow) {
        const bool scores = rule->scores && dtype == QDQ_DTYPE_BF16;
        t.abs = pow2(rule->requantized ? -4 : scores ? -6 : -8) * largest;
        if (t.rel < pow2(-6)) t.rel = pow2(-6);
    }
    return t;
}

static int64_t offset_of(const qdq_tensor_desc *d, const int64_t *index) {
    int64_t offset = 0;
    for (int32_t i = 0; i < d->ndims; i++)
        offset += index[i] * d->strides[i];
    return offset;
}

static bool same_float(double got, double want, const tolerance *t) {
    if (isnan(want)) return isnan(got);
    if (got == want) return true;
    if (isinf(want) || !isfinite(got)) return false;
    return fabs(got - want) <= t->rel * fabs(want) + t->abs;
}

/* x / scale + zp in real arithmetic; NaN when not known. */
static double real_of(const qdqh_quantizer *q, const int64_t *index, double *size_out) {
    const qdq_tensor_desc *d = &q->x->desc;
    const double x = qdqi_load_f64(q->x->data, d->dtype, offset_of(d, index));
    const size_t channel = d->ndims > 0 ? (size_t)index[q->axis] : 0;
    const double scale = (double)q->scales[q->n_scales > 1 ? channel : 0];
    const double zp = q->zps == NULL ? 0.0 : (double)q->zps[q->n_zps > 1 ? channel : 0];
    *size_out = fmax(1.0, fabs(x / scale));
    return x / scale + zp;
}

static bool same_integer(int64_t got, int64_t want, qdq_dtype dtype, const qdqh_quantizer *q, const int64_t *index,
                         const tolerance *t) {
    if (got == want) return true;
    if (q == NULL || q->x == NULL || t->near == 0.0) return false;
    double size;
    const double real = real_of(q, index, &size);
    if (isnan(real)) return true; /* any value of an integer type is in range */
    const double lo = (double)qdqi_dtype_min(dtype), hi = (double)qdqi_dtype_max(dtype);
    const double target = real < lo ? lo : real > hi ? hi : real;
    return fabs((double)got - target) <= 0.5 + t->near * (isinf(size) ? 1.0 : size);
}

static void print_point(const qdq_tensor_desc *d, const int64_t *index, double got, double want, bool ok) {
    printf("    [tensor %" PRIu64 "][", d->id);
    for (int32_t i = 0; i < d->ndims; i++)
        printf("%s%" PRId64, i == 0 ? "" : ",", index[i]);
    printf("] exp:%.9g got:%.9g diff:%.3g%s\n", want, got, fabs(got - want), ok ? "" : " <-");
}

static bool next_index(const qdq_tensor_desc *d, int64_t *index) {
    for (int32_t i = d->ndims - 1; i >= 0; i--) {
        if (++index[i] < d->dims[i]) return true;
        index[i] = 0;
    }
    return false;
}

static bool is_empty(const qdq_tensor_desc *d) {
    for (int32_t i = 0; i < d->ndims; i++)
        if (d->dims[i] == 0) return true;
    return false;
}

static double largest_of(const qdq_tensor *t) {
    double largest = 0.0;
    int64_t index[QDQ_MAX_NDIMS] = {0};
    do {
        const double v = fabs(qdqi_load_f64(t->data, t->desc.dtype, offset_of(&t->desc, index)));
        if (isfinite(v) && v > largest) largest = v;
    } while (next_index(&t->desc, index));
    return largest;
}

/* Equal bytes in one gapless layout need no walk: true, with the counts that need none. */
static bool same_bytes(const qdq_tensor *got, const qdq_tensor *want, qdqh_counts *counts) {
    const qdq_tensor_desc *d = &want->desc;
    const qdq_dtype dtype = d->dtype;
    int64_t n = 1, reach = 1;
    for (int32_t i = 0; i < d->ndims; i++) {
        if (d->dims[i] > 1 && d->strides[i] != got->desc.strides[i]) return false;
        n *= d->dims[i];
        reach += (d->dims[i] - 1) * d->strides[i];
    }
    size_t bytes;
    if (reach != n || qdq_dtype_bits(dtype) < 8 || !qdqi_dtype_bytes(dtype, n, &bytes) ||
        memcmp(got->data, want->data, bytes) != 0)
        return false;
    const bool is_float = qdqi_dtype_is_float(dtype);
    const int64_t lo = is_float ? 0 : qdqi_dtype_min(dtype), hi = is_float ? 0 : qdqi_dtype_max(dtype);
    counts->total = n;
    if (dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_U8) {
        int64_t seen[256] = {0};
        const uint8_t *data = want->data;
        for (int64_t i = 0; i < n; i++)
            seen[data[i]]++;
        counts->zeros = seen[0];
        counts->saturated = seen[(uint8_t)lo] + seen[(uint8_t)hi];
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        const double v = qdqi_load_f64(want->data, dtype, i);
        counts->zeros += v == 0.0;
        counts->saturated += !is_float && ((int64_t)v == lo || (int64_t)v == hi);
    }
    return true;
}

qdqh_counts qdqh_compare(const qdq_tensor *got, const qdq_tensor *want, const qdqh_rule *rule,
                         const qdqh_quantizer *quantizer, int verbose) {
    qdqh_counts counts = {0};
    if (is_empty(&want->desc)) return counts;
    if (verbose < 99 && same_bytes(got, want, &counts)) return counts;
    const qdq_dtype dtype = want->desc.dtype;
    const bool is_float = qdqi_dtype_is_float(dtype);
    const tolerance t = tolerance_of(rule, dtype, is_float ? largest_of(want) : 0.0);
    const int64_t lo = is_float ? 0 : qdqi_dtype_min(dtype), hi = is_float ? 0 : qdqi_dtype_max(dtype);
    int64_t index[QDQ_MAX_NDIMS] = {0};
    int n_points = 0;
    do {
        const int64_t at_got = offset_of(&got->desc, index), at_want = offset_of(&want->desc, index);
        const double w = qdqi_load_f64(want->data, dtype, at_want), g = qdqi_load_f64(got->data, dtype, at_got);
        bool ok;
        if (is_float) {
            ok = same_float(g, w, &t);
        } else {
            const int64_t wi = qdqi_load_i64(want->data, dtype, at_want), gi = qdqi_load_i64(got->data, dtype, at_got);
            ok = same_integer(gi, wi, dtype, quantizer, index, &t);
            counts.saturated += wi == lo || wi == hi;
        }
        counts.total++;
        counts.zeros += w == 0.0;
        counts.errors += !ok;
        if (verbose >= 99 || (verbose >= 6 && !ok && n_points < MAX_POINTS)) {
            print_point(&want->desc, index, g, w, ok);
            n_points++;
        }
    } while (next_index(&want->desc, index));
    return counts;
}
