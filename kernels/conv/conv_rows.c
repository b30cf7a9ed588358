/* Products of rows with panels, run: a chunk's rows are sorted by the taps that they have, so that a tile multiplies with no others. */
#include "kernels/conv/conv_panels.h"

/* Rows of the same taps. */
typedef struct part {
    uint32_t first, n, first_tap, n_taps;
} part;

typedef struct job {
    const qk_conv *c;
    const qk_conv_run *r;
    int64_t image, group, first_group; /* of the chunk */
    int64_t o[3], n[3];                /* outputs of the chunk */
    size_t n_rows, n_parts, offset;    /* of the group, from where the table points */
    bool is_sorted;                    /* rows are not in the order of pixels */
    bool is_linear;                    /* offsets are those of rows in order, of any chunk */
    qk_conv_scratch s;
    const uint8_t *panels;
    const int32_t *of_taps; /* what panels have of each tap; NULL where it makes no difference */
    uint32_t zero;          /* what padding is, unsigned */
    additions add;          /* starts NULL: none */
    size_t step; /* bytes from row to row, where those of all taps are the same: the table has the first ones; else 0 */
    part parts[QK_CONV_PARTS];
} job;

/* n zero points, as tiles read them. */
static void fill(const job *j, uint8_t *to, size_t n) {
    const qk_conv *c = j->c;
    const uint8_t zero = c->is_float ? 0 : (uint8_t)((uint32_t)j->r->src_zp ^ copy_flip(c));
    const size_t unit = row_of(c)->unit;
    if (unit != 2) {
        memset(to, zero, n * (4 / unit));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = zero;
        to[2 * i + 1] = 0;
    }
}

/* The last whole dword meets weights of zero there, but should be no memory that nobody wrote. */
static void end_line(uint8_t *to) {
    memset(to, 0, sizeof(uint32_t));
}

static void copy_line(const job *j, const uint8_t *src, uint8_t *to) {
    const qk_conv *c = j->c;
    const size_t cell = cell_bytes(c), k = (size_t)c->k, stride = (size_t)c->src_stride * qk_conv_elem_bytes(c);
    const uint8_t flip = copy_flip(c);
    if (!is_dense(c, 2)) {
        for (int64_t i = 0; i < j->n[2]; i++)
            for (int64_t t = 0; t < c->kernel[2]; t++, to += cell) {
                int64_t x;
                if (element_at(c, 2, j->o[2] + i, t, &x) && x >= 0 && x < c->in[2])
                    row_of(c)->copy(src + (size_t)x * stride, to, k, flip, c->src);
                else
                    fill(j, to, k);
            }
        end_line(to);
        return;
    }
    int64_t first;
    const int64_t n = reach(c, 2, j->o[2], j->n[2], &first);
    const int64_t left = qk_smaller(qk_larger(-first, 0), n), right = qk_larger(qk_smaller(c->in[2] - first, n), left);
    fill(j, to, (size_t)left * k);
    fill(j, to + (size_t)right * cell, (size_t)(n - right) * k);
    end_line(to + (size_t)n * cell);
    if (right == left) return;
    src += (size_t)(first + left) * stride;
    to += (size_t)left * cell;
    if (c->src_stride == c->k) {
        row_of(c)->copy(src, to, (size_t)(right - left) * k, flip, c->src);
        return;
    }
    for (int64_t i = left; i < right; i++, src += stride, to += cell)
        row_of(c)->copy(src, to, k, flip, c->src);
}

/* The source's line at (d, h), NULL in the padding. */
static const uint8_t *line_at(const job *j, bool is_one, int64_t d, int64_t h) {
    const qk_conv *c = j->c;
    if (!is_one || d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1]) return NULL;
    return qk_conv_pixel(c, j->r->src, ((j->image * c->in[0] + d) * c->in[1] + h) * c->in[2]) +
           (size_t)(j->group * c->k) * qk_conv_elem_bytes(c);
}

