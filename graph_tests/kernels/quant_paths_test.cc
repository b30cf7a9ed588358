// The ways the quantization kernels go for long, for tied and for odd data: each gives the bytes of the reference, at every level, with
// source and destination ending where memory ends, in one piece and in two.
#include "kernel_data.h"
#include "kernels/quant/quant.h"
#include "kernels/simd/two_steps.h"
#include "level_sweep.h"

#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

const float kInf = std::numeric_limits<float>::infinity();

class QuantPaths : public LevelSweep {
  protected:
    size_t bytes(qdq_dtype d, size_t n) { return (n * qdq_dtype_bits(d) + 7) / 8; }

    // src is of the type `from`. Every level, in one piece and in two, gives what the reference gives.
    void same(bool quantize, qk_quant q, const std::vector<float> &scales, const std::vector<int32_t> &zps,
              const std::vector<uint8_t> &source, size_t n) {
        const qdq_dtype to = quantize ? q.stored : q.real;
        EndedBytes src(source.size()), dst(bytes(to, n));
        memcpy(src.data(), source.data(), source.size());
        const int32_t *z = zps.empty() ? nullptr : zps.data();
        std::vector<uint8_t> want;
        each_level([&] {
            ASSERT_TRUE(qk_quant_init(&q));
            for (size_t cut : {n, n / 2 / QK_QUANT_SPLIT * QK_QUANT_SPLIT}) {
                dst.fill(0x5a);
                for (size_t first : {size_t(0), cut}) {
                    const size_t m = first == 0 ? cut : n - cut;
                    if (m == 0) continue;
                    if (quantize)
                        qk_quantize(&q, scales.data(), z, src.data(), dst.data(), first, m);
                    else
                        qk_dequantize(&q, scales.data(), z, src.data(), dst.data(), first, m);
                }
                EXPECT_EQ(fegetround(), FE_TONEAREST);
                const std::vector<uint8_t> got(dst.data(), dst.data() + bytes(to, n));
                if (want.empty()) want = got;
                size_t i = 0;
                while (i < got.size() && got[i] == want[i])
                    i++;
                ASSERT_EQ(i, got.size()) << "byte " << i << ": " << int(got[i]) << ", not " << int(want[i]) << "; real "
                                         << q.real << " stored " << q.stored << " order " << q.order << " scale "
                                         << scales[0] << " zp " << (z ? z[0] : 0) << " stream " << q.stream << " cols "
                                         << q.map.cols;
            }
        });
    }
};

std::vector<uint8_t> f32(size_t n, const std::function<float(size_t)> &f) {
    std::vector<uint8_t> v(n * 4);
    for (size_t i = 0; i < n; i++) {
        const float x = f(i);
        memcpy(&v[4 * i], &x, 4);
    }
    return v;
}

std::vector<uint8_t> words(size_t n, const std::function<uint16_t(size_t)> &f) {
    std::vector<uint8_t> v(n * 2);
    for (size_t i = 0; i < n; i++) {
        const uint16_t x = f(i);
        memcpy(&v[2 * i], &x, 2);
    }
    return v;
}

const qdq_dtype kStored[] = {QDQ_DTYPE_U8,  QDQ_DTYPE_S8, QDQ_DTYPE_U16, QDQ_DTYPE_S16,
                             QDQ_DTYPE_S32, QDQ_DTYPE_U4, QDQ_DTYPE_S4};

// Every significand there is, for scales of all kinds: where two steps are said to be enough, they are. They nearly always are.
TEST(QuantTwoSteps, AreTheQuotientWhereTheyAreSaidToBe) {
    uint64_t seed = 11;
    std::vector<float> scales = {0.021347f, 0.02f, 1.0f / 127, -0.1f, 0.0078125f, 7.0f, 6.0f, 12.0f, 1.9999999f};
    for (int k = 0; k < 3; k++)
        scales.push_back(std::ldexp(1.0f + float(kd_next(&seed) >> 9) * 0x1p-23f, int(kd_next(&seed) % 100) - 50));
    for (float s : scales) {
        float low = 0;
        ASSERT_TRUE(qk_two_steps(s, &low)) << s;
        // the power of two does not matter: that which keeps everything in range
        int e;
        (void)std::frexp(s, &e);
        const float scale = std::ldexp(s, -e), l = std::ldexp(low, e), r = 1.0f / scale;
        uint32_t wrong = 0;
        for (uint32_t x = 1u << 23; x < 1u << 24; x++)
            wrong += std::fma(float(x), r, float(x) * l) != float(x) / scale;
        EXPECT_EQ(wrong, 0u) << s;
    }
    int n = 0;
    for (int k = 0; k < 20000; k++) {
        float low;
        n += qk_two_steps(1.0f + float(kd_next(&seed) >> 9) * 0x1p-23f, &low);
    }
    EXPECT_GT(n, 19900);
}

