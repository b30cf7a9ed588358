#include "kernel_data.h"
#include "kernels/quant/quant.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// The levels this host has, under a cap that is put back at the end.
class Cap {
  public:
    Cap() : before_(qk_isa_cap()) {}
    ~Cap() { qk_isa_set_cap(before_); }

  private:
    qk_isa before_;
};

std::vector<qk_isa> levels() {
    std::vector<qk_isa> all;
    for (int i = 0; i < QK_ISA_COUNT; i++)
        if (qk_isa_host_has(qk_isa(i))) all.push_back(qk_isa(i));
    return all;
}

size_t bits_of(qdq_dtype d) {
    switch (int(d)) {
    case QDQ_DTYPE_U4:
    case QDQ_DTYPE_S4: return 4;
    case QDQ_DTYPE_U8:
    case QDQ_DTYPE_S8: return 8;
    case QDQ_DTYPE_F32:
    case QDQ_DTYPE_S32: return 32;
    default: return 16;
    }
}

int64_t low(qdq_dtype d) {
    switch (int(d)) {
    case QDQ_DTYPE_S4: return -8;
    case QDQ_DTYPE_S8: return -128;
    case QDQ_DTYPE_S16: return -32768;
    case QDQ_DTYPE_S32: return INT32_MIN;
    default: return 0;
    }
}

int64_t high(qdq_dtype d) {
    return low(d) + (int64_t(1) << bits_of(d)) - 1;
}

int64_t get(const std::vector<uint8_t> &v, qdq_dtype d, size_t i) {
    uint64_t u = 0;
    size_t bits = bits_of(d);
    if (bits == 4)
        u = v[i / 2] >> (i % 2 * 4) & 15;
    else
        memcpy(&u, v.data() + i * bits / 8, bits / 8);
    int64_t range = int64_t(1) << bits;
    return low(d) < 0 && int64_t(u) >= range / 2 ? int64_t(u) - range : int64_t(u);
}

// The formulas of quant.h once more, in doubles where that is exact, independent of the kernels.
int64_t quantized(float x, float s, int32_t zp, qk_quant_order order, qdq_dtype d) {
    volatile float q = x / s;
    if (std::isnan(q)) return std::min(std::max<int64_t>(zp, low(d)), high(d));
    double v;
    if (order == QK_ROUND_THEN_ADD) {
        v = std::nearbyint(double(q)) + zp;
    } else {
        volatile float sum = q + float(zp);
        v = std::nearbyint(double(sum));
    }
    return v < double(low(d)) ? low(d) : v > double(high(d)) ? high(d) : int64_t(v);
}

std::vector<float> awkward(float s, uint64_t seed, size_t n) {
    std::vector<float> v = {0.0f,  -0.0f,   kNan,     -kNan,  kInf,    -kInf, 3e9f,
                            -3e9f, 3.4e38f, -3.4e38f, 1e-45f, -1e-45f, 1e-38f};
    for (int k = -300; k <= 300; k++) { // ties, and the floats next to them
        float tie = (float(k) + 0.5f) * s;
        v.insert(v.end(), {tie, std::nextafterf(tie, kInf), std::nextafterf(tie, -kInf)});
    }
    while (v.size() < n) {
        uint32_t r = kd_next(&seed);
        v.push_back(r % 8 == 0 ? kd_float(kd_next(&seed))
                               : (float(kd_next(&seed)) / 4294967296.0f - 0.5f) * 600.0f * s);
    }
    for (size_t i = n; i > 1; i--)
        std::swap(v[i - 1], v[kd_next(&seed) % i]);
    return v;
}

qk_quant make(qdq_dtype real, qdq_dtype stored, qk_quant_order order, qk_quant_map map, bool stream = false) {
    qk_quant q = {real, stored, order, map, stream, nullptr};
    EXPECT_TRUE(qk_quant_init(&q));
    return q;
}

