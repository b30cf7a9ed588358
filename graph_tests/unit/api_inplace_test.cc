// In-place pairs: offered where one pass computes the partition, and right when they are taken.
#include "harness/text_graph.h"
#include "qdq/qdq.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace {

struct Compiled {
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    qdq_engine *engine = nullptr;
    qdq_partition_list *list = nullptr;
    qdq_compiled *compiled = nullptr;
    std::vector<qdq_tensor_desc> in, out;
    std::vector<qdq_inplace_pair> pairs;

    explicit Compiled(const std::string &text) {
        EXPECT_EQ(qh_graph_from_text(text.c_str(), &graph, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_graph_partition(graph, QDQ_POLICY_FUSION, &list, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_partition_list_count(list), 1u) << text;
        const qdq_partition *p = qdq_partition_list_get(list, 0);
        in.resize(qdq_partition_n_inputs(p));
        out.resize(qdq_partition_n_outputs(p));
        for (size_t i = 0; i < in.size(); i++)
            EXPECT_EQ(qdq_partition_input(p, i, &in[i], &err), QDQ_OK);
        for (size_t i = 0; i < out.size(); i++)
            EXPECT_EQ(qdq_partition_output(p, i, &out[i], &err), QDQ_OK);
        EXPECT_EQ(qdq_partition_compile(p, engine, in.data(), in.size(), out.data(), out.size(), &compiled, &err),
                  QDQ_OK)
            << err.text;
        for (auto *side : {&in, &out})
            for (auto &desc : *side)
                EXPECT_EQ(qdq_compiled_desc(compiled, desc.id, &desc, &err), QDQ_OK);
        size_t n = 99;
        const qdq_inplace_pair *offered = nullptr;
        EXPECT_EQ(qdq_compiled_inplace_pairs(compiled, &n, &offered, &err), QDQ_OK);
        pairs.assign(offered, offered + n);
    }
    ~Compiled() {
        qdq_compiled_destroy(&compiled);
        qdq_partition_list_destroy(&list);
        qdq_engine_destroy(&engine);
        qdq_graph_destroy(&graph);
    }
    Compiled(const Compiled &) = delete;
    Compiled &operator=(const Compiled &) = delete;

    std::vector<uint8_t> Fresh(const qdq_tensor_desc &desc, unsigned salt) const {
        size_t bytes = 0;
        EXPECT_EQ(qdq_tensor_desc_size_bytes(&desc, &bytes, nullptr), QDQ_OK);
        std::vector<uint8_t> data(bytes);
        for (size_t i = 0; i < bytes; i++)
            data[i] = uint8_t(i * 37 + salt * 101 + i / 7);
        if (desc.dtype == QDQ_DTYPE_F32)
            for (size_t i = 0; i < bytes / 4; i++)
                reinterpret_cast<float *>(data.data())[i] = float(int(i * 13 + salt * 5) % 41 - 20) * 0.25f;
        return data;
    }
    // The output; the input of `pair` lies in its buffer, if there is a pair.
    std::vector<uint8_t> Run(const qdq_inplace_pair *pair) {
        std::vector<std::vector<uint8_t>> data;
        std::vector<qdq_tensor> ins, outs(1);
        for (size_t i = 0; i < in.size(); i++)
            data.push_back(Fresh(in[i], unsigned(i)));
        for (size_t i = 0; i < in.size(); i++)
            ins.push_back({in[i], data[i].data()});
        std::vector<uint8_t> own = Fresh(out[0], 99);
        uint8_t *to = own.data();
        for (size_t i = 0; pair != nullptr && i < in.size(); i++)
            if (in[i].id == pair->input_id) to = data[i].data();
        const size_t bytes = own.size();
        outs[0] = {out[0], to};
        EXPECT_EQ(qdq_compiled_execute(compiled, ins.data(), ins.size(), outs.data(), 1, &err), QDQ_OK) << err.text;
        return std::vector<uint8_t>(to, to + bytes);
    }
    void EveryPairIsRight() {
        const std::vector<uint8_t> apart = Run(nullptr);
        for (const qdq_inplace_pair &pair : pairs) {
            EXPECT_EQ(pair.output_id, out[0].id);
            EXPECT_EQ(Run(&pair), apart) << "input " << pair.input_id;
        }
    }
};

TEST(ApiInPlace, ResidualsOfEveryPairOfTypes) {
    for (const std::string a : {"u8", "s8"})
        for (const std::string b : {"u8", "s8"})
            for (const std::string y : {"u8", "s8"}) {
                Compiled c("x:" + a + " 5x700; z:" + b +
                           " 5x700; a = Dequantize(x) {scales=[0.5] zps=[3]}; "
                           "b = Dequantize(z) {scales=[0.25] zps=[0]}; s = Add(a, b); r = ReLU(s); y:" +
                           y + " = Quantize(r) {scales=[0.5] zps=[1]}");
                EXPECT_EQ(c.pairs.size(), 2u) << a << b << y; // either operand, of the same width all of them
                c.EveryPairIsRight();
            }
}

TEST(ApiInPlace, TablesAndFloats) {
    Compiled table("x:u8 3x50; a = Dequantize(x); t = Tanh(a); y:u8 = Quantize(t)");
    EXPECT_EQ(table.pairs.size(), 1u);
    table.EveryPairIsRight();
    Compiled floats("x:f32 9x33; z:f32 9x33; a = Add(x, z); y = Maximum(a, x)");
    for (const auto &pair : floats.pairs) // x is read twice
        EXPECT_NE(pair.input_id, floats.in[0].id);
    floats.EveryPairIsRight();
}

TEST(ApiInPlace, ChoicesAndWhatHasNoPrimitive) {
    const struct {
        const char *text;
        size_t n_pairs;
    } cases[] = {
        {"c:boolean 7x90; x:f32 7x90; z:f32 7x90; y = Select(c, x, z)", 2},
        {"c:boolean 7x90; x:u8 7x90; z:u8 90; y = Where(c, x, z)", 1}, // not the condition, though it is as wide
        {"x:f32 7x90; s:f32 90; y = PReLU(x, s) {data_format=NXC}", 1},
        {"x:f32 90x90; s:f32 90x90; y = PReLU(x, s) {per_channel_broadcast=false}", 1}, // not the slope
        {"x:f32 7x90; y = Ceil(x)", 1},
        {"x:f32 7x90; z:f32 7x90; y = Mod(x, z) {fmod=true}", 2},
        {"x:f32 7x90; z:f32 7x90; y = GreaterEqual(x, z)", 0},
        {"x:boolean 7x90; z:boolean 7x90; y = Xor(x, z)", 2},
        {"x:boolean 7x90; y = Not(x)", 1},
    };
    for (const auto &row : cases) {
        Compiled c(row.text);
        EXPECT_EQ(c.pairs.size(), row.n_pairs) << row.text;
        c.EveryPairIsRight();
    }
}

TEST(ApiInPlace, NotWhereBytesWouldBeOverwrittenBeforeTheyAreRead) {
    const char *const cases[] = {
        "x:u8 4x16; z:u8 16; a = Dequantize(x); b = Dequantize(z); s = Add(b, a); y = Quantize(s)", // z is read per row
        "x:u8 8x8; a = Dequantize(x); t = StaticTranspose(a) {order=[1,0]}; y = Quantize(t)",
        "x:u8 8x8; w:s8 8x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b); y = Quantize(m)",
        "x:u8 4x16; a = Dequantize(x); y = ReLU(a)", // wider
    };
    for (const char *text : cases) {
        Compiled c(text);
        for (const auto &pair : c.pairs) {
            EXPECT_EQ(pair.input_id, c.in[0].id) << text;
            EXPECT_NE(std::string(text).find("z:"), std::string::npos) << text;
        }
        c.EveryPairIsRight();
    }
}

} // namespace
