#include "kernel_data.h"
#include "kernels/gemm/gemm.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include <algorithm>

namespace {

struct Form {
    qdq_dtype type;
    size_t m, k, n, k_group, n_group;
    bool has_zp, transposed;
};

std::string Name(const Form &f) {
    return std::string(qdq_dtype_name(f.type)) + " m" + std::to_string(f.m) + " k" + std::to_string(f.k) + " n" +
           std::to_string(f.n) + " group " + std::to_string(f.k_group) + "x" + std::to_string(f.n_group) +
           (f.has_zp ? " zp" : "") + (f.transposed ? " transposed" : "");
}

// A product: its operands, its packed weights, and the result in f64 with the sum of magnitudes.
struct Product {
    Form form;
    qk_gemm gemm = {};
    std::vector<uint8_t> weights, packed;
    std::vector<float> scales, a;
    std::vector<int32_t> zps;
    std::vector<double> exact, magnitude;

    bool is4() const { return form.type == QDQ_DTYPE_S4 || form.type == QDQ_DTYPE_U4; }
    bool is_signed() const { return form.type == QDQ_DTYPE_S4 || form.type == QDQ_DTYPE_S8; }
    int32_t low() const { return is_signed() ? (is4() ? -8 : -128) : 0; }
    int32_t middle() const { return is_signed() ? 0 : is4() ? 8 : 128; }
    int32_t high() const { return low() + (is4() ? 15 : 255); }
    size_t at(size_t k, size_t n) const { return form.transposed ? n * form.k + k : k * form.n + n; }
    int32_t q(size_t k, size_t n) const {
        const size_t i = at(k, n);
        const int32_t raw = is4() ? weights[i / 2] >> i % 2 * 4 & 15 : weights[i];
        return raw > high() ? raw - (is4() ? 16 : 256) : raw;
    }
    size_t n_groups_n() const { return (form.n + form.n_group - 1) / form.n_group; }
    size_t scale_at(size_t k, size_t n) const { return k / form.k_group * n_groups_n() + n / form.n_group; }

    qk_gemm_source Source() const {
        return {weights.data(),
                form.transposed ? 1 : form.n,
                form.transposed ? form.k : 1,
                scales.data(),
                form.has_zp ? zps.data() : nullptr,
                form.n_group,
                n_groups_n(),
                1};
    }

    void Compute() {
        const Form &f = form;
        exact.assign(f.m * f.n, 0);
        magnitude.assign(f.m * f.n, 0);
        for (size_t i = 0; i < f.m; i++)
            for (size_t j = 0; j < f.n; j++)
                for (size_t k = 0; k < f.k; k++) {
                    const size_t s = scale_at(k, j);
                    const double w = double(q(k, j) - (f.has_zp ? zps[s] : middle())) * scales[s];
                    exact[i * f.n + j] += a[i * f.k + k] * w;
                    magnitude[i * f.n + j] += std::fabs(a[i * f.k + k] * w);
                }
    }

    Product(const Form &f, uint64_t seed) : form(f) {
        weights.resize(is4() ? (f.k * f.n + 1) / 2 : f.k * f.n);
        for (auto &w : weights)
            w = uint8_t(kd_next(&seed));
        const size_t n_params = (f.k + f.k_group - 1) / f.k_group * n_groups_n();
        for (size_t i = 0; i < n_params; i++) {
            scales.push_back((kd_next(&seed) % 2 ? 1.0f : -1.0f) * (0.001f + float(kd_next(&seed) % 1000) * 1e-4f));
            const int32_t ends[] = {low(), high(), 0, low() + int32_t(kd_next(&seed) % uint32_t(high() - low()))};
            zps.push_back(ends[kd_next(&seed) % 4]);
        }
        for (size_t i = 0; i < f.m * f.k; i++)
            a.push_back(float(int32_t(kd_next(&seed) % 20001) - 10000) * 3.1e-4f);
        Compute();
        gemm.weights = f.type;
        gemm.k = f.k;
        gemm.n = f.n;
        gemm.k_group = f.k_group;
        gemm.has_zp = f.has_zp;
        EXPECT_TRUE(qk_gemm_init(&gemm)) << Name(f);
        packed.assign(gemm.packed_bytes + 64, 0xa5);
        const qk_gemm_source source = Source();
        EXPECT_TRUE(qk_gemm_pack(&gemm, &source, packed.data()));
        for (size_t i = gemm.packed_bytes; i < packed.size(); i++)
            EXPECT_EQ(packed[i], 0xa5);
    }

