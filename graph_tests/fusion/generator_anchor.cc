// The compute ops that entries are anchored on: random attributes and shapes, values for their ports.
#include "fusion/generator.h"

#include <algorithm>
#include <cmath>

namespace qdq_test {

namespace {

bool Is(const std::string &kind, std::initializer_list<const char *> kinds) {
    for (const char *k : kinds)
        if (kind == k) return true;
    return false;
}

bool IsReduce(const std::string &kind) {
    return kind.rfind("Reduce", 0) == 0;
}

bool IsEltwise(const std::string &kind) {
    const qdqi_schema *s = qdqi_schema_find(kind.c_str());
    return s && ((s->flags & (QDQI_F_UNARY | QDQI_F_BINARY)) || kind == "BiasAdd" || kind == "PReLU");
}

bool IsMove(const std::string &kind) {
    const qdqi_schema *s = qdqi_schema_find(kind.c_str());
    return s && ((s->flags & QDQI_F_MOVE) || kind == "Interpolate" || kind == "Resize");
}

// N, C and spatial dims in a data format.
Dims Place(bool nxc, int64_t n, int64_t c, const Dims &sp) {
    Dims d = {n};
    if (!nxc) d.push_back(c);
    d.insert(d.end(), sp.begin(), sp.end());
    if (nxc) d.push_back(c);
    return d;
}

// A shape that broadcasts onto dims.
Dims Narrower(Random *rng, const Dims &dims) {
    Dims d = dims;
    const int64_t how = rng->Int(0, 9);
    if (how < 3) return d;
    if (how == 3) return {};
    if (how == 4) return {1};
    for (int64_t &x : d)
        if (rng->Chance(0.5)) x = 1;
    if (how >= 8 && !d.empty()) d.erase(d.begin(), d.begin() + rng->Int(0, static_cast<int64_t>(d.size())));
    return d;
}

using Ids = std::vector<Id>;

// Trailing kMissing inputs are left away.
void Trim(Ids *in) {
    while (!in->empty() && in->back() == kMissing)
        in->pop_back();
}

Ids MakeMatMul(Generator *g, const Generator::Port &in) {
    Random &rng = g->rng;
    const int64_t m = g->Dim(33), k = g->Dim(65), n = g->Dim(33);
    const bool ta = rng.Chance(0.2), tb = rng.Chance(0.4);
    Dims a = ta ? Dims{k, m} : Dims{m, k}, b = tb ? Dims{n, k} : Dims{k, n}, dst = {m, n};
    const int64_t shape = rng.Int(0, 9);
    if (shape == 0) {
        a = {k};
        dst = {n};
    } else if (shape == 1) {
        b = {k};
        dst = {m};
    } else if (shape < 6) {
        const int64_t batch = g->Dim(5), other = rng.Chance(0.3) ? g->Dim(3) : 0;
        if (other > 0) {
            a.insert(a.begin(), {batch, other});
            if (rng.Chance(0.4)) b.insert(b.begin(), {rng.Chance(0.5) ? batch : 1, other});
            dst.insert(dst.begin(), {batch, other});
        } else {
            a.insert(a.begin(), batch);
            if (rng.Chance(0.4)) b.insert(b.begin(), rng.Chance(0.5) ? batch : 1);
            dst.insert(dst.begin(), batch);
        }
        if (rng.Chance(0.1) && b.size() == a.size()) { // the weights' batch is the larger one
            a.erase(a.begin(), a.end() - 2);
            dst = Dims(b.begin(), b.end() - 2);
            dst.insert(dst.end(), {m, n});
        }
    }
    Want src{a}, weights{b}, bias{{n}};
    weights.is_weights = true;
    weights.is_constant = false;
    bias.is_bias = true;
    if (shape == 1)
        bias.dims = {};
    else if (rng.Chance(0.3))
        bias.dims = Narrower(&rng, dst);
    Ids ports = {in(0, src, false), in(1, weights, false), in(2, bias, true)};
    if (ports[0] == kMissing || ports[1] == kMissing) return {};
    Trim(&ports);
    std::vector<Attr> attrs;
    if (ta) attrs.push_back(AttrB("transpose_a", true));
    if (tb) attrs.push_back(AttrB("transpose_b", true));
    return {g->net.Op1("MatMul", ports, attrs)};
}

Ids MakeGemm(Generator *g, const Generator::Port &in) {
    Random &rng = g->rng;
    const int64_t m = g->Dim(33), k = g->Dim(65), n = g->Dim(33);
    const bool ta = rng.Chance(0.2), tb = rng.Chance(0.4);
    Want src{ta ? Dims{k, m} : Dims{m, k}}, weights{tb ? Dims{n, k} : Dims{k, n}}, bias{{n}};
    weights.is_weights = true;
    bias.is_bias = true;
    if (rng.Chance(0.3)) bias.dims = Narrower(&rng, {m, n});
    Ids ports = {in(0, src, false), in(1, weights, false), in(2, bias, true)};
    if (ports[0] == kMissing || ports[1] == kMissing) return {};
    Trim(&ports);
    std::vector<Attr> attrs;
    if (rng.Chance(0.3)) attrs.push_back(AttrF("alpha", static_cast<double>(rng.Float(-1.5f, 1.5f))));
    if (rng.Chance(0.3))
        attrs.push_back(AttrF("beta", rng.Chance(0.2) ? 0.0 : static_cast<double>(rng.Float(-1.5f, 1.5f))));
    if (ta) attrs.push_back(AttrB("transA", true));
    if (tb) attrs.push_back(AttrB("transB", true));
    return {g->net.Op1("Gemm", ports, attrs)};
}

Ids MakeConv(Generator *g, const std::string &kind, const Generator::Port &in) {
    Random &rng = g->rng;
    const bool transposed = kind == "ConvTranspose";
    const auto n_sp = static_cast<size_t>(rng.Pick(std::vector<int64_t>{1, 2, 2, 2, 3}));
    const int64_t max_sp = n_sp == 3 ? 5 : 9;
    int64_t groups = 1, icg = g->Dim(17), ocg = g->Dim(17);
    const int64_t how = rng.Int(0, 9);
    if (how < 2) groups = rng.Int(2, 4);
    if (how == 2) { // depthwise
        groups = rng.Int(2, 20);
        icg = 1;
        ocg = rng.Chance(0.8) ? 1 : 2;
    }
    const bool nxc = rng.Chance(0.4), x_first = rng.Chance(0.4);
    Dims sp, kernel, strides, dilations, begin, end, out_pad;
    for (size_t i = 0; i < n_sp; i++) {
        sp.push_back(std::max<int64_t>(1, g->Dim(max_sp)));
        kernel.push_back(rng.Int(1, 3));
        strides.push_back(rng.Chance(0.7) ? 1 : rng.Int(2, 3));
        dilations.push_back(rng.Chance(0.8) ? 1 : 2);
        begin.push_back(rng.Chance(0.5) ? 0 : rng.Int(0, 2));
        end.push_back(rng.Chance(0.5) ? begin.back() : rng.Int(0, 2));
        out_pad.push_back(strides.back() > 1 && rng.Chance(0.5) ? 1 : 0);
    }
    Dims w;
    const int64_t first = transposed ? ocg : icg, second = transposed ? icg * groups : ocg * groups; // XOI, XIO
    if (x_first) {
        w = kernel;
        w.insert(w.end(), {first, second});
    } else { // IOX, OIX
        w = {second, first};
        w.insert(w.end(), kernel.begin(), kernel.end());
    }
    Want src{Place(nxc, g->Dim(3), icg * groups, sp)}, weights{w}, bias{{ocg * groups}};
    weights.is_weights = true;
    bias.is_bias = true;
    weights.amplitude = 1.0f;
    Ids ports = {in(0, src, false), in(1, weights, false), in(2, bias, true)};
    if (ports[0] == kMissing || ports[1] == kMissing) return {};
    Trim(&ports);
    std::vector<Attr> attrs = {AttrIs("strides", strides), AttrIs("dilations", dilations), AttrIs("pads_begin", begin),
                               AttrIs("pads_end", end)};
    if (groups != 1 || rng.Chance(0.3)) attrs.push_back(AttrI("groups", groups));
    attrs.push_back(AttrS("data_format", nxc ? "NXC" : "NCX"));
    attrs.push_back(AttrS("weights_format", transposed ? (x_first ? "XOI" : "IOX") : (x_first ? "XIO" : "OIX")));
    if (transposed && rng.Chance(0.5)) attrs.push_back(AttrIs("output_padding", out_pad));
    if (!transposed && rng.Chance(0.15)) attrs.push_back(AttrS("auto_pad", rng.Chance(0.5) ? "SAME_UPPER" : "VALID"));
    return {g->net.Op1(kind, ports, attrs)};
}

// Sums of integers, with zero points as inputs.
Ids MakeInteger(Generator *g, const std::string &kind) {
    Random &rng = g->rng;
    const auto leaf = [&](qdq_dtype type, const Dims &dims, bool constant) {
        std::vector<int64_t> v(static_cast<size_t>(Count(dims)));
        for (int64_t &x : v)
            x = rng.Int(qdqi_dtype_min(type), qdqi_dtype_max(type));
        return g->net.Ints(type, dims, v, constant);
    };
    const qdq_dtype a = rng.Chance(0.5) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8,
                    b = rng.Chance(0.5) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
    const bool known = rng.Chance(0.7);
    Ids in;
    Dims a_zp, b_zp;
    std::vector<Attr> attrs;
    if (kind == "MatMulInteger") {
        const int64_t m = g->Dim(33), k = g->Dim(33), n = g->Dim(33), batch = g->Dim(3);
        const bool batched = rng.Chance(0.3);
        in = {leaf(a, batched ? Dims{batch, m, k} : Dims{m, k}, false), leaf(b, {k, n}, known)};
        if (!batched && rng.Chance(0.2)) a_zp = {m};
        if (rng.Chance(0.3)) b_zp = {n};
    } else {
        const int64_t groups = rng.Chance(0.2) ? 2 : 1, ic = groups * g->Dim(9), oc = groups * g->Dim(9);
        in = {leaf(a, {g->Dim(3), ic, rng.Int(3, 7), rng.Int(3, 7)}, false),
              leaf(b, {oc, ic / groups, rng.Int(1, 3), rng.Int(1, 3)}, known)};
        if (rng.Chance(0.3)) b_zp = {oc};
        attrs = {AttrIs("strides", {rng.Int(1, 2), 1}), AttrIs("dilations", {1, 1}),
                 AttrIs("pads_begin", {rng.Int(0, 1), 0}), AttrIs("pads_end", {0, rng.Int(0, 1)}),
                 AttrI("groups", groups)};
    }
    const bool has_a = rng.Chance(0.6), has_b = rng.Chance(0.5);
    if (has_a || has_b) in.push_back(has_a ? leaf(a, a_zp, rng.Chance(0.6)) : kMissing);
    if (has_b) in.push_back(leaf(b, b_zp, rng.Chance(0.6)));
    return {g->net.Op1(kind, in, attrs)};
}

Ids MakePool(Generator *g, const std::string &kind, const Generator::Port &in) {
    Random &rng = g->rng;
    const auto n_sp = static_cast<size_t>(rng.Pick(std::vector<int64_t>{1, 2, 2, 2, 3}));
    const bool nxc = rng.Chance(0.5);
    Dims sp, kernel, strides, dilations, begin, end;
    for (size_t i = 0; i < n_sp; i++) {
        sp.push_back(std::max<int64_t>(1, g->Dim(9)));
        kernel.push_back(rng.Int(1, 3));
        strides.push_back(rng.Int(1, 3));
        dilations.push_back(rng.Chance(0.8) ? 1 : 2);
        begin.push_back(rng.Chance(0.5) ? 0 : rng.Int(0, kernel.back() - 1));
        end.push_back(rng.Chance(0.5) ? begin.back() : rng.Int(0, kernel.back() - 1));
    }
    const Id src = in(0, Want{Place(nxc, g->Dim(3), g->Dim(65), sp)}, false);
    if (src == kMissing) return {};
    std::vector<Attr> attrs = {AttrS("data_format", nxc ? "NXC" : "NCX")};
    if (kind == "AvgPool" || kind == "MaxPool") {
        attrs.insert(attrs.end(),
                     {AttrIs("strides", strides), AttrIs("kernel", kernel), AttrIs("pads_begin", begin),
                      AttrIs("pads_end", end), AttrS("rounding_type", rng.Chance(0.3) ? "ceil" : "floor")});
        if (kind == "AvgPool")
            attrs.push_back(AttrB("exclude_pad", rng.Chance(0.5)));
        else
            attrs.push_back(AttrIs("dilations", dilations));
        if (rng.Chance(0.15)) attrs.push_back(AttrS("auto_pad", rng.Chance(0.5) ? "SAME_LOWER" : "VALID"));
    }
    return {g->net.Op1(kind, {src}, attrs)};
}

Ids MakeNorm(Generator *g, const std::string &kind, size_t n_needed, const Generator::Port &in) {
    Random &rng = g->rng;
    const auto rank = static_cast<size_t>(rng.Int(2, 4));
    Dims dims;
    for (size_t d = 0; d < rank; d++)
        dims.push_back(g->Dim(rank == 4 ? 9 : 33));
    std::vector<Attr> attrs;
    std::vector<qdq_dtype> outs = {QDQ_DTYPE_UNDEF};
    Ids made;
    if (n_needed > 1 && (kind == "SoftMax" || kind == "LogSoftmax" || IsReduce(kind))) return {};
    if (kind == "SoftMax" || kind == "LogSoftmax") {
        attrs.push_back(AttrI("axis", rng.Int(-static_cast<int64_t>(rank), static_cast<int64_t>(rank) - 1)));
        if (kind == "SoftMax" && rng.Chance(0.2)) attrs.push_back(AttrS("mode", "inf_as_zero"));
        const Id src = in(0, Want{dims, 4.0f}, false);
        return src == kMissing ? Ids{} : Ids{g->net.Op1(kind, {src}, attrs)};
    }
    if (IsReduce(kind)) {
        std::vector<int64_t> axes;
        for (int64_t d = 0; d < static_cast<int64_t>(rank); d++)
            if (rng.Chance(0.5)) axes.push_back(rng.Chance(0.3) ? d - static_cast<int64_t>(rank) : d);
        if (axes.empty()) axes.push_back(0);
        attrs.push_back(AttrB("keep_dims", rng.Chance(0.6)));
        const Id src = in(0, Want{dims}, false);
        if (src == kMissing) return {};
        if (rng.Chance(0.2)) return {g->net.Op1(kind, {src, g->Index(axes)}, attrs)};
        attrs.push_back(AttrIs("axes", axes));
        return {g->net.Op1(kind, {src}, attrs)};
    }
    const auto epsilon = static_cast<double>(rng.Float(1e-5f, 1e-2f));
    attrs.push_back(AttrF("epsilon", epsilon));
    if (kind == "BatchNormInference") {
        const bool nxc = rng.Chance(0.5);
        const int64_t c = nxc ? dims.back() : dims[1];
        attrs.push_back(AttrS("data_format", nxc ? "NXC" : "NCX"));
        Ids ports;
        for (size_t p = 0; p < 5; p++)
            ports.push_back(in(p, p == 0 ? Want{dims} : Want{{c}, 1.5f, p == 4}, false));
        for (const Id id : ports)
            if (id == kMissing) return {};
        return {g->net.Op1(kind, ports, attrs)};
    }
    if (kind == "InstanceNormalization") {
        if (rank < 3) return {};
        const Id src = in(0, Want{dims}, false), gamma = in(1, Want{{dims[1]}}, false),
                 beta = in(2, Want{{dims[1]}}, false);
        if (src == kMissing || gamma == kMissing || beta == kMissing) return {};
        return {g->net.Op1(kind, {src, gamma, beta}, attrs)};
    }
    const bool affine = rng.Chance(0.7);
    Dims params;
    if (kind == "GroupNorm") {
        const bool nxc = rng.Chance(0.5);
        if (rank < 3) return {};
        const auto channel = nxc ? rank - 1 : 1;
        const int64_t groups = std::max<int64_t>(1, rng.Int(1, 3));
        dims[channel] = groups * g->Dim(5);
        params = {dims[channel]};
        attrs.push_back(AttrI("groups", groups));
        attrs.push_back(AttrS("data_format", nxc ? "NXC" : "NCX"));
    } else {
        const int64_t axis = rng.Int(1, static_cast<int64_t>(rank) - 1);
        attrs.push_back(AttrI("begin_norm_axis", rng.Chance(0.5) ? axis : axis - static_cast<int64_t>(rank)));
        params = Dims(dims.begin() + axis, dims.end());
    }
    attrs.push_back(AttrB("use_affine", affine));
    Ids ports = {in(0, Want{dims}, false)};
    if (affine) ports.push_back(in(1, Want{params}, false));
    if (affine && kind != "RMSNorm") ports.push_back(in(2, Want{params}, false));
    for (const Id id : ports)
        if (id == kMissing) return {};
    if (kind != "RMSNorm") {
        const bool stats = rng.Chance(0.15);
        attrs.push_back(AttrB("keep_stats", stats));
        if (stats) outs.assign(3, QDQ_DTYPE_UNDEF);
    }
    return g->net.Op(kind, ports, attrs, outs, &made) ? made : Ids{};
}

Ids MakeConcat(Generator *g, const Generator::Port &in) {
    Random &rng = g->rng;
    const int64_t rank = rng.Int(1, 4), n = rng.Int(1, 5), axis = rng.Int(0, rank - 1);
    Dims dims;
    for (int64_t d = 0; d < rank; d++)
        dims.push_back(g->Dim(9));
    Ids ports;
    for (int64_t i = 0; i < n; i++) {
        dims[static_cast<size_t>(axis)] = g->Dim(9);
        ports.push_back(in(static_cast<size_t>(i), Want{dims}, false));
        if (ports.back() == kMissing) return {};
    }
    return {g->net.Op1("Concat", ports, {AttrI("axis", rng.Chance(0.3) ? axis - rank : axis)})};
}

Ids MakeSum(Generator *g, const Generator::Port &in) {
    Random &rng = g->rng;
    const int64_t rank = rng.Int(1, 4), n = rng.Int(1, 5);
    Dims dims;
    for (int64_t d = 0; d < rank; d++)
        dims.push_back(g->Dim(9));
    Ids ports;
    for (int64_t i = 0; i < n; i++) {
        ports.push_back(in(static_cast<size_t>(i), Want{rng.Chance(0.7) ? dims : Narrower(&rng, dims)}, false));
        if (ports.back() == kMissing) return {};
    }
    return {g->net.Op1("Sum", ports)};
}

Ids MakeSelect(Generator *g, const std::string &kind, const Generator::Port &in) {
    Random &rng = g->rng;
    Dims dims;
    for (int64_t d = rng.Int(1, 4); d > 0; d--)
        dims.push_back(g->Dim(9));
    const Dims narrow = Narrower(&rng, dims);
    Bytes bits(static_cast<size_t>(Count(narrow)));
    for (uint8_t &b : bits)
        b = rng.Chance(0.5) ? 1 : 0;
    const Id which = g->net.Leaf(QDQ_DTYPE_BOOLEAN, narrow, bits, false);
    const Id a = in(1, Want{dims}, false), b = in(2, Want{rng.Chance(0.6) ? dims : Narrower(&rng, dims)}, false);
    return a == kMissing || b == kMissing ? Ids{} : Ids{g->net.Op1(kind, {which, a, b})};
}

Ids MakeEltwise(Generator *g, const std::string &kind, size_t n_needed, const Generator::Port &in) {
    Random &rng = g->rng;
    const auto rank = static_cast<size_t>(rng.Int(1, 4));
    Dims dims;
    for (size_t d = 0; d < rank; d++)
        dims.push_back(g->Dim(rank == 4 ? 9 : 33));
    const qdqi_schema *s = qdqi_schema_find(kind.c_str());
    if (s->flags & QDQI_F_UNARY) {
        if (n_needed > 1) return {};
        const Id src = in(0, Want{dims}, false);
        return src == kMissing ? Ids{} : Ids{g->ApplyChain(kind, src, {})};
    }
    std::vector<Attr> attrs;
    Dims other = rng.Chance(0.5) ? dims : Narrower(&rng, dims);
    if (kind == "BiasAdd" || kind == "PReLU") {
        if (rank < 2) return {};
        const bool nxc = rng.Chance(0.5);
        attrs.push_back(AttrS("data_format", nxc ? "NXC" : "NCX"));
        other = {nxc ? dims.back() : dims[1]};
    } else if (rng.Chance(0.2)) {
        std::swap(dims, other); // the result is larger than input 0
    }
    if (kind == "Mod") attrs.push_back(AttrB("fmod", true));
    const bool divides = Is(kind, {"Divide", "Mod"});
    const Id a = in(0, Want{dims, 2.0f, kind == "PowTensor"}, false), b = in(1, Want{other, 2.0f, divides}, false);
    if (a == kMissing || b == kMissing) return {};
    return {g->net.Op1(kind, {a, b}, attrs)};
}

} // namespace

bool Generator::IsAnchorKind(const std::string &kind) const {
    return Is(kind, {"MatMul",
                     "Gemm",
                     "Convolution",
                     "ConvTranspose",
                     "AvgPool",
                     "MaxPool",
                     "GlobalAveragePool",
                     "GlobalMaxPool",
                     "SoftMax",
                     "LogSoftmax",
                     "LayerNorm",
                     "GroupNorm",
                     "RMSNorm",
                     "BatchNormInference",
                     "InstanceNormalization",
                     "Concat",
                     "Sum",
                     "MatMulInteger",
                     "ConvInteger",
                     "Select",
                     "Where",
                     "TypeCast",
                     "Cast"}) ||
           IsReduce(kind) || IsEltwise(kind) || IsMove(kind);
}

std::vector<Id> Generator::MakeAnchor(const std::string &kind, size_t n_needed, bool variadic, const Port &in) {
    Ids made;
    if (kind == "MatMul") {
        made = MakeMatMul(this, in);
    } else if (kind == "Gemm") {
        made = MakeGemm(this, in);
    } else if (Is(kind, {"Convolution", "ConvTranspose"})) {
        made = MakeConv(this, kind, in);
    } else if (Is(kind, {"AvgPool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"})) {
        made = MakePool(this, kind, in);
    } else if (Is(kind, {"MatMulInteger", "ConvInteger"})) {
        made = MakeInteger(this, kind);
    } else if (Is(kind, {"TypeCast", "Cast"})) {
        const Id src = in(0, Want{{Dim(9), Dim(33)}}, false);
        if (src != kMissing) made = {ApplyCast(kind, src)};
    } else if (kind == "Concat") {
        made = MakeConcat(this, in);
    } else if (Is(kind, {"Select", "Where"})) {
        made = MakeSelect(this, kind, in);
    } else if (kind == "Sum") {
        made = MakeSum(this, in);
    } else if (IsEltwise(kind)) {
        made = MakeEltwise(this, kind, n_needed, in);
    } else if (IsMove(kind)) {
        Dims dims;
        const int64_t rank = rng.Int(1, 5);
        for (int64_t d = 0; d < rank; d++)
            dims.push_back(Dim(rank > 3 ? 9 : 17));
        const Id src = in(0, Want{dims}, false);
        if (src != kMissing) made = {ApplyMove(kind, src)};
    } else {
        made = MakeNorm(this, kind, n_needed, in);
    }
    (void)variadic;
    return made;
}

} // namespace qdq_test
