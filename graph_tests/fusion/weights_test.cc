// Float rows times dequantized constant weights, through the public API: the integers are what is read, the values are those of
// the reference, and what the kernel does not take is right as well.
#include "qdq/qdq.h"

#include "base/dtype.h"
#include "kernels/gemm/gemm.h"
#include "onednn/onednn.h"
#include "kernels/isa/isa.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

struct Net {
    qdq_dtype weights = QDQ_DTYPE_S8, real = QDQ_DTYPE_F32;
    std::vector<int64_t> rows = {1};   // dims of src before K
    std::vector<int64_t> batch = {};   // dims of the weights before the last two
    int64_t k = 256, n = 128;          // larger than what is folded at finalize does not matter: Dequantize is not
    std::string qtype = "per_channel"; // per_tensor, per_group
    int64_t k_group = 32, n_group = 1; // per_group
    bool axis_k = false;               // per_channel
    bool tb = false, zp = true, bias = false, runtime = false;
    bool dequantize_linear = false; // ONNX: blocks of k_group, a tail allowed
    bool typecast = false;          // Dequantize to f32, then TypeCast to `real`
    std::string tail;               // "", "relu": ReLU, "chain": Add, Sigmoid, Quantize
    int zp_end = 0;                 // -1, 1: all zero points at an end of the type
};

class Weights : public testing::Test {
  protected:
    struct Value {
        qdq_tensor_desc desc;
        std::vector<unsigned char> data;
    };

    void SetUp() override { ASSERT_EQ(qdq_engine_create(nullptr, &engine_, &err_), QDQ_OK) << err_.text; }
    void TearDown() override { qdq_engine_destroy(&engine_); }

    static qdq_tensor_desc Desc(uint64_t id, qdq_dtype dtype, const std::vector<int64_t> &dims,
                                qdq_property property = QDQ_PROPERTY_UNDEF) {
        qdq_tensor_desc desc;
        EXPECT_EQ(qdq_tensor_desc_init(id, dtype, (int32_t)dims.size(), dims.data(), QDQ_LAYOUT_STRIDED, property,
                                       &desc, nullptr),
                  QDQ_OK);
        return desc;
    }

    Value Fill(const qdq_tensor_desc &desc, double low, double high) {
        Value v = {desc, {}};
        size_t bytes = 0;
        int64_t n = 0;
        EXPECT_EQ(qdq_tensor_desc_size_bytes(&desc, &bytes, nullptr), QDQ_OK);
        EXPECT_EQ(qdq_tensor_desc_n_elems(&desc, &n, nullptr), QDQ_OK);
        v.data.resize(bytes);
        std::uniform_real_distribution<double> any(low, high);
        for (int64_t i = 0; i < n; i++)
            qdqi_store_f64(v.data.data(), desc.dtype, i, any(random_));
        return v;
    }

    void Constant(qdq_graph *g, const Value &v) {
        ASSERT_EQ(qdq_graph_set_constant(g, &v.desc, v.data.data(), v.data.size(), QDQ_DATA_COPY, &err_), QDQ_OK)
            << err_.text;
    }

    void Op(qdq_graph *g, const char *kind, const std::vector<qdq_tensor_desc> &in, const qdq_tensor_desc &out,
            const std::function<void(qdq_op *)> &attrs = {}) {
        qdq_op *op = nullptr;
        ASSERT_EQ(qdq_op_create(next_op_++, kind, kind, &op, &err_), QDQ_OK) << err_.text;
        for (const qdq_tensor_desc &d : in)
            ASSERT_EQ(qdq_op_add_input(op, &d, &err_), QDQ_OK) << err_.text;
        ASSERT_EQ(qdq_op_add_output(op, &out, &err_), QDQ_OK) << err_.text;
        if (attrs) attrs(op);
        ASSERT_EQ(qdq_graph_add_op(g, op, &err_), QDQ_OK) << kind << ": " << err_.text;
        qdq_op_destroy(&op);
    }

