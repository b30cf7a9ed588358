#include "kernels/reduce/reduce.h"
#include "level_sweep.h"
#include "rows_data.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace {

using Reduce = LevelSweep;

double join(qk_reduce_op op, double acc, double x) {
    switch (op) {
    case QK_REDUCE_SUM: return acc + x;
    case QK_REDUCE_ABS: return acc + std::fabs(x);
    case QK_REDUCE_SQUARES: return acc + x * x;
    case QK_REDUCE_MAX: return std::fmax(acc, x);
    case QK_REDUCE_MIN: return std::fmin(acc, x);
    case QK_REDUCE_PROD: return acc * x;
    }
    return acc;
}

double value(const qk_reduce &r, const EndedRow &x, size_t i) {
    if (!is_x8(r.src)) return double(x[i]);
    return (double(x[i]) - double(r.zp)) * (r.op == QK_REDUCE_PROD ? double(r.scale) : 1.0);
}

TEST_F(Reduce, RunsAndColumnsMatchDoubles) {
    for (qdq_dtype src : kRowTypes)
        for (int op = QK_REDUCE_SUM; op <= QK_REDUCE_PROD; op++)
            for (size_t n : {0u, 1u, 7u, 16u, 31u, 64u, 100u, 1031u, 9001u}) {
                qk_reduce r = {qk_reduce_op(op), src, 5.0f, 0.013f};
                const bool is_product = r.op == QK_REDUCE_PROD;
                const EndedRow x(src, n, 3 + n, is_product ? 0.1f : 2.0f, is_product ? 1.0f : 0.25f);
                double want = qk_reduce_none(r.op), size = 0;
                for (size_t i = 0; i < n; i++) {
                    want = join(r.op, want, value(r, x, i));
                    size += r.op == QK_REDUCE_SQUARES ? value(r, x, i) * value(r, x, i) : std::fabs(value(r, x, i));
                }
                const double slack = is_product ? 1e-5 * std::fabs(want) + 1e-300 : is_x8(src) ? 0.0 : 3e-7 * size;
                each_level([&] {
                    const qk_reduce_fns *fns = qk_reduce_choose(&r, nullptr);
                    ASSERT_NE(fns, nullptr);
                    const double got = fns->run(&r, x.data(), n);
                    if (n == 0) {
                        ASSERT_EQ(got, want);
                    } else {
                        ASSERT_NEAR(got, want, slack) << op << " " << qdq_dtype_name(src) << " n" << n;
                    }
                    const size_t cols = n < 3 ? n : 37 < n ? 37 : 3, stride = cols + 2;
                    const size_t rows = cols == 0 ? 0 : (n + 2) / stride;
                    std::vector<double> acc(cols, qk_reduce_none(r.op));
                    fns->cols(&r, x.data(), rows, cols, stride, acc.data());
                    for (size_t c = 0; c < cols; c++) {
                        double down = qk_reduce_none(r.op);
                        for (size_t k = 0; k < rows; k++)
                            down = join(r.op, down, value(r, x, k * stride + c));
                        if (rows == 0) continue;
                        ASSERT_NEAR(acc[c], down, is_product ? 1e-5 * std::fabs(down) + 1e-300 : slack)
                            << op << " col " << c;
                    }
                });
            }
}

TEST_F(Reduce, ANaNIsFoundAndOtherRequestsAreRefused) {
    const qk_reduce_op ops[] = {QK_REDUCE_MAX, QK_REDUCE_MIN};
    for (qk_reduce_op op : ops)
        for (size_t at : {0u, 17u, 69u}) {
            std::vector<float> x(70, 1.0f);
            x[at] = NAN;
            const qk_reduce r = {op, QDQ_DTYPE_F32, 0, 1};
            each_level([&] {
                const qk_reduce_fns *fns = qk_reduce_choose(&r, nullptr);
                EXPECT_TRUE(std::isnan(fns->run(&r, x.data(), 70)));
                std::vector<double> acc(10, qk_reduce_none(op));
                fns->cols(&r, x.data(), 7, 10, 10, acc.data());
                for (size_t c = 0; c < 10; c++)
                    EXPECT_EQ(std::isnan(acc[c]), c == at % 10);
            });
        }
    const qk_reduce bad = {QK_REDUCE_SUM, QDQ_DTYPE_S32, 0, 1};
    EXPECT_EQ(qk_reduce_choose(&bad, nullptr), nullptr);
}

