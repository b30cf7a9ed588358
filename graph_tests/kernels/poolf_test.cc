// Every level of kernels/poolf against plain loops, to the byte, on sources and destinations that end at the end of a page.
#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/poolf/poolf.h"

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

// Windows of up to 3 x 3 places that overlap, some without any; two rows of depth.
TEST(Poolf, LevelsGiveTheSameBytes) {
    uint64_t seed = 7;
    const qk_isa cap = qk_isa_cap();
    const std::vector<int64_t> first = {0, 0, 1, 3, 4, 0}, count = {1, 3, 2, 0, 1, 5};
    const std::vector<float> divisors = {1, 9, 6, 3, 2, 15};
    int n_levels = 0;
    for (qdq_dtype d : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16, QDQ_DTYPE_U8, QDQ_DTYPE_S8})
        for (bool is_max : {false, true})
            for (size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 63, 64, 65, 130, 257})
                for (size_t n_h : {0, 1, 2, 3})
                    for (size_t n_d : {1, 2})
                        for (bool divides : {false, true}) {
                            const size_t places = 5, row = places * n, n_src = n_d * (n_h ? n_h : 1) * row;
                            GuardedBytes src(n_src * bytes_of(d)); // the last place ends at the guard
                            char *from = reinterpret_cast<char *>(src.at_end());
                            fill(d, from, n_src, &seed);
                            qk_poolf_line l = {};
                            l.n_d = n_d;
                            l.n_h = n_h;
                            l.h_bytes = ptrdiff_t(row * bytes_of(d));
                            l.d_bytes = ptrdiff_t(n_h) * l.h_bytes;
                            l.n_out = first.size();
                            l.n_channels = l.dst_step = n;
                            l.first = first.data();
                            l.count = count.data();
                            l.place_bytes = ptrdiff_t(n * bytes_of(d));
                            l.dilation = 1;
                            l.divisors = divides ? divisors.data() : nullptr;
                            std::vector<float> want(first.size() * n);
                            qk_isa isa;
                            qk_isa_set_cap(QK_ISA_ref);
                            qk_poolf_choose(d, is_max, &isa)(&l, from, want.data());
                            for (int level = QK_ISA_ref; level <= (int)cap; level++) {
                                if (!qk_isa_host_has((qk_isa)level)) continue;
                                qk_isa_set_cap((qk_isa)level);
                                GuardedBytes acc(want.size() * sizeof(float));
                                float *got = reinterpret_cast<float *>(acc.at_end());
                                qk_poolf_choose(d, is_max, &isa)(&l, from, got);
                                n_levels += (int)isa == level;
                                ASSERT_EQ(memcmp(got, want.data(), want.size() * sizeof(float)), 0)
                                    << qk_isa_name(isa) << " dtype " << d << " max " << is_max << " n " << n << " rows "
                                    << n_h;
                            }
                            qk_isa_set_cap(cap);
                        }
    EXPECT_GT(n_levels, 0);
    EXPECT_EQ(qk_poolf_choose(QDQ_DTYPE_S64, true, nullptr), nullptr);
}

TEST(Poolf, MaximumPassesOverNaNs) {
    const float x[] = {NAN, 1, -INFINITY, NAN, 2, NAN, NAN, NAN};
    const int64_t first = 0, count = 2;
    qk_poolf_line l = {};
    l.n_d = l.n_h = l.n_out = 1;
    l.n_channels = 4;
    l.first = &first;
    l.count = &count;
    l.place_bytes = 16;
    l.dilation = 1;
    float acc[4];
    qk_poolf_choose(QDQ_DTYPE_F32, true, nullptr)(&l, x, acc);
    EXPECT_EQ(acc[0], 2);
    EXPECT_EQ(acc[1], 1);
    EXPECT_EQ(acc[2], -INFINITY);
    EXPECT_EQ(acc[3], -INFINITY);
}

} // namespace
