/* Quantization parameters: what is refused, and with which words. */
#include "unit/ir_support.h"

#include <cmath>

using namespace ir;

namespace {

const auto F = QDQ_DTYPE_F32;
const auto S8 = QDQ_DTYPE_S8;
const auto U8 = QDQ_DTYPE_U8;

Op Quantize(qdq_dtype dtype, std::vector<float> scales, Dims zps, const char *qtype = "per_tensor", int64_t axis = 1) {
    Op op(3, "Quantize", "q");
    op.in(Tensor(1, F, {2, 4})).out(Unknown(2, dtype)).f32s("scales", scales).str("qtype", qtype).s64("axis", axis);
    if (!zps.empty()) op.s64s("zps", zps);
    return op;
}

TEST(IrQuantize, AcceptsWhatIsLegal) {
    const std::vector<float> four = {1, 2, -3, 4};
    for (qdq_dtype dtype : {U8, S8, QDQ_DTYPE_S4, QDQ_DTYPE_U4, QDQ_DTYPE_S16, QDQ_DTYPE_U16, QDQ_DTYPE_S32}) {
        Graph graph;
        EXPECT_EQ(graph.add(Quantize(dtype, {0.5f}, {3})), QDQ_OK) << graph.text();
    }
    for (int64_t axis : {1, -1}) {
        Graph graph;
        EXPECT_EQ(graph.add(Quantize(S8, four, {1, 2, 3, -128}, "per_channel", axis)), QDQ_OK) << graph.text();
    }
    Graph graph;
    EXPECT_EQ(graph.add(Quantize(S8, four, {5}, "per_channel")), QDQ_OK) << "one zero point for many scales";
    Graph f8;
    EXPECT_EQ(f8.add(Quantize(QDQ_DTYPE_F8_E4M3, {0.5f}, {})), QDQ_OK) << f8.text();
}

TEST(IrQuantize, RejectsBadScales) {
    Graph graph;
    for (float bad : {0.0f, -0.0f, NAN, INFINITY, -INFINITY})
        EXPECT_FAILS(graph, graph.add(Quantize(S8, {bad}, {})), QDQ_E_BAD_SCALE,
                     "op 3 \"q\" (Quantize): attribute \"scales\": value 0: found");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1, 2}, {})), QDQ_E_BAD_SCALE,
                 "found 2 values, expected 1 (per_tensor)");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {}, {})), QDQ_E_BAD_SCALE, "found 0 values");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1, 2, 3}, {}, "per_channel")), QDQ_E_BAD_SCALE,
                 "found 3 values, expected 4 (per_channel, axis 1 of 2x4)");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1, 2, 3}, {}, "per_channel", 0)), QDQ_E_BAD_SCALE, "expected 2");
}

TEST(IrQuantize, RejectsAxisOutsideRank) {
    Graph graph;
    for (int64_t axis : {2, -3, 100})
        EXPECT_FAILS(graph, graph.add(Quantize(S8, {1, 2}, {}, "per_channel", axis)), QDQ_E_BAD_AXIS,
                     "expected an axis of src 2x4");
    EXPECT_EQ(graph.add(Quantize(S8, {1}, {}, "per_tensor", 100)), QDQ_OK) << "the axis says nothing per tensor";
}

TEST(IrQuantize, RejectsBadZeroPoints) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1}, {128})), QDQ_E_BAD_ZERO_POINT,
                 "attribute \"zps\": value 0: found 128, expected -128 to 127 (s8)");
    EXPECT_FAILS(graph, graph.add(Quantize(U8, {1}, {-1})), QDQ_E_BAD_ZERO_POINT, "expected 0 to 255 (u8)");
    EXPECT_FAILS(graph, graph.add(Quantize(QDQ_DTYPE_U4, {1}, {16})), QDQ_E_BAD_ZERO_POINT, "expected 0 to 15");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1}, {1, 2})), QDQ_E_BAD_ZERO_POINT, "found 2 values, expected 1");
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1, 2, 3, 4}, {1, 2}, "per_channel")), QDQ_E_BAD_ZERO_POINT,
                 "expected 4");
    EXPECT_FAILS(graph, graph.add(Quantize(QDQ_DTYPE_F8_E5M2, {1}, {0})), QDQ_E_BAD_ZERO_POINT,
                 "f8_e5m2 has no zero point");
}

