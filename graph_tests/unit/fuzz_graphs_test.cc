// Damaged graphs through everything that a user may do with them: load, finalize, explain, compile, run. What is refused is refused
// in one line; what is accepted runs, twice and on every partition of its own, and gives what the reference gives or fails as it does.
// The mutations are drawn from a fixed seed; QDQ_TEST_FUZZ=N makes N times as many.
#include "json_helpers.h"

#include "base/dtype.h"
#include "ir/graph.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>

using namespace json_test;

namespace {

using Bytes = std::vector<uint8_t>;

void ExpectOneLine(qdq_status st, const qdq_error &err) {
    EXPECT_EQ(err.status, st);
    EXPECT_NE(err.text[0], '\0') << qdq_status_text(st);
    EXPECT_EQ(std::string(err.text).find('\n'), std::string::npos) << err.text;
}

struct GraphDeleter {
    void operator()(qdq_graph *g) const { qdq_graph_destroy(&g); }
};
using Graph = std::unique_ptr<qdq_graph, GraphDeleter>;

class FuzzGraphs : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(qdq_engine_create(nullptr, &engine_, nullptr), QDQ_OK); }
    void TearDown() override { qdq_engine_destroy(&engine_); }

    static int Rounds(int n) {
        const char *times = std::getenv("QDQ_TEST_FUZZ");
        return n * (times ? std::max(1, std::atoi(times)) : 1);
    }
    uint64_t Draw(uint64_t n) { return random_() % n; }

    // What a run costs is bounded by what it reads and writes.
    bool IsSmall(const qdq_graph *g) const {
        double sum = 0;
        for (uint32_t v = 0; v < g->n_values; v++) {
            const qdq_tensor_desc &d = g->values[v].desc;
            if (d.ndims < 0) return false;
            double n = 1;
            for (int32_t i = 0; i < d.ndims; i++) {
                if (d.dims[i] < 0) return false;
                n *= static_cast<double>(d.dims[i]);
                if (d.layout == QDQ_LAYOUT_STRIDED)
                    n = std::max(n, static_cast<double>(d.dims[i]) * static_cast<double>(d.strides[i]));
            }
            sum += n;
        }
        return sum < limit_;
    }

    Bytes Content(const qdq_tensor_desc &desc) {
        size_t bytes = 0;
        if (qdq_tensor_desc_size_bytes(&desc, &bytes, nullptr) != QDQ_OK) return {};
        Bytes data(bytes + 64);
        const size_t bits = qdq_dtype_bits(desc.dtype);
        for (size_t i = 0; i < data.size(); i++)
            data[i] = static_cast<uint8_t>(Draw(256));
        if (bits < 8) return data;
        for (size_t i = 0; i < bytes * 8 / bits; i++) {
            if (qdqi_dtype_is_float(desc.dtype))
                qdqi_store_f32(data.data(), desc.dtype, static_cast<int64_t>(i),
                               static_cast<float>(Draw(65)) / 8 - 3.875f);
            else if (desc.dtype == QDQ_DTYPE_S32 || desc.dtype == QDQ_DTYPE_S64)
                qdqi_store_i64(data.data(), desc.dtype, static_cast<int64_t>(i), static_cast<int64_t>(Draw(12)) - 2);
            else if (desc.dtype == QDQ_DTYPE_BOOLEAN)
                data[i] &= 1;
        }
        return data;
    }

    // Explanation: every pointer of it is followed.
    void Explain(const qdq_graph *graph) {
        qdq_error err = {};
        qdq_explanation *e = nullptr;
        const qdq_status st = qdq_explanation_create(graph, engine_, nullptr, &e, &err);
        if (st != QDQ_OK) return ExpectOneLine(st, err);
        size_t n = 0;
        for (size_t i = 0; i < qdq_explanation_n_ops(e); i++) {
            const qdq_explain_op *op = qdq_explanation_op(e, i);
            n += std::strlen(op->kind) + std::strlen(op->name);
            for (size_t k = 0; k < op->n_reasons; k++)
                n += std::strlen(op->reasons[k].text) + std::strlen(op->reasons[k].word);
        }
        for (size_t i = 0; i < qdq_explanation_n_parts(e); i++) {
            const qdq_explain_part *part = qdq_explanation_part(e, i);
            n += std::strlen(part->pattern) + std::strlen(part->recipe);
            for (size_t k = 0; k < part->n_steps; k++)
                n += std::strlen(part->steps[k].note);
        }
        EXPECT_GE(n, qdq_explanation_n_ops(e));
        qdq_explanation_destroy(&e);
    }

    struct Tensors {
        std::vector<Bytes> data;
        std::vector<qdq_tensor> t;
        void Add(const qdq_tensor_desc &desc, Bytes bytes) {
            data.push_back(std::move(bytes));
            t.push_back({desc, data.back().data()});
        }
    };

    // Partitions one by one: any result that is not an error will do, the reference is compared with the session.
    void RunParts(const qdq_graph *graph) {
        qdq_error err = {};
        qdq_partition_list *list = nullptr;
        qdq_status st = qdq_graph_partition(graph, QDQ_POLICY_FUSION, &list, &err);
        if (st != QDQ_OK) return ExpectOneLine(st, err);
        for (size_t i = 0; i < qdq_partition_list_count(list); i++) {
            const qdq_partition *part = qdq_partition_list_get(list, i);
            std::vector<qdq_tensor_desc> in(qdq_partition_n_inputs(part)), out(qdq_partition_n_outputs(part));
            for (size_t k = 0; k < in.size(); k++)
                ASSERT_EQ(qdq_partition_input(part, k, &in[k], &err), QDQ_OK);
            for (size_t k = 0; k < out.size(); k++) {
                ASSERT_EQ(qdq_partition_output(part, k, &out[k], &err), QDQ_OK);
                if (Draw(2)) out[k].layout = QDQ_LAYOUT_ANY;
            }
            qdq_compiled *compiled = nullptr;
            st = qdq_partition_compile(part, engine_, in.data(), in.size(), out.data(), out.size(), &compiled, &err);
            if (st != QDQ_OK) {
                ExpectOneLine(st, err);
                continue;
            }
            Tensors ins, outs;
            for (qdq_tensor_desc &d : in) {
                ASSERT_EQ(qdq_compiled_desc(compiled, d.id, &d, &err), QDQ_OK);
                ins.Add(d, Content(d));
            }
            for (qdq_tensor_desc &d : out) {
                ASSERT_EQ(qdq_compiled_desc(compiled, d.id, &d, &err), QDQ_OK);
                outs.Add(d, Content(d));
            }
            st = qdq_compiled_execute(compiled, ins.t.data(), ins.t.size(), outs.t.data(), outs.t.size(), &err);
            if (st != QDQ_OK) ExpectOneLine(st, err);
            qdq_compiled_destroy(&compiled);
        }
        qdq_partition_list_destroy(&list);
    }

    void RunSession(const qdq_graph *graph) {
        qdq_error err = {};
        qdq_session *session = nullptr;
        qdq_status st = qdq_session_create(graph, engine_, nullptr, &session, &err);
        if (st != QDQ_OK) return ExpectOneLine(st, err);
        Tensors ins, outs, want;
        for (size_t i = 0; i < qdq_session_n_inputs(session); i++) {
            qdq_tensor_desc d;
            ASSERT_EQ(qdq_session_input_desc(session, i, &d, nullptr, &err), QDQ_OK);
            ins.Add(d, Content(d));
        }
        for (size_t i = 0; i < qdq_session_n_outputs(session); i++) {
            qdq_tensor_desc d;
            ASSERT_EQ(qdq_session_output_desc(session, i, &d, nullptr, &err), QDQ_OK);
            outs.Add(d, Content(d));
            want.Add(d, outs.data.back()); // gaps between strides are nobody's to write
        }
        std::vector<const void *> in;
        std::vector<void *> out;
        for (const qdq_tensor &t : ins.t)
            in.push_back(t.data);
        for (const qdq_tensor &t : outs.t)
            out.push_back(t.data);
        for (int run = 0; run < 2; run++) {
            st = qdq_session_run(session, in.data(), in.size(), out.data(), out.size(), &err);
            if (st != QDQ_OK) ExpectOneLine(st, err);
        }
        qdq_session_destroy(&session);
        qdq_error ref_err = {};
        const qdq_status ref =
            qdq_graph_run_reference(graph, ins.t.data(), ins.t.size(), want.t.data(), want.t.size(), &ref_err);
        if (ref != QDQ_OK) ExpectOneLine(ref, ref_err);
        n_run_ += st == QDQ_OK;
        if (st != QDQ_OK && ref == QDQ_OK) ADD_FAILURE() << "the reference runs it, a session does not: " << err.text;
        if (st == QDQ_OK && ref == QDQ_OK) Compare(outs, want);
    }

    // How far results stray (a damaged graph may amplify a last digit): printed for who looks for wrong numbers.
    void Compare(const Tensors &got, const Tensors &want) {
        for (size_t i = 0; i < got.t.size(); i++) {
            const qdq_tensor_desc &d = got.t[i].desc;
            size_t bytes = 0;
            if (qdq_tensor_desc_size_bytes(&d, &bytes, nullptr) != QDQ_OK || qdq_dtype_bits(d.dtype) < 8) continue;
            const auto n = static_cast<int64_t>(bytes * 8 / qdq_dtype_bits(d.dtype));
            double most = 0, largest = 0;
            for (int64_t k = 0; k < n; k++) {
                const double g = qdqi_load_f64(got.t[i].data, d.dtype, k),
                             w = qdqi_load_f64(want.t[i].data, d.dtype, k);
                if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
                if (g != w && !(std::isnan(g) && std::isnan(w)))
                    most = std::max(most, std::isnan(g - w) ? 1e30 : std::fabs(g - w));
            }
            const bool strays = qdqi_dtype_is_float(d.dtype) ? most > 1e-2 * largest : most > 1;
            n_strayed_ += strays;
            if (strays && std::getenv("QDQ_TEST_FUZZ_TEXT"))
                std::printf("strays by %g of %g, tensor %llu %s:\n%s\n", most, largest, (unsigned long long)d.id,
                            qdq_dtype_name(d.dtype), text_.c_str());
        }
    }

    // `load` makes the graph anew, not finalized.
    template <class Load> void Everything(const Load &load) {
        qdq_error err = {};
        Graph first(load(&err));
        if (!first) return;
        qdq_status st = qdq_graph_finalize(first.get(), &err);
        if (st != QDQ_OK) return ExpectOneLine(st, err);
        if (!IsSmall(first.get())) return;
        Graph graph(load(&err));
        ASSERT_TRUE(graph) << "the second time: " << err.text;
        std::vector<Bytes> constants;
        for (size_t i = 0; i < qdq_graph_n_inputs(first.get()); i++) {
            qdq_tensor_desc d;
            ASSERT_EQ(qdq_graph_input_desc(first.get(), i, &d, nullptr, &err), QDQ_OK);
            size_t bytes = 0;
            if (d.property != QDQ_PROPERTY_CONSTANT || qdq_tensor_desc_size_bytes(&d, &bytes, &err) != QDQ_OK) continue;
            constants.push_back(Content(d));
            st = qdq_graph_set_constant(graph.get(), &d, constants.back().data(), bytes, QDQ_DATA_COPY, &err);
            if (st != QDQ_OK) return ExpectOneLine(st, err);
        }
        st = qdq_graph_finalize(graph.get(), &err);
        if (st != QDQ_OK) return ExpectOneLine(st, err);
        if (!IsSmall(graph.get())) return;
        n_accepted_++;
        Explain(graph.get());
        RunParts(graph.get());
        RunSession(graph.get());
    }

    qdq_engine *engine_ = nullptr;
    std::mt19937_64 random_{20240601};
    double limit_ = 40000; // elements of all tensors
    int n_accepted_ = 0, n_run_ = 0, n_strayed_ = 0;
    std::string text_;
};

