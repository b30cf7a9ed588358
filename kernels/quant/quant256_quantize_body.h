/* Quantization on AVX2: by fixed-point numbers where that is sure, by quotients where it is not, or where results are wide. Written once
 * for all types: `real` and `type` are constants where they are called. */
#ifndef QK_QUANT256_QUANTIZE_H
#define QK_QUANT256_QUANTIZE_H

#include "kernels/quant/quant256_io_body.h"
#include "kernels/simd/two_steps.h"

/* ---- by way of the divisions, whatever they are: a tail is copied into a whole block, and the result's beginning copied out ---- */

/* Of a block: scales and zero points, one for all or one each. */
typedef struct params {
    qk256_divisor divisor[4];
    __m256i zp[4];
    bool is_exact; /* the way of the quotients may be gone */
} params;

/* For n of a block's elements, `step` (0 or 1) from one's scale to the next one's. */
QK_INLINE void params_of(int type, const float *scales, const int32_t *zps, size_t n, size_t step, qk_quant_order order,
                         params *p) {
    float s[BLOCK];
    int32_t z[BLOCK];
    p->is_exact = true;
    for (size_t k = 0; k < BLOCK; k++) {
        s[k] = k < n ? scales[k * step] : 1.0f;
        z[k] = k < n && zps ? zps[k * step] : 0;
    }
    for (size_t k = 0; k < (step ? n : 1); k++)
        p->is_exact &= exact_ok(type, s[k], z[k], order);
    QK_FOUR_TIMES(k, p->divisor[k] = qk256_divisor_of(_mm256_loadu_ps(s + 8 * k));
                  p->zp[k] = _mm256_loadu_si256((const __m256i *)(z + 8 * k)));
    if (type == QK_S32) {
        const __m256 limit = _mm256_set1_ps(0x1p33f), sign = _mm256_set1_ps(-0.0f);
        QK_FOUR_TIMES(k, p->divisor[k].limit = _mm256_mul_ps(_mm256_andnot_ps(sign, p->divisor[k].scale), limit));
    }
}

/* A block by way of the quotients. A NaN gives the zero point; 32-bit results saturate here. */
QK_INLINE void q_exact_block(int type, bool add_first, const float *src, char *dst, const params *p) {
    __m256i v[4];
    if (type == QK_S32) {
        const __m256 limit = _mm256_set1_ps(0x1p31f);
        QK_FOUR_TIMES(k, __m256 q = qk256_divide(p->divisor[k], _mm256_loadu_ps(src + 8 * k));
                      if (add_first) q = _mm256_add_ps(q, _mm256_cvtepi32_ps(p->zp[k])); /* otherwise it is 0 */
                      __m256 large = _mm256_cmp_ps(q, limit, _CMP_GE_OQ);
                      /* too large converts to the lowest integer: all its bits turned round are the highest */
                      v[k] = _mm256_xor_si256(_mm256_cvtps_epi32(q), _mm256_castps_si256(large));
                      store(dst + 32 * k, v[k], false));
        return;
    }
    QK_FOUR_TIMES(k, __m256 q = qk256_divide(p->divisor[k], _mm256_loadu_ps(src + 8 * k));
                  v[k] = qk256_round(q, p->zp[k], _mm256_cvtepi32_ps(p->zp[k]), add_first));
    if (is_narrow(type)) {
        store(dst, qk256_pack8(v, is_signed(type)), false);
    } else {
        store(dst, qk256_pack16(v[0], v[1], is_signed(type)), false);
        store(dst + 32, qk256_pack16(v[2], v[3], is_signed(type)), false);
    }
}

QK_INLINE void q_block(int type, const float *src, char *dst, const params *p, qk_quant_order order) {
    if (order == QK_ADD_THEN_ROUND)
        q_exact_block(type, true, src, dst, p);
    else
        q_exact_block(type, false, src, dst, p);
}

