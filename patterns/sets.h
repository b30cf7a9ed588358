/* Sets of op kinds that pattern entries name with ANY(). */
#ifndef QDQI_SETS_H
#define QDQI_SETS_H

#include "patterns/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The list of sets: name, meaning. */
#define QDQI_SET_MAP(X)                                                                                                \
    X(dq, "every Dequantize: static, dynamic, ONNX, TensorFlow")                                                       \
    X(q, "every Quantize of one output: static, dynamic, ONNX")                                                        \
    X(matmul, "MatMul, Gemm")                                                                                          \
    X(conv, "Convolution, ConvTranspose")                                                                              \
    X(pool, "AvgPool, MaxPool, GlobalAveragePool")                                                                     \
    X(norm, "softmax, normalisation and reduction ops")                                                                \
    X(move, "ops that move or repeat elements without changing them, one source")                                      \
    X(relayout, "reshape- and transpose-like ops")                                                                     \
    X(cast, "TypeCast, Cast")                                                                                          \
    X(view, "what can stand between a Dequantize and its reader: reshape- and transpose-like ops, casts")              \
    X(pointwise, "elementwise unary and binary, BiasAdd, PReLU")                                                       \
    X(chain, "the same and casts")                                                                                     \
    X(post, "chain ops and BatchNormInference")                                                                        \
    X(resize, "Interpolate, Resize")                                                                                   \
    X(select, "Select, Where")                                                                                         \
    X(late, "view ops and MaxPool")                                                                                    \
    X(pair, "a Quantize or a Dequantize between two ops that compute")                                                 \
    X(square, "Square, Pow, Multiply: a value times itself")                                                           \
    X(root, "Sqrt, Pow")                                                                                               \
    X(inverse, "Reciprocal, Divide")                                                                                   \
    X(scaling, "Multiply, Divide")                                                                                     \
    X(bound, "casts, Clamp")                                                                                           \
    X(affine, "Multiply, Add")                                                                                         \
    X(score, "what stands between the product and the softmax of an attention: chain and view ops, masks")

#define QDQI_SET_DECL(set, text) extern const qdqi_set qdqi_set_##set;
QDQI_SET_MAP(QDQI_SET_DECL)
#undef QDQI_SET_DECL

#ifdef __cplusplus
}
#endif
#endif
