// Explanations through the public API: what became of each op, which candidates refused, and in which words.
#include "harness/text_graph.h"
#include "qdq/qdq.h"

#include <gtest/gtest.h>

#include <dirent.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

std::set<std::string> Words(const std::string &group) {
    std::set<std::string> words;
    qdq_reason_info info;
    for (size_t i = 0; i < qdq_backend_n_reasons(); i++)
        if (qdq_backend_reason(i, &info, nullptr) == QDQ_OK && (group.empty() || group == info.group))
            words.insert(info.word);
    return words;
}

class ApiExplain : public ::testing::Test {
  protected:
    ~ApiExplain() override { Clear(); }

    void Clear() {
        qdq_explanation_destroy(&e_);
        qdq_engine_destroy(&engine_);
        qdqi_graph_release(graph_);
        graph_ = nullptr;
    }

    void Explain(const std::string &text, qdq_policy policy = QDQ_POLICY_FUSION) {
        Clear();
        qdq_error err = {};
        qdq_session_options options = {};
        options.struct_bytes = sizeof options;
        options.policy = policy;
        ASSERT_EQ(qh_graph_from_text(text.c_str(), &graph_, &err), QDQ_OK) << err.text;
        ASSERT_EQ(qdq_engine_create(nullptr, &engine_, &err), QDQ_OK) << err.text;
        ASSERT_EQ(qdq_explanation_create(graph_, engine_, &options, &e_, &err), QDQ_OK) << err.text;
    }

    const qdq_explain_op &Op(const std::string &name) const {
        static const qdq_explain_op none = {};
        for (size_t i = 0; i < qdq_explanation_n_ops(e_); i++)
            if (name == qdq_explanation_op(e_, i)->name) return *qdq_explanation_op(e_, i);
        ADD_FAILURE() << "no op " << name;
        return none;
    }

    const qdq_explain_reason *Reason(const qdq_explain_op &op, qdq_explain_source source) const {
        for (size_t i = 0; i < op.n_reasons; i++)
            if (op.reasons[i].source == source) return &op.reasons[i];
        return nullptr;
    }

    std::vector<std::string> Refusals(size_t part) const {
        std::vector<std::string> words;
        const qdq_explain_part *p = qdq_explanation_part(e_, part);
        for (size_t i = 0; i < p->n_reasons; i++)
            if (p->reasons[i].source == QDQ_EXPLAIN_REFUSAL) words.push_back(p->reasons[i].word);
        return words;
    }

    qdq_graph *graph_ = nullptr;
    qdq_engine *engine_ = nullptr;
    qdq_explanation *e_ = nullptr;
};

const std::string kMatmul = "x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);";

bool Contains(const std::vector<std::string> &words, const std::string &word) {
    for (const std::string &w : words)
        if (w == word) return true;
    return false;
}

TEST_F(ApiExplain, AFusedChainHasStepsAndNoReasons) {
    Explain(kMatmul + "r = ReLU(m); y = Quantize(r)");
    EXPECT_EQ(qdq_explanation_compile_error(e_), nullptr);
    ASSERT_EQ(qdq_explanation_n_parts(e_), 1u);
    EXPECT_EQ(qdq_explanation_n_ops(e_), 5u);
    const qdq_explain_part *part = qdq_explanation_part(e_, 0);
    EXPECT_STREQ(part->pattern, "x8_matmul_post_ops");
    EXPECT_STREQ(part->recipe, "matmul");
    EXPECT_EQ(part->how, QDQ_EXPLAIN_FUSED);
    EXPECT_STREQ(qdq_explanation_op(e_, part->root)->name, "m");
    EXPECT_EQ(part->n_ops, 5u);
    ASSERT_EQ(part->n_inputs, 1u);
    EXPECT_EQ(part->inputs[0]->desc.dtype, QDQ_DTYPE_U8);
    EXPECT_TRUE(part->inputs[0]->is_input);
    ASSERT_EQ(part->n_constants, 1u);
    EXPECT_TRUE(part->constants[0]->is_constant);
    ASSERT_EQ(part->n_outputs, 1u);
    EXPECT_TRUE(part->outputs[0]->is_output);
    EXPECT_EQ(part->outputs[0]->desc.layout, QDQ_LAYOUT_STRIDED);
    ASSERT_GT(part->n_steps, 0u);
    std::set<std::string> providers;
    for (size_t i = 0; i < qdq_backend_n_providers(); i++)
        providers.insert(qdq_backend_provider(i));
    for (size_t i = 0; i < part->n_steps; i++)
        EXPECT_EQ(providers.count(part->steps[i].provider), 1u) << part->steps[i].provider;
    for (size_t i = 0; i < 5; i++) {
        EXPECT_EQ(qdq_explanation_op(e_, i)->how, QDQ_EXPLAIN_FUSED);
        EXPECT_EQ(qdq_explanation_op(e_, i)->n_reasons, 0u);
        EXPECT_EQ(qdq_explanation_op(e_, i)->part, 0u);
    }
    EXPECT_EQ(Op("m").inputs[0], Op("a").outputs[0]);
}