std::vector<int64_t> quantize(const std::vector<float> &x, float s, int32_t zp, qk_quant_order order, qdq_dtype d) {
    qk_quant q = make(QDQ_DTYPE_F32, d, order, QK_QUANT_PER_TENSOR);
    std::vector<uint8_t> out(x.size() * 4 + 1);
    qk_quantize(&q, &s, &zp, x.data(), out.data(), 0, x.size());
    std::vector<int64_t> v;
    for (size_t i = 0; i < x.size(); i++)
        v.push_back(get(out, d, i));
    return v;
}

using Ints = std::vector<int64_t>;

const qdq_dtype kStored[] = {QDQ_DTYPE_U8,  QDQ_DTYPE_S8, QDQ_DTYPE_U16, QDQ_DTYPE_S16,
                             QDQ_DTYPE_S32, QDQ_DTYPE_U4, QDQ_DTYPE_S4};

TEST(Quant, PublishedValues) {
    Cap cap;
    for (qk_isa isa : levels()) {
        qk_isa_set_cap(isa);
        SCOPED_TRACE(qk_isa_name(isa));
        const auto onnx = QK_ROUND_THEN_ADD, onednn = QK_ADD_THEN_ROUND;
        const qdq_dtype u8 = QDQ_DTYPE_U8, s8 = QDQ_DTYPE_S8;
        std::vector<float> ties = {.5f, 1.5f, 2.5f, -.5f, -1.5f, -2.5f};
        EXPECT_EQ(quantize(ties, 1, 1, onnx, s8), (Ints{1, 3, 3, 1, -1, -1}));
        EXPECT_EQ(quantize(ties, 1, 1, onednn, s8), (Ints{2, 2, 4, 0, 0, -2}));
        EXPECT_EQ(quantize(ties, 1, 129, onnx, u8), (Ints{129, 131, 131, 129, 127, 127}));
        EXPECT_EQ(quantize(ties, 1, 129, onednn, u8), (Ints{130, 130, 132, 128, 128, 126}));
        EXPECT_EQ(quantize({0, 2, 3, 1000, -254, -1000}, 2, 128, onnx, u8), (Ints{128, 129, 130, 255, 1, 0}));
        EXPECT_EQ(quantize({0, -128, 3, -3, 2.9f, -2.9f, 3.1f, -3.1f, 65536, -65534, 70000, -70000}, 2, 32767, onnx,
                           QDQ_DTYPE_U16),
                  (Ints{32767, 32703, 32769, 32765, 32768, 32766, 32769, 32765, 65535, 0, 65535, 0}));
        EXPECT_EQ(
            quantize(
                {0, -514, 3, -3, 2.9f, -2.9f, 3.1f, -3.1f, 65022, -66046, 65023, -66047, 65024, -66048, 70000, -70000},
                2, 256, onnx, QDQ_DTYPE_S16),
            (Ints{256, -1, 258, 254, 257, 255, 258, 254, 32767, -32767, 32767, -32768, 32767, -32768, 32767, -32768}));
        EXPECT_EQ(quantize({.25f, .75f, 1.25f, 1.75f}, .5f, 0, onnx, u8), (Ints{0, 2, 2, 4}));
        EXPECT_EQ(quantize({5, -5, 7, -7}, 2, 0, onnx, s8), (Ints{2, -2, 4, -4}));
        EXPECT_EQ(quantize({-129, -128, -127, 127, 128}, 1, 0, onnx, s8), (Ints{-128, -128, -127, 127, 127}));
        // division, not multiplication by the reciprocal
        EXPECT_EQ(quantize({.59f}, .02f, 0, onnx, u8), (Ints{30}));
        EXPECT_EQ(quantize({.09f}, .02f, 0, onednn, u8), (Ints{5}));
        EXPECT_EQ(quantize({.0015f}, .001f, 0, onnx, u8), (Ints{2}));
        EXPECT_EQ(quantize({kInf, -kInf, 3e9f, -3e9f}, 1, 133, onnx, u8), (Ints{255, 0, 255, 0}));
        EXPECT_EQ(quantize({kNan, 0.0f}, 1, 133, onednn, u8), (Ints{133, 133}));
        EXPECT_EQ(quantize({-5, -25.5f, 30}, .1f, 0, onnx, u8), (Ints{0, 0, 255}));
        EXPECT_EQ(quantize({100, 77, 78}, 1, 50, onnx, s8), (Ints{127, 127, 127}));
        EXPECT_EQ(quantize({1, -1, 0}, 1e-40f, 7, onnx, u8), (Ints{255, 0, 7})); // denormal scale
        EXPECT_EQ(quantize({1, -1, 0}, 0, 7, onnx, u8), (Ints{255, 0, 7}));
        EXPECT_EQ(quantize({4e9f, -4e9f, 1}, 1, 0, onnx, QDQ_DTYPE_S32), (Ints{INT32_MAX, INT32_MIN, 1}));
    }
}

