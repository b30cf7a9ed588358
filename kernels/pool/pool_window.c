#include "kernels/pool/pool_row.h"

#include <math.h>
#include <string.h>

static const qk_pool_row *const rows[] = {
#define QK_POOL(level) &qk_pool_row_##level,
#include "kernels/pool/pool.def"
#undef QK_POOL
};

/* Outputs of a row that are done at a time: bounds the scratch of long rows. */
enum { ROW_OUTPUTS = 512 };

/* ---- windows along one axis ---- */

/* The taps first … end-1 of a window lie inside the tensor; `counted` lie inside tensor and padding. */
typedef struct window {
    int64_t start, first, end, counted;
} window;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* How many multiples of `step`, from 0 on, lie below `distance`. */
static int64_t steps_below(int64_t distance, int64_t step) {
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

static window window_at(const qk_pool *p, int axis, int64_t o) {
    int64_t k = p->kernel[axis], dil = p->dilation[axis], start = o * p->stride[axis] - p->pad_begin[axis];
    window w = {.start = start};
    w.first = smaller(steps_below(-start, dil), k);
    w.end = larger(smaller(steps_below(p->in[axis] - start, dil), k), w.first);
    w.counted = smaller(steps_below(p->in[axis] + p->pad_end[axis] - start, dil), k);
    return w;
}

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
    size_t outputs = (size_t)(p->out[0] * p->out[1]);
    p->n_tasks = p->out[2] == 0 || p->c == 0 ? 0 : (size_t)p->n * outputs * (p->channels_last ? 1 : (size_t)p->c);
    /* An accumulator of 16 and one of 32 bits per channel; or a row of bytes, of words, and two of 32 bits. */
    size_t elems = p->channels_last ? (size_t)p->c : is_global(p) ? 0 : (size_t)row_span(p);
    p->scratch_bytes = (elems + 64) * (p->channels_last ? 2 + 4 : 2 + 4 + 4);
    return true;
}

qk_isa qk_pool_isa(const qk_pool *p) {
    return p->row->isa;
}

static uint8_t lowest(qdq_dtype d) {
    return d == QDQ_DTYPE_S8 ? 0x80 : 0;
}

