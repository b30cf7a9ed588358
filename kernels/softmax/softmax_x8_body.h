/* Lines of bytes. The exponential of one is one of 256 values, k = |top - q| steps below the largest: a product of two or three
 * that permutes read by pieces of k. Results of 8 bits are one of 256 too, for each line; a long line makes a table of them.
 *
 * The sign of a scale, and that of the type, are settled by `flip`: x ^ flip grows with the real value as an unsigned byte, and
 * k is a difference of bytes in either case. */
#ifndef QK_SOFTMAX_X8_H
#define QK_SOFTMAX_X8_H

#include "kernels/simd/wide.h"
#include "kernels/softmax/softmax_exp_body.h"
#include "kernels/softmax/softmax_row.h"

#include <math.h>

enum { X8_WIDTH = 4 * QKV_LANES, X8_TABLE_FROM = 100 };

/* Powers of e^-|scale|: index bits above those that are looked at may be anything. */
typedef struct x8_powers {
    qkv high, low;
#if !defined(__AVX512F__)
    qkv mid;
#endif
} x8_powers;

/* e^(-scale * (step * lane)), the product in two words. */
QK_INLINE qkv x8_powers_of(const exp_table *t, float scale, float step, qkv lane) {
    const qkv k = qkv_mul(lane, qkv_set(-step)), s = qkv_set(scale), d = qkv_mul(k, s);
    const qkv e = exp_of(t, d);
    return qkv_fma(e, qkv_fma(k, s, qkv_sub(qkv_zero(), d)), e);
}

QK_INLINE x8_powers x8_powers_init(float scale) {
    const exp_table t = exp_entries();
    /* beyond 200 a step is nothing; what is no number makes the line none */
    const float s = fabsf(scale) <= 3e38f ? fminf(fabsf(scale), 200.0f) : NAN;
    float lane[QKV_LANES];
    for (int i = 0; i < QKV_LANES; i++)
        lane[i] = (float)i;
    x8_powers p;
    p.low = x8_powers_of(&t, s, 1.0f, qkv_loadu(lane));
#if defined(__AVX512F__)
    p.high = x8_powers_of(&t, s, 16.0f, qkv_loadu(lane));
#else
    p.mid = x8_powers_of(&t, s, 8.0f, qkv_loadu(lane));
    for (int i = 0; i < QKV_LANES; i++) /* two bits: the third is the next byte's */
        lane[i] = (float)(i % 4);
    p.high = x8_powers_of(&t, s, 64.0f, qkv_loadu(lane));
#endif
    return p;
}

/* The two factors of the power that the lowest byte of each lane, shifted down by `by`, asks for. */
#if defined(__AVX512F__)
#define X8_FIRST(p, k, by)  _mm512_permutexvar_ps(_mm512_srli_epi32(k, (by) + 4), (p)->high)
#define X8_SECOND(p, k, by) _mm512_permutexvar_ps(_mm512_srli_epi32(k, by), (p)->low)
#else
#define X8_FIRST(p, k, by)                                                                                             \
    qkv_mul(_mm256_permutevar8x32_ps((p)->high, _mm256_srli_epi32(k, (by) + 6)),                                       \
            _mm256_permutevar8x32_ps((p)->mid, _mm256_srli_epi32(k, (by) + 3)))
#define X8_SECOND(p, k, by) _mm256_permutevar8x32_ps((p)->low, _mm256_srli_epi32(k, by))
#endif

QK_INLINE qkv x8_power(const x8_powers *p, qkw_i k) {
    return qkv_mul(X8_FIRST(p, k, 0), X8_SECOND(p, k, 0));
}

/* m bytes, a lane each. */
QK_INLINE qkw_i x8_load(const uint8_t *x, size_t m) {
#if defined(__AVX512F__)
    if (m < QKV_LANES) return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(qkv_first(m), x));
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x));
#else
    uint8_t room[8] = {0};
    if (m < QKV_LANES) x = memcpy(room, x, m);
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)x));
#endif
}

/* How far below `top` they are: in the lowest byte. */
QK_INLINE qkw_i x8_below(qkw_i x, qkw_i top, bool down) {
    return down ? QKW(sub_epi32)(x, top) : QKW(sub_epi32)(top, x);
}
/* The same as a number of real units: -scale times it. */
QK_INLINE qkv x8_distance(qkw_i below, float scale) {
    return qkv_mul(QKW(cvtepi32_ps)(qkw_and(below, QKW(set1_epi32)(255))), qkv_set(-fabsf(scale)));
}

