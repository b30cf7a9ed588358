/* One channel in, one out, or a few: lines are woven to columns, columns summed up with the weights (conv_dw_row.h). Where the window is one
 * that the level reads where it lies, and results are made in registers, nothing is written but these. */
#include "kernels/conv/conv_dw_row.h"
#include "kernels/conv/conv_impl.h"

static const qk_dw_row *const rows[] = {
#define QK_DW(level) &qk_dw_row_##level,
#include "kernels/conv/conv_dw.def"
#undef QK_DW
};
static const qk_dw_row *const float_rows[] = {
#define QK_DW_FLOAT(level) &qk_dw_float_row_##level,
#include "kernels/conv/conv_dw_float.def"
#undef QK_DW_FLOAT
};

enum {
    COLUMNS = 56,   /* of a chunk, about: 14 KiB in all sets of lines */
    MAX_SPAN = 256, /* of the columns of a lot of outputs; beyond it each output has columns of its own */
    MAX_LINES = 8,  /* of outputs, of a task */
    FEW_TASKS = 24,
    BLOCK_BYTES = QK_DW_BLOCK * 4
};

static const qk_dw_row *row_of(const qk_conv *c) {
    return c->row;
}
static int64_t n_channels(const qk_conv *c) { /* in, and out */
    return c->groups * c->ic;
}
/* Sets of columns. Of one channel: of some lines each. Of groups: of some channels of a line. */
static size_t n_parts(const qk_conv *c) {
    return (size_t)c->ic / row_of(c)->taps;
}
static size_t n_sets(const qk_conv *c) {
    const int64_t lines = c->kernel[0] * c->kernel[1];
    return c->ic == 1 ? (size_t)qk_ceil_div(lines, (int64_t)row_of(c)->taps) : (size_t)lines * n_parts(c);
}
/* Columns from one output to the next, and from one tap to the next. */
static int64_t column_stride(const qk_conv *c) {
    return c->is_woven ? c->stride[2] : c->kernel[2];
}
static int64_t column_dilation(const qk_conv *c) {
    return c->is_woven ? c->dilation[2] : 1;
}
static int64_t span_of(const qk_conv *c, int64_t n_out) {
    return (n_out - 1) * column_stride(c) + (c->kernel[2] - 1) * column_dilation(c) + 1;
}
static int64_t in_lots(int64_t n) {
    return qk_ceil_div(n, QK_DW_OUTPUTS) * QK_DW_OUTPUTS;
}

/* Is the source read where it lies, where results are made in registers? */
static bool is_direct(const qk_conv *c) {
    if ((c->ic == 1 ? row_of(c)->strip : row_of(c)->group_strip) == NULL) return false;
    if (c->is_float) return c->src == QDQ_DTYPE_F32 && c->kernel[0] * c->kernel[1] <= QK_DW_MOST_LINES;
    const bool of_five = c->ic == 1 && c->kernel[1] == 5;
    return c->kernel[0] == 1 && c->kernel[1] == (of_five ? 5 : 3) && c->kernel[2] == c->kernel[1] &&
           c->dilation[2] == 1 && c->stride[2] <= 2;
}

bool qk_conv_depthwise_init(qk_conv *c) {
    size_t i = 0;
    if (c->is_float) {
        while (!qk_isa_has(float_rows[i]->isa)) /* the last is ref, which is always there */
            i++;
        c->row = float_rows[i];
    } else {
        while (!qk_isa_has(rows[i]->isa))
            i++;
        c->row = rows[i];
    }
    c->ends = row_of(c)->ends;
    c->is_woven = true;
    if (span_of(c, QK_DW_OUTPUTS) > MAX_SPAN) c->is_woven = span_of(c, QK_DW_OUTPUTS) <= c->kernel[2] * QK_DW_OUTPUTS;
    const int64_t budget = COLUMNS / (int64_t)n_sets(c); /* all sets of lines in L1 */
    const int64_t most = qk_larger(1, (budget - (c->kernel[2] - 1) * column_dilation(c) - 1) / column_stride(c) + 1);
    c->n_chunks[2] = qk_ceil_div(c->out[2], in_lots(most));
    c->chunk[2] = c->n_chunks[2] == 0 ? 0 : qk_smaller(in_lots(qk_ceil_div(c->out[2], c->n_chunks[2])), c->out[2]);
    c->panel_cols = QK_DW_BLOCK;
    c->n_panels = (size_t)qk_ceil_div(n_channels(c), QK_DW_BLOCK);
    c->n_slots = c->n_panels * QK_DW_BLOCK;
    const int64_t planes = c->n * c->out[0] * (int64_t)c->n_panels; /* a task is some lines of one */
    const int64_t lines = qk_smaller(MAX_LINES, qk_larger(1, planes * c->out[1] / FEW_TASKS));
    c->n_chunks[1] = qk_ceil_div(c->out[1], lines);
    c->chunk[1] = c->out[1] == 0 ? 0 : qk_ceil_div(c->out[1], c->n_chunks[1]);
    c->n_chunks[1] = c->out[1] == 0 ? 0 : qk_ceil_div(c->out[1], c->chunk[1]);
    c->n_tasks = (size_t)(planes * c->n_chunks[1]);
    if (c->out[2] == 0) c->n_tasks = 0;
    const size_t taps = n_sets(c) * (size_t)c->kernel[2];
    const size_t span = (size_t)span_of(c, in_lots(qk_larger(c->chunk[2], 1)));
    size_t columns;
    if (__builtin_mul_overflow(taps, (size_t)BLOCK_BYTES, &c->panel_bytes) ||
        __builtin_mul_overflow(c->panel_bytes, c->n_panels + 1, &c->packed_bytes) ||
        __builtin_add_overflow(c->packed_bytes, c->n_slots * 4, &c->packed_bytes) ||
        __builtin_mul_overflow(n_sets(c) * BLOCK_BYTES, span, &columns))
        return false;
    const size_t sums = (size_t)in_lots(qk_larger(c->chunk[2], 1)) * BLOCK_BYTES;
    return !__builtin_add_overflow(columns, 2 * sums + BLOCK_BYTES, &c->scratch_bytes);
}

