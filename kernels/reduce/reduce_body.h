/* The functions of a vector level: included once by reduce_<level>.c with QK_REDUCE_LEVEL, its table's name. */
#include "kernels/reduce/reduce_row.h"
#include "kernels/simd/sums8.h"
#include "kernels/simd/vec.h"

#include <math.h>
#include <string.h>

/* Elements of a run, and rows of columns, that are combined in f32. Of 8 bits all sums below are integers under 2^24. */
enum { BLOCK = 4096, ROWS = 64 };

/* The accumulator with x; `nan` collects NaNs, which maxima lose. */
QK_INLINE qkv with(qk_reduce_op op, qkv acc, qkv x) {
    switch (op) {
    case QK_REDUCE_ABS: return qkv_add(acc, qkv_abs(x));
    case QK_REDUCE_SQUARES: return qkv_fma(x, x, acc);
    case QK_REDUCE_MAX: return qkv_max(x, acc);
    case QK_REDUCE_MIN: return qkv_min(x, acc);
    case QK_REDUCE_SUM:
    case QK_REDUCE_PROD: return qkv_add(acc, x);
    }
    return acc;
}

QK_INLINE bool is_sum(qk_reduce_op op) {
    return op <= QK_REDUCE_SQUARES;
}

QK_INLINE double joined(qk_reduce_op op, double a, double b) {
    if (is_sum(op)) return a + b;
    return (op == QK_REDUCE_MAX ? b > a : b < a) || isnan(b) ? b : a;
}

/* NaNs seen so far, which maxima lose. */
#if defined(__AVX512F__)
typedef __mmask16 nans;
QK_INLINE nans no_nans(void) {
    return 0;
}
QK_INLINE nans with_nans(nans seen, qkv a, qkv b) {
    return (nans)(seen | _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q));
}
QK_INLINE bool any_nans(nans seen) {
    return seen != 0;
}
#else
typedef __m256 nans;
QK_INLINE nans no_nans(void) {
    return _mm256_setzero_ps();
}
QK_INLINE nans with_nans(nans seen, qkv a, qkv b) {
    return _mm256_or_ps(seen, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
QK_INLINE bool any_nans(nans seen) {
    return _mm256_movemask_ps(seen) != 0;
}
#endif

QK_INLINE double piece(qk_reduce_op op, qdq_dtype S, const char *x, size_t n, qkv zp) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const bool sees_nans = !is_sum(op) && !qkv_is_x8(S);
    const qkv none = qkv_set(op == QK_REDUCE_MAX ? -INFINITY : op == QK_REDUCE_MIN ? INFINITY : 0.0f);
    qkv acc[4];
    nans seen = no_nans();
    size_t i = 0;
    QK_FOUR_TIMES(k, acc[k] = none);
#define TERM(load) (qkv_is_x8(S) ? qkv_sub(load, zp) : (load))
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = TERM(qkv_load(S, x + (i + k * w) * b)));
        QK_FOUR_TIMES(k, acc[k] = with(op, acc[k], v[k]));
        if (sees_nans) seen = with_nans(with_nans(seen, v[0], v[1]), v[2], v[3]);
    }
    for (; i < n; i += w) {
        const size_t m = n - i < w ? n - i : w;
        qkv v = TERM(m == w ? qkv_load(S, x + i * b) : qkv_load_n(S, x + i * b, m));
        if (m < w) v = qkv_keep(v, m, none);
        acc[0] = with(op, acc[0], v);
        if (sees_nans) seen = with_nans(seen, v, v);
        if (m < w) break;
    }
#undef TERM
    if (op == QK_REDUCE_MAX || op == QK_REDUCE_MIN) {
        if (any_nans(seen)) return (double)NAN;
        const qkv a = with(op, acc[0], acc[1]), c = with(op, acc[2], acc[3]);
        return (double)(op == QK_REDUCE_MAX ? qkv_hmax(with(op, a, c)) : qkv_hmin(with(op, a, c)));
    }
    return (double)qkv_hsum(qkv_add(qkv_add(acc[0], acc[1]), qkv_add(acc[2], acc[3])));
}

