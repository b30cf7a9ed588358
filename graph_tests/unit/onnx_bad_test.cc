// Models that are wrong: each gives a status and one line that says what and where, and leaves nothing behind. (Z4)
#include "onnx_helpers.h"

#include "base/alloc.h"

#include <random>

using namespace onnx_test;

namespace {

void expect_one_line(const std::string &text) {
    EXPECT_FALSE(text.empty());
    for (const char c : text)
        ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << "control character in: " << text;
}

struct BadCase {
    const char *file;
    qdq_status status;
    const char *text; // part of the message
};

class OnnxBad : public ::testing::TestWithParam<BadCase> {};

TEST_P(OnnxBad, IsRefusedWithAReason) {
    const Loaded m = load(case_path(std::string("bad_") + GetParam().file + ".onnx"));
    EXPECT_EQ(m.status, GetParam().status) << qdq_status_name(m.status);
    EXPECT_EQ(m.graph, nullptr);
    EXPECT_NE(m.text.find(GetParam().text), std::string::npos) << m.text;
    expect_one_line(m.text);
}

const BadCase cases[] = {
    {"arity", QDQ_E_ONNX, "node \"add\" (Add, opset 13): has 1 inputs, expected 2"},
    {"attr_type", QDQ_E_ONNX, "attribute alpha is of type string, expected float"},
    {"axis", QDQ_E_BAD_SCALE, "expected 3"}, // the default axis is 1, not 0
    {"cycle", QDQ_E_CYCLE, "cycle"},
    {"cycle_identity", QDQ_E_CYCLE, "cycle"},
    {"dtype", QDQ_E_ONNX, "tensor \"w\": data type string"},
    {"duplicate_initializer", QDQ_E_ONNX, "two initializers called \"w\""},
    {"duplicate_input", QDQ_E_ONNX, "two inputs called \"x\""},
    {"duplicate_output", QDQ_E_ONNX, "an output of node \"exp\", is also an output of node \"relu\""},
    {"external_absolute", QDQ_E_ONNX, "only paths inside the model's folder"},
    {"external_escape", QDQ_E_ONNX, "only paths inside the model's folder"},
    {"external_length", QDQ_E_ONNX, "external data has 20 bytes, expected 24"},
    {"external_missing", QDQ_E_IO, "nothing.bin"},
    {"external_short", QDQ_E_IO, "24 bytes from offset 80 are needed, the file has 88 bytes"},
    {"huge_claim", QDQ_E_BAD_SHAPE, "node \"add\""},
    {"huge_dims", QDQ_E_OVERFLOW, "tensor \"w\""},
    {"huge_input", QDQ_E_OVERFLOW, "input \"x\""},
    {"negative_dim", QDQ_E_ONNX, "tensor \"w\": dimension 0 is -2"},
    {"negative_input", QDQ_E_ONNX, "input \"x\": dimension 0 is -2"},
    {"no_data", QDQ_E_ONNX, "tensor \"w\" (f32) has no data, expected 24 bytes"},
    {"no_opset", QDQ_E_ONNX, "op type Relu of domain \"ai.onnx\" at opset 0 is not supported"},
    {"no_output", QDQ_E_ONNX, "no outputs"},
    {"opset", QDQ_E_ONNX, "opset 9 is not supported"},
    {"ranks", QDQ_E_ONNX, "tensor \"w\" has 13 dimensions"},
    {"raw_length", QDQ_E_ONNX, "tensor \"w\": raw_data has 5 bytes, expected 24"},
    {"runtime_pads", QDQ_E_ONNX, "node \"conv\" (Conv, opset 13): attribute pads has 2 values, expected 4"},
    {"shape_mismatch", QDQ_E_BAD_SHAPE, "node \"add\" (Add, opset 13)"},
    {"sparse", QDQ_E_ONNX, "sparse initializers"},
    {"typed_count", QDQ_E_ONNX, "tensor \"w\""},
    {"unknown_attr", QDQ_E_ONNX, "attribute leak is not supported"},
    {"unknown_domain", QDQ_E_ONNX, "op type Relu of domain \"org.example\""},
    {"unknown_op", QDQ_E_ONNX, "node \"frob\": op type Frobnicate of domain \"ai.onnx\" at opset 13 is not supported"},
    {"unknown_output", QDQ_E_ONNX, "graph output 0 (\"z\") is made by no node"},
    {"unknown_tensor", QDQ_E_ONNX, "node \"add\" reads tensor \"nobody\""},
    {"zero_scale", QDQ_E_BAD_SCALE, "\"dq\""},
};

INSTANTIATE_TEST_SUITE_P(Models, OnnxBad, ::testing::ValuesIn(cases), [](const auto &info) { return info.param.file; });

TEST(OnnxBadFile, MissingFolderAndEmpty) {
    EXPECT_EQ(load(case_path("there is none.onnx")).status, QDQ_E_IO);
    const Loaded folder = load(case_path(""));
    EXPECT_EQ(folder.status, QDQ_E_IO);
    EXPECT_NE(folder.text.find("directory"), std::string::npos) << folder.text;
    EXPECT_EQ(load_bytes({}).status, QDQ_E_ONNX); // an empty message is a model without a graph
}

// A model cut anywhere: refused, or (cut between fields) read; never anything else.
void cut_everywhere(const char *file, size_t step) {
    const std::vector<uint8_t> whole = bytes_of(case_path(file));
    ASSERT_GT(whole.size(), 100u);
    size_t refused = 0;
    for (size_t n = 0; n < whole.size(); n += step) {
        const Loaded m = load_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
        if (m.status == QDQ_OK) continue;
        refused++;
        expect_one_line(m.text);
    }
    EXPECT_GT(refused, whole.size() / step / 2);
}

TEST(OnnxBadBytes, CutAnywhere) {
    cut_everywhere("tiny.onnx", 1);
    cut_everywhere("forms.onnx", 7);
    cut_everywhere("ops_quant_13.onnx", 61);
}

// Change bytes at random (a fixed seed): whatever comes out is a graph or a message.
void mutate(const char *file, int rounds) {
    const std::vector<uint8_t> whole = bytes_of(case_path(file));
    std::mt19937 random(12345);
    int refused = 0;
    for (int round = 0; round < rounds; round++) {
        std::vector<uint8_t> bytes = whole;
        for (unsigned k = 0; k <= random() % 4; k++)
            bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
        if (random() % 4 == 0) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()));
        const Loaded m = load_bytes(bytes);
        if (m.status == QDQ_OK) continue;
        refused++;
        expect_one_line(m.text);
    }
    EXPECT_GT(refused, rounds / 20);
}

