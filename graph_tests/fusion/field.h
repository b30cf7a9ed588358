// Short words for small graphs with known answers.
#ifndef QDQ_TEST_FUSION_FIELD_H
#define QDQ_TEST_FUSION_FIELD_H

#include "fusion/net.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace qdq_test {

using Longs = std::vector<int64_t>;
using Reals = std::vector<float>;

class Field : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(qdq_engine_create(nullptr, &engine, nullptr), QDQ_OK); }
    void TearDown() override { qdq_engine_destroy(&engine); }

    Id X(qdq_dtype dtype, const Dims &dims, const Longs &values) { return net.Ints(dtype, dims, values, false); }
    Id W(qdq_dtype dtype, const Dims &dims, const Longs &values) { return net.Ints(dtype, dims, values, true); }
    Id S8(const Dims &dims, const Longs &values) { return X(QDQ_DTYPE_S8, dims, values); }
    Id U8(const Dims &dims, const Longs &values) { return X(QDQ_DTYPE_U8, dims, values); }
    Id F(const Dims &dims, const Reals &values) { return net.Floats(dims, values, false); }

    static std::vector<Attr> Quant(const Reals &scales, const Longs &zps, int64_t axis) {
        std::vector<Attr> attrs = {AttrFs("scales", scales)};
        if (!zps.empty()) attrs.push_back(AttrIs("zps", zps));
        if (scales.size() > 1 || zps.size() > 1) {
            attrs.push_back(AttrS("qtype", "per_channel"));
            attrs.push_back(AttrI("axis", axis));
        }
        return attrs;
    }
    Id Dq(Id x, const Reals &scales, const Longs &zps = {}, int64_t axis = 1) {
        return Op("Dequantize", {x}, Quant(scales, zps, axis));
    }
    Id Q(Id x, qdq_dtype dtype, const Reals &scales, const Longs &zps = {}, int64_t axis = 1) {
        return Op("Quantize", {x}, Quant(scales, zps, axis), dtype);
    }
    Id Op(const char *kind, const std::vector<Id> &in, const std::vector<Attr> &attrs = {},
          qdq_dtype out = QDQ_DTYPE_UNDEF) {
        const Id id = net.Op1(kind, in, attrs, out);
        if (id == kMissing) {
            ADD_FAILURE() << kind << ": " << net.error;
            std::abort(); // the test is wrong: nothing can follow
        }
        return id;
    }
    static std::vector<Attr> ConvAttrs(const Longs &strides, const Longs &begin, const Longs &end, int64_t groups = 1) {
        return {AttrIs("strides", strides),    AttrIs("dilations", Longs(strides.size(), 1)),
                AttrIs("pads_begin", begin),   AttrIs("pads_end", end),
                AttrI("groups", groups),       AttrS("data_format", "NCX"),
                AttrS("weights_format", "OIX")};
    }
    static std::vector<Attr> PoolAttrs(const Longs &kernel, const Longs &strides, const Longs &begin, const Longs &end,
                                       const char *format = "NCX") {
        return {AttrIs("strides", strides), AttrIs("kernel", kernel), AttrIs("pads_begin", begin),
                AttrIs("pads_end", end), AttrS("data_format", format)};
    }

    // The answer by hand is that of the reference, of every partition on its own, and of a session.
    // `n_partitions` 0: any number.
    void Expect(Id out, const std::vector<double> &want, size_t n_partitions = 1) {
        const Value &v = net.At(out);
        ASSERT_EQ(Count(v.dims), static_cast<int64_t>(want.size()));
        for (size_t i = 0; i < want.size(); i++) {
            const double got = qdqi_load_f64(v.data.data(), v.dtype, static_cast<int64_t>(i));
            EXPECT_NEAR(got, want[i], qdqi_dtype_is_int(v.dtype) ? 0.0 : 1e-6 * std::fabs(want[i]))
                << "reference, element " << i;
        }
        Same({out}, n_partitions);
    }
    // Fused equals node by node.
    void Same(const std::vector<Id> &outs, size_t n_partitions = 1) {
        for (const bool any_layout : {false, true}) {
            const Outcome fused = RunFused(net, outs, engine, any_layout);
            EXPECT_EQ(fused.failure, "") << net.Text() << fused.pattern << " | " << fused.impl;
            if (n_partitions) {
                EXPECT_EQ(fused.n_partitions, n_partitions) << net.Text() << fused.pattern;
            }
        }
        const Outcome session = RunSession(net, outs, engine);
        EXPECT_EQ(session.failure, "") << net.Text() << session.pattern << " | " << session.impl;
    }
    // Bytes in a repeating pattern over the range.
    static Longs Ramp(int64_t n, int64_t low, int64_t high, int64_t step = 37) {
        Longs v;
        for (int64_t i = 0; i < n; i++)
            v.push_back(low + (i * step) % (high - low + 1));
        return v;
    }
    void Clear() { net = Net(); }

    Net net;
    qdq_engine *engine = nullptr;
};

} // namespace qdq_test

#endif
