#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/conv/conv.h"
#include "kernels/post/post.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include <algorithm>

namespace {

size_t RoundUp(size_t n) {
    return (n + 63) / 64 * 64;
}

struct Geometry {
    bool transposed = false;
    int64_t n = 1, groups = 1, ic = 1, oc = 1;
    int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    int64_t pad_begin[3] = {0, 0, 0}, pad_end[3] = {0, 0, 0};
    int64_t gap = 0; // elements between the pixels of the source

    int64_t Out(int a) const {
        const int64_t window = (kernel[a] - 1) * dilation[a] + 1;
        return transposed ? (in[a] - 1) * stride[a] + window - pad_begin[a] - pad_end[a]
                          : (in[a] + pad_begin[a] + pad_end[a] - window) / stride[a] + 1;
    }
    bool IsOne() const {
        for (int a = 0; a < 3; a++) {
            const int64_t window = (kernel[a] - 1) * dilation[a] + 1;
            if (Out(a) < 1 || (!transposed && in[a] + pad_begin[a] + pad_end[a] < window)) return false;
        }
        return true;
    }
    std::string Name() const {
        std::string s = transposed ? "transposed" : "convolution";
        auto add = [&](const char *what, const int64_t *v) {
            s += std::string(" ") + what;
            for (int a = 0; a < 3; a++)
                s += (a ? "x" : " ") + std::to_string(v[a]);
        };
        s += " n" + std::to_string(n) + " g" + std::to_string(groups) + " ic" + std::to_string(ic) + " oc" +
             std::to_string(oc) + " gap" + std::to_string(gap);
        add("in", in), add("kernel", kernel), add("stride", stride), add("dilation", dilation);
        add("pads", pad_begin), add("to", pad_end);
        return s;
    }
};

// Types, data, and the sums as the header's formula says them.
struct Conv {
    Geometry g;
    qk_conv conv = {};
    std::vector<uint8_t> weights;
    std::vector<int32_t> zps, bias;
    int32_t src_zp = 0;
    size_t n_pixels = 0, n_src = 0;
    std::vector<double> src_values, weight_values, sums, magnitude;

