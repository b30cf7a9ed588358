/* The tables: every row is sound; what add_op says about arity, attributes and data types. */
#include "unit/ir_support.h"

#include "base/alloc.h"

#include <cmath>
#include <cstring>
#include <set>

using namespace ir;

namespace {

const auto F = QDQ_DTYPE_F32;

Op Conv(uint64_t id = 7) {
    Op op(id, "Convolution", "conv1");
    op.in(Tensor(1, F, {1, 3, 8, 8})).in(Tensor(2, F, {4, 3, 3, 3})).out(Unknown(3, F));
    op.s64s("strides", {1, 1}).s64s("pads_begin", {1, 1}).s64s("pads_end", {1, 1}).s64s("dilations", {1, 1});
    op.str("data_format", "NCX").str("weights_format", "OIX");
    return op;
}

TEST(IrSchema, EveryRowIsSound) {
    std::set<std::string> names;
    for (size_t i = 0; i < qdqi_schema_count(); i++) {
        const qdqi_schema *schema = qdqi_schema_at(i);
        ASSERT_NE(schema, nullptr);
        EXPECT_TRUE(names.insert(schema->name).second) << schema->name << " twice";
        EXPECT_EQ(qdqi_schema_find(schema->name), schema);
        EXPECT_EQ(qdqi_schema_of(schema->kind), schema);
        EXPECT_LE(schema->min_in, schema->max_in) << schema->name;
        EXPECT_LE(schema->min_out, schema->max_out) << schema->name;
        EXPECT_NE(schema->dtypes, nullptr);
        EXPECT_NE(schema->shape, nullptr);
        std::set<int> attrs;
        for (uint32_t k = 0; k < schema->n_attrs; k++) {
            const qdqi_attr_schema &row = schema->attrs[k];
            ASSERT_LT(row.name, QDQI_N_ATTR_NAMES) << schema->name;
            EXPECT_TRUE(attrs.insert(row.name).second) << schema->name << "." << qdqi_attr_text(row.name);
            EXPECT_FALSE(row.required && row.has_default) << schema->name << "." << qdqi_attr_text(row.name);
            EXPECT_EQ(qdqi_attr_from_text(qdqi_attr_text(row.name)), row.name);
            if (row.type == QDQI_ATTR_STR && row.has_default && row.choices != nullptr) {
                const std::string all = std::string("|") + row.choices + "|";
                EXPECT_HAS(all, std::string("|") + row.str + "|");
            }
        }
    }
    EXPECT_GE(names.size(), 100u);
    EXPECT_EQ(qdqi_schema_find("Convolutio"), nullptr);
    EXPECT_EQ(qdqi_schema_find(""), nullptr);
    EXPECT_EQ(qdqi_schema_of(QDQI_OP_NONE), nullptr);
    EXPECT_EQ(qdqi_attr_from_text("stride"), QDQI_N_ATTR_NAMES);
}

TEST(IrSchema, KnowsTheForwardOpsOfOneDnnGraph) {
    for (const char *name : {"Abs",
                             "Add",
                             "AvgPool",
                             "BatchNormInference",
                             "BiasAdd",
                             "Clamp",
                             "Concat",
                             "Convolution",
                             "ConvTranspose",
                             "Dequantize",
                             "Divide",
                             "DynamicDequantize",
                             "DynamicQuantize",
                             "Elu",
                             "End",
                             "Exp",
                             "GELU",
                             "HardSwish",
                             "Interpolate",
                             "LayerNorm",
                             "LeakyReLU",
                             "Log",
                             "LogSoftmax",
                             "MatMul",
                             "Maximum",
                             "MaxPool",
                             "Minimum",
                             "Mish",
                             "Multiply",
                             "PReLU",
                             "Quantize",
                             "Reciprocal",
                             "ReduceL1",
                             "ReduceL2",
                             "ReduceMax",
                             "ReduceMean",
                             "ReduceMin",
                             "ReduceProd",
                             "ReduceSum",
                             "ReLU",
                             "Reorder",
                             "Round",
                             "Sigmoid",
                             "SoftMax",
                             "SoftPlus",
                             "Sqrt",
                             "Square",
                             "SquaredDifference",
                             "StaticReshape",
                             "StaticTranspose",
                             "Subtract",
                             "Tanh",
                             "TypeCast",
                             "Wildcard",
                             "HardSigmoid",
                             "Select",
                             "Pow",
                             "GroupNorm",
                             "GenIndex",
                             "GreaterEqual",
                             "RMSNorm"}) {
        const qdqi_schema *schema = qdqi_schema_find(name);
        ASSERT_NE(schema, nullptr) << name;
        EXPECT_EQ(schema->origin, QDQI_ORIGIN_ONEDNN) << name;
    }
}

TEST(IrSchema, FillsDefaultsAndCopiesAttributes) {
    Graph graph;
    {
        Op op = Conv();
        ASSERT_EQ(graph.add(op), QDQ_OK) << graph.text();
    }
    const qdqi_op &op = graph.op(7);
    EXPECT_EQ(qdqi_op_s64(&op, QDQI_A_GROUPS), 1);
    EXPECT_TRUE(qdqi_op_str_is(&op, QDQI_A_AUTO_PAD, "None"));
    uint32_t n = 0;
    EXPECT_EQ(qdqi_op_s64s(&op, QDQI_A_STRIDES, &n)[1], 1);
    EXPECT_EQ(n, 2u);
    EXPECT_EQ(qdqi_op_attr_or_null(&op, QDQI_A_AXIS), nullptr);
    EXPECT_STREQ(op.name, "conv1");
}

TEST(IrSchema, RejectsUnknownKind) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(Op(4, "Conv2000", "x")), QDQ_E_UNKNOWN_OP, "op 4 \"x\": kind \"Conv2000\"");
}

