/* Dequantization on AVX-512. */
#ifndef QK_QUANT512_DEQUANTIZE_H
#define QK_QUANT512_DEQUANTIZE_H

#include "kernels/quant/quant512_io_body.h"

#include <math.h>
#include <string.h>

QK_INLINE __m512i load_lanes(int type, const char *src, __mmask16 lanes) {
    if (type == QK_S32) return _mm512_maskz_loadu_epi32(lanes, src);
    if (qk_stored_bits(type) == 8) return qk512_load8_lanes(src, lanes, is_signed(type));
    __m256i w = _mm256_maskz_loadu_epi16(lanes, src);
    return is_signed(type) ? _mm512_cvtepi16_epi32(w) : _mm512_cvtepu16_epi32(w);
}

QK_INLINE __m512i load_16(int type, const char *src) {
    if (type == QK_S32) return _mm512_loadu_si512(src);
    if (qk_stored_bits(type) == 8) return qk512_load8(src, is_signed(type));
    const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)src);
    return is_signed(type) ? _mm512_cvtepi16_epi32(w) : _mm512_cvtepu16_epi32(w);
}

/* No NaN, and nothing denormal but zeros: scales are normal where this is called, and what they multiply is an integer. */
QK_INLINE __m512i bf16_rounded(__m512 x) {
    __m512i u = _mm512_castps_si512(x), r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(r, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), r, _mm512_set1_epi32(1));
}

/* 32 in order. */
QK_INLINE __m512i bf16_words(__m512 x0, __m512 x1) {
#if defined(__AVX512BF16__)
    const __m512bh words = _mm512_cvtne2ps_pbh(x1, x0); /* would make zeros of denormals */
    __m512i v;
    memcpy(&v, &words, sizeof v);
    return v;
#else
    return qk512_fixed_words(bf16_rounded(x0), bf16_rounded(x1));
#endif
}

QK_INLINE __m512i f16_words(__m512 x0, __m512 x1) {
    __m512i h = _mm512_castsi256_si512(_mm512_cvtps_ph(x0, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return _mm512_inserti64x4(h, _mm512_cvtps_ph(x1, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1);
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
        store(dst, bf16_words(x0, x1), stream);
    } else {
        store_half(dst, _mm512_cvtps_ph(x0, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), stream);
        store_half(dst + 32, _mm512_cvtps_ph(x1, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), stream);
    }
}

QK_INLINE __m512 dq_lanes(int type, const char *src, size_t n, __m512 scale, __m512i zp) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(load_lanes(type, src, qk512_lanes(n)), zp)), scale);
}

/* Sixteen; a zero point that is 0 may be left out. */
QK_INLINE __m512 dq_16(int type, bool has_zp, const char *src, __m512 scale, __m512i zp) {
    const __m512i q = load_16(type, src);
    return _mm512_mul_ps(_mm512_cvtepi32_ps(has_zp ? _mm512_sub_epi32(q, zp) : q), scale);
}

/* ---- bytes to 16-bit floats, of which there are 256: from tables of their lower and upper bytes ---- */

/* So many elements are worth the tables. */
enum { TABLE = 1024 };

#if defined(__AVX512VBMI__)
typedef struct tables {
    __m512i lower[4], upper[4];
} tables;

QK_INLINE tables tables_of(int real, int type, float scale, int32_t zp) {
    uint8_t even[64], odd[64];
    for (int i = 0; i < 64; i++) {
        even[i] = (uint8_t)(2 * i);
        odd[i] = (uint8_t)(2 * i + 1);
    }
    const __m512i lower = _mm512_loadu_si512(even), upper = _mm512_loadu_si512(odd);
    const __m512 s = _mm512_set1_ps(scale);
    const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    tables t;
    for (int k = 0; k < 4; k++) {
        /* of signed bytes, the second half are those below zero */
        const int first = 64 * k - (is_signed(type) && k >= 2 ? 256 : 0) - zp;
        __m512 x[4];
        QK_FOUR_TIMES(j, __m512i q = _mm512_add_epi32(count, _mm512_set1_epi32(first + 16 * j));
                      x[j] = _mm512_mul_ps(_mm512_cvtepi32_ps(q), s));
        const __m512i a = real == QK_BF16 ? bf16_words(x[0], x[1]) : f16_words(x[0], x[1]),
                      b = real == QK_BF16 ? bf16_words(x[2], x[3]) : f16_words(x[2], x[3]);
        t.lower[k] = _mm512_permutex2var_epi8(a, lower, b);
        t.upper[k] = _mm512_permutex2var_epi8(a, upper, b);
    }
    return t;
}