    // Builds the net; its outside inputs are in inputs_, src first.
    void Build(const Net &net, qdq_graph **out) {
        qdq_graph *g = nullptr;
        ASSERT_EQ(qdq_graph_create(&g, &err_), QDQ_OK);
        *out = g;
        inputs_.clear();
        const bool four = net.weights == QDQ_DTYPE_S4 || net.weights == QDQ_DTYPE_U4;
        const bool is_signed = net.weights == QDQ_DTYPE_S4 || net.weights == QDQ_DTYPE_S8;
        const double low = is_signed ? (four ? -8 : -128) : 0, high = low + (four ? 15 : 255);
        std::vector<int64_t> src_dims = net.rows, dst_dims = net.rows, w_dims = net.batch;
        src_dims.push_back(net.k);
        dst_dims.push_back(net.n);
        if (!net.batch.empty()) dst_dims.insert(dst_dims.begin(), net.batch.begin(), net.batch.end());
        w_dims.push_back(net.tb ? net.n : net.k);
        w_dims.push_back(net.tb ? net.k : net.n);
        const int64_t rank = (int64_t)w_dims.size(), kd = net.tb ? rank - 1 : rank - 2,
                      nd = net.tb ? rank - 2 : rank - 1;

        std::vector<int64_t> p_dims;
        if (net.qtype == "per_channel") p_dims = {net.axis_k ? net.k : net.n};
        if (net.qtype == "per_tensor") p_dims = {1};
        if (net.qtype == "per_group") {
            p_dims = w_dims;
            p_dims[kd] = (net.k + net.k_group - 1) / net.k_group;
            p_dims[nd] = (net.n + net.n_group - 1) / net.n_group;
        }
        const qdq_dtype dq_real = net.typecast ? QDQ_DTYPE_F32 : net.real;
        const Value w = Fill(Desc(1, net.weights, w_dims), low, high);
        const Value scale = Fill(Desc(2, dq_real, p_dims), 0.01, 0.1);
        const Value zp = Fill(Desc(3, net.weights, p_dims), net.zp_end > 0 ? high : low, net.zp_end < 0 ? low : high);
        Constant(g, w);
        if (net.runtime) {
            inputs_.push_back(scale);
        } else {
            Constant(g, scale);
        }
        if (net.zp) Constant(g, zp);
        std::vector<qdq_tensor_desc> dq_in = {w.desc, scale.desc};
        if (net.zp) dq_in.push_back(zp.desc);
        qdq_tensor_desc real = Desc(4, dq_real, w_dims);
        Op(g, net.dequantize_linear ? "DequantizeLinear" : "DynamicDequantize", dq_in, real, [&](qdq_op *op) {
            if (net.dequantize_linear) {
                if (net.qtype != "per_tensor") {
                    EXPECT_EQ(qdq_op_set_attr_s64(op, "axis", net.qtype == "per_group" ? kd : nd, &err_), QDQ_OK);
                }
                if (net.qtype == "per_group") {
                    EXPECT_EQ(qdq_op_set_attr_s64(op, "block_size", net.k_group, &err_), QDQ_OK);
                }
                return;
            }
            EXPECT_EQ(qdq_op_set_attr_str(op, "qtype", net.qtype.c_str(), &err_), QDQ_OK);
            EXPECT_EQ(qdq_op_set_attr_s64(op, "axis", net.axis_k ? kd : nd, &err_), QDQ_OK);
            std::vector<int64_t> group((size_t)rank, 1);
            group[(size_t)kd] = net.k_group;
            group[(size_t)nd] = net.n_group;
            if (net.qtype == "per_group") {
                EXPECT_EQ(qdq_op_set_attr_s64s(op, "group_shape", group.data(), group.size(), &err_), QDQ_OK);
            }
        });
        if (net.typecast) {
            const qdq_tensor_desc cast = Desc(5, net.real, w_dims);
            Op(g, "TypeCast", {real}, cast);
            real = cast;
        }
        inputs_.insert(inputs_.begin(), Fill(Desc(6, net.real, src_dims), -1, 1));
        std::vector<qdq_tensor_desc> mm_in = {inputs_[0].desc, real};
        if (net.bias) {
            const Value bias = Fill(Desc(7, net.real, {net.n}), -3, 3);
            Constant(g, bias);
            mm_in.push_back(bias.desc);
        }
        qdq_tensor_desc last = Desc(8, net.real, dst_dims);
        Op(g, "MatMul", mm_in, last,
           [&](qdq_op *op) { EXPECT_EQ(qdq_op_set_attr_bool(op, "transpose_b", net.tb, &err_), QDQ_OK); });
        if (net.tail == "relu") {
            const qdq_tensor_desc relu = Desc(9, net.real, dst_dims);
            Op(g, "ReLU", {last}, relu);
            last = relu;
        } else if (net.tail == "chain") {
            const Value other = Fill(Desc(10, net.real, {net.n}), -2, 2);
            Constant(g, other);
            const qdq_tensor_desc sum = Desc(11, net.real, dst_dims), sigmoid = Desc(12, net.real, dst_dims),
                                  q = Desc(13, QDQ_DTYPE_U8, dst_dims);
            Op(g, "Add", {last, other.desc}, sum);
            Op(g, "Sigmoid", {sum}, sigmoid);
            Op(g, "Quantize", {sigmoid}, q, [&](qdq_op *op) {
                const float s = 1.0f / 255.0f;
                const int64_t z = 3;
                EXPECT_EQ(qdq_op_set_attr_f32s(op, "scales", &s, 1, &err_), QDQ_OK);
                EXPECT_EQ(qdq_op_set_attr_s64s(op, "zps", &z, 1, &err_), QDQ_OK);
            });
            last = q;
        }
        ASSERT_EQ(qdq_graph_finalize(g, &err_), QDQ_OK) << err_.text;
        output_ = last;
    }

