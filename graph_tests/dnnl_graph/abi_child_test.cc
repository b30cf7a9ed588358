// What the environment turns on is read once per process: these tests run this program again, with a variable set.
#include "dnnl_graph/abi_net.h"

#include <qdq/qdq.h>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace qdq_test {
namespace {

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "qdq_abi_XXXXXX").string();
        if (mkdtemp(name.data()) != nullptr) path = name;
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() {
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
};

// Run one disabled test of this program in a folder; what it printed.
std::string Child(const std::string &environment, const std::string &test, const Folder &folder) {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || folder.path.empty()) return "";
    const std::string command = "cd '" + folder.path.string() + "' && " + environment + " '" + self +
                                "' --gtest_also_run_disabled_tests --gtest_filter=AbiChild.DISABLED_" + test + " 2>&1";
    FILE *pipe = popen(command.c_str(), "r");
    std::string out;
    std::array<char, 4096> piece;
    while (pipe != nullptr && fgets(piece.data(), piece.size(), pipe) != nullptr)
        out += piece.data();
    EXPECT_EQ(0, pipe == nullptr ? 1 : pclose(pipe)) << out;
    return out;
}

std::vector<std::string> FilesIn(const Folder &folder, const std::string &pattern) {
    std::vector<std::string> files;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        if (std::regex_match(entry.path().filename().string(), std::regex(pattern)))
            files.push_back(entry.path().string());
    return files;
}

std::string TextOf(const std::string &path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Odd scales, a name to be escaped, an attribute of every type.
struct OddNet {
    static constexpr float kScale = 0.1f, kAlpha = 1.0f / 3;
    Lt src = MakeLt(1, dnnl_u8, {2, 3, 4}), dst = MakeLt(5, dnnl_f32, {2, 4});
    std::vector<uint8_t> data = std::vector<uint8_t>(24);
    std::vector<float> out = std::vector<float>(8);

    void Run() {
        const Lt x = MakeLt(2, dnnl_f32, {2, 3, 4}), y = MakeLt(3, dnnl_f32, {2, 3, 4}),
                 z = MakeLt(4, dnnl_f32, {2, 4});
        for (size_t i = 0; i < data.size(); i++)
            data[i] = static_cast<uint8_t>(i * 9);
        AbiEngine e;
        AbiGraph g;
        g.Add(AbiOp(10, dnnl_graph_op_dequantize, {src}, {x})
                  .S(dnnl_graph_op_attr_qtype, "per_channel")
                  .I(dnnl_graph_op_attr_axis, 1)
                  .Fs(dnnl_graph_op_attr_scales, {kScale, kScale / 3, 1e-7f})
                  .Is(dnnl_graph_op_attr_zps, {100, 3, 0}));
        g.Add(AbiOp(11, dnnl_graph_op_leaky_relu, {x}, {y}).F(dnnl_graph_op_attr_alpha, kAlpha));
        g.Add(AbiOp(12, dnnl_graph_op_reduce_sum, {y}, {z})
                  .Is(dnnl_graph_op_attr_axes, {1})
                  .B(dnnl_graph_op_attr_keep_dims, false));
        g.Add(AbiOp(13, dnnl_graph_op_abs, {z}, {dst}));
        std::map<size_t, std::vector<float>> buffers;
        for (dnnl_graph_partition_t p : g.Partitions()) {
            size_t n_in = 0, n_out = 0;
            dnnl_graph_partition_get_input_ports_num(p, &n_in);
            dnnl_graph_partition_get_output_ports_num(p, &n_out);
            std::vector<Lt> in(n_in), out_lts(n_out);
            ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_input_ports(p, n_in, in.data()));
            ASSERT_EQ(dnnl_success, dnnl_graph_partition_get_output_ports(p, n_out, out_lts.data()));
            const AbiCompiled cp(p, in, out_lts, e.engine());
            ASSERT_EQ(dnnl_success, cp.status());
            std::vector<std::pair<size_t, void *>> ins, outs;
            for (const Lt &lt : in)
                ins.emplace_back(lt.id, lt.id == 1 ? static_cast<void *>(data.data()) : buffers[lt.id].data());
            for (const Lt &lt : out_lts) {
                buffers[lt.id].resize(24);
                outs.emplace_back(lt.id, lt.id == 5 ? static_cast<void *>(out.data()) : buffers[lt.id].data());
            }
            ASSERT_EQ(dnnl_success, cp.Run(e.stream(), ins, outs));
        }
    }
};

TEST(AbiChild, DISABLED_Odd) {
    OddNet().Run();
}

TEST(AbiChild, DISABLED_Failure) {
    const Lt x = MakeLt(1, dnnl_f32, {2});
    AbiGraph g;
    const AbiOp op(1, dnnl_graph_op_matmul, {x}, {x});
    EXPECT_EQ(dnnl_invalid_graph_op, dnnl_graph_add_op(g.get(), op.get()));
}