TEST(Quant, SameBytesOnEveryLevelOffsetAndLength) {
    Cap cap;
    const float scales[] = {1.0f,   0.02f, 0.1f, -0.37f, 3.1e-5f, 0.0019999999f, 1.9999999f,
                            1e-40f, 0.0f,  kInf, kNan,   1e30f,   7.0f};
    for (qdq_dtype d : kStored)
        for (float s : scales)
            for (int order = 0; order < 2; order++)
                for (int z = 0; z < 4; z++) {
                    int32_t zp = int32_t(z == 0 ? 0 : z == 1 ? low(d) : z == 2 ? high(d) : (low(d) + high(d)) / 2 + 1);
                    std::vector<float> x = awkward(std::isfinite(s) && s != 0 ? s : 1.0f, 17 + z, 2500);
                    for (qk_isa isa : levels()) {
                        qk_isa_set_cap(isa);
                        Ints got = quantize(x, s, zp, qk_quant_order(order), d);
                        for (size_t i = 0; i < x.size(); i++)
                            ASSERT_EQ(got[i], quantized(x[i], s, zp, qk_quant_order(order), d))
                                << qk_isa_name(isa) << " x=" << x[i] << " s=" << s << " zp=" << zp << " order=" << order
                                << " dtype=" << int(d) << " i=" << i;
                    }
                }
    // Lengths and offsets, with guards: per tensor, and a scale per column.
    std::vector<float> x = awkward(0.05f, 99, 2600);
    std::vector<float> col_scales(256);
    std::vector<int32_t> col_zps(256);
    for (size_t i = 0; i < 256; i++) {
        col_scales[i] = 0.01f + 0.001f * float(i);
        col_zps[i] = int32_t(i % 11) - 5;
    }
    for (qk_isa isa : levels()) {
        qk_isa_set_cap(isa);
        for (qdq_dtype d : kStored)
            for (size_t n = 0; n <= 200; n++)
                for (int form = 0; form < 3; form++) {
                    size_t off = n % 5 + (form == 1), bytes = (n * bits_of(d) + 7) / 8, width = n ? n : 1;
                    qk_quant_map map = QK_QUANT_PER_TENSOR;
                    if (form == 2) map = {1, width, 1, 1, 0};
                    qk_quant q = make(QDQ_DTYPE_F32, d, QK_ROUND_THEN_ADD, map, form == 1);
                    size_t pad = 64 + off * (bits_of(d) / 8 ? bits_of(d) / 8 : 1);
                    std::vector<uint8_t> out(pad + bytes + 64, 0xa5);
                    qk_quantize(&q, col_scales.data(), col_zps.data(), x.data() + off, out.data() + pad, 0, n);
                    std::vector<uint8_t> body(out.begin() + long(pad), out.begin() + long(pad + bytes));
                    for (size_t i = 0; i < n; i++) {
                        size_t c = form == 2 ? i : 0;
                        ASSERT_EQ(get(body, d, i),
                                  quantized(x[off + i], col_scales[c], col_zps[c], QK_ROUND_THEN_ADD, d))
                            << qk_isa_name(isa) << " n=" << n << " i=" << i << " form=" << form << " dtype=" << int(d);
                    }
                    for (size_t i = 0; i < pad; i++)
                        ASSERT_EQ(out[i], 0xa5);
                    for (size_t i = pad + bytes; i < out.size(); i++)
                        ASSERT_EQ(out[i], 0xa5) << qk_isa_name(isa) << " n=" << n << " dtype=" << int(d);
                }
    }
}

