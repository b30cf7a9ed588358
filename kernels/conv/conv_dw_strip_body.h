/* Lines of outputs whose window is read where it lies, column by column: each is woven once, and goes to all outputs that see it. For a
 * level that has included conv_dw_body.h and defined
 *     VFLIPS(x)   a vector of bytes x
 * Included by conv_dw_<level>.c alone.
 *
 * A column is woven to sets: one to four vectors of dwords each, as conv_dw_row.h has them. A set meets the weights of each tap along the
 * width that an open output has it at. */

/* Before a loop of a constant number of turns: these become copies of its body, with registers for elements of arrays. */
#if defined(__clang__)
#define STRIP_UNROLL _Pragma("unroll")
#else
#define STRIP_UNROLL _Pragma("GCC unroll 16")
#endif

/* What the compiler shall not think about: a value in a register. */
#define STRIP_KEEP(class, value) __asm__("" : "+" class(value))

enum {
    STRIP_LINES = 5,    /* most lines of a window, and taps of a line */
    STRIP_WEIGHTS = 40, /* most vectors of a window */
    STRIP_VECTORS = 4   /* of a set */
};

/* What is constant where a strip is compiled. */
typedef struct strip_kind {
    size_t n_lines, kernel, stride, n_sets, n_vectors, in_group;
} strip_kind;

/* Set `set` of the n channels at p, a pointer for each line. */
typedef void weave_set(strip_kind k, const uint8_t *const *p, size_t n, VEC flip, size_t set, VEC *to);

/* Channels from c on, n of them. */
QK_INLINE void strip_channels(const qk_dw_strip *l, const qk_conv_end *all, size_t c, size_t n, strip_kind k,
                              weave_set *set_of) {
    const size_t n_open = (k.kernel + k.stride - 1) / k.stride;
    const qk_conv_end some = end_from(all, c, 0), *e = &some;
    /* one behind the other: vectors a block apart would lie in the same half of their cache lines, of which one is read at a time */
    VEC weights[STRIP_WEIGHTS];
    for (size_t i = 0; i < k.n_sets * k.kernel; i++) {
        STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) weights[i * k.n_vectors + v] =
            VLOAD(l->weights + i * QK_DW_BLOCK + c + v * LANES);
    }
    const VEC flip = VFLIPS(l->flip);
    const uint8_t *const padding = l->padding + c;
    VEC init[STRIP_VECTORS], s[STRIP_LINES][STRIP_VECTORS];
    STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) init[v] = VLOAD(l->init + c + v * LANES);
    for (size_t i = 0; i < l->n_lines; i++) {
        const uint8_t *line[STRIP_LINES];
        ptrdiff_t step[STRIP_LINES];
        STRIP_UNROLL for (size_t j = 0; j < k.n_lines; j++) {
            const uint8_t *at = l->line[i * k.n_lines + j];
            line[j] = at != NULL ? at + c : padding;
            step[j] = at != NULL ? (ptrdiff_t)l->step : 0;
        }
        STRIP_UNROLL for (size_t o = 0; o < n_open; o++) {
            STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) s[o][v] = init[v];
        }
        uint8_t *to = e->dst + (ptrdiff_t)i * l->dst_step, *const stop = to + (ptrdiff_t)l->n_out * e->step;
        ptrdiff_t x = -(ptrdiff_t)l->pad;
        for (size_t opened = 1; to != stop; opened++) {
            const VEC *taps = weights;
            STRIP_KEEP("r", taps); /* one address, not one for each tap */
            STRIP_UNROLL for (size_t j = 0; j < k.stride; j++, x++) {
                const bool inside = x >= 0 && x < l->width;
                const uint8_t *p[STRIP_LINES];
                STRIP_UNROLL for (size_t h = 0; h < k.n_lines; h++) p[h] = inside ? line[h] + x * step[h] : padding;
                STRIP_UNROLL for (size_t set = 0; set < k.n_sets; set++) {
                    VEC d[STRIP_VECTORS];
                    set_of(k, p, n, flip, set, d);
                    STRIP_UNROLL for (size_t o = 0; o < n_open; o++) {
                        const size_t tap = o * k.stride + j;
                        if (tap >= k.kernel) continue;
                        const VEC *w = taps + (set * k.kernel + tap) * k.n_vectors;
                        STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) {
                            s[o][v] = VDOT(s[o][v], d[v], w[v]);
                            STRIP_KEEP("x", s[o][v]); /* added to now, not products to each other first */
                        }
                    }
                }
            }
            if (opened >= n_open) {
                const VEC *done = s[n_open - 1];
                const size_t second = k.n_vectors > 1, third = k.n_vectors > 2 ? 2 : 0, last = k.n_vectors - 1;
                const end_bytes b = end_four(e, done[0], done[second], done[third], done[last], 0, second, third, last);
                end_store(to, end_order(b), 0, k.n_vectors, n);
                to += e->step;
            }
            STRIP_UNROLL for (size_t o = n_open - 1; o > 0; o--) {
                STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) s[o][v] = s[o - 1][v];
            }
            STRIP_UNROLL for (size_t v = 0; v < k.n_vectors; v++) s[0][v] = init[v];
        }
    }
}
