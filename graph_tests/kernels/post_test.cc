#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/post/post.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace {

size_t Bytes(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

const qdq_dtype kTypes[] = {QDQ_DTYPE_S32, QDQ_DTYPE_F32, QDQ_DTYPE_S8, QDQ_DTYPE_U8, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};

bool IsInteger(qdq_dtype d) {
    return d == QDQ_DTYPE_S32 || d == QDQ_DTYPE_S8 || d == QDQ_DTYPE_U8;
}

bool IsTranscendental(qk_post_op op) {
    switch (op) {
    case QK_POST_TANH:
    case QK_POST_ELU:
    case QK_POST_SOFT_RELU:
    case QK_POST_LOGISTIC:
    case QK_POST_EXP:
    case QK_POST_LOG:
    case QK_POST_POW:
    case QK_POST_GELU_ERF:
    case QK_POST_GELU_TANH:
    case QK_POST_MISH:
    case QK_POST_SWISH: return true;
    default: return false;
    }
}

class Post : public testing::Test {
  protected:
    Post() : before_(qk_isa_cap()) {}
    ~Post() override { qk_isa_set_cap(before_); }

    static qk_post_fn *At(const qk_post &p, qk_isa isa) {
        qk_isa got = QK_ISA_COUNT;
        qk_isa_set_cap(isa);
        qk_post_fn *fn = qk_post_choose(&p, &got);
        return fn != nullptr && got == isa ? fn : nullptr;
    }

  private:
    qk_isa before_;
};

// A program with the data it runs on; everything ends at pages that may not be touched.
struct Trial {
    qk_post post = {};
    size_t rows, cols;
    uint64_t seed;
    std::vector<std::unique_ptr<GuardedBytes>> pages;
    qk_post_args args = {};
    const void *acc = nullptr;
    size_t acc_stride = 0;
    std::vector<uint8_t> before;
    GuardedBytes *dst = nullptr;

    uint32_t Next(uint32_t n) { return kd_next(&seed) % n; }

    uint8_t *Make(size_t n_bytes) {
        pages.push_back(std::make_unique<GuardedBytes>(n_bytes));
        return pages.back()->at_end();
    }

    // Values whose chains stay in a range where rounding to bytes shows, with awkward ones among them.
    void *Tensor(qdq_dtype d, size_t n, bool wild) {
        uint8_t *p = Make(n * Bytes(d));
        for (size_t i = 0; i < n; i++) {
            const float f = wild && Next(23) == 0 ? kd_float(Next(3) == 0 ? 0x7fc00000u
                                                             : Next(2)    ? 0x7f800000u
                                                                          : 0xff7fffffu)
                                                  : float(int32_t(Next(4001)) - 2000) * 0.0625f;
            const int32_t integer =
                wild && Next(29) == 0 ? (Next(2) ? INT32_MAX : INT32_MIN) : int32_t(Next(60001)) - 30000;
            uint32_t bits;
            memcpy(&bits, &f, 4);
            const uint16_t half =
                d == QDQ_DTYPE_BF16 ? uint16_t(bits >> 16) : uint16_t(Next(2) << 15 | (Next(26) << 10) | Next(1024));
            if (d == QDQ_DTYPE_F32) memcpy(p + 4 * i, &f, 4);
            if (d == QDQ_DTYPE_S32) memcpy(p + 4 * i, &integer, 4);
            if (d == QDQ_DTYPE_BF16 || d == QDQ_DTYPE_F16) memcpy(p + 2 * i, &half, 2);
            if (d == QDQ_DTYPE_S8 || d == QDQ_DTYPE_U8) p[i] = uint8_t(Next(256));
        }
        return p;
    }

    Trial(uint64_t s, bool transcendental, bool wild) : seed(s) {
        rows = 1 + Next(5);
        cols = 1 + Next(150);
        qk_post &p = post;
        p.acc = Next(2) ? QDQ_DTYPE_S32 : kTypes[Next(6)];
        p.dst = Next(2) ? kTypes[2 + Next(2)] : kTypes[Next(6)];
        const bool plain = Next(3) == 0, floats = plain && Next(3) == 0; // programs that have loops of their own
        if (plain) {
            p.acc = floats && Next(2) ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32;
            p.dst = floats ? QDQ_DTYPE_F32 : kTypes[2 + Next(2)];
        }
        if (IsInteger(p.acc)) {
            p.has_add_common = !plain && Next(4) == 0;
            p.has_col_add = Next(2) == 0;
            p.has_row_sum = !plain && Next(4) == 0;
            p.bias_first = !plain && Next(4) == 0;
        }
        p.scale = plain ? (Next(2) ? QK_POST_SCALE_COL : QK_POST_SCALE_COMMON) : qk_post_scale(Next(4));
        p.bias = p.bias_first ? QDQ_DTYPE_S32 : Next(2) ? QDQ_DTYPE_UNDEF : plain ? QDQ_DTYPE_F32 : kTypes[Next(6)];
        p.bias_per_row = !plain && !p.bias_first && Next(4) == 0;
        p.dst_quantized = !floats && Next(plain ? 3 : 2) == 0;
        p.dst_has_zp = IsInteger(p.dst) && Next(2) == 0;
        p.n_steps = floats ? Next(2) : plain ? Next(3) : Next(4);
        for (uint32_t i = 0; i < p.n_steps; i++) {
            qk_post_step &step = p.steps[i];
            do
                step.op = !plain              ? qk_post_op(Next(QK_POST_SUM + 1))
                          : i == 1            ? QK_POST_ROUND
                          : floats || Next(2) ? QK_POST_RELU
                                              : QK_POST_CLIP;
            while (IsTranscendental(step.op) && !transcendental);
            step.alpha = plain || Next(2) ? 0.0f : 0.5f * float(1 + Next(4));
            step.beta = 0.25f * float(Next(5));
            step.dtype = kTypes[Next(6)];
            if (step.op == QK_POST_SUM) step.dtype = p.dst;
            step.per_col = Next(2) == 0;
        }
        const size_t acc_gap = Next(2) ? 0 : 3;
        acc_stride = cols + acc_gap;
        acc = Tensor(p.acc, rows * acc_stride - acc_gap, wild);
        args.add_common = int32_t(Next(1000)) - 500;
        args.col_add = static_cast<int32_t *>(Tensor(QDQ_DTYPE_S32, cols, false));
        args.col_mul = static_cast<int32_t *>(Tensor(QDQ_DTYPE_S32, cols, false));
        args.row_sum = static_cast<int32_t *>(Tensor(QDQ_DTYPE_S32, rows, false));
        args.scale_common = 0.001f * float(1 + Next(50));
        args.scale =
            reinterpret_cast<float *>(Tensor(QDQ_DTYPE_F32, p.scale == QK_POST_SCALE_ROW ? rows : cols, false));
        if (p.bias != QDQ_DTYPE_UNDEF) args.bias = Tensor(p.bias, p.bias_per_row ? rows : cols, false);
        for (uint32_t i = 0; i < p.n_steps; i++) {
            const bool per_row = Next(2) == 0;
            const size_t width = p.steps[i].per_col ? cols : 1;
            args.operands[i] = {Tensor(p.steps[i].dtype, per_row ? rows * width : width, wild),
                                ptrdiff_t(per_row ? width : 0)};
        }
        args.dst_scale = Next(7) == 0 ? 1e-30f : 0.01f * float(1 + Next(100));
        args.dst_zp = int32_t(Next(200)) - 100;
        const size_t gap = Next(2) ? 0 : 5;
        args.dst_stride = ptrdiff_t(cols + gap);
        Make((rows * (cols + gap) - gap) * Bytes(p.dst));
        dst = pages.back().get();
        args.dst = dst->at_end();
        const void *old = Tensor(p.dst, dst->size() / Bytes(p.dst), false);
        before.assign(static_cast<const uint8_t *>(old), static_cast<const uint8_t *>(old) + dst->size());
    }

    std::vector<uint8_t> With(qk_post_fn *fn, bool split) {
        memcpy(args.dst, before.data(), before.size());
        if (split) {
            const size_t c = cols / 3, r = rows / 2;
            const size_t acc_bytes = Bytes(post.acc);
            const auto *a = static_cast<const uint8_t *>(acc);
            fn(&post, &args, a, acc_stride, 0, r, 0, c);
            fn(&post, &args, a + c * acc_bytes, acc_stride, 0, r, c, cols - c);
            fn(&post, &args, a + r * acc_stride * acc_bytes, acc_stride, r, rows - r, 0, c);
            fn(&post, &args, a + (r * acc_stride + c) * acc_bytes, acc_stride, r, rows - r, c, cols - c);
        } else {
            fn(&post, &args, acc, acc_stride, 0, rows, 0, cols);
        }
        return {dst->at_end(), dst->at_end() + dst->size()};
    }

    std::string Text() const {
        std::string s = std::string(qdq_dtype_name(post.acc)) + " to " + qdq_dtype_name(post.dst) + " " +
                        std::to_string(rows) + "x" + std::to_string(cols) + " scale " + std::to_string(post.scale) +
                        " bias " + qdq_dtype_name(post.bias) + (post.bias_first ? " first" : "") +
                        (post.dst_quantized ? " quantized" : "") + (post.dst_has_zp ? " zp" : "") + " steps";
        for (uint32_t i = 0; i < post.n_steps; i++)
            s += " " + std::to_string(post.steps[i].op);
        return s;
    }
};

std::string Hex(const std::vector<uint8_t> &v, size_t at, qdq_dtype d) {
    char text[16];
    uint32_t x = 0;
    memcpy(&x, &v[at * Bytes(d)], Bytes(d));
    snprintf(text, sizeof text, " %x", x);
    return text;
}

// NaN are the same whatever their bits.
bool SameBytes(qdq_dtype d, const std::vector<uint8_t> &a, const std::vector<uint8_t> &b, size_t *at) {
    const size_t w = Bytes(d);
    for (*at = 0; *at * w < a.size(); ++*at) {
        if (memcmp(&a[*at * w], &b[*at * w], w) == 0) continue;
        uint32_t x = 0, y = 0;
        memcpy(&x, &a[*at * w], w);
        memcpy(&y, &b[*at * w], w);
        const uint32_t inf = d == QDQ_DTYPE_F32 ? 0x7f800000u : d == QDQ_DTYPE_BF16 ? 0x7f80u : 0x7c00u;
        const uint32_t magnitude = w == 4 ? 0x7fffffffu : 0x7fffu;
        if (!IsInteger(d) && (x & magnitude) > inf && (y & magnitude) > inf) continue;
        return false;
    }
    return true;
}

TEST_F(Post, EveryLevelGivesTheBytesOfTheReference) {
    int seen[QK_ISA_COUNT] = {};
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        Trial run(seed * 77, false, seed % 2 == 0);
        qk_post_fn *ref = At(run.post, QK_ISA_ref);
        ASSERT_NE(ref, nullptr) << run.Text();
        const std::vector<uint8_t> want = run.With(ref, false);
        for (int isa = QK_ISA_ref + 1; isa < QK_ISA_COUNT; isa++) {
            qk_post_fn *fn = qk_isa_host_has(qk_isa(isa)) ? At(run.post, qk_isa(isa)) : nullptr;
            if (fn == nullptr) continue;
            seen[isa]++;
            size_t at;
            for (bool split : {false, true}) {
                const std::vector<uint8_t> got = run.With(fn, split);
                ASSERT_TRUE(SameBytes(run.post.dst, want, got, &at))
                    << qk_isa_name(qk_isa(isa)) << " seed " << seed << " element " << at << ": " << run.Text()
                    << Hex(want, at, run.post.dst) << Hex(got, at, run.post.dst);
            }
        }
    }
    EXPECT_EQ(seen[QK_ISA_avx2] > 0, qk_isa_host_has(QK_ISA_avx2));
    EXPECT_EQ(seen[QK_ISA_avx512] > 0, qk_isa_host_has(QK_ISA_avx512));
}

