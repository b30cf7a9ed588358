/* Building and finalizing: links, ports, order, folding, size, and running out of memory. */
#include "unit/ir_support.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "ir/idmap.h"

#include <chrono>
#include <cstring>

using namespace ir;

namespace {

const auto F = QDQ_DTYPE_F32;
const auto I64 = QDQ_DTYPE_S64;

Op Relu(uint64_t id, uint64_t from, uint64_t to, const char *name = "relu") {
    Op op(id, "ReLU", name);
    op.in(Unknown(from, F)).out(Unknown(to, F));
    return op;
}

std::vector<uint64_t> Ids(const Graph &graph, const uint32_t *values, uint32_t n) {
    std::vector<uint64_t> ids;
    for (uint32_t i = 0; i < n; i++)
        ids.push_back(graph.get()->values[values[i]].desc.id);
    return ids;
}
std::vector<uint64_t> Inputs(const Graph &g) {
    return Ids(g, g.get()->inputs, g.get()->n_inputs);
}
std::vector<uint64_t> Outputs(const Graph &g) {
    return Ids(g, g.get()->outputs, g.get()->n_outputs);
}

TEST(IrIdmap, FindsWhatWasPut) {
    qdqi_idmap map = {};
    EXPECT_EQ(qdqi_idmap_get(&map, 0), UINT32_MAX);
    ASSERT_TRUE(qdqi_idmap_reserve(&map, 5000));
    for (uint32_t i = 0; i < 5000; i++)
        qdqi_idmap_put(&map, (uint64_t)i << 40, i);
    for (uint32_t i = 0; i < 5000; i++)
        EXPECT_EQ(qdqi_idmap_get(&map, (uint64_t)i << 40), i);
    EXPECT_EQ(qdqi_idmap_get(&map, 1), UINT32_MAX);
    EXPECT_EQ(qdqi_idmap_get(&map, UINT64_MAX), UINT32_MAX);
    qdqi_idmap_free(&map);
}

TEST(IrGraph, EmptyGraphIsLegal) {
    Graph graph;
    EXPECT_EQ(graph.finalize(), QDQ_OK);
    EXPECT_EQ(graph.finalize(), QDQ_OK) << "idempotent";
}

TEST(IrGraph, LinksPortsAndUses) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11)), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(2, 11, 12)), QDQ_OK);
    Op add(3, "Add");
    add.in(Unknown(11, F)).in(Unknown(13, F)).out(Unknown(14, F));
    ASSERT_EQ(graph.add(add), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(Inputs(graph), (std::vector<uint64_t>{10, 13}));
    EXPECT_EQ(Outputs(graph), (std::vector<uint64_t>{12, 14}));
    EXPECT_EQ(graph.value(11).n_uses, 2u);
    EXPECT_EQ(graph.value(11).uses[1].op, qdqi_graph_op(graph.get(), 3));
    EXPECT_EQ(graph.value(11).uses[1].port, 0u);
    EXPECT_TRUE(graph.value(10).is_input);
    EXPECT_TRUE(graph.value(14).is_output);
    EXPECT_FALSE(graph.value(11).is_output);
    EXPECT_EQ(qdqi_graph_value(graph.get(), 999), QDQI_NONE);
}

TEST(IrGraph, SortsStably) {
    Graph graph;
    /* 3 feeds 1, which feeds 0; 2 is free: ready are 2 and 3, in the order added */
    ASSERT_EQ(graph.add(Relu(0, 21, 20)), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(1, 22, 21)), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(2, 30, 31)), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(3, 23, 22)), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    const uint32_t *topo = graph.get()->topo;
    EXPECT_EQ(std::vector<uint32_t>(topo, topo + 4), (std::vector<uint32_t>{2, 3, 1, 0}));
}

TEST(IrGraph, RejectsDuplicateOpId) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11, "first")), QDQ_OK);
    EXPECT_FAILS(graph, graph.add(Relu(1, 11, 12, "second")), QDQ_E_DUPLICATE_ID,
                 "op 1 \"second\" (ReLU): the graph has op 1 \"first\" (ReLU) already");
    EXPECT_EQ(graph.get()->n_ops, 1u);
    EXPECT_EQ(graph.finalize(), QDQ_OK) << "a refused op leaves no trace";
}