static void copy_lines(const job *j) {
    const qk_conv *c = j->c;
    const bool dense = is_dense(c, 1);
    int64_t first;
    const int64_t n = dense ? reach(c, 1, j->o[1], j->n[1], &first) : j->n[1] * c->kernel[1];
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t i = 0; i < n; i++) {
            int64_t d, h = dense ? first + i : 0;
            bool is_one = element_at(c, 0, j->o[0], kd, &d);
            if (!dense) is_one = element_at(c, 1, j->o[1] + i / c->kernel[1], i % c->kernel[1], &h) && is_one;
            const uint8_t *src = line_at(j, is_one, d, h);
            uint8_t *to = j->s.lines + (size_t)(kd * c->n_cells[1] + i) * c->line_bytes;
            if (src != NULL) {
                copy_line(j, src, to);
                continue;
            }
            fill(j, to, (size_t)c->n_cells[2] * (size_t)c->k);
            end_line(to + (size_t)c->n_cells[2] * cell_bytes(c));
        }
}

/* n addresses, a step apart: four at a time, which do not wait for each other. */
static void point_in_steps(const uint8_t *at, size_t step, int64_t n, const uint8_t **out) {
    for (; n >= 4; n -= 4, at += 4 * step, out += 4) {
        out[0] = at;
        out[1] = at + step;
        out[2] = at + 2 * step;
        out[3] = at + 3 * step;
    }
    for (; n > 0; n--, at += step)
        *out++ = at;
}

/* Addresses of one tap for the first n of one line of outputs, among copied lines. */
static void point_at_copy(const job *j, const int64_t tap[3], int64_t line, int64_t n, const uint8_t **out) {
    const qk_conv *c = j->c;
    int64_t first, at;
    int64_t cell = line * c->kernel[1] + tap[1];
    const bool is_one = element_at(c, 1, j->o[1] + line, tap[1], &at);
    if (is_dense(c, 1)) {
        (void)reach(c, 1, j->o[1], j->n[1], &first);
        cell = at - first;
    }
    const uint8_t *base = j->s.lines + (size_t)(tap[0] * c->n_cells[1] + cell) * c->line_bytes;
    const size_t bytes = cell_bytes(c);
    const bool dense = is_dense(c, 2);
    (void)reach(c, 2, j->o[2], j->n[2], &first);
    if (!c->transposed) { /* every output has its element, a stride apart */
        const int64_t step = dense ? c->stride[2] : c->kernel[2];
        base += (size_t)(tap[2] * (dense ? c->dilation[2] : 1)) * bytes;
        point_in_steps(base, (size_t)step * bytes, n, out);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const bool has = element_at(c, 2, j->o[2] + i, tap[2], &at) && is_one;
        const int64_t x = dense ? at - first : i * c->kernel[2] + tap[2];
        out[i] = has ? base + (size_t)x * bytes : j->s.padding;
    }
}

/* The same in the source itself. */
static void point_at_source(const job *j, const int64_t tap[3], int64_t line, int64_t n, const uint8_t **out) {
    const qk_conv *c = j->c;
    const size_t bytes = (size_t)c->src_stride * qk_conv_elem_bytes(c);
    int64_t d, h, x;
    bool is_one = element_at(c, 0, j->o[0], tap[0], &d);
    is_one = element_at(c, 1, j->o[1] + line, tap[1], &h) && is_one;
    const uint8_t *base = line_at(j, is_one, d, h);
    int64_t i = 0;
    if (base != NULL && !c->transposed) {
        (void)element_at(c, 2, j->o[2], tap[2], &x);
        const int64_t left = x >= 0 ? 0 : qk_smaller(qk_ceil_div(-x, c->stride[2]), n);
        const int64_t end = x >= c->in[2] ? 0 : qk_smaller((c->in[2] - 1 - x) / c->stride[2] + 1, n);
        for (; i < left; i++)
            out[i] = j->s.padding;
        base += (size_t)((x + i * c->stride[2]) * (int64_t)bytes);
        if (i < end) point_in_steps(base, (size_t)c->stride[2] * bytes, end - i, out + i);
        i = qk_larger(i, end);
        base = NULL;
    }
    for (; i < n; i++) {
        const bool has = base != NULL && element_at(c, 2, j->o[2] + i, tap[2], &x) && x >= 0 && x < c->in[2];
        out[i] = has ? base + (size_t)x * bytes : j->s.padding;
    }
}

