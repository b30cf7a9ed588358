#include "kbench_floor_lines.h"

const kbench_lines_floors *kbench_lines_floors_here(void) {
#if defined(__x86_64__)
    if (qk_isa_has(QK_ISA_avx512vbmi) && qk_isa_has(QK_ISA_avx512vnni)) return &kbench_lines_floors_avx512vbmi;
    if (qk_isa_has(QK_ISA_avx2)) return &kbench_lines_floors_avx2;
#endif
    return NULL;
}
