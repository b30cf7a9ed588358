/* Between the two ways of kernels/conv: depthwise (conv_depthwise.c) and products of rows with panels (conv_panels.c). */
#ifndef QK_CONV_IMPL_H
#define QK_CONV_IMPL_H

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_end.h"

#include <stddef.h>
#include <string.h>

static inline int64_t qk_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t qk_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static inline int64_t qk_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}
static inline size_t qk_round_up(size_t a, size_t to) {
    return (a + to - 1) / to * to;
}

/* Stored weights are signed: u8 ones are stored minus 128, and so are their zero points. */
static inline uint8_t qk_conv_weights_flip(const qk_conv *c) {
    return c->weights == QDQ_DTYPE_U8 ? 0x80 : 0;
}
/* Sources are computed with as unsigned: s8 ones plus 128, and so is their zero point. */
static inline uint8_t qk_conv_src_flip(const qk_conv *c) {
    return c->src == QDQ_DTYPE_S8 ? 0x80 : 0;
}
static inline bool qk_conv_sums_pixels(const qk_conv *c) {
    return c->has_weights_zp || c->weights == QDQ_DTYPE_U8;
}
static inline size_t qk_conv_elem_bytes(const qk_conv *c) {
    return c->src == QDQ_DTYPE_F32 ? 4 : c->is_float ? 2 : 1;
}
static inline const uint8_t *qk_conv_pixel(const qk_conv *c, const void *src, int64_t pixel) {
    return (const uint8_t *)src + (size_t)(pixel * c->src_stride) * qk_conv_elem_bytes(c);
}

/* The results of n_cols channels from `channel` on, whose first slot is `slot`; pixel `pixel` is the first row. */
qk_conv_end qk_conv_end_of(const qk_conv *c, const qk_conv_run *r, size_t slot, int64_t channel, size_t n_cols,
                           int64_t pixel);

/* A weight as it is stored; float ones. */
int32_t qk_conv_weight(const qk_conv *c, const qk_conv_weights *w, int64_t at);
float qk_conv_weight_f32(const qk_conv *c, const qk_conv_weights *w, int64_t at);
/* Where output channel `channel` (of all groups) has its slot. */
size_t qk_conv_slot(const qk_conv *c, int64_t channel);

bool qk_conv_depthwise_init(qk_conv *c);
void qk_conv_depthwise_pack(const qk_conv *c, const qk_conv_weights *w, void *packed);
void qk_conv_depthwise_run(const qk_conv *c, const qk_conv_run *r, size_t first, size_t n, void *scratch);

bool qk_conv_panels_init(qk_conv *c);
void qk_conv_panels_pack(const qk_conv *c, const qk_conv_weights *w, void *packed);
void qk_conv_panels_run(const qk_conv *c, const qk_conv_run *r, size_t first, size_t n, void *scratch);

#endif
