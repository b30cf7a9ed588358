#include "kernel_data.h"
#include "kernels/softmax/softmax.h"
#include "level_sweep.h"
#include "rows_data.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace {

using Softmax = LevelSweep;

qk_softmax request(qdq_dtype src, qdq_dtype dst, bool is_log) {
    qk_softmax s = {};
    s.src = src;
    s.dst = dst;
    s.is_log = is_log;
    s.src_scale = 0.05f;
    s.dst_factor = is_log ? 12.0f : 255.0f;
    s.zp_first = dst == QDQ_DTYPE_S8 ? -128.0f : is_log ? 200.0f : 3.0f;
    return s;
}

/* The line that starts at `first`. */
void check(const qk_softmax &s, double scale, const EndedRow &x, const EndedRow &y, size_t first, size_t n,
           size_t stride) {
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        top = std::fmax(top, double(x[first + i * stride]) * scale);
    for (size_t i = 0; i < n; i++)
        sum += std::exp(double(x[first + i * stride]) * scale - top);
    for (size_t i = 0; i < n; i++) {
        const double d = double(x[first + i * stride]) * scale - top;
        const double v = s.is_log ? d - std::log(sum) : std::exp(d) / sum;
        expect_stored(y, first + i * stride, v, double(s.dst_factor), double(s.zp_first), 2e-6, s.is_log ? 2e-6 : 0.0);
    }
}

// Every type to every type, along lines and across them, against f64.
TEST_F(Softmax, MatchesDoubles) {
    const size_t lengths[] = {1, 2, 7, 16, 17, 33, 64, 100, 385, 5000};
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (bool is_log : {false, true})
                for (size_t n : lengths) {
                    const qk_softmax s = request(src, dst, is_log);
                    const size_t n_rows = n > 1000 ? 1 : 3;
                    const EndedRow x(src, n * n_rows, 11 + n, 8.0f);
                    const double scale = is_x8(src) ? double(s.src_scale) : 1.0;
                    each_level([&] {
                        EndedRow by_row(dst, n * n_rows), by_col(dst, n * n_rows);
                        const qk_softmax_fns *fns = qk_softmax_choose(&s, nullptr);
                        ASSERT_NE(fns, nullptr);
                        fns->rows(&s, x.data(), by_row.data(), n_rows, n);
                        fns->cols(&s, x.data(), by_col.data(), n_rows, n, n); /* lines of n_rows, n of them */
                        for (size_t r = 0; r < n_rows; r++)
                            check(s, scale, x, by_row, r * n, n, 1);
                        for (size_t c = 0; c < n; c++)
                            check(s, scale, x, by_col, c, n_rows, n);
                    });
                }
}

TEST_F(Softmax, ScalesBelowZeroAndSpecialValues) {
    qk_softmax s = request(QDQ_DTYPE_S8, QDQ_DTYPE_F32, false);
    s.src_scale = -0.1f;
    const EndedRow q(QDQ_DTYPE_S8, 70, 5, 1.0f);
    each_level([&] {
        EndedRow y(QDQ_DTYPE_F32, 70);
        qk_softmax_choose(&s, nullptr)->rows(&s, q.data(), y.data(), 1, 70);
        check(s, double(s.src_scale), q, y, 0, 70, 1);
        qk_softmax_choose(&s, nullptr)->cols(&s, q.data(), y.data(), 7, 10, 10);
        for (size_t c = 0; c < 10; c++)
            check(s, double(s.src_scale), q, y, c, 7, 10);
    });
    qk_softmax f = request(QDQ_DTYPE_F32, QDQ_DTYPE_F32, false);
    each_level([&] {
        for (size_t n : {3u, 20u, 100u}) {
            std::vector<float> x(n, -INFINITY), y(n);
            const qk_softmax_fns *fns = qk_softmax_choose(&f, nullptr);
            fns->rows(&f, x.data(), y.data(), 1, n);
            EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[n - 1]));
            qk_softmax zero = f;
            zero.zero_of_inf = true;
            fns->rows(&zero, x.data(), y.data(), 1, n);
            EXPECT_EQ(y, std::vector<float>(n, 0.0f));
            fns->cols(&zero, x.data(), y.data(), n, 1, 1);
            EXPECT_EQ(y, std::vector<float>(n, 0.0f));
            x[n - 1] = 5.0f; /* masked but for one */
            fns->rows(&f, x.data(), y.data(), 1, n);
            EXPECT_EQ(y[n - 1], 1.0f);
            EXPECT_EQ(y[0], 0.0f);
            x[1] = NAN;
            fns->rows(&f, x.data(), y.data(), 1, n);
            EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
        }
    });
    qk_softmax bad = f;
    bad.src = QDQ_DTYPE_S32;
    EXPECT_EQ(qk_softmax_choose(&bad, nullptr), nullptr);
}

