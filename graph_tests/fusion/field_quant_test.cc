// Quantize and Dequantize on their own and fused, TensorFlow's forms included: kinds of fault that are reported of int8
// backends, each with its right value.
#include "fusion/field.h"

#include <limits>

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;
const float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class FieldQuant : public Field {
  protected:
    Id QL(Id x, qdq_dtype dtype, float scale, int64_t zp, qdq_dtype scale_dtype = QDQ_DTYPE_F32) {
        return Op("QuantizeLinear", {x, net.Floats({}, {scale}, true, scale_dtype), W(dtype, {}, {zp})});
    }
    Id DqL(Id x, float scale, int64_t zp, qdq_dtype scale_dtype = QDQ_DTYPE_F32) {
        return Op("DequantizeLinear", {x, net.Floats({}, {scale}, true, scale_dtype), W(net.At(x).dtype, {}, {zp})});
    }
    // The op, its spec's sibling, and behind an op that leaves the values alone: all three.
    void ExpectQ(qdq_dtype dtype, const Reals &x, float scale, int64_t zp, const std::vector<double> &want) {
        const Dims dims = {static_cast<int64_t>(x.size())};
        Clear();
        Expect(Q(F(dims, x), dtype, {scale}, {zp}), want);
        Clear();
        Expect(QL(F(dims, x), dtype, scale, zp), want);
        Clear();
        Expect(Q(Op("Multiply", {F(dims, x), net.Floats({1}, {1.0f}, true)}), dtype, {scale}, {zp}), want);
    }
    void ExpectDynamic(const Reals &x, float scale, double zp, const std::vector<double> &want) {
        Clear();
        const Id in = F({static_cast<int64_t>(x.size())}, x);
        std::vector<Id> out;
        ASSERT_TRUE(net.Op("DynamicQuantizeLinear", {in}, {}, std::vector<qdq_dtype>(3, QDQ_DTYPE_UNDEF), &out))
            << net.error;
        EXPECT_EQ(net.F32(out[1], 0), scale);
        EXPECT_EQ(net.F32(out[2], 0), zp);
        for (size_t i = 0; i < want.size(); i++)
            EXPECT_EQ(net.F32(out[0], static_cast<int64_t>(i)), want[i]) << i;
        Same(out, 0);
    }
};

TEST_F(FieldQuant, TiesGoToEven) { // Q1, Q2
    ExpectQ(kU8, {.25f, .75f, 1.25f, 1.75f}, .5f, 0, {0, 2, 2, 4});
    ExpectQ(kS8, {5, -5, 7, -7}, 2, 0, {2, -2, 4, -4});
    ExpectDynamic({-127, 128, .5f}, 1, 127, {0, 255, 127});
    ExpectDynamic({-253, 257}, 2, 126, {0, 254});
}

TEST_F(FieldQuant, HalfFloatsRoundTheirQuotient) { // Q3
    const Id x = net.Floats({2}, {0.050018310546875f, -0.050018310546875f}, false, QDQ_DTYPE_F16);
    Expect(QL(x, kS8, 0.0999755859375f, 0, QDQ_DTYPE_F16), {1, -1});
}

TEST_F(FieldQuant, WholeRangeOfTheType) { // Q4, Q14, Q15
    ExpectQ(kS8, {-129, -128, -127, 127, 128}, 1, 0, {-128, -128, -127, 127, 127});
    ExpectQ(kU8, {-5, -25.5f, 30}, .1f, 0, {0, 0, 255});
    ExpectQ(kS8, {100, -100}, 1, 50, {127, -50}); // the sum is clamped, not wrapped
    Clear();
    const Id m = Op("MatMul", {Dq(S8({1, 1}, {100}), {1.0f}), Dq(W(kS8, {1, 1}, {1}), {1.0f})});
    Expect(Q(m, kS8, {1.0f}, {50}), {127});
}

TEST_F(FieldQuant, TrueQuotients) { // Q5
    for (const auto &[x, scale, want] :
         {std::tuple<float, float, double>{.59f, .02f, 30}, {.09f, .02f, 5}, {.0015f, .001f, 2}})
        ExpectQ(kU8, {x}, scale, 0, {want});
}

