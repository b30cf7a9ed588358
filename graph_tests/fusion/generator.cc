#include "fusion/generator.h"

#include "patterns/guards.h"
#include "patterns/sets.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace qdq_test {

namespace {

bool Holds(const qdqi_pnode &node, const qdqi_schema *schema) {
    if (!node.set) return schema->kind == node.kind;
    qdqi_op op = {};
    op.kind = schema->kind;
    op.schema = schema;
    op.n_out = schema->max_out == QDQI_VARIADIC ? 1u : schema->max_out;
    if (schema->min_out == 1) op.n_out = 1;
    return node.set->has(&op);
}

// The first entry that an elementwise op alone can start: from there on, an operand that is dequantized would start a
// match of its own.
size_t FirstEltwise() {
    for (size_t i = 0; i < qdqi_pattern_count(); i++) {
        const qdqi_pattern *p = qdqi_pattern_at(i);
        for (uint32_t n = 0; n < p->n_nodes; n++)
            if (p->nodes[n].anchor && Holds(p->nodes[n], qdqi_schema_of(QDQI_OP_RELU))) return i;
    }
    return SIZE_MAX;
}

bool Contains(const std::vector<std::string> &list, const char *item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

} // namespace

namespace {

// An earlier elementwise entry starts at a cast: it would take the chain from there on.
bool CastsStartAnother(size_t entry) {
    for (size_t i = 0; i < entry; i++) {
        const qdqi_pattern *p = qdqi_pattern_at(i);
        for (uint32_t n = 0; n < p->n_nodes; n++)
            if (p->nodes[n].anchor && Holds(p->nodes[n], qdqi_schema_of(QDQI_OP_TYPECAST))) return true;
    }
    return false;
}

} // namespace

Generator::Generator(uint64_t seed, size_t entry)
    : rng(seed * 1000003u + entry * 7919u), pattern_(qdqi_pattern_at(entry)) {
    dq_operands_ = entry <= FirstEltwise();
    casts_ = !CastsStartAnother(entry);
    net.noise = seed * 77777u + 1;
    const double type = static_cast<double>(rng.Int(0, 99));
    fp = type < 86 ? QDQ_DTYPE_F32 : type < 95 ? QDQ_DTYPE_BF16 : QDQ_DTYPE_F16;
    zero_sizes = rng.Chance(0.05);
}

int64_t Generator::Dim(int64_t max) {
    static const std::vector<int64_t> sizes = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65};
    if (zero_sizes && rng.Chance(0.3)) return 0;
    for (;;) {
        const int64_t d = rng.Pick(sizes);
        if (d <= max) return d;
    }
}

Id Generator::FloatLeaf(const Want &want) {
    const int64_t n = Count(want.dims);
    std::vector<float> v(static_cast<size_t>(n));
    const bool round = rng.Chance(0.2);
    for (float &x : v) {
        x = want.positive ? rng.Float(0.1f, want.amplitude) : rng.Float(-want.amplitude, want.amplitude);
        if (round) x = std::round(x * 4.0f) / 4.0f + (want.positive ? 0.25f : 0.0f);
    }
    return net.Floats(want.dims, v, want.is_constant || (!want.is_variable && rng.Chance(0.3)), fp);
}

Id Generator::Index(const std::vector<int64_t> &from) {
    return net.Ints(QDQ_DTYPE_S64, {static_cast<int64_t>(from.size())}, from, true);
}

bool Generator::HasGuard(const qdqi_pnode &node, const char *name) const {
    for (const qdqi_guard *g : node.guards)
        if (g && std::strcmp(g->name, name) == 0) return true;
    return false;
}

std::vector<std::string> Generator::KindsOf(const qdqi_pnode &node) const {
    std::vector<std::string> kinds;
    for (size_t i = 0; i < qdqi_schema_count(); i++) {
        const qdqi_schema *s = qdqi_schema_at(i);
        if (!s->custom && Holds(node, s)) kinds.push_back(s->name);
    }
    return kinds;
}