TEST_F(ApiExplain, AnOpAloneNamesTheEntryAndTheChainThatItEnded) {
    Explain(kMatmul + "r = ReLU(m); s = LogSoftmax(r) {axis=-1}");
    ASSERT_EQ(qdq_explanation_n_parts(e_), 2u);
    const qdq_explain_op &op = Op("s");
    EXPECT_EQ(op.how, QDQ_EXPLAIN_ALONE);
    const qdq_explain_reason *nearest = Reason(op, QDQ_EXPLAIN_NEAREST);
    ASSERT_NE(nearest, nullptr);
    EXPECT_EQ(Words("match").count(nearest->word), 1u) << nearest->word;
    const qdq_explain_reason *end = Reason(op, QDQ_EXPLAIN_END);
    ASSERT_NE(end, nullptr);
    EXPECT_STREQ(end->word, "kind");
    EXPECT_STREQ(end->who, "x8_matmul_post_ops");
    EXPECT_EQ(end->part, 0u);
    EXPECT_EQ(end->n_matched, 4u);
    EXPECT_STREQ(qdq_explanation_op(e_, end->op)->name, "s");
    EXPECT_EQ(end->tensor, Op("r").outputs[0]);
    EXPECT_NE(std::string(end->text).find("\"s\" (LogSoftmax)"), std::string::npos) << end->text;
    // The partition tells the same.
    const qdq_explain_part *part = qdq_explanation_part(e_, 0);
    ASSERT_GT(part->n_reasons, 0u);
    EXPECT_EQ(part->reasons[part->n_reasons - 1].source, QDQ_EXPLAIN_END);
}

TEST_F(ApiExplain, TheGuardThatFailedIsNamed) {
    Explain("x:s32 2x8; n = ReduceSum(x) {axes=[1]}");
    const qdq_explain_reason *nearest = Reason(Op("n"), QDQ_EXPLAIN_NEAREST);
    ASSERT_NE(nearest, nullptr);
    EXPECT_STREQ(nearest->word, "dtype");
    EXPECT_STREQ(nearest->guard, "float_dst");
    EXPECT_EQ(Words("guard").count(nearest->guard), 1u);
    EXPECT_NE(std::strlen(nearest->guard_text), 0u);
    EXPECT_STREQ(qdq_explanation_op(e_, nearest->op)->name, "n");
}

TEST_F(ApiExplain, AKindWithoutAnEntry) {
    Explain("x:f32 2x4; g = GenIndex(x) {axis=0}");
    const qdq_explain_reason *nearest = Reason(Op("g"), QDQ_EXPLAIN_NEAREST);
    ASSERT_NE(nearest, nullptr);
    EXPECT_STREQ(nearest->word, "no_entry");
    EXPECT_EQ(nearest->op, QDQ_EXPLAIN_NONE);
    EXPECT_EQ(nearest->tensor, nullptr);
}

