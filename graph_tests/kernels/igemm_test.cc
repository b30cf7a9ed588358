#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/igemm/igemm.h"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Form {
    qdq_dtype src, weights;
    size_t taps, kc, n;
    bool transposed;
};

std::string Name(const Form &f) {
    return std::string(qdq_dtype_name(f.src)) + qdq_dtype_name(f.weights) + " taps " + std::to_string(f.taps) + " kc " +
           std::to_string(f.kc) + " n " + std::to_string(f.n) + (f.transposed ? " transposed" : "");
}

struct AlignedFree {
    void operator()(void *p) const { free(p); }
};

class Igemm : public testing::Test {
  protected:
    Igemm() : before_(qk_isa_cap()) {}
    ~Igemm() override { qk_isa_set_cap(before_); }

    // Calls f for each level that has a row of its own for these types.
    template <class F> void EachLevel(const Form &form, F f) {
        int seen = 0;
        for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
            if (!qk_isa_host_has(qk_isa(isa))) continue;
            qk_isa_set_cap(qk_isa(isa));
            qk_igemm g = {};
            g.src = form.src;
            g.weights = form.weights;
            g.n_taps = form.taps;
            g.kc = form.kc;
            g.n = form.n;
            ASSERT_TRUE(qk_igemm_init(&g)) << Name(form);
            if (g.isa != isa) continue;
            seen++;
            SCOPED_TRACE(std::string(qk_isa_name(g.isa)) + " " + Name(form));
            f(g);
        }
        EXPECT_GE(seen, 1);
    }

  private:
    qk_isa before_;
};

int32_t Value(qdq_dtype d, uint8_t byte) {
    return d == QDQ_DTYPE_S8 ? int32_t(int8_t(byte)) : int32_t(byte);
}

void CheckIntegers(const qk_igemm &g, const Form &f, size_t m, bool extreme, uint64_t seed) {
    const size_t k_all = f.taps * f.kc;
    std::vector<uint8_t> w(k_all * f.n);
    for (auto &x : w)
        x = extreme ? uint8_t(f.weights == QDQ_DTYPE_S8 ? 0x80 : 0xff) : uint8_t(kd_next(&seed));
    qk_igemm_source s = {w.data(), f.weights, 0, 0, 0};
    s.tap_stride = ptrdiff_t(f.transposed ? f.kc : f.kc * f.n);
    s.k_stride = ptrdiff_t(f.transposed ? 1 : f.n);
    s.n_stride = ptrdiff_t(f.transposed ? k_all : 1);
    std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
    for (size_t p = 0; p < g.n_panels; p++) // one by one, from the last
        qk_igemm_pack(&g, &s, packed.get(), g.n_panels - 1 - p, 1);
    // every row of every tap ends at a page that may not be read
    std::vector<std::unique_ptr<GuardedBytes>> pages;
    std::vector<const void *> rows(f.taps * QK_IGEMM_ROWS, nullptr);
    for (size_t t = 0; t < f.taps; t++)
        for (size_t r = 0; r < m; r++) {
            pages.push_back(std::make_unique<GuardedBytes>(f.kc));
            uint8_t *a = r % 2 ? pages.back()->at_begin() : pages.back()->at_end();
            for (size_t k = 0; k < f.kc; k++)
                a[k] = extreme ? uint8_t(f.src == QDQ_DTYPE_S8 ? 0x7f : 0xff) : uint8_t(kd_next(&seed));
            rows[t * QK_IGEMM_ROWS + r] = a;
        }
    std::vector<int32_t> row_sums(m, 7);
    g.row_sums(&g, rows.data(), m, row_sums.data());
    const int32_t *col_sums = qk_igemm_col_sums(&g, packed.get());
    GuardedBytes acc_bytes(m * QK_IGEMM_COLS * sizeof(int32_t));
    auto *acc = reinterpret_cast<int32_t *>(acc_bytes.at_end());
    for (size_t p = 0; p < g.n_panels; p++) {
        g.run(&g, packed.get(), rows.data(), m, p, acc);
        for (size_t r = 0; r < m; r++)
            for (size_t c = p * QK_IGEMM_COLS; c < f.n && c < (p + 1) * QK_IGEMM_COLS; c++) {
                int64_t want = 0, row_sum = 0, col_sum = 0;
                for (size_t t = 0; t < f.taps; t++)
                    for (size_t k = 0; k < f.kc; k++) {
                        const ptrdiff_t at =
                            ptrdiff_t(t) * s.tap_stride + ptrdiff_t(k) * s.k_stride + ptrdiff_t(c) * s.n_stride;
                        const auto *row = static_cast<const uint8_t *>(rows[t * QK_IGEMM_ROWS + r]);
                        const int32_t a = Value(f.src, row[k]) + g.src_shift;
                        const int32_t b = Value(f.weights, w[size_t(at)]) - g.weights_shift;
                        want += a * b;
                        row_sum += a;
                        col_sum += b;
                    }
                ASSERT_EQ(acc[r * QK_IGEMM_COLS + c - p * QK_IGEMM_COLS], want) << "row " << r << " col " << c;
                ASSERT_EQ(row_sums[r], row_sum);
                ASSERT_EQ(col_sums[c], col_sum);
            }
    }
}

