/* Windows of two or three by as many, walked along what they share. Written once for both widths, behind pool_grid_body.h.
 *
 * Channels last: along a row, a vector of channels at a time; each column of taps is taken once, and for windows that move by one,
 * once for two rows of results. Plain: down a plane, a vector of results beside each other at a time; each row of taps once. */
#include <stddef.h>

/* Sums of bytes in words: as unpacklo and unpackhi make them, or even and odd ones. A maximum is `low`. */
typedef struct taps {
    qkw_i low, high;
} taps;

/* How sums of one class of windows become results. */
typedef struct closing {
    mean m;
    qkw_i plain_add, plain_factor, flip_sum, flip;
    bool is_plain, is_quarter, is_signed;
} closing;

QK_INLINE closing closing_of(const qk_pool_walk *w, int row_class, int col_class) {
    const qk_pool_mean *m = &w->means[row_class][col_class];
    const int bytes_128 = w->is_signed ? 128 * w->k * w->k : 0;
    return (closing){.m = mean_in_registers(m),
                     .plain_add = QKW(set1_epi16)((short)(m->plain_add + bytes_128)),
                     .plain_factor = QKW(set1_epi16)((short)m->plain_factor),
                     .flip_sum = QKW(set1_epi16)((short)bytes_128),
                     .flip = QKW(set1_epi8)((char)(w->is_signed ? -128 : 0)),
                     .is_plain = m->form == QK_POOL_PLAIN,
                     .is_quarter = m->form == QK_POOL_QUARTER,
                     .is_signed = w->is_signed};
}

/* What PLAIN takes of a closing, to be held in registers. */
typedef struct plain_end {
    qkw_i add, factor;
    bool is_plain;
} plain_end;

QK_INLINE plain_end plain_of(const closing *e) {
    return (plain_end){e->plain_add, e->plain_factor, e->is_plain};
}

QK_INLINE qkw_i plainly(const plain_end *p, qkw_i sum) {
    return QKW(mulhi_epu16)(QKW(add_epi16)(sum, p->add), p->factor);
}

QK_INLINE qkw_i blank_of(bool is_signed) {
    return QKW(set1_epi8)((char)(is_signed ? -128 : 0));
}

QK_INLINE qkw_i larger_of(qkw_i a, qkw_i b, bool is_signed) {
    return is_signed ? QKW(max_epi8)(a, b) : QKW(max_epu8)(a, b);
}

/* Words: the sums of bytes side by side. */
QK_INLINE qkw_i pairs_of(qkw_i v, bool is_signed) {
    const qkw_i one = QKW(set1_epi8)(1);
    return is_signed ? QKW(maddubs_epi16)(one, v) : QKW(maddubs_epi16)(v, one);
}

QK_INLINE taps sum_of_two(qkw_i a, qkw_i b, bool is_signed) {
    return (taps){pairs_of(QKW(unpacklo_epi8)(a, b), is_signed), pairs_of(QKW(unpackhi_epi8)(a, b), is_signed)};
}

QK_INLINE taps widened(qkw_i a, bool is_signed) {
    const qkw_i zero = QKW(set1_epi32)(0);
    if (is_signed) return sum_of_two(a, zero, true);
    return (taps){QKW(unpacklo_epi8)(a, zero), QKW(unpackhi_epi8)(a, zero)};
}

QK_INLINE taps joined(taps a, taps b, bool is_max, bool is_signed) {
    if (is_max) return (taps){larger_of(a.low, b.low, is_signed), a.high};
    return (taps){QKW(add_epi16)(a.low, b.low), QKW(add_epi16)(a.high, b.high)};
}

/* ---- four bytes ---- */

/* Of four bytes a, b, c, d: the mean of the means, each rounded up, and what bit 0 of these lacks: a ^ b, c ^ d, and the same of
 * the means. Four times the mean is 4 * up less what was rounded: 0 ... 4. */
