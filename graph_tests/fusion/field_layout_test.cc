// Ports in any layout: the dims of inputs and results in any order in memory, with gaps, with dims of 1 whose strides say nothing.
#include "fusion/field.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace qdq_test {
namespace {

const qdq_dtype kS8 = QDQ_DTYPE_S8, kU8 = QDQ_DTYPE_U8;

class FieldLayout : public Field {
  protected:
    // Strides of a random order of the dims, often with gaps; of a dim of 1, sometimes any.
    Dims AnyStrides(const Dims &dims) {
        std::vector<size_t> order(dims.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const int64_t how = random_.Int(0, 4); // dense, channels last, any order
        if (how == 1 && dims.size() > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
        if (how > 1)
            for (size_t i = order.size(); i > 1; i--)
                std::swap(order[i - 1], order[static_cast<size_t>(random_.Int(0, static_cast<int64_t>(i) - 1))]);
        Dims strides(dims.size());
        int64_t next = random_.Chance(0.15) ? 2 : 1;
        for (size_t k = order.size(); k-- > 0;) {
            const size_t d = order[k];
            strides[d] = dims[d] == 1 && random_.Chance(0.3) ? random_.Int(1, 9) : next;
            next *= std::max<int64_t>(dims[d], 1);
            if (random_.Chance(0.15)) next += random_.Int(1, 5);
        }
        return strides;
    }
    Id In(qdq_dtype dtype, const Dims &dims) {
        const int64_t n = Count(dims);
        Reals f;
        for (int64_t i = 0; i < n; i++)
            f.push_back(0.125f * static_cast<float>((i * 29) % 37 - 18));
        const Id x = dtype == kU8   ? U8(dims, Ramp(n, 0, 255))
                     : dtype == kS8 ? S8(dims, Ramp(n, -128, 127))
                                    : net.Floats(dims, f, false, dtype);
        net.values[static_cast<size_t>(x)].strides = AnyStrides(dims);
        return x;
    }
    // Of one rank; batch and channels are 1 now and then.
    Dims Image(int64_t rank, int64_t channels) {
        Dims d = {random_.Int(1, 2), random_.Chance(0.2) ? 1 : channels};
        while (static_cast<int64_t>(d.size()) < rank)
            d.push_back(random_.Chance(0.3) ? 1 : random_.Int(2, 6));
        return d;
    }
    void Out(Id y) {
        net.values[static_cast<size_t>(y)].strides = AnyStrides(net.At(y).dims);
        Same({y}, 0);
    }
    void Times(int n, const std::function<Id()> &make) {
        const char *times = std::getenv("QDQ_TEST_FUZZ"); // N: N times as many
        for (int i = 0; i < n * (times ? std::atoi(times) : 1) && !HasFailure(); i++) {
            Clear();
            Out(make());
        }
    }
    Random random_{77};
};

TEST_F(FieldLayout, Convolutions) {
    for (const bool int8 : {false, true})
        for (const int64_t rank : {3, 4, 5})
            for (const bool depthwise : {false, true})
                Times(8, [&] {
                    const Dims xd = Image(rank, 4);
                    const int64_t c = xd[1], oc = depthwise ? c : random_.Pick<int64_t>({1, 3, 16});
                    Dims wd = {oc, depthwise ? 1 : c};
                    for (int64_t i = 2; i < rank; i++)
                        wd.push_back(random_.Pick<int64_t>({1, 2, 3}));
                    const Longs ones(static_cast<size_t>(rank - 2), 1);
                    const Id x = In(int8 ? kU8 : QDQ_DTYPE_F32, xd), w = In(int8 ? kS8 : QDQ_DTYPE_F32, wd);
                    if (random_.Chance(0.5)) { // of constants only the values count
                        net.values[static_cast<size_t>(w)].is_constant = true;
                        net.values[static_cast<size_t>(w)].strides.clear();
                    }
                    const auto attrs = ConvAttrs(ones, ones, ones, depthwise ? c : 1);
                    const Id y =
                        Op("Convolution",
                           int8 ? std::vector<Id>{Dq(x, {0.1f}, {7}), Dq(w, {0.02f})} : std::vector<Id>{x, w}, attrs);
                    const Id r = Op("Add", {y, int8 ? Dq(In(kS8, net.At(y).dims), {0.1f}, {3})
                                                    : In(QDQ_DTYPE_F32, net.At(y).dims)});
                    return int8 ? Q(r, kU8, {0.3f}, {128}) : r;
                });
}

TEST_F(FieldLayout, SmallConvolutions) { // kernels larger than the image, windows that miss it, one channel, one plane
    for (const bool int8 : {false, true})
        for (const size_t n : {1u, 2u, 3u})
            Times(60, [&] {
                const bool depthwise = random_.Chance(0.2);
                const int64_t ic = random_.Pick<int64_t>({1, 2, 4, 16});
                Dims xd = {1, ic}, wd = {depthwise ? ic : random_.Pick<int64_t>({1, 3, 16}), depthwise ? 1 : ic};
                Longs strides, begin, end, dilations;
                for (size_t i = 0; i < n; i++) {
                    wd.push_back(random_.Int(1, 4));
                    begin.push_back(random_.Int(0, wd.back() - 1));
                    end.push_back(random_.Int(0, wd.back() - 1));
                    dilations.push_back(random_.Int(1, 2));
                    strides.push_back(random_.Int(1, 2));
                    const int64_t window = (wd.back() - 1) * dilations.back() + 1 - begin.back() - end.back();
                    xd.push_back(std::max<int64_t>(window, 1) + random_.Int(0, 3));
                }
                auto attrs = ConvAttrs(strides, begin, end, depthwise ? ic : 1);
                attrs[1] = AttrIs("dilations", dilations);
                if (!int8) return Op("Convolution", {In(QDQ_DTYPE_F32, xd), In(QDQ_DTYPE_F32, wd)}, attrs);
                const Id x = Dq(In(kU8, xd), {0.1f}, {random_.Chance(0.5) ? 7 : 0});
                const Id w = Dq(W(kS8, wd, Ramp(Count(wd), -128, 127, 53)), {0.02f});
                return Q(Op("Convolution", {x, w}, attrs), kU8, {0.3f}, {128});
            });
}

TEST_F(FieldLayout, TransposedConvolutions) {
    for (const bool int8 : {false, true})
        Times(12, [&] {
            const Dims xd = Image(4, 4);
            const Id x = In(int8 ? kU8 : QDQ_DTYPE_F32, xd), w = In(int8 ? kS8 : QDQ_DTYPE_F32, {xd[1], 3, 2, 3});
            auto attrs = ConvAttrs({2, 1}, {0, 1}, {0, 1});
            attrs.back() = AttrS("weights_format", "IOX");
            const Id y = Op("ConvTranspose",
                            int8 ? std::vector<Id>{Dq(x, {0.1f}, {7}), Dq(w, {0.02f})} : std::vector<Id>{x, w}, attrs);
            return int8 ? Q(y, kU8, {0.3f}, {128}) : Op("ReLU", {y});
        });
}

TEST_F(FieldLayout, Products) {
    for (const bool int8 : {false, true})
        for (const int64_t rank : {2, 3, 4, 5})
            Times(40, [&] {
                const bool ta = random_.Chance(0.3), tb = random_.Chance(0.3);
                const int64_t m = random_.Pick<int64_t>({1, 3, 8}), n = random_.Pick<int64_t>({1, 5, 16}),
                              k = random_.Pick<int64_t>({1, 4, 9});
                Dims ad, wd;
                for (int64_t i = 2; i < rank; i++) {
                    const int64_t d = random_.Int(1, 3);
                    ad.push_back(random_.Chance(0.2) ? 1 : d);
                    wd.push_back(random_.Chance(0.4) ? 1 : d);
                }
                if (random_.Chance(0.2)) wd.clear();
                ad.insert(ad.end(), {ta ? k : m, ta ? m : k});
                wd.insert(wd.end(), {tb ? n : k, tb ? k : n});
                const Id x = In(int8 ? kU8 : QDQ_DTYPE_F32, ad), w = In(int8 ? kS8 : QDQ_DTYPE_F32, wd);
                const Id y =
                    Op("MatMul", int8 ? std::vector<Id>{Dq(x, {0.1f}, {7}), Dq(w, {0.02f})} : std::vector<Id>{x, w},
                       {AttrB("transpose_a", ta), AttrB("transpose_b", tb)});
                Dims rd = net.At(y).dims;
                for (int64_t &d : rd)
                    if (random_.Chance(0.3)) d = 1;
                const Id r = Op("Multiply", {y, int8 ? Dq(In(kS8, rd), {0.1f}, {3}) : In(QDQ_DTYPE_F32, rd)});
                return int8 ? Q(r, kU8, {0.5f}, {128}) : r;
            });
}

TEST_F(FieldLayout, Pools) {
    for (const char *kind : {"AvgPool", "MaxPool"})
        for (const bool int8 : {false, true})
            for (const int64_t rank : {3, 4, 5})
                Times(20, [&] {
                    const Longs two(static_cast<size_t>(rank - 2), 2), one(static_cast<size_t>(rank - 2), 1);
                    auto attrs = PoolAttrs(two, one, one, one, random_.Chance(0.5) ? "NCX" : "NXC");
                    if (kind[0] == 'A') attrs.push_back(AttrB("exclude_pad", random_.Chance(0.5)));
                    const Id x = In(int8 ? kU8 : QDQ_DTYPE_F32, Image(rank, 5));
                    const Id y = Op(kind, {int8 ? Dq(x, {0.1f}, {7}) : x}, attrs);
                    return int8 ? Q(y, kU8, {0.1f}, {random_.Chance(0.5) ? 7 : 9}) : y;
                });
}

TEST_F(FieldLayout, ElementwiseChains) {
    for (const bool int8 : {false, true})
        for (const char *kind : {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum"})
            Times(20, [&] {
                const Dims d = Image(random_.Int(1, 5) + 1, 5);
                Dims e = d;
                for (int64_t &i : e)
                    if (random_.Chance(0.3)) i = 1;
                Id a = In(int8 ? kU8 : QDQ_DTYPE_F32, d), b = In(int8 ? kS8 : QDQ_DTYPE_F32, e);
                if (int8) {
                    a = Dq(a, {0.1f}, {7});
                    b = Dq(b, {0.05f}, {-128}); // positive, but for one
                }
                if (std::string(kind) == "Divide") b = Op("Add", {Op("Abs", {b}), net.Floats({1}, {1}, true)});
                const Id y = Op("Sigmoid", {Op(kind, {a, b})});
                return int8 ? Q(y, kS8, {0.008f}, {-128}) : y;
            });
}

TEST_F(FieldLayout, AlongAnAxis) {
    for (const char *kind : {"SoftMax", "LogSoftmax", "LayerNorm", "ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"})
        for (const bool int8 : {false, true})
            Times(20, [&] {
                const Dims d = Image(random_.Int(2, 4), 5);
                const auto rank = static_cast<int64_t>(d.size());
                Id x = In(int8 ? kU8 : QDQ_DTYPE_F32, d);
                if (int8) x = Dq(x, {0.02f}, {77});
                const std::string name = kind;
                std::vector<Attr> attrs;
                if (name == "LayerNorm")
                    attrs = {AttrB("keep_stats", false), AttrB("use_affine", false)};
                else if (name[0] == 'R')
                    attrs = {AttrIs("axes", {random_.Int(0, rank - 1)}), AttrB("keep_dims", random_.Chance(0.5))};
                else
                    attrs = {AttrI("axis", random_.Int(-rank, rank - 1))};
                const Id y = Op(kind, {x}, attrs);
                return int8 ? Q(y, kS8, {0.03f}, {-3}) : y;
            });
}

TEST_F(FieldLayout, Quantizations) {
    for (const bool back : {false, true})
        Times(80, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            const auto rank = static_cast<int64_t>(d.size());
            const int64_t axis = random_.Int(0, rank - 1);
            Reals scales;
            Longs zps;
            for (int64_t i = 0; i < d[static_cast<size_t>(axis)]; i++) {
                scales.push_back(0.05f * static_cast<float>(i + 1));
                zps.push_back(i * 3 + 1);
            }
            if (random_.Chance(0.5)) {
                scales.resize(1);
                zps.resize(1);
            }
            return back ? Dq(In(kS8, d), scales, zps, axis) : Q(In(QDQ_DTYPE_F32, d), kU8, scales, zps, axis);
        });
}

TEST_F(FieldLayout, Movement) {
    for (const bool int8 : {false, true}) {
        const auto in = [&](const Dims &d) { return int8 ? Dq(In(kU8, d), {0.1f}, {7}) : In(QDQ_DTYPE_F32, d); };
        const auto out = [&](Id y) { return int8 ? Q(y, kU8, {0.1f}, {random_.Chance(0.5) ? 7 : 9}) : y; };
        Times(40, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            Longs perm(d.size());
            std::iota(perm.begin(), perm.end(), int64_t{0});
            std::rotate(perm.begin(), perm.begin() + random_.Int(0, static_cast<int64_t>(perm.size()) - 1), perm.end());
            return out(Op("StaticTranspose", {in(d)}, {AttrIs("order", perm)}));
        });
        Times(40, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            return out(
                Op("StaticReshape", {in(d)}, {AttrIs("shape", {Count(d) / d[0], d[0]}), AttrB("special_zero", false)}));
        });
        Times(40, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            Dims e = d;
            const int64_t axis = random_.Int(0, static_cast<int64_t>(d.size()) - 1);
            e[static_cast<size_t>(axis)] = random_.Int(1, 4);
            return out(Op("Concat", {in(d), in(e), in(d)}, {AttrI("axis", axis)}));
        });
        Times(40, [&] {
            const Dims d = Image(4, 5);
            const Id x = in(d);
            return out(Op("Interpolate", {x},
                          {AttrS("mode", random_.Chance(0.5) ? "nearest" : "linear"), AttrIs("sizes", {3, 7}),
                           AttrS("data_format", "NCX")}));
        });
    }
}

TEST_F(FieldLayout, NarrowFloats) {
    for (const qdq_dtype type : {QDQ_DTYPE_BF16, QDQ_DTYPE_F16}) {
        Times(40, [&] {
            const int64_t m = random_.Pick<int64_t>({1, 3, 8}), n = random_.Pick<int64_t>({1, 5, 16}),
                          k = random_.Pick<int64_t>({1, 4, 9}), b = random_.Int(1, 3);
            const Id y = Op("MatMul", {In(type, {b, m, k}), In(type, {random_.Chance(0.5) ? b : 1, k, n})});
            return Op("ReLU", {Op("Add", {y, In(type, {n})})});
        });
        Times(20, [&] {
            const Dims xd = Image(4, 4);
            const Id c =
                Op("Convolution", {In(type, xd), In(type, {5, xd[1], 3, 3})}, ConvAttrs({1, 1}, {1, 1}, {1, 1}));
            return Op("Clamp", {c}, {AttrF("min", -1), AttrF("max", 2)});
        });
        Times(30, [&] { return Op("SoftMax", {In(type, Image(random_.Int(2, 4), 5))}, {AttrI("axis", -1)}); });
        Times(30, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            return Op("Maximum", {Op("Multiply", {In(type, d), In(type, d)}), In(type, d)});
        });
        Times(30, [&] {
            const Dims d = Image(random_.Int(2, 5), 5);
            const Id wide = net.Op1("TypeCast", {In(type, d)}, {}, QDQ_DTYPE_F32);
            return wide == kMissing ? Op("Abs", {In(type, d)}) : Q(wide, kU8, {0.05f}, {128});
        });
    }
}

