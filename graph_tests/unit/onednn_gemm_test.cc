// Matmul and convolution of the facade against naive loops in double.
#include "onednn_run.h"

#include <algorithm>

using namespace onednn_run;

namespace {

struct Side {
    std::vector<float> scale; // empty: none
    std::vector<int32_t> zp;
};

void set_quant(qdqi_dnnl_quant *q, const Side &side, int mask) {
    q->has_scale = !side.scale.empty();
    q->scale_mask = side.scale.size() > 1 ? mask : 0;
    q->has_zp = !side.zp.empty();
    q->zp_mask = side.zp.size() > 1 ? mask : 0;
}

template <class T> std::vector<uint8_t> bytes_of(const std::vector<T> &v) {
    std::vector<uint8_t> out(v.size() * sizeof(T));
    if (!out.empty()) memcpy(out.data(), v.data(), out.size());
    return out;
}

double scale_at(const Side &s, int64_t i) {
    return s.scale.empty() ? 1.0 : (double)s.scale[s.scale.size() > 1 ? (size_t)i : 0];
}
double zp_at(const Side &s, int64_t i) {
    return s.zp.empty() ? 0.0 : (double)s.zp[s.zp.size() > 1 ? (size_t)i : 0];
}

struct MatmulCase {
    const char *name;
    qdq_dtype src, weights, dst;
    bool src_zp, dst_zp, per_channel, bias, packed;
    int64_t m, n, k;
};

class OnednnMatmul : public testing::TestWithParam<MatmulCase> {};

TEST_P(OnednnMatmul, MatchesNaiveLoop) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    if (!qdqi_dnnl_int8_exact()) GTEST_SKIP() << "int8 sums saturate on this CPU";
    const MatmulCase &c = GetParam();
    Random random;
    Tensor src(c.src, {c.m, c.k}), weights(c.weights, {c.k, c.n}), dst(c.dst, {c.m, c.n}),
        bias(QDQ_DTYPE_F32, {1, c.n});
    src.fill_all(random);
    weights.fill_all(random);
    bias.fill(random, -1000, 1000, 0.25);
    Side s, w, d;
    s.scale = {0.0625f};
    if (c.src_zp) s.zp = {c.src == QDQ_DTYPE_U8 ? 131 : -7};
    for (int64_t i = 0; i < (c.per_channel ? c.n : 1); i++)
        w.scale.push_back(0.03125f * (float)(1 + i % 3));
    d.scale = {16.0f};
    if (c.dst_zp) d.zp = {c.dst == QDQ_DTYPE_U8 ? 120 : 5};
    qdqi_dnnl_attr attr = {};
    set_quant(&attr.src, s, 0);
    set_quant(&attr.weights, w, 2);
    set_quant(&attr.dst, d, 0);

    qdq_error err = {};
    const qdqi_dnnl_md wmd = c.packed ? any_of(weights.md) : weights.md, no_bias = {};
    qdqi_dnnl_prim *prim = nullptr;
    ASSERT_EQ(kOneDnn.Make(MatMul(&src.md, &wmd, c.bias ? &bias.md : &no_bias, &dst.md, &attr), &prim, &err), QDQ_OK)
        << err.text;
    EXPECT_FALSE(qdqi_dnnl_prim_is_ref(prim)) << qdqi_dnnl_prim_impl(prim);
    EXPECT_EQ(strncmp(qdqi_dnnl_prim_impl(prim), "matmul ", 7), 0);
    std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &weights.md, weights.data.data(), packed.data(), &err), QDQ_OK)
        << err.text;
    int64_t strides[QDQ_MAX_NDIMS];
    if (!c.packed) {
        EXPECT_TRUE(qdqi_dnnl_prim_arg_is(prim, QDQI_DNNL_WEIGHTS, &weights.md));
        EXPECT_TRUE(qdqi_dnnl_prim_arg_strides(prim, QDQI_DNNL_WEIGHTS, strides));
        EXPECT_EQ(packed, weights.data);
    }
    auto s_scale = bytes_of(s.scale), s_zp = bytes_of(s.zp), w_scale = bytes_of(w.scale), d_scale = bytes_of(d.scale),
         d_zp = bytes_of(d.zp);
    ASSERT_EQ(run_prim(prim,
                       {{QDQI_DNNL_SRC, &src.data},
                        {QDQI_DNNL_WEIGHTS, &packed},
                        {QDQI_DNNL_BIAS, &bias.data},
                        {QDQI_DNNL_DST, &dst.data},
                        {QDQI_DNNL_SCALE_SRC, &s_scale},
                        {QDQI_DNNL_ZP_SRC, &s_zp},
                        {QDQI_DNNL_SCALE_WEIGHTS, &w_scale},
                        {QDQI_DNNL_SCALE_DST, &d_scale},
                        {QDQI_DNNL_ZP_DST, &d_zp}},
                       &err, 2),
              QDQ_OK)
        << err.text;
    // every scale is a power of two times 1…3, so that the sums are exact and only the last rounding is left
    for_each(dst.md, [&](const Dims &i) {
        double acc = 0;
        for (int64_t k = 0; k < c.k; k++)
            acc += (src.at({i[0], k}) - zp_at(s, 0)) * weights.at({k, i[1]});
        const double real = acc * scale_at(s, 0) * scale_at(w, i[1]) + (c.bias ? bias.at({0, i[1]}) : 0.0);
        EXPECT_EQ(dst.at(i), saturate(real / scale_at(d, 0) + zp_at(d, 0), c.dst)) << i[0] << "," << i[1];
    });
}

