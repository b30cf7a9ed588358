#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/tf/tf.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

class Cap {
  public:
    Cap() : before_(qk_isa_cap()) {}
    ~Cap() { qk_isa_set_cap(before_); }

  private:
    qk_isa before_;
};

const qdq_dtype kStored[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8, QDQ_DTYPE_U16, QDQ_DTYPE_S16, QDQ_DTYPE_S32};

struct Type {
    size_t bytes;
    double lo, hi;
};

Type type_of(qdq_dtype d) {
    switch (int(d)) {
    case QDQ_DTYPE_U8: return {1, 0, 255};
    case QDQ_DTYPE_S8: return {1, -128, 127};
    case QDQ_DTYPE_U16: return {2, 0, 65535};
    case QDQ_DTYPE_S16: return {2, -32768, 32767};
    default: return {4, -2147483648.0, 2147483647.0};
    }
}

int64_t get(const uint8_t *p, qdq_dtype d, size_t i) {
    switch (int(d)) {
    case QDQ_DTYPE_U8: return p[i];
    case QDQ_DTYPE_S8: return int8_t(p[i]);
    case QDQ_DTYPE_U16: return int64_t(p[2 * i]) | int64_t(p[2 * i + 1]) << 8;
    case QDQ_DTYPE_S16: return int16_t(p[2 * i] | p[2 * i + 1] << 8);
    default: {
        int32_t v;
        memcpy(&v, p + 4 * i, 4);
        return v;
    }
    }
}

// The formulas of tf.h, an operation at a time.
int64_t quantized(const qk_tf &t, float x) {
    const Type type = type_of(t.stored);
    volatile float v = std::isnan(x) ? 0.0f : x;
    auto clamp = [](float a, float lo, float hi) { return a < lo ? lo : a > hi ? hi : a; };
    if (t.form == QK_TF_STEPS) {
        v = v * t.factor;
        v = std::round(v);
        v = v - t.base;
        v = clamp(v, float(type.lo), t.top);
    } else {
        v = clamp(v, t.low, t.high);
        if (t.form == QK_TF_OFFSET) {
            v = v - t.low;
            v = v * t.factor;
            if (type.lo < 0) {
                v = v - t.half;
                v = std::round(v);
            } else {
                v = v + 0.5f;
                v = std::trunc(v);
            }
        } else {
            v = v * t.factor;
            v = t.even ? std::nearbyint(v) : std::round(v);
        }
    }
    const double d = double(v);
    return int64_t(d < type.lo ? type.lo : d > type.hi ? type.hi : d);
}

std::vector<float> awkward(float step) {
    const float inf = std::numeric_limits<float>::infinity();
    std::vector<float> v = {0.0f,   -0.0f,   NAN,         inf,          -inf,       3e38f,        -3e38f,
                            1e-45f, -1e-45f, 0.49999997f, -0.49999997f, 8388609.0f, 2147483520.0f};
    for (int k = -300; k <= 300; k++) {
        const float tie = (float(k) + 0.5f) * step;
        v.insert(v.end(), {tie, std::nextafterf(tie, inf), std::nextafterf(tie, -inf)});
    }
    uint64_t seed = 5;
    while (v.size() < 2600)
        v.push_back(kd_next(&seed) % 4 ? (float(kd_next(&seed)) / 4294967296.0f - 0.5f) * 700.0f * step
                                       : kd_float(kd_next(&seed)));
    return v;
}

void every_level_quantizes(const qk_tf &t, const std::vector<float> &x) {
    Cap cap;
    for (int level = 0; level < QK_ISA_COUNT; level++) {
        if (!qk_isa_host_has(qk_isa(level))) continue;
        qk_isa_set_cap(qk_isa(level));
        std::vector<uint8_t> y(x.size() * 4);
        qk_tf_quantize(qk_tf_choose(t.stored, nullptr), &t, x.data(), y.data(), x.size());
        for (size_t i = 0; i < x.size(); i++)
            ASSERT_EQ(get(y.data(), t.stored, i), quantized(t, x[i]))
                << qk_isa_name(qk_isa(level)) << " form " << t.form << " dtype " << t.stored << " factor " << t.factor
                << " low " << t.low << " base " << t.base << " x " << x[i];
    }
}

