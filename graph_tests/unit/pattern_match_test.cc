// Every entry on small graphs written as pictures: matched, cut, refused. Names of ops are those of their outputs.
#include "harness/text_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace {

struct Release {
    void operator()(qdq_graph *graph) const { qdqi_graph_release(graph); }
    void operator()(qdqi_parts *parts) const { qdqi_parts_destroy(&parts); }
    void operator()(char *text) const { std::free(text); }
};

std::string Partitioned(const std::string &text, qdq_policy policy = QDQ_POLICY_FUSION) {
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    if (qh_graph_from_text(text.c_str(), &graph, &err) != QDQ_OK) return err.text;
    const std::unique_ptr<qdq_graph, Release> owned_graph(graph);
    qdqi_parts *parts = nullptr;
    if (qdqi_partition_graph(graph, policy, &parts, &err) != QDQ_OK) return err.text;
    const std::unique_ptr<qdqi_parts, Release> owned_parts(parts);
    if (!qh_parts_hold(graph, parts, &err)) return err.text;
    return std::unique_ptr<char, Release>(qh_parts_text(graph, parts)).get();
}

const std::string kMatmul = "x:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w);";
const std::string kConv = "x:u8 1x4x5x5; w:s8 8x4x3x3 const; a = Dequantize(x); b = Dequantize(w);";

// ---- matmul ----

TEST(PatternMatmul, WholeChainIsOnePartition) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); r = ReLU(m); y = Quantize(r)"), "x8_matmul_post_ops(a b m r y)");
}

TEST(PatternMatmul, EveryTailIsOptional) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b)"), "x8_matmul_post_ops(a b m)");
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); y = Quantize(m)"), "x8_matmul_post_ops(a b m y)");
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); r = ReLU(m)"), "x8_matmul_post_ops(a b m r)");
}

TEST(PatternMatmul, BiasComesByPortByBiasAddAndByAdd) {
    EXPECT_EQ(Partitioned(kMatmul + "c:f32 8 const; m = MatMul(a, b, c); y = Quantize(m)"),
              "x8_matmul_post_ops(a b m y)");
    EXPECT_EQ(Partitioned(kMatmul + "c:f32 8 const; m = MatMul(a, b); n = BiasAdd(m, c); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m n y)");
    EXPECT_EQ(Partitioned(kMatmul + "c:f32 8 const; m = MatMul(a, b); n = Add(c, m); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m n y)");
    EXPECT_EQ(Partitioned(kMatmul + "s:f32 1 const; c:s32 8 const; d = DequantizeLinear(c, s); m = MatMul(a, b, d);"
                                    "y = Quantize(m)"),
              "x8_matmul_post_ops(a b d m y)");
}

TEST(PatternMatmul, GemmIsAMatmul) {
    EXPECT_EQ(Partitioned(kMatmul + "s:f32 1 const; c:s32 8 const; d = DequantizeLinear(c, s); m = Gemm(a, b, d);"
                                    "r = ReLU(m); y = Quantize(r)"),
              "x8_matmul_post_ops(a b d m r y)");
}

TEST(PatternMatmul, OnnxAndDynamicDequantizeCount) {
    EXPECT_EQ(Partitioned("x:u8 2x4; s:f32 1; z:u8 1; w:s8 4x8 const; a = DynamicDequantize(x, s); b = Dequantize(w);"
                          "t:f32 1 const; m = MatMul(a, b); y:u8 = QuantizeLinear(m, t)"),
              "x8_matmul_post_ops(a b m y)");
}

TEST(PatternMatmul, BinaryMayEnterByEitherSideAndThroughADequantize) {
    const std::string other = "o:s8 2x8; d = Dequantize(o); m = MatMul(a, b);";
    for (const char *kind : {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum"}) {
        EXPECT_EQ(Partitioned(kMatmul + other + "n = " + kind + "(m, d); y = Quantize(n)"),
                  "x8_matmul_post_ops(a b d m n y)")
            << kind;
        EXPECT_EQ(Partitioned(kMatmul + other + "n = " + kind + "(d, m); y = Quantize(n)"),
                  "x8_matmul_post_ops(a b d m n y)")
            << kind;
    }
}

TEST(PatternMatmul, SeveralResidualsAreAbsorbed) {
    EXPECT_EQ(Partitioned(kMatmul + "o:s8 2x8; p:u8 2x8; d = Dequantize(o); e = Dequantize(p); m = MatMul(a, b);"
                                    "n = Add(m, d); r = ReLU(n); q = Add(e, r); y = Quantize(q)"),
              "x8_matmul_post_ops(a b d e m n r q y)");
}

TEST(PatternMatmul, WeightsOnlyKeepFloatSource) {
    EXPECT_EQ(Partitioned("x:f32 2x4; w:s8 4x8 const; b = Dequantize(w); m = MatMul(x, b); r = ReLU(m)"),
              "w8_matmul_post_ops(b m r)");
    EXPECT_EQ(Partitioned("x:f32 2x4; w:s8 4x8 const; b = Dequantize(w); m = MatMul(x, b)"), "w8_matmul_post_ops(b m)");
}

TEST(PatternMatmul, SourceAloneIsDequantizedBefore) {
    EXPECT_EQ(Partitioned("x:s8 2x4; w:f32 4x8 const; a = Dequantize(x); m = MatMul(a, w); r = ReLU(m)"),
              "single(a) fp_matmul_post_ops(m r)");
}

TEST(PatternMatmul, FloatChainFusesAndALoneOneDoesNot) {
    EXPECT_EQ(Partitioned("x:f32 2x4; w:f32 4x8 const; m = MatMul(x, w); r = ReLU(m); t = Tanh(r)"),
              "fp_matmul_post_ops(m r t)");
    EXPECT_EQ(Partitioned("x:f32 2x4; w:f32 4x8 const; m = MatMul(x, w); y = Quantize(m)"), "fp_matmul_post_ops(m y)");
    EXPECT_EQ(Partitioned("x:f32 2x4; w:f32 4x8 const; m = MatMul(x, w)"), "single(m)");
}

TEST(PatternMatmul, FakeQuantizedConstantWeightsAreAbsorbed) {
    const std::string tail = "; x:u8 2x4; a = Dequantize(x); q = Quantize(w); b = Dequantize(q); m = MatMul(a, b)";
    EXPECT_EQ(Partitioned("w:f32 4x8 const" + tail), "x8_matmul_post_ops(a q b m)");
    EXPECT_EQ(Partitioned("w:f32 4x8 promised" + tail), "x8_matmul_post_ops(a q b m)");
    // A quantized activation ends the partition that makes it.
    EXPECT_EQ(Partitioned("w:f32 4x8" + tail), "single(q) x8_matmul_post_ops(a b m)");
}

TEST(PatternMatmul, FakeQuantizedWeightsMayBeSharedAndNeeded) {
    const std::string text = "w:f32 4x8 const; x:u8 2x4; z:u8 2x4; a = Dequantize(x); c = Dequantize(z);"
                             "q = Quantize(w); b = Dequantize(q); m = MatMul(a, b); n = MatMul(c, b);";
    EXPECT_EQ(Partitioned(text), "x8_matmul_post_ops(a q b m) x8_matmul_post_ops(c q b n)");
    EXPECT_EQ(Partitioned(text + "out m n q"), "single(q) x8_matmul_post_ops(a q b m) x8_matmul_post_ops(c q b n)");
    EXPECT_EQ(Partitioned(text + "out m n b"), "single(q) single(b) x8_matmul_post_ops(a q b m) "
                                               "x8_matmul_post_ops(c q b n)");
}

TEST(PatternMatmul, WideIntegersAreNotAbsorbed) {
    EXPECT_EQ(Partitioned("x:s32 2x4; s:f32 1 const; w:s8 4x8 const; a = DequantizeLinear(x, s); b = Dequantize(w);"
                          "m = MatMul(a, b)"),
              "single(a) w8_matmul_post_ops(b m)");
}

// ---- where a chain ends ----

std::string Chain(int n) {
    std::string text, last = "m";
    for (int i = 0; i < n; i++) {
        const std::string name = "r" + std::to_string(i);
        text += name + " = ReLU(" + last + ");";
        last = name;
    }
    return text + "y = Quantize(" + last + ")";
}

TEST(PatternChain, TakesThirtyTwoOpsAndNoMore) {
    std::string all;
    for (int i = 0; i < 32; i++)
        all += " r" + std::to_string(i);
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b);" + Chain(32)), "x8_matmul_post_ops(a b m" + all + " y)");
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b);" + Chain(33)),
              "x8_matmul_post_ops(a b m" + all + ") fp_eltwise(r32 y)");
}

