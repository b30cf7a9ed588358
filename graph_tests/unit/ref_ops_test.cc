// Ops against vectors worked out by hand.
#include "ref_run.h"

#include <algorithm>
#include <cfloat>

using namespace ref_run;

namespace {

Tensor t(qdq_dtype dtype, const Dims &dims, const Values &v) {
    return Tensor(dtype, dims, v);
}
Result unary(const char *kind, const Values &x, const std::vector<Attr> &attrs = {}) {
    return run(kind, attrs, {f32({(int64_t)x.size()}, x)}, {infer()});
}

TEST(RefUnary, Formulas) {
    expect_values(unary("Round", {.5, 1.5, 2.5, -.5, -1.5}), {0, 2, 2, 0, -2});
    expect_values(unary("GELU", {0, 1, -1}), {0, .8413447460685429, -.15865525393145707}, 1e-7);
    expect_values(unary("GELU", {1}, {S("mode", "gelu_tanh")}), {.8411919906082768}, 1e-7);
    expect_values(unary("SoftPlus", {0, 1, 100}, {F("beta", 2)}),
                  {std::log(2.0) / 2, std::log1p(std::exp(2.0)) / 2, 100}, 1e-7);
    expect_values(unary("LeakyReLU", {-2, 3}, {F("alpha", .25)}), {-.5, 3});
    expect_values(unary("HardSigmoid", {-10, 0, 1, 10}, {F("alpha", .25), F("beta", .5)}), {0, .5, .75, 1});
    expect_values(unary("HardSwish", {-4, -1.5, 0, 3, 4}), {0, -.375, 0, 3, 4}, 1e-7);
    expect_values(unary("Mish", {1, 100}), {.8650983882673103, 100}, 1e-7);
    expect_values(unary("Clamp", {-2, .5, 9, kNan}, {F("min", -1), F("max", 6)}), {-1, .5, 6, kNan});
    expect_values(unary("Elu", {-1, 2}, {F("alpha", 2)}), {2 * std::expm1(-1.0), 2}, 1e-7);
    expect_values(unary("Pow", {2, 3}, {F("beta", 3)}), {8, 27});
    expect_values(unary("Sign", {-3, 0, 4}), {-1, 0, 1});
    expect_values(unary("Swish", {1}, {F("alpha", 2)}), {1 / (1 + std::exp(-2.0))}, 1e-7);
    expect_values(unary("ReLU", {-1, 0, 2, kInf}), {0, 0, 2, kInf});
}

TEST(RefUnary, RoundsOnceToTheNarrowType) {
    const Result r = run("Square", {}, {t(QDQ_DTYPE_BF16, {1}, {1.0078125})}, {infer()});
    expect_values(r, {1.015625});
    EXPECT_EQ(r.out[0].desc.dtype, QDQ_DTYPE_BF16);
}

TEST(RefUnary, FormulasOfOnnx) {
    expect_values(unary("Ceil", {-1.5, 1.2}), {-1, 2});
    expect_values(unary("Floor", {-1.5, 1.2}), {-2, 1});
    expect_values(unary("Reciprocal", {4, -.5}), {.25, -2});
    expect_values(unary("Erf", {0, 1}), {0, .8427007929497149}, 1e-7);
    expect_values(unary("Cos", {0, 1}), {1, std::cos(1.0)}, 1e-7);
    expect_values(unary("Sin", {0, 1}), {0, std::sin(1.0)}, 1e-7);
    expect_values(unary("Softsign", {-3, 1}), {-.75, .5});
    expect_values(unary("ThresholdedRelu", {1, 2.5}, {F("alpha", 2)}), {0, 2.5});
    expect_values(unary("Celu", {-2, 3}, {F("alpha", 2)}), {2 * std::expm1(-1.0), 3}, 1e-7);
    expect_values(unary("Selu", {-1, 1}, {F("alpha", 2), F("gamma", 3)}), {6 * std::expm1(-1.0), 3}, 1e-7);
}

TEST(RefMove, ReshapesKeepTheOrder) {
    const Values v = {1, 2, 3, 4, 5, 6};
    const Tensor x = f32({1, 2, 3}, v);
    const Result a = run("StaticReshape", {Is("shape", {3, -1}), B("special_zero", false)}, {x}, {infer()});
    expect_values(a, v);
    EXPECT_EQ(a.out[0].dims(), (Dims{3, 2}));
    const Result b = run("Flatten", {I("axis", 2)}, {x}, {infer()});
    expect_values(b, v);
    EXPECT_EQ(b.out[0].dims(), (Dims{2, 3}));
    expect_values(run("Squeeze", {}, {x, s64({1}, {0})}, {infer()}), v);
    expect_values(run("Unsqueeze", {}, {x, s64({1}, {-1})}, {infer()}), v);
    expect_values(run("Identity", {}, {Tensor(QDQ_DTYPE_S4, {3}, {-8, 0, 7})}, {infer()}), {-8, 0, 7});
    expect_values(run("TypeCast", {}, {x}, {infer(QDQ_DTYPE_BF16)}), v);
}

TEST(RefBinary, RestOfComparisonAndLogic) {
    const Tensor a = f32({3}, {1, 2, 3}), b = f32({}, {2});
    expect_values(run("Greater", {}, {a, b}, {infer()}), {0, 0, 1});
    expect_values(run("LessOrEqual", {}, {a, b}, {infer()}), {1, 1, 0});
    const Tensor p = t(QDQ_DTYPE_BOOLEAN, {2}, {1, 0}), q = t(QDQ_DTYPE_BOOLEAN, {2, 1}, {1, 0});
    expect_values(run("And", {}, {p, q}, {infer()}), {1, 0, 0, 0});
    expect_values(run("Or", {}, {p, q}, {infer()}), {1, 1, 1, 0});
}

TEST(RefBinary, BroadcastsBothWays) {
    expect_values(run("Add", {}, {f32({2, 1}, {10, 20}), f32({3}, {1, 2, 3})}, {infer()}), {11, 12, 13, 21, 22, 23});
    expect_values(run("Subtract", {}, {f32({}, {1}), f32({2}, {3, 4})}, {infer()}), {-2, -3});
    expect_values(run("Maximum", {}, {f32({2}, {1, kNan}), f32({2}, {2, 1})}, {infer()}), {2, kNan});
    expect_values(run("SquaredDifference", {}, {f32({2}, {1, 5}), f32({1}, {3})}, {infer()}), {4, 4});
    expect_values(run("GreaterEqual", {}, {f32({3}, {1, 2, 3}), f32({}, {2})}, {infer()}), {0, 1, 1});
    expect_values(run("PowTensor", {}, {f32({2}, {2, 3}), f32({}, {3})}, {infer()}), {8, 27});
    expect_values(run("Sum", {}, {f32({2, 1}, {1, 2}), f32({2}, {10, 20}), f32({}, {100})}, {infer()}),
                  {111, 121, 112, 122});
}

TEST(RefBinary, Integers) {
    const qdq_dtype S64 = QDQ_DTYPE_S64;
    expect_values(run("Divide", {}, {t(S64, {4}, {7, -7, 7, -7}), t(S64, {4}, {2, 2, -2, -2})}, {infer()}),
                  {3, -3, -3, 3});
    expect_values(run("Mod", {}, {t(S64, {4}, {7, -7, 7, -7}), t(S64, {4}, {3, 3, -3, -3})}, {infer()}),
                  {1, 2, -2, -1});
    expect_values(run("Mod", {B("fmod", true)}, {t(S64, {4}, {7, -7, 7, -7}), t(S64, {4}, {3, 3, -3, -3})}, {infer()}),
                  {1, -1, 1, -1});
    const Result zero = run("Divide", {}, {t(S64, {1}, {7}), t(S64, {1}, {0})}, {infer()});
    EXPECT_EQ(zero.status, QDQ_E_BAD_ARG);
    Tensor least(S64, {1});
    const int64_t low = INT64_MIN;
    memcpy(least.bytes.data(), &low, sizeof low);
    EXPECT_EQ(run("Divide", {}, {least, t(S64, {1}, {-1})}, {infer()}).status, QDQ_OK);
    EXPECT_EQ(run("Mod", {}, {least, t(S64, {1}, {-1})}, {infer()}).status, QDQ_OK);
}

TEST(RefBinary, SelectAndWhere) {
    const Tensor cond = t(QDQ_DTYPE_BOOLEAN, {2, 1}, {1, 0});
    expect_values(run("Select", {}, {cond, f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {5, 6, 7, 8})}, {infer()}),
                  {1, 2, 7, 8});
    expect_values(run("Where", {}, {cond, t(QDQ_DTYPE_S64, {3}, {1, 2, 3}), t(QDQ_DTYPE_S64, {1}, {9})}, {infer()}),
                  {1, 2, 3, 9, 9, 9});
    expect_values(run("Not", {}, {cond}, {infer()}), {0, 1});
    expect_values(run("Xor", {}, {cond, t(QDQ_DTYPE_BOOLEAN, {1}, {1})}, {infer()}), {0, 1});
}

