/* The sums of a depthwise row, for a level that has defined
 *     VEC, LANES           a vector of so many dwords
 *     VLOAD(p) VSTORE(p, v)
 *     VDOT(s, x, w)        s plus, per dword, the products of the values in x and w
 * Included by conv_dw_<level>.c alone. */

#define EIGHT_SUMS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7)

/* Eight outputs of one vector of channels. `stride` is a constant of the caller where it can be. */
QK_INLINE void sum_eight(const qk_dw_taps *t, size_t stride, const int32_t *columns, const int32_t *weights,
                         const int32_t *init, int32_t (*sums)[QK_DW_BLOCK]) {
#define START(i) VEC s##i = VLOAD(init);
#define ADD(i)   s##i = VDOT(s##i, VLOAD(x + i * stride * LANES), w);
#define STORE(i) VSTORE(sums[i], s##i);
    EIGHT_SUMS(START)
    for (size_t g = 0; g < t->n_groups; g++) {
        const int32_t *x = columns + g * t->group;
        for (size_t k = 0; k < t->kernel; k++, x += t->dilation * LANES, weights += QK_DW_BLOCK) {
            const VEC w = VLOAD(weights);
            EIGHT_SUMS(ADD)
        }
    }
    EIGHT_SUMS(STORE)
#undef START
#undef ADD
#undef STORE
}

static void sum_outputs(const qk_dw_taps *t, const int32_t *columns, const int32_t *weights, const int32_t *init,
                        size_t n, int32_t (*sums)[QK_DW_BLOCK]) {
    for (size_t c = 0; c < t->n_channels; c += LANES) {
        const int32_t *plane = columns + c * t->plane;
        int32_t(*to)[QK_DW_BLOCK] = (int32_t(*)[QK_DW_BLOCK])(sums[0] + c);
        for (size_t x = 0; x < n; x += QK_DW_OUTPUTS) {
            const int32_t *at = plane + x * t->stride * LANES;
            if (t->stride == 1)
                sum_eight(t, 1, at, weights + c, init + c, to + x);
            else if (t->stride == 2)
                sum_eight(t, 2, at, weights + c, init + c, to + x);
            else
                sum_eight(t, t->stride, at, weights + c, init + c, to + x);
        }
    }
}