TEST_F(ApiExplain, CandidatesThatRefusedSayWhy) {
    // weights quantized along the axis that is summed over: no int8 product
    Explain("x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); "
            "b = Dequantize(w) {qtype=per_channel axis=0 scales=[0.5,0.25,1.0,2.0] zps=[0,0,0,0]}; "
            "m = MatMul(a, b); y = Quantize(m)");
    ASSERT_EQ(qdq_explanation_n_parts(e_), 1u);
    const std::vector<std::string> words = Refusals(0);
    EXPECT_TRUE(Contains(words, "weights_axis_not_n") || Contains(words, "isa_without_exact_int8") ||
                Contains(words, "no_onednn"))
        << ::testing::PrintToString(words);
    for (const std::string &word : words)
        EXPECT_EQ(Words("lowering").count(word), 1u) << word;
}

TEST_F(ApiExplain, ThePolicyIsAReason) {
    Explain(kMatmul + "y = Quantize(m)", QDQ_POLICY_SINGLE);
    EXPECT_EQ(Op("m").how, QDQ_EXPLAIN_ALONE);
    EXPECT_STREQ(Reason(Op("m"), QDQ_EXPLAIN_NEAREST)->word, "policy");
    EXPECT_STREQ(Reason(Op("m"), QDQ_EXPLAIN_NEAREST)->who, "x8_matmul_post_ops");
    EXPECT_STREQ(Reason(Op("y"), QDQ_EXPLAIN_NEAREST)->word, "policy");
    EXPECT_EQ(Op("b").how, QDQ_EXPLAIN_FOLDED);
    EXPECT_EQ(Op("b").n_reasons, 0u);
}

TEST_F(ApiExplain, ADequantizeOfTwoChainsIsFusedInBoth) {
    Explain("x:u8 2x4; w:s8 4x8 const; v:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); c = Dequantize(v); "
            "m = MatMul(a, b); n = MatMul(a, c); y = Quantize(m); z = Quantize(n)");
    ASSERT_EQ(qdq_explanation_n_parts(e_), 2u);
    EXPECT_EQ(Op("a").how, QDQ_EXPLAIN_FUSED);
    // The float is needed too: it costs a step of its own.
    Explain("x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); "
            "m = MatMul(a, b); y = Quantize(m); out a y");
    ASSERT_EQ(qdq_explanation_n_parts(e_), 2u);
    EXPECT_EQ(Op("a").how, QDQ_EXPLAIN_ALONE);
    EXPECT_GT(Op("a").n_reasons, 0u);
}

TEST_F(ApiExplain, AReshapeIsAView) {
    Explain("x:f32 2x4; r = StaticReshape(x) {shape=[4,2] special_zero=false}; s = SoftMax(r) {axis=-1}; "
            "t = GenIndex(s) {axis=0}");
    EXPECT_EQ(Op("r").how, QDQ_EXPLAIN_VIEW);
    EXPECT_GT(Op("r").n_reasons, 0u);
}

TEST_F(ApiExplain, AGraphThatDoesNotCompileIsExplainedAllTheSame) {
    Explain("x:u8 ?x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b); y = Quantize(m)");
    ASSERT_NE(qdq_explanation_compile_error(e_), nullptr);
    EXPECT_NE(std::string(qdq_explanation_compile_error(e_)).find("not known"), std::string::npos);
    ASSERT_EQ(qdq_explanation_n_parts(e_), 1u);
    EXPECT_EQ(qdq_explanation_part(e_, 0)->n_steps, 0u);
    EXPECT_EQ(qdq_explanation_part(e_, 0)->how, QDQ_EXPLAIN_FUSED);
    EXPECT_EQ(Op("m").how, QDQ_EXPLAIN_FUSED);
}

TEST_F(ApiExplain, OutlivesGraphAndEngine) {
    Explain(kMatmul + "s = SoftMax(m) {axis=-1}");
    qdqi_graph_release(graph_);
    graph_ = nullptr;
    qdq_engine_destroy(&engine_);
    EXPECT_STREQ(Op("s").kind, "SoftMax");
}

