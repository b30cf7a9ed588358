#include "kernel_data.h"
#include "level_sweep.h"
#include "kernels/binary/binary.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>
#include <algorithm>

namespace {

int64_t value(const qk_binary_end &e, const std::vector<uint8_t> &data, size_t i) {
    return e.dtype == QDQ_DTYPE_S8 ? int8_t(data[i]) : data[i];
}

qk_binary_end x8(qdq_dtype d, float s, int32_t zp, int step = 1) {
    return {d, s, zp, step};
}
qk_binary_end f32(int step = 1) {
    return {QDQ_DTYPE_F32, 0, 0, step};
}

std::vector<uint8_t> run(const qk_binary &chain, const void *src, std::vector<const void *> operands, size_t n) {
    std::vector<uint8_t> dst(n * (chain.dst.dtype == QDQ_DTYPE_F32 ? 4 : 1));
    qk_binary_fn *fn = qk_binary_choose(&chain, nullptr);
    EXPECT_NE(fn, nullptr);
    if (fn) fn(&chain, src, operands.data(), dst.data(), n);
    return dst;
}

class Binary : public LevelSweep {};

TEST_F(Binary, PublishedValues) {
    each_level([] {
        // 158 (s .0405…, zp 112) + 136 (s .0888…, zp 126) -> 30.499998 in steps of the result
        qk_binary add = {};
        add.src = x8(QDQ_DTYPE_U8, .040562573820352554f, 112);
        add.dst = x8(QDQ_DTYPE_U8, .09029635787010193f, 124);
        add.n_steps = 1;
        add.steps[0] = {QK_BINARY_ADD, x8(QDQ_DTYPE_U8, .08881603181362152f, 126)};
        std::vector<uint8_t> a(70, 158), b(70, 136);
        for (uint8_t v : run(add, a.data(), {b.data()}, 70))
            EXPECT_EQ(v, 154);
        // relu round a zero point: the result is the zero point, not 0
        qk_binary relu = {};
        float zero = 0;
        relu.src = x8(QDQ_DTYPE_S8, 1, 0);
        relu.dst = x8(QDQ_DTYPE_U8, 1, 128);
        relu.n_steps = 1;
        relu.steps[0] = {QK_BINARY_MAX, f32(0)};
        std::vector<uint8_t> minus_three(70, uint8_t(-3));
        for (uint8_t v : run(relu, minus_three.data(), {&zero}, 70))
            EXPECT_EQ(v, 128);
    });
}

// All pairs of bytes, every op and sign, against f32 arithmetic node by node, both orders of the zero point.
TEST_F(Binary, AllPairsOfBytesNodeByNode) {
    std::vector<uint8_t> a(65536), b(65536);
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = uint8_t(i);
        b[i] = uint8_t(i >> 8);
    }
    const qdq_dtype types[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8};
    each_level([&] {
        for (int op = 0; op <= QK_BINARY_MIN; op++)
            for (int mix = 0; mix < 16; mix++) {
                qk_binary c = {};
                c.src = x8(types[mix & 1], 0.043f, mix & 1 ? -7 : 131);
                c.steps[0] = {qk_binary_op(op), x8(types[mix >> 1 & 1], 0.021f, mix & 2 ? 0 : 128)};
                c.dst = x8(types[mix >> 2 & 1], 0.0625f, mix & 4 ? -1 : 129);
                c.add_zp_first = mix & 8;
                c.n_steps = 1;
                std::vector<uint8_t> got = run(c, a.data(), {b.data()}, a.size());
                for (size_t i = 0; i < a.size(); i++) {
                    volatile float v = float(value(c.src, a, i) - c.src.zp) * c.src.scale;
                    const qk_binary_end &eb = c.steps[0].operand;
                    volatile float w = float(value(eb, b, i) - eb.zp) * eb.scale;
                    float r = 0;
                    switch (qk_binary_op(op)) {
                    case QK_BINARY_ADD: r = v + w; break;
                    case QK_BINARY_SUB: r = v - w; break;
                    case QK_BINARY_SUB_REV: r = w - v; break;
                    case QK_BINARY_MUL: r = v * w; break;
                    case QK_BINARY_DIV: r = v / w; break;
                    case QK_BINARY_DIV_REV: r = w / v; break;
                    case QK_BINARY_MAX: r = std::max(float(v), float(w)); break;
                    case QK_BINARY_MIN: r = std::min(float(v), float(w)); break;
                    }
                    volatile float q = r / c.dst.scale;
                    double x;
                    if (std::isnan(q)) {
                        x = c.dst.zp;
                    } else if (c.add_zp_first) {
                        volatile float sum = q + float(c.dst.zp);
                        x = std::nearbyint(double(sum));
                    } else {
                        x = std::nearbyint(double(q)) + c.dst.zp;
                    }
                    double lo = c.dst.dtype == QDQ_DTYPE_S8 ? -128 : 0;
                    x = x < lo ? lo : x > lo + 255 ? lo + 255 : x;
                    ASSERT_EQ(double(value(c.dst, got, i)), x) << "op " << op << " mix " << mix << " i " << i;
                }
            }
    });
}

