/* What becomes of a tile's sums while they are in registers: sums as they are, bytes, or floats. Over the names of simd/vec512.h or
 * vec256.h; included by igemm_<level>.c alone, which say ALL_NEGATIVE(v). */
#ifndef QK_IGEMM_END_BODY_H
#define QK_IGEMM_END_BODY_H

#include "kernels/igemm/igemm_row.h"

#include <math.h>

typedef enum what {
    SUMS,
    BARE_BYTES, /* no more than a floor at the least u8 */
    BYTES,
    FLOATS,
    BARE_FLOATS, /* the sums, as f32; from f32 */
} what;

/* One panel's end, its vectors padded to whole ones. */
typedef struct panel_end {
    _Alignas(64) int32_t add[QK_IGEMM_COLS];
    float scale[QK_IGEMM_COLS], bias[QK_IGEMM_COLS];
    what what;
    bool is_signed, is_rounded, has_low, has_high, is_half; /* FLOATS are rounded to bf16 */
    float low, high, zp;
    size_t n_cols;
    ptrdiff_t stride_bytes; /* of rows of results */
} panel_end;

static const panel_end sums_end = {.what = SUMS, .n_cols = QK_IGEMM_COLS, .stride_bytes = 4 * QK_IGEMM_COLS};

/* Below zero where |x| < limit; a NaN is not. */
QK_INLINE qv_i below(qv_f x, float limit) {
    return qv_subi(qv_andi(qv_bits(x), qv_set1i(INT32_MAX)), qv_bits(qv_set1(limit)));
}

/* False: a value may be out of the range of s32, which |sum scale| < 2^30 and |bias| < 2^29 make sure it is not. */
static inline bool prepare_end(const qk_igemm_end *end, size_t panel, size_t n_cols, panel_end *out) {
    const size_t first = panel * QK_IGEMM_COLS;
    const qv_f common = qv_set1(end->scale_common);
    const bool is_half = end->dst == QDQ_DTYPE_BF16, is_bytes = end->dst != QDQ_DTYPE_F32 && !is_half;
    qv_i tame = qv_set1i(-1);
    for (size_t c = 0; c < n_cols; c += QV_LANES) {
        const size_t n = n_cols - c;
        qv_i add = qv_set1i(0);
        qv_f scale = common, bias = qv_set1(-0.0f); /* adding it changes nothing */
        if (end->add != NULL) add = qv_load4(end->add + first + c, n);
        if (end->scale != NULL) scale = qv_mul(common, qv_of_bits(qv_load4(end->scale + first + c, n)));
        if (end->bias != NULL) bias = qv_of_bits(qv_load4(end->bias + first + c, n));
        tame = qv_andi(tame, qv_andi(below(scale, 0.5f), below(bias, 0x1p29f)));
        qv_storei(out->add + c, add);
        qv_store(out->scale + c, scale);
        qv_store(out->bias + c, bias);
    }
    out->is_signed = end->dst == QDQ_DTYPE_S8;
    out->is_rounded = end->is_rounded;
    out->low = end->low;
    out->high = end->high;
    out->has_low = end->low != -INFINITY;
    out->has_high = end->high != INFINITY;
    out->zp = end->zp;
    out->n_cols = n_cols;
    out->is_half = is_half;
    out->stride_bytes = end->stride * (is_bytes ? 1 : is_half ? 2 : 4);
    const bool no_floor = !out->has_low || (end->low == 0.0f && !out->is_signed);
    const bool no_arithmetic = end->scale == NULL && end->bias == NULL && end->scale_common == 1.0f;
    if (!is_bytes)
        out->what = no_arithmetic && !out->has_low && !out->has_high ? BARE_FLOATS : FLOATS;
    else if (no_floor && !out->has_high && end->zp == 0.0f)
        out->what = BARE_BYTES;
    else
        out->what = BYTES;
    return !is_bytes || (ALL_NEGATIVE(tame) && fabsf(end->zp) <= 0x1p20f);
}

/* Row by row scales and biases come from L1 anew: kept in registers, they would drive sums out of theirs. */
#define FORGET(p) __asm__ volatile("" : "+r"(p))

/* One vector from column c of the panel on. */
QK_INLINE qv_f scaled(qv_f v, const panel_end *e, const size_t c) {
    return qv_add(qv_mul(v, qv_load(e->scale + c)), qv_load(e->bias + c));
}

QK_INLINE qv_f clipped(qv_f v, const panel_end *e) {
    if (e->has_low) v = qv_max(qv_set1(e->low), v);
    if (e->has_high) v = qv_min(qv_set1(e->high), v);
    return v;
}

/* To what a byte is made of by saturation; `more` is a constant of the caller, false for BARE_BYTES. */
QK_INLINE qv_i rounded(qv_i sum, const panel_end *e, const size_t c, const bool more) {
    qv_f v = scaled(qv_of_int(sum), e, c);
    if (!more) return qv_to_int(v);
    v = clipped(v, e);
    if (e->is_rounded) return qv_addi(qv_to_int(v), qv_set1i((int32_t)e->zp)); /* what f32 would round saturates */
    return qv_to_int(qv_add(v, qv_set1(e->zp)));
}

#endif
