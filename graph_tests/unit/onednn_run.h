// Tensors and a one-step plan, for the tests of the oneDNN facade.
#ifndef QDQ_TEST_ONEDNN_RUN_H
#define QDQ_TEST_ONEDNN_RUN_H

#include "base/alloc.h"
#include "base/dtype.h"
#include "native/native.h"
#include "onednn/onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onednn_run {

using Dims = std::vector<int64_t>;

inline qdqi_dnnl_md dense_md(qdq_dtype dtype, const Dims &dims) {
    qdqi_dnnl_md md = {};
    md.ndims = (int32_t)dims.size();
    md.dtype = dtype;
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0;) {
        md.dims[d] = dims[d];
        md.strides[d] = stride;
        stride *= dims[d];
    }
    return md;
}

// NC… dims stored channels last.
inline qdqi_dnnl_md channels_last_md(qdq_dtype dtype, const Dims &dims) {
    qdqi_dnnl_md md = dense_md(dtype, dims);
    int64_t stride = dims[1];
    md.strides[1] = 1;
    for (size_t d = dims.size(); d-- > 2;) {
        md.strides[d] = stride;
        stride *= dims[d];
    }
    md.strides[0] = stride;
    return md;
}

inline qdqi_dnnl_md any_of(qdqi_dnnl_md md) {
    md.any = true;
    return md;
}

struct Random {
    uint64_t state = 0x9e3779b97f4a7c15u;
    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 33);
    }
    int64_t range(int64_t lo, int64_t hi) { return lo + (int64_t)(next() % (uint64_t)(hi - lo + 1)); }
};

struct Tensor {
    qdqi_dnnl_md md;
    int64_t n = 1;
    std::vector<uint8_t> data;

    explicit Tensor(const qdqi_dnnl_md &m) : md(m) {
        for (int32_t d = 0; d < md.ndims; d++)
            n *= md.dims[d];
        size_t bytes = 0;
        EXPECT_TRUE(qdqi_dtype_bytes(md.dtype, n, &bytes));
        data.assign(bytes, 0);
    }
    Tensor(qdq_dtype dtype, const Dims &dims) : Tensor(dense_md(dtype, dims)) {}

    int64_t offset(const Dims &at) const {
        int64_t o = 0;
        for (size_t d = 0; d < at.size(); d++)
            o += at[d] * md.strides[d];
        return o;
    }
    double at(const Dims &i) const { return qdqi_load_f64(data.data(), md.dtype, offset(i)); }
    // The element of a tensor of the same rank whose dims of 1 are broadcast.
    double at_broadcast(Dims i) const {
        for (size_t d = 0; d < i.size(); d++)
            if (md.dims[d] == 1) i[d] = 0;
        return at(i);
    }
    double flat(int64_t i) const { return qdqi_load_f64(data.data(), md.dtype, i); }
    void set_flat(int64_t i, double v) { qdqi_store_f64(data.data(), md.dtype, i, v); }
    Tensor &fill(Random &random, int64_t lo, int64_t hi, double unit = 1.0) {
        for (int64_t i = 0; i < n; i++)
            set_flat(i, (double)random.range(lo, hi) * unit);
        return *this;
    }
    Tensor &fill_all(Random &random) { return fill(random, qdqi_dtype_min(md.dtype), qdqi_dtype_max(md.dtype)); }
};

inline void for_each(const qdqi_dnnl_md &md, const std::function<void(const Dims &)> &body) {
    Dims i((size_t)md.ndims, 0);
    for (;;) {
        body(i);
        size_t d = i.size();
        while (d-- > 0) {
            if (++i[d] < md.dims[d]) break;
            i[d] = 0;
        }
        if (d == (size_t)-1) return;
    }
}

// What a quantized store gives: saturate(round half to even(v)).
inline double saturate(double v, qdq_dtype dtype) {
    if (!qdqi_dtype_is_int(dtype)) return v;
    v = std::nearbyint(v);
    const double lo = (double)qdqi_dtype_min(dtype), hi = (double)qdqi_dtype_max(dtype);
    return v < lo ? lo : v > hi ? hi : v;
}

using Buffers = std::map<int, std::vector<uint8_t> *>;

