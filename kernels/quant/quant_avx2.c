#include "kernels/quant/quant_types.h"
#include "kernels/simd/avx2_x8.h"
#include "kernels/simd/nibbles.h"

#include <math.h>

/* The bodies below are written once for all types and orders: `type` and `add_first` are constants where they are called. A
 * tail is copied into a whole block, and the result's beginning copied out. */
QK_INLINE size_t bytes_of(int type) {
    return type == QK_S32 ? 4 : type == QK_U16 || type == QK_S16 ? 2 : 1;
}
QK_INLINE bool is_signed(int type) {
    return type == QK_S8 || type == QK_S16;
}

enum { BLOCK = 32 };

QK_INLINE void q_block(int type, bool add_first, const float *src, char *dst, const qk256_divisor *d, const __m256i *zp,
                       size_t d_step) {
    __m256i v[4];
    QK_FOUR_TIMES(k, __m256 q = qk256_divide(d[k * d_step], _mm256_loadu_ps(src + 8 * k));
                  v[k] = qk256_round(q, zp[k * d_step], _mm256_cvtepi32_ps(zp[k * d_step]), add_first));
    if (bytes_of(type) == 1) {
        _mm256_storeu_si256((__m256i *)dst, qk256_pack8(v, is_signed(type)));
    } else {
        _mm256_storeu_si256((__m256i *)dst, qk256_pack16(v[0], v[1], is_signed(type)));
        _mm256_storeu_si256((__m256i *)(dst + 32), qk256_pack16(v[2], v[3], is_signed(type)));
    }
}

QK_INLINE void q_blocks(int type, bool add_first, const float *src, char *dst, size_t n, const qk256_divisor *d,
                        const __m256i *zp, size_t d_step) {
    size_t i = 0, bytes = bytes_of(type);
    for (; n - i >= BLOCK; i += BLOCK)
        q_block(type, add_first, src + i, dst + i * bytes, d, zp, d_step);
    if (i < n) {
        float in[BLOCK] = {0};
        char out[BLOCK * 2];
        memcpy(in, src + i, (n - i) * sizeof *in);
        q_block(type, add_first, in, out, d, zp, d_step);
        memcpy(dst + i * bytes, out, (n - i) * bytes);
    }
}

/* Streaming stores need more than AVX2 gives in tails: this level leaves them out. */
QK_INLINE void q_run(int type, const float *src, void *dst, size_t n, float scale, int32_t zp_, qk_quant_order order,
                     bool stream) {
    if (!qk_divisor_ok(scale, zp_)) {
        qk_quant_ref.q_run[type](src, dst, n, scale, zp_, order, stream);
        return;
    }
    qk256_divisor d = qk256_divisor_of(_mm256_set1_ps(scale));
    __m256i zp = _mm256_set1_epi32(zp_);
    if (order == QK_ADD_THEN_ROUND)
        q_blocks(type, true, src, dst, n, &d, &zp, 0);
    else
        q_blocks(type, false, src, dst, n, &d, &zp, 0);
}

/* One block of columns at a time, down all rows. */
QK_INLINE void q_cols(int type, const float *src, void *dst_, size_t rows, size_t cols, size_t stride,
                      const float *scales, const int32_t *zps, qk_quant_order order) {
    char *dst = dst_;
    size_t bytes = bytes_of(type);
    for (size_t c = 0; c < cols; c += BLOCK) {
        size_t n = cols - c < BLOCK ? cols - c : BLOCK;
        float s[BLOCK];
        int32_t z[BLOCK] = {0};
        bool ok = true;
        for (size_t k = 0; k < BLOCK; k++)
            s[k] = k < n ? scales[c + k] : 1.0f;
        for (size_t k = 0; k < n && zps; k++)
            z[k] = zps[c + k];
        for (size_t k = 0; k < n; k++)
            ok &= qk_divisor_ok(s[k], z[k]);
        if (!ok) {
            qk_quant_ref.q_cols[type](src + c, dst + c * bytes, rows, n, stride, s, z, order);
            continue;
        }
        qk256_divisor d[4];
        __m256i zp[4];
        for (size_t k = 0; k < 4; k++) {
            d[k] = qk256_divisor_of(_mm256_loadu_ps(s + 8 * k));
            zp[k] = _mm256_loadu_si256((const __m256i *)(z + 8 * k));
        }
        for (size_t r = 0; r < rows; r++) {
            if (order == QK_ADD_THEN_ROUND)
                q_blocks(type, true, src + r * stride + c, dst + (r * stride + c) * bytes, n, d, zp, 1);
            else
                q_blocks(type, false, src + r * stride + c, dst + (r * stride + c) * bytes, n, d, zp, 1);
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

QK_INLINE void dq_run(int type, const void *src_, float *dst, size_t n, float scale_, int32_t zp_, bool stream) {
    if (!zp_ok(type, zp_)) {
        qk_quant_ref.dq_run[type](src_, dst, n, scale_, zp_, stream);
        return;
    }
    const char *src = src_;
    __m256 scale = _mm256_set1_ps(scale_);
    __m256i zp = _mm256_set1_epi32(zp_);
    size_t i = 0, bytes = bytes_of(type);
    if (stream && (uintptr_t)dst % 32 == 0)
        for (; n - i >= 8; i += 8)
            _mm256_stream_ps(dst + i, dq_8(type, src + i * bytes, scale, zp));
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

QK_INLINE void dq_cols(int type, const void *src_, float *dst, size_t rows, size_t cols, size_t stride,
                       const float *scales, const int32_t *zps, bool stream) {
    bool ok = true;
    for (size_t c = 0; zps && c < cols; c++)
        ok &= zp_ok(type, zps[c]);
    if (!ok) {
        qk_quant_ref.dq_cols[type](src_, dst, rows, cols, stride, scales, zps, stream);
        return;
    }
    const char *src = src_;
    size_t bytes = bytes_of(type), whole = cols / 8 * 8;
    for (size_t r = 0; r < rows; r++) {
        float *row = dst + r * stride;
        const bool past_caches = stream && (uintptr_t)row % 32 == 0;
        for (size_t c = 0; c < whole; c += 8) {
            __m256i zp = zps ? _mm256_loadu_si256((const __m256i *)(zps + c)) : _mm256_setzero_si256();
            __m256 x = dq_8(type, src + (r * stride + c) * bytes, _mm256_loadu_ps(scales + c), zp);
            if (past_caches)
                _mm256_stream_ps(row + c, x);
            else
                _mm256_storeu_ps(row + c, x);
        }
    }
    if (whole < cols)
        qk_quant_ref.dq_cols[type](src + whole * bytes, dst + whole, rows, cols - whole, stride, scales + whole,
                                   zps ? zps + whole : NULL, stream);
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

QK_QUANT_ALL_TYPES

const qk_quant_row qk_quant_avx2 = {
    .q_run = QK_QUANT_TYPES(q_run),
    .q_cols = QK_QUANT_TYPES(q_cols),
    .dq_run = QK_QUANT_TYPES(dq_run),
    .dq_cols = QK_QUANT_TYPES(dq_cols),
    .f32_of_f16 = f32_of_f16,
    .f16_of_f32 = f16_of_f32,
    .f32_of_bf16 = f32_of_bf16,
    .bf16_of_f32 = bf16_of_f32,
    .unpack4 = unpack4,
    .pack4 = pack4,
    .minmax = minmax,
    .isa = QK_ISA_avx2,
};
