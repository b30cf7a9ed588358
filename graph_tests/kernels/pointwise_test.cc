#include "kernel_data.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/post/post.h"
#include "kernels/simd/scalar.h"
#include "level_sweep.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

struct Op {
    qk_pointwise_op op;
    qk_post_op post;
    bool is_function, is_pair;
    float alpha, beta;
};

const Op kOps[] = {
    {QK_POINTWISE_RELU, QK_POST_RELU, false, false, 0.0f, 0.0f},
    {QK_POINTWISE_LEAKY_RELU, QK_POST_RELU, false, false, 0.3f, 0.0f},
    {QK_POINTWISE_TANH, QK_POST_TANH, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_ELU, QK_POST_ELU, true, false, 0.7f, 0.0f},
    {QK_POINTWISE_SQUARE, QK_POST_SQUARE, false, false, 0.0f, 0.0f},
    {QK_POINTWISE_ABS, QK_POST_ABS, false, false, 0.0f, 0.0f},
    {QK_POINTWISE_SQRT, QK_POST_SQRT, false, false, 0.0f, 0.0f},
    {QK_POINTWISE_LINEAR, QK_POST_LINEAR, false, false, 1.7f, -0.3f},
    {QK_POINTWISE_SOFT_RELU, QK_POST_SOFT_RELU, true, false, 0.5f, 0.0f},
    {QK_POINTWISE_LOGISTIC, QK_POST_LOGISTIC, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_EXP, QK_POST_EXP, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_LOG, QK_POST_LOG, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_CLIP, QK_POST_CLIP, false, false, -0.4f, 6.0f},
    {QK_POINTWISE_GELU_ERF, QK_POST_GELU_ERF, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_GELU_TANH, QK_POST_GELU_TANH, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_ROUND, QK_POST_ROUND, false, false, 0.0f, 0.0f},
    {QK_POINTWISE_MISH, QK_POST_MISH, true, false, 0.0f, 0.0f},
    {QK_POINTWISE_HARDSWISH, QK_POST_HARDSWISH, false, false, 1.0f / 6.0f, 0.5f},
    {QK_POINTWISE_HARDSIGMOID, QK_POST_HARDSIGMOID, false, false, 0.2f, 0.5f},
    {QK_POINTWISE_SWISH, QK_POST_SWISH, true, false, 1.3f, 0.0f},
    {QK_POINTWISE_ADD, QK_POST_ADD, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_SUB, QK_POST_SUB, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_MUL, QK_POST_MUL, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_DIV, QK_POST_DIV, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_MAX, QK_POST_MAX, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_MIN, QK_POST_MIN, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_GE, QK_POST_GE, false, true, 0.0f, 0.0f},
    {QK_POINTWISE_PRELU, QK_POST_PRELU, false, true, 0.0f, 0.0f},
};
static_assert(sizeof kOps / sizeof kOps[0] == QK_POINTWISE_COUNT, "every operation");

class Pointwise : public LevelSweep {};

uint32_t Bits(const uint8_t *p, size_t bytes) {
    uint32_t u = 0;
    memcpy(&u, p, bytes);
    return u;
}

// How many numbers of the type lie between; a NaN is as good as another.
uint32_t Apart(uint32_t a, uint32_t b, qdq_dtype d) {
    const uint32_t sign = d == QDQ_DTYPE_F32 ? 0x80000000u : 0x8000u;
    const uint32_t inf = d == QDQ_DTYPE_F32 ? 0x7f800000u : d == QDQ_DTYPE_F16 ? 0x7c00u : 0x7f80u;
    const uint32_t x = a & (sign - 1), y = b & (sign - 1);
    if (x > inf || y > inf) return x > inf && y > inf ? 0 : UINT32_MAX;
    if ((a & sign) != (b & sign)) return x + y;
    return x > y ? x - y : y - x;
}

