// What a process sees of memory and threads over many compilations. The suites' names put the threaded ones among the
// concurrency tests; every test runs in a process of its own.
#include "fusion/field.h"
#include "kernels/isa/isa.h"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <omp.h>
#include <thread>

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

#if defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

// MiB of a line of /proc/self/status; 0 where there is no such file.
double Status(const char *line) {
    std::ifstream status("/proc/self/status");
    std::string word;
    double kib = 0;
    while (status >> word)
        if (word == line) status >> kib;
    return kib / 1024;
}

struct Session {
    qdq_session *object = nullptr;
    ~Session() { qdq_session_destroy(&object); }
    bool Make(const qdq_graph *graph, qdq_engine *engine) {
        qdq_error err = {};
        if (qdq_session_create(graph, engine, nullptr, &object, &err) == QDQ_OK) return true;
        ADD_FAILURE() << err.text;
        return false;
    }
};

class FieldMemory : public Field {
  protected:
    Id Product(int64_t m, int64_t k, int64_t n, int64_t seed) {
        const Id x = U8({m, k}, Ramp(m * k, 0, 255, 37 + seed));
        const Id w = W(kS8, {k, n}, Ramp(k * n, -128, 127, 53 + seed));
        return Q(Op("MatMul", {Dq(x, {0.01f}, {7}), Dq(w, {0.02f})}), kS8, {0.3f});
    }
    // `n` sessions of different shapes, one after the other.
    void CompileShapes(int64_t first, int64_t n) {
        for (int64_t i = first; i < first + n; i++) {
            Clear();
            const Id y = Product(1 + i % 13, 3 + i / 13 % 29, 1 + i / 377, i);
            std::string error;
            GraphPtr graph(net.Graph({y}, &error));
            Session s;
            ASSERT_TRUE(s.Make(graph.get(), engine)) << error;
        }
    }
};

TEST_F(FieldMemory, ManyShapesDoNotAddUp) { // M6
    if (HAS_SANITIZER) GTEST_SKIP() << "a sanitizer keeps what is freed";
    if (Status("VmRSS:") == 0) GTEST_SKIP() << "no /proc";
    qdq_engine_options options = {};
    options.struct_bytes = sizeof options;
    options.const_cache_bytes = 64 << 10;
    qdq_engine_destroy(&engine);
    ASSERT_EQ(qdq_engine_create(&options, &engine, nullptr), QDQ_OK);
    CompileShapes(0, 2500); // beyond the thousand primitives that oneDNN itself keeps
    const double before = Status("VmRSS:");
    CompileShapes(2500, 2500);
    EXPECT_LT(Status("VmRSS:") - before, 24.0) << "MiB, after " << before;
    qdq_cache_stats stats = {};
    ASSERT_EQ(qdq_engine_cache_stats(engine, &stats, nullptr), QDQ_OK);
    EXPECT_LE(stats.bytes, options.const_cache_bytes);
    EXPECT_GT(stats.evictions, 1000u);
    EXPECT_GT(stats.misses, 4000u);
}

