#include "fusion/net.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace qdq_test {

uint64_t Random::Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t Random::Int(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
}

bool Random::Chance(double p) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < p;
}

float Random::Float(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() >> 40) * 0x1p-24f;
}

int64_t Count(const Dims &dims) {
    int64_t n = 1;
    for (const int64_t d : dims)
        n *= d;
    return n;
}

size_t BytesOf(qdq_dtype dtype, int64_t n) {
    return (static_cast<size_t>(n) * qdq_dtype_bits(dtype) + 7) / 8;
}

Attr AttrF(const char *name, double value) {
    Attr a{name, 'f'};
    a.f = value;
    return a;
}
Attr AttrFs(const char *name, std::vector<float> values) {
    Attr a{name, 'F'};
    a.fs = std::move(values);
    return a;
}
Attr AttrI(const char *name, int64_t value) {
    Attr a{name, 'i'};
    a.i = value;
    return a;
}
Attr AttrIs(const char *name, std::vector<int64_t> values) {
    Attr a{name, 'I'};
    a.is = std::move(values);
    return a;
}
Attr AttrB(const char *name, bool value) {
    Attr a{name, 'b'};
    a.i = value;
    return a;
}
Attr AttrS(const char *name, const char *value) {
    Attr a{name, 's'};
    a.s = value;
    return a;
}

qdq_tensor_desc DenseDesc(uint64_t id, qdq_dtype dtype, const Dims &dims) {
    qdq_tensor_desc desc = {};
    const qdq_status status = qdq_tensor_desc_init(id, dtype, static_cast<int32_t>(dims.size()), dims.data(),
                                                   QDQ_LAYOUT_STRIDED, QDQ_PROPERTY_VARIABLE, &desc, nullptr);
    if (status != QDQ_OK) std::fprintf(stderr, "bad descriptor of a test\n");
    return desc;
}

