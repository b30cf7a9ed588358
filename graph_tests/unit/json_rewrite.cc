// Rewrites of JSON cases.
#include "json_helpers.h"

using namespace json_test;

namespace {

using Dims = std::vector<int64_t>;

std::string S64s(const std::string &name, const std::string &values) {
    return "\"" + name + "\": {\"type\": \"s64[]\", \"value\": [" + values + "]}";
}

std::string Quant(int id, const std::string &kind, const std::string &qtype, const std::string &scales,
                  const std::string &in, const std::string &out, int axis = 0) {
    std::string zps = scales;
    for (char &c : zps)
        if (c != ',' && c != ' ') c = '0';
    return Op(id, kind,
              "\"qtype\": {\"type\": \"string\", \"value\": \"" + qtype +
                  "\"}, \"axis\": {\"type\": \"s64\", \"value\": " + std::to_string(axis) +
                  "}, \"scales\": {\"type\": \"f32[]\", \"value\": [" + scales + "]}, " + S64s("zps", zps),
              in, out);
}

// u8 2x2x4x4 (0) and s8 2x2x1x1 (2, per channel) -> conv (4, NCX) -> Quantize per channel (5)
std::string Conv() {
    const std::string attrs = S64s("strides", "1, 1") + "," + S64s("pads_begin", "0, 0") + "," +
                              S64s("pads_end", "0, 0") + "," + S64s("dilations", "1, 1") +
                              ", \"data_format\": {\"type\": \"string\", \"value\": \"NCX\"}, "
                              "\"weights_format\": {\"type\": \"string\", \"value\": \"OIX\"}";
    return Graph(Quant(10, "Dequantize", "per_tensor", "1", Tensor(0, "u8", "2, 2, 4, 4", "32, 16, 4, 1"),
                       Tensor(1, "f32", "2, 2, 4, 4", "32, 16, 4, 1")) +
                 "," +
                 Quant(11, "Dequantize", "per_channel", "1, 2", Tensor(2, "s8", "2, 2, 1, 1", "2, 1, 1, 1"),
                       Tensor(3, "f32", "2, 2, 1, 1", "2, 1, 1, 1")) +
                 "," +
                 Op(12, "Convolution", attrs,
                    Tensor(1, "f32", "2, 2, 4, 4", "32, 16, 4, 1") + "," + Tensor(3, "f32", "2, 2, 1, 1", "2, 1, 1, 1"),
                    Tensor(4, "f32", "2, 2, 4, 4", "32, 16, 4, 1")) +
                 "," +
                 Quant(13, "Quantize", "per_channel", "3, 4", Tensor(4, "f32", "2, 2, 4, 4", "32, 16, 4, 1"),
                       Tensor(5, "s8", "2, 2, 4, 4", "32, 16, 4, 1"), 1));
}

std::string Matmul() {
    return Graph(Op(1, "MatMul", "", Tensor(0, "f32", "2, 3", "3, 1") + "," + Tensor(1, "f32", "3, 4", "4, 1"),
                    Tensor(2, "f32", "2, 4", "4, 1")));
}

Loaded With(const std::string &text, const char *in_shapes, const char *op_attrs = nullptr, int64_t mb = 0,
            const char *dt = nullptr) {
    qdq_json_options o = Options();
    o.in_shapes = in_shapes;
    o.op_attrs = op_attrs;
    o.mb = mb;
    o.dt = dt;
    return Load(text, &o);
}

} // namespace

TEST(JsonRewrite, ShapesFlowDownstream) {
    Loaded g = With(Matmul(), "0:7x5+1:5x6");
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(0), (Dims{7, 5}));
    EXPECT_EQ(g.dims(2), (Dims{7, 6}));
    EXPECT_EQ(g.strides(2), (Dims{6, 1}));
}