QK_INLINE qkw_i quarter_of(const closing *e, qkw_i up, qkw_i x, qkw_i y, qkw_i z) {
    const qkw_i one = QKW(set1_epi8)(1);
#if defined(__AVX512BW__)
    const qkw_i more = _mm512_ternarylogic_epi32(z, x, y, 0xe0), half = _mm512_ternarylogic_epi32(z, x, y, 0x18);
    /* a shuffle takes four bits of an index, and gives 0 where the top one is set: up / 8, with the top bit of up */
    const qkw_i top = _mm512_set1_epi8(-128), at = _mm512_ternarylogic_epi32(top, up, _mm512_srli_epi16(up, 3), 0xca);
    const qkw_i low = _mm512_shuffle_epi8(e->m.ties[0], at);
    const qkw_i high = _mm512_shuffle_epi8(e->m.ties[1], _mm512_xor_si512(at, top));
    const qkw_i bit = _mm512_shuffle_epi8(e->m.bits, _mm512_and_si512(up, _mm512_set1_epi8(15)));
    const qkw_i ties = _mm512_min_epu8(_mm512_ternarylogic_epi32(low, high, bit, 0xa8), one);
    return _mm512_sub_epi8(up, _mm512_and_si512(_mm512_ternarylogic_epi32(more, half, ties, 0xf8), one));
#else
    const qkw_i either = _mm256_or_si256(x, y), more = _mm256_and_si256(z, either);
    const qkw_i half = _mm256_or_si256(_mm256_andnot_si256(either, z), _mm256_andnot_si256(z, _mm256_and_si256(x, y)));
    const qkw_i down = _mm256_or_si256(more, _mm256_and_si256(half, tie_up(&e->m, up)));
    return _mm256_sub_epi8(up, _mm256_and_si256(down, one));
#endif
}

QK_INLINE qkw_i quarter(const closing *e, qkw_i a, qkw_i b, qkw_i c, qkw_i d, bool is_signed) {
    if (is_signed) a = qkw_xor(a, e->flip), b = qkw_xor(b, e->flip), c = qkw_xor(c, e->flip), d = qkw_xor(d, e->flip);
    const qkw_i p = QKW(avg_epu8)(a, b), q = QKW(avg_epu8)(c, d);
    const qkw_i result = quarter_of(e, QKW(avg_epu8)(p, q), qkw_xor(a, b), qkw_xor(c, d), qkw_xor(p, q));
    return is_signed ? qkw_xor(result, e->flip) : result;
}

/* ---- channels last ---- */

QK_INLINE qkw_i flipped(qkw_i v, bool is_signed) {
    return is_signed ? qkw_xor(v, QKW(set1_epi8)(-128)) : v;
}

QK_INLINE qkw_i closed(const closing *e, const plain_end *p, taps s, bool is_signed) {
    if (p->is_plain) return flipped(QKW(packus_epi16)(plainly(p, s.low), plainly(p, s.high)), is_signed);
    if (is_signed) s = (taps){QKW(add_epi16)(s.low, e->flip_sum), QKW(add_epi16)(s.high, e->flip_sum)};
    return flipped(means_of(&e->m, s.low, s.high), is_signed);
}

QK_INLINE const uint8_t *row_at(const qk_pool_walk *w, ptrdiff_t y) {
    if (y < 0 || y >= (ptrdiff_t)w->in_h) return w->blank;
    if ((size_t)y >= w->tail_row) return w->tail + ((size_t)y - w->tail_row) * w->row_bytes;
    return y == 0 ? w->head : w->src + (size_t)y * w->row_bytes;
}

/* One vector of channels of a column of k rows; or of two such columns, a row apart: of all four rows. */
typedef struct columns {
    taps a, b;
} columns;

