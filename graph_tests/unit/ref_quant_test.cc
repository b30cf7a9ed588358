// Vectors of the oneDNN Graph and ONNX quantization ops, from the specs' tests and computed by hand in f32.
#include "ref_run.h"

using namespace ref_run;

namespace {

Tensor t(qdq_dtype dtype, const Dims &dims, const Values &v) {
    return Tensor(dtype, dims, v);
}
Dims n(const Values &v) {
    return {(int64_t)v.size()};
}
Result quantize_linear(qdq_dtype dtype, const Values &x, double s, double zp) {
    return run("QuantizeLinear", {}, {f32(n(x), x), f32({}, {s}), t(dtype, {}, {zp})}, {infer()});
}
Result quantize(qdq_dtype dtype, const Values &x, float s, int64_t zp) {
    return run("Quantize", {Fs("scales", {s}), Is("zps", {zp})}, {f32(n(x), x)}, {t(dtype, n(x), {})});
}
Result dequantize_linear(qdq_dtype dtype, const Values &q, double s, double zp) {
    return run("DequantizeLinear", {}, {t(dtype, n(q), q), f32({}, {s}), t(dtype, {}, {zp})}, {infer()});
}

// ---- the two orders of rounding and zero point ----

TEST(RefQuantize, AddsTheZeroPointBeforeRounding) {
    const Values x = {.5, 1.5, 2.5, -.5, -1.5, -2.5};
    expect_values(quantize(QDQ_DTYPE_S8, x, 1, 1), {2, 2, 4, 0, 0, -2});
    expect_values(quantize(QDQ_DTYPE_U8, x, 1, 129), {130, 130, 132, 128, 128, 126});
}

TEST(RefQuantizeLinear, AddsTheZeroPointAfterRounding) {
    const Values x = {.5, 1.5, 2.5, -.5, -1.5, -2.5};
    expect_values(quantize_linear(QDQ_DTYPE_S8, x, 1, 1), {1, 3, 3, 1, -1, -1});
    expect_values(quantize_linear(QDQ_DTYPE_U8, x, 1, 129), {129, 131, 131, 129, 127, 127});
}

TEST(RefQuantize, EvenZeroPointsAgreeInBothOrders) {
    const Values x = {.5, 1.5, 2.5, -.5, -1.5, -2.5};
    expect_values(quantize(QDQ_DTYPE_S8, x, 1, 2), quantize_linear(QDQ_DTYPE_S8, x, 1, 2).out[0].values());
}

// ---- special values ----

TEST(RefQuantize, SaturatesInfinitiesAndGivesTheZeroPointForNan) {
    const Values x = {kNan, kInf, -kInf, 3e9, -3e9, -0.0, kNan};
    expect_values(quantize(QDQ_DTYPE_U8, x, 1, 133), {133, 255, 0, 255, 0, 133, 133});
    expect_values(quantize(QDQ_DTYPE_S8, x, 1, -5), {-5, 127, -128, 127, -128, -5, -5});
    expect_values(quantize_linear(QDQ_DTYPE_U8, x, 1, 133), {133, 255, 0, 255, 0, 133, 133});
    expect_values(quantize_linear(QDQ_DTYPE_S8, x, 1, -5), {-5, 127, -128, 127, -128, -5, -5});
    expect_values(quantize_linear(QDQ_DTYPE_S16, x, 1, 7), {7, 32767, -32768, 32767, -32768, 7, 7});
}

TEST(RefQuantize, SaturatesS32AtItsOwnBounds) {
    const Values x = {4e9, -4e9, 2147483520.0};
    expect_values(quantize(QDQ_DTYPE_S32, x, 1, 0), {2147483647, -2147483648.0, 2147483520});
}

TEST(RefQuantize, TakesDenormalScales) {
    expect_values(quantize(QDQ_DTYPE_S8, {1, -1, 0}, 1e-40f, 3), {127, -128, 3});
    const Result r = run("Dequantize", {Fs("scales", {1e-40f})}, {t(QDQ_DTYPE_S8, {1}, {127})}, {infer()});
    ASSERT_EQ(r.status, QDQ_OK) << r.text;
    EXPECT_NEAR(r.out[0].get(0), 1.27e-38, 1e-42);
}

TEST(RefQuantize, RefusesZeroAndNonFiniteScalesAtRun) {
    for (double s : {0.0, (double)kInf, (double)kNan}) {
        EXPECT_EQ(run("DynamicQuantize", {}, {f32({1}, {1}), f32({1}, {s})}, {infer(QDQ_DTYPE_U8)}).status,
                  QDQ_E_BAD_SCALE);
        EXPECT_EQ(quantize_linear(QDQ_DTYPE_U8, {1}, s, 0).status, QDQ_E_BAD_SCALE);
    }
}

// ---- division, not a reciprocal; half to even ----

TEST(RefQuantize, DividesWhereAReciprocalWouldDiffer) {
    const Values x = {.59, .09, .0015};
    const Values s = {.02, .02, .001}, expected = {30, 5, 2};
    for (size_t i = 0; i < x.size(); i++) {
        expect_values(quantize_linear(QDQ_DTYPE_U8, {x[i]}, s[i], 0), {expected[i]});
        expect_values(quantize(QDQ_DTYPE_U8, {x[i]}, (float)s[i], 0), {expected[i]});
    }
}

TEST(RefQuantizeLinear, RoundsHalfToEven) {
    expect_values(quantize_linear(QDQ_DTYPE_U8, {.25, .75, 1.25, 1.75}, .5, 0), {0, 2, 2, 4});
    expect_values(quantize_linear(QDQ_DTYPE_S8, {5, -5, 7, -7}, 2, 0), {2, -2, 4, -4});
    expect_values(quantize_linear(QDQ_DTYPE_S8, {-129, -128, -127, 127, 128}, 1, 0), {-128, -128, -127, 127, 127});
    expect_values(quantize_linear(QDQ_DTYPE_U8, {-5, -25.5, 30}, .1, 0), {0, 0, 255});
}

TEST(RefQuantizeLinear, MatchesTheSpecsVectors) {
    expect_values(quantize_linear(QDQ_DTYPE_U8, {0, 2, 3, 1000, -254, -1000}, 2, 128), {128, 129, 130, 255, 1, 0});
    expect_values(
        quantize_linear(QDQ_DTYPE_U16, {0, -128, 3, -3, 2.9, -2.9, 3.1, -3.1, 65536, -65534, 70000, -70000}, 2, 32767),
        {32767, 32703, 32769, 32765, 32768, 32766, 32769, 32765, 65535, 0, 65535, 0});
    expect_values(quantize_linear(QDQ_DTYPE_S16,
                                  {0, -514, 3, -3, 2.9, -2.9, 3.1, -3.1, 65022, -66046, 65023, -66047, 65024, -66048,
                                   70000, -70000},
                                  2, 256),
                  {256, -1, 258, 254, 257, 255, 258, 254, 32767, -32767, 32767, -32768, 32767, -32768, 32767, -32768});
}

TEST(RefQuantizeLinear, WithoutZeroPointIsU8) {
    const Result r = run("QuantizeLinear", {}, {f32({3}, {-1, 1, 300}), f32({}, {1})}, {infer()});
    expect_values(r, {0, 1, 255});
    EXPECT_EQ(r.out[0].desc.dtype, QDQ_DTYPE_U8);
}

TEST(RefQuantizeLinear, PerAxisFourBits) {
    const Tensor x = f32({3, 4}, {0, 2.5, 4.8, 8.6, -30, -20, 6, 9, 12, 15, 16, 40}), s = f32({3}, {2, 3, 4});
    expect_values(run("QuantizeLinear", {I("axis", 0)}, {x, s, t(QDQ_DTYPE_U4, {3}, {1, 1, 1})}, {infer()}),
                  {1, 2, 3, 5, 0, 0, 3, 4, 4, 5, 5, 11});
    expect_values(run("QuantizeLinear", {I("axis", -2)}, {x, s, t(QDQ_DTYPE_S4, {3}, {1, 1, 1})}, {infer()}),
                  {1, 2, 3, 5, -8, -6, 3, 4, 4, 5, 5, 7});
}

TEST(RefQuantizeLinear, PerAxisMiddle) {
    const Tensor x = f32({1, 2, 3, 2}, {-162, 10, -100, 232, -20, -50, -76, 0, 0, 252, 32, -44});
    expect_values(run("QuantizeLinear", {}, {x, f32({2}, {2, 4}), t(QDQ_DTYPE_U8, {2}, {84, 24})}, {infer()}),
                  {3, 89, 34, 200, 74, 59, 5, 24, 24, 87, 32, 13});
}

TEST(RefQuantizeLinear, BlockedWithTailAndZeroPoints) {
    const Tensor x = f32({3, 4}, {6, 12, 50, 5, 1, 8, 4, 5, 0, 20, 10, 4});
    expect_values(run("QuantizeLinear", {I("axis", 1), I("block_size", 2)},
                      {x, f32({3, 2}, {1.5, 2.5, 3, 4.9, 5.1, 6.9}), t(QDQ_DTYPE_U8, {3, 2}, {0, 1, 1, 0, 2, 3})},
                      {infer()}),
                  {4, 8, 21, 3, 1, 4, 1, 1, 2, 6, 4, 4});
    const Tensor y = f32({3, 4}, {6, -8, -10, 5, 1, 8, 4, 5, 0, 20, 10, 4});
    expect_values(run("QuantizeLinear", {I("axis", 1), I("block_size", 2)},
                      {y, f32({3, 2}, {1.5, 2.5, 3, 4.9, 5.1, 6.9}), t(QDQ_DTYPE_S16, {3, 2}, {0, 0, 0, 0, 0, 0})},
                      {infer()}),
                  {4, -5, -4, 2, 0, 3, 1, 1, 0, 4, 1, 1});
}

TEST(RefQuantizeLinear, FloatEight) {
    const Values x = {0, 1, 2, 100000, 200};
    expect_values(quantize_linear(QDQ_DTYPE_F8_E4M3, x, 2, 0), {0, .5, 1, 448, 96});
    expect_values(quantize_linear(QDQ_DTYPE_F8_E5M2, x, 2, 0), {0, .5, 1, 49152, 96});
    expect_values(quantize_linear(QDQ_DTYPE_F8_E4M3, {17, 19, 100, 432, 464, 465, 1e9, kInf}, 1, 0),
                  {16, 20, 96, 448, 448, 448, 448, 448});
    expect_values(quantize_linear(QDQ_DTYPE_F8_E4M3, {1.0 / 1024, 3.0 / 2048}, 1, 0), {0, 1.0 / 512});
    expect_values(run("QuantizeLinear", {B("saturate", false)},
                      {f32({3}, {1e9, kInf, 1}), f32({}, {1}), t(QDQ_DTYPE_F8_E4M3, {}, {0})}, {infer()}),
                  {kNan, kNan, 1});
    expect_values(dequantize_linear(QDQ_DTYPE_F8_E4M3, {0, .5, 1, 448, -104}, 2, 0), {0, 1, 2, 896, -208});
}

TEST(RefQuantizeLinear, TheTypeOfTheScaleDividesUnlessPrecisionSays) {
    const Tensor x = t(QDQ_DTYPE_F16, {2}, {10.5, 10.296875}), s = t(QDQ_DTYPE_F16, {}, {.199951171875});
    expect_values(run("QuantizeLinear", {}, {x, s, t(QDQ_DTYPE_S8, {}, {0})}, {infer()}), {52, 52});
    expect_values(run("QuantizeLinear", {S("precision", "f32")}, {x, s, t(QDQ_DTYPE_S8, {}, {0})}, {infer()}),
                  {53, 51});
    const Tensor small = t(QDQ_DTYPE_F16, {2}, {0.050018310546875, -0.050018310546875});
    expect_values(run("QuantizeLinear", {}, {small, t(QDQ_DTYPE_F16, {}, {0.0999755859375}), t(QDQ_DTYPE_S8, {}, {0})},
                      {infer()}),
                  {1, -1});
}

TEST(RefQuantizeLinear, TakesIntegers) {
    const Tensor x = t(QDQ_DTYPE_S32, {4}, {-254, 3, 5, 1000});
    expect_values(run("QuantizeLinear", {}, {x, f32({}, {2}), t(QDQ_DTYPE_U8, {}, {128})}, {infer()}),
                  {1, 130, 130, 255});
}

TEST(RefQuantizeLinear, RankZeroIgnoresTheAxis) {
    expect_values(run("QuantizeLinear", {}, {f32({}, {3}), f32({1}, {2}), t(QDQ_DTYPE_U8, {1}, {128})}, {infer()}),
                  {130});
    expect_values(
        run("DequantizeLinear", {}, {t(QDQ_DTYPE_U8, {}, {200}), f32({}, {.5}), t(QDQ_DTYPE_U8, {}, {100})}, {infer()}),
        {50});
}

// ---- DequantizeLinear ----

TEST(RefDequantizeLinear, MatchesTheSpecsVectors) {
    expect_values(dequantize_linear(QDQ_DTYPE_U8, {0, 3, 128, 255}, 2, 128), {-256, -250, 0, 254});
    expect_values(dequantize_linear(QDQ_DTYPE_U16, {30000, 31000, 32768, 33000}, 2, 32767), {-5534, -3534, 2, 466});
    expect_values(dequantize_linear(QDQ_DTYPE_S16, {-300, -30, -1025, 1270}, 2, -1024), {1448, 1988, -2, 4588});
    expect_values(dequantize_linear(QDQ_DTYPE_U4, {0, 1, 7, 10, 15}, 2, 1), {-2, 0, 12, 18, 28});
    expect_values(dequantize_linear(QDQ_DTYPE_S4, {0, 1, 7, -4, -8}, 2, 1), {-2, 0, 12, -10, -18});
    expect_values(dequantize_linear(QDQ_DTYPE_U8, {3}, 2, 10), {-14});
    expect_values(dequantize_linear(QDQ_DTYPE_U8, {3}, .5, 0), {1.5});
    expect_values(dequantize_linear(QDQ_DTYPE_S8, {1, 2}, -1, 0), {-1, -2});
}

TEST(RefDequantizeLinear, BlockedAlongTheMiddle) {
    const Tensor x = t(QDQ_DTYPE_U8, {1, 4, 3, 2}, {3, 89, 34, 200, 74, 59, 5,   24, 24, 87,  32,  13,
                                                    5, 12, 12, 33,  65, 42, 245, 99, 4,  142, 121, 102});
    const Result r = run("DequantizeLinear", {I("axis", 1), I("block_size", 2)},
                         {x, f32({1, 2, 3, 2}, {3, 2, 4, 1, 2, 2, 5, 2, 4, 3, 5, 2}),
                          t(QDQ_DTYPE_U8, {1, 2, 3, 2}, {1, 0, 0, 1, 2, 20, 3, 2, 4, 3, 15, 2})},
                         {infer()});
    expect_values(
        r, {6, 178, 136, 199, 144, 78, 12, 48, 96, 86, 60, -14, 10, 20, 32, 90, 250, 80, 1210, 194, 0, 417, 530, 200});
}

TEST(RefDequantizeLinear, TailBlocksAndBlocksOfOneRow) {
    const Tensor x = t(QDQ_DTYPE_S8, {5}, {1, 2, 3, 4, 5});
    expect_values(run("DequantizeLinear", {I("axis", 0), I("block_size", 2)}, {x, f32({3}, {1, 10, 100})}, {infer()}),
                  {1, 2, 30, 40, 500});
    const Tensor nine = t(QDQ_DTYPE_U8, {2, 4}, Values(8, 9));
    expect_values(run("DequantizeLinear", {I("axis", 1), I("block_size", 2)},
                      {nine, f32({2, 2}, {1, 2, 3, 4}), t(QDQ_DTYPE_U8, {2, 2}, {1, 2, 3, 4})}, {infer()}),
                  {8, 8, 14, 14, 18, 18, 20, 20});
}

TEST(RefDequantizeLinear, BiasOfS32) {
    const Tensor x = t(QDQ_DTYPE_S32, {3}, {10, 10, 10}), s = f32({3}, {.5, 1, 2});
    expect_values(run("DequantizeLinear", {I("axis", 0)}, {x, s}, {infer()}), {5, 10, 20});
    expect_values(dequantize_linear(QDQ_DTYPE_S32, {16777217}, 1, 0), {16777216});
    EXPECT_EQ(dequantize_linear(QDQ_DTYPE_S32, {100}, .5, 10).status, QDQ_E_BAD_ZERO_POINT);
}

TEST(RefDequantizeLinear, OutputTypeFollowsScaleOrAttribute) {
    const Tensor x = t(QDQ_DTYPE_S8, {1}, {100}), s = t(QDQ_DTYPE_F16, {}, {.1});
    const Result half = run("DequantizeLinear", {}, {x, s}, {infer()});
    expect_values(half, {10});
    EXPECT_EQ(half.out[0].desc.dtype, QDQ_DTYPE_F16);
    expect_values(run("DequantizeLinear", {S("output_dtype", "f32")}, {x, s}, {infer()}), {9.99755859375});
    expect_values(run("DequantizeLinear", {},
                      {t(QDQ_DTYPE_U16, {1}, {65535}), t(QDQ_DTYPE_F16, {}, {1}), t(QDQ_DTYPE_U16, {}, {65530})},
                      {infer()}),
                  {5});
    expect_values(run("DequantizeLinear", {},
                      {t(QDQ_DTYPE_U4, {1}, {15}), t(QDQ_DTYPE_F16, {}, {5000}), t(QDQ_DTYPE_U4, {}, {15})}, {infer()}),
                  {0});
}

TEST(RefDequantizeLinear, NegativeAxesCountFromTheEnd) {
    const Tensor x = t(QDQ_DTYPE_S8, {2, 3}, {1, 2, 3, 4, 5, 6});
    expect_values(run("DequantizeLinear", {I("axis", -1)}, {x, f32({3}, {1, 10, 100})}, {infer()}),
                  {1, 20, 300, 4, 50, 600});
    expect_values(run("DequantizeLinear", {I("axis", -2)}, {x, f32({2}, {1, 10})}, {infer()}), {1, 2, 3, 40, 50, 60});
}

// ---- DynamicQuantizeLinear ----

void expect_dynamic(const Values &x, double scale, double zp, const Values &y) {
    const Result r = run("DynamicQuantizeLinear", {}, {f32(n(x), x)}, {infer(), infer(), infer()});
    expect_values(r, y);
    expect_values(r, {scale}, 1e-7, 1);
    expect_values(r, {zp}, 0, 2);
}

TEST(RefDynamicQuantizeLinear, MatchesTheSpecsVectors) {
    expect_dynamic({0, 2, -3, -2.5, 1.34, .5}, .0196078438, 153, {153, 255, 0, 26, 221, 179});
    expect_dynamic({-1, -2.1, -1.3, -2.5, -3.34, -4}, .0156862754, 255, {191, 121, 172, 96, 42, 0});
    expect_dynamic({1, 2.1, 1.3, 2.5, 3.34, 4, 1.5, 2.6, 3.9, 4, 3, 2.345}, .0156862754, 0,
                   {64, 134, 83, 159, 213, 255, 96, 166, 249, 255, 191, 149});
    expect_dynamic({-127, 128, .5}, 1, 127, {0, 255, 127});
    expect_dynamic({-253, 257}, 2, 126, {0, 254});
}

TEST(RefDynamicQuantizeLinear, DefinesZeroEmptyAndNonFiniteInput) {
    expect_dynamic({0, 0, 0}, 1, 0, {0, 0, 0});
    expect_dynamic({}, 1, 0, {});
    expect_dynamic({255, kNan, kInf, -kInf}, 1, 0, {255, 0, 255, 0});
    const Result r = run("DynamicQuantizeLinear", {}, {f32({2}, {3e38, -3e38})}, {infer(), infer(), infer()});
    ASSERT_EQ(r.status, QDQ_OK);
    EXPECT_TRUE(std::isfinite(r.out[1].get(0)));
    EXPECT_EQ(r.out[0].get(0), 255);
    EXPECT_EQ(r.out[0].get(1), 0);
}

// ---- oneDNN Graph ----

TEST(RefDequantize, PerTensorAndPerChannel) {
    const Tensor x = t(QDQ_DTYPE_U8, {3}, {0, 128, 255});
    expect_values(run("Dequantize", {Fs("scales", {.5f}), Is("zps", {128})}, {x}, {infer()}), {-64, 0, 63.5});
    expect_values(run("Dequantize", {Fs("scales", {.5f})}, {x}, {infer()}), {0, 64, 127.5});
    expect_values(run("Dequantize", {S("qtype", "per_channel"), Fs("scales", {.5f, 2}), Is("zps", {1, -1})},
                      {t(QDQ_DTYPE_S8, {1, 2, 2}, {1, 2, 3, 4})}, {infer()}),
                  {0, .5, 8, 10});
    expect_values(run("Dequantize", {S("qtype", "per_channel"), I("axis", -1), Fs("scales", {1, 10})},
                      {t(QDQ_DTYPE_S8, {2, 2}, {1, 2, 3, 4})}, {infer()}),
                  {1, 20, 3, 40});
    expect_values(run("Dequantize", {Fs("scales", {1.0000009f})}, {t(QDQ_DTYPE_U8, {1}, {127})}, {infer()}),
                  {(double)(127.0f * 1.0000009f)});
    expect_values(run("Dequantize", {Fs("scales", {1})}, {t(QDQ_DTYPE_F8_E4M3, {1}, {0.001953125})}, {infer()}),
                  {0.001953125});
}

TEST(RefDequantize, ChannelsLastStridesUseTheirChannel) {
    Values v;
    for (int i = 0; i < 36; i++)
        v.push_back(i);
    const Tensor x(QDQ_DTYPE_S8, {2, 2, 3, 3}, v, {18, 1, 6, 2});
    Values expected;
    for (int i = 0; i < 36; i++)
        expected.push_back(i * (i < 18 ? 1 : 10));
    expect_values(run("Dequantize", {S("qtype", "per_channel"), I("axis", 0), Fs("scales", {1, 10})}, {x}, {infer()}),
                  expected);
}

TEST(RefDynamicDequantize, PerGroup) {
    expect_values(run("DynamicDequantize", {S("qtype", "per_group"), Is("group_shape", {2, 1})},
                      {t(QDQ_DTYPE_S8, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({2, 2}, {1, 10, 100, 1000}),
                       t(QDQ_DTYPE_S8, {2, 2}, {0, 1, 2, 3})},
                      {infer()}),
                  {1, 10, 3, 30, 300, 3000, 500, 5000});
}

TEST(RefDynamicDequantize, FourBitCodesAreLowNibbleFirst) {
    Tensor u4(QDQ_DTYPE_U4, {4}), s4(QDQ_DTYPE_S4, {2}), as_u4(QDQ_DTYPE_U4, {2});
    u4.bytes = {0x21, 0x43};
    s4.bytes = as_u4.bytes = {0xf8};
    expect_values(run("DynamicDequantize", {}, {u4, f32({1}, {2}), t(QDQ_DTYPE_S32, {1}, {1})}, {infer()}),
                  {0, 2, 4, 6});
    expect_values(run("DynamicDequantize", {}, {s4, f32({1}, {1})}, {infer()}), {-8, -1});
    expect_values(run("DynamicDequantize", {}, {as_u4, f32({1}, {1})}, {infer()}), {8, 15});
    EXPECT_EQ(Tensor(QDQ_DTYPE_S4, {5}, {0, 1, 7, -4, -8}).bytes[1], 0xc7);
}

TEST(RefDynamicDequantize, ZeroPointsOfOtherTypesAndScalesOfNarrowTypes) {
    expect_values(run("DynamicDequantize", {},
                      {t(QDQ_DTYPE_S8, {1}, {-128}), f32({1}, {1}), t(QDQ_DTYPE_U8, {1}, {255})}, {infer()}),
                  {-383});
    expect_values(run("DynamicDequantize", {},
                      {t(QDQ_DTYPE_U8, {1}, {255}), f32({1}, {1}), t(QDQ_DTYPE_S8, {1}, {-128})}, {infer()}),
                  {383});
    const Tensor x = t(QDQ_DTYPE_U8, {1}, {255});
    expect_values(run("DynamicDequantize", {}, {x, f32({1}, {300})}, {infer()}), {76500});
    expect_values(run("DynamicDequantize", {}, {x, t(QDQ_DTYPE_BF16, {1}, {300})}, {infer()}), {76288});
    expect_values(run("DynamicDequantize", {}, {x, t(QDQ_DTYPE_F16, {1}, {300})}, {infer()}), {kInf});
}

TEST(RefDynamicQuantize, OneZeroPointServesManyScales) {
    expect_values(run("DynamicQuantize", {S("qtype", "per_channel"), I("axis", 0)},
                      {f32({2, 2}, {1, 2, 30, 40}), f32({2}, {1, 10}), t(QDQ_DTYPE_S32, {1}, {5})},
                      {infer(QDQ_DTYPE_U8)}),
                  {6, 7, 8, 9});
    expect_values(run("DynamicQuantize", {}, {f32({3}, {.5, 1.5, 2.5}), f32({1}, {1}), t(QDQ_DTYPE_S32, {1}, {1})},
                      {infer(QDQ_DTYPE_U8)}),
                  {2, 2, 4});
}

// The same bytes at every offset and length.
TEST(RefQuantize, DoesNotDependOnPositionOrLength) {
    const float s = .00187f;
    Random random;
    const Values x = random.values(200);
    Values whole;
    for (size_t i = 0; i < x.size(); i++)
        whole.push_back(quantize(QDQ_DTYPE_S8, {x[i] / 16}, s, 0).out[0].get(0));
    for (size_t len : {1u, 7u, 64u, 200u}) {
        Values part;
        for (size_t i = 0; i < len; i++)
            part.push_back(x[i] / 16);
        expect_values(quantize(QDQ_DTYPE_S8, part, s, 0), Values(whole.begin(), whole.begin() + (long)len));
    }
}

} // namespace