TEST(IrGraph, RejectsTwoProducers) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 12, "a")), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(2, 11, 12, "b")), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(), QDQ_E_DUPLICATE_ID,
                 "op 2 \"b\" (ReLU): output 0: tensor 12 is produced by op 1 \"a\" (ReLU) already");
}

TEST(IrGraph, RejectsContradictingDescriptors) {
    const auto two = [](const qdq_tensor_desc &a, const qdq_tensor_desc &b, const char *text) {
        Graph graph;
        Op first(1, "ReLU", "a"), second(2, "ReLU", "b");
        first.in(Unknown(1, F)).out(a);
        second.in(b).out(Unknown(9));
        ASSERT_EQ(graph.add(first), QDQ_OK) << graph.text();
        ASSERT_EQ(graph.add(second), QDQ_OK) << graph.text();
        EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_GRAPH, text);
    };
    two(Tensor(5, F, {2, 3}), Tensor(5, F, {2, 4}),
        "op 2 \"b\" (ReLU): input 0: tensor 5 is f32 2x4 here, but f32 2x3 elsewhere");
    two(Tensor(5, F, {2, 3}), Tensor(5, F, {2}), "f32 2 here");
    two(Tensor(5, F, {2}), Tensor(5, QDQ_DTYPE_BF16, {2}), "tensor 5 is bf16 2 here, but f32 2 elsewhere");
    qdq_tensor_desc turned = Tensor(5, F, {2, 3});
    turned.strides[0] = 1;
    turned.strides[1] = 2;
    two(Tensor(5, F, {2, 3}), turned, "has strides 1x2 here, but 3x1 elsewhere");
}

TEST(IrGraph, MergesWhatIsKnown) {
    Graph graph;
    Op first(1, "ReLU"), second(2, "ReLU");
    qdq_tensor_desc any = Tensor(5, QDQ_DTYPE_UNDEF, {QDQ_DIM_UNKNOWN, 3});
    any.layout = QDQ_LAYOUT_ANY;
    first.in(Unknown(1, F)).out(any);
    second.in(Tensor(5, F, {2, QDQ_DIM_UNKNOWN})).out(Unknown(6));
    ASSERT_EQ(graph.add(first), QDQ_OK) << graph.text();
    ASSERT_EQ(graph.add(second), QDQ_OK) << graph.text();
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.dims(5), (Dims{2, 3}));
    EXPECT_EQ(graph.desc(5).dtype, F);
    EXPECT_EQ(graph.desc(5).layout, QDQ_LAYOUT_STRIDED);
    EXPECT_EQ(graph.desc(5).strides[0], 3);
    EXPECT_EQ(graph.dims(6), (Dims{2, 3}));
}

TEST(IrGraph, RejectsCycles) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11, "before")), QDQ_OK);
    for (uint64_t i = 0; i < 2; i++) {
        Op op(2 + i, "Add", i == 0 ? "a" : "b");
        op.in(Unknown(11, F)).in(Unknown(21 - i, F)).out(Unknown(20 + i, F));
        ASSERT_EQ(graph.add(op), QDQ_OK);
    }
    ASSERT_EQ(graph.add(Relu(4, 20, 30, "behind")), QDQ_OK);
    EXPECT_EQ(graph.finalize(), QDQ_E_CYCLE);
    EXPECT_TRUE(graph.text().find("op 2 \"a\"") == 0 || graph.text().find("op 3 \"b\"") == 0) << graph.text();
    Graph self;
    ASSERT_EQ(self.add(Relu(7, 1, 1, "self")), QDQ_OK);
    EXPECT_FAILS(self, self.finalize(), QDQ_E_CYCLE, "op 7 \"self\" (ReLU)");
}

TEST(IrGraph, NamedPortsKeepTheirOrder) {
    Graph graph;
    Op add(3, "Add");
    add.in(Unknown(1, F)).in(Unknown(2, F)).out(Unknown(4, F));
    ASSERT_EQ(graph.add(add), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(5, 4, 6)), QDQ_OK);
    const uint64_t in[] = {2, 1}, out[] = {6, 4};
    ASSERT_EQ(qdqi_graph_set_ports(graph.get(), in, 2, false, graph.err()), QDQ_OK);
    ASSERT_EQ(qdqi_graph_set_ports(graph.get(), out, 2, true, graph.err()), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(Inputs(graph), (std::vector<uint64_t>{2, 1}));
    EXPECT_EQ(Outputs(graph), (std::vector<uint64_t>{6, 4}));
    EXPECT_TRUE(graph.value(4).is_output);
}

