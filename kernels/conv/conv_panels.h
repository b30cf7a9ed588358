/* What packing (conv_panels.c) and running (conv_rows.c) of products of rows with panels share. Private to kernels/conv. */
#ifndef QK_CONV_PANELS_H
#define QK_CONV_PANELS_H

#include "kernels/conv/conv_impl.h"
#include "kernels/conv/conv_tile_row.h"

enum {
    QK_CONV_LOT = 24,       /* rows whose sums are finished at a time … */
    QK_CONV_MOST = 31,      /* … or a few more, at the end */
    QK_CONV_SLACK = 64,     /* behind what is copied: tiles read whole dwords */
    QK_CONV_PARTS = 64,     /* kinds of rows of a chunk, by the taps that they have */
    QK_CONV_SHORT_RUN = 12, /* bytes of a tap */
    QK_CONV_NARROW = 28,    /* pixels of a line of outputs … */
    QK_CONV_LINES = 4,      /* … of which so many have tiles of their first columns, and of the last … */
    QK_CONV_LITTLE = 12288  /* … where a row is more work than so many bytes of weights */
};

static inline const qk_tile_row *row_of(const qk_conv *c) {
    return c->row;
}
/* What sources are xored with while they are copied, and what tiles xor. */
static inline uint8_t copy_flip(const qk_conv *c) {
    return row_of(c)->flips ? 0 : qk_conv_src_flip(c);
}
static inline uint8_t tile_flip(const qk_conv *c) {
    return row_of(c)->flips ? qk_conv_src_flip(c) : 0;
}
static inline size_t cell_bytes(const qk_conv *c) { /* a pixel of a group where tiles read it */
    return (size_t)c->k * 4 / row_of(c)->unit;
}

/* Short taps are better copied and fused. */
static inline bool is_short(const qk_conv *c, int64_t elem_bytes) {
    return c->k * elem_bytes <= QK_CONV_SHORT_RUN && c->kernel[2] > 1;
}

static inline size_t n_kernel(const qk_conv *c) {
    return (size_t)(c->kernel[0] * c->kernel[1] * c->kernel[2]);
}

/* The same convolution in the form of bytes; chunks and scratch stay. Where nothing but words asked for copies, there are none. */
static inline qk_conv in_bytes(const qk_conv *c) {
    qk_conv b = *c;
    b.row = row_of(c)->bytes;
    if (c->k % 4 == 0 && !is_short(c, 1)) {
        b.is_copied = b.is_fused = false;
        b.n_taps = n_kernel(c);
    }
    b.tap_k = (size_t)qk_ceil_div((b.is_fused ? c->kernel[2] : 1) * c->k, (int64_t)row_of(&b)->unit);
    b.panel_bytes = b.n_taps * b.tap_k * b.panel_cols * 4;
    return b;
}

/* Taps of the form that has more of them. */
static inline size_t most_taps(const qk_conv *c) {
    return row_of(c)->bytes == NULL ? c->n_taps : n_kernel(c);
}

/* Are there columns whose taps are padding, and few enough others that it is worth to have tiles of them? */
static inline bool qk_conv_sorts(const qk_conv *c) {
    return !c->transposed && !c->is_fused && c->kernel[2] > 1 && c->out[2] <= QK_CONV_NARROW &&
           c->n_taps * c->tap_k * c->panel_cols * 4 > QK_CONV_LITTLE;
}

/* What a thread has of memory, from `at` on. */
typedef struct qk_conv_scratch {
    int32_t (*sums)[QK_TILE_COLS];
    const uint8_t **table; /* [tap][row] */
    const uint8_t **line;  /* of the table */
    int32_t *row_sums;
    uint32_t *slots, *pixels; /* row of an output of the chunk; output of a row */
    ptrdiff_t *offsets;       /* of results of rows */
    uint32_t *taps;
    uint8_t *padding; /* a run of zero points */
    uint8_t *lines;   /* of the copy */
    size_t bytes;
} qk_conv_scratch;

