#include "kernels/resize/resize.h"
#include "level_sweep.h"
#include "rows_data.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace {

using Resize = LevelSweep;

TEST_F(Resize, BlendsAndStepsAcrossMatchDoubles) {
    uint64_t seed = 4;
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t n : {1u, 5u, 8u, 16u, 17u, 40u, 131u}) {
                const qk_resize r = {src, dst, 0.75f, is_x8(dst) ? 11.0f : 0.5f};
                std::vector<EndedRow *> rows;
                std::vector<const void *> from;
                const float weights[] = {0.1f, 0.2f, 0.3f, 0.4f};
                for (uint64_t k = 0; k < 4; k++) {
                    rows.push_back(new EndedRow(src, n, n + k, 3.0f));
                    from.push_back(rows.back()->data());
                }
                const EndedRow line(QDQ_DTYPE_F32, n, 77, 5.0f), w(QDQ_DTYPE_F32, n, 78, 0.5f, 0.5f);
                std::vector<int32_t> lo(n), hi(n);
                for (size_t i = 0; i < n; i++) {
                    lo[i] = int32_t(kd_next(&seed) % n);
                    hi[i] = int32_t(kd_next(&seed) % n);
                }
                each_level([&] {
                    const qk_resize_fns *fns = qk_resize_choose(&r, nullptr);
                    ASSERT_NE(fns, nullptr);
                    for (size_t n_src = 1; n_src <= 4; n_src++) {
                        EndedRow y(dst, n), f(QDQ_DTYPE_F32, n);
                        fns->blend(&r, false, from.data(), weights, n_src, y.data(), n);
                        fns->blend(&r, true, from.data(), weights, n_src, f.data(), n);
                        for (size_t i = 0; i < n; i++) {
                            double v = 0;
                            for (size_t k = 0; k < n_src; k++)
                                v += double(weights[k]) * double((*rows[k])[i]);
                            expect_stored(f, i, v, 1, 0, 1e-6, 1e-4);
                            expect_stored(y, i, is_x8(dst) ? v : v * 0.75 + 0.5, 0.75, 11, 1e-6, 1e-4);
                        }
                    }
                    EndedRow y(dst, n);
                    fns->across(&r, static_cast<const float *>(line.data()), lo.data(), hi.data(),
                                static_cast<const float *>(w.data()), y.data(), n);
                    for (size_t i = 0; i < n; i++) {
                        const double a = double(line[size_t(lo[i])]), b = double(line[size_t(hi[i])]);
                        const double v = a + (b - a) * double(w[i]);
                        expect_stored(y, i, is_x8(dst) ? v : v * 0.75 + 0.5, 0.75, 11, 1e-6, 1e-5);
                    }
                });
                for (EndedRow *row : rows)
                    delete row;
            }
    const qk_resize bad = {QDQ_DTYPE_S32, QDQ_DTYPE_F32, 1, 0};
    EXPECT_EQ(qk_resize_choose(&bad, nullptr), nullptr);
}

TEST_F(Resize, AnInfinityWithoutWeightStaysOut) {
    const qk_resize r = {QDQ_DTYPE_F32, QDQ_DTYPE_F32, 1, 0};
    const float row[] = {1.0f, INFINITY}, w[] = {0.0f, 0.5f};
    const int32_t lo[] = {0, 0}, hi[] = {1, 1};
    each_level([&] {
        float y[2];
        qk_resize_choose(&r, nullptr)->across(&r, row, lo, hi, w, y, 2);
        EXPECT_EQ(y[0], 1.0f);
        EXPECT_EQ(y[1], INFINITY);
    });
}

} // namespace
