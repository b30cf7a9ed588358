// Running allocates nothing: the library's calls of the C allocator are counted (this program is linked with --wrap, which sees
// the static library's calls and not those of oneDNN, OpenMP or the C++ library), and so are those of the engine's allocator.
#include "fusion/net.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>

namespace {
std::atomic<long> n_calls{0};
}

extern "C" {
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **ptr, size_t alignment, size_t bytes);
void __real_free(void *ptr);
char *__real_strdup(const char *s);

void *__wrap_malloc(size_t bytes) {
    n_calls++;
    return __real_malloc(bytes);
}
void *__wrap_calloc(size_t n, size_t size) {
    n_calls++;
    return __real_calloc(n, size);
}
void *__wrap_realloc(void *ptr, size_t bytes) {
    n_calls++;
    return __real_realloc(ptr, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    n_calls++;
    return __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void **ptr, size_t alignment, size_t bytes) {
    n_calls++;
    return __real_posix_memalign(ptr, alignment, bytes);
}
void __wrap_free(void *ptr) {
    n_calls++;
    __real_free(ptr);
}
char *__wrap_strdup(const char *s) {
    n_calls++;
    return __real_strdup(s);
}
}

namespace qdq_test {
namespace {

using Reals = std::vector<float>;
using Longs = std::vector<int64_t>;

void *EngineMalloc(size_t bytes, size_t alignment, void *user) {
    ++*static_cast<std::atomic<long> *>(user);
    void *ptr = nullptr;
    return __real_posix_memalign(&ptr, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes ? bytes : 1) == 0
               ? ptr
               : nullptr;
}

void EngineFree(void *ptr, void *user) {
    ++*static_cast<std::atomic<long> *>(user);
    __real_free(ptr);
}

Id Dq(Net *n, Id x, float scale, int64_t zp) {
    return n->Op1("Dequantize", {x}, {AttrFs("scales", {scale}), AttrIs("zps", {zp})});
}

Id Q(Net *n, Id x) {
    return n->Op1("Quantize", {x}, {AttrFs("scales", {0.5f}), AttrIs("zps", {3})}, QDQ_DTYPE_U8);
}

Id Ints(Net *n, qdq_dtype dtype, const Dims &dims, bool constant) {
    Longs v;
    for (int64_t i = 0; i < Count(dims); i++)
        v.push_back(qdqi_dtype_min(dtype) + i * 37 % 256);
    return n->Ints(dtype, dims, v, constant);
}

struct Case {
    const char *name;
    Id (*make)(Net *n);
};

const Case cases[] = {
    {"MatMul",
     [](Net *n) {
         const Id x = Dq(n, Ints(n, QDQ_DTYPE_U8, {5, 33}, false), 0.1f, 7);
         const Id w = Dq(n, Ints(n, QDQ_DTYPE_S8, {33, 17}, true), 0.02f, 0);
         return Q(n, n->Op1("GELU", {n->Op1("MatMul", {x, w})}));
     }},
    {"MatMulOfRuntimeWeightsAndScales",
     [](Net *n) {
         const Id x =
             n->Op1("DynamicDequantize", {Ints(n, QDQ_DTYPE_U8, {5, 33}, false), n->Floats({1}, {0.1f}, false)});
         const Id w = Dq(n, Ints(n, QDQ_DTYPE_U8, {33, 17}, false), 0.02f, 9);
         return Q(n, n->Op1("MatMul", {x, w}));
     }},
    {"Convolution",
     [](Net *n) {
         const Id x = Dq(n, Ints(n, QDQ_DTYPE_U8, {2, 3, 9, 8}, false), 0.1f, 7);
         const Id w = Dq(n, Ints(n, QDQ_DTYPE_S8, {5, 3, 3, 3}, true), 0.02f, 4);
         const Id c = n->Op1("Convolution", {x, w},
                             {AttrIs("strides", {1, 1}), AttrIs("dilations", {1, 1}), AttrIs("pads_begin", {1, 1}),
                              AttrIs("pads_end", {1, 1}), AttrS("data_format", "NCX"), AttrS("weights_format", "OIX")});
         const Id r = Dq(n, Ints(n, QDQ_DTYPE_S8, {2, 5, 9, 8}, false), 0.1f, -3);
         return Q(n, n->Op1("ReLU", {n->Op1("Add", {c, r})}));
     }},
    {"AvgPool",
     [](Net *n) {
         return Q(n, n->Op1("AvgPool", {Dq(n, Ints(n, QDQ_DTYPE_U8, {2, 5, 6, 17}, false), 0.1f, 7)},
                            {AttrIs("strides", {1, 2}), AttrIs("kernel", {2, 3}), AttrIs("pads_begin", {1, 1}),
                             AttrIs("pads_end", {0, 1}), AttrB("exclude_pad", false)}));
     }},
    {"Elementwise",
     [](Net *n) {
         const Id a = Dq(n, Ints(n, QDQ_DTYPE_S8, {3, 65}, false), 0.1f, 7);
         const Id b = Dq(n, Ints(n, QDQ_DTYPE_U8, {3, 65}, false), 0.2f, 0);
         return Q(n, n->Op1("Multiply", {n->Op1("Add", {a, b}), n->Floats({65}, Reals(65, 0.3f), false)}));
     }},
    {"Table",
     [](Net *n) {
         return Q(n, n->Op1("Erf", {Dq(n, Ints(n, QDQ_DTYPE_S8, {3, 65}, false), 0.1f, 7)}));
     }},
    {"Softmax",
     [](Net *n) {
         return Q(n, n->Op1("SoftMax", {Dq(n, Ints(n, QDQ_DTYPE_S8, {3, 65}, false), 0.1f, 7)}));
     }},
    {"Concat",
     [](Net *n) {
         return Q(n, n->Op1("Concat",
                            {Dq(n, Ints(n, QDQ_DTYPE_S8, {3, 5}, false), 0.1f, 7),
                             Dq(n, Ints(n, QDQ_DTYPE_U8, {3, 9}, false), 0.2f, 1)},
                            {AttrI("axis", 1)}));
     }},
    {"Transpose",
     [](Net *n) {
         return Q(n, n->Op1("StaticTranspose", {Dq(n, Ints(n, QDQ_DTYPE_S8, {3, 5, 7}, false), 0.1f, 7)},
                            {AttrIs("order", {2, 0, 1})}));
     }},
    {"Reference",
     [](Net *n) {
         const Id x = n->Floats({3, 65}, Reals(195, 0.7f), false);
         return n->Op1("CumSum", {n->Op1("Celu", {x}), n->Ints(QDQ_DTYPE_S64, {}, {1}, true)});
     }},
};

// Buffers and descriptors exist before counting starts.
struct Ports {
    std::vector<qdq_tensor> tensors;
    std::vector<Bytes> data;
};

Ports PortsOf(const Net &net, const std::vector<qdq_tensor_desc> &descs) {
    Ports ports;
    for (const qdq_tensor_desc &desc : descs) {
        ports.data.push_back(net.At(static_cast<Id>(desc.id) - 1).data);
        qdq_tensor t = {};
        t.desc = desc;
        t.data = ports.data.back().data();
        ports.tensors.push_back(t);
    }
    return ports;
}

class Allocations : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        qdq_engine_options options = {};
        options.struct_bytes = sizeof options;
        options.malloc_fn = EngineMalloc;
        options.free_fn = EngineFree;
        options.user = &n_engine_;
        ASSERT_EQ(qdq_engine_create(&options, &engine_, nullptr), QDQ_OK);
        out_ = GetParam().make(&net_);
        ASSERT_NE(out_, kMissing) << net_.error;
        std::string error;
        graph_.reset(net_.Graph({out_}, &error));
        ASSERT_NE(graph_, nullptr) << error;
    }
    void TearDown() override { qdq_engine_destroy(&engine_); }

