// Partitions that are several of libqdq's: where oneDNN Graph has one, so have we; the numbers are those of the ops one by one; and
// however the graph looks, partitions come in an order in which they can run.
#include "dnnl_graph/abi_net.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace qdq_test {
namespace {

std::vector<Lt> Ports(dnnl_graph_partition_t p, bool output) {
    size_t n = 0;
    const auto num = output ? dnnl_graph_partition_get_output_ports_num : dnnl_graph_partition_get_input_ports_num;
    const auto get = output ? dnnl_graph_partition_get_output_ports : dnnl_graph_partition_get_input_ports;
    EXPECT_EQ(dnnl_success, num(p, &n));
    std::vector<Lt> ports(n);
    EXPECT_EQ(dnnl_success, get(p, n, ports.data()));
    return ports;
}

size_t Elements(const Lt &lt) {
    size_t n = 1;
    for (int i = 0; i < lt.ndims; i++)
        n *= static_cast<size_t>(lt.dims[i]);
    return n;
}

// Run all partitions in the order in which they came; a Wildcard gives its first input on. All tensors are f32 and dense.
void RunAll(const std::vector<dnnl_graph_partition_t> &ps, std::map<size_t, std::vector<float>> *values) {
    AbiEngine e;
    for (dnnl_graph_partition_t p : ps) {
        const std::vector<Lt> in = Ports(p, false), out = Ports(p, true);
        for (const Lt &lt : in)
            ASSERT_EQ(1u, values->count(lt.id)) << "tensor " << lt.id << " is read before it is made";
        for (const Lt &lt : out)
            (*values)[lt.id].resize(Elements(lt));
        if (!Supported(p)) {
            for (const Lt &lt : out)
                (*values)[lt.id] = (*values)[in[0].id];
            continue;
        }
        const AbiCompiled cp(p, in, out, e.engine());
        ASSERT_EQ(dnnl_success, cp.status());
        std::vector<std::pair<size_t, void *>> ins, outs;
        std::set<size_t> given;
        for (const Lt &lt : in)
            if (given.insert(lt.id).second) ins.emplace_back(lt.id, (*values)[lt.id].data());
        for (const Lt &lt : out)
            outs.emplace_back(lt.id, (*values)[lt.id].data());
        ASSERT_EQ(dnnl_success, cp.Run(e.stream(), ins, outs));
    }
}

const Dims kPixels = {1, 4, 4, 8};

// 1x1 convolution of pixels of 8 channels.
void AddConv(AbiGraph *g, size_t id, size_t src, size_t weights, size_t dst) {
    g->Add(AbiOp(id, dnnl_graph_op_convolution,
                 {MakeLt(src, dnnl_f32, kPixels), MakeLt(weights, dnnl_f32, {1, 1, 8, 8})},
                 {MakeLt(dst, dnnl_f32, kPixels)})
               .Is(dnnl_graph_op_attr_strides, {1, 1})
               .Is(dnnl_graph_op_attr_dilations, {1, 1})
               .Is(dnnl_graph_op_attr_pads_begin, {0, 0})
               .Is(dnnl_graph_op_attr_pads_end, {0, 0}));
}

void AddUnary(AbiGraph *g, size_t id, dnnl_graph_op_kind_t kind, size_t src, size_t dst) {
    g->Add(AbiOp(id, kind, {MakeLt(src, dnnl_f32, kPixels)}, {MakeLt(dst, dnnl_f32, kPixels)}));
}

void AddBinary(AbiGraph *g, size_t id, dnnl_graph_op_kind_t kind, size_t a, size_t b, size_t dst) {
    g->Add(AbiOp(id, kind, {MakeLt(a, dnnl_f32, kPixels), MakeLt(b, dnnl_f32, kPixels)},
                 {MakeLt(dst, dnnl_f32, kPixels)}));
}

std::vector<float> Numbers(size_t n, int seed) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(seed) * 5) % 13) - 6) / 4;
    return v;
}

using Values = std::map<size_t, std::vector<float>>;