INSTANTIATE_TEST_SUITE_P(
    All, OnednnMatmul,
    testing::Values(
        MatmulCase{"u8s8u8Bias", QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_U8, true, true, true, true, true, 17, 33, 65},
        MatmulCase{"u8s8s8", QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_S8, true, true, false, false, true, 5, 64, 128},
        MatmulCase{"s8s8s8Plain", QDQ_DTYPE_S8, QDQ_DTYPE_S8, QDQ_DTYPE_S8, true, false, true, true, false, 8, 16, 40},
        MatmulCase{"s8s8u8", QDQ_DTYPE_S8, QDQ_DTYPE_S8, QDQ_DTYPE_U8, false, true, true, false, true, 1, 100, 64},
        MatmulCase{"u8s8f32", QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_F32, true, false, true, true, true, 9, 24, 31}),
    [](const testing::TestParamInfo<MatmulCase> &p) { return std::string(p.param.name); });

TEST(OnednnMatmulPosts, RunInOrderWithOperandsOfEveryType) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    if (!qdqi_dnnl_int8_exact()) GTEST_SKIP() << "int8 sums saturate on this CPU";
    Random random;
    const int64_t m = 12, n = 48, k = 32;
    Tensor src(QDQ_DTYPE_U8, {m, k}), weights(QDQ_DTYPE_S8, {k, n}), dst(QDQ_DTYPE_S8, {m, n});
    Tensor add(QDQ_DTYPE_S8, {m, n}), mul(QDQ_DTYPE_F32, {1, n}), sub(QDQ_DTYPE_U8, {1, 1}),
        slope(QDQ_DTYPE_F32, {1, n});
    src.fill(random, 0, 255);
    weights.fill_all(random);
    add.fill_all(random);
    mul.fill(random, 1, 4, 0.25);
    sub.fill(random, 1, 200);
    slope.fill(random, -4, 4, 0.25);
    dst.fill_all(random);
    const Tensor before = dst;
    qdqi_dnnl_attr attr = {};
    attr.dst.has_scale = true;
    attr.n_posts = 6;
    attr.posts[0] = {QDQI_DNNL_BIN_ADD, 0, 0, 0, QDQ_DTYPE_UNDEF, add.md};
    attr.posts[1] = {QDQI_DNNL_ELT_RELU, 0.5f, 0, 0, QDQ_DTYPE_UNDEF, {}};
    attr.posts[2] = {QDQI_DNNL_BIN_MUL, 0, 0, 0, QDQ_DTYPE_UNDEF, mul.md};
    attr.posts[3] = {QDQI_DNNL_BIN_SUB, 0, 0, 0, QDQ_DTYPE_UNDEF, sub.md};
    attr.posts[4] = {QDQI_DNNL_SUM, 2.0f, 0, 3, QDQ_DTYPE_UNDEF, {}};
    attr.posts[5] = {QDQI_DNNL_BIN_PRELU, 0, 0, 0, QDQ_DTYPE_UNDEF, slope.md};
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    ASSERT_EQ(kOneDnn.Make(MatMul(&src.md, &weights.md, nullptr, &dst.md, &attr), &prim, &err), QDQ_OK) << err.text;
    std::vector<uint8_t> scale(sizeof(float));
    const float step = 128.0f;
    memcpy(scale.data(), &step, sizeof step);
    ASSERT_EQ(run_prim(prim,
                       {{QDQI_DNNL_SRC, &src.data},
                        {QDQI_DNNL_WEIGHTS, &weights.data},
                        {QDQI_DNNL_DST, &dst.data},
                        {QDQI_DNNL_SCALE_DST, &scale},
                        {QDQI_DNNL_POST_OP + 0, &add.data},
                        {QDQI_DNNL_POST_OP + 2, &mul.data},
                        {QDQI_DNNL_POST_OP + 3, &sub.data},
                        {QDQI_DNNL_POST_OP + 5, &slope.data}},
                       &err),
              QDQ_OK)
        << err.text;
    for_each(dst.md, [&](const Dims &i) {
        double v = 0;
        for (int64_t j = 0; j < k; j++)
            v += src.at({i[0], j}) * weights.at({j, i[1]});
        v += add.at(i);
        v = v < 0 ? 0.5 * v : v;
        v = v * mul.at_broadcast(i) - sub.at_broadcast(i);
        v += 2.0 * (before.at(i) - 3.0);
        v = v < 0 ? v * slope.at_broadcast(i) : v;
        EXPECT_EQ(dst.at(i), saturate(v / 128.0, QDQ_DTYPE_S8)) << i[0] << "," << i[1];
    });
}

