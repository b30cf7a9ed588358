/* The loops on vectors of any width: included by poolf_<level>.c alone.
 *
 * Small windows over many channels slide along the places, the last three columns (a place's rows, joined) in registers. Others take two
 * passes over some places: all columns, then the results out of these. Both walk elements, not places, as far as these are
 * consecutive: so few channels are as good as many. */
#ifndef QK_POOLF_BODY_H
#define QK_POOLF_BODY_H

#include "kernels/poolf/poolf_value_body.h"

/* Values of the columns: with the sources and results of a few rows they stay in the first cache. */
enum { COLUMNS = 4096, SPARE = 2 * QKV_LANES };

/* The channels `at` … `at` + n-1, of a line. */
typedef struct part {
    size_t at, n;
} part;

/* One vector of n lanes in all rows. */
QK_INLINE qkv column(how h, const qk_poolf_line *l, const char *src, size_t n) {
    qkv a = none_of(h);
    for (size_t d = 0; d < l->n_d; d++, src += l->d_bytes) {
        const char *p = src;
        for (size_t r = 0; r < l->n_h; r++, p += l->h_bytes)
            a = join(h, source(h, p, n), a);
    }
    return a;
}

/* The columns of n elements that begin at `src`. */
QK_INLINE void columns(how h, const qk_poolf_line *l, const char *src, size_t n, char *to) {
    const size_t lanes = lanes_of(h), step = lanes * qkv_bytes(h.src), bytes = 4 * QKV_LANES;
    size_t left = n;
    for (; left >= 8 * lanes; left -= 8 * lanes, src += 8 * step, to += 8 * bytes) {
        const qkv none = none_of(h);
        vectors a = {{none, none, none, none}}, b = a;
        const char *plane = src;
        for (size_t d = 0; d < l->n_d; d++, plane += l->d_bytes) {
            const char *p = plane;
            for (size_t r = 0; r < l->n_h; r++, p += l->h_bytes) {
                QK_FOUR_TIMES(k, a.v[k] = join(h, source(h, p + k * step, lanes), a.v[k]));
                QK_FOUR_TIMES(k, b.v[k] = join(h, source(h, p + (4 + k) * step, lanes), b.v[k]));
            }
        }
        QK_FOUR_TIMES(k, qkv_storeu((float *)(to + k * bytes), a.v[k]));
        QK_FOUR_TIMES(k, qkv_storeu((float *)(to + (4 + k) * bytes), b.v[k]));
    }
    for (; left >= lanes; left -= lanes, src += step, to += bytes)
        qkv_storeu((float *)to, column(h, l, src, lanes));
    if (left != 0) qkv_storeu((float *)to, column(h, l, src, left));
}

/* m vectors of results, `gap` elements from each to the next; or, when m is 1, n lanes of one, to be stored whole where there is
 * `room`. */
QK_INLINE void finish(how h, const ending *e, vectors a, int m, size_t gap, size_t n, bool room, char *to) {
    const size_t lanes = lanes_of(h), step = gap * qkv_bytes(h.dst);
    const bool whole = room || n >= lanes;
    if (is_keys(h)) {
        QK_FOUR_TIMES(k, if (k < m) keys_store(to + k * step, of_key(a.v[k]), whole ? lanes : n));
        return;
    }
    if (!h.is_max) {
        if (n < lanes) a.v[0] = qkv_keep(a.v[0], n, qkv_zero());
        a = ended(h, e, a, m);
    }
    if (m == 4)
        qkv_store4(h.dst, to, a.v);
    else if (whole)
        QK_FOUR_TIMES(k, if (k < m) qkv_store(h.dst, to + k * step, a.v[k]));
    else
        qkv_store_n(h.dst, to, a.v[0], n);
}

/* `count` columns, `step` bytes apart. */
QK_INLINE vectors taps(how h, const char *from, int64_t count, size_t step, int m) {
    const qkv none = none_of(h);
    vectors a = {{none, none, none, none}};
    for (int64_t t = 0; t < count; t++, from += step)
        QK_FOUR_TIMES(k, if (k < m) a.v[k] = join(h, qkv_loadu((const float *)(from + k * 4 * QKV_LANES)), a.v[k]));
    return a;
}