bool Generator::HasNode(size_t node) const {
    const qdqi_pnode &n = pattern_->nodes[node];
    if (present_[node]) return true;
    return n.n_in > 0 && n.in[0] >= 0 && HasNode(static_cast<size_t>(n.in[0]));
}

bool Generator::IsRequired(size_t node) const {
    const qdqi_pnode &n = pattern_->nodes[node];
    return !n.optional || (n.n_in > 0 && n.in[0] >= 0 && IsRequired(static_cast<size_t>(n.in[0])));
}

bool Generator::IsNarrow() const {
    for (const Value &v : net.values)
        if (v.dtype == QDQ_DTYPE_BF16 || v.dtype == QDQ_DTYPE_F16) return true;
    return fp != QDQ_DTYPE_F32;
}

bool Generator::IsTame(Id id) {
    if (id == kMissing) return false;
    double largest;
    return net.BadShare(id, tame_limit, &largest) <= 0.05 && !net.IsFlat(id) && !net.IsIllConditioned(id);
}

// ---- upstream ----

Id Generator::Upstream(size_t index, const Want &want) {
    const qdqi_pnode &node = pattern_->nodes[index];
    const int child = node.n_in > 0 ? node.in[0] : -1;
    if (!present_[index]) return child >= 0 ? Upstream(static_cast<size_t>(child), want) : FloatLeaf(want);
    const std::vector<std::string> kinds = KindsOf(node);
    if (Contains(kinds, "Dequantize")) {
        if (child >= 0 && HasNode(static_cast<size_t>(child))) { // a Quantize, perhaps of a reshaped value
            const qdqi_pnode &q = pattern_->nodes[child];
            const std::vector<std::string> q_kinds = KindsOf(q);
            if (!Contains(q_kinds, "Quantize")) {
                failure = "generator: a Dequantize of something else than a Quantize";
                return kMissing;
            }
            Want floats = want;
            floats.is_constant = floats.is_constant || HasGuard(q, "const_src");
            const int from = q.n_in > 0 ? q.in[0] : -1;
            if (!present_[static_cast<size_t>(child)]) { // only what stands before it: integers are reshaped
                present_[static_cast<size_t>(child)] = true;
            }
            const Id x = from >= 0 ? Upstream(static_cast<size_t>(from), floats) : FloatLeaf(floats);
            return x == kMissing ? kMissing : DequantizedFloat(x, q_kinds, kinds);
        }
        Want ints = want;
        ints.is_constant = ints.is_constant || HasGuard(node, "const_src");
        return DequantizedLeaf(ints, kinds, HasGuard(node, "int_weights"), HasGuard(node, "int_src"));
    }
    if (Contains(kinds, "MatMul")) return UpstreamProduct(node, want);
    if (Contains(kinds, "Split")) { // one of its outputs is wanted
        Want whole = want;
        const auto axis = static_cast<size_t>(rng.Int(0, static_cast<int64_t>(want.dims.size()) - 1));
        const int64_t before = rng.Int(0, 3), after = rng.Int(1, 3), mine = want.dims[axis];
        whole.dims[axis] = before + mine + after;
        const Id x = child >= 0 ? Upstream(static_cast<size_t>(child), whole) : FloatLeaf(whole);
        std::vector<int64_t> sizes = {mine, after};
        if (before > 0) sizes.insert(sizes.begin(), before);
        std::vector<Id> out;
        const std::vector<qdq_dtype> types(sizes.size(), QDQ_DTYPE_UNDEF);
        if (x == kMissing ||
            !net.Op("Split", {x, Index(sizes)}, {AttrI("axis", static_cast<int64_t>(axis))}, types, &out))
            return kMissing;
        return out[before > 0 ? 1 : 0];
    }
    if (node.region > 0) { // a small graph between two compute ops
        Id v = child >= 0 ? Upstream(static_cast<size_t>(child), want) : FloatLeaf(want);
        for (int64_t n = rng.Int(0, 3); n > 0 && v != kMissing; n--) {
            const Net::Mark mark = net.Now();
            const Id next = ApplyPointwise(kinds, v, {true, false, node.self_other});
            if (IsTame(next) && net.At(next).dtype == net.At(v).dtype)
                v = next;
            else
                net.Rollback(mark);
        }
        return v;
    }
    if (Contains(kinds, "StaticReshape")) {
        const auto make = [&](const Want &w) {
            return child >= 0 ? Upstream(static_cast<size_t>(child), w) : FloatLeaf(w);
        };
        for (int attempt = 0; attempt < 20; attempt++) {
            const Net::Mark mark = net.Now();
            const Id id = MakeRelayout(rng.Pick(kinds), want, make);
            if (id != kMissing) return id;
            net.Rollback(mark);
        }
    }
    failure = "generator: no builder for an upstream node of kinds " + (kinds.empty() ? "none" : kinds[0] + " …");
    return kMissing;
}