TEST(JsonRewrite, RankMayChange) {
    Loaded g = With(Matmul(), "0:4x7x5+1:5x6");
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(2), (Dims{4, 7, 6}));
    Loaded scalar = With(Relu(), "0:-");
    ASSERT_EQ(scalar.status, QDQ_OK) << scalar.error;
    EXPECT_EQ(scalar.desc(1).ndims, 0);
    Loaded empty = With(Relu(), "0:0");
    ASSERT_EQ(empty.status, QDQ_OK) << empty.error;
    EXPECT_EQ(empty.dims(1), (Dims{0}));
}

TEST(JsonRewrite, TagsSetStrides) {
    Loaded g = With(Conv(), "0:3x2x5x6*acdb");
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(0), (Dims{3, 2, 5, 6}));
    EXPECT_EQ(g.strides(0), (Dims{60, 1, 12, 2}));
    Loaded tag_only = With(Conv(), "0:axb");
    ASSERT_EQ(tag_only.status, QDQ_OK) << tag_only.error;
    EXPECT_EQ(tag_only.strides(0), (Dims{32, 1, 8, 2}));
    Loaded reversed = With(Matmul(), "1:ba");
    ASSERT_EQ(reversed.status, QDQ_OK) << reversed.error;
    EXPECT_EQ(reversed.strides(1), (Dims{1, 3}));
}

TEST(JsonRewrite, ChannelVectorsRepeatToTheNewLength) {
    // 5 output channels: the weights' scales {1, 2} and the result's {3, 4} must both have become 5 long to be legal
    Loaded g = With(Conv(), "2:5x2x1x1");
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(5), (Dims{2, 5, 4, 4}));
    const uint8_t ones[2 * 2 * 4 * 4] = {1};
    std::vector<int8_t> weights(10, 4);
    std::vector<float> w(10);
    std::vector<int8_t> out(2 * 5 * 16);
    const qdq_tensor in[] = {{g.desc(0), const_cast<uint8_t *>(ones)}, {g.desc(2), weights.data()}};
    const qdq_tensor want[] = {{g.desc(3), w.data()}};
    qdq_error err = {};
    ASSERT_EQ(qdq_graph_run_reference(g.graph, in, 2, want, 1, &err), QDQ_OK) << err.text;
    const float scales[5] = {1, 2, 1, 2, 1};
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(w[i], 4 * scales[i / 2]) << i;
}

TEST(JsonRewrite, MinibatchWinsOverShapes) {
    Loaded g = With(Conv(), "0:3x2x5x6", nullptr, 9);
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(0), (Dims{9, 2, 5, 6}));
    EXPECT_EQ(g.dims(2), (Dims{2, 2, 1, 1})) << "weights have no batch";
    EXPECT_EQ(g.dims(5), (Dims{9, 2, 5, 6}));
}

TEST(JsonRewrite, AttributesOfEveryTypeAreRead) {
    Loaded g =
        With(Conv(), nullptr, "12:strides:2x2*auto_pad:SAME_UPPER*groups:1+13:scales:0.5*qtype:per_tensor*zps:-3");
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(5), (Dims{2, 2, 2, 2}));
    Loaded transposed = With(Matmul(), "0:3x2", "1:transpose_a:1");
    ASSERT_EQ(transposed.status, QDQ_OK) << transposed.error;
    EXPECT_EQ(transposed.dims(2), (Dims{2, 4}));
}

TEST(JsonRewrite, DataTypesChangeAllFloatsOrOneTensor) {
    Loaded all = With(Matmul(), nullptr, nullptr, 0, "bf16");
    ASSERT_EQ(all.status, QDQ_OK) << all.error;
    EXPECT_EQ(all.desc(0).dtype, QDQ_DTYPE_BF16);
    EXPECT_EQ(all.desc(2).dtype, QDQ_DTYPE_BF16);
    Loaded one = With(Conv(), nullptr, nullptr, 0, "0:s8+5:u8");
    ASSERT_EQ(one.status, QDQ_OK) << one.error;
    EXPECT_EQ(one.desc(0).dtype, QDQ_DTYPE_S8);
    EXPECT_EQ(one.desc(2).dtype, QDQ_DTYPE_S8);
    EXPECT_EQ(one.desc(5).dtype, QDQ_DTYPE_U8);
}