/* One value among the `taps` of a dword. */
static void put(const qk_conv *c, int32_t *dword, size_t tap, int32_t value) {
    if (row_of(c)->taps == 4)
        ((int8_t *)dword)[tap] = (int8_t)value;
    else
        ((int16_t *)(void *)dword)[tap] = (int16_t)value;
}

/* Where weight `in` of line `line` is: set and place in the dword. */
static size_t set_of(const qk_conv *c, size_t line, size_t in, size_t *tap_out) {
    const size_t taps = row_of(c)->taps;
    *tap_out = (c->ic == 1 ? line : in) % taps;
    return c->ic == 1 ? line / taps : line * n_parts(c) + in / taps;
}

/* The weights of all channels at one place of the window, from input `in` of their group. */
static void pack_place(const qk_conv *c, const qk_conv_weights *w, int64_t from, size_t line, size_t kw, size_t in,
                       int32_t *totals) {
    int32_t *data = totals + c->n_slots;
    const size_t block = c->panel_bytes / 4;
    size_t tap;
    const size_t set = set_of(c, line, in, &tap), at = (set * (size_t)c->kernel[2] + kw) * QK_DW_BLOCK;
    for (int64_t ch = 0; ch < n_channels(c); ch++) {
        const int64_t weight = from + ch / c->oc * w->g_stride + ch % c->oc * w->o_stride + (int64_t)in * w->i_stride;
        int32_t *to = data + (size_t)(ch / QK_DW_BLOCK) * block + at + ch % QK_DW_BLOCK;
        if (c->is_float) {
            const float f = qk_conv_weight_f32(c, w, weight);
            memcpy(to, &f, sizeof f);
            continue;
        }
        const int32_t value = qk_conv_weight(c, w, weight);
        put(c, to, tap, value);
        totals[ch] = (int32_t)((uint32_t)totals[ch] + (uint32_t)value);
    }
    int32_t *ones = data + c->n_panels * block;
    for (size_t i = 0; i < QK_DW_BLOCK && !c->is_float; i++)
        put(c, ones + at + i, tap, 1);
}

void qk_conv_depthwise_pack(const qk_conv *c, const qk_conv_weights *w, void *packed) {
    memset(packed, 0, c->packed_bytes);
    for (int64_t line = 0; line < c->kernel[0] * c->kernel[1]; line++)
        for (int64_t kw = 0; kw < c->kernel[2]; kw++)
            for (int64_t in = 0; in < c->ic; in++) {
                const int64_t kd = line / c->kernel[1], kh = line % c->kernel[1];
                const int64_t from = kd * w->k_stride[0] + kh * w->k_stride[1] + kw * w->k_stride[2];
                pack_place(c, w, from, (size_t)line, (size_t)kw, (size_t)in, packed);
            }
}

/* What a thread works with. */
typedef struct job {
    const qk_conv *c;
    const qk_conv_run *r;
    int64_t image, od, oh;
    size_t channel, n_channels;
    int32_t *columns;
    const uint8_t *padding; /* a pixel of zero points */
    size_t plane;
} job;

/* Line i of the window at column 0 of the source; NULL in the padding. */
static const uint8_t *line_at(const job *j, size_t i) {
    const qk_conv *c = j->c;
    const int64_t d = j->od * c->stride[0] - c->pad_begin[0] + (int64_t)i / c->kernel[1] * c->dilation[0];
    const int64_t h = j->oh * c->stride[1] - c->pad_begin[1] + (int64_t)i % c->kernel[1] * c->dilation[1];
    if (d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1]) return NULL;
    return qk_conv_pixel(c, j->r->src, ((j->image * c->in[0] + d) * c->in[1] + h) * c->in[2]) +
           j->channel * qk_conv_elem_bytes(c);
}

