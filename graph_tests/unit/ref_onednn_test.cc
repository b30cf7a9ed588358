// The reference against oneDNN's primitives, on shapes that reach their corners.
#include "ref_run.h"

#if QDQ_WITH_ONEDNN

#include <oneapi/dnnl/dnnl.hpp>

#include <unordered_map>

using namespace ref_run;
using dt = dnnl::memory::data_type;

namespace {

dnnl::engine &engine() {
    static dnnl::engine e(dnnl::engine::kind::cpu, 0);
    return e;
}

dnnl::memory::dims plain_strides(const Dims &dims) {
    dnnl::memory::dims strides(dims.size());
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0;) {
        strides[d] = stride;
        stride *= dims[d];
    }
    return strides;
}
dnnl::memory::desc md(const Dims &dims, dt type = dt::f32) {
    return dnnl::memory::desc(dims, type, plain_strides(dims));
}
dnnl::memory memory_of(const dnnl::memory::desc &desc, const std::vector<float> &v) {
    dnnl::memory m(desc, engine());
    memcpy(m.get_data_handle(), v.data(), v.size() * sizeof(float));
    return m;
}
std::vector<float> floats(const Tensor &t) {
    const Values v = t.values();
    return std::vector<float>(v.begin(), v.end());
}
dnnl::memory memory_of(const Tensor &t) {
    return memory_of(md(t.dims()), floats(t));
}
void execute(const dnnl::primitive &p, const std::unordered_map<int, dnnl::memory> &args) {
    dnnl::stream s(engine());
    p.execute(s, args);
    s.wait();
}
Values values_of(const dnnl::memory &m, int64_t n) {
    const float *f = (const float *)m.get_data_handle();
    return Values(f, f + n);
}
dnnl::memory empty(const Dims &dims) {
    return dnnl::memory(md(dims), engine());
}

Tensor random_f32(const Dims &dims, uint64_t seed) {
    Tensor t(QDQ_DTYPE_F32, dims);
    Random random(seed);
    for (int64_t i = 0; i < t.n(); i++)
        t.set(i, random.value());
    return t;
}
Tensor positive(Tensor t) {
    for (int64_t i = 0; i < t.n(); i++)
        t.set(i, std::fabs(t.get(i)) + .5);
    return t;
}
void expect_same(const Result &r, const dnnl::memory &m, double tolerance, size_t port = 0) {
    ASSERT_EQ(r.status, QDQ_OK) << r.text;
    expect_values(r, values_of(m, r.out[port].n()), tolerance, port);
}

// ---- products ----

TEST(RefOnednn, MatMul) {
    struct Shape {
        Dims a, b, bias, dst;
    };
    for (const Shape &s : std::vector<Shape>{{{7, 33}, {33, 65}, {1, 65}, {7, 65}},
                                             {{1, 300}, {300, 3}, {1, 3}, {1, 3}},
                                             {{3, 1, 9, 17}, {1, 2, 17, 5}, {1, 1, 1, 5}, {3, 2, 9, 5}},
                                             {{2, 4, 9, 17}, {2, 4, 17, 130}, {1, 1, 1, 130}, {2, 4, 9, 130}}}) {
        const Tensor a = random_f32(s.a, 1), b = random_f32(s.b, 2), bias = random_f32({s.bias.back()}, 3);
        const dnnl::matmul::primitive_desc pd(engine(), md(s.a), md(s.b), md(s.bias), md(s.dst));
        dnnl::memory dst = empty(s.dst);
        execute(dnnl::matmul(pd), {{DNNL_ARG_SRC, memory_of(a)},
                                   {DNNL_ARG_WEIGHTS, memory_of(b)},
                                   {DNNL_ARG_BIAS, memory_of(md(s.bias), floats(bias))},
                                   {DNNL_ARG_DST, dst}});
        expect_same(run("MatMul", {}, {a, b, bias}, {infer()}), dst, 1e-5);
    }
}