namespace {

bool IsFloat(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_BF16 || dtype == QDQ_DTYPE_F16;
}

bool IsIndex(qdq_dtype dtype) {
    return dtype == QDQ_DTYPE_S64 || dtype == QDQ_DTYPE_S32;
}

bool IsQuantizeKind(const std::string &kind) {
    return kind == "Quantize" || kind == "DynamicQuantize" || kind == "QuantizeLinear";
}

bool IsOneOf(const std::string &kind, std::initializer_list<const char *> kinds) {
    for (const char *k : kinds)
        if (kind == k) return true;
    return false;
}

// Functions that implementations approximate.
bool IsTranscendental(const std::string &kind) {
    return IsOneOf(kind, {"Elu",
                          "Exp",
                          "GELU",
                          "Log",
                          "Mish",
                          "Pow",
                          "Sigmoid",
                          "SoftPlus",
                          "Tanh",
                          "Celu",
                          "Cos",
                          "Erf",
                          "Selu",
                          "Sin",
                          "Swish",
                          "PowTensor",
                          "Sqrt",
                          "Softsign",
                          "Mod",
                          "Divide",
                          "Reciprocal",
                          "HardSwish",
                          "SoftMax",
                          "LogSoftmax",
                          "LayerNorm",
                          "GroupNorm",
                          "RMSNorm",
                          "BatchNormInference",
                          "InstanceNormalization",
                          "ReduceL2",
                          "ReduceProd"});
}

// Relative error that the shadows add to a result of this op.
double ErrorOf(const std::string &kind, qdq_dtype dtype) {
    if (dtype == QDQ_DTYPE_BF16) return 0x1p-7;
    if (dtype == QDQ_DTYPE_F16) return 0x1p-10;
    return IsTranscendental(kind) ? 0x1p-16 : 0x1p-20;
}

bool SetAttr(qdq_op *op, const Attr &a, qdq_error *err) {
    switch (a.type) {
    case 'f': return qdq_op_set_attr_f32(op, a.name.c_str(), static_cast<float>(a.f), err) == QDQ_OK;
    case 'F': return qdq_op_set_attr_f32s(op, a.name.c_str(), a.fs.data(), a.fs.size(), err) == QDQ_OK;
    case 'i': return qdq_op_set_attr_s64(op, a.name.c_str(), a.i, err) == QDQ_OK;
    case 'I': return qdq_op_set_attr_s64s(op, a.name.c_str(), a.is.data(), a.is.size(), err) == QDQ_OK;
    case 'b': return qdq_op_set_attr_bool(op, a.name.c_str(), a.i != 0, err) == QDQ_OK;
    default: return qdq_op_set_attr_str(op, a.name.c_str(), a.s.c_str(), err) == QDQ_OK;
    }
}

// Add one node to a graph. Outputs have the data types of `outs` and unknown shapes.
bool AddOp(qdq_graph *graph, uint64_t op_id, const Node &node, const std::vector<Value> &values,
           const std::vector<qdq_dtype> &outs, uint64_t first_out, qdq_error *err) {
    qdq_op *op = nullptr;
    if (qdq_op_create(op_id, node.kind.c_str(), (node.kind + std::to_string(op_id)).c_str(), &op, err) != QDQ_OK)
        return false;
    bool ok = true;
    for (const Id in : node.in) {
        if (in == kMissing) {
            ok = ok && qdq_op_add_input(op, nullptr, err) == QDQ_OK;
            continue;
        }
        const Value &v = values[static_cast<size_t>(in)];
        qdq_tensor_desc desc = DenseDesc(static_cast<uint64_t>(in) + 1, v.dtype, v.dims);
        if (!v.strides.empty())
            for (size_t d = 0; d < v.dims.size(); d++)
                desc.strides[d] = v.strides[d];
        if (v.is_constant) desc.property = QDQ_PROPERTY_CONSTANT;
        ok = ok && qdq_op_add_input(op, &desc, err) == QDQ_OK;
    }
    for (size_t o = 0; o < outs.size(); o++) {
        qdq_tensor_desc desc = {};
        desc.id = first_out + o;
        desc.dtype = outs[o];
        desc.ndims = QDQ_NDIMS_UNKNOWN;
        ok = ok && qdq_op_add_output(op, &desc, err) == QDQ_OK;
    }
    for (const Attr &a : node.attrs)
        ok = ok && SetAttr(op, a, err);
    ok = ok && qdq_graph_add_op(graph, op, err) == QDQ_OK;
    qdq_op_destroy(&op);
    return ok;
}

bool AttachConstant(qdq_graph *graph, Id id, const Value &v, qdq_error *err) {
    qdq_tensor_desc desc = DenseDesc(static_cast<uint64_t>(id) + 1, v.dtype, v.dims);
    desc.property = QDQ_PROPERTY_CONSTANT;
    return qdq_graph_set_constant(graph, &desc, v.data.data(), v.data.size(), QDQ_DATA_COPY, err) == QDQ_OK;
}

std::string DimsText(const Dims &dims) {
    std::string s;
    for (size_t i = 0; i < dims.size(); i++)
        s += (i ? "x" : "") + std::to_string(dims[i]);
    return dims.empty() ? "scalar" : s;
}

std::string FloatText(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

} // namespace

Id Net::Leaf(qdq_dtype dtype, const Dims &dims, Bytes data, bool is_constant) {
    Value v;
    v.dtype = dtype;
    v.dims = dims;
    v.is_constant = is_constant;
    v.data = std::move(data);
    v.data.resize(BytesOf(dtype, Count(dims)));
    values.push_back(std::move(v));
    return static_cast<Id>(values.size()) - 1;
}

Id Net::Floats(const Dims &dims, const std::vector<float> &from, bool is_constant, qdq_dtype dtype) {
    Bytes data(BytesOf(dtype, Count(dims)));
    for (size_t i = 0; i < from.size(); i++)
        qdqi_store_f32(data.data(), dtype, static_cast<int64_t>(i), from[i]);
    return Leaf(dtype, dims, std::move(data), is_constant);
}

Id Net::Ints(qdq_dtype dtype, const Dims &dims, const std::vector<int64_t> &from, bool is_constant) {
    Bytes data(BytesOf(dtype, Count(dims)));
    for (size_t i = 0; i < from.size(); i++)
        qdqi_store_i64(data.data(), dtype, static_cast<int64_t>(i), from[i]);
    return Leaf(dtype, dims, std::move(data), is_constant);
}

bool Net::Op(const std::string &kind, const std::vector<Id> &in, const std::vector<Attr> &attrs,
             const std::vector<qdq_dtype> &out_dtypes, std::vector<Id> *out) {
    Node node;
    node.kind = kind;
    node.in = in;
    node.attrs = attrs;
    const uint64_t first_out = values.size() + 1;
    qdq_error err = {};
    qdq_graph *raw = nullptr;
    if (qdq_graph_create(&raw, &err) != QDQ_OK) {
        error = err.text;
        return false;
    }
    GraphPtr graph(raw);
    bool ok = AddOp(raw, 1, node, values, out_dtypes, first_out, &err);
    std::vector<Id> distinct;
    for (const Id id : in) {
        bool seen = id == kMissing;
        for (const Id d : distinct)
            seen = seen || d == id;
        if (!seen) distinct.push_back(id);
    }
    std::vector<uint64_t> inputs;
    for (const Id id : distinct) {
        const Value &v = values[static_cast<size_t>(id)];
        if (v.is_constant && IsIndex(v.dtype))
            ok = ok && AttachConstant(raw, id, v, &err);
        else
            inputs.push_back(static_cast<uint64_t>(id) + 1);
    }
    ok = ok && qdq_graph_finalize(raw, &err) == QDQ_OK;
    if (!ok) {
        error = err.text;
        return false;
    }
    const size_t n_out = out_dtypes.size();
    std::vector<Value> made(n_out);
    std::vector<qdq_tensor> outs(n_out);
    for (size_t o = 0; o < n_out; o++) {
        qdq_tensor_desc desc;
        if (qdq_graph_tensor_desc(raw, first_out + o, &desc, &err) != QDQ_OK || desc.ndims == QDQ_NDIMS_UNKNOWN) {
            error = "no shape of output " + std::to_string(o) + ": " + err.text;
            return false;
        }
        made[o].dtype = desc.dtype;
        made[o].dims.assign(desc.dims, desc.dims + desc.ndims);
        made[o].data.resize(BytesOf(desc.dtype, Count(made[o].dims)));
        outs[o].desc = DenseDesc(first_out + o, desc.dtype, made[o].dims);
    }
    // twice more with the shadows of the inputs
    for (int run = -1; run < 2; run++) {
        std::vector<qdq_tensor> ins;
        for (const uint64_t id : inputs) {
            const Value &v = values[id - 1];
            const Bytes &from = run >= 0 && !v.shadow[run].empty() ? v.shadow[run] : v.data;
            qdq_tensor t = {};
            t.desc = DenseDesc(id, v.dtype, v.dims);
            t.data = const_cast<uint8_t *>(from.data());
            ins.push_back(t);
        }
        bool needed = run < 0;
        for (size_t o = 0; o < n_out; o++) {
            if (run >= 0 && (IsFloat(made[o].dtype) || kind == "QuantizeV2" || IsQuantizeKind(kind))) {
                made[o].shadow[run].resize(made[o].data.size());
                outs[o].data = made[o].shadow[run].data();
                needed = true;
            } else {
                outs[o].data = made[o].data.data();
            }
        }
        if (!needed) continue;
        if (qdq_graph_run_reference(raw, ins.data(), ins.size(), outs.data(), n_out, &err) != QDQ_OK) {
            error = err.text;
            return false;
        }
        for (size_t o = 0; run >= 0 && o < n_out; o++) {
            if (!IsFloat(made[o].dtype)) continue;
            Random random(noise + values.size() + o);
            const double rel = ErrorOf(kind, made[o].dtype), abs = IsTranscendental(kind) ? 0x1p-21 : 0.0;
            for (int64_t i = 0; i < Count(made[o].dims); i++) {
                const double x = qdqi_load_f64(made[o].shadow[run].data(), made[o].dtype, i);
                const double sign = random.Chance(0.5) == (run == 0) ? 1.0 : -1.0; // the shadows lie on either side
                qdqi_store_f64(made[o].shadow[run].data(), made[o].dtype, i, x * (1.0 + sign * rel) + sign * abs);
            }
        }
    }
    out->clear();
    for (size_t o = 0; o < n_out; o++) {
        made[o].producer = static_cast<int>(nodes.size());
        values.push_back(std::move(made[o]));
        node.out.push_back(static_cast<Id>(values.size()) - 1);
    }
    *out = node.out;
    nodes.push_back(std::move(node));
    return true;
}

Id Net::Op1(const std::string &kind, const std::vector<Id> &in, const std::vector<Attr> &attrs, qdq_dtype out) {
    std::vector<Id> made;
    return Op(kind, in, attrs, {out}, &made) ? made[0] : kMissing;
}

void Net::Rollback(const Mark &mark) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(mark.n_values), values.end());
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(mark.n_nodes), nodes.end());
}