TEST(RefBinary, BiasAddAndPrelu) {
    expect_values(
        run("BiasAdd", {S("data_format", "NCX")}, {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20})}, {infer()}),
        {11, 12, 23, 24});
    expect_values(run("BiasAdd", {}, {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20})}, {infer()}), {11, 22, 13, 24});
    const Tensor x = f32({1, 2, 2}, {-1, -2, -3, 4}), slope = f32({2}, {.5, 2});
    expect_values(run("PReLU", {S("data_format", "NCX")}, {x, slope}, {infer()}), {-.5, -1, -6, 4});
    expect_values(run("PReLU", {}, {x, slope}, {infer()}), {-.5, -4, -1.5, 4});
}

TEST(RefMatMul, ShapesOfNumpy) {
    const Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 0, 0, 1, 1, 1});
    expect_values(run("MatMul", {}, {a, b}, {infer()}), {4, 5, 10, 11});
    expect_values(run("MatMul", {B("transpose_a", true)}, {f32({3, 2}, {1, 4, 2, 5, 3, 6}), b}, {infer()}),
                  {4, 5, 10, 11});
    expect_values(run("MatMul", {B("transpose_b", true)}, {a, f32({2, 3}, {1, 0, 1, 0, 1, 1})}, {infer()}),
                  {4, 5, 10, 11});
    expect_values(run("MatMul", {}, {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}, {infer()}), {32});
    expect_values(run("MatMul", {}, {a, f32({3}, {1, 1, 1})}, {infer()}), {6, 15});
    expect_values(run("MatMul", {}, {f32({3}, {1, 1, 1}), b}, {infer()}), {2, 2});
    expect_values(run("MatMul", {}, {a, b, f32({2}, {10, 20})}, {infer()}), {14, 25, 20, 31});
    const Result r =
        run("MatMul", {}, {f32({2, 1, 1, 2}, {1, 2, 3, 4}), f32({3, 2, 1}, {1, 1, 2, 2, 3, 3})}, {infer()});
    expect_values(r, {3, 6, 9, 7, 14, 21});
    EXPECT_EQ(r.out[0].dims(), (Dims{2, 3, 1, 1}));
    expect_values(run("Gemm", {F("alpha", 2), F("beta", 3), B("transB", true)},
                      {a, f32({2, 3}, {1, 0, 1, 0, 1, 1}), f32({2, 1}, {1, 2})}, {infer()}),
                  {11, 13, 26, 28});
}