QK_INLINE void q_some(int type, const float *src, char *dst, size_t n, const params *p, qk_quant_order order) {
    float in[BLOCK] = {0};
    char out[BLOCK * 4];
    memcpy(in, src, n * sizeof *in);
    q_block(type, in, out, p, order);
    memcpy(dst, out, n * bytes_of(type, 1));
}

/* ---- quotients ---- */

/* How a zero point comes in. */
enum { NO_ZP, ZP_FIRST, ZP_LAST };

/* Of a block, for all or one each. In two steps `low` is of two_steps.h. */
typedef struct quotients {
    __m256 scale[4], recip[4], low[4];
    __m256i zp[4];
} quotients;

/* False, and nothing written, when something is a NaN or out of reach: it converts to the lowest integer. */
QK_INLINE bool q_quotient_block(int type, int zp, bool two_steps, const float *src, char *dst, const quotients *d,
                                bool stream) {
    __m256i v[4];
    QK_FOUR_TIMES(k, const __m256 x = _mm256_loadu_ps(src + 8 * k);
                  __m256 q = _mm256_fmadd_ps(x, d->recip[k], _mm256_mul_ps(x, d->low[k]));
                  if (!two_steps) q = _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d->scale[k], x), d->recip[k], q);
                  if (zp == ZP_FIRST) q = _mm256_add_ps(q, _mm256_cvtepi32_ps(d->zp[k])); v[k] = _mm256_cvtps_epi32(q));
    const __m256i least = _mm256_min_epi32(_mm256_min_epi32(v[0], v[1]), _mm256_min_epi32(v[2], v[3]));
    /* With a zero point to come, none so large that the sum would wrap. */
    const __m256i limit = _mm256_set1_epi32(type == QK_S32 ? INT32_MIN + 1 : -(1 << 30));
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(limit, least))) return false;
    if (type == QK_S32) {
        QK_FOUR_TIMES(k, store(dst + 32 * k, v[k], stream));
        return true;
    }
    if (zp == ZP_LAST) {
        const __m256i most = _mm256_set1_epi32(1 << 30);
        QK_FOUR_TIMES(k, v[k] = _mm256_add_epi32(_mm256_min_epi32(v[k], most), d->zp[k]));
    }
    if (is_narrow(type)) {
        store(dst, qk256_pack8(v, is_signed(type)), stream);
    } else {
        store(dst, qk256_pack16(v[0], v[1], is_signed(type)), stream);
        store(dst + 32, qk256_pack16(v[2], v[3], is_signed(type)), stream);
    }
    return true;
}

