/* What a request asks of its results (post-ops, scales, zero point of the destination), as a program of kernels/post over the
 * destination seen as matrices. Private to native/. */
#ifndef QDQI_NATIVE_POST_H
#define QDQI_NATIVE_POST_H

#include "kernels/post/post.h"
#include "native/native_prim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which dims of the destination are the rows and the columns of a matrix; the others count matrices. Row dims, slowest first,
 * are one index: index r is at r * stride of the last of them, in the destination and in every operand. The columns are
 * consecutive in the destination. */
typedef struct qdqi_native_matrix {
    int32_t n_row_dims, row_dims[QDQ_MAX_NDIMS], col_dim;
} qdqi_native_matrix;

typedef struct qdqi_native_post {
    qk_post post; /* acc, bias, has_…, scale are the family's to set, before qdqi_native_post_choose */
    qk_post_fn *fn;
    qk_isa isa;
    ptrdiff_t dst_row;                  /* elements from row to row */
    ptrdiff_t dst_outer[QDQ_MAX_NDIMS]; /* … and from index to index of the other dims; 0 for rows and columns */
    struct {
        size_t bytes; /* of an element */
        ptrdiff_t row, outer[QDQ_MAX_NDIMS];
    } operands[QDQI_DNNL_MAX_POSTS];
} qdqi_native_post;

/* Steps of the post-ops, dst_quantized and dst_has_zp; post->acc is F32. Refuses ("broadcast", "layout", "post_ops",
 * "grouped_dst", "dtype") what the program cannot say. `dst` is resolved (qdqi_native_layout). */
qdq_status qdqi_native_post_plan(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *dst, const qdqi_native_matrix *matrix,
                                 const char *primitive, qdqi_native_post *out, qdq_error *err);
/* When the family has set its part: the function. */
qdq_status qdqi_native_post_choose(qdqi_native_post *post, const char *primitive, qdq_error *err);
/* The addresses of a run, for the matrix at `outer` (an index per dim of dst, those of rows and columns ignored; NULL: zeros).
 * `dst`: index of its buffer. Scales of source and weights, bias and sums are the family's to set. */
void qdqi_native_post_bind(const qdqi_native_post *post, const qdqi_native_attr_args *args, uint32_t dst,
                           void *const *bufs, const int64_t *outer, qk_post_args *out);
/* Only the steps of the post-ops: no operand's strides are looked at. */
qdq_status qdqi_native_post_steps(const qdqi_dnnl_attr *attr, const char *primitive, qk_post *post, qdq_error *err);
/* One value at bufs[i], or the neutral one when there is no such argument. */
static inline float qdqi_native_scale(void *const *bufs, uint32_t i) {
    return i == QDQI_NO_ARG ? 1.0f : *(const float *)bufs[i];
}
static inline int32_t qdqi_native_zp(void *const *bufs, uint32_t i) {
    return i == QDQI_NO_ARG ? 0 : *(const int32_t *)bufs[i];
}

#ifdef __cplusplus
}
#endif
#endif
