// What the JSON reader takes, and what it says about what it does not take.
#include "json_helpers.h"

#include "frontends/json_case.h"

#include <cmath>
#include <cstdlib>

using namespace json_test;

namespace {

struct Case {
    qdqi_json_case *c = nullptr;
    qdq_error err = {};
    std::string text;
    explicit Case(const std::string &t) : text(t) {
        status = qdqi_json_case_read("f.json", text.data(), text.size(), &c, &err);
    }
    ~Case() { qdqi_json_case_free(&c); }
    qdq_status status;
};

std::string Attr(const std::string &name, const std::string &body) {
    return "\"" + name + "\": {" + body + "}";
}

std::string WithAttr(const std::string &attr) {
    return Graph(Op(7, "Any", attr, Tensor(0, "f32", "2", "1"), Tensor(1, "f32", "2", "1")));
}

float ReadF32(const std::string &number) {
    Case c(WithAttr(Attr("x", "\"type\": \"f32\", \"value\": " + number)));
    EXPECT_EQ(c.status, QDQ_OK) << c.err.text;
    return c.status == QDQ_OK ? c.c->ops[0].attrs[0].v.f32 : NAN;
}

} // namespace

TEST(JsonRead, LoadsAGraphThatIsNotFinalized) {
    Loaded g = Load(Relu(), nullptr, false);
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_FALSE(qdq_graph_is_finalized(g.graph));
    qdq_error err = {};
    ASSERT_EQ(qdq_graph_finalize(g.graph, &err), QDQ_OK) << err.text;
    EXPECT_EQ(qdq_graph_n_ops(g.graph), 1u);
    EXPECT_EQ(g.dims(1), (std::vector<int64_t>{2, 3}));
}

TEST(JsonRead, KeysComeInAnyOrderAndUnknownOnesAreSkipped) {
    const std::string text =
        "{\"graph\": [{\"zzz\": {\"graph\": [1, {\"a\": null}]}, \"outputs\": [{\"stride\": [1], \"shape\": [4], "
        "\"more\": [[]], \"id\": 9, \"dtype\": \"f32\"}], \"attrs\": {\"alpha\": {\"note\": 1, \"value\": 2, "
        "\"type\": \"f32\"}}, \"inputs\": [{\"shape\": [4], \"id\": 8, \"dtype\": \"f32\"}], \"kind\": \"Elu\", "
        "\"id\": 3}], \"other\": true, \"input_ports\": \"nonsense\"}";
    Case c(text);
    ASSERT_EQ(c.status, QDQ_OK) << c.err.text;
    ASSERT_EQ(c.c->n_ops, 1u);
    const qdqi_json_op &op = c.c->ops[0];
    EXPECT_STREQ(op.kind, "Elu");
    EXPECT_STREQ(op.name, "");
    ASSERT_EQ(op.n_attrs, 1u);
    EXPECT_EQ(op.attrs[0].type, 'f');
    EXPECT_EQ(op.attrs[0].v.f32, 2.0f);
    EXPECT_EQ(op.in[0].layout, QDQ_LAYOUT_STRIDED);
    EXPECT_EQ(op.in[0].strides[0], 1);
}

TEST(JsonRead, StringsMayHoldEscapes) {
    Case c(Graph("{\"id\": 1, \"k\\u0069nd\": \"ReLU\", \"name\": \"a\\\"b\\\\c\\n\\u00e9\\ud83d\\ude00\"}"));
    ASSERT_EQ(c.status, QDQ_OK) << c.err.text;
    EXPECT_STREQ(c.c->ops[0].kind, "ReLU");
    EXPECT_STREQ(c.c->ops[0].name, "a\"b\\c\n\xc3\xa9\xf0\x9f\x98\x80");
}

TEST(JsonRead, FloatsAreExact) {
    for (const char *s :
         {"0.1", "1", "-3", "3.4028234e38", "1e-45", "0.30000001192092896", "1.17549435e-38", "16777217"})
        EXPECT_EQ(ReadF32(s), (float)strtod(s, nullptr)) << s;
    EXPECT_TRUE(std::signbit(ReadF32("-0.0")));
}

TEST(JsonRead, IntegersAreExact) {
    Case c(WithAttr(Attr("x", "\"type\": \"s64[]\", \"value\": [9223372036854775807, -9223372036854775808, 0]")));
    ASSERT_EQ(c.status, QDQ_OK) << c.err.text;
    const qdqi_json_attr &a = c.c->ops[0].attrs[0];
    ASSERT_EQ(a.n, 3u);
    EXPECT_EQ(a.v.s64s[0], INT64_MAX);
    EXPECT_EQ(a.v.s64s[1], INT64_MIN);
}

TEST(JsonRead, BoolsAreNumbersOrWords) {
    for (const auto &[text, want] :
         std::vector<std::pair<std::string, bool>>{{"0", false}, {"1", true}, {"true", true}, {"false", false}}) {
        Case c(WithAttr(Attr("x", "\"value\": " + text + ", \"type\": \"bool\"")));
        ASSERT_EQ(c.status, QDQ_OK) << c.err.text;
        EXPECT_EQ(c.c->ops[0].attrs[0].v.boolean, want) << text;
    }
}

