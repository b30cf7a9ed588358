/* The functions of a vector level: included once by resize_<level>.c with QK_RESIZE_LEVEL, its table's name. */
#include "kernels/resize/resize_row.h"
#include "kernels/simd/vec.h"

#include <string.h>

QK_INLINE qkv taken(qdq_dtype S, const char *x, size_t m) {
    return m == QKV_LANES ? qkv_load(S, x) : qkv_load_n(S, x, m);
}

QK_INLINE void put(qdq_dtype D, char *y, qkv v, size_t m) {
    if (m == QKV_LANES)
        qkv_store(D, y, v);
    else
        qkv_store_n(D, y, v, m);
}

/* One that takes the others on: 1 * x is x, so the first row is no special case where its weight is 1. */
QK_INLINE qkv blended(qdq_dtype S, const void *const *src, const float *weights, size_t n_src, size_t at, size_t m) {
    qkv v = qkv_mul(taken(S, (const char *)src[0] + at * qkv_bytes(S), m), qkv_set(weights[0]));
    for (size_t k = 1; k < n_src; k++)
        v = qkv_fma(taken(S, (const char *)src[k] + at * qkv_bytes(S), m), qkv_set(weights[k]), v);
    return v;
}

/* Where all types come to the same, the end is chosen for each vector. */
QK_INLINE void end(const qk_resize *resize, qkv v, char *dst, size_t i, size_t m) {
    v = qkv_fma(v, qkv_set(resize->factor), qkv_set(resize->add));
    char *y = dst + i * qkv_bytes(resize->dst);
    QKV_BY_TYPE(resize->dst, D, put((qdq_dtype)D, y, v, m));
}

QK_INLINE void blend_of(qdq_dtype S, const qk_resize *resize, bool to_floats, const void *const *src,
                        const float *weights, size_t n_src, char *dst, size_t n) {
    for (size_t i = 0; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const qkv v = blended(S, src, weights, n_src, i, m);
        if (to_floats)
            put(QDQ_DTYPE_F32, dst + i * sizeof(float), v, m);
        else
            end(resize, v, dst, i, m);
    }
}

static void blend(const qk_resize *resize, bool to_floats, const void *const *src, const float *weights, size_t n_src,
                  void *dst, size_t n) {
    QKV_BY_TYPE(resize->src, S, blend_of((qdq_dtype)S, resize, to_floats, src, weights, n_src, dst, n));
}

/* ---- along an axis whose elements are runs ---- */

/* Up to four vectors of a run: those of a place, or of a result. */
typedef struct run_part {
    qkv v[4];
} run_part;

/* `n` elements of the run from `at` on, whole vectors or one that is not. */
QK_INLINE run_part part_at(qdq_dtype S, const void *const *src, const float *weights, size_t n_src, size_t at,
                           bool four, size_t n) {
    run_part p;
    if (four) {
        QK_FOUR_TIMES(k, p.v[k] = blended(S, src, weights, n_src, at + k * QKV_LANES, QKV_LANES));
    } else {
        p.v[0] = blended(S, src, weights, n_src, at, n);
        p.v[1] = p.v[2] = p.v[3] = p.v[0];
    }
    return p;
}

QK_INLINE run_part between(run_part a, run_part b, float w, bool four) {
    const qkv lo = qkv_set(1.0f - w), hi = qkv_set(w);
    run_part p;
    QK_FOUR_TIMES(k, p.v[k] = four || k == 0 ? qkv_fma(b.v[k], hi, qkv_mul(a.v[k], lo)) : a.v[k]);
    return p;
}

