/* Convolution as products: the rows are pixels of the output, each of them n_taps runs of channels; the columns are output
 * channels, packed in panels. What a row's runs are is a table of addresses: of the source itself, or of lines copied from it. */
#include "kernels/conv/conv_impl.h"
#include "kernels/conv/conv_tile_row.h"

static const qk_tile_row *const rows_of_ints[] = {
#define QK_TILE(level) &qk_tile_row_##level,
#include "kernels/conv/conv_tile.def"
#undef QK_TILE
};
static const qk_tile_row *const rows_of_floats[] = {
#define QK_TILE_FLOAT(level) &qk_tile_float_row_##level,
#include "kernels/conv/conv_tile_float.def"
#undef QK_TILE_FLOAT
};

enum {
    LOT = 2 * QK_TILE_ROWS,        /* rows whose sums are finished at a time … */
    MOST = LOT + QK_TILE_ROWS - 1, /* … or a few more, at the end */
    CHUNK = 96,                    /* rows of a chunk, about */
    CHUNK_OF_MANY = 240,           /* with weights that no cache close by holds */
    TABLE = 8192,                  /* addresses, about */
    SLACK = 64,                    /* behind what is copied: tiles read whole dwords */
    SHORT_RUN = 12,                /* bytes: shorter taps are better copied and fused */
    FEW_TASKS = 16,
    FEW_ROWS = 18 /* of a chunk that is not cut for the sake of more tasks */
};

static const qk_tile_row *row_of(const qk_conv *c) {
    return c->row;
}
static size_t tile_rows(const qk_conv *c) {
    return row_of(c)->max_rows[c->panel_cols / row_of(c)->lanes - 1];
}
/* What sources are xored with while they are copied, and what tiles xor. */
static uint8_t copy_flip(const qk_conv *c) {
    return row_of(c)->flips ? 0 : qk_conv_src_flip(c);
}
static uint8_t tile_flip(const qk_conv *c) {
    return row_of(c)->flips ? qk_conv_src_flip(c) : 0;
}
static size_t cell_bytes(const qk_conv *c) { /* a pixel of a group where tiles read it */
    return (size_t)c->k * 4 / row_of(c)->unit;
}

/* ---- which elements of an axis ---- */

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* The element that tap k of output o is multiplied with, perhaps outside of the source; false: none. */
static inline bool element_at(const qk_conv *c, int axis, int64_t o, int64_t k, int64_t *at) {
    if (!c->transposed) {
        *at = o * c->stride[axis] - c->pad_begin[axis] + k * c->dilation[axis];
        return true;
    }
    const int64_t from = o + c->pad_begin[axis] - k * c->dilation[axis];
    *at = floor_div(from, c->stride[axis]);
    return from == *at * c->stride[axis];
}

/* The elements that outputs o … o+n-1 reach. */
static int64_t reach(const qk_conv *c, int axis, int64_t o, int64_t n, int64_t *first) {
    const int64_t window = (c->kernel[axis] - 1) * c->dilation[axis];
    if (!c->transposed) {
        *first = o * c->stride[axis] - c->pad_begin[axis];
        return (n - 1) * c->stride[axis] + window + 1;
    }
    *first = floor_div(o + c->pad_begin[axis] - window, c->stride[axis]);
    return floor_div(o + n - 1 + c->pad_begin[axis], c->stride[axis]) - *first + 1;
}

/* Cells of a chunk along an axis: the elements that it reaches, or one per output and tap where these are fewer. */
static bool is_dense(const qk_conv *c, int axis) {
    return c->n_cells[axis] < c->chunk[axis] * c->kernel[axis];
}

/* ---- packed weights: totals of the slots | head, where there are two forms | panels | what is added in the form of bytes ---- */

typedef struct head {
    int32_t is_bytes;
    int32_t unused[15];
} head;

static size_t panels_at(const qk_conv *c) {
    return qk_round_up(c->n_slots * 4, 64) + (row_of(c)->bytes != NULL ? sizeof(head) : 0);
}

