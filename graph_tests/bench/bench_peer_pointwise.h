/* Elementwise operations as oneDNN's primitives. */
#ifndef BENCH_PEER_POINTWISE_H
#define BENCH_PEER_POINTWISE_H

#include "bench_peer.h"
#include "kernels/pointwise/pointwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* w: of pairs, dims of 1 where it is the same; else NULL. NULL where oneDNN has no such thing. */
bench_peer *bench_peer_pointwise(qk_pointwise_op op, float alpha, float beta, const bench_tensor *src,
                                 const bench_tensor *w, const bench_tensor *dst);

#ifdef __cplusplus
}
#endif
#endif
