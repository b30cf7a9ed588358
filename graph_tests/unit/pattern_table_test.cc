// The pattern tables as data: every entry is well formed, the order is the golden one, every word has a meaning.
#include "patterns/catalogue.h"
#include "patterns/guards.h"
#include "patterns/sets.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace {

const qdqi_pattern_family *const families[] = {
#define FAMILY(family) &qdqi_patterns_##family,
    QDQI_PATTERN_FAMILY_MAP(FAMILY)
#undef FAMILY
};

uint32_t AnchorOf(const qdqi_pattern &pattern) {
    uint32_t anchor = 0;
    while (anchor < pattern.n_nodes && !pattern.nodes[anchor].anchor)
        anchor++;
    return anchor;
}

TEST(PatternTable, EveryEntryIsWellFormed) {
    std::set<std::string> names;
    for (size_t i = 0; i < qdqi_pattern_count(); i++) {
        const qdqi_pattern &pattern = *qdqi_pattern_at(i);
        SCOPED_TRACE(pattern.name);
        EXPECT_TRUE(names.insert(pattern.name).second) << "name used twice";
        ASSERT_NE(pattern.recipe, nullptr);
        ASSERT_NE(pattern.picture, nullptr);
        EXPECT_EQ(std::string(pattern.picture).back(), '\n');
        ASSERT_LE(pattern.n_nodes, (uint32_t)QDQI_PATTERN_MAX_NODES);
        const uint32_t anchor = AnchorOf(pattern);
        ASSERT_LT(anchor, pattern.n_nodes) << "no anchor";
        uint32_t runs = 0;
        std::set<int> fed;
        for (uint32_t n = 0; n < pattern.n_nodes; n++) {
            const qdqi_pnode &node = pattern.nodes[n];
            SCOPED_TRACE("node " + std::to_string(n));
            EXPECT_EQ(node.anchor, n == anchor) << "one anchor only";
            EXPECT_NE(node.set != nullptr, node.kind != QDQI_OP_NONE) << "kind or set";
            ASSERT_LE(node.n_in, QDQI_PATTERN_MAX_INPUTS);
            int refs = 0;
            for (int p = 0; p < node.n_in; p++) {
                EXPECT_LT(node.in[p], (int)n) << "nodes are in topological order";
                refs += node.in[p] >= 0;
                if (node.in[p] >= 0) fed.insert(node.in[p]);
            }
            if (n > anchor) {
                EXPECT_EQ(refs, 1);
                EXPECT_EQ(node.in[node.n_in - 1], (int)n - 1) << "downstream nodes name their predecessor";
                EXPECT_FALSE(node.variadic || node.recompute || node.region);
            } else {
                EXPECT_FALSE(node.any_side || node.dq_other || node.self_other || node.rep_max);
                EXPECT_FALSE(node.variadic && !node.anchor);
                EXPECT_FALSE(node.anchor && node.optional);
                if (node.region) {
                    EXPECT_FALSE(node.anchor || node.recompute);
                    EXPECT_LE(node.region, QDQI_PATTERN_MAX_REGION);
                    EXPECT_EQ(refs, 1) << "a region ends at one node";
                }
            }
            EXPECT_LE(node.rep_min, node.rep_max);
            runs += node.rep_max;
        }
        EXPECT_LE(runs, (uint32_t)QDQI_PATTERN_MAX_REP);
        for (uint32_t n = 0; n < anchor; n++)
            EXPECT_TRUE(fed.count((int)n)) << "upstream node " << n << " feeds nothing";
    }
}

TEST(PatternTable, EntriesOfAFamilyAreOrderedLargestFirst) {
    for (const qdqi_pattern_family *family : families) {
        ASSERT_GT(family->n, 0u) << family->name;
        for (uint32_t i = 1; i < family->n; i++)
            EXPECT_GE(qdqi_pattern_n_required(&family->entries[i - 1]), qdqi_pattern_n_required(&family->entries[i]))
                << family->entries[i].name;
    }
}

TEST(PatternTable, OrderIsTheGoldenOne) {
    std::string order;
    for (const qdqi_pattern_family *family : families)
        for (uint32_t i = 0; i < family->n; i++)
            order += std::string(family->name) + " " + family->entries[i].name + " " +
                     std::to_string(qdqi_pattern_n_required(&family->entries[i])) + "\n";
    std::ifstream file(QDQ_SOURCE_DIR "/graph_tests/cases/pattern_order.txt");
    ASSERT_TRUE(file.good());
    const std::string golden((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_EQ(order, golden) << "priority is order: a change belongs in graph_tests/cases/pattern_order.txt";
}

TEST(PatternTable, IndexRunsThroughTheFamilies) {
    size_t i = 0;
    for (const qdqi_pattern_family *family : families)
        for (uint32_t k = 0; k < family->n; k++)
            EXPECT_EQ(qdqi_pattern_at(i++), &family->entries[k]);
    EXPECT_EQ(i, qdqi_pattern_count());
    EXPECT_EQ(qdqi_pattern_at(i), nullptr);
}

TEST(PatternTable, EveryRefusalHasOneWordAndASentence) {
    std::set<std::string> words;
#define WHY(id, word, text)                                                                                            \
    EXPECT_STREQ(qdqi_why_word(QDQI_WHY_##id), word);                                                                  \
    EXPECT_STREQ(qdqi_why_text(QDQI_WHY_##id), text);                                                                  \
    EXPECT_TRUE(words.insert(word).second) << word;
    QDQI_WHY_MAP(WHY)
#undef WHY
    EXPECT_STREQ(qdqi_why_word((qdqi_why)999), "unknown");
    EXPECT_STREQ(qdqi_why_text((qdqi_why)999), "unknown");
}

TEST(PatternTable, EveryGuardIsNamedAfterItself) {
#define GUARD(guard, reason, text)                                                                                     \
    EXPECT_STREQ(qdqi_guard_##guard.name, #guard);                                                                     \
    EXPECT_EQ(qdqi_guard_##guard.why, QDQI_WHY_##reason);                                                              \
    EXPECT_NE(qdqi_guard_##guard.pass, nullptr);
    QDQI_GUARD_MAP(GUARD)
#undef GUARD
#define SET(set, text) EXPECT_STREQ(qdqi_set_##set.name, #set);
    QDQI_SET_MAP(SET)
#undef SET
}

} // namespace