/* Panel i's places and weights are number starts[i] … starts[i + 1] - 1. */
typedef struct additions {
    uint32_t *starts;
    qk_tile_place *places;
    int32_t *weights;
} additions;

static size_t n_all_panels(const qk_conv *c) {
    return c->n_panels * (size_t)c->g;
}

/* Behind the panels of the form of bytes, n of them in all. */
static additions additions_at(const qk_conv *bytes, void *panels, size_t n, size_t *end_out) {
    uint8_t *at = (uint8_t *)panels + n_all_panels(bytes) * bytes->panel_bytes;
    additions a = {.starts = (uint32_t *)(void *)at};
    at += qk_round_up((n_all_panels(bytes) + 1) * sizeof *a.starts, 64);
    a.places = (qk_tile_place *)(void *)at;
    at += qk_round_up(n * sizeof *a.places, 64);
    a.weights = (int32_t *)(void *)at;
    *end_out = (size_t)(at - (uint8_t *)panels) + n * bytes->panel_cols * sizeof *a.weights;
    return a;
}

/* The same convolution in the form of bytes; packing, chunks and scratch stay. */
static qk_conv in_bytes(const qk_conv *c) {
    qk_conv b = *c;
    b.row = row_of(c)->bytes;
    b.tap_k = (size_t)qk_ceil_div((c->is_fused ? c->kernel[2] : 1) * c->k, (int64_t)row_of(&b)->unit);
    b.panel_bytes = b.n_taps * b.tap_k * b.panel_cols * 4;
    /* where nothing but words asked for copies */
    if (c->kernel[2] == 1 && c->k % 4 == 0) b.is_copied = false;
    return b;
}

/* ---- init ---- */

/* A pointwise convolution does not care where its pixels are. */
static void flatten(qk_conv *c) {
    int64_t pixels = c->n;
    for (int a = 0; a < 3; a++) {
        if (c->kernel[a] != 1 || c->stride[a] != 1 || c->pad_begin[a] != 0 || c->in[a] != c->out[a]) return;
        pixels *= c->in[a];
    }
    if (pixels > INT32_MAX) return;
    c->n = c->in[0] = c->in[1] = c->out[0] = c->out[1] = 1;
    c->in[2] = c->out[2] = pixels;
}

/* Narrow groups are computed several at a time: the columns are there anyway. */
static void merge_groups(qk_conv *c) {
    const int64_t narrow = 16;
    if (qk_conv_sums_pixels(c) || c->is_float || c->oc >= narrow) return;
    for (int64_t by = narrow / c->oc; by > 1; by--)
        if (c->groups % by == 0) {
            c->merged = by;
            c->g = c->groups / by;
            c->k = c->ic * by;
            c->m = c->oc * by;
            return;
        }
}

/* The width of panels with the fewest columns that only fill. One vector at a time costs more than several. */
static void set_panels(qk_conv *c) {
    const int64_t lanes = (int64_t)row_of(c)->lanes;
    int64_t least = INT64_MAX;
    for (int64_t cols = lanes; cols <= (int64_t)row_of(c)->max_cols; cols += lanes) {
        const int64_t n = qk_ceil_div(c->m, cols), cost = n * cols * (cols == lanes ? 9 : 8);
        if (cost > least) continue;
        least = cost;
        c->n_panels = (size_t)n;
        c->panel_cols = (size_t)cols;
    }
}