    // `run` twice to settle, then ten times counted.
    void ExpectNone(const std::function<qdq_status()> &run) {
        ASSERT_EQ(run(), QDQ_OK);
        ASSERT_EQ(run(), QDQ_OK);
        const long before = n_calls, engine_before = n_engine_;
        qdq_status status = QDQ_OK;
        for (int i = 0; i < 10 && status == QDQ_OK; i++)
            status = run();
        const long after = n_calls, engine_after = n_engine_;
        EXPECT_EQ(status, QDQ_OK);
        EXPECT_EQ(after - before, 0) << "calls of the C allocator in ten runs";
        EXPECT_EQ(engine_after - engine_before, 0) << "calls of the engine's allocator in ten runs";
    }

    Net net_;
    Id out_ = kMissing;
    GraphPtr graph_;
    qdq_engine *engine_ = nullptr;
    std::atomic<long> n_engine_{0};
};

TEST_P(Allocations, CompiledPartitionsAllocateNothing) {
    qdq_error err = {};
    qdq_partition_list *list = nullptr;
    const long before = n_calls;
    ASSERT_EQ(qdq_graph_partition(graph_.get(), QDQ_POLICY_FUSION, &list, &err), QDQ_OK) << err.text;
    EXPECT_GT(n_calls - before, 0) << "the counter is not in the library's way";
    for (size_t p = 0; p < qdq_partition_list_count(list); p++) {
        const qdq_partition *part = qdq_partition_list_get(list, p);
        std::vector<qdq_tensor_desc> in(qdq_partition_n_inputs(part)), out(qdq_partition_n_outputs(part));
        for (size_t i = 0; i < in.size(); i++)
            ASSERT_EQ(qdq_partition_input(part, i, &in[i], &err), QDQ_OK);
        for (size_t i = 0; i < out.size(); i++)
            ASSERT_EQ(qdq_partition_output(part, i, &out[i], &err), QDQ_OK);
        for (qdq_tensor_desc &desc : in)
            desc = DenseDesc(desc.id, desc.dtype, Dims(desc.dims, desc.dims + desc.ndims));
        for (qdq_tensor_desc &desc : out)
            desc = DenseDesc(desc.id, desc.dtype, Dims(desc.dims, desc.dims + desc.ndims));
        qdq_compiled *compiled = nullptr;
        ASSERT_EQ(qdq_partition_compile(part, engine_, in.data(), in.size(), out.data(), out.size(), &compiled, &err),
                  QDQ_OK)
            << err.text;
        Ports ins = PortsOf(net_, in), outs = PortsOf(net_, out);
        ExpectNone([&] {
            return qdq_compiled_execute(compiled, ins.tensors.data(), in.size(), outs.tensors.data(), out.size(), &err);
        });
        qdq_compiled_destroy(&compiled);
    }
    qdq_partition_list_destroy(&list);
}

