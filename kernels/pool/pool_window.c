#include "kernels/pool/pool_axis.h"
#include "kernels/pool/pool_separate.h"

#include <math.h>
#include <string.h>

static const qk_pool_row *const rows[] = {
#define QK_POOL(level) &qk_pool_row_##level,
#include "kernels/pool/pool.def"
#undef QK_POOL
};

/* Outputs of a row that are done at a time: bounds the scratch of long rows. */
enum { ROW_OUTPUTS = 512 };

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

/* One window over everything: then the plane is one row. */
static bool is_global(const qk_pool *p) {
    for (int a = 0; a < 3; a++)
        if (p->kernel[a] != p->in[a] || p->out[a] != 1 || p->dilation[a] != 1 || p->pad_begin[a] != 0) return false;
    return true;
}

static int64_t row_span(const qk_pool *p) { /* elements that ROW_OUTPUTS outputs reach along w */
    int64_t outputs = smaller(larger(p->out[2], 1), ROW_OUTPUTS);
    return (outputs - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2] + 1;
}

bool qk_pool_init(qk_pool *p) {
    const int64_t limit = 1 << 30;
    if (!is_x8(p->src) || !is_x8(p->dst) || p->n < 0 || p->c < 0) return false;
    int64_t taps = 1;
    for (int a = 0; a < 3; a++) {
        if (p->in[a] < 0 || p->out[a] < 0 || p->kernel[a] < 1 || p->stride[a] < 1 || p->dilation[a] < 1 ||
            p->pad_begin[a] < 0 || p->pad_end[a] < 0)
            return false;
        if (p->in[a] > limit || p->out[a] > limit || p->stride[a] > limit || p->dilation[a] > limit ||
            p->kernel[a] > limit / p->dilation[a] || p->kernel[a] > limit || p->pad_begin[a] > limit ||
            p->pad_end[a] > limit)
            return false;
        int64_t inside = smaller(p->kernel[a], larger(p->in[a], 1));
        if (inside > (INT32_MAX / 2048) / taps) /* |q - zp| stays below 2^11 */
            return false;
        taps *= inside;
    }
    if (p->stride[2] > limit / ROW_OUTPUTS) return false;
    size_t i = 0;
    while (!qk_isa_has(rows[i]->isa)) /* the last is ref, which is always there */
        i++;
    p->row = rows[i];
    p->is_global = is_global(p);
    p->is_walk = qk_pool_walk_ok(p);
    p->is_grid = !p->channels_last && !p->is_global && p->in[0] == 1 && p->out[0] == 1 && p->kernel[0] == 1 &&
                 p->pad_begin[0] == 0 && p->kernel[1] * p->kernel[2] <= QK_POOL_GRID_TAPS && p->stride[2] <= 2;
    size_t outputs = (size_t)(p->out[0] * p->out[1]);
    p->n_tasks = p->out[2] == 0 || p->c == 0 ? 0 : (size_t)p->n * outputs * (p->channels_last ? 1 : (size_t)p->c);
    /* A sum per channel; or two rows of sums. */
    size_t elems = p->channels_last ? (size_t)p->c : p->is_global ? 0 : (size_t)row_span(p);
    p->scratch_bytes = (elems + 64) * (p->channels_last ? 4 : 4 + 4);
    if (p->is_walk && qk_pool_walk_scratch(p) > p->scratch_bytes) p->scratch_bytes = qk_pool_walk_scratch(p);
    p->is_separate = qk_pool_is_separate(p);
    if (p->is_separate && qk_pool_separate_scratch(p) > p->scratch_bytes)
        p->scratch_bytes = qk_pool_separate_scratch(p);
    p->scratch_bytes = (p->scratch_bytes + 63) / 64 * 64;
    return true;
}

qk_isa qk_pool_isa(const qk_pool *p) {
    return p->row->isa;
}