// Long chains of random steps, every length to 200 and every type: all levels give what the reference gives.
TEST_F(Binary, ChainsAreTheSameOnEveryLevelOffsetAndLength) {
    uint64_t seed = 8;
    const size_t room = 300;
    std::vector<std::vector<float>> data(QK_BINARY_MAX_STEPS + 1, std::vector<float>(room));
    const qdq_dtype sources[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_S32};
    const qdq_dtype results[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_F32};
    for (int round = 0; round < 1200; round++) {
        qk_binary c = {};
        size_t n = size_t(round) % 201, off = kd_next(&seed) % 9;
        auto end = [&](std::vector<float> &d, qdq_dtype type, bool step) {
            for (float &f : d) { // bytes for the narrow types, reasonable and special values for f32
                uint32_t r = kd_next(&seed);
                f = type != QDQ_DTYPE_F32 ? kd_float(kd_next(&seed))
                    : r % 32 == 0         ? kd_float(kd_next(&seed))
                                          : (float(kd_next(&seed)) / 4294967296.0f - 0.5f) * 8.0f;
            }
            return qk_binary_end{type, 0.01f + 0.01f * float(kd_next(&seed) % 8), int32_t(kd_next(&seed) % 200), step};
        };
        c.src = end(data[QK_BINARY_MAX_STEPS], sources[kd_next(&seed) % 5], kd_next(&seed) % 8 != 0);
        c.n_steps = kd_next(&seed) % (QK_BINARY_MAX_STEPS + 1);
        std::vector<const void *> operands;
        for (uint32_t k = 0; k < c.n_steps; k++) {
            qdq_dtype type = sources[kd_next(&seed) % 5];
            c.steps[k] = {qk_binary_op(kd_next(&seed) % 8), end(data[k], type, kd_next(&seed) % 3 != 0)};
            operands.push_back((const char *)data[k].data() + off);
        }
        c.dst = {results[kd_next(&seed) % 3], round % 50 == 49 ? 1e-40f : 0.03f, int32_t(kd_next(&seed) % 256) - 100,
                 1};
        c.add_zp_first = round & 1;
        size_t bytes = n * (c.dst.dtype == QDQ_DTYPE_F32 ? 4 : 1);
        std::vector<uint8_t> want, got;
        each_level([&] {
            qk_isa isa;
            qk_binary_fn *fn = qk_binary_choose(&c, &isa);
            ASSERT_NE(fn, nullptr);
            got.assign(bytes + off + 64, 0xa5);
            fn(&c, (const char *)data[QK_BINARY_MAX_STEPS].data() + off, operands.data(), got.data() + off, n);
            if (isa == QK_ISA_ref) want = got;
            if (c.dst.dtype == QDQ_DTYPE_F32) {
                for (size_t i = 0; i < n; i++) { // which NaN it is depends on the order of operands
                    float w, g;
                    memcpy(&w, want.data() + off + 4 * i, 4);
                    memcpy(&g, got.data() + off + 4 * i, 4);
                    ASSERT_TRUE(w == g || (std::isnan(w) && std::isnan(g)))
                        << round << " i=" << i << " " << w << " " << g;
                    if (std::isnan(g)) memcpy(got.data() + off + 4 * i, want.data() + off + 4 * i, 4);
                }
            }
            ASSERT_EQ(got, want) << "round " << round << " n " << n;
        });
    }
}

