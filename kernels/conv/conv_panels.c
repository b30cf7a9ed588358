/* Convolution as products: the rows are pixels of the output, each of them n_taps runs of channels; the columns are output
 * channels, packed in panels. What a row's runs are is a table of addresses: of the source itself, or of lines copied from it. */
#include "kernels/conv/conv_panels.h"

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
    CHUNK = 96,            /* rows of a chunk, about */
    CHUNK_OF_LITTLE = 384, /* where a row is little work, or its copy serves other lines, too */
    LITTLE_BYTES = 4096,   /* of weights of a row */
    CHUNK_OF_MANY = 240,   /* with weights that no cache close by holds */
    TABLE = 8192,          /* addresses, about */
    NARROW_FLOATS = 16,
    FEW_TASKS = 16,
    FEW_ROWS = 18 /* of a chunk that is not cut for the sake of more tasks */
};

/* ---- init ---- */

/* A pointwise convolution does not care where its pixels are. */
static void flatten(qk_conv *c) {
    int64_t pixels = c->n;
    c->is_flat = false;
    for (int a = 0; a < 3; a++) {
        if (c->kernel[a] != 1 || c->stride[a] != 1 || c->pad_begin[a] != 0 || c->in[a] != c->out[a]) return;
        pixels *= c->in[a];
    }
    if (pixels > INT32_MAX) return;
    c->is_flat = true;
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

/* Panels as wide as can be; the last has what is left. */
static void set_panels(qk_conv *c) {
    const size_t lanes = row_of(c)->lanes, max = row_of(c)->max_cols, cols = qk_round_up((size_t)c->m, lanes);
    c->panel_cols = cols < max ? cols : max;
    c->n_panels = (cols + c->panel_cols - 1) / c->panel_cols;
    c->last_cols = cols - (c->n_panels - 1) * c->panel_cols;
}

/* The form of bytes, where there is one, is the one that is run more often. */
static void set_chunks(qk_conv *c) {
    const qk_conv form = row_of(c)->bytes != NULL ? in_bytes(c) : *c;
    const size_t weights = form.panel_bytes * c->n_panels;
    const bool is_little = weights <= LITTLE_BYTES || (form.is_fused && c->kernel[1] > c->stride[1]);
    int64_t rows = is_little ? CHUNK_OF_LITTLE : weights > 256u << 10 ? CHUNK_OF_MANY : CHUNK;
    rows = qk_larger(qk_smaller(rows, TABLE / (int64_t)form.n_taps), 6);
    const int64_t all = c->n * c->g * c->out[0] * c->out[1] * c->out[2] * qk_smaller((int64_t)c->n_panels, FEW_TASKS);
    rows = qk_smaller(rows, qk_larger(qk_ceil_div(all, FEW_TASKS), FEW_ROWS));
    const int64_t w = c->out[2], h = c->out[1];
    c->chunk[0] = c->chunk[1] = 1;
    c->chunk[2] = w;
    if (w > rows) {
        c->chunk[2] = qk_ceil_div(w, qk_ceil_div(w, rows));
    } else if (w > 0 && h > 0) {
        int64_t lines = qk_larger(1, (rows + w / 2) / w);
        if (qk_conv_sorts(&form) && lines < QK_CONV_LINES) lines = QK_CONV_LINES;
        c->chunk[1] = qk_ceil_div(h, qk_larger(1, h / lines));
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
    c->line_bytes = c->lines_bytes = 0;
    if (c->is_copied) {
        const size_t cell = (size_t)c->k * 4 / unit;
        if (__builtin_mul_overflow((size_t)c->n_cells[2], cell, &n)) return false;
        c->line_bytes = qk_round_up(n + QK_CONV_SLACK, 64);
        if (__builtin_mul_overflow((size_t)(c->kernel[0] * c->n_cells[1]), c->line_bytes, &c->lines_bytes))
            return false;
    }
    return !__builtin_add_overflow(c->lines_bytes, qk_conv_scratch_at(c, NULL).bytes, &c->scratch_bytes);
}

bool qk_conv_panels_init(qk_conv *c) {
    const qk_tile_row *const *row = c->is_float ? rows_of_floats : rows_of_ints;
    while (!qk_isa_has((*row)->isa)) /* the last is ref, which is always there */
        row++;
    /* groups this narrow leave lanes of the wider level idle, and give its tiles too few sums at a time */
    if (c->is_float && c->groups > 1 && c->oc <= NARROW_FLOATS && (*row)->lanes > 8) row++;
    c->row = *row;
    const int64_t unit = (int64_t)(*row)->unit;
    flatten(c);
    merge_groups(c);
    c->is_copied = is_short(c, 4 / unit) ||
                   (c->is_float ? c->src != QDQ_DTYPE_F32 : unit != 4 || copy_flip(c) != 0 || c->k % unit != 0);
    c->is_fused = c->is_copied && c->dilation[2] == 1 && !c->transposed;
    const int64_t fused = c->is_fused ? c->kernel[2] : 1;
    c->n_taps = (size_t)(c->kernel[0] * c->kernel[1] * (c->kernel[2] / fused));
    c->tap_k = (size_t)qk_ceil_div(fused * c->k, unit);
    set_panels(c);
    c->ends = (*row)->ends;
    c->task_groups = c->is_copied ? 1 : c->g;
    if (!set_bytes(c)) return false;
    const int64_t chunks = c->n * c->n_chunks[0] * c->n_chunks[1] * c->n_chunks[2] * (c->g / c->task_groups);
    const int64_t panels = (int64_t)c->n_panels * c->task_groups;
    c->n_splits = chunks == 0 || chunks >= FEW_TASKS ? 1 : qk_smaller(qk_ceil_div(FEW_TASKS, chunks), panels);
    c->n_tasks = (size_t)(chunks * c->n_splits);
    return true;
}

/* ---- packing ---- */

/* Where element `k` of the run of `tap` is among the dwords of a panel of n_cols: its byte, for column 0. */
static size_t place_of(const qk_conv *c, size_t n_cols, size_t tap, size_t k) {
    const size_t unit = row_of(c)->unit;
    return (tap * c->tap_k + k / unit) * n_cols * 4 + k % unit * (4 / unit);
}

static void put(const qk_conv *c, uint8_t *to, const qk_conv_weights *w, int64_t from, int32_t *total,
                int32_t *of_tap) {
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
    *of_tap = (int32_t)((uint32_t)*of_tap + (uint32_t)value);
}

static void pack_panels(const qk_conv *c, const qk_conv_weights *w, int32_t *totals, uint8_t *panels) {
    int32_t none = 0, *of_taps = totals + c->n_slots;
    memset(totals, 0, (c->n_slots + n_tap_totals(c)) * sizeof *totals);
    memset(panels, 0, n_all_panels(c) * c->panel_bytes);
    for (int64_t group = 0; group < c->groups; group++)
        for (int64_t o = 0; o < c->oc; o++) {
            const size_t slot = qk_conv_slot(c, group * c->oc + o), panel = slot / c->panel_cols;
            const size_t n_cols = cols_of(c, panel);
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
                            put(c, column + place_of(c, n_cols, tap, (size_t)(k + i)), w, at + i * w->i_stride,
                                &totals[slot], n_tap_totals(c) == 0 ? &none : &of_taps[tap * c->n_slots + slot]);
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
    const size_t n_dwords = bytes->n_taps * bytes->tap_k;
    size_t n = 0;
    for (size_t p = 0; p < n_all_panels(bytes); p++)
        for (size_t i = 0, cols = cols_of(bytes, p); i < n_dwords; i++)
            n += has_large((const int8_t *)panels + p * bytes->panel_bytes + i * cols * 4, cols);
    return n;
}

/* Large pairs are halved; the other halves become additions. */
static void halve(const qk_conv *bytes, int32_t *totals, uint8_t *panels, additions a) {
    int32_t *of_taps = n_tap_totals(bytes) == 0 ? NULL : totals + bytes->n_slots;
    const size_t n_dwords = bytes->n_taps * bytes->tap_k;
    uint32_t n = 0;
    for (size_t p = 0; p < n_all_panels(bytes); p++) {
        const size_t n_cols = cols_of(bytes, p), size = n_cols * 4;
        int8_t *other = (int8_t *)(a.weights + n * bytes->panel_cols);
        a.starts[p] = n;
        for (size_t i = 0; i < n_dwords; i++) {
            int8_t *dword = (int8_t *)panels + p * bytes->panel_bytes + i * size;
            if (!has_large(dword, n_cols)) continue;
            memset(other, 0, size);
            for (size_t k = 0; k < size; k += 2) {
                if (!is_large(dword + k)) continue;
                for (size_t half = k; half < k + 2; half++) {
                    other[half] = (int8_t)(dword[half] - dword[half] / 2);
                    dword[half] = (int8_t)(dword[half] / 2);
                    if (of_taps != NULL)
                        of_taps[i / bytes->tap_k * bytes->n_slots + p * bytes->panel_cols + half / 4] -= other[half];
                }
            }
            other += size;
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
    halve(&b, totals, panels, a);
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
