// Every granularity, axis, sign and dtype where another backend is known to be wrong, crossed with the op that it was wrong in.
// Each graph is one partition, and equals node-by-node.
#include "fusion/field.h"

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

class FieldMatrix : public Field {
  protected:
    static Longs Range(qdq_dtype type, int64_t n, int64_t step) {
        return type == kS8 ? Ramp(n, -128, 127, step) : Ramp(n, 0, 255, step);
    }
    Id Data(qdq_dtype type, const Dims &dims, int64_t step = 37) {
        return X(type, dims, Range(type, Count(dims), step));
    }
    Id Weights(qdq_dtype type, const Dims &dims, int64_t step = 53) {
        return W(type, dims, Range(type, Count(dims), step));
    }
    static Reals Scales(int64_t n, float first) {
        Reals s;
        for (int64_t i = 0; i < n; i++)
            s.push_back(first * static_cast<float>(1 + i % 5));
        return s;
    }
    static Longs Zps(qdq_dtype type, int64_t n) {
        Longs z;
        for (int64_t i = 0; i < n; i++)
            z.push_back((type == kS8 ? -7 : 121) + i * 5 % 19);
        return z;
    }
    // Per tensor for axis `none`, else one scale (and zero point) per index of it.
    enum { kNone = 99 };
    Id DqAlong(Id x, int64_t axis, float scale, bool zps) {
        const Value &v = net.At(x);
        const auto rank = static_cast<int64_t>(v.dims.size());
        const int64_t n = axis == kNone ? 1 : v.dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
        std::vector<Attr> attrs = {AttrFs("scales", Scales(n, scale))};
        if (zps) attrs.push_back(AttrIs("zps", Zps(v.dtype, n)));
        if (axis != kNone) {
            attrs.push_back(AttrS("qtype", "per_channel"));
            attrs.push_back(AttrI("axis", axis));
        }
        return Op("Dequantize", {x}, attrs);
    }
};

// ---- convolutions: weights with zero points and any axis ----

TEST_F(FieldMatrix, ConvolutionsOfWeightsWithZeroPoints) {
    const struct {
        Dims x, w;
        Longs strides, begin, end;
        int64_t groups;
    } shapes[] = {
        {{2, 4, 9}, {6, 4, 3}, {1}, {1}, {1}, 1},                               // 1-D, padded
        {{2, 4, 9}, {4, 1, 3}, {2}, {2}, {0}, 4},                               // 1-D, depthwise
        {{1, 6, 5, 4}, {4, 6, 3, 2}, {1, 2}, {1, 0}, {0, 1}, 1},                // 2-D
        {{1, 6, 5, 4}, {4, 6, 1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},                // 1x1
        {{1, 6, 5, 4}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},                // groups
        {{1, 16, 5, 6}, {16, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 16},             // depthwise
        {{1, 3, 4, 3, 5}, {5, 3, 2, 3, 2}, {1, 1, 2}, {1, 1, 0}, {0, 1, 1}, 1}, // 3-D
    };
    for (const auto &s : shapes)
        for (const qdq_dtype xt : {kS8, kU8})
            for (const qdq_dtype wt : {kS8, kU8})
                for (const bool x_zp : {false, true})
                    for (const int64_t axis : {int64_t{kNone}, int64_t{0}}) {
                        Clear();
                        const Id x = DqAlong(Data(xt, s.x), kNone, 0.05f, x_zp);
                        const Id w = DqAlong(Weights(wt, s.w), axis, 0.004f, true);
                        const Id c = Op("Convolution", {x, w}, ConvAttrs(s.strides, s.begin, s.end, s.groups));
                        Same({Q(Op("ReLU", {c}), kU8, {0.3f}, {3})});
                    }
}

TEST_F(FieldMatrix, ConvolutionsOfWeightsAlongEveryAxis) {
    for (const int64_t axis : {0, 1, 2, 3, -1, -2, -3, -4})
        for (const bool zps : {false, true})
            for (const int64_t groups : {1, 2}) {
                Clear();
                const Id x = DqAlong(Data(kU8, {2, 4, 5, 4}), kNone, 0.05f, true);
                const Id w = DqAlong(Weights(kS8, {6, 4 / groups, 3, 2}), axis, 0.004f, zps);
                const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {1, 0}, {1, 1}, groups));
                Same({Q(c, kS8, {0.5f}, {-3})});
                Clear(); // the transposed one: IOX, the output channels are dim 1
                const Id y = DqAlong(Data(kU8, {2, 4, 3, 3}), kNone, 0.05f, true);
                const Id v = DqAlong(Weights(kS8, {4, 6 / groups, 3, 2}), axis, 0.004f, zps);
                std::vector<Attr> attrs = ConvAttrs({2, 1}, {1, 0}, {1, 1}, groups);
                attrs.back() = AttrS("weights_format", "IOX");
                Same({Q(Op("ConvTranspose", {y, v}, attrs), kS8, {0.5f}, {-3})});
            }
}

