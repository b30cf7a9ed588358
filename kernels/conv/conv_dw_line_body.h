/* Outputs of a window of 3 x 3, its columns woven in registers: for 4 * WIDTH channels, WIDTH of a vector's dwords. Before
 * each inclusion, conv_dw_avx512vnni.c defines
 *     WIDTH, L(name), M(name)   lanes; a name of this width; an intrinsic of it
 *     VI, VF                    vectors of integers and floats
 * Four vectors of bytes interleaved twice give dwords of channels in an order that packing them to bytes undoes, both inside of
 * 128-bit lanes. Weights, terms, scales and biases are brought into that order once per strip. */

/* The dwords of channels in that order, vector j. */
QK_INLINE VI L(ordered)(const void *dwords, size_t j) {
    const __m128i *p = (const __m128i *)dwords + j;
#if WIDTH == 16
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), _mm_loadu_si128(p + 4), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p + 8)), _mm_loadu_si128(p + 12), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#elif WIDTH == 8
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), _mm_loadu_si128(p + 4), 1);
#else
    return _mm_loadu_si128(p);
#endif
}

typedef struct L(four) {
    VI v[4];
} L(four);

/* What a line works with. */
typedef struct L(work) {
    const uint8_t *at[3];
    size_t step[3];
    __mmask64 lanes;
    bool is_whole;
    VI flip;
    L(four) w[3], init, scale, bias;
} L(work);

QK_INLINE VI L(load)(const L(work) * k, const uint8_t *p) {
    return k->is_whole ? M(loadu_si)(p) : M(maskz_loadu_epi8)((MASK)k->lanes, p);
}

QK_INLINE L(four) L(weave_three)(const L(work) * k, const uint8_t *p0, const uint8_t *p1, const uint8_t *p2) {
    const VI x0 = M(xor_si)(L(load)(k, p0), k->flip), x1 = M(xor_si)(L(load)(k, p1), k->flip);
    const VI x2 = M(xor_si)(L(load)(k, p2), k->flip), none = M(setzero_si)();
    const VI lo01 = M(unpacklo_epi8)(x0, x1), hi01 = M(unpackhi_epi8)(x0, x1);
    const VI lo2 = M(unpacklo_epi8)(x2, none), hi2 = M(unpackhi_epi8)(x2, none);
    L(four) d;
    d.v[0] = M(unpacklo_epi16)(lo01, lo2);
    d.v[1] = M(unpackhi_epi16)(lo01, lo2);
    d.v[2] = M(unpacklo_epi16)(hi01, hi2);
    d.v[3] = M(unpackhi_epi16)(hi01, hi2);
    return d;
}

QK_INLINE L(four) L(add)(L(four) s, L(four) d, const L(four) * w) {
    QK_FOUR_TIMES(i, s.v[i] = M(dpbusd_epi32)(s.v[i], d.v[i], w->v[i]));
    return s;
}

QK_INLINE void L(finish)(const L(work) * k, const qk_conv_end *e, L(four) s, uint8_t *to) {
    VF v[4];
    QK_FOUR_TIMES(i, v[i] = M(mul_ps)(M(cvtepi32_ps)(s.v[i]), M(castsi_ps)(k->scale.v[i])));
    if (e->bias != NULL) QK_FOUR_TIMES(i, v[i] = M(add_ps)(v[i], M(castsi_ps)(k->bias.v[i])));
    if (e->has_shift) QK_FOUR_TIMES(i, v[i] = M(add_ps)(v[i], M(set1_ps)(e->shift)));
    const VI zp = M(set1_epi16)(e->zp), low = M(set1_epi8)((char)e->low), high = M(set1_epi8)((char)e->high);
    const VI a = M(adds_epi16)(M(packs_epi32)(M(cvtps_epi32)(v[0]), M(cvtps_epi32)(v[1])), zp);
    const VI b = M(adds_epi16)(M(packs_epi32)(M(cvtps_epi32)(v[2]), M(cvtps_epi32)(v[3])), zp);
    const VI q = e->is_signed ? M(min_epi8)(M(max_epi8)(M(packs_epi16)(a, b), low), high)
                              : M(min_epu8)(M(max_epu8)(M(packus_epi16)(a, b), low), high);
    if (k->is_whole)
        M(storeu_si)(to, q);
    else
        M(mask_storeu_epi8)(to, (MASK)k->lanes, q);
}

