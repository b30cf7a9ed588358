// From ops to results through the C interface: what a partition is, how ports, shapes and layouts are resolved, what execute
// takes, and that each object outlives what it was made from.
#include "dnnl_graph/abi_net.h"

#include <algorithm>
#include <numeric>

namespace qdq_test {
namespace {

TEST(AbiFlow, Int8MatMulIsOnePartitionWithTheRightNumbers) {
    const Int8MatMul net;
    AbiEngine e;
    AbiGraph g;
    net.AddTo(&g);
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    EXPECT_TRUE(Supported(ps[0]));
    size_t ids[5];
    ASSERT_EQ(5u, OpNum(ps[0]));
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_ops(ps[0], 5, ids));
    EXPECT_EQ((std::vector<size_t>{12, 13, 14}), std::vector<size_t>(ids + 2, ids + 5)) << "topological order";
    const AbiCompiled cp(ps[0], {net.src, net.weights}, {net.dst}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    std::vector<uint8_t> out(net.Expected().size(), 99);
    auto *src = const_cast<uint8_t *>(net.src_data.data());
    auto *weights = const_cast<int8_t *>(net.weights_data.data());
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, src}, {2, weights}}, {{7, out.data()}}));
    EXPECT_EQ(net.Expected(), out);
    // another order of tensors
    std::fill(out.begin(), out.end(), 99);
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{2, weights}, {1, src}}, {{7, out.data()}}));
    EXPECT_EQ(net.Expected(), out);
}

TEST(AbiFlow, DebugPolicyGivesSingleOpsInOrder) {
    AbiGraph g;
    Int8MatMul().AddTo(&g);
    const auto fused = g.Partitions(), single = g.Partitions(dnnl_graph_partition_policy_debug);
    ASSERT_EQ(1u, fused.size());
    ASSERT_EQ(5u, single.size());
    std::vector<size_t> ids;
    size_t before = 0;
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_id(fused[0], &before));
    for (dnnl_graph_partition_t p : single) {
        size_t id, op;
        ASSERT_EQ(1u, OpNum(p));
        ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_id(p, &id));
        ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_ops(p, 1, &op));
        EXPECT_GT(id, before) << "ids of partitions are never used twice";
        before = id;
        ids.push_back(op);
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ((std::vector<size_t>{10, 11, 12, 13, 14}), ids);
}

TEST(AbiFlow, PortsAreGivenPerUseAsTheyWereAdded) {
    const Lt x = MakeLt(3, dnnl_f32, {2, 2}), y = MakeLt(4, dnnl_f32, {2, 2}, dnnl_graph_layout_type_any);
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_add, {x, x}, {y}));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    size_t n_in = 0, n_out = 0;
    Lt in[2], out;
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_input_ports_num(ps[0], &n_in));
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_output_ports_num(ps[0], &n_out));
    ASSERT_EQ(2u, n_in);
    ASSERT_EQ(1u, n_out);
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_input_ports(ps[0], 2, in));
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_output_ports(ps[0], 1, &out));
    uint8_t same = 0;
    for (const Lt &lt : in) {
        ASSERT_EQ(dnnl_success, dnnl_graph_logical_tensor_is_equal(&lt, &x, &same));
        EXPECT_TRUE(same);
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_logical_tensor_is_equal(&out, &y, &same));
    EXPECT_TRUE(same);
    AbiEngine e;
    const AbiCompiled cp(ps[0], {x, x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    float a[4] = {1, 2, 3, 4}, b[4] = {};
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{3, a}, {3, a}}, {{4, b}}));
    EXPECT_EQ(8.0f, b[3]);
}

