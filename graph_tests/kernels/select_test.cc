#include "kernel_data.h"
#include "kernels/convert/convert.h"
#include "kernels/select/select.h"
#include "level_sweep.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

using Select = LevelSweep;

TEST_F(Select, ElementsOfEveryWidthAndStep) {
    uint64_t seed = 7;
    for (size_t bytes : {1u, 2u, 4u, 8u})
        for (size_t n : {0u, 1u, 3u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 63u, 64u, 65u, 130u, 257u})
            for (int steps = 0; steps < 8; steps++) {
                EndedBytes cond(n), x(n * bytes), y(n * bytes), dst(n * bytes);
                for (size_t i = 0; i < n; i++)
                    cond[i] = uint8_t(kd_next(&seed) % 3 == 0 ? 0 : kd_next(&seed));
                for (size_t i = 0; i < n * bytes; i++) {
                    x[i] = uint8_t(kd_next(&seed));
                    y[i] = uint8_t(kd_next(&seed));
                }
                const int sc = steps & 1, sx = steps >> 1 & 1, sy = steps >> 2 & 1;
                each_level([&] {
                    dst.fill(0xa5);
                    qk_select_choose(bytes, nullptr)(cond.data(), sc, x.data(), sx, y.data(), sy, dst.data(), n);
                    for (size_t i = 0; i < n; i++) {
                        const bool first = cond[sc ? i : 0] != 0;
                        const uint8_t *want = first ? x.data() + (sx ? i : 0) * bytes : y.data() + (sy ? i : 0) * bytes;
                        ASSERT_EQ(memcmp(dst.data() + i * bytes, want, bytes), 0) << bytes << " n" << n << " i" << i;
                    }
                });
            }
    EXPECT_EQ(qk_select_choose(3, nullptr), nullptr);
}

// So many elements that results are written past the caches, at an odd place.
TEST_F(Select, PastTheCaches) {
    uint64_t seed = 3;
    const size_t n = qk_isa_stream_bytes() / 8 + 77; // floats
    EndedBytes cond(2 * n), x(4 * n), y(4 * n), dst(4 * n);
    for (size_t i = 0; i < n; i++) {
        x.as<float>()[i] = float(int32_t(kd_next(&seed)));
        y.as<float>()[i] = float(i);
    }
    for (size_t i = 0; i < 2 * n; i++)
        cond[i] = i % 5 < 2;
    std::vector<uint8_t> want[3];
    each_level([&] {
        for (int what = 0; what < 3; what++) {
            dst.fill(0x5a);
            const float *xs = x.as<float>(), *ys = y.as<float>();
            if (what == 0) qk_select_choose(2, nullptr)(cond.data(), 1, xs, 1, ys, 1, dst.data(), 2 * n);
            if (what == 1) qk_compare_choose(QK_COMPARE_LE, nullptr)(ys, 0, ys, 0, dst.data() + 1, 4 * n - 1);
            if (what == 2) qk_prelu_choose(nullptr)(xs, ys, 1, dst.as<float>(), n);
            if (want[what].empty()) want[what].assign(dst.data(), dst.data() + 4 * n);
            ASSERT_EQ(memcmp(dst.data(), want[what].data(), 4 * n), 0) << what;
        }
    });
}

std::vector<float> awkward(size_t n, uint64_t seed) {
    const float first[] = {0.0f, -0.0f, 1.0f, -1.0f, NAN, INFINITY, -INFINITY, 1e-40f, 3e38f, 65519.0f, 65520.0f};
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = i % 3 == 0 ? first[kd_next(&seed) % 11] : float(int32_t(kd_next(&seed))) * 0x1p-24f;
    return v;
}