/* n elements of results with `count` places each, `step` bytes of the columns apart. Further `room` elements behind them may be
 * overwritten. */
QK_INLINE void join_places(how h, const ending *e, const char *from, int64_t count, size_t step, size_t n, size_t room,
                           char *to) {
    const size_t lanes = lanes_of(h), dst = lanes * qkv_bytes(h.dst), bytes = 4 * QKV_LANES;
    for (; n >= 4 * lanes; n -= 4 * lanes, from += 4 * bytes, to += 4 * dst)
        finish(h, e, taps(h, from, count, step, 4), 4, lanes, lanes, true, to);
    for (; n > 0; n -= n < lanes ? n : lanes, from += bytes, to += dst) {
        const vectors a = taps(h, from, count, step, 1);
        if (n + room >= lanes)
            finish(h, e, a, 1, lanes, n < lanes ? n : lanes, true, to);
        else
            finish(h, e, a, 1, lanes, n, false, to);
    }
}

QK_INLINE void empty(how h, size_t n_channels, char *to) {
    const qkv x = is_keys(h) ? key_none() : qkv_set(h.is_max ? -INFINITY : 0.0f);
    const size_t lanes = lanes_of(h), bytes = qkv_bytes(h.dst);
    for (size_t at = 0; at < n_channels; at += lanes) {
        const size_t n = n_channels - at < lanes ? n_channels - at : lanes;
        if (is_keys(h))
            keys_store(to + at * bytes, of_key(x), n);
        else
            qkv_store_n(h.dst, to + at * bytes, x, n);
    }
}

/* n_results of c < lanes channels each, by `by` bytes of the columns from result to result; each is stored with what fills the vector as
 * long as others follow. */
QK_INLINE void few_channels(how h, const ending *e, const char *from, int64_t count, size_t step, ptrdiff_t by,
                            size_t c, size_t n_results, size_t room, char *to) {
    for (; n_results > 0 && n_results * c + room >= lanes_of(h); n_results--, from += by, to += c * qkv_bytes(h.dst))
        finish(h, e, taps(h, from, count, step, 1), 1, c, c, true, to);
    for (; n_results > 0; n_results--, from += by, to += c * qkv_bytes(h.dst))
        finish(h, e, taps(h, from, count, step, 1), 1, c, c, false, to);
}

/* All results, of the places from `low` on, whose columns are `cols`. */
QK_INLINE void results(how h, const qk_poolf_line *l, const char *cols, int64_t low, part c, char *dst) {
    const size_t width = c.n * value_bytes(h), step = (size_t)l->dilation * width,
                 dst_step = l->dst_step * qkv_bytes(h.dst);
    const bool is_dense = l->dst_step == c.n;
    size_t left = l->n_out;
    dst += c.at * qkv_bytes(h.dst);
    for (const qk_poolf_run *r = l->runs; left > 0; r++) {
        const ending e = ending_of(h, l, r);
        const char *p = cols + (r->first - low) * (ptrdiff_t)width;
        const ptrdiff_t by = r->by * (ptrdiff_t)width;
        left -= r->n;
        if (r->count == 0)
            for (size_t k = 0; k < r->n; k++)
                empty(h, c.n, dst + k * dst_step);
        else if (is_dense && r->by == 1)
            join_places(h, &e, p, r->count, step, r->n * c.n, left * c.n, dst);
        else if (is_dense && c.n < lanes_of(h) && r->count == 3)
            few_channels(h, &e, p, 3, step, by, c.n, r->n, left * c.n, dst);
        else if (is_dense && c.n < lanes_of(h))
            few_channels(h, &e, p, r->count, step, by, c.n, r->n, left * c.n, dst);
        else
            for (size_t k = 0; k < r->n; k++)
                join_places(h, &e, p + (ptrdiff_t)k * by, r->count, step, c.n,
                            is_dense ? (left + r->n - 1 - k) * c.n : 0, dst + k * dst_step);
        dst += r->n * dst_step;
    }
}

