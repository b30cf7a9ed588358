// Products of what is quantized at run time for them alone: the entries with a FRONT.
#include "fusion/generator.h"

#include <algorithm>

namespace qdq_test {

namespace {

Id Weights(Generator *g, const Dims &dims, qdq_dtype dtype, bool constant) {
    std::vector<int64_t> v(static_cast<size_t>(Count(dims)));
    for (int64_t &x : v)
        x = g->rng.Int(qdqi_dtype_min(dtype), qdqi_dtype_max(dtype));
    return g->net.Ints(dtype, dims, v, constant);
}

// The sums of MatMulInteger or ConvInteger of a quantized `x`, whose zero point is `zp`.
Id Sums(Generator *g, bool conv, Id x, Id zp, int64_t n) {
    Random &rng = g->rng;
    const Dims dims = g->net.At(x).dims;
    const qdq_dtype type = rng.Chance(0.7) ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
    const bool constant = rng.Chance(0.8);
    const Dims w = conv ? Dims{n, dims[1], rng.Int(1, 3), rng.Int(1, 3)} : Dims{dims.back(), n};
    std::vector<Id> in = {x, Weights(g, w, type, constant), zp};
    if (rng.Chance(0.5)) {
        const bool one = rng.Chance(0.7);
        in.push_back(rng.Chance(0.5) ? g->net.Ints(type, {}, {0}, true)
                                     : Weights(g, one ? Dims{} : Dims{n}, type, true));
    }
    std::vector<Attr> attrs;
    if (conv)
        attrs = {AttrIs("strides", {1, rng.Int(1, 2)}), AttrIs("dilations", {1, 1}), AttrIs("pads_begin", {0, 1}),
                 AttrIs("pads_end", {1, 0})};
    return g->net.Op1(conv ? "ConvInteger" : "MatMulInteger", in, attrs);
}

} // namespace

bool Generator::MakeDynamic(bool conv) {
    const size_t n_nodes = pattern_->n_nodes;
    for (int attempt = 0; attempt < 300; attempt++) {
        net.Rollback({0, 0});
        failure.clear();
        fp = QDQ_DTYPE_F32; // DynamicQuantizeLinear knows no other
        if (attempt > 60) zero_sizes = false;
        Dims dims = {Dim(17), Dim(33)};
        if (conv)
            dims = {Dim(3), Dim(9), rng.Int(3, 7), rng.Int(3, 7)};
        else if (rng.Chance(0.4))
            dims.insert(dims.begin(), Dim(3));
        const int64_t n = Dim(17);
        Want want{dims};
        want.is_variable = true;
        const Id x = FloatLeaf(want);
        std::vector<Id> q;
        if (!net.Op("DynamicQuantizeLinear", {x}, {}, {QDQ_DTYPE_U8, QDQ_DTYPE_F32, QDQ_DTYPE_U8}, &q)) continue;
        const Dims row = conv || rng.Chance(0.6) ? (rng.Chance(0.5) ? Dims{} : Dims{1}) : Dims{n};
        std::vector<float> scales(static_cast<size_t>(Count(row)));
        for (float &s : scales)
            s = rng.Float(0.001f, 0.02f);
        const Id w_scale = net.Floats(row, scales, rng.Chance(0.8));
        const int64_t form = rng.Int(0, 2); // the product before the sums, behind them, or two multiplications
        Id scale = form == 0 ? net.Op1("Multiply", {q[1], w_scale}) : kMissing;
        Id v = Sums(this, conv, q[0], q[2], n);
        if (v == kMissing) continue;
        if (form == 1) scale = net.Op1("Multiply", {w_scale, q[1]});
        v = net.Op1("Cast", {v}, {AttrS("to", "f32")});
        if (v == kMissing || (form < 2 && scale == kMissing)) continue;
        const Id factor = form < 2 ? scale : q[1];
        v = rng.Chance(0.5) ? net.Op1("Multiply", {v, factor}) : net.Op1("Multiply", {factor, v});
        if (form == 2 && v != kMissing) v = net.Op1("Multiply", {v, w_scale});
        if (v == kMissing || !IsTame(v)) continue;
        bool ok = true;
        for (size_t i = n_nodes - 3; i < n_nodes && ok; i++) // chain, views, Quantize
            ok = Downstream(i, &v);
        if (failure.rfind("generator:", 0) == 0) return false;
        if (!ok) continue;
        root_kind = conv ? "ConvInteger" : "MatMulInteger";
        outputs = {v};
        return true;
    }
    if (failure.empty()) failure = "nothing fits: " + net.error;
    return false;
}

} // namespace qdq_test