    // Rows of A end with what may not be read, rows of C with what may not be written.
    std::vector<float> Run(qk_gemm_fn *fn, size_t split) const {
        const size_t lda = form.k + 3, ldc = form.n + 5;
        std::vector<float> rows(form.m * lda, kd_float(0x7fc00000)), c(form.m * ldc, -77.0f), result;
        for (size_t i = 0; i < form.m; i++)
            std::copy_n(&a[i * form.k], form.k, &rows[i * lda]);
        rows.resize(form.m * lda - 3); // so that a sanitizer sees the last row's end
        rows.shrink_to_fit();
        c.resize(form.m * ldc - 5);
        c.shrink_to_fit();
        for (size_t p = 0; p < gemm.n_panels; p += split)
            fn(&gemm, packed.data(), rows.data(), lda, c.data(), ldc, form.m, p, std::min(split, gemm.n_panels - p));
        for (size_t i = 0; i < form.m; i++) {
            for (size_t j = form.n; j < ldc && i + 1 < form.m; j++)
                EXPECT_EQ(c[i * ldc + j], -77.0f);
            result.insert(result.end(), &c[i * ldc], &c[i * ldc] + form.n);
        }
        return result;
    }
};

class Gemm : public testing::Test {
  protected:
    Gemm() : before_(qk_isa_cap()) {}
    ~Gemm() override { qk_isa_set_cap(before_); }
    template <class F> void EachLevel(F f) {
        int seen = 0;
        for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
            if (!qk_isa_host_has(qk_isa(isa))) continue;
            qk_isa_set_cap(qk_isa(isa));
            qk_isa got = QK_ISA_COUNT;
            const qk_gemm any = {};
            qk_gemm_fn *fn = qk_gemm_choose(&any, nullptr, &got);
            if (got != isa) continue;
            seen++;
            SCOPED_TRACE(qk_isa_name(got));
            f(fn);
        }
        EXPECT_GE(seen, 1);
    }
    void Check(const Form &form, uint64_t seed) {
        SCOPED_TRACE(Name(form));
        const Product p(form, seed);
        EachLevel([&](qk_gemm_fn *fn) {
            const std::vector<float> c = p.Run(fn, p.gemm.n_panels);
            for (size_t i = 0; i < c.size(); i++) {
                // runs of 256, then their sums: see the header
                const double bound = (double(QK_GEMM_RUN + form.k / form.k_group) + 8) * 0x1p-24 * p.magnitude[i];
                ASSERT_NEAR(c[i], p.exact[i], bound + 1e-30) << "row " << i / form.n << " column " << i % form.n;
            }
            // the same bytes whoever computes a panel, and whatever the other rows are
            EXPECT_EQ(p.Run(fn, 1), c);
            Product last_row = p;
            last_row.form.m = 1;
            last_row.a.erase(last_row.a.begin(), last_row.a.end() - ptrdiff_t(form.k));
            EXPECT_EQ(last_row.Run(fn, 3), std::vector<float>(c.end() - ptrdiff_t(form.n), c.end()));
        });
    }

  private:
    qk_isa before_;
};

const qdq_dtype kTypes[] = {QDQ_DTYPE_S8, QDQ_DTYPE_U8, QDQ_DTYPE_S4, QDQ_DTYPE_U4};