TEST_F(FieldMemory, WeightsStayOneByteEach) { // M8: nothing folds them into floats
    if (HAS_SANITIZER) GTEST_SKIP() << "a sanitizer keeps what is freed";
    if (!qk_isa_has(QK_ISA_avxvnni) && !qk_isa_has(QK_ISA_avx512vnni))
        GTEST_SKIP() << "pairs of 16 bits are multiplied: the packed weights are such";
    std::ofstream("/proc/self/clear_refs") << "5"; // the peak starts here, where the system lets us
    const int64_t k = 8192, n = 4096;              // 32 MiB
    qdq_error err = {};
    qdq_graph *raw = nullptr;
    ASSERT_EQ(qdq_graph_create(&raw, &err), QDQ_OK);
    GraphPtr graph(raw);
    const std::vector<int8_t> weights(static_cast<size_t>(k * n), 3);
    const auto desc = [](uint64_t id, qdq_dtype dtype, const Dims &dims) { return DenseDesc(id, dtype, dims); };
    const struct {
        uint64_t id;
        const char *kind;
        std::vector<qdq_tensor_desc> in;
        qdq_tensor_desc out;
    } ops[] = {
        {1, "Dequantize", {desc(1, kU8, {1, k})}, desc(2, QDQ_DTYPE_F32, {1, k})},
        {2, "Dequantize", {desc(3, kS8, {k, n})}, desc(4, QDQ_DTYPE_F32, {k, n})},
        {3, "MatMul", {desc(2, QDQ_DTYPE_F32, {1, k}), desc(4, QDQ_DTYPE_F32, {k, n})}, desc(5, QDQ_DTYPE_F32, {1, n})},
        {4, "Quantize", {desc(5, QDQ_DTYPE_F32, {1, n})}, desc(6, kU8, {1, n})}};
    for (const auto &o : ops) {
        qdq_op *op = nullptr;
        ASSERT_EQ(qdq_op_create(o.id, o.kind, o.kind, &op, &err), QDQ_OK);
        for (const qdq_tensor_desc &in : o.in)
            ASSERT_EQ(qdq_op_add_input(op, &in, &err), QDQ_OK);
        ASSERT_EQ(qdq_op_add_output(op, &o.out, &err), QDQ_OK);
        const float scale = 0.01f;
        const int64_t zp = 0;
        if (o.id != 3) {
            ASSERT_EQ(qdq_op_set_attr_f32s(op, "scales", &scale, 1, &err), QDQ_OK) << err.text;
            ASSERT_EQ(qdq_op_set_attr_s64s(op, "zps", &zp, 1, &err), QDQ_OK) << err.text;
        }
        ASSERT_EQ(qdq_graph_add_op(raw, op, &err), QDQ_OK) << err.text;
        qdq_op_destroy(&op);
    }
    ASSERT_EQ(qdq_graph_set_constant(raw, &ops[1].in[0], weights.data(), weights.size(), QDQ_DATA_BORROW, &err), QDQ_OK)
        << err.text;
    ASSERT_EQ(qdq_graph_finalize(raw, &err), QDQ_OK) << err.text;
    const double before = Status("VmRSS:");
    Session s;
    ASSERT_TRUE(s.Make(raw, engine));
    qdq_cache_stats stats = {};
    ASSERT_EQ(qdq_engine_cache_stats(engine, &stats, nullptr), QDQ_OK);
    EXPECT_LT(static_cast<double>(stats.bytes), 1.05 * static_cast<double>(k * n));
    EXPECT_LT(Status("VmRSS:") - before, 1.3 * 32) << "MiB kept";
    if (Status("VmHWM:") - before < 200) { // the peak could be reset
        EXPECT_LT(Status("VmHWM:") - before, 1.3 * 32) << "MiB at the peak";
    }
    std::vector<uint8_t> x(static_cast<size_t>(k), 1), y(static_cast<size_t>(n));
    const void *in[] = {x.data()};
    void *out[] = {y.data()};
    ASSERT_EQ(qdq_session_run(s.object, in, 1, out, 1, &err), QDQ_OK) << err.text;
    EXPECT_EQ(y[0], 246); // 8192 * 3 * 1e-4 / 0.01
}

TEST_F(FieldMemory, ThreadsOfTheCallerDoNotSizeAnything) { // M7: made under one team, run under another
    const Id x = U8({2, 3, 20, 20}, Ramp(2400, 0, 255));
    const Id w = Dq(W(kS8, {33, 3, 3, 3}, Ramp(891, -128, 127)), {0.01f});
    const Id c = Op("Convolution", {Dq(x, {0.1f}, {7}), w}, ConvAttrs({1, 1}, {1, 1}, {1, 1}));
    const Id y = Q(Op("Softsign", {Op("GELU", {c})}), kU8, {0.004f});
    const int was = omp_get_max_threads();
    for (const auto &[made, run] : {std::pair<int, int>{1, 16}, {16, 1}, {3, 5}}) {
        for (const bool engine_follows : {false, true}) {
            omp_set_num_threads(made);
            qdq_engine_options options = {};
            options.struct_bytes = sizeof options;
            options.n_threads = engine_follows ? 0 : made;
            qdq_engine *own = nullptr;
            ASSERT_EQ(qdq_engine_create(&options, &own, nullptr), QDQ_OK);
            std::string error;
            GraphPtr graph(net.Graph({y}, &error));
            Session s;
            ASSERT_TRUE(s.Make(graph.get(), own)) << error;
            omp_set_num_threads(run);
            Bytes out(net.At(y).data.size() + 64, 0xa5);
            const void *in[] = {net.At(x).data.data()};
            void *outs[] = {out.data()};
            ASSERT_EQ(qdq_session_run(s.object, in, 1, outs, 1, nullptr), QDQ_OK);
            Outcome outcome;
            EXPECT_EQ(Compare(net, y, out.data(), &outcome), "") << made << " then " << run;
            EXPECT_EQ(out.back(), 0xa5);
            EXPECT_EQ(omp_get_max_threads(), run) << "the caller's setting";
            qdq_engine_destroy(&own);
        }
    }
    omp_set_num_threads(was);
}

// Without the fixture's engine: the first call of the process may be anybody's.
class ConcurrencyField : public Field {
  protected:
    void SetUp() override {}
};

