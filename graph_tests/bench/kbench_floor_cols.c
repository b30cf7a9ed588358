#include "kbench_floor_cols.h"

const kbench_col_floors *kbench_col_floors_of_host(void) {
#if defined(__x86_64__)
    if (qk_isa_host_has(QK_ISA_avx512)) return &kbench_col_floors_avx512;
#endif
    return NULL;
}
