#include "kbench_floor_runs.h"

const kbench_run_floors *kbench_run_floors_of_host(void) {
#if defined(__x86_64__)
    if (qk_isa_host_has(QK_ISA_avx512bf16)) return &kbench_run_floors_avx512bf16;
#endif
    return NULL;
}