TEST(RefMatMul, ExactIntegerSums) {
    const qdq_dtype U8 = QDQ_DTYPE_U8, S8 = QDQ_DTYPE_S8;
    auto dot = [](const Tensor &a, const Tensor &b, const Tensor &za, const Tensor &zb) {
        return run("MatMulInteger", {}, {a, b, za, zb}, {infer()});
    };
    expect_values(dot(t(U8, {1, 4}, {255, 255, 0, 0}), t(S8, {4, 1}, {127, 127, 0, 0}), none(), none()), {64770});
    expect_values(dot(t(S8, {1, 2}, {127, 127}), t(S8, {2, 1}, {127, 127}), none(), none()), {32258});
    expect_values(dot(t(U8, {1, 2}, {255, 255}), t(S8, {2, 1}, {-128, -128}), none(), none()), {-65280});
    expect_values(dot(t(U8, {1, 2}, {3, 4}), t(S8, {2, 1}, {5, 6}), t(U8, {}, {2}), t(S8, {}, {1})), {14});
    expect_values(dot(t(U8, {2, 2}, {10, 10, 20, 20}), t(S8, {2, 2}, {1, 2, 3, 4}), t(U8, {2}, {10, 20}), none()),
                  {0, 0, 0, 0});
    const int64_t k = 65794;
    expect_values(dot(t(U8, {1, k}, Values(k, 255)), t(S8, {k, 1}, Values(k, -128)), none(), none()),
                  {-2147483648.0}); /* one below: it saturates */
}

