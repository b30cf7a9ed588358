// Speed does not cost exactness: quantize and dequantize through sessions give the bytes of the reference for every op,
// data type, granularity, length 0…200, offset, number of threads and level of instruction set.
#include "vector_run.h"

#include "kernels/isa/isa.h"

#include <memory>
#include <algorithm>

namespace {

using vectors::Tensor;
using vectors::Vector;

struct EngineDelete {
    void operator()(qdq_engine *engine) const { qdq_engine_destroy(&engine); }
};
using Engine = std::unique_ptr<qdq_engine, EngineDelete>;

Engine make_engine(int n_threads) {
    qdq_engine_options options = {};
    options.struct_bytes = sizeof options;
    options.n_threads = n_threads;
    qdq_engine *engine = nullptr;
    qdq_error err = {};
    EXPECT_EQ(qdq_engine_create(&options, &engine, &err), QDQ_OK) << err.text;
    return Engine(engine);
}

struct JsonDelete {
    void operator()(json_t *json) const { json_decref(json); }
};

// The cap that the environment or the host set is put back at the end.
class Cap {
  public:
    Cap() : before_(qk_isa_cap()) {}
    ~Cap() { qk_isa_set_cap(before_); }

  private:
    qk_isa before_;
};

struct Random {
    uint64_t state = 88172645463325252u;
    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 33);
    }
    int64_t range(int64_t lo, int64_t hi) { return lo + (int64_t)(next() % (uint64_t)(hi - lo + 1)); }
};

enum class Gran { kTensor, kAxis0, kAxis1, kGroups };

struct Case {
    std::string op;
    qdq_dtype stored, real;
    Gran gran;
    bool zp;
    int64_t length; // of the last dim
};

bool is_onnx(const std::string &op) {
    return op.find("Linear") != std::string::npos;
}
bool quantizes(const std::string &op) {
    return op.find("Dequantize") == std::string::npos && op.find("DynamicDe") == std::string::npos;
}

// Ties, ends, infinities, NaN and what lies between, in front of any other values.
double awkward(Random &random, int64_t i) {
    static const double first[] = {0.5,  -0.5,    1.5,     2.5,     -2.5, HUGE_VAL, -HUGE_VAL, std::nan(""),
                                   -0.0, 3.0e9,   -3.0e9,  0,       1,    127.5,    -128.5,    255.5,
                                   1e38, 1.0e-40, 32767.5, 65535.5, 0.59, 0.09,     0.0015,    -1e38};
    if (random.next() % 3 == 0) return first[random.next() % (sizeof first / sizeof first[0])];
    if (random.next() % 3 == 0) return (double)random.range(-300, 300) / 2.0;
    return (double)random.range(-1000000, 1000000) / 997.0 + (double)i * 0.001;
}

struct Built {
    Vector v;
    std::unique_ptr<json_t, JsonDelete> attrs;
};

std::vector<int64_t> dims_of(const Case &c) {
    switch (c.gran) {
    case Gran::kTensor: return {c.length};
    case Gran::kAxis0: return {3, c.length};
    case Gran::kAxis1: return {3, c.length};
    case Gran::kGroups: return {4, is_onnx(c.op) ? c.length : c.length / 5 * 5};
    }
    return {};
}

// Dims of the scales; for the attribute forms their number.
std::vector<int64_t> param_dims(const Case &c, const std::vector<int64_t> &dims) {
    switch (c.gran) {
    case Gran::kTensor: return {1};
    case Gran::kAxis0: return {dims[0]};
    case Gran::kAxis1: return {dims[1]};
    case Gran::kGroups:
        if (is_onnx(c.op)) return {dims[0], (dims[1] + 4) / 5};
        return {dims[0] / 2, dims[1] / 5};
    }
    return {};
}

void set_granularity(const Case &c, json_t *attrs) {
    if (is_onnx(c.op)) {
        json_object_set_new(attrs, "axis", json_integer(c.gran == Gran::kAxis0 ? 0 : 1));
        if (c.gran == Gran::kGroups) json_object_set_new(attrs, "block_size", json_integer(5));
        return;
    }
    const char *qtype = c.gran == Gran::kTensor ? "per_tensor" : c.gran == Gran::kGroups ? "per_group" : "per_channel";
    json_object_set_new(attrs, "qtype", json_string(qtype));
    json_object_set_new(attrs, "axis", json_integer(c.gran == Gran::kAxis0 ? 0 : -1));
    if (c.gran == Gran::kGroups) json_object_set_new(attrs, "group_shape", json_pack("[ii]", 2, 5));
}