TEST_F(FieldQuant, RequantizationBesideATieIsWithinTheContract) { // Q6: product, image, copy
    for (const auto &[q, scale] : {std::pair<int64_t, float>{59, .02f}, {9, .02f}, {15, .01f}}) {
        Clear();
        const Id m = Op("MatMul", {Dq(U8({1, 1}, {q}), {.01f}), Dq(W(kS8, {1, 1}, {1}), {1.0f})});
        Same({Q(m, kU8, {scale})});
        Clear();
        const Id c = Op("Convolution", {Dq(U8({1, 1, 1, 1}, {q}), {.01f}), Dq(W(kS8, {1, 1, 1, 1}, {1}), {1.0f})},
                        ConvAttrs({1, 1}, {0, 0}, {0, 0}));
        Same({Q(c, kU8, {scale})});
        Clear();
        Same({Q(Dq(U8({1}, {q}), {.01f}), kU8, {scale})});
    }
}

TEST_F(FieldQuant, SameBytesOnAnyNumberOfThreads) { // Q8
    for (const int64_t n : {1, 7, 63, 64, 65, 200, 4099}) {
        Reals x;
        for (int64_t i = 0; i < n; i++)
            x.push_back(0.00187f * (static_cast<float>(i % 97) - 48.5f));
        for (const int threads : {1, 2, 3, 8}) {
            Clear();
            qdq_engine_options options = {};
            options.struct_bytes = sizeof options;
            options.n_threads = threads;
            qdq_engine *own = nullptr;
            ASSERT_EQ(qdq_engine_create(&options, &own, nullptr), QDQ_OK);
            const Outcome o = RunFused(net, {Q(F({n}, x), kS8, {.00187f})}, own, false);
            EXPECT_EQ(o.failure, "") << n << " on " << threads; // a lone Quantize is compared to the byte
            qdq_engine_destroy(&own);
        }
    }
}

TEST_F(FieldQuant, DifferencesBeforeScales) { // Q9, Q17, Q24
    Expect(DqL(X(QDQ_DTYPE_U4, {2}, {15, 14}), 5000, 15, QDQ_DTYPE_F16), {0, -5000});
    Clear();
    Expect(DqL(U8({1}, {3}), 2, 10), {-14});
    Clear();
    Expect(Dq(U8({1}, {3}), {2.0f}, {10}), {-14});
    Clear();
    Expect(DqL(X(QDQ_DTYPE_U16, {2}, {65535, 65504}), 1, 65530, QDQ_DTYPE_F16), {5, -26});
}

TEST_F(FieldQuant, InfinitiesAndNans) { // Q11, Q12: NaN gives the zero point, in every lane and tail
    ExpectQ(kU8, {kInf, -kInf, 3e9f, -3e9f}, 1, 133, {255, 0, 255, 0});
    for (const int64_t n : {1, 15, 16, 17, 31, 65}) {
        Reals x(static_cast<size_t>(n), 1.0f);
        std::vector<double> s8(static_cast<size_t>(n), -4.0), u8(static_cast<size_t>(n), 134.0);
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
            x[static_cast<size_t>(at)] = kNan;
            s8[static_cast<size_t>(at)] = -5;
            u8[static_cast<size_t>(at)] = 133;
        }
        for (const bool linear : {false, true}) {
            Clear();
            Expect(linear ? QL(F({n}, x), kS8, 1, -5) : Q(F({n}, x), kS8, {1.0f}, {-5}), s8);
            Clear();
            Expect(linear ? QL(F({n}, x), kU8, 1, 133) : Q(F({n}, x), kU8, {1.0f}, {133}), u8);
        }
    }
}

TEST_F(FieldQuant, ZeroScalesAreRefused) { // Q13
    EXPECT_EQ(net.Op1("Quantize", {F({1}, {1})}, Quant({0.0f}, {}, 1), kS8), kMissing);
    EXPECT_EQ(net.Op1("Dequantize", {S8({1}, {1})}, Quant({0.0f}, {}, 1)), kMissing);
    EXPECT_EQ(net.Op1("Quantize", {F({1}, {1})}, Quant({kNan}, {}, 1), kS8), kMissing);
    EXPECT_EQ(net.Op1("QuantizeLinear", {F({1}, {1}), net.Floats({}, {0}, true), W(kS8, {}, {0})}), kMissing);
    EXPECT_EQ(net.Op1("Dequantize", {S8({1}, {1})}, Quant({kInf}, {}, 1)), kMissing);
    EXPECT_NE(net.error, "");
}

TEST_F(FieldQuant, IntegersOf32Bits) { // Q18: strict; Q19: all of the range
    EXPECT_EQ(net.Op1("DequantizeLinear",
                      {X(QDQ_DTYPE_S32, {1}, {100}), net.Floats({}, {.5f}, true), W(QDQ_DTYPE_S32, {}, {10})}),
              kMissing);
    EXPECT_NE(net.error.find("zero point"), std::string::npos) << net.error;
    Clear();
    Expect(Dq(X(QDQ_DTYPE_S32, {2}, {100, -7}), {.5f}), {50, -3.5});
    Clear();
    Expect(Q(F({3}, {4e9f, -4e9f, 2147483520.0f}), QDQ_DTYPE_S32, {1.0f}), {2147483647.0, -2147483648.0, 2147483520.0});
}