struct ConvShape {
    Dims src, wei; // wei: {OC, IC / groups, kernel…}
    int64_t groups;
    Dims strides, dilations, begin, end;
};
std::vector<Attr> attrs_of(const ConvShape &s, const char *weights) {
    return {Is("strides", s.strides), Is("dilations", s.dilations), Is("pads_begin", s.begin),   Is("pads_end", s.end),
            I("groups", s.groups),    S("data_format", "NCX"),      S("weights_format", weights)};
}
Dims less_one(Dims d) {
    for (int64_t &x : d)
        x--;
    return d;
}
Dims grouped(const Dims &wei, int64_t groups, size_t oc_dim) {
    Dims g = {groups};
    g.insert(g.end(), wei.begin(), wei.end());
    g[1 + oc_dim] /= groups;
    return g;
}

const std::vector<ConvShape> &conv_shapes() {
    static const std::vector<ConvShape> shapes = {
        {{2, 3, 19}, {5, 3, 4}, 1, {2}, {1}, {1}, {2}},
        {{2, 6, 9}, {4, 3, 3}, 2, {1}, {2}, {2}, {2}},
        {{1, 3, 9, 11}, {8, 3, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {{2, 8, 9, 7}, {8, 1, 3, 3}, 8, {2, 1}, {1, 1}, {1, 0}, {0, 1}},
        {{1, 6, 12, 10}, {9, 2, 3, 2}, 3, {1, 2}, {2, 3}, {2, 1}, {1, 3}},
        {{3, 16, 4, 4}, {70, 16, 1, 1}, 1, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
        {{1, 4, 5, 6, 7}, {6, 4, 3, 2, 3}, 1, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 1}},
        {{1, 4, 5, 5, 5}, {4, 1, 3, 3, 3}, 4, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    };
    return shapes;
}

TEST(RefOnednn, Convolution) {
    for (const ConvShape &s : conv_shapes()) {
        const Tensor src = random_f32(s.src, 1), wei = random_f32(s.wei, 2), bias = random_f32({s.wei[0]}, 3);
        const Result r = run("Convolution", attrs_of(s, "OIX"), {src, wei, bias}, {infer()});
        ASSERT_EQ(r.status, QDQ_OK) << r.text;
        const dnnl::memory::desc wei_md = md(s.groups == 1 ? s.wei : grouped(s.wei, s.groups, 0));
        const dnnl::convolution_forward::primitive_desc pd(
            engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, md(s.src), wei_md,
            md({s.wei[0]}), md(r.out[0].dims()), s.strides, less_one(s.dilations), s.begin, s.end);
        dnnl::memory dst = empty(r.out[0].dims());
        execute(dnnl::convolution_forward(pd), {{DNNL_ARG_SRC, memory_of(src)},
                                                {DNNL_ARG_WEIGHTS, memory_of(wei_md, floats(wei))},
                                                {DNNL_ARG_BIAS, memory_of(bias)},
                                                {DNNL_ARG_DST, dst}});
        expect_same(r, dst, 1e-5);
    }
}

// Channels last, and the weights that go with it, are the same numbers in another order.
TEST(RefOnednn, ConvolutionOfBothDataFormatsAgrees) {
    auto moved = [](const Tensor &t, bool weights) {
        std::vector<int64_t> order;
        const int64_t rank = t.desc.ndims;
        if (!weights) order.push_back(0);
        for (int64_t d = 2; d < rank; d++)
            order.push_back(d);
        order.push_back(1);
        if (weights) order.push_back(0);
        return run("StaticTranspose", {Is("order", order)}, {t}, {infer()}).out[0];
    };
    for (const ConvShape &s : conv_shapes()) {
        const Tensor src = random_f32(s.src, 1), wei = random_f32(s.wei, 2);
        std::vector<Attr> nxc = attrs_of(s, "XIO");
        nxc[5] = S("data_format", "NXC");
        const Result a = run("Convolution", attrs_of(s, "OIX"), {src, wei}, {infer()});
        const Result b = run("Convolution", nxc, {moved(src, false), moved(wei, true)}, {infer()});
        ASSERT_EQ(a.status, QDQ_OK) << a.text;
        expect_values(b, moved(a.out[0], false).values());
    }
}

TEST(RefOnednn, ConvTranspose) {
    const std::vector<ConvShape> shapes = {
        // wei: {IC, OC / groups, kernel…}
        {{2, 3, 7}, {3, 5, 4}, 1, {2}, {1}, {1}, {2}},
        {{1, 4, 5, 6}, {4, 3, 3, 2}, 1, {2, 3}, {1, 2}, {1, 0}, {0, 1}},
        {{1, 6, 4, 4}, {6, 2, 3, 3}, 3, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
        {{1, 2, 3, 3, 3}, {2, 4, 2, 2, 2}, 1, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    };
    for (const ConvShape &s : shapes) {
        const int64_t oc = s.wei[1] * s.groups;
        const Tensor src = random_f32(s.src, 1), wei = random_f32(s.wei, 2), bias = random_f32({oc}, 3);
        const Result r = run("ConvTranspose", attrs_of(s, "IOX"), {src, wei, bias}, {infer()});
        ASSERT_EQ(r.status, QDQ_OK) << r.text;
        /* oneDNN counts the dims as [g] o i x; the data lies as [g] i o x */
        Dims lies = s.wei, dims = s.wei;
        if (s.groups != 1) lies = grouped(s.wei, s.groups, 0);
        dnnl::memory::dims strides = plain_strides(lies);
        dims = lies;
        const size_t i = s.groups == 1 ? 0 : 1;
        std::swap(dims[i], dims[i + 1]);
        std::swap(strides[i], strides[i + 1]);
        const dnnl::memory::desc wei_md(dims, dt::f32, strides);
        const dnnl::deconvolution_forward::primitive_desc pd(
            engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, md(s.src), wei_md,
            md({oc}), md(r.out[0].dims()), s.strides, less_one(s.dilations), s.begin, s.end);
        dnnl::memory dst = empty(r.out[0].dims());
        execute(dnnl::deconvolution_forward(pd), {{DNNL_ARG_SRC, memory_of(src)},
                                                  {DNNL_ARG_WEIGHTS, memory_of(wei_md, floats(wei))},
                                                  {DNNL_ARG_BIAS, memory_of(bias)},
                                                  {DNNL_ARG_DST, dst}});
        expect_same(r, dst, 1e-5);
    }
}

TEST(RefOnednn, Pooling) {
    struct Shape {
        Dims src, kernel, strides, begin, end;
    };
    for (const Shape &s : std::vector<Shape>{{{2, 3, 17}, {3}, {2}, {1}, {1}},
                                             {{2, 5, 9, 8}, {3, 2}, {2, 1}, {1, 0}, {1, 1}},
                                             {{1, 2, 5, 6, 7}, {2, 3, 3}, {1, 2, 2}, {1, 1, 0}, {0, 1, 1}}}) {
        for (int kind = 0; kind < 3; kind++) {
            const Tensor src = random_f32(s.src, 1);
            std::vector<Attr> attrs = {Is("kernel", s.kernel), Is("strides", s.strides), Is("pads_begin", s.begin),
                                       Is("pads_end", s.end), S("data_format", "NCX")};
            if (kind != 0) attrs.push_back(B("exclude_pad", kind == 1));
            const Result r = run(kind == 0 ? "MaxPool" : "AvgPool", attrs, {src}, {infer()});
            ASSERT_EQ(r.status, QDQ_OK) << r.text;
            const dnnl::algorithm alg = kind == 0   ? dnnl::algorithm::pooling_max
                                        : kind == 1 ? dnnl::algorithm::pooling_avg_exclude_padding
                                                    : dnnl::algorithm::pooling_avg_include_padding;
            const dnnl::pooling_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, alg, md(s.src),
                                                           md(r.out[0].dims()), s.strides, s.kernel,
                                                           Dims(s.kernel.size(), 0), s.begin, s.end);
            dnnl::memory dst = empty(r.out[0].dims());
            execute(dnnl::pooling_forward(pd), {{DNNL_ARG_SRC, memory_of(src)}, {DNNL_ARG_DST, dst}});
            expect_same(r, dst, 1e-6);
        }
    }
}

// ---- elementwise ----

TEST(RefOnednn, Eltwise) {
    using alg = dnnl::algorithm;
    struct Row {
        const char *kind;
        alg algorithm;
        float alpha, beta;
        std::vector<Attr> attrs;
        bool positive_only;
    };
    for (const Row &row :
         std::vector<Row>{{"Abs", alg::eltwise_abs, 0, 0, {}, false},
                          {"Clamp", alg::eltwise_clip_v2, -1, 2, {F("min", -1), F("max", 2)}, false},
                          {"Elu", alg::eltwise_elu, .5f, 0, {F("alpha", .5)}, false},
                          {"Exp", alg::eltwise_exp, 0, 0, {}, false},
                          {"GELU", alg::eltwise_gelu_erf, 0, 0, {}, false},
                          {"GELU", alg::eltwise_gelu_tanh, 0, 0, {S("mode", "gelu_tanh")}, false},
                          {"HardSigmoid", alg::eltwise_hardsigmoid, .25f, .5f, {F("alpha", .25), F("beta", .5)}, false},
                          {"HardSwish", alg::eltwise_hardswish, 1.0f / 6, .5f, {}, false},
                          {"LeakyReLU", alg::eltwise_relu, .1f, 0, {F("alpha", .1)}, false},
                          {"Log", alg::eltwise_log, 0, 0, {}, true},
                          {"Mish", alg::eltwise_mish, 0, 0, {}, false},
                          {"Pow", alg::eltwise_pow, 1, 1.5f, {F("beta", 1.5)}, true},
                          {"ReLU", alg::eltwise_relu, 0, 0, {}, false},
                          {"Round", alg::eltwise_round, 0, 0, {}, false},
                          {"Sigmoid", alg::eltwise_logistic, 0, 0, {}, false},
                          {"SoftPlus", alg::eltwise_soft_relu, 2, 0, {F("beta", 2)}, false},
                          {"Sqrt", alg::eltwise_sqrt, 0, 0, {}, true},
                          {"Square", alg::eltwise_square, 0, 0, {}, false},
                          {"Swish", alg::eltwise_swish, 1.5f, 0, {F("alpha", 1.5)}, false},
                          {"Tanh", alg::eltwise_tanh, 0, 0, {}, false}}) {
        const Tensor x = row.positive_only ? positive(random_f32({3, 41}, 1)) : random_f32({3, 41}, 1);
        const dnnl::eltwise_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, row.algorithm,
                                                       md({3, 41}), md({3, 41}), row.alpha, row.beta);
        dnnl::memory dst = empty({3, 41});
        execute(dnnl::eltwise_forward(pd), {{DNNL_ARG_SRC, memory_of(x)}, {DNNL_ARG_DST, dst}});
        SCOPED_TRACE(row.kind);
        expect_same(run(row.kind, row.attrs, {x}, {infer()}), dst, 1e-5);
    }
}

TEST(RefOnednn, Binary) {
    using alg = dnnl::algorithm;
    const std::vector<std::pair<const char *, alg>> rows = {
        {"Add", alg::binary_add},         {"Subtract", alg::binary_sub}, {"Multiply", alg::binary_mul},
        {"Divide", alg::binary_div},      {"Maximum", alg::binary_max},  {"Minimum", alg::binary_min},
        {"GreaterEqual", alg::binary_ge}, {"Less", alg::binary_lt},      {"Equal", alg::binary_eq}};
    for (const auto &row : rows)
        for (const Dims &b_dims : std::vector<Dims>{{2, 3, 5}, {1, 3, 1}, {2, 1, 5}, {1, 1, 1}}) {
            const Tensor a = random_f32({2, 3, 5}, 1), b = positive(random_f32(b_dims, 2));
            const dnnl::binary::primitive_desc pd(engine(), row.second, md({2, 3, 5}), md(b_dims), md({2, 3, 5}));
            dnnl::memory dst = empty({2, 3, 5});
            execute(dnnl::binary(pd),
                    {{DNNL_ARG_SRC_0, memory_of(a)}, {DNNL_ARG_SRC_1, memory_of(b)}, {DNNL_ARG_DST, dst}});
            SCOPED_TRACE(row.first);
            expect_same(run(row.first, {}, {a, b}, {infer()}), dst, 1e-6);
        }
}

TEST(RefOnednn, Prelu) {
    for (const Dims &slope_dims : std::vector<Dims>{{1, 3, 1}, {2, 3, 5}, {1, 1, 5}}) {
        const Tensor x = random_f32({2, 3, 5}, 1), slope = random_f32(slope_dims, 2);
        const dnnl::prelu_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, md({2, 3, 5}),
                                                     md(slope_dims), md({2, 3, 5}));
        dnnl::memory dst = empty({2, 3, 5});
        execute(dnnl::prelu_forward(pd),
                {{DNNL_ARG_SRC, memory_of(x)}, {DNNL_ARG_WEIGHTS, memory_of(slope)}, {DNNL_ARG_DST, dst}});
        const Result r = run("PReLU", {B("per_channel_broadcast", false)}, {x, slope}, {infer()});
        expect_same(r, dst, 1e-6);
    }
}

// ---- normalization, softmax, reduction, resampling ----

TEST(RefOnednn, Softmax) {
    for (int axis = 0; axis < 3; axis++)
        for (bool is_log : {false, true}) {
            const Tensor x = random_f32({3, 7, 4}, 1);
            const dnnl::softmax_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference,
                                                           is_log ? dnnl::algorithm::softmax_log
                                                                  : dnnl::algorithm::softmax_accurate,
                                                           md({3, 7, 4}), md({3, 7, 4}), axis);
            dnnl::memory dst = empty({3, 7, 4});
            execute(dnnl::softmax_forward(pd), {{DNNL_ARG_SRC, memory_of(x)}, {DNNL_ARG_DST, dst}});
            expect_same(run(is_log ? "LogSoftmax" : "SoftMax", {I("axis", axis)}, {x}, {infer()}), dst, 1e-5);
        }
}

TEST(RefOnednn, LayerNorm) {
    const Dims dims = {3, 4, 33};
    const Tensor x = random_f32(dims, 1), gamma = random_f32({33}, 2), beta = random_f32({33}, 3);
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::layer_normalization_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_training, md(dims),
                                                               md(dims), 1e-3f, flags);
    dnnl::memory dst = empty(dims), mean = empty({3, 4}), variance = empty({3, 4});
    execute(dnnl::layer_normalization_forward(pd), {{DNNL_ARG_SRC, memory_of(x)},
                                                    {DNNL_ARG_SCALE, memory_of(gamma)},
                                                    {DNNL_ARG_SHIFT, memory_of(beta)},
                                                    {DNNL_ARG_MEAN, mean},
                                                    {DNNL_ARG_VARIANCE, variance},
                                                    {DNNL_ARG_DST, dst}});
    const Result r = run("LayerNorm", {F("epsilon", 1e-3)}, {x, gamma, beta}, {infer(), infer(), infer()});
    expect_same(r, dst, 1e-5);
    expect_same(r, mean, 1e-5, 1);
    expect_same(r, variance, 1e-5, 2);
}