    size_t WeightAt(int64_t group, int64_t o, int64_t i, const int64_t *k) const {
        return size_t((((group * g.oc + o) * g.ic + i) * g.kernel[0] + k[0]) * g.kernel[1] + k[1]) *
                   size_t(g.kernel[2]) +
               size_t(k[2]);
    }
    void Describe(qdq_dtype src, qdq_dtype w) {
        conv = {};
        conv.src = src, conv.weights = w, conv.transposed = g.transposed;
        conv.n = g.n, conv.groups = g.groups, conv.ic = g.ic, conv.oc = g.oc;
        for (int a = 0; a < 3; a++) {
            conv.in[a] = g.in[a], conv.out[a] = g.Out(a), conv.kernel[a] = g.kernel[a];
            conv.stride[a] = g.stride[a], conv.dilation[a] = g.dilation[a], conv.pad_begin[a] = g.pad_begin[a];
        }
        conv.src_stride = g.groups * g.ic + g.gap;
        conv.has_weights_zp = !zps.empty();
    }
    void Compute() {
        const int64_t oc = g.groups * g.oc;
        int64_t out[3] = {g.Out(0), g.Out(1), g.Out(2)};
        n_pixels = size_t(g.n * out[0] * out[1] * out[2]);
        sums.assign(n_pixels * size_t(oc), 0.0);
        magnitude = sums;
        for (size_t i = 0; i < sums.size() && !bias.empty(); i++)
            sums[i] = bias[i % bias.size()];
        const int64_t src_stride = g.groups * g.ic + g.gap;
        for (size_t p = 0; p < n_pixels; p++)
            for (int64_t kd = 0; kd < g.kernel[0]; kd++)
                for (int64_t kh = 0; kh < g.kernel[1]; kh++)
                    for (int64_t kw = 0; kw < g.kernel[2]; kw++) {
                        const int64_t o[3] = {int64_t(p) / (out[1] * out[2]) % out[0], int64_t(p) / out[2] % out[1],
                                              int64_t(p) % out[2]};
                        const int64_t k[3] = {kd, kh, kw};
                        int64_t x[3];
                        bool inside = true;
                        for (int a = 0; a < 3; a++) {
                            x[a] = o[a] * g.stride[a] - g.pad_begin[a] + k[a] * g.dilation[a];
                            if (g.transposed) {
                                x[a] = o[a] + g.pad_begin[a] - k[a] * g.dilation[a];
                                inside = inside && x[a] % g.stride[a] == 0;
                                x[a] /= g.stride[a];
                            }
                            inside = inside && x[a] >= 0 && x[a] < g.in[a];
                        }
                        if (!inside) continue;
                        const int64_t image = int64_t(p) / (out[0] * out[1] * out[2]);
                        const int64_t pixel = ((image * g.in[0] + x[0]) * g.in[1] + x[1]) * g.in[2] + x[2];
                        for (int64_t ch = 0; ch < oc; ch++) {
                            const int64_t group = ch / g.oc;
                            const int32_t zw = zps.empty() ? 0 : zps[zps.size() == 1 ? 0 : size_t(ch)];
                            for (int64_t i = 0; i < g.ic; i++) {
                                const double v = src_values[size_t(pixel * src_stride + group * g.ic + i)] - src_zp;
                                const double w = weight_values[WeightAt(group, ch % g.oc, i, k)] - zw;
                                sums[p * size_t(oc) + size_t(ch)] += v * w;
                                magnitude[p * size_t(oc) + size_t(ch)] += std::fabs(v * w);
                            }
                        }
                    }
    }
};

// What comes out, and how often each sum was handed over.
struct Result {
    const Conv *c;
    std::vector<double> sums;
    std::vector<int> times;
};

void Finish(void *arg, void *sums, size_t stride, int64_t first, size_t n_pixels, int64_t channel, size_t n_channels) {
    Result *r = static_cast<Result *>(arg);
    const size_t oc = size_t(r->c->g.groups * r->c->g.oc);
    for (size_t i = 0; i < n_pixels; i++)
        for (size_t j = 0; j < n_channels; j++) {
            const size_t at = (size_t(first) + i) * oc + size_t(channel) + j, from = i * stride + j;
            ASSERT_LT(at, r->sums.size());
            r->sums[at] = r->c->conv.is_float ? double(static_cast<float *>(sums)[from])
                                              : double(static_cast<int32_t *>(sums)[from]);
            r->times[at]++;
        }
    // the caller may do with them what it likes
    for (size_t i = 0; i < n_pixels; i++)
        memset(static_cast<int32_t *>(sums) + i * stride, 0xa5, stride * 4);
}

class Convolution : public testing::Test {
  protected:
    Convolution() : before_(qk_isa_cap()) {}
    ~Convolution() override { qk_isa_set_cap(before_); }

    static bool IsFloat(qdq_dtype d) { return d == QDQ_DTYPE_F32 || d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16; }
    static size_t Bytes(qdq_dtype d) { return d == QDQ_DTYPE_F32 ? 4 : IsFloat(d) ? 2 : 1; }

    // Random bytes that are numbers of the type, and what they mean.
    static void Random(qdq_dtype type, size_t n, uint64_t *seed, uint8_t *out, std::vector<double> *values) {
        values->resize(n);
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = kd_next(seed);
            const int32_t small = int32_t(bits % 255) - 127;
            const float f = float(small) / 64.0f;
            uint32_t word;
            memcpy(&word, &f, 4);
            if (type == QDQ_DTYPE_F32) {
                memcpy(out + 4 * i, &f, 4);
                (*values)[i] = f;
            } else if (type == QDQ_DTYPE_BF16) {
                const uint16_t half = uint16_t(word >> 16); // seven bits: exact
                memcpy(out + 2 * i, &half, 2);
                (*values)[i] = f;
            } else if (type == QDQ_DTYPE_F16) {
                const uint32_t e = (word >> 23) & 255;
                const uint16_t half =
                    small == 0 ? 0 : uint16_t((word >> 16 & 0x8000) | ((e - 112) << 10) | (word >> 13 & 1023));
                memcpy(out + 2 * i, &half, 2);
                (*values)[i] = f;
            } else { // the extremes often: pairs of them are what saturates elsewhere
                out[i] = bits % 5 == 0 ? (type == QDQ_DTYPE_U8 ? 255 : 128) : uint8_t(bits >> 8);
                (*values)[i] = type == QDQ_DTYPE_U8 ? out[i] : int8_t(out[i]);
            }
        }
    }

