#include "kernels/norm/norm.h"
#include "level_sweep.h"
#include "rows_data.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace {

using Norm = LevelSweep;

qk_norm request(qdq_dtype src, qdq_dtype dst, bool rms) {
    qk_norm norm = {};
    norm.src = src;
    norm.dst = dst;
    norm.rms = rms;
    norm.epsilon = 1e-5f;
    norm.src_scale = 0.03f;
    norm.src_zp = src == QDQ_DTYPE_U8 ? 117.0f : -3.0f;
    norm.dst_factor = 31.0f;
    norm.zp_first = dst == QDQ_DTYPE_U8 ? 128.0f : -1.0f;
    return norm;
}

double real(const qk_norm &norm, const EndedRow &x, size_t i) {
    return is_x8(norm.src) ? (double(x[i]) - double(norm.src_zp)) * double(norm.src_scale) : double(x[i]);
}

TEST_F(Norm, LinesMatchDoubles) {
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t n : {1u, 2u, 15u, 16u, 33u, 64u, 130u, 769u, 9001u})
                for (int form = 0; form < 6; form++) {
                    const bool rms = form >= 4, has_gamma = form % 2 == 1, has_beta = form == 1 || form == 2;
                    const qk_norm norm = request(src, dst, rms);
                    const size_t n_rows = n > 1000 ? 1 : 2;
                    const EndedRow x(src, n * n_rows, 3 + n, 2.0f, 0.5f), gamma(QDQ_DTYPE_F32, n, 5, 1.5f),
                        beta(QDQ_DTYPE_F32, n, 7, 1.0f);
                    each_level([&] {
                        EndedRow y(dst, n * n_rows);
                        std::vector<float> means(n_rows), variances(n_rows);
                        qk_norm_choose(&norm, nullptr)
                            ->rows(&norm, x.data(), y.data(),
                                   has_gamma ? static_cast<const float *>(gamma.data()) : nullptr,
                                   has_beta ? static_cast<const float *>(beta.data()) : nullptr, means.data(),
                                   variances.data(), n_rows, n);
                        for (size_t r = 0; r < n_rows; r++) {
                            double mean = 0, variance = 0;
                            for (size_t i = 0; i < n && !rms; i++)
                                mean += real(norm, x, r * n + i) / double(n);
                            for (size_t i = 0; i < n; i++)
                                variance += std::pow(real(norm, x, r * n + i) - mean, 2) / double(n);
                            if (!rms) {
                                ASSERT_NEAR(double(means[r]), mean, 1e-6 * (1 + std::fabs(mean)));
                            }
                            ASSERT_NEAR(double(variances[r]), variance, 2e-6 * (variance + 1e-6));
                            for (size_t i = 0; i < n; i++) {
                                double v =
                                    (real(norm, x, r * n + i) - mean) / std::sqrt(variance + double(norm.epsilon));
                                if (has_gamma) v *= double(gamma[i]);
                                if (has_beta) v += double(beta[i]);
                                expect_stored(y, r * n + i, v, 31.0, double(norm.zp_first), 2e-6, 4e-6);
                            }
                        }
                    });
                }
}

// What f32 loses without the correction: a mean 30000 times the deviation.
TEST_F(Norm, LargeMeansKeepTheVariance) {
    const qk_norm norm = request(QDQ_DTYPE_F32, QDQ_DTYPE_F32, false);
    const EndedRow x(QDQ_DTYPE_F32, 3001, 9, 1.0f, 30000.0f);
    double mean = 0, variance = 0;
    for (size_t i = 0; i < x.size(); i++)
        mean += double(x[i]) / double(x.size());
    for (size_t i = 0; i < x.size(); i++)
        variance += std::pow(double(x[i]) - mean, 2) / double(x.size());
    each_level([&] {
        const qk_moments m = qk_norm_choose(&norm, nullptr)->moments(&norm, x.data(), 1, 0, x.size());
        EXPECT_NEAR(m.mean, mean, 1e-4);
        EXPECT_NEAR(m.variance, variance, 1e-6 * variance);
    });
}