/* Column x of the source, which may lie in the padding. */
QK_INLINE L(four) L(column)(const L(work) * k, const qk_dw_strip *l, int64_t x) {
    if (x < 0 || x >= l->width) return L(weave_three)(k, l->padding, l->padding, l->padding);
    const size_t at = (size_t)x;
    return L(weave_three)(k, k->at[0] + at * k->step[0], k->at[1] + at * k->step[1], k->at[2] + at * k->step[2]);
}

QK_INLINE void L(line)(const qk_dw_strip *l, const qk_conv_end *e, L(work) k, uint8_t *to) {
    uint8_t *end = to + (ptrdiff_t)l->n_out * e->step;
    int64_t x = -l->pad;
    L(four) d = L(column)(&k, l, x++), s0 = L(add)(k.init, d, &k.w[0]), s1, s2;
    d = L(column)(&k, l, x++);
    s0 = L(add)(s0, d, &k.w[1]);
    if (l->stride == 2) {
        for (;;) {
            d = L(column)(&k, l, x++);
            s1 = L(add)(k.init, d, &k.w[0]);
            L(finish)(&k, e, L(add)(s0, d, &k.w[2]), to);
            to += e->step;
            if (to == end) return;
            d = L(column)(&k, l, x++);
            s0 = L(add)(s1, d, &k.w[1]);
        }
    }
    s1 = L(add)(k.init, d, &k.w[0]);
/* A column is the third of one output, the second of the next, the first of the one after. */
#define STEP(third, second, first)                                                                                     \
    d = L(column)(&k, l, x++);                                                                                         \
    first = L(add)(k.init, d, &k.w[0]);                                                                                \
    second = L(add)(second, d, &k.w[1]);                                                                               \
    L(finish)(&k, e, L(add)(third, d, &k.w[2]), to);                                                                   \
    to += e->step;                                                                                                     \
    if (to == end) return;
    for (;;) {
        STEP(s0, s1, s2)
        STEP(s1, s2, s0)
        STEP(s2, s0, s1)
    }
#undef STEP
}

static void L(strip)(const qk_dw_strip *l, const qk_conv_end *e) {
    L(work) k = {.is_whole = l->n_channels >= 4 * WIDTH, .flip = M(set1_epi8)((char)l->flip)};
    k.lanes = l->n_channels >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << l->n_channels) - 1;
    QK_FOUR_TIMES(j, k.w[0].v[j] = L(ordered)(l->weights, j));
    QK_FOUR_TIMES(j, k.w[1].v[j] = L(ordered)(l->weights + QK_DW_BLOCK, j));
    QK_FOUR_TIMES(j, k.w[2].v[j] = L(ordered)(l->weights + 2 * QK_DW_BLOCK, j));
    QK_FOUR_TIMES(j, k.init.v[j] = L(ordered)(l->init, j));
    QK_FOUR_TIMES(j, k.scale.v[j] = L(ordered)(e->scale, j));
    if (e->bias != NULL) QK_FOUR_TIMES(j, k.bias.v[j] = L(ordered)(e->bias, j));
    for (size_t line = 0; line < l->n_lines; line++) {
        for (size_t i = 0; i < 3; i++) {
            const uint8_t *at = l->line[line * 3 + i];
            k.at[i] = at != NULL ? at : l->padding;
            k.step[i] = at != NULL ? l->step : 0;
        }
        L(line)(l, e, k, e->dst + (ptrdiff_t)line * l->dst_step);
    }
}