    void Check(const Geometry &g, qdq_dtype src, qdq_dtype weights, int32_t src_zp, std::vector<int32_t> zps,
               uint64_t seed) {
        SCOPED_TRACE(g.Name() + " " + qdq_dtype_name(src) + " " + qdq_dtype_name(weights) + " zp " +
                     std::to_string(src_zp) + " and " + std::to_string(zps.size()));
        Conv c;
        c.g = g;
        c.zps = std::move(zps);
        c.src_zp = src_zp;
        if (!IsFloat(src) && seed % 2 == 0)
            for (int64_t i = 0; i < g.groups * g.oc; i++)
                c.bias.push_back(int32_t(kd_next(&seed)) / 4096);
        const size_t pixels = size_t(g.n * g.in[0] * g.in[1] * g.in[2]);
        const size_t n_src = pixels == 0 ? 0 : (pixels - 1) * size_t(g.groups * g.ic + g.gap) + size_t(g.groups * g.ic);
        GuardedBytes data(n_src * Bytes(src));
        Random(src, n_src, &seed, data.at_end(), &c.src_values);
        const size_t n_weights = size_t(g.groups * g.oc * g.ic * g.kernel[0] * g.kernel[1] * g.kernel[2]);
        c.weights.resize(n_weights * Bytes(weights));
        Random(weights, n_weights, &seed, c.weights.data(), &c.weight_values);
        for (size_t i = 0; i < n_weights && large_weights_ > 0; i++) {
            if (kd_next(&seed) % large_weights_ == 0) continue; // stays as it is
            c.weights[i] = uint8_t(int8_t(c.weights[i]) / 4 + (weights == QDQ_DTYPE_U8 ? 128 : 0));
            c.weight_values[i] = weights == QDQ_DTYPE_U8 ? c.weights[i] : int8_t(c.weights[i]);
        }
        c.Compute();
        const int64_t kernel = g.kernel[0] * g.kernel[1] * g.kernel[2];
        const qk_conv_weights w = {
            c.weights.data(), g.oc * g.ic * kernel, g.ic * kernel, kernel, {g.kernel[1] * g.kernel[2], g.kernel[2], 1}};
        int seen = 0;
        for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
            if (!qk_isa_host_has(qk_isa(isa))) continue;
            qk_isa_set_cap(qk_isa(isa));
            c.Describe(src, weights);
            ASSERT_TRUE(qk_conv_init(&c.conv));
            if (qk_conv_isa(&c.conv) != isa) continue;
            SCOPED_TRACE(qk_isa_name(qk_isa(isa)));
            seen++;
            Run(c, w, data.at_end());
            if (HasFatalFailure()) return;
        }
        EXPECT_GE(seen, 1);
    }

    uint64_t results_seed_ = 77;
    int results_ = 0;            // made in registers
    uint32_t large_weights_ = 0; // 0: any weights; else only one of so many may be large

  private:
    void Run(const Conv &c, const qk_conv_weights &w, const uint8_t *src) {
        // ends at the guard, starts at a multiple of 64
        GuardedBytes packed(RoundUp(c.conv.packed_bytes)), terms(RoundUp(c.conv.terms_bytes)),
            scratch(RoundUp(c.conv.scratch_bytes));
        qk_conv_pack(&c.conv, &w, packed.at_end());
        qk_conv_run run = {};
        run.src = src, run.packed = packed.at_end(), run.terms = terms.at_end(), run.src_zp = c.src_zp;
        if (!c.conv.is_float)
            run.use_weights_zp =
                qk_conv_terms(&c.conv, packed.at_end(), c.src_zp, c.zps.empty() ? nullptr : c.zps.data(), c.zps.size(),
                              c.bias.empty() ? nullptr : c.bias.data(), terms.at_end());
        Result r = {&c, std::vector<double>(c.sums.size(), -7e7), std::vector<int>(c.sums.size())};
        run.finish = Finish;
        run.arg = &r;
        // tasks in two parts, the second first
        const size_t half = c.conv.n_tasks / 2;
        memset(scratch.at_end(), 0x7f, c.conv.scratch_bytes);
        qk_conv_run_tasks(&c.conv, &run, half, c.conv.n_tasks - half, scratch.at_end());
        qk_conv_run_tasks(&c.conv, &run, 0, half, scratch.at_end());
        for (size_t i = 0; i < c.sums.size(); i++) {
            ASSERT_EQ(r.times[i], 1) << "sum " << i;
            if (c.conv.is_float)
                ASSERT_NEAR(r.sums[i], c.sums[i], c.magnitude[i] * 1e-4) << "sum " << i;
            else
                ASSERT_EQ(r.sums[i], c.sums[i]) << "sum " << i;
        }
        if (run.use_weights_zp) return;
        for (int i = 0; i < 3 && !HasFatalFailure(); i++)
            CheckResults(c, run, r, terms.at_end(), scratch.at_end());
    }

    // Results made of sums in registers are, to the byte, what kernels/post makes of the sums in memory.
    void CheckResults(const Conv &c, qk_conv_run run, const Result &sums, void *terms, void *scratch) {
        const size_t oc = size_t(c.g.groups * c.g.oc), gap = results_seed_ % 3 == 0 ? 0 : 5, stride = oc + gap;
        auto pick = [&](uint32_t n) { return kd_next(&results_seed_) % n; };
        qk_post post = {};
        post.acc = c.conv.is_float ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32;
        post.dst = c.conv.is_float || pick(4) == 0 ? QDQ_DTYPE_F32 : pick(2) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
        const bool to_bytes = post.dst != QDQ_DTYPE_F32;
        post.scale = to_bytes || pick(3) ? pick(3) ? QK_POST_SCALE_COL : QK_POST_SCALE_COMMON : QK_POST_SCALE_NONE;
        if (pick(2)) post.bias = QDQ_DTYPE_F32;
        switch (pick(3)) {
        case 0: post.steps[post.n_steps++].op = QK_POST_RELU; break;
        case 1:
            if (to_bytes) {
                qk_post_step *s = &post.steps[post.n_steps++];
                s->op = QK_POST_CLIP, s->alpha = float(pick(100)) - 60.3f, s->beta = s->alpha + float(pick(90));
            }
            break;
        default: break;
        }
        if (to_bytes && pick(2)) post.steps[post.n_steps++].op = QK_POST_ROUND;
        post.dst_has_zp = to_bytes && pick(2);
        const size_t elem = to_bytes ? 1 : 4;
        std::vector<float> scale(oc), bias(oc);
        const bool is_large = pick(8) == 0;
        for (size_t i = 0; i < oc; i++) { // some ties: powers of two
            scale[i] = is_large ? 3e8f : pick(3) == 0 ? 0x1p-6f : 0.0007f * float(1 + pick(9));
            bias[i] = pick(9) == 0 ? -0.0f : float(int32_t(pick(4000)) - 2000) / 16.0f;
        }
        GuardedBytes made(((c.n_pixels - 1) * stride + oc) * elem);
        std::vector<uint8_t> expected(made.size(), 0x5a);
        memset(made.at_end(), 0x5a, made.size());
        qk_post_args args = {};
        args.scale_common = post.scale == QK_POST_SCALE_COL ? 0.75f : 0.0123f, args.scale = scale.data(),
        args.bias = bias.data();
        args.dst_zp = post.dst == QDQ_DTYPE_U8 ? int32_t(pick(256)) : int32_t(pick(256)) - 128;
        args.dst = made.at_end();
        args.dst_stride = c.n_pixels > 1 || gap > 0 ? ptrdiff_t(stride) : 0; // a lone pixel may have any
        qk_plain plain;
        ASSERT_TRUE(qk_post_plain(&post, &args, &plain));
        if (!qk_conv_plain(&c.conv, &plain, terms)) {
            EXPECT_TRUE((is_large && to_bytes) || !c.conv.ends);
            return;
        }
        results_++;
        run.plain = &plain;
        run.finish = nullptr;
        const size_t half = c.conv.n_tasks / 2;
        memset(scratch, 0x7f, c.conv.scratch_bytes);
        qk_conv_run_tasks(&c.conv, &run, half, c.conv.n_tasks - half, scratch);
        qk_conv_run_tasks(&c.conv, &run, 0, half, scratch);
        std::vector<int32_t> acc(sums.sums.size());
        for (size_t i = 0; i < acc.size(); i++) {
            const float f = float(sums.sums[i]);
            acc[i] = int32_t(sums.sums[i]);
            if (c.conv.is_float) memcpy(&acc[i], &f, 4);
        }
        args.dst = expected.data();
        qk_post_choose(&post, nullptr)(&post, &args, acc.data(), oc, 0, c.n_pixels, 0, oc);
        ASSERT_EQ(memcmp(made.at_end(), expected.data(), expected.size()), 0)
            << qdq_dtype_name(post.dst) << " scale " << post.scale << " bias " << post.bias << " steps "
            << post.n_steps;
    }
    qk_isa before_;
};

