// TensorFlow's quantization ops inside fused partitions: affine modes take part, the ranges stay what the op gives out.
#include "qdq/qdq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Build {
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    uint64_t next_op = 1;

    Build() { EXPECT_EQ(qdq_graph_create(&graph, &err), QDQ_OK); }
    ~Build() { qdq_graph_destroy(&graph); }

    static qdq_tensor_desc desc(uint64_t id, qdq_dtype dtype, std::vector<int64_t> dims) {
        qdq_tensor_desc d;
        EXPECT_EQ(qdq_tensor_desc_init(id, dtype, static_cast<int32_t>(dims.size()), dims.data(), QDQ_LAYOUT_STRIDED,
                                       QDQ_PROPERTY_UNDEF, &d, nullptr),
                  QDQ_OK);
        return d;
    }
    template <class T> void constant(const qdq_tensor_desc &d, const std::vector<T> &values) {
        ASSERT_EQ(qdq_graph_set_constant(graph, &d, values.data(), values.size() * sizeof(T), QDQ_DATA_COPY, &err),
                  QDQ_OK)
            << err.text;
    }
    void op(const char *kind, const std::vector<qdq_tensor_desc> &in, const std::vector<qdq_tensor_desc> &out,
            const char *mode = nullptr, bool half_even = false) {
        qdq_op *o = nullptr;
        ASSERT_EQ(qdq_op_create(next_op++, kind, kind, &o, &err), QDQ_OK) << err.text;
        for (const auto &d : in)
            ASSERT_EQ(qdq_op_add_input(o, &d, &err), QDQ_OK);
        for (const auto &d : out)
            ASSERT_EQ(qdq_op_add_output(o, &d, &err), QDQ_OK);
        if (mode != nullptr) {
            ASSERT_EQ(qdq_op_set_attr_str(o, "mode", mode, &err), QDQ_OK);
        }
        if (half_even) {
            ASSERT_EQ(qdq_op_set_attr_str(o, "round_mode", "HALF_TO_EVEN", &err), QDQ_OK);
        }
        ASSERT_EQ(qdq_graph_add_op(graph, o, &err), QDQ_OK) << err.text;
        qdq_op_destroy(&o);
    }
};

struct Case {
    const char *mode;
    qdq_dtype dst;
    bool fuses; // into one partition without a float tensor in between
};
void PrintTo(const Case &c, std::ostream *out) {
    *out << c.mode << " " << qdq_dtype_name(c.dst);
}

class TfFusion : public ::testing::TestWithParam<Case> {};