TEST(IrGraph, RejectsBadPorts) {
    const auto finalize = [](std::vector<uint64_t> in, std::vector<uint64_t> out, const char *text) {
        Graph graph;
        ASSERT_EQ(graph.add(Relu(1, 10, 11)), QDQ_OK);
        ASSERT_EQ(graph.constant<float>(Tensor(77, F, {1}), {1.0f}), QDQ_OK);
        ASSERT_EQ(qdqi_graph_set_ports(graph.get(), in.data(), in.size(), false, graph.err()), QDQ_OK);
        ASSERT_EQ(qdqi_graph_set_ports(graph.get(), out.data(), out.size(), true, graph.err()), QDQ_OK);
        EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_GRAPH, text);
    };
    finalize({10, 99}, {11}, "graph input tensor 99: no op mentions it");
    finalize({10, 11}, {11}, "graph input tensor 11 is produced by op 1");
    finalize({10, 77}, {11}, "graph input tensor 77 is a constant");
    finalize({10}, {99}, "graph output tensor 99: no op produces it");
    finalize({10}, {10}, "graph output tensor 10: no op produces it");
    finalize({}, {11}, "tensor 10 is produced by no op, holds no constant and is no graph input");
    Graph graph;
    const uint64_t twice[] = {1, 1};
    EXPECT_FAILS(graph, qdqi_graph_set_ports(graph.get(), twice, 2, false, graph.err()), QDQ_E_DUPLICATE_ID,
                 "set_inputs: tensor 1 is given twice");
}

TEST(IrGraph, EndMarksAnOutput) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11)), QDQ_OK);
    ASSERT_EQ(graph.add(Relu(2, 11, 12)), QDQ_OK);
    Op end(3, "End");
    end.in(Unknown(11, F));
    ASSERT_EQ(graph.add(end), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(Outputs(graph), (std::vector<uint64_t>{11, 12}));
}

TEST(IrGraph, NothingGrowsAfterFinalize) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11)), QDQ_OK);
    ASSERT_EQ(graph.finalize(), QDQ_OK);
    EXPECT_FAILS(graph, graph.add(Relu(2, 11, 12)), QDQ_E_BAD_STATE, "add_op: the graph is finalized");
    EXPECT_EQ(graph.constant<float>(Tensor(5, F, {1}), {1.0f}), QDQ_E_BAD_STATE);
    EXPECT_EQ(qdqi_graph_set_tensor_name(graph.get(), 10, "x", graph.err()), QDQ_E_BAD_STATE);
    EXPECT_EQ(qdqi_graph_set_ports(graph.get(), nullptr, 0, true, graph.err()), QDQ_E_BAD_STATE);
}

TEST(IrGraph, ChecksConstants) {
    Graph graph;
    ASSERT_EQ(graph.add(Relu(1, 10, 11)), QDQ_OK);
    const float one = 1.0f;
    const auto set = [&](const qdq_tensor_desc &desc, size_t bytes) {
        return qdqi_graph_set_constant(graph.get(), &desc, &one, bytes, QDQ_DATA_COPY, graph.err());
    };
    EXPECT_FAILS(graph, set(Tensor(5, F, {2}), 4), QDQ_E_BAD_ARG,
                 "constant tensor 5: found 4 bytes, expected 8 (f32 2)");
    EXPECT_FAILS(graph, set(Unknown(5, F), 4), QDQ_E_BAD_ARG, "expected a known shape");
    EXPECT_FAILS(graph, set(Tensor(5, F, {-1}), 4), QDQ_E_BAD_SHAPE, "constant tensor 5: dimension 0: found -1");
    ASSERT_EQ(set(Tensor(5, F, {1}), 4), QDQ_OK);
    EXPECT_FAILS(graph, set(Tensor(5, F, {1}), 4), QDQ_E_DUPLICATE_ID, "set already");
    EXPECT_EQ(graph.value(5).desc.property, QDQ_PROPERTY_CONSTANT);
    EXPECT_EQ(((const float *)graph.value(5).data)[0], 1.0f);
    qdq_tensor_desc other = Tensor(10, QDQ_DTYPE_S32, {1});
    EXPECT_FAILS(graph, set(other, 4), QDQ_E_BAD_GRAPH, "found s32 1, but an op describes it as f32 ?");
    EXPECT_EQ(set(Tensor(6, F, {0, 3}), 0), QDQ_OK) << "a zero-size constant is a constant";
    EXPECT_NE(graph.value(6).data, nullptr);
    ASSERT_EQ(set(Tensor(11, F, {1}), 4), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(), QDQ_E_BAD_GRAPH, "op 1 \"relu\" (ReLU): output 0: tensor 11 is a constant");
}

