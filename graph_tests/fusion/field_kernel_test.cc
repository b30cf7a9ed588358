// Integer kernels, axes, granularities and layouts: kinds of fault that are reported of int8 backends, each with its right value.
#include "fusion/field.h"

#include <limits>

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8, kS32 = QDQ_DTYPE_S32;

class FieldKernels : public Field {
  protected:
    // Both as a product of its own and as one row of several (other kernels serve one row).
    void ExpectDot(qdq_dtype a_type, const Longs &a, qdq_dtype b_type, const Longs &b, double want) {
        const auto k = static_cast<int64_t>(a.size());
        for (const int64_t m : {1, 2, 17}) {
            Clear();
            Longs rows;
            for (int64_t i = 0; i < m; i++)
                rows.insert(rows.end(), a.begin(), a.end());
            const Id x = Dq(X(a_type, {m, k}, rows), {1.0f}), w = Dq(W(b_type, {k, 1}, b), {1.0f});
            Expect(Op("MatMul", {x, w}), std::vector<double>(static_cast<size_t>(m), want));
            Clear(); // the integer op, and as a convolution over one pixel
            Expect(Op("MatMulInteger", {X(a_type, {m, k}, rows), W(b_type, {k, 1}, b)}),
                   std::vector<double>(static_cast<size_t>(m), want));
            Clear();
            const Id c = Dq(X(a_type, {m, k, 1, 1}, rows), {1.0f}), cw = Dq(W(b_type, {1, k, 1, 1}, b), {1.0f});
            Expect(Op("Convolution", {c, cw}, ConvAttrs({1, 1}, {0, 0}, {0, 0})),
                   std::vector<double>(static_cast<size_t>(m), want));
        }
    }
};

TEST_F(FieldKernels, ThreeDimensionalConvolutionWithZeroPointAndPads) { // K4
    const Id x = Dq(U8({1, 2, 3, 4, 5}, Ramp(120, 0, 255)), {0.1f}, {7});
    const Id w = Dq(W(kS8, {3, 2, 2, 3, 2}, Ramp(72, -128, 127, 53)), {0.02f});
    const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 2, 1}, {1, 1, 0}, {0, 2, 1}));
    Same({Q(c, kU8, {0.5f}, {100})});
}

TEST_F(FieldKernels, SignedConvolutionOfOnes) { // K5
    for (const int64_t one : {1, 2}) {
        Clear();
        const Id x = Dq(S8({1, 3, 5, 5}, Longs(75, 1)), {1.0f}), w = Dq(W(kS8, {1, 3, 5, 5}, Longs(75, one)), {1.0f});
        Expect(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), {75.0 * static_cast<double>(one)});
    }
}

TEST_F(FieldKernels, NoHiddenSaturation) { // K6, K7, K8, K9
    ExpectDot(kU8, {255, 255, 0, 0}, kS8, {127, 127, 0, 0}, 64770);
    ExpectDot(kS8, {127, 127}, kS8, {127, 127}, 32258);
    ExpectDot(kU8, {255, 255}, kS8, {-128, -128}, -65280);
    ExpectDot(kU8, {210, 198, 234}, kS8, {-81, -80, 127}, -3132);
    ExpectDot(kU8, {211, 171}, kS8, {71, 107}, 33278);
    ExpectDot(kU8, {255, 255}, kS8, {114, 113}, 57885);
    ExpectDot(kS8, {-128, -128}, kS8, {-128, -128}, 32768);
    ExpectDot(kU8, {255, 255}, kU8, {255, 255}, 130050);
    ExpectDot(kS8, {-128, -128}, kU8, {255, 255}, -65280);
}

TEST_F(FieldKernels, LargeSumsStayExact) { // K12, and the safe side of K11
    const Id a = S8({32, 32}, Longs(1024, 127)), b = W(kS8, {32, 32}, Longs(1024, 127));
    Expect(Op("MatMulInteger", {a, b}), std::vector<double>(1024, 516128));
    Clear();
    const int64_t k = 65793;
    const Id x = U8({1, k}, Longs(static_cast<size_t>(k), 255)),
             w = W(kS8, {k, 1}, Longs(static_cast<size_t>(k), -128));
    Expect(Op("MatMulInteger", {x, w}), {-2147483520.0});
}

