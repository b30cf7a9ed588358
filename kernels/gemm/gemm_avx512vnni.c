#include "kernels/gemm/gemm_row.h"
#include "kernels/simd/avx512_x8.h"

#include <string.h>

/* The row's floats become integers x = a 2^(22 - e) of 23 bits and a sign, 2^e the greatest power of two in the run; x is a number of
 * three digits -128 … 127 to the base 256, and each digit meets the weights in byte products of exact sums. Where a few values dwarf
 * the others (the greatest is above SPREAD times the mean) there are 30 bits and four digits. Ten times fewer instructions than floats of each
 * weight. Rows that hold what is not finite, or runs outside of 2^±90, go the way of avx512. */
#define SPREAD 64.0f
enum { LANES = 16, DIGITS = 4, ROWS = 8, PART = 1024, RUNS = 64, AHEAD_BYTES = 2048, STEP = 4 * QK_GEMM_COLS };

/* A part of a row: the digits of its k, run after run, each padded to eight k. */
typedef struct part {
    size_t k, n_runs;
    float unit[RUNS];         /* of a run's integers */
    uint8_t n_digits[RUNS];   /* of a run's numbers, 3 or 4 */
    float sums[RUNS][DIGITS]; /* Σ of its digits */
    size_t first[RUNS];       /* where its digits begin */
    int8_t digits[DIGITS][PART + 64];
} part;

QK_INLINE int32_t load4(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* n floats to digits from `at` on. 4-bit weights meet the even k of eight first, then the odd. n_digits and is_4bit are constants of
 * the caller. */
QK_INLINE void to_digits(part *p, size_t run, const float *a, size_t n, float factor, const int n_digits,
                         const bool is_4bit) {
    const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m512 f = _mm512_set1_ps(factor);
    __m512i s[DIGITS];
    QK_FOUR_TIMES(d, s[d] = _mm512_setzero_si512());
    for (size_t i = 0; i < n; i += LANES) {
        __m512i x = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(qk512_lanes(n - i), a + i), f));
        if (is_4bit) x = _mm512_permutexvar_epi32(order, x);
        QK_FOUR_TIMES(
            d, if (d < n_digits) {
                const __m512i low = d == n_digits - 1 ? x : _mm512_srai_epi32(_mm512_slli_epi32(x, 24), 24);
                _mm_storeu_si128((__m128i *)(void *)(p->digits[d] + p->first[run] + i), _mm512_cvtepi32_epi8(low));
                s[d] = _mm512_add_epi32(s[d], low);
                x = _mm512_srai_epi32(_mm512_sub_epi32(x, low), 8);
            });
    }
    QK_FOUR_TIMES(d, if (d < n_digits) p->sums[run][d] = (float)_mm512_reduce_add_epi32(s[d]));
}

static float greatest(const float *a, size_t n) {
    __m512 most = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += LANES) /* a NaN compares as the greatest: integers of the same order */
        most = _mm512_castsi512_ps(
            _mm512_max_epi32(_mm512_castps_si512(most),
                             _mm512_castps_si512(_mm512_abs_ps(_mm512_maskz_loadu_ps(qk512_lanes(n - i), a + i)))));
    const int32_t bits = _mm512_reduce_max_epi32(_mm512_castps_si512(most));
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float sum_of_sizes(const float *a, size_t n) {
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += LANES)
        sum = _mm512_add_ps(sum, _mm512_abs_ps(_mm512_maskz_loadu_ps(qk512_lanes(n - i), a + i)));
    return _mm512_reduce_add_ps(sum);
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
        const uint32_t bits = (uint32_t)load4((const int8_t *)(const void *)&whole) >> 23;
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

/* Where the digits of a run begin, and its sums: [digit][vector]. */
typedef struct digits {
    const int8_t *d[DIGITS];
} digits;
typedef struct sums {
    __m512i s[DIGITS][4];
} sums;

/* In place, as in igemm_avx512vnni.c. */
#define ADD(w, j, k)                                                                                                   \
    QK_FOUR_TIMES(                                                                                                     \
        d, if (d < n_digits) {                                                                                         \
            const __m512i digit = _mm512_set1_epi32(load4(in->d[d] + (k)));                                            \
            __asm__("vpdpbusd %2, %1, %0" : "+v"(s[d][j]) : "v"(w), "v"(digit));                                       \
        })

