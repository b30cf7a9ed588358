/* The program on vectors: the body of qk_post_<level>, over the names of simd/vec512.h or vec256.h. Included by post_<level>.c alone.
 *
 * Four vectors of columns at a time. What the program consists of is asked once per row of them: the same answers every time, which
 * the branch predictor knows after the first. The common one, a requantization to bytes, has a loop of its own. */
#ifndef QK_POST_BODY_H
#define QK_POST_BODY_H

#include "kernels/post/post_row.h"
#include "kernels/simd/vmath.h"
#include "kernels/simd/wide.h"

#include <math.h>

enum { BLOCK = 4 * QV_LANES };

typedef struct block {
    qv_f v[4];
} block;
typedef struct iblock {
    qv_i v[4];
} iblock;

/* What all rows of a call share. */
typedef struct shared {
    bool is_tame;  /* the quotient can be had without dividing */
    bool is_fixed; /* and bytes without the quotient, but near a tie */
    bool is_bound; /* then all steps are bounds, and those of bytes do as well */
    qv_f scale, recip, low, limit;
    qv_f zp;
    qv_f factor, shift;
    int32_t least, most; /* bytes */
} shared;

/* How many of n columns are in vector k; a constant when n is. */
#define QV_LEFT(n, k) ((n) > (size_t)(k)*QV_LANES ? (n) - (size_t)(k)*QV_LANES : 0)
#define QV_EACH(...)  QK_FOUR_TIMES(k, if (k == 0 || (size_t)k * QV_LANES < n) __VA_ARGS__)

QK_INLINE const char *elem(qdq_dtype dtype, const void *data, ptrdiff_t i) {
    return (const char *)data + i * (ptrdiff_t)qk_post_bytes(dtype);
}

QK_INLINE iblock load_integers(qdq_dtype dtype, const char *p, size_t n) {
    iblock b;
    QK_FOUR_TIMES(k, b.v[k] = qv_set1i(0));
    if (dtype == QDQ_DTYPE_S32)
        QV_EACH(b.v[k] = qv_load4(p + 4 * QV_LANES * k, QV_LEFT(n, k)));
    else if (dtype == QDQ_DTYPE_S8)
        QV_EACH(b.v[k] = qv_of_s8(qv_load1(p + QV_LANES * k, QV_LEFT(n, k))));
    else
        QV_EACH(b.v[k] = qv_of_u8(qv_load1(p + QV_LANES * k, QV_LEFT(n, k))));
    return b;
}

QK_INLINE block to_floats(iblock i) {
    block b;
    QK_FOUR_TIMES(k, b.v[k] = qv_of_int(i.v[k]));
    return b;
}

QK_INLINE block load(qdq_dtype dtype, const char *p, size_t n) {
    if (qk_post_is_integer(dtype)) return to_floats(load_integers(dtype, p, n));
    block b;
    QK_FOUR_TIMES(k, b.v[k] = qv_set1(0.0f));
    if (dtype == QDQ_DTYPE_F32)
        QV_EACH(b.v[k] = qv_of_bits(qv_load4(p + 4 * QV_LANES * k, QV_LEFT(n, k))));
    else if (dtype == QDQ_DTYPE_BF16)
        QV_EACH(b.v[k] = qv_of_bits(qv_slli(qv_of_u16(qv_load2(p + 2 * QV_LANES * k, QV_LEFT(n, k))), 16)));
    else
        QV_EACH(b.v[k] = qv_of_f16(qv_load2(p + 2 * QV_LANES * k, QV_LEFT(n, k))));
    return b;
}

QK_INLINE block same(float x) {
    block b;
    QK_FOUR_TIMES(k, b.v[k] = qv_set1(x));
    return b;
}

/* ---- steps ---- */

#define SLOW(name, expression)                                                                                         \
    static __attribute__((noinline)) block name(block b, float alpha) {                                                \
        const qv_f a = qv_set1(alpha);                                                                                 \
        (void)a;                                                                                                       \
        QK_FOUR_TIMES(k, {                                                                                             \
            const qv_f x = b.v[k];                                                                                     \
            b.v[k] = (expression);                                                                                     \
        });                                                                                                            \
        return b;                                                                                                      \
    }
