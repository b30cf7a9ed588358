/* The functions of a vector level: included once by softmax_<level>.c with QK_SOFTMAX_LEVEL, its table's name.
 *
 * A line is read three times: its maximum; its exponentials and their sum; the results. The exponentials of floats wait in `room`
 * (or in the destination, when that holds floats); a line that is too long for the room is computed again. Those of bytes are
 * looked up each time (softmax_x8_body.h). */
#include "kernels/softmax/softmax_x8_body.h"

/* Floats that wait; lines at a time, and the bytes that these and their results may take of the first cache. */
enum { ROOM = 4096, GROUP = 8, GROUP_BYTES = 24 * 1024 };

/* What turns a waiting value into the result: t * mul + add. */
typedef struct finish {
    float mul, add;
} finish;

static finish finish_of(const qk_softmax *s, float sum) {
    const float factor = qkv_is_x8(s->dst) ? s->dst_factor : 1.0f, first = qkv_is_x8(s->dst) ? s->zp_first : 0.0f;
    if (s->is_log) return (finish){factor, first - logf(sum) * factor};
    return (finish){factor / sum, first};
}

/* QKV_BY_TYPE without the bytes. */
#define QKV_BY_FLOAT(dtype, name, ...)                                                                                 \
    switch ((int)(dtype)) {                                                                                            \
        QKV_TYPE_CASE(F32, name, __VA_ARGS__)                                                                          \
        QKV_TYPE_CASE(BF16, name, __VA_ARGS__)                                                                         \
        QKV_TYPE_CASE(F16, name, __VA_ARGS__)                                                                          \
    default: break;                                                                                                    \
    }

/* ---- lines of consecutive elements ---- */

QK_INLINE float top_of(qdq_dtype S, const char *x, size_t n) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    qkv t[4];
    size_t i = 0;
    QK_FOUR_TIMES(k, t[k] = qkv_set(-INFINITY));
    for (; n - i >= 4 * w; i += 4 * w)
        QK_FOUR_TIMES(k, t[k] = qkv_max(qkv_load(S, x + (i + k * w) * b), t[k]));
    for (; n - i >= w; i += w)
        t[0] = qkv_max(qkv_load(S, x + i * b), t[0]);
    if (i < n) t[1] = qkv_max(qkv_keep(qkv_load_n(S, x + i * b, n - i), n - i, t[1]), t[1]);
    return qkv_hmax(qkv_max(qkv_max(t[0], t[1]), qkv_max(t[2], t[3])));
}

/* The sum of exponentials of n elements. They (`log`: the distances) go to t, unless that is NULL. Meanwhile what lies `ahead`
 * bytes behind is brought near. */
QK_INLINE float sum_of(const exp_table *table, qdq_dtype S, const char *x, float *t, size_t n, float top, bool log,
                       size_t ahead) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv tops = qkv_set(top);
    qkv sum[4], d, e;
    size_t i = 0;
    QK_FOUR_TIMES(k, sum[k] = qkv_zero());
    for (; n - i >= 4 * w; i += 4 * w) {
        for (size_t at = 0; at < 4 * w * b; at += 64)
            _mm_prefetch(x + i * b + ahead + at, _MM_HINT_T0);
        QK_FOUR_TIMES(k, {
            d = qkv_sub(qkv_load(S, x + (i + k * w) * b), tops);
            e = exp_of(table, d);
            if (t != NULL) qkv_storeu(t + i + k * w, log ? d : e);
            sum[k] = qkv_add(sum[k], e);
        });
    }
    for (; n - i >= w; i += w) {
        d = qkv_sub(qkv_load(S, x + i * b), tops);
        e = exp_of(table, d);
        if (t != NULL) qkv_storeu(t + i, log ? d : e);
        sum[0] = qkv_add(sum[0], e);
    }
    if (i < n) {
        d = qkv_sub(qkv_load_n(S, x + i * b, n - i), tops);
        e = exp_of(table, d);
        if (t != NULL) qkv_storeu_n(t + i, log ? d : e, n - i);
        sum[1] = qkv_add(sum[1], qkv_keep(e, n - i, qkv_zero()));
    }
    return qkv_hsum(qkv_add(qkv_add(sum[0], sum[1]), qkv_add(sum[2], sum[3])));
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
QK_INLINE void long_row(const qk_softmax *s, const exp_table *table, qdq_dtype S, const char *x, char *y, size_t n,
                        float top, float *room) {
    const finish f = finish_of(s, sum_of(table, S, x, NULL, n, top, s->is_log, 0));
    for (size_t i = 0; i < n; i += ROOM) {
        const size_t m = n - i < ROOM ? n - i : ROOM;
        (void)sum_of(table, S, x + i * qkv_bytes(S), room, m, top, s->is_log, 0);
        results_any(s->dst, room, y + i * qkv_bytes(s->dst), m, f);
    }
}