TEST(OnednnMatmulBatched, ReadsTransposedAndBroadcastOperands) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    const int64_t b = 3, m = 7, k = 20, n = 11;
    for (qdq_dtype dtype : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_U8}) {
        if (!qdqi_dnnl_has_dtype(dtype) || (dtype == QDQ_DTYPE_U8 && !qdqi_dnnl_int8_exact())) continue;
        Random random;
        Tensor src(dtype, {b, m, k}), weights(dtype == QDQ_DTYPE_U8 ? QDQ_DTYPE_S8 : dtype, {1, k, n}),
            dst(QDQ_DTYPE_F32, {b, m, n});
        weights.md.strides[1] = 1; // stored n x k
        weights.md.strides[2] = k;
        src.fill(random, 0, 15);
        weights.fill(random, -15, 15);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        ASSERT_EQ(kOneDnn.Make(MatMul(&src.md, &weights.md, nullptr, &dst.md), &prim, &err), QDQ_OK) << err.text;
        int64_t strides[QDQ_MAX_NDIMS];
        ASSERT_TRUE(qdqi_dnnl_prim_arg_strides(prim, QDQI_DNNL_WEIGHTS, strides));
        EXPECT_EQ(strides[1], 1);
        EXPECT_EQ(strides[2], k);
        ASSERT_EQ(run_prim(prim,
                           {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_WEIGHTS, &weights.data}, {QDQI_DNNL_DST, &dst.data}},
                           &err),
                  QDQ_OK)
            << err.text;
        for_each(dst.md, [&](const Dims &i) {
            double acc = 0;
            for (int64_t j = 0; j < k; j++)
                acc += src.at({i[0], i[1], j}) * weights.at({0, j, i[2]});
            EXPECT_EQ(dst.at(i), acc) << qdq_dtype_name(dtype);
        });
    }
}

struct DecompressCase {
    const char *name;
    qdq_dtype weights;
    int64_t group; // of k; 0: one scale per column
    bool zp;
};

class OnednnDecompress : public testing::TestWithParam<DecompressCase> {};