TEST(AbiFlow, UnknownShapesAreFoundAtCompile) {
    const Lt x = UnknownLt(1, dnnl_f32), w = UnknownLt(2, dnnl_f32), y = UnknownLt(3, dnnl_f32);
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_matmul, {x, w}, {y}).B(dnnl_graph_op_attr_transpose_b, true));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    for (const Dims &dims : {Dims{4, 3}, Dims{2, 3}}) { // twice: the partition stays as it is
        const AbiCompiled cp(ps[0], {MakeLt(1, dnnl_f32, dims), MakeLt(2, dnnl_f32, {5, 3})},
                             {UnknownLt(3, dnnl_f32, dnnl_graph_layout_type_any)}, e.engine());
        ASSERT_EQ(dnnl_success, cp.status());
        const Lt out = cp.Query(3);
        EXPECT_EQ(dnnl_graph_layout_type_strided, out.layout_type);
        ASSERT_EQ(2, out.ndims);
        EXPECT_EQ(dims[0], out.dims[0]);
        EXPECT_EQ(5, out.dims[1]);
        EXPECT_EQ(5, out.layout.strides[0]);
        EXPECT_EQ(1, out.layout.strides[1]);
    }
}

TEST(AbiFlow, ShapesThatDoNotFitAreNoMatterUntilCompile) {
    // a rank of 0 is what some callers write where they know nothing
    Lt conv_dst, gamma;
    dnnl_graph_logical_tensor_init(&conv_dst, 2, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                   dnnl_graph_tensor_property_undef);
    dnnl_graph_logical_tensor_init(&gamma, 3, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                   dnnl_graph_tensor_property_undef);
    Lt beta = gamma, mean = gamma, variance = gamma;
    beta.id = 4, mean.id = 5, variance.id = 6;
    const Lt x = MakeLt(0, dnnl_f32, {1, 8, 8, 3}), w = MakeLt(1, dnnl_f32, {3, 3, 3, 4}), y = UnknownLt(7, dnnl_f32);
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_convolution, {x, w}, {conv_dst})
              .Is(dnnl_graph_op_attr_strides, {1, 1})
              .Is(dnnl_graph_op_attr_dilations, {1, 1})
              .Is(dnnl_graph_op_attr_pads_begin, {0, 0})
              .Is(dnnl_graph_op_attr_pads_end, {0, 0}));
    g.Add(AbiOp(2, dnnl_graph_op_batch_norm_inference, {conv_dst, gamma, beta, mean, variance}, {y})
              .F(dnnl_graph_op_attr_epsilon, 0.001f));
    AbiEngine e;
    size_t n_ops = 0;
    for (dnnl_graph_partition_t p : g.Partitions()) {
        ASSERT_TRUE(Supported(p));
        n_ops += OpNum(p);
        std::vector<size_t> ids(OpNum(p));
        ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_ops(p, ids.size(), ids.data()));
        if (ids[0] != 1) continue; // the convolution, alone or with what follows
        std::vector<Lt> in = {x, w};
        for (size_t id = 3; id <= 6; id++)
            in.push_back(MakeLt(id, dnnl_f32, {4}));
        const Lt out = ids.size() == 1 ? conv_dst : y;
        EXPECT_EQ(dnnl_success, AbiCompiled(p, in, {out}, e.engine()).status());
        in[0] = MakeLt(0, dnnl_f32, {1, 8, 8, 5});
        EXPECT_EQ(dnnl_invalid_shape, AbiCompiled(p, in, {out}, e.engine()).status());
    }
    EXPECT_EQ(2u, n_ops);
}

TEST(AbiFlow, ScalarsAsTheCppHeaderMakesThem) {
    Lt x, y;
    dnnl_graph_logical_tensor_init(&x, 1, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                   dnnl_graph_tensor_property_undef);
    dnnl_graph_logical_tensor_init(&y, 2, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                   dnnl_graph_tensor_property_undef);
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y}));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    const AbiCompiled cp(ps[0], {x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    EXPECT_EQ(0, cp.Query(2).ndims);
    float a = 3, b = 0;
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, &a}}, {{2, &b}}));
    EXPECT_EQ(3.0f, b);
}

TEST(AbiFlow, StridedInputsAndOutputs) {
    const Lt x = MakeStrided(1, dnnl_f32, {2, 3}, {1, 2}), y = MakeStrided(2, dnnl_f32, {2, 3}, {8, 2});
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y}));
    const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    float a[6] = {1, -2, 3, 4, -5, 6}, b[16];
    std::fill(b, b + 16, 9.0f);
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a}}, {{2, b}}));
    EXPECT_EQ((std::vector<float>{1, 9, 3, 9, 0, 9, 9, 9, 0, 9, 4, 9, 6, 9, 9, 9}), std::vector<float>(b, b + 16));
}

