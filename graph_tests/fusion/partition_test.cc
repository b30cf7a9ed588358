// What holds for every graph: the list of partitions is a valid schedule, and it is made in linear time.
#include "harness/text_graph.h"

#include "base/alloc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

qdq_graph *Graph(const std::string &text) {
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    EXPECT_EQ(qh_graph_from_text(text.c_str(), &graph, &err), QDQ_OK) << err.text;
    return graph;
}

qdqi_parts *Partition(const qdq_graph *graph, qdq_policy policy = QDQ_POLICY_FUSION) {
    qdq_error err = {};
    qdqi_parts *parts = nullptr;
    EXPECT_EQ(qdqi_partition_graph(graph, policy, &parts, &err), QDQ_OK) << err.text;
    return parts;
}

// A random graph over 4x4 tensors, in which any op may read any earlier value: integers only through Dequantize. Values are
// shared, made graph outputs or left unused at random.
class RandomGraph {
  public:
    explicit RandomGraph(uint32_t seed) : random_(seed) {
        text_ = "i0:u8 4x4\ni1:s8 4x4\nf0:f32 4x4\nf1:f32 4x4 const\nw0:s8 4x4 const\nw1:f32 4x4 const\n"
                "w2 = Quantize(w1)\n";
        ints_ = {"i0", "i1", "w0", "w2"};
        floats_ = {"f0", "f1"};
        const uint32_t n = 5 + Pick(60);
        for (uint32_t i = 0; i < n; i++)
            AddOp("v" + std::to_string(i));
        if (Pick(2)) return;
        text_ += "out v" + std::to_string(n - 1);
        std::set<uint32_t> named = {n - 1};
        for (uint32_t i = 0; i < 1 + n / 10; i++) {
            const uint32_t v = Pick(n);
            if (named.insert(v).second) text_ += " v" + std::to_string(v);
        }
    }
    const std::string &text() const { return text_; }

  private:
    uint32_t Pick(uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random_); }
    // Recent values more often than old ones: chains, but also long jumps.
    std::string Recent(const std::vector<std::string> &from) {
        const uint32_t n = (uint32_t)from.size();
        const uint32_t back = Pick(4) ? Pick(n < 3 ? n : 3) : Pick(n);
        return from[n - 1 - back];
    }
    void AddOp(const std::string &name) {
        static const char *const unary[] = {"ReLU", "Sigmoid", "Tanh", "Clamp", "Erf"};
        static const char *const binary[] = {"Add", "Multiply", "Subtract", "Divide", "Maximum"};
        const std::string f = Recent(floats_), g = Recent(floats_);
        std::string op;
        switch (Pick(15)) {
        case 0:
        case 1: op = "Dequantize(" + Recent(ints_) + ")"; break;
        case 2:
        case 3:
            text_ += name + " = Quantize(" + f + ")\n";
            ints_.push_back(name);
            return;
        case 4:
        case 5: op = "MatMul(" + f + ", " + g + ")"; break;
        case 6:
        case 7:
        case 8: op = std::string(unary[Pick(5)]) + "(" + f + ")"; break;
        case 9:
        case 10:
        case 11: op = std::string(binary[Pick(5)]) + "(" + f + ", " + g + ")"; break;
        case 12: op = Pick(2) ? "SoftMax(" + f + ")" : "StaticTranspose(" + f + ") {order=[1,0]}"; break;
        case 13: { // an attention, or what others make of it
            text_ += name + "m = MatMul(" + f + ", " + g + ")\n";
            text_ += name + "a = Add(" + name + "m, " + Recent(floats_) + ")\n";
            text_ += name + "s = SoftMax(" + name + "a) {axis=-1}\n";
            op = "MatMul(" + name + "s, " + Recent(floats_) + ")";
            if (Pick(3) == 0) floats_.push_back(name + std::string(1, "mas"[Pick(3)]));
            break;
        }
        default: op = Pick(2) ? "BiasAdd(" + f + ", c)" : "Sum(" + f + ", " + g + ", " + f + ")"; break;
        }
        if (op.find(", c)") != std::string::npos && !has_bias_) {
            text_ = "c:f32 4 const\n" + text_;
            has_bias_ = true;
        }
        text_ += name + " = " + op + "\n";
        floats_.push_back(name);
    }

    std::mt19937 random_;
    std::string text_;
    std::vector<std::string> ints_, floats_;
    bool has_bias_ = false;
};

