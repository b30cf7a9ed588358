/* Sums of lines and runs, from which mean and variance come: part of norm_body.h.
 *
 * Floats: of x - c and of its square, in f32 over blocks, which are added in f64. c is 0 at first; where the mean turns out to be
 * far from that, as deviations go, a second pass takes the mean for c, so that taking its square off costs few digits.
 * Bytes: of u = x ^ flip, which is x or x + 128, exact. */
#ifndef QK_NORM_MOMENTS_H
#define QK_NORM_MOMENTS_H

#include "kernels/norm/norm_row.h"
#include "kernels/simd/vec.h"
#include "kernels/simd/wide.h"

#include <math.h>

/* Elements summed in f32 before the sums go to f64; bytes summed in 32 bits likewise; lines at a time. */
enum { BLOCK = 4096, BLOCK_X8 = 32768, LINES = 4 };

typedef struct sums {
    double d, squares; /* of x - c, or of u */
} sums;

/* In vectors yet. */
typedef struct part {
    qkv d, squares;
} part;

/* Over at most BLOCK elements. */
QK_INLINE part add_block(qdq_dtype S, const char *x, size_t n, qkv c, bool centred) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    qkv d[4], q[4];
    size_t i = 0;
#define LESS(v) (centred ? qkv_sub(v, c) : (v))
    QK_FOUR_TIMES(k, d[k] = q[k] = qkv_zero());
    for (; n - i >= 4 * w; i += 4 * w)
        QK_FOUR_TIMES(k, {
            const qkv v = LESS(qkv_load(S, x + (i + k * w) * b));
            d[k] = qkv_add(d[k], v);
            q[k] = qkv_fma(v, v, q[k]);
        });
    for (; n - i >= w; i += w) {
        const qkv v = LESS(qkv_load(S, x + i * b));
        d[0] = qkv_add(d[0], v);
        q[0] = qkv_fma(v, v, q[0]);
    }
    if (i < n) {
        qkv v = LESS(qkv_load_n(S, x + i * b, n - i));
        if (centred) v = qkv_keep(v, n - i, qkv_zero());
        d[1] = qkv_add(d[1], v);
        q[1] = qkv_fma(v, v, q[1]);
    }
#undef LESS
    return (part){qkv_add(qkv_add(d[0], d[1]), qkv_add(d[2], d[3])), qkv_add(qkv_add(q[0], q[1]), qkv_add(q[2], q[3]))};
}

QK_INLINE void add_run(qdq_dtype S, const char *x, size_t n, float c, sums *s) {
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const char *from = x + i * qkv_bytes(S);
        const part p = c == 0.0f ? add_block(S, from, m, qkv_zero(), false) : add_block(S, from, m, qkv_set(c), true);
        s->d += (double)qkv_hsum(p.d);
        s->squares += (double)qkv_hsum(p.squares);
    }
}

/* Sums of some lines. */
typedef struct line_sums {
    double d[LINES], squares[LINES];
} line_sums;

/* Four parts to four sums each. */
QK_INLINE void add_across(const part p[LINES], line_sums *s) {
#if defined(__AVX512F__)
#define PAIR(m, a, b) qkv_add(_mm512_shuffle_f32x4(p[a].m, p[b].m, 0x44), _mm512_shuffle_f32x4(p[a].m, p[b].m, 0xee))
#define PAIRS(a, b)   qkv_add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd))
    const qkv d01 = PAIR(d, 0, 1), d23 = PAIR(d, 2, 3), q01 = PAIR(squares, 0, 1), q23 = PAIR(squares, 2, 3);
    const qkv d = PAIRS(d01, d23), q = PAIRS(q01, q23); /* four lanes for each */
    const qkv both = qkv_add(_mm512_unpacklo_ps(d, q), _mm512_unpackhi_ps(d, q));
    const qkv all = qkv_add(both, _mm512_shuffle_ps(both, both, 0x4e));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256 lanes = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, all));
#undef PAIR
#undef PAIRS
#else
#define PAIR(m, a, b)                                                                                                  \
    qkv_add(_mm256_permute2f128_ps(p[a].m, p[b].m, 0x20), _mm256_permute2f128_ps(p[a].m, p[b].m, 0x31))
    const qkv d01 = PAIR(d, 0, 1), d23 = PAIR(d, 2, 3), q01 = PAIR(squares, 0, 1), q23 = PAIR(squares, 2, 3);
    const qkv a = qkv_add(_mm256_unpacklo_ps(d01, q01), _mm256_unpackhi_ps(d01, q01));
    const qkv b = qkv_add(_mm256_unpacklo_ps(d23, q23), _mm256_unpackhi_ps(d23, q23));
    const qkv all = qkv_add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee)); /* d0 q0 d2 q2 d1 q1 d3 q3 */
    const __m256 lanes = _mm256_permutevar8x32_ps(all, _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7));
