// Normalisations spelled out as small ops: the entries whose values are needed further on (OPEN nodes).
#include "fusion/generator.h"

#include <algorithm>
#include <cmath>

namespace qdq_test {

namespace {

// A Quantize and a Dequantize of one scale that fits the values.
Id Pair(Generator *g, Id v) {
    double largest;
    (void)g->net.BadShare(v, 1e30, &largest);
    const Value x = g->net.At(v);
    bool positive = true;
    for (int64_t i = 0; i < Count(x.dims); i++)
        positive = positive && g->net.F32(v, i) >= 0.0f;
    const qdq_dtype dtype = g->rng.Chance(0.5) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
    const auto low = static_cast<float>(qdqi_dtype_min(dtype));
    QParams q;
    q.scales = {static_cast<float>(largest > 0 ? largest : 1.0) / (positive ? 255.0f : 127.0f) *
                g->rng.Float(0.7f, 1.1f)};
    q.zps = {positive ? static_cast<int64_t>(low) : static_cast<int64_t>(low) + g->rng.Int(120, 136)};
    const std::string kind = g->rng.Chance(0.5) ? "Quantize" : "QuantizeLinear";
    const Id ints = g->EmitQuantize(kind, v, dtype, q);
    return ints == kMissing ? kMissing
                            : g->EmitDequantize(g->rng.Chance(0.5) ? "Dequantize" : "DequantizeLinear", ints, q);
}

Id OnePerColumn(Generator *g, const Dims &dims, size_t first) {
    Want want{Dims(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.end()), 1.5f};
    want.is_constant = true;
    return g->rng.Chance(0.4) ? g->DequantizedLeaf(want, {"Dequantize", "DequantizeLinear"}, false, true)
                              : g->FloatLeaf(want);
}

} // namespace

Id Generator::SpelledNorm(Id x, bool centred, double pair_share) {
    const Dims dims = net.At(x).dims;
    const size_t rank = dims.size(), first = rank > 2 && rng.Chance(0.3) ? rank - 2 : rank - 1;
    std::vector<int64_t> axes;
    for (size_t d = first; d < rank; d++)
        axes.push_back(static_cast<int64_t>(d) - (rng.Chance(0.5) ? static_cast<int64_t>(rank) : 0));
    const auto mean = [&](Id v) {
        const std::vector<Attr> attrs = {AttrB("keep_dims", true)};
        if (rng.Chance(0.2)) return net.Op1("ReduceMean", {v, Index(axes)}, attrs);
        return net.Op1("ReduceMean", {v}, {attrs[0], AttrIs("axes", axes)});
    };
    const auto paired = [&](Id v) { return v != kMissing && rng.Chance(pair_share) ? Pair(this, v) : v; };
    Id d = x;
    if (centred) {
        const Id m = paired(mean(x));
        d = m == kMissing ? kMissing : paired(net.Op1("Subtract", {x, m}));
    }
    if (d == kMissing) return kMissing;
    const int64_t how = rng.Int(0, 2);
    Id v = how == 0   ? net.Op1("Square", {d})
           : how == 1 ? net.Op1("Pow", {d}, {AttrF("beta", 2.0)})
                      : net.Op1("Multiply", {d, d});
    v = paired(v);
    v = v == kMissing ? kMissing : paired(mean(v));
    const Id epsilon = net.Floats({}, {rng.Float(1e-5f, 1e-2f)}, true, fp);
    v = v == kMissing ? kMissing
                      : paired(rng.Chance(0.5) ? net.Op1("Add", {v, epsilon}) : net.Op1("Add", {epsilon, v}));
    if (v == kMissing) return kMissing;
    const int64_t root = rng.Int(0, 3);
    if (root == 3) {
        v = paired(net.Op1("Pow", {v}, {AttrF("beta", -0.5)}));
        return v == kMissing ? kMissing : net.Op1("Multiply", {d, v});
    }
    v = paired(rng.Chance(0.8) ? net.Op1("Sqrt", {v}) : net.Op1("Pow", {v}, {AttrF("beta", 0.5)}));
    if (v == kMissing) return kMissing;
    if (root < 2) return net.Op1("Divide", {d, v});
    v = paired(fp == QDQ_DTYPE_F32 && rng.Chance(0.3) ? net.Op1("Divide", {net.Floats({}, {1.0f}, true, fp), v})
                                                      : net.Op1("Reciprocal", {v}));
    if (v == kMissing) return kMissing;
    return rng.Chance(0.5) ? net.Op1("Multiply", {d, v}) : net.Op1("Multiply", {v, d});
}

Id Generator::SpelledAffine(Id v, double pair_share) {
    const Dims dims = net.At(v).dims;
    for (const char *kind : {"Multiply", "Add"}) {
        if (v == kMissing || !rng.Chance(0.7)) continue;
        if (rng.Chance(pair_share)) v = Pair(this, v);
        const Id w = v == kMissing ? kMissing : OnePerColumn(this, dims, dims.size() - 1);
        if (w == kMissing) return kMissing;
        v = rng.Chance(0.7) ? net.Op1(kind, {v, w}) : net.Op1(kind, {w, v});
    }
    return v;
}

Id Generator::SpelledSoftmax(Id x) {
    const Dims dims = net.At(x).dims;
    const auto rank = static_cast<int64_t>(dims.size()), axis = rng.Chance(0.7) ? rank - 1 : rng.Int(0, rank - 1);
    const auto n = static_cast<float>(dims[static_cast<size_t>(axis)]);
    const bool casts = rng.Chance(0.2), clamps = rng.Chance(0.3), harmless = rng.Chance(0.7);
    const auto reduce = [&](const std::string &kind, Id v) {
        const std::vector<int64_t> axes = {axis - (rng.Chance(0.5) ? rank : 0)};
        if (v == kMissing) return kMissing;
        if (rng.Chance(0.2)) return net.Op1(kind, {v, Index(axes)}, {AttrB("keep_dims", true)});
        return net.Op1(kind, {v}, {AttrB("keep_dims", true), AttrIs("axes", axes)});
    };
    // Bounds that what stands here keeps, or not.
    const auto bounded = [&](Id v, float low, float high) {
        if (v == kMissing) return v;
        if (clamps && rng.Chance(0.4))
            v = net.Op1(
                "Clamp", {v},
                {AttrF("min", harmless ? low : low * 0.1f + high * 0.3f), AttrF("max", harmless ? high : high * 0.9f)});
        return casts && v != kMissing && rng.Chance(0.4) ? ApplyCast("TypeCast", v) : v;
    };
    const Id m = reduce("ReduceMax", x);
    if (m == kMissing) return kMissing;
    Id e = bounded(net.Op1("Subtract", {x, m}), -200.0f, 10.0f);
    e = e == kMissing ? kMissing : bounded(net.Op1("Exp", {e}), 0.0f, 2.0f);
    Id sum = bounded(reduce("ReduceSum", e), 0.5f, 2.0f * n);
    if (sum == kMissing) return kMissing;
    if (net.At(sum).dtype != net.At(e).dtype) return kMissing;
    if (rng.Chance(0.6)) return net.Op1("Divide", {e, sum});
    sum = fp == QDQ_DTYPE_F32 && rng.Chance(0.3) ? net.Op1("Divide", {net.Floats({}, {1.0f}, true, fp), sum})
                                                 : net.Op1("Reciprocal", {sum});
    sum = bounded(sum, 0.0f, 1.5f);
    if (sum == kMissing || net.At(sum).dtype != net.At(e).dtype) return kMissing;
    return rng.Chance(0.5) ? net.Op1("Multiply", {e, sum}) : net.Op1("Multiply", {sum, e});
}

bool Generator::MakeSpelled(qdqi_kind anchor) {
    const bool centred = anchor == QDQI_OP_REDUCEMEAN, softmax = anchor == QDQI_OP_REDUCEMAX;
    const size_t n = pattern_->n_nodes;
    const double pair_share = rng.Chance(0.5) ? 0.0 : 0.4;
    for (int attempt = 0; attempt < 300; attempt++) {
        net.Rollback({0, 0});
        failure.clear();
        if (attempt > 60) fp = QDQ_DTYPE_F32, zero_sizes = false;
        Dims dims;
        for (int64_t d = rng.Int(1, 3); d > 0; d--)
            dims.push_back(Dim(9));
        dims.push_back(rng.Chance(0.2) ? 130 : Dim(65));
        Want want{dims};
        want.is_variable = true;
        const Id x = Upstream(softmax ? 1 : 0, want);
        Id v = x == kMissing || net.At(x).dims.empty() ? kMissing
               : softmax                               ? SpelledSoftmax(x)
                                                       : SpelledNorm(x, centred, pair_share);
        if (failure.rfind("generator:", 0) == 0) return false;
        if (v == kMissing || !IsTame(v)) continue;
        if (!softmax) v = SpelledAffine(v, pair_share);
        if (v == kMissing || !IsTame(v)) continue;
        bool ok = true;
        for (size_t i = n - 2; i < n && ok; i++) // the chain and the Quantize
            ok = Downstream(i, &v);
        if (!ok) continue;
        root_kind = softmax ? "SoftMax" : centred ? "LayerNorm" : "RMSNorm";
        outputs = {v};
        return true;
    }
    if (failure.empty()) failure = "nothing fits: " + net.error;
    return false;
}

} // namespace qdq_test
