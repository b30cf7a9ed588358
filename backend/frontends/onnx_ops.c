/* The table of ONNX ops: what is read, at which opsets, and what it becomes. */
#include "onnx_ops.h"

#include "base/number.h"

#include <stdlib.h>
#include <string.h>

#define AI "" /* ai.onnx */
#define MS "com.microsoft"
enum { LAST = 28, ANY = -1, RANKED = QDQI_ONNX_SAME_RANK, SAME = QDQI_ONNX_SAME };

/* clang-format off */
static const qdqi_onnx_row rows[] = {
    /* op type, domain, opsets since…until, inputs min max, outputs max, converter, libqdq kind, attributes, argument */

    /* quantization */
    {"QuantizeLinear",        AI, 10, LAST, 2, 3, 1, qdqi_onnx_quantize,   "QuantizeLinear",   NULL, 0},
    {"DequantizeLinear",      AI, 10, LAST, 2, 3, 1, qdqi_onnx_dequantize, "DequantizeLinear", NULL, 0},
    {"DynamicQuantizeLinear", AI, 11, LAST, 1, 1, 3, qdqi_onnx_multi,  "DynamicQuantizeLinear", NULL, 0},
    {"MatMulInteger",         AI, 10, LAST, 2, 4, 1, qdqi_onnx_simple, "MatMulInteger", NULL, 0},
    {"ConvInteger",           AI, 10, LAST, 2, 4, 1, qdqi_onnx_conv_integer, "ConvInteger", NULL, 0},
    {"QLinearConv",           AI, 10, LAST, 8, 9, 1, qdqi_onnx_qlinear_conv, "Convolution", NULL, 0},
    {"QLinearMatMul",         AI, 10, LAST, 8, 8, 1, qdqi_onnx_qlinear_matmul, "MatMul", NULL, 0},
    {"QuantizeLinear",        MS, 1, 1, 2, 3, 1, qdqi_onnx_quantize,   "QuantizeLinear",   NULL, 0},
    {"DequantizeLinear",      MS, 1, 1, 2, 3, 1, qdqi_onnx_dequantize, "DequantizeLinear", NULL, 0},
    {"QLinearAdd",            MS, 1, 1, 7, 8, 1, qdqi_onnx_qlinear_binary, "Add",      NULL, 0},
    {"QLinearMul",            MS, 1, 1, 7, 8, 1, qdqi_onnx_qlinear_binary, "Multiply", NULL, 0},
    {"QLinearSigmoid",        MS, 1, 1, 4, 5, 1, qdqi_onnx_qlinear_unary, "Sigmoid",   "", 0},
    {"QLinearLeakyRelu",      MS, 1, 1, 4, 5, 1, qdqi_onnx_qlinear_unary, "LeakyReLU", "alpha:f=0.01", 0},
    {"QLinearGlobalAveragePool", MS, 1, 1, 5, 5, 1, qdqi_onnx_qlinear_global_pool, "GlobalAveragePool", NULL, 0},
    {"QLinearAveragePool",    MS, 1, 1, 4, 5, 1, qdqi_onnx_qlinear_average_pool, "AvgPool", NULL, 0},
    {"QLinearSoftmax",        MS, 1, 1, 4, 5, 1, qdqi_onnx_qlinear_softmax, "SoftMax", NULL, 0},
    {"QLinearConcat",         MS, 1, 1, 5, ANY, 1, qdqi_onnx_qlinear_concat, "Concat", NULL, 0},
    {"QGemm",                 MS, 1, 1, 6, 9, 1, qdqi_onnx_qgemm, "MatMul", NULL, 0},

    /* matrix product, convolution, pooling */
    {"MatMul",            AI, 1, LAST, 2, 2, 1, qdqi_onnx_simple, "MatMul", NULL, 0},
    {"Gemm",              AI, 7, LAST, 2, 3, 1, qdqi_onnx_gemm, "Gemm", NULL, 0},
    {"Conv",              AI, 1, LAST, 2, 3, 1, qdqi_onnx_conv, "Convolution", NULL, 0},
    {"ConvTranspose",     AI, 1, LAST, 2, 3, 1, qdqi_onnx_conv_transpose, "ConvTranspose", NULL, 0},
    {"MaxPool",           AI, 1, LAST, 1, 1, 2, qdqi_onnx_max_pool, "MaxPool", NULL, 0},
    {"AveragePool",       AI, 1, LAST, 1, 1, 1, qdqi_onnx_average_pool, "AvgPool", NULL, 0},
    {"GlobalAveragePool", AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "GlobalAveragePool", NULL, RANKED},
    {"GlobalMaxPool",     AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "GlobalMaxPool", NULL, RANKED},

    /* elementwise, one input */
    {"Relu",        AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "ReLU", NULL, SAME},
    {"Sigmoid",     AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Sigmoid", NULL, SAME},
    {"Tanh",        AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Tanh", NULL, SAME},
    {"LeakyRelu",   AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "LeakyReLU", "alpha:f=0.01", SAME},
    {"Elu",         AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Elu", "alpha:f=1", SAME},
    {"Selu",        AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Selu",
        "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875", SAME},
    {"Celu",        AI, 12, LAST, 1, 1, 1, qdqi_onnx_simple, "Celu", "alpha:f=1", SAME},
    {"HardSigmoid", AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "HardSigmoid", "alpha:f=0.2 beta:f=0.5", SAME},
    {"HardSwish",   AI, 14, LAST, 1, 1, 1, qdqi_onnx_simple, "HardSwish", NULL, SAME},
    {"ThresholdedRelu", AI, 10, LAST, 1, 1, 1, qdqi_onnx_simple, "ThresholdedRelu", "alpha:f=1", SAME},
    {"Softplus",    AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "SoftPlus", "beta:f=1", SAME},
    {"Softsign",    AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "Softsign", NULL, SAME},
    {"Mish",        AI, 18, LAST, 1, 1, 1, qdqi_onnx_simple, "Mish", NULL, SAME},
    {"Gelu",        AI, 20, LAST, 1, 1, 1, qdqi_onnx_gelu, "GELU", NULL, 0},
    {"Gelu",        MS, 1, 1, 1, 1, 1, qdqi_onnx_gelu, "GELU", NULL, 0},
    {"FastGelu",    MS, 1, 1, 1, 2, 1, qdqi_onnx_fast_gelu, "GELU", NULL, 0},
    {"Erf",         AI, 9, LAST, 1, 1, 1, qdqi_onnx_simple, "Erf", NULL, SAME},
    {"Exp",         AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Exp", NULL, SAME},
    {"Log",         AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Log", NULL, SAME},
    {"Sqrt",        AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Sqrt", NULL, SAME},
    {"Abs",         AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Abs", NULL, SAME},
    {"Neg",         AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Neg", NULL, SAME},
    {"Floor",       AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Floor", NULL, SAME},
    {"Ceil",        AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Ceil", NULL, SAME},
    {"Round",       AI, 11, LAST, 1, 1, 1, qdqi_onnx_simple, "Round", NULL, SAME},
    {"Reciprocal",  AI, 6, LAST, 1, 1, 1, qdqi_onnx_simple, "Reciprocal", NULL, SAME},
    {"Sign",        AI, 9, LAST, 1, 1, 1, qdqi_onnx_simple, "Sign", NULL, SAME},
    {"Sin",         AI, 7, LAST, 1, 1, 1, qdqi_onnx_simple, "Sin", NULL, SAME},
    {"Cos",         AI, 7, LAST, 1, 1, 1, qdqi_onnx_simple, "Cos", NULL, SAME},
    {"Not",         AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "Not", NULL, SAME},
    {"Clip",        AI, 6, LAST, 1, 3, 1, qdqi_onnx_clip, "Clamp", NULL, 0},
    {"PRelu",       AI, 7, LAST, 2, 2, 1, qdqi_onnx_prelu, NULL, NULL, 0},

    /* elementwise, more inputs */
    {"Add",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Add", NULL, 0},
    {"Sub",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Subtract", NULL, 0},
    {"Mul",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Multiply", NULL, 0},
    {"Div",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Divide", NULL, 0},
    {"Pow",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_pow, "PowTensor", NULL, 0},
    {"Mod",            AI, 10, LAST, 2, 2, 1, qdqi_onnx_simple, "Mod", "fmod:b=0", 0},
    {"Sum",            AI, 8, LAST, 1, ANY, 1, qdqi_onnx_sum, "Sum", NULL, 0},
    {"Mean",           AI, 8, LAST, 1, ANY, 1, qdqi_onnx_sum, "Sum", NULL, 1},
    {"Min",            AI, 8, LAST, 1, ANY, 1, qdqi_onnx_nary, "Minimum", NULL, 0},
    {"Max",            AI, 8, LAST, 1, ANY, 1, qdqi_onnx_nary, "Maximum", NULL, 0},
    {"Equal",          AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Equal", NULL, 0},
    {"Less",           AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Less", NULL, 0},
    {"LessOrEqual",    AI, 12, LAST, 2, 2, 1, qdqi_onnx_simple, "LessOrEqual", NULL, 0},
    {"Greater",        AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Greater", NULL, 0},
    {"GreaterOrEqual", AI, 12, LAST, 2, 2, 1, qdqi_onnx_simple, "GreaterEqual", NULL, 0},
    {"And",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "And", NULL, 0},
    {"Or",             AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Or", NULL, 0},
    {"Xor",            AI, 7, LAST, 2, 2, 1, qdqi_onnx_simple, "Xor", NULL, 0},
    {"Where",          AI, 9, LAST, 3, 3, 1, qdqi_onnx_simple, "Where", NULL, 0},

    /* reductions, softmax, normalization */
    {"ReduceMean", AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceMean", NULL, 18}, /* arg: axes are an input since */
    {"ReduceSum",  AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceSum", NULL, 13},
    {"ReduceMax",  AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceMax", NULL, 18},
    {"ReduceMin",  AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceMin", NULL, 18},
    {"ReduceProd", AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceProd", NULL, 18},
    {"ReduceL1",   AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceL1", NULL, 18},
    {"ReduceL2",   AI, 1, LAST, 1, 2, 1, qdqi_onnx_reduce, "ReduceL2", NULL, 18},
    {"ArgMax",     AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "ArgMax", "axis:i=0 keepdims:b=1 select_last_index:b=0", 0},
    {"ArgMin",     AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "ArgMin", "axis:i=0 keepdims:b=1 select_last_index:b=0", 0},
    {"CumSum",     AI, 11, LAST, 2, 2, 1, qdqi_onnx_simple, "CumSum", "exclusive:b=0 reverse:b=0", SAME},
    {"TopK",       AI, 10, LAST, 2, 2, 2, qdqi_onnx_multi, "TopK", "axis:i=-1 largest:b=1 sorted:b=1", 0},
    {"Softmax",    AI, 1, LAST, 1, 1, 1, qdqi_onnx_softmax, "SoftMax", NULL, 0},
    {"LogSoftmax", AI, 1, LAST, 1, 1, 1, qdqi_onnx_softmax, "LogSoftmax", NULL, 0},
    {"BatchNormalization",    AI, 7, LAST, 5, 5, 5, qdqi_onnx_batch_norm, "BatchNormInference", NULL, 0},
    {"InstanceNormalization", AI, 6, LAST, 3, 3, 1, qdqi_onnx_simple, "InstanceNormalization", "epsilon:f=1e-5", SAME},
    {"LayerNormalization",    AI, 17, LAST, 2, 3, 3, qdqi_onnx_layer_norm, "LayerNorm", NULL, 0},
    {"GroupNormalization",    AI, 21, LAST, 3, 3, 1, qdqi_onnx_group_norm, "GroupNorm", NULL, 0},
    {"RMSNormalization",      AI, 23, LAST, 2, 2, 1, qdqi_onnx_simple, "RMSNorm",
        "axis>begin_norm_axis:i=-1 epsilon:f=1e-5", SAME},
    {"LRN",        AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "LRN", "alpha:f=0.0001 beta:f=0.75 bias:f=1 size:i", SAME},
    {"Resize",     AI, 10, LAST, 1, 4, 1, qdqi_onnx_resize, "Resize", NULL, 0},

    /* constants, casts, data movement, shape arithmetic */
    {"Constant",        AI, 1, LAST, 0, 0, 1, qdqi_onnx_constant, NULL, NULL, 0},
    {"ConstantOfShape", AI, 9, LAST, 1, 1, 1, qdqi_onnx_constant_of_shape, "ConstantOfShape", NULL, 0},
    {"Identity",        AI, 1, LAST, 1, 1, 1, qdqi_onnx_identity, "Identity", NULL, 0},
    {"Dropout",         AI, 7, LAST, 1, 3, 2, qdqi_onnx_identity, "Identity", NULL, 0},
    {"Cast",            AI, 6, LAST, 1, 1, 1, qdqi_onnx_cast, "Cast", NULL, 0},
    {"Shape",           AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "Shape", "start:i=0 end:i", 0},
    {"Reshape",         AI, 5, LAST, 2, 2, 1, qdqi_onnx_reshape, "Reshape", "allowzero:b=0", 0},
    {"Flatten",         AI, 1, LAST, 1, 1, 1, qdqi_onnx_flatten, "Flatten", "axis:i=1", 0},
    {"Transpose",       AI, 1, LAST, 1, 1, 1, qdqi_onnx_transpose, "StaticTranspose", NULL, 0},
    {"Squeeze",         AI, 1, LAST, 1, 2, 1, qdqi_onnx_simple, "Squeeze", "axes:I", 0},
    {"Unsqueeze",       AI, 1, LAST, 1, 2, 1, qdqi_onnx_simple, "Unsqueeze", "axes:I", 0},
    {"Concat",          AI, 4, LAST, 1, ANY, 1, qdqi_onnx_simple, "Concat", "axis:i", RANKED},
    {"Split",           AI, 2, LAST, 1, 2, ANY, qdqi_onnx_multi, "Split", "axis:i=0 split:I num_outputs:i", 0},
    {"Slice",           AI, 10, LAST, 3, 5, 1, qdqi_onnx_simple, "Slice", NULL, RANKED},
    {"Gather",          AI, 1, LAST, 2, 2, 1, qdqi_onnx_simple, "Gather", "axis:i=0", 0},
    {"GatherElements",  AI, 11, LAST, 2, 2, 1, qdqi_onnx_simple, "GatherElements", "axis:i=0", RANKED},
    {"Pad",             AI, 2, 10, 1, 1, 1, qdqi_onnx_pad_attrs, "Pad", "mode:s=constant", RANKED},
    {"Pad",             AI, 11, LAST, 2, 4, 1, qdqi_onnx_simple, "Pad", "mode:s=constant", RANKED},
    {"Expand",          AI, 8, LAST, 2, 2, 1, qdqi_onnx_simple, "Expand", NULL, 0},
    {"Tile",            AI, 6, LAST, 2, 2, 1, qdqi_onnx_simple, "Tile", NULL, RANKED},
    {"Range",           AI, 11, LAST, 3, 3, 1, qdqi_onnx_simple, "Range", NULL, 0},
    {"DepthToSpace",    AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "DepthToSpace", "blocksize:i mode:s=DCR", RANKED},
    {"SpaceToDepth",    AI, 1, LAST, 1, 1, 1, qdqi_onnx_simple, "SpaceToDepth", "blocksize:i", RANKED},
};
/* clang-format on */

const qdqi_onnx_row *qdqi_onnx_row_of(const char *domain, const char *op_type, int64_t opset) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op_type, op_type) == 0 && strcmp(rows[i].domain, domain) == 0 && opset >= rows[i].since &&
            opset <= rows[i].until)
            return &rows[i];
    return NULL;
}

/* One "onnx_name>our_name:type=default" of a row. */
static qdq_status put_attr(qdqi_onnx_emit *e, const char *spec, size_t length) {
    qdqi_onnx_node *n = e->n;
    char text[128];
    if (length >= sizeof text)
        return qdqi_fail(n->err, QDQ_E_INTERNAL, "row of %s: attribute too long", n->row->op_type);
    memcpy(text, spec, length);
    text[length] = '\0';
    char *type = strrchr(text, ':');
    if (type == NULL) return qdqi_fail(n->err, QDQ_E_INTERNAL, "row of %s: attribute without type", n->row->op_type);
    *type++ = '\0';
    const char *fallback = type[1] == '=' ? type + 2 : NULL;
    char *ours = strchr(text, '>');
    if (ours != NULL) *ours++ = '\0';
    if (ours == NULL) ours = text;
    if (qdqi_onnx_attr(n, text) == NULL && fallback == NULL) return QDQ_OK;
    int64_t i = 0, count = 0;
    const int64_t *ints = NULL;
    float f = 0.0f;
    const char *s = NULL;
    switch (*type) {
    case 'f':
        if (fallback != NULL && !qdqi_text_f32(fallback, strlen(fallback), &f))
            return qdqi_fail(n->err, QDQ_E_INTERNAL, "row of %s: `%s` is no number", n->row->op_type, fallback);
        QDQI_TRY(qdqi_onnx_attr_f(n, text, f, &f));
        qdqi_onnx_put_f32(e, ours, f);
        return e->st;
    case 'i':
        QDQI_TRY(qdqi_onnx_attr_i(n, text, fallback == NULL ? 0 : strtoll(fallback, NULL, 10), &i));
        qdqi_onnx_put_s64(e, ours, i);
        return e->st;
    case 'b':
        QDQI_TRY(qdqi_onnx_attr_i(n, text, fallback == NULL ? 0 : strtoll(fallback, NULL, 10), &i));
        qdqi_onnx_put_bool(e, ours, i != 0);
        return e->st;
    case 's':
        QDQI_TRY(qdqi_onnx_attr_s(n, text, fallback, &s));
        qdqi_onnx_put_str(e, ours, s);
        return e->st;
    case 'I':
        QDQI_TRY(qdqi_onnx_attr_ints(n, text, &ints, &count));
        qdqi_onnx_put_s64s(e, ours, ints, (size_t)count);
        return e->st;
    default: return qdqi_fail(n->err, QDQ_E_INTERNAL, "row of %s: attribute type %c", n->row->op_type, *type);
    }
}

qdq_status qdqi_onnx_put_row_attrs(qdqi_onnx_emit *e) {
    for (const char *spec = e->n->row->attrs; spec != NULL && *spec != '\0' && e->st == QDQ_OK;) {
        const size_t length = strcspn(spec, " ");
        const qdq_status st = put_attr(e, spec, length);
        if (st != QDQ_OK) return e->st = st;
        spec += length + (spec[length] == ' ');
    }
    return e->st;
}

static qdq_status emit_with_outputs(qdqi_onnx_node *n, size_t n_out) {
    if (n->row->arg != QDQI_ONNX_ANY && qdqi_onnx_has_out(n, 0))
        qdqi_onnx_know(n, qdqi_onnx_out(n, 0), qdqi_onnx_in_rank(n, 0),
                       n->row->arg == QDQI_ONNX_SAME ? qdqi_onnx_in_dtype(n, 0) : QDQ_DTYPE_UNDEF);
    qdqi_onnx_emit e = qdqi_onnx_begin(n, n->row->kind);
    (void)qdqi_onnx_put_row_attrs(&e);
    qdqi_onnx_put_ins(&e, 0, n->proto->n_input);
    for (size_t i = 0; i < n_out; i++) {
        const char *name = qdqi_onnx_out(n, i);
        /* an output that nobody reads still has its port */
        if (name[0] == '\0' && e.st == QDQ_OK) {
            name = qdqi_onnx_temp(n, "unused");
            if (name == NULL) e.st = QDQI_NO_MEMORY(n->err);
        }
        qdqi_onnx_put_out(&e, name);
    }
    return qdqi_onnx_end(&e);
}

qdq_status qdqi_onnx_simple(qdqi_onnx_node *n) {
    return emit_with_outputs(n, 1);
}

qdq_status qdqi_onnx_multi(qdqi_onnx_node *n) {
    const bool is_open = n->row->max_out < 0;
    return emit_with_outputs(n, is_open ? n->proto->n_output : (size_t)n->row->max_out);
}
