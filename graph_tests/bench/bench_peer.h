/* The peer of the kernel benchmark: oneDNN primitives prepared once, run many times, on as many threads as OpenMP has when they
 * are made. Without oneDNN every create function gives NULL. Further primitives: bench_peer_dnnl.h. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer bench_peer;

typedef struct bench_tensor {
    void *data;
    qdq_dtype dtype;
    int32_t ndims;
    int64_t dims[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS]; /* elements */
    float scale;                                         /* 0: none */
    int32_t zp;
    void *scales; /* instead of scale: f32, one for each place along the axes of scale_mask */
    int scale_mask;
} bench_tensor;

/* dst = reorder(src), with both tensors' scales and zero points. */
bench_peer *bench_peer_reorder(const bench_tensor *src, const bench_tensor *dst);
/* dst = relu(src0 + src1), the sources' scales and the destination's as oneDNN takes them; zero points are not supported. */
bench_peer *bench_peer_add_relu(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst);
/* Square windows over two axes, maximum or average of what is inside; padding behind is what the sizes leave. */
bench_peer *bench_peer_pool(const bench_tensor *src, const bench_tensor *dst, bool is_max, int64_t kernel,
                            int64_t stride, int64_t pad);
bench_peer *bench_peer_concat(const bench_tensor *src0, const bench_tensor *src1, const bench_tensor *dst, int axis);
/* dst = src * weights in two dims, the weights packed beforehand. Integer weights are decompressed: `scales` has one f32 per
 * k_group rows and column. */
bench_peer *bench_peer_matmul(const bench_tensor *src, const bench_tensor *weights, const bench_tensor *dst,
                              void *scales, int64_t k_group);
/* The implementation's name. */
const char *bench_peer_name(const bench_peer *peer);
void bench_peer_run(bench_peer *peer);
void bench_peer_destroy(bench_peer **peer);

#ifdef __cplusplus
}
#endif
#endif