/* The lines of a set. */
static qk_dw_lines lines_of(const job *j, size_t set) {
    const qk_conv *c = j->c;
    qk_dw_lines l = {.n_channels = j->n_channels, .flip = c->is_float ? 0 : qk_conv_src_flip(c), .type = c->src};
    const size_t most = c->ic == 1 ? row_of(c)->taps : 1, n_lines = (size_t)(c->kernel[0] * c->kernel[1]);
    for (size_t i = c->ic == 1 ? set * most : set / n_parts(c); i < n_lines && l.n < most; i++, l.n++) {
        const uint8_t *line = line_at(j, i);
        l.line[l.n] = line != NULL ? line : j->padding;
        l.step[l.n] = line != NULL ? (size_t)c->src_stride * qk_conv_elem_bytes(c) : 0;
    }
    return l;
}

static void weave(const job *j, const qk_dw_lines *lines, size_t set, size_t n, int32_t *out) {
    const qk_conv *c = j->c;
    if (c->ic == 1)
        row_of(c)->weave(lines, n, out, j->plane);
    else
        row_of(c)->spread(lines, (size_t)c->ic, set % n_parts(c), n, out, j->plane);
}

/* n columns of the source from x on to columns from `at` on; x may lie in the padding, all of it. */
static void weave_some(const job *j, const qk_dw_lines *lines, size_t set, int64_t x, int64_t n, int32_t *out) {
    const qk_conv *c = j->c;
    const size_t lanes = row_of(c)->lanes;
    const int64_t left = qk_smaller(qk_larger(-x, 0), n), right = qk_larger(qk_smaller(c->in[2] - x, n), left);
    if (left > 0 || right < n) {
        qk_dw_lines pad = *lines;
        for (size_t i = 0; i < pad.n; i++) {
            pad.line[i] = j->padding;
            pad.step[i] = 0;
        }
        weave(j, &pad, set, (size_t)left, out);
        weave(j, &pad, set, (size_t)(n - right), out + (size_t)right * lanes);
    }
    if (right == left) return;
    qk_dw_lines in = *lines;
    for (size_t i = 0; i < in.n; i++)
        in.line[i] += (size_t)(x + left) * in.step[i];
    weave(j, &in, set, (size_t)(right - left), out + (size_t)left * lanes);
}

static void weave_all(const job *j, int64_t ow, int64_t n_out) {
    const qk_conv *c = j->c;
    for (size_t g = 0; g < n_sets(c); g++) {
        const qk_dw_lines lines = lines_of(j, g);
        int32_t *out = j->columns + g * j->plane * QK_DW_BLOCK;
        const int64_t x = ow * c->stride[2] - c->pad_begin[2];
        if (c->is_woven) {
            weave_some(j, &lines, g, x, span_of(c, n_out), out);
            continue;
        }
        for (int64_t i = 0; i < n_out; i++)
            for (int64_t k = 0; k < c->kernel[2]; k++)
                weave_some(j, &lines, g, x + i * c->stride[2] + k * c->dilation[2], 1,
                           out + (size_t)(i * c->kernel[2] + k) * row_of(c)->lanes);
    }
}

/* sums -= zp * (sum of the window), for weights with zero points. */
static void subtract_windows(const job *j, size_t n_out, int32_t (*sums)[QK_DW_BLOCK], int32_t (*windows)[QK_DW_BLOCK],
                             const qk_dw_taps *taps, const int32_t *ones, const int32_t *zps) {
    static const int32_t zeros[QK_DW_BLOCK];
    row_of(j->c)->sum(taps, j->columns, ones, zeros, n_out, NULL, windows);
    for (size_t i = 0; i < n_out; i++)
        for (size_t ch = 0; ch < j->n_channels; ch++)
            sums[i][ch] = (int32_t)((uint32_t)sums[i][ch] - (uint32_t)zps[ch] * (uint32_t)windows[i][ch]);
}

static int64_t pixel_of(const job *j, int64_t ow) {
    const qk_conv *c = j->c;
    return ((j->image * c->out[0] + j->od) * c->out[1] + j->oh) * c->out[2] + ow;
}

