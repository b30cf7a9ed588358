// The comparison that every driver case relies on: that it sees errors, and where it looks away.
#include "harness/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

const float nan_value = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

template <typename T> qdq_tensor Tensor(qdq_dtype dtype, std::vector<T> &v) {
    qdq_tensor t = {};
    t.desc.id = 1;
    t.desc.dtype = dtype;
    t.desc.ndims = 1;
    t.desc.dims[0] = (int64_t)v.size();
    t.desc.layout = QDQ_LAYOUT_STRIDED;
    t.desc.strides[0] = 1;
    t.data = v.data();
    return t;
}

template <typename T> int64_t Errors(qdq_dtype dtype, std::vector<T> got, std::vector<T> want, const qdqh_rule &rule) {
    const qdq_tensor g = Tensor(dtype, got), w = Tensor(dtype, want);
    return qdqh_compare(&g, &w, &rule, nullptr, 0).errors;
}

// One s8 result `got` where the reference gives `want` and read x; scale and zero point as given.
int64_t QuantErrors(int got, int want, float x, float scale, int64_t zp, const qdqh_rule &rule) {
    std::vector<int8_t> g = {(int8_t)got}, w = {(int8_t)want};
    std::vector<float> xs = {x};
    const qdq_tensor gt = Tensor(QDQ_DTYPE_S8, g), wt = Tensor(QDQ_DTYPE_S8, w), xt = Tensor(QDQ_DTYPE_F32, xs);
    qdqh_quantizer q = {};
    q.x = &xt;
    q.scales = &scale;
    q.n_scales = 1;
    q.zps = &zp;
    q.n_zps = 1;
    return qdqh_compare(&gt, &wt, &rule, &q, 0).errors;
}

} // namespace

TEST(HarnessCompare, FloatsMayDifferInTheLastDigits) {
    const qdqh_rule rule = {};
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1.000005f, 2.0f}, {1.0f, 2.0f}, rule), 0);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1.00005f, 2.0f}, {1.0f, 2.0f}, rule), 1);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1e-4f, 1000.0f}, {0.0f, 1000.0f}, rule), 0) << "cancelled sums";
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1e-2f, 1000.0f}, {0.0f, 1000.0f}, rule), 1);
}

TEST(HarnessCompare, ExactMeansExact) {
    const qdqh_rule rule = {true, false, false, false};
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {std::nextafter(1.0f, 2.0f)}, {1.0f}, rule), 1);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1.0f}, {1.0f}, rule), 0);
    EXPECT_EQ(QuantErrors(4, 5, 4.5f, 1.0f, 0, rule), 1);
}

TEST(HarnessCompare, SpecialValuesMustBeTheSame) {
    const qdqh_rule rule = {};
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {nan_value, infinity}, {nan_value, infinity}, rule), 0);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {nan_value}, {1.0f}, rule), 1);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {1.0f}, {nan_value}, rule), 1);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {infinity}, {-infinity}, rule), 1);
    EXPECT_EQ(Errors<float>(QDQ_DTYPE_F32, {3.0e38f}, {infinity}, rule), 1);
}

TEST(HarnessCompare, IntegersMayDifferByOneAtATieOnly) {
    const qdqh_rule rule = {};
    EXPECT_EQ(QuantErrors(5, 4, 4.5f, 1.0f, 0, rule), 0);
    EXPECT_EQ(QuantErrors(5, 4, 4.499999f, 1.0f, 0, rule), 0);
    EXPECT_EQ(QuantErrors(5, 4, 4.49f, 1.0f, 0, rule), 1);
    EXPECT_EQ(QuantErrors(6, 4, 4.5f, 1.0f, 0, rule), 1) << "never by two";
    EXPECT_EQ(QuantErrors(3, 4, 4.5f, 1.0f, 0, rule), 1) << "never away from the tie";
    EXPECT_EQ(QuantErrors(15, 14, 1.125f, 0.25f, 10, rule), 0) << "scale and zero point count";
    const qdqh_rule functions = {false, true, false, false};
    EXPECT_EQ(QuantErrors(5, 4, 4.4999f, 1.0f, 0, functions), 0);
    EXPECT_EQ(QuantErrors(5, 4, 4.4999f, 1.0f, 0, rule), 1);
}

TEST(HarnessCompare, SaturationAndNan) {
    const qdqh_rule rule = {};
    EXPECT_EQ(QuantErrors(127, 127, infinity, 1.0f, 0, rule), 0);
    EXPECT_EQ(QuantErrors(126, 127, infinity, 1.0f, 0, rule), 1);
    EXPECT_EQ(QuantErrors(126, 127, 500.0f, 1.0f, 0, rule), 1);
    EXPECT_EQ(QuantErrors(-17, 0, nan_value, 1.0f, 0, rule), 0) << "a NaN may give anything in range";
}

TEST(HarnessCompare, IntegersWithoutAQuantizerAreExact) {
    const qdqh_rule rule = {};
    EXPECT_EQ(Errors<int32_t>(QDQ_DTYPE_S32, {1, 2, 3}, {1, 2, 4}, rule), 1);
}

TEST(HarnessCompare, FollowsStridesAndCounts) {
    std::vector<uint8_t> got = {1, 0, 255, 9, 0, 0}, want = {1, 9, 0, 0, 255, 0};
    qdq_tensor g = Tensor(QDQ_DTYPE_U8, got), w = Tensor(QDQ_DTYPE_U8, want);
    g.desc.ndims = w.desc.ndims = 2;
    g.desc.dims[0] = w.desc.dims[0] = 3;
    g.desc.dims[1] = w.desc.dims[1] = 2;
    g.desc.strides[0] = 1; // column-major
    g.desc.strides[1] = 3;
    w.desc.strides[0] = 2;
    w.desc.strides[1] = 1;
    const qdqh_rule rule = {};
    const qdqh_counts n = qdqh_compare(&g, &w, &rule, nullptr, 0);
    EXPECT_EQ(n.errors, 0);
    EXPECT_EQ(n.total, 6);
    EXPECT_EQ(n.zeros, 3);
    EXPECT_EQ(n.saturated, 4);
}

TEST(HarnessCompare, EmptyTensorsHaveNoErrors) {
    std::vector<float> none;
    const qdq_tensor t = Tensor(QDQ_DTYPE_F32, none);
    const qdqh_rule rule = {};
    EXPECT_EQ(qdqh_compare(&t, &t, &rule, nullptr, 0).total, 0);
}

TEST(HarnessCompare, NarrowFloatsByWhatIsRoundedInside) {
    qdqh_rule rule = {};
    rule.narrow = true;
    const std::vector<uint16_t> want = {0x0000, 0x4000}; // 0, 2
    const std::vector<uint16_t> near = {0x3bc0, 0x4000}, far = {0x3cc0, 0x4000}, wrong = {0x3d80, 0x4000};
    EXPECT_EQ(Errors<uint16_t>(QDQ_DTYPE_BF16, near, want, rule), 0); // 0.0059
    EXPECT_EQ(Errors<uint16_t>(QDQ_DTYPE_BF16, far, want, rule), 1);  // 0.0234
    rule.scores = true;
    EXPECT_EQ(Errors<uint16_t>(QDQ_DTYPE_BF16, far, want, rule), 0);
    EXPECT_EQ(Errors<uint16_t>(QDQ_DTYPE_BF16, wrong, want, rule), 1); // 0.0625
    EXPECT_EQ(Errors<uint16_t>(QDQ_DTYPE_F16, {0x2600, 0x4000}, {0x0000, 0x4000}, rule), 1)
        << "f16 keeps enough: 0.0234";
}
