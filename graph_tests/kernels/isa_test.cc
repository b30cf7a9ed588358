#include "kernels/isa/cpu.h"
#include "kernels/isa/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

// As Linux writes them in /proc/cpuinfo, where what the system does not save is left out.
const struct {
    const char *flag;
    uint32_t feature;
} kFlags[] = {
    {"avx", QK_CPU_AVX},
    {"avx2", QK_CPU_AVX2},
    {"fma", QK_CPU_FMA},
    {"f16c", QK_CPU_F16C},
    {"bmi2", QK_CPU_BMI2},
    {"avx_vnni", QK_CPU_AVXVNNI},
    {"avx512f", QK_CPU_AVX512F},
    {"avx512bw", QK_CPU_AVX512BW},
    {"avx512dq", QK_CPU_AVX512DQ},
    {"avx512vl", QK_CPU_AVX512VL},
    {"avx512_vnni", QK_CPU_AVX512VNNI},
    {"avx512vbmi", QK_CPU_AVX512VBMI},
    {"avx512_bf16", QK_CPU_AVX512BF16},
    {"asimd", QK_CPU_NEON},
    {"asimddp", QK_CPU_DOTPROD},
};

uint32_t FeaturesOf(const std::string &flags) {
    std::istringstream in(flags);
    std::string word;
    uint32_t features = 0;
    while (in >> word)
        for (const auto &f : kFlags)
            if (word == f.flag) features |= f.feature;
    return features;
}

uint32_t Mask(std::vector<qk_isa> levels) {
    uint32_t mask = 1u << QK_ISA_ref;
    for (qk_isa isa : levels)
        mask |= 1u << isa;
    return mask;
}

struct Machine {
    const char *name, *flags; // those of SIMD, and bmi2
    std::vector<qk_isa> levels;
};

class IsaMachines : public testing::TestWithParam<Machine> {};

const Machine kMachines[] = {
    {"Nehalem", "ssse3 sse4_1 sse4_2 popcnt", {}},
    {"SandyBridge", "ssse3 sse4_1 sse4_2 popcnt avx", {}},
    {"Haswell", "avx f16c fma bmi1 avx2 bmi2", {QK_ISA_avx2}},
    {"SkylakeClient", "avx f16c fma bmi1 avx2 bmi2 adx", {QK_ISA_avx2}},
    {"KnightsLanding", "avx f16c fma avx2 bmi2 avx512f avx512pf avx512er avx512cd", {QK_ISA_avx2}},
    {"SkylakeX", "avx f16c fma avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl", {QK_ISA_avx2, QK_ISA_avx512}},
    {"CascadeLake",
     "avx f16c fma avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni",
     {QK_ISA_avx2, QK_ISA_avx512, QK_ISA_avx512vnni}},
    {"IceLake",
     "avx f16c fma avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 gfni "
     "vaes vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq",
     {QK_ISA_avx2, QK_ISA_avx512, QK_ISA_avx512vnni, QK_ISA_avx512vbmi}},
    {"SapphireRapids",
     "avx f16c fma avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni avx512_bf16 avx512vbmi "
     "avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq amx_bf16 avx512_fp16 amx_tile amx_int8",
     {QK_ISA_avx2, QK_ISA_avxvnni, QK_ISA_avx512, QK_ISA_avx512vnni, QK_ISA_avx512vbmi, QK_ISA_avx512bf16}},
    {"AlderLake", "avx f16c fma bmi1 avx2 bmi2 avx_vnni gfni vaes vpclmulqdq", {QK_ISA_avx2, QK_ISA_avxvnni}},
    {"Zen1", "avx f16c fma bmi1 avx2 bmi2 sse4a", {QK_ISA_avx2}},
    {"Zen2", "avx f16c fma bmi1 avx2 bmi2 clwb rdpid", {QK_ISA_avx2}},
    {"Zen3", "avx f16c fma bmi1 avx2 bmi2 vaes vpclmulqdq", {QK_ISA_avx2}},
    {"Zen4",
     "avx f16c fma avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512_bf16 avx512vbmi "
     "avx512_vbmi2 gfni avx512_vnni avx512_bitalg avx512_vpopcntdq",
     {QK_ISA_avx2, QK_ISA_avx512, QK_ISA_avx512vnni, QK_ISA_avx512vbmi, QK_ISA_avx512bf16}},
    {"Zen5",
     "avx f16c fma avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni avx512_bf16 avx512vbmi "
     "avx512_vbmi2 gfni avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_vp2intersect movdiri",
     {QK_ISA_avx2, QK_ISA_avxvnni, QK_ISA_avx512, QK_ISA_avx512vnni, QK_ISA_avx512vbmi, QK_ISA_avx512bf16}},
    {"CortexA72", "fp asimd aes crc32", {QK_ISA_neon}},
    {"NeoverseN1", "fp asimd aes crc32 atomics asimdhp asimdrdm lrcpc dcpop asimddp", {QK_ISA_neon, QK_ISA_dotprod}},
    // A hypervisor that leaves YMM out of XCR0: what needs no vector register is still there.
    {"IceLakeWithoutYmm", "bmi1 bmi2 adx gfni", {}},
    {"IceLakeWithoutZmm", "avx f16c fma avx2 bmi2 gfni vaes vpclmulqdq", {QK_ISA_avx2}},
    // Masks of single bits: a level needs all that its flags let the compiler use.
    {"HaswellWithoutFma", "avx f16c avx2 bmi2", {}},
    {"HaswellWithoutF16c", "avx fma avx2 bmi2", {}},
    {"HaswellWithoutBmi2", "avx f16c fma avx2", {}},
    {"AlderLakeWithoutAvx2", "avx f16c fma bmi2 avx_vnni", {}},
    {"CascadeLakeWithoutBw", "avx f16c fma avx2 bmi2 avx512f avx512dq avx512cd avx512vl avx512_vnni", {QK_ISA_avx2}},
    {"CascadeLakeWithoutAvx2", "avx f16c fma bmi2 avx512f avx512dq avx512bw avx512vl avx512_vnni", {}},
};