// float activations, integer weights: scales and zero points per column, or per group of rows and column
TEST_P(OnednnDecompress, MatchesNaiveLoop) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    const DecompressCase &c = GetParam();
    Random random;
    const int64_t m = 3, k = 128, n = 32, rows = c.group == 0 ? 1 : k / c.group;
    Tensor src(QDQ_DTYPE_F32, {m, k}), weights(c.weights, {k, n}), dst(QDQ_DTYPE_F32, {m, n});
    Tensor scale(QDQ_DTYPE_F32, {rows, n}), zp(QDQ_DTYPE_S8, {rows, n});
    src.fill(random, -8, 8, 0.25);
    weights.fill_all(random);
    scale.fill(random, 1, 4, 0.125);
    zp.fill(random, 0, 5);
    qdqi_dnnl_attr attr = {};
    attr.weights.has_scale = true;
    attr.weights.has_zp = c.zp;
    attr.weights.scale_mask = attr.weights.zp_mask = c.group == 0 ? 2 : 3;
    attr.weights.zp_dtype = QDQ_DTYPE_S8;
    attr.weights.group[0] = c.group;
    attr.weights.group[1] = c.group == 0 ? 0 : 1;
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    const qdqi_dnnl_md wmd = any_of(weights.md);
    ASSERT_EQ(kOneDnn.Make(MatMul(&src.md, &wmd, nullptr, &dst.md, &attr), &prim, &err), QDQ_OK) << err.text;
    std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &weights.md, weights.data.data(), packed.data(), &err), QDQ_OK)
        << err.text;
    RecordProperty("impl", qdqi_dnnl_prim_impl(prim));
    ASSERT_EQ(run_prim(prim,
                       {{QDQI_DNNL_SRC, &src.data},
                        {QDQI_DNNL_WEIGHTS, &packed},
                        {QDQI_DNNL_DST, &dst.data},
                        {QDQI_DNNL_SCALE_WEIGHTS, &scale.data},
                        {QDQI_DNNL_ZP_WEIGHTS, &zp.data}},
                       &err),
              QDQ_OK)
        << err.text;
    for_each(dst.md, [&](const Dims &i) {
        double acc = 0;
        for (int64_t j = 0; j < k; j++) {
            const Dims at = {c.group == 0 ? 0 : j / c.group, i[1]};
            acc += src.at({i[0], j}) * (weights.at({j, i[1]}) - (c.zp ? zp.at(at) : 0)) * scale.at(at);
        }
        EXPECT_NEAR(dst.at(i), acc, 1e-5 * std::max(100.0, std::fabs(acc)));
    });
}

INSTANTIATE_TEST_SUITE_P(All, OnednnDecompress,
                         testing::Values(DecompressCase{"s8Column", QDQ_DTYPE_S8, 0, false},
                                         DecompressCase{"s8ColumnZp", QDQ_DTYPE_S8, 0, true},
                                         DecompressCase{"u8GroupZp", QDQ_DTYPE_U8, 32, true},
                                         DecompressCase{"s4Group", QDQ_DTYPE_S4, 64, false},
                                         DecompressCase{"u4GroupZp", QDQ_DTYPE_U4, 32, true}),
                         [](const testing::TestParamInfo<DecompressCase> &p) { return std::string(p.param.name); });

struct ConvCase {
    const char *name;
    bool transposed;
    int64_t groups, ic, oc, stride, dilation, pad;
    qdq_dtype src, dst;
    bool src_zp;
};

class OnednnConvolution : public testing::TestWithParam<ConvCase> {};

