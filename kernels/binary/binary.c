#include "kernels/binary/binary_row.h"

static const struct {
    qk_isa isa;
    qk_binary_fn *fn;
} rows[] = {
#define QK_BINARY(level) {QK_ISA_##level, qk_binary_##level},
#include "kernels/binary/binary.def"
#undef QK_BINARY
};

static bool is_x8(qdq_dtype d) {
    return d == QDQ_DTYPE_U8 || d == QDQ_DTYPE_S8;
}

static bool is_source(const qk_binary_end *e) {
    bool type = is_x8(e->dtype) || e->dtype == QDQ_DTYPE_F32 || e->dtype == QDQ_DTYPE_BF16 || e->dtype == QDQ_DTYPE_S32;
    return type && (e->step == 0 || e->step == 1);
}

qk_binary_fn *qk_binary_choose(const qk_binary *chain, qk_isa *isa_out) {
    if (!is_source(&chain->src) || chain->n_steps > QK_BINARY_MAX_STEPS || chain->dst.step != 1 ||
        !(is_x8(chain->dst.dtype) || chain->dst.dtype == QDQ_DTYPE_F32))
        return NULL;
    for (uint32_t k = 0; k < chain->n_steps; k++)
        if (!is_source(&chain->steps[k].operand) || (uint32_t)chain->steps[k].op > QK_BINARY_MIN) return NULL;
    size_t i = 0;
    while (!qk_isa_has(rows[i].isa)) /* the last is ref, which is always there */
        i++;
    if (isa_out) *isa_out = rows[i].isa;
    return rows[i].fn;
}