double Net::BadShare(Id id, double limit, double *largest_out) const {
    const Value &v = At(id);
    const int64_t n = Count(v.dims);
    int64_t bad = 0;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = qdqi_load_f64(v.data.data(), v.dtype, i);
        if (!(std::fabs(x) <= limit))
            bad++;
        else
            largest = std::fmax(largest, std::fabs(x));
    }
    *largest_out = largest;
    return n == 0 ? 0.0 : static_cast<double>(bad) / static_cast<double>(n);
}

bool Net::IsFlat(Id id) const {
    const int64_t n = Count(At(id).dims);
    for (int64_t i = 1; i < n; i++)
        if (F32(id, i) != F32(id, 0)) return false;
    return n > 3;
}

bool Net::HasTranscendental() const {
    for (const Node &n : nodes)
        if (IsTranscendental(n.kind)) return true;
    return false;
}

qdq_graph *Net::Graph(const std::vector<Id> &outputs, std::string *error_out) const {
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    bool ok = qdq_graph_create(&graph, &err) == QDQ_OK;
    std::vector<bool> used(values.size(), false);
    for (size_t n = 0; n < nodes.size() && ok; n++) {
        std::vector<qdq_dtype> dtypes;
        for (const Id id : nodes[n].out)
            dtypes.push_back(At(id).dtype);
        ok = AddOp(graph, n + 1, nodes[n], values, dtypes, static_cast<uint64_t>(nodes[n].out[0]) + 1, &err);
        for (const Id id : nodes[n].in)
            if (id != kMissing) used[static_cast<size_t>(id)] = true;
    }
    for (size_t v = 0; v < values.size() && ok; v++)
        if (used[v] && values[v].is_constant) ok = AttachConstant(graph, static_cast<Id>(v), values[v], &err);
    std::vector<uint64_t> ids;
    for (const Id id : outputs)
        ids.push_back(static_cast<uint64_t>(id) + 1);
    ok = ok && qdq_graph_set_outputs(graph, ids.data(), ids.size(), &err) == QDQ_OK &&
         qdq_graph_finalize(graph, &err) == QDQ_OK;
    if (!ok) {
        *error_out = err.text;
        qdq_graph_destroy(&graph);
    }
    return graph;
}