TEST(IrSchema, RejectsWrongArity) {
    Graph graph;
    Op few(1, "MatMul", "m");
    few.in(Tensor(1, F, {2, 2})).out(Unknown(2));
    EXPECT_FAILS(graph, graph.add(few), QDQ_E_BAD_ARITY, "op 1 \"m\" (MatMul): found 1 inputs, expected 2 to 3");
    Op no_out(2, "ReLU");
    no_out.in(Tensor(1, F, {2}));
    EXPECT_FAILS(graph, graph.add(no_out), QDQ_E_BAD_ARITY, "found 0 outputs, expected 1");
    Op hole(3, "Add");
    hole.skip().in(Tensor(1, F, {2})).out(Unknown(2));
    EXPECT_FAILS(graph, graph.add(hole), QDQ_E_BAD_ARITY, "input 0 is left out");
    Op none(5, "Concat");
    none.out(Unknown(2)).s64("axis", 0);
    EXPECT_FAILS(graph, graph.add(none), QDQ_E_BAD_ARITY, "found 0 inputs, expected 1 or more");
}

TEST(IrSchema, DropsOptionalInputsLeftOutAtTheEnd) {
    Graph graph;
    Op op(1, "MatMul");
    op.in(Tensor(1, F, {2, 3})).in(Tensor(2, F, {3, 4})).skip().out(Unknown(3));
    ASSERT_EQ(graph.add(op), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.op(1).n_in, 2u);
    Op hole(2, "Slice");
    hole.in(Tensor(1, F, {2, 3})).in(Tensor(5, QDQ_DTYPE_S64, {2})).in(Tensor(6, QDQ_DTYPE_S64, {2}));
    hole.skip().in(Tensor(7, QDQ_DTYPE_S64, {2})).out(Unknown(8));
    ASSERT_EQ(graph.add(hole), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.op(2).n_in, 5u);
    EXPECT_EQ(graph.op(2).in[3], QDQI_NONE);
}

