/* What becomes of a request (onednn/onednn.h): our own kernels' answer, and the shape class by which an answer is chosen. Private
 * to choice.c and to the program that measures (graph_tests/bench/choose). */
#ifndef QDQI_REQUEST_H
#define QDQI_REQUEST_H

#include "onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As qdqi_dnnl_create does, by native/native.h. */
qdq_status qdqi_request_native(const qdqi_request *r, qdqi_dnnl_prim **out, qdq_error *err);

/* One row per class: QDQI_CLASS(name, what falls into it). */
#define QDQI_CLASS_MAP(X)                                                                                              \
    X(other, "what no other class takes")                                                                              \
    X(matmul_int8_tiny, "u8 or s8 both, at most 2^15 multiplications")                                                 \
    X(matmul_int8_gemv, "u8 or s8 both, at most 8 rows")                                                               \
    X(matmul_int8_small, "u8 or s8 both, at most 2^23 multiplications")                                                \
    X(matmul_int8_large, "u8 or s8 both")                                                                              \
    X(matmul_int8_runtime, "u8 or s8 both, weights computed at run time")                                              \
    X(matmul_float_tiny, "f32 both, at most 2^15 multiplications")                                                     \
    X(matmul_float_gemv, "f32 both, at most 8 rows")                                                                   \
    X(matmul_float_small, "f32 both, at most 2^23 multiplications")                                                    \
    X(matmul_float_large, "f32 both")                                                                                  \
    X(matmul_float_runtime, "f32 both, weights computed at run time")                                                  \
    X(conv_u8_depthwise, "from u8, one channel per group in and out")                                                  \
    X(conv_s8_depthwise, "from s8, one channel per group in and out")                                                  \
    X(conv_u8_1x1, "from u8, one group, windows of one element")                                                       \
    X(conv_s8_1x1, "from s8, one group, windows of one element")                                                       \
    X(conv_int8_first, "u8 or s8 both, one group, at most 4 input channels")                                           \
    X(conv_u8_kxk, "from u8, one group")                                                                               \
    X(conv_s8_kxk, "from s8, one group")                                                                               \
    X(conv_int8_small, "u8 or s8 both, not depthwise, at most 2^20 multiplications")                                   \
    X(conv_float_depthwise, "f32 both, one channel per group in and out")                                              \
    X(conv_float_1x1, "f32 both, one group, windows of one element")                                                   \
    X(conv_float_first, "f32 both, one group, at most 4 input channels")                                               \
    X(conv_float_kxk, "f32 both, one group")                                                                           \
    X(conv_float_small, "f32 both, not depthwise, at most 2^20 multiplications")                                       \
    X(pool_int8, "from u8 or s8, of two spatial axes")                                                                 \
    X(pool_float, "from f32, of two spatial axes")                                                                     \
    X(eltwise_simple, "f32, arithmetic, at most 2^14 elements")                                                        \
    X(eltwise_simple_large, "f32, arithmetic")                                                                         \
    X(eltwise_function, "f32, exponential and its kin, at most 2^14 elements")                                         \
    X(eltwise_function_large, "f32, exponential and its kin")                                                          \
    X(binary, "f32, at most 2^14 elements")                                                                            \
    X(binary_large, "f32")                                                                                             \
    X(softmax, "f32, at most 2^14 elements")                                                                           \
    X(softmax_large, "f32")                                                                                            \
    X(layernorm, "from f32, at most 2^14 elements")                                                                    \
    X(layernorm_large, "from f32")                                                                                     \
    X(groupnorm, "from f32")                                                                                           \
    X(batchnorm, "f32")                                                                                                \
    X(reduction, "f32, along the last dims")                                                                           \
    X(reduction_outer, "f32, along other dims")                                                                        \
    X(resampling, "f32, linear")                                                                                       \
    X(resampling_nearest, "f32, nearest")                                                                              \
    X(reorder_types, "between f32, bf16 and f16, the same strides")

typedef enum qdqi_class {
#define QDQI_CLASS(name, text) QDQI_CLASS_##name,
    QDQI_CLASS_MAP(QDQI_CLASS)
#undef QDQI_CLASS
        QDQI_N_CLASSES
} qdqi_class;

qdqi_class qdqi_request_class(const qdqi_request *r);
const char *qdqi_class_name(qdqi_class c);

#ifdef __cplusplus
}
#endif
#endif
