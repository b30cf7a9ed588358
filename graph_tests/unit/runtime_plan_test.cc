// The plan: building, rollback, temps and views, the loop, errors, profiles, allocation failures.
#include "base/alloc.h"
#include "runtime/plan.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

// A step that computes bufs[2][i] = bufs[0][i] + bufs[1][i] * factor over n bytes, and counts its lives.
struct Adder {
    uint8_t factor;
    size_t n;
    int *n_alive;
    qdq_status result;
};

int states_alive = 0;

qdq_status adder_state(const void *, const qdq_engine *, void **state_out, qdq_error *err) {
    *state_out = qdqi_malloc(8);
    if (*state_out == nullptr) return QDQI_NO_MEMORY(err);
    states_alive++;
    return QDQ_OK;
}
void adder_state_destroy(void *state, const qdq_engine *) {
    states_alive--;
    qdqi_free(state);
}
qdq_status adder_run(const void *impl, void *state, void *const *bufs, const qdq_engine *, qdq_error *err) {
    const Adder *a = (const Adder *)impl;
    if (state == nullptr) return qdqi_fail(err, QDQ_E_INTERNAL, "no state");
    if (a->result != QDQ_OK) return qdqi_fail(err, a->result, "asked to fail");
    const uint8_t *x = (const uint8_t *)bufs[0], *y = (const uint8_t *)bufs[1];
    for (size_t i = 0; i < a->n; i++)
        ((uint8_t *)bufs[2])[i] = (uint8_t)(x[i] + (y == nullptr ? 1 : y[i]) * a->factor);
    return QDQ_OK;
}
void adder_destroy(void *impl) {
    Adder *a = (Adder *)impl;
    --*a->n_alive;
    delete a;
}
const qdqi_step_ops adder_ops = {"test", adder_state, adder_state_destroy, adder_run, adder_destroy};

class RuntimePlan : public testing::Test {
  protected:
    void SetUp() override {
        qdq_engine_options options = {};
        options.struct_bytes = sizeof options;
        options.n_threads = 1;
        ASSERT_EQ(qdqi_engine_create(&options, &engine, nullptr), QDQ_OK);
        ASSERT_EQ(qdqi_plan_create(engine, &plan, nullptr), QDQ_OK);
    }
    void TearDown() override {
        qdqi_plan_destroy(&plan);
        EXPECT_EQ(plan, nullptr);
        EXPECT_EQ(n_alive, 0);
        EXPECT_EQ(states_alive, 0);
        qdqi_engine_release(engine);
    }
    qdq_status add(qdqi_buf x, qdqi_buf y, qdqi_buf z, size_t n, uint8_t factor = 1, qdq_status result = QDQ_OK,
                   uint32_t part = 0) {
        n_alive++;
        const qdqi_buf bufs[] = {x, y, z};
        return qdqi_plan_step(plan, &adder_ops, new Adder{factor, n, &n_alive, result}, bufs, 3, part, "adder", &err);
    }
    qdqi_buf input(uint32_t port, size_t bytes) {
        qdqi_buf b = QDQI_NO_BUF;
        EXPECT_EQ(qdqi_plan_input(plan, port, bytes, &b, &err), QDQ_OK);
        return b;
    }
    qdqi_buf output(uint32_t port, size_t bytes) {
        qdqi_buf b = QDQI_NO_BUF;
        EXPECT_EQ(qdqi_plan_output(plan, port, bytes, &b, &err), QDQ_OK);
        return b;
    }
    qdqi_buf temp(size_t bytes) {
        qdqi_buf b = QDQI_NO_BUF;
        EXPECT_EQ(qdqi_plan_temp(plan, bytes, &b, &err), QDQ_OK);
        return b;
    }
    qdqi_buf view(qdqi_buf of, size_t offset, size_t bytes) {
        qdqi_buf b = QDQI_NO_BUF;
        EXPECT_EQ(qdqi_plan_view(plan, of, offset, bytes, &b, &err), QDQ_OK) << err.text;
        return b;
    }
    qdqi_buf constant(const std::vector<uint8_t> &bytes) {
        qdqi_const c = {};
        const auto copy = [](void *dst, size_t n, void *arg, qdq_error *) {
            memcpy(dst, arg, n);
            return QDQ_OK;
        };
        EXPECT_EQ(qdqi_const_get(engine, bytes.data(), bytes.size(), "copy", 4, bytes.size(), copy,
                                 (void *)bytes.data(), &c, &err),
                  QDQ_OK);
        qdqi_buf b = QDQI_NO_BUF;
        EXPECT_EQ(qdqi_plan_const(plan, c, &b, &err), QDQ_OK);
        return b;
    }

