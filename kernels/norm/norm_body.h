/* The functions of a vector level: included once by norm_<level>.c with QK_NORM_LEVEL, its table's name. */
#include "kernels/norm/norm_row.h"
#include "kernels/simd/sums8.h"
#include "kernels/simd/vec.h"

#include <math.h>

/* Elements summed in f32 before the sums go to f64; columns whose parameters are prepared at a time; lines at a time, and their
 * bytes. */
enum { BLOCK = 4096, ROOM = 2048, GROUP = 8, GROUP_BYTES = 16 * 1024 };

static float end_factor(const qk_norm *norm) {
    return qkv_is_x8(norm->dst) ? norm->dst_factor : 1.0f;
}
static float end_add(const qk_norm *norm) {
    return qkv_is_x8(norm->dst) ? norm->zp_first : 0.0f;
}

/* ---- moments ---- */

typedef struct sums {
    double d, squares; /* of x - c */
} sums;

/* Sums of x - c and of its square, over a run. */
QK_INLINE void add_run(qdq_dtype S, const char *x, size_t n, float c, sums *s) {
    const size_t w = QKV_LANES, b = qkv_bytes(S);
    const qkv centre = qkv_set(c);
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t end = n - first < BLOCK ? n : first + BLOCK;
        qkv d[4], q[4];
        size_t i = first;
        QK_FOUR_TIMES(k, d[k] = q[k] = qkv_zero());
        for (; end - i >= 4 * w; i += 4 * w)
            QK_FOUR_TIMES(k, {
                const qkv v = qkv_sub(qkv_load(S, x + (i + k * w) * b), centre);
                d[k] = qkv_add(d[k], v);
                q[k] = qkv_fma(v, v, q[k]);
            });
        for (; end - i >= w; i += w) {
            const qkv v = qkv_sub(qkv_load(S, x + i * b), centre);
            d[0] = qkv_add(d[0], v);
            q[0] = qkv_fma(v, v, q[0]);
        }
        if (i < end) {
            const qkv v = qkv_keep(qkv_sub(qkv_load_n(S, x + i * b, end - i), centre), end - i, qkv_zero());
            d[1] = qkv_add(d[1], v);
            q[1] = qkv_fma(v, v, q[1]);
        }
        s->d += (double)qkv_hsum(qkv_add(qkv_add(d[0], d[1]), qkv_add(d[2], d[3])));
        s->squares += (double)qkv_hsum(qkv_add(qkv_add(q[0], q[1]), qkv_add(q[2], q[3])));
    }
}

static sums sums_of_runs(qdq_dtype src, const char *x, size_t n_runs, size_t step, size_t n, float c) {
    sums s = {0.0, 0.0};
    for (size_t r = 0; r < n_runs; r++)
        QKV_BY_TYPE(src, S, add_run((qdq_dtype)S, x + r * step, n, c, &s));
    return s;
}

static qk_moments moments_of_x8(const qk_norm *norm, const char *x, size_t n_runs, size_t step, size_t n,
                                double count) {
    qks_sums s = {0, 0};
    for (size_t r = 0; r < n_runs; r++) {
        const qks_sums run =
            norm->src == QDQ_DTYPE_S8 ? qk_sums8(x + r * step, n, true) : qk_sums8(x + r * step, n, false);
        s.sum += run.sum;
        s.squares += run.squares;
    }
    const double mean = (double)s.sum / count, zp = (double)norm->src_zp;
    if (norm->rms) return (qk_moments){0.0, (double)s.squares / count - 2.0 * zp * mean + zp * zp};
    const double variance = (double)s.squares / count - mean * mean;
    return (qk_moments){mean, variance > 0.0 ? variance : 0.0};
}

/* One pass over x - c, where c is the mean of the first vector: of the order of the deviation away from the mean, so that taking its
 * square back costs few digits. Where it is not, a second pass round the mean that was found. */
static qk_moments moments(const qk_norm *norm, const void *src, size_t n_runs, size_t run_stride, size_t n) {
    const size_t step = run_stride * qkv_bytes(norm->src), m = n < QKV_LANES ? n : QKV_LANES;
    const double count = (double)n_runs * (double)n;
    if (n == 0) return (qk_moments){0.0, 0.0};
    if (qkv_is_x8(norm->src)) return moments_of_x8(norm, src, n_runs, step, n, count);
    float c = 0.0f;
    if (!norm->rms) QKV_BY_TYPE(norm->src, S, c = qkv_hsum(qkv_load_n((qdq_dtype)S, src, m)) / (float)m);
    if (!isfinite(c)) c = 0.0f;
    sums s = sums_of_runs(norm->src, src, n_runs, step, n, c);
    if (norm->rms) return (qk_moments){0.0, s.squares / count};
    double off = s.d / count, variance = s.squares / count - off * off;
    if (off * off > 16.0 * variance) {
        c = (float)((double)c + off);
        s = sums_of_runs(norm->src, src, n_runs, step, n, c);
        off = s.d / count;
        variance = s.squares / count - off * off;
    }
    return (qk_moments){(double)c + off, variance < 0.0 ? 0.0 : variance};
}

