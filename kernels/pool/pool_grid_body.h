/* Whole grids of windows, written once for both widths. */
#include "kernels/pool/pool_row.h"
#include "kernels/simd/wide.h"

#include <string.h>

enum { BYTES = 4 * QKW_LANES };

/* What is there of BYTES bytes. Only at the end of a tensor are they not all there; `all` says they are. */
QK_INLINE qkw_i read(const uint8_t *p, const uint8_t *end, bool all) {
    if (all || end - p >= BYTES) return qkw_load(p);
    uint8_t room[BYTES] = {0};
    memcpy(room, p, end > p ? (size_t)(end - p) : 0);
    return qkw_load(room);
}

/* n results of `width` bytes at p: as many as fit before the end. What lies behind the n is written again later, by the next row. */
QK_INLINE void write(uint8_t *p, const uint8_t *end, size_t n, qkw_i v, size_t width, bool all) {
    uint8_t room[BYTES];
    if (all || end - p >= (ptrdiff_t)width) {
        if (width == BYTES)
            qkw_store(p, v);
        else
            qkw_store_low(p, v);
        return;
    }
    qkw_store(room, v);
    memcpy(p, room, n < width ? n : width);
}

/* Is there room for whole vectors in the row of windows at src, whose results are at dst? */
QK_INLINE bool has_room(const qk_pool_grid *g, const uint8_t *src, const uint8_t *src_end, const uint8_t *dst,
                        const uint8_t *dst_end) {
    const size_t whole = (g->n * g->step + BYTES - 1) / BYTES * BYTES;
    return (size_t)(src_end - src) >= whole + g->last_tap && (size_t)(dst_end - dst) >= whole / g->step;
}

/* `pair`: each tap is two bytes side by side; step 2. */
QK_INLINE void max_row(const qk_pool_grid *g, const uint8_t *src, const uint8_t *src_end, uint8_t *dst,
                       const uint8_t *dst_end, bool is_signed, size_t step, bool pair, bool all) {
    const size_t width = BYTES / step;
    for (size_t i = 0; i < g->n; i += width) {
        const uint8_t *s = src + i * step;
        qkw_i max = read(s + g->taps[0], src_end, all);
        for (size_t t = 1; t < g->n_taps; t++) {
            qkw_i v = read(s + g->taps[t], src_end, all);
            max = is_signed ? QKW(max_epi8)(max, v) : QKW(max_epu8)(max, v);
        }
        if (pair) {
            qkw_i next = QKW(srli_epi16)(max, 8);
            max = is_signed ? QKW(max_epi8)(max, next) : QKW(max_epu8)(max, next);
        }
        if (step == 2) max = qkw_even_bytes(max);
        write(dst + i, dst_end, g->n - i, max, width, all);
    }
}

QK_INLINE void max_rows_of(const qk_pool_grid *g, const uint8_t *src, uint8_t *dst, bool is_signed, size_t step,
                           bool pair) {
    const uint8_t *src_end = src + g->src_bytes, *dst_end = dst + g->dst_bytes;
    for (size_t r = 0; r < g->n_rows; r++, src += g->src_row, dst += g->dst_row)
        if (has_room(g, src, src_end, dst, dst_end))
            max_row(g, src, src_end, dst, dst_end, is_signed, step, pair, true);
        else
            max_row(g, src, src_end, dst, dst_end, is_signed, step, pair, false);
}

static void max_grid(const qk_pool_grid *g, const uint8_t *src, uint8_t *dst) {
#define OF_FORM(step, pair)                                                                                            \
    if (g->is_signed)                                                                                                  \
        max_rows_of(g, src, dst, true, step, pair);                                                                    \
    else                                                                                                               \
        max_rows_of(g, src, dst, false, step, pair)
    if (g->pair) {
        OF_FORM(2, true);
    } else if (g->step == 2) {
        OF_FORM(2, false);
    } else {
        OF_FORM(1, false);
    }
#undef OF_FORM
}

/* ---- means ---- */

