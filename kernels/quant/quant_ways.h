/* What the vector levels of the family decide alike, and do alike where the reference must: scales and zero points that are not of the
 * usual, fixed point, data on ties. */
#ifndef QK_QUANT_WAYS_H
#define QK_QUANT_WAYS_H

#include "kernels/quant/quant_types.h"
#include "kernels/simd/divide.h"
#include "kernels/simd/nibbles.h"
#include "kernels/simd/unroll.h"

QK_INLINE bool is_signed(int type) {
    return qk_stored_signed(type);
}
QK_INLINE bool is_narrow(int type) { /* 8 bits at most: in fixed point, see kernels/simd/divide.h */
    return qk_stored_bits(type) <= 8;
}
QK_INLINE bool is_4bit(int type) {
    return qk_stored_bits(type) == 4;
}
QK_INLINE size_t real_bytes(int real) {
    return real == QK_F32 ? 4 : 2;
}
/* Bytes of n elements. */
QK_INLINE size_t bytes_of(int type, size_t n) {
    return is_4bit(type) ? (n + 1) / 2 : n * (qk_stored_bits(type) / 8);
}

QK_INLINE bool exact_ok(int type, float scale, int32_t zp, qk_quant_order order) {
    return qk_divisor_ok(scale, zp) && (type != QK_S32 || order == QK_ADD_THEN_ROUND || zp == 0);
}

/* q - zp must be exact in 32 bits. */
QK_INLINE bool zp_ok(int type, int32_t zp) {
    return type == QK_S32 ? zp == 0 : zp >= -(1 << 30) && zp <= 1 << 30;
}
/* All of them; NULL: zeros. */
QK_INLINE bool zps_ok(int type, const int32_t *zps, size_t n) {
    bool ok = true;
    for (size_t i = 0; zps && i < n; i++)
        ok &= zp_ok(type, zps[i]);
    return ok;
}

/* 4-bit elements to and from bytes of the same sign. */
QK_INLINE int of_bytes(int type) {
    return type == QK_U4 ? QK_U8 : type == QK_S4 ? QK_S8 : type;
}
static void unpack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    size_t i = qk_unpack_nibbles(src, dst, n, is_signed);
    qk_quant_ref.unpack4(src + i / 2, dst + i, n - i, is_signed);
}
static void pack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    size_t i = qk_pack_nibbles(src, dst, n, is_signed);
    qk_quant_ref.pack4(src + i, dst + i / 2, n - i, is_signed);
}

/* One run by the scalar reference, where scale or zero point is not of the usual: any types. */
static __attribute__((noinline)) void q_odd_run(int real, int type, const char *src, char *dst, size_t n, float scale,
                                                int32_t zp, qk_quant_order order) {
    enum { CHUNK = 256 };
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t m = n - i < CHUNK ? n - i : CHUNK;
        const char *s = src + i * real_bytes(real);
        char *d = dst + bytes_of(type, i);
        if (real != QK_F32) {
            (real == QK_BF16 ? qk_quant_ref.f32_of_bf16 : qk_quant_ref.f32_of_f16)((const uint16_t *)(const void *)s,
                                                                                   reals, m);
            s = (const char *)reals;
        }
        qk_quant_ref.q_runs[QK_F32][of_bytes(type)](s, is_4bit(type) ? (char *)bytes : d, 1, m, &scale, &zp, order,
                                                    false);
        if (is_4bit(type)) qk_quant_ref.pack4(bytes, (uint8_t *)d, m, type == QK_S4);
    }
}

static __attribute__((noinline)) void dq_odd_run(int real, int type, const char *src, char *dst, size_t n, float scale,
                                                 int32_t zp) {
    enum { CHUNK = 256 };
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t m = n - i < CHUNK ? n - i : CHUNK;
        const char *s = src + bytes_of(type, i);
        char *d = dst + i * real_bytes(real);
        if (is_4bit(type)) {
            qk_quant_ref.unpack4((const uint8_t *)s, bytes, m, type == QK_S4);
            s = (const char *)bytes;
        }
        qk_quant_ref.dq_runs[QK_F32][of_bytes(type)](s, real == QK_F32 ? d : (char *)reals, 1, m, &scale, &zp, false);
        if (real == QK_BF16) qk_quant_ref.bf16_of_f32(reals, (uint16_t *)(void *)d, m);
        if (real == QK_F16) qk_quant_ref.f16_of_f32(reals, (uint16_t *)(void *)d, m);
    }
}

/* ---- fixed point ---- */

/* Bits behind the point: sixteen, and of 4-bit results four more, so that the upper half is the result times sixteen, which saturates to
 * bytes as the result does to four bits. Those need a zero point of at most 16: then what is said in divide.h about units of 2^-16
 * holds of 2^-20. */
QK_INLINE float fixed_one(int type) {
    return is_4bit(type) ? 16.0f * QK_FIXED_ONE : QK_FIXED_ONE;
}
/* What is added to the product when the zero point is 0. */
QK_INLINE float fixed_shift(int type) {
    return is_4bit(type) ? 8.0f * QK_FIXED_ONE + 8.0f : qk_fixed_shift(0);
}
QK_INLINE bool fixed_ok(int type, float scale, int32_t zp) {
    return qk_fixed_ok(scale, zp) && (!is_4bit(type) || (zp >= -16 && zp <= 16));
}

/* Data that lies on ties often does so for long: where stretch after stretch meets a block that is unsure, the quotients are taken for
 * longer and longer. */
enum { STRETCH_FIRST = 64, STRETCH_LAST = 65536 };

typedef struct ties {
    size_t stretch, left; /* how long next time; how many elements more of this time */
    const char *end;      /* of the last stretch, in the source */
} ties;

/* So many elements from `src` on, at most `whole`, go by way of the quotients: they begin with a block that was not sure. */
QK_INLINE size_t ties_met(ties *t, int real, const char *src, size_t whole) {
    if (t->left == 0) {
        t->left = src == t->end ? t->stretch : STRETCH_FIRST;
        t->stretch = t->left < STRETCH_LAST ? 4 * t->left : STRETCH_LAST;
    }
    const size_t m = t->left < whole ? t->left : whole;
    t->left -= m;
    t->end = src + m * real_bytes(real);
    return m;
}

#endif
