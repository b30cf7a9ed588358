#include "kernels/quant/quant_types.h"
#include "kernels/simd/avx512_x8.h"
#include "kernels/simd/nibbles.h"

#include <math.h>
#include <string.h>

/* The bodies below are written once for all types: `real` and `type` are constants where they are called. */
QK_INLINE bool is_signed(int type) {
    return qk_stored_signed(type);
}
QK_INLINE bool is_narrow(int type) { /* 8 bits at most: in fixed point, see kernels/simd/divide.h */
    return qk_stored_bits(type) <= 8;
}
QK_INLINE size_t real_bytes(int real) {
    return real == QK_F32 ? 4 : 2;
}
/* Bytes of n elements. */
QK_INLINE size_t bytes_of(int type, size_t n) {
    return qk_stored_bits(type) == 4 ? (n + 1) / 2 : n * (qk_stored_bits(type) / 8);
}

QK_INLINE __m512 load_real(int real, const char *src, __mmask16 lanes) {
    if (real == QK_F32) return _mm512_maskz_loadu_ps(lanes, src);
    __m256i w = _mm256_maskz_loadu_epi16(lanes, src);
    if (real == QK_F16) return _mm512_cvtph_ps(w);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(w), 16));
}

QK_INLINE void store(void *dst, __m512i v, bool stream) {
    if (stream)
        _mm512_stream_si512((__m512i *)dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

/* Elements of `bytes` bytes up to the first one whose address is a multiple of 64; n when there is none. */
QK_INLINE size_t head(const void *dst, size_t bytes, size_t n) {
    size_t off = (64 - (uintptr_t)dst % 64) % 64;
    return off % bytes == 0 && off / bytes < n ? off / bytes : n;
}

/* ---- quantize ---- */

/* Of bytes, the values of nibbles in pairs: v clamped, two to a byte. */
QK_INLINE __m512i nibble_pairs(__m512i v, bool is_s4) {
    v = is_s4 ? _mm512_min_epi8(_mm512_max_epi8(v, _mm512_set1_epi8(-8)), _mm512_set1_epi8(7))
              : _mm512_min_epu8(v, _mm512_set1_epi8(15));
    return _mm512_maddubs_epi16(_mm512_and_si512(v, _mm512_set1_epi8(15)), _mm512_set1_epi16(0x1001));
}

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

QK_INLINE bool exact_ok(int type, float scale, int32_t zp, qk_quant_order order) {
    return qk_divisor_ok(scale, zp) && (type != QK_S32 || order == QK_ADD_THEN_ROUND || zp == 0);
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

/* Where the fixed-point way does not know: rare, and kept out of its loop. */
static __attribute__((noinline)) void q_unsure(int real, int type, const char *src, char *dst, size_t n,
                                               const float *scales, const int32_t *zps, size_t step,
                                               qk_quant_order order) {
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        if (real == QK_F32)                                                                                            \
            q_exact_lanes(QK_F32, t, src, dst, n, scales, zps, step, order);                                           \
        else if (real == QK_BF16)                                                                                      \
            q_exact_lanes(QK_BF16, t, src, dst, n, scales, zps, step, order);                                          \
        else                                                                                                           \
            q_exact_lanes(QK_F16, t, src, dst, n, scales, zps, step, order);                                           \
        break
    switch (type) {
        OF_TYPE(QK_U8);
        OF_TYPE(QK_S8);
        OF_TYPE(QK_U4);
        OF_TYPE(QK_S4);
    }
#undef OF_TYPE
}

/* Factor and shift of the fixed-point way, for one scale or for 64 in a row. */
typedef struct fixed {
    __m512 factor[4], shift[4];
} fixed;

/* 64 elements; false, and nothing written, when one of them is not sure. */
QK_INLINE bool q_fixed_64(int real, int type, const char *src, char *dst, const fixed *f, bool stream) {
    __m512i w[4], words[2];
    __mmask16 sure = 0xffff;
    if (real == QK_BF16) {
        /* two to a dword: the lower one moved up, the upper one where it is */
        __m512i x[2] = {_mm512_loadu_si512(src), _mm512_loadu_si512(src + 64)}, upper = _mm512_set1_epi32(-65536);
        w[0] = qk512_fixed(_mm512_castsi512_ps(_mm512_slli_epi32(x[0], 16)), f->factor[0], f->shift[0]);
        w[1] = qk512_fixed(_mm512_castsi512_ps(_mm512_and_si512(x[0], upper)), f->factor[0], f->shift[0]);
        w[2] = qk512_fixed(_mm512_castsi512_ps(_mm512_slli_epi32(x[1], 16)), f->factor[0], f->shift[0]);
        w[3] = qk512_fixed(_mm512_castsi512_ps(_mm512_and_si512(x[1], upper)), f->factor[0], f->shift[0]);
        QK_FOUR_TIMES(k, sure = qk512_fixed_sure(sure, w[k]));
        words[0] = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(w[0], 16), w[1]);
        words[1] = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(w[2], 16), w[3]);
    } else {
        QK_FOUR_TIMES(k, __m512 x = load_real(real, src + 16 * k * real_bytes(real), 0xffff);
                      w[k] = qk512_fixed(x, f->factor[k], f->shift[k]); sure = qk512_fixed_sure(sure, w[k]));
        words[0] = qk512_fixed_words(w[0], w[1]);
        words[1] = qk512_fixed_words(w[2], w[3]);
    }
    if (sure != 0xffff) return false;
    __m512i bytes = qk512_pack_words(words[0], words[1], is_signed(type));
    if (qk_stored_bits(type) == 8) {
        store(dst, bytes, stream);
    } else {
        __m256i pairs = _mm512_cvtepi16_epi8(nibble_pairs(bytes, is_signed(type)));
        if (stream)
            _mm256_stream_si256((__m256i *)dst, pairs);
        else
            _mm256_storeu_si256((__m256i *)dst, pairs);
    }
    return true;
}

/* Up to 16 elements. */
QK_INLINE bool q_fixed_16(int real, int type, const char *src, char *dst, size_t n, __m512 factor, __m512 shift) {
    __m512i w = qk512_fixed(load_real(real, src, qk512_lanes(n)), factor, shift);
    if (qk512_fixed_sure(0xffff, w) != 0xffff) return false;
    store_lanes(type, dst, n, _mm512_srai_epi32(w, 16));
    return true;
}

/* Scales of many runs, or of many columns, made ready at once; how many at a time. */
enum { READY = 4096 };

typedef struct ready {
    float factor[READY], shift[READY];
} ready;

/* False: one is not for the fixed-point way. */
QK_INLINE bool make_ready(const float *scales, const int32_t *zps, size_t n, ready *out) {
    __mmask16 ok = 0xffff;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 s = _mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), lanes, scales + i), a = _mm512_abs_ps(s);
        __m512i zp = zps ? _mm512_maskz_loadu_epi32(lanes, zps + i) : _mm512_setzero_si512();
        ok = _mm512_mask_cmp_ps_mask(ok, a, _mm512_set1_ps(0x1p-60f), _CMP_GE_OQ);
        ok = _mm512_mask_cmp_ps_mask(ok, a, _mm512_set1_ps(0x1p60f), _CMP_LE_OQ);
        ok = _mm512_mask_cmple_epu32_mask(ok, _mm512_add_epi32(zp, _mm512_set1_epi32(255)), _mm512_set1_epi32(510));
        __m512 one = _mm512_set1_ps(QK_FIXED_ONE), r = _mm512_div_ps(_mm512_set1_ps(1.0f), s);
        _mm512_storeu_ps(out->factor + i, _mm512_mul_ps(r, one));
        _mm512_storeu_ps(out->shift + i,
                         _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(zp), one), _mm512_set1_ps(qk_fixed_shift(0))));
    }
    return ok == 0xffff;
}

