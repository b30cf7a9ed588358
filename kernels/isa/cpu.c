#define _GNU_SOURCE /* dladdr1 */
#include "kernels/isa/cpu.h"

#include <cpuinfo.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

/* cpuinfo before 2023 does not know AVX-VNNI: CPUID leaf 7, sub-leaf 1, EAX bit 4. Its registers are those of AVX2. */
#if QK_CPUINFO_HAS_AVXVNNI
#define QK_AVXVNNI() cpuinfo_has_x86_avxvnni()
#elif defined(__x86_64__)
#include <cpuid.h>
static bool has_avxvnni(void) {
    uint32_t eax, ebx, ecx, edx;
    if (!cpuinfo_has_x86_avx2() || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || eax < 1) return false;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax >> 4 & 1;
}
#define QK_AVXVNNI() has_avxvnni()
#else
#define QK_AVXVNNI() false
#endif

/* The accessors are inline functions of the header that read a structure in the library. Its layout changed under one soname:
 * compiled with the one and run with the other they answer for other features. The size tells. */
static bool is_as_compiled(void) {
#if defined(__x86_64__) && defined(__GLIBC__)
    Dl_info where;
    const ElfW(Sym) *symbol = NULL;
    if (!dladdr1(&cpuinfo_isa, &where, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return true; /* linked statically */
    return symbol->st_size == sizeof cpuinfo_isa;
#else
    return true;
#endif
}

/* Without /proc cpuinfo would fail, and say so on stderr. */
static bool can_start(void) {
#if defined(__linux__)
    if (access("/proc/cpuinfo", R_OK) != 0) return false;
#endif
    return cpuinfo_initialize();
}

static size_t bytes_of(const struct cpuinfo_cache *cache) {
    return cache ? cache->size : 0;
}

static qk_cpu cpu;

static void read_cpu(void) {
    if (!can_start()) return;
    if (is_as_compiled()) {
#define QK_CPU(name, asked)                                                                                            \
    if (asked) cpu.features |= QK_CPU_##name;
#include "kernels/isa/cpu.def"
#undef QK_CPU
    }
    cpu.l1d_bytes = cpuinfo_get_l1d_caches_count() ? bytes_of(cpuinfo_get_l1d_cache(0)) : 0;
    cpu.l2_bytes = cpuinfo_get_l2_caches_count() ? bytes_of(cpuinfo_get_l2_cache(0)) : 0;
    cpu.l3_bytes = cpuinfo_get_l3_caches_count() ? bytes_of(cpuinfo_get_l3_cache(0)) : 0;
}

const qk_cpu *qk_cpu_host(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_cpu);
    return &cpu;
}
