/* Rows as integers of digits. Over the names of simd/vec512.h or vec256.h; included by gemm_avx512vnni.c and gemm_avx2.c alone.
 *
 * The row's floats become integers x = a 2^(22 - e) of 23 bits and a sign, 2^e the greatest power of two in the run; x is a number of
 * three digits -128 … 127 to the base 256, and each digit meets the weights in byte products of exact sums. Where a few values dwarf
 * the others (the greatest is above SPREAD times the mean) there are 30 bits and four digits. Several times fewer instructions than floats
 * of each weight. Rows that hold what is not finite, or runs outside of 2^±90, stay floats.
 *
 * The level says before:
 *     even_first(x)               of each eight lanes the even ones, then the odd
 *     store_bytes(p, x)           the lowest byte of each lane
 *     sum_of(x), greatest_of(x)   of the lanes
 *     digits_fn *form_of(is_4bit, n_digits)   sums of the digits of n k times weights, as unsigned numbers
 *     zps_of(zps, j, is_4bit)     zero points of vector j of them, plus what made the weights unsigned
 *     in_order(v)                 sums of 8-bit weights to the order of columns
 *     float_row                   the qk_gemm_fn for rows that stay floats */
#ifndef QK_GEMM_DIGITS_BODY_H
#define QK_GEMM_DIGITS_BODY_H

#include "kernels/gemm/gemm_digits_begin_body.h"

#define SPREAD 64.0f
enum { ROWS = 8, PART = 1024, RUNS = 64 };

/* A part of a row: the digits of its k, run after run, each padded to eight k. */
typedef struct part {
    size_t k, n_runs;
    float unit[RUNS];         /* of a run's integers */
    uint8_t n_digits[RUNS];   /* of a run's numbers, 3 or 4 */
    float sums[RUNS][DIGITS]; /* Σ of its digits */
    size_t first[RUNS];       /* where its digits begin */
    int8_t digits[DIGITS][PART + 64];
} part;

/* n floats to digits from `at` on. 4-bit weights meet the even k of eight first, then the odd. n_digits and is_4bit are constants of
 * the caller. */
QK_INLINE void to_digits(part *p, size_t run, const float *a, size_t n, float factor, const int n_digits,
                         const bool is_4bit) {
    const qv_f f = qv_set1(factor);
    qv_i s[DIGITS];
    QK_FOUR_TIMES(d, s[d] = qv_set1i(0));
    for (size_t i = 0; i < n; i += QV_LANES) {
        qv_i x = qv_to_int(qv_mul(qv_of_bits(qv_load4(a + i, n - i)), f));
        if (is_4bit) x = even_first(x);
        QK_FOUR_TIMES(
            d, if (d < n_digits) {
                const qv_i low = d == n_digits - 1 ? x : qv_srai(qv_slli(x, 24), 24);
                store_bytes(p->digits[d] + p->first[run] + i, low);
                s[d] = qv_addi(s[d], low);
                x = qv_srai(qv_subi(x, low), 8);
            });
    }
    QK_FOUR_TIMES(d, if (d < n_digits) p->sums[run][d] = (float)sum_of(s[d]));
}

QK_INLINE qv_i size_at(const float *a, size_t n) {
    return qv_andi(qv_load4(a, n), qv_set1i(INT32_MAX));
}

