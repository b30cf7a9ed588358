// The vectors of the three specs (onednn.json, onnx.json, tensorflow.json) and those taken from a running TensorFlow.
#include "vector_run.h"

#include <memory>
#include <map>

namespace {

using vectors::Count;

struct EngineDelete {
    void operator()(qdq_engine *engine) const { qdq_engine_destroy(&engine); }
};
using Engine = std::unique_ptr<qdq_engine, EngineDelete>;

Engine make_engine() {
    qdq_engine *engine = nullptr;
    qdq_error err = {};
    EXPECT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
    return Engine(engine);
}

struct JsonDelete {
    void operator()(json_t *json) const { json_decref(json); }
};
using Json = std::unique_ptr<json_t, JsonDelete>;

Json load(const std::string &file) {
    const std::string path = std::string(QDQ_SOURCE_DIR) + "/graph_tests/conformance/" + file;
    json_error_t err;
    Json json(json_load_file(path.c_str(), 0, &err));
    EXPECT_NE(json, nullptr) << file << ":" << err.line << ":" << err.column << ": " << err.text;
    return json;
}

void report(const std::string &spec, const std::map<std::string, Count> &counts) {
    Count all;
    for (const auto &[op, count] : counts) {
        std::printf("%s %s: %d of %d\n", spec.c_str(), op.c_str(), count.passed, count.run);
        all.run += count.run;
        all.passed += count.passed;
    }
    std::printf("%s: %d vectors, %d passed\n", spec.c_str(), all.run, all.passed);
    EXPECT_GT(all.run, 0);
}

void run_file(const std::string &file) {
    const Json json = load(file);
    ASSERT_NE(json, nullptr);
    const Engine engine = make_engine();
    const json_t *rows = json_object_get(json.get(), "vectors");
    std::map<std::string, Count> counts;
    int shown = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const vectors::Vector v = vectors::vector_of(row);
        EXPECT_TRUE(json_is_string(json_object_get(row, "origin"))) << v.name << " has no origin";
        const std::string what = vectors::check(v, engine.get());
        Count &count = counts[v.op];
        count.run++;
        count.passed += what.empty() ? 1 : 0;
        if (!what.empty() && shown++ < 40) ADD_FAILURE() << v.name << " (" << v.op << "): " << what;
    }
    report(json_string_value(json_object_get(json.get(), "spec")), counts);
}

TEST(ConformanceVectors, OneDnn) {
    run_file("onednn.json");
}
TEST(ConformanceVectors, Onnx) {
    run_file("onnx.json");
}
TEST(ConformanceVectors, TensorFlow) {
    run_file("tensorflow.json");
}

// tensorflow_generated.json, compact: see gen_tensorflow.py, which wrote it.
//   Q row: [mode, T, round, narrow, axis, ensure, dims, min, max, x, q, out_min, out_max]
//   D row: [mode, T, dtype, narrow, axis, dims, min, max, q, y]
// f32 numbers are the eight hex digits of their bits, run together.
std::vector<float> floats_of(const json_t *text) {
    std::vector<float> out;
    const std::string hex = json_string_value(text);
    for (size_t i = 0; i + 8 <= hex.size(); i += 8) {
        const uint32_t bits = (uint32_t)std::stoul(hex.substr(i, 8), nullptr, 16);
        float f;
        std::memcpy(&f, &bits, sizeof f);
        out.push_back(f);
    }
    return out;
}

vectors::Tensor f32_tensor(uint64_t id, const std::vector<int64_t> &dims, const json_t *text) {
    vectors::Tensor t = vectors::make_tensor(id, QDQ_DTYPE_F32, dims);
    const std::vector<float> values = floats_of(text);
    EXPECT_EQ(values.size() * sizeof(float), t.bytes.size());
    if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), values.size() * sizeof(float));
    return t;
}

vectors::Tensor int_tensor(uint64_t id, const json_t *dtype, const std::vector<int64_t> &dims, const json_t *list) {
    const qdq_dtype type = qdq_dtype_from_name(json_string_value(dtype));
    vectors::Tensor t = vectors::make_tensor(id, type, dims);
    EXPECT_EQ((int64_t)json_array_size(list), t.n());
    for (size_t i = 0; i < json_array_size(list); i++)
        qdqi_store_i64(t.bytes.data(), type, (int64_t)i, json_integer_value(json_array_get(list, i)));
    return t;
}