int64_t qk_pool_work(const qk_pool *p) {
    int64_t work = p->n * p->c;
    for (int a = 0; a < 3; a++)
        work *= p->out[a] * p->kernel[a];
    if (p->is_global) return work / 4;
    return p->is_max && p->channels_last ? work / 2 : work; /* nothing is shuffled or counted */
}

static uint8_t lowest(qdq_dtype d) {
    return d == QDQ_DTYPE_S8 ? 0x80 : 0;
}

bool qk_pool_quant_init(const qk_pool *p, float src_scale, int32_t src_zp, float dst_scale, int32_t dst_zp,
                        bool add_zp_first, qk_pool_quant *out) {
    *out = (qk_pool_quant){.src_scale = src_scale, .dst_scale = dst_scale, .src_zp = src_zp, .dst_zp = dst_zp};
    out->add_zp_first = add_zp_first;
    if (!p->is_max) {
        if (src_zp < -512 || src_zp > 512) return false; /* keeps the sums in 32 bits */
        const int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
        if (taps > QK_POOL_GRID_TAPS) return true;
        out->mean = qk_pool_mean_make(p, out, (int32_t)taps, (int32_t)taps, QK_POOL_FIXED);
        out->is_walk = p->is_walk && qk_pool_walk_means(p, out);
        return true;
    }
    if (!(src_scale > 0.0f) || isinf(src_scale)) return false;
    out->is_walk = p->is_walk;
    int32_t low = p->dst == QDQ_DTYPE_S8 ? INT8_MIN : 0;
    bool zp_fits = dst_zp >= low && dst_zp <= low + 255;
    out->is_same = p->src == p->dst && src_scale == dst_scale && src_zp == dst_zp && zp_fits && src_scale >= 0x1p-60f &&
                   src_scale <= 0x1p60f;
    for (int b = 0; b < 256 && !out->is_same; b++) {
        int32_t q = p->src == QDQ_DTYPE_S8 ? (int8_t)b : b;
        float x = (float)((int64_t)q - src_zp) * src_scale;
        /* The end of an average does the quantizing: the value times one. */
        qk_pool_end end = {0, x, dst_scale, dst_zp, add_zp_first, p->dst == QDQ_DTYPE_S8};
        const int32_t one = 1;
        qk_pool_row_ref.finish(&one, &out->table[b], 1, &end);
    }
    return true;
}

static void requantize(const qk_pool_quant *q, uint8_t *dst, size_t n) {
    if (!q->is_same)
        for (size_t i = 0; i < n; i++)
            dst[i] = q->table[dst[i]];
}

/* Which row of outputs a task is; a plane is an image when channels are last. */
typedef struct place {
    int64_t task, plane, od, oh;
} place;

/* The rows that a window takes, handed over in lots of at most QK_POOL_ADDS. */
typedef struct lot {
    const uint8_t *rows[QK_POOL_ADDS];
    size_t n;
    bool is_first; /* nothing was handed over yet */
} lot;

/* A row of outputs whose windows are whole along d and h: those that are along w, too, as a grid that has a row per window and a
 * column per channel. Returns how many are done from output `first` on. */
