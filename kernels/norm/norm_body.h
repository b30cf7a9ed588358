/* The functions of a vector level: included once by norm_<level>.c with QK_NORM_LEVEL, its table's name. */
#include "kernels/norm/norm_moments_body.h"

static float end_factor(const qk_norm *norm) {
    return qkv_is_x8(norm->dst) ? norm->dst_factor : 1.0f;
}
static float end_add(const qk_norm *norm) {
    return qkv_is_x8(norm->dst) ? norm->zp_first : 0.0f;
}

/* Lines of more bytes are taken one by one; of at most so few, the next are looked at early. */
enum { MANY_BYTES = 32 * 1024, FEW_BYTES = 1024 };

/* ---- lines ---- */

/* Of LINES at most: v = (x - mean) * r + c, the destination's scale in r and c; of bytes, mean is an integer. */
typedef struct line {
    float mean[LINES], r[LINES], c[LINES];
    float mean_of_bits[LINES]; /* of bytes: see standard_at */
} line;

QK_INLINE qkv standard(const line *l, size_t k, qkv x) {
    return qkv_fma(qkv_sub(x, qkv_set(l->mean[k])), qkv_set(l->r[k]), qkv_set(l->c[k]));
}

/* The same of a whole vector at x. Bytes become floats by their bits: in the mantissa of 2^23, with the sign turned round. */
QK_INLINE qkv standard_at(qdq_dtype S, const line *l, size_t k, const char *x, bool by_bits) {
    if (!by_bits) return standard(l, k, qkv_load(S, x));
    const int32_t flip = S == QDQ_DTYPE_S8 ? 0x4b000080 : 0x4b000000;
#if defined(__AVX512F__)
    const __m512i u = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)x));
    const qkv v = _mm512_castsi512_ps(_mm512_xor_si512(u, _mm512_set1_epi32(flip)));
#else
    const __m256i u = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)x));
    const qkv v = _mm256_castsi256_ps(_mm256_xor_si256(u, _mm256_set1_epi32(flip)));
#endif
    return qkv_fma(qkv_sub(v, qkv_set(l->mean_of_bits[k])), qkv_set(l->r[k]), qkv_set(l->c[k]));
}

QK_INLINE void apply_run(qdq_dtype S, qdq_dtype D, const char *x, char *y, size_t n, const line *l) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S), db = qkv_bytes(D);
    size_t i = 0;
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = standard(l, 0, qkv_load(S, x + (i + k * w) * sb)));
        qkv_store4(D, y + i * db, v);
    }
    for (; n - i >= w; i += w)
        qkv_store(D, y + i * db, standard(l, 0, qkv_load(S, x + i * sb)));
    if (i < n) qkv_store_n(D, y + i * db, standard(l, 0, qkv_load_n(S, x + i * sb, n - i)), n - i);
}

/* What all lines share. */
typedef struct affine {
    const float *gamma, *beta; /* or NULL */
    float factor, add;         /* of the destination: beta * factor + add is what is added */
} affine;

QK_INLINE qkv gamma_at(const affine *a, size_t i, size_t m) {
    return a->gamma == NULL ? qkv_set(1.0f) : m == QKV_LANES ? qkv_loadu(a->gamma + i) : qkv_loadu_n(a->gamma + i, m);
}
QK_INLINE qkv beta_at(const affine *a, qdq_dtype D, size_t i, size_t m) {
    if (a->beta == NULL) return qkv_set(a->add);
    const qkv b = m == QKV_LANES ? qkv_loadu(a->beta + i) : qkv_loadu_n(a->beta + i, m);
    return qkv_is_x8(D) ? qkv_fma(b, qkv_set(a->factor), qkv_set(a->add)) : b;
}