TEST_P(OnednnConvolution, MatchesNaiveLoop) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    if (!qdqi_dnnl_int8_exact()) GTEST_SKIP() << "int8 sums saturate on this CPU";
    const ConvCase &c = GetParam();
    Random random;
    const int64_t kernel = 3, size = 8, reach = (kernel - 1) * (c.dilation + 1) + 1;
    const int64_t out_size =
        c.transposed ? (size - 1) * c.stride + reach - 2 * c.pad : (size + 2 * c.pad - reach) / c.stride + 1;
    const int64_t icg = c.ic / c.groups, ocg = c.oc / c.groups;
    Dims wdims = {ocg, icg, kernel, kernel};
    if (c.groups > 1) wdims.insert(wdims.begin(), c.groups);
    Tensor src(channels_last_md(c.src, {2, c.ic, size, size}));
    Tensor dst(channels_last_md(c.dst, {2, c.oc, out_size, out_size}));
    Tensor weights(QDQ_DTYPE_S8, wdims), bias(QDQ_DTYPE_F32, {c.oc});
    src.fill_all(random);
    weights.fill_all(random);
    bias.fill(random, -64, 64);
    qdqi_dnnl_attr attr = {};
    attr.src.has_scale = attr.weights.has_scale = attr.dst.has_scale = attr.dst.has_zp = true;
    attr.weights.scale_mask = c.groups > 1 ? 3 : 1;
    attr.src.has_zp = c.src_zp;
    std::vector<float> s_scale = {0.5f}, w_scale, d_scale = {32.0f};
    std::vector<int32_t> s_zp = {c.src == QDQ_DTYPE_U8 ? 100 : -3}, d_zp = {c.dst == QDQ_DTYPE_U8 ? 128 : 1};
    for (int64_t o = 0; o < c.oc; o++)
        w_scale.push_back(o % 2 == 0 ? 0.0625f : 0.125f);
    qdqi_dnnl_conv conv = {};
    conv.transposed = c.transposed;
    conv.n_spatial = 2;
    for (int d = 0; d < 2; d++) {
        conv.strides[d] = c.stride;
        conv.dilations[d] = c.dilation;
        conv.pads_begin[d] = conv.pads_end[d] = c.pad;
    }
    qdq_error err = {};
    const qdqi_dnnl_md wmd = any_of(weights.md);
    qdqi_dnnl_prim *prim = nullptr;
    ASSERT_EQ(kOneDnn.Make(Convolution(&conv, &src.md, &wmd, &bias.md, &dst.md, &attr), &prim, &err), QDQ_OK)
        << err.text;
    std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &weights.md, weights.data.data(), packed.data(), &err), QDQ_OK)
        << err.text;
    auto b1 = bytes_of(s_scale), b2 = bytes_of(w_scale), b3 = bytes_of(d_scale), b4 = bytes_of(s_zp),
         b5 = bytes_of(d_zp);
    ASSERT_EQ(run_prim(prim,
                       {{QDQI_DNNL_SRC, &src.data},
                        {QDQI_DNNL_WEIGHTS, &packed},
                        {QDQI_DNNL_BIAS, &bias.data},
                        {QDQI_DNNL_DST, &dst.data},
                        {QDQI_DNNL_SCALE_SRC, &b1},
                        {QDQI_DNNL_SCALE_WEIGHTS, &b2},
                        {QDQI_DNNL_SCALE_DST, &b3},
                        {QDQI_DNNL_ZP_SRC, &b4},
                        {QDQI_DNNL_ZP_DST, &b5}},
                       &err),
              QDQ_OK)
        << err.text;
    // scatter form for the transposed one, gather form for the other: both over all pairs of positions
    for_each(dst.md, [&](const Dims &i) {
        const int64_t g = i[1] / ocg;
        double acc = 0;
        for (int64_t ic = 0; ic < icg; ic++)
            for (int64_t y = 0; y < kernel; y++)
                for (int64_t x = 0; x < kernel; x++) {
                    int64_t h, w;
                    if (c.transposed) {
                        const int64_t hh = i[2] + c.pad - y * (c.dilation + 1),
                                      ww = i[3] + c.pad - x * (c.dilation + 1);
                        if (hh % c.stride != 0 || ww % c.stride != 0) continue;
                        h = hh / c.stride;
                        w = ww / c.stride;
                    } else {
                        h = i[2] * c.stride - c.pad + y * (c.dilation + 1);
                        w = i[3] * c.stride - c.pad + x * (c.dilation + 1);
                    }
                    if (h < 0 || w < 0 || h >= size || w >= size) continue;
                    Dims wi = {i[1] % ocg, ic, y, x};
                    if (c.groups > 1) wi.insert(wi.begin(), g);
                    const double q = src.at({i[0], g * icg + ic, h, w}) - (c.src_zp ? s_zp[0] : 0);
                    acc += q * weights.at(wi);
                }
        const double real = acc * s_scale[0] * w_scale[(size_t)i[1]] + bias.at({i[1]});
        EXPECT_EQ(dst.at(i), saturate(real / d_scale[0] + d_zp[0], c.dst));
    });
}

