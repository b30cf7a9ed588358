// Loading and running ONNX models in tests.
#ifndef QDQ_TEST_ONNX_HELPERS_H
#define QDQ_TEST_ONNX_HELPERS_H

#include "base/dtype.h"
#include "qdq/qdq.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace onnx_test {

inline std::string case_path(const std::string &name) {
    return std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/onnx/" + name;
}

inline std::vector<uint8_t> bytes_of(const std::string &path) {
    std::ifstream f(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

struct GraphDelete {
    void operator()(qdq_graph *graph) const { qdq_graph_destroy(&graph); }
};
using Graph = std::unique_ptr<qdq_graph, GraphDelete>;

struct Loaded {
    Graph graph;
    qdq_status status = QDQ_OK;
    std::string text;
};

inline Loaded load(const std::string &path, const qdq_onnx_options *options = nullptr) {
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    Loaded out;
    out.status = qdq_onnx_load_file(path.c_str(), options, &graph, &err);
    out.graph.reset(graph);
    out.text = err.text;
    return out;
}

inline Loaded load_bytes(const std::vector<uint8_t> &bytes, const qdq_onnx_options *options = nullptr) {
    // exactly as long as it says, so that a sanitizer sees a read beyond the end
    std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), copy.get());
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    Loaded out;
    out.status = qdq_onnx_load_bytes(copy.get(), bytes.size(), options, &graph, &err);
    out.graph.reset(graph);
    out.text = err.text;
    return out;
}

// A tensor with its memory; values are read and written as doubles.
struct Tensor {
    std::string name;
    qdq_tensor_desc desc = {};
    std::vector<uint8_t> memory;
    int64_t n = 0;

    Tensor(const qdq_tensor_desc &d, const char *tensor_name)
        : name(tensor_name == nullptr ? "" : tensor_name), desc(d) {
        // what inference found has no layout
        EXPECT_EQ(qdq_tensor_desc_init(d.id, d.dtype, d.ndims, d.dims, QDQ_LAYOUT_STRIDED, d.property, &desc, nullptr),
                  QDQ_OK);
        size_t bytes = 0;
        EXPECT_EQ(qdq_tensor_desc_size_bytes(&desc, &bytes, nullptr), QDQ_OK) << name;
        EXPECT_EQ(qdq_tensor_desc_n_elems(&desc, &n, nullptr), QDQ_OK) << name;
        memory.resize(bytes);
    }
    double at(int64_t i) const { return qdqi_load_f64(memory.data(), desc.dtype, i); }
    void set(const std::vector<double> &values) {
        ASSERT_EQ(static_cast<int64_t>(values.size()), n) << name;
        for (int64_t i = 0; i < n; i++)
            qdqi_store_f64(memory.data(), desc.dtype, i, values[static_cast<size_t>(i)]);
    }
    std::vector<double> values() const {
        std::vector<double> out;
        for (int64_t i = 0; i < n; i++)
            out.push_back(at(i));
        return out;
    }
    std::vector<int64_t> dims() const { return {desc.dims, desc.dims + desc.ndims}; }
};

inline std::vector<Tensor> ports(const qdq_graph *graph, bool outputs) {
    std::vector<Tensor> out;
    const size_t n = outputs ? qdq_graph_n_outputs(graph) : qdq_graph_n_inputs(graph);
    for (size_t i = 0; i < n; i++) {
        qdq_tensor_desc desc = {};
        const char *name = nullptr;
        const qdq_status st = outputs ? qdq_graph_output_desc(graph, i, &desc, &name, nullptr)
                                      : qdq_graph_input_desc(graph, i, &desc, &name, nullptr);
        EXPECT_EQ(st, QDQ_OK);
        out.emplace_back(desc, name);
    }
    return out;
}

inline std::vector<qdq_tensor> views(std::vector<Tensor> &tensors) {
    std::vector<qdq_tensor> out;
    for (Tensor &t : tensors)
        out.push_back({t.desc, t.memory.data()});
    return out;
}

// Run on the reference; outputs by name.
inline std::vector<Tensor> run_reference(const qdq_graph *graph, std::vector<Tensor> inputs) {
    std::vector<Tensor> outputs = ports(graph, true);
    std::vector<qdq_tensor> in = views(inputs), out = views(outputs);
    qdq_error err = {};
    EXPECT_EQ(qdq_graph_run_reference(graph, in.data(), in.size(), out.data(), out.size(), &err), QDQ_OK) << err.text;
    return outputs;
}

// Run through a session: partitioned, fused, compiled.
inline std::vector<Tensor> run_session(const qdq_graph *graph, std::vector<Tensor> inputs) {
    std::vector<Tensor> outputs = ports(graph, true);
    qdq_engine *engine = nullptr;
    qdq_session *session = nullptr;
    qdq_error err = {};
    EXPECT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
    EXPECT_EQ(qdq_session_create(graph, engine, nullptr, &session, &err), QDQ_OK) << err.text;
    std::vector<const void *> in;
    std::vector<void *> out;
    for (Tensor &t : inputs)
        in.push_back(t.memory.data());
    for (Tensor &t : outputs)
        out.push_back(t.memory.data());
    if (session != nullptr) {
        EXPECT_EQ(qdq_session_run(session, in.data(), in.size(), out.data(), out.size(), &err), QDQ_OK) << err.text;
    }
    qdq_session_destroy(&session);
    qdq_engine_destroy(&engine);
    return outputs;
}

inline const Tensor *find(const std::vector<Tensor> &tensors, const std::string &name) {
    for (const Tensor &t : tensors)
        if (t.name == name) return &t;
    return nullptr;
}

} // namespace onnx_test

#endif