TEST_F(ConcurrencyField, TheFirstUseIsManyThreads) { // M2, M3, M9
    const Id x = U8({5, 33}, Ramp(165, 0, 255));
    const Id m = Op("MatMul", {Dq(x, {0.1f}, {7}), Dq(W(kS8, {33, 17}, Ramp(561, -128, 127)), {0.02f}, {3})});
    const Id y = Q(Op("GELU", {m}), kU8, {0.3f}, {9});
    std::string error;
    GraphPtr graph(net.Graph({y}, &error)); // ops and their tables only: no engine, no primitive yet
    ASSERT_TRUE(graph) << error;
    enum { kThreads = 8 };
    std::vector<Bytes> results(kThreads, Bytes(net.At(y).data.size()));
    std::atomic<int> n_ready{0}, n_failed{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            n_ready++;
            while (n_ready < kThreads)
                std::this_thread::yield();
            qdq_engine *own = nullptr;
            bool ok = qdq_engine_create(nullptr, &own, nullptr) == QDQ_OK;
            Session s;
            ok = ok && s.Make(graph.get(), own);
            const void *in[] = {net.At(x).data.data()};
            void *out[] = {results[t].data()};
            for (int run = 0; run < 20 && ok;
                 run++) // one shape on all of them: whatever a kernel sets up is per thread
                ok = qdq_session_run(s.object, in, 1, out, 1, nullptr) == QDQ_OK;
            n_failed += !ok;
            qdq_engine_destroy(&own);
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(n_failed.load(), 0);
    for (const Bytes &r : results)
        EXPECT_EQ(r, results[0]);
    Outcome outcome;
    EXPECT_EQ(Compare(net, y, results[0].data(), &outcome), "");
}

TEST_F(ConcurrencyField, FirstRunsPackNothing) { // M9: weights are packed by compile
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, nullptr), QDQ_OK);
    const Id x = U8({1, 8, 9, 9}, Ramp(648, 0, 255));
    const Id w = Dq(W(kS8, {16, 8, 3, 3}, Ramp(1152, -128, 127)), {0.01f});
    const Id y = Q(Op("Convolution", {Dq(x, {0.1f}, {7}), w}, ConvAttrs({1, 1}, {1, 1}, {1, 1})), kS8, {0.9f});
    std::string error;
    GraphPtr graph(net.Graph({y}, &error));
    Session s;
    ASSERT_TRUE(s.Make(graph.get(), engine)) << error;
    qdq_cache_stats before = {}, after = {};
    ASSERT_EQ(qdq_engine_cache_stats(engine, &before, nullptr), QDQ_OK);
    std::atomic<int> n_wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&] {
            Bytes out(net.At(y).data.size());
            const void *in[] = {net.At(x).data.data()};
            void *outs[] = {out.data()};
            Outcome outcome;
            if (qdq_session_run(s.object, in, 1, outs, 1, nullptr) != QDQ_OK ||
                !Compare(net, y, out.data(), &outcome).empty())
                n_wrong++;
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(n_wrong.load(), 0);
    ASSERT_EQ(qdq_engine_cache_stats(engine, &after, nullptr), QDQ_OK);
    EXPECT_EQ(before.misses, after.misses);
    EXPECT_EQ(before.hits, after.hits);
    EXPECT_EQ(before.bytes, after.bytes);
}

TEST_F(ConcurrencyField, MixedSizesOnTheHostsThreads) { // M10: one pool, the caller's; and never more than it was told
    struct Pool {
        std::atomic<int> n_running{0}, most{0}, n_calls{0};
        static void For(int n, void (*body)(int, void *), void *arg, void *user) {
            Pool *pool = static_cast<Pool *>(user);
            pool->n_calls++;
            std::vector<std::thread> threads;
            for (int i = 1; i < n; i++)
                threads.emplace_back([=] { pool->Run(i, body, arg); });
            pool->Run(0, body, arg);
            for (std::thread &thread : threads)
                thread.join();
        }
        void Run(int i, void (*body)(int, void *), void *arg) {
            const int now = ++n_running;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            body(i, arg);
            n_running--;
        }
    } pool;
    qdq_engine_options options = {};
    options.struct_bytes = sizeof options;
    options.n_threads = 3;
    options.parallel_for = &Pool::For;
    options.user = &pool;
    ASSERT_EQ(qdq_engine_create(&options, &engine, nullptr), QDQ_OK);
    for (const int64_t n : {1, 100, 5000, 300000}) {
        Clear();
        const Id x = S8({n}, Ramp(n, -128, 127));
        const Outcome o = RunFused(net, {Q(Op("Celu", {Dq(x, {0.1f}, {3})}), kU8, {0.05f})}, engine, false);
        EXPECT_EQ(o.failure, "");
        Clear();
        const Id y = S8({n / 50 + 1, 64}, Ramp((n / 50 + 1) * 64, -128, 127));
        const Id m = Op("MatMul", {Dq(y, {0.1f}), Dq(W(kS8, {64, 16}, Ramp(1024, -128, 127, 53)), {0.01f})});
        EXPECT_EQ(RunFused(net, {Q(m, kU8, {0.5f}, {128})}, engine, false).failure, "");
    }
    EXPECT_LE(pool.most.load(), 3);
    EXPECT_GT(pool.n_calls.load(), 0);
}

} // namespace
} // namespace qdq_test