TEST(IrGraph, BorrowsOrCopiesData) {
    Graph graph;
    float data[2] = {1, 2};
    const qdq_tensor_desc a = Tensor(1, F, {2}), b = Tensor(2, F, {2});
    ASSERT_EQ(qdqi_graph_set_constant(graph.get(), &a, data, 8, QDQ_DATA_BORROW, graph.err()), QDQ_OK);
    ASSERT_EQ(qdqi_graph_set_constant(graph.get(), &b, data, 8, QDQ_DATA_COPY, graph.err()), QDQ_OK);
    EXPECT_EQ(graph.value(1).data, data);
    EXPECT_NE(graph.value(2).data, data);
    EXPECT_EQ((uintptr_t)graph.value(2).data % QDQI_ALIGN_BYTES, 0u);
    ASSERT_EQ(qdqi_graph_set_tensor_name(graph.get(), 1, "weights", graph.err()), QDQ_OK);
    EXPECT_STREQ(graph.value(1).name, "weights");
    EXPECT_STREQ(graph.value(2).name, "");
}

/* ---- folding: just enough of a reference for the test ---- */

int folds;

qdq_status Fold(const qdq_graph *graph, const qdqi_op *op, void *const *out, qdq_error *err) {
    folds++;
    const qdqi_value *in = &graph->values[op->in[0]], *to = &graph->values[op->out[0]];
    if (op->kind == QDQI_OP_SHAPE) {
        for (int64_t i = 0; i < to->desc.dims[0]; i++)
            ((int64_t *)out[0])[i] = in->desc.dims[i];
    } else if (op->kind == QDQI_OP_GATHER) {
        const int64_t at = *(const int64_t *)graph->values[op->in[1]].data;
        ((int64_t *)out[0])[0] = ((const int64_t *)in->data)[at];
    } else if (op->kind == QDQI_OP_CONCAT) {
        int64_t n = 0;
        for (uint32_t i = 0; i < op->n_in; i++)
            ((int64_t *)out[0])[n++] = *(const int64_t *)graph->values[op->in[i]].data;
    } else if (op->kind == QDQI_OP_IDENTITY || op->kind == QDQI_OP_UNSQUEEZE) {
        memcpy(out[0], in->data, in->data_bytes);
    } else {
        return qdqi_fail(err, QDQ_E_INTERNAL, "no fold for %s", op->schema->name);
    }
    return QDQ_OK;
}

/* Reshape(x, Concat(Unsqueeze(Gather(Shape(x), 0)), [-1])), as exporters write Flatten. */
void AddFlattenAsArithmetic(Graph &graph) {
    Op shape(1, "Shape"), gather(2, "Gather"), unsqueeze(3, "Unsqueeze"), concat(4, "Concat"), reshape(5, "Reshape");
    shape.in(Tensor(1, F, {2, 3, 4})).out(Unknown(11));
    gather.in(Unknown(11, I64)).in(Tensor(2, I64, {})).out(Unknown(12));
    unsqueeze.in(Unknown(12, I64)).out(Unknown(13)).s64s("axes", {0});
    concat.in(Unknown(13, I64)).in(Tensor(3, I64, {1})).out(Unknown(14)).s64("axis", 0);
    reshape.in(Tensor(1, F, {2, 3, 4})).in(Unknown(14, I64)).out(Unknown(15));
    EXPECT_EQ(graph.constant<int64_t>(Tensor(2, I64, {}), {0}), QDQ_OK);
    EXPECT_EQ(graph.constant<int64_t>(Tensor(3, I64, {1}), {-1}), QDQ_OK);
    for (const Op *op : {&reshape, &concat, &unsqueeze, &gather, &shape})
        EXPECT_EQ(graph.add(*op), QDQ_OK) << graph.text();
}

