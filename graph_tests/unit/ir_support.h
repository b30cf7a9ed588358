/* Short ways to write small graphs in the tests of ir/. */
#ifndef QDQ_TESTS_IR_SUPPORT_H
#define QDQ_TESTS_IR_SUPPORT_H

#include "ir/desc.h"
#include "ir/graph.h"
#include "ir/op_builder.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ir {

using Dims = std::vector<int64_t>;

inline qdq_tensor_desc Tensor(uint64_t id, qdq_dtype dtype, Dims dims) {
    qdq_tensor_desc desc = {};
    desc.id = id;
    desc.dtype = dtype;
    desc.ndims = (int32_t)dims.size();
    for (size_t i = 0; i < dims.size() && i < QDQ_MAX_NDIMS; i++)
        desc.dims[i] = dims[i];
    bool known = true, fits = true;
    int64_t n = 1;
    for (int64_t d : dims) {
        known = known && d >= 0;
        fits = fits && !__builtin_mul_overflow(n, d > 0 ? d : 1, &n);
    }
    desc.layout = fits ? QDQ_LAYOUT_STRIDED : QDQ_LAYOUT_ANY;
    if (known && fits && dims.size() <= QDQ_MAX_NDIMS) qdqi_dense_strides(desc.ndims, desc.dims, desc.strides);
    return desc;
}

/* Shape to be inferred. */
inline qdq_tensor_desc Unknown(uint64_t id, qdq_dtype dtype = QDQ_DTYPE_UNDEF) {
    qdq_tensor_desc desc = {};
    desc.id = id;
    desc.dtype = dtype;
    desc.ndims = QDQ_NDIMS_UNKNOWN;
    desc.layout = QDQ_LAYOUT_STRIDED;
    return desc;
}

/* An op as a caller builds it. Allocation failures surface in status(). */
class Op {
  public:
    Op(uint64_t id, const char *kind, const char *name = "op") {
        st_ = qdqi_builder_create(id, kind, name, &op_, &err_);
    }
    ~Op() { qdqi_builder_destroy(op_); }
    Op(Op &&other) noexcept : op_(other.op_), st_(other.st_), err_(other.err_) { other.op_ = nullptr; }
    Op(const Op &) = delete;

    Op &in(const qdq_tensor_desc &desc) {
        if (st_ == QDQ_OK) st_ = qdqi_builder_add_port(&op_->in, &desc, &err_);
        return *this;
    }
    Op &skip() {
        if (st_ == QDQ_OK) st_ = qdqi_builder_add_port(&op_->in, nullptr, &err_);
        return *this;
    }
    Op &out(const qdq_tensor_desc &desc) {
        if (st_ == QDQ_OK) st_ = qdqi_builder_add_port(&op_->out, &desc, &err_);
        return *this;
    }
    Op &f32(const char *name, float v) { return set(name, qdqi_attr_of_f32(v)); }
    Op &s64(const char *name, int64_t v) { return set(name, qdqi_attr_of_s64(v)); }
    Op &flag(const char *name, bool v) { return set(name, qdqi_attr_of_bool(v)); }
    Op &str(const char *name, const char *v) { return set(name, qdqi_attr_of_str(v)); }
    Op &f32s(const char *name, std::vector<float> v) { return set(name, qdqi_attr_of_f32s(v.data(), v.size())); }
    Op &s64s(const char *name, Dims v) { return set(name, qdqi_attr_of_s64s(v.data(), v.size())); }
    Op &set(const char *name, qdqi_attr value) {
        if (st_ == QDQ_OK) st_ = qdqi_builder_set_attr(op_, name, value, &err_);
        return *this;
    }
    qdq_status status() const { return st_; }
    const qdq_op *get() const { return op_; }

  private:
    qdq_op *op_ = nullptr;
    qdq_status st_ = QDQ_OK;
    qdq_error err_ = {};
};

/* A graph, and the error of what was last done to it. */
class Graph {
  public:
    Graph() { st_ = qdqi_graph_create(&graph_, &err_); }
    ~Graph() { qdqi_graph_release(graph_); }
    Graph(const Graph &) = delete;

    qdq_status add(const Op &op) {
        if (op.status() != QDQ_OK) return op.status();
        return st_ = qdqi_graph_add_op(graph_, op.get(), &err_);
    }
    template <class T> qdq_status constant(const qdq_tensor_desc &desc, const std::vector<T> &values) {
        return st_ = qdqi_graph_set_constant(graph_, &desc, values.data(), values.size() * sizeof(T), QDQ_DATA_COPY,
                                             &err_);
    }
    qdq_status finalize(qdqi_fold_fn fold = nullptr) { return st_ = qdqi_graph_finalize(graph_, fold, &err_); }
    const qdq_tensor_desc &desc(uint64_t id) const { return value(id).desc; }
    const qdqi_value &value(uint64_t id) const { return graph_->values[qdqi_graph_value(graph_, id)]; }
    const qdqi_op &op(uint64_t id) const { return graph_->ops[qdqi_graph_op(graph_, id)]; }
    Dims dims(uint64_t id) const {
        const qdq_tensor_desc &d = desc(id);
        return d.ndims < 0 ? Dims{-99} : Dims(d.dims, d.dims + d.ndims);
    }
    qdq_graph *get() const { return graph_; }
    std::string text() const { return err_.text; }
    qdq_status status() const { return st_; }
    qdq_error *err() { return &err_; }

  private:
    qdq_graph *graph_ = nullptr;
    qdq_status st_ = QDQ_OK;
    qdq_error err_ = {};
};

/* Add and finalize an op with outputs 100, 101, … of unknown shape; their shapes as text "2x3 4", or the error text. */
struct Const {
    uint64_t id;
    Dims values;
};
inline std::string ShapesOf(Op &op, size_t n_out = 1, std::vector<Const> constants = {}) {
    for (size_t i = 0; i < n_out; i++)
        op.out(Unknown(100 + i));
    Graph graph;
    for (const Const &c : constants)
        if (graph.constant(Tensor(c.id, QDQ_DTYPE_S64, {(int64_t)c.values.size()}), c.values) != QDQ_OK)
            return graph.text();
    if (graph.add(op) != QDQ_OK || graph.finalize() != QDQ_OK) return graph.text();
    std::string text;
    for (size_t i = 0; i < n_out; i++) {
        text += i == 0 ? "" : " ";
        const qdq_tensor_desc &d = graph.desc(100 + i);
        if (d.ndims < 0) text += "?";
        if (d.ndims == 0) text += "-";
        for (int32_t k = 0; k < d.ndims; k++)
            text += (k == 0 ? "" : "x") + std::to_string(d.dims[k]);
    }
    return text;
}

} // namespace ir

#define EXPECT_HAS(text, part)                                                                                         \
    do {                                                                                                               \
        const std::string has_text = (text);                                                                           \
        EXPECT_NE(has_text.find(part), std::string::npos) << "\"" << has_text << "\" lacks \"" << (part) << "\"";      \
    } while (0)
/* A failure with this status whose text has this part, on one line. */
#define EXPECT_FAILS(graph, call, expected_status, part)                                                               \
    do {                                                                                                               \
        EXPECT_EQ((call), expected_status) << (graph).text();                                                          \
        EXPECT_HAS((graph).text(), part);                                                                              \
        EXPECT_EQ((graph).text().find('\n'), std::string::npos);                                                       \
    } while (0)

#endif