Id Generator::ApplyPointwise(const std::vector<std::string> &kinds, Id v, const Sides &sides) {
    const std::string kind = rng.Pick(kinds);
    const qdqi_schema *s = qdqi_schema_find(kind.c_str());
    const bool pointwise = (s->flags & (QDQI_F_UNARY | QDQI_F_BINARY)) || kind == "BiasAdd" || kind == "PReLU";
    return pointwise ? ApplyChain(kind, v, sides) : kMissing;
}

// A product that another op of the entry reads.
Id Generator::UpstreamProduct(const qdqi_pnode &node, const Want &want) {
    const size_t rank = want.dims.size();
    if (rank < 2) return kMissing;
    const int64_t k = Dim(33), n = want.dims[rank - 1];
    const bool transposed = rng.Chance(0.4);
    Want a = want, b = want;
    a.dims[rank - 1] = k;
    a.is_variable = true;
    a.is_constant = b.is_constant = false;
    b.is_weights = true;
    b.is_variable = false;
    if (rng.Chance(0.5)) b.dims.erase(b.dims.begin(), b.dims.end() - 2);
    b.dims[b.dims.size() - 2] = transposed ? n : k;
    b.dims[b.dims.size() - 1] = transposed ? k : n;
    const auto port = [&](size_t p, const Want &w) {
        return p < node.n_in && node.in[p] >= 0 ? Upstream(static_cast<size_t>(node.in[p]), w) : FloatLeaf(w);
    };
    const Id x = port(0, a), w = x == kMissing ? kMissing : port(1, b);
    if (w == kMissing) return kMissing;
    const Id made = net.Op1("MatMul", {x, w}, {AttrB("transpose_b", transposed)});
    return made != kMissing && net.At(made).dims == want.dims ? made : kMissing;
}

// A product of what the entry has made so far.
Id Generator::ApplyProduct(Id v, const Sides &sides) {
    const Dims dims = net.At(v).dims;
    if (dims.size() < 2) return kMissing;
    fp = net.At(v).dtype;
    const bool right = sides.any_side && rng.Chance(0.3); // the value is the second operand
    Want other{right ? Dims{Dim(17), dims[dims.size() - 2]} : Dims{dims.back(), Dim(17)}};
    if (dims.size() > 2 && rng.Chance(0.5)) other.dims.insert(other.dims.begin(), dims.begin(), dims.end() - 2);
    const Id x = sides.dq_other && rng.Chance(0.5)
                     ? DequantizedLeaf(other, {"Dequantize", "DynamicDequantize", "DequantizeLinear"}, false, true)
                     : FloatLeaf(other);
    return x == kMissing ? kMissing : net.Op1("MatMul", {right ? x : v, right ? v : x});
}

// ---- downstream ----