TEST(AbiFlow, AnyOutputOfAConvolutionIsStrided) {
    const Lt x = MakeLt(0, dnnl_f32, {2, 3, 6, 6}), w = MakeLt(1, dnnl_f32, {8, 3, 3, 3});
    const Lt y = UnknownLt(2, dnnl_f32, dnnl_graph_layout_type_any);
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_convolution, {x, w}, {y})
              .Is(dnnl_graph_op_attr_strides, {1, 1})
              .Is(dnnl_graph_op_attr_dilations, {1, 1})
              .Is(dnnl_graph_op_attr_pads_begin, {1, 1})
              .Is(dnnl_graph_op_attr_pads_end, {1, 1})
              .S(dnnl_graph_op_attr_data_format, "NCX")
              .S(dnnl_graph_op_attr_weights_format, "OIX"));
    const AbiCompiled cp(g.Partitions()[0], {x, w}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    const Lt out = cp.Query(2);
    EXPECT_EQ(dnnl_graph_layout_type_strided, out.layout_type);
    EXPECT_EQ((Dims{2, 8, 6, 6}), Dims(out.dims, out.dims + 4));
    size_t bytes = 0;
    ASSERT_EQ(dnnl_success, dnnl_graph_logical_tensor_get_mem_size(&out, &bytes));
    EXPECT_EQ(2u * 8 * 6 * 6 * sizeof(float), bytes);
    std::vector<float> a(2 * 3 * 36), b(8 * 27), c(2 * 8 * 36, -1);
    std::iota(a.begin(), a.end(), -50.0f);
    std::iota(b.begin(), b.end(), -100.0f);
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{0, a.data()}, {1, b.data()}}, {{2, c.data()}}));
    for (int64_t n = 0; n < 2; n++)
        for (int64_t o = 0; o < 8; o++) { // one pixel in the middle, one in a corner
            float middle = 0, corner = 0;
            for (int64_t i = 0; i < 3; i++)
                for (int64_t h = 0; h < 3; h++)
                    for (int64_t v = 0; v < 3; v++) {
                        const float weight = b[((o * 3 + i) * 3 + h) * 3 + v];
                        middle += weight * a[((n * 3 + i) * 6 + 2 + h) * 6 + 3 + v];
                        if (h > 0 && v > 0) corner += weight * a[((n * 3 + i) * 6 + h - 1) * 6 + v - 1];
                    }
            const int64_t *s = out.layout.strides;
            EXPECT_EQ(middle, c[n * s[0] + o * s[1] + 3 * s[2] + 4 * s[3]]);
            EXPECT_EQ(corner, c[n * s[0] + o * s[1]]);
        }
}

TEST(AbiFlow, SuperfluousTensorsAreIgnored) {
    const Lt x = MakeLt(1, dnnl_f32, {4}), y = MakeLt(2, dnnl_f32, {4}), z = MakeLt(3, dnnl_f32, {4});
    const Lt stray = UnknownLt(77, dnnl_s8);
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y})).Add(AbiOp(2, dnnl_graph_op_abs, {y}, {z}));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    const AbiCompiled cp(ps[0], {stray, x, y}, {stray, z}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    float a[4] = {-1, 2, -3, 4}, b[4] = {};
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a}}, {{3, b}}));
    EXPECT_EQ(4.0f, b[3]);
    Lt lt;
    EXPECT_EQ(dnnl_invalid_arguments, dnnl_graph_compiled_partition_query_logical_tensor(cp.get(), 2, &lt));
    EXPECT_EQ(dnnl_invalid_arguments, dnnl_graph_compiled_partition_query_logical_tensor(cp.get(), 77, &lt));
}

