// Words of the language that no entry of the catalogue uses yet, on entries made here.
#include "harness/text_graph.h"
#include "patterns/matcher.h"
#include "patterns/sets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

qdqi_pnode Is(qdqi_kind kind, std::vector<int> in) {
    qdqi_pnode node = {};
    node.kind = kind;
    for (const int from : in)
        node.in[node.n_in++] = (int8_t)from;
    return node;
}

qdqi_pnode Any(const qdqi_set &set, std::vector<int> in) {
    qdqi_pnode node = Is(QDQI_OP_NONE, std::move(in));
    node.set = &set;
    return node;
}

qdqi_pnode Anchor(qdqi_pnode node) {
    node.anchor = true;
    return node;
}

qdqi_pnode Opt(qdqi_pnode node) {
    node.optional = true;
    return node;
}

constexpr int kOut = -1;

class PatternLanguage : public ::testing::Test {
  protected:
    ~PatternLanguage() override { Drop(); }

    void Drop() {
        qdqi_matcher_destroy(&matcher_);
        qdqi_graph_release(graph_);
        graph_ = nullptr;
    }

    // "a b m" for the ops of the match at `root`, or "why op" for the last refusal.
    std::string Match(const std::vector<qdqi_pnode> &nodes, const std::string &text, const std::string &root) {
        Drop();
        qdq_error err = {};
        if (qh_graph_from_text(text.c_str(), &graph_, &err) != QDQ_OK) return err.text;
        if (qdqi_matcher_create(graph_, &matcher_, &err) != QDQ_OK) return err.text;
        const qdqi_pattern pattern = {"test", nullptr, nodes.data(), (uint32_t)nodes.size(), "\n"};
        qdqi_match_step last = {};
        const qdqi_match_trace trace = {
            [](void *user, const qdqi_match_step *step) { *static_cast<qdqi_match_step *>(user) = *step; }, &last};
        for (uint32_t i = 0; i < graph_->n_ops; i++) {
            if (root != graph_->ops[i].name) continue;
            qdqi_match match;
            if (!qdqi_matcher_try(matcher_, &pattern, i, &trace, &match))
                return std::string(qdqi_why_word(last.why)) +
                       (last.op == QDQI_NONE ? "" : std::string(" ") + graph_->ops[last.op].name);
            std::string found;
            for (uint32_t k = 0; k < match.n_ops; k++)
                found += std::string(k ? " " : "") + graph_->ops[match.ops[k]].name;
            return found;
        }
        return "no such op";
    }

    qdq_graph *graph_ = nullptr;
    qdqi_matcher *matcher_ = nullptr;
};

// dq - [typecast] - matmul - [typecast] - q
const std::vector<qdqi_pnode> kMixed = {
    Any(qdqi_set_dq, {kOut}),       Opt(Is(QDQI_OP_TYPECAST, {0})),     Any(qdqi_set_dq, {kOut}),
    Opt(Is(QDQI_OP_TYPECAST, {2})), Anchor(Is(QDQI_OP_MATMUL, {1, 3})), Opt(Is(QDQI_OP_TYPECAST, {4})),
    Opt(Any(qdqi_set_q, {5})),
};
const std::string kBf16 =
    "x:u8 4x4; w:s8 4x4 const; a = Dequantize(x); t = TypeCast(a); b = Dequantize(w); v = TypeCast(b);"
    "m = MatMul(t, v);";

TEST_F(PatternLanguage, OptionalOpsUpstreamMayStandOrNot) {
    EXPECT_EQ(Match(kMixed, kBf16 + "u:f32 = TypeCast(m); y = Quantize(u)", "m"), "a t b v m u y");
    EXPECT_EQ(Match(kMixed,
                    "x:u8 4x4; w:s8 4x4 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);"
                    "y = Quantize(m)",
                    "m"),
              "a b m y");
}

TEST_F(PatternLanguage, AnOpUpstreamMustFeedTheMatchAlone) {
    // t is optional, but what stands there is no Dequantize either
    EXPECT_EQ(Match(kMixed, kBf16 + "r = ReLU(t)", "m"), "kind t");
    EXPECT_EQ(Match(kMixed, kBf16 + "out m t", "m"), "kind t");
    std::vector<qdqi_pnode> required = kMixed;
    required[1].optional = false;
    EXPECT_EQ(Match(required, kBf16 + "r = ReLU(t)", "m"), "shared t");
    EXPECT_EQ(Match(required, kBf16 + "out m t", "m"), "graph_output t");
    required[1].recompute = true;
    EXPECT_EQ(Match(required, kBf16 + "out m t", "m"), "a t b v m");
}

TEST_F(PatternLanguage, ADequantizeBehindAnOpMayBeShared) {
    EXPECT_EQ(Match(kMixed, kBf16 + "r = ReLU(a); out m r a", "m"), "a t b v m");
}

