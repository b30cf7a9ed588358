// Every level of kernels/poolf against plain loops, to the byte, on sources and destinations that end at the end of a page.
#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/poolf/poolf.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace {

size_t bytes_of(qdq_dtype d) {
    return qdq_dtype_bits(d) / 8;
}

void fill(qdq_dtype d, char *p, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++) {
        const float v = (float)(int32_t)(kd_next(seed) % 2001) / 16 - 60;
        uint16_t half = 0;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (d == QDQ_DTYPE_F32) memcpy(p + 4 * i, &v, 4);
        if (d == QDQ_DTYPE_BF16) half = uint16_t(kd_next(seed) % 97 == 0 ? 0x7fc0 : bits >> 16);
        if (d == QDQ_DTYPE_F16) half = uint16_t(kd_next(seed) % 97 == 0 ? 0x7e00 : kd_next(seed) & 0xcfff);
        if (bytes_of(d) == 2) memcpy(p + 2 * i, &half, 2);
        if (bytes_of(d) == 1) p[i] = char(kd_next(seed));
    }
}

struct Types {
    qdq_dtype src, dst;
};
const Types types[] = {{QDQ_DTYPE_F32, QDQ_DTYPE_F32},   {QDQ_DTYPE_BF16, QDQ_DTYPE_F32},
                       {QDQ_DTYPE_BF16, QDQ_DTYPE_BF16}, {QDQ_DTYPE_F16, QDQ_DTYPE_F32},
                       {QDQ_DTYPE_F16, QDQ_DTYPE_F16},   {QDQ_DTYPE_U8, QDQ_DTYPE_F32},
                       {QDQ_DTYPE_S8, QDQ_DTYPE_F32}};

// A row of results: windows of n_d x n_h rows; `gap`: elements between places, and between results.
struct Windows {
    size_t n_d, n_h;
    std::vector<int64_t> first, count;
    int64_t dilation;
    std::vector<int64_t> counted; // empty: no division
    size_t gap;
};

// Every level must give the bytes of the reference, and touch neither what lies behind the last result nor the gaps.
int compare_levels(Types t, bool is_max, const Windows &w, size_t n, uint64_t *seed,
                   void (*fill_with)(qdq_dtype, char *, size_t, uint64_t *) = fill) {
    size_t places = 1, step = n + w.gap;
    for (size_t i = 0; i < w.first.size(); i++)
        if (w.count[i] > 0) places = std::max(places, size_t(w.first[i] + (w.count[i] - 1) * w.dilation + 1));
    const size_t row = places * step, n_src = w.n_d * (w.n_h ? w.n_h : 1) * row - w.gap;
    const size_t n_dst = w.first.size() * step - w.gap;
    GuardedBytes src(n_src * bytes_of(t.src)); // the last place ends at the guard
    char *from = reinterpret_cast<char *>(src.at_end());
    fill_with(t.src, from, n_src, seed);
    qk_poolf_line l = {};
    l.n_d = w.n_d;
    l.n_h = w.n_h;
    l.h_bytes = ptrdiff_t(row * bytes_of(t.src));
    l.d_bytes = ptrdiff_t(w.n_h) * l.h_bytes;
    l.n_out = w.first.size();
    l.n_channels = n;
    l.dst_step = step;
    std::vector<qk_poolf_run> runs;
    for (size_t i = 0; i < w.first.size(); i++) {
        const int64_t counted = w.counted.empty() ? 1 : w.counted[i];
        qk_poolf_run *r = runs.empty() ? nullptr : &runs.back();
        const bool alike = r != nullptr && r->count == w.count[i] && r->counted == counted;
        if (alike && r->n == 1) r->by = w.first[i] - r->first;
        if (alike && w.first[i] == r->first + int64_t(r->n) * r->by)
            r->n++;
        else
            runs.push_back({1, w.first[i], 0, w.count[i], counted});
    }
    l.runs = runs.data();
    l.place_bytes = ptrdiff_t(step * bytes_of(t.src));
    l.dilation = w.dilation;
    l.counted = w.counted.empty() ? 0 : 1;
    std::vector<uint8_t> want(n_dst * bytes_of(t.dst), 0x5a);
    const qk_isa cap = qk_isa_cap();
    qk_isa isa;
    int n_levels = 0;
    qk_isa_set_cap(QK_ISA_ref);
    qk_poolf_choose(t.src, t.dst, is_max, &isa)(&l, from, want.data());
    for (int level = QK_ISA_ref; level <= (int)cap; level++) {
        if (!qk_isa_host_has((qk_isa)level)) continue;
        qk_isa_set_cap((qk_isa)level);
        qk_poolf_fn *const fn = qk_poolf_choose(t.src, t.dst, is_max, &isa);
        if ((int)isa != level) continue;
        GuardedBytes acc(want.size());
        memset(acc.at_end(), 0x5a, want.size());
        fn(&l, from, acc.at_end());
        n_levels++;
        for (size_t i = 0; i < want.size(); i++)
            if (acc.at_end()[i] != want[i]) {
                ADD_FAILURE() << qk_isa_name(isa) << " dtypes " << t.src << " " << t.dst << " max " << is_max << " n "
                              << n << " rows " << w.n_d << "x" << w.n_h << ": byte " << i << " of " << want.size();
                break;
            }
    }
    qk_isa_set_cap(cap);
    return n_levels;
}