QK_INLINE columns columns_at(const qk_pool_walk *w, const uint8_t *const *rows, ptrdiff_t x, size_t at, bool is_max,
                             bool is_signed, int k, bool two) {
    if ((size_t)x >= w->in_w) {
        const taps none = is_max ? (taps){blank_of(is_signed), blank_of(is_signed)}
                                 : (taps){QKW(set1_epi16)((short)(is_signed ? -128 * k : 0)),
                                          QKW(set1_epi16)((short)(is_signed ? -128 * k : 0))};
        return (columns){none, none};
    }
    const size_t i = (size_t)x * w->c + at;
    const qkw_i r0 = qkw_load(rows[0] + i), r1 = qkw_load(rows[1] + i);
    const qkw_i r2 = k == 3 ? qkw_load(rows[2] + i) : r1;
    if (is_max) {
        if (k == 2) return (columns){{larger_of(r0, r1, is_signed), r0}, {r0, r0}};
        const qkw_i both = larger_of(r1, r2, is_signed);
        const taps a = {larger_of(both, r0, is_signed), both};
        if (!two) return (columns){a, a};
        return (columns){a, {larger_of(both, qkw_load(rows[3] + i), is_signed), both}};
    }
    if (k == 2) {
        const taps a = sum_of_two(r0, r1, is_signed);
        return (columns){a, a};
    }
    const taps both = sum_of_two(r1, r2, is_signed), a = joined(both, widened(r0, is_signed), false, is_signed);
    if (!two) return (columns){a, a};
    return (columns){a, joined(both, widened(qkw_load(rows[3] + i), is_signed), false, is_signed)};
}

/* The channels at `at` of result ow of a row that ends at `end`. */
QK_INLINE void put(uint8_t *dst, const uint8_t *end, qkw_i v) {
    if (end - dst >= BYTES) {
        qkw_store(dst, v);
        return;
    }
    uint8_t room[BYTES];
    qkw_store(room, v);
    memcpy(dst, room, (size_t)(end - dst));
}

QK_INLINE int row_class(const qk_pool_walk *w, size_t oh) {
    return oh < w->whole_top ? 0 : oh >= w->whole_bottom ? 2 : 1;
}

/* What a vector of channels of one row of results needs. */
typedef struct row_end {
    uint8_t *dst, *end;
    const closing *classes;
} row_end;

QK_INLINE void put_result(const qk_pool_walk *w, const row_end *r, const plain_end *whole, size_t ow, size_t at, taps s,
                          bool is_max, bool is_signed) {
    qkw_i v = s.low;
    if (!is_max && ow >= w->whole_first && ow < w->whole_end) {
        v = closed(&r->classes[1], whole, s, is_signed);
    } else if (!is_max) {
        const closing *e = &r->classes[ow < w->whole_first ? 0 : 2];
        const plain_end p = plain_of(e);
        v = closed(e, &p, s, is_signed);
    }
    put(r->dst + ow * w->c + at, r->end, v);
}

/* Two rows of results, b first: where both are the same row, a is what stays. */
QK_INLINE void walk_by_one(const qk_pool_walk *w, const uint8_t *const *rows, const row_end *a, const row_end *b,
                           size_t at, bool is_max, bool is_signed) {
#define COLUMNS(x) columns_at(w, rows, x, at, is_max, is_signed, 3, true)
#define JOIN(p, q) joined(p, q, is_max, is_signed)
    const plain_end end_a = is_max ? (plain_end){0} : plain_of(&a->classes[1]);
    const plain_end end_b = is_max ? (plain_end){0} : plain_of(&b->classes[1]);
    ptrdiff_t x = -(ptrdiff_t)w->pad;
    columns c = COLUMNS(x), d = COLUMNS(x + 1);
    columns two = {JOIN(c.a, d.a), JOIN(c.b, d.b)};
    x += 2;
    size_t ow = 0;
    for (; ow + 2 <= w->out_w; ow += 2, x += 2) {
        const columns e = COLUMNS(x), f = COLUMNS(x + 1);
        const columns both = {JOIN(e.a, f.a), JOIN(e.b, f.b)};
        put_result(w, b, &end_b, ow, at, JOIN(two.b, e.b), is_max, is_signed);
        put_result(w, a, &end_a, ow, at, JOIN(two.a, e.a), is_max, is_signed);
        put_result(w, b, &end_b, ow + 1, at, JOIN(d.b, both.b), is_max, is_signed);
        put_result(w, a, &end_a, ow + 1, at, JOIN(d.a, both.a), is_max, is_signed);
        two = both;
        d = f;
    }
    if (ow < w->out_w) {
        const columns e = COLUMNS(x);
        put_result(w, b, &end_b, ow, at, JOIN(two.b, e.b), is_max, is_signed);
        put_result(w, a, &end_a, ow, at, JOIN(two.a, e.a), is_max, is_signed);
    }
#undef COLUMNS
}