// K11, the other side: an integer result saturates, a real one is right. (The terms are multiples of large powers of 2, so that
// their sums are exact in f32.)
TEST_F(FieldKernels, SumsBeyond32Bits) {
    const struct {
        qdq_dtype a_type;
        int64_t a, b, k;
        double want;
    } rows[] = {{kU8, 255, -128, 65794, -2147516160.0},
                {kS8, -128, -128, 131072, 2147483648.0},
                {kU8, 254, 64, 132200, 2149043200.0}};
    for (const auto &row : rows) {
        const Longs av(static_cast<size_t>(row.k), row.a), bv(static_cast<size_t>(row.k), row.b);
        Clear();
        Expect(Op("MatMulInteger", {X(row.a_type, {1, row.k}, av), W(kS8, {row.k, 1}, bv)}),
               {row.want < 0 ? -2147483648.0 : 2147483647.0});
        for (const float scale : {1.0f, 16777216.0f}) {
            Clear();
            const Id x = Dq(X(row.a_type, {2, row.k}, Longs(static_cast<size_t>(2 * row.k), row.a)), {1.0f});
            const Id m = Op("MatMul", {x, Dq(W(kS8, {row.k, 1}, bv), {1.0f})});
            Expect(scale == 1.0f ? m : Q(m, kS8, {scale}), std::vector<double>(2, scale == 1.0f  ? row.want
                                                                                  : row.want < 0 ? -128
                                                                                  : scale > 1    ? 127
                                                                                                 : 0));
        }
        Clear();
        const Id x = Dq(X(row.a_type, {1, row.k, 1, 1}, av), {1.0f}), w = Dq(W(kS8, {1, row.k, 1, 1}, bv), {1.0f});
        Expect(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), {row.want});
    }
    Clear(); // it is the zero points that make the terms large
    const int64_t k = 40000;
    const Id x = Dq(U8({1, k}, Longs(static_cast<size_t>(k), 0)), {1.0f}, {240});
    const Id w = Dq(W(kS8, {k, 1}, Longs(static_cast<size_t>(k), -128)), {1.0f}, {112});
    Expect(Op("MatMul", {x, w}), {240.0 * 240.0 * 40000.0});
}

TEST_F(FieldKernels, ZeroPointsAreSubtractedWide) { // K13, K14
    Expect(Op("MatMulInteger", {U8({1, 2}, {3, 4}), S8({2, 1}, {5, 6}), W(kU8, {}, {2}), W(kS8, {}, {1})}), {14});
    Clear();
    Expect(Op("MatMulInteger", {U8({1, 1}, {0}), S8({1, 1}, {1}), W(kU8, {}, {255})}), {-255});
    Clear();
    Expect(Op("MatMul", {Dq(U8({1, 2}, {3, 4}), {1.0f}, {2}), Dq(W(kS8, {2, 1}, {5, 6}), {1.0f}, {1})}), {14});
    Clear();
    Expect(Op("MatMul", {Dq(S8({1, 1}, {127}), {1.0f}, {-128}), Dq(W(kS8, {1, 1}, {-128}), {1.0f}, {127})}), {-65025});
}

TEST_F(FieldKernels, ZeroPointPerRow) { // K15
    Expect(Op("MatMulInteger", {U8({2, 2}, {10, 10, 20, 20}), S8({2, 2}, {1, 2, 3, 4}), W(kU8, {2}, {10, 20})}),
           {0, 0, 0, 0});
    Clear();
    const Id x = Dq(U8({2, 2}, {10, 10, 20, 20}), {1.0f, 1.0f}, {10, 20}, 0);
    Expect(Op("MatMul", {x, Dq(W(kS8, {2, 2}, {1, 2, 3, 4}), {1.0f})}), {0, 0, 0, 0});
}

TEST_F(FieldKernels, ZeroPointsInTails) { // K16
    for (const int64_t n : {1, 3, 8, 15, 17, 33}) {
        Clear();
        Longs zps;
        Reals scales;
        for (int64_t i = 0; i < 2 * n; i++) {
            zps.push_back(i % 5 - 2);
            scales.push_back(0.01f + 0.001f * static_cast<float>(i % 7));
        }
        const Id w = W(kS8, {64, n}, Ramp(64 * n, -128, 127));
        const Id dq = Op("DynamicDequantize", {w, net.Floats({2, n}, scales, true), W(kS8, {2, n}, zps)},
                         {AttrS("qtype", "per_group"), AttrIs("group_shape", {32, 1})});
        Same({Op("MatMul", {F({2, 64}, Reals(128, 0.5f)), dq})});
        Clear(); // per column, int8
        const Id x = Dq(U8({2, 64}, Ramp(128, 0, 255)), {0.1f}, {3});
        const Reals s(static_cast<size_t>(n), 0.02f);
        const Longs z(zps.begin(), zps.begin() + n);
        const Id w8 = Op("DequantizeLinear",
                         {W(kS8, {64, n}, Ramp(64 * n, -128, 127)), net.Floats({n}, s, true), W(kS8, {n}, z)});
        Same({Q(Op("MatMul", {x, w8}), kU8, {0.7f}, {128})});
    }
}

