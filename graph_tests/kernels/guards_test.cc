// Kernels on data that ends at, or begins behind, a page that must not be touched, with and without streaming stores; every level
// gives the bytes of the reference.
#include "guard_pages.h"
#include "kernel_data.h"
#include "kernels/binary/binary.h"
#include "kernels/move/move.h"
#include "kernels/pool/pool.h"
#include "kernels/quant/quant.h"

#include <functional>
#include <gtest/gtest.h>
#include <vector>

namespace {

void each_level(const std::function<void()> &f) {
    const qk_isa before = qk_isa_cap();
    for (int isa = 0; isa < QK_ISA_COUNT; isa++)
        if (qk_isa_host_has(qk_isa(isa))) {
            qk_isa_set_cap(qk_isa(isa));
            f();
        }
    qk_isa_set_cap(before);
}

struct Buffer {
    Buffer(size_t n, bool end) : bytes(n), p(end ? bytes.at_end() : bytes.at_begin()) {}
    GuardedBytes bytes;
    uint8_t *p;
};

size_t bytes_of(qdq_dtype d, size_t n) {
    return (n * qdq_dtype_bits(d) + 7) / 8;
}

struct QuantForm {
    qk_quant_map map;
    size_t n;
};

// Scales per tensor, per run of an axis, per column, per group with and without a rest.
std::vector<QuantForm> quant_forms(size_t n) {
    return {{{1, 1, 1, 1, 0}, n},
            {{3, n, 1, n, 0}, 6 * n},
            {{1, n, 1, 1, 0}, 5 * n},
            {{3, n, 1, 16, 3 * ((n + 15) / 16)}, 3 * n},
            {{4, n, 2, 32, 2 * ((n + 31) / 32)}, 8 * n},
            {{5, n, 2, 1, 3 * n}, 5 * n}};
}

size_t n_params(const QuantForm &f) {
    const qk_quant_map &m = f.map;
    const size_t planes = f.n / (m.rows * m.cols) + 1;
    return planes * ((m.rows - 1) / m.row_group + 1) * ((m.cols - 1) / m.col_group + 1) + m.plane_step * planes;
}

void check_quant(const QuantForm &f, qdq_dtype real, qdq_dtype stored, bool stream, bool end) {
    const size_t params = n_params(f);
    std::vector<float> scales(params);
    std::vector<int32_t> zps(params);
    for (size_t i = 0; i < params; i++) {
        scales[i] = 0.013f + 0.0017f * float(i % 13);
        zps[i] = qdq_dtype_bits(stored) == 32 ? 0 : int32_t(i % 7);
    }
    qk_quant q = {real, stored, QK_ROUND_THEN_ADD, f.map, stream, nullptr};
    Buffer x(bytes_of(real, f.n), end), y(bytes_of(stored, f.n), end);
    uint64_t seed = 3;
    std::vector<uint8_t> x_data(x.bytes.size()), y_data(y.bytes.size());
    for (size_t i = 0; i < f.n; i++) {
        const float v = (float(kd_next(&seed) % 2001) - 1000.0f) * 0.004f;
        uint32_t bits;
        memcpy(&bits, &v, 4);
        const uint16_t half = uint16_t(bits >> 16); // of f16 it is another value
        memcpy(&x_data[i * qdq_dtype_bits(real) / 8], real == QDQ_DTYPE_F32 ? (const void *)&v : &half,
               qdq_dtype_bits(real) / 8);
    }
    for (auto &b : y_data)
        b = uint8_t(kd_next(&seed));
    if (qdq_dtype_bits(stored) == 4 && f.n % 2) y_data.back() &= 15;
    std::vector<uint8_t> want_y, want_x;
    each_level([&] {
        ASSERT_TRUE(qk_quant_init(&q));
        memcpy(x.p, x_data.data(), x_data.size());
        memset(y.p, 0x5a, y.bytes.size());
        qk_quantize(&q, scales.data(), zps.data(), x.p, y.p, 0, f.n);
        const std::vector<uint8_t> got_y(y.p, y.p + y.bytes.size());
        memcpy(y.p, y_data.data(), y_data.size());
        qk_dequantize(&q, scales.data(), zps.data(), y.p, x.p, 0, f.n);
        const std::vector<uint8_t> got_x(x.p, x.p + x.bytes.size());
        if (want_y.empty()) {
            want_y = got_y;
            want_x = got_x;
        }
        ASSERT_EQ(got_y, want_y) << qk_isa_name(qk_quant_isa(&q)) << " stored " << stored << " real " << real
                                 << " cols " << f.map.cols;
        ASSERT_EQ(got_x, want_x) << qk_isa_name(qk_quant_isa(&q)) << " stored " << stored << " real " << real
                                 << " cols " << f.map.cols;
    });
}

TEST(Guards, Quantize) {
    const qdq_dtype stored[] = {QDQ_DTYPE_U8,  QDQ_DTYPE_S8, QDQ_DTYPE_U16, QDQ_DTYPE_S16,
                                QDQ_DTYPE_S32, QDQ_DTYPE_U4, QDQ_DTYPE_S4};
    const qdq_dtype real[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
    for (size_t n : {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 130, 256, 300, 1100})
        for (const QuantForm &f : quant_forms(n))
            for (qdq_dtype s : stored)
                for (qdq_dtype r : real)
                    for (int k = 0; k < 4; k++)
                        check_quant(f, r, s, k % 2, k / 2);
}

TEST(Guards, Binary) {
    for (size_t n = 0; n < 300; n += n < 140 ? 1 : 37)
        for (int k = 0; k < 4; k++) {
            Buffer a(n, k % 2), b(n, k % 2), d(n, k % 2);
            for (size_t i = 0; i < n; i++) {
                a.p[i] = uint8_t(i * 7);
                b.p[i] = uint8_t(i * 13 + 5);
            }
            const float low = 0.0f;
            qk_binary c = {};
            c.src = {QDQ_DTYPE_S8, 0.0213f, k, 1};
            c.dst = {QDQ_DTYPE_U8, 0.0371f, 3, 1};
            c.stream = k / 2;
            c.n_steps = k == 3 ? 1 : 2;
            c.steps[0] = {k == 1 ? QK_BINARY_MUL : QK_BINARY_ADD, {QDQ_DTYPE_S8, 0.0317f, 2, 1}};
            c.steps[1] = {QK_BINARY_MAX, {QDQ_DTYPE_F32, 0.0f, 0, 0}};
            const void *operands[] = {b.p, &low};
            std::vector<uint8_t> want;
            each_level([&] {
                memset(d.p, 0x5a, n);
                qk_binary_choose(&c, nullptr)(&c, a.p, operands, d.p, n);
                const std::vector<uint8_t> got(d.p, d.p + n);
                if (want.empty()) want = got;
                ASSERT_EQ(got, want) << "n " << n << " form " << k;
            });
        }
}

// A plain copy, rows with gaps, and both transpositions; the last dims so large that rows or columns are streamed.
TEST(Guards, Move) {
    struct Case {
        int64_t a, b;
    };
    for (const Case &c :
         {Case{3, 5}, Case{16, 16}, Case{17, 64}, Case{64, 33}, Case{70, 100}, Case{2, 20 << 20}, Case{2051, 2111}})
        for (uint32_t bytes : {1u, 2u, 4u})
            for (int form = 0; form < 4; form++) {
                const size_t n = size_t(c.a * c.b) * bytes;
                if (n > (80u << 20) || (n > (20u << 20) && (form % 2 || bytes > 1))) continue;
                Buffer s(n, form / 2), d(n, form / 2);
                for (size_t i = 0; i < n; i++)
                    s.p[i] = uint8_t(i * 31 + i / 251);
                const int64_t dims[] = {c.a, c.b}, rows[] = {c.b, 1}, columns[] = {1, c.a};
                each_level([&] {
                    qk_move m;
                    memset(d.p, 0, n);
                    ASSERT_TRUE(qk_move_init(&m, bytes, 2, dims, rows, form % 2 ? columns : rows));
                    qk_move_run(&m, s.p, d.p, 0, m.n_tasks);
                    for (int64_t i = 0; i < c.a; i++)
                        for (int64_t j = 0; j<c.b; j += c.b> 1000 ? 4099 : 1) {
                            const int64_t to = form % 2 ? j * c.a + i : i * c.b + j;
                            ASSERT_EQ(memcmp(d.p + to * bytes, s.p + (i * c.b + j) * bytes, bytes), 0);
                        }
                });
            }
}

TEST(Guards, Pool) {
    for (int64_t w : {8, 9, 16, 17, 28, 33, 56, 64, 70, 130})
        for (int64_t k : {2, 3})
            for (int form = 0; form < 32; form++) {
                const bool end = form & 1, last = form & 2, is_max = form & 4, is_signed = form & 8;
                const int64_t stride = form & 16 ? 2 : 1, pad = k / 2, h = 7, c = last ? w : 3;
                const int64_t width = last ? 9 : w;
                qk_pool p = {};
                p.is_max = is_max;
                p.channels_last = last;
                p.src = p.dst = is_signed ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
                p.n = 1;
                p.c = c;
                for (int a = 0; a < 3; a++)
                    p.in[a] = p.out[a] = p.kernel[a] = p.stride[a] = p.dilation[a] = 1;
                p.in[1] = h;
                p.in[2] = width;
                for (int a = 1; a < 3; a++) {
                    p.kernel[a] = k;
                    p.stride[a] = stride;
                    p.pad_begin[a] = p.pad_end[a] = pad;
                    p.out[a] = (p.in[a] + 2 * pad - k) / stride + 1;
                }
                Buffer s(size_t(c * h * width), end), d(size_t(c * p.out[1] * p.out[2]), end);
                for (size_t i = 0; i < s.bytes.size(); i++)
                    s.p[i] = uint8_t(i * 37 + i / 11);
                std::vector<uint8_t> want;
                each_level([&] {
                    ASSERT_TRUE(qk_pool_init(&p));
                    qk_pool_quant q;
                    ASSERT_TRUE(
                        qk_pool_quant_init(&p, 0.021f, 3, form % 3 ? 0.021f : 0.033f, form % 3 ? 3 : -2, form % 2, &q));
                    std::vector<uint8_t> scratch(p.scratch_bytes + 64);
                    memset(d.p, 0x5a, d.bytes.size());
                    qk_pool_run(&p, &q, s.p, d.p, 0, p.n_tasks,
                                scratch.data() + (64 - uintptr_t(scratch.data()) % 64) % 64);
                    const std::vector<uint8_t> got(d.p, d.p + d.bytes.size());
                    if (want.empty()) want = got;
                    ASSERT_EQ(got, want) << qk_isa_name(qk_pool_isa(&p)) << " width " << w << " kernel " << k
                                         << " form " << form;
                });
            }
}

} // namespace