QK_INLINE __m512i row_at(const uint8_t *p, size_t i, __m512i sign) {
    return _mm512_xor_si512(_mm512_loadu_si512(p + i * QK_GEMM_COLS), sign);
}

/* Sums of digits times weights, as unsigned numbers, of a run of 8 bits. Four rows of 64 weights become columns of four: in vector j,
 * lane l of 128 bits, the columns 16 l + 4 j … + 3. */
QK_INLINE void run_8bit(const uint8_t *p, size_t n, const digits *in, sums *out, const int n_digits) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    uint8_t last[STEP];
    const size_t n4 = n / 4 * 4;
    if (n4 < n) { /* what is less than four k, and zero digits for the rest */
        memset(last, 0, sizeof last);
        memcpy(last, p + n4 * QK_GEMM_COLS, (n - n4) * QK_GEMM_COLS);
    }
    __m512i s[DIGITS][4];
    QK_FOUR_TIMES(d, QK_FOUR_TIMES(j, s[d][j] = _mm512_setzero_si512()));
    for (size_t k = 0; k < n; k += 4, p += STEP) {
        if (k == n4) p = last;
        QK_FOUR_TIMES(line, _mm_prefetch((const char *)p + AHEAD_BYTES + 64 * line, _MM_HINT_T0));
        const __m512i a0 = row_at(p, 0, sign), a1 = row_at(p, 1, sign), a2 = row_at(p, 2, sign),
                      a3 = row_at(p, 3, sign);
        const __m512i t0 = _mm512_unpacklo_epi8(a0, a1), t1 = _mm512_unpackhi_epi8(a0, a1),
                      t2 = _mm512_unpacklo_epi8(a2, a3), t3 = _mm512_unpackhi_epi8(a2, a3);
        const __m512i w0 = _mm512_unpacklo_epi16(t0, t2), w1 = _mm512_unpackhi_epi16(t0, t2),
                      w2 = _mm512_unpacklo_epi16(t1, t3), w3 = _mm512_unpackhi_epi16(t1, t3);
        ADD(w0, 0, k);
        ADD(w1, 1, k);
        ADD(w2, 2, k);
        ADD(w3, 3, k);
    }
    QK_FOUR_TIMES(d, if (d < n_digits) QK_FOUR_TIMES(j, out->s[d][j] = s[d][j]));
}

/* The same of a run of 4 bits: in vector j the columns 16 j … + 15. */
QK_INLINE void run_4bit(const uint8_t *p, size_t n, const digits *in, sums *out, const int n_digits) {
    const __m512i low = _mm512_set1_epi8(15), sign = _mm512_set1_epi8(8);
    __m512i s[DIGITS][4];
    QK_FOUR_TIMES(d, QK_FOUR_TIMES(j, s[d][j] = _mm512_setzero_si512()));
    for (size_t k = 0; k < n; k += 8, p += STEP) {
        QK_FOUR_TIMES(line, _mm_prefetch((const char *)p + AHEAD_BYTES + 64 * line, _MM_HINT_T0));
        QK_FOUR_TIMES(j, {
            const __m512i x = _mm512_loadu_si512(p + 64 * j);
            /* (x & low) ^ sign */
            const __m512i even = _mm512_ternarylogic_epi32(x, low, sign, 0x6a),
                          odd = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x, 4), low, sign, 0x6a);
            ADD(even, j, k);
            ADD(odd, j, k + 4);
        });
    }
    QK_FOUR_TIMES(d, if (d < n_digits) QK_FOUR_TIMES(j, out->s[d][j] = s[d][j]));
}

/* Functions of their own: their sums need the registers. */
typedef void run_fn(const uint8_t *p, size_t n, const digits *in, sums *out);
#define FORM(bits, n_digits)                                                                                           \
    static __attribute__((noinline)) void run_##bits##_##n_digits(const uint8_t *p, size_t n, const digits *in,        \
                                                                  sums *out) {                                         \
        run_##bits(p, n, in, out, n_digits);                                                                           \
    }
FORM(8bit, 3)
FORM(8bit, 4)
FORM(4bit, 3)
FORM(4bit, 4)
#undef FORM
static run_fn *const forms[2][2] = {{run_8bit_3, run_8bit_4}, {run_4bit_3, run_4bit_4}};