void every_level_quantizes(const qk_tf &t) {
    every_level_quantizes(t, awkward(t.factor > 0 ? 1.0f / t.factor : 0.01f));
}

struct Form {
    qk_tf_form form;
    bool even;
    float low, high;
};

TEST(Tf, EveryLevelQuantizesByTheFormula) {
    const Form forms[] = {{QK_TF_OFFSET, false, -6.0f, 6.0f},  {QK_TF_OFFSET, false, 0.0f, 1.0f},
                          {QK_TF_STEPS, false, -1.0f, 3.0f},   {QK_TF_SCALED, false, -12.8f, 12.7f},
                          {QK_TF_SCALED, true, -12.8f, 12.7f}, {QK_TF_SCALED, true, -127.0f, 127.0f},
                          {QK_TF_STEPS, false, 0.0f, 255.0f}};
    for (qdq_dtype d : kStored)
        for (const Form &f : forms) {
            const Type type = type_of(d);
            const float factor = float((type.hi - type.lo) / double(f.high - f.low));
            const qk_tf t = {d,
                             f.form,
                             f.even,
                             f.low,
                             f.high,
                             factor,
                             std::round(f.low * factor) - float(type.lo),
                             type.lo < 0 ? float((type.hi - type.lo + 1) / 2) : 0.0f,
                             d == QDQ_DTYPE_S32 ? 2147483520.0f : float(type.hi)};
            every_level_quantizes(t);
        }
}

// Bounds inside of the type's, on a tie and beside one; numbers that are not of the usual: bytes take the plain way there.
TEST(Tf, BoundsAndNumbersOfAllKinds) {
    for (qdq_dtype d : {QDQ_DTYPE_U8, QDQ_DTYPE_S8}) {
        const float lowest = float(type_of(d).lo), half = d == QDQ_DTYPE_S8 ? 128.0f : 0.0f;
        const qk_tf tfs[] = {
            {d, QK_TF_OFFSET, false, -1.28f, 1.27f, 97.3f, 0, half, 0},
            {d, QK_TF_OFFSET, false, 5.0f, 5.0f, 255.0f, 0, half, 0},
            {d, QK_TF_OFFSET, false, 1.0f, -1.0f, 100.0f, 0, half, 0},
            {d, QK_TF_OFFSET, false, -6.0f, 6.0f, 83.0f, 0, half, 0},
            {d, QK_TF_OFFSET, false, -6.0f, 6.0f, 90.0f, 0, half, 0},
            {d, QK_TF_OFFSET, false, -1.0f, 1.0f, -100.0f, 0, half, 0},
            {d, QK_TF_OFFSET, false, -1.0f, 1.0f, 100.0f, 0, 100.25f, 0},
            {d, QK_TF_OFFSET, false, -1.0f, 1.0f, 100.0f, 0, -300.0f, 0},
            {d, QK_TF_OFFSET, false, -1e-38f, 1e-38f, 1e38f, 0, half, 0},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, -3.0f, half, 100.0f},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, 512.0f, half, 99.5f},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, 2.5f, half, 127.0f},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, -70000.0f, half, 127.0f},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, 0.0f, half, lowest - 1.0f},
            {d, QK_TF_STEPS, false, 0, 0, 97.3f, 0.0f, half, NAN},
            {d, QK_TF_SCALED, true, -0.5f, 0.5f, 97.0f, 0, half, 0},
            {d, QK_TF_SCALED, false, -0.5f, 0.5f, 97.0f, 0, half, 0},
            {d, QK_TF_SCALED, false, 0.25f, 1e30f, 97.3f, 0, half, 0},
            {d, QK_TF_SCALED, true, -1.0f, 1.0f, 0.0f, 0, half, 0},
            {d, QK_TF_SCALED, true, -1.0f, NAN, 100.0f, 0, half, 0},
        };
        for (const qk_tf &t : tfs)
            every_level_quantizes(t);
    }
}