// As few partitions as wanted, and the same numbers as with one op in each.
void Compare(AbiGraph *g, const Values &inputs, size_t n_partitions, const std::vector<size_t> &results) {
    Values joined = inputs, single = inputs;
    const auto ps = g->Partitions();
    if (n_partitions != 0) {
        EXPECT_EQ(n_partitions, ps.size());
    }
    RunAll(ps, &joined);
    RunAll(g->Partitions(dnnl_graph_partition_policy_debug), &single);
    for (size_t id : results) {
        ASSERT_EQ(single[id].size(), joined[id].size());
        ASSERT_FALSE(single[id].empty()) << "no tensor " << id;
        for (size_t i = 0; i < single[id].size(); i++)
            ASSERT_NEAR(single[id][i], joined[id][i], 1e-4f * (1 + std::fabs(single[id][i]))) << "tensor " << id;
    }
}

TEST(AbiJoin, ConvolutionsAreOne) {
    AbiGraph g;
    AddConv(&g, 1, 0, 100, 10);
    AddUnary(&g, 2, dnnl_graph_op_relu, 10, 11);
    AddConv(&g, 3, 11, 101, 12);
    AddBinary(&g, 4, dnnl_graph_op_add, 12, 0, 13);
    AddUnary(&g, 5, dnnl_graph_op_relu, 13, 14);
    AddConv(&g, 6, 14, 102, 15);
    Compare(&g, {{0, Numbers(128, 1)}, {100, Numbers(64, 2)}, {101, Numbers(64, 3)}, {102, Numbers(64, 4)}}, 1, {15});
}

TEST(AbiJoin, AnEndAndAnotherReaderGetTheValueBetween) {
    AbiGraph g;
    AddConv(&g, 1, 0, 100, 10);
    AddConv(&g, 2, 10, 101, 11);
    g.Add(AbiOp(3, dnnl_graph_op_end, {MakeLt(10, dnnl_f32, kPixels)}, {}));
    AddUnary(&g, 4, dnnl_graph_op_wildcard, 10, 12);
    Compare(&g, {{0, Numbers(128, 1)}, {100, Numbers(64, 2)}, {101, Numbers(64, 3)}}, 3, {10, 11, 12});
}

// first -> Wildcard -> second, and first -> second: together they would wait for themselves.
TEST(AbiJoin, AWayThroughTheOutsideKeepsThemApart) {
    AbiGraph g;
    AddConv(&g, 1, 0, 100, 10);
    AddUnary(&g, 2, dnnl_graph_op_wildcard, 10, 11);
    AddConv(&g, 3, 10, 101, 12);
    AddBinary(&g, 4, dnnl_graph_op_add, 12, 11, 13);
    Compare(&g, {{0, Numbers(128, 1)}, {100, Numbers(64, 2)}, {101, Numbers(64, 3)}}, 3, {13});
}

TEST(AbiJoin, AShuffleIsOne) {
    const Lt x = MakeLt(0, dnnl_f32, kPixels), a = MakeLt(1, dnnl_f32, {16, 2, 4}), b = MakeLt(2, dnnl_f32, {16, 4, 2});
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_static_reshape, {x}, {a})
              .Is(dnnl_graph_op_attr_shape, {16, 2, 4})
              .B(dnnl_graph_op_attr_special_zero, false));
    g.Add(AbiOp(2, dnnl_graph_op_static_transpose, {a}, {b}).Is(dnnl_graph_op_attr_order, {0, 2, 1}));
    g.Add(AbiOp(3, dnnl_graph_op_static_reshape, {b}, {MakeLt(3, dnnl_f32, kPixels)})
              .Is(dnnl_graph_op_attr_shape, kPixels)
              .B(dnnl_graph_op_attr_special_zero, false));
    Compare(&g, {{0, Numbers(128, 1)}}, 1, {3});
}

TEST(AbiJoin, AResizeTakesWhatFollows) {
    const Lt x = MakeLt(0, dnnl_f32, kPixels), big = MakeLt(1, dnnl_f32, {1, 8, 8, 8}),
             y = MakeLt(2, dnnl_f32, {1, 8, 8, 8});
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_interpolate, {x}, {big})
              .S(dnnl_graph_op_attr_mode, "nearest")
              .Is(dnnl_graph_op_attr_sizes, {8, 8}));
    g.Add(AbiOp(2, dnnl_graph_op_relu, {big}, {y}));
    Compare(&g, {{0, Numbers(128, 1)}}, 1, {2});
}

