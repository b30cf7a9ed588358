#include "kernels/lut/lut_row.h"

static const struct {
    qk_isa isa;
    qk_lut_x8_fn *fn;
} rows[] = {
#define QK_LUT(level) {QK_ISA_##level, qk_lut_x8_##level},
#include "kernels/lut/lut.def"
#undef QK_LUT
};

qk_lut_x8_fn *qk_lut_x8_choose(qk_isa *isa_out) {
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}