/* All whole blocks from element i on; returns how far that is. Data that lies on ties often does so for long: where block after
 * block is unsure, the long way is gone for longer and longer. */
QK_INLINE size_t q_fixed_blocks(int real, int type, const char *src, char *dst, size_t i, size_t n, const fixed *f,
                                const float *scale, const int32_t *zp, qk_quant_order order, bool stream) {
    enum { LONGEST = 4096 };
    size_t stretch = 64;
    while (n - i >= 64) {
        const char *s = src + i * real_bytes(real);
        if (q_fixed_64(real, type, s, dst + bytes_of(type, i), f, stream)) {
            i += 64;
            stretch = 64;
            continue;
        }
        const size_t whole = (n - i) / 64 * 64, m = stretch < whole ? stretch : whole;
        q_unsure(real, type, s, dst + bytes_of(type, i), m, scale, zp, 0, order);
        i += m;
        stretch = stretch < LONGEST ? 2 * stretch : LONGEST;
    }
    return i;
}

QK_INLINE void q_fixed_run(int real, int type, const char *src, char *dst, size_t n, const float *factor,
                           const float *shift, const float *scale, const int32_t *zp, qk_quant_order order,
                           bool stream) {
    fixed f;
    QK_FOUR_TIMES(k, f.factor[k] = _mm512_set1_ps(*factor); f.shift[k] = _mm512_set1_ps(*shift));
    size_t i = 0;
    if (stream && n >= 128) {
        const size_t begin = qk_stored_bits(type) == 4 ? 2 * head(dst, 1, n / 2) : head(dst, 1, n);
        for (; i < begin; i += 16) {
            size_t m = begin - i < 16 ? begin - i : 16;
            const char *s = src + i * real_bytes(real);
            if (!q_fixed_16(real, type, s, dst + bytes_of(type, i), m, f.factor[0], f.shift[0]))
                q_unsure(real, type, s, dst + bytes_of(type, i), m, scale, zp, 0, order);
        }
        i = q_fixed_blocks(real, type, src, dst, begin, n, &f, scale, zp, order, true);
    } else {
        i = q_fixed_blocks(real, type, src, dst, 0, n, &f, scale, zp, order, false);
    }
    for (; i < n; i += 16) {
        size_t m = n - i < 16 ? n - i : 16;
        const char *s = src + i * real_bytes(real);
        if (!q_fixed_16(real, type, s, dst + bytes_of(type, i), m, f.factor[0], f.shift[0]))
            q_unsure(real, type, s, dst + bytes_of(type, i), m, scale, zp, 0, order);
    }
}

