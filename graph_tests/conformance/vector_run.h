// Conformance vectors through the public API: one op with its tensors, computed four ways (reference or session, parameters as
// constants or as graph inputs), compared to the bit.
//
// A file is {"spec": …, "vectors": [vector…]}; a vector is an object:
//
//     name, origin   what to call it, and where its numbers come from
//     op, attrs      an op kind; 3 is an s64, 3.0 an f32, lists alike, true/false, "text"
//     in, out        tensors [dtype, dims, values] or [dtype, dims, values, strides]; null: an input left out.
//                    Values are numbers, "nan", "inf", "-inf", or one text "hex:10c708" with the bytes of the tensor
//     tie            true: a value lies on a rounding tie of an op that computes, so that a session may be one step off
//                    (the numeric contract of doc/quantization.md)
//     error          in place of `out`: [status, text…]; one of the steps up to the run must fail with this status, and its
//                    message must hold every text. `out` may still name data types: {"out_types": ["u8"]}
#ifndef QDQ_TEST_VECTOR_RUN_H
#define QDQ_TEST_VECTOR_RUN_H

#include "base/dtype.h"
#include "qdq/qdq.h"

#include <gtest/gtest.h>
#include <jansson.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace vectors {

struct Tensor {
    qdq_tensor_desc desc = {};
    std::vector<unsigned char> bytes;
    bool missing = false;

    // Where row-major element i lies.
    int64_t at(int64_t i) const {
        int64_t off = 0;
        for (int32_t d = desc.ndims - 1; d >= 0; d--) {
            off += i % desc.dims[d] * desc.strides[d];
            i /= desc.dims[d];
        }
        return off;
    }
    int64_t n() const {
        int64_t n = 0;
        EXPECT_EQ(qdq_tensor_desc_n_elems(&desc, &n, nullptr), QDQ_OK);
        return n;
    }
};

inline Tensor make_tensor(uint64_t id, qdq_dtype dtype, const std::vector<int64_t> &dims,
                          const std::vector<int64_t> &strides = {}) {
    Tensor t;
    qdq_error err = {};
    const int32_t ndims = (int32_t)dims.size();
    const qdq_status st = strides.empty() ? qdq_tensor_desc_init(id, dtype, ndims, dims.data(), QDQ_LAYOUT_STRIDED,
                                                                 QDQ_PROPERTY_VARIABLE, &t.desc, &err)
                                          : qdq_tensor_desc_init_strided(id, dtype, ndims, dims.data(), strides.data(),
                                                                         QDQ_PROPERTY_VARIABLE, &t.desc, &err);
    EXPECT_EQ(st, QDQ_OK) << err.text;
    size_t n_bytes = 0;
    EXPECT_EQ(qdq_tensor_desc_size_bytes(&t.desc, &n_bytes, &err), QDQ_OK) << err.text;
    t.bytes.assign(n_bytes, 0);
    return t;
}

inline double number_of(const json_t *v) {
    if (!json_is_string(v)) return json_number_value(v);
    const std::string text = json_string_value(v);
    if (text == "nan") return std::nan("");
    if (text == "inf") return HUGE_VAL;
    EXPECT_EQ(text, "-inf") << "not a number";
    return -HUGE_VAL;
}

inline std::vector<int64_t> ints_of(const json_t *list) {
    std::vector<int64_t> out;
    for (size_t i = 0; i < json_array_size(list); i++)
        out.push_back(json_integer_value(json_array_get(list, i)));
    return out;
}

inline Tensor tensor_of(uint64_t id, const json_t *row) {
    if (json_is_null(row)) {
        Tensor t;
        t.missing = true;
        return t;
    }
    const qdq_dtype dtype = qdq_dtype_from_name(json_string_value(json_array_get(row, 0)));
    EXPECT_NE(dtype, QDQ_DTYPE_UNDEF);
    Tensor t = make_tensor(id, dtype, ints_of(json_array_get(row, 1)), ints_of(json_array_get(row, 3)));
    const json_t *values = json_array_get(row, 2);
    if (json_is_string(values)) {
        const std::string hex = json_string_value(values);
        EXPECT_EQ(hex.size(), 4 + 2 * t.bytes.size()) << hex;
        for (size_t i = 0; i < t.bytes.size(); i++)
            t.bytes[i] = (unsigned char)std::stoi(hex.substr(4 + 2 * i, 2), nullptr, 16);
        return t;
    }
    EXPECT_EQ((int64_t)json_array_size(values), t.n()) << "values of a tensor";
    for (size_t i = 0; i < json_array_size(values); i++) {
        const double v = number_of(json_array_get(values, i));
        if (dtype == QDQ_DTYPE_S32 && v == std::floor(v))
            qdqi_store_i64(t.bytes.data(), dtype, t.at((int64_t)i), (int64_t)v);
        else
            qdqi_store_f64(t.bytes.data(), dtype, t.at((int64_t)i), v);
    }
    return t;
}

