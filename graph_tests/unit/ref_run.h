// One op through the reference executor: tensors of any data type and strides, and their values as doubles.
#ifndef QDQ_TEST_REF_RUN_H
#define QDQ_TEST_REF_RUN_H

#include "base/dtype.h"
#include "ir/graph.h"
#include "ir/op_builder.h"
#include "ref/ref.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ref_run {

using Dims = std::vector<int64_t>;
using Values = std::vector<double>;

constexpr float kInf = HUGE_VALF;
const float kNan = std::nanf("");

inline qdq_tensor_desc dense_desc(uint64_t id, qdq_dtype dtype, const Dims &dims) {
    qdq_tensor_desc desc = {};
    desc.id = id;
    desc.dtype = dtype;
    desc.ndims = (int32_t)dims.size();
    for (size_t d = 0; d < dims.size(); d++)
        desc.dims[d] = dims[d];
    desc.property = QDQ_PROPERTY_VARIABLE;
    qdqi_set_dense(&desc);
    return desc;
}

// A tensor. Bytes outside the elements (gaps of strides) hold 0xa5 and are checked by `gaps_intact`.
struct Tensor {
    qdq_tensor_desc desc = {};
    std::vector<unsigned char> bytes;
    bool constant = false;
    bool missing = false;

    Tensor() = default;
    Tensor(qdq_dtype dtype, const Dims &dims, const Values &values = {}, const Dims &strides = {}) {
        desc = dense_desc(0, dtype, dims);
        for (size_t d = 0; d < strides.size(); d++)
            desc.strides[d] = strides[d];
        int64_t span = 0;
        size_t n_bytes = 0;
        EXPECT_TRUE(qdqi_span_elems(&desc, &span));
        EXPECT_TRUE(qdqi_dtype_bytes(dtype, span, &n_bytes));
        bytes.assign(n_bytes, 0xa5);
        for (size_t i = 0; i < values.size(); i++)
            set((int64_t)i, values[i]);
    }
    int64_t n() const { return qdqi_n_elems(&desc); }
    // Where row-major element i lies.
    int64_t at(int64_t i) const {
        int64_t off = 0;
        for (int32_t d = desc.ndims - 1; d >= 0; d--) {
            off += i % desc.dims[d] * desc.strides[d];
            i /= desc.dims[d];
        }
        return off;
    }
    void set(int64_t i, double v) { qdqi_store_f64(bytes.data(), desc.dtype, at(i), v); }
    double get(int64_t i) const { return qdqi_load_f64(bytes.data(), desc.dtype, at(i)); }
    Values values() const {
        Values v;
        for (int64_t i = 0; i < n(); i++)
            v.push_back(get(i));
        return v;
    }
    Dims dims() const { return Dims(desc.dims, desc.dims + desc.ndims); }
};

inline Tensor constant(Tensor t) {
    t.constant = true;
    return t;
}
inline Tensor none() {
    Tensor t;
    t.missing = true;
    return t;
}
inline Tensor f32(const Dims &dims, const Values &values) {
    return Tensor(QDQ_DTYPE_F32, dims, values);
}
inline Tensor s64(const Dims &dims, const Values &values) {
    return constant(Tensor(QDQ_DTYPE_S64, dims, values));
}

struct Attr {
    std::string name;
    qdqi_attr_type type;
    double scalar;
    std::string str;
    std::vector<float> f32s;
    std::vector<int64_t> s64s;
};
inline Attr F(std::string name, double v) {
    return {std::move(name), QDQI_ATTR_F32, v, "", {}, {}};
}
inline Attr Fs(std::string name, std::vector<float> v) {
    return {std::move(name), QDQI_ATTR_F32S, 0, "", std::move(v), {}};
}
inline Attr I(std::string name, int64_t v) {
    return {std::move(name), QDQI_ATTR_S64, (double)v, "", {}, {}};
}
inline Attr Is(std::string name, std::vector<int64_t> v) {
    return {std::move(name), QDQI_ATTR_S64S, 0, "", {}, std::move(v)};
}
inline Attr B(std::string name, bool v) {
    return {std::move(name), QDQI_ATTR_BOOL, v ? 1.0 : 0.0, "", {}, {}};
}
inline Attr S(std::string name, std::string v) {
    return {std::move(name), QDQI_ATTR_STR, 0, std::move(v), {}, {}};
}

inline qdqi_attr value_of(const Attr &a) {
    switch (a.type) {
    case QDQI_ATTR_F32: return qdqi_attr_of_f32((float)a.scalar);
    case QDQI_ATTR_F32S: return qdqi_attr_of_f32s(a.f32s.data(), a.f32s.size());
    case QDQI_ATTR_S64: return qdqi_attr_of_s64((int64_t)a.scalar);
    case QDQI_ATTR_S64S: return qdqi_attr_of_s64s(a.s64s.data(), a.s64s.size());
    case QDQI_ATTR_BOOL: return qdqi_attr_of_bool(a.scalar != 0);
    case QDQI_ATTR_STR: return qdqi_attr_of_str(a.str.c_str());
    }
    return {};
}

// Outputs are found by inference when their data type is UNDEF or dims are unknown; else they are as given.
struct Result {
    qdq_status status = QDQ_OK;
    std::string text;
    std::vector<Tensor> out;
};

