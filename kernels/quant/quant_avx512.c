#include "kernels/quant/quant_types.h"
#include "kernels/simd/avx512_x8.h"
#include "kernels/simd/nibbles.h"

#include <math.h>

/* The bodies below are written once for all types and orders: `type` and `add_first` are constants where they are called. */
QK_INLINE size_t bytes_of(int type) {
    return type == QK_S32 ? 4 : type == QK_U16 || type == QK_S16 ? 2 : 1;
}
QK_INLINE bool is_signed(int type) {
    return type == QK_S8 || type == QK_S16;
}

QK_INLINE void store_lanes(int type, void *dst, __mmask16 lanes, __m512i v) {
    if (bytes_of(type) == 1)
        qk512_store8_lanes(dst, lanes, v, is_signed(type));
    else
        qk512_store16_lanes(dst, lanes, v, is_signed(type));
}

QK_INLINE void store(void *dst, __m512i v, bool stream) {
    if (stream)
        _mm512_stream_si512((__m512i *)dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

/* Elements up to the first one whose address is a multiple of 64; n when there is none. */
QK_INLINE size_t head(const void *dst, size_t bytes, size_t n) {
    size_t off = (64 - (uintptr_t)dst % 64) % 64;
    return off % bytes == 0 && off / bytes < n ? off / bytes : n;
}

QK_INLINE void q_lanes(int type, bool add_first, const float *src, char *dst, size_t n, qk512_divisor d, __m512i zp) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512 q = qk512_divide(d, _mm512_maskz_loadu_ps(lanes, src + i));
        store_lanes(type, dst + i * bytes_of(type), lanes, qk512_round(q, zp, _mm512_cvtepi32_ps(zp), add_first));
    }
}

QK_INLINE void q_blocks(int type, bool add_first, const float *src, void *dst, size_t n, float scale, int32_t zp_,
                        bool stream) {
    qk512_divisor d = qk512_divisor_of(_mm512_set1_ps(scale));
    __m512i zp = _mm512_set1_epi32(zp_);
    __m512 zp_f32 = _mm512_cvtepi32_ps(zp);
    size_t bytes = bytes_of(type), i = 0;
    char *out = dst;
    if (stream) {
        i = head(dst, bytes, n);
        q_lanes(type, add_first, src, out, i, d, zp);
    }
    for (; n - i >= 64; i += 64) {
        __m512i v[4];
        QK_FOUR_TIMES(k, v[k] = qk512_round(qk512_divide(d, _mm512_loadu_ps(src + i + 16 * k)), zp, zp_f32, add_first));
        if (bytes == 1) {
            store(out + i, qk512_pack8(v, is_signed(type)), stream);
        } else {
            store(out + 2 * i, qk512_pack16(v[0], v[1], is_signed(type)), stream);
            store(out + 2 * i + 64, qk512_pack16(v[2], v[3], is_signed(type)), stream);
        }
    }
    q_lanes(type, add_first, src + i, out + i * bytes, n - i, d, zp);
}

QK_INLINE void q_run(int type, const float *src, void *dst, size_t n, float scale, int32_t zp, qk_quant_order order,
                     bool stream) {
    if (!qk_divisor_ok(scale, zp))
        qk_quant_ref.q_run[type](src, dst, n, scale, zp, order, stream);
    else if (order == QK_ADD_THEN_ROUND)
        q_blocks(type, true, src, dst, n, scale, zp, stream);
    else
        q_blocks(type, false, src, dst, n, scale, zp, stream);
}

/* Columns whose divisors fit in the first cache at a time. */
enum { COLS = 256 };

QK_INLINE void q_cols_chunk(int type, bool add_first, const float *src, char *dst, size_t rows, size_t cols,
                            size_t stride, const float *scales, const int32_t *zps) {
    float recip[COLS], low[COLS], limit[COLS];
    for (size_t c = 0; c < cols; c += 16) {
        __mmask16 lanes = qk512_lanes(cols - c);
        qk512_divisor d = qk512_divisor_of(_mm512_maskz_loadu_ps(lanes, scales + c));
        _mm512_storeu_ps(recip + c, d.recip);
        _mm512_storeu_ps(low + c, d.low);
        _mm512_storeu_ps(limit + c, d.limit);
    }
    for (size_t r = 0; r < rows; r++, src += stride, dst += stride * bytes_of(type))
        for (size_t c = 0; c < cols; c += 16) {
            __mmask16 lanes = qk512_lanes(cols - c);
            qk512_divisor d = {_mm512_maskz_loadu_ps(lanes, scales + c), _mm512_loadu_ps(recip + c),
                               _mm512_loadu_ps(low + c), _mm512_loadu_ps(limit + c)};
            __m512i zp = zps ? _mm512_maskz_loadu_epi32(lanes, zps + c) : _mm512_setzero_si512();
            __m512 q = qk512_divide(d, _mm512_maskz_loadu_ps(lanes, src + c));
            store_lanes(type, dst + c * bytes_of(type), lanes, qk512_round(q, zp, _mm512_cvtepi32_ps(zp), add_first));
        }
}