static int64_t whole_last(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, const window *d,
                          const window *h, int64_t *first) {
    const int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2], row = p->in[2] * p->c;
    int64_t end;
    if (taps > QK_POOL_GRID_TAPS || (!p->is_max && q->mean.form == QK_POOL_NO_MEAN) ||
        d->end - d->first != p->kernel[0] || h->end - h->first != p->kernel[1])
        return 0;
    whole_windows(p, 2, first, &end);
    if (end == *first) return 0;
    qk_pool_grid g = {.n = (size_t)p->c, .n_rows = (size_t)(end - *first), .step = 1};
    g.src_row = (size_t)(p->stride[2] * p->c);
    g.dst_row = (size_t)p->c;
    g.is_signed = p->src == QDQ_DTYPE_S8;
    g.mean = q->mean;
    for (int64_t kd = 0; kd < p->kernel[0]; kd++)
        for (int64_t kh = 0; kh < p->kernel[1]; kh++)
            for (int64_t kw = 0; kw < p->kernel[2]; kw++)
                g.taps[g.n_taps++] =
                    (size_t)((kd * p->dilation[0] * p->in[1] + kh * p->dilation[1]) * row + kw * p->dilation[2] * p->c);
    g.last_tap = g.taps[g.n_taps - 1];
    const int64_t at = (d->start * p->in[1] + h->start) * row + (*first * p->stride[2] - p->pad_begin[2]) * p->c;
    g.src_bytes = (size_t)(p->in[0] * p->in[1] * row - at);
    g.dst_bytes = g.n_rows * g.dst_row;
    (p->is_max ? p->row->max_grid : p->row->mean_grid)(&g, src + at, dst + *first * p->c);
    if (p->is_max) requantize(q, dst + *first * p->c, g.dst_bytes);
    return end - *first;
}

/* ---- channels last: a task is a row of outputs, a window at a time, all channels at once ---- */

static void run_last(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, place at,
                     char *scratch) {
    size_t c = (size_t)p->c;
    int32_t *sum = (int32_t *)scratch;
    bool is_signed = p->src == QDQ_DTYPE_S8;
    window d = window_at(p, 0, at.od), h = window_at(p, 1, at.oh);
    src += at.plane * p->in[0] * p->in[1] * p->in[2] * p->c;
    dst += at.task * p->out[2] * p->c;
    if (p->is_global && !p->is_max && p->in[0] * p->in[1] * p->in[2] > QK_POOL_ADDS) {
        const int64_t taps = p->in[0] * p->in[1] * p->in[2];
        const qk_pool_end end = end_of(p, q, taps, taps);
        p->row->sum_columns(src, c, (size_t)taps, sum, c, is_signed);
        p->row->finish(sum, dst, c, &end);
        return;
    }
    if (p->is_separate) {
        qk_pool_separate_row(p, q, src, at.od, at.oh, dst, scratch);
        if (!p->is_max) return;
        requantize(q, dst, (size_t)p->out[2] * c);
        for (int64_t ow = 0; ow < p->out[2]; ow++) { /* windows in the padding */
            const window w = window_at(p, 2, ow);
            if (d.end == d.first || h.end == h.first || w.end == w.first)
                memset(dst + (size_t)ow * c, lowest(p->dst), c);
        }
        return;
    }
    int64_t whole_first = 0;
    const int64_t n_whole = whole_last(p, q, src, dst, &d, &h, &whole_first);
    for (int64_t ow = 0; ow < p->out[2]; ow++, dst += c) {
        if (ow >= whole_first && ow < whole_first + n_whole) continue;
        window w = window_at(p, 2, ow);
        int64_t taps = (d.end - d.first) * (h.end - h.first) * (w.end - w.first);
        lot l; /* not initialized as a whole: a kilobyte per window */
        l.n = 0;
        l.is_first = true;
        for (int64_t kd = d.first; kd < d.end; kd++)
            for (int64_t kh = h.first; kh < h.end; kh++) {
                int64_t id = d.start + kd * p->dilation[0], ih = h.start + kh * p->dilation[1];
                const uint8_t *row = src + ((id * p->in[1] + ih) * p->in[2] + w.start) * p->c;
                for (int64_t kw = w.first; kw < w.end; kw++) {
                    if (l.n == QK_POOL_ADDS) {
                        if (p->is_max) {
                            p->row->max_rows(l.rows, l.n, dst, c, 1, is_signed);
                            l.rows[0] = dst;
                        } else {
                            p->row->sum_rows(l.rows, l.n, sum, c, is_signed, !l.is_first);
                        }
                        l.n = p->is_max;
                        l.is_first = false;
                    }
                    l.rows[l.n++] = row + kw * p->dilation[2] * p->c;
                }
            }
        if (p->is_max) {
            if (taps > 0) p->row->max_rows(l.rows, l.n, dst, c, 1, is_signed);
            if (taps > 0)
                requantize(q, dst, c);
            else
                memset(dst, lowest(p->dst), c);
            continue;
        }
        qk_pool_end end = end_of(p, q, taps, d.counted * h.counted * w.counted);
        if (l.is_first) {
            p->row->average_rows(l.rows, l.n, dst, c, 1, is_signed, &end);
        } else {
            p->row->sum_rows(l.rows, l.n, sum, c, is_signed, true);
            p->row->finish(sum, dst, c, &end);
        }
    }
}

