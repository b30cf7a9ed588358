// Small graphs through the C interface, with the bookkeeping out of the way. Every call that should succeed is checked.
#ifndef QDQ_TEST_DNNL_GRAPH_ABI_NET_H
#define QDQ_TEST_DNNL_GRAPH_ABI_NET_H

#include "dnnl_graph/abi_calls.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qdq_test {

// One op: its content and, when it goes out of scope, its end.
class AbiOp {
  public:
    AbiOp(size_t id, dnnl_graph_op_kind_t kind, const std::vector<Lt> &in, const std::vector<Lt> &out) {
        EXPECT_EQ(dnnl_success, dnnl_graph_op_create(&op_, id, kind, ("op" + std::to_string(id)).c_str()));
        for (const Lt &lt : in)
            EXPECT_EQ(dnnl_success, dnnl_graph_op_add_input(op_, &lt));
        for (const Lt &lt : out)
            EXPECT_EQ(dnnl_success, dnnl_graph_op_add_output(op_, &lt));
    }
    AbiOp(const AbiOp &) = delete;
    AbiOp &operator=(const AbiOp &) = delete;
    ~AbiOp() { dnnl_graph_op_destroy(op_); }

    AbiOp &F(dnnl_graph_op_attr_t a, float v) { return Ok(dnnl_graph_op_set_attr_f32(op_, a, &v, 1)); }
    AbiOp &Fs(dnnl_graph_op_attr_t a, const std::vector<float> &v) {
        return Ok(dnnl_graph_op_set_attr_f32(op_, a, v.data(), v.size()));
    }
    AbiOp &I(dnnl_graph_op_attr_t a, int64_t v) { return Ok(dnnl_graph_op_set_attr_s64(op_, a, &v, 1)); }
    AbiOp &Is(dnnl_graph_op_attr_t a, const Dims &v) {
        return Ok(dnnl_graph_op_set_attr_s64(op_, a, v.data(), v.size()));
    }
    AbiOp &B(dnnl_graph_op_attr_t a, bool v) {
        const uint8_t byte = v;
        return Ok(dnnl_graph_op_set_attr_bool(op_, a, &byte, 1));
    }
    AbiOp &S(dnnl_graph_op_attr_t a, const std::string &v) {
        return Ok(dnnl_graph_op_set_attr_str(op_, a, v.c_str(), v.size()));
    }
    dnnl_graph_op_t get() const { return op_; }

  private:
    AbiOp &Ok(dnnl_status_t status) {
        EXPECT_EQ(dnnl_success, status);
        return *this;
    }
    dnnl_graph_op_t op_ = nullptr;
};

class AbiGraph {
  public:
    explicit AbiGraph(dnnl_engine_kind_t kind = dnnl_cpu) {
        EXPECT_EQ(dnnl_success, dnnl_graph_graph_create(&graph_, kind));
    }
    AbiGraph(const AbiGraph &) = delete;
    AbiGraph &operator=(const AbiGraph &) = delete;
    ~AbiGraph() {
        for (dnnl_graph_partition_t p : all_)
            dnnl_graph_partition_destroy(p);
        dnnl_graph_graph_destroy(graph_);
    }

    AbiGraph &Add(const AbiOp &op) {
        EXPECT_EQ(dnnl_success, dnnl_graph_add_op(graph_, op.get()));
        return *this;
    }
    // Finalized and filtered; the handles live as long as the graph.
    std::vector<dnnl_graph_partition_t>
    Partitions(dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion) {
        EXPECT_EQ(dnnl_success, dnnl_graph_graph_finalize(graph_));
        EXPECT_EQ(dnnl_success, dnnl_graph_graph_filter(graph_, policy));
        size_t n = 0;
        EXPECT_EQ(dnnl_success, dnnl_graph_graph_get_partition_num(graph_, &n));
        std::vector<dnnl_graph_partition_t> list(n);
        if (n > 0) {
            EXPECT_EQ(dnnl_success, dnnl_graph_graph_get_partitions(graph_, n, list.data()));
        }
        all_.insert(all_.end(), list.begin(), list.end());
        return list;
    }
    dnnl_graph_graph_t get() const { return graph_; }

