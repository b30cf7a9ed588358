/* The vector levels of the family, written once for both widths. */
#include "kernels/binary/binary_row.h"
#include "kernels/simd/wide.h"

#include <math.h>
#include <string.h>

/* Four registers of elements at a time. What a chain consists of is asked once per block: the same answers every time, which the
 * branch predictor knows after the first. */
enum { LANES = QKW_LANES, BLOCK = 4 * LANES };

typedef struct block {
    qkw_f v[4];
} block;

QK_INLINE block load(const qk_binary_end *end, const char *p) {
    block b;
    if (end->dtype == QDQ_DTYPE_F32) {
        QK_FOUR_TIMES(k, b.v[k] = QKW(loadu_ps)((const float *)(const void *)p + LANES * k));
    } else if (end->dtype == QDQ_DTYPE_S32) {
        QK_FOUR_TIMES(k, b.v[k] = QKW(cvtepi32_ps)(qkw_load(p + 4 * LANES * k)));
    } else if (end->dtype == QDQ_DTYPE_BF16) {
        QK_FOUR_TIMES(k, b.v[k] = qkw_as_f(QKW(slli_epi32)(qkw_load_u16(p + 2 * LANES * k), 16)));
    } else {
        qkw_f scale = QKW(set1_ps)(end->scale);
        qkw_i q[4], zp = QKW(set1_epi32)(end->zp);
        if (end->dtype == QDQ_DTYPE_S8)
            QK_FOUR_TIMES(k, q[k] = QKX(load8)(p + LANES * k, true));
        else
            QK_FOUR_TIMES(k, q[k] = QKX(load8)(p + LANES * k, false));
        if (end->zp != 0) QK_FOUR_TIMES(k, q[k] = QKW(sub_epi32)(q[k], zp));
        QK_FOUR_TIMES(k, b.v[k] = QKW(mul_ps)(QKW(cvtepi32_ps)(q[k]), scale));
    }
    return b;
}

#define EACH(expression)                                                                                               \
    QK_FOUR_TIMES(k, v.v[k] = (expression));                                                                           \
    break

QK_INLINE block apply(qk_binary_op op, block v, block w) {
    switch (op) {
    case QK_BINARY_ADD: EACH(QKW(add_ps)(v.v[k], w.v[k]));
    case QK_BINARY_SUB: EACH(QKW(sub_ps)(v.v[k], w.v[k]));
    case QK_BINARY_SUB_REV: EACH(QKW(sub_ps)(w.v[k], v.v[k]));
    case QK_BINARY_MUL: EACH(QKW(mul_ps)(v.v[k], w.v[k]));
    case QK_BINARY_DIV: EACH(QKW(div_ps)(v.v[k], w.v[k]));
    case QK_BINARY_DIV_REV: EACH(QKW(div_ps)(w.v[k], v.v[k]));
    case QK_BINARY_MAX: EACH(QKW(max_ps)(v.v[k], w.v[k]));
    case QK_BINARY_MIN: EACH(QKW(min_ps)(v.v[k], w.v[k]));
    }
    return v;
}

/* The destination's quantization, ready to use. */
typedef struct target {
    QKX(divisor) divisor;
    qkw_f factor, shift; /* of the fixed-point way, if it may be gone */
    qkw_i zp;
    bool is_fixed;
    bool
        stream; /* past the caches: every block begins with a whole register. Bytes are too few for it to pay: measured */
} target;

static target target_of(const qk_binary *chain, const void *to) {
    const qk_binary_end *dst = &chain->dst;
    const float scale = dst->dtype == QDQ_DTYPE_F32 ? 1.0f : dst->scale;
    target t = {.divisor = QKX(divisor_of)(QKW(set1_ps)(scale)),
                .zp = QKW(set1_epi32)(dst->zp),
                .is_fixed = dst->dtype != QDQ_DTYPE_F32 && qk_fixed_ok(scale, dst->zp),
                .stream = chain->stream && dst->dtype == QDQ_DTYPE_F32 && (uintptr_t)to % BLOCK == 0};
    t.factor = QKW(mul_ps)(t.divisor.recip, QKW(set1_ps)(QK_FIXED_ONE));
    t.shift = QKW(set1_ps)(qk_fixed_shift(t.is_fixed ? dst->zp : 0));
    return t;
}

