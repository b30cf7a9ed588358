// The node tests of the onnx package for the quantization ops: models and tensors as the package itself writes them
// (gen_onnx_nodes.py). The folder is $QDQ_ONNX_NODE_DATA, or onnx_nodes in the build folder.
#include "harness/tensor_file.h"
#include "vector_run.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace {

std::string folder() {
    const char *given = std::getenv("QDQ_ONNX_NODE_DATA");
    return given != nullptr && given[0] != '\0' ? given : std::string(QDQ_BINARY_DIR) + "/onnx_nodes";
}

std::vector<std::string> entries(const std::string &path) {
    std::vector<std::string> out;
    DIR *dir = opendir(path.c_str());
    if (dir == nullptr) return out;
    while (const dirent *entry = readdir(dir))
        if (entry->d_name[0] != '.') out.push_back(entry->d_name);
    closedir(dir);
    std::sort(out.begin(), out.end());
    return out;
}

// Data types that libqdq does not have: a model that needs one is left out, by name.
const char *missing_type(const std::string &message) {
    const std::string::size_type from = message.find("data type");
    if (from == std::string::npos) return nullptr;
    for (const char *type : {"float4e2m1", "float6", "uint2", "int2", "float8e8m0", "float8e4m3fnuz", "float8e5m2fnuz"})
        if (message.find(type, from) != std::string::npos) return type;
    return nullptr;
}

struct GraphDelete {
    void operator()(qdq_graph *graph) const { qdq_graph_destroy(&graph); }
};

// "" when passed, "skipped: …", or what is wrong.
std::string read(const std::string &path, uint64_t id, vectors::Tensor *out) {
    qdq_error err = {};
    void *data = nullptr;
    qdq_tensor_desc desc = {};
    const qdq_status st = qh_read_tensor_file(path.c_str(), &desc, &data, &err);
    const std::unique_ptr<void, decltype(&std::free)> owned(data, &std::free);
    if (st != QDQ_OK) return missing_type(err.text) != nullptr ? "skipped: " + std::string(err.text) : err.text;
    *out = vectors::make_tensor(id, desc.dtype, {desc.dims, desc.dims + desc.ndims});
    if (!out->bytes.empty()) std::memcpy(out->bytes.data(), data, out->bytes.size());
    return "";
}

std::string compare(const std::vector<vectors::Tensor> &expected, const std::vector<vectors::Tensor> &got,
                    const std::string &how) {
    for (size_t i = 0; i < expected.size(); i++) {
        const std::string what = vectors::difference(expected[i], got[i], 0.0);
        if (!what.empty()) return how + ": output " + std::to_string(i) + ": " + what;
    }
    return "";
}

std::string run_test(const std::string &path) {
    qdq_graph *loaded = nullptr;
    qdq_error err = {};
    const qdq_status st = qdq_onnx_load_file((path + "/model.onnx").c_str(), nullptr, &loaded, &err);
    const std::unique_ptr<qdq_graph, GraphDelete> graph(loaded);
    if (st != QDQ_OK) return missing_type(err.text) != nullptr ? "skipped: " + std::string(err.text) : err.text;
    std::vector<vectors::Tensor> in, expected, got;
    std::vector<qdq_tensor> inputs, outputs;
    std::vector<const void *> in_data;
    std::vector<void *> out_data;
    for (size_t i = 0; i < qdq_graph_n_inputs(loaded) + qdq_graph_n_outputs(loaded); i++) {
        const bool is_in = i < qdq_graph_n_inputs(loaded);
        const size_t port = is_in ? i : i - qdq_graph_n_inputs(loaded);
        qdq_tensor_desc desc = {};
        const qdq_status found = is_in ? qdq_graph_input_desc(loaded, port, &desc, nullptr, &err)
                                       : qdq_graph_output_desc(loaded, port, &desc, nullptr, &err);
        if (found != QDQ_OK) return err.text;
        vectors::Tensor t;
        const std::string what = read(
            path + "/test_data_set_0/" + (is_in ? "input_" : "output_") + std::to_string(port) + ".pb", desc.id, &t);
        if (!what.empty()) return what;
        if (t.desc.dtype != desc.dtype) return "data type of port " + std::to_string(i);
        (is_in ? in : expected).push_back(t);
    }
    got = expected;
    for (vectors::Tensor &t : got)
        std::fill(t.bytes.begin(), t.bytes.end(), (unsigned char)0);
    for (vectors::Tensor &t : in) {
        inputs.push_back({t.desc, t.bytes.data()});
        in_data.push_back(t.bytes.data());
    }
    for (vectors::Tensor &t : got) {
        outputs.push_back({t.desc, t.bytes.data()});
        out_data.push_back(t.bytes.data());
    }
    if (qdq_graph_run_reference(loaded, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &err) != QDQ_OK)
        return std::string("reference: ") + err.text;
    const std::string what = compare(expected, got, "reference");
    if (!what.empty()) return what;
    for (vectors::Tensor &t : got)
        std::fill(t.bytes.begin(), t.bytes.end(), (unsigned char)0);
    qdq_engine *engine = nullptr;
    vectors::Result r;
    r.status = qdq_engine_create(nullptr, &engine, &r.err);
    if (r.status == QDQ_OK) vectors::run_session(loaded, engine, in_data, out_data, &r);
    qdq_engine_destroy(&engine);
    return r.status != QDQ_OK ? std::string("session: ") + r.err.text : compare(expected, got, "session " + r.impl);
}

TEST(ConformanceOnnxNodes, AllPassOrLackADataType) {
    const std::vector<std::string> names = entries(folder());
    if (names.empty()) GTEST_SKIP() << "no node tests in " << folder() << " (gen_onnx_nodes.py writes them)";
    int passed = 0, skipped = 0;
    for (const std::string &name : names) {
        const std::string what = run_test(folder() + "/" + name);
        if (what.empty()) {
            passed++;
        } else if (what.rfind("skipped", 0) == 0) {
            skipped++;
            std::printf("%s: %s\n", name.c_str(), what.c_str());
        } else {
            ADD_FAILURE() << name << ": " << what;
        }
    }
    std::printf("ONNX node tests: %d of %zu passed, %d skipped\n", passed, names.size(), skipped);
    EXPECT_GT(passed, 0);
}

} // namespace
