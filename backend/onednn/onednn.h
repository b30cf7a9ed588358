/* A plain C facade over the oneDNN primitives that lowering uses; the only room that includes dnnl.h. Without oneDNN the
 * same functions are a stub that refuses with QDQ_E_NO_ONEDNN.
 *
 * qdqi_dnnl_create makes an immutable primitive with its descriptors resolved. Lowering then asks which layouts it chose
 * (`any` in the request), packs constants, allocates scratch, and appends it to a plan with qdqi_dnnl_step: one buffer per
 * argument, in the order of the primitive's argument list.
 * Scales and zero points are runtime arguments of every primitive: f32 (or the dtype asked) and s32 tensors.
 * When oneDNN has no implementation, or answers that it does not know the combination, the function returns
 * QDQ_E_UNSUPPORTED and a one-line reason, and creates nothing. Tensors with a dim of 0 are refused so too ("zero_size").
 * QDQ_MAX_ISA caps the instruction sets that oneDNN may use (our names of levels, or oneDNN's); read at the first call. So is
 * QDQ_JIT: with `off` no engine and no primitive of oneDNN is made, since all of them generate code at run time; every
 * request is refused with QDQ_E_NO_ONEDNN ("jit_off"). */
#ifndef QDQI_ONEDNN_H
#define QDQI_ONEDNN_H

#include "runtime/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True when this build has oneDNN, it initialised, and QDQ_JIT does not forbid it. */
bool qdqi_dnnl_available(void);
/* True when this build has oneDNN and QDQ_JIT=off forbids it. */
bool qdqi_dnnl_jit_off(void);
/* Text of the version ("3.7.2"), or "none". */
const char *qdqi_dnnl_version(void);
/* True when the effective ISA multiplies u8*s8 into s32 without 16-bit saturation (VNNI or AMX class). */
bool qdqi_dnnl_int8_exact(void);
/* Whether the ISA runs bf16 / f16 primitives. */
bool qdqi_dnnl_has_dtype(qdq_dtype dtype);

/* A tensor as asked for: strided, or `any` (the primitive chooses). */
typedef struct qdqi_dnnl_md {
    int32_t ndims;
    int64_t dims[QDQ_MAX_NDIMS];
    int64_t strides[QDQ_MAX_NDIMS];
    qdq_dtype dtype;
    bool any;
} qdqi_dnnl_md;

typedef enum qdqi_dnnl_arg {
    QDQI_DNNL_SRC = 0,
    QDQI_DNNL_SRC1, /* second operand of binary; the i-th source of concat is SRC_N + i */
    QDQI_DNNL_WEIGHTS,
    QDQI_DNNL_BIAS,
    QDQI_DNNL_DST,
    QDQI_DNNL_SCRATCH,
    QDQI_DNNL_SCALE_SRC, /* runtime scales and zero points */
    QDQI_DNNL_SCALE_SRC1,
    QDQI_DNNL_SCALE_WEIGHTS,
    QDQI_DNNL_SCALE_DST,
    QDQI_DNNL_ZP_SRC,
    QDQI_DNNL_ZP_WEIGHTS,
    QDQI_DNNL_ZP_DST,
    QDQI_DNNL_NORM_SCALE, /* layernorm / groupnorm / batchnorm gamma, beta, mean, variance */
    QDQI_DNNL_NORM_SHIFT,
    QDQI_DNNL_NORM_MEAN,
    QDQI_DNNL_NORM_VARIANCE,
    QDQI_DNNL_POST_OP = 64, /* + i: the second operand of post-op i */
    QDQI_DNNL_SRC_N = 128   /* + i */
} qdqi_dnnl_arg;

/* Quantization attribute of one argument. mask: bit d set = one value per index of dim d. */
typedef struct qdqi_dnnl_quant {
    bool has_scale;
    int scale_mask;
    qdq_dtype scale_dtype; /* f32 unless the primitive takes another */
    bool has_zp;
    int zp_mask;
    qdq_dtype zp_dtype; /* s32 unless the primitive takes another */
    /* grouped (per_group) values: group size along the last two dims; 0,0 = not grouped */
    int64_t group[2];
} qdqi_dnnl_quant;