/* What the quotients do not do, and rests: n elements. */
static __attribute__((noinline)) void q_by_params(int type, const float *src, char *dst, size_t n, const float *scale,
                                                  const int32_t *zps, qk_quant_order order) {
    params p;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        params_of(t, scale, zps, BLOCK, 0, order, &p);                                                                 \
        for (size_t i = 0; i < n; i += BLOCK)                                                                          \
            q_some(t, src + i, dst + i * bytes_of(t, 1), n - i < BLOCK ? n - i : BLOCK, &p, order);                    \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

/* So many elements are worth the proof that two steps are enough. */
enum { PROVEN = 16384 };

/* Runs of whole blocks; `low` is that of two steps. */
QK_INLINE void quotient_runs(int type, int zp, bool two_steps, float low, const float *src, char *dst, size_t n_runs,
                             size_t len, const float *scales, const int32_t *zps, qk_quant_order order, bool stream) {
    float recips[8], lows[8];
    for (size_t r = 0; r < n_runs; r++) {
        if (r % 8 == 0) {
            float s[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            memcpy(s, scales + r, (n_runs - r < 8 ? n_runs - r : 8) * sizeof *s);
            const qk256_divisor eight = qk256_divisor_of(_mm256_loadu_ps(s));
            _mm256_storeu_ps(recips, eight.recip);
            _mm256_storeu_ps(lows, eight.low);
        }
        quotients d;
        QK_FOUR_TIMES(k, d.scale[k] = _mm256_set1_ps(scales[r]); d.recip[k] = _mm256_set1_ps(recips[r % 8]);
                      d.low[k] = _mm256_set1_ps(two_steps ? low : lows[r % 8]);
                      d.zp[k] = _mm256_set1_epi32(zps ? zps[r] : 0));
        for (size_t i = 0; i < len; i += BLOCK, src += BLOCK, dst += bytes_of(type, BLOCK))
            if (!q_quotient_block(type, zp, two_steps, src, dst, &d, stream))
                q_by_params(type, src, dst, BLOCK, scales + r, zps ? zps + r : NULL, order);
    }
}

static __attribute__((noinline)) void q_quotient_runs(int type, const float *src, char *dst, size_t n_runs, size_t len,
                                                      const float *scales, const int32_t *zps, qk_quant_order order,
                                                      bool stream) {
    float low = 0.0f;
    const bool two_steps = n_runs == 1 && len >= PROVEN && qk_two_steps(*scales, &low);
    const int zp = zps == NULL || (n_runs == 1 && *zps == 0) ? NO_ZP : order == QK_ADD_THEN_ROUND ? ZP_FIRST : ZP_LAST;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        if (zp == NO_ZP && two_steps)                                                                                  \
            quotient_runs(t, NO_ZP, true, low, src, dst, n_runs, len, scales, zps, order, stream);                     \
        else if (zp == NO_ZP)                                                                                          \
            quotient_runs(t, NO_ZP, false, low, src, dst, n_runs, len, scales, zps, order, stream);                    \
        else if (zp == ZP_FIRST)                                                                                       \
            quotient_runs(t, ZP_FIRST, false, low, src, dst, n_runs, len, scales, zps, order, stream);                 \
        else                                                                                                           \
            quotient_runs(t, ZP_LAST, false, low, src, dst, n_runs, len, scales, zps, order, stream);                  \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

/* Elements that are made floats, or nibbles of bytes, at once. */
enum { CHUNK = 1024 };

/* Any types: one run of any length, where 4-bit elements begin with a whole byte, or runs of whole blocks. Rare, but where data lies on
 * ties. */
static __attribute__((noinline)) void q_exact_runs(int real, int type, const char *src, char *dst, size_t n_runs,
                                                   size_t len, const float *scales, const int32_t *zps,
                                                   qk_quant_order order, bool stream) {
    if (real == QK_F32 && !is_4bit(type)) {
        const size_t whole = len / BLOCK * BLOCK, bytes = bytes_of(type, 1);
        const float *s = (const float *)(const void *)src;
        if (whole) q_quotient_runs(type, s, dst, n_runs, whole, scales, zps, order, stream);
        if (whole < len) q_by_params(type, s + whole, dst + whole * bytes, len - whole, scales, zps, order);
        return;
    }
    const int stored = type == QK_U4 ? QK_U8 : type == QK_S4 ? QK_S8 : type;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    /* some runs, or some of one run */
    for (size_t r = 0, i = 0; r < n_runs && len;) {
        const size_t fit = len < CHUNK ? CHUNK / len : 1, runs = fit < n_runs - r ? fit : n_runs - r,
                     m = len - i < CHUNK ? len - i : CHUNK;
        const char *s = src;
        if (real != QK_F32) {
            (real == QK_BF16 ? f32_of_bf16 : f32_of_f16)((const uint16_t *)(const void *)s, reals, runs * m);
            s = (const char *)reals;
        }
        q_exact_runs(QK_F32, stored, s, is_4bit(type) ? (char *)bytes : dst, runs, m, scales + r, zps ? zps + r : NULL,
                     order, false);
        if (is_4bit(type)) pack4(bytes, (uint8_t *)dst, runs * m, type == QK_S4);
        src += runs * m * real_bytes(real);
        dst += bytes_of(type, runs * m);
        i += m;
        if (i < len) continue;
        i = 0;
        r += runs;
    }
}

/* ---- fixed point ---- */

/* 32 elements; of bf16 the even ones of sixteen, moved up, and the odd ones, where they are. */
QK_INLINE void load_reals(int real, const char *src, __m256 x[4]) {
    if (real == QK_F32) {
        QK_FOUR_TIMES(k, x[k] = _mm256_loadu_ps((const float *)(const void *)src + 8 * k));
    } else if (real == QK_F16) {
        QK_FOUR_TIMES(k, x[k] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + 16 * k))));
    } else {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)src),
                      b = _mm256_loadu_si256((const __m256i *)(const void *)(src + 32)),
                      odd = _mm256_set1_epi32(-65536);
        x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(a, 16));
        x[1] = _mm256_castsi256_ps(_mm256_and_si256(a, odd));
        x[2] = _mm256_castsi256_ps(_mm256_slli_epi32(b, 16));
        x[3] = _mm256_castsi256_ps(_mm256_and_si256(b, odd));
    }
}

