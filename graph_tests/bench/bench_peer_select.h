/* Peers of choices and masks: elementwise over tensors of one shape. */
#ifndef BENCH_PEER_SELECT_H
#define BENCH_PEER_SELECT_H

#include "bench_peer.h"

/* dst = cond ? x : y */
bench_peer *bench_peer_select(const bench_tensor *cond, const bench_tensor *x, const bench_tensor *y,
                              const bench_tensor *dst);
/* dst = x >= y */
bench_peer *bench_peer_compare(const bench_tensor *x, const bench_tensor *y, const bench_tensor *dst);
/* dst = x > 0 ? x : x * slope; slope may be 1 in some dims. */
bench_peer *bench_peer_prelu(const bench_tensor *x, const bench_tensor *slope, const bench_tensor *dst);

#endif