typedef enum qdqi_dnnl_alg {
    QDQI_DNNL_ELT_RELU, /* alpha: slope below zero */
    QDQI_DNNL_ELT_TANH,
    QDQI_DNNL_ELT_ELU,
    QDQI_DNNL_ELT_SQUARE,
    QDQI_DNNL_ELT_ABS,
    QDQI_DNNL_ELT_SQRT,
    QDQI_DNNL_ELT_LINEAR, /* alpha * x + beta */
    QDQI_DNNL_ELT_SOFT_RELU,
    QDQI_DNNL_ELT_LOGISTIC,
    QDQI_DNNL_ELT_EXP,
    QDQI_DNNL_ELT_LOG,
    QDQI_DNNL_ELT_CLIP, /* clip_v2(alpha, beta) */
    QDQI_DNNL_ELT_POW,  /* alpha * x^beta */
    QDQI_DNNL_ELT_GELU_ERF,
    QDQI_DNNL_ELT_GELU_TANH,
    QDQI_DNNL_ELT_ROUND,
    QDQI_DNNL_ELT_MISH,
    QDQI_DNNL_ELT_HARDSWISH,   /* x * clip(alpha x + beta, 0, 1) */
    QDQI_DNNL_ELT_HARDSIGMOID, /* clip(alpha x + beta, 0, 1) */
    QDQI_DNNL_ELT_SWISH,       /* x * sigmoid(alpha x) */
    QDQI_DNNL_BIN_ADD,
    QDQI_DNNL_BIN_SUB,
    QDQI_DNNL_BIN_MUL,
    QDQI_DNNL_BIN_DIV,
    QDQI_DNNL_BIN_MAX,
    QDQI_DNNL_BIN_MIN,
    QDQI_DNNL_BIN_GE,
    QDQI_DNNL_BIN_PRELU, /* post-op only: slope tensor */
    QDQI_DNNL_SUM,       /* post-op only: alpha = scale, zp; reads dst */
    QDQI_DNNL_POOL_MAX,
    QDQI_DNNL_POOL_AVG_INCLUDE_PAD,
    QDQI_DNNL_POOL_AVG_EXCLUDE_PAD,
    QDQI_DNNL_RED_SUM,
    QDQI_DNNL_RED_MEAN,
    QDQI_DNNL_RED_MAX,
    QDQI_DNNL_RED_MIN,
    QDQI_DNNL_RED_MUL,
    QDQI_DNNL_RED_L1, /* sum |x| (norm_lp_power_p_sum, p 1) */
    QDQI_DNNL_RED_L2, /* sqrt(sum x^2) (norm_lp_sum, p 2) */
    QDQI_DNNL_RESIZE_NEAREST,
    QDQI_DNNL_RESIZE_LINEAR,
    QDQI_DNNL_SOFTMAX,
    QDQI_DNNL_LOGSOFTMAX
} qdqi_dnnl_alg;

typedef struct qdqi_dnnl_post {
    qdqi_dnnl_alg alg; /* an ELT_, a BIN_ or SUM */
    float alpha, beta;
    int32_t zp;           /* SUM */
    qdq_dtype sum_dtype;  /* SUM; UNDEF = dst's */
    qdqi_dnnl_md operand; /* BIN_: broadcast by dims of 1; rank of dst */
} qdqi_dnnl_post;

#define QDQI_DNNL_MAX_POSTS 32

typedef struct qdqi_dnnl_attr {
    qdqi_dnnl_quant src, src1, weights, dst;
    uint32_t n_posts;
    qdqi_dnnl_post posts[QDQI_DNNL_MAX_POSTS];
} qdqi_dnnl_attr;

/* Of oneDNN, or of our own kernels (native/native.h): what is asked below works for both, in a build without oneDNN too. */
typedef struct qdqi_dnnl_prim qdqi_dnnl_prim;

/* ---- a request: what is asked for, whoever answers ---------------------------------------------------------------- */

typedef struct qdqi_dnnl_conv {
    bool transposed; /* deconvolution */
    int32_t n_spatial;
    /* weights md: [G,] O, I, spatial… (rank n_spatial + 2, + 1 when grouped); dilation 0 = dense */
    int64_t strides[QDQ_MAX_NDIMS], dilations[QDQ_MAX_NDIMS], pads_begin[QDQ_MAX_NDIMS], pads_end[QDQ_MAX_NDIMS];
} qdqi_dnnl_conv;

typedef struct qdqi_dnnl_pool {
    qdqi_dnnl_alg alg;
    int32_t n_spatial;
    /* dilation 1 = dense, as in the graph's op */
    int64_t kernel[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS], dilations[QDQ_MAX_NDIMS], pads_begin[QDQ_MAX_NDIMS],
        pads_end[QDQ_MAX_NDIMS];
} qdqi_dnnl_pool;

