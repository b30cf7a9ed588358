/* Lines of outputs whose window is read where it lies, column by column: each is woven once, and goes to all outputs that see it. For a
 * level that has included conv_dw_body.h and defined
 *     VFLIPS(x)   a vector of bytes x
 * Included by conv_dw_<level>.c alone.
 *
 * A column is woven to sets: one to four vectors of dwords each, as conv_dw_row.h has them. A set meets the weights of each tap along the
 * width that an open output has it at. Of floats a set is a line, and what lies in the padding is left out. */

/* Before a loop of a constant number of turns: these become copies of its body, with registers for elements of arrays. */
#if defined(__clang__)
#define STRIP_UNROLL _Pragma("unroll")
#else
#define STRIP_UNROLL _Pragma("GCC unroll 16")
#endif

/* What the compiler shall not think about: a value in a register. */
#define STRIP_KEEP(class, value) __asm__("" : "+" class(value))

enum {
    STRIP_LINES = 5,  /* most lines of a window, and taps of a line */
    STRIP_VECTORS = 4 /* of a set */
};

#if END_BYTES
#define STRIP_WEIGHTS(at, v) VLOAD(taps + (at)*QK_DW_BLOCK + (v)*LANES)
#else
#define STRIP_WEIGHTS(at, v) weights[at]
#endif

/* What is constant where a strip is compiled. */
typedef struct strip_kind {
    size_t n_lines, kernel, stride, n_sets, n_vectors, in_group;
} strip_kind;

/* Set `set` of the n channels at p, a pointer for each line. */
typedef void weave_set(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to);

/* Channels from c on, n of them. */
QK_INLINE void strip_channels(const qk_dw_strip *l, const qk_conv_end *all, size_t c, size_t n, strip_kind k,
                              weave_set *set_of) {
    const size_t n_sums =
        END_BYTES ? k.n_vectors : 2; /* of floats, of every other line: one would have to wait for itself */
    const size_t n_open = (k.kernel + k.stride - 1) / k.stride;
    const size_t first = END_BYTES ? c : c * sizeof(float);
    const qk_conv_end some = end_from(all, c, 0), *e = &some;
    const int32_t *taps = l->weights + c;
#if !END_BYTES
    VEC weights[STRIP_LINES * STRIP_LINES]; /* stay in registers */
    STRIP_UNROLL for (size_t i = 0; i < k.n_sets; i++) {
        STRIP_UNROLL for (size_t j = 0; j < k.kernel; j++) weights[i * k.kernel + j] =
            VLOAD(taps + (i * k.kernel + j) * QK_DW_BLOCK);
    }
#endif
    const VEC flip = VFLIPS(l->flip);
    static const int32_t zeros[QK_DW_BLOCK];
    const int32_t *const start = l->init != NULL ? l->init + c : zeros;
    const uint8_t *const padding = l->padding + first;
    VEC init[STRIP_VECTORS], s[STRIP_LINES][STRIP_VECTORS];
    STRIP_UNROLL for (size_t v = 0; v < n_sums; v++) init[v] = VLOAD(start + v * LANES);
    for (size_t i = 0; i < l->n_lines; i++) {
        const uint8_t *line[STRIP_LINES];
        ptrdiff_t step[STRIP_LINES];
        STRIP_UNROLL for (size_t j = 0; j < k.n_lines; j++) {
            const uint8_t *at = l->line[i * k.n_lines + j];
            line[j] = at != NULL ? at + first : padding;
            step[j] = at != NULL ? (ptrdiff_t)l->step : 0;
        }
        STRIP_UNROLL for (size_t o = 0; o < n_open; o++) {
            STRIP_UNROLL for (size_t v = 0; v < n_sums; v++) s[o][v] = init[v];
        }
        uint8_t *to = e->dst + (ptrdiff_t)i * l->dst_step, *const stop = to + (ptrdiff_t)l->n_out * e->step;
        ptrdiff_t x = -(ptrdiff_t)l->pad;
        for (size_t opened = 1; to != stop; opened++) {
            STRIP_KEEP("r", taps); /* one address, not one for each tap */
            STRIP_UNROLL for (size_t j = 0; j < k.stride; j++, x++) {
                const bool inside = x >= 0 && x < l->width;
                if (!END_BYTES && !inside) continue;
                const uint8_t *p[STRIP_LINES];
                STRIP_UNROLL for (size_t h = 0; h < k.n_lines; h++) p[h] = inside ? line[h] + x * step[h] : padding;
                STRIP_UNROLL for (size_t set = 0; set < k.n_sets; set++) {
                    if (!END_BYTES && step[set] == 0) continue;
                    VEC d[STRIP_VECTORS];
                    set_of(k, p, n, flip, set, d);
                    STRIP_UNROLL for (size_t o = 0; o < n_open; o++) {
                        const size_t tap = o * k.stride + j;
                        if (tap >= k.kernel) continue;
                        const size_t at = set * k.kernel + tap;
                        STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) {
                            VEC *const sum = &s[o][END_BYTES ? v : set % 2];
                            *sum = VDOT(*sum, d[v], STRIP_WEIGHTS(at, v));
                            STRIP_KEEP("v", *sum); /* added to now, not products to each other first */
                        }
                    }
                }
            }
            if (opened >= n_open) {
                const VEC *done = s[n_open - 1];
#if END_BYTES
                const size_t second = k.n_vectors > 1, third = k.n_vectors > 2 ? 2 : 0, last = k.n_vectors - 1;
                const end_bytes b = end_four(e, done[0], done[second], done[third], done[last], 0, second, third, last);
                end_store(to, end_order(b), 0, k.n_vectors, n);
#else
                end_floats(e, qv_add(done[0], done[1]), 0, to);
#endif
                to += e->step;
            }
            STRIP_UNROLL for (size_t o = n_open - 1; o > 0; o--) {
                STRIP_UNROLL for (size_t v = 0; v < n_sums; v++) s[o][v] = s[o - 1][v];
            }
            STRIP_UNROLL for (size_t v = 0; v < n_sums; v++) s[0][v] = init[v];
        }
    }
}

/* All channels, those of the vectors of `k` at a time; it and `set_of` are constants of the caller. */
QK_INLINE void strip_all(const qk_dw_strip *l, const qk_conv_end *e, strip_kind k, weave_set *set_of) {
    const size_t per = k.n_vectors * LANES;
    size_t c = 0;
    for (; l->n_channels - c >= per; c += per)
        strip_channels(l, e, c, per, k, set_of);
    if (c < l->n_channels) strip_channels(l, e, c, l->n_channels - c, k, set_of);
}
