#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/igemm/igemm.h"
#include "kernels/post/post.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace {

// Weights: any bytes, all at the end of their range, or small enough for pairs to be certified but for one k in 37.
enum class Kind { any, extreme, small };

struct Form {
    qdq_dtype src, weights;
    size_t kc, n;
    bool transposed;
    Kind kind = Kind::any;
};

std::string Name(const Form &f) {
    return std::string(qdq_dtype_name(f.src)) + qdq_dtype_name(f.weights) + " kc " + std::to_string(f.kc) + " n " +
           std::to_string(f.n) + (f.transposed ? " transposed" : "");
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
            g.kc = form.kc;
            g.n = form.n;
            g.is_lasting = form.kind == Kind::small;
            const bool is_taken = qk_igemm_init(&g);
            ASSERT_TRUE(is_taken || form.src == QDQ_DTYPE_BF16) << Name(form);
            if (!is_taken || g.isa != isa) continue;
            seen++;
            SCOPED_TRACE(std::string(qk_isa_name(g.isa)) + " " + Name(form));
            f(g);
        }
        EXPECT_TRUE(seen >= 1 || form.src == QDQ_DTYPE_BF16);
    }

  private:
    qk_isa before_;
};

int32_t Value(qdq_dtype d, uint8_t byte) {
    return d == QDQ_DTYPE_S8 ? int32_t(int8_t(byte)) : int32_t(byte);
}

void CheckIntegers(const qk_igemm &g, const Form &f, size_t m, uint64_t seed) {
    std::vector<uint8_t> w(f.kc * f.n);
    const qk_igemm_source s = {w.data(), f.weights, ptrdiff_t(f.transposed ? 1 : f.n),
                               ptrdiff_t(f.transposed ? f.kc : 1)};
    const bool extreme = f.kind == Kind::extreme;
    for (size_t k = 0; k < f.kc; k++)
        for (size_t c = 0; c < f.n; c++) {
            uint8_t &x = w[k * size_t(s.k_stride) + c * size_t(s.n_stride)];
            const uint64_t r = kd_next(&seed);
            const int32_t small = k % 37 == 5 ? (r % 2 ? 127 : -128) : int32_t(r % 3) * 64 - 64;
            x = extreme ? uint8_t(f.weights == QDQ_DTYPE_S8 ? 0x80 : 0xff) : uint8_t(r);
            if (f.kind == Kind::small) x = uint8_t(small + (f.weights == QDQ_DTYPE_S8 ? 0 : 128));
        }
    std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
    for (size_t p = 0; p < g.n_panels; p++) // one by one, from the last
        qk_igemm_pack(&g, &s, packed.get(), g.n_panels - 1 - p, 1);
    // the rows' last byte is the last of a page, the first the first of one
    GuardedBytes bytes(m * f.kc);
    for (uint8_t *a : {bytes.at_end(), bytes.at_begin()}) {
        for (size_t i = 0; i < m * f.kc; i++)
            a[i] = extreme || (f.kind == Kind::small && i / f.kc % 2 == 0)
                       ? uint8_t(f.src == QDQ_DTYPE_S8 ? 0x7f : 0xff)
                       : uint8_t(kd_next(&seed));
        const qk_igemm_rows rows = {a, ptrdiff_t(f.kc), m};
        std::vector<int32_t> row_sums(m, 7);
        g.row_sums(&g, &rows, row_sums.data());
        const int32_t *col_sums = qk_igemm_col_sums(&g, packed.get());
        GuardedBytes acc_bytes(m * QK_IGEMM_COLS * sizeof(int32_t));
        auto *acc = reinterpret_cast<int32_t *>(acc_bytes.at_end());
        for (size_t p = 0; p < g.n_panels; p++) {
            g.run(&g, packed.get(), &rows, p, acc);
            for (size_t r = 0; r < m; r++)
                for (size_t c = p * QK_IGEMM_COLS; c < f.n && c < (p + 1) * QK_IGEMM_COLS; c++) {
                    int64_t want = 0, row_sum = 0, col_sum = 0;
                    for (size_t k = 0; k < f.kc; k++) {
                        const ptrdiff_t at = ptrdiff_t(k) * s.k_stride + ptrdiff_t(c) * s.n_stride;
                        const int32_t x = Value(f.src, a[r * f.kc + k]) + g.src_shift;
                        const int32_t y = Value(f.weights, w[size_t(at)]) - g.weights_shift;
                        want += x * y;
                        row_sum += x;
                        col_sum += y;
                    }
                    ASSERT_EQ(acc[r * QK_IGEMM_COLS + c - p * QK_IGEMM_COLS], want) << "row " << r << " col " << c;
                    ASSERT_EQ(row_sums[r], row_sum);
                    ASSERT_EQ(col_sums[c], col_sum);
                }
        }
    }
}