TEST(AbiFlow, ZeroSizedTensorsRunWithoutBuffers) {
    const Lt x = MakeLt(1, dnnl_f32, {0, 3}), y = MakeLt(2, dnnl_f32, {0, 3});
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y}));
    const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    EXPECT_EQ(dnnl_success, cp.Run(e.stream(), {{1, nullptr}}, {{2, nullptr}}));
}

TEST(AbiFlow, TrainingAndOpaqueKindsAreUnsupportedPartitionsOfOne) {
    const Lt x = MakeLt(1, dnnl_f32, {4}), dy = MakeLt(2, dnnl_f32, {4}), dx = MakeLt(3, dnnl_f32, {4});
    const Lt y = MakeLt(4, dnnl_f32, {4}), z = MakeLt(5, dnnl_f32, {4});
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu_backward, {x, dy}, {dx}).B(dnnl_graph_op_attr_use_dst, false));
    g.Add(AbiOp(2, dnnl_graph_op_abs, {dx}, {y})).Add(AbiOp(3, dnnl_graph_op_relu, {y}, {z}));
    g.Add(AbiOp(4, dnnl_graph_op_end, {z}, {}));
    const auto ps = g.Partitions();
    ASSERT_EQ(3u, ps.size());
    size_t n_supported = 0;
    for (dnnl_graph_partition_t p : ps) {
        const bool supported = Supported(p);
        n_supported += supported;
        EXPECT_EQ(supported ? 2u : 1u, OpNum(p));
        if (!supported) continue;
        size_t n = 0;
        ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_output_ports_num(p, &n));
        EXPECT_EQ(1u, n) << "what an End marks is a result";
    }
    EXPECT_EQ(1u, n_supported);
}

TEST(AbiFlow, EveryKindOfTheHeaderIsKnown) {
    for (int i = 0; i < dnnl_graph_op_last_symbol; i++) {
        const auto kind = static_cast<dnnl_graph_op_kind_t>(i);
        dnnl_graph_op_t op = nullptr;
        ASSERT_EQ(dnnl_success, dnnl_graph_op_create(&op, 1, kind, "x"));
        dnnl_graph_op_kind_t found;
        ASSERT_EQ(dnnl_success, dnnl_graph_op_get_kind(op, &found));
        EXPECT_EQ(kind, found);
        AbiGraph g;
        // without ports only a Wildcard is legal
        EXPECT_EQ(kind == dnnl_graph_op_wildcard ? dnnl_success : dnnl_invalid_graph_op,
                  dnnl_graph_add_op(g.get(), op));
        dnnl_graph_op_destroy(op);
    }
}

TEST(AbiFlow, AGraphOfAnotherEngineKindHasNothingSupported) {
    const Lt x = MakeLt(1, dnnl_f32, {4}), y = MakeLt(2, dnnl_f32, {4});
    AbiGraph g(dnnl_gpu);
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y}));
    const auto ps = g.Partitions();
    ASSERT_EQ(1u, ps.size());
    EXPECT_FALSE(Supported(ps[0]));
    dnnl_engine_kind_t kind = dnnl_cpu;
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_engine_kind(ps[0], &kind));
    EXPECT_EQ(dnnl_gpu, kind);
    AbiEngine e;
    EXPECT_EQ(dnnl_invalid_arguments, AbiCompiled(ps[0], {x}, {y}, e.engine()).status());
}

TEST(AbiFlow, TheGraphKeepsItsOwnCopyOfAnOp) {
    const Lt x = MakeLt(1, dnnl_f32, {3}), y = MakeLt(2, dnnl_f32, {3});
    AbiEngine e;
    AbiGraph g;
    AbiOp op(1, dnnl_graph_op_leaky_relu, {x}, {y});
    op.F(dnnl_graph_op_attr_alpha, 0.5f);
    g.Add(op);
    op.F(dnnl_graph_op_attr_alpha, 8.0f);
    ASSERT_EQ(dnnl_success, dnnl_graph_op_add_input(op.get(), &x));
    const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    float a[3] = {-2, 0, 2}, b[3] = {};
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a}}, {{2, b}}));
    EXPECT_EQ(-1.0f, b[0]);
}