TEST(RefMatMul, QLinear) {
    const Result r = run("QLinearMatMul", {},
                         {t(QDQ_DTYPE_U8, {1, 3}, {210, 198, 234}), f32({}, {.01}), t(QDQ_DTYPE_U8, {}, {0}),
                          t(QDQ_DTYPE_S8, {3, 1}, {-81, -80, 127}), f32({}, {.01}), t(QDQ_DTYPE_S8, {}, {0}),
                          f32({}, {.01}), t(QDQ_DTYPE_S8, {}, {0})},
                         {infer()});
    expect_values(r, {-31}); /* -3132 * .01 * .01 = -.3132 */
}

std::vector<Attr> conv_attrs(std::vector<int64_t> strides, std::vector<int64_t> begin, std::vector<int64_t> end,
                             std::vector<int64_t> dilations, const char *weights = "OIX") {
    return {Is("strides", strides),     Is("pads_begin", begin), Is("pads_end", end),
            Is("dilations", dilations), S("data_format", "NCX"), S("weights_format", weights)};
}

TEST(RefConv, SmallSums) {
    const Tensor ones = f32({1, 3, 5, 5}, Values(75, 1)), w = f32({1, 3, 5, 5}, Values(75, 2));
    expect_values(run("Convolution", conv_attrs({1, 1}, {0, 0}, {0, 0}, {1, 1}), {ones, w}, {infer()}), {150});
    const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), k = f32({1, 1, 2}, {10, 1});
    expect_values(run("Convolution", conv_attrs({1}, {1}, {0}, {2}), {x, k, f32({1}, {100})}, {infer()}),
                  {102, 113, 124}); /* taps two apart, one zero in front */
    expect_values(run("Convolution", conv_attrs({2}, {0}, {0}, {1}), {x, f32({1, 1, 1}, {3})}, {infer()}), {3, 9});
}

TEST(RefConv, TransposedScatters) {
    const Tensor x = f32({1, 1, 3}, {1, 2, 3}), k = f32({1, 1, 2}, {10, 1});
    expect_values(run("ConvTranspose", conv_attrs({2}, {0}, {0}, {1}, "IOX"), {x, k}, {infer()}),
                  {10, 1, 20, 2, 30, 3});
    expect_values(run("ConvTranspose", conv_attrs({1}, {0}, {0}, {1}, "IOX"), {x, k}, {infer()}), {10, 21, 32, 3});
}

TEST(RefConv, IntegerPaddingIsTheZeroPoint) {
    const Result r = run("ConvInteger", conv_attrs({1}, {1}, {1}, {1}),
                         {t(QDQ_DTYPE_U8, {1, 1, 2}, {7, 9}), t(QDQ_DTYPE_S8, {1, 1, 3}, {1, 1, 1}),
                          t(QDQ_DTYPE_U8, {}, {7}), t(QDQ_DTYPE_S8, {}, {0})},
                         {infer()});
    expect_values(r, {2, 2});
}

TEST(RefConv, QLinearPerChannel) {
    const Result r = run("QLinearConv", conv_attrs({1}, {0}, {0}, {1}),
                         {t(QDQ_DTYPE_U8, {1, 1, 1}, {12}), f32({}, {.5}), t(QDQ_DTYPE_U8, {}, {2}),
                          t(QDQ_DTYPE_S8, {3, 1, 1}, {1, 1, 1}), f32({3}, {1, 2, 4}), t(QDQ_DTYPE_S8, {3}, {0, 0, 0}),
                          f32({}, {1}), t(QDQ_DTYPE_U8, {}, {1}), t(QDQ_DTYPE_S32, {3}, {10, 10, 10})},
                         {infer()});
    expect_values(r, {11, 21, 41}); /* (10 + 10) * .5 * {1, 2, 4} + 1 */
}

std::vector<Attr> pool_attrs(int64_t k, int64_t s, int64_t begin, int64_t end, const char *rounding) {
    return {Is("kernel", {k}),     Is("strides", {s}),      Is("pads_begin", {begin}),
            Is("pads_end", {end}), S("data_format", "NCX"), S("rounding_type", rounding)};
}
std::vector<Attr> avg_attrs(int64_t k, int64_t s, int64_t begin, int64_t end, const char *rounding, bool exclude) {
    std::vector<Attr> a = pool_attrs(k, s, begin, end, rounding);
    a.push_back(B("exclude_pad", exclude));
    return a;
}