/* By way of the quotient. */
static __attribute__((noinline)) void store_exact(const qk_binary *chain, const target *t, char *dst, const block *b) {
    qkw_i q[4];
    const qkw_f zp = QKW(cvtepi32_ps)(t->zp);
    QK_FOUR_TIMES(k, qkw_f v = QKX(divide)(t->divisor, b->v[k]);
                  q[k] = chain->add_zp_first ? QKX(round)(v, t->zp, zp, true) : QKX(round)(v, t->zp, zp, false));
    qkw_store(dst, chain->dst.dtype == QDQ_DTYPE_S8 ? QKX(pack8)(q, true) : QKX(pack8)(q, false));
}

QK_INLINE void put(char *dst, qkw_i v, bool stream) {
    if (stream)
        qkw_stream(dst, v);
    else
        qkw_store(dst, v);
}

QK_INLINE void store(const qk_binary *chain, const target *t, char *dst, block b, bool stream) {
    if (chain->dst.dtype == QDQ_DTYPE_F32) {
        QK_FOUR_TIMES(k, put(dst + 4 * LANES * k, qkw_as_i(b.v[k]), stream));
        return;
    }
    qkw_i w[4];
    QK_FOUR_TIMES(k, w[k] = QKX(fixed)(b.v[k], t->factor, t->shift));
    if (!t->is_fixed || !qkw_fixed_all_sure(w))
        store_exact(chain, t, dst, &b);
    else
        put(dst, chain->dst.dtype == QDQ_DTYPE_S8 ? QKX(fixed_bytes)(w, true) : QKX(fixed_bytes)(w, false), stream);
}

QK_INLINE const char *at(const qk_binary_end *end, const void *data, size_t i) {
    return (const char *)data + (end->step ? i * qk_binary_bytes(end->dtype) : 0);
}

/* The chain on one block; operands with step 0 are in `scalars`, the source's last. */
QK_INLINE void run_block(const qk_binary *chain, const target *t, const float *scalars, const void *src,
                         const void *const *operands, size_t i, char *dst, bool stream) {
    block v;
    if (chain->src.step)
        v = load(&chain->src, at(&chain->src, src, i));
    else
        QK_FOUR_TIMES(k, v.v[k] = QKW(set1_ps)(scalars[QK_BINARY_MAX_STEPS]));
    for (uint32_t s = 0; s < chain->n_steps; s++) {
        const qk_binary_end *end = &chain->steps[s].operand;
        block w;
        if (end->step)
            w = load(end, at(end, operands[s], i));
        else
            QK_FOUR_TIMES(k, w.v[k] = QKW(set1_ps)(scalars[s]));
        v = apply(chain->steps[s].op, v, w);
    }
    store(chain, t, dst, v, stream);
}

static __attribute__((noinline)) void run_unsure(const qk_binary *chain, const target *t, const float *scalars,
                                                 const void *src, const void *const *operands, size_t i, char *dst) {
    run_block(chain, t, scalars, src, operands, i, dst, false);
}

