#include "kernels/affine/affine_row.h"

static const struct {
    qk_isa isa;
    qk_affine_fn *fn;
} rows[] = {
#define QK_AFFINE(level) {QK_ISA_##level, qk_affine_##level},
#include "kernels/affine/affine.def"
#undef QK_AFFINE
};

qk_affine_fn *qk_affine_choose(qk_isa *isa_out) {
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}
