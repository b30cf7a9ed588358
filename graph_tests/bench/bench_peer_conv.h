/* The peer of convolutions; see bench_peer.h. */
#ifndef BENCH_PEER_CONV_H
#define BENCH_PEER_CONV_H

#include "bench_peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dst = relu(src * weights + bias), the weights packed beforehand: N, C, H, W of src and dst channels last, [G,] O, I, H, W of
 * weights; bias f32, one per output channel. */
bench_peer *bench_peer_conv(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *bias,
                            const bench_tensor *dst, int64_t stride, int64_t pad);

#ifdef __cplusplus
}
#endif
#endif
