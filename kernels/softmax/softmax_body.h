/* The functions of a vector level: included once by softmax_<level>.c with QK_SOFTMAX_LEVEL, its table's name.
 *
 * A line is read three times: its maximum; its exponentials and their sum; the results. The exponentials wait in `room` (or in
 * the destination, when that holds floats); a line that is too long for the room is computed again. */
#include "kernels/simd/vec.h"
#include "kernels/softmax/softmax_row.h"

#include <math.h>

enum { ROOM = 4096, GROUP = 8 };

/* What turns a waiting value into the result: t * mul + add. */
typedef struct finish {
    float mul, add;
} finish;

static finish finish_of(const qk_softmax *s, float sum) {
    const float factor = qkv_is_x8(s->dst) ? s->dst_factor : 1.0f, first = qkv_is_x8(s->dst) ? s->zp_first : 0.0f;
    if (s->is_log) return (finish){factor, first - logf(sum) * factor};
    return (finish){factor / sum, first};
}

/* ---- lines of consecutive elements ---- */

/* The largest, or the smallest with a negative scale. */
QK_INLINE float top_of(qdq_dtype S, const char *x, size_t n, bool down) {
    const float none = down ? INFINITY : -INFINITY;
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    qkv t[4];
    size_t i = 0;
    QK_FOUR_TIMES(k, t[k] = qkv_set(none));
    if (down) {
        for (; n - i >= w; i += w)
            t[0] = qkv_min(qkv_load(S, x + i * b), t[0]);
        if (i < n) t[0] = qkv_min(qkv_keep(qkv_load_n(S, x + i * b, n - i), n - i, t[0]), t[0]);
        return qkv_hmin(t[0]);
    }
    for (; n - i >= 4 * w; i += 4 * w)
        QK_FOUR_TIMES(k, t[k] = qkv_max(qkv_load(S, x + (i + k * w) * b), t[k]));
    for (; n - i >= w; i += w)
        t[0] = qkv_max(qkv_load(S, x + i * b), t[0]);
    if (i < n) t[1] = qkv_max(qkv_keep(qkv_load_n(S, x + i * b, n - i), n - i, t[1]), t[1]);
    return qkv_hmax(qkv_max(qkv_max(t[0], t[1]), qkv_max(t[2], t[3])));
}

QK_INLINE qkv distance(qdq_dtype S, qkv x, qkv top, qkv scale) {
    x = qkv_sub(x, top);
    return qkv_is_x8(S) ? qkv_mul(x, scale) : x;
}

/* Exponentials of a vector (m lanes of it), kept at t. */
QK_INLINE qkv exponentials(qdq_dtype S, const char *x, float *t, size_t m, qkv top, qkv scale, bool log) {
    const bool whole = m == QKV_LANES;
    const qkv d = distance(S, whole ? qkv_load(S, x) : qkv_load_n(S, x, m), top, scale), e = qkv_exp_negative(d);
    if (t != NULL && whole) qkv_storeu(t, log ? d : e);
    if (t != NULL && !whole) qkv_storeu_n(t, log ? d : e, m);
    return e;
}

/* The sum of exponentials of n elements. They (`log`: the distances) go to t, unless that is NULL. Meanwhile what lies `ahead`
 * bytes behind is brought near. */
QK_INLINE float sum_of(qdq_dtype S, const char *x, float *t, size_t n, float top, float src_scale, bool log,
                       size_t ahead) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv tops = qkv_set(top), scale = qkv_set(src_scale);
    qkv sum[2] = {qkv_zero(), qkv_zero()};
    size_t i = 0;
    for (; n - i >= 2 * w; i += 2 * w) {
        for (size_t at = 0; at < 2 * w * b; at += 64)
            _mm_prefetch(x + i * b + ahead + at, _MM_HINT_T0);
        sum[0] = qkv_add(sum[0], exponentials(S, x + i * b, t == NULL ? NULL : t + i, w, tops, scale, log));
        sum[1] = qkv_add(sum[1], exponentials(S, x + (i + w) * b, t == NULL ? NULL : t + i + w, w, tops, scale, log));
    }
    if (n - i >= w) {
        sum[0] = qkv_add(sum[0], exponentials(S, x + i * b, t == NULL ? NULL : t + i, w, tops, scale, log));
        i += w;
    }
    if (i < n) {
        const qkv e = exponentials(S, x + i * b, t == NULL ? NULL : t + i, n - i, tops, scale, log);
        sum[1] = qkv_add(sum[1], qkv_keep(e, n - i, qkv_zero()));
    }
    return qkv_hsum(qkv_add(sum[0], sum[1]));
}