TEST_F(PatternLanguage, WhatFeedsASharedDequantizeIsSharedToo) {
    // q - dq - matmul with a q that is not RECOMPUTE
    const std::vector<qdqi_pnode> nodes = {Any(qdqi_set_q, {kOut}), Any(qdqi_set_dq, {0}),
                                           Anchor(Is(QDQI_OP_MATMUL, {1, kOut}))};
    const std::string text = "x:f32 4x4; w:f32 4x4; q = Quantize(x); a = Dequantize(q); m = MatMul(a, w);";
    EXPECT_EQ(Match(nodes, text, "m"), "q a m");
    EXPECT_EQ(Match(nodes, text + "r = ReLU(a)", "m"), "shared q");
    EXPECT_EQ(Match(nodes, text + "out m a", "m"), "shared q");
    EXPECT_EQ(Match(nodes, text + "out m q", "m"), "graph_output q");
}

TEST_F(PatternLanguage, AnOpMayFeedBothPorts) {
    const std::vector<qdqi_pnode> nodes = {Is(QDQI_OP_SQRT, {kOut}), Anchor(Is(QDQI_OP_MATMUL, {0, 0}))};
    EXPECT_EQ(Match(nodes, "x:f32 4x4; s = Sqrt(x); m = MatMul(s, s)", "m"), "s m");
    EXPECT_EQ(Match(nodes, "x:f32 4x4; s = Sqrt(x); m = MatMul(s, s); out s m", "m"), "graph_output s");
}

TEST_F(PatternLanguage, ANodeDownstreamNamesItsPort) {
    const std::string text = "x:f32 4x4; w:f32 4x4; c:boolean 4x4; m = MatMul(x, w);";
    const std::vector<qdqi_pnode> last = {Anchor(Is(QDQI_OP_MATMUL, {kOut, kOut})),
                                          Is(QDQI_OP_SELECT, {kOut, kOut, 0})};
    EXPECT_EQ(Match(last, text + "s = Select(c, x, m)", "m"), "m s");
    EXPECT_EQ(Match(last, text + "s = Select(c, m, x)", "m"), "port s");
    EXPECT_EQ(Match(last, text + "s = Select(c, m, m)", "m"), "port s");
}

TEST_F(PatternLanguage, OrderOfABinaryCountsUnlessSaidOtherwise) {
    const std::string text = "x:f32 4x4; w:f32 4x4; m = MatMul(x, w);";
    const qdqi_pnode matmul = Anchor(Is(QDQI_OP_MATMUL, {kOut, kOut}));
    const qdqi_pnode sub = Is(QDQI_OP_SUBTRACT, {0}), add = Is(QDQI_OP_ADD, {0});
    EXPECT_EQ(Match({matmul, sub}, text + "s = Subtract(m, x)", "m"), "m s");
    EXPECT_EQ(Match({matmul, sub}, text + "s = Subtract(x, m)", "m"), "port s");
    EXPECT_EQ(Match({matmul, add}, text + "s = Add(x, m)", "m"), "m s");
    qdqi_pnode any_side = sub;
    any_side.any_side = true;
    EXPECT_EQ(Match({matmul, any_side}, text + "s = Subtract(x, m)", "m"), "m s");
}

TEST_F(PatternLanguage, TwiceTheSameOperandNeedsSelfOther) {
    const std::string text = "x:f32 4x4; w:f32 4x4; m = MatMul(x, w); s = Multiply(m, m)";
    const qdqi_pnode matmul = Anchor(Is(QDQI_OP_MATMUL, {kOut, kOut}));
    qdqi_pnode multiply = Is(QDQI_OP_MULTIPLY, {0});
    EXPECT_EQ(Match({matmul, multiply}, text, "m"), "port s");
    multiply.self_other = true;
    EXPECT_EQ(Match({matmul, multiply}, text, "m"), "m s");
}

TEST_F(PatternLanguage, ARunHasAMinimum) {
    const qdqi_pnode matmul = Anchor(Is(QDQI_OP_MATMUL, {kOut, kOut}));
    qdqi_pnode run = Is(QDQI_OP_RELU, {0});
    run.rep_min = 2, run.rep_max = 3;
    const std::string text = "x:f32 4x4; w:f32 4x4; m = MatMul(x, w); r = ReLU(m);";
    EXPECT_EQ(Match({matmul, run}, text, "m"), "graph_output");
    EXPECT_EQ(Match({matmul, run}, text + "s = ReLU(r)", "m"), "m r s");
    EXPECT_EQ(Match({matmul, run}, text + "s = ReLU(r); t = ReLU(s); u = ReLU(t)", "m"), "m r s t");
}

TEST_F(PatternLanguage, OneOpAloneIsNoMatch) {
    EXPECT_EQ(Match({Anchor(Is(QDQI_OP_MATMUL, {kOut, kOut}))}, "x:f32 4x4; w:f32 4x4; m = MatMul(x, w)", "m"),
              "alone m");
}

} // namespace