    qdq_engine *engine = nullptr;
    qdqi_plan *plan = nullptr;
    qdq_error err = {};
    int n_alive = 0;
};

TEST_F(RuntimePlan, RunsStepsOverTempsConstantsAndViewsOfViews) {
    const size_t n = 200;
    std::vector<uint8_t> seven(n, 7), in(n), out(n, 0xee);
    for (size_t i = 0; i < n; i++)
        in[i] = (uint8_t)i;
    const qdqi_buf x = input(0, n), y = output(0, n), c = constant(seven), t = temp(n), u = temp(n), w = temp(n);
    ASSERT_EQ(add(x, c, t, n), QDQ_OK);                                 // t = x + 7
    ASSERT_EQ(add(t, t, u, n, 2), QDQ_OK);                              // u = 3t
    const qdqi_buf back = view(u, 100, 100), tail = view(back, 50, 50); // u[150..199]
    ASSERT_EQ(add(c, c, w, n), QDQ_OK); // w = 14: must not land on u, whose view is still read
    ASSERT_EQ(add(tail, QDQI_NO_BUF, view(y, 0, 50), 50), QDQ_OK); // y[0..49] = tail + 1
    ASSERT_EQ(add(view(x, 50, 150), view(w, 0, 150), view(y, 50, 150), 150), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK);
    EXPECT_EQ(qdqi_plan_n_steps(plan), 5u);
    EXPECT_STREQ(qdqi_plan_step_note(plan, 1), "adder");
    EXPECT_STREQ(qdqi_plan_step_provider(plan, 1), "test");
    EXPECT_EQ(qdqi_plan_arena_bytes(plan), 2 * 256u) << "w may use the place of t";
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    ASSERT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_OK) << err.text;
    for (size_t i = 0; i < 50; i++)
        ASSERT_EQ(out[i], (uint8_t)(3 * (in[150 + i] + 7) + 1)) << i;
    for (size_t i = 50; i < n; i++)
        ASSERT_EQ(out[i], (uint8_t)(in[i] + 14)) << i;

    // other buffers at the next execution, and nothing is allocated
    std::vector<uint8_t> in2(n, 3), out2(n);
    inputs[0] = in2.data();
    outputs[0] = out2.data();
    const uint64_t before = qdqi_alloc_count();
    ASSERT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_OK) << err.text;
    EXPECT_EQ(qdqi_alloc_count(), before);
    EXPECT_EQ(out2[0], 31);
    EXPECT_EQ(out2[n - 1], 17);
    EXPECT_EQ(states_alive, 5) << "one context";
}

TEST_F(RuntimePlan, RollbackUndoesWhatACandidateAdded) {
    const qdqi_buf x = input(0, 16), y = output(0, 16);
    ASSERT_EQ(add(x, x, y, 16), QDQ_OK);
    const qdqi_plan_mark mark = qdqi_plan_here(plan);
    const qdqi_buf t = temp(1 << 20);
    const qdqi_buf c = constant({1, 2, 3, 4});
    ASSERT_EQ(add(x, c, t, 4), QDQ_OK);
    ASSERT_EQ(add(t, c, y, 4), QDQ_OK);
    EXPECT_EQ(n_alive, 3);
    qdqi_plan_rollback(plan, mark);
    EXPECT_EQ(n_alive, 1);
    EXPECT_EQ(qdqi_plan_n_steps(plan), 1u);
    EXPECT_EQ(qdqi_plan_buf_bytes(plan, t), 0u);
    const qdqi_buf t2 = temp(16);
    EXPECT_EQ(t2, t);
    ASSERT_EQ(add(x, x, t2, 16), QDQ_OK);
    ASSERT_EQ(add(t2, x, y, 16), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK);
    EXPECT_EQ(qdqi_plan_arena_bytes(plan), 64u);
    std::vector<uint8_t> in(16, 5), out(16);
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    ASSERT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_OK);
    EXPECT_EQ(out, std::vector<uint8_t>(16, 15));
}