static uint8_t x8_flip(const qk_softmax *s) {
    return (uint8_t)((s->src == QDQ_DTYPE_S8 ? 0x80 : 0) ^ (s->src_scale < 0.0f ? 0xff : 0));
}

/* Is a rest of m bytes worth a whole register, in parts of every fourth byte? Only where loads and stores take masks. */
QK_INLINE bool x8_rest_is_block(size_t m) {
#if defined(__AVX512F__)
    return m > 2 * QKV_LANES;
#else
    (void)m;
    return false;
#endif
}

/* The first m bytes of a whole register. */
QK_INLINE qkw_i x8_load_block(const uint8_t *x, size_t m) {
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << m) - 1, x);
#else
    (void)m;
    return qkw_load(x);
#endif
}

QK_INLINE void x8_store_block(char *y, qkw_i v, size_t m) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_epi8(y, ((__mmask64)1 << m) - 1, v);
#else
    (void)m;
    qkw_store(y, v);
#endif
}

/* The byte that stands for the largest real value. */
QK_INLINE uint8_t x8_top(const uint8_t *x, size_t n, uint8_t flip) {
    const qkw_i f = QKW(set1_epi8)((char)flip);
    qkw_i t = QKW(set1_epi8)(0);
    size_t i = 0;
    for (; n - i >= X8_WIDTH; i += X8_WIDTH)
        t = QKW(max_epu8)(t, qkw_xor(qkw_load(x + i), f));
    if (i < n) {
#if defined(__AVX512F__)
        const __mmask64 lanes = ((__mmask64)1 << (n - i)) - 1;
        t = _mm512_mask_max_epu8(t, lanes, t, qkw_xor(_mm512_maskz_loadu_epi8(lanes, x + i), f));
#else
        const __m128i f16 = _mm_set1_epi8((char)flip);
        __m128i u = _mm256_castsi256_si128(t);
        uint8_t room[16];
        for (; n - i >= 16; i += 16)
            u = _mm_max_epu8(u, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(x + i)), f16));
        if (i < n && n >= 16) { /* some bytes twice */
            u = _mm_max_epu8(u, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(x + n - 16)), f16));
        } else if (i < n) {
            for (size_t k = 0; k < 16; k++)
                room[k] = (uint8_t)(x[k < n ? k : n - 1] ^ flip);
            u = _mm_max_epu8(u, _mm_loadu_si128((const __m128i *)room));
        }
        t = _mm256_inserti128_si256(t, u, 0);
#endif
    }
#if defined(__AVX512F__)
    const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(t), _mm512_extracti64x4_epi64(t, 1));
#else
    const __m256i half = t;
#endif
    __m128i v = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    v = _mm_xor_si128(v, _mm_set1_epi8(-1)); /* the smallest, then */
    v = _mm_minpos_epu16(_mm_min_epu8(v, _mm_srli_epi16(v, 8)));
    return (uint8_t)(~_mm_cvtsi128_si32(v) ^ flip);
}

QK_INLINE float x8_sum(const x8_powers *p, const uint8_t *x, size_t n, uint8_t top, bool down) {
    const qkw_i tops = QKW(set1_epi8)((char)top);
    qkv sum[4];
    size_t i = 0;
    QK_FOUR_TIMES(j, sum[j] = qkv_zero());
    for (; n - i >= X8_WIDTH; i += X8_WIDTH) {
        const qkw_i v = qkw_load(x + i), k = down ? QKW(sub_epi8)(v, tops) : QKW(sub_epi8)(tops, v);
        QK_FOUR_TIMES(j, sum[j] = qkv_fma(X8_FIRST(p, k, 8 * j), X8_SECOND(p, k, 8 * j), sum[j]));
    }
    if (x8_rest_is_block(n - i)) { /* byte 4 l + j of what is left is lane l of part j */
        const qkw_i v = x8_load_block(x + i, n - i), k = down ? QKW(sub_epi8)(v, tops) : QKW(sub_epi8)(tops, v);
        QK_FOUR_TIMES(j, {
            const qkv e = qkv_mul(X8_FIRST(p, k, 8 * j), X8_SECOND(p, k, 8 * j));
            sum[j] = qkv_add(sum[j], qkv_keep(e, (n - i + 3 - j) / 4, qkv_zero()));
        });
        i = n;
    }
    for (; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const qkv e = x8_power(p, x8_below(x8_load(x + i, m), QKW(set1_epi32)(top), down));
        sum[0] = qkv_add(sum[0], m == QKV_LANES ? e : qkv_keep(e, m, qkv_zero()));
    }
    return qkv_hsum(qkv_add(qkv_add(sum[0], sum[1]), qkv_add(sum[2], sum[3])));
}