TEST(RefPool, PaddingAndCeil) {
    const Tensor x = f32({1, 1, 3}, {1, 2, 6});
    expect_values(run("AvgPool", avg_attrs(2, 1, 1, 0, "floor", true), {x}, {infer()}), {1, 1.5, 4});
    expect_values(run("AvgPool", avg_attrs(2, 1, 1, 0, "floor", false), {x}, {infer()}), {.5, 1.5, 4});
    expect_values(run("AvgPool", avg_attrs(2, 2, 0, 0, "ceil", true), {x}, {infer()}), {1.5, 6});
    expect_values(run("MaxPool", pool_attrs(2, 2, 0, 0, "ceil"), {x}, {infer()}), {2, 6});
    expect_values(
        run("MaxPool", pool_attrs(2, 2, 0, 0, "ceil"), {t(QDQ_DTYPE_S8, {1, 1, 3}, {-5, -3, -128})}, {infer()}),
        {-3, -128});
    expect_values(run("MaxPool", pool_attrs(2, 2, 0, 0, "floor"), {f32({1, 1, 2}, {-kInf, -kInf})}, {infer()}),
                  {-kInf});
}

TEST(RefPool, WindowsWithoutASourcePointAreNeverNan) {
    const Tensor x = f32({1, 1, 3}, {1, 2, 3});
    expect_values(run("AvgPool", avg_attrs(1, 3, 0, 0, "ceil", true), {x}, {infer()}), {1});
    /* taps at -1 and 3 of two points */
    std::vector<Attr> apart = pool_attrs(2, 1, 1, 2, "floor");
    apart.push_back(Is("dilations", {4}));
    expect_values(run("MaxPool", apart, {f32({1, 1, 2}, {1, 2})}, {infer()}), {(double)-FLT_MAX});
    expect_values(run("MaxPool", apart, {t(QDQ_DTYPE_F16, {1, 1, 2}, {1, 2})}, {infer()}), {-65504});
    expect_values(run("MaxPool", apart, {t(QDQ_DTYPE_U8, {1, 1, 2}, {1, 2})}, {infer()}), {0});
}

TEST(RefPool, GlobalAndLrn) {
    const Tensor x = f32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    expect_values(run("GlobalAveragePool", {}, {x}, {infer()}), {2.5, 6.5});
    expect_values(run("GlobalMaxPool", {}, {x}, {infer()}), {4, 8});
    expect_values(run("GlobalMaxPool", {S("data_format", "NXC")}, {x}, {infer()}), {7, 8});
    expect_values(
        run("LRN", {I("size", 3), F("alpha", 3), F("beta", 1), F("bias", 1)}, {f32({1, 3, 1}, {1, 2, 3})}, {infer()}),
        {1.0 / 6, 2.0 / 15, 3.0 / 14}, 1e-7);
}

TEST(RefNorm, Softmax) {
    const double e = std::exp(1.0);
    expect_values(run("SoftMax", {I("axis", -1)}, {f32({1, 2}, {1000, 1001})}, {infer()}), {1 / (1 + e), e / (1 + e)},
                  1e-7);
    expect_values(run("SoftMax", {I("axis", 0)}, {f32({2, 2}, {0, 5, 0, 5})}, {infer()}), {.5, .5, .5, .5});
    expect_values(run("SoftMax", {S("mode", "inf_as_zero")}, {f32({1, 2}, {-kInf, -kInf})}, {infer()}), {0, 0});
    expect_values(run("LogSoftmax", {}, {f32({2}, {0, 0})}, {infer()}), {-std::log(2.0), -std::log(2.0)}, 1e-7);
}

TEST(RefNorm, LayerGroupBatchRms) {
    const Tensor x = f32({2, 2}, {1, 3, 5, 9});
    const Result ln =
        run("LayerNorm", {F("epsilon", 0)}, {x, f32({2}, {2, 2}), f32({2}, {1, 1})}, {infer(), infer(), infer()});
    expect_values(ln, {-1, 3, -1, 3});
    expect_values(ln, {2, 7}, 0, 1);
    expect_values(ln, {1, 4}, 0, 2);
    const Result gn =
        run("GroupNorm", {I("groups", 1), F("epsilon", 0), S("data_format", "NCX"), B("keep_stats", false)},
            {f32({1, 2, 2}, {1, 1, 3, 3}), f32({2}, {1, 10}), f32({2}, {0, 5})}, {infer()});
    expect_values(gn, {-1, -1, 15, 15});
    expect_values(run("BatchNormInference", {F("epsilon", 0), S("data_format", "NCX")},
                      {f32({1, 2, 1}, {3, 3}), f32({2}, {1, 2}), f32({2}, {0, 1}), f32({2}, {1, 1}), f32({2}, {4, 1})},
                      {infer()}),
                  {1, 5});
    expect_values(run("RMSNorm", {F("epsilon", 0)}, {f32({1, 2}, {3, 3}), f32({2}, {1, 2})}, {infer()}), {1, 2});
    expect_values(run("InstanceNormalization", {F("epsilon", 0)},
                      {f32({1, 1, 2}, {1, 3}), f32({1}, {2}), f32({1}, {1})}, {infer()}),
                  {-1, 3});
}