/* From row to row of every tap, where that is the same for all: pixels that lie as those of the outputs do, or a copied line. */
static size_t row_step(const job *j) {
    const qk_conv *c = j->c;
    const size_t pixel = c->is_copied ? cell_bytes(c) : (size_t)c->src_stride * qk_conv_elem_bytes(c);
    if (c->is_flat) return pixel;
    if (!c->is_copied || c->transposed || j->n[1] != 1 || j->is_sorted) return 0;
    return pixel * (size_t)(is_dense(c, 2) ? c->stride[2] : c->kernel[2]);
}

/* Rows that the table has of each tap. */
static size_t table_rows(const job *j) {
    return j->step == 0 ? j->n_rows : 1;
}

static void make_table(const job *j) {
    const qk_conv *c = j->c;
    const int64_t n = j->step == 0 ? j->n[2] : 1;
    const uint8_t **out = j->s.table, **to;
    int64_t tap[3];
    for (tap[0] = 0; tap[0] < c->kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < c->kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < (c->is_fused ? 1 : c->kernel[2]); tap[2]++, out += table_rows(j))
                for (int64_t line = 0; line < j->n[1]; line++) {
                    const uint32_t *slots = j->s.slots + line * j->n[2];
                    to = !j->is_sorted ? out + line * j->n[2] : j->s.line;
                    (c->is_copied ? point_at_copy : point_at_source)(j, tap, line, n, to);
                    for (int64_t i = 0; i < j->n[2] && j->is_sorted; i++)
                        out[slots[i]] = to[i];
                }
}

/* What the zero points of the weights are to be multiplied with. */
static void sum_rows(const job *j) {
    const qk_conv *c = j->c;
    const size_t n = (size_t)((c->is_fused ? c->kernel[2] : 1) * c->k), bytes = 4 / row_of(c)->unit;
    for (size_t r = 0; r < j->n_rows; r++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < c->n_taps; t++) {
            const uint8_t *run = j->s.table[t * table_rows(j) + (j->step == 0 ? r : 0)] + r * j->step + j->offset;
            for (size_t i = 0; i < n; i++)
                sum += run[i * bytes] ^ tile_flip(c); /* of a word, the low byte is all there is */
        }
        j->s.row_sums[r] = (int32_t)sum;
    }
}

static void subtract_rows(const job *j, size_t first, size_t n, const int32_t *zps, size_t n_cols) {
    for (size_t i = 0; i < n; i++)
        for (size_t col = 0; col < n_cols; col++)
            j->s.sums[i][col] =
                (int32_t)((uint32_t)j->s.sums[i][col] - (uint32_t)zps[col] * (uint32_t)j->s.row_sums[first + i]);
}

/* ---- parts ---- */

/* First and end of the taps of output o that are inside of the source; of all, if none is. */
typedef struct range {
    int64_t first, end;
} range;

static range inside(const qk_conv *c, int axis, int64_t o) {
    const int64_t at = o * c->stride[axis] - c->pad_begin[axis], left = c->in[axis] - at;
    range r;
    r.first = at >= 0 ? 0 : qk_smaller(qk_ceil_div(-at, c->dilation[axis]), c->kernel[axis]);
    r.end = left <= 0 ? 0 : qk_smaller(qk_ceil_div(left, c->dilation[axis]), c->kernel[axis]);
    return r.first < r.end ? r : (range){0, c->kernel[axis]};
}

enum { FIRST_COLUMNS = 16, LAST_COLUMNS, N_KINDS };

typedef struct box {
    range h, w;
    uint32_t n;
} box;

