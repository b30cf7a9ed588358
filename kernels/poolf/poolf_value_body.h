/* What a vector of results is made of: loading, joining, ending. Included by poolf_body.h alone. */
#ifndef QK_POOLF_VALUE_BODY_H
#define QK_POOLF_VALUE_BODY_H

#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/vec.h"

#include <math.h>

/* Constants where they are used. */
typedef struct how {
    qdq_dtype src, dst;
    bool is_max;
} how;

/* A maximum of BF16 that stays BF16 is taken on keys: 16-bit integers in the order of the values, NaNs below all of them. */
QK_INLINE bool is_keys(how h) {
    return h.is_max && h.src == QDQ_DTYPE_BF16 && h.dst == QDQ_DTYPE_BF16;
}
QK_INLINE size_t lanes_of(how h) {
    return is_keys(h) ? 2 * QKV_LANES : QKV_LANES;
}
/* Bytes of a value that is being joined. */
QK_INLINE size_t value_bytes(how h) {
    return is_keys(h) ? 2 : 4;
}

/* key = (x, its lower 15 bits flipped where it is negative) + KEY_SHIFT, which takes positive NaNs round to where negative ones are. */
enum { KEY_SHIFT = 0x7f, KEY_NONE = -0x7f81 + KEY_SHIFT };