std::string Net::Text() const {
    std::string s;
    const auto name = [&](Id id) -> std::string {
        if (id == kMissing) return "-";
        const Value &v = At(id);
        return "%" + std::to_string(id) + ":" + qdq_dtype_name(v.dtype) + "[" + DimsText(v.dims) + "]" +
               (v.is_constant ? "c" : "") + (v.strides.empty() ? "" : "s");
    };
    for (const Node &n : nodes) {
        s += "    ";
        for (const Id id : n.out)
            s += name(id) + " ";
        s += "= " + n.kind + "(";
        for (size_t i = 0; i < n.in.size(); i++)
            s += (i ? ", " : "") + name(n.in[i]);
        s += ")";
        for (const Attr &a : n.attrs) {
            s += " " + a.name + "=";
            if (a.type == 'f') s += FloatText(a.f);
            if (a.type == 'i' || a.type == 'b') s += std::to_string(a.i);
            if (a.type == 's') s += a.s;
            for (size_t i = 0; i < a.fs.size() && i < 6; i++)
                s += (i ? "," : "") + FloatText(static_cast<double>(a.fs[i]));
            for (size_t i = 0; i < a.is.size() && i < 6; i++)
                s += (i ? "," : "") + std::to_string(a.is[i]);
        }
        s += "\n";
    }
    // small leaves in full: scales, zero points, shapes
    for (size_t v = 0; v < values.size(); v++) {
        if (values[v].producer != -1 || Count(values[v].dims) > 4) continue;
        s += "    " + name(static_cast<Id>(v)) + " :";
        for (int64_t i = 0; i < Count(values[v].dims); i++)
            s += " " + FloatText(qdqi_load_f64(values[v].data.data(), values[v].dtype, i));
        s += "\n";
    }
    return s;
}

// ---- comparison ----

namespace {

// Scale and zero point of element i of a Quantize's result.
struct Params {
    const Net &net;
    const Node &node;
    Dims dims;
    int64_t axis = 0;
    std::string qtype = "per_tensor";
    Dims group;