TEST_F(FieldMatrix, ConvolutionsOfDataAlongEveryAxis) {
    for (const int64_t axis : {0, 1, 2, 3, -1, -3})
        for (const bool zps : {false, true})
            for (const bool depthwise : {false, true}) {
                Clear();
                const Id x = DqAlong(Data(kU8, {2, 4, 5, 3}), axis, 0.05f, zps);
                const Id w = DqAlong(Weights(kS8, depthwise ? Dims{4, 1, 3, 3} : Dims{5, 4, 3, 3}), 0, 0.004f, false);
                const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {1, 1}, {1, 1}, depthwise ? 4 : 1));
                Same({Q(c, kU8, {0.5f}, {128})});
            }
}

TEST_F(FieldMatrix, RuntimeWeightsOfConvolutions) {
    for (const qdq_dtype wt : {kS8, kU8})
        for (const bool zps : {false, true})
            for (const int64_t axis : {int64_t{kNone}, int64_t{0}}) {
                Clear();
                const Id x = DqAlong(Data(kS8, {1, 4, 5, 4}), kNone, 0.05f, true);
                const Id w = DqAlong(Data(wt, {6, 4, 3, 3}, 53), axis, 0.004f, zps);
                const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {1, 1}, {1, 1}));
                Same({Q(c, kU8, {0.5f}, {128})});
            }
}

// ---- products: per token, per group, along K ----

TEST_F(FieldMatrix, ProductsOfDataAlongEveryAxis) { // axis -2: one scale per token
    for (const int64_t axis : {0, 1, 2, -1, -2, -3})
        for (const bool zps : {false, true})
            for (const qdq_dtype wt : {kS8, kU8})
                for (const bool ta : {false, true}) {
                    Clear();
                    const Id x = DqAlong(Data(kU8, ta ? Dims{2, 12, 5} : Dims{2, 5, 12}), axis, 0.02f, zps);
                    const Id w = DqAlong(Weights(wt, {12, 7}), 1, 0.01f, wt == kU8);
                    const Id m = Op("MatMul", {x, w}, {AttrB("transpose_a", ta)});
                    Same({Q(Op("ReLU", {m}), kU8, {0.3f}, {3})});
                }
}

TEST_F(FieldMatrix, ProductsOfWeightsAlongEveryAxis) {
    for (const int64_t axis : {0, 1, 2, -1, -2, -3})
        for (const bool zps : {false, true})
            for (const bool tb : {false, true})
                for (const bool constant : {false, true}) {
                    Clear();
                    const Dims dims = tb ? Dims{3, 7, 12} : Dims{3, 12, 7};
                    const Id x = DqAlong(Data(kU8, {3, 5, 12}), kNone, 0.02f, true);
                    const Id w = DqAlong(constant ? Weights(kS8, dims) : Data(kS8, dims, 53), axis, 0.01f, zps);
                    const Id m = Op("MatMul", {x, w}, {AttrB("transpose_b", tb)});
                    Same({Q(m, kS8, {0.3f}, {3})});
                }
}

TEST_F(FieldMatrix, TokensWithScalesOfTheRun) {
    for (const qdq_dtype type : {kS8, kU8})
        for (const bool zps : {false, true})
            for (const int64_t m : {1, 5}) {
                Clear();
                std::vector<Id> in = {Data(type, {m, 12}), F({m}, Scales(m, 0.02f))};
                if (zps) in.push_back(X(type, {m}, Zps(type, m)));
                const Id x = Op("DynamicDequantize", in, {AttrS("qtype", "per_channel"), AttrI("axis", 0)});
                const Id w = DqAlong(Weights(kS8, {12, 7}), 1, 0.01f, false);
                const Id y = Op("MatMul", {x, w});
                Same({Op("Add", {y, net.Floats({7}, Scales(7, 0.1f), true)})});
            }
}

