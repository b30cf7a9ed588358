/* Convolutions over channels-last memory, one to three spatial axes, any groups, strides, dilations and paddings:
 *
 *     sum[n, o, oc] = Σ over taps k and ic of  (X[n, o * stride - pad + k * dilation, ic] - zx) * (W[oc, ic, k] - zw[oc])
 *
 * and the transposed one, where X is read at i with i * stride = o + pad - k * dilation. Elements outside of X are real
 * zeros. Two kinds:
 *
 *     integer   X u8 s8, W u8 s8; the sum is exact (modulo 2^32), the same on every level of instruction set
 *     float     X f32 bf16 f16, W of the same type; sums in f32, in an order that depends on the level
 *
 * The sums of some pixels and channels at a time go to the caller's function, which makes results of them; common results are made
 * without it, while sums are in registers. Spatial axes are
 * d, h, w; unused ones (the first) have extent, kernel, stride and dilation 1, padding 0. Pixels are numbered through
 * n, d, h, w: pixel p of X is at element p * src_stride, its channels side by side. No image is unfolded: what is multiplied are
 * rows of channels where they lie, or lines copied with their padding where bytes must change first.
 * Nothing is read past the last channel of the last pixel. Threads: split the tasks; each thread has scratch of its own. */
#ifndef QK_CONV_H
#define QK_CONV_H

#include "kernels/isa/isa.h"
#include "kernels/simd/plain.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_conv {
    qdq_dtype src, weights;
    bool transposed;
    bool has_weights_zp;       /* u8 weights without one have zero point 0 */
    int64_t n, groups, ic, oc; /* channels of one group */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_begin[3];
    int64_t src_stride; /* at least groups * ic */
    /* set by qk_conv_init, which may also see a pointwise convolution as one line of pixels */
    bool is_float, is_depthwise; /* of one channel, or of groups of a few that are as many out as in */
    bool is_woven;               /* depthwise: outputs share columns */
    bool is_copied;              /* else: lines are copied, with padding, to where tiles read them; and if so … */
    bool is_flat;                /* one tap, and the pixels of in and out are the same */
    bool is_fused;               /* … the taps along w are one run of elements */
    const void *row;             /* the level's functions */
    int64_t merged;              /* groups that are computed as one, with zeros between them */
    int64_t g, k, m;             /* then: groups, channels in and out of each */
    size_t n_panels, panel_cols,
        last_cols;        /* of a group's output channels, with those that only fill; columns of the last */
    size_t n_slots;       /* n_panels * panel_cols, of all groups */
    size_t n_taps, tap_k; /* runs that a row of products consists of; dwords of one */
    size_t panel_bytes, lines_bytes, line_bytes;
    int64_t chunk[3], n_chunks[3], n_cells[3]; /* outputs done at a time; columns (lines, planes) they read */
    int64_t task_groups, n_splits;             /* groups of a task, and of how many tasks their panels are */
    size_t n_tasks, packed_bytes, terms_bytes, scratch_bytes;
    bool ends; /* the level can make results */
} qk_conv;

/* Weights as they come; strides in elements. Transposed ones have the same axes: o is what comes out. */
typedef struct qk_conv_weights {
    const void *data;
    int64_t g_stride, o_stride, i_stride, k_stride[3];
} qk_conv_weights;

/* Sums of the pixels first … first+n_pixels-1 and of some channels (of all groups together), s32 or f32; pixel i's start
 * at sums + i * stride. They may be overwritten up to `stride` per pixel. */
typedef void qk_conv_finish(void *arg, void *sums, size_t stride, int64_t first, size_t n_pixels, int64_t channel,
                            size_t n_channels);

typedef struct qk_conv_run {
    const void *src;
    const void *packed; /* 64-byte aligned */
    const void *terms;  /* of qk_conv_terms; integer only */
    int32_t src_zp;
    bool use_weights_zp; /* what qk_conv_terms answered */
    qk_conv_finish *finish;
    void *arg;
    const qk_plain *plain; /* not NULL: what is done instead; qk_conv_plain said yes to it */
} qk_conv_run;

/* Check, choose under the present cap, and set the sizes. False: a type or an extent out of range (n may be 0), or sizes that
 * overflow. */
bool qk_conv_init(qk_conv *conv);
qk_isa qk_conv_isa(const qk_conv *conv);
/* Write all packed_bytes. */
void qk_conv_pack(const qk_conv *conv, const qk_conv_weights *weights, void *packed);
/* What is added to every sum of a channel, once per run: what zero points make, and `bias` (groups * oc values, modulo 2^32; or NULL).
 * `weights_zps` has 1 or groups * oc values, or is NULL. Writes terms_bytes. True when the zero points of the weights need work per
 * pixel: for qk_conv_run. Integer only. */
bool qk_conv_terms(const qk_conv *conv, const void *packed, int32_t src_zp, const int32_t *weights_zps, size_t n_zps,
                   const int32_t *bias, void *terms);
/* Can these results be made in registers? Then writes to `terms` (after qk_conv_terms) what the tasks need of it. The caller sees to
 * it that no zero point of weights is used. To bytes, only where no value can leave 32 bits. */
bool qk_conv_plain(const qk_conv *conv, const qk_plain *plain, void *terms);
/* Tasks first … first+n-1 of n_tasks; `scratch` holds scratch_bytes, aligned to 64. Each output is in one task. */
void qk_conv_run_tasks(const qk_conv *conv, const qk_conv_run *run, size_t first, size_t n, void *scratch);

#ifdef __cplusplus
}
#endif
#endif
