// Why the matcher stopped: the nearest entry, the node, the op, the value and the word.
#include "harness/text_graph.h"
#include "patterns/matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

class PatternExplain : public ::testing::Test {
  protected:
    ~PatternExplain() override {
        qdqi_matcher_destroy(&matcher_);
        qdqi_graph_release(graph_);
    }

    // "entry matched|failed n_ops: word guard op value", "none" when no entry is for this kind.
    std::string Nearest(const std::string &text, const std::string &op) {
        qdq_error err = {};
        if (qh_graph_from_text(text.c_str(), &graph_, &err) != QDQ_OK) return err.text;
        if (qdqi_matcher_create(graph_, &matcher_, &err) != QDQ_OK) return err.text;
        for (uint32_t i = 0; i < graph_->n_ops; i++)
            if (op == graph_->ops[i].name) {
                qdqi_match_step step;
                qdqi_matcher_nearest(matcher_, i, &step);
                return Text(step);
            }
        return "no such op";
    }

    std::string Text(const qdqi_match_step &step) const {
        if (!step.pattern) return "none";
        std::string text = std::string(step.pattern->name) + (step.cut ? " matched " : " failed ");
        text += std::to_string(step.n_ops) + ": " + qdqi_why_word(step.why);
        if (step.guard) text += std::string(" by ") + step.guard->name;
        if (step.op != QDQI_NONE) text += std::string(" op ") + graph_->ops[step.op].name;
        if (step.value != QDQI_NONE && graph_->values[step.value].producer != QDQI_NONE)
            text += std::string(" value ") + graph_->ops[graph_->values[step.value].producer].name;
        return text;
    }

    qdq_graph *graph_ = nullptr;
    qdqi_matcher *matcher_ = nullptr;
};

const std::string kMatmul = "x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);";

TEST_F(PatternExplain, AWholeMatchHasNoReason) {
    EXPECT_EQ(Nearest(kMatmul + "y = Quantize(m)", "m"), "x8_matmul_post_ops matched 4: none");
}

TEST_F(PatternExplain, AnotherKindEndsTheChain) {
    EXPECT_EQ(Nearest(kMatmul + "r = ReLU(m); s = SoftMax(r) {axis=-1}", "m"),
              "x8_matmul_post_ops matched 4: kind op s value r");
}

TEST_F(PatternExplain, AGraphOutputEndsTheChain) {
    EXPECT_EQ(Nearest(kMatmul + "r = ReLU(m); y = Quantize(r); out r y", "m"),
              "x8_matmul_post_ops matched 4: graph_output value r");
}

TEST_F(PatternExplain, ASecondConsumerEndsTheChain) {
    EXPECT_EQ(Nearest(kMatmul + "r = ReLU(m); y = Quantize(r); s = SoftMax(r) {axis=-1}", "m"),
              "x8_matmul_post_ops matched 4: shared op y value r");
}

TEST_F(PatternExplain, ABroadcastEndsTheChain) {
    EXPECT_EQ(Nearest(kMatmul + "o:f32 3x2x8; n = Add(m, o); y = Quantize(n)", "m"),
              "x8_matmul_post_ops matched 3: kind op n value m");
}

TEST_F(PatternExplain, TheGuardOfASourceIsNamed) {
    EXPECT_EQ(Nearest("x:s32 2x4; s:f32 1 const; w:f32 4x8 const; a = DequantizeLinear(x, s); m = MatMul(a, w)", "m"),
              "x8_matmul_post_ops failed 1: dtype by int_src op a value a");
}

TEST_F(PatternExplain, WeightsThatAreNoDequantize) {
    EXPECT_EQ(Nearest("x:u8 2x4; w:f32 4x8 const; a = Dequantize(x); m = MatMul(a, w)", "m"),
              "x8_matmul_post_ops failed 2: no_producer");
}

TEST_F(PatternExplain, AMoveWithoutQuantize) {
    EXPECT_EQ(Nearest("x:u8 2x4; a = Dequantize(x); t = StaticTranspose(a) {order=[1,0]}", "t"),
              "x8_move failed 2: graph_output value t");
}

TEST_F(PatternExplain, InterpolationMode) {
    EXPECT_EQ(Nearest("x:u8 1x4x5x5; a = Dequantize(x); n = Interpolate(a) {mode=linear}; y = Quantize(n)", "n"),
              "x8_resample matched 3: none");
}

TEST_F(PatternExplain, KindsWithoutAnEntry) {
    EXPECT_EQ(Nearest("x:u8 2x4; a = Dequantize(x); g = GenIndex(a) {axis=0}", "g"), "none");
    EXPECT_EQ(Text(qdqi_match_step{}), "none");
}

TEST_F(PatternExplain, ATraceSeesEachStop) {
    qdq_error err = {};
    const std::string text = kMatmul + "r = ReLU(m); y = Quantize(r)";
    ASSERT_EQ(qh_graph_from_text(text.c_str(), &graph_, &err), QDQ_OK) << err.text;
    ASSERT_EQ(qdqi_matcher_create(graph_, &matcher_, &err), QDQ_OK) << err.text;
    std::vector<qdqi_match_step> steps;
    const qdqi_match_trace trace = {[](void *user, const qdqi_match_step *step) {
                                        static_cast<std::vector<qdqi_match_step> *>(user)->push_back(*step);
                                    },
                                    &steps};
    size_t entry = 0;
    while (std::string(qdqi_pattern_at(entry)->name) != "x8_matmul_post_ops")
        entry++;
    qdqi_match match;
    ASSERT_TRUE(qdqi_matcher_try(matcher_, qdqi_pattern_at(entry), 2, &trace, &match));
    EXPECT_EQ(match.n_ops, 5u);
    EXPECT_EQ(match.root, 2u);
    ASSERT_EQ(steps.size(), 2u); // the runs of elementwise and of moving ops end where the Quantize stands
    for (const qdqi_match_step &step : steps) {
        EXPECT_TRUE(step.cut);
        EXPECT_EQ(step.why, QDQI_WHY_KIND);
        EXPECT_STREQ(graph_->ops[step.op].name, "y");
    }

    // Claimed ops are not to be had, but a Dequantize is.
    qdqi_matcher_claim(matcher_);
    EXPECT_TRUE(qdqi_matcher_is_claimed(matcher_, 2));
    EXPECT_FALSE(qdqi_matcher_is_claimed(matcher_, 0));
    EXPECT_TRUE(qdqi_matcher_is_absorbed(matcher_, 0));
    EXPECT_FALSE(qdqi_matcher_is_absorbed(matcher_, 2));
    EXPECT_FALSE(qdqi_matcher_try(matcher_, qdqi_pattern_at(entry), 2, &trace, &match));
    EXPECT_EQ(steps.back().why, QDQI_WHY_CLAIMED);
}

} // namespace