// Bytes: every size of the table of a line's results, and none; either sign; in place.
TEST_F(Softmax, BytesAtEveryScale) {
    for (qdq_dtype src : {QDQ_DTYPE_U8, QDQ_DTYPE_S8})
        for (qdq_dtype dst : {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_F32})
            for (float scale : {1e-4f, 0.01f, 0.03f, 0.06f, 0.1f, 0.4f, 1.5f, 90.0f, 1e30f, -0.05f, -2.0f})
                for (size_t n : {3u, 31u, 63u, 64u, 99u, 100u, 127u, 200u, 1029u}) {
                    qk_softmax s = request(src, dst, false);
                    s.src_scale = scale;
                    const EndedRow x(src, n * 9, 7 + n, 1.0f);
                    each_level([&] {
                        EndedRow y(dst, n * 9);
                        const qk_softmax_fns *fns = qk_softmax_choose(&s, nullptr);
                        fns->rows(&s, x.data(), y.data(), 9, n);
                        for (size_t r = 0; r < 9; r++)
                            check(s, double(scale), x, y, r * n, n, 1);
                        if (!is_x8(dst)) return;
                        EndedRow z(src, n * 9, 7 + n, 1.0f);
                        fns->rows(&s, z.data(), z.data(), 9, n);
                        EXPECT_EQ(std::memcmp(z.data(), y.data(), n * 9), 0);
                    });
                }
}

// However lines are grouped and split, each has the same bits.
TEST_F(Softmax, LinesDoNotDependOnTheirNeighbours) {
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t n : {16u, 49u, 384u, 5000u}) {
                const qk_softmax s = request(src, dst, false);
                const EndedRow x(src, n * 11, 3 + n, 30.0f);
                each_level([&] {
                    EndedRow all(dst, n * 11), one(dst, n * 11);
                    const qk_softmax_fns *fns = qk_softmax_choose(&s, nullptr);
                    fns->rows(&s, x.data(), all.data(), 11, n);
                    for (size_t r = 0; r < 11; r++)
                        fns->rows(&s, static_cast<const char *>(x.data()) + r * n * qks_bytes(src),
                                  static_cast<char *>(one.data()) + r * n * qks_bytes(dst), 1, n);
                    EXPECT_EQ(std::memcmp(all.data(), one.data(), n * 11 * qks_bytes(dst)), 0);
                });
            }
}

// Far below the maximum there is nothing, not a subnormal; and -inf is that far.
TEST_F(Softmax, SmallPowersAreZero) {
    const qk_softmax s = request(QDQ_DTYPE_F32, QDQ_DTYPE_F32, false);
    each_level([&] {
        if (qk_isa_cap() == QK_ISA_ref) return;
        std::vector<float> x(40), y(40);
        for (size_t i = 0; i < x.size(); i++)
            x[i] = -80.0f - float(i);
        x[0] = 0.0f;
        x[20] = -INFINITY;
        x[21] = -3e38f;
        qk_softmax_choose(&s, nullptr)->rows(&s, x.data(), y.data(), 1, x.size());
        for (size_t i = 1; i < y.size(); i++)
            EXPECT_EQ(y[i] == 0.0f, x[i] < -86.6f) << x[i];
    });
}

} // namespace
