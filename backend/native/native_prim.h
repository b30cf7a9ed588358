/* Private to native/: what a family's file needs besides its kernels. It checks the request, makes a primitive around a zeroed
 * `impl` of its own, names the arguments in order, and hands it over:
 *
 *     if (…) return qdqi_native_refuse(err, "pooling", "dtype");
 *     static const qdqi_native_ops ops = {.run = run};
 *     pool_impl *impl;
 *     qdqi_native_prim *prim = qdqi_native_new(&ops, "pooling", "pool", sizeof *impl, (void **)&impl);
 *     if (prim == NULL) return QDQI_NO_MEMORY(err);
 *     impl->src = qdqi_native_add_md(prim, QDQI_DNNL_SRC, &src);      an index into bufs of run
 *     impl->dst = qdqi_native_add_md(prim, QDQI_DNNL_DST, &dst);
 *     …
 *     return qdqi_native_finish(prim, out, err);
 *
 * What fails between new and finish (out of memory) is kept and told by finish. */
#ifndef QDQI_NATIVE_PRIM_H
#define QDQI_NATIVE_PRIM_H

#include "native/native.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QDQI_NO_ARG UINT32_MAX

typedef struct qdqi_native_ops {
    /* bufs[index of the argument]. On the caller's thread; splits its work by qdqi_parallel. May not allocate or lock. */
    qdq_status (*run)(const void *impl, void *const *bufs, const qdq_engine *engine, qdq_error *err);
    /* Bring `src` (strided, of the dims that were asked) into the layout of a packed argument. `dst` holds
     * anything. Runs while a plan is made, or in a step when the weights are computed at run time: it may not allocate.
     * NULL when no argument is packed. */
    qdq_status (*pack)(const void *impl, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data, void *dst,
                       qdq_error *err);
    /* Free what impl points at; impl itself is the primitive's. NULL: nothing. */
    void (*clear)(void *impl);
} qdqi_native_ops;

typedef struct qdqi_native_prim qdqi_native_prim;

/* QDQ_E_UNSUPPORTED with the word, which qdqi_native_why returns from now on. Both texts are static. */
qdq_status qdqi_native_refuse(qdq_error *err, const char *primitive, const char *why);

/* `kernel` is what notes and explanations show ("gemm:avx512vnni"); copied. impl is 64-byte aligned. NULL: out of memory. */
qdqi_native_prim *qdqi_native_new(const qdqi_native_ops *ops, const char *primitive, const char *kernel,
                                  size_t impl_bytes, void **impl_out);
/* A plain tensor; `md` may not be `any`: see qdqi_native_layout. */
uint32_t qdqi_native_add_md(qdqi_native_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *md);
/* A dense vector: scales, zero points, gamma. */
uint32_t qdqi_native_add_vector(qdqi_native_prim *prim, qdqi_dnnl_arg arg, int64_t n, qdq_dtype dtype);
/* An argument in a private layout of `bytes` bytes. `key` says everything the packed bytes depend on besides the source: the
 * family's name, its version, block sizes. Copied. */
uint32_t qdqi_native_add_packed(qdqi_native_prim *prim, qdqi_dnnl_arg arg, size_t bytes, const void *key,
                                size_t key_bytes);
/* Memory that one execution needs, 64-byte aligned; bytes 0: none, QDQI_NO_ARG. */
uint32_t qdqi_native_add_scratch(qdqi_native_prim *prim, size_t bytes);
/* Where a primitive keeps the buffers that the attributes ask for. QDQI_NO_ARG: not asked. */
typedef struct qdqi_native_attr_args {
    uint32_t scale_src, scale_src1, scale_weights, scale_dst, zp_src, zp_weights, zp_dst;
    int64_t n_scale_src, n_scale_weights, n_scale_dst, n_zp_src, n_zp_weights, n_zp_dst; /* how many values */
    uint32_t post[QDQI_DNNL_MAX_POSTS];
} qdqi_native_attr_args;
/* Add the arguments of `attr` (NULL: none). The mds are those whose dims the masks select; NULL when there is no such tensor. */
void qdqi_native_add_attr(qdqi_native_prim *prim, const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src,
                          const qdqi_dnnl_md *src1, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *dst,
                          qdqi_native_attr_args *args);
/* Hand it over, or tell what failed and destroy it. "u8s8u8" of the mds is added to the note. */
qdq_status qdqi_native_finish(qdqi_native_prim *prim, qdqi_dnnl_prim **out, qdq_error *err);
/* A family that has to give up after qdqi_native_new. */
void qdqi_native_drop(qdqi_native_prim *prim);

/* ---- requests ---- */

/* The request with `any` resolved to row-major. Refuses ("zero_size", "size", "rank", "sub_byte_dtype") what no kernel takes:
 * rank 0, a dim of 0, sizes or strides that do not fit, gaps below zero, elements of less than a byte. */
qdq_status qdqi_native_layout(const qdqi_dnnl_md *asked, const char *primitive, qdqi_dnnl_md *md, qdq_error *err);
int64_t qdqi_native_n_elems(const qdqi_dnnl_md *md);
bool qdqi_native_is_dense(const qdqi_dnnl_md *md);                          /* row-major without gaps */
bool qdqi_native_same_layout(const qdqi_dnnl_md *a, const qdqi_dnnl_md *b); /* dims and strides that matter */
/* Bytes from the first to behind the last element. */
size_t qdqi_native_span(const qdqi_dnnl_md *md);
/* How many values `mask` selects of md (groups of the last two dims as in qdqi_dnnl_quant). -1: they do not fit the dims. */
int64_t qdqi_native_count(const qdqi_dnnl_md *md, int mask, const int64_t group[2]);
/* Whether the attributes ask for nothing of these sides / no post-ops. NULL asks for nothing. */
bool qdqi_native_no_quant(const qdqi_dnnl_attr *attr);
bool qdqi_native_no_attr(const qdqi_dnnl_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