TEST(PatternChain, IsCutAtAGraphOutput) {
    const std::string text = kMatmul + "m = MatMul(a, b); r = ReLU(m); y = Quantize(r);";
    EXPECT_EQ(Partitioned(text + "out r y"), "x8_matmul_post_ops(a b m r) single(y)");
    EXPECT_EQ(Partitioned(text + "out m y"), "x8_matmul_post_ops(a b m) fp_eltwise(r y)");
}

TEST(PatternChain, IsCutAtASecondConsumer) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); r = ReLU(m); y = Quantize(r); s = SoftMax(r) {axis=-1}"),
              "x8_matmul_post_ops(a b m r) single(y) single(s)");
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); s = SoftMax(m) {axis=-1}; r = ReLU(m); y = Quantize(r)"),
              "x8_matmul_post_ops(a b m) single(s) fp_eltwise(r y)");
}

TEST(PatternChain, QuantizedResultMayHaveAnyUsers) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); y = Quantize(m); e = Dequantize(y); f = Dequantize(y);"
                                    "s = SoftMax(e) {axis=-1}; t = Tanh(f); out y s t"),
              "x8_matmul_post_ops(a b m y) x8_norm_post_ops(e s) x8_eltwise(f t)");
}

TEST(PatternChain, TakesAnEarlierValueOfTheMatch) {
    const std::string m = kMatmul + "m = MatMul(a, b);";
    EXPECT_EQ(Partitioned(m + "s = Sigmoid(m); n = Multiply(m, s); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m s n y)");
    EXPECT_EQ(Partitioned(m + "s = Sigmoid(m); n = Multiply(s, m); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m s n y)");
    EXPECT_EQ(Partitioned(m + "n = Multiply(m, m); y = Quantize(n)"), "x8_matmul_post_ops(a b m n y)");
    EXPECT_EQ(Partitioned(m + "three:f32 1 const; six:f32 1 const; p = Add(m, three); c = Clamp(p);"
                              "n = Multiply(m, c); h = Divide(n, six); y = Quantize(h)"),
              "x8_matmul_post_ops(a b m p c n h y)");
    EXPECT_EQ(Partitioned(m + "k:f32 1 const; d = Divide(m, k); e = Erf(d); p = Add(e, k); h = Multiply(m, k);"
                              "n = Multiply(h, p); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m d e p h n y)");
}

TEST(PatternChain, EndsBeforeAnEarlierValueThatLeaves) {
    const std::string m = kMatmul + "m = MatMul(a, b); r = ReLU(m);";
    EXPECT_EQ(Partitioned(m + "s = Sigmoid(r); n = Multiply(r, s); y = Quantize(n); out r y"),
              "x8_matmul_post_ops(a b m r) fp_eltwise(s n y)");
    EXPECT_EQ(Partitioned(m + "s = Sigmoid(r); n = Multiply(r, s); y = Quantize(n); t = SoftMax(r) {axis=-1}"),
              "x8_matmul_post_ops(a b m r) fp_eltwise(s n y) single(t)");
    EXPECT_EQ(Partitioned(m + "s = Sigmoid(r); n = Multiply(r, s); y = Quantize(n); out s y"),
              "x8_matmul_post_ops(a b m r) single(s) fp_eltwise(n y)");
}

TEST(PatternChain, EndsAtABroadcastToALargerShape) {
    EXPECT_EQ(Partitioned(kMatmul + "o:f32 3x2x8; m = MatMul(a, b); n = Add(m, o); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m) fp_eltwise(n y)");
    // Dims that are not known refuse nothing.
    EXPECT_EQ(Partitioned("x:u8 ?x4; w:s8 4x8 const; o:f32 ?x8; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);"
                          "n = Add(m, o); y = Quantize(n)"),
              "x8_matmul_post_ops(a b m n y)");
}

TEST(PatternChain, ValueOfAnotherPartitionIsAnOperand) {
    EXPECT_EQ(Partitioned(kMatmul + "z:u8 2x4; v:s8 4x8 const; c = Dequantize(z); d = Dequantize(v);"
                                    "m = MatMul(a, b); n = MatMul(c, d); p = Add(m, n); y = Quantize(p)"),
              "x8_matmul_post_ops(c d n) x8_matmul_post_ops(a b m p y)");
}

// ---- Dequantize ----

TEST(PatternDequantize, SharedByTwoAndThree) {
    const std::string two = kMatmul + "v:s8 4x8 const; c = Dequantize(v); m = MatMul(a, b); n = MatMul(a, c);";
    EXPECT_EQ(Partitioned(two), "x8_matmul_post_ops(a b m) x8_matmul_post_ops(a c n)");
    EXPECT_EQ(Partitioned(two + "u:s8 4x8 const; d = Dequantize(u); o = MatMul(a, d); y = Quantize(o)"),
              "x8_matmul_post_ops(a b m) x8_matmul_post_ops(a c n) x8_matmul_post_ops(a d o y)");
}

TEST(PatternDequantize, AlsoAGraphOutput) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); out m a"), "single(a) x8_matmul_post_ops(a b m)");
}

TEST(PatternDequantize, AlsoNeededByAnOpThatCannotAbsorbIt) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); g = GenIndex(a) {axis=0}"),
              "single(a) x8_matmul_post_ops(a b m) single(g)");
}

