// The native provider's convolution against naive loops in double, on every level of instruction set.
#include "kernels/isa/isa.h"
#include "kernels/level_sweep.h"
#include "native/native.h"
#include "native_products.h"

#include <algorithm>

using namespace onednn_run;

namespace {

class NativeConvolution : public LevelSweep {};

// Channels last, `gap` elements between pixels, and `image_gap` pixels between images.
qdqi_dnnl_md Gapped(qdq_dtype dtype, const Dims &dims, int64_t gap, int64_t image_gap) {
    qdqi_dnnl_md md = channels_last_md(dtype, dims);
    int64_t stride = dims[1] + gap;
    for (size_t d = dims.size(); d-- > 2;) {
        md.strides[d] = stride;
        stride *= dims[d];
    }
    md.strides[0] = stride + image_gap * (dims[1] + gap);
    return md;
}

Tensor Holding(const qdqi_dnnl_md &md) {
    Tensor t(md);
    size_t last = 0;
    for (int32_t d = 0; d < md.ndims; d++)
        last += size_t((md.dims[d] - 1) * md.strides[d]);
    t.data.assign((last + 1) * qdq_dtype_bits(md.dtype) / 8, 0);
    return t;
}

void Fill(Tensor &t, Random &r, int64_t lo, int64_t hi, double unit = 1.0) {
    for_each(t.md, [&](const Dims &i) {
        qdqi_store_f64(t.data.data(), t.md.dtype, t.offset(i), double(r.range(lo, hi)) * unit);
    });
}

struct Request : ProductAsked {
    bool transposed, factor, per_image;
    int64_t n, groups, ic, oc, gap, image_gap; // channels of a group
    Dims in, kernel, out;
    qdqi_dnnl_conv conv = {};
    std::string text;