/* The last elements, by way of a whole block; room for the widest source. */
static void run_tail(const qk_binary *chain, const target *t, const float *scalars, const void *src,
                     const void *const *operands, size_t i, size_t n, char *dst) {
    float in[QK_BINARY_MAX_STEPS + 1][BLOCK], out[BLOCK];
    const void *in_operands[QK_BINARY_MAX_STEPS];
    for (uint32_t s = 0; s <= chain->n_steps; s++) {
        const qk_binary_end *end = s < chain->n_steps ? &chain->steps[s].operand : &chain->src;
        const void *data = s < chain->n_steps ? operands[s] : src;
        memset(in[s], 0, sizeof in[s]);
        if (end->step) memcpy(in[s], at(end, data, i), n * qk_binary_bytes(end->dtype));
        if (s < chain->n_steps) in_operands[s] = in[s];
    }
    run_block(chain, t, scalars, in[chain->n_steps], in_operands, 0, (char *)out, false);
    memcpy(dst + i * qk_binary_bytes(chain->dst.dtype), out, n * qk_binary_bytes(chain->dst.dtype));
}

static bool zp_ok(const qk_binary_end *end) {
    return end->zp >= -(1 << 30) && end->zp <= 1 << 30;
}

/* The common chain, bytes with bytes to bytes and perhaps a Relu or Clip: what the other form asks per block is asked once here.
 * Returns how many elements are done. */
QK_INLINE size_t run_pair(const qk_binary *chain, const target *t, const float *scalars, const char *a, const char *b,
                          char *dst, size_t n, bool is_signed, qk_binary_op op, bool relu) {
    const qk_binary_end *x = &chain->src, *y = &chain->steps[0].operand;
    const qkw_f x_scale = QKW(set1_ps)(x->scale), y_scale = QKW(set1_ps)(y->scale), bound = QKW(set1_ps)(scalars[1]);
    const qkw_i x_zp = QKW(set1_epi32)(x->zp), y_zp = QKW(set1_epi32)(y->zp);
    const bool has_zp = x->zp != 0 || y->zp != 0, to_signed = chain->dst.dtype == QDQ_DTYPE_S8;
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK) {
        block v, w;
        qkw_i p[4], q[4], f[4];
        QK_FOUR_TIMES(k, p[k] = QKX(load8)(a + i + LANES * k, is_signed);
                      q[k] = QKX(load8)(b + i + LANES * k, is_signed));
        if (has_zp) QK_FOUR_TIMES(k, p[k] = QKW(sub_epi32)(p[k], x_zp); q[k] = QKW(sub_epi32)(q[k], y_zp));
        QK_FOUR_TIMES(k, v.v[k] = QKW(mul_ps)(QKW(cvtepi32_ps)(p[k]), x_scale);
                      w.v[k] = QKW(mul_ps)(QKW(cvtepi32_ps)(q[k]), y_scale));
        v = apply(op, v, w);
        if (relu) QK_FOUR_TIMES(k, v.v[k] = QKW(max_ps)(v.v[k], bound));
        QK_FOUR_TIMES(k, f[k] = QKX(fixed)(v.v[k], t->factor, t->shift));
        if (!qkw_fixed_all_sure(f))
            store_exact(chain, t, dst + i, &v);
        else
            put(dst + i, to_signed ? QKX(fixed_bytes)(f, true) : QKX(fixed_bytes)(f, false), t->stream);
    }
    return i;
}

static bool is_pair(const qk_binary *chain, const target *t) {
    const qk_binary_end *x = &chain->src, *y = &chain->steps[0].operand;
    const bool relu = chain->n_steps == 2 && chain->steps[1].op == QK_BINARY_MAX && chain->steps[1].operand.step == 0;
    return t->is_fixed && chain->dst.dtype != QDQ_DTYPE_F32 && (chain->n_steps == 1 || relu) && x->dtype == y->dtype &&
           (x->dtype == QDQ_DTYPE_S8 || x->dtype == QDQ_DTYPE_U8) && x->step == 1 && y->step == 1;
}

