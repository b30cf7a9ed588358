// Every function with every argument that it must refuse. The same calls go to libdnnl itself, in a process of their own, since
// some end it: where it answers, it must answer the same, unless the row says why not.
#include "dnnl_graph/abi_net.h"

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace qdq_test {
namespace {

constexpr int kCrashed = -1;

// What a call to libdnnl answers.
int Apart(const std::function<dnnl_status_t()> &call) {
    int fd[2];
    if (pipe(fd) != 0) return kCrashed;
    const pid_t pid = fork();
    if (pid == 0) {
        omp_set_num_threads(1); // the threads of the parent are not here
        alarm(60);
        close(STDERR_FILENO); // what a sanitizer would say of its end
        const int status = call();
        _exit(write(fd[1], &status, sizeof status) == static_cast<ssize_t>(sizeof status) ? 0 : 1);
    }
    close(fd[1]);
    int answer = kCrashed;
    if (read(fd[0], &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) answer = kCrashed;
    close(fd[0]);
    waitpid(pid, nullptr, 0);
    return answer;
}

// Objects of one library, all legal.
struct World {
    const AbiCalls &c;
    dnnl_engine_t engine = nullptr;
    dnnl_stream_t stream = nullptr;
    dnnl_graph_op_t op = nullptr, bad_op = nullptr;
    dnnl_graph_graph_t graph = nullptr, done = nullptr, filtered = nullptr;
    dnnl_graph_partition_t p = nullptr;
    dnnl_graph_compiled_partition_t empty = nullptr, cp = nullptr;
    dnnl_graph_tensor_t in_tensor = nullptr, out_tensor = nullptr;
    Lt in = MakeLt(0, dnnl_f32, {2, 3}), out = MakeLt(1, dnnl_f32, {2, 3});
    const Lt *in_list[1] = {&in}, *out_list[1] = {&out}, *null_list[1] = {nullptr};
    float x[6] = {-1, 2, -3, 4, -5, 6}, y[6] = {};
    dnnl_dims_t dims = {2, 3};
    size_t size = 0;
    uint8_t byte = 0;
    int number = 0;

    explicit World(const AbiCalls &calls) : c(calls) {
        dnnl_engine_create(&engine, dnnl_cpu, 0);
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
        c.op_create(&op, 7, dnnl_graph_op_relu, "relu");
        c.op_add_input(op, &in);
        c.op_add_output(op, &out);
        c.op_create(&bad_op, 8, dnnl_graph_op_convolution, "conv"); // nothing in it
        c.graph_create(&graph, dnnl_cpu);
        for (dnnl_graph_graph_t *g : {&done, &filtered}) {
            c.graph_create(g, dnnl_cpu);
            c.add_op(*g, op);
            c.graph_finalize(*g);
        }
        c.graph_filter(filtered, dnnl_graph_partition_policy_fusion);
        c.partition_create_with_op(&p, op, dnnl_cpu);
        c.compiled_partition_create(&empty, p);
        c.compiled_partition_create(&cp, p);
        c.partition_compile(p, cp, 1, in_list, 1, out_list, engine);
        c.tensor_create(&in_tensor, &in, engine, x);
        c.tensor_create(&out_tensor, &out, engine, y);
    }
    ~World() {
        c.tensor_destroy(in_tensor);
        c.tensor_destroy(out_tensor);
        c.compiled_partition_destroy(cp);
        c.compiled_partition_destroy(empty);
        c.partition_destroy(p);
        for (dnnl_graph_graph_t g : {graph, done, filtered})
            c.graph_destroy(g);
        c.op_destroy(op);
        c.op_destroy(bad_op);
        dnnl_stream_destroy(stream);
        dnnl_engine_destroy(engine);
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    dnnl_status_t Compile(dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t to, const Lt &i,
                          const Lt &o) {
        const Lt *is[] = {&i}, *os[] = {&o};
        return c.partition_compile(partition, to, 1, is, 1, os, engine);
    }
    dnnl_status_t Execute(const_dnnl_graph_tensor_t i, const_dnnl_graph_tensor_t o) {
        return c.compiled_partition_execute(cp, stream, 1, &i, 1, &o);
    }
    dnnl_status_t ExecuteWith(const Lt &i, void *data) {
        dnnl_graph_tensor_t t = nullptr;
        const dnnl_status_t made = c.tensor_create(&t, &i, engine, data);
        if (made != dnnl_success) return made;
        const dnnl_status_t status = Execute(t, out_tensor);
        c.tensor_destroy(t);
        return status;
    }
};

struct Case {
    const char *name;
    dnnl_status_t expected;
    std::function<dnnl_status_t(World &)> call;
    const char *differs = nullptr; // why libdnnl's answer is another one
};

constexpr dnnl_status_t kOk = dnnl_success, kArgs = dnnl_invalid_arguments, kGraph = dnnl_invalid_graph,
                        kOp = dnnl_invalid_graph_op, kNone = dnnl_unimplemented;

// A value outside of an enum.
template <class Enum> Enum Outside(int value) {
    Enum e;
    memcpy(&e, &value, sizeof e);
    return e;
}

const std::vector<Case> &Cases() {
    static const char *const kChecked = "libdnnl does not look at it";
    static const char *const kDocumented = "the documentation says that it fails";
    static const std::vector<Case> cases = {
        // allocators and engines
        {"allocator_create null", kArgs, [](World &w) { return w.c.allocator_create(nullptr, nullptr, nullptr); }},
        {"allocator_destroy null", kArgs, [](World &w) { return w.c.allocator_destroy(nullptr); }},
        {"engine null", kArgs,
         [](World &w) {
             dnnl_graph_allocator_t a = nullptr;
             w.c.allocator_create(&a, nullptr, nullptr);
             const dnnl_status_t status = w.c.make_engine_with_allocator(nullptr, dnnl_cpu, 0, a);
             w.c.allocator_destroy(a);
             return status;
         }},
        {"engine without allocator", kArgs,
         [](World &w) {
             dnnl_engine_t e = nullptr;
             return w.c.make_engine_with_allocator(&e, dnnl_cpu, 0, nullptr);
         }},
        {"engine number 1", kArgs,
         [](World &w) {
             dnnl_graph_allocator_t a = nullptr;
             dnnl_engine_t e = nullptr;
             w.c.allocator_create(&a, nullptr, nullptr);
             const dnnl_status_t status = w.c.make_engine_with_allocator(&e, dnnl_cpu, 1, a);
             w.c.allocator_destroy(a);
             return status;
         }},

        // logical tensors
        {"lt init null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init(nullptr, 0, dnnl_f32, 2, dnnl_graph_layout_type_any,
                                            dnnl_graph_tensor_property_undef);
         }},
        {"lt init rank 13", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init(&w.in, 0, dnnl_f32, 13, dnnl_graph_layout_type_any,
                                            dnnl_graph_tensor_property_undef);
         }},
        {"lt init layout 9", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init(&w.in, 0, dnnl_f32, 2, Outside<dnnl_graph_layout_type_t>(9),
                                            dnnl_graph_tensor_property_undef);
         },
         kChecked},
        {"lt init property 9", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init(&w.in, 0, dnnl_f32, 2, dnnl_graph_layout_type_any,
                                            Outside<dnnl_graph_tensor_property_t>(9));
         },
         kChecked},
        {"lt dims null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_dims(&w.in, 0, dnnl_f32, 2, nullptr, dnnl_graph_layout_type_any,
                                                      dnnl_graph_tensor_property_undef);
         }},
        {"lt dims lt null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_dims(nullptr, 0, dnnl_f32, 2, w.dims, dnnl_graph_layout_type_any,
                                                      dnnl_graph_tensor_property_undef);
         }},
        {"lt dims rank -1", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_dims(&w.in, 0, dnnl_f32, -1, w.dims, dnnl_graph_layout_type_any,
                                                      dnnl_graph_tensor_property_undef);
         }},
        {"lt dims rank 13", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_dims(&w.in, 0, dnnl_f32, 13, w.dims, dnnl_graph_layout_type_any,
                                                      dnnl_graph_tensor_property_undef);
         },
         kChecked},
        {"lt strides null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_strides(&w.in, 0, dnnl_f32, 2, w.dims, nullptr,
                                                         dnnl_graph_tensor_property_undef);
         }},
        {"lt strides dims null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_strides(&w.in, 0, dnnl_f32, 2, nullptr, w.dims,
                                                         dnnl_graph_tensor_property_undef);
         }},
        {"lt strides lt null", kArgs,
         [](World &w) {
             return w.c.logical_tensor_init_with_strides(nullptr, 0, dnnl_f32, 2, w.dims, w.dims,
                                                         dnnl_graph_tensor_property_undef);
         }},
        {"lt size null", kArgs, [](World &w) { return w.c.logical_tensor_get_mem_size(nullptr, &w.size); }},
        {"lt size to null", kArgs, [](World &w) { return w.c.logical_tensor_get_mem_size(&w.in, nullptr); }},
        {"lt equal null", kArgs, [](World &w) { return w.c.logical_tensor_is_equal(nullptr, &w.in, &w.byte); }},
        {"lt equal null 2", kArgs, [](World &w) { return w.c.logical_tensor_is_equal(&w.in, nullptr, &w.byte); }},
        {"lt equal to null", kArgs, [](World &w) { return w.c.logical_tensor_is_equal(&w.in, &w.in, nullptr); }},

        // tensors
        {"tensor null", kArgs, [](World &w) { return w.c.tensor_create(nullptr, &w.in, w.engine, w.x); }},
        {"tensor lt null", kArgs,
         [](World &w) {
             dnnl_graph_tensor_t t = nullptr;
             return w.c.tensor_create(&t, nullptr, w.engine, w.x);
         }},
        {"tensor engine null", kArgs,
         [](World &w) {
             dnnl_graph_tensor_t t = nullptr;
             return w.c.tensor_create(&t, &w.in, nullptr, w.x);
         }},
        {"tensor of no size", kArgs,
         [](World &w) {
             dnnl_graph_tensor_t t = nullptr;
             const Lt lt = UnknownLt(1, dnnl_f32);
             return w.c.tensor_create(&t, &lt, w.engine, DNNL_MEMORY_ALLOCATE);
         },
         kChecked},
        {"tensor destroy null", kOk, [](World &w) { return w.c.tensor_destroy(nullptr); }},
        {"tensor handle null", kArgs,
         [](World &w) {
             void *data;
             return w.c.tensor_get_data_handle(nullptr, &data);
         }},
        {"tensor handle to null", kArgs, [](World &w) { return w.c.tensor_get_data_handle(w.in_tensor, nullptr); }},
        {"tensor set null", kArgs, [](World &w) { return w.c.tensor_set_data_handle(nullptr, w.x); }},
        {"tensor engine of null", kArgs,
         [](World &w) {
             dnnl_engine_t e;
             return w.c.tensor_get_engine(nullptr, &e);
         }},
        {"tensor engine to null", kArgs, [](World &w) { return w.c.tensor_get_engine(w.in_tensor, nullptr); }},
        {"tensor lt of null", kArgs, [](World &w) { return w.c.tensor_get_logical_tensor(nullptr, &w.in); }},
        {"tensor lt to null", kArgs, [](World &w) { return w.c.tensor_get_logical_tensor(w.in_tensor, nullptr); }},

        // ops
        {"op null", kArgs, [](World &w) { return w.c.op_create(nullptr, 1, dnnl_graph_op_add, "x"); }},
        {"op name null", kArgs,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             return w.c.op_create(&op, 1, dnnl_graph_op_add, nullptr);
         }},
        {"op destroy null", kOk, [](World &w) { return w.c.op_destroy(nullptr); }},
        {"op input of null", kArgs, [](World &w) { return w.c.op_add_input(nullptr, &w.in); }},
        {"op input null", kArgs, [](World &w) { return w.c.op_add_input(w.op, nullptr); }},
        {"op output of null", kArgs, [](World &w) { return w.c.op_add_output(nullptr, &w.in); }},
        {"op output null", kArgs, [](World &w) { return w.c.op_add_output(w.op, nullptr); }},
        {"op id of null", kArgs, [](World &w) { return w.c.op_get_id(nullptr, &w.size); }},
        {"op id to null", kArgs, [](World &w) { return w.c.op_get_id(w.op, nullptr); }},
        {"op kind of null", kArgs,
         [](World &w) {
             dnnl_graph_op_kind_t kind;
             return w.c.op_get_kind(nullptr, &kind);
         }},
        {"op kind to null", kArgs, [](World &w) { return w.c.op_get_kind(w.op, nullptr); }},
        {"attr f32 of null", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(nullptr, dnnl_graph_op_attr_alpha, w.x, 1); }},
        {"attr f32 null", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_alpha, nullptr, 1); }},
        {"attr f32[] null", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_scales, nullptr, 1); }},
        {"attr f32 of s64", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_axis, w.x, 1); }, kChecked},
        {"attr f32 undef", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_undef, w.x, 1); }, kChecked},
        {"attr f32 end", kArgs, [](World &w) { return w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_end, w.x, 1); }, kChecked},
        {"attr f32 0x7777", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, Outside<dnnl_graph_op_attr_t>(0x7777), w.x, 1); }, kChecked},
        {"attr f32 -1", kArgs,
         [](World &w) { return w.c.op_set_attr_f32(w.op, Outside<dnnl_graph_op_attr_t>(-1), w.x, 1); }, kChecked},
        {"attr s64 of null", kArgs,
         [](World &w) { return w.c.op_set_attr_s64(nullptr, dnnl_graph_op_attr_axis, w.dims, 1); }},
        {"attr s64 null", kArgs,
         [](World &w) { return w.c.op_set_attr_s64(w.op, dnnl_graph_op_attr_axis, nullptr, 1); }},
        {"attr s64[] null", kArgs,
         [](World &w) { return w.c.op_set_attr_s64(w.op, dnnl_graph_op_attr_axes, nullptr, 1); }},
        {"attr s64 of string", kArgs,
         [](World &w) { return w.c.op_set_attr_s64(w.op, dnnl_graph_op_attr_qtype, w.dims, 1); }, kChecked},
        {"attr bool of null", kArgs,
         [](World &w) { return w.c.op_set_attr_bool(nullptr, dnnl_graph_op_attr_keep_dims, &w.byte, 1); }},
        {"attr bool null", kArgs,
         [](World &w) { return w.c.op_set_attr_bool(w.op, dnnl_graph_op_attr_keep_dims, nullptr, 1); }},
        {"attr bool two", kArgs,
         [](World &w) { return w.c.op_set_attr_bool(w.op, dnnl_graph_op_attr_keep_dims, &w.byte, 2); }},
        {"attr bool of f32", kArgs,
         [](World &w) { return w.c.op_set_attr_bool(w.op, dnnl_graph_op_attr_alpha, &w.byte, 1); }, kChecked},
        {"attr str of null", kArgs,
         [](World &w) { return w.c.op_set_attr_str(nullptr, dnnl_graph_op_attr_qtype, "x", 1); }},
        {"attr str null", kArgs,
         [](World &w) { return w.c.op_set_attr_str(w.op, dnnl_graph_op_attr_qtype, nullptr, 1); }},
        {"attr str empty", kArgs,
         [](World &w) { return w.c.op_set_attr_str(w.op, dnnl_graph_op_attr_qtype, "", 0); }},
        {"attr str of bool", kArgs,
         [](World &w) { return w.c.op_set_attr_str(w.op, dnnl_graph_op_attr_use_dst, "x", 1); }, kChecked},

        // graphs
        {"graph null", kArgs, [](World &w) { return w.c.graph_create(nullptr, dnnl_cpu); }},
        {"graph mode null", kArgs,
         [](World &w) { return w.c.graph_create_with_fpmath_mode(nullptr, dnnl_cpu, dnnl_fpmath_mode_strict); }},
        {"graph mode 77", kArgs,
         [](World &w) {
             dnnl_graph_graph_t g = nullptr;
             return w.c.graph_create_with_fpmath_mode(&g, dnnl_cpu, Outside<dnnl_fpmath_mode_t>(77));
         },
         kChecked},
        {"graph destroy null", kOk, [](World &w) { return w.c.graph_destroy(nullptr); }},
        {"mode of null", kArgs, [](World &w) { return w.c.graph_set_fpmath_mode(nullptr, dnnl_fpmath_mode_bf16, 0); }},
        {"mode 77", kArgs,
         [](World &w) { return w.c.graph_set_fpmath_mode(w.graph, Outside<dnnl_fpmath_mode_t>(77), 0); }, kChecked},
        {"mode of a finalized graph", kGraph,
         [](World &w) { return w.c.graph_set_fpmath_mode(w.done, dnnl_fpmath_mode_bf16, 0); }},
        {"get mode of null", kArgs,
         [](World &w) {
             dnnl_fpmath_mode_t mode;
             return w.c.graph_get_fpmath_mode(nullptr, &mode, &w.number);
         }},
        {"add to null", kArgs, [](World &w) { return w.c.add_op(nullptr, w.op); }},
        {"add null", kArgs, [](World &w) { return w.c.add_op(w.graph, nullptr); }},
        {"add a bad op", kOp, [](World &w) { return w.c.add_op(w.graph, w.bad_op); }},
        {"add to a finalized graph", kGraph, [](World &w) { return w.c.add_op(w.done, w.op); }},
        {"add twice", kOp,
         [](World &w) {
             const dnnl_status_t first = w.c.add_op(w.graph, w.op);
             return first == kOk ? w.c.add_op(w.graph, w.op) : first;
         },
         kDocumented},
        {"add a kind that is none", kOp,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             w.c.op_create(&op, 1, Outside<dnnl_graph_op_kind_t>(999), "x");
             w.c.op_add_input(op, &w.in);
             const dnnl_status_t status = w.c.add_op(w.graph, op);
             w.c.op_destroy(op);
             return status;
         },
         kDocumented},
        {"add with an attribute of another op", kOp,
         [](World &w) {
             w.c.op_set_attr_f32(w.op, dnnl_graph_op_attr_alpha, w.x, 1);
             return w.c.add_op(w.graph, w.op);
         }},
        {"finalize null", kArgs, [](World &w) { return w.c.graph_finalize(nullptr); }},
        {"finalize twice", kOk, [](World &w) { return w.c.graph_finalize(w.done); }},
        {"finalize nothing", kOk, [](World &w) { return w.c.graph_finalize(w.graph); }},
        {"finalize a cycle", kGraph,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             w.c.op_create(&op, 9, dnnl_graph_op_relu, "back");
             w.c.op_add_input(op, &w.out);
             w.c.op_add_output(op, &w.in);
             w.c.add_op(w.graph, w.op);
             w.c.add_op(w.graph, op);
             w.c.op_destroy(op);
             return w.c.graph_finalize(w.graph);
         }},
        {"finalize one id for two tensors", kGraph,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             const Lt other = MakeLt(1, dnnl_f32, {3, 2}), end = MakeLt(2, dnnl_f32, {3, 2});
             w.c.op_create(&op, 9, dnnl_graph_op_relu, "next");
             w.c.op_add_input(op, &other);
             w.c.op_add_output(op, &end);
             w.c.add_op(w.graph, w.op);
             w.c.add_op(w.graph, op);
             w.c.op_destroy(op);
             return w.c.graph_finalize(w.graph);
         }},
        {"finalize two layouts of one tensor", kGraph,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             const Lt other = MakeLt(1, dnnl_f32, {2, 3}, dnnl_graph_layout_type_any), end = UnknownLt(2, dnnl_f32);
             w.c.op_create(&op, 9, dnnl_graph_op_relu, "next");
             w.c.op_add_input(op, &other);
             w.c.op_add_output(op, &end);
             w.c.add_op(w.graph, w.op);
             w.c.add_op(w.graph, op);
             w.c.op_destroy(op);
             return w.c.graph_finalize(w.graph);
         }},
        {"is finalized of null", kArgs, [](World &w) { return w.c.graph_is_finalized(nullptr, &w.byte); }},
        {"is finalized to null", kArgs, [](World &w) { return w.c.graph_is_finalized(w.graph, nullptr); }},
        {"filter null", kGraph,
         [](World &w) { return w.c.graph_filter(nullptr, dnnl_graph_partition_policy_fusion); }},
        {"filter before finalize", kGraph,
         [](World &w) { return w.c.graph_filter(w.graph, dnnl_graph_partition_policy_fusion); }},
        {"filter policy 77", kArgs,
         [](World &w) { return w.c.graph_filter(w.done, Outside<dnnl_graph_partition_policy_t>(77)); }, kChecked},
        {"number of null", kGraph, [](World &w) { return w.c.graph_get_partition_num(nullptr, &w.size); }},
        {"number to null", kArgs, [](World &w) { return w.c.graph_get_partition_num(w.filtered, nullptr); }},
        {"partitions of null", kGraph,
         [](World &w) {
             dnnl_graph_partition_t p[2];
             return w.c.graph_get_partitions(nullptr, 1, p);
         }},
        {"partitions none", kGraph,
         [](World &w) {
             dnnl_graph_partition_t p[2];
             return w.c.graph_get_partitions(w.filtered, 0, p);
         }},
        {"partitions too many", kArgs,
         [](World &w) {
             dnnl_graph_partition_t p[2];
             return w.c.graph_get_partitions(w.filtered, 2, p);
         },
         kChecked},
        {"partitions to null", kGraph, [](World &w) { return w.c.graph_get_partitions(w.filtered, 1, nullptr); }},

        // partitions
        {"partition null", kArgs, [](World &w) { return w.c.partition_create_with_op(nullptr, w.op, dnnl_cpu); }},
        {"partition of null", kArgs,
         [](World &w) {
             dnnl_graph_partition_t p = nullptr;
             return w.c.partition_create_with_op(&p, nullptr, dnnl_cpu);
         }},
        {"partition of a bad op", kOp,
         [](World &w) {
             dnnl_graph_partition_t p = nullptr;
             return w.c.partition_create_with_op(&p, w.bad_op, dnnl_cpu);
         }},
        {"partition destroy null", kOk, [](World &w) { return w.c.partition_destroy(nullptr); }},
        {"op num of null", kArgs, [](World &w) { return w.c.partition_get_op_num(nullptr, &w.size); }},
        {"op num to null", kArgs, [](World &w) { return w.c.partition_get_op_num(w.p, nullptr); }},
        {"ops of null", kArgs, [](World &w) { return w.c.partition_get_ops(nullptr, 1, &w.size); }},
        {"ops to null", kArgs, [](World &w) { return w.c.partition_get_ops(w.p, 1, nullptr); }},
        {"ops two", kArgs, [](World &w) { return w.c.partition_get_ops(w.p, 2, &w.size); }},
        {"id of null", kArgs, [](World &w) { return w.c.partition_get_id(nullptr, &w.size); }},
        {"id to null", kArgs, [](World &w) { return w.c.partition_get_id(w.p, nullptr); }},
        {"input num of null", kArgs, [](World &w) { return w.c.partition_get_input_ports_num(nullptr, &w.size); }},
        {"input num to null", kArgs, [](World &w) { return w.c.partition_get_input_ports_num(w.p, nullptr); }},
        {"inputs of null", kArgs, [](World &w) { return w.c.partition_get_input_ports(nullptr, 1, &w.in); }},
        {"inputs to null", kArgs, [](World &w) { return w.c.partition_get_input_ports(w.p, 1, nullptr); }},
        {"inputs none", kArgs, [](World &w) { return w.c.partition_get_input_ports(w.p, 0, &w.in); }},
        {"output num of null", kArgs, [](World &w) { return w.c.partition_get_output_ports_num(nullptr, &w.size); }},
        {"output num to null", kArgs, [](World &w) { return w.c.partition_get_output_ports_num(w.p, nullptr); }},
        {"outputs of null", kArgs, [](World &w) { return w.c.partition_get_output_ports(nullptr, 1, &w.in); }},
        {"outputs to null", kArgs, [](World &w) { return w.c.partition_get_output_ports(w.p, 1, nullptr); }},
        {"outputs none", kArgs, [](World &w) { return w.c.partition_get_output_ports(w.p, 0, &w.in); }},
        {"supported of null", kArgs, [](World &w) { return w.c.partition_is_supported(nullptr, &w.byte); }},
        {"supported to null", kArgs, [](World &w) { return w.c.partition_is_supported(w.p, nullptr); }},
        {"kind of null", kArgs,
         [](World &w) {
             dnnl_engine_kind_t kind;
             return w.c.partition_get_engine_kind(nullptr, &kind);
         }},
        {"kind to null", kArgs, [](World &w) { return w.c.partition_get_engine_kind(w.p, nullptr); }},

        // compile
        {"compile null", kArgs,
         [](World &w) { return w.c.partition_compile(nullptr, w.empty, 1, w.in_list, 1, w.out_list, w.engine); }},
        {"compile to null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, nullptr, 1, w.in_list, 1, w.out_list, w.engine); }},
        {"compile inputs null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, nullptr, 1, w.out_list, w.engine); }},
        {"compile outputs null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, w.in_list, 1, nullptr, w.engine); }},
        {"compile input null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, w.null_list, 1, w.out_list, w.engine); }},
        {"compile output null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, w.in_list, 1, w.null_list, w.engine); }},
        {"compile engine null", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, w.in_list, 1, w.out_list, nullptr); }},
        {"compile without inputs", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 0, w.in_list, 1, w.out_list, w.engine); }},
        {"compile without outputs", kArgs,
         [](World &w) { return w.c.partition_compile(w.p, w.empty, 1, w.in_list, 0, w.out_list, w.engine); }},
        {"compile another input", kArgs,
         [](World &w) { return w.Compile(w.p, w.empty, MakeLt(5, dnnl_f32, {2, 3}), w.out); }},
        {"compile input of no type", kArgs,
         [](World &w) { return w.Compile(w.p, w.empty, MakeLt(0, dnnl_data_type_undef, {2, 3}), w.out); }},
        {"compile input of no layout", kArgs,
         [](World &w) {
             return w.Compile(w.p, w.empty, MakeLt(0, dnnl_f32, {2, 3}, dnnl_graph_layout_type_undef), w.out);
         }},
        {"compile input of no shape", kArgs,
         [](World &w) { return w.Compile(w.p, w.empty, UnknownLt(0, dnnl_f32), w.out); }},
        {"compile an unknown dim", kArgs,
         [](World &w) { return w.Compile(w.p, w.empty, MakeLt(0, dnnl_f32, {2, DNNL_GRAPH_UNKNOWN_DIM}), w.out); }},
        {"compile an output of another shape", dnnl_invalid_shape,
         [](World &w) { return w.Compile(w.p, w.empty, w.in, MakeLt(1, dnnl_f32, {3, 2})); }},
        {"compile an output of no layout", kArgs,
         [](World &w) {
             return w.Compile(w.p, w.empty, w.in, MakeLt(1, dnnl_f32, {2, 3}, dnnl_graph_layout_type_undef));
         }},
        {"compile a Wildcard", kArgs,
         [](World &w) {
             dnnl_graph_op_t op = nullptr;
             dnnl_graph_partition_t p = nullptr;
             w.c.op_create(&op, 1, dnnl_graph_op_wildcard, "x");
             w.c.op_add_input(op, &w.in);
             w.c.op_add_output(op, &w.out);
             w.c.partition_create_with_op(&p, op, dnnl_cpu);
             const dnnl_status_t status = w.Compile(p, w.empty, w.in, w.out);
             w.c.partition_destroy(p);
             w.c.op_destroy(op);
             return status;
         }},
        {"compiled null", kArgs, [](World &w) { return w.c.compiled_partition_create(nullptr, w.p); }},
        {"compiled of null", kArgs,
         [](World &w) {
             dnnl_graph_compiled_partition_t cp = nullptr;
             return w.c.compiled_partition_create(&cp, nullptr);
         }},
        {"compiled destroy null", kOk, [](World &w) { return w.c.compiled_partition_destroy(nullptr); }},
        {"query of null", kArgs,
         [](World &w) { return w.c.compiled_partition_query_logical_tensor(nullptr, 0, &w.in); }},
        {"query to null", kArgs,
         [](World &w) { return w.c.compiled_partition_query_logical_tensor(w.cp, 0, nullptr); }},
        {"query what it has not", kArgs,
         [](World &w) { return w.c.compiled_partition_query_logical_tensor(w.cp, 77, &w.in); }, kDocumented},
        {"query before compile", kArgs,
         [](World &w) { return w.c.compiled_partition_query_logical_tensor(w.empty, 0, &w.in); }, kDocumented},
        {"in-place of null", kArgs,
         [](World &w) {
             const dnnl_graph_inplace_pair_t *pairs;
             return w.c.compiled_partition_get_inplace_ports(nullptr, &w.size, &pairs);
         }},
        {"in-place number to null", kArgs,
         [](World &w) {
             const dnnl_graph_inplace_pair_t *pairs;
             return w.c.compiled_partition_get_inplace_ports(w.cp, nullptr, &pairs);
         }},
        {"in-place to null", kArgs,
         [](World &w) { return w.c.compiled_partition_get_inplace_ports(w.cp, &w.size, nullptr); }},

        // execute
        {"execute", kOk, [](World &w) { return w.Execute(w.in_tensor, w.out_tensor); }},
        {"execute null", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t in = w.in_tensor, out = w.out_tensor;
             return w.c.compiled_partition_execute(nullptr, w.stream, 1, &in, 1, &out);
         }},
        {"execute stream null", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t in = w.in_tensor, out = w.out_tensor;
             return w.c.compiled_partition_execute(w.cp, nullptr, 1, &in, 1, &out);
         }},
        {"execute inputs null", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t out = w.out_tensor;
             return w.c.compiled_partition_execute(w.cp, w.stream, 1, nullptr, 1, &out);
         }},
        {"execute outputs null", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t in = w.in_tensor;
             return w.c.compiled_partition_execute(w.cp, w.stream, 1, &in, 1, nullptr);
         }},
        {"execute input null", kArgs, [](World &w) { return w.Execute(nullptr, w.out_tensor); }, kChecked},
        {"execute output null", kArgs, [](World &w) { return w.Execute(w.in_tensor, nullptr); }, kChecked},
        {"execute what is not compiled", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t in = w.in_tensor, out = w.out_tensor;
             return w.c.compiled_partition_execute(w.empty, w.stream, 1, &in, 1, &out);
         },
         kChecked},
        {"execute too few", kArgs,
         [](World &w) {
             const_dnnl_graph_tensor_t in = w.in_tensor, out = w.out_tensor;
             return w.c.compiled_partition_execute(w.cp, w.stream, 0, &in, 1, &out);
         },
         kChecked},
        {"execute without a buffer", kArgs, [](World &w) { return w.ExecuteWith(w.in, nullptr); }, kChecked},
        {"execute another tensor", kArgs,
         [](World &w) { return w.ExecuteWith(MakeLt(5, dnnl_f32, {2, 3}), w.x); }, kChecked},
        {"execute a smaller tensor", kArgs,
         [](World &w) { return w.ExecuteWith(MakeLt(0, dnnl_f32, {2, 2}), w.x); }, kChecked},
        {"execute another type", kArgs,
         [](World &w) { return w.ExecuteWith(MakeLt(0, dnnl_bf16, {2, 3}), w.x); }, kChecked},
        {"execute other strides", kArgs,
         [](World &w) { return w.ExecuteWith(MakeStrided(0, dnnl_f32, {2, 3}, {1, 2}), w.x); }, kChecked},
        {"execute another shape of the same bytes", kOk,
         [](World &w) { return w.ExecuteWith(MakeLt(0, dnnl_f32, {3, 2}), w.x); }},
        {"execute a tensor that says nothing", kOk, [](World &w) { return w.ExecuteWith(UnknownLt(0, dnnl_f32), w.x); }},

        // caches
        {"capacity to null", kArgs, [](World &w) { return w.c.get_compiled_partition_cache_capacity(nullptr); }},
        {"capacity -1", kArgs, [](World &w) { return w.c.set_compiled_partition_cache_capacity(-1); }},
        {"constant flag -1", kArgs, [](World &w) { return w.c.set_constant_tensor_cache(-1); }},
        {"constant flag to null", kArgs, [](World &w) { return w.c.get_constant_tensor_cache(nullptr); }},
        {"constant capacity to null", kArgs,
         [](World &w) { return w.c.get_constant_tensor_cache_capacity(dnnl_cpu, nullptr); }},
        {"constant capacity of any", kArgs,
         [](World &w) { return w.c.set_constant_tensor_cache_capacity(dnnl_any_engine, 1); }, kDocumented},
        {"get constant capacity of any", kArgs,
         [](World &w) { return w.c.get_constant_tensor_cache_capacity(dnnl_any_engine, &w.size); }, kDocumented},

        // SYCL
        {"sycl allocator", kNone,
         [](World &w) { return w.c.sycl_interop_allocator_create(nullptr, nullptr, nullptr); }},
        {"sycl engine", kNone,
         [](World &w) { return w.c.sycl_interop_make_engine_with_allocator(nullptr, nullptr, nullptr, nullptr); }},
        {"sycl execute", kNone,
         [](World &w) {
             return w.c.sycl_interop_compiled_partition_execute(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr,
                                                                nullptr);
         }},
    };
    return cases;
}

