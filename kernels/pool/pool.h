/* Pooling of bytes: maximum and average over windows of one to three spatial axes, u8 and s8 in and out, channels last or
 * plain (channels first).
 *
 *     maximum   dst = Q(DQ(max q))             needs a positive source scale: then it is the maximum of the real values
 *     average   dst = Q(f32(S) * f32(s / n))   S = Σ (q - zp) over the window's elements inside the tensor, exact; n their
 *                                              number, or with count_pad the number inside tensor and padding (padding is a
 *                                              real 0); s / n in f64, rounded to f32
 *
 * Q and DQ as in kernels/quant/quant.h. A window without elements: the lowest value for a maximum; for an average the zero
 * point. Spatial axes are d, h, w; unused ones (the first ones) have extent, kernel, stride and dilation 1, padding 0. Output
 * o's window starts at o * stride - pad_begin and takes `kernel` elements `dilation` apart. Dense tensors. Every level of
 * instruction set gives the same bytes. Threads: split the tasks; each thread has scratch of its own. */
#ifndef QK_POOL_H
#define QK_POOL_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* qk_pool_work for each thread that is asked: with less, asking costs more than it brings. */
#define QK_POOL_GRAIN (96 * 1024)

struct qk_pool_row;

typedef struct qk_pool {
    bool is_max, count_pad, channels_last;
    qdq_dtype src, dst; /* U8 S8 */
    int64_t n, c, in[3], out[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    /* set by qk_pool_init */
    bool is_global, is_grid, is_walk, is_separate;
    size_t n_tasks, scratch_bytes;
    const struct qk_pool_row *row;
} qk_pool;

/* An average in integers, from the sum S of bytes as 0 … 255; a result of type S8 is 128 more. Made only where it is the formula
 * above for every S there is; otherwise there is none.
 *
 *     FIXED     (S * factor + add) / 2^16, rounded; within `near` of a half up where the bit of `ties` says so that belongs
 *               to the whole part; saturated
 *     PLAIN     (S + plain_add) * plain_factor / 2^16, the whole part
 *     QUARTER   S / 4; half way between t - 1 and t it is t - 1 where the bit t of `ties` is set */
typedef enum qk_pool_mean_form { QK_POOL_NO_MEAN, QK_POOL_FIXED, QK_POOL_PLAIN, QK_POOL_QUARTER } qk_pool_mean_form;
typedef struct qk_pool_mean {
    qk_pool_mean_form form;
    int32_t add;
    uint16_t factor, near, plain_add, plain_factor;
    uint8_t ties[32];
    bool to_signed;
} qk_pool_mean;

enum { QK_POOL_GRID_TAPS = 16, QK_POOL_EDGE_SUMS = 6 * 255 + 1 };

/* Scales and zero points, which may be known only at run time. */
typedef struct qk_pool_quant {
    float src_scale, dst_scale;
    int32_t src_zp, dst_zp;
    bool add_zp_first;
    bool is_same;       /* a maximum needs no requantization */
    uint8_t table[256]; /* of a maximum otherwise */
    qk_pool_mean mean;  /* of whole windows, FIXED */
    /* Of walked windows: cut at the begin of the axis, whole, cut at its end; along h and w. */
    qk_pool_mean means[3][3];
    bool is_walk; /* all that are needed are there */
    /* Plain averages: what a sum of bytes as 0 … 255 in a cut column becomes; which table by class of rows and side. */
    uint8_t edges[6][QK_POOL_EDGE_SUMS], edge_of[3][2];
} qk_pool_quant;

/* Check and choose, under the present cap. False: a type not of the above, an extent, kernel, stride or dilation below 1 (n, c,
 * in and out may be 0), a negative padding, or sums that might not fit 32 bits. */
bool qk_pool_init(qk_pool *pool);
qk_isa qk_pool_isa(const qk_pool *pool);
/* How much there is to do: elements looked at, results times window; of a global window, which is read once and in order, a
 * quarter. */
int64_t qk_pool_work(const qk_pool *pool);
/* False: a maximum, and the source scale is not positive and finite. */
bool qk_pool_quant_init(const qk_pool *pool, float src_scale, int32_t src_zp, float dst_scale, int32_t dst_zp,
                        bool add_zp_first, qk_pool_quant *out);
/* Tasks first … first+n-1 of pool->n_tasks; `scratch` holds scratch_bytes, aligned to 64. */
void qk_pool_run(const qk_pool *pool, const qk_pool_quant *quant, const void *src, void *dst, size_t first, size_t n,
                 void *scratch);

#ifdef __cplusplus
}
#endif
#endif