TEST(PatternDequantize, TwoOnOneInitializer) {
    EXPECT_EQ(Partitioned("x:u8 2x4; z:u8 2x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); c = Dequantize(z);"
                          "d = Dequantize(w); m = MatMul(a, b); n = MatMul(c, d)"),
              "x8_matmul_post_ops(a b m) x8_matmul_post_ops(c d n)");
}

TEST(PatternDequantize, OneForBothSides) {
    EXPECT_EQ(Partitioned("x:u8 4x4; a = Dequantize(x); m = MatMul(a, a) {transpose_b=true}"),
              "x8_matmul_post_ops(a m)");
    EXPECT_EQ(Partitioned("x:u8 4x4; a = Dequantize(x); m = Multiply(a, a); y = Quantize(m)"), "x8_eltwise(a m y)");
}

TEST(PatternDequantize, OfAConstantThatNobodyAbsorbsIsSingle) {
    EXPECT_EQ(Partitioned("w:s8 4x8 const; b = Dequantize(w); t = GenIndex(b) {axis=0}"), "single(b) single(t)");
    EXPECT_EQ(Partitioned("w:s8 4x8 const; b = Dequantize(w)"), "single(b)");
}

// ---- views: casts, reshapes and transpositions around the compute op ----

TEST(PatternView, CastsAndMovesStandBetweenADequantizeAndItsReader) {
    const std::string bf16 = kMatmul + "p = TypeCast(a); q = TypeCast(b); m = MatMul(p, q);";
    EXPECT_EQ(Partitioned(bf16), "x8_matmul_post_ops(a b p q m)");
    EXPECT_EQ(Partitioned(bf16 + "g = GELU(m); t:f32 = TypeCast(g); y = Quantize(t)"),
              "x8_matmul_post_ops(a b p q m g t y)");
    EXPECT_EQ(Partitioned("x:u8 4x2; w:s8 8x4 const; a = Dequantize(x); b = Dequantize(w);"
                          "p = StaticTranspose(a) {order=[1,0]}; q = StaticTranspose(b) {order=[1,0]};"
                          "r = StaticReshape(p) {shape=[1,2,4]}; m = MatMul(r, q); y = Quantize(m)"),
              "x8_matmul_post_ops(a b p q r m y)");
    EXPECT_EQ(Partitioned(kConv + "p = TypeCast(a); q = TypeCast(b); c:f32 8 const; d = TypeCast(c);"
                                  "m = Convolution(p, q, d); t:f32 = TypeCast(m); y = Quantize(t)"),
              "x8_conv_post_ops(a b p q d m t y)");
    // A third one stays outside, and the source with it.
    EXPECT_EQ(Partitioned(kMatmul + "p = StaticTranspose(a) {order=[1,0]}; q = StaticTranspose(p) {order=[1,0]};"
                                    "r = StaticReshape(q) {shape=[2,4]}; m = MatMul(r, b)"),
              "single(a) single(p) single(q) single(r) w8_matmul_post_ops(b m)");
}

TEST(PatternView, IsDoneAgainForEveryReader) {
    EXPECT_EQ(Partitioned(kMatmul + "v:s8 4x8 const; c = Dequantize(v); p = TypeCast(a); q = TypeCast(b);"
                                    "r = TypeCast(c); m = MatMul(p, q); n = MatMul(p, r)"),
              "x8_matmul_post_ops(a b p q m) x8_matmul_post_ops(a c p r n)");
    EXPECT_EQ(Partitioned(kMatmul + "p = TypeCast(a); q = TypeCast(b); m = MatMul(p, q); out p m"),
              "single(a) single(p) x8_matmul_post_ops(a b p q m)");
}

TEST(PatternView, OfTheResidualToo) {
    const std::string other = "o:s8 2x8; d = Dequantize(o); e = TypeCast(d); p = TypeCast(a); q = TypeCast(b);";
    EXPECT_EQ(Partitioned(kMatmul + other + "m = MatMul(p, q); n = Add(m, e); t:f32 = TypeCast(n); y = Quantize(t)"),
              "x8_matmul_post_ops(a b d e p q m n t y)");
    // A cast of what an op computes stays where it is.
    EXPECT_EQ(Partitioned(kMatmul + "o:f32 2x8; d = Tanh(o); e = TypeCast(d); p = TypeCast(a); q = TypeCast(b);"
                                    "m = MatMul(p, q); n = Add(m, e)"),
              "fp_eltwise(d e) x8_matmul_post_ops(a b p q m n)");
}