    explicit Request(Random &r) : ProductAsked(r, true) {
        conv.transposed = transposed = r.range(0, 3) == 0;
        n = r.range(1, 3);
        const bool depthwise = r.range(0, 2) == 0;
        groups = depthwise ? r.range(1, 40) : r.range(0, 1) ? 1 : r.range(2, 4);
        ic = depthwise ? 1 : r.range(1, 12);
        oc = depthwise ? 1 : r.range(1, 35);
        conv.n_spatial = int32_t(r.range(1, 3));
        for (int32_t i = 0; i < conv.n_spatial; i++) {
            for (;;) {
                const int64_t size = r.range(1, conv.n_spatial == 3 ? 5 : 9), k = r.range(1, 3), stride = r.range(1, 3);
                const int64_t dilation = r.range(0, 1), begin = r.range(0, 3), end = r.range(0, 3);
                const int64_t window = (k - 1) * (dilation + 1) + 1;
                const int64_t o = transposed ? (size - 1) * stride + window - begin - end
                                             : (size + begin + end - window) / stride + 1;
                if (o < 1 || (!transposed && size + begin + end < window)) continue;
                conv.strides[i] = stride, conv.dilations[i] = dilation;
                conv.pads_begin[i] = begin, conv.pads_end[i] = end;
                in.push_back(size), kernel.push_back(k), out.push_back(o);
                break;
            }
        }
        gap = r.range(0, 2) ? 0 : 3;
        image_gap = r.range(0, 2) ? 0 : 2;
        factor = !scales && r.range(0, 1) == 0;
        per_image = r.range(0, 3) == 0;
        text = Text() + " n" + std::to_string(n) + " g" + std::to_string(groups) + " ic" + std::to_string(ic) + " oc" +
               std::to_string(oc);
        for (int32_t i = 0; i < conv.n_spatial; i++)
            text += " " + std::to_string(in[size_t(i)]) + "/" + std::to_string(kernel[size_t(i)]);
        if (transposed) text += " transposed";
        if (factor) text += " factor";
        if (per_image) text += " image";
    }
    Dims Full(int64_t channels, const Dims &spatial) const {
        Dims d = {n, channels};
        d.insert(d.end(), spatial.begin(), spatial.end());
        return d;
    }
};

// The element of the source that output i reads with tap k, or false.
bool SourceOf(const Request &q, const Dims &i, const Dims &k, Dims *at) {
    for (size_t a = 0; a < q.in.size(); a++) {
        const int64_t step = q.conv.dilations[a] + 1, stride = q.conv.strides[a];
        int64_t x = i[2 + a] * stride - q.conv.pads_begin[a] + k[a] * step;
        if (q.transposed) {
            x = i[2 + a] + q.conv.pads_begin[a] - k[a] * step;
            if (x % stride != 0) return false;
            x /= stride;
        }
        if (x < 0 || x >= q.in[a]) return false;
        (*at)[2 + a] = x;
    }
    return true;
}

void Check(const Request &q, Random &r, qk_isa isa) {
    const int64_t channels = q.groups * q.oc;
    Tensor src = Holding(Gapped(q.src_t, q.Full(q.groups * q.ic, q.in), q.gap, q.image_gap));
    Tensor dst = Holding(Gapped(q.dst_t, q.Full(channels, q.out), 0, q.image_gap));
    Tensor residual(channels_last_md(QDQ_DTYPE_S8, q.Full(channels, q.out)));
    Dims wdims = {q.oc, q.ic}, row(q.out.size() + 2, 1);
    wdims.insert(wdims.end(), q.kernel.begin(), q.kernel.end());
    if (q.groups > 1) wdims.insert(wdims.begin(), q.groups);
    row[1] = channels;
    Dims image = row;
    image[0] = q.n;
    Tensor wei(q.wei_t, wdims), bias(q.bias_t == QDQ_DTYPE_UNDEF ? QDQ_DTYPE_F32 : q.bias_t, {channels}),
        factor(QDQ_DTYPE_F32, row), gate(QDQ_DTYPE_F32, image);
    const bool ints = qdqi_dtype_is_int(q.src_t);
    const int64_t low = ints ? int64_t(qdqi_dtype_min(q.src_t)) : -15,
                  high = ints ? int64_t(qdqi_dtype_max(q.src_t)) : 15;
    Fill(src, r, low, high, ints ? 1.0 : 0.25);
    if (ints)
        wei.fill_all(r);
    else
        wei.fill(r, -15, 15, 0.25);
    bias.fill(r, -4000, 4000);
    factor.fill(r, 1, 3, 0.0078125);
    gate.fill(r, 1, 3, 0.25);
    residual.fill_all(r);
    ProductArgs args(q, channels, q.groups > 1 ? 3 : 1);
    if (q.factor) args.Post(QDQI_DNNL_BIN_MUL, &factor);
    if (q.relu) args.Post(QDQI_DNNL_ELT_RELU);
    if (q.per_image) args.Post(QDQI_DNNL_BIN_MUL, &gate);
    if (q.residual) args.Post(QDQI_DNNL_BIN_ADD, &residual);

    qdq_error err = {};
    const qdqi_dnnl_md wmd = any_of(wei.md), no_bias = {};
    qdqi_dnnl_prim *prim = nullptr;
    qk_isa_set_cap(isa);
    ASSERT_EQ(qdqi_native_convolution(&q.conv, &src.md, &wmd, q.bias_t == QDQ_DTYPE_UNDEF ? &no_bias : &bias.md,
                                      &dst.md, &args.attr, &prim, &err),
              QDQ_OK)
        << err.text;
    std::vector<uint8_t> weights(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    ASSERT_EQ(qdqi_dnnl_pack(prim, QDQI_DNNL_WEIGHTS, &wei.md, wei.data.data(), weights.data(), &err), QDQ_OK)
        << err.text;
    ASSERT_EQ(args.Run(prim, src, weights, bias, dst, &err, 1), QDQ_OK) << err.text;

    qdqi_dnnl_md taps = dense_md(QDQ_DTYPE_U8, q.kernel);
    int n_wrong = 0;
    for_each(dst.md, [&](const Dims &i) {
        const int64_t group = i[1] / q.oc;
        const size_t ch = q.per_channel ? size_t(i[1]) : 0;
        double v = 0;
        for_each(taps, [&](const Dims &k) {
            Dims at = i;
            if (!SourceOf(q, i, k, &at)) return;
            for (int64_t c = 0; c < q.ic; c++) {
                at[1] = group * q.ic + c;
                Dims wi = {i[1] % q.oc, c};
                wi.insert(wi.end(), k.begin(), k.end());
                if (q.groups > 1) wi.insert(wi.begin(), group);
                v += (src.at(at) - (q.src_zp ? args.s_zp[0] : 0)) * (wei.at(wi) - (q.wei_zp ? args.w_zp[ch] : 0));
            }
        });
        if (q.scales) v *= double(args.s_scale[0]) * double(args.w_scale[ch]);
        if (q.bias_t != QDQ_DTYPE_UNDEF) v += bias.at({i[1]});
        if (q.factor) v *= factor.at_broadcast(i);
        if (q.relu) v = std::max(v, 0.0);
        if (q.per_image) v *= gate.at_broadcast(i);
        if (q.residual) v += residual.at(i);
        if (q.dst_scale) v /= double(args.d_scale[0]);
        if (q.dst_zp) v += args.d_zp[0];
        const double want = saturate(v, q.dst_t), got = dst.at(i);
        const double slack = q.dst_t == QDQ_DTYPE_BF16 ? std::fabs(want) / 200
                             : q.dst_t == QDQ_DTYPE_F16
                                 ? (std::fabs(want) > 65000 ? HUGE_VAL : std::fabs(want) / 1000 + 1e-3)
                                 : std::fabs(want) * 1e-6;
        if (!(std::fabs(got - want) <= slack) && n_wrong++ < 3) ADD_FAILURE() << "got " << got << " want " << want;
    });
}

TEST_F(NativeConvolution, MatchesNaiveLoopsOnEveryLevel) {
    Random r;
    for (int i = 0; i < 500; i++) {
        const Request q(r);
        const qk_isa isa = qk_isa(i % QK_ISA_COUNT);
        if (!qk_isa_host_has(isa)) continue;
        SCOPED_TRACE(std::to_string(i) + ": " + q.text + " " + qk_isa_name(isa));
        Check(q, r, isa);
        if (HasFailure()) return;
    }
}

// What is not taken is said by a word; what would be wrong, when it is seen.
TEST_F(NativeConvolution, RefusesByAWord) {
    const qdqi_dnnl_md src = channels_last_md(QDQ_DTYPE_U8, {1, 4, 5, 5}), plain = dense_md(QDQ_DTYPE_U8, {1, 4, 5, 5});
    const qdqi_dnnl_md wei = dense_md(QDQ_DTYPE_S8, {6, 4, 1, 1}), dst = channels_last_md(QDQ_DTYPE_U8, {1, 6, 5, 5});
    qdqi_dnnl_conv conv = {};
    conv.n_spatial = 2;
    conv.strides[0] = conv.strides[1] = 1;
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    auto ask = [&](const qdqi_dnnl_md &s, const qdqi_dnnl_md &w, const qdqi_dnnl_md &d, const qdqi_dnnl_attr *attr) {
        const qdq_status st = qdqi_native_convolution(&conv, &s, &w, nullptr, &d, attr, &prim, &err);
        if (st == QDQ_OK) qdqi_dnnl_prim_destroy(prim);
        return st == QDQ_OK ? "" : st == QDQ_E_UNSUPPORTED ? qdqi_native_why() : "another status";
    };
    EXPECT_STREQ(ask(src, wei, dst, nullptr), "");
    EXPECT_STREQ(ask(plain, wei, dst, nullptr), "layout");
    EXPECT_STREQ(ask(src, dense_md(QDQ_DTYPE_F32, {6, 4, 1, 1}), dst, nullptr), "dtype");
    EXPECT_STREQ(ask(src, dense_md(QDQ_DTYPE_S8, {6, 3, 1, 1}), dst, nullptr), "shape");
    EXPECT_STREQ(ask(src, wei, channels_last_md(QDQ_DTYPE_U8, {1, 6, 5, 4}), nullptr), "shape");
    qdqi_dnnl_attr attr = {};
    attr.src.has_zp = true;
    attr.src.zp_mask = 2;
    EXPECT_STREQ(ask(src, wei, dst, &attr), "src_not_per_tensor");
    attr = {};
    attr.weights.has_scale = true;
    attr.weights.scale_mask = 2;
    EXPECT_STREQ(ask(src, wei, dst, &attr), "weights_axis_not_output_channel");
}

TEST_F(NativeConvolution, FailsOnAZeroPointThatPaddingCannotHold) {
    const qdqi_dnnl_md smd = channels_last_md(QDQ_DTYPE_U8, {1, 4, 5, 5}), wmd = dense_md(QDQ_DTYPE_S8, {6, 4, 1, 1});
    Tensor src(smd), wei(wmd), dst(channels_last_md(QDQ_DTYPE_U8, {1, 6, 5, 5}));
    qdqi_dnnl_conv conv = {};
    conv.n_spatial = 2;
    conv.strides[0] = conv.strides[1] = 1;
    qdqi_dnnl_attr attr = {};
    attr.src.has_zp = true;
    qdq_error err = {};
    qdqi_dnnl_prim *prim = nullptr;
    const qdqi_dnnl_md any = any_of(wmd);
    ASSERT_EQ(qdqi_native_convolution(&conv, &smd, &any, nullptr, &dst.md, &attr, &prim, &err), QDQ_OK);
    std::vector<uint8_t> packed(qdqi_dnnl_prim_arg_bytes(prim, QDQI_DNNL_WEIGHTS));
    auto zp = BytesOf(std::vector<int32_t>{256});
    EXPECT_EQ(run_prim(prim,
                       {{QDQI_DNNL_SRC, &src.data},
                        {QDQI_DNNL_WEIGHTS, &packed},
                        {QDQI_DNNL_DST, &dst.data},
                        {QDQI_DNNL_ZP_SRC, &zp}},
                       &err),
              QDQ_E_BAD_ZERO_POINT);
    EXPECT_NE(std::string(err.text).find("256"), std::string::npos);
}

} // namespace
