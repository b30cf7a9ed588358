// Softmax, normalisations, reductions and resizing of the native room: layouts, quantization on both sides, statistics, post-ops,
// against naive loops in double.
#include "onednn_run.h"

#include <algorithm>

using namespace onednn_run;

namespace {

#define CREATED(call, err) ASSERT_EQ(call, QDQ_OK) << (err).text

std::vector<uint8_t> Bytes(const void *data, size_t bytes) {
    const uint8_t *p = static_cast<const uint8_t *>(data);
    return std::vector<uint8_t>(p, p + bytes);
}
std::vector<uint8_t> F32(std::vector<float> v) {
    return Bytes(v.data(), v.size() * sizeof(float));
}
std::vector<uint8_t> S32(int32_t v) {
    return Bytes(&v, sizeof v);
}

// A source that may be quantized, a result that may be.
struct Ends {
    qdq_dtype src, dst;
    float src_scale = 0.04f, dst_scale = 0.01f;
    int32_t src_zp = 7, dst_zp = -5;

    bool src_quantized() const { return qdqi_dtype_is_int(src); }
    bool dst_quantized() const { return qdqi_dtype_is_int(dst); }
    double real(double stored) const { return src_quantized() ? (stored - src_zp) * double(src_scale) : stored; }
    void attr(qdqi_dnnl_attr *a) const {
        if (src_quantized()) {
            a->src.has_scale = a->src.has_zp = true;
            a->src.scale_dtype = QDQ_DTYPE_F32;
            a->src.zp_dtype = QDQ_DTYPE_S32;
        }
        if (dst_quantized()) {
            a->dst.has_scale = a->dst.has_zp = true;
            a->dst.scale_dtype = QDQ_DTYPE_F32;
            a->dst.zp_dtype = QDQ_DTYPE_S32;
        }
    }
    void expect(double got, double real_value, const std::string &what) const {
        if (dst_quantized()) {
            const double v = saturate(real_value / double(dst_scale) + dst_zp, dst);
            ASSERT_NEAR(got, v, 1.0) << what; // at a tie, one step
            const double exact = real_value / double(dst_scale) + dst_zp;
            if (std::fabs(exact - std::nearbyint(exact)) < 0.49) {
                ASSERT_EQ(got, v) << what << " " << exact;
            }
            return;
        }
        const double relative = dst == QDQ_DTYPE_F32 ? 4e-6 : dst == QDQ_DTYPE_BF16 ? 5e-3 : 1e-3;
        ASSERT_NEAR(got, real_value, relative * (1 + std::fabs(real_value))) << what;
    }
};

const Ends kEnds[] = {{QDQ_DTYPE_F32, QDQ_DTYPE_F32}, {QDQ_DTYPE_BF16, QDQ_DTYPE_F32}, {QDQ_DTYPE_F16, QDQ_DTYPE_F16},
                      {QDQ_DTYPE_F32, QDQ_DTYPE_S8},  {QDQ_DTYPE_U8, QDQ_DTYPE_F32},   {QDQ_DTYPE_S8, QDQ_DTYPE_U8},
                      {QDQ_DTYPE_U8, QDQ_DTYPE_S8}};

struct OneRun {
    Ends ends;
    qdqi_dnnl_attr attr = {};
    std::vector<uint8_t> src_scale, src_zp, dst_scale, dst_zp;
    Buffers buffers;
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;

