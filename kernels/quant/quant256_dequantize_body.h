/* Dequantization on AVX2. */
#ifndef QK_QUANT256_DEQUANTIZE_H
#define QK_QUANT256_DEQUANTIZE_H

#include "kernels/quant/quant256_io_body.h"

QK_INLINE __m256i load(int type, const char *src) {
    if (type == QK_S32) return _mm256_loadu_si256((const __m256i *)src);
    if (bytes_of(type, 1) == 1) return qk256_load8(src, is_signed(type));
    __m128i w = _mm_loadu_si128((const __m128i *)src);
    return is_signed(type) ? _mm256_cvtepi16_epi32(w) : _mm256_cvtepu16_epi32(w);
}

QK_INLINE __m256 scaled(__m256i q, bool has_zp, __m256 scale, __m256i zp) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(has_zp ? _mm256_sub_epi32(q, zp) : q), scale);
}

QK_INLINE __m256 dq_8(int type, bool has_zp, const char *src, __m256 scale, __m256i zp) {
    return scaled(load(type, src), has_zp, scale, zp);
}

/* ---- runs of bytes and more ---- */

/* How bf16 is rounded: half to even at once; or half up, and a look at the end at whether anything was half way. */
enum { ROUND_EVEN, ROUND_UP };

/* Sixteen bytes to bf16: the even ones and the odd ones, which meet in order. `low` has the least of what lies below the result, and
 * half a unit more: 0 where something was half way. No NaN here, as scales are normal, nor denormals. */
QK_INLINE __m256i bf16_of_bytes(int type, int rounding, const char *src, __m256 scale, __m256i zp, __m256i *low) {
    const __m256i even = _mm256_setr_epi32(-256, -254, -252, -250, -248, -246, -244, -242),
                  odd = _mm256_add_epi32(even, _mm256_set1_epi32(1));
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)src));
    if (is_signed(type)) both = _mm256_xor_si256(both, _mm256_set1_epi8(-128)); /* the zero point is 128 more then */
    __m256i u0 = _mm256_castps_si256(scaled(_mm256_shuffle_epi8(both, even), true, scale, zp)),
            u1 = _mm256_castps_si256(scaled(_mm256_shuffle_epi8(both, odd), true, scale, zp));
    if (rounding == ROUND_EVEN) {
        u0 = bf16_rounded(u0);
        u1 = bf16_rounded(u1);
    } else {
        u0 = _mm256_add_epi32(u0, _mm256_set1_epi32(0x8000));
        u1 = _mm256_add_epi32(u1, _mm256_set1_epi32(0x8000));
        *low = _mm256_min_epu16(*low, _mm256_min_epu16(u0, u1));
    }
    return _mm256_blend_epi16(_mm256_srli_epi32(u0, 16), u1, 0xaa);
}