// Many random bit patterns over random scales: the division without divides is the division.
TEST(Quant, QuotientsAreTrueQuotients) {
    Cap cap;
    uint64_t seed = 4711;
    std::vector<float> x(4096);
    std::vector<uint8_t> ref(x.size() * 2), got(x.size() * 2);
    for (int round = 0; round < 300; round++) {
        float s = std::ldexp(1.0f + float(kd_next(&seed) >> 9) * 0x1p-23f, int(kd_next(&seed) % 121) - 60);
        int32_t zp = int32_t(kd_next(&seed) % 256);
        for (float &v : x) { // the neighbourhood of half-integers, where a last bit decides
            float half = float(int(kd_next(&seed) % 2048) - 1024) + 0.5f;
            v = kd_float(uint32_t(int64_t(0))) + half * s;
            int steps = int(kd_next(&seed) % 7) - 3;
            for (int k = 0; k < std::abs(steps); k++)
                v = std::nextafterf(v, steps > 0 ? kInf : -kInf);
        }
        for (int order = 0; order < 2; order++) {
            qk_isa_set_cap(QK_ISA_ref);
            qk_quant q = make(QDQ_DTYPE_F32, QDQ_DTYPE_S16, qk_quant_order(order), QK_QUANT_PER_TENSOR);
            qk_quantize(&q, &s, &zp, x.data(), ref.data(), 0, x.size());
            for (qk_isa isa : levels()) {
                qk_isa_set_cap(isa);
                ASSERT_TRUE(qk_quant_init(&q));
                qk_quantize(&q, &s, &zp, x.data(), got.data(), 0, x.size());
                ASSERT_EQ(ref, got) << qk_isa_name(isa) << " s=" << s;
            }
        }
    }
}