TEST_F(Gemm, MatchesRealArithmeticWithTailsEverywhere) {
    uint64_t seed = 1;
    for (const qdq_dtype type : kTypes)
        for (const size_t m : {1, 2, 3, 4, 5, 7, 33})
            for (const size_t k : {1, 7, 8, 63, 300, 520})
                for (const size_t n : {1, 15, 64, 67, 130}) {
                    if (m * k * n > 400000) continue;
                    const size_t groups[] = {k, (k + 1) / 2, 1 + k / 7, 1};
                    const size_t g = groups[kd_next(&seed) % 4];
                    const bool zp = kd_next(&seed) % 2, transposed = kd_next(&seed) % 2;
                    Check({type, m, k, n, g, 1 + kd_next(&seed) % 3, zp, transposed}, kd_next(&seed));
                    if (HasFatalFailure()) return;
                }
}

TEST_F(Gemm, OneScalePerTensorColumnAndGroup) {
    for (const qdq_dtype type : kTypes)
        for (const bool zp : {false, true}) {
            Check({type, 2, 700, 70, 700, 70, zp, false}, 3); // tensor
            Check({type, 3, 700, 70, 700, 1, zp, true}, 4);   // column
            Check({type, 4, 700, 70, 128, 1, zp, false}, 5);  // groups, the last is short
            Check({type, 6, 640, 64, 32, 1, zp, true}, 6);
            Check({type, 5, 90, 70, 9, 16, zp, true}, 7); // groups along both
        }
}

// Every value of the type, times 1: what comes out is the dequantized weight, exactly.
TEST_F(Gemm, DequantizesExactly) {
    for (const qdq_dtype type : kTypes) {
        const bool is4 = type == QDQ_DTYPE_S4 || type == QDQ_DTYPE_U4;
        const bool is_signed = type == QDQ_DTYPE_S8 || type == QDQ_DTYPE_S4;
        const int32_t low = is_signed ? (is4 ? -8 : -128) : 0, high = low + (is4 ? 15 : 255);
        for (const int32_t zp : {low, high, 0}) {
            const size_t n = size_t(high - low + 1);
            std::vector<uint8_t> q(n);
            for (size_t i = 0; i < n; i++)
                if (is4)
                    q[i / 2] = uint8_t(q[i / 2] | ((uint32_t(low + int32_t(i)) & 15u) << i % 2 * 4));
                else
                    q[i] = uint8_t(low + int32_t(i));
            const float scale = 0.37f, one = 1.0f;
            qk_gemm g = {};
            g.weights = type;
            g.k = g.k_group = 1;
            g.n = n;
            g.has_zp = true;
            ASSERT_TRUE(qk_gemm_init(&g));
            std::vector<uint8_t> packed(g.packed_bytes);
            const qk_gemm_source source = {q.data(), n, 1, &scale, &zp, n, 1, 1};
            ASSERT_TRUE(qk_gemm_pack(&g, &source, packed.data()));
            EachLevel([&](qk_gemm_fn *fn) {
                std::vector<float> c(n);
                fn(&g, packed.data(), &one, 1, c.data(), n, 1, 0, g.n_panels);
                for (size_t i = 0; i < n; i++)
                    ASSERT_EQ(c[i], float(low + int32_t(i) - zp) * scale) << qdq_dtype_name(type) << " zp " << zp;
            });
        }
    }
}

// One value that dwarfs all others of its run meets weights of nothing: what is left is as right as without it.
TEST_F(Gemm, OutliersDoNotDrownTheOthers) {
    for (const qdq_dtype type : {QDQ_DTYPE_S8, QDQ_DTYPE_U4}) {
        Product p({type, 3, 256, 66, 128, 66, true, false}, 12);
        for (auto &z : p.zps)
            z = p.q(20, 0);
        for (size_t n = 1; n < 66; n++) { // the weights of k = 20 and 150 are the zero point
            const size_t bytes[] = {p.at(20, n), p.at(150, n)};
            for (size_t i : bytes)
                if (p.is4())
                    p.weights[i / 2] =
                        uint8_t((p.weights[i / 2] & ~(15 << i % 2 * 4)) | (p.q(20, 0) & 15) << i % 2 * 4);
                else
                    p.weights[i] = uint8_t(p.q(20, 0));
        }
        for (size_t row = 0; row < 3; row++) {
            p.a[row * 256 + 20] = row == 1 ? 3e4f : 250.0f;
            p.a[row * 256 + 150] = row == 1 ? -2e4f : 100.0f;
        }
        const qk_gemm_source source = p.Source();
        ASSERT_TRUE(qk_gemm_pack(&p.gemm, &source, p.packed.data()));
        p.Compute();
        EachLevel([&](qk_gemm_fn *fn) {
            const std::vector<float> c = p.Run(fn, 1);
            for (size_t i = 0; i < c.size(); i++)
                if (i % 66 != 0) {
                    const double bound = (double(QK_GEMM_RUN) + 10) * 0x1p-24 * p.magnitude[i];
                    ASSERT_NEAR(c[i], p.exact[i], bound)
                        << qdq_dtype_name(type) << " row " << i / 66 << " column " << i % 66;
                }
        });
    }
}

