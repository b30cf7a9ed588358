#include "kernels/quant/quant_types.h"
#include "kernels/simd/avx2_x8.h"
#include "kernels/simd/nibbles.h"
#include "kernels/simd/two_steps.h"

#include <math.h>

/* The bodies below are written once for all types: `type` is a constant where they are called, `real` is f32. A tail is copied into
 * a whole block, and the result's beginning copied out. Narrow floats and 4-bit types take the way of quant.c. */
QK_INLINE size_t bytes_of(int type) {
    return qk_stored_bits(type) / 8;
}
QK_INLINE bool is_signed(int type) {
    return qk_stored_signed(type);
}

enum { BLOCK = 32 };

/* ---- quantize ---- */

QK_INLINE void store(void *dst, __m256i v, bool stream) {
    if (stream)
        _mm256_stream_si256((__m256i *)dst, v);
    else
        _mm256_storeu_si256((__m256i *)dst, v);
}

/* Of a block: scales and zero points, one for all or one each; and made ready for the fixed-point way. */
typedef struct params {
    qk256_divisor divisor[4];
    __m256 factor[4], shift[4];
    __m256i zp[4];
    bool is_fixed, is_exact; /* the ways that may be gone */
} params;

QK_INLINE bool exact_ok(int type, float scale, int32_t zp, qk_quant_order order) {
    return qk_divisor_ok(scale, zp) && (type != QK_S32 || order == QK_ADD_THEN_ROUND || zp == 0);
}

/* For n of a block's elements, `step` (0 or 1) from one's scale to the next one's. */
QK_INLINE void params_of(int type, const float *scales, const int32_t *zps, size_t n, size_t step, qk_quant_order order,
                         params *p) {
    float s[BLOCK];
    int32_t z[BLOCK];
    p->is_fixed = bytes_of(type) == 1;
    p->is_exact = true;
    for (size_t k = 0; k < BLOCK; k++) {
        s[k] = k < n ? scales[k * step] : 1.0f;
        z[k] = k < n && zps ? zps[k * step] : 0;
    }
    for (size_t k = 0; k < (step ? n : 1); k++) {
        p->is_fixed &= qk_fixed_ok(s[k], z[k]);
        p->is_exact &= exact_ok(type, s[k], z[k], order);
    }
    const __m256 one = _mm256_set1_ps(QK_FIXED_ONE);
    QK_FOUR_TIMES(k, p->divisor[k] = qk256_divisor_of(_mm256_loadu_ps(s + 8 * k));
                  p->zp[k] = _mm256_loadu_si256((const __m256i *)(z + 8 * k));
                  p->factor[k] = _mm256_mul_ps(p->divisor[k].recip, one);
                  p->shift[k] = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(p->zp[k]), one),
                                              _mm256_set1_ps(qk_fixed_shift(0))));
    if (type == QK_S32) {
        const __m256 limit = _mm256_set1_ps(0x1p33f), sign = _mm256_set1_ps(-0.0f);
        QK_FOUR_TIMES(k, p->divisor[k].limit = _mm256_mul_ps(_mm256_andnot_ps(sign, p->divisor[k].scale), limit));
    }
}

/* A block by way of the quotients. A NaN gives the zero point; 32-bit results saturate here. */
QK_INLINE void q_exact_block(int type, bool add_first, const float *src, char *dst, const params *p, bool stream) {
    __m256i v[4];
    if (type == QK_S32) {
        const __m256 limit = _mm256_set1_ps(0x1p31f);
        QK_FOUR_TIMES(k, __m256 q = qk256_divide(p->divisor[k], _mm256_loadu_ps(src + 8 * k));
                      if (add_first) q = _mm256_add_ps(q, _mm256_cvtepi32_ps(p->zp[k])); /* otherwise it is 0 */
                      __m256 large = _mm256_cmp_ps(q, limit, _CMP_GE_OQ);
                      /* too large converts to the lowest integer: all its bits turned round are the highest */
                      v[k] = _mm256_xor_si256(_mm256_cvtps_epi32(q), _mm256_castps_si256(large));
                      store(dst + 32 * k, v[k], stream));
        return;
    }
    QK_FOUR_TIMES(k, __m256 q = qk256_divide(p->divisor[k], _mm256_loadu_ps(src + 8 * k));
                  v[k] = qk256_round(q, p->zp[k], _mm256_cvtepi32_ps(p->zp[k]), add_first));
    if (bytes_of(type) == 1) {
        store(dst, qk256_pack8(v, is_signed(type)), stream);
    } else {
        store(dst, qk256_pack16(v[0], v[1], is_signed(type)), stream);
        store(dst + 32, qk256_pack16(v[2], v[3], is_signed(type)), stream);
    }
}

