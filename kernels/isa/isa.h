/* What the machine can do, and how much of it may be used.
 *
 * The cap comes from the environment variable QDQ_MAX_ISA, read at the first call (a name of isa.def, or one of oneDNN's: sse41
 * avx2 avx2_vnni avx512_core avx512_core_vnni …; an unknown name caps nothing), and can be moved by tests. Kernels are chosen
 * when a plan is made: moving the cap does not touch plans that exist. All calls are thread-safe. */
#ifndef QK_ISA_H
#define QK_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lower-case, so that one token of a table row gives the enumerator and the suffix of the function. */
typedef enum qk_isa {
#define QK_ISA(name, needs) QK_ISA_##name,
#include "kernels/isa/isa.def"
#undef QK_ISA
    QK_ISA_COUNT
} qk_isa;

/* True when the host has the level and the cap lets it be seen. */
bool qk_isa_has(qk_isa isa);
/* True when the host has the level, whatever the cap. */
bool qk_isa_host_has(qk_isa isa);
qk_isa qk_isa_cap(void);
void qk_isa_set_cap(qk_isa isa);
/* "avx2"; "?" for a value outside the enum. */
const char *qk_isa_name(qk_isa isa);
bool qk_isa_from_name(const char *name, qk_isa *isa_out);

/* Bytes of the caches of one core; usual values when the machine does not tell. */
size_t qk_isa_l1d_bytes(void);
size_t qk_isa_l2_bytes(void);
/* A result of at least this many bytes will not be found in a cache by its reader: kernels may write past the caches. */
size_t qk_isa_stream_bytes(void);

/* ---- detection, on register values alone ---- */

/* Feature bits. Each stands for what the compiler flags of its level assume, operating system's consent included. */
enum {
    QK_CPU_AVX2 = 1,        /* AVX2, FMA, F16C, BMI2; XCR0 saves XMM and YMM */
    QK_CPU_AVXVNNI = 2,     /* VEX-coded VNNI */
    QK_CPU_AVX512 = 4,      /* F, BW, DQ, VL; XCR0 saves opmask and ZMM too */
    QK_CPU_AVX512VNNI = 8,  /* EVEX-coded VNNI */
    QK_CPU_AVX512VBMI = 16, /* byte permutes */
};

/* What CPUID and XGETBV say. Leaves above the maximum are zero. */
typedef struct qk_cpu_regs {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx, leaf7_ecx; /* sub-leaf 0 */
    uint32_t leaf7_1_eax;          /* sub-leaf 1 */
    uint64_t xcr0;                 /* read only when leaf 1 says OSXSAVE; otherwise 0 */
} qk_cpu_regs;

/* The QK_CPU_ bits of a machine with these registers. */
uint32_t qk_cpu_features(const qk_cpu_regs *regs);
/* The registers of this machine; all zero on other architectures. */
qk_cpu_regs qk_cpu_read(void);

#ifdef __cplusplus
}
#endif
#endif
