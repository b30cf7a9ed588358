#include "kbench_floor.h"

const kbench_floors *kbench_floors_of_host(void) {
#if defined(__x86_64__)
    if (qk_isa_host_has(QK_ISA_avx512)) return &kbench_floors_avx512;
#endif
    return NULL;
}