/* Whole blocks of 64. */
QK_INLINE void dq_by_tables(const tables *t, const char *src, char *dst, size_t n, bool stream) {
    /* bytes that are interleaved inside lanes of 128 bits come out in order */
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t i = 0; i < n; i += 64) {
        const __m512i b = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(src + i));
        const __mmask64 second = _mm512_movepi8_mask(b);
        const __m512i lower = _mm512_mask_blend_epi8(second, _mm512_permutex2var_epi8(t->lower[0], b, t->lower[1]),
                                                     _mm512_permutex2var_epi8(t->lower[2], b, t->lower[3]));
        const __m512i upper = _mm512_mask_blend_epi8(second, _mm512_permutex2var_epi8(t->upper[0], b, t->upper[1]),
                                                     _mm512_permutex2var_epi8(t->upper[2], b, t->upper[3]));
        store(dst + 2 * i, _mm512_unpacklo_epi8(lower, upper), stream);
        store(dst + 2 * i + 64, _mm512_unpackhi_epi8(lower, upper), stream);
    }
}
#endif

/* As much of a run as tables do: none, or all but its ends. The destination is at the beginning of a line when streaming. */
QK_INLINE size_t dq_table_run(int real, int type, const char *src, char *dst, size_t n, float scale, int32_t zp,
                              bool stream) {
#if defined(__AVX512VBMI__)
    if (real == QK_F32 || qk_stored_bits(type) != 8 || n < TABLE) return 0;
    const tables t = tables_of(real, type, scale, zp);
    dq_by_tables(&t, src, dst, n / 64 * 64, stream);
    return n / 64 * 64;
#else
    (void)real, (void)type, (void)src, (void)dst, (void)n, (void)scale, (void)zp, (void)stream;
    return 0;
#endif
}

/* Whole blocks of 64. */
QK_INLINE void dq_blocks(int real, int type, bool has_zp, const char *src, char *dst, size_t n, __m512 scale,
                         __m512i zp, bool stream) {
    const size_t bytes = bytes_of(type, 16), to = 16 * real_bytes(real);
    for (size_t i = 0; i < n; i += 64, src += 4 * bytes, dst += 4 * to) {
        __m512 x[4];
        QK_FOUR_TIMES(k, x[k] = dq_16(type, has_zp, src + k * bytes, scale, zp));
        store_real_32(real, dst, x[0], x[1], stream);
        store_real_32(real, dst + 2 * to, x[2], x[3], stream);
    }
}

QK_INLINE void dq_run(int real, int type, const char *src, char *dst, size_t n, float scale_, int32_t zp_,
                      bool stream) {
    const __m512 scale = _mm512_set1_ps(scale_);
    const __m512i zp = _mm512_set1_epi32(zp_);
    const size_t bytes = bytes_of(type, 1), to = real_bytes(real);
    size_t i = 0;
    if (stream)
        for (size_t m, begin = head(dst, to, n); i < begin; i += m) {
            m = begin - i < 16 ? begin - i : 16;
            store_real(real, dst + i * to, m, dq_lanes(type, src + i * bytes, m, scale, zp));
        }
    const bool past_caches = stream && (uintptr_t)(dst + i * to) % 64 == 0;
    i += dq_table_run(real, type, src + i * bytes, dst + i * to, n - i, scale_, zp_, past_caches);
    const size_t whole = (n - i) / 64 * 64;
    if (past_caches)
        dq_blocks(real, type, true, src + i * bytes, dst + i * to, whole, scale, zp, true);
    else if (zp_ == 0)
        dq_blocks(real, type, false, src + i * bytes, dst + i * to, whole, scale, zp, false);
    else
        dq_blocks(real, type, true, src + i * bytes, dst + i * to, whole, scale, zp, false);
    for (i += whole; i < n; i += 16)
        store_real(real, dst + i * to, n - i, dq_lanes(type, src + i * bytes, n - i, scale, zp));
}