TEST(IrQuantize, RejectsPerGroupOnStaticOps) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(Quantize(S8, {1}, {}, "per_group")), QDQ_E_BAD_ATTR,
                 "attribute \"qtype\": found \"per_group\", expected per_tensor|per_channel");
}

TEST(IrQuantize, FindsAtFinalizeWhatAddCouldNotKnow) {
    Graph graph;
    Op relu(1, "ReLU");
    relu.in(Tensor(10, F, {2, 4})).out(Unknown(1, F));
    Op q(3, "Quantize", "late");
    q.in(Unknown(1, F)).out(Unknown(2, S8)).f32s("scales", {1, 2, 3}).str("qtype", "per_channel");
    ASSERT_EQ(graph.add(q), QDQ_OK);
    ASSERT_EQ(graph.add(relu), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_SCALE, "op 3 \"late\" (Quantize): attribute \"scales\": found 3");
}

Op DynDequantize(Dims scales, Dims zps, const char *qtype, Dims group = {}, Dims src = {4, 6}) {
    Op op(3, "DynamicDequantize", "dq");
    op.in(Tensor(1, S8, src)).in(Tensor(2, F, scales));
    if (!zps.empty()) op.in(Tensor(4, QDQ_DTYPE_U8, zps));
    op.out(Unknown(5)).str("qtype", qtype);
    if (!group.empty()) op.s64s("group_shape", group);
    return op;
}

TEST(IrDynamicQuant, ChecksParameterShapes) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(DynDequantize({2}, {}, "per_tensor")), QDQ_E_BAD_SCALE,
                 "input 1 (scale): found shape 2, expected 1 (per_tensor)");
    EXPECT_FAILS(graph, graph.add(DynDequantize({1}, {2}, "per_tensor")), QDQ_E_BAD_ZERO_POINT, "input 2 (zero point)");
    EXPECT_FAILS(graph, graph.add(DynDequantize({4}, {}, "per_channel")), QDQ_E_BAD_SCALE, "found shape 4, expected 6");
    EXPECT_FAILS(graph, graph.add(DynDequantize({6}, {4}, "per_channel")), QDQ_E_BAD_ZERO_POINT, "expected 6");
    EXPECT_FAILS(graph, graph.add(DynDequantize({2, 6}, {}, "per_group")), QDQ_E_BAD_ATTR, "\"group_shape\": missing");
    EXPECT_FAILS(graph, graph.add(DynDequantize({2, 6}, {}, "per_group", {2})), QDQ_E_BAD_ATTR,
                 "found 1 values, expected 2 (rank of src 4x6)");
    EXPECT_FAILS(graph, graph.add(DynDequantize({2, 6}, {}, "per_group", {3, 1})), QDQ_E_BAD_ATTR,
                 "found 3, which does not divide dim 4 of src 4x6");
    EXPECT_FAILS(graph, graph.add(DynDequantize({4, 6}, {}, "per_group", {2, 1})), QDQ_E_BAD_SCALE,
                 "found shape 4x6, expected 2x6 (src / group_shape)");
    EXPECT_FAILS(graph, graph.add(DynDequantize({2, 6}, {2, 1}, "per_group", {2, 1})), QDQ_E_BAD_ZERO_POINT, "2x6");
    EXPECT_FAILS(graph, graph.add(DynDequantize({4}, {}, "per_group", {1}, {4})), QDQ_E_BAD_SHAPE, "rank 2 or more");
    EXPECT_EQ(graph.add(DynDequantize({2, 6}, {2, 6}, "per_group", {2, 1})), QDQ_OK) << graph.text();
    Graph one;
    EXPECT_EQ(one.add(DynDequantize({6}, {1}, "per_channel")), QDQ_OK) << one.text();
}

TEST(IrDynamicQuant, ChecksConstantContents) {
    Graph graph;
    ASSERT_EQ(graph.add(DynDequantize({1}, {}, "per_tensor")), QDQ_OK);
    ASSERT_EQ(graph.constant<float>(Tensor(2, F, {1}), {0.0f}), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_SCALE, "input 1 (scale): value 0: found 0, expected a finite");
    Graph zp;
    Op q(1, "DynamicQuantize");
    q.in(Tensor(1, F, {2})).in(Tensor(2, F, {1})).in(Tensor(3, QDQ_DTYPE_S32, {1})).out(Unknown(4, U8));
    ASSERT_EQ(zp.constant<int32_t>(Tensor(3, QDQ_DTYPE_S32, {1}), {300}), QDQ_OK);
    EXPECT_FAILS(zp, zp.add(q), QDQ_E_BAD_ZERO_POINT, "found 300, expected 0 to 255 (u8)");
}

