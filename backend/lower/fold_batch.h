/* Batch dims of a matmul request that are one dim in memory, seen as one: the buffers stay as they are. */
#ifndef QDQI_FOLD_BATCH_H
#define QDQI_FOLD_BATCH_H

#include "onednn/onednn.h"

/* All descriptors of one request; they have one rank (bias: ndims 0 when there is none). */
typedef struct qdqi_mm_request {
    qdqi_dnnl_md *src, *weights, *plain_weights, *bias, *dst;
    qdqi_dnnl_attr *attr;
} qdqi_mm_request;

/* Weights that a whole batch shares make its matrices one long matrix ([B, M, K] x [1, K, N] is [B * M, K] x [K, N]); ranks above
 * four are brought down as far as the layouts allow. oneDNN 3.7.2 has nothing but its reference loops for a fifth dim, and
 * forgets the zero point of weights that single rows share. In layouts that are not row-major dims of 1 go where they can, and their
 * strides mean nothing afterwards. */
void qdqi_fold_batches(const qdqi_mm_request *request);

#endif