  private:
    dnnl_graph_graph_t graph_ = nullptr;
    std::vector<dnnl_graph_partition_t> all_;
};

// An engine and its stream.
class AbiEngine {
  public:
    AbiEngine() {
        EXPECT_EQ(dnnl_success, dnnl_engine_create(&engine_, dnnl_cpu, 0));
        EXPECT_EQ(dnnl_success, dnnl_stream_create(&stream_, engine_, dnnl_stream_default_flags));
    }
    explicit AbiEngine(dnnl_engine_t engine) : engine_(engine) {
        EXPECT_EQ(dnnl_success, dnnl_stream_create(&stream_, engine_, dnnl_stream_default_flags));
    }
    AbiEngine(const AbiEngine &) = delete;
    AbiEngine &operator=(const AbiEngine &) = delete;
    ~AbiEngine() {
        dnnl_stream_destroy(stream_);
        dnnl_engine_destroy(engine_);
    }
    dnnl_engine_t engine() const { return engine_; }
    dnnl_stream_t stream() const { return stream_; }

  private:
    dnnl_engine_t engine_ = nullptr;
    dnnl_stream_t stream_ = nullptr;
};

// A compiled partition.
class AbiCompiled {
  public:
    AbiCompiled(dnnl_graph_partition_t p, const std::vector<Lt> &in, const std::vector<Lt> &out, dnnl_engine_t engine)
        : engine_(engine) {
        EXPECT_EQ(dnnl_success, dnnl_graph_compiled_partition_create(&cp_, p));
        std::vector<const Lt *> ins, outs;
        for (const Lt &lt : in)
            ins.push_back(&lt);
        for (const Lt &lt : out)
            outs.push_back(&lt);
        status_ = dnnl_graph_partition_compile(p, cp_, ins.size(), ins.data(), outs.size(), outs.data(), engine);
    }
    AbiCompiled(const AbiCompiled &) = delete;
    AbiCompiled &operator=(const AbiCompiled &) = delete;
    ~AbiCompiled() { dnnl_graph_compiled_partition_destroy(cp_); }

    dnnl_status_t status() const { return status_; }
    dnnl_graph_compiled_partition_t get() const { return cp_; }
    Lt Query(size_t id) const {
        Lt lt;
        EXPECT_EQ(dnnl_success, dnnl_graph_compiled_partition_query_logical_tensor(cp_, id, &lt));
        return lt;
    }
    // Buffers in any order; each is described as it was compiled.
    dnnl_status_t Run(dnnl_stream_t stream, const std::vector<std::pair<size_t, void *>> &in,
                      const std::vector<std::pair<size_t, void *>> &out) const {
        std::vector<const_dnnl_graph_tensor_t> ins, outs;
        std::vector<dnnl_graph_tensor_t> made;
        for (const auto *list : {&in, &out}) {
            for (const auto &[id, data] : *list) {
                const Lt lt = Query(id);
                dnnl_graph_tensor_t t = nullptr;
                EXPECT_EQ(dnnl_success, dnnl_graph_tensor_create(&t, &lt, engine_, data));
                made.push_back(t);
                (list == &in ? ins : outs).push_back(t);
            }
        }
        const dnnl_status_t status =
            dnnl_graph_compiled_partition_execute(cp_, stream, ins.size(), ins.data(), outs.size(), outs.data());
        for (dnnl_graph_tensor_t t : made)
            dnnl_graph_tensor_destroy(t);
        return status;
    }

  private:
    dnnl_engine_t engine_;
    dnnl_graph_compiled_partition_t cp_ = nullptr;
    dnnl_status_t status_ = dnnl_runtime_error;
};

