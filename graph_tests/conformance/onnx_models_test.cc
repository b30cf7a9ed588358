// Whole models with recorded inputs and outputs (of ONNX Runtime without optimizations), from the folder outside of the tree.
#include "unit/onnx_helpers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/stat.h>

using namespace onnx_test;

namespace {

struct Model {
    const char *name;
    double step; // quantization step of the output; 0: the output is not quantized
    int n_inputs;
};
void PrintTo(const Model &model, std::ostream *out) {
    *out << model.name;
}

// The files hold little-endian row-major f32 or i8 (int64) arrays with a version 1 header.
struct Npy {
    std::vector<int64_t> dims;
    std::vector<double> values;
    bool is_s64 = false;
};

Npy read_npy(const std::string &path) {
    const std::vector<uint8_t> bytes = bytes_of(path);
    Npy out;
    if (bytes.size() < 10) return out;
    const size_t start = 10u + bytes[8] + 256u * bytes[9];
    const std::string header(bytes.begin() + 10, bytes.begin() + static_cast<std::ptrdiff_t>(start));
    out.is_s64 = header.find("'<i8'") != std::string::npos;
    EXPECT_TRUE(out.is_s64 || header.find("'<f4'") != std::string::npos) << path << ": " << header;
    EXPECT_EQ(header.find("True"), std::string::npos) << path;
    for (size_t at = header.find('(') + 1; header[at] != ')';) {
        size_t used = 0;
        out.dims.push_back(std::stoll(header.substr(at), &used));
        at = header.find_first_not_of(", ", at + used);
    }
    const size_t size = out.is_s64 ? 8 : 4;
    for (size_t at = start; at + size <= bytes.size(); at += size) {
        float f = 0;
        int64_t i = 0;
        std::memcpy(out.is_s64 ? static_cast<void *>(&i) : &f, &bytes[at], size);
        out.values.push_back(out.is_s64 ? static_cast<double>(i) : static_cast<double>(f));
    }
    return out;
}

std::string folder_of(const std::string &name) {
#ifdef QDQ_SHARED_DIR
    return std::string(QDQ_SHARED_DIR) + "/models/" + name + "/";
#else
    return name + "/";
#endif
}

bool exists(const std::string &path) {
    struct stat info;
    return stat(path.c_str(), &info) == 0;
}

class OnnxModels : public ::testing::TestWithParam<Model> {
  protected:
    void SetUp() override {
        folder = folder_of(GetParam().name);
        if (!exists(folder + "model.onnx")) GTEST_SKIP() << "there is no " << folder << "model.onnx";
        std::vector<Npy> arrays;
        std::vector<qdq_input_shape> shapes;
        for (int i = 0; i < GetParam().n_inputs; i++)
            arrays.push_back(read_npy(folder + "input_" + std::to_string(i) + ".npy"));
        for (const Npy &a : arrays)
            shapes.push_back({nullptr, static_cast<int32_t>(a.dims.size()), a.dims.data()});
        qdq_onnx_options options = {};
        options.struct_bytes = sizeof options;
        options.data_shapes = shapes.data();
        options.n_data_shapes = shapes.size();
        m = load(folder + "model.onnx", &options);
        ASSERT_EQ(m.status, QDQ_OK) << m.text;
        inputs = ports(m.graph.get(), false);
        ASSERT_EQ(inputs.size(), arrays.size());
        for (size_t i = 0; i < arrays.size(); i++) {
            ASSERT_EQ(inputs[i].dims(), arrays[i].dims);
            inputs[i].set(arrays[i].values);
        }
        expected = read_npy(folder + "output_0.npy");
        ASSERT_FALSE(expected.values.empty());
    }

    size_t top1(const std::vector<double> &values, size_t row) const {
        const size_t n = static_cast<size_t>(expected.dims[1]);
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * n);
        return static_cast<size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(n)) - first);
    }

    void expect_top1(const Tensor &found) const {
        const std::vector<double> values = found.values();
        ASSERT_EQ(found.dims(), expected.dims);
        for (size_t row = 0; row < static_cast<size_t>(expected.dims[0]); row++)
            EXPECT_EQ(top1(values, row), top1(expected.values, row)) << "row " << row;
    }

    std::string folder;
    Loaded m;
    std::vector<Tensor> inputs;
    Npy expected;
};

TEST_P(OnnxModels, ReferenceGivesTheRecordedOutputs) {
    const std::vector<Tensor> outputs = run_reference(m.graph.get(), inputs);
    ASSERT_EQ(outputs.size(), 1u);
    expect_top1(outputs[0]);
    for (int64_t i = 0; i < outputs[0].n; i++)
        ASSERT_NEAR(outputs[0].at(i), expected.values[static_cast<size_t>(i)], GetParam().step * 1.001 + 1e-4) << i;
}

TEST_P(OnnxModels, SessionStaysWithinTwoSteps) {
    const std::vector<Tensor> outputs = run_session(m.graph.get(), inputs);
    ASSERT_EQ(outputs.size(), 1u);
    expect_top1(outputs[0]);
    for (int64_t i = 0; i < outputs[0].n; i++)
        ASSERT_NEAR(outputs[0].at(i), expected.values[static_cast<size_t>(i)], GetParam().step * 2.001 + 1e-4) << i;
}

const Model models[] = {
    {"bert_mini_dynamic", 0.0, 3},
    {"bert_mini_u8s8", 0.0028605238, 3},
    {"mobilenetv2_mini_s8s8", 0.025645416, 1},
    {"mobilenetv2_mini_u8s8", 0.02633404, 1},
    {"ppocr_cls_s8s8", 0.003921569, 1},
    {"resnet50_u8s8", 0.003921569, 1},
    {"squeezenet_s8s8", 0.003921569, 1},
};

INSTANTIATE_TEST_SUITE_P(Recorded, OnnxModels, ::testing::ValuesIn(models),
                         [](const auto &info) { return info.param.name; });

} // namespace