/* Some lines side by side, so that gamma and beta are read once for all of them. */
QK_INLINE void apply_lines(qdq_dtype S, qdq_dtype D, const char *x, char *y, size_t n_lines, size_t n, const line *l,
                           const affine *a, bool small) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S), db = qkv_bytes(D);
    size_t i = 0;
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv g[4], b[4];
        QK_FOUR_TIMES(k, {
            g[k] = gamma_at(a, i + k * w, w);
            b[k] = beta_at(a, D, i + k * w, w);
        });
        for (size_t r = 0; r < n_lines; r++) {
            const char *from = x + (r * n + i) * sb;
            qkv v[4];
            QK_FOUR_TIMES(
                k, v[k] = qkv_fma(standard_at(S, l, r, from + k * w * sb, qkv_is_x8(S) && qkv_is_x8(D)), g[k], b[k]));
            if (qkv_is_x8(D) && !small) QK_FOUR_TIMES(k, v[k] = qkv_min(qkv_set(0x1p30f), v[k]));
            if (qkv_is_x8(D)) /* a NaN is the smallest, small or not */
                qkv_store4_small(D, y + (r * n + i) * db, v);
            else
                qkv_store4(D, y + (r * n + i) * db, v);
        }
    }
    for (; i < n; i += w) {
        const size_t m = n - i < w ? n - i : w;
        const qkv g = gamma_at(a, i, m), b = beta_at(a, D, i, m);
        for (size_t r = 0; r < n_lines; r++) {
            const char *from = x + (r * n + i) * sb;
            char *to = y + (r * n + i) * db;
            if (m == w)
                qkv_store(D, to, qkv_fma(standard(l, r, qkv_load(S, from)), g, b));
            else
                qkv_store_n(D, to, qkv_fma(standard(l, r, qkv_load_n(S, from, m)), g, b), m);
        }
    }
}

#define BY_TYPES(norm, S, D, ...) QKV_BY_TYPE((norm)->src, S, QKV_BY_DST((norm)->dst, D, __VA_ARGS__))
/* A switch inside of a switch, which one macro cannot be. */
#define QKV_BY_DST(dtype, name, ...)                                                                                   \
    switch ((int)(dtype)) {                                                                                            \
        QKV_DST_CASE(F32, name, __VA_ARGS__)                                                                           \
        QKV_DST_CASE(BF16, name, __VA_ARGS__)                                                                          \
        QKV_DST_CASE(F16, name, __VA_ARGS__)                                                                           \
        QKV_DST_CASE(U8, name, __VA_ARGS__)                                                                            \
        QKV_DST_CASE(S8, name, __VA_ARGS__)                                                                            \
    default: break;                                                                                                    \
    }