static void add_to_box(box *b, range h, range w) {
    if (b->n++ == 0) {
        b->h = h;
        b->w = w;
    }
    b->h = (range){qk_smaller(b->h.first, h.first), qk_larger(b->h.end, h.end)};
    b->w = (range){qk_smaller(b->w.first, w.first), qk_larger(b->w.end, w.end)};
}

/* Of what kind the columns are, the first and the last ones by their taps, 0 the others; and what these are. */
static void sort_columns(const job *j, uint32_t *kinds, box *boxes) {
    const qk_conv *c = j->c;
    for (int64_t i = 0; i < j->n[2]; i++) {
        const range w = inside(c, 2, j->o[2] + i);
        kinds[i] = w.first > 0 && w.end == c->kernel[2]   ? FIRST_COLUMNS
                   : w.first == 0 && w.end < c->kernel[2] ? LAST_COLUMNS
                                                          : 0;
        if (kinds[i] == 0) continue;
        add_to_box(&boxes[kinds[i]], (range){0, c->kernel[1]}, w);
    }
}

/* The kinds of all outputs of the chunk, to slots, and what taps each kind has. Without columns, the rows stay in order. */
static void sort_by_padding(job *j, box *boxes) {
    const qk_conv *c = j->c;
    const range all = {0, c->kernel[2]};
    uint32_t columns[QK_CONV_NARROW] = {0}, kind = 0, *slots = j->s.slots;
    j->is_sorted = qk_conv_sorts(c) && j->n[1] >= QK_CONV_LINES - 1;
    if (j->is_sorted) sort_columns(j, columns, boxes);
    range last = inside(c, 1, j->o[1]);
    for (int64_t line = 0; line < j->n[1]; line++) {
        const range h = inside(c, 1, j->o[1] + line);
        if ((h.first != last.first || h.end != last.end) && kind < FIRST_COLUMNS - 1) kind++;
        last = h;
        add_to_box(&boxes[kind], h, all);
        boxes[kind].n += (uint32_t)j->n[2] - 1;
        for (int64_t i = 0; i < j->n[2] && j->is_sorted; i++)
            *slots++ = columns[i] != 0 ? columns[i] : kind;
    }
}

static uint32_t list_box(const job *j, const box *b, uint32_t *taps) {
    const qk_conv *c = j->c;
    const int64_t width = c->is_fused ? 1 : c->kernel[2];
    const range d = inside(c, 0, j->o[0]);
    uint32_t n = 0;
    for (int64_t kd = d.first; kd < d.end; kd++)
        for (int64_t kh = b->h.first; kh < b->h.end; kh++)
            for (int64_t kw = c->is_fused ? 0 : b->w.first; kw < (c->is_fused ? 1 : b->w.end); kw++)
                taps[n++] = (uint32_t)((kd * c->kernel[1] + kh) * width + kw);
    return n;
}

/* The same of a transposed one: outputs a stride apart have the same taps. */
static uint32_t phases(const qk_conv *c) {
    const int64_t n = c->stride[1] > QK_CONV_PARTS || c->stride[2] > QK_CONV_PARTS ? 0 : c->stride[1] * c->stride[2];
    return n > QK_CONV_PARTS ? 0 : (uint32_t)n;
}
static void sort_by_phase(const job *j) {
    const qk_conv *c = j->c;
    uint32_t *slots = j->s.slots;
    for (int64_t line = 0; line < j->n[1]; line++)
        for (int64_t i = 0; i < j->n[2]; i++)
            *slots++ = (uint32_t)((j->o[1] + line) % c->stride[1] * c->stride[2] + (j->o[2] + i) % c->stride[2]);
}
static uint32_t list_phase(const job *j, int64_t phase, uint32_t *taps) {
    const qk_conv *c = j->c;
    uint32_t n = 0, tap = 0;
    int64_t at;
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++, tap++)
                if (element_at(c, 0, j->o[0], kd, &at) && element_at(c, 1, phase / c->stride[2], kh, &at) &&
                    element_at(c, 2, phase % c->stride[2], kw, &at))
                    taps[n++] = tap;
    return n;
}