// Quotients on ties and beside them, where bytes in fixed point are not sure: now and then, and in most rows.
TEST_F(Post, QuotientsNearTiesAreThoseOfTheReference) {
    const size_t rows = 41, cols = 203;
    std::vector<float> acc(rows * cols), zeros(cols, 0.0f);
    std::vector<uint8_t> got(rows * cols), want(rows * cols);
    uint64_t seed = 5;
    for (int i = 0; i < 96; i++) {
        qk_post p = {};
        qk_post_args a = {};
        const uint32_t rare = i % 3 == 0 ? 1 : 400;
        p.acc = QDQ_DTYPE_F32;
        p.dst = i % 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
        p.dst_quantized = true;
        p.dst_has_zp = i % 4 < 2;
        p.bias = i % 8 < 4 ? QDQ_DTYPE_F32 : QDQ_DTYPE_UNDEF;
        p.n_steps = i % 5 < 3;
        p.steps[0].op = i % 5 == 0 ? QK_POST_RELU : i % 5 == 1 ? QK_POST_CLIP : QK_POST_ROUND;
        p.steps[0].alpha = i % 5 == 1 ? -1.5f : 0.0f;
        p.steps[0].beta = i == 11 ? NAN : 2.0f;
        a.dst_scale = i % 7 == 6 ? -0.03f : i % 7 == 5 ? 0.125f : 0.01f * float(1 + kd_next(&seed) % 9);
        a.dst_zp = i == 9 ? 255 : int32_t(kd_next(&seed) % 100) - 50;
        a.bias = zeros.data();
        a.dst_stride = ptrdiff_t(cols);
        for (float &x : acc) {
            const float half = kd_next(&seed) % rare ? 0.3f : 0.5f;
            x = (float(int32_t(kd_next(&seed) % 300) - 150) + half) * a.dst_scale;
            const uint32_t beside = kd_next(&seed) % 4;
            if (beside < 2) x = std::nextafter(x, beside ? 1e9f : -1e9f);
            if (kd_next(&seed) % 3001 == 0) x = beside ? -INFINITY : NAN;
        }
        a.dst = want.data();
        At(p, QK_ISA_ref)(&p, &a, acc.data(), cols, 0, rows, 0, cols);
        for (int isa = QK_ISA_ref + 1; isa < QK_ISA_COUNT; isa++) {
            qk_post_fn *fn = qk_isa_host_has(qk_isa(isa)) ? At(p, qk_isa(isa)) : nullptr;
            if (fn == nullptr) continue;
            a.dst = got.data();
            fn(&p, &a, acc.data(), cols, 0, rows, 0, cols);
            ASSERT_EQ(want, got) << qk_isa_name(qk_isa(isa)) << " case " << i;
        }
    }
}

