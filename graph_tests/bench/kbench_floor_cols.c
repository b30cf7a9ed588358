#include "kbench_floor_cols.h"

const kbench_col_floors *kbench_col_floors_here(void) {
#if defined(__x86_64__)
    if (qk_isa_has(QK_ISA_avx512)) return &kbench_col_floors_avx512;
    if (qk_isa_has(QK_ISA_avx2)) return &kbench_col_floors_avx2;
#endif
    return NULL;
}