TEST(RefOnednn, BatchNorm) {
    const Dims dims = {2, 6, 3, 5};
    const Tensor x = random_f32(dims, 1), gamma = random_f32({6}, 2), beta = random_f32({6}, 3);
    const Tensor mean = random_f32({6}, 4), variance = positive(random_f32({6}, 5));
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift |
                       dnnl::normalization_flags::use_global_stats;
    const dnnl::batch_normalization_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, md(dims),
                                                               md(dims), 1e-3f, flags);
    dnnl::memory dst = empty(dims);
    execute(dnnl::batch_normalization_forward(pd), {{DNNL_ARG_SRC, memory_of(x)},
                                                    {DNNL_ARG_SCALE, memory_of(gamma)},
                                                    {DNNL_ARG_SHIFT, memory_of(beta)},
                                                    {DNNL_ARG_MEAN, memory_of(mean)},
                                                    {DNNL_ARG_VARIANCE, memory_of(variance)},
                                                    {DNNL_ARG_DST, dst}});
    expect_same(run("BatchNormInference", {F("epsilon", 1e-3), S("data_format", "NCX")},
                    {x, gamma, beta, mean, variance}, {infer()}),
                dst, 1e-5);
}

TEST(RefOnednn, GroupNorm) {
    const Dims dims = {2, 6, 3, 5};
    const Tensor x = random_f32(dims, 1), gamma = random_f32({6}, 2), beta = random_f32({6}, 3);
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::group_normalization_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_training, md(dims),
                                                               md(dims), 3, 1e-3f, flags);
    dnnl::memory dst = empty(dims), mean = empty({2, 3}), variance = empty({2, 3});
    execute(dnnl::group_normalization_forward(pd), {{DNNL_ARG_SRC, memory_of(x)},
                                                    {DNNL_ARG_SCALE, memory_of(gamma)},
                                                    {DNNL_ARG_SHIFT, memory_of(beta)},
                                                    {DNNL_ARG_MEAN, mean},
                                                    {DNNL_ARG_VARIANCE, variance},
                                                    {DNNL_ARG_DST, dst}});
    const Result r = run("GroupNorm", {I("groups", 3), F("epsilon", 1e-3), S("data_format", "NCX")}, {x, gamma, beta},
                         {infer(), infer(), infer()});
    expect_same(r, dst, 1e-5);
    expect_same(r, mean, 1e-5, 1);
    expect_same(r, variance, 1e-5, 2);
}