/* 16 and 32 bits: the quotient itself. */
QK_INLINE void q_exact_run(int type, bool add_first, const float *src, char *dst, size_t n, float scale, int32_t zp_,
                           bool stream) {
    const qk512_divisor d = divisor_of(type, _mm512_set1_ps(scale));
    const __m512i zp = _mm512_set1_epi32(zp_);
    const size_t bytes = bytes_of(type, 1);
    size_t i = 0;
    if (stream)
        for (size_t m, begin = head(dst, bytes, n); i < begin; i += m) {
            m = begin - i < 16 ? begin - i : 16;
            store_lanes(type, dst + i * bytes, m,
                        q_exact(type, d, zp, add_first, load_real(QK_F32, (const char *)(src + i), qk512_lanes(m))));
        }
    for (; n - i >= 32; i += 32) {
        __m512i v0 = q_exact(type, d, zp, add_first, _mm512_loadu_ps(src + i));
        __m512i v1 = q_exact(type, d, zp, add_first, _mm512_loadu_ps(src + i + 16));
        if (type == QK_S32) {
            store(dst + 4 * i, v0, stream);
            store(dst + 4 * i + 64, v1, stream);
        } else {
            store(dst + 2 * i, qk512_pack16(v0, v1, is_signed(type)), stream);
        }
    }
    for (; i < n; i += 16) {
        __m512 x = load_real(QK_F32, (const char *)(src + i), qk512_lanes(n - i));
        store_lanes(type, dst + i * bytes, n - i, q_exact(type, d, zp, add_first, x));
    }
}

/* One run by the scalar reference, where scale or zero point is not of the usual: any types. */
static __attribute__((noinline)) void q_odd_run(int real, int type, const char *src, char *dst, size_t n, float scale,
                                                int32_t zp, qk_quant_order order) {
    enum { CHUNK = 256 };
    const bool is_4bit = qk_stored_bits(type) == 4;
    const int stored = type == QK_U4 ? QK_U8 : type == QK_S4 ? QK_S8 : type;
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
        qk_quant_ref.q_runs[QK_F32][stored](s, is_4bit ? (char *)bytes : d, 1, m, &scale, &zp, order, false);
        if (is_4bit) qk_quant_ref.pack4(bytes, (uint8_t *)d, m, type == QK_S4);
    }
}