// Constants of a group get into its versions like those of a single one.
TEST(AbiJoin, ConstantsOfAGroupAreCachedByContent) {
    const Lt x = MakeLt(0, dnnl_f32, kPixels), y = MakeLt(12, dnnl_f32, kPixels);
    const auto weights = [](size_t id) {
        return MakeLt(id, dnnl_f32, {1, 1, 8, 8}, dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_constant);
    };
    AbiGraph g;
    for (size_t i = 0; i < 2; i++)
        g.Add(AbiOp(i, dnnl_graph_op_convolution, {i == 0 ? x : MakeLt(11, dnnl_f32, kPixels), weights(100 + i)},
                    {i == 0 ? MakeLt(11, dnnl_f32, kPixels) : y})
                  .Is(dnnl_graph_op_attr_strides, {1, 1})
                  .Is(dnnl_graph_op_attr_dilations, {1, 1})
                  .Is(dnnl_graph_op_attr_pads_begin, {0, 0})
                  .Is(dnnl_graph_op_attr_pads_end, {0, 0}));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    AbiEngine e;
    const AbiCompiled cp(ps[0], {weights(101), x, weights(100)}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    std::vector<float> a = Numbers(128, 1), w0 = Numbers(64, 2), w1 = Numbers(64, 3), out(128), again(128);
    for (int round = 0; round < 3; round++) {
        for (int cache : {0, 1}) {
            ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(cache));
            for (int k = 0; k < 2; k++)
                ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{0, a.data()}, {100, w0.data()}, {101, w1.data()}},
                                               {{12, cache == 0 ? out.data() : again.data()}}));
        }
        for (size_t i = 0; i < out.size(); i++)
            ASSERT_NEAR(out[i], again[i], 1e-5f * (1 + std::fabs(out[i])));
        float sum = 0; // of the first channel of the first pixel, by hand
        for (int m = 0; m < 8; m++) {
            float inner = 0;
            for (int c = 0; c < 8; c++)
                inner += a[c] * w0[c * 8 + m];
            sum += inner * w1[m * 8];
        }
        EXPECT_NEAR(sum, out[0], 1e-4f * (1 + std::fabs(sum)));
        w1 = Numbers(64, 10 + round);
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(0));
}

// Graphs without a plan: every op in one partition, each partition after those it reads, numbers as one by one.
TEST(AbiJoin, AnyGraphCanRun) {
    for (unsigned seed = 0; seed < 40; seed++) {
        std::mt19937 random(seed);
        AbiGraph g;
        Values inputs = {{0, Numbers(128, static_cast<int>(seed))}};
        std::vector<size_t> made = {0};
        const size_t n = 4 + seed % 20;
        for (size_t id = 1; id <= n; id++) {
            const auto pick = [&] { return made[made.size() - 1 - random() % std::min<size_t>(made.size(), 4)]; };
            const size_t a = pick(), b = pick();
            switch (random() % 7) {
            case 0:
            case 1:
            case 2:
                inputs[1000 + id] = Numbers(64, static_cast<int>(id));
                for (float &w : inputs[1000 + id])
                    w /= 8;
                AddConv(&g, id, a, 1000 + id, id);
                break;
            case 3: AddUnary(&g, id, dnnl_graph_op_relu, a, id); break;
            case 4: AddUnary(&g, id, dnnl_graph_op_wildcard, a, id); break;
            default: AddBinary(&g, id, dnnl_graph_op_maximum, a, b, id);
            }
            made.push_back(id);
        }
        const auto ps = g.Partitions();
        std::multiset<size_t> ops;
        for (dnnl_graph_partition_t p : ps) {
            std::vector<size_t> ids(OpNum(p));
            ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_ops(p, ids.size(), ids.data()));
            ops.insert(ids.begin(), ids.end());
        }
        ASSERT_EQ(n, ops.size()) << "seed " << seed;
        ASSERT_EQ(n, std::set<size_t>(ops.begin(), ops.end()).size()) << "seed " << seed;
        std::vector<size_t> results;
        for (dnnl_graph_partition_t p : ps)
            for (const Lt &lt : Ports(p, true))
                results.push_back(lt.id);
        Compare(&g, inputs, 0, results);
        if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
}

} // namespace
} // namespace qdq_test