static void run_line(const job *j, int32_t (*sums)[QK_DW_BLOCK], size_t block) {
    static const int32_t zeros[QK_DW_BLOCK];
    const qk_conv *c = j->c;
    const int32_t *weights = (const int32_t *)j->r->packed + c->n_slots, *terms = j->r->terms;
    const size_t block_dwords = c->panel_bytes / 4;
    const qk_dw_taps taps = {.n_groups = n_sets(c),
                             .group = j->plane * QK_DW_BLOCK,
                             .kernel = (size_t)c->kernel[2],
                             .dilation = (size_t)column_dilation(c),
                             .stride = (size_t)column_stride(c),
                             .plane = j->plane,
                             .n_channels = j->n_channels};
    for (int64_t ow = 0; ow < c->out[2]; ow += c->chunk[2]) {
        const int64_t n_out = qk_smaller(c->chunk[2], c->out[2] - ow), channel = (int64_t)j->channel;
        const bool is_plain = j->r->plain != NULL;
        qk_conv_end end;
        if (is_plain) end = qk_conv_end_of(c, j->r, j->channel, channel, j->n_channels, pixel_of(j, ow));
        weave_all(j, ow, n_out);
        row_of(c)->sum(&taps, j->columns, weights + block * block_dwords, c->is_float ? zeros : terms + j->channel,
                       (size_t)n_out, is_plain ? &end : NULL, sums);
        if (is_plain) continue;
        if (j->r->use_weights_zp && !c->is_float)
            subtract_windows(j, (size_t)n_out, sums, sums + in_lots(c->chunk[2]), &taps,
                             weights + c->n_panels * block_dwords, terms + c->n_slots + j->channel);
        j->r->finish(j->r->arg, sums, QK_DW_BLOCK, pixel_of(j, ow), (size_t)n_out, channel, j->n_channels);
    }
}

/* Lines oh … end-1 of the outputs. */
static void run_direct(job *j, size_t block, int64_t oh, int64_t end) {
    const qk_conv *c = j->c;
    const uint8_t *lines[MAX_LINES * QK_DW_MOST_LINES];
    const size_t window = (size_t)(c->kernel[0] * c->kernel[1]);
    size_t n = 0;
    for (j->oh = oh; j->oh < end; j->oh++)
        for (size_t i = 0; i < window; i++)
            lines[n++] = line_at(j, i);
    j->oh = oh;
    const qk_conv_end e = qk_conv_end_of(c, j->r, j->channel, (int64_t)j->channel, j->n_channels, pixel_of(j, 0));
    const qk_dw_strip strip = {.line = lines,
                               .n_lines = (size_t)(end - oh),
                               .n_window = window,
                               .step = (size_t)c->src_stride * qk_conv_elem_bytes(c),
                               .weights = (const int32_t *)j->r->packed + c->n_slots + block * (c->panel_bytes / 4),
                               .padding = j->padding,
                               .width = c->in[2],
                               .pad = c->pad_begin[2],
                               .n_out = (size_t)c->out[2],
                               .stride = (size_t)c->stride[2],
                               .kernel = (size_t)c->kernel[2],
                               .dilation = (size_t)c->dilation[2],
                               .n_channels = j->n_channels,
                               .in_group = (size_t)c->ic,
                               .flip = c->is_float ? 0 : qk_conv_src_flip(c),
                               .init = c->is_float ? NULL : (const int32_t *)j->r->terms + j->channel,
                               .dst_step = (ptrdiff_t)c->out[2] * e.step};
    (c->ic == 1 ? row_of(c)->strip : row_of(c)->group_strip)(&strip, &e);
}

void qk_conv_depthwise_run(const qk_conv *c, const qk_conv_run *r, size_t first, size_t n, void *scratch) {
    job j = {.c = c, .r = r, .plane = (size_t)span_of(c, in_lots(qk_larger(c->chunk[2], 1)))};
    uint8_t *padding = scratch;
    int32_t(*sums)[QK_DW_BLOCK] = (int32_t(*)[QK_DW_BLOCK])(void *)(padding + BLOCK_BYTES);
    memset(padding, c->is_float ? 0 : r->src_zp & 0xff, BLOCK_BYTES);
    j.padding = padding;
    j.columns = sums[2 * in_lots(qk_larger(c->chunk[2], 1))];
    const bool direct = r->plain != NULL && is_direct(c) && (c->is_float || r->plain->dst != QDQ_DTYPE_F32);
    for (size_t t = first; t < first + n; t++) {
        const size_t block = t % c->n_panels;
        int64_t left = (int64_t)(t / c->n_panels);
        const int64_t oh = left % c->n_chunks[1] * c->chunk[1], end = qk_smaller(oh + c->chunk[1], c->out[1]);
        left /= c->n_chunks[1];
        j.od = left % c->out[0];
        j.image = left / c->out[0];
        j.channel = block * QK_DW_BLOCK;
        j.n_channels = (size_t)qk_smaller(QK_DW_BLOCK, n_channels(c) - (int64_t)j.channel);
        if (direct) {
            run_direct(&j, block, oh, end);
            continue;
        }
        for (j.oh = oh; j.oh < end; j.oh++)
            run_line(&j, sums, block);
    }
}