TEST(PatternTail, TheResultIsMovedBeforeTheQuantize) {
    const std::string m = "x:u8 2x6x4; w:s8 4x8 const; a = Dequantize(x); b = Dequantize(w); m = MatMul(a, b);";
    const std::string moves = "r = StaticReshape(m) {shape=[2,6,2,4]}; t = StaticTranspose(r) {order=[0,2,1,3]};";
    EXPECT_EQ(Partitioned(m + moves + "y = Quantize(t)"), "x8_matmul_post_ops(a b m r t y)");
    EXPECT_EQ(Partitioned(m + moves + "z = StaticReshape(t) {shape=[4,6,4]}; y = Quantize(z)"),
              "x8_matmul_post_ops(a b m r t z y)");
    EXPECT_EQ(Partitioned(m + moves + "z = Reorder(t)"), "x8_matmul_post_ops(a b m r t z)");
    EXPECT_EQ(Partitioned(m + moves + "y = Quantize(t); out r y"), "x8_matmul_post_ops(a b m r) single(t) single(y)");
    EXPECT_EQ(Partitioned("x:u8 1x4x6x6; a = Dequantize(x); p = AvgPool(a) {kernel=[2,2] strides=[2,2]};"
                          "r = StaticReshape(p) {shape=[4,9]}; t = StaticTranspose(r) {order=[1,0]}; y = Quantize(t)"),
              "x8_pool_relayout(a p r t y)");
}

TEST(PatternInteger, ScalesFollowAsAChain) {
    const std::string m = "x:u8 2x4; w:s8 4x8 const; z:u8 1; s:f32 1; c:f32 8 const; m = MatMulInteger(x, w, z);";
    EXPECT_EQ(Partitioned(m + "f:f32 = Cast(m) {to=f32}; n = Multiply(f, s); r = Add(n, c); y = Quantize(r)"),
              "integer_matmul_post_ops(m f n r y)");
    EXPECT_EQ(Partitioned(m), "single(m)");
    EXPECT_EQ(Partitioned("x:u8 1x4x5x5; w:s8 8x4x3x3 const; s:f32 1; m = ConvInteger(x, w);"
                          "f:f32 = Cast(m) {to=f32}; n = Multiply(s, f)"),
              "integer_conv_post_ops(m f n)");
}

// ---- several products ----

const std::string kHeads = "q:f32 2x3x8; k:f32 2x8x5; v:f32 2x5x8; m = MatMul(q, k);";

TEST(PatternAttention, ScaleAndMaskInAnyForm) {
    const std::string tail = "s = SoftMax(d) {axis=-1}; y = MatMul(s, v)";
    EXPECT_EQ(Partitioned(kHeads + "c:f32 1; a:f32 2x1x5; e = Divide(m, c); d = Add(e, a);" + tail),
              "attention[fp_matmul_post_ops(m e d) single(s) single(y)]");
    EXPECT_EQ(Partitioned(kHeads + "c:f32 1; d = Multiply(c, m);" + tail),
              "attention[fp_matmul_post_ops(m d) single(s) single(y)]");
    EXPECT_EQ(Partitioned(kHeads + "s = SoftMax(m) {axis=-1}; y = MatMul(s, v)"),
              "attention[single(m) single(s) single(y)]");
    // A causal mask uses the scaled product three times.
    EXPECT_EQ(Partitioned(kHeads +
                          "c:f32 1; n:f32 1; e = Divide(m, c); g = GenIndex(e) {axis=1};"
                          "h = GenIndex(e) {axis=2}; b = GreaterEqual(g, h); d = Select(b, e, n);" +
                          tail),
              "attention[fp_matmul_post_ops(m e) single(g) single(h) single(b) single(d) single(s) single(y)]");
    EXPECT_EQ(Partitioned(kHeads + "b:boolean 1x3x5; n:f32 1; c:f32 1; d = Select(b, m, n); e = Divide(d, c);"
                                   "s = SoftMax(e) {axis=-1}; y = MatMul(s, v)"),
              "attention[single(m) single(d) single(e) single(s) single(y)]");
}

TEST(PatternAttention, IntegersInAndOut) {
    EXPECT_EQ(Partitioned("q:u8 2x3x8; k:u8 2x8x5; v:u8 2x5x8; a = Dequantize(q); b = Dequantize(k);"
                          "c = Dequantize(v); i = TypeCast(a); j = TypeCast(b); l = TypeCast(c); m = MatMul(i, j);"
                          "s = SoftMax(m) {axis=-1}; t:f32 = TypeCast(s); p = Quantize(t); r = Dequantize(p);"
                          "u = TypeCast(r); n = MatMul(u, l); o = StaticTranspose(n) {order=[1,0,2]}; w = Reorder(o);"
                          "x:f32 = TypeCast(w); y = Quantize(x)"),
              "attention[x8_matmul_post_ops(a b i j m) fp_norm_post_ops(s t p) "
              "x8_matmul_post_ops(c l r u n o w x y)]");
    EXPECT_EQ(Partitioned("q:f32 2x3x8; k:s8 2x8x5; v:s8 2x5x8; z:f32 1; b = DynamicDequantize(k, z);"
                          "c = DynamicDequantize(v, z); m = MatMul(q, b); s = SoftMax(m) {axis=-1}; n = MatMul(s, c)"),
              "attention[w8_matmul_post_ops(b m) single(s) w8_matmul_post_ops(c n)]");
}

TEST(PatternAttention, EndsWhereSomethingInsideIsNeeded) {
    const std::string rest = "c:f32 1; d = Divide(m, c); s = SoftMax(d) {axis=-1}; y = MatMul(s, v);";
    EXPECT_EQ(Partitioned(kHeads + rest + "out s y"), "matmul_softmax[fp_matmul_post_ops(m d) single(s)] single(y)");
    EXPECT_EQ(Partitioned(kHeads + rest + "out d y"), "fp_matmul_post_ops(m d) single(s) single(y)");
    EXPECT_EQ(Partitioned(kHeads + rest + "out m y"), "single(m) single(d) single(s) single(y)");
    EXPECT_EQ(Partitioned(kHeads + rest + "t = StaticTranspose(y) {order=[1,0,2]}; r = ReLU(t)"),
              "attention[fp_matmul_post_ops(m d) single(s) fp_matmul_post_ops(y t)] single(r)");
    // No product before the softmax.
    EXPECT_EQ(Partitioned("x:f32 2x3x5; v:f32 2x5x8; d = Tanh(x); s = SoftMax(d) {axis=-1}; y = MatMul(s, v)"),
              "single(d) single(s) single(y)");
}