    // Fused against the reference. `native`: the integers are read by the kernel, and no float copy of the weights is kept.
    void Check(const Net &net, bool native) {
        qdq_graph *g = nullptr;
        Build(net, &g);
        if (HasFatalFailure()) return;
        qdq_session *session = nullptr;
        ASSERT_EQ(qdq_session_create(g, engine_, nullptr, &session, &err_), QDQ_OK) << err_.text;
        ASSERT_EQ(qdq_session_n_parts(session), 1u);
        qk_gemm form = {};
        form.weights = net.weights;
        size_t max_rows = 0, rows = 1;
        (void)qk_gemm_choose(&form, &max_rows, nullptr);
        for (const int64_t d : net.rows)
            rows *= (size_t)d;
        native = native && (rows <= max_rows || !qdqi_dnnl_available()); // what the level at hand is good for
        qdq_session_part_info info;
        ASSERT_EQ(qdq_session_part(session, 0, &info, &err_), QDQ_OK);
        EXPECT_EQ(std::string(info.impl).find("native matmul") != std::string::npos, native) << info.impl;
        std::vector<const void *> in;
        std::vector<qdq_tensor> tensors;
        for (size_t i = 0; i < qdq_session_n_inputs(session); i++) {
            qdq_tensor_desc desc;
            ASSERT_EQ(qdq_session_input_desc(session, i, &desc, nullptr, &err_), QDQ_OK);
            for (Value &v : inputs_)
                if (v.desc.id == desc.id) {
                    in.push_back(v.data.data());
                    tensors.push_back({v.desc, v.data.data()});
                }
        }
        Value got = Fill(output_, 1, 2), want = got;
        void *out[] = {got.data.data()};
        ASSERT_EQ(qdq_session_run(session, in.data(), in.size(), out, 1, &err_), QDQ_OK) << err_.text;
        const qdq_tensor want_t = {output_, want.data.data()};
        ASSERT_EQ(qdq_graph_run_reference(g, tensors.data(), tensors.size(), &want_t, 1, &err_), QDQ_OK) << err_.text;
        Compare(net, got, want);
        if (::testing::Test::HasFailure()) ADD_FAILURE() << info.impl;
        qdq_session_destroy(&session);
        qdq_graph_destroy(&g);
    }

