// The numeric contract of doc/quantization.md where it is about more than one op: what fusion may change, and by how much.
#include "vector_run.h"

#include "kernels/isa/isa.h"

#include <memory>

namespace {

using vectors::Tensor;

struct EngineDelete {
    void operator()(qdq_engine *engine) const { qdq_engine_destroy(&engine); }
};
using Engine = std::unique_ptr<qdq_engine, EngineDelete>;

// A graph built op by op; ids of tensors are given by the caller.
class Graph {
  public:
    Graph() { EXPECT_EQ(qdq_graph_create(&graph_, &err_), QDQ_OK); }
    ~Graph() { qdq_graph_destroy(&graph_); }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    Tensor tensor(uint64_t id, qdq_dtype dtype, const std::vector<int64_t> &dims, const std::vector<double> &values) {
        Tensor t = vectors::make_tensor(id, dtype, dims);
        for (size_t i = 0; i < values.size(); i++)
            qdqi_store_f64(t.bytes.data(), dtype, (int64_t)i, values[i]);
        return t;
    }
    void constant(const Tensor &t) {
        EXPECT_EQ(qdq_graph_set_constant(graph_, &t.desc, t.bytes.data(), t.bytes.size(), QDQ_DATA_COPY, &err_), QDQ_OK)
            << err_.text;
    }
    void op(const char *kind, const char *attrs, const std::vector<const qdq_tensor_desc *> &in,
            const std::vector<const qdq_tensor_desc *> &out) {
        json_error_t where;
        json_t *json = json_loads(attrs, 0, &where);
        ASSERT_NE(json, nullptr) << where.text;
        qdq_op *op = nullptr;
        ASSERT_EQ(qdq_op_create(next_op_++, kind, "", &op, &err_), QDQ_OK);
        const char *name = nullptr;
        json_t *value = nullptr;
        json_object_foreach(json, name, value) {
            EXPECT_EQ(vectors::set_attr(op, name, value, &err_), QDQ_OK) << err_.text;
        }
        json_decref(json);
        for (const qdq_tensor_desc *desc : in)
            EXPECT_EQ(qdq_op_add_input(op, desc, &err_), QDQ_OK) << err_.text;
        for (const qdq_tensor_desc *desc : out)
            EXPECT_EQ(qdq_op_add_output(op, desc, &err_), QDQ_OK) << err_.text;
        EXPECT_EQ(qdq_graph_add_op(graph_, op, &err_), QDQ_OK) << err_.text;
        qdq_op_destroy(&op);
    }
    void finalize() { ASSERT_EQ(qdq_graph_finalize(graph_, &err_), QDQ_OK) << err_.text; }

    Tensor reference(const Tensor &in, const Tensor &like) {
        Tensor out = like;
        const qdq_tensor x = {in.desc, const_cast<unsigned char *>(in.bytes.data())}, y = {out.desc, out.bytes.data()};
        EXPECT_EQ(qdq_graph_run_reference(graph_, &x, 1, &y, 1, &err_), QDQ_OK) << err_.text;
        return out;
    }
    // Through a session; `n_parts_out` says in how many partitions, `impl` how they are computed.
    std::string impl;
    Tensor session(const Tensor &in, const Tensor &like, size_t *n_parts_out) {
        Tensor out = like;
        qdq_engine *made = nullptr;
        EXPECT_EQ(qdq_engine_create(nullptr, &made, &err_), QDQ_OK);
        const Engine engine(made);
        qdq_session *session = nullptr;
        EXPECT_EQ(qdq_session_create(graph_, made, nullptr, &session, &err_), QDQ_OK) << err_.text;
        const void *x = in.bytes.data();
        void *y = out.bytes.data();
        EXPECT_EQ(qdq_session_run(session, &x, 1, &y, 1, &err_), QDQ_OK) << err_.text;
        *n_parts_out = 0;
        for (size_t i = 0; i < qdq_session_n_parts(session); i++) {
            qdq_session_part_info info = {};
            EXPECT_EQ(qdq_session_part(session, i, &info, &err_), QDQ_OK);
            *n_parts_out += info.folded ? 0 : 1;
            if (!info.folded) impl += info.impl;
        }
        qdq_session_destroy(&session);
        return out;
    }

