// The engine: options, callbacks, threads, the cache of packed constants.
#include "base/alloc.h"
#include "runtime/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

qdq_engine_options options_of(int n_threads, size_t cache_bytes = 0) {
    qdq_engine_options o = {};
    o.struct_bytes = sizeof o;
    o.n_threads = n_threads;
    o.const_cache_bytes = cache_bytes;
    return o;
}

TEST(RuntimeEngine, FillsDefaultsAndRefusesBadOptions) {
    qdq_error err = {};
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdqi_engine_create(nullptr, &engine, &err), QDQ_OK);
    EXPECT_GE(engine->options.n_threads, 1);
    EXPECT_NE(engine->options.malloc_fn, nullptr);
    EXPECT_NE(engine->options.free_fn, nullptr);
    EXPECT_GT(engine->options.const_cache_bytes, 0u);
    for (size_t bytes : {(size_t)0, (size_t)1, (size_t)1000}) {
        void *p = qdqi_engine_malloc(engine, bytes);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ((uintptr_t)p % 64, 0u);
        memset(p, 1, bytes);
        qdqi_engine_free(engine, p);
    }
    EXPECT_EQ(qdqi_engine_malloc(engine, SIZE_MAX), nullptr);
    qdqi_engine_retain(engine);
    qdqi_engine_release(engine);
    qdqi_engine_release(engine);
    qdqi_engine_release(nullptr);

    qdq_engine_options o = options_of(-1);
    EXPECT_EQ(qdqi_engine_create(&o, &engine, &err), QDQ_E_BAD_ARG);
    o = options_of(1);
    o.malloc_fn = [](size_t, size_t, void *) -> void * { return nullptr; };
    EXPECT_EQ(qdqi_engine_create(&o, &engine, &err), QDQ_E_BAD_ARG);
    o = options_of(1);
    o.struct_bytes = 0;
    EXPECT_EQ(qdqi_engine_create(&o, &engine, &err), QDQ_E_BAD_ARG);
    EXPECT_EQ(qdqi_engine_create(nullptr, nullptr, &err), QDQ_E_NULL_ARG);
}

TEST(RuntimeEngine, ShorterOptionsOfAnOlderCallerKeepDefaults) {
    qdq_engine_options o = options_of(3, 12345);
    o.struct_bytes = offsetof(qdq_engine_options, const_cache_bytes);
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    EXPECT_EQ(engine->options.n_threads, 3);
    EXPECT_EQ(engine->options.const_cache_bytes, (size_t)1 << 30);
    qdqi_engine_release(engine);
}

TEST(RuntimeEngine, UsesTheHostsAllocator) {
    struct Counts {
        int mallocs, frees;
    } counts = {0, 0};
    qdq_engine_options o = options_of(1);
    o.user = &counts;
    o.malloc_fn = [](size_t bytes, size_t alignment, void *user) {
        ((Counts *)user)->mallocs++;
        return aligned_alloc(alignment, bytes);
    };
    o.free_fn = [](void *p, void *user) {
        ((Counts *)user)->frees++;
        free(p);
    };
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    qdqi_const c = {};
    const auto pack = [](void *dst, size_t n, void *, qdq_error *) {
        memset(dst, 0, n);
        return QDQ_OK;
    };
    ASSERT_EQ(qdqi_const_get(engine, "abc", 3, "r", 1, 100, pack, nullptr, &c, nullptr), QDQ_OK);
    EXPECT_EQ(counts.mallocs, 1);
    qdqi_const_release(engine, &c);
    qdqi_engine_release(engine);
    EXPECT_EQ(counts.frees, 1);
}

TEST(RuntimeParallel, CoversEveryIndexOnceAndRunsNestedInline) {
    for (int n_threads : {1, 2, 4}) {
        qdq_engine_options o = options_of(n_threads);
        qdq_engine *engine = nullptr;
        ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
        struct Work {
            qdq_engine *engine;
            std::atomic<int> hits[100];
            std::atomic<int> nested{0};
        } work;
        work.engine = engine;
        for (auto &h : work.hits)
            h = 0;
        const auto body = [](int i, void *arg) {
            Work *w = (Work *)arg;
            w->hits[i]++;
            qdqi_parallel(
                w->engine, 3, [](int, void *a) { (*(std::atomic<int> *)a)++; }, &w->nested);
        };
        for (int n : {0, 1, 100}) {
            for (auto &h : work.hits)
                h = 0;
            work.nested = 0;
            qdqi_parallel(engine, n, body, &work);
            for (int i = 0; i < 100; i++)
                EXPECT_EQ(work.hits[i], i < n ? 1 : 0);
            EXPECT_EQ(work.nested, 3 * n);
        }
        qdqi_engine_release(engine);
    }
}

TEST(RuntimeParallel, UsesTheHostsPoolButNotInsideOfIt) {
    struct Host {
        int calls;
        qdq_engine *engine;
        std::vector<int> order;
    } host = {};
    qdq_engine_options o = options_of(4);
    o.user = &host;
    o.parallel_for = [](int n, void (*body)(int, void *), void *arg, void *user) {
        ((Host *)user)->calls++;
        for (int i = n - 1; i >= 0; i--)
            body(i, arg);
    };
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    host.engine = engine;
    const auto body = [](int i, void *arg) {
        Host *h = (Host *)arg;
        h->order.push_back(i);
        qdqi_parallel(
            h->engine, 2, [](int, void *) {}, nullptr);
    };
    qdqi_parallel(engine, 3, body, &host);
    EXPECT_EQ(host.order, (std::vector<int>{2, 1, 0}));
    EXPECT_EQ(host.calls, 1);
    qdqi_parallel(engine, 1, body, &host);
    EXPECT_EQ(host.calls, 2) << "a single index is no region: what it starts may use the pool";
    qdqi_engine_release(engine);
}

