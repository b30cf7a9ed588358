#include "graph_bench_dnnl.h"

#include "dnnl.h"

#include <string.h>

qdq_status gb_check(dnnl_status_t status, const char *what, qdq_error *err) {
    static const char *const names[] = {"success",          "out of memory", "invalid arguments", "unimplemented",
                                        "last impl",        "runtime error", "not required",      "invalid graph",
                                        "invalid graph op", "invalid shape", "invalid data type"};
    if (status == dnnl_success) return QDQ_OK;
    const size_t i = (size_t)status;
    return qdqi_fail(err, QDQ_E_UNSUPPORTED, "%s: %s", i < sizeof names / sizeof names[0] ? names[i] : "?", what);
}

/* NAME in graph files, member of dnnl_graph_op_kind_t. */
#define DNNL_KINDS(X)                                                                                                  \
    X(Abs, abs)                                                                                                        \
    X(Add, add)                                                                                                        \
    X(AvgPool, avg_pool)                                                                                               \
    X(BatchNormInference, batch_norm_inference)                                                                        \
    X(BiasAdd, bias_add)                                                                                               \
    X(Clamp, clamp)                                                                                                    \
    X(Concat, concat)                                                                                                  \
    X(ConvTranspose, conv_transpose)                                                                                   \
    X(Convolution, convolution)                                                                                        \
    X(Dequantize, dequantize)                                                                                          \
    X(Divide, divide)                                                                                                  \
    X(DynamicDequantize, dynamic_dequantize)                                                                           \
    X(DynamicQuantize, dynamic_quantize)                                                                               \
    X(Elu, elu)                                                                                                        \
    X(End, end)                                                                                                        \
    X(Exp, exp)                                                                                                        \
    X(GELU, gelu)                                                                                                      \
    X(GenIndex, gen_index)                                                                                             \
    X(GreaterEqual, greater_equal)                                                                                     \
    X(GroupNorm, group_norm)                                                                                           \
    X(HardSigmoid, hard_sigmoid)                                                                                       \
    X(HardSwish, hard_swish)                                                                                           \
    X(Interpolate, interpolate)                                                                                        \
    X(LayerNorm, layer_norm)                                                                                           \
    X(LeakyReLU, leaky_relu)                                                                                           \
    X(Log, log)                                                                                                        \
    X(LogSoftmax, log_softmax)                                                                                         \
    X(MatMul, matmul)                                                                                                  \
    X(MaxPool, max_pool)                                                                                               \
    X(Maximum, maximum)                                                                                                \
    X(Minimum, minimum)                                                                                                \
    X(Mish, mish)                                                                                                      \
    X(Multiply, multiply)                                                                                              \
    X(PReLU, prelu)                                                                                                    \
    X(Pow, pow)                                                                                                        \
    X(Quantize, quantize)                                                                                              \
    X(ReLU, relu)                                                                                                      \
    X(Reciprocal, reciprocal)                                                                                          \
    X(ReduceL1, reduce_l1)                                                                                             \
    X(ReduceL2, reduce_l2)                                                                                             \
    X(ReduceMax, reduce_max)                                                                                           \
    X(ReduceMean, reduce_mean)                                                                                         \
    X(ReduceMin, reduce_min)                                                                                           \
    X(ReduceProd, reduce_prod)                                                                                         \
    X(ReduceSum, reduce_sum)                                                                                           \
    X(Reorder, reorder)                                                                                                \
    X(Round, round)                                                                                                    \
    X(Select, select)                                                                                                  \
    X(Sigmoid, sigmoid)                                                                                                \
    X(SoftMax, softmax)                                                                                                \
    X(SoftPlus, softplus)                                                                                              \
    X(Sqrt, sqrt)                                                                                                      \
    X(Square, square)                                                                                                  \
    X(SquaredDifference, squared_difference)                                                                           \
    X(StaticReshape, static_reshape)                                                                                   \
    X(StaticTranspose, static_transpose)                                                                               \
    X(Subtract, subtract)                                                                                              \
    X(Tanh, tanh)                                                                                                      \
    X(TypeCast, type_cast)