TEST(JsonRead, UnknownShapesAndLayoutsLeaveTheChoiceOpen) {
    const std::string unknown = "-9223372036854775808";
    const std::string any = "\"layout_type\": \"any\", \"property_type\": \"constant\"";
    Case c(Graph(Op(1, "Any", "",
                    Tensor(0, "f32", unknown, unknown, "\"layout_type\": \"undef\"") + "," +
                        Tensor(1, "s4", unknown + ", 4", "") + "," + Tensor(2, "u8", "", "") + "," +
                        Tensor(3, "boolean", "0", "1", any) + "," + Tensor(4, "bf16", "2, 2", "1, 2"),
                    "")));
    ASSERT_EQ(c.status, QDQ_OK) << c.err.text;
    const qdq_tensor_desc *in = c.c->ops[0].in;
    EXPECT_EQ(in[0].ndims, QDQ_NDIMS_UNKNOWN);
    EXPECT_EQ(in[1].ndims, 2);
    EXPECT_EQ(in[1].dims[0], QDQ_DIM_UNKNOWN);
    EXPECT_EQ(in[1].dims[1], 4);
    EXPECT_EQ(in[2].ndims, 0);
    EXPECT_EQ(in[3].dims[0], 0);
    EXPECT_EQ(in[3].layout, QDQ_LAYOUT_ANY);
    EXPECT_EQ(in[3].property, QDQ_PROPERTY_CONSTANT);
    EXPECT_EQ(in[4].layout, QDQ_LAYOUT_STRIDED);
    EXPECT_EQ(in[4].strides[0], 1);
    EXPECT_EQ(in[4].strides[1], 2);
}

TEST(JsonRead, ResultsWithOverlappingStridesAreLaidOutAnew) {
    Loaded g =
        Load(Graph(Op(1, "ReLU", "", Tensor(0, "f32", "4, 3, 2", "6, 2, 1"), Tensor(1, "f32", "4, 3, 2", "1, 2, 4"))));
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.strides(1), (std::vector<int64_t>{1, 4, 12})) << "strides 2 and 1 overlap; the order stays";
    Loaded gaps = Load(Graph(Op(1, "ReLU", "", Tensor(0, "f32", "4, 3", "3, 1"), Tensor(1, "f32", "4, 3", "10, 2"))));
    ASSERT_EQ(gaps.status, QDQ_OK) << gaps.error;
    EXPECT_EQ(gaps.strides(1), (std::vector<int64_t>{10, 2})) << "gaps are no overlap";
}

// Each row: a text and the start of its error, position included.
TEST(JsonRead, ErrorsNameLineAndColumn) {
    const std::string t = Tensor(0, "f32", "2", "1");
    const struct {
        const char *text, *error;
    } rows[] = {
        {"", "f.json:1:"},
        {"[]", "f.json:1:1: `document`: expected an object"},
        {"{}", "f.json:1:1: `document`: expected a \"graph\""},
        {"{\n \"graph\": 3}", "f.json:2:11: `graph`: expected a list of ops"},
        {"{\"graph\": [\n\n  7]}", "f.json:3:3: `graph`: expected an op"},
        {"{\"graph\": [{\"kind\": \"ReLU\"}]}", "f.json:1:12: `op`: expected an \"id\""},
        {"{\"graph\": [{\"id\": 1}]}", "f.json:1:12: `op`: expected a \"kind\""},
        {"{\"graph\": [{\"id\": -1, \"kind\": \"A\"}]}", "f.json:1:19: `id`: expected an id"},
        {"{\"graph\": [{\"id\": 1.5, \"kind\": \"A\"}]}", "f.json:1:19: `id`"},
        {"{\"graph\": [{\"id\": 1, \"kind\": [\"A\"]}]}", "f.json:1:30: `kind`: expected a string"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\",\n\"attrs\": []}]}", "f.json:2:10: `attrs`: expected an object"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\",\n\"attrs\": {\"\xc3\xa9\\\"}\": 1, \"x\": 2}}]}",
         "f.json:2:19: `\xc3\xa9\"}`: expected an attribute"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\",\n\"attrs\": {\"x\": {\"type\": \"s64[]\", \"value\": [1,\n 2, "
         "null]}}}]}",
         "f.json:3:5: `x`: expected an integer"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"attrs\": {\"x\": {\"type\": \"f32\"}}}]}",
         "f.json:1:50: `x`: expected a \"value\""},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"attrs\": {\"x\": {\"value\": 1}}}]}",
         "f.json:1:50: `x`: expected a \"type\""},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"attrs\": {\"x\": {\"type\": \"int\", \"value\": 1}}}]}",
         "f.json:1:59: `type`: expected one of bool s64"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"attrs\": {\"x\": {\"type\": \"f32\", \"value\": 1e39}}}]}",
         "f.json:1:75: `x`: expected a number that fits f32"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"attrs\": {\"x\": {\"type\": \"bool\", \"value\": 2}}}]}",
         "f.json:1:76: `x`: expected 0, 1, true or false"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": {}}]}", "f.json:1:45: `inputs`: expected a list"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": [{\"dtype\": \"f32\"}]}]}",
         "f.json:1:46: `tensor`: expected an \"id\""},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": [{\"id\": 1, \"dtype\": \"f31\"}]}]}",
         "f.json:1:65: `dtype`: expected a data type"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": [{\"id\": 1,\n \"shape\": [2, -5]}]}]}",
         "f.json:1:46: "},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": [{\"id\": 1,\n \"shape\": [2, 3], \"stride\": [1]}]}]}",
         "f.json:1:46: tensor 1: 1 strides for a shape of rank 2"},
        {"{\"graph\": [{\"id\": 1, \"kind\": \"A\", \"inputs\": [{\"id\": 1,\n \"shape\": "
         "[1,1,1,1,1,1,1,1,1,1,1,1,1]}]}]}",
         "f.json:1:46: tensor 1: rank 13, expected at most 12"},
        {"{\"engine_kind\": \"tpu\", \"graph\": []}", "f.json:1:17: `engine_kind`: expected one of cpu gpu"},
        {"{\"fpmath_mode\": 1, \"graph\": []}", "f.json:1:17: `fpmath_mode`: expected one of strict"},
        {"{\"graph\": [],\n \"graph\": []}", "f.json:2:"},
        {"{\"graph\": [NaN]}", "f.json:1:"},
        {"{\"graph\": []", "f.json:1:"},
        {"{\"graph\": []} x", "f.json:1:"},
        {"{\"graph\": [\"\xff\"]}", "f.json:1:"},
        {"{\"graph\": [\"\\u0000\"]}", "f.json:1:"},
        {"{\"graph\": [18446744073709551616]}", "f.json:1:"},
        {"{\"graph\": [1e999]}", "f.json:1:"},
    };
    for (const auto &row : rows) {
        Case c(row.text);
        EXPECT_EQ(c.c, nullptr) << row.text;
        EXPECT_NE(c.status, QDQ_OK) << row.text;
        EXPECT_EQ(std::string(c.err.text).substr(0, strlen(row.error)), row.error) << row.text << "\n" << c.err.text;
        EXPECT_EQ(std::string(c.err.text).find('\n'), std::string::npos);
        EXPECT_EQ(c.err.status, c.status);
    }
}

