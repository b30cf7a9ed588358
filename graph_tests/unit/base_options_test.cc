// Option structs of callers that were built against another header, at every function that takes one.
#include "base/options.h"
#include "json_helpers.h"

#include <cstring>
#include <functional>

using namespace json_test;

namespace {

struct Options2 {
    size_t struct_bytes;
    int64_t a, b;
};

TEST(BaseOptions, FewerAndMoreFieldsThanThisVersionKnows) {
    Options2 own;
    qdq_error err = {};
    ASSERT_EQ(qdqi_options_read(nullptr, "t", &own, sizeof own, &err), QDQ_OK);
    EXPECT_EQ(own.struct_bytes, sizeof own);
    EXPECT_EQ(own.a, 0);
    const Options2 older = {offsetof(Options2, b), 1, 2};
    ASSERT_EQ(qdqi_options_read(&older, "t", &own, sizeof own, &err), QDQ_OK);
    EXPECT_EQ(own.struct_bytes, sizeof own);
    EXPECT_EQ(own.a, 1);
    EXPECT_EQ(own.b, 0) << "not the caller's";
    struct {
        Options2 known;
        int64_t c;
    } newer = {{sizeof newer, 3, 4}, 0};
    ASSERT_EQ(qdqi_options_read(&newer, "t", &own, sizeof own, &err), QDQ_OK);
    EXPECT_EQ(own.b, 4);
    newer.c = 1;
    EXPECT_EQ(qdqi_options_read(&newer, "t", &own, sizeof own, &err), QDQ_E_BAD_ARG);
    const Options2 none = {0, 1, 2};
    EXPECT_EQ(qdqi_options_read(&none, "qdq_t", &own, sizeof own, &err), QDQ_E_BAD_ARG);
    EXPECT_STREQ(err.text, "qdq_t: struct_bytes is 0, expected sizeof(qdq_t)");
}

// As a caller with one more field, and one that forgot the size.
template <class T> void Everywhere(const std::function<qdq_status(const T *, qdq_error *)> &call) {
    struct {
        T known;
        void *more;
    } newer = {};
    qdq_error err = {};
    newer.known.struct_bytes = sizeof newer;
    EXPECT_EQ(call(&newer.known, &err), QDQ_OK) << err.text;
    newer.more = &newer;
    EXPECT_EQ(call(&newer.known, &err), QDQ_E_BAD_ARG);
    newer.known.struct_bytes = 0;
    EXPECT_EQ(call(&newer.known, &err), QDQ_E_BAD_ARG);
    EXPECT_NE(std::string(err.text).find("struct_bytes is 0"), std::string::npos) << err.text;
}

TEST(BaseOptions, AreReadAlikeByAll) {
    const std::string text = Graph(Op(1, "ReLU", "", Tensor(0, "f32", "2", "1"), Tensor(1, "f32", "2", "1")));
    const std::string model = Slurp(std::string(QDQ_SOURCE_DIR) + "/graph_tests/cases/onnx/tiny.onnx");
    Everywhere<qdq_engine_options>([](const qdq_engine_options *o, qdq_error *err) {
        qdq_engine *engine = nullptr;
        const qdq_status st = qdq_engine_create(o, &engine, err);
        qdq_engine_destroy(&engine);
        return st;
    });
    Everywhere<qdq_json_options>([&](const qdq_json_options *o, qdq_error *err) {
        qdq_graph *graph = nullptr;
        const qdq_status st = qdq_json_load_bytes(text.data(), text.size(), o, &graph, err);
        qdq_graph_destroy(&graph);
        return st;
    });
    Everywhere<qdq_onnx_options>([&](const qdq_onnx_options *o, qdq_error *err) {
        qdq_graph *graph = nullptr;
        const qdq_status st = qdq_onnx_load_bytes(model.data(), model.size(), o, &graph, err);
        qdq_graph_destroy(&graph);
        return st;
    });
    const Loaded g = Load(text);
    qdq_engine *engine = nullptr;
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, nullptr), QDQ_OK);
    Everywhere<qdq_session_options>([&](const qdq_session_options *o, qdq_error *err) {
        qdq_session *session = nullptr;
        const qdq_status st = qdq_session_create(g.graph, engine, o, &session, err);
        qdq_session_destroy(&session);
        return st;
    });
    Everywhere<qdq_session_options>([&](const qdq_session_options *o, qdq_error *err) {
        qdq_explanation *explanation = nullptr;
        const qdq_status st = qdq_explanation_create(g.graph, engine, o, &explanation, err);
        qdq_explanation_destroy(&explanation);
        return st;
    });
    qdq_engine_destroy(&engine);
}

} // namespace