TEST_F(RuntimePlan, FailuresNameTheStepAndLeaveThePlanUsable) {
    const qdqi_buf x = input(0, 16), y = output(0, 16);
    ASSERT_EQ(add(x, x, y, 16), QDQ_OK);
    ASSERT_EQ(add(x, x, y, 16, 1, QDQ_E_ONEDNN), QDQ_OK);
    EXPECT_EQ(qdqi_plan_execute(plan, nullptr, nullptr, nullptr, &err), QDQ_E_BAD_STATE);
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK);
    EXPECT_EQ(qdqi_plan_finish(plan, &err), QDQ_E_BAD_STATE);
    qdqi_buf b = 0;
    EXPECT_EQ(qdqi_plan_temp(plan, 1, &b, &err), QDQ_E_BAD_STATE);
    EXPECT_EQ(add(x, x, y, 16), QDQ_E_BAD_STATE) << "the step must be destroyed";
    EXPECT_EQ(n_alive, 2);
    std::vector<uint8_t> in(16), out(16);
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_E_ONEDNN);
        EXPECT_STREQ(err.text, "step 1 (adder): asked to fail");
    }
    EXPECT_EQ(states_alive, 2) << "a failed run gives its context back";
    outputs[0] = nullptr;
    EXPECT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_E_NULL_ARG);
    EXPECT_STREQ(err.text, "output 0 is NULL, expected 16 bytes");
}

TEST_F(RuntimePlan, RefusesWhatDoesNotExistOrDoesNotFit) {
    const qdqi_buf x = input(0, 16);
    qdqi_buf b = 0;
    EXPECT_EQ(qdqi_plan_view(plan, x, 8, 9, &b, &err), QDQ_E_BAD_ARG);
    EXPECT_EQ(qdqi_plan_view(plan, x, SIZE_MAX, 2, &b, &err), QDQ_E_BAD_ARG);
    EXPECT_EQ(qdqi_plan_view(plan, 99, 0, 0, &b, &err), QDQ_E_BAD_ARG);
    EXPECT_EQ(qdqi_plan_view(plan, x, 16, 0, &b, &err), QDQ_OK) << "an empty view at the end";
    EXPECT_EQ(add(x, 77, x, 16), QDQ_E_BAD_ARG);
    EXPECT_EQ(n_alive, 0);
}

TEST_F(RuntimePlan, EmptyPlansAndEmptyBuffersRun) {
    const qdqi_buf x = input(0, 0), t = temp(0), y = output(0, 0);
    ASSERT_EQ(add(x, t, y, 0), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK);
    const void *inputs[] = {nullptr};
    void *outputs[] = {nullptr};
    EXPECT_EQ(qdqi_plan_execute(plan, inputs, outputs, nullptr, &err), QDQ_OK) << err.text;
    qdqi_plan *empty = nullptr;
    ASSERT_EQ(qdqi_plan_create(engine, &empty, &err), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(empty, &err), QDQ_OK);
    EXPECT_EQ(qdqi_plan_execute(empty, nullptr, nullptr, nullptr, &err), QDQ_OK);
    qdqi_plan_destroy(&empty);
}

TEST_F(RuntimePlan, ProfileCountsPerPartition) {
    const size_t n = 1 << 16;
    const qdqi_buf x = input(0, n), y = output(0, n);
    for (uint32_t part = 0; part < 3; part++)
        ASSERT_EQ(add(x, x, y, n, 1, QDQ_OK, part), QDQ_OK);
    ASSERT_EQ(qdqi_plan_finish(plan, &err), QDQ_OK);
    std::vector<uint8_t> in(n), out(n);
    const void *inputs[] = {in.data()};
    void *outputs[] = {out.data()};
    uint64_t ns[2] = {0, 0};
    qdqi_profile profile = {ns, 2}; // the third partition has no slot
    ASSERT_EQ(qdqi_plan_execute(plan, inputs, outputs, &profile, &err), QDQ_OK);
    EXPECT_GT(ns[0], 0u);
    EXPECT_GT(ns[1], 0u);
    EXPECT_EQ(qdqi_plan_step_part(plan, 2), 2u);
}

