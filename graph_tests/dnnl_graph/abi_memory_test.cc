// Allocators, tensors that own their buffer, and allocations: which of them happen when.
#include "dnnl_graph/abi_net.h"

#include <link.h>

#include <atomic>
#include <cstdlib>
#include <set>

namespace {
std::atomic<long> n_calls{0};
std::atomic<bool> counting{false};
struct Range {
    uintptr_t first, end;
} ours[8];
int n_ours = 0;

// Where the code of our two libraries lies.
int FindOurs(dl_phdr_info *info, size_t, void *) {
    if (strstr(info->dlpi_name, "libqdq") == nullptr) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto &part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || n_ours == 8) continue;
        const uintptr_t first = info->dlpi_addr + part.p_vaddr;
        ours[n_ours++] = {first, first + part.p_memsz};
    }
    return 0;
}

[[maybe_unused]] void Count(const void *caller) {
    if (!counting.load(std::memory_order_relaxed)) return;
    const auto at = reinterpret_cast<uintptr_t>(caller);
    for (int i = 0; i < n_ours; i++)
        n_calls += at >= ours[i].first && at < ours[i].end;
}
} // namespace

// This program's own functions stand before the C library's for every library that it loads. Calls are counted that come from
// libqdq and from its stand-in; what libdnnl and OpenMP do inside of a primitive is theirs.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *ptr, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *ptr);

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ABI_COUNTS 1
void *malloc(size_t bytes) {
    Count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
    Count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}
void *realloc(void *ptr, size_t bytes) {
    Count(__builtin_return_address(0));
    return __libc_realloc(ptr, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    Count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **ptr, size_t alignment, size_t bytes) {
    Count(__builtin_return_address(0));
    *ptr = __libc_memalign(alignment, bytes);
    return *ptr == nullptr ? 12 : 0;
}
void free(void *ptr) {
    Count(__builtin_return_address(0));
    __libc_free(ptr);
}
#else
#define ABI_COUNTS 0
#endif
}

namespace qdq_test {
namespace {

struct Counter {
    std::atomic<long> allocated{0}, freed{0}, bad{0};
} user;

void *UserMalloc(size_t bytes, size_t alignment) {
    user.allocated++;
    void *ptr = nullptr;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) user.bad++;
    return posix_memalign(&ptr, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes == 0 ? 1 : bytes) == 0
               ? ptr
               : nullptr;
}

void UserFree(void *ptr) {
    user.freed++;
    free(ptr);
}

dnnl_engine_t UserEngine() {
    dnnl_graph_allocator_t a = nullptr;
    dnnl_engine_t engine = nullptr;
    EXPECT_EQ(dnnl_success, dnnl_graph_allocator_create(&a, UserMalloc, UserFree));
    EXPECT_EQ(dnnl_success, dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, a));
    EXPECT_EQ(dnnl_success, dnnl_graph_allocator_destroy(a)); // the engine has a copy
    return engine;
}

TEST(AbiMemory, TheUsersAllocatorMakesBuffers) {
    user.allocated = user.freed = user.bad = 0;
    {
        AbiEngine e(UserEngine());
        const Lt lt = MakeLt(1, dnnl_f32, {16, 16});
        dnnl_graph_tensor_t t = nullptr;
        ASSERT_EQ(dnnl_success, dnnl_graph_tensor_create(&t, &lt, e.engine(), DNNL_MEMORY_ALLOCATE));
        EXPECT_EQ(1, user.allocated);
        void *data = nullptr;
        ASSERT_EQ(dnnl_success, dnnl_graph_tensor_get_data_handle(t, &data));
        ASSERT_NE(nullptr, data);
        memset(data, 1, 16 * 16 * 4);
        float own[256];
        ASSERT_EQ(dnnl_success, dnnl_graph_tensor_set_data_handle(t, own)); // lets go of its buffer
        EXPECT_EQ(1, user.freed);
        ASSERT_EQ(dnnl_success, dnnl_graph_tensor_destroy(t));
        EXPECT_EQ(1, user.freed) << "the caller's buffer is not freed";
    }
    EXPECT_EQ(user.allocated, user.freed);
    EXPECT_EQ(0, user.bad);
}