TEST(RefReduce, AllKinds) {
    const Tensor x = f32({2, 3}, {1, -2, 3, 4, 5, -6});
    auto reduce = [&](const char *kind, std::vector<int64_t> axes, bool keep) {
        return run(kind, {Is("axes", axes), B("keep_dims", keep)}, {x}, {infer()});
    };
    expect_values(reduce("ReduceSum", {1}, false), {2, 3});
    expect_values(reduce("ReduceSum", {-2}, true), {5, 3, -3});
    expect_values(reduce("ReduceMean", {0, 1}, false), {5.0 / 6}, 1e-7);
    expect_values(reduce("ReduceL1", {1}, false), {6, 15});
    expect_values(reduce("ReduceL2", {1}, false), {std::sqrt(14.0), std::sqrt(77.0)}, 1e-7);
    expect_values(reduce("ReduceMax", {0}, false), {4, 5, 3});
    expect_values(reduce("ReduceMin", {0}, false), {1, -2, -6});
    expect_values(reduce("ReduceProd", {1}, false), {-6, -120});
    expect_values(run("ReduceSum", {}, {x, s64({1}, {1})}, {infer()}), {2, 3});
    expect_values(run("ReduceMax", {Is("axes", {0})}, {t(QDQ_DTYPE_S64, {2}, {-7, -3})}, {infer()}), {-3});
}

TEST(RefReduce, ArgTopkCumsum) {
    const Tensor x = f32({2, 3}, {1, 3, 3, 9, 2, 9});
    expect_values(run("ArgMax", {I("axis", 1)}, {x}, {infer()}), {1, 0});
    expect_values(run("ArgMax", {I("axis", 1), B("select_last_index", true)}, {x}, {infer()}), {2, 2});
    expect_values(run("ArgMin", {I("axis", 0), B("keepdims", false)}, {x}, {infer()}), {0, 1, 0});
    const Result top = run("TopK", {}, {f32({1, 5}, {1, 5, 3, 5, 2}), s64({1}, {3})}, {infer(), infer()});
    expect_values(top, {5, 5, 3});
    expect_values(top, {1, 3, 2}, 0, 1);
    const Result low =
        run("TopK", {B("largest", false), I("axis", 0)}, {f32({3, 1}, {2, 1, 3}), s64({1}, {2})}, {infer(), infer()});
    expect_values(low, {1, 2});
    expect_values(low, {1, 0}, 0, 1);
    expect_values(run("CumSum", {}, {x, s64({}, {1})}, {infer()}), {1, 4, 7, 9, 11, 20});
    expect_values(run("CumSum", {B("exclusive", true), B("reverse", true)}, {x, s64({}, {1})}, {infer()}),
                  {6, 3, 0, 11, 9, 0});
}

TEST(RefReduce, TopkMatchesASort) {
    Random random;
    for (int64_t k : {1, 2, 17, 100}) {
        const Values v = random.values(100);
        const Result r = run("TopK", {}, {f32({100}, v), s64({1}, {(double)k})}, {infer(), infer()});
        std::vector<std::pair<double, int64_t>> order;
        for (int64_t i = 0; i < 100; i++)
            order.push_back({-v[(size_t)i], i});
        std::sort(order.begin(), order.end());
        for (int64_t i = 0; i < k; i++) {
            EXPECT_EQ(r.out[0].get(i), -order[(size_t)i].first);
            EXPECT_EQ(r.out[1].get(i), (double)order[(size_t)i].second);
        }
    }
}