TEST_P(IsaMachines, HasItsLevels) {
    EXPECT_EQ(qk_isa_levels(FeaturesOf(GetParam().flags)), Mask(GetParam().levels));
}

INSTANTIATE_TEST_SUITE_P(Recorded, IsaMachines, testing::ValuesIn(kMachines),
                         [](const auto &info) { return std::string(info.param.name); });

bool IsUnderValgrind() { // which shows the program a machine of its own
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload");
}

// The kernel has made its own list, from CPUID and from what it saves.
TEST(Isa, SeesWhatTheKernelSees) {
    std::ifstream in("/proc/cpuinfo");
    std::string line, flags;
#if defined(__aarch64__)
    const char *const kKey = "Features";
#else
    const char *const kKey = "flags";
#endif
    while (std::getline(in, line) && flags.empty())
        if (line.rfind(kKey, 0) == 0) flags = line.substr(line.find(':') + 1);
    if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags";
    if (IsUnderValgrind()) GTEST_SKIP() << "valgrind has a CPU of its own";
    for (const auto &f : kFlags)
        EXPECT_EQ((qk_cpu_host()->features & f.feature) != 0, (FeaturesOf(flags) & f.feature) != 0) << f.flag;
}

// shape/bare_sandbox.sh runs this where /proc is empty.
TEST(Isa, IsRefWhereTheMachineDoesNotTell) {
    if (!getenv("QDQ_TEST_BARE")) GTEST_SKIP() << "the machine tells";
    ASSERT_NE(access("/proc/cpuinfo", R_OK), 0);
    for (int isa = 0; isa < QK_ISA_COUNT; isa++)
        EXPECT_EQ(qk_isa_has(qk_isa(isa)), isa == QK_ISA_ref) << isa;
    EXPECT_EQ(qk_isa_l1d_bytes(), size_t(32) << 10);
    EXPECT_EQ(qk_isa_l2_bytes(), size_t(1) << 20);
    EXPECT_EQ(qk_isa_stream_bytes(), size_t(8) << 20);
}

TEST(ConcurrencyIsa, IsReadOnce) {
    std::vector<const qk_cpu *> seen(8);
    std::vector<uint32_t> features(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < seen.size(); i++)
        threads.emplace_back([&, i] {
            seen[i] = qk_cpu_host();
            features[i] = seen[i]->features;
        });
    for (std::thread &t : threads)
        t.join();
    for (size_t i = 0; i < seen.size(); i++) {
        EXPECT_EQ(seen[i], seen[0]);
        EXPECT_EQ(features[i], features[0]);
    }
}

TEST(Isa, CapHidesWhatIsAboveIt) {
    qk_isa before = qk_isa_cap();
    for (int cap = 0; cap < QK_ISA_COUNT; cap++) {
        qk_isa_set_cap(qk_isa(cap));
        EXPECT_EQ(qk_isa_cap(), qk_isa(cap));
        for (int isa = 0; isa < QK_ISA_COUNT; isa++)
            EXPECT_EQ(qk_isa_has(qk_isa(isa)), isa <= cap && qk_isa_host_has(qk_isa(isa))) << cap << " " << isa;
    }
    qk_isa_set_cap(before);
    EXPECT_TRUE(qk_isa_has(QK_ISA_ref));
    EXPECT_FALSE(qk_isa_has(QK_ISA_COUNT));
}

TEST(Isa, KnowsItsNamesAndThoseOfOneDnn) {
    qk_isa isa = QK_ISA_COUNT;
    for (int i = 0; i < QK_ISA_COUNT; i++) {
        ASSERT_TRUE(qk_isa_from_name(qk_isa_name(qk_isa(i)), &isa));
        EXPECT_EQ(isa, qk_isa(i));
    }
    ASSERT_TRUE(qk_isa_from_name("SSE41", &isa));
    EXPECT_EQ(isa, QK_ISA_ref);
    ASSERT_TRUE(qk_isa_from_name("AVX512_CORE", &isa));
    EXPECT_EQ(isa, QK_ISA_avx512);
    ASSERT_TRUE(qk_isa_from_name("avx512_core_vnni", &isa));
    EXPECT_EQ(isa, QK_ISA_avx512vnni);
    EXPECT_FALSE(qk_isa_from_name("quantum", &isa));
}

TEST(Isa, CacheSizesAreSane) {
    EXPECT_GE(qk_isa_l1d_bytes(), size_t(8) << 10);
    EXPECT_GE(qk_isa_l2_bytes(), qk_isa_l1d_bytes());
    EXPECT_GE(qk_isa_stream_bytes(), size_t(4) << 20);
}

} // namespace