TEST(RefOnednn, Reduction) {
    using alg = dnnl::algorithm;
    const std::vector<std::pair<const char *, alg>> rows = {
        {"ReduceSum", alg::reduction_sum},       {"ReduceMean", alg::reduction_mean},
        {"ReduceMax", alg::reduction_max},       {"ReduceMin", alg::reduction_min},
        {"ReduceProd", alg::reduction_mul},      {"ReduceL1", alg::reduction_norm_lp_sum},
        {"ReduceL2", alg::reduction_norm_lp_sum}};
    for (const auto &row : rows)
        for (const Dims &axes : std::vector<Dims>{{0}, {1}, {0, 2}, {0, 1, 2}}) {
            Dims dst_dims = {3, 4, 5};
            for (int64_t a : axes)
                dst_dims[(size_t)a] = 1;
            const Tensor x = positive(random_f32({3, 4, 5}, 1));
            const float p = std::string(row.first) == "ReduceL1" ? 1.0f : 2.0f;
            const dnnl::reduction::primitive_desc pd(engine(), row.second, md({3, 4, 5}), md(dst_dims), p, 0.0f);
            dnnl::memory dst = empty(dst_dims);
            execute(dnnl::reduction(pd), {{DNNL_ARG_SRC, memory_of(x)}, {DNNL_ARG_DST, dst}});
            SCOPED_TRACE(row.first);
            expect_same(run(row.first, {Is("axes", axes), B("keep_dims", true)}, {x}, {infer()}), dst, 1e-4);
        }
}