const size_t kHeights[] = {1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 17, 19, 22, 23, 24};

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
                const Form form = {src, weights, kc, n, i % 2 == 0};
                EachLevel(form, [&](const qk_igemm &g) {
                    for (size_t h = i % 3; h<sizeof kHeights / sizeof kHeights[0]; h += kc> 64 ? 3 : 1)
                        CheckIntegers(g, form, kHeights[h], seed++);
                });
            }
}

TEST_F(Igemm, NothingSaturates) {
    const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    for (qdq_dtype src : types)
        for (qdq_dtype weights : types) {
            const Form form = {src, weights, 601, 70, false, Kind::extreme};
            EachLevel(form, [&](const qk_igemm &g) { CheckIntegers(g, form, QK_IGEMM_ROWS, 1); });
        }
}

// Pairs at the very end of what does not saturate, and beyond it, by rows of 255, too.
TEST_F(Igemm, CertifiedWeightsAreExact) {
    const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    const size_t kcs[] = {1, 3, 5, 15, 16, 17, 32, 35, 64, 101, 513, 1030}, ns[] = {3, 16, 17, 64, 70, 33, 140};
    uint64_t seed = 37;
    size_t i = 0;
    for (size_t kc : kcs)
        for (qdq_dtype src : types) {
            const Form form = {src, types[i / 2 % 2], kc, ns[i % (sizeof ns / sizeof ns[0])], i % 3 == 0, Kind::small};
            EachLevel(form, [&](const qk_igemm &g) {
                CheckIntegers(g, form, kHeights[i % (sizeof kHeights / sizeof kHeights[0])], seed++);
            });
            i++;
        }
}

TEST_F(Igemm, WeightsThatLastArePackedAsBytesWhereThatPays) {
    const size_t kc = 300, n = 64;
    std::vector<uint8_t> w(kc * n);
    uint64_t seed = 8;
    EachLevel({QDQ_DTYPE_U8, QDQ_DTYPE_S8, kc, n, false}, [&](const qk_igemm &g) {
        for (bool is_small : {true, false}) {
            for (auto &x : w)
                x = is_small ? uint8_t(int32_t(kd_next(&seed) % 129) - 64) : uint8_t(kd_next(&seed));
            const qk_igemm_source s = {w.data(), QDQ_DTYPE_S8, n, 1};
            std::vector<uint8_t> packed[2];
            for (int is_lasting = 0; is_lasting < 2; is_lasting++) {
                qk_igemm h = g;
                h.is_lasting = is_lasting != 0;
                packed[is_lasting].assign(g.packed_bytes, 0);
                qk_igemm_pack(&h, &s, packed[is_lasting].data(), 0, 1);
            }
            EXPECT_EQ(packed[0] != packed[1], is_small && g.isa == QK_ISA_avx2);
        }
    });
}

TEST_F(Igemm, BytesOfAnyStrideArePackedAlike) {
    const size_t kcs[] = {1, 3, 4, 6, 32, 33, 37, 63}, ns[] = {1, 15, 16, 33, 64, 70};
    uint64_t seed = 51;
    for (size_t kc : kcs)
        for (size_t n : ns) {
            const qdq_dtype type = (kc + n) % 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
            const ptrdiff_t any_k = ptrdiff_t(2 * n + 1), any_n = 2;
            GuardedBytes rows(kc * n), columns(kc * n), apart((kc - 1) * size_t(any_k) + (n - 1) * 2 + 1);
            for (size_t k = 0; k < kc; k++)
                for (size_t c = 0; c < n; c++)
                    rows.at_end()[k * n + c] = columns.at_begin()[c * kc + k] =
                        apart.at_end()[k * size_t(any_k) + 2 * c] = uint8_t(kd_next(&seed));
            EachLevel({QDQ_DTYPE_S8, type, kc, n, false}, [&](const qk_igemm &g) {
                const qk_igemm_source sources[] = {{rows.at_end(), type, ptrdiff_t(n), 1},
                                                   {columns.at_begin(), type, 1, ptrdiff_t(kc)},
                                                   {apart.at_end(), type, any_k, any_n}};
                std::vector<uint8_t> packed[3];
                for (size_t i = 0; i < 3; i++) {
                    packed[i].assign(g.packed_bytes, 0);
                    qk_igemm_pack(&g, &sources[i], packed[i].data(), 0, g.n_panels);
                }
                ASSERT_EQ(packed[1], packed[0]);
                ASSERT_EQ(packed[2], packed[0]);
            });
        }
}