// Weights that arrive at execute are packed there: into memory of the user's allocator.
TEST(AbiMemory, TheUsersAllocatorMakesTemporaries) {
    user.allocated = user.freed = 0;
    const Lt x = MakeLt(0, dnnl_f32, {1, 16, 16, 32}), w = MakeLt(1, dnnl_f32, {3, 3, 32, 48});
    const Lt y = UnknownLt(2, dnnl_f32, dnnl_graph_layout_type_any);
    {
        AbiEngine e(UserEngine());
        AbiGraph g;
        g.Add(AbiOp(1, dnnl_graph_op_convolution, {x, w}, {y})
                  .Is(dnnl_graph_op_attr_strides, {1, 1})
                  .Is(dnnl_graph_op_attr_dilations, {1, 1})
                  .Is(dnnl_graph_op_attr_pads_begin, {0, 0})
                  .Is(dnnl_graph_op_attr_pads_end, {0, 0}));
        dnnl_graph_set_compiled_partition_cache_capacity(0); // what is cached would keep its memory
        const AbiCompiled cp(g.Partitions()[0], {x, w}, {y}, e.engine());
        ASSERT_EQ(dnnl_success, cp.status());
        std::vector<float> a(16 * 16 * 32, 1), b(9 * 32 * 48, 0.5f), c(14 * 14 * 48);
        ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{0, a.data()}, {1, b.data()}}, {{2, c.data()}}));
        EXPECT_EQ(9 * 32 * 0.5f, c[0]);
        EXPECT_GT(user.allocated, 0);
        const long after = user.allocated;
        ASSERT_EQ(dnnl_success, cp.Run(e.stream(), {{0, a.data()}, {1, b.data()}}, {{2, c.data()}}));
        EXPECT_EQ(after, user.allocated) << "only the first execute needs memory";
    }
    EXPECT_EQ(user.allocated, user.freed);
    dnnl_graph_set_compiled_partition_cache_capacity(1024);
}

// libdnnl may give a later engine the address of one that is gone: its allocator must be gone with it.
TEST(AbiMemory, APlainEngineNeverGetsAnothersAllocator) {
    std::set<dnnl_engine_t> seen;
    for (int i = 0; i < 4; i++) {
        dnnl_engine_t e = UserEngine();
        EXPECT_TRUE(seen.insert(e).second) << "an address came back";
        dnnl_engine_destroy(e);
    }
    user.allocated = 0;
    AbiEngine plain;
    EXPECT_EQ(0u, seen.count(plain.engine()));
    const Lt lt = MakeLt(1, dnnl_f32, {16});
    dnnl_graph_tensor_t t = nullptr;
    ASSERT_EQ(dnnl_success, dnnl_graph_tensor_create(&t, &lt, plain.engine(), DNNL_MEMORY_ALLOCATE));
    EXPECT_EQ(0, user.allocated);
    dnnl_graph_tensor_destroy(t);
}

TEST(AbiMemory, ADefaultAllocatorIsAnAllocatorToo) {
    dnnl_graph_allocator_t a = nullptr;
    dnnl_engine_t engine = nullptr;
    ASSERT_EQ(dnnl_success, dnnl_graph_allocator_create(&a, nullptr, nullptr));
    ASSERT_EQ(dnnl_success, dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, a));
    ASSERT_EQ(dnnl_success, dnnl_graph_allocator_destroy(a));
    dnnl_engine_kind_t kind;
    ASSERT_EQ(dnnl_success, dnnl_engine_get_kind(engine, &kind));
    EXPECT_EQ(dnnl_cpu, kind);
    dnnl_engine_destroy(engine);
}

TEST(AbiMemory, ExecuteAllocatesNothing) {
    if (!ABI_COUNTS) GTEST_SKIP() << "the sanitizer has the allocator";
    const Int8MatMul net;
    AbiEngine e;
    AbiGraph g;
    net.AddTo(&g);
    const AbiCompiled cp(g.Partitions()[0], {net.src, net.weights}, {net.dst}, e.engine());
    ASSERT_EQ(dnnl_success, cp.status());
    std::vector<uint8_t> out(net.Expected().size());
    dnnl_graph_tensor_t t[3];
    const Lt lts[] = {cp.Query(1), cp.Query(2), cp.Query(7)};
    void *data[] = {const_cast<uint8_t *>(net.src_data.data()), const_cast<int8_t *>(net.weights_data.data()),
                    out.data()};
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(dnnl_success, dnnl_graph_tensor_create(&t[i], &lts[i], e.engine(), data[i]));
    const_dnnl_graph_tensor_t ins[] = {t[0], t[1]}, outs[] = {t[2]};
    dl_iterate_phdr(FindOurs, nullptr);
    ASSERT_GE(n_ours, 2);
    long calls[20];
    for (long &n : calls) {
        n_calls = 0;
        counting = true;
        const dnnl_status_t status = dnnl_graph_compiled_partition_execute(cp.get(), e.stream(), 2, ins, 1, outs);
        counting = false;
        n = n_calls;
        ASSERT_EQ(dnnl_success, status);
    }
    EXPECT_GT(calls[0], 0) << "the counter sees the first execute, which makes the state that later ones use";
    for (int i = 1; i < 20; i++)
        EXPECT_EQ(0, calls[i]) << "execute " << i;
    EXPECT_EQ(net.Expected(), out);
    for (dnnl_graph_tensor_t one : t)
        dnnl_graph_tensor_destroy(one);
}

} // namespace
} // namespace qdq_test
