/* The loops on vectors of any width: included by poolf_<level>.c alone. */
#ifndef QK_POOLF_BODY_H
#define QK_POOLF_BODY_H

#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/vec.h"

#include <math.h>
#include <string.h>

QK_INLINE qkv load(qdq_dtype src, const void *row, size_t at, size_t n) {
    const char *p = (const char *)row + at * qkv_bytes(src);
    return n >= QKV_LANES ? qkv_load(src, p) : qkv_load_n(src, p, n);
}

QK_INLINE qkv join(bool is_max, qkv x, qkv acc) {
    return is_max ? qkv_max(x, acc) : qkv_add(acc, x);
}

QK_INLINE qkv divide(qkv a, qkv b) {
#if defined(__AVX512F__)
    return _mm512_div_ps(a, b);
#else
    return _mm256_div_ps(a, b);
#endif
}

/* The end of a sum: a quotient; by powers of two a product is the same. */
typedef struct ending {
    float divisor, inverse; /* inverse: 0 where it is not exact; divisor: 0 for none */
} ending;

QK_INLINE ending ending_of(float d) {
    uint32_t bits;
    memcpy(&bits, &d, sizeof bits);
    const bool is_power = (bits & 0x7fffff) == 0 && d >= 1.0f && d <= 0x1p60f;
    return (ending){d, is_power ? 1.0f / d : 0.0f};
}

QK_INLINE qkv ended(const ending *e, qkv a) {
    return e->divisor == 0.0f   ? a
           : e->inverse != 0.0f ? qkv_mul(a, qkv_set(e->inverse))
                                : divide(a, qkv_set(e->divisor));
}

/* Up to four vectors of channels from `at` on, `whole` ones and maybe one of n. */
typedef struct part {
    size_t at, n;
} part;
typedef struct vectors {
    qkv v[4];
} vectors;
/* Results that share places have their columns summed once: so many places of one part at a time. */
enum { PLACES = 64, PART = 4 * QKV_LANES };

QK_INLINE vectors none_of(bool is_max) {
    /* -0 takes on what is added to it, a -0, too */
    const qkv none = qkv_set(is_max ? -INFINITY : -0.0f);
    return (vectors){{none, none, none, none}};
}

QK_INLINE vectors joined(bool is_max, vectors x, vectors a, int whole, bool rest) {
    QK_FOUR_TIMES(k, if (k < whole || (k == whole && rest)) a.v[k] = join(is_max, x.v[k], a.v[k]));
    return a;
}

QK_INLINE vectors loaded(qdq_dtype src, const char *p, part c, int whole, bool rest) {
    vectors x = none_of(true);
    QK_FOUR_TIMES(k, if (k < whole) x.v[k] = load(src, p, c.at + k * QKV_LANES, QKV_LANES);
                  else if (k == whole && rest) x.v[k] = load(src, p, c.at + k * QKV_LANES, c.n));
    return x;
}

/* All rows of one place. */
QK_INLINE vectors column(qdq_dtype src, bool is_max, const qk_poolf_line *l, const char *rows, int64_t place, part c,
                         int whole, bool rest) {
    vectors a = none_of(is_max);
    for (size_t d = 0; d < l->n_d; d++) {
        const char *p = rows + (ptrdiff_t)place * l->place_bytes + (ptrdiff_t)d * l->d_bytes;
        for (size_t h = 0; h < l->n_h; h++, p += l->h_bytes)
            a = joined(is_max, loaded(src, p, c, whole, rest), a, whole, rest);
    }
    return a;
}