/* The primitives, and what each reads of a request besides src, dst and attr. */
typedef enum qdqi_make_kind {
    QDQI_MAKE_MATMUL,      /* second: weights; bias */
    QDQI_MAKE_CONVOLUTION, /* conv; second: weights; bias */
    QDQI_MAKE_POOLING,     /* pool */
    QDQI_MAKE_ELTWISE,     /* alg, alpha, beta */
    QDQI_MAKE_BINARY,      /* alg; second: broadcasts to src by dims of 1, of its rank */
    QDQI_MAKE_SOFTMAX,     /* alg: SOFTMAX or LOGSOFTMAX; axis */
    QDQI_MAKE_LAYERNORM,   /* over the last dim; alpha: epsilon; flag: gamma and beta, f32, both or none */
    QDQI_MAKE_GROUPNORM,   /* groups; channels are dim 1; alpha and flag as above; the statistics are computed */
    QDQI_MAKE_BATCHNORM, /* inference: args NORM_SCALE, _SHIFT, _MEAN, _VARIANCE (f32); alpha: epsilon; flag: then ReLU */
    QDQI_MAKE_REDUCTION,  /* alg; reduced dims have size 1 in dst */
    QDQI_MAKE_RESAMPLING, /* alg; src has NCX dims; half_pixel coordinates, nearest takes ties away from zero */
    QDQI_MAKE_CONCAT,     /* axis; n: src is an array of so many; no attr */
    QDQI_MAKE_REORDER, /* dst = convert(src): layout, dtype, quantization; real value = (q - zp) * scale on both sides */
} qdqi_make_kind;

/* Any md may be `any` where the primitive supports it. */
typedef struct qdqi_request {
    qdqi_make_kind kind;
    qdqi_dnnl_alg alg;
    float alpha, beta;
    int32_t axis;
    int64_t groups;
    bool flag;
    uint32_t n;
    const qdqi_dnnl_conv *conv;
    const qdqi_dnnl_pool *pool;
    const qdqi_dnnl_md *src, *second, *bias, *dst; /* bias: NULL or of rank 0 = none */
    const qdqi_dnnl_attr *attr;                    /* NULL: nothing */
} qdqi_request;

/* Make the primitive of a request. */
qdq_status qdqi_dnnl_create(const qdqi_request *request, qdqi_dnnl_prim **out, qdq_error *err);

/* A reorder from (or to) a strided tensor to the layout that `prim` chose for `arg`. `to_prim` false: from it. */
qdq_status qdqi_dnnl_reorder_for(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided,
                                 bool to_prim, qdqi_dnnl_prim **out, qdq_error *err);

void qdqi_dnnl_prim_destroy(qdqi_dnnl_prim *prim); /* NULL is legal */
/* "matmul brgemm:avx512_core_vnni"; borrowed. */
const char *qdqi_dnnl_prim_impl(const qdqi_dnnl_prim *prim);
/* True when oneDNN only has its plain reference loops for it ("ref:any"): correct, and slow. */
bool qdqi_dnnl_prim_is_ref(const qdqi_dnnl_prim *prim);
/* True when our own kernels answered. */
bool qdqi_dnnl_prim_is_native(const qdqi_dnnl_prim *prim);
/* Add " (remark)" to the note of its step. */
void qdqi_dnnl_prim_remark(qdqi_dnnl_prim *prim, const char *remark);

/* Arguments of the primitive, in the order that its step takes buffers. */
uint32_t qdqi_dnnl_prim_n_args(const qdqi_dnnl_prim *prim);
qdqi_dnnl_arg qdqi_dnnl_prim_arg(const qdqi_dnnl_prim *prim, uint32_t i);
/* Bytes of an argument's buffer in the layout chosen (SCRATCH too; 0 when it needs none, and then it is no argument). */
size_t qdqi_dnnl_prim_arg_bytes(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg);
/* True and strides when the chosen layout is plain strided; false when it is private (blocked, compensated). */
bool qdqi_dnnl_prim_arg_strides(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, int64_t *strides_out);
/* True when the argument's chosen layout equals the strided tensor: no reorder needed. */
bool qdqi_dnnl_prim_arg_is(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *strided);
/* Bytes that identify the chosen layout of an argument (a cache key); borrowed. */
const void *qdqi_dnnl_prim_arg_key(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, size_t *bytes_out);

/* Pack a constant now: reorder strided `src_data` into the layout of `arg`; `dst` has prim_arg_bytes bytes. */
qdq_status qdqi_dnnl_pack(const qdqi_dnnl_prim *prim, qdqi_dnnl_arg arg, const qdqi_dnnl_md *src, const void *src_data,
                          void *dst, qdq_error *err);

/* Append to a plan: bufs[i] belongs to qdqi_dnnl_prim_arg(prim, i). The plan owns `prim` from here on, on failure too. */
qdq_status qdqi_dnnl_step(qdqi_plan *plan, qdqi_dnnl_prim *prim, const qdqi_buf *bufs, uint32_t n_bufs, uint32_t part,
                          qdq_error *err);

#ifdef __cplusplus
}
#endif
#endif