TEST(PatternMlp, TwoProductsGateAThird) {
    const std::string x = "x:f32 2x8; u:f32 8x6; v:f32 8x6; w:f32 6x8; g = MatMul(x, u); h = MatMul(x, v);";
    EXPECT_EQ(Partitioned(x + "a = GELU(g); m = Multiply(a, h); y = MatMul(m, w)"),
              "gated_mlp[single(h) fp_matmul_post_ops(g a m) single(y)]");
    EXPECT_EQ(Partitioned(x + "a = Sigmoid(g); b = Multiply(g, a); m = Multiply(h, b); y = MatMul(m, w)"),
              "gated_mlp[single(h) fp_matmul_post_ops(g a b m) single(y)]");
    EXPECT_EQ(Partitioned(x + "a = GELU(g); m = Multiply(a, h); y = MatMul(m, w); out h y"),
              "single(h) fp_matmul_post_ops(g a m) single(y)");
    // One product that gates itself is an activation.
    EXPECT_EQ(Partitioned("x:f32 2x8; u:f32 8x6; w:f32 6x8; g = MatMul(x, u); a = Sigmoid(g); m = Multiply(g, a);"
                          "y = MatMul(m, w)"),
              "fp_matmul_post_ops(g a m) single(y)");
    EXPECT_EQ(
        Partitioned("x:f32 2x8; u:u4 8x6 const; v:u4 8x6 const; w:u4 6x8 const; c:f32 1; a = DynamicDequantize(u, c);"
                    "b = DynamicDequantize(v, c); d = DynamicDequantize(w, c); g = MatMul(x, a);"
                    "h = MatMul(x, b); e = Sigmoid(g); m = Multiply(e, h); y = MatMul(m, d)"),
        "gated_mlp[w8_matmul_post_ops(b h) w8_matmul_post_ops(a g e m) w8_matmul_post_ops(d y)]");
}

TEST(PatternEltwise, ACastThatIsQuantized) {
    EXPECT_EQ(Partitioned("x:bf16 2x4; t:f32 = TypeCast(x); y = Quantize(t)"), "cast_quantize(t y)");
    EXPECT_EQ(Partitioned("x:bf16 2x4; t:f32 = TypeCast(x)"), "single(t)");
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); t = TypeCast(a); y = Quantize(t)"), "x8_requantize(a t y)");
}

TEST(PatternNorm, CastsBeforeTheQuantize) {
    EXPECT_EQ(
        Partitioned("x:bf16 2x4; o:bf16 2x4; m = SoftMax(x); n = Add(m, o); t:f32 = TypeCast(n); y = Quantize(t)"),
        "fp_norm_post_ops(m n t y)");
}

// ---- convolution ----

TEST(PatternConv, WholeChainIsOnePartition) {
    EXPECT_EQ(Partitioned(kConv + "s:f32 1 const; k:s32 8 const; c = DequantizeLinear(k, s); m = Convolution(a, b, c);"
                                  "r = ReLU(m); y = Quantize(r)"),
              "x8_conv_post_ops(a b c m r y)");
    EXPECT_EQ(Partitioned(kConv + "k:f32 8 const; m = Convolution(a, b); n = BiasAdd(m, k); y = Quantize(n)"),
              "x8_conv_post_ops(a b m n y)");
    EXPECT_EQ(Partitioned("x:u8 1x4x5x5; w:s8 4x8x3x3 const; a = Dequantize(x); b = Dequantize(w);"
                          "m = ConvTranspose(a, b); r = Clamp(m); y = Quantize(r)"),
              "x8_conv_post_ops(a b m r y)");
}

TEST(PatternConv, ResidualIsAbsorbedOnEitherSide) {
    const std::string head = kConv + "o:u8 1x8x3x3; d = Dequantize(o); m = Convolution(a, b);";
    EXPECT_EQ(Partitioned(head + "n = Add(m, d); r = ReLU(n); y = Quantize(r)"), "x8_conv_post_ops(a b d m n r y)");
    EXPECT_EQ(Partitioned(head + "n = Add(d, m); r = ReLU(n); y = Quantize(r)"), "x8_conv_post_ops(a b d m n r y)");
    EXPECT_EQ(Partitioned(head + "n = Subtract(d, m); y = Quantize(n)"), "x8_conv_post_ops(a b d m n y)");
}

TEST(PatternConv, ResidualSharedWithTheNextBlock) {
    // d feeds this convolution's sum and the next convolution.
    EXPECT_EQ(Partitioned("x:u8 1x4x5x5; w:s8 4x4x1x1 const; v:s8 4x4x1x1 const; d = Dequantize(x); b = Dequantize(w);"
                          "c = Dequantize(v); m = Convolution(d, b); r = ReLU(m); y = Quantize(r); e = Dequantize(y);"
                          "n = Convolution(e, c); s = Add(n, d); z = Quantize(s)"),
              "x8_conv_post_ops(d b m r y) x8_conv_post_ops(d c e n s z)");
}

TEST(PatternConv, WeightsKeptInAnotherShape) {
    const std::string x = "x:u8 1x8x5x5; a = Dequantize(x);";
    const std::string tail = "m = Convolution(a, r) {groups=8}; y = Quantize(m);";
    const std::string kept = x + "w:s8 8x1x1x3x3 const; b = Dequantize(w); r = StaticReshape(b) {shape=[8,1,3,3]};";
    EXPECT_EQ(Partitioned(kept + tail), "x8_conv_post_ops(a b r m y)");
    const std::string fake = x + "w:f32 8x1x1x3x3; v = StaticReshape(w) {shape=[8,1,3,3]}; q = Quantize(v);"
                                 "b = Dequantize(q); r = StaticReshape(b) {shape=[8,1,3,3]};";
    EXPECT_EQ(Partitioned(fake + tail), "x8_conv_reshaped_weights(a v q b r m y)");
    // What others need too is left out, or done twice when it moves nothing.
    EXPECT_EQ(Partitioned(fake + tail + "out y v"), "single(v) x8_conv_reshaped_weights(a q b r m y)");
    EXPECT_EQ(Partitioned(fake + tail + "out y q"), "single(v) single(q) x8_conv_post_ops(a b r m y)");
    EXPECT_EQ(Partitioned(kept + tail + "out y r"), "single(b) single(r) x8_conv_post_ops(a b r m y)");
}