static size_t run_known(const qk_binary *chain, const target *t, const float *scalars, const void *a, const void *b,
                        void *dst, size_t n) {
    const bool is_signed = chain->src.dtype == QDQ_DTYPE_S8, relu = chain->n_steps == 2;
#define OF_OP(op)                                                                                                      \
    case op:                                                                                                           \
        return is_signed ? relu ? run_pair(chain, t, scalars, a, b, dst, n, true, op, true)                            \
                                : run_pair(chain, t, scalars, a, b, dst, n, true, op, false)                           \
               : relu ? run_pair(chain, t, scalars, a, b, dst, n, false, op, true)                                     \
                         : run_pair(chain, t, scalars, a, b, dst, n, false, op, false)
    switch ((int)chain->steps[0].op) {
        OF_OP(QK_BINARY_ADD);
        OF_OP(QK_BINARY_MUL);
    default: return 0;
    }
#undef OF_OP
}

/* A sum or difference of bytes, in fixed point as a whole: a * k1 + b * k2 + shift is the result as kernels/simd/divide.h has it, with
 * the zero points of the sources in the shift. Against the chain, an operation at a time, it is off by no more than `near` units:
 * with B the largest that both products can be (in results), each of the roundings of factors, products and sums brings B/256
 * at most, and those of shift, conversion and result 7. What follows, scalar bounds, is done to the results: quantization keeps
 * the order. */
typedef struct linear {
    qkw_f k1, k2, shift;
    qkw_i sure, least, most;
} linear;

static bool linear_of(const qk_binary *chain, const target *t, const float *scalars, linear *out) {
    const qk_binary_end *x = &chain->src, *y = &chain->steps[0].operand, *d = &chain->dst;
    const qk_binary_op op = chain->steps[0].op;
    if (!t->is_fixed || !(d->scale > 0.0f) || x->dtype != y->dtype ||
        (x->dtype != QDQ_DTYPE_S8 && x->dtype != QDQ_DTYPE_U8) || x->step != 1 || y->step != 1 ||
        op > QK_BINARY_SUB_REV || chain->n_steps > 3)
        return false;
    const double k1 = (double)x->scale / d->scale * (op == QK_BINARY_SUB_REV ? -1.0 : 1.0);
    const double k2 = (double)y->scale / d->scale * (op == QK_BINARY_SUB ? -1.0 : 1.0);
    const double most = fabs(k1) * (255.0 + fabs((double)x->zp)) + fabs(k2) * (255.0 + fabs((double)y->zp));
    const double error = 5.0 * most / 256.0 + 7.0;
    if (!(error < 31.0) || fabs((double)x->scale) < 0x1p-60 || fabs((double)y->scale) < 0x1p-60)
        return false; /* or a NaN */
    const int near = error < 16.0 ? 16 : 32;
    const double one = (double)QK_FIXED_ONE;
    out->k1 = QKW(set1_ps)((float)(k1 * one));
    out->k2 = QKW(set1_ps)((float)(k2 * one));
    out->shift = QKW(set1_ps)((float)((d->zp - k1 * x->zp - k2 * y->zp) * one + 32768.0 + near));
    out->sure = QKW(set1_epi32)(0xffff & ~(2 * near - 1));
    /* a row of bounds, each done to both ends of what is left by those before */
    const bool to_signed = d->dtype == QDQ_DTYPE_S8;
    int32_t lowest = to_signed ? -128 : 0, highest = to_signed ? 127 : 255;
    for (uint32_t k = 1; k < chain->n_steps; k++) {
        const qk_binary_step *step = &chain->steps[k];
        if (step->operand.step || (step->op != QK_BINARY_MAX && step->op != QK_BINARY_MIN) || isnan(scalars[k]))
            return false;
        const qk_binary one_value = {
            .src = {QDQ_DTYPE_F32, 0.0f, 0, 1}, .dst = *d, .add_zp_first = chain->add_zp_first};
        uint8_t byte;
        qk_binary_ref(&one_value, &scalars[k], NULL, &byte, 1);
        const int32_t bound = to_signed ? (int8_t)byte : byte;
        const bool is_max = step->op == QK_BINARY_MAX;
        lowest = is_max == (bound > lowest) ? bound : lowest;
        highest = is_max == (bound > highest) ? bound : highest;
    }
    out->least = QKW(set1_epi8)((char)lowest);
    out->most = QKW(set1_epi8)((char)highest);
    return true;
}

