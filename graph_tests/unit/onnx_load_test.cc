// What the ONNX reader makes of the ways in which a model may be written.
#include "onnx_helpers.h"

using namespace onnx_test;

namespace {

using Values = std::vector<double>;
using Dims = std::vector<int64_t>;

TEST(OnnxLoad, EveryFormOfAnInitializer) {
    const Loaded m = load(case_path("forms.onnx"));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    const std::vector<Tensor> outputs = run_reference(m.graph.get(), {});
    EXPECT_EQ(outputs.size(), 27u);
    for (const Tensor &t : outputs)
        EXPECT_EQ(t.values(), (Values{0, 1, 2, 3})) << t.name;
}

TEST(OnnxLoad, ExternalData) {
    const Loaded m = load(case_path("external.onnx"));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    EXPECT_EQ(run_reference(m.graph.get(), {}).at(0).values(), (Values{0, 1, 2, 3, 4, 5}));
    const Loaded bytes = load_bytes(bytes_of(case_path("external.onnx")));
    EXPECT_EQ(bytes.status, QDQ_E_ONNX);
    EXPECT_NE(bytes.text.find("given as bytes"), std::string::npos) << bytes.text;
}

TEST(OnnxLoad, WiringOfNamesInAnyOrder) {
    const Loaded m = load(case_path("wiring.onnx"));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    std::vector<Tensor> inputs = ports(m.graph.get(), false);
    ASSERT_EQ(inputs.size(), 2u); // w is an initializer, so it is none
    EXPECT_EQ(inputs[0].name, "unused");
    EXPECT_EQ(inputs[1].name, "a");
    inputs[1].set({10, -20, 1});
    for (const std::vector<Tensor> &outputs :
         {run_reference(m.graph.get(), inputs), run_session(m.graph.get(), inputs)}) {
        ASSERT_EQ(outputs.size(), 3u);
        EXPECT_EQ(outputs[0].name, "y");
        EXPECT_EQ(outputs[0].values(), (Values{4, -18, 4}));
        EXPECT_EQ(outputs[1].name, "a");
        EXPECT_EQ(outputs[1].values(), (Values{10, -20, 1}));
        EXPECT_EQ(outputs[2].name, "w");
        EXPECT_EQ(outputs[2].values(), (Values{1, 2, 3}));
    }
}

TEST(OnnxLoad, DoublesAreComputedInF32) {
    const Loaded m = load(case_path("double.onnx"));
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    std::vector<Tensor> inputs = ports(m.graph.get(), false);
    ASSERT_EQ(inputs.size(), 1u);
    EXPECT_EQ(inputs[0].desc.dtype, QDQ_DTYPE_F64);
    EXPECT_EQ(inputs[0].name, "x");
    inputs[0].set({1.5, -3});
    const std::vector<Tensor> outputs = run_reference(m.graph.get(), inputs);
    EXPECT_EQ(outputs.at(0).desc.dtype, QDQ_DTYPE_F64);
    EXPECT_EQ(outputs.at(0).name, "y");
    EXPECT_EQ(outputs.at(0).values(), (Values{3, -6}));
}

// ---- symbolic dimensions: inputs a [N, 3] and b [N, M] ----

Dims dims_of_input(const Loaded &m, size_t i) {
    return ports(m.graph.get(), false).at(i).dims();
}

TEST(OnnxDims, UnboundOnesAreOneOrTheDefault) {
    EXPECT_EQ(dims_of_input(load(case_path("symbolic.onnx")), 1), (Dims{1, 1}));
    qdq_onnx_options o = {};
    o.struct_bytes = sizeof o;
    o.default_dim = 3;
    EXPECT_EQ(dims_of_input(load(case_path("symbolic.onnx"), &o), 1), (Dims{3, 3}));
}

TEST(OnnxDims, BoundByName) {
    const qdq_dim_binding dims[] = {{"N", 5}, {"M", 3}, {"of no input", 9}};
    qdq_onnx_options o = {};
    o.struct_bytes = sizeof o;
    o.dims = dims;
    o.n_dims = 3;
    const Loaded m = load(case_path("symbolic.onnx"), &o);
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    EXPECT_EQ(dims_of_input(m, 0), (Dims{5, 3}));
    EXPECT_EQ(dims_of_input(m, 1), (Dims{5, 3}));
}

struct Shapes {
    std::vector<qdq_input_shape> shapes;
    qdq_onnx_options options = {};