static void set_chunks(qk_conv *c) {
    int64_t rows = c->panel_bytes * c->n_panels > 256u << 10 ? CHUNK_OF_MANY : CHUNK;
    rows = qk_larger(qk_smaller(rows, TABLE / (int64_t)c->n_taps), 6);
    const int64_t all = c->n * c->g * c->out[0] * c->out[1] * c->out[2] * qk_smaller((int64_t)c->n_panels, FEW_TASKS);
    rows = qk_smaller(rows, qk_larger(qk_ceil_div(all, FEW_TASKS), FEW_ROWS));
    const int64_t w = c->out[2], h = c->out[1];
    c->chunk[0] = c->chunk[1] = 1;
    c->chunk[2] = w;
    if (w > rows) {
        c->chunk[2] = qk_ceil_div(w, qk_ceil_div(w, rows));
    } else if (w > 0 && h > 0) {
        const int64_t lines = qk_larger(1, rows / w);
        c->chunk[1] = qk_ceil_div(h, qk_ceil_div(h, lines));
    }
    for (int a = 0; a < 3; a++) {
        int64_t first;
        c->n_chunks[a] = c->chunk[a] == 0 ? 0 : qk_ceil_div(c->out[a], c->chunk[a]);
        c->n_cells[a] = c->chunk[a] * c->kernel[a];
        /* the first output of a chunk decides how many elements a transposed one reaches: at most one more than here */
        const int64_t n = reach(c, a, 0, qk_larger(c->chunk[a], 1), &first) + c->transposed;
        if (n < c->n_cells[a]) c->n_cells[a] = n;
    }
}

static bool set_bytes(qk_conv *c) {
    const size_t unit = row_of(c)->unit, slots = c->n_panels * c->panel_cols;
    size_t n;
    if (__builtin_mul_overflow(c->n_taps * c->tap_k, c->panel_cols * 4, &c->panel_bytes) ||
        __builtin_mul_overflow(c->panel_bytes, c->n_panels * (size_t)c->g, &c->packed_bytes) ||
        __builtin_mul_overflow(slots, (size_t)c->g, &c->n_slots) ||
        __builtin_add_overflow(c->packed_bytes, panels_at(c), &c->packed_bytes))
        return false;
    set_chunks(c);
    const size_t n_rows = (size_t)(c->chunk[1] * c->chunk[2]);
    c->table_bytes = qk_round_up(c->n_taps * n_rows * sizeof(void *), 64);
    c->line_bytes = c->lines_bytes = 0;
    if (c->is_copied) {
        const size_t cell = (size_t)c->k * 4 / unit;
        if (__builtin_mul_overflow((size_t)c->n_cells[2], cell, &n)) return false;
        c->line_bytes = qk_round_up(n + SLACK, 64);
        if (__builtin_mul_overflow((size_t)(c->kernel[0] * c->n_cells[1]), c->line_bytes, &c->lines_bytes))
            return false;
    }
    const size_t padding = qk_round_up(c->tap_k * 4 + SLACK, 64);
    const size_t fixed = sizeof(int32_t[MOST][QK_TILE_COLS]) + qk_round_up(n_rows * 4, 64) + padding;
    return !__builtin_add_overflow(c->lines_bytes, fixed + c->table_bytes, &c->scratch_bytes);
}

bool qk_conv_panels_init(qk_conv *c) {
    const qk_tile_row *const *row = c->is_float ? rows_of_floats : rows_of_ints;
    while (!qk_isa_has((*row)->isa)) /* the last is ref, which is always there */
        row++;
    c->row = *row;
    const int64_t unit = (int64_t)(*row)->unit;
    flatten(c);
    merge_groups(c);
    const bool is_short = c->k * 4 / unit <= SHORT_RUN && c->kernel[2] > 1 && !c->is_float;
    c->is_copied =
        c->is_float ? c->src != QDQ_DTYPE_F32 : unit != 4 || copy_flip(c) != 0 || c->k % unit != 0 || is_short;
    c->is_fused = c->is_copied && c->dilation[2] == 1 && !c->transposed;
    const int64_t fused = c->is_fused ? c->kernel[2] : 1;
    c->n_taps = (size_t)(c->kernel[0] * c->kernel[1] * (c->kernel[2] / fused));
    c->tap_k = (size_t)qk_ceil_div(fused * c->k, unit);
    set_panels(c);
    c->ends = (*row)->ends;
    if (!set_bytes(c)) return false;
    const int64_t chunks = c->n * c->n_chunks[0] * c->n_chunks[1] * c->n_chunks[2] * c->g;
    c->n_splits =
        chunks == 0 || chunks >= FEW_TASKS ? 1 : qk_smaller(qk_ceil_div(FEW_TASKS, chunks), (int64_t)c->n_panels);
    c->n_tasks = (size_t)(chunks * c->n_splits);
    return true;
}