TEST_F(RuntimePlan, SurvivesEveryAllocationFailure) {
    int n_failures = 0;
    for (uint64_t nth = 1;; nth++) {
        ASSERT_LT(nth, 200u);
        qdqi_plan *p = nullptr;
        qdqi_buf x = 0, y = 0, t = 0;
        uint8_t in[32] = {1}, out[32];
        const void *inputs[] = {in};
        void *outputs[] = {out};
        qdqi_const c = {};
        const auto pack = [](void *dst, size_t n, void *, qdq_error *) {
            memset(dst, 9, n);
            return QDQ_OK;
        };
        qdqi_alloc_fail_at(nth);
        qdq_status st = qdqi_plan_create(engine, &p, &err);
        if (st == QDQ_OK) st = qdqi_plan_input(p, 0, 32, &x, &err);
        if (st == QDQ_OK) st = qdqi_plan_output(p, 0, 32, &y, &err);
        if (st == QDQ_OK) st = qdqi_plan_temp(p, 32, &t, &err);
        const uint64_t content = nth;
        qdqi_buf cb = 0;
        if (st == QDQ_OK) st = qdqi_const_get(engine, &content, 8, "r", 1, 32, pack, nullptr, &c, &err);
        if (st == QDQ_OK) st = qdqi_plan_const(p, c, &cb, &err);
        for (int i = 0; i < 2 && st == QDQ_OK; i++) {
            n_alive++;
            const qdqi_buf bufs[] = {i == 0 ? x : t, cb, i == 0 ? t : y};
            st = qdqi_plan_step(p, &adder_ops, new Adder{1, 32, &n_alive, QDQ_OK}, bufs, 3, 0, "adder", &err);
        }
        if (st == QDQ_OK) st = qdqi_plan_finish(p, &err);
        if (st == QDQ_OK) st = qdqi_plan_execute(p, inputs, outputs, nullptr, &err);
        qdqi_alloc_fail_at(0);
        qdqi_plan_destroy(&p);
        ASSERT_EQ(n_alive, 0);
        ASSERT_EQ(states_alive, 0);
        if (st == QDQ_OK) {
            EXPECT_EQ(out[0], 19);
            break;
        }
        ASSERT_EQ(st, QDQ_E_NO_MEMORY) << err.text;
        n_failures++;
    }
    EXPECT_GT(n_failures, 10);
}

TEST(RuntimePlanThreads, TheEnginesThreadsHoldDuringAnExecutionOnly) {
    const int was = omp_get_max_threads();
    for (int n_threads : {1, 3}) {
        qdq_engine_options options = {};
        options.struct_bytes = sizeof options;
        options.n_threads = n_threads;
        qdq_engine *engine = nullptr;
        qdqi_plan *plan = nullptr;
        ASSERT_EQ(qdqi_engine_create(&options, &engine, nullptr), QDQ_OK);
        ASSERT_EQ(qdqi_plan_create(engine, &plan, nullptr), QDQ_OK);
        static const qdqi_step_ops ops = {"test", nullptr, nullptr,
                                          [](const void *, void *, void *const *bufs, const qdq_engine *, qdq_error *) {
                                              *(int *)bufs[0] = omp_get_max_threads();
                                              return QDQ_OK;
                                          },
                                          nullptr};
        qdqi_buf y = 0;
        ASSERT_EQ(qdqi_plan_output(plan, 0, sizeof(int), &y, nullptr), QDQ_OK);
        ASSERT_EQ(qdqi_plan_step(plan, &ops, nullptr, &y, 1, 0, "threads", nullptr), QDQ_OK);
        ASSERT_EQ(qdqi_plan_finish(plan, nullptr), QDQ_OK);
        int seen = 0;
        void *outputs[] = {&seen};
        ASSERT_EQ(qdqi_plan_execute(plan, nullptr, outputs, nullptr, nullptr), QDQ_OK);
        EXPECT_EQ(seen, n_threads);
        EXPECT_EQ(omp_get_max_threads(), was);
        qdqi_plan_destroy(&plan);
        qdqi_engine_release(engine);
    }
}

} // namespace
