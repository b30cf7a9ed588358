// Graphs made from an entry of the pattern catalogue: its nodes give the structure, the schema table the kinds, and the builders
// of generator_*.cc the attributes, shapes and contents. A kind or a node that no builder knows is a failure, so that an entry
// without coverage cannot be added.
#ifndef QDQ_TEST_FUSION_GENERATOR_H
#define QDQ_TEST_FUSION_GENERATOR_H

#include "fusion/net.h"
#include "patterns/pattern.h"

#include <functional>

namespace qdq_test {

// What the user of a value asks of it.
struct Want {
    Dims dims;
    float amplitude = 2.0f;
    bool positive = false;   // a variance
    bool is_weights = false; // four-bit types are legal
    bool is_bias = false;    // s32 is likely
    bool is_constant = false;
    bool is_variable = false; // what is computed from constants alone is folded
};

// One quantization, independent of the op kind that spells it.
struct QParams {
    enum Granularity { kTensor, kAxis, kGroup } granularity = kTensor;
    int64_t axis = 0;
    Dims group; // kGroup: per dim
    std::vector<float> scales;
    std::vector<int64_t> zps; // empty: none; one or as many as scales
};

class Generator {
  public:
    Generator(uint64_t seed, size_t entry);
    // False when no graph came out: `failure` says why.
    bool Make();

    Net net;
    std::vector<Id> outputs;
    std::string failure;
    std::string root_kind; // of the anchor

    // ---- for the builders ----
    Random rng;
    qdq_dtype fp = QDQ_DTYPE_F32; // the float type of the graph
    bool zero_sizes = false;
    bool interpolates = false; // resizing may be linear
    // The last leaf of bytes with one scale: a Quantize may well have the same.
    struct Seen {
        qdq_dtype dtype = QDQ_DTYPE_UNDEF;
        QParams q;
    } seen;
    double tame_limit = 3e4;

    int64_t Dim(int64_t max);
    Id FloatLeaf(const Want &want);
    Id Index(const std::vector<int64_t> &values); // a constant s64 (or s32) vector

    // ---- quantization (generator_quant.cc) ----
    QParams ChooseParams(const Dims &dims, qdq_dtype dtype, float amplitude, bool positive, bool allow_group);
    // An integer leaf and its Dequantize.
    Id DequantizedLeaf(const Want &want, const std::vector<std::string> &kinds, bool int_weights, bool int_src);
    // Float -> Quantize -> Dequantize, the Quantize of one of `q_kinds`.
    Id DequantizedFloat(Id floats, const std::vector<std::string> &q_kinds, const std::vector<std::string> &dq_kinds);
    Id EmitDequantize(const std::string &kind, Id ints, const QParams &q);
    Id EmitQuantize(const std::string &kind, Id floats, qdq_dtype dtype, const QParams &q);
    Id EmitQuantizeV2(Id floats);
    Id CloseWithQuantize(Id floats, const std::vector<std::string> &kinds);

    // ---- one op (generator_ops.cc) ----
    // Value for a port of the anchor; kMissing when the port is left out.
    using Port = std::function<Id(size_t port, const Want &want, bool optional)>;
    bool IsAnchorKind(const std::string &kind) const;
    std::vector<Id> MakeAnchor(const std::string &kind, size_t n_ports_needed, bool variadic, const Port &in);
    // `v` through one more op of the kind. kMissing when it does not fit.
    struct Sides {
        bool any_side, dq_other, self_other;
    };
    Id ApplyChain(const std::string &kind, Id v, const Sides &sides);
    Id ApplyCast(const std::string &kind, Id v);
    Id ApplyMove(const std::string &kind, Id v);
    Id ApplyMaxPool(Id v);
    // A LayerNorm or RMSNorm over the last dims as small ops, a share of them with a Quantize and a Dequantize behind; gamma and
    // beta (generator_spelled.cc).
    Id SpelledNorm(Id x, bool centred, double pair_share);
    Id SpelledAffine(Id v, double pair_share);
    // A softmax over one axis as small ops, with casts and Clamps behind some, a share of which are in the way.
    Id SpelledSoftmax(Id x);
    // The op of the kind that makes dims `want` out of what `make` makes.
    Id MakeRelayout(const std::string &kind, const Want &want, const std::function<Id(const Want &)> &make);

    bool IsTame(Id id);
    bool IsNarrow() const; // some value is bf16 or f16

  private:
    std::vector<std::string> KindsOf(const qdqi_pnode &node) const;
    Id Upstream(size_t node, const Want &want);
    Id UpstreamProduct(const qdqi_pnode &node, const Want &want);
    Id ApplyPointwise(const std::vector<std::string> &kinds, Id v, const Sides &sides);
    Id ApplyProduct(Id v, const Sides &sides);
    bool Downstream(size_t node, Id *v);
    bool MakeSpelled(qdqi_kind anchor); // generator_spelled.cc
    bool MakeDynamic(bool conv);        // generator_dynamic.cc
    bool HasNode(size_t node) const;    // present, itself or what stands in for it
    bool IsRequired(size_t node) const; // in every match
    bool HasGuard(const qdqi_pnode &node, const char *name) const;

    const qdqi_pattern *pattern_;
    bool dq_operands_, casts_;
    std::vector<bool> present_;
    std::vector<int> reps_;
};

} // namespace qdq_test

#endif
