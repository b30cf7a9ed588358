// The memory planner: no two blocks that live at once may overlap, and chains stay small and fast.
#include "base/alloc.h"
#include "runtime/plan_impl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace {

struct Random {
    uint64_t state = 12345;
    uint32_t below(uint32_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 33) % n;
    }
};

// Sweep over the steps: at each, the live blocks sorted by offset must not touch. Also a bound from below for the arena.
void check(const std::vector<qdqi_lifetime> &blocks, uint32_t n_steps, size_t arena_bytes, size_t *peak_out) {
    std::vector<std::vector<uint32_t>> starts(n_steps);
    for (size_t i = 0; i < blocks.size(); i++)
        if (blocks[i].bytes != 0 && blocks[i].first <= blocks[i].last) starts[blocks[i].first].push_back((uint32_t)i);
    std::vector<uint32_t> live;
    size_t peak = 0;
    for (uint32_t s = 0; s < n_steps; s++) {
        live.erase(std::remove_if(live.begin(), live.end(), [&](uint32_t i) { return blocks[i].last < s; }),
                   live.end());
        live.insert(live.end(), starts[s].begin(), starts[s].end());
        std::sort(live.begin(), live.end(),
                  [&](uint32_t a, uint32_t b) { return blocks[a].offset < blocks[b].offset; });
        size_t sum = 0, end = 0;
        for (uint32_t i : live) {
            ASSERT_EQ(blocks[i].offset % QDQI_ALIGN_BYTES, 0u);
            ASSERT_GE(blocks[i].offset, end) << "block " << i << " at step " << s;
            end = blocks[i].offset + blocks[i].bytes;
            sum += blocks[i].bytes;
        }
        ASSERT_LE(end, arena_bytes);
        peak = std::max(peak, sum);
    }
    *peak_out = peak;
}

TEST(RuntimePlace, LiveBlocksNeverOverlap) {
    Random random;
    for (int round = 0; round < 200; round++) {
        const uint32_t n_steps = 1 + random.below(60), reach = 1 + random.below(n_steps);
        std::vector<qdqi_lifetime> blocks(1 + random.below(120));
        for (auto &b : blocks) {
            b = {};
            b.bytes = random.below(8) == 0 ? 0 : 1 + random.below(5000);
            b.first = random.below(n_steps);
            b.last = std::min(n_steps - 1, b.first + random.below(reach));
            if (random.below(20) == 0) b.first = UINT32_MAX, b.last = 0; // never used
        }
        size_t arena = 0, peak = 0;
        ASSERT_EQ(qdqi_place(blocks.data(), blocks.size(), n_steps, &arena, nullptr), QDQ_OK);
        ASSERT_NO_FATAL_FAILURE(check(blocks, n_steps, arena, &peak));
        ASSERT_LE(peak, arena);
        ASSERT_LE(arena, 2 * peak) << "wasteful: round " << round;
    }
}

TEST(RuntimePlace, ChainOfEqualBlocksNeedsTwo) {
    std::vector<qdqi_lifetime> blocks(1000);
    for (uint32_t i = 0; i < blocks.size(); i++)
        blocks[i] = {640, i, i + 1, 0};
    size_t arena = 0, peak = 0;
    ASSERT_EQ(qdqi_place(blocks.data(), blocks.size(), 1001, &arena, nullptr), QDQ_OK);
    check(blocks, 1001, arena, &peak);
    EXPECT_EQ(arena, 2 * 640u);
}

double seconds_to_place(std::vector<qdqi_lifetime> *blocks, uint32_t n_steps, size_t *arena) {
    const auto then = std::chrono::steady_clock::now();
    EXPECT_EQ(qdqi_place(blocks->data(), blocks->size(), n_steps, arena, nullptr), QDQ_OK);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

TEST(RuntimePlace, HundredThousandStepsTakeLessThanSeconds) {
    Random random;
    const uint32_t n = 100000;
    std::vector<qdqi_lifetime> blocks(n);
    for (uint32_t i = 0; i < n; i++)
        blocks[i] = {1 + random.below(100000), i, std::min(n - 1, i + random.below(i % 1000 == 0 ? 20000 : 8)), 0};
    size_t arena = 0, peak = 0;
    EXPECT_LT(seconds_to_place(&blocks, n, &arena), 10.0);
    check(blocks, n, arena, &peak);
    EXPECT_LE(arena, peak + peak / 2);
}

TEST(RuntimePlace, ManyLiveAtOnceFallsBackToTheOrderOfTime) {
    Random random;
    const uint32_t n = 20000;
    std::vector<qdqi_lifetime> blocks(n);
    for (uint32_t i = 0; i < n; i++)
        blocks[i] = {1 + random.below(1000), i, std::min(n - 1, i + 3000 + random.below(4000)), 0};
    size_t arena = 0, peak = 0;
    EXPECT_LT(seconds_to_place(&blocks, n, &arena), 10.0);
    // the sweep of the full check is quadratic here: every 97th step is enough
    for (uint32_t s = 0; s < n; s += 97) {
        std::vector<uint32_t> live;
        size_t sum = 0, end = 0;
        for (uint32_t i = 0; i <= s; i++)
            if (blocks[i].last >= s) live.push_back(i);
        std::sort(live.begin(), live.end(),
                  [&](uint32_t a, uint32_t b) { return blocks[a].offset < blocks[b].offset; });
        for (uint32_t i : live) {
            ASSERT_GE(blocks[i].offset, end);
            end = blocks[i].offset + blocks[i].bytes;
            sum += blocks[i].bytes;
        }
        ASSERT_LE(end, arena);
        peak = std::max(peak, sum);
    }
    EXPECT_LE(arena, 2 * peak);
}

TEST(RuntimePlace, SizesThatDoNotFitAreAnError) {
    qdq_error err = {};
    size_t arena = 0;
    std::vector<qdqi_lifetime> one = {{SIZE_MAX - 3, 0, 0, 0}};
    EXPECT_EQ(qdqi_place(one.data(), 1, 1, &arena, &err), QDQ_E_OVERFLOW);
    std::vector<qdqi_lifetime> two = {{SIZE_MAX / 2, 0, 0, 0}, {SIZE_MAX / 2, 0, 0, 0}, {SIZE_MAX / 2, 0, 0, 0}};
    EXPECT_EQ(qdqi_place(two.data(), 3, 1, &arena, &err), QDQ_E_OVERFLOW) << err.text;
}

} // namespace