/* Rows to the places of their kinds. */
static void place_rows(job *j, const uint32_t *counts, uint32_t n_kinds) {
    uint32_t next[QK_CONV_PARTS], first = 0;
    for (uint32_t k = 0; k < n_kinds; k++) {
        next[k] = first;
        first += counts[k];
    }
    for (uint32_t i = 0; i < j->n_rows; i++) {
        j->s.slots[i] = next[j->s.slots[i]]++;
        j->s.pixels[j->s.slots[i]] = i;
    }
}

/* All taps for all rows. */
static void make_one_part(job *j) {
    uint32_t n = 0;
    for (; n < j->c->n_taps; n++)
        j->s.taps[n] = n;
    j->parts[0] = (part){0, (uint32_t)j->n_rows, 0, n};
    j->n_parts = 1;
    j->is_sorted = false;
}

/* Sort the rows, and list the taps of the parts, of n_kinds at most. */
static void make_parts(job *j, uint32_t n_kinds) {
    const qk_conv *c = j->c;
    uint32_t n_taps = 0, first = 0, counts[QK_CONV_PARTS] = {0}, *taps = j->s.taps;
    box boxes[N_KINDS] = {{{0, 0}, {0, 0}, 0}};
    j->n_parts = 0;
    j->is_sorted = c->transposed;
    if (c->transposed)
        sort_by_phase(j);
    else
        sort_by_padding(j, boxes);
    for (size_t i = 0; i < j->n_rows && j->is_sorted; i++)
        counts[j->s.slots[i]]++;
    for (uint32_t k = 0; k < n_kinds; k++) {
        part p = {first, j->is_sorted ? counts[k] : boxes[k].n, n_taps, 0};
        if (p.n == 0) continue;
        first += p.n;
        p.n_taps = c->transposed ? list_phase(j, k, taps + n_taps) : list_box(j, &boxes[k], taps + n_taps);
        n_taps += p.n_taps;
        j->parts[j->n_parts++] = p;
    }
    if (j->is_sorted) place_rows(j, counts, n_kinds);
}

/* ---- products ---- */

/* What the sums of a part start with: taps that are left out are padding. */
static const int32_t *init_of(const job *j, const part *p, size_t slot, int32_t *room) {
    static const int32_t zeros[QK_TILE_COLS];
    const qk_conv *c = j->c;
    if (c->is_float) return zeros;
    const int32_t *init = (const int32_t *)j->r->terms + slot;
    const uint32_t *taps = j->s.taps + p->first_tap;
    if (j->of_taps == NULL || j->zero == 0 || p->n_taps == c->n_taps) return init;
    memcpy(room, init, c->panel_cols * sizeof *room);
    for (uint32_t tap = 0, i = 0; tap < c->n_taps; tap++) {
        if (i < p->n_taps && taps[i] == tap) {
            i++;
            continue;
        }
        const int32_t *of_tap = j->of_taps + tap * c->n_slots + slot;
        for (size_t col = 0; col < c->panel_cols; col++)
            room[col] = (int32_t)((uint32_t)room[col] + j->zero * (uint32_t)of_tap[col]);
    }
    return room;
}