/* Runs of 16 or 32 elements: as many as make 64, side by side in one block. Returns how many runs are done. */
QK_INLINE size_t q_short_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len, const ready *t,
                              const float *scales, const int32_t *zps, qk_quant_order order) {
    const size_t per = 64 / len, src_step = len * real_bytes(real), dst_step = bytes_of(type, len);
    size_t r = 0;
    for (; n_runs - r >= per; r += per) {
        fixed f;
        QK_FOUR_TIMES(k, f.factor[k] = _mm512_set1_ps(t->factor[r + k * 16 / len]);
                      f.shift[k] = _mm512_set1_ps(t->shift[r + k * 16 / len]));
        if (q_fixed_64(real, type, src + r * src_step, dst + r * dst_step, &f, false)) continue;
        for (size_t k = r; k < r + per; k++)
            q_unsure(real, type, src + k * src_step, dst + k * dst_step, len, scales + k, zps ? zps + k : NULL, 0,
                     order);
    }
    return r;
}

QK_INLINE void q_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    const char *src = src_;
    char *dst = dst_;
    const size_t src_step = len * real_bytes(real), dst_step = bytes_of(type, len);
    for (size_t at = 0; at < n_runs; at += READY) {
        const size_t n = n_runs - at < READY ? n_runs - at : READY;
        ready table;
        const bool is_fixed = is_narrow(type) && make_ready(scales + at, zps ? zps + at : NULL, n, &table);
        size_t r = 0;
        if (is_fixed && (len == 32 || len == 16) && real != QK_BF16) {
            const int32_t *zp = zps ? zps + at : NULL;
            r = len == 32 ? q_short_runs(real, type, src, dst, n, 32, &table, scales + at, zp, order)
                          : q_short_runs(real, type, src, dst, n, 16, &table, scales + at, zp, order);
            src += r * src_step;
            dst += r * dst_step;
        }
        for (; r < n; r++, src += src_step, dst += dst_step) {
            const float scale = scales[at + r];
            const int32_t zp = zps ? zps[at + r] : 0;
            if (is_fixed)
                q_fixed_run(real, type, src, dst, len, &table.factor[r], &table.shift[r], &scale, &zp, order, stream);
            else if (is_narrow(type) && qk_fixed_ok(scale, zp))
                q_unsure(real, type, src, dst, len, &scale, &zp, 0, order);
            else if (is_narrow(type) || !exact_ok(type, scale, zp, order))
                q_odd_run(real, type, src, dst, len, scale, zp, order);
            else if (order == QK_ADD_THEN_ROUND && zp != 0)
                q_exact_run(type, true, (const float *)(const void *)src, dst, len, scale, zp, stream);
            else
                q_exact_run(type, false, (const float *)(const void *)src, dst, len, scale, zp, stream);
        }
    }
}

/* ---- a scale per column ---- */

/* Rows that go through the same columns together, so that their scales are loaded once. Measured. */
enum { Q_TOGETHER = 8, DQ_TOGETHER = 2 };

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
            QK_FOUR_TIMES(k, f.factor[k] = _mm512_loadu_ps(t->factor + c + 16 * k); f.shift[k] = no_zp);
            if (zps) QK_FOUR_TIMES(k, f.shift[k] = _mm512_loadu_ps(t->shift + c + 16 * k));
            for (size_t k = 0; k < m; k++) {
                const char *s = (const char *)(src + (r + k) * stride + c);
                char *d = dst + (r + k) * stride + c;
                if (!q_fixed_64(QK_F32, type, s, d, &f, stream && (uintptr_t)d % 64 == 0))
                    q_unsure(QK_F32, type, s, d, 64, scales + c, zps ? zps + c : NULL, 1, order);
            }
        }
        for (; c < n; c += 16) {
            const size_t lanes = n - c < 16 ? n - c : 16;
            const __m512 factor = _mm512_loadu_ps(t->factor + c), shift = _mm512_loadu_ps(t->shift + c);
            for (size_t k = 0; k < m; k++) {
                const char *s = (const char *)(src + (r + k) * stride + c);
                char *d = dst + (r + k) * stride + c;
                if (!q_fixed_16(QK_F32, type, s, d, lanes, factor, shift))
                    q_unsure(QK_F32, type, s, d, lanes, scales + c, zps ? zps + c : NULL, 1, order);
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
        if (is_narrow(type) && make_ready(scales + c, zp, n, &table)) {
            q_cols_fixed(type, src + c, dst, rows, n, cols, &table, scales + c, zp, order, stream);
            continue;
        }
        bool ok = true;
        for (size_t k = 0; k < n; k++)
            ok &= exact_ok(type, scales[c + k], zp ? zp[k] : 0, order);
        for (size_t r = 0; r < rows; r++)
            if (ok)
                q_exact_lanes(QK_F32, type, (const char *)(src + r * cols + c), dst + r * cols * bytes, n, scales + c,
                              zp, 1, order);
            else
                qk_quant_ref.q_cols[type](src + r * cols + c, dst + r * cols * bytes, 1, n, scales + c, zp, order,
                                          false);
    }
}