/* Has every lane a bit behind the point that counts? Of 4 bits, the lower half alone says so of nearly all. */
QK_INLINE bool is_sure(int type, const __m256i w[4]) {
    if (__builtin_expect(qk256_all_sure(qk256_fixed_sure(w)), 1)) return true;
    if (!is_4bit(type)) return false;
    const __m256i bits = _mm256_set1_epi32(0xffff0);
    const __m256i a = _mm256_min_epu32(_mm256_and_si256(w[0], bits), _mm256_and_si256(w[1], bits)),
                  b = _mm256_min_epu32(_mm256_and_si256(w[2], bits), _mm256_and_si256(w[3], bits));
    return qk256_all_sure(_mm256_min_epu32(a, b));
}

/* False, and nothing written, when one is not sure. */
QK_INLINE bool q_fixed_block(int real, int type, const char *src, char *dst, const __m256 factor[4],
                             const __m256 shift[4], bool stream) {
    __m256 x[4];
    __m256i w[4];
    load_reals(real, src, x);
    QK_FOUR_TIMES(k, w[k] = qk256_fixed(x[k], factor[k], shift[k]));
    if (!is_sure(type, w)) return false;
    if (real != QK_BF16 && !is_4bit(type)) {
        store(dst, qk256_fixed_bytes(w, is_signed(type)), stream);
        return true;
    }
    /* upper halves: those of bf16 meet in order */
    const __m256i a = _mm256_blend_epi16(_mm256_srli_epi32(w[0], 16), w[1], 0xaa),
                  b = _mm256_blend_epi16(_mm256_srli_epi32(w[2], 16), w[3], 0xaa);
    __m256i p = is_signed(type) ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    if (!is_4bit(type)) {
        store(dst, _mm256_permute4x64_epi64(p, 0xd8), stream);
        return true;
    }
    if (real != QK_BF16) p = qk256_order8(_mm256_shuffle_epi8(p, QK256_FIXED_TURN));
    /* the upper nibbles of two, in a word, the second one's by sixteen */
    const __m256i two = _mm256_srli_epi16(
        _mm256_maddubs_epi16(_mm256_and_si256(p, _mm256_set1_epi8(-16)), _mm256_set1_epi16(0x1001)), 4);
    if (real != QK_BF16) {
        store_half(dst, _mm_packus_epi16(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)), stream);
    } else {
        const __m256i q =
            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(two, two), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        store_half(dst, _mm256_castsi256_si128(q), stream);
    }
    return true;
}