TEST(RefMove, ConcatSplitTranspose) {
    expect_values(run("Concat", {I("axis", -1)}, {f32({2, 1}, {1, 2}), f32({2, 2}, {3, 4, 5, 6})}, {infer()}),
                  {1, 3, 4, 2, 5, 6});
    const Result s =
        run("Split", {I("axis", 1), Is("split", {1, 2})}, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {infer(), infer()});
    expect_values(s, {1, 4});
    expect_values(s, {2, 3, 5, 6}, 0, 1);
    expect_values(run("StaticTranspose", {Is("order", {1, 0})}, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {infer()}),
                  {1, 4, 2, 5, 3, 6});
    expect_values(run("StaticTranspose", {Is("order", {})}, {f32({2, 1, 2}, {1, 2, 3, 4})}, {infer()}), {1, 3, 2, 4});
    expect_values(run("StaticTranspose", {Is("order", {1, 0})}, {t(QDQ_DTYPE_S4, {3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, -8})},
                      {infer()}),
                  {0, 3, 6, 1, 4, 7, 2, 5, -8});
}

TEST(RefMove, SliceAndPad) {
    const Tensor x = f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
    expect_values(run("Slice", {}, {x, s64({1}, {1}), s64({1}, {1000}), s64({1}, {1}), s64({1}, {2})}, {infer()}),
                  {2, 4, 6, 8});
    expect_values(run("Slice", {}, {x, s64({1}, {-1}), s64({1}, {-1000}), s64({1}, {-1}), s64({1}, {-1})}, {infer()}),
                  {4, 3, 2, 1, 8, 7, 6, 5});
    const Tensor line = f32({4}, {1, 2, 3, 4});
    expect_values(run("Pad", {}, {line, s64({2}, {1, 2}), f32({}, {9})}, {infer()}), {9, 1, 2, 3, 4, 9, 9});
    expect_values(run("Pad", {S("mode", "reflect")}, {line, s64({2}, {3, 2})}, {infer()}), {4, 3, 2, 1, 2, 3, 4, 3, 2});
    expect_values(run("Pad", {S("mode", "edge")}, {line, s64({2}, {1, -1})}, {infer()}), {1, 1, 2, 3});
    expect_values(run("Pad", {},
                      {t(QDQ_DTYPE_S8, {1, 2}, {-5, 7}), s64({2}, {1, 0}), t(QDQ_DTYPE_S8, {}, {-5}), s64({1}, {1})},
                      {infer()}),
                  {-5, -5, 7});
}