#if defined(__AVX512F__)
typedef __m512i keys;
QK_INLINE keys keys_load(const void *p, size_t n) {
    return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1u), p);
}
QK_INLINE void keys_store(void *p, keys x, size_t n) {
    if (n >= 32)
        _mm512_storeu_si512(p, x);
    else
        _mm512_mask_storeu_epi16(p, (__mmask32)((1u << n) - 1u), x);
}
QK_INLINE keys flipped(keys x) { /* its own inverse */
    return _mm512_ternarylogic_epi32(x, _mm512_srai_epi16(x, 15), _mm512_set1_epi16(0x7fff), 0x78);
}
QK_INLINE qkv key_of(keys x) {
    return _mm512_castsi512_ps(_mm512_add_epi16(flipped(x), _mm512_set1_epi16(KEY_SHIFT)));
}
QK_INLINE keys of_key(qkv k) {
    return flipped(_mm512_sub_epi16(_mm512_castps_si512(k), _mm512_set1_epi16(KEY_SHIFT)));
}
QK_INLINE qkv key_max(qkv a, qkv b) {
    return _mm512_castsi512_ps(_mm512_max_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
QK_INLINE qkv key_none(void) {
    return _mm512_castsi512_ps(_mm512_set1_epi16(KEY_NONE));
}
#else
typedef __m256i keys;
QK_INLINE keys keys_load(const void *p, size_t n) {
    if (n >= 16) return _mm256_loadu_si256((const __m256i *)p);
    uint16_t room[16] = {0};
    memcpy(room, p, 2 * n);
    return _mm256_loadu_si256((const __m256i *)room);
}
QK_INLINE void keys_store(void *p, keys x, size_t n) {
    uint16_t room[16];
    _mm256_storeu_si256(n >= 16 ? (__m256i *)p : (__m256i *)room, x);
    if (n < 16) memcpy(p, room, 2 * n);
}
QK_INLINE keys flipped(keys x) {
    return _mm256_xor_si256(x, _mm256_srli_epi16(_mm256_srai_epi16(x, 15), 1));
}
QK_INLINE qkv key_of(keys x) {
    return _mm256_castsi256_ps(_mm256_add_epi16(flipped(x), _mm256_set1_epi16(KEY_SHIFT)));
}
QK_INLINE keys of_key(qkv k) {
    return flipped(_mm256_sub_epi16(_mm256_castps_si256(k), _mm256_set1_epi16(KEY_SHIFT)));
}
QK_INLINE qkv key_max(qkv a, qkv b) {
    return _mm256_castsi256_ps(_mm256_max_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
QK_INLINE qkv key_none(void) {
    return _mm256_castsi256_ps(_mm256_set1_epi16(KEY_NONE));
}
#endif

QK_INLINE qkv join(how h, qkv x, qkv acc) {
    return is_keys(h) ? key_max(x, acc) : h.is_max ? qkv_max(x, acc) : qkv_add(acc, x);
}
QK_INLINE qkv none_of(how h) {
    /* -0 takes on what is added to it, a -0, too */
    return is_keys(h) ? key_none() : qkv_set(h.is_max ? -INFINITY : -0.0f);
}
/* Of n lanes, or of all. */
QK_INLINE qkv source(how h, const char *p, size_t n) {
    if (is_keys(h)) return key_of(keys_load(p, n));
    return n >= QKV_LANES ? qkv_load(h.src, p) : qkv_load_n(h.src, p, n);
}

/* Up to four vectors, of which the first `m` are meant. */
typedef struct vectors {
    qkv v[4];
} vectors;

/* The end of a sum. */
typedef struct ending {
    qkv divisor, inverse;
    bool is_power, is_small; /* a power of two: a product does as well; below 2^16 */
} ending;

QK_INLINE ending ending_of(how h, const qk_poolf_line *l, const qk_poolf_run *r) {
    const float d = h.is_max || l->counted == 0 ? 1.0f : (float)(l->counted * r->counted);
    uint32_t bits;
    memcpy(&bits, &d, sizeof bits);
    return (ending){qkv_set(d), qkv_set(1.0f / d), (bits & 0x7fffff) == 0 && d <= 0x1p60f, d < 65536.0f};
}

#if defined(__AVX512F__)
/* Without a division, which takes as long as ten products. For a whole d below 2^16 and r = RN(1 / d),
 *
 *     q0 = RN(a r),  q = RN(q0 + (a - q0 d) r) = RN(a / d)
 *
 * where q0 is a normal number: then the remainder is exact. (That q is rounded right was tried for all 2^23 mantissas of a and all
 * odd d; the sign of a zero is a's.) Where only the upper half of q is wanted, q0 will do, two units from it, unless it is as near
 * to a tie. False where that does not hold. */
QK_INLINE bool quotients(how h, const ending *e, vectors a, int m, vectors *q) {
    enum { BELOW_NORMAL = 0x20, NAN_OR_INFINITE = 0x99 };
    __mmask16 doubt = 0;
    const bool is_half = h.dst == QDQ_DTYPE_BF16;
    QK_FOUR_TIMES(
        k, if (k < m) {
            const qkv x = qkv_mul(a.v[k], e->inverse);
            const __m512i near = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8004));
            const __mmask16 bad = is_half ? _mm512_testn_epi32_mask(near, _mm512_set1_epi32(0xfff8))
                                          : _kor_mask16(_mm512_fpclass_ps_mask(x, BELOW_NORMAL | NAN_OR_INFINITE),
                                                        _mm512_fpclass_ps_mask(a.v[k], BELOW_NORMAL));
            doubt = k == 0 ? bad : _kor_mask16(doubt, bad);
            const qkv more = qkv_fma(qkv_fnma(x, e->divisor, a.v[k]), e->inverse, x);
            q->v[k] = is_half ? x : _mm512_or_ps(more, _mm512_and_ps(a.v[k], qkv_set(-0.0f)));
        });
    return e->is_small && _kortestz_mask16_u8(doubt, doubt);
}
QK_INLINE qkv divide(qkv a, qkv b) {
    return _mm512_div_ps(a, b);
}
#else
QK_INLINE bool quotients(how h, const ending *e, vectors a, int m, vectors *q) {
    (void)h, (void)e, (void)a, (void)m, (void)q;
    return false; /* one of eight lanes takes as long as five products */
}
QK_INLINE qkv divide(qkv a, qkv b) {
    return _mm256_div_ps(a, b);
}
#endif

QK_INLINE vectors ended(how h, const ending *e, vectors a, int m) {
    vectors q = a;
    if (e->is_power)
        QK_FOUR_TIMES(k, if (k < m) q.v[k] = qkv_mul(a.v[k], e->inverse));
    else if (!quotients(h, e, a, m, &q))
        QK_FOUR_TIMES(k, if (k < m) q.v[k] = divide(a.v[k], e->divisor));
    return q;
}

#endif
