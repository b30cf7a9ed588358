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

TEST(Poolf, LevelsGiveTheSameBytes) {
    uint64_t seed = 7;
    const qk_isa cap = qk_isa_cap();
    int n_levels = 0;
    for (qdq_dtype d : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16, QDQ_DTYPE_U8, QDQ_DTYPE_S8})
        for (bool is_max : {false, true})
            for (size_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 257})
                for (size_t n_rows : {1, 2, 9})
                    for (float divisor : {0.0f, 3.0f}) {
                        GuardedBytes src(n * n_rows * bytes_of(d));
                        char *from = reinterpret_cast<char *>(src.at_end());
                        fill(d, from, n * n_rows, &seed);
                        std::vector<const void *> rows;
                        for (size_t r = 0; r < n_rows; r++) /* the last one ends at the guard */
                            rows.push_back(from + r * n * bytes_of(d));
                        std::vector<float> want(n);
                        qk_isa isa;
                        qk_isa_set_cap(QK_ISA_ref);
                        for (bool is_added : {false, true})
                            qk_poolf_choose(d, is_max, &isa)(rows.data(), n_rows, n, want.data(), is_added, divisor);
                        for (int level = QK_ISA_ref; level <= (int)cap; level++) {
                            if (!qk_isa_host_has((qk_isa)level)) continue;
                            qk_isa_set_cap((qk_isa)level);
                            GuardedBytes acc(n * sizeof(float));
                            float *got = reinterpret_cast<float *>(acc.at_end());
                            for (bool is_added : {false, true})
                                qk_poolf_choose(d, is_max, &isa)(rows.data(), n_rows, n, got, is_added, divisor);
                            n_levels += (int)isa == level;
                            ASSERT_EQ(memcmp(got, want.data(), n * sizeof(float)), 0)
                                << qk_isa_name(isa) << " dtype " << d << " max " << is_max << " n " << n << " rows "
                                << n_rows;
                        }
                        qk_isa_set_cap(cap);
                    }
    EXPECT_GT(n_levels, 0);
    EXPECT_EQ(qk_poolf_choose(QDQ_DTYPE_S64, true, nullptr), nullptr);
}

TEST(Poolf, MaximumPassesOverNaNs) {
    const float x[] = {NAN, 1, -INFINITY, NAN}, y[] = {2, NAN, NAN, NAN};
    const void *rows[] = {x, y};
    float acc[4];
    qk_poolf_choose(QDQ_DTYPE_F32, true, nullptr)(rows, 2, 4, acc, false, 0);
    EXPECT_EQ(acc[0], 2);
    EXPECT_EQ(acc[1], 1);
    EXPECT_EQ(acc[2], -INFINITY);
    EXPECT_EQ(acc[3], -INFINITY);
}

} // namespace