/* ---- vectors of bytes ---- */

#if defined(__AVX512F__)
enum { BYTES = 64 };
#define B(name) _mm512_##name
typedef __m512i bytes;
#define BYTES_AT(p)    _mm512_loadu_si512(p)
#define BYTES_TO(p, v) _mm512_storeu_si512(p, v)
#define BYTES_XOR      _mm512_xor_si512
#define BYTES_AND      _mm512_and_si512
#else
enum { BYTES = 32 };
#define B(name)        _mm256_##name
typedef __m256i bytes;
#define BYTES_AT(p)    _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define BYTES_TO(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define BYTES_XOR      _mm256_xor_si256
#define BYTES_AND      _mm256_and_si256
#endif

/* ---- products, in f64 at once: their range is not that of f32 ---- */

#if defined(__AVX512F__)
#define D(name) _mm512_##name
typedef __m512d doubles;
QK_INLINE doubles low_doubles(qkv v) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}
QK_INLINE doubles high_doubles(qkv v) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}
#else
#define D(name) _mm256_##name
typedef __m256d doubles;
QK_INLINE doubles low_doubles(qkv v) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
QK_INLINE doubles high_doubles(qkv v) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}
#endif
enum { DOUBLES = QKV_LANES / 2 };

/* Of two factors; then the product of eight is in f32 neither too small nor too large. */
#define LEAST 0x1p-30f
#define MOST  0x1p30f

/* Of |products|. A NaN may go unseen; the product of all is one all the same. */
typedef struct range {
    qkv least, most;
} range;

#if defined(__AVX512F__)
/* Of magnitudes; NaNs are left out. */
QK_INLINE qkv least_size(qkv least, qkv v) {
    return _mm512_range_ps(v, least, 0xa);
}
QK_INLINE qkv most_size(qkv most, qkv v) {
    return _mm512_range_ps(v, most, 0xb);
}
QK_INLINE bool all_within(range r) {
    return (_mm512_cmp_ps_mask(r.least, qkv_set(LEAST), _CMP_GE_OQ) &
            _mm512_cmp_ps_mask(r.most, qkv_set(MOST), _CMP_LE_OQ)) == 0xffff;
}
QK_INLINE bool any_zero(qkv v) {
    return _mm512_cmp_ps_mask(v, qkv_set(0.0f), _CMP_EQ_OQ) != 0;
}
QK_INLINE qkv signs_with(qkv signs, qkv v) {
    return _mm512_xor_ps(signs, v);
}
QK_INLINE qkv signed_by(qkv v, qkv signs) {
    return _mm512_or_ps(v, _mm512_and_ps(signs, qkv_set(-0.0f)));
}
#else
QK_INLINE qkv least_size(qkv least, qkv v) {
    return _mm256_min_ps(qkv_abs(v), least);
}
QK_INLINE qkv most_size(qkv most, qkv v) {
    return _mm256_max_ps(qkv_abs(v), most);
}
QK_INLINE bool all_within(range r) {
    return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(r.least, qkv_set(LEAST), _CMP_GE_OQ),
                                            _mm256_cmp_ps(r.most, qkv_set(MOST), _CMP_LE_OQ))) == 0xff;
}
QK_INLINE bool any_zero(qkv v) {
    return _mm256_movemask_ps(_mm256_cmp_ps(v, qkv_set(0.0f), _CMP_EQ_OQ)) != 0;
}
QK_INLINE qkv signs_with(qkv signs, qkv v) {
    return _mm256_xor_ps(signs, v);
}
QK_INLINE qkv signed_by(qkv v, qkv signs) {
    return _mm256_or_ps(v, _mm256_and_ps(signs, qkv_set(-0.0f)));
}
#endif

/* Lanes whose product is that of all so far. */
typedef struct halves {
    doubles low, high;
} halves;

