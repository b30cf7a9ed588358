#include "kbench_floor_runs.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>
#include <string.h>

QK_INLINE void load_32(kbench_run_real real, const char *src, __m512 *x0, __m512 *x1) {
    if (real == KBENCH_RUN_F32) {
        *x0 = _mm512_loadu_ps(src);
        *x1 = _mm512_loadu_ps(src + 64);
    } else if (real == KBENCH_RUN_F16) {
        *x0 = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)src));
        *x1 = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(src + 32)));
    } else { /* even and odd ones */
        const __m512i x = _mm512_loadu_si512(src);
        *x0 = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
        *x1 = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-65536)));
    }
}

/* Where the upper byte of element i's word is when 32 came by two registers, packed. */
QK_INLINE __m512i upper_bytes(kbench_run_real real) {
    uint8_t at[64];
    for (size_t i = 0; i < 64; i++) {
        const size_t k = i % 32, word = real == KBENCH_RUN_BF16 ? k / 8 * 8 + k % 2 * 4 + k % 8 / 2
                                                                : k % 16 / 4 * 8 + k / 16 * 4 + k % 4;
        at[i] = (uint8_t)(i / 32 * 64 + 2 * word + 1);
    }
    return _mm512_loadu_si512(at);
}

QK_INLINE __m512i pack(bool is_signed, __m512i a, __m512i b) {
    return is_signed ? _mm512_packs_epi32(a, b) : _mm512_packus_epi32(a, b);
}

/* The result is the upper byte of a word that saturates as it does, or the upper nibble. */
QK_INLINE void quantize(kbench_run_real real, bool is_4bit, bool is_signed, const char *src, char *dst, size_t n_runs,
                        size_t len, const float *scales, const int32_t *zps) {
    const float unit = is_4bit ? 4096.0f : 256.0f;
    const __m512i order = upper_bytes(real);
    const __m256i low = _mm256_set1_epi8(15);
    uint8_t by_two[64] = {0};
    for (size_t i = 0; i < 32; i++) { /* of 4-bit results, the bytes of even elements, then those of odd ones */
        by_two[i] = ((const uint8_t *)&order)[2 * i];
        by_two[i + 32] = ((const uint8_t *)&order)[2 * i + 1];
    }
    const __m512i halves = _mm512_loadu_si512(by_two);
    enum { AT_ONCE = 16 };
    float factor[AT_ONCE], shift[AT_ONCE];
    for (size_t r = 0; r < n_runs; r += len == 32 ? 2 : 1) {
        const size_t at = r % AT_ONCE;
        if (at == 0) { /* there are as many scales as fill a vector behind the last one */
            const __m512i zp = zps ? _mm512_loadu_si512(zps + r) : _mm512_setzero_si512();
            const __m512 u = _mm512_set1_ps(unit);
            _mm512_storeu_ps(factor, _mm512_div_ps(u, _mm512_loadu_ps(scales + r)));
            _mm512_storeu_ps(shift, _mm512_fmadd_ps(_mm512_cvtepi32_ps(zp), u, _mm512_set1_ps(0.5f * unit)));
        }
        const size_t next = at + (len == 32);
        const __m512 f[4] = {_mm512_set1_ps(factor[at]), _mm512_set1_ps(factor[at]), _mm512_set1_ps(factor[next]),
                             _mm512_set1_ps(factor[next])};
        const __m512 z[4] = {_mm512_set1_ps(shift[at]), _mm512_set1_ps(shift[at]), _mm512_set1_ps(shift[next]),
                             _mm512_set1_ps(shift[next])};
        for (size_t i = 0; i < len; i += 64, src += real == KBENCH_RUN_F32 ? 256 : 128, dst += is_4bit ? 32 : 64) {
            __m512 x[4];
            __m512i v[4];
            load_32(real, src, &x[0], &x[1]);
            load_32(real, src + (real == KBENCH_RUN_F32 ? 128 : 64), &x[2], &x[3]);
            QK_FOUR_TIMES(k, v[k] = _mm512_cvtps_epi32(_mm512_fmadd_ps(x[k], f[k], z[k])));
            const __m512i a = pack(is_signed, v[0], v[1]), b = pack(is_signed, v[2], v[3]);
            if (!is_4bit) {
                _mm512_storeu_si512(dst, _mm512_permutex2var_epi8(a, order, b));
                continue;
            }
            const __m512i p = _mm512_permutex2var_epi8(a, halves, b);
            const __m256i even = _mm256_srli_epi16(_mm512_castsi512_si256(p), 4);
            _mm256_storeu_si256((__m256i *)(void *)dst,
                                _mm256_ternarylogic_epi32(low, even, _mm512_extracti64x4_epi64(p, 1), 0xca));
        }
    }
}

QK_INLINE __m512i as_words(kbench_run_real real, __m512 x0, __m512 x1) {
    if (real == KBENCH_RUN_BF16) {
        const __m512bh h = _mm512_cvtne2ps_pbh(x1, x0);
        __m512i v;
        memcpy(&v, &h, sizeof v);
        return v;
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(x0, _MM_FROUND_TO_NEAREST_INT)),
                              _mm512_cvtps_ph(x1, _MM_FROUND_TO_NEAREST_INT), 1);
}