// Windows of up to 3 x 3 places that overlap, some without any; two rows of depth.
TEST(Poolf, LevelsGiveTheSameBytes) {
    uint64_t seed = 7;
    int n_levels = 0;
    for (const Types &t : types)
        for (bool is_max : {false, true})
            for (size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 63, 64, 65, 130, 257})
                for (size_t n_h : {0, 1, 2, 3})
                    for (size_t n_d : {1, 2}) {
                        Windows w = {n_d, n_h, {0, 0, 1, 3, 4, 0}, {1, 3, 2, 0, 1, 5}, 1, {1, 9, 6, 3, 2, 15}, 0};
                        n_levels += compare_levels(t, is_max, w, n, &seed);
                        w.counted.clear();
                        w.gap = n_h % 2 * 5;
                        n_levels += compare_levels(t, is_max, w, n, &seed);
                    }
    EXPECT_GT(n_levels, 0);
    EXPECT_EQ(qk_poolf_choose(QDQ_DTYPE_S64, QDQ_DTYPE_F32, true, nullptr), nullptr);
    EXPECT_EQ(qk_poolf_choose(QDQ_DTYPE_F32, QDQ_DTYPE_BF16, true, nullptr), nullptr);
}

Windows sliding(size_t n_h, int64_t n_out, int64_t k, int64_t stride, int64_t dilation, int64_t counted) {
    Windows w = {1, n_h, {}, {}, dilation, {}, 0};
    for (int64_t i = 0; i < n_out; i++) {
        w.first.push_back(i * stride);
        w.count.push_back(k);
        w.counted.push_back(counted);
    }
    return w;
}

// Runs of results, windows that share nothing, windows with holes, more rows than are joined at a time, more places than have room.
TEST(Poolf, WindowsOfAllKinds) {
    uint64_t seed = 11;
    const Windows windows[] = {sliding(3, 40, 3, 1, 1, 9),   sliding(3, 21, 3, 2, 1, 9),  sliding(2, 19, 2, 2, 1, 4),
                               sliding(2, 9, 2, 4, 2, 4),    sliding(9, 12, 5, 1, 2, 7),  sliding(6, 1, 30, 1, 1, 49),
                               sliding(1, 5, 1, 7, 1, 1),    sliding(2, 3, 2, 1, 300, 3), sliding(5, 2, 700, 1, 1, 3),
                               sliding(3, 2, 5, 1, 1, 70000)};
    for (const Types &t : types)
        for (bool is_max : {false, true})
            for (const Windows &w : windows)
                for (size_t n : {1, 3, 24, 64})
                    compare_levels(t, is_max, w, n, &seed);
    for (const Types &t : types) /* more channels than columns */
        compare_levels(t, false, sliding(3, 3, 3, 1, 1, 9), 5003, &seed);
}

