// A graph under construction whose values are known: every op that is added is computed at once by the reference executor, as
// a graph of its own. So the net is the node-by-node answer, and a graph built from it is what gets fused.
//
// Beside each float value the net carries two shadows: the same graph with every float result off by a rounding error or
// so. How far the shadows stray says how much of the last digits survives in a chain (sums that cancel, functions near a pole
// or a jump), so that the comparison can be as strict as the arithmetic allows and no stricter.
#ifndef QDQ_TEST_FUSION_NET_H
#define QDQ_TEST_FUSION_NET_H

#include "base/dtype.h"
#include "ir/graph.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace qdq_test {

// splitmix64: the same on every machine.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t Next();
    int64_t Int(int64_t low, int64_t high); // inclusive
    bool Chance(double p);
    float Float(float low, float high);
    template <class T> T Pick(const std::vector<T> &from) {
        return from[static_cast<size_t>(Int(0, static_cast<int64_t>(from.size()) - 1))];
    }

  private:
    uint64_t state_;
};

using Dims = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;
int64_t Count(const Dims &dims);

// Index of a value in the net; kMissing: an optional input left out.
using Id = int;
constexpr Id kMissing = -1;

struct Attr {
    std::string name;
    char type; // f F i I b s
    double f = 0;
    int64_t i = 0;
    std::vector<float> fs;
    std::vector<int64_t> is;
    std::string s;
};
Attr AttrF(const char *name, double value);
Attr AttrFs(const char *name, std::vector<float> values);
Attr AttrI(const char *name, int64_t value);
Attr AttrIs(const char *name, std::vector<int64_t> values);
Attr AttrB(const char *name, bool value);
Attr AttrS(const char *name, const char *value);

struct Value {
    qdq_dtype dtype = QDQ_DTYPE_UNDEF;
    Dims dims;
    bool is_constant = false;
    Bytes data;        // dense row-major
    Bytes shadow[2];   // float values only; empty: as data
    int producer = -1; // node, or -1 for a leaf
    Dims strides;      // how the caller lays out a variable leaf or a partition's result; empty: dense
};

struct Node {
    std::string kind;
    std::vector<Id> in, out;
    std::vector<Attr> attrs;
};

class Net {
  public:
    // ---- leaves ----
    Id Leaf(qdq_dtype dtype, const Dims &dims, Bytes data, bool is_constant);
    Id Floats(const Dims &dims, const std::vector<float> &values, bool is_constant, qdq_dtype dtype = QDQ_DTYPE_F32);
    Id Ints(qdq_dtype dtype, const Dims &dims, const std::vector<int64_t> &values, bool is_constant);

    // ---- ops: false, with the library's words in `error`, when it is refused; nothing is added then ----
    bool Op(const std::string &kind, const std::vector<Id> &in, const std::vector<Attr> &attrs,
            const std::vector<qdq_dtype> &out_dtypes, std::vector<Id> *out);
    // One output of inferred (UNDEF) or given data type; kMissing when refused.
    Id Op1(const std::string &kind, const std::vector<Id> &in, const std::vector<Attr> &attrs = {},
           qdq_dtype out = QDQ_DTYPE_UNDEF);
    // Forget everything added since a mark.
    struct Mark {
        size_t n_values, n_nodes;
    };
    Mark Now() const { return {values.size(), nodes.size()}; }
    void Rollback(const Mark &mark);

    const Value &At(Id id) const { return values[static_cast<size_t>(id)]; }
    float F32(Id id, int64_t i) const { return qdqi_load_f32(At(id).data.data(), At(id).dtype, i); }
    // Share of values that are no usable floats: infinite, NaN or beyond `limit`; and the largest usable |value|.
    double BadShare(Id id, double limit, double *largest_out) const;
    // All values are one (and there are several).
    bool IsFlat(Id id) const;
    // Some element has shadows so far away that it says nothing.
    bool IsIllConditioned(Id id) const;
    // Some op is a function that implementations approximate.
    bool HasTranscendental() const;

    // The whole as a graph, finalized. Tensor ids are value indices + 1, op ids node indices + 1.
    qdq_graph *Graph(const std::vector<Id> &outputs, std::string *error_out) const;
    std::string Text() const;

    std::vector<Value> values;
    std::vector<Node> nodes;
    std::string error;
    uint64_t noise = 1; // of the shadows
};

struct GraphDeleter {
    void operator()(qdq_graph *g) const { qdq_graph_destroy(&g); }
};
using GraphPtr = std::unique_ptr<qdq_graph, GraphDeleter>;

qdq_tensor_desc DenseDesc(uint64_t id, qdq_dtype dtype, const Dims &dims);
size_t BytesOf(qdq_dtype dtype, int64_t n);

// ---- fused against node by node ----

struct Outcome {
    std::string failure; // empty: right
    std::string pattern; // of the first partition
    std::string impl;    // how it was computed
    size_t n_partitions = 0;
    int64_t n_compared = 0, n_off_by_one = 0;
};

// Partition the net's graph, compile and execute every partition on its own, and hold the results against the net's values:
//   - integers of a Quantize: real value rounded, or a neighbour within the contract's distance of a tie;
//   - all other integers: equal;  - floats: 1e-5 relative, with what the shadows show.
// `any_layout`: outputs in the layout that the library likes.
Outcome RunFused(const Net &net, const std::vector<Id> &outputs, qdq_engine *engine, bool any_layout);
// The same through a session.
Outcome RunSession(const Net &net, const std::vector<Id> &outputs, qdq_engine *engine);

// Compare one result (dense) with the net's value; "" when right.
std::string Compare(const Net &net, Id id, const void *got, Outcome *outcome);

} // namespace qdq_test

#endif
