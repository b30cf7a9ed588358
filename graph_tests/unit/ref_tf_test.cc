// TensorFlow QuantizeV2 and Dequantize: vectors of the CPU kernels, exact in f32.
#include "ref_run.h"

using namespace ref_run;

namespace {

struct QuantizeRow {
    const char *name, *mode;
    qdq_dtype dtype;
    Values min, max, x, q, out_min, out_max; // empty out_*: not checked
    bool narrow = false;
    const char *round = "HALF_AWAY_FROM_ZERO";
    double ensure = 0.01;
    int64_t axis = -1;
    Dims dims = {};
};

Result quantize(const QuantizeRow &row) {
    const Dims dims = row.dims.empty() ? Dims{(int64_t)row.x.size()} : row.dims;
    const Dims range = row.axis < 0 ? Dims{} : Dims{(int64_t)row.min.size()};
    return run("QuantizeV2",
               {S("mode", row.mode), S("round_mode", row.round), B("narrow_range", row.narrow), I("axis", row.axis),
                F("ensure_minimum_range", row.ensure), S("T", qdq_dtype_name(row.dtype))},
               {f32(dims, row.x), f32(range, row.min), f32(range, row.max)}, {infer(), infer(), infer()});
}

const char *const kCombined = "MIN_COMBINED", *const kFirst = "MIN_FIRST", *const kScaled = "SCALED";
const qdq_dtype U8 = QDQ_DTYPE_U8, S8 = QDQ_DTYPE_S8, U16 = QDQ_DTYPE_U16, S16 = QDQ_DTYPE_S16, S32 = QDQ_DTYPE_S32;

const std::vector<QuantizeRow> &rows() {
    static const std::vector<QuantizeRow> table = {
        {"combined_u8", kCombined, U8, {0}, {6}, {-1, 0, .5, 3, 6, 7}, {0, 0, 21, 128, 255, 255}, {0}, {6}},
        {"combined_s8", kCombined, S8, {0}, {6}, {-1, 0, .5, 3, 6, 7}, {-128, -128, -107, -1, 127, 127}, {0}, {6}},
        {"combined_s8_symmetric", kCombined, S8, {-1}, {1}, {-1, -.5, 0, .5, 1}, {-128, -64, -1, 63, 127}, {-1}, {1}},
        {"combined_s8_unit",
         kCombined,
         S8,
         {-128},
         {127},
         {-128.5, -1.5, -.5, 0, .5, 1.5, 200},
         {-128, -2, -1, 0, 1, 2, 127},
         {-128},
         {127}},
        {"combined_u8_ties",
         kCombined,
         U8,
         {0},
         {255},
         {.4999, .5, 1.5, 2.5, 254.5, 300},
         {0, 1, 2, 3, 255, 255},
         {0},
         {255}},
        {"combined_u8_below_half", kCombined, U8, {0}, {255}, {0.49999997}, {1}, {0}, {255}},
        {"combined_u8_positive_range", kCombined, U8, {2}, {6}, {2, 4, 6}, {85, 170, 255}, {0}, {6}},
        {"combined_u8_negative_range", kCombined, U8, {-6}, {-2}, {-6, -4, -2, 0}, {0, 85, 170, 255}, {-6}, {0}},
        {"combined_u8_empty_range", kCombined, U8, {0}, {0}, {0, .005, .01}, {0, 128, 255}, {0}, {.00999999978}},
        {"combined_u8_tiny_range", kCombined, U8, {0}, {.001}, {0, .0005, .001}, {0, 13, 26}, {0}, {.00999999978}},
        {"combined_u8_tiny_not_ensured",
         kCombined,
         U8,
         {0},
         {.001},
         {0, .0005, .001},
         {0, 128, 255},
         {0},
         {.00100000005},
         false,
         "HALF_AWAY_FROM_ZERO",
         0},
        {"combined_u8_tiny_negative",
         kCombined,
         U8,
         {-.001},
         {0},
         {-.001, 0, .009},
         {0, 26, 255},
         {-.001},
         {.00899999961}},
        {"combined_u16", kCombined, U16, {0}, {6}, {0, 3, 6}, {0, 32768, 65535}, {0}, {6}},
        {"combined_s16", kCombined, S16, {0}, {6}, {0, 3, 6}, {-32768, -1, 32767}, {0}, {6}},
        {"first_u8",
         kFirst,
         U8,
         {0},
         {255},
         {0, 1, 1.25, 1.75, 127, 255, 500},
         {0, 1, 1, 2, 127, 255, 255},
         {0},
         {255}},
        {"first_u8_ties", kFirst, U8, {0}, {255}, {.5, 1.5, 2.5, -1}, {1, 2, 3, 0}, {0}, {255}},
        {"first_u8_positive", kFirst, U8, {.1}, {.3}, {.1, .2, .3}, {85, 170, 255}, {0}, {.3}},
        {"first_u8_negative", kFirst, U8, {-.3}, {-.1}, {-.1, -.2, -.3}, {170, 85, 0}, {-.3}, {0}},
        {"first_u8_empty", kFirst, U8, {0}, {0}, {0}, {0}, {0}, {.01}},
        {"first_u8_symmetric", kFirst, U8, {-1}, {1}, {-1, -.5, 0, .5, 1}, {0, 64, 128, 192, 255}, {-1}, {1}},
        {"first_s8_symmetric", kFirst, S8, {-1}, {1}, {-1, -.5, 0, .5, 1}, {-128, -64, 0, 64, 127}, {-1}, {1}},
        {"first_s8_tiny_not_ensured",
         kFirst,
         S8,
         {-.000128},
         {.000127},
         {-1e-6, 0, 4.2e-5},
         {-1, 0, 42},
         {-.000128},
         {.000127},
         false,
         "HALF_AWAY_FROM_ZERO",
         0},
        {"first_s8_tiny",
         kFirst,
         S8,
         {-.000128},
         {.000127},
         {-1e-6, 0, 4.2e-5},
         {-125, -125, -124},
         {-.000128},
         {.00987199973}},
        {"first_s32",
         kFirst,
         S32,
         {-256},
         {256},
         {-500, 0, 1, 1.25, 1.75, 127, 255, 500},
         {-2147483648.0, 0, 8388608, 10485760, 14680064, 1065353216, 2139095040, 2147483520},
         {},
         {}},
        {"scaled_u8",
         kScaled,
         U8,
         {-255},
         {127},
         {-255, 0, 1, 1.25, 1.75, 64, 127, 500},
         {0, 0, 2, 3, 4, 129, 255, 255},
         {0},
         {127}},
        {"scaled_u8_mixed", kScaled, U8, {-1}, {2}, {-1, 0, 2}, {0, 0, 255}, {0}, {2}},
        {"scaled_s8",
         kScaled,
         S8,
         {-128},
         {100},
         {-128, 0, 1, 1.25, 1.75, 64, 127},
         {-128, 0, 1, 1, 2, 64, 127},
         {-128},
         {127}},
        {"scaled_s8_narrow",
         kScaled,
         S8,
         {-128},
         {100},
         {-128, 0, 1, 1.25, 1.75, 64, 127},
         {-127, 0, 1, 1, 2, 64, 126},
         {-128},
         {128},
         true},
        {"scaled_s8_small", kScaled, S8, {-.064}, {.127}, {-.064, 0, .127}, {-64, 0, 127}, {-.128}, {.127}},
        {"scaled_s8_half_even",
         kScaled,
         S8,
         {-128},
         {-128},
         {-126.5, 0, 1, 2.5, 3.5, 64, 127},
         {-126, 0, 1, 2, 4, 64, 127},
         {-128},
         {127},
         false,
         "HALF_TO_EVEN"},
        {"scaled_s8_half_away",
         kScaled,
         S8,
         {-128},
         {-128},
         {-126.5, 0, 1, 2.5, 3.5, 64, 127},
         {-127, 0, 1, 3, 4, 64, 127},
         {-128},
         {127}},
        {"scaled_s8_symmetric",
         kScaled,
         S8,
         {-1},
         {1},
         {-1, -.5, 0, .5, 1},
         {-127, -64, 0, 64, 127},
         {-1.00787401},
         {1}},
        {"scaled_s8_symmetric_narrow",
         kScaled,
         S8,
         {-1},
         {1},
         {-1, -.5, 0, .5, 1},
         {-127, -64, 0, 64, 127},
         {-1},
         {1},
         true},
        {"scaled_s8_negative",
         kScaled,
         S8,
         {-10},
         {0},
         {-10, -5, 0, 5, 10},
         {-128, -64, 0, 64, 127},
         {-10},
         {9.921875}},
        {"scaled_s8_positive",
         kScaled,
         S8,
         {0},
         {10},
         {-10, -5, 0, 5, 10},
         {-127, -64, 0, 64, 127},
         {-10.0787401},
         {10}},
        {"scaled_u8_narrow", kScaled, U8, {0}, {255}, {0, .4, 1, 2, 300}, {1, 1, 1, 2, 255}, {1}, {255}, true},
        {"scaled_u8_degenerate", kScaled, U8, {-2}, {-1}, {-2, -1, 0, 1}, {0, 0, 0, 255}, {0}, {7.49e-37}},
        {"scaled_s8_axis",
         kScaled,
         S8,
         {-1, -20, -300},
         {1, 20, 300},
         {1, 20, 300, -1, -20, -300},
         {127, 127, 127, -127, -127, -127},
         {-1.00787401, -20.1574802, -302.362183},
         {1, 20, 300},
         false,
         "HALF_AWAY_FROM_ZERO",
         .01,
         1,
         {2, 3}},
        {"scaled_s32_saturates", kScaled, S32, {-1}, {1}, {-1, 1, 5}, {-2147483648.0, 2147483647, 2147483647}, {}, {}},
        {"combined_s32_saturates", kCombined, S32, {-1}, {1}, {-5, 5}, {-2147483648.0, 2147483647}, {}, {}},
        {"nan_is_zero", kFirst, U8, {-1}, {1}, {kNan, kInf, -kInf}, {128, 255, 0}, {-1}, {1}},
    };
    return table;
}

class RefQuantizeV2 : public testing::TestWithParam<size_t> {};

TEST_P(RefQuantizeV2, MatchesTheKernel) {
    const QuantizeRow &row = rows()[GetParam()];
    const Result r = quantize(row);
    expect_values(r, row.q);
    if (!row.out_min.empty()) expect_values(r, as_f32(row.out_min), 1e-7, 1);
    if (!row.out_max.empty()) expect_values(r, as_f32(row.out_max), 1e-7, 2);
}

INSTANTIATE_TEST_SUITE_P(Rows, RefQuantizeV2, testing::Range<size_t>(0, rows().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                             return std::string(rows()[info.param].name);
                         });

TEST(RefQuantizeV2Errors, RefuseBadRanges) {
    const QuantizeRow good = {"", kScaled, U8, {0}, {1}, {1}, {}, {}, {}};
    EXPECT_EQ(quantize(good).status, QDQ_OK);
    for (auto range : std::vector<std::pair<double, double>>{
             {1, 0}, {0, (double)kInf}, {(double)kNan, 1}, {0, (double)kNan}, {-(double)kInf, 0}}) {
        QuantizeRow bad = good;
        bad.min = {range.first};
        bad.max = {range.second};
        const Result r = quantize(bad);
        EXPECT_EQ(r.status, QDQ_E_BAD_SCALE) << range.first << " " << range.second;
        EXPECT_NE(r.text, "");
    }
}

TEST(RefQuantizeV2Errors, RefuseBadAxesAndModes) {
    QuantizeRow row = {"", kScaled, U8, {0}, {1}, {1, 2, 3, 4}, {}, {}, {}};
    row.dims = {2, 2};
    row.axis = 5;
    EXPECT_NE(quantize(row).status, QDQ_OK);
    row.axis = 1; /* two slices, one range */
    EXPECT_NE(quantize(row).status, QDQ_OK);
    row.min = {0, 0};
    row.max = {1, 1};
    EXPECT_EQ(quantize(row).status, QDQ_OK);
    row.mode = kFirst;
    EXPECT_NE(quantize(row).status, QDQ_OK);
    row.axis = -1;
    row.min = {0};
    row.max = {1};
    row.round = "HALF_TO_EVEN";
    EXPECT_NE(quantize(row).status, QDQ_OK);
}

Result dequantize(const char *mode, qdq_dtype dtype, double min, double max, const Values &q, bool narrow = false,
                  const char *out = "f32") {
    return run("TFDequantize", {S("mode", mode), B("narrow_range", narrow), S("dtype", out)},
               {Tensor(dtype, {(int64_t)q.size()}, q), f32({}, {min}), f32({}, {max})}, {infer()});
}

TEST(RefTfDequantize, MatchesTheKernel) {
    expect_values(dequantize(kCombined, U8, 0, 6, {0, 127, 128, 255}), as_f32({0, 2.98823524, 3.01176476, 6}), 1e-7);
    expect_values(dequantize(kCombined, S8, -1, 1, {-128, 0, 127}), as_f32({-1, .003921628, 1}), 1e-7);
    expect_values(dequantize(kFirst, U8, 0, 255, {0, 1, 128, 255}), {0, 1, 128, 255});
    expect_values(dequantize(kFirst, U8, -1, 1, {0, 127, 128, 255}), as_f32({-.996078491, 0, .00784313679, 1.00392151}),
                  1e-7);
    expect_values(dequantize(kScaled, S8, -128, 100, {-128, 0, 127}), {-128, 0, 127});
    expect_values(dequantize(kScaled, S8, -128, 100, {-127, 0, 127}, true), {-128, 0, 128});
    expect_values(dequantize(kScaled, U8, -255, 127, {0, 128, 255}), as_f32({0, 63.7490196, 127}), 1e-7);
    expect_values(dequantize(kFirst, U8, 3, 3, {0, 255}), {3, 3});
    expect_values(dequantize(kCombined, U8, 0, 6, {255}, false, "bf16"), {6});
}

// MIN_FIRST rounds its lowest value on both ways, each by up to half a step.
TEST(RefTfDequantize, QuantizedAndBackStaysNear) {
    for (const char *mode : {kCombined, kFirst, kScaled}) {
        const Values x = {-1, -.75, -.3, 0, .2, .6, 1};
        const QuantizeRow row = {"", mode, S8, {-1}, {1}, x, {}, {}, {}};
        const Result q = quantize(row);
        ASSERT_EQ(q.status, QDQ_OK) << q.text;
        const Result r = dequantize(mode, S8, q.out[1].get(0), q.out[2].get(0), q.out[0].values());
        ASSERT_EQ(r.status, QDQ_OK) << r.text;
        for (size_t i = 0; i < x.size(); i++)
            EXPECT_NEAR(r.out[0].get((int64_t)i), x[i], 2.0 / 255 * 1.51) << mode;
    }
}

} // namespace
