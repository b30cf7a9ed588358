/* A pass over tensors of any strides: the program of kernels/post applied to every element of a source, with operands that
 * broadcast. Private to native/. Dims are merged and sorted by the destination; where the innermost one is not consecutive in
 * some tensor, its elements go through a small buffer. */
#ifndef QDQI_NATIVE_NEST_H
#define QDQI_NATIVE_NEST_H

#include "kernels/pointwise/pointwise.h"
#include "native/native_post.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdqi_nest_tensor {
    uint32_t arg;                             /* index into bufs */
    size_t bytes;                             /* of an element */
    ptrdiff_t outer[QDQ_MAX_NDIMS], row, col; /* elements */
} qdqi_nest_tensor;

typedef struct qdqi_nest {
    qk_post post; /* acc and dst are those of the tensors; the steps are the caller's */
    qk_post_fn *fn;
    qk_pointwise_fn *lone; /* instead: the program is one operation on floats; `args` but for its operands' strides */
    qk_pointwise lone_args;
    qk_isa isa;
    uint32_t n_outer;
    int64_t outer[QDQ_MAX_NDIMS], rows, cols; /* slowest first */
    int64_t n_outer_tasks, row_block, col_block;
    int64_t n_row_blocks, n_col_blocks;
    bool staged;
    qdqi_nest_tensor src, dst, operands[QK_POST_MAX_STEPS]; /* bytes 0: the step has none */
    uint32_t scale_src, zp_src, scale_dst, zp_dst;          /* arguments, or QDQI_NO_ARG */
} qdqi_nest;

/* The tensors: src has the dims of dst; operand k (NULL: none) those or 1. Refuses ("shape", "broadcast", "dtype"). The caller has
 * set post.steps with n_steps, and sets the arguments' indices afterwards. */
qdq_status qdqi_nest_plan(qdqi_nest *nest, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                          const qdqi_dnnl_md *const *operands, const char *primitive, qdq_error *err);
qdq_status qdqi_nest_run(const qdqi_nest *nest, void *const *bufs, const qdq_engine *engine, qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
