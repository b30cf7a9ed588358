/* The machine, as cpuinfo sees it. For isa.c and its tests: everybody else asks isa.h. */
#ifndef QK_CPU_H
#define QK_CPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define QK_CPU(name, asked) QK_CPU_BIT_##name,
#include "kernels/isa/cpu.def"
#undef QK_CPU
};
/* The feature bits, QK_CPU_AVX2. */
enum {
#define QK_CPU(name, asked) QK_CPU_##name = 1 << QK_CPU_BIT_##name,
#include "kernels/isa/cpu.def"
#undef QK_CPU
};

typedef struct qk_cpu {
    uint32_t features;                    /* QK_CPU_ bits, the operating system's consent included */
    size_t l1d_bytes, l2_bytes, l3_bytes; /* zero: not known */
} qk_cpu;

/* The host; read at the first call (some 0.2 ms on two cores: cpuinfo reads /proc/cpuinfo and /sys, and allocates), the same
 * pointer ever after. All zero where cpuinfo cannot start, or is of another layout than the header we were compiled with.
 * Thread-safe; prints nothing. */
const qk_cpu *qk_cpu_host(void);

#ifdef __cplusplus
}
#endif
#endif