// Factors whose product in f32 would be 0 or infinite, zeros among small ones, NaNs; rows are runs.
TEST_F(Reduce, ProductsKeepTheRangeOfDoubles) {
    const float sets[][4] = {{1e20f, 1e-20f, 1e25f, 1e-25f}, {1e-15f, 1e-15f, 1e16f, 1e14f},
                             {3e-38f, 1e30f, 2.0f, 2e8f},    {0.0f, 1e-20f, 1.0f, 1e30f},
                             {NAN, 1.0f, 2.0f, 0.5f},        {1e-40f, 1e20f, 1e20f, 1.0f}};
    for (const auto &set : sets)
        for (size_t n : {4u, 64u, 68u, 132u}) {
            std::vector<float> x(3 * n);
            double want = 1;
            for (size_t i = 0; i < 3 * n; i++)
                x[i] = set[(i % n + i % n / 4 + i % n / 16 + i % n / 64) % 4]; // lanes meet all of them
            for (size_t i = 0; i < n; i++)
                want *= double(x[i]);
            const qk_reduce r = {QK_REDUCE_PROD, QDQ_DTYPE_F32, 0, 1};
            each_level([&] {
                double got[3];
                qk_reduce_choose(&r, nullptr)->rows(&r, x.data(), 3, n, n, got);
                for (double v : got) {
                    if (std::isnan(want))
                        ASSERT_TRUE(std::isnan(v));
                    else
                        ASSERT_NEAR(v, want, 1e-5 * std::fabs(want)) << set[0] << " n" << n;
                }
            });
        }
}

// A 0 anywhere in a long run makes its product one of the right sign, and NaN with an infinity before or behind it.
TEST_F(Reduce, ProductsBehindAZero) {
    const size_t n = 1500;
    for (size_t zero : {0u, 5u, 255u, 300u, 1100u, 1499u})
        for (size_t other : {1u, 290u, 1000u, 1498u})
            for (float value : {1.0f, -3.0f, INFINITY, -INFINITY, NAN}) {
                std::vector<float> x(n, 1.0f);
                x[zero] = 0.0f;
                x[other] = value;
                const qk_reduce r = {QK_REDUCE_PROD, QDQ_DTYPE_F32, 0, 1};
                each_level([&] {
                    const double got = qk_reduce_choose(&r, nullptr)->run(&r, x.data(), n);
                    if (!std::isfinite(value)) {
                        EXPECT_TRUE(std::isnan(got)) << zero << " " << other << " " << value;
                    } else {
                        EXPECT_EQ(got, 0.0);
                        EXPECT_EQ(std::signbit(got), value < 0) << zero << " " << other;
                    }
                });
            }
}

// Zero points that leave no range for eight factors, or just so.
TEST_F(Reduce, ProductsOfBytesTakeAnyZeroPointAndScale) {
    const float zps[] = {0.0f, 128.0f, -1024.0f, 1025.0f, 1e6f};
    for (qdq_dtype src : {QDQ_DTYPE_U8, QDQ_DTYPE_S8})
        for (float zp : zps)
            for (float size : {1.0f, 0.01f, -2.0f})
                for (size_t n : {64u, 128u, 144u, 200u}) {
                    std::vector<uint8_t> x(n);
                    for (size_t i = 0; i < n; i++)
                        x[i] = uint8_t(90 + i % 30);
                    const qk_reduce r = {QK_REDUCE_PROD, src, zp, size / (1.0f + std::fabs(100.0f - zp))};
                    double want = 1;
                    for (uint8_t v : x)
                        want *= (double(v) - double(zp)) * double(r.scale);
                    each_level([&] {
                        const double got = qk_reduce_choose(&r, nullptr)->run(&r, x.data(), n);
                        ASSERT_NEAR(got, want, 1e-5 * std::fabs(want)) << zp << " " << size << " n" << n;
                    });
                }
}

// The extremes of bytes at every place of a run; rows that are apart.
TEST_F(Reduce, ExtremesOfBytesAreSeenEverywhere) {
    for (qdq_dtype src : {QDQ_DTYPE_U8, QDQ_DTYPE_S8})
        for (int op : {QK_REDUCE_MAX, QK_REDUCE_MIN, QK_REDUCE_SUM})
            for (size_t n : {1u, 5u, 31u, 32u, 33u, 64u, 65u, 127u, 128u, 200u})
                for (size_t at = 0; at < n; at++) {
                    std::vector<uint8_t> x(2 * (n + 3), 100);
                    const uint8_t most = src == QDQ_DTYPE_S8 ? 127 : 255, least = src == QDQ_DTYPE_S8 ? 128 : 0;
                    x[at] = x[n + 3 + at] = op == QK_REDUCE_MIN ? least : most;
                    const double extreme = src == QDQ_DTYPE_S8 ? double(int8_t(x[at])) : double(x[at]);
                    const double want =
                        op == QK_REDUCE_SUM ? extreme + 100.0 * double(n - 1) - 7.0 * double(n) : extreme - 7;
                    const qk_reduce r = {qk_reduce_op(op), src, 7, 1};
                    each_level([&] {
                        double got[2];
                        const std::vector<uint8_t> exact(x.begin(), x.end() - 3); // sanitizers see reads past the end
                        qk_reduce_choose(&r, nullptr)->rows(&r, exact.data(), 2, n, n + 3, got);
                        ASSERT_EQ(got[0], want) << n << " " << at;
                        ASSERT_EQ(got[1], want) << n << " " << at;
                    });
                }
}

} // namespace
