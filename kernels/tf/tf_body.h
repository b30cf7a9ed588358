/* The vector levels of the family, written once for both widths. */
#include "kernels/simd/wide.h"
#include "kernels/tf/tf_row.h"

#include <string.h>

enum { BLOCK = 4 * QKW_LANES };

/* As the reference's comparisons: x stays where it equals a bound (of zeros, the sign of x). */
QK_INLINE qkw_f clamp(qkw_f x, qkw_f lo, qkw_f hi) {
    return qkw_where_less(x, lo, lo, qkw_where_less(hi, x, hi, x));
}

/* What a run needs, in registers. */
typedef struct regs {
    qkw_f low, high, factor, base, half, top, lowest;
} regs;

QK_INLINE regs regs_of(const qk_tf *tf) {
    const float lowest = tf->stored == QDQ_DTYPE_S8    ? -128.0f
                         : tf->stored == QDQ_DTYPE_S16 ? -32768.0f
                         : tf->stored == QDQ_DTYPE_S32 ? -0x1p31f
                                                       : 0.0f;
    return (regs){QKW(set1_ps)(tf->low),  QKW(set1_ps)(tf->high), QKW(set1_ps)(tf->factor), QKW(set1_ps)(tf->base),
                  QKW(set1_ps)(tf->half), QKW(set1_ps)(tf->top),  QKW(set1_ps)(lowest)};
}

/* An integer in f32. */
QK_INLINE qkw_f quantized(const qk_tf *tf, const regs *r, qkw_f x) {
    x = qkw_no_nan(x);
    if (tf->form == QK_TF_STEPS) {
        x = QKW(sub_ps)(qkw_round_away(QKW(mul_ps)(x, r->factor)), r->base);
        return clamp(x, r->lowest, r->top);
    }
    x = clamp(x, r->low, r->high);
    if (tf->form == QK_TF_SCALED) {
        x = QKW(mul_ps)(x, r->factor);
        return tf->even ? qkw_rint(x) : qkw_round_away(x);
    }
    x = QKW(mul_ps)(QKW(sub_ps)(x, r->low), r->factor);
    if (qk_tf_signed(tf->stored)) return qkw_round_away(QKW(sub_ps)(x, r->half));
    return qkw_trunc(QKW(add_ps)(x, QKW(set1_ps)(0.5f)));
}

QK_INLINE void quantize_block(const qk_tf *tf, const regs *r, const float *src, char *dst) {
    /* Past 32 bits a conversion gives the lowest integer. The first limit is beyond every narrower type; for s32 the second is the
     * largest f32 below 2^31, and what was above it becomes the highest integer, by turning round all bits of the lowest. */
    const qkw_f far = QKW(set1_ps)(0x1p30f), high = QKW(set1_ps)(2147483520.0f), all = qkw_as_f(QKW(set1_epi32)(-1));
    qkw_i v[4];
    if (tf->stored == QDQ_DTYPE_S32) {
        QK_FOUR_TIMES(k, qkw_f q = quantized(tf, r, QKW(loadu_ps)(src + k * QKW_LANES));
                      qkw_f turn = qkw_where_less(high, q, all, QKW(setzero_ps)()); v[k] = QKW(cvttps_epi32)(q);
                      qkw_store(dst + 4 * k * QKW_LANES, qkw_xor(v[k], qkw_as_i(turn))));
        return;
    }
    QK_FOUR_TIMES(k, qkw_f q = quantized(tf, r, QKW(loadu_ps)(src + k * QKW_LANES));
                  v[k] = QKW(cvttps_epi32)(QKW(min_ps)(q, far)));
    const bool is_signed = qk_tf_signed(tf->stored);
    if (qk_tf_bytes(tf->stored) == 1) {
        qkw_store(dst, is_signed ? QKX(pack8)(v, true) : QKX(pack8)(v, false));
    } else {
        qkw_store(dst, is_signed ? QKX(pack16)(v[0], v[1], true) : QKX(pack16)(v[0], v[1], false));
        qkw_store(dst + 4 * QKW_LANES, is_signed ? QKX(pack16)(v[2], v[3], true) : QKX(pack16)(v[2], v[3], false));
    }
}

static void quantize(const qk_tf *tf, const float *src, void *dst, size_t n) {
    const regs r = regs_of(tf);
    const size_t bytes = qk_tf_bytes(tf->stored);
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        quantize_block(tf, &r, src + i, (char *)dst + i * bytes);
    if (i < n) {
        float in[BLOCK] = {0};
        char out[BLOCK * 4];
        memcpy(in, src + i, (n - i) * sizeof *in);
        quantize_block(tf, &r, in, out);
        memcpy((char *)dst + i * bytes, out, (n - i) * bytes);
    }
}

QK_INLINE qkw_i load(qdq_dtype stored, const char *src) {
    switch ((int)stored) {
    case QDQ_DTYPE_U8: return QKX(load8)(src, false);
    case QDQ_DTYPE_S8: return QKX(load8)(src, true);
    case QDQ_DTYPE_U16: return qkw_load_u16(src);
    case QDQ_DTYPE_S16: return qkw_load_s16(src);
    default: return qkw_load(src);
    }
}

QK_INLINE void dequantize_block(const qk_tf *tf, const regs *r, const char *src, float *dst) {
    const size_t step = QKW_LANES * qk_tf_bytes(tf->stored);
    QK_FOUR_TIMES(k, qkw_f q = QKW(add_ps)(QKW(cvtepi32_ps)(load(tf->stored, src + k * step)), r->half);
                  QKW(storeu_ps)(dst + k * QKW_LANES, QKW(add_ps)(QKW(mul_ps)(q, r->factor), r->base)));
}

static void dequantize(const qk_tf *tf, const void *src, float *dst, size_t n) {
    const regs r = regs_of(tf);
    const size_t bytes = qk_tf_bytes(tf->stored);
    const char *s = src;
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        dequantize_block(tf, &r, s + i * bytes, dst + i);
    if (i < n) {
        char in[BLOCK * 4] = {0};
        float out[BLOCK];
        memcpy(in, s + i * bytes, (n - i) * bytes);
        dequantize_block(tf, &r, in, out);
        memcpy(dst + i, out, (n - i) * sizeof *out);
    }
}