TEST(IrSchema, RejectsBadAttributes) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(Conv().s64s("strides", {1, 1, 1})), QDQ_E_BAD_ATTR,
                 "op 7 \"conv1\" (Convolution): attribute \"strides\": found 3 values, expected 2 (spatial dims of src "
                 "1x3x8x8)");
    EXPECT_FAILS(graph, graph.add(Conv().s64s("strides", {0, 1})), QDQ_E_BAD_ATTR, "found 0, expected 1 or more");
    EXPECT_FAILS(graph, graph.add(Conv().s64s("pads_end", {0, -1})), QDQ_E_BAD_ATTR, "found -1, expected 0 or more");
    EXPECT_FAILS(graph, graph.add(Conv().s64("groups", 0)), QDQ_E_BAD_ATTR, "\"groups\": found 0, expected 1 or more");
    EXPECT_FAILS(graph, graph.add(Conv().s64("strides", 1)), QDQ_E_BAD_ATTR, "found type s64, expected s64[]");
    EXPECT_FAILS(graph, graph.add(Conv().f32("groups", 1)), QDQ_E_BAD_ATTR, "found type f32, expected s64");
    EXPECT_FAILS(graph, graph.add(Conv().str("data_format", "NHWC")), QDQ_E_BAD_ATTR,
                 "found \"NHWC\", expected NXC|NCX");
    EXPECT_FAILS(graph, graph.add(Conv().str("auto_pad", "")), QDQ_E_BAD_ATTR, "found \"\"");
    EXPECT_FAILS(graph, graph.add(Conv().s64("stride", 1)), QDQ_E_BAD_ATTR,
                 "attribute \"stride\": the kind has no such");
    Op bare(1, "Elu", "e");
    bare.in(Tensor(1, F, {2})).out(Unknown(2));
    EXPECT_FAILS(graph, graph.add(bare), QDQ_E_BAD_ATTR, "attribute \"alpha\": missing, expected a value of type f32");
    EXPECT_FAILS(graph, graph.add(bare.f32("alpha", NAN)), QDQ_E_BAD_ATTR, "found NaN");
    Op clamp(1, "Clamp");
    clamp.in(Tensor(1, F, {2})).out(Unknown(2)).f32("min", 2).f32("max", 1);
    EXPECT_FAILS(graph, graph.add(clamp), QDQ_E_BAD_ATTR, "\"min\": found 2, expected at most max");
    EXPECT_EQ(graph.get()->n_ops, 0u);
    EXPECT_EQ(graph.get()->n_values, 0u);
}

TEST(IrSchema, RejectsBadDescriptors) {
    Graph graph;
    const auto relu = [](const qdq_tensor_desc &desc) {
        Op op(1, "ReLU", "r");
        op.in(desc).out(Unknown(2));
        return op;
    };
    EXPECT_FAILS(graph, graph.add(relu(Tensor(9, F, {2, -3}))), QDQ_E_BAD_SHAPE,
                 "input 0 (tensor 9): dimension 1: found -3");
    const int64_t huge = INT64_C(1) << 31;
    EXPECT_FAILS(graph, graph.add(relu(Tensor(9, F, {huge, huge, huge}))), QDQ_E_BAD_SHAPE, "its size overflows");
    EXPECT_FAILS(graph, graph.add(relu(Tensor(9, F, {0, huge, huge, huge}))), QDQ_E_BAD_SHAPE, "its size overflows");
    qdq_tensor_desc deep = Tensor(9, F, {1});
    deep.ndims = 13;
    EXPECT_FAILS(graph, graph.add(relu(deep)), QDQ_E_BAD_SHAPE, "rank: found 13, expected at most 12");
    deep.ndims = -2;
    EXPECT_FAILS(graph, graph.add(relu(deep)), QDQ_E_BAD_SHAPE, "rank: found -2");
    qdq_tensor_desc odd = Tensor(9, F, {2, 2});
    odd.dtype = (qdq_dtype)33;
    EXPECT_FAILS(graph, graph.add(relu(odd)), QDQ_E_BAD_DTYPE, "data type: found 33");
    odd = Tensor(9, F, {2, 2});
    odd.strides[0] = -1;
    EXPECT_FAILS(graph, graph.add(relu(odd)), QDQ_E_BAD_SHAPE, "stride 0: found -1");
    odd.strides[0] = INT64_MAX;
    EXPECT_FAILS(graph, graph.add(relu(odd)), QDQ_E_BAD_SHAPE, "overflows");
    odd.layout = (qdq_layout)9;
    EXPECT_FAILS(graph, graph.add(relu(odd)), QDQ_E_BAD_ARG, "layout: found 9");
}