/* A few columns: as many rows side by side as make whole vectors. */
enum { WIDE = 1024 };

/* How many rows; 1: as they are. */
QK_INLINE size_t side_by_side(size_t rows, size_t cols) {
    size_t n = cols % 2 ? 64 : cols % 4 ? 32 : cols % 8 ? 16 : cols % 16 ? 8 : cols % 32 ? 4 : 2;
    if (n * cols > WIDE) n /= 4; /* at least whole vectors */
    return cols < 64 && n * cols <= WIDE && rows >= n ? n : 1;
}

QK_INLINE void repeat(const float *scales, const int32_t *zps, size_t cols, size_t n, float *s, int32_t *z) {
    for (size_t r = 0; r < n; r++) {
        memcpy(s + r * cols, scales, cols * sizeof *s);
        if (zps) memcpy(z + r * cols, zps, cols * sizeof *z);
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

/* ---- dequantize ---- */

/* q - zp must be exact in 32 bits. */
QK_INLINE bool zp_ok(int type, int32_t zp) {
    return type == QK_S32 ? zp == 0 : zp >= -(1 << 30) && zp <= 1 << 30;
}

QK_INLINE __m512i load_lanes(int type, const char *src, __mmask16 lanes) {
    if (type == QK_S32) return _mm512_maskz_loadu_epi32(lanes, src);
    if (qk_stored_bits(type) == 8) return qk512_load8_lanes(src, lanes, is_signed(type));
    __m256i w = _mm256_maskz_loadu_epi16(lanes, src);
    return is_signed(type) ? _mm512_cvtepi16_epi32(w) : _mm512_cvtepu16_epi32(w);
}

/* No NaN: scales are finite where this is called. */
QK_INLINE __m512i bf16_rounded(__m512 x) {
    __m512i u = _mm512_castps_si512(x), r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(r, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), r, _mm512_set1_epi32(1));
}

QK_INLINE void store_real(int real, char *dst, size_t n, __m512 x) {
    __mmask16 lanes = qk512_lanes(n);
    if (real == QK_F32)
        _mm512_mask_storeu_ps(dst, lanes, x);
    else if (real == QK_F16)
        _mm256_mask_storeu_epi16(dst, lanes, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    else
        _mm512_mask_cvtepi32_storeu_epi16(dst, lanes, _mm512_srli_epi32(bf16_rounded(x), 16));
}

QK_INLINE void store_real_32(int real, char *dst, __m512 x0, __m512 x1, bool stream) {
    if (real == QK_F32) {
        store(dst, _mm512_castps_si512(x0), stream);
        store(dst + 64, _mm512_castps_si512(x1), stream);
    } else if (real == QK_BF16) {
        store(dst, qk512_fixed_words(bf16_rounded(x0), bf16_rounded(x1)), stream);
    } else {
        __m512i h = _mm512_castsi256_si512(_mm512_cvtps_ph(x0, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        store(dst, _mm512_inserti64x4(h, _mm512_cvtps_ph(x1, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1),
              stream);
    }
}

QK_INLINE __m512 dq_16(int type, const char *src, size_t n, __m512 scale, __m512i zp) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(load_lanes(type, src, qk512_lanes(n)), zp)), scale);
}

QK_INLINE void dq_run(int real, int type, const char *src, char *dst, size_t n, float scale_, int32_t zp_,
                      bool stream) {
    const __m512 scale = _mm512_set1_ps(scale_);
    const __m512i zp = _mm512_set1_epi32(zp_);
    const size_t bytes = bytes_of(type, 1), to = real_bytes(real);
    size_t i = 0;
    if (stream) {
        for (size_t m, begin = head(dst, to, n); i < begin; i += m) {
            m = begin - i < 16 ? begin - i : 16;
            store_real(real, dst + i * to, m, dq_16(type, src + i * bytes, m, scale, zp));
        }
        for (; n - i >= 32; i += 32)
            store_real_32(real, dst + i * to, dq_16(type, src + i * bytes, 16, scale, zp),
                          dq_16(type, src + (i + 16) * bytes, 16, scale, zp), true);
    } else {
        for (; n - i >= 64; i += 64)
            for (size_t k = i; k < i + 64; k += 32)
                store_real_32(real, dst + k * to, dq_16(type, src + k * bytes, 16, scale, zp),
                              dq_16(type, src + (k + 16) * bytes, 16, scale, zp), false);
    }
    for (; i < n; i += 16)
        store_real(real, dst + i * to, n - i, dq_16(type, src + i * bytes, n - i, scale, zp));
}

/* 4 bits: the sixteen values there are, as floats or as words. */
QK_INLINE __m512 sixteen(int type, float scale, int32_t zp) {
    const __m512i u = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i s = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    __m512i q = _mm512_sub_epi32(type == QK_S4 ? s : u, _mm512_set1_epi32(zp));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(scale));
}

QK_INLINE void dq_nibbles_f32(__m512 values, const char *src, float *dst, size_t n, bool stream) {
    /* every lane gets the dword its nibble is in, moved down; the look-up ignores what is above four bits */
    const __m512i down = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i which = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const bool past_caches = stream && (uintptr_t)dst % 64 == 0;
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        const __m512i q = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(src + i / 2)));
        const __m512i at0 = _mm512_permutexvar_epi32(which, q);
        const __m512i at1 = _mm512_permutexvar_epi32(_mm512_add_epi32(which, _mm512_set1_epi32(2)), q);
        store(dst + i, _mm512_castps_si512(_mm512_permutexvar_ps(_mm512_srlv_epi32(at0, down), values)), past_caches);
        store(dst + i + 16, _mm512_castps_si512(_mm512_permutexvar_ps(_mm512_srlv_epi32(at1, down), values)),
              past_caches);
    }
    for (; i < n; i += 16) {
        const size_t m = n - i < 16 ? n - i : 16;
        __m128i b = _mm_maskz_loadu_epi8((__mmask16)((1u << ((m + 1) / 2)) - 1u), src + i / 2);
        __m512i at = _mm512_permutexvar_epi32(which, _mm512_castsi128_si512(b));
        _mm512_mask_storeu_ps(dst + i, qk512_lanes(m), _mm512_permutexvar_ps(_mm512_srlv_epi32(at, down), values));
    }
}

