// Ops that follow an anchor: elementwise ops of a chain, data movement.
#include "fusion/generator.h"

#include <algorithm>
#include <numeric>
#include <functional>

namespace qdq_test {

namespace {

std::vector<Attr> UnaryAttrs(Random *rng, const std::string &kind) {
    const auto f = [&](float low, float high) { return static_cast<double>(rng->Float(low, high)); };
    if (kind == "Clamp") {
        const double low = rng->Chance(0.3) ? 0.0 : f(-1.5f, 0.5f);
        return {AttrF("min", low), AttrF("max", rng->Chance(0.3) ? 6.0 : low + f(0.2f, 3.0f))};
    }
    if (kind == "Elu" || kind == "LeakyReLU") return {AttrF("alpha", f(0.01f, 1.5f))};
    if (kind == "HardSigmoid") return {AttrF("alpha", f(0.1f, 0.5f)), AttrF("beta", f(0.1f, 0.6f))};
    if (kind == "Pow") return {AttrF("beta", rng->Pick(std::vector<float>{2.0f, 3.0f, 0.5f, 1.0f, -1.0f, 2.5f}) * 1.0)};
    if (kind == "SoftPlus") return {AttrF("beta", rng->Chance(0.5) ? 1.0 : f(0.5f, 2.0f))};
    if (kind == "GELU") return {AttrS("mode", rng->Chance(0.5) ? "gelu_erf" : "gelu_tanh")};
    if (kind == "Celu" || kind == "Swish" || kind == "ThresholdedRelu")
        return rng->Chance(0.4) ? std::vector<Attr>{} : std::vector<Attr>{AttrF("alpha", f(0.3f, 1.8f))};
    if (kind == "Selu")
        return rng->Chance(0.5) ? std::vector<Attr>{} : std::vector<Attr>{AttrF("alpha", f(0.5f, 2.0f))};
    return {};
}

Dims Narrower(Random *rng, const Dims &dims) {
    Dims d = dims;
    const int64_t how = rng->Int(0, 9);
    if (how < 4) return d;
    if (how == 4) return {1};
    for (int64_t &x : d)
        if (rng->Chance(0.5)) x = 1;
    if (how >= 8 && !d.empty()) d.erase(d.begin(), d.begin() + rng->Int(0, static_cast<int64_t>(d.size())));
    return d;
}

bool Is(const std::string &kind, std::initializer_list<const char *> kinds) {
    for (const char *k : kinds)
        if (kind == k) return true;
    return false;
}

// Any shape with as many elements.
Dims OtherShape(Random *rng, int64_t n) {
    if (n == 0) return {0, rng->Int(1, 3)};
    Dims d;
    while (d.size() < 4 && (n > 1 || rng->Chance(0.3))) {
        std::vector<int64_t> divisors;
        for (int64_t f = 1; f <= n; f++)
            if (n % f == 0) divisors.push_back(f);
        const int64_t f = d.size() == 3 ? n : rng->Pick(divisors);
        d.push_back(f);
        n /= f;
    }
    if (n > 1) d.push_back(n);
    if (d.empty()) d.push_back(1);
    return d;
}

std::vector<int64_t> Permutation(Random *rng, size_t n) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = n; i > 1; i--)
        std::swap(order[i - 1], order[static_cast<size_t>(rng->Int(0, static_cast<int64_t>(i) - 1))]);
    return order;
}

} // namespace