  private:
    qdq_graph *graph_ = nullptr;
    qdq_error err_ = {};
    uint64_t next_op_ = 1;
};

double at(const Tensor &t, int64_t i) {
    return qdqi_load_f64(t.bytes.data(), t.desc.dtype, i);
}

// uxlfoundation/oneDNN divides in one implementation and multiplies by the reciprocal in others: values whose quotient lies on a
// tie may be one step off in a fused matmul, all others not at all.
TEST(ConformanceContract, QuotientsNearTiesAreAtMostAStepOff) {
    Graph g;
    std::vector<double> x;
    for (int i = 0; i < 256; i++)
        x.push_back(i);
    const Tensor src = g.tensor(1, QDQ_DTYPE_U8, {256, 1}, x), w = g.tensor(2, QDQ_DTYPE_S8, {1, 1}, {1});
    const Tensor a = g.tensor(3, QDQ_DTYPE_F32, {256, 1}, {}), b = g.tensor(4, QDQ_DTYPE_F32, {1, 1}, {});
    const Tensor m = g.tensor(5, QDQ_DTYPE_F32, {256, 1}, {}), y = g.tensor(6, QDQ_DTYPE_U8, {256, 1}, {});
    g.op("Dequantize", R"({"scales": [0.01]})", {&src.desc}, {&a.desc});
    g.op("Dequantize", R"({"scales": [1.0]})", {&w.desc}, {&b.desc});
    g.op("MatMul", "{}", {&a.desc, &b.desc}, {&m.desc});
    g.op("Quantize", R"({"scales": [0.02]})", {&m.desc}, {&y.desc});
    g.constant(w);
    g.finalize();
    size_t n_parts = 0;
    const Tensor expected = g.reference(src, y), got = g.session(src, y, &n_parts);
    EXPECT_EQ(n_parts, 1u);
    for (int64_t i = 0; i < 256; i++)
        EXPECT_LE(std::fabs(at(expected, i) - at(got, i)), i % 2 == 1 ? 1.0 : 0.0) << i;
}

// openvinotoolkit/openvino#36135: an accumulator of 100,000 with two f16 scales of 0.01 is 10, not infinity.
TEST(ConformanceContract, HalfPrecisionScalesDoNotOverflowOneByOne) {
    Graph g;
    const Tensor src = g.tensor(1, QDQ_DTYPE_S8, {1, 10}, std::vector<double>(10, 100));
    const Tensor w = g.tensor(2, QDQ_DTYPE_S8, {10, 1}, std::vector<double>(10, 100));
    const Tensor s = g.tensor(3, QDQ_DTYPE_F16, {1}, {0.01});
    const Tensor a = g.tensor(4, QDQ_DTYPE_F16, {1, 10}, {}), b = g.tensor(5, QDQ_DTYPE_F16, {10, 1}, {});
    const Tensor y = g.tensor(6, QDQ_DTYPE_F16, {1, 1}, {});
    g.op("DequantizeLinear", "{}", {&src.desc, &s.desc}, {&a.desc});
    g.op("DequantizeLinear", "{}", {&w.desc, &s.desc}, {&b.desc});
    g.op("MatMul", "{}", {&a.desc, &b.desc}, {&y.desc});
    g.constant(w);
    g.constant(s);
    g.finalize();
    size_t n_parts = 0;
    EXPECT_EQ(at(g.reference(src, y), 0), 10.0);
    EXPECT_NEAR(at(g.session(src, y, &n_parts), 0), 10.0, 0.0101);
}

// TensorFlow's Dequantize with an integer zero point is part of an integer matmul.
TEST(ConformanceContract, TensorFlowDequantizeTakesPartInFusion) {
    for (const char *mode : {"SCALED", "MIN_FIRST", "MIN_COMBINED"}) {
        Graph g;
        std::vector<double> x, weights;
        for (int i = 0; i < 8 * 16; i++)
            x.push_back((i * 37) % 256);
        for (int i = 0; i < 16 * 8; i++)
            weights.push_back((i * 29) % 255 - 127);
        const Tensor src = g.tensor(1, QDQ_DTYPE_U8, {8, 16}, x), w = g.tensor(2, QDQ_DTYPE_S8, {16, 8}, weights);
        const Tensor lo = g.tensor(3, QDQ_DTYPE_F32, {}, {-1}), hi = g.tensor(4, QDQ_DTYPE_F32, {}, {3});
        const Tensor w_lo = g.tensor(5, QDQ_DTYPE_F32, {8}, std::vector<double>(8, -0.5));
        const Tensor w_hi = g.tensor(6, QDQ_DTYPE_F32, {8}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
        const Tensor a = g.tensor(7, QDQ_DTYPE_F32, {8, 16}, {}), b = g.tensor(8, QDQ_DTYPE_F32, {16, 8}, {});
        const Tensor m = g.tensor(9, QDQ_DTYPE_F32, {8, 8}, {}), y = g.tensor(10, QDQ_DTYPE_S8, {8, 8}, {});
        const std::string attrs = std::string(R"({"mode": ")") + mode + "\"}";
        g.op("TFDequantize", attrs.c_str(), {&src.desc, &lo.desc, &hi.desc}, {&a.desc});
        g.op("TFDequantize", R"({"mode": "SCALED", "axis": 1, "narrow_range": true})",
             {&w.desc, &w_lo.desc, &w_hi.desc}, {&b.desc});
        g.op("MatMul", "{}", {&a.desc, &b.desc}, {&m.desc});
        g.op("Quantize", R"({"scales": [0.037], "zps": [3]})", {&m.desc}, {&y.desc});
        for (const Tensor *t : {&w, &lo, &hi, &w_lo, &w_hi})
            g.constant(*t);
        g.finalize();
        size_t n_parts = 0;
        const Tensor expected = g.reference(src, y), got = g.session(src, y, &n_parts);
        EXPECT_EQ(n_parts, 1u) << mode;
        EXPECT_EQ(vectors::difference(expected, got, 1.0), "") << mode;
        const bool integers = QDQ_WITH_ONEDNN != 0 && (qk_isa_has(QK_ISA_avx512vnni) || qk_isa_has(QK_ISA_avxvnni));
        const bool alone = g.impl.find("TFDequantize") != std::string::npos;
        if (integers) {
            EXPECT_EQ(alone, std::string(mode) == "MIN_COMBINED") << g.impl;
        }
    }
}

// As TensorFlow's graphs are wired: Dequantize reads the ranges that QuantizeV2 gave out.
TEST(ConformanceContract, RangesOfAQuantizeV2AreKnownToItsDequantize) {
    Graph g;
    std::vector<double> x, weights;
    for (int i = 0; i < 8 * 16; i++)
        x.push_back(((i * 37) % 101 - 50) / 16.0);
    for (int i = 0; i < 16 * 8; i++)
        weights.push_back((i * 29) % 255 - 127);
    const Tensor src = g.tensor(1, QDQ_DTYPE_F32, {8, 16}, x), w = g.tensor(2, QDQ_DTYPE_S8, {16, 8}, weights);
    const Tensor lo = g.tensor(3, QDQ_DTYPE_F32, {}, {-1}), hi = g.tensor(4, QDQ_DTYPE_F32, {}, {3});
    const Tensor q = g.tensor(5, QDQ_DTYPE_U8, {8, 16}, {}), q_lo = g.tensor(6, QDQ_DTYPE_F32, {}, {});
    const Tensor q_hi = g.tensor(7, QDQ_DTYPE_F32, {}, {}), a = g.tensor(8, QDQ_DTYPE_F32, {8, 16}, {});
    const Tensor b = g.tensor(9, QDQ_DTYPE_F32, {16, 8}, {}), m = g.tensor(10, QDQ_DTYPE_F32, {8, 8}, {});
    const Tensor y = g.tensor(11, QDQ_DTYPE_S8, {8, 8}, {});
    g.op("QuantizeV2", R"({"mode": "MIN_FIRST", "T": "u8"})", {&src.desc, &lo.desc, &hi.desc},
         {&q.desc, &q_lo.desc, &q_hi.desc});
    g.op("TFDequantize", R"({"mode": "MIN_FIRST"})", {&q.desc, &q_lo.desc, &q_hi.desc}, {&a.desc});
    g.op("TFDequantize", R"({"mode": "SCALED"})", {&w.desc, &lo.desc, &hi.desc}, {&b.desc});
    g.op("MatMul", "{}", {&a.desc, &b.desc}, {&m.desc});
    g.op("Quantize", R"({"scales": [0.37]})", {&m.desc}, {&y.desc});
    for (const Tensor *t : {&w, &lo, &hi})
        g.constant(*t);
    g.finalize();
    size_t n_parts = 0;
    const Tensor expected = g.reference(src, y), got = g.session(src, y, &n_parts);
    EXPECT_EQ(n_parts, 2u);
    EXPECT_EQ(vectors::difference(expected, got, 1.0), "");
    if (QDQ_WITH_ONEDNN != 0 && (qk_isa_has(QK_ISA_avx512vnni) || qk_isa_has(QK_ISA_avxvnni))) {
        EXPECT_EQ(g.impl.find("TFDequantize"), std::string::npos) << g.impl;
    }
}

} // namespace
