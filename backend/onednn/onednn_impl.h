/* Inside of the facade: shared by its core, its attributes and its creators. The only header that includes dnnl.h. */
#ifndef QDQI_ONEDNN_IMPL_H
#define QDQI_ONEDNN_IMPL_H

#include "onednn/onednn.h"

#include <dnnl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The process-wide CPU engine, made at the first call, never destroyed. NULL when oneDNN cannot make one. */
dnnl_engine_t qdqi_dnnl_engine(void);

/* OK, or a failure whose text says what `what` could not do. `unimplemented` and `invalid_arguments` (its answer to
 * combinations that it does not know) are UNSUPPORTED. */
qdq_status qdqi_dnnl_check(dnnl_status_t status, const char *what, qdq_error *err);

/* A descriptor of `md`, to be destroyed. `what` names it in failures ("matmul: src"). */
qdq_status qdqi_dnnl_make_md(const qdqi_dnnl_md *md, const char *primitive, const char *what,
                             dnnl_memory_desc_t *md_out, qdq_error *err);

/* An argument that no primitive descriptor describes, a dense vector: scales, zero points, slopes of prelu. */
typedef struct qdqi_dnnl_vector {
    qdqi_dnnl_arg arg;
    int dnnl_arg;
    int64_t n;
    qdq_dtype dtype;
} qdqi_dnnl_vector;

/* One argument of a primitive in the making. */
typedef struct qdqi_dnnl_role {
    qdqi_dnnl_arg arg;
    int dnnl_arg;
} qdqi_dnnl_role;

enum {
    QDQI_DNNL_MAX_ROLES = 16 + QDQI_DNNL_MAX_POSTS,
    QDQI_DNNL_MAX_VECTORS = 8 + QDQI_DNNL_MAX_POSTS,
    QDQI_DNNL_MAX_SOURCES = 1024 /* oneDNN numbers sources in a range of 1024 */
};

/* A primitive in the making: descriptors, attributes, and the arguments that its execution will take. Zero-initialise with `primitive` set; qdqi_dnnl_draft_clear at the end in any case. */
typedef struct qdqi_dnnl_draft {
    const char *primitive; /* "matmul" */
    dnnl_memory_desc_t src, src1, weights, bias, dst;
    dnnl_primitive_attr_t attr;
    qdqi_dnnl_role roles[QDQI_DNNL_MAX_ROLES];
    uint32_t n_roles;
    qdqi_dnnl_vector vectors[QDQI_DNNL_MAX_VECTORS];
    uint32_t n_vectors;
    uint32_t n_sources; /* concat: arguments SRC_N + 0...n - 1 besides the roles */
    char types[32];     /* "u8s8u8", for notes and failures */
} qdqi_dnnl_draft;

/* Add a descriptor and its argument: *slot is one of the draft's descriptors. */
qdq_status qdqi_dnnl_draft_md(qdqi_dnnl_draft *draft, dnnl_memory_desc_t *slot, qdqi_dnnl_arg arg,
                              const qdqi_dnnl_md *md, qdq_error *err);
/* src, dst and the attributes of a primitive that has no other tensor. */
qdq_status qdqi_dnnl_draft_src_dst(qdqi_dnnl_draft *draft, const qdqi_request *request, qdq_error *err);
void qdqi_dnnl_draft_role(qdqi_dnnl_draft *draft, qdqi_dnnl_arg arg, int dnnl_arg);
/* Build the attributes: user scratchpad, and what `attr` asks (may be NULL). The mds are those whose dims the masks of attr
 * select; NULL when the primitive has no such argument, and then attr must ask nothing of it. */
qdq_status qdqi_dnnl_draft_attr(qdqi_dnnl_draft *draft, const qdqi_dnnl_attr *attr, const qdqi_dnnl_md *src,
                                const qdqi_dnnl_md *src1, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *dst,
                                qdq_error *err);
/* Turn what the creation of the descriptor returned into a primitive. Takes `pd` over, on failure too. */
qdq_status qdqi_dnnl_draft_finish(qdqi_dnnl_draft *draft, dnnl_status_t status, dnnl_primitive_desc_t pd,
                                  qdqi_dnnl_prim **out, qdq_error *err);
void qdqi_dnnl_draft_clear(qdqi_dnnl_draft *draft);

/* The failure of an algorithm that is not of this primitive. */
qdq_status qdqi_dnnl_wrong_alg(const qdqi_dnnl_draft *draft, qdqi_dnnl_alg alg, qdq_error *err);

/* One per kind of request; `draft` has the primitive's name, and is cleared by the caller. */
typedef qdq_status qdqi_dnnl_maker(qdqi_dnnl_draft *draft, const qdqi_request *request, qdqi_dnnl_prim **out,
                                   qdq_error *err);
qdqi_dnnl_maker qdqi_dnnl_make_matmul, qdqi_dnnl_make_convolution, qdqi_dnnl_make_pooling, qdqi_dnnl_make_eltwise,
    qdqi_dnnl_make_binary, qdqi_dnnl_make_softmax, qdqi_dnnl_make_layernorm, qdqi_dnnl_make_groupnorm,
    qdqi_dnnl_make_batchnorm, qdqi_dnnl_make_reduction, qdqi_dnnl_make_resampling, qdqi_dnnl_make_concat,
    qdqi_dnnl_make_reorder;

/* The descriptor of an argument; NULL when the primitive has no such argument. */
const_dnnl_memory_desc_t qdqi_dnnl_prim_md(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg);

/* The table of its primitives; the last two are made in onednn_create_reorder.c. */
extern const struct qdqi_prim_ops qdqi_dnnl_prim_ops;
qdq_status qdqi_dnnl_pack_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src,
                              const void *src_data, void *dst, qdq_error *err);
qdq_status qdqi_dnnl_make_reorder_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided,
                                      bool to_prim, qdqi_dnnl_prim **out, qdq_error *err);

/* oneDNN's name of an algorithm; undef when it has none (SUM, PRELU, LOGSOFTMAX's kin are handled by their users). */
dnnl_alg_kind_t qdqi_dnnl_alg_kind(qdqi_dnnl_alg alg);
static inline bool qdqi_dnnl_is_eltwise(qdqi_dnnl_alg alg) {
    return alg <= QDQI_DNNL_ELT_SWISH;
}
static inline bool qdqi_dnnl_is_binary(qdqi_dnnl_alg alg) {
    return alg >= QDQI_DNNL_BIN_ADD && alg <= QDQI_DNNL_BIN_GE;
}

#ifdef __cplusplus
}
#endif
#endif
