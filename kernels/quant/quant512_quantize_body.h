/* Quantization on AVX-512: by fixed-point numbers where that is sure, by quotients where it is not, or where results are wide. */
#ifndef QK_QUANT512_QUANTIZE_H
#define QK_QUANT512_QUANTIZE_H

#include "kernels/quant/quant512_io_body.h"
#include "kernels/simd/two_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- up to 16 elements, whatever they are ---- */

QK_INLINE void store_lanes(int type, char *dst, size_t n, __m512i v) {
    __mmask16 lanes = qk512_lanes(n);
    if (type == QK_S32) {
        _mm512_mask_storeu_epi32(dst, lanes, v);
    } else if (qk_stored_bits(type) == 16) {
        qk512_store16_lanes(dst, lanes, v, is_signed(type));
    } else if (qk_stored_bits(type) == 8) {
        qk512_store8_lanes(dst, lanes, v, is_signed(type));
    } else {
        v = _mm512_maskz_mov_epi32(lanes, v);
        v = type == QK_S4 ? _mm512_min_epi32(_mm512_max_epi32(v, _mm512_set1_epi32(-8)), _mm512_set1_epi32(7))
                          : _mm512_min_epi32(_mm512_max_epi32(v, _mm512_setzero_si512()), _mm512_set1_epi32(15));
        __m128i b = _mm512_cvtepi32_epi8(_mm512_and_si512(v, _mm512_set1_epi32(15)));
        b = _mm_maddubs_epi16(b, _mm_set1_epi16(0x1001));
        _mm_mask_storeu_epi8(dst, (__mmask16)((1u << (n < 16 ? (n + 1) / 2 : 8)) - 1u), _mm_packus_epi16(b, b));
    }
}

/* By way of the quotient; 32-bit results saturate here already. A NaN gives the zero point. */
QK_INLINE __m512i q_exact(int type, qk512_divisor d, __m512i zp, bool add_first, __m512 x) {
    const __m512 q = qk512_divide(d, x), zp_f32 = _mm512_cvtepi32_ps(zp);
    if (type != QK_S32) return qk512_round(q, zp, zp_f32, add_first);
    const __m512 sum = add_first ? _mm512_add_ps(q, zp_f32) : q; /* zp is 0 when it comes last */
    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(sum), _mm512_cmp_ps_mask(sum, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ),
                                 _mm512_set1_epi32(INT32_MAX));
}

QK_INLINE qk512_divisor divisor_of(int type, __m512 scale) {
    qk512_divisor d = qk512_divisor_of(scale);
    if (type == QK_S32) d.limit = _mm512_mul_ps(scale, _mm512_set1_ps(0x1p33f));
    return d;
}

/* n elements by way of the quotient, scale and zero point `step` elements on from one to the next (0 or 1). */
QK_INLINE void q_exact_lanes(int real, int type, const char *src, char *dst, size_t n, const float *scales,
                             const int32_t *zps, size_t step, qk_quant_order order) {
    qk512_divisor d = divisor_of(type, _mm512_set1_ps(*scales));
    __m512i zp = _mm512_set1_epi32(zps ? *zps : 0);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        if (step) {
            d = divisor_of(type, _mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), lanes, scales + i));
            if (zps) zp = _mm512_maskz_loadu_epi32(lanes, zps + i);
        }
        __m512 x = load_real(real, src + i * real_bytes(real), lanes);
        __m512i v = order == QK_ADD_THEN_ROUND ? q_exact(type, d, zp, true, x) : q_exact(type, d, zp, false, x);
        store_lanes(type, dst + bytes_of(type, i), n - i, v);
    }
}

/* fn(real, type, ...) with both as constants; types of more than a byte are made of F32 alone. */
#define OF_REAL(fn, t, ...)                                                                                            \
    case t:                                                                                                            \
        if (real == QK_F32)                                                                                            \
            fn(QK_F32, t, __VA_ARGS__);                                                                                \
        else if (real == QK_BF16)                                                                                      \
            fn(QK_BF16, t, __VA_ARGS__);                                                                               \
        else                                                                                                           \
            fn(QK_F16, t, __VA_ARGS__);                                                                                \
        break
#define OF_BOTH(fn, ...)                                                                                               \
    switch (type) {                                                                                                    \
        OF_REAL(fn, QK_U8, __VA_ARGS__);                                                                               \
        OF_REAL(fn, QK_S8, __VA_ARGS__);                                                                               \
        OF_REAL(fn, QK_U4, __VA_ARGS__);                                                                               \
        OF_REAL(fn, QK_S4, __VA_ARGS__);                                                                               \
    case QK_U16: fn(QK_F32, QK_U16, __VA_ARGS__); break;                                                               \
    case QK_S16: fn(QK_F32, QK_S16, __VA_ARGS__); break;                                                               \
    case QK_S32: fn(QK_F32, QK_S32, __VA_ARGS__); break;                                                               \
    }

/* Rare, and kept out of the loops. */
static __attribute__((noinline)) void q_any_lanes(int real, int type, const char *src, char *dst, size_t n,
                                                  const float *scales, const int32_t *zps, size_t step,
                                                  qk_quant_order order) {
    OF_BOTH(q_exact_lanes, src, dst, n, scales, zps, step, order);
}