TEST_F(FieldLayout, Others) {
    Times(40, [&] { // a choice, with masks in every shape
        const Dims d = Image(random_.Int(2, 4), 5);
        Dims e = d;
        for (int64_t &i : e)
            if (random_.Chance(0.3)) i = 1;
        const Id mask = Op("GreaterEqual", {In(QDQ_DTYPE_F32, e), net.Floats({1}, {0}, true)});
        return Op("Select", {mask, In(QDQ_DTYPE_F32, d), In(QDQ_DTYPE_F32, d)});
    });
    Times(40, [&] {
        const Dims d = Image(random_.Int(3, 5), 6);
        const auto rank = static_cast<int64_t>(d.size());
        const Id x = Dq(In(kS8, d), {0.1f}, {3});
        const int64_t c = d[1];
        Reals gamma, beta;
        for (int64_t i = 0; i < c; i++) {
            gamma.push_back(0.5f + 0.1f * static_cast<float>(i));
            beta.push_back(0.2f * static_cast<float>(i) - 0.3f);
        }
        const Id g = net.Floats({c}, gamma, true), b = net.Floats({c}, beta, true);
        const Id y =
            rank > 3 ? Op("BatchNormInference", {x, g, b, b, g}, {AttrF("epsilon", 1e-3f), AttrS("data_format", "NCX")})
                     : Op("BiasAdd", {x, g}, {AttrS("data_format", "NCX")});
        return Q(Op("ReLU", {y}), kU8, {0.1f}, {9});
    });
    Times(30, [&] { // padding and slices, in integers
        const Dims d = Image(4, 5);
        const Id x = Dq(In(kU8, d), {0.1f}, {7});
        const Id y = Op("Pad", {x, net.Ints(QDQ_DTYPE_S64, {8}, {0, 1, 2, 0, 0, 0, 1, 1}, true)});
        return Q(y, kU8, {0.1f}, {7});
    });
    Times(30, [&] {
        const Dims d = Image(random_.Int(2, 4), 5);
        const Id x = In(QDQ_DTYPE_F32, d);
        std::vector<Id> out;
        if (!net.Op("DynamicQuantizeLinear", {x}, {}, std::vector<qdq_dtype>(3, QDQ_DTYPE_UNDEF), &out)) return x;
        return out[0];
    });
    Times(30, [&] {
        const int64_t m = random_.Pick<int64_t>({1, 3}), n = random_.Pick<int64_t>({1, 5, 16}), k = random_.Int(1, 9);
        return Op("MatMulInteger", {In(kU8, {2, m, k}), In(kS8, {k, n}), W(kU8, {}, {7}), W(kS8, {}, {-3})});
    });
}

} // namespace
} // namespace qdq_test