/* ---- results, each computed ---- */

/* t * mul + add, where t is a power, or with `log` a distance. */
QK_INLINE void x8_results(const x8_powers *p, qdq_dtype D, const uint8_t *x, char *y, size_t n, uint8_t top, bool down,
                          const float *log_scale, qkv mul, qkv add) {
    const size_t w = QKV_LANES, b = qkv_bytes(D);
    const qkw_i top32 = QKW(set1_epi32)(top);
    size_t i = 0;
#define X8_RESULT(i, m)                                                                                                \
    qkv_fma(log_scale != NULL ? x8_distance(x8_below(x8_load(x + (i), m), top32, down), *log_scale)                    \
                              : x8_power(p, x8_below(x8_load(x + (i), m), top32, down)),                               \
            mul, add)
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = X8_RESULT(i + k * w, w));
        qkv_store4(D, y + i * b, v);
    }
    for (; n - i >= w; i += w)
        qkv_store(D, y + i * b, X8_RESULT(i, w));
    if (i < n) qkv_store_n(D, y + i * b, X8_RESULT(i, n - i), n - i);
#undef X8_RESULT
}

/* Powers to 8 bits, a whole register at a time: four parts of every fourth byte. */
QK_INLINE qkw_i x8_block(const x8_powers *p, qdq_dtype D, qkw_i k, qkv mul, qkv add) {
    qkw_i q[4];
    QK_FOUR_TIMES(j, q[j] = qkv_int(qkv_fma(qkv_mul(X8_FIRST(p, k, 8 * j), X8_SECOND(p, k, 8 * j)), mul, add)));
    const qkw_i a = QKW(packs_epi32)(q[0], q[1]), b = QKW(packs_epi32)(q[2], q[3]);
    static const uint8_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    return QKW(shuffle_epi8)(D == QDQ_DTYPE_S8 ? QKW(packs_epi16)(a, b) : QKW(packus_epi16)(a, b),
                             qkw_four_times(order));
}

QK_INLINE void x8_blocks(const x8_powers *p, qdq_dtype D, const uint8_t *x, char *y, size_t n, uint8_t top, bool down,
                         qkv mul, qkv add) {
    const qkw_i tops = QKW(set1_epi8)((char)top);
    size_t i = 0;
    for (; n - i >= X8_WIDTH; i += X8_WIDTH) {
        const qkw_i v = qkw_load(x + i);
        qkw_store(y + i, x8_block(p, D, down ? QKW(sub_epi8)(v, tops) : QKW(sub_epi8)(tops, v), mul, add));
    }
    if (x8_rest_is_block(n - i)) {
        const qkw_i v = x8_load_block(x + i, n - i), k = down ? QKW(sub_epi8)(v, tops) : QKW(sub_epi8)(tops, v);
        x8_store_block(y + i, x8_block(p, D, k, mul, add), n - i);
        return;
    }
    x8_results(p, D, x + i, y + i, n - i, top, down, NULL, mul, add);
}

/* ---- results of 8 bits from a table ---- */

/* The results of a line, largest power first: `count` of them, the last of which stands for all beyond it. */
typedef struct x8_table {
    uint8_t bytes[256];
    size_t count;
} x8_table;

QK_INLINE void x8_all_powers(float powers[256], const x8_powers *p) {
    uint8_t k[256];
    for (int i = 0; i < 256; i++)
        k[i] = (uint8_t)i;
    for (size_t i = 0; i < 256; i += QKV_LANES)
        qkv_storeu(powers + i, x8_power(p, x8_load(k + i, QKV_LANES)));
}

/* `whole`: a power that is less than half a result counts as 0. `small`: results fit s32. */
QK_INLINE void x8_table_fill(x8_table *t, const float *powers, qdq_dtype D, float mul, float add, bool whole,
                             bool small) {
    const qkv m = qkv_set(mul), a = qkv_set(add);
    t->count = 256;
    for (size_t c = 32; c < 256 && whole; c *= 2)
        if (powers[c - 1] * fabsf(mul) < 0.49f) {
            t->count = c;
            break;
        }
    for (size_t i = 0; i < t->count; i += 4 * QKV_LANES) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = qkv_fma(qkv_loadu(powers + i + k * QKV_LANES), m, a));
        if (small)
            qkv_store4_small(D, t->bytes + i, v);
        else
            qkv_store4(D, t->bytes + i, v);
    }
}

