// What the tests of our own products (matmul, convolution) draw and ask alike: types, scales, zero points and post-ops.
#ifndef QDQ_TEST_NATIVE_PRODUCTS_H
#define QDQ_TEST_NATIVE_PRODUCTS_H

#include "onednn_run.h"

namespace onednn_run {

struct ProductAsked {
    qdq_dtype src_t, wei_t, dst_t, bias_t = QDQ_DTYPE_UNDEF;
    bool integers, src_zp, wei_zp, dst_zp, dst_scale, per_channel, scales, relu, residual;

    // Integers on both sides, or floats: of one type when `same_floats`.
    ProductAsked(Random &r, bool same_floats) {
        const qdq_dtype x8[] = {QDQ_DTYPE_U8, QDQ_DTYPE_S8}, floats[] = {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16};
        const qdq_dtype all[] = {QDQ_DTYPE_U8,   QDQ_DTYPE_S8,  QDQ_DTYPE_F32,
                                 QDQ_DTYPE_BF16, QDQ_DTYPE_F16, QDQ_DTYPE_S32};
        integers = r.range(0, 3) != 0;
        src_t = integers ? x8[r.range(0, 1)] : floats[r.range(0, 2)];
        wei_t = integers ? x8[r.range(0, 1)] : same_floats ? src_t : floats[r.range(0, 2)];
        dst_t = all[r.range(0, 5)];
        src_zp = integers && r.range(0, 1) == 0;
        wei_zp = integers && r.range(0, 2) == 0;
        per_channel = r.range(0, 1) == 0;
        scales = r.range(0, 2) != 0;
        dst_zp = qdqi_dtype_is_int(dst_t) && r.range(0, 1) == 0;
        dst_scale = r.range(0, 1) == 0;
        relu = r.range(0, 1) == 0;
        residual = r.range(0, 2) == 0;
        if (r.range(0, 1) == 0) bias_t = r.range(0, 1) == 0 ? QDQ_DTYPE_F32 : QDQ_DTYPE_S32;
    }
    std::string Text() const {
        std::string text = std::string(qdq_dtype_name(src_t)) + qdq_dtype_name(wei_t) + qdq_dtype_name(dst_t);
        if (src_zp) text += " zs";
        if (wei_zp) text += " zw";
        if (per_channel) text += " channels";
        if (scales) text += " scales";
        if (residual) text += " residual";
        if (bias_t != QDQ_DTYPE_UNDEF) text += std::string(" bias ") + qdq_dtype_name(bias_t);
        return text;
    }
};

// The attributes of such a request, and the buffers that belong to them.
class ProductArgs {
  public:
    // `mask` selects the channels of the weights.
    ProductArgs(const ProductAsked &q, int64_t n_channels, int mask) {
        s_zp = {q.src_t == QDQ_DTYPE_U8 ? 131 : -7};
        d_zp = {q.dst_t == QDQ_DTYPE_U8 ? 120 : 5};
        for (int64_t c = 0; c < (q.per_channel ? n_channels : 1); c++) {
            w_scale.push_back(0.03125f * float(1 + c % 3));
            w_zp.push_back((q.wei_t == QDQ_DTYPE_U8 ? 128 : 0) + int32_t(c % 5) - 2);
        }
        attr.src.has_scale = attr.weights.has_scale = q.scales;
        attr.src.has_zp = q.src_zp;
        attr.weights.has_zp = q.wei_zp;
        attr.weights.scale_mask = attr.weights.zp_mask = q.per_channel ? mask : 0;
        attr.dst.has_scale = q.dst_scale;
        attr.dst.has_zp = q.dst_zp;
    }
    void Post(qdqi_dnnl_alg alg, Tensor *operand = nullptr) {
        if (operand) buffers_[QDQI_DNNL_POST_OP + int(attr.n_posts)] = &operand->data;
        attr.posts[attr.n_posts++] = {alg, 0, 0, 0, QDQ_DTYPE_UNDEF, operand ? operand->md : qdqi_dnnl_md{}};
    }
    qdq_status Run(qdqi_dnnl_prim *prim, Tensor &src, std::vector<uint8_t> &weights, Tensor &bias, Tensor &dst,
                   qdq_error *err, int n_runs) {
        std::vector<uint8_t> quants[] = {BytesOf(s_scale), BytesOf(w_scale), BytesOf(d_scale),
                                         BytesOf(s_zp),    BytesOf(w_zp),    BytesOf(d_zp)};
        buffers_.insert({{QDQI_DNNL_SRC, &src.data},
                         {QDQI_DNNL_WEIGHTS, &weights},
                         {QDQI_DNNL_BIAS, &bias.data},
                         {QDQI_DNNL_DST, &dst.data},
                         {QDQI_DNNL_SCALE_SRC, &quants[0]},
                         {QDQI_DNNL_SCALE_WEIGHTS, &quants[1]},
                         {QDQI_DNNL_SCALE_DST, &quants[2]},
                         {QDQI_DNNL_ZP_SRC, &quants[3]},
                         {QDQI_DNNL_ZP_WEIGHTS, &quants[4]},
                         {QDQI_DNNL_ZP_DST, &quants[5]}});
        return run_prim(prim, buffers_, err, n_runs);
    }

    qdqi_dnnl_attr attr = {};
    std::vector<float> s_scale = {0.0625f}, w_scale, d_scale = {2.0f};
    std::vector<int32_t> s_zp, w_zp, d_zp;

  private:
    Buffers buffers_;
};

} // namespace onednn_run
#endif
