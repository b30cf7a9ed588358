#include "kbench_limit.h"

#include <math.h>
#include <string.h>

/* Other machines: words of the machine. */
#define VEC          uint64_t
#define LINE_VECS    8
#define LOAD(p)      (*(const uint64_t *)(const void *)(p))
#define STORE(p, v)  (*(uint64_t *)(void *)(p) = (v))
#define STREAM(p, v) STORE(p, v)
#define OR(a, b)     ((a) | (b))
#define ZERO         0
#define KEEP(v)      __asm__ volatile("" : : "r"(v))
#include "kbench_stream.h"

const kbench_mix kbench_mixes_ref[KBENCH_N_MIXES] = {KBENCH_MIXES};

static const kbench_mix *mixes(void) {
#if defined(__x86_64__)
    if (qk_isa_host_has(QK_ISA_avx512)) return kbench_mixes_avx512;
    if (qk_isa_host_has(QK_ISA_avx2)) return kbench_mixes_avx2;
#endif
    return kbench_mixes_ref;
}

static double share(double read, double write) {
    return read / (read + write);
}

const kbench_mix *kbench_mix_of(size_t read_bytes, size_t write_bytes) {
    const kbench_mix *all = mixes(), *best = all;
    const double wanted = share((double)read_bytes, (double)write_bytes);
    for (size_t k = 1; k < KBENCH_N_MIXES; k++)
        if (fabs(share((double)all[k].reads, (double)all[k].writes) - wanted) <
            fabs(share((double)best->reads, (double)best->writes) - wanted))
            best = &all[k];
    return best;
}

static size_t multiply_ref(size_t n) {
    uint32_t a = 1, s[4] = {0};
    for (size_t i = 0; i < n; i += 4)
        QK_FOUR_TIMES(k, __asm__ volatile("" : "+r"(a)); s[k] += a * a);
    QK_FOUR_TIMES(k, KEEP(s[k]));
    return 1;
}

kbench_multiply_fn *kbench_multiply_of(kbench_products products, qk_isa isa) {
#if defined(__x86_64__)
    const bool has_vnni = isa >= QK_ISA_avx512vnni && qk_isa_host_has(QK_ISA_avx512vnni);
    if (products == KBENCH_FLOAT32) {
        if (isa >= QK_ISA_avx512) return kbench_f32_avx512;
        if (isa >= QK_ISA_avx2) return kbench_f32_avx2;
    } else {
        if (has_vnni) return kbench_int8_avx512vnni;
        if (isa >= QK_ISA_avx512) return kbench_int8_avx512;
        if (isa >= QK_ISA_avxvnni && qk_isa_host_has(QK_ISA_avxvnni)) return kbench_int8_avxvnni;
        if (isa >= QK_ISA_avx2) return kbench_int8_avx2;
    }
#endif
    (void)products, (void)isa;
    return multiply_ref;
}