// The greatest weights by the greatest digits, for as long as a run is: sums of words must not be wrapped.
TEST_F(Gemm, ExtremesDoNotOverflow) {
    for (const qdq_dtype type : kTypes) {
        Product p({type, 2, 600, 66, 600, 66, true, false}, 21);
        std::fill(p.weights.begin(), p.weights.end(), uint8_t(p.is_signed() ? (p.is4() ? 0x77 : 0x7f) : 0xff));
        std::fill(p.zps.begin(), p.zps.end(), p.low());
        for (size_t k = 0; k < 600; k++) { // digits of 127, -128 and -128, and of the other sign
            p.a[k] = 8290176.0f * 0x1p-22f;
            p.a[600 + k] = -8290176.0f * 0x1p-22f;
        }
        const qk_gemm_source source = p.Source();
        ASSERT_TRUE(qk_gemm_pack(&p.gemm, &source, p.packed.data()));
        p.Compute();
        EachLevel([&](qk_gemm_fn *fn) {
            const std::vector<float> c = p.Run(fn, 1);
            for (size_t i = 0; i < c.size(); i++)
                ASSERT_NEAR(c[i], p.exact[i], (double(QK_GEMM_RUN) + 10) * 0x1p-24 * p.magnitude[i])
                    << qdq_dtype_name(type) << " row " << i / 66 << " column " << i % 66;
        });
    }
}

TEST_F(Gemm, NonFiniteRowsStayTheirOwn) {
    Product p({QDQ_DTYPE_U4, 3, 40, 65, 8, 1, true, false}, 9);
    p.a[40 + 17] = kd_float(0x7fc00000);
    EachLevel([&](qk_gemm_fn *fn) {
        const std::vector<float> c = p.Run(fn, 1);
        for (size_t j = 0; j < 65; j++) {
            EXPECT_TRUE(std::isfinite(c[j]));
            EXPECT_TRUE(std::isnan(c[65 + j]));
            EXPECT_TRUE(std::isfinite(c[130 + j]));
        }
    });
}

TEST_F(Gemm, RefusesWhatItCannotHold) {
    const qk_gemm good = {QDQ_DTYPE_S8, 4, 4, 4, true, 0, 0, 0, 0};
    qk_gemm g = good;
    EXPECT_TRUE(qk_gemm_init(&g));
    const float scale = 1.0f;
    std::vector<uint8_t> packed(g.packed_bytes), q(16);
    for (const int32_t zp : {-129, 128, INT32_MAX, INT32_MIN}) {
        const qk_gemm_source source = {q.data(), 4, 1, &scale, &zp, 4, 0, 0};
        EXPECT_FALSE(qk_gemm_pack(&g, &source, packed.data())) << zp;
    }
    g = good, g.weights = QDQ_DTYPE_F32;
    EXPECT_FALSE(qk_gemm_init(&g));
    g = good, g.k_group = 5;
    EXPECT_FALSE(qk_gemm_init(&g));
    g = good, g.k_group = 0;
    EXPECT_FALSE(qk_gemm_init(&g));
    g = good, g.n = 0;
    EXPECT_FALSE(qk_gemm_init(&g));
    g = good, g.k = g.k_group = SIZE_MAX / 32;
    EXPECT_FALSE(qk_gemm_init(&g));
    g = good, g.n = SIZE_MAX;
    EXPECT_FALSE(qk_gemm_init(&g));
}

} // namespace