    Shapes(std::vector<qdq_input_shape> given, bool is_data) : shapes(std::move(given)) {
        options.struct_bytes = sizeof options;
        (is_data ? options.data_shapes : options.shapes) = shapes.data();
        (is_data ? options.n_data_shapes : options.n_shapes) = shapes.size();
    }
};

TEST(OnnxDims, ShapesOfDataBindNamesForEveryInput) {
    const int64_t a[] = {7, 3};
    const Shapes by_position({{nullptr, 2, a}}, true);
    const Loaded m = load(case_path("symbolic.onnx"), &by_position.options);
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    EXPECT_EQ(dims_of_input(m, 0), (Dims{7, 3}));
    EXPECT_EQ(dims_of_input(m, 1), (Dims{7, 1}));
}

TEST(OnnxDims, ShapesOfDataMustFitFixedDims) {
    const int64_t a[] = {7, 4}, three[] = {1, 1, 3};
    const Shapes wrong({{"a", 2, a}}, true), rank({{"a", 3, three}}, true);
    const Loaded m = load(case_path("symbolic.onnx"), &wrong.options);
    EXPECT_EQ(m.status, QDQ_E_BAD_SHAPE);
    EXPECT_NE(m.text.find("\"a\": dimension 1 is 4, the model expects 3"), std::string::npos) << m.text;
    EXPECT_EQ(load(case_path("symbolic.onnx"), &rank.options).status, QDQ_E_BAD_SHAPE);
}

TEST(OnnxDims, AnOverrideChangesFixedDims) {
    const int64_t a[] = {2, 4}, b[] = {2, 4};
    const Shapes both({{"a", 2, a}, {"b", 2, b}}, false);
    const Loaded m = load(case_path("symbolic.onnx"), &both.options);
    ASSERT_EQ(m.status, QDQ_OK) << m.text;
    EXPECT_EQ(ports(m.graph.get(), true).at(0).dims(), (Dims{2, 4}));
}

TEST(OnnxDims, ContradictionsAndUnknownNamesAreErrors) {
    const int64_t a[] = {2, 3}, b[] = {4, 3}, negative[] = {-1, 3};
    const Shapes contradiction({{"a", 2, a}, {"b", 2, b}}, true), unknown({{"c", 2, a}}, true);
    const Shapes too_many({{nullptr, 2, a}, {nullptr, 2, a}, {nullptr, 2, a}}, true),
        below({{"a", 2, negative}}, false);
    const Loaded m = load(case_path("symbolic.onnx"), &contradiction.options);
    EXPECT_EQ(m.status, QDQ_E_BAD_SHAPE);
    EXPECT_NE(m.text.find("\"N\" is 4 here and 2 elsewhere"), std::string::npos) << m.text;
    EXPECT_EQ(load(case_path("symbolic.onnx"), &unknown.options).status, QDQ_E_NOT_FOUND);
    EXPECT_EQ(load(case_path("symbolic.onnx"), &too_many.options).status, QDQ_E_NOT_FOUND);
    EXPECT_EQ(load(case_path("symbolic.onnx"), &below.options).status, QDQ_E_BAD_SHAPE);
}

TEST(OnnxLoad, NullArguments) {
    qdq_graph *graph = nullptr;
    const uint8_t byte = 0;
    EXPECT_EQ(qdq_onnx_load_file(nullptr, nullptr, &graph, nullptr), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_onnx_load_file("x", nullptr, nullptr, nullptr), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_onnx_load_bytes(nullptr, 0, nullptr, &graph, nullptr), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_onnx_load_bytes(&byte, 0, nullptr, nullptr, nullptr), QDQ_E_NULL_ARG);
    EXPECT_EQ(graph, nullptr);
}

} // namespace