/* Windows of three: the column that two of them share is taken once. */
QK_INLINE void walk_by_two(const qk_pool_walk *w, const uint8_t *const *rows, const row_end *a, size_t at, bool is_max,
                           bool is_signed) {
#define COLUMN(x) columns_at(w, rows, x, at, is_max, is_signed, 3, false).a
    const plain_end end_a = is_max ? (plain_end){0} : plain_of(&a->classes[1]);
    ptrdiff_t x = -(ptrdiff_t)w->pad;
    taps last = COLUMN(x);
    for (size_t ow = 0; ow < w->out_w; ow++, x += 2) {
        const taps c = COLUMN(x + 1), d = COLUMN(x + 2);
        put_result(w, a, &end_a, ow, at, JOIN(last, JOIN(c, d)), is_max, is_signed);
        last = d;
    }
#undef COLUMN
}

/* Windows of two, which share nothing: all channels of one before the next, so that rows come from memory in order. */
QK_INLINE void walk_twos(const qk_pool_walk *w, const uint8_t *const *rows, const row_end *a, bool is_max,
                         bool is_signed) {
#define COLUMN(x) columns_at(w, rows, x, from, is_max, is_signed, 2, false).a
    const closing *e = is_max ? NULL : &a->classes[1];
    const plain_end end_a = is_max ? (plain_end){0} : plain_of(e);
    ptrdiff_t x = -(ptrdiff_t)w->pad;
    for (size_t ow = 0; ow < w->out_w; ow++, x += 2) {
        const bool by_means = !is_max && e->is_quarter && ow >= w->whole_first && ow < w->whole_end;
        for (size_t at = 0; at < w->c; at += BYTES) {
            const size_t from = at + BYTES > w->c && w->c > BYTES ? w->c - BYTES : at;
            if (!by_means) {
                put_result(w, a, &end_a, ow, from, JOIN(COLUMN(x), COLUMN(x + 1)), is_max, is_signed);
                continue;
            }
            const uint8_t *p = rows[0] + (size_t)x * w->c + from, *q = rows[1] + (size_t)x * w->c + from;
            put(a->dst + ow * w->c + from, a->end,
                quarter(e, qkw_load(p), qkw_load(q), qkw_load(p + w->c), qkw_load(q + w->c), is_signed));
        }
    }
#undef COLUMN
#undef JOIN
}

QK_INLINE void last_rows(const qk_pool_walk *w, size_t first, size_t n, bool is_max, bool is_signed, int k, int step) {
    const closing(*classes)[3] = (const closing(*)[3])w->closings;
    const size_t row = w->out_w * w->c, at_once = step == 1 ? 2 : 1;
    for (size_t i = 0; i < n; i += at_once) {
        const uint8_t *rows[4];
        const ptrdiff_t y = (ptrdiff_t)((first + i) * (size_t)step) - (ptrdiff_t)w->pad_top;
        for (int r = 0; r < 4; r++)
            rows[r] = row_at(w, y + r);
        uint8_t *dst = w->dst + i * row;
        const row_end a = {dst, dst + row, classes[row_class(w, first + i)]};
        row_end b = a;
        if (step == 1 && i + 1 < n) b = (row_end){dst + row, dst + 2 * row, classes[row_class(w, first + i + 1)]};
        if (k == 2) {
            walk_twos(w, rows, &a, is_max, is_signed);
            continue;
        }
        for (size_t at = 0; at < w->c; at += BYTES) {
            const size_t from = at + BYTES > w->c && w->c > BYTES ? w->c - BYTES : at;
            if (step == 1)
                walk_by_one(w, rows, &a, &b, from, is_max, is_signed);
            else
                walk_by_two(w, rows, &a, from, is_max, is_signed);
        }
    }
}