/* Rows first … first+n-1 times panel p of the group. */
static void run_rows(const job *j, size_t first, size_t n, size_t p, qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]) {
    const qk_conv *c = j->c;
    const size_t panel = (size_t)j->group * c->n_panels + p;
    const int32_t *weights = (const int32_t *)(const void *)(j->panels + panel * c->panel_bytes);
    int32_t room[QK_TILE_COLS];
    qk_tile t = {.n_dwords = c->tap_k,
                 .tap_stride = table_rows(j),
                 .step = j->step,
                 .n_cols = cols_of(c, p),
                 .flip = 0x01010101u * tile_flip(c)};
    if (j->add.starts != NULL) {
        const size_t from = j->add.starts[panel];
        t.n_added = j->add.starts[panel + 1] - from;
        t.places = j->add.places + from;
        t.added = j->add.weights + from * c->panel_cols;
    }
    for (size_t i = 0; i < j->n_parts; i++) {
        const part *some = &j->parts[i];
        const size_t from = some->first > first ? some->first : first;
        const size_t part_end = some->first + some->n, to = part_end < first + n ? part_end : first + n;
        if (from >= to) continue;
        const int32_t *init = init_of(j, some, panel * c->panel_cols, room);
        t.taps = j->s.taps + some->first_tap;
        t.n_taps = some->n_taps;
        if (end != NULL) end->rows = j->s.offsets + from;
        t.offset = j->offset + from * j->step;
        row_of(c)->tiles(&t, j->s.table + (j->step == 0 ? from : 0), to - from, weights, init, end,
                         end == NULL ? sums + (from - first) : NULL);
    }
}

/* Rows first … first+n-1 times panels p … p+n_panels-1 of the group, to the caller's function. */
static void run_lot(const job *j, size_t first, size_t n, size_t p, size_t n_panels, int64_t pixel) {
    const qk_conv *c = j->c;
    const int32_t *terms = j->r->terms;
    for (size_t i = 0; i < n_panels; i++)
        run_rows(j, first, n, p + i, NULL, (int32_t(*)[QK_TILE_COLS])(j->s.sums[0] + i * c->panel_cols));
    const int64_t channel = (int64_t)(p * c->panel_cols),
                  cols = qk_smaller((int64_t)(n_panels * c->panel_cols), c->m - channel);
    if (j->r->use_weights_zp && !c->is_float)
        subtract_rows(j, first, n, terms + c->n_slots + ((size_t)j->group * c->n_panels + p) * c->panel_cols,
                      (size_t)cols);
    for (size_t i = 0, m = n; i < n; i += m) { /* neighbours */
        const uint32_t *pixels = j->s.pixels + first + i;
        for (m = j->is_sorted ? 1 : n; i + m < n && pixels[m] == pixels[0] + m; m++)
            ;
        j->r->finish(j->r->arg, j->s.sums[i], QK_TILE_COLS, pixel + (j->is_sorted ? pixels[0] : (int64_t)first), m,
                     j->group * c->m + channel, (size_t)cols);
    }
}

/* One panel, or a few, of the job's group. */
static void run_panels(job *j, size_t p, size_t n_panels, int64_t pixel) {
    const qk_conv *c = j->c;
    if (j->r->plain == NULL) {
        for (size_t r = 0, n; r < j->n_rows; r += n) {
            n = j->n_rows - r <= QK_CONV_MOST ? j->n_rows - r : QK_CONV_LOT;
            run_lot(j, r, n, p, n_panels, pixel);
        }
        return;
    }
    const int64_t channel = (int64_t)(p * c->panel_cols);
    qk_conv_end e =
        qk_conv_end_of(c, j->r, ((size_t)j->group * c->n_panels + p) * c->panel_cols, j->group * c->m + channel,
                       (size_t)qk_smaller((int64_t)c->panel_cols, c->m - channel), pixel);
    run_rows(j, 0, j->n_rows, p, &e, NULL);
}

/* Where results of rows are, from the first pixel of the chunk. */
static void place_results(job *j) {
    const ptrdiff_t bytes = j->r->plain->dst == QDQ_DTYPE_F32 ? 4 : 1, step = j->r->plain->dst_stride * bytes;
    const size_t n = j->is_sorted ? j->n_rows : j->is_linear ? 0 : (size_t)(j->c->chunk[1] * j->c->chunk[2]);
    for (size_t i = 0; i < n; i++)
        j->s.offsets[i] = (ptrdiff_t)(j->is_sorted ? j->s.pixels[i] : i) * step;
    j->is_linear = !j->is_sorted;
}

