/* The sums of a depthwise row, for a level that has defined
 *     VEC, LANES, VECTORS  a vector of so many dwords; how many of them are summed up together (4 or 2)
 *     VLOAD(p) VSTORE(p, v)
 *     VDOT(s, x, w)        s plus, per dword, the products of the values in x and w
 * and what conv_end_body.h asks for. Included by conv_dw_<level>.c alone. */
#include "kernels/conv/conv_end_body.h"

#define FOUR_ROWS(EACH) EACH(0) EACH(1) EACH(2) EACH(3)

/* Four outputs, of which n_rows are wanted. n_vectors is a constant of the caller, and `stride` where it can be. */
QK_INLINE void sum_four(const qk_dw_taps *t, size_t stride, size_t n_vectors, const int32_t *columns,
                        const int32_t *weights, const int32_t *init, const qk_conv_end *e, size_t n_rows,
                        int32_t (*sums)[QK_DW_BLOCK]) {
    const size_t plane = t->plane * LANES;
#define INIT(v)  (v < n_vectors ? VLOAD(init + v * LANES) : VLOAD(init))
#define START(r) VEC s##r##0 = INIT(0), s##r##1 = INIT(1), s##r##2 = INIT(2), s##r##3 = INIT(3);
#define ADD(r)                                                                                                         \
    s##r##0 = VDOT(s##r##0, VLOAD(x + r * stride * LANES), w0);                                                        \
    if (n_vectors > 1) s##r##1 = VDOT(s##r##1, VLOAD(x + plane + r * stride * LANES), w1);                             \
    if (n_vectors > 2) s##r##2 = VDOT(s##r##2, VLOAD(x + 2 * plane + r * stride * LANES), w2);                         \
    if (n_vectors > 3) s##r##3 = VDOT(s##r##3, VLOAD(x + 3 * plane + r * stride * LANES), w3);
    FOUR_ROWS(START)
    for (size_t g = 0; g < t->n_groups; g++) {
        const int32_t *x = columns + g * t->group;
        for (size_t k = 0; k < t->kernel; k++, x += t->dilation * LANES, weights += QK_DW_BLOCK) {
            const VEC w0 = VLOAD(weights), w1 = n_vectors > 1 ? VLOAD(weights + LANES) : w0;
            const VEC w2 = n_vectors > 2 ? VLOAD(weights + 2 * LANES) : w0;
            const VEC w3 = n_vectors > 3 ? VLOAD(weights + 3 * LANES) : w0;
            FOUR_ROWS(ADD)
        }
    }
    if (e == NULL) {
        FOUR_ROWS(END_SUMS)
        return;
    }
#if END_BYTES
    if (!e->is_floats) {
        if (n_vectors == 1) {
            END_BYTES1(0, 1, 2, 3)
        }
        if (n_vectors == 2) {
            END_BYTES2(0, 1) END_BYTES2(2, 3)
        }
        if (n_vectors == 3) {
            FOUR_ROWS(END_BYTES3)
        }
        if (n_vectors == 4) {
            FOUR_ROWS(END_BYTES4)
        }
        return;
    }
#endif
    FOUR_ROWS(END_FLOATS)
#undef INIT
#undef START
#undef ADD
}

/* The end of columns from c on, of outputs from x on. */
QK_INLINE qk_conv_end end_from(const qk_conv_end *e, size_t c, size_t x) {
    qk_conv_end some = *e;
    if (e->scale != NULL) some.scale += c;
    if (e->bias != NULL) some.bias += c;
    some.n_cols -= c;
    some.dst += (e->is_floats ? 4 * c : c) + x * (size_t)e->step;
    return some;
}

/* All outputs of n_vectors vectors of columns from c on. */
QK_INLINE void sum_vectors(const qk_dw_taps *t, size_t c, size_t n_vectors, const int32_t *columns,
                           const int32_t *weights, const int32_t *init, size_t n, const qk_conv_end *e,
                           int32_t (*sums)[QK_DW_BLOCK]) {
    const int32_t *plane = columns + c * t->plane;
    int32_t(*to)[QK_DW_BLOCK] = (int32_t(*)[QK_DW_BLOCK])(sums[0] + c);
    weights += c;
    init += c;
    qk_conv_end some;
    ptrdiff_t rows[4];
    if (e != NULL) {
        some = end_from(e, c, 0);
        for (size_t i = 0; i < 4; i++)
            rows[i] = (ptrdiff_t)i * e->step;
        some.rows = rows;
    }
    const qk_conv_end *end = e == NULL ? NULL : &some;
    for (size_t x = 0; x < n; x += 4) {
        const int32_t *at = plane + x * t->stride * LANES;
        const size_t n_rows = n - x < 4 ? n - x : 4;
        if (t->stride == 1)
            sum_four(t, 1, n_vectors, at, weights, init, end, n_rows, to + x);
        else if (t->stride == 2)
            sum_four(t, 2, n_vectors, at, weights, init, end, n_rows, to + x);
        else
            sum_four(t, t->stride, n_vectors, at, weights, init, end, n_rows, to + x);
        if (e != NULL) some.dst += 4 * e->step;
    }
}

static void sum_outputs(const qk_dw_taps *t, const int32_t *columns, const int32_t *weights, const int32_t *init,
                        size_t n, const qk_conv_end *e, int32_t (*sums)[QK_DW_BLOCK]) {
    for (size_t c = 0, left; c < t->n_channels; c += VECTORS * LANES) {
        left = t->n_channels - c;
#if VECTORS == 4
        if (left > 3 * LANES) {
            sum_vectors(t, c, 4, columns, weights, init, n, e, sums);
            continue;
        }
        if (left > 2 * LANES) {
            sum_vectors(t, c, 3, columns, weights, init, n, e, sums);
            continue;
        }
#endif
        if (left > LANES)
            sum_vectors(t, c, 2, columns, weights, init, n, e, sums);
        else
            sum_vectors(t, c, 1, columns, weights, init, n, e, sums);
    }
}