TEST(AbiFlow, HandlesMayGoInAnyOrder) {
    const Lt x = MakeLt(1, dnnl_f32, {3}), y = MakeLt(2, dnnl_f32, {3});
    const Lt *in[] = {&x}, *out[] = {&y};
    dnnl_engine_t engine = nullptr;
    dnnl_stream_t stream = nullptr;
    dnnl_graph_graph_t graph = nullptr;
    dnnl_graph_partition_t p = nullptr;
    dnnl_graph_compiled_partition_t cp = nullptr;
    ASSERT_EQ(dnnl_success, dnnl_engine_create(&engine, dnnl_cpu, 0));
    ASSERT_EQ(dnnl_success, dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_create(&graph, dnnl_cpu));
    {
        const AbiOp op(1, dnnl_graph_op_relu, {x}, {y});
        ASSERT_EQ(dnnl_success, dnnl_graph_add_op(graph, op.get()));
    }
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_finalize(graph));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_get_partitions(graph, 1, &p));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_destroy(graph));
    ASSERT_EQ(dnnl_success, dnnl_graph_compiled_partition_create(&cp, p));
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_compile(p, cp, 1, in, 1, out, engine));
    ASSERT_EQ(dnnl_success, dnnl_graph_partition_destroy(p));
    float a[3] = {-2, 0, 2}, b[3] = {9, 9, 9};
    dnnl_graph_tensor_t ta = nullptr, tb = nullptr;
    ASSERT_EQ(dnnl_success, dnnl_graph_tensor_create(&ta, &x, engine, a));
    ASSERT_EQ(dnnl_success, dnnl_graph_tensor_create(&tb, &y, engine, b));
    const_dnnl_graph_tensor_t ins[] = {ta}, outs[] = {tb};
    ASSERT_EQ(dnnl_success, dnnl_graph_compiled_partition_execute(cp, stream, 1, ins, 1, outs));
    EXPECT_EQ(0.0f, b[0]);
    EXPECT_EQ(2.0f, b[2]);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    dnnl_graph_tensor_destroy(ta);
    dnnl_graph_tensor_destroy(tb);
    dnnl_graph_compiled_partition_destroy(cp);
}

TEST(AbiFlow, ModesAreKept) {
    dnnl_graph_graph_t g = nullptr;
    dnnl_fpmath_mode_t mode;
    int apply = 7;
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_create_with_fpmath_mode(&g, dnnl_cpu, dnnl_fpmath_mode_f16));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_get_fpmath_mode(g, &mode, &apply));
    EXPECT_EQ(dnnl_fpmath_mode_f16, mode);
    EXPECT_EQ(0, apply);
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_set_fpmath_mode(g, dnnl_fpmath_mode_bf16, 1));
    ASSERT_EQ(dnnl_success, dnnl_graph_graph_get_fpmath_mode(g, &mode, &apply));
    EXPECT_EQ(dnnl_fpmath_mode_bf16, mode);
    EXPECT_EQ(1, apply);
    dnnl_graph_graph_destroy(g);
}

TEST(AbiFlow, InPlacePairsCanBeAsked) {
    const Lt x = MakeLt(1, dnnl_f32, {3}), y = MakeLt(2, dnnl_f32, {3});
    AbiEngine e;
    AbiGraph g;
    g.Add(AbiOp(1, dnnl_graph_op_relu, {x}, {y}));
    const AbiCompiled cp(g.Partitions()[0], {x}, {y}, e.engine());
    size_t n = 99;
    const dnnl_graph_inplace_pair_t *pairs = nullptr;
    ASSERT_EQ(dnnl_success, dnnl_graph_compiled_partition_get_inplace_ports(cp.get(), &n, &pairs));
    ASSERT_LE(n, 1u);
    if (n == 0) return;
    EXPECT_EQ(1u, pairs[0].input_id);
    EXPECT_EQ(2u, pairs[0].output_id);
    float a[3] = {-2, 0, 2};
    ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{1, a}}, {{2, a}}));
    EXPECT_EQ((std::vector<float>{0, 0, 2}), std::vector<float>(a, a + 3));
}

} // namespace
} // namespace qdq_test