#define QKV_DST_CASE(type, name, ...)                                                                                  \
    case QDQ_DTYPE_##type: {                                                                                           \
        enum { name = QDQ_DTYPE_##type };                                                                              \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }

/* Sums of LINES lines at most; those of a line do not depend on how many there are. */
QK_INLINE void sums_of_lines(qdq_dtype S, const char *x, size_t n_lines, size_t n, line_sums *s) {
    const size_t b = n * qkv_bytes(S);
    if (!qkv_is_x8(S) && n <= BLOCK) {
        part p[LINES];
        for (size_t k = 0; k < LINES; k++)
            p[k] = k < n_lines ? add_block(S, x + k * b, n, qkv_zero(), false) : (part){qkv_zero(), qkv_zero()};
        add_across(p, s);
        return;
    }
    if (qkv_is_x8(S) && n <= BLOCK_X8) {
        byte_part p[LINES];
        for (size_t k = 0; k < LINES; k++)
            p[k] = k < n_lines ? add_bytes((const uint8_t *)x + k * b, n, flip_of(S)) : no_bytes();
        add_bytes_across(p, s);
        return;
    }
    for (size_t k = 0; k < n_lines; k++) {
        sums one = {0.0, 0.0};
        if (qkv_is_x8(S))
            one = sums_of_bytes((const uint8_t *)x + k * b, n, flip_of(S));
        else
            add_run(S, x + k * b, n, 0.0f, &one);
        s->d[k] = one.d;
        s->squares[k] = one.squares;
    }
}

/* What n_lines lines' sums come to, and what is to be applied to them. What moments_of_bytes and moments_of_floats say, for four
 * at once. */
QK_INLINE void find_of_sums(const qk_norm *norm, bool x8, line_sums s, const char *x, size_t n_lines, size_t n,
                            line *lines, float *means, float *variances) {
    const double flip = x8 ? (double)flip_of(norm->src) : 0.0;
    const double scale = x8 ? (double)norm->src_scale : 1.0, zp = x8 ? (double)norm->src_zp + flip : 0.0;
    const __m256d per_count = _mm256_set1_pd(1.0 / (double)n), zps = _mm256_set1_pd(zp);
    const __m256d scales = _mm256_set1_pd(scale), factors = _mm256_set1_pd(scale * (double)end_factor(norm));
    __m256d mean = _mm256_mul_pd(_mm256_loadu_pd(s.d), per_count);
    __m256d variance = _mm256_mul_pd(_mm256_loadu_pd(s.squares), per_count);
    if (norm->rms) { /* squares of u - zp */
        variance = _mm256_add_pd(variance, _mm256_mul_pd(zps, _mm256_sub_pd(zps, _mm256_add_pd(mean, mean))));
        mean = zps;
    } else {
        const __m256d square = _mm256_mul_pd(mean, mean);
        variance = _mm256_sub_pd(variance, square);
        const __m256d near =
            _mm256_and_pd(_mm256_cmp_pd(square, _mm256_mul_pd(_mm256_set1_pd(4.0), variance), _CMP_LE_OQ),
                          _mm256_cmp_pd(variance, _mm256_set1_pd((double)INFINITY), _CMP_LT_OQ));
        if (!x8 && _mm256_movemask_pd(near) != 0xf) {
            double m[LINES], v[LINES];
            _mm256_storeu_pd(m, mean);
            _mm256_storeu_pd(v, variance);
            for (size_t k = 0; k < n_lines; k++) {
                const sums one = {s.d[k], s.squares[k]};
                const qk_moments of = moments_of_floats(norm, one, x + k * n * qkv_bytes(norm->src), 1, 0, n);
                m[k] = of.mean;
                v[k] = of.variance;
            }
            mean = _mm256_loadu_pd(m);
            variance = _mm256_loadu_pd(v);
        }
        variance = _mm256_max_pd(_mm256_setzero_pd(), variance); /* a NaN stays one */
    }
    variance = _mm256_mul_pd(variance, _mm256_mul_pd(scales, scales));
    const __m256d r =
        _mm256_div_pd(factors, _mm256_sqrt_pd(_mm256_add_pd(variance, _mm256_set1_pd((double)norm->epsilon))));
    mean = _mm256_sub_pd(mean, _mm256_set1_pd(flip)); /* of x */
    const __m128 away = _mm256_cvtpd_ps(mean);
    const __m128 taken = x8 ? _mm_round_ps(away, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC) : away;
    _mm_storeu_ps(lines->mean, taken);
    _mm_storeu_ps(lines->mean_of_bits, _mm_add_ps(taken, _mm_set1_ps(0x1p23f + (float)flip)));
    _mm_storeu_ps(lines->r, _mm256_cvtpd_ps(r));
    _mm_storeu_ps(lines->c, _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_sub_pd(_mm256_cvtps_pd(taken), mean), r)));
    float of[LINES];
    const __m256d shift = _mm256_set1_pd((double)norm->src_zp * (x8 ? 1.0 : 0.0));
    if (means != NULL) {
        _mm_storeu_ps(of, _mm256_cvtpd_ps(norm->rms ? _mm256_mul_pd(_mm256_sub_pd(_mm256_setzero_pd(), shift), scales)
                                                    : _mm256_mul_pd(_mm256_sub_pd(mean, shift), scales)));
        memcpy(means, of, n_lines * sizeof *of);
    }
    if (variances != NULL) {
        _mm_storeu_ps(of, _mm256_cvtpd_ps(variance));
        memcpy(variances, of, n_lines * sizeof *of);
    }
}

static void find_lines(const qk_norm *norm, const char *x, size_t n_lines, size_t n, line *lines, float *means,
                       float *variances) {
    line_sums s = {{0}, {0}};
    QKV_BY_TYPE(norm->src, S, sums_of_lines((qdq_dtype)S, x, n_lines, n, &s));
    find_of_sums(norm, qkv_is_x8(norm->src), s, x, n_lines, n, lines, means, variances);
}

/* Lines of so few floats that what is found for each costs more than they do: all of it in one loop, without a call, whose next
 * turns the processor begins meanwhile. */
enum { NARROW = 32 };

QK_INLINE part narrow_part(const float *x, size_t n) {
    const size_t w = QKV_LANES;
    part p = {qkv_zero(), qkv_zero()};
    for (size_t i = 0; i < n; i += w) {
        const qkv v = n - i >= w ? qkv_loadu(x + i) : qkv_loadu_n(x + i, n - i);
        p.d = qkv_add(p.d, v);
        p.squares = qkv_fma(v, v, p.squares);
    }
    return p;
}

static void narrow_rows(const qk_norm *norm, const float *src, float *dst, const affine *a, float *means,
                        float *variances, size_t n_rows, size_t n) {
    for (size_t r = 0; r < n_rows; r += LINES) {
        const size_t some = n_rows - r < LINES ? n_rows - r : LINES;
        const float *x = src + r * n;
        part p[LINES];
        line_sums s;
        line l;
        QK_FOUR_TIMES(k, p[k] = narrow_part(x + (k < some ? k : 0) * n, n)); /* past the last, the first again */
        add_across(p, &s);
        find_of_sums(norm, false, s, (const char *)x, some, n, &l, means == NULL ? NULL : means + r,
                     variances == NULL ? NULL : variances + r);
        apply_lines(QDQ_DTYPE_F32, QDQ_DTYPE_F32, (const char *)x, (char *)(dst + r * n), some, n, &l, a, false);
    }
}

