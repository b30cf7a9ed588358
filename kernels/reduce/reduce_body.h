/* The functions of a vector level: included once by reduce_<level>.c with QK_REDUCE_LEVEL, its table's name. */
#include "kernels/reduce/reduce_row.h"
#include "kernels/simd/sums8.h"
#include "kernels/simd/vec.h"

#include <math.h>

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

QK_INLINE double piece(qk_reduce_op op, qdq_dtype S, const char *x, size_t n, qkv zp) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv none = qkv_set(op == QK_REDUCE_MAX ? -INFINITY : op == QK_REDUCE_MIN ? INFINITY : 0.0f);
    qkv acc[4], nan = qkv_zero();
    size_t i = 0;
    QK_FOUR_TIMES(k, acc[k] = none);
#define TERM(load) (qkv_is_x8(S) ? qkv_sub(load, zp) : (load))
    for (; n - i >= 4 * w; i += 4 * w)
        QK_FOUR_TIMES(k, {
            const qkv v = TERM(qkv_load(S, x + (i + k * w) * b));
            acc[k] = with(op, acc[k], v);
            if (!is_sum(op) && !qkv_is_x8(S)) nan = qkv_nan(nan, v);
        });
    for (; i < n; i += w) {
        const size_t m = n - i < w ? n - i : w;
        qkv v = TERM(m == w ? qkv_load(S, x + i * b) : qkv_load_n(S, x + i * b, m));
        if (m < w) v = qkv_keep(v, m, none);
        acc[0] = with(op, acc[0], v);
        if (!is_sum(op) && !qkv_is_x8(S)) nan = qkv_nan(nan, v);
        if (m < w) break;
    }
#undef TERM
    if (op == QK_REDUCE_MAX || op == QK_REDUCE_MIN) {
        if (qkv_any_nan(nan)) return (double)NAN;
        const qkv a = with(op, acc[0], acc[1]), c = with(op, acc[2], acc[3]);
        return (double)(op == QK_REDUCE_MAX ? qkv_hmax(with(op, a, c)) : qkv_hmin(with(op, a, c)));
    }
    return (double)qkv_hsum(qkv_add(qkv_add(acc[0], acc[1]), qkv_add(acc[2], acc[3])));
}

/* Products go to f64 at once: their range is not that of f32. */
static double product(const qk_reduce *reduce, const char *x, size_t n) {
    float room[BLOCK];
    const size_t w = QKV_LANES, b = qkv_bytes(reduce->src);
    const qkv zp = qkv_set(qkv_is_x8(reduce->src) ? reduce->zp : 0.0f);
    const qkv scale = qkv_set(qkv_is_x8(reduce->src) ? reduce->scale : 1.0f);
    double acc[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t m = n - first < BLOCK ? n - first : BLOCK;
        size_t i = 0;
        for (; i < m; i += w) {
            const size_t left = m - i < w ? m - i : w;
            qkv v = qkv_zero();
            QKV_BY_TYPE(reduce->src, S, v = qkv_load_n((qdq_dtype)S, x + (first + i) * b, left));
            qkv_storeu_n(room + i, qkv_mul(qkv_sub(v, zp), scale), left);
        }
        for (i = 0; m - i >= 8; i += 8)
            for (size_t k = 0; k < 8; k++)
                acc[k] *= (double)room[i + k];
        for (; i < m; i++)
            acc[0] *= (double)room[i];
    }
    return acc[0] * acc[1] * acc[2] * acc[3] * acc[4] * acc[5] * acc[6] * acc[7];
}

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

static double run(const qk_reduce *reduce, const void *src, size_t n) {
    const qk_reduce_op op = reduce->op;
    const char *x = src;
    if (op == QK_REDUCE_PROD) return product(reduce, x, n);
    if (qkv_is_x8(reduce->src) && (op == QK_REDUCE_SUM || op == QK_REDUCE_SQUARES)) {
        const qks_sums s = reduce->src == QDQ_DTYPE_S8 ? qk_sums8(x, n, true) : qk_sums8(x, n, false);
        const double zp = (double)reduce->zp, sum = (double)s.sum;
        return op == QK_REDUCE_SUM ? sum - zp * (double)n : (double)s.squares - 2.0 * zp * sum + zp * zp * (double)n;
    }
    const size_t b = qkv_bytes(reduce->src);
    const qkv zp = qkv_set(qkv_is_x8(reduce->src) ? reduce->zp : 0.0f);
    double acc = qk_reduce_none(op);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        double one = 0.0;
        BY_OP(op, O, QKV_BY_TYPE(reduce->src, S, one = piece((qk_reduce_op)O, (qdq_dtype)S, x + i * b, m, zp)));
        acc = qk_reduce_join(op, acc, one);
    }
    return acc;
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
        acc[k] = is_sum(op) ? acc[k] + (double)lanes[k] : qk_reduce_join(op, acc[k], (double)lanes[k]);
}

static void cols(const qk_reduce *reduce, const void *src, size_t rows, size_t n_cols, size_t stride, double *acc) {
    if (reduce->op == QK_REDUCE_PROD) {
        qk_reduce_ref.cols(reduce, src, rows, n_cols, stride, acc);
        return;
    }
    const size_t w = QKV_LANES, b = qkv_bytes(reduce->src);
    const qkv zp = qkv_set(qkv_is_x8(reduce->src) ? reduce->zp : 0.0f);
    for (size_t r = 0; r < rows; r += ROWS) {
        const size_t some = rows - r < ROWS ? rows - r : ROWS;
        for (size_t c = 0; c < n_cols; c += w) {
            const char *x = (const char *)src + (r * stride + c) * b;
            const size_t m = n_cols - c < w ? n_cols - c : w;
            BY_OP(reduce->op, O,
                  QKV_BY_TYPE(reduce->src, S, columns((qk_reduce_op)O, (qdq_dtype)S, x, some, stride, m, zp, acc + c)));
        }
    }
}

const qk_reduce_fns QK_REDUCE_LEVEL = {run, cols};