QK_INLINE halves times(halves h, qkv v) {
    return (halves){D(mul_pd)(h.low, low_doubles(v)), D(mul_pd)(h.high, high_doubles(v))};
}

QK_INLINE qkv factor_at(qdq_dtype S, const char *x, size_t m, qkv zp) {
    const qkv v = m == QKV_LANES ? qkv_load(S, x) : qkv_load_n(S, x, m);
    return qkv_is_x8(S) ? qkv_sub(v, zp) : v;
}

/* Factors together, and those whose range is looked at once. */
enum { EIGHT = 8 * QKV_LANES, FACTORS = 2 * EIGHT };

/* Of n, a multiple of EIGHT. False: *all is as before, for products are out of range. */
QK_INLINE bool by_eights(qdq_dtype S, const char *x, size_t n, halves *all) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    range r = {qkv_set(1.0f), qkv_set(1.0f)};
    halves h = *all;
    for (size_t i = 0; i < n; i += EIGHT) {
        const char *at = x + i * b;
        qkv p[4];
        QK_FOUR_TIMES(k, p[k] = qkv_mul(qkv_load(S, at + 2 * k * w * b), qkv_load(S, at + (2 * k + 1) * w * b)));
        QK_FOUR_TIMES(k, r = ((range){least_size(r.least, p[k]), most_size(r.most, p[k])}));
        h = times(h, qkv_mul(qkv_mul(p[0], p[1]), qkv_mul(p[2], p[3])));
    }
    if (!all_within(r)) return false;
    *all = h;
    return true;
}

/* Is one of n a 0, a multiple of EIGHT? *product is that of all, were there a 0: 0, or NaN because of an infinity or a NaN. */
QK_INLINE bool has_zero(qdq_dtype S, const char *x, size_t n, qkv *product) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv none = qkv_set(0.0f);
    qkv least[4], zeros[4], signs[4];
    QK_FOUR_TIMES(k, least[k] = qkv_set(INFINITY));
    QK_FOUR_TIMES(k, zeros[k] = signs[k] = none);
    for (size_t i = 0; i < n; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = qkv_load(S, x + (i + k * w) * b));
        QK_FOUR_TIMES(k, least[k] = least_size(least[k], v[k]));
        QK_FOUR_TIMES(k, zeros[k] = qkv_fma(v[k], none, zeros[k]));
        QK_FOUR_TIMES(k, signs[k] = signs_with(signs[k], v[k]));
    }
    *product = signed_by(qkv_add(qkv_add(zeros[0], zeros[1]), qkv_add(zeros[2], zeros[3])),
                         signs_with(signs_with(signs[0], signs[1]), signs_with(signs[2], signs[3])));
    return any_zero(qkv_min(qkv_min(least[0], least[1]), qkv_min(least[2], least[3])));
}

/* Of n, a multiple of EIGHT. */
QK_INLINE halves product_of_floats(qdq_dtype S, const char *x, size_t n) {
    const doubles one = D(set1_pd)(1.0);
    const size_t b = qkv_bytes(S);
    halves all = {one, one};
    for (size_t i = 0, m; i < n; i += m) {
        qkv product;
        m = n - i < FACTORS ? n - i : FACTORS;
        if (by_eights(S, x + i * b, m, &all)) continue;
        if (has_zero(S, x + i * b, m, &product)) {
            all = times(all, product);
            if (i + m == n) return all;
            (void)has_zero(S, x + (i + m) * b, n - i - m, &product);
            return times(all, product);
        }
        for (size_t k = 0; k < m; k += QKV_LANES)
            all = times(all, qkv_load(S, x + (i + k) * b));
    }
    return all;
}

enum { ZP_MOST = 1024 };