#undef PAIR
#endif
    _mm256_storeu_pd(s->d, _mm256_cvtps_pd(_mm256_castps256_ps128(lanes)));
    _mm256_storeu_pd(s->squares, _mm256_cvtps_pd(_mm256_extractf128_ps(lanes, 1)));
}

/* ---- bytes ---- */

QK_INLINE uint8_t flip_of(qdq_dtype S) {
    return S == QDQ_DTYPE_S8 ? 0x80 : 0;
}

/* In vectors yet: sums in lanes of 64 bits, what is added for squares in lanes of 32. */
typedef struct byte_part {
    qkw_i sum, squares;
} byte_part;

QK_INLINE byte_part no_bytes(void) {
    return (byte_part){QKW(set1_epi8)(0), QKW(set1_epi8)(0)};
}

/* Over at most BLOCK_X8 bytes. */
QK_INLINE byte_part add_bytes(const uint8_t *x, size_t n, uint8_t flip) {
    const qkw_i f = QKW(set1_epi8)((char)flip), zero = QKW(set1_epi8)(0);
    qkw_i s = zero, q = zero;
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i < n; i += 64) {
        const __mmask64 lanes = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        __m512i u = _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, x + i), f);
        if (n - i < 64) u = _mm512_maskz_mov_epi8(lanes, u);
        s = _mm512_add_epi64(s, _mm512_sad_epu8(u, zero));
#if defined(__AVX512VNNI__) /* u (u - 128): the second factor is signed */
        q = _mm512_dpbusd_epi32(q, u, _mm512_xor_si512(u, _mm512_set1_epi8(-128)));
#else
        const __m512i lo = _mm512_unpacklo_epi8(u, zero), hi = _mm512_unpackhi_epi8(u, zero);
        q = _mm512_add_epi32(q, _mm512_add_epi32(_mm512_madd_epi16(lo, lo), _mm512_madd_epi16(hi, hi)));
#endif
    }
#else
    for (; n - i >= 32; i += 32) {
        const __m256i u = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(x + i)), f);
        const __m256i lo = _mm256_unpacklo_epi8(u, zero), hi = _mm256_unpackhi_epi8(u, zero);
        s = _mm256_add_epi64(s, _mm256_sad_epu8(u, zero));
        q = _mm256_add_epi32(q, _mm256_add_epi32(_mm256_madd_epi16(lo, lo), _mm256_madd_epi16(hi, hi)));
    }
    while (i < n) {
        const size_t m = n - i < 16 ? n - i : 16;
        __m128i v;
        if (n >= 16) { /* the last of 16 bytes */
            const __m128i at = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            v = _mm_loadu_si128((const __m128i *)(x + i + m - 16));
            v = _mm_xor_si128(v, _mm256_castsi256_si128(f));
            v = _mm_and_si128(v, _mm_cmpgt_epi8(at, _mm_set1_epi8((char)(15 - (int)m))));
        } else {
            uint8_t room[16] = {0};
            for (size_t k = 0; k < n; k++)
                room[k] = x[k] ^ flip;
            v = _mm_loadu_si128((const __m128i *)room);
        }
        const __m256i u = _mm256_cvtepu8_epi16(v);
        s = _mm256_add_epi64(s, _mm256_sad_epu8(u, zero));
        q = _mm256_add_epi32(q, _mm256_madd_epi16(u, u));
        i += m;
    }
#endif
    return (byte_part){s, q};
}

#if defined(__AVX512F__)
#define HALF(op, v) _mm256_##op(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1))
#else
#define HALF(op, v) (v)
#endif

/* Integers below 2^52. */
QK_INLINE __m256d doubles_of(__m256i v) {
    const __m256d two52 = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(v, _mm256_castpd_si256(two52))), two52);
}

