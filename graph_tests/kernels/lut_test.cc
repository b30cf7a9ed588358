#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/lut/lut.h"

#include <gtest/gtest.h>
#include <vector>

namespace {

TEST(Lut, EveryLevelOffsetAndLength) {
    qk_isa before = qk_isa_cap();
    uint64_t seed = 3;
    uint8_t table[256];
    for (auto &t : table)
        t = uint8_t(kd_next(&seed));
    std::vector<uint8_t> src(900);
    for (size_t i = 0; i < src.size(); i++)
        src[i] = uint8_t(i < 300 ? i : kd_next(&seed));
    int seen = 0;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
        if (!qk_isa_host_has(qk_isa(isa))) continue;
        qk_isa_set_cap(qk_isa(isa));
        qk_isa got = QK_ISA_COUNT;
        qk_lut_x8_fn *lut = qk_lut_x8_choose(&got);
        ASSERT_LE(got, isa);
        seen += got == isa;
        for (size_t n = 0; n <= 400; n++)
            for (int form = 0; form < 4; form++) { // streaming or not; against the page before, or the one behind
                const bool stream = form % 2, end = form / 2;
                GuardedBytes in(n), out(n);
                uint8_t *s = end ? in.at_end() : in.at_begin(), *d = end ? out.at_end() : out.at_begin();
                memcpy(s, src.data() + n % 67, n);
                lut(table, s, d, n, stream);
                for (size_t i = 0; i < n; i++)
                    ASSERT_EQ(d[i], table[s[i]]) << qk_isa_name(got) << " n=" << n << " i=" << i;
                if (n % 8 != 0) continue;
                std::vector<uint8_t> dst(n + 64 + n % 67, 0xa5);
                lut(table, s, dst.data() + n % 67, n, stream);
                for (size_t i = 0; i < dst.size(); i++)
                    ASSERT_EQ(dst[i], i >= n % 67 && i < n % 67 + n ? table[s[i - n % 67]] : 0xa5);
            }
        std::vector<uint8_t> in_place = src;
        lut(table, in_place.data(), in_place.data(), in_place.size(), false);
        for (size_t i = 0; i < src.size(); i++)
            ASSERT_EQ(in_place[i], table[src[i]]);
    }
    EXPECT_GE(seen, 1);
    qk_isa_set_cap(before);
}

} // namespace