// Numbers about 1 with wide, subnormal and infinite ones and NaN among them.
void Fill(uint8_t *p, size_t n, qdq_dtype d, uint64_t *seed, bool wild) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u = kd_next(seed);
        const float f = wild && u % 9 == 0 ? kd_float(kd_next(seed)) : float(int32_t(kd_next(seed))) * 0x1p-28f;
        memcpy(&u, &f, sizeof u);
        if (wild && i % 37 == 5) u = 0x7f800000u;
        if (wild && i % 37 == 9) u = 0xff800000u;
        if (wild && i % 41 == 7) u = 0x7fc00000u;
        if (d == QDQ_DTYPE_F32) {
            memcpy(p + 4 * i, &u, 4);
        } else {
            uint16_t half = uint16_t(u >> 16);
            if (d == QDQ_DTYPE_F16 && !(wild && i % 3 == 0))
                half = uint16_t((half & 0x8000u) | (0x3000u + (u & 0x17ffu)));
            memcpy(p + 2 * i, &half, 2);
        }
    }
}

void Check(const Op &op, qdq_dtype d, size_t n_rows, size_t n_cols, bool common, bool wild, bool stream, size_t gap) {
    const size_t bytes = qdq_dtype_bits(d) / 8, row = n_cols + gap, n = n_rows * row - gap;
    const size_t n_w = !op.is_pair ? 0 : common ? n_rows : n;
    EndedBytes src(n * bytes), w(n_w * bytes), got(n * bytes);
    std::vector<uint8_t> want(n * bytes, 0x5a);
    uint64_t seed = n * 31 + size_t(op.op);
    Fill(src.data(), n, d, &seed, wild);
    if (n_w) Fill(w.data(), n_w, d, &seed, wild);

    qk_post post = {};
    post.acc = post.dst = d;
    post.n_steps = 1;
    post.steps[0].op = op.post;
    post.steps[0].alpha = op.alpha;
    post.steps[0].beta = op.beta;
    post.steps[0].dtype = d;
    post.steps[0].per_col = !common;
    qk_post_args args = {};
    args.scale_common = args.dst_scale = 1.0f;
    args.dst = want.data();
    args.dst_stride = ptrdiff_t(row);
    args.operands[0] = {w.data(), common ? 1 : ptrdiff_t(row)};
    const qk_isa before = qk_isa_cap();
    qk_isa_set_cap(QK_ISA_ref);
    qk_post_choose(&post, nullptr)(&post, &args, src.data(), row, 0, n_rows, 0, n_cols);
    qk_isa_set_cap(before);

    qk_pointwise p = {};
    p.alpha = op.alpha;
    p.beta = op.beta;
    p.stream = stream;
    p.common = common;
    p.src_row = p.dst_row = ptrdiff_t(row * bytes);
    p.w_row = ptrdiff_t(common ? bytes : row * bytes);
    qk_isa isa;
    qk_pointwise_fn *fn = qk_pointwise_choose(op.op, d, &isa);
    if (fn == nullptr) {
        ASSERT_EQ(qk_isa_cap(), QK_ISA_ref);
        return;
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        if (in_place)
            memcpy(got.data(), src.data(), n * bytes);
        else
            got.fill(0x5a);
        fn(&p, in_place ? got.data() : src.data(), w.data(), got.data(), n_rows, n_cols);
        for (size_t i = 0; i < n; i++) {
            const uint32_t g = Bits(got.data() + i * bytes, bytes);
            if (i % row >= n_cols) { // a gap
                ASSERT_EQ(g, in_place ? Bits(src.data() + i * bytes, bytes) : 0x5a5a5a5au >> (32 - 8 * bytes));
                continue;
            }
            const uint32_t e = Bits(want.data() + i * bytes, bytes);
            // far below zero, what is left of x e^x has lost bits on the way to kernels/post, too
            const uint32_t most = !op.is_function ? 0 : d == QDQ_DTYPE_F32 ? 300 : 1;
            ASSERT_LE(Apart(g, e, d), most)
                << "op " << op.op << " " << qdq_dtype_name(d) << " at " << i << " of " << n_rows << "x" << n_cols
                << std::hex << ": " << Bits(src.data() + i * bytes, bytes) << " gives " << g << ", not " << e;
        }
    }
}

TEST_F(Pointwise, EveryOperationTypeAndLength) {
    for (qdq_dtype d : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
        for (const Op &op : kOps)
            each_level([&] {
                for (size_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1000})
                    for (int form = 0; form < 8; form++)
                        Check(op, d, form & 1 ? 3 : 1, n, form & 2, form & 4, false, form & 1 ? 2 : 0);
            });
}