TEST(PatternConv, FloatForms) {
    EXPECT_EQ(Partitioned("x:f32 1x4x5x5; w:s8 8x4x3x3 const; b = Dequantize(w); m = Convolution(x, b); r = ReLU(m)"),
              "w8_conv_post_ops(b m r)");
    EXPECT_EQ(Partitioned("x:f32 1x4x5x5; w:f32 8x4x3x3 const; m = Convolution(x, w); s = Sigmoid(m);"
                          "n = Multiply(m, s)"),
              "fp_conv_post_ops(m s n)");
    // Convolution has no decompression: weights that change are dequantized on their own.
    EXPECT_EQ(Partitioned("x:f32 1x4x5x5; w:s8 8x4x3x3; b = Dequantize(w); m = Convolution(x, b); r = ReLU(m)"),
              "single(b) fp_conv_post_ops(m r)");
}

// ---- pool, norm ----

TEST(PatternPool, EveryKind) {
    for (const char *kind : {"AvgPool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"}) {
        const std::string head = std::string("x:u8 1x4x5x5; a = Dequantize(x); p = ") + kind + "(a);";
        EXPECT_EQ(Partitioned(head), "x8_pool_post_ops(a p)") << kind;
        EXPECT_EQ(Partitioned(head + "y = Quantize(p)"), "x8_pool_post_ops(a p y)") << kind;
        EXPECT_EQ(Partitioned(head + "r = Square(p); y = Quantize(r)"), "x8_pool_post_ops(a p r y)") << kind;
    }
    EXPECT_EQ(Partitioned("x:f32 1x4x5x5; p = AvgPool(x); r = ReLU(p); y = Quantize(r)"), "fp_pool_post_ops(p r y)");
    EXPECT_EQ(Partitioned("x:f32 1x4x5x5; p = AvgPool(x)"), "single(p)");
}

TEST(PatternPool, TakesALayoutChangeBeforeQuantize) {
    const std::string head = "x:u8 1x4x5x5; a = Dequantize(x); p = AvgPool(a);";
    EXPECT_EQ(Partitioned(head + "t = StaticReshape(p) {shape=[1,100]}; y = Quantize(t)"), "x8_pool_relayout(a p t y)");
    EXPECT_EQ(Partitioned(head + "t = StaticTranspose(p) {order=[0,2,3,1]}; y = Quantize(t)"),
              "x8_pool_relayout(a p t y)");
    EXPECT_EQ(Partitioned(head + "t = StaticReshape(p) {shape=[1,100]}"), "x8_pool_post_ops(a p) single(t)");
}

TEST(PatternNorm, EveryKind) {
    const std::string x = "x:u8 2x4; a = Dequantize(x);";
    EXPECT_EQ(Partitioned(x + "n = SoftMax(a); y = Quantize(n)"), "x8_norm_post_ops(a n y)");
    EXPECT_EQ(Partitioned(x + "n = LogSoftmax(a); y = Quantize(n)"), "x8_norm_post_ops(a n y)");
    EXPECT_EQ(Partitioned(x + "g:f32 4 const; h:f32 4 const; n = LayerNorm(a, g, h); r = GELU(n); y = Quantize(r)"),
              "x8_norm_post_ops(a n r y)");
    EXPECT_EQ(Partitioned(x + "g:f32 4 const; n = RMSNorm(a, g); y = Quantize(n)"), "x8_norm_post_ops(a n y)");
    EXPECT_EQ(Partitioned(x + "n = ReduceMean(a); y = Quantize(n)"), "x8_norm_post_ops(a n y)");
    EXPECT_EQ(Partitioned("x:u8 1x4x5x5; a = Dequantize(x); g:f32 4 const; n = GroupNorm(a, g, g); y = Quantize(n)"),
              "x8_norm_post_ops(a n y)");
    EXPECT_EQ(Partitioned("x:f32 2x4; n = SoftMax(x); y = Quantize(n)"), "fp_norm_post_ops(n y)");
    EXPECT_EQ(Partitioned("x:f32 2x4; n = SoftMax(x)"), "single(n)");
}

TEST(PatternNorm, QuantizedParametersAreAbsorbed) {
    EXPECT_EQ(Partitioned("x:u8 1x4x5x5; k:s8 4 const; m:f32 4 const; a = Dequantize(x); g = Dequantize(k);"
                          "h = Dequantize(k); n = BatchNormInference(a, g, h, m, m); r = ReLU(n); y = Quantize(r)"),
              "x8_norm_post_ops(a g h n r y)");
}

TEST(PatternNorm, StatisticsThatAreNeededEndThePartition) {
    const std::string text = "x:u8 2x4; a = Dequantize(x); g:f32 4 const;"
                             "n, mean, var = LayerNorm(a, g, g) {keep_stats=true}; y = Quantize(n);";
    EXPECT_EQ(Partitioned(text + "out y mean"), "x8_norm_post_ops(a n) single(y)");
    EXPECT_EQ(Partitioned(text + "out y"), "x8_norm_post_ops(a n y)");
}

// ---- data movement ----

TEST(PatternMove, EveryKindStaysInIntegers) {
    const std::string x = "x:u8 2x4; i:s64 1 const; two:s64 2 const; four:s64 4 const; a = Dequantize(x);";
    for (const char *op : {"StaticReshape(a) {shape=[4,2]}", "StaticTranspose(a) {order=[1,0]}", "Reorder(a)",
                           "Identity(a)", "Flatten(a)", "Unsqueeze(a, i)", "Gather(a, i)", "Slice(a, i, i)",
                           "Tile(a, two)", "Expand(a, two)", "Pad(a, four)"})
        EXPECT_EQ(Partitioned(x + "n = " + op + "; y = Quantize(n)"), "x8_move(a n y)") << op;
}

TEST(PatternMove, SeveralInARow) {
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); t = StaticTranspose(a) {order=[1,0]};"
                          "r = StaticReshape(t) {shape=[8]}; y = Quantize(r)"),
              "x8_move(a t r y)");
}