/* Results first ... end-1. `cols`: the columns from place `low` on, or NULL: none is shared. */
QK_INLINE void results(qdq_dtype src, bool is_max, const qk_poolf_line *l, const char *rows, size_t first, size_t end,
                       int64_t dilation, const float *cols, int64_t low, part c, int whole, bool rest, float *dst) {
    ending e = {0.0f, 0.0f};
    for (size_t i = first; i < end; i++) {
        vectors a = none_of(is_max);
        const int64_t count = l->count[i];
        if (l->divisors != NULL && l->divisors[i] != e.divisor) e = ending_of(l->divisors[i]);
        if (cols != NULL) {
            const float *p = cols + (l->first[i] - low) * PART;
            for (int64_t t = 0; t < count; t++, p += dilation * PART) {
                vectors x = a;
                QK_FOUR_TIMES(k, if (k < whole || (k == whole && rest)) x.v[k] = qkv_loadu(p + k * QKV_LANES));
                a = joined(is_max, x, a, whole, rest);
            }
        } else {
            for (int64_t t = 0; t < count; t++)
                a = joined(is_max, column(src, is_max, l, rows, l->first[i] + t * dilation, c, whole, rest), a, whole,
                           rest);
        }
        float *y = dst + i * l->dst_step + c.at;
        if (!is_max && (l->n_d * l->n_h == 0 || count == 0))
            QK_FOUR_TIMES(k, a.v[k] = qkv_zero());
        else
            QK_FOUR_TIMES(k, if (k < whole || (k == whole && rest)) a.v[k] = ended(&e, a.v[k]));
        QK_FOUR_TIMES(k, if (k < whole) qkv_storeu(y + k * QKV_LANES, a.v[k]);
                      else if (k == whole && rest) qkv_storeu_n(y + k * QKV_LANES, a.v[k], c.n));
    }
}

QK_INLINE void one_part(qdq_dtype src, bool is_max, const qk_poolf_line *l, const char *rows, part c, int whole,
                        bool rest, float *dst) {
    float cols[PLACES * PART];
    const int64_t dilation = l->dilation;
    for (size_t i = 0, end; i < l->n_out; i = end) {
        /* as many results as fit the columns; at least one */
        int64_t low = INT64_MAX, high = INT64_MIN, taps = 0;
        for (end = i; end < l->n_out; end++) {
            if (l->count[end] == 0) continue;
            const int64_t from = l->first[end], to = from + (l->count[end] - 1) * dilation;
            const int64_t lowest = from < low ? from : low, highest = to > high ? to : high;
            if (highest - lowest >= PLACES) break;
            low = lowest;
            high = highest;
            taps += l->count[end];
        }
        const bool fits = end > i, shared = fits && taps > high - low + 1;
        if (!fits) end = i + 1;
        for (int64_t x = low; shared && x <= high; x++) {
            const vectors v = column(src, is_max, l, rows, x, c, whole, rest);
            float *to = cols + (x - low) * PART;
            QK_FOUR_TIMES(k, if (k < whole || (k == whole && rest)) qkv_storeu(to + k * QKV_LANES, v.v[k]));
        }
        if (shared)
            results(src, is_max, l, rows, i, end, dilation, cols, low, c, whole, rest, dst);
        else
            results(src, is_max, l, rows, i, end, dilation, NULL, low, c, whole, rest, dst);
    }
}

QK_INLINE void run(qdq_dtype src, bool is_max, const qk_poolf_line *l, const char *rows, float *dst) {
    const size_t n = l->n_channels;
    part c = {0, 0};
    for (; n - c.at >= PART; c.at += PART)
        one_part(src, is_max, l, rows, c, 4, false, dst);
    const size_t whole = (n - c.at) / QKV_LANES;
    c.n = (n - c.at) % QKV_LANES;
#define OF(count)                                                                                                      \
    if (whole == (count) && c.n != 0)                                                                                  \
        one_part(src, is_max, l, rows, c, count, true, dst);                                                           \
    else if (whole == (count) && (count) > 0)                                                                          \
    one_part(src, is_max, l, rows, c, count, false, dst)
    OF(0);
    OF(1);
    OF(2);
    OF(3);
#undef OF
}

#define POOLF_FUNCTION(id, name, is_max)                                                                               \
    void name(const qk_poolf_line *line, const void *rows, float *dst) {                                               \
        run(QDQ_DTYPE_##id, is_max, line, rows, dst);                                                                  \
    }

#endif
