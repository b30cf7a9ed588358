// Rewrites and pattern fusion: kinds of fault that are reported of int8 backends, each with its right value.
#include "fusion/field.h"

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

class FieldFusion : public Field {};

// F3
TEST_F(FieldFusion, QuantizedAddRoundsTheRealSum) {
    const Id a = Dq(U8({1}, {158}), {0.040562573820352554f}, {112}),
             b = Dq(U8({1}, {136}), {0.08881603181362152f}, {126});
    Expect(Q(Op("Add", {a, b}), kU8, {0.09029635787010193f}, {124}), {154});
}

// F4: accumulators near ties, through every rounding
TEST_F(FieldFusion, AccumulatorsBesideTiesRoundOnce) {
    const Id a = Dq(S8({8, 1}, {1, 2, 3, 5, -1, -3, -5, 7}), {1.0f}), w = Dq(W(kS8, {1, 1}, {1}), {1.0f});
    Expect(Q(Op("MatMul", {a, w}), kS8, {2.0f}), {0, 1, 2, 2, 0, -2, -2, 4}); // half to even
}

// F5: Relu is not the lower bound of the type unless the zero point is
TEST_F(FieldFusion, ReluStaysWhenTheZeroPointIsInside) {
    const struct {
        qdq_dtype dtype;
        int64_t zp, real;
        double want;
    } rows[] = {{kS8, 0, -3, 0}, {kU8, 128, -3, 128}, {kU8, 10, -5, 10}, {kU8, 0, -5, 0}, {kS8, -128, -4, -128}};
    for (const auto &row : rows) {
        Clear();
        const Id x = Dq(S8({1, 1, 1, 1}, {row.real}), {1.0f}), w = Dq(W(kS8, {1, 1, 1, 1}, {1}), {1.0f});
        const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
        Expect(Q(Op("ReLU", {c}), row.dtype, {1.0f}, {row.zp}), {row.want});
        Clear();
        const Id m = Op("MatMul", {Dq(S8({1, 1}, {row.real}), {1.0f}), Dq(W(kS8, {1, 1}, {1}), {1.0f})});
        Expect(Q(Op("ReLU", {m}), row.dtype, {1.0f}, {row.zp}), {row.want});
    }
}

// F6
TEST_F(FieldFusion, ReluBeforeSixteenBits) {
    Expect(Q(Op("ReLU", {Dq(S8({2}, {-3, 3}), {1.0f})}), QDQ_DTYPE_U16, {1.0f}, {32768}), {32768, 32771});
}

// F7
TEST_F(FieldFusion, ClipInsideTheRangeOfTheQuantizeStays) {
    const Id x = Dq(S8({3}, {7, -2, 3}), {1.0f});
    Expect(Q(Op("Clamp", {x}, {AttrF("min", 0), AttrF("max", 6)}), kU8, {0.05f}), {120, 0, 60});
    Clear();
    const Id m = Op("MatMul", {Dq(S8({3, 1}, {7, -2, 3}), {1.0f}), Dq(W(kS8, {1, 1}, {1}), {1.0f})});
    Expect(Q(Op("Clamp", {m}, {AttrF("min", 0), AttrF("max", 6)}), kU8, {0.05f}), {120, 0, 60});
}

// F9
TEST_F(FieldFusion, IntegerBiasHasItsOwnScale) {
    const Id x = Dq(U8({1, 1, 1, 1}, {0}), {0.5f}), w = Dq(W(kS8, {3, 1, 1, 1}, {1, 1, 1}), {1.0f, 2.0f, 4.0f}, {}, 0);
    const Id b = Dq(W(QDQ_DTYPE_S32, {3}, {10, 10, 10}), {0.5f, 1.0f, 2.0f}, {}, 0);
    Expect(Op("Convolution", {x, w, b}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), {5, 10, 20});
    Clear();
    const Id x1 = Dq(U8({1, 1, 1, 1}, {0}), {0.5f}), w1 = Dq(W(kS8, {3, 1, 1, 1}, {1, 1, 1}), {2.0f});
    const Id b1 = Dq(W(QDQ_DTYPE_S32, {3}, {10, 10, 10}), {1.0f});
    Expect(Op("Convolution", {x1, w1, b1}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), {10, 10, 10});
    Clear(); // a scale that is not src * weights
    const Id x2 = Dq(U8({1, 1}, {3}), {0.5f}), w2 = Dq(W(kS8, {1, 2}, {1, 2}), {2.0f});
    const Id b2 = Dq(W(QDQ_DTYPE_S32, {2}, {10, -10}), {0.25f, 0.75f}, {}, 0);
    Expect(Q(Op("MatMul", {x2, w2, b2}), kS8, {0.5f}), {11, -3});
}