/* Attributes have the same name on both sides. */
#define DNNL_ATTRS(X)                                                                                                  \
    X(alpha)                                                                                                           \
    X(beta)                                                                                                            \
    X(epsilon)                                                                                                         \
    X(max)                                                                                                             \
    X(min)                                                                                                             \
    X(momentum)                                                                                                        \
    X(scales)                                                                                                          \
    X(axis)                                                                                                            \
    X(begin_norm_axis)                                                                                                 \
    X(groups)                                                                                                          \
    X(axes)                                                                                                            \
    X(dilations)                                                                                                       \
    X(dst_shape)                                                                                                       \
    X(kernel)                                                                                                          \
    X(order)                                                                                                           \
    X(output_padding)                                                                                                  \
    X(pads_begin)                                                                                                      \
    X(pads_end)                                                                                                        \
    X(shape)                                                                                                           \
    X(sizes)                                                                                                           \
    X(src_shape)                                                                                                       \
    X(strides)                                                                                                         \
    X(weights_shape)                                                                                                   \
    X(zps)                                                                                                             \
    X(group_shape)                                                                                                     \
    X(exclude_pad)                                                                                                     \
    X(keep_dims)                                                                                                       \
    X(keep_stats)                                                                                                      \
    X(per_channel_broadcast)                                                                                           \
    X(special_zero)                                                                                                    \
    X(transpose_a)                                                                                                     \
    X(transpose_b)                                                                                                     \
    X(use_affine)                                                                                                      \
    X(use_dst)                                                                                                         \
    X(auto_broadcast)                                                                                                  \
    X(auto_pad)                                                                                                        \
    X(coordinate_transformation_mode)                                                                                  \
    X(data_format)                                                                                                     \
    X(mode)                                                                                                            \
    X(qtype)                                                                                                           \
    X(rounding_type)                                                                                                   \
    X(weights_format)

static bool find_kind(const char *name, dnnl_graph_op_kind_t *kind_out) {
    static const struct {
        const char *name;
        dnnl_graph_op_kind_t kind;
    } kinds[] = {
#define DNNL_KIND_ROW(text, id) {#text, dnnl_graph_op_##id},
        DNNL_KINDS(DNNL_KIND_ROW)
#undef DNNL_KIND_ROW
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        *kind_out = kinds[i].kind;
        return true;
    }
    return false;
}

static dnnl_graph_op_attr_t find_attr(const char *name) {
    static const struct {
        const char *name;
        dnnl_graph_op_attr_t attr;
    } attrs[] = {
#define DNNL_ATTR_ROW(id) {#id, dnnl_graph_op_attr_##id},
        DNNL_ATTRS(DNNL_ATTR_ROW)
#undef DNNL_ATTR_ROW
    };
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        if (strcmp(attrs[i].name, name) == 0) return attrs[i].attr;
    return dnnl_graph_op_attr_undef;
}

static dnnl_status_t set_attr(const dnnl_calls *d, dnnl_graph_op_t op, const qdqi_json_attr *a) {
    const dnnl_graph_op_attr_t id = find_attr(a->name);
    const uint8_t boolean = a->type == 'b' && a->v.boolean;
    if (id == dnnl_graph_op_attr_undef) return dnnl_invalid_graph_op;
    switch (a->type) {
    case 'f': return d->op_set_attr_f32(op, id, &a->v.f32, 1);
    case 'F': return d->op_set_attr_f32(op, id, a->v.f32s, a->n);
    case 'i': return d->op_set_attr_s64(op, id, &a->v.s64, 1);
    case 'I': return d->op_set_attr_s64(op, id, a->v.s64s, a->n);
    case 'b': return d->op_set_attr_bool(op, id, &boolean, 1);
    case 's': return d->op_set_attr_str(op, id, a->v.str, strlen(a->v.str));
    default: return dnnl_invalid_graph_op;
    }
}

