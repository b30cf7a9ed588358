// Objects that are shared: between threads, runs, graphs and models. The suite's name puts it among the concurrency tests.
#include "fusion/field.h"

#include <atomic>
#include <cstring>
#include <thread>

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

// One partition of one variable input and one output, compiled.
struct Compiled {
    qdq_compiled *object = nullptr;
    std::vector<qdq_tensor_desc> in, out;
    size_t in_bytes = 0, out_bytes = 0;
    ~Compiled() { qdq_compiled_destroy(&object); }

    bool Make(const Net &net, Id result, qdq_engine *engine) {
        std::string error;
        qdq_error err = {};
        GraphPtr graph(net.Graph({result}, &error));
        qdq_partition_list *list = nullptr;
        bool ok = graph && qdq_graph_partition(graph.get(), QDQ_POLICY_FUSION, &list, &err) == QDQ_OK;
        const qdq_partition *part = ok ? qdq_partition_list_get(list, 0) : nullptr;
        ok = ok && qdq_partition_list_count(list) == 1;
        if (ok) {
            in.resize(qdq_partition_n_inputs(part));
            out.resize(qdq_partition_n_outputs(part));
        }
        for (size_t i = 0; i < in.size() && ok; i++)
            ok = qdq_partition_input(part, i, &in[i], &err) == QDQ_OK;
        for (size_t i = 0; i < out.size() && ok; i++) {
            ok = qdq_partition_output(part, i, &out[i], &err) == QDQ_OK;
            out[i] = DenseDesc(out[i].id, net.At(result).dtype, net.At(result).dims);
        }
        ok = ok &&
             qdq_partition_compile(part, engine, in.data(), in.size(), out.data(), out.size(), &object, &err) == QDQ_OK;
        qdq_partition_list_destroy(&list);
        if (!ok) ADD_FAILURE() << error << err.text;
        out_bytes = net.At(result).data.size();
        return ok;
    }
    bool Run(const std::vector<const void *> &inputs, void *output) const {
        std::vector<qdq_tensor> ins(in.size());
        for (size_t i = 0; i < in.size(); i++)
            ins[i] = {in[i], const_cast<void *>(inputs[i])};
        const qdq_tensor result = {out[0], output};
        return qdq_compiled_execute(object, ins.data(), ins.size(), &result, 1, nullptr) == QDQ_OK;
    }
};