/* ---- packing ---- */

/* Where element `k` of the run of `tap` is among the dwords of a panel: its byte, for column 0. */
static size_t place_of(const qk_conv *c, size_t tap, size_t k) {
    const size_t unit = row_of(c)->unit;
    return (tap * c->tap_k + k / unit) * c->panel_cols * 4 + k % unit * (4 / unit);
}

static void put(const qk_conv *c, uint8_t *to, const qk_conv_weights *w, int64_t from, int32_t *total) {
    if (c->is_float) {
        const float f = qk_conv_weight_f32(c, w, from);
        memcpy(to, &f, sizeof f);
        return;
    }
    const int32_t value = qk_conv_weight(c, w, from);
    const int16_t word = (int16_t)value;
    if (row_of(c)->unit == 4)
        *to = (uint8_t)value;
    else
        memcpy(to, &word, sizeof word);
    *total = (int32_t)((uint32_t)*total + (uint32_t)value);
}

static void pack_panels(const qk_conv *c, const qk_conv_weights *w, int32_t *totals, uint8_t *panels) {
    memset(totals, 0, c->n_slots * sizeof *totals);
    memset(panels, 0, n_all_panels(c) * c->panel_bytes);
    for (int64_t group = 0; group < c->groups; group++)
        for (int64_t o = 0; o < c->oc; o++) {
            const size_t slot = qk_conv_slot(c, group * c->oc + o), panel = slot / c->panel_cols;
            uint8_t *column = panels + panel * c->panel_bytes + slot % c->panel_cols * 4;
            const int64_t first = group % c->merged * c->ic; /* of the merged group's channels */
            for (int64_t d = 0; d < c->kernel[0]; d++)
                for (int64_t h = 0; h < c->kernel[1]; h++)
                    for (int64_t x = 0; x < c->kernel[2]; x++) {
                        const size_t tap =
                            (size_t)(c->is_fused ? d * c->kernel[1] + h : (d * c->kernel[1] + h) * c->kernel[2] + x);
                        const int64_t at = group * w->g_stride + o * w->o_stride + d * w->k_stride[0] +
                                           h * w->k_stride[1] + x * w->k_stride[2];
                        const int64_t k = (c->is_fused ? x * c->k : 0) + first;
                        for (int64_t i = 0; i < c->ic; i++)
                            put(c, column + place_of(c, tap, (size_t)(k + i)), w, at + i * w->i_stride, &totals[slot]);
                    }
        }
}

static bool is_large(const int8_t *pair) {
    const int up = (pair[0] > 0 ? pair[0] : 0) + (pair[1] > 0 ? pair[1] : 0);
    const int down = (pair[0] < 0 ? pair[0] : 0) + (pair[1] < 0 ? pair[1] : 0);
    return up > 128 || down < -128;
}

/* Does a dword of k have a large pair in some column? */
static bool has_large(const int8_t *dword, size_t n_cols) {
    bool large = false;
    for (size_t i = 0; i < 2 * n_cols; i++)
        large = large || is_large(dword + 2 * i);
    return large;
}

static size_t count_large(const qk_conv *bytes, const uint8_t *panels) {
    const size_t n_dwords = bytes->n_taps * bytes->tap_k * n_all_panels(bytes), size = bytes->panel_cols * 4;
    size_t n = 0;
    for (size_t i = 0; i < n_dwords; i++)
        n += has_large((const int8_t *)panels + i * size, bytes->panel_cols);
    return n;
}

