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

// Places that rise, repeat, fall and jump; runs of every length about the vectors; sources with one row and with several.
TEST_F(Resize, RunsMatchDoubles) {
    const size_t places = 7;
    for (qdq_dtype src : kRowTypes)
        for (qdq_dtype dst : kRowTypes)
            for (size_t n : {1u, 3u, 8u, 17u, 32u, 64u, 75u, 131u}) {
                const qk_resize r = {src, dst, src == dst ? 1.0f : 0.75f, is_x8(dst) ? 11.0f : 0.0f};
                std::vector<EndedRow *> rows;
                std::vector<const void *> from;
                const float weights[] = {0.25f, 0.4f, 0.35f};
                for (uint64_t k = 0; k < 3; k++) {
                    rows.push_back(new EndedRow(src, places * n, n + k, 3.0f));
                    from.push_back(rows.back()->data());
                }
                std::vector<int32_t> lo = {0, 0, 1, 1, 2, 5, 6, 6, 3, 0}, hi = {0, 1, 2, 2, 1, 6, 6, 5, 4, 6};
                std::vector<float> w = {0.0f, 0.75f, 0.25f, 0.0f, 0.5f, 0.125f, 0.0f, 0.3f, 0.7f, 0.1f};
                const qk_resize_axis axis = {lo.data(), hi.data(), w.data(), lo.size()};
                each_level([&] {
                    for (size_t n_src = 1; n_src <= 3; n_src++) {
                        EndedRow y(dst, lo.size() * n);
                        qk_resize_choose(&r, nullptr)->runs(&r, from.data(), weights, n_src, &axis, n, y.data(), n, n);
                        for (size_t i = 0; i < lo.size(); i++)
                            for (size_t c = 0; c < n; c++) {
                                double v[2] = {0, 0};
                                for (size_t k = 0; k < n_src; k++) {
                                    v[0] += double(weights[k]) * double((*rows[k])[size_t(lo[i]) * n + c]);
                                    v[1] += double(weights[k]) * double((*rows[k])[size_t(hi[i]) * n + c]);
                                }
                                const double x = v[0] * (1 - double(w[i])) + v[1] * double(w[i]);
                                const double factor = double(r.factor);
                                expect_stored(y, i * n + c, is_x8(dst) ? x : x * factor, factor, 11, 1e-6, 1e-4);
                            }
                    }
                });
                for (EndedRow *row : rows)
                    delete row;
            }
}

TEST_F(Resize, TakesAreTheBytes) {
    uint64_t seed = 5;
    for (size_t run : {1u, 2u, 3u, 4u, 6u, 7u, 8u, 12u, 15u, 16u, 24u, 31u, 32u, 48u, 63u, 64u, 100u, 128u, 256u, 300u})
        for (size_t step : {run, run + 5})
            for (int form = 0; form < 3; form++) { // doubled, falling, anything
                const size_t places = 40, n = 77;
                std::vector<uint8_t> src((places - 1) * step + run), want(n * run);
                for (auto &v : src)
                    v = uint8_t(kd_next(&seed));
                std::vector<int32_t> at(n);
                for (size_t i = 0; i < n; i++) {
                    at[i] = form == 0   ? int32_t(i / 2)
                            : form == 1 ? int32_t((n - 1 - i) / 2)
                                        : int32_t(kd_next(&seed) % places);
                    memcpy(&want[i * run], &src[size_t(at[i]) * step], run);
                }
                const qk_resize r = {QDQ_DTYPE_U8, QDQ_DTYPE_U8, 1, 0};
                each_level([&] {
                    std::vector<uint8_t> from(src),
                        got(n * run, 0); // their own allocations: sanitizers see what is past them
                    qk_resize_choose(&r, nullptr)->take(from.data(), at.data(), n, run, step, got.data());
                    ASSERT_EQ(got, want) << "run " << run << " step " << step << " form " << form;
                });
            }
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