/* The bytes of a vector less zp, two and two multiplied. */
QK_INLINE void pairs_of_bytes(const char *x, bytes flip, bytes zp, qkv out[2]) {
    const bytes v = BYTES_XOR(BYTES_AT(x), flip), first = B(set1_epi32)(0xffff);
    const bytes even = B(sub_epi16)(BYTES_AND(v, B(set1_epi16)(0xff)), zp), odd = B(sub_epi16)(B(srli_epi16)(v, 8), zp);
    const bytes low = BYTES_AND(odd, first);
    out[0] = B(cvtepi32_ps)(B(madd_epi16)(even, low));
    out[1] = B(cvtepi32_ps)(B(madd_epi16)(even, BYTES_XOR(odd, low)));
}

/* Of n, a multiple of EIGHT: in f32 the product of eight integers is never out of range; the scale follows. */
QK_INLINE halves product_of_bytes(const qk_reduce *reduce, const char *x, size_t n) {
    const bool is_signed = reduce->src == QDQ_DTYPE_S8;
    const int zp_is = n == 0 ? 0 : (int)reduce->zp + (is_signed ? 128 : 0);
    const bytes flip = B(set1_epi8)((char)(is_signed ? -128 : 0)), zp = B(set1_epi16)((short)zp_is); /* of 0 ... 255 */
    const double two = (double)reduce->scale * (double)reduce->scale, eight = (two * two) * (two * two);
    const doubles scale = D(set1_pd)(eight), one = D(set1_pd)(1.0);
    halves all = {one, one};
    for (size_t i = 0; i < n; i += EIGHT) {
        qkv p[4];
        pairs_of_bytes(x + i, flip, zp, p);
        pairs_of_bytes(x + i + BYTES, flip, zp, p + 2);
        const qkv q = qkv_mul(qkv_mul(p[0], p[1]), qkv_mul(p[2], p[3]));
        all.low = D(mul_pd)(all.low, D(mul_pd)(low_doubles(q), scale));
        all.high = D(mul_pd)(all.high, D(mul_pd)(high_doubles(q), scale));
    }
    return all;
}

QK_INLINE double product_of(qdq_dtype S, const qk_reduce *reduce, const char *x, size_t n) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv zp = qkv_set(reduce->zp), scale = qkv_set(reduce->scale);
    double lanes[DOUBLES], product = 1.0;
    size_t i = qkv_is_x8(S) && fabsf(reduce->zp) > ZP_MOST ? 0 : n / EIGHT * EIGHT;
    halves all = qkv_is_x8(S) ? product_of_bytes(reduce, x, i) : product_of_floats(S, x, i);
    for (; i < n; i += w) {
        const size_t m = n - i < w ? n - i : w;
        qkv v = factor_at(S, x + i * b, m, zp);
        if (qkv_is_x8(S)) v = qkv_mul(v, scale);
        all = times(all, qkv_keep(v, m, qkv_set(1.0f)));
        if (m < w) break;
    }
    D(storeu_pd)(lanes, D(mul_pd)(all.low, all.high));
    for (size_t k = 0; k < DOUBLES; k += 4)
        product *= (lanes[k] * lanes[k + 1]) * (lanes[k + 2] * lanes[k + 3]);
    return product;
}

/* A vector of columns. */
QK_INLINE void product_columns(qdq_dtype S, const qk_reduce *reduce, const char *x, size_t rows, size_t stride,
                               size_t m, double *acc) {
    const qkv zp = qkv_set(reduce->zp), scale = qkv_set(reduce->scale);
    double room[QKV_LANES] = {0};
    memcpy(room, acc, m * sizeof *acc);
    doubles low = D(loadu_pd)(room), high = D(loadu_pd)(room + DOUBLES);
    for (size_t r = 0; r < rows; r++, x += stride * qkv_bytes(S)) {
        qkv v = factor_at(S, x, m, zp);
        if (qkv_is_x8(S)) v = qkv_mul(v, scale);
        low = D(mul_pd)(low, low_doubles(v));
        high = D(mul_pd)(high, high_doubles(v));
    }
    D(storeu_pd)(room, low);
    D(storeu_pd)(room + DOUBLES, high);
    memcpy(acc, room, m * sizeof *acc);
}
#undef D