// F10, F11: a reshape keeps the type, and an int32 Dequantize is no reason for a Quantize
TEST_F(FieldFusion, ReshapeAfterDequantizeKeepsNegativeValues) {
    const Id x = Dq(S8({4}, {12, -45, 7, -3}), {0.02f});
    Expect(Op("StaticReshape", {x}, {AttrIs("shape", {2, 2}), AttrB("special_zero", false)}), {0.24, -0.9, 0.14, -0.06},
           0);
    Clear();
    const Id b = Dq(W(QDQ_DTYPE_S32, {2}, {100, -300}), {0.01f});
    const Id r = Op("StaticReshape", {b}, {AttrIs("shape", {1, 2}), AttrB("special_zero", false)});
    Expect(Op("Add", {F({1, 2}, {1, 1}), r}), {2, -2}, 0);
}

// F12, F30
TEST_F(FieldFusion, NegativeScalesReverseTheOrder) {
    const Id x = Dq(S8({1, 1, 2}, {1, 2}), {-1.0f});
    Expect(Q(Op("MaxPool", {x}, PoolAttrs({2}, {1}, {0}, {0})), kS8, {-1.0f}), {1});
    Clear();
    Expect(Q(Op("ReduceMax", {Dq(S8({1, 2}, {1, 2}), {-1.0f})}, {AttrIs("axes", {1}), AttrB("keep_dims", true)}), kS8,
             {-1.0f}),
           {1});
    Clear();
    Expect(Q(Op("ReLU", {Dq(S8({2}, {1, -1}), {-2.0f})}), kS8, {1.0f}), {0, 2});
    Clear();
    Expect(Op("Multiply", {Op("ReLU", {F({2}, {1, -1})}), net.Floats({1}, {-2.0f}, true)}), {-2, 0});
    Clear();
    const Id m = Op("MatMul", {Dq(S8({2, 1}, {3, -3}), {-1.0f}), Dq(W(kS8, {1, 1}, {2}), {1.0f})});
    Expect(Q(Op("ReLU", {m}), kU8, {0.5f}), {0, 12});
    Clear();
    Expect(Q(Op("Clamp", {Dq(U8({3}, {0, 5, 9}), {-1.0f}, {5})}, {AttrF("min", -2), AttrF("max", 1)}), kS8, {-1.0f}),
           {-1, 0, 2});
}

// F13
TEST_F(FieldFusion, AveragesAreRoundedNotTruncated) {
    const Id x = Dq(S8({1, 1, 2}, {3, 4}), {1.0f});
    auto attrs = PoolAttrs({2}, {1}, {0}, {0});
    attrs.push_back(AttrB("exclude_pad", false));
    Expect(Q(Op("AvgPool", {x}, attrs), kS8, {1.0f}), {4});
    Clear();
    const Id y = Dq(S8({1, 1, 2}, {3, 4}), {1.0f});
    const Id up =
        Op("Interpolate", {y}, {AttrS("mode", "linear"), AttrFs("scales", {2.0f}), AttrS("data_format", "NCX")});
    Expect(Q(up, kS8, {0.5f}), {6, 6, 8, 8}, 0); // 3, 3.25, 3.75, 4: 6.5 and 7.5 to even
}

// F15
TEST_F(FieldFusion, ScalesOfDifferentTypesAreNotTheSame) {
    const Id q =
        net.Op1("QuantizeLinear", {F({1}, {10.0f}), net.Floats({}, {0.1f}, true)}, {AttrS("output_dtype", "s8")});
    ASSERT_NE(q, kMissing) << net.error;
    Expect(Op("DequantizeLinear", {q, net.Floats({}, {0.1f}, true, QDQ_DTYPE_F16)}), {10.0}, 0);
    Clear();
    const Id x = X(kS8, {1}, {100});
    Expect(Op("DequantizeLinear", {x, net.Floats({}, {0.0999755859375f}, true)}), {9.99755859375});
}