QK_INLINE void results(qdq_dtype D, const float *t, char *y, size_t n, finish f) {
    const size_t w = QKV_LANES, b = qkv_bytes(D);
    const qkv mul = qkv_set(f.mul), add = qkv_set(f.add);
    size_t i = 0;
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = qkv_fma(qkv_loadu(t + i + k * w), mul, add));
        qkv_store4(D, y + i * b, v);
    }
    for (; n - i >= w; i += w)
        qkv_store(D, y + i * b, qkv_fma(qkv_loadu(t + i), mul, add));
    if (i < n) qkv_store_n(D, y + i * b, qkv_fma(qkv_loadu_n(t + i, n - i), mul, add), n - i);
}

static void results_any(qdq_dtype dst, const float *t, char *y, size_t n, finish f) {
    QKV_BY_TYPE(dst, D, results((qdq_dtype)D, t, y, n, f));
}

/* Zero, and NaNs as they are. */
static void zero_line(const qk_softmax *s, const char *x, char *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float v[QKV_LANES];
        const size_t sb = qkv_bytes(s->src), db = qkv_bytes(s->dst);
        QKV_BY_TYPE(s->src, S, qkv_storeu(v, qkv_load_n((qdq_dtype)S, x + i * sb, 1)));
        v[0] = isnan(v[0]) ? v[0] : qkv_is_x8(s->dst) ? s->zp_first : 0.0f;
        QKV_BY_TYPE(s->dst, D, qkv_store_n((qdq_dtype)D, y + i * db, qkv_loadu_n(v, 1), 1));
    }
}

/* A line that is longer than the room. */
QK_INLINE void long_row(const qk_softmax *s, qdq_dtype S, const char *x, char *y, size_t n, float top, float scale,
                        float *room) {
    const finish f = finish_of(s, sum_of(S, x, NULL, n, top, scale, s->is_log, 0));
    for (size_t i = 0; i < n; i += ROOM) {
        const size_t m = n - i < ROOM ? n - i : ROOM;
        (void)sum_of(S, x + i * qkv_bytes(S), room, m, top, scale, s->is_log, 0);
        results_any(s->dst, room, y + i * qkv_bytes(s->dst), m, f);
    }
}

/* At most GROUP lines, step by step: what is found across one is not waited for. */
QK_INLINE void group(const qk_softmax *s, qdq_dtype S, const char *x, char *y, size_t n_rows, size_t n, float *room) {
    const size_t sb = n * qkv_bytes(S), db = n * qkv_bytes(s->dst);
    const float scale = qkv_is_x8(S) ? s->src_scale : 1.0f;
    const bool in_dst = s->dst == QDQ_DTYPE_F32;
    float tops[GROUP], sums[GROUP];
    for (size_t r = 0; r < n_rows; r++)
        tops[r] = top_of(S, x + r * sb, n, qkv_is_x8(S) && scale < 0.0f);
    for (size_t r = 0; r < n_rows && (in_dst || n <= ROOM); r++) {
        float *t = in_dst ? (float *)(void *)(y + r * db) : room + r * n;
        if (s->zero_of_inf && tops[r] == -INFINITY) continue;
        sums[r] = s->is_log ? sum_of(S, x + r * sb, t, n, tops[r], scale, true, n_rows * sb)
                            : sum_of(S, x + r * sb, t, n, tops[r], scale, false, n_rows * sb);
    }
    for (size_t r = 0; r < n_rows; r++) {
        if (s->zero_of_inf && tops[r] == -INFINITY)
            zero_line(s, x + r * sb, y + r * db, n);
        else if (in_dst || n <= ROOM)
            results_any(s->dst, in_dst ? (const float *)(const void *)(y + r * db) : room + r * n, y + r * db, n,
                        finish_of(s, sums[r]));
        else
            long_row(s, S, x + r * sb, y + r * db, n, tops[r], scale, room);
    }
}