// A row by weights where they lie, which end at a page or begin with one.
TEST_F(Igemm, ALineIsThePackedProduct) {
    const size_t kcs[] = {1, 2, 15, 16, 31, 33, 64, 100, 1023, 1024, 1025, 2100},
                 ns[] = {1, 4, 7, 16, 31, 64, 129, 300};
    uint64_t seed = 15;
    size_t i = 0;
    for (size_t kc : kcs)
        for (size_t step = 0; step < 4; step++, i++) {
            const size_t n = ns[i * 3 % (sizeof ns / sizeof ns[0])];
            const Form f = {i % 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8, i / 2 % 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8, kc, n,
                            (i + i / 4) % 2 == 0};
            GuardedBytes a(kc), w(kc * n);
            for (bool at_end : {true, false}) {
                uint8_t *row = at_end ? a.at_end() : a.at_begin(), *weights = at_end ? w.at_end() : w.at_begin();
                for (size_t k = 0; k < kc; k++)
                    row[k] = at_end ? uint8_t(kd_next(&seed)) : f.src == QDQ_DTYPE_S8 ? 0x80 : 0xff;
                for (size_t k = 0; k < kc * n; k++)
                    weights[k] = at_end ? uint8_t(kd_next(&seed)) : f.weights == QDQ_DTYPE_S8 ? 0x80 : 0xff;
                const qk_igemm_source s = {weights, f.weights, ptrdiff_t(f.transposed ? 1 : n),
                                           ptrdiff_t(f.transposed ? kc : 1)};
                const int32_t zero = at_end ? 77 : 255, source = f.src == QDQ_DTYPE_S8 ? 128 : 0,
                              shift = f.weights == QDQ_DTYPE_U8 ? 128 : 0;
                const size_t first = n / 3;
                std::vector<int32_t> want(n - first);
                for (size_t c = first; c < n; c++)
                    for (size_t k = 0; k < kc; k++)
                        want[c - first] += (Value(f.src, row[k]) + source - zero) *
                                           (Value(f.weights, weights[f.transposed ? c * kc + k : k * n + c]) - shift);
                for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
                    if (!qk_isa_host_has(qk_isa(isa))) continue;
                    qk_isa_set_cap(qk_isa(isa));
                    qk_igemm g = {};
                    g.src = f.src;
                    g.weights = f.weights;
                    g.kc = kc;
                    g.n = n;
                    ASSERT_TRUE(qk_igemm_init(&g));
                    ASSERT_EQ(g.line == nullptr, g.line_rows == 0);
                    if (g.line == nullptr) continue;
                    SCOPED_TRACE(std::string(qk_isa_name(qk_isa(isa))) + " " + Name(f));
                    std::vector<int32_t> acc(n - first, 1);
                    ASSERT_TRUE(g.line(&g, row, zero, &s, first, n - first, acc.data()));
                    ASSERT_EQ(acc, want);
                    EXPECT_FALSE(g.line(&g, row, 256, &s, first, n - first, acc.data()));
                    EXPECT_FALSE(g.line(&g, row, -1, &s, first, n - first, acc.data()));
                    qk_igemm_source apart = s;
                    apart.k_stride = apart.n_stride = 2;
                    EXPECT_FALSE(g.line(&g, row, zero, &apart, 0, 1, acc.data()));
                }
            }
        }
}

const qdq_dtype kFloats[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16};