TEST(RefOnednn, Resampling) {
    struct Shape {
        Dims src, dst;
    };
    for (const Shape &s : std::vector<Shape>{{{1, 2, 5}, {1, 2, 10}},
                                             {{1, 2, 8}, {1, 2, 3}},
                                             {{2, 3, 4, 6}, {2, 3, 8, 9}},
                                             {{1, 1, 6, 6}, {1, 1, 3, 2}},
                                             {{1, 2, 3, 4, 5}, {1, 2, 6, 3, 7}}})
        for (bool linear : {false, true}) {
            const Tensor x = random_f32(s.src, 1);
            const dnnl::resampling_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference,
                                                              linear ? dnnl::algorithm::resampling_linear
                                                                     : dnnl::algorithm::resampling_nearest,
                                                              md(s.src), md(s.dst));
            dnnl::memory dst = empty(s.dst);
            execute(dnnl::resampling_forward(pd), {{DNNL_ARG_SRC, memory_of(x)}, {DNNL_ARG_DST, dst}});
            static const char *const names[] = {"linear", "bilinear", "trilinear"};
            const Dims sizes(s.dst.begin() + 2, s.dst.end());
            expect_same(run("Interpolate",
                            {S("mode", linear ? names[sizes.size() - 1] : "nearest"), Is("sizes", sizes),
                             S("data_format", "NCX")},
                            {x}, {infer()}),
                        dst, 1e-5);
        }
}

