// The primitives without weights, against naive loops in double.
#include "onednn_run.h"

#include <algorithm>

using namespace onednn_run;

namespace {

std::vector<uint8_t> f32_bytes(const std::vector<float> &v) {
    std::vector<uint8_t> out(v.size() * sizeof(float));
    memcpy(out.data(), v.data(), out.size());
    return out;
}
std::vector<uint8_t> s32_bytes(const std::vector<int32_t> &v) {
    std::vector<uint8_t> out(v.size() * sizeof(int32_t));
    memcpy(out.data(), v.data(), out.size());
    return out;
}

#define CREATED(call, err) ASSERT_EQ(call, QDQ_OK) << (err).text

struct EltwiseCase {
    const char *name;
    qdqi_dnnl_alg alg;
    float alpha, beta;
    double (*f)(double x, double a, double b);
    bool positive; // domain
};

class OnednnEltwise : public testing::TestWithParam<EltwiseCase> {};

TEST_P(OnednnEltwise, MatchesTheFormula) {
    for (const Provider &provider : Providers()) {
        SCOPED_TRACE(provider.name);
        const EltwiseCase &c = GetParam();
        Random random;
        Tensor src(QDQ_DTYPE_F32, {3, 50}), dst(QDQ_DTYPE_F32, {3, 50});
        src.fill(random, c.positive ? 1 : -300, 300, 0.015625);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(provider.Make(Eltwise(c.alg, c.alpha, c.beta, &src.md, &dst.md), &prim, &err), err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        for (int64_t i = 0; i < src.n; i++) {
            const double want = c.f(src.flat(i), (double)c.alpha, (double)c.beta);
            EXPECT_NEAR(dst.flat(i), want, 2e-5 * std::max(1.0, std::fabs(want))) << "x = " << src.flat(i);
        }
    }
}

double logistic(double x) {
    return 1 / (1 + std::exp(-x));
}
double clip01(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

INSTANTIATE_TEST_SUITE_P(
    All, OnednnEltwise,
    testing::Values(
        EltwiseCase{"relu", QDQI_DNNL_ELT_RELU, 0.125f, 0, [](double x, double a, double) { return x < 0 ? a * x : x; },
                    false},
        EltwiseCase{"tanh", QDQI_DNNL_ELT_TANH, 0, 0, [](double x, double, double) { return std::tanh(x); }, false},
        EltwiseCase{"elu", QDQI_DNNL_ELT_ELU, 0.5f, 0,
                    [](double x, double a, double) { return x < 0 ? a * (std::exp(x) - 1) : x; }, false},
        EltwiseCase{"square", QDQI_DNNL_ELT_SQUARE, 0, 0, [](double x, double, double) { return x * x; }, false},
        EltwiseCase{"abs", QDQI_DNNL_ELT_ABS, 0, 0, [](double x, double, double) { return std::fabs(x); }, false},
        EltwiseCase{"sqrt", QDQI_DNNL_ELT_SQRT, 0, 0, [](double x, double, double) { return std::sqrt(x); }, true},
        EltwiseCase{"linear", QDQI_DNNL_ELT_LINEAR, 2, 3, [](double x, double a, double b) { return a * x + b; },
                    false},
        EltwiseCase{"softRelu", QDQI_DNNL_ELT_SOFT_RELU, 2, 0,
                    [](double x, double a, double) { return std::log1p(std::exp(a * x)) / a; }, false},
        EltwiseCase{"logistic", QDQI_DNNL_ELT_LOGISTIC, 0, 0, [](double x, double, double) { return logistic(x); },
                    false},
        EltwiseCase{"exp", QDQI_DNNL_ELT_EXP, 0, 0, [](double x, double, double) { return std::exp(x); }, false},
        EltwiseCase{"log", QDQI_DNNL_ELT_LOG, 0, 0, [](double x, double, double) { return std::log(x); }, true},
        EltwiseCase{"clip", QDQI_DNNL_ELT_CLIP, -1, 2,
                    [](double x, double a, double b) { return x < a   ? a
                                                              : x > b ? b
                                                                      : x; }, false},
        EltwiseCase{"pow", QDQI_DNNL_ELT_POW, 3, -1, [](double x, double a, double b) { return a * std::pow(x, b); },
                    true},
        EltwiseCase{"geluErf", QDQI_DNNL_ELT_GELU_ERF, 0, 0,
                    [](double x, double, double) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, false},
        EltwiseCase{"geluTanh", QDQI_DNNL_ELT_GELU_TANH, 0, 0,
                    [](double x, double, double) {
                        return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
                    },
                    false},
        EltwiseCase{"round", QDQI_DNNL_ELT_ROUND, 0, 0, [](double x, double, double) { return std::nearbyint(x); },
                    false},
        EltwiseCase{"mish", QDQI_DNNL_ELT_MISH, 0, 0,
                    [](double x, double, double) { return x * std::tanh(std::log1p(std::exp(x))); }, false},
        EltwiseCase{"hardSwish", QDQI_DNNL_ELT_HARDSWISH, 0.25f, 0.5f,
                    [](double x, double a, double b) { return x * clip01(a * x + b); }, false},
        EltwiseCase{"hardSigmoid", QDQI_DNNL_ELT_HARDSIGMOID, 0.25f, 0.5f,
                    [](double x, double a, double b) { return clip01(a * x + b); }, false},
        EltwiseCase{"swish", QDQI_DNNL_ELT_SWISH, 1.5f, 0,
                    [](double x, double a, double) { return x * logistic(a * x); }, false}),
    [](const testing::TestParamInfo<EltwiseCase> &p) { return std::string(p.param.name); });

struct BinaryCase {
    const char *name;
    qdqi_dnnl_alg alg;
    double (*f)(double, double);
    qdq_dtype src0, src1, dst;
    Dims dims1;
};

class OnednnBinary : public testing::TestWithParam<BinaryCase> {};

TEST_P(OnednnBinary, MatchesWithScalesAndBroadcast) {
    for (const Provider &provider : Providers()) {
        SCOPED_TRACE(provider.name);
        const BinaryCase &c = GetParam();
        Random random;
        Tensor a(c.src0, {2, 5, 6}), b(c.src1, c.dims1), dst(c.dst, {2, 5, 6});
        a.fill(random, c.src0 == QDQ_DTYPE_U8 ? 0 : -100, 100);
        b.fill(random, 1, 100);
        qdqi_dnnl_attr attr = {};
        attr.src.has_scale = true;
        attr.src1.has_scale = !provider.is_native; // which has no scale there
        const double scale1 = provider.is_native ? 1.0 : 2.0;
        auto s0 = f32_bytes({0.5f}), s1 = f32_bytes({2.0f});
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(provider.Make(Binary(c.alg, &a.md, &b.md, &dst.md, &attr), &prim, &err), err);
        CREATED(run_prim(prim,
                         {{QDQI_DNNL_SRC, &a.data},
                          {QDQI_DNNL_SRC1, &b.data},
                          {QDQI_DNNL_DST, &dst.data},
                          {QDQI_DNNL_SCALE_SRC, &s0},
                          {QDQI_DNNL_SCALE_SRC1, &s1}},
                         &err),
                err);
        for_each(dst.md, [&](const Dims &i) {
            const double want = saturate(c.f(a.at(i) * 0.5, b.at_broadcast(i) * scale1), c.dst);
            EXPECT_NEAR(dst.at(i), want, qdqi_dtype_is_float(c.dst) ? 1e-5 * std::fabs(want) : 0);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(All, OnednnBinary,
                         testing::Values(BinaryCase{"addU8S8Full",
                                                    QDQI_DNNL_BIN_ADD,
                                                    [](double x, double y) { return x + y; },
                                                    QDQ_DTYPE_U8,
                                                    QDQ_DTYPE_S8,
                                                    QDQ_DTYPE_U8,
                                                    {2, 5, 6}},
                                         BinaryCase{"subS8Channel",
                                                    QDQI_DNNL_BIN_SUB,
                                                    [](double x, double y) { return x - y; },
                                                    QDQ_DTYPE_S8,
                                                    QDQ_DTYPE_S8,
                                                    QDQ_DTYPE_S8,
                                                    {1, 5, 1}},
                                         BinaryCase{"mulF32Scalar",
                                                    QDQI_DNNL_BIN_MUL,
                                                    [](double x, double y) { return x * y; },
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    {1, 1, 1}},
                                         BinaryCase{"divF32",
                                                    QDQI_DNNL_BIN_DIV,
                                                    [](double x, double y) { return x / y; },
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    {2, 5, 6}},
                                         BinaryCase{"maxS8",
                                                    QDQI_DNNL_BIN_MAX,
                                                    [](double x, double y) { return x > y ? x : y; },
                                                    QDQ_DTYPE_S8,
                                                    QDQ_DTYPE_S8,
                                                    QDQ_DTYPE_F32,
                                                    {2, 5, 6}},
                                         BinaryCase{"minF32",
                                                    QDQI_DNNL_BIN_MIN,
                                                    [](double x, double y) { return x < y ? x : y; },
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    {2, 5, 6}},
                                         BinaryCase{"geF32",
                                                    QDQI_DNNL_BIN_GE,
                                                    [](double x, double y) { return x >= y ? 1.0 : 0.0; },
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    QDQ_DTYPE_F32,
                                                    {2, 5, 6}}),
                         [](const testing::TestParamInfo<BinaryCase> &p) { return std::string(p.param.name); });

struct PoolCase {
    const char *name;
    qdqi_dnnl_alg alg;
    qdq_dtype dtype;
    int64_t dilation;
};

class OnednnPooling : public testing::TestWithParam<PoolCase> {};

TEST_P(OnednnPooling, MatchesNaiveLoop) {
    for (const Provider &provider : Providers()) {
        SCOPED_TRACE(provider.name);
        const PoolCase &c = GetParam();
        Random random;
        const int64_t size = 9, kernel = 3, stride = 2, pad = 1, reach = (kernel - 1) * c.dilation + 1;
        const int64_t out = (size + 2 * pad - reach) / stride + 1;
        Tensor src(channels_last_md(c.dtype, {2, 16, size, size})), dst(channels_last_md(c.dtype, {2, 16, out, out}));
        src.fill(random, c.dtype == QDQ_DTYPE_U8 ? 0 : -128, 127);
        qdqi_dnnl_pool pool = {};
        pool.alg = c.alg;
        pool.n_spatial = 2;
        for (int d = 0; d < 2; d++) {
            pool.kernel[d] = kernel;
            pool.strides[d] = stride;
            pool.dilations[d] = c.dilation;
            pool.pads_begin[d] = pad;
            pool.pads_end[d] = (out - 1) * stride + reach - size - pad;
        }
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(provider.Make(Pooling(&pool, &src.md, &dst.md), &prim, &err), err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        for_each(dst.md, [&](const Dims &i) {
            double best = -1e30, sum = 0;
            int n = 0;
            for (int64_t y = 0; y < kernel; y++)
                for (int64_t x = 0; x < kernel; x++) {
                    const int64_t h = i[2] * stride - pad + y * c.dilation, w = i[3] * stride - pad + x * c.dilation;
                    if (h < 0 || w < 0 || h >= size || w >= size) continue;
                    best = std::max(best, src.at({i[0], i[1], h, w}));
                    sum += src.at({i[0], i[1], h, w});
                    n++;
                }
            const double want = c.alg == QDQI_DNNL_POOL_MAX               ? best
                                : c.alg == QDQI_DNNL_POOL_AVG_INCLUDE_PAD ? sum / (double)(kernel * kernel)
                                                                          : sum / n;
            const bool exact = c.alg == QDQI_DNNL_POOL_MAX;
            // an average is rounded in f32, with a reciprocal or a division: a tie may fall to either side
            EXPECT_NEAR(dst.at(i), exact ? want : saturate(want, c.dtype),
                        exact                      ? 0.0
                        : c.dtype == QDQ_DTYPE_F32 ? 1e-4
                                                   : 1.0);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(All, OnednnPooling,
                         testing::Values(PoolCase{"maxU8", QDQI_DNNL_POOL_MAX, QDQ_DTYPE_U8, 1},
                                         PoolCase{"maxS8", QDQI_DNNL_POOL_MAX, QDQ_DTYPE_S8, 1},
                                         PoolCase{"maxF32Dilated", QDQI_DNNL_POOL_MAX, QDQ_DTYPE_F32, 2},
                                         PoolCase{"avgIncludeU8", QDQI_DNNL_POOL_AVG_INCLUDE_PAD, QDQ_DTYPE_U8, 1},
                                         PoolCase{"avgExcludeS8", QDQI_DNNL_POOL_AVG_EXCLUDE_PAD, QDQ_DTYPE_S8, 1},
                                         PoolCase{"avgExcludeF32", QDQI_DNNL_POOL_AVG_EXCLUDE_PAD, QDQ_DTYPE_F32, 1}),
                         [](const testing::TestParamInfo<PoolCase> &p) { return std::string(p.param.name); });

TEST(OnednnSoftmax, MatchesBothForms) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    for (bool log : {false, true}) {
        Tensor src(QDQ_DTYPE_F32, {3, 40}), dst(QDQ_DTYPE_F32, {3, 40});
        src.fill(random, -50, 50, 0.1);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(SoftMax(log ? QDQI_DNNL_LOGSOFTMAX : QDQI_DNNL_SOFTMAX, 1, &src.md, &dst.md), &prim, &err),
                err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        for_each(dst.md, [&](const Dims &i) {
            double sum = 0;
            for (int64_t j = 0; j < 40; j++)
                sum += std::exp(src.at({i[0], j}));
            EXPECT_NEAR(dst.at(i), log ? src.at(i) - std::log(sum) : std::exp(src.at(i)) / sum, 1e-5);
        });
    }
}

TEST(OnednnSoftmax, QuantizesItsResult) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    Tensor src(QDQ_DTYPE_F32, {4, 32}), dst(QDQ_DTYPE_U8, {4, 32});
    src.fill(random, -30, 30, 0.1);
    qdqi_dnnl_attr attr = {};
    attr.dst.has_scale = true;
    auto scale = f32_bytes({1.0f / 256});
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    CREATED(kOneDnn.Make(SoftMax(QDQI_DNNL_SOFTMAX, 1, &src.md, &dst.md, &attr), &prim, &err), err);
    CREATED(
        run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}, {QDQI_DNNL_SCALE_DST, &scale}}, &err),
        err);
    for_each(dst.md, [&](const Dims &i) {
        double sum = 0;
        for (int64_t j = 0; j < 32; j++)
            sum += std::exp(src.at({i[0], j}));
        EXPECT_NEAR(dst.at(i), 256 * std::exp(src.at(i)) / sum, 0.501);
    });
}

TEST(OnednnLayernorm, MatchesWithAndWithoutAffine) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    for (bool affine : {false, true}) {
        Tensor src(QDQ_DTYPE_F32, {2, 3, 24}), dst(QDQ_DTYPE_F32, {2, 3, 24}), gamma(QDQ_DTYPE_F32, {24}),
            beta(QDQ_DTYPE_F32, {24});
        src.fill(random, -50, 50, 0.1);
        gamma.fill(random, -10, 10, 0.1);
        beta.fill(random, -10, 10, 0.1);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(Norm(QDQI_MAKE_LAYERNORM, 1e-3f, affine, &src.md, &dst.md), &prim, &err), err);
        CREATED(run_prim(prim,
                         {{QDQI_DNNL_SRC, &src.data},
                          {QDQI_DNNL_DST, &dst.data},
                          {QDQI_DNNL_NORM_SCALE, &gamma.data},
                          {QDQI_DNNL_NORM_SHIFT, &beta.data}},
                         &err),
                err);
        for_each(dst.md, [&](const Dims &i) {
            double mean = 0, var = 0;
            for (int64_t j = 0; j < 24; j++)
                mean += src.at({i[0], i[1], j}) / 24;
            for (int64_t j = 0; j < 24; j++)
                var += std::pow(src.at({i[0], i[1], j}) - mean, 2) / 24;
            double want = (src.at(i) - mean) / std::sqrt(var + 1e-3);
            if (affine) want = want * gamma.at({i[2]}) + beta.at({i[2]});
            EXPECT_NEAR(dst.at(i), want, 1e-4);
        });
    }
}

TEST(OnednnBatchnorm, MatchesWithGlobalStatistics) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    for (bool relu : {false, true}) {
        Tensor src(channels_last_md(QDQ_DTYPE_F32, {2, 8, 3, 3})), dst(src.md);
        Tensor gamma(QDQ_DTYPE_F32, {8}), beta(QDQ_DTYPE_F32, {8}), mean(QDQ_DTYPE_F32, {8}), var(QDQ_DTYPE_F32, {8});
        src.fill(random, -50, 50, 0.1);
        gamma.fill(random, -10, 10, 0.1);
        beta.fill(random, -10, 10, 0.1);
        mean.fill(random, -10, 10, 0.1);
        var.fill(random, 1, 10, 0.5);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(Norm(QDQI_MAKE_BATCHNORM, 1e-3f, relu, &src.md, &dst.md), &prim, &err), err);
        CREATED(run_prim(prim,
                         {{QDQI_DNNL_SRC, &src.data},
                          {QDQI_DNNL_DST, &dst.data},
                          {QDQI_DNNL_NORM_SCALE, &gamma.data},
                          {QDQI_DNNL_NORM_SHIFT, &beta.data},
                          {QDQI_DNNL_NORM_MEAN, &mean.data},
                          {QDQI_DNNL_NORM_VARIANCE, &var.data}},
                         &err),
                err);
        for_each(dst.md, [&](const Dims &i) {
            const Dims c = {i[1]};
            double want = (src.at(i) - mean.at(c)) / std::sqrt(var.at(c) + 1e-3) * gamma.at(c) + beta.at(c);
            if (relu && want < 0) want = 0;
            EXPECT_NEAR(dst.at(i), want, 1e-4);
        });
    }
}

TEST(OnednnReduction, MatchesEveryAlgorithm) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    for (qdqi_dnnl_alg alg : {QDQI_DNNL_RED_SUM, QDQI_DNNL_RED_MEAN, QDQI_DNNL_RED_MAX, QDQI_DNNL_RED_MIN,
                              QDQI_DNNL_RED_MUL, QDQI_DNNL_RED_L1, QDQI_DNNL_RED_L2}) {
        Tensor src(QDQ_DTYPE_F32, {3, 4, 5}), dst(QDQ_DTYPE_F32, {3, 1, 5});
        src.fill(random, -20, 20, 0.125);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(Along(QDQI_MAKE_REDUCTION, alg, &src.md, &dst.md), &prim, &err), err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        for_each(dst.md, [&](const Dims &i) {
            double sum = 0, mul = 1, l1 = 0, l2 = 0, hi = -1e30, lo = 1e30;
            for (int64_t j = 0; j < 4; j++) {
                const double v = src.at({i[0], j, i[2]});
                sum += v, mul *= v, l1 += std::fabs(v), l2 += v * v;
                hi = std::max(hi, v), lo = std::min(lo, v);
            }
            const double want = alg == QDQI_DNNL_RED_SUM    ? sum
                                : alg == QDQI_DNNL_RED_MEAN ? sum / 4
                                : alg == QDQI_DNNL_RED_MAX  ? hi
                                : alg == QDQI_DNNL_RED_MIN  ? lo
                                : alg == QDQI_DNNL_RED_MUL  ? mul
                                : alg == QDQI_DNNL_RED_L1   ? l1
                                                            : std::sqrt(l2);
            EXPECT_NEAR(dst.at(i), want, 1e-4) << "algorithm " << (int)alg;
        });
    }
}

TEST(OnednnResampling, MatchesHalfPixelCoordinates) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    for (bool linear : {false, true}) {
        Tensor src(channels_last_md(QDQ_DTYPE_F32, {1, 4, 5, 6})), dst(channels_last_md(QDQ_DTYPE_F32, {1, 4, 10, 9}));
        src.fill(random, -50, 50, 0.5);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(Along(QDQI_MAKE_RESAMPLING, linear ? QDQI_DNNL_RESIZE_LINEAR : QDQI_DNNL_RESIZE_NEAREST,
                                   &src.md, &dst.md),
                             &prim, &err),
                err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        const auto position = [](int64_t o, int64_t in, int64_t out) {
            return ((double)o + 0.5) * (double)in / (double)out - 0.5;
        };
        const auto clamp = [](int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; };
        for_each(dst.md, [&](const Dims &i) {
            const double y = position(i[2], 5, 10), x = position(i[3], 6, 9);
            double want = 0;
            if (linear) {
                const int64_t y0 = (int64_t)std::floor(y), x0 = (int64_t)std::floor(x);
                for (int64_t a = 0; a < 2; a++)
                    for (int64_t b = 0; b < 2; b++) {
                        const double wy = a == 0 ? 1 - (y - (double)y0) : y - (double)y0;
                        const double wx = b == 0 ? 1 - (x - (double)x0) : x - (double)x0;
                        want += wy * wx * src.at({i[0], i[1], clamp(y0 + a, 5), clamp(x0 + b, 6)});
                    }
            } else {
                want = src.at({i[0], i[1], clamp((int64_t)std::round(y), 5), clamp((int64_t)std::round(x), 6)});
            }
            EXPECT_NEAR(dst.at(i), want, 1e-4);
        });
    }
}

TEST(OnednnConcat, JoinsManySources) {
    for (const Provider &provider : Providers()) {
        SCOPED_TRACE(provider.name);
        Random random;
        for (uint32_t n : {1u, 3u, 40u}) {
            std::vector<Tensor> srcs;
            std::vector<qdqi_dnnl_md> mds;
            int64_t width = 0;
            for (uint32_t i = 0; i < n; i++) {
                srcs.emplace_back(QDQ_DTYPE_U8, Dims{2, 1 + (int64_t)i % 3, 4});
                srcs.back().fill(random, 0, 255);
                mds.push_back(srcs.back().md);
                width += mds.back().dims[1];
            }
            Tensor dst(QDQ_DTYPE_U8, {2, width, 4});
            qdq_error err = {};
            qdqi_dnnl_prim *prim = nullptr;
            CREATED(provider.Make(Concat(1, n, mds.data(), &dst.md), &prim, &err), err);
            Buffers buffers = {{QDQI_DNNL_DST, &dst.data}};
            for (uint32_t i = 0; i < n; i++)
                buffers[QDQI_DNNL_SRC_N + (int)i] = &srcs[i].data;
            CREATED(run_prim(prim, buffers, &err), err);
            int64_t at = 0;
            for (const Tensor &s : srcs) {
                for_each(s.md, [&](const Dims &i) { EXPECT_EQ(dst.at({i[0], at + i[1], i[2]}), s.at(i)); });
                at += s.md.dims[1];
            }
        }
    }
}

TEST(OnednnReorder, ConvertsWithScalesAndZeroPointsOnBothSides) {
    for (const Provider &provider : Providers()) {
        SCOPED_TRACE(provider.name);
        Random random;
        // per-channel dequantize, then per-tensor requantize, in one reorder with a change of layout
        Tensor src(QDQ_DTYPE_U8, {2, 6, 3, 3}), dst(channels_last_md(QDQ_DTYPE_S8, {2, 6, 3, 3}));
        src.fill_all(random);
        qdqi_dnnl_attr attr = {};
        attr.src.has_scale = attr.src.has_zp = attr.dst.has_scale = attr.dst.has_zp = true;
        attr.src.scale_mask = 2;
        const std::vector<float> s = {0.5f, 1, 2, 0.25f, 1, 4};
        auto s_scale = f32_bytes(s), d_scale = f32_bytes({2.0f});
        auto s_zp = s32_bytes({120}), d_zp = s32_bytes({-10});
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(provider.Make(Reorder(&src.md, &dst.md, &attr), &prim, &err), err);
        CREATED(run_prim(prim,
                         {{QDQI_DNNL_SRC, &src.data},
                          {QDQI_DNNL_DST, &dst.data},
                          {QDQI_DNNL_SCALE_SRC, &s_scale},
                          {QDQI_DNNL_ZP_SRC, &s_zp},
                          {QDQI_DNNL_SCALE_DST, &d_scale},
                          {QDQI_DNNL_ZP_DST, &d_zp}},
                         &err),
                err);
        for_each(src.md, [&](const Dims &i) {
            EXPECT_EQ(dst.at(i), saturate((src.at(i) - 120) * s[(size_t)i[1]] / 2 - 10, QDQ_DTYPE_S8));
        });
    }
}

TEST(OnednnReorder, GoesToAndFromAChosenLayout) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    Random random;
    Tensor src(QDQ_DTYPE_F32, {4, 100}), weights(QDQ_DTYPE_F32, {100, 70}), dst(QDQ_DTYPE_F32, {4, 70}),
        back(weights.md);
    weights.fill(random, -100, 100);
    qdq_error err = {};
    const qdqi_dnnl_md wmd = any_of(weights.md);
    qdqi_dnnl_prim *matmul = nullptr, *to = nullptr, *from = nullptr;
    CREATED(kOneDnn.Make(MatMul(&src.md, &wmd, nullptr, &dst.md), &matmul, &err), err);
    size_t key_bytes = 0;
    EXPECT_NE(qdqi_dnnl_prim_arg_key(matmul, QDQI_DNNL_WEIGHTS, &key_bytes), nullptr);
    EXPECT_GT(key_bytes, 0u);
    std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(matmul, QDQI_DNNL_WEIGHTS)), packed2(packed.size());
    CREATED(qdqi_dnnl_reorder_for(matmul, QDQI_DNNL_WEIGHTS, &weights.md, true, &to, &err), err);
    CREATED(run_prim(to, {{QDQI_DNNL_SRC, &weights.data}, {QDQI_DNNL_DST, &packed}}, &err), err);
    CREATED(qdqi_dnnl_pack(matmul, QDQI_DNNL_WEIGHTS, &weights.md, weights.data.data(), packed2.data(), &err), err);
    EXPECT_EQ(packed, packed2);
    CREATED(qdqi_dnnl_reorder_for(matmul, QDQI_DNNL_WEIGHTS, &weights.md, false, &from, &err), err);
    CREATED(run_prim(from, {{QDQI_DNNL_SRC, &packed}, {QDQI_DNNL_DST, &back.data}}, &err), err);
    EXPECT_EQ(back.data, weights.data);
    qdqi_dnnl_prim *none = nullptr;
    EXPECT_EQ(qdqi_dnnl_reorder_for(matmul, QDQI_DNNL_BIAS, &weights.md, true, &none, &err), QDQ_E_INTERNAL);
    qdqi_dnnl_prim_destroy(matmul);
}