Id Generator::ApplyChain(const std::string &kind, Id v, const Sides &sides) {
    const qdqi_schema *schema = qdqi_schema_find(kind.c_str());
    // what a fused chain keeps of a narrow float, or makes of an approximated function, may fall on the other side of a jump
    if (Is(kind, {"TypeCast", "Cast"})) return ApplyCast(kind, v);
    if (!qdqi_dtype_is_float(net.At(v).dtype)) return kMissing;
    fp = net.At(v).dtype; // a cast may have gone before
    if ((IsNarrow() || net.HasTranscendental()) &&
        Is(kind, {"Floor", "Ceil", "Round", "Sign", "Mod", "ThresholdedRelu"}))
        return kMissing;
    // a mean that cancels to almost nothing: what is left of it is rounding
    if (interpolates && Is(kind, {"Reciprocal", "Pow", "Log", "Divide", "PowTensor"})) return kMissing;
    if (schema->flags & QDQI_F_UNARY) return net.Op1(kind, {v}, UnaryAttrs(&rng, kind));
    const Dims dims = net.At(v).dims;
    if (kind == "BatchNormInference") {
        if (dims.size() < 2) return kMissing;
        const bool nxc = rng.Chance(0.5);
        std::vector<Id> in = {v};
        for (int port = 1; port < 5; port++) {
            Want row{{nxc ? dims.back() : dims[1]}, 1.5f, port == 4};
            row.is_constant = rng.Chance(0.9);
            in.push_back(sides.dq_other && rng.Chance(0.1) && port != 4
                             ? DequantizedLeaf(row, {"Dequantize", "DequantizeLinear"}, false, true)
                             : FloatLeaf(row));
            if (in.back() == kMissing) return kMissing;
        }
        return net.Op1(kind, in, {AttrF("epsilon", 1e-3), AttrS("data_format", nxc ? "NXC" : "NCX")});
    }
    Want want{rng.Chance(0.3) ? dims : Narrower(&rng, dims), 1.5f};
    std::vector<Attr> attrs;
    const bool has_format = Is(kind, {"BiasAdd", "PReLU"});
    if (has_format) {
        if (dims.size() < 2) return kMissing;
        const bool nxc = rng.Chance(0.5);
        attrs.push_back(AttrS("data_format", nxc ? "NXC" : "NCX"));
        want.dims = {nxc ? dims.back() : dims[1]};
        if (kind == "PReLU" && rng.Chance(0.2)) want.dims = {1};
    }
    if (kind == "Mod") attrs.push_back(AttrB("fmod", true));
    want.positive = Is(kind, {"Divide", "Mod"});
    Id other = kMissing;
    if (!has_format && sides.self_other && rng.Chance(0.25)) { // x * sigmoid(x), x + x …
        other = rng.Chance(0.3) ? v : net.Op1(rng.Chance(0.5) ? "Sigmoid" : "HardSwish", {v});
    } else if (sides.dq_other && rng.Chance(0.4)) {
        other = DequantizedLeaf(want, {"Dequantize", "DynamicDequantize", "DequantizeLinear"}, false, true);
    } else {
        other = FloatLeaf(want);
    }
    if (other == kMissing) return kMissing;
    const bool commutative = (schema->flags & QDQI_F_COMMUTATIVE) != 0;
    const bool swap = !has_format && (sides.any_side || commutative) && rng.Chance(0.3);
    const Id made = net.Op1(kind, {swap ? other : v, swap ? v : other}, attrs);
    return made != kMissing && net.At(made).dims == dims ? made : kMissing; // a chain keeps its shape
}