/* 16-bit results; the table of 32 words has each value twice. */
QK_INLINE void dq_nibbles_16(__m512i words, const char *src, uint16_t *dst, size_t n, bool stream) {
    const __m512i down = _mm512_set1_epi64(0x000c000800040000);
    const __m512i which = _mm512_set_epi16(7, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1,
                                           1, 1, 0, 0, 0, 0);
    const bool past_caches = stream && (uintptr_t)dst % 64 == 0;
    for (size_t i = 0; i < n; i += 32) {
        const size_t m = n - i < 32 ? n - i : 32;
        __m128i b = m == 32 ? _mm_loadu_si128((const __m128i *)(src + i / 2))
                            : _mm_maskz_loadu_epi8((__mmask16)((1u << ((m + 1) / 2)) - 1u), src + i / 2);
        __m512i at = _mm512_permutexvar_epi16(which, _mm512_castsi128_si512(b));
        __m512i x = _mm512_permutexvar_epi16(_mm512_srlv_epi16(at, down), words);
        if (m == 32)
            store(dst + i, x, past_caches);
        else
            _mm512_mask_storeu_epi16(dst + i, ((__mmask32)1 << m) - 1u, x);
    }
}

static __attribute__((noinline)) void dq_odd_run(int real, int type, const char *src, char *dst, size_t n, float scale,
                                                 int32_t zp) {
    enum { CHUNK = 256 };
    const bool is_4bit = qk_stored_bits(type) == 4;
    const int stored = type == QK_U4 ? QK_U8 : type == QK_S4 ? QK_S8 : type;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t m = n - i < CHUNK ? n - i : CHUNK;
        const char *s = src + bytes_of(type, i);
        char *d = dst + i * real_bytes(real);
        if (is_4bit) {
            qk_quant_ref.unpack4((const uint8_t *)s, bytes, m, type == QK_S4);
            s = (const char *)bytes;
        }
        qk_quant_ref.dq_runs[QK_F32][stored](s, real == QK_F32 ? d : (char *)reals, 1, m, &scale, &zp, false);
        if (real == QK_BF16) qk_quant_ref.bf16_of_f32(reals, (uint16_t *)(void *)d, m);
        if (real == QK_F16) qk_quant_ref.f16_of_f32(reals, (uint16_t *)(void *)d, m);
    }
}