TEST_P(Allocations, SessionsAllocateNothing) {
    for (const bool reference : {false, true}) {
        qdq_error err = {};
        qdq_session_options options = {};
        options.struct_bytes = sizeof options;
        options.reference = reference;
        qdq_session *session = nullptr;
        ASSERT_EQ(qdq_session_create(graph_.get(), engine_, &options, &session, &err), QDQ_OK) << err.text;
        std::vector<Bytes> data;
        std::vector<const void *> in;
        std::vector<void *> out;
        for (size_t i = 0; i < qdq_session_n_inputs(session); i++) {
            qdq_tensor_desc desc;
            ASSERT_EQ(qdq_session_input_desc(session, i, &desc, nullptr, &err), QDQ_OK);
            data.push_back(net_.At(static_cast<Id>(desc.id) - 1).data);
        }
        data.push_back(net_.At(out_).data);
        for (size_t i = 0; i + 1 < data.size(); i++)
            in.push_back(data[i].data());
        out.push_back(data.back().data());
        ExpectNone([&] { return qdq_session_run(session, in.data(), in.size(), out.data(), 1, &err); });
        qdq_session_destroy(&session);
    }
}

INSTANTIATE_TEST_SUITE_P(Graphs, Allocations, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

} // namespace
} // namespace qdq_test
