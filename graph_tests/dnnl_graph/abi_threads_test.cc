// Many threads: one compiled partition, one partition compiled by all, engines and caches of all.
#include "dnnl_graph/abi_net.h"

#include <atomic>
#include <thread>

namespace qdq_test {
namespace {

template <class Body> void InThreads(int n, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++)
        threads.emplace_back(body, i);
    for (std::thread &t : threads)
        t.join();
}

TEST(ConcurrencyAbi, OneCompiledPartitionRunsInManyThreads) {
    for (int cache : {0, 1}) {
        ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(cache));
        const Int8MatMul net;
        const auto expected = net.Expected();
        AbiEngine e;
        AbiGraph g;
        net.AddTo(&g);
        const AbiCompiled cp(g.Partitions()[0], {net.src, net.weights}, {net.dst}, e.engine());
        ASSERT_EQ(dnnl_success, cp.status());
        std::atomic<int> n_wrong{0};
        InThreads(4, [&](int) {
            std::vector<uint8_t> src = net.src_data, out(expected.size());
            std::vector<int8_t> weights = net.weights_data;
            for (int i = 0; i < 50; i++) {
                const bool ok =
                    cp.Run(e.stream(), {{1, src.data()}, {2, weights.data()}}, {{7, out.data()}}) == dnnl_success &&
                    out == expected;
                n_wrong += !ok;
            }
        });
        EXPECT_EQ(0, n_wrong);
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_set_constant_tensor_cache(0));
}

TEST(ConcurrencyAbi, GraphsAreBuiltCompiledAndDroppedByMany) {
    AbiEngine e;
    std::atomic<int> n_wrong{0};
    InThreads(4, [&](int thread) {
        for (int i = 0; i < 20; i++) {
            if (thread == 0) dnnl_graph_set_compiled_partition_cache_capacity(i % 3 == 0 ? 1 : 1024);
            if (thread == 1) dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, i % 2 == 0 ? 8 : 0);
            Int8MatMul net;
            for (int8_t &w : net.weights_data)
                w = static_cast<int8_t>(w + i % 4 - thread);
            AbiGraph g;
            net.AddTo(&g);
            const auto ps = g.Partitions();
            const AbiCompiled cp(ps[0], {net.src, net.weights}, {net.dst}, e.engine());
            std::vector<uint8_t> out(net.Expected().size());
            const bool ok = cp.status() == dnnl_success &&
                            cp.Run(e.stream(), {{1, net.src_data.data()}, {2, net.weights_data.data()}},
                                   {{7, out.data()}}) == dnnl_success &&
                            out == net.Expected();
            n_wrong += !ok;
        }
    });
    EXPECT_EQ(0, n_wrong);
    dnnl_graph_set_compiled_partition_cache_capacity(1024);
    dnnl_graph_set_constant_tensor_cache(0);
}

TEST(ConcurrencyAbi, EnginesWithAllocatorsAreMadeByMany) {
    std::atomic<int> n_wrong{0};
    InThreads(4, [&](int) {
        for (int i = 0; i < 20; i++) {
            dnnl_graph_allocator_t a = nullptr;
            dnnl_engine_t engine = nullptr;
            const bool made =
                dnnl_graph_allocator_create(
                    &a, [](size_t n, size_t align) { return aligned_alloc(align, (n + align - 1) / align * align); },
                    [](void *p) { free(p); }) == dnnl_success &&
                dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, a) == dnnl_success;
            dnnl_graph_allocator_destroy(a);
            const Lt lt = MakeLt(1, dnnl_f32, {64});
            dnnl_graph_tensor_t t = nullptr;
            const bool ok = made && dnnl_graph_tensor_create(&t, &lt, engine, DNNL_MEMORY_ALLOCATE) == dnnl_success;
            dnnl_graph_tensor_destroy(t);
            dnnl_engine_destroy(engine);
            n_wrong += !ok;
        }
    });
    EXPECT_EQ(0, n_wrong);
}

} // namespace
} // namespace qdq_test