/* Scales of many runs, or of many columns, made ready at once. */
/* False: one is not for the fixed-point way. */
QK_INLINE bool make_ready(int type, const float *scales, const int32_t *zps, size_t n, float *factor, float *shift) {
    const __m256 one = _mm256_set1_ps(fixed_one(type)), first = _mm256_set1_ps(fixed_shift(type)),
                 sign = _mm256_set1_ps(-0.0f), low = _mm256_set1_ps(0x1p-60f), high = _mm256_set1_ps(0x1p60f);
    const __m256i most = _mm256_set1_epi32(is_4bit(type) ? 16 : 255);
    size_t i = 0;
    __m256 ok = _mm256_cmp_ps(one, one, _CMP_EQ_OQ);
    for (; n - i >= 8; i += 8) {
        const __m256 s = _mm256_loadu_ps(scales + i), size = _mm256_andnot_ps(sign, s);
        const __m256i zp = zps ? _mm256_loadu_si256((const __m256i *)(zps + i)) : _mm256_setzero_si256();
        ok = _mm256_and_ps(ok,
                           _mm256_and_ps(_mm256_cmp_ps(size, low, _CMP_GE_OQ), _mm256_cmp_ps(size, high, _CMP_LE_OQ)));
        ok = _mm256_and_ps(ok, _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_min_epu32(_mm256_abs_epi32(zp), most),
                                                                      _mm256_abs_epi32(zp))));
        _mm256_storeu_ps(factor + i, _mm256_div_ps(one, s));
        _mm256_storeu_ps(shift + i, _mm256_fmadd_ps(_mm256_cvtepi32_ps(zp), one, first));
    }
    bool all = _mm256_movemask_ps(ok) == 0xff;
    for (; i < n; i++) {
        const int32_t zp = zps ? zps[i] : 0;
        all &= fixed_ok(type, scales[i], zp);
        factor[i] = fixed_one(type) / scales[i];
        shift[i] = (float)zp * fixed_one(type) + fixed_shift(type);
    }
    return all;
}

/* Runs of whole blocks, up to the first block that is not sure: how many elements. */
QK_INLINE size_t sure_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len,
                           const float *factor, const float *shift, bool stream) {
    const size_t in = BLOCK * real_bytes(real), out = bytes_of(type, BLOCK), run = len * real_bytes(real);
    const char *const begin = src;
    for (size_t r = 0; r < n_runs; r++) {
        const __m256 f1 = _mm256_broadcast_ss(factor + r), s1 = _mm256_broadcast_ss(shift + r);
        const __m256 f[4] = {f1, f1, f1, f1}, s[4] = {s1, s1, s1, s1};
        const char *const end = src + run;
        for (; src != end; src += in, dst += out)
            if (!q_fixed_block(real, type, src, dst, f, s, stream)) return (size_t)(src - begin) / real_bytes(real);
    }
    return n_runs * len;
}

static __attribute__((noinline)) size_t q_sure_runs(int real, int type, const char *src, char *dst, size_t n_runs,
                                                    size_t len, const float *factor, const float *shift, bool stream) {
#define OF(r, t)                                                                                                       \
    if (real == r && type == t)                                                                                        \
    return stream ? sure_runs(r, t, src, dst, n_runs, len, factor, shift, true)                                        \
                  : sure_runs(r, t, src, dst, n_runs, len, factor, shift, false)
#define OF_REAL(r)                                                                                                     \
    OF(r, QK_U8);                                                                                                      \
    OF(r, QK_S8);                                                                                                      \
    OF(r, QK_U4);                                                                                                      \
    OF(r, QK_S4)
    OF_REAL(QK_F32);
    OF_REAL(QK_BF16);
    OF_REAL(QK_F16);
    return 0;
#undef OF_REAL
#undef OF
}

/* Runs of whole blocks. */
static void q_fixed_runs(int real, int type, const char *src, char *dst, size_t n_runs, size_t len, const float *factor,
                         const float *shift, const float *scales, const int32_t *zps, qk_quant_order order, bool stream,
                         ties *t) {
    size_t at = 0; /* elements of the run r that are done */
    for (size_t r = 0; r < n_runs;) {
        size_t m = 0;
        if (t->left == 0)
            m = q_sure_runs(real, type, src, dst, at ? 1 : n_runs - r, len - at, factor + r, shift + r, stream);
        if (m == 0) { /* whole runs, or a part of one */
            m = ties_met(t, real, src, at ? len - at : (n_runs - r) * len);
            const size_t runs = m < len ? 1 : m / len, n = m < len ? m : len;
            t->left += m - runs * n; /* what is of a run behind whole ones: next time */
            m = runs * n;
            t->end = src + m * real_bytes(real);
            q_exact_runs(real, type, src, dst, runs, n, scales + r, zps ? zps + r : NULL, order, false);
        }
        src += m * real_bytes(real);
        dst += bytes_of(type, m);
        at += m;
        r += at / len;
        at %= len;
    }
}