/* ---- plain ---- */

#if defined(__AVX512BW__)
typedef __mmask64 lane_set;
/* Lanes first ... end-1. */
QK_INLINE lane_set lanes_of(ptrdiff_t first, ptrdiff_t end) {
    const lane_set below = end <= 0 ? 0 : end >= 64 ? ~(lane_set)0 : ((lane_set)1 << end) - 1;
    const lane_set before = first <= 0 ? 0 : first >= 64 ? ~(lane_set)0 : ((lane_set)1 << first) - 1;
    return below & ~before;
}
QK_INLINE qkw_i load_lanes(const uint8_t *p, lane_set lanes, qkw_i others) {
    return _mm512_mask_loadu_epi8(others, lanes, p);
}
QK_INLINE qkw_i load_lanes_or_0(const uint8_t *p, lane_set lanes) {
    return _mm512_maskz_loadu_epi8(lanes, p);
}
#else
typedef __m256i lane_set;
QK_INLINE lane_set lanes_of(ptrdiff_t first, ptrdiff_t end) {
    uint8_t room[32];
    for (ptrdiff_t i = 0; i < 32; i++)
        room[i] = i >= first && i < end ? 0xff : 0;
    return qkw_load(room);
}
QK_INLINE qkw_i load_lanes(const uint8_t *p, lane_set lanes, qkw_i others) {
    return _mm256_blendv_epi8(others, qkw_load(p), lanes);
}
QK_INLINE qkw_i load_lanes_or_0(const uint8_t *p, lane_set lanes) {
    return _mm256_and_si256(qkw_load(p), lanes);
}
#endif

enum { WALK_ROWS = 64 };

/* A strip of results of BYTES / step columns. */
typedef struct strip {
    ptrdiff_t x;           /* of its first tap */
    lane_set lanes[3];     /* that are inside, for loads from taps x, x + 1, x + 2 */
    size_t width, dst_row; /* results; their rows are so far apart */
    ptrdiff_t left, right; /* which of its results are in cut columns; less than 0: none */
    const uint8_t *end;    /* of what may be written */
} strip;

/* Word number i. */
QK_INLINE int16_t word_of(qkw_i v, ptrdiff_t i) {
#if defined(__AVX512BW__)
    const __m512i first = _mm512_permutexvar_epi16(_mm512_set1_epi16((short)i), v);
    return (int16_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(first));
#else
    const __m256i pair = _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32((int)(i >> 1)));
    return (int16_t)(_mm_cvtsi128_si32(_mm256_castsi256_si128(pair)) >> 16 * (i & 1));
#endif
}

QK_INLINE int16_t first_word(qkw_i v) {
#if defined(__AVX512BW__)
    return (int16_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(v));
#else
    return (int16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(v));
#endif
}

/* The results in cut columns, over what was written there. */
QK_INLINE void put_edges(const strip *s, taps sum, int step, const qk_pool_edges *e, uint8_t *dst) {
    if (s->left >= 0) dst[0] = e->left[first_word(sum.low)];
    if (s->right < 0) return;
    const qkw_i of = step == 1 && (s->right & 1) ? sum.high : sum.low;
    dst[s->right] = e->right[word_of(of, step == 1 ? s->right >> 1 : s->right)];
}

/* Lanes beside the row: the lowest value for a maximum, 0 for a sum. */
QK_INLINE qkw_i tap_at(const strip *s, const uint8_t *row, int at, bool is_max, bool is_signed) {
    const uint8_t *p = row + s->x + at;
    return is_max && is_signed ? load_lanes(p, s->lanes[at], blank_of(true)) : load_lanes_or_0(p, s->lanes[at]);
}