SLOW(do_tanh, qv_tanh(x))
SLOW(do_elu, qv_sel(qv_gt(x, qv_set1(0.0f)), x, qv_mul(a, qv_expm1(x))))
SLOW(do_soft_relu, qv_div(qv_softplus(qv_mul(a, x)), a))
SLOW(do_logistic, qv_logistic(x))
SLOW(do_exp, qv_exp(x))
SLOW(do_log, qv_log(x))
SLOW(do_gelu, qv_gelu(x))
/* 2 sqrt(2 / pi) (x + 0.044715 x^3) is what the sigmoid is of */
SLOW(do_gelu_tanh,
     qv_mul(x, qv_logistic(qv_mul(x, qv_fma(qv_mul(x, x), qv_set1(0.0713548162726f), qv_set1(1.59576912161f))))))
SLOW(do_mish, qv_mish(x))
SLOW(do_swish, qv_mul(x, qv_logistic(qv_mul(a, x))))

static __attribute__((noinline)) block do_pow(block b, const qk_post_step *s) {
    const qv_f a = qv_set1(s->alpha);
    if (s->beta == 2.0f) {
        QK_FOUR_TIMES(k, b.v[k] = qv_mul(a, qv_mul(b.v[k], b.v[k])));
    } else if (s->beta == 0.5f) {
        QK_FOUR_TIMES(k, b.v[k] = qv_mul(a, qv_sqrt(b.v[k])));
    } else if (s->beta == -1.0f) {
        QK_FOUR_TIMES(k, b.v[k] = qv_mul(a, qv_div(qv_set1(1.0f), b.v[k])));
    } else if (s->beta == 1.0f) {
        QK_FOUR_TIMES(k, b.v[k] = qv_mul(a, b.v[k]));
    } else {
        float x[BLOCK];
        QK_FOUR_TIMES(k, qv_store(x + QV_LANES * k, b.v[k]));
        for (int i = 0; i < BLOCK; i++)
            x[i] = qk_post_pow(x[i], s->alpha, s->beta);
        QK_FOUR_TIMES(k, b.v[k] = qv_load(x + QV_LANES * k));
    }
    return b;
}

#define EACH(expression)                                                                                               \
    QK_FOUR_TIMES(k, v.v[k] = (expression));                                                                           \
    break
#define X               v.v[k]
#define W               w.v[k]
#define CLIP(x, lo, hi) qv_min(qv_max(x, lo), hi)

QK_INLINE block apply(const qk_post_step *s, block v, block w) {
    const qv_f a = qv_set1(s->alpha), b = qv_set1(s->beta), zero = qv_set1(0.0f), one = qv_set1(1.0f);
    switch (s->op) {
    case QK_POST_RELU:
        if (s->alpha == 0.0f) {
            EACH(qv_max(zero, X));
        }
        EACH(qv_sel(qv_gt(X, zero), X, qv_mul(a, X)));
    case QK_POST_TANH: return do_tanh(v, 0.0f);
    case QK_POST_ELU: return do_elu(v, s->alpha);
    case QK_POST_SQUARE: EACH(qv_mul(X, X));
    case QK_POST_ABS: EACH(qv_abs(X));
    case QK_POST_SQRT: EACH(qv_sqrt(X));
    case QK_POST_LINEAR: EACH(qv_add(qv_mul(a, X), b));
    case QK_POST_SOFT_RELU: return do_soft_relu(v, s->alpha);
    case QK_POST_LOGISTIC: return do_logistic(v, 0.0f);
    case QK_POST_EXP: return do_exp(v, 0.0f);
    case QK_POST_LOG: return do_log(v, 0.0f);
    case QK_POST_CLIP: EACH(CLIP(X, a, b));
    case QK_POST_POW: return do_pow(v, s);
    case QK_POST_GELU_ERF: return do_gelu(v, 0.0f);
    case QK_POST_GELU_TANH: return do_gelu_tanh(v, 0.0f);
    case QK_POST_ROUND: EACH(qv_rint(X));
    case QK_POST_MISH: return do_mish(v, 0.0f);
    case QK_POST_HARDSWISH: EACH(qv_mul(X, CLIP(qv_add(qv_mul(a, X), b), zero, one)));
    case QK_POST_HARDSIGMOID: EACH(CLIP(qv_add(qv_mul(a, X), b), zero, one));
    case QK_POST_SWISH: return do_swish(v, s->alpha);
    case QK_POST_ADD: EACH(qv_add(X, W));
    case QK_POST_SUB: EACH(qv_sub(X, W));
    case QK_POST_MUL: EACH(qv_mul(X, W));
    case QK_POST_DIV: EACH(qv_div(X, W));
    case QK_POST_MAX: EACH(qv_max(X, W));
    case QK_POST_MIN: EACH(qv_min(X, W));
    case QK_POST_GE: EACH(qv_sel(qv_ge(X, W), one, zero));
    case QK_POST_PRELU: EACH(qv_sel(qv_gt(X, zero), X, qv_mul(X, W)));
    case QK_POST_SUM: EACH(qv_add(X, qv_mul(a, qv_sub(W, b))));
    }
    return v;
}