/* Four parts to four sums each. */
QK_INLINE void add_bytes_across(const byte_part p[LINES], line_sums *s) {
    __m256i d[LINES], q[LINES];
    QK_FOUR_TIMES(k, {
        d[k] = HALF(add_epi64, p[k].sum);
        q[k] = HALF(add_epi32, p[k].squares);
    });
#define BOTH(bits, a, b) _mm256_add_epi##bits(_mm256_unpacklo_epi##bits(a, b), _mm256_unpackhi_epi##bits(a, b))
    const __m256i d01 = BOTH(64, d[0], d[1]), d23 = BOTH(64, d[2], d[3]);
    const __m256i q01 = BOTH(32, q[0], q[1]), q23 = BOTH(32, q[2], q[3]);
#undef BOTH
    const __m256i sum =
        _mm256_add_epi64(_mm256_permute2x128_si256(d01, d23, 0x20), _mm256_permute2x128_si256(d01, d23, 0x31));
    const __m256i all = _mm256_add_epi32(_mm256_unpacklo_epi64(q01, q23), _mm256_unpackhi_epi64(q01, q23));
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
#if defined(__AVX512VNNI__)
    const __m256i squares = _mm256_add_epi64(_mm256_cvtepi32_epi64(four), _mm256_slli_epi64(sum, 7));
#else
    const __m256i squares = _mm256_cvtepu32_epi64(four);
#endif
    _mm256_storeu_pd(s->d, doubles_of(sum));
    _mm256_storeu_pd(s->squares, doubles_of(squares));
}
#undef HALF

static sums sums_of_bytes(const uint8_t *x, size_t n, uint8_t flip) {
    sums s = {0.0, 0.0};
    for (size_t i = 0; i < n; i += BLOCK_X8) {
        const byte_part p[LINES] = {add_bytes(x + i, n - i < BLOCK_X8 ? n - i : BLOCK_X8, flip), no_bytes(), no_bytes(),
                                    no_bytes()};
        line_sums some;
        add_bytes_across(p, &some);
        s.d += some.d[0];
        s.squares += some.squares[0];
    }
    return s;
}

/* Of what is stored. */
QK_INLINE qk_moments moments_of_bytes(const qk_norm *norm, sums s, double count, uint8_t flip) {
    const double mean = s.d / count, zp = (double)norm->src_zp + (double)flip;
    if (norm->rms) return (qk_moments){0.0, s.squares / count - 2.0 * zp * mean + zp * zp};
    const double variance = s.squares / count - mean * mean;
    return (qk_moments){mean - (double)flip, variance > 0.0 ? variance : 0.0};
}

/* ---- runs ---- */

static sums sums_of_runs(qdq_dtype src, const char *x, size_t n_runs, size_t step, size_t n, float c) {
    sums s = {0.0, 0.0};
    for (size_t r = 0; r < n_runs; r++)
        QKV_BY_TYPE(src, S, add_run((qdq_dtype)S, x + r * step, n, c, &s));
    return s;
}

/* Is the mean too far from c for these sums? Also where they have overflown. */
QK_INLINE bool too_far(double off, double variance) {
    return !(off * off <= 4.0 * variance && isfinite(variance));
}

/* Floats, from their sums round 0, which may have to be taken again. */
static qk_moments moments_of_floats(const qk_norm *norm, sums s, const char *x, size_t n_runs, size_t step, size_t n) {
    const double count = (double)n_runs * (double)n;
    double off = s.d / count, variance = s.squares / count - off * off;
    float c = 0.0f;
    if (norm->rms) return (qk_moments){0.0, s.squares / count};
    if (too_far(off, variance) && isfinite((float)off)) {
        c = (float)off;
        s = sums_of_runs(norm->src, x, n_runs, step, n, c);
        off = s.d / count;
        variance = s.squares / count - off * off;
    }
    return (qk_moments){(double)c + off, variance < 0.0 ? 0.0 : variance};
}

static qk_moments moments(const qk_norm *norm, const void *src, size_t n_runs, size_t run_stride, size_t n) {
    const size_t step = run_stride * qkv_bytes(norm->src);
    const uint8_t flip = flip_of(norm->src);
    if (n == 0) return (qk_moments){0.0, 0.0};
    if (!qkv_is_x8(norm->src))
        return moments_of_floats(norm, sums_of_runs(norm->src, src, n_runs, step, n, 0.0f), src, n_runs, step, n);
    sums s = {0.0, 0.0};
    for (size_t r = 0; r < n_runs; r++) {
        const sums run = sums_of_bytes((const uint8_t *)src + r * step, n, flip);
        s.d += run.d;
        s.squares += run.squares;
    }
    return moments_of_bytes(norm, s, (double)n_runs * (double)n, flip);
}

#endif
