/* Lines of f32 read where they lie, for a level that has included conv_dw_body.h. Included by conv_dw_float_<level>.c alone. */

#define SIX_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5)

/* Some outputs whose taps `first` … `end`-1 lie inside of the source; `x`: the column of tap 0 of the first of them. */
typedef struct span {
    int64_t x;
    size_t first, end, n_out;
    uint8_t *to;
    const uint8_t *const *line; /* of the window */
} span;

/* n_rows outputs of n_vectors vectors of channels from c on; both numbers are constants of the caller. `n`: how many channels there
 * are, constant where all vectors are whole. */
QK_INLINE void float_tile(const qk_dw_strip *l, const qk_conv_end *all, const span *s, size_t c, size_t n,
                          size_t n_rows, size_t n_vectors) {
    const ptrdiff_t step = (ptrdiff_t)l->step;
    const ptrdiff_t row = (ptrdiff_t)l->stride * step, tap = (ptrdiff_t)l->dilation * step;
    const VEC none = qv_set1(0.0f);
#define AT(p, v) (n >= (v + 1) * LANES ? VLOAD(p) : qv_of_bits(qv_load4(p, n - v * LANES)))
#define START(r) VEC s##r##0 = none, s##r##1 = none, s##r##2 = none, s##r##3 = none;
#define ADD(r)                                                                                                         \
    if (r < n_rows) {                                                                                                  \
        s##r##0 = VDOT(s##r##0, AT(p + r * row, 0), w0);                                                               \
        if (n_vectors > 1) s##r##1 = VDOT(s##r##1, AT(p + r * row + 4 * LANES, 1), w1);                                \
        if (n_vectors > 2) s##r##2 = VDOT(s##r##2, AT(p + r * row + 8 * LANES, 2), w2);                                \
        if (n_vectors > 3) s##r##3 = VDOT(s##r##3, AT(p + r * row + 12 * LANES, 3), w3);                               \
    }
    SIX_ROWS(START)
    for (size_t i = 0; i < l->n_window; i++) {
        if (s->line[i] == NULL) continue;
        const uint8_t *p = s->line[i] + (s->x * step + (ptrdiff_t)s->first * tap) + 4 * c;
        const int32_t *w = l->weights + (i * l->kernel + s->first) * QK_DW_BLOCK + c;
        for (size_t k = s->first; k < s->end; k++, p += tap, w += QK_DW_BLOCK) {
            const VEC w0 = VLOAD(w), w1 = n_vectors > 1 ? VLOAD(w + LANES) : w0;
            const VEC w2 = n_vectors > 2 ? VLOAD(w + 2 * LANES) : w0, w3 = n_vectors > 3 ? VLOAD(w + 3 * LANES) : w0;
            SIX_ROWS(ADD)
        }
    }
    qk_conv_end some = end_from(all, c, 0);
    some.dst = s->to + 4 * c;
    ptrdiff_t rows[6];
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = (ptrdiff_t)i * all->step;
    some.rows = rows;
    const qk_conv_end *e = &some;
    SIX_ROWS(END_FLOATS)
#undef AT
#undef START
#undef ADD
}

/* All channels of n_rows outputs. */
QK_INLINE void float_rows(const qk_dw_strip *l, const qk_conv_end *e, const span *s, size_t n_rows) {
    size_t c = 0;
    if (n_rows == 1)
        for (; l->n_channels - c >= 4 * LANES; c += 4 * LANES)
            float_tile(l, e, s, c, 4 * LANES, n_rows, 4);
    for (; l->n_channels - c >= 2 * LANES; c += 2 * LANES)
        float_tile(l, e, s, c, 2 * LANES, n_rows, 2);
    for (; l->n_channels - c >= LANES; c += LANES)
        float_tile(l, e, s, c, LANES, n_rows, 1);
    if (c < l->n_channels) float_tile(l, e, s, c, l->n_channels - c, n_rows, 1);
}

static void float_span(const qk_dw_strip *l, const qk_conv_end *e, span s) {
    for (size_t m; s.n_out > 0; s.n_out -= m, s.x += (int64_t)(m * l->stride), s.to += (ptrdiff_t)m * e->step) {
        m = s.n_out < 6 ? s.n_out : s.n_out < 12 ? (s.n_out + 1) / 2 : 6;
        switch (m) {
        case 1: float_rows(l, e, &s, 1); break;
        case 2: float_rows(l, e, &s, 2); break;
        case 3: float_rows(l, e, &s, 3); break;
        case 4: float_rows(l, e, &s, 4); break;
        case 5: float_rows(l, e, &s, 5); break;
        default: float_rows(l, e, &s, 6); break;
        }
    }
}

/* Outputs all of whose taps are inside are neighbours; the others are done one by one. */
static void any_line(const qk_dw_strip *l, const qk_conv_end *e, const uint8_t *const *lines, uint8_t *to) {
    const int64_t reach = (int64_t)((l->kernel - 1) * l->dilation), stride = (int64_t)l->stride;
    const int64_t dilation = (int64_t)l->dilation, n_out = (int64_t)l->n_out;
    int64_t left = (l->pad + stride - 1) / stride;
    left = l->pad <= 0 ? 0 : left < n_out ? left : n_out;
    int64_t right = l->width + l->pad - reach < 1 ? 0 : (l->width + l->pad - reach - 1) / stride + 1;
    right = right < left ? left : right < n_out ? right : n_out;
    for (int64_t o = 0, m; o < n_out; o += m) {
        const int64_t x = o * stride - l->pad, after = l->width - x;
        m = o == left && right > left ? right - left : 1;
        span s = {x, 0, l->kernel, (size_t)m, to + (ptrdiff_t)o * e->step, lines};
        if (m == 1) {
            if (x < 0) s.first = (size_t)((-x + dilation - 1) / dilation);
            if (after <= reach) s.end = after <= 0 ? 0 : (size_t)((after + dilation - 1) / dilation);
            if (s.first > s.end) s.first = s.end;
        }
        float_span(l, e, s);
    }
}

static void any_strip(const qk_dw_strip *l, const qk_conv_end *e) {
    for (size_t i = 0; i < l->n_lines; i++)
        any_line(l, e, l->line + i * l->n_window, e->dst + (ptrdiff_t)i * l->dst_step);
}