/* ---- ends ---- */

/* A NaN becomes the least integer: qv_min passes it on, and its conversion saturates downwards. */
QK_INLINE void store_integers(qdq_dtype dtype, char *to, size_t n, iblock q) {
    if (dtype == QDQ_DTYPE_S32)
        QV_EACH(qv_store4(to + 4 * QV_LANES * k, QV_LEFT(n, k), q.v[k]));
    else
        qv_store1(to, n, q.v, dtype == QDQ_DTYPE_S8);
}

QK_INLINE void store(qdq_dtype dtype, char *to, size_t n, block b) {
    iblock q;
    QK_FOUR_TIMES(k, q.v[k] = qv_bits(b.v[k]));
    switch ((int)dtype) {
    case QDQ_DTYPE_F32: QV_EACH(qv_store4(to + 4 * QV_LANES * k, QV_LEFT(n, k), q.v[k])); return;
    case QDQ_DTYPE_F16: QV_EACH(qv_store2(to + 2 * QV_LANES * k, QV_LEFT(n, k), qv_to_f16(b.v[k]))); return;
    case QDQ_DTYPE_BF16:
        QV_EACH(qv_store2(to + 2 * QV_LANES * k, QV_LEFT(n, k), qv_high16(qv_bf16_rounded(b.v[k]))));
        return;
    case QDQ_DTYPE_S32:
        QK_FOUR_TIMES(k, q.v[k] = qv_seli(qv_ge(b.v[k], qv_set1(0x1p31f)), qv_set1i(INT32_MAX), qv_to_int(b.v[k])));
        break;
    default: QK_FOUR_TIMES(k, q.v[k] = qv_to_int(qv_min(qv_set1(255.0f), b.v[k]))); break;
    }
    store_integers(dtype, to, n, q);
}

static bool is_bytes(const qk_post *p) {
    return p->dst == QDQ_DTYPE_U8 || p->dst == QDQ_DTYPE_S8;
}

/* What a bound becomes. */
static int32_t quantized_bound(const qk_post *p, float bound, float scale, int32_t zp) {
    const float low = p->dst == QDQ_DTYPE_S8 ? -128.0f : 0.0f, high = p->dst == QDQ_DTYPE_S8 ? 127.0f : 255.0f;
    const float v = rintf(bound / scale + (float)zp);
    return (int32_t)(v < low ? low : v > high ? high : v);
}

static shared share(const qk_post *p, const qk_post_args *a) {
    const qv_f one = qv_set1(1.0f), zero = qv_set1(0.0f);
    const int32_t zp = p->dst_has_zp ? a->dst_zp : 0;
    shared s = {.scale = one, .recip = one, .low = zero, .limit = zero, .zp = qv_set1((float)zp)};
    s.factor = one;
    s.shift = zero;
    if (!p->dst_quantized) return s;
    s.scale = qv_set1(a->dst_scale);
    s.is_tame = is_bytes(p) && qk_divisor_ok(a->dst_scale, zp);
    s.recip = qv_div(one, s.scale);
    s.low = qv_mul(qv_fnma(s.scale, s.recip, one), s.recip);
    s.limit = qv_set1(fabsf(a->dst_scale) * QK_QUOTIENT_LIMIT);
    s.is_fixed = is_bytes(p) && qk_fixed_ok(a->dst_scale, zp);
    if (!s.is_fixed) return s;
    s.factor = qv_mul(s.recip, qv_set1(QK_FIXED_ONE));
    s.shift = qv_set1(qk_fixed_shift(zp));
    float low, high;
    bool is_rounded;
    s.is_bound = qk_post_bounds(p, &low, &high, &is_rounded) && !is_rounded && a->dst_scale > 0.0f && !isnan(low) &&
                 !isnan(high);
    s.least = quantized_bound(p, s.is_bound ? low : -INFINITY, fabsf(a->dst_scale), zp);
    s.most = quantized_bound(p, s.is_bound ? high : INFINITY, fabsf(a->dst_scale), zp);
    return s;
}