// ---- JSON: values of the same key from anywhere in the corpus, and numbers at the edges ----

struct Token {
    size_t at, n;
    std::string key;
};

// Strings and numbers that are values, with the key they belong to (all of an array to the array's).
std::vector<Token> Values(const std::string &text) {
    std::vector<Token> out;
    std::string key;
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '"') {
            const size_t end = text.find('"', i + 1);
            if (end == std::string::npos) break;
            size_t next = text.find_first_not_of(" \n\t", end + 1);
            if (next != std::string::npos && text[next] == ':')
                key = text.substr(i + 1, end - i - 1);
            else
                out.push_back({i, end + 1 - i, key});
            i = end + 1;
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            const size_t end = text.find_first_not_of("0123456789+-.eE", i);
            out.push_back({i, (end == std::string::npos ? text.size() : end) - i, key});
            i += out.back().n;
        } else {
            i++;
        }
    }
    return out;
}

class FuzzJson : public FuzzGraphs {
  protected:
    void SetUp() override {
        FuzzGraphs::SetUp();
        const std::string folder = std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases";
        std::vector<std::string> names;
        DIR *dir = opendir(folder.c_str());
        ASSERT_NE(dir, nullptr);
        while (const dirent *entry = readdir(dir))
            if (std::string(entry->d_name).find(".json") != std::string::npos) names.push_back(entry->d_name);
        closedir(dir);
        std::sort(names.begin(), names.end()); // the same draw everywhere
        for (const std::string &name : names) {
            corpus_.push_back(Slurp(folder + "/" + name));
            for (const Token &t : Values(corpus_.back()))
                by_key_[t.key].push_back(corpus_.back().substr(t.at, t.n));
        }
        ASSERT_GT(corpus_.size(), 50u);
    }
    std::string Mutate(std::string text) {
        static const char *const edges[] = {"0",
                                            "1",
                                            "2",
                                            "3",
                                            "5",
                                            "7",
                                            "8",
                                            "16",
                                            "17",
                                            "64",
                                            "-1",
                                            "-2",
                                            "-3",
                                            "255",
                                            "4611686018427387904",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "2147483648",
                                            "0.5",
                                            "-0.25",
                                            "1e-40",
                                            "3e38"};
        if (Draw(2)) // the strides go with the shapes
            for (size_t at = 0; (at = text.find("\"strided\"", at)) != std::string::npos; at++)
                text.replace(at, 9, "\"any\"");
        if (Draw(2)) { // one size everywhere
            const std::vector<Token> tokens = Values(text);
            const Token &t = tokens[Draw(tokens.size())];
            const std::string from = text.substr(t.at, t.n), to = edges[Draw(10)];
            for (auto k = tokens.rbegin(); k != tokens.rend() && t.key == "shape"; ++k)
                if (k->key == t.key && text.compare(k->at, k->n, from) == 0) text.replace(k->at, k->n, to);
        }
        const uint64_t n = Draw(4);
        for (uint64_t k = 0; k < n; k++) {
            const std::vector<Token> tokens = Values(text);
            const Token &t = tokens[Draw(tokens.size())];
            const std::vector<std::string> &same = by_key_[t.key];
            const bool number = text[t.at] != '"';
            const std::string with =
                number && Draw(3) == 0 ? edges[Draw(sizeof edges / sizeof edges[0])] : same[Draw(same.size())];
            text.replace(t.at, t.n, with);
        }
        return text;
    }
    std::vector<std::string> corpus_;
    std::map<std::string, std::vector<std::string>> by_key_;
};

