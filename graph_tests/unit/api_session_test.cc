// Sessions of very many partitions: what is told of each is its own, and making one takes a time that grows with the graph only.
#include "json_helpers.h"

using namespace json_test;

namespace {

TEST(ApiSession, TellsOfEveryOneOfManyPartitions) {
    const int n = 20000;
    std::string ops;
    for (int i = 0; i < n; i++) // all read tensor 0
        ops += (i == 0 ? "" : ",") + Op(i, i % 2 ? "ReLU" : "Abs", "", Tensor(0, "f32", "2, 3", "3, 1"),
                                        Tensor(i + 1, "f32", "2, 3", "3, 1"));
    const Loaded g = Load(Graph(ops));
    ASSERT_EQ(g.status, QDQ_OK) << g.error;
    qdq_engine *engine = nullptr;
    qdq_session *session = nullptr;
    qdq_error err = {};
    ASSERT_EQ(qdq_engine_create(nullptr, &engine, &err), QDQ_OK) << err.text;
    ASSERT_EQ(qdq_session_create(g.graph, engine, nullptr, &session, &err), QDQ_OK) << err.text;
    ASSERT_EQ(qdq_session_n_parts(session), static_cast<size_t>(n));
    std::string impls[2];
    for (size_t i = 0; i < static_cast<size_t>(n); i++) {
        qdq_session_part_info info = {};
        ASSERT_EQ(qdq_session_part(session, i, &info, &err), QDQ_OK) << err.text;
        const bool relu = std::string(info.ops) == "ReLU";
        std::string &impl = impls[relu];
        if (impl.empty()) impl = info.impl;
        ASSERT_STREQ(info.ops, relu ? "ReLU" : "Abs");
        ASSERT_EQ(info.impl, impl) << i; // one step, and not another partition's
    }
    EXPECT_NE(impls[0], impls[1]);
    EXPECT_EQ(impls[0].find(" + "), std::string::npos) << impls[0];
    std::vector<float> x = {-1, 2, -3, 4, -5, 6}, y(static_cast<size_t>(n) * 6);
    const void *in[] = {x.data()};
    std::vector<void *> out;
    for (size_t i = 0; i < static_cast<size_t>(n); i++)
        out.push_back(&y[i * 6]);
    ASSERT_EQ(qdq_session_run(session, in, 1, out.data(), out.size(), &err), QDQ_OK) << err.text;
    for (size_t i = 0; i < y.size(); i++) {
        const float v = x[i % 6];
        ASSERT_EQ(y[i], i / 6 % 2 ? (v > 0 ? v : 0) : (v > 0 ? v : -v)) << i;
    }
    qdq_session_destroy(&session);
    qdq_engine_destroy(&engine);
}

} // namespace