/* kernels/simd/divide.h; a NaN stays one. */
QK_INLINE qv_f quotient(const shared *s, qv_f x) {
    if (!s->is_tame) return qv_div(x, s->scale);
    x = qv_max(qv_neg(s->limit), qv_min(s->limit, x));
    const qv_f q = qv_fma(x, s->recip, qv_mul(x, s->low));
    return qv_fma(qv_fnma(q, s->scale, x), s->recip, q);
}

/* Quantized bytes by way of fixed-point numbers. False, and nothing written, when one is not sure. */
QK_INLINE bool store_fixed(const shared *s, bool is_signed, char *to, size_t n, block v) {
    iblock w;
    QK_FOUR_TIMES(k, w.v[k] = qv_set1i(QK_FIXED_SURE));
    QV_EACH(w.v[k] = QKX(fixed)(v.v[k], s->factor, s->shift));
    if (!qkw_fixed_all_sure(w.v)) return false;
    if (n >= BLOCK) {
        const qkw_i least = QKW(set1_epi8)((int8_t)s->least), most = QKW(set1_epi8)((int8_t)s->most);
        if (is_signed)
            qkw_store(to, QKW(min_epi8)(QKW(max_epi8)(QKX(fixed_bytes)(w.v, true), least), most));
        else
            qkw_store(to, QKW(min_epu8)(QKW(max_epu8)(QKX(fixed_bytes)(w.v, false), least), most));
    } else {
        const qkw_i least = qv_set1i(s->least), most = qv_set1i(s->most);
        QK_FOUR_TIMES(k, w.v[k] = QKW(min_epi32)(QKW(max_epi32)(qv_srai(w.v[k], 16), least), most));
        qv_store1(to, n, w.v, is_signed);
    }
    return true;
}

/* The same by way of the quotients: rare, and kept out of the loops, whose vectors stay in registers for it. */
static __attribute__((noinline)) void store_quotients(const shared *s, bool is_signed, char *to, size_t n, block v) {
    iblock q;
    QK_FOUR_TIMES(k, q.v[k] = qv_to_int(qv_min(qv_set1(255.0f), qv_add(quotient(s, v.v[k]), s->zp))));
    qv_store1(to, n, q.v, is_signed);
}

/* The accumulator's integers with all that is added to them. */
QK_INLINE iblock integer_part(const qk_post *p, const qk_post_args *a, const char *acc, size_t row, size_t col,
                              size_t n) {
    iblock i = load_integers(p->acc, acc, n);
    if (p->has_add_common) QK_FOUR_TIMES(k, i.v[k] = qv_addi(i.v[k], qv_set1i(a->add_common)));
    if (p->has_col_add) QV_EACH(i.v[k] = qv_addi(i.v[k], qv_load4(a->col_add + col + QV_LANES * k, QV_LEFT(n, k))));
    if (p->has_row_sum) {
        const qv_i sum = qv_set1i(a->row_sum[row]);
        QV_EACH(i.v[k] = qv_addi(i.v[k], qv_muli(sum, qv_load4(a->col_mul + col + QV_LANES * k, QV_LEFT(n, k)))));
    }
    if (p->bias_first)
        QV_EACH({
            const qv_i x = i.v[k], b = qv_load4((const int32_t *)a->bias + col + QV_LANES * k, QV_LEFT(n, k));
            const qv_i s = qv_addi(x, b), over = qv_andi(qv_xori(x, s), qv_xori(b, s));
            i.v[k] = qv_seli(qv_signi(over), qv_xori(qv_srai(b, 31), qv_set1i(INT32_MAX)), s);
        });
    return i;
}