/* Bytes to narrow floats. */
QK_INLINE void dequantize(kbench_run_real real, bool is_signed, const char *src, char *dst, size_t n_runs, size_t len,
                          const float *scales, const int32_t *zps) {
    for (size_t r = 0; r < n_runs; r++) {
        const __m512 factor = _mm512_set1_ps(scales[r]);
        const __m512 base = _mm512_set1_ps((float)(zps ? zps[r] : 0) * -scales[r]);
        for (size_t i = 0; i < len; i += 64, src += 64, dst += 128) {
            __m512 x[4];
            QK_FOUR_TIMES(k, const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + 16 * k));
                          const __m512i q = is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b);
                          x[k] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(q), factor, base));
            if (real == KBENCH_RUN_F16) {
                QK_FOUR_TIMES(k, _mm256_storeu_si256((__m256i *)(void *)(dst + 32 * k),
                                                     _mm512_cvtps_ph(x[k], _MM_FROUND_TO_NEAREST_INT)));
            } else {
                _mm512_storeu_si512(dst, as_words(real, x[0], x[1]));
                _mm512_storeu_si512(dst + 64, as_words(real, x[2], x[3]));
            }
        }
    }
}

/* 4-bit values: from a table of sixteen. */
QK_INLINE void dequantize_4bit(kbench_run_real real, bool is_signed, const char *src, char *dst, size_t n_runs,
                               size_t len, const float *scales, const int32_t *zps) {
    const __m512 values = is_signed ? _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1)
                                    : _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i from = _mm512_setr_epi64(0x0400000000, 0x0c00000008, 0x1400000010, 0x1c00000018, 0x2400000020,
                                           0x2c00000028, 0x3400000030, 0x3c00000038);
    const __m512i down = _mm512_set1_epi64(0x000c000800040000);
    const __m512i which = _mm512_set_epi16(7, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1,
                                           1, 1, 0, 0, 0, 0);
    for (size_t r = 0; r < n_runs; r++) {
        const __m512 base = _mm512_set1_ps((float)(zps ? zps[r] : 0) * -scales[r]);
        const __m512 table = _mm512_fmadd_ps(values, _mm512_set1_ps(scales[r]), base);
        if (real == KBENCH_RUN_F32) {
            for (size_t i = 0; i < len; i += 16, src += 8, dst += 64) {
                double q;
                memcpy(&q, src, sizeof q);
                const __m512i at = _mm512_multishift_epi64_epi8(from, _mm512_castpd_si512(_mm512_set1_pd(q)));
                _mm512_storeu_ps(dst, _mm512_permutexvar_ps(at, table));
            }
        } else {
            const __m512i words = as_words(real, table, table);
            for (size_t i = 0; i < len; i += 32, src += 16, dst += 64) {
                const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)src);
                const __m512i at = _mm512_permutexvar_epi16(which, _mm512_castsi128_si512(b));
                _mm512_storeu_si512(dst, _mm512_permutexvar_epi16(_mm512_srlv_epi16(at, down), words));
            }
        }
    }
}

#define QUANTIZE(real, stored, is_4bit, is_signed)                                                                     \
    static void quantize_##real##_##stored(const void *src, void *dst, size_t n_runs, size_t len, const float *scales, \
                                           const int32_t *zps) {                                                       \
        quantize(KBENCH_RUN_##real, is_4bit, is_signed, src, dst, n_runs, len, scales, zps);                           \
    }
QUANTIZE(BF16, U8, false, false)
QUANTIZE(BF16, S8, false, true)
QUANTIZE(F16, U8, false, false)
QUANTIZE(F16, S8, false, true)
QUANTIZE(F32, U4, true, false)
QUANTIZE(F32, S4, true, true)
QUANTIZE(BF16, U4, true, false)

#define DEQUANTIZE(name, real, stored, is_signed)                                                                      \
    static void name##_##real##_##stored(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,   \
                                         const int32_t *zps) {                                                         \
        name(KBENCH_RUN_##real, is_signed, src, dst, n_runs, len, scales, zps);                                        \
    }
DEQUANTIZE(dequantize, BF16, U8, false)
DEQUANTIZE(dequantize, BF16, S8, true)
DEQUANTIZE(dequantize, F16, U8, false)
DEQUANTIZE(dequantize, F16, S8, true)
DEQUANTIZE(dequantize_4bit, F32, U4, false)
DEQUANTIZE(dequantize_4bit, F32, S4, true)
DEQUANTIZE(dequantize_4bit, BF16, U4, false)

const kbench_run_floors kbench_run_floors_avx512bf16 = {
    .quantize = {[KBENCH_RUN_F32] = {NULL, NULL, quantize_F32_U4, quantize_F32_S4},
                 [KBENCH_RUN_BF16] = {quantize_BF16_U8, quantize_BF16_S8, quantize_BF16_U4, NULL},
                 [KBENCH_RUN_F16] = {quantize_F16_U8, quantize_F16_S8, NULL, NULL}},
    .dequantize = {[KBENCH_RUN_F32] = {NULL, NULL, dequantize_4bit_F32_U4, dequantize_4bit_F32_S4},
                   [KBENCH_RUN_BF16] = {dequantize_BF16_U8, dequantize_BF16_S8, dequantize_4bit_BF16_U4, NULL},
                   [KBENCH_RUN_F16] = {dequantize_F16_U8, dequantize_F16_S8, NULL, NULL}},
};
