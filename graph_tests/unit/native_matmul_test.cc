// The native provider's matmul against naive loops in double, on every level of instruction set.
#include "kernels/isa/isa.h"
#include "kernels/level_sweep.h"
#include "native/native.h"
#include "native_products.h"

#include <algorithm>

using namespace onednn_run;

namespace {

class NativeMatmul : public LevelSweep {};

// The last two dims stored the other way round.
qdqi_dnnl_md Transposed(qdqi_dnnl_md md) {
    const int32_t nd = md.ndims;
    md.strides[nd - 2] = 1;
    md.strides[nd - 1] = md.dims[nd - 2];
    return md;
}

struct Request : ProductAsked {
    Dims src, wei, dst;
    bool ta, tb, packed, factor;
    std::string text;

    explicit Request(Random &r) : ProductAsked(r, false) {
        const int64_t sizes[] = {1, 2, 3, 6, 7, 13, 16, 17, 31, 64, 65, 100};
        const int64_t m = sizes[r.range(0, 9)], n = sizes[r.range(0, 11)], k = sizes[r.range(0, 11)];
        for (int64_t d = r.range(0, 2); d > 0; d--) {
            const int64_t b = r.range(1, 3), who = r.range(0, 2);
            src.push_back(who == 1 ? 1 : b);
            wei.push_back(who == 2 ? 1 : b);
            dst.push_back(b);
        }
        src.insert(src.end(), {m, k});
        wei.insert(wei.end(), {k, n});
        dst.insert(dst.end(), {m, n});
        ta = r.range(0, 3) == 0;
        tb = r.range(0, 1) == 0;
        packed = r.range(0, 1) == 0;
        factor = !scales && integers && r.range(0, 1) == 0;
        text = Text();
        for (int64_t d : dst)
            text += " " + std::to_string(d);
        text += " k " + std::to_string(k);
        if (ta) text += " ta";
        if (tb) text += " tb";
        if (packed) text += " packed";
        if (factor) text += " factor";
    }
};

void Check(const Request &q, Random &r, qk_isa isa) {
    const int32_t nd = int32_t(q.dst.size());
    const int64_t n = q.dst.back(), k = q.src.back();
    Tensor src(q.ta ? Transposed(dense_md(q.src_t, q.src)) : dense_md(q.src_t, q.src));
    Tensor wei(q.tb ? Transposed(dense_md(q.wei_t, q.wei)) : dense_md(q.wei_t, q.wei));
    Tensor dst(q.dst_t, q.dst), residual(QDQ_DTYPE_S8, q.dst);
    Dims row(size_t(nd), 1);
    row.back() = n;
    Tensor bias(q.bias_t == QDQ_DTYPE_UNDEF ? QDQ_DTYPE_F32 : q.bias_t, row), factor(QDQ_DTYPE_F32, row);
    if (qdqi_dtype_is_int(q.src_t)) {
        src.fill_all(r);
        wei.fill_all(r);
    } else { // sums stay exact in every float type's products
        src.fill(r, -15, 15, 0.25);
        wei.fill(r, -15, 15, 0.25);
    }
    bias.fill(r, -4000, 4000);
    factor.fill(r, 1, 3, 0.0078125);
    residual.fill_all(r);
    ProductArgs args(q, n, 1 << (nd - 1));
    if (q.factor) args.Post(QDQI_DNNL_BIN_MUL, &factor);
    if (q.relu) args.Post(QDQI_DNNL_ELT_RELU);
    if (q.residual) args.Post(QDQI_DNNL_BIN_ADD, &residual);

    qdq_error err = {};
    const qdqi_dnnl_md wmd = q.packed ? any_of(wei.md) : wei.md, no_bias = {};
    qdqi_dnnl_prim *prim = nullptr;
    qk_isa_set_cap(isa);
    ASSERT_EQ(qdqi_native_matmul(&src.md, &wmd, q.bias_t == QDQ_DTYPE_UNDEF ? &no_bias : &bias.md, &dst.md, &args.attr,
                                 &prim, &err),
              QDQ_OK)
        << err.text;
    std::vector<uint8_t> weights(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &wei.md, wei.data.data(), weights.data(), &err), QDQ_OK)
        << err.text;
    ASSERT_EQ(args.Run(prim, src, q.packed ? weights : wei.data, bias, dst, &err, 2), QDQ_OK) << err.text;
    for_each(dst.md, [&](const Dims &i) {
        Dims a = i, w = i;
        const int64_t c = i.back();
        const size_t of = q.per_channel ? size_t(c) : 0;
        double acc = 0;
        for (int64_t x = 0; x < k; x++) {
            a.back() = x;
            w[size_t(nd) - 2] = x;
            const double za = q.src_zp ? args.s_zp[0] : 0, zw = q.wei_zp ? args.w_zp[of] : 0;
            const double term = (src.at_broadcast(a) - za) * (wei.at_broadcast(w) - zw);
            acc += term;
        }
        double v = acc;
        if (q.scales) v *= double(args.s_scale[0]) * double(args.w_scale[of]);
        if (q.bias_t != QDQ_DTYPE_UNDEF) v += bias.flat(c);
        if (q.factor) v *= factor.flat(c);
        if (q.relu) v = std::max(v, 0.0);
        if (q.residual) v += residual.at(i);
        if (q.dst_scale) v /= double(args.d_scale[0]);
        if (q.dst_zp) v += args.d_zp[0];
        // what is left is the rounding to a narrow float, or f32 arithmetic next to a tie
        const double slack = q.dst_t == QDQ_DTYPE_BF16 ? 0x1p-8 : q.dst_t == QDQ_DTYPE_F16 ? 0x1p-11 : 0x1p-22;
        if (q.dst_t == QDQ_DTYPE_F16 && std::fabs(v) > 65504) {
            EXPECT_TRUE(std::isinf(dst.at(i)) || std::fabs(dst.at(i)) == 65504.0);
        } else if (!qdqi_dtype_is_int(q.dst_t)) {
            EXPECT_NEAR(dst.at(i), v, slack * std::fabs(v));
        } else if (dst.at(i) != saturate(v, q.dst_t)) {
            EXPECT_NEAR(std::fabs(dst.at(i) - v), 0.5, 0x1p-9);
        }
    });
}