/* 4 bits: the sixteen values there are, as floats or as words. */
QK_INLINE __m512 sixteen(int type, const float *scale, const int32_t *zp) {
    const __m512i u = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i s = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    __m512i q = _mm512_sub_epi32(type == QK_S4 ? s : u, _mm512_set1_epi32(zp ? *zp : 0));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(*scale));
}

/* The nibbles of 8 bytes, one in the lowest bits of each lane; what is above four bits a look-up ignores. */
QK_INLINE __m512i nibbles_16(const char *src) {
#if defined(__AVX512VBMI__)
    /* every eight bits, at whatever bit they begin: the even ones' and the odd ones' of a byte to the dwords of a qword */
    const __m512i from = _mm512_setr_epi64(0x0400000000, 0x0c00000008, 0x1400000010, 0x1c00000018, 0x2400000020,
                                           0x2c00000028, 0x3400000030, 0x3c00000038);
    double q; /* a type that is broadcast from memory */
    memcpy(&q, src, sizeof q);
    return _mm512_multishift_epi64_epi8(from, _mm512_castpd_si512(_mm512_set1_pd(q)));
#else
    const __m512i down = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    int32_t q[2];
    memcpy(q, src, sizeof q);
    return _mm512_srlv_epi32(_mm512_mask_set1_epi32(_mm512_set1_epi32(q[0]), 0xff00, q[1]), down);
#endif
}

QK_INLINE void dq_nibbles_f32(__m512 values, const char *src, float *dst, size_t n, bool stream) {
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        store(dst + i, _mm512_castps_si512(_mm512_permutexvar_ps(nibbles_16(src + i / 2), values)), stream);
        store(dst + i + 16, _mm512_castps_si512(_mm512_permutexvar_ps(nibbles_16(src + i / 2 + 8), values)), stream);
    }
    for (; i < n; i += 16) {
        const size_t m = n - i < 16 ? n - i : 16;
        char b[8] = {0};
        memcpy(b, src + i / 2, (m + 1) / 2);
        _mm512_mask_storeu_ps(dst + i, qk512_lanes(m), _mm512_permutexvar_ps(nibbles_16(b), values));
    }
}

/* 16-bit results; the table of 32 words has each value twice. */
QK_INLINE void dq_nibbles_16(__m512i words, const char *src, uint16_t *dst, size_t n, bool stream) {
    const __m512i down = _mm512_set1_epi64(0x000c000800040000);
    const __m512i which = _mm512_set_epi16(7, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1,
                                           1, 1, 0, 0, 0, 0);
    for (size_t i = 0; i < n; i += 32) {
        const size_t m = n - i < 32 ? n - i : 32;
        __m128i b = m == 32 ? _mm_loadu_si128((const __m128i *)(src + i / 2))
                            : _mm_maskz_loadu_epi8((__mmask16)((1u << ((m + 1) / 2)) - 1u), src + i / 2);
        __m512i at = _mm512_permutexvar_epi16(which, _mm512_castsi128_si512(b));
        __m512i x = _mm512_permutexvar_epi16(_mm512_srlv_epi16(at, down), words);
        if (m == 32)
            store(dst + i, x, stream);
        else
            _mm512_mask_storeu_epi16(dst + i, ((__mmask32)1 << m) - 1u, x);
    }
}

/* Are scales and zero points of all runs of the usual? */
QK_INLINE bool are_usual(int real, int type, const float *scales, const int32_t *zps, size_t n) {
    const __m512i reach = _mm512_set1_epi32(type == QK_S32 ? 0 : 1 << 30);
    __mmask16 odd = 0;
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = qk512_lanes(n - i);
        if (zps)
            odd |=
                _mm512_mask_cmpgt_epu32_mask(lanes, _mm512_abs_epi32(_mm512_maskz_loadu_epi32(lanes, zps + i)), reach);
        /* NaN, zero, infinite, denormal */
        if (real != QK_F32) odd |= _mm512_mask_fpclass_ps_mask(lanes, _mm512_maskz_loadu_ps(lanes, scales + i), 0xbf);
    }
    return odd == 0;
}