// TFDequantize, TFDequantize -> MatMul -> ReLU -> QuantizeV2
TEST_P(TfFusion, MatMulGivesTheNodeByNodeIntegersAndRanges) {
    const Case c = GetParam();
    const int64_t m = 5, k = 33, n = 7;
    const bool tf_signed = c.dst == QDQ_DTYPE_S8;
    Build b;
    const auto a8 = b.desc(1, QDQ_DTYPE_U8, {m, k}), w8 = b.desc(2, QDQ_DTYPE_S8, {k, n});
    const auto amin = b.desc(3, QDQ_DTYPE_F32, {}), amax = b.desc(4, QDQ_DTYPE_F32, {});
    const auto wmin = b.desc(5, QDQ_DTYPE_F32, {}), wmax = b.desc(6, QDQ_DTYPE_F32, {});
    const auto ymin = b.desc(7, QDQ_DTYPE_F32, {}), ymax = b.desc(8, QDQ_DTYPE_F32, {});
    const auto a = b.desc(10, QDQ_DTYPE_F32, {m, k}), w = b.desc(11, QDQ_DTYPE_F32, {k, n});
    const auto p = b.desc(12, QDQ_DTYPE_F32, {m, n}), r = b.desc(13, QDQ_DTYPE_F32, {m, n});
    const auto y = b.desc(14, c.dst, {m, n}), omin = b.desc(15, QDQ_DTYPE_F32, {}),
               omax = b.desc(16, QDQ_DTYPE_F32, {});
    b.op("TFDequantize", {a8, amin, amax}, {a}, c.mode);
    b.op("TFDequantize", {w8, wmin, wmax}, {w}, c.mode);
    b.op("MatMul", {a, w}, {p});
    b.op("ReLU", {p}, {r});
    b.op("QuantizeV2", {r, ymin, ymax}, {y, omin, omax}, c.mode, std::string(c.mode) == "SCALED");
    std::vector<int8_t> weights(static_cast<size_t>(k * n));
    for (size_t i = 0; i < weights.size(); i++)
        weights[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 251) - 125);
    b.constant(w8, weights);
    b.constant<float>(amin, {0.0f});
    b.constant<float>(amax, {2.9f});
    b.constant<float>(wmin, {-1.3f});
    b.constant<float>(wmax, {1.1f});
    b.constant<float>(ymin, {-2.0f});
    b.constant<float>(ymax, {11.0f});
    const uint64_t outputs[] = {14, 15, 16};
    ASSERT_EQ(qdq_graph_set_outputs(b.graph, outputs, 3, &b.err), QDQ_OK);
    ASSERT_EQ(qdq_graph_finalize(b.graph, &b.err), QDQ_OK) << b.err.text;

    std::vector<uint8_t> x(static_cast<size_t>(m * k));
    for (size_t i = 0; i < x.size(); i++)
        x[i] = static_cast<uint8_t>(i * 91 % 256);
    std::vector<uint8_t> got(static_cast<size_t>(m * n)), want(got.size());
    float got_range[2] = {}, want_range[2] = {};
    qdq_tensor in = {a8, x.data()};
    std::vector<qdq_tensor> out = {{y, want.data()}, {omin, &want_range[0]}, {omax, &want_range[1]}};
    ASSERT_EQ(qdq_graph_run_reference(b.graph, &in, 1, out.data(), out.size(), &b.err), QDQ_OK) << b.err.text;

    qdq_engine *engine = nullptr;
    qdq_session *session = nullptr;
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, &b.err), QDQ_OK);
    ASSERT_EQ(qdq_session_create(b.graph, engine, nullptr, &session, &b.err), QDQ_OK) << b.err.text;
    const void *inputs[] = {x.data()};
    void *results[] = {got.data(), &got_range[0], &got_range[1]};
    ASSERT_EQ(qdq_session_run(session, inputs, 1, results, 3, &b.err), QDQ_OK) << b.err.text;
    ASSERT_EQ(qdq_session_n_parts(session), 1u);
    qdq_session_part_info info;
    ASSERT_EQ(qdq_session_part(session, 0, &info, &b.err), QDQ_OK);
    const bool one_step = std::string(info.impl).find("TFDequantize") == std::string::npos;
    EXPECT_EQ(one_step, c.fuses) << info.impl;
    EXPECT_EQ(memcmp(got_range, want_range, sizeof got_range), 0);
    int far = 0;
    for (size_t i = 0; i < got.size(); i++) {
        const int d = tf_signed ? static_cast<int8_t>(got[i]) - static_cast<int8_t>(want[i]) : got[i] - want[i];
        far += d < -1 || d > 1;
        if (d != 0) fprintf(stderr, "element %zu: %d for %d\n", i, got[i], want[i]);
    }
    EXPECT_EQ(far, 0);
    qdq_session_destroy(&session);
    qdq_engine_destroy(&engine);
}

INSTANTIATE_TEST_SUITE_P(Modes, TfFusion,
                         ::testing::Values(Case{"SCALED", QDQ_DTYPE_S8, true}, Case{"SCALED", QDQ_DTYPE_U8, true},
                                           Case{"MIN_FIRST", QDQ_DTYPE_U8, true}, Case{"MIN_FIRST", QDQ_DTYPE_S8, true},
                                           Case{"MIN_COMBINED", QDQ_DTYPE_U8, false}),
                         [](const auto &i) { return std::string(i.param.mode) + "_" + qdq_dtype_name(i.param.dst); });

} // namespace
