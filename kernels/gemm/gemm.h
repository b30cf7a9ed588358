/* Products of float rows with integer weights that are dequantized in registers:
 *
 *     C[m, n] = Σ_k A[m, k] * (Q[k, n] - zp[k / k_group, n]) * scale[k / k_group, n]          A, C f32; Q s8 u8 s4 u4
 *
 * For few rows, where reading the weights is all the work: they are read once, packed, and never exist as floats.
 *
 * Sums are f32: a run is at most QK_GEMM_RUN values of k inside a group, in ascending k, and its sum times the scale is added
 * to the result. Q - zp is exact. So a result is within about (QK_GEMM_RUN + number of runs) * 2^-24 of Σ |terms|. With avx512vnni,
 * and of 4-bit weights with avx2, the sum of a run is one of integers, exact but for A, which is taken as an integer relative to the
 * run's greatest: within 2^-22 * max |A| * Σ |Q - zp| * scale of it, or 2^-29 where max |A| is above 64 times the run's mean |A|. A
 * result does not depend on the other rows, nor on how the panels are split: the same bytes for any number of rows and threads. Levels
 * of instruction set differ by rounding. A NaN or an infinity in A spreads over its row, and a run whose sum before scaling exceeds f32
 * is infinite (terms of 1e34 and more).
 *
 * Packed layout, all of it multiples of 64 bytes (align it to 64): panels of QK_GEMM_COLS columns, one after the other,
 * padded with zeros; each is a row of groups:
 *
 *     [scales: 64 x f32] [zero points: 64 x s8, if any] [8 bit: k_group rows of 64 x s8 | 4 bit: per 8 k, 64 x u32]
 *
 * Unsigned weights and their zero points are stored minus 128 (8), as signed ones; a u32 has eight k of its column, the first
 * in the lowest nibble. */
#ifndef QK_GEMM_H
#define QK_GEMM_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_GEMM_COLS = 64, QK_GEMM_RUN = 256 };

typedef struct qk_gemm {
    qdq_dtype weights; /* S8 U8 S4 U4 */
    size_t k, n;       /* at least 1 */
    size_t k_group;    /* 1 … k; k when a column has one scale. The last group may be shorter */
    bool has_zp;       /* false: every zero point is the middle of the type: 0, 128 (U8), 8 (U4) */
    /* set by qk_gemm_init */
    size_t n_panels, panel_bytes, group_bytes, packed_bytes;
} qk_gemm;

/* Weights as they come. Element (k, n) is number k * k_stride + n * n_stride (4 bits: of nibbles, low one first); its scale and zero
 * point are number (k / k_group) * scale_k_stride + (n / n_group) * scale_n_stride. */
typedef struct qk_gemm_source {
    const void *data;
    size_t k_stride, n_stride;
    const float *scales;
    const int32_t *zps; /* with has_zp */
    size_t n_group, scale_k_stride, scale_n_stride;
} qk_gemm_source;

/* Check, and set the sizes. False: another type, an extent out of range, or sizes that overflow. */
bool qk_gemm_init(qk_gemm *gemm);
/* Write all packed_bytes. False: a zero point is outside of the weights' type (8 bits wide for 4-bit weights). */
bool qk_gemm_pack(const qk_gemm *gemm, const qk_gemm_source *source, void *packed);

/* The columns of panels first … first+n-1, of m rows. Strides in elements. C must not overlap A. */
typedef void qk_gemm_fn(const qk_gemm *gemm, const void *packed, const float *a, size_t a_stride, float *c,
                        size_t c_stride, size_t m, size_t first, size_t n);

/* The best under the present cap. It is correct for any number of rows; max_rows_out (may be NULL) is up to how many it is the
 * way to take, and not a fast product with dequantized weights (gemm.def has the figures). The level through isa_out, which may be NULL. */
qk_gemm_fn *qk_gemm_choose(const qk_gemm *gemm, size_t *max_rows_out, qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