TEST_F(FieldKernels, CompressedWeightsOfOddSizes) { // K17, X12
    for (const int64_t group : {64, 16, 33, 192, 11}) {
        Clear();
        const int64_t k = group == 33 || group == 11 ? 33 : 192, n = 100;
        Reals scales;
        for (int64_t i = 0; i < k / group * n; i++)
            scales.push_back(0.01f + 0.0001f * static_cast<float>(i % 19));
        const Id w =
            Op("DynamicDequantize", {W(kS8, {k, n}, Ramp(k * n, -128, 127)), net.Floats({k / group, n}, scales, true)},
               {AttrS("qtype", "per_group"), AttrIs("group_shape", {group, 1})});
        Reals x;
        for (int64_t i = 0; i < 3 * k; i++)
            x.push_back(static_cast<float>(i % 13) - 6.0f);
        Same({Op("MatMul", {F({3, k}, x), w})});
    }
}

TEST_F(FieldKernels, NothingLeaksBetweenRows) { // K18
    const int64_t k = 33;
    Reals x(static_cast<size_t>(4 * k), 1.0f);
    for (int64_t i = k; i < 2 * k; i++)
        x[static_cast<size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
    const Id f = Op("MatMul", {F({4, k}, x), net.Floats({k, 2}, Reals(static_cast<size_t>(2 * k), 1.0f), true)});
    Same({Op("ReLU", {Op("Add", {f, net.Floats({1}, {1.0f}, true)})})});
    Clear();
    Longs q(static_cast<size_t>(4 * k), 1);
    for (int64_t i = k; i < 2 * k; i++)
        q[static_cast<size_t>(i)] = 255;
    const Id m =
        Op("MatMul", {Dq(U8({4, k}, q), {1.0f}), Dq(W(kS8, {k, 1}, Longs(static_cast<size_t>(k), 1)), {1.0f})});
    Expect(m, {33, 8415, 33, 33});
}

TEST_F(FieldKernels, SumsAreScaledBeforeTheySaturate) { // K19, K20
    for (const auto &[acc, scale, want] : {std::tuple<int64_t, float, double>{141, 1.0f, 127}, {148, 2.0f, 74}}) {
        Clear();
        const Id x = Dq(U8({1, 1, 1, 1}, {acc}), {1.0f}), w = Dq(W(kS8, {1, 1, 1, 1}, {1}), {1.0f});
        const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
        Expect(Q(Op("Add", {c, Dq(S8({1, 1, 1, 1}, {0}), {1.0f})}), kS8, {scale}), {want});
    }
    Clear();
    const Id m = Op("MatMul", {Dq(U8({1, 1}, {90}), {0.5f}), Dq(W(kS8, {1, 1}, {3}), {1.0f})}); // 135
    const Id r = Dq(S8({1, 1}, {-100}), {1.5f});                                                // -150
    Expect(Q(Op("Add", {m, r}), kS8, {2.25f}), {-7});                                           // -6.67
}

TEST_F(FieldKernels, ResidualsOfEveryPair) {
    for (const qdq_dtype out : {kS8, kU8})
        for (const qdq_dtype residual : {kS8, kU8})
            for (const int64_t zp : {0, 5, 127}) {
                Clear();
                const Id x = Dq(U8({1, 4, 3, 3}, Ramp(36, 0, 255)), {0.1f}, {9});
                const Id w = Dq(W(kS8, {4, 4, 1, 1}, Ramp(16, -128, 127)), {0.05f});
                const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
                const Longs values = residual == kS8 ? Ramp(36, -128, 127, 71) : Ramp(36, 0, 255, 71);
                const Id sum = Op("Add", {c, Dq(X(residual, {1, 4, 3, 3}, values), {0.3f}, {zp})});
                Same({Q(Op("ReLU", {sum}), out, {0.4f}, {zp})});
                Clear();
                const Id a = Dq(S8({3, 8}, Ramp(24, -128, 127)), {0.1f}, {zp});
                const Id b = Dq(W(kS8, {8, 5}, Ramp(40, -128, 127, 53)), {0.05f});
                const Longs more = residual == kS8 ? Ramp(15, -128, 127, 71) : Ramp(15, 0, 255, 71);
                const Id r = Dq(X(residual, {3, 5}, more), {0.3f}, {zp});
                Same({Q(Op("Add", {r, Op("MatMul", {a, b})}), out, {0.4f}, {zp})});
            }
}

TEST_F(FieldKernels, StridedOneByOne) { // K23
    const Id x = Dq(U8({1, 1, 4, 4}, Ramp(16, 3, 250, 16)), {1.0f}, {3}), w = Dq(W(kS8, {1, 1, 1, 1}, {1}), {1.0f});
    const Id c = Op("Convolution", {x, w}, ConvAttrs({2, 2}, {0, 0}, {0, 0}));
    Expect(Q(c, kU8, {1.0f}, {3}), {3, 35, 131, 163});
}

TEST_F(FieldKernels, TransposedConvolutionPerChannel) { // K24
    const Id x = Dq(U8({1, 2, 1, 1}, {1, 2}), {1.0f});
    const Id w = Dq(W(kS8, {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}), {1.0f, 10.0f, 100.0f}, {}, 1);
    std::vector<Attr> attrs = ConvAttrs({1, 1}, {0, 0}, {0, 0});
    attrs.back() = AttrS("weights_format", "IOX");
    Expect(Op("ConvTranspose", {x, w}, attrs), {9, 120, 1500});
    Clear();
    const Id y = Dq(U8({2, 4, 3, 3}, Ramp(72, 0, 255)), {0.1f}, {11}); // two groups: every group has the scales
    const Id v = Dq(W(kS8, {4, 3, 2, 2}, Ramp(48, -128, 127)), {0.01f, 0.02f, 0.03f}, {}, 1);
    attrs[4] = AttrI("groups", 2);
    Same({Q(Op("ConvTranspose", {y, v}, attrs), kU8, {0.9f}, {128})});
}

TEST_F(FieldKernels, WeightsOfEveryKindInConvolutions) { // u8, zero points, any axis
    for (const qdq_dtype type : {kS8, kU8})
        for (const int64_t zp : {0, 1, 127, 128, 255})
            for (const int64_t axis : {-1, 0, 1, 2, -4}) {
                if (type == kS8 && zp > 127) continue;
                Clear();
                const Id x = Dq(U8({2, 3, 5, 4}, Ramp(120, 0, 255)), {0.1f}, {13});
                const Longs values = type == kS8 ? Ramp(5 * 3 * 3 * 2, -128, 127) : Ramp(90, 0, 255);
                Reals scales = {0.01f};
                if (axis != -1) {
                    const int64_t dims[] = {5, 3, 3, 2};
                    scales.clear();
                    for (int64_t i = 0; i < dims[axis < 0 ? axis + 4 : axis]; i++)
                        scales.push_back(0.01f * static_cast<float>(i + 1));
                }
                const Id w = Dq(W(type, {5, 3, 3, 2}, values), scales, {zp}, axis);
                const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 2}, {1, 0}, {0, 1}));
                Same({Q(c, kU8, {3.0f}, {128})});
            }
}