// Zeros of both signs, infinities, NaNs, the least and the largest values: what quotients and orders have to treat apart.
void fill_extremes(qdq_dtype d, char *p, size_t n, uint64_t *seed) {
    const uint32_t bits[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                             0x00000001, 0x80000003, 0x00800000, 0x80800000, 0x01234567, 0x7f7fffff,
                             0xff7fffff, 0x3f800000, 0x80010000, 0x00010000};
    const uint32_t often = kd_next(seed) % 16; /* most are the same: sums of zeros, say */
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits[kd_next(seed) % 8 ? often : kd_next(seed) % 16];
        const uint16_t half = uint16_t(d == QDQ_DTYPE_F16 ? (u >> 16 & 0xfc00) | (u >> 13 & 0x3ff) : u >> 16);
        if (bytes_of(d) == 4) memcpy(p + 4 * i, &u, 4);
        if (bytes_of(d) == 2) memcpy(p + 2 * i, &half, 2);
        if (bytes_of(d) == 1) p[i] = char(u);
    }
}

// Which of two NaNs a sum of both keeps is nobody's promise: maxima take both, sums no more than one kind of a line.
TEST(Poolf, Extremes) {
    uint64_t seed = 13;
    for (int round = 0; round < 60; round++)
        for (const Types &t : types) {
            compare_levels(t, true, sliding(3, 9, 3, 1, 1, 9), 24, &seed, fill_extremes);
            compare_levels(t, true, sliding(2, 9, 2, 2, 1, 9), 32, &seed, fill_extremes);
        }
    const auto finite = [](qdq_dtype d, char *p, size_t n, uint64_t *s) {
        fill_extremes(d, p, n, s);
        for (size_t i = 0; i < n && d != QDQ_DTYPE_U8 && d != QDQ_DTYPE_S8; i++) {
            const size_t top = (i + 1) * bytes_of(d) - 2;
            uint16_t high;
            memcpy(&high, p + top, 2);
            const uint16_t exponent = d == QDQ_DTYPE_F16 ? 0x7c00 : 0x7f80;
            if ((high & exponent) == exponent) high = uint16_t(high & 0x8000);
            memcpy(p + top, &high, 2);
        }
    };
    for (int round = 0; round < 60; round++)
        for (const Types &t : types)
            for (int64_t d : {3, 4, 9, 70001})
                compare_levels(t, false, sliding(1, 9, 3, 1, 1, d), 24, &seed, finite);
    const auto infinite = [](qdq_dtype d, char *p, size_t n, uint64_t *s) {
        fill(d, p, n, s);
        for (size_t i = 0; i < n && d == QDQ_DTYPE_F32; i += 7)
            *reinterpret_cast<float *>(p + 4 * i) = i % 3 ? INFINITY : NAN;
    };
    for (int round = 0; round < 10; round++)
        compare_levels(types[0], false, sliding(1, 9, 2, 1, 1, 9), 21, &seed, infinite);
}

TEST(Poolf, MaximumPassesOverNaNs) {
    const float x[] = {NAN, 1, -INFINITY, NAN, 2, NAN, NAN, NAN};
    const qk_poolf_run r = {1, 0, 0, 2, 1};
    qk_poolf_line l = {};
    l.n_d = l.n_h = l.n_out = 1;
    l.n_channels = 4;
    l.runs = &r;
    l.place_bytes = 16;
    l.dilation = 1;
    float acc[4];
    qk_poolf_choose(QDQ_DTYPE_F32, QDQ_DTYPE_F32, true, nullptr)(&l, x, acc);
    EXPECT_EQ(acc[0], 2);
    EXPECT_EQ(acc[1], 1);
    EXPECT_EQ(acc[2], -INFINITY);
    EXPECT_EQ(acc[3], -INFINITY);
}

} // namespace
