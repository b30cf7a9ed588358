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
        for (size_t n = 0; n <= 400; n++) {
            size_t off = n % 67;
            std::vector<uint8_t> dst(n + off + 64, 0xa5);
            lut(table, src.data() + off, dst.data() + off, n);
            for (size_t i = 0; i < dst.size(); i++)
                ASSERT_EQ(dst[i], i >= off && i < off + n ? table[src[i]] : 0xa5)
                    << qk_isa_name(got) << " n=" << n << " i=" << i;
        }
        std::vector<uint8_t> in_place = src;
        lut(table, in_place.data(), in_place.data(), in_place.size());
        for (size_t i = 0; i < src.size(); i++)
            ASSERT_EQ(in_place[i], table[src[i]]);
    }
    EXPECT_GE(seen, 1);
    qk_isa_set_cap(before);
}

} // namespace