TEST_F(ApiExplain, WrongCalls) {
    qdq_error err = {};
    Explain(kMatmul + "y = Quantize(m)");
    qdq_explanation *e = nullptr;
    EXPECT_EQ(qdq_explanation_create(nullptr, engine_, nullptr, &e, &err), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_explanation_create(graph_, nullptr, nullptr, &e, &err), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdq_explanation_create(graph_, engine_, nullptr, nullptr, &err), QDQ_E_NULL_ARG);
    qdq_session_options options = {};
    options.struct_bytes = 1;
    EXPECT_EQ(qdq_explanation_create(graph_, engine_, &options, &e, &err), QDQ_E_BAD_ARG);
    qdq_graph *open = nullptr;
    ASSERT_EQ(qdq_graph_create(&open, &err), QDQ_OK);
    EXPECT_EQ(qdq_explanation_create(open, engine_, nullptr, &e, &err), QDQ_E_BAD_STATE);
    qdq_graph_destroy(&open);
    EXPECT_EQ(e, nullptr);
    EXPECT_EQ(qdq_explanation_op(e_, 5), nullptr);
    EXPECT_EQ(qdq_explanation_part(e_, 1), nullptr);
    EXPECT_EQ(qdq_explanation_op(nullptr, 0), nullptr);
    EXPECT_EQ(qdq_explanation_part(nullptr, 0), nullptr);
    EXPECT_EQ(qdq_explanation_n_ops(nullptr), 0u);
    EXPECT_EQ(qdq_explanation_n_parts(nullptr), 0u);
    EXPECT_EQ(qdq_explanation_compile_error(nullptr), nullptr);
    qdq_explanation_destroy(nullptr);
    qdq_explanation_destroy(&e);
    qdq_reason_info reason;
    EXPECT_EQ(qdq_backend_reason(qdq_backend_n_reasons(), &reason, &err), QDQ_E_NOT_FOUND);
    qdq_pattern_info pattern;
    EXPECT_EQ(qdq_backend_pattern_info(qdq_backend_n_patterns(), &pattern, &err), QDQ_E_NOT_FOUND);
}

TEST(ApiVocabulary, WordsHaveSentencesAndAreUniqueInTheirGroup) {
    std::set<std::string> seen;
    for (size_t i = 0; i < qdq_backend_n_reasons(); i++) {
        qdq_reason_info info;
        ASSERT_EQ(qdq_backend_reason(i, &info, nullptr), QDQ_OK);
        EXPECT_TRUE(seen.insert(std::string(info.group) + " " + info.word).second) << info.word;
        EXPECT_GT(std::strlen(info.sentence), 8u) << info.word;
        EXPECT_EQ(std::strspn(info.word, "abcdefghijklmnopqrstuvwxyz0123456789_"), std::strlen(info.word));
    }
    EXPECT_EQ(Words("match").count("none"), 0u);
    EXPECT_GT(Words("lowering").size(), 50u);
}

TEST(ApiVocabulary, PatternsComeWithTheirPictures) {
    std::set<std::string> closed;
    std::string family;
    for (size_t i = 0; i < qdq_backend_n_patterns(); i++) {
        qdq_pattern_info info;
        ASSERT_EQ(qdq_backend_pattern_info(i, &info, nullptr), QDQ_OK);
        EXPECT_STREQ(info.name, qdq_backend_pattern(i));
        EXPECT_GT(info.n_required, 0u);
        EXPECT_STRNE(info.recipe, "unknown") << info.name;
        ASSERT_GT(std::strlen(info.picture), 0u) << info.name;
        EXPECT_EQ(info.picture[std::strlen(info.picture) - 1], '\n') << info.name;
        if (family != info.family) {
            EXPECT_TRUE(closed.insert(info.family).second) << info.family;
        }
        family = info.family;
    }
    const char *name = nullptr, *text = nullptr;
    EXPECT_TRUE(qdq_backend_pattern_set(0, &name, &text));
    EXPECT_FALSE(qdq_backend_pattern_set(1000, &name, &text));
    EXPECT_NE(qdq_get_api(1)->explanation_create, nullptr);
    EXPECT_NE(qdq_get_api(1)->backend_pattern_set, nullptr);
}

