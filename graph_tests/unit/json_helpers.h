// Small graphs as text, for the tests of the JSON front end.
#ifndef QDQ_TEST_JSON_HELPERS_H
#define QDQ_TEST_JSON_HELPERS_H

#include "qdq/qdq.h"

#include <gtest/gtest.h>

#include <dirent.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace json_test {

struct Loaded {
    qdq_status status = QDQ_OK;
    std::string error;
    qdq_graph *graph = nullptr;
    Loaded() = default;
    Loaded(Loaded &&other) noexcept : status(other.status), error(std::move(other.error)), graph(other.graph) {
        other.graph = nullptr;
    }
    ~Loaded() { qdq_graph_destroy(&graph); }
    Loaded(const Loaded &) = delete;
    qdq_tensor_desc desc(uint64_t id) const {
        qdq_tensor_desc d = {};
        qdq_error err = {};
        EXPECT_EQ(qdq_graph_tensor_desc(graph, id, &d, &err), QDQ_OK) << err.text;
        return d;
    }
    std::vector<int64_t> dims(uint64_t id) const {
        const qdq_tensor_desc d = desc(id);
        return std::vector<int64_t>(d.dims, d.dims + (d.ndims > 0 ? d.ndims : 0));
    }
    std::vector<int64_t> strides(uint64_t id) const {
        const qdq_tensor_desc d = desc(id);
        return std::vector<int64_t>(d.strides, d.strides + (d.ndims > 0 ? d.ndims : 0));
    }
};

inline Loaded Load(const std::string &text, const qdq_json_options *options = nullptr, bool finalize = true) {
    Loaded out;
    qdq_error err = {};
    out.status = qdq_json_load_bytes(text.data(), text.size(), options, &out.graph, &err);
    if (out.status == QDQ_OK && finalize) out.status = qdq_graph_finalize(out.graph, &err);
    out.error = out.status == QDQ_OK ? "" : err.text;
    return out;
}

inline qdq_json_options Options() {
    qdq_json_options o = {};
    o.struct_bytes = sizeof o;
    return o;
}

inline std::string Slurp(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
}

inline std::vector<std::string> Cases() {
    std::vector<std::string> out;
    const std::string dir = std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/";
    if (DIR *d = opendir(dir.c_str())) {
        while (const dirent *e = readdir(d)) {
            const std::string name = e->d_name;
            if (name.size() > 5 && name.substr(name.size() - 5) == ".json") out.push_back(dir + name);
        }
        closedir(d);
    }
    return out;
}

inline std::string Tensor(int id, const std::string &dtype, const std::string &shape, const std::string &stride,
                          const std::string &more = "\"layout_type\": \"strided\", \"property_type\": \"undef\"") {
    return "{\"id\": " + std::to_string(id) + ", \"dtype\": \"" + dtype + "\", \"shape\": [" + shape +
           "], \"stride\": [" + stride + "], " + more + "}";
}

inline std::string Op(int id, const std::string &kind, const std::string &attrs, const std::string &inputs,
                      const std::string &outputs) {
    return "{\"id\": " + std::to_string(id) + ", \"name\": \"op\", \"kind\": \"" + kind + "\", \"attrs\": {" + attrs +
           "}, \"inputs\": [" + inputs + "], \"outputs\": [" + outputs + "]}";
}

inline std::string Graph(const std::string &ops) {
    return "{\"version\": \"3.7.2\", \"engine_kind\": \"cpu\", \"fpmath_mode\": \"strict\", \"graph\": [" + ops + "]}";
}

inline std::string Relu() {
    return Graph(Op(1, "ReLU", "", Tensor(0, "f32", "2, 3", "3, 1"), Tensor(1, "f32", "2, 3", "3, 1")));
}

} // namespace json_test

#endif