    Params(const Net &n, const Node &q) : net(n), node(q), dims(n.At(q.in[0]).dims) {
        const auto rank = static_cast<int64_t>(dims.size());
        axis = rank > 1 ? 1 : 0;
        for (const Attr &a : node.attrs) {
            if (a.name == "axis") axis = a.i < 0 ? a.i + rank : a.i;
            if (a.name == "qtype") qtype = a.s;
            if (a.name == "group_shape") group = a.is;
            if (a.name == "block_size" && a.i > 0) {
                qtype = "per_group";
                group.assign(dims.size(), 1);
                group[static_cast<size_t>(axis)] = a.i;
            }
        }
        if (node.kind == "QuantizeLinear" && qtype != "per_group")
            qtype =
                Count(net.At(node.in[1]).dims) > 1 || net.At(node.in[1]).dims.size() > 1 ? "per_channel" : "per_tensor";
    }

    int64_t IndexOf(int64_t i, int64_t n) const {
        if (n <= 1 || qtype == "per_tensor") return 0;
        int64_t at = 0;
        Dims index(dims.size());
        for (size_t d = dims.size(); d-- > 0;) {
            index[d] = i % dims[d];
            i /= dims[d];
        }
        if (qtype == "per_channel") return index[static_cast<size_t>(axis)];
        for (size_t d = 0; d < dims.size(); d++)
            at = at * ((dims[d] + group[d] - 1) / group[d]) + index[d] / group[d];
        return at;
    }

    double Scale(int64_t i) const {
        if (node.kind == "Quantize") {
            for (const Attr &a : node.attrs)
                if (a.name == "scales")
                    return static_cast<double>(
                        a.fs[static_cast<size_t>(IndexOf(i, static_cast<int64_t>(a.fs.size())))]);
            return 1.0;
        }
        const Value &v = net.At(node.in[1]);
        return qdqi_load_f64(v.data.data(), v.dtype, IndexOf(i, Count(v.dims)));
    }

    double Zp(int64_t i) const {
        if (node.kind == "Quantize") {
            for (const Attr &a : node.attrs)
                if (a.name == "zps" && !a.is.empty())
                    return static_cast<double>(
                        a.is[static_cast<size_t>(IndexOf(i, static_cast<int64_t>(a.is.size())))]);
            return 0.0;
        }
        if (node.in.size() < 3 || node.in[2] == kMissing) return 0.0;
        const Value &v = net.At(node.in[2]);
        return qdqi_load_f64(v.data.data(), v.dtype, IndexOf(i, Count(v.dims)));
    }
};

// How far the shadows of element i stray; infinite when one of them is no number, or so far away that the value says nothing.
double Stray(const Value &v, int64_t i) {
    const double x = qdqi_load_f64(v.data.data(), v.dtype, i);
    double d = 0;
    for (const Bytes &shadow : v.shadow) {
        if (shadow.empty()) continue;
        const double y = qdqi_load_f64(shadow.data(), v.dtype, i);
        if (y == x) continue;
        const double diff = std::fabs(y - x);
        if (!(diff <= d)) d = std::isnan(diff) ? HUGE_VAL : diff;
    }
    const bool wide = v.dtype == QDQ_DTYPE_F32;
    return d > (wide ? 0.02 : 0.25) * std::fabs(x) + (wide ? 1e-4 : 1e-2) ? HUGE_VAL : d;
}

} // namespace

bool Net::IsIllConditioned(Id id) const {
    for (int64_t i = 0; i < Count(At(id).dims); i++)
        if (std::isinf(Stray(At(id), i))) return true;
    return false;
}

namespace {

struct Rule {
    bool transcendental = false, narrow = false;
};

Rule RuleOf(const Net &net) {
    Rule rule;
    for (const Node &n : net.nodes) {
        rule.transcendental = rule.transcendental || IsTranscendental(n.kind);
        for (const Id id : n.out)
            rule.narrow = rule.narrow || net.At(id).dtype == QDQ_DTYPE_BF16 || net.At(id).dtype == QDQ_DTYPE_F16;
    }
    return rule;
}

double StepOf(qdq_dtype dtype) {
    switch (dtype) {
    case QDQ_DTYPE_BF16: return 0x1p-7;
    case QDQ_DTYPE_F16: return 0x1p-10;
    case QDQ_DTYPE_F8_E5M2: return 0x1p-2;
    case QDQ_DTYPE_F8_E4M3: return 0x1p-3;
    default: return 0.0;
    }
}

std::string Wrong(Id id, int64_t i, double got, double want, double real) {
    return "value %" + std::to_string(id) + " element " + std::to_string(i) + ": got " + FloatText(got) +
           ", expected " + FloatText(want) + " (real value " + FloatText(real) + ")";
}

} // namespace