/* Where the fixed-point way does not know: rare, and kept out of its loop. */
static __attribute__((noinline)) void q_unsure(bool to_signed, const float *src, char *dst, const params *p,
                                               qk_quant_order order) {
    if (to_signed && order == QK_ADD_THEN_ROUND)
        q_exact_block(QK_S8, true, src, dst, p, false);
    else if (to_signed)
        q_exact_block(QK_S8, false, src, dst, p, false);
    else if (order == QK_ADD_THEN_ROUND)
        q_exact_block(QK_U8, true, src, dst, p, false);
    else
        q_exact_block(QK_U8, false, src, dst, p, false);
}

QK_INLINE void q_block(int type, const float *src, char *dst, const params *p, qk_quant_order order, bool stream) {
    if (bytes_of(type) == 1 && p->is_fixed) {
        __m256i w[4];
        QK_FOUR_TIMES(k, w[k] = qk256_fixed(_mm256_loadu_ps(src + 8 * k), p->factor[k], p->shift[k]));
        if (qk256_all_sure(qk256_fixed_sure(w)))
            store(dst, qk256_fixed_bytes(w, is_signed(type)), stream);
        else
            q_unsure(is_signed(type), src, dst, p, order);
    } else if (order == QK_ADD_THEN_ROUND) {
        q_exact_block(type, true, src, dst, p, stream);
    } else {
        q_exact_block(type, false, src, dst, p, stream);
    }
}

QK_INLINE void q_some(int type, const float *src, char *dst, size_t n, const params *p, qk_quant_order order) {
    float in[BLOCK] = {0};
    char out[BLOCK * 4];
    memcpy(in, src, n * sizeof *in);
    q_block(type, in, out, p, order, false);
    memcpy(dst, out, n * bytes_of(type));
}

/* ---- runs: blocks without anything that is the same for all of them ---- */

/* Factor and shift of the fixed-point way. */
typedef struct fixed {
    __m256 factor, shift;
} fixed;

/* False, and nothing written, when one is not sure. */
QK_INLINE bool q_fixed_block(int type, const float *src, char *dst, const fixed *f, bool stream) {
    __m256i w[4];
    QK_FOUR_TIMES(k, w[k] = qk256_fixed(_mm256_loadu_ps(src + 8 * k), f->factor, f->shift));
    if (!qk256_all_sure(qk256_fixed_sure(w))) return false;
    store(dst, qk256_fixed_bytes(w, is_signed(type)), stream);
    return true;
}

/* How a zero point comes in. */
enum { NO_ZP, ZP_FIRST, ZP_LAST };

/* In two steps `low` is of two_steps.h. */
typedef struct quotients {
    __m256 scale, recip, low;
    __m256i zp;
} quotients;

