#include "kernel_data.h"
#include "kernels/pool/pool.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>
#include <algorithm>

namespace {

int value(qdq_dtype d, uint8_t b) {
    return d == QDQ_DTYPE_S8 ? int8_t(b) : b;
}

uint8_t quantize(float x, const qk_pool_quant &q, qdq_dtype d) {
    volatile float v = x / q.dst_scale;
    double r = q.dst_zp, lo = d == QDQ_DTYPE_S8 ? -128 : 0;
    if (!std::isnan(v)) {
        volatile float sum = v + float(q.dst_zp);
        r = q.add_zp_first ? std::nearbyint(double(sum)) : std::nearbyint(double(v)) + q.dst_zp;
    }
    return uint8_t(int(r < lo ? lo : r > lo + 255 ? lo + 255 : r));
}

// The formulas of pool.h, window by window.
std::vector<uint8_t> plain(const qk_pool &p, const qk_pool_quant &q, const std::vector<uint8_t> &src) {
    std::vector<uint8_t> dst(size_t(p.n * p.c * p.out[0] * p.out[1] * p.out[2]));
    auto at = [&](const int64_t *ext, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w) {
        return size_t(p.channels_last ? (((n * ext[0] + d) * ext[1] + h) * ext[2] + w) * p.c + c
                                      : (((n * p.c + c) * ext[0] + d) * ext[1] + h) * ext[2] + w);
    };
    for (int64_t n = 0; n < p.n; n++)
        for (int64_t c = 0; c < p.c; c++)
            for (int64_t od = 0; od < p.out[0]; od++)
                for (int64_t oh = 0; oh < p.out[1]; oh++)
                    for (int64_t ow = 0; ow < p.out[2]; ow++) {
                        int64_t o[3] = {od, oh, ow}, sum = 0, taps = 0, counted = 0;
                        int best = -1000;
                        for (int64_t kd = 0; kd < p.kernel[0]; kd++)
                            for (int64_t kh = 0; kh < p.kernel[1]; kh++)
                                for (int64_t kw = 0; kw < p.kernel[2]; kw++) {
                                    int64_t k[3] = {kd, kh, kw}, x[3];
                                    bool inside = true, padded = true;
                                    for (int a = 0; a < 3; a++) {
                                        x[a] = o[a] * p.stride[a] - p.pad_begin[a] + k[a] * p.dilation[a];
                                        inside &= x[a] >= 0 && x[a] < p.in[a];
                                        padded &= x[a] < p.in[a] + p.pad_end[a];
                                    }
                                    counted += padded;
                                    if (!inside) continue;
                                    int v = value(p.src, src[at(p.in, n, c, x[0], x[1], x[2])]);
                                    taps++;
                                    sum += v - q.src_zp;
                                    best = std::max(best, v);
                                }
                        uint8_t &out = dst[at(p.out, n, c, od, oh, ow)];
                        if (p.is_max) {
                            out = taps                    ? quantize(float(best - q.src_zp) * q.src_scale, q, p.dst)
                                  : p.dst == QDQ_DTYPE_S8 ? 0x80
                                                          : 0;
                        } else {
                            volatile float factor = float(double(q.src_scale) / double(p.count_pad ? counted : taps));
                            volatile float x = float(sum) * factor;
                            out = quantize(x, q, p.dst);
                        }
                    }
    return dst;
}

void check(qk_pool p, float ss, int32_t sz, float ds, int32_t dz, bool first, const std::string &what) {
    qk_isa before = qk_isa_cap();
    uint64_t seed = 7;
    std::vector<uint8_t> src(size_t(p.n * p.c * p.in[0] * p.in[1] * p.in[2]));
    for (auto &v : src)
        v = uint8_t(kd_next(&seed));
    std::vector<uint8_t> want;
    for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
        if (!qk_isa_host_has(qk_isa(isa))) continue;
        qk_isa_set_cap(qk_isa(isa));
        ASSERT_TRUE(qk_pool_init(&p)) << what;
        qk_pool_quant q;
        ASSERT_TRUE(qk_pool_quant_init(&p, ss, sz, ds, dz, first, &q)) << what;
        if (want.empty()) want = plain(p, q, src);
        std::vector<uint8_t> got(want.size() + 64, 0xa5), scratch(p.scratch_bytes + 64, 0x5a);
        void *aligned = scratch.data() + (64 - uintptr_t(scratch.data()) % 64) % 64;
        std::vector<uint8_t> exact_src(src); // its own allocation: sanitizers see reads past the end
        for (size_t t = 0; t < p.n_tasks; t += 3)
            qk_pool_run(&p, &q, exact_src.data(), got.data(), t, std::min<size_t>(3, p.n_tasks - t), aligned);
        for (size_t i = 0; i < want.size(); i++)
            ASSERT_EQ(int(got[i]), int(want[i])) << what << " " << qk_isa_name(qk_pool_isa(&p)) << " i=" << i;
        for (size_t i = want.size(); i < got.size(); i++)
            ASSERT_EQ(got[i], 0xa5) << what;
    }
    qk_isa_set_cap(before);
}