static inline void *qk_conv_take(uint8_t *base, size_t *at, size_t bytes) {
    void *p = base == NULL ? NULL : base + *at;
    *at += qk_round_up(bytes, 64);
    return p;
}
/* Lists of taps: one for all, or of each kind of rows, where either each tap is in one, or there are few kinds. */
static inline size_t qk_conv_n_listed(const qk_conv *c) {
    return most_taps(c) * (c->transposed ? 2 : 20);
}
/* Bytes of a run of zero points, for all groups of a task. */
static inline size_t qk_conv_padding(const qk_conv *c) {
    return c->task_groups > 1 ? (size_t)c->task_groups * cell_bytes(c) : c->tap_k * 4;
}
static inline qk_conv_scratch qk_conv_scratch_at(const qk_conv *c, void *base) {
    const size_t n_rows = (size_t)(c->chunk[1] * c->chunk[2]);
    size_t at = 0;
    qk_conv_scratch s;
    s.sums = qk_conv_take(base, &at, sizeof(int32_t[QK_CONV_MOST][QK_TILE_COLS]));
    s.table = qk_conv_take(base, &at, most_taps(c) * n_rows * sizeof *s.table);
    s.line = qk_conv_take(base, &at, (size_t)c->chunk[2] * sizeof *s.line);
    s.row_sums = qk_conv_take(base, &at, n_rows * sizeof *s.row_sums);
    s.slots = qk_conv_take(base, &at, n_rows * sizeof *s.slots);
    s.pixels = qk_conv_take(base, &at, n_rows * sizeof *s.pixels);
    s.offsets = qk_conv_take(base, &at, n_rows * sizeof *s.offsets);
    s.taps = qk_conv_take(base, &at, qk_conv_n_listed(c) * sizeof *s.taps);
    s.padding = qk_conv_take(base, &at, qk_conv_padding(c) + QK_CONV_SLACK);
    s.lines = qk_conv_take(base, &at, 0);
    s.bytes = at;
    return s;
}

/* ---- which elements of an axis ---- */

static inline int64_t floor_div(int64_t a, int64_t b) {
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
static inline int64_t reach(const qk_conv *c, int axis, int64_t o, int64_t n, int64_t *first) {
    const int64_t window = (c->kernel[axis] - 1) * c->dilation[axis];
    if (!c->transposed) {
        *first = o * c->stride[axis] - c->pad_begin[axis];
        return (n - 1) * c->stride[axis] + window + 1;
    }
    *first = floor_div(o + c->pad_begin[axis] - window, c->stride[axis]);
    return floor_div(o + n - 1 + c->pad_begin[axis], c->stride[axis]) - *first + 1;
}

/* Cells of a chunk along an axis: the elements that it reaches, or one per output and tap where these are fewer. */
static inline bool is_dense(const qk_conv *c, int axis) {
    return c->n_cells[axis] < c->chunk[axis] * c->kernel[axis];
}

/* ---- packed weights: totals of the slots | totals of the slots of each tap | head, where there are two forms | panels | what is added in the form of bytes ---- */

typedef struct head {
    int32_t is_bytes;
    int32_t unused[15];
} head;

/* What the panels have of each tap, so that taps which are padding alone can be left out; not what is added to them. */
static inline size_t n_tap_totals(const qk_conv *c) {
    return c->is_float || most_taps(c) == 1 ? 0 : most_taps(c) * c->n_slots;
}
static inline size_t panels_at(const qk_conv *c) {
    return qk_round_up((c->n_slots + n_tap_totals(c)) * 4, 64) + (row_of(c)->bytes != NULL ? sizeof(head) : 0);
}

static inline size_t n_all_panels(const qk_conv *c) {
    return c->n_panels * (size_t)c->g;
}
/* Columns of a panel of all. */
static inline size_t cols_of(const qk_conv *c, size_t panel) {
    return panel % c->n_panels == c->n_panels - 1 ? c->last_cols : c->panel_cols;
}

/* Panel i's places are number starts[i] … starts[i + 1] - 1; its weights, cols_of(i) each, begin at starts[i] * panel_cols. */
typedef struct additions {
    uint32_t *starts;
    qk_tile_place *places;
    int32_t *weights;
} additions;

/* Behind the panels of the form of bytes, n of them in all. */
static inline additions additions_at(const qk_conv *bytes, void *panels, size_t n, size_t *end_out) {
    uint8_t *at = (uint8_t *)panels + n_all_panels(bytes) * bytes->panel_bytes;
    additions a = {.starts = (uint32_t *)(void *)at};
    at += qk_round_up((n_all_panels(bytes) + 1) * sizeof *a.starts, 64);
    a.places = (qk_tile_place *)(void *)at;
    at += qk_round_up(n * sizeof *a.places, 64);
    a.weights = (int32_t *)(void *)at;
    *end_out = (size_t)(at - (uint8_t *)panels) + n * bytes->panel_cols * sizeof *a.weights;
    return a;
}

#endif