    void Compare(const Net &net, const Value &got, const Value &want) {
        int64_t n = 0, off = 0;
        ASSERT_EQ(qdq_tensor_desc_n_elems(&output_, &n, nullptr), QDQ_OK);
        double largest = 0;
        for (int64_t i = 0; i < n; i++)
            largest = std::fmax(largest, std::fabs(qdqi_load_f64(want.data.data(), output_.dtype, i)));
        for (int64_t i = 0; i < n; i++) {
            const double a = qdqi_load_f64(got.data.data(), output_.dtype, i);
            const double b = qdqi_load_f64(want.data.data(), output_.dtype, i);
            if (output_.dtype == QDQ_DTYPE_U8) {
                ASSERT_LE(std::fabs(a - b), 1) << i; // a tie that the sum's last bit decides
                off += a != b;
                continue;
            }
            // f32: the last bits of a sum of k terms; narrow: the reference rounds weights and result to that type
            const double eps = net.real == QDQ_DTYPE_BF16 ? 0x1p-8 : net.real == QDQ_DTYPE_F16 ? 0x1p-11 : 1e-6;
            ASSERT_NEAR(a, b, 2 * eps * largest + 1e-6) << "element " << i;
        }
        EXPECT_GT(largest, 0.5);
        EXPECT_LE(off * 50, n);
    }

    qdq_engine *engine_ = nullptr;
    qdq_error err_ = {};
    std::vector<Value> inputs_;
    qdq_tensor_desc output_ = {};
    std::mt19937 random_{7};
    uint64_t next_op_ = 100;
};

const qdq_dtype kStored[] = {QDQ_DTYPE_S8, QDQ_DTYPE_U8, QDQ_DTYPE_S4, QDQ_DTYPE_U4};
const qdq_dtype kReal[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};

TEST_F(Weights, EveryTypeAndGranularityReadsIntegers) {
    for (const qdq_dtype stored : kStored)
        for (const qdq_dtype real : kReal)
            for (const char *qtype : {"per_tensor", "per_channel", "per_group"})
                for (const int form : {0, 1, 2, 3}) {
                    Net net;
                    net.weights = stored;
                    net.real = real;
                    net.qtype = qtype;
                    net.tb = form & 1;
                    // upstream's schema has zero points of these types per tensor and per group; ours per channel too
                    net.zp = form & 2;
                    net.zp_end = (form & 1) ? 1 : -1;
                    if (form == 0) net.rows = {2, 2};
                    if (form == 1) net.rows = {}; // a vector
                    if (form == 2) net.rows = {3};
                    net.n = form == 3 ? 100 : 128;
                    SCOPED_TRACE(std::string(qdq_dtype_name(stored)) + " " + qdq_dtype_name(real) + " " + qtype + " " +
                                 std::to_string(form));
                    Check(net, true);
                    if (HasFailure()) return;
                }
}

TEST_F(Weights, GroupsAlongBothDimsAndBlocksWithTails) {
    Net net;
    net.weights = QDQ_DTYPE_U4;
    net.qtype = "per_group";
    net.k_group = 64;
    net.n_group = 16;
    Check(net, true);
    net.tb = true;
    Check(net, true);
    net.dequantize_linear = true; // blocks of 48 in 200
    net.n_group = 1;
    net.k = 200;
    net.k_group = 48;
    Check(net, true);
    net.tb = false;
    net.weights = QDQ_DTYPE_S8;
    Check(net, true);
    net.qtype = "per_channel";
    Check(net, true);
}

TEST_F(Weights, ChainsBiasAndCasts) {
    for (const char *tail : {"", "relu", "chain"})
        for (const bool bias : {false, true})
            for (const bool typecast : {false, true})
                for (const qdq_dtype real : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16}) {
                    if (real == QDQ_DTYPE_F32 && typecast) continue;
                    if (real == QDQ_DTYPE_BF16 && std::string(tail) == "chain") continue; // Quantize takes f32
                    Net net;
                    net.tail = tail;
                    net.bias = bias;
                    net.typecast = typecast;
                    net.real = real;
                    SCOPED_TRACE(std::string(tail) + (bias ? " bias" : "") + (typecast ? " typecast " : " ") +
                                 qdq_dtype_name(real));
                    Check(net, true);
                    if (HasFailure()) return;
                }
}