struct Vector {
    std::string name, op;
    const json_t *attrs = nullptr;
    std::vector<Tensor> in, out;
    std::vector<qdq_dtype> out_types;
    std::vector<std::string> error; // status, texts
    bool tie = false;
};

inline Vector vector_of(const json_t *row) {
    Vector v;
    v.name = json_string_value(json_object_get(row, "name"));
    v.op = json_string_value(json_object_get(row, "op"));
    v.attrs = json_object_get(row, "attrs");
    v.tie = json_is_true(json_object_get(row, "tie"));
    const json_t *in = json_object_get(row, "in"), *out = json_object_get(row, "out");
    const json_t *error = json_object_get(row, "error"), *types = json_object_get(row, "out_types");
    for (size_t i = 0; i < json_array_size(in); i++)
        v.in.push_back(tensor_of(1 + i, json_array_get(in, i)));
    for (size_t i = 0; i < json_array_size(out); i++)
        v.out.push_back(tensor_of(100 + i, json_array_get(out, i)));
    for (const Tensor &t : v.out)
        v.out_types.push_back(t.desc.dtype);
    for (size_t i = 0; i < json_array_size(types); i++)
        v.out_types.push_back(qdq_dtype_from_name(json_string_value(json_array_get(types, i))));
    for (size_t i = 0; i < json_array_size(error); i++)
        v.error.push_back(json_string_value(json_array_get(error, i)));
    return v;
}

inline qdq_status set_attr(qdq_op *op, const char *name, const json_t *v, qdq_error *err) {
    if (json_is_boolean(v)) return qdq_op_set_attr_bool(op, name, json_is_true(v), err);
    if (json_is_string(v)) return qdq_op_set_attr_str(op, name, json_string_value(v), err);
    if (json_is_integer(v)) return qdq_op_set_attr_s64(op, name, json_integer_value(v), err);
    if (json_is_real(v)) return qdq_op_set_attr_f32(op, name, (float)json_real_value(v), err);
    bool ints = true;
    std::vector<float> f32s;
    for (size_t i = 0; i < json_array_size(v); i++) {
        ints = ints && json_is_integer(json_array_get(v, i));
        f32s.push_back((float)number_of(json_array_get(v, i)));
    }
    const std::vector<int64_t> s64s = ints_of(v);
    return ints ? qdq_op_set_attr_s64s(op, name, s64s.data(), s64s.size(), err)
                : qdq_op_set_attr_f32s(op, name, f32s.data(), f32s.size(), err);
}

enum class Provider { kReference, kSession };

struct Result {
    qdq_status status = QDQ_OK;
    qdq_error err = {};
    std::vector<Tensor> out;
    std::string impl; // of the session's partitions
};

// The op, and its parameters (all inputs but the first) when they are constants.
inline qdq_status build(const Vector &v, bool constants, qdq_graph *graph, qdq_error *err) {
    qdq_op *op = nullptr;
    qdq_status st = qdq_op_create(7, v.op.c_str(), v.name.c_str(), &op, err);
    const char *name = nullptr;
    json_t *value = nullptr;
    json_object_foreach(const_cast<json_t *>(v.attrs), name, value) {
        if (st == QDQ_OK) st = set_attr(op, name, value, err);
    }
    for (size_t i = 0; i < v.in.size() && st == QDQ_OK; i++)
        st = qdq_op_add_input(op, v.in[i].missing ? nullptr : &v.in[i].desc, err);
    for (size_t i = 0; i < v.out_types.size() && st == QDQ_OK; i++) {
        qdq_tensor_desc desc = {};
        if (i < v.out.size())
            desc = v.out[i].desc;
        else
            st = qdq_tensor_desc_init(100 + i, v.out_types[i], QDQ_NDIMS_UNKNOWN, nullptr, QDQ_LAYOUT_ANY,
                                      QDQ_PROPERTY_VARIABLE, &desc, err);
        if (st == QDQ_OK) st = qdq_op_add_output(op, &desc, err);
    }
    if (st == QDQ_OK) st = qdq_graph_add_op(graph, op, err);
    qdq_op_destroy(&op);
    for (size_t i = 1; constants && i < v.in.size() && st == QDQ_OK; i++)
        if (!v.in[i].missing)
            st = qdq_graph_set_constant(graph, &v.in[i].desc, v.in[i].bytes.data(), v.in[i].bytes.size(), QDQ_DATA_COPY,
                                        err);
    if (st == QDQ_OK) st = qdq_graph_finalize(graph, err);
    return st;
}

inline void run_session(const qdq_graph *graph, qdq_engine *engine, const std::vector<const void *> &in,
                        const std::vector<void *> &out, Result *r) {
    qdq_session *session = nullptr;
    r->status = qdq_session_create(graph, engine, nullptr, &session, &r->err);
    for (size_t i = 0; r->status == QDQ_OK && i < qdq_session_n_parts(session); i++) {
        qdq_session_part_info info = {};
        r->status = qdq_session_part(session, i, &info, &r->err);
        r->impl += info.impl == nullptr ? "" : info.impl;
    }
    if (r->status == QDQ_OK)
        r->status = qdq_session_run(session, in.data(), in.size(), out.data(), out.size(), &r->err);
    qdq_session_destroy(&session);
}