QK_INLINE void q_cols(int type, const float *src, void *dst, size_t rows, size_t cols, size_t stride,
                      const float *scales, const int32_t *zps, qk_quant_order order) {
    for (size_t c = 0; c < cols; c += COLS) {
        size_t n = cols - c < COLS ? cols - c : COLS;
        char *out = (char *)dst + c * bytes_of(type);
        const int32_t *zp = zps ? zps + c : NULL;
        bool ok = true;
        for (size_t k = 0; k < n; k++)
            ok &= qk_divisor_ok(scales[c + k], zp ? zp[k] : 0);
        if (!ok)
            qk_quant_ref.q_cols[type](src + c, out, rows, n, stride, scales + c, zp, order);
        else if (order == QK_ADD_THEN_ROUND)
            q_cols_chunk(type, true, src + c, out, rows, n, stride, scales + c, zp);
        else
            q_cols_chunk(type, false, src + c, out, rows, n, stride, scales + c, zp);
    }
}

/* ---- dequantize ---- */

QK_INLINE __m512i load_lanes(int type, const char *src, __mmask16 lanes) {
    if (type == QK_S32) return _mm512_maskz_loadu_epi32(lanes, src);
    if (bytes_of(type) == 1) return qk512_load8_lanes(src, lanes, is_signed(type));
    __m256i w = _mm256_maskz_loadu_epi16(lanes, src);
    return is_signed(type) ? _mm512_cvtepi16_epi32(w) : _mm512_cvtepu16_epi32(w);
}

/* q - zp must be exact in 32 bits. */
QK_INLINE bool zp_ok(int type, int32_t zp) {
    return type == QK_S32 ? zp == 0 : zp >= -(1 << 30) && zp <= 1 << 30;
}

QK_INLINE void dq_lanes(int type, const char *src, float *dst, size_t n, __m512 scale, __m512i zp) {
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = qk512_lanes(n - i);
        __m512i q = _mm512_sub_epi32(load_lanes(type, src + i * bytes_of(type), lanes), zp);
        _mm512_mask_storeu_ps(dst + i, lanes, _mm512_mul_ps(_mm512_cvtepi32_ps(q), scale));
    }
}

QK_INLINE void dq_run(int type, const void *src_, float *dst, size_t n, float scale_, int32_t zp_, bool stream) {
    if (!zp_ok(type, zp_)) {
        qk_quant_ref.dq_run[type](src_, dst, n, scale_, zp_, stream);
        return;
    }
    const char *src = src_;
    __m512 scale = _mm512_set1_ps(scale_);
    __m512i zp = _mm512_set1_epi32(zp_);
    size_t i = 0;
    if (stream) {
        i = head(dst, sizeof *dst, n);
        dq_lanes(type, src, dst, i, scale, zp);
        for (; n - i >= 16; i += 16) {
            __m512i q = _mm512_sub_epi32(load_lanes(type, src + i * bytes_of(type), 0xffff), zp);
            _mm512_stream_ps(dst + i, _mm512_mul_ps(_mm512_cvtepi32_ps(q), scale));
        }
    } else {
        for (; n - i >= 64; i += 64)
            for (size_t k = i; k < i + 64; k += 16) {
                __m512i q = _mm512_sub_epi32(load_lanes(type, src + k * bytes_of(type), 0xffff), zp);
                _mm512_storeu_ps(dst + k, _mm512_mul_ps(_mm512_cvtepi32_ps(q), scale));
            }
    }
    dq_lanes(type, src + i * bytes_of(type), dst + i, n - i, scale, zp);
}

QK_INLINE __m512 dq_16_cols(int type, const char *src, __mmask16 lanes, const float *scales, const int32_t *zps) {
    __m512i q = load_lanes(type, src, lanes);
    if (zps) q = _mm512_sub_epi32(q, _mm512_maskz_loadu_epi32(lanes, zps));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_maskz_loadu_ps(lanes, scales));
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
    size_t bytes = bytes_of(type);
    for (size_t r = 0; r < rows; r++, src += stride * bytes, dst += stride) {
        size_t c = 0;
        if (stream && (uintptr_t)dst % 64 == 0)
            for (; cols - c >= 16; c += 16)
                _mm512_stream_ps(dst + c, dq_16_cols(type, src + c * bytes, 0xffff, scales + c, zps ? zps + c : NULL));
        for (; c < cols; c += 16) {
            __mmask16 lanes = qk512_lanes(cols - c);
            _mm512_mask_storeu_ps(dst + c, lanes,
                                  dq_16_cols(type, src + c * bytes, lanes, scales + c, zps ? zps + c : NULL));
        }
    }
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

QK_QUANT_ALL_TYPES

const qk_quant_row qk_quant_avx512 = {
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
    .isa = QK_ISA_avx512,
};