// Floats of several magnitudes that bf16 has, too.
void FillFloats(uint8_t *to, qdq_dtype type, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++) {
        const float v = std::ldexp(float(int32_t(kd_next(seed) % 255) - 127), int(kd_next(seed) % 9) - 12);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        const uint16_t half = uint16_t(bits >> 16);
        if (type == QDQ_DTYPE_F32)
            memcpy(to + 4 * i, &v, 4);
        else
            memcpy(to + 2 * i, &half, 2);
    }
}
double FloatAt(const void *from, qdq_dtype type, size_t i) {
    uint16_t half;
    uint32_t bits;
    float v;
    memcpy(&half, static_cast<const uint8_t *>(from) + 2 * i, 2);
    bits = uint32_t(half) << 16;
    memcpy(&v, &bits, 4);
    if (type == QDQ_DTYPE_F32) memcpy(&v, static_cast<const uint8_t *>(from) + 4 * i, 4);
    return double(v);
}

// `got` within the bound of a row times a column, both kc elements a stride apart.
void ExpectSum(float got, qdq_dtype type, size_t kc, const void *row, const void *column, size_t stride) {
    double want = 0, size = 0;
    for (size_t k = 0; k < kc; k++) {
        const double x = FloatAt(row, type, k) * FloatAt(column, type, k * stride);
        want += x;
        size += std::fabs(x);
    }
    ASSERT_NEAR(double(got), want, double(kc + 1) * 0x1p-24 * size);
}

TEST_F(Igemm, FloatSumsAreWithinTheirBoundAndDoNotDependOnTheTile) {
    const size_t kcs[] = {1, 2, 7, 16, 33, 100}, ns[] = {1, 8, 15, 17, 40, 64, 70};
    uint64_t seed = 3;
    for (qdq_dtype type : kFloats)
        for (size_t kc : kcs)
            for (size_t n : ns) {
                const Form form = {type, type, kc, n, (kc + n) % 2 == 0};
                const size_t elem = qdq_dtype_bits(type) / 8, k_step = form.transposed ? 1 : n,
                             n_step = form.transposed ? kc : 1;
                EachLevel(form, [&](const qk_igemm &g) {
                    GuardedBytes w(kc * n * elem), bytes(QK_IGEMM_ROWS * kc * elem);
                    FillFloats(w.at_end(), type, kc * n, &seed);
                    FillFloats(bytes.at_end(), type, QK_IGEMM_ROWS * kc, &seed);
                    const qk_igemm_source s = {w.at_end(), type, ptrdiff_t(k_step), ptrdiff_t(n_step)};
                    std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
                    qk_igemm_pack(&g, &s, packed.get(), 0, g.n_panels);
                    std::vector<float> all(QK_IGEMM_ROWS * QK_IGEMM_COLS), one(all);
                    for (size_t p = 0; p < g.n_panels; p++) {
                        qk_igemm_rows rows = {bytes.at_end(), ptrdiff_t(kc * elem), QK_IGEMM_ROWS};
                        g.run(&g, packed.get(), &rows, p, all.data());
                        const size_t cols = std::min<size_t>(n - p * QK_IGEMM_COLS, QK_IGEMM_COLS);
                        for (size_t r = 0; r < QK_IGEMM_ROWS; r++)
                            for (size_t c = 0; c < cols; c++)
                                ExpectSum(all[r * QK_IGEMM_COLS + c], type, kc, bytes.at_end() + r * kc * elem,
                                          w.at_end() + (p * QK_IGEMM_COLS + c) * n_step * elem, k_step);
                        for (size_t m : kHeights) {
                            rows.m = m;
                            rows.data = bytes.at_end() + (QK_IGEMM_ROWS - m) * kc * elem; // ends at the page
                            g.run(&g, packed.get(), &rows, p, one.data());
                            for (size_t r = 0; r < m; r++)
                                for (size_t c = 0; c < cols; c++)
                                    ASSERT_EQ(one[r * QK_IGEMM_COLS + c],
                                              all[(r + QK_IGEMM_ROWS - m) * QK_IGEMM_COLS + c]);
                        }
                    }
                });
            }
}