#if defined(__AVX512VBMI__)

QK_INLINE void x8_look_up_of(const x8_table *t, size_t count, const uint8_t *x, uint8_t *y, size_t n, uint8_t top,
                             bool down) {
    const __m512i tops = _mm512_set1_epi8((char)top), last = _mm512_set1_epi8((char)(count - 1));
    __m512i entries[4];
    QK_FOUR_TIMES(k, entries[k] = k * 64 < count ? _mm512_loadu_si512(t->bytes + 64 * k) : last);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 lanes = n - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        const __m512i v = _mm512_maskz_loadu_epi8(lanes, x + i);
        __m512i k = down ? _mm512_sub_epi8(v, tops) : _mm512_sub_epi8(tops, v);
        if (count < 256) k = _mm512_min_epu8(k, last);
        __m512i q =
            count <= 64 ? _mm512_permutexvar_epi8(k, entries[0]) : _mm512_permutex2var_epi8(entries[0], k, entries[1]);
        if (count == 256)
            q = _mm512_mask_mov_epi8(q, _mm512_movepi8_mask(k), _mm512_permutex2var_epi8(entries[2], k, entries[3]));
        _mm512_mask_storeu_epi8(y + i, lanes, q);
    }
}

QK_INLINE void x8_look_up(const x8_table *t, const uint8_t *x, uint8_t *y, size_t n, uint8_t top, bool down) {
    if (t->count <= 64)
        x8_look_up_of(t, 64, x, y, n, top, down);
    else if (t->count == 128)
        x8_look_up_of(t, 128, x, y, n, top, down);
    else
        x8_look_up_of(t, 256, x, y, n, top, down);
}

#else

/* As kernels/lut/lut_body.h has it: a byte shuffle gives 0 where the index has its top bit set, so that with rows of sixteen that
 * hold what changes from one to the next the xor of all is the entry. */
QK_INLINE qkw_i x8_rows(const qkw_i *rows, size_t n_rows, qkw_i k) {
    const qkw_i sixteen = QKW(set1_epi8)(16);
    qkw_i q = QKW(shuffle_epi8)(rows[0], k);
    for (size_t r = 1; r < n_rows; r++) {
        k = QKW(subs_epi8)(k, sixteen);
        q = qkw_xor(q, QKW(shuffle_epi8)(rows[r], k));
    }
    return q;
}

QK_INLINE void x8_look_up_of(const x8_table *t, size_t count, const uint8_t *x, uint8_t *y, size_t n, uint8_t top,
                             bool down) {
    const qkw_i tops = QKW(set1_epi8)((char)top), last = QKW(set1_epi8)((char)(count - 1));
    qkw_i rows[16];
    for (size_t r = 0; r < count / 16; r++) {
        const qkw_i row = qkw_four_times(t->bytes + 16 * r);
        rows[r] = r % 8 == 0 ? row : qkw_xor(row, qkw_four_times(t->bytes + 16 * (r - 1)));
    }
    size_t i = 0;
    for (; n - i >= X8_WIDTH; i += X8_WIDTH) {
        const qkw_i v = qkw_load(x + i);
        qkw_i k = down ? QKW(sub_epi8)(v, tops) : QKW(sub_epi8)(tops, v);
        if (count < 256) k = QKW(min_epu8)(k, last);
        qkw_i q = x8_rows(rows, count < 128 ? count / 16 : 8, k);
        if (count == 256) q = qkw_xor(q, x8_rows(rows + 8, 8, qkw_xor(k, QKW(set1_epi8)(-128))));
        qkw_store(y + i, q);
    }
    for (; i < n; i++) {
        const uint8_t k = (uint8_t)(down ? x[i] - top : top - x[i]);
        y[i] = t->bytes[k < count ? k : count - 1];
    }
}

QK_INLINE void x8_look_up(const x8_table *t, const uint8_t *x, uint8_t *y, size_t n, uint8_t top, bool down) {
    if (t->count <= 32)
        x8_look_up_of(t, 32, x, y, n, top, down);
    else if (t->count == 64)
        x8_look_up_of(t, 64, x, y, n, top, down);
    else if (t->count == 128)
        x8_look_up_of(t, 128, x, y, n, top, down);
    else
        x8_look_up_of(t, 256, x, y, n, top, down);
}

#endif

#endif