/* Large pairs are halved; the other halves become additions. */
static void halve(const qk_conv *bytes, uint8_t *panels, additions a) {
    const size_t n_dwords = bytes->n_taps * bytes->tap_k, size = bytes->panel_cols * 4;
    uint32_t n = 0;
    for (size_t p = 0; p < n_all_panels(bytes); p++) {
        a.starts[p] = n;
        for (size_t i = 0; i < n_dwords; i++) {
            int8_t *dword = (int8_t *)panels + p * bytes->panel_bytes + i * size;
            if (!has_large(dword, bytes->panel_cols)) continue;
            int8_t *other = (int8_t *)(a.weights + n * bytes->panel_cols);
            memset(other, 0, size);
            for (size_t k = 0; k < size; k += 2) {
                if (!is_large(dword + k)) continue;
                for (size_t half = k; half < k + 2; half++) {
                    other[half] = (int8_t)(dword[half] - dword[half] / 2);
                    dword[half] = (int8_t)(dword[half] / 2);
                }
            }
            a.places[n++] = (qk_tile_place){(uint32_t)(i / bytes->tap_k), (uint32_t)(i % bytes->tap_k)};
        }
    }
    a.starts[n_all_panels(bytes)] = n;
}

/* True when the weights are of the kind that is faster as bytes, and fit. */
static bool pack_bytes(const qk_conv *c, const qk_conv_weights *w, int32_t *totals, uint8_t *panels) {
    const qk_conv b = in_bytes(c);
    size_t end;
    (void)additions_at(&b, panels, 0, &end);
    if (end > n_all_panels(c) * c->panel_bytes) return false;
    pack_panels(&b, w, totals, panels);
    const size_t n = count_large(&b, panels);
    const additions a = additions_at(&b, panels, n, &end);
    if (n > b.n_taps * b.tap_k * n_all_panels(&b) / 4 || end > n_all_panels(c) * c->panel_bytes) return false;
    halve(&b, panels, a);
    return true;
}

void qk_conv_panels_pack(const qk_conv *c, const qk_conv_weights *w, void *packed) {
    int32_t *totals = packed;
    uint8_t *panels = (uint8_t *)packed + panels_at(c);
    memset(packed, 0, c->packed_bytes);
    if (row_of(c)->bytes != NULL) {
        head *h = (head *)(void *)(panels - sizeof *h);
        h->is_bytes = pack_bytes(c, w, totals, panels);
        if (h->is_bytes) return;
    }
    pack_panels(c, w, totals, panels);
}

/* ---- running ---- */

typedef struct job {
    const qk_conv *c;
    const qk_conv_run *r;
    int64_t image, group;
    int64_t o[3], n[3]; /* outputs of the chunk */
    size_t n_rows;
    int32_t (*sums)[QK_TILE_COLS];
    const uint8_t **table; /* [tap][row] */
    int32_t *row_sums;
    uint8_t *padding; /* a run of zero points */
    uint8_t *lines;   /* of the copy */
    const uint8_t *panels;
    additions add; /* starts NULL: none */
    size_t most;   /* rows of a tile */
    bool skips;    /* padding adds nothing: taps that a whole line of outputs has in it are left out */
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
            uint8_t *to = j->lines + (size_t)(kd * c->n_cells[1] + i) * c->line_bytes;
            if (src != NULL) {
                copy_line(j, src, to);
                continue;
            }
            fill(j, to, (size_t)c->n_cells[2] * (size_t)c->k);
            end_line(to + (size_t)c->n_cells[2] * cell_bytes(c));
        }
}