inline void add_op(qdq_graph *graph, uint64_t id, const char *kind, const std::vector<Attr> &attrs,
                   const std::vector<const qdq_tensor_desc *> &in, const std::vector<const qdq_tensor_desc *> &out,
                   qdq_status *status, qdq_error *err) {
    qdq_op *op = nullptr;
    ASSERT_EQ(qdqi_builder_create(id, kind, "t", &op, err), QDQ_OK);
    for (const Attr &a : attrs)
        ASSERT_EQ(qdqi_builder_set_attr(op, a.name.c_str(), value_of(a), err), QDQ_OK);
    for (const qdq_tensor_desc *desc : in)
        ASSERT_EQ(qdqi_builder_add_port(&op->in, desc, err), QDQ_OK);
    for (const qdq_tensor_desc *desc : out)
        ASSERT_EQ(qdqi_builder_add_port(&op->out, desc, err), QDQ_OK);
    *status = qdqi_graph_add_op(graph, op, err);
    qdqi_builder_destroy(op);
}

// Run one op. `fold`: all-constant ops are folded by finalize, else computed by the executor.
inline Result run(const char *kind, const std::vector<Attr> &attrs, std::vector<Tensor> in, std::vector<Tensor> out,
                  bool fold = false) {
    Result r;
    qdq_error err = {};
    qdq_graph *graph = nullptr;
    EXPECT_EQ(qdqi_graph_create(&graph, &err), QDQ_OK);
    std::vector<const qdq_tensor_desc *> in_descs, out_descs;
    std::vector<uint64_t> ids;
    for (size_t i = 0; i < in.size(); i++) {
        in[i].desc.id = 1 + i;
        in_descs.push_back(in[i].missing ? nullptr : &in[i].desc);
    }
    for (size_t i = 0; i < out.size(); i++) {
        out[i].desc.id = 100 + i;
        out_descs.push_back(&out[i].desc);
        ids.push_back(100 + i);
    }
    add_op(graph, 7, kind, attrs, in_descs, out_descs, &r.status, &err);
    for (size_t i = 0; i < in.size() && r.status == QDQ_OK; i++)
        if (in[i].constant)
            r.status = qdqi_graph_set_constant(graph, &in[i].desc, in[i].bytes.data(), in[i].bytes.size(),
                                               QDQ_DATA_COPY, &err);
    if (r.status == QDQ_OK && !ids.empty()) r.status = qdqi_graph_set_ports(graph, ids.data(), ids.size(), true, &err);
    if (r.status == QDQ_OK) r.status = qdqi_graph_finalize(graph, fold ? qdqi_ref_fold : nullptr, &err);
    std::vector<qdq_tensor> inputs, outputs;
    for (size_t i = 0; i < in.size() && r.status == QDQ_OK; i++)
        if (!in[i].constant && !in[i].missing) inputs.push_back({in[i].desc, in[i].bytes.data()});
    for (size_t i = 0; i < out.size() && r.status == QDQ_OK; i++) {
        const qdq_tensor_desc &found = graph->values[qdqi_graph_value(graph, ids[i])].desc;
        const bool given = out[i].desc.dtype != QDQ_DTYPE_UNDEF && qdqi_dims_known(&out[i].desc);
        if (!given) {
            out[i] = Tensor(found.dtype, Dims(found.dims, found.dims + found.ndims));
            out[i].desc.id = ids[i];
        }
        outputs.push_back({out[i].desc, out[i].bytes.data()});
    }
    if (r.status == QDQ_OK)
        r.status = qdqi_ref_graph(graph, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &err);
    qdqi_graph_release(graph);
    r.text = err.text;
    r.out = std::move(out);
    return r;
}

// An output to be inferred, of a given data type or of the rule's.
inline Tensor infer(qdq_dtype dtype = QDQ_DTYPE_UNDEF) {
    Tensor t;
    t.desc.dtype = dtype;
    t.desc.ndims = QDQ_NDIMS_UNKNOWN;
    t.desc.layout = QDQ_LAYOUT_ANY;
    return t;
}

inline void expect_values(const Result &r, const Values &expected, double tolerance = 0.0, size_t port = 0) {
    ASSERT_EQ(r.status, QDQ_OK) << r.text;
    const Values got = r.out[port].values();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(expected[i])) {
            EXPECT_TRUE(std::isnan(got[i])) << "element " << i << ": " << got[i];
        } else if (std::isinf(expected[i])) {
            EXPECT_EQ(got[i], expected[i]) << "element " << i;
        } else {
            EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << "element " << i;
        }
    }
}

// What f32 makes of decimal text, so that vectors can be written as in the specs.
inline Values as_f32(const Values &v) {
    Values out;
    for (double x : v)
        out.push_back((double)(float)x);
    return out;
}

struct Random {
    uint64_t state = 0x9e3779b97f4a7c15u;
    explicit Random(uint64_t seed = 0) { state += seed * 0xbf58476d1ce4e5b9u; }
    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 33);
    }
    int64_t range(int64_t lo, int64_t hi) { return lo + (int64_t)(next() % (uint64_t)(hi - lo + 1)); }
    // Multiples of 1/16 in [-4, 4].
    double value() { return (double)range(-64, 64) / 16.0; }
    Values values(int64_t n) {
        Values v;
        for (int64_t i = 0; i < n; i++)
            v.push_back(value());
        return v;
    }
};

} // namespace ref_run
#endif