TEST_F(FieldKernels, PerChannelZeroPointsOnActivations) {
    const Id x = Dq(U8({2, 3, 4, 4}, Ramp(96, 0, 255)), {0.1f, 0.2f, 0.3f}, {0, 128, 255}, 1);
    const Id w = Dq(W(kS8, {2, 3, 3, 3}, Ramp(54, -128, 127)), {0.01f});
    Same({Q(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {1, 1}, {1, 1})), kU8, {1.0f}, {128})});
    Clear();
    const Id y = Dq(U8({3, 4}, Ramp(12, 0, 255)), {0.1f, 0.2f, 0.3f, 0.4f}, {0, 128, 255, 7}, -1);
    const Id v = Dq(W(kS8, {4, 5}, Ramp(20, -128, 127)), {0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, {1, -2, 3, -4, 5}, -1);
    Same({Q(Op("MatMul", {y, v}), kS8, {9.0f, 8.0f, 7.0f, 6.0f, 5.0f}, {1, 2, 3, 4, -128}, 1)});
}

// ---- pools ----

TEST_F(FieldKernels, AverageOfIntegersRoundsToEven) { // P4
    for (const auto &[a, want] : {std::pair<int64_t, double>{2, 2}, {3, 4}}) {
        Clear();
        auto attrs = PoolAttrs({2}, {1}, {0}, {0});
        attrs.push_back(AttrB("exclude_pad", true));
        Expect(Q(Op("AvgPool", {Dq(S8({1, 1, 2}, {a, a + 1}), {1.0f})}, attrs), kS8, {1.0f}), {want});
    }
}