bool Generator::Downstream(size_t index, Id *v) {
    const qdqi_pnode &node = pattern_->nodes[index];
    const std::vector<std::string> kinds = KindsOf(node);
    if (Contains(kinds, "Dequantize")) { // follows a Quantize of the entry, or is absent with it
        const qdq_dtype stored = net.At(*v).dtype;
        if (!qdqi_dtype_is_int(stored)) return node.optional;
        for (int attempt = 0; attempt < 10; attempt++) {
            const std::string kind = rng.Pick(kinds);
            const Id made = EmitDequantize(kind, *v, ChooseParams(net.At(*v).dims, stored, 2.0f, false, false));
            if (made == kMissing) continue;
            *v = made;
            return true;
        }
        return false;
    }
    if (!present_[index]) return true;
    const bool integers = !qdqi_dtype_is_float(net.At(*v).dtype); // sums that no cast has made floats
    if (integers && HasGuard(node, "float_dst") && !Contains(kinds, "Cast"))
        return node.rep_max > 0 && node.rep_min == 0;
    const Sides sides = {node.any_side, node.dq_other && dq_operands_, node.self_other};
    const auto n_run = [&](size_t from) { // ops of the run: all but the operands' Dequantizes
        int n = 0;
        for (size_t i = from; i < net.nodes.size(); i++)
            n += (qdqi_schema_find(net.nodes[i].kind.c_str())->flags & QDQI_F_DEQUANTIZE) == 0;
        return n;
    };
    const size_t first = net.nodes.size();
    for (int n = 0; n < reps_[index]; n++) {
        bool done = false;
        if (node.rep_max > 0 && n_run(first) + 2 > node.rep_max) break;
        for (int attempt = 0; attempt < 25 && !done; attempt++) {
            const Net::Mark mark = net.Now();
            const std::string kind = rng.Pick(kinds);
            if (!casts_ && (kind == "TypeCast" || kind == "Cast")) continue;
            Id next = kMissing;
            if (Contains(kinds, "Quantize"))
                next = CloseWithQuantize(*v, kinds);
            else if (Contains(kinds, "ReLU"))
                next = ApplyChain(kind, *v, sides);
            else if (kind == "TypeCast" || kind == "Cast")
                next = ApplyCast(kind, *v);
            else if (kind == "MaxPool") { // only where the Quantize follows at once
                if (index + 1 >= present_.size() || !present_[index + 1]) continue;
                next = ApplyMaxPool(*v);
                if (next != kMissing) n = reps_[index];
            } else if (Contains(kinds, "StaticReshape"))
                next = ApplyMove(kind, *v);
            else if (Contains(kinds, "MatMul"))
                next = ApplyProduct(*v, sides);
            else {
                failure = "generator: no builder for a downstream node of kinds " + (kinds.empty() ? "none" : kinds[0]);
                return false;
            }
            const bool is_q = Contains(kinds, "Quantize");
            if (Contains(kinds, "Cast") && !qdqi_dtype_is_float(net.At(*v).dtype)) { // sums of integers
                net.Rollback(mark);
                next = ApplyChain("Cast", *v, sides);
            }
            done = next != kMissing && (is_q || IsTame(next) || (n < node.rep_min && attempt > 20));
            if (done)
                *v = next;
            else
                net.Rollback(mark);
        }
        if (!done && n < (node.rep_max == 0 ? 1 : node.rep_min)) {
            failure = "node " + std::to_string(index) + " took nothing: " + net.error;
            return false;
        }
        if (!done) break; // a shorter run
    }
    return true;
}