TEST_F(Weights, WhatTheKernelDoesNotTakeIsRightToo) {
    Net net;
    net.rows = {200}; // a product with floats is faster
    Check(net, !qdqi_dnnl_available());
    net = Net();
    net.runtime = true;
    Check(net, false);
    net = Net();
    net.axis_k = true;
    Check(net, false);
    net = Net();
    net.n = 3; // 61 of 64 columns would be padding
    Check(net, false);
    net = Net();
    net.qtype = "per_group";
    net.k_group = 1;
    Check(net, false);
    net = Net();
    net.rows = {2};
    net.batch = {3};
    net.qtype = "per_tensor";
    Check(net, false);
}

// The packed weights are all that the engine holds: far less than as floats.
TEST_F(Weights, NoFloatCopyIsKept) {
    Net net;
    net.k = 1024;
    net.n = 512;
    net.weights = QDQ_DTYPE_U4;
    net.qtype = "per_group";
    net.k_group = 128;
    Check(net, true);
    qdq_cache_stats stats;
    ASSERT_EQ(qdq_engine_cache_stats(engine_, &stats, &err_), QDQ_OK);
    size_t max_rows = 0;
    qk_gemm form = {};
    form.weights = net.weights;
    (void)qk_gemm_choose(&form, &max_rows, nullptr);
    if (max_rows == 0) GTEST_SKIP() << "no kernel of this level is faster than floats";
    EXPECT_LT(stats.bytes, size_t(1024 * 512) * 6 / 10);
    EXPECT_GE(stats.bytes, size_t(1024 * 512) / 2);
}

// Same weights, other scales: not the same constant.
TEST_F(Weights, ScalesArePartOfTheConstant) {
    for (int i = 0; i < 2; i++) { // the first fill is the same, what follows is not
        random_.seed(7);
        Net net;
        net.zp_end = i == 0 ? -1 : 1;
        Check(net, true);
        net.n = 64 + 64 * i;
        Check(net, true);
    }
}

// The same bytes on one thread and on several.
TEST_F(Weights, ThreadsDoNotChangeTheResult) {
    for (const qdq_dtype real : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16}) {
        Net net;
        net.k = 1000;
        net.n = 1000;
        net.rows = {4};
        net.real = real;
        qdq_graph *g = nullptr;
        Build(net, &g);
        std::vector<unsigned char> results[2];
        for (int i = 0; i < 2; i++) {
            qdq_engine_options options = {};
            options.struct_bytes = sizeof options;
            options.n_threads = i == 0 ? 1 : 5;
            qdq_engine *engine = nullptr;
            qdq_session *session = nullptr;
            ASSERT_EQ(qdq_engine_create(&options, &engine, &err_), QDQ_OK);
            ASSERT_EQ(qdq_session_create(g, engine, nullptr, &session, &err_), QDQ_OK);
            results[i] = Fill(output_, 0, 0).data;
            const void *in[] = {inputs_[0].data.data()};
            void *out[] = {results[i].data()};
            ASSERT_EQ(qdq_session_run(session, in, 1, out, 1, &err_), QDQ_OK);
            qdq_session_destroy(&session);
            qdq_engine_destroy(&engine);
        }
        EXPECT_EQ(results[0], results[1]);
        qdq_graph_destroy(&g);
    }
}

TEST_F(Weights, EveryLevelOfInstructionSet) {
    const qk_isa before = qk_isa_cap();
    for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
        if (!qk_isa_host_has(qk_isa(isa))) continue;
        qk_isa_set_cap(qk_isa(isa));
        SCOPED_TRACE(qk_isa_name(qk_isa(isa)));
        Net net;
        net.bias = true;
        net.weights = QDQ_DTYPE_U8;
        Check(net, true);
    }
    qk_isa_set_cap(before);
}

} // namespace