TEST_F(Igemm, PanelsOfFloatsCanBeReadWhereTheyLie) {
    const size_t n = 128, m = 11;
    uint64_t seed = 9;
    for (qdq_dtype type : kFloats)
        for (size_t kc : {37, 64})
            for (size_t step : {128, 150}) {
                const size_t elem = qdq_dtype_bits(type) / 8, n_elems = (kc - 1) * step + n;
                GuardedBytes w(n_elems * elem);
                std::vector<uint8_t> a(m * kc * elem);
                FillFloats(w.at_end(), type, n_elems, &seed);
                FillFloats(a.data(), type, m * kc, &seed);
                EachLevel({type, type, kc, n, false}, [&](const qk_igemm &g) {
                    std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
                    const qk_igemm_source s = {w.at_end(), type, ptrdiff_t(step), 1};
                    qk_igemm_pack(&g, &s, packed.get(), 0, g.n_panels);
                    qk_igemm there = g;
                    there.k_step = step;
                    for (size_t rows_m : {size_t(1), size_t(2), m}) {
                        const qk_igemm_rows rows = {a.data(), ptrdiff_t(kc * elem), rows_m};
                        std::vector<float> want(m * QK_IGEMM_COLS), got(want);
                        for (size_t p = 0; p < g.n_panels; p++) {
                            g.run(&g, packed.get(), &rows, p, want.data());
                            there.run(&there, w.at_end(), &rows, p, got.data());
                            ASSERT_EQ(got, want);
                        }
                    }
                });
            }
}

TEST_F(Igemm, ARowMeetsColumnsWhereTheyLie) {
    uint64_t seed = 31;
    for (qdq_dtype type : kFloats)
        for (size_t kc : {1, 2, 7, 8, 15, 16, 31, 33, 64, 129})
            for (size_t n : {1, 2, 3, 4, 5, 63, 64}) {
                const size_t elem = qdq_dtype_bits(type) / 8;
                GuardedBytes row(kc * elem), columns(kc * n * elem);
                FillFloats(row.at_end(), type, kc, &seed);
                FillFloats(columns.at_end(), type, kc * n, &seed);
                EachLevel({type, type, kc, n, true}, [&](const qk_igemm &g) {
                    if (g.dots == nullptr) return;
                    const qk_igemm_rows there = {columns.at_end(), ptrdiff_t(kc * elem), n};
                    GuardedBytes out((n + 3) / 4 * 16);
                    auto *sums = reinterpret_cast<float *>(out.at_end());
                    g.dots(&g, row.at_end(), &there, sums);
                    for (size_t c = 0; c < n; c++)
                        ExpectSum(sums[c], type, kc, row.at_end(), columns.at_end() + c * kc * elem, 1);
                });
            }
}

TEST_F(Igemm, WhatIsNotFiniteSpreadsOverItsSumsOnly) {
    const size_t kc = 21, n = 70, m = 7;
    const uint16_t wild[] = {0x7f80, 0xff80, 0x7fc1}; // inf, -inf, NaN
    for (qdq_dtype type : kFloats)
        for (uint16_t half : wild) {
            const size_t elem = qdq_dtype_bits(type) / 8;
            uint64_t seed = 4;
            std::vector<uint8_t> w(kc * n * elem), a(m * kc * elem);
            FillFloats(w.data(), type, kc * n, &seed);
            FillFloats(a.data(), type, m * kc, &seed);
            const uint32_t bits = uint32_t(half) << 16;
            memcpy(&a[(2 * kc + 5) * elem], type == QDQ_DTYPE_F32 ? static_cast<const void *>(&bits) : &half, elem);
            EachLevel({type, type, kc, n, false}, [&](const qk_igemm &g) {
                std::vector<uint8_t> packed(g.packed_bytes);
                const qk_igemm_source s = {w.data(), type, ptrdiff_t(n), 1};
                qk_igemm_pack(&g, &s, packed.data(), 0, g.n_panels);
                const qk_igemm_rows rows = {a.data(), ptrdiff_t(kc * elem), m};
                std::vector<float> acc(m * QK_IGEMM_COLS);
                for (size_t p = 0; p < g.n_panels; p++) {
                    g.run(&g, packed.data(), &rows, p, acc.data());
                    for (size_t r = 0; r < m; r++)
                        for (size_t c = 0; c < QK_IGEMM_COLS && p * QK_IGEMM_COLS + c < n; c++) {
                            const double x = FloatAt(w.data(), type, 5 * n + p * QK_IGEMM_COLS + c);
                            const float got = acc[r * QK_IGEMM_COLS + c];
                            ASSERT_EQ(std::isfinite(got), r != 2);
                            if (r == 2 && half != 0x7fc1 && x != 0) {
                                ASSERT_EQ(std::signbit(got), (half == 0xff80) != (x < 0));
                            }
                        }
                }
            });
        }
}