/* False, and nothing written, when something is a NaN or out of reach: it converts to the lowest integer. */
QK_INLINE bool q_quotient_block(int type, int zp, bool two_steps, const float *src, char *dst, const quotients *d,
                                bool stream) {
    __m256i v[4];
    QK_FOUR_TIMES(k, const __m256 x = _mm256_loadu_ps(src + 8 * k);
                  __m256 q = _mm256_fmadd_ps(x, d->recip, _mm256_mul_ps(x, d->low));
                  if (!two_steps) q = _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d->scale, x), d->recip, q);
                  if (zp == ZP_FIRST) q = _mm256_add_ps(q, _mm256_cvtepi32_ps(d->zp)); v[k] = _mm256_cvtps_epi32(q));
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
        QK_FOUR_TIMES(k, v[k] = _mm256_add_epi32(_mm256_min_epi32(v[k], most), d->zp));
    }
    if (bytes_of(type) == 1) {
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
            q_some(t, src + i, dst + i * bytes_of(t), n - i < BLOCK ? n - i : BLOCK, &p, order);                       \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

QK_INLINE void q_quotient_blocks(int type, int zp, bool two_steps, const float *src, char *dst, size_t n,
                                 const quotients *d, const float *scale, const int32_t *zps, qk_quant_order order,
                                 bool stream) {
    const size_t bytes = bytes_of(type);
    for (size_t i = 0; i < n; i += BLOCK)
        if (!q_quotient_block(type, zp, two_steps, src + i, dst + i * bytes, d, stream))
            q_by_params(type, src + i, dst + i * bytes, BLOCK, scale, zps, order);
}

/* So many elements are worth the proof that two steps are enough. */
enum { PROVEN = 16384 };

/* Whole blocks with one scale, by way of the quotients. */
static __attribute__((noinline)) void q_quotient_run(int type, const float *src, char *dst, size_t n,
                                                     const float *scale, const int32_t *zps, qk_quant_order order,
                                                     bool stream) {
    const qk256_divisor one = qk256_divisor_of(_mm256_set1_ps(*scale));
    float low;
    const bool two_steps = n >= PROVEN && qk_two_steps(*scale, &low);
    const quotients d = {one.scale, one.recip, two_steps ? _mm256_set1_ps(low) : one.low,
                         _mm256_set1_epi32(zps ? *zps : 0)};
    const int zp = zps == NULL || *zps == 0 ? NO_ZP : order == QK_ADD_THEN_ROUND ? ZP_FIRST : ZP_LAST;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        if (zp == NO_ZP && two_steps)                                                                                  \
            q_quotient_blocks(t, NO_ZP, true, src, dst, n, &d, scale, zps, order, stream);                             \
        else if (zp == NO_ZP)                                                                                          \
            q_quotient_blocks(t, NO_ZP, false, src, dst, n, &d, scale, zps, order, stream);                            \
        else if (zp == ZP_FIRST)                                                                                       \
            q_quotient_blocks(t, ZP_FIRST, false, src, dst, n, &d, scale, zps, order, stream);                         \
        else                                                                                                           \
            q_quotient_blocks(t, ZP_LAST, false, src, dst, n, &d, scale, zps, order, stream);                          \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

/* Whole blocks of a run; data that is not sure is done by quotients for longer and longer. */
QK_INLINE void q_fixed_blocks(int type, const float *src, char *dst, size_t n, const fixed *f, const float *scale,
                              const int32_t *zps, qk_quant_order order, bool stream, size_t *stretch) {
    enum { FIRST = BLOCK, LAST = 32768 };
    for (size_t i = 0; i < n;) {
        for (; i < n && q_fixed_block(type, src + i, dst + i, f, stream); i += BLOCK)
            *stretch = FIRST;
        if (i == n) return;
        const size_t m = *stretch < n - i ? *stretch : n - i;
        q_quotient_run(type, src + i, dst + i, m, scale, zps, order, false);
        *stretch = *stretch < LAST ? 2 * *stretch : LAST;
        i += m;
    }
}

/* The reciprocals of eight scales at once. */
QK_INLINE void reciprocals(const float *scales, size_t n, float out[8]) {
    if (n >= 8) {
        _mm256_storeu_ps(out, _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_loadu_ps(scales)));
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = 1.0f / scales[i];
}

QK_INLINE void q_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    (void)real;
    const float *src = src_;
    char *dst = dst_;
    const size_t bytes = bytes_of(type);
    size_t stretch = BLOCK;
    float recips[8];
    for (size_t r = 0; r < n_runs; r++, src += len, dst += len * bytes) {
        const int32_t *zp = zps ? zps + r : NULL;
        if (r % 8 == 0 && bytes == 1) reciprocals(scales + r, n_runs - r, recips);
        if (!exact_ok(type, scales[r], zp ? *zp : 0, order)) {
            qk_quant_ref.q_runs[QK_F32][type](src, dst, 1, len, scales + r, zp, order, stream);
            continue;
        }
        size_t i = 0;
        bool past_caches = false;
        if (stream && (uintptr_t)dst % bytes == 0) {
            const size_t off = (32 - (uintptr_t)dst % 32) % 32 / bytes;
            i = off < len ? off : len;
            past_caches = true;
            if (i) q_by_params(type, src, dst, i, scales + r, zp, order);
        }
        const size_t whole = (len - i) / BLOCK * BLOCK;
        if (bytes == 1 && qk_fixed_ok(scales[r], zp ? *zp : 0)) {
            const fixed f = {_mm256_set1_ps(recips[r % 8] * QK_FIXED_ONE),
                             _mm256_set1_ps(qk_fixed_shift(zp ? *zp : 0))};
            if (past_caches)
                q_fixed_blocks(type, src + i, dst + i, whole, &f, scales + r, zp, order, true, &stretch);
            else
                q_fixed_blocks(type, src + i, dst + i, whole, &f, scales + r, zp, order, false, &stretch);
        } else if (whole) {
            q_quotient_run(type, src + i, dst + i * bytes, whole, scales + r, zp, order, past_caches);
        }
        i += whole;
        if (i < len) q_by_params(type, src + i, dst + i * bytes, len - i, scales + r, zp, order);
    }
}

/* ---- a scale per column ---- */

/* Columns whose scales are made ready at once, and rows that go through the same columns together. */
enum { READY = 4096, TOGETHER = 8 };

typedef struct ready {
    float factor[READY], shift[READY];
} ready;

/* False: one is not for the fixed-point way. */
QK_INLINE bool make_ready(const float *scales, const int32_t *zps, size_t n, ready *out) {
    bool ok = true;
    for (size_t i = 0; i < n; i += 8) {
        const size_t m = n - i < 8 ? n - i : 8;
        float recips[8];
        reciprocals(scales + i, m, recips);
        for (size_t k = 0; k < m; k++) {
            const int32_t zp = zps ? zps[i + k] : 0;
            ok &= qk_fixed_ok(scales[i + k], zp);
            out->factor[i + k] = recips[k] * QK_FIXED_ONE;
            out->shift[i + k] = qk_fixed_shift(zp);
        }
    }
    return ok;
}

/* Of a whole block that is known to be of the usual. */
QK_INLINE void params_of_block(const float *scales, const int32_t *zps, params *p) {
    p->is_exact = true;
    QK_FOUR_TIMES(k, p->divisor[k] = qk256_divisor_of(_mm256_loadu_ps(scales + 8 * k));
                  p->zp[k] = zps ? _mm256_loadu_si256((const __m256i *)(zps + 8 * k)) : _mm256_setzero_si256());
}

/* A block of columns down some rows, where the fixed-point way is not for all of it. */
static __attribute__((noinline)) void q_cols_exact(int type, const float *src, char *dst, size_t rows, size_t n,
                                                   size_t stride, const float *scales, const int32_t *zps,
                                                   qk_quant_order order, bool is_usual) {
    params p;
#define OF_TYPE(t)                                                                                                     \
    case t:                                                                                                            \
        if (is_usual)                                                                                                  \
            params_of_block(scales, zps, &p);                                                                          \
        else                                                                                                           \
            params_of(t, scales, zps, n, 1, order, &p);                                                                \
        p.is_fixed = false;                                                                                            \
        for (size_t r = 0; r < rows; r++)                                                                              \
            if (!p.is_exact)                                                                                           \
                qk_quant_ref.q_cols[t](src + r * stride, dst + r * stride * bytes_of(t), 1, n, scales, zps, order,     \
                                       false);                                                                         \
            else if (n == BLOCK)                                                                                       \
                q_block(t, src + r * stride, dst + r * stride * bytes_of(t), &p, order, false);                        \
            else                                                                                                       \
                q_some(t, src + r * stride, dst + r * stride * bytes_of(t), n, &p, order);                             \
        break
    switch (type) { QK_WHOLE_TYPES(OF_TYPE); }
#undef OF_TYPE
}

QK_INLINE void q_cols(int type, const float *src, void *dst_, size_t rows, size_t cols, const float *scales,
                      const int32_t *zps, qk_quant_order order, bool stream) {
    char *dst = dst_;
    const size_t bytes = bytes_of(type);
    /* what the first cache has room for; where memory is the limit, whole rows, one after the other */
    const size_t most = stream ? READY : READY / 4, together = stream ? 1 : TOGETHER;
    for (size_t first = 0; first < cols; first += most) {
        const size_t end = cols - first < most ? cols : first + most;
        ready t;
        const bool is_fixed = bytes == 1 && make_ready(scales + first, zps ? zps + first : NULL, end - first, &t);
        for (size_t r = 0; r < rows; r += together) {
            const size_t m = rows - r < together ? rows - r : together;
            for (size_t c = first; c < end; c += BLOCK) {
                const size_t n = end - c < BLOCK ? end - c : BLOCK;
                size_t k = 0;
                if (is_fixed && n == BLOCK) {
                    __m256 factor[4], shift[4];
                    QK_FOUR_TIMES(j, factor[j] = _mm256_loadu_ps(t.factor + c - first + 8 * j);
                                  shift[j] = _mm256_loadu_ps(t.shift + c - first + 8 * j));
                    for (; k < m; k++) {
                        const float *s = src + (r + k) * cols + c;
                        __m256i w[4];
                        QK_FOUR_TIMES(j, w[j] = qk256_fixed(_mm256_loadu_ps(s + 8 * j), factor[j], shift[j]));
                        if (!qk256_all_sure(qk256_fixed_sure(w))) break;
                        char *d = dst + (r + k) * cols + c;
                        store(d, qk256_fixed_bytes(w, is_signed(type)), stream && (uintptr_t)d % 32 == 0);
                    }
                }
                if (k < m) /* the other rows likely are on ties, too */
                    q_cols_exact(type, src + (r + k) * cols + c, dst + ((r + k) * cols + c) * bytes, m - k, n, cols,
                                 scales + c, zps ? zps + c : NULL, order, is_fixed && n == BLOCK);
            }
        }
    }
}

/* ---- dequantize ---- */

QK_INLINE __m256i load(int type, const char *src) {
    if (type == QK_S32) return _mm256_loadu_si256((const __m256i *)src);
    if (bytes_of(type) == 1) return qk256_load8(src, is_signed(type));
    __m128i w = _mm_loadu_si128((const __m128i *)src);
    return is_signed(type) ? _mm256_cvtepi16_epi32(w) : _mm256_cvtepu16_epi32(w);
}

/* q - zp must be exact in 32 bits. */
QK_INLINE bool zp_ok(int type, int32_t zp) {
    return type == QK_S32 ? zp == 0 : zp >= -(1 << 30) && zp <= 1 << 30;
}

QK_INLINE __m256 dq_8(int type, const char *src, __m256 scale, __m256i zp) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(load(type, src), zp)), scale);
}