bool qk_pool_quant_init(const qk_pool *p, float src_scale, int32_t src_zp, float dst_scale, int32_t dst_zp,
                        bool add_zp_first, qk_pool_quant *out) {
    *out = (qk_pool_quant){.src_scale = src_scale, .dst_scale = dst_scale, .src_zp = src_zp, .dst_zp = dst_zp};
    out->add_zp_first = add_zp_first;
    if (!p->is_max) return src_zp >= -512 && src_zp <= 512; /* keeps the sums in 32 bits */
    if (!(src_scale > 0.0f) || isinf(src_scale)) return false;
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

static qk_pool_end end_of(const qk_pool *p, const qk_pool_quant *q, int64_t taps, int64_t counted) {
    int64_t n = p->count_pad ? counted : taps;
    float factor = (float)((double)q->src_scale / (double)n);
    return (qk_pool_end){(int32_t)(taps * q->src_zp), factor, q->dst_scale, q->dst_zp, q->add_zp_first,
                         p->dst == QDQ_DTYPE_S8};
}

/* ---- channels last: a task is a row of outputs, a window at a time, all channels at once ---- */

static void run_last(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, size_t task,
                     char *scratch) {
    int64_t oh = (int64_t)task % p->out[1], od = (int64_t)task / p->out[1] % p->out[0];
    int64_t image = (int64_t)task / p->out[1] / p->out[0];
    size_t c = (size_t)p->c, padded = (c + 31) / 32 * 32;
    int32_t *acc32 = (int32_t *)scratch;
    int16_t *acc16 = (int16_t *)(scratch + padded * 4);
    bool is_signed = p->src == QDQ_DTYPE_S8;
    window d = window_at(p, 0, od), h = window_at(p, 1, oh);
    src += image * p->in[0] * p->in[1] * p->in[2] * p->c;
    dst += (int64_t)task * p->out[2] * p->c;
    for (int64_t ow = 0; ow < p->out[2]; ow++, dst += c) {
        window w = window_at(p, 2, ow);
        int64_t taps = (d.end - d.first) * (h.end - h.first) * (w.end - w.first), seen = 0;
        if (p->is_max && taps == 0) {
            memset(dst, lowest(p->dst), c);
            continue;
        }
        if (!p->is_max) {
            memset(acc32, 0, c * sizeof *acc32);
            memset(acc16, 0, c * sizeof *acc16);
        }
        for (int64_t kd = d.first; kd < d.end; kd++)
            for (int64_t kh = h.first; kh < h.end; kh++)
                for (int64_t kw = w.first; kw < w.end; kw++) {
                    int64_t id = d.start + kd * p->dilation[0], ih = h.start + kh * p->dilation[1];
                    int64_t iw = w.start + kw * p->dilation[2];
                    const uint8_t *tap = src + ((id * p->in[1] + ih) * p->in[2] + iw) * p->c;
                    if (!p->is_max)
                        p->row->add8(acc16, tap, c, is_signed);
                    else if (seen == 0)
                        memcpy(dst, tap, c);
                    else
                        p->row->max8(dst, tap, c, is_signed);
                    if (++seen % QK_POOL_ADDS == 0 && !p->is_max) {
                        p->row->add16(acc32, acc16, c);
                        memset(acc16, 0, c * sizeof *acc16);
                    }
                }
        if (p->is_max) {
            requantize(q, dst, c);
        } else {
            p->row->add16(acc32, acc16, c);
            qk_pool_end end = end_of(p, q, taps, d.counted * h.counted * w.counted);
            p->row->finish(acc32, dst, c, &end);
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

static void max_row(const row_job *j, uint8_t *dst, char *scratch) {
    const qk_pool *p = j->p;
    bool is_signed = p->src == QDQ_DTYPE_S8;
    size_t span = (size_t)j->span, valid = (size_t)(j->hi - j->lo), stride = (size_t)p->stride[2];
    uint8_t *row = (uint8_t *)scratch, *best = row + span + 64;
    bool is_first = true;
    memset(row, lowest(p->src), span);
    for (int64_t kd = j->d.first; kd < j->d.end; kd++)
        for (int64_t kh = j->h.first; kh < j->h.end; kh++) {
            if (is_first)
                memcpy(row + j->lo, row_of(j, kd, kh), valid);
            else
                p->row->max8(row + j->lo, row_of(j, kd, kh), valid, is_signed);
            is_first = false;
        }
    size_t n = (size_t)(j->n_out - 1) * stride + 1;
    uint8_t *out = stride == 1 ? dst : best;
    memcpy(out, row, n);
    for (int64_t k = 1; k < p->kernel[2]; k++)
        p->row->max8(out, row + k * p->dilation[2], n, is_signed);
    if (stride == 2)
        p->row->every_second(best, dst, (size_t)j->n_out);
    else if (stride > 2)
        for (size_t i = 0; i < (size_t)j->n_out; i++)
            dst[i] = best[i * stride];
    requantize(j->q, dst, (size_t)j->n_out);
    if (p->pad_begin[2] + p->pad_end[2] == 0 && j->n_rows > 0 && j->x0 + j->span <= p->in[2]) return;
    for (int64_t i = 0; i < j->n_out; i++) { /* windows in the padding */
        window w = window_at(p, 2, j->ow + i);
        if (j->n_rows == 0 || w.end == w.first) dst[i] = lowest(p->dst);
    }
}

static void average_row(const row_job *j, uint8_t *dst, char *scratch) {
    const qk_pool *p = j->p;
    bool is_signed = p->src == QDQ_DTYPE_S8;
    size_t span = (size_t)j->span, valid = (size_t)(j->hi - j->lo), stride = (size_t)p->stride[2];
    int32_t *row = (int32_t *)scratch, *sum = row + span + 64;
    int16_t *acc = (int16_t *)(sum + span + 64);
    int64_t seen = 0;
    memset(row, 0, span * sizeof *row);
    memset(acc, 0, valid * sizeof *acc);
    for (int64_t kd = j->d.first; kd < j->d.end; kd++)
        for (int64_t kh = j->h.first; kh < j->h.end; kh++) {
            p->row->add8(acc, row_of(j, kd, kh), valid, is_signed);
            if (++seen % QK_POOL_ADDS == 0) {
                p->row->add16(row + j->lo, acc, valid);
                memset(acc, 0, valid * sizeof *acc);
            }
        }
    p->row->add16(row + j->lo, acc, valid);
    size_t n = (size_t)(j->n_out - 1) * stride + 1;
    memcpy(sum, row, n * sizeof *sum);
    for (int64_t k = 1; k < p->kernel[2]; k++)
        p->row->add32(sum, row + k * p->dilation[2], n);
    for (size_t i = 0; stride > 1 && i < (size_t)j->n_out; i++)
        sum[i] = sum[i * stride];
    window w;
    for (int64_t i = 0, m; i < j->n_out; i += m) {
        m = alike(j, i, &w);
        qk_pool_end end = end_of(p, j->q, j->n_rows * (w.end - w.first), j->d.counted * j->h.counted * w.counted);
        p->row->finish(sum + i, dst + i, (size_t)m, &end);
    }
}

static void run_plain(const qk_pool *p, const qk_pool_quant *q, const uint8_t *src, uint8_t *dst, size_t task,
                      char *scratch) {
    int64_t oh = (int64_t)task % p->out[1], od = (int64_t)task / p->out[1] % p->out[0];
    int64_t plane = (int64_t)task / p->out[1] / p->out[0], elems = p->in[0] * p->in[1] * p->in[2];
    row_job j = {.p = p, .q = q, .plane = src + plane * elems, .d = window_at(p, 0, od), .h = window_at(p, 1, oh)};
    j.n_rows = (j.d.end - j.d.first) * (j.h.end - j.h.first);
    dst += (int64_t)task * p->out[2];
    if (is_global(p) && elems > 0) {
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

void qk_pool_run(const qk_pool *pool, const qk_pool_quant *quant, const void *src, void *dst, size_t first, size_t n,
                 void *scratch) {
    for (size_t task = first; task < first + n; task++)
        (pool->channels_last ? run_last : run_plain)(pool, quant, src, dst, task, scratch);
}