TEST(AbiDump, AGraphComesBackAsItWas) {
    Folder folder;
    Child("ONEDNN_GRAPH_DUMP=graph", "Odd", folder);
    const auto files = FilesIn(folder, "^graph-[0-9]+\\.json$");
    ASSERT_EQ(1u, files.size());
    const std::string text = TextOf(files[0]);
    EXPECT_NE(std::string::npos, text.find("0.100000001")) << "floats with all their digits: " << text;
    EXPECT_NE(std::string::npos, text.find("0.333333343"));
    EXPECT_NE(std::string::npos, text.find("\"input_ports\": [1]"));
    EXPECT_NE(std::string::npos, text.find("\"output_ports\": [5]"));

    qdq_error err = {};
    qdq_graph *graph = nullptr;
    ASSERT_EQ(QDQ_OK, qdq_json_load_file(files[0].c_str(), nullptr, &graph, &err)) << err.text;
    ASSERT_EQ(QDQ_OK, qdq_graph_finalize(graph, &err)) << err.text;
    ASSERT_EQ(4u, qdq_graph_n_ops(graph));
    OddNet net;
    net.Run();
    std::vector<float> out(8);
    qdq_tensor in_tensor = {}, out_tensor = {};
    ASSERT_EQ(QDQ_OK, qdq_graph_input_desc(graph, 0, &in_tensor.desc, nullptr, nullptr));
    ASSERT_EQ(QDQ_OK, qdq_graph_output_desc(graph, 0, &out_tensor.desc, nullptr, nullptr));
    in_tensor.data = net.data.data();
    out_tensor.data = out.data();
    ASSERT_EQ(QDQ_OK, qdq_graph_run_reference(graph, &in_tensor, 1, &out_tensor, 1, &err)) << err.text;
    for (size_t i = 0; i < out.size(); i++)
        EXPECT_NEAR(out[i], net.out[i], 1e-6f * std::fabs(out[i]));
    qdq_graph_destroy(&graph);
}

TEST(AbiDump, PartitionsAreWrittenAsTheyWereCompiled) {
    Folder folder;
    Child("ONEDNN_GRAPH_DUMP=subgraph", "Odd", folder);
    const auto files = FilesIn(folder, "^graph-[0-9]+-[0-9]+\\.json$");
    ASSERT_GE(files.size(), 1u);
    EXPECT_TRUE(FilesIn(folder, "^graph-[0-9]+\\.json$").empty());
    size_t n_ops = 0;
    for (const std::string &file : files) {
        qdq_error err = {};
        qdq_graph *graph = nullptr;
        ASSERT_EQ(QDQ_OK, qdq_json_load_file(file.c_str(), nullptr, &graph, &err)) << err.text;
        ASSERT_EQ(QDQ_OK, qdq_graph_finalize(graph, &err)) << err.text;
        n_ops += qdq_graph_n_ops(graph);
        qdq_graph_destroy(&graph);
    }
    EXPECT_EQ(4u, n_ops);
}

TEST(AbiDump, NothingIsWrittenUnasked) {
    Folder folder;
    const std::string out = Child("ONEDNN_VERBOSE=0", "Odd", folder);
    EXPECT_TRUE(FilesIn(folder, ".*").empty());
    EXPECT_EQ(std::string::npos, out.find("onednn_verbose")) << out;
}

size_t CountOf(const std::string &text, const std::string &pattern) {
    const std::regex regex(pattern, std::regex::extended);
    size_t n = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        n += std::regex_match(line, regex);
    return n;
}

// operation, engine, partition id, kind, op names, formats, logical tensors, mode, implementation, backend, time
const char kFields[] =
    ",cpu,[0-9]+,[a-z_]+,[^,]*,[^,]*,[^,]*in0_[^,]*out0_[^,]*,fpm:strict,[^,]+,qdq_backend,[0-9.e+-]+";

TEST(AbiVerbose, LinesHaveUpstreamsFields) {
    Folder folder;
    const std::string both = Child("ONEDNN_VERBOSE=2", "Odd", folder);
    const size_t n = CountOf(both, std::string("onednn_verbose,v1,graph,compile:cache_miss") + kFields);
    EXPECT_GE(n, 1u) << both;
    EXPECT_EQ(n, CountOf(both, std::string("onednn_verbose,v1,graph,exec") + kFields)) << both;
    EXPECT_NE(std::string::npos, both.find(",in0_u8:1:strided:undef:2x3x4:12s4s1 out0_f32:")) << both;
    const std::string one = Child("ONEDNN_VERBOSE=profile_exec", "Odd", folder);
    EXPECT_EQ(0u, CountOf(one, std::string("onednn_verbose,v1,graph,compile.*")));
    EXPECT_EQ(n, CountOf(one, std::string("onednn_verbose,v1,graph,exec") + kFields)) << one;
    const std::string other = Child("ONEDNN_VERBOSE=all,filter=matmul", "Odd", folder);
    EXPECT_EQ(0u, CountOf(other, std::string("onednn_verbose,v1,graph,(exec|compile).*")));
    const std::string stamped = Child("ONEDNN_VERBOSE_TIMESTAMP=1 ONEDNN_VERBOSE=1", "Odd", folder);
    EXPECT_EQ(n, CountOf(stamped, std::string("onednn_verbose,v1,[0-9.]+,graph,exec") + kFields)) << stamped;
}

TEST(AbiVerbose, AFailureSaysWhatIsWrong) {
    Folder folder;
    const std::string out = Child("ONEDNN_VERBOSE=error", "Failure", folder);
    EXPECT_EQ(1u, CountOf(out, "onednn_verbose,v1,graph,error,add_op,status 8,.*MatMul.*")) << out;
}

} // namespace
} // namespace qdq_test
