#include "kernels/pool/pool_separate.h"

#include <string.h>

/* Places along w that a row of results reaches, padding included. */
static int64_t span_of(const qk_pool *p) {
    return (p->out[2] - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2] + 1;
}

bool qk_pool_is_separate(const qk_pool *p) {
    enum { MOST = 1 << 18 }; /* places times channels: what is kept stays in L2 */
    const int64_t down = p->kernel[0] * p->kernel[1], along = p->kernel[2];
    if (!p->channels_last || p->is_global || p->is_walk || p->c == 0 || p->out[2] == 0) return false;
    if (down > QK_POOL_ADDS || along > QK_POOL_ADDS || down * along <= QK_POOL_GRID_TAPS || down < 3) return false;
    if (p->stride[2] * 2 > along || p->dilation[2] > p->in[2]) return false;
    return p->out[2] <= MOST && p->stride[2] <= MOST && span_of(p) <= MOST / p->c;
}

size_t qk_pool_separate_scratch(const qk_pool *p) {
    const size_t row = (size_t)(span_of(p) * p->c);
    return p->is_max ? row + 64 : (row + (size_t)p->c + 64) * sizeof(int32_t);
}

/* The rows of the window. */
static size_t rows_of(const qk_pool *p, const uint8_t *image, const window *d, const window *h, const uint8_t **rows) {
    size_t n = 0;
    for (int64_t kd = d->first; kd < d->end; kd++)
        for (int64_t kh = h->first; kh < h->end; kh++) {
            const int64_t id = d->start + kd * p->dilation[0], ih = h->start + kh * p->dilation[1];
            rows[n++] = image + (id * p->in[1] + ih) * p->in[2] * p->c;
        }
    return n;
}

static void largest(const qk_pool *p, const uint8_t *row, uint8_t *dst) {
    const bool is_signed = p->src == QDQ_DTYPE_S8;
    const size_t c = (size_t)p->c, step = (size_t)p->stride[2] * c, tap = (size_t)p->dilation[2] * c;
    const size_t n = (size_t)p->out[2], at_once = p->stride[2] == 1 ? n : 1;
    for (size_t ow = 0; ow < n; ow += at_once) {
        const uint8_t *taps[QK_POOL_ADDS];
        for (int64_t k = 0; k < p->kernel[2]; k++)
            taps[k] = row + ow * step + (size_t)k * tap;
        p->row->max_rows(taps, (size_t)p->kernel[2], dst + ow * c, at_once * c, 1, is_signed);
    }
}

static void averages(const qk_pool *p, const qk_pool_quant *q, const int32_t *row, int32_t *sum, int64_t n_rows,
                     int64_t counted, uint8_t *dst) {
    const size_t c = (size_t)p->c, step = (size_t)p->stride[2] * c, tap = (size_t)p->dilation[2] * c;
    for (int64_t ow = 0; ow < p->out[2]; ow++, row += step, dst += c) {
        if (ow > 0 && p->stride[2] == 1 && p->dilation[2] == 1) {
            p->row->slide32(sum, row + (p->kernel[2] - 1) * p->c, row - c, c);
        } else {
            memcpy(sum, row, c * sizeof *sum);
            for (int64_t k = 1; k < p->kernel[2]; k++)
                p->row->add32(sum, row + (size_t)k * tap, c);
        }
        const window w = window_at(p, 2, ow);
        const qk_pool_end end = end_of(p, q, n_rows * (w.end - w.first), counted * w.counted);
        p->row->finish(sum, dst, c, &end);
    }
}

void qk_pool_separate_row(const qk_pool *p, const qk_pool_quant *q, const uint8_t *image, int64_t od, int64_t oh,
                          uint8_t *dst, void *scratch) {
    const window d = window_at(p, 0, od), h = window_at(p, 1, oh);
    const int64_t span = span_of(p), lo = smaller(p->pad_begin[2], span);
    const int64_t hi = larger(smaller(p->in[2] + p->pad_begin[2], span), lo);
    const size_t c = (size_t)p->c, before = (size_t)lo * c, n = (size_t)(hi - lo) * c, all = (size_t)span * c;
    const uint8_t *rows[QK_POOL_ADDS];
    const size_t n_rows = rows_of(p, image, &d, &h, rows);
    const bool is_signed = p->src == QDQ_DTYPE_S8;
    if (!p->is_max) {
        int32_t *row = scratch, *sum = row + all;
        memset(row, 0, before * sizeof *row);
        p->row->sum_rows(rows, n_rows, row + before, n, is_signed, false);
        memset(row + before + n, 0, (all - before - n) * sizeof *row);
        averages(p, q, row, sum, (int64_t)n_rows, d.counted * h.counted, dst);
        return;
    }
    uint8_t *row = scratch;
    const uint8_t lowest = is_signed ? 0x80 : 0;
    memset(row, lowest, n_rows > 0 ? before : all);
    if (n_rows > 0) {
        p->row->max_rows(rows, n_rows, row + before, n, 1, is_signed);
        memset(row + before + n, lowest, all - before - n);
    }
    largest(p, row, dst);
}