// An end gives the bytes of the program of kernels/post that says the same.
struct EndForm {
    qdq_dtype src, dst;
    bool has_add, has_scale, has_bias, is_relu, is_clip, is_rounded;
    int32_t zp;
    float common;
};

qk_post PostOf(const EndForm &f) {
    qk_post p = {};
    p.acc = f.src == QDQ_DTYPE_F32 || f.src == QDQ_DTYPE_BF16 ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32;
    p.dst = f.dst;
    p.has_col_add = f.has_add;
    p.scale = f.has_scale ? QK_POST_SCALE_COL : QK_POST_SCALE_COMMON;
    p.bias = f.has_bias ? QDQ_DTYPE_F32 : QDQ_DTYPE_UNDEF;
    p.dst_has_zp = f.zp != 0;
    if (f.is_relu || f.is_clip)
        p.steps[p.n_steps++] = {f.is_relu ? QK_POST_RELU : QK_POST_CLIP, f.is_relu ? 0.0f : -3.5f,
                                f.is_relu ? 0.0f : 60.0f, QDQ_DTYPE_UNDEF, false};
    if (f.is_rounded) p.steps[p.n_steps++].op = QK_POST_ROUND;
    return p;
}

void CheckEnd(const qk_igemm &g, const EndForm &f, size_t m, uint64_t seed) {
    const bool is_float = f.src == QDQ_DTYPE_F32 || f.src == QDQ_DTYPE_BF16;
    const size_t elem = qdq_dtype_bits(f.src) / 8, dst_elem = qdq_dtype_bits(f.dst) / 8, n = g.n, kc = g.kc;
    GuardedBytes src(m * kc * elem), w(kc * n * elem), add(n * 4), scale(n * 4), bias(n * 4), dst(m * n * dst_elem);
    for (GuardedBytes *b : {&src, &w}) {
        const size_t count = (b == &src ? m : n) * kc;
        if (is_float) FillFloats(b->at_end(), f.src, count, &seed);
        for (size_t i = 0; !is_float && i < count; i++)
            b->at_end()[i] = uint8_t(kd_next(&seed));
    }
    for (size_t c = 0; c < n; c++) {
        reinterpret_cast<int32_t *>(add.at_end())[c] = int32_t(kd_next(&seed) % 20001) - 10000;
        reinterpret_cast<float *>(scale.at_end())[c] = float(kd_next(&seed) % 1000 + 1) * 4e-6f;
        reinterpret_cast<float *>(bias.at_end())[c] = float(int32_t(kd_next(&seed) % 2001) - 1000) * 0.05f;
    }
    std::unique_ptr<void, AlignedFree> packed(aligned_alloc(64, (g.packed_bytes + 63) / 64 * 64));
    const qk_igemm_source s = {w.at_end(), g.weights, ptrdiff_t(n), 1};
    qk_igemm_pack(&g, &s, packed.get(), 0, g.n_panels);
    std::vector<uint8_t> want(m * n * dst_elem);
    const qk_post post = PostOf(f);
    qk_post_args a = {};
    a.col_add = reinterpret_cast<int32_t *>(add.at_end());
    a.scale_common = f.common;
    a.scale = reinterpret_cast<float *>(scale.at_end());
    a.bias = bias.at_end();
    a.dst_zp = f.zp;
    a.dst = want.data();
    a.dst_stride = ptrdiff_t(n);
    qk_post_fn *post_fn = qk_post_choose(&post, nullptr);
    ASSERT_NE(post_fn, nullptr);
    qk_igemm_end end = {};
    end.dst = f.dst;
    end.add = f.has_add ? a.col_add : nullptr;
    end.scale = f.has_scale ? a.scale : nullptr;
    end.bias = f.has_bias ? static_cast<const float *>(a.bias) : nullptr;
    end.scale_common = f.common;
    end.low = f.is_relu ? 0.0f : f.is_clip ? -3.5f : -INFINITY;
    end.high = f.is_clip ? 60.0f : INFINITY;
    end.is_rounded = f.is_rounded;
    end.zp = float(f.zp);
    end.data = dst.at_end();
    end.stride = ptrdiff_t(n);
    std::vector<int32_t> acc(QK_IGEMM_ROWS * QK_IGEMM_COLS);
    for (size_t p = 0; p < g.n_panels; p++) {
        const size_t cols = std::min<size_t>(n - p * QK_IGEMM_COLS, QK_IGEMM_COLS);
        for (size_t r = 0; r < m; r += QK_IGEMM_ROWS) {
            const qk_igemm_rows some = {src.at_end() + r * kc * elem, ptrdiff_t(kc * elem),
                                        std::min<size_t>(m - r, QK_IGEMM_ROWS)};
            g.run(&g, packed.get(), &some, p, acc.data());
            post_fn(&post, &a, acc.data(), QK_IGEMM_COLS, r, some.m, p * QK_IGEMM_COLS, cols);
        }
        const qk_igemm_rows rows = {src.at_end(), ptrdiff_t(kc * elem), m};
        ASSERT_TRUE(g.run_to_end(&g, packed.get(), &rows, p, &end));
    }
    ASSERT_EQ(std::vector<uint8_t>(dst.at_end(), dst.at_end() + want.size()), want) << "m " << m << " n " << n;
    if (f.dst == QDQ_DTYPE_F32 || f.dst == QDQ_DTYPE_BF16) return;
    // what may not fit s32 is refused
    const qk_igemm_rows rows = {src.at_end(), ptrdiff_t(kc * elem), m};
    for (float wild : {0.5f, -1e30f, INFINITY, NAN}) {
        end.scale_common = wild;
        end.scale = nullptr;
        EXPECT_FALSE(g.run_to_end(&g, packed.get(), &rows, 0, &end)) << wild;
    }
    end.scale_common = 1e-3f;
    end.zp = 1e9f;
    EXPECT_FALSE(g.run_to_end(&g, packed.get(), &rows, 0, &end));
    end.zp = 0.0f;
    end.bias = static_cast<const float *>(a.bias);
    reinterpret_cast<float *>(bias.at_end())[n - 1] = NAN;
    EXPECT_FALSE(g.run_to_end(&g, packed.get(), &rows, g.n_panels - 1, &end));
    EXPECT_EQ(std::vector<uint8_t>(dst.at_end(), dst.at_end() + want.size()), want);
}