QK_INLINE void dq_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                       const int32_t *zps, bool stream) {
    const char *src = src_;
    char *dst = dst_;
    for (size_t r = 0; r < n_runs; r++, src += bytes_of(type, len), dst += len * real_bytes(real)) {
        const int32_t zp = zps ? zps[r] : 0;
        if (!zp_ok(type, zp) || (real != QK_F32 && !isfinite(scales[r]))) {
            dq_odd_run(real, type, src, dst, len, scales[r], zp);
        } else if (qk_stored_bits(type) != 4) {
            dq_run(real, type, src, dst, len, scales[r], zp, stream);
        } else if (real == QK_F32) {
            dq_nibbles_f32(sixteen(type, scales[r], zp), src, (float *)(void *)dst, len, stream);
        } else {
            __m512i twice = bf16_rounded(sixteen(type, scales[r], zp));
            dq_nibbles_16(qk512_fixed_words(twice, twice), src, (uint16_t *)(void *)dst, len, stream);
        }
    }
}

QK_INLINE void dq_cols_wide(int type, const char *src, float *dst, size_t rows, size_t cols, const float *scales,
                            const int32_t *zps, bool stream) {
    const size_t bytes = bytes_of(type, 1);
    for (size_t r = 0; r < rows; r += DQ_TOGETHER) {
        const size_t m = rows - r < DQ_TOGETHER ? rows - r : DQ_TOGETHER;
        size_t c = 0;
        for (; cols - c >= 64; c += 64) {
            __m512 scale[4];
            __m512i zp[4];
            QK_FOUR_TIMES(k, scale[k] = _mm512_loadu_ps(scales + c + 16 * k);
                          zp[k] = zps ? _mm512_loadu_si512(zps + c + 16 * k) : _mm512_setzero_si512());
            for (size_t k = 0; k < m; k++) {
                const char *s = src + ((r + k) * cols + c) * bytes;
                float *d = dst + (r + k) * cols + c;
                const bool past_caches = stream && (uintptr_t)d % 64 == 0;
                QK_FOUR_TIMES(j, store(d + 16 * j,
                                       _mm512_castps_si512(dq_16(type, s + 16 * j * bytes, 16, scale[j], zp[j])),
                                       past_caches));
            }
        }
        for (; c < cols; c += 16) {
            const size_t n = cols - c < 16 ? cols - c : 16;
            const __m512 scale = _mm512_maskz_loadu_ps(qk512_lanes(n), scales + c);
            const __m512i zp = zps ? _mm512_maskz_loadu_epi32(qk512_lanes(n), zps + c) : _mm512_setzero_si512();
            for (size_t k = 0; k < m; k++)
                store_real(QK_F32, (char *)(dst + (r + k) * cols + c), n,
                           dq_16(type, src + ((r + k) * cols + c) * bytes, n, scale, zp));
        }
    }
}