Built make(const Case &c, Random &random) {
    Built b;
    b.attrs.reset(json_object());
    b.v.op = c.op;
    b.v.name = c.op;
    b.v.attrs = b.attrs.get();
    set_granularity(c, b.attrs.get());
    const std::vector<int64_t> dims = dims_of(c), params = param_dims(c, dims);
    const bool q = quantizes(c.op), is_static = c.op == "Quantize" || c.op == "Dequantize";
    Tensor x = vectors::make_tensor(1, q ? c.real : c.stored, dims);
    for (int64_t i = 0; i < x.n(); i++)
        if (q)
            qdqi_store_f64(x.bytes.data(), c.real, i, awkward(random, i));
        else
            qdqi_store_i64(x.bytes.data(), c.stored, i,
                           random.range(qdqi_dtype_min(c.stored), qdqi_dtype_max(c.stored)));
    Tensor scale = vectors::make_tensor(2, is_static ? QDQ_DTYPE_F32 : c.real, params);
    Tensor zp = vectors::make_tensor(3, c.stored, params);
    static const float scales[] = {1.0f, 0.5f, 0.02f, 0.1f, 3.0f, 0.001f, 2.0f, 0.037f};
    for (int64_t i = 0; i < scale.n(); i++) {
        qdqi_store_f32(scale.bytes.data(), scale.desc.dtype, i, scales[random.next() % 8]);
        const bool zero = c.stored == QDQ_DTYPE_S32 && is_onnx(c.op);
        qdqi_store_i64(zp.bytes.data(), c.stored, i,
                       zero ? 0 : random.range(qdqi_dtype_min(c.stored), qdqi_dtype_max(c.stored)));
    }
    b.v.in = {x};
    if (is_static) {
        json_t *s = json_array(), *z = json_array();
        for (int64_t i = 0; i < scale.n(); i++) {
            json_array_append_new(s, json_real((double)qdqi_load_f32(scale.bytes.data(), QDQ_DTYPE_F32, i)));
            json_array_append_new(z, json_integer(qdqi_load_i64(zp.bytes.data(), c.stored, i)));
        }
        json_object_set_new(b.attrs.get(), "scales", s);
        if (c.zp)
            json_object_set_new(b.attrs.get(), "zps", z);
        else
            json_decref(z);
    } else {
        b.v.in.push_back(scale);
        if (c.zp) b.v.in.push_back(zp);
        if (c.op == "QuantizeLinear" && !c.zp)
            json_object_set_new(b.attrs.get(), "output_dtype", json_string(qdq_dtype_name(c.stored)));
    }
    b.v.out = {vectors::make_tensor(100, q ? c.stored : c.real, dims)};
    b.v.out_types = {b.v.out[0].desc.dtype};
    return b;
}

std::string text_of(const Case &c) {
    return c.op + " " + qdq_dtype_name(c.stored) + " " + qdq_dtype_name(c.real) + " granularity " +
           std::to_string((int)c.gran) + (c.zp ? " zp" : "") + " length " + std::to_string(c.length);
}

// The session's result from buffers that begin `offset` bytes behind an aligned address.
std::string run_at(const qdq_graph *graph, qdq_engine *engine, const Vector &v, bool constants, size_t offset,
                   const Tensor &expected) {
    std::vector<std::vector<unsigned char>> buffers;
    std::vector<const void *> in;
    for (size_t i = 0; i < (constants ? 1 : v.in.size()); i++) {
        const size_t shift = i == 0 ? offset : 0;
        buffers.emplace_back(v.in[i].bytes.size() + shift + 1);
        if (!v.in[i].bytes.empty())
            std::memcpy(buffers.back().data() + shift, v.in[i].bytes.data(), v.in[i].bytes.size());
    }
    for (size_t i = 0; i < buffers.size(); i++)
        in.push_back(buffers[i].data() + (i == 0 ? offset : 0));
    std::vector<unsigned char> result(expected.bytes.size() + offset + 8, 0xa5);
    vectors::Result r;
    vectors::run_session(graph, engine, in, {result.data() + offset}, &r);
    if (r.status != QDQ_OK) return r.err.text;
    for (size_t i = 0; i < 8; i++)
        if (result[offset + expected.bytes.size() + i] != 0xa5) return "wrote behind its end";
    Tensor got = expected;
    if (!got.bytes.empty()) std::memcpy(got.bytes.data(), result.data() + offset, got.bytes.size());
    const std::string what = vectors::difference(expected, got, 0.0);
    return what.empty() ? "" : what + " (" + r.impl + ")";
}

