/* Private to native/: what the families that work on lines (softmax, the normalisations) share. They see a tensor in the order of
 * its memory, compute lines of f32, and end them in one of three ways: stored as they are, quantized by the kernel itself, or by a
 * program of kernels/post. */
#ifndef QDQI_NATIVE_ROWS_H
#define QDQI_NATIVE_ROWS_H

#include "native/native_post.h"

#ifdef __cplusplus
extern "C" {
#endif

/* order[i]: the dim of `md` that is the i-th from outside in memory. False when the tensor has gaps or overlaps. */
bool qdqi_native_memory_order(const qdqi_dnnl_md *md, int32_t *order);

/* Scalars of a quantization, as kernels take them: v * factor + zp_first. */
typedef struct qdqi_native_quantum {
    float factor, zp_first;
} qdqi_native_quantum;

typedef struct qdqi_native_end {
    bool quantizes; /* the kernel stores 8 bits: qdqi_native_quantum_of gives the scalars */
    bool divides;
    uint32_t scale, zp, zp_s32; /* arguments, or QDQI_NO_ARG */
    qk_post_fn *fn;             /* else a program, or NULL */
    qk_post post;
    uint32_t post_args[QDQI_DNNL_MAX_POSTS];
    int32_t n_outer; /* dims outside of a line, in memory order; how the operands step along them */
    int64_t outer_dims[QDQ_MAX_NDIMS], steps[QDQI_DNNL_MAX_POSTS][QDQ_MAX_NDIMS];
    int64_t elem_bytes[QDQI_DNNL_MAX_POSTS];
} qdqi_native_end;

/* Add attr's arguments to `prim` and find the end. Lines are the last `n_line` dims of `order` (0: only what a kernel does itself
 * is taken). Source quantization is the family's business. Errors: UNSUPPORTED with "post_ops". */
qdq_status qdqi_native_end_init(qdqi_native_end *end, qdqi_native_prim *prim, const char *primitive,
                                const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const int32_t *order, int32_t n_line,
                                const qdqi_dnnl_attr *attr, qdqi_native_attr_args *args, qdq_error *err);
qdqi_native_quantum qdqi_native_quantum_of(const qdqi_native_end *end, void *const *bufs);
/* Line `line` (of n elements): from f32 to where it belongs, by the program. */
void qdqi_native_end_line(const qdqi_native_end *end, void *const *bufs, void *dst, int64_t line, const float *values,
                          int64_t n);

/* A source quantization is of 8 bits, and has one scale and one zero point: (q - zp) * scale is what the primitive reads. (The
 * facade's softmax and normalisations have no such thing: oneDNN's source scale multiplies the result.) */
bool qdqi_native_src_ok(const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src);
/* 1 and 0 where there is none. */
float qdqi_native_src_scale(const qdqi_native_attr_args *args, void *const *bufs);
float qdqi_native_src_zp(const qdqi_native_attr_args *args, void *const *bufs);

/* n tasks on the engine's threads, in one piece each: body(first, n, arg). A thread gets at least `grain` units of `work`. */
typedef struct qdqi_native_split {
    void (*body)(int64_t first, int64_t n, void *arg);
    void *arg;
    int64_t n, per_chunk;
} qdqi_native_split;
void qdqi_native_parallel(const qdq_engine *engine, int64_t n, int64_t work, int64_t grain,
                          void (*body)(int64_t first, int64_t n, void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