QK_INLINE block scaled(const qk_post *p, const qk_post_args *a, block v, size_t row, size_t col, size_t n) {
    if (p->scale == QK_POST_SCALE_NONE) return v;
    if (p->scale != QK_POST_SCALE_COL) {
        const qv_f s = qv_set1(p->scale == QK_POST_SCALE_ROW ? a->scale_common * a->scale[row] : a->scale_common);
        QK_FOUR_TIMES(k, v.v[k] = qv_mul(v.v[k], s));
        return v;
    }
    const qv_f s = qv_set1(a->scale_common);
    const block w = load(QDQ_DTYPE_F32, (const char *)(a->scale + col), n);
    QK_FOUR_TIMES(k, v.v[k] = qv_mul(v.v[k], qv_mul(s, w.v[k])));
    return v;
}

QK_INLINE block operand_of(const qk_post *p, const qk_post_args *a, uint32_t i, size_t row, size_t col, size_t n) {
    const qk_post_step *s = &p->steps[i];
    if (s->op == QK_POST_SUM)
        return load(s->dtype, elem(s->dtype, a->dst, (ptrdiff_t)row * a->dst_stride + (ptrdiff_t)col), n);
    const ptrdiff_t at = (ptrdiff_t)row * a->operands[i].row_stride;
    if (!s->per_col) return same(qk_post_load(s->dtype, a->operands[i].data, at));
    return load(s->dtype, elem(s->dtype, a->operands[i].data, at + (ptrdiff_t)col), n);
}

/* Up to BLOCK columns of one row; n is a constant when it is BLOCK. */
QK_INLINE void run_row(const qk_post *p, const qk_post_args *a, const shared *s, const char *acc, size_t row,
                       size_t col, size_t n) {
    char *to = (char *)a->dst + ((ptrdiff_t)row * a->dst_stride + (ptrdiff_t)col) * (ptrdiff_t)qk_post_bytes(p->dst);
    block v;
    if (qk_post_is_integer(p->acc)) {
        iblock i = integer_part(p, a, acc, row, col, n);
        v = to_floats(i);
        if (qk_post_is_exact(p)) {
            /* the zero point may lead out of s32: towards its end, where a narrower type saturates, too */
            if (p->dst_has_zp) {
                const qv_i zp = qv_set1i(a->dst_zp);
                QK_FOUR_TIMES(k, {
                    const qv_i x = i.v[k], sum = qv_addi(x, zp);
                    const qv_i over = qv_andi(qv_xori(x, sum), qv_xori(zp, sum));
                    i.v[k] = qv_seli(qv_signi(over), qv_xori(qv_srai(zp, 31), qv_set1i(INT32_MAX)), sum);
                });
            }
            store_integers(p->dst, to, n, i);
            return;
        }
    } else {
        v = load(p->acc, acc, n);
    }
    v = scaled(p, a, v, row, col, n);
    if (p->bias != QDQ_DTYPE_UNDEF && !p->bias_first) {
        const block b = p->bias_per_row ? same(qk_post_load(p->bias, a->bias, (ptrdiff_t)row))
                                        : load(p->bias, elem(p->bias, a->bias, (ptrdiff_t)col), n);
        QK_FOUR_TIMES(k, v.v[k] = qv_add(v.v[k], b.v[k]));
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        block w = v;
        if (qk_post_has_operand(p->steps[i].op)) w = operand_of(p, a, i, row, col, n);
        v = apply(&p->steps[i], v, w);
    }
    if (s->is_fixed) {
        if (!store_fixed(s, p->dst == QDQ_DTYPE_S8, to, n, v)) store_quotients(s, p->dst == QDQ_DTYPE_S8, to, n, v);
        return;
    }
    if (p->dst_quantized) QK_FOUR_TIMES(k, v.v[k] = quotient(s, v.v[k]));
    if (p->dst_has_zp) QK_FOUR_TIMES(k, v.v[k] = qv_add(v.v[k], s->zp));
    store(p->dst, to, n, v);
}

/* ---- the common programs: (acc [+ col_add]) * scale [+ bias], relu or clip, to bytes or f32 ------------------------------------ */

/* s32 to bytes, s32 to f32, f32 to f32, f32 to bytes */
typedef enum form { TO_BYTES, TO_FLOATS, FLOATS, FLOATS_TO_BYTES } form;
/* No steps, zero point or quotient but what saturation brings anyway; all of them; and bytes in fixed point. */
typedef enum ending { BARE, FULL, FIXED } ending;

