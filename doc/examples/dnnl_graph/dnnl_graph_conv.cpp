// Two quantized convolutions in oneDNN Graph's C++ interface; if they come back as two partitions, the second reads what the first
// wrote in a layout that the library chose. Nothing here knows of libqdq: linked with -lqdq_dnnl_graph ahead of -ldnnl, or started with
// LD_PRELOAD=libqdq_dnnl_graph.so, the same program runs on it.
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace dnnl::graph;
using dims = logical_tensor::dims;
using data_type = logical_tensor::data_type;
using layout = logical_tensor::layout_type;
using property = logical_tensor::property_type;

namespace {

constexpr int64_t kSize = 6, kChannels = 8;
constexpr float kSrcScale = 0.5f, kWeightsScale = 0.125f, kDstScale = 2.0f;

// dst = Quantize(ReLU(Convolution(Dequantize(src), Dequantize(weights)))); ids of ops and tensors count from `first`
void add_layer(graph *g, size_t first, const logical_tensor &src, const logical_tensor &weights,
               const logical_tensor &dst, float src_scale) {
    const dims pixels = {1, kSize, kSize, kChannels};
    const logical_tensor src_f32(first + 10, data_type::f32, pixels, layout::strided);
    const logical_tensor weights_f32(first + 11, data_type::f32, weights.get_dims(), layout::strided);
    const logical_tensor sum(first + 12, data_type::f32, pixels, layout::strided);
    const logical_tensor relu(first + 13, data_type::f32, pixels, layout::strided);

    op dq_src(first, op::kind::Dequantize, {src}, {src_f32}, "dq_src");
    dq_src.set_attr<std::vector<float>>(op::attr::scales, {src_scale});
    dq_src.set_attr<std::vector<int64_t>>(op::attr::zps, {0});
    op dq_weights(first + 1, op::kind::Dequantize, {weights}, {weights_f32}, "dq_weights");
    dq_weights.set_attr<std::string>(op::attr::qtype, "per_channel");
    dq_weights.set_attr<int64_t>(op::attr::axis, 3);
    dq_weights.set_attr<std::vector<float>>(op::attr::scales, std::vector<float>(kChannels, kWeightsScale));
    op conv(first + 2, op::kind::Convolution, {src_f32, weights_f32}, {sum}, "conv");
    conv.set_attr<dims>(op::attr::strides, {1, 1});
    conv.set_attr<dims>(op::attr::dilations, {1, 1});
    conv.set_attr<dims>(op::attr::pads_begin, {1, 1});
    conv.set_attr<dims>(op::attr::pads_end, {1, 1});
    conv.set_attr<std::string>(op::attr::data_format, "NXC");
    conv.set_attr<std::string>(op::attr::weights_format, "XIO");
    op rectify(first + 3, op::kind::ReLU, {sum}, {relu}, "relu");
    op q_dst(first + 4, op::kind::Quantize, {relu}, {dst}, "q_dst");
    q_dst.set_attr<std::vector<float>>(op::attr::scales, {kDstScale});
    q_dst.set_attr<std::vector<int64_t>>(op::attr::zps, {0});
    for (const op &o : {dq_src, dq_weights, conv, rectify, q_dst})
        g->add_op(o);
}

// What the ops of a layer mean, one by one.
std::vector<uint8_t> expected(const std::vector<uint8_t> &src, const std::vector<int8_t> &weights, float src_scale) {
    std::vector<uint8_t> dst(src.size());
    for (int64_t y = 0; y < kSize; y++)
        for (int64_t x = 0; x < kSize; x++)
            for (int64_t o = 0; o < kChannels; o++) {
                float sum = 0;
                for (int64_t ky = 0; ky < 3; ky++)
                    for (int64_t kx = 0; kx < 3; kx++)
                        for (int64_t i = 0; i < kChannels; i++) {
                            const int64_t sy = y + ky - 1, sx = x + kx - 1;
                            if (sy < 0 || sx < 0 || sy >= kSize || sx >= kSize) continue;
                            sum += static_cast<float>(src[(sy * kSize + sx) * kChannels + i]) * src_scale *
                                   static_cast<float>(weights[((ky * 3 + kx) * kChannels + i) * kChannels + o]) *
                                   kWeightsScale;
                        }
                const float q = std::nearbyint(std::max(sum, 0.0f) / kDstScale);
                dst[(y * kSize + x) * kChannels + o] = static_cast<uint8_t>(std::min(q, 255.0f));
            }
    return dst;
}

int run() {
    std::vector<uint8_t> src(kSize * kSize * kChannels);
    std::vector<int8_t> weights(9 * kChannels * kChannels);
    for (size_t i = 0; i < src.size(); i++)
        src[i] = static_cast<uint8_t>(i * 7 % 19);
    for (size_t i = 0; i < weights.size(); i++)
        weights[i] = static_cast<int8_t>(static_cast<int>(i * 5 % 11) - 4);

    const dims pixels = {1, kSize, kSize, kChannels}, window = {3, 3, kChannels, kChannels};
    const logical_tensor x(0, data_type::u8, pixels, layout::strided);
    const logical_tensor w(1, data_type::s8, window, layout::strided, property::constant);
    const logical_tensor between(2, data_type::u8, pixels, layout::any);
    const logical_tensor y(3, data_type::u8, pixels, layout::strided);

    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    graph g(dnnl::engine::kind::cpu);
    add_layer(&g, 100, x, w, between, kSrcScale);
    add_layer(&g, 200, between, w, y, kDstScale);
    g.finalize();

    const auto partitions = g.get_partitions();
    std::vector<uint8_t> dst(src.size());
    size_t n_ops = 0; // in how many partitions is for the library to say
    std::map<size_t, tensor> tensors;
    tensors[0] = tensor(x, engine, src.data());
    tensors[1] = tensor(w, engine, weights.data());
    tensors[3] = tensor(y, engine, dst.data());
    for (const partition &p : partitions) {
        if (!p.is_supported()) {
            std::cerr << "a partition is not supported\n";
            return 1;
        }
        std::vector<logical_tensor> ins = p.get_input_ports();
        const std::vector<logical_tensor> outs = p.get_output_ports();
        std::vector<tensor> in_tensors, out_tensors;
        for (logical_tensor &lt : ins) {
            in_tensors.push_back(tensors.at(lt.get_id()));
            lt = in_tensors.back().get_logical_tensor(); // with the layout that was chosen
        }
        const compiled_partition compiled = p.compile(ins, outs, engine);
        for (const logical_tensor &lt : outs) {
            if (tensors.count(lt.get_id()) == 0)
                tensors[lt.get_id()] = tensor(compiled.query_logical_tensor(lt.get_id()), engine);
            out_tensors.push_back(tensors[lt.get_id()]);
        }
        compiled.execute(stream, in_tensors, out_tensors);
        n_ops += p.get_ops_num();
    }
    stream.wait();

    const auto want = expected(expected(src, weights, kSrcScale), weights, kDstScale);
    std::cout << n_ops << " ops\n";
    int n_wrong = 0;
    for (size_t i = 0; i < dst.size(); i++) {
        n_wrong += dst[i] != want[i];
        if (i % 37 == 0) std::cout << static_cast<int>(dst[i]) << ' ';
    }
    std::cout << '\n' << n_wrong << " wrong\n";
    return n_wrong != 0;
}

} // namespace

int main() {
    try {
        return run();
    } catch (const dnnl::error &e) {
        std::cerr << "oneDNN: " << e.what() << ": " << e.message << '\n';
        return 1;
    }
}