TEST_F(Igemm, AnEndGivesTheBytesOfTheProgramThatSaysTheSame) {
    const qdq_dtype u8 = QDQ_DTYPE_U8, s8 = QDQ_DTYPE_S8, f32 = QDQ_DTYPE_F32, bf16 = QDQ_DTYPE_BF16;
    const EndForm forms[] = {
        {u8, u8, false, true, true, true, false, false, 0, 1.0f},
        {s8, u8, true, true, true, true, false, false, 0, 1.0f},
        {s8, s8, true, true, false, false, false, false, 0, 1.0f},
        {u8, s8, false, true, true, true, false, true, -7, 1.0f},
        {u8, u8, true, true, true, false, false, false, 131, 0.3f},
        {u8, u8, true, false, true, false, true, true, 3, 2e-3f},
        {s8, s8, true, false, false, true, false, true, 0, 1e-3f},
        {u8, f32, true, true, true, true, false, false, 0, 0.7f},
        {s8, f32, true, false, false, false, false, false, 0, 0.1f},
        {f32, f32, false, true, true, true, false, false, 0, 1.0f},
        {f32, f32, false, false, false, false, false, false, 0, 1.0f},
        {u8, u8, false, true, false, true, false, true, 255, 1.0f},
        {bf16, bf16, false, false, false, false, false, false, 0, 1.0f},
        {bf16, bf16, false, true, true, true, false, false, 0, 1.0f},
        {bf16, f32, false, false, true, false, true, false, 0, 0.5f},
    };
    const size_t ns[] = {1, 5, 16, 17, 31, 32, 47, 48, 49, 63, 64, 65, 80, 130},
                 ms[] = {1, 2, 3, 5, 6, 7, 8, 16, 25, 49};
    uint64_t seed = 77;
    size_t i = 0;
    for (const EndForm &f : forms)
        for (size_t n : ns) {
            const qdq_dtype weights = f.src == f32 || f.src == bf16 ? f.src : i % 3 ? s8 : u8;
            EachLevel({f.src, weights, 1 + i % 70, n, false}, [&](const qk_igemm &g) {
                if (g.run_to_end == nullptr) return;
                for (size_t q = 0; q < 3; q++)
                    CheckEnd(g, f, ms[(i + q * 3) % (sizeof ms / sizeof ms[0])], seed++);
            });
            i++;
        }
}