/* ---- blocks of 64 by way of the quotients ---- */

/* How a zero point comes in. */
enum { NO_ZP, ZP_FIRST, ZP_LAST };

/* Scales and zero points of a block, for all or for each. Two steps: `low` is of two_steps.h. */
typedef struct quotients {
    __m512 scale[4], recip[4], low[4];
    __m512i zp[4];
} quotients;

/* Of bytes, the values of nibbles in pairs: v clamped, two to a byte. */
QK_INLINE __m512i nibble_pairs(__m512i v, bool is_s4) {
    v = is_s4 ? _mm512_min_epi8(_mm512_max_epi8(v, _mm512_set1_epi8(-8)), _mm512_set1_epi8(7))
              : _mm512_min_epu8(v, _mm512_set1_epi8(15));
    return _mm512_maddubs_epi16(_mm512_and_si512(v, _mm512_set1_epi8(15)), _mm512_set1_epi16(0x1001));
}

/* False, and nothing written, when something is a NaN or out of reach: it converts to the lowest integer. */
QK_INLINE bool q_exact_64(int real, int type, int zp, bool two_steps, const char *src, char *dst, const quotients *d,
                          bool stream) {
    __m512i v[4];
    QK_FOUR_TIMES(k, __m512 x = load_real_16(real, src + 16 * k * real_bytes(real));
                  __m512 q = _mm512_fmadd_ps(x, d->recip[k], _mm512_mul_ps(x, d->low[k]));
                  if (!two_steps) q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, d->scale[k], x), d->recip[k], q);
                  if (zp == ZP_FIRST) q = _mm512_add_ps(q, _mm512_cvtepi32_ps(d->zp[k])); v[k] = _mm512_cvtps_epi32(q));
    const __m512i least = _mm512_min_epi32(_mm512_min_epi32(v[0], v[1]), _mm512_min_epi32(v[2], v[3]));
    /* With a zero point to come, none so large that the sum would wrap. */
    const int32_t limit = type == QK_S32 ? INT32_MIN : -(1 << 30);
    if (_mm512_cmple_epi32_mask(least, _mm512_set1_epi32(limit))) return false;
    if (type == QK_S32) {
        QK_FOUR_TIMES(k, store(dst + 64 * k, v[k], stream));
    } else if (!is_narrow(type)) {
        if (zp == ZP_LAST)
            QK_FOUR_TIMES(k, v[k] = _mm512_add_epi32(_mm512_min_epi32(v[k], _mm512_set1_epi32(1 << 30)), d->zp[k]));
        store(dst, qk512_pack16(v[0], v[1], is_signed(type)), stream);
        store(dst + 64, qk512_pack16(v[2], v[3], is_signed(type)), stream);
    } else {
        __m512i a = _mm512_packs_epi32(v[0], v[1]), b = _mm512_packs_epi32(v[2], v[3]);
        if (zp == ZP_LAST) { /* of 255 at most: what saturates now saturates then */
            a = _mm512_adds_epi16(a, _mm512_packs_epi32(d->zp[0], d->zp[1]));
            b = _mm512_adds_epi16(b, _mm512_packs_epi32(d->zp[2], d->zp[3]));
        }
        if (!is_4bit(type)) {
            store(dst, qk512_order8(is_signed(type) ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b)), stream);
            return true;
        }
        const __m512i bytes = qk512_order8(is_signed(type) ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b));
        store_half(dst, _mm512_cvtepi16_epi8(nibble_pairs(bytes, is_signed(type))), stream);
    }
    return true;
}

/* Whole blocks; scales and zero points of runs of `len` elements, or of one run. */
QK_INLINE void q_exact_blocks(int real, int type, int zp, bool two_steps, const char *src, char *dst, size_t n,
                              size_t len, const quotients *d, const float *scales, const int32_t *zps,
                              qk_quant_order order, bool stream) {
    for (size_t i = 0; i < n; i += 64) {
        const char *s = src + i * real_bytes(real);
        char *to = dst + bytes_of(type, i);
        const bool done = stream ? q_exact_64(real, type, zp, two_steps, s, to, d, true)
                                 : q_exact_64(real, type, zp, two_steps, s, to, d, false);
        const size_t m = len < 64 ? len : 64;
        for (size_t k = 0; !done && k * m < 64; k++)
            q_any_lanes(real, type, s + k * m * real_bytes(real), to + bytes_of(type, k * m), m, scales + k,
                        zps ? zps + k : NULL, 0, order);
    }
}

/* So many elements are worth the proof that two steps are enough. */
enum { PROVEN = 8192 };

/* Sixteen scales made ready. */
typedef struct sixteen_scales {
    float recips[16], lows[16];
} sixteen_scales;