/* Relu or clip, then rounding, to f32 relu alone; no other steps. */
static bool are_plain_steps(const qk_post *p) {
    float low, high;
    bool is_rounded;
    if (!qk_post_bounds(p, &low, &high, &is_rounded)) return false;
    return p->dst != QDQ_DTYPE_F32 || p->n_steps == 0 || (p->n_steps == 1 && p->steps[0].op == QK_POST_RELU);
}

static bool is_plain(const qk_post *p) {
    const bool bytes = is_bytes(p), floats = p->dst == QDQ_DTYPE_F32;
    const bool scaled = p->scale == QK_POST_SCALE_COL || p->scale == QK_POST_SCALE_COMMON;
    if (p->has_add_common || p->has_row_sum || p->bias_first || p->bias_per_row || !are_plain_steps(p)) return false;
    if (p->bias != QDQ_DTYPE_UNDEF && p->bias != QDQ_DTYPE_F32) return false;
    if (floats && (p->dst_quantized || p->dst_has_zp)) return false;
    if (p->acc == QDQ_DTYPE_F32)
        return (floats || (bytes && p->dst_quantized)) && (scaled || p->scale == QK_POST_SCALE_NONE);
    return p->acc == QDQ_DTYPE_S32 && (bytes || floats) && scaled;
}

/* n columns in n_vectors vectors, of all rows. Scales, compensations and biases of the columns stay in registers. n_vectors, the
 * form, has_bias and the ending are constants of the caller, and so is n when the last vector is full. */
QK_INLINE void run_plain(const qk_post *p, const qk_post_args *a, const shared *s, const char *acc, size_t acc_bytes,
                         size_t row, size_t n_rows, size_t col, size_t n, size_t n_vectors, form to_what, bool has_bias,
                         ending end) {
#define EACH_VECTOR(...) QK_FOUR_TIMES(k, if ((size_t)k < n_vectors) __VA_ARGS__)
    const bool of_floats = to_what == FLOATS || to_what == FLOATS_TO_BYTES;
    const bool to_bytes = to_what == TO_BYTES || to_what == FLOATS_TO_BYTES;
    const bool is_signed = p->dst == QDQ_DTYPE_S8, has_add = p->has_col_add && !of_floats;
    const bool has_scale = !of_floats || p->scale != QK_POST_SCALE_NONE;
    const bool has_first = p->n_steps > 0 && p->steps[0].op != QK_POST_ROUND;
    const bool is_relu = has_first && p->steps[0].op == QK_POST_RELU, is_clip = has_first && !is_relu;
    const bool is_rounded = p->n_steps > has_first, is_quotient = p->dst_quantized;
    const qv_f low = qv_set1(is_clip ? p->steps[0].alpha : 0.0f), high = qv_set1(is_clip ? p->steps[0].beta : 0.0f);
    const qv_f common = qv_set1(a->scale_common);
    iblock add;
    block scale, bias = same(0.0f);
    QK_FOUR_TIMES(k, add.v[k] = qv_set1i(0));
    QK_FOUR_TIMES(k, scale.v[k] = common);
    if (has_add) EACH_VECTOR(add.v[k] = qv_load4(a->col_add + col + QV_LANES * k, QV_LEFT(n, k)));
    if (p->scale == QK_POST_SCALE_COL)
        EACH_VECTOR(scale.v[k] = qv_mul(common, qv_of_bits(qv_load4(a->scale + col + QV_LANES * k, QV_LEFT(n, k)))));
    if (has_bias)
        EACH_VECTOR(bias.v[k] = qv_of_bits(qv_load4((const float *)a->bias + col + QV_LANES * k, QV_LEFT(n, k))));
    const ptrdiff_t elem = to_bytes ? 1 : 4;
    const ptrdiff_t step = a->dst_stride * elem;
    const shared own = *s; /* in registers, whatever is stored to */
    size_t unsure = 0;     /* rows */
    char *to = (char *)a->dst + ((ptrdiff_t)row * a->dst_stride + (ptrdiff_t)col) * elem;
    for (size_t r = 0; r < n_rows; r++, acc += acc_bytes, to += step) {
        iblock q;
        block v = same(0.0f);
        QK_FOUR_TIMES(k, q.v[k] = qv_set1i(0));
        EACH_VECTOR(q.v[k] = qv_load4(acc + 4 * QV_LANES * k, QV_LEFT(n, k)));
        if (has_add) EACH_VECTOR(q.v[k] = qv_addi(q.v[k], add.v[k]));
        EACH_VECTOR(v.v[k] = of_floats ? qv_of_bits(q.v[k]) : qv_of_int(q.v[k]));
        if (has_scale) EACH_VECTOR(v.v[k] = qv_mul(v.v[k], scale.v[k]));
        if (has_bias) EACH_VECTOR(v.v[k] = qv_add(v.v[k], bias.v[k]));
        /* where most are on ties, the bytes are not tried */
        if (end == FIXED && 4 * unsure <= r + 16 && store_fixed(&own, is_signed, to, n, v)) continue;
        if (end != BARE) {
            if (is_relu) EACH_VECTOR(v.v[k] = qv_max(low, v.v[k]));
            if (is_clip) EACH_VECTOR(v.v[k] = CLIP(v.v[k], low, high));
            if (to_bytes && is_rounded) EACH_VECTOR(v.v[k] = qv_rint(v.v[k]));
        }
        if (end == FIXED) {
            unsure++;
            store_quotients(s, is_signed, to, n, v);
        } else if (to_bytes) {
            if (end == FULL && is_quotient) EACH_VECTOR(v.v[k] = quotient(s, v.v[k]));
            if (end == FULL) EACH_VECTOR(v.v[k] = qv_add(v.v[k], s->zp));
            EACH_VECTOR(q.v[k] = qv_to_int(qv_min(qv_set1(255.0f), v.v[k])));
            qv_store1(to, n, q.v, is_signed);
        } else {
            EACH_VECTOR(qv_store4(to + 4 * QV_LANES * k, QV_LEFT(n, k), qv_bits(v.v[k])));
        }
    }
#undef EACH_VECTOR
}