const qdq_dtype kBytes[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};

int32_t ZeroPoint(qdq_dtype d, uint64_t *seed) {
    const int32_t v = int32_t(kd_next(seed) % 256);
    return d == QDQ_DTYPE_U8 ? v : v - 128;
}

int64_t Pick(uint64_t *seed, std::initializer_list<int64_t> of) {
    return of.begin()[kd_next(seed) % of.size()];
}

Geometry RandomGeometry(uint64_t *seed, bool depthwise, bool transposed) {
    for (;;) {
        Geometry g;
        g.transposed = transposed;
        const int64_t n_axes = Pick(seed, {1, 2, 2, 2, 3});
        for (int64_t a = 3 - n_axes; a < 3; a++) {
            g.in[a] = Pick(seed, {1, 2, 3, 5, 7, 8, 11, n_axes < 3 ? 19 : 4});
            g.kernel[a] = Pick(seed, {1, 2, 3, 3, 5, 7});
            g.stride[a] = Pick(seed, {1, 1, 2, 3, 9});
            g.dilation[a] = Pick(seed, {1, 1, 1, 2, 4});
            g.pad_begin[a] = Pick(seed, {0, 0, 1, 2, 3, 13}); // 13: wider than most data
            g.pad_end[a] = Pick(seed, {0, 0, 1, 2, 9});
        }
        g.n = Pick(seed, {1, 1, 2});
        g.gap = Pick(seed, {0, 0, 0, 5});
        if (depthwise) {
            g.groups = Pick(seed, {1, 7, 16, 33, 64, 65, 100, 128});
        } else {
            g.groups = Pick(seed, {1, 1, 1, 2, 6});
            g.ic = Pick(seed, {1, 2, 3, 4, 7, 16, 20, 33});
            g.oc = Pick(seed, {1, 2, 5, 8, 16, 17, 40, 64, 70, 130});
        }
        if (!g.IsOne()) continue;
        const int64_t work =
            g.n * g.Out(0) * g.Out(1) * g.Out(2) * g.groups * g.oc * g.ic * g.kernel[0] * g.kernel[1] * g.kernel[2];
        if (work < 600000) return g;
    }
}

