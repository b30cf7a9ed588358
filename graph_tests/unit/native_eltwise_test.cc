// Passes of one operation on floats: layouts, broadcasts, blocks and threads, against naive loops in double.
#include "onednn_run.h"

using namespace onednn_run;

namespace {

double Nearest(double v, qdq_dtype d) {
    uint8_t raw[8] = {};
    qdqi_store_f64(raw, d, 0, v);
    return qdqi_load_f64(raw, d, 0);
}

const qdq_dtype kFloats[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};

std::vector<qdqi_dnnl_md> Layouts(qdq_dtype d, const Dims &dims) {
    std::vector<qdqi_dnnl_md> all = {dense_md(d, dims)};
    if (dims.size() > 2) all.push_back(channels_last_md(d, dims));
    qdqi_dnnl_md gaps = dense_md(d, dims); // rows of more than is used
    for (size_t k = 0; k + 1 < dims.size(); k++)
        gaps.strides[k] = gaps.strides[k] / dims.back() * (dims.back() + 3);
    all.push_back(gaps);
    return all;
}

// The tensor with room for gaps between rows.
Tensor WithRoom(const qdqi_dnnl_md &md) {
    Tensor t(md);
    t.data.resize(t.data.size() * 4 + 64);
    return t;
}

void Fill(Tensor *t, Random *random) {
    for_each(t->md, [&](const Dims &i) {
        qdqi_store_f64(t->data.data(), t->md.dtype, t->offset(i), double(random->range(-96, 96)) / 32);
    });
}

TEST(NativeEltwise, OneFunctionInEveryLayout) {
    Random random;
    for (qdq_dtype d : kFloats)
        for (const Dims &dims : std::vector<Dims>{{1}, {40000}, {3, 70}, {2, 5, 7, 33}, {1, 64, 20, 30}})
            for (const qdqi_dnnl_md &src : Layouts(d, dims))
                for (const qdqi_dnnl_md &dst : Layouts(d, dims))
                    for (qdqi_dnnl_alg alg : {QDQI_DNNL_ELT_RELU, QDQI_DNNL_ELT_CLIP, QDQI_DNNL_ELT_LOGISTIC}) {
                        Tensor s = WithRoom(src), out = WithRoom(dst);
                        Fill(&s, &random);
                        qdq_error err = {};
                        qdqi_dnnl_prim *prim = nullptr;
                        ASSERT_EQ(qdqi_native_eltwise(alg, alg == QDQI_DNNL_ELT_CLIP ? -0.5f : 0.0f, 1.25f, &src, &dst,
                                                      nullptr, &prim, &err),
                                  QDQ_OK)
                            << err.text;
                        ASSERT_EQ(run_prim(prim, {{QDQI_DNNL_SRC, &s.data}, {QDQI_DNNL_DST, &out.data}}, &err), QDQ_OK)
                            << err.text;
                        for_each(dst, [&](const Dims &i) {
                            const double x = s.at(i);
                            if (alg == QDQI_DNNL_ELT_LOGISTIC) {
                                ASSERT_NEAR(out.at(i), 1 / (1 + exp(-x)), d == QDQ_DTYPE_F32 ? 1e-6 : 5e-3);
                            } else {
                                ASSERT_EQ(out.at(i), alg == QDQI_DNNL_ELT_RELU ? std::fmax(x, 0)
                                                                               : std::fmin(std::fmax(x, -0.5), 1.25));
                            }
                        });
                    }
}

TEST(NativeEltwise, OnePairWithEveryBroadcast) {
    Random random;
    for (qdq_dtype d : kFloats)
        for (const Dims &dims : std::vector<Dims>{{2, 5, 7, 33}, {1, 64, 20, 30}, {2, 16, 40, 50}})
            for (int ones = 0; ones < 16; ones++) {
                Dims few = dims;
                for (size_t k = 0; k < 4; k++)
                    if (ones >> k & 1) few[k] = 1;
                for (const qdqi_dnnl_md &src : Layouts(d, dims))
                    for (qdqi_dnnl_alg alg : {QDQI_DNNL_BIN_ADD, QDQI_DNNL_BIN_MUL, QDQI_DNNL_BIN_SUB}) {
                        const qdqi_dnnl_md second = dense_md(d, few);
                        Tensor s = WithRoom(src), w = WithRoom(second), out = WithRoom(src);
                        Fill(&s, &random);
                        Fill(&w, &random);
                        qdq_error err = {};
                        qdqi_dnnl_prim *prim = nullptr;
                        ASSERT_EQ(qdqi_native_binary(alg, &src, &second, &src, nullptr, &prim, &err), QDQ_OK)
                            << err.text;
                        ASSERT_EQ(
                            run_prim(prim,
                                     {{QDQI_DNNL_SRC, &s.data}, {QDQI_DNNL_SRC1, &w.data}, {QDQI_DNNL_DST, &out.data}},
                                     &err),
                            QDQ_OK)
                            << err.text;
                        for_each(src, [&](const Dims &i) {
                            const double x = s.at(i), y = w.at_broadcast(i);
                            ASSERT_EQ(out.at(i), Nearest(alg == QDQI_DNNL_BIN_ADD   ? x + y
                                                         : alg == QDQI_DNNL_BIN_MUL ? x * y
                                                                                    : x - y,
                                                         d));
                        });
                    }
            }
}

} // namespace