int64_t outputs(int64_t in, int64_t k, int64_t s, int64_t d, int64_t pb, int64_t pe, bool ceil) {
    int64_t room = in + pb + pe - ((k - 1) * d + 1);
    return room < 0 ? 0 : (room + (ceil ? s - 1 : 0)) / s + 1;
}

TEST(Pool, RandomWindows) {
    uint64_t seed = 31;
    for (int round = 0; round < 1500; round++) {
        auto pick = [&](uint32_t n) { return int64_t(kd_next(&seed) % n); };
        qk_pool p = {};
        p.is_max = pick(2);
        p.count_pad = pick(2);
        p.channels_last = pick(2);
        p.src = pick(2) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
        p.dst = pick(2) ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
        p.n = 1 + pick(2);
        p.c = 1 + pick(round % 7 == 0 ? 150 : 5);
        int n_axes = 1 + int(pick(3));
        for (int a = 0; a < 3; a++) {
            bool used = a >= 3 - n_axes;
            p.in[a] = used ? 1 + pick(a == 2 ? 90 : 9) : 1;
            p.kernel[a] = used ? 1 + pick(round % 3 == 0 ? 9 : 4) : 1; // large ones are taken apart
            p.stride[a] = used ? 1 + pick(3) : 1;
            p.dilation[a] = used && pick(3) == 0 ? 2 : 1;
            p.pad_begin[a] = used ? pick(uint32_t(p.kernel[a]) + (round % 16 == 0 ? 3 : 0)) : 0;
            p.pad_end[a] = used ? pick(uint32_t(p.kernel[a])) : 0;
            p.out[a] =
                outputs(p.in[a], p.kernel[a], p.stride[a], p.dilation[a], p.pad_begin[a], p.pad_end[a], pick(4) == 0);
        }
        bool same = p.src == p.dst && pick(2);
        check(p, 0.02f, int32_t(pick(200)) - 50, same ? 0.02f : 0.03f, same ? 3 : int32_t(pick(100)) - 20, pick(2),
              "round " + std::to_string(round));
    }
}

// Windows that are walked, cut at either end or not, of every width up to two vectors; same quantization, another zero point, another
// scale.
TEST(Pool, WalkedWindows) {
    uint64_t seed = 77;
    for (int form = 0; form < 3 * 2 * 2 * 2 * 3; form++) {
        const int k = form % 3 == 0 ? 2 : 3, step = form % 3 == 1 ? 1 : 2, quant = form / 24;
        for (int64_t width = 1; width < 140; width += width < 70 ? 1 : 7) {
            auto pick = [&](uint32_t n) { return int64_t(kd_next(&seed) % n); };
            qk_pool p = {};
            p.is_max = form / 3 % 2;
            p.channels_last = form / 6 % 2;
            p.src = p.dst = form / 12 % 2 ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
            p.count_pad = pick(2);
            p.n = 1 + pick(2);
            p.c = p.channels_last ? width : 1 + pick(3);
            for (int a = 0; a < 3; a++)
                p.in[a] = p.out[a] = p.kernel[a] = p.stride[a] = p.dilation[a] = 1;
            p.in[1] = k + pick(9);
            p.in[2] = p.channels_last ? k + pick(9) : width;
            bool is_empty = false;
            for (int a = 1; a < 3; a++) {
                p.kernel[a] = k;
                p.stride[a] = step;
                p.pad_begin[a] = pick(2);
                p.pad_end[a] = pick(2);
                p.out[a] = outputs(p.in[a], k, step, 1, p.pad_begin[a], p.pad_end[a], pick(2));
                is_empty |= p.out[a] == 0;
            }
            if (is_empty) continue;
            const int32_t zp = int32_t(pick(100));
            check(p, 0.021f, zp, quant == 2 ? 0.033f : 0.021f, quant == 1 ? zp + 5 : zp, pick(2),
                  "form " + std::to_string(form) + " width " + std::to_string(width));
        }
    }
}