/* ---- plain: a task is a row of outputs: the rows of the window first, then the window along the row ---- */

typedef struct row_job {
    const qk_pool *p;
    const qk_pool_quant *q;
    const uint8_t *plane; /* of the source */
    window d, h;
    int64_t n_rows;
    int64_t ow, n_out, x0, span; /* outputs ow … ow+n_out-1 reach the elements x0 … x0+span-1 */
    int64_t lo, hi;              /* those of them that exist, counted from x0 */
} row_job;

static const uint8_t *row_of(const row_job *j, int64_t kd, int64_t kh) {
    const qk_pool *p = j->p;
    int64_t id = j->d.start + kd * p->dilation[0], ih = j->h.start + kh * p->dilation[1];
    return j->plane + (id * p->in[1] + ih) * p->in[2] + j->x0 + j->lo;
}

/* Outputs from `from` on whose windows are alike in what they count. */
static int64_t alike(const row_job *j, int64_t from, window *w_out) {
    window w = window_at(j->p, 2, j->ow + from);
    int64_t end = from + 1, k = j->p->kernel[2];
    *w_out = w;
    if (w.first == 0 && w.end == k) { /* a whole window: so are all until the end of the tensor */
        int64_t room = j->p->in[2] - w.start - ((k - 1) * j->p->dilation[2] + 1);
        return smaller(room / j->p->stride[2] + 1, j->n_out - from);
    }
    for (; end < j->n_out; end++) {
        window v = window_at(j->p, 2, j->ow + end);
        if (v.end - v.first != w.end - w.first || v.counted != w.counted) break;
    }
    *w_out = w;
    return end - from;
}

/* Does no window of the job leave the tensor along w, and are its taps few? Then all are rows of one lot. */
static bool is_one_lot(const row_job *j) {
    return j->lo == 0 && j->hi == j->span && j->n_rows > 0 && j->n_rows * j->p->kernel[2] <= QK_POOL_ADDS;
}

static void one_lot(const row_job *j, lot *l) {
    l->n = 0;
    for (int64_t kd = j->d.first; kd < j->d.end; kd++)
        for (int64_t kh = j->h.first; kh < j->h.end; kh++)
            for (int64_t kw = 0; kw < j->p->kernel[2]; kw++)
                l->rows[l->n++] = row_of(j, kd, kh) + kw * j->p->dilation[2];
}

/* Along w: where windows have no holes, none is if the first and the last one are not. */
static bool none_is_empty(const row_job *j) {
    if (j->lo == 0 && j->hi == j->span) return true;
    const window first = window_at(j->p, 2, j->ow), last = window_at(j->p, 2, j->ow + j->n_out - 1);
    return j->p->dilation[2] == 1 && first.end > first.first && last.end > last.first;
}