QK_INLINE void dq_run(int type, const char *src, float *dst, size_t n, const float *scale_, const int32_t *zp_,
                      bool stream) {
    const __m256 scale = _mm256_set1_ps(*scale_);
    const __m256i zp = _mm256_set1_epi32(zp_ ? *zp_ : 0);
    const size_t bytes = bytes_of(type);
    size_t i = 0;
    if (stream) {
        const size_t off = (32 - (uintptr_t)dst % 32) % 32 / sizeof *dst;
        i = off < n ? off : n;
        qk_quant_ref.dq_runs[QK_F32][type](src, dst, 1, i, scale_, zp_, false);
        for (; n - i >= 8 && (uintptr_t)(dst + i) % 32 == 0; i += 8)
            _mm256_stream_ps(dst + i, dq_8(type, src + i * bytes, scale, zp));
    }
    for (; n - i >= 32; i += 32)
        QK_FOUR_TIMES(k, _mm256_storeu_ps(dst + i + 8 * k, dq_8(type, src + (i + 8 * k) * bytes, scale, zp)));
    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(dst + i, dq_8(type, src + i * bytes, scale, zp));
    if (i < n) {
        char in[32] = {0};
        float out[8];
        memcpy(in, src + i * bytes, (n - i) * bytes);
        _mm256_storeu_ps(out, dq_8(type, in, scale, zp));
        memcpy(dst + i, out, (n - i) * sizeof *out);
    }
}