TEST_F(FieldKernels, PoolsOfOddChannels) { // P2, P5
    for (const int64_t c : {1, 14, 17, 23, 25, 28, 65})
        for (const bool exclude : {false, true})
            for (const qdq_dtype type : {kS8, kU8}) {
                Clear();
                const int64_t zp = type == kS8 ? -3 : 128, n = 5 * 4 * c;
                const Longs values = type == kS8 ? Ramp(n, -128, 127) : Ramp(n, 0, 255);
                auto attrs = PoolAttrs({3, 2}, {2, 1}, {1, 1}, {1, 0}, "NXC");
                const Id x = Dq(X(type, {1, 5, 4, c}, values), {0.1f}, {zp});
                attrs.push_back(AttrB("exclude_pad", exclude));
                Same({Q(Op("AvgPool", {x}, attrs), type, {0.1f}, {zp})});
            }
}

TEST_F(FieldKernels, PaddingCountsAsRealZero) { // P2, P3: stored 128 is real 0
    auto attrs = PoolAttrs({3}, {1}, {1}, {1});
    attrs.push_back(AttrB("exclude_pad", false));
    Expect(Q(Op("AvgPool", {Dq(U8({1, 1, 2}, {131, 134}), {1.0f}, {128})}, attrs), kU8, {1.0f}, {128}), {131, 131});
    Clear();
    Expect(Q(Op("MaxPool", {Dq(S8({1, 1, 2}, {-100, -90}), {1.0f}, {3})}, PoolAttrs({3}, {1}, {1}, {1})), kS8, {1.0f},
             {3}),
           {-90, -90}); // padding is below everything
}

TEST_F(FieldKernels, WindowsInPaddingAloneAreDropped) { // P6
    for (const char *kind : {"AvgPool", "MaxPool"}) {
        Clear();
        auto attrs = PoolAttrs({1}, {3}, {0}, {0});
        attrs.push_back(AttrS("rounding_type", "ceil"));
        if (std::string(kind) == "AvgPool") attrs.push_back(AttrB("exclude_pad", true));
        Expect(Q(Op(kind, {Dq(S8({1, 1, 3}, {7, 8, 9}), {1.0f})}, attrs), kS8, {1.0f}), {7});
    }
}

TEST_F(FieldKernels, WindowsInPaddingAloneOfConvolutions) {
    const Id x = Dq(S8({1, 4, 1}, {1, 2, 3, 4}), {1.0f}), w = Dq(W(kS8, {1, 4, 1}, {1, 1, 1, 1}), {1.0f});
    Expect(Q(Op("Convolution", {x, w}, ConvAttrs({1}, {1}, {2})), kS8, {1.0f}), {0, 10, 0, 0});
    Clear();
    const Id y = F({1, 1, 3, 1}, {1, 2, 3}); // one channel, one strided column
    const Id v = net.Floats({2, 1, 2, 2}, {1, 10, 100, 1000, 1, 0, 0, 0}, true);
    Expect(Op("ReLU", {Op("Convolution", {y, v}, ConvAttrs({1, 3}, {1, 0}, {1, 1}))}), {100, 201, 302, 3, 0, 1, 2, 3});
}

TEST_F(FieldKernels, SingleRowsShareWeightsWithAZeroPoint) {
    for (int v = 0; v < 32; v++) {
        Clear();
        const bool ta = v & 1, tb = v & 2, three = v & 4;
        const int64_t m = v & 8 ? 2 : 1;
        const qdq_dtype type = v & 16 ? kU8 : kS8;
        const Id x = Dq(S8(ta ? Dims{5, 9, m} : Dims{5, m, 9}, Ramp(45 * m, -128, 127)), {0.01f}, {7});
        Dims dims = tb ? Dims{3, 9} : Dims{9, 3};
        if (three) dims.insert(dims.begin(), 1);
        const Id w =
            Dq(W(type, dims, type == kU8 ? Ramp(27, 0, 255) : Ramp(27, -128, 127)), {0.008f}, {type == kU8 ? 0 : 9});
        Same({Op("MatMul", {x, w}, {AttrB("transpose_a", ta), AttrB("transpose_b", tb)})});
    }
}