static void max_row(const row_job *j, uint8_t *dst, char *scratch) {
    const qk_pool *p = j->p;
    bool is_signed = p->src == QDQ_DTYPE_S8;
    size_t span = (size_t)j->span, valid = (size_t)(j->hi - j->lo), stride = (size_t)p->stride[2];
    size_t n = (size_t)(j->n_out - 1) * stride + 1;
    uint8_t *row = (uint8_t *)scratch, *best = row + span + 64;
    lot l;
    l.n = 0;
    if (is_one_lot(j)) {
        one_lot(j, &l);
    } else {
        memset(row, lowest(p->src), span);
        for (int64_t kd = j->d.first; kd < j->d.end; kd++)
            for (int64_t kh = j->h.first; kh < j->h.end; kh++) {
                if (l.n == QK_POOL_ADDS) {
                    p->row->max_rows(l.rows, l.n, row + j->lo, valid, 1, is_signed);
                    l.rows[0] = row + j->lo;
                    l.n = 1;
                }
                l.rows[l.n++] = row_of(j, kd, kh);
            }
        if (l.n > 0) p->row->max_rows(l.rows, l.n, row + j->lo, valid, 1, is_signed);
        l.n = 0;
        for (int64_t k = 0; k < p->kernel[2]; k++) {
            if (l.n == QK_POOL_ADDS) {
                p->row->max_rows(l.rows, l.n, best, n, 1, is_signed);
                l.rows[0] = best;
                l.n = 1;
            }
            l.rows[l.n++] = row + k * p->dilation[2];
        }
    }
    if (stride <= 2)
        p->row->max_rows(l.rows, l.n, dst, n, stride, is_signed);
    else
        p->row->max_rows(l.rows, l.n, best, n, 1, is_signed);
    if (stride > 2)
        for (size_t i = 0; i < (size_t)j->n_out; i++)
            dst[i] = best[i * stride];
    requantize(j->q, dst, (size_t)j->n_out);
    if (j->n_rows > 0 && none_is_empty(j)) return;
    for (int64_t i = 0; i < j->n_out; i++) { /* windows in the padding */
        window w = window_at(p, 2, j->ow + i);
        if (j->n_rows == 0 || w.end == w.first) dst[i] = lowest(p->dst);
    }
}

static void average_row(const row_job *j, uint8_t *dst, char *scratch) {
    const qk_pool *p = j->p;
    bool is_signed = p->src == QDQ_DTYPE_S8;
    size_t span = (size_t)j->span, valid = (size_t)(j->hi - j->lo), stride = (size_t)p->stride[2];
    size_t n = (size_t)(j->n_out - 1) * stride + 1;
    int32_t *row = (int32_t *)scratch, *sum = row + span + 64;
    lot l;
    l.n = 0;
    window w;
    if (is_one_lot(j)) {
        one_lot(j, &l);
        if (stride <= 2) { /* all windows are whole */
            w = window_at(p, 2, j->ow);
            qk_pool_end end = end_of(p, j->q, (int64_t)l.n, j->d.counted * j->h.counted * w.counted);
            p->row->average_rows(l.rows, l.n, dst, n, stride, is_signed, &end);
            return;
        }
        p->row->sum_rows(l.rows, l.n, sum, n, is_signed, false);
    } else {
        memset(row, 0, span * sizeof *row);
        for (int64_t kd = j->d.first; kd < j->d.end; kd++)
            for (int64_t kh = j->h.first; kh < j->h.end; kh++) {
                if (l.n == QK_POOL_ADDS) {
                    p->row->sum_rows(l.rows, l.n, row + j->lo, valid, is_signed, true);
                    l.n = 0;
                }
                l.rows[l.n++] = row_of(j, kd, kh);
            }
        p->row->sum_rows(l.rows, l.n, row + j->lo, valid, is_signed, true);
        memcpy(sum, row, n * sizeof *sum);
        for (int64_t k = 1; k < p->kernel[2]; k++)
            p->row->add32(sum, row + k * p->dilation[2], n);
    }
    if (stride == 2)
        p->row->every_second32(sum, sum, (size_t)j->n_out);
    else if (stride > 2)
        for (size_t i = 0; i < (size_t)j->n_out; i++)
            sum[i] = sum[i * stride];
    for (int64_t i = 0, m; i < j->n_out; i += m) {
        m = alike(j, i, &w);
        qk_pool_end end = end_of(p, j->q, j->n_rows * (w.end - w.first), j->d.counted * j->h.counted * w.counted);
        p->row->finish(sum + i, dst + i, (size_t)m, &end);
    }
}