/* ---- bytes as they are ---- */

/* The extreme byte of n, which are at least one, as a number. */
QK_INLINE int extreme_of(const char *x, size_t n, bool is_max, bool is_signed) {
    const bytes flip = B(set1_epi8)((char)(is_signed ? -128 : 0)); /* then all are 0 ... 255 */
    uint8_t lanes[BYTES], best = is_max ? 0 : 255;
    size_t i = 0;
    if (n >= BYTES) {
        bytes acc[2] = {BYTES_XOR(BYTES_AT(x + n - BYTES), flip), BYTES_XOR(BYTES_AT(x), flip)}; /* may overlap */
#define EXTREME(a, v) a = is_max ? B(max_epu8)(a, BYTES_XOR(v, flip)) : B(min_epu8)(a, BYTES_XOR(v, flip))
        for (; n - i >= 2 * BYTES; i += 2 * BYTES) {
            EXTREME(acc[0], BYTES_AT(x + i));
            EXTREME(acc[1], BYTES_AT(x + i + BYTES));
        }
        if (n - i >= BYTES) EXTREME(acc[1], BYTES_AT(x + i));
#undef EXTREME
        BYTES_TO(lanes, is_max ? B(max_epu8)(acc[0], acc[1]) : B(min_epu8)(acc[0], acc[1]));
        __m128i v[BYTES / 16];
        memcpy(v, lanes, sizeof lanes);
        for (size_t k = 1; k < BYTES / 16; k++)
            v[0] = is_max ? _mm_max_epu8(v[0], v[k]) : _mm_min_epu8(v[0], v[k]);
        /* the least of words, of which the lower halves are the lesser of two bytes */
        if (is_max) v[0] = _mm_xor_si128(v[0], _mm_set1_epi8(-1));
        v[0] = _mm_min_epu8(v[0], _mm_srli_epi16(v[0], 8));
        best = (uint8_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_and_si128(v[0], _mm_set1_epi16(0xff))));
        if (is_max) best = (uint8_t)~best;
    } else {
        for (; i < n; i++) {
            const uint8_t v = (uint8_t)x[i] ^ (is_signed ? 0x80 : 0);
            best = is_max ? (v > best ? v : best) : (v < best ? v : best);
        }
    }
    return (int)best - (is_signed ? 128 : 0);
}

QK_INLINE int64_t sum_of_bytes(const char *x, size_t n, bool is_signed) {
    const bytes flip = B(set1_epi8)((char)(is_signed ? -128 : 0)), zero = B(set1_epi8)(0);
    bytes acc[2] = {zero, zero};
    int64_t lanes[BYTES / 8], sum = 0;
    size_t i = 0;
    for (; n - i >= 2 * BYTES; i += 2 * BYTES) {
        acc[0] = B(add_epi64)(acc[0], B(sad_epu8)(BYTES_XOR(BYTES_AT(x + i), flip), zero));
        acc[1] = B(add_epi64)(acc[1], B(sad_epu8)(BYTES_XOR(BYTES_AT(x + i + BYTES), flip), zero));
    }
    if (n - i >= BYTES) {
        acc[0] = B(add_epi64)(acc[0], B(sad_epu8)(BYTES_XOR(BYTES_AT(x + i), flip), zero));
        i += BYTES;
    }
    BYTES_TO(lanes, B(add_epi64)(acc[0], acc[1]));
    for (size_t k = 0; k < BYTES / 8; k++)
        sum += lanes[k];
    if (is_signed) sum -= 128 * (int64_t)i;
    for (; i < n; i++)
        sum += is_signed ? (int8_t)x[i] : (uint8_t)x[i];
    return sum;
}
#undef B