/* Of a block: one scale for all of it, or one for every `len` elements. */
QK_INLINE quotients quotients_of(bool one, size_t len, const sixteen_scales *t, size_t first, const float *scales,
                                 const int32_t *zps) {
    quotients d;
    size_t at = 0;
    QK_FOUR_TIMES(
        k, enum {before = k ? k - 1 : 0}; if (k == 0 || (!one && 16 * k % len == 0)) {
            if (k > 0) at++;
            d.scale[k] = _mm512_set1_ps(scales[at]);
            d.recip[k] = _mm512_set1_ps(t->recips[first + at]);
            d.low[k] = _mm512_set1_ps(t->lows[first + at]);
            d.zp[k] = _mm512_set1_epi32(zps ? zps[at] : 0);
        } else {
            d.scale[k] = d.scale[before];
            d.recip[k] = d.recip[before];
            d.low[k] = d.low[before];
            d.zp[k] = d.zp[before];
        });
    return d;
}

/* Runs of whole blocks, or of 16 or 32 elements, as many as make whole blocks; at their place in cache lines when streaming. */
QK_INLINE void q_exact_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len,
                            const float *scales, const int32_t *zps, qk_quant_order order, bool stream) {
    const size_t per = len < 64 ? 64 / len : 1, n = per * len;
    float low;
    const bool two_steps = n_runs == 1 && len >= PROVEN && qk_two_steps(*scales, &low);
    sixteen_scales t;
    for (size_t r = 0; r < n_runs; r += per, src += n * real_bytes(real), dst += bytes_of(type, n)) {
        if (r % 16 == 0) {
            const __mmask16 lanes = qk512_lanes(n_runs - r);
            const qk512_divisor all = qk512_divisor_of(_mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), lanes, scales + r));
            _mm512_storeu_ps(t.recips, all.recip);
            _mm512_storeu_ps(t.lows, all.low);
            if (two_steps) t.lows[0] = low;
        }
        const float *scale = scales + r;
        const int32_t *z = zps ? zps + r : NULL;
#define STEPS(one, two, zp)                                                                                            \
    do {                                                                                                               \
        const quotients d = quotients_of(one, len, &t, r % 16, scale, z);                                              \
        q_exact_blocks(real, type, zp, two, src, dst, n, len, &d, scale, z, order, stream);                            \
    } while (0)
        if (two_steps && (z == NULL || *z == 0))
            STEPS(true, true, NO_ZP);
        else if (two_steps && order == QK_ADD_THEN_ROUND)
            STEPS(true, true, ZP_FIRST);
        else if (two_steps)
            STEPS(true, true, ZP_LAST);
        else if (per == 1 && order == QK_ADD_THEN_ROUND)
            STEPS(true, false, ZP_FIRST);
        else if (per == 1)
            STEPS(true, false, ZP_LAST);
        else if (order == QK_ADD_THEN_ROUND)
            STEPS(false, false, ZP_FIRST);
        else
            STEPS(false, false, ZP_LAST);
#undef STEPS
    }
}

/* The same for any types. */
static __attribute__((noinline)) void q_any_runs(int real, int type, const char *src, char *dst, size_t n_runs,
                                                 size_t len, const float *scales, const int32_t *zps,
                                                 qk_quant_order order, bool stream) {
    OF_BOTH(q_exact_runs, src, dst, n_runs, len, scales, zps, order, stream);
}
#undef OF_REAL
#undef OF_BOTH

/* n elements of 16 or 32 bits with one scale. */
QK_INLINE void q_wide_run(int type, const char *src, char *dst, size_t n, const float *scale, const int32_t *zps,
                          qk_quant_order order, bool stream) {
    const size_t bytes = bytes_of(type, 1), begin = stream ? head(dst, bytes, n) : 0, whole = (n - begin) / 64 * 64;
    if (begin) q_any_lanes(QK_F32, type, src, dst, begin, scale, zps, 0, order);
    if (whole) q_any_runs(QK_F32, type, src + begin * 4, dst + begin * bytes, 1, whole, scale, zps, order, stream);
    const size_t done = begin + whole;
    if (done < n) q_any_lanes(QK_F32, type, src + done * 4, dst + done * bytes, n - done, scale, zps, 0, order);
}

/* ---- blocks of 64 in fixed point ---- */

/* Factor and shift, for one scale or for 64 in a row. */
typedef struct fixed {
    __m512 factor[4], shift[4];
} fixed;

/* What is the same for all blocks. */
typedef struct marks {
    __m512i sure, words, order;
    __m256i low;
} marks;

QK_INLINE marks marks_of(int real, int type) {
    /* of bf16, an even one's upper half and the next one's, in turn */
    const __m512i turns = _mm512_set_epi16(63, 31, 61, 29, 59, 27, 57, 25, 55, 23, 53, 21, 51, 19, 49, 17, 47, 15, 45,
                                           13, 43, 11, 41, 9, 39, 7, 37, 5, 35, 3, 33, 1);
    /* upper halves: all of them */
    const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                                           25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    /* those of even elements, then those of odd ones */
    const __m512i halves = _mm512_set_epi16(63, 59, 55, 51, 47, 43, 39, 35, 31, 27, 23, 19, 15, 11, 7, 3, 61, 57, 53,
                                            49, 45, 41, 37, 33, 29, 25, 21, 17, 13, 9, 5, 1);
    marks m;
    m.sure = _mm512_set1_epi32(is_4bit(type) ? 0xffff0 : QK_FIXED_SURE);
    m.words = real == QK_BF16 ? (is_4bit(type) ? upper : turns) : is_4bit(type) ? halves : upper;
    m.order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    m.low = _mm256_set1_epi8(15);
    /* in registers: otherwise they are made again for every run */
    __asm__("" : "+v"(m.sure), "+v"(m.words), "+v"(m.order), "+v"(m.low));
    return m;
}