TEST_F(FieldMatrix, GroupsOfWeightsBesideQuantizedData) {
    for (const int64_t group : {1, 4, 6, 12})
        for (const bool linear : {false, true})
            for (const bool zps : {false, true})
                for (const qdq_dtype wt : {kS8, kU8, QDQ_DTYPE_S4, QDQ_DTYPE_U4}) {
                    if (linear && 12 % group) continue;
                    Clear();
                    const bool four = wt == QDQ_DTYPE_S4 || wt == QDQ_DTYPE_U4;
                    const bool is_signed = wt == kS8 || wt == QDQ_DTYPE_S4;
                    const Longs values = four ? Ramp(84, is_signed ? -8 : 0, is_signed ? 7 : 15, 5) : Range(wt, 84, 53);
                    const Id w = W(wt, {12, 7}, values);
                    std::vector<Id> in = {w, net.Floats({12 / group, 7}, Scales(84 / group, 0.01f), true)};
                    const Longs z = four ? Ramp(84 / group, 0, 7, 3) : Zps(wt, 84 / group);
                    if (zps) in.push_back(W(wt, {12 / group, 7}, z));
                    const Id dq = linear ? Op("DequantizeLinear", in, {AttrI("axis", 0), AttrI("block_size", group)})
                                         : Op("DynamicDequantize", in,
                                              {AttrS("qtype", "per_group"), AttrIs("group_shape", {group, 1})});
                    const Id x = DqAlong(Data(kU8, {3, 12}), kNone, 0.02f, true);
                    Same({Q(Op("MatMul", {x, dq}), kS8, {0.3f}, {3})});
                }
}

// ---- results: per channel, biases, residuals ----

TEST_F(FieldMatrix, QuantizePerChannelDivides) {
    for (const bool zps : {false, true})
        for (const int64_t axis : {1, -1, 0}) {
            const auto q = [&](Id y) {
                const Dims &dims = net.At(y).dims;
                const auto rank = static_cast<int64_t>(dims.size());
                const int64_t n = dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
                std::vector<Attr> attrs = {AttrFs("scales", Scales(n, 0.2f)), AttrS("qtype", "per_channel"),
                                           AttrI("axis", axis)};
                if (zps) attrs.push_back(AttrIs("zps", Zps(kU8, n)));
                return Op("Quantize", {y}, attrs, kU8);
            };
            Clear();
            const Id x = DqAlong(Data(kU8, {2, 4, 5, 4}), kNone, 0.05f, true);
            const Id w = DqAlong(Weights(kS8, {6, 4, 1, 1}), 0, 0.01f, false);
            Same({q(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0})))});
            Clear();
            const Id a = DqAlong(Data(kS8, {3, 5, 12}), kNone, 0.02f, true);
            Same({q(Op("MatMul", {a, DqAlong(Weights(kS8, {12, 7}), 1, 0.01f, false)}))});
            Clear();
            const Id p = DqAlong(Data(kU8, {2, 4, 5, 4}), kNone, 0.05f, true);
            Same({q(Op("MaxPool", {p}, PoolAttrs({2, 2}, {1, 1}, {0, 0}, {0, 0})))});
            Clear();
            const Id s = DqAlong(Data(kU8, {2, 4, 5, 4}), kNone, 0.05f, true);
            Same({q(Op("Add", {s, DqAlong(Data(kS8, {2, 4, 5, 4}, 71), kNone, 0.03f, true)}))});
            Clear();
            Same({q(Op("Tanh", {DqAlong(Data(kU8, {2, 4, 5, 4}), 1, 0.02f, true)}))});
        }
}