Op Linear(const char *kind, Dims x, Dims scale, bool has_zp, Dims zp, qdq_dtype dtype = S8) {
    Op op(3, kind, "ql");
    const bool quantizes = kind[0] == 'Q';
    op.in(Tensor(1, quantizes ? F : dtype, x)).in(Tensor(2, F, scale));
    if (has_zp) op.in(Tensor(4, dtype, zp));
    op.out(Unknown(5, quantizes ? dtype : QDQ_DTYPE_UNDEF));
    return op;
}

TEST(IrLinearQuant, ChecksShapes) {
    Graph graph;
    EXPECT_FAILS(graph, graph.add(Linear("QuantizeLinear", {2, 4}, {3}, false, {})), QDQ_E_BAD_SCALE,
                 "input 1 (scale): found shape 3, expected 4 (one value per index of the axis, or one in all)");
    EXPECT_FAILS(graph, graph.add(Linear("QuantizeLinear", {2, 4}, {4}, true, {1})), QDQ_E_BAD_ZERO_POINT,
                 "input 2 (zero point): found shape 1, expected 4 (as the scale)");
    EXPECT_FAILS(graph, graph.add(Linear("QuantizeLinear", {2, 4}, {1}, true, {4})), QDQ_E_BAD_ZERO_POINT, "one zero");
    EXPECT_FAILS(graph, graph.add(Linear("DequantizeLinear", {2, 4}, {4}, false, {}).s64("axis", 2)), QDQ_E_BAD_AXIS,
                 "found 2, expected an axis of src 2x4");
    /* 5 along axis 0 in blocks of 2: 3 blocks; in blocks of 3: 2 */
    EXPECT_FAILS(graph,
                 graph.add(Linear("DequantizeLinear", {5, 4}, {3, 4}, false, {}).s64("axis", 0).s64("block_size", 3)),
                 QDQ_E_BAD_SCALE, "found shape 3x4, expected 2x4");
    EXPECT_FAILS(graph,
                 graph.add(Linear("DequantizeLinear", {5, 4}, {3, 1}, false, {}).s64("axis", 0).s64("block_size", 2)),
                 QDQ_E_BAD_SCALE, "expected 3x4");
    EXPECT_FAILS(graph, graph.add(Linear("DequantizeLinear", {5}, {1}, false, {}).s64("block_size", -1)),
                 QDQ_E_BAD_ATTR, "expected 0 or more");
}

TEST(IrLinearQuant, AcceptsWhatQuantizersEmit) {
    const auto ok = [](const Op &op) {
        Graph graph;
        EXPECT_EQ(graph.add(op), QDQ_OK) << graph.text();
        EXPECT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    };
    ok(Linear("DequantizeLinear", {3}, {3}, true, {3}, QDQ_DTYPE_S32).s64("axis", 0)); /* bias per channel */
    ok(Linear("DequantizeLinear", {3}, {1}, true, {}, QDQ_DTYPE_S32));                 /* scale [1], zp scalar */
    ok(Linear("QuantizeLinear", {}, {}, true, {}));                                    /* rank 0, default axis 1 */
    ok(Linear("QuantizeLinear", {2, 4}, {1}, true, {1}).s64("axis", 7));               /* axis is ignored per tensor */
    ok(Linear("DequantizeLinear", {5, 4}, {3, 4}, true, {3, 4}).s64("axis", 0).s64("block_size", 2)); /* short tail */
    ok(Linear("DequantizeLinear", {5, 4}, {1, 4}, false, {}).s64("axis", 0).s64("block_size", 9));
    ok(Linear("DequantizeLinear", {4, 1}, {1}, true, {1}).s64("axis", -1));
}