struct Sweep {
    Random random;
    Engine engines[2] = {make_engine(1), make_engine(2)};
    int n_runs = 0;

    void check(const Case &c) {
        const Built b = make(c, random);
        const size_t align = (qdq_dtype_bits(b.v.in[0].desc.dtype) + 7) / 8;
        const size_t align_out = (qdq_dtype_bits(b.v.out[0].desc.dtype) + 7) / 8;
        const size_t offset = std::max(align, align_out) * (size_t)random.range(1, 16);
        for (bool constants : {true, false}) {
            if (!constants && b.v.in.size() == 1) continue;
            qdq_graph *graph = nullptr;
            qdq_error err = {};
            ASSERT_EQ(qdq_graph_create(&graph, &err), QDQ_OK);
            ASSERT_EQ(vectors::build(b.v, constants, graph, &err), QDQ_OK) << text_of(c) << ": " << err.text;
            const vectors::Result r = vectors::run(b.v, constants, vectors::Provider::kReference, nullptr);
            ASSERT_EQ(r.status, QDQ_OK) << text_of(c) << ": " << r.err.text;
            for (int isa = 0; isa < QK_ISA_COUNT; isa++) {
                if (!qk_isa_host_has((qk_isa)isa)) continue;
                qk_isa_set_cap((qk_isa)isa);
                for (int threads = 0; threads < 2; threads++) {
                    const size_t at = (n_runs & 1) == 0 ? 0 : offset;
                    const std::string what = run_at(graph, engines[threads].get(), b.v, constants, at, r.out[0]);
                    EXPECT_EQ(what, "") << text_of(c) << ", " << qk_isa_name((qk_isa)isa) << ", " << threads + 1
                                        << " threads, offset " << at << (constants ? ", constants" : ", inputs");
                    n_runs++;
                }
            }
            qdq_graph_destroy(&graph);
        }
    }
};

const char *const kOps[] = {"Quantize",          "Dequantize",     "DynamicQuantize",
                            "DynamicDequantize", "QuantizeLinear", "DequantizeLinear"};
const qdq_dtype kStored[] = {QDQ_DTYPE_U8,  QDQ_DTYPE_S8, QDQ_DTYPE_U16, QDQ_DTYPE_S16,
                             QDQ_DTYPE_S32, QDQ_DTYPE_U4, QDQ_DTYPE_S4};

bool is_legal(const Case &c) {
    return c.gran != Gran::kGroups || (c.op != "Quantize" && c.op != "Dequantize");
}

TEST(ConformanceSessions, EveryCombinationGivesTheBytesOfTheReference) {
    const Cap cap;
    Sweep sweep;
    int64_t length = 0;
    for (const char *op : kOps)
        for (qdq_dtype stored : kStored)
            for (qdq_dtype real : {QDQ_DTYPE_F32, QDQ_DTYPE_BF16, QDQ_DTYPE_F16})
                for (Gran gran : {Gran::kTensor, Gran::kAxis0, Gran::kAxis1, Gran::kGroups})
                    for (bool zp : {false, true}) {
                        length = (length + 37) % 201;
                        const Case c = {op, stored, real, gran, zp, length};
                        if (is_legal(c)) sweep.check(c);
                        if (HasFatalFailure()) return;
                    }
    std::printf("%d runs\n", sweep.n_runs);
}

TEST(ConformanceSessions, EveryLengthGivesTheBytesOfTheReference) {
    const Cap cap;
    Sweep sweep;
    for (int64_t length = 0; length <= 200; length++)
        for (const char *op : {"DynamicQuantize", "QuantizeLinear", "DequantizeLinear"})
            for (Gran gran : {Gran::kTensor, Gran::kAxis1}) {
                sweep.check({op, kStored[length % 7], QDQ_DTYPE_F32, gran, true, length});
                if (HasFatalFailure()) return;
            }
    std::printf("%d runs\n", sweep.n_runs);
}

// Long enough for two threads, and not a multiple of anything.
TEST(ConformanceSessions, ThreadsGiveTheBytesOfTheReference) {
    const Cap cap;
    Sweep sweep;
    for (const char *op : kOps)
        for (qdq_dtype stored : {QDQ_DTYPE_S8, QDQ_DTYPE_U4}) {
            const Gran gran = stored == QDQ_DTYPE_S8 ? Gran::kTensor : Gran::kAxis0;
            sweep.check({op, stored, QDQ_DTYPE_F32, gran, true, 70001});
            if (HasFatalFailure()) return;
        }
    std::printf("%d runs\n", sweep.n_runs);
}

} // namespace