// Every case of the tree: all words are in the vocabulary, every op is accounted for.
TEST(ApiExplainCases, EveryReasonIsInTheVocabulary) {
    const std::string folder = std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/";
    const std::set<std::string> match = Words("match"), guard = Words("guard"), lowering = Words("lowering");
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, nullptr), QDQ_OK);
    DIR *dir = opendir(folder.c_str());
    ASSERT_NE(dir, nullptr);
    size_t n = 0;
    while (const dirent *entry = readdir(dir)) {
        const std::string name = entry->d_name;
        if (name.size() < 5 || name.compare(name.size() - 5, 5, ".json") != 0) continue;
        SCOPED_TRACE(name);
        n++;
        qdq_graph *graph = nullptr;
        qdq_explanation *e = nullptr;
        qdq_error err = {};
        EXPECT_EQ(qdq_json_load_file((folder + name).c_str(), nullptr, &graph, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_graph_finalize(graph, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_explanation_create(graph, engine, nullptr, &e, &err), QDQ_OK) << err.text;
        const auto check = [&](const qdq_explain_reason *reasons, size_t n_reasons) {
            for (size_t i = 0; i < n_reasons; i++) {
                const qdq_explain_reason &r = reasons[i];
                const bool refusal = r.source == QDQ_EXPLAIN_REFUSAL;
                EXPECT_EQ((refusal ? lowering : match).count(r.word), 1u) << r.text;
                if (r.guard != nullptr) {
                    EXPECT_EQ(guard.count(r.guard), 1u) << r.text;
                }
                EXPECT_GT(std::strlen(r.sentence), 0u) << r.text;
            }
        };
        for (size_t i = 0; i < qdq_explanation_n_ops(e); i++) {
            const qdq_explain_op *op = qdq_explanation_op(e, i);
            check(op->reasons, op->n_reasons);
            EXPECT_EQ(op->n_reasons == 0, op->how == QDQ_EXPLAIN_FUSED || op->how == QDQ_EXPLAIN_FOLDED) << op->name;
        }
        for (size_t i = 0; i < qdq_explanation_n_parts(e); i++)
            check(qdq_explanation_part(e, i)->reasons, qdq_explanation_part(e, i)->n_reasons);
        qdq_explanation_destroy(&e);
        qdq_graph_destroy(&graph);
    }
    closedir(dir);
    qdq_engine_destroy(&engine);
    EXPECT_GT(n, 50u);
}

// Refusals go to the explanation that the thread is making, and to no other.
TEST(ConcurrencyExplain, RefusalsStayWithTheirGraph) {
    const auto text = [](int i) {
        return i % 2 == 0 ? kMatmul + "y = Quantize(m)"
                          : std::string("x:f32 2x4; r = ReLU(x); q = Square(r); t = GenIndex(q) {axis=0}");
    };
    const auto count = [&](int i) {
        qdq_graph *graph = nullptr;
        qdq_engine *engine = nullptr;
        qdq_explanation *e = nullptr;
        qdq_error err = {};
        size_t n = 0;
        EXPECT_EQ(qh_graph_from_text(text(i).c_str(), &graph, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
        EXPECT_EQ(qdq_explanation_create(graph, engine, nullptr, &e, &err), QDQ_OK) << err.text;
        for (size_t p = 0; p < qdq_explanation_n_parts(e); p++)
            n += qdq_explanation_part(e, p)->n_reasons;
        qdq_explanation_destroy(&e);
        qdq_engine_destroy(&engine);
        qdqi_graph_release(graph);
        return n;
    };
    const size_t wanted[2] = {count(0), count(1)};
    EXPECT_GT(wanted[1], 0u);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 5; k++)
                EXPECT_EQ(count(i), wanted[i % 2]);
        });
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace
