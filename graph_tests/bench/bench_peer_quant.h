/* The peer of the range of a tensor and its quantization. */
#ifndef BENCH_PEER_QUANT_H
#define BENCH_PEER_QUANT_H

#include "bench_peer.h"

/* The largest of src, the smallest of src, and src with dst's scale and zero point as dst: three primitives, one after the other. What is
 * between them, a scale out of two numbers, costs nothing, and is left out. */
bench_peer *bench_peer_dynamic_quantize(const bench_tensor *src, const bench_tensor *dst);

#endif