QK_INLINE void dq_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                       const int32_t *zps, bool stream) {
    (void)real;
    const char *src = src_;
    float *dst = dst_;
    for (size_t r = 0; r < n_runs; r++, src += len * bytes_of(type), dst += len) {
        const int32_t *zp = zps ? zps + r : NULL;
        if (zp_ok(type, zp ? *zp : 0))
            dq_run(type, src, dst, len, scales + r, zp, stream);
        else
            qk_quant_ref.dq_runs[QK_F32][type](src, dst, 1, len, scales + r, zp, false);
    }
}

/* Rows that go through the same columns together. */
enum { DQ_TOGETHER = 8 };

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
    const size_t bytes = bytes_of(type), whole = cols / 8 * 8;
    for (size_t r = 0; r < rows; r += DQ_TOGETHER) {
        const size_t m = rows - r < DQ_TOGETHER ? rows - r : DQ_TOGETHER;
        size_t c = 0;
        for (; whole - c >= BLOCK; c += BLOCK) {
            __m256 scale[4];
            __m256i zp[4];
            QK_FOUR_TIMES(k, scale[k] = _mm256_loadu_ps(scales + c + 8 * k);
                          zp[k] =
                              zps ? _mm256_loadu_si256((const __m256i *)(zps + c + 8 * k)) : _mm256_setzero_si256());
            for (size_t k = r; k < r + m; k++) {
                const char *s = src + (k * cols + c) * bytes;
                float *d = dst + k * cols + c;
                if (stream && (uintptr_t)d % 32 == 0)
                    QK_FOUR_TIMES(j, _mm256_stream_ps(d + 8 * j, dq_8(type, s + 8 * j * bytes, scale[j], zp[j])));
                else
                    QK_FOUR_TIMES(j, _mm256_storeu_ps(d + 8 * j, dq_8(type, s + 8 * j * bytes, scale[j], zp[j])));
            }
        }
        for (; c < whole; c += 8) {
            const __m256 scale = _mm256_loadu_ps(scales + c);
            const __m256i zp = zps ? _mm256_loadu_si256((const __m256i *)(zps + c)) : _mm256_setzero_si256();
            for (size_t k = r; k < r + m; k++)
                _mm256_storeu_ps(dst + k * cols + c, dq_8(type, src + (k * cols + c) * bytes, scale, zp));
        }
        for (size_t k = r; whole < cols && k < r + m; k++)
            qk_quant_ref.dq_cols[type](src + (k * cols + whole) * bytes, dst + k * cols + whole, 1, cols - whole,
                                       scales + whole, zps ? zps + whole : NULL, false);
    }
}