inline size_t OpNum(dnnl_graph_partition_t p) {
    size_t n = 0;
    EXPECT_EQ(dnnl_success, dnnl_graph_partition_get_op_num(p, &n));
    return n;
}

inline bool Supported(dnnl_graph_partition_t p) {
    uint8_t supported = 2;
    EXPECT_EQ(dnnl_success, dnnl_graph_partition_is_supported(p, &supported));
    EXPECT_LE(supported, 1);
    return supported != 0;
}

// A quantized product of known numbers: u8 [M,K] times s8 [K,N], ReLU, u8 [M,N].
struct Int8MatMul {
    static constexpr int64_t M = 5, K = 24, N = 7;
    static constexpr float kSrcScale = 0.5f, kWeightsScale = 0.25f, kDstScale = 2.0f;
    static constexpr int64_t kSrcZp = 3, kDstZp = 4;
    enum Ids : size_t { kSrc = 1, kWeights, kSrcF, kWeightsF, kProduct, kRelu, kDst };

    Lt src = MakeLt(kSrc, dnnl_u8, {M, K});
    Lt weights = MakeLt(kWeights, dnnl_s8, {K, N}, dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_constant);
    Lt dst = MakeLt(kDst, dnnl_u8, {M, N});
    std::vector<uint8_t> src_data = std::vector<uint8_t>(M * K);
    std::vector<int8_t> weights_data = std::vector<int8_t>(K * N);

    Int8MatMul() {
        for (size_t i = 0; i < src_data.size(); i++)
            src_data[i] = static_cast<uint8_t>((i * 7) % 11);
        for (size_t i = 0; i < weights_data.size(); i++)
            weights_data[i] = static_cast<int8_t>(static_cast<int>((i * 5) % 9) - 4);
    }

    void AddTo(AbiGraph *g) const {
        const Lt src_f = MakeLt(kSrcF, dnnl_f32, {M, K}), weights_f = MakeLt(kWeightsF, dnnl_f32, {K, N});
        const Lt product = MakeLt(kProduct, dnnl_f32, {M, N}), relu = MakeLt(kRelu, dnnl_f32, {M, N});
        g->Add(AbiOp(10, dnnl_graph_op_dequantize, {src}, {src_f})
                   .Fs(dnnl_graph_op_attr_scales, {kSrcScale})
                   .Is(dnnl_graph_op_attr_zps, {kSrcZp}));
        g->Add(AbiOp(11, dnnl_graph_op_dequantize, {weights}, {weights_f})
                   .Fs(dnnl_graph_op_attr_scales, {kWeightsScale})
                   .Is(dnnl_graph_op_attr_zps, {0}));
        g->Add(AbiOp(12, dnnl_graph_op_matmul, {src_f, weights_f}, {product}));
        g->Add(AbiOp(13, dnnl_graph_op_relu, {product}, {relu}));
        g->Add(AbiOp(14, dnnl_graph_op_quantize, {relu}, {dst})
                   .Fs(dnnl_graph_op_attr_scales, {kDstScale})
                   .Is(dnnl_graph_op_attr_zps, {kDstZp}));
    }

    // What the ops mean, one by one; the scales are powers of two, so there is nothing to round but the last step.
    std::vector<uint8_t> Expected() const {
        std::vector<uint8_t> out(M * N);
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                float sum = 0;
                for (int64_t k = 0; k < K; k++)
                    sum += (static_cast<float>(src_data[m * K + k]) - kSrcZp) * kSrcScale *
                           static_cast<float>(weights_data[k * N + n]) * kWeightsScale;
                const float q = std::nearbyint((sum < 0 ? 0 : sum) / kDstScale + kDstZp);
                out[m * N + n] = static_cast<uint8_t>(q < 0 ? 0 : q > 255 ? 255 : q);
            }
        }
        return out;
    }
};

} // namespace qdq_test

#endif