TEST(IrSchema, RejectsBadDataTypes) {
    Graph graph;
    Op relu(1, "ReLU", "r");
    relu.in(Tensor(1, QDQ_DTYPE_S8, {2})).out(Unknown(2));
    EXPECT_FAILS(graph, graph.add(relu), QDQ_E_BAD_DTYPE, "input 0: found data type s8, expected f16|bf16|f32");
    Op matmul(2, "MatMul", "m");
    matmul.in(Tensor(1, F, {2, 2})).in(Tensor(2, QDQ_DTYPE_BF16, {2, 2})).out(Unknown(3));
    EXPECT_FAILS(graph, graph.add(matmul), QDQ_E_BAD_DTYPE, "input 1: found data type bf16, expected f32");
    Op compare(3, "Less");
    compare.in(Tensor(1, F, {2})).in(Tensor(2, F, {2})).out(Unknown(3, F));
    EXPECT_FAILS(graph, graph.add(compare), QDQ_E_BAD_DTYPE, "output 0: found data type f32, expected boolean");
    Op add(4, "Add");
    add.in(Tensor(1, F, {2})).in(Tensor(2, QDQ_DTYPE_S64, {2})).out(Unknown(3));
    EXPECT_EQ(graph.add(add), QDQ_E_BAD_DTYPE);
    Op cast(5, "TypeCast");
    cast.in(Tensor(1, QDQ_DTYPE_BF16, {2})).out(Unknown(3, QDQ_DTYPE_F16));
    EXPECT_FAILS(graph, graph.add(cast), QDQ_E_BAD_DTYPE, "found data type f16, expected f32");
    Op named(6, "Cast");
    named.in(Tensor(1, F, {2})).out(Unknown(3, F)).str("to", "s64");
    EXPECT_FAILS(graph, graph.add(named), QDQ_E_BAD_DTYPE, "found data type f32, expected s64 (attribute \"to\")");
    Op nothing(7, "Cast");
    nothing.in(Tensor(1, F, {2})).out(Unknown(3)).str("to", "float");
    EXPECT_FAILS(graph, graph.add(nothing), QDQ_E_BAD_ATTR, "attribute \"to\": found \"float\"");
}

TEST(IrSchema, InfersDataTypes) {
    Graph graph;
    const auto add = [](uint64_t id, const char *kind, qdq_dtype a, qdq_dtype b) {
        Op op(id, kind);
        op.in(Tensor(id * 10, a, {2})).in(Tensor(id * 10 + 1, b, {2})).out(Unknown(id * 10 + 2));
        return op;
    };
    ASSERT_EQ(graph.add(add(1, "Add", QDQ_DTYPE_BF16, QDQ_DTYPE_BF16)), QDQ_OK);
    ASSERT_EQ(graph.add(add(2, "Multiply", QDQ_DTYPE_BF16, F)), QDQ_OK);
    ASSERT_EQ(graph.add(add(3, "Subtract", QDQ_DTYPE_S64, QDQ_DTYPE_S64)), QDQ_OK);
    ASSERT_EQ(graph.add(add(4, "Equal", QDQ_DTYPE_S64, QDQ_DTYPE_S64)), QDQ_OK);
    Op ql(5, "QuantizeLinear");
    ql.in(Tensor(50, F, {2})).in(Tensor(51, F, {})).out(Unknown(52));
    ASSERT_EQ(graph.add(ql), QDQ_OK) << graph.text();
    Op zp(6, "QuantizeLinear");
    zp.in(Tensor(60, F, {2})).in(Tensor(61, F, {})).in(Tensor(62, QDQ_DTYPE_S4, {})).out(Unknown(63));
    ASSERT_EQ(graph.add(zp), QDQ_OK) << graph.text();
    Op both(7, "QuantizeLinear");
    both.in(Tensor(70, F, {2})).in(Tensor(71, F, {})).in(Tensor(72, QDQ_DTYPE_S8, {})).out(Unknown(73));
    EXPECT_FAILS(graph, graph.add(both.str("output_dtype", "u8")), QDQ_E_BAD_DTYPE, "expected s8");
    Op dq(8, "DequantizeLinear");
    dq.in(Tensor(80, QDQ_DTYPE_S8, {2})).in(Tensor(81, QDQ_DTYPE_F16, {})).out(Unknown(82));
    ASSERT_EQ(graph.add(dq), QDQ_OK);
    Op dyn(9, "DynamicQuantizeLinear");
    dyn.in(Tensor(90, F, {2, 3})).out(Unknown(91)).out(Unknown(92)).out(Unknown(93));
    ASSERT_EQ(graph.add(dyn), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.desc(12).dtype, QDQ_DTYPE_BF16);
    EXPECT_EQ(graph.desc(22).dtype, F);
    EXPECT_EQ(graph.desc(32).dtype, QDQ_DTYPE_S64);
    EXPECT_EQ(graph.desc(42).dtype, QDQ_DTYPE_BOOLEAN);
    EXPECT_EQ(graph.desc(52).dtype, QDQ_DTYPE_U8);
    EXPECT_EQ(graph.desc(63).dtype, QDQ_DTYPE_S4);
    EXPECT_EQ(graph.desc(82).dtype, QDQ_DTYPE_F16);
    EXPECT_EQ(graph.desc(91).dtype, QDQ_DTYPE_U8);
    EXPECT_EQ(graph.desc(92).dtype, F);
    EXPECT_EQ(graph.dims(92), Dims{});
}