static void run_plain(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, place at,
                      char *scratch) {
    int64_t elems = p->in[0] * p->in[1] * p->in[2];
    row_job j = {
        .p = p, .q = q, .plane = src + at.plane * elems, .d = window_at(p, 0, at.od), .h = window_at(p, 1, at.oh)};
    j.n_rows = (j.d.end - j.d.first) * (j.h.end - j.h.first);
    dst += at.task * p->out[2];
    if (p->is_global && elems > 0) {
        bool is_signed = p->src == QDQ_DTYPE_S8;
        if (p->is_max) {
            *dst = p->row->max_of(j.plane, (size_t)elems, is_signed);
            requantize(q, dst, 1);
        } else {
            int32_t sum = (int32_t)p->row->sum8(j.plane, (size_t)elems, is_signed);
            qk_pool_end end = end_of(p, q, elems, elems);
            qk_pool_row_ref.finish(&sum, dst, 1, &end);
        }
        return;
    }
    for (j.ow = 0; j.ow < p->out[2]; j.ow += j.n_out) {
        j.n_out = smaller(p->out[2] - j.ow, ROW_OUTPUTS);
        j.x0 = j.ow * p->stride[2] - p->pad_begin[2];
        j.span = (j.n_out - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2] + 1;
        j.lo = smaller(larger(-j.x0, 0), j.span);
        j.hi = larger(smaller(p->in[2] - j.x0, j.span), j.lo);
        (p->is_max ? max_row : average_row)(&j, dst + j.ow, scratch);
    }
}

/* ---- plain, two axes, few taps: all rows of a plane at once where the windows are whole ---- */

/* One column of windows that are not whole, in n rows where they are whole along h, the first of them at `plane`'s row `y`. */
static void edge_column(const qk_pool *p, const qk_pool_quant *q, const uint8_t *plane, int64_t y, int64_t ow,
                        uint8_t *dst, int64_t n) {
    enum { CHUNK = 64 };
    const window w = window_at(p, 2, ow);
    const int64_t taps = p->kernel[1] * (w.end - w.first);
    const bool is_signed = p->src == QDQ_DTYPE_S8;
    const uint8_t flip = is_signed ? 0x80 : 0;
    const qk_pool_end end = end_of(p, q, taps, p->kernel[1] * w.counted);
    int32_t sums[CHUNK];
    uint8_t results[CHUNK];
    for (int64_t r = 0, m; r < n; r += m) {
        m = smaller(n - r, CHUNK);
        for (int64_t k = 0; k < m; k++) {
            const uint8_t *row = plane + (y + (r + k) * p->stride[1]) * p->in[2] + w.start;
            uint8_t max = 0;
            int32_t sum = 0;
            for (int64_t kh = 0; kh < p->kernel[1]; kh++, row += p->dilation[1] * p->in[2])
                for (int64_t kw = w.first; kw < w.end; kw++) {
                    const uint8_t v = row[kw * p->dilation[2]] ^ flip;
                    max = v > max ? v : max;
                    sum += v;
                }
            results[k] = max ^ flip;
            sums[k] = sum - (is_signed ? 128 : 0) * (int32_t)taps;
        }
        if (!p->is_max)
            p->row->finish(sums, results, (size_t)m, &end);
        else if (taps == 0)
            memset(results, lowest(p->dst), (size_t)m);
        else
            requantize(q, results, (size_t)m);
        for (int64_t k = 0; k < m; k++)
            dst[(r + k) * p->out[2]] = results[k];
    }
}

