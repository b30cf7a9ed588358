#include "kernel_data.h"
#include "kernels/move/move.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace {

struct Layout {
    std::vector<int64_t> dims, src, dst;
};

// Copies as the formula of move.h says, element by element.
void plain(const Layout &l, size_t bytes, const uint8_t *src, uint8_t *dst) {
    size_t n = 1;
    for (int64_t d : l.dims)
        n *= size_t(d);
    for (size_t i = 0; i < n; i++) {
        int64_t s = 0, d = 0;
        size_t rest = i;
        for (size_t k = l.dims.size(); k-- > 0;) {
            int64_t x = int64_t(rest % size_t(l.dims[k]));
            rest /= size_t(l.dims[k]);
            s += x * l.src[k];
            d += x * l.dst[k];
        }
        memcpy(dst + d * int64_t(bytes), src + s * int64_t(bytes), bytes);
    }
}

std::vector<int64_t> dense(const std::vector<int64_t> &dims, const std::vector<int> &order) {
    std::vector<int64_t> strides(dims.size());
    int64_t step = 1;
    for (size_t k = dims.size(); k-- > 0;) {
        strides[size_t(order[k])] = step;
        step *= dims[size_t(order[k])];
    }
    return strides;
}

void check(const Layout &l, size_t bytes, int64_t src_at, size_t src_elems, size_t dst_elems, const std::string &what,
           size_t shift = 1) {
    qk_isa before = qk_isa_cap();
    uint64_t seed = 11;
    std::vector<uint8_t> src(src_elems * bytes + shift), want(dst_elems * bytes + 64 + shift, 0xa5), got(want.size());
    for (auto &v : src)
        v = uint8_t(kd_next(&seed));
    const uint8_t *s = src.data() + shift + src_at * int64_t(bytes); // odd addresses, if shift is 1
    const size_t to = (64 - uintptr_t(got.data()) % 64) % 64 + shift;
    plain(l, bytes, s, want.data() + to);
    qk_isa last = QK_ISA_COUNT;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
        if (!qk_isa_host_has(qk_isa(isa))) continue;
        qk_isa_set_cap(qk_isa(isa));
        qk_move m;
        ASSERT_TRUE(
            qk_move_init(&m, uint32_t(bytes), int32_t(l.dims.size()), l.dims.data(), l.src.data(), l.dst.data()));
        if (m.isa == last) continue; // the level has nothing of its own
        last = m.isa;
        for (size_t piece : {m.n_tasks, size_t(3), size_t(1)}) {
            if (piece == 1 && src_elems * bytes > (1 << 20)) continue; // nothing new, for long
            std::fill(got.begin(), got.end(), uint8_t(0xa5));
            for (size_t at = 0; at < m.n_tasks; at += piece)
                qk_move_run(&m, s, got.data() + to, at, std::min(piece, m.n_tasks - at));
            ASSERT_TRUE(got == want) << what << " bytes " << bytes << " " << qk_isa_name(qk_isa(isa)) << " piece "
                                     << piece;
        }
    }
    qk_isa_set_cap(before);
}

TEST(Move, EveryPermutationOfFourAxes) {
    for (auto dims : std::vector<std::vector<int64_t>>{
             {2, 17, 5, 19}, {3, 64, 7, 9}, {1, 3, 20, 33}, {2, 130, 1, 66}, {1, 1, 600, 70}})
        for (size_t bytes : {1, 2, 4, 8}) {
            std::vector<int> order = {0, 1, 2, 3};
            size_t n = size_t(dims[0] * dims[1] * dims[2] * dims[3]);
            do {
                check({dims, dense(dims, {0, 1, 2, 3}), dense(dims, order)}, bytes, 0, n, n, "permute");
            } while (std::next_permutation(order.begin(), order.end()));
        }
}

TEST(Move, ImagesOfFewChannels) {
    for (int64_t c = 1; c <= 9; c++)
        for (int64_t hw : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130, 40000})
            for (size_t bytes : {1, 4}) {
                size_t n = size_t(2 * c * hw);
                check({{2, c, hw}, {c * hw, hw, 1}, {c * hw, 1, c}}, bytes, 0, n, n, "channels last");
                check({{2, c, hw}, {c * hw, 1, c}, {c * hw, hw, 1}}, bytes, 0, n, n, "channels first");
                check({{c, hw}, {hw, 1}, {1, c + 1}}, bytes, 0, size_t(c * hw), size_t((c + 1) * hw),
                      "into wider pixels");
                check({{c, hw}, {1, c + 1}, {hw, 1}}, bytes, 0, size_t((c + 1) * hw), size_t(c * hw),
                      "out of wider pixels");
            }
}