TEST(IrSchema, NeedsADataTypeThatNothingTells) {
    Graph graph;
    Op op(1, "Quantize", "q");
    op.in(Tensor(1, F, {2})).out(Unknown(2)).f32s("scales", {1.0f});
    ASSERT_EQ(graph.add(op), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_DTYPE, "output 0: the data type of tensor 2 must be given");
}

TEST(IrSchema, UnaryParametersComeFromTheirAttributes) {
    Graph graph;
    Op gelu(1, "GELU");
    gelu.in(Tensor(1, F, {2})).out(Unknown(2)).str("mode", "gelu_tanh");
    Op clamp(2, "Clamp");
    clamp.in(Tensor(2, F, {2})).out(Unknown(3)).f32("min", -1).f32("max", 6);
    Op pow(3, "Pow");
    pow.in(Tensor(3, F, {2})).out(Unknown(4)).f32("beta", 2.5f);
    ASSERT_EQ(graph.add(gelu), QDQ_OK);
    ASSERT_EQ(graph.add(clamp), QDQ_OK);
    ASSERT_EQ(graph.add(pow), QDQ_OK);
    float a = 9, b = 9;
    qdqi_op_unary_ab(&graph.op(1), &a, &b);
    EXPECT_EQ(a, 1.0f);
    qdqi_op_unary_ab(&graph.op(2), &a, &b);
    EXPECT_EQ(a, -1.0f);
    EXPECT_EQ(b, 6.0f);
    qdqi_op_unary_ab(&graph.op(3), &a, &b);
    EXPECT_EQ(a, 0.0f);
    EXPECT_EQ(b, 2.5f);
}

qdq_status InferSquare(const qdq_tensor_desc *in, size_t, qdq_tensor_desc *out, size_t, void *user) {
    if (in[0].ndims != 2) return QDQ_E_BAD_SHAPE;
    out[0].ndims = 2;
    out[0].dims[0] = out[0].dims[1] = in[0].dims[*(int *)user];
    out[0].dtype = in[0].dtype;
    return QDQ_OK;
}
qdq_status RunNothing(const qdq_tensor *, size_t, qdq_tensor *, size_t, void *) {
    return QDQ_OK;
}

TEST(IrSchema, TakesAHostsOwnKind) {
    static int dim = 1;
    qdq_custom_op custom = {sizeof custom, "HostSquare", 1, 1, 1, 1, InferSquare, RunNothing, &dim};
    qdq_error err = {};
    const size_t before = qdqi_schema_count();
    ASSERT_EQ(qdqi_schema_register(&custom, &err), QDQ_OK) << err.text;
    EXPECT_EQ(qdqi_schema_count(), before + 1);
    EXPECT_EQ(qdqi_schema_register(&custom, &err), QDQ_E_DUPLICATE_ID);
    custom.kind = "ReLU";
    EXPECT_EQ(qdqi_schema_register(&custom, &err), QDQ_E_DUPLICATE_ID);
    custom.kind = "Other";
    custom.max_inputs = 0;
    EXPECT_EQ(qdqi_schema_register(&custom, &err), QDQ_E_BAD_ARG);
    custom.struct_bytes = 1;
    EXPECT_EQ(qdqi_schema_register(&custom, &err), QDQ_E_BAD_ARG);
    EXPECT_EQ(qdqi_schema_register(nullptr, &err), QDQ_E_NULL_ARG);

    Op op(1, "HostSquare", "h");
    op.in(Tensor(1, F, {2, 5}));
    EXPECT_EQ(ShapesOf(op), "5x5");
    Op bad(1, "HostSquare", "h");
    bad.in(Tensor(1, F, {2}));
    EXPECT_HAS(ShapesOf(bad), "op 1 \"h\" (HostSquare): its infer function refused");
}

TEST(IrSchema, BuilderReplacesAnAttributeSetTwice) {
    Graph graph;
    Op op(1, "Elu");
    op.in(Tensor(1, F, {2})).out(Unknown(2)).f32("alpha", 1).f32("alpha", 3);
    ASSERT_EQ(graph.add(op), QDQ_OK);
    EXPECT_EQ(qdqi_op_f32(&graph.op(1), QDQI_A_ALPHA), 3.0f);
}

} // namespace
