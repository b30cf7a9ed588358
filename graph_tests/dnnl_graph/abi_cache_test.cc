// The two caches and their controls: compiled partitions, and constant tensors keyed by content.
#include "dnnl_graph/abi_net.h"

namespace qdq_test {
namespace {

constexpr size_t kMb = SIZE_MAX >> 20;

TEST(AbiCodeCache, CapacityIsKept) {
    int n = 0;
    ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(2));
    ASSERT_EQ(dnnl_success, dnnl_graph_get_compiled_partition_cache_capacity(&n));
    EXPECT_EQ(2, n);
    ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(1024));
}

// A cached partition answers for other sizes, ops and attributes only if the key forgets them.
TEST(AbiCodeCache, WhatDiffersIsNotTakenForTheSame) {
    AbiEngine e;
    for (int capacity : {0, 1, 1024}) {
        ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(capacity));
        for (int round = 0; round < 2; round++) {
            for (float alpha : {0.5f, 0.25f}) {
                for (int64_t n : {3, 5}) {
                    for (auto kind : {dnnl_graph_op_leaky_relu, dnnl_graph_op_elu}) {
                        const Lt x = MakeLt(1, dnnl_f32, {n}), y = MakeLt(2, dnnl_f32, {n});
                        AbiGraph g;
                        g.Add(AbiOp(1, kind, {x}, {y}).F(dnnl_graph_op_attr_alpha, alpha));
                        const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
                        ASSERT_EQ(dnnl_success, cp.status());
                        EXPECT_EQ(n, cp.Query(2).dims[0]);
                        std::vector<float> a(static_cast<size_t>(n), -2), b(static_cast<size_t>(n));
                        ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a.data()}}, {{2, b.data()}}));
                        const float want = kind == dnnl_graph_op_elu ? alpha * (std::exp(-2.0f) - 1) : alpha * -2;
                        EXPECT_NEAR(want, b.back(), 1e-6f) << capacity << " " << alpha << " " << n;
                    }
                }
            }
        }
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(1024));
}

TEST(AbiCodeCache, WhatIsEvictedLivesWhileItIsUsed) {
    const Lt x = MakeLt(1, dnnl_f32, {4}), y = MakeLt(2, dnnl_f32, {4});
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_abs, {x}, {y}));
    const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(0));
    float a[4] = {-1, 2, -3, 4}, b[4] = {};
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a}}, {{2, b}}));
    EXPECT_EQ(3.0f, b[2]);
    ASSERT_EQ(dnnl_success, dnnl_graph_set_compiled_partition_cache_capacity(1024));
}

TEST(AbiConstantCache, FlagAndCapacityAreOneThing) {
    int flag = 9;
    size_t mb = 9;
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(1));
    ASSERT_EQ(dnnl_success, dnnl_graph_get_constant_tensor_cache(&flag));
    EXPECT_EQ(1, flag);
    ASSERT_EQ(dnnl_success, dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &mb));
    EXPECT_EQ(kMb, mb);
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 5));
    ASSERT_EQ(dnnl_success, dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &mb));
    EXPECT_EQ(5u, mb);
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, SIZE_MAX));
    ASSERT_EQ(dnnl_success, dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &mb));
    EXPECT_EQ(kMb, mb) << "no more than can be told in bytes";
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(0));
    ASSERT_EQ(dnnl_success, dnnl_graph_get_constant_tensor_cache(&flag));
    EXPECT_EQ(0, flag);
}

// On, off, in place, elsewhere, out of room: the numbers are those of the content.
TEST(AbiConstantCache, ContentCountsAndNotTheAddress) {
    AbiEngine e;
    for (size_t mb : {size_t{0}, size_t{64}, kMb}) {
        ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, mb));
        Int8MatMul net;
        AbiGraph g;
        net.AddTo(&g);
        const AbiCompiled cp(g.Partitions()[0], {net.src, net.weights}, {net.dst}, e.engine());
        ASSERT_EQ(dnnl_success, cp.status());
        std::vector<int8_t> elsewhere = net.weights_data;
        for (int round = 0; round < 6; round++) {
            for (int8_t *weights : {net.weights_data.data(), elsewhere.data()}) {
                std::vector<uint8_t> out(net.Expected().size(), 99);
                ASSERT_EQ(dnnl_success,
                          cp.Run(e.stream(), {{1, net.src_data.data()}, {2, weights}}, {{7, out.data()}}));
                EXPECT_EQ(net.Expected(), out) << "cache of " << mb << " MB, round " << round;
            }
            for (size_t i = 0; i < elsewhere.size(); i++) // in place, and back to what it was after two rounds
                net.weights_data[i] = elsewhere[i] = static_cast<int8_t>(-net.weights_data[i]);
            if (round == 3) {
                ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, mb)); // flushes
            }
        }
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(0));
}

// Twelve contents of 0.6 MB in a cache of 2 MB.
TEST(AbiConstantCache, MoreThanItHoldsIsComputedWithoutIt) {
    const Lt x = MakeLt(0, dnnl_f32, {2, 400}), y = MakeLt(2, dnnl_f32, {2, 400});
    const Lt w = MakeLt(1, dnnl_f32, {400, 400}, dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_constant);
    AbiEngine e;
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 2));
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_matmul, {x, w}, {y}));
    const AbiCompiled cp(g.Partitions()[0], {x, w}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    std::vector<float> a(800, 1), b(400 * 400), c(800);
    for (int round = 0; round < 12; round++) {
        std::fill(b.begin(), b.end(), static_cast<float>(round));
        ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{0, a.data()}, {1, b.data()}}, {{2, c.data()}}));
        EXPECT_EQ(400.0f * static_cast<float>(round), c[399]);
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(0));
}

} // namespace
} // namespace qdq_test