TEST(JsonRead, SchemaErrorsNameThePositionOfTheOp) {
    const std::string t = Tensor(0, "f32", "2", "1");
    Loaded g = Load("{\"graph\": [\n" + Op(1, "ReLU", "", Tensor(0, "f32", "2", "1"), Tensor(1, "f32", "2", "1")) +
                    ",\n  " + Op(2, "AbsBackward", "", Tensor(1, "f32", "2", "1"), Tensor(2, "f32", "2", "1")) + "]}");
    EXPECT_EQ(g.status, QDQ_E_UNKNOWN_OP);
    EXPECT_EQ(g.error.substr(0, 12), "<json>:3:3: ") << g.error;
    EXPECT_NE(g.error.find("AbsBackward"), std::string::npos) << g.error;
}

TEST(JsonRead, DuplicateOpIdIsAnError) {
    const std::string op = Op(1, "ReLU", "", Tensor(0, "f32", "2", "1"), Tensor(1, "f32", "2", "1"));
    Loaded g = Load(Graph(op + "," + op));
    EXPECT_EQ(g.status, QDQ_E_DUPLICATE_ID) << g.error;
}

TEST(JsonRead, MissingFileAndFolderAreErrors) {
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    EXPECT_EQ(qdq_json_load_file("/nowhere/x.json", nullptr, &graph, &err), QDQ_E_IO);
    EXPECT_EQ(std::string(err.text).find("/nowhere/x.json"), 0u) << err.text;
    EXPECT_EQ(qdq_json_load_file("/", nullptr, &graph, &err), QDQ_E_IO) << err.text;
    EXPECT_EQ(qdq_json_load_file(nullptr, nullptr, &graph, &err), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_json_load_file("/nowhere/x.json", nullptr, &graph, nullptr), QDQ_E_IO);
    EXPECT_EQ(graph, nullptr);
}

TEST(JsonRead, OurCasesLoad) {
    const std::vector<std::string> cases = Cases();
    ASSERT_GT(cases.size(), 100u);
    for (const std::string &path : cases) {
        qdq_graph *graph = nullptr;
        qdq_error err = {};
        EXPECT_EQ(qdq_json_load_file(path.c_str(), nullptr, &graph, &err), QDQ_OK) << err.text;
        if (graph != nullptr) {
            EXPECT_EQ(qdq_graph_finalize(graph, &err), QDQ_OK) << path << ": " << err.text;
        }
        qdq_graph_destroy(&graph);
    }
}

TEST(JsonRead, EveryCaseIsInABatch) {
    std::string batches;
    for (const char *name : {"op", "pattern", "model"})
        batches += Slurp(std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/batch_" + name);
    for (const std::string &path : Cases()) {
        const std::string name = path.substr(path.rfind('/') + 1);
        EXPECT_NE(batches.find("--case=" + name + "\n"), std::string::npos) << name;
    }
}