TEST(Move, RandomLayoutsUpToTwelveAxes) {
    uint64_t seed = 23;
    for (int round = 0; round < 300; round++) {
        size_t ndims = kd_next(&seed) % 13;
        std::vector<int64_t> dims(ndims);
        size_t n = 1;
        for (auto &d : dims) {
            d = 1 + int64_t(kd_next(&seed) % (n > 2000 ? 2 : 5));
            n *= size_t(d);
        }
        std::vector<int> a(ndims), b(ndims);
        std::iota(a.begin(), a.end(), 0);
        b = a;
        for (size_t i = ndims; i > 1; i--) {
            std::swap(a[i - 1], a[kd_next(&seed) % i]);
            std::swap(b[i - 1], b[kd_next(&seed) % i]);
        }
        check({dims, dense(dims, a), dense(dims, b)}, size_t(1) << kd_next(&seed) % 4, 0, n, n,
              "round " + std::to_string(round));
    }
}

TEST(Move, SlicesConcatenationsReversalsAndExpansions) {
    for (size_t bytes : {1, 2, 4, 8}) {
        check({{5, 64}, {64, 1}, {130, 1}}, bytes, 0, 5 * 64, 5 * 130, "concat of channels");
        check({{7, 3}, {3, 1}, {8, 1}}, bytes, 0, 21, 56, "concat of few channels");
        check({{4, 300}, {900, 3}, {300, 1}}, bytes, 1, 3600, 1200, "step 3");
        check({{4, 9}, {-9, -1}, {9, 1}}, bytes, 35, 36, 36, "reversed");
        check({{6, 50}, {0, 1}, {50, 1}}, bytes, 0, 50, 300, "expanded rows");
        check({{50, 6}, {1, 0}, {6, 1}}, bytes, 0, 50, 300, "expanded columns");
        check({{200000}, {1}, {1}}, bytes, 0, 200000, 200000, "long row");
        check({{}, {}, {}}, bytes, 0, 1, 1, "scalar");
        check({{40, 33}, {1, 50}, {99, 2}}, bytes, 3, 2000, 4000, "strided both");
    }
}

// Long ways, past the caches: lines of dst whole, shifted, and shorter than rows; rows of src that share a set of the first cache.
TEST(Move, LargeTransposesAtEveryAlignment) {
    for (size_t bytes : {1, 2, 4, 8})
        for (size_t shift : {size_t(0), size_t(1), bytes, size_t(64 - bytes)}) {
            const int64_t many = 4600000 / int64_t(bytes);
            for (int64_t c : {int64_t(3), int64_t(64), int64_t(479)}) {
                const int64_t hw = many / c + 1, n = c * hw, even = (hw / 64 + 1) * 64;
                if (shift > 1 && c != 64) continue;
                const std::string what = std::to_string(c) + " channels, shift " + std::to_string(shift);
                check({{c, hw}, {hw, 1}, {1, c}}, bytes, 0, size_t(n), size_t(n), "last: " + what, shift);
                check({{c, hw}, {1, c}, {hw, 1}}, bytes, 0, size_t(n), size_t(n), "first: " + what, shift);
                check({{c, hw}, {1, c}, {even, 1}}, bytes, 0, size_t(n), size_t(c * even), "padded: " + what, shift);
                check({{c, hw}, {even, 1}, {1, c + 64}}, bytes, 0, size_t(c * even), size_t((c + 64) * hw),
                      "apart: " + what, shift);
            }
        }
}

TEST(Move, RowsAPowerOfTwoApart) {
    for (size_t bytes : {1, 2, 4, 8})
        for (int64_t step : {1024, 4096})
            for (int64_t rows : {64, 129}) {
                check({{rows, 200}, {step, 1}, {1, rows}}, bytes, 0, size_t(rows * step), size_t(rows * 200), "near",
                      0);
                check({{200, rows}, {1, 200}, {step, 1}}, bytes, 0, size_t(rows * 200), size_t(200 * step), "to", 0);
            }
    check({{4096, 1100}, {4096, 1}, {1, 4096}}, 1, 0, 4096 * 4096, 4096 * 1100, "far", 0);
}

TEST(Move, ShortRowsOfEveryLength) {
    for (int64_t n = 1; n <= 300; n++) {
        check({{9, n}, {n + 1, 1}, {n + 3, 1}}, 1, 0, size_t(9 * (n + 1)), size_t(9 * (n + 3)), std::to_string(n));
        check({{9, n}, {n, 1}, {2 * n, 1}}, 2, 0, size_t(9 * n), size_t(18 * n), std::to_string(n));
    }
    check({{2, 5000}, {5000, 1}, {5003, 1}}, 1, 0, 10000, 10006, "long");
}

TEST(Move, EmptyAndRefused) {
    qk_move m;
    int64_t dims[] = {3, 0}, strides[] = {0, 1};
    ASSERT_TRUE(qk_move_init(&m, 1, 2, dims, strides, strides));
    EXPECT_EQ(m.n_tasks, 0u);
    qk_move_run(&m, nullptr, nullptr, 0, 0);
    EXPECT_FALSE(qk_move_init(&m, 3, 2, dims, strides, strides));
    EXPECT_FALSE(qk_move_init(&m, 0, 2, dims, strides, strides));
    EXPECT_FALSE(qk_move_init(&m, 1, 13, dims, strides, strides));
    dims[0] = -1;
    EXPECT_FALSE(qk_move_init(&m, 1, 2, dims, strides, strides));
}

} // namespace