TEST(IrFold, ShapeArithmeticBecomesAShape) {
    Graph graph;
    AddFlattenAsArithmetic(graph);
    folds = 0;
    ASSERT_EQ(graph.finalize(Fold), QDQ_OK) << graph.text();
    EXPECT_EQ(folds, 4);
    EXPECT_EQ(graph.dims(15), (Dims{2, 12}));
    EXPECT_TRUE(graph.op(4).folded);
    EXPECT_FALSE(graph.op(5).folded) << "its data is no constant";
    EXPECT_EQ(((const int64_t *)graph.value(14).data)[0], 2);
    EXPECT_EQ(graph.value(14).desc.property, QDQ_PROPERTY_CONSTANT);
    EXPECT_EQ(graph.finalize(Fold), QDQ_OK);
    EXPECT_EQ(folds, 4) << "idempotent";
}

TEST(IrFold, WithoutFunctionNothingIsFolded) {
    Graph graph;
    AddFlattenAsArithmetic(graph);
    ASSERT_EQ(graph.finalize(), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.desc(15).ndims, QDQ_NDIMS_UNKNOWN);
}

TEST(IrFold, LeavesOutputsAndLargeResults) {
    Graph graph;
    const auto identity = [](uint64_t id, uint64_t from, uint64_t to) {
        Op op(id, "Identity");
        op.in(Unknown(from, F)).out(Unknown(to));
        return op;
    };
    const int64_t n = (1 << 18) + 1; /* one element more than 1 MiB */
    ASSERT_EQ(graph.constant<float>(Tensor(1, F, {n}), std::vector<float>((size_t)n)), QDQ_OK);
    ASSERT_EQ(graph.constant<float>(Tensor(2, F, {n - 1}), std::vector<float>((size_t)n - 1)), QDQ_OK);
    ASSERT_EQ(graph.add(identity(1, 1, 11)), QDQ_OK);
    ASSERT_EQ(graph.add(identity(2, 11, 12)), QDQ_OK);
    ASSERT_EQ(graph.add(identity(3, 2, 13)), QDQ_OK);
    ASSERT_EQ(graph.add(identity(4, 13, 14)), QDQ_OK);
    ASSERT_EQ(graph.finalize(Fold), QDQ_OK) << graph.text();
    EXPECT_FALSE(graph.op(1).folded) << "too large";
    EXPECT_TRUE(graph.op(3).folded);
    EXPECT_FALSE(graph.op(4).folded) << "a graph output";
}

TEST(IrFold, ErrorsComeBack) {
    Graph graph;
    Op neg(1, "Neg"), relu(2, "ReLU");
    neg.in(Tensor(1, F, {1})).out(Unknown(2));
    relu.in(Unknown(2, F)).out(Unknown(3));
    ASSERT_EQ(graph.constant<float>(Tensor(1, F, {1}), {1.0f}), QDQ_OK);
    ASSERT_EQ(graph.add(neg), QDQ_OK);
    ASSERT_EQ(graph.add(relu), QDQ_OK);
    EXPECT_FAILS(graph, graph.finalize(Fold), QDQ_E_INTERNAL, "no fold for Neg");
    EXPECT_FALSE(graph.op(1).folded);
    EXPECT_EQ(graph.finalize(), QDQ_OK) << "a failed finalize may be tried again";
}

/* ---- size ---- */

TEST(IrGraph, GrowsLinearly) {
    /* Dequantize -> MatMul -> ReLU -> Quantize, and a constant weight per block: counts are what matters here */
    const uint64_t n = 5000;
    Graph graph;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<int8_t> weights(4, 1);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t t = 10 * i;
        Op dq(4 * i, "Dequantize"), dqw(4 * n + i, "Dequantize"), mm(4 * i + 1, "MatMul"), relu(4 * i + 2, "ReLU"),
            q(4 * i + 3, "Quantize");
        dq.in(i == 0 ? Tensor(t, QDQ_DTYPE_U8, {2, 2}) : Unknown(t, QDQ_DTYPE_U8))
            .out(Unknown(t + 1, F))
            .f32s("scales", {0.5f});
        dqw.in(Tensor(t + 2, QDQ_DTYPE_S8, {2, 2})).out(Unknown(t + 3, F)).f32s("scales", {0.5f});
        mm.in(Unknown(t + 1, F)).in(Unknown(t + 3, F)).out(Unknown(t + 4, F));
        relu.in(Unknown(t + 4, F)).out(Unknown(t + 5, F));
        q.in(Unknown(t + 5, F)).out(Unknown(t + 10, QDQ_DTYPE_U8)).f32s("scales", {0.5f});
        ASSERT_EQ(graph.constant(Tensor(t + 2, QDQ_DTYPE_S8, {2, 2}), weights), QDQ_OK);
        for (const Op *op : {&dq, &dqw, &mm, &relu, &q})
            ASSERT_EQ(graph.add(*op), QDQ_OK) << graph.text();
    }
    ASSERT_EQ(graph.finalize(Fold), QDQ_OK) << graph.text();
    EXPECT_EQ(graph.get()->n_ops, 5 * n);
    EXPECT_EQ(graph.get()->n_inputs, 1u);
    EXPECT_EQ(graph.get()->n_outputs, 1u);
    EXPECT_EQ(graph.dims(10 * n), (Dims{2, 2}));
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    RecordProperty("milliseconds", (int)ms.count());
}

