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

struct Form {
    qk_tf_form form;
    bool even;
    float low, high;
};

TEST(Tf, EveryLevelQuantizesByTheFormula) {
    Cap cap;
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
            const std::vector<float> x = awkward(1.0f / factor);
            for (int level = 0; level < QK_ISA_COUNT; level++) {
                if (!qk_isa_host_has(qk_isa(level))) continue;
                qk_isa_set_cap(qk_isa(level));
                const qk_tf_row *row = qk_tf_choose(d, nullptr);
                std::vector<uint8_t> y(x.size() * 4);
                qk_tf_quantize(row, &t, x.data(), y.data(), x.size());
                for (size_t i = 0; i < x.size(); i++)
                    ASSERT_EQ(get(y.data(), d, i), quantized(t, x[i]))
                        << qk_isa_name(qk_isa(level)) << " form " << f.form << " dtype " << d << " x " << x[i];
            }
        }
}

TEST(Tf, EveryLevelDequantizesByTheFormula) {
    Cap cap;
    for (qdq_dtype d : kStored) {
        const Type type = type_of(d);
        const qk_tf t = {
            d, QK_TF_OFFSET, false, 0, 0, 0.0237f, -1.37f, type.lo < 0 ? float((type.hi - type.lo + 1) / 2) : 0.0f, 0};
        std::vector<uint8_t> q(4 * 1000);
        uint64_t seed = 9;
        for (auto &b : q)
            b = uint8_t(kd_next(&seed));
        for (int level = 0; level < QK_ISA_COUNT; level++) {
            if (!qk_isa_host_has(qk_isa(level))) continue;
            qk_isa_set_cap(qk_isa(level));
            std::vector<float> x(1000);
            qk_tf_dequantize(qk_tf_choose(d, nullptr), &t, q.data(), x.data(), x.size());
            for (size_t i = 0; i < x.size(); i++) {
                volatile float v = float(get(q.data(), d, i));
                v = v + t.half;
                v = v * t.factor;
                v = v + t.base;
                ASSERT_EQ(x[i], float(v)) << qk_isa_name(qk_isa(level)) << " dtype " << d << " i " << i;
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