/* Part `at` ... of the runs of all results: the two places between which results lie are taken when they change. */
QK_INLINE void part_of_runs(qdq_dtype S, qdq_dtype D, const qk_resize *resize, const void *const *src,
                            const float *weights, size_t n_src, const qk_resize_axis *axis, size_t step, char *dst,
                            size_t dst_step, size_t at, bool four, size_t n) {
    const bool ends = resize->factor != 1.0f || resize->add != 0.0f;
    const qkv factor = qkv_set(resize->factor), add = qkv_set(resize->add);
    int32_t of_a = -1, of_b = -1;
    run_part a = {{qkv_zero(), qkv_zero(), qkv_zero(), qkv_zero()}}, b = a;
    for (size_t i = 0; i < axis->n; i++) {
        const int32_t lo = axis->lo[i], hi = axis->hi[i];
        const float w = axis->w[i];
        if (lo != of_a) {
            a = lo == of_b ? b : part_at(S, src, weights, n_src, (size_t)lo * step + at, four, n);
            of_a = lo;
        }
        run_part p = a;
        if (w != 0.0f) { /* an infinity at a tap without weight stays out */
            if (hi != of_b) b = hi == of_a ? a : part_at(S, src, weights, n_src, (size_t)hi * step + at, four, n);
            of_b = hi;
            p = between(a, b, w, four);
        }
        if (ends) QK_FOUR_TIMES(k, p.v[k] = four || k == 0 ? qkv_fma(p.v[k], factor, add) : p.v[k]);
        char *y = dst + (i * dst_step + at) * qkv_bytes(D);
        if (four)
            QK_FOUR_TIMES(k, qkv_store(D, y + k * QKV_LANES * qkv_bytes(D), p.v[k]));
        else
            put(D, y, p.v[0], n);
    }
}

QK_INLINE void runs_of(qdq_dtype S, qdq_dtype D, const qk_resize *resize, const void *const *src, const float *weights,
                       size_t n_src, const qk_resize_axis *axis, size_t step, char *dst, size_t dst_step, size_t n) {
    size_t at = 0;
    for (; n - at >= 4 * QKV_LANES; at += 4 * QKV_LANES)
        part_of_runs(S, D, resize, src, weights, n_src, axis, step, dst, dst_step, at, true, 4 * QKV_LANES);
    for (size_t m; at < n; at += m) {
        m = n - at < QKV_LANES ? n - at : QKV_LANES;
        part_of_runs(S, D, resize, src, weights, n_src, axis, step, dst, dst_step, at, false, m);
    }
}

static void runs(const qk_resize *resize, const void *const *src, const float *weights, size_t n_src,
                 const qk_resize_axis *axis, size_t step, void *dst, size_t dst_step, size_t n) {
#define RUNS(S, D, count) runs_of((qdq_dtype)S, (qdq_dtype)D, resize, src, weights, count, axis, step, dst, dst_step, n)
    if (resize->src == resize->dst && n_src == 1) {
        QKV_BY_TYPE(resize->src, S, RUNS(S, S, 1));
    } else if (resize->src == resize->dst && n_src == 2) {
        QKV_BY_TYPE(resize->src, S, RUNS(S, S, 2));
    } else {
        QKV_BY_TYPE(resize->src, S, QKV_BY_TYPE(resize->dst, D, RUNS(S, D, n_src)));
    }
#undef RUNS
}

/* ---- along a row ---- */

/* Elements of a row by their numbers, of which the first is `base` and none is more than `last` behind it: from registers. */
#if defined(__AVX512F__)
typedef __m512i numbers;
QK_INLINE numbers numbers_at(const int32_t *p, size_t m) {
    return _mm512_maskz_loadu_epi32(qkv_first(m), p);
}
QK_INLINE numbers behind(numbers at, int32_t base) {
    return _mm512_sub_epi32(at, _mm512_set1_epi32(base));
}
QK_INLINE bool all_within(numbers at, int32_t last, size_t m) {
    return _mm512_mask_cmpgt_epu32_mask(qkv_first(m), at, _mm512_set1_epi32(last)) == 0;
}
QK_INLINE qkv picked(qkv x, qkv y, numbers at, bool both) {
    return both ? _mm512_permutex2var_ps(x, at, y) : _mm512_permutexvar_ps(at, x);
}
QK_INLINE qkv gathered(const float *row, numbers at, size_t m) {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), qkv_first(m), at, row, 4);
}
#else
typedef __m256i numbers;
QK_INLINE numbers numbers_at(const int32_t *p, size_t m) {
    return _mm256_maskload_epi32(p, qkv_first(m));
}
QK_INLINE numbers behind(numbers at, int32_t base) {
    return _mm256_sub_epi32(at, _mm256_set1_epi32(base));
}
QK_INLINE bool all_within(numbers at, int32_t last, size_t m) {
    const __m256i most = _mm256_max_epu32(at, _mm256_set1_epi32(last));
    const __m256i is_last = _mm256_cmpeq_epi32(most, _mm256_set1_epi32(last));
    return _mm256_testc_si256(is_last, qkv_first(m)) != 0;
}
QK_INLINE qkv picked(qkv x, qkv y, numbers at, bool both) {
    const qkv of_x = _mm256_permutevar8x32_ps(x, at);
    if (!both) return of_x;
    return _mm256_blendv_ps(of_x, _mm256_permutevar8x32_ps(y, at),
                            _mm256_castsi256_ps(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(7))));
}
QK_INLINE qkv gathered(const float *row, numbers at, size_t m) {
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), row, at, _mm256_castsi256_ps(qkv_first(m)), 4);
}
#endif