TEST_F(FuzzJson, MutatedCasesThroughEverything) {
    const int rounds = Rounds(4000);
    for (int round = 0; round < rounds && !HasFatalFailure(); round++) {
        text_ = Mutate(corpus_[Draw(corpus_.size())]);
        SCOPED_TRACE(HasFailure() ? "" : text_);
        Everything([&](qdq_error *err) {
            qdq_graph *graph = nullptr;
            const qdq_status st = qdq_json_load_bytes(text_.data(), text_.size(), nullptr, &graph, err);
            if (st != QDQ_OK) ExpectOneLine(st, *err);
            return graph;
        });
    }
    EXPECT_GT(n_accepted_, rounds / 10);
    EXPECT_GT(n_run_, rounds / 10);
    EXPECT_LE(n_strayed_, n_run_ / 50) << "of " << n_run_;
}

// ---- ONNX: bytes ----

class FuzzOnnx : public FuzzGraphs, public testing::WithParamInterface<const char *> {};

TEST_P(FuzzOnnx, MutatedModelsThroughEverything) {
    const std::string whole = Slurp(std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/onnx/" + GetParam());
    ASSERT_GT(whole.size(), 100u);
    limit_ = 300000;
    const int rounds = Rounds(whole.size() > 20000 ? 60 : 600);
    for (int round = 0; round < rounds && !HasFatalFailure(); round++) {
        std::string bytes = whole;
        for (uint64_t k = 0; k <= Draw(3); k++)
            bytes[Draw(bytes.size())] = static_cast<char>(Draw(3) ? Draw(256) : Draw(4));
        text_ = GetParam();
        Everything([&](qdq_error *err) {
            qdq_graph *graph = nullptr;
            const qdq_status st = qdq_onnx_load_bytes(bytes.data(), bytes.size(), nullptr, &graph, err);
            if (st != QDQ_OK) ExpectOneLine(st, *err);
            return graph;
        });
    }
    EXPECT_GT(n_accepted_, rounds / 20);
    EXPECT_LE(n_strayed_, n_run_ / 50) << "of " << n_run_;
}

INSTANTIATE_TEST_SUITE_P(Models, FuzzOnnx,
                         testing::Values("tiny.onnx", "forms.onnx", "ops_quant_13.onnx", "ops_21.onnx",
                                         "ops_quant_21.onnx", "ops_shape_13.onnx", "ops_ms.onnx"),
                         [](const auto &info) {
                             std::string name = info.param;
                             for (char &c : name)
                                 if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                             return name;
                         });

} // namespace