TEST(OnednnFacade, ReportsWhatItIs) {
    if (!qdqi_dnnl_available()) {
        EXPECT_STREQ(qdqi_dnnl_version(), "none");
        qdqi_dnnl_md md = dense_md(QDQ_DTYPE_F32, {2, 2});
        qdqi_dnnl_prim *prim = nullptr;
        qdq_error err = {};
        EXPECT_EQ(kOneDnn.Make(MatMul(&md, &md, nullptr, &md), &prim, &err), QDQ_E_NO_ONEDNN);
        EXPECT_EQ(prim, nullptr);
        return;
    }
    EXPECT_GE(atoi(qdqi_dnnl_version()), 3);
    EXPECT_TRUE(qdqi_dnnl_has_dtype(QDQ_DTYPE_F32));
    EXPECT_FALSE(qdqi_dnnl_has_dtype(QDQ_DTYPE_S64));
    qdqi_dnnl_prim_destroy(nullptr);
}

TEST(OnednnFacade, RefusesWithAReason) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    const qdqi_dnnl_md f = dense_md(QDQ_DTYPE_F32, {4, 4}), zero = dense_md(QDQ_DTYPE_F32, {0, 4});
    EXPECT_EQ(kOneDnn.Make(MatMul(&zero, &f, nullptr, &zero), &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(err.text, "matmul: zero_size: src is 0x4");
    const qdqi_dnnl_md s64 = dense_md(QDQ_DTYPE_S64, {4, 4});
    EXPECT_EQ(kOneDnn.Make(Eltwise(QDQI_DNNL_ELT_ABS, 0, 0, &s64, &s64), &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_NE(strstr(err.text, "s64"), nullptr) << err.text;
    qdqi_dnnl_md huge = dense_md(QDQ_DTYPE_F32, {4, 4});
    huge.dims[0] = huge.dims[1] = INT64_MAX / 2;
    EXPECT_EQ(kOneDnn.Make(Eltwise(QDQI_DNNL_ELT_ABS, 0, 0, &huge, &huge), &prim, &err), QDQ_E_OVERFLOW);
    const qdqi_dnnl_md f3 = dense_md(QDQ_DTYPE_F32, {4, 4, 4});
    EXPECT_EQ(kOneDnn.Make(MatMul(&f, &f3, nullptr, &f), &prim, &err), QDQ_E_UNSUPPORTED) << err.text;
    const qdqi_dnnl_md s4 = dense_md(QDQ_DTYPE_S4, {4, 4});
    EXPECT_EQ(kOneDnn.Make(SoftMax(QDQI_DNNL_SOFTMAX, 1, &s4, &s4), &prim, &err), QDQ_E_UNSUPPORTED) << err.text;
    qdqi_dnnl_attr attr = {};
    attr.weights.has_scale = true;
    EXPECT_EQ(kOneDnn.Make(SoftMax(QDQI_DNNL_SOFTMAX, 1, &f, &f, &attr), &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(err.text, "softmax: has no quantized weights");
    attr = {};
    attr.src.has_scale = true;
    attr.src.scale_mask = 64;
    EXPECT_EQ(kOneDnn.Make(Reorder(&f, &f, &attr), &prim, &err), QDQ_E_UNSUPPORTED) << err.text;
    EXPECT_EQ(kOneDnn.Make(Eltwise(QDQI_DNNL_BIN_ADD, 0, 0, &f, &f), &prim, &err), QDQ_E_INTERNAL);
    EXPECT_EQ(kOneDnn.Make(MatMul(&f, nullptr, nullptr, &f), &prim, &err), QDQ_E_NULL_ARG);
    EXPECT_EQ(kOneDnn.Make(Concat(0, 0, &f, &f), &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_EQ(prim, nullptr);
}

TEST(OnednnFacade, StepsRefuseBuffersThatAreTooSmall) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    qdq_error err = {};
    qdq_engine *engine = nullptr;
    qdqi_plan *plan = nullptr;
    CREATED(qdqi_engine_create(nullptr, &engine, &err), err);
    CREATED(qdqi_plan_create(engine, &plan, &err), err);
    const qdqi_dnnl_md f = dense_md(QDQ_DTYPE_F32, {4, 4});
    qdqi_buf bufs[2] = {};
    CREATED(qdqi_plan_input(plan, 0, 64, &bufs[0], &err), err);
    CREATED(qdqi_plan_output(plan, 0, 63, &bufs[1], &err), err);
    for (uint32_t n : {2u, 1u}) {
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(kOneDnn.Make(Eltwise(QDQI_DNNL_ELT_ABS, 0, 0, &f, &f), &prim, &err), err);
        EXPECT_EQ(qdqi_dnnl_step(plan, prim, bufs, n, 0, &err), QDQ_E_INTERNAL);
    }
    qdqi_plan_destroy(&plan);
    qdqi_engine_release(engine);
}

TEST(OnednnFacade, SurvivesEveryAllocationFailure) {
    QDQ_SKIP_WITHOUT_ONEDNN();
    const qdqi_dnnl_md f = dense_md(QDQ_DTYPE_F32, {4, 4});
    for (uint64_t nth = 1;; nth++) {
        ASSERT_LT(nth, 100u);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        qdqi_alloc_fail_at(nth);
        const qdq_status st = kOneDnn.Make(MatMul(&f, &f, nullptr, &f), &prim, &err);
        qdqi_alloc_fail_at(0);
        qdqi_dnnl_prim_destroy(prim);
        if (st == QDQ_OK) break;
        ASSERT_EQ(st, QDQ_E_NO_MEMORY) << err.text;
    }
}

} // namespace