TEST(JsonRewrite, ReshapeFollowsTheBatch) {
    const std::string text =
        Graph(Op(1, "StaticReshape", S64s("shape", "2, 12") + ", \"special_zero\": {\"type\": \"bool\", \"value\": 0}",
                 Tensor(0, "f32", "2, 3, 4", "12, 4, 1"), Tensor(1, "f32", "2, 12", "12, 1")));
    Loaded g = With(text, nullptr, nullptr, 6);
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    EXPECT_EQ(g.dims(1), (Dims{6, 12}));
    Loaded given = With(text, "0:4x3x4", "1:shape:3x16");
    ASSERT_EQ(given.status, QDQ_OK) << given.error;
    EXPECT_EQ(given.dims(1), (Dims{3, 16}));
}

TEST(JsonRewrite, BadRewritesAreErrors) {
    const struct {
        const char *in_shapes, *op_attrs, *dt;
        int64_t mb;
        const char *error;
    } rows[] = {
        {"x", nullptr, nullptr, 0, "in-shapes"},
        {"0", nullptr, nullptr, 0, "in-shapes"},
        {"0:", nullptr, nullptr, 0, ""},
        {"77:2x3", nullptr, nullptr, 0, "in-shapes: the graph has no input tensor 77"},
        {"2:2x3", nullptr, nullptr, 0, "in-shapes: the graph has no input tensor 2"},
        {"0:2xx3", nullptr, nullptr, 0, "in-shapes: `2xx3`"},
        {"0:2x-3", nullptr, nullptr, 0, "in-shapes: `2x-3`"},
        {"0:2x3*", nullptr, nullptr, 0, "in-shapes"},
        {"0:2x3*abc", nullptr, nullptr, 0, "in-shapes: `abc`"},
        {"0:2x3*aa", nullptr, nullptr, 0, "in-shapes: `aa`"},
        {"0:1x1x1x1x1x1x1x1x1x1x1x1x1", nullptr, nullptr, 0, "in-shapes"},
        {"0:99999999999x99999999999", nullptr, nullptr, 0, ""},
        {"0:2x8", nullptr, nullptr, 0, "<json>:1:79: "},
        {nullptr, "1", nullptr, 0, "op-attrs"},
        {nullptr, "9:transpose_a:1", nullptr, 0, "op-attrs: the graph has no op 9"},
        {nullptr, "1:transpose_a", nullptr, 0, "op-attrs"},
        {nullptr, "1:transpose_a:7", nullptr, 0, "transpose_a: `7`"},
        {nullptr, "1:nonsense:7", nullptr, 0, "op-attrs: `nonsense`"},
        {nullptr, "1:axis:x", nullptr, 0, "axis: `x`"},
        {nullptr, "1:shape:1xx2", nullptr, 0, "shape: `1xx2`"},
        {nullptr, "1:alpha:nan", nullptr, 0, "alpha: `nan`"},
        {nullptr, nullptr, "f31", 0, "dt: `f31`"},
        {nullptr, nullptr, "s8", 0, "dt: `s8`"},
        {nullptr, nullptr, "55:f32", 0, "dt: the graph has no tensor 55"},
        {nullptr, nullptr, nullptr, -4, "mb: -4"},
    };
    for (const auto &row : rows) {
        Loaded g = With(Matmul(), row.in_shapes, row.op_attrs, row.mb, row.dt);
        EXPECT_NE(g.status, QDQ_OK) << row.error;
        EXPECT_EQ(g.error.substr(0, strlen(row.error)), row.error) << g.error;
        EXPECT_FALSE(g.error.empty());
    }
}

TEST(JsonRewrite, OldOptionStructsAreRefused) {
    qdq_json_options o = {};
    Loaded g = Load(Relu(), &o);
    EXPECT_EQ(g.status, QDQ_E_BAD_ARG) << g.error;
}
