// Tensors and a one-step plan, for the tests of the oneDNN facade.
#ifndef QDQ_TEST_ONEDNN_RUN_H
#define QDQ_TEST_ONEDNN_RUN_H

#include "base/alloc.h"
#include "base/dtype.h"
#include "lower/request.h"
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

// Requests by the words of their kinds.
struct Asked : qdqi_request {
    Asked(qdqi_make_kind k, const qdqi_dnnl_md *s, const qdqi_dnnl_md *d, const qdqi_dnnl_attr *a) : qdqi_request{} {
        kind = k;
        src = s;
        dst = d;
        attr = a;
    }
};
inline Asked MatMul(const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights, const qdqi_dnnl_md *bias,
                    const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(QDQI_MAKE_MATMUL, src, dst, attr);
    r.second = weights;
    r.bias = bias;
    return r;
}
inline Asked Convolution(const qdqi_dnnl_conv *conv, const qdqi_dnnl_md *src, const qdqi_dnnl_md *weights,
                         const qdqi_dnnl_md *bias, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr = nullptr) {
    Asked r = MatMul(src, weights, bias, dst, attr);
    r.kind = QDQI_MAKE_CONVOLUTION;
    r.conv = conv;
    return r;
}
inline Asked Pooling(const qdqi_dnnl_pool *pool, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                     const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(QDQI_MAKE_POOLING, src, dst, attr);
    r.pool = pool;
    return r;
}
inline Asked Eltwise(qdqi_dnnl_alg alg, float alpha, float beta, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                     const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(QDQI_MAKE_ELTWISE, src, dst, attr);
    r.alg = alg;
    r.alpha = alpha;
    r.beta = beta;
    return r;
}
inline Asked Binary(qdqi_dnnl_alg alg, const qdqi_dnnl_md *src0, const qdqi_dnnl_md *src1, const qdqi_dnnl_md *dst,
                    const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(QDQI_MAKE_BINARY, src0, dst, attr);
    r.alg = alg;
    r.second = src1;
    return r;
}
inline Asked SoftMax(qdqi_dnnl_alg alg, int32_t axis, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                     const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(QDQI_MAKE_SOFTMAX, src, dst, attr);
    r.alg = alg;
    r.axis = axis;
    return r;
}
// LAYERNORM, GROUPNORM, BATCHNORM
inline Asked Norm(qdqi_make_kind kind, float epsilon, bool flag, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                  const qdqi_dnnl_attr *attr = nullptr, int64_t groups = 0) {
    Asked r(kind, src, dst, attr);
    r.alpha = epsilon;
    r.flag = flag;
    r.groups = groups;
    return r;
}
// REDUCTION, RESAMPLING
inline Asked Along(qdqi_make_kind kind, qdqi_dnnl_alg alg, const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst,
                   const qdqi_dnnl_attr *attr = nullptr) {
    Asked r(kind, src, dst, attr);
    r.alg = alg;
    return r;
}
inline Asked Concat(int32_t axis, uint32_t n, const qdqi_dnnl_md *srcs, const qdqi_dnnl_md *dst) {
    Asked r(QDQI_MAKE_CONCAT, srcs, dst, nullptr);
    r.axis = axis;
    r.n = n;
    return r;
}
inline Asked Reorder(const qdqi_dnnl_md *src, const qdqi_dnnl_md *dst, const qdqi_dnnl_attr *attr = nullptr) {
    return Asked(QDQI_MAKE_REORDER, src, dst, attr);
}

// The two that answer the same requests. oneDNN is missing where it is not built or QDQ_JIT=off.
struct Provider {
    const char *name;
    qdq_status (*create)(const qdqi_request *request, qdqi_dnnl_prim **out, qdq_error *err);
    bool is_native;

    qdq_status Make(const Asked &r, qdqi_dnnl_prim **out, qdq_error *err) const { return create(&r, out, err); }
};
inline const Provider kOneDnn = {"oneDNN", qdqi_dnnl_create, false};

inline std::vector<Provider> Providers() {
    std::vector<Provider> all = {{"native", qdqi_request_native, true}};
    if (qdqi_dnnl_available()) all.push_back(kOneDnn);
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
