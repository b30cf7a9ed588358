// Quantizations in every spelling: oneDNN Graph's static and dynamic ops, ONNX's, TensorFlow's.
#include "fusion/generator.h"

#include <algorithm>
#include <cmath>

namespace qdq_test {

namespace {

bool IsF8(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F8_E4M3 || dtype == QDQ_DTYPE_F8_E5M2;
}

bool Is4Bit(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_S4 || dtype == QDQ_DTYPE_U4;
}

} // namespace

QParams Generator::ChooseParams(const Dims &dims, qdq_dtype dtype, float amplitude, bool positive, bool allow_group) {
    QParams q;
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t how = rng.Int(0, 99);
    int64_t n = 1;
    if (rank > 0 && how >= 60) {
        q.granularity = QParams::kAxis;
        q.axis = rng.Int(0, rank - 1);
        n = dims[static_cast<size_t>(q.axis)];
    }
    if (rank > 1 && how >= 92 && allow_group && Count(dims) > 0) {
        q.granularity = QParams::kGroup;
        n = 1;
        for (const int64_t d : dims) {
            std::vector<int64_t> divisors;
            for (int64_t g = 1; g <= d; g++)
                if (d % g == 0) divisors.push_back(g);
            q.group.push_back(rng.Pick(divisors));
            n *= d / q.group.back();
        }
    }
    const bool has_zp = !IsF8(dtype) && (positive || rng.Chance(0.7));
    const int64_t low = IsF8(dtype) ? -100 : qdqi_dtype_min(dtype), high = IsF8(dtype) ? 100 : qdqi_dtype_max(dtype);
    const bool one_zp = rng.Chance(0.3);
    for (int64_t i = 0; i < n; i++) {
        int64_t zp = 0;
        if (has_zp && dtype != QDQ_DTYPE_S32) {
            const std::vector<int64_t> choices = {0, low, high, low + 1, rng.Int(low, high) | 1};
            zp = std::min(positive ? low : rng.Pick(choices), high);
        }
        if (has_zp && one_zp && !q.zps.empty()) zp = q.zps[0];
        const double reach = dtype == QDQ_DTYPE_S32
                                 ? 1000.0
                                 : static_cast<double>(std::max(std::llabs(low - zp), std::llabs(high - zp)));
        float scale = amplitude / static_cast<float>(reach) * rng.Float(0.5f, 1.3f);
        if (rng.Chance(0.3)) scale = std::exp2(std::round(std::log2(scale)));
        if (!positive && rng.Chance(0.04)) scale = -scale;
        q.scales.push_back(scale);
        if (has_zp) q.zps.push_back(zp);
    }
    if (has_zp && one_zp && q.granularity != QParams::kGroup && !q.zps.empty()) q.zps.resize(1);
    return q;
}

namespace {

// Spell the granularity in the attributes of a oneDNN Graph op.
void AddGranularity(Generator *g, const QParams &q, size_t rank, std::vector<Attr> *attrs) {
    if (q.granularity == QParams::kTensor) {
        if (g->rng.Chance(0.5)) attrs->push_back(AttrS("qtype", "per_tensor"));
        return;
    }
    attrs->push_back(AttrS("qtype", q.granularity == QParams::kAxis ? "per_channel" : "per_group"));
    if (q.granularity == QParams::kGroup) {
        attrs->push_back(AttrIs("group_shape", q.group));
        return;
    }
    const bool from_end = g->rng.Chance(0.4);
    if (q.axis != 1 || from_end || g->rng.Chance(0.5))
        attrs->push_back(AttrI("axis", from_end ? q.axis - static_cast<int64_t>(rank) : q.axis));
}

Dims ParamDims(const QParams &q, const Dims &dims, bool scalar) {
    if (q.granularity == QParams::kTensor) return scalar ? Dims{} : Dims{1};
    if (q.granularity == QParams::kAxis) return {static_cast<int64_t>(q.scales.size())};
    Dims out;
    for (size_t d = 0; d < dims.size(); d++)
        out.push_back(dims[d] / q.group[d]);
    return out;
}

// zero points as many as the shape has
std::vector<int64_t> Spread(const std::vector<int64_t> &zps, size_t n) {
    return zps.size() == 1 ? std::vector<int64_t>(n, zps[0]) : zps;
}

} // namespace

Id Generator::EmitDequantize(const std::string &kind, Id ints, const QParams &q) {
    const Value x = net.At(ints);
    std::vector<Attr> attrs;
    const bool constant = rng.Chance(0.6);
    if (kind == "Dequantize") {
        if (q.granularity == QParams::kGroup) return kMissing;
        AddGranularity(this, q, x.dims.size(), &attrs);
        attrs.push_back(AttrFs("scales", q.scales));
        if (!q.zps.empty()) attrs.push_back(AttrIs("zps", q.zps));
        return net.Op1(kind, {ints}, attrs, fp);
    }
    if (kind == "DynamicDequantize") {
        if (IsF8(x.dtype)) return kMissing;
        AddGranularity(this, q, x.dims.size(), &attrs);
        const Dims dims = ParamDims(q, x.dims, rng.Chance(0.2));
        std::vector<Id> in = {ints, net.Floats(dims, q.scales, constant, fp)};
        if (!q.zps.empty()) {
            const qdq_dtype type = rng.Chance(0.4) ? QDQ_DTYPE_S32 : x.dtype;
            const bool one = q.zps.size() == 1 && q.granularity != QParams::kGroup;
            in.push_back(net.Ints(type, one ? Dims{1} : dims, one ? q.zps : Spread(q.zps, q.scales.size()),
                                  constant || rng.Chance(0.3)));
        }
        return net.Op1(kind, in, attrs, fp);
    }
    if (kind == "DequantizeLinear") {
        Dims dims = ParamDims(q, x.dims, rng.Chance(0.5));
        if (q.granularity == QParams::kGroup) { // blocks along one axis
            size_t axis = x.dims.size();
            for (size_t d = 0; d < x.dims.size(); d++) {
                if (q.group[d] == 1) continue;
                if (axis != x.dims.size()) return kMissing;
                axis = d;
            }
            if (axis == x.dims.size()) axis = 0;
            attrs.push_back(AttrI("axis", static_cast<int64_t>(axis)));
            attrs.push_back(AttrI("block_size", q.group[axis]));
        } else if (q.granularity == QParams::kAxis) {
            attrs.push_back(AttrI("axis", rng.Chance(0.4) ? q.axis - static_cast<int64_t>(x.dims.size()) : q.axis));
        }
        std::vector<Id> in = {ints, net.Floats(dims, q.scales, constant, fp)};
        if (!q.zps.empty() && (x.dtype != QDQ_DTYPE_S32))
            in.push_back(net.Ints(x.dtype, dims, Spread(q.zps, q.scales.size()), constant || rng.Chance(0.3)));
        return net.Op1(kind, in, attrs, fp);
    }
    return kMissing;
}

Id Generator::EmitQuantize(const std::string &kind, Id floats, qdq_dtype dtype, const QParams &q) {
    const Value x = net.At(floats);
    std::vector<Attr> attrs;
    if (qdqi_dtype_is_float(x.dtype)) fp = x.dtype;
    const bool constant = rng.Chance(0.6);
    if (kind == "Quantize") {
        if (q.granularity == QParams::kGroup) return kMissing;
        AddGranularity(this, q, x.dims.size(), &attrs);
        attrs.push_back(AttrFs("scales", q.scales));
        if (!q.zps.empty()) attrs.push_back(AttrIs("zps", q.zps));
        return net.Op1(kind, {floats}, attrs, dtype);
    }
    if (kind == "DynamicQuantize") {
        if (IsF8(dtype)) return kMissing;
        AddGranularity(this, q, x.dims.size(), &attrs);
        const Dims dims = ParamDims(q, x.dims, rng.Chance(0.2));
        std::vector<Id> in = {floats, net.Floats(dims, q.scales, constant, fp)};
        if (!q.zps.empty()) {
            const qdq_dtype type = rng.Chance(0.4) ? QDQ_DTYPE_S32 : dtype;
            const bool one = q.zps.size() == 1 && q.granularity != QParams::kGroup;
            in.push_back(net.Ints(type, one ? Dims{1} : dims, one ? q.zps : Spread(q.zps, q.scales.size()), constant));
        }
        return net.Op1(kind, in, attrs, dtype);
    }
    if (kind == "QuantizeLinear") {
        if (q.granularity == QParams::kGroup) return kMissing;
        const Dims dims = ParamDims(q, x.dims, rng.Chance(0.5));
        if (q.granularity == QParams::kAxis)
            attrs.push_back(AttrI("axis", rng.Chance(0.4) ? q.axis - static_cast<int64_t>(x.dims.size()) : q.axis));
        std::vector<Id> in = {floats, net.Floats(dims, q.scales, constant, fp)};
        if (!q.zps.empty() && dtype != QDQ_DTYPE_S32)
            in.push_back(net.Ints(dtype, dims, Spread(q.zps, q.scales.size()), constant || rng.Chance(0.3)));
        else if (dtype != QDQ_DTYPE_U8 || rng.Chance(0.5))
            attrs.push_back(AttrS("output_dtype", qdq_dtype_name(dtype)));
        return net.Op1(kind, in, attrs, dtype);
    }
    return kMissing;
}

Id Generator::DequantizedLeaf(const Want &want, const std::vector<std::string> &kinds, bool int_weights, bool int_src) {
    for (int attempt = 0; attempt < 20; attempt++) {
        const Net::Mark mark = net.Now();
        std::vector<qdq_dtype> types = {QDQ_DTYPE_S8, QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_U8};
        if (int_weights && rng.Chance(0.25)) types = {QDQ_DTYPE_S4, QDQ_DTYPE_U4};
        if (rng.Chance(0.06)) types = {QDQ_DTYPE_F8_E4M3, QDQ_DTYPE_F8_E5M2};
        if (want.is_bias && rng.Chance(0.6)) types = {QDQ_DTYPE_S32};
        if (!int_weights && !int_src && !want.is_bias && rng.Chance(0.1)) types = {QDQ_DTYPE_S16, QDQ_DTYPE_U16};
        const qdq_dtype dtype = rng.Pick(types);
        const std::string kind = rng.Pick(kinds);
        const int64_t n = Count(want.dims);
        Bytes data(BytesOf(dtype, n));
        const bool extreme = rng.Chance(0.15);
        for (int64_t i = 0; i < n; i++) {
            if (IsF8(dtype)) {
                qdqi_store_f32(data.data(), dtype, i, rng.Float(-100, 100));
            } else if (dtype == QDQ_DTYPE_S32) {
                qdqi_store_i64(data.data(), dtype, i, rng.Int(-1000, 1000));
            } else {
                const int64_t low = qdqi_dtype_min(dtype), high = qdqi_dtype_max(dtype);
                qdqi_store_i64(data.data(), dtype, i, extreme ? (rng.Chance(0.5) ? low : high) : rng.Int(low, high));
            }
        }
        const bool constant =
            want.is_constant || (!want.is_variable && rng.Chance(want.is_weights || want.is_bias ? 0.75 : 0.03));
        const Id ints = net.Leaf(dtype, want.dims, std::move(data), constant);
        Id made = kMissing;
        if (kind == "TFDequantize") {
            if (IsF8(dtype) || Is4Bit(dtype) || fp == QDQ_DTYPE_F16 || dtype == QDQ_DTYPE_S32 || want.positive) {
                net.Rollback(mark);
                continue;
            }
            const char *modes[] = {"MIN_COMBINED", "MIN_FIRST", "SCALED"};
            std::vector<Attr> attrs = {AttrS("mode", modes[rng.Int(0, 2)]),
                                       AttrS("dtype", fp == QDQ_DTYPE_F32 ? "f32" : "bf16")};
            Dims ranges;
            if (!want.dims.empty() && rng.Chance(0.4)) {
                const int64_t axis = rng.Int(0, static_cast<int64_t>(want.dims.size()) - 1);
                attrs.push_back(AttrI("axis", axis));
                ranges = {want.dims[static_cast<size_t>(axis)]};
            }
            std::vector<float> low(static_cast<size_t>(Count(ranges))), high = low;
            for (float &x : low)
                x = rng.Float(-want.amplitude, 0.0f);
            for (float &x : high)
                x = rng.Float(0.1f, want.amplitude);
            const bool known = rng.Chance(0.6);
            made = net.Op1(kind, {ints, net.Floats(ranges, low, known), net.Floats(ranges, high, known)}, attrs, fp);
        } else if (kind == "Dequantize" || kind == "DynamicDequantize" || kind == "DequantizeLinear") {
            const bool group = kind != "Dequantize";
            const QParams q = ChooseParams(want.dims, dtype, want.amplitude, want.positive, group);
            made = EmitDequantize(kind, ints, q);
            if (q.granularity == QParams::kTensor && (dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8))
                seen = {dtype, q};
        } else {
            failure = "generator: no builder for the Dequantize kind " + kind;
            return kMissing;
        }
        if (made != kMissing) return made;
        net.Rollback(mark);
    }
    return kMissing;
}

Id Generator::DequantizedFloat(Id floats, const std::vector<std::string> &q_kinds,
                               const std::vector<std::string> &dq_kinds) {
    const Dims dims = net.At(floats).dims;
    for (int attempt = 0; attempt < 20; attempt++) {
        const Net::Mark mark = net.Now();
        const qdq_dtype dtype = rng.Chance(0.5) ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
        const QParams q = ChooseParams(dims, dtype, 2.0f, false, false);
        const Id ints = EmitQuantize(rng.Pick(q_kinds), floats, dtype, q);
        const Id made = ints == kMissing ? kMissing : EmitDequantize(rng.Pick(dq_kinds), ints, q);
        if (made != kMissing) return made;
        net.Rollback(mark);
    }
    return kMissing;
}

// TensorFlow's: a range in place of a scale. The two other outputs stay unused.
Id Generator::EmitQuantizeV2(Id floats) {
    const Value x = net.At(floats);
    if (x.dtype != QDQ_DTYPE_F32) return kMissing;
    double largest;
    (void)net.BadShare(floats, 1e30, &largest);
    const auto reach = static_cast<float>(largest > 0 ? largest : 1.0);
    const char *modes[] = {"MIN_COMBINED", "MIN_FIRST", "SCALED"}, *types[] = {"s8", "u8", "s8", "u8", "s16", "u16"};
    const auto mode = static_cast<size_t>(rng.Int(0, 2));
    std::vector<Attr> attrs = {AttrS("mode", modes[mode]), AttrS("T", types[rng.Int(0, 5)])};
    if (mode == 2 && rng.Chance(0.5)) attrs.push_back(AttrS("round_mode", "HALF_TO_EVEN"));
    if (mode == 2 && rng.Chance(0.3)) attrs.push_back(AttrB("narrow_range", true));
    Dims dims;
    if (!x.dims.empty() && rng.Chance(0.3)) {
        const int64_t axis = rng.Int(0, static_cast<int64_t>(x.dims.size()) - 1);
        attrs.push_back(AttrI("axis", axis));
        dims = {x.dims[static_cast<size_t>(axis)]};
    }
    std::vector<float> low(static_cast<size_t>(Count(dims))), high = low;
    for (float &v : low)
        v = rng.Float(-reach, 0.0f);
    for (float &v : high)
        v = rng.Float(0.1f * reach, reach);
    const bool known = rng.Chance(0.7);
    std::vector<Id> out;
    const std::vector<Id> in = {floats, net.Floats(dims, low, known), net.Floats(dims, high, known)};
    return net.Op("QuantizeV2", in, attrs, {QDQ_DTYPE_UNDEF, QDQ_DTYPE_UNDEF, QDQ_DTYPE_UNDEF}, &out) ? out[0]
                                                                                                      : kMissing;
}

Id Generator::CloseWithQuantize(Id floats, const std::vector<std::string> &kinds) {
    const Value x = net.At(floats);
    double largest;
    (void)net.BadShare(floats, 1e30, &largest);
    for (int attempt = 0; attempt < 20; attempt++) {
        const Net::Mark mark = net.Now();
        std::vector<qdq_dtype> types = {QDQ_DTYPE_S8, QDQ_DTYPE_U8};
        if (rng.Chance(0.12))
            types = {QDQ_DTYPE_S32, QDQ_DTYPE_S16,     QDQ_DTYPE_U16,    QDQ_DTYPE_S4,
                     QDQ_DTYPE_U4,  QDQ_DTYPE_F8_E4M3, QDQ_DTYPE_F8_E5M2};
        const qdq_dtype dtype = rng.Pick(types);
        const auto amplitude = static_cast<float>(largest > 0 ? largest : 1.0) * rng.Float(0.3f, 1.3f);
        const std::string kind = rng.Pick(kinds);
        if (kind == "QuantizeV2") {
            const Id made = EmitQuantizeV2(floats);
            if (made != kMissing) return made;
            net.Rollback(mark);
            continue;
        }
        if (qdqi_dtype_is_int(x.dtype) && kind != "QuantizeLinear") continue;
        if (kind != "Quantize" && kind != "DynamicQuantize" && kind != "QuantizeLinear") {
            failure = "generator: no builder for the Quantize kind " + kind;
            return kMissing;
        }
        const bool again = seen.dtype != QDQ_DTYPE_UNDEF && rng.Chance(0.4);
        const Id made =
            EmitQuantize(kind, floats, again ? seen.dtype : dtype,
                         again ? seen.q : ChooseParams(x.dims, dtype, amplitude, false, kind == "DynamicQuantize"));
        if (made != kMissing) return made;
        net.Rollback(mark);
    }
    return kMissing;
}

} // namespace qdq_test