/* Do all results fit s32? No element is further than sqrt(n) deviations from the mean. Where there is a NaN, any result will do. */
static bool are_small(const qk_norm *norm, const affine *a, size_t n) {
    qkv g = qkv_set(a->gamma == NULL ? 1.0f : 0.0f), b = qkv_zero();
    for (size_t i = 0; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        if (a->gamma != NULL) g = qkv_max(g, qkv_abs(qkv_loadu_n(a->gamma + i, m)));
        if (a->beta != NULL) b = qkv_max(b, qkv_abs(qkv_loadu_n(a->beta + i, m)));
    }
    const double factor = fabs((double)a->factor), most = sqrt((double)n) * (double)qkv_hmax(g) + (double)qkv_hmax(b);
    return norm->epsilon >= 0.0f && most * factor + fabs((double)a->add) < 0x1p30;
}

/* A few lines at a time. Short ones' moments are found while those before them, still in the first cache, are not applied yet. */
static void rows(const qk_norm *norm, const void *src, void *dst, const float *gamma, const float *beta, float *means,
                 float *variances, size_t n_rows, size_t n) {
    const size_t sb = n * qkv_bytes(norm->src), db = n * qkv_bytes(norm->dst);
    const size_t step = sb > MANY_BYTES ? 1 : LINES, early = sb <= FEW_BYTES ? step : 0;
    const affine a = {gamma, beta, end_factor(norm), end_add(norm)};
    line lines[2];
    if (n == 0) return;
    if (n <= NARROW && norm->src == QDQ_DTYPE_F32 && norm->dst == QDQ_DTYPE_F32) {
        narrow_rows(norm, src, dst, &a, means, variances, n_rows, n);
        return;
    }
    const bool small = qkv_is_x8(norm->dst) && n_rows >= LINES && are_small(norm, &a, n);
    for (size_t r = 0, found = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        for (; found < n_rows && found <= r + early; found += step)
            find_lines(norm, (const char *)src + found * sb, n_rows - found < step ? n_rows - found : step, n,
                       &lines[found / step % 2], means == NULL ? NULL : means + found,
                       variances == NULL ? NULL : variances + found);
        const char *x = (const char *)src + r * sb;
        char *y = (char *)dst + r * db;
        const line *l = &lines[r / step % 2];
        if (small) {
            BY_TYPES(norm, S, D, apply_lines((qdq_dtype)S, (qdq_dtype)D, x, y, some, n, l, &a, true));
        } else {
            BY_TYPES(norm, S, D, apply_lines((qdq_dtype)S, (qdq_dtype)D, x, y, some, n, l, &a, false));
        }
    }
}

/* ---- moments that are known ---- */

static void apply(const qk_norm *norm, const void *src, void *dst, size_t n, float mean, float mul, float add) {
    const float factor = end_factor(norm);
    const line l = {.mean = {mean}, .r = {mul * factor}, .c = {add * factor + end_add(norm)}};
    BY_TYPES(norm, S, D, apply_run((qdq_dtype)S, (qdq_dtype)D, src, dst, n, &l));
}

/* Four vectors of columns at most, all rows. */
typedef struct columns {
    qkv mean[4], mul[4], add[4];
} columns;

QK_INLINE qkv column_value(const columns *p, int k, qkv x) {
    return qkv_fma(qkv_sub(x, p->mean[k]), p->mul[k], p->add[k]);
}

QK_INLINE void cols_of(qdq_dtype S, qdq_dtype D, const char *x, char *y, size_t n_rows, size_t stride, size_t m,
                       const columns *p) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S), db = qkv_bytes(D);
    if (m == 4 * w) {
        const columns c = *p; /* in registers: what is stored cannot change it */
        for (size_t r = 0; r < n_rows; r++, x += stride * sb, y += stride * db) {
            qkv v[4];
            QK_FOUR_TIMES(k, v[k] = column_value(&c, k, qkv_load(S, x + k * w * sb)));
            qkv_store4(D, y, v);
        }
        return;
    }
    for (size_t r = 0; r < n_rows; r++, x += stride * sb, y += stride * db) {
        size_t i = 0;
        for (int k = 0; m - i >= w; i += w, k++)
            qkv_store(D, y + i * db, column_value(p, k, qkv_load(S, x + i * sb)));
        if (i < m) qkv_store_n(D, y + i * db, column_value(p, (int)(i / w), qkv_load_n(S, x + i * sb, m - i)), m - i);
    }
}

