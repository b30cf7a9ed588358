/* Normalisations: lines of n elements by their own mean and variance, and the application of moments that are known.
 *
 *     x = the element as f32; of U8 and S8: (q - src_zp) * src_scale
 *     m, s2 = mean and variance (over n) of the line, or with `rms`: 0 and the mean of squares
 *     v = (x - m) / sqrt(s2 + epsilon) * gamma[i] + beta[i]
 *     dst = v as a float type, or for U8, S8: round(v * dst_factor + zp_first), half to even, saturated
 *
 * Moments are taken round a value near the mean (integers: from exact sums), so that a large mean does not
 * cost the variance its digits. Nothing outside of the lines is touched. dst may be src when the types are equally wide.
 * Single-threaded: split the lines. */
#ifndef QK_NORM_H
#define QK_NORM_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_norm {
    qdq_dtype src, dst; /* F32 BF16 F16 U8 S8 */
    bool rms;
    float epsilon;
    float src_scale, src_zp;    /* not read for floats */
    float dst_factor, zp_first; /* likewise */
} qk_norm;

/* In the units that are stored (of U8 and S8: integers): what is subtracted, and mean and variance of real values. */
typedef struct qk_moments {
    double mean, variance;
} qk_moments;

typedef struct qk_norm_fns {
    /* n_rows lines of n consecutive elements. gamma and beta (n values) may be NULL; so may means and variances, which get one
     * value per line: of real values. */
    void (*rows)(const qk_norm *norm, const void *src, void *dst, const float *gamma, const float *beta, float *means,
                 float *variances, size_t n_rows, size_t n);
    /* Moments of what is stored, over n_runs runs of n elements, run_stride elements apart; mean 0 with rms. */
    qk_moments (*moments)(const qk_norm *norm, const void *src, size_t n_runs, size_t run_stride, size_t n);
    /* sums[c] += x, or with `means`: (x - means[c])^2, over rows x cols stored elements; rows are `stride` elements apart. */
    void (*col_sums)(const qk_norm *norm, const void *src, size_t rows, size_t cols, size_t stride, const float *means,
                     double *sums);
    /* dst = (stored - mean) * mul + add, and the end as above: one for all, or one per column of rows x cols elements. */
    void (*apply)(const qk_norm *norm, const void *src, void *dst, size_t n, float mean, float mul, float add);
    void (*apply_cols)(const qk_norm *norm, const void *src, void *dst, size_t rows, size_t cols, size_t stride,
                       const float *means, const float *muls, const float *adds);
} qk_norm_fns;

/* The best under the present cap; the level through isa_out, which may be NULL. NULL when a type is none of the above. All but the
 * types may change from run to run. */
const qk_norm_fns *qk_norm_choose(const qk_norm *norm, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
