/* Strips of groups of four or eight channels, as many out as in, of a window of 3 x 3. Included by conv_dw_avx512vnni.c alone.
 *
 * A dword of the source is four channels of a group: each goes to the lanes of that group's outputs. Two vectors of sums are made
 * together: of groups of four, 32 channels; of groups of eight, the two halves of the products of 16. Every column is spread once, and
 * goes to the three outputs that see it. */

/* Sixteen channels of a column, of which n there are, as lanes of groups of four or eight want them; of eight the half `half`. */
QK_INLINE __m512i spread16(const uint8_t *p, size_t n, bool of_eight, size_t half, __m512i flip) {
    const __m128i x = n >= 16 ? _mm_loadu_si128((const __m128i *)(const void *)p)
                              : _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p);
    const __m512i four = _mm512_broadcast_i32x4(x);
    const int h = (int)half;
    const __m512i of_4 = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i of_8 =
        _mm512_setr_epi32(h, h, h, h, h, h, h, h, h + 2, h + 2, h + 2, h + 2, h + 2, h + 2, h + 2, h + 2);
    return _mm512_xor_si512(_mm512_permutexvar_epi32(of_eight ? of_8 : of_4, four), flip);
}

/* Results of n columns: two vectors, or one. */
QK_INLINE void group_end(const qk_conv_end *e, __m512i s0, __m512i s1, bool of_eight, size_t n, uint8_t *to) {
    qv_f v0 = end_value(e, of_eight ? _mm512_add_epi32(s0, s1) : s0, 0), v1 = of_eight ? v0 : end_value(e, s1, 1);
    if (e->has_shift) {
        v0 = qv_add(v0, qv_set1(e->shift));
        if (!of_eight) v1 = qv_add(v1, qv_set1(e->shift));
    }
    const qv_i q0 = qv_to_int(v0), q1 = of_eight ? q0 : qv_to_int(v1), q[4] = {q0, q1, q0, q1};
    end_store(to, end_order(end_pack(e, q)), 0, of_eight ? 1 : 2, n);
}

#define EACH_TAP(DO) DO(0, 0) DO(0, 1) DO(0, 2) DO(1, 0) DO(1, 1) DO(1, 2) DO(2, 0) DO(2, 1) DO(2, 2)
#define WEIGHTS(i, t)                                                                                                  \
    const VEC w##i##t##0 = VLOAD(w + (of_eight ? 6 * i + t : 3 * i + t) * QK_DW_BLOCK);                                \
    const VEC w##i##t##1 = VLOAD(w + (of_eight ? (6 * i + t + 3) * QK_DW_BLOCK : (3 * i + t) * QK_DW_BLOCK + LANES));
#define POINT(i) const uint8_t *p##i = line[i] == NULL ? NULL : line[i] + c;
#define ADD_LINE(s, i, t)                                                                                              \
    s##0 = VDOT(s##0, d##i##0, w##i##t##0);                                                                            \
    s##1 = VDOT(s##1, d##i##1, w##i##t##1);
#define ADD(s, t) ADD_LINE(s, 0, t) ADD_LINE(s, 1, t) ADD_LINE(s, 2, t)
#define LOAD(i)                                                                                                        \
    const uint8_t *q##i = p##i == NULL || !inside ? l->padding : p##i + at;                                            \
    const VEC d##i##0 = spread16(q##i, n, of_eight, 0, flip);                                                          \
    const VEC d##i##1 =                                                                                                \
        of_eight ? spread16(q##i, n, true, 1, flip) : spread16(q##i + 16, n > 16 ? n - 16 : 0, false, 0, flip);
#define COLUMN(...)                                                                                                    \
    {                                                                                                                  \
        const bool inside = x >= 0 && x < l->width;                                                                    \
        LOAD(0) LOAD(1) LOAD(2) __VA_ARGS__                                                                            \
    }                                                                                                                  \
    x++;                                                                                                               \
    at += step;
#define FRESH(s)                                                                                                       \
    s##0 = init0;                                                                                                      \
    s##1 = init1;
#define END(s)                                                                                                         \
    group_end(e, s##0, s##1, of_eight, n, to);                                                                         \
    FRESH(s)                                                                                                           \
    to += e->step;                                                                                                     \
    if (to == stop) break;

/* n channels from c on: 32, of eight 16, or fewer at the end; constants of the caller where they are whole. */
QK_INLINE void group_columns(const qk_dw_strip *l, const qk_conv_end *all, size_t c, size_t n, bool of_eight) {
    const int32_t *w = l->weights + c;
    EACH_TAP(WEIGHTS)
    const VEC init0 = VLOAD(l->init + c), init1 = of_eight ? _mm512_setzero_si512() : VLOAD(l->init + c + LANES);
    const VEC flip = _mm512_set1_epi8((char)l->flip);
    const qk_conv_end some = end_from(all, c, 0), *e = &some;
    const ptrdiff_t step = (ptrdiff_t)l->step;
    const uint8_t *const *line = l->line;
    for (size_t i = 0; i < l->n_lines; i++, line += 3) {
        POINT(0)
        POINT(1) POINT(2) uint8_t *to = e->dst + (ptrdiff_t)i * l->dst_step, *stop = to + (ptrdiff_t)l->n_out * e->step;
        int64_t x = -l->pad;
        ptrdiff_t at = x * step;
        VEC a0 = init0, a1 = init1, b0 = init0, b1 = init1, c0 = init0, c1 = init1;
        COLUMNS(l->stride)
    }
}
#undef EACH_TAP
#undef WEIGHTS
#undef POINT
#undef ADD_LINE
#undef ADD
#undef LOAD
#undef COLUMN
#undef FRESH
#undef END

static void group_strip(const qk_dw_strip *l, const qk_conv_end *e) {
    size_t c = 0;
    if (l->in_group == 8) {
        for (; l->n_channels - c >= 16; c += 16)
            group_columns(l, e, c, 16, true);
        if (c < l->n_channels) group_columns(l, e, c, l->n_channels - c, true);
        return;
    }
    for (; l->n_channels - c >= 32; c += 32)
        group_columns(l, e, c, 32, false);
    if (c < l->n_channels) group_columns(l, e, c, l->n_channels - c, false);
}