QK_INLINE void across_vector(qdq_dtype D, const qk_resize *resize, const float *row, const int32_t *lo,
                             const int32_t *hi, const float *w, char *dst, size_t m) {
    const int32_t base = lo[0], last = hi[m - 1] - base;
    const bool whole = m == QKV_LANES;
    const numbers of_a = numbers_at(lo, m), of_b = numbers_at(hi, m);
    const numbers a_at = behind(of_a, base), b_at = behind(of_b, base);
    const qkv t = whole ? qkv_loadu(w) : qkv_loadu_n(w, m);
    qkv a, b;
    if (last >= 0 && last < 2 * QKV_LANES && all_within(a_at, last, m) && all_within(b_at, last, m)) {
        const size_t there = (size_t)last + 1;
        const bool both = there > QKV_LANES;
        const qkv x = there >= QKV_LANES ? qkv_loadu(row + base) : qkv_loadu_n(row + base, there);
        const qkv y = both ? qkv_loadu_n(row + base + QKV_LANES, there - QKV_LANES) : x;
        a = picked(x, y, a_at, both);
        b = picked(x, y, b_at, both);
    } else {
        a = gathered(row, of_a, m);
        b = gathered(row, of_b, m);
    }
    /* an infinity at a tap without weight stays out */
    const qkv v = qkv_less(qkv_zero(), t, qkv_fma(qkv_sub(b, a), t, a), a);
    put(D, dst, qkv_fma(v, qkv_set(resize->factor), qkv_set(resize->add)), m);
}

QK_INLINE void across_to(qdq_dtype D, const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi,
                         const float *w, char *dst, size_t n) {
    size_t i = 0;
    for (; n - i >= QKV_LANES; i += QKV_LANES)
        across_vector(D, resize, row, lo + i, hi + i, w + i, dst + i * qkv_bytes(D), QKV_LANES);
    if (i < n) across_vector(D, resize, row, lo + i, hi + i, w + i, dst + i * qkv_bytes(D), n - i);
}

static void across(const qk_resize *resize, const float *row, const int32_t *lo, const int32_t *hi, const float *w,
                   void *dst, size_t n) {
    QKV_BY_TYPE(resize->dst, D, across_to((qdq_dtype)D, resize, row, lo, hi, w, dst, n));
}

/* ---- as they are ---- */

/* `piece` bytes at the begin, and as many at the end of a run of at most twice that. */
#define TAKE_PIECES(piece)                                                                                             \
    for (size_t i = 0; i < n; i++, y += run_bytes) {                                                                   \
        const char *x = (const char *)src + (size_t)at[i] * step_bytes;                                                \
        char low[piece], high[piece];                                                                                  \
        memcpy(low, x, piece);                                                                                         \
        memcpy(high, x + run_bytes - (piece), piece);                                                                  \
        memcpy(y, low, piece);                                                                                         \
        memcpy(y + run_bytes - (piece), high, piece);                                                                  \
    }

/* Elements of 1, 2 or 4 bytes: a vector of numbers at a time, picked from a register where they lie near each other. */
#define TAKE_EACH(first, end, elem)                                                                                    \
    for (size_t k = first; k < (end); k++)                                                                             \
    memcpy(dst + k * (elem), src + (size_t)at[k] * (elem), elem)