// All there are, of bf16: what floats give, rounded. Of the least halves, the exact gelu is beside what floats have.
TEST_F(Pointwise, EveryNumberOfBf16) {
    const size_t n = 65536;
    std::vector<uint16_t> x(n), w(n), got(n);
    std::vector<float> xf(n), wf(n), want(n);
    for (size_t i = 0; i < n; i++) {
        x[i] = uint16_t(i);
        w[i] = uint16_t(i * 40503u + 77);
        xf[i] = kd_float(uint32_t(x[i]) << 16);
        wf[i] = kd_float(uint32_t(w[i]) << 16);
    }
    each_level([&] {
        for (const Op &op : kOps) {
            qk_pointwise_fn *fn = qk_pointwise_choose(op.op, QDQ_DTYPE_BF16, nullptr);
            if (fn == nullptr) continue;
            qk_pointwise p = {};
            p.alpha = op.alpha;
            p.beta = op.beta;
            fn(&p, x.data(), w.data(), got.data(), 1, n);
            qk_pointwise_choose(op.op, QDQ_DTYPE_F32, nullptr)(&p, xf.data(), wf.data(), want.data(), 1, n);
            for (size_t i = 0; i < n; i++) {
                const uint32_t most = op.op == QK_POINTWISE_GELU_ERF && std::fabs(xf[i]) < 0x1p-120f ? 1 : 0;
                ASSERT_LE(Apart(got[i], qks_to_bf16(want[i]), QDQ_DTYPE_BF16), most)
                    << "op " << op.op << " of " << xf[i];
            }
        }
    });
}

TEST_F(Pointwise, PastTheCaches) {
    for (qdq_dtype d : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
        for (const Op &op : kOps)
            each_level([&] {
                for (size_t n : {1, 15, 64, 100, 1000, 1001, 1003}) {
                    Check(op, d, 1, n, false, false, true, 0);
                    Check(op, d, 3, n, true, false, true, 1);
                }
            });
}

// What a model's activations are: each within a few units in the last place of the function.
TEST_F(Pointwise, FunctionsAreCloseToThemselves) {
    const struct {
        qk_pointwise_op op;
        double (*of)(double);
        double most, from, to;
    } cases[] = {
        {QK_POINTWISE_EXP, [](double x) { return exp(x); }, 2, -87, 88},
        {QK_POINTWISE_ELU, [](double x) { return x > 0 ? x : expm1(x); }, 2, -100, 100},
        {QK_POINTWISE_LOGISTIC, [](double x) { return 1 / (1 + exp(-x)); }, 4, -87, 100},
        {QK_POINTWISE_SWISH, [](double x) { return x / (1 + exp(-x)); }, 4, -87, 100},
        {QK_POINTWISE_MISH, [](double x) { return x * tanh(log1p(exp(x))); }, 5, -40, 40},
        {QK_POINTWISE_SOFT_RELU, [](double x) { return log1p(exp(x)); }, 4, -87, 87},
        {QK_POINTWISE_GELU_ERF, [](double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }, 6, -12.5, 12.5},
    };
    each_level([&] {
        for (const auto &c : cases) {
            qk_pointwise_fn *fn = qk_pointwise_choose(c.op, QDQ_DTYPE_F32, nullptr);
            if (fn == nullptr) continue;
            qk_pointwise p = {};
            p.alpha = 1.0f;
            std::vector<float> x(100000), y(x.size());
            for (size_t i = 0; i < x.size(); i++)
                x[i] = float(c.from + (c.to - c.from) * double(i) / double(x.size()));
            fn(&p, x.data(), nullptr, y.data(), 1, x.size());
            for (size_t i = 0; i < x.size(); i++) {
                const double want = c.of(double(x[i]));
                ASSERT_LE(std::abs(double(y[i]) - want), c.most * std::max(std::abs(want), 0x1p-126) * 0x1p-23)
                    << "op " << c.op << " of " << x[i];
            }
        }
    });
}

TEST_F(Pointwise, Refusals) {
    EXPECT_EQ(qk_pointwise_choose(QK_POINTWISE_COUNT, QDQ_DTYPE_F32, nullptr), nullptr);
    EXPECT_EQ(qk_pointwise_choose(QK_POINTWISE_ADD, QDQ_DTYPE_S8, nullptr), nullptr);
}

} // namespace