TEST_F(FieldMatrix, BiasesWithScalesOfTheirOwn) {
    for (const qdq_dtype type : {QDQ_DTYPE_S32, kS8, kU8})
        for (const bool along : {false, true})
            for (const bool constant : {false, true})
                for (const float scale : {0.0002f, 0.07f, -0.03f}) {
                    const auto bias = [&] {
                        Longs v = type == QDQ_DTYPE_S32 ? Longs{100, -2000, 30, 4, -5} : Range(type, 5, 53);
                        return DqAlong(constant ? W(type, {5}, v) : X(type, {5}, v), along ? 0 : int64_t{kNone}, scale,
                                       type != QDQ_DTYPE_S32);
                    };
                    Clear();
                    const Id x = DqAlong(Data(kU8, {1, 4, 3, 3}), kNone, 0.05f, true);
                    const Id w = DqAlong(Weights(kS8, {5, 4, 1, 1}), 0, 0.01f, false);
                    Same({Q(Op("Convolution", {x, w, bias()}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kU8, {0.5f}, {128})},
                         0);
                    Clear();
                    const Id a = DqAlong(Data(kU8, {3, 4}), kNone, 0.05f, true);
                    const Id v = DqAlong(Weights(kS8, {4, 5}), 1, 0.01f, false);
                    Same({Q(Op("MatMul", {a, v, bias()}), kS8, {0.5f}, {3})}, 0);
                }
}

TEST_F(FieldMatrix, ResidualsOfEveryPairAndScale) {
    for (const qdq_dtype out : {kS8, kU8})
        for (const qdq_dtype residual : {kS8, kU8})
            for (const float scale : {0.05f, 0.3f, -0.1f})
                for (const bool along : {false, true})
                    for (const bool first : {false, true}) {
                        Clear();
                        const Id x = DqAlong(Data(kU8, {2, 4, 3, 3}), kNone, 0.05f, true);
                        const Id w = DqAlong(Weights(kS8, {5, 4, 1, 1}), 0, 0.004f, false);
                        const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
                        const Id r = DqAlong(Data(residual, {2, 5, 3, 3}, 71), along ? 1 : int64_t{kNone}, scale, true);
                        Same({Q(Op("Add", first ? std::vector<Id>{r, c} : std::vector<Id>{c, r}), out, {0.2f},
                                {out == kS8 ? -5 : 100})});
                        Clear();
                        const Id a = DqAlong(Data(kS8, {3, 12}), kNone, 0.02f, true);
                        const Id m = Op("MatMul", {a, DqAlong(Weights(kS8, {12, 5}), 1, 0.004f, false)});
                        const Id s = DqAlong(Data(residual, {3, 5}, 71), along ? 1 : int64_t{kNone}, scale, true);
                        Same({Q(Op("Add", first ? std::vector<Id>{s, m} : std::vector<Id>{m, s}), out, {0.2f},
                                {out == kS8 ? -5 : 100})});
                    }
}

// ---- pools ----

TEST_F(FieldMatrix, AveragesOfStoredZeros) { // padding is real 0 when it counts, and nothing when it does not
    for (const char *format : {"NCX", "NXC"})
        for (const bool exclude : {false, true})
            for (const qdq_dtype type : {kS8, kU8})
                for (const int64_t zp : {0, 3, 127})
                    for (const float out_scale : {0.1f, 0.07f})
                        for (const int spatial : {1, 2, 3}) {
                            Clear();
                            Dims dims = {2, 5, 6, 5, 4};
                            dims.resize(static_cast<size_t>(spatial) + 1);
                            dims.insert(format[1] == 'C' ? dims.begin() + 1 : dims.end(), 3);
                            const Longs ones(static_cast<size_t>(spatial), 1);
                            auto attrs = PoolAttrs(Longs(static_cast<size_t>(spatial), 3),
                                                   Longs(static_cast<size_t>(spatial), 2), ones, ones, format);
                            attrs.push_back(AttrB("exclude_pad", exclude));
                            const Id x = Dq(Data(type, dims), {0.1f}, {zp});
                            Same({Q(Op("AvgPool", {x}, attrs), type, {out_scale}, {zp})});
                        }
}

// ---- activations around zero points, and signs ----

TEST_F(FieldMatrix, BoundsAroundZeroPoints) {
    const struct {
        const char *kind;
        std::vector<Attr> attrs;
    } bounds[] = {{"ReLU", {}},
                  {"Clamp", {AttrF("min", 0), AttrF("max", 6)}},
                  {"Clamp", {AttrF("min", -2), AttrF("max", 3)}},
                  {"Clamp", {AttrF("min", 1.5f), AttrF("max", 2)}},
                  {"LeakyReLU", {AttrF("alpha", 0.25f)}}};
    for (const auto &b : bounds)
        for (const qdq_dtype type : {kS8, kU8})
            for (const int64_t zp : {type == kS8 ? -128 : 0, 10, type == kS8 ? 0 : 128, type == kS8 ? 127 : 255})
                for (const float scale : {0.05f, -0.05f}) {
                    Clear();
                    Same({Q(Op(b.kind, {DqAlong(Data(kU8, {3, 40}), kNone, 0.06f, true)}, b.attrs), type, {scale},
                            {zp})});
                    Clear();
                    const Id a = DqAlong(Data(kS8, {3, 12}), kNone, 0.02f, true);
                    const Id m = Op("MatMul", {a, DqAlong(Weights(kS8, {12, 5}), 1, 0.004f, false)});
                    Same({Q(Op(b.kind, {m}, b.attrs), type, {scale}, {zp})});
                    Clear();
                    const Id x = DqAlong(Data(kU8, {1, 4, 3, 3}), kNone, 0.05f, true);
                    const Id w = DqAlong(Weights(kS8, {5, 4, 1, 1}), 0, 0.004f, false);
                    const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
                    Same({Q(Op(b.kind, {c}, b.attrs), type, {scale}, {zp})});
                }
}

TEST_F(FieldMatrix, NegativeScalesEverywhere) {
    for (int v = 1; v < 8; v++) {
        const float a = v & 1 ? -0.05f : 0.05f, b = v & 2 ? -0.02f : 0.02f, o = v & 4 ? -0.3f : 0.3f;
        const std::vector<Attr> avg = [&] {
            auto attrs = PoolAttrs({2, 3}, {1, 2}, {1, 1}, {0, 1});
            attrs.push_back(AttrB("exclude_pad", v & 1));
            return attrs;
        }();
        const auto x4 = [&] { return Dq(Data(kU8, {2, 3, 5, 4}), {a}, {100}); };
        const auto y4 = [&] { return Dq(Data(kS8, {2, 3, 5, 4}, 71), {b}, {-3}); };
        Clear();
        Same({Q(Op("MatMul", {Dq(Data(kU8, {3, 12}), {a}, {9}), Dq(Weights(kS8, {12, 5}), {b, -b, b, b, -b}, {}, 1)}),
                kS8, {o}, {2})});
        Clear();
        const Id w = Dq(Weights(kS8, {4, 3, 3, 3}), {b, -b, b, b}, {}, 0);
        Same({Q(Op("Convolution", {x4(), w}, ConvAttrs({1, 1}, {1, 1}, {1, 1})), kU8, {o}, {50})});
        Clear();
        Same({Q(Op("AvgPool", {x4()}, avg), kU8, {o}, {50})});
        Clear();
        Same({Q(Op("MaxPool", {x4()}, PoolAttrs({2, 3}, {1, 2}, {1, 1}, {0, 1})), kU8, {o}, {50})});
        for (const char *kind : {"Add", "Subtract", "Multiply", "Maximum", "Minimum"}) {
            Clear();
            Same({Q(Op(kind, {x4(), y4()}), kS8, {o}, {-7})});
        }
        Clear();
        Same({Q(Op("Concat", {x4(), y4()}, {AttrI("axis", 1)}), kS8, {o}, {-7})});
        for (const char *kind : {"ReduceMax", "ReduceMean", "ReduceSum"}) {
            Clear();
            Same({Q(Op(kind, {x4()}, {AttrIs("axes", {2, 3}), AttrB("keep_dims", true)}), kS8, {o}, {-7})});
        }
        Clear();
        Same({Q(Op("Sigmoid", {x4()}), kU8, {v & 4 ? -0.004f : 0.004f}, {v & 4 ? 255 : 0})});
        Clear();
        Same({Q(Op("SoftMax", {x4()}, {AttrI("axis", -1)}), kU8, {v & 4 ? -0.004f : 0.004f}, {v & 4 ? 255 : 0})});
        Clear();
        Same({Q(x4(), kS8, {o}, {-7})}, 0);
    }
}

// ---- structure ----

TEST_F(FieldMatrix, InnerPairsAreKept) { // the rounding and the saturation of every Quantize between
    for (const float inner : {0.02f, 1.0f, 40.0f})
        for (const qdq_dtype type : {kS8, kU8}) {
            const auto pair = [&](Id y) {
                return Dq(Q(y, type, {inner}, {type == kS8 ? -3 : 77}), {inner}, {type == kS8 ? -3 : 77});
            };
            Clear();
            const Id a = DqAlong(Data(kS8, {3, 12}), kNone, 0.2f, true);
            const Id m = pair(Op("MatMul", {a, DqAlong(Weights(kS8, {12, 5}), 1, 0.01f, false)}));
            Same({Q(Op("ReLU", {m}), kU8, {0.5f}, {3})}, 0);
            Clear();
            const Id x = DqAlong(Data(kU8, {1, 4, 6, 6}), kNone, 0.1f, true);
            const Id w = DqAlong(Weights(kS8, {4, 4, 3, 3}), 0, 0.01f, false);
            const Id c = pair(Op("Convolution", {x, w}, ConvAttrs({1, 1}, {1, 1}, {1, 1})));
            const Id d =
                pair(Op("Convolution", {pair(Op("ReLU", {c})), DqAlong(Weights(kS8, {4, 4, 1, 1}), 0, 0.02f, false)},
                        ConvAttrs({1, 1}, {0, 0}, {0, 0})));
            Same({Q(Op("Add", {c, d}), kS8, {0.9f})}, 0);
            Clear(); // of one value, twice over: the second pair is another quantization
            const Id y = pair(DqAlong(Data(kU8, {3, 5}), kNone, 0.1f, true));
            Same({Q(Op("Tanh", {Dq(Q(y, kU8, {inner * 1.5f}, {60}), {inner * 1.5f}, {60})}), kS8, {0.008f})}, 0);
        }
}

TEST_F(FieldMatrix, OneDequantizeForAllKindsOfConsumers) {
    for (const bool output : {false, true}) {
        Clear();
        const Id x = DqAlong(Data(kU8, {1, 4, 6, 6}), kNone, 0.05f, true);
        std::vector<Id> outs;
        const Id w = DqAlong(Weights(kS8, {4, 4, 1, 1}), 0, 0.01f, false);
        const Id c = Op("Convolution", {x, w}, ConvAttrs({1, 1}, {0, 0}, {0, 0}));
        outs.push_back(Q(Op("Add", {c, x}), kU8, {0.1f}, {30}));
        outs.push_back(Q(Op("MaxPool", {x}, PoolAttrs({2, 2}, {2, 2}, {0, 0}, {0, 0})), kU8, {0.1f}, {30}));
        outs.push_back(Q(Op("MatMul", {x, DqAlong(Weights(kS8, {6, 5}), 1, 0.01f, false)}), kS8, {0.1f}));
        outs.push_back(Q(Op("Multiply", {x, x}), kU8, {0.3f}));
        outs.push_back(Q(Op("Concat", {x, x}, {AttrI("axis", 1)}), kU8, {0.05f}, {121}));
        outs.push_back(Op("ReduceMean", {x}, {AttrIs("axes", {2, 3}), AttrB("keep_dims", false)}));
        outs.push_back(Q(x, kS8, {0.05f}));
        if (output) outs.push_back(x);
        Same(outs, 0);
    }
}

TEST_F(FieldMatrix,
       TiedWeights) { // one initializer: an embedding, a product, its transpose, a convolution's, other scales
    const Id table = Weights(kS8, {9, 8});
    std::vector<Id> outs;
    const Id rows = Op("Gather", {DqAlong(table, kNone, 0.02f, false), net.Ints(QDQ_DTYPE_S64, {3}, {8, 0, 4}, false)},
                       {AttrI("axis", 0)});
    outs.push_back(rows);
    const Id x = DqAlong(Data(kU8, {3, 8}), kNone, 0.05f, true), y = DqAlong(Data(kU8, {3, 9}), kNone, 0.05f, true);
    outs.push_back(Q(Op("MatMul", {x, DqAlong(table, 0, 0.02f, false)}, {AttrB("transpose_b", true)}), kS8, {0.4f}));
    outs.push_back(Q(Op("MatMul", {x, DqAlong(table, kNone, 0.02f, true)}, {AttrB("transpose_b", true)}), kS8, {0.4f}));
    outs.push_back(Q(Op("MatMul", {y, DqAlong(table, 1, 0.01f, false)}), kS8, {0.4f}));
    outs.push_back(Q(Op("MatMul", {y, DqAlong(table, 0, 0.01f, true)}), kS8, {0.4f}));
    Same(outs, 0);
    Clear();
    const Id one = DqAlong(Weights(kS8, {4, 4, 1, 1}), 0, 0.02f, false); // one Dequantize, too
    const Id a = DqAlong(Data(kU8, {1, 4, 5, 5}), kNone, 0.05f, true);
    const Id first = Q(Op("Convolution", {a, one}, ConvAttrs({1, 1}, {0, 0}, {0, 0})), kU8, {0.1f}, {99});
    const Id second = Op("Convolution", {Dq(first, {0.1f}, {99}), one}, ConvAttrs({2, 2}, {1, 1}, {0, 0}));
    Same({first, Q(second, kU8, {0.2f}, {99})}, 2);
}

} // namespace
} // namespace qdq_test