Id Generator::ApplyCast(const std::string &kind, Id v) {
    const qdq_dtype from = net.At(v).dtype;
    std::vector<qdq_dtype> to = {QDQ_DTYPE_F32};
    if (from == QDQ_DTYPE_F32) to = {QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    if (kind == "TypeCast") return net.Op1(kind, {v}, {}, rng.Pick(to));
    return net.Op1(kind, {v}, {AttrS("to", qdq_dtype_name(rng.Pick(to)))});
}

Id Generator::ApplyMaxPool(Id v) {
    const Dims dims = net.At(v).dims;
    if (dims.size() < 3 || dims.size() > 5) return kMissing;
    std::vector<int64_t> kernel, strides, begin, end, dilations;
    for (size_t d = 2; d < dims.size(); d++) {
        kernel.push_back(rng.Int(1, 3));
        strides.push_back(rng.Int(1, 2));
        begin.push_back(rng.Int(0, kernel.back() - 1));
        end.push_back(rng.Int(0, kernel.back() - 1));
        dilations.push_back(1);
    }
    return net.Op1("MaxPool", {v},
                   {AttrS("data_format", rng.Chance(0.5) ? "NXC" : "NCX"), AttrIs("strides", strides),
                    AttrIs("kernel", kernel), AttrIs("pads_begin", begin), AttrIs("pads_end", end),
                    AttrIs("dilations", dilations), AttrS("rounding_type", rng.Chance(0.3) ? "ceil" : "floor")});
}

Id Generator::ApplyMove(const std::string &kind, Id v) {
    const Dims dims = net.At(v).dims;
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t n = Count(dims);
    if (kind == "Reorder" || kind == "Identity") return net.Op1(kind, {v});
    if (kind == "StaticReshape")
        return net.Op1(kind, {v}, {AttrIs("shape", OtherShape(&rng, n)), AttrB("special_zero", false)});
    if (kind == "Reshape") {
        std::vector<int64_t> shape = OtherShape(&rng, n);
        if (n > 0 && rng.Chance(0.4))
            shape[static_cast<size_t>(rng.Int(0, static_cast<int64_t>(shape.size()) - 1))] = -1;
        return net.Op1(kind, {v, Index(shape)},
                       n == 0 ? std::vector<Attr>{AttrB("allowzero", true)} : std::vector<Attr>{});
    }
    if (kind == "StaticTranspose") return net.Op1(kind, {v}, {AttrIs("order", Permutation(&rng, dims.size()))});
    if (kind == "Flatten") return net.Op1(kind, {v}, {AttrI("axis", rng.Int(-rank, rank))});
    if (kind == "Squeeze") {
        std::vector<int64_t> axes;
        for (int64_t d = 0; d < rank; d++)
            if (dims[static_cast<size_t>(d)] == 1 && rng.Chance(0.7)) axes.push_back(rng.Chance(0.3) ? d - rank : d);
        if (axes.empty()) return kMissing;
        return rng.Chance(0.5) ? net.Op1(kind, {v, Index(axes)}) : net.Op1(kind, {v}, {AttrIs("axes", axes)});
    }
    if (kind == "Unsqueeze") {
        const std::vector<int64_t> axes = {rng.Int(-rank - 1, rank)};
        return rng.Chance(0.5) ? net.Op1(kind, {v, Index(axes)}) : net.Op1(kind, {v}, {AttrIs("axes", axes)});
    }
    if (rank == 0) return kMissing;
    const int64_t axis = rng.Int(0, rank - 1), dim = dims[static_cast<size_t>(axis)];
    const int64_t axis_attr = rng.Chance(0.3) ? axis - rank : axis;
    if (kind == "Gather" || kind == "GatherElements") {
        if (dim == 0 || n == 0) return kMissing;
        Dims at = kind == "Gather" ? (rng.Chance(0.2) ? Dims{} : Dims{Dim(9)}) : dims;
        if (kind == "GatherElements") at[static_cast<size_t>(axis)] = rng.Int(1, 5);
        std::vector<int64_t> indices(static_cast<size_t>(Count(at)));
        for (int64_t &i : indices)
            i = rng.Int(-dim, dim - 1);
        const Id ids = net.Ints(rng.Chance(0.5) ? QDQ_DTYPE_S64 : QDQ_DTYPE_S32, at, indices, rng.Chance(0.6));
        return net.Op1(kind, {v, ids}, {AttrI("axis", axis_attr)});
    }
    if (kind == "Slice") {
        const int64_t step = rng.Pick(std::vector<int64_t>{1, 1, 2, -1, -2});
        const int64_t start = rng.Int(-dim - 1, dim), end = rng.Int(-dim - 2, dim + 1);
        return net.Op1(kind, {v, Index({start}), Index({end}), Index({axis_attr}), Index({step})});
    }
    if (kind == "Split") return net.Op1(kind, {v}, {AttrI("axis", axis_attr)});
    if (kind == "Pad") {
        const char *modes[] = {"constant", "reflect", "edge"};
        const auto mode = static_cast<size_t>(rng.Int(0, 2));
        std::vector<int64_t> pads;
        for (int64_t d = 0; d < 2 * rank; d++)
            pads.push_back(rng.Chance(0.5) ? 0 : rng.Int(-1, 2));
        std::vector<Id> in = {v, Index(pads)};
        if (mode == 0 && rng.Chance(0.5)) in.push_back(net.Floats({}, {rng.Float(-2, 2)}, rng.Chance(0.7), fp));
        return net.Op1(kind, in, {AttrS("mode", modes[mode])});
    }
    if (kind == "Expand") {
        Dims want = dims;
        for (int64_t &d : want)
            if (d == 1 && rng.Chance(0.7)) d = rng.Int(1, 4);
        if (rng.Chance(0.3)) want.insert(want.begin(), rng.Int(1, 3));
        return net.Op1(kind, {v, Index(want)});
    }
    if (kind == "Tile") {
        std::vector<int64_t> times;
        for (int64_t d = 0; d < rank; d++)
            times.push_back(rng.Chance(0.6) ? 1 : rng.Int(1, 3));
        return n > 3000 ? kMissing : net.Op1(kind, {v, Index(times)});
    }
    if (kind == "DepthToSpace" || kind == "SpaceToDepth") {
        std::vector<Attr> attrs = {AttrI("blocksize", rng.Int(1, 3))};
        if (kind == "DepthToSpace") attrs.push_back(AttrS("mode", rng.Chance(0.5) ? "DCR" : "CRD"));
        return net.Op1(kind, {v}, attrs);
    }
    if (kind == "Interpolate") {
        if (rank < 3 || n > 3000) return kMissing;
        std::vector<Attr> attrs = {AttrS("mode", interpolates && rng.Chance(0.8) ? "linear" : "nearest"),
                                   AttrS("data_format", rng.Chance(0.5) ? "NXC" : "NCX")};
        const auto n_sp = static_cast<size_t>(rank) - 2;
        std::vector<float> scales(n_sp);
        std::vector<int64_t> sizes(n_sp);
        for (size_t i = 0; i < n_sp; i++) {
            scales[i] = rng.Pick(std::vector<float>{0.5f, 1.0f, 1.5f, 2.0f});
            sizes[i] = rng.Int(1, 7);
        }
        attrs.push_back(rng.Chance(0.5) ? AttrFs("scales", scales) : AttrIs("sizes", sizes));
        return net.Op1(kind, {v}, attrs);
    }
    if (kind == "Resize") {
        if (n > 3000) return kMissing;
        const char *coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                "asymmetric"};
        const char *nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
        std::vector<float> scales;
        std::vector<int64_t> sizes;
        for (int64_t d = 0; d < rank; d++) {
            const bool stays = interpolates && d < 2 && rng.Chance(0.8);
            scales.push_back(stays ? 1.0f : rng.Pick(std::vector<float>{0.5f, 1.0f, 1.0f, 2.0f}));
            sizes.push_back(stays || rng.Chance(0.5) ? dims[static_cast<size_t>(d)] : rng.Int(1, 7));
        }
        const bool linear = interpolates && rng.Chance(0.8);
        const std::vector<Attr> attrs = {
            AttrS("mode", linear ? "linear" : "nearest"),
            AttrS("coordinate_transformation_mode", linear && rng.Chance(0.7) ? "half_pixel" : coords[rng.Int(0, 4)]),
            AttrS("nearest_mode", nearest[rng.Int(0, 3)])};
        if (rng.Chance(0.5)) return net.Op1(kind, {v, kMissing, kMissing, Index(sizes)}, attrs);
        return net.Op1(kind, {v, kMissing, net.Floats({rank}, scales, true)}, attrs);
    }
    failure = "generator: no builder for " + kind;
    return kMissing;
}

