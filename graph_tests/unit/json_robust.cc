// Broken texts: an error in one line, never a crash. The corpus is our own cases, cut and damaged.
#include "json_helpers.h"

using namespace json_test;

namespace {

// Load and, when that works, finalize: whatever comes out must be a status with a text.
void Swallow(const std::string &text) {
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    qdq_status st = qdq_json_load_bytes(text.data(), text.size(), nullptr, &graph, &err);
    if (st == QDQ_OK) st = qdq_graph_finalize(graph, &err);
    qdq_graph_destroy(&graph);
    if (st == QDQ_OK) return;
    EXPECT_EQ(err.status, st);
    EXPECT_NE(err.text[0], '\0');
    EXPECT_EQ(std::string(err.text).find('\n'), std::string::npos) << err.text;
}

// A few cases of different make, so that the corpus stays small.
std::vector<std::string> Some() {
    std::vector<std::string> out;
    for (const char *name : {"pattern_conv_u8s8u8_bias_relu_ncx", "op_dynamicdequantize_u4f32_per_group",
                             "model_unknown_shapes_f32", "op_staticreshape_f32", "pattern_shared_dequantize_u8s8u8"})
        out.push_back(Slurp(std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/" + name + ".json"));
    return out;
}

} // namespace

TEST(JsonRobust, CutTexts) {
    for (const std::string &text : Some()) {
        ASSERT_FALSE(text.empty());
        const size_t last = text.find_last_of('}'); // what follows is white space
        for (size_t n = 0; n <= last; n += 1 + text.size() / 700) {
            Loaded g = Load(text.substr(0, n));
            EXPECT_EQ(g.status, QDQ_E_JSON) << n << ": " << g.error;
            EXPECT_EQ(g.error.substr(0, 7), "<json>:") << g.error;
        }
    }
}

TEST(JsonRobust, DamagedTexts) {
    const std::string junk[] = {
        std::string("\0", 1), "\xff", "\"", "{", "]", "-", "9", "e", ",", ":", "\\", "\n", "nul"};
    for (const std::string &text : Some()) {
        size_t turn = 0;
        for (size_t i = 0; i < text.size(); i += 1 + text.size() / 500) {
            for (size_t k = 0; k < 3; k++, turn++) {
                const std::string &piece = junk[turn % (sizeof junk / sizeof junk[0])];
                std::string damaged = text;
                if (k == 0)
                    damaged.replace(i, 1, piece);
                else if (k == 1)
                    damaged.insert(i, piece);
                else
                    damaged.erase(i, 1 + turn % 7);
                Swallow(damaged);
            }
        }
    }
}

// Every value replaced by one of another type.
TEST(JsonRobust, WrongTypes) {
    for (const std::string &text : Some()) {
        for (size_t at = text.find(": "); at != std::string::npos; at = text.find(": ", at + 2)) {
            const size_t from = at + 2;
            size_t to = from;
            if (text[from] == '"')
                to = text.find('"', from + 1) + 1;
            else if (text[from] == '[' && text.find(']', from) < text.find('{', from))
                to = text.find(']', from) + 1;
            else
                to = text.find_first_of(",}]", from);
            for (const char *value : {"null", "\"s\"", "[]", "{}", "-1", "1e300", "9223372036854775807", "true",
                                      "[-9223372036854775808]", "[1, \"a\"]", "[[[]]]"})
                Swallow(text.substr(0, from) + value + text.substr(to));
        }
    }
}

TEST(JsonRobust, DeepNesting) {
    for (const size_t depth : {size_t(100), size_t(1900), size_t(5000), size_t(1000000)}) {
        Swallow("{\"skip\": " + std::string(depth, '[') + std::string(depth, ']') + ", \"graph\": []}");
        Loaded open = Load("{\"graph\": " + std::string(depth, '['));
        EXPECT_EQ(open.status, QDQ_E_JSON) << depth;
        Loaded objects = Load("{\"graph\": 1, \"s\": " + [&] {
            std::string s;
            for (size_t i = 0; i < depth; i++)
                s += "{\"a\":";
            return s;
        }());
        EXPECT_EQ(objects.status, QDQ_E_JSON) << depth;
    }
}

TEST(JsonRobust, HugeNumbersOfMembers) {
    std::string ops;
    for (int i = 0; i < 20000; i++)
        ops += (i == 0 ? "" : ",") + Op(i, "ReLU", "", Tensor(i, "f32", "2", "1"), Tensor(i + 1, "f32", "2", "1"));
    Loaded g = Load(Graph(ops));
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(qdq_graph_n_ops(g.graph), 20000u);
}

TEST(JsonRobust, SizesThatOverflow) {
    for (const char *shape :
         {"9223372036854775807, 9223372036854775807", "4611686018427387904, 4", "3037000500, 3037000500"}) {
        Loaded g = Load(Graph(Op(1, "ReLU", "", Tensor(0, "f32", shape, "1, 1"), Tensor(1, "f32", shape, "1, 1"))));
        EXPECT_NE(g.status, QDQ_OK) << shape;
    }
}

TEST(JsonRobust, StridesThatOverflow) {
    for (const char *stride :
         {"9223372036854775807, 1", "4611686018427387904, 4611686018427387904", "1, 4611686018427387904"}) {
        Loaded g = Load(Graph(Op(1, "ReLU", "", Tensor(0, "f32", "3, 3", stride), Tensor(1, "f32", "3, 3", "3, 1"))));
        EXPECT_NE(g.status, QDQ_OK) << stride;
    }
}

// Two producers of each tensor, level by level: as many ways through as 2^40. (A graph refuses them; a rewrite comes before.)
TEST(JsonRobust, ManyWaysThroughToTheBatch) {
    std::string ops;
    for (int i = 0; i < 80; i++)
        ops += (i == 0 ? "" : ",") +
               Op(i, "ReLU", "", Tensor(i / 2, "f32", "2, 3", "3, 1"), Tensor(i / 2 + 1, "f32", "2, 3", "3, 1"));
    qdq_json_options o = Options();
    o.mb = 4;
    const Loaded g = Load(Graph(ops), &o);
    EXPECT_EQ(g.status, QDQ_E_DUPLICATE_ID) << g.error;
}

// Many producers of one tensor that is an end: looked at once, not once per producer.
TEST(JsonRobust, ManyProducersOfAnEnd) {
    std::string ops = Op(0, "End", "", Tensor(1, "f32", "2", "1"), "");
    for (int i = 1; i < 20000; i++)
        ops += "," + Op(i, "ReLU", "", Tensor(0, "f32", "2", "1"), Tensor(1, "f32", "2", "1"));
    const Loaded g = Load(Graph(ops));
    EXPECT_EQ(g.status, QDQ_E_DUPLICATE_ID) << g.error;
}