/* 64 elements; false, and nothing written, when one of them is not sure. */
QK_INLINE bool q_fixed_64(int real, int type, const char *src, char *dst, const fixed *f, const marks *m, bool stream) {
    __m512 x[4];
    __m512i w[4];
    load_real_32(real, src, &x[0], &x[1]);
    load_real_32(real, src + 32 * real_bytes(real), &x[2], &x[3]);
    QK_FOUR_TIMES(k, w[k] = qk512_fixed(x[k], f->factor[k], f->shift[k]));
    __mmask16 sure;
    if (is_4bit(type)) {
        sure = _mm512_test_epi32_mask(w[0], m->sure);
        sure = _mm512_mask_test_epi32_mask(sure, w[1], m->sure);
        sure = _mm512_mask_test_epi32_mask(sure, w[2], m->sure);
        sure = _mm512_mask_test_epi32_mask(sure, w[3], m->sure);
    } else { /* a sum is sure when its lower half is 16 at least */
        sure = _mm512_test_epi32_mask(_mm512_min_epu16(_mm512_min_epu16(w[0], w[1]), _mm512_min_epu16(w[2], w[3])),
                                      m->sure);
    }
    if (sure != 0xffff) return false;
    /* of 4 bits, even elements in the lower half, odd ones in the upper half */
    const bool by_two = is_4bit(type);
    const __m512i a = _mm512_permutex2var_epi16(w[0], m->words, by_two ? w[2] : w[1]),
                  b = _mm512_permutex2var_epi16(by_two ? w[1] : w[2], m->words, w[3]);
    __m512i p = is_signed(type) ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    if (!is_4bit(type) || real == QK_BF16) p = _mm512_permutexvar_epi64(m->order, p);
    if (!is_4bit(type)) {
        store(dst, p, stream);
        return true;
    }
    /* the upper nibble of the odd one, the other's below it */
    const __m256i even = _mm256_srli_epi16(_mm512_castsi512_si256(p), 4), odd = _mm512_extracti64x4_epi64(p, 1);
    store_half(dst, _mm256_ternarylogic_epi32(m->low, even, odd, 0xca), stream);
    return true;
}

/* Up to 16 elements. */
QK_INLINE bool q_fixed_16(int real, int type, const char *src, char *dst, size_t n, __m512 factor, __m512 shift) {
    __m512i w = qk512_fixed(load_real(real, src, qk512_lanes(n)), factor, shift);
    const __m512i behind = _mm512_set1_epi32(is_4bit(type) ? 0xffff0 : QK_FIXED_SURE);
    if (_mm512_test_epi32_mask(w, behind) != 0xffff) return false;
    store_lanes(type, dst, n, _mm512_srai_epi32(w, is_4bit(type) ? 20 : 16));
    return true;
}

/* Scales of many runs, or of many columns, made ready at once; how many at a time. */
enum { READY = 4096 };

typedef struct ready {
    float factor[READY], shift[READY];
} ready;

/* False: one is not for the fixed-point way. */
QK_INLINE bool make_ready(int type, const float *scales, const int32_t *zps, size_t n, ready *out) {
    const __m512 one = _mm512_set1_ps(fixed_one(type)), shift = _mm512_set1_ps(fixed_shift(type));
    const __m512i most = _mm512_set1_epi32(is_4bit(type) ? 16 : 255);
    const __m512i low = _mm512_castps_si512(_mm512_set1_ps(0x1p-60f)),
                  range = _mm512_sub_epi32(_mm512_castps_si512(_mm512_set1_ps(0x1p60f)), low);
    __mmask16 ok = 0xffff;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 s = _mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), lanes, scales + i);
        __m512i zp = zps ? _mm512_maskz_loadu_epi32(lanes, zps + i) : _mm512_setzero_si512();
        /* sizes compare as their bits do */
        const __m512i size = _mm512_sub_epi32(_mm512_castps_si512(_mm512_abs_ps(s)), low);
        ok = _mm512_mask_cmple_epu32_mask(ok, size, range);
        ok = _mm512_mask_cmple_epu32_mask(ok, _mm512_abs_epi32(zp), most);
        /* one step of Newton's from 14 bits is as near as a division, but for a unit in the last place */
        __m512 r = _mm512_rcp14_ps(s);
        r = _mm512_fmadd_ps(_mm512_fnmadd_ps(s, r, _mm512_set1_ps(1.0f)), r, r);
        _mm512_storeu_ps(out->factor + i, _mm512_mul_ps(r, one));
        _mm512_storeu_ps(out->shift + i, _mm512_fmadd_ps(_mm512_cvtepi32_ps(zp), one, shift));
    }
    return ok == 0xffff;
}