/* The numbers of types, properties and layouts are the same; types from 64 on are ours alone. */
static qdq_status logical(const dnnl_calls *d, const qdq_tensor_desc *desc, bool foreign,
                          dnnl_graph_logical_tensor_t *out, qdq_error *err) {
    if ((int)desc->dtype >= 64 && !foreign)
        return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: %s", qdq_dtype_name(desc->dtype));
    const dnnl_data_type_t dtype = (int)desc->dtype >= 64 ? dnnl_s32 : (dnnl_data_type_t)desc->dtype;
    const dnnl_graph_tensor_property_t property = (dnnl_graph_tensor_property_t)desc->property;
    if (desc->layout == QDQ_LAYOUT_STRIDED && desc->ndims > 0)
        return gb_check(
            d->logical_tensor_init_with_strides(out, desc->id, dtype, desc->ndims, desc->dims, desc->strides, property),
            "logical tensor", err);
    return gb_check(d->logical_tensor_init_with_dims(out, desc->id, dtype, desc->ndims, desc->dims,
                                                     dnnl_graph_layout_type_strided, property),
                    "logical tensor", err);
}

/* An op that is foreign to it is a wildcard: ports without meaning. */
static qdq_status fill_op(const dnnl_calls *d, dnnl_graph_op_t op, const qdqi_json_op *from, bool foreign,
                          qdq_error *err) {
    dnnl_graph_logical_tensor_t lt;
    for (size_t i = 0; i < from->n_attrs && !foreign; i++)
        QDQI_TRY(gb_check(set_attr(d, op, &from->attrs[i]), from->attrs[i].name, err));
    for (size_t i = 0; i < from->n_in; i++) {
        QDQI_TRY(logical(d, &from->in[i], foreign, &lt, err));
        QDQI_TRY(gb_check(d->op_add_input(op, &lt), "input", err));
    }
    for (size_t i = 0; i < from->n_out; i++) {
        QDQI_TRY(logical(d, &from->out[i], foreign, &lt, err));
        QDQI_TRY(gb_check(d->op_add_output(op, &lt), "output", err));
    }
    return QDQ_OK;
}

static bool has_strange_type(const qdqi_json_op *op) {
    for (size_t i = 0; i < op->n_in + op->n_out; i++)
        if ((int)(i < op->n_in ? op->in[i] : op->out[i - op->n_in]).dtype >= 64) return true;
    return false;
}

static qdq_status add_op(const dnnl_calls *d, dnnl_graph_graph_t graph, const qdqi_json_op *from, bool wildcards,
                         qdq_error *err) {
    dnnl_graph_op_kind_t kind = dnnl_graph_op_wildcard;
    dnnl_graph_op_t op;
    const bool foreign = (wildcards && has_strange_type(from)) || !find_kind(from->kind, &kind);
    if (foreign && !wildcards) return qdqi_fail(err, QDQ_E_UNSUPPORTED, "unimplemented: it has no op %s", from->kind);
    QDQI_TRY(gb_check(d->op_create(&op, from->id, kind, from->name != NULL ? from->name : ""), from->kind, err));
    qdq_status st = fill_op(d, op, from, foreign, err);
    if (st == QDQ_OK) st = gb_check(d->add_op(graph, op), from->kind, err);
    d->op_destroy(op);
    return st;
}

qdq_status gb_dnnl_graph(const dnnl_calls *d, const qdqi_json_case *json, bool wildcards, dnnl_graph_graph_t *graph_out,
                         qdq_error *err) {
    QDQI_TRY(gb_check(d->graph_create(graph_out, dnnl_cpu), "graph", err));
    for (size_t i = 0; i < json->n_ops; i++)
        QDQI_TRY(add_op(d, *graph_out, &json->ops[i], wildcards, err));
    QDQI_TRY(gb_check(d->graph_finalize(*graph_out), "finalize", err));
    return gb_check(d->graph_filter(*graph_out, dnnl_graph_partition_policy_fusion), "filter", err);
}
