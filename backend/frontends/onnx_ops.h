/* Converters of the table in onnx_ops.c that are more than a change of names. Each may read its row's `kind` and `arg`. */
#ifndef QDQI_ONNX_OPS_H
#define QDQI_ONNX_OPS_H

#include "onnx_reader.h"

/* Fail as out of memory when a name could not be made. */
#define QDQI_ONNX_NEED(n, name)                                                                                        \
    do {                                                                                                               \
        if ((name) == NULL) return QDQI_NO_MEMORY((n)->err);                                                           \
    } while (0)

/* Row argument of qdqi_onnx_simple: output 0 has the rank, or the rank and data type, of input 0. */
enum { QDQI_ONNX_ANY = 0, QDQI_ONNX_SAME_RANK = 1, QDQI_ONNX_SAME = 2 };

/* onnx_conv_nn.c: convolution, pooling, normalization, softmax */
qdq_status qdqi_onnx_conv(qdqi_onnx_node *n);
qdq_status qdqi_onnx_conv_transpose(qdqi_onnx_node *n);
qdq_status qdqi_onnx_conv_integer(qdqi_onnx_node *n);
qdq_status qdqi_onnx_max_pool(qdqi_onnx_node *n);
qdq_status qdqi_onnx_average_pool(qdqi_onnx_node *n);
qdq_status qdqi_onnx_batch_norm(qdqi_onnx_node *n);
qdq_status qdqi_onnx_layer_norm(qdqi_onnx_node *n);
qdq_status qdqi_onnx_group_norm(qdqi_onnx_node *n);
qdq_status qdqi_onnx_softmax(qdqi_onnx_node *n);
qdq_status qdqi_onnx_resize(qdqi_onnx_node *n);
/* The attributes of a convolution or pool on `e`; `spatial` dims. For converters of quantized forms too. */
qdq_status qdqi_onnx_put_window(qdqi_onnx_emit *e, bool is_pool, bool has_dilations, int32_t spatial);
/* Spatial dims of a node: from kernel_shape, the weights (input w), or the source (input 0). */
qdq_status qdqi_onnx_spatial_of(qdqi_onnx_node *n, size_t w, int32_t *spatial_out);

/* onnx_conv_math.c: arithmetic */
qdq_status qdqi_onnx_gemm(qdqi_onnx_node *n);
qdq_status qdqi_onnx_clip(qdqi_onnx_node *n);
qdq_status qdqi_onnx_pow(qdqi_onnx_node *n);
qdq_status qdqi_onnx_nary(qdqi_onnx_node *n); /* Min, Max: a chain of the row's binary kind */
qdq_status qdqi_onnx_sum(qdqi_onnx_node *n);  /* row arg 1: divided by the number of inputs (Mean) */
qdq_status qdqi_onnx_reduce(qdqi_onnx_node *n);
qdq_status qdqi_onnx_gelu(qdqi_onnx_node *n);
qdq_status qdqi_onnx_fast_gelu(qdqi_onnx_node *n);
qdq_status qdqi_onnx_prelu(qdqi_onnx_node *n);

/* onnx_conv_shape.c: constants, casts, data movement */
qdq_status qdqi_onnx_constant(qdqi_onnx_node *n);
qdq_status qdqi_onnx_constant_of_shape(qdqi_onnx_node *n);
qdq_status qdqi_onnx_identity(qdqi_onnx_node *n);
qdq_status qdqi_onnx_cast(qdqi_onnx_node *n);
qdq_status qdqi_onnx_reshape(qdqi_onnx_node *n);
qdq_status qdqi_onnx_flatten(qdqi_onnx_node *n);
qdq_status qdqi_onnx_transpose(qdqi_onnx_node *n);
qdq_status qdqi_onnx_pad_attrs(qdqi_onnx_node *n); /* opset 10 */
qdq_status qdqi_onnx_multi(qdqi_onnx_node *n);     /* as simple, with all outputs */

/* onnx_conv_quant.c: quantization */
qdq_status qdqi_onnx_quantize(qdqi_onnx_node *n);
qdq_status qdqi_onnx_dequantize(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_conv(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_matmul(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_binary(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_unary(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_global_pool(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_average_pool(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_softmax(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qlinear_concat(qdqi_onnx_node *n);
qdq_status qdqi_onnx_qgemm(qdqi_onnx_node *n);

/* Emit softmax over `axis` of tensor `in`; before opset 13 the dims from axis on are one. (onnx_conv_nn.c) */
qdq_status qdqi_onnx_emit_softmax(qdqi_onnx_node *n, const char *kind, const char *in, int32_t rank, const char *out,
                                  int64_t axis, bool is_flattening);

#endif
