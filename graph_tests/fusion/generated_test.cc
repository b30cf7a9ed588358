// Every entry of the catalogue, fused against node by node, on graphs generated from the entry itself.
//
// QDQ_TEST_SEED=n runs one graph per entry; QDQ_TEST_GRAPHS=n sets how many; QDQ_TEST_VERBOSE prints each.
#include "fusion/generator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace qdq_test {
namespace {

int EnvInt(const char *name, int otherwise) {
    const char *text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
}

size_t EntryOf(const std::string &pattern) {
    for (size_t i = 0; i < qdqi_pattern_count(); i++)
        if (pattern == qdqi_pattern_at(i)->name) return i;
    return SIZE_MAX;
}

class GeneratedFusion : public testing::TestWithParam<size_t> {};

TEST_P(GeneratedFusion, EqualsNodeByNode) {
    const size_t entry = GetParam();
    const int one_seed = EnvInt("QDQ_TEST_SEED", 0), n = one_seed ? 1 : EnvInt("QDQ_TEST_GRAPHS", 30);
    const bool verbose = std::getenv("QDQ_TEST_VERBOSE") != nullptr;
    qdq_error err = {};
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
    int n_own = 0, n_reference = 0;
    int64_t n_compared = 0, n_off = 0;
    std::map<std::string, int> kinds;
    for (int i = 0; i < n; i++) {
        const int seed = one_seed ? one_seed : i + 1;
        Generator g(static_cast<uint64_t>(seed), entry);
        ASSERT_TRUE(g.Make()) << "seed " << seed << ": " << g.failure;
        if (verbose) {
            std::printf("%s, seed %d\n%s", qdqi_pattern_at(entry)->name, seed, g.net.Text().c_str());
            std::fflush(stdout);
        }
        const Outcome outcome = RunFused(g.net, g.outputs, engine, g.rng.Chance(0.25));
        const std::string where = std::string(qdqi_pattern_at(entry)->name) +
                                  ", QDQ_TEST_SEED=" + std::to_string(seed) + "\n" + g.net.Text() + "    " +
                                  outcome.pattern + " | " + outcome.impl;
        if (verbose) std::printf("    %s | %s\n", outcome.pattern.c_str(), outcome.impl.c_str());
        EXPECT_EQ(outcome.failure, "") << where;
        EXPECT_EQ(outcome.n_partitions, 1u) << where;
        EXPECT_LE(EntryOf(outcome.pattern), entry) << where; // an earlier entry may have it, a later one may not
        n_own += EntryOf(outcome.pattern) == entry;
        n_reference += outcome.impl.find("reference") != std::string::npos;
        n_compared += outcome.n_compared;
        n_off += outcome.n_off_by_one;
        kinds[g.root_kind]++;
    }
    qdq_engine_destroy(&engine);
    std::printf("%s: %d graphs, %d matched by this entry, %zu kinds of anchor, %lld values, %lld beside a tie, %d with "
                "a step on "
                "the reference\n",
                qdqi_pattern_at(entry)->name, n, n_own, kinds.size(), (long long)n_compared, (long long)n_off,
                n_reference);
    if (!one_seed) {
        EXPECT_GE(n_own * 6, n) << "too few graphs reach this entry";
    }
}

std::vector<size_t> AllEntries() {
    std::vector<size_t> all(qdqi_pattern_count());
    for (size_t i = 0; i < all.size(); i++)
        all[i] = i;
    return all;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, GeneratedFusion, testing::ValuesIn(AllEntries()),
                         [](const testing::TestParamInfo<size_t> &info) { return qdqi_pattern_at(info.param)->name; });

} // namespace
} // namespace qdq_test