QK_INLINE void dq_cols(int type, const void *src_, float *dst, size_t rows, size_t cols, const float *scales,
                       const int32_t *zps, bool stream) {
    bool ok = true;
    for (size_t c = 0; zps && c < cols; c++)
        ok &= zp_ok(type, zps[c]);
    if (!ok) {
        qk_quant_ref.dq_cols[type](src_, dst, rows, cols, scales, zps, stream);
        return;
    }
    const char *src = src_;
    const size_t n = side_by_side(rows, cols), joined = rows / n;
    if (n > 1) {
        float s[WIDE];
        int32_t z[WIDE];
        repeat(scales, zps, cols, n, s, z);
        dq_cols_wide(type, src, dst, joined, n * cols, s, zps ? z : NULL, stream);
        src += bytes_of(type, joined * n * cols);
        dst += joined * n * cols;
        rows %= n;
    }
    dq_cols_wide(type, src, dst, rows, cols, scales, zps, stream);
}

/* ---- narrow floats ---- */

static void f32_of_f16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        _mm512_mask_storeu_ps(dst + i, lanes, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, src + i)));
    }
}

static void f16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m256i h =
            _mm512_cvtps_ph(_mm512_maskz_loadu_ps(lanes, src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(dst + i, lanes, h);
    }
}

static void f32_of_bf16(const uint16_t *src, float *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i w = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, src + i));
        _mm512_mask_storeu_epi32(dst + i, lanes, _mm512_slli_epi32(w, 16));
    }
}

static void bf16_of_f32(const float *src, uint16_t *dst, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 f = _mm512_maskz_loadu_ps(lanes, src + i);
        __m512i u = _mm512_castps_si512(f), high = _mm512_srli_epi32(u, 16);
        __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
        r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), high, _mm512_set1_epi32(0x40));
        _mm512_mask_cvtepi32_storeu_epi16(dst + i, lanes, r);
    }
}

static void unpack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    size_t i = qk_unpack_nibbles(src, dst, n, is_signed);
    qk_quant_ref.unpack4(src + i / 2, dst + i, n - i, is_signed);
}

static void pack4(const uint8_t *src, uint8_t *dst, size_t n, bool is_signed) {
    size_t i = qk_pack_nibbles(src, dst, n, is_signed);
    qk_quant_ref.pack4(src + i, dst + i / 2, n - i, is_signed);
}

static void minmax(const float *src, size_t n, float *min_out, float *max_out) {
    __m512 lo[2], hi[2];
    for (int k = 0; k < 2; k++) {
        lo[k] = _mm512_set1_ps(INFINITY);
        hi[k] = _mm512_set1_ps(-INFINITY);
    }
    size_t i = 0;
    /* The second operand is the result when the first is a NaN. */
    for (; n - i >= 32; i += 32)
        for (size_t k = 0; k < 2; k++) {
            __m512 x = _mm512_loadu_ps(src + i + 16 * k);
            lo[k] = _mm512_min_ps(x, lo[k]);
            hi[k] = _mm512_max_ps(x, hi[k]);
        }
    for (; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 x = _mm512_maskz_loadu_ps(lanes, src + i);
        lo[0] = _mm512_mask_min_ps(lo[0], lanes, x, lo[0]);
        hi[0] = _mm512_mask_max_ps(hi[0], lanes, x, hi[0]);
        if (n - i < 16) break;
    }
    *min_out = _mm512_reduce_min_ps(_mm512_min_ps(lo[0], lo[1])) + 0.0f;
    *max_out = _mm512_reduce_max_ps(_mm512_max_ps(hi[0], hi[1])) + 0.0f;
}

QK_QUANT_F32_TYPES
QK_QUANT_DIRECT_TYPES

const qk_quant_row qk_quant_avx512 = {
    .q_runs = QK_QUANT_ALL_RUNS(q_runs),
    .q_cols = QK_QUANT_COLS(q_cols),
    .dq_runs = QK_QUANT_ALL_RUNS(dq_runs),
    .dq_cols = QK_QUANT_COLS(dq_cols),
    .f32_of_f16 = f32_of_f16,
    .f16_of_f32 = f16_of_f32,
    .f32_of_bf16 = f32_of_bf16,
    .bf16_of_f32 = bf16_of_f32,
    .unpack4 = unpack4,
    .pack4 = pack4,
    .minmax = minmax,
    .isa = QK_ISA_avx512,
};