/* ---- narrow floats: tails as the reference does them ---- */

static void f32_of_f16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
    qk_quant_ref.f32_of_f16(src + i, dst + i, n - i);
}

static void f16_of_f32(const float *src, uint16_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    qk_quant_ref.f16_of_f32(src + i, dst + i, n - i);
}

static void f32_of_bf16(const uint16_t *src, float *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + i)));
        _mm256_storeu_si256((__m256i *)(dst + i), _mm256_slli_epi32(w, 16));
    }
    qk_quant_ref.f32_of_bf16(src + i, dst + i, n - i);
}

QK_INLINE __m256i bf16_8(const float *src) {
    __m256 f = _mm256_loadu_ps(src);
    __m256i u = _mm256_castps_si256(f), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(r, nan, _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q)));
}

static void bf16_of_f32(const float *src, uint16_t *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i), qk256_pack16(bf16_8(src + i), bf16_8(src + i + 8), false));
    qk_quant_ref.bf16_of_f32(src + i, dst + i, n - i);
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
    __m256 lo = _mm256_set1_ps(INFINITY), hi = _mm256_set1_ps(-INFINITY);
    size_t i = 0;
    /* The second operand is the result when the first is a NaN. */
    for (; n - i >= 8; i += 8) {
        __m256 x = _mm256_loadu_ps(src + i);
        lo = _mm256_min_ps(x, lo);
        hi = _mm256_max_ps(x, hi);
    }
    float lows[9], highs[9];
    _mm256_storeu_ps(lows, lo);
    _mm256_storeu_ps(highs, hi);
    float unused;
    qk_quant_ref.minmax(src + i, n - i, &lows[8], &highs[8]);
    qk_quant_ref.minmax(lows, 9, min_out, &unused);
    qk_quant_ref.minmax(highs, 9, &unused, max_out);
}

QK_QUANT_F32_TYPES

const qk_quant_row qk_quant_avx2 = {
    .q_runs = {QK_QUANT_F32_RUNS(q_runs)},
    .q_cols = QK_QUANT_COLS(q_cols),
    .dq_runs = {QK_QUANT_F32_RUNS(dq_runs)},
    .dq_cols = QK_QUANT_COLS(dq_cols),
    .f32_of_f16 = f32_of_f16,
    .f16_of_f32 = f16_of_f32,
    .f32_of_bf16 = f32_of_bf16,
    .bf16_of_f32 = bf16_of_f32,
    .unpack4 = unpack4,
    .pack4 = pack4,
    .minmax = minmax,
    .isa = QK_ISA_avx2,
};
