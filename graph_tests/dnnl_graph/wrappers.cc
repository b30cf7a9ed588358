// Every class and function of oneapi/dnnl/dnnl_graph.hpp, used as a program would that knows of nothing but oneDNN. It is run on
// libdnnl alone and with libqdq_dnnl_graph ahead of it, and has to print the same; it checks what it computes, too.
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <vector>

using namespace dnnl::graph;
using dims = logical_tensor::dims;
using data_type = logical_tensor::data_type;
using layout = logical_tensor::layout_type;
using property = logical_tensor::property_type;

namespace {

int n_wrong = 0;

template <class T> void Say(const char *what, const T &value) {
    std::cout << what << ": " << value << '\n';
}

void Say(const char *what, const std::vector<int64_t> &values) {
    std::cout << what << ':';
    for (int64_t v : values)
        std::cout << ' ' << v;
    std::cout << '\n';
}

// A computed value, which is `want`.
template <class T> void Number(const char *what, T found, T want) {
    Say(what, +found);
    if (found == want) return;
    n_wrong++;
    std::cout << "  WRONG, expected " << +want << '\n';
}

// The status of what throws.
void Throws(const char *what, const std::function<void()> &body) {
    int status = 0;
    try {
        body();
    } catch (const dnnl::error &e) {
        status = e.status;
    }
    std::cout << what << " throws " << status << '\n';
    if (status == 0) n_wrong++;
}

void LogicalTensors() {
    logical_tensor none;
    none = logical_tensor(1, data_type::f32);
    Say("assigned", none.get_id());
    const logical_tensor ranked(1, data_type::f16, 3, layout::any, property::variable);
    Say("ranked dims", ranked.get_dims());
    Say("ranked property", static_cast<int>(ranked.get_property_type()));
    const logical_tensor unknown(2, data_type::s32);
    Say("unknown layout", static_cast<int>(unknown.get_layout_type()));
    Throws("dims of no rank", [&] { unknown.get_dims(); });
    const logical_tensor dense(3, data_type::s8, dims{2, 3, 4}, layout::strided, property::constant);
    Say("dense strides", dense.get_strides());
    Say("dense bytes", dense.get_mem_size());
    Say("dense type", static_cast<int>(dense.get_data_type()));
    const logical_tensor strided(3, data_type::s8, dims{2, 3, 4}, dims{24, 8, 2});
    Say("strided strides", strided.get_strides());
    Say("strided bytes", strided.get_mem_size());
    Say("dense is strided", dense.is_equal(strided));
    Say("dense is dense", dense.is_equal(logical_tensor(dense)));
    const logical_tensor opaque(4, data_type::f32, dims{2, 2}, size_t{77});
    Say("opaque id", opaque.get_layout_id());
    Throws("strides of opaque", [&] { opaque.get_strides(); });
    Throws("id of strided", [&] { strided.get_layout_id(); });
    const logical_tensor scalar(5, data_type::f32, dims{}, layout::strided);
    Say("scalar dims", scalar.get_dims());
    Say("scalar bytes", scalar.get_mem_size());
    const logical_tensor nibbles(6, data_type::u4, dims{5}, layout::strided);
    Say("nibbles bytes", nibbles.get_mem_size());
    const logical_tensor any(7, data_type::f32, dims{4, 4}, layout::any);
    Say("any bytes", any.get_mem_size() == std::numeric_limits<size_t>::max());
    dnnl_graph_logical_tensor_t c;
    dnnl_graph_logical_tensor_init(&c, 8, dnnl_f32, 2, dnnl_graph_layout_type_any, dnnl_graph_tensor_property_undef);
    Say("from C", logical_tensor(c).get_id());
}

size_t n_mallocs = 0, n_frees = 0;

void *UserMalloc(size_t bytes, size_t alignment) {
    n_mallocs++;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void UserFree(void *ptr) {
    n_frees++;
    free(ptr);
}

void Tensors() {
    const logical_tensor lt(1, data_type::f32, dims{8}, layout::strided);
    engine e;
    {
        const allocator plain, own(UserMalloc, UserFree);
        const engine other = make_engine_with_allocator(engine::kind::cpu, 0, plain);
        Say("engine kind", static_cast<int>(other.get_kind()));
        e = make_engine_with_allocator(engine::kind::cpu, 0, own);
    }
    {
        tensor t(lt, e);
        Say("allocated", n_mallocs);
        memset(t.get_data_handle(), 0, lt.get_mem_size());
        float values[8] = {1};
        tensor none, borrowed(lt, e, values), copy = borrowed;
        Say("borrowed", borrowed.get_data_handle() == values && copy.get_data_handle() == values);
        Say("engine", borrowed.get_engine() == e);
        Say("lt", borrowed.get_logical_tensor().is_equal(lt));
        t.set_data_handle(values);
        Say("freed", n_frees);
        const tensor empty(lt, e, nullptr);
        Say("empty", empty.get_data_handle() == nullptr);
        none = borrowed;
        Say("assigned", none.get_data_handle() == values);
    }
    Say("freed at the end", n_frees);
}

// Every kind and attribute can be written; what is checked is checked when it is added to a graph.
void Ops() {
    op a(1, op::kind::Convolution, "conv");
    a.set_attr<int64_t>(op::attr::groups, 2).set_attr<dims>(op::attr::strides, {1, 1});
    a.set_attr<std::string>(op::attr::auto_pad, "VALID");
    op b(2, op::kind::Quantize);
    b.set_attr<std::vector<float>>(op::attr::scales, {0.5f, 0.25f});
    op c(3, op::kind::Elu, {logical_tensor(0, data_type::f32)}, {logical_tensor(1, data_type::f32)}, "elu");
    c.set_attr<float>(op::attr::alpha, 0.5f);
    op d(4, op::kind::MatMul);
    d.set_attr<bool>(op::attr::transpose_a, true);
    d.add_input(logical_tensor(2, data_type::f32));
    d.add_inputs({logical_tensor(3, data_type::f32), logical_tensor(4, data_type::f32)});
    d.add_output(logical_tensor(5, data_type::f32));
    op e(5, op::kind::End);
    e.add_outputs({});
    const op copy(d);
    Say("copy is the same", copy.get() == d.get());
    size_t n = 0;
    for (int kind = 0; kind < static_cast<int>(op::kind::LastSymbol); kind++)
        n += op(1, static_cast<op::kind>(kind)).get() != nullptr;
    Say("kinds", n);
    graph g(engine::kind::cpu);
    Say("add a bad op", static_cast<int>(g.add_op(a, false)));
    Throws("add a bad op", [&] { g.add_op(a); });
    Say("add a good op", static_cast<int>(g.add_op(c)));
}

void Caches() {
    set_compiled_partition_cache_capacity(77);
    Say("capacity", get_compiled_partition_cache_capacity());
    Throws("capacity -1", [] { set_compiled_partition_cache_capacity(-1); });
    set_compiled_partition_cache_capacity(1024);
    set_constant_tensor_cache_capacity(engine::kind::cpu, 3);
    Say("constants", get_constant_tensor_cache_capacity(engine::kind::cpu));
    Say("constants on", get_constant_tensor_cache());
    set_constant_tensor_cache_capacity(engine::kind::cpu, std::numeric_limits<size_t>::max());
    Say("constants, all", get_constant_tensor_cache_capacity(engine::kind::cpu));
    set_constant_tensor_cache(0);
    Say("constants off", get_constant_tensor_cache());
    Throws("constants -1", [] { set_constant_tensor_cache(-1); });
}

void Graphs() {
    graph g(engine::kind::cpu, dnnl::fpmath_mode::bf16);
    dnnl::fpmath_mode mode;
    bool apply = true;
    g.get_fpmath_mode(mode, apply);
    Say("mode", static_cast<int>(mode));
    Say("applies to integers", apply);
    g.set_fpmath_mode(dnnl::fpmath_mode::strict, true);
    g.get_fpmath_mode(mode, apply);
    Say("mode now", static_cast<int>(mode));
    Say("applies now", apply);
    Say("finalized", g.is_finalized());
    Throws("partitions before finalize", [&] { g.get_partitions(); });
    g.finalize();
    Say("finalized now", g.is_finalized());
    Say("partitions of nothing", g.get_partitions().size());
    Throws("mode after finalize", [&] { g.set_fpmath_mode(dnnl::fpmath_mode::any); });
    Throws("add after finalize", [&] {
        g.add_op(op(1, op::kind::ReLU, {logical_tensor(0, data_type::f32)}, {logical_tensor(1, data_type::f32)}));
    });
    graph loop(engine::kind::cpu);
    const logical_tensor a(1, data_type::f32, dims{4}, layout::strided), b(2, data_type::f32, dims{4}, layout::strided);
    loop.add_op(op(1, op::kind::ReLU, {a}, {b}));
    loop.add_op(op(2, op::kind::ReLU, {b}, {a}));
    Throws("a cycle", [&] { loop.finalize(); });
}

// Wildcard and End stand for what the library cannot see.
void Unsupported() {
    const logical_tensor a(1, data_type::f32, dims{4}, layout::strided), b(2, data_type::f32, dims{4}, layout::strided);
    graph g(engine::kind::cpu);
    g.add_op(op(1, op::kind::Wildcard, {a}, {b}));
    g.add_op(op(2, op::kind::End, {b}, {}));
    g.finalize();
    for (const partition &p : g.get_partitions()) {
        std::cout << "unsupported: " << p.get_ops()[0] << ' ' << p.is_supported() << '\n';
        Throws("compile it", [&] { p.compile({a}, {b}, engine(engine::kind::cpu, 0)); });
    }
}

template <class Src, class Dst>
void Run(const compiled_partition &cp, const engine &e, const std::map<size_t, Src *> &in,
         const std::map<size_t, Dst *> &out) {
    stream s(e);
    std::vector<tensor> ins, outs;
    for (const auto &[id, data] : in)
        ins.emplace_back(cp.query_logical_tensor(id), e, data);
    for (const auto &[id, data] : out)
        outs.emplace_back(cp.query_logical_tensor(id), e, data);
    cp.execute(s, ins, outs);
    s.wait();
}

// MatMul, bias, a chain of others, in f32: the numbers are exact.
void FloatMatMul(const engine &e) {
    const int64_t M = 3, K = 5, N = 4;
    const logical_tensor x(1, data_type::f32, dims{M, K}, layout::strided);
    const logical_tensor w(2, data_type::f32, dims{N, K}, layout::strided, property::constant);
    const logical_tensor bias(3, data_type::f32, dims{N}, layout::strided);
    const logical_tensor product(4, data_type::f32, 2, layout::strided), y(5, data_type::f32, layout::any);
    graph g(engine::kind::cpu);
    g.add_op(op(1, op::kind::MatMul, {x, w, bias}, {product}).set_attr<bool>(op::attr::transpose_b, true));
    g.add_op(op(2, op::kind::Clamp, {product}, {y})
                 .set_attr<float>(op::attr::min, -6.0f)
                 .set_attr<float>(op::attr::max, 9.0f));
    g.finalize();
    const auto ps = g.get_partitions();
    Say("matmul partitions", ps.size());
    const partition &p = ps.at(0);
    Say("matmul ops", p.get_ops_num());
    Say("matmul first op", p.get_ops()[0]);
    Say("matmul engine", static_cast<int>(p.get_engine_kind()));
    Say("matmul supported", p.is_supported());
    Say("matmul has an id", p.get_id() > 0);
    Say("matmul inputs", p.get_input_ports().size());
    Say("matmul input", p.get_input_ports()[1].get_id());
    Say("matmul outputs", p.get_output_ports().size());
    const compiled_partition cp = p.compile({x, w, bias}, {y}, e);
    Say("matmul dims", cp.query_logical_tensor(5).get_dims());
    Say("matmul layout", static_cast<int>(cp.query_logical_tensor(5).get_layout_type()));
    Say("matmul input strides", cp.query_logical_tensor(2).get_strides());
    Say("matmul in place", cp.get_inplace_ports().size());
    std::vector<float> a(M * K), b(N * K), c(N), out(M * N);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    for (size_t i = 0; i < b.size(); i++)
        b[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
    for (size_t i = 0; i < c.size(); i++)
        c[i] = static_cast<float>(i);
    Run<float, float>(cp, e, {{1, a.data()}, {2, b.data()}, {3, c.data()}}, {{5, out.data()}});
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            float sum = c[n];
            for (int64_t k = 0; k < K; k++)
                sum += a[m * K + k] * b[n * K + k];
            Number("matmul", out[m * N + n], std::min(std::max(sum, -6.0f), 9.0f));
        }
    const auto singles = g.get_partitions(partition::policy::debug);
    Say("matmul singles", singles.size());
}

// A single op without a graph.
void OnePartition(const engine &e) {
    const logical_tensor x(1, data_type::u8, dims{2, 4}, layout::strided),
        y(2, data_type::f32, dims{2, 4}, layout::strided);
    op dq(7, op::kind::Dequantize, {x}, {y}, "dq");
    dq.set_attr<std::vector<float>>(op::attr::scales, {0.5f, 0.25f});
    dq.set_attr<std::string>(op::attr::qtype, "per_channel").set_attr<int64_t>(op::attr::axis, 0);
    const partition p(dq, engine::kind::cpu);
    Say("single ops", p.get_ops_num());
    Say("single id", p.get_ops()[0]);
    const partition none;
    Say("none", static_cast<bool>(none));
    const compiled_partition cp = p.compile({x}, {y}, e), empty;
    Say("empty", static_cast<bool>(empty));
    uint8_t in[8] = {0, 1, 2, 3, 252, 253, 254, 255};
    float out[8];
    stream s(e);
    cp.execute(s, {tensor(x, e, in)}, {tensor(y, e, out)});
    s.wait();
    for (int i = 0; i < 8; i++)
        Number("dequantized", out[i], static_cast<float>(in[i]) * (i < 4 ? 0.5f : 0.25f));
}

// int8 with a residual and a zero point on everything.
void Int8Residual(const engine &e) {
    const int64_t M = 4, K = 16, N = 6;
    const auto plain = [](size_t id, data_type type, const dims &d) {
        return logical_tensor(id, type, d, layout::strided);
    };
    const logical_tensor x = plain(1, data_type::u8, {M, K}), r = plain(3, data_type::u8, {M, N}),
                         y = plain(9, data_type::u8, {M, N});
    const logical_tensor w(2, data_type::s8, dims{K, N}, layout::strided, property::constant);
    const logical_tensor xf = plain(4, data_type::f32, {M, K}), wf = plain(5, data_type::f32, {K, N});
    const logical_tensor rf = plain(6, data_type::f32, {M, N}), product = plain(7, data_type::f32, {M, N}),
                         sum = plain(8, data_type::f32, {M, N});
    const auto quantizer = [](size_t id, op::kind kind, const logical_tensor &in, const logical_tensor &out,
                              float scale, int64_t zp) {
        op o(id, kind, {in}, {out});
        o.set_attr<std::vector<float>>(op::attr::scales, {scale}).set_attr<std::vector<int64_t>>(op::attr::zps, {zp});
        return o;
    };
    graph g(engine::kind::cpu);
    g.add_op(quantizer(1, op::kind::Dequantize, x, xf, 0.5f, 7));
    g.add_op(quantizer(2, op::kind::Dequantize, w, wf, 0.25f, 0));
    g.add_op(quantizer(3, op::kind::Dequantize, r, rf, 2.0f, 3));
    g.add_op(op(4, op::kind::MatMul, {xf, wf}, {product}));
    g.add_op(op(5, op::kind::Add, {product, rf}, {sum}));
    g.add_op(quantizer(6, op::kind::Quantize, sum, y, 1.0f, 20));
    g.finalize();
    const auto ps = g.get_partitions();
    Say("int8 partitions", ps.size());
    Say("int8 ops", ps.at(0).get_ops_num());
    const compiled_partition cp = ps[0].compile({x, w, r}, {y}, e);
    for (const auto &pair : cp.get_inplace_ports()) { // a hint: it may be there
        if (pair.second != 9) n_wrong++;
    }
    std::vector<uint8_t> a(M * K), c(M * N), out(M * N);
    std::vector<int8_t> b(K * N);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = static_cast<uint8_t>(i * 3 % 16);
    for (size_t i = 0; i < b.size(); i++)
        b[i] = static_cast<int8_t>(static_cast<int>(i % 9) - 4);
    for (size_t i = 0; i < c.size(); i++)
        c[i] = static_cast<uint8_t>(i * 2);
    for (int round = 0; round < 2; round++)
        Run<void, void>(cp, e, {{1, a.data()}, {2, b.data()}, {3, c.data()}}, {{9, out.data()}});
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            float acc = (static_cast<float>(c[m * N + n]) - 3) * 2.0f;
            for (int64_t k = 0; k < K; k++)
                acc += (static_cast<float>(a[m * K + k]) - 7) * 0.5f * static_cast<float>(b[k * N + n]) * 0.25f;
            const float q = std::nearbyint(acc + 20);
            Number("int8", out[m * N + n], static_cast<uint8_t>(std::min(std::max(q, 0.0f), 255.0f)));
        }
}

} // namespace

int main() {
    try {
        LogicalTensors();
        Tensors();
        Ops();
        Caches();
        Graphs();
        Unsupported();
        const engine e(engine::kind::cpu, 0);
        FloatMatMul(e);
        OnePartition(e);
        Int8Residual(e);
    } catch (const dnnl::error &error) {
        std::cout << "unexpected: " << error.status << ' ' << error.message << '\n';
        return 1;
    }
    Say("wrong", n_wrong);
    return n_wrong != 0;
}