/* The forms of run_plain: less than a vector, and whole ones. */
typedef void plain_fn(const qk_post *p, const qk_post_args *a, const shared *s, const char *acc, size_t acc_bytes,
                      size_t row, size_t n_rows, size_t col, size_t n_cols);
#define PLAIN(name, n_vectors, n, to_what, has_bias, end)                                                              \
    static void name(const qk_post *p, const qk_post_args *a, const shared *s, const char *acc, size_t acc_bytes,      \
                     size_t row, size_t n_rows, size_t col, size_t n_cols) {                                           \
        (void)n_cols;                                                                                                  \
        run_plain(p, a, s, acc, acc_bytes, row, n_rows, col, n, n_vectors, to_what, has_bias, end);                    \
    }
#define PLAINS(name, to_what, has_bias, end)                                                                           \
    PLAIN(name##0, 1, n_cols, to_what, has_bias, end)                                                                  \
    PLAIN(name##1, 1, QV_LANES, to_what, has_bias, end)                                                                \
    PLAIN(name##2, 2, 2 * QV_LANES, to_what, has_bias, end)                                                            \
    PLAIN(name##3, 3, 3 * QV_LANES, to_what, has_bias, end)                                                            \
    PLAIN(name##4, 4, BLOCK, to_what, has_bias, end)
#define PLAIN_FORMS(name, to_what)                                                                                     \
    PLAINS(name##_bare, to_what, false, BARE)                                                                          \
    PLAINS(name##_full, to_what, false, FULL)                                                                          \
    PLAINS(name##_bias_bare, to_what, true, BARE)                                                                      \
    PLAINS(name##_bias_full, to_what, true, FULL)
PLAIN_FORMS(bytes, TO_BYTES)
PLAIN_FORMS(to_floats, TO_FLOATS)
PLAIN_FORMS(floats, FLOATS)
PLAINS(bytes_fixed, TO_BYTES, false, FIXED)
PLAINS(bytes_bias_fixed, TO_BYTES, true, FIXED)
PLAINS(floats_fixed, FLOATS_TO_BYTES, false, FIXED)
PLAINS(floats_bias_fixed, FLOATS_TO_BYTES, true, FIXED)

#define NAMES(name)                                                                                                    \
    { name##0, name##1, name##2, name##3, name##4 }
#define FORM_NAMES(name)                                                                                               \
    {                                                                                                                  \
        {NAMES(name##_bare), NAMES(name##_full)}, {                                                                    \
            NAMES(name##_bias_bare), NAMES(name##_bias_full)                                                           \
        }                                                                                                              \
    }
/* By form, bias, bare or full, whole vectors; and of FIXED, by the type of the accumulator. */
static plain_fn *const plain_forms[3][2][2][5] = {FORM_NAMES(bytes), FORM_NAMES(to_floats), FORM_NAMES(floats)};
static plain_fn *const fixed_forms[2][2][5] = {{NAMES(bytes_fixed), NAMES(bytes_bias_fixed)},
                                               {NAMES(floats_fixed), NAMES(floats_bias_fixed)}};

/* False: not a job for these loops. */
QK_INLINE bool run_plains(const qk_post *p, const qk_post_args *a, const shared *s, const char *acc, size_t acc_stride,
                          size_t row, size_t n_rows, size_t col, size_t n_cols) {
    const bool of_floats = p->acc == QDQ_DTYPE_F32, has_bias = p->bias != QDQ_DTYPE_UNDEF;
    const form to_what = of_floats ? FLOATS : p->dst == QDQ_DTYPE_F32 ? TO_FLOATS : TO_BYTES;
    /* the floor of a relu is what u8 saturates to */
    const bool no_steps =
        p->n_steps == 0 || (p->n_steps == 1 && p->steps[0].op == QK_POST_RELU && p->dst == QDQ_DTYPE_U8);
    const bool is_bare = no_steps && !p->dst_has_zp && !p->dst_quantized;
    plain_fn *const *forms = s->is_bound ? fixed_forms[of_floats][has_bias] : plain_forms[to_what][has_bias][!is_bare];
    if (of_floats && is_bytes(p) && !s->is_bound) return false;
    for (size_t c = 0, n; c < n_cols; c += n) {
        const size_t left = n_cols - c, vectors = left >= BLOCK ? 4 : left / QV_LANES;
        n = vectors == 0 ? left : vectors * QV_LANES;
        forms[vectors](p, a, s, acc + 4 * c, 4 * acc_stride, row, n_rows, col + c, n);
    }
    return true;
}

/* The accumulator is the result. */
QK_INLINE bool is_copy(const qk_post *p) {
    return p->acc == p->dst && qk_post_bytes(p->acc) == 4 && !p->has_add_common && !p->has_col_add && !p->has_row_sum &&
           p->scale == QK_POST_SCALE_NONE && p->bias == QDQ_DTYPE_UNDEF && p->n_steps == 0 && !p->dst_quantized &&
           !p->dst_has_zp;
}

QK_INLINE void copy_rows(const qk_post_args *a, const char *acc, size_t acc_stride, size_t row, size_t n_rows,
                         size_t col, size_t n_cols) {
    for (size_t r = 0; r < n_rows; r++, acc += 4 * acc_stride) {
        char *to = (char *)a->dst + ((ptrdiff_t)(row + r) * a->dst_stride + (ptrdiff_t)col) * 4;
        size_t c = 0;
        for (; n_cols - c >= QV_LANES; c += QV_LANES)
            qv_storei(to + 4 * c, qv_loadi(acc + 4 * c));
        if (c < n_cols) qv_store4(to + 4 * c, n_cols - c, qv_load4(acc + 4 * c, n_cols - c));
    }
}

QK_INLINE void post_run(const qk_post *p, const qk_post_args *a, const void *acc, size_t acc_stride, size_t row,
                        size_t n_rows, size_t col, size_t n_cols) {
    const size_t acc_elem = qk_post_bytes(p->acc);
    const char *from = acc;
    if (is_copy(p)) {
        copy_rows(a, from, acc_stride, row, n_rows, col, n_cols);
        return;
    }
    const shared s = share(p, a);
    if (is_plain(p) && run_plains(p, a, &s, from, acc_stride, row, n_rows, col, n_cols)) return;
    for (size_t r = 0; r < n_rows; r++) {
        const char *at = from + r * acc_stride * acc_elem;
        size_t i = 0;
        for (; n_cols - i >= BLOCK; i += BLOCK)
            run_row(p, a, &s, at + i * acc_elem, row + r, col + i, BLOCK);
        if (i < n_cols) run_row(p, a, &s, at + i * acc_elem, row + r, col + i, n_cols - i);
    }
}

#endif