std::vector<int32_t> WeightZeroPoints(const Geometry &g, qdq_dtype w, uint64_t *seed) {
    const size_t n = size_t(Pick(seed, {0, 0, 1, g.groups * g.oc}));
    std::vector<int32_t> zps(n);
    for (int32_t &z : zps)
        z = ZeroPoint(w, seed);
    return zps;
}

TEST_F(Convolution, DepthwiseIsExactOnEveryLevel) {
    uint64_t seed = 11;
    for (int i = 0; i < 300; i++) {
        const qdq_dtype src = kBytes[i % 2], w = kBytes[i / 2 % 2];
        const Geometry g = RandomGeometry(&seed, true, false);
        Check(g, src, w, i % 3 == 0 ? 0 : ZeroPoint(src, &seed), WeightZeroPoints(g, w, &seed), kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

TEST_F(Convolution, AnyGroupsAreExactOnEveryLevel) {
    uint64_t seed = 12;
    for (int i = 0; i < 400; i++) {
        const qdq_dtype src = kBytes[i % 2], w = kBytes[i / 2 % 2];
        const Geometry g = RandomGeometry(&seed, false, false);
        Check(g, src, w, i % 3 == 0 ? 0 : ZeroPoint(src, &seed), WeightZeroPoints(g, w, &seed), kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

// Groups of as many channels out as in have a way of their own, as one channel has; windows of 3 x 3, and of 5 x 5, another one.
TEST_F(Convolution, NarrowGroupsAreExactOnEveryLevel) {
    uint64_t seed = 18;
    for (int i = 0; i < 240; i++) {
        const qdq_dtype src = kBytes[i % 2], w = kBytes[i / 2 % 2];
        Geometry g = RandomGeometry(&seed, true, false);
        g.ic = g.oc = Pick(&seed, {1, 1, 4, 4, 8, 8});
        const int64_t window = g.ic == 1 ? Pick(&seed, {3, 5}) : 3;
        if (i % 3 != 0)
            for (int a = 1; a < 3; a++) {
                g.kernel[a] = window, g.dilation[a] = 1, g.stride[a] = Pick(&seed, {1, 2});
                g.in[a] = Pick(&seed, {1, 2, 3, 6, 9, 14});
                g.pad_begin[a] = Pick(&seed, {0, 1, 2, 4}), g.pad_end[a] = Pick(&seed, {1, 2});
            }
        if (i % 3 != 0) g.in[0] = g.kernel[0] = g.stride[0] = g.dilation[0] = 1, g.pad_begin[0] = g.pad_end[0] = 0;
        g.groups = g.ic == 1 ? Pick(&seed, {3, 16, 24, 40, 64, 96, 130}) : Pick(&seed, {2, 3, 4, 5, 8, 13, 17});
        if (!g.IsOne()) continue;
        Check(g, src, w, i % 5 == 0 ? 0 : ZeroPoint(src, &seed), WeightZeroPoints(g, w, &seed), kd_next(&seed));
        if (i % 4 == 1 && !HasFatalFailure()) Check(g, QDQ_DTYPE_F32, QDQ_DTYPE_F32, 0, {}, kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

TEST_F(Convolution, TransposedIsExactOnEveryLevel) {
    uint64_t seed = 13;
    for (int i = 0; i < 200; i++) {
        const qdq_dtype src = kBytes[i % 2], w = kBytes[i / 2 % 2];
        const Geometry g = RandomGeometry(&seed, i % 5 == 0, true);
        Check(g, src, w, i % 3 == 0 ? 0 : ZeroPoint(src, &seed), WeightZeroPoints(g, w, &seed), kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

TEST_F(Convolution, FloatsOfEveryType) {
    uint64_t seed = 14;
    const qdq_dtype types[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    for (int i = 0; i < 240; i++) {
        const Geometry g = RandomGeometry(&seed, i % 3 == 0, i % 4 == 1);
        Check(g, types[i % 3 == 0 ? i / 3 % 3 : i % 3], types[i % 3 == 0 ? i / 3 % 3 : i % 3], 0, {}, kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

// The shapes of which networks are made, small: many rows, several panels, splits, fused taps.
TEST_F(Convolution, ShapesOfNetworks) {
    uint64_t seed = 15;
    Geometry first;
    first.ic = 3, first.oc = 64, first.in[1] = 30, first.in[2] = 30, first.kernel[1] = first.kernel[2] = 7;
    first.stride[1] = first.stride[2] = 2;
    first.pad_begin[1] = first.pad_begin[2] = first.pad_end[1] = first.pad_end[2] = 3;
    Geometry square = first;
    square.ic = 32, square.oc = 96, square.in[1] = square.in[2] = 14, square.kernel[1] = square.kernel[2] = 3;
    square.stride[1] = square.stride[2] = 1;
    square.pad_begin[1] = square.pad_begin[2] = square.pad_end[1] = square.pad_end[2] = 1;
    Geometry small = square;
    small.ic = 128, small.oc = 192, small.in[1] = small.in[2] = 7;
    Geometry pointwise;
    pointwise.n = 2, pointwise.ic = 24, pointwise.oc = 144, pointwise.in[1] = 12, pointwise.in[2] = 17;
    Geometry halving = pointwise;
    halving.stride[1] = halving.stride[2] = 2;
    Geometry narrow;
    narrow.groups = 8, narrow.ic = narrow.oc = 4, narrow.in[1] = narrow.in[2] = 9;
    narrow.kernel[1] = narrow.kernel[2] = 3;
    for (const Geometry &g : {first, square, small, pointwise, halving, narrow})
        for (const qdq_dtype src : kBytes)
            for (const qdq_dtype w : kBytes) {
                Check(g, src, w, ZeroPoint(src, &seed),
                      w == QDQ_DTYPE_U8 ? std::vector<int32_t>{128} : std::vector<int32_t>{}, kd_next(&seed));
                if (HasFatalFailure()) return;
            }
}

// What the checks above compare besides sums is something.
TEST_F(Convolution, ResultsAreMadeInRegisters) {
    if (!qk_isa_host_has(QK_ISA_avx2)) GTEST_SKIP() << "no level of this machine makes results in registers";
    uint64_t seed = 17;
    for (int i = 0; i < 40; i++)
        Check(RandomGeometry(&seed, i % 2 == 0, false), QDQ_DTYPE_U8, QDQ_DTYPE_S8, 3, {}, kd_next(&seed));
    EXPECT_GT(results_, 40);
}

// Weights of which few are large have a form of their own where bytes are multiplied in pairs.
TEST_F(Convolution, FewLargeWeightsAreExactToo) {
    uint64_t seed = 16;
    for (int i = 0; i < 300; i++) {
        const qdq_dtype src = kBytes[i % 2], w = kBytes[i / 2 % 2];
        large_weights_ = i % 3 == 0 ? 20 : i % 3 == 1 ? 500 : 1u << 30;
        const Geometry g = RandomGeometry(&seed, false, i % 7 == 0);
        Check(g, src, w, ZeroPoint(src, &seed), WeightZeroPoints(g, w, &seed), kd_next(&seed));
        if (HasFatalFailure()) return;
    }
}

TEST_F(Convolution, RefusesWhatItCannotHold) {
    Conv c;
    c.g.ic = c.g.oc = 4;
    auto good = [&] {
        c.Describe(QDQ_DTYPE_U8, QDQ_DTYPE_S8);
        return &c.conv;
    };
    EXPECT_TRUE(qk_conv_init(good()));
    good()->src = QDQ_DTYPE_S32;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->weights = QDQ_DTYPE_F32;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->stride[1] = 0;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->dilation[2] = 0;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->src_stride = 3;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->kernel[0] = int64_t(1) << 40;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good();
    c.conv.kernel[0] = c.conv.kernel[1] = c.conv.kernel[2] = 1 << 30;
    EXPECT_FALSE(qk_conv_init(&c.conv));
    good()->groups = 0;
    EXPECT_FALSE(qk_conv_init(&c.conv));
}

} // namespace