// F17
TEST_F(FieldFusion, DequantizeThatIsAGraphOutputToo) {
    const Id x = Dq(U8({1, 2}, {3, 7}), {0.5f}, {1}), w = Dq(W(kS8, {2, 1}, {1, 2}), {1.0f});
    const Id y = Q(Op("MatMul", {x, w}), kS8, {1.0f});
    Same({x, y}, 2);
    EXPECT_EQ(net.F32(x, 0), 1.0f);
    EXPECT_EQ(net.F32(y, 0), 7.0f);
}

// F18: tied initializers
TEST_F(FieldFusion, TwoProductsOfOneInitializer) {
    const Id w = W(kS8, {2, 2}, {1, -2, 3, 4});
    const Id a = Op("MatMul", {Dq(U8({1, 2}, {1, 2}), {1.0f}), Dq(w, {1.0f})});
    const Id b = Op("MatMul", {Dq(U8({1, 2}, {3, 1}), {1.0f}), Dq(w, {0.5f})}, {AttrB("transpose_b", true)});
    Same({Q(a, kS8, {1.0f}), Q(b, kS8, {0.5f})}, 2);
}

// F19, F20
TEST_F(FieldFusion, OneDequantizeForThreeConvolutions) {
    const Id x = Dq(U8({1, 2, 3, 3}, Ramp(18, 0, 255)), {0.1f}, {7});
    std::vector<Id> outs;
    for (int i = 0; i < 3; i++) {
        const Id w = Dq(W(kS8, {2, 2, 1, 1}, {1 + i, -2, 3, 4}), {0.25f});
        outs.push_back(Q(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kU8, {0.5f}, {100}));
    }
    Same(outs, 3);
    Clear();
    const Id y = Dq(U8({1, 2, 3, 3}, Ramp(18, 0, 255)), {0.1f}, {7}),
             w = Dq(W(kS8, {2, 2, 1, 1}, {1, -2, 3, 4}), {0.25f});
    const Id c = Op("Convolution", {y, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), q = Q(c, kS8, {0.5f}, {3});
    outs = {c};
    for (int i = 0; i < 2; i++) {
        const Id w2 = Dq(W(kS8, {1, 2, 1, 1}, {5, i - 3}), {0.25f});
        outs.push_back(Q(Op("Convolution", {Dq(q, {0.5f}, {3}), w2}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kS8, {2.0f}));
    }
    Same(outs, 0);
}

// F22, F34, Z8
TEST_F(FieldFusion, ConcatThatIsAnOutputAndConcatOfOne) {
    const Id c = Op("Concat", {Dq(S8({1, 2}, {1, 2}), {1.0f}), Dq(S8({1, 1}, {3}), {2.0f})}, {AttrI("axis", 1)});
    Same({c, Q(c, kS8, {1.0f})}, 0);
    Clear();
    const Id one = Op("Concat", {Dq(S8({1, 2}, {1, -2}), {0.5f}, {3})}, {AttrI("axis", 1)});
    Expect(Q(one, kS8, {0.5f}, {3}), {1, -2});
    Clear();
    const Id two =
        Op("Concat", {Dq(S8({1, 2}, {1, 2}), {1.0f}), Dq(U8({1, 2}, {131, 120}), {0.5f}, {128})}, {AttrI("axis", 1)});
    Expect(Q(two, kS8, {0.5f}), {2, 4, 3, -8});
}

// F25
TEST_F(FieldFusion, PadInTheRealDomain) {
    const Id x = Dq(S8({1, 2}, {3, 4}), {0.5f}, {-5});
    Expect(Q(Op("Pad", {x, W(QDQ_DTYPE_S64, {4}, {0, 1, 0, 1})}), kS8, {0.5f}, {-5}), {-5, 3, 4, -5});
    Clear();
    const Id y = Dq(S8({1, 2}, {3, 4}), {0.5f}, {-5});
    Expect(Q(Op("Pad", {y, W(QDQ_DTYPE_S64, {4}, {0, 1, 0, 0}), net.Floats({}, {1.0f}, true)}), kS8, {0.5f}, {-5}),
           {-3, 3, 4});
}

// F27
TEST_F(FieldFusion, ScaleStaysOutsideOfTheActivation) {
    const Id x = Dq(S8({1, 1, 1, 1}, {2}), {0.5f}), w = Dq(W(kS8, {1, 1, 1, 1}, {1}), {1.0f});
    const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
    Expect(Q(Op("Sigmoid", {c}), kU8, {1.0f / 256}), {187});
}

// F29
TEST_F(FieldFusion, ScaleBesideOneIsNotOne) {
    Expect(Dq(U8({1}, {127}), {1.0000009f}), {127.0 * static_cast<double>(1.0000009f)});
    Clear();
    const Id m = Op("MatMul", {Dq(U8({1, 1}, {127}), {1.0000009f}), Dq(W(kS8, {1, 1}, {100}), {1.0f})});
    Expect(m, {12700.0 * static_cast<double>(1.0000009f)});
}

// F33
TEST_F(FieldFusion, ScalarAndOneElementParametersAreTheSame) {
    for (const Dims &s : {Dims{}, Dims{1}})
        for (const Dims &z : {Dims{}, Dims{1}}) {
            Clear();
            const Id x = Op("DequantizeLinear", {U8({1, 2}, {5, 9}), net.Floats(s, {0.5f}, true), W(kU8, z, {4})});
            const Id w = Op("DequantizeLinear", {W(kS8, {2, 1}, {1, 2}), net.Floats(s, {1.0f}, true)});
            Expect(Op("QuantizeLinear", {Op("MatMul", {x, w}), net.Floats(z, {0.5f}, true), W(kU8, s, {10})}), {21});
        }
}

// Explicit inner pairs stay
TEST_F(FieldFusion, InnerQuantizeDequantizeRounds) {
    const Id x = Dq(S8({1, 2}, {1, 1}), {0.3f}), w = Dq(W(kS8, {2, 1}, {1, 1}), {1.0f});
    const Id inner = Dq(Q(Op("MatMul", {x, w}), kS8, {1.0f}), {1.0f}); // 0.6 -> 1
    Expect(Q(Op("ReLU", {inner}), kS8, {0.1f}), {10}, 0);
}

// ---- zero sizes ----

TEST_F(FieldFusion, EmptyTensorsGiveEmptyResults) { // Z1, Z3
    Expect(Q(Op("MatMul", {Dq(U8({0, 4}, {}), {0.5f}, {3}), Dq(W(kS8, {4, 2}, Ramp(8, -9, 9)), {0.1f})}), kS8, {1.0f}),
           {});
    Clear();
    Expect(Q(Op("MatMul", {Dq(U8({2, 4}, Ramp(8, 0, 255)), {0.5f}, {3}), Dq(W(kS8, {4, 0}, {}), {0.1f})}), kS8, {1.0f}),
           {});
    Clear(); // an empty sum is 0
    Expect(Q(Op("MatMul", {Dq(U8({2, 0}, {}), {0.5f}, {3}), Dq(W(kS8, {0, 2}, {}), {0.1f})}), kS8, {1.0f}, {5}),
           {5, 5, 5, 5});
    Clear();
    const Id x = Dq(U8({0, 2, 3, 3}, {}), {0.5f}, {3}), w = Dq(W(kS8, {2, 2, 1, 1}, {1, 2, 3, 4}), {0.1f});
    Expect(Q(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kS8, {1.0f}), {});
    Clear();
    const Id x1 = Dq(U8({1, 2, 3, 3}, Ramp(18, 0, 255)), {0.5f}, {3}), w1 = Dq(W(kS8, {0, 2, 1, 1}, {}), {0.1f});
    Expect(Q(Op("Convolution", {x1, w1}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kS8, {1.0f}), {});
    Clear();
    Expect(Q(Op("ReLU", {Dq(S8({2, 0}, {}), Reals{0.5f}, {1})}), kU8, {1.0f}), {});
    Clear();
    Expect(Q(Op("GlobalAveragePool", {Dq(U8({0, 3, 2, 2}, {}), {0.5f}, {1})}), kU8, {1.0f}), {});
    Clear();
    Expect(
        Q(Op("Concat", {Dq(S8({1, 0}, {}), {1.0f}), Dq(S8({1, 2}, {4, 5}), {1.0f})}, {AttrI("axis", 1)}), kS8, {1.0f}),
        {4, 5});
}

// F31: what has the parts of a quantized chain is in one, or says in the fixed words why not
TEST_F(FieldFusion, ChainsFuseOrSayWhyNot) {
    for (int v = 0; v < 96; v++) {
        Clear();
        const bool conv = v & 1, bias = v & 2, u8_weights = v & 4, zp = v & 8, runtime = v & 16;
        const int64_t axis = v / 32; // none, output channels, input channels
        const qdq_dtype type = u8_weights ? kU8 : kS8;
        const Dims dims = conv ? Dims{3, 2, 1, 1} : Dims{2, 3};
        const Longs values = u8_weights ? Ramp(6, 0, 255) : Ramp(6, -128, 127);
        const int64_t wide = conv == (axis == 1) ? 0 : 1;
        Reals scales = {0.02f};
        if (axis) scales = dims[static_cast<size_t>(wide)] == 3 ? Reals{0.01f, 0.02f, 0.03f} : Reals{0.01f, 0.02f};
        const Id x = Dq(conv ? U8({1, 2, 4, 4}, Ramp(32, 0, 255)) : U8({5, 2}, Ramp(10, 0, 255)), {0.1f}, {7});
        std::vector<Id> in = {x, Dq(X(type, dims, values), scales, zp ? Longs{3} : Longs{}, wide)};
        if (!runtime) net.values[static_cast<size_t>(net.nodes.back().in[0])].is_constant = true;
        if (bias) in.push_back(Dq(W(QDQ_DTYPE_S32, {3}, {10, -20, 30}), {0.002f}));
        const Id y = conv ? Op("Convolution", in, ConvAttrs({1, 1}, {0, 0}, {0, 0})) : Op("MatMul", in);
        const Id q = Q(Op("ReLU", {y}), kU8, {0.5f}, {100});
        Same({q});
        std::string error;
        GraphPtr graph(net.Graph({q}, &error));
        qdq_explanation *e = nullptr;
        ASSERT_EQ(qdq_explanation_create(graph.get(), engine, nullptr, &e, nullptr), QDQ_OK) << error;
        ASSERT_EQ(qdq_explanation_n_parts(e), 1u);
        const qdq_explain_part *part = qdq_explanation_part(e, 0);
        bool integer = false;
        for (size_t i = 0; i < part->n_steps; i++)
            integer = integer || std::string(part->steps[i].note).find("8s8") != std::string::npos ||
                      std::string(part->steps[i].note).find("8u8") != std::string::npos;
        EXPECT_TRUE(integer || part->n_reasons > 0) << net.Text() << "floats between integers, and no reason";
        for (size_t i = 0; i < part->n_reasons; i++)
            EXPECT_STRNE(part->reasons[i].sentence, "");
        qdq_explanation_destroy(&e);
    }
}

TEST_F(FieldFusion, DynamicQuantizationOfNothing) { // Z2
    std::vector<Id> out;
    ASSERT_TRUE(
        net.Op("DynamicQuantizeLinear", {F({0, 8}, {})}, {}, {QDQ_DTYPE_UNDEF, QDQ_DTYPE_UNDEF, QDQ_DTYPE_UNDEF}, &out))
        << net.error;
    EXPECT_EQ(Count(net.At(out[0]).dims), 0);
    EXPECT_TRUE(std::isfinite(net.F32(out[1], 0)));
    EXPECT_GT(net.F32(out[1], 0), 0.0f);
    Same(out, 0);
}

TEST_F(FieldFusion, OddTailsOfAnIntegerProduct) { // Z5
    const Id a = Dq(S8({3, 20}, Ramp(60, -128, 127)), {1.0f}), b = Dq(W(kS8, {20, 4}, Ramp(80, -128, 127, 53)), {1.0f});
    const Id sum = Op("Add", {Op("MatMul", {a, b}), Dq(S8({3, 4}, Ramp(12, -128, 127)), {1.0f}, {3})});
    Same({Q(sum, QDQ_DTYPE_S32, {1.0f}), Q(sum, kS8, {300.0f})}, 3);
}

} // namespace
} // namespace qdq_test