struct Function {
    qk_post_op op;
    float alpha, beta, low, high;
    double units; // of the last place of the result
    double slack; // and of the operand times this
};

TEST_F(Post, TranscendentalStepsAreWithinAFewUnits) {
    const Function functions[] = {
        {QK_POST_TANH, 0, 0, -12, 12, 4, 0},      {QK_POST_ELU, 1, 0, -20, 5, 4, 0},
        {QK_POST_ELU, 0.3f, 0, -2, 1, 4, 0},      {QK_POST_SOFT_RELU, 1, 0, -90, 90, 5, 0},
        {QK_POST_SOFT_RELU, 2, 0, -30, 30, 6, 0}, {QK_POST_LOGISTIC, 0, 0, -95, 95, 5, 0},
        {QK_POST_EXP, 0, 0, -110, 90, 3, 0},      {QK_POST_LOG, 0, 0, 0, 1e-37f, 4, 0},
        {QK_POST_LOG, 0, 0, 0.5f, 2, 4, 0},       {QK_POST_LOG, 0, 0, 0, 1e30f, 4, 0},
        {QK_POST_GELU_ERF, 0, 0, -13, 13, 12, 0}, {QK_POST_GELU_TANH, 0, 0, -8, 8, 8, 1e-5},
        {QK_POST_MISH, 0, 0, -40, 40, 6, 0},      {QK_POST_SWISH, 1.5f, 0, -50, 50, 8, 1e-5},
        {QK_POST_POW, 1.5f, 2, -50, 50, 2, 0},    {QK_POST_POW, 1, 0.5f, 0, 50, 2, 0},
        {QK_POST_POW, 1, 1.7f, 0, 50, 2, 0},
    };
    for (int isa = QK_ISA_ref; isa < QK_ISA_COUNT; isa++)
        for (const Function &f : functions) {
            qk_post p = {};
            p.acc = p.dst = QDQ_DTYPE_F32;
            p.n_steps = 1;
            p.steps[0].op = f.op;
            p.steps[0].alpha = f.alpha;
            p.steps[0].beta = f.beta;
            qk_post_fn *fn = qk_isa_host_has(qk_isa(isa)) ? At(p, qk_isa(isa)) : nullptr;
            if (fn == nullptr) continue;
            qk_post_fn *ref = At(p, QK_ISA_ref);
            const size_t n = 20001;
            std::vector<float> x(n), got(n), want(n);
            for (size_t i = 0; i < n; i++)
                x[i] = f.low + (f.high - f.low) * float(i) / float(n - 1);
            qk_post_args a = {};
            a.dst_stride = ptrdiff_t(n);
            a.dst = got.data();
            fn(&p, &a, x.data(), n, 0, 1, 0, n);
            a.dst = want.data();
            ref(&p, &a, x.data(), n, 0, 1, 0, n);
            for (size_t i = 0; i < n; i++) {
                if (std::isinf(want[i]) || got[i] == want[i]) {
                    ASSERT_EQ(got[i], want[i]) << qk_isa_name(qk_isa(isa)) << " op " << f.op << " of " << x[i];
                    continue;
                }
                const double unit = std::max(std::fabs(double(want[i])) * 0x1p-23, 0x1p-149);
                ASSERT_LE(std::fabs(double(got[i]) - double(want[i])),
                          f.units * unit + f.slack * std::fabs(double(want[i])))
                    << qk_isa_name(qk_isa(isa)) << " op " << f.op << " of " << x[i] << ": " << got[i] << ", expected "
                    << want[i];
            }
        }
}