/* ---- running out of memory at every single allocation ---- */

qdq_status BuildAndFinalize() {
    Graph graph;
    if (graph.status() != QDQ_OK) return graph.status();
    const qdq_tensor_desc zero = Tensor(2, I64, {}), minus = Tensor(3, I64, {1});
    const int64_t values[] = {0, -1};
    QDQI_TRY(qdqi_graph_set_constant(graph.get(), &zero, &values[0], 8, QDQ_DATA_COPY, graph.err()));
    QDQI_TRY(qdqi_graph_set_constant(graph.get(), &minus, &values[1], 8, QDQ_DATA_COPY, graph.err()));
    QDQI_TRY(qdqi_graph_set_tensor_name(graph.get(), 1, "x", graph.err()));
    Op shape(1, "Shape"), gather(2, "Gather"), unsqueeze(3, "Unsqueeze"), concat(4, "Concat"), reshape(5, "Reshape");
    Op split(6, "Split"), q(7, "Quantize", "a name"), gelu(8, "GELU");
    shape.in(Tensor(1, F, {2, 3, 4})).out(Unknown(11));
    gather.in(Unknown(11, I64)).in(zero).out(Unknown(12));
    unsqueeze.in(Unknown(12, I64)).out(Unknown(13)).s64s("axes", {0});
    concat.in(Unknown(13, I64)).in(minus).out(Unknown(14)).s64("axis", 0);
    reshape.in(Tensor(1, F, {2, 3, 4})).in(Unknown(14, I64)).out(Unknown(15));
    split.in(Unknown(15, F)).s64("axis", 1);
    for (uint64_t i = 0; i < 12; i++)
        split.out(Unknown(20 + i));
    q.in(Unknown(20, F)).out(Unknown(40, QDQ_DTYPE_S8)).f32s("scales", {0.5f}).f32s("scales", {0.25f});
    gelu.in(Unknown(21, F)).out(Unknown(41)).str("mode", "gelu_tanh");
    for (const Op *op : {&shape, &gather, &unsqueeze, &concat, &reshape, &split, &q, &gelu})
        QDQI_TRY(graph.add(*op));
    const uint64_t out = 40;
    QDQI_TRY(qdqi_graph_set_ports(graph.get(), &out, 1, true, graph.err()));
    return graph.finalize(Fold);
}

TEST(IrGraph, SurvivesEveryFailingAllocation) {
    qdqi_alloc_fail_at(0);
    const uint64_t before = qdqi_alloc_count();
    ASSERT_EQ(BuildAndFinalize(), QDQ_OK);
    const uint64_t total = qdqi_alloc_count() - before;
    ASSERT_GT(total, 30u);
    for (uint64_t i = 1; i <= total; i++) {
        qdqi_alloc_fail_at(i);
        EXPECT_EQ(BuildAndFinalize(), QDQ_E_NO_MEMORY) << "allocation " << i;
    }
    qdqi_alloc_fail_at(0);
    EXPECT_EQ(BuildAndFinalize(), QDQ_OK);
}

TEST(IrGraph, IsReferenceCounted) {
    qdq_graph *graph = nullptr;
    ASSERT_EQ(qdqi_graph_create(&graph, nullptr), QDQ_OK);
    qdqi_graph_retain(graph);
    qdqi_graph_release(graph);
    EXPECT_EQ(qdqi_graph_finalize(graph, nullptr, nullptr), QDQ_OK) << "still alive";
    qdqi_graph_release(graph);
    qdqi_graph_release(nullptr);
}

} // namespace