QK_INLINE void dq_block(int real, int type, int rounding, bool has_zp, const char *src, char *dst, __m256 scale,
                        __m256i zp, __m256i *low, bool stream) {
    const size_t bytes = bytes_of(type, 8);
    if (real == QK_BF16) {
        store(dst, bf16_of_bytes(type, rounding, src, scale, zp, low), stream);
        store(dst + 32, bf16_of_bytes(type, rounding, src + 16, scale, zp, low), stream);
    } else if (real == QK_F16) {
        QK_FOUR_TIMES(k, store_half(dst + 16 * k,
                                    _mm256_cvtps_ph(dq_8(type, has_zp, src + k * bytes, scale, zp),
                                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                                    stream));
    } else {
        QK_FOUR_TIMES(k,
                      store(dst + 32 * k, _mm256_castps_si256(dq_8(type, has_zp, src + k * bytes, scale, zp)), stream));
    }
}

/* Whole blocks. False: something was half way, and is not right. */
QK_INLINE bool dq_blocks(int real, int type, int rounding, bool has_zp, const char *src, char *dst, size_t n,
                         __m256 scale, __m256i zp, bool stream) {
    __m256i low = _mm256_set1_epi32(-1);
    for (size_t i = 0; i < n; i += BLOCK)
        dq_block(real, type, rounding, has_zp, src + bytes_of(type, i), dst + i * real_bytes(real), scale, zp, &low,
                 stream);
    return real != QK_BF16 || rounding == ROUND_EVEN ||
           _mm256_testz_si256(_mm256_cmpeq_epi16(low, _mm256_setzero_si256()), _mm256_set1_epi32(0xffff));
}

/* Less than a block. */
QK_INLINE void dq_some(int real, int type, const char *src, char *dst, size_t n, __m256 scale, __m256i zp) {
    char in[BLOCK * 4] = {0}, out[BLOCK * 4];
    __m256i low = _mm256_setzero_si256();
    memcpy(in, src, bytes_of(type, n));
    dq_block(real, type, ROUND_EVEN, true, in, out, scale, zp, &low, false);
    memcpy(dst, out, n * real_bytes(real));
}

/* `half_way`: of bf16, whether something was so far. */
QK_INLINE void dq_run(int real, int type, const char *src, char *dst, size_t n, float scale_, int32_t zp_, bool stream,
                      bool *half_way) {
    enum { LOOK = 512 }; /* elements between looks */
    const __m256 scale = _mm256_set1_ps(scale_);
    const __m256i zp = _mm256_set1_epi32(real == QK_BF16 && is_signed(type) ? zp_ + 128 : zp_);
    const size_t to = real_bytes(real), off = (32 - (uintptr_t)dst % 32) % 32;
    size_t i = 0;
    if (stream && off % to == 0 && off / to < n) {
        i = off / to;
        if (i) dq_some(real, type, src, dst, i, scale, zp);
    }
    const bool past_caches = stream && (uintptr_t)(dst + i * to) % 32 == 0;
    const size_t end = i + (n - i) / BLOCK * BLOCK;
    for (size_t m; i < end; i += m) {
        const char *s = src + bytes_of(type, i);
        char *d = dst + i * to;
        m = real == QK_BF16 && end - i > LOOK ? LOOK : end - i;
        if (real == QK_BF16 && *half_way)
            dq_blocks(real, type, ROUND_EVEN, true, s, d, m, scale, zp, past_caches);
        else if (past_caches)
            *half_way = !dq_blocks(real, type, ROUND_UP, true, s, d, m, scale, zp, true);
        else if (zp_ == 0)
            *half_way = !dq_blocks(real, type, ROUND_UP, false, s, d, m, scale, zp, false);
        else
            *half_way = !dq_blocks(real, type, ROUND_UP, true, s, d, m, scale, zp, false);
        if (real == QK_BF16 && *half_way) dq_blocks(real, type, ROUND_EVEN, true, s, d, m, scale, zp, past_caches);
    }
    if (i < n) dq_some(real, type, src + bytes_of(type, i), dst + i * to, n - i, scale, zp);
}

/* ---- runs of nibbles ---- */

/* Eight of four bytes. */
QK_INLINE __m256 dq_nibbles_8(int type, bool has_zp, const char *src, __m256 scale, __m256i zp) {
    const __m256i down = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    float f; /* a type that is broadcast from memory */
    memcpy(&f, src, sizeof f);
    const __m256i all = _mm256_castps_si256(_mm256_set1_ps(f));
    if (type == QK_U4)
        return scaled(_mm256_and_si256(_mm256_srlv_epi32(all, down), _mm256_set1_epi32(15)), has_zp, scale, zp);
    const __m256i top = _mm256_sllv_epi32(all, _mm256_sub_epi32(_mm256_set1_epi32(28), down));
    return scaled(_mm256_srai_epi32(top, 28), has_zp, scale, zp);
}

/* The sixteen values there are, as bf16: their lower and their upper bytes. */
typedef struct nibble_words {
    __m256i lower, upper;
} nibble_words;

QK_INLINE nibble_words nibble_words_of(int type, __m256 scale, __m256i zp) {
    const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                  second = _mm256_add_epi32(first, _mm256_set1_epi32(type == QK_S4 ? -8 : 8));
    const __m256i u0 = _mm256_srli_epi32(bf16_rounded(_mm256_castps_si256(scaled(first, true, scale, zp))), 16),
                  u1 = _mm256_srli_epi32(bf16_rounded(_mm256_castps_si256(scaled(second, true, scale, zp))), 16);
    const __m256i words = qk256_pack16(u0, u1, false);
    const __m256i bytes = _mm256_permute4x64_epi64(
        _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(255)), _mm256_srli_epi16(words, 8)), 0xd8);
    return (nibble_words){_mm256_permute2x128_si256(bytes, bytes, 0x00), _mm256_permute2x128_si256(bytes, bytes, 0x11)};
}

/* 64 of 32 bytes. */
QK_INLINE void dq_nibbles_64(const nibble_words *w, const char *src, char *dst, bool stream) {
    /* what interleaving inside of lanes brings into order: every other four bytes to the same lane */
    const __m256i turn = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7), low = _mm256_set1_epi8(15);
    const __m256i b = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(const void *)src), turn),
                  even = _mm256_and_si256(b, low), odd = _mm256_and_si256(_mm256_srli_epi16(b, 4), low);
    const __m256i el = _mm256_shuffle_epi8(w->lower, even), eu = _mm256_shuffle_epi8(w->upper, even),
                  ol = _mm256_shuffle_epi8(w->lower, odd), ou = _mm256_shuffle_epi8(w->upper, odd);
    const __m256i e0 = _mm256_unpacklo_epi8(el, eu), e1 = _mm256_unpackhi_epi8(el, eu),
                  o0 = _mm256_unpacklo_epi8(ol, ou), o1 = _mm256_unpackhi_epi8(ol, ou);
    store(dst, _mm256_unpacklo_epi16(e0, o0), stream);
    store(dst + 32, _mm256_unpackhi_epi16(e0, o0), stream);
    store(dst + 64, _mm256_unpacklo_epi16(e1, o1), stream);
    store(dst + 96, _mm256_unpackhi_epi16(e1, o1), stream);
}

