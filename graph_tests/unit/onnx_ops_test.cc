// Every ONNX op that the reader knows, against what ONNX Runtime computed when the models were made.
#include "onnx_helpers.h"

#include <cmath>

using namespace onnx_test;

namespace {

class OnnxOps : public ::testing::TestWithParam<const char *> {};

bool is_quantized(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8 || dtype == QDQ_DTYPE_U16 || dtype == QDQ_DTYPE_S16;
}

// `lsb`: by how much quantized values may differ (a fused chain rounds once where a chain of ops rounds twice).
void compare(const std::vector<Tensor> &outputs, double lsb) {
    size_t n_pairs = 0;
    for (const Tensor &found : outputs) {
        const Tensor *expected = find(outputs, found.name + "_expected");
        if (expected == nullptr) continue;
        n_pairs++;
        EXPECT_EQ(found.desc.dtype, expected->desc.dtype) << found.name;
        ASSERT_EQ(found.dims(), expected->dims()) << found.name;
        for (int64_t i = 0; i < found.n; i++) {
            const double a = found.at(i), b = expected->at(i);
            const double tolerance = qdqi_dtype_is_float(found.desc.dtype) ? 2e-5 * std::fmax(1.0, std::fabs(b))
                                     : is_quantized(found.desc.dtype)      ? lsb
                                                                           : 0.0;
            ASSERT_LE(std::fabs(a - b), tolerance) << found.name << " at " << i << ": " << a << ", expected " << b;
        }
    }
    EXPECT_EQ(2 * n_pairs, outputs.size());
    EXPECT_GT(n_pairs, 0u);
}

TEST_P(OnnxOps, ReferenceIsWhatOnnxRuntimeComputes) {
    const Loaded m = load(case_path(GetParam()));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    compare(run_reference(m.graph.get(), {}), 0.0);
}

TEST_P(OnnxOps, SessionIsWhatOnnxRuntimeComputes) {
    const Loaded m = load(case_path(GetParam()));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    compare(run_session(m.graph.get(), {}), 1.0);
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxOps,
                         ::testing::Values("ops_10.onnx", "ops_11.onnx", "ops_13.onnx", "ops_nn_13.onnx",
                                           "ops_shape_13.onnx", "ops_21.onnx", "ops_quant_13.onnx", "ops_quant_21.onnx",
                                           "ops_ms.onnx"),
                         [](const auto &info) {
                             std::string name = info.param;
                             return name.substr(0, name.find('.'));
                         });

} // namespace