// Every map, in pieces as threads would take it, both ways, against the formula of quant.h.
TEST(Quant, MapsReachTheRightScale) {
    Cap cap;
    struct {
        size_t planes;
        qk_quant_map map;
    } cases[] = {
        {1, {1, 1, 1, 1, 0}},        // per tensor, 1 element
        {3, {7, 33, 1, 33, 0}},      // axis in the middle
        {2, {5, 1, 1, 1, 0}},        // axis last but one, nothing inside
        {9, {1, 70, 1, 1, 0}},       // last axis
        {1, {1, 700, 1, 1, 0}},      // last axis, long
        {2, {10, 24, 4, 1, 3 * 24}}, // groups down the rows, with a tail
        {2, {6, 50, 1, 16, 6 * 4}},  // groups along the columns, with a tail
        {3, {9, 40, 2, 32, 5 * 2}},  // groups both ways, with tails
        {4, {3, 8, 3, 8, 1}},        // one scale per plane
        {1, {12, 20, 5, 20, 0}},     // whole rows grouped
    };
    const qdq_dtype reals[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    uint64_t seed = 5;
    for (auto &c : cases)
        for (qk_isa isa : levels())
            for (qdq_dtype d : kStored)
                for (qdq_dtype real : reals) {
                    qk_isa_set_cap(isa);
                    const qk_quant_map &m = c.map;
                    size_t n = c.planes * m.rows * m.cols;
                    size_t col_params = (m.cols + m.col_group - 1) / m.col_group;
                    size_t n_params =
                        (c.planes - 1) * m.plane_step + (m.rows + m.row_group - 1) / m.row_group * col_params;
                    std::vector<float> s(n_params), x(n);
                    std::vector<int32_t> z(n_params);
                    for (size_t i = 0; i < n_params; i++) {
                        s[i] = std::ldexp(1.0f, int(kd_next(&seed) % 4) - 3); // exact in every type
                        z[i] = int32_t(low(d) < 0 ? int(kd_next(&seed) % 5) - 2 : int(kd_next(&seed) % 5));
                    }
                    qk_quant q = make(real, d, QK_ADD_THEN_ROUND, m);
                    std::vector<uint8_t> src(n * 4), stored(n * 4 + 4), back(n * 4);
                    qk_quant narrow = make(real, QDQ_DTYPE_S8, QK_ADD_THEN_ROUND, QK_QUANT_PER_TENSOR);
                    std::vector<int8_t> ints(n);
                    for (size_t i = 0; i < n; i++) {
                        ints[i] = int8_t(kd_next(&seed) % 64 - 32);
                        x[i] = ints[i] * 0.25f;
                    }
                    float quarter = 0.25f;
                    qk_dequantize(&narrow, &quarter, nullptr, ints.data(), src.data(), 0, n);
                    for (size_t at = 0; at < n; at += QK_QUANT_SPLIT) // 128 elements at a time
                        qk_quantize(&q, s.data(), z.data(), src.data(), stored.data(), at,
                                    std::min<size_t>(QK_QUANT_SPLIT, n - at));
                    qk_dequantize(&q, s.data(), z.data(), stored.data(), back.data(), 0, n);
                    for (size_t i = 0; i < n; i++) {
                        size_t plane = i / (m.rows * m.cols), r = i / m.cols % m.rows, col = i % m.cols;
                        size_t p = plane * m.plane_step + r / m.row_group * col_params + col / m.col_group;
                        int64_t want = quantized(x[i], s[p], z[p], QK_ADD_THEN_ROUND, d);
                        ASSERT_EQ(get(stored, d, i), want) << qk_isa_name(isa) << " i=" << i << " dtype=" << int(d);
                        float real_want = float(want - z[p]) * s[p], real_got;
                        if (real == QDQ_DTYPE_F32) {
                            memcpy(&real_got, back.data() + 4 * i, 4);
                        } else if (real == QDQ_DTYPE_BF16) {
                            uint16_t h;
                            memcpy(&h, back.data() + 2 * i, 2);
                            real_got = kd_float(uint32_t(h) << 16);
                        } else {
                            uint16_t h;
                            memcpy(&h, back.data() + 2 * i, 2);
                            int e = h >> 10 & 31, f = h & 1023;
                            real_got = (h & 0x8000 ? -1.0f : 1.0f) *
                                       (e ? std::ldexp(float(1024 + f), e - 25) : std::ldexp(float(f), -24));
                        }
                        ASSERT_EQ(real_got, real_want) << qk_isa_name(isa) << " i=" << i << " real=" << int(real);
                    }
                }
}

TEST(Quant, DequantizePublishedValues) {
    Cap cap;
    for (qk_isa isa : levels()) {
        qk_isa_set_cap(isa);
        auto dq = [](auto values, qdq_dtype d, float s, int32_t zp) {
            qk_quant q = make(QDQ_DTYPE_F32, d, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR);
            std::vector<float> out(values.size());
            qk_dequantize(&q, &s, &zp, values.data(), out.data(), 0, values.size());
            return out;
        };
        using F = std::vector<float>;
        EXPECT_EQ(dq(std::vector<uint8_t>{0, 3, 128, 255}, QDQ_DTYPE_U8, 2, 128), (F{-256, -250, 0, 254}));
        EXPECT_EQ(dq(std::vector<uint16_t>{30000, 31000, 32768, 33000}, QDQ_DTYPE_U16, 2, 32767),
                  (F{-5534, -3534, 2, 466}));
        EXPECT_EQ(dq(std::vector<int16_t>{-300, -30, -1025, 1270}, QDQ_DTYPE_S16, 2, -1024), (F{1448, 1988, -2, 4588}));
        EXPECT_EQ(dq(std::vector<int8_t>{-128}, QDQ_DTYPE_S8, 1, 255), (F{-383}));
        EXPECT_EQ(dq(std::vector<uint8_t>{255}, QDQ_DTYPE_U8, 1, -128), (F{383}));
        EXPECT_EQ(dq(std::vector<uint8_t>{3}, QDQ_DTYPE_U8, .5f, 0), (F{1.5f}));
        EXPECT_EQ(dq(std::vector<uint8_t>{3}, QDQ_DTYPE_U8, 2, 10), (F{-14}));
        EXPECT_EQ(dq(std::vector<int32_t>{100, INT32_MAX}, QDQ_DTYPE_S32, 1, 10), (F{90, 2147483648.0f}));
        EXPECT_EQ(dq(std::vector<int32_t>{INT32_MAX}, QDQ_DTYPE_S32, 1, 2147483646), (F{1}));
        EXPECT_EQ(dq(std::vector<int32_t>{16777217}, QDQ_DTYPE_S32, 1, 0), (F{16777216}));
        qk_quant q = make(QDQ_DTYPE_F32, QDQ_DTYPE_U4, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR);
        uint8_t packed[] = {0x21, 0x43, 0xf8};
        float two = 2, out[6];
        int32_t one = 1;
        qk_dequantize(&q, &two, &one, packed, out, 0, 6);
        EXPECT_EQ(F(out, out + 6), (F{0, 2, 4, 6, 14, 28}));
        q.stored = QDQ_DTYPE_S4;
        qk_dequantize(&q, &two, nullptr, packed + 2, out, 0, 2);
        EXPECT_EQ(F(out, out + 2), (F{-16, -2}));
    }
}

// Past the caches or not, aligned or not, one scale or one per column or group: the same floats, and none beyond.
TEST(Quant, StreamedDequantizationIsTheSame) {
    Cap cap;
    const size_t rows = 5;
    std::vector<float> scales(rows * 300);
    std::vector<int32_t> zps(scales.size());
    for (size_t i = 0; i < scales.size(); i++) {
        scales[i] = 0.01f + 0.001f * float(i % 91);
        zps[i] = int32_t(i % 7) - 3;
    }
    std::vector<uint8_t> src(rows * 300 * 4);
    for (size_t i = 0; i < src.size(); i++)
        src[i] = uint8_t(i * 37 + i / 256);
    for (qk_isa isa : levels())
        for (qdq_dtype d : kStored)
            for (size_t cols : {1, 16, 40, 128, 256, 300})
                for (int form = 0; form < 3; form++)
                    for (size_t off : {0, 1, 16}) {
                        qk_isa_set_cap(isa);
                        qk_quant_map map = QK_QUANT_PER_TENSOR;
                        if (form == 1) map = {1, cols, 1, 1, 0};
                        if (form == 2) map = {rows, cols, 1, 32, 0};
                        const int32_t *z = d == QDQ_DTYPE_S32 ? nullptr : zps.data();
                        const size_t n = rows * cols, guard = 32;
                        std::vector<float> out[2];
                        for (int stream = 0; stream < 2; stream++) {
                            qk_quant q = make(QDQ_DTYPE_F32, d, QK_ROUND_THEN_ADD, map, stream != 0);
                            out[stream].assign(n + off + 2 * guard, -777.0f);
                            auto base = reinterpret_cast<uintptr_t>(out[stream].data());
                            size_t to_line = (64 - base % 64) % 64 / sizeof(float); // so that offset 0 is aligned
                            float *dst = out[stream].data() + to_line + off;
                            qk_dequantize(&q, scales.data(), z, src.data(), dst, 0, n);
                            std::rotate(out[stream].begin(), out[stream].begin() + long(to_line + off),
                                        out[stream].end());
                        }
                        ASSERT_EQ(out[0], out[1]) << qk_isa_name(isa) << " dtype=" << int(d) << " cols=" << cols
                                                  << " form=" << form << " off=" << off;
                    }
}

TEST(Quant, NarrowFloatsRoundLikeTheReference) {
    Cap cap;
    uint64_t seed = 77;
    const size_t n = 20000;
    std::vector<int32_t> ints(n);
    for (auto &v : ints)
        v = int32_t(kd_next(&seed)) >> (kd_next(&seed) % 31);
    for (qdq_dtype real : {QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
        for (float s : {1.0f, 1e-3f, 1e-9f, 3e-14f, kInf, kNan}) {
            std::vector<uint16_t> want(n), got(n);
            std::vector<int16_t> want_q(n), got_q(n);
            float tenth = 0.1f;
            for (qk_isa isa : levels()) {
                qk_isa_set_cap(isa);
                qk_quant q = make(real, QDQ_DTYPE_S32, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR);
                qk_dequantize(&q, &s, nullptr, ints.data(), got.data(), 0, n);
                qk_quant b = make(real, QDQ_DTYPE_S16, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR);
                qk_quantize(&b, &tenth, nullptr, got.data(), got_q.data(), 0, n);
                if (isa == QK_ISA_ref) {
                    want = got;
                    want_q = got_q;
                }
                ASSERT_EQ(got, want) << qk_isa_name(isa) << " s=" << s;
                ASSERT_EQ(got_q, want_q) << qk_isa_name(isa) << " s=" << s;
            }
        }
}

TEST(Quant, TablesAreNodeByNode) {
    Cap cap;
    auto relu = [](float *v, size_t n, void *) {
        for (size_t i = 0; i < n; i++)
            v[i] = v[i] > 0 ? v[i] : 0;
    };
    for (qk_isa isa : levels()) {
        qk_isa_set_cap(isa);
        uint8_t table[256];
        qk_x8 a = {QDQ_DTYPE_S8, 0.13f, 5}, b = {QDQ_DTYPE_U8, 0.07f, 9};
        qk_quant_table(&a, relu, nullptr, &b, QK_ROUND_THEN_ADD, table);
        for (int i = 0; i < 256; i++) {
            float x = float(int8_t(i) - 5) * 0.13f;
            ASSERT_EQ(table[i], quantized(x > 0 ? x : 0, 0.07f, 9, QK_ROUND_THEN_ADD, QDQ_DTYPE_U8));
        }
        qk_quant_table(&a, nullptr, nullptr, &a, QK_ADD_THEN_ROUND, table);
        for (int i = 0; i < 256; i++)
            ASSERT_EQ(table[i], i);
    }
}

TEST(Quant, MinMaxLeavesNansOut) {
    Cap cap;
    for (qk_isa isa : levels()) {
        qk_isa_set_cap(isa);
        float lo, hi;
        qk_minmax_f32(nullptr, 0, &lo, &hi);
        EXPECT_EQ(lo, kInf);
        EXPECT_EQ(hi, -kInf);
        for (size_t n = 1; n < 100; n++)
            for (size_t at = 0; at < n; at++) {
                std::vector<float> x(n, kNan);
                x[at] = -3.0f;
                x[(at + 1) % n] = n > 1 ? 4.0f : -3.0f;
                qk_minmax_f32(x.data(), n, &lo, &hi);
                ASSERT_EQ(lo, -3.0f) << qk_isa_name(isa) << n;
                ASSERT_EQ(hi, n > 1 ? 4.0f : -3.0f) << qk_isa_name(isa) << n;
            }
        std::vector<float> zeros(40, -0.0f);
        qk_minmax_f32(zeros.data(), 40, &lo, &hi);
        EXPECT_FALSE(std::signbit(lo) || std::signbit(hi));
    }
}

TEST(Quant, RefusesOtherTypesAndEmptyMaps) {
    qk_quant q = {QDQ_DTYPE_F64, QDQ_DTYPE_U8, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR, false, nullptr};
    EXPECT_FALSE(qk_quant_init(&q));
    q = {QDQ_DTYPE_F32, QDQ_DTYPE_S64, QK_ROUND_THEN_ADD, QK_QUANT_PER_TENSOR, false, nullptr};
    EXPECT_FALSE(qk_quant_init(&q));
    q = {QDQ_DTYPE_F32, QDQ_DTYPE_U8, QK_ROUND_THEN_ADD, {1, 1, 0, 1, 0}, false, nullptr};
    EXPECT_FALSE(qk_quant_init(&q));
}

} // namespace
