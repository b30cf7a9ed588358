/* The vector levels of the family, written once for both widths. */
#include "kernels/simd/wide.h"
#include "kernels/tf/tf_row.h"

#include <math.h>
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

/* n elements, operation by operation. */
QK_INLINE void quantize_exact(const qk_tf *tf, const regs *r, const float *src, char *dst, size_t n) {
    const size_t bytes = qk_tf_bytes(tf->stored);
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        quantize_block(tf, r, src + i, dst + i * bytes);
    if (i < n) {
        float in[BLOCK] = {0};
        char out[BLOCK * 4];
        memcpy(in, src + i, (n - i) * sizeof *in);
        quantize_block(tf, r, in, out);
        memcpy(dst + i * bytes, out, (n - i) * bytes);
    }
}

/* ---- bytes in fixed point, as kernels/simd/divide.h says of quotients ----
 *
 * Without its bounds a form is the rounding of a line, x * factor + shift, that grows with x: so bounds of x, or of the result, are
 * bounds of the byte. The line as a number of 16 fraction bits, and half of one and 8 units more, is rounded down; it is the result where
 * it lies not within 8 units of a tie. In units of 2^-16, of results that do not saturate, the operations of the formula are wrong
 * by 3 at most: OFFSET's t, up to 257, by 2, its sum with a half or a zero point by 1; STEPS' product, up to 769, by 2; SCALED's by 1.
 * Ours are wrong by 3.5: the shift, below 2^26, by 2, the multiply-add by 1, its rounding to an integer by 0.5. */
typedef struct line {
    qkw_f factor, shift;
    qkw_i least, most; /* bytes */
} line;

static bool line_of(const qk_tf *tf, const regs *r, line *out) {
    if (qk_tf_bytes(tf->stored) != 1 || !(tf->factor >= 0x1p-60f && tf->factor <= 0x1p60f)) return false;
    double shift = 0.5;
    if (tf->form == QK_TF_STEPS) {
        if (!(fabsf(tf->base) <= 512.0f) || tf->base != rintf(tf->base) ||
            !(tf->top >= (qk_tf_signed(tf->stored) ? -128.0f : 0.0f)))
            return false;
        shift -= (double)tf->base;
    } else {
        if (!(tf->low <= tf->high)) return false;
        if (tf->form == QK_TF_OFFSET) {
            const double low = (double)tf->low * (double)tf->factor;
            if (!(fabs(low) <= 512.0) || !(fabsf(tf->half) <= 256.0f)) return false;
            shift -= low + (qk_tf_signed(tf->stored) ? (double)tf->half : 0.0);
        }
    }
    const float ends[2] = {-INFINITY, INFINITY};
    char bytes[2];
    quantize_exact(tf, r, ends, bytes, 2);
    *out = (line){QKW(set1_ps)(tf->factor * QK_FIXED_ONE), QKW(set1_ps)((float)(shift * (double)QK_FIXED_ONE + 8.0)),
                  QKW(set1_epi8)(bytes[0]), QKW(set1_epi8)(bytes[1])};
    return true;
}

/* Whole blocks, as far as they are sure; how many elements. */
QK_INLINE size_t quantize_sure(const line *l, bool is_signed, const float *src, char *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK) {
        qkw_i w[4];
        QK_FOUR_TIMES(k, w[k] = QKX(fixed)(QKW(loadu_ps)(src + i + k * QKW_LANES), l->factor, l->shift));
        if (!qkw_fixed_all_sure(w)) break;
        const qkw_i q = QKX(fixed_bytes)(w, is_signed);
        qkw_store(dst + i, is_signed ? QKW(min_epi8)(QKW(max_epi8)(q, l->least), l->most)
                                     : QKW(min_epu8)(QKW(max_epu8)(q, l->least), l->most));
    }
    return i;
}

static void quantize(const qk_tf *tf, const float *src, void *dst_, size_t n) {
    /* Data that lies on ties often does so for long. */
    enum { FIRST = BLOCK, LAST = 64 * BLOCK };
    const regs r = regs_of(tf);
    line l;
    char *dst = dst_;
    if (n < BLOCK || !line_of(tf, &r, &l)) {
        quantize_exact(tf, &r, src, dst, n);
        return;
    }
    for (size_t i = 0, stretch = FIRST; i < n;) {
        const size_t sure = qk_tf_signed(tf->stored) ? quantize_sure(&l, true, src + i, dst + i, n - i)
                                                     : quantize_sure(&l, false, src + i, dst + i, n - i);
        i += sure;
        stretch = sure ? FIRST : stretch < LAST ? 2 * stretch : LAST;
        const size_t m = n - i < stretch ? n - i : stretch;
        quantize_exact(tf, &r, src + i, dst + i, m);
        i += m;
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

/* Where q + half is an integer from 0 to 2^22 it may be the lowest bits of a float, 2^23 + q + half; of which the product with the factor,
 * less 2^23 times the factor, is the wanted product, rounded once. */
QK_INLINE bool is_counted(const qk_tf *tf) {
    const float lowest = tf->stored == QDQ_DTYPE_S8 ? -128.0f : tf->stored == QDQ_DTYPE_S16 ? -32768.0f : 0.0f;
    return tf->stored != QDQ_DTYPE_S32 && tf->half + lowest >= 0.0f && tf->half <= 0x1p20f &&
           tf->half == rintf(tf->half) && tf->factor >= 0x1p-60f && tf->factor <= 0x1p60f;
}

QK_INLINE void dequantize_block(qdq_dtype stored, bool counted, const regs *r, qkw_i first, qkw_f less, const char *src,
                                float *dst) {
    const size_t step = QKW_LANES * qk_tf_bytes(stored);
    QK_FOUR_TIMES(k, const qkw_i q = load(stored, src + k * step); qkw_f x;
                  if (counted) x = QKW(fmsub_ps)(qkw_as_f(QKW(add_epi32)(q, first)), r->factor, less);
                  else x = QKW(mul_ps)(QKW(add_ps)(QKW(cvtepi32_ps)(q), r->half), r->factor);
                  QKW(storeu_ps)(dst + k * QKW_LANES, QKW(add_ps)(x, r->base)));
}

QK_INLINE void dequantize_all(qdq_dtype stored, bool counted, const qk_tf *tf, const char *src, float *dst, size_t n) {
    const regs r = regs_of(tf);
    const qkw_i first = QKW(set1_epi32)(counted ? 0x4b000000 + (int)tf->half : 0);
    const qkw_f less = QKW(set1_ps)(0x1p23f * tf->factor);
    const size_t bytes = qk_tf_bytes(stored);
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        dequantize_block(stored, counted, &r, first, less, src + i * bytes, dst + i);
    if (i < n) {
        char in[BLOCK * 4] = {0};
        float out[BLOCK];
        memcpy(in, src + i * bytes, (n - i) * bytes);
        dequantize_block(stored, counted, &r, first, less, in, out);
        memcpy(dst + i, out, (n - i) * sizeof *out);
    }
}

static void dequantize(const qk_tf *tf, const void *src, float *dst, size_t n) {
    const bool counted = is_counted(tf);
#define OF(t)                                                                                                          \
    case QDQ_DTYPE_##t:                                                                                                \
        counted ? dequantize_all(QDQ_DTYPE_##t, true, tf, src, dst, n)                                                 \
                : dequantize_all(QDQ_DTYPE_##t, false, tf, src, dst, n);                                               \
        break
    switch ((int)tf->stored) {
        OF(U8);
        OF(S8);
        OF(U16);
        OF(S16);
    default: dequantize_all(QDQ_DTYPE_S32, false, tf, src, dst, n);
    }
#undef OF
}