/* Less than a block. */
static void q_fixed_rest(int real, int type, const char *src, char *dst, size_t n, const float *factor,
                         const float *shift, const float *scale, const int32_t *zp, qk_quant_order order) {
    char in[BLOCK * 4] = {0}, out[BLOCK];
    memcpy(in, src, n * real_bytes(real));
    if (q_sure_runs(real, type, in, out, 1, BLOCK, factor, shift, false) == 0) {
        q_exact_runs(real, type, src, dst, 1, n, scale, zp, order, false);
        return;
    }
    if (is_4bit(type) && n % 2) out[n / 2] = (char)(out[n / 2] & 15);
    memcpy(dst, out, bytes_of(type, n));
}

static __attribute__((noinline)) void q_runs(int real, int type, const void *src_, void *dst_, size_t n_runs,
                                             size_t len, const float *scales, const int32_t *zps, qk_quant_order order,
                                             bool stream) {
    enum { AT_ONCE = 256 };
    const char *src = src_;
    char *dst = dst_;
    const size_t src_step = len * real_bytes(real), dst_step = bytes_of(type, len), line = is_4bit(type) ? 16 : 32;
    ties t = {STRETCH_FIRST, 0, NULL};
    for (size_t at = 0; at < n_runs; at += AT_ONCE) {
        const size_t n = n_runs - at < AT_ONCE ? n_runs - at : AT_ONCE;
        float factor[AT_ONCE], shift[AT_ONCE];
        const bool is_fixed = is_narrow(type) && make_ready(type, scales + at, zps ? zps + at : NULL, n, factor, shift);
        const bool past_caches = stream && (uintptr_t)dst % line == 0;
        if (is_fixed && len % BLOCK == 0 && (past_caches || !stream)) {
            q_fixed_runs(real, type, src, dst, n, len, factor, shift, scales + at, zps ? zps + at : NULL, order,
                         past_caches, &t);
            src += n * src_step;
            dst += n * dst_step;
            continue;
        }
        for (size_t r = 0; r < n; r++, src += src_step, dst += dst_step) {
            const float *scale = scales + at + r;
            const int32_t *zp = zps ? zps + at + r : NULL;
            if (!exact_ok(type, *scale, zp ? *zp : 0, order)) {
                q_odd_run(real, type, src, dst, len, *scale, zp ? *zp : 0, order);
                continue;
            }
            /* to the beginning of a register, for stores past the caches */
            size_t head = 0;
            if (stream) {
                const size_t off = (line - (uintptr_t)dst % line) % line, two = bytes_of(type, 2);
                head = off * 2 % two ? 0 : off * 2 / two < len ? off * 2 / two : len;
            }
            if (head) q_exact_runs(real, type, src, dst, 1, head, scale, zp, order, false);
            const char *s = src + head * real_bytes(real);
            char *d = dst + bytes_of(type, head);
            const bool aligned = stream && (uintptr_t)d % line == 0;
            if (!is_fixed) {
                q_exact_runs(real, type, s, d, 1, len - head, scale, zp, order, aligned);
                continue;
            }
            const size_t whole = (len - head) / BLOCK * BLOCK, rest = len - head - whole;
            if (whole) q_fixed_runs(real, type, s, d, 1, whole, factor + r, shift + r, scale, zp, order, aligned, &t);
            if (rest)
                q_fixed_rest(real, type, s + whole * real_bytes(real), d + bytes_of(type, whole), rest, factor + r,
                             shift + r, scale, zp, order);
        }
    }
}

/* ---- a scale per column ---- */

/* Columns whose scales are made ready at once, and rows that go through the same columns together. */
enum { READY = 4096, TOGETHER = 8, STREAMED = 1 };