// Long stretches on ties, which begin and end anywhere.
TEST(Tf, TiesForLong) {
    for (size_t first : {0, 1, 70, 128})
        for (size_t last : {1000, 1001, 1290, 1300}) {
            std::vector<float> x(1300);
            for (size_t i = 0; i < x.size(); i++)
                x[i] = float(i % 256) - 128.0f + (i >= first && i < last ? 0.5f : 0.3f);
            every_level_quantizes({QDQ_DTYPE_S8, QK_TF_SCALED, true, -128.0f, 127.0f, 1.0f, 0, 128.0f, 0}, x);
            every_level_quantizes({QDQ_DTYPE_S8, QK_TF_OFFSET, false, -128.0f, 127.0f, 1.0f, 0, 128.0f, 0}, x);
        }
}

TEST(Tf, EveryLevelDequantizesByTheFormula) {
    Cap cap;
    for (qdq_dtype d : kStored) {
        const Type type = type_of(d);
        const float half = type.lo < 0 ? float((type.hi - type.lo + 1) / 2) : 0.0f;
        // factor, base, half
        const float lines[][3] = {{0.0237f, -1.37f, half}, {-0.0237f, -0.0f, half}, {0.0237f, 1.0f, half + 0.25f},
                                  {0.0237f, 1.0f, -7.0f},  {0.0237f, 1.0f, 3e7f},   {1e-40f, 0.0f, half},
                                  {3e38f, 1.0f, half},     {0.5f, NAN, half},       {NAN, 0.0f, half},
                                  {0.1f, -12.8f, 200.0f}};
        std::vector<uint8_t> q(4 * 1000);
        uint64_t seed = 9;
        for (auto &b : q)
            b = uint8_t(kd_next(&seed));
        for (const auto &line : lines)
            for (int level = 0; level < QK_ISA_COUNT; level++) {
                if (!qk_isa_host_has(qk_isa(level))) continue;
                qk_isa_set_cap(qk_isa(level));
                const qk_tf t = {d, QK_TF_OFFSET, false, 0, 0, line[0], line[1], line[2], 0};
                std::vector<float> x(1000);
                qk_tf_dequantize(qk_tf_choose(d, nullptr), &t, q.data(), x.data(), x.size());
                for (size_t i = 0; i < x.size(); i++) {
                    volatile float v = float(get(q.data(), d, i));
                    v = v + t.half;
                    v = v * t.factor;
                    v = v + t.base;
                    const float want = v;
                    ASSERT_TRUE(std::isnan(want) ? std::isnan(x[i]) : memcmp(&x[i], &want, sizeof want) == 0)
                        << qk_isa_name(qk_isa(level)) << " dtype " << d << " i " << i << " factor " << t.factor
                        << " half " << t.half << ": " << x[i] << " for " << want;
                }
            }
    }
}

// Both ends of every buffer lie against a page that must not be touched.
TEST(Tf, StaysInside) {
    Cap cap;
    for (int level = 0; level < QK_ISA_COUNT; level++) {
        if (!qk_isa_host_has(qk_isa(level))) continue;
        qk_isa_set_cap(qk_isa(level));
        for (qdq_dtype d : kStored)
            for (size_t n = 0; n < 150; n++)
                for (int end = 0; end < 2; end++) {
                    const size_t bytes = type_of(d).bytes;
                    const qk_tf t = {d, QK_TF_SCALED, true, -1.0f, 1.0f, 100.0f, 0.5f, 0.0f, 127.0f};
                    GuardedBytes x_room(n * 4), y_room(n * bytes);
                    float *x = reinterpret_cast<float *>(end ? x_room.at_end() : x_room.at_begin());
                    uint8_t *y = end ? y_room.at_end() : y_room.at_begin();
                    for (size_t i = 0; i < n; i++)
                        x[i] = float(i % 200) * 0.01f - 1.0f;
                    const qk_tf_row *row = qk_tf_choose(d, nullptr);
                    qk_tf_quantize(row, &t, x, y, n);
                    for (size_t i = 0; i < n; i++)
                        ASSERT_EQ(get(y, d, i), quantized(t, x[i]));
                    qk_tf_dequantize(row, &t, y, x, n);
                }
    }
}

TEST(Tf, RefusesOtherTypes) {
    EXPECT_EQ(qk_tf_choose(QDQ_DTYPE_F32, nullptr), nullptr);
    EXPECT_EQ(qk_tf_choose(QDQ_DTYPE_U4, nullptr), nullptr);
}

} // namespace