class ConcurrencyFusion : public Field {
  protected:
    // 8 threads, each with inputs of its own, on one object: the bytes of a lone run.
    void ExpectSameBytes(Id x, Id result) {
        enum { kThreads = 8, kRuns = 100 };
        Compiled c;
        ASSERT_TRUE(c.Make(net, result, engine));
        std::vector<Bytes> inputs(kThreads, net.At(x).data), alone(kThreads, Bytes(c.out_bytes));
        for (int t = 0; t < kThreads; t++) {
            for (uint8_t &byte : inputs[static_cast<size_t>(t)])
                byte = static_cast<uint8_t>(byte * 3 + t * 41);
            ASSERT_TRUE(c.Run({inputs[static_cast<size_t>(t)].data()}, alone[static_cast<size_t>(t)].data()));
        }
        std::atomic<int> n_wrong{0};
        std::vector<std::thread> threads;
        for (size_t t = 0; t < kThreads; t++)
            threads.emplace_back([&, t] {
                Bytes got(c.out_bytes);
                for (int run = 0; run < kRuns; run++) {
                    std::fill(got.begin(), got.end(), uint8_t{0xa5});
                    if (!c.Run({inputs[t].data()}, got.data()) || got != alone[t]) n_wrong++;
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        EXPECT_EQ(n_wrong.load(), 0);
    }
};

TEST_F(ConcurrencyFusion, EightThreadsOnOneProduct) { // M1
    const Id x = U8({5, 33}, Ramp(165, 0, 255));
    const Id m = Op("MatMul", {Dq(x, {0.1f}, {7}), Dq(W(kS8, {33, 17}, Ramp(561, -128, 127)), {0.02f})});
    ExpectSameBytes(x, Q(Op("GELU", {m}), kU8, {0.3f}, {9}));
}

TEST_F(ConcurrencyFusion, EightThreadsOnOneConvolution) { // M1
    const Id x = U8({1, 3, 9, 8}, Ramp(216, 0, 255));
    const Id w = Dq(W(kS8, {5, 3, 3, 3}, Ramp(135, -128, 127)), {0.02f}, {3});
    ExpectSameBytes(x, Q(Op("Convolution", {Dq(x, {0.1f}, {7}), w}, ConvAttrs({1, 1}, {1, 1}, {1, 1})), kS8, {0.9f}));
}

TEST_F(ConcurrencyFusion, EightThreadsOnOnePoolAndOneChain) { // M1
    const Id x = S8({2, 6, 6, 5}, Ramp(360, -128, 127));
    auto attrs = PoolAttrs({3, 2}, {1, 1}, {1, 0}, {1, 1}, "NXC");
    attrs.push_back(AttrB("exclude_pad", false));
    ExpectSameBytes(x, Q(Op("AvgPool", {Dq(x, {0.1f}, {-3})}, attrs), kS8, {0.1f}));
    Clear();
    const Id y = S8({7, 65}, Ramp(455, -128, 127));
    ExpectSameBytes(
        y, Q(Op("Celu", {Op("Softsign", {Op("Multiply", {Dq(y, {0.1f}), net.Floats({65}, Reals(65, 0.3f), true)})})}),
             kU8, {0.01f}, {50}));
}

class FieldSharing : public Field {};

TEST_F(FieldSharing, WeightsThatChangeBetweenRuns) { // Z7
    for (const bool conv : {false, true}) {
        Clear();
        const Id x = conv ? U8({1, 2, 1, 1}, {1, 2}) : U8({1, 2}, {1, 2});
        const Id w = conv ? S8({2, 2, 1, 1}, {1, 0, 0, 1}) : S8({2, 2}, {1, 0, 0, 1});
        const Id m = conv ? Op("Convolution", {Dq(x, {1.0f}), Dq(w, {1.0f})}, ConvAttrs({1, 1}, {0, 0}, {0, 0}))
                          : Op("MatMul", {Dq(x, {1.0f}), Dq(w, {1.0f})});
        Compiled c;
        ASSERT_TRUE(c.Make(net, Q(m, kS8, {1.0f}), engine));
        for (const std::vector<int8_t> &weights : {std::vector<int8_t>{1, 0, 0, 1}, {3, 0, 0, -5}, {1, 0, 0, 1}}) {
            std::vector<const void *> in(2);
            for (size_t i = 0; i < 2; i++)
                in[i] = c.in[i].id == static_cast<uint64_t>(x) + 1 ? net.At(x).data.data()
                                                                   : static_cast<const void *>(weights.data());
            int8_t out[2] = {99, 99};
            ASSERT_TRUE(c.Run(in, out));
            EXPECT_EQ(out[0], weights[0]);
            EXPECT_EQ(out[1], 2 * weights[3]);
        }
    }
}

TEST_F(FieldSharing, ConstantsAreKnownByContent) { // M5: one graph, other weights, one engine
    for (const int64_t scale : {1, 2, 1, 3}) {
        Clear();
        const Id w = W(kS8, {2, 2}, {scale, 0, 0, -scale});
        Expect(Q(Op("MatMul", {Dq(U8({1, 2}, {5, 7}), {1.0f}), Dq(w, {1.0f})}), kS8, {1.0f}),
               {5.0 * static_cast<double>(scale), -7.0 * static_cast<double>(scale)});
        Clear();
        const Id v = W(kS8, {2, 2, 1, 1}, {scale, 0, 0, -scale});
        Expect(Q(Op("Convolution", {Dq(U8({1, 2, 1, 1}, {5, 7}), {1.0f}), Dq(v, {1.0f})},
                    ConvAttrs({1, 1}, {0, 0}, {0, 0})),
                 kS8, {1.0f}),
               {5.0 * static_cast<double>(scale), -7.0 * static_cast<double>(scale)});
    }
}

TEST_F(FieldSharing, OneGraphOnTwoEngines) { // M4
    qdq_engine *other = nullptr;
    ASSERT_EQ(qdq_engine_create(nullptr, &other, nullptr), QDQ_OK);
    const Id x = U8({1, 2}, {5, 7});
    const Id y = Q(Op("MatMul", {Dq(x, {1.0f}), Dq(W(kS8, {2, 1}, {2, 3}), {1.0f})}), kS8, {1.0f});
    Compiled a, b;
    ASSERT_TRUE(a.Make(net, y, engine));
    ASSERT_TRUE(b.Make(net, y, other));
    qdq_engine_destroy(&other); // kept by what is compiled on it
    for (const Compiled *c : {&a, &b, &a}) {
        int8_t out = 0;
        ASSERT_TRUE(c->Run({net.At(x).data.data()}, &out));
        EXPECT_EQ(out, 31);
    }
}

TEST_F(FieldSharing, OneOpInTwoGraphs) {
    qdq_error err = {};
    qdq_op *op = nullptr;
    ASSERT_EQ(qdq_op_create(1, "ReLU", "r", &op, &err), QDQ_OK);
    const qdq_tensor_desc in = DenseDesc(1, QDQ_DTYPE_F32, {2}), out = DenseDesc(2, QDQ_DTYPE_F32, {2});
    ASSERT_EQ(qdq_op_add_input(op, &in, &err), QDQ_OK);
    ASSERT_EQ(qdq_op_add_output(op, &out, &err), QDQ_OK);
    GraphPtr graphs[2];
    for (GraphPtr &graph : graphs) {
        qdq_graph *g = nullptr;
        ASSERT_EQ(qdq_graph_create(&g, &err), QDQ_OK);
        graph.reset(g);
        ASSERT_EQ(qdq_graph_add_op(g, op, &err), QDQ_OK) << err.text;
    }
    qdq_op_destroy(&op);
    ASSERT_EQ(qdq_graph_finalize(graphs[0].get(), &err), QDQ_OK) << err.text;
    graphs[0].reset(); // the first goes; the second does not notice
    ASSERT_EQ(qdq_graph_finalize(graphs[1].get(), &err), QDQ_OK) << err.text;
    float x[2] = {-1, 2}, y[2] = {9, 9};
    const qdq_tensor tx = {in, x}, ty = {out, y};
    ASSERT_EQ(qdq_graph_run_reference(graphs[1].get(), &tx, 1, &ty, 1, &err), QDQ_OK) << err.text;
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 2.0f);
}

} // namespace
} // namespace qdq_test