TEST(PatternMove, InterpolationMovesTheNearest) {
    const std::string x = "x:u8 1x4x5x5; a = Dequantize(x); n = Interpolate(a)";
    EXPECT_EQ(Partitioned(x + "; y = Quantize(n)"), "x8_move(a n y)");
    EXPECT_EQ(Partitioned(x + " {mode=linear}; y = Quantize(n)"), "x8_resample(a n y)");
}

TEST(PatternMove, WithoutQuantizeNothingIsSaved) {
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); t = StaticTranspose(a) {order=[1,0]}"), "single(a) single(t)");
}

TEST(PatternMove, SplitIsTakenApartByItsResults) {
    const std::string text = "x:u8 2x4; a = Dequantize(x); p, q = Split(a) {axis=1}; y = Quantize(p); z = Quantize(q)";
    EXPECT_EQ(Partitioned(text), "x8_split(a p y) x8_split(a p z)");
    // a result that somebody needs as floats
    EXPECT_EQ(Partitioned(text + "; out y z p"), "single(a) single(p) x8_split(a p y) x8_split(a p z)");
    EXPECT_EQ(Partitioned("x:f32 2x4; p, q = Split(x) {axis=1}; y = Quantize(p); z = Quantize(q)"),
              "single(p) single(y) single(z)");
}

TEST(PatternNorm, SpelledOut) {
    const std::string
        mean = "m = ReduceMean(x) {axes=[-1], keep_dims=true}; d = Subtract(x, m)",
        rest = "; s = Square(d); v = ReduceMean(s) {axes=[-1], keep_dims=true}; e:f32 1 const; w = Add(v, e);"
               "r = Sqrt(w); y = Divide(d, r)",
        scale = "; g:f32 4 const; z = Multiply(y, g)";
    EXPECT_EQ(Partitioned("x:f32 2x4; " + mean + rest + scale), "spelled_layernorm(m d s v w r y z)");
    EXPECT_EQ(Partitioned("i:u8 2x4; x = Dequantize(i); " + mean + rest + scale + "; q = Quantize(z)"),
              "spelled_layernorm(x m d s v w r y z q)");
    // what it needs inside is wanted outside
    EXPECT_EQ(Partitioned("x:f32 2x4; " + mean + rest + "; out y d").find("spelled_layernorm"), std::string::npos);
    EXPECT_EQ(Partitioned("x:f32 2x4; " + mean + rest + "; out y m").find("spelled_layernorm"), std::string::npos);
    // the norm of another value
    EXPECT_EQ(
        Partitioned("x:f32 2x4; t:f32 2x4; m = ReduceMean(t) {axes=[-1], keep_dims=true}; d = Subtract(x, m)" + rest)
            .find("spelled_layernorm"),
        std::string::npos);
    EXPECT_EQ(Partitioned("d:f32 2x4" + rest + scale), "spelled_rmsnorm(s v w r y z)");
}

TEST(PatternNorm, SoftmaxSpelledOut) {
    const std::string max = "m = ReduceMax(x) {axes=[-1], keep_dims=true}; d = Subtract(x, m); e = Exp(d)",
                      sum = "; s = ReduceSum(e) {axes=[-1], keep_dims=true}", divide = "; y = Divide(e, s)";
    EXPECT_EQ(Partitioned("x:f32 2x4; " + max + sum + divide), "spelled_softmax(m d e s y)");
    EXPECT_EQ(Partitioned("i:u8 2x4; x = Dequantize(i); " + max + sum + divide + "; q = Quantize(y)"),
              "spelled_softmax(x m d e s y q)");
    EXPECT_EQ(Partitioned("x:f32 2x4; " + max + sum + "; r = Reciprocal(s); y = Multiply(r, e)"),
              "spelled_softmax(m d e s r y)");
    // as exporters of 16-bit models write it
    EXPECT_EQ(Partitioned("i:s8 2x4; f = Dequantize(i); x = TypeCast(f); "
                          "m = ReduceMax(x) {axes=[-1], keep_dims=true}; d = Subtract(x, m); "
                          "c = Clamp(d) {min=0.0 max=1.0}; w:f32 = TypeCast(c); e = Exp(w)" +
                          sum + "; t = Clamp(s) {min=0.000001 max=1000000.0}; y = Divide(e, t); q = Quantize(y)"),
              "spelled_softmax(f x m d c w e s t y q)");
    // what it needs inside is wanted outside; sums of something else
    EXPECT_EQ(Partitioned("x:f32 2x4; " + max + sum + divide + "; out y e").find("spelled_softmax"), std::string::npos);
    EXPECT_EQ(Partitioned("x:f32 2x4; " + max + "; s = ReduceSum(d) {axes=[-1], keep_dims=true}" + divide)
                  .find("spelled_softmax"),
              std::string::npos);
    EXPECT_EQ(Partitioned("x:f32 2x1; " + max + "; s = ReduceSum(e) {axes=[-1], keep_dims=false}" + divide)
                  .find("spelled_softmax"),
              std::string::npos);
}

TEST(PatternMatmul, QuantizedAtRunTime) {
    const std::string text = "x:f32 2x4; w:s8 4x3 const; k:f32 1 const; q, s, z = DynamicQuantizeLinear(x);"
                             "f = Multiply(s, k); a = MatMulInteger(q, w, z); c = Cast(a) {to=f32}; y = Multiply(c, f)";
    EXPECT_EQ(Partitioned(text), "dynamic_matmul_post_ops(q f a c y)");
    // for two products: the quantization stays alone, the product of scales does not
    EXPECT_EQ(Partitioned(text + "; b = MatMulInteger(q, w, z); out y b"),
              "single(q) integer_matmul_post_ops(f a c y) single(b)");
    EXPECT_EQ(Partitioned(text + "; out y s"), "single(q) integer_matmul_post_ops(f a c y)");
}

TEST(PatternMove, Requantize) {
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); y = Quantize(a)"), "x8_requantize(a y)");
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); y = Quantize(a); z:u8 = Quantize(a); out y z a"),
              "single(a) x8_requantize(a y) x8_requantize(a z)");
}