static float greatest(const float *a, size_t n) {
    qv_i most = qv_set1i(0);
    for (size_t i = 0; i < n; i += QV_LANES) /* a NaN compares as the greatest: integers of the same order */
        most = maxi(most, size_at(a + i, n - i));
    const int32_t bits = greatest_of(most);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float sum_of_sizes(const float *a, size_t n) {
    float lanes[QV_LANES], total = 0.0f;
    qv_f sum = qv_set1(0.0f);
    for (size_t i = 0; i < n; i += QV_LANES)
        sum = qv_add(sum, qv_of_bits(size_at(a + i, n - i)));
    qv_store(lanes, sum);
    for (size_t i = 0; i < QV_LANES; i++)
        total += lanes[i];
    return total;
}

QK_INLINE uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Whether all runs of the row are zero or within 2^±90. */
static bool is_tame(const qk_gemm *g, const float *a) {
    for (size_t k = 0; k < g->k;) {
        const qk_gemm_run run = qk_gemm_run_at(g, NULL, k);
        const float most = greatest(a + k, run.n_k);
        if (!(most == 0.0f || (most >= 0x1p-90f && most <= 0x1p90f))) return false;
        k += run.n_k;
    }
    return true;
}

/* Whole runs from k on, as many as there is room for; returns where the next part begins. */
static size_t make_part(const qk_gemm *g, const float *a, size_t k, part *p) {
    const bool is_4bit = qk_gemm_is_4bit(g);
    size_t at = 0;
    p->k = k;
    p->n_runs = 0;
    while (k < g->k && p->n_runs < RUNS) {
        const qk_gemm_run run = qk_gemm_run_at(g, NULL, k);
        if (at + run.n_k > PART) break;
        const float most = greatest(a + k, run.n_k);
        const bool four = most * (float)run.n_k > SPREAD * sum_of_sizes(a + k, run.n_k);
        /* the last digit of three takes up to 127.5; of four there is a bit to spare */
        const float whole = four ? most : most * (128.0f / 127.0f);
        const uint32_t bits = bits_of(whole) >> 23;
        const int32_t e = bits == 0 ? 0 : (int32_t)bits - 127, shift = four ? 29 - e : 22 - e;
        const uint32_t up = (uint32_t)(127 + shift) << 23, down = (uint32_t)(127 - shift) << 23;
        float factor;
        memcpy(&factor, &up, sizeof factor);
        memcpy(&p->unit[p->n_runs], &down, sizeof down);
        p->first[p->n_runs] = at;
        p->n_digits[p->n_runs] = four ? 4 : 3;
        if (is_4bit && four)
            to_digits(p, p->n_runs, a + k, run.n_k, factor, 4, true);
        else if (is_4bit)
            to_digits(p, p->n_runs, a + k, run.n_k, factor, 3, true);
        else if (four)
            to_digits(p, p->n_runs, a + k, run.n_k, factor, 4, false);
        else
            to_digits(p, p->n_runs, a + k, run.n_k, factor, 3, false);
        p->n_runs++;
        at += (run.n_k + 7) / 8 * 8;
        k += run.n_k;
    }
    return k;
}

/* totals += scale * the sums of run r; n_digits and is_4bit are constants of the caller. */
QK_INLINE void add_run(const qk_gemm_run *run, const part *p, size_t r, float *totals, const int n_digits,
                       const bool is_4bit) {
    const digits in = {{p->digits[0] + p->first[r], p->digits[1] + p->first[r], p->digits[2] + p->first[r],
                        p->digits[3] + p->first[r]}};
    sums out;
    form_of(is_4bit, n_digits)(run->values, run->n_k, &in, &out);
    for (size_t at = 0; at < VECTORS; at += 4) {
        qv_f v[4];
        QK_FOUR_TIMES(j, {
            const qv_f zp = zps_of(run->zps, at + j, is_4bit), base = qv_set1(256.0f);
            qv_f f[DIGITS]; /* integers below 2^24: exact up to here */
            QK_FOUR_TIMES(d, f[d] = d < n_digits ? qv_fnma(zp, qv_set1(p->sums[r][d]), qv_of_int(out.s[d][at + j]))
                                                 : qv_set1(0.0f));
            const qv_f lows = qv_fma(f[1], base, f[0]), high = n_digits == 4 ? qv_fma(f[3], base, f[2]) : f[2];
            v[j] = qv_mul(qv_fma(high, qv_set1(65536.0f), lows), qv_set1(p->unit[r]));
        });
        if (!is_4bit) in_order(v);
        QK_FOUR_TIMES(j, {
            const size_t col = (at + j) * QV_LANES;
            qv_store(totals + col, qv_fma(v[j], qv_load(run->scales + col), qv_load(totals + col)));
        });
    }
}

/* One run of one row. */
static void add(const qk_gemm_run *run, const part *p, size_t r, float *totals, bool is_4bit) {
    if (is_4bit && p->n_digits[r] == 4)
        add_run(run, p, r, totals, 4, true);
    else if (is_4bit)
        add_run(run, p, r, totals, 3, true);
    else if (p->n_digits[r] == 4)
        add_run(run, p, r, totals, 4, false);
    else
        add_run(run, p, r, totals, 3, false);
}

/* The same part of m rows; the weights of a run are read for all of them. */
static void rows_part(const qk_gemm *g, const void *packed, const part *parts, float *const *c, size_t m, size_t first,
                      size_t n) {
    for (size_t panel = first; panel < first + n; panel++) {
        const uint8_t *data = (const uint8_t *)packed + panel * g->panel_bytes;
        const size_t col = panel * QK_GEMM_COLS, n_cols = g->n - col < QK_GEMM_COLS ? g->n - col : QK_GEMM_COLS;
        float totals[ROWS][QK_GEMM_COLS];
        size_t k = parts[0].k;
        memset(totals, 0, m * sizeof totals[0]);
        for (size_t row = 0; k != 0 && row < m; row++)
            memcpy(totals[row], c[row] + col, n_cols * sizeof(float));
        for (size_t r = 0; r < parts[0].n_runs; r++) {
            const qk_gemm_run run = qk_gemm_run_at(g, data, k);
            for (size_t row = 0; row < m; row++)
                add(&run, &parts[row], r, totals[row], qk_gemm_is_4bit(g));
            k += run.n_k;
        }
        for (size_t row = 0; row < m; row++)
            memcpy(c[row] + col, totals[row], n_cols * sizeof(float));
    }
}

static void by_digits(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c, size_t c_stride,
                      size_t m, size_t first, size_t n) {
    part parts[ROWS];
    const float *from[ROWS];
    float *to[ROWS];
    for (size_t row = 0; row < m;) {
        size_t now = 0;
        for (; row < m && now < ROWS; row++) {
            from[now] = a + row * a_stride;
            to[now] = c + row * c_stride;
            if (is_tame(g, from[now]))
                now++;
            else
                float_row(g, packed, from[now], a_stride, to[now], c_stride, 1, first, n);
        }
        for (size_t k = 0; now != 0 && k < g->k;) {
            size_t next = k;
            for (size_t r = 0; r < now; r++)
                next = make_part(g, from[r], k, &parts[r]);
            rows_part(g, packed, parts, to, now, first, n);
            k = next;
        }
    }
}

#endif