// Nothing but ties and their neighbours; here and there what does not fit.
TEST_F(QuantPaths, DataOnTies) {
    const size_t n = 40000;
    for (float s : {0.25f, 0.021347f, 0.1f, -3.0e-5f})
        for (int odd = 0; odd < 2; odd++) {
            const auto x = f32(n, [&](size_t i) {
                if (odd && i % 1999 == 7) return i % 2 ? kInf : std::nanf("");
                if (odd && i % 1999 == 8) return i % 2 ? 3e38f : -3e38f;
                const float tie = (float(int(i * 7 % 601) - 300) + 0.5f) * s;
                return i % 3 == 0 ? tie : std::nextafter(tie, i % 3 == 1 ? kInf : -kInf);
            });
            for (qdq_dtype d : kStored)
                for (int order = 0; order < 2; order++)
                    for (int zp : {0, 5}) {
                        const std::vector<int32_t> none;
                        const auto o = qk_quant_order(order);
                        same(true, {QDQ_DTYPE_F32, d, o, QK_QUANT_PER_TENSOR, odd == 1, nullptr}, {s},
                             zp ? std::vector<int32_t>{zp} : none, x, n);
                        // one scale in four is another one, zero points are one of three
                        const auto scales = [&](size_t m) {
                            std::vector<float> v(m, s);
                            for (size_t i = 3; i < m; i += 4)
                                v[i] = 3.0f * s;
                            return v;
                        };
                        const auto zps = [&](size_t m) {
                            std::vector<int32_t> v(m, zp);
                            for (size_t i = 0; zp && i < m; i++)
                                v[i] += int32_t(i % 3);
                            return v;
                        };
                        for (size_t len : {16, 32, 64, 128, 200, 2500})
                            same(true, {QDQ_DTYPE_F32, d, o, {n / len, len, 1, len, 0}, odd == 1, nullptr},
                                 scales(n / len), zps(n / len), x, n);
                        for (size_t cols : {50, 200, 1000})
                            same(true, {QDQ_DTYPE_F32, d, o, {1, cols, 1, 1, 0}, odd == 1, nullptr}, scales(cols),
                                 zps(cols), x, n);
                    }
        }
}

// All 16-bit floats, in runs that are worth looking whether the scale is clear; among all, and among those that fit.
TEST_F(QuantPaths, LongRunsOfNarrowFloats) {
    const size_t n = 2 * 8192 + 77;
    uint64_t seed = 3;
    for (qdq_dtype real : {QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
        for (int all = 0; all < 2; all++)
            for (int k = 0; k < 24; k++) {
                float s = std::ldexp(1.0f + float(kd_next(&seed) >> 9) * 0x1p-23f, int(kd_next(&seed) % 13) - 9);
                if (k % 8 == 0) s = 0.0625f; // ties everywhere
                if (k % 8 == 1) s = -s;
                const auto x = words(n, [&](size_t i) {
                    const uint32_t r = kd_next(&seed);
                    if (all) return uint16_t(i % 65536 == i ? (r >> 16) : i);
                    const float v = s * 400.0f * (float(r) * 0x1p-32f - 0.5f);
                    uint32_t u;
                    memcpy(&u, &v, 4);
                    if (real == QDQ_DTYPE_BF16) return uint16_t(u >> 16);
                    const int e = int(u >> 23 & 255) - 112; // the nearest below, or a zero
                    return uint16_t((u >> 16 & 0x8000) | (e > 0 && e < 31 ? uint32_t(e) << 10 | (u >> 13 & 1023) : 0));
                });
                for (qdq_dtype d : {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_U4, QDQ_DTYPE_S4})
                    for (int order = 0; order < 2; order++) {
                        const int32_t zp = k % 3 == 0 ? 0 : d == QDQ_DTYPE_U8 ? 128 + k : d == QDQ_DTYPE_U4 ? 7 : -5;
                        same(true, {real, d, qk_quant_order(order), QK_QUANT_PER_TENSOR, k % 2 == 0, nullptr}, {s},
                             {zp}, x, n);
                        if (k < 2) // 59 runs of 279, which no register divides
                            same(true, {real, d, qk_quant_order(order), {59, 279, 1, 279, 0}, k == 1, nullptr},
                                 std::vector<float>(59, s), std::vector<int32_t>(59, zp), x, n);
                        // one NaN, after much that fits
                        if (!all && k == 2) {
                            auto y = x;
                            y[2 * 8100] = 0xff, y[2 * 8100 + 1] = 0x7f;
                            same(true, {real, d, qk_quant_order(order), QK_QUANT_PER_TENSOR, false, nullptr}, {s}, {zp},
                                 y, n);
                        }
                    }
            }
}

// Bytes and nibbles to floats, in runs that are worth a table and in short ones, with scales that need care.
TEST_F(QuantPaths, DequantizeRuns) {
    const size_t n = 4 * 2112;
    uint64_t seed = 8;
    std::vector<uint8_t> x(n * 4);
    for (auto &b : x)
        b = uint8_t(kd_next(&seed) >> 24);
    for (float s :
         {0.0213f, -0.37f, 1e-39f, 0.0f, 3e36f, 1e-38f, kInf, 1.5e-7f, 771.0f /* half way between two bf16 */})
        for (qdq_dtype real : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
            for (qdq_dtype d : kStored)
                for (size_t len : {16, 32, 48, 64, 96, 256, 2112}) {
                    const qk_quant q = {real, d, QK_ADD_THEN_ROUND, {n / len, len, 1, len, 0}, len % 96 == 0, nullptr};
                    std::vector<float> scales(n / len, s);
                    std::vector<int32_t> zps(n / len);
                    for (size_t i = 0; i < zps.size(); i++)
                        zps[i] = d == QDQ_DTYPE_S32 ? 0 : int32_t(i % 17) - 3;
                    scales.back() = 0.5f;
                    const std::vector<uint8_t> src(x.begin(), x.begin() + long(bytes(d, n)));
                    same(false, q, scales, zps, src, n);
                    same(false, q, scales, {}, src, n);
                    scales.assign(n / len, s); // all of a kind
                    same(false, q, scales, zps, src, n);
                }
}

} // namespace
