#include "kernels/isa/isa.h"

#include <gtest/gtest.h>

namespace {

// Registers with the feature bits of these generations: leaf 1 ecx, leaf 7 ebx, ecx, leaf 7.1 eax, XCR0.
const qk_cpu_regs kHaswell = {0x7ffafbff, 0x000027ab, 0, 0, 0x7};
const qk_cpu_regs kSkylakeServer = {0x7ffefbff, 0xd39ffffb, 0x00000008, 0, 0xe7};
const qk_cpu_regs kCascadeLake = {0x7ffefbff, 0xd39ffffb, 0x00000808, 0, 0xe7};
const qk_cpu_regs kIceLake = {0x7ffafbff, 0xf2bf27ef, 0x40405f4e, 0, 0xe7};
const qk_cpu_regs kAlderLake = {0x7ffafbff, 0x239c27eb, 0x98c027ac, 0x00400810, 0x7};

TEST(Isa, ReadsFeaturesFromRegisters) {
    EXPECT_EQ(qk_cpu_features(&kHaswell), uint32_t(QK_CPU_AVX2));
    EXPECT_EQ(qk_cpu_features(&kSkylakeServer), uint32_t(QK_CPU_AVX2 | QK_CPU_AVX512));
    EXPECT_EQ(qk_cpu_features(&kCascadeLake), uint32_t(QK_CPU_AVX2 | QK_CPU_AVX512 | QK_CPU_AVX512VNNI));
    EXPECT_EQ(qk_cpu_features(&kIceLake),
              uint32_t(QK_CPU_AVX2 | QK_CPU_AVX512 | QK_CPU_AVX512VNNI | QK_CPU_AVX512VBMI));
    EXPECT_EQ(qk_cpu_features(&kAlderLake), uint32_t(QK_CPU_AVX2 | QK_CPU_AVXVNNI));
    qk_cpu_regs none = {};
    EXPECT_EQ(qk_cpu_features(&none), 0u);
}

TEST(Isa, BelievesNothingTheSystemDoesNotSave) {
    qk_cpu_regs regs = kIceLake;
    regs.xcr0 = 0x7; // no ZMM state
    EXPECT_EQ(qk_cpu_features(&regs), uint32_t(QK_CPU_AVX2));
    regs.xcr0 = 0x67; // ZMM without the upper sixteen registers
    EXPECT_EQ(qk_cpu_features(&regs), uint32_t(QK_CPU_AVX2));
    regs.xcr0 = 0x3; // no YMM state
    EXPECT_EQ(qk_cpu_features(&regs), 0u);
    regs = kIceLake;
    regs.leaf1_ecx &= ~(1u << 27); // no OSXSAVE
    EXPECT_EQ(qk_cpu_features(&regs), 0u);
    regs = kIceLake;
    regs.leaf1_ecx &= ~(1u << 12); // AVX2 flags assume FMA
    EXPECT_EQ(qk_cpu_features(&regs), 0u);
    regs = kIceLake;
    regs.leaf7_ebx &= ~(1u << 30); // no BW: no AVX-512 level, and nothing above it
    EXPECT_EQ(qk_cpu_features(&regs), uint32_t(QK_CPU_AVX2));
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