static void rows(const qk_softmax *s, const void *src, void *dst, size_t n_rows, size_t n) {
    float room[ROOM];
    const size_t most = n == 0 || n > ROOM ? 1 : ROOM / n, step = most < GROUP ? most : GROUP;
    for (size_t r = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        const char *x = (const char *)src + r * n * qkv_bytes(s->src);
        char *y = (char *)dst + r * n * qkv_bytes(s->dst);
        QKV_BY_TYPE(s->src, S, group(s, (qdq_dtype)S, x, y, some, n, room));
    }
}

/* ---- lines beside each other: a lane each ---- */

QK_INLINE void lanes(const qk_softmax *s, qdq_dtype S, const char *x, char *y, size_t n, size_t stride, size_t m,
                     float *room) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S), db = qkv_bytes(s->dst);
    const bool down = qkv_is_x8(S) && s->src_scale < 0.0f, in_room = n <= ROOM / QKV_LANES;
    const qkv scale = qkv_set(s->src_scale);
    qkv top = qkv_set(down ? INFINITY : -INFINITY), sum = qkv_zero();
#define AT(i) (m == w ? qkv_load(S, x + (i)*stride * sb) : qkv_load_n(S, x + (i)*stride * sb, m))
    for (size_t i = 0; i < n; i++)
        top = down ? qkv_min(AT(i), top) : qkv_max(AT(i), top);
    for (size_t i = 0; i < n; i++) {
        const qkv d = distance(S, AT(i), top, scale), e = qkv_exp_negative(d);
        sum = qkv_add(sum, e);
        if (in_room) qkv_storeu(room + i * w, s->is_log ? d : e);
    }
    float sums[QKV_LANES], muls[QKV_LANES], adds[QKV_LANES], tops[QKV_LANES];
    qkv_storeu(sums, sum);
    qkv_storeu(tops, top);
    for (size_t k = 0; k < w; k++) {
        const finish f = finish_of(s, sums[k]);
        muls[k] = f.mul;
        adds[k] = f.add;
    }
    const qkv mul = qkv_loadu(muls), add = qkv_loadu(adds);
    for (size_t i = 0; i < n; i++) {
        qkv t;
        if (in_room) {
            t = qkv_loadu(room + i * w);
        } else {
            t = distance(S, AT(i), top, scale);
            if (!s->is_log) t = qkv_exp_negative(t);
        }
        t = qkv_fma(t, mul, add);
        char *to = y + i * stride * db;
        if (m == w) {
            QKV_BY_TYPE(s->dst, D, qkv_store((qdq_dtype)D, to, t));
        } else {
            QKV_BY_TYPE(s->dst, D, qkv_store_n((qdq_dtype)D, to, t, m));
        }
    }
#undef AT
}

/* With zero_of_inf, a column at a time: rare, and only the maximum tells. */
static void cols(const qk_softmax *s, const void *src, void *dst, size_t n, size_t stride, size_t n_cols) {
    float room[ROOM];
    const size_t sb = qkv_bytes(s->src), db = qkv_bytes(s->dst);
    if (s->zero_of_inf) {
        qk_softmax_ref.cols(s, src, dst, n, stride, n_cols);
        return;
    }
    for (size_t c = 0; c < n_cols; c += QKV_LANES) {
        const size_t m = n_cols - c < QKV_LANES ? n_cols - c : QKV_LANES;
        QKV_BY_TYPE(s->src, S,
                    lanes(s, (qdq_dtype)S, (const char *)src + c * sb, (char *)dst + c * db, n, stride, m, room));
    }
}

const qk_softmax_fns QK_SOFTMAX_LEVEL = {rows, cols};