TEST_F(NativeMatmul, MatchesNaiveLoopsOnEveryLevel) {
    Random r;
    for (int i = 0; i < 160; i++) {
        const Request q(r);
        for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
            if (!qk_isa_host_has(qk_isa(isa))) continue;
            SCOPED_TRACE(std::string(qk_isa_name(qk_isa(isa))) + " request " + std::to_string(i) + ": " + q.text);
            Random same = r;
            Check(q, isa + 1 == QK_ISA_COUNT ? r : same, qk_isa(isa));
            if (HasFailure()) return;
        }
    }
}

// Large enough for several threads and parts of rows.
TEST_F(NativeMatmul, LargeProductsAreSplitRight) {
    Random r;
    for (const Dims &shape : {Dims{130, 64, 140}, Dims{7, 512, 320}}) {
        Request q(r);
        q.src = {shape[0], shape[1]};
        q.wei = {shape[1], shape[2]};
        q.dst = {shape[0], shape[2]};
        q.src_t = QDQ_DTYPE_S8;
        q.wei_t = QDQ_DTYPE_S8;
        q.dst_t = QDQ_DTYPE_S8;
        q.wei_zp = q.src_zp = q.scales = true;
        q.factor = false;
        for (bool packed : {false, true}) {
            q.packed = packed;
            Check(q, r, qk_isa(QK_ISA_COUNT - 1));
        }
    }
}

// Weights that are not constant; more columns than are done at a time, in two products of two threads.
TEST_F(NativeMatmul, AFewRowsReadWeightsWhereTheyLie) {
    Random r;
    for (int i = 0; i < 8; i++) {
        Request q(r);
        const int64_t m = 1 + i % 2, k = 21, n = 530;
        q.src = {2, m, k};
        q.wei = {2, k, n};
        q.dst = {2, m, n};
        q.src_t = i & 2 ? QDQ_DTYPE_S8 : QDQ_DTYPE_U8;
        q.wei_t = i & 1 ? QDQ_DTYPE_U8 : QDQ_DTYPE_S8;
        q.dst_t = QDQ_DTYPE_U8;
        q.wei_zp = i % 3 == 0;
        q.src_zp = q.scales = q.dst_scale = true;
        q.ta = q.packed = q.factor = false;
        q.tb = i & 4;
        for (qk_isa isa : {QK_ISA_avx2, qk_isa(QK_ISA_COUNT - 1)})
            Check(q, r, isa);
    }
}

// Weights of run time: columns whose k are consecutive, panels of rows as they lie, and what has to be packed.
TEST_F(NativeMatmul, AFewRowsMeetWeightsWhereTheyLie) {
    Random r;
    for (qdq_dtype type : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16})
        for (int64_t m : {1, 3, 13})
            for (const Dims &kn : {Dims{11, 128}, Dims{32, 70}}) {
                Request q(r);
                q.src = {2, m, kn[0]};
                q.wei = {2, kn[0], kn[1]};
                q.dst = {2, m, kn[1]};
                q.src_t = q.wei_t = q.dst_t = type;
                q.bias_t = QDQ_DTYPE_UNDEF;
                q.integers = q.src_zp = q.wei_zp = q.dst_zp = q.factor = q.packed = q.ta = q.residual = false;
                for (bool tb : {false, true})
                    for (qk_isa isa : {QK_ISA_ref, QK_ISA_avx2, QK_ISA_avx512, QK_ISA_avx512bf16}) {
                        if (!qk_isa_host_has(isa)) continue;
                        q.tb = tb;
                        SCOPED_TRACE(std::string(qk_isa_name(isa)) + " m " + std::to_string(m) + (tb ? " nt" : " nn"));
                        Check(q, r, isa);
                        if (HasFailure()) return;
                    }
            }
}

TEST_F(NativeMatmul, RefusesInTheVocabulary) {
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    const qdqi_dnnl_md none = {};
    const qdqi_dnnl_md a = dense_md(QDQ_DTYPE_F32, {4, 8}), w = dense_md(QDQ_DTYPE_S8, {8, 4}),
                       d = dense_md(QDQ_DTYPE_F32, {4, 4});
    EXPECT_EQ(qdqi_native_matmul(&a, &w, &none, &d, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "operand_dtype");
    const qdqi_dnnl_md x = dense_md(QDQ_DTYPE_U8, {4, 8}), empty = dense_md(QDQ_DTYPE_U8, {0, 8});
    qdqi_dnnl_attr attr = {};
    attr.src.has_scale = true;
    attr.src.scale_mask = 2;
    EXPECT_EQ(qdqi_native_matmul(&x, &w, &none, &d, &attr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "src_not_per_tensor");
    EXPECT_EQ(qdqi_native_matmul(&empty, &w, &none, &d, nullptr, &prim, &err), QDQ_E_UNSUPPORTED);
    EXPECT_STREQ(qdqi_native_why(), "zero_size");
}

} // namespace
