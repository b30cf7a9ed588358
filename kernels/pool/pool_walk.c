/* Which windows are walked, and with what: rows that are not there, and copies of rows beside whose ends nothing may be read. */
#include "kernels/pool/pool_axis.h"

#include <string.h>

enum { MIN_ROW = 4, SLACK = QK_POOL_BEFORE + QK_POOL_BEHIND };

static int64_t channels(const qk_pool *p) {
    return p->channels_last ? p->c : 1;
}

bool qk_pool_walk_ok(const qk_pool *p) {
    if (p->row->walkers == NULL || p->src != p->dst || p->is_global) return false;
    if (p->in[0] != 1 || p->out[0] != 1 || p->kernel[0] != 1 || p->pad_begin[0] != 0 || p->pad_end[0] != 0)
        return false;
    const int64_t k = p->kernel[1], step = p->stride[1];
    if (!(k == 3 && (step == 1 || step == 2)) && !(k == 2 && step == 2)) return false;
    if (p->kernel[2] != k || p->stride[2] != step) return false;
    for (int a = 1; a < 3; a++) {
        int64_t first, end;
        if (p->dilation[a] != 1 || p->out[a] < 1 || p->in[a] < 1 || p->pad_begin[a] > 1) return false;
        whole_windows(p, a, &first, &end);
        const window w = window_at(p, a, 0), v = window_at(p, a, p->out[a] - 1);
        if (first > 1 || p->out[a] - end > 1 || w.end == w.first || v.end == v.first) return false;
    }
    return p->in[2] * channels(p) >= MIN_ROW;
}

/* The windows of a class: how many taps are inside, how many count. Taps 0: there are none. */
typedef struct class_taps {
    int64_t taps, counted;
} class_taps;

static class_taps class_of(const qk_pool *p, int row_class, int col_class) {
    const int at[3] = {0, row_class, col_class};
    class_taps t = {1, 1};
    for (int a = 1; a < 3; a++) {
        int64_t first, end;
        whole_windows(p, a, &first, &end);
        if (at[a] == 0 ? first == 0 : at[a] == 1 ? end == first : end == p->out[a]) return (class_taps){0, 0};
        const window w = window_at(p, a, at[a] == 0 ? 0 : at[a] == 1 ? first : p->out[a] - 1);
        t.taps *= w.end - w.first;
        t.counted *= p->count_pad ? w.counted : w.end - w.first;
    }
    return t;
}

/* Taps inside along w in the first or the last column. */
static int64_t columns_of(const qk_pool *p, int side) {
    const window w = window_at(p, 2, side == 0 ? 0 : p->out[2] - 1);
    return w.end - w.first;
}

/* Cut columns of plain averages. */
static void fill_edges(const qk_pool *p, qk_pool_quant *q) {
    class_taps of[6];
    uint8_t n = 0;
    for (int r = 0; r < 3; r++)
        for (int side = 0; side < 2; side++) {
            const class_taps t = class_of(p, r, 2 * side);
            uint8_t i = 0;
            if (t.taps == 0) continue;
            while (i < n && (of[i].taps != t.taps || of[i].counted != t.counted))
                i++;
            q->edge_of[r][side] = i;
            if (i < n) continue;
            of[n++] = t;
            qk_pool_mean_table(p, q, (int32_t)t.taps, (int32_t)t.counted, q->edges[i]);
        }
}

bool qk_pool_walk_means(const qk_pool *p, qk_pool_quant *q) {
    const int64_t all = p->kernel[1] * p->kernel[2];
    int64_t whole_first, whole_end;
    whole_windows(p, 2, &whole_first, &whole_end);
    const bool has_cut_columns = whole_first > 0 || whole_end < p->out[2];
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            const class_taps t = class_of(p, r, c);
            if (t.taps == 0 || (!p->channels_last && c != 1)) continue;
            /* cut columns need sums, which QUARTER does without */
            const bool quarter = t.taps == all && t.counted == all && (p->channels_last || !has_cut_columns);
            q->means[r][c] =
                qk_pool_mean_make(p, q, (int32_t)t.taps, (int32_t)t.counted, quarter ? QK_POOL_QUARTER : QK_POOL_PLAIN);
            if (q->means[r][c].form == QK_POOL_NO_MEAN) return false;
        }
    if (!p->channels_last) fill_edges(p, q);
    return true;
}