/* Addresses of one tap for one line of outputs, among copied lines. */
static void point_at_copy(const job *j, const int64_t tap[3], int64_t line, const uint8_t **out) {
    const qk_conv *c = j->c;
    int64_t first, at;
    int64_t cell = line * c->kernel[1] + tap[1];
    const bool is_one = element_at(c, 1, j->o[1] + line, tap[1], &at);
    if (is_dense(c, 1)) {
        (void)reach(c, 1, j->o[1], j->n[1], &first);
        cell = at - first;
    }
    const uint8_t *base = j->lines + (size_t)(tap[0] * c->n_cells[1] + cell) * c->line_bytes;
    const size_t bytes = cell_bytes(c);
    const bool dense = is_dense(c, 2);
    (void)reach(c, 2, j->o[2], j->n[2], &first);
    if (!c->transposed) { /* every output has its element, a stride apart */
        const int64_t step = dense ? c->stride[2] : c->kernel[2];
        base += (size_t)(tap[2] * (dense ? c->dilation[2] : 1)) * bytes;
        for (int64_t i = 0; i < j->n[2]; i++)
            out[i] = base + (size_t)(i * step) * bytes;
        return;
    }
    for (int64_t i = 0; i < j->n[2]; i++) {
        const bool has = element_at(c, 2, j->o[2] + i, tap[2], &at) && is_one;
        const int64_t x = dense ? at - first : i * c->kernel[2] + tap[2];
        out[i] = has ? base + (size_t)x * bytes : j->padding;
    }
}

/* The same in the source itself. */
static void point_at_source(const job *j, const int64_t tap[3], int64_t line, const uint8_t **out) {
    const qk_conv *c = j->c;
    const size_t bytes = (size_t)c->src_stride * qk_conv_elem_bytes(c);
    int64_t d, h, x;
    bool is_one = element_at(c, 0, j->o[0], tap[0], &d);
    is_one = element_at(c, 1, j->o[1] + line, tap[1], &h) && is_one;
    const uint8_t *base = line_at(j, is_one, d, h);
    int64_t i = 0;
    if (base != NULL && !c->transposed) {
        (void)element_at(c, 2, j->o[2], tap[2], &x);
        const int64_t left = x >= 0 ? 0 : qk_smaller(qk_ceil_div(-x, c->stride[2]), j->n[2]);
        const int64_t end = x >= c->in[2] ? 0 : qk_smaller((c->in[2] - 1 - x) / c->stride[2] + 1, j->n[2]);
        for (; i < left; i++)
            out[i] = j->padding;
        base += (size_t)((x + i * c->stride[2]) * (int64_t)bytes);
        for (; i < end; i++, base += (size_t)c->stride[2] * bytes)
            out[i] = base;
        base = NULL;
    }
    for (; i < j->n[2]; i++) {
        const bool has = base != NULL && element_at(c, 2, j->o[2] + i, tap[2], &x) && x >= 0 && x < c->in[2];
        out[i] = has ? base + (size_t)x * bytes : j->padding;
    }
}

static void make_table(const job *j) {
    const qk_conv *c = j->c;
    const uint8_t **out = j->table;
    int64_t tap[3];
    for (tap[0] = 0; tap[0] < c->kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < c->kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < (c->is_fused ? 1 : c->kernel[2]); tap[2]++)
                for (int64_t line = 0; line < j->n[1]; line++, out += j->n[2])
                    (c->is_copied ? point_at_copy : point_at_source)(j, tap, line, out);
}

/* What the zero points of the weights are to be multiplied with. */
static void sum_rows(const job *j) {
    const qk_conv *c = j->c;
    const size_t n = (size_t)((c->is_fused ? c->kernel[2] : 1) * c->k), bytes = 4 / row_of(c)->unit;
    for (size_t r = 0; r < j->n_rows; r++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < c->n_taps; t++) {
            const uint8_t *run = j->table[t * j->n_rows + r];
            for (size_t i = 0; i < n; i++)
                sum += run[i * bytes] ^ tile_flip(c); /* of a word, the low byte is all there is */
        }
        j->row_sums[r] = (int32_t)sum;
    }
}

static void subtract_rows(const job *j, size_t first, size_t n, const int32_t *zps, size_t n_cols) {
    for (size_t i = 0; i < n; i++)
        for (size_t col = 0; col < n_cols; col++)
            j->sums[i][col] =
                (int32_t)((uint32_t)j->sums[i][col] - (uint32_t)zps[col] * (uint32_t)j->row_sums[first + i]);
}