    explicit OneRun(const Ends &e) : ends(e) {
        ends.attr(&attr);
        src_scale = F32({e.src_scale});
        dst_scale = F32({e.dst_scale});
        src_zp = S32(e.src_zp);
        dst_zp = S32(e.dst_zp);
        buffers = {{QDQI_DNNL_SCALE_SRC, &src_scale},
                   {QDQI_DNNL_ZP_SRC, &src_zp},
                   {QDQI_DNNL_SCALE_DST, &dst_scale},
                   {QDQI_DNNL_ZP_DST, &dst_zp}};
    }
};

void Fill(Tensor *t, Random *random) {
    if (qdqi_dtype_is_int(t->md.dtype))
        t->fill_all(*random);
    else
        t->fill(*random, -200, 200, 1.0 / 64);
}

std::vector<qdqi_dnnl_md> Layouts(qdq_dtype dtype, const Dims &dims) {
    std::vector<qdqi_dnnl_md> all = {dense_md(dtype, dims)};
    if (dims.size() > 2) all.push_back(channels_last_md(dtype, dims));
    return all;
}

Dims Along(Dims at, size_t d, int64_t i) {
    at[d] = i;
    return at;
}

TEST(NativeLines, SoftmaxOverEveryAxisAndLayout) {
    Random random;
    const Dims shapes[] = {{5}, {3, 70}, {2, 19, 5}, {2, 5, 4, 33}, {1, 3, 1, 130}};
    for (const Ends &ends : kEnds)
        for (const Dims &dims : shapes)
            for (const qdqi_dnnl_md &md : Layouts(ends.src, dims))
                for (size_t axis = 0; axis < dims.size(); axis++)
                    for (bool log : {false, true}) {
                        OneRun run(ends);
                        Tensor src(md);
                        qdqi_dnnl_md dst_md = md;
                        dst_md.dtype = ends.dst;
                        Tensor dst(dst_md);
                        Fill(&src, &random);
                        CREATED(qdqi_native_softmax(log ? QDQI_DNNL_LOGSOFTMAX : QDQI_DNNL_SOFTMAX, int32_t(axis),
                                                    &src.md, &dst.md, &run.attr, &run.prim, &run.err),
                                run.err);
                        run.buffers[QDQI_DNNL_SRC] = &src.data;
                        run.buffers[QDQI_DNNL_DST] = &dst.data;
                        CREATED(run_prim(run.prim, run.buffers, &run.err), run.err);
                        for_each(src.md, [&](const Dims &at) {
                            double top = -INFINITY, sum = 0;
                            for (int64_t i = 0; i < dims[axis]; i++)
                                top = std::max(top, ends.real(src.at(Along(at, axis, i))));
                            for (int64_t i = 0; i < dims[axis]; i++)
                                sum += std::exp(ends.real(src.at(Along(at, axis, i))) - top);
                            const double d = ends.real(src.at(at)) - top;
                            ends.expect(dst.at(at), log ? d - std::log(sum) : std::exp(d) / sum, "softmax");
                        });
                        if (HasFatalFailure()) return;
                    }
}

TEST(NativeLines, SoftmaxWithPostOpsLineByLine) {
    Random random;
    const Dims dims = {2, 3, 4, 21};
    Tensor src(QDQ_DTYPE_F32, dims), dst(QDQ_DTYPE_F32, dims), mul(QDQ_DTYPE_F32, {1, 3, 1, 21}),
        add(QDQ_DTYPE_F32, {2, 1, 4, 1});
    src.fill(random, -200, 200, 1.0 / 64);
    mul.fill(random, -100, 100, 1.0 / 64);
    add.fill(random, -100, 100, 1.0 / 64);
    qdqi_dnnl_attr attr = {};
    attr.n_posts = 3;
    attr.posts[0].alg = QDQI_DNNL_BIN_MUL;
    attr.posts[0].operand = mul.md;
    attr.posts[1].alg = QDQI_DNNL_BIN_ADD;
    attr.posts[1].operand = add.md;
    attr.posts[2].alg = QDQI_DNNL_ELT_RELU;
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    CREATED(qdqi_native_softmax(QDQI_DNNL_SOFTMAX, 3, &src.md, &dst.md, &attr, &prim, &err), err);
    CREATED(run_prim(prim,
                     {{QDQI_DNNL_SRC, &src.data},
                      {QDQI_DNNL_DST, &dst.data},
                      {QDQI_DNNL_POST_OP, &mul.data},
                      {QDQI_DNNL_POST_OP + 1, &add.data}},
                     &err),
            err);
    for_each(src.md, [&](const Dims &at) {
        double sum = 0;
        for (int64_t i = 0; i < dims[3]; i++)
            sum += std::exp(src.at(Along(at, 3, i)));
        const double v = std::exp(src.at(at)) / sum * mul.at_broadcast(at) + add.at_broadcast(at);
        ASSERT_NEAR(dst.at(at), std::max(v, 0.0), 1e-5);
    });
    // across the lines there is no row to give to a program
    EXPECT_EQ(qdqi_native_softmax(QDQI_DNNL_SOFTMAX, 1, &src.md, &dst.md, &attr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "post_ops");
}

// Normalises over the indices that `same` puts together.
void CheckNorm(const qdqi_native_norm &request, const Ends &ends, const qdqi_dnnl_md &md, Random *random,
               const std::function<bool(const Dims &, const Dims &)> &same,
               const std::function<int64_t(const Dims &)> &parameter, int64_t n_params, int64_t n_stats,
               const std::function<int64_t(const Dims &)> &stat) {
    OneRun run(ends);
    run.ends.dst_scale = 0.04f;
    run.dst_scale = F32({0.04f});
    Tensor src(md);
    qdqi_dnnl_md dst_md = md;
    dst_md.dtype = ends.dst;
    Tensor dst(dst_md), gamma(QDQ_DTYPE_F32, {n_params}), beta(QDQ_DTYPE_F32, {n_params}),
        mean(QDQ_DTYPE_F32, {n_stats}), variance(QDQ_DTYPE_F32, {n_stats});
    Fill(&src, random);
    gamma.fill(*random, -100, 100, 1.0 / 64);
    beta.fill(*random, -100, 100, 1.0 / 64);
    CREATED(qdqi_native_normalization(&request, &src.md, &dst.md, &run.attr, &run.prim, &run.err), run.err);
    run.buffers[QDQI_DNNL_SRC] = &src.data;
    run.buffers[QDQI_DNNL_DST] = &dst.data;
    run.buffers[QDQI_DNNL_NORM_SCALE] = &gamma.data;
    run.buffers[QDQI_DNNL_NORM_SHIFT] = &beta.data;
    run.buffers[QDQI_DNNL_NORM_MEAN] = &mean.data;
    run.buffers[QDQI_DNNL_NORM_VARIANCE] = &variance.data;
    CREATED(run_prim(run.prim, run.buffers, &run.err), run.err);
    for_each(src.md, [&](const Dims &at) {
        double sum = 0, squares = 0, n = 0;
        for_each(src.md, [&](const Dims &other) {
            if (!same(at, other)) return;
            sum += ends.real(src.at(other));
            n++;
        });
        const double m = request.rms ? 0.0 : sum / n;
        for_each(src.md, [&](const Dims &other) {
            if (same(at, other)) squares += std::pow(ends.real(src.at(other)) - m, 2);
        });
        double v = (ends.real(src.at(at)) - m) / std::sqrt(squares / n + double(request.epsilon));
        if (request.gamma) v *= gamma.flat(parameter(at));
        if (request.beta) v += beta.flat(parameter(at));
        run.ends.expect(dst.at(at), v, "norm");
        if (!request.statistics) return;
        ASSERT_NEAR(mean.flat(stat(at)), m, 1e-5 * (1 + std::fabs(m)));
        ASSERT_NEAR(variance.flat(stat(at)), squares / n, 1e-5 * (1 + squares / n));
    });
}

TEST(NativeLines, LinesFromAnyAxisOn) {
    Random random;
    const Dims dims = {2, 2, 2, 5};
    for (const Ends &ends : kEnds)
        for (int32_t axis = 0; axis < 4; axis++)
            for (int form = 0; form < 4; form++) {
                qdqi_native_norm request = {};
                request.axis = axis;
                request.epsilon = 1e-3f;
                request.rms = form == 3;
                request.gamma = form != 1;
                request.beta = form == 0 || form == 1;
                request.statistics = form < 2;
                int64_t n = 1, rows = 1;
                for (size_t d = 0; d < 4; d++)
                    (int32_t(d) < axis ? rows : n) *= dims[d];
                const auto flat = [&](const Dims &at, size_t first, size_t last) {
                    int64_t i = 0;
                    for (size_t d = first; d < last; d++)
                        i = i * dims[d] + at[d];
                    return i;
                };
                const size_t a = size_t(axis);
                CheckNorm(
                    request, ends, dense_md(ends.src, dims), &random,
                    [&](const Dims &x, const Dims &y) { return flat(x, 0, a) == flat(y, 0, a); },
                    [&](const Dims &at) { return flat(at, a, 4); }, n, rows,
                    [&](const Dims &at) { return flat(at, 0, a); });
                if (HasFatalFailure()) return;
            }
}

TEST(NativeLines, GroupsInBothLayouts) {
    Random random;
    const Dims shapes[] = {{2, 6, 3, 4}, {3, 6}, {1, 12, 5}};
    for (const Ends &ends : kEnds)
        for (const Dims &dims : shapes)
            for (const qdqi_dnnl_md &md : Layouts(ends.src, dims))
                for (int64_t groups : {int64_t(1), int64_t(2), dims[1]}) {
                    qdqi_native_norm request = {};
                    request.axis = 1;
                    request.groups = groups;
                    request.epsilon = 1e-3f;
                    request.gamma = request.beta = request.statistics = true;
                    const int64_t size = dims[1] / groups;
                    CheckNorm(
                        request, ends, md, &random,
                        [&](const Dims &x, const Dims &y) { return x[0] == y[0] && x[1] / size == y[1] / size; },
                        [&](const Dims &at) { return at[1]; }, dims[1], dims[0] * groups,
                        [&](const Dims &at) { return at[0] * groups + at[1] / size; });
                    if (HasFatalFailure()) return;
                }
}

TEST(NativeLines, BatchNormInBothLayouts) {
    Random random;
    const Dims shapes[] = {{2, 5, 3, 4}, {4, 70}, {2, 33, 5}};
    for (const Ends &ends : kEnds)
        for (const Dims &dims : shapes)
            for (const qdqi_dnnl_md &md : Layouts(ends.src, dims)) {
                OneRun run(ends);
                Tensor src(md);
                qdqi_dnnl_md dst_md = md;
                dst_md.dtype = ends.dst;
                const Dims c = {dims[1]};
                Tensor dst(dst_md), gamma(QDQ_DTYPE_F32, c), beta(QDQ_DTYPE_F32, c), mean(QDQ_DTYPE_F32, c),
                    variance(QDQ_DTYPE_F32, c);
                Fill(&src, &random);
                gamma.fill(random, -100, 100, 1.0 / 128);
                beta.fill(random, -100, 100, 1.0 / 128);
                mean.fill(random, -100, 100, 1.0 / 64);
                variance.fill(random, 1, 100, 1.0 / 16);
                CREATED(qdqi_native_batchnorm(1e-3f, false, &src.md, &dst.md, &run.attr, &run.prim, &run.err), run.err);
                run.buffers[QDQI_DNNL_SRC] = &src.data;
                run.buffers[QDQI_DNNL_DST] = &dst.data;
                run.buffers[QDQI_DNNL_NORM_SCALE] = &gamma.data;
                run.buffers[QDQI_DNNL_NORM_SHIFT] = &beta.data;
                run.buffers[QDQI_DNNL_NORM_MEAN] = &mean.data;
                run.buffers[QDQI_DNNL_NORM_VARIANCE] = &variance.data;
                CREATED(run_prim(run.prim, run.buffers, &run.err), run.err);
                for_each(src.md, [&](const Dims &at) {
                    const int64_t k = at[1];
                    const double factor = gamma.flat(k) / std::sqrt(variance.flat(k) + 1e-3);
                    ends.expect(dst.at(at), (ends.real(src.at(at)) - mean.flat(k)) * factor + beta.flat(k),
                                "batchnorm");
                });
                if (HasFatalFailure()) return;
            }
}

TEST(NativeLines, ReductionsOverEverySetOfDims) {
    Random random;
    const qdqi_dnnl_alg algs[] = {QDQI_DNNL_RED_SUM, QDQI_DNNL_RED_MEAN, QDQI_DNNL_RED_MAX, QDQI_DNNL_RED_MIN,
                                  QDQI_DNNL_RED_MUL, QDQI_DNNL_RED_L1,   QDQI_DNNL_RED_L2};
    const Dims dims = {3, 5, 2, 7};
    for (const Ends &given : kEnds)
        for (qdqi_dnnl_alg alg : algs)
            for (const qdqi_dnnl_md &md : Layouts(given.src, dims))
                for (unsigned mask = 0; mask < 16; mask++) {
                    Ends ends = given;
                    ends.dst_scale = 0.5f;
                    OneRun run(ends);
                    if (alg == QDQI_DNNL_RED_MUL && (ends.src_quantized() || ends.dst_quantized())) continue;
                    Dims kept = dims;
                    for (size_t d = 0; d < 4; d++)
                        if (mask >> d & 1) kept[d] = 1;
                    Tensor src(md), dst(ends.dst, kept);
                    Fill(&src, &random);
                    if (alg == QDQI_DNNL_RED_MUL) src.fill(random, 60, 68, 1.0 / 64);
                    CREATED(qdqi_native_reduction(alg, &src.md, &dst.md, &run.attr, &run.prim, &run.err), run.err);
                    run.buffers[QDQI_DNNL_SRC] = &src.data;
                    run.buffers[QDQI_DNNL_DST] = &dst.data;
                    CREATED(run_prim(run.prim, run.buffers, &run.err), run.err);
                    for_each(dst.md, [&](const Dims &at) {
                        double sum = 0, l1 = 0, l2 = 0, top = -INFINITY, bottom = INFINITY, product = 1, n = 0;
                        for_each(src.md, [&](const Dims &i) {
                            for (size_t d = 0; d < 4; d++)
                                if (kept[d] != 1 && i[d] != at[d]) return;
                            const double x = ends.real(src.at(i));
                            sum += x, l1 += std::fabs(x), l2 += x * x, product *= x, n++;
                            top = std::max(top, x), bottom = std::min(bottom, x);
                        });
                        const double want = alg == QDQI_DNNL_RED_SUM    ? sum
                                            : alg == QDQI_DNNL_RED_MEAN ? sum / n
                                            : alg == QDQI_DNNL_RED_MAX  ? top
                                            : alg == QDQI_DNNL_RED_MIN  ? bottom
                                            : alg == QDQI_DNNL_RED_MUL  ? product
                                            : alg == QDQI_DNNL_RED_L1   ? l1
                                                                        : std::sqrt(l2);
                        ends.expect(dst.at(at), want, "reduction " + std::to_string(int(alg)));
                    });
                    if (HasFatalFailure()) return;
                }
}

TEST(NativeLines, LargeReductionsAreSplitOverWhatIsSummed) {
    Random random;
    for (unsigned mask : {1u, 3u, 2u}) {
        const Dims dims = {300, 700};
        Tensor src(QDQ_DTYPE_S8, dims), dst(QDQ_DTYPE_F32, {mask & 1 ? 1 : 300, mask & 2 ? 1 : 700});
        src.fill_all(random);
        qdq_error err = {};
        qdqi_dnnl_prim *prim = nullptr;
        CREATED(qdqi_native_reduction(QDQI_DNNL_RED_SUM, &src.md, &dst.md, nullptr, &prim, &err), err);
        CREATED(run_prim(prim, {{QDQI_DNNL_SRC, &src.data}, {QDQI_DNNL_DST, &dst.data}}, &err), err);
        std::vector<double> want(size_t(dst.n), 0.0);
        for_each(src.md, [&](const Dims &i) {
            want[size_t((mask & 1 ? 0 : i[0]) * (mask & 2 ? 1 : 700) + (mask & 2 ? 0 : i[1]))] += src.at(i);
        });
        for (int64_t i = 0; i < dst.n; i++)
            ASSERT_EQ(dst.flat(i), want[size_t(i)]);
    }
}

TEST(NativeLines, ResamplingInBothLayoutsAndUpToThreeDims) {
    Random random;
    struct {
        Dims in, out;
    } const shapes[] = {{{2, 3, 7}, {2, 3, 17}},
                        {{2, 3, 5, 9}, {2, 3, 8, 4}},
                        {{1, 20, 4, 4}, {1, 20, 8, 8}},
                        {{1, 2, 3, 4, 5}, {1, 2, 5, 3, 9}}};
    for (const Ends &given : kEnds)
        for (const auto &shape : shapes)
            for (const qdqi_dnnl_md &md : Layouts(given.src, shape.in)) {
                Ends ends = given;
                ends.dst_scale = 0.05f;
                OneRun run(ends);
                const bool last = md.strides[1] == 1;
                Tensor src(md), dst(last ? channels_last_md(ends.dst, shape.out) : dense_md(ends.dst, shape.out));
                Fill(&src, &random);
                CREATED(
                    qdqi_native_resampling(QDQI_DNNL_RESIZE_LINEAR, &src.md, &dst.md, &run.attr, &run.prim, &run.err),
                    run.err);
                run.buffers[QDQI_DNNL_SRC] = &src.data;
                run.buffers[QDQI_DNNL_DST] = &dst.data;
                CREATED(run_prim(run.prim, run.buffers, &run.err), run.err);
                const size_t n_spatial = shape.in.size() - 2;
                for_each(dst.md, [&](const Dims &at) {
                    double sum = 0;
                    for (unsigned corner = 0; corner < 1u << n_spatial; corner++) {
                        double w = 1;
                        Dims i = at;
                        for (size_t d = 0; d < n_spatial; d++) {
                            const double n = double(shape.in[d + 2]);
                            const double v = std::min(
                                std::max((double(at[d + 2]) + 0.5) * n / double(shape.out[d + 2]) - 0.5, 0.0), n - 1);
                            const int64_t lo = int64_t(v), hi = std::min(lo + 1, shape.in[d + 2] - 1);
                            w *= corner >> d & 1 ? v - double(lo) : 1 - (v - double(lo));
                            i[d + 2] = corner >> d & 1 ? hi : lo;
                        }
                        sum += w * ends.real(src.at(i));
                    }
                    ends.expect(dst.at(at), sum, "resampling");
                });
                if (HasFatalFailure()) return;
            }
}

TEST(NativeLines, RefusalsHaveWords) {
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    const qdqi_dnnl_md f = dense_md(QDQ_DTYPE_F32, {4, 6}), s = dense_md(QDQ_DTYPE_S32, {4, 6});
    qdqi_dnnl_md turned = f;
    std::swap(turned.strides[0], turned.strides[1]);
    turned.strides[1] = 4;
    turned.strides[0] = 1;
    EXPECT_EQ(qdqi_native_softmax(QDQI_DNNL_SOFTMAX, 1, &s, &f, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "dtype");
    EXPECT_EQ(qdqi_native_softmax(QDQI_DNNL_SOFTMAX, 1, &f, &turned, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "layout");
    EXPECT_EQ(qdqi_native_groupnorm(4, 1e-3f, false, &f, &f, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "group_size");
    EXPECT_EQ(qdqi_native_batchnorm(1e-3f, true, &f, &f, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "post_ops");
    qdqi_dnnl_attr attr = {};
    attr.src.has_scale = true;
    attr.src.scale_mask = 2;
    EXPECT_EQ(qdqi_native_reduction(QDQI_DNNL_RED_SUM, &f, &f, &attr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "src_not_per_tensor");
    EXPECT_EQ(prim, nullptr);
}

} // namespace