inline Result run(const Vector &v, bool constants, Provider provider, qdq_engine *engine) {
    Result r;
    qdq_graph *graph = nullptr;
    r.status = qdq_graph_create(&graph, &r.err);
    if (r.status == QDQ_OK) r.status = build(v, constants, graph, &r.err);
    std::vector<qdq_tensor> in, out;
    for (size_t i = 0; i < v.in.size(); i++)
        if (!v.in[i].missing && (i == 0 || !constants))
            in.push_back({v.in[i].desc, const_cast<unsigned char *>(v.in[i].bytes.data())});
    for (size_t i = 0; r.status == QDQ_OK && i < v.out_types.size(); i++) {
        qdq_tensor_desc desc = {};
        if (i < v.out.size())
            desc = v.out[i].desc;
        else
            r.status = qdq_graph_tensor_desc(graph, 100 + i, &desc, &r.err);
        if (r.status == QDQ_OK && desc.ndims < 0) r.status = QDQ_E_BAD_STATE;
        if (r.status != QDQ_OK) break;
        const std::vector<int64_t> dims(desc.dims, desc.dims + desc.ndims);
        const bool strided = i < v.out.size();
        r.out.push_back(make_tensor(100 + i, desc.dtype, dims,
                                    strided ? std::vector<int64_t>(desc.strides, desc.strides + desc.ndims)
                                            : std::vector<int64_t>{}));
    }
    for (Tensor &t : r.out)
        out.push_back({t.desc, t.bytes.data()});
    if (r.status == QDQ_OK && provider == Provider::kReference)
        r.status = qdq_graph_run_reference(graph, in.data(), in.size(), out.data(), out.size(), &r.err);
    if (r.status == QDQ_OK && provider == Provider::kSession) {
        std::vector<const void *> in_data;
        std::vector<void *> out_data;
        for (const qdq_tensor &t : in)
            in_data.push_back(t.data);
        for (const qdq_tensor &t : out)
            out_data.push_back(t.data);
        run_session(graph, engine, in_data, out_data, &r);
    }
    qdq_graph_destroy(&graph);
    return r;
}

// "" when equal to the bit (a NaN equals a NaN), or within `step`; else what differs first.
inline std::string difference(const Tensor &expected, const Tensor &got, double step) {
    if (expected.desc.dtype != got.desc.dtype || expected.n() != got.n()) return "data type or size";
    const size_t bits = qdq_dtype_bits(expected.desc.dtype);
    for (int64_t i = 0; i < expected.n(); i++) {
        const int64_t a = expected.at(i), b = got.at(i);
        const double x = qdqi_load_f64(expected.bytes.data(), expected.desc.dtype, a);
        const double y = qdqi_load_f64(got.bytes.data(), got.desc.dtype, b);
        const size_t width = bits / 8;
        const bool same = bits < 8 ? x == y
                                   : std::memcmp(expected.bytes.data() + (size_t)a * width,
                                                 got.bytes.data() + (size_t)b * width, width) == 0;
        if (same || (std::isnan(x) && std::isnan(y)) || (step > 0 && std::fabs(x - y) <= step)) continue;
        char text[160];
        std::snprintf(text, sizeof text, "element %lld: found %.9g, expected %.9g", (long long)i, y, x);
        return text;
    }
    // the spare nibble of an odd number of elements is zero
    if (bits < 8 && expected.bytes != got.bytes) return "bytes of the packing";
    return "";
}

struct Count {
    int run = 0, passed = 0;
};

// Run one vector in all four ways; "" when all is as it should be.
inline std::string check(const Vector &v, qdq_engine *engine) {
    for (bool constants : {true, false}) {
        if (!constants && v.in.size() == 1) continue;
        for (Provider provider : {Provider::kReference, Provider::kSession}) {
            const std::string how = std::string(provider == Provider::kReference ? "reference" : "session") +
                                    (constants ? ", constant parameters: " : ", parameters as inputs: ");
            const Result r = run(v, constants, provider, engine);
            if (!v.error.empty()) {
                if (qdq_status_name(r.status) != v.error[0])
                    return how + "found " + qdq_status_name(r.status) + " " + r.err.text + ", expected " + v.error[0];
                for (size_t i = 1; i < v.error.size(); i++)
                    if (std::string(r.err.text).find(v.error[i]) == std::string::npos)
                        return how + "no \"" + v.error[i] + "\" in: " + r.err.text;
                continue;
            }
            if (r.status != QDQ_OK) return how + qdq_status_name(r.status) + " " + r.err.text;
            for (size_t i = 0; i < v.out.size(); i++) {
                const std::string what =
                    difference(v.out[i], r.out[i], v.tie && provider == Provider::kSession ? 1.0 : 0.0);
                if (!what.empty()) return how + "output " + std::to_string(i) + ": " + what + " " + r.impl;
            }
        }
    }
    return "";
}

} // namespace vectors

#endif