TEST(IrLinearQuant, ChecksConstantContents) {
    Graph graph;
    ASSERT_EQ(graph.constant<int32_t>(Tensor(4, QDQ_DTYPE_S32, {}), {1}), QDQ_OK);
    EXPECT_FAILS(graph, graph.add(Linear("DequantizeLinear", {3}, {1}, true, {}, QDQ_DTYPE_S32)), QDQ_E_BAD_ZERO_POINT,
                 "found 1, expected 0 to 0 (s32)");
    Graph scale;
    ASSERT_EQ(scale.constant<float>(Tensor(2, F, {3}), {1.0f, -2.0f, INFINITY}), QDQ_OK);
    EXPECT_FAILS(scale, scale.add(Linear("QuantizeLinear", {2, 3}, {3}, false, {})), QDQ_E_BAD_SCALE,
                 "value 2: found inf");
}

TEST(IrQLinear, ChecksPairs) {
    const auto matmul = [](Dims a_scale, Dims b_scale, Dims y_zp) {
        Op op(1, "QLinearMatMul", "qm");
        op.in(Tensor(1, U8, {2, 3})).in(Tensor(2, F, a_scale)).in(Tensor(3, U8, {}));
        op.in(Tensor(4, S8, {3, 5})).in(Tensor(5, F, b_scale)).in(Tensor(6, S8, {}));
        op.in(Tensor(7, F, {})).in(Tensor(8, U8, y_zp));
        return op;
    };
    Op good = matmul({}, {5}, {});
    EXPECT_EQ(ShapesOf(good), "2x5");
    Op rows = matmul({2}, {5}, {1});
    EXPECT_EQ(ShapesOf(rows), "2x5");
    Op bad = matmul({}, {3}, {});
    EXPECT_HAS(ShapesOf(bad), "input 4: found shape 3, expected one value or 5 (columns of input 3)");
    Op bad_y = matmul({}, {}, {5});
    EXPECT_HAS(ShapesOf(bad_y), "input 7 (zero point): found shape 5, expected one value");
}

Op QuantizeV2(Dims range, int64_t axis, const char *mode = "MIN_COMBINED") {
    Op op(3, "QuantizeV2", "tf");
    op.in(Tensor(1, F, {2, 3})).in(Tensor(2, F, range)).in(Tensor(4, F, range));
    op.str("T", "s8").str("mode", mode).s64("axis", axis);
    return op;
}

TEST(IrTensorFlow, InfersAndChecks) {
    Op tensor = QuantizeV2({}, -1);
    EXPECT_EQ(ShapesOf(tensor, 3), "2x3 - -");
    Op channel = QuantizeV2({3}, 1, "SCALED");
    EXPECT_EQ(ShapesOf(channel, 3), "2x3 3 3");
    Op wrong = QuantizeV2({2}, 1);
    EXPECT_HAS(ShapesOf(wrong, 3), "input 1 (min_range): found shape 2, expected 3");
    Op many = QuantizeV2({3}, -1);
    EXPECT_HAS(ShapesOf(many, 3), "expected one value");
    Op axis = QuantizeV2({3}, 2);
    EXPECT_HAS(ShapesOf(axis, 3), "attribute \"axis\": found 2, expected -1 or an axis of input 2x3");
    Op low = QuantizeV2({}, -2);
    EXPECT_HAS(ShapesOf(low, 3), "found -2, expected -1 or more");
    Op mode = QuantizeV2({}, -1, "MIN_LAST");
    EXPECT_HAS(ShapesOf(mode, 3), "found \"MIN_LAST\", expected MIN_COMBINED|MIN_FIRST|SCALED");
    Op first = QuantizeV2({3}, 1, "MIN_FIRST");
    EXPECT_HAS(ShapesOf(first, 3), "this mode is per tensor only");
    Op even = QuantizeV2({}, -1);
    EXPECT_HAS(ShapesOf(even.str("round_mode", "HALF_TO_EVEN"), 3), "which only mode SCALED has");
}

TEST(IrTensorFlow, ChecksConstantRanges) {
    for (auto range : {std::pair<float, float>{1, 0}, {0, INFINITY}, {NAN, 1}}) {
        Graph graph;
        ASSERT_EQ(graph.constant<float>(Tensor(2, F, {}), {range.first}), QDQ_OK);
        ASSERT_EQ(graph.constant<float>(Tensor(4, F, {}), {range.second}), QDQ_OK);
        Op op = QuantizeV2({}, -1);
        op.out(Unknown(5)).out(Unknown(6)).out(Unknown(7));
        EXPECT_FAILS(graph, graph.add(op), QDQ_E_BAD_SCALE, "max not below min");
    }
}

} // namespace
