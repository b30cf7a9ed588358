/* The peer of the products: matmul with scales per column of the weights, bias and relu, as a quantized layer has them. */
#ifndef BENCH_PEER_GEMM_H
#define BENCH_PEER_GEMM_H

#include "bench_peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dst = relu(src * weights * scales[column] + bias[column]), the weights packed beforehand; `scales` NULL: a plain product. */
bench_peer *bench_peer_layer(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                             float *scales, float *bias);
/* dst = src * weights, all as they lie, with any batch dims, with the scales and zero points of the tensors. */
bench_peer *bench_peer_product(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst);

#ifdef __cplusplus
}
#endif
#endif
