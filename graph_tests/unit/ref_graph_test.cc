// The reference executor, and properties that hold for every op: strides, zero sizes, ranks.
#include "ref_run.h"

#include "base/alloc.h"

#include <map>

using namespace ref_run;

namespace {

struct Graph {
    qdq_graph *graph = nullptr;
    qdq_error err = {};
    uint64_t next_op = 1;
    Graph() { EXPECT_EQ(qdqi_graph_create(&graph, &err), QDQ_OK); }
    ~Graph() { qdqi_graph_release(graph); }
    void op(const char *kind, const std::vector<Attr> &attrs, std::vector<qdq_tensor_desc> in,
            std::vector<qdq_tensor_desc> out) {
        std::vector<const qdq_tensor_desc *> ins, outs;
        for (auto &d : in)
            ins.push_back(&d);
        for (auto &d : out)
            outs.push_back(&d);
        qdq_status status = QDQ_OK;
        add_op(graph, next_op++, kind, attrs, ins, outs, &status, &err);
        ASSERT_EQ(status, QDQ_OK) << err.text;
    }
    void finalize() { ASSERT_EQ(qdqi_graph_finalize(graph, qdqi_ref_fold, &err), QDQ_OK) << err.text; }
    qdq_status run(const std::vector<Tensor *> &in, const std::vector<Tensor *> &out) {
        std::vector<qdq_tensor> ins, outs;
        for (Tensor *t : in)
            ins.push_back({t->desc, t->bytes.data()});
        for (Tensor *t : out)
            outs.push_back({t->desc, t->bytes.data()});
        return qdqi_ref_graph(graph, ins.data(), ins.size(), outs.data(), outs.size(), &err);
    }
};

Tensor with_id(uint64_t id, Tensor t) {
    t.desc.id = id;
    return t;
}
qdq_tensor_desc unknown(uint64_t id, qdq_dtype dtype = QDQ_DTYPE_F32) {
    qdq_tensor_desc desc = {};
    desc.id = id;
    desc.dtype = dtype;
    desc.ndims = QDQ_NDIMS_UNKNOWN;
    desc.layout = QDQ_LAYOUT_ANY;
    return desc;
}

// 1 -> Square -> 2 -> Add(2, 1) -> 3 -> ReLU -> 4; 2 -> Sqrt -> 5
void diamond(Graph &g, const Dims &dims) {
    const qdq_tensor_desc x = dense_desc(1, QDQ_DTYPE_F32, dims);
    g.op("Square", {}, {x}, {unknown(2)});
    g.op("Add", {}, {unknown(2), x}, {unknown(3)});
    g.op("ReLU", {}, {unknown(3)}, {unknown(4)});
    g.op("Sqrt", {}, {unknown(2)}, {unknown(5)});
    g.finalize();
}

TEST(RefGraph, AnyTensorMayBeAskedFor) {
    Graph g;
    diamond(g, {3});
    Tensor x = with_id(1, f32({3}, {-3, .5, 2}));
    const std::map<uint64_t, Values> expected = {
        {1, {-3, .5, 2}}, {2, {9, .25, 4}}, {3, {6, .75, 6}}, {4, {6, .75, 6}}, {5, {3, .5, 2}}};
    for (const auto &e : expected) {
        Tensor y = with_id(e.first, f32({3}, {}));
        ASSERT_EQ(g.run({&x}, {&y}), QDQ_OK) << g.err.text;
        EXPECT_EQ(y.values(), e.second) << e.first;
    }
    Tensor a = with_id(5, f32({3}, {})), b = with_id(2, f32({3}, {})), c = with_id(4, f32({3}, {}));
    Tensor again = with_id(2, Tensor(QDQ_DTYPE_F32, {3}, {}, {2})); /* twice, with other strides */
    ASSERT_EQ(g.run({&x}, {&a, &b, &c, &again}), QDQ_OK) << g.err.text;
    EXPECT_EQ(a.values(), expected.at(5));
    EXPECT_EQ(b.values(), expected.at(2));
    EXPECT_EQ(c.values(), expected.at(4));
    EXPECT_EQ(again.values(), expected.at(2));
}

TEST(RefGraph, InputsAndOutputsMayBeStrided) {
    Graph g;
    diamond(g, {2, 3});
    Tensor x = with_id(1, Tensor(QDQ_DTYPE_F32, {2, 3}, {1, 2, 3, 4, 5, 6}, {1, 2}));
    Tensor y = with_id(4, Tensor(QDQ_DTYPE_F32, {2, 3}, {}, {8, 2}));
    ASSERT_EQ(g.run({&x}, {&y}), QDQ_OK) << g.err.text;
    EXPECT_EQ(y.values(), (Values{2, 6, 12, 20, 30, 42}));
    for (int64_t gap : {1, 3, 5, 6, 7}) /* what lies between the elements is not touched */
        for (int b = 0; b < 4; b++)
            EXPECT_EQ(y.bytes[(size_t)gap * 4 + (size_t)b], 0xa5);
}

TEST(RefGraph, FindsShapesAtRun) {
    Graph g;
    qdq_tensor_desc x = dense_desc(1, QDQ_DTYPE_F32, {2, 3});
    x.dims[0] = QDQ_DIM_UNKNOWN;
    x.layout = QDQ_LAYOUT_ANY;
    g.op("MatMul", {B("transpose_b", true)}, {x, x}, {unknown(2)});
    g.op("ReLU", {}, {unknown(2)}, {unknown(3)});
    g.finalize();
    for (int64_t n : {1, 2, 5}) {
        Tensor in = with_id(1, f32({n, 3}, Values((size_t)n * 3, 2))), out = with_id(3, f32({n, n}, {}));
        ASSERT_EQ(g.run({&in}, {&out}), QDQ_OK) << g.err.text;
        EXPECT_EQ(out.values(), Values((size_t)(n * n), 12.0));
    }
}

TEST(RefGraph, FoldedOpsAreNotRunAgain) {
    Graph g;
    const Tensor shape = with_id(10, Tensor(QDQ_DTYPE_S64, {2}, {2, 3}));
    const Tensor two = with_id(11, Tensor(QDQ_DTYPE_S64, {1}, {1}));
    const qdq_tensor_desc x = dense_desc(1, QDQ_DTYPE_F32, {3, 2});
    g.op("Multiply", {}, {shape.desc, two.desc}, {unknown(12, QDQ_DTYPE_S64)});
    g.op("Reshape", {}, {x, unknown(12, QDQ_DTYPE_S64)}, {unknown(2)});
    for (const Tensor *t : {&shape, &two})
        ASSERT_EQ(qdqi_graph_set_constant(g.graph, &t->desc, t->bytes.data(), t->bytes.size(), QDQ_DATA_COPY, &g.err),
                  QDQ_OK);
    g.finalize();
    EXPECT_TRUE(g.graph->ops[0].folded);
    Tensor in = with_id(1, f32({3, 2}, {1, 2, 3, 4, 5, 6})), out = with_id(2, f32({2, 3}, {}));
    Tensor folded = with_id(12, Tensor(QDQ_DTYPE_S64, {2}));
    ASSERT_EQ(g.run({&in}, {&out, &folded}), QDQ_OK) << g.err.text;
    EXPECT_EQ(out.values(), in.values());
    EXPECT_EQ(folded.values(), (Values{2, 3}));
}

TEST(RefGraph, OpaqueOpsAreRefusedWhenNeededOnly) {
    Graph g;
    const qdq_tensor_desc x = dense_desc(1, QDQ_DTYPE_F32, {2});
    g.op("Wildcard", {}, {x}, {dense_desc(2, QDQ_DTYPE_F32, {2})});
    g.op("ReLU", {}, {x}, {unknown(3)});
    g.op("End", {}, {unknown(3)}, {});
    g.finalize();
    Tensor in = with_id(1, f32({2}, {1, -1})), wild = with_id(2, f32({2}, {})), relu = with_id(3, f32({2}, {}));
    EXPECT_EQ(g.run({&in}, {&wild}), QDQ_E_UNSUPPORTED);
    EXPECT_NE(std::string(g.err.text).find("Wildcard"), std::string::npos);
    ASSERT_EQ(g.run({&in}, {&relu}), QDQ_OK) << g.err.text;
    EXPECT_EQ(relu.values(), (Values{1, 0}));
}

TEST(RefGraph, RefusesWhatDoesNotFit) {
    Graph g;
    diamond(g, {3});
    Tensor x = with_id(1, f32({3}, {1, 2, 3})), y = with_id(4, f32({3}, {})), wrong = with_id(4, f32({4}, {}));
    Tensor half = with_id(1, Tensor(QDQ_DTYPE_F16, {3})), stranger = with_id(99, f32({3}, {}));
    EXPECT_EQ(g.run({}, {&y}), QDQ_E_BAD_ARG);
    EXPECT_EQ(g.run({&half}, {&y}), QDQ_E_BAD_DTYPE);
    EXPECT_EQ(g.run({&x}, {&wrong}), QDQ_E_BAD_SHAPE);
    EXPECT_EQ(g.run({&x}, {&stranger}), QDQ_E_NOT_FOUND);
    EXPECT_EQ(g.run({&x, &stranger}, {&y}), QDQ_E_NOT_FOUND);
    qdq_tensor in = {x.desc, nullptr}, out = {y.desc, y.bytes.data()};
    EXPECT_EQ(qdqi_ref_graph(g.graph, &in, 1, &out, 1, &g.err), QDQ_E_NULL_ARG);
    EXPECT_EQ(qdqi_ref_graph(nullptr, nullptr, 0, nullptr, 0, nullptr), QDQ_E_NULL_ARG);
}

TEST(RefGraph, EveryFailedAllocationIsAStatus) {
    Graph g;
    diamond(g, {3});
    Tensor x = with_id(1, Tensor(QDQ_DTYPE_F32, {3}, {1, 2, 3}, {2})), y = with_id(4, f32({3}, {}));
    const uint64_t before = qdqi_alloc_count();
    ASSERT_EQ(g.run({&x}, {&y}), QDQ_OK);
    const uint64_t n = qdqi_alloc_count() - before;
    ASSERT_GT(n, 0u);
    for (uint64_t i = 1; i <= n; i++) {
        qdqi_alloc_fail_at(i);
        const qdq_status status = g.run({&x}, {&y});
        qdqi_alloc_fail_at(0);
        EXPECT_EQ(status, QDQ_E_NO_MEMORY) << i;
    }
}

// A chain holds two intermediates at a time: the rest is freed.
TEST(RefGraph, IntermediatesAreFreedAfterTheirLastUse) {
    Graph g;
    const int64_t n = 1 << 20;
    const int length = 200;
    g.op("Abs", {}, {dense_desc(1, QDQ_DTYPE_F32, {n})}, {unknown(2)});
    for (int i = 2; i < length; i++)
        g.op("Abs", {}, {unknown((uint64_t)i)}, {unknown((uint64_t)i + 1)});
    g.finalize();
    Tensor x = with_id(1, f32({n}, Values((size_t)n, -1))), y = with_id(length, f32({n}, {}));
    ASSERT_EQ(g.run({&x}, {&y}), QDQ_OK) << g.err.text;
    EXPECT_EQ(y.get(n - 1), 1);
}

// The scratch bound is exact enough to run in, and running allocates nothing.
TEST(RefRun, StaysInItsScratchAndAllocatesNothing) {
    Graph g;
    const qdq_tensor_desc x = dense_desc(1, QDQ_DTYPE_F16, {5, 9}), w = dense_desc(2, QDQ_DTYPE_F16, {9, 7});
    const qdq_tensor_desc y = dense_desc(3, QDQ_DTYPE_F16, {5, 7});
    g.op("MatMul", {}, {x, w}, {y});
    g.finalize();
    const qdq_tensor_desc *in[] = {&x, &w}, *out[] = {&y};
    size_t bytes = 0;
    ASSERT_EQ(qdqi_ref_scratch_bytes(&g.graph->ops[0], in, out, &bytes, &g.err), QDQ_OK);
    unsigned char *scratch = (unsigned char *)qdqi_malloc_aligned(bytes + 64);
    memset(scratch, 0x5a, bytes + 64);
    Tensor a(QDQ_DTYPE_F16, {5, 9}, Values(45, 1)), b(QDQ_DTYPE_F16, {9, 7}, Values(63, 2)), c(QDQ_DTYPE_F16, {5, 7});
    const qdqi_ref_tensor ins[] = {{&x, a.bytes.data()}, {&w, b.bytes.data()}}, outs[] = {{&y, c.bytes.data()}};
    qdqi_ref_args args = {&g.graph->ops[0], 2, 1, ins, outs, scratch, bytes};
    const uint64_t before = qdqi_alloc_count();
    EXPECT_EQ(qdqi_ref_run(&args, &g.err), QDQ_OK) << g.err.text;
    EXPECT_EQ(qdqi_alloc_count(), before);
    EXPECT_EQ(c.values(), Values(35, 18.0));
    for (size_t i = 0; i < 64; i++)
        EXPECT_EQ(scratch[bytes + i], 0x5a);
    args.scratch_bytes = bytes - 1; /* too small is a status */
    EXPECT_EQ(qdqi_ref_run(&args, &g.err), QDQ_E_INTERNAL);
    qdqi_free_aligned(scratch);
}

// ---- properties ----

struct Case {
    const char *name, *kind;
    std::vector<Attr> attrs;
    std::vector<std::pair<qdq_dtype, Dims>> in;
    size_t n_out = 1;
    qdq_dtype out = QDQ_DTYPE_UNDEF;
};

const std::vector<Case> &cases() {
    const qdq_dtype F = QDQ_DTYPE_F32, H = QDQ_DTYPE_F16, U8 = QDQ_DTYPE_U8, S4 = QDQ_DTYPE_S4;
    static const std::vector<Attr> conv = {Is("strides", {2, 1}),   Is("pads_begin", {1, 0}),
                                           Is("pads_end", {0, 1}),  Is("dilations", {1, 2}),
                                           S("data_format", "NCX"), S("weights_format", "OIX")};
    static const std::vector<Case> table = {
        {"relu", "ReLU", {}, {{F, {2, 3, 4}}}},
        {"relu_f16", "ReLU", {}, {{H, {2, 3, 4}}}},
        {"add", "Add", {}, {{F, {2, 3, 4}}, {F, {3, 1}}}},
        {"matmul", "MatMul", {}, {{F, {2, 3, 4}}, {F, {4, 5}}}},
        {"conv", "Convolution", conv, {{F, {2, 4, 6, 5}}, {F, {6, 4, 3, 2}}, {F, {6}}}},
        {"softmax", "SoftMax", {}, {{F, {2, 5, 3}}}},
        {"transpose", "StaticTranspose", {Is("order", {2, 0, 1})}, {{F, {2, 3, 4}}}},
        {"transpose_s4", "StaticTranspose", {Is("order", {1, 0})}, {{S4, {3, 5}}}},
        {"concat", "Concat", {I("axis", 1)}, {{U8, {2, 3}}, {U8, {2, 4}}}},
        {"split", "Split", {I("axis", 1)}, {{F, {2, 4}}}, 2},
        {"quantize", "Quantize", {Fs("scales", {.25f}), Is("zps", {3})}, {{F, {3, 5}}}, 1, QDQ_DTYPE_S8},
        {"quantize_s4", "Quantize", {Fs("scales", {.25f}), Is("zps", {3})}, {{F, {3, 5}}}, 1, QDQ_DTYPE_S4},
        {"dequantize", "Dequantize", {Fs("scales", {.25f})}, {{U8, {3, 5}}}},
        {"reduce", "ReduceSum", {Is("axes", {1})}, {{F, {3, 5, 2}}}},
        {"layernorm", "LayerNorm", {}, {{F, {3, 5}}, {F, {5}}, {F, {5}}}, 3},
        {"where", "Where", {}, {{QDQ_DTYPE_BOOLEAN, {3, 1}}, {U8, {3, 4}}, {U8, {4}}}},
    };
    return table;
}

// Strides for dims that are not dense: dims in reverse order in memory, with a gap after every element.
Dims odd_strides(const Dims &dims) {
    Dims strides(dims.size());
    int64_t stride = 2;
    for (size_t d = 0; d < dims.size(); d++) {
        strides[d] = stride;
        stride *= dims[d] + 1;
    }
    return strides;
}

class RefProperty : public testing::TestWithParam<size_t> {};

TEST_P(RefProperty, StridesDoNotChangeValues) {
    const Case &c = cases()[GetParam()];
    Random random(GetParam());
    std::vector<Tensor> dense, strided, out_dense, out_strided;
    for (const auto &in : c.in) {
        Tensor a(in.first, in.second), b(in.first, in.second, {}, odd_strides(in.second));
        for (int64_t i = 0; i < a.n(); i++) {
            const double v = in.first == QDQ_DTYPE_BOOLEAN ? (double)random.range(0, 1)
                             : qdqi_dtype_is_int(in.first) ? (double)random.range(-8, 7)
                                                           : random.value();
            a.set(i, v);
            b.set(i, v);
        }
        dense.push_back(a);
        strided.push_back(b);
    }
    for (size_t i = 0; i < c.n_out; i++)
        out_dense.push_back(infer(c.out));
    const Result expected = run(c.kind, c.attrs, dense, out_dense);
    ASSERT_EQ(expected.status, QDQ_OK) << expected.text;
    for (const Tensor &t : expected.out)
        out_strided.push_back(Tensor(t.desc.dtype, t.dims(), {}, odd_strides(t.dims())));
    const Result got = run(c.kind, c.attrs, strided, out_strided);
    ASSERT_EQ(got.status, QDQ_OK) << got.text;
    for (size_t i = 0; i < c.n_out; i++)
        EXPECT_EQ(got.out[i].values(), expected.out[i].values());
}

TEST_P(RefProperty, EmptyBatchGivesEmptyOutput) {
    const Case &c = cases()[GetParam()];
    std::vector<Tensor> in, out;
    for (size_t i = 0; i < c.in.size(); i++) {
        Dims dims = c.in[i].second;
        const bool weights =
            i != 0 && std::string("Convolution MatMul LayerNorm Add").find(c.kind) != std::string::npos;
        if (!weights && dims[0] != 1 && dims.size() > 1) dims[0] = 0;
        in.push_back(Tensor(c.in[i].first, dims));
    }
    for (size_t i = 0; i < c.n_out; i++)
        out.push_back(infer(c.out));
    if (std::string(c.kind) == "Concat") in[1] = Tensor(QDQ_DTYPE_U8, {0, 4});
    const Result r = run(c.kind, c.attrs, in, out);
    ASSERT_EQ(r.status, QDQ_OK) << r.text;
    EXPECT_EQ(r.out[0].n(), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, RefProperty, testing::Range<size_t>(0, cases().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                             return std::string(cases()[info.param].name);
                         });

TEST(RefProperty, EveryRankUpToTwelve) {
    for (int rank = 0; rank <= QDQ_MAX_NDIMS; rank++) {
        Dims dims((size_t)rank, 1);
        for (int d = 0; d < rank; d += 3)
            dims[(size_t)d] = 2;
        Tensor x(QDQ_DTYPE_F32, dims);
        Values doubled;
        for (int64_t i = 0; i < x.n(); i++) {
            x.set(i, (double)i - 1.5);
            doubled.push_back(2 * ((double)i - 1.5));
        }
        expect_values(run("Add", {}, {x, x}, {infer()}), doubled);
        expect_values(run("Abs", {}, {x}, {infer()}),
                      run("Maximum", {}, {x, run("Neg", {}, {x}, {infer()}).out[0]}, {infer()}).out[0].values());
        expect_values(run("Reorder", {}, {x}, {infer()}), x.values());
        if (rank > 0)
            expect_values(run("StaticTranspose", {Is("order", {})},
                              {run("StaticTranspose", {Is("order", {})}, {x}, {infer()}).out[0]}, {infer()}),
                          x.values());
        expect_values(
            run("Quantize", {Fs("scales", {.5f})}, {x}, {infer(QDQ_DTYPE_S8)}),
            run("QuantizeLinear", {}, {x, f32({}, {.5}), Tensor(QDQ_DTYPE_S8, {}, {0})}, {infer()}).out[0].values());
        if (rank >= 2) {
            const Tensor m = f32({dims.back(), 2}, Values((size_t)dims.back() * 2, 1));
            EXPECT_EQ(run("MatMul", {}, {x, m}, {infer()}).status, QDQ_OK);
        }
    }
}

// ---- host-registered ops ----

qdq_status infer_twice(const qdq_tensor_desc *in, size_t, qdq_tensor_desc *out, size_t, void *) {
    const uint64_t id = out[0].id;
    out[0] = in[0];
    out[0].id = id;
    return QDQ_OK;
}
qdq_status run_twice(const qdq_tensor *in, size_t, qdq_tensor *out, size_t, void *user) {
    if (!qdqi_is_dense(&in[0].desc) || !qdqi_is_dense(&out[0].desc)) return QDQ_E_INTERNAL;
    for (int64_t i = 0; i < qdqi_n_elems(&in[0].desc); i++)
        ((float *)out[0].data)[i] = *(float *)user * ((const float *)in[0].data)[i];
    return QDQ_OK;
}

TEST(RefGraph, CustomOpsSeeDenseTensors) {
    static float factor = 2.0f;
    qdq_custom_op op = {};
    op.struct_bytes = sizeof op;
    op.kind = "RefTestTwice";
    op.min_inputs = op.max_inputs = op.min_outputs = op.max_outputs = 1;
    op.infer = infer_twice;
    op.run = run_twice;
    op.user = &factor;
    qdq_error err = {};
    ASSERT_EQ(qdqi_schema_register(&op, &err), QDQ_OK) << err.text;
    const Tensor x(QDQ_DTYPE_F32, {2, 2}, {1, 2, 3, 4}, {1, 2}), y(QDQ_DTYPE_F32, {2, 2}, {}, {1, 3});
    expect_values(run("RefTestTwice", {}, {x}, {y}), {2, 4, 6, 8});
}

} // namespace
