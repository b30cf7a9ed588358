/* The peer of convolutions; see bench_peer.h. */
#ifndef BENCH_PEER_CONV_H
#define BENCH_PEER_CONV_H

#include "bench_peer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_window {
    bool transposed;
    int64_t stride[2], dilation[2],
        pad[2]; /* of h and w; dilation 1: neighbours. The padding's ends follow from the extents */
} bench_window;

/* dst = relu(src * weights + bias), the weights packed beforehand: N, C, H, W of src and dst channels last, [G,] O, I, H, W of
 * weights; bias f32, one per output channel. */
bench_peer *bench_peer_conv(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *bias,
                            const bench_tensor *dst, const bench_window *window);

#ifdef __cplusplus
}
#endif
#endif