QK_INLINE qkw_i low_bytes(qkw_i v, bool is_signed) {
    return is_signed ? QKW(srai_epi16)(QKW(slli_epi16)(v, 8), 8) : qkw_and(v, QKW(set1_epi16)(0xff));
}

/* A row of taps of windows that move by one, at their middle: even results, odd results. */
QK_INLINE taps row_of_three(const strip *s, const uint8_t *row, bool is_max, bool is_signed) {
    const qkw_i a = tap_at(s, row, 0, is_max, is_signed), b = tap_at(s, row, 1, is_max, is_signed);
    const qkw_i c = tap_at(s, row, 2, is_max, is_signed);
    if (is_max) return (taps){larger_of(larger_of(a, b, is_signed), c, is_signed), a};
    const qkw_i middle = pairs_of(b, is_signed), before = low_bytes(a, is_signed);
    const qkw_i after = is_signed ? QKW(srai_epi16)(c, 8) : QKW(srli_epi16)(c, 8);
    return (taps){QKW(add_epi16)(middle, before), QKW(add_epi16)(middle, after)};
}

/* Bytes as means_of makes them, in the order of even and odd words. */
QK_INLINE qkw_i zipped(qkw_i v) {
    const uint8_t order[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
    return QKW(shuffle_epi8)(v, qkw_four_times(order));
}

/* As closed(), of even and odd sums. */
QK_INLINE qkw_i closed_even_odd(const closing *e, const plain_end *p, taps s, bool is_signed) {
    if (p->is_plain) return flipped(qkw_xor(plainly(p, s.low), QKW(slli_epi16)(plainly(p, s.high), 8)), is_signed);
    if (is_signed) s = (taps){QKW(add_epi16)(s.low, e->flip_sum), QKW(add_epi16)(s.high, e->flip_sum)};
    return flipped(zipped(means_of(&e->m, s.low, s.high)), is_signed);
}

/* Words, of which the lower bytes count. */
QK_INLINE qkw_i closed_words(const closing *e, const plain_end *p, qkw_i sum, bool is_signed) {
    if (p->is_plain) return flipped(plainly(p, sum), is_signed);
    const qkw_i zero = QKW(set1_epi32)(0);
    if (is_signed) sum = QKW(add_epi16)(sum, e->flip_sum);
    const fixed_mean f = fixed_of(&e->m, sum);
    const qkw_i tie = QKW(unpacklo_epi8)(tie_up(&e->m, QKW(packus_epi16)(f.whole, zero)), zero);
    const qkw_i v = QKW(min_epi16)(rounded(&e->m, f, tie), QKW(set1_epi16)(255));
    return flipped(QKW(max_epi16)(zero, v), is_signed);
}

QK_INLINE void put_row(const strip *s, taps sum, const closing *e, const plain_end *p, const qk_pool_edges *edges,
                       uint8_t *dst, bool is_max, bool is_signed) {
    if (is_max) {
        write(dst, s->end, s->width, sum.low, BYTES, false);
        return;
    }
    write(dst, s->end, s->width, closed_even_odd(e, p, sum, is_signed), BYTES, false);
    put_edges(s, sum, 1, edges, dst);
}

/* n rows of results, all of the class e, whose taps are in rows[0], rows[1], ... */
QK_INLINE void strip_by_one(const strip *s, const uint8_t *const *rows, size_t n, const closing *e,
                            const qk_pool_edges *edges, uint8_t *dst, bool is_max, bool is_signed) {
#define ROW(r)     row_of_three(s, rows[r], is_max, is_signed)
#define JOIN(p, q) joined(p, q, is_max, is_signed)
    const plain_end plain = is_max ? (plain_end){0} : plain_of(e);
    taps one = ROW(1), two = JOIN(ROW(0), one);
    size_t i = 0;
    for (; i + 2 <= n; i += 2, dst += 2 * s->dst_row) {
        const taps a = ROW(i + 2), b = ROW(i + 3), both = JOIN(a, b);
        put_row(s, JOIN(two, a), e, &plain, edges, dst, is_max, is_signed);
        put_row(s, JOIN(one, both), e, &plain, edges, dst + s->dst_row, is_max, is_signed);
        two = both;
        one = b;
    }
    if (i < n) put_row(s, JOIN(two, ROW(i + 2)), e, &plain, edges, dst, is_max, is_signed);
#undef ROW
}

/* Likewise for windows that move by two. */
QK_INLINE void strip_by_two(const strip *s, const uint8_t *const *rows, size_t n, const closing *e,
                            const qk_pool_edges *edges, uint8_t *dst, bool is_max, bool is_signed, int k) {
#define TAP(row, at) tap_at(s, rows[row], at, is_max, is_signed)
    const plain_end plain = is_max ? (plain_end){0} : plain_of(e);
    for (size_t i = 0; i < n; i++, dst += s->dst_row, rows += 2) {
        qkw_i a = TAP(0, 0), b = TAP(1, 0), v;
        if (is_max) {
            v = larger_of(a, b, is_signed);
            if (k == 3) v = larger_of(v, TAP(2, 0), is_signed);
            v = larger_of(v, QKW(srli_epi16)(v, 8), is_signed);
            if (k == 3) {
                const qkw_i c = larger_of(TAP(0, 2), TAP(1, 2), is_signed);
                v = larger_of(v, larger_of(c, TAP(2, 2), is_signed), is_signed);
            }
        } else if (k == 2 && e->is_quarter) {
            if (is_signed) a = qkw_xor(a, e->flip), b = qkw_xor(b, e->flip);
            const qkw_i x = qkw_xor(a, b), half = QKW(avg_epu8)(a, b), next = QKW(srli_epi16)(half, 8);
            v = quarter_of(e, QKW(avg_epu8)(half, next), x, QKW(srli_epi16)(x, 8), qkw_xor(half, next));
            if (is_signed) v = qkw_xor(v, e->flip);
        } else {
            v = QKW(add_epi16)(pairs_of(a, is_signed), pairs_of(b, is_signed));
            if (k == 3) {
                const qkw_i c = QKW(add_epi16)(low_bytes(TAP(0, 2), is_signed), low_bytes(TAP(1, 2), is_signed));
                v = QKW(add_epi16)(v, pairs_of(TAP(2, 0), is_signed));
                v = QKW(add_epi16)(v, QKW(add_epi16)(c, low_bytes(TAP(2, 2), is_signed)));
            }
            const taps sum = {v, v};
            write(dst, s->end, s->width, qkw_even_bytes(closed_words(e, &plain, v, is_signed)), BYTES / 2, false);
            put_edges(s, sum, 2, edges, dst);
            continue;
        }
        write(dst, s->end, s->width, qkw_even_bytes(v), BYTES / 2, false);
    }
#undef TAP
}
#undef JOIN

/* Rows first ... first+n-1 of results: those of a class, if any. */
QK_INLINE size_t class_begin(const qk_pool_walk *w, size_t first, size_t n, int class) {
    const size_t from = class == 0 ? 0 : class == 1 ? w->whole_top : w->whole_bottom;
    return from <= first ? 0 : from - first < n ? from - first : n;
}

QK_INLINE void plane_rows(const qk_pool_walk *w, size_t first, size_t n_rows, bool is_max, bool is_signed, int k,
                          int step) {
    const size_t width = BYTES / (size_t)step;
    const closing(*classes)[3] = (const closing(*)[3])w->closings;
    for (size_t done = 0, n; done < n_rows; done += n) {
        n = n_rows - done < WALK_ROWS ? n_rows - done : WALK_ROWS;
        const uint8_t *rows[2 * WALK_ROWS + 3];
        const size_t n_source = (n - 1) * (size_t)step + (size_t)k;
        const ptrdiff_t y = (ptrdiff_t)((first + done) * (size_t)step) - (ptrdiff_t)w->pad_top;
        const uint8_t *row = w->src + y * (ptrdiff_t)w->row_bytes;
        for (size_t r = 0; r < n_source; r++, row += w->row_bytes)
            rows[r] = row;
        for (size_t r = 0; r < n_source && y + (ptrdiff_t)r <= 0; r++)
            rows[r] = row_at(w, y + (ptrdiff_t)r);
        for (size_t r = n_source; r-- > 0 && y + (ptrdiff_t)r >= (ptrdiff_t)w->tail_row;)
            rows[r] = row_at(w, y + (ptrdiff_t)r);
        uint8_t *dst = w->dst + done * w->out_w;
        const size_t n_strips = (w->out_w + width - 1) / width;
        for (size_t i = n_strips; i-- > 0;) { /* from the right: what a strip writes behind its row is the next row's */
            const size_t at = (i + 1) * width > w->out_w && w->out_w > width ? w->out_w - width : i * width;
            const ptrdiff_t x = (ptrdiff_t)(at * (size_t)step) - (ptrdiff_t)w->pad, end = (ptrdiff_t)w->in_w;
            const strip s = {
                .x = x,
                .lanes = {lanes_of(-x, end - x), lanes_of(-x - 1, end - x - 1), lanes_of(-x - 2, end - x - 2)},
                .width = w->out_w - at < width ? w->out_w - at : width,
                .dst_row = w->out_w,
                .left = at == 0 && w->whole_first > 0 ? 0 : -1,
                .right = i == n_strips - 1 && w->whole_end < w->out_w ? (ptrdiff_t)(w->out_w - 1 - at) : -1,
                .end = w->dst_end};
            for (int c = 0; c < 3; c++) {
                const size_t from = is_max ? (c == 0 ? 0 : n) : class_begin(w, first + done, n, c);
                const size_t to = is_max || c == 2 ? n : class_begin(w, first + done, n, c + 1);
                if (from >= to) continue;
                const uint8_t *const *of = rows + from * (size_t)step;
                uint8_t *result = dst + at + from * w->out_w;
                if (step == 1)
                    strip_by_one(&s, of, to - from, &classes[c][1], &w->edges[c], result, is_max, is_signed);
                else
                    strip_by_two(&s, of, to - from, &classes[c][1], &w->edges[c], result, is_max, is_signed, k);
            }
        }
    }
}

#define WALK_OF_FORM(rows_of, is_max, is_signed)                                                                       \
    if (w->step == 1)                                                                                                  \
        rows_of(w, first, n, is_max, is_signed, 3, 1);                                                                 \
    else if (w->k == 3)                                                                                                \
        rows_of(w, first, n, is_max, is_signed, 3, 2);                                                                 \
    else                                                                                                               \
        rows_of(w, first, n, is_max, is_signed, 2, 2)

static void walk_last_max(const qk_pool_walk *w, size_t first, size_t n) {
    if (w->is_signed) {
        WALK_OF_FORM(last_rows, true, true);
    } else {
        WALK_OF_FORM(last_rows, true, false);
    }
}
static void walk_last_mean(const qk_pool_walk *w, size_t first, size_t n) {
    if (w->is_signed) {
        WALK_OF_FORM(last_rows, false, true);
    } else {
        WALK_OF_FORM(last_rows, false, false);
    }
}
static void walk_plane_max(const qk_pool_walk *w, size_t first, size_t n) {
    if (w->is_signed) {
        WALK_OF_FORM(plane_rows, true, true);
    } else {
        WALK_OF_FORM(plane_rows, true, false);
    }
}
static void walk_plane_mean(const qk_pool_walk *w, size_t first, size_t n) {
    if (w->is_signed) {
        WALK_OF_FORM(plane_rows, false, true);
    } else {
        WALK_OF_FORM(plane_rows, false, false);
    }
}
static void make_closings(const qk_pool_walk *w, void *room) {
    closing *classes = room;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            classes[3 * r + c] = closing_of(w, r, c);
}
_Static_assert(9 * sizeof(closing) <= QK_POOL_CLOSINGS, "room for all classes");

static const qk_pool_walkers walkers = {make_closings, walk_last_max, walk_last_mean, walk_plane_max, walk_plane_mean};