TEST_F(Post, ChainsWithTranscendentalStepsStayInRange) {
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        Trial run(seed * 131, true, true);
        qk_post_fn *ref = At(run.post, QK_ISA_ref);
        ASSERT_NE(ref, nullptr);
        (void)run.With(ref, false);
        for (int isa = QK_ISA_ref + 1; isa < QK_ISA_COUNT; isa++) {
            qk_post_fn *fn = qk_isa_host_has(qk_isa(isa)) ? At(run.post, qk_isa(isa)) : nullptr;
            if (fn == nullptr) continue;
            // gaps between rows are not written
            const std::vector<uint8_t> got = run.With(fn, false);
            const size_t w = Bytes(run.post.dst), stride = size_t(run.args.dst_stride) * w;
            for (size_t r = 0; r + 1 < run.rows; r++)
                ASSERT_EQ(memcmp(&got[r * stride + run.cols * w], &run.before[r * stride + run.cols * w],
                                 stride - run.cols * w),
                          0)
                    << run.Text();
        }
    }
}

TEST_F(Post, RefusesWhatIsNoProgram) {
    qk_post p = {};
    EXPECT_EQ(qk_post_choose(&p, nullptr), nullptr); // no types
    p.acc = QDQ_DTYPE_F32;
    p.dst = QDQ_DTYPE_U8;
    EXPECT_NE(qk_post_choose(&p, nullptr), nullptr);
    p.has_col_add = true; // of floats
    EXPECT_EQ(qk_post_choose(&p, nullptr), nullptr);
    p.has_col_add = false;
    p.n_steps = QK_POST_MAX_STEPS + 1;
    EXPECT_EQ(qk_post_choose(&p, nullptr), nullptr);
    p.n_steps = 1;
    p.steps[0].op = QK_POST_ADD; // with an operand of no type
    EXPECT_EQ(qk_post_choose(&p, nullptr), nullptr);
    p.n_steps = 0;
    p.dst = QDQ_DTYPE_F32;
    p.dst_has_zp = true;
    EXPECT_EQ(qk_post_choose(&p, nullptr), nullptr);
}

} // namespace
