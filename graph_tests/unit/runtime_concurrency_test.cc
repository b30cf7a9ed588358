// Many threads on one plan, one cache, one engine. Selected for the thread sanitizer by the suite's name.
#include "base/alloc.h"
#include "onednn_run.h"

#include <atomic>
#include <thread>
#include <algorithm>
#include <functional>

using namespace onednn_run;

namespace {

enum { N_THREADS = 8, N_RUNS = 200 };

void in_threads(const std::function<void(int)> &body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < N_THREADS; t++)
        threads.emplace_back(body, t);
    for (auto &t : threads)
        t.join();
}

qdq_engine *make_engine(size_t cache_bytes = 0) {
    qdq_engine_options o = {};
    o.struct_bytes = sizeof o;
    o.n_threads = 1;
    o.const_cache_bytes = cache_bytes;
    qdq_engine *engine = nullptr;
    EXPECT_EQ(qdqi_engine_create(&o, &engine, nullptr), QDQ_OK);
    return engine;
}

// dst = bytes of src, each + 1, through a state that would show two users at once
struct Marked {
    size_t n;
};
qdq_status marked_state(const void *, const qdq_engine *, void **out, qdq_error *) {
    *out = qdqi_calloc(1, sizeof(int));
    return *out == nullptr ? QDQ_E_NO_MEMORY : QDQ_OK;
}
void marked_state_destroy(void *state, const qdq_engine *) {
    qdqi_free(state);
}
qdq_status marked_run(const void *impl, void *state, void *const *bufs, const qdq_engine *, qdq_error *err) {
    int *users = (int *)state; // not atomic on purpose
    if (++*users != 1) return qdqi_fail(err, QDQ_E_INTERNAL, "two executions share a state");
    for (size_t i = 0; i < ((const Marked *)impl)->n; i++)
        ((uint8_t *)bufs[1])[i] = (uint8_t)(((const uint8_t *)bufs[0])[i] + 1);
    --*users;
    return QDQ_OK;
}
const qdqi_step_ops marked_ops = {"test", marked_state, marked_state_destroy, marked_run, nullptr};

TEST(ConcurrencyPlan, ThreadsShareOnePlanButNoContext) {
    const size_t n = 256;
    static Marked marked = {n};
    qdq_engine *engine = make_engine();
    qdqi_plan *plan = nullptr;
    ASSERT_EQ(qdqi_plan_create(engine, &plan, nullptr), QDQ_OK);
    qdqi_engine_release(engine);
    qdqi_buf chain[6] = {};
    ASSERT_EQ(qdqi_plan_input(plan, 0, n, &chain[0], nullptr), QDQ_OK);
    for (int i = 1; i < 5; i++)
        ASSERT_EQ(qdqi_plan_temp(plan, n, &chain[i], nullptr), QDQ_OK);
    ASSERT_EQ(qdqi_plan_output(plan, 0, n, &chain[5], nullptr), QDQ_OK);
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(qdqi_plan_step(plan, &marked_ops, &marked, &chain[i], 2, 0, "marked", nullptr), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(plan, nullptr), QDQ_OK);
    std::atomic<int> wrong{0};
    in_threads([&](int t) {
        std::vector<uint8_t> in(n), out(n);
        for (int run = 0; run < N_RUNS; run++) {
            for (size_t i = 0; i < n; i++)
                in[i] = (uint8_t)(i + (size_t)(t * 31 + run));
            const void *inputs[] = {in.data()};
            void *outputs[] = {out.data()};
            qdq_error err = {};
            if (qdqi_plan_execute(plan, inputs, outputs, nullptr, &err) != QDQ_OK) wrong++;
            for (size_t i = 0; i < n; i++)
                if (out[i] != (uint8_t)(in[i] + 5)) wrong++;
        }
    });
    EXPECT_EQ(wrong, 0);
    const uint64_t before = qdqi_alloc_count();
    std::vector<uint8_t> in(n), out(n);
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    ASSERT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, nullptr), QDQ_OK);
    EXPECT_EQ(qdqi_alloc_count(), before);
    qdqi_plan_destroy(&plan);
}

TEST(ConcurrencyConstCache, ThreadsSeeOneEntryPerContent) {
    qdq_engine *engine = make_engine(4 * 512); // half of the entries fit: evictions run all the time
    std::atomic<int> wrong{0};
    in_threads([&](int t) {
        for (int run = 0; run < N_RUNS; run++) {
            const uint64_t content = (uint64_t)((t + run) % 8);
            const auto pack = [](void *dst, size_t n, void *arg, qdq_error *) {
                memset(dst, (int)*(const uint64_t *)arg, n);
                return QDQ_OK;
            };
            qdqi_const c = {};
            if (qdqi_const_get(engine, &content, sizeof content, "r", 1, 512, pack, (void *)&content, &c, nullptr) !=
                QDQ_OK) {
                wrong++;
                continue;
            }
            for (size_t i = 0; i < c.bytes; i++)
                if (((const uint8_t *)c.data)[i] != content) wrong++;
            qdqi_const_release(engine, &c);
        }
    });
    EXPECT_EQ(wrong, 0);
    qdq_cache_stats stats = {};
    qdqi_const_stats(engine, &stats);
    EXPECT_EQ(stats.hits + stats.misses, (uint64_t)N_THREADS * N_RUNS);
    EXPECT_LE(stats.bytes, 4u * 512);
    qdqi_engine_release(engine);
}