/* What the tasks of a chunk share. */
static void begin_chunk(job *j) {
    const qk_conv *c = j->c;
    j->n_rows = (size_t)(j->n[1] * j->n[2]);
    j->group = j->first_group;
    j->offset = 0;
    if (c->is_copied) copy_lines(j);
    const uint32_t n_kinds = c->n_taps == 1 ? 0 : c->transposed ? phases(c) : N_KINDS;
    if (n_kinds == 0)
        make_one_part(j);
    else
        make_parts(j, n_kinds);
    j->step = row_step(j);
    make_table(j);
    if (j->r->plain != NULL) place_results(j);
}

static void run_task(job *j, size_t split) {
    const qk_conv *c = j->c;
    const int64_t all = (int64_t)c->n_panels * c->task_groups;
    const int64_t from = all * (int64_t)split / c->n_splits, end = all * ((int64_t)split + 1) / c->n_splits;
    const int64_t at_once = j->r->plain != NULL ? 1 : (int64_t)(QK_TILE_COLS / c->panel_cols);
    const int64_t pixel = ((j->image * c->out[0] + j->o[0]) * c->out[1] + j->o[1]) * c->out[2] + j->o[2];
    for (int64_t i = from, n; i < end; i += n) {
        const int64_t panels = (int64_t)c->n_panels, p = i % panels;
        n = qk_smaller(qk_smaller(at_once, panels - p), end - i);
        j->group = j->first_group + i / panels;
        j->offset = (size_t)(i / panels) * cell_bytes(c);
        if (j->r->use_weights_zp && !c->is_float && (i == from || p == 0)) sum_rows(j);
        run_panels(j, (size_t)p, (size_t)n, pixel);
    }
}

/* Where chunk i begins, of chunks as large as each other as far as it goes, and the same from both ends. */
static int64_t chunk_at(const qk_conv *c, int axis, int64_t i) {
    return (c->out[axis] * i + c->n_chunks[axis] / 2) / c->n_chunks[axis];
}

static void find_chunk(job *j, int64_t number) {
    const qk_conv *c = j->c;
    const int64_t group_tasks = c->g / c->task_groups;
    j->first_group = number % group_tasks * c->task_groups;
    number /= group_tasks;
    for (int a = 2; a >= 0; a--) {
        const int64_t i = number % c->n_chunks[a];
        j->o[a] = chunk_at(c, a, i);
        j->n[a] = chunk_at(c, a, i + 1) - j->o[a];
        number /= c->n_chunks[a];
    }
    j->image = number;
}

void qk_conv_panels_run(const qk_conv *conv, const qk_conv_run *r, size_t first, size_t n, void *scratch) {
    const uint8_t *panels = (const uint8_t *)r->packed + panels_at(conv);
    const bool is_bytes =
        row_of(conv)->bytes != NULL && ((const head *)(const void *)(panels - sizeof(head)))->is_bytes;
    const qk_conv bytes = is_bytes ? in_bytes(conv) : *conv, *c = &bytes;
    job j = {
        .c = c,
        .r = r,
        .panels = panels,
    };
    if (is_bytes) {
        const uint32_t *starts = (const uint32_t *)(const void *)(panels + n_all_panels(c) * c->panel_bytes);
        size_t end;
        j.add = additions_at(c, (void *)(uintptr_t)panels, starts[n_all_panels(c)], &end);
    }
    j.s = qk_conv_scratch_at(conv, scratch);
    fill(&j, j.s.padding, qk_conv_padding(c) / 4 * row_of(c)->unit);
    j.zero = c->is_float ? 0 : (uint32_t)r->src_zp + qk_conv_src_flip(c);
    if (n_tap_totals(c) != 0) j.of_taps = (const int32_t *)r->packed + c->n_slots;
    for (size_t t = first; t < first + n; t++) {
        const size_t split = t % (size_t)c->n_splits;
        if (t == first || split == 0) {
            find_chunk(&j, (int64_t)t / c->n_splits);
            begin_chunk(&j);
        }
        run_task(&j, split);
    }
}