TEST(RuntimeParallel, ThreadsForKeepsTheGrain) {
    qdq_engine_options o = options_of(4);
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    EXPECT_EQ(qdqi_threads_for(engine, 0, 100), 1);
    EXPECT_EQ(qdqi_threads_for(engine, 199, 100), 1);
    EXPECT_EQ(qdqi_threads_for(engine, 200, 100), 2);
    EXPECT_EQ(qdqi_threads_for(engine, INT64_MAX, 1), 4);
    EXPECT_EQ(qdqi_threads_for(engine, 10, 0), 4);
    qdqi_engine_release(engine);
}

class RuntimeConstCache : public testing::Test {
  protected:
    void open(size_t bound) {
        const qdq_engine_options o = options_of(1, bound);
        ASSERT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    }
    void TearDown() override { qdqi_engine_release(engine); }
    qdqi_const get(const std::string &content, const std::string &recipe, size_t packed_bytes) {
        qdqi_const c = {};
        const auto pack = [](void *dst, size_t n, void *arg, qdq_error *) {
            memset(dst, (*(int *)arg)++, n);
            return QDQ_OK;
        };
        EXPECT_EQ(qdqi_const_get(engine, content.data(), content.size(), recipe.data(), recipe.size(), packed_bytes,
                                 pack, &n_packed, &c, nullptr),
                  QDQ_OK);
        return c;
    }
    qdq_cache_stats stats() {
        qdq_cache_stats s = {};
        qdqi_const_stats(engine, &s);
        return s;
    }
    qdq_engine *engine = nullptr;
    int n_packed = 0;
};

TEST_F(RuntimeConstCache, KeyIsContentAndRecipeNeverTheAddress) {
    open(0);
    std::string content(1000, 'a'), same = content;
    qdqi_const a = get(content, "r", 64), b = get(same, "r", 64);
    EXPECT_EQ(a.data, b.data);
    content[999] = 'b'; // the same address, changed in place
    qdqi_const c = get(content, "r", 64), d = get(same, "q", 64), e = get(same, "r", 128), f = get(same, "", 64);
    std::set<void *> distinct = {a.data, c.data, d.data, e.data, f.data};
    EXPECT_EQ(distinct.size(), 5u);
    EXPECT_EQ(n_packed, 5);
    EXPECT_EQ(stats().hits, 1u);
    EXPECT_EQ(stats().misses, 5u);
    EXPECT_EQ(stats().bytes, 64u * 4 + 128);
    for (qdqi_const *x : {&a, &b, &c, &d, &e, &f})
        qdqi_const_release(engine, x);
    EXPECT_EQ(a.entry, nullptr);
    qdqi_const_release(engine, &a);
    EXPECT_EQ(stats().bytes, 64u * 4 + 128) << "idle entries stay";
}

TEST_F(RuntimeConstCache, BoundPushesOutTheLeastRecentlyUsedIdleEntries) {
    open(300);
    qdqi_const held = get("held", "r", 100), x = get("x", "r", 100), y = get("y", "r", 100);
    qdqi_const_release(engine, &x);
    qdqi_const_release(engine, &y);
    EXPECT_EQ(stats().evictions, 0u);
    x = get("x", "r", 100); // now y is the oldest
    qdqi_const_release(engine, &x);
    qdqi_const z = get("z", "r", 100);
    EXPECT_EQ(stats().evictions, 1u);
    EXPECT_EQ(n_packed, 4);
    x = get("x", "r", 100);
    EXPECT_EQ(n_packed, 4) << "x stayed";
    y = get("y", "r", 100);
    EXPECT_EQ(n_packed, 5) << "y went";
    EXPECT_EQ(stats().bytes, 400u) << "referenced entries are above the bound rather than gone";
    for (qdqi_const *c : {&held, &x, &y, &z})
        qdqi_const_release(engine, c);
    EXPECT_EQ(stats().bytes, 300u);
}

TEST_F(RuntimeConstCache, FailedPackingLeavesNothing) {
    open(0);
    qdqi_const c = {};
    qdq_error err = {};
    const auto refuse = [](void *, size_t, void *, qdq_error *e) { return qdqi_fail(e, QDQ_E_ONEDNN, "no"); };
    EXPECT_EQ(qdqi_const_get(engine, "a", 1, "r", 1, 10, refuse, nullptr, &c, &err), QDQ_E_ONEDNN);
    EXPECT_STREQ(err.text, "no");
    EXPECT_EQ(stats().bytes, 0u);
    c = get("a", "r", 10);
    EXPECT_EQ(n_packed, 1);
    qdqi_const_release(engine, &c);
    c = get("", "", 0); // an empty tensor
    EXPECT_NE(c.data, nullptr);
    qdqi_const_release(engine, &c);
}

} // namespace