QK_INLINE void dq_nibble_blocks(int type, bool has_zp, const char *src, char *dst, size_t n, __m256 scale, __m256i zp,
                                bool stream) {
    for (size_t i = 0; i < n; i += BLOCK)
        QK_FOUR_TIMES(k, const __m256 x = dq_nibbles_8(type, has_zp, src + i / 2 + 4 * k, scale, zp);
                      store(dst + 4 * i + 32 * k, _mm256_castps_si256(x), stream));
}

QK_INLINE void dq_nibble_run(int real, int type, const char *src, char *dst, size_t n, float scale_, int32_t zp_,
                             bool stream) {
    const __m256 scale = _mm256_set1_ps(scale_);
    const __m256i zp = _mm256_set1_epi32(zp_);
    const bool past_caches = stream && (uintptr_t)dst % 32 == 0;
    const size_t block = real == QK_F32 ? BLOCK : 2 * BLOCK, whole = n / block * block, to = real_bytes(real);
    char in[BLOCK] = {0}, out[BLOCK * 4];
    if (n > whole) memcpy(in, src + whole / 2, (n - whole + 1) / 2);
    if (real == QK_F32) {
        if (past_caches)
            dq_nibble_blocks(type, true, src, dst, whole, scale, zp, true);
        else if (zp_ == 0)
            dq_nibble_blocks(type, false, src, dst, whole, scale, zp, false);
        else
            dq_nibble_blocks(type, true, src, dst, whole, scale, zp, false);
        if (n > whole) dq_nibble_blocks(type, true, in, out, BLOCK, scale, zp, false);
    } else {
        const nibble_words w = nibble_words_of(type, scale, zp);
        for (size_t i = 0; i < whole; i += 2 * BLOCK)
            if (past_caches)
                dq_nibbles_64(&w, src + i / 2, dst + 2 * i, true);
            else
                dq_nibbles_64(&w, src + i / 2, dst + 2 * i, false);
        if (n > whole) dq_nibbles_64(&w, in, out, false);
    }
    if (n > whole) memcpy(dst + whole * to, out, (n - whole) * to);
}

QK_INLINE void dq_runs(int real, int type, const void *src_, void *dst_, size_t n_runs, size_t len, const float *scales,
                       const int32_t *zps, bool stream) {
    const char *src = src_;
    char *dst = dst_;
    bool half_way = false;
    for (size_t r = 0; r < n_runs; r++, src += bytes_of(type, len), dst += len * real_bytes(real)) {
        const int32_t zp = zps ? zps[r] : 0;
        if (!zp_ok(type, zp) || (real != QK_F32 && !isnormal(scales[r])))
            dq_odd_run(real, type, src, dst, len, scales[r], zp);
        else if (is_4bit(type))
            dq_nibble_run(real, type, src, dst, len, scales[r], zp, stream);
        else
            dq_run(real, type, src, dst, len, scales[r], zp, stream, &half_way);
    }
}

/* ---- a scale per column ---- */

/* Rows that go through the same columns together. */
enum { DQ_TOGETHER = 8 };

QK_INLINE void dq_cols(int type, const void *src_, float *dst, size_t rows, size_t cols, const float *scales,
                       const int32_t *zps, bool stream) {
    if (!zps_ok(type, zps, cols)) {
        qk_quant_ref.dq_cols[type](src_, dst, rows, cols, scales, zps, stream);
        return;
    }
    const char *src = src_;
    const size_t bytes = bytes_of(type, 1), whole = cols / 8 * 8;
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
                    QK_FOUR_TIMES(j, _mm256_stream_ps(d + 8 * j, dq_8(type, true, s + 8 * j * bytes, scale[j], zp[j])));
                else
                    QK_FOUR_TIMES(j, _mm256_storeu_ps(d + 8 * j, dq_8(type, true, s + 8 * j * bytes, scale[j], zp[j])));
            }
        }
        for (; c < whole; c += 8) {
            const __m256 scale = _mm256_loadu_ps(scales + c);
            const __m256i zp = zps ? _mm256_loadu_si256((const __m256i *)(zps + c)) : _mm256_setzero_si256();
            for (size_t k = r; k < r + m; k++)
                _mm256_storeu_ps(dst + k * cols + c, dq_8(type, true, src + (k * cols + c) * bytes, scale, zp));
        }
        for (size_t k = r; whole < cols && k < r + m; k++)
            qk_quant_ref.dq_cols[type](src + (k * cols + whole) * bytes, dst + k * cols + whole, 1, cols - whole,
                                       scales + whole, zps ? zps + whole : NULL, false);
    }
}

#endif