// Every pair of bytes there is: sums and differences take a way of their own.
TEST_F(Binary, EveryPairOfBytes) {
    std::vector<uint8_t> a(65536), b(65536);
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = uint8_t(i);
        b[i] = uint8_t(i >> 8);
    }
    struct Scales {
        float x, y, d;
    };
    const float low = 0.0f, high = 1.7f;
    for (const Scales &s :
         {Scales{.02f, .03f, .05f}, Scales{.1f, .1f, .1f}, Scales{1, 1, 2}, Scales{.021347f, .031731f, .052413f},
          Scales{.5f, .25f, .125f}, Scales{.3f, .7f, .11f}, Scales{-.02f, .03f, .04f}, Scales{.02f, .03f, -.04f},
          Scales{3e-5f, 2e-5f, 7e-5f}, Scales{.02f, 1e-9f, .02f}})
        for (int form = 0; form < 24; form++) {
            const qdq_dtype from = form % 2 ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8,
                            to = form / 2 % 2 ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
            qk_binary c = {};
            c.src = x8(from, s.x, form % 5 * 7);
            c.dst = x8(to, s.d, form % 3 * 5);
            c.add_zp_first = form % 4 < 2;
            c.n_steps = uint32_t(1 + form % 3);
            c.steps[0] = {form / 4 % 3 == 0   ? QK_BINARY_ADD
                          : form / 4 % 3 == 1 ? QK_BINARY_SUB
                                              : QK_BINARY_SUB_REV,
                          x8(from, s.y, form % 7 * 3)};
            c.steps[1] = {QK_BINARY_MAX, {QDQ_DTYPE_F32, 0, 0, 0}};
            c.steps[2] = {QK_BINARY_MIN, {QDQ_DTYPE_F32, 0, 0, 0}};
            const void *operands[] = {b.data(), &low, &high};
            std::vector<uint8_t> want, got(a.size());
            each_level([&] {
                qk_binary_choose(&c, nullptr)(&c, a.data(), operands, got.data(), got.size());
                if (want.empty()) want = got;
                for (size_t i = 0; i < got.size(); i++)
                    ASSERT_EQ(got[i], want[i])
                        << int(a[i]) << ", " << int(b[i]) << " form " << form << " scale " << s.x;
            });
        }
}

TEST_F(Binary, InPlace) {
    each_level([] {
        for (size_t n : {5, 64, 150, 1000}) {
            std::vector<uint8_t> a(n), b(n);
            for (size_t i = 0; i < n; i++) {
                a[i] = uint8_t(i * 7);
                b[i] = uint8_t(i * 13);
            }
            qk_binary c = {};
            c.src = x8(QDQ_DTYPE_U8, .1f, 3);
            c.dst = x8(QDQ_DTYPE_S8, .2f, 4);
            c.n_steps = 1;
            c.steps[0] = {QK_BINARY_SUB, x8(QDQ_DTYPE_S8, .1f, 5)};
            std::vector<uint8_t> want = run(c, a.data(), {b.data()}, n);
            const void *operands[] = {b.data()};
            qk_binary_choose(&c, nullptr)(&c, a.data(), operands, b.data(), n);
            EXPECT_EQ(b, want);
        }
    });
}

TEST_F(Binary, RefusesWhatItDoesNotKnow) {
    qk_binary c = {};
    c.src = x8(QDQ_DTYPE_U8, 1, 0);
    c.dst = x8(QDQ_DTYPE_U8, 1, 0);
    EXPECT_NE(qk_binary_choose(&c, nullptr), nullptr);
    c.src.dtype = QDQ_DTYPE_F64;
    EXPECT_EQ(qk_binary_choose(&c, nullptr), nullptr);
    c.src = x8(QDQ_DTYPE_U8, 1, 0, 2);
    EXPECT_EQ(qk_binary_choose(&c, nullptr), nullptr);
    c.src = x8(QDQ_DTYPE_U8, 1, 0);
    c.n_steps = QK_BINARY_MAX_STEPS + 1;
    EXPECT_EQ(qk_binary_choose(&c, nullptr), nullptr);
    c.n_steps = 0;
    c.dst.dtype = QDQ_DTYPE_S32;
    EXPECT_EQ(qk_binary_choose(&c, nullptr), nullptr);
}

} // namespace