/* qk_pool_mean in registers. */
typedef struct mean {
    qkw_i factor, add_low, add_high, near_from, near_width, ties[2], bits;
} mean;

QK_INLINE mean mean_in_registers(const qk_pool_mean *m) {
    return (mean){QKW(set1_epi16)((short)m->factor),
                  QKW(set1_epi16)((short)(m->add & 0xffff)),
                  QKW(set1_epi16)((short)(m->add >> 16)),
                  QKW(set1_epi16)((short)(0x8000 - m->near)),
                  QKW(set1_epi16)((short)(2 * m->near)),
                  {qkw_four_times(m->ties), qkw_four_times(m->ties + 16)},
                  qkw_four_times((const uint8_t[16]){1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128})};
}

/* Bytes: 1 where the tie above a result is rounded up. */
QK_INLINE qkw_i tie_up(const mean *m, qkw_i result) {
    qkw_i which = qkw_and(QKW(srli_epi16)(result, 3), QKW(set1_epi8)(31));
    qkw_i low = QKW(shuffle_epi8)(m->ties[0], which), high = QKW(shuffle_epi8)(m->ties[1], which);
    qkw_i bit = QKW(shuffle_epi8)(m->bits, qkw_and(result, QKW(set1_epi8)(7)));
    qkw_i up = qkw_and(qkw_by_top_bit(QKW(slli_epi16)(which, 3), low, high), bit);
    return QKW(min_epu8)(up, QKW(set1_epi8)(1));
}

/* Words: the lower half is the fraction, the upper one the result but for rounding. */
typedef struct fixed_mean {
    qkw_i whole, part;
} fixed_mean;

QK_INLINE fixed_mean fixed_of(const mean *m, qkw_i sum) {
    qkw_i part = QKW(mullo_epi16)(sum, m->factor), low = QKW(add_epi16)(part, m->add_low);
    qkw_i whole = QKW(add_epi16)(QKW(mulhi_epu16)(sum, m->factor), m->add_high);
    return (fixed_mean){qkw_add_carry(whole, low, part), low};
}

QK_INLINE qkw_i rounded(const mean *m, fixed_mean f, qkw_i tie) {
    qkw_i off = QKW(sub_epi16)(f.part, m->near_from); /* 0 ... near_width: near a half */
    qkw_i up = qkw_where_at_most(off, m->near_width, tie, QKW(srli_epi16)(f.part, 15));
    return QKW(add_epi16)(f.whole, up);
}

/* The means of low's and high's words, as bytes, interleaved as unpacklo and unpackhi make them. */
QK_INLINE qkw_i means_of(const mean *m, qkw_i low, qkw_i high) {
    const qkw_i zero = QKW(set1_epi32)(0);
    fixed_mean a = fixed_of(m, low), b = fixed_of(m, high);
    qkw_i tie = tie_up(m, QKW(packus_epi16)(a.whole, b.whole));
    return QKW(packus_epi16)(rounded(m, a, QKW(unpacklo_epi8)(tie, zero)),
                             rounded(m, b, QKW(unpackhi_epi8)(tie, zero)));
}

/* One vector of bytes, of which every second begins a window, to words: the sum of its taps. */
QK_INLINE qkw_i even_sum(const qk_pool_grid *g, const uint8_t *s, const uint8_t *end, qkw_i flip, bool all) {
    qkw_i sum = QKW(set1_epi32)(0);
    for (size_t t = 0; t < g->n_taps; t++) {
        qkw_i v = qkw_xor(read(s + g->taps[t], end, all), flip);
        if (g->pair)
            sum = QKW(add_epi16)(sum, QKW(maddubs_epi16)(v, QKW(set1_epi8)(1)));
        else
            sum = QKW(add_epi16)(sum, qkw_and(v, QKW(set1_epi16)(0xff)));
    }
    return sum;
}