/* Some columns down some rows, one by one. */
static __attribute__((noinline)) void q_cols_by_params(int type, const float *src, char *dst, size_t rows, size_t n,
                                                       size_t stride, const float *scales, const int32_t *zps,
                                                       qk_quant_order order) {
    params p;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        params_of(t, scales, zps, n, 1, order, &p);                                                                    \
        for (size_t r = 0; r < rows; r++, src += stride, dst += stride * bytes_of(t, 1))                               \
            if (!p.is_exact)                                                                                           \
                qk_quant_ref.q_cols[t](src, dst, 1, n, scales, zps, order, false);                                     \
            else if (n == BLOCK)                                                                                       \
                q_block(t, src, dst, &p, order);                                                                       \
            else                                                                                                       \
                q_some(t, src, dst, n, &p, order);                                                                     \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

/* A block of columns down some rows, where the fixed-point way is not for all of it; its scales are of the usual. */
static __attribute__((noinline)) void q_cols_exact(int type, const float *src, char *dst, size_t rows, size_t stride,
                                                   const float *scales, const int32_t *zps, qk_quant_order order) {
    quotients d;
    QK_FOUR_TIMES(k, const qk256_divisor one = qk256_divisor_of(_mm256_loadu_ps(scales + 8 * k));
                  d.scale[k] = one.scale; d.recip[k] = one.recip; d.low[k] = one.low;
                  d.zp[k] = zps ? _mm256_loadu_si256((const __m256i *)(zps + 8 * k)) : _mm256_setzero_si256());
    const bool add_first = order == QK_ADD_THEN_ROUND;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        for (size_t r = 0; r < rows; r++, src += stride, dst += stride * bytes_of(t, 1))                               \
            if (!(add_first ? q_quotient_block(t, ZP_FIRST, false, src, dst, &d, false)                                \
                            : q_quotient_block(t, ZP_LAST, false, src, dst, &d, false)))                               \
                q_cols_by_params(t, src, dst, 1, BLOCK, stride, scales, zps, order);                                   \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

QK_INLINE void q_cols(int type, const float *src, void *dst_, size_t rows, size_t cols, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    char *dst = dst_;
    const size_t bytes = bytes_of(type, 1);
    /* what the first cache has room for; where memory is the limit, whole rows, one after the other */
    const size_t most = stream ? READY : READY / 4, together = stream ? STREAMED : TOGETHER;
    const __m256 no_zp = _mm256_set1_ps(fixed_shift(type));
    for (size_t first = 0; first < cols; first += most) {
        const size_t end = cols - first < most ? cols : first + most;
        float factors[READY], shifts[READY];
        const bool is_fixed =
            bytes == 1 && make_ready(type, scales + first, zps ? zps + first : NULL, end - first, factors, shifts);
        for (size_t r = 0; r < rows; r += together) {
            const size_t m = rows - r < together ? rows - r : together;
            for (size_t c = first; c < end; c += BLOCK) {
                const size_t n = end - c < BLOCK ? end - c : BLOCK;
                size_t k = 0;
                if (is_fixed && n == BLOCK) {
                    __m256 factor[4], shift[4];
                    QK_FOUR_TIMES(j, factor[j] = _mm256_loadu_ps(factors + c - first + 8 * j); shift[j] = no_zp);
                    if (zps) QK_FOUR_TIMES(j, shift[j] = _mm256_loadu_ps(shifts + c - first + 8 * j));
                    for (; k < m; k++) {
                        char *d = dst + (r + k) * cols + c;
                        if (!q_fixed_block(QK_F32, type, (const char *)(src + (r + k) * cols + c), d, factor, shift,
                                           stream && (uintptr_t)d % 32 == 0))
                            break;
                    }
                }
                if (k == m) continue;
                /* the other rows likely are on ties, too */
                const float *from = src + (r + k) * cols + c;
                char *to = dst + ((r + k) * cols + c) * bytes;
                const int32_t *zp = zps ? zps + c : NULL;
                if (is_fixed && n == BLOCK)
                    q_cols_exact(type, from, to, m - k, cols, scales + c, zp, order);
                else
                    q_cols_by_params(type, from, to, m - k, n, cols, scales + c, zp, order);
            }
        }
    }
}

#endif