class AbiArgs : public testing::TestWithParam<size_t> {};

TEST_P(AbiArgs, IsRefused) {
    const Case &c = Cases()[GetParam()];
    World ours(Ours());
    EXPECT_EQ(c.expected, c.call(ours)) << c.name;
    const int upstream = Apart([&c] {
        World world(Upstream());
        return c.call(world);
    });
    if (c.differs != nullptr) {
        EXPECT_NE(c.expected, upstream) << c.name << ": no difference: " << c.differs;
    } else if (upstream != kCrashed) {
        EXPECT_EQ(c.expected, upstream) << c.name << ": libdnnl answers otherwise";
    }
}

std::string NameOf(const testing::TestParamInfo<size_t> &info) {
    std::string name = std::to_string(info.param) + "_" + Cases()[info.param].name;
    for (char &ch : name)
        if (!isalnum(static_cast<unsigned char>(ch))) ch = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, AbiArgs, testing::Range<size_t>(0, Cases().size()), NameOf);

// Every function of the interface is in the table, ours and upstream's, and they are two.
TEST(AbiTable, IsCompleteAndOurs) {
#define ABI_CHECK(name)                                                                                                \
    EXPECT_NE(nullptr, Upstream().name) << #name;                                                                      \
    EXPECT_NE(Ours().name, Upstream().name) << #name;                                                                  \
    EXPECT_NE(std::string::npos, FileOf(Ours().name).find("qdq_dnnl_graph"))                                           \
        << #name << " is of " << FileOf(Ours().name);
    ABI_CALLS(ABI_CHECK)
#undef ABI_CHECK
}

} // namespace
} // namespace qdq_test
