/* Shape rules against values worked out by hand. */
#include "unit/ir_support.h"

#include <cmath>

using namespace ir;

namespace {

const auto F = QDQ_DTYPE_F32;
const auto I64 = QDQ_DTYPE_S64;

struct ConvCase {
    Dims src, weights, strides, pads_begin, pads_end, dilations;
    const char *data, *weights_format, *auto_pad;
    int64_t groups;
    const char *expected;
};

Op Conv(const char *kind, const ConvCase &c) {
    Op op(1, kind, "c");
    op.in(Tensor(1, F, c.src)).in(Tensor(2, F, c.weights));
    op.s64s("strides", c.strides).s64s("pads_begin", c.pads_begin).s64s("pads_end", c.pads_end);
    op.s64s("dilations", c.dilations).str("data_format", c.data).str("weights_format", c.weights_format);
    op.str("auto_pad", c.auto_pad).s64("groups", c.groups);
    return op;
}

TEST(IrShapeConv, Convolution) {
    const ConvCase cases[] = {
        {{1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, "NCX", "OIX", "None", 1, "1x4x8x8"},
        {{1, 8, 8, 3}, {3, 3, 3, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, "NXC", "XIO", "None", 1, "1x4x4x4"},
        {{2, 4, 9}, {6, 2, 3}, {2}, {0}, {1}, {2}, "NCX", "OIX", "None", 2, "2x6x3"}, /* (9+0+1-5)/2+1 */
        {{1, 2, 5, 6, 7},
         {3, 2, 2, 2, 2},
         {1, 1, 1},
         {0, 0, 0},
         {0, 0, 0},
         {1, 1, 1},
         "NCX",
         "OIX",
         "None",
         1,
         "1x3x4x5x6"},
        {{1, 3, 7, 8}, {4, 3, 3, 3}, {2, 2}, {}, {}, {1, 1}, "NCX", "OIX", "SAME_UPPER", 1, "1x4x4x4"},
        {{1, 3, 7, 8}, {4, 3, 3, 3}, {2, 2}, {9, 9}, {9, 9}, {1, 1}, "NCX", "OIX", "VALID", 1, "1x4x3x3"},
        {{0, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, "NCX", "OIX", "None", 1, "0x4x6x6"},
        {{1, 3, 8, 8},
         {4, 2, 3, 3},
         {1, 1},
         {1, 1},
         {1, 1},
         {1, 1},
         "NCX",
         "OIX",
         "None",
         1,
         "found 2 input channels in 4x2x3x3, expected 3 of src 1x3x8x8 / 1 groups"},
        {{1, 4, 8, 8},
         {3, 2, 3, 3},
         {1, 1},
         {1, 1},
         {1, 1},
         {1, 1},
         "NCX",
         "OIX",
         "None",
         2,
         "expected a multiple of 2"},
        {{1, 3, 2, 8},
         {4, 3, 3, 3},
         {1, 1},
         {0, 0},
         {0, 0},
         {1, 1},
         "NCX",
         "OIX",
         "None",
         1,
         "spatial dim 0: the window 3"},
        {{1, 3, 8}, {4, 3, 3, 3}, {1}, {0}, {0}, {1}, "NCX", "OIX", "None", 1, "expected the rank of src 1x3x8"},
        {{3, 8}, {4, 3}, {1}, {0}, {0}, {1}, "NCX", "OIX", "None", 1, "expected rank 3 or more"},
        {{1, 3, 8, 8},
         {4, 3, 3, 3},
         {1, 1},
         {1},
         {1, 1},
         {1, 1},
         "NCX",
         "OIX",
         "None",
         1,
         "attribute \"pads_begin\": found 1 values, expected 2"},
        {{1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {INT64_MAX, 1}, {1, 1}, {1, 1}, "NCX", "OIX", "None", 1, "overflows"},
    };
    for (const ConvCase &c : cases) {
        Op op = Conv("Convolution", c);
        EXPECT_HAS(ShapesOf(op), c.expected);
    }
}

TEST(IrShapeConv, BiasIsOnePerOutputChannel) {
    const ConvCase c = {{1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, "NCX", "OIX", "None", 1, ""};
    Op good = Conv("Convolution", c);
    good.in(Tensor(3, F, {4}));
    EXPECT_EQ(ShapesOf(good), "1x4x8x8");
    Op bad = Conv("Convolution", c);
    bad.in(Tensor(3, F, {3}));
    EXPECT_HAS(ShapesOf(bad), "input 2: found shape 3, expected 4 (output channels)");
}

TEST(IrShapeConv, ConvTranspose) {
    const ConvCase cases[] = {
        {{1, 4, 5, 5}, {4, 3, 2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, "NCX", "IOX", "None", 1, "1x3x10x10"},
        {{1, 5, 4}, {3, 3, 4}, {2}, {1}, {1}, {1}, "NXC", "XOI", "None", 1, "1x9x3"},
        {{1, 4, 5}, {4, 3, 3}, {1}, {0}, {0}, {2}, "NCX", "IOX", "None", 2, "1x6x9"},
        {{1, 4, 5}, {4, 3, 3}, {2}, {}, {}, {1}, "NCX", "IOX", "SAME_LOWER", 1, "1x3x10"},
        {{1, 4, 1}, {4, 3, 1}, {1}, {1}, {1}, {1}, "NCX", "IOX", "None", 1, "found output size -1"},
        {{1, 5, 5}, {4, 3, 3}, {1}, {0}, {0}, {1}, "NCX", "IOX", "None", 1, "found 4 input channels"},
    };
    for (const ConvCase &c : cases) {
        Op op = Conv("ConvTranspose", c);
        EXPECT_HAS(ShapesOf(op), c.expected);
    }
    Op padded = Conv("ConvTranspose", cases[0]);
    EXPECT_EQ(ShapesOf(padded.s64s("output_padding", {1, 0})), "1x3x11x10");
    Op dumped = Conv("ConvTranspose", cases[0]);
    EXPECT_EQ(ShapesOf(dumped.s64s("output_padding", Dims(12, 0))), "1x3x10x10") << "a dumped default";
}

TEST(IrShapeConv, SpatialIsResolved) {
    Graph graph;
    Op op =
        Conv("Convolution", {{1, 3, 7, 8}, {4, 3, 3, 3}, {2, 2}, {}, {}, {1, 1}, "NCX", "OIX", "SAME_UPPER", 1, ""});
    op.out(Unknown(3));
    ASSERT_EQ(graph.add(op), QDQ_OK) << graph.text();
    qdqi_spatial s;
    ASSERT_EQ(qdqi_op_spatial(&graph.op(1), &graph.desc(1), &graph.desc(2), &s, nullptr), QDQ_OK);
    EXPECT_EQ(s.n, 2);
    EXPECT_FALSE(s.nxc);
    EXPECT_EQ(s.kernel[1], 3);
    /* 7: (4-1)*2+3-7 = 2 -> 1 and 1; 8: (4-1)*2+3-8 = 1 -> 0 and 1 */
    EXPECT_EQ(s.pads_begin[0], 1);
    EXPECT_EQ(s.pads_end[0], 1);
    EXPECT_EQ(s.pads_begin[1], 0);
    EXPECT_EQ(s.pads_end[1], 1);
    EXPECT_EQ(s.w_oc_dim, 0);
    EXPECT_EQ(s.w_ic_dim, 1);
    EXPECT_EQ(s.w_sp_dim, 2);
    const struct {
        const char *kind, *format;
        int oc, ic, sp;
    } formats[] = {
        {"Convolution", "XIO", 3, 2, 0}, {"ConvTranspose", "XOI", 2, 3, 0}, {"ConvTranspose", "IOX", 1, 0, 2}};
    uint64_t id = 10;
    for (const auto &f : formats) {
        Op other =
            Conv(f.kind, {{1, 3, 3, 3}, {3, 3, 3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, "NXC", f.format, "None", 1, ""});
        Graph one;
        other.out(Unknown(++id));
        ASSERT_EQ(one.add(other), QDQ_OK) << one.text();
        ASSERT_EQ(qdqi_op_spatial(&one.op(1), &one.desc(1), &one.desc(2), &s, nullptr), QDQ_OK);
        EXPECT_TRUE(s.nxc);
        EXPECT_EQ(s.w_oc_dim, f.oc) << f.format;
        EXPECT_EQ(s.w_ic_dim, f.ic) << f.format;
        EXPECT_EQ(s.w_sp_dim, f.sp) << f.format;
    }
}

Op Pool(const char *kind, Dims src, Dims kernel, Dims strides, Dims begin, Dims end, const char *rounding) {
    Op op(1, kind, "p");
    op.in(Tensor(1, F, src)).s64s("kernel", kernel).s64s("strides", strides).s64s("pads_begin", begin);
    op.s64s("pads_end", end).str("data_format", "NCX").str("rounding_type", rounding);
    if (kind[0] == 'A') op.flag("exclude_pad", true);
    return op;
}

TEST(IrShapePool, RoundsDownAndUp) {
    Op down = Pool("MaxPool", {1, 2, 8, 8}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, "floor");
    EXPECT_EQ(ShapesOf(down), "1x2x3x3");
    Op up = Pool("AvgPool", {1, 2, 8, 8}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, "ceil");
    EXPECT_EQ(ShapesOf(up), "1x2x4x4");
    /* (4 + 2 - 2) / 3 = 1.3: up to 3 windows, but the third would start at 6, behind 4 + 1 */
    Op behind = Pool("MaxPool", {1, 1, 4}, {2}, {3}, {1}, {1}, "ceil");
    EXPECT_EQ(ShapesOf(behind), "1x1x2");
    Op dilated = Pool("MaxPool", {1, 1, 9}, {3}, {1}, {0}, {0}, "floor");
    EXPECT_EQ(ShapesOf(dilated.s64s("dilations", {3})), "1x1x3");
    Op dumped = Pool("MaxPool", {1, 1, 9}, {3}, {1}, {0}, {0}, "floor");
    EXPECT_EQ(ShapesOf(dumped.s64s("dilations", Dims(12, 1))), "1x1x7") << "a dumped default";
    Op wide = Pool("AvgPool", {1, 1, 9}, {2}, {1}, {2}, {0}, "floor");
    EXPECT_HAS(ShapesOf(wide), "attribute \"pads_begin\": found 2, expected less than the window 2");
    Op crop = Pool("AvgPool", {1, 1, 9}, {2}, {2}, {0}, {-2}, "floor");
    EXPECT_EQ(ShapesOf(crop), "1x1x3") << "a negative pad crops";
    Op gone = Pool("AvgPool", {1, 1, 9}, {2}, {2}, {0}, {-20}, "floor");
    EXPECT_HAS(ShapesOf(gone), "does not fit");
    Op far = Pool("AvgPool", {1, 1, 0}, {5}, {INT64_MAX}, {0}, {INT64_MIN}, "ceil");
    EXPECT_HAS(ShapesOf(far), "overflows");
    Op global(1, "GlobalAveragePool");
    global.in(Tensor(1, F, {2, 5, 7, 7}));
    EXPECT_EQ(ShapesOf(global), "2x5x1x1");
}

Op Two(const char *kind, Dims a, Dims b, qdq_dtype dtype = F) {
    Op op(1, kind, "two");
    op.in(Tensor(1, dtype, a)).in(Tensor(2, dtype, b));
    return op;
}

TEST(IrShapeMath, Broadcasts) {
    const struct {
        Dims a, b;
        const char *expected;
    } cases[] = {{{2, 3}, {2, 3}, "2x3"},
                 {{2, 3}, {3}, "2x3"},
                 {{2, 1, 4}, {5, 1}, "2x5x4"},
                 {{}, {2}, "2"},
                 {{}, {}, "-"},
                 {{0, 3}, {1, 3}, "0x3"},
                 {{2, 3}, {2}, "input 1: found shape 2, which does not broadcast with 2x3"}};
    for (const auto &c : cases) {
        Op op = Two("Add", c.a, c.b);
        EXPECT_HAS(ShapesOf(op), c.expected);
    }
    Op none = Two("Add", {2, 3}, {3});
    EXPECT_HAS(ShapesOf(none.str("auto_broadcast", "none")), "expected 2x3 (auto_broadcast is none)");
    Op sum = Two("Sum", {2, 1}, {3});
    EXPECT_EQ(ShapesOf(sum.in(Tensor(3, F, {4, 1, 1}))), "4x2x3");
    const auto select = [](const char *kind, Dims cond) {
        Op op(1, kind);
        op.in(Tensor(1, QDQ_DTYPE_BOOLEAN, cond)).in(Tensor(2, F, {2, 3})).in(Tensor(3, F, {1, 3}));
        return op;
    };
    Op one_way = select("Select", {3});
    EXPECT_EQ(ShapesOf(one_way), "2x3");
    Op wider = select("Select", {4, 2, 3});
    EXPECT_HAS(ShapesOf(wider), "input 0: found shape 4x2x3, which does not broadcast to 2x3");
    Op where = select("Where", {4, 2, 3});
    EXPECT_EQ(ShapesOf(where), "4x2x3");
}

TEST(IrShapeMath, MatMul) {
    const struct {
        Dims a, b;
        bool ta, tb;
        const char *expected;
    } cases[] = {{{2, 3}, {3, 4}, false, false, "2x4"},
                 {{3, 2}, {4, 3}, true, true, "2x4"},
                 {{5, 1, 2, 3}, {7, 3, 4}, false, false, "5x7x2x4"},
                 {{3}, {3, 4}, false, false, "4"},
                 {{2, 3}, {3}, false, true, "2"},
                 {{3}, {3}, true, true, "-"},
                 {{3}, {5, 3, 4}, false, false, "5x4"},
                 {{0, 3}, {3, 4}, false, false, "0x4"},
                 {{2, 0}, {0, 4}, false, false, "2x4"},
                 {{2, 3}, {4, 5}, false, false, "input 0 2x3 has K 3, but input 1 4x5 has 4"},
                 {{2, 2, 3}, {5, 3, 4}, false, false, "do not broadcast"},
                 {{}, {3}, false, false, "input 0: found shape -, expected rank 1 or more"}};
    for (const auto &c : cases) {
        Op op = Two("MatMul", c.a, c.b);
        EXPECT_HAS(ShapesOf(op.flag("transpose_a", c.ta).flag("transpose_b", c.tb)), c.expected);
    }
    Op bias = Two("MatMul", {2, 3}, {3, 4});
    EXPECT_EQ(ShapesOf(bias.in(Tensor(3, F, {4}))), "2x4");
    Op bad = Two("MatMul", {2, 3}, {3, 4});
    EXPECT_HAS(ShapesOf(bad.in(Tensor(3, F, {3}))), "input 2: found shape 3, which does not broadcast to 2x4");
    Op gemm = Two("Gemm", {3, 2}, {4, 3});
    EXPECT_EQ(ShapesOf(gemm.flag("transA", true).flag("transB", true).in(Tensor(3, F, {2, 1}))), "2x4");
    Op rank = Two("Gemm", {1, 3, 2}, {2, 3});
    EXPECT_HAS(ShapesOf(rank), "expected rank 2");
}

TEST(IrShapeMath, Normalizations) {
    const auto layer = [](int64_t axis, bool stats, Dims gamma) {
        Op op(1, "LayerNorm");
        op.in(Tensor(1, F, {2, 3, 4})).in(Tensor(2, F, gamma)).in(Tensor(3, F, gamma));
        op.s64("begin_norm_axis", axis).flag("keep_stats", stats);
        return op;
    };
    Op last = layer(-1, true, {4});
    EXPECT_EQ(ShapesOf(last, 3), "2x3x4 2x3 2x3");
    Op two = layer(1, true, {3, 4});
    EXPECT_EQ(ShapesOf(two, 3), "2x3x4 2 2");
    Op plain = layer(-1, false, {4});
    EXPECT_EQ(ShapesOf(plain), "2x3x4");
    Op missing = layer(-1, true, {4});
    EXPECT_HAS(ShapesOf(missing), "found 1 outputs, expected 3 (keep_stats is true)");
    Op wrong = layer(-1, false, {3});
    EXPECT_HAS(ShapesOf(wrong), "expected 4 values (normalized dims of src 2x3x4)");
    Op axis = layer(3, false, {4});
    EXPECT_HAS(ShapesOf(axis), "attribute \"begin_norm_axis\": found 3, expected an axis of rank 3");
    Op affine = layer(-1, false, {4});
    EXPECT_HAS(ShapesOf(affine.flag("use_affine", false)), "found 3 inputs, expected 1 (use_affine is false)");
    Op group(1, "GroupNorm");
    group.in(Tensor(1, F, {2, 6, 5, 5})).s64("groups", 3).str("data_format", "NCX").flag("use_affine", false);
    EXPECT_EQ(ShapesOf(group, 3), "2x6x5x5 2x3 2x3");
    Op uneven(1, "GroupNorm");
    uneven.in(Tensor(1, F, {2, 6, 5, 5})).s64("groups", 4).str("data_format", "NCX").flag("use_affine", false);
    EXPECT_HAS(ShapesOf(uneven, 3), "attribute \"groups\": found 4, expected a divisor of 6 channels");
    Op batch(1, "BatchNormInference");
    batch.in(Tensor(1, F, {2, 5, 5, 3})).f32("epsilon", 1e-5f);
    for (uint64_t i = 0; i < 4; i++)
        batch.in(Tensor(2 + i, F, {i == 3 ? 5 : 3}));
    EXPECT_HAS(ShapesOf(batch), "input 4: found shape 5, expected 3 (channels of src)");
}

TEST(IrShapeMath, Reductions) {
    Op keep(1, "ReduceMean");
    keep.in(Tensor(1, F, {2, 3, 4})).s64s("axes", {-1, 0}).flag("keep_dims", true);
    EXPECT_EQ(ShapesOf(keep), "1x3x1");
    Op drop(1, "ReduceSum");
    drop.in(Tensor(1, F, {2, 3, 4})).in(Tensor(2, I64, {1}));
    EXPECT_EQ(ShapesOf(drop, 1, {{2, {1}}}), "2x4");
    Op unknown(1, "ReduceSum");
    unknown.in(Tensor(1, F, {2, 3, 4})).in(Tensor(2, I64, {1}));
    EXPECT_EQ(ShapesOf(unknown), "?") << "axes that are no constant";
    Op none(1, "ReduceMax");
    none.in(Tensor(1, F, {2, 3}));
    EXPECT_HAS(ShapesOf(none), "attribute \"axes\": found no axes");
    Op twice(1, "ReduceMax");
    twice.in(Tensor(1, F, {2, 3})).s64s("axes", {1, -1});
    EXPECT_HAS(ShapesOf(twice), "axis 1 is given twice");
    Op out(1, "ReduceMax");
    out.in(Tensor(1, F, {2, 3})).s64s("axes", {2});
    EXPECT_HAS(ShapesOf(out), "found 2, expected an axis of rank 2");
    Op arg(1, "ArgMax");
    arg.in(Tensor(1, F, {2, 3})).s64("axis", -1).flag("keepdims", false);
    EXPECT_EQ(ShapesOf(arg), "2");
    Op topk(1, "TopK");
    topk.in(Tensor(1, F, {2, 9})).in(Tensor(2, I64, {1}));
    EXPECT_EQ(ShapesOf(topk, 2, {{2, {4}}}), "2x4 2x4");
    Op soft(1, "SoftMax");
    soft.in(Tensor(1, F, {5}));
    EXPECT_HAS(ShapesOf(soft), "attribute \"axis\": found 1, expected an axis of rank 1");
}

TEST(IrShapeMove, Reshapes) {
    const auto fixed = [](Dims shape, bool zero) {
        Op op(1, "StaticReshape");
        op.in(Tensor(1, F, {2, 3, 4})).s64s("shape", shape).flag("special_zero", zero);
        return ShapesOf(op);
    };
    EXPECT_EQ(fixed({6, 4}, false), "6x4");
    EXPECT_EQ(fixed({0, -1}, true), "2x12");
    EXPECT_HAS(fixed({0, -1}, false), "does not hold the elements of src 2x3x4");
    EXPECT_HAS(fixed({5, -1}, false), "does not hold");
    EXPECT_HAS(fixed({-1, -1}, false), "at most one -1");
    EXPECT_HAS(fixed({-2, 3}, false), "found -2, expected -1 or more");
    EXPECT_HAS(fixed({2, 3, 4, 0}, true), "dim 3 of src 2x3x4 is none to copy");
    EXPECT_HAS(fixed({INT64_MAX, INT64_MAX}, false), "overflows");
    const auto by_input = [](Dims shape, bool allowzero) {
        Op op(1, "Reshape");
        op.in(Tensor(1, F, {0, 3})).in(Tensor(2, I64, {(int64_t)shape.size()})).flag("allowzero", allowzero);
        return ShapesOf(op, 1, {{2, shape}});
    };
    EXPECT_EQ(by_input({0, 3, 1}, false), "0x3x1");
    EXPECT_EQ(by_input({7, 0}, true), "7x0");
    Op dynamic(1, "Reshape");
    dynamic.in(Tensor(1, F, {2, 3})).in(Tensor(2, I64, {2}));
    EXPECT_EQ(ShapesOf(dynamic), "?");
    const auto flatten = [](int64_t axis) {
        Op op(1, "Flatten");
        op.in(Tensor(1, F, {2, 3, 4})).s64("axis", axis);
        return ShapesOf(op);
    };
    EXPECT_EQ(flatten(1), "2x12");
    EXPECT_EQ(flatten(0), "1x24");
    EXPECT_EQ(flatten(3), "24x1");
    EXPECT_EQ(flatten(-1), "6x4");
    EXPECT_HAS(flatten(4), "expected -3 to 3");
    const auto axes_op = [](const char *kind, Dims src, Dims axes) {
        Op op(1, kind);
        op.in(Tensor(1, F, src));
        if (!axes.empty()) op.s64s("axes", axes);
        return ShapesOf(op);
    };
    EXPECT_EQ(axes_op("Squeeze", {1, 3, 1}, {}), "3");
    EXPECT_EQ(axes_op("Squeeze", {1, 3, 1}, {-1}), "1x3");
    EXPECT_HAS(axes_op("Squeeze", {1, 3, 1}, {1}), "axis 1 of 1x3x1 is not 1");
    EXPECT_EQ(axes_op("Unsqueeze", {3, 4}, {0, -1}), "1x3x4x1");
    EXPECT_HAS(axes_op("Unsqueeze", {3, 4}, {5}), "expected an axis of rank 3");
    EXPECT_HAS(axes_op("Unsqueeze", {3, 4}, {}), "axes: found 0");
}

TEST(IrShapeMove, TransposeConcatSplit) {
    const auto transpose = [](Dims order) {
        Op op(1, "StaticTranspose");
        op.in(Tensor(1, F, {2, 3, 4})).s64s("order", order);
        return ShapesOf(op);
    };
    EXPECT_EQ(transpose({0, 2, 1}), "2x4x3");
    EXPECT_EQ(transpose({}), "4x3x2");
    EXPECT_EQ(transpose({-1, 0, 1}), "4x2x3");
    EXPECT_HAS(transpose({0, 1, 1}), "axis 1 is given twice");
    EXPECT_HAS(transpose({0, 1}), "attribute \"order\": found 2 values, expected 3 (src 2x3x4)");
    Op concat = Two("Concat", {2, 3}, {2, 5});
    EXPECT_EQ(ShapesOf(concat.s64("axis", -1)), "2x8");
    Op bad = Two("Concat", {2, 3}, {3, 3});
    EXPECT_HAS(ShapesOf(bad.s64("axis", 1)), "input 1: found shape 3x3, expected 2x3 except along axis 1");
    Op many(1, "Concat");
    for (uint64_t i = 1; i <= 40; i++)
        many.in(Tensor(i, QDQ_DTYPE_S8, {1, 2}));
    EXPECT_EQ(ShapesOf(many.s64("axis", 0)), "40x2");
    const auto split = [](Dims sizes, size_t n, int64_t num) {
        Op op(1, "Split");
        op.in(Tensor(1, F, {7, 2}));
        if (!sizes.empty()) op.s64s("split", sizes);
        if (num > 0) op.s64("num_outputs", num);
        return ShapesOf(op, n);
    };
    EXPECT_EQ(split({}, 3, 3), "3x2 3x2 1x2");
    EXPECT_EQ(split({5, 2}, 2, 0), "5x2 2x2");
    EXPECT_HAS(split({5, 3}, 2, 0), "size 3 of output 1 does not fit into axis 0 of 7x2");
    EXPECT_HAS(split({5, 1}, 2, 0), "the sizes sum up to 6, expected 7");
    EXPECT_HAS(split({5, 1}, 3, 0), "found 2 sizes, expected 3");
    EXPECT_HAS(split({}, 2, 3), "attribute \"num_outputs\": found 3, expected 2 outputs");
    std::string twelve = split({}, 12, 0);
    EXPECT_EQ(twelve.substr(0, 7), "1x2 1x2");
}

TEST(IrShapeMove, Slices) {
    const auto slice = [](Dims starts, Dims ends, Dims axes, Dims steps) {
        Op op(1, "Slice", "s");
        const int64_t n = (int64_t)starts.size();
        op.in(Tensor(1, F, {10, 6})).in(Tensor(2, I64, {n})).in(Tensor(3, I64, {n})).in(Tensor(4, I64, {n}));
        op.in(Tensor(5, I64, {n}));
        return ShapesOf(op, 1, {{2, starts}, {3, ends}, {4, axes}, {5, steps}});
    };
    EXPECT_EQ(slice({1}, {9}, {0}, {3}), "3x6");
    EXPECT_EQ(slice({-3}, {INT64_MAX}, {0}, {1}), "3x6");
    EXPECT_EQ(slice({9, 0}, {INT64_MIN, -1}, {0, 1}, {-1, 2}), "10x3");
    EXPECT_EQ(slice({5}, {2}, {0}, {1}), "0x6");
    EXPECT_EQ(slice({INT64_MIN}, {INT64_MAX}, {-1}, {INT64_MAX}), "10x1");
    EXPECT_EQ(slice({INT64_MAX}, {INT64_MIN}, {-1}, {INT64_MIN}), "10x1");
    EXPECT_HAS(slice({0}, {1}, {0}, {0}), "input steps: found 0");
    EXPECT_HAS(slice({0}, {1}, {2}, {1}), "found 2, expected an axis of rank 2");
}

TEST(IrShapeMove, GatherPadExpandTile) {
    const auto gather = [](const char *kind, Dims src, Dims at, int64_t axis) {
        Op op(1, kind);
        op.in(Tensor(1, F, src)).in(Tensor(2, I64, at)).s64("axis", axis);
        return ShapesOf(op);
    };
    EXPECT_EQ(gather("Gather", {5, 7}, {2, 3}, 0), "2x3x7");
    EXPECT_EQ(gather("Gather", {5, 7}, {}, -1), "5");
    EXPECT_HAS(gather("Gather", Dims(12, 1), {2, 2}, 0), "rank 13 is more than 12");
    EXPECT_EQ(gather("GatherElements", {5, 7}, {2, 9}, 1), "2x9");
    EXPECT_HAS(gather("GatherElements", {5, 7}, {6, 2}, 1), "found shape 6x2, expected to lie in 5x7");
    const auto pad = [](Dims pads, const char *mode) {
        Op op(1, "Pad");
        op.in(Tensor(1, F, {2, 3})).in(Tensor(2, I64, {(int64_t)pads.size()})).str("mode", mode);
        return ShapesOf(op, 1, {{2, pads}});
    };
    EXPECT_EQ(pad({0, 1, 2, 3}, "constant"), "4x7");
    EXPECT_EQ(pad({0, -1, 0, -1}, "edge"), "2x1");
    EXPECT_EQ(pad({1, 2, 1, 2}, "reflect"), "4x7");
    EXPECT_HAS(pad({2, 0, 0, 0}, "reflect"), "too much for mode reflect");
    EXPECT_HAS(pad({0, -4, 0, 0}, "constant"), "input pads: found -4 and 0 on axis 1 of 2x3");
    EXPECT_HAS(pad({0, 1, 2}, "constant"), "found 3 values, expected 4");
    const auto by_shape = [](const char *kind, Dims src, Dims shape) {
        Op op(1, kind);
        op.in(Tensor(1, F, src)).in(Tensor(2, I64, {(int64_t)shape.size()}));
        return ShapesOf(op, 1, {{2, shape}});
    };
    EXPECT_EQ(by_shape("Expand", {3, 1}, {2, 1, 4}), "2x3x4");
    EXPECT_HAS(by_shape("Expand", {3, 2}, {4}), "does not broadcast");
    EXPECT_EQ(by_shape("Tile", {3, 2}, {2, 0}), "6x0");
    EXPECT_HAS(by_shape("Tile", {3, 2}, {2}), "found 1 values, expected 2");
    EXPECT_HAS(by_shape("Tile", {3, 2}, {INT64_MAX, 1}), "overflows");
    EXPECT_HAS(by_shape("Expand", {1}, {INT64_MAX}), "its size overflows");
}

TEST(IrShapeMove, ShapeArithmetic) {
    const auto shape = [](int64_t start, int64_t end) {
        Op op(1, "Shape");
        op.in(Tensor(1, F, {2, 3, 4})).s64("start", start).s64("end", end);
        return ShapesOf(op);
    };
    EXPECT_EQ(shape(0, 3), "3");
    EXPECT_EQ(shape(-2, INT64_MAX), "2");
    EXPECT_EQ(shape(2, 1), "0");
    const auto range = [](int64_t start, int64_t limit, int64_t delta) {
        Op op(1, "Range");
        op.in(Tensor(1, I64, {1})).in(Tensor(2, I64, {1})).in(Tensor(3, I64, {1}));
        return ShapesOf(op, 1, {{1, {start}}, {2, {limit}}, {3, {delta}}});
    };
    EXPECT_EQ(range(0, 10, 3), "4");
    EXPECT_EQ(range(10, 0, -3), "4");
    EXPECT_EQ(range(0, -1, 1), "0");
    EXPECT_HAS(range(0, 1, 0), "delta 0");
    EXPECT_HAS(range(INT64_MIN, INT64_MAX, 1), "found start");
    Op of(1, "ConstantOfShape");
    of.in(Tensor(1, I64, {2}));
    EXPECT_EQ(ShapesOf(of, 1, {{1, {4, 5}}}), "4x5");
    Op negative(1, "ConstantOfShape");
    negative.in(Tensor(1, I64, {2}));
    EXPECT_HAS(ShapesOf(negative, 1, {{1, {4, -5}}}), "found -5");
    Op d2s(1, "DepthToSpace");
    d2s.in(Tensor(1, F, {1, 8, 2, 3})).s64("blocksize", 2);
    EXPECT_EQ(ShapesOf(d2s), "1x2x4x6");
    Op s2d(1, "SpaceToDepth");
    s2d.in(Tensor(1, F, {1, 2, 4, 5})).s64("blocksize", 2);
    EXPECT_HAS(ShapesOf(s2d), "attribute \"blocksize\": found 2, which does not fit src 1x2x4x5");
}

TEST(IrShapeResize, BySizesAndScales) {
    Op scales(1, "Interpolate");
    scales.in(Tensor(1, F, {1, 3, 5, 7})).str("mode", "nearest").str("data_format", "NCX").f32s("scales", {2.0f, 0.5f});
    EXPECT_EQ(ShapesOf(scales), "1x3x10x3");
    Op sizes(1, "Interpolate");
    sizes.in(Tensor(1, F, {1, 5, 7, 3})).str("mode", "bilinear").s64s("sizes", {4, 6});
    EXPECT_EQ(ShapesOf(sizes), "1x4x6x3");
    Op both(1, "Interpolate");
    both.in(Tensor(1, F, {1, 5, 7, 3})).str("mode", "nearest").s64s("sizes", {4, 6}).f32s("scales", {1, 1});
    EXPECT_HAS(ShapesOf(both), "found 2 of attribute sizes, attribute scales and input sizes, expected one");
    const auto resize = [](bool by_size, Dims sizes_in) {
        Op op(1, "Resize");
        op.in(Tensor(1, F, {1, 3, 5, 7})).skip();
        if (by_size) op.skip().in(Tensor(3, I64, {(int64_t)sizes_in.size()}));
        return ShapesOf(op, 1, {{3, sizes_in}});
    };
    EXPECT_EQ(resize(true, {1, 3, 10, 14}), "1x3x10x14");
    EXPECT_HAS(resize(true, {10, 14}), "input 3: found shape 2, expected 4 (one value per axis)");
    EXPECT_HAS(resize(false, {1}), "found none of scales (input 2) and sizes (input 3)");
    Graph graph;
    Op by_scale(1, "Resize");
    by_scale.in(Tensor(1, F, {1, 3, 5, 7})).skip().in(Tensor(2, F, {2})).out(Unknown(9)).s64s("axes", {2, 3});
    ASSERT_EQ(graph.constant<float>(Tensor(2, F, {2}), {2.0f, 1.5f}), QDQ_OK);
    ASSERT_EQ(graph.add(by_scale), QDQ_OK) << graph.text();
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.dims(9), (Dims{1, 3, 10, 10}));
}

TEST(IrShape, DisagreementNamesBoth) {
    Graph graph;
    Op op(4, "ReLU", "r");
    op.in(Tensor(1, F, {2, 3})).out(Tensor(2, F, {3, 2}));
    EXPECT_FAILS(graph, graph.add(op), QDQ_E_BAD_SHAPE, "op 4 \"r\" (ReLU): output 0: found shape 3x2, expected 2x3");
    Op part(4, "ReLU", "r");
    part.in(Tensor(1, F, {2, 3})).out(Tensor(2, F, {QDQ_DIM_UNKNOWN, 3}));
    ASSERT_EQ(graph.add(part), QDQ_OK) << graph.text();
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.dims(2), (Dims{2, 3}));
    EXPECT_EQ(graph.desc(2).strides[0], 3) << "strides follow the shape";
}

TEST(IrShape, InferAgainForOtherShapes) {
    Graph graph;
    Op op(1, "MatMul");
    op.in(Unknown(1, F)).in(Tensor(2, F, {3, 4})).out(Unknown(3, F));
    ASSERT_EQ(graph.add(op), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK);
    EXPECT_EQ(graph.desc(3).ndims, QDQ_NDIMS_UNKNOWN);
    const qdq_tensor_desc a = Tensor(1, F, {9, 3}), b = graph.desc(2);
    const qdq_tensor_desc *in[] = {&a, &b};
    qdq_tensor_desc c = Unknown(3, F), *out[] = {&c};
    ASSERT_EQ(qdqi_op_infer(graph.get(), &graph.op(1), in, out, graph.err()), QDQ_OK) << graph.text();
    EXPECT_EQ(c.dims[0], 9);
    EXPECT_EQ(c.dims[1], 4);
    const qdq_tensor_desc bad = Tensor(1, F, {9, 2});
    in[0] = &bad;
    c = Unknown(3, F);
    EXPECT_EQ(qdqi_op_infer(graph.get(), &graph.op(1), in, out, graph.err()), QDQ_E_BAD_SHAPE);
}

} // namespace