std::vector<int64_t> range_dims(const json_t *axis, const json_t *text) {
    if (json_integer_value(axis) < 0) return {};
    return {(int64_t)std::strlen(json_string_value(text)) / 8};
}

vectors::Vector quantize_row(const json_t *row, json_t *attrs) {
    const auto at = [row](size_t i) { return json_array_get(row, i); };
    vectors::Vector v;
    v.op = "QuantizeV2";
    json_object_set(attrs, "mode", at(0));
    json_object_set(attrs, "T", at(1));
    json_object_set(attrs, "round_mode", at(2));
    json_object_set_new(attrs, "narrow_range", json_boolean(json_integer_value(at(3)) != 0));
    json_object_set(attrs, "axis", at(4));
    json_object_set(attrs, "ensure_minimum_range", at(5));
    v.attrs = attrs;
    const std::vector<int64_t> dims = vectors::ints_of(at(6)), range = range_dims(at(4), at(7));
    v.in = {f32_tensor(1, dims, at(9)), f32_tensor(2, range, at(7)), f32_tensor(3, range, at(8))};
    v.out = {int_tensor(100, at(1), dims, at(10)), f32_tensor(101, range, at(11)), f32_tensor(102, range, at(12))};
    return v;
}

vectors::Vector dequantize_row(const json_t *row, json_t *attrs) {
    const auto at = [row](size_t i) { return json_array_get(row, i); };
    vectors::Vector v;
    v.op = "TFDequantize";
    json_object_set(attrs, "mode", at(0));
    json_object_set(attrs, "dtype", at(2));
    json_object_set_new(attrs, "narrow_range", json_boolean(json_integer_value(at(3)) != 0));
    json_object_set(attrs, "axis", at(4));
    v.attrs = attrs;
    const std::vector<int64_t> dims = vectors::ints_of(at(5)), range = range_dims(at(4), at(6));
    v.in = {int_tensor(1, at(1), dims, at(8)), f32_tensor(2, range, at(6)), f32_tensor(3, range, at(7))};
    vectors::Tensor y = f32_tensor(100, dims, at(9));
    if (std::string(json_string_value(at(2))) == "bf16") {
        vectors::Tensor narrow = vectors::make_tensor(100, QDQ_DTYPE_BF16, dims);
        for (int64_t i = 0; i < y.n(); i++)
            qdqi_store_f32(narrow.bytes.data(), QDQ_DTYPE_BF16, i, qdqi_load_f32(y.bytes.data(), QDQ_DTYPE_F32, i));
        y = narrow;
    }
    v.out = {y};
    return v;
}

TEST(ConformanceVectors, TensorFlowGenerated) {
    const Json json = load("tensorflow_generated.json");
    ASSERT_NE(json, nullptr);
    const Engine engine = make_engine();
    std::map<std::string, Count> counts;
    int shown = 0;
    for (const char *kind : {"quantize", "dequantize"}) {
        const json_t *rows = json_object_get(json.get(), kind);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            const Json attrs(json_object());
            vectors::Vector v = kind[0] == 'q' ? quantize_row(row, attrs.get()) : dequantize_row(row, attrs.get());
            v.name = std::string(kind) + " row " + std::to_string(i);
            for (const vectors::Tensor &t : v.out)
                v.out_types.push_back(t.desc.dtype);
            const std::string what = vectors::check(v, engine.get());
            Count &count = counts[v.op + " " + json_string_value(json_array_get(row, 0)) + " " +
                                  json_string_value(json_array_get(row, 1))];
            count.run++;
            count.passed += what.empty() ? 1 : 0;
            if (!what.empty() && shown++ < 60) {
                const std::unique_ptr<char, decltype(&free)> text(json_dumps(attrs.get(), JSON_COMPACT), &free);
                ADD_FAILURE() << v.name << " " << text.get() << ": " << what;
            }
        }
    }
    report("TensorFlow (generated)", counts);
}

} // namespace