TEST_F(FieldQuant, RangesOfTensorFlow) { // Q20, T5, X17
    const auto v2 = [this](const Dims &dims, const Reals &x, const Reals &lo, const Reals &hi,
                           const std::vector<Attr> &attrs, qdq_dtype dtype, std::vector<Id> *out) {
        const bool sliced = attrs.size() > 1 && attrs[1].name == "axis";
        const Dims range = sliced ? Dims{static_cast<int64_t>(lo.size())} : Dims{};
        return net.Op("QuantizeV2", {F(dims, x), net.Floats(range, lo, true), net.Floats(range, hi, true)}, attrs,
                      {dtype, QDQ_DTYPE_F32, QDQ_DTYPE_F32}, out);
    };
    std::vector<Id> out;
    ASSERT_TRUE(v2({3}, {-1, 0, 2}, {-1}, {2}, {AttrS("mode", "SCALED"), AttrS("T", "quint8")}, kU8, &out) ||
                v2({3}, {-1, 0, 2}, {-1}, {2}, {AttrS("mode", "SCALED")}, kU8, &out))
        << net.error;
    EXPECT_EQ(net.F32(out[1], 0), 0.0f); // negatives are clipped: the range that the integers have
    EXPECT_EQ(net.F32(out[2], 0), 2.0f);
    Expect(out[0], {0, 0, 255}, 0);
    Clear();
    const Id narrow =
        net.Op1("TFDequantize", {S8({3}, {-127, 0, 127}), net.Floats({}, {-128}, true), net.Floats({}, {100}, true)},
                {AttrS("mode", "SCALED"), AttrB("narrow_range", true)});
    ASSERT_NE(narrow, kMissing) << net.error;
    Expect(narrow, {-128, 0, 128}, 0);
    Clear(); // one channel is one range
    ASSERT_TRUE(v2({2, 1, 2}, {-1, .5f, 1, 0}, {-1}, {1}, {AttrS("mode", "SCALED"), AttrI("axis", 1)}, kS8, &out))
        << net.error;
    const Id per_channel = out[0];
    ASSERT_TRUE(v2({2, 1, 2}, {-1, .5f, 1, 0}, {-1}, {1}, {AttrS("mode", "SCALED")}, kS8, &out)) << net.error;
    for (int64_t i = 0; i < 4; i++)
        EXPECT_EQ(net.F32(per_channel, i), net.F32(out[0], i));
    Same({per_channel, out[0]}, 0);
}

TEST_F(FieldQuant, BadRangesOfTensorFlowAreErrors) { // T1, T2, T3, T6
    const auto refused = [this](const Dims &range, int64_t axis, const char *mode, const char *round) {
        Clear();
        const Reals lo(static_cast<size_t>(Count(range)), -1.0f), hi(static_cast<size_t>(Count(range)), 1.0f);
        std::vector<Attr> attrs = {AttrS("mode", mode), AttrI("axis", axis)};
        if (round) attrs.push_back(AttrS("round_mode", round));
        std::vector<Id> out;
        const bool ok =
            net.Op("QuantizeV2", {F({2, 4}, Reals(8, .5f)), net.Floats(range, lo, true), net.Floats(range, hi, true)},
                   attrs, {kS8, QDQ_DTYPE_F32, QDQ_DTYPE_F32}, &out);
        EXPECT_TRUE(ok || !net.error.empty());
        const bool back =
            net.Op1("TFDequantize", {S8({2, 4}, Longs(8, 1)), net.Floats(range, lo, true), net.Floats(range, hi, true)},
                    {AttrS("mode", mode), AttrI("axis", axis)}) == kMissing;
        return !ok && (back || round);
    };
    EXPECT_FALSE(refused({}, -1, "SCALED", nullptr));
    EXPECT_FALSE(refused({4}, 1, "SCALED", nullptr));
    EXPECT_TRUE(refused({2}, -1, "SCALED", nullptr));
    EXPECT_TRUE(refused({12}, -1, "SCALED", nullptr));
    EXPECT_TRUE(refused({0}, -1, "SCALED", nullptr));
    EXPECT_TRUE(refused({3}, 1, "SCALED", nullptr));
    EXPECT_TRUE(refused({}, 2, "SCALED", nullptr)); // axis = rank
    EXPECT_TRUE(refused({}, 5, "SCALED", nullptr));
    EXPECT_TRUE(refused({}, -4, "SCALED", nullptr));
    EXPECT_TRUE(refused({}, -1, "MIN_FIRST", "HALF_TO_EVEN"));
    EXPECT_FALSE(refused({}, -1, "SCALED", "HALF_TO_EVEN"));
}

