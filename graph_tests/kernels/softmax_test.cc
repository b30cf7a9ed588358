#include "kernel_data.h"
#include "kernels/softmax/softmax.h"
#include "level_sweep.h"
#include "rows_data.h"

#include <cmath>
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

} // namespace