/* One result of places that are too far from each other, or too many: some columns at a time behind what the ones before came to. */
QK_INLINE void piecewise(how h, const qk_poolf_line *l, const ending *e, int64_t first, int64_t count, size_t n,
                         const char *src, char *cols, char *dst) {
    const size_t width = n * value_bytes(h), lanes = lanes_of(h);
    const int64_t most = COLUMNS / (int64_t)n - 1;
    src += (ptrdiff_t)first * l->place_bytes;
    columns(h, l, src, n, cols);
    for (int64_t t = 1; t < count;) {
        const int64_t some = count - t < most ? count - t : most;
        for (int64_t k = 1; k <= some; k++, t++)
            columns(h, l, src + (ptrdiff_t)(t * l->dilation) * l->place_bytes, n, cols + (size_t)k * width);
        for (size_t at = 0; at < n; at += lanes) { /* what the last one stores too much is of columns that are done */
            char *p = cols + at * value_bytes(h);
            qkv_storeu((float *)p, taps(h, p, some + 1, width, 1).v[0]);
        }
    }
    join_places(h, e, cols, 1, width, n, 0, dst);
}

QK_INLINE void all_piecewise(how h, const qk_poolf_line *l, part c, const char *src, char *cols, char *dst) {
    size_t left = l->n_out;
    for (const qk_poolf_run *r = l->runs; left > 0; left -= r->n, r++) {
        const ending e = ending_of(h, l, r);
        for (size_t k = 0; k < r->n; k++, dst += l->dst_step * qkv_bytes(h.dst)) {
            char *to = dst + c.at * qkv_bytes(h.dst);
            if (r->count == 0)
                empty(h, c.n, to);
            else
                piecewise(h, l, &e, r->first + (int64_t)k * r->by, r->count, c.n, src, cols, to);
        }
    }
}

/* m vectors of channels, each `gap` channels behind the one in front of it. */
QK_INLINE void slide(how h, const qk_poolf_line *l, const char *src, size_t n_rows, int m, size_t gap, char *dst) {
    const size_t lanes = lanes_of(h), step = gap * qkv_bytes(h.src);
    const char *row1 = src + l->h_bytes, *row2 = row1 + l->h_bytes;
    const qkv none = none_of(h);
    vectors a = {{none, none, none, none}}, b = a, c = a; /* the columns of the last three places */
    size_t left = l->n_out;
    ptrdiff_t at = 0; /* of the place behind them */
    for (const qk_poolf_run *r = l->runs; left > 0; left -= r->n, r++) {
        const ending e = ending_of(h, l, r);
        const ptrdiff_t by = r->by * l->place_bytes, under = r->count * l->place_bytes;
        ptrdiff_t first = r->first * l->place_bytes;
        const int64_t count = r->count;
        for (size_t k = 0; k < r->n; k++, first += by, dst += l->dst_step * qkv_bytes(h.dst)) {
            for (at = at > first ? at : first; at < first + under; at += l->place_bytes) {
                a = b;
                b = c;
                QK_FOUR_TIMES(
                    v, if (v < m) {
                        c.v[v] = source(h, src + at + v * step, lanes);
                        if (h.is_max) c.v[v] = join(h, c.v[v], none);
                        c.v[v] = join(h, source(h, row1 + at + v * step, lanes), c.v[v]);
                        if (n_rows > 2) c.v[v] = join(h, source(h, row2 + at + v * step, lanes), c.v[v]);
                    });
            }
            vectors sum = c;
            if (count == 3)
                QK_FOUR_TIMES(v, if (v < m) sum.v[v] = join(h, c.v[v], join(h, b.v[v], a.v[v])));
            else if (count == 2)
                QK_FOUR_TIMES(v, if (v < m) sum.v[v] = join(h, c.v[v], b.v[v]));
            finish(h, &e, sum, m, gap, lanes, true, dst);
        }
    }
}

