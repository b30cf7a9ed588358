/* Windows along one axis. Private to kernels/pool. */
#ifndef QK_POOL_AXIS_H
#define QK_POOL_AXIS_H

#include "kernels/pool/pool_row.h"

/* The taps first … end-1 of a window lie inside the tensor; `counted` lie inside tensor and padding. */
typedef struct window {
    int64_t start, first, end, counted;
} window;

static inline int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* How many multiples of `step`, from 0 on, lie below `distance`. */
static inline int64_t steps_below(int64_t distance, int64_t step) {
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

static inline window window_at(const qk_pool *p, int axis, int64_t o) {
    int64_t k = p->kernel[axis], dil = p->dilation[axis], start = o * p->stride[axis] - p->pad_begin[axis];
    if (start >= 0 && start + (k - 1) * dil < p->in[axis]) return (window){start, 0, k, k}; /* nearly all of them */
    window w = {.start = start};
    w.first = smaller(steps_below(-start, dil), k);
    w.end = larger(smaller(steps_below(p->in[axis] - start, dil), k), w.first);
    w.counted = smaller(steps_below(p->in[axis] + p->pad_end[axis] - start, dil), k);
    return w;
}

/* Outputs first … end-1 along an axis have whole windows. */
static inline void whole_windows(const qk_pool *p, int axis, int64_t *first, int64_t *end) {
    const int64_t reach = (p->kernel[axis] - 1) * p->dilation[axis] + 1,
                  room = p->in[axis] + p->pad_begin[axis] - reach;
    *first = smaller(steps_below(p->pad_begin[axis], p->stride[axis]), p->out[axis]);
    *end = room < 0 ? *first : larger(smaller(room / p->stride[axis] + 1, p->out[axis]), *first);
}

/* The end of an average of so many elements, of which so many are inside. */
static inline qk_pool_end end_of(const qk_pool *p, const qk_pool_quant *q, int64_t taps, int64_t counted) {
    int64_t n = p->count_pad ? counted : taps;
    float factor = (float)((double)q->src_scale / (double)n);
    return (qk_pool_end){(int32_t)(taps * q->src_zp), factor, q->dst_scale, q->dst_zp, q->add_zp_first,
                         p->dst == QDQ_DTYPE_S8};
}

#endif