static void cols_of_rows(const qk_norm *norm, const char *src, char *dst, size_t n_rows, size_t cols, size_t stride,
                         const float *means, const float *muls, const float *adds) {
    const size_t w = QKV_LANES, sb = qkv_bytes(norm->src), db = qkv_bytes(norm->dst);
    const qkv factor = qkv_set(end_factor(norm)), first = qkv_set(end_add(norm));
    for (size_t c = 0; c < cols; c += 4 * w) {
        const size_t m = cols - c < 4 * w ? cols - c : 4 * w;
        columns p = {0};
        for (size_t i = 0; i < m; i += w) {
            const size_t some = m - i < w ? m - i : w;
            p.mean[i / w] = qkv_loadu_n(means + c + i, some);
            p.mul[i / w] = qkv_mul(qkv_loadu_n(muls + c + i, some), factor);
            p.add[i / w] = qkv_fma(qkv_loadu_n(adds + c + i, some), factor, first);
        }
        BY_TYPES(norm, S, D, cols_of((qdq_dtype)S, (qdq_dtype)D, src + c * sb, dst + c * db, n_rows, stride, m, &p));
    }
}

/* As many rows at a time as the second cache holds until all their columns are done. */
static void apply_cols(const qk_norm *norm, const void *src, void *dst, size_t n_rows, size_t cols, size_t stride,
                       const float *means, const float *muls, const float *adds) {
    enum { NEAR_BYTES = 64 * 1024 };
    const size_t sb = stride * qkv_bytes(norm->src), db = stride * qkv_bytes(norm->dst);
    const size_t fit = cols <= 4 * QKV_LANES || sb == 0 ? n_rows : NEAR_BYTES / sb, step = fit < 8 ? 8 : fit;
    for (size_t r = 0; r < n_rows; r += step)
        cols_of_rows(norm, (const char *)src + r * sb, (char *)dst + r * db, n_rows - r < step ? n_rows - r : step,
                     cols, stride, means, muls, adds);
}

/* Of `m` columns at most four vectors, in f32 over the rows. */
QK_INLINE void sums_of(qdq_dtype S, const char *x, size_t n_rows, size_t stride, size_t m, const float *means,
                       double *out) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S);
    qkv mean[4], sum[4];
    float lanes[4 * QKV_LANES];
    for (size_t k = 0; k < 4; k++) {
        const size_t some = m <= k * w ? 0 : m - k * w < w ? m - k * w : w;
        mean[k] = means == NULL || some == 0 ? qkv_zero() : qkv_loadu_n(means + k * w, some);
        sum[k] = qkv_zero();
    }
    for (size_t r = 0; r < n_rows; r++, x += stride * sb) {
        if (m == 4 * w) {
            QK_FOUR_TIMES(k, {
                const qkv v = qkv_sub(qkv_load(S, x + k * w * sb), mean[k]);
                sum[k] = means == NULL ? qkv_add(sum[k], v) : qkv_fma(v, v, sum[k]);
            });
            continue;
        }
        for (size_t k = 0; k * w < m; k++) {
            const size_t at = k * w;
            const qkv v = qkv_sub(m - at >= w ? qkv_load(S, x + at * sb) : qkv_load_n(S, x + at * sb, m - at), mean[k]);
            sum[k] = means == NULL ? qkv_add(sum[k], v) : qkv_fma(v, v, sum[k]);
        }
    }
    QK_FOUR_TIMES(k, qkv_storeu(lanes + k * w, sum[k]));
    for (size_t k = 0; k < m; k++)
        out[k] += (double)lanes[k];
}

static void col_sums(const qk_norm *norm, const void *src, size_t n_rows, size_t cols, size_t stride,
                     const float *means, double *out) {
    const size_t w = 4 * QKV_LANES, sb = qkv_bytes(norm->src), step = 64; /* rows that are summed in f32 */
    for (size_t r = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        for (size_t c = 0; c < cols; c += w) {
            const char *x = (const char *)src + (r * stride + c) * sb;
            QKV_BY_TYPE(norm->src, S,
                        sums_of((qdq_dtype)S, x, some, stride, cols - c < w ? cols - c : w,
                                means == NULL ? NULL : means + c, out + c));
        }
    }
}

const qk_norm_fns QK_NORM_LEVEL = {rows, moments, col_sums, apply, apply_cols};