/* The taps that line `line` of the outputs has inside of the source along h: neighbours, as there is one plane. */
static size_t taps_inside(const job *j, int64_t line, size_t *n_out) {
    const qk_conv *c = j->c;
    const int64_t at = (j->o[1] + line) * c->stride[1] - c->pad_begin[1], left = c->in[1] - at;
    const int64_t first = at >= 0 ? 0 : qk_smaller(qk_ceil_div(-at, c->dilation[1]), c->kernel[1]);
    const int64_t end = left <= 0 ? 0 : qk_smaller(qk_ceil_div(left, c->dilation[1]), c->kernel[1]);
    const size_t across = c->n_taps / (size_t)c->kernel[1];
    *n_out = end > first ? (size_t)(end - first) * across : 0;
    return (size_t)first * across;
}

/* Some rows from `row` on, at most n, that are multiplied as one tile: how many, and with which taps. */
static size_t tile_at(const job *j, size_t row, size_t n, size_t *first_tap, size_t *n_taps) {
    *first_tap = 0;
    *n_taps = j->c->n_taps;
    if (j->skips) {
        const size_t width = (size_t)j->n[2], in_line = width - row % width;
        const int64_t line = (int64_t)(row / width);
        size_t next = *n_taps;
        *first_tap = taps_inside(j, line, n_taps);
        if (line + 1 < j->n[1]) (void)taps_inside(j, line + 1, &next);
        if (n > in_line && (*n_taps != j->c->n_taps || next != j->c->n_taps)) n = in_line;
    }
    const size_t n_tiles = (n + j->most - 1) / j->most;
    return (n + n_tiles - 1) / n_tiles;
}

/* Rows first … first+n-1 times panel p of the group. */
static void run_rows(const job *j, size_t first, size_t n, size_t p, qk_conv_end *end, int32_t (*sums)[QK_TILE_COLS]) {
    static const int32_t zeros[QK_TILE_COLS];
    const qk_conv *c = j->c;
    const size_t panel = (size_t)j->group * c->n_panels + p;
    const int32_t *init = c->is_float ? zeros : (const int32_t *)j->r->terms + panel * c->panel_cols;
    const uint8_t *weights = j->panels + panel * c->panel_bytes;
    qk_tile t = {
        .n_dwords = c->tap_k, .tap_stride = j->n_rows, .n_cols = c->panel_cols, .flip = 0x01010101u * tile_flip(c)};
    if (j->add.starts != NULL) {
        const size_t from = j->add.starts[panel];
        t.n_added = j->add.starts[panel + 1] - from;
        t.places = j->add.places + from;
        t.added = j->add.weights + from * c->panel_cols;
    }
    for (size_t r = 0, m; r < n; r += m) {
        size_t first_tap;
        m = tile_at(j, first + r, n - r, &first_tap, &t.n_taps);
        t.added_rows = j->table + first + r;
        row_of(c)->tile(&t, j->table + first_tap * j->n_rows + first + r, m,
                        (const int32_t *)(const void *)(weights + first_tap * c->tap_k * c->panel_cols * 4), init, end,
                        end == NULL ? sums + r : NULL);
        if (end != NULL) end->dst += (ptrdiff_t)m * end->step;
    }
}

/* Rows first … first+n-1 times panels p … p+n_panels-1 of the group, to the caller's function. */
static void run_lot(const job *j, size_t first, size_t n, size_t p, size_t n_panels, int64_t pixel) {
    const qk_conv *c = j->c;
    const int32_t *terms = j->r->terms;
    for (size_t i = 0; i < n_panels; i++)
        run_rows(j, first, n, p + i, NULL, (int32_t(*)[QK_TILE_COLS])(j->sums[0] + i * c->panel_cols));
    if (j->r->use_weights_zp && !c->is_float)
        subtract_rows(j, first, n, terms + c->n_slots + ((size_t)j->group * c->n_panels + p) * c->panel_cols,
                      n_panels * c->panel_cols);
    const int64_t channel = (int64_t)(p * c->panel_cols), cols = (int64_t)(n_panels * c->panel_cols);
    j->r->finish(j->r->arg, j->sums, QK_TILE_COLS, pixel + (int64_t)first, n, j->group * c->m + channel,
                 (size_t)qk_smaller(cols, c->m - channel));
}