TEST(PartitionProperty, RandomGraphsGiveValidSchedules) {
    uint32_t n_fused = 0, n_ops = 0;
    for (uint32_t seed = 0; seed < 3000; seed++) {
        const RandomGraph random(seed);
        SCOPED_TRACE("seed " + std::to_string(seed));
        qdq_graph *graph = Graph(random.text());
        ASSERT_NE(graph, nullptr) << random.text();
        for (const qdq_policy policy : {QDQ_POLICY_FUSION, QDQ_POLICY_SINGLE}) {
            qdqi_parts *parts = Partition(graph, policy);
            ASSERT_NE(parts, nullptr);
            qdq_error err = {};
            EXPECT_TRUE(qh_parts_hold(graph, parts, &err)) << err.text << "\n" << random.text();
            for (uint32_t i = 0; policy == QDQ_POLICY_FUSION && i < parts->n; i++)
                if (parts->parts[i].n_ops > 1) n_fused += parts->parts[i].n_ops;
            if (policy == QDQ_POLICY_SINGLE) {
                EXPECT_EQ(parts->n, graph->n_ops);
            }
            qdqi_parts_destroy(&parts);
        }
        n_ops += graph->n_ops;
        qdqi_graph_release(graph);
        if (HasFailure()) return;
    }
    // The property would hold of a partitioner that fuses nothing.
    EXPECT_GT(n_fused, n_ops / 3);
}

TEST(PartitionProperty, TheCheckerSeesBrokenSchedules) {
    qdq_graph *graph = Graph("x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);"
                             "y = Quantize(m); c = Dequantize(y); t = Tanh(c)");
    ASSERT_NE(graph, nullptr);
    qdqi_parts *parts = Partition(graph);
    ASSERT_NE(parts, nullptr);
    ASSERT_EQ(parts->n, 2u);
    qdq_error err = {};
    EXPECT_TRUE(qh_parts_hold(graph, parts, &err)) << err.text;

    const qdqi_part first = parts->parts[0], second = parts->parts[1];
    parts->parts[0] = second, parts->parts[1] = first;
    parts->parts[0].id = 0, parts->parts[1].id = 1;
    EXPECT_FALSE(qh_parts_hold(graph, parts, &err)); // read before it is made
    parts->parts[0] = first, parts->parts[1] = second;
    parts->parts[0].n_ops--;
    EXPECT_FALSE(qh_parts_hold(graph, parts, &err)); // an op is missing
    parts->parts[0] = first;
    parts->parts[0].n_outputs = 0;
    EXPECT_FALSE(qh_parts_hold(graph, parts, &err)); // a value is hidden
    parts->parts[0] = first;
    parts->parts[1].n_inputs = 0;
    EXPECT_FALSE(qh_parts_hold(graph, parts, &err)); // a port is missing
    parts->parts[1] = second;
    EXPECT_TRUE(qh_parts_hold(graph, parts, &err));
    qdqi_parts_destroy(&parts);
    EXPECT_EQ(parts, nullptr);
    qdqi_parts_destroy(&parts);
    qdqi_parts_destroy(nullptr);
    qdqi_graph_release(graph);
}

TEST(PartitionPorts, ConstantsAreNoPortsAndNothingIsListedTwice) {
    qdq_graph *graph = Graph("x:u8 4x4; w:s8 4x4 const; s:f32 4x4; a = Dequantize(x); b = Dequantize(w);"
                             "m = MatMul(a, b); n = Multiply(m, s); p = Add(n, s); q = Add(p, a); y = Quantize(q)");
    ASSERT_NE(graph, nullptr);
    qdqi_parts *parts = Partition(graph);
    ASSERT_NE(parts, nullptr);
    ASSERT_EQ(parts->n, 1u);
    const qdqi_part &part = parts->parts[0];
    EXPECT_STREQ(graph->ops[part.root].name, "m");
    ASSERT_EQ(part.n_inputs, 2u); // x (not a: it is recomputed here) and s, once
    EXPECT_EQ(graph->values[part.inputs[0]].desc.id, 1u);
    EXPECT_EQ(graph->values[part.inputs[1]].desc.id, 3u);
    ASSERT_EQ(part.n_consts, 1u);
    EXPECT_EQ(graph->values[part.consts[0]].desc.id, 2u);
    ASSERT_EQ(part.n_outputs, 1u);
    EXPECT_EQ(part.outputs[0], graph->ops[part.ops[part.n_ops - 1]].out[0]);
    qdqi_parts_destroy(&parts);
    qdqi_graph_release(graph);
}

TEST(PartitionErrors, UnfinalizedGraph) {
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    ASSERT_EQ(qdqi_graph_create(&graph, &err), QDQ_OK);
    qdqi_parts *parts = nullptr;
    EXPECT_EQ(qdqi_partition_graph(graph, QDQ_POLICY_FUSION, &parts, &err), QDQ_E_BAD_STATE);
    EXPECT_EQ(parts, nullptr);
    qdqi_graph_release(graph);
}

TEST(PartitionErrors, EmptyGraphGivesAnEmptyList) {
    qdq_graph *graph = Graph("");
    ASSERT_NE(graph, nullptr);
    qdqi_parts *parts = Partition(graph);
    ASSERT_NE(parts, nullptr);
    EXPECT_EQ(parts->n, 0u);
    qdqi_parts_destroy(&parts);
    qdqi_graph_release(graph);
}