TEST(OnnxBadBytes, MutatedTiny) {
    mutate("tiny.onnx", 3000);
}
TEST(OnnxBadBytes, MutatedForms) {
    mutate("forms.onnx", 1500);
}
TEST(OnnxBadBytes, MutatedShapes) {
    mutate("ops_shape_13.onnx", 400);
}
TEST(OnnxBadBytes, MutatedConvolutions) {
    mutate("ops_nn_13.onnx", 150);
}
TEST(OnnxBadBytes, MutatedMicrosoft) {
    mutate("ops_ms.onnx", 500);
}

// Out of memory at any allocation: the status says so, and nothing leaks (a sanitizer sees that).
TEST(OnnxBadMemory, EveryAllocationMayFail) {
    const std::vector<uint8_t> whole = bytes_of(case_path("tiny.onnx"));
    uint64_t n = 0;
    for (;; n++) {
        qdqi_alloc_fail_at(n + 1);
        const Loaded m = load_bytes(whole);
        qdqi_alloc_fail_at(0);
        if (m.status == QDQ_OK) break;
        // the message parser cannot tell a failed allocation from a broken message
        EXPECT_TRUE(m.status == QDQ_E_NO_MEMORY || m.status == QDQ_E_ONNX) << n << ": " << m.text;
        ASSERT_LT(n, 100000u);
    }
    EXPECT_GT(n, 100u);
}

} // namespace