#define BY_OP(op_, O, ...)                                                                                             \
    switch (op_) {                                                                                                     \
    case QK_REDUCE_SUM: {                                                                                              \
        enum { O = QK_REDUCE_SUM };                                                                                    \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case QK_REDUCE_ABS: {                                                                                              \
        enum { O = QK_REDUCE_ABS };                                                                                    \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case QK_REDUCE_SQUARES: {                                                                                          \
        enum { O = QK_REDUCE_SQUARES };                                                                                \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case QK_REDUCE_MAX: {                                                                                              \
        enum { O = QK_REDUCE_MAX };                                                                                    \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case QK_REDUCE_MIN: {                                                                                              \
        enum { O = QK_REDUCE_MIN };                                                                                    \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case QK_REDUCE_PROD: break;                                                                                        \
    }

static double run_of_bytes(const qk_reduce *reduce, const char *x, size_t n) {
    const bool is_signed = reduce->src == QDQ_DTYPE_S8;
    const double zp = (double)reduce->zp;
    if (reduce->op == QK_REDUCE_SUM)
        return (double)(is_signed ? sum_of_bytes(x, n, true) : sum_of_bytes(x, n, false)) - zp * (double)n;
    if (reduce->op == QK_REDUCE_SQUARES) {
        const qks_sums s = is_signed ? qk_sums8(x, n, true) : qk_sums8(x, n, false);
        return (double)s.squares - 2.0 * zp * (double)s.sum + zp * zp * (double)n;
    }
    if (reduce->op == QK_REDUCE_MAX)
        return (double)(is_signed ? extreme_of(x, n, true, true) : extreme_of(x, n, true, false)) - zp;
    return (double)(is_signed ? extreme_of(x, n, false, true) : extreme_of(x, n, false, false)) - zp;
}

static double run(const qk_reduce *reduce, const void *src, size_t n) {
    const qk_reduce_op op = reduce->op;
    const char *x = src;
    double acc = qk_reduce_none(op);
    if (n == 0) return acc;
    if (op == QK_REDUCE_PROD) {
        QKV_BY_TYPE(reduce->src, S, acc = product_of((qdq_dtype)S, reduce, x, n));
        return acc;
    }
    if (qkv_is_x8(reduce->src) && op != QK_REDUCE_ABS) return run_of_bytes(reduce, x, n);
    const size_t b = qkv_bytes(reduce->src);
    const qkv zp = qkv_set(qkv_is_x8(reduce->src) ? reduce->zp : 0.0f);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        double one = 0.0;
        BY_OP(op, O, QKV_BY_TYPE(reduce->src, S, one = piece((qk_reduce_op)O, (qdq_dtype)S, x + i * b, m, zp)));
        acc = qk_reduce_join(op, acc, one);
    }
    return acc;
}

QK_INLINE void short_rows(qk_reduce_op op, qdq_dtype S, const char *x, size_t n_rows, size_t n, size_t stride, qkv zp,
                          double *out) {
    for (size_t r = 0; r < n_rows; r++, x += stride * qkv_bytes(S))
        out[r] = piece(op, S, x, n, zp);
}

static void rows(const qk_reduce *reduce, const void *src, size_t n_rows, size_t n, size_t stride, double *out) {
    const size_t b = qkv_bytes(reduce->src);
    const bool of_bytes = qkv_is_x8(reduce->src);
    if (n == 0 || n > BLOCK || reduce->op == QK_REDUCE_PROD || of_bytes) {
        for (size_t r = 0; r < n_rows; r++)
            out[r] = run(reduce, (const char *)src + r * stride * b, n);
        return;
    }
    const qkv zp = qkv_zero();
    BY_OP(reduce->op, O,
          QKV_BY_TYPE(reduce->src, S, short_rows((qk_reduce_op)O, (qdq_dtype)S, src, n_rows, n, stride, zp, out)));
}

/* A vector of columns over at most ROWS rows. */
QK_INLINE void columns(qk_reduce_op op, qdq_dtype S, const char *x, size_t rows, size_t stride, size_t m, qkv zp,
                       double *acc) {
    const bool whole = m == QKV_LANES;
    qkv sum = qkv_set(op == QK_REDUCE_MAX ? -INFINITY : op == QK_REDUCE_MIN ? INFINITY : 0.0f), nan = qkv_zero();
    float lanes[QKV_LANES];
    for (size_t r = 0; r < rows; r++, x += stride * qkv_bytes(S)) {
        qkv v = whole ? qkv_load(S, x) : qkv_load_n(S, x, m);
        if (qkv_is_x8(S)) v = qkv_sub(v, zp);
        sum = with(op, sum, v);
        if (!is_sum(op) && !qkv_is_x8(S)) nan = qkv_nan(nan, v);
    }
    if (!is_sum(op) && !qkv_is_x8(S)) sum = qkv_nan(sum, nan);
    qkv_storeu(lanes, sum);
    for (size_t k = 0; k < m; k++)
        acc[k] = joined(op, acc[k], (double)lanes[k]);
}

/* Four vectors of columns: more of a row is read at a time. */
QK_INLINE void four_columns(qk_reduce_op op, qdq_dtype S, const char *x, size_t n_rows, size_t stride, qkv zp,
                            double *acc) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const bool sees_nans = !is_sum(op) && !qkv_is_x8(S);
    const qkv none = qkv_set(op == QK_REDUCE_MAX ? -INFINITY : op == QK_REDUCE_MIN ? INFINITY : 0.0f);
    qkv sum[4], nan[4];
    float lanes[4 * QKV_LANES];
    QK_FOUR_TIMES(k, sum[k] = none; nan[k] = qkv_zero());
    for (size_t r = 0; r < n_rows; r++, x += stride * b)
        QK_FOUR_TIMES(k, {
            qkv v = qkv_load(S, x + k * w * b);
            if (qkv_is_x8(S)) v = qkv_sub(v, zp);
            sum[k] = with(op, sum[k], v);
            if (sees_nans) nan[k] = qkv_nan(nan[k], v);
        });
    QK_FOUR_TIMES(k, if (sees_nans) sum[k] = qkv_nan(sum[k], nan[k]); qkv_storeu(lanes + k * w, sum[k]));
    for (size_t k = 0; k < 4 * w; k++)
        acc[k] = joined(op, acc[k], (double)lanes[k]);
}

static void cols(const qk_reduce *reduce, const void *src, size_t n_rows, size_t n_cols, size_t stride, double *acc) {
    const size_t w = QKV_LANES, b = qkv_bytes(reduce->src);
    const qkv zp = qkv_set(qkv_is_x8(reduce->src) ? reduce->zp : 0.0f);
    for (size_t r = 0; r < n_rows; r += ROWS) {
        const size_t some = n_rows - r < ROWS ? n_rows - r : ROWS;
        const char *x = (const char *)src + r * stride * b;
        size_t c = 0;
        if (reduce->op == QK_REDUCE_PROD) {
            for (; c < n_cols; c += w) {
                const size_t m = n_cols - c < w ? n_cols - c : w;
                QKV_BY_TYPE(reduce->src, S, product_columns((qdq_dtype)S, reduce, x + c * b, some, stride, m, acc + c));
            }
            continue;
        }
        for (; n_cols - c >= 4 * w; c += 4 * w)
            BY_OP(reduce->op, O,
                  QKV_BY_TYPE(reduce->src, S,
                              four_columns((qk_reduce_op)O, (qdq_dtype)S, x + c * b, some, stride, zp, acc + c)));
        for (; c < n_cols; c += w) {
            const size_t m = n_cols - c < w ? n_cols - c : w;
            BY_OP(reduce->op, O,
                  QKV_BY_TYPE(reduce->src, S,
                              columns((qk_reduce_op)O, (qdq_dtype)S, x + c * b, some, stride, m, zp, acc + c)));
        }
    }
}

const qk_reduce_fns QK_REDUCE_LEVEL = {run, rows, cols};