#if defined(__AVX512F__)
QK_INLINE __m512i dwords(const char *p, size_t m, size_t elem) {
    const __mmask16 lanes = qkv_first(m);
    return elem == 4   ? _mm512_maskz_loadu_epi32(lanes, p)
           : elem == 2 ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p))
                       : _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, p));
}
QK_INLINE void put_dwords(char *p, size_t m, size_t elem, __m512i v) {
    const __mmask16 lanes = qkv_first(m);
    if (elem == 4 && m == QKV_LANES)
        _mm512_storeu_si512(p, v);
    else if (elem == 4)
        _mm512_mask_storeu_epi32(p, lanes, v);
    else if (elem == 2)
        _mm256_mask_storeu_epi16(p, lanes, _mm512_cvtepi32_epi16(v));
    else
        _mm_mask_storeu_epi8(p, lanes, _mm512_cvtepi32_epi8(v));
}
QK_INLINE void take_near(const char *src, const int32_t *at, size_t n, size_t elem, char *dst) {
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const int32_t base = at[i], last = at[i + m - 1] - base;
        const __m512i of = behind(numbers_at(at + i, m), base);
        if (last < 0 || last >= QKV_LANES || !all_within(of, last, m)) {
            TAKE_EACH(i, i + m, elem);
            continue;
        }
        const __m512i x = dwords(src + (size_t)base * elem, (size_t)last + 1, elem);
        put_dwords(dst + i * elem, m, elem, _mm512_permutexvar_epi32(of, x));
    }
}
#else
QK_INLINE void take_near(const char *src, const int32_t *at, size_t n, size_t elem, char *dst) {
    if (elem != 4) {
        TAKE_EACH(0, n, elem);
        return;
    }
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const int32_t base = at[i], last = at[i + m - 1] - base;
        const __m256i of = behind(numbers_at(at + i, m), base);
        if (last < 0 || last >= QKV_LANES || !all_within(of, last, m)) {
            TAKE_EACH(i, i + m, elem);
            continue;
        }
        const __m256i x = _mm256_maskload_epi32((const int *)(const void *)src + base, qkv_first((size_t)last + 1));
        const __m256i v = _mm256_permutevar8x32_epi32(x, of);
        if (m == QKV_LANES)
            _mm256_storeu_si256((__m256i *)(void *)(dst + i * elem), v);
        else
            _mm256_maskstore_epi32((int *)(void *)(dst + i * elem), qkv_first(m), v);
    }
}
#endif

static void take(const void *src, const int32_t *at, size_t n, size_t run_bytes, size_t step_bytes, void *dst) {
    enum { VECTOR = 4 * QKV_LANES };
    char *y = dst;
    if (run_bytes == step_bytes && run_bytes == 1) {
        take_near(src, at, n, 1, y);
    } else if (run_bytes == step_bytes && run_bytes == 2) {
        take_near(src, at, n, 2, y);
    } else if (run_bytes == step_bytes && run_bytes == 4) {
        take_near(src, at, n, 4, y);
    } else if (run_bytes < 2) {
        TAKE_PIECES(1)
    } else if (run_bytes < 4) {
        TAKE_PIECES(2)
    } else if (run_bytes < 8) {
        TAKE_PIECES(4)
    } else if (run_bytes < 16) {
        TAKE_PIECES(8)
    } else if (run_bytes < 32) {
        TAKE_PIECES(16)
    } else if (run_bytes < VECTOR) {
        TAKE_PIECES(32)
    } else {
        for (size_t i = 0; i < n; i++, y += run_bytes) {
            const char *x = (const char *)src + (size_t)at[i] * step_bytes;
            for (size_t k = 0; k + VECTOR < run_bytes; k += VECTOR)
                memcpy(y + k, x + k, VECTOR);
            memcpy(y + run_bytes - VECTOR, x + run_bytes - VECTOR, VECTOR);
        }
    }
}

const qk_resize_fns QK_RESIZE_LEVEL = {blend, runs, take, across};
