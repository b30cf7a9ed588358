#include "kernels/select/select_row.h"

static const qk_select_row *best(qk_isa *isa_out) {
    static const struct {
        qk_isa isa;
        const qk_select_row *row;
    } rows[] = {
#define QK_SELECT(level) {QK_ISA_##level, &qk_select_##level},
#include "kernels/select/select.def"
#undef QK_SELECT
    };
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out != NULL) *isa_out = rows[i].isa;
    return rows[i].row;
}

qk_select_fn *qk_select_choose(size_t elem_bytes, qk_isa *isa_out) {
    const qk_select_row *row = best(isa_out);
    switch (elem_bytes) {
    case 1: return row->select[0];
    case 2: return row->select[1];
    case 4: return row->select[2];
    case 8: return row->select[3];
    default: return NULL;
    }
}

qk_compare_fn *qk_compare_choose(qk_compare_op op, qk_isa *isa_out) {
    return (uint32_t)op > QK_COMPARE_EQ ? NULL : best(isa_out)->compare[op];
}

qk_prelu_fn *qk_prelu_choose(qk_isa *isa_out) {
    return best(isa_out)->prelu;
}