TEST(RefMove, ExpandTileAndBlocks) {
    expect_values(run("Expand", {}, {f32({2, 1}, {1, 2}), s64({3}, {2, 1, 3})}, {infer()}),
                  {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
    expect_values(run("Tile", {}, {f32({2, 2}, {1, 2, 3, 4}), s64({2}, {1, 2})}, {infer()}), {1, 2, 1, 2, 3, 4, 3, 4});
    const Tensor x = f32({1, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    expect_values(run("DepthToSpace", {I("blocksize", 2)}, {x}, {infer()}), {0, 2, 1, 3, 4, 6, 5, 7});
    expect_values(run("DepthToSpace", {I("blocksize", 2), S("mode", "CRD")}, {x}, {infer()}), {0, 2, 1, 3, 4, 6, 5, 7});
    Values v;
    for (int i = 0; i < 8; i++)
        v.push_back(i);
    expect_values(run("DepthToSpace", {I("blocksize", 2)}, {f32({1, 8, 1, 1}, v)}, {infer()}),
                  {0, 2, 4, 6, 1, 3, 5, 7});
    expect_values(run("DepthToSpace", {I("blocksize", 2), S("mode", "CRD")}, {f32({1, 8, 1, 1}, v)}, {infer()}),
                  {0, 1, 2, 3, 4, 5, 6, 7});
    expect_values(run("SpaceToDepth", {I("blocksize", 2)}, {f32({1, 2, 2, 2}, v)}, {infer()}),
                  {0, 4, 1, 5, 2, 6, 3, 7});
}

TEST(RefIndex, GatherAndFriends) {
    const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
    const Tensor idx = t(QDQ_DTYPE_S64, {2}, {-1, 0});
    expect_values(run("Gather", {}, {x, idx}, {infer()}), {5, 6, 1, 2});
    expect_values(run("Gather", {I("axis", 1)}, {x, t(QDQ_DTYPE_S32, {}, {1})}, {infer()}), {2, 4, 6});
    for (double bad : {3.0, -4.0, 9e15}) {
        const Result r = run("Gather", {}, {x, t(QDQ_DTYPE_S64, {1}, {bad})}, {infer()});
        EXPECT_EQ(r.status, QDQ_E_BAD_ARG);
        EXPECT_NE(r.text.find("index"), std::string::npos);
        EXPECT_EQ(run("GatherElements", {}, {x, t(QDQ_DTYPE_S64, {1, 1}, {bad})}, {infer()}).status, QDQ_E_BAD_ARG);
    }
    expect_values(run("GatherElements", {I("axis", 1)}, {x, t(QDQ_DTYPE_S64, {3, 1}, {1, 0, -1})}, {infer()}),
                  {2, 3, 6});
    expect_values(run("GenIndex", {I("axis", 0)}, {x}, {infer()}), {0, 0, 1, 1, 2, 2});
    expect_values(run("Shape", {I("start", -1)}, {x}, {infer()}), {2});
    expect_values(run("Range", {}, {s64({}, {10}), s64({}, {3}), s64({}, {-3})}, {infer()}), {10, 7, 4});
    expect_values(run("ConstantOfShape", {F("value_float", 2.5)}, {s64({2}, {1, 3})}, {infer()}), {2.5, 2.5, 2.5});
}

TEST(RefCast, Rules) {
    auto cast = [](qdq_dtype from, const Values &v, const char *to) {
        return run("Cast", {S("to", to)}, {Tensor(from, {(int64_t)v.size()}, v)}, {infer()});
    };
    expect_values(cast(QDQ_DTYPE_F32, {1.9, -1.9, kNan, kInf, 3e9}, "s32"), {1, -1, 0, 2147483647, 2147483647});
    expect_values(cast(QDQ_DTYPE_S32, {200, -1, 256}, "s8"), {-56, -1, 0});
    expect_values(cast(QDQ_DTYPE_S32, {200, -1, 256}, "u8"), {200, 255, 0});
    expect_values(cast(QDQ_DTYPE_F32, {0, .1, -3, kNan}, "boolean"), {0, 1, 1, 1});
    expect_values(cast(QDQ_DTYPE_S64, {7, 0}, "boolean"), {1, 0});
    expect_values(cast(QDQ_DTYPE_BOOLEAN, {1, 0}, "f32"), {1, 0});
    expect_values(cast(QDQ_DTYPE_F32, {1e9}, "f8_e4m3"), {448});
    expect_values(cast(QDQ_DTYPE_F32, {65520, 1.00048828125}, "f16"), {kInf, 1});
    expect_values(cast(QDQ_DTYPE_F64, {16777217}, "s64"), {16777217});
}

TEST(RefResize, Modes) {
    auto resize = [](const Tensor &x, std::vector<double> sizes, const std::vector<Attr> &attrs) {
        return run("Resize", attrs, {x, none(), none(), s64({(int64_t)sizes.size()}, sizes)}, {infer()});
    };
    const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4});
    expect_values(
        resize(x, {1, 1, 8},
               {S("mode", "nearest"), S("coordinate_transformation_mode", "asymmetric"), S("nearest_mode", "floor")}),
        {1, 1, 2, 2, 3, 3, 4, 4});
    expect_values(resize(x, {1, 1, 8}, {S("mode", "linear")}), {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4});
    expect_values(resize(x, {1, 1, 7}, {S("mode", "linear"), S("coordinate_transformation_mode", "align_corners")}),
                  {1, 1.5, 2, 2.5, 3, 3.5, 4});
    expect_values(resize(x, {1, 1, 2}, {S("mode", "nearest")}), {1, 3}); /* .5 and 2.5 go down */
    expect_values(resize(x, {1, 1, 2}, {S("mode", "nearest"), S("nearest_mode", "round_prefer_ceil")}), {2, 4});
    expect_values(
        resize(x, {1, 1, 1}, {S("mode", "linear"), S("coordinate_transformation_mode", "pytorch_half_pixel")}), {1});
    expect_values(resize(f32({2, 2}, {1, 2, 3, 4}), {4}, {S("mode", "linear"), Is("axes", {1})}),
                  {1, 1.25, 1.75, 2, 3, 3.25, 3.75, 4});
    expect_values(resize(f32({1, 1, 2, 2}, {1, 2, 3, 4}), {1, 1, 3, 3},
                         {S("mode", "linear"), S("coordinate_transformation_mode", "align_corners")}),
                  {1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4});
}

} // namespace