TEST_F(FieldKernels, TransposedConvolutionsWithGaps) {
    for (const int64_t groups : {1, 21}) {
        Clear();
        const int64_t ic = 16, oc = 16;
        const Id x = Dq(S8({1, groups * ic, 2, 3}, Ramp(groups * ic * 6, -128, 127)), {0.1f}, {groups == 1 ? 0 : 5});
        const Id w = Dq(W(kS8, {groups * ic, oc, 1, 1}, Ramp(groups * ic * oc, -128, 127, 53)), {0.01f});
        std::vector<Attr> attrs = ConvAttrs({3, 3}, {0, 0}, {0, 0}, groups);
        attrs.back() = AttrS("weights_format", "IOX");
        Same({Q(Op("ConvTranspose", {x, w}, attrs), kS8, {2.0f}, {3})});
    }
    Clear(); // floats, cropped at the end, channels last, with more than one operand after
    Reals x, w;
    for (int i = 0; i < 24; i++)
        x.push_back(static_cast<float>(i % 7) - 3.0f);
    for (int i = 0; i < 8; i++)
        w.push_back(static_cast<float>(i % 5) - 2.0f);
    std::vector<Attr> attrs = {AttrIs("strides", {3}),  AttrIs("dilations", {2}),    AttrIs("pads_begin", {0}),
                               AttrIs("pads_end", {2}), AttrS("data_format", "NXC"), AttrS("weights_format", "XOI")};
    const Id c = Op("ConvTranspose", {F({3, 2, 4}, x), F({1, 2, 4}, w)}, attrs);
    const Id m = Op("Minimum", {c, F({1, 1, 2}, {0.25f, 0.5f})});
    const Id t = Op("Tanh", {m});
    Same({Op("BiasAdd", {t, F({2}, {0.4f, 0.8f})}, {AttrS("data_format", "NCX")})});
}

TEST_F(FieldKernels, NarrowOperandsAfterAConvolution) {
    const Id x = net.Op1("Dequantize", {S8({1, 2, 5, 1}, Ramp(10, -128, 127))},
                         {AttrFs("scales", {0.005f}), AttrIs("zps", {-128})}, QDQ_DTYPE_BF16);
    const Id w = net.Op1("Dequantize", {W(kS8, {16, 2, 1, 1}, Ramp(32, -128, 127))}, {AttrFs("scales", {0.016f})},
                         QDQ_DTYPE_BF16);
    const Id b = net.Floats({16}, Reals(16, 0.25f), true, QDQ_DTYPE_BF16);
    Reals other;
    for (int i = 0; i < 80; i++)
        other.push_back(0.01f * static_cast<float>(i % 9));
    std::vector<Attr> attrs = ConvAttrs({1, 1}, {0, 0}, {0, 0});
    attrs[1] = AttrIs("dilations", {1, 2});
    const Id r = Op("Sqrt", {Op("ReLU", {Op("Convolution", {x, w, b}, attrs)})});
    const Id m = Op("Maximum", {r, net.Floats({1, 16, 5, 1}, other, true, QDQ_DTYPE_BF16)});
    Same({Q(m, kS8, {0.0054f}, {-128})});
}

TEST_F(FieldKernels, CompensationSumsRoundedWeights) { // R1, R2
    const Id w = Dq(Q(net.Floats({3, 1}, {0.5f, 1.5f, -0.5f}, true), kS8, {1.0f}), {1.0f});
    const Id x = Dq(U8({1, 3}, {1, 1, 1}), {1.0f}, {3}); // -2 each
    Expect(Op("MatMul", {x, w}), {-4});
}

// ---- axis, granularity, layout ----

class FieldAxes : public Field {};

TEST_F(FieldAxes, NegativeAxes) { // X1
    Expect(Dq(S8({2, 3}, {1, 2, 3, 4, 5, 6}), {1, 10, 100}, {}, -1), {1, 20, 300, 4, 50, 600});
    Clear();
    Expect(Dq(S8({2, 3}, {1, 2, 3, 4, 5, 6}), {1, 10}, {}, -2), {1, 2, 3, 40, 50, 60});
    Clear();
    Expect(Q(F({2, 3}, {1, 20, 300, 4, 50, 600}), kS8, {1, 10, 100}, {}, -1), {1, 2, 3, 4, 5, 6});
}