/* Zero points of vector j, plus what made the weights unsigned. */
QK_INLINE __m512 zps_of(const int8_t *zps, int j, bool is_4bit) {
    const __m512i shift = _mm512_set1_epi32(is_4bit ? 8 : 128);
    if (zps == NULL) return _mm512_cvtepi32_ps(shift);
    if (is_4bit) return _mm512_cvtepi32_ps(_mm512_add_epi32(qk512_load8(zps + LANES * j, true), shift));
    const __m512i order =
        _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), _mm512_set1_epi32(j));
    const __m512i picked = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(zps));
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_cvtepi8_epi32(_mm512_castsi512_si128(picked)), shift));
}

/* Lanes of 128 bits as a matrix, transposed: columns in order. */
QK_INLINE void in_order(__m512 v[4]) {
    const __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[0], v[1], 0xee),
                 c = _mm512_shuffle_f32x4(v[2], v[3], 0x44), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_f32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_f32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

/* totals += scale * the run's sums; n_digits and is_4bit are constants of the caller. */
QK_INLINE void add_run(const qk_gemm_run *run, const part *p, size_t r, __m512 totals[4], const int n_digits,
                       const bool is_4bit) {
    const digits in = {{p->digits[0] + p->first[r], p->digits[1] + p->first[r], p->digits[2] + p->first[r],
                        p->digits[3] + p->first[r]}};
    sums out;
    forms[is_4bit][n_digits - 3](run->values, run->n_k, &in, &out);
    __m512 v[4];
    QK_FOUR_TIMES(j, {
        const __m512 zp = zps_of(run->zps, j, is_4bit), base = _mm512_set1_ps(256.0f);
        __m512 f[DIGITS]; /* integers below 2^24: exact up to here */
        QK_FOUR_TIMES(d, f[d] = d < n_digits ? _mm512_fnmadd_ps(zp, _mm512_set1_ps(p->sums[r][d]),
                                                                _mm512_cvtepi32_ps(out.s[d][j]))
                                             : _mm512_setzero_ps());
        const __m512 lows = _mm512_fmadd_ps(f[1], base, f[0]);
        const __m512 high = n_digits == 4 ? _mm512_fmadd_ps(f[3], base, f[2]) : f[2];
        v[j] = _mm512_mul_ps(_mm512_fmadd_ps(high, _mm512_set1_ps(65536.0f), lows), _mm512_set1_ps(p->unit[r]));
    });
    if (!is_4bit) in_order(v);
    QK_FOUR_TIMES(j, totals[j] = _mm512_fmadd_ps(v[j], _mm512_loadu_ps(run->scales + LANES * j), totals[j]));
}

/* One run of one row. */
static void add(const qk_gemm_run *run, const part *p, size_t r, __m512 totals[4], bool is_4bit) {
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
        __mmask16 lanes[4];
        __m512 totals[ROWS][4];
        QK_FOUR_TIMES(j, lanes[j] = qk512_lanes(n_cols > LANES * (size_t)j ? n_cols - LANES * (size_t)j : 0));
        size_t k = parts[0].k;
        for (size_t row = 0; row < m; row++)
            QK_FOUR_TIMES(j, totals[row][j] = k == 0 ? _mm512_setzero_ps()
                                                     : _mm512_maskz_loadu_ps(lanes[j], c[row] + col + LANES * j));
        for (size_t r = 0; r < parts[0].n_runs; r++) {
            const qk_gemm_run run = qk_gemm_run_at(g, data, k);
            for (size_t row = 0; row < m; row++)
                add(&run, &parts[row], r, totals[row], qk_gemm_is_4bit(g));
            k += run.n_k;
        }
        for (size_t row = 0; row < m; row++)
            QK_FOUR_TIMES(j, _mm512_mask_storeu_ps(c[row] + col + LANES * j, lanes[j], totals[row][j]));
    }
}

void qk_gemm_avx512vnni(const qk_gemm *g, const void *packed, const float *a, size_t a_stride, float *c,
                        size_t c_stride, size_t m, size_t first, size_t n) {
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
                qk_gemm_avx512(g, packed, from[now], a_stride, to[now], c_stride, 1, first, n);
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