QK_INLINE qkw_i bounded(const linear *l, qkw_i bytes, bool to_signed) {
    return to_signed ? QKW(min_epi8)(QKW(max_epi8)(bytes, l->least), l->most)
                     : QKW(min_epu8)(QKW(max_epu8)(bytes, l->least), l->most);
}

QK_INLINE size_t run_linear(const qk_binary *chain, const linear *l, const target *t, const float *scalars,
                            const char *a, const void *const *operands, char *dst, size_t n, bool is_signed,
                            bool to_signed) {
    const char *b = operands[0];
    const linear own = *l; /* in registers, whatever is stored to */
    const bool stream = t->stream;
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK) {
        qkw_i w[4];
        QK_FOUR_TIMES(k, qkw_f p = QKW(cvtepi32_ps)(QKX(load8)(a + i + LANES * k, is_signed));
                      qkw_f q = QKW(cvtepi32_ps)(QKX(load8)(b + i + LANES * k, is_signed));
                      w[k] = QKW(cvtps_epi32)(QKW(fmadd_ps)(p, own.k1, QKW(fmadd_ps)(q, own.k2, own.shift))));
        if (qkw_all_sure(w, own.sure))
            put(dst + i, bounded(&own, QKX(fixed_bytes)(w, to_signed), to_signed), stream);
        else
            run_unsure(chain, t, scalars, a, operands, i, dst + i);
    }
    return i;
}

static void run(const qk_binary *chain, const void *src, const void *const *operands, void *dst, size_t n) {
    bool ok =
        zp_ok(&chain->src) && (chain->dst.dtype == QDQ_DTYPE_F32 || qk_divisor_ok(chain->dst.scale, chain->dst.zp));
    for (uint32_t s = 0; s < chain->n_steps; s++)
        ok &= zp_ok(&chain->steps[s].operand);
    if (!ok || n == 0) {
        qk_binary_ref(chain, src, operands, dst, n);
        return;
    }
    const target t = target_of(chain, dst);
    float scalars[QK_BINARY_MAX_STEPS + 1] = {0};
    if (!chain->src.step) scalars[QK_BINARY_MAX_STEPS] = qk_binary_load(&chain->src, src, 0);
    for (uint32_t s = 0; s < chain->n_steps; s++)
        if (!chain->steps[s].operand.step) scalars[s] = qk_binary_load(&chain->steps[s].operand, operands[s], 0);
    linear l;
    size_t i = 0;
    if (chain->n_steps > 0 && n >= BLOCK && linear_of(chain, &t, scalars, &l)) {
        const bool to_signed = chain->dst.dtype == QDQ_DTYPE_S8;
        if (chain->src.dtype == QDQ_DTYPE_S8)
            i = to_signed ? run_linear(chain, &l, &t, scalars, src, operands, dst, n, true, true)
                          : run_linear(chain, &l, &t, scalars, src, operands, dst, n, true, false);
        else
            i = to_signed ? run_linear(chain, &l, &t, scalars, src, operands, dst, n, false, true)
                          : run_linear(chain, &l, &t, scalars, src, operands, dst, n, false, false);
    } else if (chain->n_steps > 0 && is_pair(chain, &t)) {
        i = run_known(chain, &t, scalars, src, operands[0], dst, n);
    }
    const size_t bytes = qk_binary_bytes(chain->dst.dtype);
    for (; n - i >= BLOCK; i += BLOCK)
        run_block(chain, &t, scalars, src, operands, i, (char *)dst + i * bytes, t.stream);
    if (t.stream) _mm_sfence();
    if (i < n) run_tail(chain, &t, scalars, src, operands, i, n - i, dst);
}