TEST(PartitionErrors, EveryFailedAllocationIsAnError) {
    qdq_graph *graph = Graph("x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);"
                             "y = Quantize(m); s = SoftMax(m)");
    ASSERT_NE(graph, nullptr);
    uint64_t nth = 1;
    for (;; nth++) {
        qdq_error err = {};
        qdqi_parts *parts = nullptr;
        qdqi_alloc_fail_at(nth);
        const qdq_status status = qdqi_partition_graph(graph, QDQ_POLICY_FUSION, &parts, &err);
        qdqi_alloc_fail_at(0);
        if (status == QDQ_OK) {
            qdqi_parts_destroy(&parts);
            break;
        }
        EXPECT_EQ(status, QDQ_E_NO_MEMORY);
        EXPECT_EQ(parts, nullptr);
        ASSERT_LT(nth, 1000u);
    }
    EXPECT_GT(nth, 10u);
    qdqi_graph_release(graph);
}

// ---- linear time ----

enum class Shape { kChain, kIndependent };

// n blocks of Dequantize, Dequantize(weights), MatMul, ReLU, Quantize.
std::string Blocks(uint32_t n, Shape shape) {
    std::string text = "w:s8 4x4 const\nx:u8 2x4\n", from = "x";
    for (uint32_t i = 0; i < n; i++) {
        const std::string k = std::to_string(i);
        if (shape == Shape::kIndependent) {
            from = "x" + k;
            text += from + ":u8 2x4\n";
        }
        text += "a" + k + " = Dequantize(" + from + ")\nb" + k + " = Dequantize(w)\nm" + k + " = MatMul(a" + k + ", b" +
                k + ")\nr" + k + " = ReLU(m" + k + ")\ny" + k + ":u8 = Quantize(r" + k + ")\n";
        from = "y" + k;
    }
    return text;
}

struct Work {
    uint32_t n_parts;
    uint64_t n_attempts;
    double ms;
};

Work Measure(const std::string &text) {
    qdq_graph *graph = Graph(text);
    if (!graph) return {};
    const auto start = std::chrono::steady_clock::now();
    qdqi_parts *parts = Partition(graph);
    const auto stop = std::chrono::steady_clock::now();
    if (!parts) return {};
    const Work work = {parts->n, parts->n_attempts, std::chrono::duration<double, std::milli>(stop - start).count()};
    qdq_error err = {};
    EXPECT_TRUE(qh_parts_hold(graph, parts, &err)) << err.text;
    qdqi_parts_destroy(&parts);
    qdqi_graph_release(graph);
    return work;
}

TEST(PartitionTime, TwentyThousandBlocksAreLinear) {
    for (const Shape shape : {Shape::kChain, Shape::kIndependent}) {
        const Work small = Measure(Blocks(2000, shape)), large = Measure(Blocks(20000, shape));
        std::printf("20000 blocks (100000 ops), %s: %.1f ms, %llu attempts\n",
                    shape == Shape::kChain ? "chain" : "independent", large.ms, (unsigned long long)large.n_attempts);
        EXPECT_EQ(small.n_parts, 2000u);
        EXPECT_EQ(large.n_parts, 20000u);
        EXPECT_LE(large.n_attempts, small.n_attempts * 10 + 1000);
        EXPECT_LT(large.ms, 10000.0); // a guard against a quadratic accident, not a benchmark
    }
}

// Shapes on which a careless matcher is quadratic.
TEST(PartitionTime, BadShapesAreLinear) {
    const auto one_source = [](uint32_t n) { // one Dequantize, n users
        std::string text = "x:u8 2x4\na = Dequantize(x)\n";
        for (uint32_t i = 0; i < n; i++)
            text += "r" + std::to_string(i) + " = ReLU(a)\n";
        return text;
    };
    const auto one_float = [](uint32_t n) { // one float value, n users
        std::string text = "x:f32 2x4\nz:f32 2x4\na = Add(x, z)\n";
        for (uint32_t i = 0; i < n; i++)
            text += "r" + std::to_string(i) + " = ReLU(a)\n";
        return text;
    };
    const auto long_run = [](uint32_t n) { // one run of n ops
        std::string text = "x:f32 2x4\nr0 = ReLU(x)\n";
        for (uint32_t i = 1; i < n; i++)
            text += "r" + std::to_string(i) + " = ReLU(r" + std::to_string(i - 1) + ")\n";
        return text;
    };
    const auto ladder = [](uint32_t n) { // every value used by the next two ops: no run ever closes
        std::string text = "x:f32 2x4\nr0 = ReLU(x)\nr1 = ReLU(r0)\n";
        for (uint32_t i = 2; i < n; i++)
            text +=
                "r" + std::to_string(i) + " = Add(r" + std::to_string(i - 1) + ", r" + std::to_string(i - 2) + ")\n";
        return text;
    };
    const std::vector<std::pair<const char *, std::string (*)(uint32_t)>> shapes = {
        {"one source", one_source}, {"one float", one_float}, {"long run", long_run}, {"ladder", ladder}};
    for (const auto &[name, make] : shapes) {
        const Work small = Measure(make(2000)), large = Measure(make(20000));
        std::printf("20000 ops, %s: %.1f ms, %llu attempts\n", name, large.ms, (unsigned long long)large.n_attempts);
        EXPECT_LE(large.n_attempts, small.n_attempts * 11) << name;
        EXPECT_LT(large.ms, 10000.0) << name;
    }
}

} // namespace