/* ---- lines ---- */

/* v = ((x - mean) * r + c) * gamma + beta, the destination's quantization included. */
typedef struct line {
    float mean, r, c;
    const float *gamma, *beta;
} line;

QK_INLINE qkv element(const line *l, qkv x, size_t i, size_t m) {
    const qkv v = qkv_fma(qkv_sub(x, qkv_set(l->mean)), qkv_set(l->r), qkv_set(l->c));
    if (l->gamma == NULL) return v;
    if (m == QKV_LANES) return qkv_fma(v, qkv_loadu(l->gamma + i), qkv_loadu(l->beta + i));
    return qkv_fma(v, qkv_loadu_n(l->gamma + i, m), qkv_loadu_n(l->beta + i, m));
}

QK_INLINE void apply_line(qdq_dtype S, qdq_dtype D, const char *x, char *y, size_t n, const line *l) {
    const size_t w = QKV_LANES, sb = qkv_bytes(S), db = qkv_bytes(D);
    size_t i = 0;
    for (; n - i >= 4 * w; i += 4 * w) {
        qkv v[4];
        QK_FOUR_TIMES(k, v[k] = element(l, qkv_load(S, x + (i + k * w) * sb), i + k * w, w));
        qkv_store4(D, y + i * db, v);
    }
    for (; n - i >= w; i += w)
        qkv_store(D, y + i * db, element(l, qkv_load(S, x + i * sb), i, w));
    if (i < n) qkv_store_n(D, y + i * db, element(l, qkv_load_n(S, x + i * sb, n - i), i, n - i), n - i);
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

/* gamma and beta in the destination's units; n <= ROOM of them. */
typedef struct vectors {
    float gamma[ROOM], beta[ROOM];
} vectors;

static void prepare(const qk_norm *norm, const float *gamma, const float *beta, size_t n, vectors *v) {
    const qkv factor = qkv_set(end_factor(norm)), add = qkv_set(end_add(norm));
    for (size_t i = 0; i < n; i += QKV_LANES) {
        const size_t m = n - i < QKV_LANES ? n - i : QKV_LANES;
        const qkv g = gamma == NULL ? qkv_set(1.0f) : qkv_loadu_n(gamma + i, m);
        const qkv b = beta == NULL ? qkv_zero() : qkv_loadu_n(beta + i, m);
        qkv_storeu_n(v->gamma + i, qkv_mul(g, factor), m);
        qkv_storeu_n(v->beta + i, qkv_fma(b, factor, add), m);
    }
}

/* Columns first … first+m-1 of some lines of n. gamma and beta are prepared, and begin at `first`; or NULL. */
static void apply_some(const qk_norm *norm, const char *x, char *y, const float *gamma, const float *beta,
                       const line *lines, size_t n_rows, size_t n, size_t first, size_t m) {
    const float factor = end_factor(norm), add = end_add(norm);
    const size_t sb = qkv_bytes(norm->src), db = qkv_bytes(norm->dst);
    for (size_t r = 0; r < n_rows; r++) {
        line l = lines[r];
        l.gamma = gamma;
        l.beta = beta;
        if (gamma == NULL) {
            l.r *= factor;
            l.c = l.c * factor + add;
        }
        BY_TYPES(norm, S, D,
                 apply_line((qdq_dtype)S, (qdq_dtype)D, x + (r * n + first) * sb, y + (r * n + first) * db, m, &l));
    }
}

static void rows(const qk_norm *norm, const void *src, void *dst, const float *gamma, const float *beta, float *means,
                 float *variances, size_t n_rows, size_t n) {
    const bool x8 = qkv_is_x8(norm->src);
    const double scale = x8 ? (double)norm->src_scale : 1.0, zp = x8 ? (double)norm->src_zp : 0.0;
    const size_t sb = n * qkv_bytes(norm->src), db = n * qkv_bytes(norm->dst);
    /* a group's lines stay in the first cache; the moments of one are not waited for by the next */
    const size_t most = sb + db > GROUP_BYTES ? 1 : n == 0 ? GROUP : GROUP_BYTES / (sb + db);
    const size_t step = most < GROUP ? most : GROUP;
    const bool affine = gamma != NULL || beta != NULL;
    bool ready = !affine || (gamma != NULL && beta != NULL && !qkv_is_x8(norm->dst));
    vectors v;
    if (!ready && n <= ROOM) {
        prepare(norm, gamma, beta, n, &v);
        gamma = v.gamma;
        beta = v.beta;
        ready = true;
    }
    for (size_t r = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        const char *x = (const char *)src + r * sb;
        char *y = (char *)dst + r * db;
        line lines[GROUP];
        for (size_t k = 0; k < some; k++) {
            const qk_moments m = moments(norm, x + k * sb, 1, 0, n);
            const double variance = m.variance * scale * scale, away = norm->rms ? zp : m.mean;
            const double factor = scale / sqrt(variance + (double)norm->epsilon);
            const float mean = (float)away;
            lines[k] = (line){mean, (float)factor, (float)(((double)mean - away) * factor), NULL, NULL};
            if (means != NULL) means[r + k] = (float)((m.mean - zp) * scale);
            if (variances != NULL) variances[r + k] = (float)variance;
        }
        if (ready) apply_some(norm, x, y, gamma, beta, lines, some, n, 0, n);
        for (size_t first = 0; first < n && !ready; first += ROOM) {
            const size_t m = n - first < ROOM ? n - first : ROOM;
            prepare(norm, gamma == NULL ? NULL : gamma + first, beta == NULL ? NULL : beta + first, m, &v);
            apply_some(norm, x, y, v.gamma, v.beta, lines, some, n, first, m);
        }
    }
}

/* ---- moments that are known ---- */

static void apply(const qk_norm *norm, const void *src, void *dst, size_t n, float mean, float mul, float add) {
    const float factor = end_factor(norm);
    const line l = {mean, mul * factor, add * factor + end_add(norm), NULL, NULL};
    BY_TYPES(norm, S, D, apply_line((qdq_dtype)S, (qdq_dtype)D, src, dst, n, &l));
}

/* One vector of columns, all rows. */
QK_INLINE void cols_of(const qk_norm *norm, qdq_dtype S, qdq_dtype D, const char *x, char *y, size_t n_rows,
                       size_t stride, size_t m, const float *means, const float *muls, const float *adds) {
    const size_t sb = qkv_bytes(S), db = qkv_bytes(D);
    const bool whole = m == QKV_LANES;
    const qkv mean = qkv_loadu_n(means, m), mul = qkv_loadu_n(muls, m), add = qkv_loadu_n(adds, m);
    const qkv factor = qkv_set(end_factor(norm)), first = qkv_set(end_add(norm));
    for (size_t r = 0; r < n_rows; r++, x += stride * sb, y += stride * db) {
        qkv v = qkv_fma(qkv_sub(whole ? qkv_load(S, x) : qkv_load_n(S, x, m), mean), mul, add);
        if (qkv_is_x8(D)) v = qkv_fma(v, factor, first);
        if (whole)
            qkv_store(D, y, v);
        else
            qkv_store_n(D, y, v, m);
    }
}

/* Some rows at a time, so that they are still in the first cache when their next columns come. */
static void apply_cols(const qk_norm *norm, const void *src, void *dst, size_t n_rows, size_t cols, size_t stride,
                       const float *means, const float *muls, const float *adds) {
    const size_t w = QKV_LANES, sb = qkv_bytes(norm->src), db = qkv_bytes(norm->dst);
    const size_t step = stride == 0 ? n_rows : 1 + BLOCK / stride;
    for (size_t r = 0; r < n_rows; r += step) {
        const size_t some = n_rows - r < step ? n_rows - r : step;
        for (size_t c = 0; c < cols; c += w) {
            const char *x = (const char *)src + (r * stride + c) * sb;
            char *y = (char *)dst + (r * stride + c) * db;
            const size_t m = cols - c < w ? cols - c : w;
            BY_TYPES(norm, S, D,
                     cols_of(norm, (qdq_dtype)S, (qdq_dtype)D, x, y, some, stride, m, means + c, muls + c, adds + c));
        }
    }
}

QK_INLINE void sums_of(qdq_dtype S, const char *x, size_t n_rows, size_t stride, size_t m, const float *means,
                       double *out) {
    const bool whole = m == QKV_LANES;
    const qkv mean = means == NULL ? qkv_zero() : qkv_loadu_n(means, m);
    qkv sum = qkv_zero();
    float lanes[QKV_LANES];
    for (size_t r = 0; r < n_rows; r++, x += stride * qkv_bytes(S)) {
        const qkv v = qkv_sub(whole ? qkv_load(S, x) : qkv_load_n(S, x, m), mean);
        sum = means == NULL ? qkv_add(sum, v) : qkv_fma(v, v, sum);
    }
    qkv_storeu(lanes, sum);
    for (size_t k = 0; k < m; k++)
        out[k] += (double)lanes[k];
}

static void col_sums(const qk_norm *norm, const void *src, size_t n_rows, size_t cols, size_t stride,
                     const float *means, double *out) {
    const size_t w = QKV_LANES, sb = qkv_bytes(norm->src), most = stride == 0 ? 64 : 1 + BLOCK / stride;
    const size_t step = most < 64 ? most : 64; /* rows that are summed in f32 */
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