QK_INLINE void mean_row(const qk_pool_grid *g, const mean *m, const uint8_t *src, const uint8_t *src_end, uint8_t *dst,
                        const uint8_t *dst_end, size_t step, bool all) {
    const size_t width = BYTES / step;
    const qkw_i flip = QKW(set1_epi8)((char)(g->is_signed ? -128 : 0)), zero = QKW(set1_epi32)(0);
    const qkw_i flip_back = QKW(set1_epi8)((char)(g->mean.to_signed ? -128 : 0));
    for (size_t i = 0; i < g->n; i += width) {
        const uint8_t *s = src + i * step;
        qkw_i low = zero, high = zero, out;
        if (step == 2) {
            low = even_sum(g, s, src_end, flip, all);
            fixed_mean f = fixed_of(m, low);
            qkw_i tie = tie_up(m, QKW(packus_epi16)(f.whole, zero));
            out = rounded(m, f, QKW(unpacklo_epi8)(tie, zero));
            out = qkw_even_bytes(QKW(max_epi16)(zero, QKW(min_epi16)(out, QKW(set1_epi16)(255))));
        } else {
            for (size_t t = 0; t < g->n_taps; t++) {
                qkw_i v = qkw_xor(read(s + g->taps[t], src_end, all), flip);
                low = QKW(add_epi16)(low, QKW(unpacklo_epi8)(v, zero));
                high = QKW(add_epi16)(high, QKW(unpackhi_epi8)(v, zero));
            }
            out = means_of(m, low, high);
        }
        write(dst + i, dst_end, g->n - i, qkw_xor(out, flip_back), width, all);
    }
}

static void mean_grid(const qk_pool_grid *g, const uint8_t *src, uint8_t *dst) {
    const uint8_t *src_end = src + g->src_bytes, *dst_end = dst + g->dst_bytes;
    const mean m = mean_in_registers(&g->mean);
    for (size_t r = 0; r < g->n_rows; r++, src += g->src_row, dst += g->dst_row) {
        const bool all = has_room(g, src, src_end, dst, dst_end);
        if (g->step == 2 && all)
            mean_row(g, &m, src, src_end, dst, dst_end, 2, true);
        else if (g->step == 2)
            mean_row(g, &m, src, src_end, dst, dst_end, 2, false);
        else if (all)
            mean_row(g, &m, src, src_end, dst, dst_end, 1, true);
        else
            mean_row(g, &m, src, src_end, dst, dst_end, 1, false);
    }
}

/* Bytes as 0 ... 255 into words, as many rows as fit those; of words, unpacklo and unpackhi have made eights that take turns. */
static void sum_columns(const uint8_t *src, size_t stride, size_t n_rows, int32_t *sum, size_t n, bool is_signed) {
    enum { ROWS = 256, EIGHT = 8 };
    const qkw_i flip = QKW(set1_epi8)((char)(is_signed ? -128 : 0)), zero = QKW(set1_epi32)(0);
    const uint8_t *end = src + (n_rows - 1) * stride + n;
    for (size_t i = 0; i < n; i += BYTES) {
        const size_t m = n - i < BYTES ? n - i : BYTES;
        for (size_t k = 0; k < m; k++)
            sum[i + k] = is_signed ? -128 * (int32_t)n_rows : 0;
        for (size_t at = 0; at < n_rows; at += ROWS) {
            const size_t rows = n_rows - at < ROWS ? n_rows - at : ROWS;
            qkw_i low = zero, high = zero;
            uint16_t words[2][BYTES / 2];
            for (size_t r = at; r < at + rows; r++) {
                const qkw_i v = qkw_xor(read(src + r * stride + i, end, false), flip);
                low = QKW(add_epi16)(low, QKW(unpacklo_epi8)(v, zero));
                high = QKW(add_epi16)(high, QKW(unpackhi_epi8)(v, zero));
            }
            qkw_store(words[0], low);
            qkw_store(words[1], high);
            for (size_t k = 0; k < m; k++)
                sum[i + k] += words[k / EIGHT % 2][k / (2 * EIGHT) * EIGHT + k % EIGHT];
        }
    }
}