/* Runs of whole blocks, without anything that a run could do without. */
QK_INLINE void dq_whole_runs(int real, int type, bool has_zp, const char *src, char *dst, size_t n_runs, size_t len,
                             const float *scales, const int32_t *zps, bool stream) {
    for (size_t r = 0; r < n_runs; r++, src += bytes_of(type, len), dst += len * real_bytes(real)) {
        if (!is_4bit(type)) {
            dq_blocks(real, type, has_zp, src, dst, len, _mm512_set1_ps(scales[r]),
                      has_zp ? _mm512_set1_epi32(zps[r]) : _mm512_setzero_si512(), stream);
            continue;
        }
        const __m512 values = sixteen(type, scales + r, has_zp ? zps + r : NULL);
        if (real == QK_F32)
            dq_nibbles_f32(values, src, (float *)(void *)dst, len, stream);
        else
            dq_nibbles_16(bf16_words(values, values), src, (uint16_t *)(void *)dst, len, stream);
    }
}

QK_INLINE void dq_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                       const int32_t *zps, bool stream) {
    const char *src = src_;
    char *dst = dst_;
    const size_t line = is_4bit(type) ? 32 : 64;
    if (len % line == 0 && (real == QK_F32 || is_4bit(type) || len < TABLE) &&
        are_usual(real, type, scales, zps, n_runs)) {
        const bool past_caches = stream && (uintptr_t)dst % 64 == 0;
        if (len == line && is_4bit(type) && !past_caches && zps)
            dq_whole_runs(real, type, true, src, dst, n_runs, line, scales, zps, false);
        else if (past_caches && zps)
            dq_whole_runs(real, type, true, src, dst, n_runs, len, scales, zps, true);
        else if (past_caches)
            dq_whole_runs(real, type, false, src, dst, n_runs, len, scales, zps, true);
        else if (zps)
            dq_whole_runs(real, type, true, src, dst, n_runs, len, scales, zps, false);
        else
            dq_whole_runs(real, type, false, src, dst, n_runs, len, scales, zps, false);
        return;
    }
    for (size_t r = 0; r < n_runs; r++, src += bytes_of(type, len), dst += len * real_bytes(real)) {
        const int32_t zp = zps ? zps[r] : 0;
        const bool past_caches = stream && (uintptr_t)dst % 64 == 0;
        if (!zp_ok(type, zp) || (real != QK_F32 && !isnormal(scales[r]))) {
            dq_odd_run(real, type, src, dst, len, scales[r], zp);
        } else if (!is_4bit(type)) {
            dq_run(real, type, src, dst, len, scales[r], zp, stream);
        } else {
            const __m512 values = sixteen(type, scales + r, &zp);
            if (real == QK_F32)
                dq_nibbles_f32(values, src, (float *)(void *)dst, len, past_caches);
            else
                dq_nibbles_16(bf16_words(values, values), src, (uint16_t *)(void *)dst, len, past_caches);
        }
    }
}

/* Rows that go through the same columns together, so that their scales are loaded once. Measured. */
enum { DQ_TOGETHER = 8 };

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
                                       _mm512_castps_si512(dq_16(type, true, s + 16 * j * bytes, scale[j], zp[j])),
                                       past_caches));
            }
        }
        for (; c < cols; c += 16) {
            const size_t n = cols - c < 16 ? cols - c : 16;
            const __m512 scale = _mm512_maskz_loadu_ps(qk512_lanes(n), scales + c);
            const __m512i zp = zps ? _mm512_maskz_loadu_epi32(qk512_lanes(n), zps + c) : _mm512_setzero_si512();
            for (size_t k = 0; k < m; k++)
                store_real(QK_F32, (char *)(dst + (r + k) * cols + c), n,
                           dq_lanes(type, src + ((r + k) * cols + c) * bytes, n, scale, zp));
        }
    }
}

QK_INLINE void dq_cols(int type, const void *src_, float *dst, size_t rows, size_t cols, const float *scales,
                       const int32_t *zps, bool stream) {
    if (!zps_ok(type, zps, cols)) {
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

#endif
