#include "kernels/isa/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct {
    const char *name;
    uint32_t needs;
} levels[QK_ISA_COUNT] = {
#define QK_ISA(name, needs) [QK_ISA_##name] = {#name, needs},
#include "kernels/isa/isa.def"
#undef QK_ISA
};

static const struct {
    const char *name;
    qk_isa isa;
} onednn_names[] = {
    {"sse41", QK_ISA_ref},
    {"avx", QK_ISA_ref},
    {"avx2_vnni", QK_ISA_avxvnni},
    {"avx2_vnni_2", QK_ISA_avxvnni},
    {"avx512_core", QK_ISA_avx512},
    {"avx512_core_vnni", QK_ISA_avx512vnni},
    {"avx512_core_bf16", QK_ISA_avx512vnni},
    {"avx10_1_512", QK_ISA_avx512vbmi},
    {"avx512_core_fp16", QK_ISA_avx512vbmi},
    {"avx512_core_amx", QK_ISA_avx512vbmi},
    {"avx10_1_512_amx", QK_ISA_avx512vbmi},
    {"default", QK_ISA_avx512vbmi},
    {"all", QK_ISA_avx512vbmi},
};

uint32_t qk_cpu_features(const qk_cpu_regs *r) {
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t avx2 = 1u << 5, bmi2 = 1u << 8, f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    const uint32_t vbmi = 1u << 1, vnni = 1u << 11, avxvnni = 1u << 4;
    const uint64_t ymm = 0x06, zmm = 0xe6;

    uint32_t need1 = fma | osxsave | avx | f16c;
    if ((r->leaf1_ecx & need1) != need1 || (r->xcr0 & ymm) != ymm || (r->leaf7_ebx & (avx2 | bmi2)) != (avx2 | bmi2))
        return 0;
    uint32_t has = QK_CPU_AVX2;
    if (r->leaf7_1_eax & avxvnni) has |= QK_CPU_AVXVNNI;
    uint32_t need7 = f | dq | bw | vl;
    if ((r->xcr0 & zmm) != zmm || (r->leaf7_ebx & need7) != need7) return has;
    has |= QK_CPU_AVX512;
    if (r->leaf7_ecx & vnni) has |= QK_CPU_AVX512VNNI;
    if (r->leaf7_ecx & vbmi) has |= QK_CPU_AVX512VBMI;
    return has;
}

#if defined(__x86_64__)
typedef struct cpuid_out {
    uint32_t eax, ebx, ecx, edx;
} cpuid_out;

static cpuid_out cpuid(uint32_t leaf, uint32_t sub) {
    cpuid_out r;
    __asm__ volatile("cpuid" : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx) : "a"(leaf), "c"(sub));
    return r;
}

static uint64_t xgetbv0(void) {
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

qk_cpu_regs qk_cpu_read(void) {
    qk_cpu_regs r = {0};
    uint32_t max = cpuid(0, 0).eax;
    r.leaf1_ecx = cpuid(1, 0).ecx;
    if (r.leaf1_ecx & 1u << 27) r.xcr0 = xgetbv0();
    if (max >= 7) {
        cpuid_out seven = cpuid(7, 0);
        r.leaf7_ebx = seven.ebx;
        r.leaf7_ecx = seven.ecx;
        if (seven.eax >= 1) r.leaf7_1_eax = cpuid(7, 1).eax;
    }
    return r;
}
#else
qk_cpu_regs qk_cpu_read(void) {
    return (qk_cpu_regs){0};
}
#endif

/* Levels as bit masks. Zero is "not read yet": ref is always there. Two threads that read at once store the same. */
static _Atomic uint32_t host_levels;
/* The cap plus one; zero is "not read yet". */
static _Atomic uint32_t cap_plus_one;

static uint32_t host(void) {
    uint32_t mask = atomic_load_explicit(&host_levels, memory_order_relaxed);
    if (mask) return mask;
    qk_cpu_regs regs = qk_cpu_read();
    uint32_t features = qk_cpu_features(&regs);
    for (uint32_t i = 0; i < QK_ISA_COUNT; i++)
        if ((levels[i].needs & features) == levels[i].needs) mask |= 1u << i;
    atomic_store_explicit(&host_levels, mask, memory_order_relaxed);
    return mask;
}

bool qk_isa_from_name(const char *name, qk_isa *isa_out) {
    for (uint32_t i = 0; i < QK_ISA_COUNT; i++)
        if (strcasecmp(name, levels[i].name) == 0) {
            *isa_out = (qk_isa)i;
            return true;
        }
    for (size_t i = 0; i < sizeof onednn_names / sizeof *onednn_names; i++)
        if (strcasecmp(name, onednn_names[i].name) == 0) {
            *isa_out = onednn_names[i].isa;
            return true;
        }
    return false;
}

qk_isa qk_isa_cap(void) {
    uint32_t cap = atomic_load_explicit(&cap_plus_one, memory_order_relaxed);
    if (cap) return (qk_isa)(cap - 1);
    qk_isa isa = (qk_isa)(QK_ISA_COUNT - 1);
    const char *name = getenv("QDQ_MAX_ISA");
    if (name) (void)qk_isa_from_name(name, &isa);
    /* A cap that a test sets meanwhile wins. */
    uint32_t unread = 0;
    if (!atomic_compare_exchange_strong(&cap_plus_one, &unread, (uint32_t)isa + 1)) return (qk_isa)(unread - 1);
    return isa;
}

void qk_isa_set_cap(qk_isa isa) {
    if ((uint32_t)isa < QK_ISA_COUNT) atomic_store(&cap_plus_one, (uint32_t)isa + 1);
}

bool qk_isa_host_has(qk_isa isa) {
    return (uint32_t)isa < QK_ISA_COUNT && (host() >> isa & 1u);
}

bool qk_isa_has(qk_isa isa) {
    return isa <= qk_isa_cap() && qk_isa_host_has(isa);
}

const char *qk_isa_name(qk_isa isa) {
    return (uint32_t)isa < QK_ISA_COUNT ? levels[isa].name : "?";
}

static size_t cache_bytes(int name, size_t usual) {
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : usual;
}

#if defined(_SC_LEVEL1_DCACHE_SIZE)
size_t qk_isa_l1d_bytes(void) {
    return cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32u << 10);
}
size_t qk_isa_l2_bytes(void) {
    return cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1u << 20);
}
static size_t l3_bytes(void) {
    return cache_bytes(_SC_LEVEL3_CACHE_SIZE, 16u << 20);
}
#else
size_t qk_isa_l1d_bytes(void) {
    return 32u << 10;
}
size_t qk_isa_l2_bytes(void) {
    return 1u << 20;
}
static size_t l3_bytes(void) {
    return 16u << 20;
}
#endif

size_t qk_isa_stream_bytes(void) {
    /* The last cache is shared, and a virtual machine reports the whole of the host's. */
    size_t bytes = l3_bytes() / 2, least = 4u << 20, most = 32u << 20;
    return bytes < least ? least : bytes > most ? most : bytes;
}