/* At most GROUP lines, step by step: what is found across one is not waited for. */
QK_INLINE void group(const qk_softmax *s, qdq_dtype S, const char *x, char *y, size_t n_rows, size_t n, float *room) {
    const size_t sb = n * qkv_bytes(S), db = n * qkv_bytes(s->dst);
    const bool in_dst = s->dst == QDQ_DTYPE_F32;
    const exp_table table = exp_entries();
    float tops[GROUP], sums[GROUP];
    for (size_t r = 0; r < n_rows; r++)
        tops[r] = top_of(S, x + r * sb, n);
    for (size_t r = 0; r < n_rows && (in_dst || n <= ROOM); r++) {
        float *t = in_dst ? (float *)(void *)(y + r * db) : room + r * n;
        if (s->zero_of_inf && tops[r] == -INFINITY) continue;
        sums[r] = s->is_log ? sum_of(&table, S, x + r * sb, t, n, tops[r], true, n_rows * sb)
                            : sum_of(&table, S, x + r * sb, t, n, tops[r], false, n_rows * sb);
    }
    for (size_t r = 0; r < n_rows; r++) {
        if (s->zero_of_inf && tops[r] == -INFINITY)
            zero_line(s, x + r * sb, y + r * db, n);
        else if (in_dst || n <= ROOM)
            results_any(s->dst, in_dst ? (const float *)(const void *)(y + r * db) : room + r * n, y + r * db, n,
                        finish_of(s, sums[r]));
        else
            long_row(s, &table, S, x + r * sb, y + r * db, n, tops[r], room);
    }
}

QK_INLINE void x8_line(const qk_softmax *s, const x8_powers *p, qdq_dtype D, const uint8_t *x, char *y, size_t n,
                       uint8_t top, bool down, float sum) {
    const finish f = finish_of(s, sum);
    const qkv mul = qkv_set(f.mul), add = qkv_set(f.add);
    if (s->is_log)
        x8_results(p, D, x, y, n, top, down, &s->src_scale, mul, add);
    else if (qkv_is_x8(D))
        x8_blocks(p, D, x, y, n, top, down, mul, add);
    else
        x8_results(p, D, x, y, n, top, down, NULL, mul, add);
}

/* Results of a group from tables; all of these are made before the first is read. */
QK_INLINE void x8_lines(const qk_softmax *s, const float *powers, qdq_dtype D, const uint8_t *x, char *y, size_t n_rows,
                        size_t n, const uint8_t *tops, bool down, const float *sums) {
    x8_table tables[GROUP];
    const bool whole = rintf(s->zp_first) == s->zp_first, small = fabsf(s->dst_factor) + fabsf(s->zp_first) < 0x1p30f;
    for (size_t r = 0; r < n_rows; r++) {
        const finish f = finish_of(s, sums[r]);
        x8_table_fill(&tables[r], powers, D, f.mul, f.add, whole, small);
    }
    for (size_t r = 0; r < n_rows; r++)
        x8_look_up(&tables[r], x + r * n, (uint8_t *)y + r * n, n, tops[r], down);
}

static void rows_of_x8(const qk_softmax *s, const uint8_t *x, char *y, size_t n_rows, size_t n) {
    const bool down = s->src_scale < 0.0f, by_table = qkv_is_x8(s->dst) && n >= X8_TABLE_FROM && !s->is_log;
    const uint8_t flip = x8_flip(s);
    const x8_powers p = x8_powers_init(s->src_scale);
    float powers[256];
    if (by_table) x8_all_powers(powers, &p);
    for (size_t first = 0; first < n_rows; first += GROUP) {
        const size_t some = n_rows - first < GROUP ? n_rows - first : GROUP, db = n * qkv_bytes(s->dst);
        const uint8_t *from = x + first * n;
        char *to = y + first * db;
        uint8_t tops[GROUP];
        float sums[GROUP];
        for (size_t r = 0; r < some; r++)
            tops[r] = x8_top(from + r * n, n, flip);
        for (size_t r = 0; r < some; r++)
            sums[r] = x8_sum(&p, from + r * n, n, tops[r], down);
        if (by_table && s->dst == QDQ_DTYPE_U8) {
            x8_lines(s, powers, QDQ_DTYPE_U8, from, to, some, n, tops, down, sums);
        } else if (by_table) {
            x8_lines(s, powers, QDQ_DTYPE_S8, from, to, some, n, tops, down, sums);
        } else {
            for (size_t r = 0; r < some; r++)
                QKV_BY_TYPE(s->dst, D,
                            x8_line(s, &p, (qdq_dtype)D, from + r * n, to + r * db, n, tops[r], down, sums[r]));
        }
    }
}

static void rows(const qk_softmax *s, const void *src, void *dst, size_t n_rows, size_t n) {
    float room[ROOM];
    const size_t line = n * (qkv_bytes(s->src) + (s->dst == QDQ_DTYPE_F32 ? 0 : 4) + qkv_bytes(s->dst));
    const size_t most = n > ROOM || line > GROUP_BYTES ? 1 : n == 0 ? GROUP : GROUP_BYTES / line;
    const size_t step = most < GROUP ? most : GROUP;
    if (n == 0) return;
    if (qkv_is_x8(s->src)) {
        rows_of_x8(s, src, dst, n_rows, n);
        return;
    }
    for (size_t r = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        const char *x = (const char *)src + r * n * qkv_bytes(s->src);
        char *y = (char *)dst + r * n * qkv_bytes(s->dst);
        QKV_BY_FLOAT(s->src, S, group(s, (qdq_dtype)S, x, y, some, n, room));
    }
}