/* n rows of a plane from `at` on; false: no grid of whole windows in them. */
static bool run_grid(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, place at, int64_t n,
                     char *scratch) {
    qk_pool_grid g = {.is_signed = p->src == QDQ_DTYPE_S8, .mean = q->mean, .step = (size_t)p->stride[2]};
    int64_t first[3], end[3];
    for (int a = 1; a < 3; a++)
        whole_windows(p, a, &first[a], &end[a]);
    const int64_t top = larger(first[1], at.oh), bottom = larger(smaller(end[1], at.oh + n), top);
    const int64_t wide = end[2] - first[2], n_rows = bottom - top;
    if (n_rows == 0 || wide < 8 || (!p->is_max && q->mean.form == QK_POOL_NO_MEAN)) return false;
    const uint8_t *plane = src + at.plane * p->in[1] * p->in[2];
    uint8_t *rows_dst = dst + (at.task + top - at.oh) * p->out[2];
    const int64_t y = top * p->stride[1] - p->pad_begin[1];
    const int64_t from = y * p->in[2] + first[2] * p->stride[2] - p->pad_begin[2];
    g.n = (size_t)wide;
    g.n_rows = (size_t)n_rows;
    g.src_row = (size_t)(p->stride[1] * p->in[2]);
    g.dst_row = (size_t)p->out[2];
    g.pair = p->kernel[2] == 2 && p->dilation[2] == 1 && g.step == 2;
    for (int64_t kh = 0; kh < p->kernel[1]; kh++)
        for (int64_t kw = 0; kw < (g.pair ? 1 : p->kernel[2]); kw++)
            g.taps[g.n_taps++] = (size_t)(kh * p->dilation[1] * p->in[2] + kw * p->dilation[2]);
    g.last_tap = g.taps[g.n_taps - 1];
    g.src_bytes = (size_t)(p->in[1] * p->in[2] - from);
    g.dst_bytes = (size_t)(n_rows * p->out[2] - first[2]);
    (p->is_max ? p->row->max_grid : p->row->mean_grid)(&g, plane + from, rows_dst + first[2]);
    for (int64_t r = 0; r < n_rows && p->is_max && !q->is_same; r++)
        requantize(q, rows_dst + r * p->out[2] + first[2], (size_t)wide);
    for (int64_t ow = 0; ow < p->out[2]; ow++) {
        if (ow == first[2]) ow = end[2];
        if (ow < p->out[2]) edge_column(p, q, plane, y, ow, rows_dst + ow, n_rows);
    }
    for (int64_t r = at.oh, last = r + n; r < last; r++, at.oh++, at.task++)
        if (r < top || r >= bottom) run_plain(p, q, src, dst, at, scratch);
    return true;
}

void qk_pool_run(const qk_pool *pool, const qk_pool_quant *quant, const void *src, void *dst, size_t first, size_t n,
                 void *scratch) {
    if (n == 0) return;
    place at = {.task = (int64_t)first};
    at.oh = at.task % pool->out[1];
    at.od = at.task / pool->out[1] % pool->out[0];
    at.plane = at.task / pool->out[1] / pool->out[0];
    if (quant->is_walk) {
        const size_t row = (size_t)(pool->out[2] * (pool->channels_last ? pool->c : 1));
        qk_pool_walk_run(pool, quant, src, dst, first, n, scratch);
        if (pool->is_max) requantize(quant, (uint8_t *)dst + first * row, n * row);
        return;
    }
    while (pool->is_grid && n > 0) {
        const int64_t n_rows = smaller((int64_t)n, pool->out[1] - at.oh);
        if (!run_grid(pool, quant, src, dst, at, n_rows, scratch)) break;
        n -= (size_t)n_rows;
        at.task += n_rows;
        at.oh = 0;
        at.plane++;
    }
    for (; n > 0; n--, at.task++) {
        (pool->channels_last ? run_last : run_plain)(pool, quant, src, dst, at, scratch);
        if (++at.oh == pool->out[1]) {
            at.oh = 0;
            if (++at.od == pool->out[0]) {
                at.od = 0;
                at.plane++;
            }
        }
    }
}