/* All whole blocks of a run from element i on; returns how far that is. No call is made where blocks are sure: constants stay in
 * registers. */
QK_INLINE size_t q_fixed_blocks(int real, int type, const char *src, char *dst, size_t i, size_t n, const fixed *f,
                                const float *scale, const int32_t *zp, qk_quant_order order, bool stream, ties *t) {
    for (;;) {
        const marks k = marks_of(real, type);
        if (t->left == 0)
            while (n - i >= 64 &&
                   q_fixed_64(real, type, src + i * real_bytes(real), dst + bytes_of(type, i), f, &k, stream))
                i += 64;
        if (n - i < 64) return i;
        const size_t m = ties_met(t, real, src + i * real_bytes(real), (n - i) / 64 * 64);
        q_any_runs(real, type, src + i * real_bytes(real), dst + bytes_of(type, i), 1, m, scale, zp, order, false);
        i += m;
    }
}

/* Up to a block. */
QK_INLINE void q_fixed_rest(int real, int type, const char *src, char *dst, size_t n, const fixed *f,
                            const float *scale, const int32_t *zp, qk_quant_order order) {
    for (size_t i = 0; i < n; i += 16) {
        const size_t m = n - i < 16 ? n - i : 16;
        const char *s = src + i * real_bytes(real);
        if (!q_fixed_16(real, type, s, dst + bytes_of(type, i), m, f->factor[0], f->shift[0]))
            q_any_lanes(real, type, s, dst + bytes_of(type, i), m, scale, zp, 0, order);
    }
}

QK_INLINE void q_fixed_run(int real, int type, const char *src, char *dst, size_t n, const float *factor,
                           const float *shift, const float *scale, const int32_t *zp, qk_quant_order order, bool stream,
                           ties *t) {
    fixed f;
    QK_FOUR_TIMES(k, f.factor[k] = _mm512_set1_ps(*factor); f.shift[k] = _mm512_set1_ps(*shift));
    size_t i = 0;
    if (stream && n >= 128) {
        const size_t begin = is_4bit(type) ? 2 * head(dst, 1, n / 2) : head(dst, 1, n);
        q_fixed_rest(real, type, src, dst, begin, &f, scale, zp, order);
        i = q_fixed_blocks(real, type, src, dst, begin, n, &f, scale, zp, order, true, t);
    } else {
        i = q_fixed_blocks(real, type, src, dst, 0, n, &f, scale, zp, order, false, t);
    }
    if (i < n)
        q_fixed_rest(real, type, src + i * real_bytes(real), dst + bytes_of(type, i), n - i, &f, scale, zp, order);
}

/* Runs of whole blocks; of a few blocks as a rule, so nothing is done per run that could be done before. */
QK_INLINE void q_whole_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len, const ready *t,
                            const float *scales, const int32_t *zps, qk_quant_order order, bool stream, ties *state) {
    const size_t in = 64 * real_bytes(real), out = bytes_of(type, 64), run = len * real_bytes(real);
    const char *end = src + run; /* of the run r */
    for (size_t r = 0; r < n_runs;) {
        const marks k = marks_of(real, type);
        bool is_sure = state->left == 0;
        while (is_sure && r < n_runs) {
            fixed f;
            QK_FOUR_TIMES(j, f.factor[j] = _mm512_set1_ps(t->factor[r]); f.shift[j] = _mm512_set1_ps(t->shift[r]));
            do {
                is_sure = q_fixed_64(real, type, src, dst, &f, &k, stream);
                if (!is_sure) break;
                src += in;
                dst += out;
            } while (src < end);
            if (!is_sure) break;
            r++;
            end += run;
        }
        if (r == n_runs) return;
        /* a part of a run, whole runs, a part of a run */
        size_t left = (size_t)(end - src) / real_bytes(real),
               m = ties_met(state, real, src, left + (n_runs - r - 1) * len);
        while (m) {
            const size_t runs = left == len && m > len ? m / len : 1, n = runs > 1 ? len : m < left ? m : left;
            q_any_runs(real, type, src, dst, runs, n, scales + r, zps ? zps + r : NULL, order, false);
            src += runs * n * real_bytes(real);
            dst += bytes_of(type, runs * n);
            m -= runs * n;
            left -= n;
            if (left) continue;
            r += runs;
            end = src + run;
            left = len;
        }
    }
}

/* Runs of 16 or 32 elements: as many as make 64, side by side in one block. Returns how many runs are done. */
QK_INLINE size_t q_short_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len, const ready *t,
                              const float *scales, const int32_t *zps, qk_quant_order order, bool stream, ties *state) {
    const size_t per = 64 / len, whole = n_runs / per * per, src_step = len * real_bytes(real),
                 dst_step = bytes_of(type, len);
    for (size_t r = 0; r < whole;) {
        const marks m = marks_of(real, type);
        for (; state->left == 0 && r < whole; r += per) {
            fixed f;
            QK_FOUR_TIMES(k, f.factor[k] = _mm512_set1_ps(t->factor[r + k * 16 / len]);
                          f.shift[k] = _mm512_set1_ps(t->shift[r + k * 16 / len]));
            if (!q_fixed_64(real, type, src + r * src_step, dst + r * dst_step, &f, &m, stream)) break;
        }
        if (r == whole) break;
        const size_t n = ties_met(state, real, src + r * src_step, (whole - r) * len) / len;
        q_any_runs(real, type, src + r * src_step, dst + r * dst_step, n, len, scales + r, zps ? zps + r : NULL, order,
                   false);
        r += n;
    }
    return whole;
}