TEST_F(Norm, ColumnsAndRunsMatchDoubles) {
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t cols : {1u, 3u, 16u, 31u, 70u})
                for (size_t rows : {1u, 9u, 200u}) {
                    const qk_norm norm = request(src, dst, false);
                    const size_t stride = cols + 5, n = (rows - 1) * stride + cols;
                    const EndedRow x(src, n, 21, 3.0f), mean(QDQ_DTYPE_F32, cols, 1, 2.0f),
                        mul(QDQ_DTYPE_F32, cols, 2, 1.0f), add(QDQ_DTYPE_F32, cols, 3, 1.0f);
                    const float *means = static_cast<const float *>(mean.data()),
                                *muls = static_cast<const float *>(mul.data()),
                                *adds = static_cast<const float *>(add.data());
                    each_level([&] {
                        const qk_norm_fns *fns = qk_norm_choose(&norm, nullptr);
                        EndedRow y(dst, n);
                        std::vector<double> sums(cols), squares(cols);
                        fns->apply_cols(&norm, x.data(), y.data(), rows, cols, stride, means, muls, adds);
                        fns->col_sums(&norm, x.data(), rows, cols, stride, nullptr, sums.data());
                        fns->col_sums(&norm, x.data(), rows, cols, stride, means, squares.data());
                        double all = 0;
                        for (size_t c = 0; c < cols; c++) {
                            double sum = 0, square = 0;
                            for (size_t r = 0; r < rows; r++) {
                                const double v = double(x[r * stride + c]);
                                sum += v;
                                square += (v - double(mean[c])) * (v - double(mean[c]));
                                expect_stored(y, r * stride + c,
                                              (v - double(mean[c])) * double(mul[c]) + double(add[c]), 31.0,
                                              double(norm.zp_first), 2e-6, is_x8(src) ? 1e-4 : 4e-6);
                            }
                            ASSERT_NEAR(sums[c], sum, 1e-4 * (1 + double(rows)));
                            ASSERT_NEAR(squares[c], square, 2e-6 * (1 + square));
                            all += sum;
                        }
                        const qk_moments m = fns->moments(&norm, x.data(), rows, stride, cols);
                        ASSERT_NEAR(m.mean, all / double(rows * cols), 1e-4);
                        EndedRow z(dst, n);
                        fns->apply(&norm, x.data(), z.data(), n, 0.25f, 0.5f, -1.0f);
                        for (size_t i = 0; i < n; i++)
                            expect_stored(z, i, (double(x[i]) - 0.25) * 0.5 - 1.0, 31.0, double(norm.zp_first), 2e-6,
                                          2e-5);
                    });
                }
}

// Many rows are taken some at a time: the same bytes as one by one, and nothing between the rows.
TEST_F(Norm, RowsOfColumnsDoNotDependOnHowManyThereAre) {
    const qk_norm norm = request(QDQ_DTYPE_F32, QDQ_DTYPE_F32, false);
    const size_t rows = 130, cols = 150, stride = 400, n = (rows - 1) * stride + cols;
    const EndedRow x(QDQ_DTYPE_F32, n, 21, 3.0f), mean(QDQ_DTYPE_F32, cols, 1, 2.0f), mul(QDQ_DTYPE_F32, cols, 2, 1.0f),
        add(QDQ_DTYPE_F32, cols, 3, 1.0f);
    const float *means = static_cast<const float *>(mean.data()), *muls = static_cast<const float *>(mul.data()),
                *adds = static_cast<const float *>(add.data()), *from = static_cast<const float *>(x.data());
    each_level([&] {
        const qk_norm_fns *fns = qk_norm_choose(&norm, nullptr);
        std::vector<float> all(n, 7.0f), single(n, 7.0f);
        fns->apply_cols(&norm, from, all.data(), rows, cols, stride, means, muls, adds);
        for (size_t r = 0; r < rows; r++)
            fns->apply_cols(&norm, from + r * stride, single.data() + r * stride, 1, cols, stride, means, muls, adds);
        ASSERT_EQ(memcmp(all.data(), single.data(), n * sizeof(float)), 0);
        ASSERT_EQ(all[cols], 7.0f);
    });
}