// ---- quantization by reorder: values that are no ties, where the order of scale and zero point cannot show ----

TEST(RefOnednn, QuantizingReorder) {
    const float scale = .25f;
    const int32_t zp = 5;
    Tensor x = random_f32({16, 33}, 1);
    for (int64_t i = 0; i < x.n(); i++)
        x.set(i, x.get(i) * 20);
    dnnl::primitive_attr attr;
    attr.set_scales_mask(DNNL_ARG_DST, 0);
    attr.set_zero_points_mask(DNNL_ARG_DST, 0);
    const dnnl::reorder::primitive_desc pd(engine(), md({16, 33}), engine(), md({16, 33}, dt::u8), attr);
    dnnl::memory dst(md({16, 33}, dt::u8), engine()), zps(md({1}, dt::s32), engine());
    *(int32_t *)zps.get_data_handle() = zp;
    execute(dnnl::reorder(pd), {{DNNL_ARG_SRC, memory_of(x)},
                                {DNNL_ARG_DST, dst},
                                {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, memory_of(md({1}), {scale})},
                                {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, zps}});
    const Result r = run("Quantize", {Fs("scales", {scale}), Is("zps", {zp})}, {x}, {infer(QDQ_DTYPE_U8)});
    ASSERT_EQ(r.status, QDQ_OK) << r.text;
    EXPECT_EQ(memcmp(dst.get_data_handle(), r.out[0].bytes.data(), r.out[0].bytes.size()), 0);
}

TEST(RefOnednn, DequantizingReorder) {
    Random random;
    Tensor q(QDQ_DTYPE_S8, {16, 33});
    for (int64_t i = 0; i < q.n(); i++)
        q.set(i, (double)random.range(-128, 127));
    const std::vector<float> scales = [] {
        std::vector<float> s;
        for (int i = 0; i < 33; i++)
            s.push_back(.01f * (float)(i + 1));
        return s;
    }();
    dnnl::primitive_attr attr;
    attr.set_scales_mask(DNNL_ARG_SRC, 1 << 1);
    const dnnl::reorder::primitive_desc pd(engine(), md({16, 33}, dt::s8), engine(), md({16, 33}), attr);
    dnnl::memory src(md({16, 33}, dt::s8), engine()), dst = empty({16, 33});
    memcpy(src.get_data_handle(), q.bytes.data(), q.bytes.size());
    execute(
        dnnl::reorder(pd),
        {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}, {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, memory_of(md({33}), scales)}});
    expect_same(run("Dequantize", {S("qtype", "per_channel"), Fs("scales", scales)}, {q}, {infer()}), dst, 0);
}

} // namespace

#endif