std::string Compare(const Net &net, Id id, const void *got, Outcome *outcome) {
    const Value &v = net.At(id);
    const int64_t n = Count(v.dims);
    const Rule rule = RuleOf(net);
    const Node *node = v.producer >= 0 ? &net.nodes[static_cast<size_t>(v.producer)] : nullptr;
    const bool is_q = node && IsQuantizeKind(node->kind);
    const bool is_f8 = v.dtype == QDQ_DTYPE_F8_E4M3 || v.dtype == QDQ_DTYPE_F8_E5M2;
    double largest = 0;
    if (!qdqi_dtype_is_int(v.dtype)) (void)net.BadShare(id, 1e30, &largest);
    std::string failure;
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        const double g = qdqi_load_f64(got, v.dtype, i), w = qdqi_load_f64(v.data.data(), v.dtype, i);
        outcome->n_compared++;
        if (g == w || (std::isnan(g) && std::isnan(w))) continue;
        bool ok = false;
        double real = w;
        if (is_q && !is_f8) {
            const Params params(net, *node);
            const Value &x = net.At(node->in[0]);
            const double scale = params.Scale(i), size = qdqi_load_f64(x.data.data(), x.dtype, i) / scale;
            real = size + params.Zp(i);
            const double low = static_cast<double>(qdqi_dtype_min(v.dtype)),
                         high = static_cast<double>(qdqi_dtype_max(v.dtype));
            const double near = (rule.narrow           ? 0x1p-6
                                 : rule.transcendental ? 0x1p-13
                                                       : 0x1p-17) *
                                    std::fmax(1.0, std::fabs(size)) +
                                (rule.narrow ? 4.0 : 2.0) * Stray(x, i) / std::fabs(scale);
            ok = std::isnan(real) || std::isinf(near) ||
                 std::fabs(g - std::fmin(std::fmax(real, low), high)) <= 0.5 + near;
            outcome->n_off_by_one += ok;
        } else if (node && node->kind == "QuantizeV2" && qdqi_dtype_is_int(v.dtype)) {
            // rounds half away, with formulas of its own: between what the shadows give
            const double a = qdqi_load_f64(v.shadow[0].data(), v.dtype, i),
                         b = qdqi_load_f64(v.shadow[1].data(), v.dtype, i);
            const double slack = // a narrow float that the reference rounds and a fused chain keeps
                rule.narrow ? std::ceil(0x1p-8 * static_cast<double>(qdqi_dtype_max(v.dtype) - qdqi_dtype_min(v.dtype)))
                            : 0.0;
            ok = (g >= std::fmin(w, std::fmin(a, b)) - slack && g <= std::fmax(w, std::fmax(a, b)) + slack) ||
                 std::isinf(Stray(net.At(node->in[0]), i));
            outcome->n_off_by_one += ok;
        } else if (!qdqi_dtype_is_int(v.dtype) && v.dtype != QDQ_DTYPE_BOOLEAN) {
            const double stray = is_q ? HUGE_VAL : Stray(v, i);
            double rel = 1e-5, abs = (rule.transcendental ? 1e-5 : 2e-6) * largest;
            const double step = StepOf(v.dtype);
            if (step > 0) rel = step * (rule.narrow && !is_f8 ? 4 : 1);
            if (rule.narrow) abs = 0x1p-8 * largest;
            if (is_f8 && is_q) { // steps of a subnormal are equal
                abs = v.dtype == QDQ_DTYPE_F8_E4M3 ? 0x1p-9 : 0x1p-16;
                const double far = Stray(net.At(node->in[0]), i) / std::fabs(Params(net, *node).Scale(i));
                ok = std::fabs(g - w) <= rel * std::fmax(std::fabs(w), std::fabs(g)) + abs + 2.0 * far || std::isnan(w);
            } else {
                ok = std::isinf(stray) ||
                     std::fabs(g - w) <= rel * std::fabs(w) + abs + (rule.narrow ? 4.0 : 2.0) * stray ||
                     (std::isinf(w) && std::fabs(g) > 1e37);
            }
        }
        if (!ok && n_wrong++ == 0) failure = Wrong(id, i, g, w, real);
    }
    if (n_wrong) failure += "; " + std::to_string(n_wrong) + " of " + std::to_string(n) + " wrong";
    return failure;
}

} // namespace qdq_test