TEST_F(FieldQuant, DynamicRangesOfNothingAndOfAlmostNothing) { // Q21, Q22
    ExpectDynamic({0, 0, 0}, 1, 0, {0, 0, 0});
    for (const float tiny : {1e-6f, 1e-38f, 1e-40f, 1e-45f}) {
        Clear();
        std::vector<Id> out;
        ASSERT_TRUE(net.Op("DynamicQuantizeLinear", {F({3}, {0, tiny, -tiny})}, {},
                           std::vector<qdq_dtype>(3, QDQ_DTYPE_UNDEF), &out))
            << net.error;
        EXPECT_GT(net.F32(out[1], 0), 0.0f) << tiny;
        EXPECT_TRUE(std::isfinite(net.F32(out[1], 0)));
        EXPECT_EQ(net.F32(out[0], 0), net.F32(out[2], 0)) << "0 is the zero point";
        Same(out, 0);
    }
    Clear(); // channels of other magnitudes do not touch each other
    const Id w = Dq(W(kS8, {2, 3}, {0, 1, -127, 0, 127, -3}), {1.0f, 1e-6f, 1e-38f}, {}, 1);
    Same({Op("MatMul", {F({1, 2}, {1, 2}), w})});
}

TEST_F(FieldQuant, AccumulatorsBeyondHalfFloats) { // Q25: the scales meet before the sum is f16
    const int64_t k = 100;
    const Id x = net.Op1("Dequantize", {U8({1, k}, Longs(k, 100))}, {AttrFs("scales", {.01f})}, QDQ_DTYPE_F16);
    const Id w = net.Op1("Dequantize", {W(kS8, {k, 1}, Longs(k, 10))}, {AttrFs("scales", {.01f})}, QDQ_DTYPE_F16);
    if (x == kMissing || w == kMissing) { // an oneDNN Dequantize gives f32 alone; ONNX's takes the type of its scale
        const Id a = DqL(U8({1, k}, Longs(k, 100)), .01f, 0, QDQ_DTYPE_F16);
        const Id b = DqL(W(kS8, {k, 1}, Longs(k, 10)), .01f, 0, QDQ_DTYPE_F16);
        const Id m = Op("MatMul", {a, b});
        EXPECT_NEAR(net.F32(m, 0), 10.0f, .02f);
        Same({m}, 0);
        return;
    }
    const Id m = Op("MatMul", {x, w});
    EXPECT_NEAR(net.F32(m, 0), 10.0f, .02f);
    Same({m}, 0);
}

TEST_F(FieldQuant, EightBitFloats) { // Q26, Q27
    Id x = net.Leaf(QDQ_DTYPE_F8_E4M3, {3}, {0x01, 0x81, 0x07}, false);
    Expect(Op("DequantizeLinear", {x, net.Floats({}, {1}, true)}), {0.001953125, -0.001953125, 0.013671875});
    for (const bool saturate : {true, false}) {
        Clear();
        x = F({8}, {17, 19, 100, 432, 464, 465, 1e9f, kInf});
        const Id y = Op("QuantizeLinear", {x, net.Floats({}, {1}, true), net.Leaf(QDQ_DTYPE_F8_E4M3, {}, {0}, true)},
                        {AttrB("saturate", saturate)});
        const float want[] = {
            16, 20, 96, 448, 448, saturate ? 448 : kNan, saturate ? 448 : kNan, saturate ? 448 : kNan};
        for (int64_t i = 0; i < 8; i++)
            EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(net.F32(y, i)) : net.F32(y, i) == want[i])
                << i << ": " << net.F32(y, i) << ", saturate " << saturate;
        Same({y}, 0);
    }
}

TEST_F(FieldQuant, DenormalScales) { // Q28: also beside code that flushes denormals
    ExpectQ(kS8, {1, -1, 0}, 1e-40f, 3, {127, -128, 3});
    Clear();
    const Id x = Dq(S8({2}, {127, -128}), {1e-40f});
    EXPECT_EQ(net.F32(x, 0), 127 * 1e-40f);
    Same({x});
    Clear();
    Same({Q(Op("ReLU", {Dq(S8({4}, {127, -128, 1, 0}), {1e-40f})}), kU8, {1e-40f}, {7})});
}

} // namespace
} // namespace qdq_test