QK_INLINE void near(how h, const qk_poolf_line *l, const char *src, char *dst) {
    const size_t n = l->n_channels, lanes = lanes_of(h);
    const bool has_four = !is_keys(h);
    for (size_t at = 0, done; at < n; at += done) {
        const char *from = src + at * qkv_bytes(h.src);
        char *to = dst + at * qkv_bytes(h.dst);
        const size_t left = n - at;
        done = left;
#define SLIDE(m, gap)                                                                                                  \
    if (l->n_h == 2)                                                                                                   \
        slide(h, l, from, 2, m, gap, to);                                                                              \
    else                                                                                                               \
        slide(h, l, from, 3, m, gap, to)
        if (has_four && left >= 4 * lanes) {
            done = 4 * lanes;
            SLIDE(4, lanes);
        } else if (left >= 2 * lanes) {
            done = 2 * lanes;
            SLIDE(2, lanes);
        } else if (left > lanes) { /* some results twice */
            SLIDE(2, left - lanes);
        } else { /* the last ones once more */
            from -= (lanes - left) * qkv_bytes(h.src);
            to -= (lanes - left) * qkv_bytes(h.dst);
            SLIDE(1, lanes);
        }
#undef SLIDE
    }
}

/* What all results span. */
typedef struct span {
    int64_t low, high, n_taps;
    bool is_sliding; /* one to three places beside each other each, none ends before the one in front of it */
} span;

QK_INLINE span span_of(const qk_poolf_line *l) {
    span s = {INT64_MAX, 0, 0, true};
    int64_t before = 0;
    size_t left = l->n_out;
    for (const qk_poolf_run *r = l->runs; left > 0; left -= r->n, r++) {
        const int64_t to = r->first + (r->count - 1) * l->dilation, last = to + (int64_t)(r->n - 1) * r->by;
        s.is_sliding &= r->count >= 1 && r->count <= 3 && l->dilation == 1 && to >= before;
        before = last;
        if (r->count == 0) continue;
        s.n_taps += (int64_t)r->n * r->count;
        s.low = r->first < s.low ? r->first : s.low;
        s.high = last > s.high ? last : s.high;
    }
    s.low = s.low < s.high ? s.low : s.high;
    return s;
}

QK_INLINE void run(how h, const qk_poolf_line *l, const char *src, char *dst) {
    _Alignas(64) char cols[(COLUMNS + SPARE) * 4];
    const span all = span_of(l);
    const size_t lanes = lanes_of(h), places = (size_t)(all.high - all.low + 1), n = l->n_channels;
    part c = {0, n};
    if (l->n_d * l->n_h == 0) {
        for (size_t i = 0; i < l->n_out; i++)
            empty(h, n, dst + i * l->dst_step * qkv_bytes(h.dst));
        return;
    }
    if (all.is_sliding && l->n_d == 1 && l->n_h >= 2 && l->n_h <= 3 && n >= lanes) {
        near(h, l, src, dst);
        return;
    }
    /* as many channels at a time as leave room for all columns */
    const bool fits = places * lanes <= COLUMNS && places <= 2 * (size_t)all.n_taps;
    const size_t most = fits ? COLUMNS / places : COLUMNS / 4;
    for (; c.at < n; c.at += c.n) {
        const char *from = src + c.at * qkv_bytes(h.src);
        c.n = n - c.at <= most ? n - c.at : most - most % lanes;
        if (!fits) {
            all_piecewise(h, l, c, from, cols, dst);
            continue;
        }
        from += (ptrdiff_t)all.low * l->place_bytes;
        if (l->place_bytes == (ptrdiff_t)(c.n * qkv_bytes(h.src)))
            columns(h, l, from, places * c.n, cols);
        else
            for (size_t k = 0; k < places; k++, from += l->place_bytes)
                columns(h, l, from, c.n, cols + k * c.n * value_bytes(h));
        results(h, l, cols, all.low, c, dst);
    }
}

#define POOLF_FUNCTIONS(from, to, name, level)                                                                         \
    void qk_poolf_max_##name##_##level(const qk_poolf_line *line, const void *src, void *dst) {                        \
        run((how){QDQ_DTYPE_##from, QDQ_DTYPE_##to, true}, line, src, dst);                                            \
    }                                                                                                                  \
    void qk_poolf_sum_##name##_##level(const qk_poolf_line *line, const void *src, void *dst) {                        \
        run((how){QDQ_DTYPE_##from, QDQ_DTYPE_##to, false}, line, src, dst);                                           \
    }

#endif