static void run_task(job *j, size_t split) {
    const qk_conv *c = j->c;
    j->n_rows = (size_t)(j->n[1] * j->n[2]);
    if (c->is_copied) copy_lines(j);
    make_table(j);
    if (j->r->use_weights_zp && !c->is_float) sum_rows(j);
    const size_t at_once = j->r->plain != NULL ? 1 : QK_TILE_COLS / c->panel_cols;
    const size_t from = c->n_panels * split / (size_t)c->n_splits,
                 end = c->n_panels * (split + 1) / (size_t)c->n_splits;
    const int64_t pixel = ((j->image * c->out[0] + j->o[0]) * c->out[1] + j->o[1]) * c->out[2] + j->o[2];
    for (size_t p = from, n_panels; p < end; p += n_panels) {
        n_panels = end - p < at_once ? end - p : at_once;
        if (j->r->plain != NULL) {
            const int64_t channel = (int64_t)(p * c->panel_cols);
            qk_conv_end e =
                qk_conv_end_of(c, j->r, ((size_t)j->group * c->n_panels + p) * c->panel_cols, j->group * c->m + channel,
                               (size_t)qk_smaller((int64_t)c->panel_cols, c->m - channel), pixel);
            run_rows(j, 0, j->n_rows, p, &e, NULL);
            continue;
        }
        for (size_t r = 0, n; r < j->n_rows; r += n) {
            n = j->n_rows - r <= MOST ? j->n_rows - r : LOT;
            run_lot(j, r, n, p, n_panels, pixel);
        }
    }
}

void qk_conv_panels_run(const qk_conv *conv, const qk_conv_run *r, size_t first, size_t n, void *scratch) {
    const uint8_t *panels = (const uint8_t *)r->packed + panels_at(conv);
    const bool is_bytes =
        row_of(conv)->bytes != NULL && ((const head *)(const void *)(panels - sizeof(head)))->is_bytes;
    const qk_conv bytes = is_bytes ? in_bytes(conv) : *conv, *c = &bytes;
    job j = {.c = c, .r = r, .panels = panels, .most = tile_rows(c)};
    if (is_bytes) {
        const uint32_t *starts = (const uint32_t *)(const void *)(panels + n_all_panels(c) * c->panel_bytes);
        size_t end;
        j.add = additions_at(c, (void *)(uintptr_t)panels, starts[n_all_panels(c)], &end);
    }
    uint8_t *at = scratch;
    j.sums = (int32_t(*)[QK_TILE_COLS])(void *)at;
    at += sizeof(int32_t[MOST][QK_TILE_COLS]);
    j.table = (const uint8_t **)(void *)at;
    at += c->table_bytes;
    j.row_sums = (int32_t *)(void *)at;
    at += qk_round_up((size_t)(c->chunk[1] * c->chunk[2]) * 4, 64);
    j.padding = at;
    at += qk_round_up(c->tap_k * 4 + SLACK, 64);
    j.lines = at;
    fill(&j, j.padding, c->tap_k * row_of(c)->unit);
    const bool is_zero = c->is_float || (uint8_t)((uint32_t)r->src_zp ^ qk_conv_src_flip(c)) == 0;
    j.skips = is_zero && !c->transposed && c->kernel[0] == 1 && c->kernel[1] > 1 && c->n_taps > 1;
    for (size_t t = first; t < first + n; t++) {
        int64_t left = (int64_t)t;
        const size_t split = (size_t)(left % c->n_splits);
        left /= c->n_splits;
        j.group = left % c->g;
        left /= c->g;
        for (int a = 2; a >= 0; a--) {
            j.o[a] = left % c->n_chunks[a] * c->chunk[a];
            j.n[a] = qk_smaller(c->chunk[a], c->out[a] - j.o[a]);
            left /= c->n_chunks[a];
        }
        j.image = left;
        run_task(&j, split);
    }
}