static size_t padded_row(const qk_pool *p) {
    return ((size_t)(p->in[2] * channels(p)) + 3 * SLACK + 63) / 64 * 64;
}

size_t qk_pool_walk_scratch(const qk_pool *p) {
    return QK_POOL_CLOSINGS + 3 * padded_row(p);
}

void qk_pool_walk_run(const qk_pool *p, const qk_pool_quant *q, const void *src, void *dst, size_t first, size_t n,
                      void *scratch) {
    const int64_t row = p->in[2] * channels(p), image = row * p->in[1], out_row = p->out[2] * channels(p);
    const bool is_signed = p->src == QDQ_DTYPE_S8;
    int64_t left, right, top, bottom;
    whole_windows(p, 2, &left, &right);
    whole_windows(p, 1, &top, &bottom);
    uint8_t *blank = (uint8_t *)scratch + QK_POOL_CLOSINGS, *head = blank + padded_row(p), *tail = head + padded_row(p);
    qk_pool_walk w = {
        .is_signed = is_signed,
        .k = (int)p->kernel[1],
        .step = (int)p->stride[1],
        .c = (size_t)channels(p),
        .in_h = (size_t)p->in[1],
        .in_w = (size_t)p->in[2],
        .out_w = (size_t)p->out[2],
        .row_bytes = (size_t)row,
        .pad = (size_t)p->pad_begin[2],
        .pad_top = (size_t)p->pad_begin[1],
        .whole_first = (size_t)left,
        .whole_end = (size_t)right,
        .whole_top = (size_t)top,
        .whole_bottom = (size_t)bottom,
        .blank = blank + QK_POOL_BEFORE,
        .means = q->means,
        .closings = scratch,
    };
    memset(blank, is_signed ? 0x80 : 0, padded_row(p));
    const qk_pool_walkers *f = p->row->walkers;
    for (int r = 0; r < 3 && !p->is_max && !p->channels_last; r++)
        for (int side = 0; side < 2; side++) {
            const class_taps t = class_of(p, r, 2 * side);
            const uint8_t *table = q->edges[q->edge_of[r][side]];
            /* a blank row is one of -128, if the type is S8 */
            if (t.taps == 0) continue;
            if (is_signed) table += 128 * p->kernel[1] * columns_of(p, side);
            *(side == 0 ? &w.edges[r].left : &w.edges[r].right) = table;
        }
    if (!p->is_max) f->make_closings(&w, scratch);
    qk_pool_walk_fn *fn =
        p->channels_last ? (p->is_max ? f->last_max : f->last_mean) : (p->is_max ? f->plane_max : f->plane_mean);
    const int64_t n_planes = p->n * (p->channels_last ? 1 : p->c);
    int64_t plane = (int64_t)first / p->out[1], oh = (int64_t)first % p->out[1], todo = (int64_t)n;
    for (int64_t m; todo > 0; todo -= m, first += (size_t)m, oh = 0, plane++) {
        m = smaller(todo, p->out[1] - oh);
        const int64_t behind = (n_planes - plane - 1) * image;
        w.src = w.head = (const uint8_t *)src + plane * image;
        w.tail_row = (size_t)p->in[1];
        w.dst = (uint8_t *)dst + (int64_t)first * out_row;
        w.dst_end = w.dst + m * out_row;
        if (plane == 0 && oh <= 1 && !p->channels_last) { /* nothing is there before it */
            memcpy(head + QK_POOL_BEFORE, w.src, (size_t)row);
            w.head = head + QK_POOL_BEFORE;
        }
        if (behind < QK_POOL_BEHIND) { /* rows that end less than that before the tensor does */
            int64_t r = p->in[1];
            while (r > 0 && behind + (p->in[1] - r) * row < QK_POOL_BEHIND)
                r--;
            memcpy(tail + QK_POOL_BEFORE, w.src + r * row, (size_t)((p->in[1] - r) * row));
            w.tail = tail + QK_POOL_BEFORE;
            w.tail_row = (size_t)r;
        }
        fn(&w, (size_t)oh, (size_t)m);
    }
}