TEST(Pool, GlobalAndLong) {
    for (int form = 0; form < 8; form++) {
        qk_pool p = {};
        p.is_max = form & 1;
        p.channels_last = form & 2;
        p.src = p.dst = form & 4 ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
        p.n = 2;
        p.c = 67;
        int64_t in[3] = {1, 31, 33}, one[3] = {1, 1, 1};
        memcpy(p.in, in, sizeof in);
        memcpy(p.kernel, in, sizeof in);
        memcpy(p.out, one, sizeof one);
        memcpy(p.stride, one, sizeof one);
        memcpy(p.dilation, one, sizeof one);
        check(p, 0.1f, 5, 0.01f, form & 4 ? 120 : 0, true, "global " + std::to_string(form));
        p.c = 2;
        p.in[1] = p.kernel[1] = 1;
        p.in[2] = 4001;
        p.kernel[2] = 300;
        p.stride[2] = 3;
        p.out[2] = outputs(4001, 300, 3, 1, 0, 0, false);
        check(p, 0.1f, 5, 0.05f, 10, false, "long " + std::to_string(form));
    }
}

// (3 + 4) / 2 rounds to even from 3.5; an average with padding counts real zeros, which are zero points.
TEST(Pool, PublishedValues) {
    qk_pool p = {};
    p.src = p.dst = QDQ_DTYPE_U8;
    p.n = p.c = 1;
    for (int a = 0; a < 3; a++)
        p.in[a] = p.out[a] = p.kernel[a] = p.stride[a] = p.dilation[a] = 1;
    p.in[2] = p.kernel[2] = 2;
    ASSERT_TRUE(qk_pool_init(&p));
    qk_pool_quant q;
    uint8_t src[2] = {3, 4}, dst = 0;
    std::vector<uint8_t> scratch(p.scratch_bytes);
    ASSERT_TRUE(qk_pool_quant_init(&p, 1, 0, 1, 0, false, &q));
    qk_pool_run(&p, &q, src, &dst, 0, 1, scratch.data());
    EXPECT_EQ(dst, 4);
    p.pad_begin[2] = 1; // windows: {pad, 3}
    p.count_pad = true;
    ASSERT_TRUE(qk_pool_init(&p));
    scratch.resize(p.scratch_bytes);
    ASSERT_TRUE(qk_pool_quant_init(&p, 1, 1, 1, 1, false, &q));
    qk_pool_run(&p, &q, src, &dst, 0, 1, scratch.data());
    EXPECT_EQ(dst, 2); // ((1 - 1) + (3 - 1)) / 2 = 1, plus the zero point
}

TEST(Pool, Refuses) {
    qk_pool p = {};
    p.src = p.dst = QDQ_DTYPE_U8;
    p.n = p.c = 1;
    p.is_max = true;
    for (int a = 0; a < 3; a++)
        p.in[a] = p.out[a] = p.kernel[a] = p.stride[a] = p.dilation[a] = 1;
    EXPECT_TRUE(qk_pool_init(&p));
    qk_pool_quant q;
    EXPECT_FALSE(qk_pool_quant_init(&p, -1, 0, 1, 0, false, &q)); // the order is turned round
    EXPECT_FALSE(qk_pool_quant_init(&p, NAN, 0, 1, 0, false, &q));
    qk_pool bad = p;
    bad.src = QDQ_DTYPE_F32;
    EXPECT_FALSE(qk_pool_init(&bad));
    bad = p;
    bad.stride[1] = 0;
    EXPECT_FALSE(qk_pool_init(&bad));
    bad = p;
    bad.in[1] = bad.in[2] = bad.kernel[1] = bad.kernel[2] = 1 << 20; // sums of 2^40 elements
    EXPECT_FALSE(qk_pool_init(&bad));
    bad = p;
    bad.n = 0;
    EXPECT_TRUE(qk_pool_init(&bad));
    EXPECT_EQ(bad.n_tasks, 0u);
}

} // namespace
