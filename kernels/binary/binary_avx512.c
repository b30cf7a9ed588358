#include "kernels/binary/binary_row.h"
#include "kernels/simd/avx512_x8.h"

#include <math.h>
#include <string.h>

/* 64 elements at a time, in four registers. What a chain consists of is asked once per block: the same answers every time,
 * which the branch predictor knows after the first. */
enum { BLOCK = 64, LANES = 16 };

typedef struct block {
    __m512 v[4];
} block;

QK_INLINE block load(const qk_binary_end *end, const char *p) {
    block b;
    if (end->dtype == QDQ_DTYPE_F32) {
        QK_FOUR_TIMES(k, b.v[k] = _mm512_loadu_ps((const float *)p + LANES * k));
    } else if (end->dtype == QDQ_DTYPE_S32) {
        QK_FOUR_TIMES(k, b.v[k] = _mm512_cvtepi32_ps(_mm512_loadu_si512(p + 4 * LANES * k)));
    } else if (end->dtype == QDQ_DTYPE_BF16) {
        QK_FOUR_TIMES(k, b.v[k] = _mm512_castsi512_ps(_mm512_slli_epi32(
                             _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p + 2 * LANES * k))), 16)));
    } else {
        __m512 scale = _mm512_set1_ps(end->scale);
        __m512i zp = _mm512_set1_epi32(end->zp);
        if (end->dtype == QDQ_DTYPE_S8)
            QK_FOUR_TIMES(k, b.v[k] = _mm512_cvtepi32_ps(_mm512_sub_epi32(qk512_load8(p + LANES * k, true), zp)));
        else
            QK_FOUR_TIMES(k, b.v[k] = _mm512_cvtepi32_ps(_mm512_sub_epi32(qk512_load8(p + LANES * k, false), zp)));
        QK_FOUR_TIMES(k, b.v[k] = _mm512_mul_ps(b.v[k], scale));
    }
    return b;
}

#define EACH(expression)                                                                                               \
    QK_FOUR_TIMES(k, v.v[k] = (expression));                                                                           \
    break

QK_INLINE block apply(qk_binary_op op, block v, block w) {
    switch (op) {
    case QK_BINARY_ADD: EACH(_mm512_add_ps(v.v[k], w.v[k]));
    case QK_BINARY_SUB: EACH(_mm512_sub_ps(v.v[k], w.v[k]));
    case QK_BINARY_SUB_REV: EACH(_mm512_sub_ps(w.v[k], v.v[k]));
    case QK_BINARY_MUL: EACH(_mm512_mul_ps(v.v[k], w.v[k]));
    case QK_BINARY_DIV: EACH(_mm512_div_ps(v.v[k], w.v[k]));
    case QK_BINARY_DIV_REV: EACH(_mm512_div_ps(w.v[k], v.v[k]));
    case QK_BINARY_MAX: EACH(_mm512_max_ps(v.v[k], w.v[k]));
    case QK_BINARY_MIN: EACH(_mm512_min_ps(v.v[k], w.v[k]));
    }
    return v;
}

/* The destination's quantization, ready to use. */
typedef struct target {
    qk512_divisor divisor;
    __m512i zp;
    __m512 zp_f32;
    bool is_tame; /* no value exceeds the divisor's limit */
} target;

QK_INLINE void store(const qk_binary *chain, const target *t, char *dst, block b) {
    if (chain->dst.dtype == QDQ_DTYPE_F32) {
        QK_FOUR_TIMES(k, _mm512_storeu_ps((float *)dst + LANES * k, b.v[k]));
        return;
    }
    __m512i q[4];
    if (t->is_tame)
        QK_FOUR_TIMES(k, b.v[k] = qk512_divide_tame(t->divisor, b.v[k]));
    else
        QK_FOUR_TIMES(k, b.v[k] = qk512_divide(t->divisor, b.v[k]));
    if (chain->add_zp_first)
        QK_FOUR_TIMES(k, q[k] = qk512_round(b.v[k], t->zp, t->zp_f32, true));
    else
        QK_FOUR_TIMES(k, q[k] = qk512_round(b.v[k], t->zp, t->zp_f32, false));
    __m512i bytes = chain->dst.dtype == QDQ_DTYPE_S8 ? qk512_pack8(q, true) : qk512_pack8(q, false);
    _mm512_storeu_si512(dst, bytes);
}

QK_INLINE const char *at(const qk_binary_end *end, const void *data, size_t i) {
    return (const char *)data + (end->step ? i * qk_binary_bytes(end->dtype) : 0);
}

/* The chain on one block; operands with step 0 are in `scalars`, the source's last. */
QK_INLINE void run_block(const qk_binary *chain, const target *t, const float *scalars, const void *src,
                         const void *const *operands, size_t i, char *dst) {
    block v;
    if (chain->src.step)
        v = load(&chain->src, at(&chain->src, src, i));
    else
        QK_FOUR_TIMES(k, v.v[k] = _mm512_set1_ps(scalars[QK_BINARY_MAX_STEPS]));
    for (uint32_t s = 0; s < chain->n_steps; s++) {
        const qk_binary_end *end = &chain->steps[s].operand;
        block w;
        if (end->step)
            w = load(end, at(end, operands[s], i));
        else
            QK_FOUR_TIMES(k, w.v[k] = _mm512_set1_ps(scalars[s]));
        v = apply(chain->steps[s].op, v, w);
    }
    store(chain, t, dst, v);
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
    run_block(chain, t, scalars, in[chain->n_steps], in_operands, 0, (char *)out);
    memcpy(dst + i * qk_binary_bytes(chain->dst.dtype), out, n * qk_binary_bytes(chain->dst.dtype));
}

static bool zp_ok(const qk_binary_end *end) {
    return end->zp >= -(1 << 30) && end->zp <= 1 << 30;
}

void qk_binary_avx512(const qk_binary *chain, const void *src, const void *const *operands, void *dst, size_t n) {
    bool ok =
        zp_ok(&chain->src) && (chain->dst.dtype == QDQ_DTYPE_F32 || qk_divisor_ok(chain->dst.scale, chain->dst.zp));
    for (uint32_t s = 0; s < chain->n_steps; s++)
        ok &= zp_ok(&chain->steps[s].operand);
    if (!ok || n == 0) {
        qk_binary_ref(chain, src, operands, dst, n);
        return;
    }
    target t = {qk512_divisor_of(_mm512_set1_ps(chain->dst.dtype == QDQ_DTYPE_F32 ? 1.0f : chain->dst.scale)),
                _mm512_set1_epi32(chain->dst.zp), _mm512_set1_ps((float)chain->dst.zp), false};
    float scalars[QK_BINARY_MAX_STEPS + 1] = {0};
    if (!chain->src.step) scalars[QK_BINARY_MAX_STEPS] = qk_binary_load(&chain->src, src, 0);
    for (uint32_t s = 0; s < chain->n_steps; s++)
        if (!chain->steps[s].operand.step) scalars[s] = qk_binary_load(&chain->steps[s].operand, operands[s], 0);
    t.is_tame = qk_binary_bound(chain, scalars) <= fabs((double)chain->dst.scale) * (double)QK_QUOTIENT_LIMIT;
    size_t i = 0, bytes = qk_binary_bytes(chain->dst.dtype);
    for (; n - i >= BLOCK; i += BLOCK)
        run_block(chain, &t, scalars, src, operands, i, (char *)dst + i * bytes);
    if (i < n) run_tail(chain, &t, scalars, src, operands, i, n - i, dst);
}