TEST_F(Igemm, IntegerSumsAreExactOnEveryLevel) {
    const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    const size_t kcs[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 511, 512, 513, 1030};
    const size_t ns[] = {1, 7, 8, 15, 16, 17, 33, 48, 63, 64, 65, 130};
    uint64_t seed = 20;
    size_t i = 0;
    for (qdq_dtype src : types)
        for (qdq_dtype weights : types)
            for (size_t kc : kcs) {
                const size_t n = ns[i++ % (sizeof ns / sizeof ns[0])];
                const Form form = {src, weights, 1 + i % 3, kc, n, i % 2 == 0};
                EachLevel(form, [&](const qk_igemm &g) {
                    for (size_t m = 1; m <= QK_IGEMM_ROWS; m++)
                        CheckIntegers(g, form, m, false, seed++);
                });
            }
}

TEST_F(Igemm, NothingSaturates) {
    const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    for (qdq_dtype src : types)
        for (qdq_dtype weights : types) {
            const Form form = {src, weights, 2, 301, 70, false};
            EachLevel(form, [&](const qk_igemm &g) { CheckIntegers(g, form, QK_IGEMM_ROWS, true, 1); });
        }
}

TEST_F(Igemm, FloatSumsAreWithinTheirBoundAndDoNotDependOnTheTile) {
    const size_t kcs[] = {1, 2, 7, 16, 33, 100}, ns[] = {1, 8, 15, 17, 40, 64, 70};
    uint64_t seed = 3;
    size_t i = 0;
    for (size_t kc : kcs)
        for (size_t n : ns) {
            const Form form = {QDQ_DTYPE_F32, QDQ_DTYPE_F32, 1 + i++ % 3, kc, n, false};
            EachLevel(form, [&](const qk_igemm &g) {
                const size_t k_all = form.taps * kc;
                std::vector<float> w(k_all * n);
                for (auto &x : w)
                    x = float(int32_t(kd_next(&seed) % 2001) - 1000) * 1e-3f;
                const qk_igemm_source s = {w.data(), QDQ_DTYPE_F32, ptrdiff_t(kc * n), ptrdiff_t(n), 1};
                std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
                qk_igemm_pack(&g, &s, packed.get(), 0, g.n_panels);
                std::vector<std::unique_ptr<GuardedBytes>> pages;
                std::vector<const void *> rows(form.taps * QK_IGEMM_ROWS, nullptr);
                for (size_t t = 0; t < form.taps; t++)
                    for (size_t r = 0; r < QK_IGEMM_ROWS; r++) {
                        pages.push_back(std::make_unique<GuardedBytes>(kc * 4));
                        auto *a = reinterpret_cast<float *>(pages.back()->at_end());
                        for (size_t k = 0; k < kc; k++)
                            a[k] = float(int32_t(kd_next(&seed) % 2001) - 1000) * 1e-3f;
                        rows[t * QK_IGEMM_ROWS + r] = a;
                    }
                std::vector<float> all(QK_IGEMM_ROWS * QK_IGEMM_COLS), one(all);
                for (size_t p = 0; p < g.n_panels; p++) {
                    g.run(&g, packed.get(), rows.data(), QK_IGEMM_ROWS, p, all.data());
                    for (size_t m = 1; m <= QK_IGEMM_ROWS; m++) {
                        g.run(&g, packed.get(), rows.data(), m, p, one.data());
                        for (size_t r = 0; r < m; r++)
                            for (size_t c = p * QK_IGEMM_COLS; c < n && c < (p + 1) * QK_IGEMM_COLS; c++) {
                                const size_t at = r * QK_IGEMM_COLS + c - p * QK_IGEMM_COLS;
                                ASSERT_EQ(one[at], all[at]);
                                double want = 0, size = 0;
                                for (size_t t = 0; t < form.taps; t++)
                                    for (size_t k = 0; k < kc; k++) {
                                        const double x =
                                            double(static_cast<const float *>(rows[t * QK_IGEMM_ROWS + r])[k]) *
                                            double(w[(t * kc + k) * n + c]);
                                        want += x;
                                        size += std::fabs(x);
                                    }
                                ASSERT_NEAR(double(one[at]), want, double(k_all + 1) * 0x1p-24 * size);
                            }
                    }
                }
            });
        }
}

TEST_F(Igemm, RefusesWhatItDoesNotHave) {
    qk_igemm g = {};
    g.src = QDQ_DTYPE_F32;
    g.weights = QDQ_DTYPE_S8;
    g.n_taps = g.kc = g.n = 1;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.src = QDQ_DTYPE_U8;
    EXPECT_TRUE(qk_igemm_init(&g));
    g.kc = 0;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.kc = SIZE_MAX;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.kc = g.n = g.n_taps = SIZE_MAX / 8;
    EXPECT_FALSE(qk_igemm_init(&g));
}

} // namespace