INSTANTIATE_TEST_SUITE_P(
    All, OnednnConvolution,
    testing::Values(ConvCase{"u8", false, 1, 16, 24, 1, 0, 1, QDQ_DTYPE_U8, QDQ_DTYPE_U8, true},
                    ConvCase{"s8Stride2", false, 1, 19, 33, 2, 0, 1, QDQ_DTYPE_S8, QDQ_DTYPE_S8, false},
                    ConvCase{"s8ZpDilated", false, 1, 8, 8, 1, 1, 2, QDQ_DTYPE_S8, QDQ_DTYPE_U8, true},
                    ConvCase{"u8Grouped", false, 2, 16, 32, 1, 0, 0, QDQ_DTYPE_U8, QDQ_DTYPE_S8, true},
                    ConvCase{"u8Depthwise", false, 16, 16, 16, 1, 0, 1, QDQ_DTYPE_U8, QDQ_DTYPE_U8, true},
                    ConvCase{"u8TransposedZp", true, 1, 16, 24, 2, 0, 1, QDQ_DTYPE_U8, QDQ_DTYPE_S8, true},
                    ConvCase{"s8TransposedGrouped", true, 2, 16, 32, 1, 0, 0, QDQ_DTYPE_S8, QDQ_DTYPE_S8, false},
                    ConvCase{"u8Transposed", true, 1, 16, 24, 2, 0, 1, QDQ_DTYPE_U8, QDQ_DTYPE_U8, false}),
    [](const testing::TestParamInfo<ConvCase> &p) { return std::string(p.param.name); });

// A residual block's tail: conv, + s8 residual (binary, with a scale folded into a mul), relu; and the in-place sum.
TEST(OnednnConvolutionPosts, AddResidualsOfEitherKind) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    if (!qdqi_dnnl_int8_exact()) GTEST_SKIP() << "int8 sums saturate on this CPU";
    for (bool in_place : {false, true}) {
        Random random;
        Tensor src(channels_last_md(QDQ_DTYPE_U8, {1, 32, 6, 6})), dst(channels_last_md(QDQ_DTYPE_U8, {1, 32, 6, 6}));
        Tensor weights(QDQ_DTYPE_S8, {32, 32, 1, 1}), residual(channels_last_md(QDQ_DTYPE_S8, {1, 32, 6, 6}));
        src.fill_all(random);
        weights.fill_all(random);
        residual.fill_all(random);
        qdqi_dnnl_attr attr = {};
        attr.dst.has_scale = true;
        attr.n_posts = 2;
        if (in_place)
            attr.posts[0] = {QDQI_DNNL_SUM, 64.0f, 0, 2, QDQ_DTYPE_S8, {}};
        else
            attr.posts[0] = {QDQI_DNNL_BIN_ADD, 0, 0, 0, QDQ_DTYPE_UNDEF, residual.md};
        attr.posts[1] = {QDQI_DNNL_ELT_RELU, 0, 0, 0, QDQ_DTYPE_UNDEF, {}};
        qdqi_dnnl_conv conv = {};
        conv.n_spatial = 2;
        conv.strides[0] = conv.strides[1] = 1;
        qdq_error err = {};
        const qdqi_dnnl_md wmd = any_of(weights.md);
        qdqi_dnnl_prim *prim = nullptr;
        ASSERT_EQ(kOneDnn.Make(Convolution(&conv, &src.md, &wmd, nullptr, &dst.md, &attr), &prim, &err), QDQ_OK)
            << err.text;
        std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
        ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &weights.md, weights.data.data(), packed.data(), &err),
                  QDQ_OK);
        if (in_place) dst.data = residual.data; // s8 bytes in the u8 destination
        auto scale = bytes_of(std::vector<float>{512.0f});
        ASSERT_EQ(run_prim(prim,
                           {{QDQI_DNNL_SRC, &src.data},
                            {QDQI_DNNL_WEIGHTS, &packed},
                            {QDQI_DNNL_DST, &dst.data},
                            {QDQI_DNNL_SCALE_DST, &scale},
                            {QDQI_DNNL_POST_OP + 0, &residual.data}},
                           &err),
                  QDQ_OK)
            << err.text;
        for_each(dst.md, [&](const Dims &i) {
            double v = 0;
            for (int64_t ic = 0; ic < 32; ic++)
                v += src.at({0, ic, i[2], i[3]}) * weights.at({i[1], ic, 0, 0});
            v += in_place ? 64.0 * (residual.at(i) - 2) : residual.at(i);
            EXPECT_EQ(dst.at(i), saturate((v < 0 ? 0 : v) / 512, QDQ_DTYPE_U8));
        });
    }
}

} // namespace