/* ---- lines beside each other: a lane each ---- */

/* What the lanes are looked up or computed from. */
typedef struct column {
    exp_table table;
    x8_powers powers;
    qkv top;      /* of floats */
    qkw_i top_x8; /* of bytes */
    float scale;
    bool down;
} column;

/* An exponential, and the distance it is of. */
QK_INLINE qkv column_term(const column *c, qdq_dtype S, const char *x, size_t m, qkv *d) {
    if (qkv_is_x8(S)) {
        const qkw_i k = x8_below(x8_load((const uint8_t *)x, m), c->top_x8, c->down);
        *d = x8_distance(k, c->scale);
        return x8_power(&c->powers, k);
    }
    *d = qkv_sub(m == QKV_LANES ? qkv_load(S, x) : qkv_load_n(S, x, m), c->top);
    return exp_of(&c->table, *d);
}

QK_INLINE void column_tops(column *c, qdq_dtype S, const char *x, size_t n, size_t step, size_t m, uint8_t flip) {
    if (qkv_is_x8(S)) {
        const qkw_i f = QKW(set1_epi32)(flip);
        qkw_i t = QKW(set1_epi32)(0);
        for (size_t i = 0; i < n; i++)
            t = QKW(max_epi32)(t, qkw_xor(x8_load((const uint8_t *)x + i * step, m), f));
        c->top_x8 = qkw_xor(t, f);
        return;
    }
    c->top = qkv_set(-INFINITY);
    for (size_t i = 0; i < n; i++)
        c->top = qkv_max(m == QKV_LANES ? qkv_load(S, x + i * step) : qkv_load_n(S, x + i * step, m), c->top);
}

QK_INLINE void put_any(qdq_dtype dst, char *y, qkv v, size_t m) {
    if (m == QKV_LANES) {
        QKV_BY_TYPE(dst, D, qkv_store((qdq_dtype)D, y, v));
    } else {
        QKV_BY_TYPE(dst, D, qkv_store_n((qdq_dtype)D, y, v, m));
    }
}

QK_INLINE void lanes(const qk_softmax *s, column *c, qdq_dtype S, bool log, const char *x, char *y, size_t n,
                     size_t stride, size_t m, float *room) {
    const size_t w = QKV_LANES, sb = stride * qkv_bytes(S), db = stride * qkv_bytes(s->dst);
    const bool in_dst = s->dst == QDQ_DTYPE_F32 && m == w, in_room = n <= ROOM / QKV_LANES && !qkv_is_x8(S);
    qkv sum = qkv_zero(), d;
    column_tops(c, S, x, n, sb, m, x8_flip(s));
    for (size_t i = 0; i < n; i++) {
        const qkv e = column_term(c, S, x + i * sb, m, &d);
        sum = qkv_add(sum, e);
        if (in_room)
            qkv_storeu(room + i * w, log ? d : e);
        else if (in_dst && !qkv_is_x8(S))
            qkv_storeu((float *)(void *)(y + i * db), log ? d : e);
    }
    float sums[QKV_LANES], muls[QKV_LANES], adds[QKV_LANES];
    qkv_storeu(sums, sum);
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
        } else if (in_dst && !qkv_is_x8(S)) {
            t = qkv_loadu((const float *)(const void *)(y + i * db));
        } else {
            t = column_term(c, S, x + i * sb, m, &d);
            if (log) t = d;
        }
        put_any(s->dst, y + i * db, qkv_fma(t, mul, add), m);
    }
}

/* With zero_of_inf, a column at a time: rare, and only the maximum tells. */
static void cols(const qk_softmax *s, const void *src, void *dst, size_t n, size_t stride, size_t n_cols) {
    float room[ROOM];
    const size_t sb = qkv_bytes(s->src), db = qkv_bytes(s->dst);
    if (s->zero_of_inf) {
        qk_softmax_ref.cols(s, src, dst, n, stride, n_cols);
        return;
    }
    column lane = {.table = exp_entries(), .scale = s->src_scale, .down = s->src_scale < 0.0f};
    if (qkv_is_x8(s->src)) lane.powers = x8_powers_init(s->src_scale);
    for (size_t c = 0; c < n_cols; c += QKV_LANES) {
        const size_t m = n_cols - c < QKV_LANES ? n_cols - c : QKV_LANES;
        const char *x = (const char *)src + c * sb;
        char *y = (char *)dst + c * db;
        if (s->is_log) {
            QKV_BY_TYPE(s->src, S, lanes(s, &lane, (qdq_dtype)S, true, x, y, n, stride, m, room));
        } else {
            QKV_BY_TYPE(s->src, S, lanes(s, &lane, (qdq_dtype)S, false, x, y, n, stride, m, room));
        }
    }
}

const qk_softmax_fns QK_SOFTMAX_LEVEL = {rows, cols};
