#include "kernel_data.h"
#include "level_sweep.h"
#include "kernels/affine/affine.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace {

// Written down once more, in f64: the product of a byte and an f32 is exact there, and so is nearly every sum.
uint8_t expected(const qk_affine &a, uint8_t byte, float factor, float shift) {
    const int x = a.src == QDQ_DTYPE_S8 ? int8_t(byte) : byte;
    const float sum = std::fmaf(float(x), factor, shift);
    const double v = std::isnan(sum) ? INFINITY : std::nearbyint(double(sum));
    const double words = std::clamp(std::clamp(v, -32768.0, 32767.0) + a.zp, -32768.0, 32767.0);
    const bool s8 = a.dst == QDQ_DTYPE_S8;
    const double q = std::clamp(words, s8 ? -128.0 : 0.0, s8 ? 127.0 : 255.0);
    return uint8_t(int(std::clamp(q, double(a.low), double(a.high))));
}

class Affine : public LevelSweep {};

TEST_F(Affine, EveryLevelTypeOffsetAndLength) {
    uint64_t seed = 11;
    std::vector<float> factor(1100), shift(1100);
    std::vector<uint8_t> src(1100);
    for (size_t i = 0; i < src.size(); i++) {
        src[i] = uint8_t(kd_next(&seed));
        factor[i] = float(int32_t(kd_next(&seed))) * (i % 50 == 7 ? 0x1p-9f : 0x1p-31f); // some saturate
        if (i % 40 == 9) factor[i] = i % 80 == 9 ? INFINITY : -1e38f;
        shift[i] = i % 3 == 0 ? 0.5f : float(int32_t(kd_next(&seed))) * 0x1p-25f; // some are ties
    }
    int seen = 0;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
        if (!qk_isa_host_has(qk_isa(isa))) continue;
        qk_isa_set_cap(qk_isa(isa));
        qk_isa got = QK_ISA_COUNT;
        qk_affine_fn *fn = qk_affine_choose(&got);
        ASSERT_LE(got, isa);
        seen += got == isa;
        for (int t = 0; t < 8; t++) {
            qk_affine a = {t & 1 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8, t & 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8, t * 31 - 110, 0,
                           0};
            const bool s8 = a.dst == QDQ_DTYPE_S8;
            a.low = (s8 ? -128 : 0) + (t & 4 ? 40 : 0);
            a.high = (s8 ? 127 : 255) - (t & 4 ? 21 : 0);
            const size_t step = size_t(t / 2 % 2);
            for (size_t n = 0; n <= 700; n += n < 200 ? 1 : 13) { // some are worth a table
                const size_t off = n % 67;
                // vectors that end where the elements do: the sanitizer sees whoever reads on
                const std::vector<float> f(factor.begin() + long(off), factor.begin() + long(off + (step ? n : 1)));
                const std::vector<float> s(shift.begin() + long(off), shift.begin() + long(off + (step ? n : 1)));
                const std::vector<uint8_t> in(src.begin() + long(off), src.begin() + long(off + n));
                std::vector<uint8_t> dst(n + 64, 0xa5);
                fn(&a, f.data(), s.data(), step, in.data(), dst.data(), n);
                for (size_t i = 0; i < dst.size(); i++)
                    ASSERT_EQ(dst[i], i < n ? expected(a, in[i], f[i * step], s[i * step]) : 0xa5)
                        << qk_isa_name(got) << " types " << t << " n " << n << " i " << i;
            }
        }
    }
    EXPECT_GE(seen, 1);
}

TEST_F(Affine, InPlace) {
    const qk_affine a = {QDQ_DTYPE_U8, QDQ_DTYPE_U8, 0, 0, 255};
    const float factor = 0.5f, shift = 1.0f;
    std::vector<uint8_t> bytes(300);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = uint8_t(i);
    const std::vector<uint8_t> src = bytes;
    qk_affine_choose(nullptr)(&a, &factor, &shift, 0, bytes.data(), bytes.data(), bytes.size());
    for (size_t i = 0; i < bytes.size(); i++)
        ASSERT_EQ(bytes[i], expected(a, src[i], factor, shift)) << i;
}

} // namespace