bool Generator::Make() {
    const uint32_t n = pattern_->n_nodes;
    present_.assign(n, true);
    reps_.assign(n, 1);
    size_t anchor = n;
    for (size_t i = 0; i < n; i++)
        if (pattern_->nodes[i].anchor) anchor = i;
    if (anchor == n) {
        failure = "generator: the entry has no anchor";
        return false;
    }
    bool others = anchor > 0;
    for (size_t i = 0; i < n; i++) {
        const qdqi_pnode &node = pattern_->nodes[i];
        if (node.optional) present_[i] = rng.Chance(i > anchor ? 0.75 : 0.45);
        if (node.rep_max > 0) {
            const int64_t usual = rng.Chance(0.06) ? node.rep_max : std::min<int64_t>(node.rep_max, rng.Int(0, 4));
            reps_[i] = static_cast<int>(std::max<int64_t>(node.rep_min, usual));
        }
        if (i > anchor) others = others || (present_[i] && reps_[i] > 0);
    }
    if (!others) { // one op is no match
        const size_t last = n - 1;
        present_[last] = true;
        reps_[last] = std::max(reps_[last], 1);
    }
    for (size_t i = 0; i < n; i++)
        if (pattern_->nodes[i].front) return MakeDynamic(pattern_->nodes[anchor].kind == QDQI_OP_CONVINTEGER);
    for (size_t i = 0; i < n; i++)
        if (pattern_->nodes[i].open) return MakeSpelled(pattern_->nodes[anchor].kind);
    const qdqi_pnode &node = pattern_->nodes[anchor];
    size_t n_needed = 0;
    for (size_t p = 0; p < node.n_in; p++)
        if (node.in[p] >= 0 && IsRequired(static_cast<size_t>(node.in[p]))) n_needed = p + 1;
    const std::vector<std::string> kinds = KindsOf(node);
    interpolates = Contains(kinds, "Interpolate") && !HasGuard(node, "nearest");
    for (const std::string &kind : kinds)
        if (!IsAnchorKind(kind) && !Contains(kinds, "Quantize")) {
            failure = "generator: no builder for the anchor kind " + kind;
            return false;
        }
    const Port in = [&](size_t port, const Want &asked, bool optional) -> Id {
        Want want = asked;
        want.is_variable = port == 0;
        const int from = node.variadic ? node.in[0] : port < node.n_in ? node.in[port] : -1;
        if (from >= 0 && HasNode(static_cast<size_t>(from))) return Upstream(static_cast<size_t>(from), want);
        return optional && rng.Chance(0.5) ? kMissing : FloatLeaf(want);
    };
    std::string why;
    const qdq_dtype type = fp;
    for (int attempt = 0; attempt < 200; attempt++) {
        net.Rollback({0, 0});
        failure.clear();
        fp = attempt < 60 ? type : QDQ_DTYPE_F32; // some types and sizes are hard to please
        zero_sizes = zero_sizes && attempt < 60;
        root_kind = rng.Pick(kinds);
        // only port 1 is asked for: where the sides may be swapped, an entry that asks for port 0 is as good
        const bool second = n_needed == 2 && node.in[0] < 0;
        if (second && (qdqi_schema_find(root_kind.c_str())->flags & QDQI_F_COMMUTATIVE) && rng.Chance(0.8)) continue;
        std::vector<Id> made;
        if (Contains(kinds, "Quantize")) { // dq - q
            const Id x = in(0, Want{{Dim(9), Dim(33)}}, false);
            const Id q = x == kMissing ? kMissing : CloseWithQuantize(x, {root_kind});
            if (q != kMissing) made = {q};
        } else {
            made = MakeAnchor(root_kind, n_needed, node.variadic, in);
        }
        if (failure.rfind("generator:", 0) == 0) return false;
        why = net.error;
        if (made.empty() || made[0] == kMissing) continue;
        const bool integers = !qdqi_dtype_is_float(net.At(made[0]).dtype);
        tame_limit = integers ? 3e6 : 3e4;
        if (!Contains(kinds, "Quantize") && !IsTame(made[0])) continue;
        Id v = made[0];
        bool ok = true;
        for (size_t i = anchor + 1; i < n && ok; i++)
            ok = Downstream(i, &v);
        if (failure.rfind("generator: no", 0) == 0) return false;
        if (!ok || net.nodes.size() < 2) continue;
        outputs = {v};
        if (v == made[0]) outputs = made; // statistics
        // lay some inputs out otherwise
        for (Value &value : net.values) {
            if (value.producer != -1 || value.is_constant || value.dims.size() < 3 || !rng.Chance(0.25)) continue;
            if (qdq_dtype_bits(value.dtype) < 8 || Count(value.dims) == 0) continue;
            const size_t rank = value.dims.size();
            value.strides.assign(rank, 1);
            int64_t stride = value.dims[1];
            for (size_t d = rank; d-- > 2;) { // channels last
                value.strides[d] = stride;
                stride *= value.dims[d];
            }
            value.strides[0] = stride;
        }
        return true;
    }
    if (failure.empty()) failure = "nothing fits: " + why;
    return false;
}

} // namespace qdq_test
