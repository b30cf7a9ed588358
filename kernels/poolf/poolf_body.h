/* The loops on vectors of any width: included by poolf_<level>.c alone. */
#ifndef QK_POOLF_BODY_H
#define QK_POOLF_BODY_H

#include "kernels/poolf/poolf_row.h"
#include "kernels/simd/vec.h"

#include <math.h>

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

/* How many of the n channels are in the vector at `at`. */
QK_INLINE size_t left(size_t n, size_t at) {
    return n - at < QKV_LANES ? n - at : QKV_LANES;
}

QK_INLINE void run(qdq_dtype src, bool is_max, const void *const *rows, size_t n_rows, size_t n, float *acc,
                   bool is_added, float divisor) {
    const size_t first = is_max || is_added ? 0 : 1;
    const qkv d = qkv_set(divisor);
    size_t at = 0;
    for (; at + 4 * QKV_LANES <= n; at += 4 * QKV_LANES) {
        qkv a[4];
        QK_FOUR_TIMES(k, a[k] = is_added ? qkv_loadu(acc + at + k * QKV_LANES)
                                : is_max ? qkv_set(-INFINITY)
                                         : load(src, rows[0], at + k * QKV_LANES, QKV_LANES));
        for (size_t r = first; r < n_rows; r++)
            QK_FOUR_TIMES(k, a[k] = join(is_max, load(src, rows[r], at + k * QKV_LANES, QKV_LANES), a[k]));
        if (divisor != 0.0f) QK_FOUR_TIMES(k, a[k] = divide(a[k], d));
        QK_FOUR_TIMES(k, qkv_storeu(acc + at + k * QKV_LANES, a[k]));
    }
    for (; at < n; at += QKV_LANES) {
        const size_t m = left(n, at);
        qkv a = is_added ? qkv_loadu_n(acc + at, m) : is_max ? qkv_set(-INFINITY) : load(src, rows[0], at, m);
        for (size_t r = first; r < n_rows; r++)
            a = join(is_max, load(src, rows[r], at, m), a);
        if (divisor != 0.0f) a = divide(a, d);
        if (m == QKV_LANES)
            qkv_storeu(acc + at, a);
        else
            qkv_storeu_n(acc + at, a, m);
    }
}

#define POOLF_FUNCTION(id, name, is_max)                                                                               \
    void name(const void *const *rows, size_t n_rows, size_t n, float *acc, bool is_added, float divisor) {            \
        run(QDQ_DTYPE_##id, is_max, rows, n_rows, n, acc, is_added, divisor);                                          \
    }

#endif