// u8 x s8 -> u8 matmul with packed weights, then relu and a dequantizing reorder: several oneDNN steps with temps.
TEST(ConcurrencyOnednn, ThreadsGetIdenticalBytes) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    const int64_t m = 16, k = 64, n = 48;
    Tensor src(QDQ_DTYPE_U8, {m, k}), weights(QDQ_DTYPE_S8, {k, n}), mid(QDQ_DTYPE_S8, {m, n}),
        dst(QDQ_DTYPE_F32, {m, n});
    src.fill(random, 0, 100);
    weights.fill(random, -60, 60);
    const float scales[2] = {0.01f, 30.0f};
    qdq_error err = {};
    qdqi_dnnl_attr attr = {}, reorder_attr = {};
    attr.src.has_scale = attr.dst.has_scale = true;
    reorder_attr.src.has_scale = true;
    qdqi_dnnl_prim *matmul = nullptr, *relu = nullptr, *reorder = nullptr;
    const qdqi_dnnl_md wmd = any_of(weights.md);
    ASSERT_EQ(kOneDnn.Make(MatMul(&src.md, &wmd, nullptr, &mid.md, &attr), &matmul, &err), QDQ_OK) << err.text;
    ASSERT_EQ(kOneDnn.Make(Eltwise(QDQI_DNNL_ELT_RELU, 0, 0, &mid.md, &mid.md), &relu, &err), QDQ_OK) << err.text;
    ASSERT_EQ(kOneDnn.Make(Reorder(&mid.md, &dst.md, &reorder_attr), &reorder, &err), QDQ_OK) << err.text;

    qdq_engine *engine = make_engine();
    qdqi_plan *plan = nullptr;
    ASSERT_EQ(qdqi_plan_create(engine, &plan, &err), QDQ_OK);
    struct Arg {
        qdqi_dnnl_prim *prim;
        const Tensor *weights;
    } pack_arg = {matmul, &weights};
    size_t key_bytes = 0;
    const void *key = qdqi_dnnl_prim_arg_key(matmul, QDQI_DNNL_WEIGHTS, &key_bytes);
    const auto pack = [](void *to, size_t, void *arg, qdq_error *e) {
        const Arg *a = (const Arg *)arg;
        return qdqi_dnnl_pack(a->prim, QDQI_DNNL_WEIGHTS, &a->weights->md, a->weights->data.data(), to, e);
    };
    qdqi_const packed = {};
    ASSERT_EQ(qdqi_const_get(engine, weights.data.data(), weights.data.size(), key, key_bytes,
                             qdqi_dnnl_prim_arg_bytes(matmul, QDQI_DNNL_WEIGHTS), pack, &pack_arg, &packed, &err),
              QDQ_OK)
        << err.text;
    qdqi_buf x, w, s, t0, t1, y;
    ASSERT_EQ(qdqi_plan_input(plan, 0, src.data.size(), &x, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_input(plan, 1, sizeof scales, &s, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_const(plan, packed, &w, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_temp(plan, mid.data.size(), &t0, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_temp(plan, mid.data.size(), &t1, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_output(plan, 0, dst.data.size(), &y, &err), QDQ_OK);
    const auto append = [&](qdqi_dnnl_prim *prim, qdqi_buf from, qdqi_buf to) {
        std::vector<qdqi_buf> bufs;
        for (uint32_t i = 0; i < qdqi_dnnl_prim_n_args(prim); i++) {
            const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
            qdqi_buf b = arg == QDQI_DNNL_SRC ? from : arg == QDQI_DNNL_DST ? to : w;
            qdq_status st = QDQ_OK;
            if (arg == QDQI_DNNL_SCRATCH) st = qdqi_plan_temp(plan, qdqi_dnnl_prim_arg_bytes(prim, arg), &b, &err);
            if (arg == QDQI_DNNL_SCALE_SRC) st = qdqi_plan_view(plan, s, 0, 4, &b, &err);
            if (arg == QDQI_DNNL_SCALE_DST) st = qdqi_plan_view(plan, s, 4, 4, &b, &err);
            EXPECT_EQ(st, QDQ_OK) << err.text;
            bufs.push_back(b);
        }
        return qdqi_dnnl_step(plan, prim, bufs.data(), (uint32_t)bufs.size(), 0, &err);
    };
    ASSERT_EQ(append(matmul, x, t0), QDQ_OK) << err.text;
    ASSERT_EQ(append(relu, t0, t1), QDQ_OK) << err.text;
    ASSERT_EQ(append(reorder, t1, y), QDQ_OK) << err.text;
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK) << err.text;

    const auto run = [&](std::vector<uint8_t> *out) {
        const void *inputs[] = {src.data.data(), scales};
        void *outputs[] = {out->data()};
        qdq_error e = {};
        return qdqi_plan_execute(plan, inputs, outputs, nullptr, &e);
    };
    ASSERT_EQ(run(&dst.data), QDQ_OK);
    const uint64_t before = qdqi_alloc_count();
    ASSERT_EQ(run(&dst.data), QDQ_OK);
    EXPECT_EQ(qdqi_alloc_count(), before) << "the second execution allocates nothing";
    int n_positive = 0;
    for (int64_t i = 0; i < dst.n; i++)
        n_positive += dst.flat(i) > 0;
    EXPECT_GT(n_positive, dst.n / 8);
    std::atomic<int> wrong{0};
    in_threads([&](int) {
        std::vector<uint8_t> out(dst.data.size());
        for (int i = 0; i < N_RUNS; i++) {
            std::fill(out.begin(), out.end(), (uint8_t)0xee);
            if (run(&out) != QDQ_OK || out != dst.data) wrong++;
        }
    });
    EXPECT_EQ(wrong, 0);
    qdqi_plan_destroy(&plan);
    qdqi_engine_release(engine);
}

} // namespace
