/* Peers of the kernels on lines. Rows of `src` along its last axis. */
#ifndef BENCH_PEER_LINES_H
#define BENCH_PEER_LINES_H

#include "bench_peer.h"

#include <stdbool.h>

/* Softmax; an integer dst has its scale. */
bench_peer *bench_peer_softmax(const bench_tensor *src, const bench_tensor *dst, int axis, bool is_log);
/* LayerNorm over the last axis with gamma and beta. */
bench_peer *bench_peer_layernorm(const bench_tensor *src, const bench_tensor *dst, float *gamma, float *beta);
/* BatchNorm or GroupNorm (groups > 0) of an N x C x ... tensor: with C values of each, moments given for the first. */
bench_peer *bench_peer_batchnorm(const bench_tensor *src, const bench_tensor *dst, float *mean, float *variance,
                                 float *gamma, float *beta);
bench_peer *bench_peer_groupnorm(const bench_tensor *src, const bench_tensor *dst, int64_t groups, float *gamma,
                                 float *beta);
/* Sum over the axes that are 1 in dst; or another reduction. */
typedef enum bench_reduction {
    BENCH_SUM,
    BENCH_MEAN,
    BENCH_MAX,
    BENCH_MIN,
    BENCH_PROD,
    BENCH_L1,
    BENCH_L2
} bench_reduction;
bench_peer *bench_peer_sum(const bench_tensor *src, const bench_tensor *dst);
bench_peer *bench_peer_reduction(bench_reduction op, const bench_tensor *src, const bench_tensor *dst);
/* Half-pixel coordinates. */
bench_peer *bench_peer_resampling(bool is_linear, const bench_tensor *src, const bench_tensor *dst);

#endif