/* ---- narrow floats to bytes with a scale that brings no ties ---- */

#if defined(__AVX512VBMI__)
/* bf16 and f16 are few: whether any of them, divided by the scale, comes near a tie is found out by trying the 255 ties. If none does,
 * one multiplication rounds as the division, and no result needs a second look. Then
 *
 *     v = floor(x * RN(256/s) + 256 zp + 128)
 *
 * saturated to 16 bits has the result, saturated to 8, as its upper byte. Rounding is downwards in all of it, which a control bit of the
 * CPU says, and whether something was a NaN or did not fit 32 bits, a sticky bit. How near is near: the reciprocal is wrong by
 * 2^-24 of the quotient q, the multiply-add by 2^-23 of the sum; the true way by 2^-24 of the quotient and of the sum; the sum is at
 * most |q| + |zp| + 1/2. */
QK_INLINE bool is_clear(int real, int type, float scale, int32_t zp) {
    const __m512 s = _mm512_set1_ps(scale), ulps = _mm512_set1_ps(0x1p-21f),
                 least = _mm512_set1_ps((float)(4 * abs(zp) + 8) * 0x1p-24f * fabsf(scale));
    __m512 tie =
        _mm512_add_ps(_mm512_cvtepi32_ps(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
                      _mm512_set1_ps((is_signed(type) ? -127.5f : 0.5f) - (float)zp));
    __mmask16 near = 0;
    for (int k = 0; k < 16; k++, tie = _mm512_add_ps(tie, _mm512_set1_ps(16.0f))) {
        const __m512 t = _mm512_mul_ps(tie, s);
        __m512 x; /* the nearest there is */
        if (real == QK_BF16)
            x = _mm512_castsi512_ps(_mm512_and_si512(
                _mm512_add_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(0x8000)), _mm512_set1_epi32(-65536)));
        else
            x = _mm512_cvtph_ps(_mm512_cvtps_ph(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        const __m512 far = _mm512_abs_ps(_mm512_fnmadd_ps(tie, s, x));
        near |= _mm512_cmp_ps_mask(far, _mm512_fmadd_ps(_mm512_abs_ps(t), ulps, least), _CMP_NGT_UQ);
    }
    return near == 0;
}

/* 64 elements, in bytes of words that were packed by two: where element i is. */
QK_INLINE __m512i clear_order(int real) {
    uint8_t at[64];
    for (size_t i = 0; i < 64; i++) {
        const size_t k = i % 32,
                     word = real == QK_BF16 ? k / 8 * 8 + k % 2 * 4 + k % 8 / 2 : k % 16 / 4 * 8 + k / 16 * 4 + k % 4;
        at[i] = (uint8_t)(i / 32 * 64 + 2 * word + 1);
    }
    return _mm512_loadu_si512(at);
}

/* What is behind must not be done before, nor what is before, behind. */
QK_INLINE void control(unsigned bits) {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(bits);
    __asm__ volatile("" ::: "memory");
}
QK_INLINE unsigned status(void) {
    __asm__ volatile("" ::: "memory");
    return _mm_getcsr();
}

/* Whole blocks. False: something was a NaN or out of reach, and some results are not right. */
QK_INLINE bool q_clear_blocks(int real, int type, const char *src, char *dst, size_t n, float scale, int32_t zp,
                              bool stream) {
    const __m512 factor = _mm512_set1_ps(1.0f / scale * 256.0f), shift = _mm512_set1_ps((float)zp * 256.0f + 128.0f);
    const __m512i order = clear_order(real);
    const unsigned before = status();
    control((before & ~(unsigned)(_MM_ROUND_MASK | _MM_EXCEPT_INVALID)) | _MM_ROUND_DOWN);
    for (size_t i = 0; i < n; i += 64, src += 64 * real_bytes(real)) {
        __m512 x[4];
        __m512i v[4];
        load_real_32(real, src, &x[0], &x[1]);
        load_real_32(real, src + 32 * real_bytes(real), &x[2], &x[3]);
        QK_FOUR_TIMES(k, v[k] = _mm512_cvtps_epi32(_mm512_fmadd_ps(x[k], factor, shift)));
        const __m512i a = is_signed(type) ? _mm512_packs_epi32(v[0], v[1]) : _mm512_packus_epi32(v[0], v[1]),
                      b = is_signed(type) ? _mm512_packs_epi32(v[2], v[3]) : _mm512_packus_epi32(v[2], v[3]);
        store(dst + i, _mm512_permutex2var_epi8(a, order, b), stream);
    }
    const unsigned after = status();
    control(before | (after & _MM_EXCEPT_MASK));
    return (after & _MM_EXCEPT_INVALID) == 0;
}
#endif

/* So many elements are worth looking whether the scale is clear. */
enum { CLEAR = 8192 };

/* As much of a run as is done without a second look: none, or all but its ends. Begins with element `begin`. */
QK_INLINE size_t q_clear_run(int real, int type, const char *src, char *dst, size_t n, float scale, int32_t zp,
                             bool stream) {
#if defined(__AVX512VBMI__)
    if (real == QK_F32 || is_4bit(type) || n < CLEAR || !is_clear(real, type, scale, zp)) return 0;
    const size_t whole = n / 64 * 64;
    const bool done = stream && (uintptr_t)dst % 64 == 0
                          ? q_clear_blocks(real, type, src, dst, whole, scale, zp, true)
                          : q_clear_blocks(real, type, src, dst, whole, scale, zp, false);
    return done ? whole : 0;
#else
    (void)real, (void)type, (void)src, (void)dst, (void)n, (void)scale, (void)zp, (void)stream;
    return 0;
#endif
}

/* ---- runs ---- */

QK_INLINE void q_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    enum { AT_ONCE = 256 };
    const char *src = src_;
    char *dst = dst_;
    const size_t src_step = len * real_bytes(real), dst_step = bytes_of(type, len);
    ties t = {STRETCH_FIRST, 0, NULL};
    for (size_t at = 0; at < n_runs; at += AT_ONCE) {
        const size_t n = n_runs - at < AT_ONCE ? n_runs - at : AT_ONCE;
        ready table;
        const bool is_fixed = is_narrow(type) && make_ready(type, scales + at, zps ? zps + at : NULL, n, &table);
        size_t r = 0;
        const bool past_caches = stream && (uintptr_t)dst % (is_4bit(type) ? 32 : 64) == 0;
        const int32_t *zp_at = zps ? zps + at : NULL;
        if (is_fixed && (len == 32 || (len == 16 && real != QK_BF16))) {
            if (len == 32 && past_caches)
                r = q_short_runs(real, type, src, dst, n, 32, &table, scales + at, zp_at, order, true, &t);
            else if (len == 32)
                r = q_short_runs(real, type, src, dst, n, 32, &table, scales + at, zp_at, order, false, &t);
            else
                r = q_short_runs(real, type, src, dst, n, 16, &table, scales + at, zp_at, order, false, &t);
            src += r * src_step;
            dst += r * dst_step;
        } else if (is_fixed && len % 64 == 0 && (real == QK_F32 || is_4bit(type) || len < CLEAR)) {
            if (past_caches)
                q_whole_runs(real, type, src, dst, n, len, &table, scales + at, zp_at, order, true, &t);
            else
                q_whole_runs(real, type, src, dst, n, len, &table, scales + at, zp_at, order, false, &t);
            src += n * src_step;
            dst += n * dst_step;
            r = n;
        }
        for (; r < n; r++, src += src_step, dst += dst_step) {
            const float scale = scales[at + r];
            const int32_t zp = zps ? zps[at + r] : 0;
            if (is_fixed) {
                const size_t done = q_clear_run(real, type, src, dst, len, scale, zp, stream);
                q_fixed_run(real, type, src + done * real_bytes(real), dst + bytes_of(type, done), len - done,
                            &table.factor[r], &table.shift[r], &scale, &zp, order, stream, &t);
            } else if (is_narrow(type) && qk_fixed_ok(scale, zp)) {
                const size_t whole = len / 64 * 64;
                if (whole) q_any_runs(real, type, src, dst, 1, whole, &scale, &zp, order, false);
                q_any_lanes(real, type, src + whole * real_bytes(real), dst + bytes_of(type, whole), len - whole,
                            &scale, &zp, 0, order);
            } else if (is_narrow(type) || !exact_ok(type, scale, zp, order)) {
                q_odd_run(real, type, src, dst, len, scale, zp, order);
            } else {
                q_wide_run(type, src, dst, len, &scale, &zp, order, stream);
            }
        }
    }
}

/* ---- a scale per column ---- */

/* Rows that go through the same columns together, so that their scales are loaded once. Measured. */
enum { Q_TOGETHER = 16 };

/* 64 columns down some rows, by way of the quotients. */
static __attribute__((noinline)) void q_cols_exact(int type, const float *src, char *dst, size_t rows, size_t stride,
                                                   const float *scales, const int32_t *zps, qk_quant_order order) {
    quotients d;
    QK_FOUR_TIMES(k, const qk512_divisor one = qk512_divisor_of(_mm512_loadu_ps(scales + 16 * k));
                  d.scale[k] = one.scale; d.recip[k] = one.recip; d.low[k] = one.low;
                  d.zp[k] = zps ? _mm512_loadu_si512(zps + 16 * k) : _mm512_setzero_si512());
    const int zp = zps == NULL ? NO_ZP : order == QK_ADD_THEN_ROUND ? ZP_FIRST : ZP_LAST;
    for (size_t r = 0; r < rows; r++) {
        const char *s = (const char *)(src + r * stride);
        char *to = dst + r * stride * bytes_of(type, 1);
        bool done = false;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        done = zp == NO_ZP      ? q_exact_64(QK_F32, t, NO_ZP, false, s, to, &d, false)                                \
               : zp == ZP_FIRST ? q_exact_64(QK_F32, t, ZP_FIRST, false, s, to, &d, false)                             \
                                : q_exact_64(QK_F32, t, ZP_LAST, false, s, to, &d, false);                             \
        break
        switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
        if (!done) q_any_lanes(QK_F32, type, s, to, 64, scales, zps, 1, order);
    }
}

QK_INLINE void q_cols_fixed(int type, const float *src, char *dst, size_t rows, size_t n, size_t stride, const ready *t,
                            const float *scales, const int32_t *zps, qk_quant_order order, bool stream) {
    /* memory likes one row after the other */
    const size_t together = stream ? 1 : Q_TOGETHER;
    const __m512 no_zp = _mm512_set1_ps(qk_fixed_shift(0));
    for (size_t r = 0; r < rows; r += together) {
        const size_t m = rows - r < together ? rows - r : together;
        size_t c = 0;
        for (; n - c >= 64; c += 64) {
            fixed f;
            const marks same = marks_of(QK_F32, type);
            QK_FOUR_TIMES(k, f.factor[k] = _mm512_loadu_ps(t->factor + c + 16 * k); f.shift[k] = no_zp);
            if (zps) QK_FOUR_TIMES(k, f.shift[k] = _mm512_loadu_ps(t->shift + c + 16 * k));
            for (size_t k = 0; k < m; k++) {
                const float *s = src + (r + k) * stride + c;
                char *d = dst + (r + k) * stride + c;
                if (q_fixed_64(QK_F32, type, (const char *)s, d, &f, &same, stream && (uintptr_t)d % 64 == 0)) continue;
                /* the other rows likely are on ties, too */
                q_cols_exact(type, s, d, m - k, stride, scales + c, zps ? zps + c : NULL, order);
                break;
            }
        }
        for (; c < n; c += 16) {
            const size_t lanes = n - c < 16 ? n - c : 16;
            const __m512 factor = _mm512_loadu_ps(t->factor + c), shift = _mm512_loadu_ps(t->shift + c);
            for (size_t k = 0; k < m; k++) {
                const char *s = (const char *)(src + (r + k) * stride + c);
                char *d = dst + (r + k) * stride + c;
                if (!q_fixed_16(QK_F32, type, s, d, lanes, factor, shift))
                    q_any_lanes(QK_F32, type, s, d, lanes, scales + c, zps ? zps + c : NULL, 1, order);
            }
        }
    }
}

QK_INLINE void q_cols_wide(int type, const float *src, void *dst_, size_t rows, size_t cols, const float *scales,
                           const int32_t *zps, qk_quant_order order, bool stream) {
    const size_t bytes = bytes_of(type, 1);
    /* As many columns at a time as the first cache has room for their scales; where memory is the limit, whole rows. */
    const size_t most = stream ? READY : READY / 4;
    for (size_t c = 0; c < cols; c += most) {
        const size_t n = cols - c < most ? cols - c : most;
        const int32_t *zp = zps ? zps + c : NULL;
        char *dst = (char *)dst_ + c * bytes;
        ready table;
        if (is_narrow(type) && make_ready(type, scales + c, zp, n, &table)) {
            q_cols_fixed(type, src + c, dst, rows, n, cols, &table, scales + c, zp, order, stream);
            continue;
        }
        bool ok = true;
        for (size_t k = 0; k < n; k++)
            ok &= exact_ok(type, scales[c + k], zp ? zp[k] : 0, order) &&
                  (!is_narrow(type) || qk_fixed_ok(1, zp ? zp[k] : 0));
        size_t k = 0;
        for (; ok && n - k >= 64; k += 64)
            q_cols_exact(type, src + c + k, dst + k * bytes, rows, cols, scales + c + k, zp ? zp + k : NULL, order);
        for (size_t r = 0; r < rows && k < n; r++)
            if (ok)
                q_any_lanes(QK_F32, type, (const char *)(src + r * cols + c + k), dst + (r * cols + k) * bytes, n - k,
                            scales + c + k, zp ? zp + k : NULL, 1, order);
            else
                qk_quant_ref.q_cols[type](src + r * cols + c, dst + r * cols * bytes, 1, n, scales + c, zp, order,
                                          false);
    }
}

QK_INLINE void q_cols(int type, const float *src, void *dst, size_t rows, size_t cols, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    const size_t n = side_by_side(rows, cols), joined = rows / n, rest = rows % n;
    if (n > 1) {
        float s[WIDE];
        int32_t z[WIDE];
        repeat(scales, zps, cols, n, s, z);
        q_cols_wide(type, src, dst, joined, n * cols, s, zps ? z : NULL, order, stream);
        src += joined * n * cols;
        dst = (char *)dst + bytes_of(type, joined * n * cols);
        rows = rest;
    }
    q_cols_wide(type, src, dst, rows, cols, scales, zps, order, stream);
}

#endif