// Runs `prim` once as a one-step plan, and destroys it. The destination is an output, scratch is a temp, the rest inputs.
// The engine's threads bound this call.
inline qdq_status run_prim(qdqi_dnnl_prim *prim, const Buffers &buffers, qdq_error *err, int n_runs = 1) {
    qdq_engine *engine = nullptr;
    EXPECT_EQ(qdqi_engine_create(nullptr, &engine, err), QDQ_OK);
    qdqi_plan *plan = nullptr;
    EXPECT_EQ(qdqi_plan_create(engine, &plan, err), QDQ_OK);
    qdqi_engine_release(engine);
    std::vector<qdqi_buf> bufs;
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
    for (uint32_t i = 0; i < qdqi_dnnl_prim_n_args(prim); i++) {
        const qdqi_dnnl_arg arg = qdqi_dnnl_prim_arg(prim, i);
        const size_t bytes = qdqi_dnnl_prim_arg_bytes(prim, arg);
        qdqi_buf buf = QDQI_NO_BUF;
        if (arg == QDQI_DNNL_SCRATCH) {
            EXPECT_EQ(qdqi_plan_temp(plan, bytes, &buf, err), QDQ_OK);
        } else {
            const auto found = buffers.find((int)arg);
            EXPECT_NE(found, buffers.end()) << "no buffer for argument " << (int)arg;
            if (found == buffers.end()) return QDQ_E_INTERNAL;
            EXPECT_GE(found->second->size(), bytes) << "argument " << (int)arg;
            if (arg == QDQI_DNNL_DST) {
                EXPECT_EQ(qdqi_plan_output(plan, (uint32_t)outputs.size(), bytes, &buf, err), QDQ_OK);
                outputs.push_back(found->second->data());
            } else {
                EXPECT_EQ(qdqi_plan_input(plan, (uint32_t)inputs.size(), bytes, &buf, err), QDQ_OK);
                inputs.push_back(found->second->data());
            }
        }
        bufs.push_back(buf);
    }
    qdq_status st = qdqi_dnnl_step(plan, prim, bufs.data(), (uint32_t)bufs.size(), 0, err);
    if (st == QDQ_OK) st = qdqi_plan_finish(plan, err);
    for (int i = 0; st == QDQ_OK && i < n_runs; i++)
        st = qdqi_plan_execute(plan, inputs.data(), outputs.data(), nullptr, err);
    qdqi_plan_destroy(&plan);
    return st;
}

// The two that answer the same requests. oneDNN is missing where it is not built or QDQ_JIT=off.
struct Provider {
    const char *name;
    decltype(&qdqi_dnnl_matmul) matmul;
    decltype(&qdqi_dnnl_convolution) convolution;
    decltype(&qdqi_dnnl_pooling) pooling;
    decltype(&qdqi_dnnl_eltwise) eltwise;
    decltype(&qdqi_dnnl_binary) binary;
    decltype(&qdqi_dnnl_softmax) softmax;
    decltype(&qdqi_dnnl_layernorm) layernorm;
    decltype(&qdqi_dnnl_groupnorm) groupnorm;
    decltype(&qdqi_dnnl_batchnorm) batchnorm;
    decltype(&qdqi_dnnl_reduction) reduction;
    decltype(&qdqi_dnnl_resampling) resampling;
    decltype(&qdqi_dnnl_concat) concat;
    decltype(&qdqi_dnnl_reorder) reorder;
    bool is_native;
};

inline std::vector<Provider> Providers() {
#define QDQ_PROVIDER(name, prefix, is_native)                                                                          \
    {name,                                                                                                             \
     prefix##_matmul,                                                                                                  \
     prefix##_convolution,                                                                                             \
     prefix##_pooling,                                                                                                 \
     prefix##_eltwise,                                                                                                 \
     prefix##_binary,                                                                                                  \
     prefix##_softmax,                                                                                                 \
     prefix##_layernorm,                                                                                               \
     prefix##_groupnorm,                                                                                               \
     prefix##_batchnorm,                                                                                               \
     prefix##_reduction,                                                                                               \
     prefix##_resampling,                                                                                              \
     prefix##_concat,                                                                                                  \
     prefix##_reorder,                                                                                                 \
     is_native}
    std::vector<Provider> all = {QDQ_PROVIDER("native", qdqi_native, true)};
    if (qdqi_dnnl_available()) all.push_back(QDQ_PROVIDER("oneDNN", qdqi_dnnl, false));
#undef QDQ_PROVIDER
    return all;
}

template <class T> std::vector<uint8_t> BytesOf(const std::vector<T> &v) {
    std::vector<uint8_t> out(v.size() * sizeof(T));
    if (!out.empty()) memcpy(out.data(), v.data(), out.size());
    return out;
}

#define QDQ_SKIP_WITHOUT_ONEDNN()                                                                                      \
    if (!qdqi_dnnl_available()) GTEST_SKIP() << "this build has no oneDNN"

} // namespace onednn_run
#endif