TEST_F(Select, ComparisonsAndPReluAreThoseOfC) {
    for (size_t n : {0u, 1u, 5u, 16u, 31u, 64u, 67u, 200u}) {
        EndedBytes xs(4 * n), ys(4 * n), masks(n), floats(4 * n);
        float *x = reinterpret_cast<float *>(xs.data()), *y = reinterpret_cast<float *>(ys.data());
        const std::vector<float> a = awkward(n, 3), b = awkward(n, 3 + n % 2);
        if (n != 0) memcpy(x, a.data(), 4 * n);
        if (n != 0) memcpy(y, b.data(), 4 * n);
        for (int steps = 0; steps < 4; steps++) {
            const int sx = steps & 1, sy = steps >> 1;
            each_level([&] {
                for (int op = QK_COMPARE_GE; op <= QK_COMPARE_EQ; op++) {
                    masks.fill(0xa5);
                    qk_compare_choose(qk_compare_op(op), nullptr)(x, sx, y, sy, masks.data(), n);
                    for (size_t i = 0; i < n; i++) {
                        const float p = x[sx ? i : 0], q = y[sy ? i : 0];
                        const bool want[] = {p >= q, p > q, p <= q, p < q, p == q};
                        ASSERT_EQ(masks[i], want[op] ? 1 : 0) << op << " " << p << " " << q;
                    }
                }
                float *dst = reinterpret_cast<float *>(floats.data());
                qk_prelu_choose(nullptr)(x, y, sy, dst, n);
                for (size_t i = 0; i < n; i++) {
                    const float want = x[i] < 0.0f ? x[i] * y[sy ? i : 0] : x[i];
                    ASSERT_TRUE(memcmp(&dst[i], &want, 4) == 0 || (std::isnan(dst[i]) && std::isnan(want)));
                }
            });
        }
    }
    EXPECT_EQ(qk_compare_choose(qk_compare_op(9), nullptr), nullptr);
}

TEST_F(Select, ConversionsGiveTheBytesOfTheReference) {
    const qdq_dtype others[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16,
                                QDQ_DTYPE_U8,  QDQ_DTYPE_S8,   QDQ_DTYPE_S32};
    uint64_t seed = 5;
    for (qdq_dtype other : others)
        for (int to_f32 = 0; to_f32 < 2; to_f32++)
            for (size_t n : {0u, 1u, 7u, 8u, 15u, 16u, 17u, 40u, 65u, 513u}) {
                const qdq_dtype from = to_f32 ? other : QDQ_DTYPE_F32, to = to_f32 ? QDQ_DTYPE_F32 : other;
                const size_t sb = n * qdq_dtype_bits(from) / 8, db = n * qdq_dtype_bits(to) / 8;
                if (to == QDQ_DTYPE_S32) {
                    EXPECT_EQ(qk_convert_choose(from, to, nullptr), nullptr);
                    continue;
                }
                EndedBytes src(sb), dst(db);
                for (size_t i = 0; i < sb; i++)
                    src[i] = uint8_t(kd_next(&seed));
                const std::vector<float> a = awkward(n, seed);
                if (from == QDQ_DTYPE_F32 && n != 0) memcpy(src.data(), a.data(), sb);
                std::vector<uint8_t> want;
                each_level([&] {
                    dst.fill(0xa5);
                    qk_convert_choose(from, to, nullptr)(src.data(), dst.data(), n);
                    const std::vector<uint8_t> got(dst.data(), dst.data() + db);
                    if (want.empty()) want = got;
                    ASSERT_EQ(got, want) << qdq_dtype_name(from) << " " << qdq_dtype_name(to) << " n" << n;
                });
            }
}

// Every upper half of an f32, with lower halves about the ones that rounding to bf16 looks at.
TEST_F(Select, EveryRoundingToBf16) {
    const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    const size_t n = 6 * 65536;
    std::vector<uint32_t> src(n);
    std::vector<uint16_t> want(n), got(n);
    for (size_t i = 0; i < n; i++)
        src[i] = uint32_t(i / 6) << 16 | lower[(i + i / 6) % 6];
    each_level([&] {
        qk_convert_fn *fn = qk_convert_choose(QDQ_DTYPE_F32, QDQ_DTYPE_BF16, nullptr);
        if (qk_isa_cap() == QK_ISA_ref) fn(src.data(), want.data(), n);
        fn(src.data(), got.data(), n);
        ASSERT_EQ(got, want);
    });
}

} // namespace