TEST_F(Igemm, WeightsOfEveryTypeAndOrderArePackedAlike) {
    const qdq_dtype types[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    uint64_t seed = 5;
    for (qdq_dtype type : types)
        for (size_t kc : {1, 15, 16, 17, 40})
            for (size_t n : {1, 16, 20, 63, 64, 81}) {
                const size_t elem = type == QDQ_DTYPE_F32 ? 4 : 2;
                GuardedBytes rows(kc * n * elem), columns(kc * n * elem);
                std::vector<float> values(kc * n);
                for (size_t k = 0; k < kc; k++)
                    for (size_t c = 0; c < n; c++) { // small integers over 8 are the same in all three
                        const float v = float(int32_t(kd_next(&seed) % 255) - 127) / 8.0f;
                        uint32_t bits;
                        memcpy(&bits, &v, 4);
                        const uint32_t magnitude = bits & 0x7fffffffu;
                        const uint16_t f16 =
                            uint16_t((bits >> 16 & 0x8000u) | (magnitude == 0 ? 0 : (magnitude - 0x38000000u) >> 13));
                        const uint16_t bf16 = uint16_t(bits >> 16);
                        const void *from = type == QDQ_DTYPE_F32    ? static_cast<const void *>(&v)
                                           : type == QDQ_DTYPE_BF16 ? static_cast<const void *>(&bf16)
                                                                    : static_cast<const void *>(&f16);
                        memcpy(rows.at_end() + (k * n + c) * elem, from, elem);
                        memcpy(columns.at_end() + (c * kc + k) * elem, from, elem);
                        values[k * n + c] = v;
                    }
                EachLevel({QDQ_DTYPE_F32, QDQ_DTYPE_F32, kc, n, false}, [&](const qk_igemm &g) {
                    const qk_igemm_source by_rows = {rows.at_end(), type, ptrdiff_t(n), 1},
                                          by_columns = {columns.at_end(), type, 1, ptrdiff_t(kc)};
                    for (const qk_igemm_source &s : {by_rows, by_columns}) {
                        std::vector<float> packed(g.packed_bytes / 4, 7.0f);
                        qk_igemm_pack(&g, &s, packed.data(), 0, g.n_panels);
                        for (size_t c = 0; c < n; c++)
                            for (size_t k = 0; k < kc; k++) {
                                const size_t in = c % QK_IGEMM_COLS;
                                const size_t at = c / QK_IGEMM_COLS * (g.panel_bytes / 4) + in / g.nr * kc * g.nr +
                                                  k * g.nr + in % g.nr;
                                ASSERT_EQ(packed[at], values[k * n + c]) << k << " " << c;
                            }
                    }
                });
            }
}

TEST_F(Igemm, RefusesWhatItDoesNotHave) {
    qk_igemm g = {};
    g.src = QDQ_DTYPE_F32;
    g.weights = QDQ_DTYPE_S8;
    g.kc = g.n = 1;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.src = QDQ_DTYPE_U8;
    EXPECT_TRUE(qk_igemm_init(&g));
    g.kc = 0;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.kc = SIZE_MAX;
    EXPECT_FALSE(qk_igemm_init(&g));
    g.kc = g.n = SIZE_MAX / 8;
    EXPECT_FALSE(qk_igemm_init(&g));
    qk_isa_set_cap(QK_ISA_avx2); // which multiplies no bf16
    g.src = g.weights = QDQ_DTYPE_BF16;
    g.kc = g.n = 1;
    EXPECT_FALSE(qk_igemm_init(&g));
}

} // namespace