TEST(PatternConcat, AnyNumberOfInputs) {
    EXPECT_EQ(Partitioned("x:u8 2x4; z:s8 2x4; a = Dequantize(x); b = Dequantize(z) {scales=[0.1]};"
                          "c = Concat(a, b, a); y = Quantize(c)"),
              "x8_concat(a b c y)");
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); c = Concat(a); y = Quantize(c)"), "x8_concat(a c y)");
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); z:f32 2x4; c = Concat(a, z); y = Quantize(c)"),
              "single(a) single(c) single(y)");
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); c = Concat(a, a); y = Quantize(c); out c y"),
              "single(a) single(c) single(y)");
    std::string text = "x:u8 2x4; a = Dequantize(x); c = Concat(a";
    for (int i = 0; i < 299; i++)
        text += ", a";
    EXPECT_EQ(Partitioned(text + "); y = Quantize(c)"), "x8_concat(a c y)");
}

// ---- elementwise ----

TEST(PatternEltwise, DequantizeOpQuantize) {
    for (const char *kind : {"Abs", "Clamp", "Elu", "Exp", "GELU", "HardSigmoid", "HardSwish", "LeakyReLU", "Log",
                             "Mish", "Pow", "ReLU", "Round", "Sigmoid", "SoftPlus", "Sqrt", "Square", "Tanh", "Erf"})
        EXPECT_EQ(Partitioned(std::string("x:u8 2x4; a = Dequantize(x); n = ") + kind + "(a); y = Quantize(n)"),
                  "x8_eltwise(a n y)")
            << kind;
}

TEST(PatternEltwise, BinaryOfOneOrTwoDequantized) {
    const std::string two = "x:u8 2x4; z:s8 2x4; a = Dequantize(x); b = Dequantize(z);";
    const std::string one = "x:u8 2x4; f:f32 2x4; a = Dequantize(x);";
    EXPECT_EQ(Partitioned(two + "n = Add(a, b); r = ReLU(n); y = Quantize(r)"), "x8_eltwise(a b n r y)");
    EXPECT_EQ(Partitioned(two + "n = Subtract(b, a); y = Quantize(n)"), "x8_eltwise(a b n y)");
    EXPECT_EQ(Partitioned(one + "n = Add(a, f); y = Quantize(n)"), "x8_eltwise(a n y)");
    EXPECT_EQ(Partitioned(one + "n = Add(f, a); y = Quantize(n)"), "x8_eltwise(a n y)");
    EXPECT_EQ(Partitioned(one + "n = Divide(a, f); y = Quantize(n)"), "x8_eltwise(a n y)");
    EXPECT_EQ(Partitioned(one + "n = Divide(f, a); y = Quantize(n)"), "x8_eltwise_rhs(a n y)");
}

TEST(PatternEltwise, PreluWithItsQuantizedSlope) {
    EXPECT_EQ(Partitioned("x:u8 2x4; k:s8 4 const; a = Dequantize(x); b = Dequantize(k); n = PReLU(a, b);"
                          "y = Quantize(n)"),
              "x8_eltwise(a b n y)");
}

TEST(PatternEltwise, SwishOfADequantizedValue) {
    EXPECT_EQ(Partitioned("x:u8 2x4; a = Dequantize(x); s = Sigmoid(a); n = Multiply(a, s); y = Quantize(n)"),
              "x8_eltwise(a s n y)");
}

TEST(PatternEltwise, SumOfManyAndItsChain) {
    EXPECT_EQ(Partitioned("x:u8 2x4; z:s8 2x4; a = Dequantize(x); b = Dequantize(z); n = Sum(a, b, a); r = ReLU(n);"
                          "y = Quantize(r)"),
              "x8_sum(a b n r y)");
}

TEST(PatternEltwise, FloatRunsOfTwoAndMore) {
    EXPECT_EQ(Partitioned("x:f32 2x4; r = ReLU(x)"), "single(r)");
    EXPECT_EQ(Partitioned("x:f32 2x4; r = ReLU(x); t = Tanh(r)"), "fp_eltwise(r t)");
    EXPECT_EQ(Partitioned("x:f32 2x4; z:f32 2x4; r = Add(x, z); t = Multiply(z, r); y = Quantize(t)"),
              "fp_eltwise(r t y)");
    EXPECT_EQ(Partitioned("x:f32 2x4; r = ReLU(x); y = Quantize(r)"), "fp_eltwise(r y)");
}

TEST(PatternEltwise, RunsAreNoLongerThanThirtyTwo) {
    std::string text = "m:f32 2x4;", first, second;
    for (int i = 0; i < 40; i++)
        (i < 32 ? first : second) += " r" + std::to_string(i);
    EXPECT_EQ(Partitioned(text + Chain(40)),
              "fp_eltwise(" + first.substr(1) + ") fp_eltwise(" + second.substr(1) + " y)");
}

TEST(PatternEltwise, IntegerArithmeticStaysAlone) {
    EXPECT_EQ(Partitioned("x:s64 2x4; r = Add(x, x); t = Multiply(r, r)"), "single(r) single(t)");
}

TEST(PatternEltwise, HeavierFamiliesTakeTheirChainFirst) {
    // The sum's first operand comes first in the graph; the matmul has it nevertheless.
    EXPECT_EQ(Partitioned("z:f32 2x8; e = ReLU(z);" + kMatmul + "m = MatMul(a, b); n = Add(e, m); y = Quantize(n)"),
              "single(e) x8_matmul_post_ops(a b m n y)");
}

// ---- policy ----

TEST(PatternPolicy, SingleGivesEachOpItsPartition) {
    EXPECT_EQ(Partitioned(kMatmul + "m = MatMul(a, b); r = ReLU(m); y = Quantize(r)", QDQ_POLICY_SINGLE),
              "single(a) single(b) single(m) single(r) single(y)");
}

TEST(PatternPolicy, UnknownOneIsRefused) {
    EXPECT_EQ(Partitioned("x:f32 2x4; r = ReLU(x)", (qdq_policy)77),
              "partition policy is 77, expected 0 (fusion) or 1 (single)");
}

TEST(PatternPolicy, OpsWithoutOutputsAreSingles) {
    EXPECT_EQ(Partitioned("x:f32 2x4; r = ReLU(x); z = Wildcard(r)"), "single(r) single(z)");
}

} // namespace