// However lines are grouped and split, each has the same bits: among them one whose sums have to be taken again, and one
// with a NaN; in place, too.
TEST_F(Norm, LinesDoNotDependOnTheirNeighbours) {
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t n : {5u, 16u, 20u, 96u, 770u, 5000u, 40000u}) {
                const size_t n_rows = n > 1000 ? 6 : 11;
                const qk_norm norm = request(src, dst, false);
                EndedRow x(src, n * n_rows, 3 + n, 2.0f);
                const EndedRow gamma(QDQ_DTYPE_F32, n, 5, 1.5f), beta(QDQ_DTYPE_F32, n, 7, 1.0f);
                const float *g = static_cast<const float *>(gamma.data()), *b = static_cast<const float *>(beta.data());
                for (size_t i = 0; i < n && !is_x8(src); i++)
                    qks_store(src, x.data(), 2 * n + i, 100.0f + x[i]);
                if (!is_x8(src)) qks_store(src, x.data(), 4 * n + 3, NAN);
                each_level([&] {
                    EndedRow all(dst, n * n_rows), one(dst, n * n_rows);
                    const qk_norm_fns *fns = qk_norm_choose(&norm, nullptr);
                    std::vector<float> means(n_rows), variances(n_rows);
                    fns->rows(&norm, x.data(), all.data(), g, b, means.data(), variances.data(), n_rows, n);
                    for (size_t r = 0; r < n_rows; r++) {
                        float mean, variance;
                        fns->rows(&norm, static_cast<const char *>(x.data()) + r * n * qks_bytes(src),
                                  static_cast<char *>(one.data()) + r * n * qks_bytes(dst), g, b, &mean, &variance, 1,
                                  n);
                        EXPECT_EQ(std::memcmp(&mean, &means[r], sizeof mean), 0);
                        EXPECT_EQ(std::memcmp(&variance, &variances[r], sizeof variance), 0);
                    }
                    EXPECT_EQ(std::memcmp(all.data(), one.data(), n * n_rows * qks_bytes(dst)), 0);
                    if (src != dst) return;
                    EndedRow z(src, n * n_rows);
                    std::memcpy(z.data(), x.data(), n * n_rows * qks_bytes(src));
                    fns->rows(&norm, z.data(), z.data(), g, b, nullptr, nullptr, n_rows, n);
                    EXPECT_EQ(std::memcmp(z.data(), all.data(), n * n_rows * qks_bytes(src)), 0);
                });
            }
}

// The largest sums that are taken in 32 bits: as many bytes as go there, all of them the largest.
TEST_F(Norm, SumsOfBytesDoNotOverflow) {
    for (qdq_dtype src : {QDQ_DTYPE_U8, QDQ_DTYPE_S8}) {
        const qk_norm norm = request(src, QDQ_DTYPE_F32, false);
        const size_t n = 32768 + 17;
        const std::vector<uint8_t> x(2 * n, src == QDQ_DTYPE_U8 ? 255 : 127);
        each_level([&] {
            std::vector<float> y(2 * n);
            for (size_t length : {n, size_t(32768)}) {
                float means[2], variances[2];
                qk_norm_choose(&norm, nullptr)
                    ->rows(&norm, x.data(), y.data(), nullptr, nullptr, means, variances, 2, length);
                for (int r = 0; r < 2; r++) {
                    EXPECT_NEAR(double(means[r]), (double(x[0]) - double(norm.src_zp)) * double(norm.src_scale), 1e-5);
                    EXPECT_NEAR(double(variances[r]), 0.0, 1e-9);
                }
            }
        });
    }
}

// Results beyond s32 saturate on the right side, whether the kernel has looked at gamma and beta or not.
TEST_F(Norm, HugeResultsSaturate) {
    for (qdq_dtype src : {QDQ_DTYPE_F32, QDQ_DTYPE_S8})
        for (float size : {1.0f, 1e6f, 1e20f})
            for (size_t n_rows : {1u, 7u}) {
                const size_t n = 80;
                const qk_norm norm = request(src, QDQ_DTYPE_S8, false);
                const EndedRow x(src, n * n_rows, 5, 1.0f);
                const std::vector<float> gamma(n, size);
                each_level([&] {
                    EndedRow y(QDQ_DTYPE_S8, n * n_rows);
                    qk_norm_choose(&norm, nullptr)
                        ->rows(&norm, x.data(), y.data(), gamma.data(), nullptr, nullptr, nullptr, n_rows, n);
                    for (size_t r = 0; r < n_rows && size > 1e3f; r++) {
                        double mean = 0;
                        for (size_t i = 0; i < n; i++)
                            mean += double(x[r * n + i]) / double(n);
                        for (size_t i = r * n; i < (r + 1) * n; i++)
                            if (std::fabs(double(x[i]) - mean) > 0.01) {
                                EXPECT_EQ(y[i], double(x[i]) > mean ? 127.0f : -128.0f);
                            }
                    }
                });
            }
}

} // namespace