TEST_F(FieldAxes, AMissingAxisIsOne) { // X3, X14
    const Id w = W(kS8, {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(net.Op1("DequantizeLinear", {w, net.Floats({2}, {1, 2}, true)}), kMissing);
    EXPECT_NE(net.error.find("3"), std::string::npos) << net.error; // names what it expected
    const Id x = Dq(U8({1, 3, 1, 1}, {1, 1, 1}), {1.0f});
    const Id dq = Op("DequantizeLinear", {w, net.Floats({2}, {1, 2}, true)}, {AttrI("axis", 0)});
    Expect(Op("Convolution", {x, dq}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), {6, 30});
}

TEST_F(FieldAxes, ScalarsIgnoreTheAxis) { // X4
    Expect(Op("DequantizeLinear", {U8({}, {200}), net.Floats({}, {0.5f}, true), W(kU8, {}, {100})}, {AttrI("axis", 1)}),
           {50});
}

TEST_F(FieldAxes, MissingZeroPoints) { // X5
    Expect(Op("DequantizeLinear", {S8({2}, {-5, 5}), net.Floats({}, {0.5f}, true)}), {-2.5, 2.5});
    Clear();
    const Id q = Op("QuantizeLinear", {F({3}, {-1, 1, 200}), net.Floats({}, {0.5f}, true)});
    EXPECT_EQ(net.At(q).dtype, kU8);
    Expect(q, {0, 2, 255});
    Clear();
    Expect(Q(Op("ReLU", {Op("DequantizeLinear", {S8({2}, {-5, 5}), net.Floats({}, {0.5f}, true)})}), kU8, {0.25f}),
           {0, 10});
}

TEST_F(FieldAxes, ChannelsLastStrides) { // X6
    const Id x = S8({2, 2, 3, 3}, Ramp(36, -128, 127));
    net.values[static_cast<size_t>(x)].strides = {18, 1, 6, 2};
    Same({Dq(x, {1.0f, 10.0f}, {}, 0)});
    Clear();
    const Id y = S8({2, 3, 3, 3}, Ramp(54, -128, 127));
    net.values[static_cast<size_t>(y)].strides = {27, 1, 9, 3};
    Same({Q(Op("ReLU", {Dq(y, {1.0f, 10.0f, 5.0f}, {1, 2, 3}, 1)}), kU8, {7.0f})});
}

TEST_F(FieldAxes, Blocks) { // X7
    const Id x = S8({2, 4}, Longs(8, 9));
    Expect(Op("DequantizeLinear", {x, net.Floats({2, 2}, {1, 2, 3, 4}, true), W(kS8, {2, 2}, {1, 2, 3, 4})},
              {AttrI("axis", 1), AttrI("block_size", 2)}),
           {8, 8, 14, 14, 18, 18, 20, 20});
}

TEST_F(FieldAxes, FourBitsOfOddCount) { // X10
    const Id s4 = W(QDQ_DTYPE_S4, {5}, {0, 1, 7, -4, -8}), u4 = W(QDQ_DTYPE_U4, {5}, {0, 1, 7, 10, 15});
    EXPECT_EQ(net.At(s4).data, (Bytes{0x10, 0xC7, 0x08}));
    EXPECT_EQ(net.At(u4).data, (Bytes{0x10, 0xA7, 0x0F}));
    const Id x = Dq(X(QDQ_DTYPE_S4, {5}, {0, 1, 7, -4, -8}), {2.0f});
    Expect(x, {0, 2, 14, -8, -16});
    Clear();
    Expect(Op("MatMul",
              {F({1, 5}, {1, 10, 100, 1000, 10000}), Dq(W(QDQ_DTYPE_U4, {5, 1}, {0, 1, 7, 10, 15}), {1.0f}, {5})}),
           {-5 - 40 + 200 + 5000 + 100000});
}

TEST_F(FieldAxes, GroupsWhenADimIsOne) { // X11
    Reals scales;
    Longs values;
    for (int64_t i = 0; i < 16 * 32; i++)
        scales.push_back(static_cast<float>(1 + i % 7));
    for (int64_t i = 0; i < 16 * 1024; i++)
        values.push_back(i % 251 - 125);
    const Id x = X(kS8, {1, 16, 1, 1024}, values);
    const Id dq = Op("DynamicDequantize", {x, net.Floats({1, 16, 1, 32}, scales, true)},
                     {AttrS("qtype", "per_group"), AttrIs("group_shape", {1, 1, 1, 32})});
    for (const int64_t i : {0, 31, 32, 1023, 1024, 16383})
        EXPECT_EQ(net.F32(dq, i),
                  static_cast<float>(values[static_cast<size_t>(i)]) * scales[static_cast<size_t>(i / 32)]);
    Same({dq});
    Clear();
    Expect(Op("DynamicDequantize", {S8({2}, {4, -4}), net.Floats({}, {0.5f}, true)}, {AttrS("qtype", "per_tensor")}),
           {2, -2});
}

TEST_F(FieldAxes, QuantizeDivides) { // X15
    Expect(Q(F({1}, {10}), kS8, {2.0f}), {5});
    Clear();
    Expect(Q(Op("Convolution", {Dq(S8({1, 1, 1, 1}, {10}), {1.0f}), Dq(W(kS8, {2, 1, 1, 1}, {1, 1}), {1.0f})},
                ConvAttrs({1, 1}, {0, 0}, {0, 0})),
             kS8, {2.0f, 5.0f}, {0, 1}, 1),
           {5, 3});
}

TEST_F(FieldAxes, AChannelDimOfOne) { // X17
    std::vector<Attr> per_channel = {AttrFs("scales", {0.5f}), AttrS("qtype", "per_channel"), AttrI("axis", 1)};
    Expect(Op("Dequantize", {S8({1, 1, 4}, {1, -2, 3, -4})}, per_channel), {0.5, -1, 1.5, -2});
    Clear();
    const Id x = Op("Dequantize", {S8({1, 1, 1, 2}, {4, -6})}, per_channel), w = Dq(W(kS8, {1, 1, 1, 1}, {3}), {1.0f});
    Expect(Q(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kS8, {1.0f}), {6, -9});
}

TEST_F(FieldAxes, ShapesOfBlockScales) { // X9: of a weight (4, 8)
    const Longs q = Ramp(32, -8, 7);
    const auto dq = [&](const Dims &scales, int64_t axis, int64_t block) {
        Reals s;
        for (int64_t i = 0; i < Count(scales); i++)
            s.push_back(static_cast<float>(i + 1));
        return net.Op1("DequantizeLinear", {S8({4, 8}, q), net.Floats(scales, s, true)},
                       {AttrI("axis", axis), AttrI("block_size", block)});
    };
    for (const int64_t axis : {1, -1}) {
        const Id x = dq({4, 2}, axis, 4);
        ASSERT_NE(x, kMissing) << net.error;
        for (int64_t i = 0; i < 32; i++)
            EXPECT_EQ(net.F32(x, i), static_cast<float>(q[static_cast<size_t>(i)] * (i / 8 * 2 + i % 8 / 4 + 1))) << i;
        Same({Op("MatMul", {F({1, 4}, {1, 2, 3, 4}), x})});
        Clear();
    }
    const Id y = dq({2, 8}, 0, 2);
    ASSERT_NE(y, kMissing) << net.error;
    for (int64_t i = 0; i < 32; i++)
        EXPECT_EQ(net.F32(y, i), static_cast<float>(q[static_cast<size_t>(i)] * (i / 16 * 8 + i % 8 + 1))) << i;
    Same({Op("MatMul", {F({1, 4}, {1, 2, 3, 4}), y})});
    Clear();
    EXPECT_EQ(dq({2, 4}, 1, 4), kMissing); // transposed
    EXPECT_EQ(dq({8, 2}, 0, 2), kMissing);
    EXPECT_NE(net.error, "");
}

TEST_F(FieldAxes, ScalesInOtherLayouts) { // X13: strides of scales and zero points are honoured
    for (const bool product : {false, true})
        for (const bool transposed : {false, true}) {
            Clear();
            Reals s;
            for (int64_t i = 0; i < 20; i++)
                s.push_back(0.01f * static_cast<float>(i + 1));
            const Id scales = F({4, 5}, s), zps = S8({4, 5}, Ramp(20, -5, 5));
            if (transposed)
                net.values[static_cast<size_t>(scales)].strides = net.values[static_cast<size_t>(zps)].strides = {1, 4};
            else
                net.values[static_cast<size_t>(scales)].strides = {12, 2};
            const Id w = S8({64, 5}, Ramp(320, -128, 127));
            if (transposed) net.values[static_cast<size_t>(w)].strides = {1, 64};
            const Id dq = Op("DynamicDequantize", {w, scales, zps},
                             {AttrS("qtype", "per_group"), AttrIs("group_shape", {16, 1})});
            Same({product ? Op("MatMul", {F({3, 64}, Reals(192, 0.5f)), dq}) : dq});
        }
    Clear();
    const Id s = F({3}, {0.1f, 0.2f, 0.3f}), x = U8({2, 3}, Ramp(6, 0, 255));
    net.values[static_cast<size_t>(s)].strides = {4};
    Same({Op("DynamicDequantize", {x, s}, {AttrS("qtype", "per_channel"), AttrI("axis", 1)})});
}

// C6: a 1 in M, N, K, with either transposition
TEST_F(FieldAxes, ProductsWithDimsOfOne) {
    for (const int64_t m : {1, 3})
        for (const int64_t n : {1, 5})
            for (const int64_t k : {1, 7})
                for (const bool tb : {false, true}) {
                    Clear();
                    const Id x = Dq(U8({2, m, k}, Ramp(2 * m * k, 0, 255)), {0.1f}, {7});
                    const Id w = Dq(W(kS8, tb ? Dims{n, k} : Dims{k, n}, Ramp(k * n, -128, 127)), {0.1f});
                    Same({Q(Op("MatMul", {x, w}, {AttrB("transpose_b", tb)}), kS8, {1.0f})});
                }
    (void)kS32;
}

} // namespace
} // namespace qdq_test