Id Generator::MakeRelayout(const std::string &kind, const Want &want, const std::function<Id(const Want &)> &make) {
    Want pre = want;
    const auto rank = want.dims.size();
    std::vector<Attr> attrs;
    std::vector<Id> extra;
    if (kind == "StaticReshape" || kind == "Reshape") {
        pre.dims = OtherShape(&rng, Count(want.dims));
        if (kind == "Reshape")
            extra.push_back(Index(want.dims));
        else
            attrs = {AttrIs("shape", want.dims), AttrB("special_zero", false)};
        if (kind == "Reshape" && Count(want.dims) == 0) attrs.push_back(AttrB("allowzero", true));
    } else if (kind == "StaticTranspose") {
        const std::vector<int64_t> order = Permutation(&rng, rank);
        for (size_t d = 0; d < rank; d++)
            pre.dims[static_cast<size_t>(order[d])] = want.dims[d];
        attrs = {AttrIs("order", order)};
    } else if (kind == "Squeeze") {
        const int64_t at = rng.Int(0, static_cast<int64_t>(rank));
        pre.dims.insert(pre.dims.begin() + at, 1);
        attrs = {AttrIs("axes", {at})};
    } else if (kind == "Unsqueeze") {
        for (size_t d = 0; d < rank && pre.dims.size() == rank; d++)
            if (want.dims[d] == 1) {
                pre.dims.erase(pre.dims.begin() + static_cast<std::ptrdiff_t>(d));
                attrs = {AttrIs("axes", {static_cast<int64_t>(d)})};
            }
        if (pre.dims.size() == rank) return kMissing;
    } else if (kind == "Flatten") {
        if (rank != 2) return kMissing;
        pre.dims = {want.dims[0], 1, want.dims[1]};
        attrs = {AttrI("axis", 1)};
    } else if (kind == "TypeCast" || kind == "Cast") {
        const qdq_dtype type = fp;
        fp = type != QDQ_DTYPE_F32 ? QDQ_DTYPE_F32 : rng.Chance(0.7) ? QDQ_DTYPE_BF16 : QDQ_DTYPE_F16;
        const Id from = make(want);
        fp = type;
        if (from == kMissing) return kMissing;
        return kind == "Cast" ? net.Op1(kind, {from}, {AttrS("to", qdq_dtype_name(type))})
                              : net.Op1(kind, {from}, {}, type);
    } else if (kind != "Identity" && kind != "Reorder") {
        failure = "generator: no builder for " + kind;
        return kMissing;
    }
    const Id from = make(pre);
    if (from == kMissing) return kMissing;
    std::vector<Id> in = {from};
    in.insert(in.end(), extra.begin(), extra.end());
    const Id made = net.Op1(kind, in, attrs);
    return made != kMissing && net.At(made).dims == want.dims ? made : kMissing;
}

} // namespace qdq_test
